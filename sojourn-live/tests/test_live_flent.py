"""flent's files: exports have flent's format and are imported again with the same numbers; invalid
files are refused with a clear error."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import synthetic
import synthetic_live
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_live import Line

from sojourn import formats, metrics
from sojourn.cli import status
from sojourn.errors import UserError
from sojourn.figures import series
from sojourn.records import META, Run
from sojourn.records.measurement import MeasurementSettings
from sojourn_live import flent
from sojourn_live.measure import findings, phases, sample_files, sentences


@pytest.fixture(scope="module")
def run() -> Run:
    return synthetic_live.run(None, Line(loss=0.05))


def document(run: Run, **choice: Any) -> dict[str, Any]:
    return flent.document(run, flent.FlentChoice(**choice))


def saved(path: Path, content: object) -> Path:
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    return path


# ----------------------------------------------------------------------------------------- format


@pytest.mark.parametrize("phase", ["download", "upload", "both"])
def test_every_column_is_as_long_as_x(run: Run, phase: str) -> None:
    made = document(run, phase=phase)
    assert made["version"] == 4
    length = len(made["x_values"])
    assert {len(column) for column in made["results"].values()} == {length}
    assert set(made["raw_values"]) == set(made["results"])
    assert made["x_values"][1] == made["metadata"]["STEP_SIZE"] == 0.2
    assert made["metadata"]["TOTAL_LENGTH"] == made["metadata"]["LENGTH"] + 10
    json.dumps(made, allow_nan=False)


def test_times_have_a_fraction_and_end_in_z(run: Run) -> None:
    for key in ("T0", "TIME"):
        assert document(run)["metadata"][key].endswith("Z")
        assert "." in document(run)["metadata"][key]


def test_raw_points_are_on_the_clock_of_t0(run: Run) -> None:
    from datetime import UTC, datetime

    made = document(run, phase="upload")
    t0 = datetime.strptime(made["metadata"]["T0"], flent.TIME).replace(tzinfo=UTC).timestamp()
    first = min(point["t"] for point in made["raw_values"]["TCP upload::1"]) - t0
    assert 5.0 <= first <= 5.2
    lost = [point for point in made["raw_values"]["Ping (ms) ICMP"] if point.get("lost")]
    assert lost
    assert all("val" not in point for point in lost)


def pings(
    made: dict[str, Any], first: float, last: float, series: str = "Ping (ms) ICMP"
) -> list[float | None]:
    """The values of a series' column between two times of flent's axis."""
    return [
        value
        for x, value in zip(made["x_values"], made["results"][series], strict=True)
        if first <= x <= last
    ]


@pytest.mark.parametrize("phase", ["download", "upload", "both"])
def test_the_exported_seconds_before_and_after_a_load_are_idle(run: Run, phase: str) -> None:
    made = document(run, phase=phase)
    length = made["metadata"]["LENGTH"]
    # The line's idle phases are 4 s long, so flent's first and last second are empty.
    for first, last in ((1.2, 4.8), (5.2 + length, 8.8 + length)):
        idle = pings(made, first, last)
        assert None not in idle
        assert max(value for value in idle if value is not None) < 22
    assert set(pings(made, 0, 0.6) + pings(made, 9.4 + length, 10 + length)) == {None}
    assert max(value or 0 for value in pings(made, 5, 5 + length)) > 35
    spans = [
        (each["name"], each["start_ns"], each["end_ns"])
        for each in made["metadata"]["LAB"]["phases"]
    ]
    s = 10**9
    end = 5 * s + round(length * s)
    assert spans == [("idle", s, 5 * s), (phase, 5 * s, end), ("idle 2", end, end + 4 * s)]
    times = [point["t"] for point in made["raw_values"]["Ping (ms) ICMP"]]
    assert times == sorted(times)


def test_without_an_idle_phase_the_seconds_on_that_side_are_null() -> None:
    made = document(
        synthetic_live.run(None, Line(phases=(("download", 8), ("upload", 8), ("idle", 4)))),
        phase="upload",
    )
    assert set(pings(made, 0, 4.6)) == {None}
    assert None not in pings(made, 13.2, 16.8)
    assert max(value or 0 for value in pings(made, 13.2, 18)) < 22


def test_of_several_idle_phases_the_nearest_is_exported() -> None:
    line = Line(phases=(("idle", 4), ("download", 8), ("idle", 4), ("upload", 8), ("idle", 4)))
    made = synthetic_live.run(None, line)
    for phase, names in (
        ("download", ["idle", "download", "idle 2"]),
        ("upload", ["idle 2", "upload", "idle 3"]),
    ):
        listed = document(made, phase=phase)["metadata"]["LAB"]["phases"]
        assert [each["name"] for each in listed] == names


def test_pings_by_udp_and_by_icmp_are_exported_and_imported_as_two_series(
    run: Run, tmp_path: Path
) -> None:
    made = document(run)
    titles = [
        name for name in made["raw_values"] if name.startswith("Ping") and made["raw_values"][name]
    ]
    assert titles == ["Ping (ms) UDP BE1", "Ping (ms) ICMP", "Ping (ms) to gateway"]
    values = [[point.get("val") for point in made["raw_values"][name]] for name in titles[:2]]
    assert values[0] != values[1]
    back = flent.read(saved(tmp_path / "x.flent.gz", made))
    assert [flow.name for flow in back.meta.flows if flow.kind == "ping"] == [
        "server udp",
        "server icmp",
        "gateway",
    ]
    sent = back.table("probe").group_by("probe").len().to_dicts()
    assert {row["probe"]: row["len"] for row in sent} == {
        name: len(made["raw_values"][series])
        for name, series in zip(("server udp", "server icmp", "gateway"), titles, strict=True)
    }


def test_a_load_one_way_is_tcp_nup_or_tcp_ndown(run: Run) -> None:
    up, down = document(run, phase="upload"), document(run, phase="download")
    assert up["metadata"]["NAME"] == "tcp_nup"
    assert up["metadata"]["TEST_PARAMETERS"]["upload_streams"] == 4
    assert {
        "TCP upload::1",
        "TCP upload::4",
        "TCP upload avg",
        "TCP upload sum",
        "TCP upload fairness",
    } <= set(up["results"])
    assert down["metadata"]["NAME"] == "tcp_ndown"
    assert "TCP download::4" in down["results"]


def test_a_load_both_ways_is_rrul_without_marks(run: Run) -> None:
    made = document(run)
    assert made["metadata"]["NAME"] == "rrul_be"
    assert {
        "TCP upload BE",
        "TCP download BE4",
        "TCP totals",
        "Ping (ms) UDP BE1",
        "Ping (ms) ICMP",
    } <= set(made["results"])
    assert "mark" in made["metadata"]["NOTE"]


def test_rrul_by_name_has_its_four_classes(run: Run) -> None:
    made = document(run, test="rrul")
    assert made["metadata"]["NAME"] == "rrul"
    assert {"TCP upload BE", "TCP upload BK", "TCP upload CS5", "TCP upload EF"} <= set(
        made["results"]
    )
    assert "Ping (ms) UDP BE" in made["results"]


def test_a_load_with_other_numbers_of_streams_is_rrul_be_nflows() -> None:
    made = document(synthetic_live.run(None, Line(streams=2)))
    assert made["metadata"]["NAME"] == "rrul_be_nflows"
    assert {"TCP upload BE::1", "TCP download BE::2"} <= set(made["results"])
    with pytest.raises(UserError, match="can't be exported as rrul"):
        document(synthetic_live.run(None, Line(streams=2)), test="rrul")


def test_computed_series_follow_from_the_raw_ones(run: Run) -> None:
    results = document(run)["results"]
    at = 60
    ways = {
        way: [results[f"TCP {way} BE{i}"][at] for i in ("", 2, 3, 4)]
        for way in ("upload", "download")
    }
    for way, parts in ways.items():
        assert results[f"TCP {way} sum"][at] == pytest.approx(sum(parts), abs=1e-5)
        assert results[f"TCP {way} avg"][at] == pytest.approx(sum(parts) / 4, abs=1e-5)
    assert results["TCP totals"][at] == pytest.approx(
        sum(ways["upload"] + ways["download"]), abs=1e-5
    )


def test_the_local_qdisc_is_exported_too(run: Run) -> None:
    made = document(run, phase="upload")
    points = made["raw_values"]["qdisc_stats_localhost"]
    assert max(point["backlog_bytes"] for point in points) == 125_000
    assert made["metadata"]["TEST_PARAMETERS"]["qdisc_stats_interfaces"] == "eth0"
    assert "qdisc_stats_localhost::dropped" in made["results"]


# ------------------------------------------------------------------------------------- round trip


@pytest.mark.parametrize("phase", ["download", "upload", "both"])
def test_an_exported_measurement_is_imported_unchanged(
    run: Run, phase: str, tmp_path: Path
) -> None:
    file = flent.export(run, tmp_path / "x.flent.gz", flent.FlentChoice(phase))
    back = flent.read(file)
    assert back.meta.engine == "flent"
    (ours,), (theirs,) = phases.cut(run).of(phase), phases.cut(back).of(phase)
    assert theirs.seconds == pytest.approx(ours.seconds, abs=1e-6)
    for target in ("server udp", "server icmp", "gateway"):
        assert theirs.pings[target].sent == ours.pings[target].sent
        assert theirs.pings[target].lost == ours.pings[target].lost
        np.testing.assert_allclose(
            theirs.pings[target].rtt_ms, ours.pings[target].rtt_ms, atol=2e-6
        )
    np.testing.assert_allclose(
        theirs.pings["server udp"].forward_ms, ours.pings["server udp"].forward_ms, atol=2e-6
    )
    for way in ("down", "up"):
        assert theirs.mbps(way) == pytest.approx(ours.mbps(way), rel=1e-5, nan_ok=True)
    np.testing.assert_allclose(theirs.srtt_ms(), ours.srtt_ms(), atol=1e-5)
    assert [len(stream.cwnd_bytes) for stream in theirs.streams] == [
        len(stream.cwnd_bytes) for stream in ours.streams
    ]
    np.testing.assert_allclose(theirs.streams[0].cwnd_bytes, ours.streams[0].cwnd_bytes, atol=1.0)
    span = ours.phase
    queue = run.table("queue", 1).filter(
        pl.col("t_ns").is_between(span.start_ns, span.end_ns, closed="left")
    )
    assert back.table("queue", 1)["backlog_bytes"].max() == queue["backlog_bytes"].max()


def test_every_compression_of_flent_is_read(run: Run, tmp_path: Path) -> None:
    text = json.dumps(document(run)).encode()
    packings = (bytes, bz2.compress, gzip.compress, lzma.compress)
    means = set()
    for number, pack in enumerate(packings):
        (tmp_path / str(number)).write_bytes(pack(text))
        means.add(flent.read(tmp_path / str(number)).table("probe")["rtt_ns"].mean())
    assert len(means) == 1


def test_a_pipe_is_read_once(run: Run, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = gzip.compress(json.dumps(document(run)).encode())
    with ThreadPoolExecutor() as writer:
        writer.submit(pipe.write_bytes, text)
        content = formats.open_file(pipe)
    _, measurement = formats.read(content)
    assert not isinstance(measurement, formats.Texts)
    assert measurement.run(content).meta.engine == "flent"


def test_a_file_of_flent_has_phases_idle_load_and_idle(tmp_path: Path) -> None:
    """Written by hand in the form of flent 2.3.0: netperf's uneven intervals, no ss, a lost ping as
    a gap."""
    t0 = 1_588_855_600.0
    pings = [
        {"t": t0 + 0.2 * i, "val": 20.0 if not 25 <= i < 50 else 120.0, "seq": i}
        for i in range(75)
        if i != 30
    ]
    stream = [{"t": t0 + 5 + 0.5 * i, "val": 8.0, "dur": 0.5} for i in range(1, 11)]
    file = saved(
        tmp_path / "own.flent.gz",
        {
            "version": 4,
            "x_values": [0.2 * i for i in range(75)],
            "results": {"Ping (ms) ICMP": [None] * 75, "TCP upload": [None] * 75, "Ping (ms) avg": [None] * 75},
            "raw_values": {"Ping (ms) ICMP": pings, "TCP upload": stream, "Ping (ms) avg": []},
            "metadata": {
                "NAME": "tcp_1up", "TITLE": "cable", "HOST": "netperf.example", "LENGTH": 5, "TOTAL_LENGTH": 15, "STEP_SIZE": 0.2,
                "T0": "2020-05-07T12:46:40.000000Z", "TIME": "2020-05-07T12:46:40.000000Z", "FLENT_VERSION": "2.3.0",
            },
        },
    )  # fmt: skip
    run = flent.read(file)
    whole = phases.cut(run)
    assert whole.names == ("idle", "upload", "idle 2")
    assert whole.of("upload")[0].mbps("up") == pytest.approx(8.0)
    assert np.median(whole.rtts("upload")) == 120
    assert np.median(whole.rtts("idle")) == 20
    assert "cable" in run.meta.title
    assert run.meta.facts["1"]["zero_ns"] == 1_588_855_600 * 10**9


T0_S = 1_588_855_600.0


def netperfs(tmp_path: Path, **series: list[dict[str, Any]]) -> Run:
    """flent's tcp_ndown of ten seconds, with these series of raw values."""
    names = {"ping": "Ping (ms) ICMP", "qdisc": "qdisc_stats_router"}
    values = {names.get(key, f"TCP download::{key[-1]}"): points for key, points in series.items()}
    return flent.read(
        saved(
            tmp_path / "own.flent.gz",
            {
                "version": 4,
                "x_values": [0.2 * i for i in range(100)],
                "results": {name: [None] * 100 for name in values if not name.startswith("qdisc")},
                "raw_values": values,
                "metadata": {
                    "NAME": "tcp_ndown", "TITLE": "", "HOST": "netperf.example", "LENGTH": 10, "TOTAL_LENGTH": 20,
                    "T0": "2020-05-07T12:46:40.000000Z", "TIME": "2020-05-07T12:46:40.000000Z", "STEP_SIZE": 0.2,
                },
            },
        )
    )  # fmt: skip


def sampled(began_s: float, mbps: float = 10.0, dur_s: float = 0.2, count: int = 49) -> list[Any]:
    return [
        {"t": T0_S + began_s + dur_s * (i + 1), "val": mbps, "dur": dur_s} for i in range(count)
    ]


def answered(numbers: list[int], first: int = 0) -> list[Any]:
    return [{"t": T0_S + 0.2 * i + 0.07, "val": 20.0, "seq": (first + i) % 2**16} for i in numbers]


def test_streams_sampled_at_different_times_add_up(tmp_path: Path) -> None:
    run = netperfs(
        tmp_path, **{f"s{i}": sampled(5.004 + 0.013 * i) for i in range(4)}, ping=answered([*range(100)])
    )  # fmt: skip
    whole = phases.cut(run)
    (part,) = whole.of("download")
    assert part.mbps("down") == pytest.approx(40, rel=0.002)
    # So is each interval's sum, which pages and comparisons show.
    assert np.median(part.goodput("down")[1]) == pytest.approx(40, rel=0.002)
    drawn = series.by_direction(run, series.goodputs(run, 1))["download"]
    assert np.nanmedian(drawn.y) == pytest.approx(40, rel=0.002)


def test_streams_of_different_intervals_add_up(tmp_path: Path) -> None:
    run = netperfs(tmp_path, s0=sampled(5, 20, 0.5, 20), s1=sampled(5.03, 5, 0.07, 142))
    (part,) = phases.cut(run).of("download")
    assert part.mbps("down") == pytest.approx(25, rel=0.002)


def test_a_sample_right_after_another_one_gives_no_rate(tmp_path: Path) -> None:
    points = sampled(5, count=49)
    points += [{"t": points[-1]["t"] + 1e-6, "val": 10.0, "dur": 0.05}]
    (part,) = phases.cut(netperfs(tmp_path, s0=points, s1=sampled(5.01))).of("download")
    assert part.mbps("down") == pytest.approx(20, rel=0.01)


def test_bytes_of_a_stream_after_the_load_belong_to_the_next_phase(
    tmp_path: Path,
) -> None:
    # Two seconds are missing, because flent drops samples that are too long. The last one ends half
    # a second late.
    points = [*sampled(5, 8, 0.5, 6), *sampled(10, 8, 0.5, 11)]
    whole = phases.cut(netperfs(tmp_path, s0=points, ping=answered([*range(100)])))
    first, load, last = whole.parts
    assert np.isnan(first.mbps("down"))
    assert load.mbps("down") == pytest.approx(8 * 8 / 10)
    assert last.mbps("down") == pytest.approx(8 * 0.5 / 5)


def test_a_slow_stream_is_averaged_over_the_whole_load(tmp_path: Path) -> None:
    # Four intervals of two seconds: netperf reports nothing for the last two.
    (part,) = phases.cut(netperfs(tmp_path, s0=sampled(5, 1, 2.0, 4))).of("download")
    assert part.mbps("down") == pytest.approx(0.8)


def test_a_stream_that_stops_delivers_nothing_in_the_rest_of_the_load(tmp_path: Path) -> None:
    (part,) = phases.cut(netperfs(tmp_path, s0=sampled(5, count=25))).of("download")
    assert part.seconds == pytest.approx(10)
    assert part.mbps("down") == pytest.approx(5)


def test_pings_that_are_missing_in_seq_were_lost(tmp_path: Path) -> None:
    # Sequence numbers wrap at 2^16; one answer is duplicate.
    numbers = [i for i in range(100) if not 40 <= i < 60]
    points = answered([*numbers, 99], first=2**16 - 30)
    run = netperfs(tmp_path, s0=sampled(5), ping=points)
    found = findings.find(run)
    assert [(row.spread.sent, row.spread.lost) for row in found.rows] == [
        (25, 0),
        (50, 20),
        (25, 0),
    ]
    assert "100 probes to ICMP in 1 repeat, 20 lost" in sentences.confidence(found)[0]


def test_the_first_of_two_answers_to_a_ping_counts(tmp_path: Path) -> None:
    points = [*answered([*range(50)]), {"t": T0_S + 3.0, "val": 900.0, "seq": 10}]
    probes = netperfs(tmp_path, s0=sampled(5), ping=points).table("probe", 1)
    assert probes["seq"].to_list() == [*range(50)]
    assert set(probes["rtt_ns"]) == {20_000_000}


@pytest.mark.parametrize(
    ("name", "test", "swapped"),
    [
        ("TCP download::1", "TCP_MAERTS", False),
        ("TCP download::1", "TCP_STREAM", True),
        ("TCP upload", "TCP_STREAM", False),
        ("TCP upload", "TCP_MAERTS", True),
    ],
)
def test_netperf_s_command_shows_that_the_directions_were_swapped(
    tmp_path: Path, name: str, test: str, *, swapped: bool
) -> None:
    made = {
        "version": 4, "x_values": [0.2 * i for i in range(60)], "results": {name: [None] * 60},
        "raw_values": {name: sampled(0)},
        "metadata": {
            "NAME": "tcp", "TITLE": "", "HOST": "h", "LENGTH": 10, "T0": "2020-05-07T12:46:40.000000Z",
            "SERIES_META": {name: {"COMMAND": f"netperf -t {test}"}},
        },
    }  # fmt: skip
    notes = flent.read(saved(tmp_path / "swapped.flent.gz", made)).meta.facts["1"]["notes"]
    assert any("have the opposite ones" in note for note in notes) == swapped


def test_nothing_arrives_in_a_gap_of_more_than_half_a_sample(tmp_path: Path) -> None:
    # From 7 to 8.5 s there is no sample.
    points = [*sampled(5, 8, 2.0, 1), *sampled(8.5, 8, 2.0, 3)]
    (part,) = phases.cut(netperfs(tmp_path, s0=points)).of("download")
    t, mbps = part.goodput("down")
    np.testing.assert_allclose(mbps[(t > 7.05) & (t < 8.45)], 0, atol=1e-6)
    np.testing.assert_allclose(mbps[(t > 5.15) & (t < 6.95)], 8, rtol=1e-3)


def test_a_ping_belongs_to_the_time_at_which_it_was_sent(tmp_path: Path) -> None:
    points = [{"t": T0_S + 0.2 * i + 1.2, "val": 1200.0, "seq": i} for i in range(80)]
    sent = netperfs(tmp_path, s0=sampled(5), ping=points).table("probe", 1)["t_ns"]
    np.testing.assert_allclose(sent.to_numpy() / 1e9, 0.2 * np.arange(80), atol=1e-6)


def test_a_ping_that_was_sent_before_the_test_began_belongs_to_its_beginning(
    tmp_path: Path,
) -> None:
    points = [{"t": T0_S + 0.2 * i + 0.05, "val": 120.0, "seq": i} for i in range(80)]
    sent = netperfs(tmp_path, s0=sampled(5), ping=points).table("probe", 1)["t_ns"]
    np.testing.assert_allclose(sent.to_numpy()[:2] / 1e9, [0, 0.13], atol=1e-6)


def test_impossible_values_are_null_and_reported(tmp_path: Path) -> None:
    points = [
        {"t": T0_S + i, "dropped": 2, "backlog_bytes": 10, "sent_bytes": 100 * i} for i in range(9)
    ]
    points[4] |= {"dropped": -5, "sent_bytes": 3}
    pings = answered([*range(100)])
    pings[7]["val"] = -3.0
    run = netperfs(tmp_path, s0=[*sampled(5), {"t": T0_S + 15, "val": 1e9, "dur": 0.2}], qdisc=points, ping=pings)  # fmt: skip
    queue = run.table("queue", 1)
    assert queue["dropped_packets"].to_list() == [2, 2, 2, 2, None, 2, 2, 2, 2]
    # The counter was reset.
    assert queue["sent_bytes"].to_list() == [0, 100, 100, 100, None, 497, 100, 100, 100]
    assert phases.cut(run).of("download")[0].mbps("down") == pytest.approx(10)
    notes = run.meta.facts["1"]["notes"]
    assert "1 impossible value of dropped in qdisc_stats_router is left out, the first: -5." in notes  # fmt: skip
    assert "1 impossible value of goodput in TCP download::0 is left out, the first: 1e+09." in notes  # fmt: skip
    assert "1 impossible value of RTT in Ping (ms) ICMP is left out, the first: -3." in notes


def test_a_file_of_iterations_is_refused(tmp_path: Path) -> None:
    file = saved(
        tmp_path / "x.flent.gz",
        {
            "x_values": [0, 1, 2], "results": {"TCP upload": [1.0, 2.0, 3.0]},
            "metadata": {"NAME": "iterated_bidirectional", "HOST": "h", "LENGTH": 60, "TIME": "2012-11-27T12:03:16"},
        },
    )  # fmt: skip
    with pytest.raises(UserError, match="numbers of iterations, not times"):
        flent.read(file)


def test_a_series_without_raw_points_is_read_from_its_column(run: Run, tmp_path: Path) -> None:
    made = document(run, phase="upload")
    made["raw_values"] = {}
    back = flent.read(saved(tmp_path / "x.flent.gz", made))
    ours, theirs = phases.cut(run).of("upload")[0], phases.cut(back).of("upload")[0]
    assert theirs.mbps("up") == pytest.approx(ours.mbps("up"), rel=0.05)


def test_unknown_losses_are_exported_and_imported_as_unknown(run: Run, tmp_path: Path) -> None:
    made = document(run, phase="upload")
    pings = [name for name in made["raw_values"] if name.startswith("Ping")]
    for name in pings:
        kept = [point for point in made["raw_values"][name] if "val" in point]
        made["raw_values"][name] = [{"t": one["t"], "val": one["val"]} for one in kept]
    first = flent.read(saved(tmp_path / "x.flent.gz", made))
    again = flent.read(saved(tmp_path / "y.flent.gz", document(first)))
    for back in (first, again):
        probes = metrics.summary(back).to_dict()["runs"][0]["probes"]
        assert len(probes) == len(pings) > 0
        assert [(one["sent"], one["loss_rate"]) for one in probes] == [(None, None)] * len(pings)
        assert any(
            "are not known: the file has no sequence numbers" in note
            for note in back.meta.facts["1"]["notes"]
        )


# --------------------------------------------------------------------------------------- refusals


def test_a_run_of_the_simulator_is_not_exported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no loaded phase"):
        flent.export(synthetic.run(tmp_path / "sim"), tmp_path / "x.flent.gz")


def test_a_name_that_flent_does_not_open_is_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not open such a name"):
        flent.export(run, tmp_path / "x.json.gz")


def test_numbers_that_flents_files_do_not_have_are_null(run: Run, tmp_path: Path) -> None:
    made = document(run, phase="upload")
    for point in made["raw_values"]["qdisc_stats_localhost"]:
        del point["sent_bytes"]
    back = flent.read(saved(tmp_path / "x.flent.gz", made))
    [seed] = metrics.summary(back).to_dict()["runs"]
    assert seed["packets"] is None
    [queue] = seed["queues"]
    for number in ("arrived_packets", "dropped_packets", "drop_rate", "utilisation"):
        assert queue[number] is None, number
    upload = next(flow for flow in seed["flows"] if flow["kind"] == "bulk")
    assert upload["goodput_mbps"] > 0
    for number in ("sent_packets", "loss_rate", "timeouts", "base_rtt_ms"):
        assert upload[number] is None, number
    assert seed["probes"][0]["sent"] > 0
    line = series.throughput(series.queue(back, 1, queue["link"]))
    assert line.t.size > 0
    assert np.isnan(line.y).all()


def test_a_missing_phase_or_repeat_is_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no load 'idle'"):
        document(run, phase="idle")
    with pytest.raises(UserError, match="no repeat 7"):
        document(run, seed=7)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not a flent file"),
        (b"\x1f\x8bnonsense", "packed by gzip and can't be unpacked"),
        (b"BZhnonsense", "packed by bzip2 and can't be unpacked"),
        (b"[1, 2]", "no metadata"),
        (b'{"version": 5, "metadata": {}}', "version 5"),
        (b'{"version": "4", "metadata": {}}', "version '4'"),
        (b'{"version": 0, "metadata": {}}', "version 0"),
        (b'{"metadata": {}}', "not a flent file"),
        (b'{"version": 4, "metadata": {}}', "not a flent file"),
        (
            b'{"version": 4, "metadata": {"T0": "yesterday"}, "x_values": [], "results": {}}',
            "not a flent file",
        ),
    ],
)
def test_a_file_that_is_not_flents_is_refused(content: bytes, says: str, tmp_path: Path) -> None:
    file = tmp_path / "x.flent.gz"
    file.write_bytes(content)
    with pytest.raises(UserError, match=says):
        flent.read(file, MeasurementSettings(out=tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_file_of_an_unknown_format_is_refused(run: Run, tmp_path: Path) -> None:
    made = document(run)
    made["results"] = {"cpu_stats": [None] * len(made["x_values"])}
    made["raw_values"] = {}
    with pytest.raises(UserError, match="neither pings nor streams"):
        flent.read(saved(tmp_path / "x.flent.gz", made))


@pytest.mark.parametrize(
    "changes",
    [
        {"T0": "1950-01-01T00:00:00.000000Z"},
        {
            "LAB": {
                "phases": [
                    {"name": "idle", "kind": "idle", "start_ns": 2, "end_ns": 1, "complete": True}
                ]
            }
        },
    ],
    ids=["before 1970", "backwards"],
)
def test_impossible_times_are_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    made = json.loads(json.dumps(SMALL))
    made["metadata"] |= changes
    with pytest.raises(UserError, match="not a flent file"):
        flent.read(
            saved(tmp_path / "x.flent.gz", made),
            MeasurementSettings(out=tmp_path / "out"),
        )
    assert not (tmp_path / "out").exists()


def _spoiled(value: Any, where: list[int], what: Any) -> Any:
    """The document with one value replaced, at the place given by these numbers."""
    if not where or not isinstance(value, (dict, list)) or not value:
        return what
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = keys[where[0] % len(keys)]
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[key] = _spoiled(value[key], where[1:], what)
    return copy


SMALL = flent.document(
    synthetic_live.run(None, Line(phases=(("idle", 1), ("upload", 2)), probe_ms=200, streams=1))
)


RECORDED = Path(__file__).parent / "recordings" / "flent"
SPOILED = [
    SMALL,
    *(
        json.loads(gzip.decompress((RECORDED / f"{name}.flent.gz").read_bytes()))
        for name in ("voip-1up-4", "tcp_nup-2", "rrul-none")
    ),
]


@settings(max_examples=150)
@given(
    content=st.sampled_from(SPOILED),
    where=st.lists(st.integers(0, 50), min_size=1, max_size=5),
    what=st.none()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=5)
    | st.lists(st.integers(), max_size=3),
)
def test_a_damaged_file_is_either_read_or_refused_without_a_crash(
    content: dict[str, Any], where: list[int], what: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("spoiled") / "x.flent.gz"
    file.write_bytes(gzip.compress(json.dumps(_spoiled(content, where, what)).encode()))
    try:
        found = flent.read(file)
    except UserError as error:
        assert error.hint
    else:
        phases.cut(Run.open(found.path))


# ---------------------------------------------------------------------------------- hostile files


def packed(*parts: bytes, times: int = 1) -> bytes:
    """gzip of three parts, the middle one repeated `times` times."""
    first, middle, last = parts
    buffer = io.BytesIO()
    with gzip.open(buffer, "wb", compresslevel=1) as stream:
        stream.write(first)
        for _ in range(times):
            stream.write(middle)
        stream.write(last)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (packed(b"[", b"[]," * 2**16, b"0]", times=32), "more than 3 million values"),
        (packed(b"[", b'{"":0},' * 2**16, b"0]", times=16), "more than 3 million values"),
        (packed(b'["', b"x" * 10**6, b'"', times=101), "larger than 100 MB"),
        (bz2.compress(b"[" + b" " * 10**8, 1), "larger than 100 MB"),
        (b"[" * 10**6, "not a flent file"),
        (b"1" * 5000, "not a flent file"),
    ],
    ids=["lists", "objects", "gzip", "bz2", "deep", "digits"],
)
def test_a_file_that_would_fill_the_memory_is_refused_before_it_does(
    content: bytes, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.flent.gz"
    file.write_bytes(content)
    if "not a" not in says:
        monkeypatch.setattr(json, "loads", lambda _: pytest.fail("objects were built"))
    with pytest.raises(UserError, match=says):
        flent.read(file)


def test_an_endless_file_is_read_no_further_than_the_longest_measurement() -> None:
    with pytest.raises(UserError, match="larger than 100 MB"):
        flent.read(Path("/dev/zero"))


def test_a_lack_of_memory_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: object) -> Any:
        raise MemoryError

    monkeypatch.setattr(json, "loads", none)
    with pytest.raises(UserError, match="more memory than available"):
        flent.read(saved(tmp_path / "x.flent.gz", SMALL))


NASTY = "=HYPERLINK(1)\x1b]0;pwn\x07"


def test_control_characters_of_a_file_reach_no_terminal_metadata_or_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = json.loads(json.dumps(SMALL))
    made["metadata"] |= {"TITLE": NASTY, "HOST": NASTY}
    made["metadata"]["LAB"]["targets"] = dict.fromkeys(made["results"], NASTY)
    for phase in made["metadata"]["LAB"]["phases"]:
        phase["name"] = f"{NASTY} {phase['name']}"
    file, out = saved(tmp_path / "x.flent.gz", made), tmp_path / "out"
    assert status(["import", str(file), "-o", str(out)]) == 0
    assert status(["report", str(out), "-o", str(tmp_path / "page.html")]) == 0
    assert (
        status(["export", str(out), "-o", str(tmp_path / "x.csv"), "-o", str(tmp_path / "x.json")])
        == 0
    )
    said = capsys.readouterr()
    kept = [said.out, said.err, (out / META).read_text(), (out / "scenario.toml").read_text()]
    kept += [(tmp_path / name).read_text() for name in ("page.html", "x.csv", "x.json")]
    assert all("HYPERLINK" in text for text in kept[2:])
    for text in kept:
        assert "\x1b" not in text
        assert "\\u001b" not in text
        assert "\x07" not in text
    # Targets with the same name get different ones.
    names = [flow.name for flow in Run.open(out).meta.flows if flow.kind == "ping"]
    assert len(names) == len(set(names)) > 1


def test_a_name_does_not_become_a_formula_in_a_spreadsheet(tmp_path: Path) -> None:
    made = json.loads(json.dumps(SMALL))
    pings = [name for name in made["results"] if name.startswith("Ping")]
    evil = ["=1+1", "+1", "-1", "@sum", "plain", "1-2"]
    made["metadata"]["LAB"]["targets"] = dict(zip(pings, evil, strict=False))
    given = evil[: len(pings)]
    for name in evil[len(pings) :]:
        made["results"][f"Ping (ms) {name}"] = made["results"][pings[0]]
        given.append(name)
    back = flent.read(saved(tmp_path / "x.flent.gz", made))
    text = sample_files.csv(back)
    found = set(pl.read_csv(io.StringIO(text), infer_schema=False)["series"].to_list())
    assert {"'=1+1", "'+1", "'-1", "'@sum", "plain", "1-2"} <= found
    assert pl.read_csv(io.StringIO(text))["value"].dtype == pl.Float64
    assert sample_files.table(back)["series"].is_in(given).any()


# ----------------------------------------------------------------------------------- flent itself

FLENT = os.environ.get("FLENT", "")


@pytest.mark.skipif(not FLENT, reason="flent itself is only asked where FLENT names its program")
@pytest.mark.parametrize("phase", ["download", "upload", "both"])
def test_flent_opens_and_plots_it(run: Run, phase: str, tmp_path: Path) -> None:
    file = flent.export(run, tmp_path / "x.flent.gz", flent.FlentChoice(phase))
    plots = (
        ["totals", "backlog", "tcp_cwnd", "tcp_rtt_cdf"]
        if phase != "both"
        else ["all_scaled", "ping_cdf", "backlog"]
    )
    for plot in plots:
        picture = tmp_path / f"{plot}.png"
        done = subprocess.run(
            [FLENT, "-f", "plot", "-p", plot, "-o", str(picture), str(file)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert picture.stat().st_size > 5_000, done.stderr
