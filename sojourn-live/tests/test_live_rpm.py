"""Responsiveness: scores from known samples, a server and a client over loopback, and over a line
with a known queue."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import live_network
import numpy as np
import polars as pl
import pytest
import shapes

from sojourn import metrics, outputs, report
from sojourn.cli import status
from sojourn.records import Run, RunError
from sojourn.records.measurement import ENGINE, MeasurementSettings
from sojourn_live import _live, rpm
from sojourn_live.measure import findings, responsiveness
from sojourn_live.measure.session import LiveError

S, MS = 10**9, 10**6
QUICK = rpm.RpmParameters(mad=2, id_ns=200 * MS, sdt=1e-9, stage_intervals=2)
"""No stage is stable enough for this tolerance, so each takes its two intervals."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a server on loopback."""
    made = rpm.server(rpm.RpmService(port=0))
    yield rpm.url(*made.addresses[0])
    made.stop()


@pytest.fixture(scope="module")
def measured(server: str) -> Run:
    """A short measurement of the server, one direction after the other."""
    outcome = rpm.measure(rpm.RpmPlan(server, insecure=True, parameters=QUICK))
    assert outcome.run is not None
    assert not outcome.why
    return outcome.run


# ------------------------------------------------------------------------ scores of known samples


def known() -> tuple[dict[str, dict[str, np.ndarray[Any, Any]]], dict[str, Any]]:
    """A download of 4 s. Its last 2 s count, with 20 probes of each kind. Earlier and lost probes
    do not count."""
    rows: list[tuple[int, int, int, int]] = []
    for seq in range(20):
        t = 3 * S + seq * 10 * MS
        rows += [
            (t, 0, seq, 20 * MS),
            (t, 1, seq, 40 * MS),
            (t, 2, seq, 60 * MS),
            (t, 3, 100 + seq, 120 * MS),
        ]
    for seq in range(50, 60):
        t = 1 * S + seq * MS
        rows += [(t, kind, seq, MS) for kind in (0, 1, 2)] + [(t, 3, 100 + seq, MS)]
    rows += [(3 * S, kind, 200, -1) for kind in (0, 1, 2)] + [(3 * S, 3, 201, -1)]
    rows.sort()
    t_ns, probe, seq_, rtt_ns = (np.array(column) for column in zip(*rows, strict=True))
    names = ("foreign-tcp", "foreign-tls", "foreign-http", "self")
    flows = [
        {
            "name": name,
            "kind": "ping",
            "direction": "",
            "phase": None,
            "group": i,
            "congestion": None,
        }
        for i, name in enumerate(names)
    ]
    tables = {
        "probe": {
            "t_ns": t_ns, "probe": probe, "seq": seq_, "rtt_ns": rtt_ns, "forward_ns": np.full(t_ns.size, -1),
        },
        "flow": {
            column: np.empty(0, np.int64)
            for column in (
                "t_ns", "flow", "cwnd_bytes", "ssthresh_bytes", "srtt_ns", "inflight_bytes", "delivered_bytes", "retransmits", "window_bytes",
                "delay_max_ns",
            )
        },
        "flows": {
            column: np.arange(4) if column == "flow" else np.zeros(4, np.int64)
            for column in (
                "flow", "sent_packets", "sent_bytes", "received_packets", "delivered_bytes", "lost_packets", "retransmits", "timeouts",
                "fast_recoveries", "rtt_sum_ns", "rtt_samples", "rtt_min_ns", "rtt_max_ns", "base_rtt_ns",
            )
        },
        "engine": {column: np.array([0]) for column in ("events", "packets", "peak_entries")},
    }  # fmt: skip
    interval = {
        "t_ns": 4 * S, "connections": 3, "goodput_bps": [5e7], "moving_average_bps": [4e7], "responsiveness": 1000.0,
    }  # fmt: skip
    loaded = {
        "directions": ["download"], "start_ns": 0, "end_ns": 4 * S, "window_start_ns": 2 * S, "window_end_ns": 4 * S, "intervals": [interval],
        "goodput_confidence": "high", "responsiveness_confidence": "medium", "unanswered": 7,
    }  # fmt: skip
    facts = {
        "format": 1, "outcome": "complete", "why": "", "notes": [], "zero_ns": 1_800_000_000 * S, "duration_ns": 4 * S,
        "phases": [{"name": "download", "kind": "download", "start_ns": 0, "end_ns": 4 * S, "complete": True}],
        "flows": flows, "links": [], "server": {"host": "lab.example", "address": "192.0.2.9", "port": 4043},
        "client": {"version": "0.1.0"}, "rpm": {
            "parameters": dataclasses.asdict(rpm.RpmParameters()), "small_url": "https://lab.example:4043/small",
            "large_url": "https://lab.example:4043/large", "upload_url": "https://lab.example:4043/upload", "tls_round_trips": 2,
            "loaded": [loaded],
        },
    }  # fmt: skip
    return tables, facts


def test_each_formula_uses_the_last_intervals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables, facts = known()
    monkeypatch.setattr(
        _live, "measure_rpm", lambda _plan, _reached, _keep: (tables, json.dumps(facts))
    )
    run = rpm.measure(rpm.RpmPlan("lab.example")).run
    assert run is not None
    (result,) = responsiveness.results(run)
    # Foreign: 60 000 / ((20 + 40 + 60) / 3); loaded: 60 000 / 120.
    assert (result.draft.foreign, result.draft.loaded, result.draft.rpm) == (1500, 500, 1000)
    assert result.verdict == "Good"
    # TLS took two round trips of 40 ms: a foreign probe lasted 160 ms, of which goresponsiveness
    # takes a third.
    assert result.go.rpm == pytest.approx(60_000 / ((160 / 3 + 120) / 2))
    assert result.samples == dict.fromkeys(
        ("foreign-tcp", "foreign-tls", "foreign-http", "self"), 20
    )
    assert (result.lost, result.unanswered, result.connections) == (2, 7, 3)
    assert result.goodput_mbps == {"download": 40.0}
    assert (result.goodput_confidence, result.confidence) == ("High", "Medium")


def test_other_runs_have_no_responsiveness_scores(tmp_path: Path) -> None:
    import synthetic_live

    run = synthetic_live.run(tmp_path / "run")
    with pytest.raises(RunError, match="not a measurement of responsiveness"):
        responsiveness.results(run)


# ------------------------------------------------------------------------------------ on loopback


def test_the_shown_scores_equal_those_that_ended_the_measurement(measured: Run) -> None:
    # The formula exists twice, over the same samples: one decides when to stop, the other is shown.
    stages = measured.meta.facts["1"]["rpm"]["loaded"]
    results = responsiveness.results(measured)
    assert [result.phase for result in results] == ["download", "upload"]
    for result, stage in zip(results, stages, strict=True):
        # A probe that ends with the interval may be in one of them only.
        assert result.draft.rpm == pytest.approx(stage["intervals"][-1]["responsiveness"], rel=0.05)
        assert result.intervals == 4
        assert result.confidence == "Medium"
        assert min(result.samples.values()) > 0


def test_a_measurement_is_a_run(measured: Run) -> None:
    assert measured.meta.engine == ENGINE
    assert [phase.kind for phase in measured.meta.phases] == ["idle", "download", "upload"]
    probes = measured.table("probe", 1)
    assert set(probes["probe"]) == {"foreign-tcp", "foreign-tls", "foreign-http", "self"}
    # Each foreign probe has three parts, one after the other.
    foreign = probes.filter(pl.col("probe") != "self").pivot(
        on="probe", index="seq", values=["t_ns", "rtt_ns"]
    )
    assert foreign.null_count().sum_horizontal().item() == 0
    assert (
        foreign["t_ns_foreign-tcp"] + foreign["rtt_ns_foreign-tcp"]
        <= foreign["t_ns_foreign-tls"] + 1
    ).all()
    assert (foreign["t_ns_foreign-tls"] < foreign["t_ns_foreign-http"]).all()
    flow = measured.table("flow", 1)
    for (name,), rows in flow.partition_by("flow", as_dict=True).items():
        assert rows["delivered_bytes"].is_sorted(), name
        assert rows["srtt_ns"].is_null().all() == str(name).startswith("download")
    summary = metrics.summary(measured).summary
    assert {probe["name"] for probe in summary["probes"]} == set(probes["probe"])
    assert all(probe["loss_rate"]["mean"] == 0 for probe in summary["probes"])


def test_its_page_and_findings_have_the_measured_scores_and_no_estimates(measured: Run) -> None:
    scores = {score.name: score for score in findings.find(measured).scores}
    assert set(scores["RPM, draft-09"].phases) == {"download", "upload"}
    assert "estimate" not in scores["RPM, draft-09"].source
    page = report.render([measured])
    assert "Responsiveness of 127.0.0.1" in page
    assert "foreign-tcp" in page
    assert "Where the queue is" not in page


def test_both_directions_at_once_are_one_score(server: str) -> None:
    run = rpm.measure(rpm.RpmPlan(server, insecure=True, parameters=QUICK, stages=rpm.BOTH)).run
    assert run is not None
    (result,) = responsiveness.results(run)
    assert result.phase == "both"
    assert min(result.goodput_mbps.values()) > 0
    assert run.meta.flow("upload-1").direction == "up"


def test_the_progress_function_is_called_and_can_end_the_measurement(server: str) -> None:
    calls: list[tuple[int, int, str, int, float]] = []

    def reached(now: int, phase: int, waits_for: str, intervals: int, bps: float) -> bool:
        calls.append((now, phase, waits_for, intervals, bps))
        return phase < 1 or intervals < 1

    outcome = rpm.measure(rpm.RpmPlan(server, insecure=True, parameters=QUICK), reached=reached)
    assert outcome.interrupted
    assert outcome.run is not None
    (result,) = responsiveness.results(outcome.run)
    assert not result.complete
    assert result.intervals == 1
    assert [phase.complete for phase in outcome.run.meta.phases] == [True, False]
    assert calls[0][1] == 0
    assert {words for _, phase, words, _, _ in calls if phase == 1} == {"goodput"}


def test_an_exception_of_the_progress_function_is_raised(server: str) -> None:
    def reached(*_: object) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        rpm.measure(rpm.RpmPlan(server, insecure=True), reached=reached)


def test_an_untrusted_server_is_refused_with_a_hint(server: str, tmp_path: Path) -> None:
    with pytest.raises(LiveError, match="is not trusted") as refused:
        rpm.measure(rpm.RpmPlan(server), MeasurementSettings(out=tmp_path / "run"))
    assert "--ca FILE" in refused.value.hint
    assert not (tmp_path / "run").exists()


def test_a_server_that_can_not_start_gives_the_reason() -> None:
    made = rpm.server(rpm.RpmService(port=0))
    port = made.addresses[0][1]
    with pytest.raises(LiveError, match="can't listen"):
        rpm.server(rpm.RpmService(port=port))
    made.stop()
    made.stop()
    again = rpm.server(rpm.RpmService(port=port))
    assert again.served()["accepted"] == 0
    again.stop()
    with pytest.raises(LiveError, match="not an address"):
        rpm.server(rpm.RpmService(at=("nobody.example",)))


# ------------------------------------------------------------------------------- the command line

SOJOURN = [sys.executable, "-m", "sojourn"]


@contextlib.contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`sojourn rpm serve`, and its URL."""
    command = [
        *SOJOURN,
        "rpm",
        "serve",
        "--port",
        "0",
        "--cert-out",
        str(folder / "cert.pem"),
        *options,
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as program:
        try:
            assert program.stdout is not None
            yield program, program.stdout.readline().split()[-1]
        finally:
            program.kill()


def test_the_verbs_serve_and_measure(tmp_path: Path) -> None:
    with serving(tmp_path) as (program, url):
        trust = [
            "--ca",
            str(tmp_path / "cert.pem"),
            "--interval",
            "100ms",
            "--json",
            "-o",
            str(tmp_path / "run"),
        ]
        done = subprocess.run(
            [*SOJOURN, "rpm", "measure", *trust, url], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        printed = json.loads(done.stdout)
        shapes.check("rpm", printed)
        assert [result["phase"] for result in printed["results"]] == ["download", "upload"]
        assert printed["draft"] == "draft-ietf-ippm-responsiveness-09"
        assert printed["idle_ms"]["foreign-tcp"] > 0
        assert Run.open(tmp_path / "run").seeds == (1,)
        program.send_signal(signal.SIGTERM)
        _, talk = program.communicate(timeout=30)
        assert program.returncode == 0
        assert "only this host can reach it" in talk
        assert "127.0.0.1 connected" in talk
        assert "MB sent" in talk


def test_results_are_kept_if_the_server_vanishes() -> None:
    made = rpm.server(rpm.RpmService(port=0))

    def reached(_now: int, phase: int, _waits_for: str, intervals: int, _bps: float) -> bool:
        if phase == 1 and intervals == 2:
            made.stop()
        return True

    patient = dataclasses.replace(QUICK, stage_intervals=1000)
    plan = rpm.RpmPlan(
        rpm.url(*made.addresses[0]), insecure=True, parameters=patient, patience_ns=2 * S
    )
    outcome = rpm.measure(plan, reached=reached)
    assert "ended download-" in outcome.why
    assert not outcome.interrupted
    assert outcome.run is not None
    (result,) = responsiveness.results(outcome.run)
    assert (result.complete, result.intervals) == (False, 2)
    assert result.draft.rpm > 0
    # The facts have the declared names and types.
    said = outputs.stamped("measure", findings.find(outcome.run).to_dict())
    shapes.check("measure", json.loads(json.dumps(said)))


def test_a_measurement_that_ended_early_is_shown_and_exits_with_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables, facts = known()
    facts |= {"outcome": "partial", "why": "lab.example ended download-2: reset"}
    facts["phases"][0]["complete"] = False
    monkeypatch.setattr(
        _live, "measure_rpm", lambda _plan, _reached, _keep: (tables, json.dumps(facts))
    )
    assert status(["rpm", "measure", "-o", str(tmp_path / "run"), "lab.example"]) == 1
    said = capsys.readouterr()
    assert "ended early: lab.example ended download-2: reset" in said.err
    assert "download: 2 probes failed, cut short after 1 intervals" in said.out
    assert re.search(r"^download +1000 +Good +Medium ", said.out, re.MULTILINE)


def test_ctrl_c_keeps_the_results_so_far(tmp_path: Path) -> None:
    serve = ["rpm", "serve", "--bind", live_network.SERVER]
    measure = ["rpm", "measure", "--insecure", "--interval", "60s", "-o", str(tmp_path / "run")]
    with live_network.network() as net, net.start("server", *SOJOURN, *serve) as program:
        assert program.stdout is not None
        url = program.stdout.readline().split()[-1]
        with net.start("client", *SOJOURN, *measure, url) as client:
            assert client.stderr is not None
            assert client.stderr.readline().startswith("measuring")
            time.sleep(4)
            client.send_signal(signal.SIGINT)
            _, err = client.communicate(timeout=30)
    assert client.returncode == 130, err
    assert "interrupted" in err
    assert "Traceback" not in err
    kept = [(phase.kind, phase.complete) for phase in Run.open(tmp_path / "run").meta.phases]
    assert kept == [("idle", True), ("download", False)]


@pytest.mark.parametrize(
    "phases", [["idle"], pytest.param(["idle", "download"], marks=pytest.mark.long)]
)
def test_a_killed_measurement_keeps_its_finished_phases(
    phases: list[str], server: str, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    asked = ["rpm", "measure", "--insecure", "--interval", "300ms", "-o", str(folder), server]
    with subprocess.Popen([*SOJOURN, *asked], stderr=subprocess.DEVNULL) as client:
        while client.poll() is None:
            if (folder / "meta.json").exists() and len(Run.open(folder).meta.phases) >= len(phases):
                client.kill()
            time.sleep(0.02)
    assert client.returncode == -signal.SIGKILL
    run = Run.open(folder)
    run.check_sums()
    kept = [(phase.kind, phase.complete) for phase in run.meta.phases]
    assert kept == [(phase, True) for phase in phases]
    assert run.meta.facts["1"]["outcome"] == "partial"
    assert [result.phase for result in responsiveness.results(run)] == phases[1:]
    assert "sojourn was killed" in report.render([run])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["measure", "--rpm", "x"], "hint: sojourn rpm measure HOST"),
        (["serve", "--rpm"], "hint: sojourn rpm serve"),
        (["rpm", "measure", "-n", "8", "x"], "there is no option -n"),
        (["measure", "--insecure", "x"], "hint: sojourn rpm measure HOST"),
        (["rpm", "measure", "--insecure", "--ca", "f", "x"], "give one of them"),
        (["rpm", "measure", "--interval", "5", "x"], "5"),
        (["rpm", "measure", "http://127.0.0.1:1/"], "is http, not https"),
        (
            ["rpm", "measure", "--ca", "missing.pem", "127.0.0.1:1"],
            "missing.pem: no certificate can be read",
        ),
        (["rpm", "measure", "--insecure", "127.0.0.1:1"], "refuses connections to port 1"),
        (["rpm", "serve", "--once"], "there is no option --once"),
        (["serve", "--cert-out", "f"], "hint: sojourn rpm serve"),
        (["rpm", "serve", "--cert", "f"], "--cert and --key go together"),
        (["rpm", "serve", "--cert", "f", "--key", "g"], "f: no certificate can be read"),
        (["rpm", "serve", "--bind", "192.0.2.1", "--port", "0"], "can't listen at 192.0.2.1"),
    ],
)
def test_wrong_input_gives_an_error_with_a_hint(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert status(arguments) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert said.out == ""
    assert os.listdir(tmp_path) == []


# -------------------------------------------------------------------------- a queue that is known


def test_new_connections_wait_in_the_queue_that_the_load_fills(
    live_network: live_network.LiveNetwork,
) -> None:
    from live_network import SERVER, SLOW_DOWN, SLOW_UP

    # Run inside the client's namespace, against a server in its own.
    script = (
        "import json; from sojourn_live import rpm\n"
        "from sojourn_live.measure import phases, responsiveness\n"
        "parameters = rpm.RpmParameters(mad=2, id_ns=10**9, inp=4, stage_intervals=2)\n"
        f"run = rpm.measure(rpm.RpmPlan('{SERVER}:4043', insecure=True, parameters=parameters)).run\n"
        "waits = {part.phase.name: part.pings['foreign-tcp'].answered.tolist() for part in phases.cut(run).parts}\n"
        "print(json.dumps([waits, [result.to_dict() for result in responsiveness.results(run)]]))"
    )
    with live_network.start("server", *SOJOURN, "rpm", "serve", "--bind", SERVER) as program:
        assert program.stdout is not None
        assert program.stdout.readline().startswith("serving RPM at")
        waits, results = json.loads(live_network.run("client", sys.executable, "-c", script).stdout)
    for result, bottleneck in zip(results, (SLOW_DOWN, SLOW_UP), strict=True):
        # A SYN that the full queue drops is retransmitted after a second; every other SYN waits in
        # the queue.
        answered = waits[result["phase"]]
        waited = np.array([ms for ms in answered if ms < 900])
        assert len(waited) >= 5, f"{result['phase']}: of {answered} too few waited in the queue"
        assert np.quantile(waited, 0.9) == pytest.approx(bottleneck.longest_wait_ms, rel=0.25)
        assert np.median(waits["idle"]) < 0.25 * bottleneck.longest_wait_ms
        # The load is bounded by the bottleneck's rate, except for the queue at the start of the
        # interval.
        (mbps,) = result["goodput_mbps"].values()
        assert 0.6 * bottleneck.bps < mbps * 1e6 < 1.2 * bottleneck.bps
