"""The lab: links, lessons, and the page in a browser; and that its engine's tables equal
native's."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_chromium import Opened, in_a_browser

import sojourn
from sojourn import _core, lab, scenario
from sojourn.cli import status
from sojourn.errors import UserError
from sojourn.lab import Shown, lessons, permalink, read_link, to_link
from sojourn.lab.lessons import Check
from sojourn.scenario import examples

HERE = Path(lab.__file__).parent
NODE = shutil.which("node")

built = pytest.mark.skipif(
    not lab.is_there() and os.environ.get("CI") != "true",
    reason="the lab's engine was not built: make sojourn/python/sojourn/lab/engine.wasm",
)


# -------------------------------------------------------------------------------------------- links


def test_a_link_contains_the_whole_state() -> None:
    state = Shown('title = "ä < \\"b\\""\n', ("pfifo limit 10", "fq_codel"), "up", 5)
    link = to_link(state)
    assert re.fullmatch(r"1=[\w-]+", link)
    assert read_link(link) == state
    assert read_link(f"https://example.org/lab.html#{link}") == state


@pytest.mark.parametrize(
    ("link", "says"),
    [
        ("lab.html", "not a link"),
        ("#2=abcd", "newer lab"),
        ("#1=abcd", "damaged"),
        ("#1=" + to_link(Shown("x" * 100))[2:-9], "damaged"),
    ],
)
def test_an_invalid_link_gives_the_reason(link: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        read_link(link)


def test_a_link_that_unpacks_without_end_is_refused() -> None:
    import base64

    squeezed = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = squeezed.compress(b" " * (permalink.MOST_TEXT * 8)) + squeezed.flush()
    with pytest.raises(UserError, match="damaged"):
        read_link("1=" + base64.urlsafe_b64encode(body).decode().rstrip("="))


def link_of(body: bytes) -> str:
    import base64

    squeezed = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = squeezed.compress(body) + squeezed.flush()
    return "1=" + base64.urlsafe_b64encode(packed).decode().rstrip("=")


@pytest.mark.parametrize(
    "body",
    [b"[" * 100_000 + b"]" * 100_000, b'{"text": "\\ud800", "qdiscs": []}', b'{"seeds": NaN}'],
    ids=["deep", "half a surrogate pair", "no number"],
)
def test_a_hostile_link_is_refused(body: bytes) -> None:
    with pytest.raises(UserError, match="damaged"):
        read_link(link_of(body))


def test_text_of_a_link_can_not_control_a_terminal() -> None:
    state = read_link(link_of(b'{"text": "a\\n\\u001b]0;x\\u0007", "qdiscs": ["\\u001b[2J"]}'))
    assert state.text == "a\n\N{REPLACEMENT CHARACTER}]0;x\N{REPLACEMENT CHARACTER}"
    assert state.qdiscs == ("\N{REPLACEMENT CHARACTER}[2J",)


# ------------------------------------------------------------------------------------------ lessons


def _value(numbers: Any, check: Check) -> float:
    at = numbers
    if check.of is not None:
        at = next(
            each for each in numbers[check.of] if check.name in (each.get("name"), each.get("link"))
        )
    for key in check.number.split("."):
        at = at[key]
    return float(at["mean"])


def _met(text: str, check: Check) -> bool:
    numbers = sojourn.simulate(scenario.loads(text), seeds=1).summary.summary
    value = _value(numbers, check)
    return value < check.below if check.below is not None else value > (check.above or 0.0)


@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.title)
def test_a_lesson_is_not_solved_as_it_begins_and_is_by_its_solution(lesson: Any) -> None:
    assert not all(_met(lesson.text, check) for check in lesson.checks)
    solved = lesson.text
    for old, new in lesson.changes:
        assert old in solved
        solved = solved.replace(old, new, 1)
    for check in lesson.checks:
        assert _met(solved, check), check.says


def test_a_check_is_worded_in_the_unit_of_its_number() -> None:
    for check in (check for lesson in lessons() for check in lesson.checks):
        unit, scale = check.shown_in
        bound = (check.below if check.below is not None else check.above or 0.0) * scale
        assert f"{bound:g} {unit}" in check.says


# ------------------------------------------------------------------------------------------- engine


_IN_NODE = """
const fs = require("fs"), crypto = require("crypto"), vm = require("vm");
const [worker, engine] = process.argv.slice(1);
const { requests } = JSON.parse(fs.readFileSync(0, "utf8"));
globalThis.onmessage = null;
globalThis.postMessage = message => received(message);
vm.runInThisContext(fs.readFileSync(worker, "utf8"));
let waits;
const received = message => { if ("progress" in message) return; waits(message); };
const send = message => new Promise(resolve => { waits = resolve; onmessage({ data: { id: 1, ...message } }); });
(async () => {
  await send({ what: "compile", engine: require("zlib").gzipSync(fs.readFileSync(engine)) });
  const all = [];
  for (const request of requests) {
    const { answer, broken } = await send({ what: "run", request });
    if (broken) { all.push({ broken }); continue; }
    const sums = {};
    for (const [name, columns] of Object.entries(answer.tables || {})) {
      for (const [column, values] of Object.entries(columns)) {
        const same = values instanceof Float64Array ? values : BigInt64Array.from(values, BigInt);
        const bytes = Buffer.from(same.buffer, same.byteOffset, same.byteLength);
        sums[`${name}.${column}`] = crypto.createHash("sha256").update(bytes).digest("hex");
      }
    }
    all.push({ sums, about: answer.about, numbers: answer.numbers });
  }
  console.log(JSON.stringify(all));
})();
"""


def _shortened(text: str) -> scenario.Scenario:
    """Returns an example's first variant, with a duration of two seconds."""
    example = scenario.loads(text, folder=examples.FOLDER)
    return example.variants()[0].with_({"duration": "2 s", "warmup": "500 ms", "seeds": [3]})


def _shortened_examples() -> Iterator[tuple[str, scenario.Scenario]]:
    for path in examples.simulated():
        # A page reads no files, so the text is the canonical one, with its trace written out.
        yield path.stem, _shortened(path.read_text(encoding="utf-8"))


def _wide(values: Any) -> Any:
    """Converts to 64 bits, as the page's values are for the comparison."""
    return np.ascontiguousarray(values, np.float64 if values.dtype.kind == "f" else np.int64)


@built
@pytest.mark.skipif(NODE is None, reason="needs node, to run the page's engine")
def test_the_page_has_the_command_line_s_tables() -> None:
    shortened = dict(_shortened_examples())
    requests = [
        {
            "ask": "begin",
            "text": each.to_toml(),
            "variant": 0,
            "seed": 3,
            "packets": False,
            "fresh": True,
        }
        for each in shortened.values()
    ]
    done = subprocess.run(
        [str(NODE), "-e", _IN_NODE, str(HERE / "worker.js"), str(HERE / "engine.wasm")],
        input=json.dumps({"requests": requests}),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    for (name, each), answer in zip(shortened.items(), json.loads(done.stdout), strict=True):
        assert answer.get("sums"), (name, answer)
        tables = _core.run(each.realise(3))
        ours = {
            f"{table}.{column}": hashlib.sha256(_wide(values).tobytes()).hexdigest()
            for table in tables
            for column, values in tables[table].items()
        }
        assert answer["sums"] == ours, name
        native = sojourn.simulate(each, seeds=[3]).summary.summary
        assert answer["numbers"]["goodput_mbps"]["mean"] == native["goodput_mbps"]["mean"], name


# ------------------------------------------------------------------------------------- command line


@built
def test_a_page_is_written_with_the_given_scenario(tmp_path: Path) -> None:
    page = tmp_path / "lab.html"
    assert status(["lab", "home-uplink", "codel", "cake", "-o", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    given = re.search(r'<script id="state-given" type="application/json">(.*?)</script>', text)
    assert given is not None
    state = json.loads(given[1])
    assert state["qdiscs"] == ["codel", "cake"]
    assert "A home line while a backup runs" in state["text"]
    assert "://" not in _own_parts()
    assert page.stat().st_size < 950_000


def _own_parts() -> str:
    """Returns our parts of the page, without vendored scripts and scenarios."""
    names = ("page.html", "page.js", "worker.js", "page.css")
    return "".join((HERE / name).read_text(encoding="utf-8") for name in names)


def test_the_text_of_a_link_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    state = Shown("title = 'x'\n", ("codel",))
    assert status(["lab", f"lab.html#{to_link(state)}", "--text"]) == 0
    assert capsys.readouterr().out == state.text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("no-such",), "can't read it"),
        (("lab.html#1=zzz", "--text"), "damaged"),
        (("--text",), "needs a LINK"),
    ],
)
def test_wrong_input_is_reported_with_an_error(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["lab", *words]) == 2
    stderr = capsys.readouterr().err
    assert stderr.startswith("error: ")
    assert says in stderr


# ------------------------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lab.write(tmp_path_factory.mktemp("page") / "lab.html")


class Lab(Opened):
    """The lab in a browser."""

    def attempt(self) -> int:
        """Returns the number of the run on show."""
        return int(self.page.get_attribute("html", "data-shown") or 0)

    def after(self, act: Any) -> None:
        """Acts, and waits until the page shows a further run."""
        before = self.attempt()
        act()
        deadline = time.monotonic() + 30
        while self.attempt() <= before:
            assert time.monotonic() < deadline, self.page.inner_text("#state")
            self.page.wait_for_timeout(20)

    def number(self, row: str, column: int = 0) -> float:
        cells = self.page.locator(f"#numbers tr:has(th:text-is('{row}')) td")
        return float(re.match(r"[\d. ]+", cells.nth(column).inner_text())[0].replace(" ", ""))  # type: ignore[index]


@pytest.fixture
def shown(browser: Any, page_file: Path) -> Iterator[Lab]:
    shown = Lab(browser, page_file)
    shown.page.wait_for_selector("html[data-shown]")
    yield shown
    shown.close()


@built
@in_a_browser
def test_the_page_shows_the_command_line_s_numbers_and_follows_a_slider(shown: Lab) -> None:
    ours = sojourn.simulate(scenario.loads(lab.start().text), seeds=[1]).summary.summary
    native = ours["probes"][0]["rtt_ms"]["p95"]["mean"]
    assert shown.number("ping RTT, 95th percentile") == pytest.approx(native, rel=0.01)
    slider = shown.page.locator('input[data-key="bottleneck.up.rate"]')
    shown.after(lambda: slider.fill("900"))
    text = shown.page.input_value("#text")
    assert 'up.rate   = "10 Mbit/s"' not in text
    # The rest of the text is unchanged.
    assert "# A home line of 50 Mbit/s" in text
    assert shown.number("ping RTT, 95th percentile") < native / 3
    assert "fq_codel in place of" in shown.page.inner_text(
        "#verdict"
    ) or "None is better" in shown.page.inner_text("#verdict")


@built
@in_a_browser
def test_a_broken_text_is_shown_with_its_caret_and_the_last_results_stay(shown: Lab) -> None:
    before = shown.number("ping RTT, median")
    text = shown.page.input_value("#text")
    shown.page.fill("#text", text.replace('"10 s"', "10"))
    shown.page.wait_for_selector(".problem")
    problem = shown.page.inner_text("#problems")
    assert "needs a unit" in problem
    assert "^" in problem
    assert shown.page.get_attribute("#text", "aria-invalid") == "true"
    assert shown.number("ping RTT, median") == before
    shown.after(lambda: shown.page.fill("#text", text))
    assert shown.page.inner_text("#problems") == ""


@built
@in_a_browser
def test_a_link_opens_the_state_that_it_was_copied_from(
    shown: Opened, browser: Any, page_file: Path
) -> None:
    shown.after(lambda: shown.page.select_option("#candidates select", "cake"))
    deadline = time.monotonic() + 10
    while "#1=" not in shown.page.url:
        assert time.monotonic() < deadline
        shown.page.wait_for_timeout(50)
    shown.page.wait_for_timeout(400)
    link = shown.page.url.split("#")[1]
    state = read_link(link)
    assert state.qdiscs == ("pfifo limit 1000", "fq_codel", "cake")
    other = Lab(browser, page_file, f"#{link}")
    other.page.wait_for_selector("html[data-shown]")
    assert other.page.locator("#numbers thead th").count() == 4
    other.close()


@built
@in_a_browser
@pytest.mark.parametrize(
    ("link", "says"),
    [("#9=abc", "newer lab"), ("#1=abc", "damaged"), ("#nothing", "is it whole?")],
)
def test_an_invalid_link_is_reported_and_the_page_works(
    browser: Any, page_file: Path, link: str, says: str
) -> None:
    shown = Lab(browser, page_file, link)
    shown.page.wait_for_selector("#state.wrong")
    assert says in shown.page.inner_text("#state")
    assert shown.page.locator("#numbers tbody tr").count() > 3
    shown.close()


HOSTILE = """
duration = "600 s"
[bottleneck]
rate = "1 Gbit/s"
delay = "1 ms"
qdisc = "pfifo"
[[flow]]
kind = "bulk"
count = 1000
"""


@built
@in_a_browser
def test_a_hostile_link_can_be_stopped_and_the_page_answers_meanwhile(
    browser: Any, page_file: Path
) -> None:
    shown = Lab(browser, page_file, f"#{to_link(Shown(HOSTILE))}")
    shown.page.wait_for_selector("#stop:not([hidden])")
    assert "running" in shown.page.inner_text("#state")
    shown.page.click("#stop")
    assert shown.page.inner_text("#state") == "stopped"
    shown.after(lambda: shown.page.fill("#text", lab.start().text))
    shown.close()


_DEAF = """
const Whole = Worker;
Worker = class extends Whole {
  postMessage(message, ...more) { if (!(window.deaf && message.what === "run")) super.postMessage(message, ...more); }
};
const now = performance.now.bind(performance);
performance.now = () => now() + (window.deaf ? 7000 : 0);
"""
"""While `deaf` is true, the worker receives no runs, and the page's clock is 7 s ahead. The page
ends a worker that is silent for 8 s, so the test waits only for one."""


@built
@in_a_browser
def test_a_silent_worker_is_ended_and_the_page_continues(browser: Any, page_file: Path) -> None:
    shown = Lab(browser, page_file)
    shown.page.add_init_script(_DEAF)
    shown.page.reload()
    shown.page.wait_for_selector("html[data-shown]")
    slider = shown.page.locator('input[data-key="bottleneck.up.rate"]')
    shown.page.evaluate("window.deaf = true")
    slider.fill("700")
    shown.page.wait_for_selector("#state.wrong", timeout=15_000)
    assert "did not answer for 8 s and was ended" in shown.page.inner_text("#state")
    shown.page.evaluate("window.deaf = false")
    shown.after(lambda: slider.fill("600"))
    assert shown.page.locator("#state.wrong").count() == 0
    shown.close()


@built
@in_a_browser
def test_features_of_kernels_alone_are_refused_with_a_hint(browser: Any, page_file: Path) -> None:
    text = lab.start().text.replace('kind      = "bulk"', 'kind      = "bulk"\ncongestion = "cdg"')
    shown = Lab(browser, page_file, f"#{to_link(Shown(text))}")
    shown.page.wait_for_selector(".problem")
    assert "only a Linux kernel has" in shown.page.inner_text("#problems")
    assert "--engine kernel" in shown.page.inner_text("#problems")
    shown.close()


@built
@in_a_browser
def test_every_lesson_is_solved_by_its_own_solution_in_the_page(shown: Lab) -> None:
    for index, lesson in enumerate(lessons()):
        shown.page.locator("#lessons summary").click()
        shown.after(
            lambda index=index: shown.page.locator("#lesson-list button").nth(index).click()
        )
        assert lesson.title in shown.page.inner_text("#lesson h2")
        assert shown.page.get_attribute("#lesson", "data-done") == "false", lesson.title
        shown.after(lambda: shown.page.get_by_role("button", name="Show me").click())
        assert shown.page.get_attribute("#lesson", "data-done") == "true", lesson.title
        assert shown.page.locator("#lesson .answer").is_visible()


@built
@in_a_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_is_wider_than_the_screen_and_every_control_has_a_name(
    browser: Any, page_file: Path, scheme: str
) -> None:
    shown = Lab(
        browser,
        page_file,
        viewport={"width": 390, "height": 800},
        color_scheme=scheme,
        has_touch=True,
        is_mobile=True,
    )
    shown.page.wait_for_selector("html[data-shown]")
    assert shown.too_wide() <= 0
    shown.page.tap("#play")
    shown.page.wait_for_timeout(300)
    assert shown.page.get_by_role("slider").count() > 3
    assert shown.nameless() == []
    assert shown.faint() == []
    # A lesson, by touch.
    shown.page.tap("#lessons summary")
    shown.after(lambda: shown.page.locator("#lesson-list button").first.tap())
    shown.after(lambda: shown.page.get_by_role("button", name="Show me").tap())
    assert shown.page.locator("#lesson .answer").is_visible()
    bullets = "list => getComputedStyle(list).listStyleType"
    assert shown.page.locator("#lesson ul").evaluate(bullets) == "none"
    # A series' name under a chart has no colon when no value follows.
    behind = "all => all.map(name => getComputedStyle(name, '::after').content)"
    names = shown.page.locator(".u-series > th")
    assert set(names.evaluate_all(behind)) <= {'""', "none", "normal"}
    # The sliders are still visible where the results are read.
    shown.page.evaluate("document.getElementById('charts').scrollIntoView()")
    sliders = shown.page.locator(".turned").bounding_box()
    assert sliders is not None
    assert 0 <= sliders["y"] < 10
    assert sliders["height"] < 0.5 * 800
    results = shown.page.locator("#charts").bounding_box()
    assert results is not None
    assert sliders["height"] - 1 <= results["y"] < 600
    shown.page.fill("#text", shown.page.input_value("#text").replace('" s"', "1"))
    assert shown.too_wide() <= 0
    assert shown.faint() == []
    shown.close()


@built
@in_a_browser
def test_the_queue_is_shown_packet_by_packet_and_by_keyboard(shown: Lab) -> None:
    shown.page.focus("#play")
    shown.page.keyboard.press("Enter")
    deadline = time.monotonic() + 20
    at = shown.page.inner_text("#at-text")
    while shown.page.inner_text("#at-text") == at:
        assert time.monotonic() < deadline
        shown.page.wait_for_timeout(50)
    assert shown.page.inner_text("#play") == "Pause"
    assert shown.page.inner_text("#film-state") == ""
