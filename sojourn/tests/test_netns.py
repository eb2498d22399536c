"""This host's own kernel as an engine: its measurements against the simulator's, its refusals, and
cleanup.

These runs take place in real time on a shared machine, so the tests compare quantities. A run that
reports a disturbance is repeated once, and then the test is skipped with the reason.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tree import ROOT

from sojourn import _core, metrics
from sojourn.engine import namespaces, netns, protocol, registry, runs
from sojourn.engine.kernel.guest.endings import GuestError
from sojourn.engine.kernel.observed import real_time
from sojourn.engine.kernel.observed.archive import Archive, doubts
from sojourn.engine.kernel.observed.tables import tables
from sojourn.engine.kernel.plan.guest_plan import plan, this_host
from sojourn.engine.kernel.program import program
from sojourn.engine.protocol import NotReadyError
from sojourn.errors import UserError
from sojourn.linux import tc
from sojourn.records import Run
from sojourn.scenario import Scenario, load, loads
from sojourn.scenario.qdisc import Qdisc
from sojourn.scenario.realised import Realised

MS = 10**6
S = 10**9
AGREES = 0.1
BELOW = 0x100000
"""The handle of a queue below its shaper."""
PATIENCE_S = 60.0
"""How long a test waits for an event before it fails."""

# No delay, which would need netem. The two directions are links of their own.
DUMBBELL = """
title = "three seconds"
duration = "3 s"
warmup = "1 s"

[bottleneck]
rate = "10 Mbit/s"
delay = "0 s"
link_layer = "ethernet"
qdisc = "pfifo limit 40"

[[flow]]
kind = "bulk"
congestion = "reno"

[[flow]]
kind = "ping"
"""


@pytest.fixture(scope="module")
def here() -> None:
    """Skips the test where no scenario can run."""
    if reason := namespaces.why_not():
        pytest.skip(reason)


@pytest.fixture(scope="module")
def user_namespaces() -> None:
    """Skips the test where there are no user namespaces."""
    try:
        done = subprocess.run(
            [
                "unshare",
                "--user",
                "--map-root-user",
                "unshare",
                "--user",
                "--map-root-user",
                "--net",
                "true",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        pytest.skip(f"unshare: {error.strerror}")
    if done.returncode != 0:
        pytest.skip(f"no user namespaces here: {done.stderr.strip()}")


def sojourn(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "sojourn", *arguments]


def as_nobody(command: Sequence[str], namespaces: int) -> list[str]:
    """Returns the command as run by an unprivileged user. The kernel allows that user `namespaces`
    user namespaces, including the user's own."""
    script = f'echo {namespaces} > /proc/sys/user/max_user_namespaces && exec unshare --user --map-user=65534 --map-group=65534 -- "$@"'
    return ["unshare", "--user", "--map-root-user", "--", "sh", "-c", script, "sh", *command]


def measured(run: Callable[[], Run]) -> Run:
    """Returns a valid Run. A disturbed run is repeated once; then the test is skipped."""
    found = run()
    if found.meta.invalid:
        found = run()
    if found.meta.invalid:
        pytest.skip("; ".join(found.meta.invalid))
    return found


# ----------------------------------------------------------------------------------- measurements


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("qdisc", ["pfifo limit 40", "bfifo limit 60000"])
def test_sojourn_and_goodput_equal_the_simulator_s(qdisc: str, tmp_path: Path) -> None:
    scenario = loads(DUMBBELL).with_({"bottleneck.qdisc": qdisc})
    kernel, simulator = (
        measured(
            lambda engine=engine: runs.run(
                scenario, engine=engine, out=tmp_path / engine, force=True
            )
        )
        for engine in ("netns", "sim")
    )
    ours, theirs = (metrics.summary(run).to_dict()["runs"][0] for run in (kernel, simulator))
    for one, other in zip(ours["queues"][:1], theirs["queues"][:1], strict=True):
        assert one["sojourn_ms"]["p95"] == pytest.approx(other["sojourn_ms"]["p95"], rel=AGREES)
        assert one["dropped_packets"] > 0
    assert ours["flows"][0]["goodput_mbps"] == pytest.approx(
        theirs["flows"][0]["goodput_mbps"], rel=AGREES
    )
    assert ours["probes"][0]["rtt_ms"]["p95"] == pytest.approx(
        theirs["probes"][0]["rtt_ms"]["p95"], rel=AGREES
    )
    assert "not deterministic" in kernel.meta.version
    assert os.uname().release in kernel.meta.version


@pytest.mark.usefixtures("here")
def test_the_taps_and_the_kernel_s_counters_agree(tmp_path: Path) -> None:
    """Properties that do not depend on the machine's load: conservation of packets, and the size of
    the full queue."""
    text = DUMBBELL.replace("pfifo limit 40", "bfifo limit 60000")
    run = loads(text).with_({"flow.bulk.count": 2}).realise(1)
    (tmp_path / "plan.json").write_text(json.dumps(plan(run, this_host()).plan))
    done = subprocess.run(
        [
            str(program()),
            "--plan",
            str(tmp_path / "plan.json"),
            "--out",
            str(tmp_path / "results.tar"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    archive = Archive.read(tmp_path / "results.tar")
    assert doubts(archive) == []
    ours, theirs = tables(run, archive), _core.run(run)
    assert set(ours) == set(theirs)
    for name, columns in ours.items():
        assert set(columns) == set(theirs[name])
    down = {name: column[0] for name, column in ours["links"].items()}
    # The taps and the kernel's own counter, independently. The queue is the child of its shaper.
    queues = (archive.tables["qdisc"]["device"] == 0) & (archive.tables["qdisc"]["handle"] == BELOW)
    dropped = int(archive.tables["qdisc"]["drops"][queues][-1])
    assert int((ours["drops"]["link"] == 0).sum()) == dropped > 0
    # A tap records a departure just after the queue released the packet, so one more packet may
    # have arrived in between.
    assert 0 < down["backlog_max_bytes"] <= 60_000 + 1514
    # The kernel's backlog at each sample never exceeds the taps' maximum.
    queue = ours["queue"]["backlog_bytes"][
        (ours["queue"]["link"] == 0) & (ours["queue"]["t_ns"] > S)
    ]
    assert int(queue.max()) <= int(down["backlog_max_bytes"])
    assert int(ours["flows"]["base_rtt_ns"][0]) == int(theirs["flows"]["base_rtt_ns"][0])


@pytest.mark.usefixtures("here")
def test_progress_is_the_time_that_has_passed() -> None:
    realised = loads(DUMBBELL).with_({"duration": "1 s", "warmup": "0 s"}).realise(1)
    times: list[int] = []
    with contextlib.suppress(UserError):
        netns.Netns().tables(realised, lambda now: times.append(now) or True)
    assert times == sorted(times)
    assert times[0] == 0
    assert any(0 < now < S for now in times)
    assert times[-1] <= S


@pytest.mark.usefixtures("here")
def test_a_cancelled_run_ends() -> None:
    with pytest.raises(protocol.Cancelled):
        netns.Netns().tables(loads(DUMBBELL).realise(1), lambda now: now < S)


@pytest.mark.usefixtures("user_namespaces")
def test_any_user_runs_it_where_user_namespaces_are_allowed(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(DUMBBELL)
    command = sojourn("run", str(scenario), "-e", "netns", "--json", "-q")
    for _ in range(2):
        done = subprocess.run(
            as_nobody(command, 10), cwd=tmp_path, capture_output=True, text=True, check=False
        )
        # Exit status 1: the run reports that it was disturbed.
        if done.returncode != 1:
            break
    else:
        pytest.skip(done.stderr)
    if "can't be made here" in done.stderr:
        # There are user namespaces, but they allow no file systems or devices.
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "in a user namespace" in found["version"]
    assert found["runs"][0]["flows"][0]["delivered_bytes"] > 0


# --------------------------------------------------------------------------------------- refusals


def test_every_discipline_of_a_plan_is_tried() -> None:
    delayed = loads(DUMBBELL).with_({"bottleneck.delay": "5 ms", "bottleneck.link_layer": "none"})
    for scenario, expected in (
        (loads(DUMBBELL), {"htb", "pfifo"}),
        (delayed, {"htb", "pfifo", "netem"}),
    ):
        planned = plan(scenario.realise(1), this_host()).plan
        tried = dict(namespaces._disciplines(planned))
        assert set(tried) == expected
        assert all(line.startswith("qdisc add dev t0 root handle 1: ") for line in tried.values())
    assert "stab overhead -14 htb" in tried["htb"]


def test_without_netem_the_error_says_what_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusal(_: namespaces.Way, line: str) -> str | None:
        return "Specified qdisc kind is unknown." if "netem" in line else None

    monkeypatch.setattr(namespaces, "_refusal", refusal)

    def missing(scenario: Scenario) -> list[str]:
        realised = scenario.realise(1)
        planned = plan(realised, this_host()).plan
        return [each.hint for each in namespaces.missing(realised, planned, namespaces.ROOT)]

    [hint] = missing(loads(DUMBBELL).with_({"bottleneck.delay": "5 ms"}))
    assert hint.endswith(namespaces.WITHOUT_NETEM)
    # Without the delay nothing is missing.
    assert missing(loads(DUMBBELL)) == []
    monkeypatch.setattr(namespaces, "way", lambda: namespaces.ROOT)
    lines = namespaces._typical().values()
    monkeypatch.setattr(
        namespaces, "_absent", lambda way: {line for line in lines if refusal(way, line)}
    )
    assert namespaces.WITHOUT_NETEM in (namespaces.lacks() or "")


@pytest.mark.parametrize("words", namespaces.TYPICAL)
def test_a_tried_discipline_has_the_same_options_elsewhere(words: str) -> None:
    qdisc = Qdisc.parse(words)
    lines = tc.queue("v0a", qdisc, header_bytes=14, transmitter=tc.Transmitter(10**6, 14))
    assert tc.elsewhere(lines[1], "t0") is None
    found = tc.elsewhere(lines[2], "t0")
    assert found is not None
    assert found[0] == qdisc.kind
    said = found[1].split("handle 1: ")[1]
    if qdisc.tree("t0", "1:"):
        # The discipline's classes are shown on lines of their own.
        assert said == qdisc.command()
        return
    assert Qdisc.parse(said) == (qdisc if qdisc.kind != "pfifo_fast" else Qdisc.parse("pfifo_fast"))


@pytest.mark.usefixtures("here")
def test_trials_in_one_namespace_give_the_results_of_separate_ones() -> None:
    there = namespaces.way()
    lines = [
        *("qdisc add dev t0 root pfifo limit 10", "qdisc add dev t0 root no_such_kind"),
        *("qdisc add dev t0 root bfifo limit 9000", "qdisc add dev t0 root pfifo limit many"),
        "qdisc add dev t0 root pfifo_fast",
    ]
    alone = {line for line in lines if namespaces._refusal(there, line) is not None}
    assert alone == {lines[1], lines[3]}
    assert namespaces._refused(there, lines) == alone
    # At this invalid handle tc exits and reports nothing about the lines after it.
    exits = "qdisc add dev t0 root handle many pfifo limit 10"
    assert namespaces._refused(there, [exits, *lines]) == {exits, *alone}


@pytest.mark.usefixtures("here")
def test_features_that_this_kernel_lacks_are_refused_with_its_own_error() -> None:
    absent = (namespaces.lacks() or "").split(", ")
    # Disciplines newer than the kernel are refused before tc runs.
    kinds = [words for words in namespaces.TYPICAL if words.split()[0] in {*absent} - {"dualpi2"}]
    if not kinds:
        pytest.skip("this kernel has every queue discipline")
    engine = netns.Netns()
    engine.check(loads(DUMBBELL).realise(1))
    for words in kinds:
        kind = words.split()[0]
        with pytest.raises(GuestError) as caught:
            engine.check(loads(DUMBBELL).with_({"bottleneck.qdisc": words}).realise(1))
        assert caught.value.problem.startswith(f"link 'down': qdisc: {kind}: ")
        # The expected text is tc's own error, from a namespace of its own.
        said = subprocess.run(
            namespaces.way().command(
                f"{namespaces._PAIR} && tc qdisc add dev t0 root {Qdisc.parse(words).command()}"
            ),
            capture_output=True,
            text=True,
            check=False,
        ).stderr.strip()
        assert said
        assert said.splitlines()[-1] in caught.value.problem
        assert f"sch_{kind}" in caught.value.hint


@pytest.mark.usefixtures("here")
def test_everything_missing_is_reported_at_once_on_the_command_line(tmp_path: Path) -> None:
    absent = (namespaces.lacks() or "").split(", ")
    if "codel" not in absent or "vegas" not in absent:
        pytest.skip("this kernel has codel or vegas")
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(DUMBBELL.replace("pfifo limit 40", "codel").replace("reno", "vegas"))
    command = sojourn("run", str(scenario), "-e", "netns", "-o", str(tmp_path / "out"))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.search(r"^error: link 'down': qdisc: codel: .*unknown", done.stderr)
    assert "flow: congestion: vegas: " in done.stderr
    assert re.search(r"^hint: .*sch_codel.*tcp_vegas.*-e kernel$", done.stderr, re.MULTILINE)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("user_namespaces")
def test_without_root_and_user_namespaces_the_error_says_so(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(DUMBBELL)
    # The kernel allows only the user's own namespace.
    done = subprocess.run(
        as_nobody(sojourn("run", str(scenario), "-e", "netns", "--json"), 1),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    problem, hint = done.stderr.splitlines()
    assert problem.startswith("error: network namespaces can't be made here: in a user namespace: ")
    assert "No space left on device" in problem
    assert hint.startswith("hint: run it as root; or allow user namespaces")
    listed = subprocess.run(
        as_nobody(sojourn("list", "engines"), 1),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "not ready here: network namespaces can't be made here" in listed.stdout


def test_a_missing_program_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(namespaces, "PATH", str(tmp_path))
    with pytest.raises(NotReadyError) as caught:
        namespaces.way()
    assert caught.value.problem == f"ip, tc, unshare: not in {tmp_path}"
    assert {"iproute2", "util-linux"} <= set(caught.value.hint.split())
    assert "iproute2" in str(registry.why_not("netns"))


# ---------------------------------------------------------------------------------------- cleanup


def until(happened: Callable[[], Any]) -> Any:
    """Calls `happened` until it returns something true."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if found := happened():
            return found
        time.sleep(0.05)
    raise AssertionError(f"did not happen within {PATIENCE_S:g} s")


def processes() -> Iterator[Path]:
    return (each for each in Path("/proc").iterdir() if each.name.isdigit())


def ways_to_namespaces(process: Path) -> Iterator[tuple[str, Path]]:
    """The network namespaces that a process is in, holds open, or has mounted under a name."""
    links = [process / "ns" / "net"]
    with contextlib.suppress(OSError):
        links += (process / "fd").iterdir()
    for link in links:
        with contextlib.suppress(OSError):
            if (found := os.readlink(link)).startswith("net:["):
                yield found, link
    with contextlib.suppress(OSError):
        for line in (process / "mountinfo").read_text().splitlines():
            _, _, _, root, where, *_ = line.split()
            if root.startswith("net:["):
                yield root, process / "root" / where[1:]


def namespaces_of(process: Path) -> set[str]:
    return {name for name, _ in ways_to_namespaces(process)}


@contextlib.contextmanager
def held(process: Path) -> Iterator[set[str]]:
    """A process's network namespaces except ours, held open for as long as the block. The kernel
    identifies a namespace only by a number, and would reuse a free number."""
    with contextlib.ExitStack() as files:
        own: set[str] = set()
        for name, way in ways_to_namespaces(process):
            if name not in own | {os.readlink("/proc/self/ns/net")}:
                files.callback(os.close, os.open(way, os.O_RDONLY))
                own.add(name)
        yield own


def below(parent: int) -> Path | None:
    """Returns the program of the run that `parent` started, once it has created its namespaces."""
    for process in processes():
        with contextlib.suppress(OSError):
            name, rest = (process / "stat").read_text().rsplit(")", 1)
            mine = int(rest.split()[1]) == parent and name.endswith("(sojourn-guest")
            # Two routers, two hosts, and the namespace in which the program started.
            if mine and len(namespaces_of(process)) >= 5:
                return process
    return None


def devices() -> set[str]:
    return set(os.listdir("/sys/class/net"))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_files_are_left_however_it_ends(how: signal.Signals, kept: bool, tmp_path: Path) -> None:
    scenario, temporary = tmp_path / "scenario.toml", tmp_path / "tmp"
    scenario.write_text(DUMBBELL.replace('"3 s"', '"600 s"'))
    temporary.mkdir()
    before = devices()
    names = set(os.listdir("/run/netns")) if os.path.isdir("/run/netns") else set()
    where = ("-o", str(tmp_path / "out")) if kept else ("--json",)
    command = sojourn("run", str(scenario), "-e", "netns", "-q", *where)
    environment = {
        **os.environ,
        "TMPDIR": str(temporary),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as parent:
        try:
            program = until(lambda: below(parent.pid))
            with held(program) as own:
                assert len(own) >= 5
                parent.send_signal(how)
                ended = parent.wait(PATIENCE_S)
                until(lambda: not program.exists())
                ours = str(os.getpid())
                until(
                    lambda: (
                        not any(
                            namespaces_of(each) & own for each in processes() if each.name != ours
                        )
                    )
                )
        finally:
            parent.kill()
    assert ended == (-how if how == signal.SIGKILL else 130)
    assert devices() == before
    assert (set(os.listdir("/run/netns")) if os.path.isdir("/run/netns") else set()) == names
    entries = tmp_path / "state" / "sojourn" / "running"
    if how != signal.SIGKILL:
        assert list(temporary.iterdir()) == []
        assert list(entries.iterdir()) == []
        return
    # Only the Run's own folder is left. A folder that the user asked for is not cleaned up.
    left = [str(each) for each in temporary.iterdir()]
    assert len(left) == (0 if kept else 1)
    cleaned = subprocess.run(
        sojourn("clean", "--json"), env=environment, capture_output=True, text=True, check=False
    )
    assert cleaned.returncode == 0, cleaned.stderr
    # The guest program ended together with sojourn, so there was no process to end.
    assert json.loads(cleaned.stdout)["removed"] == left
    assert list(temporary.iterdir()) == []
    assert list(entries.iterdir()) == []
    assert Run.open(tmp_path / "out").seeds == () if kept else not (tmp_path / "out").exists()


COUNTED = """
echo {most} > /proc/sys/user/max_net_namespaces
room() {{ {nested} true 2>/dev/null; }}
wait_for() {{ n=0; until "$@"; do n=$((n + 1)); [ $n -lt 600 ] || return 1; sleep 0.1; done; }}
none() {{ ! room; }}
wait_for room || exit 11
{command} & run=$!
wait_for none || exit 12
# The program and its namespaces.
wait_for holds || exit 13
kill -9 $run
wait_for room || exit 14
"""


@pytest.mark.usefixtures("here", "user_namespaces")
def test_after_kill_9_the_kernel_counts_no_namespace_of_it(tmp_path: Path) -> None:
    """A user may have 14 network namespaces. While the run is active the user can't create 14 more;
    after it was killed the user can."""
    scenario, most = tmp_path / "scenario.toml", 14
    scenario.write_text(DUMBBELL.replace('"3 s"', '"600 s"'))
    script = COUNTED.format(
        most=most,
        nested="unshare --net --fork " * most,
        command=" ".join(
            sojourn("run", str(scenario), "-e", "netns", "-q", "-o", str(tmp_path / "out"))
        ),
    )
    # Traffic is flowing: a socket with unsent data keeps its namespace alive until the data is
    # sent.
    holds = 'holds() { [ -n "$(pgrep -P $run -x sojourn-guest)" ] && sleep 1; }\n'
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--", "sh", "-c", holds + script],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------------------------- one at a time


class Slow:
    """An engine that counts its simultaneous runs."""

    name, version, build = "slow", "1", "of a test"

    def __init__(self, alone: bool) -> None:
        self.alone = alone
        self.now = self.most = 0
        self.lock = threading.Lock()

    def check(self, realised: Realised) -> None:
        pass

    def conditions(self, realised: Realised) -> Mapping[str, str]:
        return {}

    def tables(self, realised: Realised, reached: Callable[[int], bool]) -> protocol.Outcome:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.05)
        found = registry.find("sim").tables(realised, reached)
        with self.lock:
            self.now -= 1
        return found


@pytest.mark.parametrize(("alone", "most"), [(True, 1), (False, 4)])
def test_runs_in_real_time_go_one_after_another(
    alone: bool, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Slow(alone)
    monkeypatch.setattr(runs, "find", lambda _: engine)
    scenario = loads(DUMBBELL).with_({"duration": "100 ms", "warmup": "0 s"})
    runs.run(scenario, engine="slow", seeds=8, jobs=4)
    assert engine.most == 1 if alone else 1 < engine.most <= most
    assert netns.Netns.alone


# -------------------------------------------------------------------------------------- real time


def archive(passed: Sequence[tuple[int, int]], samples: Sequence[int]) -> Archive:
    """Packets of 1462 bytes, which take 1500 on the wire, with their times before and after the
    queue of link 0."""
    before, after = np.array(passed, dtype=np.int64).reshape(-1, 2).T
    same = np.ones(len(before), dtype=np.int64)
    rows = {
        "t_before_ns": before,
        "t_after_ns": after,
        "flow": 0 * same,
        "reverse": 0 * same,
        "bytes": 1462 * same,
        "ds_in": 0 * same,
        "ds_out": 0 * same,
        "t_gone_ns": 0 * same - 1,
        **dict.fromkeys(("refused", "hash", "truesize", "after", "order"), 0 * same),
    }
    index = {"taps": [{"link": 0, "stages": []}]}
    return Archive(index, {"tap0": rows, "device": {"t_ns": np.array(samples, dtype=np.int64)}})


def at_rate(held: Mapping[int, int]) -> list[tuple[int, int]]:
    """A queue that is always full at 10 Mbit/s: 1500 bytes take 1.2 ms. `held` maps a packet's
    number to its additional delay in ns."""
    now, passed = 0, []
    for number in range(2000):
        now += 1_200_000 + held.get(number, 0)
        passed.append((max(0, number * 1_200_000 - 30 * MS), now))
    return passed


def realised(**changes: Any) -> Realised:
    found = loads(DUMBBELL).with_(changes).realise(1)
    assert found.record.queue_ns == 100 * MS
    assert found.links[0].framing.overhead_bytes == 38
    return found


ON_TIME = [100 * MS * number + 20_000 for number in range(30)] + [3 * S]


def test_a_run_whose_link_sends_at_its_rate_is_trusted() -> None:
    assert real_time.doubts(realised(), archive(at_rate({}), ON_TIME)) == []
    # 10 ms late is 0.4 % of the run.
    assert real_time.doubts(realised(), archive(at_rate({700: 10 * MS}), ON_TIME)) == []
    # An idle link does not count as slow.
    idle = [(10 * MS * number, 10 * MS * number + 1000) for number in range(200)]
    assert real_time.doubts(realised(), archive(idle, ON_TIME)) == []


def test_a_run_with_a_delayed_link_is_not_trusted() -> None:
    (doubt,) = real_time.doubts(realised(), archive(at_rate({700: 20 * MS, 900: 30 * MS}), ON_TIME))
    # 50 ms of 2.45 s.
    assert doubt == "link 'down' sent 2.0% less than its rate while packets waited"


def test_the_expected_rate_follows_the_schedule_and_the_shaper() -> None:
    text = DUMBBELL.replace(
        'rate = "10 Mbit/s"', 'schedule = [["0 s", "10 Mbit/s"], ["1 s", "5 Mbit/s"]]'
    )
    changing = loads(text).realise(1)
    after = [number * 1_200_000 for number in range(1, 834)]
    after += [after[-1] + number * 2_400_000 for number in range(1, 700)]
    passed = [(max(0, now - 30 * MS), now) for now in after]
    assert real_time.doubts(changing, archive(passed, ON_TIME)) == []
    assert real_time.doubts(realised(), archive(passed, ON_TIME)) != []
    shaped = realised(**{"bottleneck.down.shaper": "htb rate 5mbit burst 1600 overhead 24"})
    half = [(max(0, number * 2_400_000 - 30 * MS), number * 2_400_000) for number in range(1, 1200)]
    assert real_time.doubts(shaped, archive(half, ON_TIME)) == []
    assert real_time.doubts(realised(), archive(half, ON_TIME)) != []


def test_a_run_with_late_samples_is_not_trusted() -> None:
    once = [at + 30 * MS * (number == 4) for number, at in enumerate(ON_TIME)]
    assert real_time.doubts(realised(), archive(at_rate({}), once)) == []
    late = [at + 30 * MS * (number in (4, 9)) for number, at in enumerate(ON_TIME)]
    (doubt,) = real_time.doubts(realised(), archive(at_rate({}), late))
    assert doubt == "2 of 30 samples came more than 5 ms late or not at all"
    assert real_time.lateness(np.array([*ON_TIME[:5], *ON_TIME[8:]]), 100 * MS, 3 * S) == (3, 30)
    # No samples were requested.
    assert real_time.lateness(np.array([], dtype=np.int64), 0, 3 * S) == (0, 0)


def test_a_module_with_another_setting_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(namespaces, "MODULES", tmp_path)
    monkeypatch.setattr(namespaces, "_refusal", lambda *_: None)
    scenario: Scenario = loads(DUMBBELL.replace("reno", "cubic"))
    run = scenario.realise(1)
    planned = plan(run, this_host()).plan
    file = tmp_path / "tcp_cubic" / "parameters" / "hystart"
    file.parent.mkdir(parents=True)
    file.write_text("1\n")
    assert list(namespaces.missing(run, planned, namespaces.ROOT)) == []
    file.write_text("0\n")
    (missing,) = namespaces.missing(run, planned, namespaces.ROOT)
    assert missing.why == f"{file} is 0, and the scenario has 1"


def test_each_example_is_accepted_or_refused_with_an_error() -> None:
    if reason := namespaces.why_not():
        pytest.skip(reason)
    engine = netns.Netns()
    for file in sorted((ROOT / "scenarios").glob("*.toml")):
        for variant in load(file).variants():
            with contextlib.suppress(UserError):
                engine.check(variant.realise(1))
