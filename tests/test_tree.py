"""Tests test the tree, and what of it is packed."""

import pytest
from marks import MARKS, may_be_asked_for
from tree import ROOT, TESTS, build_of, of_another_tree

import sojourn
from sojourn import _core
from sojourn.scenario import examples


def test_what_is_imported_is_the_tree() -> None:
    assert of_another_tree() is None


def test_an_installed_copy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sojourn, "__file__", "/elsewhere/sojourn/__init__.py")
    assert "/elsewhere/sojourn" in (of_another_tree() or "")


def test_an_engine_of_other_sources_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "BUILD", "0" * 16)
    assert "other sources" in (of_another_tree() or "")


def test_the_engine_s_name_is_not_the_whole_build_s() -> None:
    # A change of the live half leaves the simulator what it was.
    assert _core.ENGINE != _core.BUILD == build_of(["sojourn/crates"], "sojourn")


def test_a_file_is_left_out_only_if_none_of_its_tests_is_asked_for() -> None:
    all_files = [file for folder in TESTS for file in folder.rglob("test_*.py")]

    def files(expression: str) -> set[str]:
        return {file.stem for file in all_files if may_be_asked_for(file, expression)}

    everything = {file.stem for file in all_files}
    # What `make test` runs one after the other is all there is.
    live, papers = files("live and not long"), files("papers and not live and not long")
    rest = files("not live and not papers and not long")
    assert {"test_netns", "test_live_session"} <= live
    assert "test_adt" in papers
    assert {"test_tree", "test_guest"} <= rest
    assert live | papers | rest == everything
    assert not live & papers | live & rest | papers & rest
    # A test may have other marks than its file.
    assert files("slow") == everything
    assert files("live and slow") == live
    assert all(files(mark) for mark in MARKS)


@pytest.mark.parametrize("target", ["dev", "check", "test-fast", "test", "test-long"])
def test_the_makefile_has_the_contributor_s_loop(target: str) -> None:
    assert f"\n{target}:" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_the_examples_have_one_home() -> None:
    assert examples.FOLDER.resolve() == (ROOT / "scenarios").resolve()
    assert any(examples.FOLDER.glob("*.toml"))
