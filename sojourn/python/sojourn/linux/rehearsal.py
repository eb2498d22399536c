"""Checks before an interface is changed: can its present state be restored, and will the kernel
accept the operations?

Not every state can be restored from the kernel's report: some disciplines (red) take more options
than they report. So the restoration is tried first. In a temporary namespace, a device of the same
name, number and queues gets the same state, and must then look the same to tc(8).

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
"""Most devices that are copied for a rehearsal."""
_OWN = re.compile(r"^qdisc \S+ 0: .*\n", re.MULTILINE)
"""A line of a discipline that is the kernel's default."""


class NoNamespaceError(UserError):
    """A network namespace can't be made here."""


class NotRestorableError(UserError):
    """The interface's state could not be restored exactly."""


def rehearse(former: Former, operations: Sequence[tc.Operation]) -> None:
    """Tries, in a namespace of its own, to restore the former state, then to carry out the
    operations.

    If there is nothing to restore and no namespace can be made (a container with CAP_NET_ADMIN
    alone), nothing is tried.

    Raises:
        NotRestorableError: the restored state would differ.
        RefusedError: the kernel refuses an operation; the error has the kernel's message.
        NoNamespaceError: a namespace is needed and can't be made.
    """
    with Kernel() as kernel:
        # Filters name other devices by number, so these are copied, too.
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
                # The kernel's own disciplines differ between kinds of devices, and stay.
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
    """Why the kernel's default discipline would differ from the former one; "": it would not."""
    try:
        default = _DEFAULT.read_text().strip()
    except OSError:
        # The sysctl does not exist in namespaces.
        return ""
    fixed = {"noqueue", "noop", "mq", default}
    kinds = [one.kind for one in former.things if one.sort == "qdisc" and not one.handle]
    changed = next((kind for kind in kinds if kind not in fixed), None)
    return (
        f"its default {changed} would become {default} (sysctl net.core.default_qdisc)"
        if changed
        else ""
    )


def _hidden(former: Former) -> str:
    """The state that the kernel has but does not report; "": none. There are other disciplines with
    hidden state, but the kernel refuses to make one without that state."""
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
    """The first difference in what tc(8) shows; "": none."""
    return "" if before.words == after.words else _difference(before.words, after.words)


def _difference(before: str, after: str) -> str:
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    old, new = next(((a, b) for a, b in pairs if a != b), (before.strip(), after.strip()))
    return f"`{old.strip()}` would become `{new.strip()}`"


def in_a_namespace(work: Callable[[], T]) -> T:
    """Calls `work` in a temporary network namespace. Only the thread enters it, so this process
    stays in its own."""
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
