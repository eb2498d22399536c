"""A recording: each packet that arrived at one queue, in order, and what the queue did to it.

An engine that can observe each packet writes recordings (`engine/kernel/observed/recorded`).
`agreement/decisions` compares the simulator's queue with it. A recording is a Parquet file whose
metadata names the link and the run; it can be read without a kernel.
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
"""Columns that recordings of an older sojourn may lack."""
HINT = "give a file that `sojourn replay SCENARIO -o DIR` wrote"
"""The hint for a file that is not a recording."""


SENT, MARKED, REFUSED, DROPPED, WAITS = range(5)
"""The queue's verdict on a packet. REFUSED: dropped on arrival; WAITS: still queued when the
recording ended."""
EARLY = (MARKED, REFUSED, DROPPED)
"""Verdicts that a random draw may decide."""


@dataclass(frozen=True)
class Trace:
    """Packets that arrived at a queue, in order, and the queue's verdicts; columns of one
    length."""

    t_ns: Ints
    """Time of arrival."""
    flow: Ints
    """Equal for packets of one direction of a five-tuple."""
    bytes: Ints
    """Length of the IP packet."""
    ds: Ints
    """Its DS field on arrival."""
    after: Ints
    """Packets sent before it arrived. This orders events of one instant."""
    fate: Ints
    left_ns: Ints
    """Time at which it was sent or dropped; -1: it waits."""
    order: Ints
    """Packets sent before it left the queue; -1: it waits."""
    hash: Ints | None = None
    """The kernel's hash of its flow (skb_get_hash), 32 bits; -1: not known. None: not recorded."""
    truesize: Ints | None = None
    """Its size in the kernel's memory on arrival (skb->truesize), bytes; -1: not known. None: not
    recorded."""
    source: Ints | None = None
    """Its source host, by a number; -1: not known. None: not recorded."""
    destination: Ints | None = None
    """Its destination host, by a number; -1: not known. None: not recorded."""

    def __len__(self) -> int:
        return len(self.t_ns)

    @property
    def early(self) -> Mask:
        """The packets whose verdict a random draw may have decided: dropped or marked ones."""
        return np.isin(self.fate, EARLY)


@dataclass(frozen=True)
class Recording:
    """A link of a scenario and what its queue did."""

    title: str
    seed: int
    version: str
    """Version of the kernel."""
    zero_ns: int
    """Time 0 of the recording on the kernel's monotonic clock."""
    link: Link
    trace: Trace

    def by(self, qdisc: Qdisc) -> Recording:
        """Returns the recording with another discipline at the link, to compare that discipline
        with what was recorded."""
        return replace(self, link=self.link.with_qdisc(qdisc))

    @property
    def qdisc(self) -> str:
        """The discipline in tc's syntax."""
        return self.link.qdisc.text

    @property
    def name(self) -> str:
        """`title, seed 1, link down`."""
        return f"{self.title}, seed {self.seed}, link {self.link.name}"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file completely or not at all.

        Raises:
            UserError: the disk is full, or permission is denied.
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
        """Reads a recording.

        Raises:
            UserError: the file is not a recording.
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
            raise UserError(f"{path} is not a recording of a queue: {error}", HINT) from None
