"""UserError is the only error that a user can act on. The tests check how the command line prints
it, and that no other class has this purpose."""

import importlib
import inspect
import pkgutil
import shlex
import subprocess

import pytest

import sojourn
from sojourn import cli
from sojourn.engine import UnfinishedError
from sojourn.errors import UserError, install_extra


def test_the_place_is_printed_first_and_the_hint_on_its_own_line() -> None:
    error = UserError("6 is a bare number", "write '6 h'")
    assert str(error) == "6 is a bare number"
    error.place = "--last"
    assert error.message() == "error: --last: 6 is a bare number\nhint: write '6 h'"
    assert UserError("the disk is full").message() == "error: the disk is full"


def test_the_command_line_prints_the_error_and_ends_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise UserError("there is no such thing", "name another")

    monkeypatch.setattr(cli.cli, "main", refuse)
    assert cli.status(["list"]) == 2
    assert capsys.readouterr().err == "error: there is no such thing\nhint: name another\n"


def test_each_error_class_derives_from_usererror_directly() -> None:
    # A handler of the wider class would also catch a subclass, mostly by accident. UnfinishedError
    # is the only base with subclasses, for recordings and papers.
    for entry in pkgutil.walk_packages(sojourn.__path__, "sojourn."):
        if entry.name.endswith(("__main__", "watchdog")):
            continue
        module = importlib.import_module(entry.name)
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if issubclass(kind, UserError) and kind is not UserError:
                assert {UserError, UnfinishedError} & {*kind.__bases__}, kind


def test_the_hint_for_a_missing_extra_works_without_a_package_index() -> None:
    # sojourn is on no index: another Python's pip would find nothing, or a stranger's package.
    command = [*shlex.split(install_extra("own")), "--dry-run", "--no-index", "--no-deps"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Would install" not in done.stdout
