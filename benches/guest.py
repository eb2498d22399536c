"""Measures the cost of a kernel guest: four CUBIC flows and a ping over fq_codel, with every packet
watched and with none watched.

    python benches/guest.py                 10, 100 and 1000 Mbit/s, 10 s each: half a minute
    python benches/guest.py --seconds 30

It prints CPU seconds of the guest and its peak memory. The two guests of a line run one after the
other. The guest must have been built (sojourn kernel setup).
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
from pathlib import Path
from typing import Any

from sojourn.engine.kernel.guest import (
    Boot,
    guests,
    overlay,
    run,
)
from sojourn.engine.kernel.plan import guest_plan as plan
from sojourn.engine.kernel.program import program
from sojourn.scenario import loads

SCENARIO = """
duration = "{seconds} s"
warmup = "1 s"

[bottleneck]
rate = "{rate} Mbit/s"
delay = "5 ms"
qdisc = "fq_codel"
link_layer = "linux"

[[flow]]
kind = "bulk"
count = 4
start = "uniform 0 s .. 1 s"

[[flow]]
kind = "ping"
"""


def cost(guest: guests.Guest, prepared: plan.Planned, planned: dict[str, Any]) -> tuple[float, int]:
    """Returns CPU seconds of a guest that runs the plan, and how many packets it watched."""
    with tempfile.TemporaryDirectory() as folder:
        files = {"plan.json": json.dumps(planned).encode()}
        boot = Boot(
            Path(folder),
            overlay(program(), files),
            memory_mb=prepared.memory_mb,
            pairs=prepared.pairs,
            wall_limit_s=3600,
        )
        booted = run(guest, boot)
        done = next(line for line in booted.console.splitlines() if line.startswith("@DONE"))
        return booted.cpu_s, int(done.split()[1])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=10, help="length of each run")
    parser.add_argument("--rates", type=int, nargs="+", default=[10, 100, 1000], help="Mbit/s")
    options = parser.parse_args()
    guest = guests.choose("uml")
    print(f"{'Mbit/s':>8} {'watched':>10} {'not':>8} {'ratio':>7} {'packets':>9} {'us/packet':>10}")
    for rate in options.rates:
        realised = loads(SCENARIO.format(rate=rate, seconds=options.seconds)).realise(1)
        prepared = plan.plan(realised, plan.machine_of(guest))
        watched, packets = cost(guest, prepared, prepared.plan)
        without, _ = cost(guest, prepared, {**prepared.plan, "taps": []})
        per = watched / packets * 1e6
        print(
            f"{rate:>8} {watched:>8.2f} s {without:>6.2f} s {watched / without:>7.2f} {packets:>9} {per:>10.1f}"
        )
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    print(f"most memory of a guest: {most} MB")


if __name__ == "__main__":
    main()
