"""Settings of every test: the tests import this tree, and each test has the marks of its
requirements."""

import gc
import json
import signal
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import hidden
import pytest
import shapes
from hypothesis import settings
from in_chromium import browser
from marks import marks_of, may_be_asked_for
from tree import hidden_from, of_another_tree

__all__ = ["browser"]

IN_ONE_PIECE = {"test_wheel.py"}
"""Files with the slowest fixtures."""
GUESTS = {"kernel_uml", "kernel_73", "guest_for_programs"}
"""Fixtures of tests that boot a guest."""


def pytest_configure() -> None:
    """Stops if the imported packages are not those of this tree."""
    if why := of_another_tree():
        raise pytest.UsageError(f"{why}\nhint: make dev")
    # A figure has a hundred thousand objects. With the default thresholds Python would look for
    # reference cycles a hundred times per figure, and every tenth time in all modules. That takes a
    # tenth of the drawing time.
    gc.set_threshold(50_000, 20, 20)
    # A shell's background job ignores SIGINT, a job of nohup ignores SIGHUP, and their child
    # processes inherit this. Tests send both signals to programs.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skips the import of a file if `-m` selects none of its tests. The import takes longer than
    many a test."""
    expression = config.getoption("markexpr")
    unasked = expression and collection_path.suffix == ".py" and not collection_path.is_dir()
    return True if unasked and not may_be_asked_for(collection_path, expression) else None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Imports each file with the packages visible that its tests may import."""
    hidden.hide(hidden_from(collector.path))
    try:
        return (yield)
    finally:
        hidden.hide([])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Runs each test, and its subprocesses, with the packages visible that the test may import."""
    names = hidden_from(item.path)
    hidden.hide(names)
    hidden.hide_in_subprocesses(names)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Adds each file's marks to its tests, and the mark `guest` to tests that boot one. The files
    with the slowest fixtures run first: at the end the other processes would wait for them."""
    items.sort(key=lambda item: item.path.name not in IN_ONE_PIECE)
    for item in items:
        for mark in marks_of(item.path):
            item.add_marker(mark)
        if GUESTS & set(getattr(item, "fixturenames", ())):
            item.add_marker("guest")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Reports tests that were skipped because a kernel guest is missing. Such a skip is easy to
    miss among thousands of tests."""
    skipped = [one for one in terminalreporter.stats.get("skipped", []) if "guest" in one.keywords]
    reasons = sorted({str(one.longrepr[2]) for one in skipped if isinstance(one.longrepr, tuple)})
    if skipped:
        terminalreporter.section(
            f"NOT TESTED: {len(skipped)} tests of the kernel engine", red=True, bold=True
        )
        for reason in reasons:
            terminalreporter.line(reason)


@pytest.fixture(scope="session", autouse=True)
def state_of_our_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Separates the tests' state from the user's: the list of running processes
    (sojourn/cleanup.py) and the store of finished seeds. The store is empty and disabled, so that a
    repeated run really runs. Tests use the guests that the user has built."""
    from sojourn import places

    guests = places.cache() / "kernel"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("XDG_CACHE_HOME", str(_cache(tmp_path_factory, guests)))
        # These are set by the program that started pytest, or by its readline, which sets 80
        # columns where there is no terminal.
        for name in ("COLUMNS", "LINES"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def cache_without_guest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache folder of a fresh machine."""
    return _cache(tmp_path_factory, None)


@pytest.fixture(autouse=True)
def guests_for_those_that_need_one(
    request: pytest.FixtureRequest, cache_without_guest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hides the guests from tests without the mark `guest`, so that these tests give the same
    result on machines with and without a guest."""
    if request.node.get_closest_marker("guest") is None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache_without_guest))


def _cache(tmp_path_factory: pytest.TempPathFactory, guests: Path | None) -> Path:
    """Makes a cache folder with these guests and a disabled store of finished seeds."""
    cache = tmp_path_factory.mktemp("cache") / "sojourn"
    (cache / "seeds").mkdir(parents=True)
    (cache / "seeds" / "bound").write_text("0\n")
    if guests is not None and guests.is_dir():
        (cache / "kernel").symlink_to(guests)
    return cache.parent


@pytest.fixture(scope="session")
def kernel_uml() -> str:
    """The name of the engine with the guest of Linux 6.12. Skips the test if it is not ready."""
    return _guest("uml", "kernel-uml", "no guest to try")


@pytest.fixture(scope="session")
def kernel_73() -> str:
    """The name of the engine with the guest of Linux 7.3. Skips the test if it is not ready. CI
    doesn't build this guest; `sojourn kernel setup --linux 7.3` does."""
    return _guest("uml-7.3", "kernel-7.3", "no guest of Linux 7.3 to try")


@pytest.fixture(scope="session")
def guest_for_programs() -> str:
    """The name of the guest for programs. Skips the test if it is not ready. CI doesn't build it;
    `sojourn kernel setup --programs` does."""
    return _guest("uml-programs", "uml-programs", "no guest for programs to try")


def _guest(name: str, engine: str, missing: str) -> str:
    from sojourn.engine.kernel.guest import ready

    if why_not := ready(name).why_not:
        pytest.skip(f"{missing}: {why_not}")
    return engine


# A shared machine is sometimes slow, so the time an example takes is not a result.
settings.register_profile("sojourn", deadline=None)
settings.load_profile("sojourn")


@pytest.fixture(scope="session", autouse=True)
def outputs_have_their_shapes() -> Iterator[None]:
    """Checks all --json output of this process against its schema."""
    from sojourn.cli import text

    plain = text.as_json

    def checked(whole: Mapping[str, Any], schema: str = "") -> str:
        written = plain(whole, schema)
        if schema:
            shapes.check(schema, json.loads(written))
        return written

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "as_json", checked)
        yield
