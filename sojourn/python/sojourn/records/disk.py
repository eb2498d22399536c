"""The files of a Run: checked when read, written completely or not at all."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn import cleanup, sanitize
from sojourn import meta as metas
from sojourn.errors import UserError
from sojourn.meta import FORMAT, Meta
from sojourn.records.schema import TABLES, dtype

if TYPE_CHECKING:
    import polars as pl

META = "meta.json"
SCENARIO = "scenario.toml"
SUMS = "SHA256SUMS"
MOST_SUMS_BYTES = 1 << 20
INDEX = "runs.json"
_LONG = 5000
"""A longer column is reduced by `unique` before its names are collected."""


class RunError(UserError):
    """A Run can't be read, written or used."""


# -------------------------------------------------------------------------------- what is written


FEW_ROWS = 300_000
FEW_BYTES = 2 << 20
"""Limits for reading a table without asking first for its number of rows, which takes half as long
as reading. A table of fewer bytes is read at once, up to this number of rows. A table that sojourn
wrote hardly ever has more."""
MOST_ROWS_PER_BYTE = 4
"""Limit for a Parquet table of sojourn's: each row of a time line takes more than a byte, since its
times differ."""
ROW_BYTES_READ = 200
"""Estimate of a row's memory: up to thirty columns of 8 bytes."""


def write_index(folder: Path, names: Iterable[str], sweep: Mapping[str, Any] | None = None) -> None:
    """Writes the order of the Runs in a folder of Runs, and their `[sweep]`."""
    index: dict[str, Any] = {"runs": list(names)}
    if sweep:
        index["sweep"] = dict(sweep)
    text = json.dumps(index, indent=2, ensure_ascii=False)
    try:
        write_whole(folder / INDEX, (text + "\n").encode())
    except OSError as error:
        raise RunError(
            f"can't write to {folder}: {error.strerror or error}", "choose another folder"
        ) from None


MEASUREMENT = "# A measurement of a live link: what was asked. `sojourn run` can't run it again."
"""The first line of a measurement's scenario.toml, which is not a scenario."""


def check_vacant(folder: Path, scenario: str, *, force: bool = False) -> None:
    """Refuses a folder that a new Run would overwrite: any folder that is not empty. There are two
    exceptions. One is a Run, with `force`. The other is a folder that a killed process left before
    it wrote meta.json. Its files must be the beginning of a Run of this same `scenario`, or of a
    measurement."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file, not a folder", "choose another folder with -o")
    try:
        if not folder.is_dir():
            return
        # An incomplete meta.json (`cleanup.beside`) is ignored here: the next process that writes
        # removes it.
        all_names = {file.name for file in folder.iterdir()}
        names = {name for name in all_names if not name.startswith(f".{META}.")}
        if not names:
            return
        if names == {SCENARIO}:
            left = content_of(folder / SCENARIO)
            if scenario.encode().startswith(left) or left.startswith(MEASUREMENT.encode()):
                return
    except OSError as error:
        raise RunError(
            f"can't read {folder}: {error.strerror or error}", "choose another folder with -o"
        ) from None
    if not (folder / META).is_file():
        raise RunError(f"{folder} holds files that are not a Run", "choose another folder with -o")
    read_meta(folder / META)
    if not force:
        raise RunError(
            f"{folder} already holds a Run",
            "choose another folder with -o, or replace it with --force",
        )


@contextlib.contextmanager
def reserved(folder: Path, *, numbered: bool) -> Iterator[Path]:
    """Makes and locks the folder for a later Run at once, so that no other process takes it. The
    kernel releases the lock however this process ends. An empty folder is removed at the end.

    `numbered`: takes the first of folder, folder-2, folder-3, ... that does not exist.

    Raises:
        RunError: it can't be made, or another process has reserved it.
    """
    new_parents = [each for each in folder.parents if not each.exists()]
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        candidate, new = folder, _made(folder)
        number = 1
        while numbered and not new:
            number += 1
            candidate = folder.with_name(f"{folder.name}-{number}")
            new = _made(candidate)
        lock = os.open(candidate, os.O_RDONLY)
    except OSError as error:
        raise RunError(
            f"can't make {folder}: {error.strerror or error}", "choose another folder with -o"
        ) from None
    try:
        _lock(lock, candidate)
        yield candidate
    finally:
        os.close(lock)
        for each in ([candidate] if new else []) + new_parents:
            # A folder that is not empty stays.
            with contextlib.suppress(OSError):
                each.rmdir()


def _lock(descriptor: int, folder: Path) -> None:
    """Locks an open folder for this process alone, if the file system has locks."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RunError(
            f"another process is measuring into {folder}",
            "choose another folder with -o, or wait until that one has ended",
        ) from None
    except OSError:
        # There are no locks: the later of two processes is refused when it writes.
        return


def _made(folder: Path) -> bool:
    """Makes a folder; False: its name is taken."""
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    return True


def free_memory() -> int | None:
    """Memory that this process can still get, bytes; None if the system does not report it."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return None
    found = re.search(r"^MemAvailable: *(\d+) kB$", text, re.MULTILINE)
    free = None if found is None else int(found[1]) * 1024
    try:
        import resource
    except ImportError:
        return free
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return limit if limit != resource.RLIM_INFINITY and (free is None or limit < free) else free


def check_room(folder: Path, needed_bytes: int) -> None:
    """Refuses a folder that can't be written to, or whose disk has less than `needed_bytes`
    free."""
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


def write_whole(file: Path, content: bytes) -> None:
    """Writes or replaces a file in one step, completely or not at all. Raises OSError."""
    with cleanup.beside(file) as temporary:
        temporary.write_bytes(content)
        os.replace(temporary, file)


def write_named(file: Path, content: str | bytes) -> Path:
    """Writes a file that a user has named, completely or not at all.

    Raises:
        UserError: the disk is full, or permission is denied.
    """
    try:
        write_whole(file, content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise UserError(
            f"can't write {file}: {error.strerror or error}",
            "make room, or choose another place; the source is kept",
        ) from None
    return file


def make(file: Path, content: bytes) -> None:
    """Writes a file that must not exist: if two Runs start at once in one folder, one is
    refused."""
    with file.open("xb") as stream:
        try:
            stream.write(content)
            stream.flush()
        except OSError:
            file.unlink()
            raise


def remove_run(folder: Path) -> None:
    # Removes only a Run's files: other files in the folder stay.
    for seed in folder.glob("seed-*"):
        shutil.rmtree(seed)
    for name in (META, SCENARIO):
        (folder / name).unlink(missing_ok=True)


# ----------------------------------------------------------------------------------- what is read


def read_meta(file: Path) -> Meta:
    try:
        return metas.read(content_of(file, sanitize.MOST_JSON_BYTES))
    except metas.NewerError as newer:
        raise RunError(
            f"{file} was written by a newer sojourn ({newer})", "update sojourn"
        ) from None
    except ValueError as error:
        raise RunError(
            f"{file} is damaged or not a Run's: {error}", "run it again into a new folder"
        ) from None


def content_of(file: Path, most: int | None = None) -> bytes:
    """The content of a file of a Run. `most`: limit in bytes; None: the free memory."""
    try:
        if file.is_file():
            size, room = file.stat().st_size, free_memory() if most is None else most
            if room is not None and size > room:
                raise RunError(
                    f"{file} has {size} bytes, but at most {room} can be read",
                    "it is not a file of a Run that this sojourn can read",
                )
            return file.read_bytes()
    except OSError as error:
        raise RunError(
            f"can't read {file}: {error.strerror or error}",
            "check its permissions, or run it again",
        ) from None
    raise RunError(f"{file} is missing", "the Run is damaged: run it again")


def read_table(file: Path, content: bytes, meta: Meta) -> pl.DataFrame:
    """Reads a table of this Run and checks it: its columns against `TABLES`, its names against the
    Run's.

    A column that was added after the Run was made is null. Older formats may have numbers of
    another type.
    """
    import polars as pl

    try:
        # From memory: polars does not accept a file name that is not UTF-8.
        table = None
        if len(content) < FEW_BYTES:
            table = pl.read_parquet(io.BytesIO(content), n_rows=FEW_ROWS + 1)
        if table is None or table.height > FEW_ROWS:
            rows = pl.scan_parquet(io.BytesIO(content)).select(pl.len()).collect().item()
            _check_rows(file, rows, len(content))
            table = pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise damaged(file, sanitize.plain(str(error))) from None
    if list(table.schema.items()) != _shape(file.stem):
        table = _brought_up(file, table, old=meta.format < FORMAT)
    if problem := _strangers(file.stem, table, meta):
        raise damaged(file, problem)
    return table


def _check_rows(file: Path, rows: int, size: int) -> None:
    """Refuses a table with far more rows than its bytes justify, or than memory allows: a few bytes
    of Parquet may stand for any number of equal rows."""
    takes = rows * ROW_BYTES_READ
    if rows > MOST_ROWS_PER_BYTE * size:
        raise damaged(file, f"{rows} rows in {size} bytes are more than sojourn writes")
    if (free := free_memory()) is not None and takes > free:
        raise RunError(
            f"{file} has {rows} rows, which take about {takes / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free",
            "read it on a larger machine",
        )


@cache
def _shape(name: str) -> list[tuple[str, Any]]:
    """The columns of a table with their types, in their order."""
    return [(column.name, dtype(column)) for column in TABLES[name].columns]


def _brought_up(file: Path, table: pl.DataFrame, *, old: bool) -> pl.DataFrame:
    """Completes an older table to its declared columns."""
    import polars as pl

    columns = TABLES[file.stem].columns
    found = dict(table.schema)
    unknown = sorted(set(found) - {column.name for column in columns})
    missing = [column for column in columns if column.name not in found]
    # Columns that were added to an existing format may be null.
    never_lacked = any(column.null is None for column in missing) and not old
    if unknown or never_lacked or len(missing) == len(columns):
        raise damaged(file, f"it is not a table {file.stem!r}")
    for column in columns:
        has = found.get(column.name, dtype(column))
        if has != dtype(column) and not (
            old and has.is_numeric() and dtype(column) is not pl.String
        ):
            raise damaged(file, f"its column {column.name} holds {has}")
    try:
        return table.select(
            pl.col(column.name).cast(dtype(column))
            if column.name in found
            else pl.lit(None, dtype=dtype(column)).alias(column.name)
            for column in columns
        )
    except pl.exceptions.PolarsError as error:
        raise damaged(file, sanitize.plain(str(error))) from None


def _strangers(name: str, table: pl.DataFrame, meta: Meta) -> str | None:
    """Why a table belongs to another Run; None: it does not."""
    known = {"link": [link.name for link in meta.links], "flow": [flow.name for flow in meta.flows]}
    for column in TABLES[name].columns:
        whose = known.get(column.kind)
        if whose is not None and not _names_in(table[column.name]) <= set(whose):
            return f"it has a {column.name} that the Run does not have"
    # A later repeat of a measurement may have added links and flows.
    key = name.removesuffix("s")
    if (
        name in ("links", "flows")
        and not meta.phases
        and sorted(table[key].to_list()) != sorted(known[key])
    ):
        return f"it does not have one row for each {key} of the Run"
    if name == "engine" and table.height != 1:
        return "it does not have exactly one row"
    return None


def _names_in(column: pl.Series) -> set[str]:
    # On a short column, the call of `unique` costs more than collecting all values.
    return set((column.unique() if len(column) > _LONG else column).to_list())


def damaged(file: Path, why: str) -> RunError:
    return RunError(f"{file} can't be read: {why}", "the Run is damaged: run it again")
