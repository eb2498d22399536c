"""A network to measure and to shape on: client, router and server, each in a network namespace.

    client eth0 ---- to-client router to-server ---- eth0 server
    10.77.1.2            10.77.1.1   10.77.2.1       10.77.2.2

The router's two devices are the bottleneck: `to-server` is up, `to-client` is down. Each has htb
with one bfifo below it, so that the longest queue is known in bytes. No packet is larger than the
MTU, so a queue holds exactly its limit in bytes.

One process of ours holds the namespaces, as root or, for any other user, in a user namespace. Their
names are in a private mount namespace. That process ends when our end of its pipe is closed, even if
we are killed. It first kills the processes that are still in the three namespaces."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from sojourn.engine import namespaces
from sojourn.engine.kernel.guest.endings import GuestError

HOSTS = ("client", "router", "server")
CLIENT, ROUTER_TO_CLIENT, ROUTER_TO_SERVER, SERVER = (
    "10.77.1.2",
    "10.77.1.1",
    "10.77.2.1",
    "10.77.2.2",
)
PATIENCE_S = 60.0
"""The longest wait for an event that must happen."""
FULL_PACKET = 1514
STALL_S = 0.05
"""A bottleneck keeps its rate although timers fire as late as this, as on a virtual machine whose
host is busy."""
_READY = "ready"


@dataclass(frozen=True)
class Bottleneck:
    """htb with a bfifo; the longest wait is about limit_bytes * 8 / bps."""

    bps: int
    limit_bytes: int

    @property
    def rate(self) -> str:
        """htb's rate in tc's syntax. The burst allows htb to catch up if its timer fires late. A
        queue with packets uses tokens as soon as it gets them, so the burst does not change the
        longest wait."""
        burst = max(2 * FULL_PACKET, round(self.bps * STALL_S / 8))
        return f"rate {self.bps}bit ceil {self.bps}bit burst {burst} cburst {burst}"

    @property
    def longest_wait_ms(self) -> float:
        return self.limit_bytes * 8e3 / self.bps


SLOW_UP = Bottleneck(5_000_000, 125_000)
"""Up to 200 ms of queue."""
SLOW_DOWN = Bottleneck(20_000_000, 250_000)
"""Up to 100 ms of queue."""


def _script(up: Bottleneck, down: Bottleneck) -> str:
    steps = ["set -e", "mount -t tmpfs none /run", *(f"ip netns add {host}" for host in HOSTS)]
    for host, ours, theirs, subnet in (
        ("client", CLIENT, ROUTER_TO_CLIENT, "10.77.2.0/24"),
        ("server", SERVER, ROUTER_TO_SERVER, "10.77.1.0/24"),
    ):
        steps += [
            f"ip link add name eth0 gso_max_segs 1 netns {host} type veth peer name to-{host} gso_max_segs 1 netns router",
            f"ip -n {host} addr add {ours}/24 dev eth0",
            f"ip -n router addr add {theirs}/24 dev to-{host}",
            f"ip -n {host} link set eth0 up",
            f"ip -n router link set to-{host} up",
            f"ip -n {host} route add {subnet} via {theirs}",
        ]
    steps += [f"ip -n {host} link set lo up" for host in HOSTS]
    steps += ["ip netns exec router sysctl -q -w net.ipv4.ip_forward=1"]
    for device, bottleneck in (("to-server", up), ("to-client", down)):
        root = f"qdisc add dev {device} root handle 1: htb default 1"
        steps += [f"tc -n router {line}" for line in (root, *queue(device, bottleneck))]
    # Processes that remain in the namespaces at the end, such as background ones, are ended.
    ending = (
        "for host in " + " ".join(HOSTS) + "; do kill -9 $(ip netns pids $host) 2>/dev/null; done"
    )
    return "\n".join([*steps, f"echo {_READY}", "cat > /dev/null", "set +e", ending])


def queue(device: str, bottleneck: Bottleneck) -> list[str]:
    """The tc command lines that create a queue and change it."""
    return [
        f"class replace dev {device} parent 1: classid 1:1 htb {bottleneck.rate} quantum {FULL_PACKET}",
        f"qdisc replace dev {device} parent 1:1 handle 10: bfifo limit {bottleneck.limit_bytes}",
    ]


class LiveNetwork:
    """The three hosts, and how to run programs on them."""

    def __init__(self, holder: subprocess.Popen[str], way: namespaces.Way) -> None:
        self._holder = holder
        self.way = way

    def command(self, host: str, *words: str) -> list[str]:
        """The command line that runs `words` on a host. Each of its steps executes the next one, so
        it is one process, which ends with us."""
        joins = ["nsenter", f"--target={self._holder.pid}", "--mount"]
        if self.way is namespaces.USER:
            joins += ["--user", "--preserve-credentials"]
        return [
            *joins,
            "--",
            "ip",
            "netns",
            "exec",
            host,
            "setpriv",
            "--pdeathsig",
            "KILL",
            "--",
            *words,
        ]

    def run(
        self, host: str, *words: str, check: bool = True, timeout: float = PATIENCE_S, **more: Any
    ) -> subprocess.CompletedProcess[str]:
        """Runs a program to its end."""
        done = subprocess.run(
            self.command(host, *words),
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
            **more,
        )
        assert not check or done.returncode == 0, (
            f"{' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        return done

    @contextlib.contextmanager
    def start(self, host: str, *words: str, **more: Any) -> Iterator[subprocess.Popen[str]]:
        """Runs a program for the duration of the block, unless it ends earlier. stdout and stderr
        are pipes by default."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(self.command(host, *words), **{**pipes, **more}) as program:
            try:
                yield program
            finally:
                program.kill()

    def tc(self, host: str, line: str) -> str:
        """The output of `tc` with these arguments."""
        return self.run(host, "tc", *line.split()).stdout

    def limit(self, direction: str, bottleneck: Bottleneck) -> None:
        """Changes the bottleneck: direction `up` or `down`."""
        device = {"up": "to-server", "down": "to-client"}[direction]
        for line in queue(device, bottleneck):
            self.tc("router", line)


@contextlib.contextmanager
def network(up: Bottleneck = SLOW_UP, down: Bottleneck = SLOW_DOWN) -> Iterator[LiveNetwork]:
    """A network for the duration of the block. Skips the test, with the reason, if none can be
    made."""
    try:
        way = namespaces.way()
    except GuestError as error:
        pytest.skip(f"{error.problem}; {error.hint}")
    command = way.command(_script(up, down))
    pipe = subprocess.PIPE
    env = {**os.environ, "PATH": f"{namespaces.PATH}:{os.environ.get('PATH', '')}"}
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=env, start_new_session=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stderr is not None
        if holder.stdout.readline().strip() != _READY:
            pytest.skip(f"no network of namespaces here: {holder.stderr.read().strip()}")
        try:
            yield LiveNetwork(holder, way)
        finally:
            _end(holder)


def _end(holder: subprocess.Popen[str]) -> None:
    assert holder.stdin is not None
    with contextlib.suppress(OSError):
        holder.stdin.close()
    try:
        holder.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(holder.pid, signal.SIGKILL)
        raise


@pytest.fixture
def live_network() -> Iterator[LiveNetwork]:
    """5 Mbit/s up with up to 200 ms of queue, 20 Mbit/s down with up to 100 ms."""
    with network() as found:
        yield found


def wait_until(what: str, true: Any, patience_s: float = PATIENCE_S) -> Any:
    """Calls `true()` until its result is true, and returns that result."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        if found := true():
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {patience_s:g} s: {what}")
