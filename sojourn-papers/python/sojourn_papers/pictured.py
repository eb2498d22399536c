"""A paper's figures on its page: the picture, and below it its data and scenarios.

    DIR/PAPER/figures/ID.svg    the picture
    DIR/PAPER/figures/ID.csv    its data (`drawn`)

Below each picture are links to its data and to the scenario of every Run that was read for it, and
the command that draws it again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sojourn.report import parts
from sojourn_papers import drawn, searched
from sojourn_papers.paper import Picture
from sojourn_papers.reproduction import Reproduction
from sojourn_papers.study import Variant
from sojourn_papers.tornado import anchor


def draw(one: Reproduction, folder: Path) -> Mapping[Picture, dict[str, Any]]:
    """Draws the pictures whose Runs exist into the paper's folder. Returns the template's values
    for each."""
    into = folder / "figures"
    into.mkdir(parents=True, exist_ok=True)
    found = {}
    for picture in one.paper.pictures:
        one.evidence.used.clear()
        figure = one.evidence.asked(picture.draw)
        if figure is None:
            continue
        made_of = [variant for variant in one.evidence.runs if variant in one.evidence.used]
        file, svg = parts.file_and_svg(figure, picture.title)
        (into / f"{picture.id}.svg").write_bytes(file)
        (into / f"{picture.id}.csv").write_text(drawn.as_csv(figure), encoding="utf-8")
        found[picture] = {
            "id": anchor("picture", picture.id),
            "heading": heading(picture),
            "caption": picture.caption,
            "svg": svg,
            "file": picture.id,
            "command": command(one),
            "search": _search(one, made_of),
            "scenarios": [(quote(_beside(one, folder, each)), str(each)) for each in made_of],
        }
    return found


def heading(picture: Picture) -> str:
    """`Figure 3: RTT over the ring`."""
    return f"{picture.source}: {picture.title}" if picture.source else picture.title


def command(one: Reproduction) -> str:
    """The command of this reproduction."""
    words = ["sojourn reproduce", one.paper.id]
    words += ["--quick"] * one.evidence.quick
    if one.evidence.engine != "sim":
        words.append(f"--engine {one.evidence.engine}")
    return " ".join([*words, "-o DIR"])


def _search(one: Reproduction, made_of: Sequence[Variant]) -> str:
    """How the stored search behind a figure was made; empty if it shows no search."""
    stored = any(variant in one.evidence.searched.variants for variant in one.evidence.used)
    if stored or (not made_of and searched.has(one.paper)):
        return searched.beside(str(one.paper.folder / "studies.py")).made
    return ""


def _beside(one: Reproduction, folder: Path, variant: Variant) -> str:
    """The link to a Run's scenario from the page in `folder`."""
    file = one.evidence.runs[variant].path / "scenario.toml"
    return Path(os.path.relpath(file, folder)).as_posix()
