"""One self-contained page from Runs: everything in it, nothing fetched, readable from a disk or an
e-mail.

    from sojourn import Run, report

    report.write(Run.find("runs/comparison"), "report.html")

The page opens with the verdict and the picture of delay over time; then come the numbers, the time
lines with one shared cursor and zoom, the distributions, the trade-off, and what exactly was run.
It asks the network for nothing, and a Content-Security-Policy in it says so to the browser. Charts
are drawn by uPlot (vendor/); figures that compare Runs are SVG.

Whatever comes from a scenario (titles, names, the text itself) is data: it goes through
`html.escape` into the page and, in the script's data, with every `<` as \\u003c, so that it can't
end the script. Written again from the same Runs, the page has the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import unified_diff
from html import escape
from pathlib import Path

from matplotlib.figure import Figure

from sojourn import extras, figures, scenario
from sojourn.digits import counted, on_page, with_interval
from sojourn.figures import beside, series, style
from sojourn.judgement import Judgement, judge, quantities
from sojourn.judgement.quantities import Measured, Quantity
from sojourn.metrics import mean_rates
from sojourn.records import Run, RunError, holding, write_whole
from sojourn.report import data, parts, swept, verdict
from sojourn.scenario import ScenarioError, notebook

__all__ = ["render", "write"]

USERS = (
    *(
        "ping_p50",
        "ping_p95",
        "ping_loss",
        "completion_mean:",
        "completion_p95:",
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
        "Goodput each way and ping RTT of the first seed, Run beside Run on the same axes",
    ),
    "tradeoff": (
        figures.tradeoff,
        "Mean sojourn at the bottleneck against goodput, a point for each Run",
    ),
}
"""The figures that compare Runs, by their places in page.html, and what each shows."""
MOST_SENDERS = 12
"""Entries of flows that are named below the drawn topology."""
MOST_IN_A_ROW = 8
"""With at most this many Runs all check boxes are shown; with more they are folded away."""


def write(runs: Sequence[Run], path: str | Path, lab_in: Path | None = None) -> Path:
    """Writes the page of these Runs, and beside it that of the lab, to which it leads; `lab_in` is
    another folder for that."""
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


def render(runs: Sequence[Run], lab: str | None = None) -> str:
    """The page as text; `lab` is the address of the lab's page, seen from this one's."""
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
    pictures = dict.fromkeys(PICTURES, "") if page is not None else _pictures(runs)
    toggles = _run_toggles(looks) if len(runs) > 1 else ""
    seeds = {view["seed"] for view in packed["views"]}
    heading, about = _heading(runs)
    return parts.template("page.html").substitute(
        title=escape(heading),
        about=escape(about),
        verdict=_refusals(runs, labels)
        + "\n".join(
            f"<p>{escape(sentence)}</p>"
            for sentence in (
                page.sentences() if page is not None else verdict.sentences(measured, found)
            )
        ),
        contents=_contents(bool(pictures["tradeoff"])),
        css=parts.text("vendor/uPlot.min.css")
        + parts.text("legend.css")
        + parts.text("page.css")
        + parts.colours(toggles + "".join(pictures.values())),
        run_toggles=toggles,
        seed_word="Seed" if page is None else "Repeat",
        seed_hidden="" if len(seeds) > 1 else "hidden",
        left_out=_left_out(packed["left_out"]),
        numbers=_numbers(measured, found) if page is None else page.numbers(),
        **pictures,
        facts=_topology(runs)
        + parts.changing(runs, lab)
        + "\n".join(
            _facts(one, label, runs[0] if i else None)
            for i, (one, label) in enumerate(zip(measured, labels, strict=True))
        ),
        data=parts.safe_json(packed),
        uplot=parts.text("vendor/uPlot.iife.min.js"),
        script="".join(map(parts.text, ("saving.js", "tables.js", "page.js"))),
    )


# ----------------------------------------------------------------------------------------- pieces


def _heading(runs: Sequence[Run]) -> tuple[str, str]:
    """The page's title, and the line under it. A measurement's title is of host, load and date: the
    host is enough for a heading."""
    title, about = series.title(runs), series.subtitle(runs)
    if not all(map(series.is_measured, runs)):
        return title, about
    hosts = dict.fromkeys(run.meta.title.partition(", ")[0] for run in runs)
    label = f": {runs[0].meta.label}" if len(runs) == 1 and runs[0].meta.label else ""
    loads = dict.fromkeys(run.meta.title.partition(", ")[2] for run in runs)
    return "; ".join(hosts) + label, " · ".join(filter(None, (*loads, about)))


def _refusals(runs: Sequence[Run], labels: Sequence[str]) -> str:
    """Why Runs' numbers are not to be used; shown above everything else about them."""
    return "".join(
        f'<p class="invalid"><strong>Invalid: the numbers of {escape(label)} are not to be used.</strong> '
        f"{escape('; '.join(run.meta.invalid))}</p>\n"
        for run, label in zip(runs, labels, strict=True)
        if run.meta.invalid
    )


def _contents(tradeoff: bool) -> str:
    """Links to the page's sections."""
    return "\n".join(
        f'<a href="#{name}">{heading}</a>'
        for name, heading in SECTIONS
        if name != "tradeoff" or tradeoff
    )


def _run_toggles(looks: Sequence[style.Look]) -> str:
    boxes = []
    for i, look in enumerate(looks):
        pattern = " ".join(map(str, data.dash(look.dash)))
        boxes.append(
            f'<label><input type="checkbox" data-run="{i}" checked>'
            f'<svg width="28" height="8" aria-hidden="true"><line x1="0" y1="4" x2="28" y2="4" '
            f'style="stroke: {parts.themed(look.colour)}" stroke-width="2.4" stroke-dasharray="{pattern}"/></svg>{escape(look.label)}</label>'
        )
    if len(boxes) > MOST_IN_A_ROW:
        return f'<details class="runs"><summary>Runs ({len(boxes)})</summary>{"".join(boxes)}</details>'
    return "<fieldset><legend>Runs</legend>" + "".join(boxes) + "</fieldset>"


def _left_out(seeds: int) -> str:
    if seeds == 0:
        return ""
    return (
        f'<p class="hint">To keep the page small the time lines of the last {counted([seeds], "seed")} are left out; '
        "they are in the numbers and the distributions, and in the Run folder.</p>"
    )


def _numbers(measured: Sequence[Measured], found: Judgement) -> str:
    parts = [
        (heading, quantities.known(measured, keys))
        for heading, keys in (("What users get", USERS), (_queue(measured), QUEUE))
    ]
    if not any(shown for _, shown in parts):
        return '<p class="empty">Nothing was measured after the warm-up.</p>'
    best = {
        (row.quantity.key, row.best)
        for contest in found.contests
        for row in contest.rows
        if row.best is not None
    }
    star = (
        "; ★ marks what is better than every other Run of the same link and traffic" if best else ""
    )
    about = f'<p class="hint">{_how(measured)}, without the warm-up{star}.<span class="narrow"> Tables scroll sideways.</span></p>'
    return about + "".join(
        _table(heading, shown, measured, found.runs, best) for heading, shown in parts if shown
    )


def _queue(measured: Sequence[Measured]) -> str:
    links = {one.link for one in measured}
    return f"The queue at {links.pop()}" if len(links) == 1 else "The queue at the bottleneck"


def _table(
    heading: str,
    shown: Sequence[Quantity],
    measured: Sequence[Measured],
    labels: Sequence[str],
    best: set[tuple[str, str]],
) -> str:
    rows = []
    for one, label in zip(measured, labels, strict=True):
        cells = [_cell(one, quantity, (quantity.key, label) in best) for quantity in shown]
        rows.append(f'<tr><th scope="row">{escape(label)}</th>{"".join(cells)}</tr>')
    head = "".join(map(_head, shown))
    return (
        f'<div class="scroll spaced" tabindex="0" role="region" aria-label="{escape(heading)}"><table class="numbers">'
        f"<caption><span>{escape(heading)}</span></caption>"
        f'<thead><tr><th scope="col">Run</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _head(quantity: Quantity) -> str:
    unit = f"{quantity.unit}, " if quantity.unit else ""
    return f'<th scope="col">{escape(quantity.name)}<small>{escape(unit)}{quantity.better} is better</small></th>'


def _cell(one: Measured, quantity: Quantity, best: bool) -> str:
    mean, _, spread = with_interval(*one.over_seeds(quantity.key), quantity.most).partition(" ")
    interval = f' <small class="ci">{spread.replace("±", "± ")}</small>' if spread else ""
    mark = ' class="best"' if best else ""
    return f"<td{mark}>{mean}{interval}</td>"


def _how(measured: Sequence[Measured]) -> str:
    """How many samples the numbers are means of."""
    counts = sorted({len(one.summary.seeds) for one in measured})
    seeds = counted(counts, "seed")
    alike = [one for one in measured if one.summary.samples < len(one.summary.seeds)]
    if counts[-1] == 1:
        return "One seed"
    if len(alike) == len(measured):
        return f"One sample: all {seeds} gave the same Run"
    some = " (one sample where all seeds gave the same)" if alike else ""
    return f"Means over {seeds}{some} ± half the 95 % confidence interval"


def _topology(runs: Sequence[Run]) -> str:
    """Who sends where: the nodes and links of the first Run, drawn, and what its flows cross."""
    if series.is_measured(runs[0]):
        return ""
    try:
        first = scenario.loads(runs[0].scenario_text, folder=runs[0].path)
        drawn, senders = notebook.drawn(first), notebook.senders(first)
    except ScenarioError:
        return ""  # An older version's, in words that are no more.
    if not drawn:
        return ""
    lines = "".join(f"<li>{escape(each)}</li>" for each in senders[:MOST_SENDERS])
    more = len(senders) - MOST_SENDERS
    rest = f"<li>and {more} more entries of flows</li>" if more > 0 else ""
    return f'<div class="picture topology">{drawn}</div><ul class="hint">{lines}{rest}</ul>'


def _text(one: Measured, first: Run | None) -> str:
    """What was run; of a further Run first what its text has otherwise."""
    text = one.run.scenario_text
    whole = f'<pre tabindex="0" aria-label="Scenario">{escape(text)}</pre>'
    if first is None or first.scenario_text == text:
        return whole
    _, _, *changes = unified_diff(
        first.scenario_text.splitlines(), text.splitlines(), n=0, lineterm=""
    )
    tags = {"+": "ins", "-": "del"}
    marked = "\n".join(
        f"<{tags[line[0]]}>{escape(line)}</{tags[line[0]]}>" for line in changes if line[0] in tags
    )
    return (
        f'<p class="hint">What differs from {escape(first.name)}:</p>'
        f'<pre class="diff" tabindex="0" aria-label="What differs">{marked}</pre>'
        f"<details><summary>The whole scenario</summary>{whole}</details>"
    )


def _facts(one: Measured, label: str, first: Run | None) -> str:
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
    kinds = [" ".join(filter(None, (flow.kind, flow.congestion))) for flow in meta.flows]
    counted = ", ".join(f"{kinds.count(kind)} × {kind}" for kind in dict.fromkeys(kinds))
    facts += [("Flows", counted or "none"), ("Fingerprint", meta.fingerprint or "none")]
    if not series.is_measured(one.run):
        facts.append(("Build of the engine", meta.engine_build or "not recorded: of sojourn 0.1"))
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
    return (
        f"<details><summary>{escape(label)}</summary>"
        f"{parts.facts(facts)}"
        f"{_text(one, first)}</details>"
    )


def _pictures(runs: Sequence[Run]) -> dict[str, str]:
    """The figures, by their places in the page. They compare Runs, so one Run alone has none."""
    if len(runs) < 2:
        return dict.fromkeys(PICTURES, "")
    said = {name: says for name, (_, says) in PICTURES.items()}
    if beside.peaks(runs, series.bottlenecks(runs)):
        said["stacked"] += f". Goodput {series.ABOVE_RATE}"
    drawn = {name: _picture(draw(runs), said[name]) for name, (draw, _) in PICTURES.items()}
    heading = '<h2 id="tradeoff">Delay against goodput</h2>'
    drawn["tradeoff"] = (
        f'<section aria-labelledby="tradeoff">{heading}{drawn["tradeoff"]}</section>'
    )
    return drawn


def _picture(figure: Figure, says: str) -> str:
    return f'<div class="picture">{parts.file_and_svg(figure, says)[1]}<p class="hint">{says}.</p></div>'
