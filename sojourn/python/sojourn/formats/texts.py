"""Scenarios and traces that a file yields: text files to be written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Texts:
    """One text file or several that belong together."""

    files: Mapping[str, str]
    """Each file's text by the ending of its name, as ".toml" or ".down.trace". The first is what a
    command takes. `{stem}` in a text is replaced by the name without ending."""
    taken: Sequence[str]
    """What was taken of the source, a sentence each."""
    left_out: Sequence[str] = field(default_factory=tuple)
    """What was not taken and why, a sentence each, with the line where there is one."""
    use: str = ""
    """How to use the files: a line with {file} for the first one's path, or {stem} for the paths
    without their endings."""
