"""A Run: an engine's results for a scenario, in a folder.

    RUN/scenario.toml       the scenario as text, sweeps resolved
    RUN/meta.json           title, engine, version, seeds finished, names of links and flows, host (`sojourn.meta`)
    RUN/seed-1/*.parquet    one file per table, zstd
    RUN/seed-1/programs.json, NAME.out   what `sojourn.guest_programs` keeps of a scenario's programs
    RUN/seed-1/SHA256SUMS   a line for each of these files, in the form of sha256sum(1); its own sum is in meta.json

A seed is complete or does not exist. Its tables are written to a temporary sibling folder, which is
then renamed. Only then does meta.json, itself replaced in one step, name the seed. So a Run may be
interrupted at any time, and read while it grows. Each file is checked before use: its sum, its
columns, and that its links and flows are this Run's. Numbers and figures are made only from Runs:
`sojourn.metrics.summary(run)` computes the summary.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sojourn import cleanup, hypertext, sanitize
from sojourn._core import Numbers, SeedTables
from sojourn.meta import FORMAT, Meta
from sojourn.records.disk import (
    INDEX,
    META,
    MOST_SUMS_BYTES,
    SCENARIO,
    SUMS,
    RunError,
    check_vacant,
    content_of,
    damaged,
    make,
    read_meta,
    read_table,
    remove_run,
    write_whole,
)
from sojourn.records.schema import ON_REQUEST, TABLES

if TYPE_CHECKING:
    import numpy as np
    import polars as pl


T = TypeVar("T")

_NO_FILES: Mapping[str, bytes] = {}

CACHE_BYTES = 64 << 20
"""Limit for the tables that `holding` keeps in memory; the least recently read are dropped."""


class TableCache:
    """A cache of tables that were read and checked."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._tables: OrderedDict[tuple[Path, int, str], pl.DataFrame] = OrderedDict()
        self._bytes = 0

    def get(self, key: tuple[Path, int, str]) -> pl.DataFrame | None:
        """The table, if it is cached."""
        if key in self._tables:
            self._tables.move_to_end(key)
        return self._tables.get(key)

    def add(self, key: tuple[Path, int, str], table: pl.DataFrame) -> None:
        """Caches a table and evicts the least recently read ones."""
        self._tables[key] = table
        self._bytes += int(table.estimated_size())
        while self._bytes > self._most:
            _, oldest = self._tables.popitem(last=False)
            self._bytes -= int(oldest.estimated_size())


@contextlib.contextmanager
def holding(runs: Iterable[Run]) -> Iterator[None]:
    """Within this context a table of these Runs is read from disk once, if the cache has room. A
    page reads each table about ten times."""
    mine = [run for run in runs if run._cache is None]
    cache = TableCache(CACHE_BYTES)
    for run in mine:
        run._cache = cache
    try:
        yield
    finally:
        for run in mine:
            run._cache = None


@dataclass(frozen=True)
class Packed:
    """The tables of a seed, as files of its folder."""

    files: Mapping[str, bytes]
    """Content by name: the tables and, last, the list of their sums."""
    checksum: str
    """SHA-256 of that list."""


class Run:
    """A Run on disk. `Run.open(path)` opens one; `Run.create` starts one, `add_seed` adds to it.

    >>> import sojourn
    >>> short = sojourn.load("home-uplink").with_(duration="3 s", warmup="1 s")
    >>> path = sojourn.run(short, seeds=1, out="runs/short").path
    >>> run = sojourn.Run.open("runs/short")
    >>> run.seeds
    (1,)
    >>> float(run.table("probe")["rtt_ns"].mean()) > 0    # a polars DataFrame
    True
    """

    def __init__(self, path: Path, meta: Meta) -> None:
        self.path = path
        self.meta = meta
        self.numbers: dict[int, Numbers] = {}
        """Numbers that `sojourn.metrics` computed from the seeds' tables, in this process."""
        self._as_text: dict[int, tuple[object, str]] = {}
        """The links and flows of `meta` as text of meta.json, by identity."""
        self._cache: TableCache | None = None
        self._sums: dict[int, dict[str, str]] = {}
        self._written: tuple[int, ...] = ()
        """Identity of the meta.json that this object wrote last."""
        self._unnamed = False

    def __repr__(self) -> str:
        seeds = f"{len(self.seeds)} of {len(self.meta.seeds_asked)} seeds"
        return f"<Run {self.meta.label or self.meta.title!r} ({self.meta.engine}, {seeds}) in {self.path}>"

    def _repr_html_(self) -> str:
        """Describes the Run in a notebook. `sojourn.summary` has the numbers."""
        meta = self.meta
        settings = ", ".join(f"{key} = {value}" for key, value in meta.settings.items())
        refused = "; ".join(meta.invalid)
        heading = hypertext.lines(
            meta.title,
            meta.label,
            f"{meta.engine} {meta.version}; {meta.duration_ns / 1e9:g} s, {meta.warmup_ns / 1e9:g} s warm-up;"
            f" {len(self.seeds)} of {len(meta.seeds_asked)} seeds, in {self.path}",
            settings,
            f"INVALID: its numbers must not be used: {refused}" if refused else "",
        )
        links = [[link.name, link.qdisc] for link in meta.links if link.sampled]
        groups: dict[int, list[str]] = {}
        for flow in meta.flows:
            groups.setdefault(flow.group, []).append(flow.name)
        kinds = {flow.group: f"{flow.kind} {flow.congestion or ''}".rstrip() for flow in meta.flows}
        flows = [[those[0], kinds[group], str(len(those))] for group, those in groups.items()]
        return (
            heading
            + hypertext.table(["link", "qdisc"], links)
            + hypertext.table(["flows", "kind", "count"], flows)
        )

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds that finished, ascending."""
        return self.meta.seeds

    @property
    def name(self) -> str:
        """The Run's name in a table or legend: its label, or its title if it has none."""
        return self.meta.label or self.meta.title

    @property
    def scenario_text(self) -> str:
        """The scenario, sweeps resolved (TOML); for a measurement, its options."""
        text = content_of(self.path / SCENARIO).decode(errors="replace").replace("\r\n", "\n")
        return sanitize.plain(text, lines=True)

    def tables(self, seed: int | None = None) -> tuple[str, ...]:
        """Names of the tables that this Run has for a seed (None: for its first). Tables of
        `ON_REQUEST` are there only if the scenario records them."""
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
        import polars as pl

        if not self.seeds:
            raise RunError(f"{self.path}: no seed has finished", "run it again")
        frames = []
        for one in self.seeds:
            table = self._read(name, one)
            frames.append(table.select(pl.lit(one, dtype=pl.Int64).alias("seed"), pl.all()))
        return pl.concat(frames)

    def check_sums(self, tables: Iterable[str] = TABLES) -> None:
        """Checks every file of these tables against its SHA-256, without parsing it.

        Raises:
            RunError: a file is damaged or missing.
        """
        if self.meta.format < 2:
            return
        try:
            for seed in self.seeds:
                self._check_seed(seed, tables)
        except RunError:
            self._check_ours()
            raise

    def forget_damaged(self) -> None:
        """Removes seeds with damaged or missing files from the list of finished ones, so that they
        are run again."""
        intact = tuple(seed for seed in self.seeds if self._is_whole(seed))
        if intact != self.seeds:
            self.meta = dataclasses.replace(self.meta, seeds=intact)
            self._unnamed = True

    def _is_whole(self, seed: int) -> bool:
        try:
            self._check_seed(seed, TABLES)
        except RunError:
            return False
        return True

    def _check_seed(self, seed: int, tables: Iterable[str]) -> None:
        wanted, folder = {f"{name}.parquet" for name in tables}, self._seed_folder(seed)
        for name in filter(wanted.__contains__, self._listed(seed)):
            self._check_sum(folder / name, content_of(folder / name), seed)

    def sums(self, seed: int) -> Mapping[str, str]:
        """The SHA-256 of each table of a seed; equal for seeds with equal tables."""
        return {name.removesuffix(".parquet"): each for name, each in self._listed(seed).items()}

    def file(self, name: str, seed: int, most_bytes: int) -> bytes | None:
        """A file of a seed other than a table, checked against its SHA-256; None: there is none.

        Raises:
            RunError: it is damaged, or larger than `most_bytes`.
        """
        if self.meta.format < 2 or name not in self._listed(seed):
            return None
        file = self._seed_folder(seed) / name
        content = content_of(file, most_bytes)
        self._check_sum(file, content, seed)
        return content

    def _read(self, name: str, seed: int) -> pl.DataFrame:
        if seed not in self.seeds:
            finished = ", ".join(map(str, self.seeds)) or "none"
            raise RunError(f"{self.path}: seed {seed} has not finished", f"finished: {finished}")
        held = None if self._cache is None else self._cache.get((self.path, seed, name))
        if held is not None:
            return held
        file = self._seed_folder(seed) / f"{name}.parquet"
        if name in ON_REQUEST and not file.exists():
            raise RunError(
                f"{self.path}: {name} were not recorded",
                f"set `{name} = true` under [record] in the scenario",
            )
        try:
            content = content_of(file)
            self._check_sum(file, content, seed)
            table = read_table(file, content, self.meta)
        except RunError:
            # With `force` another process may have replaced the Run since it was opened.
            self._check_ours()
            raise
        if self._cache is not None:
            self._cache.add((self.path, seed, name), table)
        return table

    def _check_sum(self, file: Path, content: bytes, seed: int) -> None:
        if (
            self.meta.format >= 2
            and self._listed(seed).get(file.name) != hashlib.sha256(content).hexdigest()
        ):
            raise damaged(file, f"its SHA-256 is not the one in {SUMS}")

    def _listed(self, seed: int) -> dict[str, str]:
        """The SHA-256 of each file of a seed, by its name."""
        if seed not in self._sums:
            file = self._seed_folder(seed) / SUMS
            listed = content_of(file, MOST_SUMS_BYTES)
            if hashlib.sha256(listed).hexdigest() != self.meta.checksums[str(seed)]:
                raise damaged(file, "it is not the one that meta.json names")
            lines = listed.decode(errors="replace").splitlines()
            self._sums[seed] = {
                name: digest for digest, _, name in (line.partition("  ") for line in lines)
            }
        return self._sums[seed]

    def _seed_folder(self, seed: int) -> Path:
        return self.path / f"seed-{seed}"

    # ------------------------------------------------------------------------------------- reading

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Run:
        """Opens the Run in this folder."""
        folder = Path(path)
        if not folder.is_dir():
            raise RunError(
                f"{folder} is not a folder", "give the folder that `sojourn run -o` wrote"
            )
        file = folder / META
        if not file.is_file():
            raise RunError(
                f"{folder} is not a Run: it has no {META}",
                "give the folder that `sojourn run -o` wrote",
            )
        return cls(folder, read_meta(file))

    @classmethod
    def find(cls, path: str | os.PathLike[str]) -> list[Run]:
        """The Run in this folder, or the Runs of a comparison or sweep, in their order."""
        folder = Path(path)
        index = folder / INDEX
        if not index.is_file():
            return [cls.open(folder)]
        try:
            names = sanitize.read_json(content_of(index, sanitize.MOST_JSON_BYTES))["runs"]
            plain = all(name == Path(name).name and name not in ("", "..") for name in names)
            if not isinstance(names, list) or not names or not plain:
                raise ValueError
        except (ValueError, KeyError, TypeError):
            raise RunError(f"{index} is not a list of Runs", "run the comparison again") from None
        return [cls.open(folder / name) for name in names]

    # ------------------------------------------------------------------------------------- writing

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], meta: Meta, scenario: str, *, force: bool = False
    ) -> Run:
        """Starts a Run: makes the folder, the scenario, and meta.json without seeds.

        A folder that is not empty is refused, unless it is a Run and `force` is given.
        """
        folder = Path(path)
        check_vacant(folder, scenario, force=force)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            remove_run(folder)
            make(folder / SCENARIO, scenario.encode())
            run = cls(
                folder, dataclasses.replace(meta, seeds=(), cpu_s={}, checksums={}, invalid=())
            )
            run._write_meta()
        except FileExistsError:
            raise RunError(
                f"{folder} already holds a Run", "choose another folder with -o"
            ) from None
        except OSError as error:
            raise RunError(
                f"can't write to {folder}: {error.strerror or error}", "choose another folder"
            ) from None
        return run

    @classmethod
    def create_temporary(cls, meta: Meta, scenario: str) -> Run:
        """Starts a Run in a temporary folder that lives as long as the Run object."""
        folder = cleanup.make_folder()
        try:
            run = cls.create(folder, meta, scenario)
        except BaseException:
            cleanup.remove_folder(folder)
            raise
        weakref.finalize(run, cleanup.remove_folder, folder)
        return run

    def pack(
        self,
        tables: Mapping[str, Mapping[str, np.ndarray[Any, Any]]] | SeedTables,
        causes: Sequence[str],
    ) -> Packed:
        """Returns the tables of a seed as files, in memory. Releases the GIL, so any thread may
        call it.

        `causes`: see `Names`.

        Raises:
            ValueError: a table differs from its declaration.
        """
        links = [link.name for link in self.meta.links]
        flows = [flow.name for flow in self.meta.flows]
        given = tables if isinstance(tables, SeedTables) else SeedTables(tables)
        return pack(given, links, flows, causes)

    def add_seed(
        self,
        seed: int,
        tables: Mapping[str, Mapping[str, np.ndarray[Any, Any]]] | SeedTables | Packed,
        causes: Sequence[str],
        cpu_ns: int = 0,
        invalid: Sequence[str] = (),
        *,
        named: bool = True,
    ) -> None:
        """Writes the tables of a finished seed: all of them or, if that fails, none.

        `causes`: see `Names`. `invalid`: why these tables are invalid, if they are. `named`:
        meta.json names the seed at once; otherwise `name_seeds` does it later, for several seeds in
        one step.
        """
        packed = tables if isinstance(tables, Packed) else self.pack(tables, causes)
        self._check_ours()
        target = self._seed_folder(seed)
        try:
            with contextlib.ExitStack() as stack:
                temporary = stack.enter_context(cleanup.beside(target))
                temporary.mkdir()
                for name, content in packed.files.items():
                    (temporary / name).write_bytes(content)
                if target.exists():
                    # The former folder is removed once meta.json no longer names its sum.
                    os.replace(target, stack.enter_context(cleanup.beside(target)))
                os.replace(temporary, target)
                self.meta = dataclasses.replace(
                    self.meta,
                    seeds=tuple(sorted({*self.meta.seeds, seed})),
                    cpu_s={**self.meta.cpu_s, str(seed): cpu_ns / 1e9},
                    checksums={**self.meta.checksums, str(seed): packed.checksum},
                    invalid=_with_reasons(self.meta.invalid, seed, invalid),
                )
                self._sums.pop(seed, None)
                self.numbers.pop(seed, None)
                self._unnamed = True
                if named:
                    self._write_meta()
        except OSError as error:
            raise RunError(
                f"seed {seed} could not be written to {self.path}: {error.strerror or error}",
                "make room, or choose another folder with -o; finished seeds are kept",
            ) from None

    def name_seeds(self) -> None:
        """Writes meta.json, if it does not name all added seeds."""
        if not self._unnamed:
            return
        self._check_ours()
        try:
            self._write_meta()
        except OSError as error:
            raise RunError(
                f"can't write to {self.path}: {error.strerror or error}",
                "make room, or choose another folder with -o; the seeds that had finished are kept",
            ) from None

    def ask(self, seeds: Sequence[int], fingerprint: str) -> None:
        """Announces further seeds: `seeds` are all requested ones, `fingerprint` is that of the
        complete Run."""
        self._check_ours()
        self.meta = dataclasses.replace(
            self.meta, seeds_asked=tuple(seeds), fingerprint=fingerprint
        )
        try:
            self._write_meta()
        except OSError as error:
            raise RunError(
                f"can't write to {self.path}: {error.strerror or error}",
                "the seeds that had finished are kept",
            ) from None

    def _check_ours(self) -> None:
        """Refuses to mix tables of two Runs: with `force`, another process may have replaced or
        removed the folder."""
        file = self.path / META
        if self._written and _identity(file) == self._written:
            return
        if not file.is_file():
            raise RunError(
                f"{self.path} is not a Run any more: it was moved or removed meanwhile",
                "run it again, into a folder that stays",
            )
        if read_meta(file).fingerprint != self.meta.fingerprint:
            raise RunError(
                f"{self.path} was replaced by another Run", "give each a folder of its own with -o"
            )

    def _write_meta(self) -> None:
        meta = self.meta
        # Sorted, so that the order in which seeds finish does not matter.
        in_order = {"cpu_s": _in_order(meta.cpu_s), "checksums": _in_order(meta.checksums)}
        # The format comes first. It is this version's, even if the Run had an older one.
        document = {"format": FORMAT, **vars(meta), **in_order} | {"format": FORMAT}
        lines = (f"  {json.dumps(key)}: {self._as_json(each)}" for key, each in document.items())
        write_whole(self.path / META, ("{\n" + ",\n".join(lines) + "\n}\n").encode())
        self._written = _identity(self.path / META)
        self._unnamed = False

    def _as_json(self, value: object) -> str:
        """A value of meta.json."""
        if value is not self.meta.links and value is not self.meta.flows:
            return _indented(value)
        # Cached: there may be thousands of links and flows, which are the same for every seed.
        if id(value) not in self._as_text:
            self._as_text[id(value)] = (value, _indented(value))
        return self._as_text[id(value)][1]


def _indented(value: object) -> str:
    return json.dumps(_plain(value), indent=2, ensure_ascii=False).replace("\n", "\n  ")


def _plain(value: object) -> Any:
    """A part of a Meta as plain values for JSON."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {key: _plain(each) for key, each in vars(value).items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return value


def pack(
    tables: SeedTables,
    links: Sequence[str],
    flows: Sequence[str],
    causes: Sequence[str],
    others: Mapping[str, bytes] = _NO_FILES,
) -> Packed:
    """See `Run.pack`; `links`, `flows` and `causes` are the names for the tables' numbers. `others`:
    further files of the seed's folder."""
    contents = tables.parquet(links, flows, list(causes))
    files = {f"{name}.parquet": content for name, content in contents.items()} | dict(others)
    sums = (f"{hashlib.sha256(each).hexdigest()}  {name}\n" for name, each in files.items())
    listed = "".join(sums).encode()
    return Packed({**files, SUMS: listed}, hashlib.sha256(listed).hexdigest())


def _identity(file: Path) -> tuple[int, ...]:
    """Identity of a file, which changes if the file is replaced; empty: there is no file."""
    try:
        found = file.stat()
    except OSError:
        return ()
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)


def _in_order(by_seed: Mapping[str, T]) -> dict[str, T]:
    return dict(sorted(by_seed.items(), key=lambda one: int(one[0])))


def _with_reasons(known: Sequence[str], seed: int, reasons: Sequence[str]) -> tuple[str, ...]:
    """Adds the reasons of a seed, sorted by seed, whatever the order in which seeds finish."""
    others = [line for line in known if not line.startswith(f"seed {seed}: ")]
    return tuple(sorted([*others, *(f"seed {seed}: {each}" for each in reasons)], key=_seed_of))


def _seed_of(reason: str) -> int:
    return int(reason.partition(":")[0].removeprefix("seed "))
