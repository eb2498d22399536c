"""The shaper on real interfaces, in network namespaces: it cures, and it is rolled back exactly,
also if the process that applied it is killed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import shapes
from live_network import (
    CLIENT,
    FULL_PACKET,
    ROUTER_TO_CLIENT,
    SERVER,
    Bottleneck,
    LiveNetwork,
    network,
    wait_until,
)

COUNTED = re.compile(r"refcnt \d+ ?|direct_packets_stat \d+|\bref \d+ bind \d+")
TRAFFIC = Path(__file__).parent / "live_traffic.py"
UP = Bottleneck(8_000_000, 200_000)
"""Up to 200 ms of queue."""
DOWN = Bottleneck(8_000_000, 200_000)


@pytest.fixture(scope="module")
def net() -> Iterator[LiveNetwork]:
    with network(UP, DOWN) as found:
        yield found


@pytest.fixture(autouse=True)
def as_it_was(net: LiveNetwork) -> Iterator[None]:
    """Checks that each test begins and ends with the client's interface in its initial state."""
    before = shown(net)
    yield
    sojourn(net, "shape", "eth0", "--undo", check=False)
    for place in ("root", "ingress", "clsact"):
        net.run("client", "tc", "qdisc", "del", "dev", "eth0", place, check=False)
    for device in re.findall(
        r"^\d+: ([^:@\s]+)",
        net.run("client", "ip", "-o", "link", "show", "type", "ifb").stdout,
        re.MULTILINE,
    ):
        net.run("client", "ip", "link", "del", device)
    assert shown(net) == before


def sojourn(net: LiveNetwork, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return net.run("client", sys.executable, "-m", "sojourn", *words, check=check)


def shown(net: LiveNetwork, device: str = "eth0") -> str:
    """tc's description of a device, without counters."""
    lines = ["qdisc", "class", "filter"]
    words = [net.tc("client", f"-d {word} show dev {device}") for word in lines]
    words.append(
        net.run(
            "client", "tc", "-d", "filter", "show", "dev", device, "parent", "ffff:", check=False
        ).stdout
    )
    return COUNTED.sub("", "".join(words)) + net.run("client", "ip", "-br", "link").stdout


def same_but_for_numbers(words: str) -> str:
    """The text with addresses removed, which differ between devices with the same queues."""
    return re.sub(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", "", words)


# --------------------------------------------------------------------------------------- it cures


def wait_ms(net: LiveNetwork, direction: str) -> float:
    """The median RTT in ms of small packets while TCP fills the line."""
    with net.start("server", sys.executable, str(TRAFFIC), "serve", SERVER) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        measured = json.loads(
            net.run("client", sys.executable, str(TRAFFIC), direction, SERVER, "4").stdout
        )
    assert len(measured["rtt_ms"]) > 30
    assert measured["mbit_s"] > 4
    return sorted(measured["rtt_ms"])[len(measured["rtt_ms"]) // 2]


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_short_queue_in_front_of_a_long_one_cures_it(net: LiveNetwork, direction: str) -> None:
    longest = {"up": UP, "down": DOWN}[direction].longest_wait_ms
    before = wait_ms(net, direction)
    # They keep the queue between half full and full; the host adds the delay above that.
    assert 0.5 * longest < before < 1.3 * longest
    limit = 12 * FULL_PACKET
    sojourn(
        *(net, "shape", "eth0", f"--{direction}", "5mbit", "--qdisc", f"bfifo limit {limit}"),
        *("--apply", "--confirm-within", "0s"),
    )
    after = wait_ms(net, direction)
    # Only our queue of 12 packets remains: 29 ms. Packets that we drop have already crossed the
    # line, so the rate is well below the line's.
    assert after < 1.5 * limit * 8e3 / 5e6
    sojourn(net, "shape", "eth0", "--undo")
    assert wait_ms(net, direction) > 0.5 * longest


# ------------------------------------------------------------------------ what is printed is done


@pytest.mark.parametrize(
    "options",
    [
        ["--up", "18mbit", "--down", "90mbit", "--qdisc", "bfifo limit 30000", "--link", "docsis"],
        ["--up", "1mbit", "--down", "2mbit", "--qdisc", "pfifo", "--link", "pppoe-llcsnap"],
        ["--up", "8mbit", "--qdisc", "bfifo", "--link", "ipoa-vcmux"],
        ["--down", "40gbit", "--qdisc", "pfifo_head_drop"],
    ],
)
def test_the_printed_commands_do_what_apply_does(net: LiveNetwork, options: list[str]) -> None:
    commands = sojourn(net, "shape", "eth0", *options).stdout
    net.run("client", "sh", "-e", "-c", commands)
    by_hand = {
        device: same_but_for_numbers(shown(net, device))
        for device in ("eth0", "sj-eth0")
        if device in commands
    }
    net.run("client", "tc", "qdisc", "del", "dev", "eth0", "root", check=False)
    net.run("client", "tc", "qdisc", "del", "dev", "eth0", "ingress", check=False)
    net.run("client", "ip", "link", "del", "sj-eth0", check=False)
    sojourn(net, "shape", "eth0", *options, "--apply", "--confirm-within", "0s")
    for device, words in by_hand.items():
        # Actions are numbered from the first that the namespace ever had.
        assert re.sub(r"index \d+", "", same_but_for_numbers(shown(net, device))) == re.sub(
            r"index \d+", "", words
        )


# ----------------------------------------------------------------------------------- the way back

# A user's own shaper, such as sqm-scripts makes, with a size table, an ingress filter, and another
# policy for a subnet.
SOMEBODY_S = """
ip link add name ifb4eth0 type ifb
ip link set ifb4eth0 up
tc qdisc add dev eth0 root handle 1: stab mtu 2047 tsize 512 mpu 68 overhead 44 linklayer atm htb default 12
tc class add dev eth0 parent 1: classid 1:1 htb quantum 1749 rate 950kbit ceil 950kbit burst 1749 cburst 1749
tc class add dev eth0 parent 1:1 classid 1:11 htb quantum 300 rate 128kbit ceil 316kbit prio 1
tc class add dev eth0 parent 1:1 classid 1:12 htb quantum 300 rate 158kbit ceil 934kbit prio 2
tc qdisc add dev eth0 parent 1:11 handle 110: pfifo limit 100
tc qdisc add dev eth0 parent 1:12 handle 120: tbf rate 900kbit burst 3000 limit 60000
tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dst 10.77.2.0/25 flowid 1:11
tc filter add dev eth0 parent 1: protocol ip prio 3 u32 match ip dport 22 0xffff match ip protocol 6 0xff flowid 1:11
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol all prio 10 u32 match u32 0 0 flowid 1:1 action mirred egress redirect dev ifb4eth0
"""
ANOTHER_S = """
tc qdisc add dev eth0 root handle 9: htb default 1
tc class add dev eth0 parent 9: classid 9:1 htb rate 9mbit burst 5000
tc qdisc add dev eth0 parent 9:1 handle 5: htb default 2
tc class add dev eth0 parent 5: classid 5:1 htb rate 8mbit ceil 9mbit
tc class add dev eth0 parent 5:1 classid 5:2 htb rate 6gbit ceil 40gbit burst 1mb cburst 1mb
tc qdisc add dev eth0 parent 5:2 handle 1: tbf rate 9mbit burst 5000 latency 50ms
tc qdisc add dev eth0 clsact
tc filter add dev eth0 egress protocol all prio 5 u32 match u32 0 0 action mirred egress mirror dev lo
"""
LINKED = """
tc qdisc add dev eth0 root handle 1: htb default 1
tc class add dev eth0 parent 1: classid 1:1 htb rate 5mbit
tc filter add dev eth0 parent 1: protocol ip prio 9 u32 match ip dst 10.0.0.0/8 flowid 1:1
tc filter add dev eth0 parent 1: protocol ip prio 2 handle 3: u32 divisor 256
tc filter add dev eth0 parent 1: protocol ip prio 2 handle 4: u32 divisor 16
tc filter add dev eth0 parent 1: protocol ip prio 2 handle 3:7:1 u32 ht 3:7: match ip dst 10.1.0.7/32 flowid 1:1
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.1.0.0/16 hashkey mask 0x000000ff at 16 link 3:
tc filter add dev eth0 parent 1: protocol ip prio 9 u32 match ip dst 10.2.0.0/16 hashkey mask 0x0000000f at 16 link 4:
"""
"""Hash tables of one preference to which filters of other preferences link, and preferences that
were not created in their order."""
SHAPED = ("shape", "eth0", "--up", "7mbit", "--down", "7mbit", "--qdisc", "bfifo", "--apply")


@pytest.mark.parametrize(
    "theirs", ["", SOMEBODY_S, ANOTHER_S, LINKED], ids=["default", "sqm", "nested", "linked"]
)
def test_undo_gives_the_same_tc_output(net: LiveNetwork, theirs: str) -> None:
    net.run("client", "sh", "-e", "-c", theirs)
    before = shown(net)
    sojourn(net, *SHAPED, "--confirm-within", "0s")
    assert "bfifo 10: parent 1:1" in shown(net)
    assert shown(net) != before
    sojourn(net, "shape", "eth0", "--undo")
    assert shown(net) == before
    assert "not shaped" in sojourn(net, "shape", "eth0", "--status").stdout


def test_several_queues_of_a_device_are_restored() -> None:
    with network() as net:
        net.run("client", "ip", "link", "add", "name", "many", "numtxqueues", "4", "type", "ifb")
        net.run("client", "ip", "link", "set", "many", "up")
        default = shown(net, "many")
        assert default.count("parent :") == 4
        for theirs in (
            "tc qdisc replace dev many root handle 5: mq; tc qdisc replace dev many parent 5:2 bfifo limit 9999",
        ):
            net.run("client", "sh", "-e", "-c", theirs)
            before = shown(net, "many")
            sojourn(
                net,
                "shape",
                "many",
                "--up",
                "7mbit",
                "--qdisc",
                "bfifo",
                "--apply",
                "--confirm-within",
                "0s",
            )
            sojourn(net, "shape", "many", "--undo")
            assert shown(net, "many") == before


def test_without_confirmation_the_former_state_returns_and_the_next_call_reports_it(
    net: LiveNetwork,
) -> None:
    net.run("client", "sh", "-e", "-c", SOMEBODY_S)
    before = shown(net)
    sojourn(net, *SHAPED, "--confirm-within", "1s")
    wait_until("it comes back", lambda: shown(net) == before)
    wait_until(
        "it is written down",
        lambda: "rolled back" in sojourn(net, "shape", "eth0", "--status").stdout,
    )
    late = sojourn(net, "shape", "eth0", "--confirm", check=False)
    assert late.returncode == 2
    assert "was already rolled back: it was not confirmed in time" in late.stderr


def test_a_confirmed_shaper_stays(net: LiveNetwork) -> None:
    sojourn(net, *SHAPED, "--confirm-within", "60s")
    watchdog = watchdogs(net)
    assert len(watchdog) == 1
    sojourn(net, "shape", "eth0", "--confirm")
    wait_until("the watchdog ends", lambda: not watchdogs(net))
    assert "bfifo 10: parent 1:1" in shown(net)


def watchdogs(net: LiveNetwork) -> list[int]:
    """The watchdog processes on the client."""
    found = []
    for pid in net.run("client", "ip", "netns", "pids", "client").stdout.split():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if (
            b"sojourn_live.shape.watchdog" in words
            and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        ):
            found.append(int(pid))
    return found


@pytest.mark.parametrize("moment", ["before anything", "in the middle", "when all is done"])
def test_if_apply_is_killed_before_the_confirmation_the_former_state_returns(
    net: LiveNetwork, moment: str
) -> None:
    net.run("client", "sh", "-e", "-c", SOMEBODY_S)
    before = shown(net)
    seen = {
        "before anything": lambda: bool(watchdogs(net)),
        "in the middle": lambda: "sj-eth0" in net.run("client", "ip", "-br", "link").stdout,
        "when all is done": lambda: (
            "redirect dev sj-eth0" in shown(net).lower() or "device sj-eth0" in shown(net)
        ),
    }[moment]
    with net.start(
        "client", sys.executable, "-m", "sojourn", *SHAPED, "--confirm-within", "2s"
    ) as applying:
        wait_until(moment, seen)
        applying.send_signal(signal.SIGKILL)
        applying.wait()
    wait_until("the watchdog has done its work", lambda: not watchdogs(net))
    assert shown(net) == before


def test_the_watchdog_survives_the_end_of_its_session(net: LiveNetwork) -> None:
    before = shown(net)
    # When a terminal is closed, its whole session gets SIGHUP, then SIGKILL.
    words = net.command(
        "client", sys.executable, "-m", "sojourn", *SHAPED, "--confirm-within", "2s"
    )
    with subprocess.Popen(
        words, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as session:
        wait_until("it is applied", lambda: "device sj-eth0" in shown(net))
        for sent in (signal.SIGHUP, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(session.pid, sent)
    wait_until("it comes back", lambda: shown(net) == before)


def test_if_the_watchdog_is_killed_too_the_next_call_reports_it_and_undo_works(
    net: LiveNetwork,
) -> None:
    before = shown(net)
    sojourn(net, *SHAPED, "--confirm-within", "60s")
    (watchdog,) = watchdogs(net)
    os.kill(watchdog, signal.SIGKILL)
    wait_until("it is gone", lambda: not watchdogs(net))
    again = sojourn(net, *SHAPED, check=False)
    assert again.returncode == 2
    assert "the watchdog that would roll it back has ended" in again.stderr
    assert "--undo restores the former state" in again.stderr
    assert (
        "not confirmed, and the watchdog that would roll it back has ended"
        in sojourn(net, "shape", "lo", "--up", "1mbit", check=False).stderr
    )
    sojourn(net, "shape", "eth0", "--undo")
    assert shown(net) == before


def test_a_watchdog_that_is_asked_to_end_does_its_work_first(net: LiveNetwork) -> None:
    before = shown(net)
    sojourn(net, *SHAPED, "--confirm-within", "60s")
    (watchdog,) = watchdogs(net)
    os.kill(watchdog, signal.SIGTERM)
    wait_until("it ends", lambda: not watchdogs(net))
    assert shown(net) == before
    assert "the watchdog was terminated" in sojourn(net, "shape", "eth0", "--status").stdout


def test_an_interface_is_not_shaped_twice(net: LiveNetwork) -> None:
    sojourn(net, *SHAPED, "--confirm-within", "0s")
    once = shown(net)
    twice = sojourn(net, *SHAPED, check=False)
    assert (twice.returncode, twice.stderr.splitlines()[-2:]) == (
        2,
        ["error: eth0 is shaped already", "hint: first: sojourn shape eth0 --undo"],
    )
    assert shown(net) == once


def test_an_interface_that_is_gone_is_reported() -> None:
    with network() as net:
        net.run("client", "ip", "link", "add", "name", "gone", "type", "ifb")
        sojourn(
            net,
            "shape",
            "gone",
            "--up",
            "7mbit",
            "--down",
            "7mbit",
            "--qdisc",
            "bfifo",
            "--apply",
            "--confirm-within",
            "0s",
        )
        net.run("client", "ip", "link", "del", "gone")
        assert sojourn(net, "shape", "gone", "--status").stdout == "gone is gone\n"
        confirmed = sojourn(net, "shape", "gone", "--confirm", check=False)
        assert confirmed.returncode == 2
        assert "error: gone is gone: there is nothing to keep" in confirmed.stderr
        assert "hint: sojourn shape gone --undo" in confirmed.stderr
        undone = sojourn(net, "shape", "gone", "--undo")
        assert undone.stdout.startswith("gone is gone, and its shaper with it")
        assert "as it was before" not in undone.stdout
        assert "sj-gone" not in net.run("client", "ip", "-br", "link").stdout


# ---------------------------------------------------------------------------------------- refused


def test_the_error_quotes_the_kernel_if_it_lacks_a_feature_and_nothing_changes(
    net: LiveNetwork,
) -> None:
    if (
        net.run(
            "client",
            "sh",
            "-c",
            "ip link add try0 type ifb && tc qdisc add dev try0 root codel",
            check=False,
        ).returncode
        == 0
    ):
        pytest.skip("this kernel has codel")
    net.run("client", "ip", "link", "del", "try0")
    before = shown(net)
    refused = sojourn(
        net, "shape", "eth0", "--up", "7mbit", "--qdisc", "codel", "--apply", check=False
    )
    assert refused.returncode == 2
    error, hint = refused.stderr.splitlines()[-2:]
    assert re.fullmatch(
        r"error: this kernel refuses: tc qdisc add dev eth0 .*codel.*: Specified qdisc kind is unknown",
        error,
    )
    assert (
        hint
        == "hint: load the module: modprobe sch_codel; or use an available discipline: --qdisc bfifo (a queue of 20 ms)"
    )
    assert shown(net) == before
    assert not watchdogs(net)


def test_a_state_that_could_not_be_restored_is_not_changed(net: LiveNetwork) -> None:
    # The first preference has one filter left, which links to a table of the second.
    theirs = """
tc qdisc add dev eth0 root handle 1: htb default 1
tc class add dev eth0 parent 1: classid 1:1 htb rate 5mbit
tc filter add dev eth0 parent 1: protocol ip prio 9 u32 match ip dst 10.0.0.0/8 flowid 1:1
tc filter add dev eth0 parent 1: protocol ip prio 2 handle 3: u32 divisor 16
tc filter add dev eth0 parent 1: protocol ip prio 9 u32 match ip dst 11.0.0.0/8 hashkey mask 0x0000000f at 16 link 3:
tc filter del dev eth0 parent 1: protocol ip prio 9 handle 800::800 u32
"""
    net.run("client", "sh", "-e", "-c", theirs)
    before = shown(net)
    refused = sojourn(net, *SHAPED, check=False)
    assert refused.returncode == 2
    assert "could not be restored" in refused.stderr
    assert "hint: remove them first" in refused.stderr
    assert shown(net) == before
    assert not watchdogs(net)


def test_without_permission_the_error_says_so(net: LiveNetwork) -> None:
    command = [sys.executable, "-m", "sojourn", "shape", "eth0", "--up", "7mbit"]
    without = ["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"]
    assert net.run("client", *without, *command).stdout.startswith("tc qdisc add dev eth0")
    for words in (["--apply"],):
        refused = net.run("client", *without, *command, *words, check=False)
        assert refused.returncode == 2
        assert refused.stderr.splitlines()[-2:] == [
            "error: eth0: changing an interface's queues needs root (CAP_NET_ADMIN)",
            "hint: run it with sudo; without --apply the commands are only printed, which needs no privilege",
        ]


WRONG = [
    (["nothere", "--up", "1mbit"], "no interface 'nothere'"),
    (["nothere", "--status"], "no interface 'nothere'"),
    (["nothere", "--undo"], "nothere is not shaped by sojourn"),
    (["eth0", "--confirm"], "eth0 is not shaped by sojourn: there is nothing to confirm"),
    (["eth0"], "neither --up nor --down is given"),
    (["eth0", "--up", "1kbit"], "--up: 1kbit is out of range"),
    (["eth0", "--up", "1mbit", "--link", "dsl"], "unknown link layer 'dsl'"),
    (["eth0", "--up", "1mbit", "--apply", "--confirm-within", "2 days"], "is not a unit of time"),
    (["lo", "--up", "1mbit"], "lo is the loopback"),
]
CALLS = """
import contextlib, io, json, sys
from sojourn.cli import status
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = status(["shape", *words])
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


def test_wrong_options_give_an_error_and_a_hint_and_exit_2(net: LiveNetwork) -> None:
    calls = net.run(
        "client", sys.executable, "-c", CALLS, json.dumps([words for words, _ in WRONG])
    ).stdout
    for line, (words, said) in zip(calls.splitlines(), WRONG, strict=True):
        code, out, err = json.loads(line)
        assert (code, out) == (2, ""), words
        *_, error, hint = err.splitlines()
        assert error.startswith("error: "), words
        assert said in error
        assert hint.startswith("hint: "), words


def test_json_has_the_present_state_and_the_planned_one(net: LiveNetwork) -> None:
    def said(*words: str) -> dict[str, Any]:
        whole: dict[str, Any] = json.loads(sojourn(net, "shape", "eth0", *words, "--json").stdout)
        shapes.check("shape", whole)
        return whole

    planned = said("--up", "7mbit")
    assert planned["state"] == "planned"
    assert planned["commands"][0] == "tc qdisc add dev eth0 root handle 1: htb default 1"
    sojourn(net, *SHAPED, "--confirm-within", "30s")
    applied = said("--status")
    assert (applied["state"], applied["up_bps"], applied["watched"]) == ("applied", 7_000_000, True)
    assert said("--undo")["interface"] == "eth0"
    assert said("--status")["state"] == "not shaped"


def test_both_ends_of_the_network_have_their_addresses(net: LiveNetwork) -> None:
    assert CLIENT in net.run("client", "ip", "-br", "addr").stdout
    assert ROUTER_TO_CLIENT in net.run("router", "ip", "-br", "addr").stdout
