"""SQM's configuration: a scenario of its shaped line.

Three forms are read: `/etc/config/sqm` of OpenWrt, what `uci show sqm` prints, and the settings of
sqm-scripts on other systems (`/etc/sqm/eth0.iface.conf`), which are a shell's variables.

An enabled queue is taken: its rates, script, discipline and overhead, with the defaults of sqm-scripts
1.6. `layer_cake.qos` is cake with tins, `piece_of_cake.qos` without; downloads have none either, unless
`squash_ingress` is 0. `simple.qos` and `simplest.qos` are htb with a discipline below; the three
classes of `simple.qos` become one. The router's port is not the bottleneck: behind cake its rate is
`PORT`, behind htb it is unlimited.
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
_SHOWN = re.compile(
    r"^\s*(?:uci +)?(?:set +)?sqm\.(?P<section>@?\w+(?:\[-?\d+\])?)(?:\.(?P<option>\w+))?=(?P<value>.*)$"
)
"""A line of `uci show sqm`, or a command `uci set`."""
_VARIABLE = re.compile(r"^\s*(?:export +)?(?P<name>[A-Z_]+)=(?P<value>.*)$")
VARIABLES = {
    "UPLINK": "upload", "DOWNLINK": "download", "SCRIPT": "script", "QDISC": "qdisc", "LINKLAYER": "linklayer", "OVERHEAD": "overhead",
    "STAB_MPU": "tcMPU", "ILIMIT": "ilimit", "ELIMIT": "elimit", "ITARGET": "itarget", "ETARGET": "etarget", "IECN": "ingress_ecn",
    "EECN": "egress_ecn", "IQDISC_OPTS": "iqdisc_opts", "EQDISC_OPTS": "eqdisc_opts", "ZERO_DSCP_INGRESS": "squash_dscp",
    "IGNORE_DSCP_INGRESS": "squash_ingress", "ENABLED": "enabled", "IFACE": "interface",
}  # fmt: skip
"""sqm-scripts' variables, each with its option of UCI."""
DEFAULT_SCRIPT = "simple.qos"
DEFAULT_LIMIT = "1001"
"""The limit of a discipline below htb, in packets."""
RATES = {"down": "download", "up": "upload"}
"""The option of each direction's rate."""
TINS = {
    "layer_cake.qos": "diffserv3",
    "piece_of_cake.qos": "besteffort",
    "simplest.qos": "besteffort",
    "simple.qos": "diffserv3",
}
"""The tins of each script's cake."""
CAKE_SCRIPTS = ("layer_cake.qos", "piece_of_cake.qos")
SCRIPTS = (*TINS, "simplest_tbf.qos")
LIMITED = ("codel", "fq_codel", "pie", "fq_pie", "sfq", "pfifo")
AQMS = ("codel", "fq_codel", "pie", "fq_pie")
SLOW_TARGET_US = 13_992_000
"""The target of a link of 1 kbit/s in us: 33 cells of ATM."""
IGNORED = {
    "debug_logging", "verbosity", "interface", "enabled", "qdisc_advanced", "qdisc_really_really_advanced", "linklayer_advanced", "name",
    "linklayer_adaptation_mechanism", "tcMTU", "tcTSIZE",
}  # fmt: skip
"""Options that say nothing about the queue."""
HANDLED = {"download", "upload", "qdisc", "script", "iqdisc_opts", "eqdisc_opts", "linklayer", "overhead", "tcMPU", "ingress_ecn", "egress_ecn", "ilimit", "elimit", "itarget", "etarget", "squash_dscp", "squash_ingress"}  # fmt: skip


def _is_config(content: Content) -> bool:
    lines = content.head.splitlines()
    if any(_SECTION.match(line) for line in lines):
        return "option" in content.head
    names = {found["name"] for found in map(_VARIABLE.match, lines) if found}
    return names.issuperset(("UPLINK", "DOWNLINK")) or any(map(_SHOWN.match, lines))


def _read(content: Content) -> Texts:
    sections = _sections(content)
    if not sections:
        raise FileFormatError("it has no queue")
    enabled = [section for section in sections if section.get("enabled", "0") == "1"]
    notes = []
    if not enabled:
        enabled = sections
        notes.append("No queue is enabled in the file: the first one is taken all the same.")
    if len(enabled) > 1:
        others = ", ".join(section.get("interface", "?") for section in enabled[1:])
        notes.append(f"The first enabled queue is taken. Not taken: those of {others}.")
    queue = enabled[0]
    rates = {way: _kbits(queue, key) for way, key in RATES.items()}
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
    return Texts(
        {".toml": line_scenario(comment, keys, ["down", "up"])},
        taken,
        [*dict.fromkeys(notes)],
        use=TO_RUN,
    )


def _sections(content: Content) -> list[dict[str, str]]:
    """The options of each queue."""
    sections: list[dict[str, str]] = []
    shown: dict[str, dict[str, str]] = {}
    variables: dict[str, str] = {}
    for number, line in enumerate(content.lines, 1):
        if _SECTION.match(line):
            sections.append({})
        elif (found := _OPTION.match(line)) and sections:
            sections[-1][found[1]] = _value(found[2], number)
        elif found := _SHOWN.match(line):
            section = shown.setdefault(found["section"], {})
            if found["option"]:
                section[found["option"]] = _value(found["value"], number)
        elif (found := _VARIABLE.match(line)) and found["name"] in VARIABLES:
            variables[VARIABLES[found["name"]]] = _value(found["value"], number)
    if not sections and not shown and variables:
        return [{"enabled": "1", "script": DEFAULT_SCRIPT, **variables}]
    return [*sections, *shown.values()]


def _value(written: str, number: int) -> str:
    try:
        return " ".join(shlex.split(written, comments=True))
    except ValueError as error:
        raise FileFormatError(f"line {number}: {error}") from None


def _kbits(queue: Mapping[str, str], key: str) -> int:
    written = queue.get(key, "").strip() or "0"
    if not written.isdecimal():
        raise FileFormatError(f"{key} is {written[:40]!r}, which is not a rate in kbit/s")
    return int(written)


def _direction(queue: Mapping[str, str], way: str, kbits: int, notes: list[str]) -> dict[str, str]:
    """The keys of one direction: `qdisc`, and `shaper` where it is not cake."""
    script = queue.get("script", DEFAULT_SCRIPT)
    if script not in SCRIPTS:
        raise FileFormatError(
            f"script {script[:40]!r} is not one of SQM's own that are known: {', '.join(SCRIPTS)}"
        )
    short = "i" if way == "down" else "e"
    kind = "cake" if script in CAKE_SCRIPTS else queue.get("qdisc", "fq_codel")
    options = []
    for word in queue.get(f"{short}qdisc_opts", "").split():
        if word in ("nat", "nonat"):
            notes.append(f"{word} of {way} is left out: a scenario has no NAT.")
        else:
            options.append(word)
    if kind == "cake":
        return {"qdisc": " ".join(_cake(queue, way, kbits, options, notes))}
    if script == "simple.qos":
        notes.append(f"simple.qos has three classes of htb: {way} has one.")
    words = [kind]
    if kind in AQMS and not {"ecn", "noecn"} & {*options}:
        ecn = queue.get("ingress_ecn" if way == "down" else "egress_ecn", "") or "ECN"
        words.append("ecn" if ecn.upper() == "ECN" else "noecn")
    if kind in LIMITED and "limit" not in options:
        words.append(f"limit {queue.get(f'{short}limit', '') or DEFAULT_LIMIT}")
    if kind in AQMS and "target" not in options:
        words += _target(queue.get(f"{short}target", ""), kind, kbits)
    words += options
    shaper = " ".join([f"htb rate {kbits}kbit", *_overhead(queue, notes, cake=False)])
    return {"qdisc": " ".join(words), "shaper": shaper}


def _cake(
    queue: Mapping[str, str], way: str, kbits: int, options: list[str], notes: list[str]
) -> list[str]:
    words = [f"bandwidth {kbits}kbit", TINS.get(queue.get("script", DEFAULT_SCRIPT), "diffserv3")]
    if way == "down":
        if (queue.get("squash_ingress", "") or "1") != "0":
            words[-1] = "besteffort"
        if (queue.get("squash_dscp", "") or "1") != "0" and queue.get("script") in CAKE_SCRIPTS:
            words.append("wash")
    words += _overhead(queue, notes, cake=True)
    # Of two words for one setting tc takes the later one.
    for tins in {*options} & {"besteffort", "precedence", "diffserv3", "diffserv4", "diffserv8"}:
        words[1] = tins
    if "nowash" in options and "wash" in words:
        words.remove("wash")
    return ["cake", *words, *(word for word in options if word not in words)]


def _target(written: str, kind: str, kbits: int) -> list[str]:
    """The target of the AQM: the file's, or one that follows from the rate if the rate is so low
    that a packet takes long."""
    if re.fullmatch(r"\d+(s|secs?|ms|msecs?|us|usecs?)", written):
        return [f"target {written}"]
    if written.lower() == "default" or kind == "fq_pie":
        return []
    microseconds = max(SLOW_TARGET_US // kbits, 5_000)
    if kind == "pie":
        return [f"target {microseconds}us"]
    slow = microseconds > 5_000
    return [f"target {microseconds}us interval {95_000 + microseconds}us"] if slow else []


def _overhead(queue: Mapping[str, str], notes: list[str], *, cake: bool) -> list[str]:
    kind = queue.get("linklayer", "none") or "none"
    size = queue.get("overhead", "0") or "0"
    if kind == "none":
        if size != "0":
            notes.append(f"overhead {size} is left out, as SQM leaves it out with linklayer none.")
        return []
    words = [f"overhead {size}"]
    if queue.get("tcMPU", "0") not in ("", "0"):
        words.append(f"mpu {queue['tcMPU']}")
    if kind in ("atm", "adsl"):
        words.append("atm" if cake else "linklayer atm")
    elif kind != "ethernet":
        notes.append(f"linklayer {kind} is not known: only its overhead is taken.")
    return words


FORMATS = (
    Format("sqm", "SQM", "/etc/config/sqm of OpenWrt, uci show sqm, or /etc/sqm/eth0.iface.conf", Yields.SCENARIO, _is_config, _read),
)  # fmt: skip
