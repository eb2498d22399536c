"""A paper's figures on its page: the picture, and below it what it was made of.

    DIR/PAPER/figures/ID.svg    the picture
    DIR/PAPER/figures/ID.csv    its data (`drawn`)

Below each stand its data, the scenario of every Run that was read for it, and the command that makes
it again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from urllib.parse import quote

from sojourn.report import parts
from sojourn_papers import drawn, searched
from sojourn_papers.paper import Picture
from sojourn_papers.reproduction import Reproduction
from sojourn_papers.study import Variant
from sojourn_papers.tornado import anchor


def draw(one: Reproduction, folder: Path) -> Mapping[Picture, str]:
    """Draws what can be drawn into the paper's folder; each as HTML for its page."""
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
        found[picture] = _html(picture, picture.caption, svg, _below(one, folder, picture, made_of))
    return found


def heading(picture: Picture) -> str:
    """`Figure 3: RTT over the ring`."""
    return f"{picture.source}: {picture.title}" if picture.source else picture.title


def here(id_: str, what: str) -> str:
    """A link to where it stands, to be copied."""
    return f'<a class="here" href="#{escape(quote(id_))}" aria-label="link to this {what}">#</a>'


def _html(picture: Picture, caption: str, svg: str, below: str) -> str:
    own = anchor("picture", picture.id)
    return (
        f'<figure class="shown" id="{escape(own)}">'
        f"<figcaption>{escape(heading(picture))} {here(own, 'figure')}"
        f"<p class=hint>{escape(caption)}</p></figcaption>{svg}{below}</figure>"
    )


def _below(one: Reproduction, folder: Path, picture: Picture, made_of: Iterable[Variant]) -> str:
    files = ", ".join(
        f'<a href="figures/{quote(picture.id)}.{kind}">{kind.upper()}</a>'
        for kind in ("csv", "svg")
    )
    return (
        f'<p class="hint">Data and picture: {files}. '
        f"<code>{escape(command(one))}</code> makes them.</p>{_scenarios(one, folder, made_of)}"
    )


def command(one: Reproduction) -> str:
    """What was typed for this reproduction, or would have been."""
    words = ["sojourn reproduce", one.paper.id]
    words += ["--quick"] * one.evidence.quick
    if one.evidence.engine != "sim":
        words.append(f"--engine {one.evidence.engine}")
    return " ".join([*words, "-o DIR"])


def _scenarios(one: Reproduction, folder: Path, made_of: Iterable[Variant]) -> str:
    """Links to the scenarios of the Runs that the figure was made of."""
    stored = any(variant in one.evidence.searched.variants for variant in one.evidence.used)
    links = [
        f'<li><a href="{escape(quote(_beside(one, folder, variant)))}">{escape(str(variant))}</a></li>'
        for variant in made_of
    ]
    said = ""
    if stored or (not links and searched.has(one.paper)):
        made = searched.beside(str(one.paper.folder / "studies.py")).made
        said = f'<p class="hint">From the stored search, {escape(made)}.</p>'
    if not links:
        return said
    count = "scenario" if len(links) == 1 else f"{len(links)} scenarios"
    return said + (
        f'<details class="made"><summary>From {count}</summary><ul>{"".join(links)}</ul></details>'
    )


def _beside(one: Reproduction, folder: Path, variant: Variant) -> str:
    """A Run's scenario, as the page in `folder` leads to it."""
    file = one.evidence.runs[variant].path / "scenario.toml"
    return Path(os.path.relpath(file, folder)).as_posix()
