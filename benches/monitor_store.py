"""Measures a monitor's store on the disk: bytes per day and table, and bytes written per second.

    python benches/monitor_store.py [--minutes 60]

One target at 10/s has RTTs that spread as a home line's do. The store also records an interface. It
is committed twice a second of monitored time as by `sojourn monitor`, but faster than real time.
Wide roll-ups are small after an hour. The size of a day is extrapolated from the rows of a day.
"""

import argparse
import sqlite3
import tempfile
import time
from pathlib import Path

import numpy as np

from sojourn_live.monitor.store import WIDTHS, Keep, ProbeSamples, Store

S = 10**9
PER_COMMIT = 5
BEGIN_S = 1_700_000_000 // 3600 * 3600


def written() -> int:
    """Returns the bytes that this process has passed to write(2) and similar calls."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["wchar"])


def fill(path: Path, minutes: int) -> tuple[float, float]:
    """Writes `minutes` of monitoring. Returns bytes per second, and CPU time per commit in ms."""
    rng = np.random.default_rng(1)
    commits = minutes * 60 * 10 // PER_COMMIT
    with Store.open(path, Keep(None, None, None, None, None)) as store:
        target, interface = (
            store.target("example.net", "192.0.2.1", S // 10),
            store.interface("eth0"),
        )
        before, began = written(), time.process_time()
        for i in range(commits):
            sequence = np.arange(PER_COMMIT, dtype=np.int64) + i * PER_COMMIT
            t_ns = BEGIN_S * S + sequence * S // 10 + rng.integers(0, S // 1000, PER_COMMIT)
            rtt_ns = ((18 + rng.gamma(1.5, 0.8, PER_COMMIT)) * 1e6).astype(np.int64)
            rtt_ns[rng.random(PER_COMMIT) < 0.001] = -1
            loss = np.where(rtt_ns < 0, 0, -1)
            lateness_ns = rng.integers(50_000, 200_000, PER_COMMIT)
            store.add(
                ProbeSamples(0 * sequence + target, t_ns, sequence, rtt_ns, loss, lateness_ns)
            )
            if i % 2:
                received, sent = rng.integers(0, 10**6, 2).tolist()
                store.add_traffic(int(t_ns[0]), interface, received, sent, S)
            store.commit()
        return (written() - before) / (minutes * 60), (time.process_time() - began) / commits * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=int, default=60)
    minutes = parser.parse_args().minutes
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "monitor.db"
        per_s, cpu_ms = fill(path, minutes)
        print(
            f"written: {per_s / 1e3:.0f} kB/s, {per_s * 86400 / 1e9:.1f} GB a day; CPU: {cpu_ms:.1f} ms a commit"
        )
        db = sqlite3.connect(path)
        rows_a_day = {"probes": 864_000}
        rows_a_day |= {
            f"{kind}_{width}": 86400 // width for kind in ("rtt", "traffic") for width in WIDTHS
        }
        for table, rows in rows_a_day.items():
            size = db.execute("SELECT sum(pgsize) FROM dbstat WHERE name = ?", (table,)).fetchone()[
                0
            ]
            count = db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            print(
                f"{table:13} {size / count:6.0f} B a row, {size / count * rows / 1e6:8.3f} MB a day"
            )
        db.close()


if __name__ == "__main__":
    main()
