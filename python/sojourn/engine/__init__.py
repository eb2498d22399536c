"""Engines: a Scenario in, a Run out. `sim`, the packet simulator, is the one there is."""

from sojourn.engine.compare import recommended, variants
from sojourn.engine.sim import Interrupted, Progress, folder_names, run, run_all, run_each

ENGINES = {"sim": "packet-level discrete-event simulator; every queue discipline and congestion control"}
"""What `-e` accepts, and what it is."""

__all__ = [
    "ENGINES",
    "Interrupted",
    "Progress",
    "folder_names",
    "recommended",
    "run",
    "run_all",
    "run_each",
    "variants",
]
