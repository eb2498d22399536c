"""Whether Linux's red would agree with ours if its `adaptive` were not asleep (docs/agreement.md, red-adaptive-asleep).

    python benches/red_adaptive.py             the standing set's 36 cases, 3 seeds: some five minutes on two cores
    python benches/red_adaptive.py --seeds 10

Runs them in the simulator, on the kernel as it is, and on the kernel with red_adaptive.c preloaded under tc. Needs the built guest
(sojourn kernel setup) and a C compiler. Prints how many numbers have which verdict, and the medians of the differences' sizes.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import sojourn
from sojourn import agreement, metrics
from sojourn.engine.kernel import guests
from sojourn.scenario import Scenario, load

SOURCE = Path(__file__).with_suffix(".c")
METRICS = ("sojourn mean", "sojourn p95", "drops", "ping mean")


def cases() -> list[Scenario]:
    """Those of the standing set whose discipline adapts."""
    standing = Path(str(files("sojourn") / "standing"))
    every = (load(standing / f"{rate}-mbit.toml") for rate in (1, 10, 50))
    return [variant for one in every for variant in one.variants() if "adaptive" in variant.label]


def preload_under_tc() -> None:
    """From here on guests have the library, and every program in them begins with it."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "red.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
        added = {"etc/ld.so.preload": b"/red.so\n", "red.so": library.read_bytes()}
    overlay = guests.overlay

    def with_library(init: Path, wanted: dict[str, bytes]) -> bytes:
        return overlay(init, {**wanted, **added})

    guests.overlay = with_library


def compared(ours: Sequence[sojourn.Run], theirs: Sequence[sojourn.Run]) -> list[agreement.Comparison]:
    """Case by case."""
    return [
        agreement.compare(
            metrics.summary(one),
            metrics.summary(other),
            {link.name: link.rate_bps for link in one.meta.links},
        )
        for one, other in zip(ours, theirs, strict=True)
    ]


def told(name: str, found: Sequence[agreement.Comparison]) -> str:
    """A line of the table."""
    verdicts: Mapping[Any, int] = agreement.verdicts(found)
    counts = "".join(f"{verdicts[verdict]:>8}" for verdict in ("within", "step", "noise", "beyond"))
    medians = {one.metric: one.median for one in agreement.digest(found, lambda _: "")}
    return f"{name:<24}{counts}" + "".join(f"{100 * medians[metric]:>13.1f} %" for metric in METRICS)


def main() -> None:
    """Runs all three and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    seeds = parser.parse_args().seeds
    variants = cases()
    ours = sojourn.run_all(variants, seeds=seeds)
    asleep = compared(ours, sojourn.run_all(variants, engine="kernel-uml", seeds=seeds))
    preload_under_tc()
    awake = compared(ours, sojourn.run_all(variants, engine="kernel-uml", seeds=seeds))
    print(f"{'':<24}  within    step   noise  beyond" + "".join(f"{metric:>15}" for metric in METRICS))
    print(told("Linux as it is", asleep))
    print(told("flag where it looks", awake))


if __name__ == "__main__":
    main()
