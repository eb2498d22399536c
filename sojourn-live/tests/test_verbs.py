"""The verbs of a live line on the command line, without traffic: errors for wrong input, and the
messages on stderr."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

from sojourn import extras
from sojourn.cli import status
from sojourn_live.measure import session


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (("graph", "none.db", "--last", "7q", "-o", "a.png"), "--last: 'q' is not a unit", "known units"),
        (("measure", "host:"), "'host:': there is no port", "without one: host"),
        (("measure", "localhost:abc"), "'localhost:abc': 'abc' is not a port", "without one: localhost"),
    ],
)  # fmt: skip
def test_a_misspelt_command_gives_an_error_and_a_hint(
    arguments: tuple[str, ...], error: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    first, second = said.err.splitlines()
    assert first.startswith(f"error: {error}")
    assert second.startswith("hint: ")
    assert hint in second


def test_a_measurement_is_announced_after_the_server_has_answered(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone_after(*times_ns: int) -> Any:
        def measure(
            _: session.SessionPlan, reached: Callable[[int, int, str], bool], _keep: object
        ) -> session.Session:
            assert all(reached(now, 10**9, "") for now in times_ns)
            raise session.LiveError("no server listens", "serve there")

        return measure

    def said() -> str:
        assert status(["measure", "far", "--json"]) == 2
        return capsys.readouterr().err

    monkeypatch.setattr(session, "measure", gone_after(0))
    assert said() == "error: no server listens\nhint: serve there\n"
    monkeypatch.setattr(session, "measure", gone_after(0, 1, 2))
    assert said().count("measuring the way to far") == 1


def test_no_test_of_this_package_can_import_the_papers() -> None:
    with pytest.raises(ModuleNotFoundError, match="sojourn_papers"):
        importlib.import_module("sojourn_papers")
    assert [package.name for package in extras.installed()] == ["sojourn-live"]
