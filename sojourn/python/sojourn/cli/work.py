"""What the verbs that run scenarios share: seeds and changes, progress with an ETA, and what Ctrl-C
leaves behind."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from sojourn import sanitize
from sojourn.cli import text
from sojourn.errors import UserError

if TYPE_CHECKING:
    from sojourn.engine import Interrupted, Progress, UnfinishedError
    from sojourn.records import Run
    from sojourn.scenario import Scenario

PLAIN_EVERY_S = 30.0
"""Without a terminal progress is a line this often: enough to see that it lives, not enough to fill
a log."""

LONG_S = 10.0
"""What takes longer is told ahead."""

MOST_SEEDS = 10_000
"""A scenario's own bound."""

STDIN = "-"


def scenario(
    path: Path, changes: Sequence[str] = (), quiet: bool = False, vary: Sequence[str] = ()
) -> Scenario:
    """The scenario in a file, of an example's name or (`-`) on stdin, with every --set and --vary
    applied; what is to be noted about it is said."""
    from sojourn.scenario import load, loads, read

    if str(path) == STDIN:
        text = read(sys.stdin.buffer, "stdin")
        found = loads(text, name="stdin", folder=Path())
    else:
        found = load(path)
    found = varied(changed(found, changes), vary)
    tell_notes([found], quiet)
    return found


def tell_notes(scenarios: Sequence[Scenario], quiet: bool) -> None:
    """Says what is doubtful about the words of scenarios, each thing once."""
    for note in dict.fromkeys(note for scenario in scenarios for note in scenario.notes):
        say(f"note: {note}", quiet)


def tell_doubts(disciplines: Iterable[str], quiet: bool) -> None:
    """Says what is doubtful about the words of disciplines that no scenario has yet."""
    from sojourn.scenario.qdisc import Qdisc
    from sojourn.units import UnitError

    for words in disciplines:
        # What is wrong is refused where it is used.
        with contextlib.suppress(UnitError):
            for message, hint, _ in Qdisc.parse(words).notes:
                say(f"note: {words}: {message}\nhint: {hint}", quiet)


def check_words(paths: Sequence[Path], changes: Sequence[str]) -> None:
    """Refuses what is left over of a --set whose value has blanks and no quotes:
    `--set bottleneck.rate=5 Mbit/s`."""
    if not changes:
        return
    from sojourn.scenario.qdisc import WORDS
    from sojourn.units import UNITS

    for word in map(str, paths):
        if (word in UNITS or word in WORDS or re.fullmatch(r"[0-9.]+[a-z]*", word)) and not Path(
            word
        ).exists():
            raise UserError(
                f"{word!r} is neither a scenario nor a queue discipline",
                f"if it is part of --set, quote the whole: --set '{changes[-1]} {word}'",
            )


def check_there(path: Path, hint: str) -> None:
    """Refuses a file that is not there, before what reads it is imported."""
    # What can't be looked at is told by what opens it.
    with contextlib.suppress(OSError):
        if not path.exists():
            raise UserError(f"there is no file {path}", hint)


def stem(path: Path) -> str:
    """What a scenario's folder is called."""
    return "stdin" if str(path) == STDIN else path.stem


def changed(scenario: Scenario, changes: Sequence[str]) -> Scenario:
    """The scenario with every --set applied."""

    pairs: dict[str, Any] = {}
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals or not key.strip():
            raise UserError(
                f"--set: {change!r} is not KEY=VALUE",
                "write --set KEY=VALUE, like --set duration='10 s'",
            )
        pairs[key.strip()] = _value(value.strip())
    return scenario.with_(pairs) if pairs else scenario


def varied(scenario: Scenario, vary: Sequence[str]) -> Scenario:
    """The scenario as a sweep over every --vary too; one of a key that it sweeps already takes that
    key's place."""
    sweep: dict[str, Any] = {}
    for each in vary:
        key, equals, values = each.partition("=")
        if not equals or not key.strip() or not values.strip():
            raise UserError(
                f"--vary: {each!r} is not KEY=VALUE,...",
                "write --vary KEY=VALUE,VALUE, like --vary bottleneck.rate=5mbit,20mbit",
            )
        read = _value if key.strip() in OF_SAMPLES else _values
        sweep[key.strip()] = read(values.strip())
    if not sweep:
        return scenario
    whole = {**scenario.sweep, **sweep}
    if not any(isinstance(values, str) for key, values in whole.items() if key not in OF_SAMPLES):
        # No range of the file is left: what it says of samples is of nothing. What is asked for here
        # is refused.
        whole = {
            key: value for key, value in whole.items() if key not in OF_SAMPLES or key in sweep
        }
    return scenario.with_({"sweep": whole})


OF_SAMPLES = ("samples", "sampling", "sampling_seed")
"""The keys of `[sweep]` that name nothing to vary."""
_RANGE = re.compile(r"(?:(log|linear)\s+)?([^\s\[\"']+(?: ?[^\s.]+)?)\s*\.\.\s*(.+)")


def _values(written: str) -> list[Any] | str:
    """A list as a scenario file has it, values between commas, or a range: 1mbit..100mbit."""
    if found := _RANGE.fullmatch(written):
        scale, low, high = found.groups()
        ends = " .. ".join(_value(end) if _TC_RATE.fullmatch(end) else end for end in (low, high))
        return f"{scale} {ends}" if scale else ends
    whole = _value(written)
    if isinstance(whole, list):
        return whole
    return [_value(each.strip()) for each in written.split(",")]


_TC_RATE = re.compile(r"[0-9.]+[kmgt]?bit", re.IGNORECASE)


def _value(written: str) -> Any:
    """What a scenario file would hold: numbers, booleans, lists and quoted text as in TOML, all
    else as text.

    A rate may be as tc(8) writes it, 5mbit: without a blank it needs no quotes in a shell.
    """
    import tomllib

    if _TC_RATE.fullmatch(written):
        from sojourn.scenario.qdisc import read_rate
        from sojourn.units import format_rate

        with contextlib.suppress(ValueError):
            return format_rate(read_rate(written))
    try:
        return tomllib.loads(f"value = {written}")["value"]
    except tomllib.TOMLDecodeError:
        return written


def unused(folder: Path) -> Path:
    """The folder, or the first of folder-2, folder-3, ... that does not exist."""
    number = 1
    candidate = folder
    while candidate.exists():
        number += 1
        candidate = folder.with_name(f"{folder.name}-{number}")
    return candidate


def show(words: str, bold: re.Pattern[str] | None = None) -> None:
    """Data: to stdout, without control characters but ends of lines and tabs. What `bold` finds is
    bold on a terminal that is not told otherwise (NO_COLOR).

    A reader that goes away (`| head`) has seen enough: the work goes on, so that what is kept on
    disk is whole.
    """
    harmless = sanitize.plain(words, lines=True)
    if bold is not None and not os.environ.get("NO_COLOR"):
        harmless = bold.sub(lambda found: click.style(found[0], bold=True), harmless)
    _to_stdout(harmless)


def show_bytes(content: bytes) -> None:
    """Data that is no text: to stdout as it is."""
    _to_stdout(content, ends=False)


def _to_stdout(content: str | bytes, ends: bool = True) -> None:
    try:
        click.echo(content, nl=ends)
    except OSError as error:
        # Python writes out the rest of stdout as it ends, which would fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return

        raise UserError(
            f"can't write to stdout: {error.strerror or error}",
            "make room, or send the output elsewhere",
        ) from None


def say(words: str, quiet: bool = False) -> None:
    """Talk: to stderr, as `show`. Nothing depends on its being heard."""
    if not quiet:
        with contextlib.suppress(OSError):
            click.echo(sanitize.plain(words, lines=True), err=True)


@dataclass(frozen=True)
class Step:
    """How far some long work is, in words and as a share of 1."""

    words: str
    fraction: float
    done: bool = False
    """Nothing more is to come."""
    ahead: str = ""
    """To be said before it begins."""
    after: str = ""
    """To be said when it is done."""


Tell = Callable[[Any], None]


def simulated(p: Progress) -> Step:
    """How far the runs of a scenario are."""
    failed = f", {p.failed} failed" if p.failed else ""
    ahead = list(p.news)
    if p.there:
        ahead.append(f"there already: {_runs(p.there)}")
    if p.expected_s is not None and p.expected_s > LONG_S:
        less = ", less what the store has" if p.stored else ""
        ahead.append(f"{_runs(p.runs)}: about {_time(p.expected_s)}{less}")
    done = p.finished + p.failed == p.runs
    after = f"{p.taken} of {_runs(p.runs)} taken from the store" if done and p.taken else ""
    words = f"{p.finished} of {p.runs} runs{failed}"
    return Step(words, p.fraction, done, "\n".join(ahead), after)


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def _time(seconds: float) -> str:
    """As people say it: 40 s, 5 min, 3.2 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.3g} h"


@contextlib.contextmanager
def progress(quiet: bool, step: Callable[[Any], Step] = simulated) -> Iterator[Tell]:
    """Something to call with each Progress (whatever `step` understands): a bar with an ETA on a
    terminal, else a line now and then."""
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _bar() as update:
            yield lambda p: update(step(p))
    else:
        lines = _lines()
        yield lambda p: lines(step(p))


class Stages:
    """Progress of work in stages: what is said ends a stage, and the next has a bar of its own."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._bars = contextlib.ExitStack()
        self._tell: Tell | None = None

    def __enter__(self) -> Stages:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def say(self, words: str) -> None:
        """Talk between two stages."""
        self._end()
        say(words, self._quiet)

    def tell(self, p: Progress) -> None:
        """How far the stage is."""
        if self._tell is None:
            self._tell = self._bars.enter_context(progress(self._quiet))
        self._tell(p)

    def _end(self) -> None:
        self._bars.close()
        self._tell = None


@contextlib.contextmanager
def _bar() -> Iterator[Callable[[Step], None]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("ETA"),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, TimeRemainingColumn(elapsed_when_finished=True), console=console, transient=True
    ) as bar:
        task = bar.add_task("beginning", total=1.0)

        def update(p: Step) -> None:
            if p.ahead:
                bar.console.print(p.ahead, markup=False, highlight=False)
            bar.update(task, completed=p.fraction, description=p.words)
            if p.after:
                bar.console.print(p.after, markup=False, highlight=False)

        yield update


def _lines() -> Callable[[Step], None]:
    began = time.monotonic()
    told = began

    def update(p: Step) -> None:
        nonlocal told
        for words in filter(None, (p.ahead, p.after)):
            say(words)
        now = time.monotonic()
        if now - told < PLAIN_EVERY_S or p.done:
            return
        told = now
        left = (now - began) * (1 - p.fraction) / p.fraction if p.fraction > 0 else None
        eta = "" if left is None else f", about {_time(left)} left"
        say(f"{p.words}, {p.fraction:.0%} done{eta}")

    return update


INVALID = 1
"""Exit status: a check failed."""


def invalid(runs: Sequence[Run]) -> bool:
    """Says of each Run whose numbers are not to be used that they are not, and why. True: there is
    one."""
    found = [run for run in runs if run.meta.invalid]
    for run in found:
        say(refusal(run))
    return bool(found)


def refusal(run: Run) -> str:
    """That a Run is invalid, and why; empty if it is not."""
    if not run.meta.invalid:
        return ""
    return "\n".join(
        [
            f"INVALID: the numbers of {run.name} are not to be used",
            *(f"  {why}" for why in run.meta.invalid),
        ]
    )


def finished(stop: UnfinishedError) -> list[Run]:
    """The Runs that hold something although some runs failed.

    Raises:
        UnfinishedError: none does.
    """
    runs = [run for run in stop.runs if run.seeds]
    if not runs:
        raise stop
    return runs


def failed(stops: Iterable[UnfinishedError]) -> list[dict[str, Any]]:
    """Says which runs failed, and why; the same as plain values, for JSON."""
    found = []
    for stop in stops:
        hint = f"\nhint: {stop.hint}" if stop.hint else ""
        say(f"error: {stop.problem}{hint}")
        found += [one.to_dict() for one in stop.failed]
    return found


def interrupted(stop: Interrupted, kept: bool) -> NoReturn:
    """Says what Ctrl-C left behind, and what had failed before, and exits."""
    runs, missing = stop.runs, stop.missing
    done = sum(len(run.seeds) for run in runs)
    total = done + len(missing)
    say(f"\ninterrupted: {done} of {total} runs had finished")
    for run in runs:
        lost = sorted(seed for other, seed in missing if other is run)
        state = "nothing kept"
        if run.seeds and kept:
            state = f"seeds kept: {text.ranges(run.seeds)} in {run.path}"
        say(f"  {run.name}: {state}; missing: {text.ranges(lost) or 'none'}")
    if done and stop.stored:
        say("the same command goes on from here: what had finished is in the store")
    failed(filter(None, [stop.failed]))
    raise click.exceptions.Exit(130)


# ------------------------------------------------------------------------------------------ files


def check_parent(file: Path | None) -> None:
    """Refuses, before long work begins, a file that could not be written for want of its folder."""
    if file is not None and not file.parent.is_dir():
        raise click.BadParameter(f"{file.parent} is not a folder", param_hint=str(file))


def write(file: Path, content: str | bytes) -> Path:
    """Writes a file whole or not at all."""
    from sojourn.records import write_named

    return write_named(file, content)


def write_below_home(file: Path, words: str) -> None:
    """Writes a text file of this user's own, with the folders that it needs."""

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"can't make {file.parent}: {error.strerror or error}",
            "without --install it is printed",
        ) from None
    write(file, words)


# ---------------------------------------------------------------------------------------- figures

FORMATS = ("svg", "pdf", "png")


def _formats(suffixes: Sequence[str]) -> list[str]:
    """Each once: `--figures png,pdf` is `--figures png --figures pdf`."""
    words = (word for suffix in suffixes for word in suffix.split(","))
    return list(dict.fromkeys(word.strip().lstrip(".").lower() for word in words))


def check_suffixes(suffixes: Sequence[str], option: str = "--figures") -> None:
    """Refuses what figures can't be written as."""
    for suffix in _formats(suffixes):
        if suffix not in FORMATS:
            raise click.BadParameter(
                f"{suffix!r} is not one of {', '.join(FORMATS)}", param_hint=option
            )


def capture(runs: Sequence[Run], folder: Path) -> int:
    """Writes each seed of these Runs as a capture, of several Runs into a folder each; how many."""
    from sojourn.records import pcapng

    written = 0
    for run in runs:
        part = folder / run.path.name if len(runs) > 1 else folder
        try:
            part.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"can't make {part}: {error.strerror or error}", "the Runs are kept: export them"
            ) from None
        for seed in run.seeds:
            write(part / f"seed-{seed}.pcapng", pcapng.capture(run, seed))
            written += 1
    return written


def draw(runs: Sequence[Run], folder: Path, suffixes: Sequence[str]) -> int:
    """Draws every figure that these Runs can fill, once per suffix; how many files."""
    from sojourn import figures

    drawn = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, figure in figures.all_for(runs).items():
            for suffix in _formats(suffixes):
                figures.save(figure, folder / f"{name}.{suffix}")
                drawn += 1
    except OSError as error:
        raise UserError(
            f"can't draw into {folder}: {error.strerror or error}",
            "the Runs are kept: draw them elsewhere",
        ) from None
    return drawn
