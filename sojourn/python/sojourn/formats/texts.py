"""Scenarios and traces that a file yields: text files to be written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sojourn.sanitize import plain, toml

if TYPE_CHECKING:
    from sojourn.facts import Direction

GUESSED_DELAY = "10 ms"
"""The delay of each direction if a file has none."""
PORT = "1 Gbit/s"
"""The rate of a port that is not the bottleneck, or is not known."""
LINK_LAYER = "linux"
"""The link layer of a shaper in Linux, which counts the header of Ethernet in the length of a
packet."""
GUESSES = f"The file has neither delay nor traffic: {GUESSED_DELAY} in each direction and four connections each way are guesses."
"""The note on the scenario of a configuration (`line_scenario`)."""
TO_RUN = "to run it: sojourn run {file}"


@dataclass(frozen=True)
class Texts:
    """One text file or several that belong together."""

    files: Mapping[str, str]
    """Each file's text by the ending of its name, as ".toml" or ".down.trace". The first is what a
    command takes. `{stem}` in a text is replaced by the name without ending."""
    taken: Sequence[str]
    """A sentence for each part of the source that was taken."""
    left_out: Sequence[str] = field(default_factory=tuple)
    """A sentence for each part of the source that was not taken: the line and the reason."""
    binary: Mapping[str, bytes] = field(default_factory=dict)
    """Binary files that belong to them, by the endings of their names: `.FOLDER/NAME`, where the name is
    made from the content."""
    use: str = ""
    """How to use the files: a line with {file} for the first one's path, or {stem} for the paths
    without their endings."""


def line_scenario(
    comment: str, keys: Mapping[str, object], ways: Sequence[Direction], *, duration_s: float = 30.0, connections: int = 4
) -> str:  # fmt: skip
    """A scenario of a line with a ping and bulk connections.

    `comment`: its first line. `keys`: those of the bottleneck, as "delay" or "down.qdisc". `ways`: the
    directions of the connections, `connections` in each.
    """
    lines = [f"# {plain(comment)}", f"duration = {toml(f'{duration_s:.6g} s')}", "", "[bottleneck]"]
    lines += [f"{key} = {toml(value)}" for key, value in keys.items()]
    for way in ways:
        lines += ["", "[[flow]]", 'kind = "bulk"', f"direction = {toml(way)}"]
        if connections > 1:
            lines.append(f"count = {connections}")
    return "\n".join([*lines, "", "[[flow]]", 'kind = "ping"', ""])
