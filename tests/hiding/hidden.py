"""Hides packages of this repository: an import fails as if the package weren't installed, and the
package's entry points are not found. Subprocesses hide the same packages (sitecustomize.py).

While a test of one package runs, conftest.py hides the packages that this package does not depend
on.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without the import of typing in each subprocess
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from importlib.metadata import Distribution
    from types import ModuleType
    from typing import Any

VARIABLE = "SOJOURN_TESTS_HIDE"
"""The environment variable with the packages that subprocesses hide: names separated by spaces."""

_names: frozenset[str] = frozenset()
_aside: dict[str, ModuleType] = {}
_distributions = PathFinder.find_distributions


class Refusal:
    """A finder that comes before all others."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] in _names:
            raise ModuleNotFoundError(
                f"No module named {name!r} (hidden from this test)", name=name
            )
        return None


def visible(distributions: Iterable[Distribution]) -> Iterator[Distribution]:
    """Yields the distributions that are not hidden."""
    for distribution in distributions:
        # The name of its folder: reading every name from the metadata would take longer than
        # everything else.
        name = getattr(distribution, "_normalized_name", None) or distribution.name
        if name.replace("-", "_") not in _names:
            yield distribution


def found(*words: Any, **named: Any) -> Iterator[Distribution]:
    """Yields the distributions that importlib.metadata finds, except hidden ones."""
    return visible(_distributions(*words, **named))


def filter_all_finders() -> None:
    """Filters the results of other finders as well. The package importlib_metadata, which dask
    imports, replaces Python's finder with its own. Without effect in a subprocess that imported
    neither."""
    metadata = sys.modules.get("importlib.metadata")
    if metadata is None or hasattr(metadata.Distribution.discover, "plain"):
        return
    plain = metadata.Distribution.discover

    def discover(**named: Any) -> Iterator[Distribution]:
        return visible(plain(**named))

    discover.plain = plain  # type: ignore[attr-defined]
    metadata.Distribution.discover = staticmethod(discover)


def hide(names: Iterable[str]) -> None:
    """Hides these packages, and no others. Their imported modules are set aside, and restored
    unchanged when the package becomes visible again."""
    global _names
    if (names := frozenset(names)) == _names:
        return
    if not any(isinstance(finder, Refusal) for finder in sys.meta_path):
        sys.meta_path.insert(0, Refusal())
        PathFinder.find_distributions = staticmethod(found)
    filter_all_finders()
    _names = names
    for name in [name for name in sys.modules if name.partition(".")[0] in names]:
        _aside[name] = sys.modules.pop(name)
    for name in [name for name in _aside if name.partition(".")[0] not in names]:
        sys.modules[name] = _aside.pop(name)
    # The list of installed packages is cached once per process, and again when cli.list is
    # imported.
    if extras := sys.modules.get("sojourn.extras"):
        extras.installed.cache_clear()
    sys.modules.pop("sojourn.cli.list", None)


def hide_in_subprocesses(names: Iterable[str]) -> None:
    """Hides these packages in each Python process that is started from now on."""
    os.environ[VARIABLE] = " ".join(sorted(names))
    here = os.path.dirname(__file__)
    path = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    if here not in path:
        os.environ["PYTHONPATH"] = os.pathsep.join([here, *path])
