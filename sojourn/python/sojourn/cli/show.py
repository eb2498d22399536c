"""`sojourn show`: an instant of a Run, as `tc -s qdisc` and `ss -ti` would print it."""

from __future__ import annotations

from pathlib import Path

import click

from sojourn.cli import options, text, work
from sojourn.errors import UserError


def _time(written: str) -> int:
    from sojourn.units import parse_duration

    return parse_duration(written, what="an instant", example="12.5 s", zero=False)


@click.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="RUN")
@click.option(
    "--at",
    required=True,
    metavar="TIME",
    callback=options.placed(_time),
    help="The instant, from the beginning of the run: 12.5s.",
)
@options.one(options.VariationOptions, "seed")
@options.block(options.ProgramOptions)
@options.block(options.TalkOptions)
def show(
    path: Path,
    at: int,
    seed: int | None,
    program: options.ProgramOptions,
    talk: options.TalkOptions,
) -> None:
    """Show the queues and the senders of a Run at one instant.

    The engine of the Run runs the first seed, or `--seed`, again up to the instant. Each queue is
    shown in the form of `tc -s qdisc show`, each TCP flow in the form of `ss -ti`. Counters include
    the warm-up.

    \b
    sojourn show runs/home-uplink --at 12.5s
    """
    from sojourn.engine.instant import as_ss, as_tc, instant
    from sojourn.engine.verify import scenario_of
    from sojourn.records import Run

    run = Run.open(path)
    if not run.seeds:
        raise UserError(f"{path}: no seed has finished", "run it again")
    work.permit([scenario_of(run)], run.meta.engine, program.allowed)
    found = instant(run, at, seed)
    if talk.as_json:
        work.show(text.as_json(found.to_dict(), "show"))
        return
    work.show("\n".join(as_tc(found)))
    if lines := list(as_ss(found)):
        work.show("\n" + "\n".join(lines))
