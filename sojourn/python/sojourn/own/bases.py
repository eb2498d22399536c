"""What a class of one's own may begin from, what its methods are shown, and a class as it is read.

`language` reads one, `kinds` tells its numbers apart, `compiled` compiles it.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from sojourn.errors import UserError

Number = int | float


@dataclass(frozen=True)
class View:
    """What a method is shown: whole numbers under names, and arrays of them, one for each queue."""

    numbers: tuple[str, ...]
    arrays: tuple[str, ...] = ()


VIEWS = {
    "packet": View(("bytes", "flow", "hash", "ecn", "ce", "dscp", "enqueued", "sojourn")),
    "link": View(("now", "packets", "bytes", "mtu", "rate"), ("queue_packets", "queue_bytes")),
    "ack": View(
        ("now", "acked", "rtt", "srtt", "una", "nxt", "cwnd_limited", "open", "mss"),
    ),
    "event": View(("now", "inflight", "mss")),
    "delivery": View(
        (
            "now",
            "delivered",
            "interval",
            "rate",
            "prior_delivered",
            "total_delivered",
            "app_limited",
            "acked",
            "losses",
            "prior_inflight",
            "inflight",
            "rtt",
            "repair",
            "cwnd_limited",
            "mss",
        ),
    ),
}
"""By the name of an argument, in the engine's order (crates/qdisc, own.rs; crates/tcp, own.rs)."""


@dataclass(frozen=True)
class Base:
    """What a class may begin from."""

    name: str
    word: str
    asked: Mapping[str, tuple[str, ...]]
    """What the engine asks, and of what."""
    settings: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Fields that the engine reads, each with its bounds."""
    shared: Mapping[str, Number] = field(default_factory=dict)
    """Fields that the engine reads and sets, ahead of the class's own."""
    most_numbers: int = 1 << 22
    """Of a state."""


BASES = {
    base.name: base
    for base in (
        Base(
            "Discipline",
            "discipline",
            {
                "enqueue": ("packet", "link"),
                "overflow": ("link",),
                "choose": ("link",),
                "dequeue": ("packet", "link"),
                "idle": ("link",),
                "timer": ("link",),
            },
            {
                "queues": (1, 1 << 16),
                "limit": (0, 1 << 32),
                "timer_start": (0, 1 << 62),
                "bypass": (0, 1),
            },
        ),
        Base(
            "CongestionControl",
            "congestion control",
            {
                "on_ack": ("ack",),
                "on_loss": ("event",),
                "on_ecn": ("event",),
                "on_timeout": ("event",),
                "on_delivery": ("delivery",),
            },
            shared={"cwnd": 10.0, "ssthresh": math.inf, "pacing_rate": 0},
            # Each connection has a state.
            most_numbers=1 << 12,
        ),
    )
}
SILENT = ("idle", "on_ack", "on_loss", "on_ecn", "on_timeout", "on_delivery")
"""Methods that answer nothing."""
ANSWERS = {
    "enqueue": "the number of a queue, with MARK added or not, or DROP",
    "overflow": "the number of a queue that has packets",
    "choose": "the number of a queue that has packets",
    "dequeue": "PASS, MARK or DROP",
    "idle": "nothing",
    "timer": "a time in ns later than link.now",
}
"""What the engine takes for one, by what it asks."""

FUNCTION = "__own_"
"""Ahead of the names of the file's functions, so that none hides one of ours. No name of a file begins
with `__`."""
CHECK = "__check_"
"""Ahead of those of `checks`."""
STATE = "__state"
"""The first argument of each function."""
LUCK, WHY, LINE, TURNS = "__luck", "__why", "__line", "__turns"
"""Ahead of the fields of a state."""


PLAIN = (ast.BitAnd, ast.BitOr, ast.BitXor)
"""Operations of whole numbers that can't fail."""


@dataclass(frozen=True)
class Call:
    """A function with kinds of arguments: numbers that are whole or real, or what is shown."""

    name: str
    arguments: tuple[str, ...]


WHOLE, REAL = "whole", "real"
"""Kinds of numbers."""


@dataclass(frozen=True)
class Function:
    """A function of the file, or a method of the class."""

    name: str
    line: int
    node: ast.FunctionDef
    """Rewritten."""
    views: Mapping[str, str]
    """Arguments that are the packet, the link and their like, by what they are."""
    work: int
    """What numba has to do for it, in names and numbers of plain statements."""
    names: frozenset[str]
    """Its variables, and its arguments."""


@dataclass(frozen=True)
class Law:
    """A class, read."""

    file: str
    name: str
    base: Base
    values: Mapping[str, Number | list[Number]]
    """Its fields at their start."""
    settings: Mapping[str, int]
    functions: tuple[Function, ...]
    """Each behind those that it calls."""
    asked: tuple[str, ...]
    """What of `base.asked` it has: functions of the same names."""
    paces: bool = False
    """A congestion control that sets a pacing rate."""
    said: Mapping[int, str] = field(default_factory=dict)
    """By line: what a `raise` or `assert` says."""
    calls: tuple[Call, ...] = ()
    """What is to be compiled, each behind what it calls."""


def refusal(file: str, node: object, problem: str, hint: str) -> UserError:
    """What is wrong with a part of a file, with its line."""
    return UserError(f"{file}:{getattr(node, 'lineno', 1)}: {problem}", hint)
