"""Options that several verbs take, each declared once.

A block is a frozen dataclass whose fields are options:

    @options.block(options.OutputOptions, out="Folder of the Run.")
    def run(output: options.OutputOptions) -> None: ...

A verb receives each block as one argument, named like the class without `Options`. Where it takes
the block, a verb can replace the help text or any other click setting of an option.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sojourn.cli.work import MOST_SEEDS
from sojourn.defaults import ENGINES, SAMPLINGS, SEEDS_END
from sojourn.errors import UserError

if TYPE_CHECKING:
    from sojourn.engine import ClusterAddress
    from sojourn.scenario import Scenario
    from sojourn.scenario.qdisc import LinkLayer
    from sojourn.sweeps.until import Precision

Verb = Callable[..., Any]
Option = Callable[[Verb], Verb]
Parsed = TypeVar("Parsed")
OwnWords = str | Mapping[str, Any]
"""A verb's own help text for an option, or click's settings; `also` adds names of the option."""


def option(*names: str, **settings: Any) -> Any:
    """A field of a block: an option with these names and click's settings."""
    return dataclasses.field(metadata={"names": names, "settings": settings})


def block(kind: type[Any], **own: OwnWords) -> Option:
    """Adds the options of a block to a verb, in the order of its fields.

    The verb receives their values as one argument.
    """
    fields = dataclasses.fields(kind)
    argument = kind.__name__.removesuffix("Options").lower()
    assert own.keys() <= {each.name for each in fields}, f"{kind.__name__} has no such options"

    def decorate(verb: Verb) -> Verb:
        @functools.wraps(verb)
        def wrapper(**values: Any) -> Any:
            gathered = kind(**{each.name: values.pop(each.name) for each in fields})
            return verb(**values, **{argument: gathered})

        decorated: Verb = wrapper
        for each in reversed(fields):
            decorated = _click(each, own.get(each.name, {}))(decorated)
        return decorated

    return decorate


def one(kind: type[Any], name: str, own: OwnWords = "") -> Option:
    """Adds a single option of a block to a verb, as an argument of its own."""
    (field,) = (each for each in dataclasses.fields(kind) if each.name == name)
    return _click(field, own or {})


def _click(field: dataclasses.Field[Any], own: OwnWords) -> Option:
    settings = {"help": own} if isinstance(own, str) else dict(own)
    names = (*field.metadata["names"], *settings.pop("also", ()))
    return click.option(*names, field.name, **{**field.metadata["settings"], **settings})


# ------------------------------------------------------------------------- results and messages


@dataclass(frozen=True)
class OutputOptions:
    """The folder of results. Each verb's help says which results."""

    out: Path | None = option("-o", "--out", type=click.Path(path_type=Path), metavar="DIR")
    force: bool = option(
        "--force", is_flag=True, help="Replace Runs that are already in the output folder."
    )


@dataclass(frozen=True)
class FigureOptions:
    """The figures to draw. Each verb's help says whether it draws without this option."""

    suffixes: tuple[str, ...] = option("--figures", multiple=True, metavar="SUFFIX")


@dataclass(frozen=True)
class TalkOptions:
    """The output on the terminal."""

    as_json: bool = option("--json", is_flag=True, help="Print one JSON object instead of text.")
    quiet: bool = option(
        "-q", "--quiet", is_flag=True, help="No progress and no messages; data and errors only."
    )


# -------------------------------------------------------------------------------------- scenarios

TABLE_FORMATS = ("table", "md", "csv", "latex", "json", "parquet")
"""Formats of the table; `grid_text` writes them."""


def _names(
    _context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    """Splits at commas and drops repeats: `--columns a,b` is `--columns a --columns b`."""
    return tuple(dict.fromkeys(name.strip() for words in given for name in words.split(",")))


@dataclass(frozen=True)
class VariationOptions:
    """Changes to the scenario: seeds, keys, a sweep."""

    seed: int | None = option(
        "--seed",
        type=click.IntRange(0, SEEDS_END - 1),
        metavar="N",
        help="Run this seed instead of the scenario's.",
    )
    seeds: int | None = option(
        "--seeds",
        type=click.IntRange(1, MOST_SEEDS),
        metavar="N",
        help="Run N seeds, counted up from the scenario's (or --seed); tables show mean and 95 % interval.",
    )
    changes: tuple[str, ...] = option(
        "--set",
        multiple=True,
        metavar="KEY=VALUE",
        help='Change the scenario: --set bottleneck.rate="5 Mbit/s". May be repeated.',
    )
    vary: tuple[str, ...] = option(
        "--vary",
        multiple=True,
        metavar="KEY=VALUE,...",
        help="Sweep over a key: --vary flow.bulk.count=1,4,16, or a range to draw from, 1..16. May be"
        " repeated: every combination is run.",
    )
    samples: int | None = option(
        "--samples",
        type=click.IntRange(min=1),
        metavar="N",
        help="Points drawn from the ranges of a sweep: --vary bottleneck.rate=1mbit..100mbit --samples 50.",
    )
    sampling: str | None = option(
        "--sampling",
        type=click.Choice(SAMPLINGS),
        help=f"How the points are drawn: spread over each range, or independently. [default: {SAMPLINGS[0]}]",
    )
    sampling_seed: int | None = option(
        "--sampling-seed",
        type=click.IntRange(min=0),
        metavar="N",
        help="The seed of the generator that draws the points. [default: 1]",
    )

    @property
    def given(self) -> bool:
        """Whether any of these options was given."""
        return self.seed is not None or self.seeds is not None or bool(self.changes + self.sweep)

    @property
    def sweep(self) -> tuple[str, ...]:
        """The keys to sweep over, as KEY=VALUES."""
        drawn = {
            "samples": self.samples,
            "sampling": self.sampling,
            "sampling_seed": self.sampling_seed,
        }
        more = (f"{key}={value}" for key, value in drawn.items() if value is not None)
        return (*self.vary, *more)

    def wanted(self, scenario: Scenario) -> list[int] | None:
        """The seeds to run; None: those of the scenario."""
        if self.seed is None and self.seeds is None:
            return None
        first = self.seed if self.seed is not None else scenario.seeds[0]
        end = first + (self.seeds or 1)
        if end > SEEDS_END:
            raise click.BadParameter(
                f"{self.seeds} seeds from {first} go past the last seed, 2^63 - 1",
                param_hint="--seeds",
            )
        return list(range(first, end))


@dataclass(frozen=True)
class TableOptions:
    """The table of a sweep or comparison."""

    form: str | None = option(
        "--format",
        type=click.Choice(TABLE_FORMATS),
        help="Print one table: a row for each variant, with its swept values and numbers.",
    )
    columns: tuple[str, ...] = option(
        "--columns",
        multiple=True,
        metavar="NAME,...",
        callback=_names,
        help="The numbers in that table, such as ping_p95,goodput; all: every number. [default: those that fit]",
    )

    @property
    def given(self) -> bool:
        """Whether any of these options was given."""
        return self.form is not None or bool(self.columns)


@dataclass(frozen=True)
class ExecutionOptions:
    """The engine and its number of threads."""

    engine: str = option(
        "-e",
        "--engine",
        type=click.Choice(ENGINES),
        default=next(iter(ENGINES)),
        show_default=True,
        help="The engine that runs the scenario: sojourn list engines.",
    )
    jobs: int | None = option(
        "-j",
        "--jobs",
        type=click.IntRange(min=1),
        metavar="N",
        help="Number of threads; netns has one. [default: one per core]",
    )


@dataclass(frozen=True)
class ProgramOptions:
    """Permission to run a scenario's programs."""

    allowed: bool = option(
        "--allow-programs",
        is_flag=True,
        help="Run the scenario's programs in the guest of the engine kernel.",
    )


@dataclass(frozen=True)
class ClusterOptions:
    """The other machines that run the scenario."""

    address: str | None = option(
        "--cluster",
        metavar="ADDRESS",
        help="Run on the workers of a Dask cluster: tcp://HOST:PORT or tls://HOST:PORT of its scheduler,"
        " or a scheduler file.",
    )
    ca_file: Path | None = option(
        "--tls-ca-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Certificate of the authority that signed a tls:// cluster's certificates (PEM).",
    )
    cert: Path | None = option(
        "--tls-cert",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="This machine's certificate for a tls:// cluster (PEM).",
    )
    key: Path | None = option(
        "--tls-key",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="The key of --tls-cert, if it is in a file of its own.",
    )

    def wanted(self, execution: ExecutionOptions) -> ClusterAddress | None:
        """The cluster's address; None: the scenario runs on this machine."""
        files = {"ca_file": self.ca_file, "cert": self.cert, "key": self.key}
        given = {name: str(file) for name, file in files.items() if file is not None}
        if self.address is None:
            if given:
                raise click.UsageError("--tls-ca-file, --tls-cert and --tls-key need --cluster")
            return None
        if execution.jobs is not None:
            raise click.UsageError(
                "--jobs sets the threads of this machine, but --cluster runs seeds on its workers;"
                " set their threads with dask worker --nthreads"
            )
        from sojourn.engine import ClusterAddress

        return ClusterAddress(self.address, **given)


@dataclass(frozen=True)
class StoreOptions:
    """Use of finished seeds from earlier runs."""

    fresh: bool = option(
        "--fresh",
        is_flag=True,
        help="Run every seed, even if the store of finished seeds has it (sojourn cache).",
    )


MOST_UNASKED = 100
"""Most seeds of a Run with --until and without --at-most."""


def _precision(
    _context: click.Context, _parameter: click.Parameter, given: str | None
) -> tuple[str, float] | None:
    """Parses `ping_p95=3%` into the name of a number and a share."""
    if given is None:
        return None
    from sojourn.sweeps import grid
    from sojourn.units import parse_probability

    key, equals, share = given.partition("=")
    if not equals:
        raise click.BadParameter(f"{given!r} is not KEY=SHARE; write --until ping_p95=3%")
    grid.check([key.strip()])
    found = parse_probability(share.strip())
    if found == 0:
        raise click.BadParameter("no number of seeds makes an interval of ±0 %; write 1%, say")
    return key.strip(), found


@dataclass(frozen=True)
class UntilOptions:
    """The wanted precision of a number."""

    until: tuple[str, float] | None = option(
        "--until",
        metavar="KEY=SHARE",
        callback=_precision,
        help="Add seeds, twice as many each round, until half of the 95 % interval is at most this share of"
        " the number: --until ping_p95=3%. KEY: as in --columns.",
    )
    most: int | None = option(
        "--at-most",
        type=click.IntRange(2, MOST_SEEDS),
        metavar="N",
        help=f"Most seeds of each variant with --until. [default: {MOST_UNASKED}]",
    )

    @property
    def wanted(self) -> Precision | None:
        """The precision of --until; None: the given number of seeds is run."""
        from sojourn.sweeps.until import Precision

        if self.until is None:
            if self.most is not None:
                raise click.UsageError("--at-most is the most seeds that --until runs: give both")
            return None
        return Precision(*self.until, self.most or MOST_UNASKED)


# ---------------------------------------------------------------------- a line, and a shaper on it


def placed(parse: Callable[[str], Parsed]) -> Callable[..., Any]:
    """A callback that parses an option's value, or each value of a repeated option. An error names
    the option."""

    def read(
        _: click.Context, parameter: click.Parameter, given: str | tuple[str, ...] | None
    ) -> Parsed | tuple[Parsed, ...] | None:
        name = parameter.opts[0]
        if isinstance(given, tuple):
            return tuple(parsed(name, parse, each) for each in given)
        return None if given is None else parsed(name, parse, given)

    return read


def parsed(name: str, parse: Callable[[str], Parsed], given: str) -> Parsed:
    """Parses the value given to the option of this name."""
    try:
        return parse(given)
    except UserError as error:
        error.place = name
        raise


def time_range(word: str, *, what: str, example: str, zero: bool = True) -> tuple[int, ...]:
    """Parses TIME or TIME..TIME: the times in ns. `what` and `example` name a time in errors.

    Raises:
        UserError: a part is not a time.
    """
    from sojourn.units import parse_duration

    ends = word.split("..")
    return tuple(parse_duration(end.strip(), what=what, example=example, zero=zero) for end in ends)


def rate(given: str) -> int:
    """The rate of a line or of its shaper, bit/s."""
    from sojourn.linux.operations import parse_shaped_rate

    return parse_shaped_rate(given)


def layer(given: str) -> LinkLayer:
    """The bytes that a line adds to each packet."""
    from sojourn.scenario.qdisc import LinkLayer

    return LinkLayer.parse(given)


@dataclass(frozen=True)
class RateOptions:
    """Rates in each direction, bit/s. Each verb's help says whose rates."""

    up: int | None = option("--up", metavar="RATE", callback=placed(rate))
    down: int | None = option("--down", metavar="RATE", callback=placed(rate))


@dataclass(frozen=True)
class ShaperOptions:
    """The queue below a shaper, and the bytes that the line adds to each packet."""

    qdisc: str = option(
        "--qdisc",
        default="fq_codel",
        show_default=True,
        metavar="WORDS",
        help="fq_codel, codel, cake, bfifo or pfifo, in tc's syntax. Parameters that you leave out are chosen for the rate.",
    )
    link: LinkLayer | None = option(
        "--link",
        metavar="LAYER",
        callback=placed(layer),
        help="The bytes that the line adds to a packet: docsis (cable), pppoe-ptm (VDSL), ethernet (fibre), ..."
        " or `atm overhead 40`.",
    )
