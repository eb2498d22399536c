"""The qdiscs and classes of tc, as a link of a scenario: read by `tc_show` and `tc_script`.

A device that receives redirected packets, or is called `ifb...`, is the link down; the other one is
the link up. One of htb's classes is taken, with its queue: the class to which a filter sends every
packet, or else the default class. Its rate is the lowest ceil on the way to the root. A tbf with a
queue below it is a shaper; without one it is the link's queue. netem is the wire. A note names each
line that a scenario can't express, and the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sojourn.formats.content import Content
from sojourn.formats.file_series import counted
from sojourn.formats.format import FileFormatError
from sojourn.formats.texts import (
    GUESSED_DELAY,
    GUESSES,
    LINK_LAYER,
    PORT,
    TO_RUN,
    Texts,
    line_scenario,
)

QUIET = ("noqueue", "ingress", "clsact", "mq")
"""Kinds that queue nothing themselves."""
CHARGES = ("overhead", "mpu", "linklayer")
"""Words of a class or of a size table that change the length that is counted."""
NETEM = {"loss": "loss", "duplicate": "duplicate", "reorder": "reorder", "slot": "slot"}
"""The words of netem, each with the key of a link that takes the same value."""


@dataclass(frozen=True)
class QdiscLine:
    """A qdisc."""

    number: int
    """The line of the file."""
    kind: str
    handle: str
    dev: str
    parent: str
    """"root", a class or a handle."""
    words: str
    size_table: Mapping[str, str] = field(default_factory=dict)
    """The words of its size table (stab)."""


@dataclass(frozen=True)
class ClassLine:
    """A class of htb."""

    number: int
    dev: str
    """"": the file does not name the device, like the output of `tc class show`."""
    name: str
    parent: str
    words: Mapping[str, str]

    @property
    def rate(self) -> str:
        """The rate that the class reaches if no other class sends."""
        return self.words.get("ceil", self.words.get("rate", ""))


@dataclass
class Tree:
    """The content of a file."""

    qdiscs: list[QdiscLine] = field(default_factory=list)
    classes: list[ClassLine] = field(default_factory=list)
    deleted: dict[str, tuple[int, list[QdiscLine], list[ClassLine]]] = field(default_factory=dict)
    """The queues of each device that a script deleted, each with the number of the deleting line."""
    redirected: list[str] = field(default_factory=list)
    """Devices that receive the packets that arrive."""
    filtered: dict[str, str] = field(default_factory=dict)
    """For each device, the class to which a filter sends every packet."""
    polices: dict[str, tuple[int, str]] = field(default_factory=dict)
    """The line and the words of the policer of each device's arriving packets."""
    notes: list[str] = field(default_factory=list)


def pairs(words: Sequence[str]) -> dict[str, str]:
    """Makes `rate 1mbit ceil 2mbit` a dictionary: `{"rate": "1mbit", "ceil": "2mbit"}`."""
    return dict(zip(words[::2], words[1::2], strict=False))


def scenario(content: Content, tree: Tree) -> Texts:
    """The scenario of a line with these queues.

    Raises:
        FileFormatError: none of them queues anything.
    """
    notes = tree.notes
    for gone, (number, qdiscs, classes) in tree.deleted.items():
        if not any(line.dev == gone for line in tree.qdiscs):
            tree.qdiscs += qdiscs
            tree.classes += classes
            notes.append(
                f"Line {number} deletes the queues of {gone}, as a script does to stop: they are taken all the same."
            )
    devices = list(dict.fromkeys(line.dev for line in tree.qdiscs if line.kind not in QUIET))
    downs = [dev for dev in devices if dev.startswith("ifb") or dev in tree.redirected]
    ups = [dev for dev in devices if dev not in downs]
    if not devices and not tree.polices:
        raise FileFormatError("none of its qdiscs queues anything")
    up, down = next(iter(ups), None), next(iter(downs), None)
    others = [dev for dev in devices if dev not in (up, down)]
    if others:
        notes.append(
            f"Devices that were not taken: {', '.join(others)}. To take another device, give a file with only the devices of its line."
        )
    keys: dict[str, object] = {"delay": GUESSED_DELAY, "link_layer": LINK_LAYER}
    taken = []
    for way, dev in (("down", down), ("up", up)):
        if dev is None:
            keys[f"{way}.rate"] = PORT
            notes.append(
                f"The file has no device for the link {way} ({'ifb...' if way == 'down' else 'not ifb...'}): the link has {PORT} and a pfifo."
            )
            continue
        link = _link(dev, tree, notes)
        keys |= {f"{way}.{name}": value for name, value in link.items()}
        taken.append(f"{way}, {dev}: {_described(link)}")
    for dev, (number, words) in tree.polices.items():
        if dev == (up or dev) and _valid({"police": words}, number, "police", notes):
            keys["down.police"] = words
            taken.append(f"down, arriving at {dev}: police {words}")
    known = "down.delay" in keys and "up.delay" in keys
    notes.append(
        "The file has no traffic: four connections each way are guesses." if known else GUESSES
    )
    text = line_scenario(f"The queues of {content.path.name}.", keys, ["down", "up"])
    return Texts({".toml": text}, taken, notes, use=TO_RUN)


def _described(link: Mapping[str, str]) -> str:
    parts = [link.get("qdisc", "pfifo")]
    if "shaper" in link:
        parts.append(f"below {link['shaper']}")
    keys = ("rate", "delay", "jitter", *NETEM.values())
    wire = [f"{key} {link[key]}" for key in keys if link.get(key, PORT) not in (PORT, "unlimited")]
    return " ".join(parts) + (f", wire: {', '.join(wire)}" if wire else "")


def _link(dev: str, tree: Tree, notes: list[str]) -> dict[str, str]:
    """A link's keys."""
    own = [line for line in tree.qdiscs if line.dev == dev and line.kind not in QUIET]
    link: dict[str, str] = {"rate": PORT}
    chosen = _chosen(own, dev, tree, notes)
    for line in _passed(own, chosen, notes):
        link |= _wire(line, notes)
    for line in own:
        # The size table of a shaper is part of its words, unless its overhead is negative.
        if line.size_table and (line.kind not in ("htb", "tbf") or _below_zero(line.size_table)):
            link |= _layer(line, notes)
    if chosen.shaper:
        link |= _shapes(*chosen.shaper, notes)
    leaf = chosen.queue
    if leaf is not None:
        words = f"{leaf.kind} {leaf.words}".strip()
        if _valid({"qdisc": words}, leaf.number, leaf.kind, notes):
            link["qdisc"] = words
        elif taken := _without_wrong(leaf, notes):
            link["qdisc"] = taken
    return link


@dataclass(frozen=True)
class _Chosen:
    """The queue of a device that is taken."""

    queue: QdiscLine | None = None
    shaper: tuple[int, str] | None = None
    """The line and the words of its shaper."""
    place: str = ""
    """The class of htb that it belongs to."""


MOST_WRONG = 4
"""Words of a queue that may be left out."""


def _without_wrong(leaf: QdiscLine, notes: list[str]) -> str:
    """The queue without the words that a scenario does not take, each alone or with its value. "": a
    scenario has no such queue."""
    words = leaf.words.split()
    left: list[str] = []
    for _ in range(MOST_WRONG):
        known = len(_fitting(leaf.kind, words))
        if known == len(words):
            break
        size = next(
            (
                size
                for size in (1, 2)
                if len(_fitting(leaf.kind, words[:known] + words[known + size :])) > known
            ),
            1,
        )
        left += words[known : known + size]
        words = words[:known] + words[known + size :]
    whole = " ".join([leaf.kind, *words])
    if left and _valid({"qdisc": whole}, leaf.number, leaf.kind, []):
        notes.append(f"Line {leaf.number}: {' '.join(left)} of {leaf.kind} is left out.")
        return whole
    if _valid({"qdisc": leaf.kind}, leaf.number, leaf.kind, []):
        notes.append(f"Line {leaf.number}: {leaf.kind} is taken with its defaults.")
        return leaf.kind
    return ""


def _fitting(kind: str, words: Sequence[str]) -> Sequence[str]:
    """The longest beginning of these words that makes a valid queue."""
    for size in range(len(words), 0, -1):
        if _valid({"qdisc": " ".join([kind, *words[:size]])}, 0, kind, []):
            return words[:size]
    return []


def _chosen(own: Sequence[QdiscLine], dev: str, tree: Tree, notes: list[str]) -> _Chosen:
    queues = [line for line in own if line.kind not in ("netem", "htb")]
    htb = next((line for line in own if line.kind == "htb"), None)
    tbf = next((line for line in queues if line.kind == "tbf"), None)
    below = [line for line in queues if line is not tbf]
    if htb is not None:
        chosen = _class_of(htb, dev, below, tree, notes)
        _leave(htb, below, chosen.queue, notes)
        return chosen
    if tbf is not None and not below:
        charges = " ".join(f"{key} {value}" for key, value in _charges(tbf).items())
        return _Chosen(replace(tbf, words=f"{tbf.words} {charges}".strip()))
    if tbf is not None:
        rate = {**_charges(tbf), **pairs(tbf.words.split())}
        words = " ".join(
            f"{key} {rate[key].lower()}" for key in ("rate", "burst", *CHARGES) if key in rate
        )
        notes.append(
            f"Line {tbf.number}: tbf's own limit is left out: {below[0].kind} is its queue."
        )
        return _Chosen(below[0], (tbf.number, f"htb {words}"))
    if not queues:
        return _Chosen()
    _leave(queues[0], queues, queues[0], notes, alike=True)
    return _Chosen(queues[0])


def _passed(own: Sequence[QdiscLine], chosen: _Chosen, notes: list[str]) -> list[QdiscLine]:
    """The netem that the packets of the queue pass. Adds a note on each other one."""
    by_handle = {line.handle: line for line in own if line.handle}
    passed: list[QdiscLine] = []
    for line in own:
        if line.kind != "netem":
            continue
        above = by_handle.get(f"{line.parent.partition(':')[0]}:")
        if above is not None and above.kind == "htb" and not chosen.place:
            # The file does not have htb's classes.
            taken = not passed
        elif above is not None and above.kind == "htb":
            taken = line.parent == chosen.place
        else:
            taken = not passed
            if above is not None and above.kind not in ("netem", "tbf"):
                notes.append(
                    f"Line {line.number}: netem is at {line.parent} of {above.kind}, which only some packets pass: here all of them do."
                )
        if taken:
            passed.append(line)
        else:
            notes.append(f"Line {line.number}: netem is at {line.parent}, which is not taken.")
    return passed


def _charges(line: QdiscLine) -> dict[str, str]:
    """What the size table of a shaper adds to its words."""
    if _below_zero(line.size_table):
        return {}
    return {key: line.size_table[key] for key in CHARGES if key in line.size_table}


def _below_zero(size_table: Mapping[str, str]) -> bool:
    return size_table.get("overhead", "").startswith("-")


ETHERNET_BYTES = 14
"""The bytes of the header below IP that Linux counts in a packet's length."""


def _layer(line: QdiscLine, notes: list[str]) -> dict[str, str]:
    """The link layer that has the effect of a size table (tc-stab(8)): disciplines count its
    overhead, too. A negative overhead reduces the bytes of Ethernet."""
    try:
        overhead, least = (int(line.size_table.get(word, "0")) for word in ("overhead", "mpu"))
    except ValueError:
        overhead, least = -ETHERNET_BYTES - 1, 0
    if overhead < -ETHERNET_BYTES:
        notes.append(
            f"Line {line.number}: stab overhead {line.size_table['overhead']}: a scenario can subtract at most the {ETHERNET_BYTES} bytes of Ethernet. It is left out."
        )
        return {}
    cells = "atm " if line.size_table.get("linklayer") in ("atm", "adsl") else ""
    size = ETHERNET_BYTES + overhead
    keys = {"link_layer": f"{cells}overhead {size} mpu {least} header {size}"}
    return keys if _valid(keys, line.number, "stab", notes) else {}


def _shapes(number: int, words: str, notes: list[str]) -> dict[str, str]:
    """The keys of a link with this shaper; none: it is not valid."""
    if not words:
        return {}
    shapes = {"rate": "unlimited", "shaper": words}
    if _valid(shapes, number, "shaper", notes):
        return shapes
    # Its rate matters more than its overhead.
    shapes["shaper"] = " ".join(words.split()[:3])
    if not _valid(shapes, number, "shaper", []):
        return {}
    notes.append(f"Line {number}: the shaper is taken as {shapes['shaper']}.")
    return shapes


def _leave(
    root: QdiscLine, below: Sequence[QdiscLine], leaf: QdiscLine | None, notes: list[str], *, alike: bool = False
) -> None:  # fmt: skip
    """Adds a note that names the queues of a device that were not chosen."""
    if alike and {(line.kind, line.words) for line in below} == {(root.kind, root.words)}:
        return
    others = [str(line.number) for line in below if line is not leaf]
    if others and leaf is not None:
        notes.append(
            f"{root.kind} has {len(below)} queues: that of line {leaf.number} is taken, those of the lines {', '.join(others)} are not."
        )


def _class_of(
    htb: QdiscLine, dev: str, below: Sequence[QdiscLine], tree: Tree, notes: list[str]
) -> _Chosen:
    """The queue of one of htb's classes, and the shaper of that class."""
    own = {
        each.name: each
        for each in tree.classes
        if each.dev in ("", dev) and each.name.startswith(htb.handle)
    }
    by_parent = {line.parent: line for line in below}
    first = next(iter(below), None)
    if not own:
        notes.append(
            f"Line {htb.number}: htb's rate is in its class: add the output of `tc class show dev {dev}` to the file."
        )
        return _Chosen(first)
    chosen, why = _leaf_class(htb, own, tree.filtered.get(dev, ""))
    up: list[ClassLine] = [chosen]
    while up[-1].parent in own and own[up[-1].parent] not in up:
        up.append(own[up[-1].parent])
    words = {"rate": _slowest(each.rate for each in up)}
    burst = chosen.words.get("cburst" if "ceil" in chosen.words else "burst")
    if burst is not None:
        words["burst"] = burst
    for source in (_charges(htb), chosen.words):
        words |= {key: source[key] for key in CHARGES if key in source}
    if len(own) > len(up) or why:
        notes.append(
            f"htb of {dev} has {counted(len(own), 'class', 'classes')}: {chosen.name} is taken{why}."
        )
    # `tc -d class show` adds a cell's size to a burst, and `b` to a number of bytes.
    shaper = " ".join(
        f"{key} {value.partition('/')[0].lower().removesuffix('b') if key == 'mpu' else value.partition('/')[0].lower()}"
        for key, value in words.items()
    )
    queue = by_parent.get(chosen.name, None if by_parent else first)
    return _Chosen(queue, (chosen.number, f"htb {shaper}"), chosen.name)


def _leaf_class(
    htb: QdiscLine, own: Mapping[str, ClassLine], filtered: str
) -> tuple[ClassLine, str]:
    """The class that is taken, and the reason where it is not the default one.

    `filtered`: the class to which a filter sends every packet.
    """
    inner = {each.parent for each in own.values()}
    leaves = [each for name, each in own.items() if name not in inner]
    if filtered in own:
        return own[filtered], ", to which a filter sends every packet"
    minor = pairs(htb.words.split()).get("default", "0").removeprefix("0x")
    default = f"{htb.handle}{minor}"
    if default in own and default not in inner:
        return own[default], ""
    reason = "has classes below it" if default in own else "does not exist"
    why = (
        f", since the default class {default} {reason}: Linux sends packets that no filter matches unshaped"
        if minor != "0"
        else ""
    )
    return next(iter(leaves or own.values())), why


def _slowest(rates: Iterable[str]) -> str:
    from sojourn.scenario.qdisc import read_rate

    known = []
    for rate in rates:
        try:
            known.append((read_rate(rate.lower()), rate))
        except ValueError:
            return rate
    return min(known)[1]


def _wire(line: QdiscLine, notes: list[str]) -> dict[str, str]:
    """netem's words as keys of a link."""
    wire: dict[str, str] = {}
    words = line.words.split()
    for word, values in _groups(words):
        settings = " ".join(values)
        if word == "limit":
            continue
        keys: dict[str, str] = {}
        if word == "delay" and values:
            keys["delay"] = values[0]
            if len(values) > 1:
                keys["jitter"] = " ".join(values[1:])
        elif word == "rate" and values:
            keys["rate"] = values[0]
        elif word in NETEM:
            keys[NETEM[word]] = settings.removeprefix("random ")
        keys = {key: _spelled(key, value) for key, value in keys.items()}
        if not keys:
            notes.append(
                f"Line {line.number}: netem {word} {settings}: a scenario has no such key."
            )
        elif _valid({**wire, **keys}, line.number, "netem", notes):
            wire |= keys
    limits = [values[0] for word, values in _groups(words) if word == "limit" and values]
    if "rate" in wire:
        wire["qdisc"] = f"pfifo limit {limits[0] if limits else NETEM_LIMIT}"
    return wire


NETEM_LIMIT = 1000
"""Packets in netem without a limit of its own."""
NETEM_WORDS = (
    "limit",
    "delay",
    "rate",
    "loss",
    "duplicate",
    "reorder",
    "corrupt",
    "slot",
    "ecn",
    "gap",
)


def _groups(words: Sequence[str]) -> list[tuple[str, list[str]]]:
    """netem's words, each with its values. `distribution` belongs to the delay."""
    groups: list[tuple[str, list[str]]] = []
    for word in words:
        if word in NETEM_WORDS or not groups:
            groups.append((word, []))
        else:
            groups[-1][1].append(word)
    return groups


def _spelled(key: str, value: str) -> str:
    """tc's value in the scenario's spelling."""
    if key == "rate":
        from sojourn.scenario.qdisc import read_rate

        try:
            return f"{read_rate(value.lower())} bit/s"
        except ValueError:
            return value
    return value


def _valid(keys: Mapping[str, str], number: int, what: str, notes: list[str]) -> bool:
    """Whether these keys make a valid link. If not, adds a note with the line and the reason."""
    from sojourn.scenario import ScenarioError, loads

    try:
        loads(line_scenario("", {"delay": GUESSED_DELAY, "rate": PORT, **keys}, []))
    except ScenarioError as error:
        reason = (
            str(error).splitlines()[0].partition("bottleneck.")[2] or str(error).splitlines()[0]
        )
        notes.append(f"Line {number}: {what}: {reason}")
        return False
    return True
