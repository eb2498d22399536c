"""Before an interface is changed: can what it has be put back, and will the kernel carry out what
is wanted?

Not everything can be put back by saying it again: some disciplines (red) take more than they show.
So it is tried first: in a namespace that is thrown away, a device of the same name, number and
queues gets the same, and must then look the same to tc(8).

Source: network_namespaces(7), unshare(2).
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from sojourn.errors import UserError
from sojourn.linux import tc
from sojourn.linux.rtnl import (
    OPTIONS,
    Former,
    Kernel,
    RefusedError,
)

T = TypeVar("T")

_NEW_NAMESPACE = 0x40000000
_DEFAULT = Path("/proc/sys/net/core/default_qdisc")
_MOST_OTHERS = 200
"""Devices that are doubled for a rehearsal."""
_OWN = re.compile(r"^qdisc \S+ 0: .*\n", re.MULTILINE)
"""The kernel's default."""


class NoNamespaceError(UserError):
    """A network namespace can't be made here."""


class NotRestorableError(UserError):
    """What an interface has could not be put back as it was."""


def rehearse(former: Former, operations: Sequence[tc.Operation]) -> None:
    """Tries in a namespace of its own whether the former state can be put back, then whether the
    operations can be carried out.

    Where nothing is to be put back and no namespace can be made (a container with CAP_NET_ADMIN
    alone), nothing is tried.

    Raises:
        NotRestorableError: the former state would not be what it was.
        RefusedError: an operation; by the kernel, in its words.
        NoNamespaceError: none can be made, and one is needed.
    """
    with Kernel() as kernel:
        # What filters send to other devices names these by number.
        others = (
            [kernel.former(name) for name in kernel.names() if name != former.name]
            if former.made
            else []
        )

    def work() -> None:
        with Kernel() as scratch:
            _double_all(scratch, former, others)
            if former.made:
                try:
                    scratch.make_again(former)
                except RefusedError as error:
                    raise NotRestorableError(f"{error.what}: {error.words}") from None
                # What is the kernel's own differs between kinds of devices, and stays.
                before, again = (
                    _OWN.sub("", words)
                    for words in (former.words, scratch.former(former.name).words)
                )
                if again != before:
                    raise NotRestorableError(_difference(before, again))
            for operation in operations:
                scratch.do(operation)

    if doubt := _changed_default(former) or _hidden(former):
        raise NotRestorableError(doubt)
    try:
        in_a_namespace(work)
    except NoNamespaceError:
        if former.made:
            raise


def _changed_default(former: Former) -> str:
    """The kernel would put another default there than it did."""
    try:
        default = _DEFAULT.read_text().strip()
    except OSError:
        # Not told in namespaces.
        return ""
    fixed = {"noqueue", "noop", "mq", default}
    kinds = [one.kind for one in former.things if one.sort == "qdisc" and not one.handle]
    found = next((kind for kind in kinds if kind not in fixed), None)
    return (
        f"its default {found} would become {default} (sysctl net.core.default_qdisc)"
        if found
        else ""
    )


def _hidden(former: Former) -> str:
    """What the kernel has and does not show. Other disciplines of which it hides something refuse
    to be made without."""
    for one in former.things:
        # tc_netem_qopt: latency, limit, loss, gap, duplicate, jitter.
        if one.kind == "netem" and any(one.attribute(OPTIONS)[20:24]):
            return "netem scatters delays by a table that the kernel does not show"
    return ""


def _double_all(scratch: Kernel, former: Former, others: Sequence[Former]) -> None:
    there = set(scratch.names())
    if former.name not in there:
        scratch.double(former.name, former)
    for other in others[:_MOST_OTHERS]:
        if other.name not in there:
            scratch.double(other.name, other)


def difference(before: Former, after: Former) -> str:
    """The first thing that tc(8) shows otherwise; "" if there is none."""
    return "" if before.words == after.words else _difference(before.words, after.words)


def _difference(before: str, after: str) -> str:
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    one, other = next(((a, b) for a, b in pairs if a != b), (before.strip(), after.strip()))
    return f"`{one.strip()}` would become `{other.strip()}`"


def in_a_namespace(work: Callable[[], T]) -> T:
    """Calls `work` in a network namespace that is gone afterwards. It is a thread's own, so this
    process stays where it is."""
    result: list[T] = []
    failed: list[BaseException] = []

    def inside() -> None:
        try:
            if ctypes.CDLL(None, use_errno=True).unshare(_NEW_NAMESPACE) != 0:
                reason = os.strerror(ctypes.get_errno())
                raise NoNamespaceError(
                    f"a scratch network namespace can't be made: {reason}",
                    "run it with CAP_SYS_ADMIN as well",
                )
            result.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return result[0]
