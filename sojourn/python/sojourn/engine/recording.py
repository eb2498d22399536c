"""What one queue did to each packet that came to it, in order: a value and its file.

An engine that can tell writes it (`engine/kernel/observed/recorded`); `agreement/decisions` holds
the simulator's queue against it. A recording is a Parquet file, the link and what was recorded in
its metadata, and needs no kernel to be read.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from sojourn import cleanup
from sojourn.arrays import Ints, Mask
from sojourn.errors import UserError
from sojourn.scenario.qdisc import Qdisc
from sojourn.scenario.realised import Link

FORMAT = 1
_META = "sojourn"
_MAY_LACK = ("hash", "truesize", "source", "destination")
"""Columns that recordings of an older sojourn lack."""
HINT = "give a file that `sojourn replay SCENARIO -o DIR` wrote"
"""What to do about a file that is none."""


SENT, MARKED, REFUSED, DROPPED, WAITS = range(5)
"""What became of a packet. REFUSED: dropped on arrival; WAITS: neither when the recording ended."""
EARLY = (MARKED, REFUSED, DROPPED)
"""What a draw may decide."""


@dataclass(frozen=True)
class Trace:
    """Packets that came to a queue, in their order, and what it did to them; columns of one
    length."""

    t_ns: Ints
    """When it came."""
    flow: Ints
    """Equal for packets of one direction of a five-tuple."""
    bytes: Ints
    """Of the IP packet."""
    ds: Ints
    """Its DS field as it came."""
    after: Ints
    """How many had been sent before it came: what came first at one instant."""
    fate: Ints
    left_ns: Ints
    """When it left the queue, either way; -1: it waits."""
    order: Ints
    """How many packets had been sent before it left; -1: it waits."""
    hash: Ints | None = None
    """The kernel's hash of its flow (skb_get_hash), 32 bits; -1: not known. None: not recorded."""
    truesize: Ints | None = None
    """What it took of the kernel's memory as it came (skb->truesize), bytes; -1: not known. None:
    not recorded."""
    source: Ints | None = None
    """The host that it comes from, by a number; -1: not known. None: not recorded."""
    destination: Ints | None = None
    """The host that it is for, likewise."""

    def __len__(self) -> int:
        return len(self.t_ns)

    @property
    def early(self) -> Mask:
        """Dropped or marked: what a draw may decide."""
        return np.isin(self.fate, EARLY)


@dataclass(frozen=True)
class Recording:
    """A link of a scenario and what its queue did."""

    title: str
    seed: int
    version: str
    """Of the kernel."""
    zero_ns: int
    """Time 0 on the kernel's monotonic clock."""
    link: Link
    trace: Trace

    def by(self, qdisc: Qdisc) -> Recording:
        """The same with another discipline at the link: what it does is compared with what was
        recorded."""
        return replace(self, link=self.link.with_qdisc(qdisc))

    @property
    def qdisc(self) -> str:
        """In tc's words."""
        return self.link.qdisc.text

    @property
    def name(self) -> str:
        """`title, seed 1, link down`."""
        return f"{self.title}, seed {self.seed}, link {self.link.name}"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it, whole or not at all.

        Raises:
            UserError: there is no room, or no right.
        """
        about = {
            "format": FORMAT,
            **{name: getattr(self, name) for name in ("title", "seed", "version", "zero_ns")},
            "link": json.loads(self.link.to_json()),
        }
        known = {name: column for name, column in vars(self.trace).items() if column is not None}
        columns = pl.DataFrame(known).with_columns(pl.col("bytes", "flow").cast(pl.Int32))
        try:
            with cleanup.beside(Path(path)) as temporary:
                columns.write_parquet(
                    temporary, compression="zstd", metadata={_META: json.dumps(about)}
                )
                temporary.replace(path)
        except OSError as error:
            raise UserError(
                f"can't write {path}: {error.strerror or error}", "choose another -o"
            ) from None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Recording:
        """Reads one.

        Raises:
            UserError: there is none in this file.
        """
        try:
            file = Path(path)
            about = json.loads(pl.read_parquet_metadata(file)[_META])
            if about.pop("format") != FORMAT:
                raise UserError(
                    f"{path} was written by another version of sojourn", "record it again"
                )
            table = pl.read_parquet(file)
            names = [
                name
                for name in Trace.__annotations__
                if name in table.columns or name not in _MAY_LACK
            ]
            columns = {name: table[name].cast(pl.Int64).to_numpy() for name in names}
            link = Link.from_json(json.dumps(about.pop("link")))
            return cls(**about, link=link, trace=Trace(**columns))
        except (OSError, pl.exceptions.PolarsError, KeyError, TypeError, ValueError) as error:
            raise UserError(f"{path} is no recording of a queue: {error}", HINT) from None
