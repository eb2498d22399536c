"""Tests test the tree."""

import pytest
from tree import ROOT, build_of_the_tree, of_another_tree

import sojourn
from sojourn import _core


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
    assert _core.ENGINE != _core.BUILD == build_of_the_tree()


@pytest.mark.parametrize("target", ["dev", "check", "fast", "test"])
def test_the_makefile_has_the_contributor_s_loop(target: str) -> None:
    assert f"\n{target}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
