"""The standing set, read from its folders: a new file in them belongs to it.

cases/*.toml            cases of `sojourn agree`, all variants of each
cases/ENGINE/*.toml     cases for features that only the kernel of ENGINE has
replays/                the same for `sojourn replay`
controls/               scenarios into which `product` puts each congestion control
product.toml            the scenario into which `product` puts each congestion control, feedback
                        and discipline
quick.toml              some of the cases: files with the labels of their variants
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from sojourn.agreement.product import combinations, each_control
from sojourn.engine.registry import fits
from sojourn.scenario import Scenario, load

FOLDER = Path(__file__).parent
KERNEL = "kernel"
"""The default engine for comparisons with the simulator."""


def cases(engine: str = KERNEL) -> list[Path]:
    """The files of the standing set for this engine."""
    return _files(FOLDER / "cases", engine)


def replays(engine: str = KERNEL) -> list[Path]:
    """The files whose queues this engine's kernel records for the standing set of `replay`."""
    return _files(FOLDER / "replays", engine)


def standing(engine: str = KERNEL) -> list[Scenario]:
    """The standing set for this engine: each variant of each case, the products, and each
    control."""
    return [
        *named([load(file) for file in cases(engine)]),
        *products(engine),
        *controls(engine),
    ]


def quick() -> list[Scenario]:
    """Some cases of the standing set; a run of them takes minutes."""
    wanted = tomllib.loads((FOLDER / "quick.toml").read_text(encoding="utf-8"))
    files = {file.stem: file for file in cases()}
    loaded = [load(files[name]) for name in wanted]
    return [
        variant
        for scenario, labels in zip(loaded, wanted.values(), strict=True)
        for variant in _named(scenario, labels)
    ]


def products(engine: str = KERNEL) -> list[Scenario]:
    """Each combination of a congestion control, a feedback and a discipline that this engine's
    kernel has."""
    return _made(engine, FOLDER / "product.toml", combinations)


def controls(engine: str = KERNEL) -> list[Scenario]:
    """The scenarios of `controls/`, each with each congestion control that this engine's kernel
    has."""
    files = _files(FOLDER / "controls", engine)
    return [cell for file in files for cell in _made(engine, file, each_control)]


def _made(
    engine: str, file: Path, cells: Callable[[Scenario], Iterable[Scenario]]
) -> list[Scenario]:
    base = load(file)
    return [
        cell.with_(label=f"{base.title}: {cell.label}")
        for cell in cells(base)
        if fits(engine, cell)
    ]


def named(scenarios: Sequence[Scenario]) -> list[Scenario]:
    """Every variant of every scenario; if there are several scenarios, each label begins with its
    scenario's title."""
    if len(scenarios) > 1:
        return [variant for scenario in scenarios for variant in _named(scenario)]
    return [
        variant.with_(label=variant.label or scenario.title)
        for scenario in scenarios
        for variant in scenario.variants()
    ]


def _named(scenario: Scenario, wanted: Collection[str] | None = None) -> list[Scenario]:
    """Variants whose labels begin with the scenario's title: all, or those with these labels."""
    return [
        variant.with_(
            label=f"{scenario.title}: {variant.label}" if variant.label else scenario.title
        )
        for variant in scenario.variants()
        if wanted is None or variant.label in wanted
    ]


def _files(folder: Path, engine: str) -> list[Path]:
    """Files for every kernel, then those for this engine's; sorted by name, with numbers by
    value."""
    return [
        file
        for place in (folder, folder / engine)
        for file in sorted(place.glob("*.toml"), key=_by_number)
    ]


def _by_number(file: Path) -> list[tuple[int, int, str]]:
    parts = re.split(r"(\d+)", file.stem)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts if part]
