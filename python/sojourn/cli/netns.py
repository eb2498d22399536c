"""`sojourn netns`: what runs that were killed have left behind, and its removal."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from sojourn.cli import work
from sojourn.cli.grouped import Trade
from sojourn.errors import UserError

if TYPE_CHECKING:
    from sojourn.remains import Entry, Thing, Unreadable

SOMETHING_LEFT = 1
"""Exit status: not all could be removed."""


@click.group(cls=Trade)
def netns() -> None:
    """What runs that were killed have left behind, those of the other engines too.

    Whatever ends a run on this host's own kernel (-e netns), its namespaces and devices are gone with it. After kill -9 temporary
    folders stay, half-written files in the folder of a Run, and guests at work.
    """


@netns.command("status")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def status(as_json: bool) -> None:
    """Say which processes of sojourn live here, and what those that were killed have left. Changes nothing."""
    from sojourn import remains

    with _told():
        found, unreadable = remains.entries()
    living = [entry for entry in found if entry.living]
    dead = [entry for entry in found if not entry.living]
    if as_json:
        _show_json(living=_plain(living), killed=_plain(dead), unreadable=_files(unreadable))
        return
    for entry in living:
        _show(_described(entry, "lives"))
    for entry in dead:
        _show(_described(entry, "was killed"))
    _say_unreadable(unreadable)
    if not found:
        work.show("nothing runs, and nothing is left")


@netns.command("clean")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def clean(as_json: bool) -> int:
    """Remove what runs that were killed have left behind; end guests of theirs that are still at work.

    What belongs to a run that lives is left alone, and so is the folder that was given with -o: of that only files go
    which were half written. Exit status 1 if something could not be removed.
    """
    from sojourn import remains

    with _told():
        done = remains.clean()
    if as_json:
        _show_json(
            removed=[_thing(each) for each in done.removed],
            left=[{**_thing(each), "why": why} for each, why in done.left],
            living=_plain(done.living),
            unreadable=_files(done.unreadable),
        )
    else:
        for each in done.removed:
            _show(f"{'ended' if each.kind == 'program' else 'removed'} {each}")
        for entry in done.living:
            _show(f"left alone: {_described(entry, 'lives')}")
        if not done.removed and not done.left:
            work.show("nothing to remove")
        for each, why in done.left:
            work.say(f"{'not ended' if each.kind == 'program' else 'not removed'}: {each}: {why}")
        _say_unreadable(done.unreadable)
    return SOMETHING_LEFT if done.left or done.unreadable else 0


def _described(entry: Entry, how: str) -> str:
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.began_s))
    head = f"process {entry.pid} of {began} {how}: {entry.command}"
    return "\n".join([head, *(f"  {thing}" for thing in entry.things)])


def _show(words: str) -> None:
    """Names of files may be of bytes that are no text."""
    work.show(words.encode("utf-8", "replace").decode())


def _say_unreadable(files: Sequence[Unreadable]) -> None:
    for each in files:
        work.say(f"skipped {each.file}: {each.why}; remove it once nothing of that time is left")


def _plain(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    return [
        {
            "pid": entry.pid,
            "command": entry.command,
            "began_s": entry.began_s,
            "things": [_thing(each) for each in entry.things],
        }
        for entry in entries
    ]


def _thing(thing: Thing) -> dict[str, Any]:
    return {key: value for key, value in asdict(thing).items() if key != "mark"}


def _files(unreadable: Sequence[Unreadable]) -> list[dict[str, str]]:
    return [{"file": str(each.file), "why": each.why} for each in unreadable]


def _show_json(**whole: object) -> None:
    """In ASCII: so names of files that are no text come out as they are."""
    work.show(json.dumps(whole, indent=2, allow_nan=False))


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """What speaks against reading the entries, in words."""

    try:
        yield
    except (OSError, RuntimeError, ImportError) as error:
        what = getattr(error, "filename", None) or "the entries of runs"
        why = getattr(error, "strerror", None) or error
        raise UserError(
            f"can't read {what}: {why}",
            "it is in XDG_STATE_HOME, or ~/.local/state: may you read and write there?",
        ) from None
