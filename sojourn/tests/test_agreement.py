"""Compares simulator and kernel: the rules of agreement, with hand-made summaries; and, where a
guest is ready, that both agree."""

import functools
import json
import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from tree import ROOT

import sojourn
from sojourn import agreement, metrics
from sojourn.agreement import (
    VERDICTS,
    Comparison,
    NumberRow,
    compare,
    digest,
    product,
    running,
    sides,
    verdicts,
)
from sojourn.agreement import standing as standing_set
from sojourn.agreement.standing import cases, controls, products, quick, replays, standing
from sojourn.cli import status
from sojourn.defaults import ENGINES
from sojourn.engine import registry
from sojourn.engine import runs as engine_runs
from sojourn.engine.kernel.guest import awake, ready
from sojourn.engine.protocol import Outcome
from sojourn.engine.sim import Simulator
from sojourn.errors import UserError
from sojourn.metrics import Summary, over_seeds
from sojourn.records import Run
from sojourn.scenario import Scenario, loads
from sojourn.scenario.realised import Realised

RATES = {"down": 10_000_000, "up": 10_000_000}
PACKET_MS = 1.2112
"""1514 bytes at 10 Mbit/s."""
USUAL: Mapping[str, float] = {
    "goodput": 9.5,
    "utilisation": 1.0,
    "sojourn": 20.0,
    "p99": 40.0,
    "drops": 100,
    "marks": 0,
    "ping": 30.0,
    "retransmits": 90,
    "timeouts": 8,
    "lost": 0,
    "jain": 0.9,
    "bulk": 9.0,
    "page": 0.5,
    "completed": 40,
    "completion": 200.0,
    "completion p95": 400.0,
    "flow rtt": 35.0,
}


def times(mean: float, p99: float) -> dict[str, float]:
    return {"mean": mean, "p50": mean, "p95": mean, "p99": p99, "max": p99}


def one_seed(numbers: Mapping[str, float]) -> dict[str, Any]:
    n = {**USUAL, **numbers}
    queue = {
        "qdisc": n.get("qdisc", "codel"),
        "utilisation": n["utilisation"],
        "marked_packets": n["marks"],
    }
    idle = {
        "utilisation": 0.02,
        "dropped_packets": n.get("up drops", 0),
        "marked_packets": 0,
        "lost_packets": n.get("up lost", 0),
        "ring": None,
    }
    flow = {
        "kind": "bulk",
        "base_rtt_ms": 11.0,
        "timeouts": n["timeouts"] / 2,
        "rtt_ms": {"mean": n["flow rtt"]},
    }
    ring = {"packets": {"mean": n["ring"], "max": n.get("ring max", 3)}} if "ring" in n else None
    bulk, page = (
        {"name": name, "kind": kind, "goodput_mbps": n[name]}
        for name, kind in (("bulk", "bulk"), ("page", "transfers"))
    )
    took = {"mean": n["completion"], "p95": n["completion p95"]}
    return {
        "queues": [
            {
                "link": "down",
                **queue,
                "dropped_packets": n["drops"],
                "lost_packets": n["lost"],
                "ring": ring,
                "sojourn_ms": times(n["sojourn"], n["p99"]),
                "backlog_packets": {"mean": 17.0},
            },
            {
                "link": "up",
                "qdisc": "codel",
                **idle,
                "sojourn_ms": times(0.1, 0.2),
                "backlog_packets": {"mean": 0.1},
            },
        ],
        "flows": [
            {"name": "bulk.1", "congestion": "reno", "retransmits": n["retransmits"], **flow},
            {"name": "bulk.2", "congestion": "reno", "retransmits": 10, **flow},
            {"name": "ping", "congestion": None, "retransmits": None, **flow},
        ],
        "groups": [
            bulk,
            {**page, "transfers": {"completed": n["completed"], "completion_ms": took}},
        ],
        "jain": n["jain"],
        "probes": [{"name": "ping", "rtt_ms": times(n["ping"], n["ping"])}],
        "goodput_mbps": n["goodput"],
    }


def summary(*seeds: Mapping[str, float]) -> Summary:
    runs = [{"seed": number, **one_seed(each)} for number, each in enumerate(seeds, start=1)]
    samples = len(seeds) if any(each != seeds[0] for each in seeds) else 1
    return Summary(
        engine="made up",
        version="",
        title="By hand",
        label="codel, 2 flows",
        duration_s=30.0,
        warmup_s=10.0,
        seeds=tuple(range(1, len(seeds) + 1)),
        fingerprint="",
        runs=runs,
        summary=over_seeds(runs[:samples]),
        samples=samples,
    )


def judged(
    metric: str,
    sim: Sequence[Mapping[str, float]],
    kernel: Sequence[Mapping[str, float]],
    tolerance: float = 0.05,
    place: str = "",
) -> NumberRow:
    comparison = compare(summary(*sim), summary(*kernel), RATES, tolerance=tolerance)
    return row_of(comparison, metric, place)


def row_of(comparison: Comparison, metric: str, place: str = "") -> NumberRow:
    return next(row for row in comparison.rows if row.metric == metric and place in row.place)


# --------------------------------------------------------------------------------------- verdicts


def test_a_summary_agrees_with_itself_in_every_number() -> None:
    one = summary({}, {"drops": 104})
    comparison = compare(one, one, RATES)
    assert {row.verdict for row in comparison.rows} == {"within"}
    assert comparison.agrees
    assert [row.metric for row in comparison.rows] == [
        *("goodput", "group goodput", "group goodput", "jain"),
        *("utilisation", "sojourn mean", "sojourn p50", "sojourn p95", "sojourn p99", "drops"),
        *("ping mean", "ping p50", "ping p95", "ping p99"),
        *("transfers", "completion mean", "completion p95", "retransmits", "timeouts", "flow rtt"),
    ]


def test_a_difference_is_of_the_kernels_number() -> None:
    row = judged("sojourn mean", [{"sojourn": 21.0}], [{"sojourn": 20.0}])
    assert (row.verdict, row.sim, row.kernel, row.unit) == ("within", 21.0, 20.0, "ms")
    assert row.difference == pytest.approx(0.05)
    assert judged("sojourn mean", [{"sojourn": 21.1}], [{"sojourn": 20.0}]).verdict == "beyond"
    assert judged("sojourn mean", [{"sojourn": 18.9}], [{"sojourn": 20.0}]).verdict == "beyond"


def test_the_tolerance_can_be_chosen() -> None:
    assert judged("sojourn mean", [{"sojourn": 21.9}], [{}], tolerance=0.10).verdict == "within"
    assert judged("sojourn mean", [{"sojourn": 20.3}], [{}], tolerance=0.01).verdict == "beyond"


def test_percentiles_come_in_steps_of_a_packet_and_means_do_not() -> None:
    step = {"sojourn": 12.0 + PACKET_MS, "p99": 12.0 + PACKET_MS}
    base = {"sojourn": 12.0, "p99": 12.0}
    assert judged("sojourn p99", [step], [base]).verdict == "step"
    assert judged("sojourn mean", [step], [base]).verdict == "beyond"
    more = {"p99": 12.0 + 1.1 * PACKET_MS}
    assert judged("sojourn p99", [more], [base]).verdict == "beyond"


def test_counts_come_in_steps_of_one() -> None:
    assert judged("drops", [{"drops": 6}], [{"drops": 5}]).verdict == "step"
    assert judged("drops", [{"drops": 7}], [{"drops": 5}]).verdict == "beyond"


def test_a_difference_is_noise_if_its_interval_reaches_the_tolerance() -> None:
    # 20 ± 3 (t(0.975, 2) s / sqrt(3) with s = 1.2) and 22 ± 3: the difference of 2 has an interval
    # of 4.2.
    scattered = [{"sojourn": value} for value in (18.8, 20.0, 21.2)]
    higher = [{"sojourn": value} for value in (20.8, 22.0, 23.2)]
    row = judged("sojourn mean", higher, scattered)
    half = 4.3027 * 1.2 / math.sqrt(3)
    assert row.verdict == "noise"
    assert row.sim_ci95 == pytest.approx(half, rel=1e-3)
    assert row.ci95 == pytest.approx(half * math.sqrt(2) / 20, rel=1e-3)
    steady = [{"sojourn": value} for value in (21.99, 22.0, 22.01)]
    exact = [{"sojourn": value} for value in (19.99, 20.0, 20.01)]
    assert judged("sojourn mean", steady, exact).verdict == "beyond"


def test_one_seed_is_never_noise() -> None:
    row = judged("sojourn mean", [{"sojourn": 40.0}], [{}])
    assert math.isnan(row.ci95)
    assert row.verdict == "beyond"


def test_a_side_with_equal_seeds_adds_nothing_to_the_interval() -> None:
    row = judged(
        "sojourn mean", [{"sojourn": 22.0}] * 3, [{"sojourn": each} for each in (17.0, 20.0, 23.0)]
    )
    assert math.isnan(row.sim_ci95)
    assert row.ci95 == pytest.approx(row.kernel_ci95 / row.kernel)
    assert row.verdict == "noise"


def test_equal_seeds_have_no_scatter() -> None:
    alike, other = (
        summary(*[{"sojourn": 0.1}] * 3),
        summary({"sojourn": 0.1}, {"sojourn": 0.1}, {"sojourn": 0.2}),
    )
    assert not compare(alike, alike, RATES).scatters
    assert compare(alike, other, RATES).scatters
    assert compare(other, alike, RATES).scatters


def test_retransmits_are_of_all_flows_and_scatter_together() -> None:
    row = judged("retransmits", [{"retransmits": 90}, {"retransmits": 110}], [{}, {}])
    assert (row.sim, row.kernel) == (110, 100)
    # t(0.975, 1) = 12.706, s / sqrt(2) = 10.
    assert row.sim_ci95 == pytest.approx(127.06, rel=1e-3)


def test_a_number_of_only_one_side_is_beyond() -> None:
    row = judged("sojourn mean", [{"sojourn": math.nan}], [{}])
    assert row.verdict == "beyond"
    assert math.isnan(row.difference)
    row = judged("marks", [{"marks": 5}], [{"marks": 0}])
    assert (row.verdict, row.difference) == ("beyond", math.inf)


def test_a_number_of_neither_side_has_no_row() -> None:
    none = {"ping": math.nan}
    comparison = compare(summary(none), summary(none), RATES)
    assert not [row for row in comparison.rows if row.metric.startswith("ping")]


def test_a_link_that_drops_is_compared_beside_the_busiest() -> None:
    comparison = compare(summary({"up drops": 8}), summary({"up drops": 16}), RATES)
    assert row_of(comparison, "drops", "up").verdict == "beyond"
    assert row_of(comparison, "drops", "down").verdict == "within"
    assert (comparison.case.kind, comparison.case.flows) == ("codel", 2)
    assert not comparison.agrees


def test_summaries_of_two_scenarios_are_refused() -> None:
    other = summary({})
    other.summary["probes"][0]["name"] = "probe"
    with pytest.raises(ValueError, match="two scenarios"):
        compare(summary({}), other, RATES)


# ---------------------------------------------------------------------------------- other numbers


def test_the_goodput_of_each_group_is_compared() -> None:
    row = judged("group goodput", [{"bulk": 8.0}], [{}], place="bulk")
    assert (row.verdict, row.place, row.sim, row.kernel) == ("beyond", "bulk", 8.0, 9.0)
    assert judged("group goodput", [{"bulk": 8.0}], [{}], place="page").verdict == "within"
    # A full packet more in 20 s.
    more = 1514 * 8 / 20 / 1e6
    assert (
        judged("group goodput", [{"page": 0.001 + more}], [{"page": 0.001}], place="page").verdict
        == "step"
    )
    assert (
        judged(
            "group goodput", [{"page": 0.001 + 1.1 * more}], [{"page": 0.001}], place="page"
        ).verdict
        == "beyond"
    )


def test_a_single_group_has_the_goodput_of_all() -> None:
    one = summary({})
    del one.summary["groups"][1:]
    assert [row.metric for row in compare(one, one, RATES).rows][:2] == ["goodput", "jain"]


def test_jain_is_of_endless_flows_that_share() -> None:
    assert judged("jain", [{"jain": 0.8}], [{}]).verdict == "beyond"
    one = summary({})
    one.summary["flows"][1]["kind"] = "transfers"
    assert "jain" not in {row.metric for row in compare(one, one, RATES).rows}


def test_transfers_are_counted_and_timed() -> None:
    assert judged("transfers", [{"completed": 6}], [{"completed": 5}]).verdict == "step"
    assert judged("completion mean", [{"completion": 220.0}], [{}]).verdict == "beyond"
    assert judged("completion mean", [{"completion": 201.0}], [{"completion": 200.0}]).unit == "ms"
    short = {"completion p95": 12.0}
    assert (
        judged("completion p95", [{"completion p95": 12.0 + PACKET_MS}], [short]).verdict == "step"
    )
    none = {"completed": 0, "completion": math.nan, "completion p95": math.nan}
    metrics_of_none = {row.metric for row in compare(summary(none), summary(none), RATES).rows}
    assert not {"transfers", "completion mean", "completion p95"} & metrics_of_none


def test_timeouts_are_counted_over_all_flows() -> None:
    row = judged("timeouts", [{"timeouts": 9}], [{}])
    assert (row.sim, row.kernel, row.verdict) == (9, 8, "step")
    assert judged("timeouts", [{"timeouts": 10}], [{}]).verdict == "beyond"


def test_a_link_that_loses_is_compared() -> None:
    assert judged("wire losses", [{"lost": 50}], [{"lost": 60}]).verdict == "beyond"
    comparison = compare(summary({"up lost": 7}), summary({"up lost": 7}), RATES)
    assert row_of(comparison, "wire losses", "up").verdict == "within"


def test_a_ring_is_compared_by_its_packets() -> None:
    held = {"ring": 2.0}
    assert judged("ring mean", [{"ring": 2.2}], [held]).verdict == "beyond"
    assert judged("ring max", [{**held, "ring max": 4}], [held]).verdict == "step"
    assert judged("ring max", [{**held, "ring max": 5}], [held]).verdict == "beyond"
    row = judged("ring mean", [held], [{}])
    assert row.verdict == "beyond"
    assert math.isnan(row.kernel)


def test_a_number_that_neither_side_counted_has_no_row() -> None:
    nothing = {"drops": 0, "retransmits": -10, "timeouts": 0}
    comparison = compare(summary(nothing), summary(nothing), RATES)
    assert not {"drops", "marks", "wire losses", "retransmits", "timeouts"} & {
        row.metric for row in comparison.rows
    }
    assert judged("marks", [{"marks": 1}], [{}]).verdict == "step"


def test_flows_own_rtts_are_compared_if_the_kernel_reports_them() -> None:
    row = judged("flow rtt", [{"flow rtt": 40.0}], [{}])
    assert (row.place, row.sim, row.kernel, row.verdict) == ("reno", 40.0, 35.0, "beyond")
    silent = summary({"flow rtt": math.nan})
    assert "flow rtt" not in {row.metric for row in compare(summary({}), silent, RATES).rows}
    assert row_of(compare(silent, summary({}), RATES), "flow rtt").verdict == "beyond"


# ------------------------------------------------------------------------------------- mechanisms

ADAPTIVE = "red limit 300000 min 25000 max 75000 avpkt 1000 burst 41"


def scenario(qdisc: str = "codel", more: str = "", sweep: str = "") -> Scenario:
    return loads(
        f"""
        title = "One download"
        duration = "10 s"
        warmup = "2 s"
        seeds = 2
        [bottleneck]
        rate = "10 Mbit/s"
        delay = "5 ms"
        link_layer = "linux"
        qdisc = "{qdisc}"
        {more}
        [[flow]]
        kind = "bulk"
        {sweep}
        """
    )


def test_most_scenarios_are_the_same_on_both_sides() -> None:
    for qdisc in ("codel", ADAPTIVE, "red variant ns2 adaptive"):
        one = scenario(qdisc)
        [each] = sides(one)
        assert (each.ours, each.theirs, each.setting, each.awake) == (one, one, "", False)


def test_the_simulator_has_the_tcp_of_the_engine_s_kernel() -> None:
    assert [registry.profile_of(name) for name in ("kernel", "kernel-7.3", "netns")] == [
        "linux",
        "linux-7.3",
        "linux",
    ]
    mixed = scenario(
        "codel", more='[[flow]]\nkind = "bulk"\nprofile = "ns2"\n[[flow]]\nkind = "ping"'
    )
    [each] = sides(mixed, "linux-7.3")
    flows = [flow.tcp and flow.tcp.profile for flow in each.ours.realise(1).flows]
    assert sorted(map(str, flows)) == ["None", "linux-7.3", "ns2"]
    assert (each.theirs, each.ours.label) == (mixed, mixed.label)
    for one in sides(scenario(f"{ADAPTIVE} adaptive"), "linux-7.3"):
        assert {flow.tcp.profile for flow in one.ours.realise(1).flows if flow.tcp} == {"linux-7.3"}


def test_variant_linux_is_that_of_the_kernel_beside_it() -> None:
    def ours(qdisc: str, profile: str) -> str:
        [each] = sides(scenario(qdisc), profile)
        assert each.theirs.realise(1).links[0].qdisc.text == qdisc
        return each.ours.realise(1).links[0].qdisc.text

    assert ours("fq_codel limit 500", "linux-7.3") == "fq_codel variant linux7.3 limit 500"
    assert ours("fq_codel limit 500", "linux") == "fq_codel limit 500"
    assert ours("codel variant rfc", "linux-7.3") == "codel variant rfc"
    assert ours("pie", "linux-7.3") == "pie", "7.3 has only one pie"


def test_red_adaptive_is_compared_with_the_kernel_asleep_and_awake() -> None:
    one = scenario(f"{ADAPTIVE} adaptive")
    asleep, awoken = sides(one)
    assert (asleep.setting, asleep.awake, awoken.setting, awoken.awake) == (
        "asleep",
        False,
        "awake",
        True,
    )
    # As tc configures it, the kernel has a plain red; awake, both have the scenario's discipline.
    assert asleep.ours.realise(1) == scenario(ADAPTIVE).realise(1)
    for each in (asleep.theirs, awoken.ours, awoken.theirs):
        assert each.realise(1) == one.realise(1)
    assert len({each.label for each in (asleep.theirs, awoken.theirs, one)}) == 3


def test_a_mechanism_acts_on_every_link_that_has_it() -> None:
    one = scenario("codel", f'up.qdisc = "{ADAPTIVE} adaptive"')
    asleep, _ = sides(one)
    assert [link.qdisc.kind for link in asleep.ours.realise(1).links] == ["codel", "red"]
    assert not asleep.ours.realise(1).links[1].qdisc.params["adaptive"]
    assert asleep.theirs.realise(1).links[1].qdisc.params["adaptive"]
    long = loads(
        f"""
        duration = "10 s"
        [[link]]
        from = "a"
        to = "b"
        rate = "10 Mbit/s"
        delay = "5 ms"
        qdisc = "{ADAPTIVE} adaptive"
        [[flow]]
        kind = "bulk"
        from = "a"
        to = "b"
        """
    )
    asleep, _ = sides(long)
    assert not any(link.qdisc.params["adaptive"] for link in asleep.ours.realise(1).links)


def test_a_case_is_named_by_the_kernels_words_and_setting() -> None:
    ours, theirs = summary({}), summary({})
    theirs.summary["queues"][0]["qdisc"] = f"{ADAPTIVE} adaptive"
    comparison = compare(ours, theirs, RATES, setting="asleep")
    assert comparison.case.kind == "red adaptive, asleep"
    assert comparison.case.name == "10 red adaptive, asleep reno 11 ms x2"
    assert (
        json.loads(json.dumps(comparison.to_dict(), allow_nan=False))["case"]["setting"] == "asleep"
    )


def test_each_mechanism_names_an_experiment_and_the_page_tells_of_it() -> None:
    page = (ROOT / "docs" / "agreement.md").read_text(encoding="utf-8")
    for each in agreement.MECHANISMS:
        assert each.says
        assert each.evidence
        assert f"`{each.name}`" in page


# ------------------------------------------------------------------------------- many comparisons


def test_a_digest_counts_each_number_and_finds_the_worst() -> None:
    comparisons = [
        compare(summary({"drops": drops}), summary({}), RATES) for drops in (70, 101, 98)
    ]
    assert verdicts(comparisons)["beyond"] == 1
    one = next(each for each in digest(comparisons) if each.metric == "drops")
    assert (one.group, one.verdicts["within"], one.verdicts["beyond"]) == ("codel", 2, 1)
    assert one.median == pytest.approx(0.02)
    assert one.worst == pytest.approx(-0.30)
    assert sum(sum(each.verdicts.values()) for each in digest(comparisons)) == sum(
        verdicts(comparisons).values()
    )
    assert tuple(verdicts(comparisons)) == VERDICTS


# ------------------------------------------------------------------------------- the standing set


def test_a_file_that_is_added_to_a_folder_is_in_the_standing_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(
        standing_set.FOLDER, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.py*")
    )
    before = {(of.__name__, engine): of(engine) for of in (cases, replays) for engine in ENGINES}
    monkeypatch.setattr(standing_set, "FOLDER", tmp_path)
    for folder, names in (
        ("cases", ["2-mbit", "kernel-7.3/zz"]),
        ("replays", ["usual-2", "kernel-7.3/zz"]),
    ):
        for name in names:
            (tmp_path / folder / f"{name}.toml").write_text(SMALL.replace("Four", name))
    for of, common in ((cases, "2-mbit"), (replays, "usual-2")):
        for engine, added in (("kernel", [common]), ("kernel-7.3", [common, "zz"])):
            known = [file.stem for file in before[of.__name__, engine]]
            stems = [file.stem for file in of(engine)]
            assert sorted(stems) == sorted([*known, *added])
    stems = [file.stem for file in cases()]
    assert stems[:5] == ["1-mbit", "2-mbit", "10-mbit", "50-mbit", "100-mbit"]
    assert stems[5:] == sorted(stems[5:])


def test_every_file_of_the_standing_set_is_read() -> None:
    files = set(standing_set.FOLDER.rglob("*.toml"))
    read = {file for of in (cases, replays) for engine in ENGINES for file in of(engine)}
    read |= set((standing_set.FOLDER / "controls").glob("*.toml"))
    assert files - read == {standing_set.FOLDER / f"{name}.toml" for name in ("product", "quick")}


@functools.cache
def whole_set() -> Sequence[Scenario]:
    return standing()


def test_the_first_three_files_have_every_combination_once() -> None:
    seen = set()
    for variant in whole_set():
        if not variant.title.startswith(
            ("Agreement at 1 ", "Agreement at 10 ", "Agreement at 50 ")
        ):
            continue
        realised = variant.realise(1)
        queue = realised.links[0]
        flows = [flow.tcp.congestion for flow in realised.flows if flow.tcp is not None]
        discipline = variant.label.split(": ")[1].split(",")[0]
        seen.add((queue.rate[0].bps, queue.delay_ns, discipline, len(flows), flows[0]))
    assert len(seen) == 8 * 2 * 3 * 2 * 3
    assert {rate for rate, *_ in seen} == {10**6, 10**7, 5 * 10**7}
    assert {delay for _, delay, *_ in seen} == {5_000_000, 40_000_000}
    assert {count for *_, count, _ in seen} == {1, 4, 16}


@functools.cache
def cells(engine: str) -> dict[tuple[str, str], set[str]]:
    """The disciplines of each control and feedback."""
    pairs: dict[tuple[str, str], set[str]] = {}
    for cell in products(engine):
        control, feedback, discipline = cell.label.split(": ")[1].split(", ")
        pairs.setdefault((control, feedback), set()).add(discipline)
    return pairs


def test_each_control_has_each_feedback_and_discipline_that_both_sides_have() -> None:
    usual, later = cells("kernel"), cells("kernel-7.3")
    both = [(name, "ECN") for name in ("reno", "cubic", "vegas", "bbr")]
    assert set(usual) == {*both, *((name, "no ECN") for name, _ in both), ("dctcp", "ECN")}
    accurate = {(name, "AccECN") for name, _ in [*both, ("dctcp", ""), ("prague", "")]}
    assert set(later) == {*usual, *accurate}
    for pairs, least in ((usual, set()), (later, {"dualpi2"})):
        [disciplines] = {frozenset(each) for each in pairs.values()}
        assert disciplines >= {"pfifo", "codel", "fq_codel", "cake", "pie", "red", *least}
    assert "dualpi2" not in usual["reno", "ECN"]
    assert cells("netns") == usual


def test_each_control_that_both_sides_have_is_limited_by_its_application() -> None:
    for engine, more in (("kernel", set()), ("kernel-7.3", {"prague"})):
        made = controls(engine)
        names = {"reno", "cubic", "vegas", "bbr", "dctcp", *more}
        assert {cell.label.split(": ")[1].split(",")[0] for cell in made} == names
        assert len(made) == 2 * len(names)
        for cell in made:
            [flow] = cell.realise(1).flows
            assert flow.traffic_plan()["pace"]["steps"][0] == [0, 4_000_000]


def test_a_new_control_or_discipline_is_included(monkeypatch: pytest.MonkeyPatch) -> None:
    control = SimpleNamespace(name="cubic", simulated=True, needs_ecn=True, needs_accecn=False)
    discipline = SimpleNamespace(
        kind="new",
        least="codel limit 7",
        simulated=True,
        for_each_queue=False,
        in_linux=lambda: True,
        words=lambda: [("ecn", None)],
    )
    monkeypatch.setattr(product, "CONGESTION", {"new": control})
    monkeypatch.setattr(product, "QDISCS", {"new": discipline})
    [cell] = products("kernel")
    [flow] = cell.realise(1).flows
    assert flow.tcp is not None
    assert (flow.tcp.congestion, flow.tcp.ecn, flow.tcp.accecn) == ("cubic", True, False)
    assert cell.realise(1).links[0].qdisc.text == "codel limit 7 ecn"


def test_every_case_of_it_has_seeds_that_differ() -> None:
    for variant in whole_set():
        first, second = (variant.realise(seed).with_seed(1) for seed in (1, 2))
        assert first != second, variant.label


def test_its_labels_differ() -> None:
    labels = [each.theirs.label for variant in whole_set() for each in sides(variant)]
    assert len(set(labels)) == len(labels) == 862


def test_the_quick_set_is_part_of_it() -> None:
    variants = {variant.label: variant for variant in whole_set()}
    some = quick()
    assert sum(len(sides(variant)) for variant in some) == 24
    assert all(variants[variant.label] == variant for variant in some)
    assert len({variant.title for variant in some}) == 15


# ------------------------------------------------------------------------------- the command line


def test_wrong_input_gives_an_error_with_a_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "one.toml"
    file.write_text(SMALL)
    for words, expected in (
        (["--tolerance", "five"], "five"),
        (["--tolerance", "120 %"], "120 %"),
        (["--quick", str(file)], "--quick"),
        (["--replay", str(file)], "hint: sojourn replay"),
        (["--engine", "sim"], "sim"),
        ([str(tmp_path / "none.toml")], "none.toml"),
    ):
        assert status(["agree", "-q", *words]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert expected in captured.err
        assert "Traceback" not in captured.err


def test_without_a_guest_the_error_says_how_to_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert status(["agree", "-q", "--quick"]) == 2
    assert "sojourn kernel setup" in capsys.readouterr().err


# ------------------------------------------------ the command line with a stand-in for the kernel

TWO = """
title = "Two"
duration = "8 s"
warmup = "2 s"
seeds = 2
[bottleneck]
rate = "4 Mbit/s"
delay = "5 ms"
link_layer = "linux"
[[flow]]
kind = "bulk"
count = 2
congestion = "reno"
start = "uniform 0 s .. 1 s"
[[flow]]
kind = "ping"
[sweep]
"bottleneck.qdisc" = ["codel", "red limit 100000 min 8000 max 24000 avpkt 1000 burst 14 bandwidth 4mbit"]
"""
"""codel draws no random numbers, so with the stand-in both sides have the same results for it. For
red they differ."""
STOP_NEVER = -1


class StandIn(Simulator):
    """Replaces the kernel: the simulator with other draws at its links. At one seed of red it
    raises Ctrl-C."""

    name = "kernel"

    def __init__(self, stop_at: int, biased: bool) -> None:
        self.stop_at = stop_at
        self.biased = biased

    def tables(self, realised: Realised, reached: Callable[[int], bool]) -> Outcome:
        kind = realised.links[0].qdisc.kind
        if realised.seed == self.stop_at and kind == "red":
            raise KeyboardInterrupt
        outcome = super().tables(realised.with_seed(realised.seed + 1000), reached)
        if self.biased and kind == "codel":
            tables = dict(outcome.tables)
            tables["links"]["dropped_packets"] = tables["links"]["dropped_packets"] * 2
            return replace(outcome, tables=tables)
        return outcome


def beside_a_stand_in(
    monkeypatch: pytest.MonkeyPatch, stop_at: int = STOP_NEVER, biased: bool = False
) -> None:
    def find(name: str) -> Simulator:
        return Simulator() if name == "sim" else StandIn(stop_at, biased)

    monkeypatch.setattr(engine_runs, "find", find)
    monkeypatch.setattr(running, "find_awake", find)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    file = tmp_path / "two.toml"
    file.write_text(TWO)
    return file


def agreed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = status(["agree", "-q", "--json", *words])
    return code, json.loads(capsys.readouterr().out)


def seeds_of(document: Mapping[str, Any]) -> list[int]:
    return [each["seeds"] for each in document["comparisons"]]


def undecided(one: Mapping[str, Any]) -> bool:
    return any(row["verdict"] in ("noise", "beyond") for row in one["rows"])


def test_only_undecided_cases_get_more_seeds(
    two: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    beside_a_stand_in(monkeypatch)
    _, few = agreed(capsys, str(two))
    assert seeds_of(few) == [2, 2], "a user's scenario keeps its own number of seeds"
    assert [undecided(one) for one in few["comparisons"]] == [False, True]
    _, more = agreed(capsys, str(two), "--most-seeds", "4")
    assert seeds_of(more) == [2, 4]
    assert more["comparisons"][0] == few["comparisons"][0]
    _, document = agreed(capsys, str(two), "--seeds", "4")
    # Every number of a case is judged over all its seeds, as if all had been requested at once.
    assert more["comparisons"][1] == document["comparisons"][1]
    _, bounded = agreed(capsys, str(two), "--most-seeds", "3")
    assert seeds_of(bounded) == [2, 3]


def test_more_seeds_do_not_excuse_a_difference(
    two: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    beside_a_stand_in(monkeypatch, biased=True)
    code, document = agreed(capsys, str(two), "--most-seeds", "8")
    assert code == 1
    assert seeds_of(document)[0] == 8
    drops = next(row for row in document["comparisons"][0]["rows"] if row["metric"] == "drops")
    assert (drops["verdict"], drops["difference"]) == ("beyond", pytest.approx(-0.5))


def test_further_seeds_are_kept_with_the_others(
    two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    beside_a_stand_in(monkeypatch)
    out = tmp_path / "kept"
    _, document = agreed(capsys, str(two), "--most-seeds", "4", "-o", str(out))
    assert document == json.loads((out / "agreement.json").read_text())
    for side in ("sim", "kernel"):
        assert [run.seeds for run in Run.find(out / side)] == [(1, 2), (1, 2, 3, 4)]
    assert status(["agree", "-q", str(two), "-o", str(out)]) == 2, (
        "they are not overwritten unasked"
    )
    assert "already holds a Run" in capsys.readouterr().err
    # A folder whose run was killed before meta.json does not count as a Run. A folder with another
    # scenario is refused.
    for text, refused in (("", ""), ("title = 'mine'\n", "holds files that are not a Run")):
        for run in (run for side in ("sim", "kernel") for run in Run.find(out / side)):
            whole_text = run.scenario_text
            shutil.rmtree(run.path)
            run.path.mkdir()
            (run.path / "scenario.toml").write_text(text or whole_text[:40])
        code = status(["agree", "-q", str(two), "-o", str(out)])
        assert refused in (stderr := capsys.readouterr().err)
        assert (code == 2) == bool(refused), stderr


def test_ctrl_c_in_a_further_round_keeps_what_was_judged(
    two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    beside_a_stand_in(monkeypatch, stop_at=3)
    out = tmp_path / "kept"
    code, document = agreed(capsys, str(two), "--most-seeds", "4", "-o", str(out), "--jobs", "1")
    assert code == 130
    assert (seeds_of(document), document["not_finished"]) == ([2, 2], 0)
    assert document == json.loads((out / "agreement.json").read_text())
    red = Run.find(out / "kernel")[1]
    assert red.meta.seeds_asked == (1, 2, 3, 4)
    assert set(red.seeds) >= {1, 2}


def test_ctrl_c_keeps_the_cases_that_were_finished(
    two: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    beside_a_stand_in(monkeypatch, stop_at=2)
    code, document = agreed(capsys, str(two), "--jobs", "1")
    assert code == 130
    assert ([one["label"] for one in document["comparisons"]], document["not_finished"]) == (
        ["codel"],
        1,
    )


def test_red_adaptive_has_a_folder_for_each_setting(
    two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    two.write_text(TWO.replace("bandwidth 4mbit", "bandwidth 4mbit adaptive"))
    beside_a_stand_in(monkeypatch)
    out = tmp_path / "kept"
    _, document = agreed(capsys, str(two), "-o", str(out))
    assert [one["case"]["setting"] for one in document["comparisons"]] == ["", "asleep", "awake"]
    assert [len(Run.find(out / side)) for side in ("sim", "kernel", "kernel-awake")] == [3, 2, 1]


def test_every_side_s_folder_is_checked_before_anything_runs(
    two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    two.write_text(TWO.replace("bandwidth 4mbit", "bandwidth 4mbit adaptive"))
    beside_a_stand_in(monkeypatch)
    out = tmp_path / "kept"
    agreed(capsys, str(two), "-o", str(out))
    for side in ("sim", "kernel"):
        shutil.rmtree(out / side)
    assert status(["agree", "-q", str(two), "-o", str(out)]) == 2
    assert not (out / "sim").exists()
    assert agreed(capsys, str(two), "-o", str(out), "--force")[0] != 2


def test_cases_that_can_not_be_run_awake_are_left_out_with_a_message(
    two: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    two.write_text(TWO.replace("bandwidth 4mbit", "bandwidth 4mbit adaptive"))
    beside_a_stand_in(monkeypatch)
    monkeypatch.setattr(running, "find_awake", registry.find_awake)
    monkeypatch.setattr(awake, "COMPILER", "no-such-compiler")
    status(["agree", str(two)])
    captured = capsys.readouterr()
    assert (
        "left out: red adaptive, awake: red can't be made to adapt: no-such-compiler is missing"
        in captured.err
    )
    assert "asleep" in captured.out
    assert "awake" not in captured.out


@pytest.mark.skipif(awake.why_not() is not None, reason="no compiler")
def test_the_library_that_wakes_red_is_compiled_and_named_by_its_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = awake.library()
    assert files["etc/ld.so.preload"] == b"/awake.so\n"
    assert files["awake.so"].startswith(b"\x7fELF")
    name = awake.name()
    monkeypatch.setattr(awake, "_source", lambda: b"int x = ;")
    assert awake.name() != name
    with pytest.raises(UserError, match=r"gcc can't compile awake\.c: "):
        awake.library()


# ---------------------------------------------------------------- Python with the same stand-in


def test_agree_in_python_gives_what_the_command_prints(
    two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    beside_a_stand_in(monkeypatch)
    _, document = agreed(capsys, str(two), "--most-seeds", "4")
    out, reports, messages = tmp_path / "kept", [], []
    result = sojourn.agree(two, most_seeds=4, out=out, progress=reports.append, say=messages.append)
    assert isinstance(result, sojourn.Agreement)
    plain = json.loads(result.to_json())
    assert json.loads((out / "agreement.json").read_text()) == plain
    for one in (plain, document):
        one.pop("cpu_s")
    assert plain == document
    assert [one.seeds for one in result.comparisons] == [2, 4]
    assert {row.verdict for one in result.comparisons for row in one.rows} <= {*VERDICTS}
    assert [run.seeds for run in result.kernels] == [run.seeds for run in result.simulated]
    assert messages[0] == "2 scenarios on kernel"
    assert reports[-1].finished == reports[-1].runs
    with pytest.raises(UserError, match="already holds a Run"):
        sojourn.agree([two], out=out, seeds=1)


def test_agree_in_python_keeps_what_was_finished_at_ctrl_c(
    two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside_a_stand_in(monkeypatch, stop_at=2)
    with pytest.raises(sojourn.AgreeInterrupted) as stopped:
        sojourn.agree(two, jobs=1, out=tmp_path / "kept")
    result = stopped.value.found
    assert ([one.label for one in result.comparisons], result.not_finished) == (["codel"], 1)
    kept = json.loads((tmp_path / "kept" / "agreement.json").read_text())
    assert kept == json.loads(result.to_json())
    assert [seed for _, seed in stopped.value.stop.missing] == [2]


def test_the_simulator_can_not_take_the_place_of_the_kernel() -> None:
    with pytest.raises(UserError, match="sim is not a kernel"):
        sojourn.agree("home-uplink", engine="sim")


# ----------------------------------------------------------------------------------- with a guest

SMALL = """
title = "Four downloads"
duration = "26 s"
warmup = "6 s"
seeds = 4
[bottleneck]
rate = "10 Mbit/s"
delay = "5 ms"
link_layer = "linux"
[[flow]]
kind = "bulk"
count = 4
congestion = "cubic"
start = "uniform 0 s .. 1 s"
[[flow]]
kind = "ping"
[sweep]
"bottleneck.qdisc" = ["codel", "pfifo limit 206"]
"""


@pytest.mark.guest
def test_simulator_and_kernel_agree_on_codel_and_pfifo(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = ready("uml")
    if state.guest is None or state.why_not:
        pytest.skip(f"no guest to compare with: {state.why_not}")
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    out = tmp_path / "kept"
    code = status(["agree", str(file), "-q", "--json", "-o", str(out)])
    output = json.loads(capsys.readouterr().out)
    assert code == 0, [
        row for one in output["comparisons"] for row in one["rows"] if row["verdict"] == "beyond"
    ]
    assert output == json.loads((out / "agreement.json").read_text())
    assert [one["case"]["qdisc"] for one in output["comparisons"]] == ["codel", "pfifo limit 206"]
    for one in output["comparisons"]:
        assert one["seeds"] == 4
        for row in one["rows"]:
            if row["metric"] in ("goodput", "utilisation", "sojourn mean", "ping mean"):
                assert abs(row["difference"]) <= agreement.TOLERANCE, row
    # Both sides can be read again.
    runs = sorted(path.parent.name for path in out.glob("*/*/meta.json"))
    assert len(runs) == 4
    assert metrics.summary(Run.open(out / "kernel" / runs[0])).engine == "kernel"


ASLEEP_AND_AWAKE = SMALL.replace(
    '["codel", "pfifo limit 206"]', f'["{ADAPTIVE} probability 0.1 adaptive"]'
)


@pytest.mark.guest
def test_red_adaptive_agrees_as_tc_sets_it_and_awake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = ready("uml")
    if state.guest is None or state.why_not or awake.why_not():
        pytest.skip(f"no guest to compare with: {state.why_not or awake.why_not()}")
    file = tmp_path / "red.toml"
    file.write_text(ASLEEP_AND_AWAKE.replace("seeds = 4", "seeds = 2"))
    out = tmp_path / "kept"
    _, document = agreed(capsys, str(file), "-e", "kernel-uml", "-o", str(out), "--most-seeds", "4")
    beyond = [
        row for one in document["comparisons"] for row in one["rows"] if row["verdict"] == "beyond"
    ]
    assert not beyond
    asleep, awoken = Run.find(out / "kernel-uml")[0], Run.find(out / "kernel-uml-awake")[0]
    assert awoken.meta.conditions["red adaptive"]
    assert asleep.meta.engine_build != awoken.meta.engine_build

    def probabilities(run: Run) -> int:
        queue = run.table("queue", run.seeds[0])
        return int(queue.filter(queue["link"] == "down")["probability"].n_unique())

    # max_p stays at tc's value, or changes twice a second.
    assert probabilities(asleep) == 1
    assert probabilities(awoken) > 10


@pytest.mark.guest
def test_each_control_is_marked_like_the_kernels() -> None:
    state = ready("uml")
    if state.guest is None or state.why_not:
        pytest.skip(f"no guest to compare with: {state.why_not}")
    marked = [cell for cell in products("kernel") if cell.label.endswith(", ECN, codel")]
    assert len(marked) == 5
    kernels = sojourn.run_all(marked, engine="kernel-uml", seeds=1)
    for our, kernel in zip(sojourn.run_all(marked, seeds=1), kernels, strict=True):
        if our.meta.flows[0].congestion == "bbr":
            continue
        rows = compare(metrics.summary(our), metrics.summary(kernel), RATES).rows
        assert not [row for row in rows if row.verdict == "beyond"], our.name
        assert "marks" in {row.metric for row in rows}, our.name
    # BBR's phases are random: the guest's result is within those of twenty seeds.
    [bbr] = [cell for cell in marked if ": bbr, " in cell.label]
    [ours] = sojourn.run_all([bbr], seeds=20)
    counts = [int(ours.table("links", seed)["marked_packets"][0]) for seed in ours.seeds]
    [count] = [
        int(run.table("links", 1)["marked_packets"][0]) for run in kernels if run.name == bbr.label
    ]
    assert min(counts) <= count <= max(counts)


@pytest.mark.long
@pytest.mark.guest
@pytest.mark.parametrize(("engine", "guest"), [("kernel", "uml"), ("kernel-7.3", "uml-7.3")])
def test_each_control_feedback_and_discipline_agrees_with_the_kernel(
    engine: str,
    guest: Literal["uml", "uml-7.3"],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if why_not := ready(guest).why_not:
        pytest.skip(f"no guest to compare with: {why_not}")
    monkeypatch.setattr(standing_set, "standing", products)
    code, document = agreed(capsys, "-e", engine)
    beyond = [
        (one["label"], row)
        for one in document["comparisons"]
        for row in one["rows"]
        if row["verdict"] == "beyond"
    ]
    assert not beyond
    assert code == 0
