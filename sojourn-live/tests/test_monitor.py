"""The monitor on the command line: over loopback and in its own network namespaces, its page, and
the graph of its database."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
import shapes
from live_network import wait_until
from matplotlib.figure import Figure

from sojourn.cli import status
from sojourn.errors import UserError
from sojourn.figures import smoke as smokes
from sojourn.figures import style
from sojourn.figures.series import DENSITY_LEVELS, Density, Line
from sojourn_live import _live
from sojourn_live.monitor import beside, page
from sojourn_live.monitor.daytime import DayTime, Reading
from sojourn_live.monitor.prober import Monitor, aim
from sojourn_live.monitor.store import WIDTHS, Event, Keep, ProbeSamples, Reader, Store

MS = 10**6
S = 10**9
PATIENCE_S = 60.0
"""The longest wait for an event that must happen."""


class Echo:
    """A UDP echo server (RFC 862) that records its datagrams. It can be made silent."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.silent = False
        self.got: list[tuple[float, int]] = []
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        while True:
            data, sender = self.socket.recvfrom(2048)
            if data == b"end":
                return
            self.got.append((time.time(), int.from_bytes(data[4:8], "little")))
            if not self.silent:
                self.socket.sendto(data, sender)

    def close(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.sendto(b"end", ("127.0.0.1", self.port))
        self.thread.join()
        self.socket.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    echo = Echo()
    yield echo
    echo.close()


def sojourn(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "sojourn", *map(str, arguments)]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        sojourn(*arguments), capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )


def sent(path: Path) -> int:
    """Probes that another program has committed."""
    with contextlib.suppress(Exception), Reader(path) as reader:
        return sum(
            row.sent
            for target in reader.targets()
            for row in reader.rows(target.id, 3600, 0, 2**40)
        )
    return 0


@contextlib.contextmanager
def running(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A monitor in a separate process, for the duration of the block."""
    with subprocess.Popen(
        sojourn("monitor", *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


# ------------------------------------------------------------------------------------- the prober


def collect(prober: _live.Prober, least: int) -> dict[str, Any]:
    """Collects at least `least` samples."""
    parts: list[dict[str, Any]] = []
    wait_until(
        "probes come back",
        lambda: parts.append(prober.take()) or sum(part["target"].size for part in parts) >= least,
    )
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def test_the_prober_s_samples_are_complete_and_on_the_monotonic_clock(echo: Echo) -> None:
    before = time.monotonic_ns()
    prober = _live.Prober([("127.0.0.1", echo.port), ("127.0.0.1", echo.port)], 10 * MS, 30 * S)
    columns = collect(prober, 60)
    prober.stop()
    prober.stop()
    after = time.monotonic_ns()
    assert (columns["loss"] == -1).all()
    assert (columns["rtt_ns"] > 0).all()
    assert (
        (columns["sent_ns"] >= before) & (columns["sent_ns"] + columns["rtt_ns"] <= after)
    ).all()
    # A plain echo server does not report its time.
    assert (columns["turned_ns"] == -1).all()
    for target, counts in enumerate(prober.counts()):
        sequence = np.sort(columns["sequence"][columns["target"] == target])
        assert sequence.tolist() == list(range(sequence.size))
        assert counts["received"] >= sequence.size
        assert counts["lost"] == counts["duplicate"] == 0
    assert {str(column.dtype) for column in columns.values()} == {"int64"}


def test_an_unanswered_probe_is_lost_after_the_timeout(echo: Echo) -> None:
    echo.silent = True
    prober = _live.Prober([("127.0.0.1", echo.port)], 10 * MS, 50 * MS)
    columns = collect(prober, 5)
    prober.stop()
    assert (columns["rtt_ns"] == -1).all()
    assert {_live.LOSSES[i] for i in columns["loss"]} == {"no reply"}


def test_invalid_settings_of_a_prober_are_refused() -> None:
    for targets, interval, timeout in (
        ([("example.net", None)], S, S),
        ([("127.0.0.1", 7)], 0, S),
        ([("127.0.0.1", 7)], MS, 100 * S),
    ):
        with pytest.raises(ValueError, match=r"address|interval"):
            _live.Prober(targets, interval, timeout)


def test_loopback_is_reached_by_the_interface_lo() -> None:
    index = _live.route_device("127.0.0.1")
    assert socket.if_indextoname(index) == "lo"
    received, transmitted = _live.device_bytes(index)
    assert received >= 0
    assert transmitted >= 0
    with pytest.raises(OSError, match="No such device"):
        _live.device_bytes(2**31 - 1)


# ------------------------------------------------------------------------------------ the monitor


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("no-such-host.invalid", "can't find"),
        ("http://example.net:80/", "is a URL, not a host"),
        ("", "can't find"),
        ("a" * 300, "can't find"),
        ("udp:127.0.0.1", "udp:HOST:PORT"),
        ("udp:127.0.0.1:0", "udp:HOST:PORT"),
        ("udp::7", "udp:HOST:PORT"),
        ("fe80::1%lo", "link-local"),
    ],
)
def test_an_invalid_target_is_refused(written: str, problem: str) -> None:
    with pytest.raises(UserError) as refused:
        aim(written)
    assert problem in refused.value.problem
    assert refused.value.hint


def test_targets_are_understood() -> None:
    assert (aim("127.0.0.1").address, aim("127.0.0.1").port) == ("127.0.0.1", None)
    assert (aim("udp:127.0.0.1:7").address, aim("udp:127.0.0.1:7").port) == ("127.0.0.1", 7)
    assert aim("udp:[::1]:7").address == "::1"


class Clocks:
    """The host's clocks plus the offsets of a test."""

    def __init__(self) -> None:
        self.slept = self.stepped = 0

    def read(self) -> Reading:
        now = time.monotonic_ns()
        return Reading(now, time.time_ns() + self.slept + self.stepped, now + self.slept)


def test_a_clock_step_and_a_suspension_are_recorded_and_lose_no_probe(
    echo: Echo, tmp_path: Path
) -> None:
    clocks = Clocks()
    began = time.time_ns()
    with Store.open(tmp_path / "m.db") as store:
        monitor = Monitor(
            store, [aim(f"udp:127.0.0.1:{echo.port}")], interval_ns=10 * MS, timeout_ns=200 * MS,
            day=DayTime(clocks.read),
        )  # fmt: skip
        watched = monitor.watched[0]

        def on(probes: int) -> None:
            reached = watched.sent + probes
            wait_until("it has sent", lambda: monitor.step() or watched.sent >= reached)

        on(30)
        clocks.stepped = -3600 * S
        on(30)
        # Probes under way at the suspension are lost, but the line did not lose them.
        echo.silent = True
        time.sleep(0.1)
        clocks.slept = 8 * 3600 * S
        monitor.step()
        echo.silent = False
        # This takes more than two seconds, because traffic is counted between two seconds.
        on(220)
        monitor.close()
        assert monitor.interface == "lo"
    with Reader(tmp_path / "m.db") as reader:
        events = {event.kind: event for event in reader.events(0, 2**33)}
        assert set(events) == {"start", "step", "suspended", "stop"}
        assert "-3600.0" in events["step"].text
        assert "28800.0 s" in events["suspended"].text
        t_ns, rtt_ns = reader.probes(1, 0, 2**33)
        assert t_ns.size == watched.sent
        hours = {int(t - began) // (3600 * S) for t in t_ns.tolist()}
        assert hours == {-1, 0, 7}
        # No probe from before the suspension counts as lost; the host may have been slow to answer
        # again.
        slept_at = events["suspended"].t_ns - 8 * 3600 * S
        assert not np.isnan(rtt_ns[t_ns <= slept_at]).any()
        for width in WIDTHS:
            assert sum(row.sent for row in reader.rows(1, width, 0, 2**40)) == watched.sent
        assert (reader.traffic(reader.interfaces()["lo"], 1, 0, 2**40).received_bytes >= 0).all()


def test_only_the_probes_to_a_silent_target_are_lost(echo: Echo, tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as deaf:
        deaf.bind(("127.0.0.1", 0))
        silent = f"udp:127.0.0.1:{deaf.getsockname()[1]}"
        done = run(
            "monitor", silent, f"udp:127.0.0.1:{echo.port}", "--for", "3s", "--interval", "20ms", "--timeout", "1s",
            "--db", tmp_path / "m.db", "--json",
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    whole = json.loads(done.stdout)
    shapes.check("monitor", whole)
    dead, alive = whole["targets"]
    assert dead["name"] == silent
    assert (dead["received"], dead["loss_rate"], dead["last_loss"]) == (0, 1.0, "no reply")
    assert set(dead["rtt_ms"].values()) == {None}
    assert alive["received"] > 0
    assert 0 < alive["rtt_ms"]["min"] <= alive["rtt_ms"]["median"] <= alive["rtt_ms"]["max"]
    with Reader(tmp_path / "m.db") as reader:
        kept = [
            sum(row.sent for row in reader.rows(target.id, 3600, 0, 2**40))
            for target in reader.targets()
        ]
    assert kept == [dead["sent"], alive["sent"]]


def test_the_exit_status_is_1_if_no_target_ever_answers(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as deaf:
        deaf.bind(("127.0.0.1", 0))
        done = run(
            "monitor", f"udp:127.0.0.1:{deaf.getsockname()[1]}", "--for", "2s", "--timeout", "500ms",
            "--db", tmp_path / "m.db",
        )  # fmt: skip
    assert done.returncode == 1
    assert "no target ever answered" in done.stderr
    assert "100 %" in done.stdout


@pytest.mark.parametrize(
    ("number", "length", "code"), [(signal.SIGTERM, [], 0), (signal.SIGINT, ["--for", "1h"], 130)]
)
def test_a_signal_to_end_keeps_everything(
    echo: Echo, tmp_path: Path, number: int, length: Sequence[str], code: int
) -> None:
    path = tmp_path / "m.db"
    with running(
        f"udp:127.0.0.1:{echo.port}", "--interval", "20ms", "--db", path, *length
    ) as process:
        wait_until("it is at work", lambda: sent(path) > 50)
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code, err
    assert "Traceback" not in err
    row = out.splitlines()[2].split()
    assert row[0] == f"udp:127.0.0.1:{echo.port}"
    assert int(row[1]) == sent(path)
    assert not (tmp_path / "m.db-wal").exists()
    with Reader(path) as reader:
        assert [event.kind for event in reader.events(0, 2**33)] == ["start", "stop"]


def test_kill_9_loses_at_most_the_last_second_and_the_next_monitor_continues(
    echo: Echo, tmp_path: Path
) -> None:
    path = tmp_path / "m.db"
    target = f"udp:127.0.0.1:{echo.port}"
    for attempt in (1, 2, 3):
        with running(target, "--interval", "20ms", "--db", path) as process:
            reached = sent(path) + 100
            wait_until("it goes on", lambda reached=reached: sent(path) > reached)
            os.kill(process.pid, signal.SIGKILL)
            killed = time.time()
            process.wait()
        with Reader(path) as reader:
            t_ns, _ = reader.probes(1, 0, 2**33)
        began = t_ns[-1] / 1e9 - 2
        # Probes that the server echoed a second before are stored. (If the host stands still, the
        # monitor does, too.)
        missing = [at for at, _ in echo.got if t_ns[-1] / 1e9 + 0.05 < at < killed - 1]
        if not missing:
            break
        assert attempt < 3, f"{len(missing)} probes from {began:.3f} on are missing"
    before = sent(path)
    assert run("monitor", target, "--for", "1s", "--db", path, "-q").returncode == 0
    assert sent(path) > before
    with Reader(path) as reader:
        kinds = [event.kind for event in reader.events(0, 2**33)]
        assert kinds[-3:] == ["start", "start", "stop"]
        assert len(reader.targets()) == 1
        assert (
            len({sum(row.sent for row in reader.rows(1, width, 0, 2**40)) for width in WIDTHS}) == 1
        )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no-such-host.invalid"], "can't find 'no-such-host.invalid'"),
        (["udp:127.0.0.1:7", "--interval", "1ms"], "--interval"),
        (["udp:127.0.0.1:7", "--interval", "100"], "--interval"),
        (["udp:127.0.0.1:7", "--for", "ever"], "--for"),
        (["udp:127.0.0.1:7", "--for", "10"], 'write "10 min"'),
        (["udp:127.0.0.1:7", "--keep", "48"], 'write "48 h"'),
        (["udp:127.0.0.1:7", "--iface", "no-such-if"], "no-such-if"),
        (["udp:127.0.0.1:7", "--db", "/no/such/folder/m.db"], "/no/such/folder/m.db"),
    ],
)
def test_wrong_input_gives_an_error_and_a_hint(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert status(["monitor", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    error, hint = said.err.splitlines()[-2:]
    assert error.startswith("error: ")
    assert words in error + hint
    assert hint.startswith("hint: ")


# ------------------------------------------------------------------------------------- namespaces


@pytest.fixture(scope="module")
def namespaces() -> None:
    """Skips the test if a user can't create a network namespace."""
    try:
        done = subprocess.run(
            ["unshare", "--user", "--map-root-user", "--net", "ip", "link", "show", "lo"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except OSError as error:
        pytest.skip(f"unshare: {error.strerror}")
    if done.returncode != 0:
        pytest.skip(f"no network namespace for a user here: {done.stderr.strip()}")


@pytest.mark.usefixtures("namespaces")
def test_while_the_line_is_down_probes_are_lost_with_a_reason(tmp_path: Path) -> None:
    # A documentation address becomes the namespace's own: first there is no route to it, then it
    # answers by ICMP.
    script = """
    db=$1; shift
    "$@" & monitor=$!
    until [ -s $db-wal ]; do sleep 0.1; done
    sleep 2; ip link set lo up; ip address add 192.0.2.1/32 dev lo; sleep 3
    ip address del 192.0.2.1/32 dev lo; ip link set lo down; sleep 1
    kill -TERM $monitor; wait $monitor
    """
    path = tmp_path / "m.db"
    command = sojourn(
        "monitor", "192.0.2.1", "--interval", "50ms", "--timeout", "500ms", "--db", path, "--json"
    )
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", script, "sh", path, *command],
        capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (target,) = json.loads(done.stdout)["targets"]
    assert target["last_loss"] == "network unreachable"
    assert target["received"] > 0
    with Reader(path) as reader:
        _, rtt_ns = reader.probes(1, 0, 2**33)
        back = np.flatnonzero(np.isfinite(rtt_ns))
        assert back[0] > 0
        assert back[-1] < rtt_ns.size - 1
        assert "lo" in reader.interfaces()


@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("groups", ["", "0 0"], ids=["raw", "unprivileged"])
def test_an_icmp_error_for_a_request_is_recorded(tmp_path: Path, groups: str) -> None:
    # No host at the other end of the wire has these addresses: this host reports that after three
    # seconds of ARP.
    script = """
    if [ -n "$1" ]; then echo $1 > /proc/sys/net/ipv4/ping_group_range || exit 3; fi; shift
    ip link set lo up; ip link add here type veth peer name there; ip address add 192.0.2.1/24 dev here
    ip link set here up; ip link set there up
    exec "$@"
    """
    command = sojourn(
        "monitor", "192.0.2.2", "udp:192.0.2.3:9", "udp:127.0.0.1:9", "127.0.0.1", "--timeout", "60s", "--for", "7s",
        "--db", tmp_path / "m.db", "--json",
    )  # fmt: skip
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", script, "sh", groups, *command],
        capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    if done.returncode == 3 or "Operation not supported" in done.stderr:
        pytest.skip(f"no such sockets or no veth here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    said = {target["name"]: target["last_loss"] for target in json.loads(done.stdout)["targets"]}
    assert said == {
        "192.0.2.2": "host unreachable",
        "udp:192.0.2.3:9": "host unreachable",
        "udp:127.0.0.1:9": "port closed",
        "127.0.0.1": None,
    }


@pytest.mark.usefixtures("namespaces")
def test_without_permission_to_ping_the_error_says_what_to_do(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    command = sojourn("monitor", "127.0.0.1", "--db", tmp_path / "m.db")
    done = subprocess.run(
        ["unshare", "--user", "--map-user=65534", "--map-group=65534", "--net", "--", *command],
        capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    error, hint = done.stderr.splitlines()
    assert "CAP_NET_RAW" in error
    assert "ping_group_range" in hint
    assert "udp:HOST:PORT" in hint


# --------------------------------------------------------------------------------------- the page


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """The last ten minutes of two targets; the second one loses a tenth of its probes."""
    path = tmp_path / "m.db"
    begin = int(time.time()) - 600
    with Store.open(path) as store:
        ids = [
            store.target(name, "192.0.2.1", 100 * MS) for name in ("router", "<b>server</b> & $1")
        ]
        t = begin * S + np.arange(6000, dtype=np.int64) * 100 * MS
        for target in ids:
            rtt = (5 * target + np.arange(6000) % 10) * MS
            rtt[::10] = -1 if target == ids[1] else rtt[::10]
            store.add(
                ProbeSamples(
                    0 * t + target, t, np.arange(6000), rtt, np.where(rtt < 0, 0, -1), 0 * t
                )
            )
        interface = store.interface("eth0")
        for i in range(600):
            store.add_traffic((begin + i) * S + S // 2, interface, 250_000, 125_000, S)
        store.event(Event((begin + 300) * S, "step", "the clock was stepped by -1.000 s"))
    return path


def fetch(url: str, **headers: str) -> tuple[int, bytes, Any]:
    request = urllib.request.Request(url, headers=headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=PATIENCE_S) as reply:
            return reply.status, reply.read(), reply.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(), error.headers


def test_the_page_shows_the_stored_values(kept: Path) -> None:
    with page.serve(kept) as url:
        code, text, headers = fetch(url)
        assert code == 200
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        # The page loads nothing from other hosts.
        assert not re.search(rb"(?:src|href)=[\"']?(?:https?:)?//", text)
        code, body, _ = fetch(url.replace("/?", "/data?span=600&"))
        assert code == 200
        data = json.loads(body)
    router, server = data["targets"]
    assert data["width"] == 1
    assert router["name"] == "router"
    assert sum(router["lost"]) == 0
    assert sum(server["lost"]) * 10 == sum(server["sent"])
    assert router["max"][5] == 14
    assert abs(router["p50"][5] - 9.5) < 0.1
    (traffic,) = data["traffic"]
    assert traffic["received"][5] == 2.0
    assert traffic["sent"][5] == 1.0
    assert [event["text"] for event in data["events"]] == ["step the clock was stepped by -1.000 s"]
    with page.serve(kept) as url:
        since = int(time.time()) - 60
        later = json.loads(fetch(url.replace("/?", f"/data?span=600&since={since}&"))[1])
        assert 0 < len(later["targets"][0]["t"]) < 65
        hour = json.loads(fetch(url.replace("/?", "/data?span=86400&"))[1])
        assert hour["width"] == 60


def test_the_page_is_refused_without_the_token_or_from_another_origin(
    kept: Path,
) -> None:
    with page.serve(kept) as url:
        port = url.split(":")[2].split("/")[0]
        bare = url.split("?")[0]
        for address, headers in (
            (bare, {}),
            (f"{bare}?token=", {}),
            (url[:-1], {}),
            (f"{url}x", {}),
            (f"{bare}data?span=600", {}),
            (url, {"Origin": "http://example.net"}),
            (url, {"Origin": "null"}),
            (url, {"Host": f"example.net:{port}"}),
        ):
            code, body, _ = fetch(address, **headers)
            assert code == 403, (address, headers)
            assert b"server" not in body
        assert fetch(url, Origin=f"http://127.0.0.1:{port}")[0] == 200
        assert fetch(url, Host=f"localhost:{port}")[0] == 200
        assert fetch(url.replace("/?", "/etc/passwd?"))[0] == 404
        wrong_ones = ("span=7", "span=x", f"span={'9' * 5000}", "span=٦٠٠", "")
        since = ("-1", "99999999999999", "999999999999", "9999999999")
        for wrong in (*wrong_ones, *(f"span=600&since={each}" for each in since)):
            quoted = urllib.parse.quote(wrong, safe="=&")
            assert fetch(url.replace("/?", f"/data?{quoted}&"))[0] == 400, wrong
        assert fetch(url.replace("/?", "/data?span=600&since=8999999999&"))[0] == 200
        with socket.create_connection(("127.0.0.1", int(port)), timeout=PATIENCE_S) as rude:
            rude.sendall(b"GET http://[::1/ HTTP/1.0\r\n\r\n")
            assert rude.recv(100).startswith(b"HTTP/1.0 400 ")
        # It listens on loopback only, and does not answer an invalid request.
        with socket.create_connection(("127.0.0.1", int(port)), timeout=PATIENCE_S) as rude:
            rude.sendall(b"\xff\x00garbage\r\n\r\n")
            assert b"400" in rude.recv(4096)
        code, _, _ = fetch(url)
        assert code == 200
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)), timeout=1)


def test_two_pages_have_different_tokens_and_a_port_in_use_is_reported(kept: Path) -> None:
    with page.serve(kept) as one, page.serve(kept) as other:
        assert one.split("token=")[1] != other.split("token=")[1]
        port = int(one.split(":")[2].split("/")[0])
        with pytest.raises(Exception, match="can't listen"), page.serve(kept, port):
            pass


def test_a_monitor_shows_its_page_while_it_runs(echo: Echo, tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with running(
        f"udp:127.0.0.1:{echo.port}", "--interval", "20ms", "--db", path, "--page"
    ) as process:
        assert process.stderr is not None
        url = re.search(r"http://\S+", process.stderr.readline())
        assert url is not None
        wait_until("it is at work", lambda: sent(path) > 20)
        data = json.loads(fetch(url[0].replace("/?", "/data?span=600&"))[1])
        assert sum(data["targets"][0]["sent"]) > 20
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0


# -------------------------------------------------------------------------------------- the graph


def names(figure: Figure) -> list[str]:
    """The names of all artists that have one."""
    return [str(artist.get_gid()) for artist in figure.findobj() if artist.get_gid()]


def words(figure: Figure) -> str:
    """All text on a figure."""
    figure.canvas.draw()
    return "\n".join(text.get_text() for text in figure.findobj(matplotlib.text.Text))


def density(
    columns: int, sent: Sequence[int], lost: Sequence[int], rtt_ms: float = 20.0
) -> Density:
    levels = np.outer(np.linspace(0.5, 1.5, DENSITY_LEVELS.size), np.full(columns, rtt_ms))
    levels[:, np.array(sent) == np.array(lost)] = np.nan
    return Density(
        1.0, np.arange(columns, dtype=float), DENSITY_LEVELS, levels, np.array(sent), np.array(lost)
    )


def drawn(*targets: smokes.Smoke, span: float = 6.0, **more: Any) -> Figure:
    import datetime

    return smokes.smoke(
        targets,
        more.get("carried", []),
        more.get("remarks", []),
        start_s=1.7e9,
        end_s=1.7e9 + span,
        zone=datetime.UTC,
    )


NO_PROBES = Line(np.empty(0), np.empty(0))


def test_the_median_s_colour_shows_the_loss_and_gaps_do_not_count_as_loss() -> None:
    sent, lost = [10, 1000, 100, 10, 10, 0], [0, 5, 4, 2, 10, 0]
    figure = drawn(smokes.Smoke("a", density(6, sent, lost), NO_PROBES))
    segments = {
        collection.get_gid(): collection.get_segments()
        for collection in figure.findobj(matplotlib.collections.LineCollection)
        if str(collection.get_gid()).startswith("median")
    }
    at = {gid: [segment[0][0] for segment in found] for gid, found in segments.items()}
    assert at == {
        "median 0": [0.0],
        "median 1": [1.0],
        "median 2": [2.0],
        "median 3": [3.0],
        "median 4": [],
    }
    assert names(figure).count("all lost") == 1
    assert names(figure).count("gap") == 1
    assert f"21 of 1{chr(0x202F)}130 lost" in words(figure)


def test_a_spike_does_not_flatten_the_rest_and_is_named() -> None:
    columns = density(400, [10] * 400, [0] * 400)
    columns.rtt_ms[-1, 7] = 5000
    figure = drawn(smokes.Smoke("a", columns, NO_PROBES), span=400.0)
    assert figure.axes[0].get_ylim()[1] < 200
    assert "greatest RTT 5" in words(figure)
    assert "beyond the axis" in words(figure)
    assert names(figure).count("beyond") == 1
    level = drawn(smokes.Smoke("a", density(400, [10] * 400, [0] * 400), NO_PROBES), span=400.0)
    assert "beyond" not in words(level)


def test_a_graph_without_data_can_be_drawn() -> None:
    figure = drawn(
        smokes.Smoke("a $1", density(6, [0] * 6, [0] * 6), NO_PROBES),
        carried=[smokes.Carried("eth0", 1.0, *[np.empty(0)] * 5)],
    )
    assert "nothing was sent" in words(figure)
    assert "no traffic of eth0" in words(figure)
    dead = drawn(smokes.Smoke("a", density(6, [9] * 6, [9] * 6), NO_PROBES))
    assert names(dead).count("all lost") == 6


def test_the_graph_shows_the_stored_values(kept: Path) -> None:
    graph = importlib.import_module("sojourn_live.cli.graph")
    with Reader(kept) as reader:
        held = reader.span()
        assert held is not None
        server = reader.targets()[1]
        for length, column in ((60, 1), (600, 1), (7200, 10)):
            found = graph._smoke(reader, server, held[1] - length, held[1])
            assert found.density.column_s == column
            assert found.density.sent.sum() == 10 * min(length, 600)
            assert found.density.lost.sum() == min(length, 600)
            t_ns, rtt_ns = reader.probes(server.id, held[1] - length, held[1])
            relative = t_ns / 1e9 - (held[1] - length)
            for i in np.flatnonzero(found.density.sent)[:20]:
                left = found.density.t[i]
                inside = rtt_ns[(relative >= left - 1e-6) & (relative < left + column - 1e-6)] / 1e6
                expected = np.nanquantile(inside, DENSITY_LEVELS)
                assert np.allclose(found.density.rtt_ms[:, i], expected, rtol=0.008)
        (eth0,) = graph._carried(reader, held[1] - 7200, held[1])
        seen = np.isfinite(eth0.down_mbps)
        assert np.allclose(eth0.down_mbps[seen], 2.0)
        assert np.allclose(eth0.up_most[seen], 1.0)


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_graph_is_a_file(
    kept: Path, tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"g.{ending}"
    assert status(["graph", str(kept), "--last", "10 min", "-o", str(out), "--utc"]) == 0
    assert out.stat().st_size > 5000
    assert str(out) in capsys.readouterr().err
    if ending == "svg":
        text = out.read_text()
        assert "&lt;b&gt;server&lt;/b&gt;" in text
        assert "the clock was stepped" in text
        assert text.count('id="probes"') == 2


def test_a_graph_of_months_is_drawn_from_hours(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    begin = int(time.time()) // 3600 * 3600 - 90 * 86400
    with Store.open(path, Keep(None, None, None, None, None)) as store:
        target = store.target("a", "192.0.2.1", 3600 * S)
        t = begin * S + np.arange(90 * 24, dtype=np.int64) * 3600 * S
        store.add(
            ProbeSamples(0 * t + target, t, np.arange(t.size), 0 * t + 20 * MS, 0 * t - 1, 0 * t)
        )
    out = tmp_path / "g.svg"
    assert status(["graph", str(path), "--last", "2w", "-o", str(out)]) == 0
    assert status(["graph", str(path), "--last", "90 d", "-o", str(out)]) == 0
    assert "each column 3 h" in out.read_text()
    # With a probe an hour there are no gaps, whatever the span.
    graph = importlib.import_module("sojourn_live.cli.graph")
    with Reader(path) as reader:
        whole = begin // 10800 * 10800 + 10800
        found = graph._smoke(reader, reader.targets()[0], whole, whole + 12 * 3600)
    assert found.density.sent.tolist() == [3, 3, 3, 3]


def test_columns_are_whole_numbers_of_roll_ups() -> None:
    graph = importlib.import_module("sojourn_live.cli.graph")
    for column in graph.COLUMNS_S:
        assert column % max(width for width in WIDTHS if width <= column) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no.db"], "there is no file no.db"),
        (["m.db", "--target", "nobody"], "no target 'nobody'"),
        (["m.db", "--from", "yesterday"], "--from"),
        (["m.db", "--to", "2001-01-01"], "nothing was sent"),
        (["m.db", "--from", "12:00", "--to", "11:00"], "less than a second"),
        (["m.db", "--last", "day"], "--last"),
        (["m.db", "--from", "99999-01-01"], "--from"),
        (["m.db", "-o", "/no/such/folder/g.png"], "/no/such/folder/g.png"),
    ],
)
def test_a_graph_of_a_missing_target_or_span_is_refused(
    arguments: list[str],
    words: str,
    kept: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(kept.parent)
    assert status(["graph", "-o", "g.png", *arguments]) == 2
    error, hint = capsys.readouterr().err.splitlines()[-2:]
    assert error.startswith("error: ")
    assert words in error
    assert hint.startswith("hint: ")
    assert not Path("g.png").exists()


def test_a_graph_has_the_same_bytes_each_time(kept: Path) -> None:
    sent, lost = [10, 10, 10], [0, 1, 10]
    one, other = (
        style.render(drawn(smokes.Smoke("a", density(3, sent, lost), NO_PROBES)), "svg")
        for _ in range(2)
    )
    assert one == other


@pytest.fixture
def ping_run(tmp_path: Path) -> Path:
    """A Run of ping's text: 40 probes in the last 8 s, one of which was lost."""
    now = time.time()
    lines = [
        f"[{now - 8 + at / 5 + 0.02:.6f}] 64 bytes from 192.0.2.1: icmp_seq={at + 1} ttl=57 time=20.0 ms"
        for at in range(40)
        if at != 7
    ]
    text = ["PING one.example (192.0.2.1) 56(84) bytes of data.", *lines]
    (tmp_path / "ping.txt").write_text("\n".join(text) + "\n")
    assert status(["import", str(tmp_path / "ping.txt"), "-o", str(tmp_path / "ping"), "-q"]) == 0
    return tmp_path / "ping"


def test_measurements_are_shown_beside_the_monitors_own(
    ping_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with beside.database([ping_run]) as other:
        with Reader(other) as reader:
            (target,) = reader.targets()
            assert target.name == "one.example ICMP (ping)"
            now = time.time()
            rows = list(reader.rows(target.id, 1, now - 60, now + 60))
            assert sum(row.sent for row in rows) == 40
            assert sum(row.lost for row in rows) == 1
        with Store.open(tmp_path / "own.db") as store:
            own = store.target("own", "192.0.2.2", 100 * MS)
            t_ns = np.array([int((time.time() - 4) * 1e9)])
            zero = np.zeros(1, np.int64)
            store.add(ProbeSamples(zero + own, t_ns, zero, zero + 5 * MS, zero - 1, zero))
        with page.serve(tmp_path / "own.db", beside=other) as url:
            shown = json.loads(urllib.request.urlopen(url.replace("/?", "/data?span=600&")).read())
        assert [each["name"] for each in shown["targets"]] == ["own", "one.example ICMP (ping)"]
        assert sum(shown["targets"][1]["lost"]) == 1
        assert {each for each in shown["targets"][1]["p50"] if each is not None} == {20.0}
    assert not other.exists()
    words = ["graph", str(tmp_path / "own.db"), "--beside", str(ping_run), "--last", "1 min"]
    assert status([*words, "-o", str(tmp_path / "both.svg")]) == 0
    drawn = (tmp_path / "both.svg").read_text()
    assert "one.example ICMP (ping)" in drawn
    assert "own" in drawn
    capsys.readouterr()
    old = ["--from", "2001-01-01 00:00", "--to", "2030-01-01 00:00"]
    assert (
        status(["graph", str(tmp_path / "own.db"), "--beside", str(tmp_path), "-o", "x.svg", *old])
        == 2
    )
    assert "is not a Run" in capsys.readouterr().err
    simulated = str(tmp_path / "simulated")
    short = ["--set", "duration=6 s", "--seeds", "1", "-q"]
    assert status(["run", "home-uplink", *short, "-o", simulated]) == 0
    capsys.readouterr()
    assert status(["graph", str(tmp_path / "own.db"), "--beside", simulated, "-o", "x.svg"]) == 2
    refused = capsys.readouterr().err
    assert f"{simulated} is not a measurement" in refused
    assert "give a Run of sojourn measure, or one that sojourn import wrote" in refused
    assert status(["monitor", "127.0.0.1", "--beside", str(ping_run)]) == 2
    assert "--beside is for the page" in capsys.readouterr().err
