"""`sojourn advise`: the queue discipline that a line or a scenario should have, with commands."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from sojourn.cli import contest_text, options, rounds, text, work
from sojourn.defaults import GOALS
from sojourn.errors import UserError

if TYPE_CHECKING:
    from sojourn.advice import AccessLine, Advice
    from sojourn.outputs.output_shapes import Advised, JudgedRuns
    from sojourn.records import Run
    from sojourn.scenario import Scenario

MIKROTIK_PORT = "ether1"
"""RouterOS' first port, which leads to the modem by default."""

SHOWN = ("ping_p95", "mos", "late", "sojourn_p95", "goodput", "goodput_other")
"""The quantities whose gain is printed."""


def _ends(rtt: str) -> tuple[int, int]:
    """Parses the shortest and the longest RTT."""
    ends = options.time_range(rtt, what="an RTT", example="20 ms", zero=False)
    if len(ends) > 2 or ends[0] > ends[-1]:
        raise UserError(
            f"{rtt!r} is neither a time nor a range of two times, the shorter first",
            "write 20ms, or 10ms..80ms",
        )
    return ends[0], ends[-1]


@click.command()
@click.argument(
    "path", required=False, type=click.Path(path_type=Path), metavar="[SCENARIO]", default=None
)
@options.block(
    options.RateOptions,
    up={"also": ["--rate"], "help": "The rate of the line from here: 18mbit."},
    down="The rate of the line to here, if that direction is shaped, too.",
)
@click.option(
    "--rtt",
    metavar="TIME|TIME..TIME",
    callback=options.placed(_ends),
    help="RTTs without a queue: 20ms, or 10ms..80ms. [default: 10ms..150ms, for unknown RTTs]",
)
@options.one(
    options.ShaperOptions,
    "link",
    {
        "also": ["--link-layer"],
        "metavar": "LAYER|NAME",
        "callback": None,
        "help": "The bytes that the line adds to a packet: docsis (cable), pppoe-ptm (VDSL), ethernet (fibre), ..."
        " With a SCENARIO: the link at which the disciplines take turns. [default: the bottleneck]",
    },
)
@click.option(
    "--goal",
    type=click.Choice(GOALS),
    default=GOALS[0],
    show_default=True,
    help="The goal.",
)
@click.option(
    "--interface",
    default="eth0",
    show_default=True,
    metavar="IFACE",
    help="The router's interface to the line, for the commands.",
)
@click.option(
    "--plain",
    "in_plain_words",
    is_flag=True,
    help="Print three sentences for a reader who only decides. With -o, also write plain.html: the sentences and one picture.",
)
@options.block(
    options.OutputOptions, out="Folder of Runs, figures and page. [default: nothing is written]"
)
@options.block(options.VariationOptions)
@options.block(options.ExecutionOptions)
@options.block(options.ProgramOptions)
@options.block(options.ClusterOptions)
@options.block(options.StoreOptions)
@options.block(options.TalkOptions)
def advise(
    path: Path | None,
    rtt: tuple[int, int] | None,
    link: str | None,
    goal: str,
    interface: str,
    in_plain_words: bool,
    rate: options.RateOptions,
    output: options.OutputOptions,
    variation: options.VariationOptions,
    execution: options.ExecutionOptions,
    program: options.ProgramOptions,
    cluster: options.ClusterOptions,
    store: options.StoreOptions,
    talk: options.TalkOptions,
) -> None:
    """Recommend a queue discipline and its parameters, and show what it costs.

    With a SCENARIO, the advice is for its bottleneck and its own traffic. With a line of a known
    rate, the advice is for a shaper in front of the line. Its test traffic is four transfers each
    way, a call and a ping. Each discipline that is worth trying takes its turn, and the goal
    chooses one. The output ends with the commands to type and a section for OpenWrt's SQM.

    \b
    delay    the shortest delay under load
    calls    calls and video without gaps
    goodput  the most goodput among disciplines that add less than 100 ms

    \b
    sojourn advise --up 18mbit --down 90mbit --link docsis
    sojourn advise home-uplink --goal calls
    """
    if (path is None) == (rate.up is None):
        raise click.UsageError("give a SCENARIO, or a line: --up RATE")
    if path is not None and (rate.down or rtt):
        raise click.UsageError("--down and --rtt describe a line; a SCENARIO has its own")
    if path is None:
        layer = options.parsed("--link", options.layer, link) if link else None
        from sojourn import advice

        assert rate.up is not None
        rtts = rtt or advice.UNKNOWN_RTT_NS
        access = advice.AccessLine(rate.up, rate.down, rtts, layer, interface=interface)
        line: AccessLine | None = access
        plain = work.changed(access.scenario(), variation.changes)
        if access.shortened and plain.duration == access.duration_ns:
            work.say(access.shortened, talk.quiet)
        scenarios, link = access.variants(plain), "up"
    else:
        plain = work.scenario(path, variation.changes, quiet=True)
        from sojourn import advice

        work.permit([plain], execution.engine, program.allowed)
        line = advice.of_scenario(plain, interface)
        scenarios = advice.in_scenario(plain, link)
    how = _How(output, execution, cluster, store, talk)
    runs = _run(scenarios, variation.wanted(plain), how)
    found = advice.choose(runs, advice.GOALS[goal], link)
    while found.undecided and _more(found, runs, scenarios, how):
        found = advice.choose(runs, advice.GOALS[goal], link)
    advised = _advised(found, runs[0], line, None if path is None else interface)
    if talk.as_json:
        work.show(text.as_json(advised, "advise"))
    elif in_plain_words:
        work.show("\n".join(_filled(sentence) for sentence in advised["plain"]))
    else:
        _show(found, advised)
    if output.out is not None and in_plain_words:
        _write_plain(found, advised, runs, output.out, talk.quiet)
    elif output.out is not None:
        _write(runs, output.out, talk.quiet)
    if work.invalid(runs):
        raise click.exceptions.Exit(work.INVALID)


@dataclass(frozen=True)
class _How:
    """The options that say how the candidates are run."""

    output: options.OutputOptions
    execution: options.ExecutionOptions
    cluster: options.ClusterOptions
    store: options.StoreOptions
    talk: options.TalkOptions


def _run(scenarios: Sequence[Scenario], seeds: list[int] | None, how: _How) -> list[Run]:
    from sojourn.engine import run_all

    with _finishing(how), work.progress(how.talk.quiet) as progress:
        return run_all(
            scenarios,
            seeds=seeds,
            out=how.output.out,
            engine=how.execution.engine,
            jobs=how.execution.jobs,
            cluster=how.cluster.wanted(how.execution),
            force=how.output.force,
            fresh=how.store.fresh,
            progress=progress,
        )


def _more(found: Advice, runs: Sequence[Run], scenarios: Sequence[Scenario], how: _How) -> bool:
    """Doubles the number of seeds and runs the new ones, unless there would be more than
    `MOST_SEEDS`. Returns whether it ran them."""
    from sojourn.advice import MOST_SEEDS
    from sojourn.sweeps.until import as_many_again

    further = [
        rounds.Further(run, scenario, as_many_again(run, MOST_SEEDS))
        for run, scenario in zip(runs, scenarios, strict=True)
    ]
    if not all(one.seeds for one in further):
        return False
    more = sum(len(one.seeds) for one in further)
    work.say(
        f"{found.contest.seeds} seeds do not decide among {_listed(_open(found))}: {more} more runs",
        how.talk.quiet,
    )
    with _finishing(how):
        rounds.add(
            further, how.execution, how.cluster.wanted(how.execution), how.store, how.talk.quiet
        )
    return True


@contextlib.contextmanager
def _finishing(how: _How) -> Iterator[None]:
    """Prints what is left if the runs are interrupted or fail."""
    from sojourn.engine import Interrupted, UnfinishedError

    try:
        yield
    except Interrupted as stop:
        work.interrupted(stop, kept=how.output.out is not None)
    except UnfinishedError as stop:
        runs = work.finished(stop)
        work.failed([stop])
        raise click.exceptions.Exit(work.INVALID) from None if runs else stop


# ------------------------------------------------------------------------------------ the result


def _advised(found: Advice, first: Run, line: AccessLine | None, device: str | None) -> Advised:
    """The advice as plain values.

    `device`: the interface that is the bottleneck itself; None: a shaper takes its place.
    """
    from sojourn import advice

    words, commands, snippet, routeros = found.chosen, list[str](), None, None
    if words != found.contest.baseline:
        if device is not None:
            commands = advice.replacing(words, device)
        elif line is not None:
            commands = line.commands(words)
        if line is not None:
            wanted = line.wanted(words)
            snippet = advice.sqm(wanted, line.interface)
            routeros = advice.mikrotik(wanted, MIKROTIK_PORT)
    return {
        "about": first.meta.title,
        "goal": found.goal.name,
        "chosen": words,
        "plain": advice.sentences(found, line if device is None else None),
        "usual": found.usual,
        "as_good": list(found.as_good),
        "undecided": list(found.undecided),
        "margins": [
            {
                "key": each.quantity.key,
                "name": each.quantity.name,
                "unit": each.quantity.unit,
                "value": each.value,
            }
            for each in found.margins
        ],
        "too_dear": list(found.too_dear),
        "decided_by": [quantity.key for quantity in found.decided],
        "commands": commands,
        "sqm": snippet,
        "mikrotik": routeros,
        "judgement": cast("JudgedRuns", found.judgement.to_dict()),
    }


# ------------------------------------------------------------------------------------- for people


def _show(found: Advice, advised: Advised) -> None:
    contest = found.contest
    work.show(f"{advised['about']}; {contest.seeds} seeds, mean ±95 % interval\n")
    work.show(contest_text.tables(contest) + "\n", bold=contest_text.BEST)
    work.show("\n".join(_filled(sentence) for sentence in _sentences(found, advised)))
    if advised["commands"]:
        work.show("\nTo type on the router, as root:\n")
        work.show("\n".join(f"  {command}" for command in advised["commands"]))
    if advised["sqm"]:
        work.show("\nOr in front of the modem, on OpenWrt with sqm-scripts, in /etc/config/sqm:\n")
        work.show("\n".join(f"  {line}" for line in advised["sqm"]))
    if advised["mikrotik"]:
        work.show(f"\nOr on MikroTik's RouterOS 7, if {MIKROTIK_PORT} leads to the modem:\n")
        work.show("\n".join(f"  {line}" for line in advised["mikrotik"]))


def _sentences(found: Advice, advised: Advised) -> list[str]:
    sentences = [f"For {found.goal.wanted}: {advised['chosen']}."]
    if found.as_good:
        why = f"; {found.chosen.split()[0]} is the usual choice" if found.usual else ""
        sentences.append(f"As good: {', '.join(found.as_good)}{why}.")
    if found.undecided:
        seeds = found.contest.seeds
        sentences.append(
            f"{seeds} seeds do not decide among {_listed(_open(found))};"
            f" more may: --seeds {2 * seeds}."
        )
    if found.too_dear:
        sentences.append(
            f"Left out, since it costs {found.goal.price}: {', '.join(found.too_dear)}."
        )
    if advised["chosen"] == found.contest.baseline:
        change = "no change is shown to be better" if found.undecided else "no change is needed"
        return [*sentences, _margins(found), f"The bottleneck has it already: {change}."]
    for verdict in ("better", "worse"):
        changes = [
            f"{each.name} from {text.number(each.reference)} to {text.number(each.value)} {each.unit}".rstrip()
            for each in found.gains
            if each.key.partition(":")[0] in SHOWN and each.verdict == verdict
        ]
        if changes:
            than = f"{verdict.capitalize()} than {found.contest.baseline}"
            sentences.append(f"{than}: {'; '.join(changes)}.")
    return [*sentences, _margins(found)]


def _open(found: Advice) -> list[str]:
    """The disciplines among which the seeds do not decide."""
    return [found.chosen, *found.as_good, *found.undecided]


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _margins(found: Advice) -> str:
    """The sentence that says which differences count as equal."""
    margins = [
        f"{text.number(each.value)} {_unit(each.quantity.unit)} of {each.quantity.name}".strip()
        for each in found.margins
    ]
    return f"As good means: the 95 % interval of the difference from the best lies within {_listed(margins)}."


def _unit(unit: str) -> str:
    return "points" if unit == "%" else unit


def _filled(sentence: str) -> str:
    return textwrap.fill(sentence, contest_text.width())


def _write(runs: list[Run], folder: Path, quiet: bool) -> None:
    from sojourn import report

    drawn = work.draw(runs, folder / "figures", ("svg",))
    page = report.write(runs, folder / "report.html")
    work.say(f"wrote {page}\n      {folder / 'figures'} ({drawn} figures)", quiet)


def _write_plain(
    found: Advice, advised: Advised, runs: Sequence[Run], folder: Path, quiet: bool
) -> None:
    from sojourn import report

    shown = {found.contest.baseline, found.chosen}
    chosen = [run for run, name in zip(runs, found.judgement.runs, strict=True) if name in shown]
    page = report.write_plain(advised["about"], advised["plain"], chosen, folder / "plain.html")
    work.say(f"wrote {page}", quiet)
