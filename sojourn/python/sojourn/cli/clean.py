"""`sojourn clean`: removes files that killed runs left behind, and superseded guests."""

from __future__ import annotations

import json

import click

from sojourn.cli import options, work
from sojourn.errors import UserError

SOMETHING_LEFT = 1
"""Exit status: something could not be removed."""


@click.command()
@options.one(options.TalkOptions, "as_json")
def clean(as_json: bool) -> int:
    """Remove files that killed runs left behind, and superseded guests.

    kill -9 leaves temporary folders, and half-written files in the folder of a Run, but no
    processes or namespaces. Files of a running process stay. In a folder that was given with -o,
    only half-written files are removed. Guests that newer ones have superseded, and files of an
    interrupted setup, are removed; guests in use stay. Exit status 1 if something could not be
    removed.
    """
    from sojourn import _core, cleanup
    from sojourn.outputs import stamped

    try:
        done = cleanup.clean()
    except (OSError, RuntimeError, ImportError) as error:
        what = getattr(error, "filename", None) or "the records of running processes"
        raise UserError(
            f"can't read {what}: {getattr(error, 'strerror', None) or error}",
            "sojourn keeps these records in XDG_STATE_HOME, or ~/.local/state: check the permissions to read and write there",
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
        # ASCII, so that names of files that are not valid text print unchanged.
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
    """Prints names of files, which may not be valid text."""
    work.show(words.encode("utf-8", "replace").decode())


def _clean_guests() -> tuple[list[str], int]:
    from sojourn.engine.kernel import guest

    return guest.clean()
