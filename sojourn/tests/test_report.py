"""The report page is self-contained, requests nothing from the network, and no text of a scenario
can break it."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import html
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
import synthetic
from in_chromium import Opened, in_a_browser
from matplotlib.figure import Figure
from matplotlib.text import Text
from shortened import unrendered
from synthetic import Shape

import sojourn
import sojourn.engine
from sojourn import digits, figures, report
from sojourn.figures import series, style
from sojourn.figures.series import Line
from sojourn.judgement import compare, judge, quantities
from sojourn.records import Run, RunError
from sojourn.report import data, verdict

VENDOR = Path(report.__file__).parent / "vendor"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """pfifo and fq_codel, three seeds each."""
    return synthetic.pair(tmp_path_factory.mktemp("pair"))


@pytest.fixture(scope="module")
def page(pair: list[Run]) -> str:
    """Returns the report page of these Runs."""
    return report.render(pair)


_unrendered = pytest.fixture(unrendered)


class Elements(HTMLParser):
    """Parses the page as a browser does: start tags with attributes, and text by element."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "br", "link", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def text(self, tag: str) -> str:
        return "".join(text for parent, text in self.texts if parent == tag)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


def payload(page: str) -> dict[str, Any]:
    """Returns the data that the page's script reads."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    parsed: dict[str, Any] = json.loads(found[1])
    return parsed


def values(packed: dict[str, Any], number: int) -> np.ndarray[Any, Any]:
    return np.frombuffer(base64.b64decode(packed["buffers"][number]), dtype="<f4")


# --------------------------------------------------------------------------------- self-contained


def test_the_page_requests_nothing(page: str) -> None:
    for tag, attributes in Elements(page).tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        for name, value in attributes.items():
            if name in ("src", "href", "xlink:href", "action", "data", "poster", "srcset"):
                assert value is not None
                assert value.startswith("#"), (tag, name, value)
    assert "@import" not in page
    assert not re.search(r"url\((?!['\"]?#)", page)
    # URLs in the page are only names (of a namespace, and of uPlot's home in its licence line).
    # None is requested.
    known = {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
        "https://github.com/leeoniya/uPlot",
    }
    assert set(re.findall(r"https?://[\w./-]+", page)) <= known
    assert not re.search(
        r"\b(fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|importScripts)\b", page
    )


def test_the_page_forbids_the_browser_to_fetch(page: str) -> None:
    policy = [
        a["content"]
        for tag, a in Elements(page).tags
        if a.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy
    assert policy[0] is not None
    assert "default-src 'none'" in policy[0]


def test_the_vendored_files_are_the_published_ones() -> None:
    sums = dict(
        re.findall(
            r"^\| (\S+) \| ([0-9a-f]{64}) \|$", (VENDOR / "README.md").read_text(), re.MULTILINE
        )
    )
    assert set(sums) == {"uPlot.iife.min.js", "uPlot.min.css", "LICENSE"}
    for name, expected in sums.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == expected


def test_the_same_runs_give_the_same_page(pair: list[Run], page: str) -> None:
    assert report.render(pair) == page


# --------------------------------------------------------------------------------------- escaping


NASTY = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \"q\" 'a' & $title ${css} <!-- \u2028"


def test_a_title_with_a_script_is_data(tmp_path: Path) -> None:
    plain = Elements(report.render([synthetic.run(tmp_path / "plain", Shape(seeds=(1,)))]))
    shape = Shape(seeds=(1,), title=NASTY, label=NASTY, qdisc=f"pfifo {NASTY}")
    nasty = report.render([synthetic.run(tmp_path / "nasty", shape)])
    found = Elements(nasty)
    assert found.count("script") == plain.count("script")
    assert found.count("img") == 0
    code = re.sub(r'<script type="application/json".*?</script>', "", nasty, flags=re.DOTALL)
    assert "alert(1)" not in Elements(code).text("script")
    assert NASTY in found.text("h1")
    assert payload(nasty)["runs"][0]["name"] == NASTY


def test_titles_in_a_comparison_are_escaped(tmp_path: Path) -> None:
    runs = [
        synthetic.run(tmp_path / str(i), Shape(seeds=(1,), label=f"{NASTY}{i}")) for i in range(2)
    ]
    found = Elements(report.render(runs))
    assert found.count("script") == 3
    assert found.count("img") == 0


def test_no_less_than_sign_survives_in_the_data(pair: list[Run]) -> None:
    assert not re.search(
        "[<>&\u2028]", report.parts.safe_json({"</script>": ["<!--", "&amp;", "\u2028"]})
    )
    assert json.loads(report.parts.safe_json({"</script>": "<&>"})) == {"</script>": "<&>"}


# --------------------------------------------------------------------------------------- its text


def test_the_page_describes_the_scenario(page: str, pair: list[Run]) -> None:
    text = "".join(text for _, text in Elements(page).texts)
    for one in pair:
        for fact in (
            one.meta.title, one.meta.label, one.meta.version, one.meta.fingerprint, "1, 2, 3", "x86_64",
            one.meta.links[0].qdisc, "4 × bulk cubic", one.scenario_text,
        ):  # fmt: skip
            assert fact in text


def test_the_table_shows_the_summarys_means_and_marks_the_best(page: str, pair: list[Run]) -> None:
    measured = quantities.measure(pair)
    tables = re.findall(r'<table class="numbers">(.*?)</table>', page, re.DOTALL)
    assert len(tables) == 2
    for table, keys in zip(tables, (report.USERS, report.QUEUE), strict=True):
        rows = re.findall(r'<tr><th scope="row">(\w+)</th>(.*?)</tr>', table, re.DOTALL)
        assert [name for name, _ in rows] == ["pfifo", "fq_codel"]
        shown = quantities.known(measured, keys)
        for (_, cells), one in zip(rows, measured, strict=True):
            found = re.findall(r"<td(?: class=\"best\")?>([^<]*)", cells)
            assert [text.strip() for text in found] == [
                digits.number(one.over_seeds(quantity.key)[0]) for quantity in shown
            ]
        if keys is report.USERS:
            at = [quantity.key for quantity in shown].index("ping_p95")
            best = [re.findall(r"<td( class=\"best\")?>", cells)[at] for _, cells in rows]
            assert best == ["", ' class="best"']


def test_the_boxes_of_many_runs_are_folded_away(
    pair: list[Run], page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert '<details class="runs">' not in page
    unrendered(monkeypatch)
    monkeypatch.setattr(report, "MOST_IN_A_ROW", 1)
    assert '<details class="runs"><summary>Runs (2)</summary>' in report.render(pair)


def test_an_interval_has_as_many_decimals_as_its_mean(page: str) -> None:
    cells = re.findall(r"<td[^>]*>([\d.]+) <small class=\"ci\">± ([\d.]+)</small>", page)
    assert cells
    for mean, half in cells:
        assert len(mean.partition(".")[2]) == len(half.partition(".")[2]), (mean, half)


def said(runs: list[Run]) -> str:
    measured = quantities.measure(runs)
    return " ".join(verdict.sentences(measured, judge(measured)))


def test_the_page_has_the_judge_s_sentences(page: str, pair: list[Run]) -> None:
    words = compare(pair).sentences()
    text = Elements(page).text("p")
    assert "fq_codel wins. Against pfifo: ping RTT p95 from" in words[0]
    for sentence in words:
        assert sentence in text


@pytest.mark.usefixtures("_unrendered")
def test_a_run_of_another_line_does_not_compete(tmp_path: Path) -> None:
    shapes = {
        "slow": Shape(rate_bps=5_000_000),
        "fast": Shape(rate_bps=20_000_000, qdisc="fq_codel"),
    }
    runs = [synthetic.run(tmp_path / name, shape) for name, shape in shapes.items()]
    words = said(runs)
    assert words.startswith("No two of these Runs have the same link and traffic")
    assert "rate 5000000 bit/s" in words
    assert "wins" not in words
    assert 'class="best"' not in report.render(runs)


def test_the_verdict_does_not_call_equals_different(tmp_path: Path) -> None:
    twins = [synthetic.run(tmp_path / str(i), Shape(label=f"twin {i}")) for i in range(2)]
    assert said(twins).startswith("No winner: twin 0 and twin 1 gave equal tables")


@pytest.mark.usefixtures("_unrendered")
def test_the_verdict_reports_a_single_seed(tmp_path: Path) -> None:
    runs = [
        synthetic.run(tmp_path / qdisc, Shape(qdisc=qdisc, seeds=(1,)))
        for qdisc in ("pfifo", "fq_codel")
    ]
    assert "No winner: with one sample a difference may be chance" in said(runs)
    assert 'class="best"' not in report.render(runs)


def test_a_single_run_is_judged_by_the_delay_that_its_queues_add(pair: list[Run]) -> None:
    assert "severe bufferbloat" in said(pair[:1])
    assert "no bufferbloat" in said(pair[1:])


# --------------------------------------------------------------------------------------- its data


def test_a_line_in_the_page_equals_the_tables(page: str, pair: list[Run]) -> None:
    packed = payload(page)
    view = next(view for view in packed["views"] if view["run"] == 1 and view["seed"] == 2)
    times, heights = view["lines"]["mean"][-1]
    table = pair[1].table("queue", 2).filter(pl.col("link") == "bottleneck")
    np.testing.assert_array_equal(
        values(packed, times), (table["t_ns"].to_numpy() / 1e9).astype(np.float32)
    )
    expected = (table["sojourn_mean_ns"].to_numpy() / 1e6).astype(np.float32)
    np.testing.assert_allclose(values(packed, heights), expected, rtol=1e-6)


def test_the_lines_of_all_seeds_are_their_mean_and_their_range(page: str, pair: list[Run]) -> None:
    packed = payload(page)
    for run, together in zip(pair, packed["means"], strict=True):
        low, mean, high = (values(packed, i) for i in together["lines"]["backlog"])
        seeds = [
            series.column(series.queue(run, s, series.bottleneck(run)), "backlog_packets").y
            for s in run.seeds
        ]
        # There are as many columns as the line has values, so each value has a column of its own.
        assert mean.size == min(len(seeds[0]), data.COLUMNS)
        np.testing.assert_allclose(mean, np.mean(seeds, axis=0), rtol=1e-6)
        np.testing.assert_allclose(low, np.min(seeds, axis=0), rtol=1e-6)
        np.testing.assert_allclose(high, np.max(seeds, axis=0), rtol=1e-6)


def test_every_seed_of_every_run_is_in_the_page(page: str, pair: list[Run]) -> None:
    found = {(view["run"], view["seed"]) for view in payload(page)["views"]}
    assert found == {(run, seed) for run in (0, 1) for seed in (1, 2, 3)}


def test_every_buffer_that_the_script_reads_exists(page: str) -> None:
    packed = payload(page)
    asked = []
    for view in packed["views"]:
        asked += [i for levels in view["lines"].values() for level in levels for i in level]
        for panel in view["panels"]:
            asked += [
                i for entry in panel.get("series", []) for level in entry["line"] for i in level
            ]
            asked += [row["t"] for row in panel.get("ticks", [])]
        for graph in view["density"]:
            asked += [graph["t"], graph["sent"], graph["lost"], *graph["rows"]]
    for together in packed["means"]:
        asked += [together["t"], *(i for rows in together["lines"].values() for i in rows)]
    asked += [i for idle in packed["idle"] for level in idle["line"] for i in level]
    asked += [entry[axis] for cdf in packed["cdfs"] for entry in cdf["series"] for axis in "xy"]
    assert set(asked) == set(range(len(packed["buffers"])))


def test_the_page_shows_the_pings_rtt_without_a_queue(page: str, pair: list[Run]) -> None:
    packed = payload(page)
    probe = series.answered(pair[0])[0]
    base = pair[0].table("flows", 1).filter(pl.col("flow") == probe)["base_rtt_ns"].item()
    (idle,) = packed["idle"]
    assert idle["label"] == f"idle, {base / 1e6:.1f} ms"
    ((t, y),) = idle["line"]
    assert values(packed, t).tolist() == [0.0, packed["duration"]]
    assert values(packed, y).tolist() == [base / 1e6] * 2


def test_the_delay_of_datagrams_is_shown_over_time(tmp_path: Path) -> None:
    run = synthetic.run(tmp_path / "run")
    name = next(flow.name for flow in run.meta.flows if flow.kind != "ping")
    assert "one_way" not in payload(report.render([run]))["views"][0]["lines"]
    # For a call the line shows each sample's largest delay, and a gap where no packet arrived.
    flow = next(flow for flow in run.meta.flows if flow.name == name)
    flows = tuple(
        dataclasses.replace(each, kind="call", congestion=None) if each is flow else each
        for each in run.meta.flows
    )
    table = run.table("flow", 1)
    late = pl.when(pl.col("flow") == name).then(pl.int_range(pl.len()) * 1_000_000)
    shown = {"flow": table.with_columns(delay_max_ns=late)}
    real = run.table
    run.meta = dataclasses.replace(run.meta, flows=flows)
    run.table = lambda what, seed=None: shown.get(what, real(what, seed))  # type: ignore[method-assign, assignment]
    packed = payload(report.render([run]))
    ((t, y),) = packed["views"][0]["lines"]["one_way"]
    mine = shown["flow"].filter(pl.col("flow") == name)
    np.testing.assert_allclose(values(packed, t), mine["t_ns"].to_numpy() / 1e9, rtol=1e-6)
    np.testing.assert_allclose(values(packed, y), mine["delay_max_ns"].to_numpy() / 1e6, rtol=1e-6)
    titles = [panel["title"] for panel in packed["views"][0]["panels"]]
    assert "One-way delay of video, calls and other datagrams" in titles


def test_a_million_points_become_levels_that_keep_every_peak() -> None:
    n = 1_000_000
    rng = np.random.default_rng(1)
    y = rng.normal(size=n)
    y[[123_456, 777_777]] = 50, -50
    buffers = data.Buffers()
    levels = buffers.line(Line(np.arange(n) / 1000, y))
    assert len(levels) == len(data.LEVELS)
    sizes = []
    for level, buckets in zip(levels, data.LEVELS, strict=True):
        t, heights = (np.frombuffer(base64.b64decode(buffers.texts[i]), dtype="<f4") for i in level)
        assert (heights.max(), heights.min()) == (50, -50)
        assert t.size == heights.size <= 2 * buckets
        sizes.append(t.size)
    assert sizes == sorted(sizes)
    assert buffers.size < 2_000_000


def test_a_short_line_has_one_level_with_all_its_points() -> None:
    buffers = data.Buffers()
    levels = buffers.line(Line(np.arange(100.0), np.arange(100.0)))
    assert len(levels) == 1


def test_lines_share_their_times() -> None:
    buffers = data.Buffers()
    first = buffers.line(Line(np.arange(100.0), np.ones(100)))
    second = buffers.line(Line(np.arange(100.0), np.zeros(100)))
    assert first[0][0] == second[0][0]


@pytest.mark.usefixtures("_unrendered")
def test_a_page_that_would_be_too_large_leaves_out_seeds_of_all_runs_and_reports_it(
    pair: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "ROOM", 1)
    page = report.render(pair)
    assert {(view["run"], view["seed"]) for view in payload(page)["views"]} == {(0, 1), (1, 1)}
    assert "last 2 seeds are left out" in page


def test_the_sum_of_all_flows_has_a_style_of_its_own(tmp_path: Path) -> None:
    page = report.render([synthetic.run(tmp_path / "run", Shape(flows=12))])
    goodput = next(
        panel for panel in payload(page)["views"][0]["panels"] if panel["title"] == "Goodput"
    )
    black = [
        line for line in goodput["series"] if line["colour"] in ("ink", data.both(style.BLACK))
    ]
    assert len(black) == 2, "the seventh flow and the sum"
    assert black[0]["dash"] != black[1]["dash"]


def test_the_mean_of_a_changing_rate_is_shown_and_named_as_the_mean() -> None:
    text = """
title = "moves"
duration = "2 s"
[bottleneck]
delay = "5 ms"
schedule = [["0 s", "%s"], ["1 s", "5 Mbit/s"]]
[[flow]]
kind = "bulk"
"""
    moving, still = (
        sojourn.run(sojourn.loads(text % first, name="moves"), seeds=1)
        for first in ("15 Mbit/s", "5 Mbit/s")
    )
    assert re.search(r"\bmean 10(\.0)? Mbit/s, delay 5 ms", report.render([moving]))
    for run, called in ((moving, "mean rate 10"), (still, "rate 5")):
        words = [text.get_text() for text in figures.timeline(run).findobj(Text)]
        assert [each for each in words if each.startswith(called)], words


def test_a_thousand_flows_are_a_median_and_a_band(tmp_path: Path) -> None:
    run = synthetic.run(tmp_path / "run", Shape(flows=1000, seeds=(1,), duration_s=10))
    page = report.render([run])
    cwnd = next(panel for panel in payload(page)["views"][0]["panels"] if panel["title"] == "cwnd")
    assert [entry["label"] for entry in cwnd["series"]] == [
        "90 % are below",
        "10 % are below",
        "median",
    ]


def test_a_peak_behind_a_lost_segment_does_not_set_the_scale() -> None:
    goodput = np.full(600, 19.0)
    goodput[::150] = 250.0
    assert series.ceiling(Line(np.arange(600.0), goodput), 20.0) == pytest.approx(28.0)
    assert series.ceiling(Line(np.arange(600.0), np.full(600, 19.0)), 20.0) is None


def test_colours_of_the_dark_page_stay_apart() -> None:
    dark = [data.both(colour)[1] for colour, _ in style.QDISCS.values()]
    assert len(set(dark)) == len({colour for colour, _ in style.QDISCS.values()})


# --------------------------------------------------------------------------------------- odd Runs


@pytest.mark.parametrize(
    "shape",
    [
        Shape(flows=0, probes=0, seeds=(1,)),
        Shape(probes=0, seeds=(1,)),
        Shape(flows=1, seeds=(1,)),
        Shape(flows=9, probes=5, seeds=(1, 2)),
        Shape(duration_s=1, warmup_s=0, interval_ms=1000, ping_ms=1000, seeds=(1,)),
        Shape(duration_s=2, warmup_s=2, seeds=(1,)),
        Shape(qdisc="mystery words", seeds=(1,)),
    ],
    ids=[
        "nothing",
        "no probes",
        "one flow",
        "many probes",
        "one sample",
        "all warm-up",
        "unknown qdisc",
    ],
)
@pytest.mark.usefixtures("_unrendered")
def test_unusual_runs_have_a_page(shape: Shape, tmp_path: Path) -> None:
    for count in (1, 2):
        runs = [synthetic.run(tmp_path / f"{count}-{i}", shape) for i in range(count)]
        page = report.write(runs, tmp_path / "page.html").read_text(encoding="utf-8")
        found = Elements(page)
        assert found.count("h1") == 1
        assert payload(page)["views"]


@pytest.mark.usefixtures("_unrendered")
def test_runs_of_different_length_and_seeds_share_a_page(tmp_path: Path) -> None:
    runs = [
        synthetic.run(tmp_path / "a", Shape(seeds=(1, 2), duration_s=20)),
        synthetic.run(tmp_path / "b", Shape(seeds=(7,), duration_s=40, qdisc="codel", probes=0)),
    ]
    packed = payload(report.render(runs))
    assert packed["duration"] == 40
    assert {(view["run"], view["seed"]) for view in packed["views"]} == {(0, 1), (0, 2), (1, 7)}


def test_a_page_that_can_not_be_written_gives_an_error_for_the_user(
    pair: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "render", lambda *_: "a page")
    with pytest.raises(RunError, match="can't write"):
        report.write(pair, tmp_path / "missing" / "page.html")


class Page(Opened):
    """A report opened in a browser."""

    def saved(self, chart: str, kind: str) -> str:
        """Returns the file that a chart's button saves."""
        buttons = self.page.locator(f"figcaption:has-text('{chart}')").first
        with self.page.expect_download() as coming:
            buttons.get_by_label(f"Save this chart as {kind}").click()
        return (
            Path(coming.value.path()).read_bytes().decode("latin-1" if kind == "PNG" else "utf-8")
        )

    def off(self) -> list[str]:
        """The hidden names below the first chart."""
        names = self.page.locator("#hero .u-legend .u-off:not(.unlisted) .u-label")
        return [str(name) for name in names.all_inner_texts()]


@pytest.fixture
def opened(browser: Any, page: str, tmp_path: Path) -> Iterator[Page]:
    file = tmp_path / "page.html"
    file.write_text(page, encoding="utf-8")
    shown = Page(browser, file)
    shown.page.wait_for_selector("html.ready")
    yield shown
    shown.close()


@in_a_browser
def test_the_pages_script_runs_to_its_end_and_draws_every_chart(opened: Page, page: str) -> None:
    packed = payload(page)
    panels = packed["views"][0]["panels"]
    charts = 4 + len(packed["cdfs"]) + len(panels) + len(packed["views"][0]["density"])
    assert opened.page.locator("div.uplot").count() == charts
    assert opened.page.input_value("#seed") == "-1"
    opened.page.select_option("#seed", label="seed 1")
    assert opened.page.locator("div.uplot").count() == charts


@in_a_browser
def test_a_name_under_a_chart_and_its_box_hide_the_same_run(opened: Page) -> None:
    box = opened.page.locator("input[data-run='0']")
    opened.page.locator("#hero .u-legend .u-label", has_text="pfifo").locator(
        "visible=true"
    ).click()
    assert not box.is_checked()
    assert opened.off() == ["pfifo"]
    box.check()
    assert opened.off() == []


@in_a_browser
def test_the_address_contains_the_view(opened: Page) -> None:
    opened.page.locator("input[data-run='1']").uncheck()
    opened.page.get_by_label("Zoom in").click()
    opened.page.select_option("#seed", label="seed 2")
    said = opened.page.locator("[data-window]").inner_text()
    address = opened.page.url
    opened.page.goto("about:blank")
    opened.page.goto(address)
    opened.page.wait_for_selector("html.ready")
    assert opened.off() == ["fq_codel"]
    assert opened.page.locator("[data-window]").inner_text() == said != "all"
    assert opened.page.input_value("#seed") == "2"


@in_a_browser
def test_a_chart_can_be_saved(opened: Page, page: str) -> None:
    rows = opened.saved("Ping RTT", "CSV").splitlines()
    mean = payload(page)["means"][0]
    assert rows[0].startswith('time [s],"pfifo, lowest [ms]",pfifo [ms],"pfifo, highest [ms]"')
    assert len(rows) == 1 + values(payload(page), mean["t"]).size
    drawn = ElementTree.fromstring(opened.saved("Ping RTT", "SVG"))
    texts = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Ping RTT", "time, s", "pfifo", "fq_codel"} <= set(texts)
    assert len(list(drawn.iter("{http://www.w3.org/2000/svg}path"))) >= 6
    assert opened.saved("Drops and marks", "SVG").startswith("<svg")
    assert opened.saved("Density graph", "SVG").count("<rect") > 10
    assert opened.saved("CDF of the ping RTT", "PNG").startswith("\x89PNG")


@in_a_browser
def test_a_table_is_sorted_and_copied(opened: Page) -> None:
    opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
    table = opened.page.locator("table.numbers").first
    head = table.locator("th", has_text="ping RTT p95")
    for order in ("ascending", "descending"):
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == order
    column = [
        float(re.sub("[^0-9.].*", "", cell))
        for cell in table.locator("tbody td:nth-child(3)").all_inner_texts()
    ]
    assert column == sorted(column, reverse=True)
    opened.page.get_by_role("button", name="Markdown").first.click()
    copied = opened.page.evaluate("navigator.clipboard.readText()").splitlines()
    assert copied[0].startswith("| Run | ping RTT median [ms] |")
    assert len(copied) == 4
    opened.page.get_by_role("button", name="LaTeX").first.click()
    assert "fq\\_codel & " in opened.page.evaluate("navigator.clipboard.readText()")


@in_a_browser
def test_the_page_fits_a_phone(browser: Any, page: str, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(page, encoding="utf-8")
    shown = Page(browser, file, viewport={"width": 400, "height": 800})
    shown.page.wait_for_selector("html.ready")
    assert shown.page.evaluate("document.documentElement.scrollWidth") == 400
    # A figure keeps the size at which it was drawn, and scrolls: its type is that of a printed
    # page.
    sizes = shown.page.evaluate(
        "[...document.querySelectorAll('.picture:not(.topology) > svg')]"
        ".map(svg => svg.getBoundingClientRect().width / svg.viewBox.baseVal.width)"
    )
    assert sizes
    assert min(sizes) > 1.3
    shown.close()


@in_a_browser
def test_a_run_with_a_long_name_fits_a_phone(browser: Any, tmp_path: Path) -> None:
    run = synthetic.run(tmp_path / "run")
    label = "A home line while a backup runs: 10 Mbit/s up, 50 Mbit/s down"
    run.meta = dataclasses.replace(run.meta, label=label)
    file = tmp_path / "page.html"
    file.write_text(report.render([run]), encoding="utf-8")
    shown = Page(browser, file, viewport={"width": 400, "height": 800})
    shown.page.wait_for_selector("html.ready")
    assert shown.too_wide() <= 0
    shown.close()


KEYS = """names => names.filter(row => row.checkVisibility()).map(row => {
  const marker = row.querySelector(".u-marker");
  return [row.querySelector(".u-label").textContent, marker !== null && marker.style.cssText !== ""];
})"""


@in_a_browser
def test_each_name_under_a_chart_has_its_colour(opened: Page) -> None:
    names = opened.page.locator(".u-legend .u-series").evaluate_all(KEYS)
    assert len(names) > 4
    assert [name for name, marked in names if not marked] == []
    # The time appears where the cursor is.
    opened.page.locator("#hero .u-over").first.hover()
    assert "time" in opened.page.locator("#hero").first.inner_text()


# ---------------------------------------------------------------------------------- accessibility


def test_the_page_works_with_a_screen_reader_and_a_keyboard(page: str) -> None:
    found = Elements(page)
    html = next(attributes for tag, attributes in found.tags if tag == "html")
    assert html["lang"] == "en"
    assert {"header", "main", "footer", "h1", "h2", "table", "caption", "noscript"} <= {
        tag for tag, _ in found.tags
    }
    ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert {"hero", "compared", "inside", "cdfs", "numbers", "tradeoff"} <= set(ids)
    for tag, attributes in found.tags:
        if tag == "svg":
            assert attributes.get("aria-hidden") == "true" or attributes.get("aria-label")
        if tag == "th":
            assert attributes.get("scope") in ("row", "col")
        if attributes.get("class") == "charts":
            assert attributes.get("tabindex") == "0"
            assert attributes.get("aria-label")
    labelled = [
        attributes["aria-labelledby"]
        for _, attributes in found.tags
        if "aria-labelledby" in attributes
    ]
    assert set(labelled) <= set(ids)


def test_neutral_colours_follow_the_page(page: str) -> None:
    pictures = re.findall(r"<svg role=.*?</svg>", page, re.DOTALL)
    # Bars, all quantities on the same axes, boxes, the trade-off.
    assert len(pictures) == 4
    for picture in pictures:
        assert "var(--ink)" in picture
        assert not re.search(r'style="[^"]*#(222222|ffffff|dddddd|6b6b6b)', picture)


@in_a_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_is_legible_and_every_control_has_a_name(
    browser: Any, page: str, tmp_path: Path, scheme: str
) -> None:
    file = tmp_path / "page.html"
    file.write_text(page, encoding="utf-8")
    shown = Page(browser, file, color_scheme=scheme)
    shown.page.wait_for_selector("html.ready")
    for details in shown.page.locator("details").all():
        details.evaluate("each => { each.open = true; }")
    assert shown.faint() == []
    assert shown.nameless() == []
    shown.close()


# ----------------------------------------------------------------------------------- explanations

BURSTY = """
title = "Two uploads through a short queue"
duration = "5 s"
[bottleneck]
delay = "8 ms"
rate = "5 Mbit/s"
qdisc = "pfifo limit 8"
[[flow]]
kind = "bulk"
direction = "up"
count = 2
rtt = "100 ms"
"""


def test_goodput_above_the_links_rate_is_explained_where_it_is_drawn(tmp_path: Path) -> None:
    whole = sojourn.engine.contenders(sojourn.loads(BURSTY), ("pfifo limit 8", "pfifo limit 9"))
    runs = sojourn.run_all(whole, seeds=1, out=tmp_path / "runs")
    packed = data.payload(runs)
    words = packed["above_rate"]["goodput"]
    assert words == f"above the link's rate: {series.PEAKS}"
    page = report.render(runs)
    assert f"on the same scales. Goodput {words}." in html.unescape(page)
    assert words in texts_of(figures.stacked(runs))


def test_goodput_that_the_link_carries_needs_no_words() -> None:
    steady = BURSTY.replace("limit 8", "limit 1000").replace('"5 s"', '"2 s"')
    [run] = sojourn.run_all(sojourn.loads(steady), seeds=1)
    assert data.payload([run])["above_rate"] == {}


def texts_of(figure: Figure) -> str:
    """Returns the text above a figure."""
    return " ".join(text.get_text() for text in figure.texts)
