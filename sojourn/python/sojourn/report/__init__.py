"""Writes one self-contained page from Runs: it fetches nothing and opens from a disk or an e-mail.

    from sojourn import Run, report

    report.write(Run.find("runs/comparison"), "report.html")

The page begins with the verdict and the picture of delay over time. Then come the numbers, the time
lines with a shared cursor and zoom, the distributions, the trade-off, and the scenarios. A
Content-Security-Policy forbids all requests to the network. uPlot (vendor/) draws the charts;
figures that compare Runs are SVG.

Text from a scenario (titles, names, the scenario itself) is data. page.html escapes it. In the
script's data every `<` is \\u003c, so that it can't end the script. The same Runs give the same
bytes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from sojourn import extras, figures, guest_programs, hypertext, scenario
from sojourn.digits import counted, on_page, with_interval
from sojourn.figures import beside, series, style
from sojourn.judgement import Judgement, judge, quantities
from sojourn.judgement.quantities import Measured, Quantity
from sojourn.metrics import mean_rates
from sojourn.records import Run, RunError, holding, write_whole
from sojourn.report import data, parts, swept, verdict
from sojourn.scenario import ScenarioError, derived, notebook

__all__ = ["render", "write"]

USERS = (
    *(
        "ping_p50",
        "ping_p95",
        "ping_loss",
        "completion_mean:",
        "completion_p50:",
        "completion_p95:",
        "completion_p99:",
        "completed:",
        "mos:",
        "late:",
    ),
    *("goodput", "goodput_other", "jain"),
)
QUEUE = ("sojourn_mean", "sojourn_p50", "sojourn_p95", "sojourn_p99", "utilisation", "drop_rate")
SECTIONS = (
    ("numbers", "Numbers"),
    ("time", "Over time"),
    ("distributions", "Distributions"),
    ("tradeoff", "Delay against goodput"),
    ("one", "Inside one Run"),
    ("run", "What was run"),
)
"""Names and headings of page.html's sections."""
PICTURES: dict[str, tuple[Callable[[Sequence[Run]], Figure], str]] = {
    "bars": (
        figures.bars,
        "Bars of the numbers in the table above, with 95 % confidence intervals",
    ),
    "boxes": (
        figures.boxes,
        "Boxes of the ping RTT and of goodput: quartiles and the median, whiskers to the 5th and the 95th percentile",
    ),
    "stacked": (
        figures.stacked,
        "Goodput each way and ping RTT of the first seed: a column for each Run, all on the same scales",
    ),
    "tradeoff": (
        figures.tradeoff,
        "Mean sojourn at the bottleneck against goodput, a point for each Run",
    ),
}
"""The figures that compare Runs, by their names in page.html, with a description."""
MOST_PRINTED = 50_000
"""Most characters of a program's output on a page; the Run has all."""
MOST_SENDERS = 12
"""The largest number of entries of flows listed below the drawn topology."""
MOST_IN_A_ROW = 8
"""With at most this many Runs all check boxes are shown; with more they are folded."""


def write(runs: Sequence[Run], path: str | Path, lab_in: Path | None = None) -> Path:
    """Writes the page of these Runs, and beside it the lab's page, which it links to. `lab_in`:
    another folder for the lab's page."""
    file = Path(path)
    folder = file.parent if lab_in is None else lab_in
    try:
        page = render(runs, parts.beside(folder, file.parent) if parts.simulated(runs) else None)
        write_whole(file, page.encode())
    except OSError as error:
        raise RunError(
            f"can't write {file}: {error.strerror or error}", "choose another file"
        ) from None
    return file


def write_plain(title: str, sentences: Sequence[str], runs: Sequence[Run], path: Path) -> Path:
    """Writes a page of some sentences about these Runs and one picture: the ping RTT of the first
    seed."""
    says = "Ping RTT of the first simulated run"
    with holding(runs):
        page = parts.page(
            "sojourn.report/plain.html",
            ["sojourn.report/page.css"],
            title=title,
            about=series.subtitle(runs),
            sentences=sentences,
            drawn=parts.Picture(parts.svg(figures.ping_lines(runs), says), says),
        )
    try:
        write_whole(path, page.encode())
    except OSError as error:
        raise RunError(f"can't write {path}: {error.strerror}", "choose another folder") from None
    return path


def render(runs: Sequence[Run], lab: str | None = None) -> str:
    """The page as HTML; `lab` is the address of the lab's page, relative to this one."""
    series.check(runs)
    with holding(runs):
        return swept.render(runs, lab) if swept.is_sweep(runs) else _rendered(runs, lab)


def _rendered(runs: Sequence[Run], lab: str | None) -> str:
    measured = quantities.measure(runs)
    found = judge(measured)
    looks = style.looks(runs, [one.link for one in measured])
    labels = [look.label for look in looks]
    measurements = all(map(series.is_measured, runs))
    page = extras.read_measurements(runs).page(runs, labels) if measurements else None
    packed = data.payload(runs, page.clocks if page is not None else {})
    pictures = dict.fromkeys(PICTURES) if page is not None else _pictures(runs)
    best = _best(found)
    tables = [] if page is not None else _tables(measured, found.runs, best)
    title, about = _heading(runs)
    return parts.page(
        "sojourn.report/page.html",
        [
            "sojourn.report/vendor/uPlot.min.css",
            "sojourn.report/legend.css",
            "sojourn.report/page.css",
        ],
        title=title,
        about=about,
        refused=parts.refused(runs, labels),
        sentences=page.sentences() if page is not None else verdict.sentences(measured, found),
        contents=[each for each in SECTIONS if each[0] != "tradeoff" or pictures["tradeoff"]],
        looks=[
            {"label": look.label, "stroke": parts.stroke(look.colour, look.dash)} for look in looks
        ]
        if len(runs) > 1
        else [],
        folded=len(runs) > MOST_IN_A_ROW,
        seed_word="Seed" if page is None else "Repeat",
        several_seeds=len({view["seed"] for view in packed["views"]}) > 1,
        left_out=counted([packed["left_out"]], "seed") if packed["left_out"] else "",
        measured=None if page is None else page.numbers(),
        how=_how(measured),
        starred=bool(best),
        tables=tables,
        pictures=pictures,
        **_topology(runs),
        lab=parts.changing(runs, lab),
        first=runs[0].name,
        facts=[
            {
                "label": label,
                "rows": _facts(one),
                "scenario": one.run.scenario_text,
                "changes": _changes(runs[0].scenario_text, one.run.scenario_text),
                "programs": _programs(one.run),
            }
            for one, label in zip(measured, labels, strict=True)
        ],
        data=parts.safe_json(packed),
        uplot=hypertext.text("sojourn.report/vendor/uPlot.iife.min.js"),
        script=hypertext.text(
            *(f"sojourn.report/{name}.js" for name in ("saving", "tables", "page"))
        ),
    )


# ----------------------------------------------------------------------------------------- pieces


def _heading(runs: Sequence[Run]) -> tuple[str, str]:
    """The page's title, and the line below it. A measurement's title has host, load and date; the
    heading has only the host."""
    title, about = series.title(runs), series.subtitle(runs)
    if not all(map(series.is_measured, runs)):
        return title, about
    hosts = dict.fromkeys(run.meta.title.partition(", ")[0] for run in runs)
    label = f": {runs[0].meta.label}" if len(runs) == 1 and runs[0].meta.label else ""
    loads = dict.fromkeys(run.meta.title.partition(", ")[2] for run in runs)
    return "; ".join(hosts) + label, " · ".join(filter(None, (*loads, about)))


def _best(found: Judgement) -> set[tuple[str, str]]:
    """The numbers that are better than those of every other Run: (key, label)."""
    return {
        (row.quantity.key, row.best)
        for contest in found.contests
        for row in contest.rows
        if row.best is not None
    }


def _tables(
    measured: Sequence[Measured], labels: Sequence[str], best: set[tuple[str, str]]
) -> list[dict[str, Any]]:
    """The tables of numbers: the users' and the queue's, without unknown quantities."""
    found = [
        (heading, quantities.known(measured, keys))
        for heading, keys in (("What users get", USERS), (_queue(measured), QUEUE))
    ]
    return [
        {
            "heading": heading,
            "columns": [(quantity.name, _unit(quantity)) for quantity in shown],
            "rows": [
                (
                    label,
                    [(_number(one, quantity), (quantity.key, label) in best) for quantity in shown],
                )
                for one, label in zip(measured, labels, strict=True)
            ],
        }
        for heading, shown in found
        if shown
    ]


def _queue(measured: Sequence[Measured]) -> str:
    links = {one.link for one in measured}
    return f"The queue at {links.pop()}" if len(links) == 1 else "The queue at the bottleneck"


def _unit(quantity: Quantity) -> str:
    unit = f"{quantity.unit}, " if quantity.unit else ""
    return f"{unit}{quantity.better} is better"


def _number(one: Measured, quantity: Quantity) -> str:
    return with_interval(*one.over_seeds(quantity.key), quantity.most)


def _how(measured: Sequence[Measured]) -> str:
    """The number of samples behind the means, in words."""
    counts = sorted({len(one.summary.seeds) for one in measured})
    seeds = counted(counts, "seed")
    alike = [one for one in measured if one.summary.samples < len(one.summary.seeds)]
    if counts[-1] == 1:
        return "One seed"
    if len(alike) == len(measured):
        return f"One sample: all {seeds} gave the same Run"
    some = " (one sample where all seeds gave the same)" if alike else ""
    return f"Means over {seeds}{some} ± half the 95 % confidence interval"


def _topology(runs: Sequence[Run]) -> dict[str, Any]:
    """The nodes and links of the first Run as a drawing, and the paths of its flows."""
    drawn, senders = "", list[str]()
    if not series.is_measured(runs[0]):
        # The scenario of an older version may not be readable any more.
        with contextlib.suppress(ScenarioError):
            first = scenario.loads(runs[0].scenario_text, folder=runs[0].path)
            drawn, senders = notebook.drawn(first), notebook.senders(first)
    return {
        "topology": drawn,
        "senders": senders[:MOST_SENDERS],
        "more_senders": len(senders) - MOST_SENDERS,
    }


def _changes(first: str, text: str) -> list[str]:
    """The lines that differ between two texts, with `+` and `-`."""
    changes = unified_diff(first.splitlines(), text.splitlines(), n=0, lineterm="")
    return [line for line in list(changes)[2:] if line[0] in "+-"]


def _programs(run: Run) -> list[tuple[str, str]]:
    """A heading and the output of each program of the first seed."""
    record = guest_programs.read(run, run.seeds[0]) if run.seeds else None
    shown = []
    for one in record.programs if record else ():
        output = guest_programs.output_of(run, run.seeds[0], one)
        cut = len(output) > MOST_PRINTED
        output = output[:MOST_PRINTED] + ("\n..." if cut else "")
        shown.append((f"Program {one.name} on {one.node}, {one.how}: {one.command}", output))
    return shown


def _facts(one: Measured) -> list[tuple[str, str]]:
    meta = one.run.meta
    seeds = "Repeats" if series.is_measured(one.run) else "Seeds"
    means = {} if series.is_measured(one.run) else mean_rates(one.run)
    facts = [
        ("Title", meta.title),
        ("Engine", f"{meta.engine} {meta.version}"),
        (seeds, ", ".join(map(str, one.run.seeds))),
    ]
    facts += [("Invalid", "; ".join(meta.invalid))] if meta.invalid else []
    missing = sorted(set(meta.seeds_asked) - set(one.run.seeds))
    if missing:
        facts.append((f"{seeds} not finished", ", ".join(map(str, missing))))
    warmup = (
        ""
        if series.is_measured(one.run)
        else f", of which {series.seconds(meta.warmup_ns)} warm-up"
    )
    duration_ns = round(meta.duration_ns, -8) if series.is_measured(one.run) else meta.duration_ns
    facts.append(("Duration", series.seconds(duration_ns) + warmup))
    for link in meta.links:
        if series.is_measured(one.run):
            below = f" under {link.shaper}" if link.shaper else ""
            facts.append(
                (
                    f"Local link {link.name}",
                    f"qdisc {link.qdisc}{below}" if link.qdisc else "counters only",
                )
            )
            continue
        bps = means.get(link.name, link.rate_bps)
        speed = f"{on_page(bps / 1e6)} Mbit/s" if bps is not None else "no rate limit"
        speed = f"mean {speed}" if link.name in means else speed
        here = " (the bottleneck)" if link.name == one.link else ""
        queue = f"qdisc {link.qdisc}" + (f" over {link.below}" if link.below else "")
        facts.append(
            (f"Link {link.name}{here}", f"{speed}, delay {link.delay_ns / 1e6:g} ms, {queue}")
        )
    facts += [] if series.is_measured(one.run) else _parameters(one.run)
    kinds = [" ".join(filter(None, (flow.kind, flow.congestion))) for flow in meta.flows]
    counted = ", ".join(f"{kinds.count(kind)} × {kind}" for kind in dict.fromkeys(kinds))
    facts += [("Flows", counted or "none"), ("Fingerprint", meta.fingerprint or "none")]
    if not series.is_measured(one.run):
        facts.append(("Build of the engine", meta.engine_build or "not recorded by sojourn 0.1"))
    if meta.conditions:
        facts.append(
            ("Conditions", ", ".join(f"{key} {value}" for key, value in meta.conditions.items()))
        )
    facts.append(
        (
            "Host",
            ", ".join(f"{key} {value}" for key, value in sorted(meta.host.items()))
            or "not recorded",
        )
    )
    return facts


def _parameters(run: Run) -> list[tuple[str, str]]:
    """The disciplines' parameters as `tc -s qdisc show` prints them, where the words leave some
    open. None for the scenario of an older version that can't be read any more."""
    found: list[tuple[str, str]] = []
    with contextlib.suppress(ScenarioError):
        first = scenario.loads(run.scenario_text, folder=run.path)
        for link in first.realise(first.seeds[0]).links:
            if not link.sampled or (whole := derived.parameters(link)) == link.qdisc.text:
                continue
            found.append((f"Parameters of {link.name}", whole))
            found += [(f"{link.name}, {tin.name}", tin.text()) for tin in derived.tins(link)]
    return found


def _pictures(runs: Sequence[Run]) -> dict[str, parts.Picture | None]:
    """The figures, by their names in the page. They compare Runs, so a single Run has none."""
    if len(runs) < 2:
        return dict.fromkeys(PICTURES)
    captions = {name: says for name, (_, says) in PICTURES.items()}
    if beside.peaks(runs, series.bottlenecks(runs)):
        captions["stacked"] += f". Goodput {series.ABOVE_RATE}"
    return {
        name: parts.Picture(parts.file_and_svg(draw(runs), captions[name])[1], captions[name])
        for name, (draw, _) in PICTURES.items()
    }
