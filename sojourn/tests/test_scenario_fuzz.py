"""Any text either loads as a scenario or is refused with a place in the text. Nothing else
happens."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tree import ROOT

from sojourn import _core
from sojourn.scenario import Scenario, ScenarioError, linux, load, loads

FOLDER = ROOT / "scenarios"
TEXTS = [path.read_text() for path in sorted(FOLDER.glob("*.toml"))]
ODD_VALUES = [
    *("nan", "inf", "-1", "0", "1", "1.5", "true", '""', '"x"', "[]", "{}", "[[]]", "[{}]", "1979-05-27", "9223372036854775807"),
    *('"5 ms"', '"20 Mbit/s"', '"50 kB"', '"-5 ms"', '"nan s"', '"1e999 s"', '"every 5 ms"', '"exp 1 s"', '"pareto 1 kB 1.1"'),
    *('"uniform 1 s .. 2 s"', '"uniform .. "', '"codel"', '"red limit 1 avpkt 1"', '"gemodel 1%"', '"unlimited"', '"atm mpu 9"'),
    *('["5 ms", 5]', '[["0 s", "1 Mbit/s"]]', '[["0 s", "1 kB"], ["1 s", "2 kB"]]', '"mobile.csv"', '"."', "{ x = 1 }", "'*'"),
]  # fmt: skip
ODD_KEYS = [
    "rate",
    "count",
    "kind",
    "trace",
    "schedule",
    "repeat",
    "from",
    "via",
    "seed",
    "seeds",
    "up",
    "tcp",
    "bulk",
    '"a.b"',
    "x",
]


def reads_or_refuses(text: str) -> Scenario | None:
    """Returns the scenario. If it is refused, checks that the refusal points into the text, and
    returns None."""
    try:
        return loads(text, name="fuzz.toml", folder=FOLDER)
    except ScenarioError as error:
        lines = text.split("\n")
        assert error.problems
        for problem in error.problems:
            assert problem.message
            assert problem.line is not None
            assert problem.column is not None
            assert 1 <= problem.line <= len(lines)
            assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1
        return None


def holds_together(scenario: Scenario) -> None:
    """Checks the operations that every accepted scenario must support."""
    assert loads(scenario.to_toml()) == scenario
    for variant in scenario.variants()[:3]:
        brief = variant.with_(duration="1 ms", warmup=None, record=None)
        realised = brief.realise(brief.seeds[0])
        if any(linux.needed(realised)):
            continue
        tables = _core.run(realised)
        assert len(tables["flows"]["flow"]) == sum(flow.count for flow in brief.flows)


@given(st.text(max_size=400))
def test_any_text(text: str) -> None:
    assert reads_or_refuses(text) is None


@given(st.text(alphabet='abdefklnrtuw[]{}=".,\n 0159#_-', max_size=400))
def test_any_text_of_toml_s_letters(text: str) -> None:
    assert reads_or_refuses(text) is None


@given(st.binary(max_size=400))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "fuzz.toml"
    path.write_bytes(data)
    try:
        load(path)
    except ScenarioError as error:
        lines = data.decode(errors="replace").split("\n")
        for problem in error.problems:
            assert problem.line is not None
            assert 1 <= problem.line <= len(lines)
    else:
        raise AssertionError("random bytes made a scenario")


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Draws a valid file with a few lines deleted, doubled, swapped, or with another value or
    key."""
    lines = draw(st.sampled_from(TEXTS)).split("\n")
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        line = lines[at]
        match draw(st.integers(0, 5)):
            case 0:
                lines[at] = ""
            case 1:
                lines.insert(at, line)
            case 2:
                other = draw(st.integers(0, len(lines) - 1))
                lines[at], lines[other] = lines[other], line
            case 3 if "=" in line:
                lines[at] = f"{line.split('=')[0]}= {draw(st.sampled_from(ODD_VALUES))}"
            case 4:
                key, value = draw(st.sampled_from(ODD_KEYS)), draw(st.sampled_from(ODD_VALUES))
                lines.insert(at, f"{key} = {value}")
            case _:
                column = draw(st.integers(0, len(line)))
                lines[at] = (
                    line[:column]
                    + draw(st.text(max_size=3))
                    + line[column + draw(st.integers(0, 3)) :]
                )
    return "\n".join(lines)


@given(mutated())
@settings(max_examples=400)
def test_mutated_scenarios(text: str) -> None:
    scenario = reads_or_refuses(text)
    if scenario is not None and sum(flow.count for flow in scenario.flows) <= 100:
        holds_together(scenario)


@given(
    st.sampled_from(
        [
            "bottleneck.",
            "flow.0.",
            "flow.*.",
            "record.",
            "flow.0.tcp.",
            "",
            "link.0.",
            "bottleneck.up.",
        ]
    ),
    st.sampled_from([*ODD_KEYS, "qdisc", "rtt", "start", "delay", "loss", "size", "duration"]),
    st.lists(st.sampled_from(ODD_VALUES), max_size=3),
)
def test_any_sweep(table: str, key: str, values: list[str]) -> None:
    name = f"{table}{key}".replace('"', "")
    sweep = f'\n[sweep]\n"{name}" = [{", ".join(values)}]\n'
    scenario = reads_or_refuses((FOLDER / "home-uplink.toml").read_text() + sweep)
    if scenario is not None:
        holds_together(scenario)
