"""`sojourn list`: lists the disciplines, engines, examples and schemas."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from sojourn import extras
from sojourn.cli import work
from sojourn.defaults import ENGINES
from sojourn.errors import UserError

if TYPE_CHECKING:
    from sojourn.scenario.qdisc import QdiscRecord


NAMES = ("qdiscs", "congestion", "engines", "link-layers", "scenarios", "formats", "schemas")
"""The lists of this package."""
OTHERS = {name: place for package in extras.installed() for name, place in package.lists.items()}
"""The lists of other packages: the place of each, by name."""


@click.command("list")
@click.argument(
    "what",
    required=False,
    type=click.Choice([*NAMES, *OTHERS]),
    metavar=f"[{'|'.join([*NAMES, *OTHERS])}]",
)
@click.argument("schema", required=False, metavar="[SCHEMA]")
def list_(what: str | None, schema: str | None) -> None:
    """List disciplines, engines, examples and other choices.

    The lists are: queue disciplines, congestion controls, engines, link layers, the example
    scenarios that `run` takes by name, the formats of files that `import` reads, the papers that
    `reproduce` takes, and the schemas of the output of `--json`. `list schemas run` prints the
    JSON Schema of `sojourn run --json`.
    """
    if schema is not None:
        _show_schema(what, schema)
        return
    chosen = [what] if what else [*NAMES, *OTHERS]
    for number, name in enumerate(chosen):
        if not what:
            work.show(("\n" if number else "") + f"{name}:")
        lines: Callable[[], list[str]] = (
            _LISTS[name] if name in _LISTS else extras.load(OTHERS[name])
        )
        for line in lines():
            work.show(line if what else f"  {line}")


def _qdiscs() -> list[str]:
    from sojourn.scenario.qdisc import QDISCS

    named = [
        _line(record.simulated, record.in_linux(variant), record.usage(variant))
        + (_since(record) if record.in_linux(variant) else "")
        for record in QDISCS.values()
        for variant in record.variants
    ]
    return [*named, _OWN]


def _since(record: QdiscRecord) -> str:
    """The Linux release that has it, if the default guest does not."""
    return "" if record.since is None else " (Linux {}.{}: kernel-7.3)".format(*record.since)


def _line(simulated: bool, linux: bool, what: str) -> str:
    """A line that starts with the engines that have it; `kernel` stands for every Linux engine."""
    return f"{'sim' if simulated else '':3} {'kernel' if linux else '':6}  {what}"


_OWN = _line(True, False, "FILE.py:CLASS [WORD NUMBER]...  (your own, in Python: docs/own.md)")


def _engines() -> list[str]:
    from sojourn.engine import lacks, stands_for, why_not

    width = max(map(len, ENGINES))
    lines = []
    for name, what in ENGINES.items():
        lines.append(f"{name:{width}}  {what}")
        if reason := why_not(name):
            lines.append(f"{'':{width}}  not ready here: {reason}")
        elif meant := stands_for(name):
            lines.append(f"{'':{width}}  ready here: {meant}")
        elif missing := lacks(name):
            lines.append(f"{'':{width}}  ready here, but without {missing}")
    return lines


def _congestion() -> list[str]:
    from sojourn.engine.kernel.releases import RELEASES
    from sojourn.scenario.linux import CONGESTION

    ours = {
        name: f"  (a module of sojourn's: kernel-{release.name})"
        for release in RELEASES
        for name in release.congestion
    }
    named = [
        _line(record.simulated, record.in_linux or name in ours, name) + ours.get(name, "")
        for name, record in CONGESTION.items()
    ]
    return [*named, _OWN]


def _link_layers() -> list[str]:
    from sojourn.scenario.qdisc import LINK_LAYERS

    width = max(map(len, LINK_LAYERS))
    return [
        f"{name:{width}}  {layer.overhead_bytes} bytes a packet on the wire, {layer.header_bytes} of them seen by the queue"
        + (f"; at least {layer.minimum_bytes}" if layer.minimum_bytes else "")
        + (f"; {layer.cells} cells" if layer.cells != "none" else "")
        for name, layer in LINK_LAYERS.items()
    ]


def _scenarios() -> list[str]:
    from sojourn.scenario import examples, load

    names = examples.names()
    width = max(map(len, names), default=0)
    return [f"{name:{width}}  {load(examples.FOLDER / f'{name}.toml').title}" for name in names]


def _formats() -> list[str]:
    from sojourn import formats

    known = [each for each in formats.formats() if not each.refused]
    width = max(len(each.name) for each in known)
    return [f"{each.name:{width}}  {each.yields.value:11}  {each.made_by}" for each in known]


def _schemas() -> list[str]:
    from sojourn import outputs

    names = {name: outputs.identifier(name) for name in outputs.installed()}
    width = max(map(len, names))
    return [
        f"{name:{width}}  {what}"
        for name, what in [*names.items(), ("tables", "the tables of a seed")]
    ]


def _show_schema(what: str | None, name: str) -> None:
    from sojourn import schemas

    if what != "schemas":
        raise UserError(
            f"'{name}' is an extra word after `list {what}`", "sojourn list schemas [SCHEMA]"
        )
    if name not in schemas.names():
        raise UserError(f"'{name}' is not a schema", f"schemas: {', '.join(schemas.names())}")
    work.show(schemas.text(name).rstrip())


_LISTS: dict[str, Callable[[], list[str]]] = {
    "qdiscs": _qdiscs,
    "congestion": _congestion,
    "engines": _engines,
    "link-layers": _link_layers,
    "scenarios": _scenarios,
    "formats": _formats,
    "schemas": _schemas,
}
