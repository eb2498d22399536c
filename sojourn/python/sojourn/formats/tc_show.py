"""The output of `tc qdisc show` or `tc -s qdisc show`, with `tc class show` if it is there: a scenario.

A device `ifb...` (SQM's ifb4eth0) is the link down, the other device the link up. An htb or tbf
becomes the link's shaper. The rate of htb is the rate of its class, so it needs `tc class show`. A
note names each line that a scenario can't contain, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sojourn.formats.content import Content
from sojourn.formats.format import FileFormatError, Format, Yields
from sojourn.formats.texts import GUESSED_DELAY, PORT, TO_RUN, Texts, line_scenario

_QDISC = re.compile(
    r"^qdisc (?P<kind>\S+) (?P<handle>[0-9a-f]+:)(?: \[offloaded\])?(?: dev (?P<dev>\S+))? (?P<at>root|parent \S+|ingress_block\S*)(?: refcnt \d+)? ?(?P<words>.*)$"
)
_CLASS = re.compile(
    r"^class htb (?P<id>\S+) (?:root|parent (?P<parent>\S+)).*? rate (?P<rate>\S+)(?: ceil (?P<ceil>\S+))?"
)
QUIET = ("noqueue", "ingress", "clsact", "mq")
"""Kinds that queue nothing themselves."""
SHAPERS = ("htb", "tbf")


@dataclass(frozen=True)
class _Line:
    number: int
    kind: str
    handle: str
    dev: str
    root: bool
    words: str


def _is_show(content: Content) -> bool:
    return any(_QDISC.match(line.strip()) for line in content.head.splitlines())


def _read(content: Content) -> Texts:
    qdiscs, classes = _lines(content)
    notes: list[str] = []
    devices = list(dict.fromkeys(line.dev for line in qdiscs if line.kind not in QUIET))
    if not devices:
        raise FileFormatError("none of its qdiscs queues anything")
    downs = [dev for dev in devices if dev.startswith("ifb")]
    ups = [dev for dev in devices if dev not in downs]
    up, down = next(iter(ups), None), next(iter(downs), None)
    others = [dev for dev in devices if dev not in (up, down)]
    if others:
        notes.append(
            f"Devices that were not taken: {', '.join(others)}. Give a file of one line's devices for another choice."
        )
    keys: dict[str, object] = {"delay": GUESSED_DELAY}
    taken = []
    for way, dev in (("down", down), ("up", up)):
        words = (
            _link([line for line in qdiscs if line.dev == dev], classes, notes)
            if dev
            else {"rate": PORT}
        )
        if dev:
            taken.append(
                f"{way}, {dev}: {words.get('qdisc', 'pfifo')}"
                + (f" below {words['shaper']}" if "shaper" in words else "")
            )
        else:
            notes.append(
                f"No device for the way {way} ({'ifb...' if way == 'down' else 'not ifb...'}): it is a link of {PORT} with pfifo."
            )
        keys |= {f"{way}.{name}": value for name, value in words.items()}
    notes.append(
        f"The file has neither delay nor traffic: {GUESSED_DELAY} in each direction and four connections each way are guesses."
    )
    text = line_scenario(f"The queues of {content.path.name}.", keys, ["down", "up"])
    return Texts({".toml": text}, taken, notes, use=TO_RUN)


def _lines(content: Content) -> tuple[list[_Line], dict[str, str]]:
    """The qdiscs, and the rates of htb's classes by device and class id."""
    qdiscs: list[_Line] = []
    classes: dict[str, str] = {}
    for number, line in enumerate(content.lines, 1):
        found = _QDISC.match(line.strip())
        if found:
            words = found["words"].strip()
            qdiscs.append(
                _Line(
                    number,
                    found["kind"],
                    found["handle"],
                    found["dev"] or "",
                    found["at"] == "root",
                    words,
                )
            )
        elif one_class := _CLASS.match(line.strip()):
            classes.setdefault(one_class["id"], one_class["ceil"] or one_class["rate"])
    return qdiscs, classes


def _link(qdiscs: Sequence[_Line], classes: dict[str, str], notes: list[str]) -> dict[str, str]:
    """A link's keys."""
    root = next((line for line in qdiscs if line.root), qdiscs[0])
    leaves = [line for line in qdiscs if line.kind not in (*QUIET, *SHAPERS)]
    link: dict[str, str] = {"rate": PORT}
    shaper = next((line for line in qdiscs if line.kind in SHAPERS), None)
    if shaper is not None:
        words = _shaper(shaper, classes, notes)
        if words and _valid({"rate": "unlimited", "shaper": words}, shaper, notes):
            link = {"rate": "unlimited", "shaper": words}
    for leaf in leaves[:1]:
        words = f"{leaf.kind} {leaf.words}".strip()
        if leaf.kind == "netem":
            notes.append(
                f"Line {leaf.number}: netem is a wire and not a queue: write delay, loss and jitter of the link."
            )
        elif _valid({"rate": PORT, "qdisc": words}, leaf, notes):
            link["qdisc"] = words
        elif _valid({"rate": PORT, "qdisc": leaf.kind}, leaf, []):
            link["qdisc"] = leaf.kind
            notes.append(f"Line {leaf.number}: {leaf.kind} is taken with its defaults.")
    if len(leaves) > 1:
        same = {(line.kind, line.words) for line in leaves} == {(leaves[0].kind, leaves[0].words)}
        if not (same and root.kind == "mq"):
            numbers = ", ".join(str(line.number) for line in leaves[1:])
            notes.append(
                f"{root.kind} has {len(leaves)} queues: the first is taken, those of the lines {numbers} are not."
            )
    return link


def _shaper(line: _Line, classes: dict[str, str], notes: list[str]) -> str:
    if line.kind == "tbf":
        words = dict(zip(line.words.split()[::2], line.words.split()[1::2], strict=False))
        return f"htb rate {words['rate'].lower()}" if "rate" in words else ""
    rates = [rate for name, rate in classes.items() if name.startswith(line.handle)]
    if not rates:
        notes.append(
            f"Line {line.number}: htb's rate is that of its class: add what `tc class show dev {line.dev}` prints."
        )
        return ""
    return f"htb rate {rates[0].lower()}"


def _valid(keys: dict[str, str], line: _Line, notes: list[str]) -> bool:
    """Whether a link with these keys is one; if not, a note gives the line and the reason."""
    from sojourn.scenario import ScenarioError, loads

    try:
        loads(line_scenario("", {"delay": GUESSED_DELAY, **keys}, []))
    except ScenarioError as error:
        reason = (
            str(error).splitlines()[0].partition("bottleneck.")[2] or str(error).splitlines()[0]
        )
        notes.append(f"Line {line.number}: {line.kind}: {reason}")
        return False
    return True


FORMATS = (
    Format("tc-show", "tc", "tc -s qdisc show > FILE; tc class show dev DEV >> FILE", Yields.SCENARIO, _is_show, _read),
)  # fmt: skip
