"""What a link's wire loses, in words: a percentage, or netem's `gemodel`.

Source: tc-netem(8) for gemodel p [r [1-h [1-k]]] and what omitted numbers are.
"""

import re
from dataclasses import dataclass

from sojourn.units import UnitError, format_probability, parse_probability, quoted


@dataclass(frozen=True)
class Loss:
    """What a wire loses: nothing, each packet alike (p only), or in bursts by Gilbert and Elliott's chain."""

    p: float = 0.0
    """Probability of loss; of a burst: good to bad, per packet."""
    r: float | None = None
    """Bad to good, per packet; None: independent losses."""
    bad_loss: float = 1.0
    good_loss: float = 0.0

    @property
    def mean(self) -> float:
        """The share of packets that it loses in the long run; of a burst's chain by its stationary state."""
        if self.r is None:
            return self.p
        bad = self.p / (self.p + self.r) if self.p + self.r else 0.0
        return bad * self.bad_loss + (1 - bad) * self.good_loss

    @property
    def text(self) -> str:
        """`none`, `0.1 %`, `gemodel 1 % 10 %`."""
        if self.r is None:
            return format_probability(self.p) if self.p else "none"
        return " ".join(
            ["gemodel", *(format_probability(x) for x in (self.p, self.r, self.bad_loss, self.good_loss))]
        )

    @property
    def params(self) -> dict[str, object]:
        """What the engine takes."""
        if self.r is not None:
            chain = {"p": self.p, "r": self.r, "bad_loss": self.bad_loss, "good_loss": self.good_loss}
            return {"law": "gilbert", **chain}
        return {"law": "random", "probability": self.p} if self.p else {"law": "none"}


def parse_loss(value: object) -> Loss:
    """`0.1 %`, `0.001`, `gemodel 1% 10%`, `gemodel P R 1-H 1-K`."""
    if isinstance(value, Loss):
        return value
    if not isinstance(value, str):
        return Loss(parse_probability(value))
    words = value.split()
    if words == ["none"]:
        return Loss()
    if words[:1] != ["gemodel"]:
        if words and words[0].isalpha():
            hint = 'write "0.1 %", "gemodel 1% 10%" or "none"'
            raise UnitError(f"unknown loss law {quoted(words[0])}", hint)
        return Loss(parse_probability(value))
    numbers = re.findall(r"[^\s%]+\s*%?", value.split("gemodel", 1)[1][:1000])
    if not 1 <= len(numbers) <= 4:
        hint = 'write "gemodel P R 1-H 1-K" as in tc-netem(8): good to bad, bad to good, loss in bad, loss in good'
        raise UnitError(f"gemodel takes one to four percentages, not {len(numbers)}", hint)
    chain = [parse_probability(number) for number in numbers]
    # netem: an omitted r is 1 - p, which makes the losses independent; an omitted 1-h is 100 %, an omitted 1-k 0 %.
    return Loss(chain[0], chain[1] if len(chain) > 1 else 1.0 - chain[0], *chain[2:])
