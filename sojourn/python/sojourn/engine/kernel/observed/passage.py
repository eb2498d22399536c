"""A link's packets, a row for each, and the cause of each drop and mark.

The guest's program sees each packet's events. No event of the kernel has the cause, so it follows
from the discipline and its own counters.

Source: crates/tc for the layout of the disciplines' statistics and their meaning.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sojourn import _core
from sojourn.arrays import Ints, Mask
from sojourn.engine.kernel.observed.archive import Archive
from sojourn.scenario.qdisc import QDISCS, QdiscRecord

if TYPE_CHECKING:
    from sojourn._core import QdiscCounter

_CE = 3
"""The ECN bits of a marked packet: congestion experienced (RFC 3168)."""
CAUSE = {word: number for number, word in enumerate(_core.CAUSES)}


@dataclass
class Passage:
    """A link's packets, one row each, in order of arrival at its queue."""

    before: Ints
    after: Ints
    """Time of departure from the queue; `NEVER`: none."""
    gone: Ints
    """Time of the drop; `NEVER`: none."""
    refused: Mask
    """Whether the packet was dropped on arrival."""
    flow: Ints
    reverse: Ints
    bytes: Ints
    """Size of the IP packet."""
    ds: Ints
    """The DS field before the queue."""
    marked: Mask
    hash: Ints
    """The hash by which queues distinguish flows (skb_get_hash)."""
    truesize: Ints
    """Kernel memory charged for the packet (skb->truesize), bytes; 0 if not recorded."""
    sent_before: Ints
    """Packets sent before it arrived."""
    order: Ints
    """Packets sent before it left, by departure or drop; `NEVER`: it waits."""

    @classmethod
    def of(cls, rows: Mapping[str, Ints]) -> "Passage":
        """From the rows of a watched queue (crates/guest, watch.rs)."""
        return cls(
            before=rows["t_before_ns"],
            after=rows["t_after_ns"],
            gone=rows["t_gone_ns"],
            refused=rows["refused"] == 1,
            flow=rows["flow"],
            reverse=rows["reverse"],
            bytes=rows["bytes"],
            ds=rows["ds_in"],
            marked=((rows["ds_in"] & 3) != _CE)
            & ((rows["ds_out"] & 3) == _CE)
            & (rows["t_after_ns"] >= 0),
            hash=rows["hash"],
            truesize=rows["truesize"],
            sent_before=rows["after"],
            order=rows["order"],
        )

    def __len__(self) -> int:
        return len(self.before)

    @cached_property
    def left(self) -> Mask:
        """Which packets left the queue."""
        return self.after >= 0


@dataclass(frozen=True)
class Own:
    """A discipline's own statistics at each sample."""

    record: QdiscRecord
    times: Ints
    numbers: Mapping[str, Ints]

    def growth(self, name: str) -> int:
        """How much a statistic grew over the whole run."""
        values = self.numbers.get(name)
        return 0 if values is None or not len(values) else int(values[-1])

    def drops(self, times: Ints, refused: Mask) -> Ints:
        """The causes of drops at these times; `refused`: dropped on arrival.

        Where the discipline has a counter for each cause, the counters' growth in the sample
        interval decides. If several grew, all drops of the interval get the cause that grew most:
        no event shows which drop moved which counter. Linux's red counts early and forced drops
        together, so they are `early` here.
        """
        arrival, departure, counters = self.record.drops
        if not counters:
            return np.where(refused, CAUSE[arrival], CAUSE[departure])
        return self._decide(times, counters)

    def marks(self, times: Ints) -> Ints:
        """The causes of marks at these times, by the same rule."""
        _, departure, counters = self.record.marks
        if not counters:
            return np.full(len(times), CAUSE[departure], dtype=np.int64)
        return self._decide(times, counters)

    def _decide(self, times: Ints, counters: "Sequence[QdiscCounter]") -> Ints:
        """For each time, the cause whose counter grew most in the sample interval around it."""
        names = [name for _, plus, minus in counters for name in (*plus, *minus)]
        causes = np.array([CAUSE[word] for word, _, _ in counters], dtype=np.int64)
        if any(name not in self.numbers for name in names) or len(self.times) < 2:
            return np.full(len(times), causes[0], dtype=np.int64)
        grown = np.stack([np.diff(self.total(plus, minus)) for _, plus, minus in counters])
        interval = np.clip(
            np.searchsorted(self.times, times, side="left") - 1, 0, len(self.times) - 2
        )
        return np.asarray(causes[grown.argmax(axis=0)[interval]], dtype=np.int64)

    def total(self, plus: Sequence[str], minus: Sequence[str]) -> Ints:
        """The sum of some statistics less the sum of others, at each sample."""
        total = np.zeros(len(self.times), dtype=np.int64)
        for name in plus:
            total = total + self.numbers[name]
        for name in minus:
            total = total - self.numbers[name]
        return total


def own_numbers(archive: Archive, rows: Mapping[str, Ints], kind: str) -> Own:
    """Decodes the kernel's bytes in these rows of the table `qdisc`, by the discipline's record."""
    record = QDISCS[kind]
    numbers: dict[str, Ints] = {"drops": rows["drops"]}
    if not record.in_linux():
        return Own(record, rows["t_ns"], numbers)
    skipped, names = record.xstats
    if names:
        texts = [
            _words(archive.blob[at + skipped : at + size], len(names))
            for at, size in zip(rows["own_at"].tolist(), rows["own_bytes"].tolist(), strict=True)
        ]
        table = np.array(texts, dtype=np.int64).reshape(len(texts), len(names))
        numbers |= {name: table[:, index] for index, name in enumerate(names)}
    for name, sort, number in record.told_options:
        starts = zip(rows["options_at"].tolist(), rows["options_bytes"].tolist(), strict=True)
        texts_of_options = [archive.blob[at : at + size] for at, size in starts]
        if sort == "attribute":
            values = [_attribute(text, number) for text in texts_of_options]
        else:
            values = [_words(text, number + 1)[number] for text in texts_of_options]
        numbers[name] = np.array(values, dtype=np.int64)
    return Own(record, rows["t_ns"], numbers)


def own_of_all(archive: Archive, rows: Mapping[str, Ints], kind: str) -> Own:
    """The statistics of the disciplines on all queues of a card, added up."""
    each = [
        own_numbers(archive, {name: column[of] for name, column in rows.items()}, kind)
        for handle in np.unique(rows["handle"])
        for of in [rows["handle"] == handle]
    ]
    if not each:
        return own_numbers(archive, rows, kind)
    first = each[0]
    numbers = {
        name: sum((own.numbers[name] for own in each[1:]), first.numbers[name])
        for name in first.numbers
    }
    return Own(first.record, first.times, numbers)


def _words(text: bytes, count: int) -> tuple[int, ...]:
    """32-bit words. A word that an older kernel lacks is 0."""
    return struct.unpack(f"={count}I", text[: 4 * count].ljust(4 * count, b"\0"))


def _attribute(text: bytes, wanted: int) -> int:
    """The 32-bit value of a netlink attribute; -1 if it is absent."""
    at = 0
    while at + 4 <= len(text):
        size, kind = struct.unpack_from("=HH", text, at)
        if kind & 0x3FFF == wanted and size >= 8:
            return int(struct.unpack_from("=I", text, at + 4)[0])
        at += max((size + 3) & ~3, 4)
    return -1
