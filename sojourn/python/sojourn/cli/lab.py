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
    help="The page. [default: in the user's cache]",
)
@click.option(
    "--open/--no-open",
    "open_it",
    default=None,
    help="Open the page in a browser. [default: only without --out]",
)
@click.option("--text", is_flag=True, help="Print the scenario of a LINK, and write no page.")
def lab(
    given: str | None, qdiscs: tuple[str, ...], out: Path | None, open_it: bool | None, text: bool
) -> None:
    """Write the laboratory as a page: turn a knob and watch the queue.

    Writes one file that contains the simulator. It opens from a disk and fetches nothing. FILE is a
    scenario, or the name of an example; the page shows each QDISC beside the others. LINK is an
    address of the page: it contains a whole scenario.

    \b
      sojourn lab
      sojourn lab home-uplink pfifo fq_codel cake
      sojourn lab 'lab.html#1=...' --text > scenario.toml
    """
    state = _state(given, qdiscs)
    if text:
        if state is None:
            raise UserError(
                "--text needs a LINK", "give the address of a lab page, which contains a scenario"
            )
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
        work.say("no browser could be started: open the file in one")


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
            "sojourn compare takes any number of disciplines",
        )
    # An error in the scenario is reported here, with the file to correct.
    found = load(Path(given))
    if work.has_programs(found.document()):
        raise UserError(
            f"{given} runs programs of this host, and the page has the simulator, which runs none",
            f"run it in the kernel's guest: sojourn run {given} -e kernel --allow-programs",
        )
    return Shown(examples.find(Path(given)).read_text(encoding="utf-8"), qdiscs)
