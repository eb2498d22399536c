"""Reads a paper's published.toml: the content of the source as data.

    [paper]          title, source, about, story (the quantity of its bars in the overview), beside (the heading of
                     the values beside ours, if it is not "published")
    [paper.cite]     its entry in papers.bib: kind, key, and BibTeX's fields
    [words]          texts that other texts include as {word}
    [tolerances]     by name: share (of the number) or absolute (in its unit), because
    [quoted]         values of the source that are not judged, for sentences and figures
    [[numbers]]      id, where, what, unit, published, role, relation, tolerance, variant ("STUDY/VARIANT"),
                     measure or whole, against, reason, engines (why a kernel's value
                     differs from the simulator's)
    [[claims]]       id, where, says, check, asks, partly, role, pictures, must_hold
    [[pictures]]     id, source (the figure that is redrawn), title, caption, draw
    [[readings]]     parameter, source, chosen, why, under (names in the matrix), others, searched
    [refused]        by the name of a reading in the matrix: why it is not chosen, though it may fit more
    [[grids]]        title, rows, columns: a table in the source's layout. Columns map a number's id, with {row} for the
                     row, to the column's name. names: names of the rows, if they differ from
                     `rows`; instead: another number for an id, "" for an empty cell

An entry of `numbers` with `rows`, `columns` or both is a whole table: it makes a number for each
row and column. The keys of a row and of a column replace those of the entry. A list in a row has
one value for each column; "" keeps the column's value (`against` is a list already, so there it is
a list of lists). A key that is not a field is a word: texts include it as {word}. A published value
and a claim have a role: `role = "predicted"`, or another `paper.Role` with its reason:
`role.fitted = "the limit was chosen by it"`. In lists, `role` and `role_because` are separate keys.
`asks` and `partly` of a claim have a threshold for each quantity: "> 10", "0.9 .. 1.1", or "as ID",
the tolerance of a number. A function is given by name: `measure = "delay_ms"`, or
`{ by = "narrower", of = ["RED"] }` with its arguments except the evidence. The id is the name of a
`check` or `draw` that is not given, with _ for other characters than letters and digits. `folder`
looks functions up.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from sojourn_papers.paper import Claim, Number, Picture, Reading, Role, Target, Tolerance

Entry = dict[str, Any]

NUMBER_FIELDS = frozenset(("study", *(one.name for one in fields(Number))))
CLAIM_FIELDS = frozenset(one.name for one in fields(Claim))
PICTURE_FIELDS = frozenset(one.name for one in fields(Picture))
GRID_FIELDS = frozenset(("title", "rows", "columns"))
GRID_OPTIONS = frozenset(("names", "instead"))
READING_FIELDS = frozenset(one.name for one in fields(Reading))


class PublishedError(ValueError):
    """A published.toml is incomplete or wrong."""


@dataclass(frozen=True)
class Published:
    """The content of the file, with tables expanded and words filled in. Functions are still
    names."""

    paper: Entry
    numbers: Sequence[Entry]
    claims: Sequence[Entry]
    pictures: Sequence[Entry]
    readings: Sequence[Entry]
    grids: Sequence[Entry]
    refused: Mapping[str, str]
    quoted: Entry

    @property
    def values(self) -> Mapping[str, Any]:
        """The published value of each number that has one, by id, and the quoted values, by
        name."""
        stated = {one["id"]: one["published"] for one in self.numbers if "published" in one}
        return {**self.quoted, **stated}

    @property
    def targets(self) -> Mapping[str, Target]:
        """The stated value or bound of each number, by id."""
        return {
            one["id"]: Target(one["published"], one.get("tolerance"), one.get("relation", "="))
            for one in self.numbers
            if "published" in one
        }


@cache
def read(path: Path) -> Published:
    """The file at `path`.

    Raises:
        PublishedError: a field is missing or unknown, a word is unused or undefined, or an id
        occurs
            twice.
    """
    raw = tomllib.loads(path.read_text(encoding="utf-8"))
    words = raw.get("words", {})
    tolerances = raw.get("tolerances", {})

    def entries(kind: str, fields: frozenset[str], key: str) -> list[Entry]:
        found = [
            one
            for each in raw.get(kind, ())
            for one in _entries(each, fields, words, f"{path}: {kind}")
        ]
        names = [one.get(key) for one in found]
        if len(set(names)) < len(names):
            raise PublishedError(f"{path}: {kind}: {max(names, key=names.count)!r} occurs twice")
        return found

    numbers = entries("numbers", NUMBER_FIELDS, "id")
    for one in numbers:
        if "tolerance" in one:
            one["tolerance"] = _tolerance(one["tolerance"], tolerances, f"{path}: {one['id']}")
        if "published" in one or "role" in one:
            _check_role(one, path)
    claims = entries("claims", CLAIM_FIELDS, "id")
    for one in claims:
        if not one.get("asks"):
            raise PublishedError(f"{path}: {one['id']}: a claim needs thresholds: asks")
        _check_role(one, path, "a claim")
    return Published(
        raw["paper"],
        numbers,
        claims,
        entries("pictures", PICTURE_FIELDS, "id"),
        entries("readings", READING_FIELDS, "parameter"),
        _grids(raw.get("grids", ()), {one["id"] for one in numbers}, path),
        _refused(raw.get("refused", {}), words, f"{path}: refused"),
        raw.get("quoted", {}),
    )


def _grids(raw: Iterable[Entry], numbers: set[str], path: Path) -> list[Entry]:
    """The tables in the source's layout. Every cell must be a known number."""
    grids = []
    for one in raw:
        if set(one) - GRID_OPTIONS != GRID_FIELDS:
            raise PublishedError(
                f"{path}: a grid has {', '.join(sorted(GRID_FIELDS))}, not {', '.join(sorted(one))}"
            )
        names: Sequence[str] = one.get("names") or one["rows"]
        instead: Entry = one.get("instead", {})
        if len(names) != len(one["rows"]):
            raise PublishedError(f"{path}: grid {one['title']!r}: names needs a name for each row")
        asked = {row: [column.format(row=row) for column in one["columns"]] for row in one["rows"]}
        if idle := set(instead) - {id_ for ids in asked.values() for id_ in ids}:
            raise PublishedError(
                f"{path}: grid {one['title']!r}: a key of instead is the id of a cell: no cell is {', '.join(idle)}"
            )
        rows = {
            name: tuple(instead.get(id_, id_) for id_ in ids)
            for name, ids in zip(names, asked.values(), strict=True)
        }
        for id_ in (id_ for ids in rows.values() for id_ in ids):
            if id_ and id_ not in numbers:
                raise PublishedError(f"{path}: grid {one['title']!r}: there is no number {id_!r}")
        grids.append({"title": one["title"], "head": tuple(one["columns"].values()), "rows": rows})
    return grids


def _tolerance(given: str | Entry, named: Mapping[str, Entry], place: str) -> Tolerance:
    if isinstance(given, str) and given not in named:
        raise PublishedError(f"{place}: there is no tolerance {given!r}")
    match named[given] if isinstance(given, str) else given:
        case {"share": size, "because": str(because)}:
            return Tolerance(size, because)
        case {"absolute": size, "because": str(because)}:
            return Tolerance(size, because, relative=False)
        case other:
            raise PublishedError(
                f"{place}: a tolerance has share or absolute, and because: {other}"
            )


def _check_role(entry: Entry, path: Path, what: str = "a published value") -> None:
    """Refuses an entry whose role is missing, unknown, or without its reason."""
    place, role = f"{path}: {entry['id']}", entry.get("role")
    if what != "a claim" and "published" not in entry:
        raise PublishedError(f"{place}: a number without a published value has no role: {role!r}")
    if role not in list(Role):
        raise PublishedError(
            f"{place}: {what} needs a role, one of {', '.join(Role)}; not {role!r}"
        )
    if ("role_because" in entry) == (role == Role.PREDICTED):
        raise PublishedError(
            f"{place}: role_because, the reason of {role!r}, is required for all roles but "
            "predicted, which has none"
        )


def beside(file: str) -> Mapping[str, Any]:
    """The published values of the paper whose folder `file`, a module's `__file__`, lies in."""
    return read(Path(file).with_name("published.toml")).values


def targets(file: str) -> Mapping[str, Target]:
    """The stated values and bounds of the paper whose folder `file` lies in."""
    return read(Path(file).with_name("published.toml")).targets


def _entries(raw: Entry, fields: frozenset[str], words: Entry, place: str) -> Iterator[Entry]:
    """The entries of one table of the file, expanded by its rows and columns."""
    shared = {key: value for key, value in raw.items() if key not in ("rows", "columns")}
    rows, columns = raw.get("rows", [{}]), raw.get("columns", [{}])
    idle: set[str] = set()
    used: set[str] = set()
    for row in rows:
        for at, column in enumerate(columns):
            entry = _with_role({**shared, **column, **_cell(row, at, len(columns), place)})
            known = _Known({**words, **entry})
            try:
                yield {key: _filled(value, known) for key, value in entry.items() if key in fields}
            except (KeyError, ValueError, IndexError) as error:
                raise PublishedError(f"{place}: {entry}: {error}") from None
            idle |= set(entry) - fields
            used |= known.used
    if idle - used:
        raise PublishedError(
            f"{place}: {shared}: {', '.join(sorted(idle - used))} is neither a field nor used in a text"
        )


def _with_role(entry: Entry) -> Entry:
    """The entry with `role.fitted = "why"` written as `role` and `role_because`."""
    match entry.get("role"):
        case dict() as role if len(role) == 1:
            [(name, because)] = role.items()
            return {**entry, "role": name, "role_because": because}
    return entry


def _refused(whys: Mapping[str, str], words: Entry, place: str) -> Mapping[str, str]:
    try:
        return {reading: why.format_map(words) for reading, why in whys.items()}
    except (KeyError, ValueError, AttributeError) as error:
        raise PublishedError(f"{place}: {error}") from None


def _cell(row: Entry, at: int, columns: int, place: str) -> Entry:
    found = {}
    for key, value in row.items():
        if not isinstance(value, list) or (
            key == "against" and not any(isinstance(one, list) for one in value)
        ):
            found[key] = value
            continue
        if len(value) != columns:
            raise PublishedError(
                f"{place}: {key} = {value} needs a value for each of {columns} columns"
            )
        if value[at] != "":
            found[key] = value[at]
    return found


def _filled(value: Any, known: _Known) -> Any:
    """The value with the words in its texts replaced."""
    match value:
        case str():
            return value.format_map(known)
        case list():
            return [_filled(one, known) for one in value]
        case {"by": _}:
            return value | ({"of": _filled(value["of"], known)} if "of" in value else {})
        case _:
            return value


class _Known(dict[str, Any]):
    """The words of an entry, and the set of those that were used."""

    def __init__(self, words: Entry) -> None:
        super().__init__(words)
        self.used: set[str] = set()

    def __getitem__(self, word: str) -> Any:
        self.used.add(word)
        return super().__getitem__(word)
