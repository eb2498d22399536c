"""Finished seeds are stored for later requests, and a Run made from them equals one that was run
anew."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shortened import unrendered

from sojourn import _core, cleanup, metrics
from sojourn.cli import status
from sojourn.engine import Interrupted, Progress, protocol, run, run_all, seed_source, sim
from sojourn.errors import UserError
from sojourn.records import Run, RunError
from sojourn.records import seed_store as stores
from sojourn.records.run import Packed
from sojourn.records.seed_store import SeedStore, StoredSeed
from sojourn.scenario import Scenario, loads
from sojourn.scenario.realised import Realised

PATIENCE_S = 60.0
"""Time after which an expected event counts as missing."""
TEXT = """
title = "A download and a ping"
duration = "2 s"
warmup = "500 ms"
seeds = [1, 2, 3]
[bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
qdisc = "codel"
[[flow]]
kind = "bulk"
start = "uniform 0 s .. 500 ms"
[[flow]]
kind = "ping"
"""
LONGER = TEXT.replace('"2 s"', '"60 s"').replace('"5 Mbit/s"', '"50 Mbit/s"')
"""A seed takes some tenths of a second."""
KEY = "0123456789abcdef" * 4


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an empty store, which does not exist yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "sojourn" / "seeds"


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds that the simulator runs from now on."""
    seeds: list[int] = []
    core = _core.run

    def counted(realised: Realised, reached: Callable[[int], bool] | None) -> Any:
        seeds.append(realised.seed)
        return core(realised, reached)

    monkeypatch.setattr(_core, "run", counted)
    return seeds


def scenario(**changes: Any) -> Scenario:
    return loads(TEXT).with_(changes) if changes else loads(TEXT)


def kept_seed(size: int = 1000) -> StoredSeed:
    """A seed with a table of `size` bytes."""
    table = os.urandom(size)
    sums = f"{hashlib.sha256(table).hexdigest()}  queue.parquet\n".encode()
    packed = Packed({"queue.parquet": table, "SHA256SUMS": sums}, hashlib.sha256(sums).hexdigest())
    return StoredSeed(packed, 7, {"maker": b"numbers"})


def entries(place: Path) -> list[Path]:
    return sorted(file for file in place.iterdir() if len(file.name) == 64)


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a Run, or of a folder with several."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


# ------------------------------------------------------------------------------- the Runs that use it


def test_a_run_of_stored_seeds_has_the_bytes_of_one_made_fresh(
    place: Path, tmp_path: Path, ran: list[int]
) -> None:
    first = run(scenario(), out=tmp_path / "first")
    assert sorted(ran) == [1, 2, 3]
    taken = run(scenario(), out=tmp_path / "taken")
    assert sorted(ran) == [1, 2, 3], "no seed ran again"
    fresh = run(scenario(), out=tmp_path / "fresh", fresh=True)
    assert sorted(ran) == [1, 1, 2, 2, 3, 3]

    assert content(first.path) == content(taken.path)
    mine, theirs = content(taken.path), content(fresh.path)
    times = [json.loads(each.pop("meta.json")) | {"cpu_s": None} for each in (mine, theirs)]
    assert mine == theirs
    assert times[0] == times[1]


def test_the_summary_of_a_stored_run_equals_that_of_its_tables(place: Path, tmp_path: Path) -> None:
    first = run(scenario(), out=tmp_path / "first")
    taken = run(scenario(), out=tmp_path / "taken")
    assert taken.numbers, "the store has the numbers, too"
    summary = metrics.summary(taken).to_dict()
    assert summary == metrics.summary(first).to_dict()
    assert summary == metrics.summary(Run.open(taken.path)).to_dict()


def test_numbers_of_another_build_are_computed_again_from_the_tables(
    place: Path, monkeypatch: pytest.MonkeyPatch, ran: list[int]
) -> None:
    first = metrics.summary(run(scenario())).to_dict()
    monkeypatch.setattr(_core, "METRICS", "0123456789abcdef")
    again = run(scenario())
    assert len(ran) == 3
    assert not again.numbers
    assert metrics.summary(again).to_dict() == first


def test_a_run_of_more_seeds_makes_only_the_missing_ones(place: Path, ran: list[int]) -> None:
    run(scenario(), seeds=2)
    reports: list[Progress] = []
    made = run(scenario(), seeds=5, progress=reports.append)
    assert made.seeds == (1, 2, 3, 4, 5)
    assert sorted(ran) == [1, 2, 3, 4, 5]
    assert (reports[-1].finished, reports[-1].taken) == (5, 2)
    assert [reports[0].stored, reports[0].taken] == [True, 0]


def test_a_sweep_and_a_comparison_share_their_runs(place: Path, ran: list[int]) -> None:
    run_all(scenario(sweep={"bottleneck.qdisc": ["codel", "pfifo"]}), seeds=1)
    other = scenario(title="Another title", sweep={"bottleneck.qdisc": ["pfifo", "codel", "red"]})
    made = run_all(other, seeds=1)
    assert len(ran) == 3
    assert [each.name for each in made] == ["pfifo", "codel", "red"]
    assert all(each.meta.title == "Another title" for each in made)


@pytest.mark.parametrize(
    "changes",
    [
        {"duration": "2.1 s"},
        {"warmup": "600 ms"},
        {"bottleneck.qdisc": "codel target 6ms"},
        {"record": {"queue": "200 ms"}},
        {"flow": [{"kind": "bulk", "profile": "ns2"}, {"kind": "ping"}]},
        {"flow": [{"kind": "bulk", "name": "x"}, {"kind": "ping"}]},
    ],
)
def test_everything_that_decides_the_tables_is_in_the_key(changes: dict[str, Any]) -> None:
    engine = sim.Simulator()
    keys = {seed_source.key(engine, each.realise(1)) for each in (scenario(), scenario(**changes))}
    assert len(keys) == 2


def test_the_seed_the_engine_and_the_writer_of_tables_are_in_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine, one = sim.Simulator(), scenario()
    keys = {seed_source.key(engine, one.realise(seed)) for seed in (1, 2)}
    assert seed_source.key(engine, scenario(title="T", label="L").realise(1)) in keys
    monkeypatch.setattr(sim.Simulator, "build", "0123456789abcdef")
    keys.add(seed_source.key(engine, one.realise(1)))
    monkeypatch.setattr(_core, "FILES", "0123456789abcdef")
    keys.add(seed_source.key(engine, one.realise(1)))
    assert len(keys) == 4


def test_invalid_seeds_and_runs_in_real_time_are_not_stored(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = sim.Simulator.tables

    def doubtful(self: sim.Simulator, *given: Any) -> protocol.Outcome:
        return protocol.Outcome(plain(self, *given).tables, 1, ("records were lost",))

    with monkeypatch.context() as patch:
        patch.setattr(sim.Simulator, "tables", doubtful)
        assert run(scenario(), seeds=1).meta.invalid
    assert not SeedStore().holds_any()
    with monkeypatch.context() as patch:
        patch.setattr(sim.Simulator, "alone", True)
        run(scenario(), seeds=1)
    assert not SeedStore().holds_any()
    run(scenario(), seeds=1)
    assert SeedStore().holds_any()


# ------------------------------------------------------------------------------- interrupted runs


def interrupted_after(seeds: int) -> Callable[[Progress], None]:
    def progress(now: Progress) -> None:
        if now.finished >= seeds:
            raise KeyboardInterrupt

    return progress


def test_the_same_call_adds_the_missing_seeds_to_its_folder(
    place: Path, tmp_path: Path, ran: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    swept = loads(TEXT).with_({"sweep": {"bottleneck.qdisc": ["codel", "pfifo"]}})
    out = tmp_path / "out"
    interrupted = threading.Event()
    core = _core.run

    def waits(realised: Realised, reached: Callable[[int], bool] | None) -> Any:
        assert len(ran) < 4 or interrupted.wait(PATIENCE_S), "the fifth seed waits for Ctrl-C"
        return core(realised, reached)

    def progress(now: Progress) -> None:
        if now.finished >= 3:
            interrupted.set()
            raise KeyboardInterrupt

    monkeypatch.setattr(_core, "run", waits)
    with pytest.raises(Interrupted) as stop:
        run_all(swept, seeds=3, out=out, jobs=1, progress=progress)
    monkeypatch.setattr(_core, "run", core)
    assert stop.value.stored
    assert len(stop.value.runs[0].seeds) == 3
    finished = 3 + len(stop.value.runs[1].seeds)
    assert finished < 6
    ran.clear()
    SeedStore().clear()
    news: list[Progress] = []
    made = run_all(swept, seeds=3, out=out, progress=news.append)
    assert len(ran) == 6 - finished, "finished seeds don't run again, even without the store"
    assert (news[0].there, news[0].runs) == (finished, 6 - finished)
    assert [each.seeds for each in made] == [(1, 2, 3)] * 2
    assert [each.seeds for each in Run.find(out)] == [(1, 2, 3)] * 2
    whole = run_all(swept, seeds=3, out=tmp_path / "whole", fresh=True)
    for one, other in zip(made, whole, strict=True):
        assert one.meta.checksums == other.meta.checksums


def test_a_damaged_seed_of_an_interrupted_run_is_made_again(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(Interrupted):
        run(scenario(), seeds=9, out=out, jobs=1, progress=interrupted_after(2))
    (out / "seed-1" / "queue.parquet").write_bytes(b"spoilt")
    assert run(scenario(), seeds=9, out=out).seeds == tuple(range(1, 10))
    Run.open(out).check_sums()


def test_a_complete_folder_is_accepted_and_another_run_s_folder_is_refused(
    tmp_path: Path, ran: list[int]
) -> None:
    made = run(scenario(), seeds=1, out=tmp_path / "whole")
    ran.clear()
    SeedStore().clear()
    assert run(scenario(), seeds=1, out=tmp_path / "whole").meta == made.meta
    assert not ran
    with pytest.raises(Interrupted):
        run(scenario(), seeds=9, out=tmp_path / "begun", jobs=1, progress=interrupted_after(1))
    for other in (scenario(title="T"), scenario(duration="3 s")):
        with pytest.raises(RunError, match="already holds a Run"):
            run(other, seeds=9, out=tmp_path / "begun")
    with pytest.raises(RunError, match="already holds a Run"):
        run(scenario(), seeds=9, out=tmp_path / "begun", fresh=True)


@pytest.mark.parametrize("verb", [["compare", "pfifo", "codel"], ["run"]], ids=["compare", "sweep"])
def test_a_command_killed_after_its_last_seed_continues_with_its_report(
    verb: list[str],
    place: Path,
    tmp_path: Path,
    ran: list[int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unrendered(monkeypatch)
    name, *qdiscs = verb
    file, out = tmp_path / "s.toml", tmp_path / "out"
    sweep = '[sweep]\n"bottleneck.qdisc" = ["pfifo", "codel"]\n'
    file.write_text(TEXT + ("" if qdiscs else sweep))
    words = [name, str(file), *qdiscs, "-o", str(out), "-q"]
    assert status(words) == 0
    first = capsys.readouterr().out
    for written in (*out.glob("*.html"), *out.glob("*.png"), *out.glob("*.svg")):
        written.unlink()
    ran.clear()
    SeedStore().clear()
    assert status(words) == 0
    assert capsys.readouterr().out == first
    assert not ran
    assert (out / "report.html").exists() == bool(qdiscs)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "sojourn", *words]


@pytest.mark.parametrize(
    ("end", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)], ids=["kill", "^C"]
)
def test_a_killed_command_loses_at_most_the_running_seeds_and_can_be_repeated(
    end: signal.Signals, code: int, place: Path, tmp_path: Path
) -> None:
    (tmp_path / "s.toml").write_text(LONGER)
    words = ("run", str(tmp_path / "s.toml"), "--seeds", "6", "-j", "1", "-o", str(tmp_path / "o"))
    process = subprocess.Popen(command(*words), stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + PATIENCE_S
    while not (place.is_dir() and len(entries(place)) >= 2):
        assert process.poll() is None, "it ended before it was killed"
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(end)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code
    assert ("the same command continues from here" in said) == (end == signal.SIGINT)
    kept = len(entries(place))
    assert 2 <= kept < 6

    done = subprocess.run(command(*words), capture_output=True, text=True, check=True)
    there = len(Run.open(tmp_path / "o").seeds)
    assert there == 6
    # Seeds that meta.json names are in the folder, the others in the store.
    counts = re.findall(r"there already: (\d+) runs?|^(\d+) of \d+ runs? taken", done.stderr, re.M)
    assert sum(int(there or taken) for there, taken in counts) >= kept
    fresh = run(loads(LONGER), seeds=2, fresh=True)
    for seed in (1, 2):
        assert Run.open(tmp_path / "o").sums(seed) == fresh.sums(seed)


KILLED = """
import os, signal, sys
from pathlib import Path
from sojourn.records import seed_store
seed = seed_store._read(sys.argv[1], Path(sys.argv[2]).read_bytes())
def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(*{
    "reserving": (seed_store, "_shrink", killed),
    "writing": (seed_store.os, "replace", killed),
}[sys.argv[3]])
seed_store.SeedStore().put("f" * 64, seed)
"""


@pytest.mark.parametrize("when", ["reserving", "writing"])
def test_a_process_killed_while_storing_leaves_a_working_store(
    when: str, place: Path, tmp_path: Path
) -> None:
    store = SeedStore()
    store.set_bound(400_000)
    seed = kept_seed(5000)
    store.put(KEY, seed)
    # The next ticket triggers a count of the whole store.
    (place / "tickets").write_bytes(b"." * stores.TICKETS)
    program = [sys.executable, "-c", KILLED, KEY, str(place / KEY), when]
    if when == "writing":
        (place / "tickets").write_bytes(b"")
    assert subprocess.run(program, check=False).returncode == -signal.SIGKILL
    assert store.take("f" * 64) is None
    half = [file for file in place.iterdir() if file.name.startswith(".")]
    assert len(half) == (when == "writing")
    cleanup.clean()
    assert not any(file.exists() for file in half)
    store.put("f" * 64, seed)
    assert store.take("f" * 64) is not None
    assert store.take(KEY) == seed


def test_the_number_of_stored_seeds_used_is_reported(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.toml").write_text(TEXT)
    words = ["run", str(tmp_path / "s.toml"), "--json"]
    assert status([*words, "--seeds", "2"]) == 0
    assert "taken" not in capsys.readouterr().err
    assert status([*words, "--seeds", "3"]) == 0
    assert "2 of 3 runs taken from the store" in capsys.readouterr().err
    assert status([*words, "--seeds", "3", "--fresh"]) == 0
    assert "taken" not in capsys.readouterr().err


# ------------------------------------------------------------------------------------- the store


def test_a_stored_seed_is_read_unchanged(place: Path) -> None:
    seed = kept_seed()
    SeedStore().put(KEY, seed)
    assert SeedStore().take(KEY) == seed
    assert SeedStore().take(KEY[::-1]) is None
    assert place.stat().st_mode & 0o077 == 0


def test_a_damaged_seed_is_removed(place: Path) -> None:
    store = SeedStore()
    store.put(KEY, kept_seed(50))
    whole = (place / KEY).read_bytes()
    for at in range(len(whole)):
        (place / KEY).write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert store.take(KEY) is None, f"byte {at} of {whole!r}"
        assert not (place / KEY).exists()
    for end in (0, 1, 64, 65, 100, len(whole) - 1):
        (place / KEY).write_bytes(whole[:end])
        assert store.take(KEY) is None, f"its first {end} bytes"
    (place / KEY).write_bytes(whole + b"x")
    assert store.take(KEY) is None
    (place / KEY[::-1]).write_bytes(whole)
    assert store.take(KEY[::-1]) is None, "stored under another key"


def test_a_damaged_seed_is_run_again(place: Path, ran: list[int]) -> None:
    first = run(scenario(), seeds=2)
    [one, _] = entries(place)
    one.write_bytes(one.read_bytes()[:-1])
    assert run(scenario(), seeds=2).meta.checksums == first.meta.checksums
    assert len(ran) == 3
    run(scenario(), seeds=2)
    assert len(ran) == 3


def test_the_bound_holds_and_the_least_recently_used_seeds_are_removed_first(place: Path) -> None:
    bound, size = 1_000_000, 10_000
    store = SeedStore()
    store.set_bound(bound)
    names = [f"{number:064x}" for number in range(300)]
    for number, name in enumerate(names):
        store.put(name, kept_seed(size))
        # File times may be no finer than a few ms.
        os.utime(place / name, (number, number))
        assert store.take(names[0]) is not None, "used most recently"
        assert store.holding().bytes <= bound
    left = [file.name for file in entries(place)]
    assert left == [names[0], *names[300 - len(left) + 1 :]]
    assert store.holding().bytes > bound // 2


def test_a_seed_that_is_too_large_is_not_kept(place: Path) -> None:
    store = SeedStore()
    store.set_bound(80_000)
    store.put(KEY, kept_seed(10_000))
    assert not store.holds_any()
    store.put(KEY, kept_seed(9_000))
    assert store.holds_any()


def test_a_seed_that_another_process_reads_is_not_removed(place: Path) -> None:
    store = SeedStore()
    store.put(KEY, kept_seed())
    with (place / KEY).open("rb") as file:
        assert store.clear() == 1
        assert stores._read(KEY, file.read()).cpu_ns == 7


SEVERAL = """
import random, sys
from pathlib import Path
from sojourn.records.seed_store import SeedStore, _read
seed = _read(sys.argv[1], Path(sys.argv[2]).read_bytes())
store = SeedStore()
for _ in range(100):
    name = f"{random.randrange(200):064x}"
    found = store.take(name)
    if found is None:
        store.put(name, seed)
    else:
        assert found == seed
assert store.usable, store.unused
"""


def test_several_processes_share_it(place: Path, tmp_path: Path) -> None:
    store, bound = SeedStore(), 400_000
    store.set_bound(bound)
    store.put(KEY, kept_seed(5000))
    (place / KEY).rename(tmp_path / "seed")
    program = [sys.executable, "-c", SEVERAL, KEY, str(tmp_path / "seed")]
    processes = [subprocess.Popen(program) for _ in range(3)]
    assert [process.wait(timeout=PATIENCE_S) for process in processes] == [0, 0, 0]
    # Each process may have been storing a seed while another counted.
    assert 0 < store.holding().bytes <= bound + 3 * (bound // 512 + 6000)
    for file in entries(place):
        assert store.take(file.name) is not None
    assert {file.name for file in place.iterdir()} == {
        "bound",
        "tickets",
        *(file.name for file in entries(place)),
    }


def test_a_full_disk_or_a_read_only_folder_disables_only_the_store(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.parent.mkdir(parents=True)
    place.write_text("no folder")
    assert run(scenario(), seeds=2).seeds == (1, 2)
    assert "can't" in SeedStore().unused or not SeedStore().holds_any()
    place.unlink()
    monkeypatch.setattr(stores, "LEAST_FREE", 2**62)
    store = SeedStore()
    store.put(KEY, kept_seed())
    assert "free" in store.unused
    assert not store.holds_any()


def test_without_a_home_folder_no_seed_is_stored(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", homeless)
    assert run(scenario(), seeds=1).seeds == (1,)
    assert status(["cache", "show"]) == 2
    assert "hint: set XDG_CACHE_HOME" in capsys.readouterr().err


@pytest.mark.parametrize("mode", [0o777, 0o720])
def test_a_store_that_others_may_write_to_is_not_used(place: Path, mode: int) -> None:
    SeedStore().put(KEY, kept_seed())
    place.chmod(mode)
    assert SeedStore().unused == "others may write to it"
    assert SeedStore().take(KEY) is None
    place.chmod(0o700)
    assert SeedStore().take(KEY) is not None


# ------------------------------------------------------------------------------- the command line


def output_of(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert status(["cache", *words, "--json"]) == 0
    whole: dict[str, Any] = json.loads(capsys.readouterr().out)
    return whole


def test_the_store_is_shown_bounded_and_emptied(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = output_of(capsys, "show")
    assert (empty["entries"], empty["bytes"], empty["oldest_s"]) == (0, 0, None)
    assert empty["bound_bytes"] == stores.BOUND
    run(scenario())
    full = output_of(capsys, "show")
    assert full["entries"] == 3
    assert full["bytes"] == sum(file.stat().st_size for file in entries(place))
    assert abs(full["oldest_s"] - time.time()) < PATIENCE_S
    assert status(["cache", "show"]) == 0
    assert "3 seeds, " in capsys.readouterr().out

    two = full["bytes"] * 3 // 4
    bounded = output_of(capsys, "bound", f"{two}B")
    assert (bounded["entries"], bounded["bound_bytes"], bounded["removed"]) == (2, two, 1)
    assert output_of(capsys, "show")["bound_bytes"] == two
    cleared = output_of(capsys, "clear")
    assert (cleared["entries"], cleared["removed"], cleared["bound_bytes"]) == (0, 2, two)


def test_with_a_bound_of_0_nothing_is_stored_or_read(
    place: Path, capsys: pytest.CaptureFixture[str], ran: list[int]
) -> None:
    off = output_of(capsys, "bound", "0")
    assert (off["bound_bytes"], off["unused"]) == (0, "its bound is 0")
    run(scenario(), seeds=1)
    run(scenario(), seeds=1)
    assert ran == [1, 1]
    assert output_of(capsys, "show")["entries"] == 0
    output_of(capsys, "bound", "1 GB")
    run(scenario(), seeds=1)
    run(scenario(), seeds=1)
    assert ran == [1, 1, 1]


def test_a_bound_that_is_not_a_size_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["cache", "bound", "much"]) == 2
    assert "much" in capsys.readouterr().err
    place.parent.mkdir(parents=True)
    place.write_text("no folder")
    with pytest.raises(UserError, match="can't write to"):
        SeedStore().set_bound(5)
