"""The scenarios that come with sojourn, by name, and hints for a missing file.

They are in the folder `scenarios` of the repository. In an installed package this folder is beside
the modules; in the tree it is a link.
"""

import re
from pathlib import Path

from sojourn.sanitize import plain
from sojourn.scenario.errors import Problem, ScenarioError
from sojourn.units import nearest

FOLDER = Path(__file__).parent.parent / "scenarios"
SUFFIX = ".toml"
_PROGRAMS = re.compile(r"""^\[\[program\]\]|^\s*kind\s*=\s*["']program["']""", re.MULTILINE)


def files() -> list[Path]:
    """All examples, in the order of their names."""
    return sorted(FOLDER.glob(f"*{SUFFIX}"), key=lambda path: path.stem)


def names() -> list[str]:
    """The names of all examples, in order."""
    return [path.stem for path in files()]


def simulated() -> list[Path]:
    """The examples that the simulator runs: those without programs."""
    return [path for path in files() if not _PROGRAMS.search(path.read_text(encoding="utf-8"))]


def find(path: Path) -> Path:
    """The scenario file: the path itself, or the example of this name if there is no such file.

    Raises:
        ScenarioError: there is neither; the hint has the nearest name.
    """
    try:
        there = path.exists()
    except OSError:
        there = True
    if there:
        # If it can't be read, the code that opens it reports why.
        return path
    name = str(path)
    beside = path.with_name(path.name + SUFFIX) if path.name else path
    if beside.is_file():
        raise _missing(name, f"write {beside}")
    if name in names():
        return FOLDER / (name + SUFFIX)
    if name.endswith(SUFFIX) and path.stem in names():
        raise _missing(name, f"for the example, write {path.stem} alone, without path and {SUFFIX}")
    files = (
        [str(each) for each in sorted(path.parent.glob(f"*{SUFFIX}"))]
        if path.parent.is_dir()
        else []
    )
    if guess := nearest(name, [*files, *names()]):
        raise _missing(name, f"did you mean {guess}? for all examples: sojourn list scenarios")
    raise _missing(name, "name a scenario file, or an example: sojourn list scenarios")


def _missing(name: str, hint: str) -> ScenarioError:
    message = "can't read it: No such file or directory"
    return ScenarioError([Problem(message, plain(hint), (), plain(name) or ".")])
