"""Tables and Runs: what an engine hands over, and the folder that keeps it.

A Run is a folder that says exactly what was run and holds the tables of every seed that finished:

    RUN/scenario.toml       the scenario as text, sweeps resolved
    RUN/meta.json           title, engine, version, seeds finished, names of links and flows, host (`sojourn.meta`)
    RUN/seed-1/*.parquet    one file per table, zstd
    RUN/seed-1/SHA256SUMS   a line for each of them, as sha256sum(1) writes and checks it; its own sum is in meta.json

A seed is there whole or not at all: its tables are written to a temporary sibling, which is then renamed; only after
that does meta.json, itself replaced in one step, name the seed. So a Run can be interrupted anywhere, and read while
it grows. Whatever is read is checked first: its sum, its columns, and that it is of this Run's links and flows.
Numbers and figures are made from Runs only: `sojourn.metrics.summary(run)` computes the summary.

Every column has its unit in its name. Columns are integers, except means, the disciplines' own state and what may pass 2^63 in
a run of years (floats), and names (strings). What there is none of (no sample yet, lost, unlimited) is null; an engine hands it over as -1 or NaN.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from sojourn import foreign, remains
from sojourn import meta as metas
from sojourn.errors import UserError
from sojourn.meta import FORMAT, FlowInfo, LinkInfo, Meta, Phase

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "FORMAT",
    "INDEX",
    "META",
    "SCENARIO",
    "SUMS",
    "TABLES",
    "Column",
    "FlowInfo",
    "LinkInfo",
    "Meta",
    "Names",
    "Phase",
    "Run",
    "RunError",
    "check_room",
    "check_vacant",
    "frame",
    "write_index",
    "write_whole",
]

META = "meta.json"
SCENARIO = "scenario.toml"
SUMS = "SHA256SUMS"
INDEX = "runs.json"


class RunError(UserError):
    """A Run can't be read, written or used."""


# ---------------------------------------------------------------------------------------------------------- tables


@dataclass(frozen=True)
class Column:
    """One column of a table: its name, its unit ("" for plain numbers and names) and what it holds."""

    name: str
    unit: str
    meaning: str
    dtype: type[pl.DataType] = pl.Int64


_UNITS = ("ns", "bytes", "packets", "bits")


def _int(name: str, meaning: str) -> Column:
    ending = name.rsplit("_", 1)[-1]
    return Column(name, ending if ending in _UNITS else "", meaning)


def _name(name: str, meaning: str) -> Column:
    return Column(name, "", meaning, pl.String)


def _real(name: str, meaning: str) -> Column:
    return dataclasses.replace(_int(name, meaning), dtype=pl.Float64)


TABLES: dict[str, tuple[Column, ...]] = {
    "queue": (
        _int("t_ns", "end of the interval"),
        _name("link", "the link"),
        _int("backlog_packets", "queued at t_ns"),
        _int("backlog_bytes", "queued at t_ns, as the discipline counts bytes"),
        _real("sojourn_mean_ns", "mean sojourn of the packets that left in the interval; null if none did"),
        _int("sojourn_max_ns", "largest sojourn in the interval"),
        _int("sent_packets", "that left the queue in the interval"),
        _int("sent_bytes", "that left the queue in the interval"),
        _int("dropped_packets", "in the interval"),
        _int("marked_packets", "in the interval"),
        _real("limit", "limit in force, packets or bytes as the discipline counts"),
        _real("count", "CoDel's count of drops in this dropping state"),
        _real("probability", "RED's maximum probability in force; PIE's probability, SFB's mean one"),
        _real("average", "RED's average queue; adt's throughput estimate, bit/s"),
        _real("flows", "flows with packets, of fq_codel, fq_pie and fq"),
        _int("ring_packets", "in the driver's ring at t_ns, the one in transmission too; null: no ring"),
        _int("ring_bytes", "in the driver's ring at t_ns, as the discipline counts bytes; null: no ring"),
        _int("bql_limit_bytes", "BQL's limit at t_ns; null: no BQL"),
    ),
    "flow": (
        _int("t_ns", "time of the sample"),
        _name("flow", "the flow"),
        _int("cwnd_bytes", "congestion window; null: not TCP"),
        _int("ssthresh_bytes", "slow-start threshold; null: unlimited"),
        _int("srtt_ns", "smoothed RTT (RFC 6298); null: no sample yet"),
        _int("inflight_bytes", "sent, neither acknowledged nor taken for lost"),
        _int("delivered_bytes", "since the start"),
        _int("retransmits", "segments, since the start"),
        _int("window_bytes", "advertised by the receiver"),
    ),
    "probe": (
        _int("t_ns", "when it was sent"),
        _name("probe", "the ping flow"),
        _int("seq", "its number, from 0"),
        _int("rtt_ns", "from request to reply; null: lost"),
        _int("forward_ns", "the one-way part from sender to echoer; null: lost on the way"),
    ),
    "drops": (
        _int("t_ns", "when"),
        _name("link", "where"),
        _name("flow", "whose packet"),
        _name(
            "cause",
            "limit, target, ce_threshold, early (RED's own), forced (ns-2's and ns-3's above max), overmemory, wire",
        ),
        _int("marked", "1: the packet was marked and went on; 0: it was dropped"),
        _int("bytes", "its size"),
    ),
    "sojourn": (
        _name("link", "the link"),
        _int("lower_ns", "least sojourn of this bin"),
        _int("upper_ns", "where the next bin begins"),
        _int("packets", "in this bin, after the warm-up"),
    ),
    "rtt": (
        _name("flow", "the flow; flows of one entry of the scenario may share a histogram"),
        _int("lower_ns", "least RTT of this bin"),
        _int("upper_ns", "where the next bin begins"),
        _int("samples", "in this bin, after the warm-up"),
    ),
    "packets": (
        _int("t_ns", "when it left the queue"),
        _name("link", "the link"),
        _name("flow", "the flow"),
        _int("sojourn_ns", "from enqueue to dequeue"),
        _int("bytes", "its size"),
    ),
    "links": (
        _name("link", "the link"),
        _int("arrived_packets", "offered to the queue, after the warm-up"),
        _int("arrived_bytes", "offered to the queue"),
        _int("sent_packets", "that left the queue"),
        _int("sent_bytes", "that left the queue, as the discipline counts bytes"),
        _int("wire_bytes", "whose transmission began, framing included"),
        _int("dropped_packets", "by the queue"),
        _int("marked_packets", "by the queue"),
        _int("lost_packets", "by the wire, after the queue"),
        _real("sojourn_sum_ns", "over all packets that left"),
        _int("sojourn_max_ns", "the largest"),
        _real("backlog_mean_packets", "mean over time"),
        _real("backlog_mean_bytes", "mean over time"),
        _int("backlog_max_packets", "the largest"),
        _int("backlog_max_bytes", "the largest"),
        _int("busy_ns", "time spent transmitting"),
        _real(
            "capacity_bits",
            "what the link could have carried in measured_ns, at the slower of its rate and its shaper's; null: unlimited",
        ),
        _int("measured_ns", "duration less warm-up"),
        _int("ring_sent_packets", "whose last bit left the driver's ring; null: no ring"),
        _real("ring_sojourn_sum_ns", "over them, from the queue to the last bit on the wire; null: no ring"),
        _int("ring_sojourn_max_ns", "the largest; null: no ring"),
        _real("ring_mean_packets", "mean over time of what is in the ring; null: no ring"),
        _int("ring_max_packets", "the largest; null: no ring"),
        _int("bql_limit_bytes", "BQL's limit at the end; null: no BQL"),
    ),
    "flows": (
        _name("flow", "the flow"),
        _int("sent_packets", "after the warm-up, retransmissions included"),
        _int("sent_bytes", "after the warm-up"),
        _int("received_packets", "that reached the far end"),
        _int("delivered_bytes", "of the application, after the warm-up"),
        _int("lost_packets", "data packets that a queue or a wire dropped"),
        _int("retransmits", "segments"),
        _int("timeouts", "retransmission timeouts"),
        _int("fast_recoveries", "entries into fast recovery"),
        _real("rtt_sum_ns", "over all samples"),
        _int("rtt_samples", "number of samples"),
        _int("rtt_min_ns", "the least; null: no sample"),
        _int("rtt_max_ns", "the largest; null: no sample"),
        _int(
            "base_rtt_ns",
            "of a full packet through empty queues, each link at its fastest, or a shorter packet's that was less; "
            "null: a link never sends it",
        ),
    ),
    "transfers": (
        _name("flow", "the flow"),
        _int("start_ns", "first data sent"),
        _int("end_ns", "last acknowledgement received"),
        _int("bytes", "of the application"),
    ),
    "engine": (
        _int("events", "the engine dispatched"),
        _int("packets", "data packets delivered, over the whole run"),
        _int("peak_entries", "most events pending at once, packets under way among them"),
    ),
}
"""Every table, and what its columns hold. ARCHITECTURE.md's list, in a form the code checks."""

_LINK_COLUMNS = ("link",)
_FLOW_COLUMNS = ("flow", "probe")


def frame(name: str, columns: Mapping[str, np.ndarray[Any, Any]], names: Names) -> pl.DataFrame:
    """One of an engine's tables as a DataFrame: checked against `TABLES`, numbers of links, flows and causes named."""
    expected = TABLES[name]
    if set(columns) != {column.name for column in expected}:
        differing = sorted(set(columns) ^ {column.name for column in expected})
        raise ValueError(f"the engine's table {name!r} and records.py differ in: {', '.join(differing)}")
    return pl.DataFrame([_series(column, columns[column.name], names) for column in expected])


_NONE = -1
"""How an engine's column of integers says "none"."""


def _series(column: Column, values: np.ndarray[Any, Any], names: Names) -> pl.Series:
    if column.dtype is not pl.String:
        series = pl.Series(column.name, values)
        if series.dtype.is_float():
            return series.fill_nan(None).cast(column.dtype)
        # Unsigned integers have no -1 to compare with.
        return (
            series.set(series == _NONE, None).cast(column.dtype)
            if values.dtype.kind == "i"
            else series.cast(column.dtype)
        )
    lookup = names.of(column.name)
    return pl.Series(column.name, lookup, dtype=pl.String).gather(pl.Series(values, dtype=pl.UInt32))


@dataclass(frozen=True)
class Names:
    """What the numbers in an engine's `link`, `flow`, `probe` and `cause` columns stand for."""

    links: Sequence[str]
    flows: Sequence[str]
    causes: Sequence[str]

    def of(self, column: str) -> Sequence[str]:
        """The names that a column of numbers points into."""
        if column in _LINK_COLUMNS:
            return self.links
        if column in _FLOW_COLUMNS:
            return self.flows
        return self.causes


# ------------------------------------------------------------------------------------------------------------- Run


class Run:
    """A Run on disk. `Run.open(path)` reads one; `Run.create` starts one, `add_seed` fills it.

    >>> run = Run.open("runs/home-uplink")              # doctest: +SKIP
    >>> run.table("probe")["rtt_ns"].mean() / 1e6  # doctest: +SKIP
    """

    def __init__(self, path: Path, meta: Meta) -> None:
        self.path = path
        self.meta = meta
        self._sums: dict[int, dict[str, str]] = {}

    def __repr__(self) -> str:
        seeds = f"{len(self.seeds)} of {len(self.meta.seeds_asked)} seeds"
        return f"<Run {self.meta.label or self.meta.title!r} ({self.meta.engine}, {seeds}) in {self.path}>"

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds that finished, ascending."""
        return self.meta.seeds

    @property
    def name(self) -> str:
        """How to call this Run in a table or legend: its label, or its title where it has none."""
        return self.meta.label or self.meta.title

    @property
    def scenario_text(self) -> str:
        """The scenario as it was given, sweeps resolved (TOML); of a measurement what was asked."""
        text = _content(self.path / SCENARIO).decode(errors="replace").replace("\r\n", "\n")
        return foreign.plain(text, lines=True)

    def tables(self, seed: int | None = None) -> tuple[str, ...]:
        """Names of the tables that this Run holds of a seed (None: of its first); `packets` only if it was asked for."""
        if not self.seeds:
            return ()
        folder = self._seed_folder(self.seeds[0] if seed is None else seed)
        return tuple(name for name in TABLES if (folder / f"{name}.parquet").is_file())

    def table(self, name: str, seed: int | None = None) -> pl.DataFrame:
        """A table of one seed, or of all of them with a first column `seed`."""
        if name not in TABLES:
            raise RunError(f"there is no table {name!r}", f"tables are: {', '.join(TABLES)}")
        if seed is not None:
            return self._read(name, seed)
        if not self.seeds:
            raise RunError(f"{self.path}: no seed has finished", "run it again")
        frames = []
        for one in self.seeds:
            table = self._read(name, one)
            frames.append(table.select(pl.lit(one, dtype=pl.Int64).alias("seed"), pl.all()))
        return pl.concat(frames)

    def check_sums(self) -> None:
        """Holds every file of every table against its SHA-256, without reading what is in it.

        Raises:
            RunError: one is damaged or missing.
        """
        if self.meta.format < 2:
            return
        try:
            for seed in self.seeds:
                folder = self._seed_folder(seed)
                for name in self._listed(seed):
                    self._check_sum(folder / name, _content(folder / name), seed)
        except RunError:
            self._check_ours()
            raise

    def _read(self, name: str, seed: int) -> pl.DataFrame:
        if seed not in self.seeds:
            finished = ", ".join(map(str, self.seeds)) or "none"
            raise RunError(f"{self.path}: seed {seed} has not finished", f"finished: {finished}")
        file = self._seed_folder(seed) / f"{name}.parquet"
        if name == "packets" and not file.exists():
            raise RunError(
                f"{self.path}: packets were not recorded",
                "set `packets = true` under [record] in the scenario",
            )
        try:
            content = _content(file)
            self._check_sum(file, content, seed)
            return _table(file, content, self.meta)
        except RunError:
            # With `force` another process may have put a Run of its own there since this one was opened.
            self._check_ours()
            raise

    def _check_sum(self, file: Path, content: bytes, seed: int) -> None:
        if self.meta.format >= 2 and self._listed(seed).get(file.name) != hashlib.sha256(content).hexdigest():
            raise _damaged(file, f"its SHA-256 is not the one in {SUMS}")

    def _listed(self, seed: int) -> dict[str, str]:
        """The SHA-256 of each file of a seed, by its name."""
        if seed not in self._sums:
            file = self._seed_folder(seed) / SUMS
            listed = _content(file)
            if hashlib.sha256(listed).hexdigest() != self.meta.checksums[str(seed)]:
                raise _damaged(file, "it is not the one that meta.json names")
            lines = listed.decode(errors="replace").splitlines()
            self._sums[seed] = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
        return self._sums[seed]

    def _seed_folder(self, seed: int) -> Path:
        return self.path / f"seed-{seed}"

    # -------------------------------------------------------------------------------------------------- reading

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Run:
        """Opens the Run in this folder."""
        folder = Path(path)
        if not folder.is_dir():
            raise RunError(f"{folder} is not a folder", "give the folder that `sojourn run -o` wrote")
        file = folder / META
        if not file.is_file():
            raise RunError(
                f"{folder} is not a Run: it has no {META}", "give the folder that `sojourn run -o` wrote"
            )
        return cls(folder, _read_meta(file))

    @classmethod
    def find(cls, path: str | os.PathLike[str]) -> list[Run]:
        """The Run in this folder, or the Runs of a comparison or sweep, in their order."""
        folder = Path(path)
        index = folder / INDEX
        if not index.is_file():
            return [cls.open(folder)]
        try:
            names = json.loads(_content(index))["runs"]
            plain = all(name == Path(name).name and name not in ("", "..") for name in names)
            if not isinstance(names, list) or not names or not plain:
                raise ValueError
        except (ValueError, KeyError, TypeError, RecursionError):
            raise RunError(f"{index} is not a list of Runs", "run the comparison again") from None
        return [cls.open(folder / name) for name in names]

    # -------------------------------------------------------------------------------------------------- writing

    @classmethod
    def create(cls, path: str | os.PathLike[str], meta: Meta, scenario: str, *, force: bool = False) -> Run:
        """Starts a Run: the folder, the scenario, meta.json without seeds.

        A folder with something in it is refused, unless it is a Run and `force` says it may go.
        """
        folder = Path(path)
        check_vacant(folder, force=force)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _remove_run(folder)
            _make(folder / SCENARIO, scenario.encode())
            run = cls(folder, dataclasses.replace(meta, seeds=(), cpu_s={}, checksums={}, invalid=()))
            run._write_meta()
        except FileExistsError:
            raise RunError(f"{folder} already holds a Run", "choose another folder with -o") from None
        except OSError as error:
            raise RunError(
                f"can't write to {folder}: {error.strerror or error}", "choose another folder"
            ) from None
        return run

    @classmethod
    def create_temporary(cls, meta: Meta, scenario: str) -> Run:
        """Starts a Run in a temporary folder that lives as long as the Run object."""
        folder = remains.make_folder()
        try:
            run = cls.create(folder, meta, scenario)
        except BaseException:
            remains.remove_folder(folder)
            raise
        weakref.finalize(run, remains.remove_folder, folder)
        return run

    def add_seed(
        self,
        seed: int,
        tables: Mapping[str, Mapping[str, np.ndarray[Any, Any]]],
        causes: Sequence[str],
        cpu_ns: int = 0,
        invalid: Sequence[str] = (),
    ) -> None:
        """Writes the tables of a finished seed: all of them or, if that fails, none.

        `causes`: see `Names`. `invalid`: why these tables can't be trusted, if they can't.
        """
        names = Names(
            [link.name for link in self.meta.links], [flow.name for flow in self.meta.flows], causes
        )
        unknown = sorted(set(tables) - set(TABLES))
        if unknown:
            raise ValueError(f"the engine wrote tables that records.py doesn't know: {', '.join(unknown)}")
        self._check_ours()
        target = self._seed_folder(seed)
        try:
            with remains.beside(target) as temporary:
                temporary.mkdir()
                sums = []
                for name, columns in tables.items():
                    content = _parquet(frame(name, columns, names))
                    (temporary / f"{name}.parquet").write_bytes(content)
                    sums.append(f"{hashlib.sha256(content).hexdigest()}  {name}.parquet\n")
                listed = "".join(sums).encode()
                (temporary / SUMS).write_bytes(listed)
                shutil.rmtree(target, ignore_errors=True)
                os.replace(temporary, target)
            self.meta = dataclasses.replace(
                self.meta,
                seeds=tuple(sorted({*self.meta.seeds, seed})),
                cpu_s={**self.meta.cpu_s, str(seed): cpu_ns / 1e9},
                checksums={**self.meta.checksums, str(seed): hashlib.sha256(listed).hexdigest()},
                invalid=_with_reasons(self.meta.invalid, seed, invalid),
            )
            self._sums.pop(seed, None)
            self._write_meta()
        except OSError as error:
            raise RunError(
                f"seed {seed} could not be written to {self.path}: {error.strerror or error}",
                "make room, or choose another folder with -o; the seeds that had finished are kept",
            ) from None

    def ask(self, seeds: Sequence[int], fingerprint: str) -> None:
        """More seeds are to come: all that are asked for now, and the fingerprint of what will then have been run."""
        self._check_ours()
        self.meta = dataclasses.replace(self.meta, seeds_asked=tuple(seeds), fingerprint=fingerprint)
        try:
            self._write_meta()
        except OSError as error:
            raise RunError(
                f"can't write to {self.path}: {error.strerror or error}",
                "the seeds that had finished are kept",
            ) from None

    def _check_ours(self) -> None:
        """Refuses to mix tables of two Runs: with `force`, someone else may have taken the folder meanwhile; or removed it."""
        file = self.path / META
        if not file.is_file():
            raise RunError(
                f"{self.path} is no Run any more: it was moved or removed meanwhile",
                "run it again, into a folder that stays",
            )
        if _read_meta(file).fingerprint != self.meta.fingerprint:
            raise RunError(
                f"{self.path} was replaced by another Run", "give each a folder of its own with -o"
            )

    def _write_meta(self) -> None:
        # Its format first, and whatever it was: it is written in ours.
        whole = {"format": FORMAT} | dataclasses.asdict(dataclasses.replace(self.meta, format=FORMAT))
        text = json.dumps(whole, indent=2, ensure_ascii=False)
        write_whole(self.path / META, (text + "\n").encode())


def _with_reasons(known: Sequence[str], seed: int, reasons: Sequence[str]) -> tuple[str, ...]:
    """Whichever seed finished first."""
    others = [line for line in known if not line.startswith(f"seed {seed}: ")]
    return tuple(sorted([*others, *(f"seed {seed}: {each}" for each in reasons)], key=_seed_of))


def _seed_of(reason: str) -> int:
    return int(reason.partition(":")[0].removeprefix("seed "))


def write_index(folder: Path, names: Iterable[str]) -> None:
    """Writes the order of the Runs in a folder of Runs."""
    try:
        write_whole(folder / INDEX, (json.dumps({"runs": list(names)}, indent=2) + "\n").encode())
    except OSError as error:
        raise RunError(
            f"can't write to {folder}: {error.strerror or error}", "choose another folder"
        ) from None


def check_vacant(folder: Path, *, force: bool = False) -> None:
    """Refuses a folder that a new Run would overwrite: anything not empty, except one of our Runs when `force`."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file, not a folder", "choose another folder with -o")
    try:
        if not folder.is_dir() or not any(folder.iterdir()):
            return
    except OSError as error:
        raise RunError(
            f"can't read {folder}: {error.strerror or error}", "choose another folder with -o"
        ) from None
    if not (folder / META).is_file():
        raise RunError(f"{folder} holds files that are not a Run", "choose another folder with -o")
    _read_meta(folder / META)
    if not force:
        raise RunError(
            f"{folder} already holds a Run", "choose another folder with -o, or replace it with --force"
        )


def check_room(folder: Path, needed_bytes: int) -> None:
    """Refuses a folder that can't be written to, or whose disk has less than `needed_bytes` free."""
    parent = folder
    while not parent.exists() and parent != parent.parent:
        parent = parent.parent
    try:
        with tempfile.TemporaryFile(dir=parent) as probe:
            probe.write(b"sojourn")
    except OSError as error:
        raise RunError(
            f"can't write to {parent}: {error.strerror or error}", "choose another folder with -o"
        ) from None
    free = shutil.disk_usage(parent).free
    if free < needed_bytes:
        raise RunError(
            f"{parent} has {free / 1e6:.0f} MB free, and the tables may take {needed_bytes / 1e6:.0f} MB",
            "make room, choose another folder with -o, or record less ([record] in the scenario)",
        )


def _parquet(table: pl.DataFrame) -> bytes:
    # Through memory, so that a full disk is an OSError of ours and not a panic in a writer thread.
    buffer = io.BytesIO()
    table.write_parquet(buffer, compression="zstd")
    return buffer.getvalue()


def write_whole(file: Path, content: bytes) -> None:
    """Writes a file, or replaces it, in one step: whole or not at all. Raises OSError."""
    with remains.beside(file) as temporary:
        temporary.write_bytes(content)
        os.replace(temporary, file)


def _make(file: Path, content: bytes) -> None:
    """Writes a file that is not there yet: of two Runs that start at once in one folder, one is refused."""
    with file.open("xb") as stream:
        try:
            stream.write(content)
            stream.flush()
        except OSError:
            file.unlink()
            raise


def _remove_run(folder: Path) -> None:
    # Only what a Run consists of: whatever else lies in the folder stays.
    for seed in folder.glob("seed-*"):
        shutil.rmtree(seed)
    for name in (META, SCENARIO):
        (folder / name).unlink(missing_ok=True)


# -------------------------------------------------------------------------------------------------------- what is read


def _read_meta(file: Path) -> Meta:
    try:
        return metas.read(_content(file))
    except metas.NewerError as newer:
        raise RunError(f"{file} was written by a newer sojourn ({newer})", "update sojourn") from None
    except ValueError as error:
        raise RunError(
            f"{file} is damaged or not a Run's: {error}", "run it again into a new folder"
        ) from None


def _content(file: Path) -> bytes:
    """A file of a Run."""
    try:
        if file.is_file():
            return file.read_bytes()
    except OSError as error:
        raise RunError(
            f"can't read {file}: {error.strerror or error}", "may you read it? else run it again"
        ) from None
    raise RunError(f"{file} is missing", "the Run is damaged: run it again")


def _table(file: Path, content: bytes, meta: Meta) -> pl.DataFrame:
    """A table of this Run: its columns as `TABLES` has them, its names among the Run's.

    Older formats may lack columns, which are then null, and may have numbers of another type.
    """
    try:
        # From memory: polars takes no name of a file that is not UTF-8.
        table = pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise _damaged(file, foreign.plain(str(error))) from None
    columns = TABLES[file.stem]
    old = meta.format < FORMAT
    found = dict(table.schema)
    unknown = sorted(set(found) - {column.name for column in columns})
    missing = [column.name for column in columns if column.name not in found]
    if unknown or (missing and not old) or len(missing) == len(columns):
        raise _damaged(file, f"it is no table {file.stem!r}")
    for column in columns:
        has = found.get(column.name, column.dtype)
        if has != column.dtype and not (old and has.is_numeric() and column.dtype is not pl.String):
            raise _damaged(file, f"its column {column.name} holds {has}")
    try:
        table = table.select(
            pl.col(column.name).cast(column.dtype)
            if column.name in found
            else pl.lit(None, dtype=column.dtype).alias(column.name)
            for column in columns
        )
    except pl.exceptions.PolarsError as error:
        raise _damaged(file, foreign.plain(str(error))) from None
    if problem := _strangers(file.stem, table, meta):
        raise _damaged(file, problem)
    return table


def _strangers(name: str, table: pl.DataFrame, meta: Meta) -> str | None:
    """What shows that a table is of another Run."""
    known = {
        "link": [link.name for link in meta.links],
        **{column: [flow.name for flow in meta.flows] for column in _FLOW_COLUMNS},
    }
    for column in set(table.columns) & set(known):
        if not set(table[column].unique().to_list()) <= set(known[column]):
            return f"it has a {column} that the Run has not"
    # Of a measurement a later repeat may have brought more.
    key = name.removesuffix("s")
    if name in ("links", "flows") and not meta.phases and sorted(table[key].to_list()) != sorted(known[key]):
        return f"it has not one row for each {key} of the Run"
    if name == "engine" and table.height != 1:
        return "it has not one row"
    return None


def _damaged(file: Path, why: str) -> RunError:
    return RunError(f"{file} can't be read: {why}", "the Run is damaged: run it again")
