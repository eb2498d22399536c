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
    """A sentence for each part of the source that was taken."""
    left_out: Sequence[str] = field(default_factory=tuple)
    """A sentence for each part of the source that was not taken: the line and the reason."""
    use: str = ""
    """How to use the files: a line with {file} for the first one's path, or {stem} for the paths
    without their endings."""
