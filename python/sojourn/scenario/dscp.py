"""The codepoint of a flow's packets: `dscp = "cs0"`, which is what a host sends that says nothing else.

A DSCP is a number from 0 to 63, the upper six bits of the byte in the IP header that was called TOS before. It has a name
in RFC 2474 (cs0 to cs7), 2597 (af11 to af43), 3246 (ef), 5865 (va) or 8622 (le). The old words for TOS bits are read too, as
OpenSSH's IPQoS reads them: the byte is four times the DSCP, so `throughput` (0x08) is 2.
"""

import re

from sojourn.units import UnitError, nearest, quoted

DSCPS = {
    **{f"cs{selector}": 8 * selector for selector in range(8)},
    **{f"af{each}{drop}": 8 * each + 2 * drop for each in range(1, 5) for drop in range(1, 4)},
    "ef": 46,
    "va": 44,
    "le": 1,
    # RFC 1349's bits of the TOS byte: 0x10, 0x08, 0x04.
    "lowdelay": 4,
    "throughput": 2,
    "reliability": 1,
}
"""Every name; where two are the same number the first is the one written."""

_NAMES = {number: name for name, number in reversed(DSCPS.items())}
_MEANT = {
    **dict.fromkeys(("be", "default", "df", "none", "best-effort", "besteffort", "normal"), "cs0"),
    **dict.fromkeys(("bulk", "scp", "background", "bk"), "throughput"),
    **dict.fromkeys(("interactive", "ssh", "low-delay", "minimize-delay"), "lowdelay"),
    **dict.fromkeys(("voice", "voip", "expedited"), "ef"),
    **dict.fromkeys(("scavenger", "lbe"), "le"),
}
"""Other words for these."""


def parse_dscp(value: object) -> int:
    """A codepoint from 0 to 63, by its name or as the number itself."""
    if isinstance(value, int) and not isinstance(value, bool):
        if 0 <= value < 64:
            return value
        hint = "write a number from 0 to 63, or a name like ef"
        if 64 <= value < 256:
            hint = f"as a TOS byte {value} is the DSCP {value >> 2}: write {_written(value >> 2)}"
        raise UnitError(f"{value} is not a DSCP", hint)
    if not isinstance(value, str):
        raise UnitError(f"{quoted(value)} is not a DSCP", 'write a name like "cs1", or a number from 0 to 63')
    if value in DSCPS:
        return DSCPS[value]
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,2}|[0-9]{1,3}", value, re.ASCII):
        hint = "write the DSCP without quotes, 0 to 63; it is a quarter of the TOS byte"
        raise UnitError(f"{quoted(value)} is not the name of a DSCP", hint)
    known = (
        "cs0 to cs7, af11 to af43, ef, va, le, lowdelay, throughput, reliability, or a number from 0 to 63"
    )
    guess = _MEANT.get(value.lower()) or nearest(value, DSCPS)
    hint = f"did you mean {guess}? known: {known}" if guess else f"known: {known}"
    raise UnitError(f"{quoted(value)} is not the name of a DSCP", hint)


def format_dscp(dscp: int) -> str | int:
    """The name, or the number where it has none."""
    return _NAMES.get(dscp, dscp)


def _written(dscp: int) -> str:
    """The DSCP as it stands in a scenario."""
    written = format_dscp(dscp)
    return f'"{written}"' if isinstance(written, str) else str(written)
