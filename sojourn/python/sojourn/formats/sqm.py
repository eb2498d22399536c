"""SQM's configuration, `/etc/config/sqm` of OpenWrt: a scenario of its shaped line.

An enabled queue is taken: its rates, script, discipline and overhead. `layer_cake.qos` is cake with
tins, `piece_of_cake.qos` without. `simple.qos` and `simplest.qos` are htb with a discipline below; of
`simple.qos` the three classes are left out. The router's own port is not the bottleneck: behind cake it
has `PORT`, behind htb it is unlimited.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from sojourn.formats.content import Content
from sojourn.formats.format import FileFormatError, Format, Yields
from sojourn.formats.texts import GUESSED_DELAY, LINK_LAYER, PORT, TO_RUN, Texts, line_scenario

_SECTION = re.compile(r"^\s*config\s+queue\b(.*)$")
_OPTION = re.compile(r"^\s*option\s+(\S+)\s+(.*)$")
DEFAULT_SCRIPT = "simple.qos"
RATES = {"down": "download", "up": "upload"}
"""The option of each direction's rate."""
TINS = {"layer_cake.qos": "diffserv3", "piece_of_cake.qos": "besteffort"}
"""The tins of scripts that set up cake."""
ISOLATION = {"up": "dual-srchost", "down": "dual-dsthost"}
IGNORED = {
    "debug_logging", "verbosity", "interface", "enabled", "qdisc_advanced", "qdisc_really_really_advanced", "linklayer_advanced", "name",
}  # fmt: skip
"""Options that say nothing about the queue."""
HANDLED = {"download", "upload", "qdisc", "script", "iqdisc_opts", "eqdisc_opts", "linklayer", "overhead", "tcMPU", "ingress_ecn", "egress_ecn", "ilimit", "elimit", "itarget", "etarget"}  # fmt: skip


def _is_config(content: Content) -> bool:
    return (
        any(_SECTION.match(line) for line in content.head.splitlines()) and "option" in content.head
    )


def _read(content: Content) -> Texts:
    sections = _sections(content)
    enabled = [section for section in sections if section.get("enabled", "0") == "1"]
    notes = []
    if not enabled:
        enabled = sections
        notes.append("No queue is enabled in the file: the first one is taken all the same.")
    if len(enabled) > 1:
        others = ", ".join(section.get("interface", "?") for section in enabled[1:])
        notes.append(f"The first enabled queue is taken. Not taken: those of {others}.")
    queue = enabled[0]
    rates = {way: int(queue.get(key, "0") or "0") for way, key in RATES.items()}
    if not any(rates.values()):
        raise FileFormatError("both of its rates are 0, so nothing is shaped")
    taken = []
    keys: dict[str, object] = {"delay": GUESSED_DELAY, "link_layer": LINK_LAYER}
    for way, rate in rates.items():
        if not rate:
            keys[f"{way}.rate"] = PORT
            notes.append(
                f"option {RATES[way]} is 0, so SQM does not shape this direction: it is a link of {PORT}, which is a guess."
            )
            continue
        words = _direction(queue, way, rate, notes)
        words = {"rate": "unlimited" if "shaper" in words else PORT, **words}
        keys |= {f"{way}.{name}": value for name, value in words.items()}
        taken.append(
            f"{way}: {words['qdisc']}" + (f" below {words['shaper']}" if "shaper" in words else "")
        )
    left = sorted(queue.keys() - IGNORED - HANDLED)
    if left:
        notes.append(f"Options that were not taken: {', '.join(left)}.")
    notes.append(
        f"The file has no delay: {GUESSED_DELAY} in each direction is a guess, and so is the traffic."
    )
    comment = f"The shaper of {content.path.name}, interface {queue.get('interface', 'unknown')}."
    return Texts({".toml": line_scenario(comment, keys, ["down", "up"])}, taken, notes, use=TO_RUN)


def _sections(content: Content) -> list[dict[str, str]]:
    sections: list[dict[str, str]] = []
    for number, line in enumerate(content.lines, 1):
        if _SECTION.match(line):
            sections.append({})
            continue
        found = _OPTION.match(line)
        if found and sections:
            try:
                words = shlex.split(found[2], comments=True)
            except ValueError as error:
                raise FileFormatError(f"line {number}: {error}") from None
            sections[-1][found[1]] = " ".join(words)
    return sections


def _direction(queue: Mapping[str, str], way: str, kbits: int, notes: list[str]) -> dict[str, str]:
    """The keys of one direction: `qdisc`, and `shaper` where it is not cake."""
    script = queue.get("script", DEFAULT_SCRIPT)
    advanced = queue.get("qdisc_advanced", "0") == "1"
    expert = advanced and queue.get("qdisc_really_really_advanced", "0") == "1"
    options = queue.get(f"{'i' if way == 'down' else 'e'}qdisc_opts", "") if expert else ""
    overhead = _overhead(queue, notes)
    if script in TINS:
        words = [f"cake bandwidth {kbits}kbit", TINS[script], *overhead]
        if way == "down":
            words.append("ingress")
        for word in options.split():
            if word in ("nat", "nonat"):
                notes.append(f"{word} of {way} is left out: a scenario has no NAT.")
            elif word not in words:
                words.append(word)
        return {"qdisc": " ".join(words)}
    if script not in ("simple.qos", "simplest.qos", "simplest_tbf.qos"):
        raise FileFormatError(
            f"script {script!r} is not one of SQM's own that are known: layer_cake, piece_of_cake, simple, simplest"
        )
    if script == "simple.qos":
        notes.append(f"simple.qos has three classes of htb: {way} has one.")
    ecn = queue.get(
        "ingress_ecn" if way == "down" else "egress_ecn", "ECN" if way == "down" else "NOECN"
    )
    words = [queue.get("qdisc", "fq_codel")]
    if words[0] in ("fq_codel", "codel", "pie", "fq_pie") and not {"ecn", "noecn"} & {
        *options.split()
    }:
        words.append("ecn" if ecn.upper() == "ECN" else "noecn")
    limit = queue.get("ilimit" if way == "down" else "elimit", "")
    if expert and limit:
        words.append(f"limit {limit}")
    words += options.split()
    return {"qdisc": " ".join(words), "shaper": " ".join([f"htb rate {kbits}kbit", *overhead])}


def _overhead(queue: Mapping[str, str], notes: list[str]) -> list[str]:
    kind = queue.get("linklayer", "none")
    size = queue.get("overhead", "0") or "0"
    cake = queue.get("script", DEFAULT_SCRIPT) in TINS
    words = [f"overhead {size}"] if kind != "none" or size != "0" else []
    if queue.get("tcMPU", "0") not in ("", "0"):
        words.append(f"mpu {queue['tcMPU']}")
    if kind in ("atm", "adsl"):
        words.append("atm" if cake else "linklayer atm")
    elif kind not in ("none", "ethernet"):
        notes.append(f"linklayer {kind} is not known: only its overhead is taken.")
    return words


FORMATS = (
    Format("sqm", "SQM", "/etc/config/sqm of OpenWrt", Yields.SCENARIO, _is_config, _read),
)  # fmt: skip
