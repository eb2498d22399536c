"""Settings of every test: what is tested is the tree, and each test has the mark of what it
needs."""

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
"""Files whose fixtures take longest."""
GUESTS = {"kernel_uml", "kernel_73"}
"""The fixtures of tests that boot one."""


def pytest_configure() -> None:
    """Refuses to test anything but this tree."""
    if why := of_another_tree():
        raise pytest.UsageError(f"{why}\nhint: make dev")
    # A figure is a hundred thousand objects. To look for circles among them a hundred times, and
    # among those of all modules each tenth time, takes a tenth of the time of drawing it.
    gc.set_threshold(50_000, 20, 20)
    # A shell's background job ignores SIGINT, one of nohup SIGHUP, and so does all that they start; tests
    # send both to programs.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file none of whose tests -m asks for is not imported: that takes longer than many a test."""
    expression = config.getoption("markexpr")
    unasked = expression and collection_path.suffix == ".py" and not collection_path.is_dir()
    return True if unasked and not may_be_asked_for(collection_path, expression) else None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Each file is imported with what its tests may see."""
    hidden.hide(hidden_from(collector.path))
    try:
        return (yield)
    finally:
        hidden.hide([])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Each test runs with what it may see, and so does what it starts."""
    names = hidden_from(item.path)
    hidden.hide(names)
    hidden.hide_in_subprocesses(names)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks each test by its file, and what boots a guest. What takes long in one piece comes first:
    at the end other processes would wait for it."""
    items.sort(key=lambda item: item.path.name not in IN_ONE_PIECE)
    for item in items:
        for mark in marks_of(item.path):
            item.add_marker(mark)
        if GUESTS & set(getattr(item, "fixturenames", ())):
            item.add_marker("guest")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says loudly what was not tested for want of a kernel guest: a skip among thousands is not
    seen."""
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
    """The entries of processes (sojourn/cleanup.py) of the tests are not those of the user. Nor is
    the store of finished seeds, which is empty and off: what a test runs twice is run twice. The
    guests are the user's."""
    from sojourn import places

    guests = places.cache() / "kernel"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("XDG_CACHE_HOME", str(_cache(tmp_path_factory, guests)))
        # Of whoever began pytest, or of readline in it, which says 80 where there is no terminal.
        for name in ("COLUMNS", "LINES"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def cache_without_guest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder as a fresh machine has it."""
    return _cache(tmp_path_factory, None)


@pytest.fixture(autouse=True)
def guests_for_those_that_need_one(
    request: pytest.FixtureRequest, cache_without_guest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test that has not the mark `guest` finds none, on any machine: what passes where there is a
    guest passes where there is none."""
    if request.node.get_closest_marker("guest") is None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(cache_without_guest))


def _cache(tmp_path_factory: pytest.TempPathFactory, guests: Path | None) -> Path:
    """A cache folder with a store of finished seeds that keeps none, and with these guests."""
    cache = tmp_path_factory.mktemp("cache") / "sojourn"
    (cache / "seeds").mkdir(parents=True)
    (cache / "seeds" / "bound").write_text("0\n")
    if guests is not None and guests.is_dir():
        (cache / "kernel").symlink_to(guests)
    return cache.parent


@pytest.fixture(scope="session")
def kernel_uml() -> str:
    """The name of the engine whose guest is 6.12, where it is ready."""
    return _guest("uml", "kernel-uml", "no guest to try")


@pytest.fixture(scope="session")
def kernel_73() -> str:
    """The name of the engine whose guest is 7.3, where it is ready. CI makes no such guest: `sojourn
    kernel setup --linux 7.3` does."""
    return _guest("uml-7.3", "kernel-7.3", "no guest of Linux 7.3 to try")


def _guest(name: str, engine: str, missing: str) -> str:
    from sojourn.engine.kernel.guest import ready

    if why_not := ready(name).why_not:
        pytest.skip(f"{missing}: {why_not}")
    return engine


# A shared machine is slow at times; how long an example takes is no result.
settings.register_profile("sojourn", deadline=None)
settings.load_profile("sojourn")


@pytest.fixture(scope="session", autouse=True)
def outputs_have_their_shapes() -> Iterator[None]:
    """Whatever a verb prints under --json in this process is held against its schema."""
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
