"""The marks of tests by file. pyproject.toml explains the marks."""

from pathlib import Path

from _pytest.mark.expression import Expression
from tree import ROOT

MARKS = {
    "guest": (
        "sojourn/tests/kernel/test_guest",
        "sojourn/tests/kernel/test_packet",
        "sojourn/tests/kernel/test_linux",
        "sojourn-live/tests/test_shape_in_guest",
        "sojourn-papers/tests/test_guest",
    ),
    "live": (
        "sojourn/tests/test_cluster",
        "sojourn/tests/test_netns",
        "sojourn-live/tests/test_live_",
        "sojourn-live/tests/test_monitor",
        "sojourn-live/tests/test_shape_live",
        "sojourn-live/tests/test_tune_live",
        "tests/test_live_",
    ),
    "papers": (
        *(
            f"sojourn-papers/tests/test_{name}"
            for name in (
                *("adt", "bbr", "buffer", "codel", "engines", "home", "l4s", "pictured"),
                *("published", "queue", "red", "sentences", "verdicts", "video"),
            )
        ),
    ),
    "slow": (
        "sojourn/tests/test_core_stub",
        "sojourn/tests/test_figures",
        "sojourn/tests/test_lab",
        "sojourn/tests/test_own",
        "sojourn-live/tests/test_extension_stub",
        "sojourn-live/tests/test_standalone",
        "tests/test_documents",
        "tests/test_fuzz",
        "tests/test_make",
        "tests/test_readme",
        "tests/test_site",
    ),
}
"""Each mark with the prefixes of its tests' paths."""
BY_FILE_ALONE = {"live", "papers"}
"""Marks that are only set by file, never on a single test."""


def marks_of(file: Path) -> list[str]:
    """The marks of the tests of a file."""
    path = file.relative_to(ROOT).as_posix()
    return [mark for mark, beginnings in MARKS.items() if path.startswith(beginnings)]


def may_be_asked_for(file: Path, expression: str) -> bool:
    """Whether `-m EXPRESSION` can select a test of this file. Marks outside of BY_FILE_ALONE may be
    on any single test, so with them the answer is yes."""
    asked: set[str] = set()
    marks = marks_of(file)

    def has(name: str, /, **_: object) -> bool:
        asked.add(name)
        return name in marks

    return Expression.compile(expression).evaluate(has) or not asked <= BY_FILE_ALONE
