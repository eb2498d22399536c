"""`sojourn clean`: removes what runs that were killed have left, and guests that newer ones have
superseded."""

from __future__ import annotations

import json

import click

from sojourn.cli import options, work
from sojourn.errors import UserError

SOMETHING_LEFT = 1
"""Exit status: not all could be removed."""


@click.command()
@options.one(options.TalkOptions, "as_json")
def clean(as_json: bool) -> int:
    """Remove what killed runs have left, and superseded guests.

    After kill -9 temporary folders stay, and half-written files in the folder of a Run; processes
    and namespaces don't. What belongs to a run that lives is left alone. Of the folder that was
    given with -o only files go which were half written. Of guests those go that newer ones have
    superseded, and what a setup that was stopped has left; those in use stay. Exit status 1 if
    something could not be removed.
    """
    from sojourn import _core, cleanup
    from sojourn.outputs import stamped

    try:
        done = cleanup.clean()
    except (OSError, RuntimeError, ImportError) as error:
        what = getattr(error, "filename", None) or "the notes of runs"
        raise UserError(
            f"can't read {what}: {getattr(error, 'strerror', None) or error}",
            "it is in XDG_STATE_HOME, or ~/.local/state: may you read and write there?",
        ) from None
    guests, freed = _clean_guests() if _core.LINUX else ([], 0)
    if as_json:
        whole = {
            "removed": [str(each) for each in done.removed],
            "left": [{"name": str(each), "why": why} for each, why in done.left],
            "living": list(done.living),
            "guests": guests,
            "freed_bytes": freed,
        }
        # In ASCII: so names of files that are no text come out as they are.
        work.show(json.dumps(stamped("clean", whole), indent=2))
    else:
        for each in done.removed:
            _show(f"removed {each}")
        for name in guests:
            work.show(f"removed the guest {name}")
        if guests:
            work.show(f"{freed / 1e6:.0f} MB freed")
        for one in done.living:
            _show(f"left alone: {one}")
        if not done.removed and not done.left and not guests:
            work.show("nothing to remove")
        for each, why in done.left:
            work.say(f"not removed: {each}: {why}")
    return SOMETHING_LEFT if done.left else 0


def _show(words: str) -> None:
    """Names of files may be of bytes that are no text."""
    work.show(words.encode("utf-8", "replace").decode())


def _clean_guests() -> tuple[list[str], int]:
    from sojourn.engine.kernel import guest

    return guest.clean()
