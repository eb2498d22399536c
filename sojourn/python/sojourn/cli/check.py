"""`sojourn check`: shows what a scenario would run, on which engines and for how long. Nothing
runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from sojourn.cli import options, text, work

if TYPE_CHECKING:
    from sojourn.engine.estimate import Cost, Fit
    from sojourn.outputs.output_shapes import CheckedFlow, CheckedLink, CheckedTin
    from sojourn.scenario import Scenario
    from sojourn.scenario.realised import Flow, Link, Realised

MUCH_MEMORY = 500_000_000
"""The estimate of memory is printed if it exceeds this, bytes."""
NONE_CAN = 1
"""Exit status: the scenario is valid, but no engine can run it."""


@click.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="SCENARIO")
@options.block(options.VariationOptions)
@options.block(options.TalkOptions)
def check(path: Path, variation: options.VariationOptions, talk: options.TalkOptions) -> None:
    """Show what a scenario would run, without running it.

    Prints its links, flows, variants and seeds, notes on doubtful values, the engines that can run
    it, and estimates: packets, CPU time, size of the tables. Exit status 2 if the scenario is
    wrong, 1 if no engine can run it.
    """
    from sojourn.engine import estimate

    work.check_words([path], variation.changes)
    scenario = work.scenario(
        path, variation.changes, talk.quiet or not talk.as_json, variation.sweep
    )
    seeds = variation.wanted(scenario) or list(scenario.seeds)
    variants = scenario.variants()
    fits, cost = estimate.fits(variants), estimate.cost(variants, len(seeds))
    found = _outline(scenario, variants, seeds, fits, cost)
    work.show(
        text.as_json(found, "check") if talk.as_json else _described(found, scenario, variants[0])
    )
    if all(fit.refused for fit in fits):
        raise click.exceptions.Exit(NONE_CAN)


# ------------------------------------------------------------------------------------ the results


def _outline(
    scenario: Scenario,
    variants: Sequence[Scenario],
    seeds: Sequence[int],
    fits: Sequence[Fit],
    cost: Cost,
) -> dict[str, Any]:
    """The results as plain values. Links and flows are those of the first variant."""
    first = variants[0].realise(seeds[0])
    return {
        "title": scenario.title,
        "duration_s": scenario.duration / 1e9,
        "warmup_s": scenario.warmup / 1e9,
        "seeds": list(seeds),
        "sweep": _swept(variants) if scenario.sweep else {},
        "variants": [variant.label for variant in variants] if scenario.sweep else [],
        "links": [_link(link, first.duration_ns) for link in first.links if link.sampled],
        "flows": _flows(first),
        "programs": [
            {
                "name": program.name,
                "node": program.node,
                "command": program.command,
                "start_s": program.start_ns / 1e9,
                "files": [name for name, _ in program.files],
            }
            for program in first.programs
        ],
        "notes": [
            {"key": note.dotted, "line": note.line, "message": note.message, "hint": note.hint}
            for note in scenario.notes
        ],
        "engines": [
            {
                "engine": fit.engine,
                "can": not fit.refused,
                "refused": fit.refused,
                "problems": list(fit.problems),
                "hint": fit.hint,
                "not_ready": fit.not_ready,
            }
            for fit in fits
        ],
        "expected": {
            "runs": cost.runs,
            "packets": cost.packets,
            "cpu_s": cost.cpu_s,
            "guest_cpu_s": cost.guest_cpu_s,
            "table_bytes": cost.table_bytes,
            "memory_bytes": cost.memory_bytes,
        },
    }


def _swept(variants: Sequence[Scenario]) -> dict[str, list[Any]]:
    """Each swept key with its values, listed or drawn."""
    return {
        key: list({str(each.settings[key]): each.settings[key] for each in variants}.values())
        for key in variants[0].settings
    }


def _link(link: Link, duration_ns: int) -> CheckedLink:
    from sojourn.engine.estimate import mean_rate_bps
    from sojourn.scenario import derived

    steps = [step.bps for step in link.rate]
    return {
        "name": link.name,
        "rate_bps": steps[0] if steps else None,
        "least_bps": min(steps, default=None),
        "greatest_bps": max(steps, default=None),
        "mean_bps": mean_rate_bps(link, duration_ns),
        "delay_ms": link.delay_ns / 1e6,
        "qdisc": link.qdisc.text,
        "parameters": derived.parameters(link),
        "tins": cast("list[CheckedTin]", [tin.to_dict() for tin in derived.tins(link)]),
        "shaper": link.shaper.text if link.shaper else None,
        "police": link.police.text if link.police else None,
        "ring": link.ring.descriptors if link.ring else None,
        "loss": link.loss is not None,
    }


def _flows(realised: Realised) -> list[CheckedFlow]:
    """One row for each [[flow]] entry."""
    groups: dict[int, list[Flow]] = {}
    for flow in realised.flows:
        groups.setdefault(flow.group, []).append(flow)
    links = realised.links
    found: list[CheckedFlow] = []
    for flows in groups.values():
        first = flows[0]
        rtts = [
            flow.path_extra_ns
            + flow.back_extra_ns
            + sum(links[index].delay_ns for index in (*flow.path, *flow.back))
            for flow in flows
        ]
        found.append(
            {
                "name": first.name if len(flows) == 1 else first.name.rpartition(".")[0],
                "count": len(flows),
                "kind": first.kind,
                "congestion": first.tcp.congestion if first.tcp else None,
                "path": [links[index].name for index in first.path if links[index].sampled],
                "base_rtt_ms": [min(rtts) / 1e6, max(rtts) / 1e6],
                "start_s": [
                    min(flow.start_ns for flow in flows) / 1e9,
                    max(flow.start_ns for flow in flows) / 1e9,
                ],
            }
        )
    return found


# ------------------------------------------------------------------------------------- for people


def _described(found: Mapping[str, Any], scenario: Scenario, first: Scenario) -> str:
    seeds = found["seeds"]
    head = [
        found["title"],
        f"{found['duration_s']:g} s, the first {found['warmup_s']:g} s left out as warm-up;"
        f" {'seed' if len(seeds) == 1 else 'seeds'} {text.ranges(sorted(seeds))}",
    ]
    if found["sweep"]:
        head.append(f"{len(found['variants'])} variants; the first one is shown below:")
        head += [
            f"  {key}: {', '.join(map(str, values)) if isinstance(values, list) else values}"
            for key, values in scenario.sweep.items()
        ]
    flows = _flow_table(found["flows"])
    if any(flow.drawn for flow in first.flows):
        flows += f"\nRTT and start are those of seed {seeds[0]}; each seed draws its own"
    parts = ["\n".join(head), _link_table(found["links"]), *_parameters(first, seeds), flows]
    if found["programs"]:
        parts.append(_program_table(found["programs"], first))
    if scenario.notes:
        parts.append("\n".join(f"note: {note}" for note in scenario.notes))
    parts.append(
        "\n".join(
            line for fit in found["engines"] for line in _engine(fit, len(found["variants"]) or 1)
        )
    )
    parts.append(_expected(found["expected"]))
    return "\n\n".join(parts)


def _link_table(links: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for link in links:
        rate = text.rate(link["rate_bps"])
        if link["least_bps"] != link["greatest_bps"]:
            rate = f"{text.rate(link['least_bps'])} to {text.rate(link['greatest_bps'])}"
            rate += f", mean {text.about_rate(link['mean_bps'])}"
        below = [f"police {link['police']}"] if link["police"] else []
        below += [f"shaper {link['shaper']}"] if link["shaper"] else []
        below += [f"ring {link['ring']}"] if link["ring"] else []
        below += ["loss"] if link["loss"] else []
        rows.append(
            [link["name"], rate, f"{link['delay_ms']:g} ms", "; ".join([link["qdisc"], *below])]
        )
    return text.table(["link", "rate", "delay", "qdisc"], rows, left=4)


def _parameters(first: Scenario, seeds: Sequence[int]) -> list[str]:
    """What `tc -s qdisc show` would print of each discipline that its words leave open."""
    from sojourn.scenario import derived

    lines: dict[str, str] = {}
    for link in first.realise(seeds[0]).links:
        if link.sampled and (whole := derived.parameters(link)) != link.qdisc.text:
            tins = derived.tin_lines(derived.tins(link))
            lines.setdefault("\n".join([whole, *tins]), link.name)
    return ["\n".join(f"{name}: {words}" for words, name in lines.items())] if lines else []


def _flow_table(flows: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [
            flow["name"],
            str(flow["count"]),
            f"{flow['kind']} {flow['congestion'] or ''}".rstrip(),
            " ".join(flow["path"]),
            _range(flow["base_rtt_ms"], "ms"),
            _range(flow["start_s"], "s"),
        ]
        for flow in flows
    ]
    return text.table(["flows", "n", "kind", "over", "RTT", "start"], rows, left=6)


def _program_table(programs: Sequence[Mapping[str, Any]], first: Scenario) -> str:
    rows = [
        [one["name"], one["node"], f"{one['start_s']:g} s", " ".join(one["files"]), one["command"]]
        for one in programs
    ]
    table = text.table(["program", "node", "start", "files", "command"], rows, left=5)
    realised = first.realise(first.seeds[0])
    return (
        f"{table}\nprograms of this host, in the guest; they may read {', '.join(realised.program_sees)}"
        f" and run only with --allow-programs"
    )


def _range(ends: Sequence[float], unit: str) -> str:
    low, high = (f"{end:.4g}" for end in ends)
    return f"{low} {unit}" if low == high else f"{low} .. {high} {unit}"


def _engine(fit: Mapping[str, Any], variants: int) -> list[str]:
    if fit["can"]:
        ready = "" if fit["not_ready"] is None else f", once it is ready here ({fit['not_ready']})"
        return [f"{fit['engine']}: can run it{ready}"]
    what = "it" if fit["refused"] == variants else f"{fit['refused']} of the {variants} variants"
    problems = [f"  {problem}" for problem in fit["problems"]]
    return [f"{fit['engine']}: can't run {what}", *problems, f"  hint: {fit['hint']}"]


def _expected(expected: Mapping[str, Any]) -> str:
    from sojourn.engine.estimate import PACKETS_PER_CPU_S

    runs = f"{expected['runs']} {'run' if expected['runs'] == 1 else 'runs'}"
    return (
        f"{runs}, about {_count(expected['packets'])} packets: {text.number(expected['cpu_s'])} s of CPU time in the simulator"
        f" (at {_count(PACKETS_PER_CPU_S)} packets a second), {text.number(expected['guest_cpu_s'])} s in a guest of the kernel; tables up to {expected['table_bytes'] / 1e6:.0f} MB"
        + (
            f"; {expected['memory_bytes'] / 1e9:.1f} GB of memory"
            if expected["memory_bytes"] > MUCH_MEMORY
            else ""
        )
    )


def _count(number: int) -> str:
    for scale, word in ((10**9, "billion"), (10**6, "million"), (10**3, "thousand")):
        if number >= scale:
            return f"{number / scale:.3g} {word}"
    return str(number)
