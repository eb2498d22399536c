"""A page for each congestion control, from its record, docs/congestion.md, tcp.md, agreement.md and
a run."""

from __future__ import annotations

from collections.abc import Iterator

import extract

from sojourn._core import CongestionRecord
from sojourn.engine.kernel.releases import RELEASES
from sojourn.scenario.linux import CONGESTION
from sojourn.scenario.tcp import PROFILES

FOLDER = "congestion"
SECTIONS = {
    "vegas": "Vegas",
    "ledbat": "LEDBAT",
    "bbr": "BBR",
    "bbr3": "BBR version 3",
    "dctcp": "DCTCP",
    "prague": "Prague",
}
"""Sections of docs/tcp.md about a single control."""
OURS = {name: f"kernel-{release.name}" for release in RELEASES for name in release.congestion}
"""The engines whose kernel has our own module."""
TITLES = ("Loss decides", "Delay decides", "Both decide", "Rates and marks decide")


def pages() -> dict[str, str]:
    made = {f"docs/{FOLDER}/{name}.md": _page(record) for name, record in CONGESTION.items()}
    return {f"docs/{FOLDER}/index.md": _index(), **made}


def _index() -> str:
    rows = [
        f"| [{name}]({name}.md) | {'yes' if one.simulated else ''} | {'yes' if one.in_linux else OURS.get(name, '')} | "
        f"{f'`{one.nearest}`' if one.nearest else ''} |"
        for name, one in CONGESTION.items()
    ]
    names = "\n".join(CONGESTION)
    return f"""# Congestion controls, one by one

Each control has a page with its use, its weaknesses, and a run beside CUBIC. See also [all of them on one
page](../congestion.md), and [TCP, parameter by parameter](../tcp.md).

| control | simulator | Linux | the simulator's nearest |
|---|---|---|---|
{chr(10).join(rows)}

```{{toctree}}
:hidden:

../congestion
{names}
```
"""


def _page(record: CongestionRecord) -> str:
    return "\n".join(_lines(record))


def _lines(record: CongestionRecord) -> Iterator[str]:
    yield f"# {record.name}\n"
    for title in TITLES:
        for block in extract.gathered("congestion.md", title, record.name, FOLDER):
            yield block + "\n"
    yield from _who(record)
    yield from _settings(record)
    yield from _run(record)
    yield from _agreement(record)


def _who(record: CongestionRecord) -> Iterator[str]:
    if record.simulated and record.in_linux:
        yield "The simulator and Linux have it.\n"
    elif record.name in OURS:
        yield f"The simulator has it, and the guest of `{OURS[record.name]}`, as a module of ours.\n"
    elif record.simulated:
        yield "The simulator alone has it.\n"
    else:
        yield (
            f"Linux alone has it: `-e kernel`. The simulator's nearest is [{record.nearest}]({record.nearest}.md).\n"
        )


def _settings(record: CongestionRecord) -> Iterator[str]:
    """Its settings in a scenario, and its section of docs/tcp.md."""
    name = record.name
    fields = PROFILES["linux"].parameters
    own = [
        field for field in fields if field.startswith(f"{name}_") or field in record.module_settings
    ]
    if own:
        yield "## Settings\n"
        yield "In a flow's `tcp = { ... }`; [tcp.md](../tcp.md#the-window) says what each does.\n"
        yield "| setting | default |"
        yield "|---|---|"
        for field in own:
            yield f"| `{field.removesuffix('_ns')}` | {_value(field, fields[field])} |"
        yield ""
        if record.module_settings:
            yield (
                "In Linux these are parameters of a module, one value for all flows: "
                + ", ".join(f"`{one}`" for one in record.module_settings)
                + ".\n"
            )
    if title := SECTIONS.get(name):
        yield "## In detail\n"
        yield extract.moved(extract.section("tcp.md", title).strip("\n"), "tcp.md", FOLDER) + "\n"


def _value(field: str, value: object) -> str:
    if field.endswith("_ns") and isinstance(value, int):
        return f"{value / 1e6:g} ms"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _run(record: CongestionRecord) -> Iterator[str]:
    name = record.name
    other = "reno" if name == "cubic" else "cubic"
    ecn = {"dctcp": "true", "prague": '"accecn"'}.get(name)
    marked = ecn is not None
    queue = "codel ce_threshold 1ms ecn" if marked else "pfifo limit 100"
    yield "## A run\n"
    yield (
        f"{name} alone for 20 s on 20 Mbit/s with a base RTT of 40 ms, then beside a flow of {other} for 20 s. The queue is "
        f"`{queue}`"
        + (
            ": marks begin at 1 ms.\n"
            if marked
            else ": the product of rate and RTT is 67 packets.\n"
        )
    )
    yield f"""<!-- file: {name}.toml -->
```toml
title    = "{name} alone, then beside {other}"
duration = "40 s"
warmup   = "5 s"

[bottleneck]
rate  = "20 Mbit/s"
delay = "10 ms"
qdisc = "{queue}"

[[flow]]
name       = "{name}"
kind       = "bulk"
congestion = "{name}"
rtt        = "40 ms"{f"{chr(10)}ecn        = {ecn}" if marked else ""}

[[flow]]
name       = "{other}"
kind       = "bulk"
congestion = "{other}"
rtt        = "40 ms"
start      = "20 s"

[[flow]]
kind = "ping"
```
"""
    engine = "" if record.simulated else " -e kernel"
    guest = "" if record.simulated else "<!-- guest -->\n"
    yield f"{guest}```sh\nsojourn run {name}.toml --seeds 1{engine} -o {name}\n```\n<!-- output -->\n"
    yield (
        f"{guest}```python\nfrom sojourn import Run, figures\n\n"
        f'figures.save(figures.timeline(Run.open("{name}")), "{name}.svg")\n```\n'
        f"<!-- figure: {name}.svg: {name} alone and then beside {other}: goodput, cwnd, sojourn time, backlog, losses -->\n"
    )


def _agreement(record: CongestionRecord) -> Iterator[str]:
    yield "## Agreement with Linux\n"
    if not record.simulated:
        yield "The engine `kernel` runs Linux's own code, so there is nothing to compare.\n"
        return
    if not record.in_linux and record.name not in OURS:
        yield "Linux does not have it, so there is nothing to compare.\n"
        return
    yield "From [agreement.md](../agreement.md), which has all of it.\n"
    spelt = record.name.upper() if record.name in ("cubic", "dctcp") else record.name.capitalize()
    yield from extract.evidence(spelt, FOLDER)
