"""A script of tc's commands, as they are typed into a router: a scenario.

The reader knows `tc qdisc`, `tc class` and `tc filter` with add, replace, change and del, `ip link`
for an ifb, and the shell's assignments (`DEV=eth0`) with their uses. A filter that sends every
packet to a class chooses the class that is taken (`tc_tree`); other filters that choose a class are
not used. A filter that redirects names the device of arriving packets. A filter that polices
becomes the link's policer. A note names every other line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sojourn.formats.content import Content
from sojourn.formats.format import Format, Yields
from sojourn.formats.tc_tree import CHARGES, ClassLine, QdiscLine, Tree, pairs, scenario
from sojourn.formats.texts import Texts

_COMMAND = re.compile(
    r"^\s*(?:sudo +)?(?:\S*/)?tc +(?:-\S+ +)*(?P<object>qdisc|class|filter) +(?P<verb>add|replace|change|del|delete) +(?P<words>.*)$"
)
_IP_LINK = re.compile(
    r"^\s*(?:sudo +)?(?:\S*/)?(?:ip +(?:-\S+ +)*link\b|modprobe +(?:ifb|sch_)|ifconfig\b)"
)
_ASSIGNMENT = re.compile(
    r"^\s*(?:export +|local +|readonly +)?(?P<name>[A-Za-z_]\w*)=(?P<quote>[\"']?)(?P<value>[^\"'`;|&]*)(?P=quote)\s*;?\s*$"
)
_USE = re.compile(
    r"\$(?:(?P<plain>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)(?::-(?P<else>[^}]*))?\})"
)
_AFTER = re.compile(r"(?:\s*;|\s+(?:\d?>+\s*\S+|\|\|.*|&&.*|\|.*|;.*|#.*|\d>&\d))\s*$")
"""What follows a command in a shell: where its output goes, what is done if it fails."""
_SILENT = re.compile(r"^\s*(?:#.*|echo\b.*|set\b.*|exit\b.*|:|\}|\{|fi|done|then|else)?\s*$")
"""Lines of a shell that can't set up a queue."""
_BETWEEN = re.compile(r"\s*(?:;|&&)\s*(?=(?:sudo +)?\S*tc\s)")
MOST_NAMED = 12


def _is_script(content: Content) -> bool:
    return any(_COMMAND.match(line) for line in content.head.splitlines())


def _read(content: Content) -> Texts:
    tree = Tree()
    values: dict[str, str] = {}
    unread: list[int] = []
    for number, line in _commands(content.lines):
        expanded = _USE.sub(lambda use: _value(use, values), line)
        if found := _ASSIGNMENT.match(expanded):
            values[found["name"]] = found["value"]
        elif found := _COMMAND.match(_without_rest(expanded)):
            words = [word.strip("\"'") for word in found["words"].split()]
            _take(tree, number, found["object"], found["verb"], words)
        elif not _SILENT.match(line) and not _IP_LINK.match(line):
            unread.append(number)
    if unread:
        named = ", ".join(map(str, unread[:MOST_NAMED]))
        more = f" and {len(unread) - MOST_NAMED} more" if len(unread) > MOST_NAMED else ""
        tree.notes.append(f"Lines that were not read, since they are not tc's: {named}{more}.")
    return scenario(content, tree)


def _commands(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The commands with the numbers of their lines. `;` or `&&` separates those of one line."""
    for number, line in _joined(lines):
        for part in _BETWEEN.split(line):
            yield number, part


def _joined(lines: Sequence[str]) -> list[tuple[int, str]]:
    """The lines with their numbers. A line that ends in a backslash is joined with the next one."""
    joined: list[tuple[int, str]] = []
    before = ""
    first = 1
    for number, line in enumerate(lines, 1):
        if not before:
            first = number
        if line.endswith("\\"):
            before += line[:-1] + " "
            continue
        joined.append((first, before + line))
        before = ""
    return [*joined, *([(first, before)] if before else [])]


def _without_rest(line: str) -> str:
    while (shorter := _AFTER.sub("", line)) != line:
        line = shorter
    return line


def _value(use: re.Match[str], values: dict[str, str]) -> str:
    name = use["plain"] or use["braced"]
    return values.get(name, use[0] if use["else"] is None else use["else"])


def _take(tree: Tree, number: int, what: str, verb: str, words: list[str]) -> None:
    dev = _after(words, "dev") or ""
    if verb in ("del", "delete"):
        if what == "qdisc" and "root" in words:
            qdiscs = [each for each in tree.qdiscs if each.dev == dev]
            if qdiscs:
                classes = [each for each in tree.classes if each.dev == dev]
                tree.deleted[dev] = number, qdiscs, classes
            tree.qdiscs = [each for each in tree.qdiscs if each.dev != dev]
            tree.classes = [each for each in tree.classes if each.dev != dev]
        return
    if what == "qdisc":
        _take_qdisc(tree, number, dev, words)
    elif what == "class":
        _take_class(tree, number, dev, words)
    else:
        _take_filter(tree, number, dev, words)


def _after(words: Sequence[str], word: str) -> str | None:
    """The word after this one."""
    at = words.index(word) + 1 if word in words else len(words)
    return words[at] if at < len(words) else None


def _take_qdisc(tree: Tree, number: int, dev: str, words: list[str]) -> None:
    parent, handle = "root", ""
    size_table: dict[str, str] = {}
    at = 0
    while at < len(words):
        word = words[at]
        if word in ("dev", "parent", "handle"):
            value = words[at + 1] if at + 1 < len(words) else ""
            parent = value if word == "parent" else parent
            handle = value if word == "handle" else handle
            at += 2
        elif word == "root":
            at += 1
        elif word == "stab":
            at += 1
            while at + 1 < len(words) and words[at] in (*CHARGES, "mtu", "tsize"):
                size_table[words[at]] = words[at + 1]
                at += 2
        else:
            break
    if at == len(words):
        return
    if words[at] in ("ingress", "clsact"):
        return
    line = QdiscLine(number, words[at], handle, dev, parent, " ".join(words[at + 1 :]), size_table)
    same = [
        each for each in tree.qdiscs if (each.dev, each.parent) == (dev, parent) and each.kind == line.kind
    ]  # fmt: skip
    tree.qdiscs = [each for each in tree.qdiscs if (each.dev, each.parent) != (dev, parent)]
    if same and not line.handle:
        line = replace(line, handle=same[0].handle)
    tree.qdiscs.append(line)


def _take_class(tree: Tree, number: int, dev: str, words: list[str]) -> None:
    if "htb" not in words:
        tree.notes.append(f"Line {number}: classes of htb are read, and no others.")
        return
    name, parent = _after(words, "classid") or "", _after(words, "parent") or ""
    settings = pairs(words[words.index("htb") + 1 :])
    tree.classes = [each for each in tree.classes if (each.dev, each.name) != (dev, name)]
    tree.classes.append(ClassLine(number, dev, name, parent, settings))


def _take_filter(tree: Tree, number: int, dev: str, words: list[str]) -> None:
    if "mirred" in words and "redirect" in words:
        target = _after(words[words.index("redirect") :], "dev")
        if target:
            tree.redirected.append(target)
    elif "police" in words:
        settings = pairs(words[words.index("police") + 1 :])
        police = " ".join(f"{key} {settings[key]}" for key in ("rate", "burst") if key in settings)
        tree.polices[dev] = (number, police)
    else:
        chosen = _after(words, "flowid") or _after(words, "classid")
        if chosen and _matches_all(words):
            tree.filtered.setdefault(dev, chosen)
            return
        tree.notes.append(
            f"Line {number}: this filter chooses a class for some packets, and only one class is taken."
        )


_ANY = (("u32", "0", "0"), *((version, end, net) for version, net in (("ip", "0.0.0.0/0"), ("ip", "0/0"), ("ip6", "::/0")) for end in ("src", "dst")))  # fmt: skip
"""The matches of u32 that every packet passes."""


def _matches_all(words: Sequence[str]) -> bool:
    """Whether a filter has no match but those that every packet passes."""
    if "matchall" in words:
        return True
    places = [at for at, word in enumerate(words) if word == "match"]
    return "u32" in words and all(tuple(words[at + 1 : at + 4]) in _ANY for at in places) and bool(places)  # fmt: skip


FORMATS = (
    Format("tc-script", "tc", "a script of `tc qdisc add dev ...` and the like", Yields.SCENARIO, _is_script, _read),
)  # fmt: skip
