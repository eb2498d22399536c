"""The gallery: every function of sojourn.figures and every example scenario, each with the commands
that make its picture."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from sojourn import figures
from sojourn.scenario import examples, load

FOLDER = "docs/gallery"

_COMPARED = "compared"
DRAWN = {
    "timeline": (
        'figures.save(figures.timeline(Run.open("compared/pfifo"), link="up"), "timeline.svg")',
        "One Run over time: what flows get, their windows, and what the queue does to packets.",
    ),
    "density": (
        'figures.save(figures.density(Run.open("compared/pfifo")), "density.svg")',
        "Every ping of a Run over time, darker where there are more.",
    ),
    "cdf": (
        'figures.save(figures.cdf(Run.find("compared"), "ping"), "cdf.svg")',
        'How RTTs of pings are distributed, a line for each Run. In place of `"ping"` one can write '
        '`"sojourn"`, `"rtt"` (TCP\'s own), `"completion"` (of transfers) or `"one_way"` (of video and '
        "calls).",
    ),
    "bars": (
        'figures.save(figures.bars(Run.find("compared")), "bars.svg")',
        "Numbers of several Runs side by side, with 95 % intervals over the seeds.",
    ),
    "boxes": (
        'figures.save(figures.boxes(Run.find("compared")), "boxes.svg")',
        "Box plots of the ping RTT and of the goodput: quartiles, the median, 5th and 95th percentiles.",
    ),
    "stacked": (
        'figures.save(figures.stacked(Run.find("compared")), "stacked.svg")',
        "Goodput each way and ping of each Run, on the same axes: what flent calls all.",
    ),
    "ping_lines": (
        'figures.save(figures.ping_lines(Run.find("compared")), "ping_lines.svg")',
        "The ping RTT of each Run over time, in one panel.",
    ),
    "tradeoff": (
        'figures.save(figures.tradeoff(Run.find("compared")), "tradeoff.svg")',
        "Delay against goodput: what a shorter queue costs.",
    ),
    "coexistence": (
        'figures.save(figures.coexistence(Run.find("coexistence")), "coexistence.svg")',
        "Who gets more where two kinds of flows share a link, by its rate and their RTT.",
    ),
    "cdf_by_phase": (
        'figures.save(figures.cdf_by_phase(Run.open("recorded/before")), "cdf_by_phase.svg")',
        "A measurement of a live line: the RTTs idle, under downloads, under uploads, under both. It was "
        "recorded on a line made of network namespaces, 5 Mbit/s up and 20 Mbit/s down.",
    ),
}
"""Each function of the module, the line that calls it, and the text of its figure."""


def pages() -> dict[str, str]:
    return {
        f"{FOLDER}/figures.md": "\n".join(_figures()),
        f"{FOLDER}/examples.md": "\n".join(_examples()),
        f"{FOLDER}/pages.md": _PAGES,
    }


def _figures() -> Iterator[str]:
    yield "# Every figure\n"
    yield (
        "Each figure is a function of `sojourn.figures`: Runs in, a matplotlib Figure out; "
        "[the reference](../programs/figures.md) has their arguments. `--figures svg` of `sojourn run` and `sojourn "
        "compare` draws all that a Run can fill. The Runs of this page:\n"
    )
    yield """<!-- folder: recorded: docs/site/recorded -->
```sh
sojourn compare home-uplink pfifo codel fq_codel cake --seeds 3 --set duration="30 s" -o compared
```
<!-- output -->

```sh
sojourn run coexistence -o coexistence
```

```python
from sojourn import Run, figures
```
"""
    for name, (line, about) in DRAWN.items():
        yield f"## {name}\n"
        yield about + "\n"
        yield f"```python\n{line}\n```\n<!-- figure: {name}.svg: {_first(name)} -->\n"
    yield from _OTHERS


def _first(name: str) -> str:
    text = inspect.getdoc(getattr(figures, name)) or ""
    return " ".join(text.split("\n\n")[0].split())


_OTHERS = (
    "## A page of all of them\n",
    "`sojourn report` writes one self-contained HTML page of Runs, and `sojourn compare` does so by itself: "
    "`compared/report.html`.\n",
    "## evaluate\n",
    "`sojourn evaluate` tests candidates by a document's criteria. Its page has a matrix, and for each "
    "criterion ellipses of delay against goodput ([evaluate](../evaluate.md)).\n",
    "## graph\n",
    "`sojourn graph` draws what `sojourn monitor` recorded, over minutes or months ([monitor](../monitor.md)). This "
    "recording is of the same line while it was measured, shaped and measured again.\n",
    "```sh\nsojourn graph recorded/monitor.db --utc -o graph.svg\n"
    "```\n<!-- figure: graph.svg: RTTs and losses that sojourn monitor recorded -->\n",
    "## tune\n",
    "`sojourn tune` draws delay against goodput at each rate of a shaper, predicted and measured "
    "([shape](../shape.md#tuning)).\n",
)

_PAGES = """# Every page

A report is one file of HTML: it loads nothing from the network, and opens from a disk or an e-mail. The
commands above each link wrote these reports. The [lab](../lab.md) is such a file, too.

## Runs side by side

The page has the verdict, the delay over time, numbers with their intervals, distributions, the details of
each Run, and the scenarios. `sojourn report` writes one of any Runs.

```sh
sojourn compare home-uplink pfifo codel fq_codel cake --seeds 3 --set duration="30 s" -o compared
```
<!-- figure: compared/report.html: Open it: four disciplines on a home line -->

## A sweep

The page has the winner in each cell, the numbers over the swept values, differences seed by seed, and one
row for each cell ([sweeps](../sweeps.md)).

```sh
sojourn compare home-uplink pfifo fq_codel cake --vary bottleneck.up.rate=5mbit,20mbit \\
  --vary flow.backup.count=1,4 --seeds 3 --set duration="20 s" -o swept
```
<!-- figure: swept/report.html: Open it: three disciplines, two rates, two loads -->

## A line, before and after

The page has the phases of two measurements, the delay that load adds, the changes with their intervals,
and scores ([measure](../measure.md)). It was recorded on a line made of network namespaces.

<!-- folder: recorded: docs/site/recorded -->
```sh
sojourn report recorded/before recorded/after -o measured.html
```
<!-- figure: measured.html: Open it: a line, and the same line shaped -->
"""

LENGTHS = {
    "many-flows": ("12 s", "4 s"),
    "card-queues": ("12 s", "4 s"),
    "card-siblings": ("3 s", "1 s"),
    "card-skew": ("12 s", "4 s"),
    "card-mq": ("12 s", "4 s"),
    "crowd": ("20 s", "5 s"),
    "red-ns2": ("30 s", "10 s"),
}
"""Examples that the gallery shortens most: duration and warm-up."""


def _examples() -> Iterator[str]:
    yield "# Every example scenario\n"
    yield (
        "`sojourn list scenarios` lists them, and `sojourn run NAME` runs one by its name from anywhere. Here they "
        "are shortened, and run with one seed, but for those with programs.\n"
    )
    for path in examples.files():
        yield from (_example if path in examples.simulated() else _with_programs)(path.stem)


def _with_programs(name: str) -> Iterator[str]:
    """An example that needs a guest of its own, which the site's build does not have."""
    file = examples.FOLDER / f"{name}.toml"
    yield f"## {name}\n"
    yield f"{load(file).title}. It runs in the kernel's guest for programs only ([programs](../programs.md)).\n"
    yield f"```toml\n{file.read_text(encoding='utf-8').rstrip()}\n```\n"


def _example(name: str) -> Iterator[str]:
    file = examples.FOLDER / f"{name}.toml"
    scenario = load(file)
    duration, warmup = LENGTHS.get(name, ("30 s", "5 s"))
    yield f"## {name}\n"
    yield f"{scenario.title}.\n"
    yield f"```toml\n{file.read_text(encoding='utf-8').rstrip()}\n```\n"
    yield (
        f'```sh\nsojourn run {name} --set duration="{duration}" --set warmup="{warmup}" --seeds 1 -o {name}\n```\n'
        "<!-- output -->\n"
    )
    pinged = any(flow["kind"] == "ping" for flow in scenario.document()["flow"])
    of = '"ping"' if pinged else '"sojourn"'
    draw = f"figures.cdf(runs, {of})" if scenario.sweep else "figures.timeline(runs[0])"
    yield (
        f'```python\nfrom sojourn import Run, figures\n\nruns = Run.find("{name}")\n'
        f'figures.save({draw}, "{name}.svg")\n```\n<!-- figure: {name}.svg: {scenario.title} -->\n'
    )
