"""The output of `tc qdisc show` or `tc -s qdisc show`, with `tc class show` if it is there: a scenario.

The rate of htb is the rate of its class, so it needs `tc class show`. See `tc_tree`.
"""

from __future__ import annotations

import re
from dataclasses import replace

from sojourn.formats.content import Content
from sojourn.formats.format import Format, Yields
from sojourn.formats.tc_tree import ClassLine, QdiscLine, Tree, pairs, scenario
from sojourn.formats.texts import Texts

_QDISC = re.compile(
    r"^qdisc (?P<kind>\S+) (?P<handle>[0-9a-f]+:)(?: \[offloaded\])?(?: dev (?P<dev>\S+))? (?:(?P<root>root)|parent (?P<parent>\S+)|ingress_block\S*)(?: refcnt \d+)? ?(?P<words>.*)$"
)
_STAB = re.compile(r"^ +(?:linklayer \S+|overhead -?\d+|mpu \d+|mtu \d+|tsize \d+)(?: |$)")
"""A line with the size table of the qdisc in the line before it, as `tc -d qdisc show` prints
it."""
_CLASS = re.compile(
    r"^class htb (?P<name>\S+) (?:root|parent (?P<parent>\S+))(?: leaf \S+)?(?: prio \d+)?(?: quantum \S+)? (?P<words>.*)$"
)


def _is_show(content: Content) -> bool:
    return any(_QDISC.match(line.strip()) for line in content.head.splitlines())


def _read(content: Content) -> Texts:
    tree = Tree()
    for number, line in enumerate(content.lines, 1):
        if found := _QDISC.match(line.strip()):
            parent = "root" if found["root"] else found["parent"] or ""
            tree.qdiscs.append(
                QdiscLine(
                    number, found["kind"], found["handle"], found["dev"] or "", parent, found["words"].strip()
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
