"""The tests import this tree, and each test sees only the packages that its own
package depends on."""

import re
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import hidden
import pytest
from marks import MARKS, may_be_asked_for
from tree import INSTALLED, PACKAGES, ROOT, TESTS, build_of, hidden_from, of_another_tree

import sojourn
from sojourn import _core, extras
from sojourn.scenario import examples


def test_the_imported_packages_are_the_tree_s() -> None:
    assert of_another_tree() is None


def test_an_installed_copy_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sojourn, "__file__", "/elsewhere/sojourn/__init__.py")
    assert "/elsewhere/sojourn" in (of_another_tree() or "")


def test_an_engine_built_from_other_sources_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "BUILD", "0" * 16)
    assert "other sources" in (of_another_tree() or "")


def test_an_installed_environment_may_lack_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(INSTALLED, "1")
    assert "not of a wheel" in (of_another_tree() or "")
    for name in ("sojourn", "sojourn_live"):
        monkeypatch.setattr(import_module(name), "__file__", f"/elsewhere/{name}/__init__.py")
    assert of_another_tree() is None
    hidden.hide(["sojourn_live"])
    assert of_another_tree() is None
    hidden.hide(["sojourn"])
    assert "not built" in (of_another_tree() or "")


def test_a_test_sees_its_own_package_and_the_core() -> None:
    live, papers = (
        {"sojourn_live", "synthetic_live", "test_live_session"},
        {"sojourn_papers", "laws", "test_adt"},
    )
    for package, absent in zip(PACKAGES, (live | papers, papers, live), strict=True):
        found = set(hidden_from(ROOT / package / "tests" / "kernel" / "test_x.py"))
        assert absent <= found
        assert not found & ((live | papers) - absent)
    assert hidden_from(ROOT / "tests" / "test_tree.py") == []


def test_a_hidden_package_is_unchanged_when_it_is_visible_again() -> None:
    import sojourn_live

    hidden.hide(["sojourn_live"])
    with pytest.raises(ModuleNotFoundError, match="sojourn_live"):
        import_module("sojourn_live.extra")
    assert "sojourn-live" not in {extra.name for extra in extras.installed()}
    hidden.hide([])
    assert import_module("sojourn_live") is sojourn_live
    assert "sojourn-live" in {extra.name for extra in extras.installed()}


def test_the_packages_are_those_that_importlib_metadata_finds() -> None:
    hidden.hide([])
    theirs = {point.name: point.value for point in entry_points(group=extras.GROUP)}
    assert extras._entry_points() == theirs
    assert set(theirs) == {"live", "papers"}


def test_another_packages_entry_points_need_not_be_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in (
        ("a", b"[console_scripts]\nx\xff = a:b\n"),
        ("b", b"[sojourn.extras]\ny = c:d\n"),
    ):
        folder = tmp_path / f"{name}-1.dist-info"
        folder.mkdir()
        (folder / "entry_points.txt").write_bytes(content)
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert extras._entry_points() == {"y": "c:d"}


def test_the_engine_s_build_differs_from_the_extension_s() -> None:
    # A change of sojourn-live's crates does not change the simulator's build.
    assert _core.ENGINE != _core.BUILD == build_of(["sojourn/crates"], "sojourn")


def test_a_file_is_skipped_only_if_none_of_its_tests_is_selected() -> None:
    all_files = [file for folder in TESTS for file in folder.rglob("test_*.py")]

    def files(expression: str) -> set[str]:
        return {file.stem for file in all_files if may_be_asked_for(file, expression)}

    everything = {file.stem for file in all_files}
    # The parts that `make test` runs one after another contain all tests.
    live, papers = files("live and not long"), files("papers and not live and not long")
    rest = files("not live and not papers and not long")
    assert {"test_netns", "test_live_session"} <= live
    assert "test_adt" in papers
    assert {"test_tree", "test_guest"} <= rest
    assert live | papers | rest == everything
    assert not live & papers | live & rest | papers & rest
    # A test may have marks in addition to those of its file.
    assert files("slow") == everything
    assert files("live and slow") == live
    assert all(files(mark) for mark in MARKS)


@pytest.mark.parametrize(
    "target",
    ["dev", "check", "test-fast", "test", "test-long", "test-core", "test-live", "test-papers"],
)
def test_the_makefile_has_the_contributor_s_loop(target: str) -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^([\w-]+ )*{target}( [\w-]+)*:", text, re.MULTILINE)


def test_the_examples_have_one_home() -> None:
    assert examples.FOLDER.resolve() == (ROOT / "scenarios").resolve()
    assert any(examples.FOLDER.glob("*.toml"))
