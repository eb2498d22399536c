"""`sojourn lab`: the simulator in a browser, as one file."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sojourn.cli import work
from sojourn.errors import UserError

if TYPE_CHECKING:
    from sojourn.lab import Shown


@click.command()
@click.argument("given", required=False, metavar="[FILE|LINK]")
@click.argument("qdiscs", nargs=-1, metavar="[QDISC...]")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where the page goes. Without it: to your cache.",
)
@click.option(
    "--open/--no-open",
    "open_it",
    default=None,
    help="Open it in a browser; with --out only where it is asked for.",
)
@click.option("--text", is_flag=True, help="Print the scenario of a LINK, and make no page.")
def lab(
    given: str | None, qdiscs: tuple[str, ...], out: Path | None, open_it: bool | None, text: bool
) -> None:
    """The laboratory as a page: turn something and look.

    Writes one file with the simulator in it, which opens from a disk and fetches nothing. FILE is a
    scenario, or the name of an example; each QDISC stands beside the others. LINK is an address that
    the page gave: it holds a whole scenario.

    \b
      sojourn lab
      sojourn lab home-uplink pfifo fq_codel cake
      sojourn lab 'lab.html#1=...' --text > scenario.toml
    """
    state = _state(given, qdiscs)
    if text:
        if state is None:
            raise UserError("--text needs a link", "copy the address of the page")
        sys.stdout.write(state.text)
        return
    from sojourn import lab as page
    from sojourn.places import cache

    if out is None:
        out = cache() / "lab" / page.FILE
        out.parent.mkdir(parents=True, exist_ok=True)
        open_it = open_it is not False
    written = page.write(out, state)
    work.say(f"wrote {written}")
    if open_it and not webbrowser.open(written.resolve().as_uri()):
        work.say("no browser could be started: open that file in one")


def _state(given: str | None, qdiscs: tuple[str, ...]) -> Shown | None:
    from sojourn.lab.permalink import MOST_QDISCS, Shown, is_link, read_link
    from sojourn.scenario import Qdisc, examples, load

    if given is None:
        return None
    for words in qdiscs:
        Qdisc.parse(words)
    if is_link(given):
        state = read_link(given)
        return Shown(state.text, qdiscs or state.qdiscs, state.link, state.seeds)
    if len(qdiscs) > MOST_QDISCS:
        raise UserError(
            f"{len(qdiscs)} disciplines: a page shows {MOST_QDISCS} side by side",
            "sojourn compare takes any number",
        )
    # What is wrong with it is said here, where its file can be mended.
    load(Path(given))
    return Shown(examples.find(Path(given)).read_text(encoding="utf-8"), qdiscs)
