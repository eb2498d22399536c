"""Hides packages of this repository: an import fails as if the package weren't installed, so
`sojourn.extras` does not have it. Subprocesses hide the same packages (sitecustomize.py).

While a test of one package runs, conftest.py hides the packages that this package does not depend
on.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # like typing.TYPE_CHECKING, without the import of typing in each subprocess
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

VARIABLE = "SOJOURN_TESTS_HIDE"
"""The environment variable with the packages that subprocesses hide: names separated by spaces."""

_names: frozenset[str] = frozenset()
_aside: dict[str, ModuleType] = {}


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


def hide(names: Iterable[str]) -> None:
    """Hides these packages, and no others. Their imported modules are set aside, and restored
    unchanged when the package becomes visible again."""
    global _names
    if (names := frozenset(names)) == _names:
        return
    if not any(isinstance(finder, Refusal) for finder in sys.meta_path):
        sys.meta_path.insert(0, Refusal())
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
