"""An export of MikroTik's RouterOS (`/queue export`): a scenario of its shaped line.

The first simple queue with a limit is taken; if there is none, the first queue of the tree in each
direction. A simple queue's limit is a pair, and its first value limits the packets that come from
the queue's target. If the target is an address, these are uploads. If it is an interface, it is
taken for the one to the line, so these are downloads. A queue of the tree limits the packets that
leave its parent interface. A parent with `bridge`, `lan` or `vlan` in its name is taken for the
home network: its queue is the download.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sojourn.formats.content import Content
from sojourn.formats.format import FileFormatError, Format, Yields
from sojourn.formats.texts import (
    GUESSED_DELAY,
    GUESSES,
    LINK_LAYER,
    PORT,
    TO_RUN,
    Texts,
    line_scenario,
)
from sojourn.linux import routeros

if TYPE_CHECKING:
    from sojourn.facts import Direction

_MENU = re.compile(r"^/queue[ /](type|simple|tree)\b *(.*)$")
_HOME = re.compile(r"bridge|lan\b|vlan|^lan", re.I)
_ADDRESS = re.compile(r"[\d.]+(/\d+)?(,|$)|[0-9a-f]*:[0-9a-f:]*", re.I)


def _is_export(content: Content) -> bool:
    return any(_MENU.match(line) for line in content.head.splitlines())


def _read(content: Content) -> Texts:
    types: dict[str, dict[str, str]] = {}
    simple: list[dict[str, str]] = []
    tree: list[dict[str, str]] = []
    for menu, settings in _entries(content):
        if menu == "type":
            types[settings.get("name", "")] = settings
        elif settings.get("disabled") != "yes" and settings.get("max-limit", "0") not in (
            "0",
            "0/0",
        ):
            (simple if menu == "simple" else tree).append(settings)
    notes: list[str] = []
    shaped = _of_simple(simple, notes) if simple else _of_tree(tree, notes)
    if not shaped:
        raise FileFormatError("it has no simple queue and no queue of the tree with a max-limit")
    if tree and simple:
        notes.append("The queues of the tree are left out: a simple queue is taken.")
    keys: dict[str, object] = {"delay": GUESSED_DELAY, "link_layer": LINK_LAYER}
    taken = []
    for way in ("down", "up"):
        if way not in shaped:
            keys[f"{way}.rate"] = PORT
            notes.append(f"{way} is not shaped: it is a link of {PORT}, which is a guess.")
            continue
        limit, name = shaped[way]
        try:
            bps = routeros.rate_bps(limit)
        except ValueError as error:
            raise FileFormatError(f"max-limit: {error}") from None
        words = _discipline(name, types, notes)
        keys |= {
            f"{way}.rate": "unlimited",
            f"{way}.shaper": f"htb rate {bps}bit",
            f"{way}.qdisc": words,
        }
        taken.append(f"{way}: {words} below htb rate {bps}bit")
    notes.append(GUESSES)
    text = line_scenario(f"The queues of {content.path.name}, of RouterOS.", keys, ["down", "up"])
    return Texts({".toml": text}, taken, notes, use=TO_RUN)


def _entries(content: Content) -> Iterator[tuple[str, dict[str, str]]]:
    """The menu and the settings of each `add` below /queue."""
    menu = ""
    before = ""
    for number, line in enumerate(content.lines, 1):
        command = before + line.strip()
        if command.endswith("\\"):
            before = command[:-1]
            continue
        before = ""
        if command.startswith("#"):
            continue
        if command.startswith("/"):
            found = _MENU.match(command)
            menu, command = (found[1], found[2]) if found else ("", "")
        if menu and command.startswith("add "):
            try:
                words = shlex.split(command)
            except ValueError as error:
                raise FileFormatError(f"line {number}: {error}") from None
            yield (
                menu,
                {name: value for name, _, value in (word.partition("=") for word in words[1:])},
            )


def _of_simple(queues: list[dict[str, str]], notes: list[str]) -> dict[Direction, tuple[str, str]]:
    """The limit and the type of each direction."""
    queue = queues[0]
    if len(queues) > 1:
        notes.append(
            f"{len(queues)} simple queues have a limit: {queue.get('name', 'the first')} is taken."
        )
    target = queue.get("target", "")
    # Packets that come from an address of the home are uploads. Packets that come from the
    # interface to the line are downloads.
    first_up = (
        target == "" or _ADDRESS.match(target) is not None or _HOME.search(target) is not None
    )
    way = "an upload" if first_up else "a download"
    notes.append(f"Target {target or 'unknown'}: the first value of max-limit is taken for {way}.")
    limits = [*queue["max-limit"].split("/"), "0"][:2]
    types = [*queue.get("queue", "default-small/default-small").split("/"), "default-small"][:2]
    ways: tuple[Direction, Direction] = ("up", "down") if first_up else ("down", "up")
    return {
        way: (limit, kind)
        for way, limit, kind in zip(ways, limits, types, strict=True)
        if limit != "0"
    }


def _of_tree(queues: list[dict[str, str]], notes: list[str]) -> dict[Direction, tuple[str, str]]:
    found: dict[Direction, tuple[str, str]] = {}
    for queue in queues:
        parent = queue.get("parent", "")
        way: Direction = "down" if _HOME.search(parent) else "up"
        if parent == "global" or way in found:
            notes.append(f"Queue {queue.get('name', '?')} (parent {parent}) is left out.")
            continue
        notes.append(
            f"Queue {queue.get('name', '?')} limits what leaves {parent}: it is taken as the link {way}."
        )
        found[way] = (queue["max-limit"], queue.get("queue", "default-small"))
    return found


def _discipline(name: str, types: Mapping[str, Mapping[str, str]], notes: list[str]) -> str:
    if name not in types:
        if name not in routeros.BUILT_IN:
            notes.append(
                f"The file does not define the queue type {name}: the type default is taken."
            )
        return routeros.BUILT_IN.get(name, routeros.BUILT_IN["default"])
    try:
        words, unread = routeros.words(types[name])
    except ValueError as error:
        raise FileFormatError(f"queue type {name}: {error}") from None
    if unread:
        notes.append(f"Options of queue type {name} that were not taken: {', '.join(unread)}.")
    return words


FORMATS = (
    Format("routeros", "RouterOS", "/queue export of MikroTik's RouterOS", Yields.SCENARIO, _is_export, _read),
)  # fmt: skip
