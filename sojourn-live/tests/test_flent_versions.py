"""flent files of all versions and tests, compared with flent's own numbers of them.

`recordings/flent` has a few files and flent's means; `make.py` beside them wrote both. Where flent
can be installed, a file of each of its tests is written and compared in the same way."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sojourn.cli import status
from sojourn.records import Run
from sojourn_live import flent
from sojourn_live.measure import findings, phases, sentences

RECORDED = Path(__file__).parent / "recordings" / "flent"
SAID: dict[str, Any] = json.loads((RECORDED / "said.json").read_text())
EPOCH_S = 1557233200.125
"""The start time of the recorded files."""


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    return {name: flent.read(RECORDED / name) for name in SAID}


def notes(run: Run) -> str:
    return "\n".join(run.meta.facts["1"]["notes"])


def goodputs(run: Run, said: dict[str, Any]) -> Iterator[tuple[float, float]]:
    """Our goodput and flent's for each direction, Mbit/s. flent's means cover the time that each
    stream ran."""
    whole = phases.cut(run)
    loaded = [part for part in whole.parts if part.loaded]
    for way in ("down", "up"):
        streams = [
            flow.name for flow in run.meta.flows if flow.kind == "bulk" and flow.direction == way
        ]
        if streams:
            [part] = loaded
            theirs = math.fsum(said["means"][name] * said["seconds"][name] for name in streams)
            yield part.mbps(way), theirs / part.seconds


def check_pings(run: Run, said: dict[str, Any]) -> None:
    """Compares means of all answers, and losses if flent knows them."""
    table = run.table("probe", 1)
    for name in [flow.name for flow in run.meta.flows if flow.kind == "ping"]:
        series = next(
            each for each in said["means"] if each.removeprefix("Ping (ms)").lstrip(" :") == name
        )
        mine = table.filter(pl.col("probe") == name)
        mean = mine["rtt_ns"].mean()
        assert isinstance(mean, float)
        assert mean / 1e6 == pytest.approx(said["means"][series], rel=0.005), series
        if series in said["loss"]:
            assert mine["rtt_ns"].null_count() / mine.height == pytest.approx(said["loss"][series])


@pytest.mark.parametrize("name", sorted(SAID))
def test_goodput_and_pings_are_those_of_flents_summary(name: str, runs: dict[str, Run]) -> None:
    for ours, theirs in goodputs(runs[name], SAID[name]):
        assert ours == pytest.approx(theirs, rel=0.005)
    check_pings(runs[name], SAID[name])


@pytest.mark.parametrize(
    "name", ["tcp_nup-2.flent.gz", "rrul-1.flent.gz", "rrul-3.flent.gz", "rrul-4.flent.gz"]
)
def test_the_time_of_a_file_is_utc_if_it_has_raw_values(name: str, runs: dict[str, Run]) -> None:
    # Files below version 3 began in a time zone of five and a half hours.
    assert runs[name].meta.facts["1"]["zero_ns"] / 1e9 == pytest.approx(EPOCH_S, abs=0.1)
    assert "time zone" not in notes(runs[name])


def test_without_raw_values_local_time_is_read_as_utc_and_losses_are_unknown(
    runs: dict[str, Run],
) -> None:
    run = runs["rrul-none.flent.gz"]
    assert "have a time zone" in notes(run)
    assert "Lost probes of Ping (ms) ICMP" in notes(run)
    found = findings.find(run)
    assert found.target == "ICMP"
    assert {row.spread.lost for row in found.rows} == {None}
    assert "how many were lost is not known" in sentences.confidence(found)[0]


def test_the_load_lasts_as_long_as_the_test_and_idle_phases_have_no_goodput(
    runs: dict[str, Run],
) -> None:
    for name in ("rrul-4.flent.gz", "tcp_ndown-3.flent.gz", "rrul-1.flent.gz"):
        whole = phases.cut(runs[name])
        assert [part.phase.kind for part in whole.parts][::2] == ["idle", "idle"]
        first, load, last = whole.parts
        assert load.seconds == pytest.approx(6)
        assert first.seconds == pytest.approx(5, abs=0.1)
        for way in ("down", "up"):
            assert math.isnan(first.mbps(way))
            # A stream's last sample may end after the others; its mean is over the five seconds.
            assert math.isnan(last.mbps(way)) or last.mbps(way) < load.mbps("down") / 50


def test_streams_without_a_direction_are_uploads_and_begin_at_once(runs: dict[str, Run]) -> None:
    run = runs["tcp_2up_square-4.flent.gz"]
    assert {flow.name: flow.direction for flow in run.meta.flows} == {
        "TCP cubic": "up",
        "TCP cubic 2": "up",
        "TCP reno": "up",
        "TCP westwood": "up",
    }
    [part] = phases.cut(run).parts
    assert (part.phase.kind, part.phase.start_ns) == ("upload", 0)


def test_the_state_of_a_sender_is_not_read_as_a_stream(runs: dict[str, Run]) -> None:
    run = runs["rrul-4.flent.gz"]
    assert sum(flow.kind == "bulk" for flow in run.meta.flows) == 8
    up = run.table("flow", 1).filter(pl.col("flow") == "TCP upload BE").drop_nulls("srtt_ns")
    assert up.height > 50
    assert up["srtt_ns"].is_between(40e6, 60e6).all()
    assert up["cwnd_bytes"].is_between(20 * 1448, 90 * 1448).all()


def test_netperfs_retransmissions_belong_to_the_load(runs: dict[str, Run]) -> None:
    known = phases.cut(runs["rrul_be-4.flent.gz"]).of("both")[0].streams
    assert len(known) == 8
    assert all(stream.retransmits is not None and stream.retransmits >= 5 for stream in known)
    unknown = findings.find(runs["tcp_nup-2.flent.gz"])
    assert unknown.rows[1].retransmits is None
    [buffer] = unknown.buffers
    assert buffer.overflowed is None
    assert "retransmitted nothing" not in sentences.buffer(buffer)
    assert "not known" in sentences.buffer(buffer)


def test_drops_that_an_old_file_counts_from_the_start_are_read_by_interval(
    runs: dict[str, Run],
) -> None:
    dropped = runs["tcp_ndown-3.flent.gz"].table("queue", 1)["dropped_packets"].to_list()
    theirs = SAID["tcp_ndown-3.flent.gz"]["dropped"]
    assert -5 in theirs
    assert dropped == [None if count < 0 else count for count in theirs]
    assert "the first: -5" in notes(runs["tcp_ndown-3.flent.gz"])


def test_series_that_are_not_read_are_named(runs: dict[str, Run]) -> None:
    assert "Imported from the file: 4 streams down, 4 streams up, 4 series of pings." in notes(
        runs["rrul-4.flent.gz"]
    )
    assert "Not imported: HTTP latency." in notes(runs["http-rrul-4.flent.gz"])
    assert "Not imported: UDP upload." in notes(runs["udp_flood-4.flent.gz"])
    [_, load, _] = phases.cut(runs["udp_flood-4.flent.gz"]).parts
    assert load.phase.kind == "upload"


def test_the_import_prints_which_series_it_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = RECORDED / "http-rrul-4.flent.gz"
    assert status(["import", str(file), "-o", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "Imported from the file: " in printed
    assert "Not imported: HTTP latency." in printed


PIP = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")


@pytest.mark.long
def test_every_test_of_flent_has_the_numbers_that_flent_computes(tmp_path: Path) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    got = subprocess.run(
        [str(python), *PIP[1:], "flent==2.3.0"], capture_output=True, text=True, check=False
    )
    if got.returncode:
        pytest.skip(f"flent can't be installed here: {got.stderr.strip().splitlines()[-1]}")
    made = tmp_path / "made"
    subprocess.run([str(python), str(RECORDED / "make.py"), str(made), "--every"], check=True)
    said = json.loads((made / "said.json").read_text())
    assert len(said) > 70
    compared = 0
    for name, each in said.items():
        pinged = any(mean is not None for series, mean in each["means"].items() if "Ping" in series)
        if not pinged and not each["seconds"]:
            continue
        run = flent.read(made / name)
        for ours, theirs in goodputs(run, each):
            assert ours == pytest.approx(theirs, rel=0.005), name
            compared += 1
        check_pings(run, each)
    assert compared > 70
