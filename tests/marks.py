"""The marks of tests by file; pyproject.toml says what a mark means."""

from pathlib import Path

from _pytest.mark.expression import Expression
from tree import ROOT

MARKS = {
    "guest": ("kernel/test_guest", "kernel/test_packet", "kernel/test_shape", "kernel/test_linux"),
    "live": (
        "test_cluster",
        "test_live_",
        "test_monitor",
        "test_netns",
        "test_shape_live",
        "test_tune_live",
    ),
    "papers": ("papers/",),
    "slow": (
        "test_core_stub",
        "test_documents",
        "test_figures",
        "test_fuzz",
        "test_lab",
        "test_make",
        "test_own",
        "test_readme",
        "test_site",
        "test_standalone",
    ),
}
"""Each mark, and how the paths of its tests begin, below tests/."""
BY_FILE_ALONE = {"live", "papers"}
"""The marks that no single test has without its file."""


def marks_of(file: Path) -> list[str]:
    """The marks of the tests of a file."""
    path = file.relative_to(ROOT / "tests").as_posix()
    return [mark for mark, beginnings in MARKS.items() if path.startswith(beginnings)]


def may_be_asked_for(file: Path, expression: str) -> bool:
    """Whether `-m EXPRESSION` can select a test of this file. A mark that is not set by file alone
    may be on any test."""
    asked: set[str] = set()
    marks = marks_of(file)

    def has(name: str, /, **_: object) -> bool:
        asked.add(name)
        return name in marks

    return Expression.compile(expression).evaluate(has) or not asked <= BY_FILE_ALONE
