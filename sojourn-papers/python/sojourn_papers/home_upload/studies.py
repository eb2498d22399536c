"""The experiments: the upload without and with the cure, the searches, the other readings, and what
the source left to try.

Rates are in tc's syntax: `kbps` is kilobytes a second, so 125kbps is 1 Mbit/s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sojourn_papers.evidence import Swap
from sojourn_papers.readings import ON_OTHER_SEEDS
from sojourn_papers.study import Changes, Study

WITHOUT, WITH = "no shaper", "htb + fq_codel"
"""With and without the cure, in the names of variants."""
FQ_CODEL = "fq_codel"
"""The fq_codel of May 2012, which equals today's; published.toml has the reason."""
LINE = 1_024_000
"""Rate of the line in bit/s, as the modem counts it."""
SHAPER = 1_000_000
"""Rate of the source's shaper in bit/s."""


def shaped(qdisc: str = FQ_CODEL, rate: str = "125kbps", **more: Any) -> Changes:
    """The shaper at wlan0, with this discipline as its leaf."""
    return {"link.wlan0.shaper": f"htb rate {rate}", "link.wlan0.qdisc": qdisc, **more}


def both(name: str, changes: Changes) -> dict[str, Changes]:
    """A reading, without and with the cure."""
    return {f"{name}, {WITHOUT}": changes, f"{name}, {WITH}": {**shaped(), **changes}}


# --------------------------------------------------------------------------------------- searches

MODEM_PACKETS = 13
"""The limit in home.toml: of the searched ones that whose median ping is nearest to the source's."""
PACKETS = (8, 10, 12, 13, 14, 15, 16, 20, 32, 64, 128, 256)
"""Limits of a modem that counts packets."""
KILOBYTES = (14, 16, 18, 19, 20, 22, 24, 32, 64, 128, 256)
"""Limits of a modem that counts bytes."""

BUFFER = Study(
    "buffer",
    "The search for the modem's buffer",
    "home.toml",
    variants={
        **{f"{limit} packets": {"link.modem.qdisc": f"pfifo limit {limit}"} for limit in PACKETS},
        **{
            f"{limit} kB": {"link.modem.qdisc": f"bfifo limit {1000 * limit}"}
            for limit in KILOBYTES
        },
    },
    first_seed=101,
)
"""Studies that only `search` runs."""
IN_PACKETS = {limit: BUFFER[f"{limit} packets"] for limit in PACKETS}
IN_KILOBYTES = {limit: BUFFER[f"{limit} kB"] for limit in KILOBYTES}

# ---------------------------------------------------------------------------------- other readings

_READINGS: dict[str, Changes] = {
    **both("5 MB", {"flow.upload.size": "5 MB"}),
    **both("5.5 MB", {"flow.upload.size": "5500 kB"}),
    **both("line of 1000 kbit/s", {"link.modem.rate": "1 Mbit/s"}),
    **both("server at 100 ms", {"flow.upload.rtt": "100 ms"}),
    **both("Reno", {"flow.upload.congestion": "reno"}),
    **both("Wi-Fi of 5 Mbit/s", {"link.wlan0.rate": "5 Mbit/s"}),
    f"large buffer, window of 13, {WITHOUT}": {
        "link.modem.qdisc": "pfifo limit 256",
        "flow.upload.tcp.max_window": 13,
    },
    # tc's rate tables had steps of 8 bytes until Linux 3.8: 1514 was charged as 1520, and 98
    # as 104.
    f"htb's rate table, {WITH}": shaped(rate="125kbps overhead 6"),
}
READINGS = Study(
    "readings",
    "The other readings",
    "home.toml",
    variants=_READINGS,
    quick_variants=tuple(
        name
        for name in _READINGS
        if name.startswith(("line of", "server", "large buffer")) or name == f"5.5 MB, {WITH}"
    ),
)

# ----------------------------------------------------------------- what does it: behind the shaper

_DISCIPLINES: dict[str, Changes] = {
    "fq_codel, no shaper": {"link.wlan0.qdisc": FQ_CODEL},
    "pfifo limit 1000": shaped("pfifo limit 1000"),
    "codel": shaped("codel"),
    "fq_codel, Linux from 2012-09": shaped("fq_codel variant linux2012"),
    "the same, target 15ms": shaped("fq_codel variant linux2012 target 15ms"),
}
DISCIPLINES = Study(
    "disciplines",
    "Which part of the cure does it",
    "home.toml",
    variants=_DISCIPLINES,
    # A guest has only the fq_codel of its own kernel.
    kernel_variants=[
        name for name, changes in _DISCIPLINES.items() if "linux2012" not in str(changes)
    ],
)

# ------------------------------------------------------------------------------- the shaper's rate

PER_CENT = (70, 80, 90, 94, 96, 98, 99, 100, 101, 102, 104, 106, 110, 120)
"""Rates of the shaper in % of the line's rate."""
_SOME = tuple(f"{share} %" for share in (70, 90, 98, 104, 120))

RATES = Study(
    "rates",
    "The shaper's rate over the line's",
    "home.toml",
    # 5 MiB at 70 % of the line take 63 s.
    variants={
        f"{share} %": {**shaped(rate=f"{LINE * share // 100}bit"), "duration": "80 s"}
        for share in PER_CENT
    },
    quick_variants=_SOME,
    kernel_variants=_SOME,
)
BY_RATE = {share: RATES[f"{share} %"] for share in PER_CENT}

# ----------------------------------------------------------------- the upload, and the line turned

UPLOAD = Study(
    "upload",
    "The upload of 5 MiB, without and with the cure (both graphs)",
    "home.toml",
    variants={WITHOUT: {}, WITH: shaped()},
    seeds=10,
    kernel_variants=None,
    kernel_seeds=5,
)
BEFORE, AFTER = UPLOAD[WITHOUT], UPLOAD[WITH]

DOWNLOAD = Study(
    "download",
    "The line turned round: a download behind a buffer that takes as long to drain",
    "home.toml",
    variants={
        "": {
            "flow.0.name": "download",
            "flow.0.from": "net",
            "flow.0.to": "laptop",
            "flow.0.size": "40 MB",
            # 13 packets at 1024 kbit/s take 154 ms, as do 206 packets at 16 Mbit/s.
            "link.down.qdisc": "pfifo limit 206",
            "duration": "40 s",
        }
    },
    kernel_variants=None,
)

STUDIES = (UPLOAD, READINGS, DISCIPLINES, RATES, DOWNLOAD)

# ------------------------------------------------------------------------ readings, for the matrix


def _instead(before: str, after: str, study: Study = READINGS) -> Swap:
    """The replacements of the variants without and with the cure; an empty name has none."""
    return {BEFORE: study[before] if before else None, AFTER: study[after] if after else None}


SWAPS: Mapping[str, Swap] = {
    **{
        name: _instead(f"{name}, {WITHOUT}", f"{name}, {WITH}")
        for name in (
            "5 MB",
            "5.5 MB",
            "line of 1000 kbit/s",
            "server at 100 ms",
            "Reno",
            "Wi-Fi of 5 Mbit/s",
        )
    },
    "large buffer, window of 13": _instead(f"large buffer, window of 13, {WITHOUT}", ""),
    "htb's rate table": _instead("", f"htb's rate table, {WITH}"),
    "fq_codel, Linux from 2012-09": _instead("", "fq_codel, Linux from 2012-09", DISCIPLINES),
    "the same, target 15ms": _instead("", "the same, target 15ms", DISCIPLINES),
    ON_OTHER_SEEDS: _instead(f"{MODEM_PACKETS} packets", "", BUFFER),
    **{
        f"modem of {words}": _instead(words, "", BUFFER)
        for words in ("10 packets", "12 packets", "14 packets", "20 packets", "18 kB", "19 kB")
    },
}
