"""Numbers that differ: from flow to flow (`Spread`, drawn once when the scenario is realised) and from time to time (`Draw`,
drawn by the engine each time one is needed).

    rtt   = "uniform 40 ms .. 80 ms"     each flow its own, by the seed
    rtt   = "spread 40 ms .. 440 ms"     evenly spaced over the flows of the entry
    rtt   = ["10 ms", "100 ms"]          in turn
    start = "every 2 s"                  the i-th flow starts at i × 2 s
    off   = "exp 1 s"                    drawn anew each time
    size  = "pareto 50 kB 1.5"           mean and tail exponent
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sojourn.units import UnitError, nearest, quoted

Read = Callable[[object], int]
Write = Callable[[int], str]


@dataclass(frozen=True)
class Spread:
    """One number for each flow of an entry."""

    law: Literal["constant", "uniform", "spread", "list", "every"]
    values: tuple[int, ...]
    """constant: the value; uniform and spread: both ends; list: all; every: the step."""

    @property
    def least(self) -> int:
        """No flow gets less."""
        return 0 if self.law == "every" else min(self.values)

    @property
    def drawn(self) -> bool:
        """Whether the seed decides."""
        return self.law == "uniform"

    def of(self, index: int, count: int, draw: Callable[[], int]) -> int:
        """The number of flow `index` (from 0) among `count`; `draw` gives 64 random bits."""
        match self.law:
            case "constant":
                return self.values[0]
            case "uniform":
                low, high = self.values
                return low + (draw() * (high - low + 1) >> 64)
            case "spread":
                low, high = self.values
                return low + (high - low) * index // (count - 1) if count > 1 else low
            case "list":
                return self.values[index % len(self.values)]
            case "every":
                return self.values[0] * index

    def document(self, write: Write) -> str | list[str]:
        """As it stands in a scenario."""
        match self.law:
            case "constant":
                return write(self.values[0])
            case "list":
                return [write(value) for value in self.values]
            case "every":
                return f"every {write(self.values[0])}"
            case "uniform" | "spread":
                return f"{self.law} {write(self.values[0])} .. {write(self.values[1])}"


def parse_spread(value: object, read: Read, example: str, *, every: bool = False) -> Spread:
    """Any form of it; `every` where the flows' numbers may be steps in time."""
    if isinstance(value, Spread):
        return value
    if isinstance(value, list | tuple):
        if not 1 <= len(value) <= 100_000:
            raise UnitError(f"a list of {len(value)} values", f'give one to 100000, like ["{example}"]')
        return Spread("list", tuple(read(item) for item in value))
    laws = ("uniform", "spread", "every") if every else ("uniform", "spread")
    word, rest = _law(value, laws)
    match word:
        case "uniform" | "spread":
            return Spread("uniform" if word == "uniform" else "spread", _ends(word, rest, read, example))
        case "every":
            return Spread("every", (read(rest),))
        case _:
            return Spread("constant", (read(value),))


@dataclass(frozen=True)
class Draw:
    """A number drawn anew each time it is needed (crates/sim, scenario.rs)."""

    law: Literal["constant", "uniform", "exponential", "pareto"]
    values: tuple[int, ...]
    """The value; both ends; or the mean."""
    shape: float = 0.0
    """Pareto's tail exponent."""

    @property
    def params(self) -> dict[str, object]:
        """What the engine takes."""
        match self.law:
            case "constant":
                return {"law": "constant", "value": self.values[0]}
            case "uniform":
                return {"law": "uniform", "min": self.values[0], "max": self.values[1]}
            case "exponential":
                return {"law": "exponential", "mean": self.values[0]}
            case "pareto":
                return {"law": "pareto", "mean": self.values[0], "shape": self.shape}

    def document(self, write: Write) -> str:
        """As it stands in a scenario."""
        match self.law:
            case "constant":
                return write(self.values[0])
            case "uniform":
                return f"uniform {write(self.values[0])} .. {write(self.values[1])}"
            case "exponential":
                return f"exp {write(self.values[0])}"
            case "pareto":
                return f"pareto {write(self.values[0])} {self.shape!r}"


def parse_draw(value: object, read: Read, example: str) -> Draw:
    """`50 kB`, `uniform A .. B`, `exp MEAN`, `pareto MEAN SHAPE`."""
    if isinstance(value, Draw):
        return value
    word, rest = _law(value, ("uniform", "exp", "exponential", "pareto"))
    match word:
        case "uniform":
            return Draw("uniform", _ends(word, rest, read, example))
        case "exp" | "exponential":
            return Draw("exponential", (read(rest),))
        case "pareto":
            mean, shape = _pareto(rest, example)
            return Draw("pareto", (read(mean),), shape)
        case _:
            return Draw("constant", (read(value),))


def _law(value: object, laws: tuple[str, ...]) -> tuple[str, str]:
    """The law's word and what follows it; no word: a plain quantity."""
    if not isinstance(value, str):
        return "", ""
    match = re.match(r"\s*([A-Za-z_]+)\s*(.*)", value[:1000], re.DOTALL)
    if match is None or match[1].lower() in ("nan", "inf", "infinity"):
        return "", ""
    word = match[1].lower()
    if word not in laws:
        guess = nearest(word, laws)
        known = f"known: {', '.join(laws)}"
        raise UnitError(
            f"unknown law {quoted(match[1])}", f"did you mean {guess}? {known}" if guess else known
        )
    return word, match[2]


def _ends(word: str, rest: str, read: Read, example: str) -> tuple[int, int]:
    parts = rest.split("..")
    if len(parts) != 2:
        raise UnitError(f"{word} needs two ends", f'write it like "{word} {example} .. {example}"')
    low, high = read(parts[0]), read(parts[1])
    if low > high:
        raise UnitError(
            f"{quoted(parts[0].strip())} is above {quoted(parts[1].strip())}", "write the lower end first"
        )
    return low, high


def _pareto(rest: str, example: str) -> tuple[str, float]:
    match = re.fullmatch(r"(.*\S)\s+([0-9]{1,3}(?:\.[0-9]{1,15})?)\s*", rest, re.ASCII | re.DOTALL)
    if match is None:
        raise UnitError("pareto needs a mean and a tail exponent", f'write it like "pareto {example} 1.5"')
    shape = float(match[2])
    if not 1 < shape <= 100:
        raise UnitError(
            f"a tail exponent of {shape:g} is not above 1", "with 1 or less the mean is infinite; write 1.5"
        )
    return match[1], shape
