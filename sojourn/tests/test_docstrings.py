"""The examples in the docstrings of the public API run, and print the documented output."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

MODULES = (
    "sojourn",
    "sojourn.engine.compare",
    "sojourn.engine.memory",
    "sojourn.engine.runs",
    "sojourn.judgement",
    "sojourn.metrics",
    "sojourn.records.run",
    "sojourn.sanitize",
    "sojourn.scenario",
    "sojourn.sweeps.vary",
)


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_in_docstrings_give_their_output(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testmod(import_module(module))
    assert tried > 0
    assert failed == 0
