"""The output of `tc qdisc show` or `tc -s qdisc show`, with `tc class show` if it is there: a scenario.

The rate of htb is the rate of its class, so it needs `tc class show`. See `tc_tree`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sojourn.formats.content import Content
from sojourn.formats.format import Format, Yields
from sojourn.formats.tc_tree import ClassLine, QdiscLine, Tree, pairs, scenario
from sojourn.formats.texts import Texts

_QDISC = re.compile(
    r"^qdisc (?P<kind>\S+) (?P<handle>[0-9a-f]+:)(?: \[offloaded\])?(?: dev (?P<dev>\S+))? (?:(?P<root>root)|parent (?P<parent>\S+)|ingress_block\S*)(?: refcnt \d+)? ?(?P<words>.*)$"
)
_WRAPPED = re.compile(r"\s*(?:qdisc|class) \S")
_BEGINS = re.compile(r"\s|(?:qdisc|class|filter|Sent|backlog|rate|lended|tokens)\b")
"""The beginning of a line that does not continue a qdisc or a class."""
_STAB = re.compile(r"^ +(?:linklayer \S+|overhead -?\d+|mpu \d+|mtu \d+|tsize \d+)(?: |$)")
"""A line with the size table of the qdisc in the line before it, as `tc -d qdisc show` prints
it."""
_CLASS = re.compile(
    r"^class htb (?P<name>\S+) (?:root|parent (?P<parent>\S+))(?: leaf \S+)?(?: prio \d+)?(?: quantum \S+)? (?P<words>.*)$"
)


def _is_show(content: Content) -> bool:
    return any(_QDISC.match(line.strip()) for line in content.head.splitlines())


def _typed(words: str) -> str:
    """The words of a qdisc as tc takes them. It prints two of them in another way."""
    return (
        words.strip()
        .replace("bandwidth unlimited", "unlimited")
        .replace("bands 3 priomap", "priomap")
    )


def _whole(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The lines with their numbers. A line that a mail program or a terminal has wrapped is joined
    again."""
    before = ""
    first = 1
    for number, line in enumerate(lines, 1):
        if before and line.strip() and not _BEGINS.match(line):
            before += ("" if before.endswith("-") else " ") + line.strip()
            continue
        if before:
            yield first, before
        before = ""
        if _WRAPPED.match(line):
            before, first = line.rstrip(), number
        else:
            yield number, line
    if before:
        yield first, before


def _read(content: Content) -> Texts:
    tree = Tree()
    for number, line in _whole(content.lines):
        if found := _QDISC.match(line.strip()):
            parent = "root" if found["root"] else found["parent"] or ""
            tree.qdiscs.append(
                QdiscLine(
                    number, found["kind"], found["handle"], found["dev"] or "", parent, _typed(found["words"])
                )
            )  # fmt: skip
        elif tree.qdiscs and _STAB.match(line):
            tree.qdiscs[-1] = replace(tree.qdiscs[-1], size_table=pairs(line.split()))
        elif found := _CLASS.match(line.strip()):
            words = pairs(found["words"].split())
            tree.classes.append(ClassLine(number, "", found["name"], found["parent"] or "", words))
    return scenario(content, tree)


FORMATS = (
    Format("tc-show", "tc", "tc -s qdisc show > FILE; tc class show dev DEV >> FILE", Yields.SCENARIO, _is_show, _read),
)  # fmt: skip
