"""A source tree builds some files of the package when they are first needed."""

from pathlib import Path

import pytest

from sojourn import places


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source tree whose Makefile can make one file of the package."""
    package = tmp_path / "a" / "b" / "c"
    package.mkdir(parents=True)
    (tmp_path / "Makefile").write_text("a/b/c/made:\n\techo made >$@\na/b/c/failing:\n\tfalse\n")
    monkeypatch.setattr(places, "__file__", str(package / "places.py"))
    return package


def test_a_missing_file_is_made_once(tree: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert places.make_missing(tree / "made", "the program")
    assert (tree / "made").read_text() == "made\n"
    out, err = capfd.readouterr()
    assert not out
    assert err.startswith("building the program, once")
    assert places.make_missing(tree / "made", "the program")
    assert not capfd.readouterr().err


def test_a_file_that_can_not_be_made_counts_as_missing(tree: Path) -> None:
    assert not places.make_missing(tree / "failing", "the program")
    assert not places.make_missing(tree / "unknown", "the program")


def test_an_installed_package_builds_no_files(tree: Path) -> None:
    (tree.parents[2] / "Makefile").unlink()
    assert not places.make_missing(tree / "made", "the program")
