"""Findings of measurements of lines with known queues: phases, induced delay, buffers, places,
scores."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import synthetic
import synthetic_live
from synthetic_live import Line

from sojourn import metrics
from sojourn.digits import three
from sojourn.judgement import added
from sojourn.linux.operations import parse_shaped_rate
from sojourn.records import Run, RunError
from sojourn_live.cli import measurement_text as terminal
from sojourn_live.measure import findings, phases, sample_files, sentences
from sojourn_live.measure.findings import Findings


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One measurement of the standard line."""
    return synthetic_live.run(tmp_path_factory.mktemp("live") / "home", Line())


@pytest.fixture(scope="module")
def found(run: Run) -> Findings:
    return findings.find(run)


def of(line: Line) -> Findings:
    return findings.find(synthetic_live.run(None, line))


# ---------------------------------------------------------------------------------------- the Run


def test_a_measurement_is_a_run_like_any_other(run: Run) -> None:
    assert run.meta.engine == "live"
    assert run.seeds == (1,)
    assert {"probe", "flow", "flows", "queue", "links"} <= set(run.tables())
    assert [flow.direction for flow in run.meta.flows if flow.kind == "bulk"].count("up") == 8
    assert metrics.summary(run).to_dict()["runs"][0]["probes"][0]["sent"] > 600


def test_its_phases_and_facts_are_in_meta_json(run: Run) -> None:
    meta = json.loads((run.path / "meta.json").read_text())
    assert [phase["name"] for phase in meta["phases"]] == [
        "idle",
        "download",
        "upload",
        "both",
        "idle 2",
    ]
    assert meta["phases"][1]["kind"] == "download"
    assert meta["facts"]["1"]["server"]["host"] == "lab.example"
    assert Run.open(run.path).meta.phases == run.meta.phases


def test_a_run_of_the_simulator_has_no_phases(tmp_path: Path) -> None:
    assert synthetic.run(tmp_path / "sim").meta.phases == ()


def test_a_meta_json_without_phases_is_read(tmp_path: Path) -> None:
    made = synthetic.run(tmp_path / "sim")
    meta = json.loads((made.path / "meta.json").read_text())
    for key in ("phases", "facts"):
        del meta[key]
    for flow in meta["flows"]:
        del flow["direction"]
    (made.path / "meta.json").write_text(json.dumps(meta))
    assert Run.open(made.path).meta.phases == ()


def test_the_request_is_valid_toml(run: Run) -> None:
    import tomllib

    assert tomllib.loads(run.scenario_text)["measurement"]["host"] == "lab.example"


def test_a_title_can_not_break_the_toml() -> None:
    import tomllib

    from sojourn.records.measurement import MeasurementSettings, create

    nasty = 'a "quoted" \\ one\n[measurement]\x00'
    made = create(nasty, "1", [("host", nasty)], MeasurementSettings(), "0")
    assert tomllib.loads(made.scenario_text)["title"] == 'a "quoted" \\ one�[measurement]�'


def test_flows_of_only_a_later_repeat_are_added_to_the_run() -> None:
    made = synthetic_live.run(None, Line(phases=(("idle", 2), ("upload", 3))), Line(seed=2))
    assert made.seeds == (1, 2)
    whole = phases.cut(made)
    assert [part.phase.name for part in whole.parts if part.seed == 1] == ["idle", "upload"]
    assert [part.phase.name for part in whole.parts if part.seed == 2] == [
        "idle",
        "download",
        "upload",
        "both",
        "idle 2",
    ]
    # Flows are numbered by name: the second repeat's upload is the same flow as the first one's.
    assert [len(part.streams) for part in whole.of("upload")] == [4, 4]
    assert whole.of("download")[0].mbps("down") == pytest.approx(50 / 1.0456, rel=0.02)


def test_a_flow_that_a_repeat_lacks_has_no_counts_in_it() -> None:
    made = synthetic_live.run(None, Line(), Line(seed=2, phases=(("idle", 2), ("upload", 3))))
    absent = made.table("flows", 2).filter(pl.col("flow").str.starts_with("download"))
    assert absent.height == 4
    assert absent.drop("flow").null_count().row(0) == (4,) * (absent.width - 1)


# ----------------------------------------------------------------------------------------- phases


def test_probes_belong_to_the_phase_they_were_sent_in(run: Run) -> None:
    whole = phases.cut(run)
    for part in whole.parts:
        t = part.pings["server udp"].t_s
        assert (t >= part.phase.start_ns / 1e9).all()
        assert (t < part.phase.end_ns / 1e9).all()
    sent = {part.phase.name: part.pings["gateway"].sent for part in whole.parts}
    assert sent == {"idle": 80, "download": 160, "upload": 160, "both": 160, "idle 2": 80}


def test_goodput_is_bytes_over_time(run: Run) -> None:
    (part,) = phases.cut(run).of("upload")
    table = run.table("flows", 1).to_dicts()
    delivered = sum(row["delivered_bytes"] for row in table if row["flow"].startswith("upload-"))
    assert part.mbps("up") == pytest.approx(delivered * 8 / 8e6, rel=0.02)
    assert math.isnan(part.mbps("down"))


def test_a_run_without_phases_is_one_phase_after_the_warm_up(tmp_path: Path) -> None:
    whole = phases.cut(synthetic.run(tmp_path / "sim"))
    assert whole.names == ("whole",)
    assert whole.idle is None
    rtt = whole.of("whole")[0].pings["ping"]
    assert rtt.t_s.min() >= 5
    assert findings.find(whole.run).worst is None


# ------------------------------------------------------------------------------------ the numbers


def test_the_induced_delay_is_the_queue(found: Findings) -> None:
    added = {row.phase: row.induced for row in found.rows}
    assert added["idle"] is None
    upload, both = added["upload"], added["both"]
    assert upload is not None
    assert both is not None
    # 125 kB at 10 Mbit/s are 100 ms; at 50 Mbit/s 20 ms more.
    assert upload.p95.value == pytest.approx(100, rel=0.02)
    assert both.p95.value == pytest.approx(120, rel=0.02)
    assert 70 < upload.median.low < upload.median.value < upload.median.high < 100
    assert found.induced_p95_ms == both.p95.value


@pytest.mark.parametrize(
    ("up_bytes", "down_bytes"), [(12_500, 62_500), (125_000, 125_000), (1_000_000, 500_000)]
)
def test_the_measured_buffer_depth_is_that_of_the_line(up_bytes: int, down_bytes: int) -> None:
    found = of(Line(up_buffer=up_bytes, down_buffer=down_bytes))
    depth = {buffer.direction: buffer for buffer in found.buffers}
    assert depth["up"].bytes == pytest.approx(up_bytes, rel=0.1)
    assert depth["down"].bytes == pytest.approx(down_bytes, rel=0.1)
    assert depth["up"].ms == pytest.approx(up_bytes * 8 / 10e3, rel=0.1)
    assert depth["up"].overflowed is True


def test_a_single_late_reply_does_not_count_as_a_queue() -> None:
    assert findings._standing(np.array([20.0, 180, 20, 90, 95, 92])) == 92


def test_one_way_delays_separate_the_directions_of_a_load_in_both_directions() -> None:
    found = of(Line(phases=(("idle", 4), ("both", 8))))
    depth = {buffer.direction: buffer.ms for buffer in found.buffers}
    assert depth["up"] == pytest.approx(100, rel=0.05)
    assert depth["down"] == pytest.approx(20, rel=0.1)


def test_the_queue_is_between_the_last_target_without_delay_and_the_first_with_it(
    found: Findings,
) -> None:
    (place,) = [place for place in found.places if place.phase == "upload"]
    assert (place.after, place.nearest) == ("gateway", "server udp")
    assert "between gateway and server udp" in " ".join(sentences.sentences(found))


def test_a_queue_before_the_nearest_target_is_at_home() -> None:
    found = of(Line(queue_at_gateway=True, phases=(("idle", 4), ("upload", 8))))
    (place,) = found.places
    assert (place.after, place.nearest) == (None, "gateway")
    assert "this host, in its Wi-Fi" in " ".join(sentences.sentences(found))


def test_a_load_in_both_directions_is_located_only_if_no_direction_was_measured_alone(
    found: Findings,
) -> None:
    assert [place.phase for place in found.places] == ["download", "upload"]
    [both] = of(Line(phases=(("idle", 4), ("both", 8)))).places
    assert both.phase == "both"


@pytest.mark.parametrize(
    ("retransmits", "overflowed"),
    [((0, 0), False), ((0, 3), True), ((None, 3), True), ((None, 0), None), ((None,), None)],
)
def test_a_buffer_overflowed_if_any_stream_retransmitted(
    retransmits: tuple[int | None, ...], overflowed: bool | None
) -> None:
    streams = [SimpleNamespace(direction="up", retransmits=each) for each in retransmits]
    part: Any = SimpleNamespace(
        streams=[*streams, SimpleNamespace(direction="down", retransmits=9)]
    )
    assert findings._overflowed([part], "up") is overflowed


@pytest.mark.parametrize(
    ("added_ms", "words"),
    [
        (4.9, "no bufferbloat"),
        (5, "hardly any"),
        (30, "some"),
        (100, "bufferbloat: calls"),
        (300, "severe"),
    ],
)
def test_a_verdict_begins_exactly_at_its_bound(added_ms: float, words: str) -> None:
    assert added.in_words(added_ms).startswith(words)


def test_on_a_line_without_a_queue_none_is_located() -> None:
    found = of(Line(up_buffer=1_000, down_buffer=1_000))
    assert all(place.nearest is None for place in found.places)
    assert found.induced_p95_ms < 5
    assert sentences.sentences(found)[0].startswith("No bufferbloat")


def test_all_scores_are_shown_side_by_side(found: Findings) -> None:
    by_name = {score.name: score for score in found.scores}
    report = by_name["DSLReports"].overall
    assert report is not None
    assert report.word == "B"
    # For the same samples, the README and the code of one repository disagree.
    assert by_name["LibreQoS, code"].phases["upload"].word == "D"
    assert by_name["LibreQoS, README"].phases["upload"].word == "C"
    assert set(by_name["RPM, draft-09"].phases) == {"download", "upload", "both"}
    assert all(score.source for score in found.scores)


def test_rpm_from_echoes_and_smoothed_rtts_follows_the_formula(run: Run, found: Findings) -> None:
    from sojourn_live.measure import scores

    (part,) = phases.cut(run).of("upload")
    echo, loaded = part.pings["server udp"].answered, part.srtt_ms("up")
    rpm = (
        next(score for score in found.scores if score.name == "RPM, draft-09")
        .phases["upload"]
        .number
    )
    assert rpm == scores.rpm_draft09(echo, [], echo, loaded).rpm


def test_lost_probes_are_counted_but_are_not_samples() -> None:
    found = of(Line(loss=0.2))
    row = next(row for row in found.rows if row.phase == "upload")
    assert 0.1 < row.spread.loss < 0.3
    assert row.spread.max < 130


# ------------------------------------------------------------------------------------- missing data


def test_the_verdict_is_not_about_a_target_that_never_answers() -> None:
    session = synthetic_live.session(Line())
    probe = session.tables["probe"]
    mute = session.facts["flows"].index(
        next(flow for flow in session.facts["flows"] if flow["name"] == "server udp")
    )
    probe["rtt_ns"] = np.where(probe["probe"] == mute, -1, probe["rtt_ns"])
    found = findings.find(synthetic_live.of_sessions(session))
    assert found.target == "server icmp"
    assert found.others["server udp"]["idle"].lost == 80
    assert math.isnan(found.others["server udp"]["idle"].median)


def test_without_answered_probes_there_is_neither_verdict_nor_crash() -> None:
    session = synthetic_live.session(Line())
    session.tables["probe"]["rtt_ns"][:] = -1
    found = findings.find(synthetic_live.of_sessions(session))
    assert found.worst is None
    assert math.isnan(found.induced_p95_ms)
    assert "There is no verdict" in terminal.text_of(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_phase_that_was_cut_short_is_shown_but_not_scored() -> None:
    found = of(Line(cut_s=15.0, outcome="partial"))
    assert [(row.phase, row.complete) for row in found.rows] == [
        ("idle", True),
        ("download", True),
        ("upload", False),
    ]
    assert all("upload" not in score.phases for score in found.scores)
    text = terminal.text_of(found)
    assert "upload (cut short)" in text
    assert "The server went away." in text


@pytest.mark.parametrize(
    ("segment", "address", "wire"),
    [(1448, "192.0.2.9", 1514), (536, "192.0.2.9", 602), (1428, "2001:db8::9", 1514)],
)
def test_the_buffers_bytes_are_computed_from_the_sizes_of_sent_segments(
    segment: int, address: str, wire: int
) -> None:
    session = synthetic_live.session(Line())
    flows = session.tables["flows"]
    loads = [flow["kind"] == "bulk" for flow in session.facts["flows"]]
    flows["sent_packets"][loads] = 1000
    flows["sent_bytes"][loads] = 1000 * segment
    session.facts["server"]["address"] = address
    depth = findings.find(synthetic_live.of_sessions(session)).buffers[1]
    assert depth.bytes == pytest.approx(depth.ms * depth.mbps * 125 * wire / segment)


@pytest.mark.parametrize("outcome", ["partial", "interrupted"])
def test_a_measurement_that_was_cut_short_gets_no_good_verdict(outcome: str) -> None:
    clean = Line(down_buffer=1500, up_buffer=1500, noise_ms=0.01)
    assert "o bufferbloat" in sentences.sentences(of(clean))[0]
    cut = sentences.sentences(of(dataclasses.replace(clean, cut_s=15.0, outcome=outcome)))[0]
    assert cut.startswith(
        "There is no verdict: the measurement was cut short (the server went away)."
    )
    assert "Until then no load added more than" in cut
    # Bloat that was found before the end stays a finding.
    bloated = sentences.sentences(of(Line(cut_s=24.0, outcome=outcome)))[0]
    assert bloated.startswith("Bufferbloat: calls suffer.")


def test_without_an_idle_phase_there_is_delay_but_no_verdict() -> None:
    found = of(Line(phases=(("upload", 8),)))
    assert found.rows[0].spread.median > 50
    assert found.rows[0].induced is None
    assert found.places == ()
    terminal.text_of(found)


def test_an_idle_line_alone_is_described() -> None:
    found = of(Line(phases=(("idle", 4),), interface=False))
    assert found.scores == ()
    assert "no load was measured" in terminal.text_of(found)


# --------------------------------------------------------------------------------------- in words


def test_the_text_has_the_form_that_people_paste(found: Findings) -> None:
    text = terminal.text_of(found)
    (header,) = [line for line in text.splitlines() if line.startswith("phase ") and "sent" in line]
    assert header.split() == [
        "phase",
        "sent",
        "loss",
        "%",
        "min",
        "10",
        "%",
        "median",
        "mean",
        "90",
        "%",
        "max",
        "down",
        "up",
    ]
    (upload,) = [
        line
        for line in text.splitlines()
        if line.startswith("upload ") and line.split()[1] == "160"
    ]
    row = next(row for row in found.rows if row.phase == "upload")
    assert upload.split()[5] == f"{row.spread.median:.0f}"
    assert "99 % of the probes were sent at most 0.140 ms late" in text
    assert "draft-ietf-ippm-responsiveness-09" in text


def test_late_probes_are_a_warning(found: Findings) -> None:
    late = {
        **found.facts[0],
        "lateness_ns": {
            "sends": 9,
            "p50": 1e6,
            "p90": 2e6,
            "p99": 9e6,
            "max": 3e7,
            "priority": "normal",
        },
    }
    said = " ".join(sentences.confidence(dataclasses.replace(found, facts=(late,))))
    assert "can't be distinguished from this host's own" in said


def test_the_direction_of_lost_probes_is_named(found: Findings) -> None:
    assert not any(
        "on the way to the server" in sentence for sentence in sentences.confidence(found)
    )
    probes = [{**found.facts[0]["probes"][0], "lost_forward": 7, "lost_backward": 2}]
    said = " ".join(
        sentences.confidence(
            dataclasses.replace(found, facts=({**found.facts[0], "probes": probes},))
        )
    )
    assert "7 probes were lost on the way to the server, 2 on the way back" in said


def test_a_stepped_clock_is_reported(found: Findings) -> None:
    stepped = {
        **found.facts[0],
        "clock": {**found.facts[0]["clock"], "stepped_ns": 3_600_000_000_000},
    }
    said = " ".join(sentences.confidence(dataclasses.replace(found, facts=(stepped,))))
    assert "stepped by" in said


def test_numbers_have_three_digits() -> None:
    shown = [
        three(value)
        for value in (0.0, 0.1234, 1.0, 14.25, 99.96, 123.4, 98765.4, -0.00533, math.nan)
    ]
    assert shown == ["0", "0.123", "1.00", "14.2", "100.0", "123", "98765", "-0.005", "-"]


# ---------------------------------------------------------------------------------------- samples


def test_all_samples_are_exported_as_csv(run: Run) -> None:
    table = sample_files.table(run)
    assert table.columns == ["repeat", "t_s", "phase", "series", "quantity", "value"]
    pings = table.filter((table["quantity"] == "rtt_ms") & (table["series"] == "gateway"))
    assert (
        pings.height
        == run.table("probe", 1).filter(run.table("probe", 1)["probe"] == "gateway").height
    )
    assert set(pings["phase"].unique()) == {"", "idle", "download", "upload", "both", "idle 2"}
    whole = phases.cut(run)
    upload = table.filter((table["quantity"] == "goodput_mbps") & (table["phase"] == "upload"))
    assert float(upload["value"].drop_nans().mean()) * 4 == pytest.approx(
        whole.of("upload")[0].mbps("up"), rel=0.02
    )  # type: ignore[arg-type]
    lines = sample_files.csv(run).splitlines()
    assert lines[0] == "repeat,t_s,phase,series,quantity,value"
    assert len(lines) == table.height + 1


def test_json_has_findings_and_samples(run: Run) -> None:
    whole = json.loads(sample_files.json_of(run))
    assert whole["induced_p95_ms"] == pytest.approx(120, rel=0.02)
    assert len(whole["samples"]["value"]) == sample_files.table(run).height


def test_a_measurement_without_a_repeat_is_refused(tmp_path: Path) -> None:
    from sojourn.records.measurement import MeasurementSettings, create

    made = create("t", "1", [], MeasurementSettings(out=tmp_path / "empty"), "0")
    with pytest.raises(RunError, match="no seed has finished"):
        made.table("probe")


def test_the_next_commands_have_the_measured_rates() -> None:
    found = findings.find(synthetic_live.of_sessions(synthetic_live.session(Line())))
    advise, shape = terminal.next_steps(found).splitlines()
    rates = {
        way: max(row.mbps[way] for row in found.rows if row.mbps[way] > 0) for way in ("up", "down")
    }
    words = advise.partition("sojourn advise ")[2].split()
    assert shape.endswith(f"sojourn shape IFACE {' '.join(words)}")
    for way, given in zip(words[::2], words[1::2], strict=True):
        assert parse_shaped_rate(given) == pytest.approx(1e6 * rates[way[2:]], rel=0.01)
    one_way = synthetic_live.session(Line(phases=(("idle", 2), ("upload", 3))))
    assert terminal.next_steps(findings.find(synthetic_live.of_sessions(one_way))) == ""
