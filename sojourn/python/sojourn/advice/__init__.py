"""Recommends a queue discipline for a link: runs the disciplines worth trying on its scenario,
chooses one by a goal, and writes the commands.

    line = AccessLine(up_bps=10_000_000, down_bps=50_000_000, rtt_ns=(20_000_000, 80_000_000))
    runs = engine.run_all(line.variants(line.scenario()))
    advice = choose(runs, GOALS["delay"], link="up")
"""

from sojourn.advice.candidates import Candidate, candidates, in_scenario
from sojourn.advice.choice import GOALS, MOST_SEEDS, Advice, Goal, choose
from sojourn.advice.commands import mikrotik, replacing, sqm
from sojourn.advice.line import SHARE, UNKNOWN_RTT_NS, AccessLine, of_scenario
from sojourn.advice.plain import sentences

__all__ = [
    "GOALS",
    "MOST_SEEDS",
    "SHARE",
    "UNKNOWN_RTT_NS",
    "AccessLine",
    "Advice",
    "Candidate",
    "Goal",
    "candidates",
    "choose",
    "in_scenario",
    "mikrotik",
    "of_scenario",
    "replacing",
    "sentences",
    "sqm",
]
