"""The network of the live tests works as live_network.py describes, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import live_network
import pytest
from live_network import CLIENT, SERVER, Bottleneck, LiveNetwork, network, wait_until

ECHO = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("{SERVER}", 7)); print("bound", flush=True)
while True:
    data, peer = s.recvfrom(65535); s.sendto(data, peer)
"""
ASK = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5); s.sendto(b"x", ("{SERVER}", 7))
print(s.getsockname()[0], s.recv(10))
"""


def test_a_packet_goes_there_and_back_through_the_router(live_network: LiveNetwork) -> None:
    with live_network.start("server", sys.executable, "-c", ECHO) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "bound\n"
        live_network.run("client", sys.executable, "-c", ASK)
    assert server.wait() == -signal.SIGKILL
    assert (
        "Sent 0 bytes"
        not in live_network.tc("router", "-s qdisc show dev to-server").splitlines()[1]
    )


def test_the_bottleneck_has_the_requested_rate_and_can_be_changed() -> None:
    with network(up=Bottleneck(3_000_000, 60_000)) as net:
        assert "rate 3Mbit ceil 3Mbit" in net.tc("router", "class show dev to-server")
        assert "bfifo 10: parent 1:1 limit 60000b" in net.tc("router", "qdisc show dev to-server")
        net.limit("up", Bottleneck(8_000_000, 100_000))
        assert "rate 8Mbit ceil 8Mbit" in net.tc("router", "class show dev to-server")
        assert "limit 100000b" in net.tc("router", "qdisc show dev to-server")


def test_the_host_s_own_network_is_not_touched() -> None:
    before = subprocess.run(
        ["ip", "-br", "link"], capture_output=True, text=True, check=False
    ).stdout
    with network() as net:
        assert CLIENT in net.run("client", "ip", "-br", "addr").stdout
        during = subprocess.run(
            ["ip", "-br", "link"], capture_output=True, text=True, check=False
        ).stdout
    assert during == before


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_the_network_ends_with_the_process_that_made_it(sent: signal.Signals) -> None:
    # A process makes a network, and in it a background process with its own session.
    script = (
        "import sys, live_network\n"
        "with live_network.network() as net:\n"
        "    net.run('server', 'sh', '-c', 'setsid sleep 1000 < /dev/null > /dev/null 2>&1 & echo $!')\n"
        "    print(net.run('server', 'ip', 'netns', 'pids', 'server').stdout.split()[0], flush=True)\n"
        "    sys.stdin.read()\n"
    )
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(live_network.__file__).parent), *sys.path]),
    }
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=env,
    ) as maker:
        assert maker.stdout is not None
        background = maker.stdout.readline().strip()
        if not background:
            pytest.skip("no network of namespaces here")
        assert Path("/proc", background).exists()
        maker.send_signal(sent)
        maker.wait()
    wait_until("the background process ends", lambda: not Path("/proc", background).exists())
