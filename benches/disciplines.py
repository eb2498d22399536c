"""Counts instructions per packet with each queue discipline (callgrind.py). Other work on the
machine has no effect on the counts.

    python benches/disciplines.py [--record] [WORDS ...]

Ten CUBIC flows share 100 Mbit/s. The column *of its own* counts the instructions in crates/qdisc,
without inlined code of Rust's library. The drops and delays of a discipline also change what TCP
does. The total includes that cost.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import bench  # noqa: E402
import callgrind  # noqa: E402
import page  # noqa: E402

CASE = HERE / "cases" / "speed" / "cubic-fq_codel-10.toml"
LENGTHS = callgrind.Lengths(warmup_s=2, short_s=4, long_s=10)
WORDS = (
    "pfifo limit 500",
    "codel",
    "pie",
    "fq_codel",
    "fq_codel variant mac80211",
    "fq_pie",
    "cake",
    "cake bandwidth 95mbit",
    "sfq",
    "fq",
    "sfb",
    "red",
    "gred limit 600000 200000 avpkt 1000",
    "fred limit 500",
    "avq",
    "blue",
)
OWN = "queue disciplines"
PLACE = "bench disciplines: table"


def counted(speed: callgrind.Speed, words: str) -> tuple[float, float]:
    """Returns instructions per packet: in total, and the discipline's own."""
    text = CASE.read_text(encoding="utf-8").replace('"fq_codel"', f'"{words}"')
    text = text.replace('warmup   = "10 s"', f'warmup   = "{LENGTHS.warmup_s} s"')
    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "scenario.toml"
        scenario.write_text(text, encoding="utf-8")
        parts = callgrind.per_packet(speed, scenario, LENGTHS)
    return sum(parts.values()), parts[OWN]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("words", nargs="*", default=WORDS, metavar="WORDS")
    parser.add_argument(
        "--record", action="store_true", help="record the table for docs/performance.md"
    )
    options = parser.parse_args()
    try:
        speed = callgrind.program()
    except callgrind.NoToolError as missing:
        raise SystemExit(f"error: {missing}") from None
    rows = [("discipline", "instructions a packet", "of its own")]
    for words in options.words:
        total, own = counted(speed, words)
        rows.append((f"`{words}`", f"{total:.0f}", f"{own:.0f}"))
        print(f"{words}: {total:.0f}, {own:.0f}", file=sys.stderr, flush=True)
    print(page.as_text(rows))
    if options.record:
        of = bench.tree_and_machine()
        page.record({PLACE: rows}, of["commit"], of["date"])


if __name__ == "__main__":
    main()
