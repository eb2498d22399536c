"""Counts in the history how many files each addition to the project touched.

    python benches/additions.py      prints the table of ARCHITECTURE.md

An addition is a list of commits, follow-ups included. The table counts the files that they touch.
In the table *code* is what is shipped: sources below a crate's `src` and Python packages, without
tests and generated files. The column *all* adds tests, documents, benches and settings.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Addition:
    """A feature that was added, and its commits."""

    kind: str
    what: str
    commits: Sequence[str]


ADDITIONS = (
    Addition("queue discipline", "`fq`", ["1b4c710a"]),
    Addition("queue discipline", "`ets`", ["3abc8164"]),
    Addition("queue discipline", "`hhf` and `tbf`", ["adbce12f"]),
    Addition("queue discipline", "`fred`, `avq` and `gred`", ["2e8030f0"]),
    Addition("queue discipline", "`mq`, and `cake_mq` on the kernel", ["baa9687c"]),
    Addition("congestion control", "`bbr`", ["e84a2f68"]),
    Addition("congestion control", "`bbr3`", ["15f56fd3"]),
    Addition("congestion control", "`dctcp`, and ABE", ["a2938948"]),
    Addition("congestion control", "`prague`", ["170c35fd"]),
    Addition("kind of traffic", "`call`", ["2472de2f", "aa4e0b08", "7701a20a", "92b0f584"]),
    Addition("kind of traffic", "`web` and `stream`", ["a2f87eb9"]),
    Addition("key of a link", "`replay_window`, with tunnels", ["1f2ca879"]),
    Addition("engine", "`netns`", ["1c765e4c"]),
    Addition("verb", "`history`, with `measure --every`", ["adacfb8e"]),
    Addition("figure", "`coexistence`", ["f1d139f9"]),
    Addition("paper", "`bbr-shares`", ["a8d70d17"]),
)
CODE = re.compile(r"^(?:sojourn(?:-live|-papers)?/)?(?:crates/\w+/src/|python/)")
NOT_CODE = re.compile(
    r"/schemas/|/tests?(?:\.rs|/)|_tests?\.rs$|^(?:\S*/)?python/\S*\.(?:toml|csv|json|md)$"
)
HEADER = ("kind", "what was added: files of code, all files")


def touched(commits: Sequence[str]) -> set[str]:
    """Returns the files that the commits touch.

    Raises:
        LookupError: the history lacks some of the commits (a shallow clone).
    """
    files: set[str] = set()
    for commit in commits:
        done = subprocess.run(
            ["git", "show", "--name-only", "--format=", "--no-renames", commit],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise LookupError(f"this history has no commit {commit}")
        files |= {*done.stdout.split("\n")} - {""}
    return files


def is_code(name: str) -> bool:
    """Whether the file is shipped."""
    return bool(CODE.search(name)) and not NOT_CODE.search(name)


def table() -> str:
    """Returns the table in Markdown, one row per kind."""
    kinds: dict[str, list[str]] = {}
    for each in ADDITIONS:
        files = touched(each.commits)
        counts = f"{sum(map(is_code, files))}, {len(files)}"
        kinds.setdefault(each.kind, []).append(f"{each.what}: {counts}")
    rows = [
        HEADER,
        ("---",) * len(HEADER),
        *((kind, "; ".join(found)) for kind, found in kinds.items()),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    print(table())
