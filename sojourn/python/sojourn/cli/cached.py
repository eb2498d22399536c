"""`sojourn cache`: the store of finished seeds: what it has, empty it, bound it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from sojourn.cli import options, text, work
from sojourn.cli.grouped import CommandGroup

if TYPE_CHECKING:
    from sojourn.records.seed_store import SeedStore


@click.group(cls=CommandGroup)
def cache() -> None:
    """Show, empty or bound the store of finished seeds.

    A seed that was run is not run again: run, compare, advise, agree and reproduce take it from the
    store of this user, if scenario, engine and its build are the same. --fresh makes them run it.
    """


@cache.command("show")
@options.one(options.TalkOptions, "as_json")
def show(as_json: bool) -> None:
    """Say what the store has, and how much it may take."""
    from sojourn.records.seed_store import SeedStore

    _tell(SeedStore(), as_json)


@cache.command("clear")
@options.one(options.TalkOptions, "as_json")
def clear(as_json: bool) -> None:
    """Remove every seed from the store. Runs are left alone."""
    from sojourn.records.seed_store import SeedStore

    store = SeedStore()
    _tell(store, as_json, store.clear())


@cache.command("bound")
@click.argument("size", metavar="SIZE")
@options.one(options.TalkOptions, "as_json")
def bound(size: str, as_json: bool) -> None:
    """Say how much the store may take, from now on: 20GB, say.

    What is too much is removed at once, those first that were not taken for longest. With 0 nothing
    is kept or taken.
    """
    from sojourn.records.seed_store import SeedStore

    store = SeedStore()
    most = 0 if size.strip() == "0" else options.parsed("SIZE", _bound, size)
    _tell(store, as_json, store.set_bound(most))


def _bound(size: str) -> int:
    from sojourn.units import parse_size

    return parse_size(size, example="20 GB")


def _tell(store: SeedStore, as_json: bool, removed: int = 0) -> None:
    found = store.holding()
    if as_json:
        whole = {
            "folder": str(found.folder),
            "entries": found.entries,
            "bytes": found.bytes,
            "bound_bytes": found.bound_bytes,
            "oldest_s": found.oldest_s,
            "unused": found.unused or None,
            "removed": removed,
        }
        work.show(text.as_json(whole, "cache"))
        return
    if removed:
        work.show(f"removed {_seeds(removed)}")
    mega, most = found.bytes / 1e6, found.bound_bytes / 1e6
    work.show(f"{_seeds(found.entries)}, {mega:.4g} MB of {most:.4g} MB, in {found.folder}")
    if found.oldest_s is not None:
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(found.oldest_s))
        work.show(f"not taken for longest: since {day}")
    if found.unused:
        work.show(f"not used: {found.unused}")


def _seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"
