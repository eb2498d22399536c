"""What the command line offers and the rooms take when nothing else is asked for: names and
defaults that both declare by. It imports next to nothing: `sojourn --help` shows them at once."""

from __future__ import annotations

from pathlib import Path

ENGINES = {
    "sim": "packet-level discrete-event simulator: quick; the queue disciplines and congestion controls that we wrote",
    "kernel": "the real Linux kernel (6.12) in virtual time, in the first guest that is ready",
    "kernel-uml": "the same in user-mode Linux, built once from Debian's source: quick, exact, with rings and BQL",
    "kernel-qemu": "the same in QEMU with Debian's stock kernel: nothing compiled; slower",
    "kernel-7.3": "Linux 7.3 in user-mode Linux, beside 6.12: with dualpi2",
    "netns": "this host's own kernel in network namespaces, in real time: no two runs are alike",
}
"""What `-e` accepts, and what it is."""

STANDING_MOST_SEEDS = 12
"""Of a case of agreement's standing set whose numbers three seeds do not decide."""

SUITES = Path(__file__).parent / "evaluation" / "suites"
"""The criteria that `sojourn evaluate` comes with: a folder of each document's."""

QUEUE_RECORDING = ".parquet"
"""Ends the name of a file that holds what a kernel's queue did to each packet."""

SAMPLINGS = ("lhs", "random")
"""How the points of a sweep's ranges may be drawn, the usual one first."""

SEEDS_END = 2**63
"""The first number that is no seed of a scenario."""

FLENT_TESTS = ("auto", "rrul", "rrul_be", "rrul_be_nflows", "tcp_nup", "tcp_ndown")
"""What a phase can go out as, to flent."""

GOALS = ("delay", "calls", "goodput")
"""What `sojourn advise` can be asked for; sojourn/advice/choice.py says what each is."""
