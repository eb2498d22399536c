"""`sojourn cache`: shows, empties and limits the store of finished seeds."""

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
    """Show, empty or limit the store of finished seeds.

    A finished seed is not run again: run, compare, advise, agree and reproduce take it from this
    user's store, if scenario, engine and engine build are the same. With --fresh they run it.
    """


@cache.command("show")
@options.one(options.TalkOptions, "as_json")
def show(as_json: bool) -> None:
    """Show the content and the limit of the store."""
    from sojourn.records.seed_store import SeedStore

    _print(SeedStore(), as_json)


@cache.command("clear")
@options.one(options.TalkOptions, "as_json")
def clear(as_json: bool) -> None:
    """Remove every seed from the store. Runs are left alone."""
    from sojourn.records.seed_store import SeedStore

    store = SeedStore()
    _print(store, as_json, store.clear())


@cache.command("bound")
@click.argument("size", metavar="SIZE")
@options.one(options.TalkOptions, "as_json")
def bound(size: str, as_json: bool) -> None:
    """Limit the size of the store, for example to 20GB.

    If the store is larger, the least recently used seeds are removed at once. With 0 the store is
    not used.
    """
    from sojourn.records.seed_store import SeedStore

    store = SeedStore()
    most = 0 if size.strip() == "0" else options.parsed("SIZE", _bound, size)
    _print(store, as_json, store.set_bound(most))


def _bound(size: str) -> int:
    from sojourn.units import parse_size

    return parse_size(size, example="20 GB")


def _print(store: SeedStore, as_json: bool, removed: int = 0) -> None:
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
        work.show(f"least recently used seed: {day}")
    if found.unused:
        work.show(f"not used: {found.unused}")


def _seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"
