"""Names and defaults that the command line shares with the other modules. It imports almost
nothing, because `sojourn --help` needs it."""

from __future__ import annotations

from pathlib import Path

ENGINES = {
    "sim": "packet-level discrete-event simulator: quick; with sojourn's own queue disciplines and congestion controls",
    "kernel": "the real Linux kernel (6.12) in virtual time, in the first guest that is ready",
    "kernel-uml": "the same in user-mode Linux, built once from Debian's source: quick, exact, with rings and BQL",
    "kernel-qemu": "the same in QEMU with Debian's stock kernel: nothing compiled; slower",
    "kernel-7.3": "Linux 7.3 in user-mode Linux, beside 6.12: with dualpi2",
    "netns": "this host's own kernel in network namespaces, in real time: no two runs are alike",
}
"""The engines that `-e` accepts, with a description."""

STANDING_MOST_SEEDS = 12
"""The most seeds of a case of `sojourn agree`'s standing set. A case gets more than three only if
three do not decide."""

SUITES = Path(__file__).parent / "evaluation" / "suites"
"""The criteria that come with sojourn: a folder for each document."""

QUEUE_RECORDING = ".parquet"
"""The suffix of a recording of what a kernel's queue did to each packet."""

SAMPLINGS = ("lhs", "random")
"""The ways to draw the points of a sweep's ranges, the default first."""

SEEDS_END = 2**63
"""The first number that can't be a seed."""

FLENT_TESTS = ("auto", "rrul", "rrul_be", "rrul_be_nflows", "tcp_nup", "tcp_ndown")
"""The flent tests that a phase can be exported as."""

GOALS = ("delay", "calls", "goodput")
"""The goals of `sojourn advise`; sojourn/advice/choice.py defines them."""
