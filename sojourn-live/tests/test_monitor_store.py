"""The monitor's store: roll-ups lose nothing, quantiles are those of the probes, and killing the
program does not break the file."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn import bins
from sojourn_live.monitor import rtt_histogram
from sojourn_live.monitor.daytime import DayTime, Jump, Reading
from sojourn_live.monitor.store import (
    DAY_S,
    WIDTHS,
    Event,
    Keep,
    ProbeSamples,
    Reader,
    Store,
    StoreError,
)

MS = 10**6
S = 10**9
BEGIN_S = 1_700_000_000
FOR_EVER = Keep(None, None, None, None, None)
RESOLUTION = 0.008
"""The relative width of the histograms' widest bin."""


def samples(
    target: int, t_ns: Sequence[int], rtt_ns: Sequence[int], first: int = 0
) -> ProbeSamples:
    rtt = np.array(rtt_ns, dtype=np.int64)
    return ProbeSamples(
        np.full(rtt.size, target, dtype=np.int64),
        np.array(t_ns, dtype=np.int64),
        np.arange(first, first + rtt.size, dtype=np.int64),
        rtt,
        np.where(rtt < 0, 0, -1),
        np.zeros(rtt.size, dtype=np.int64),
    )


# ------------------------------------------------------------------------------------- histograms

TIMES = st.lists(st.integers(0, 60 * S), min_size=1, max_size=200)


@given(TIMES)
def test_every_time_lies_in_its_bin_and_bins_are_narrow(times: list[int]) -> None:
    values = np.array(times, dtype=np.int64)
    low, high = rtt_histogram.edges(bins.bins_of(values))
    assert ((low <= values) & (values < high)).all()
    assert (high - low <= np.maximum(1, RESOLUTION * values)).all()


@given(TIMES, st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_quantiles_equal_numpy_s_to_within_a_bin(times: list[int], levels: list[float]) -> None:
    values = np.array(times, dtype=np.int64)
    found = rtt_histogram.of(values).quantiles(levels)
    assert np.allclose(found, np.quantile(values, levels), rtol=RESOLUTION, atol=1)


@given(st.lists(TIMES, max_size=5))
def test_a_merged_histogram_equals_that_of_all_times(parts: list[list[int]]) -> None:
    arrays = [np.array(part, dtype=np.int64) for part in parts]
    one = rtt_histogram.merged(rtt_histogram.of(part) for part in arrays)
    all_times = rtt_histogram.of(np.concatenate([np.empty(0, np.int64), *arrays]))
    assert one.to_bytes() == all_times.to_bytes()
    assert (one.least, one.greatest) == (all_times.least, all_times.greatest)


@given(TIMES)
def test_a_histogram_is_read_as_it_was_written(times: list[int]) -> None:
    one = rtt_histogram.of(np.array(times, dtype=np.int64))
    read = rtt_histogram.from_bytes(one.to_bytes(), one.least, one.greatest)
    assert read.bins.tolist() == one.bins.tolist()
    assert read.counts.tolist() == one.counts.tolist()
    with pytest.raises(ValueError, match="cut short"):
        rtt_histogram.from_bytes(one.to_bytes()[:-1], 0, 0)


def test_an_empty_histogram_has_no_quantiles() -> None:
    assert np.isnan(rtt_histogram.EMPTY.quantiles([0.5])).all()


# --------------------------------------------------------------------------------------- roll-ups


@given(
    st.lists(
        st.tuples(
            st.integers(1, 2),
            st.integers(0, 3 * 3600 * S),
            st.one_of(st.just(-1), st.integers(0, S)),
        ),
        min_size=1,
        max_size=80,
    ),
    st.integers(1, 7),
)
@settings(max_examples=30)
def test_counts_are_conserved_at_every_width(
    tmp_path_factory: pytest.TempPathFactory, probes: list[tuple[int, int, int]], parts: int
) -> None:
    path = tmp_path_factory.mktemp("store") / "monitor.db"
    with Store.open(path, FOR_EVER) as store:
        ids = [store.target(name, "192.0.2.1", 100 * MS) for name in ("a", "b")]
        # Samples come in any order and in any parts: a loss is known later than the replies after
        # it, and a clock may be stepped back.
        for n in range(parts):
            for i, (target, t_ns, rtt_ns) in enumerate(probes):
                if i % parts == n:
                    store.add(samples(ids[target - 1], [BEGIN_S * S + t_ns], [rtt_ns], first=i))
            store.commit()
    with Reader(path) as reader:
        for target in (1, 2):
            own = np.array([rtt for of, _, rtt in probes if of == target], dtype=np.int64)
            back = own[own >= 0]
            for width in WIDTHS:
                rows = list(reader.rows(target, width, 0, 2**40))
                assert sum(row.sent for row in rows) == own.size
                assert sum(row.lost for row in rows) == (own < 0).sum()
                assert sum(row.sum_ns for row in rows) == back.sum()
                assert (
                    rtt_histogram.merged(row.rtt for row in rows).to_bytes()
                    == rtt_histogram.of(back).to_bytes()
                )
                assert all(row.t_s % width == 0 and row.sent > 0 for row in rows)
            t_ns, _ = reader.probes(target, 0, 2**33)
            assert t_ns.tolist() == sorted(BEGIN_S * S + t for of, t, _ in probes if of == target)


def test_quantiles_of_an_hour_are_the_hour_s_and_not_those_of_its_seconds(tmp_path: Path) -> None:
    # Each second has nine probes of about 10 ms and one of 200 ms. So the p90 of a median second is
    # near 29 ms, but that of the hour is not.
    rng = np.random.default_rng(1)
    n = 36_000
    t = BEGIN_S // 3600 * 3600 * S + np.arange(n) * 100 * MS
    rtt = np.where(np.arange(n) % 10 == 9, 200 * MS, (10 * MS * rng.lognormal(0, 0.1, n))).astype(
        np.int64
    )
    rtt[: n // 3] += 50 * MS
    with Store.open(tmp_path / "m.db", FOR_EVER) as store:
        target = store.target("a", "192.0.2.1", 100 * MS)
        for part in np.array_split(np.arange(n), 40):
            store.add(samples(target, t[part], rtt[part], first=int(part[0])))
            store.commit()
    with Reader(tmp_path / "m.db") as reader:
        (row,) = reader.rows(target, 3600, 0, 2**40)
        expected = np.quantile(rtt, [0, 0.1, 0.5, 0.9, 1])
        assert np.allclose(row.rtt.quantiles([0, 0.1, 0.5, 0.9, 1]), expected, rtol=RESOLUTION)
        shown = reader.outline(target, 3600, 0, 2**40)
        kept = [shown[f"{name}_ns"][0] for name in ("min", "p10", "p50", "p90", "max")]
        assert np.allclose(np.array(kept, dtype=float), expected, rtol=RESOLUTION)
        for second in list(reader.rows(target, 1, 0, 2**40))[::500]:
            inside = rtt[t // S == second.t_s]
            assert np.allclose(
                second.rtt.quantiles([0.1, 0.9]), np.quantile(inside, [0.1, 0.9]), rtol=RESOLUTION
            )


def test_traffic_is_conserved_and_its_busiest_second_is_kept(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    received = rng.integers(0, 10**6, 200)
    with Store.open(tmp_path / "m.db") as store:
        interface = store.interface("eth0")
        for i, count in enumerate(received.tolist()):
            store.add_traffic((BEGIN_S + i) * S + S // 2, interface, count, 2 * count, S)
    with Reader(tmp_path / "m.db") as reader:
        assert reader.interfaces() == {"eth0": interface}
        for width in WIDTHS:
            rows = reader.traffic(interface, width, 0, 2**40)
            assert rows.received_bytes.sum() == received.sum()
            assert rows.sent_bytes.sum() == 2 * received.sum()
            assert rows.measured_ns.sum() == 200 * S
            assert rows.received_most.max() == received.max()


# ---------------------------------------------------------------------------------------- windows


def test_rows_older_than_the_window_are_deleted_and_others_stay(tmp_path: Path) -> None:
    keep = Keep(probes_s=100, every_1_s=1000, every_10_s=None, every_60_s=None, every_3600_s=None)
    with Store.open(tmp_path / "m.db", keep) as store:
        target = store.target("a", "192.0.2.1", S)
        store.add(samples(target, [(BEGIN_S + i) * S for i in range(4000)], [MS] * 4000))
        store.commit()
        # While time passes, the window's end moves by two seconds each second.
        for minute in range(60):
            store.expire(BEGIN_S + 4000, 60.0 * minute)
    with Reader(tmp_path / "m.db") as reader:
        t_ns, _ = reader.probes(target, 0, 2**33)
        assert t_ns[0] == (BEGIN_S + 3900) * S
        seconds = [row.t_s for row in reader.rows(target, 1, 0, 2**40)]
        assert BEGIN_S + 2999 <= seconds[0] <= BEGIN_S + 3000
        assert sum(row.sent for row in reader.rows(target, 10, 0, 2**40)) == 4000
        # A span that begins before the roll-ups of a second is read from wider ones.
        assert reader.width(BEGIN_S + 3500, 1) == 1
        assert reader.width(BEGIN_S, 1) == 10
        assert reader.width(BEGIN_S, 59) == 10
        assert reader.width(BEGIN_S, 10**6) == 3600


def test_a_clock_that_is_wrong_for_an_hour_deletes_few_rows(tmp_path: Path) -> None:
    with Store.open(tmp_path / "m.db") as store:
        target = store.target("a", "192.0.2.1", S)
        store.add(
            samples(target, [(BEGIN_S + i) * S for i in range(0, DAY_S, 60)], [MS] * (DAY_S // 60))
        )
        store.commit()
        # The clock is ten years ahead for an hour.
        for minute in range(60):
            store.expire(BEGIN_S + 3650 * DAY_S, 60.0 * minute)
    with Reader(tmp_path / "m.db") as reader:
        t_ns, _ = reader.probes(target, 0, 2**33)
        assert DAY_S // 60 - 2 * 60 <= t_ns.size < DAY_S // 60


# ----------------------------------------------------------------------------- ends and reopening

WRITER = """
import sys
import numpy as np
from sojourn_live.monitor.store import ProbeSamples, Store
with Store.open(sys.argv[1]) as store:
    target = store.target("a", "192.0.2.1", 10**8)
    for i in range(10**6):
        column = np.array([i + int(sys.argv[2])], dtype=np.int64)
        t_ns = 1_700_000_000 * 10**9 + column * 10**8
        store.add(ProbeSamples(0 * column + target, t_ns, column, column + 10**6, 0 * column - 1, 0 * column))
        store.add_traffic(int(t_ns[0]), 1, 100, 100, 10**8)
        store.commit()
        print(i + 1, flush=True)
"""


def test_committed_rows_survive_kill_9_and_the_next_monitor_continues(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    kept = 0
    for _ in range(3):
        command = [sys.executable, "-c", WRITER, path, str(kept)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            said = [writer.stdout.readline() for _ in range(40)]
            writer.send_signal(signal.SIGKILL)
            last = int((said + writer.stdout.readlines())[-1])
        with Reader(path) as reader:
            t_ns, _ = reader.probes(1, 0, 2**33)
            # All probes that it reported are committed, and at most one that it had not yet
            # reported.
            assert t_ns.size - kept - last in (0, 1)
            assert np.diff(t_ns).min() == np.diff(t_ns).max() == S // 10
            kept = int(t_ns.size)
            for width in WIDTHS:
                assert sum(row.sent for row in reader.rows(1, width, 0, 2**40)) == kept
                assert reader.traffic(1, width, 0, 2**40).received_bytes.sum() == 100 * kept
        db = sqlite3.connect(path)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        db.close()


def test_the_next_commit_includes_what_a_failed_one_lacked(tmp_path: Path) -> None:
    with Store.open(tmp_path / "m.db") as store:
        target = store.target("a", "192.0.2.1", S)
        store.add(samples(target, [BEGIN_S * S], [MS]))
        # The second insert of the same probe fails on its key, half-way through the transaction.
        store.add(samples(target, [BEGIN_S * S], [MS]))
        with pytest.raises(StoreError, match="UNIQUE"):
            store.commit()
        with Reader(store.path) as reader:
            assert list(reader.rows(target, 1, 0, 2**40)) == []
        store._samples.pop()
        store.commit()
        with Reader(store.path) as reader:
            assert [row.sent for row in reader.rows(target, 3600, 0, 2**40)] == [1]


def test_a_full_disk_is_reported_and_written_rows_are_kept(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "m.db")
    target = store.target("a", "192.0.2.1", S)
    store.add(samples(target, [BEGIN_S * S], [MS]))
    store.commit()
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages + 2}")
    store.add(samples(target, [(BEGIN_S + 1 + i) * S for i in range(2000)], [MS] * 2000))
    for end in (store.commit, store.close):
        with pytest.raises(StoreError) as refused:
            end()
        assert "full" in refused.value.problem
        assert "make room" in refused.value.hint
    with Reader(tmp_path / "m.db") as reader:
        assert [row.sent for row in reader.rows(target, 3600, 0, 2**40)] == [1]
    # The store was closed nevertheless: the next one may write.
    Store.open(tmp_path / "m.db").close()


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    with Store.open(tmp_path / "m.db"), pytest.raises(StoreError) as refused:
        Store.open(tmp_path / "m.db")
    assert "another monitor" in refused.value.problem
    Store.open(tmp_path / "m.db").close()


def test_a_file_that_is_not_a_monitor_s_is_refused_and_not_changed(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("my notes\n" * 100)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE mine (a)")
    db.close()
    for file in (text, other):
        before = file.read_bytes()
        for use in (Store.open, Reader):
            with pytest.raises(StoreError) as refused:
                use(file)
            assert str(file) in refused.value.problem
            assert refused.value.hint
        assert file.read_bytes() == before
    for use in (Store.open, Reader):
        with pytest.raises(StoreError):
            use(tmp_path / "none" / "m.db")
    db = sqlite3.connect(tmp_path / "new.db")
    Store.open(tmp_path / "new.db").close()
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreError, match="format 99"):
        Reader(tmp_path / "new.db")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            "DROP TABLE events; CREATE VIEW events AS WITH RECURSIVE r(t_ns, kind, text) AS"
            " (SELECT 1, 'a', 'b' UNION ALL SELECT t_ns, kind, text FROM r) SELECT * FROM r",
            "a view that no monitor wrote",
        ),
        ("CREATE TRIGGER x AFTER INSERT ON targets BEGIN SELECT 1; END", "a trigger that no"),
        ("UPDATE targets SET name = CAST(zeroblob(3000000) AS TEXT)", "too big"),
    ],
    ids=["endless view", "trigger", "long name"],
)
def test_a_forged_database_is_refused(change: str, says: str, tmp_path: Path) -> None:
    with Store.open(tmp_path / "m.db") as store:
        store.target("router", "192.0.2.1", 1_000_000_000)
    with sqlite3.connect(tmp_path / "m.db") as db:
        db.executescript(change)
    db.close()
    with pytest.raises(StoreError, match=says), Reader(tmp_path / "m.db") as reader:
        reader.targets()


def test_a_pipe_is_refused_as_a_database(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.db")
    with pytest.raises(StoreError, match="not a plain file"):
        Store.open(tmp_path / "m.db")
    with pytest.raises(StoreError, match="there is no file"):
        Reader(tmp_path / "m.db")


def test_names_in_a_database_can_not_control_a_terminal(tmp_path: Path) -> None:
    with Store.open(tmp_path / "m.db") as store:
        store.target("\x1b]0;x\x07", "192.0.2.1", 1_000_000_000)
        store.interface("\x1b[2J")
        store.event(Event(5, "start", "\x1b[2J"))
    with Reader(tmp_path / "m.db") as reader:
        said = f"{reader.targets()} {reader.interfaces()} {reader.events(0, 1)}"
    assert "\\x1b" not in said
    assert said.count("\N{REPLACEMENT CHARACTER}") == 4


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_database_on_a_read_only_disk_can_be_read(tmp_path: Path) -> None:
    with Store.open(tmp_path / "m.db") as store:
        store.event(Event(BEGIN_S * S, "start", "a"))
    tmp_path.chmod(0o500)
    try:
        with Reader(tmp_path / "m.db") as reader:
            assert reader.events(0, 2**33) == [Event(BEGIN_S * S, "start", "a")]
    finally:
        tmp_path.chmod(0o700)


def test_the_default_span_is_that_of_the_probes(tmp_path: Path) -> None:
    with Store.open(tmp_path / "m.db") as store:
        target = store.target("a", "192.0.2.1", S)
        with Reader(store.path) as reader:
            assert reader.span() is None
        store.add(samples(target, [(BEGIN_S + i) * S for i in range(5000)], [MS] * 5000))
        store.commit()
        with Reader(store.path) as reader:
            assert reader.span() == (BEGIN_S, BEGIN_S + 5000)


# -------------------------------------------------------------------------------- the time of day


class Clocks:
    """Three clocks that a test sets."""

    def __init__(self) -> None:
        self.monotonic, self.day, self.boot = 1000 * S, BEGIN_S * S, 1000 * S

    def read(self) -> Reading:
        return Reading(self.monotonic, self.day, self.boot)

    def pass_(self, ns: int, *, slept: int = 0, stepped: int = 0) -> None:
        self.monotonic += ns
        self.boot += ns + slept
        self.day += ns + slept + stepped


def test_a_clock_that_is_slewed_is_followed() -> None:
    clocks = Clocks()
    day = DayTime(clocks.read)
    for _ in range(100):
        clocks.pass_(S, stepped=MS // 2)
        assert day.look() is None
    now = np.array([clocks.monotonic], dtype=np.int64)
    assert day.of(now).tolist() == [clocks.day]


@pytest.mark.parametrize("stepped", [-600 * S, 3600 * S])
def test_a_clock_step_moves_later_probes_only(stepped: int) -> None:
    clocks = Clocks()
    day = DayTime(clocks.read)
    clocks.pass_(S)
    assert day.look() is None
    before, day_before = clocks.monotonic, clocks.day
    clocks.pass_(S, stepped=stepped)
    assert day.look() == Jump(0, stepped)
    clocks.pass_(S)
    assert day.look() is None
    assert day.of(np.array([before, clocks.monotonic])).tolist() == [day_before, clocks.day]


def test_a_suspension_is_distinguished_from_a_clock_step() -> None:
    clocks = Clocks()
    day = DayTime(clocks.read)
    before, day_before = clocks.monotonic, clocks.day
    clocks.pass_(S, slept=8 * 3600 * S)
    assert day.look() == Jump(8 * 3600 * S, 0)
    clocks.pass_(S, slept=60 * S, stepped=-5 * S)
    assert day.look() == Jump(60 * S, -5 * S)
    assert before < day.jumped_at
    clocks.pass_(S)
    assert day.look() is None
    assert day.of(np.array([clocks.monotonic])).tolist() == [clocks.day]
    assert day_before < clocks.day
