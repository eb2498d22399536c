"""A page for each queue discipline, from its record, docs/qdiscs.md, scenario.md, agreement.md and a
run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import extract

from sojourn.scenario.qdisc import QDISCS, Qdisc, QdiscRecord
from sojourn.units import format_duration

FOLDER = "qdiscs"

SHOWN = {
    "choke": "choke limit 1000 bandwidth 10mbit min 20 max 60 burst 30",
    "drr": "drr quanta 3000 1500",
    "ets": "ets strict 1 quanta 3000 1500",
    "gred": "gred limit 60000 40000 avpkt 1000",
    "red": "red",
    "tbf": "tbf rate 9mbit burst 15k latency 100ms",
    "adt": "adt limit 1000",
}
"""Words for the line of the page's figure, for disciplines that need some or other defaults."""

_DERIVED = {"red": ("min", "max", "burst")}
"""Words whose default follows from the required words."""


def _is_passed_on(record: QdiscRecord) -> bool:
    """Whether its words are passed to tc unchanged, so that the kernel chooses the defaults."""
    values = _defaults(record, record.variants[0])
    return all(value is None for word, value in values.items() if word != "kind")


def pages() -> dict[str, str]:
    made = {f"docs/{FOLDER}/{name}.md": page(record) for name, record in QDISCS.items()}
    return {f"docs/{FOLDER}/index.md": index(), **made}


def index() -> str:
    rows = [
        f"| [{name}]({name}.md) | {_yes(record.simulated)} | {_yes(_linux(record))} | "
        f"{', '.join(filter(None, record.variants)) or ''} |"
        for name, record in QDISCS.items()
    ]
    names = "\n".join(QDISCS)
    return f"""# Queue disciplines, one by one

Each discipline has a page with its words and defaults, its use, its weaknesses, a run, and the agreement
of the simulator with Linux. See also [which one to use](../learn/choose-a-queue.md) and [three situations
side by side](../qdiscs.md).

| discipline | simulator | Linux | variants |
|---|---|---|---|
{chr(10).join(rows)}

Disciplines with classes (htb, hfsc, qfq) are not supported: see
[what only Linux has](../scenario.md#what-only-linux-has).

```{{toctree}}
:hidden:

{names}
```
"""


def page(record: QdiscRecord) -> str:
    return "\n".join(_lines(record))


def _lines(record: QdiscRecord) -> Iterator[str]:
    name = record.kind
    yield f"# {name}\n"
    yield from _paragraphs(_purpose(name))
    yield _who(record)
    yield "## Words and defaults\n"
    yield from _words(record)
    details = list(extract.gathered("scenario.md", "Queue disciplines", name, FOLDER))
    if details:
        yield "## In detail\n"
        yield from _paragraphs(details)
    yield from _run(record)
    yield from _agreement(record)


def _paragraphs(blocks: list[str]) -> Iterator[str]:
    for block in blocks:
        yield block + "\n"


def _purpose(name: str) -> list[str]:
    """The paragraphs of docs/qdiscs.md about its use and its weaknesses."""
    titles = ("FIFOs", "One queue with an AQM", "A queue for each flow", "For research")
    return [
        block for title in titles for block in extract.gathered("qdiscs.md", title, name, FOLDER)
    ]


def _who(record: QdiscRecord) -> str:
    who = {
        (True, True): "The simulator and Linux have it.",
        (True, False): "The simulator alone has it.",
        (False, True): "Linux alone has it: `-e kernel`.",
    }[record.simulated, _linux(record)]
    variants = [each for each in record.variants if each is not None]
    more = ""
    if len(variants) > 1:
        more = f" Its variants are {', '.join(f'`{each}`' for each in variants)}; the first is the default."
    return f"{who}{more}\n"


def _linux(record: QdiscRecord) -> bool:
    return any(record.in_linux(variant) for variant in record.variants)


def _yes(has: bool) -> str:
    return "yes" if has else ""


def _words(record: QdiscRecord) -> Iterator[str]:
    """The words of each variant. Variants with the same words and defaults share a table."""
    groups: dict[tuple[str, ...], list[str | None]] = {}
    for variant in record.variants:
        groups.setdefault(tuple(_table(record, variant)), []).append(variant)
    for table, variants in groups.items():
        if len(record.variants) > 1:
            yield f"### {', '.join(map(str, variants))}\n"
        yield f"```text\n{_folded(record.usage(variants[0]))}\n```\n"
        yield from table
    if _is_passed_on(record):
        yield "In short, with the defaults that Linux chooses:\n"
        yield from extract.rows(extract.section("scenario.md", "Queue disciplines"), record.kind)[
            :1
        ]
        yield ""


def _folded(usage: str) -> str:
    """Splits a long line of words into several."""
    lines = [""]
    for part in re.findall(r"\[[^\]]*\]|\S+", usage):
        if len(lines[-1]) + len(part) > 88:
            lines.append("   ")
        lines[-1] += (" " if lines[-1] else "") + part
    return "\n".join(lines)


def _table(record: QdiscRecord, variant: str | None) -> Iterator[str]:
    values = _defaults(record, variant)
    words = record.words(variant)
    valued = [(word, sort) for word, sort in words if sort is not None]
    flags = [word for word, sort in words if sort is None]
    if valued and _is_passed_on(record):
        yield "| word | value |"
        yield "|---|---|"
        yield from (f"| `{word}` | {sort} |" for word, sort in valued)
        yield ""
    elif valued:
        yield "| word | value | default |"
        yield "|---|---|---|"
        yield from (
            f"| `{word}` | {sort} | {_default(word, values, record.kind)} |"
            for word, sort in valued
        )
        yield ""
    if flags:
        yield "Words without a value: " + ", ".join(f"`{flag}`" for flag in flags) + ".\n"


def _defaults(record: QdiscRecord, variant: str | None) -> dict[str, Any]:
    """Each field of the discipline with its default, without the required ones."""
    first = variant == record.variants[0]
    least = record.least if first else f"{record.kind} variant {variant}"
    given = set(record.least.split()) if first else set()
    return {word: value for word, value in Qdisc.parse(least).params.items() if word not in given}


def _default(word: str, values: dict[str, Any], kind: str) -> str:
    if word in _DERIVED.get(kind, ()):
        return "see below"
    if f"{word}_ns" in values:
        value = values[f"{word}_ns"]
        return "none" if value is None else format_duration(value)
    if word not in values:
        return ""
    value = values[word]
    return "none" if value is None else str(value)


def _run(record: QdiscRecord) -> Iterator[str]:
    name = record.kind
    words = SHOWN.get(name, record.least)
    key = "bottleneck.up.qdisc" if name == "tbf" else "bottleneck.qdisc"
    setting = f'"{key}={words}"' if " " in words else f"{key}={words}"
    guest, engine = ("", "") if record.simulated else ("<!-- guest -->\n", " -e kernel")
    others = "home-uplink pfifo fq_codel"
    if record.for_each_queue:
        setting += " --set bottleneck.queues=4"
        others = 'card-mq "mq fq_codel" "mq cake"'
    yield "## A run\n"
    yield (
        "The example `home-uplink` for 20 s: two uploads, a download, a video call and a ping on a line of "
        "10 Mbit/s up and 50 Mbit/s down.\n"
    )
    if name == "adt":
        yield "adt follows the utilisation over many seconds, so this run is longer: 60 s.\n"
    length = "60 s" if name == "adt" else "20 s"
    yield (
        f'{guest}```sh\nsojourn run home-uplink --set {setting} --set duration="{length}" --seeds 1{engine} -o {name}\n```\n'
        "<!-- output -->\n"
    )
    yield "The link up over time:\n"
    yield (
        f"{guest}```python\nfrom sojourn import Run, figures\n\n"
        f'figures.save(figures.timeline(Run.open("{name}"), link="up"), "{name}.svg")\n```\n'
        f"<!-- figure: {name}.svg: {name} on a home uplink over time: goodput, cwnd, sojourn time, backlog, losses -->\n"
    )
    yield (
        f'Beside others: `sojourn compare {others} "{words}"`.\n'
        if words not in ("pfifo", "fq_codel")
        else "Beside others: `sojourn compare home-uplink pfifo fq_codel`.\n"
    )


def _agreement(record: QdiscRecord) -> Iterator[str]:
    yield "## Agreement with Linux\n"
    if not _linux(record):
        yield "Linux does not have it as a discipline of its own, so there is nothing to compare.\n"
        return
    yield (
        "From [agreement.md](../agreement.md), which has all of it: the same scenarios in the simulator and on "
        "Linux 6.12, number by number and decision by decision.\n"
    )
    yield from extract.evidence(record.kind, FOLDER)
