"""The numbers of a queue discipline that follow from its words, as `tc -s qdisc show` prints them:
every parameter with its default, red's averaging constant, cake's tins.

They are the same on every engine: Linux computes them when the discipline is made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sojourn._core import write_rate
from sojourn.scenario.realised import Link

MTU = 1500
"""The largest IP packet of a link, bytes."""


@dataclass(frozen=True)
class Tin:
    """A tin of cake."""

    name: str
    """tc's heading."""
    threshold_bps: int
    """The rate above which other tins are served first; 0: none."""
    target_ns: int
    interval_ns: int
    quantum_bytes: int

    def text(self) -> str:
        """As words: "thresh 625kbit target 29.1ms interval 124ms quantum 300"."""
        return " ".join(f"{word} {cell(self)}" for word, cell in _ROWS)

    def to_dict(self) -> dict[str, str | int | float]:
        """As plain values, for JSON."""
        return {
            "name": self.name,
            "threshold_bps": self.threshold_bps,
            "target_ms": self.target_ns / 1e6,
            "interval_ms": self.interval_ns / 1e6,
            "quantum_bytes": self.quantum_bytes,
        }


def parameters(link: Link) -> str:
    """The words of the link's discipline with every parameter."""
    return link.qdisc.whole_text(MTU + link.framing.header_bytes)


def tins(link: Link) -> list[Tin]:
    """The tins of a link's cake; empty for another discipline."""
    return [Tin(*each) for each in link.qdisc.tins(MTU + link.framing.header_bytes)]


_ROWS: Sequence[tuple[str, Callable[[Tin], str]]] = (
    ("thresh", lambda tin: write_rate(tin.threshold_bps)),
    ("target", lambda tin: _time(tin.target_ns)),
    ("interval", lambda tin: _time(tin.interval_ns)),
    ("quantum", lambda tin: str(tin.quantum_bytes)),
)


def tin_lines(found: Sequence[Tin]) -> list[str]:
    """The tins as columns, in the form of tc."""
    if not found:
        return []
    heads = [tin.name for tin in found]
    rows = [[word, *(cell(tin) for tin in found)] for word, cell in _ROWS]
    wide = [
        max(12, *(len(row[at + 1]) for row in rows), len(heads[at])) for at in range(len(found))
    ]
    return [
        f"  {head:<10}"
        + "".join(f" {cell:>{width}}" for cell, width in zip(cells, wide, strict=True))
        for head, *cells in [["", *heads], *rows]
    ]


def _time(ns: int) -> str:
    return f"{ns / 1e6:.3g}ms" if ns >= 1_000_000 else f"{ns / 1e3:.3g}us"
