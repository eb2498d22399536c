"""The history of `make bench`: one line of JSON per run, compared with the last run of the same
machine.

Repeats of two runs are compared by rank (Mann-Whitney), which assumes nothing about the noise's
distribution: a busy machine causes outliers. The estimate is the median of the ratios of each new
repeat to each old one (Hodges-Lehmann), with Moses' interval for 99 %. Reaching 99 % takes at least
five repeats on each side. With five, a change is reported only if the two sides don't overlap.

If both runs have the same peer, each repeat is divided by the peer's of the same round. Then a
machine that is slower as a whole does not look like a change. Without a peer it does.

Instruction counts have hardly any noise: more than 0.5 % is a change.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "build" / "bench" / "history.jsonl"
"""Beside the peers' programs: git ignores build/, and `make clean` keeps this file."""

CONFIDENCE = 0.99
INSTRUCTIONS = 0.005
PEERS = ("ns-2", "ns-3")
"""Repeats are divided by those of the first of these peers that both runs have."""

Entry = dict[str, Any]
"""The result of one benchmark run, made by bench.py."""


@dataclass(frozen=True)
class Shift:
    """The factor by which a quantity changed, with its confidence interval."""

    factor: float
    low: float
    high: float

    @property
    def beyond_noise(self) -> bool:
        return not self.low <= 1 <= self.high


def append(entry: Entry, file: Path) -> None:
    """Appends one line to the file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(entry) + "\n")


def read(file: Path) -> list[Entry]:
    """Returns the entries, oldest first, without truncated lines (a full disk, a kill)."""
    if not file.exists():
        return []
    entries = []
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            entries.append(json.loads(line))
        except ValueError:
            continue
    return entries


# --------------------------------------------------------------------------------------- changes


def changes(entry: Entry, before: Sequence[Entry]) -> Iterator[str]:
    """Yields a sentence per change since the last entry of this machine with the same case.

    Last comes what could not be compared.
    """
    alike = [
        old
        for old in reversed(before)
        if old["machine"] == entry["machine"] and old["build"] == entry["build"]
    ]
    compared, undecided, unpaired = 0, 0, False
    for case in entry["cases"]:
        if old := _last(alike, case, "rates"):
            rate, peer = _rate_shift(entry, case, *old)
            if rate is None:
                undecided += 1
            else:
                compared += 1
                unpaired |= peer is None
                if rate.beyond_noise:
                    beside = f" beside {peer}" if peer else ""
                    yield (
                        f"{case['case']}: {_times(rate.factor)} as fast{beside} "
                        f"({rate.low:.3f}..{rate.high:.3f}) as {_name(old[0])}"
                    )
        if old := _last(alike, case, "instructions"):
            compared += 1
            now, then = (sum(each["instructions"]["parts"].values()) for each in (case, old[1]))
            if abs(now / then - 1) > INSTRUCTIONS:
                yield (
                    f"{case['case']}: {now / then - 1:+.1%} instructions a packet, "
                    f"{then:.0f} to {now:.0f}, since {_name(old[0])}{_parts(case, old[1])}"
                )
    if undecided:
        yield f"{undecided} rates have too few repeats: at least 5 on each side are needed"
    if not compared:
        yield "nothing of this machine in the history to compare with"
    elif unpaired:
        yield "without a peer in both runs: a machine that is slower today looks like a change"


def _last(alike: Iterable[Entry], case: dict[str, Any], what: str) -> tuple[Entry, Any] | None:
    """Returns the last entry that has this case in the same lengths, and its case."""
    if not case.get(what):
        return None
    for entry in alike:
        for old in entry["cases"]:
            same = old["case"] == case["case"] and old.get(what)
            if same and what == "rates" and old["duration"] == case["duration"]:
                return entry, old
            if same and what == "instructions" and old[what]["lengths"] == case[what]["lengths"]:
                return entry, old
    return None


def _rate_shift(
    entry: Entry, case: dict[str, Any], old_entry: Entry, old: dict[str, Any]
) -> tuple[Shift | None, str | None]:
    new_rates, old_rates = case["rates"], old["rates"]
    for peer in PEERS:
        same = entry["versions"].get(peer) == old_entry["versions"].get(peer)
        if same and new_rates.get(peer) and old_rates.get(peer):
            return shift(_beside(old_rates, peer), _beside(new_rates, peer)), peer
    return shift(old_rates["sojourn"], new_rates["sojourn"]), None


def _beside(rates: dict[str, list[float]], peer: str) -> list[float]:
    return [ours / its for ours, its in zip(rates["sojourn"], rates[peer], strict=True)]


def _name(entry: Entry) -> str:
    changed = ", changed" if entry["dirty"] else ""
    return f"{(entry['commit'] or 'no commit')[:10]}{changed} of {entry['date'][:10]}"


def _times(factor: float) -> str:
    return f"{factor:.3f} times"


def _parts(case: dict[str, Any], old: dict[str, Any]) -> str:
    """Returns the part of the engine that changed most."""
    now, then = case["instructions"]["parts"], old["instructions"]["parts"]
    more = {name: now[name] - then.get(name, 0) for name in now}
    most = max(more, key=lambda name: abs(more[name]))
    return f" ({most}: {more[most]:+.0f})"


# ------------------------------------------------------------------------- comparison by rank


def shift(
    before: Sequence[float], after: Sequence[float], confidence: float = CONFIDENCE
) -> Shift | None:
    """Returns by what factor `after` exceeds `before`: Hodges-Lehmann estimate, Moses' interval.
    None if there are too few samples for an interval of this confidence."""
    left_out = _left_out(len(before), len(after), confidence)
    if left_out is None:
        return None
    ratios = sorted(math.log(new / old) for new in after for old in before)
    low, high = ratios[left_out], ratios[-1 - left_out]
    return Shift(*(math.exp(each) for each in (median(ratios), low, high)))


def _left_out(m: int, n: int, confidence: float) -> int | None:
    """Returns how many of the smallest and of the largest of m n differences lie outside the
    interval: the greatest k with P(U < k) <= (1 - confidence) / 2, where U is Mann-Whitney's."""
    if m == 0 or n == 0:
        return None
    each_side = (1 - confidence) / 2 * math.comb(m + n, m)
    below, k = 0, 0
    while below + _arrangements(m, n, k) <= each_side:
        below += _arrangements(m, n, k)
        k += 1
    return k - 1 if k > 0 else None


@cache
def _arrangements(m: int, n: int, u: int) -> int:
    """Counts the orders of m + n values with U = u: in u pairs the n-value is before the
    m-value."""
    if u < 0:
        return 0
    if m == 0 or n == 0:
        return int(u == 0)
    # The largest value is from m, after all n values, or it is from n.
    return _arrangements(m - 1, n, u - n) + _arrangements(m, n - 1, u)
