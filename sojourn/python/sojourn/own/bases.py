"""The base classes of user-defined classes, the arguments of their methods, and a parsed class.

`language` parses a class, `kinds` separates whole and real numbers, `compiled` compiles it.
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
    """An argument of a method: named whole numbers, and arrays of them, one number for each
    queue."""

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
"""The views by the name of an argument. Their fields are in the engine's order (crates/qdisc,
own.rs; crates/tcp, own.rs)."""


@dataclass(frozen=True)
class Base:
    """A base class."""

    name: str
    word: str
    methods: Mapping[str, tuple[str, ...]]
    """The methods that the engine calls, with their arguments."""
    settings: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Fields that the engine reads, each with its bounds."""
    shared: Mapping[str, Number] = field(default_factory=dict)
    """Fields that the engine reads and sets. They come before the class's own."""
    most_numbers: int = 1 << 22
    """The most numbers in a state."""


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
            # Each connection has a state, so the limit is low.
            most_numbers=1 << 12,
        ),
    )
}
SILENT = ("idle", "on_ack", "on_loss", "on_ecn", "on_timeout", "on_delivery")
"""Methods that return nothing."""
ANSWERS = {
    "enqueue": "the number of a queue, with MARK added or not, or DROP",
    "overflow": "the number of a queue that has packets",
    "choose": "the number of a queue that has packets",
    "dequeue": "PASS, MARK or DROP",
    "idle": "nothing",
    "timer": "a time in ns later than link.now",
}
"""The valid answers, by method."""

FUNCTION = "__own_"
"""Prefix of the names of the file's functions, so that none hides one of ours. No name in a file
begins with `__`."""
CHECK = "__check_"
"""Prefix of the functions of `checks`."""
STATE = "__state"
"""The first argument of each function."""
RNG, WHY, LINE, TURNS = "__rng", "__why", "__line", "__turns"
"""The state's fields of the engine, which come before those of the class."""


PLAIN = (ast.BitAnd, ast.BitOr, ast.BitXor)
"""Operations on whole numbers that can't fail."""


@dataclass(frozen=True)
class Call:
    """A function with the kinds of its arguments: whole or real numbers, or views."""

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
    """The rewritten function."""
    views: Mapping[str, str]
    """Arguments that are views (the packet, the link and so on), and which views."""
    work: int
    """The work of compiling it, as the number of names and numbers in plain statements that would
    take numba as long."""
    names: frozenset[str]
    """Its variables and arguments."""


@dataclass(frozen=True)
class Law:
    """A parsed class."""

    file: str
    name: str
    base: Base
    values: Mapping[str, Number | list[Number]]
    """The first values of its fields."""
    settings: Mapping[str, int]
    functions: tuple[Function, ...]
    """The functions of the file and the class, each after the functions that it calls."""
    methods: tuple[str, ...]
    """The methods of `base.methods` that the class has; `functions` has them under the same
    names."""
    paces: bool = False
    """Whether it is a congestion control that sets a pacing rate."""
    messages: Mapping[int, str] = field(default_factory=dict)
    """The message of a `raise` or `assert`, by line."""
    calls: tuple[Call, ...] = ()
    """The functions to compile, each after those that it calls."""


def refusal(file: str, node: object, problem: str, hint: str) -> UserError:
    """The error for a part of a file, with its line."""
    return UserError(f"{file}:{getattr(node, 'lineno', 1)}: {problem}", hint)
