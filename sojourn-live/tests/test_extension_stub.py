"""_live.pyi describes the extension."""

from pathlib import Path

from stubs import differences


def test_the_stub_is_the_extension(tmp_path: Path) -> None:
    assert differences("sojourn_live._live", (), tmp_path) == ""
