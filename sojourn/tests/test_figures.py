"""Figures show the tables' data, have the same bytes each time, and can be drawn of unusual Runs
too."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib
import numpy as np
import polars as pl
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse
from synthetic import Shape

from sojourn import figures
from sojourn.digits import on_page, sides
from sojourn.figures import comparison, distribution, series, style
from sojourn.figures.series import Line
from sojourn.judgement import quantities
from sojourn.records import Run, RunError


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """pfifo and fq_codel, three seeds each."""
    return synthetic.pair(tmp_path_factory.mktemp("pair"))


def line(figure: Figure, name: str) -> Line2D:
    """Returns the line with this name."""
    return next(artist for artist in figure.findobj(Line2D) if artist.get_gid() == name)


def names(figure: Figure) -> set[str]:
    """Returns the names of all named elements."""
    return {str(artist.get_gid()) for artist in figure.findobj() if artist.get_gid()}


def words(figure: Figure) -> str:
    """Returns all text in a figure."""
    figure.canvas.draw()
    return "\n".join(text.get_text() for text in figure.findobj(matplotlib.text.Text))


# ----------------------------------------------------------------------------- data of the tables


def test_the_time_line_shows_the_queue_table(pair: list[Run]) -> None:
    figure = figures.timeline(pair[0], seed=2)
    table = pair[0].table("queue", 2).filter(pl.col("link") == "bottleneck")
    for name, column, scale in (
        ("sojourn mean", "sojourn_mean_ns", 1e-6),
        ("sojourn max", "sojourn_max_ns", 1e-6),
        ("backlog", "backlog_packets", 1.0),
    ):
        drawn = line(figure, name)
        np.testing.assert_allclose(drawn.get_xdata(), table["t_ns"].to_numpy() / 1e9)
        np.testing.assert_allclose(drawn.get_ydata(), table[column].to_numpy() * scale)


def test_goodput_is_the_growth_of_delivered_bytes(pair: list[Run]) -> None:
    drawn = np.asarray(line(figures.timeline(pair[0], seed=1), "goodput bulk.2").get_ydata())
    table = pair[0].table("flow", 1).filter(pl.col("flow") == "bulk.2").sort("t_ns")
    # An interval is 0.1 s: the rates times the interval sum up to all delivered bits.
    assert drawn.sum() * 0.1e6 / 8 == pytest.approx(table["delivered_bytes"][-1])
    assert drawn[7] == pytest.approx(
        (table["delivered_bytes"][7] - table["delivered_bytes"][6]) * 8 / 0.1 / 1e6
    )


def test_the_total_is_the_sum_of_the_flows(pair: list[Run]) -> None:
    figure = figures.timeline(pair[1])
    flows = [np.asarray(line(figure, f"goodput bulk.{i}").get_ydata()) for i in (1, 2, 3, 4)]
    np.testing.assert_allclose(line(figure, "goodput total").get_ydata(), np.sum(flows, axis=0))


def test_lost_pings_are_marked_and_not_drawn_as_times(pair: list[Run]) -> None:
    figure = figures.timeline(pair[0], seed=1)
    table = pair[0].table("probe", 1)
    lost = table.filter(pl.col("rtt_ns").is_null())["t_ns"].to_numpy() / 1e9
    assert lost.size > 0
    np.testing.assert_allclose(line(figure, "lost ping").get_xdata(), lost)
    drawn = np.asarray(line(figure, "rtt ping").get_ydata())
    assert np.isnan(drawn).sum() == lost.size
    assert np.nanmin(drawn) > 0


def test_every_drop_is_a_tick_under_its_cause(pair: list[Run]) -> None:
    figure = figures.timeline(pair[0], seed=1)
    ticks = next(artist for artist in figure.findobj() if artist.get_gid() == "drop: limit")
    drawn = np.sort([segment[0][0] for segment in ticks.get_segments()])
    np.testing.assert_allclose(drawn, np.sort(pair[0].table("drops", 1)["t_ns"].to_numpy()) / 1e9)


def test_the_warmup_is_shaded_and_named(pair: list[Run]) -> None:
    figure = figures.timeline(pair[0])
    spans = [artist for artist in figure.findobj() if artist.get_gid() == "warm-up"]
    assert len(spans) == len(figure.axes)
    assert "warm-up" in words(figure)


def test_a_box_has_the_quantiles(pair: list[Run]) -> None:
    axes = figures.boxes(pair).axes[0]
    assert axes.get_title("left") == "ping RTT [ms]"
    rtts = series.ping_rtts(pair[0]).x
    drawn = {round(float(y), 6) for artist in axes.lines for y in np.asarray(artist.get_ydata())}
    for level in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert round(float(np.quantile(rtts, level)), 6) in drawn


def test_stacked_runs_share_their_axes(pair: list[Run]) -> None:
    figure = figures.stacked(pair)
    assert len(figure.axes) % len(pair) == 0
    for row in range(len(figure.axes) // len(pair)):
        panels = figure.axes[row * len(pair) : (row + 1) * len(pair)]
        assert len({panel.get_ylim() for panel in panels}) == 1
    drawn = line(figure, "ping RTT [ms] pfifo")
    np.testing.assert_allclose(
        np.nanmax(np.asarray(drawn.get_ydata(), float)),
        np.nanmax(series.pings(pair[0], pair[0].seeds[0], "ping").y),
    )


def test_pings_in_one_panel_are_those_of_the_first_seed(pair: list[Run]) -> None:
    figure = figures.ping_lines(pair)
    [axes] = figure.axes
    for run, drawn in zip(pair, axes.get_lines(), strict=True):
        assert drawn.get_label() == run.meta.label
        np.testing.assert_allclose(
            np.nanmax(np.asarray(drawn.get_ydata(), float)),
            np.nanmax(series.pings(run, run.seeds[0], "ping").y),
        )


def test_the_key_of_pings_in_one_panel_overlaps_nothing(pair: list[Run]) -> None:
    figure = figures.ping_lines([*pair, *pair, *pair])
    figure.draw_without_rendering()
    [axes], [legend] = figure.axes, figure.legends
    label, rows = axes.xaxis.label.get_window_extent(), legend.get_window_extent()
    assert rows.y0 >= 0
    assert rows.y1 < label.y0
    assert len(legend.get_texts()) == 6


def test_pings_in_other_axes_have_their_key_there(pair: list[Run]) -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    figures.ping_lines(pair, ax=left)
    assert not figure.legends
    assert right.get_legend() is None
    assert len(left.get_legend().get_texts()) == 2


def test_completion_times_are_those_of_transfers_after_the_warm_up(tmp_path: Path) -> None:
    run = synthetic.run(tmp_path / "run", Shape())
    table = pl.DataFrame(
        {"start_ns": [0, 6_000_000_000], "end_ns": [10**9, 6_020_000_000]},
        schema={"start_ns": pl.Int64, "end_ns": pl.Int64},
    )
    run.table = lambda name, seed=None: table  # type: ignore[method-assign, assignment]
    cdf = series.completions(run)
    assert (cdf.samples, cdf.x.max()) == (1, 20.0)


def test_a_cdf_reaches_its_quantiles(pair: list[Run]) -> None:
    figure = figures.cdf(pair, "ping")
    drawn = line(figure, "cdf pfifo")
    x, share = np.asarray(drawn.get_xdata()), np.asarray(drawn.get_ydata())
    table = (
        pair[0]
        .table("probe")
        .filter(pl.col("rtt_ns").is_not_null() & (pl.col("t_ns") >= 5 * synthetic.SECOND))
    )
    rtts = table["rtt_ns"].to_numpy() / 1e6
    assert (share[0], share[-1]) == (0, 1)
    assert x[-1] == rtts.max()
    for value in np.quantile(rtts, [0.1, 0.5, 0.9]):
        assert share[np.searchsorted(x, value, side="right") - 1] == pytest.approx(
            (rtts <= value).mean(), abs=1e-9
        )


def test_a_histogram_of_two_bins_has_its_median_where_the_hand_finds_it(tmp_path: Path) -> None:
    # 0..10 ns with 3 packets, 10..30 ns with 1: two of four lie below 10 * 2/3 ns.
    table = pl.DataFrame({"lower_ns": [0, 10], "upper_ns": [10, 30], "packets": [3, 1]})
    cdf = series._binned(table, "packets")
    assert cdf.quantile(0.5) * 1e6 == pytest.approx(20 / 3)
    assert cdf.quantile(1.0) * 1e6 == pytest.approx(30)


def test_bars_are_as_long_as_the_means_of_the_summary(pair: list[Run]) -> None:
    figure = figures.bars(pair)
    measured = quantities.measure(pair)
    axes = next(a for a in figure.axes if a.get_title(loc="left").startswith("ping RTT p95"))
    bars = [patch.get_width() for patch in axes.patches]
    wanted = [
        np.mean([seed["probes"][0]["rtt_ms"]["p95"] for seed in one.summary.runs])
        for one in measured
    ]
    assert bars == pytest.approx(wanted)


def test_whiskers_of_a_share_stay_within_its_bounds() -> None:
    assert sides(0.15, 0.25, 100) == (0.15, 0.25)
    assert sides(99.5, 2, 100) == (2, 0.5)
    assert sides(100.5, 2, 100) == (2, 0), "the mean is above the maximum"
    assert sides(5, 7) == (7, 7), "the quantity is not a share"


def test_the_ellipse_has_the_covariance_of_the_points() -> None:
    x, y = [1.0, 2.0, 3.0, 6.0], [2.0, 1.0, 5.0, 7.0]
    ellipse = comparison.one_sigma(x, y)
    assert ellipse is not None
    turn = np.radians(ellipse.tilt)
    axes = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    rebuilt = axes @ np.diag([(ellipse.width / 2) ** 2, (ellipse.height / 2) ** 2]) @ axes.T
    np.testing.assert_allclose(rebuilt, np.cov(x, y))
    assert (ellipse.x, ellipse.y) == (3.0, 3.75)


def test_names_in_a_crowded_tradeoff_do_not_cover_each_other(pair: list[Run]) -> None:
    crowd = [
        Run(run.path, dataclasses.replace(run.meta, label=f"{run.name}, rate {i} Mbit/s"))
        for i in range(20)
        for run in pair
    ]
    figure = figures.tradeoff(crowd)
    figure.canvas.draw()
    [axes] = figure.axes
    named = [text for text in axes.texts if "rate" in text.get_text()]
    assert 4 <= len(named) < len(crowd)
    boxes = [text.get_window_extent() for text in named]
    for i, one in enumerate(boxes):
        assert one.y0 >= axes.bbox.y0
        for other in boxes[i + 1 :]:
            assert abs(one.y0 - other.y0) > 3 or one.x1 < other.x0 or other.x1 < one.x0


def test_the_tradeoff_has_a_point_for_each_run_and_an_ellipse_of_its_seeds(pair: list[Run]) -> None:
    figure = figures.tradeoff(pair)
    summary = quantities.measure(pair)[0].summary
    dots = line(figure, "seeds pfifo")
    assert list(np.asarray(dots.get_ydata())) == pytest.approx(
        [seed["goodput_mbps"] for seed in summary.runs]
    )
    assert line(figure, "run pfifo").get_ydata() == pytest.approx(
        [np.mean([seed["goodput_mbps"] for seed in summary.runs])]
    )
    assert {patch.get_gid() for patch in figure.findobj(Ellipse)} >= {
        "ellipse pfifo",
        "ellipse fq_codel",
    }


def test_two_seeds_have_no_ellipse() -> None:
    assert comparison.one_sigma([1, 2], [3, 4]) is None


def test_the_density_graph_holds_all_pings_of_a_second_between_its_outer_edges(
    pair: list[Run],
) -> None:
    figure = figures.density(pair[0], seed=1)
    table = pair[0].table("probe", 1)
    band = next(c for c in figure.findobj(PolyCollection) if c.get_gid() == "band 0")
    boxes = [path.vertices for path in band.get_paths()]
    assert len(boxes) == 20
    for second, box in enumerate(boxes):
        pings = (
            table.filter(
                (pl.col("t_ns") // synthetic.SECOND == second) & pl.col("rtt_ns").is_not_null()
            )["rtt_ns"].to_numpy()
            / 1e6
        )
        assert (box[:, 0].min(), box[:, 0].max()) == (second, second + 1)
        assert box[:, 1].min() == pytest.approx(pings.min())
        assert box[:, 1].max() == pytest.approx(pings.max())
        median = np.asarray(line(figure, "median").get_ydata())[2 * second]
        assert median == pytest.approx(np.median(pings))


def test_bands_of_the_density_graph_are_nested_and_lighter_outwards(pair: list[Run]) -> None:
    figure = figures.density(pair[0])
    bands = {c.get_gid(): c for c in figure.findobj(PolyCollection)}
    brightness = []
    for i in range(4):
        outer, inner = (
            bands[f"band {i}"].get_paths()[9].vertices,
            bands[f"band {i + 1}"].get_paths()[9].vertices,
        )
        assert outer[:, 1].min() <= inner[:, 1].min() <= inner[:, 1].max() <= outer[:, 1].max()
        brightness.append(sum(bands[f"band {i}"].get_facecolor()[0][:3]))
    assert brightness == sorted(brightness, reverse=True)


def test_a_second_whose_pings_are_all_lost_is_a_gap_and_a_full_tick() -> None:
    t = np.arange(30) / 10
    rtt = np.where((t >= 1) & (t < 2), np.nan, 20.0)
    density = series.density(Line(t, rtt), 3.0)
    assert np.isnan(density.median).tolist() == [False, True, False]
    assert density.lost.tolist() == [0, 10, 0]


def test_an_hour_of_pings_is_drawn_in_wider_columns() -> None:
    t = np.arange(36_000) / 10
    density = series.density(Line(t, np.full(t.size, 20.0)), 3600.0)
    assert density.column_s == 5
    assert density.sent.sum() == t.size


# -------------------------------------------------------------------------------------- disciplines


@pytest.mark.parametrize(
    ("qdisc", "drawn"),
    [
        ("pfifo limit 1000", {"level limit"}),
        ("codel limit 1000p", {"state count"}),
        ("fq_codel", {"state flows"}),
        ("adt limit 500", {"limit", "estimate"}),
        ("red limit 60kb min 10kb max 30kb", {"average queue", "level min", "level max"}),
    ],
)
def test_the_backlog_is_drawn_beside_the_disciplines_own_state(
    qdisc: str, drawn: set[str], tmp_path: Path
) -> None:
    figure = figures.timeline(synthetic.run(tmp_path / "run", Shape(qdisc=qdisc, seeds=(1,))))
    assert drawn <= names(figure)


def test_a_discipline_that_counts_bytes_has_its_backlog_in_kilobytes(tmp_path: Path) -> None:
    run = synthetic.run(tmp_path / "run", Shape(qdisc="bfifo limit 1500kb", seeds=(1,)))
    figure = figures.timeline(run)
    backlog = run.table("queue", 1)["backlog_bytes"].to_numpy() / 1000
    np.testing.assert_allclose(line(figure, "backlog").get_ydata(), backlog)
    assert "[kB]" in words(figure)


def test_tcs_kilobytes_are_1024_bytes() -> None:
    assert series._tc_size(["red", "limit", "60kb", "min", "10kb", "max", "30000"], "min") == 10240
    assert series._tc_size(["red", "limit", "60kb", "min", "10kb", "max", "30000"], "max") == 30000
    assert series._tc_size(["red", "limit", "60kb"], "min") is None


def test_a_qdisc_has_the_same_colour_in_every_figure(pair: list[Run]) -> None:
    colours = {
        to_hex(line(figures.cdf(pair), "cdf fq_codel").get_color()),
        to_hex(line(figures.cdf(pair[::-1], "ping"), "cdf fq_codel").get_color()),
        to_hex(line(figures.tradeoff(pair[1:]), "run fq_codel").get_color()),
    }
    assert colours == {style.BLUE.lower()}


def test_runs_of_one_qdisc_differ_in_shade_and_dash(tmp_path: Path) -> None:
    runs = [
        synthetic.run(
            tmp_path / str(n), Shape(qdisc=f"pfifo limit {n}", seeds=(1,), label=f"limit {n}")
        )
        for n in (10, 100, 1000)
    ]
    looks = style.looks(runs, ["bottleneck"] * 3)
    assert len({look.colour for look in looks}) == 3
    assert len({look.dash for look in looks}) == 3


def test_runs_of_one_comparison_are_asked_about_the_same_link(pair: list[Run]) -> None:
    assert series.bottlenecks(pair) == ["bottleneck", "bottleneck"]


# ----------------------------------------------------------------------------------- unusual Runs


@pytest.mark.parametrize(
    "shape",
    [
        Shape(flows=0, probes=0, seeds=(1,)),
        Shape(flows=0, seeds=(1,)),
        Shape(probes=0, seeds=(1,)),
        Shape(flows=1, seeds=(1,)),
        Shape(flows=9, probes=5, seeds=(1, 2)),
        Shape(duration_s=1, warmup_s=0, interval_ms=1000, ping_ms=1000, seeds=(1,)),
        Shape(duration_s=2, warmup_s=2, seeds=(1,)),
        Shape(
            qdisc="mystery words",
            title="Costs $5 & <b>more</b> than $4_{2}$ ✓",
            label="$x^2$ _{",
            seeds=(1,),
        ),
        Shape(title="Long " * 80, label="label " * 30, seeds=(1,)),
    ],
    ids=[
        "nothing",
        "no flows",
        "no probes",
        "one flow",
        "many probes",
        "one sample",
        "all warm-up",
        "odd text",
        "long text",
    ],
)
def test_unusual_runs_can_be_drawn(shape: Shape, tmp_path: Path) -> None:
    runs = [synthetic.run(tmp_path / str(i), shape) for i in range(2)]
    drawn = figures.all_for(runs)
    assert {"cdf-sojourn", "bars", "tradeoff"} <= set(drawn)
    # A figure per Run is drawn only of the first Run.
    for name, figure in drawn.items():
        if name in ("timeline-1", "density-1"):
            continue
        assert figures.save(figure, tmp_path / f"{name}.svg").stat().st_size > 1000
        assert all(
            axes.get_xlabel() or axes.get_ylabel() or axes.get_title(loc="left") or axes.texts
            for axes in figure.axes
            # A panel to the right of another shares its labels and axis.
            if (place := axes.get_subplotspec()) is None or place.colspan.start == 0
        )


def test_a_run_with_empty_tables_draws(tmp_path: Path) -> None:
    shape = Shape(seeds=(1,))
    run = synthetic.run(tmp_path / "run", shape)
    tables = synthetic.tables(shape, 1)
    for name in ("queue", "flow", "probe", "drops", "sojourn", "rtt"):
        tables[name] = {column: values[:0] for column, values in tables[name].items()}
    run.add_seed(1, tables, synthetic.CAUSES)
    for figure in figures.all_for([run, run]).values():
        assert style.render(figure, "svg")


def test_a_thousand_flows_are_a_median_and_a_band(tmp_path: Path) -> None:
    run = synthetic.run(tmp_path / "run", Shape(flows=1000, seeds=(1,), duration_s=10))
    figure = figures.timeline(run)
    assert {"cwnd median", "cwnd band", "goodput median", "goodput total"} <= names(figure)
    assert not any(name.startswith("goodput bulk") for name in names(figure))
    table = run.table("flow", 1).filter(pl.col("t_ns") == 5 * synthetic.SECOND)
    drawn = line(figure, "cwnd median")
    at = list(np.asarray(drawn.get_xdata())).index(5.0)
    assert np.asarray(drawn.get_ydata())[at] == pytest.approx(table["cwnd_bytes"].median() / 1000)


def test_a_long_run_makes_a_small_figure(tmp_path: Path) -> None:
    run = synthetic.run(
        tmp_path / "run", Shape(seeds=(1,), duration_s=3600, interval_ms=20, ping_ms=500)
    )
    figure = figures.timeline(run)
    drawn = np.asarray(line(figure, "sojourn max").get_ydata())
    assert drawn.size < 5000
    assert drawn.max() == pytest.approx(run.table("queue", 1)["sojourn_max_ns"].max() / 1e6)


def test_a_run_without_a_finished_seed_is_refused(tmp_path: Path) -> None:
    run = synthetic.run(tmp_path / "run", Shape(seeds=(1,)))
    unfinished = Run(run.path, dataclasses.replace(run.meta, seeds=()))
    with pytest.raises(RunError, match="no seed has finished"):
        figures.all_for([unfinished])
    with pytest.raises(RunError, match="no Run was given"):
        figures.bars([])


def test_an_unknown_probe_is_refused_with_the_known_ones(pair: list[Run]) -> None:
    with pytest.raises(RunError) as refused:
        figures.density(pair[0], "pong")
    assert "ping" in refused.value.hint


# ------------------------------------------------------------------------------------------ files


@pytest.mark.parametrize(
    ("draw", "kinds"),
    [
        (lambda pair: figures.timeline(pair[0]), ["svg"]),
        (lambda pair: figures.density(pair[0]), ["svg"]),
        (lambda pair: figures.cdf(pair, "ping"), figures.FORMATS),
        (figures.bars, ["svg"]),
        (figures.tradeoff, ["svg", "png"]),
    ],
    ids=["timeline", "density", "cdf", "bars", "tradeoff"],
)
def test_a_figure_has_the_same_bytes_on_every_rerun(
    pair: list[Run],
    tmp_path: Path,
    draw: Callable[[list[Run]], Figure],
    kinds: Sequence[str],
) -> None:
    first, again = draw(pair), draw(pair)
    for kind in kinds:
        written = figures.save(first, tmp_path / f"1.{kind}").read_bytes()
        assert written == figures.save(again, tmp_path / f"2.{kind}").read_bytes(), kind


def test_the_users_own_matplotlib_settings_change_nothing(pair: list[Run]) -> None:
    plain = style.render(figures.cdf(pair), "svg")
    with matplotlib.rc_context({"lines.linewidth": 9, "font.size": 30, "axes.grid": False}):
        assert style.render(figures.cdf(pair), "svg") == plain


def test_the_settings_of_matplotlib_are_left_as_they_were(pair: list[Run]) -> None:
    before = dict(matplotlib.rcParams)
    figures.timeline(pair[0])
    assert dict(matplotlib.rcParams) == before


def test_figures_leave_pyplot_alone(pair: list[Run]) -> None:
    # In a separate process: reading all of rcParams, as another test does, imports pyplot.
    program = (
        "import sys; from sojourn import Run, figures;"
        f"figures.save(figures.timeline(Run.open({str(pair[0].path)!r})), sys.argv[1]);"
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    target = str(pair[0].path.parent / "alone.png")
    assert (
        subprocess.run(
            [sys.executable, "-c", program, target], env=environment, check=False
        ).returncode
        == 0
    )


def test_an_unknown_file_ending_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(figures.FormatError, match=r"use \.svg, \.png, \.pdf or \.pgf"):
        figures.save(Figure(), tmp_path / "bars.gif")
    with pytest.raises(figures.FormatError, match="without an ending"):
        figures.save(Figure(), tmp_path / "bars")


def test_names_of_figures_are_valid_file_names(tmp_path: Path) -> None:
    runs = [
        synthetic.run(tmp_path / str(i), Shape(seeds=(1,), label="fq_codel target 5ms/../.. <x>"))
        for i in range(2)
    ]
    for name in figures.all_for(runs):
        assert name == figures.slug(name)
    assert "timeline-fq_codel-target-5ms-..-..-x-2" in figures.all_for(runs)


def test_every_axis_has_a_unit_or_counts(pair: list[Run]) -> None:
    counts = {"drops,\nmarks", "count", "flows", "share of samples"}

    def measured(axes: Axes) -> list[str]:
        return [label for label in (axes.get_xlabel(), axes.get_ylabel()) if label]

    for figure in figures.all_for(pair).values():
        for axes in figure.axes:
            for label in measured(axes):
                assert "[" in label or label in counts, label


# --------------------------------------------------------------------------------------- thinning


VALUES = st.lists(st.one_of(st.floats(-1e6, 1e6), st.just(float("nan"))), min_size=1, max_size=400)


@given(VALUES, st.integers(1, 40))
def test_thinning_keeps_the_least_and_the_largest_of_every_bucket(
    values: list[float], buckets: int
) -> None:
    t = np.arange(len(values), dtype=np.float64)
    y = np.array(values)
    thinned = series.thin(Line(t, y), buckets)
    assert (np.diff(thinned.t) > 0).all()
    # Every remaining point is a point of the line.
    at = thinned.t.astype(int)
    np.testing.assert_array_equal(thinned.y, y[at])
    span = (t[-1] - t[0]) or 1.0
    which = np.minimum((t - t[0]) / span * buckets, buckets - 1).astype(int)
    for bucket in np.unique(which):
        inside = y[which == bucket]
        kept = thinned.y[which[at] == bucket]
        assert np.isnan(kept).any() == np.isnan(inside).any()
        if not np.isnan(inside).all():
            assert np.nanmin(kept) == np.nanmin(inside)
            assert np.nanmax(kept) == np.nanmax(inside)


@given(VALUES, st.integers(1, 40))
def test_a_thinned_line_has_at_most_two_points_and_a_gap_per_bucket(
    values: list[float], buckets: int
) -> None:
    line = Line(np.arange(len(values), dtype=np.float64), np.array(values))
    thinned = series.thin(line, buckets)
    assert thinned.t.size <= max(3 * buckets, 1) or thinned is line


def test_a_line_that_fits_is_left_alone() -> None:
    line = Line(np.arange(10.0), np.arange(10.0))
    assert series.thin(line, 5) is line


def test_numbers_read_without_exponents() -> None:
    texts = [on_page(x) for x in (0, 0.0123, 0.98, 4.8123, 1234, 1234567, float("nan"))]
    assert texts == ["0", "0.0123", "0.980", "4.81", "1\u202f234", "1\u202f234\u202f567", "–"]


def test_an_empty_distribution_has_no_quantile() -> None:
    assert np.isnan(series.NOTHING.quantile(0.5))
    assert distribution.MARKED == (0.5, 0.95, 0.99)


def test_every_colour_is_of_a_known_discipline_or_cause() -> None:
    from sojourn._core import CAUSES, QDISCS

    assert set(style.QDISCS) <= {*QDISCS, "own"}
    assert set(style.CAUSES) == set(CAUSES)
    simulated = {kind for kind, record in QDISCS.items() if record.simulated}
    assert simulated <= set(style.QDISCS)
