"""A monitor's store: an SQLite database of probes, their roll-ups and the traffic at the time.

Every probe is kept for a window (`Keep.probes_s`). As it arrives it is also counted into one row
for each second, 10 s, minute and hour. Such a row keeps its whole distribution (`rtt_histogram`),
and further probes are added to it. So the p50 of an hour is the median of its probes to within 0.8
%, and not a quantile of quantiles. Rows of every width have the same totals.

There is one writer and any number of readers. The writer's additions become visible with its next
`commit`, whole or not at all. A killed program loses what it had not committed. A power failure may
also lose commits that the disk had not received yet. Neither leaves a broken file (WAL, synchronous
= normal).

Times are UTC since 1970 by this host's clock. If the clock is stepped back, a span of time occurs
twice, and the measurements of both passes are counted together; `events` has the step. A wrong
clock can't make the store delete everything: windows move at most twice as fast as time passes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from sojourn import sanitize
from sojourn.arrays import Floats, Ints
from sojourn.errors import UserError
from sojourn_live.monitor import rtt_histogram
from sojourn_live.monitor.rtt_histogram import RttHistogram

S = 10**9
DAY_S = 86400
FORMAT = 2
"""The database's format. A database of an older format is read without conversion, and converted
when a monitor continues it. A newer format is refused."""
MARK = 0x736A6D6F
"""Our application_id in SQLite: "sjmo"."""

WIDTHS = (1, 10, 60, 3600)
"""Widths of roll-ups, s. Each divides the next."""


class StoreError(UserError):
    """A database can't be used. `problem` names the cause and the file, `hint` the remedy."""


@dataclass(frozen=True)
class Keep:
    """How long each kind of row is kept, in seconds; None: for ever."""

    probes_s: int | None = DAY_S
    every_1_s: int | None = 3 * DAY_S
    every_10_s: int | None = 7 * DAY_S
    every_60_s: int | None = 90 * DAY_S
    every_3600_s: int | None = None

    def rolled_s(self, width: int) -> int | None:
        """How long roll-ups of this width are kept."""
        windows = (self.every_1_s, self.every_10_s, self.every_60_s, self.every_3600_s)
        return windows[WIDTHS.index(width)]


@dataclass(frozen=True)
class ProbeSamples:
    """Probes that were answered or lost: the columns of `_live.Prober.take`, of equal length, with
    times of day."""

    target: Ints
    """The targets' numbers in the database."""
    t_ns: Ints
    """Times of sending, UTC since 1970."""
    sequence: Ints
    rtt_ns: Ints
    """-1: lost."""
    loss: Ints
    """The reason of a loss, an index of `_live.LOSSES`; -1: not lost."""
    lateness_ns: Ints
    """Delay of sending after the scheduled time."""

    def __len__(self) -> int:
        return int(self.t_ns.size)


@dataclass(frozen=True)
class StoredTarget:
    """A target of the database."""

    id: int
    name: str
    """The target as the user wrote it."""
    address: str
    """Its address at the latest start."""
    interval_ns: int


@dataclass(frozen=True)
class Event:
    """An event that matters to readers of the data."""

    t_ns: int
    kind: str
    """start, stop, step (of the clock), suspended, stood still, address."""
    text: str


@dataclass(frozen=True)
class RollUp:
    """One target's counts and distribution over a span of time."""

    t_s: int
    sent: int
    lost: int
    sum_ns: int
    rtt: RttHistogram


@dataclass(frozen=True)
class Traffic:
    """Traffic of an interface: columns of equal length, a row for each span of time."""

    t_s: Ints
    received_bytes: Ints
    sent_bytes: Ints
    measured_ns: Ints
    """The observed part of the span."""
    received_most: Ints
    """Bytes in its busiest second."""
    sent_most: Ints


_SCHEMA = (
    """
    CREATE TABLE targets (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, address TEXT NOT NULL, interval_ns INTEGER NOT NULL);
    CREATE TABLE interfaces (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE events (t_ns INTEGER NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL);
    CREATE INDEX events_t ON events (t_ns);
    CREATE TABLE probes (
        t_ns INTEGER NOT NULL, target INTEGER NOT NULL, sequence INTEGER NOT NULL,
        rtt_ns INTEGER, loss INTEGER, lateness_ns INTEGER NOT NULL,
        PRIMARY KEY (t_ns, target, sequence)
    ) WITHOUT ROWID;
    """
    + "".join(
        f"""
    CREATE TABLE rtt_{width} (
        t_s INTEGER NOT NULL, target INTEGER NOT NULL, sent INTEGER NOT NULL, lost INTEGER NOT NULL,
        min_ns INTEGER, p10_ns INTEGER, p50_ns INTEGER, p90_ns INTEGER, max_ns INTEGER, sum_ns INTEGER NOT NULL,
        histogram BLOB NOT NULL,
        PRIMARY KEY (t_s, target)
    ) WITHOUT ROWID;
    CREATE TABLE traffic_{width} (
        t_s INTEGER NOT NULL, interface INTEGER NOT NULL, received_bytes INTEGER NOT NULL, sent_bytes INTEGER NOT NULL,
        measured_ns INTEGER NOT NULL, received_most INTEGER NOT NULL, sent_most INTEGER NOT NULL,
        PRIMARY KEY (t_s, interface)
    ) WITHOUT ROWID;
    """
        for width in WIDTHS
    )
    + f"PRAGMA application_id = {MARK}; PRAGMA user_version = {FORMAT};"
)

MOST_VALUE_BYTES = 1 << 20
"""The longest name or distribution that is read. sojourn's take some kilobytes."""
_STEPS = {1: ""}
"""For each format, the statements that convert it to the next. Formats 1 (sojourn 0.1) and 2 have
the same tables."""


# ---------------------------------------------------------------------------------------- writing


@dataclass
class Store:
    """The writer, a context manager. `open` creates one; closing it commits."""

    path: Path
    keep: Keep
    _db: sqlite3.Connection
    _lock: int
    _samples: list[ProbeSamples] = field(default_factory=list)
    _traffic: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    _events: list[Event] = field(default_factory=list)
    _credit_s: dict[str, float] = field(default_factory=dict)
    _expired_at: float | None = None

    @classmethod
    def open(cls, path: str | Path, keep: Keep | None = None) -> Store:
        """Opens the database, and creates it if there is none. Raises StoreError if it is in use,
        was not written by a monitor, or can't be written."""
        path = Path(path)
        if path.exists() and not path.is_file():
            raise StoreError(f"{path} is not a plain file", "name a file: --db FILE")
        try:
            # The lock is on the file itself, so no lock file remains. SQLite's own locks are of
            # another kind and don't conflict with it.
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(
                f"can't write to {path}: {error.strerror}",
                "name a file in a folder that you may write to: --db FILE",
            ) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise StoreError(
                f"{path} is being written by another monitor",
                "stop that monitor, or name another file: --db FILE",
            ) from None
        db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            with _explained(path):
                _prepare(db, path)
        except BaseException:
            db.close()
            os.close(lock)
            raise
        return cls(path, keep or Keep(), db, lock)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Commits and releases the file."""
        try:
            self.commit()
        finally:
            self._db.close()
            os.close(self._lock)

    def target(self, name: str, address: str, interval_ns: int) -> int:
        """The number of the target with this name. A new target is added."""
        with _explained(self.path):
            self._db.execute(
                "INSERT INTO targets (name, address, interval_ns) VALUES (?, ?, ?) "
                "ON CONFLICT (name) DO UPDATE SET address = excluded.address, interval_ns = excluded.interval_ns",
                (name, address, interval_ns),
            )
            return self._number("targets", name)

    def interface(self, name: str) -> int:
        """The number of the interface with this name. A new interface is added."""
        with _explained(self.path):
            self._db.execute(
                "INSERT INTO interfaces (name) VALUES (?) ON CONFLICT (name) DO NOTHING", (name,)
            )
            return self._number("interfaces", name)

    def _number(self, table: str, name: str) -> int:
        return int(
            self._db.execute(f"SELECT id FROM {table} WHERE name = ?", (name,)).fetchone()[0]
        )

    def add(self, samples: ProbeSamples) -> None:
        """Adds probes, with times in any order."""
        if len(samples):
            self._samples.append(samples)

    def add_traffic(
        self, t_ns: int, interface: int, received: int, sent: int, measured_ns: int
    ) -> None:
        """Adds bytes that an interface carried in `measured_ns` about `t_ns` (UTC)."""
        self._traffic.append((t_ns, interface, received, sent, measured_ns))

    def event(self, event: Event) -> None:
        """Adds an event."""
        self._events.append(event)

    def commit(self) -> None:
        """Writes all additions since the last commit or, raising StoreError, none of them.
        Committed data survives the end of this program."""
        if not (self._samples or self._traffic or self._events):
            return
        with _explained(self.path), self._transaction():
            if self._samples:
                self._write(_together(self._samples))
            for row in self._traffic:
                self._carry(*row)
            self._db.executemany(
                "INSERT INTO events VALUES (?, ?, ?)",
                [(e.t_ns, e.kind, e.text) for e in self._events],
            )
        for pending in (self._samples, self._traffic, self._events):
            pending.clear()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            # A full disk ends a transaction by itself.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _write(self, samples: ProbeSamples) -> None:
        rows = zip(
            samples.t_ns.tolist(), samples.target.tolist(), samples.sequence.tolist(), samples.rtt_ns.tolist(),
            samples.loss.tolist(), samples.lateness_ns.tolist(), strict=True,
        )  # fmt: skip
        self._db.executemany(
            "INSERT INTO probes VALUES (?, ?, ?, nullif(?, -1), nullif(?, -1), ?)", rows
        )
        for width in WIDTHS:
            start = samples.t_ns // S // width * width
            order = np.lexsort((samples.target, start))
            begins = np.flatnonzero(
                (np.diff(start[order], prepend=start[order[0]] - 1) != 0)
                | (np.diff(samples.target[order], prepend=-1) != 0)
            )
            for which in np.split(order, begins[1:]):
                self._count(
                    width,
                    int(start[which[0]]),
                    int(samples.target[which[0]]),
                    samples.rtt_ns[which],
                )

    def _count(self, width: int, t_s: int, target: int, rtt_ns: Ints) -> None:
        """Adds probes to the row of their span."""
        back = rtt_ns[rtt_ns >= 0]
        row = RollUp(
            t_s, rtt_ns.size, rtt_ns.size - back.size, int(back.sum()), rtt_histogram.of(back)
        )
        known = self._db.execute(
            f"SELECT {_COLUMNS} FROM rtt_{width} WHERE t_s = ? AND target = ?", (t_s, target)
        ).fetchone()
        if known is not None:
            row = _added(_row(known), row)
        quantiles: list[int | None] = [None] * 3
        if row.rtt.count:
            quantiles = [round(value) for value in row.rtt.quantiles((0.1, 0.5, 0.9)).tolist()]
        least, greatest = (row.rtt.least, row.rtt.greatest) if row.rtt.count else (None, None)
        self._db.execute(
            f"INSERT OR REPLACE INTO rtt_{width} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                t_s,
                target,
                row.sent,
                row.lost,
                least,
                *quantiles,
                greatest,
                row.sum_ns,
                row.rtt.to_bytes(),
            ),
        )

    def _carry(self, t_ns: int, interface: int, received: int, sent: int, measured_ns: int) -> None:
        rates = [round(count * S / measured_ns) for count in (received, sent)]
        for width in WIDTHS:
            self._db.execute(
                f"INSERT INTO traffic_{width} VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (t_s, interface) DO UPDATE SET "
                "received_bytes = received_bytes + excluded.received_bytes, sent_bytes = sent_bytes + excluded.sent_bytes, "
                "measured_ns = measured_ns + excluded.measured_ns, "
                "received_most = max(received_most, excluded.received_most), sent_most = max(sent_most, excluded.sent_most)",
                (t_ns // S // width * width, interface, received, sent, measured_ns, *rates),
            )

    def expire(self, now_s: float, monotonic_s: float) -> None:
        """Deletes rows that have left their window. Call it about once a minute with the time of
        day and a clock that is never stepped.

        A window's end moves at most twice as fast as the second clock, so that a wrong time of day
        costs little.
        """
        before, self._expired_at = self._expired_at, monotonic_s
        if before is None:
            return
        earned_s = 2 * (monotonic_s - before)
        with _explained(self.path), self._transaction():
            self._shrink("probes", "t_ns", S, 0, self.keep.probes_s, now_s, earned_s)
            for width in WIDTHS:
                for table in (f"rtt_{width}", f"traffic_{width}"):
                    self._shrink(table, "t_s", 1, width, self.keep.rolled_s(width), now_s, earned_s)

    def _shrink(
        self,
        table: str,
        time: str,
        per_s: int,
        width: int,
        window_s: int | None,
        now_s: float,
        earned_s: float,
    ) -> None:
        first = self._db.execute(f"SELECT min({time}) FROM {table}").fetchone()[0]
        if first is None or window_s is None:
            return
        # The seconds by which the window's end may still move. Unused ones are saved, up to the
        # width of two rows.
        credit_s = min(self._credit_s.get(table, 0.0) + earned_s, max(earned_s, 2.0 * width))
        until = min(first / per_s + credit_s, now_s - window_s)
        gone = self._db.execute(
            f"DELETE FROM {table} WHERE {time} < ?", (int((until - width) * per_s),)
        )
        self._credit_s[table] = 0.0 if gone.rowcount else credit_s


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    """Creates the tables of a new file. Refuses a file that no monitor wrote."""
    new = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    found = FORMAT if new else _check(db, path)
    # Each commit writes the last page of every table, so small pages reduce disk writes.
    db.execute("PRAGMA page_size = 2048")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA busy_timeout = 5000")
    if new:
        db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
    elif found < FORMAT:
        steps = " ".join(_STEPS[each] for each in range(found, FORMAT))
        db.executescript(f"BEGIN IMMEDIATE; {steps} PRAGMA user_version = {FORMAT}; COMMIT;")


def _check(db: sqlite3.Connection, path: Path) -> int:
    """Refuses a database that no monitor wrote or that has a newer format. Returns its format."""
    if db.execute("PRAGMA application_id").fetchone()[0] != MARK:
        raise StoreError(
            f"{path} is a database that no monitor wrote",
            "name the file that `sojourn monitor --db` wrote",
        )
    # A view may have rows without end, a trigger may write anything.
    foreign_kind = db.execute(
        "SELECT type FROM sqlite_master WHERE type NOT IN ('table', 'index') OR sql LIKE '%VIRTUAL%'"
    ).fetchone()
    if foreign_kind is not None:
        raise StoreError(
            f"{path} has a {foreign_kind[0]} that no monitor wrote",
            "a monitor writes plain tables only: don't trust this file",
        )
    found = int(db.execute("PRAGMA user_version").fetchone()[0])
    if not 1 <= found <= FORMAT:
        raise StoreError(
            f"{path} has format {found}; this version reads formats 1 to {FORMAT}",
            "use the version that wrote it, or a new file",
        )
    return found


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turns SQLite's errors into StoreErrors."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        text = str(error)
        hint = "name the file that `sojourn monitor --db` wrote"
        if "full" in text:
            hint = "make room on the disk; what was written before is kept"
        elif "readonly" in text or "unable to open" in text or "disk I/O" in text:
            hint = "the file and its folder must be readable, and for a monitor writable"
        raise StoreError(f"{path}: {text}", hint) from None


def _together(parts: Sequence[ProbeSamples]) -> ProbeSamples:
    return ProbeSamples(
        *(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(ProbeSamples))
    )


_COLUMNS = "t_s, sent, lost, sum_ns, min_ns, max_ns, histogram"


def _row(columns: tuple[int, int, int, int, int | None, int | None, bytes]) -> RollUp:
    t_s, sent, lost, total, least, greatest, written = columns
    return RollUp(
        t_s, sent, lost, total, rtt_histogram.from_bytes(written, least or 0, greatest or 0)
    )


def _added(one: RollUp, other: RollUp) -> RollUp:
    return RollUp(
        one.t_s,
        one.sent + other.sent,
        one.lost + other.lost,
        one.sum_ns + other.sum_ns,
        rtt_histogram.merged((one.rtt, other.rtt)),
    )


# ---------------------------------------------------------------------------------------- reading


class Reader:
    """Reads a database, also while a monitor writes it. A context manager."""

    def __init__(self, path: str | Path) -> None:
        """Raises StoreError if there is no such file, or if no monitor wrote it."""
        self.path = Path(path)
        if not self.path.is_file():
            raise StoreError(
                f"there is no file {self.path}", "name the file that `sojourn monitor --db` wrote"
            )
        with _explained(self.path):
            self._db = self._connect()

    def _connect(self) -> sqlite3.Connection:
        where = self.path.resolve().as_uri()
        # A reader with write access removes SQLite's index of the latest writes (WAL) at its end; a
        # reader with read access can't. A folder without write access has neither such an index nor
        # a writer.
        for way in ("mode=rw", "mode=ro"):
            with contextlib.suppress(sqlite3.OperationalError):
                return self._checked(f"{where}?{way}")
        return self._checked(f"{where}?immutable=1")

    def _checked(self, uri: str) -> sqlite3.Connection:
        db = sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
        try:
            db.execute("PRAGMA query_only = 1")
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_VALUE_BYTES)
            _check(db, self.path)
        except BaseException:
            db.close()
            raise
        return db

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._db.close()

    def targets(self) -> list[StoredTarget]:
        """The targets in the order in which they were first probed."""
        rows = self._all("SELECT id, name, address, interval_ns FROM targets ORDER BY id")
        return [
            StoredTarget(id, sanitize.plain(str(name)), sanitize.plain(str(address)), interval_ns)
            for id, name, address, interval_ns in rows
        ]

    def interfaces(self) -> dict[str, int]:
        """Interface numbers by name."""
        rows = self._all("SELECT name, id FROM interfaces ORDER BY id")
        return {sanitize.plain(str(name)): id for name, id in rows}

    def span(self) -> tuple[int, int] | None:
        """The first second (UTC) of any data and the second after the last; None without data."""
        spans = [
            (*self._all(f"SELECT min(t_s), max(t_s) FROM rtt_{width}")[0], width)
            for width in WIDTHS
        ]
        kept = [(low, high + width) for low, high, width in spans if low is not None]
        if not kept:
            return None
        # The widest rows are kept longest. Narrower rows within the first of them refine the start.
        return max(low for low, _ in kept if low < kept[-1][0] + WIDTHS[-1]), min(
            high for _, high in kept
        )

    def width(self, start_s: float, widest_s: float) -> int:
        """The widest roll-up of at most `widest_s`. If its rows from `start_s` have expired, the
        next wider one whose rows have not."""
        fitting = max(i for i, width in enumerate(WIDTHS) if width <= max(widest_s, WIDTHS[0]))
        for i in range(fitting, len(WIDTHS)):
            first = self._all(f"SELECT min(t_s) FROM rtt_{WIDTHS[i]}")[0][0]
            until = 2**62 if first is None else first
            if not any(
                self._all(
                    f"SELECT 1 FROM rtt_{w} WHERE t_s >= ? AND t_s <= ? LIMIT 1",
                    (start_s, until - w),
                )
                for w in WIDTHS[i + 1 :]
            ):
                return WIDTHS[i]
        return WIDTHS[-1]

    def rows(self, target: int, width: int, start_s: float, end_s: float) -> Iterator[RollUp]:
        """One target's roll-ups in order of time, from the row that contains `start_s` to the last
        row before `end_s`."""
        for row in self._all(
            f"SELECT {_COLUMNS} FROM rtt_{width} WHERE t_s > ? AND t_s < ? AND target = ? ORDER BY t_s",
            (start_s - width, end_s, target),
        ):
            yield _row(row)

    def outline(
        self, target: int, width: int, start_s: float, end_s: float
    ) -> dict[str, list[int | None]]:
        """`rows` without the distributions: columns t_s, sent, lost, min_ns, p10_ns, p50_ns,
        p90_ns, max_ns (None: no reply)."""
        names = ("t_s", "sent", "lost", "min_ns", "p10_ns", "p50_ns", "p90_ns", "max_ns")
        rows = self._all(
            f"SELECT {', '.join(names)} FROM rtt_{width} WHERE t_s > ? AND t_s < ? AND target = ? ORDER BY t_s",
            (start_s - width, end_s, target),
        )
        return {name: [row[i] for row in rows] for i, name in enumerate(names)}

    def probes(self, target: int, start_s: float, end_s: float) -> tuple[Ints, Floats]:
        """Each probe's time of sending (ns, UTC) and RTT (ns; NaN: lost), in order of time."""
        rows = self._all(
            "SELECT t_ns, rtt_ns FROM probes WHERE t_ns >= ? AND t_ns < ? AND target = ? ORDER BY t_ns",
            (round(start_s * S), round(end_s * S), target),
        )
        times = np.array([t for t, _ in rows], dtype=np.int64)
        return times, np.array(
            [np.nan if rtt is None else rtt for _, rtt in rows], dtype=np.float64
        )

    def traffic(self, interface: int, width: int, start_s: float, end_s: float) -> Traffic:
        """An interface's traffic, rolled up to `width` seconds."""
        rows = self._all(
            "SELECT t_s, received_bytes, sent_bytes, measured_ns, received_most, sent_most "
            f"FROM traffic_{width} WHERE t_s > ? AND t_s < ? AND interface = ? ORDER BY t_s",
            (start_s - width, end_s, interface),
        )
        return Traffic(*np.array(rows, dtype=np.int64).reshape(-1, 6).T)

    def events(self, start_s: float, end_s: float) -> list[Event]:
        """The events of a span of time."""
        rows = self._all(
            "SELECT t_ns, kind, text FROM events WHERE t_ns >= ? AND t_ns < ? ORDER BY t_ns",
            (round(start_s * S), round(end_s * S)),
        )
        return [
            Event(t, sanitize.plain(str(kind)), sanitize.plain(str(text))) for t, kind, text in rows
        ]

    def _all(self, query: str, values: Sequence[float] = ()) -> list[tuple[Any, ...]]:
        with _explained(self.path):
            return self._db.execute(query, tuple(values)).fetchall()
