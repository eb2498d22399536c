"""Shared by the verbs that run scenarios: seeds and changes, progress with an ETA, Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
"""Without a terminal, progress is one line in this many seconds: often enough to show that the run
is alive, seldom enough for a log."""

LONG_S = 10.0
"""A run that takes longer than this is announced with its estimated time."""

MOST_SEEDS = 10_000
"""The most seeds of one scenario."""

STDIN = "-"


def scenario(
    path: Path, changes: Sequence[str] = (), quiet: bool = False, vary: Sequence[str] = ()
) -> Scenario:
    """Reads the scenario: a file, an example's name, or `-` for stdin. Applies --set and --vary,
    and prints the scenario's notes."""
    from sojourn.scenario import load, loads, read

    if str(path) == STDIN:
        text = read(sys.stdin.buffer, "stdin")
        found = loads(text, name="stdin", folder=Path())
    else:
        found = load(path)
    found = varied(changed(found, changes), vary)
    print_notes([found], quiet)
    return found


def permit(scenarios: Sequence[Scenario], engine: str, allowed: bool) -> None:
    """Checks that the scenarios' programs may run: the option allows it, or the user's answer on
    the terminal.

    Raises:
        UserError: there is no permission, or the engine can't run the programs.
    """
    with_programs = [one for one in scenarios if has_programs(one.document())]
    if not with_programs:
        return
    from sojourn import engine as engines
    from sojourn import guest_programs

    engines.check(with_programs, engine)
    if not allowed and not guest_programs.allowed():
        runs = [each.realise(each.seeds[0]) for one in with_programs for each in one.variants()]
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            guest_programs.require(runs)
        say("the scenario runs programs of this host in the guest:")
        say(guest_programs.shown(guest_programs.commands(runs)))
        if not click.confirm("run them?", err=True):
            guest_programs.require(runs)
    guest_programs.allow_programs()


def has_programs(document: Mapping[str, Any]) -> bool:
    """Whether a scenario's document has programs, on nodes or as flows, in some variant."""
    kinds = [flow.get("kind") for flow in document.get("flow", ())]
    for key, values in document.get("sweep", {}).items():
        if key.endswith(".kind") and isinstance(values, list):
            kinds += values
    return "program" in document or "program" in kinds


def print_notes(scenarios: Sequence[Scenario], quiet: bool) -> None:
    """Prints the notes on scenarios, each once."""
    for note in dict.fromkeys(note for scenario in scenarios for note in scenario.notes):
        say(f"note: {note}", quiet)


def print_doubts(disciplines: Iterable[str], quiet: bool) -> None:
    """Prints the notes on disciplines that are not in a scenario yet."""
    from sojourn.scenario.qdisc import Qdisc
    from sojourn.units import UnitError

    for words in disciplines:
        # A wrong discipline is refused by the code that uses it.
        with contextlib.suppress(UnitError):
            for message, hint, _ in Qdisc.parse(words).notes:
                say(f"note: {words}: {message}\nhint: {hint}", quiet)


def check_words(paths: Sequence[Path], changes: Sequence[str]) -> None:
    """Refuses the rest of a --set whose value has blanks and no quotes: `--set bottleneck.rate=5
    Mbit/s`."""
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
    """Refuses a missing file before the module that reads it is imported."""
    # If the path can't be looked up, the code that opens it reports why.
    with contextlib.suppress(OSError):
        if not path.exists():
            raise UserError(f"there is no file {path}", hint)


def stem(path: Path) -> str:
    """The name of a scenario's folder."""
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
    """The scenario as a sweep over every --vary too. A --vary replaces the scenario's own values of
    that key."""
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
    merged = {**scenario.sweep, **sweep}
    if not any(isinstance(values, str) for key, values in merged.items() if key not in OF_SAMPLES):
        # No range is left, so the scenario's keys about samples are dropped. Those of --vary stay, and
        # are refused later.
        merged = {
            key: value for key, value in merged.items() if key not in OF_SAMPLES or key in sweep
        }
    return scenario.with_({"sweep": merged})


OF_SAMPLES = ("samples", "sampling", "sampling_seed")
"""The keys of `[sweep]` that set the sampling and vary nothing."""
_RANGE = re.compile(r"(?:(log|linear)\s+)?([^\s\[\"']+(?: ?[^\s.]+)?)\s*\.\.\s*(.+)")


def _values(written: str) -> list[Any] | str:
    """Parses the values to sweep: a list as in a scenario file, values between commas, or a range
    such as 1mbit..100mbit."""
    if found := _RANGE.fullmatch(written):
        scale, low, high = found.groups()
        ends = " .. ".join(_value(end) if _TC_RATE.fullmatch(end) else end for end in (low, high))
        return f"{scale} {ends}" if scale else ends
    value = _value(written)
    if isinstance(value, list):
        return value
    return [_value(each.strip()) for each in written.split(",")]


_TC_RATE = re.compile(r"[0-9.]+[kmgt]?bit", re.IGNORECASE)


def _value(written: str) -> Any:
    """Parses a value: numbers, booleans, lists and quoted text as in TOML, anything else as text.

    A rate may be written as in tc(8), 5mbit: without a blank it needs no quotes in a shell.
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
    """Prints data to stdout, without control characters except line ends and tabs.

    Matches of `bold` are bold on a terminal, unless NO_COLOR is set. If the reader goes away (`|
    head`), the work continues, so that the files on disk are complete.
    """
    harmless = sanitize.plain(words, lines=True)
    if bold is not None and not os.environ.get("NO_COLOR"):
        harmless = bold.sub(lambda found: click.style(found[0], bold=True), harmless)
    _to_stdout(harmless)


def show_bytes(content: bytes) -> None:
    """Writes binary data to stdout."""
    _to_stdout(content, ends=False)


def _to_stdout(content: str | bytes, ends: bool = True) -> None:
    try:
        click.echo(content, nl=ends)
    except OSError as error:
        # Python flushes stdout at exit, which would fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return

        raise UserError(
            f"can't write to stdout: {error.strerror or error}",
            "make room, or send the output elsewhere",
        ) from None


def say(words: str, quiet: bool = False) -> None:
    """Prints a message to stderr, without control characters. Errors of writing are ignored."""
    if not quiet:
        with contextlib.suppress(OSError):
            click.echo(sanitize.plain(words, lines=True), err=True)


@dataclass(frozen=True)
class Step:
    """The progress of long work: words, and a share of 1."""

    words: str
    fraction: float
    done: bool = False
    """Whether the work has finished."""
    ahead: str = ""
    """Printed before the work begins."""
    after: str = ""
    """Printed when the work is done."""


Show = Callable[[Any], None]


def simulated(p: Progress) -> Step:
    """The progress of a scenario's runs."""
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
    """A rounded time for people: 40 s, 5 min, 3.2 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.3g} h"


@contextlib.contextmanager
def progress(quiet: bool, step: Callable[[Any], Step] = simulated) -> Iterator[Show]:
    """Yields a function that takes each Progress and shows it: a bar with an ETA on a terminal,
    otherwise a line every `PLAIN_EVERY_S`. `step` converts a Progress."""
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _bar() as update:
            yield lambda p: update(step(p))
    else:
        lines = _lines()
        yield lambda p: lines(step(p))


class Stages:
    """Progress of work in stages. A message ends the stage; the next stage has a bar of its own."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._bars = contextlib.ExitStack()
        self._show: Show | None = None

    def __enter__(self) -> Stages:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def say(self, words: str) -> None:
        """Prints a message between two stages."""
        self._end()
        say(words, self._quiet)

    def show(self, p: Progress) -> None:
        """Shows the progress of the stage."""
        if self._show is None:
            self._show = self._bars.enter_context(progress(self._quiet))
        self._show(p)

    def _end(self) -> None:
        self._bars.close()
        self._show = None


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
    printed = began

    def update(p: Step) -> None:
        nonlocal printed
        for words in filter(None, (p.ahead, p.after)):
            say(words)
        now = time.monotonic()
        if now - printed < PLAIN_EVERY_S or p.done:
            return
        printed = now
        left = (now - began) * (1 - p.fraction) / p.fraction if p.fraction > 0 else None
        eta = "" if left is None else f", about {_time(left)} left"
        say(f"{p.words}, {p.fraction:.0%} done{eta}")

    return update


INVALID = 1
"""Exit status: a check failed."""


def invalid(runs: Sequence[Run]) -> bool:
    """Prints why the numbers of each invalid Run must not be used. Returns whether there is one."""
    found = [run for run in runs if run.meta.invalid]
    for run in found:
        say(refusal(run))
    return bool(found)


def refusal(run: Run) -> str:
    """The message that a Run is invalid, with the reasons; empty if the Run is valid."""
    if not run.meta.invalid:
        return ""
    return "\n".join(
        [
            f"INVALID: the numbers of {run.name} must not be used",
            *(f"  {why}" for why in run.meta.invalid),
        ]
    )


def finished(stop: UnfinishedError) -> list[Run]:
    """The Runs with at least one finished seed, when some runs failed.

    Raises:
        UnfinishedError: there is none.
    """
    runs = [run for run in stop.runs if run.seeds]
    if not runs:
        raise stop
    return runs


def failed(stops: Iterable[UnfinishedError]) -> list[dict[str, Any]]:
    """Prints which runs failed, and why. Returns the same as plain values, for JSON."""
    found = []
    for stop in stops:
        hint = f"\nhint: {stop.hint}" if stop.hint else ""
        say(f"error: {stop.problem}{hint}")
        found += [one.to_dict() for one in stop.failed]
    return found


def interrupted(stop: Interrupted, kept: bool) -> NoReturn:
    """Prints what Ctrl-C left, and the runs that had failed before, and exits."""
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
        say("the same command continues from here: the store has the finished runs")
    failed(filter(None, [stop.failed]))
    raise click.exceptions.Exit(130)


# ------------------------------------------------------------------------------------------ files


def check_parent(file: Path | None) -> None:
    """Refuses a file whose folder does not exist, before long work begins."""
    if file is not None and not file.parent.is_dir():
        raise click.BadParameter(f"{file.parent} is not a folder", param_hint=str(file))


def make_folder(folder: Path) -> None:
    """Makes a folder for results."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"can't write to {folder}: {error.strerror or error}", "choose another folder with -o"
        ) from None


def write(file: Path, content: str | bytes) -> Path:
    """Writes a file whole or not at all."""
    from sojourn.records import write_named

    return write_named(file, content)


def write_below_home(file: Path, words: str) -> None:
    """Writes a text file in the user's home, and makes its folders."""

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"can't make {file.parent}: {error.strerror or error}",
            "without --install the script is printed",
        ) from None
    write(file, words)


# ---------------------------------------------------------------------------------------- figures

FORMATS = ("svg", "pdf", "png")


def _formats(suffixes: Sequence[str]) -> list[str]:
    """Splits at commas and drops repeats: `--figures png,pdf` is `--figures png --figures pdf`."""
    words = (word for suffix in suffixes for word in suffix.split(","))
    return list(dict.fromkeys(word.strip().lstrip(".").lower() for word in words))


def check_suffixes(suffixes: Sequence[str], option: str = "--figures") -> None:
    """Refuses a format that figures can't have."""
    for suffix in _formats(suffixes):
        if suffix not in FORMATS:
            raise click.BadParameter(
                f"{suffix!r} is not one of {', '.join(FORMATS)}", param_hint=option
            )


def capture(runs: Sequence[Run], folder: Path) -> int:
    """Writes each seed of these Runs as a capture, with a folder for each of several Runs. Returns
    the number of files."""
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
    """Draws every figure that these Runs can fill, once per format. Returns the number of files."""
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
