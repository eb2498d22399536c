"""Sessions with a server: over loopback and through a router with a known queue, refusals, and
sessions that are cut short."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_network import (
    CLIENT,
    ROUTER_TO_CLIENT,
    SERVER,
    SLOW_DOWN,
    SLOW_UP,
    Bottleneck,
    LiveNetwork,
    queue,
)

from sojourn import _core
from sojourn.records import Names, frame
from sojourn_live.measure.server import Caps, Server
from sojourn_live.measure.session import (
    MS,
    LiveError,
    PlannedPhase,
    ProbeTarget,
    S,
    Session,
    SessionPlan,
    endpoint,
    measure,
)

HERE = Path(__file__).parent
PROGRAM = str(HERE / "live_measure.py")
UDP = (ProbeTarget("udp"),)
PATIENCE_S = 60.0
AGREES = 0.1


@contextlib.contextmanager
def serving(caps: Caps | None = None, secret: str = "") -> Iterator[int]:
    """A server of this process on loopback. Yields its port."""
    server = Server(port=0, caps=caps, secret=secret)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server.addresses[0][1]
    finally:
        server.stop()
        thread.join(PATIENCE_S)


def phases(*spans: tuple[str, float]) -> tuple[PlannedPhase, ...]:
    return tuple(PlannedPhase(kind, round(seconds * S)) for kind, seconds in spans)


def plan(port: int, *spans: tuple[str, float], **more: Any) -> SessionPlan:
    given = {"targets": UDP, "probe_interval_ns": 20 * MS, "patience_ns": 5 * S, "streams": 2}
    return SessionPlan("127.0.0.1", port, phases=phases(*spans), **{**given, **more})


def of(session: Session, table: str, column: str, flow: str) -> np.ndarray[Any, Any]:
    """A column of a table, for one flow."""
    names = [each["name"] for each in session.facts["flows"]]
    rows = session.tables[table]
    which = rows["probe" if table == "probe" else "flow"]
    return rows[column][which == names.index(flow)]


# --------------------------------------------------------------------------------------- loopback


@pytest.fixture(scope="module")
def whole() -> Session:
    """A session with every kind of phase."""
    with serving() as port:
        spans = (
            ("idle", 0.5),
            ("download", 0.7),
            ("upload", 0.7),
            ("both", 0.7),
            ("download", 0.4),
            ("idle", 0.5),
        )
        return measure(plan(port, *spans, targets=(ProbeTarget("udp"), ProbeTarget("icmp"))))


def test_a_session_has_all_phases_and_samples(whole: Session) -> None:
    facts = whole.facts
    assert (facts["outcome"], facts["why"]) == ("complete", "")
    assert [phase["name"] for phase in facts["phases"]] == [
        "idle",
        "download",
        "upload",
        "both",
        "download 2",
        "idle",
    ]
    assert all(phase["complete"] for phase in facts["phases"])
    ends = [time for phase in facts["phases"] for time in (phase["start_ns"], phase["end_ns"])]
    assert ends == sorted(ends)
    assert ends[-1] <= facts["duration_ns"]
    assert facts["load"]["streams"] == 2
    assert facts["client"]["interface"] == "lo"
    assert facts["lateness_ns"]["sends"] == sum(probe["sent"] for probe in facts["probes"])


def test_the_tables_of_a_session_have_the_columns_of_a_run(whole: Session) -> None:
    names = Names(
        [link["name"] for link in whole.facts["links"]],
        [flow["name"] for flow in whole.facts["flows"]],
        _core.CAUSES,
    )
    tables = {name: frame(name, columns, names) for name, columns in whole.tables.items()}
    assert set(tables["links"]["link"]) == {"lo", "lo in"}
    assert tables["flows"]["flow"].to_list() == names.flows
    # Unknown values are null, not a number.
    assert tables["queue"]["sojourn_max_ns"].null_count() == tables["queue"].height > 0
    assert (
        tables["queue"].filter(tables["queue"]["link"] == "lo in")["backlog_bytes"].null_count() > 0
    )


def test_received_bytes_equal_the_delivered_bytes_of_the_flows(whole: Session) -> None:
    facts, totals = whole.facts, whole.tables["flows"]["delivered_bytes"]
    loads = [(entry["phase"], entry["direction"]) for entry in facts["goodput"]]
    assert loads == [(1, "down"), (2, "up"), (3, "down"), (3, "up"), (4, "down")]
    for entry in facts["goodput"]:
        delivered = sum(
            int(total)
            for flow, total in zip(facts["flows"], totals, strict=True)
            if (flow["phase"], flow["direction"]) == (entry["phase"], entry["direction"])
        )
        assert 0 < entry["bytes"] <= delivered
    # Streams sent data in both directions, and the interface counted at least as much.
    seen = whole.tables["links"]["sent_bytes"]
    assert min(seen) >= sum(totals)


def test_a_flow_is_sampled_by_its_receiver_and_its_sender(whole: Session) -> None:
    for flow in ("download-1", "upload-2", "both-down-1", "both-up-2", "download-2-1"):
        times, delivered = (
            of(whole, "flow", "t_ns", flow),
            of(whole, "flow", "delivered_bytes", flow),
        )
        assert len(times) >= 4
        assert (np.diff(times) >= 0).all()
        assert (np.diff(delivered) >= 0).all()
        assert delivered[-1] > 0
        begin, end = next(
            (phase["start_ns"], phase["end_ns"])
            for entry in whole.facts["flows"]
            if entry["name"] == flow
            for phase in [whole.facts["phases"][entry["phase"]]]
        )
        inside = (times > begin) & (times < end)
        cwnd = of(whole, "flow", "cwnd_bytes", flow)[inside]
        assert (cwnd > 0).mean() > 0.5
        # Both ends' samples are on one clock: the sender's acknowledged bytes match the receiver's
        # bytes.
        assert begin - 200 * MS <= times[0] <= begin + 200 * MS
        assert times[-1] >= end - 200 * MS


def test_probes_are_answered_with_their_one_way_part(whole: Session) -> None:
    rtt, forward = (
        of(whole, "probe", "rtt_ns", "server udp"),
        of(whole, "probe", "forward_ns", "server udp"),
    )
    answered = rtt >= 0
    assert answered.mean() > 0.9
    assert ((forward[answered] >= 0) & (forward[answered] <= rtt[answered])).all()
    times = of(whole, "probe", "t_ns", "server udp")
    assert (np.diff(times) > 0).all()
    assert (of(whole, "probe", "seq", "server udp") == np.arange(len(times))).all()
    probe = whole.facts["probes"][0]
    assert probe["lost"] == probe["lost_forward"] + probe["lost_backward"]
    clock = whole.facts["clock"]
    assert clock["by"] == "udp"
    assert clock["error_ns"] >= min(rtt[answered]) // 2


def test_a_session_of_idle_phases_sends_no_load() -> None:
    with serving() as port:
        session = measure(plan(port, ("idle", 0.3), interface=""))
    assert session.facts["outcome"] == "complete"
    assert session.facts["links"] == []
    assert len(session.tables["flow"]["t_ns"]) == len(session.tables["queue"]["t_ns"]) == 0
    assert len(session.tables["probe"]["t_ns"]) > 5


def test_ipv6_and_a_congestion_control() -> None:
    with serving() as port:
        with contextlib.closing(socket.socket(socket.AF_INET6)) as try6:
            try:
                try6.connect(("::1", port))
            except OSError as error:
                pytest.skip(f"no IPv6 here: {error}")
        session = measure(
            SessionPlan("::1", port, phases=phases(("both", 0.3)), targets=UDP, congestion="reno")
        )
    assert session.facts["outcome"] == "complete"
    assert {flow["congestion"] for flow in session.facts["flows"]} == {"reno", None}
    assert session.facts["server"]["address"] == "::1"
    assert session.facts["probes"][0]["received"] > 0


# ----------------------------------------------------------------------- what can not be measured


def test_a_host_without_a_server_is_an_error() -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(LiveError, match=f"no server listens at 127.0.0.1:{port}") as caught:
        measure(plan(port, ("idle", 0.3)))
    assert "sojourn serve" in caught.value.hint


def test_an_unknown_host_is_an_error() -> None:
    with pytest.raises(LiveError, match=r"there is no host 'no-such-host\.invalid'"):
        measure(SessionPlan("no-such-host.invalid", phases=phases(("idle", 0.3))))


def test_the_error_for_a_missing_interface_lists_the_existing_ones() -> None:
    with serving() as port, pytest.raises(LiveError, match="no interface 'eth99'") as caught:
        measure(plan(port, ("idle", 0.3), interface="eth99"))
    assert "lo" in caught.value.hint


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"streams": 3}, "2 streams"),
        ({"congestion": "bloat"}, "no congestion control 'bloat'"),
        ({"phases": phases(("both", 6))}, "10 s of load"),
    ],
)
def test_a_request_beyond_the_server_s_limits_is_refused_before_anything_is_measured(
    asked: dict[str, Any], said: str
) -> None:
    with serving(Caps(seconds=10, streams=2)) as port:
        began = time.monotonic()
        with pytest.raises(LiveError, match=said):
            measure(
                SessionPlan(
                    **{
                        "host": "127.0.0.1",
                        "port": port,
                        "targets": UDP,
                        "streams": 2,
                        "phases": phases(("idle", 60), ("upload", 1)),
                        **asked,
                    }
                )
            )
        assert time.monotonic() - began < 30


def test_a_session_needs_the_servers_secret_and_does_not_store_it() -> None:
    with serving(secret="correct horse battery") as port:
        for own, said in (
            ("", "requires a secret"),
            ("battery staple", "not this server's secret"),
        ):
            with pytest.raises(LiveError, match=said) as refused:
                measure(plan(port, ("idle", 0.3), secret=own))
            assert "--secret @FILE" in refused.value.hint
        given = plan(port, ("idle", 0.3), secret="correct horse battery")
        session = measure(given)
        assert session.facts["outcome"] == "complete"
        assert "horse" not in repr(given) + str(session.facts)
    # A server without a secret admits clients that have one.
    with serving() as port:
        assert (
            measure(plan(port, ("idle", 0.3), secret="correct horse battery")).facts["outcome"]
            == "complete"
        )


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("far.example", "far.example", None),
        ("192.0.2.1:4000", "192.0.2.1", 4000),
        ("2001:db8::1", "2001:db8::1", None),
        ("[2001:db8::1]", "2001:db8::1", None),
        ("[fe80::1%eth0]:4000", "fe80::1%eth0", 4000),
    ],
)
def test_a_host_may_include_its_port(text: str, host: str, port: int | None) -> None:
    assert endpoint(text) == (host, port)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":4000",
        "h:0",
        "h:70000",
        "h:x",
        "[2001:db8::1",
        "[::1]4000",
        "[::1]:",
        "[2001:db8::1]:2:3",
    ],
)
def test_an_invalid_host_is_reported(text: str) -> None:
    with pytest.raises(LiveError, match=r"is not a host|is not a port|there is no port"):
        endpoint(text)


def test_an_unreachable_target_is_an_error() -> None:
    with serving() as port:
        with pytest.raises(LiveError, match="only the server returns our datagrams"):
            measure(plan(port, ("idle", 0.3), targets=(ProbeTarget("udp", "127.0.0.1"),)))
        with pytest.raises(LiveError, match="'hop 99' is not a router"):
            measure(plan(port, ("idle", 0.3), targets=(ProbeTarget("icmp", "hop 99"),)))


def test_a_port_in_use_is_named() -> None:
    with serving() as port, pytest.raises(LiveError, match=f"127.0.0.1:{port}") as caught:
        Server(port=port)
    assert "another" in caught.value.hint


@contextlib.contextmanager
def pretending(*words: bytes, close: bool = True) -> Iterator[int]:
    """A server of another kind: it sends these words to each client, and nothing else."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        kept = []

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    kept.append(connection)
                    for word in words:
                        connection.sendall(word)
                    if close:
                        connection.close()

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(PATIENCE_S)
            for connection in kept:
                connection.close()


WELCOME = b'{"say":"welcome","version":1,"software":"0","kernel":"0","token":5,"caps":{"seconds":9,"bytes":9,"streams":9,"clients":9},"congestion":"reno"}\n'


@pytest.mark.parametrize(
    ("words", "close", "said"),
    [
        ((), True, "did not answer the hello"),
        ((), False, "no answer within 1 s"),
        ((b"HTTP/1.1 400 Bad Request\r\n\r\n",), False, "message is invalid"),
        ((b"x" * 100_000,), False, "message is invalid: a line of more than"),
        ((b'{"say":"granted"}\n',), False, "unexpected reply"),
    ],
)
def test_another_kind_of_server_is_recognised(
    words: Sequence[bytes], close: bool, said: str
) -> None:
    with pretending(*words, close=close) as port, pytest.raises(LiveError, match=said):
        measure(plan(port, ("idle", 0.3), patience_ns=S))


def test_a_server_that_breaks_the_protocol_leaves_the_results_so_far() -> None:
    for words, why in (
        ((WELCOME,), "did not answer for 1 s"),
        ((WELCOME, b"\xff\xfe\n"), "message is invalid"),
        ((WELCOME, b'{"say":"samples","load":7,"rows":[[1,2]]}\n'), "message is invalid"),
        (
            (
                WELCOME,
                b'{"say":"clock","asked":-9223372036854775808,"at":9223372036854775807}\n' * 9,
            ),
            "did not answer",
        ),
    ):
        with pretending(*words, close=False) as port:
            session = measure(plan(port, ("idle", 3), patience_ns=S))
        assert session.facts["outcome"] == "partial"
        assert why in session.facts["why"], words
        assert session.facts["probes"][0]["received"] == 0
        if session.facts["probes"][0]["sent"]:
            assert "answered none" in " ".join(session.facts["notes"])


# -------------------------------------------------------------------------------------- cut short


def test_the_watcher_can_end_a_session_and_keeps_the_finished_phases() -> None:
    calls: list[tuple[int, int, str]] = []

    def reached(*now: Any) -> bool:
        calls.append(now)
        return now[2] != "upload"

    with serving() as port:
        session = measure(
            plan(port, ("idle", 0.3), ("download", 0.5), ("upload", 30), ("idle", 30)), reached
        )
    assert session.facts["outcome"] == "interrupted"
    finished = [phase["complete"] for phase in session.facts["phases"]]
    assert finished[:2] == [True, True]
    assert not any(finished[2:])
    assert of(session, "flow", "delivered_bytes", "download-1")[-1] > 0
    times = [now for now, _, _ in calls]
    assert times == sorted(times)
    assert {phase for _, _, phase in calls} >= {"idle", "download", "upload"}


def test_an_exception_of_the_watcher_is_raised() -> None:
    def reached(*_: Any) -> bool:
        raise RuntimeError("enough")

    with serving() as port, pytest.raises(RuntimeError, match="enough"):
        measure(plan(port, ("idle", 30)), reached)


def program(port: int, **more: Any) -> list[str]:
    given = {
        "host": "127.0.0.1",
        "port": port,
        "targets": [["udp"]],
        "patience_ns": 3 * S,
        "streams": 2,
    }
    return [sys.executable, PROGRAM, json.dumps({**given, **more})]


class Watched:
    """A session that runs as a separate program. Tests wait for a time on the session's clock
    instead of their own, because this machine may be slow."""

    def __init__(self, running: subprocess.Popen[str]) -> None:
        self._running = running

    def until(self, phase: str, seconds: float = 0.0) -> None:
        """Waits until the session has been in this phase for `seconds`, by its own clock."""
        assert self._running.stderr is not None
        began: int | None = None
        for line in self._running.stderr:
            now, _, name = line.strip().partition(" ")
            if name == phase:
                began = int(now) if began is None else began
                if int(now) - began >= seconds * S:
                    return
        raise AssertionError(f"it ended before it was in {phase!r} for {seconds} s")

    def interrupt(self) -> None:
        """Sends Ctrl-C."""
        # Each program that enters the namespace executes the next one in its own process, so the
        # signal reaches the session.
        self._running.send_signal(signal.SIGINT)

    def result(self) -> dict[str, Any]:
        out, err = self._running.communicate(timeout=PATIENCE_S)
        assert self._running.returncode == 0, err
        found: dict[str, Any] = json.loads(out)
        return found


@contextlib.contextmanager
def watched(port: int, **more: Any) -> Iterator[Watched]:
    command = program(port, **more)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            yield Watched(running)
        finally:
            running.kill()


def test_ctrl_c_keeps_finished_phases() -> None:
    with serving() as port, watched(port, phases=[["idle", 0.3], ["download", 60]]) as session:
        session.until("download", 1)
        session.interrupt()
        facts = session.result()["facts"]
    assert facts["outcome"] == "interrupted"
    assert [phase["complete"] for phase in facts["phases"]] == [True, False]
    assert facts["goodput"][0]["bytes"] > 0


@contextlib.contextmanager
def serve(*options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """`sojourn serve` as a program, and its port."""
    command = [sys.executable, "-m", "sojourn", "serve", "--port", "0", *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            found = re.fullmatch(r"serving at 127\.0\.0\.1:(\d+) \(TCP and UDP\)\n", line)
            assert found, line
            yield server, int(found[1])
        finally:
            server.kill()


@pytest.mark.parametrize("kind", ["download", "upload", "both"])
def test_results_until_then_are_kept_if_the_server_is_killed(kind: str) -> None:
    with (
        serve() as (server, port),
        watched(port, phases=[["idle", 0.5], [kind, 60], ["idle", 60]]) as session,
    ):
        session.until(kind, 1)
        server.kill()
        result = session.result()
    facts, tables = result["facts"], result["tables"]
    assert facts["outcome"] == "partial"
    assert "server" in facts["why"]
    assert [phase["complete"] for phase in facts["phases"]] == [True, False]
    assert 0 < facts["duration_ns"] < 50 * S
    assert max(tables["flow"]["delivered_bytes"]) > 0
    assert all(entry["bytes"] > 0 for entry in facts["goodput"])
    if kind == "upload":
        assert any("acknowledged" in note for note in facts["notes"])
    assert sum(rtt >= 0 for rtt in tables["probe"]["rtt_ns"]) > 5


def test_a_stopped_server_reports_it_and_exits_with_0() -> None:
    with serve("-q") as (server, port):
        downloading: list[int] = []

        def reached(now: int, _total: int, phase: str) -> bool:
            downloading.extend([now] if phase == "download" else [])
            if downloading and now - downloading[0] > S:
                server.terminate()
            return True

        session = measure(plan(port, ("idle", 0.3), ("download", 60)), reached)
        assert server.wait(PATIENCE_S) == 0
        assert server.stderr is not None
        assert server.stderr.read().splitlines() == []
    assert session.facts["outcome"] == "partial"
    assert "the server was stopped" in session.facts["why"]
    # It had time to report its measurement.
    assert of(session, "flow", "cwnd_bytes", "download-1").max() > 0


def test_a_server_ends_by_itself_after_the_given_time() -> None:
    with serve("--for", "1s") as (server, _):
        assert server.wait(PATIENCE_S) == 0
    with serve("--once") as (server, port):
        measure(plan(port, ("idle", 0.3)))
        assert server.wait(PATIENCE_S) == 0
        assert server.stderr is not None
        said = server.stderr.read()
    assert "127.0.0.1 connected" in said
    assert "127.0.0.1 left (session finished)" in said


def test_a_load_beyond_the_byte_limit_ends_with_a_message() -> None:
    with serving(Caps(bytes=20_000_000)) as port:
        session = measure(plan(port, ("idle", 0.2), ("download", 30), ("idle", 0.2)))
    assert session.facts["outcome"] == "partial"
    assert "the server's cap of 20 MB" in session.facts["why"]
    assert session.facts["goodput"][0]["bytes"] > 0
    assert session.facts["duration_ns"] < 25 * S


def test_without_permission_for_icmp_the_other_probes_continue() -> None:
    drop = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"]
    low, high = map(int, Path("/proc/sys/net/ipv4/ping_group_range").read_text().split())
    groups = {os.getegid(), *os.getgroups()}
    if any(low <= group <= high for group in groups):
        pytest.skip("this kernel lets everybody ping (net.ipv4.ping_group_range)")
    if os.geteuid() == 0:
        try:
            subprocess.run([*drop, "true"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"capabilities can't be dropped: {error}")
    else:
        drop = []
    with serving() as port:
        command = program(
            port, phases=[["idle", 0.5]], targets=[["icmp", "server"], ["udp", "server"]]
        )
        done = subprocess.run(
            [*drop, *command], capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)["facts"]
    assert [probe["how"] for probe in facts["probes"]] == ["udp"]
    assert facts["probes"][0]["received"] > 0
    note = next(note for note in facts["notes"] if "icmp" in note)
    assert "ping_group_range" in note
    assert "CAP_NET_RAW" in note


# ------------------------------------------------------------------ through a queue that is known


@contextlib.contextmanager
def session_through(net: LiveNetwork, **more: Any) -> Iterator[Watched]:
    """A session from client to server."""
    given = {
        "host": SERVER,
        "targets": [["udp"], ["icmp", "server"], ["icmp", "gateway"]],
        "congestion": "cubic",
    }
    with net.start("client", sys.executable, PROGRAM, json.dumps({**given, **more})) as running:
        yield Watched(running)


@contextlib.contextmanager
def served(net: LiveNetwork) -> Iterator[subprocess.Popen[str]]:
    with net.start("server", sys.executable, "-m", "sojourn", "serve", "--bind", SERVER) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == f"serving at {SERVER}:35500 (TCP and UDP)\n"
        yield server


def rtts_ms(
    result: dict[str, Any], probe: str, phase: int, column: str = "rtt_ns", skip_s: float = 0
) -> np.ndarray[Any, Any]:
    """RTTs of the answered requests of a phase, without its first `skip_s` seconds."""
    facts, rows = (
        result["facts"],
        {key: np.array(value) for key, value in result["tables"]["probe"].items()},
    )
    number = [flow["name"] for flow in facts["flows"]].index(probe)
    span = facts["phases"][phase]
    inside = (rows["t_ns"] >= span["start_ns"] + skip_s * S) & (rows["t_ns"] < span["end_ns"])
    values = rows[column][inside & (rows["probe"] == number) & (rows["rtt_ns"] >= 0)]
    return values / MS


def assert_longest(waits: np.ndarray[Any, Any], bottleneck: Bottleneck, where: str) -> None:
    """Checks that the queue was full, and that no packet waited longer than the queue allows. A
    virtual machine sometimes stands still for some 0.2 s, in which no timer sends a packet. So up
    to a tenth of the waits may be longer."""
    longest = bottleneck.longest_wait_ms
    assert waits.max() > (1 - AGREES) * longest, where
    assert np.quantile(waits, 0.9) < (1 + AGREES) * longest, where


def test_the_added_delay_is_the_size_of_the_queues(live_network: LiveNetwork) -> None:
    spans = [["idle", 1], ["download", 6], ["upload", 6], ["idle", 1]]
    with (
        served(live_network),
        session_through(
            live_network, phases=spans, probe_interval_ns=20 * MS, streams=8
        ) as session,
    ):
        result = session.result()
    facts = result["facts"]
    assert facts["outcome"] == "complete", facts["why"]
    assert facts["client"]["gateway"] == ROUTER_TO_CLIENT
    assert facts["client"]["address"] == CLIENT
    idle = float(np.median(rtts_ms(result, "server", 0)))
    for phase, bottleneck, own_part in ((1, SLOW_DOWN, "backward"), (2, SLOW_UP, "forward")):
        for probe in ("server", "server udp"):
            induced = rtts_ms(result, probe, phase, skip_s=2) - idle
            assert_longest(induced, bottleneck, f"{probe}, {phase}")
        # The whole delay is in one direction.
        rtt = rtts_ms(result, "server udp", phase, skip_s=2)
        forward = rtts_ms(result, "server udp", phase, "forward_ns", skip_s=2)
        own, other = (forward, rtt - forward) if own_part == "forward" else (rtt - forward, forward)
        assert np.median(own) > 0.5 * bottleneck.longest_wait_ms
        assert np.median(other) < 0.1 * bottleneck.longest_wait_ms
        entry = next(entry for entry in facts["goodput"] if entry["phase"] == phase)
        # 1448 of 1514 bytes are payload; the start costs some rate.
        assert 0.8 * bottleneck.bps < entry["bps"] < bottleneck.bps
    # The gateway's queue is towards us, so uploads don't delay its pings.
    assert np.median(rtts_ms(result, "gateway", 2, skip_s=2)) < 0.1 * SLOW_UP.longest_wait_ms


def test_queueing_at_the_own_interface_is_reported_and_so_is_a_silent_target(
    live_network: LiveNetwork,
) -> None:
    own = Bottleneck(3_000_000, 60_000)
    for line in ("qdisc add dev eth0 root handle 1: htb default 1", *queue("eth0", own)):
        live_network.tc("client", line)
    nobody = "10.77.1.99"
    asked = {
        "phases": [["idle", 0.5], ["upload", 5]],
        "targets": [["udp"], ["icmp", nobody], ["icmp", "hop 1"]],
        # The kernel allows each stream only a few packets in the host's own queue.
        "streams": 32,
        "probe_timeout_ns": S,
    }
    with served(live_network), session_through(live_network, **asked) as session:
        result = session.result()
    facts, rows = (
        result["facts"],
        {key: np.array(value) for key, value in result["tables"]["queue"].items()},
    )
    assert facts["links"][0] == {
        "name": "eth0",
        "interface": "eth0",
        "direction": "out",
        "qdisc": "htb, bfifo",
    }
    out = rows["link"] == 0
    assert rows["backlog_bytes"][out].max() == pytest.approx(own.limit_bytes, rel=AGREES)
    assert rows["dropped_packets"][out].sum() > 0
    assert_longest(rtts_ms(result, "server udp", 1, skip_s=2), own, "upload")
    assert [probe["address"] for probe in facts["probes"] if probe["name"] == "hop 1"] == [
        ROUTER_TO_CLIENT
    ]
    silent = next(probe for probe in facts["probes"] if probe["address"] == nobody)
    assert silent["received"] == 0
    assert silent["lost"] == silent["sent"] > 0
    assert any(f"{nobody} ({nobody}) answered none" in note for note in facts["notes"])


def test_results_are_kept_if_the_line_is_cut(live_network: LiveNetwork) -> None:
    asked = {
        "phases": [["idle", 0.5], ["both", 60]],
        "patience_ns": 3 * S,
        "probe_interval_ns": 20 * MS,
    }
    with served(live_network), session_through(live_network, **asked) as session:
        session.until("both", 1.5)
        live_network.run("router", "ip", "link", "set", "to-server", "down")
        result = session.result()
    facts = result["facts"]
    assert facts["outcome"] == "partial"
    assert "did not answer for 3 s" in facts["why"]
    assert [phase["complete"] for phase in facts["phases"]] == [True, False]
    assert facts["duration_ns"] < 50 * S
    assert {entry["direction"] for entry in facts["goodput"]} == {"down", "up"}
    assert all(entry["bytes"] > 0 for entry in facts["goodput"])
    udp = facts["probes"][0]
    assert udp["lost"] > 10
    # The server, which would know where they were lost, is gone.
    assert udp["lost_forward"] is None


def test_losses_are_counted_by_direction(live_network: LiveNetwork) -> None:
    def lose(host: str) -> None:
        live_network.run("router", "ip", "route", "add", "blackhole", f"{host}/32")
        time.sleep(1.0)
        live_network.run("router", "ip", "route", "del", "blackhole", f"{host}/32")

    asked = {"phases": [["idle", 100]], "targets": [["udp"]], "probe_timeout_ns": S}
    with served(live_network), session_through(live_network, **asked) as session:
        session.until("idle", 1)
        lose(SERVER)
        session.until("idle", 1)
        lose(CLIENT)
        session.until("idle", 1)
        session.interrupt()
        result = session.result()
    assert result["facts"]["outcome"] == "interrupted"
    udp = result["facts"]["probes"][0]
    assert udp["lost"] == udp["lost_forward"] + udp["lost_backward"]
    # A second of each, at 20/s; the exact time depends on how quickly ip starts.
    assert udp["lost_forward"] > 10
    assert udp["lost_backward"] > 10
