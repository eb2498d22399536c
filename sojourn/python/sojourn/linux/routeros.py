"""The disciplines of MikroTik's RouterOS 7 in tc's syntax, and back: `/queue type`.

RouterOS runs Linux' disciplines under names of its own: `fq_codel target 5ms` is `kind=fq-codel
fq-codel-target=5ms`. Source: manual.mikrotik.com, Queues; exports of public routers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

KINDS = {
    "cake": "cake",
    "fq_codel": "fq-codel",
    "codel": "codel",
    "pfifo": "pfifo",
    "bfifo": "bfifo",
}
VALUES = {
    "cake": {"bandwidth": "bandwidth", "rtt": "rtt", "overhead": "overhead", "mpu": "mpu", "memlimit": "memlimit"},
    "fq_codel": {
        "limit": "limit", "flows": "flows", "target": "target", "interval": "interval", "quantum": "quantum",
        "memory_limit": "memlimit", "ce_threshold": "ce-threshold",
    },
    "codel": {"limit": "limit", "target": "target", "interval": "interval", "ce_threshold": "ce-threshold"},
    "pfifo": {"limit": "limit"},
    "bfifo": {"limit": "limit"},
}  # fmt: skip
"""tc's options with a value, each with RouterOS' name for it, without the kind in front."""
CHOICES = {
    "cake": {
        "diffserv": ("besteffort", "precedence", "diffserv3", "diffserv4", "diffserv8"),
        "flowmode": ("flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost", "triple-isolate"),
        "atm": ("atm", "ptm"),
        "overhead-scheme": (
            "conservative", "ethernet", "ether-vlan", "docsis", "pppoa-vcmux", "pppoa-llc", "pppoe-vcmux", "pppoe-llcsnap", "bridged-vcmux",
            "bridged-llcsnap", "ipoa-vcmux", "ipoa-llcsnap", "pppoe-ptm", "bridged-ptm",
        ),
        "rtt-scheme": ("datacentre", "lan", "metro", "regional", "internet", "oceanic", "satellite", "interplanetary"),
    },
}  # fmt: skip
"""By option of RouterOS: words of tc that exclude each other, but for those of `overhead-scheme`."""
SWITCHES = {
    "cake": {"nat": ("nat", "yes"), "nonat": ("nat", "no"), "wash": ("wash", "yes"), "nowash": ("wash", "no"), "ack-filter": ("ack-filter", "filter"), "ack-filter-aggressive": ("ack-filter", "aggressive"), "no-ack-filter": ("ack-filter", "none"), "noatm": ("atm", "none")},
    "fq_codel": {"ecn": ("ecn", "yes"), "noecn": ("ecn", "no")},
    "codel": {"ecn": ("ecn", "yes"), "noecn": ("ecn", "no")},
}  # fmt: skip
"""Words of tc without a value, each with the option of RouterOS and its value."""
UNSAID = {
    "cake": {"raw", "egress", "ingress", "split-gso", "no-split-gso"},
    "fq_codel": {"drop_batch"},
}
"""Words of tc for which RouterOS has no option."""
BUILT_IN = {
    "default": "pfifo limit 10",
    "default-small": "pfifo limit 10",
    "ethernet-default": "pfifo limit 50",
}
"""Types that every RouterOS has."""


def options(words: str) -> dict[str, str] | None:
    """The options of a `/queue type` for this discipline; None: RouterOS has no such discipline, or
    not with these words.

    >>> options("fq_codel target 5ms ecn")
    {'kind': 'fq-codel', 'fq-codel-target': '5ms', 'fq-codel-ecn': 'yes'}
    """
    kind, *rest = words.split()
    if kind not in KINDS:
        return None
    prefix = KINDS[kind]
    found = {"kind": prefix}
    values, switches = VALUES[kind], SWITCHES.get(kind, {})
    choices = {word: name for name, known in CHOICES.get(kind, {}).items() for word in known}
    at = 0
    while at < len(rest):
        word = rest[at]
        if word in values and at + 1 < len(rest):
            found[f"{prefix}-{values[word]}"] = rest[at + 1]
            at += 1
        elif word in choices:
            name = f"{prefix}-{choices[word]}"
            several = choices[word] == "overhead-scheme" and name in found
            found[name] = f"{found[name]},{word}" if several else word
        elif word in switches:
            name, value = switches[word]
            found[f"{prefix}-{name}"] = value
        elif word == "drop_batch" and kind == "fq_codel":
            at += 1
        elif word not in UNSAID.get(kind, ()):
            return None
        at += 1
    return found


def words(settings: Mapping[str, str]) -> tuple[str, list[str]]:
    """The discipline in tc's syntax, and the options that have none.

    >>> words({"name": "x", "kind": "pfifo", "pfifo-limit": "50"})
    ('pfifo limit 50', [])

    Raises:
        ValueError: the kind is not one of ours.
    """
    kind = next((ours for ours, theirs in KINDS.items() if theirs == settings.get("kind")), None)
    if kind is None:
        raise ValueError(
            f"its kind {settings.get('kind', '')!r} is not {', '.join(KINDS.values())}"
        )
    prefix = f"{KINDS[kind]}-"
    by_option = {theirs: ours for ours, theirs in VALUES[kind].items()}
    by_switch = {said: word for word, said in SWITCHES.get(kind, {}).items()}
    found, unread = [kind], []
    for name, value in settings.items():
        option = name.removeprefix(prefix)
        if not name.startswith(prefix):
            continue
        if option == "bandwidth" and value in ("0", "0bps", "unlimited"):
            continue
        chosen = value.split(",")
        if set(chosen) <= set(CHOICES.get(kind, {}).get(option, ())):
            found += chosen
        elif (option, value) in by_switch:
            found.append(by_switch[option, value])
        elif option in by_option:
            found += [by_option[option], _value(option, value)]
        else:
            unread.append(f"{name}={value}")
    return " ".join(found), unread


def _value(option: str, value: str) -> str:
    if option == "bandwidth":
        return f"{rate_bps(value)}bit"
    # RouterOS prints 32.0MiB; tc takes 33554432.
    size = re.fullmatch(r"([\d.]+)([KM])iB", value)
    return str(round(float(size[1]) * {"K": 2**10, "M": 2**20}[size[2]])) if size else value


def rate_bps(text: str) -> int:
    """A rate of RouterOS: `9500k`, `47.5M`, `10000000`.

    Raises:
        ValueError: it is not one.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kKMG]?)(?:bps)?", text)
    if not found:
        raise ValueError(f"{text!r} is not a rate of RouterOS")
    return round(
        float(found[1]) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[found[2].replace("K", "k")]
    )
