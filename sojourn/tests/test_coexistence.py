"""The map of which flow gets more, and the two queues of a time line."""

from __future__ import annotations

from pathlib import Path

import pytest
from shortened import undrawn

import sojourn
from sojourn import Run, figures
from sojourn.figures.coexistence import NoCoexistenceError
from sojourn.scenario import loads

SWEEP = """
duration = "3 s"
warmup = "1 s"

[bottleneck]
rate = "5 Mbit/s"
delay = "1 ms"
qdisc = "dualpi2"

[[flow]]
name = "prague"
kind = "bulk"
rtt = "20 ms"
congestion = "prague"
ecn = "accecn"

[[flow]]
name = "cubic"
kind = "bulk"
count = 2
rtt = "20 ms"

[sweep]
"bottleneck.rate" = ["5 Mbit/s", "20 Mbit/s"]
"flow.*.rtt" = ["5 ms", "40 ms"]
"""

_undrawn = pytest.fixture(undrawn)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("map")
    return list(sojourn.run_all(loads(SWEEP), seeds=2, out=folder / "swept"))


def test_each_cell_is_the_ratio_of_what_both_entries_delivered(runs: list[Run]) -> None:
    figure = figures.coexistence(runs)
    [axes] = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["5 Mbit/s", "20 Mbit/s"]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["5 ms", "40 ms"]
    shown = {text.get_position(): float(text.get_text()) for text in axes.texts}
    for run in runs:
        flows = run.table("flows")
        got = dict(flows.group_by("flow").agg(total=flows["delivered_bytes"].sum()).rows())
        assert set(got) == {"prague", "cubic.1", "cubic.2"}
        by_flow = {
            name: float(flows.filter(flows["flow"] == name)["delivered_bytes"].sum())
            for name in got
        }
        rate = run.meta.link("down").rate_bps
        row = 0 if rate == 5_000_000 else 1
        column = 0 if run.meta.settings["flow.*.rtt"] == "5 ms" else 1
        ratio = by_flow["prague"] / (by_flow["cubic.1"] + by_flow["cubic.2"])
        assert shown[column, row] == pytest.approx(ratio, rel=0.03)


@pytest.mark.usefixtures("_undrawn")
def test_the_map_is_drawn_only_for_a_sweep_of_rates_and_rtts(runs: list[Run]) -> None:
    assert "coexistence" in figures.all_for(runs)
    assert "coexistence" not in figures.all_for(runs[:2])


def test_a_missing_entry_is_named(runs: list[Run]) -> None:
    with pytest.raises(NoCoexistenceError, match="'vegas'"):
        figures.coexistence(runs, "vegas")
    swapped = figures.coexistence(runs, "cubic", "prague")
    assert "cubic over that of prague" in "".join(text.get_text() for text in swapped.texts)


def test_a_time_line_shows_both_queues(runs: list[Run], tmp_path: Path) -> None:
    figure = figures.timeline(runs[0])
    drawn = {line.get_gid() for axes in figure.axes for line in axes.get_lines()}
    assert {"queue L", "queue C"} <= drawn
