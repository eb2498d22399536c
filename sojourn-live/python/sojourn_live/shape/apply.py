"""Shaping a live interface: apply, confirm, undo.

A mistake here can cost the connection to the host, so each step can be undone. Before anything is
changed:

1. the change is rehearsed in a temporary namespace;
2. the former state is written to the journal;
3. a separate process (`watchdog`) is started.

The watchdog restores the former state unless it is confirmed in time, and also if this process ends
in the middle. If the watchdog is killed as well, the journal's entry stays and the next call
reports it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sojourn.errors import UserError
from sojourn.linux import rehearsal, rtnl, tc
from sojourn.linux.operations import LEAVES, ShapePlan, WantedShape, again, plan
from sojourn.scenario.qdisc import Qdisc
from sojourn_live.shape import journal

READY, APPLIED = b"r", b"a"
"""Two messages: READY from the watchdog, and APPLIED to the watchdog when the shaper is applied."""
WATCHDOG_FD = 3
PATIENCE_S = 30.0
"""How long to wait for the watchdog to start."""
_NET_ADMIN = 12


def look(name: str) -> tuple[rtnl.Interface, rtnl.Former]:
    """An interface and its present state. Needs no privilege.

    Raises:
        UserError: there is no such interface.
    """
    if sys.platform != "linux":
        raise UserError(
            "shaping is done by Linux's traffic control", "run it on the router or host with Linux"
        )
    with rtnl.Kernel() as kernel:
        interface = kernel.interface(name)
        if interface is None:
            raise UserError(
                f"no interface {name!r}", f"interfaces here: {', '.join(kernel.names())}"
            )
        return interface, kernel.former(name)


def permitted() -> bool:
    """Whether this process may change interfaces."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _NET_ADMIN & 1)
    return False


def demand(name: str) -> None:
    """Raises UserError if this process may not change interfaces."""
    if not permitted():
        raise UserError(
            f"{name}: changing an interface's queues needs root (CAP_NET_ADMIN)",
            "run it with sudo; without --apply the commands are only printed, which needs no privilege",
        )


def apply(name: str, wanted: WantedShape, within_s: float) -> tuple[journal.ShaperEntry, ShapePlan]:
    """Shapes an interface. Unless `confirm` is called in time, the former state is restored.
    `within_s` 0: confirmed at once.

    Raises:
        UserError: nothing was changed, or the change was undone.
        UnitError: see `plan`.
    """
    with _in_place(name, wanted, within_s) as placed:
        state = "applied" if within_s else "confirmed"
        deadline = journal.now() + within_s if within_s else None
        entry = replace(placed.entry, state=state, deadline_s=deadline)
        journal.save(entry)
        placed.send(APPLIED)
    return entry, placed.shape


@contextlib.contextmanager
def trial(name: str, wanted: WantedShape) -> Iterator[Callable[[WantedShape], None]]:
    """Shapes an interface for the duration of the block. The block gets a function that changes the
    rates in the same directions.

    However the block ends, by kill -9 too, the former state is restored.

    Raises:
        UserError, UnitError: see `apply`.
    """
    with _in_place(name, wanted, 0) as placed:

        def change(other: WantedShape) -> None:
            with rtnl.Kernel() as kernel:
                for operation in again(other, placed.interface, placed.shape.ifb):
                    kernel.do(operation)

        try:
            yield change
        finally:
            put_back(placed.entry)
            journal.forget(name)


@dataclass(frozen=True)
class _Placed:
    entry: journal.ShaperEntry
    shape: ShapePlan
    interface: rtnl.Interface
    send: Callable[[bytes], object]
    """Sends to the watchdog."""


@contextlib.contextmanager
def _in_place(name: str, wanted: WantedShape, within_s: float) -> Iterator[_Placed]:
    """Sets up a shaper that is not yet marked as applied: if this process ends in the block, the
    watchdog restores the former state."""
    demand(name)
    with journal.locked():
        refuse_if_shaped(name)
        interface, former = look(name)
        shape = plan(wanted, interface, former)
        rehearse(shape, former, wanted)
        asked = {"up_bps": wanted.up_bps, "down_bps": wanted.down_bps, "qdisc": wanted.qdisc}
        asked["link"] = wanted.link.text if wanted.link else None
        entry = journal.ShaperEntry(
            name, asked, tuple(shape.commands), shape.ifb, former, time.time(), within_s
        )
        with _watchdog(name) as (watchdog, send):
            entry = replace(entry, watchdog=journal.process(watchdog))
            journal.save(entry)
            try:
                with rtnl.Kernel() as kernel:
                    for operation in shape.operations:
                        kernel.do(operation)
            except BaseException as error:
                put_back(entry)
                journal.forget(name)
                if isinstance(error, rtnl.RefusedError):
                    raise UserError(
                        f"{error.problem}; {name} is as it was", hint_for(error, wanted)
                    ) from None
                raise
            yield _Placed(entry, shape, interface, send)


def confirm(name: str) -> journal.ShaperEntry:
    """Keeps the applied shaper."""
    demand(name)
    with journal.locked():
        entry = _known(name, "there is nothing to confirm")
        if entry.state == "applying":
            raise UserError(
                f"{name} was shaped only in part: the process that applied the shaper was ended",
                f"sojourn shape {name} --undo",
            )
        if gone := absent(entry):
            raise UserError(
                f"{gone}: there is nothing to keep",
                f"sojourn shape {name} --undo removes the rest",
            )
        entry = replace(entry, state="confirmed", deadline_s=None)
        journal.save(entry)
    return entry


def undo(name: str) -> tuple[journal.ShaperEntry, str]:
    """Restores the former state. The second value describes a remaining difference, or a missing
    interface; "" if there is neither."""
    demand(name)
    with journal.locked():
        entry = _known(name, "there is nothing to undo")
        try:
            differs = put_back(entry)
        except rtnl.RefusedError as error:
            raise UserError(
                f"{name} could not be restored: {error.problem}",
                f"its former state is recorded in {journal.FOLDER}",
            ) from None
        journal.forget(name)
    return entry, differs


def absent(entry: journal.ShaperEntry) -> str:
    """A sentence if the shaped interface does not exist any more; "" if it does."""
    with rtnl.Kernel() as kernel:
        present = kernel.interface(entry.interface)
    if present is None:
        return f"{entry.interface} is gone"
    if present.index != entry.former.index:
        return f"the shaped interface {entry.interface} is gone; another one has its name"
    return ""


def _known(name: str, nothing: str) -> journal.ShaperEntry:
    entry = journal.load(name)
    if entry is None:
        raise UserError(
            f"{name} is not shaped by sojourn: {nothing}", f"sojourn shape {name} --status"
        )
    if entry.state == "rolled back":
        journal.forget(name)
        raise UserError(
            f"{name} was already rolled back: {entry.why}", "shape it again, and confirm in time"
        )
    return entry


def refuse_if_shaped(name: str) -> None:
    """Raises UserError if, by the journal, the interface is shaped. Removes the entry of a shaper
    that was rolled back."""
    entry = journal.load(name)
    if entry is None:
        return
    if entry.state == "rolled back":
        journal.forget(name)
    elif entry.state == "confirmed" or entry.watched:
        raise UserError(f"{name} is shaped already", f"first: sojourn shape {name} --undo")
    else:
        raise UserError(
            f"{name} was shaped, but not confirmed, and the watchdog that would roll it back has ended",
            f"sojourn shape {name} --undo restores the former state, --confirm keeps the present one",
        )


# ------------------------------------------------------------------------------------- beforehand


def rehearse(shape: ShapePlan, former: rtnl.Former, wanted: WantedShape) -> None:
    """Refuses operations that the kernel can't do, and a former state that it could not restore."""
    try:
        rehearsal.rehearse(former, shape.operations)
    except rehearsal.NotRestorableError as error:
        raise UserError(
            f"the present qdiscs of {former.name} could not be restored: {error.problem}",
            f"remove them first, if they are not needed: tc qdisc del dev {former.name} root (or ingress)",
        ) from None
    except rtnl.RefusedError as error:
        raise UserError(f"this kernel refuses: {error.problem}", hint_for(error, wanted)) from None


def hint_for(error: rtnl.RefusedError, wanted: WantedShape) -> str:
    """The hint for an operation that the kernel refuses."""
    if " type ifb" in error.what:
        return "load the module: modprobe ifb; or shape only sent packets: leave --down out"
    if "mirred" in error.what or "u32" in error.what:
        return "load the modules: modprobe -a cls_u32 act_mirred; or shape only sent packets: leave --down out"
    if " htb default" in error.what:
        return "load the module: modprobe sch_htb"
    kind = wanted.qdisc.split()[0]
    if "conntrack" in error.words:
        return f"load nf_conntrack, or do without fairness between hosts behind NAT: --qdisc '{wanted.qdisc} nonat'"
    module = "sch_fifo" if "fifo" in kind else f"sch_{kind}"
    able = [each for each in available() if each != kind]
    if not able:
        return f"load the module: modprobe {module}"
    best = f"{able[0]} (a queue of 20 ms)" if "fifo" in able[0] else able[0]
    return f"load the module: modprobe {module}; or use an available discipline: --qdisc {best}"


def available() -> list[str]:
    """The disciplines of this kernel, best first; empty if no namespace can be made to try them."""

    def works() -> list[str]:
        found = []
        with rtnl.Kernel() as kernel:
            kernel.do(tc.AddIfb("try0"))
            for kind in ("cake", *LEAVES):
                # cake without nat, which needs connection tracking that the kernel may lack.
                plain = kind != "cake"
                qdisc = (
                    Qdisc.parse(kind)
                    if plain
                    else Qdisc.live_cake("cake nonat", 10**6, None, False)
                )
                with contextlib.suppress(rtnl.RefusedError):
                    kernel.do(tc.AddQdisc("try0", "root", tc.ROOT, qdisc))
                    kernel.do(tc.DeleteQdisc("try0", "root"))
                    found.append(kind)
        return found

    try:
        return rehearsal.in_a_namespace(works)
    except (rehearsal.NoNamespaceError, rtnl.RefusedError):
        return []


# --------------------------------------------------------------------------------------- rollback


def put_back(entry: journal.ShaperEntry) -> str:
    """Restores an interface's former state and returns what differs from it. Call it with the lock
    held."""
    name, former = entry.interface, entry.former
    with rtnl.Kernel() as kernel:
        gone = absent(entry)
        if not gone:
            kernel.put_back(former)
        if entry.ifb is not None and kernel.interface(entry.ifb) is not None:
            kernel.do(tc.DeleteLink(entry.ifb))
        if gone:
            return f"{gone}, and its shaper with it; the rest is removed"
        return rehearsal.difference(former, kernel.former(name))


@contextlib.contextmanager
def _watchdog(name: str) -> Iterator[tuple[int, Callable[[bytes], object]]]:
    """Starts the watchdog in a session of its own. Yields its process id and a function that sends
    to it. If the block ends before `APPLIED` is sent, the watchdog restores the former state.

    Raises:
        UserError: it does not start.
    """
    ours, its = socket.socketpair()
    with ours:
        with its:
            null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
            give = (os.POSIX_SPAWN_DUP2, its.fileno(), WATCHDOG_FD)
            words = [sys.executable, "-m", "sojourn_live.shape.watchdog", name]
            # The session is separate so that the watchdog survives the end of the terminal or of
            # ssh.
            pid = os.posix_spawn(
                sys.executable, words, os.environ, file_actions=[*null, give], setsid=True
            )
        ours.settimeout(PATIENCE_S)
        try:
            ready = ours.recv(1) == READY
        except TimeoutError:
            ready = False
        if not ready:
            raise UserError(
                "the watchdog, which rolls the shaper back, does not start; nothing was changed",
                f"try it: {sys.executable} -m sojourn_live.shape.watchdog --help",
            )
        yield pid, ours.sendall
