"""_core.pyi describes the extension."""

from pathlib import Path

from stubs import differences


def test_the_stub_is_the_extension(tmp_path: Path) -> None:
    types = ("Column", "Columns", "QdiscCounter", "QdiscValue")
    assert differences("sojourn._core", types, tmp_path) == ""
