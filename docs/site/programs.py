"""The Python reference: the names of `sojourn` and of its modules for programs, from their
docstrings."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType

import sojourn

FOLDER = "docs/programs"

ROOMS = {
    "sojourn.figures": "one function for each figure: Runs in, a matplotlib Figure out",
    "sojourn.records": "Runs and their tables on disk",
    "sojourn.metrics": "the numbers of a Run",
    "sojourn.judgement": "who wins among Runs",
    "sojourn.scenario.qdisc": "queue disciplines in tc's syntax, as values",
    "sojourn.report": "one page of Runs",
}
"""Modules with names for programs besides `sojourn` itself, and their descriptions."""


def pages() -> dict[str, str]:
    made = {
        f"{FOLDER}/{room.rpartition('.')[2]}.md": _room(room, about)
        for room, about in ROOMS.items()
    }
    return {f"{FOLDER}/index.md": _index(), f"{FOLDER}/sojourn.md": _room("sojourn", ""), **made}


def _index() -> str:
    rows = [
        f"| [{room}]({room.rpartition('.')[2]}.md) | {about} |" for room, about in ROOMS.items()
    ]
    names = "\n".join(room.rpartition(".")[2] for room in ROOMS)
    return f"""# Python, name by name

This reference comes from the docstrings of the package. [Simulations in memory](../python.md) and the
[README](../../README.md#from-python) show how to use the names, and [the cookbook](../learn/cookbook.md)
has programs.

| module | |
|---|---|
| [sojourn](sojourn.md) | {_first(sojourn.__doc__)} |
{chr(10).join(rows)}

```{{toctree}}
:hidden:

sojourn
{names}
```
"""


def _first(docstring: str | None) -> str:
    return " ".join((docstring or "").strip().split("\n\n")[0].split())


def _room(room: str, about: str) -> str:
    return "\n".join(_names(room, about))


def _public(module: ModuleType) -> list[str]:
    """The public names of a module: its `__all__`, or the names defined in it."""
    own = [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_") and getattr(thing, "__module__", None) == module.__name__
    ]
    return list(getattr(module, "__all__", own))


def _names(room: str, about: str) -> Iterator[str]:
    module = importlib.import_module(room)
    yield f"# {room}\n"
    if about:
        yield f"{about[0].upper()}{about[1:]}.\n"
    values = []
    for name in sorted(_public(module), key=lambda name: (name[0].isupper(), name)):
        thing = getattr(module, name)
        # A name that `sojourn` itself has is in the index there.
        again = "\n   :no-index:" if room != "sojourn" and name in sojourn.__all__ else ""
        if inspect.isclass(thing):
            yield f"```{{eval-rst}}\n.. autoclass:: {room}.{name}\n   :members:{again}\n```\n"
        elif inspect.isroutine(thing):
            yield f"```{{eval-rst}}\n.. autofunction:: {room}.{name}{again}\n```\n"
        else:
            values.append(f"`{name}`")
    if values:
        yield f"Other values and types: {', '.join(values)}.\n"
