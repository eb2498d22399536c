"""A sweep as a whole: its table, its data frame and its cells."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import shapes
from in_chromium import Opened, in_a_browser
from tree import ROOT

import sojourn
from sojourn import metrics, report
from sojourn.cli import grid_text, status
from sojourn.engine import Progress
from sojourn.records import Run
from sojourn.report import multiples, swept
from sojourn.sweeps import axes, frames, grid

SCENARIO = """
title = "Uploads and a ping"
duration = "3 s"
warmup = "1 s"
[bottleneck]
delay = "5 ms"
up.rate = "4 Mbit/s"
down.rate = "20 Mbit/s"
[[flow]]
kind = "bulk"
direction = "up"
rtt = "30 ms"
start = "uniform 0 s .. 200 ms"
[[flow]]
kind = "ping"
[sweep]
"bottleneck.up.rate" = ["2 Mbit/s", "8 Mbit/s"]
"flow.bulk.count" = [1, 3]
"""
QDISCS = ("pfifo", "fq_codel")
Invoke = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """The Runs of a comparison of a sweep: 2 rates, 2 counts, 2 disciplines, 2 seeds."""
    whole = sojourn.engine.contenders(sojourn.loads(SCENARIO), QDISCS)
    return sojourn.run_all(whole, seeds=2, out=tmp_path_factory.mktemp("sweep") / "runs")


@pytest.fixture(scope="module")
def cells(kept: list[Run]) -> grid.Grid:
    return grid.of_runs(kept)


@pytest.fixture
def invoke(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Invoke:
    """Calls the command line in a folder with the scenario: exit status, stdout, stderr."""
    (tmp_path / "sweep.toml").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)

    def said(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = status(words)
        return code, *capsys.readouterr()

    return said


# --------------------------------------------------------------------------------------- settings


def test_a_run_knows_its_settings(kept: list[Run]) -> None:
    assert [list(run.meta.settings.values()) for run in kept[:3]] == [
        ["2 Mbit/s", 1, "pfifo"],
        ["2 Mbit/s", 1, "fq_codel"],
        ["2 Mbit/s", 3, "pfifo"],
    ]
    assert list(kept[0].meta.settings) == [
        "bottleneck.up.rate",
        "flow.bulk.count",
        "bottleneck.qdisc",
    ]
    assert metrics.summary(kept[0]).to_dict()["settings"] == kept[0].meta.settings
    assert Run.open(kept[0].path).meta.settings == kept[0].meta.settings


def test_settings_that_are_not_values_are_refused(kept: list[Run], tmp_path: Path) -> None:
    meta = json.loads((kept[0].path / "meta.json").read_text())
    (tmp_path / "meta.json").write_text(json.dumps(meta | {"settings": {"rate": ["2"]}}))
    with pytest.raises(sojourn.RunError, match="settings: a value is neither text nor a number"):
        Run.open(tmp_path)


def test_the_disciplines_of_a_comparison_are_those_of_the_sweep_in_its_place() -> None:
    own = sojourn.loads(SCENARIO + '"bottleneck.qdisc" = ["codel", "red"]\n')
    whole = sojourn.engine.contenders(own, QDISCS)
    assert whole.sweep["bottleneck.qdisc"] == list(QDISCS)
    assert [variant.label for variant in whole.variants()][:2] == [
        "rate 2 Mbit/s, count 1, pfifo",
        "rate 2 Mbit/s, count 1, fq_codel",
    ]


# ---------------------------------------------------------------------------------- axes, columns


@pytest.mark.parametrize(
    ("values", "unit", "numbers"),
    [
        (["5 Mbit/s", "500 kbit/s"], "Mbit/s", (5, 0.5)),
        (["5 ms", "1 s"], "ms", (5, 1000)),
        (["0.1 %", "1 %"], "%", (0.1, 1)),
        ([1, 4, 16], "", (1, 4, 16)),
        (["20 kB"], "kB", (20,)),
    ],
)
def test_quantities_are_numbers_with_a_unit(
    values: list[axes.Setting], unit: str, numbers: tuple[float, ...]
) -> None:
    found = axes.scale(values)
    assert found is not None
    assert (found.unit, found.numbers) == (unit, pytest.approx(numbers))


@pytest.mark.parametrize(
    "values", [["codel", "red"], ["none", "1 %"], [True, False], [1, "5 ms"], []]
)
def test_values_of_several_quantities_are_not_numbers(values: list[axes.Setting]) -> None:
    assert axes.scale(values) is None


def test_a_key_is_named_by_what_distinguishes_it() -> None:
    keys = ["bottleneck.up.rate", "bottleneck.down.rate", "flow.bulk.count"]
    assert axes.headings(keys) == ["up.rate", "down.rate", "count"]
    assert axes.headings(["duration"]) == ["duration"]


def test_an_axis_is_logarithmic_where_the_largest_is_more_than_eight_times_the_smallest() -> None:
    assert not axes.logarithmic([1, 2, 8])
    assert axes.logarithmic([1, 2, 8.1])
    assert not axes.logarithmic([0, 1, 100])
    assert not axes.logarithmic([])


@pytest.mark.parametrize(("values", "drawn"), [(16, ()), (17, ("bottleneck.rate",))])
def test_one_key_of_more_than_sixteen_values_was_drawn(
    cells: grid.Grid, values: int, drawn: tuple[str, ...]
) -> None:
    rates = [f"{rate} Mbit/s" for rate in range(1, values + 1)]
    one = tuple(
        grid.SweepCell({"bottleneck.rate": rate}, rate, cells.cells[0].at) for rate in rates
    )
    assert grid.Grid(("bottleneck.rate",), one, ()).drawn == drawn


def test_deciding_columns_come_first(cells: grid.Grid) -> None:
    assert [one.key for one in cells.quantities][:2] == ["ping_p95", "goodput"]
    silent = SCENARIO.replace('[[flow]]\nkind = "ping"\n', "")
    quiet = grid.of_simulated(sojourn.engine.simulate_all(sojourn.loads(silent)))
    assert quiet.quantities[0].key.startswith("sojourn_")


def test_a_quantity_that_one_cell_lacks_differs() -> None:
    def cells(*means: float) -> Any:
        return [SimpleNamespace(values=lambda _, mean=mean: (mean, 0.0)) for mean in means]

    assert grid._differs("jain", cells(1.0, math.nan))
    assert not grid._differs("jain", cells(1.0, 1.0))
    assert not grid._differs("jain", cells(math.nan, math.nan))


def test_columns_are_chosen_by_key_name_or_head(cells: grid.Grid) -> None:
    assert [one.key for one in cells.selected(["goodput", "ping_p95_ms"])] == [
        "goodput",
        "ping_p95",
    ]
    assert cells.selected([grid.ALL]) == list(cells.quantities)
    with pytest.raises(sojourn.UserError, match="no column is called 'pingp95'") as refused:
        grid.check(["pingp95"])
    assert "did you mean ping_p95?" in refused.value.hint
    grid.check(["ping_p95_ms", "completion_mean:web", "late", grid.ALL])


# --------------------------------------------------------------------------------------- the table


def test_the_table_has_a_row_a_cell_and_fits(cells: grid.Grid) -> None:
    lines = grid_text.rendered(cells, "table", ()).splitlines()
    assert len(lines) == 2 + len(cells.cells) == 10
    assert max(map(len, lines)) <= grid_text.LEAST_WIDTH
    assert lines[0].split()[:4] == ["rate", "count", "qdisc", "ping"]
    assert re.match(r"2 Mbit/s +1 +pfifo +\d", lines[2])
    wide = grid_text.rendered(cells, "table", (), width=200).splitlines()
    assert 80 < max(map(len, wide)) <= 200
    assert all(name in wide[0] for name in ("Mbit/s", "util %"))


def test_stars_agree_with_the_judge(cells: grid.Grid) -> None:
    assert cells.judgement is not None
    for contest in cells.judgement.contests:
        row = contest.row("ping_p95")
        assert row is not None
        for cell in cells.cells:
            if cell.label in contest.runs:
                assert cell.best("ping_p95") == (row.best == cell.label)


def test_csv_and_json_have_the_numbers_of_the_summary(cells: grid.Grid, kept: list[Run]) -> None:
    expected = [run.summary["probes"][0]["rtt_ms"]["p95"] for run in metrics.summary(kept)]
    rows = list(csv.DictReader(io.StringIO(grid_text.rendered(cells, "csv", ()))))
    assert [float(row["ping_p95_ms"]) for row in rows] == pytest.approx(
        [e["mean"] for e in expected]
    )
    assert [float(row["ping_p95_ms_ci95"]) for row in rows] == pytest.approx(
        [e["ci95"] for e in expected]
    )
    assert [row["bottleneck.up.rate"] for row in rows] == ["2 Mbit/s"] * 4 + ["8 Mbit/s"] * 4
    assert float(rows[-1]["bottleneck.up.rate_mbps"]) == 8
    whole = json.loads(grid_text.rendered(cells, "json", ("ping_p95",)))
    shapes.check("cells", whole)
    assert [row["numbers"]["ping_p95"]["mean"] for row in whole["rows"]] == pytest.approx(
        [e["mean"] for e in expected]
    )
    assert whole["rows"][-1]["settings"]["flow.bulk.count"] == 3


def test_markdown_and_latex_are_well_formed(cells: grid.Grid) -> None:
    markdown = grid_text.rendered(cells, "md", ()).splitlines()
    assert len({line.count("|") for line in markdown}) == 1
    assert len(markdown) == 10
    latex = grid_text.rendered(cells, "latex", ("ping_p95", "utilisation"))
    assert latex.startswith("\\begin{tabular}{lllrr}\n\\toprule\n")
    assert r"fq\_codel" in latex
    assert r"util \%" in latex
    body = latex.split("\\midrule\n")[1].split("\n\\bottomrule")[0].splitlines()
    assert [re.sub(r"\\.", "", line).count("&") for line in body] == [4] * 8


# --------------------------------------------------------------------------------- the command line


def test_run_prints_one_table_of_a_sweep(invoke: Invoke) -> None:
    code, out, err = invoke("run", "sweep.toml", "-o", "runs", "--vary", "bottleneck.up.rate=3mbit")
    assert code == 0, err
    assert "2 cells" in out
    assert re.search(r"^3 Mbit/s +1 +\d", out, flags=re.MULTILINE)
    assert "sojourn mean ms  p50" not in out
    assert "more columns: --columns" in err
    code, out, err = invoke("run", "sweep.toml", "--details", "-q", "-o", "again")
    assert out.count("queues" if "queues" in out else "link") >= 4, "each variant's own tables"
    assert "4 cells" in out


def test_compare_runs_each_discipline_at_each_point(invoke: Invoke) -> None:
    words = ("compare", "sweep.toml", *QDISCS, "--seeds", "2", "--vary", "flow.bulk.count=2")
    code, out, err = invoke(*words, "-o", "runs")
    assert code == 0, err
    assert "4 cells" in out
    assert "of 2 comparisons between Runs of the same link and traffic" in out
    assert max(map(len, out.split("*")[0].splitlines())) <= 80
    code, out, _ = invoke("compare", "runs", "--format", "csv", "--columns", "goodput")
    assert code == 0
    assert out.splitlines()[0].endswith("samples,goodput_mbps,goodput_mbps_ci95")
    assert len(out.splitlines()) == 5


def test_a_format_prints_the_table_alone(invoke: Invoke) -> None:
    code, out, _ = invoke(
        "run", "home-uplink", "--set", "duration=6 s", "-o", "one", "--format", "csv"
    )
    assert code == 0
    assert len(out.splitlines()) == 2
    code, out, _ = invoke("compare", "one", "one", "--format", "md")
    assert code == 0
    assert "ping p95" in out
    code, out, _ = invoke(
        "run", "home-uplink", "--set", "duration=6 s", "-q", "-o", "md", "--format", "md"
    )
    assert "ping p95 ms | call late %" in out, "with one cell all columns are shown"
    code, out, _ = invoke("run", "sweep.toml", "-o", "two", "--format", "json")
    assert json.loads(out)["schema"] == "sojourn/cells/1"


def test_as_parquet_the_table_is_the_data_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "sweep.toml").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)
    assert status(["run", "sweep.toml", "-o", "two", "-q", "--format", "parquet"]) == 0
    written = pl.read_parquet(io.BytesIO(capsysbinary.readouterr().out))
    names = json.loads((tmp_path / "two" / "runs.json").read_text())["runs"]
    runs = [Run.open(tmp_path / "two" / name) for name in names]
    whole = frames.frame(grid.of_runs(runs), "cell")
    assert written.height == 4
    assert written.equals(whole)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--vary", "flow.bulk.count"), "is not KEY=VALUE"),
        (("--vary", "flow.bulk.cont=1,2"), "cont"),
        (("--vary", "bottleneck.up.rate=5 Mbps"), "is not a unit of rate"),
        (("--columns", "pings"), "no column is called 'pings'"),
        (("--json", "--format", "md"), "--json prints everything"),
        (("home-uplink", "--format", "md"), "the table of one scenario"),
    ],
)
def test_wrong_options_are_reported_before_anything_runs(
    invoke: Invoke, tmp_path: Path, words: tuple[str, ...], problem: str
) -> None:
    code, out, err = invoke("run", "sweep.toml", *words)
    assert (code, out) == (2, "")
    assert problem in err
    assert not (tmp_path / "runs").exists()


# ----------------------------------------------------------------------------------- the data frame


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    return sojourn.sweep(sojourn.loads(SCENARIO), QDISCS, seeds=2)


def test_the_frame_is_that_of_the_runs(frame: pl.DataFrame, kept: list[Run]) -> None:
    assert frame.height == 16
    assert frame.columns[:5] == [
        *("bottleneck.up.rate", "bottleneck.up.rate_mbps", "flow.bulk.count"),
        *("bottleneck.qdisc", "seed"),
    ]
    numbers = [seed for run in kept for seed in metrics.summary(run).runs]
    assert frame["seed"].to_list() == [seed["seed"] for seed in numbers]
    assert frame["ping_p95_ms"].to_list() == [
        seed["probes"][0]["rtt_ms"]["p95"] for seed in numbers
    ]
    assert frame["goodput_mbps"].to_list() == pytest.approx(
        [seed["queues"][1]["goodput_mbps"] for seed in numbers]
    )


def test_by_cell_it_has_means_and_intervals(frame: pl.DataFrame) -> None:
    cells = sojourn.sweep(sojourn.loads(SCENARIO), QDISCS, seeds=2, by="cell", columns=["ping_p95"])
    assert cells.columns[-4:] == ["seeds", "samples", "ping_p95_ms", "ping_p95_ms_ci95"]
    means = frame.group_by(frame.columns[:4], maintain_order=True).agg(pl.col("ping_p95_ms").mean())
    assert cells["ping_p95_ms"].to_list() == pytest.approx(means["ping_p95_ms"].to_list())
    # For two seeds the interval is t(0.975, 1) = 12.706 times half of their distance.
    first = frame["ping_p95_ms"].to_list()[:2]
    assert cells["ping_p95_ms_ci95"][0] == pytest.approx(12.7062 * abs(first[0] - first[1]) / 2)


def test_the_number_of_threads_changes_only_the_time(frame: pl.DataFrame) -> None:
    assert sojourn.sweep(sojourn.loads(SCENARIO), QDISCS, seeds=2, jobs=1).equals(frame)


def test_a_scenario_without_a_sweep_is_one_cell() -> None:
    one = sojourn.loads(SCENARIO.partition("[sweep]")[0])
    assert sojourn.sweep(one, vary={"flow.bulk.count": [1, 2]})["flow.bulk.count"].to_list() == [
        1,
        2,
    ]
    assert sojourn.sweep(one).height == 1


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_keeps_finished_phases(jobs: int) -> None:
    def interrupt(reached: Progress) -> None:
        if reached.finished >= 3:
            raise KeyboardInterrupt

    long = sojourn.loads(SCENARIO.replace('"3 s"', '"30 s"'))
    with pytest.raises(sojourn.SweepInterrupted) as stop:
        sojourn.sweep(long, QDISCS, seeds=5, jobs=jobs, progress=interrupt)
    assert 0 < stop.value.frame.height < 40
    assert not any(math.isnan(value) for value in stop.value.frame["ping_p95_ms"])


def test_ctrl_c_before_anything_is_finished_gives_an_empty_frame() -> None:
    def interrupt(_: Progress) -> None:
        raise KeyboardInterrupt

    long = sojourn.loads(SCENARIO.replace('"3 s"', '"2000 s"'))
    with pytest.raises(sojourn.SweepInterrupted) as stop:
        sojourn.sweep(long, QDISCS, progress=interrupt)
    assert stop.value.frame.height == 0


def test_false_cancels_a_sweep() -> None:
    with pytest.raises(sojourn.Cancelled):
        sojourn.sweep(
            sojourn.loads(SCENARIO.replace('"3 s"', '"2000 s"')), progress=lambda _: False
        )


def test_a_progress_bar_changes_no_results(capsys: pytest.CaptureFixture[str]) -> None:
    one = sojourn.loads(SCENARIO)
    assert sojourn.sweep(one, progress=True).equals(sojourn.sweep(one))
    assert capsys.readouterr().out == ""


# ----------------------------------------------------------------------------------------- designs


@pytest.mark.parametrize(
    "ends", [("5 ms",), ("5 ms", "1 ms"), ("5 ms", "5 Mbit/s"), ("a", "b"), (True, False), "1 .. 2"]
)
def test_an_invalid_range_is_refused(ends: tuple[axes.Setting, ...]) -> None:
    with pytest.raises(
        sojourn.UserError, match=r"is no(t a)? range|nor a range|ends are not|is an empty range"
    ):
        sojourn.sweep(sojourn.loads(SCENARIO), between={"bottleneck.delay": ends}, samples=3)


@pytest.mark.parametrize("qdiscs", ["pfifo", {"bottleneck.rate": ["5mbit"]}])
def test_an_invalid_list_of_disciplines_is_refused(qdiscs: Any) -> None:
    with pytest.raises(sojourn.UserError, match="is not a list of queue disciplines"):
        sojourn.sweep(sojourn.loads(SCENARIO), qdiscs)


def test_ranges_are_drawn_from_the_command_line_as_from_the_file(invoke: Invoke) -> None:
    ranged = SCENARIO.replace(
        '["2 Mbit/s", "8 Mbit/s"]', '"2 Mbit/s .. 8 Mbit/s"\nsamples = 3\nsampling = "random"'
    )
    Path("ranged.toml").write_text(ranged)
    vary = ["--vary", "bottleneck.up.rate=2mbit..8mbit", "--samples", "3", "--sampling", "random"]
    tables = []
    for words in (["ranged.toml"], ["sweep.toml", *vary]):
        code, out, err = invoke("run", *words, "--format", "csv", "-q", "--set", "duration=2 s")
        assert (code, err) == (0, "")
        tables.append(list(csv.DictReader(io.StringIO(out))))
    assert tables[0] == tables[1]
    rates = [float(row["bottleneck.up.rate_mbps"]) for row in tables[0]]
    # Three points with two counts each.
    assert len(rates) == 6
    assert len(set(rates)) == 3
    assert all(2 <= rate <= 8 for rate in rates)
    code, out, err = invoke("run", "sweep.toml", "--samples", "3", "-o", "none")
    assert code == 2
    assert "no key has a range to draw from" in err
    assert not Path("none").exists()


def test_a_list_in_place_of_the_only_range_needs_no_samples(invoke: Invoke) -> None:
    Path("ranged.toml").write_text(
        SCENARIO.partition("[sweep]")[0]
        + '[sweep]\n"flow.bulk.count" = "1 .. 9"\nsamples = 3\nsampling_seed = 4\n'
    )
    code, out, _ = invoke("check", "ranged.toml", "--json", "--vary", "flow.bulk.count=1,2")
    assert code == 0
    assert json.loads(out)["sweep"] == {"flow.bulk.count": [1, 2]}
    code, out, _ = invoke("check", "ranged.toml", "--json")
    (values,) = json.loads(out)["sweep"].values()
    assert len(values) == 3
    code, out, _ = invoke("check", "ranged.toml")
    said = "flow.bulk.count: 1 .. 9\n  samples: 3\n  sampling: lhs\n  sampling_seed: 4\n"
    assert said in out


def test_each_point_is_run_with_every_listed_value() -> None:
    one = sojourn.loads(SCENARIO.partition("[sweep]")[0])
    frame = sojourn.sweep(
        one,
        QDISCS,
        between={"bottleneck.up.rate": ("1 Mbit/s", "20 Mbit/s"), "flow.bulk.count": (1, 3)},
        samples=3,
    )
    assert frame.height == 6
    assert frame["bottleneck.up.rate_mbps"].n_unique() == 3
    pairs = frame.group_by("bottleneck.up.rate", "flow.bulk.count").len()["len"].to_list()
    assert pairs == [2, 2, 2]
    assert frame["goodput_mbps"].max() < frame["bottleneck.up.rate_mbps"].max()


# ---------------------------------------------------------------------------------------- the page


def test_the_page_on_sweeps_names_every_column() -> None:
    text = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
    named = re.findall(
        r"^\| (`[a-z].*?) \|", text.partition("The names of the columns")[2], re.MULTILINE
    )
    heads = {name.partition(":")[0] for cell in named for name in re.findall(r"`([^`]+)`", cell)}
    assert heads == set(grid.ORDER)


def tags(page: str) -> list[tuple[str, dict[str, str | None]]]:
    found: list[tuple[str, dict[str, str | None]]] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append((tag, dict(attrs)))

    Reader().feed(page)
    return found


@pytest.fixture(scope="module")
def page(kept: list[Run]) -> str:
    return report.render(kept)


def test_the_page_of_a_sweep_is_small_and_requests_nothing(page: str) -> None:
    assert len(page) < 200_000
    found = tags(page)
    assert not {"script", "img", "iframe", "link"} & {tag for tag, _ in found}
    assert "default-src 'none'" in page
    assert "url(" not in page


@in_a_browser
def test_rows_and_lines_of_an_unticked_value_are_hidden(
    page: str, browser: Any, tmp_path: Path
) -> None:
    (tmp_path / "sweep.html").write_text(page)
    opened = Opened(browser, tmp_path / "sweep.html")
    rows = opened.page.locator("section[aria-labelledby=numbers] tbody tr:visible")
    fields = opened.page.locator(".heat td:visible")
    lines = opened.page.locator(".multiple polyline:visible")
    bare = {"rows": rows.count(), "fields": fields.count(), "lines": lines.count()}
    assert bare["rows"] == 8
    assert bare["fields"] == 4
    opened.page.locator(".filters summary").click()
    opened.page.get_by_label("2 Mbit/s").uncheck()
    assert rows.count() == 4
    assert all("8 Mbit/s" in row for row in rows.all_text_contents())
    assert fields.count() == 2
    opened.page.get_by_label("pfifo").uncheck()
    assert rows.count() == 2
    assert lines.count() == bare["lines"] // 2
    opened.page.get_by_label("2 Mbit/s").check()
    opened.page.get_by_label("pfifo").check()
    after = {"rows": rows.count(), "fields": fields.count(), "lines": lines.count()}
    assert after == bare
    opened.close()


def test_a_field_names_the_winner_of_its_cell(page: str, cells: grid.Grid) -> None:
    assert cells.judgement is not None
    heat = page.partition('class="heat"')[2].partition("<details>")[0]
    named = re.findall(r'<td class="won"[^>]*>([^<]+)<small>', heat)
    won = [contest for contest in cells.judgement.contests if contest.winner is not None]
    assert len(named) == len(won) > 0
    assert set(named) == {str(one.winner).split(", ")[-1] for one in won}
    assert len(re.findall("<td", heat)) == len(cells.judgement.contests) == 4


def test_every_chart_has_every_contender_at_its_means(page: str, cells: grid.Grid) -> None:
    charts = re.findall(r'<svg class="multiple".*?</svg>', page)
    quantities = [each.key for each in cells.differing()][:4]
    # A chart may appear twice: on a linear and on a logarithmic axis.
    named = {re.search('aria-label="[^"]*"', chart)[0] for chart in charts}  # type: ignore[index]
    assert 2 * len(quantities) - 1 <= len(named) <= 2 * len(quantities)
    first = charts[0]
    assert first.count("<circle") == len(QDISCS) * 2
    assert first.count('class="band"') == len(QDISCS)
    for title in re.findall(r"<title>([^<]+)</title>", first):
        name, value = title.split(": ")
        mean = float(value.split(", ")[0].replace("\u202f", ""))
        means = [
            cell.values("ping_p95")[0] for cell in cells.cells if cell.label.endswith(f", {name}")
        ]
        assert any(mean == pytest.approx(each, rel=0.01) for each in means)


def test_charts_name_the_key_of_their_axis(page: str) -> None:
    assert "<figcaption>bulk count 1</figcaption>" in page


def test_goodput_over_its_own_rate_is_a_share_of_it(page: str, cells: grid.Grid) -> None:
    charts = page.partition("goodput up, share of the rate <small")[2].partition("<h3>")[0]
    drawn = re.findall(r"<title>[^:]+: ([0-9.]+)", charts)
    shares = [
        100 * cell.values("goodput")[0] / float(str(cell.settings["bottleneck.up.rate"]).split()[0])
        for cell in cells.cells
    ]
    assert sorted(map(float, drawn)) == pytest.approx(sorted(shares), rel=0.01)
    assert min(shares) > 70
    ticks = re.findall(r'text-anchor="end">([0-9.]+)<', charts)
    assert min(map(float, ticks)) > 0


@in_a_browser
def test_a_box_changes_a_chart_to_a_logarithmic_axis(
    page: str, browser: Any, tmp_path: Path
) -> None:
    (tmp_path / "sweep.html").write_text(page)
    opened = Opened(browser, tmp_path / "sweep.html")
    box = opened.page.locator(".scaled").first.get_by_label("logarithmic")
    seen = [
        opened.page.locator(f".scaled >> nth=0 >> .multiples.{kind}:visible")
        for kind in ("linear", "log")
    ]
    before = [each.count() for each in seen]
    assert sorted(before) == [0, 1]
    box.set_checked(not box.is_checked())
    assert [each.count() for each in seen] == before[::-1]
    opened.close()


def test_paired_differences_agree_with_the_judge(page: str, cells: grid.Grid) -> None:
    assert cells.judgement is not None
    rows = re.findall(r'<td class="verdict-(\w+)">', page)
    expected = [
        each.verdict
        for key in ("ping_p95", "goodput")
        for contest in cells.judgement.contests
        for each in contest.differences
        if each.key == key
    ]
    assert rows == expected


def test_a_sweep_without_contenders_has_charts_and_no_winners(tmp_path: Path) -> None:
    runs = sojourn.run_all(sojourn.loads(SCENARIO), out=tmp_path / "runs")
    page = report.render(runs)
    assert "Who wins where" not in page
    assert 'class="multiple"' in page
    assert "one contender" in page


RANGED = {
    "bottleneck.up.rate": "1 Mbit/s .. 20 Mbit/s",
    "bottleneck.delay": "1 ms .. 20 ms",
    "flow.bulk.count": [1, 2],
    "samples": 5,
}


def test_drawn_points_are_dots_and_no_fields(tmp_path: Path) -> None:
    whole = sojourn.loads(SCENARIO).with_(duration="2 s", sweep=RANGED)
    runs = sojourn.run_all(sojourn.engine.contenders(whole, QDISCS), out=tmp_path / "runs")
    assert len(runs) == 20
    cells = grid.of_runs(runs)
    assert cells.drawn == ("bottleneck.up.rate", "bottleneck.delay")
    page = report.render(runs)
    winners, charts = page.partition('<h2 id="charts">')[::2]
    charts = charts.partition('<h2 id="pairs">')[0]
    assert "not run" not in page
    assert "polyline" not in charts
    assert "polygon" not in charts
    # In the plane of the two ranges there is one dot for each point and count.
    planes = re.findall(r'<svg class="multiple".*?</svg>', winners)
    assert [plane.count("<circle") for plane in planes] == [5, 5]
    # Over each range both contenders have a dot for each point and count.
    drawn = re.findall(r'<svg class="multiple".*?</svg>', charts)
    assert {chart.count("<circle") for chart in drawn} == {10}
    across = [re.findall(r'class="unit">(\w+)', chart)[0] for chart in drawn]
    assert across.count("rate") == across.count("delay") >= 4
    assert "5 drawn, " in page
    index = json.loads((tmp_path / "runs" / "runs.json").read_text())
    assert index["sweep"]["samples"] == 5
    assert index["sweep"]["bottleneck.delay"] == "1 ms .. 20 ms"
    assert [run.name for run in Run.find(tmp_path / "runs")] == [run.name for run in runs]


def test_one_range_alone_is_drawn_too(tmp_path: Path) -> None:
    one = {"bottleneck.up.rate": "1 Mbit/s .. 20 Mbit/s", "samples": 20}
    whole = sojourn.loads(SCENARIO).with_(duration="2 s", sweep=one)
    page = report.render(
        sojourn.run_all(sojourn.engine.contenders(whole, QDISCS), out=tmp_path / "runs")
    )
    assert '<div class="heat">' not in page
    winners = page.partition('<h2 id="charts">')[0]
    (plane,) = re.findall(r'<svg class="multiple".*?</svg>', winners)
    assert plane.count("<circle") == 20


def test_values_without_numbers_are_shown_in_order(tmp_path: Path) -> None:
    lossy = SCENARIO.partition("[sweep]")[0]
    whole = sojourn.loads(lossy).with_(
        {"sweep": {"bottleneck.up.loss": ["none", "1 %", "gemodel 0.1 % 10 %"]}}
    )
    page = report.render(sojourn.run_all(whole, out=tmp_path / "runs"))
    chart = re.findall(r'<svg class="multiple".*?</svg>', page)[0]
    places = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', chart)]
    assert places == sorted(places)
    assert places[1] - places[0] == pytest.approx(places[2] - places[1], abs=0.2)


def test_an_axis_contains_all_its_values() -> None:
    for values, log in (
        ([0.2, 3.0], False),
        ([12.0, 900.0], True),
        ([0.0], False),
        ([-2.0, 5.0], False),
    ):
        span = multiples.span_of(values, log)
        assert span.low <= min(values)
        assert span.high >= max(values)
        assert len(span.ticks) >= 2
        assert all(span.low <= tick <= span.high for tick, _ in span.ticks)


def test_no_two_contenders_look_alike(tmp_path: Path) -> None:
    whole = sojourn.loads(SCENARIO.partition("[sweep]")[0]).with_(
        {
            "sweep": {
                "bottleneck.up.rate": ["2 Mbit/s", "4 Mbit/s"],
                "flow.bulk.congestion": ["reno", "cubic"],
            }
        }
    )
    runs = sojourn.run_all(sojourn.engine.contenders(whole, QDISCS), out=tmp_path / "runs")
    page = report.render(runs)
    lines = re.findall(r'<li[^>]*><svg[^>]*>.*?stroke: ([^"]+)".*?</svg>([^<]+)</li>', page)
    assert [name for _, name in lines] == [
        *("reno, pfifo", "reno, fq_codel", "cubic, pfifo", "cubic, fq_codel"),
    ]
    assert len({colour for colour, _ in lines}) == 4


def test_a_sweep_of_choices_alone_competes_on_the_usual_page(tmp_path: Path) -> None:
    one = sojourn.loads(SCENARIO.partition("[sweep]")[0])
    runs = sojourn.run_all(sojourn.engine.contenders(one, QDISCS), out=tmp_path / "runs")
    assert not swept.is_sweep(runs)
