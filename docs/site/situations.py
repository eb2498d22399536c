"""*Three situations* of docs/qdiscs.md: the numbers of each queue discipline on three examples.

`measured` simulates them in some minutes of CPU time. docs/generate.py records its result and makes
the table from the record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RECORD = Path(__file__).parent.parent / "recorded" / "situations.json"

WORDS = {
    "pfifo": ", 1000 packets",
    "pfifo_head_drop": ", 1000",
    "pfifo_fast": "",
    "red": ", by tc-red(8) for the rate",
    "pie": "",
    "codel": "",
    "cobalt": "",
    "choke limit 1000 bandwidth 10mbit min 20 max 60 burst 30": "",
    "gred limit 200000 avpkt 1000": "",
    "fred": ", 100 packets",
    "avq": ", 150 kB",
    "blue": "",
    "sfb": "",
    "hhf": "",
    "sfq": "",
    "fq": "",
    "fq_codel": "",
    "fq_pie": "",
    "cake": "",
}
"""Each row: the words of the discipline, and a remark."""

HEAD = (
    "discipline",
    "home: ping p95, ms",
    "call late, %",
    "up, Mbit/s",
    "flood: ping p95, ms",
    "pings lost, %",
    "crowd: ping p95, ms",
    "pings lost, %",
    "Jain",
)
COLUMNS = (
    ("home-uplink", "ping_p95_ms", 0),
    ("home-uplink", "late_percent", 1),
    ("home-uplink", "up_mbps", 2),
    ("flood", "ping_p95_ms", 0),
    ("flood", "lost_percent", 0),
    ("crowd", "ping_p95_ms", 0),
    ("crowd", "lost_percent", 0),
    ("crowd", "jain", 2),
)
"""Example, number and decimal places of each column after the first."""


def measured(
    examples: Sequence[str] | None = None, disciplines: Sequence[str] = tuple(WORDS)
) -> dict[str, dict[str, dict[str, float]]]:
    """The numbers of each example and discipline, means over the example's seeds."""
    import sojourn

    found: dict[str, dict[str, dict[str, float]]] = {}
    for example in examples or dict.fromkeys(name for name, _, _ in COLUMNS):
        variants = sojourn.variants(sojourn.load(example), list(disciplines))
        for words, run in zip(disciplines, sojourn.run_all(variants), strict=True):
            numbers = _numbers(sojourn.summary(run).summary)
            found.setdefault(example, {})[words] = {
                name: float(f"{number:.6g}") for name, number in numbers.items()
            }
    return found


def _numbers(summary: Mapping[str, Any]) -> dict[str, float]:
    ping = summary["probes"][0]
    found = {
        "ping_p95_ms": ping["rtt_ms"]["p95"]["mean"],
        "lost_percent": 100 * ping["loss_rate"]["mean"],
        "jain": summary["jain"]["mean"],
    }
    groups = {group["name"]: group for group in summary["groups"]}
    if "call" in groups:
        found["late_percent"] = 100 * groups["call"]["late_rate"]["mean"]
        [up] = [queue for queue in summary["queues"] if queue["link"] == "up"]
        found["up_mbps"] = up["goodput_mbps"]["mean"]
    return found


def table(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[list[str]]:
    """The page's table: its head and a row for each discipline."""
    rows = [list(HEAD)]
    for words, remark in WORDS.items():
        cells = [_cell(found[example][words][name], places) for example, name, places in COLUMNS]
        rows.append([f"`{words}`{remark}", *cells])
    return rows


def _cell(number: float, places: int) -> str:
    return f"{number:.{places}f}"


def result(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """The README's sentence about a ping beside the uploads of a home line."""
    fifo, cake = (found["home-uplink"][words]["ping_p95_ms"] for words in ("pfifo", "cake"))
    return (
        f"With the FIFO of many routers (`pfifo`) one ping in twenty takes more than {fifo:.0f} ms; "
        f"with `cake` more than {cake:.1f} ms."
    )
