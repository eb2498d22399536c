"""`sojourn agree`: the same scenarios in the simulator and on the real kernel, number by number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sojourn.cli import options, text, work
from sojourn.errors import UserError
from sojourn.offered import ENGINES, SEEDS_END

if TYPE_CHECKING:
    from sojourn.agreement import Comparison, Digest, NumberRow, Sides
    from sojourn.engine import ClusterAddress, Engine, Interrupted, UnfinishedError
    from sojourn.records import Run
    from sojourn.scenario import Scenario

BEYOND = 1
STANDING = (
    *("1-mbit", "10-mbit", "50-mbit"),
    *(
        "100-mbit",
        "atm",
        "bands",
        "bbr",
        "bbr-ecn",
        "both-ways",
        "cake",
        "cake-overhead",
        "choke",
        "coalescing",
        "controls",
        "crowd",
        "dctcp",
        "delay-steps",
        "duplicates",
        "ecn",
        "ecn-beside",
        "ecn-loss",
        "fifty",
        "fq",
        "fq-codel",
        "fq-pie",
        "gred",
        "hhf",
        "hystart",
        "jitter",
        "late-stamps",
        "leaving",
    ),
    *(
        "loss",
        "mq",
        "no-header",
        "onoff",
        "overtaking",
        "packet-time",
        "pie",
        "police",
        "reordering",
        "reordering-alone",
        "ring",
        "rtts",
        "schedule",
        "sfb",
        "sfq",
        "sfq-red",
        "shaper",
        "slots",
        "tbf",
        "udp",
        "undo-ecn",
        "vegas",
        "vegas-beside",
        "vegas-echo",
        "video",
        "web",
        "wire-jitter",
    ),
)
"""In the folder `agreement/cases` of the installed package."""
OF_LATER = {"kernel-7.3": ("accecn", "cake-mq", "dualpi2", "prague")}
"""The same, of what only a later Linux has, by its engine."""
PRODUCT = "product"
"""What `agreement.combinations` puts each congestion control, feedback and discipline into."""
QUICK = "quick"
"""Names some of their cases."""
TOLERANCE = "5 %"
MOST_SEEDS = 12
"""Of a case of the standing set that three seeds don't tell of."""
KERNELS = tuple(name for name in ENGINES if name != "sim")


@dataclass(frozen=True)
class KernelAsked:
    """What was asked for beside the scenarios."""

    seeds: int | None
    execution: options.ExecutionOptions
    output: options.OutputOptions
    talk: options.TalkOptions
    fresh: bool = False
    cluster: ClusterAddress | None = None

    def where(self, side: str) -> ClusterAddress | None:
        """What runs a side: the cluster, but for a kernel that is woken, which no worker has."""
        return None if side.endswith("-awake") else self.cluster


KERNEL = {
    "type": click.Choice(KERNELS),
    "default": KERNELS[0],
    "help": "What the simulator is held against: sojourn list engines.",
}
"""The option -e where the simulator is one side already."""


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[SCENARIO]...")
@options.block(options.ExecutionOptions, engine=KERNEL)
@options.block(options.ClusterOptions)
@options.block(options.StoreOptions)
@click.option("--quick", is_flag=True, help="24 cases of the standing set: some minutes.")
@options.one(
    options.VariationOptions,
    "seeds",
    "Run N seeds, counted up from the scenario's. [default: the scenario's; the standing set has 3]",
)
@click.option(
    "--most-seeds",
    type=click.IntRange(1, work.MOST_SEEDS),
    metavar="N",
    help="Run further seeds, twice as many each round and N at most, of every scenario whose numbers don't tell yet: one is"
    f" beyond the tolerance, or its interval reaches there. [default: {MOST_SEEDS} for the standing set, else none further]",
)
@click.option(
    "--tolerance",
    default=TOLERANCE,
    show_default=True,
    metavar="SHARE",
    help="How far apart two numbers may be, of the kernel's.",
)
@options.block(
    options.OutputOptions,
    out="Keep the Runs of both sides, and agreement.json, in this folder. [default: nothing is kept]",
)
@click.option(
    "--all", "everything", is_flag=True, help="Of the standing set, too, show every number."
)
@options.block(options.TalkOptions)
def agree(
    paths: tuple[Path, ...],
    execution: options.ExecutionOptions,
    cluster: options.ClusterOptions,
    store: options.StoreOptions,
    quick: bool,
    seeds: int | None,
    most_seeds: int | None,
    tolerance: str,
    output: options.OutputOptions,
    everything: bool,
    talk: options.TalkOptions,
) -> None:
    """Hold the simulator's numbers against the real kernel's.

    Each SCENARIO, with all variants that it sweeps over, runs on both; without any, the standing
    set: eight queue disciplines, Reno and CUBIC, 1, 10 and 50 Mbit/s, base RTTs of 10 and 80 ms, 1,
    4 and 16 flows; cake, pie, fq_pie, sfq, sfb and choke; ECN, Vegas, UDP, video, losses, rings,
    shapers and more. Ends with 1 if a number differs by more than the tolerance.

    A scenario with Linux's red adaptive is held against the kernel twice: as tc sets it, where it
    does not adapt, and woken. `sojourn replay` compares decision by decision instead.
    """
    from sojourn.engine import Interrupted, check

    if quick and paths:
        raise click.UsageError("--quick is for the standing set: leave it out, or the scenarios")
    share = _share(tolerance)
    where = cluster.wanted(execution)
    if most_seeds is None:
        most_seeds = 0 if paths else MOST_SEEDS
    variants = (
        _variants([work.scenario(path, quiet=talk.quiet) for path in paths])
        if paths
        else standing(quick, execution.engine)
    )
    # What the simulator refuses is not to be told after the kernel has run.
    check(variants, "sim")
    how = KernelAsked(seeds, execution, output, talk, store.fresh, where)
    cases = [_Case(each) for each in _sides(variants, how)]
    stops: list[UnfinishedError] = []
    interrupted: Interrupted | None = None
    try:
        _first(cases, how, stops)
        _judge(cases, share)
        while unsettled := [one for one in cases if one.further(most_seeds)]:
            _further(unsettled, most_seeds, how, stops)
            _judge(unsettled, share)
    except Interrupted as stop:
        interrupted = stop
        _judge([one for one in cases if one.found is None and one.complete], share)
    told = [one for one in cases if one.found is not None]
    if told:
        failed = [each.to_dict() for stop in stops for each in stop.failed]
        _show(told, len(cases), share, how, failed, everything=everything or bool(paths))
    elif stops and interrupted is None:
        raise stops[0]
    if interrupted is not None:
        work.failed(stops)
        work.interrupted(interrupted, kept=output.out is not None)
    # Each of them says what it has found.
    refused = [work.invalid([one.theirs for one in told]), bool(work.failed(stops))]
    if any(refused) or not all(one.comparison.agrees for one in told):
        raise click.exceptions.Exit(BEYOND)


# --------------------------------------------------------------------------------------- the work


@dataclass
class _Case:
    """One scenario on both sides, as far as it is."""

    sides: Sides
    kernels: Run | None = None
    """The kernel's Run, once it is begun."""
    simulators: Run | None = None
    """Ours, of the seeds that the kernel has finished."""
    found: Comparison | None = None

    @property
    def ours(self) -> Run:
        """The simulator's."""
        assert self.simulators is not None, "it was run"
        return self.simulators

    @property
    def theirs(self) -> Run:
        """The kernel's."""
        assert self.kernels is not None, "it was run"
        return self.kernels

    @property
    def comparison(self) -> Comparison:
        """By all seeds that both had when it was made."""
        assert self.found is not None, "it was judged"
        return self.found

    @property
    def begun(self) -> bool:
        """The kernel has finished a seed of it."""
        return self.kernels is not None and bool(self.kernels.seeds)

    @property
    def complete(self) -> bool:
        """Both sides have every seed that was asked for."""
        runs = (self.kernels, self.simulators)
        return all(
            run is not None and set(run.seeds) == set(self.theirs.meta.seeds_asked) for run in runs
        )

    def further(self, most: int) -> bool:
        """Whether more seeds may tell more: not where all give the same, nor where the kernel's
        can't be used."""
        if self.found is None:
            return False
        open_ = not self.found.tells and self.found.scatters and not self.theirs.meta.invalid
        return open_ and bool(self.next_seeds(most))

    def next_seeds(self, most: int) -> list[int]:
        """As many again as were asked for, up to the most."""
        asked = self.theirs.meta.seeds_asked
        first = max(asked) + 1
        return list(range(first, min(first + min(len(asked), most - len(asked)), SEEDS_END)))


def _share(written: str) -> float:
    from sojourn.units import parse_probability

    try:
        return parse_probability(written)
    except UserError as error:
        hint = f"; {error.hint}" if error.hint else ""
        raise click.BadParameter(f"{error.problem}{hint}", param_hint="--tolerance") from None


def standing(quick: bool, engine: str = KERNELS[0]) -> list[Scenario]:
    """The cases of the standing set for this engine, or some of them."""
    from sojourn.scenario import load

    if not quick:
        names = STANDING + OF_LATER.get(engine, ())
        return _variants([load(standing_file(f"{name}.toml")) for name in names]) + products(engine)
    import tomllib

    wanted = tomllib.loads(standing_file(f"{QUICK}.toml").read_text(encoding="utf-8"))
    loaded = {name: load(standing_file(f"{name}.toml")) for name in wanted}
    return _variants(
        list(loaded.values()), {loaded[name].title: labels for name, labels in wanted.items()}
    )


def products(engine: str) -> list[Scenario]:
    """Each congestion control with each feedback through each discipline that this engine's kernel
    has."""
    from sojourn.agreement import combinations
    from sojourn.engine import fits
    from sojourn.scenario import load

    base = load(standing_file(f"{PRODUCT}.toml"))
    return [
        cell.with_(label=f"{base.title}: {cell.label}")
        for cell in combinations(base)
        if fits(engine, cell)
    ]


def standing_file(name: str) -> Path:
    from importlib.resources import files

    return Path(str(files("sojourn.agreement").joinpath("cases", name)))


def _variants(
    loaded: Sequence[Scenario], wanted: Mapping[str, Sequence[str]] | None = None
) -> list[Scenario]:
    """Every variant of every scenario, or those that are wanted of each title; of several scenarios
    each says which it is of."""
    variants = []
    for scenario in loaded:
        for variant in scenario.variants():
            if wanted is not None and variant.label not in wanted[scenario.title]:
                continue
            words = (scenario.title,) if len(loaded) > 1 else ()
            label = ": ".join((*words, variant.label)) if variant.label else scenario.title
            variants.append(variant.with_(label=label))
    return variants


def _sides(variants: Sequence[Scenario], how: KernelAsked) -> list[Sides]:
    """How each is held against the kernel. What can't be done here is left out, and said."""
    from sojourn import agreement
    from sojourn.engine import find_awake, profile_of

    profile = profile_of(how.execution.engine)
    found = [each for variant in variants for each in agreement.sides(variant, profile)]
    if any(each.awake for each in found):
        try:
            find_awake(how.execution.engine)
        except UserError as error:
            work.say(f"left out: red adaptive, awake: {error.problem}", how.talk.quiet)
            return [each for each in found if not each.awake]
    return found


def _first(cases: Sequence[_Case], how: KernelAsked, stops: list[UnfinishedError]) -> None:
    """Runs every case on the kernel, then in the simulator the seeds that the kernel has finished.
    `stops`: takes what failed."""
    from sojourn.engine import Interrupted

    _check_vacant(cases, how)
    interrupted: Interrupted | None = None
    try:
        for awake in (False, True):
            those = [case for case in cases if case.sides.awake is awake]
            runs = _run_all(
                [case.sides.theirs for case in those],
                _side(how.execution.engine, awake),
                how,
                stops,
            )
            for case, run in zip(those, runs, strict=True):
                case.kernels = run
    except Interrupted as stop:
        interrupted = stop
        by_name = {run.name: run for run in stop.runs}
        for case in cases:
            case.kernels = case.kernels or by_name.get(case.sides.theirs.label)
    # The simulator takes a hundredth of the time, so that what an interrupted kernel has finished
    # can be judged.
    wanted = [case for case in cases if case.begun]
    if interrupted is not None:
        wanted = [
            case for case in wanted if set(case.theirs.seeds) == set(case.theirs.meta.seeds_asked)
        ]
    ours = [case.sides.ours.with_(seeds=list(case.theirs.seeds)) for case in wanted]
    try:
        for case, run in zip(
            wanted, _run_all(ours, "sim", replace(how, seeds=None), stops), strict=True
        ):
            case.simulators = run
    except Interrupted as stop:
        by_name = {run.name: run for run in stop.runs}
        for case in wanted:
            case.simulators = by_name.get(case.sides.ours.label)
        raise
    if interrupted is not None:
        raise interrupted


def _check_vacant(cases: Sequence[_Case], how: KernelAsked) -> None:
    """Refuses, before anything is run, a folder of any side that has Runs already."""
    from sojourn.engine import folder_names, seeds_of
    from sojourn.records import check_vacant

    if how.output.out is None:
        return
    sides: dict[str, list[Scenario]] = {}
    for case in cases:
        seeds = seeds_of(case.sides.theirs, how.seeds)
        sides.setdefault("sim", []).append(case.sides.ours.with_(seeds=list(seeds)))
        sides.setdefault(_side(how.execution.engine, case.sides.awake), []).append(
            case.sides.theirs
        )
    for name, scenarios in sides.items():
        folders = folder_names([scenario.label for scenario in scenarios])
        for folder, scenario in zip(folders, scenarios, strict=True):
            check_vacant(how.output.out / name / folder, scenario.to_toml(), force=how.output.force)


def _side(engine: str, awake: bool) -> str:
    """What the kernel's side is called on disk and in words."""
    return f"{engine}-awake" if awake else engine


def _engine(name: str) -> str | Engine:
    """The engine of a side."""
    from sojourn.engine import find_awake

    plain = name.removesuffix("-awake")
    return name if plain == name else find_awake(plain)


def _run_all(
    scenarios: Sequence[Scenario], side: str, how: KernelAsked, stops: list[UnfinishedError]
) -> Sequence[Run]:
    """Runs these on one side. `stops`: takes what failed."""
    from sojourn.engine import UnfinishedError, run_all

    if not scenarios:
        return []
    folder = None if how.output.out is None else how.output.out / side
    work.say(f"{_scenarios(scenarios)} on {side}", how.talk.quiet)
    try:
        with work.progress(how.talk.quiet) as progress:
            return run_all(
                scenarios,
                seeds=how.seeds,
                out=folder,
                engine=_engine(side),
                jobs=how.execution.jobs,
                cluster=how.where(side),
                force=how.output.force,
                fresh=how.fresh,
                progress=progress,
            )
    except UnfinishedError as stop:
        stops.append(stop)
        return stop.runs


def _further(
    cases: Sequence[_Case], most: int, how: KernelAsked, stops: list[UnfinishedError]
) -> None:
    """Runs more seeds of cases that don't tell yet: on the kernel, then in the simulator those that
    it has finished."""
    seeds = [case.next_seeds(most) for case in cases]
    work.say(
        f"{_scenarios(cases)} whose numbers don't tell yet: {sum(map(len, seeds))} seeds more",
        how.talk.quiet,
    )
    for awake in (False, True):
        those = [
            (case.theirs, case.sides.theirs, more)
            for case, more in zip(cases, seeds, strict=True)
            if case.sides.awake is awake
        ]
        _run_more(those, _side(how.execution.engine, awake), how, stops)
    ours = [(case.ours, case.sides.ours, list(case.theirs.seeds)) for case in cases]
    _run_more(ours, "sim", how, stops)


def _run_more(
    those: Sequence[tuple[Run, Scenario, list[int]]],
    side: str,
    how: KernelAsked,
    stops: list[UnfinishedError],
) -> None:
    """Adds seeds to Runs of one side. `stops`: takes what failed."""
    from sojourn.engine import UnfinishedError, run_more

    if not those:
        return
    runs, scenarios, seeds = zip(*those, strict=True)
    work.say(f"{_scenarios(runs)} on {side}", how.talk.quiet)
    try:
        with work.progress(how.talk.quiet) as progress:
            run_more(
                runs,
                scenarios,
                seeds,
                engine=_engine(side),
                jobs=how.execution.jobs,
                cluster=how.where(side),
                fresh=how.fresh,
                progress=progress,
            )
    except UnfinishedError as stop:
        stops.append(stop)


def _judge(cases: Sequence[_Case], tolerance: float) -> None:
    """Compares both sides of each case, by all the seeds that it has."""
    from sojourn import agreement, metrics

    for case in cases:
        if not case.begun or not case.ours.seeds:
            continue
        case.found = agreement.compare(
            metrics.summary(case.ours),
            metrics.summary(case.theirs),
            {link.name: link.rate_bps for link in case.theirs.meta.links},
            tolerance=tolerance,
            setting=case.sides.setting,
        )


def _show(
    cases: Sequence[_Case],
    asked: int,
    tolerance: float,
    how: KernelAsked,
    failed: Sequence[Mapping[str, Any]],
    *,
    everything: bool,
) -> None:
    """Says what was found, and writes it down where something is kept."""
    from sojourn import agreement

    found = [case.comparison for case in cases]
    ours, theirs = [case.ours for case in cases], [case.theirs for case in cases]
    digests = agreement.digest(found)
    whole = {
        "engine": how.execution.engine,
        "version": theirs[0].meta.version,
        "tolerance": tolerance,
        "agrees": all(one.agrees for one in found),
        "not_finished": asked - len(found),
        "invalid": [reason for run in theirs for reason in run.meta.invalid],
        "failed": list(failed),
        "verdicts": agreement.verdicts(found),
        "cpu_s": {
            name: _cpu_s(runs) for name, runs in (("sim", ours), (how.execution.engine, theirs))
        },
        "comparisons": [one.to_dict() for one in found],
        "digest": [one.to_dict() for one in digests],
    }
    written = text.as_json(whole, "agree")
    if how.talk.as_json:
        work.show(written)
    else:
        for one in found:
            work.show(_table(one, everything=everything))
        if len(found) > 1:
            work.show(_digest(digests))
        work.show(_closing(found))
    work.say(_cost(ours, theirs), how.talk.quiet)
    if how.output.out is not None:
        work.write(how.output.out / "agreement.json", written + "\n")
        work.say(f"wrote {how.output.out}", how.talk.quiet)


# -------------------------------------------------------------------------------------- the words

_MARKS = {"within": "yes", "step": "a step", "noise": "noise", "beyond": "NO"}


def _table(one: Comparison, everything: bool) -> str:
    agreeing = sum(row.verdict == "within" for row in one.rows)
    title = one.label if one.label.startswith(one.title) else f"{one.title} [{one.label}]"
    heading = f"{title}\n{agreeing} of {len(one.rows)} numbers within the tolerance; {_seeds(one)}"
    shown = [row for row in one.rows if everything or row.verdict == "beyond"]
    if not shown:
        return f"{heading}\n"
    header = ("number", "sim", "kernel", "difference", "within")
    return "\n".join([heading, text.table(header, [_cells(row) for row in shown]), ""])


def _seeds(one: Comparison) -> str:
    return "1 seed" if one.seeds == 1 else f"{one.seeds} seeds, mean ±95 % interval"


def _cells(row: NumberRow) -> tuple[str, ...]:
    unit = f" {row.unit}" if row.unit else ""
    place = f"{row.place}: " if row.place else ""
    return (
        f"{place}{row.metric}{unit}",
        text.with_interval({"mean": row.sim, "ci95": row.sim_ci95}),
        text.with_interval({"mean": row.kernel, "ci95": row.kernel_ci95}),
        _percent(row.difference, row.ci95),
        _MARKS[row.verdict],
    )


def _percent(difference: float, ci95: float) -> str:
    if difference != difference:
        return "-"
    if abs(difference) == float("inf"):
        return "only in sim"
    half = "" if ci95 != ci95 else f" ±{100 * ci95:.1f}"
    return f"{100 * difference:+.1f}{half} %"


def _digest(digests: Sequence[Digest]) -> str:
    """A line for each queue discipline and number."""
    from sojourn.agreement import VERDICTS

    header = ("qdisc", "number", *VERDICTS, "median", "worst", "where")
    rows = [
        (
            one.group,
            one.metric,
            *(str(one.verdicts[verdict]) for verdict in VERDICTS),
            _size(one.median),
            _percent(one.worst, float("nan")),
            one.worst_case,
        )
        for one in digests
    ]
    return f"{text.table(header, rows, left=2)}\n"


def _size(share: float) -> str:
    return f"{100 * share:.1f} %"


def _scenarios(them: Sequence[object]) -> str:
    return f"{len(them)} scenario{'' if len(them) == 1 else 's'}"


def _closing(found: Sequence[Comparison]) -> str:
    from sojourn import agreement
    from sojourn.metrics import RANDOM_START

    counts = agreement.verdicts(found)
    lines = []
    if any(one.case.setting for one in found):
        lines.append(f"{agreement.ASLEEP.name}: {agreement.ASLEEP.says}")
    if alike := [one for one in found if one.seeds > 1 and not one.scatters]:
        lines.append(
            f"{_scenarios(alike)} gave the same with every seed: one sample, without an interval;"
            f" with {RANDOM_START} on a flow the seeds differ"
        )
    total = sum(counts.values())
    lines.append(
        f"{total} numbers of {_scenarios(found)}: {counts['within']} within the tolerance, {counts['step']} a queue's step"
        f" apart, {counts['noise']} that more seeds would tell, {counts['beyond']} beyond it"
    )
    return "\n".join(lines)


def _cost(ours: Sequence[Run], theirs: Sequence[Run]) -> str:
    return f"CPU: sim {_cpu_s(ours):.1f} s, {theirs[0].meta.engine} {_cpu_s(theirs):.1f} s"


def _cpu_s(runs: Sequence[Run]) -> float:
    return sum(sum(run.meta.cpu_s.values()) for run in runs)
