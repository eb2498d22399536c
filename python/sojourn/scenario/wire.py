"""What lies around a link's transmitter, in words: its link layer.

Link layers carry cake's and tc-stab's names and overheads (`pppoe-ptm`, `docsis`), so a home line is described by the word its owner
finds elsewhere; `atm overhead 40 mpu 0 header 14` says it in numbers.

Source: tc-cake(8), tc-stab(8) for the overheads.
"""

import re
from dataclasses import asdict, dataclass
from typing import Literal

from sojourn.units import UnitError, nearest, quoted

Cells = Literal["none", "atm", "ptm"]


@dataclass(frozen=True)
class Framing:
    """What a link layer adds to an IP packet (crates/link, framing.rs)."""

    header_bytes: int
    """Added in the queue discipline's count."""
    overhead_bytes: int
    """Added on the wire."""
    minimum_bytes: int = 0
    """Smallest size on the wire."""
    cells: Cells = "none"

    @property
    def text(self) -> str:
        """The link layer's name, or the words for its numbers."""
        for name, framing in LINK_LAYERS.items():
            if framing == self:
                return name
        return (
            f"{self.cells} header {self.header_bytes} overhead {self.overhead_bytes} mpu {self.minimum_bytes}"
        )

    @property
    def params(self) -> dict[str, object]:
        """What the engine takes."""
        return asdict(self)


LINK_LAYERS: dict[str, Framing] = {
    "none": Framing(0, 0),
    # 14 of header, 4 of checksum, 8 of preamble, 12 of gap.
    "ethernet": Framing(14, 38, 84),
    # What a Linux shaper (htb, tbf without overhead) charges: the packet with its Ethernet header.
    "linux": Framing(14, 14),
    # The cable modem's shaper counts whole Ethernet frames.
    "docsis": Framing(14, 18, 64),
    # Two bytes of PPP protocol.
    "ppp": Framing(0, 2),
    # AAL5's trailer is 8 bytes of each of these.
    "atm": Framing(0, 8, 0, "atm"),
    "ipoa-vcmux": Framing(0, 8, 0, "atm"),
    "ipoa-llcsnap": Framing(0, 16, 0, "atm"),
    "pppoa-vcmux": Framing(0, 10, 0, "atm"),
    "pppoa-llc": Framing(0, 14, 0, "atm"),
    "bridged-vcmux": Framing(14, 24, 0, "atm"),
    "bridged-llcsnap": Framing(14, 32, 0, "atm"),
    "pppoe-vcmux": Framing(14, 32, 0, "atm"),
    "pppoe-llcsnap": Framing(14, 40, 0, "atm"),
    "ptm": Framing(14, 22, 0, "ptm"),
    "bridged-ptm": Framing(14, 22, 0, "ptm"),
    "pppoe-ptm": Framing(14, 30, 0, "ptm"),
}
"""By cake's names. The header is 14 where what is queued has an Ethernet header."""

_ALIASES = {"pppoe-llc": "pppoe-llcsnap", "bridged-llc": "bridged-llcsnap", "ipoa-llc": "ipoa-llcsnap"}
_NUMBERS = {"header": "header_bytes", "overhead": "overhead_bytes", "mpu": "minimum_bytes"}


def parse_link_layer(value: object) -> Framing:
    """`ethernet`; `pppoe-ptm`; `atm overhead 40 mpu 64 header 14`."""
    if isinstance(value, Framing):
        return value
    known = f"known link layers: {', '.join(LINK_LAYERS)}"
    if not isinstance(value, str) or not value.strip():
        raise UnitError(
            f"{quoted(value)} is not a link layer", f'write a name in quotes, like "ethernet"; {known}'
        )
    tokens = [(match.group(), match.start()) for match in re.finditer(r"\S+", value[:1000])]
    name, at = tokens[0]
    name = _ALIASES.get(name, name)
    if name not in LINK_LAYERS:
        guess = nearest(name, LINK_LAYERS)
        raise UnitError(
            f"unknown link layer {quoted(name)}", f"did you mean {guess}? {known}" if guess else known, at
        )
    numbers = asdict(LINK_LAYERS[name])
    for index in range(1, len(tokens), 2):
        word, at = tokens[index]
        if word not in _NUMBERS:
            raise UnitError(
                f"a link layer has no word {quoted(word)}", f"known words: {', '.join(_NUMBERS)}", at
            )
        number = tokens[index + 1][0] if index + 1 < len(tokens) else ""
        if not re.fullmatch(r"[0-9]{1,4}", number, re.ASCII) or int(number) > 1000:
            raise UnitError(f"{word} needs a number of bytes from 0 to 1000", f"write it like {word} 38", at)
        numbers[_NUMBERS[word]] = int(number)
    return Framing(**numbers)
