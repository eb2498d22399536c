"""A shaper in tc(8)'s words: `htb rate 125kbps burst 1600`.

One class of htb with the link's queue discipline as its leaf: a token bucket between the discipline and what lies below it (crates/link,
shaper.rs). Words, units and the default of `burst` are tc's: `kbps` is 1000 bytes a second, `k` in a size is 1024.

Source: tc-htb(8), tc-stab(8), and iproute2 for the default burst: 1600 bytes and what the rate brings in one tick of the clock, a nanosecond.
Deviations from tc: `ceil` and `cburst` are not offered, being `rate` and `burst`; a word given twice is refused.
"""

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass

from sojourn.scenario.wire import Cells
from sojourn.scenario.words import read_count, read_rate, read_size, write_rate
from sojourn.units import UnitError, nearest, quoted

_PACKET = 1600
"""What tc takes for the largest packet, bytes."""


@dataclass(frozen=True)
class Shaper:
    """A token bucket."""

    bps: int
    burst_bytes: int
    overhead_bytes: int = 0
    """Added to the packet as the discipline counts it."""
    minimum_bytes: int = 0
    cells: Cells = "none"

    @property
    def text(self) -> str:
        """The canonical words: what differs from tc's defaults."""
        words = ["htb", "rate", write_rate(self.bps)]
        if self.burst_bytes != default_burst(self.bps):
            words += ["burst", str(self.burst_bytes)]
        if self.overhead_bytes:
            words += ["overhead", str(self.overhead_bytes)]
        if self.minimum_bytes:
            words += ["mpu", str(self.minimum_bytes)]
        if self.cells == "atm":
            words += ["linklayer", "atm"]
        return " ".join(words)

    @property
    def params(self) -> dict[str, object]:
        """What the engine takes."""
        return asdict(self)


def default_burst(bps: int) -> int:
    """tc's burst for a rate where none is given, bytes."""
    return _PACKET + bps // (8 * 10**9)


def _burst(text: str) -> int:
    size = read_size(text)
    if size == 0:
        raise UnitError(
            "a burst of 0 bytes", f"write at least one packet, like {_PACKET}, or leave burst out"
        )
    return size


def _link_layer(text: str) -> Cells:
    layers: dict[str, Cells] = {"ethernet": "none", "atm": "atm", "adsl": "atm"}
    if text not in layers:
        raise UnitError(f"unknown linklayer {quoted(text)}", f"one of {', '.join(layers)}")
    return layers[text]


_WORDS: dict[str, tuple[str, str, Callable[[str], int | Cells]]] = {
    "rate": ("bps", "RATE", read_rate),
    "burst": ("burst_bytes", "BYTES", _burst),
    "overhead": ("overhead_bytes", "BYTES", read_count(0, 1000)),
    "mpu": ("minimum_bytes", "BYTES", read_count(0, 1000)),
    "linklayer": ("cells", "ethernet|atm", _link_layer),
}
USAGE = "htb rate RATE [burst BYTES] [overhead BYTES] [mpu BYTES] [linklayer ethernet|atm]"

_MEANT = {"buffer": "burst", "maxburst": "burst", "bandwidth": "rate", "bw": "rate"}


def parse_shaper(value: object) -> Shaper | None:
    """`htb rate 125kbps`; `none` is None."""
    if value is None or isinstance(value, Shaper):
        return value
    if not isinstance(value, str) or not value.strip():
        raise UnitError(
            f"{quoted(value)} is not a shaper", 'write tc\'s words in quotes, like "htb rate 1mbit"'
        )
    tokens = [(match.group(), match.start()) for match in re.finditer(r"\S+", value[:1000])]
    kind, at = tokens[0]
    if value.split() == ["none"]:
        return None
    if kind == "none":
        raise UnitError(
            "none is the whole of it", "write none, or a shaper like htb rate 1mbit", tokens[1][1]
        )
    if kind != "htb":
        raise _not_htb(kind, at)
    given: dict[str, int | Cells] = {}
    for index in range(1, len(tokens), 2):
        word, at = tokens[index]
        if word not in _WORDS:
            raise _unknown(word, at)
        field, example, read = _WORDS[word]
        if index + 1 == len(tokens):
            raise UnitError(f"htb: {word} needs a value", f"write {word} {example}", at)
        if field in given:
            raise UnitError(f"htb: {word} is given twice", "say it once", at)
        text, at = tokens[index + 1]
        try:
            given[field] = read(text)
        except UnitError as error:
            raise UnitError(f"htb {word}: {error.problem}", error.hint, at) from None
    if "bps" not in given:
        raise UnitError("htb: rate is missing", "tc requires it; write it like htb rate 1mbit")
    bps = int(given["bps"])
    return Shaper(**{"bps": bps, "burst_bytes": default_burst(bps), **given})  # type: ignore[arg-type]


def _not_htb(kind: str, at: int) -> UnitError:
    known = f"known: {USAGE}; or none"
    if kind in ("tbf", "hfsc", "cbq", "cake"):
        return UnitError(f"the engine has no shaper {quoted(kind)}", f"nearest: htb; {known}", at)
    guess = nearest(kind, ("htb", "none"))
    return UnitError(
        f"unknown shaper {quoted(kind)}", f"did you mean {guess}? {known}" if guess else known, at
    )


def _unknown(word: str, at: int) -> UnitError:
    if word in ("ceil", "cburst"):
        same = "rate" if word == "ceil" else "burst"
        return UnitError(f"htb: {word} is not offered", f"it is {same} here: leave it out", at)
    guess = _MEANT.get(word) or nearest(word, _WORDS)
    known = f"known words: {', '.join(_WORDS)}"
    return UnitError(
        f"htb has no word {quoted(word)}", f"did you mean {guess}? {known}" if guess else known, at
    )
