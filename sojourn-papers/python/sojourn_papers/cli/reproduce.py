"""`sojourn reproduce`: reruns papers, and prints the published numbers beside ours with
verdicts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sojourn.cli import options, text, work
from sojourn.digits import counted

if TYPE_CHECKING:
    from sojourn.engine import Progress
    from sojourn_papers import Paper, Reproduction
    from sojourn_papers.page import Pages
    from sojourn_papers.reproduction import ReproductionUnfinishedError, Stopped

FAILED = 1
INTERRUPTED = 130


@click.command()
@click.argument("names", nargs=-1, metavar="[PAPER]...")
@click.option(
    "--quick",
    is_flag=True,
    help="Shorter runs and fewer seeds: all papers take some three minutes of CPU time.",
)
@options.block(
    options.ExecutionOptions,
    engine="What runs them; a kernel runs bbr-shares, home-upload, queue-anatomy and video-testbed, in part.",
)
@options.block(options.ClusterOptions)
@options.block(options.StoreOptions)
@options.block(
    options.OutputOptions,
    out="Folder of pages, figures and Runs. [default: runs/reproduce; with --json nothing is kept]",
)
@click.option(
    "--redraw", is_flag=True, help="Judge and draw the Runs in DIR again, without running anything."
)
@click.option(
    "--search",
    is_flag=True,
    help="Make the stored search for PAPER's readings again, as CSV on standard output. It takes minutes.",
)
@options.block(options.TalkOptions)
def reproduce(
    names: tuple[str, ...],
    quick: bool,
    execution: options.ExecutionOptions,
    cluster: options.ClusterOptions,
    store: options.StoreOptions,
    output: options.OutputOptions,
    redraw: bool,
    search: bool,
    talk: options.TalkOptions,
) -> None:
    """Rerun papers: their numbers, figures and claims beside ours.

    Each number and claim gets a verdict. `sojourn list papers` lists the papers; the default is all
    of them. A paper's page is written when the paper ends. The same command with the same -o
    continues a stopped one. Exit status 1: a claim that must hold does not.
    """
    import sojourn_papers as papers

    where = cluster.wanted(execution)
    chosen = [papers.load(name) for name in _known(names, papers.NAMES)]
    from sojourn_papers import page
    from sojourn_papers.reproduction import ReproductionUnfinishedError, Stopped

    if search:
        _search(chosen)
        return
    if redraw and output.out is None:
        raise click.BadParameter("it needs -o, the folder of the Runs", param_hint="--redraw")
    folder = output.out
    if folder is None and not talk.as_json:
        folder = work.unused(Path("runs") / "reproduce")
    if folder is not None:
        page.check(chosen, folder)
    pages = None if folder is None else page.Pages(folder, chosen)
    stops: list[ReproductionUnfinishedError] = []
    all_run = redraw
    try:
        try:
            with work.progress(talk.quiet or redraw) as show:

                def progress(p: Progress) -> None:
                    nonlocal all_run
                    all_run = p.finished == p.runs
                    show(p)

                found: Sequence[Reproduction] = papers.reproduce(
                    chosen,
                    quick=quick,
                    engine=execution.engine,
                    out=folder,
                    jobs=execution.jobs,
                    cluster=where,
                    force=output.force,
                    fresh=store.fresh,
                    redraw=redraw,
                    progress=progress,
                    finished=None if pages is None else pages.add,
                )
        except ReproductionUnfinishedError as unfinished:
            work.finished(unfinished)
            found, stops = unfinished.finished, [unfinished]
        _show(found, pages, execution.engine, talk, stops)
    except Stopped as stop:
        if stop.finished:
            _show(stop.finished, pages, execution.engine, talk)
        _say_what_is_kept(stop, folder)
        raise click.exceptions.Exit(INTERRUPTED) from None
    except KeyboardInterrupt:
        # Ctrl-C stopped the judging and drawing, or the work before the first run.
        again = " ".join(("--quick",) * quick + ("--redraw", "-o", str(folder)))
        kept = (
            f": the Runs are kept; to continue: sojourn reproduce {again}"
            if folder and all_run
            else ""
        )
        work.say(f"\ninterrupted{kept or ('' if all_run else ': nothing had run yet')}")
        raise click.exceptions.Exit(INTERRUPTED) from None
    untrusted = [work.invalid(one.invalid) for one in found]
    broken = [row for one in found for row in one.broken]
    for row in broken:
        work.say(f"this claim must hold but does not: {row.claim.says} ({row.found})")
    failed = work.failed(stops)
    for each in stops:
        kept = "" if folder is None else f"; its finished runs are kept in {folder}/PAPER/runs"
        work.say(f"not judged, because some of their runs failed: {', '.join(each.left_out)}{kept}")
    if broken or failed or any(untrusted):
        raise click.exceptions.Exit(FAILED)


def _search(chosen: Sequence[Paper]) -> None:
    """Repeats a search and prints its file on standard output."""
    import sojourn_papers as papers
    from sojourn_papers import searched

    if len(chosen) != 1 or not searched.has(chosen[0]):
        having = [name for name in papers.NAMES if searched.has(papers.load(name))]
        problem = f"name one paper with a stored search: {' or '.join(having)}"
        raise click.BadParameter(problem, param_hint="--search")
    searched.again(chosen[0], sys.stdout)


def _show(
    found: Sequence[Reproduction],
    pages: Pages | None,
    engine: str,
    talk: options.TalkOptions,
    stops: Sequence[ReproductionUnfinishedError] = (),
) -> None:
    """Prints the rows on stdout and writes the pages. `stops`: the failed runs."""
    if talk.as_json:
        quick = found[0].evidence.quick if found else None
        output = {
            "engine": engine,
            "quick": quick,
            "papers": [one.to_dict() for one in found],
            "failed": [one.to_dict() for stop in stops for one in stop.failed],
        }
        work.show(text.as_json(output, "reproduce"))
    else:
        for one in found:
            work.show(_table(one))
    if pages is None or not found:
        return
    for one in found:
        # Ctrl-C may have interrupted the writing of its page.
        if one not in pages:
            pages.add(one)
    pages.close()
    work.say(f"wrote {pages.overview}", talk.quiet)


def _say_what_is_kept(stopped: Stopped, folder: Path | None) -> None:
    """Prints a line for each paper, because there are hundreds of Runs."""
    finished, all_asked = (sum(column) for column in zip(*stopped.counts.values(), strict=True))
    work.say(f"\ninterrupted: {finished} of {all_asked} runs had finished")
    for paper, (done, asked) in stopped.counts.items():
        kept = (
            "nothing kept" if folder is None or not done else f"kept in {folder / paper / 'runs'}"
        )
        work.say(f"  {paper}: {done} of {asked}; {kept}")
    if finished and stopped.stored:
        work.say("the same command continues from here: the store has the finished runs")


def _known(names: Sequence[str], known: Sequence[str]) -> Sequence[str]:
    from sojourn.units import nearest

    for name in names:
        if name not in known:
            close = nearest(name, known)
            hint = f"did you mean {close}?" if close else f"papers: {', '.join(known)}"
            raise click.BadParameter(f"there is no paper {name!r}; {hint}", param_hint="PAPER")
    return tuple(dict.fromkeys(names)) or known


def _table(one: Reproduction) -> str:
    from sojourn_papers import engines, page

    header = ("what", one.paper.beside, "ours", "difference", "role", "verdict")
    rows = [
        (
            f"{row.number.what}{f' [{row.number.unit}]' if row.number.unit else ''}",
            page.published(row),
            page.ours(row),
            page.difference(row),
            str(row.number.role or ""),
            " on ".join(filter(None, (str(row.verdict), row.sample.words))),
        )
        for row in one.rows
    ]
    claims = [f"{row.verdict}: {row.claim.says}\n    {row.found}" for row in one.claims]
    quick = " (quick version: shorter, fewer seeds)" if one.evidence.quick else ""
    seeds = counted((row.ours.seeds for row in one.rows), "seed")
    about = f"{one.paper.id}: {one.paper.title}\n{one.paper.source}{quick}; mean over {seeds} ± 95 % interval"
    about = "\n".join([*map(work.refusal, one.invalid), about])
    summary = " ".join(filter(None, (page.sentence([one]), engines.sentence(one))))
    return "\n".join([about, "", text.table(header, rows), "", *claims, "", summary, ""])
