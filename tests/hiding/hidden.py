"""Hides packages of this repository: their imports fail as those of a package that is not installed,
and their entry points are not found. Subprocesses hide the same (sitecustomize.py).

A test of one package runs with the packages hidden that its own does not depend on: conftest.py.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder

TYPE_CHECKING = False  # as typing's, which each subprocess would import for it
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from importlib.metadata import Distribution
    from types import ModuleType
    from typing import Any

VARIABLE = "SOJOURN_TESTS_HIDE"
"""What subprocesses hide: names of packages, with spaces between them."""

_names: frozenset[str] = frozenset()
_aside: dict[str, ModuleType] = {}
_distributions = PathFinder.find_distributions


class Refusal:
    """A finder that stands before all others."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] in _names:
            raise ModuleNotFoundError(
                f"No module named {name!r} (hidden from this test)", name=name
            )
        return None


def visible(distributions: Iterable[Distribution]) -> Iterator[Distribution]:
    """These distributions without hidden ones."""
    for distribution in distributions:
        # Its folder's name: to read the name of each from its metadata takes longer than all else.
        name = getattr(distribution, "_normalized_name", None) or distribution.name
        if name.replace("-", "_") not in _names:
            yield distribution


def found(*words: Any, **named: Any) -> Iterator[Distribution]:
    """The distributions that importlib.metadata finds, without hidden ones."""
    return visible(_distributions(*words, **named))


def filter_all_finders() -> None:
    """The same where another finder has taken over: the package importlib_metadata, which dask imports,
    puts its own in the place of Python's. A subprocess that has imported neither is left alone."""
    metadata = sys.modules.get("importlib.metadata")
    if metadata is None or hasattr(metadata.Distribution.discover, "plain"):
        return
    plain = metadata.Distribution.discover

    def discover(**named: Any) -> Iterator[Distribution]:
        return visible(plain(**named))

    discover.plain = plain  # type: ignore[attr-defined]
    metadata.Distribution.discover = staticmethod(discover)


def hide(names: Iterable[str]) -> None:
    """Hides the packages of these names, and no others. Modules that were imported before are laid
    aside: when their package is visible again they are the same ones."""
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
    # What packages there are is asked once in a process, and again by this file when it is imported.
    if extras := sys.modules.get("sojourn.extras"):
        extras.installed.cache_clear()
    sys.modules.pop("sojourn.cli.list", None)


def hide_in_subprocesses(names: Iterable[str]) -> None:
    """Hides them in each Python that is started from now on."""
    os.environ[VARIABLE] = " ".join(sorted(names))
    here = os.path.dirname(__file__)
    path = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    if here not in path:
        os.environ["PYTHONPATH"] = os.pathsep.join([here, *path])
