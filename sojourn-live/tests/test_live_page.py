"""Figures and pages of measurements: phases in their places, gaps where nothing was measured, and
before and after on one axis."""

from __future__ import annotations

import html
import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic
import synthetic_live
from synthetic_live import Line

from sojourn import figures, report
from sojourn.figures import series
from sojourn.records import Run
from sojourn.report import alignment
from sojourn_live.measure import phases as cutting


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Measurements before and after a cure: the queue drains for 3 s before it, for 0.2 s after
    it."""
    folder = tmp_path_factory.mktemp("runs")
    before = Line(up_buffer=500_000, drain_s=3.0)
    after = Line(up_buffer=12_000, drain_s=0.2, seed=5, zero_ns=before.zero_ns + 600 * 10**9)
    return [
        synthetic_live.run(folder / name, line)
        for name, line in (("before", before), ("after", after))
    ]


@pytest.fixture(scope="module")
def page(runs: list[Run]) -> str:
    return report.render(runs)


def payload(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    parsed: dict[str, Any] = json.loads(found[1])
    return parsed


def line(
    packed: dict[str, Any], levels: list[list[int]]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    t, y = (np.frombuffer(b64decode(packed["buffers"][i]), dtype="<f4") for i in levels[-1])
    return t, y


def spans_of(figure: Any, axes: int = 0) -> dict[str, tuple[float, float]]:
    """The spans of a figure's shaded phases, by gid."""
    return {
        patch.get_gid().removeprefix("phase "): (patch.get_x(), patch.get_x() + patch.get_width())
        for patch in figure.axes[axes].patches
        if (patch.get_gid() or "").startswith("phase ")
    }


# ---------------------------------------------------------------------------------------- figures


def test_phases_are_shaded_where_they_were_and_named(runs: list[Run]) -> None:
    for figure in (figures.timeline(runs[0]), figures.density(runs[0])):
        expected = {
            name: (start, end)
            for name, start, end in series.spans(runs[0], 1)
            if not name.startswith("idle")
        }
        shaded = spans_of(figure)
        assert set(shaded) == set(expected)
        for name, span in expected.items():
            assert shaded[name] == pytest.approx(span)
        texts = {text.get_text() for text in figure.axes[0].texts}
        assert {"idle", "download", "upload", "both", "idle 2"} <= texts


def test_every_panel_of_the_time_line_is_shaded(runs: list[Run]) -> None:
    figure = figures.timeline(runs[0])
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert labels == [
        "goodput\n[Mbit/s]",
        "RTT [ms]",
        "backlog\n[kB]",
        "drops,\nmarks",
        "cwnd, all\n[kB]",
    ]
    assert all(spans_of(figure, i) for i in range(len(labels)))


def test_a_run_of_the_simulator_is_not_shaded(tmp_path: Path) -> None:
    assert spans_of(figures.timeline(synthetic.run(tmp_path / "sim"))) == {}


def test_each_direction_is_summed_and_has_gaps_without_load(runs: list[Run]) -> None:
    ways = series.by_direction(runs[0], series.goodputs(runs[0], 1))
    assert set(ways) == {"download", "upload"}
    name, start, end = series.spans(runs[0], 1)[2]
    assert name == "upload"
    down = ways["download"]
    here = (down.t > start) & (down.t < end)
    # There is a gap, not a line from the end of one download to the next.
    assert not np.isfinite(down.y[here]).any()
    during = (ways["upload"].t > start) & (ways["upload"].t <= end)
    (part,) = cutting.cut(runs[0]).of("upload")
    assert np.mean(ways["upload"].y[during]) == pytest.approx(part.mbps("up"), rel=0.02)


def test_there_is_a_curve_for_each_phase(runs: list[Run]) -> None:
    figure = figures.cdf_by_phase(runs[0])
    curves = {
        each.get_gid(): each
        for each in figure.axes[0].lines
        if (each.get_gid() or "").startswith("cdf ")
    }
    assert set(curves) == {"cdf idle", "cdf download", "cdf upload", "cdf both", "cdf idle 2"}
    x, y = curves["cdf upload"].get_data()
    rtt = cutting.cut(runs[0]).rtts("upload")
    assert np.interp(0.5, y, x) == pytest.approx(np.median(rtt), rel=0.01)


def test_measurements_are_compared_phase_by_phase(runs: list[Run]) -> None:
    names = set(figures.all_for(runs))
    assert {
        "timeline-before",
        "density-after",
        "cdf-phases-before",
        "cdf-ping-upload",
        "cdf-ping-idle",
    } <= names
    assert not names & {"bars", "tradeoff", "cdf-sojourn"}


def test_pings_of_a_measurement_are_those_of_one_target(runs: list[Run]) -> None:
    pooled = series.ping_rtts(runs[0], phase="idle")
    assert pooled.samples == 80
    assert pooled.quantile(0.01) > 19


def test_drops_are_shown_as_counts_if_single_drops_are_unknown(runs: list[Run]) -> None:
    (lost,) = series.losses(runs[0], 1, "eth0 out")
    table = runs[0].table("queue", 1)
    assert lost.t.size == table.filter(table["link"] == "eth0 out")["dropped_packets"].sum()


# ------------------------------------------------------------------------------------------- page


def test_before_and_after_share_their_phases_axis(runs: list[Run]) -> None:
    common = alignment.common(runs)
    own = [series.spans(run, 1) for run in runs]
    assert [name for name, _, _ in common] == [name for name, _, _ in own[0]]
    for i, (_, start, end) in enumerate(common):
        assert end - start == pytest.approx(max(spans[i][2] - spans[i][1] for spans in own))
        assert i == 0 or start >= common[i - 1][2]
    for run, spans in zip(runs, own, strict=True):
        whole = series.pings(run, 1, "server udp")
        moved = alignment.aligned(whole, spans, common)
        assert (np.diff(moved.t) >= 0).all()
        for (_, start, end), (_, there, _) in zip(spans, common, strict=True):
            inside = (whole.t >= start) & (whole.t < end)
            # Inside a phase, times are not changed.
            np.testing.assert_allclose(moved.t[inside] - there, whole.t[inside] - start, atol=1e-9)


def test_measurements_with_other_phases_have_separate_axes(runs: list[Run]) -> None:
    other = synthetic_live.run(None, Line(phases=(("idle", 2), ("upload", 3))))
    assert alignment.common([runs[0], other]) == []
    whole = series.pings(other, 1, "server udp")
    assert alignment.aligned(whole, series.spans(other, 1), []) is whole
    assert "data" in report.render([runs[0], other])


def test_the_page_opens_with_what_changed(page: str) -> None:
    opening = page[page.index('aria-label="Verdict"') : page.index("</header>")]
    assert 'is shorter in "after" than in "before"' in html.unescape(opening)
    assert "block bootstrap" in opening


def test_one_measurement_s_page_opens_with_its_verdict(runs: list[Run]) -> None:
    opening = report.render(runs[:1])
    opening = opening[opening.index('aria-label="Verdict"') : opening.index("</header>")]
    assert "severe bufferbloat" in opening.lower()
    assert "The standing queue of the upload is" in opening
    assert "between gateway and server udp" in opening


def test_the_page_has_phases_changes_and_scores(page: str) -> None:
    for words in (
        "From before to after", "no significant change", "added, p95", "RPM, draft-09", "LibreQoS, README", "QoO, gaming",
        "of the probes were sent at most", "Median RTT of every target", "Local link eth0 out", "Repeats",
    ):  # fmt: skip
        assert words in page, words


def test_the_delay_under_load_is_in_the_first_columns(page: str) -> None:
    head = re.findall(r'<th scope="col"[^>]*>([^<]*)', page.partition("<caption><span>RTT to")[2])
    assert head[:4] == ["Phase", "median", "added, median", "added, p95"]
    row = re.search(
        r'<th scope="row">upload</th>(.*?)</tr>', page.partition("RTT to")[2], re.DOTALL
    )
    assert row is not None
    median, added, p95, down, up, least, low, *_ = re.findall(r"<td>([^<]*)", row[1])
    assert float(least) <= float(low) <= float(median) < float(p95) + 30
    assert float(added) == pytest.approx(float(median) - 20, abs=2)
    assert not down.strip("–")
    assert 8 < float(up) < 10


def test_the_heading_of_a_measurement_is_its_host(runs: list[Run], page: str) -> None:
    alone = report.render(runs[:1])
    assert "<h1>Measurement of lab.example: before</h1>" in alone
    assert '<p class="about">4 streams cubic · live' in alone
    assert "<h1>Measurement of lab.example</h1>" in page


def test_an_empty_queue_has_no_chart(tmp_path: Path) -> None:
    idle = synthetic_live.run(tmp_path, Line(phases=(("idle", 4),)))
    packed = payload(report.render([idle]))
    assert all("backlog" not in view["lines"] for view in packed["views"])
    titles = [panel["title"] for view in packed["views"] for panel in view["panels"]]
    assert "RTT of each target" in titles
    assert not [title for title in titles if "Backlog" in title or "Drops" in title]


def test_the_page_shades_the_common_phases_and_each_run_s_own(runs: list[Run], page: str) -> None:
    packed = payload(page)
    assert packed["measured"] is True
    assert [span["name"] for span in packed["phases"]] == [
        "idle",
        "download",
        "upload",
        "both",
        "idle 2",
    ]
    for view, run in zip(packed["views"], runs, strict=True):
        assert [span["start"] for span in view["phases"]] == pytest.approx(
            [span[1] for span in series.spans(run, 1)]
        )
        titles = [panel["title"] for panel in view["panels"]]
        assert titles[0] == "Goodput"
        assert "RTT of each target" in titles
        assert "Backlog of eth0 out" in titles
        assert "cwnd of each direction's connections together" in titles
        assert set(view["lines"]) == {"download", "upload", "ping", "backlog"}
    assert packed["phases"][0]["colour"] is None
    assert packed["duration"] >= packed["phases"][-1]["end"]


def test_the_lines_of_the_page_equal_the_tables(runs: list[Run], page: str) -> None:
    packed = payload(page)
    _, y = line(packed, packed["views"][0]["lines"]["ping"])
    np.testing.assert_allclose(y, series.pings(runs[0], 1, "server udp").y, rtol=1e-6)


def test_the_page_has_a_distribution_for_each_phase(runs: list[Run], page: str) -> None:
    assert [cdf["title"] for cdf in payload(page)["cdfs"]] == [
        f"CDF of the ping RTT, {name}" for name in ("idle", "download", "upload", "both", "idle 2")
    ]
    (alone,) = payload(report.render(runs[:1]))["cdfs"]
    assert [curve["label"] for curve in alone["series"]] == [
        "idle",
        "download",
        "upload",
        "both",
        "idle 2",
    ]


def test_a_measurement_and_a_simulation_can_share_a_page(runs: list[Run], tmp_path: Path) -> None:
    packed = payload(report.render([runs[0], synthetic.run(tmp_path / "sim")]))
    assert packed["measured"] is False
    assert packed["phases"] == []


def test_the_page_has_the_same_bytes_each_time(runs: list[Run], page: str) -> None:
    assert report.render(runs) == page


def test_text_from_the_network_is_escaped(tmp_path: Path) -> None:
    nasty = "</script><script>alert(1)</script>"
    session = synthetic_live.session(Line(notes=(nasty,)))
    for flow in session.facts["flows"]:
        if flow["name"] == "gateway":
            flow["name"] = nasty
    made = synthetic_live.of_sessions(session, path=tmp_path / "nasty")
    assert nasty not in report.render([made])
