"""sojourn-probe, the static program: it and the package measure each other over loopback, and its
file becomes a Run. `make probe` builds it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tree import probe_of_the_tree

from sojourn.errors import UserError
from sojourn.records import Run
from sojourn_live import rpm
from sojourn_live.defaults import PORT, RPM_PORT, Caps, RpmService
from sojourn_live.measure import findings, probe_file
from sojourn_live.measure.server import Server
from sojourn_live.measure.session import (
    MS,
    LiveError,
    PlannedPhase,
    ProbeTarget,
    S,
    SessionPlan,
    measure,
)

PATIENCE_S = 60.0
MOST_BYTES = 5_000_000
SHORT = ("--idle", "0.5s", "-l", "0.8s", "--interval", "20ms", "-n", "2", "--ping", "udp")


@pytest.fixture(scope="module")
def program() -> Path:
    return probe_of_the_tree()


def say(program: Path, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        **more,
    )


@contextlib.contextmanager
def started(program: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str, int]]:
    """A server, and its first address and port."""
    pipe = subprocess.PIPE
    with subprocess.Popen([program, *words], stdout=pipe, stderr=pipe, text=True) as server:
        assert server.stdout is not None
        try:
            line = server.stdout.readline()
            found = re.search(r"(?:https://)?(\S+):(\d+)", line)
            assert found, line + (server.stderr.read() if server.stderr else "")
            yield server, found[1], int(found[2])
        finally:
            server.terminate()
            server.wait(PATIENCE_S)


@contextlib.contextmanager
def serving(caps: Caps | None = None, secret: str = "") -> Iterator[int]:
    """The package's server on loopback. Yields its port."""
    server = Server(port=0, caps=caps, secret=secret)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server.addresses[0][1]
    finally:
        server.stop()
        thread.join(PATIENCE_S)


def plan(port: int, **more: Any) -> SessionPlan:
    given = {
        "phases": tuple(
            PlannedPhase(kind, round(seconds * S))
            for kind, seconds in (("idle", 0.4), ("download", 0.6), ("upload", 0.6))
        ),
        "targets": (ProbeTarget("udp"),),
        "probe_interval_ns": 20 * MS,
        "streams": 2,
        "patience_ns": 5 * S,
    }
    return SessionPlan("127.0.0.1", port, **{**given, **more})


# ----------------------------------------------------------------------------------- what it is


def test_the_program_is_one_small_static_file(program: Path) -> None:
    image = program.read_bytes()
    assert len(image) < MOST_BYTES
    assert image[:6] == b"\x7fELF\x02\x01"
    at, size, count = struct.unpack_from("<Q", image, 32)[0], *struct.unpack_from("<HH", image, 54)
    kinds = {struct.unpack_from("<I", image, at + number * size)[0] for number in range(count)}
    interpreter = 3
    assert interpreter not in kinds


def test_its_defaults_are_those_of_the_package(program: Path) -> None:
    printed = say(program, "--help").stdout
    serve, _, rest = printed.partition("sojourn-probe measure [")
    client, _, responsiveness = rest.partition("sojourn-probe rpm serve [")

    def default(part: str, option: str) -> str:
        found = re.search(rf"^  (?:-\w, )?{option}\b.*?\[(.*?)\]$", part, re.MULTILINE)
        assert found, option
        return found[1]

    size = f"{Caps.bytes // 10**9} GB"
    asked = SessionPlan("h")
    assert [default(serve, f"--{name}") for name in ("port", "seconds", "streams", "clients", "bytes")] == [
        str(PORT), str(Caps.seconds), str(Caps.streams), str(Caps.clients), size,
    ]  # fmt: skip
    assert [default(client, f"--{name}") for name in ("port", "streams")] == [str(PORT), str(asked.streams)]  # fmt: skip
    assert [default(responsiveness, f"--{name}") for name in ("port", "seconds", "connections", "bytes")] == [
        str(RPM_PORT), str(RpmService.seconds), str(RpmService.connections), size,
    ]  # fmt: skip


# ------------------------------------------------------------------------------- both ways round


def test_the_package_measures_against_its_server(program: Path) -> None:
    with started(program, "serve", "--port", "0") as (_, host, port):
        assert host == "127.0.0.1"
        session = measure(plan(port))
    assert (session.facts["outcome"], session.facts["why"]) == ("complete", "")
    assert session.facts["clock"]["by"] == "udp"
    assert {each["direction"]: each["bytes"] > 10_000_000 for each in session.facts["goodput"]} == {
        "down": True,
        "up": True,
    }
    (probe,) = session.facts["probes"]
    assert probe["received"] > 0.8 * probe["sent"] > 50


# It measures goodput in real time, in phases of a second. So it is run again if it fails, like the
# tests marked `live`.
@pytest.mark.flaky(reruns=1)
def test_its_client_measures_against_the_package_s_server_and_its_file_becomes_a_run(
    program: Path, tmp_path: Path
) -> None:
    file = tmp_path / "line.json"
    with serving() as port:
        done = say(program, "measure", f"127.0.0.1:{port}", *SHORT, "--json", "-o", str(file))
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert [phase["name"] for phase in printed["phases"]] == [
        *("idle", "download", "upload", "both", "idle"),
    ]
    run = probe_file.read(file)
    assert run.meta.engine == "live"
    found = findings.find(run)
    assert found.target == printed["target"] == "server udp"
    # Both programs compute the same numbers.
    for row, phase in zip(found.rows, printed["phases"], strict=True):
        (target,) = phase["targets"]
        rtt = target["rtt_ms"]
        ours = row.spread
        assert (target["sent"], target["lost"]) == (ours.sent, ours.lost)
        assert [rtt[name] for name in ("min", "p50", "mean", "p95", "max")] == pytest.approx(
            [ours.min, ours.median, ours.mean, ours.p95, ours.max]
        )
        if phase["added_ms"] is not None:
            assert row.induced is not None
            assert phase["added_ms"]["p50"] == pytest.approx(row.induced.median.value)
            assert phase["added_ms"]["p95"] == pytest.approx(row.induced.p95.value)
        for direction in ("down", "up"):
            theirs = phase[f"{direction}_mbps"]
            assert (theirs is None) == (row.mbps[direction] != row.mbps[direction])
            if theirs is not None:
                assert theirs == pytest.approx(row.mbps[direction], rel=0.1)


def test_it_plans_what_the_package_plans(program: Path, tmp_path: Path) -> None:
    file = tmp_path / "line.json"
    with serving(secret="correct horse battery") as port:
        words = ("--phase", "idle", "--idle", "0.3s", "-q")
        secret = {**os.environ, "SOJOURN_SECRET": "correct horse battery"}
        done = say(
            program,
            "measure",
            "127.0.0.1",
            "--port",
            str(port),
            *words,
            "-o",
            str(file),
            env=secret,
        )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    kept = json.loads(file.read_text())["plan"]
    asked = SessionPlan("127.0.0.1", port, phases=(PlannedPhase("idle", 300 * MS),))
    ours = json.loads(json.dumps(dataclasses.asdict(asked)))
    del ours["secret"]
    assert kept == ours
    assert "horse" not in file.read_text()


def test_sojourn_import_reads_its_file(program: Path, tmp_path: Path) -> None:
    with serving() as port:
        file = tmp_path / "line.json"
        done = say(program, "measure", f"127.0.0.1:{port}", *SHORT, "-o", str(file))
    assert done.returncode == 0, done.stderr
    assert re.search(r"^download +\d", done.stdout, re.MULTILINE)
    assert re.search(
        r"^(The phase .* adds the most delay|Every load adds less)", done.stdout, re.MULTILINE
    )
    words = [sys.executable, "-m", "sojourn", "import", str(file), "-o", str(tmp_path / "run")]
    printed = subprocess.run(words, capture_output=True, text=True, check=False)
    assert printed.returncode == 0, printed.stderr
    assert "server udp" in printed.stdout
    run = Run.open(tmp_path / "run")
    assert run.seeds == (1,)
    assert run.table("probe", 1).height > 50


def test_both_clients_can_request_ecn_and_a_codepoint(program: Path, tmp_path: Path) -> None:
    file = tmp_path / "line.json"
    with serving() as port:
        words = ("--phase", "idle", "--phase", "upload", *SHORT, "--ecn", "--dscp", "ef", "--json")
        done = say(program, "measure", f"127.0.0.1:{port}", *words, "-o", str(file))
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)["marks"]
    assert printed["answered"]
    assert all(
        one["arrived"] == [{"ds": one["ds"], "count": one["sent"]}] for one in printed["path"]
    )
    found = findings.find(probe_file.read(file)).marks
    assert found is not None
    assert {one.fate for one in found.path} == {"kept"}
    with started(program, "serve", "--port", "0") as (_, _host, port):
        facts = measure(plan(port, ecn=True, dscp=46)).facts
    assert facts["marks"] is not None
    assert facts["marks"]["answered"]


def test_both_servers_refuse_clients_without_the_secret(program: Path) -> None:
    with (
        started(program, "serve", "--port", "0", "--secret", "correct horse battery") as (
            _,
            _h,
            port,
        ),
        pytest.raises(LiveError, match="requires a secret"),
    ):
        measure(plan(port))
    with serving(secret="correct horse battery") as port:
        done = say(program, "measure", f"127.0.0.1:{port}", "--secret", "battery staple")
    assert done.returncode == 2
    assert "not this server's secret" in done.stderr


def test_responsiveness_is_measured_against_its_server(program: Path, tmp_path: Path) -> None:
    certificate = tmp_path / "far.pem"
    with started(program, "rpm", "serve", "--port", "0", "--cert-out", str(certificate)) as (_, host, port):  # fmt: skip
        quick = rpm.RpmParameters(id_ns=200 * MS)
        outcome = rpm.measure(
            rpm.RpmPlan(f"{host}:{port}", ca=certificate, parameters=quick, stages=(("download",),))
        )
    assert outcome.why == ""
    assert outcome.run is not None
    assert outcome.run.meta.phases[1].complete


def test_a_server_reports_its_end_and_a_client_keeps_its_results(
    program: Path, tmp_path: Path
) -> None:
    file = tmp_path / "line.json"
    with started(program, "serve", "--port", "0") as (server, _, port):
        words = ("measure", f"127.0.0.1:{port}", "--idle", "0.3s", "-l", "60s", "--ping", "udp")
        client = subprocess.Popen(
            [program, *words, "-o", str(file)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        time.sleep(1.5)
        server.send_signal(signal.SIGTERM)
        out, err = client.communicate(timeout=PATIENCE_S)
        assert server.wait(PATIENCE_S) == 0
    assert client.returncode == 1
    assert "the server was stopped" in err
    assert "download, cut short" in out
    assert probe_file.read(file).meta.phases[0].complete


def test_ctrl_c_keeps_the_results_so_far(program: Path) -> None:
    with serving() as port:
        words = ("measure", f"127.0.0.1:{port}", "--idle", "0.3s", "-l", "60s", "--ping", "udp")
        client = subprocess.Popen(
            [program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        time.sleep(1.5)
        client.send_signal(signal.SIGINT)
        out, err = client.communicate(timeout=PATIENCE_S)
    assert client.returncode == 130
    assert "interrupted" in err
    assert re.search(r"^idle +\d", out, re.MULTILINE)


def test_a_killed_client_keeps_the_finished_phases(program: Path, tmp_path: Path) -> None:
    file = tmp_path / "line.json"
    with serving() as port:
        load = ("--phase", "idle", "--phase", "download", "--idle", "0.3s", "-l", "60s")
        words = ("measure", f"127.0.0.1:{port}", "--ping", "udp", *load, "-o", str(file))
        with subprocess.Popen([program, *words], stderr=subprocess.PIPE, text=True) as client:
            assert client.stderr is not None
            client.stderr.readline()
            # The file is locked before anything is measured, also against --force.
            second = say(program, *words, "--force")
            assert (second.returncode, second.stdout) == (2, "")
            assert "another process is measuring into" in second.stderr
            deadline = time.monotonic() + PATIENCE_S
            while not file.stat().st_size and time.monotonic() < deadline:
                time.sleep(0.02)
            assert "another process is measuring into" in say(program, *words, "--force").stderr
            client.kill()
        run = probe_file.read(file)
        (idle,) = run.meta.phases
        assert (idle.name, idle.complete) == ("idle", True)
        assert run.table("probe").height > 3
        assert "was killed, or is measuring still" in run.meta.facts["1"]["why"]
        # Its file is not overwritten without --force.
        third = say(program, *words)
        assert third.returncode == 2
        assert "is not empty" in third.stderr
        assert probe_file.read(file).meta.phases == run.meta.phases
        again = say(program, *words[:2], *SHORT, "--phase", "idle", "-o", str(file), "--force")
        assert again.returncode == 0, again.stderr
    assert probe_file.read(file).meta.facts["1"]["outcome"] == "complete"
    assert [one.name for one in tmp_path.iterdir()] == ["line.json"]


def test_without_results_no_file_is_left_and_a_pipe_is_kept(program: Path, tmp_path: Path) -> None:
    file, pipe = tmp_path / "line.json", tmp_path / "pipe"
    assert say(program, "measure", "127.0.0.1:1", "-o", str(file)).returncode == 2
    assert not file.exists()
    with serving() as port:
        words = ("--phase", "idle", "--idle", "0.2s", "--ping", "udp", "-q", "-o")
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
            done = say(program, "measure", f"127.0.0.1:{port}", *words, str(pipe))
            assert reader.stdout is not None
            assert json.load(reader.stdout)["facts"]["outcome"] == "complete"
    assert done.returncode == 0, done.stderr
    assert pipe.is_fifo()


# ------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("measure",), "no HOST"),
        (("measure", "h:x"), "is not a port"),
        (("measure", "h:1", "--port", "2"), "HOST has port 1"),
        (("measure", "h", "-l", "5 parsecs"), "duration|length of a phase"),
        (("measure", "h", "--phase", "sideways"), "there is no 'sideways'"),
        (("measure", "h", "--streams", "0"), "not a number from 1 to 128"),
        (("measure", "h", "-o", "/no/such/folder/x.json"), "there is no folder"),
        (("measure", "h", "i"), "unexpected"),
        (("measure", "no.such.host.invalid"), "there is no host"),
        (("serve", "--bind", "here"), "is not an IP address"),
        (("serve", "--secret", "short"), "8 characters"),
        (("serve", "--bind", "192.0.2.1"), "can't serve at"),
        (("serve", "--bytes", "0 B"), "too small"),
        (("rpm",), "has only the verb serve"),
        (("rpm", "serve", "--cert", "x"), "must be given together"),
        (("shape",), "there is no verb 'shape'"),
    ],
)
def test_wrong_input_gives_an_error_and_exits_with_2(
    program: Path, words: tuple[str, ...], said: str
) -> None:
    done = say(program, *words)
    assert done.returncode == 2, done.stdout
    assert re.search(said, done.stderr), done.stderr
    assert "panicked" not in done.stderr


@pytest.fixture(scope="module")
def kept(program: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file = tmp_path_factory.mktemp("kept") / "line.json"
    with serving() as port:
        words = ("--phase", "idle", "--idle", "0.3s", "--ping", "udp")
        done = say(program, "measure", f"127.0.0.1:{port}", *words, "-o", str(file))
    assert done.returncode == 0, done.stderr
    return dict(json.loads(file.read_text()))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda raw: raw.update(format="sojourn-probe 9"), "this sojourn reads"),
        (lambda raw: raw.pop("format"), "it has no key 'format'"),
        (lambda raw: raw.pop("facts"), "facts"),
        (lambda raw: raw["facts"].pop("clock"), "clock"),
        (lambda raw: raw["tables"].pop("flow"), "missing or unknown tables: flow"),
        (lambda raw: raw["tables"]["probe"].pop("t_ns"), "table probe has missing or unknown columns"),
        (lambda raw: raw["tables"]["probe"]["t_ns"].pop(), "differ in length"),
        (lambda raw: raw["tables"]["probe"].update(probe=[7] * len(raw["tables"]["probe"]["probe"])), "no such flow"),
        (lambda raw: raw["tables"]["probe"]["seq"].__setitem__(0, "x"), "not whole numbers"),
        (lambda raw: raw["plan"].update(streams="four"), "streams"),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused_with_an_error(
    kept: dict[str, Any], tmp_path: Path, damage: Callable[[dict[str, Any]], object], said: str
) -> None:
    raw = json.loads(json.dumps(kept))
    damage(raw)
    file = tmp_path / "damaged.json"
    file.write_text(json.dumps(raw))
    with pytest.raises(UserError) as refused:
        probe_file.read(file)
    assert said in str(refused.value)
