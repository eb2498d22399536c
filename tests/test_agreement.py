"""Simulator beside kernel: what counts as agreement, by hand-made summaries; and, where a guest is ready, that the two do agree."""

import fnmatch
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from sojourn import agreement, metrics
from sojourn.agreement import (
    VERDICTS,
    Case,
    Comparison,
    Explanation,
    Row,
    Where,
    compare,
    digest,
    explanations,
    verdicts,
)
from sojourn.cli import status
from sojourn.cli.agree import standing
from sojourn.engine.kernel import ready
from sojourn.engine.kernel.flows import base_rtt
from sojourn.metrics import Summary, over_seeds
from sojourn.records import Run
from sojourn.scenario import load

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
}


def times(mean: float, p99: float) -> dict[str, float]:
    return {"mean": mean, "p50": mean, "p95": mean, "p99": p99, "max": p99}


def one_seed(numbers: Mapping[str, float]) -> dict[str, Any]:
    n = {**USUAL, **numbers}
    queue = {"qdisc": n.get("qdisc", "codel"), "utilisation": n["utilisation"], "marked_packets": n["marks"]}
    idle = {"utilisation": 0.02, "dropped_packets": n.get("up drops", 0), "marked_packets": 0}
    flow = {"kind": "bulk", "base_rtt_ms": 11.0}
    return {
        "queues": [
            {
                "link": "down",
                **queue,
                "dropped_packets": n["drops"],
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
    known: Sequence[Explanation] = (),
    tolerance: float = 0.05,
) -> Row:
    found = compare(summary(*sim), summary(*kernel), RATES, tolerance=tolerance, known=known)
    return row_of(found, metric)


def row_of(found: Comparison, metric: str, place: str = "") -> Row:
    return next(row for row in found.rows if row.metric == metric and place in row.place)


# --------------------------------------------------------------------------------------------------------- verdicts


def test_a_summary_agrees_with_itself_in_every_number() -> None:
    one = summary({}, {"drops": 104})
    found = compare(one, one, RATES, known=())
    assert {row.verdict for row in found.rows} == {"within"}
    assert found.agrees
    assert [row.metric for row in found.rows] == [
        *("goodput", "utilisation", "sojourn mean", "sojourn p50", "sojourn p95", "sojourn p99"),
        *("drops", "marks", "ping mean", "ping p50", "ping p95", "ping p99", "retransmits"),
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


def test_noise_is_when_the_interval_of_the_difference_reaches_the_tolerance() -> None:
    # 20 ± 3 (t(0.975, 2) s / sqrt(3) with s = 1.2) and 22 ± 3: the difference of 2 has an interval of 4.2.
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


def test_a_side_whose_seeds_are_alike_adds_nothing_to_the_interval() -> None:
    row = judged("sojourn mean", [{"sojourn": 22.0}] * 3, [{"sojourn": each} for each in (17.0, 20.0, 23.0)])
    assert math.isnan(row.sim_ci95)
    assert row.ci95 == pytest.approx(row.kernel_ci95 / row.kernel)
    assert row.verdict == "noise"


def test_seeds_that_are_all_alike_do_not_scatter() -> None:
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


def test_what_only_one_side_has_is_beyond() -> None:
    row = judged("sojourn mean", [{"sojourn": math.nan}], [{}])
    assert row.verdict == "beyond"
    assert math.isnan(row.difference)
    row = judged("marks", [{"marks": 5}], [{"marks": 0}])
    assert (row.verdict, row.difference) == ("beyond", math.inf)


def test_what_neither_side_has_is_no_row() -> None:
    none = {"ping": math.nan}
    found = compare(summary(none), summary(none), RATES)
    assert not [row for row in found.rows if row.metric.startswith("ping")]


def test_a_link_that_drops_is_compared_beside_the_busiest() -> None:
    found = compare(summary({"up drops": 8}), summary({"up drops": 16}), RATES, known=())
    assert row_of(found, "drops", "up").verdict == "beyond"
    assert row_of(found, "drops", "down").verdict == "within"
    assert (found.case.kind, found.case.flows) == ("codel", 2)
    assert not found.agrees


def test_summaries_of_two_scenarios_are_refused() -> None:
    other = summary({})
    other.summary["probes"][0]["name"] = "probe"
    with pytest.raises(ValueError, match="two scenarios"):
        compare(summary({}), other, RATES)


# ----------------------------------------------------------------------------------------------------- explanations


def lossy(low: float, high: float, cases: str = "10 codel *") -> Explanation:
    return Explanation("lossy", "it loses less", "an experiment", (Where((cases,), {"drops": (low, high)}),))


def test_an_explanation_holds_for_its_number_its_sign_and_up_to_its_bound() -> None:
    known = [lossy(-0.35, -0.05)]
    assert judged("drops", [{"drops": 70}], [{}], known).explanation == "lossy"
    assert judged("drops", [{"drops": 60}], [{}], known).verdict == "beyond"
    assert judged("drops", [{"drops": 130}], [{}], known).verdict == "beyond"
    assert judged("retransmits", [{"retransmits": 60}], [{}], known).verdict == "beyond"


def test_an_explanation_holds_for_its_cases_only() -> None:
    assert compare(summary({}), summary({}), RATES).case.name == "10 codel reno 11 ms x2"
    for cases in ("10 codel *", "* codel reno ?? ms x2"):
        assert judged("drops", [{"drops": 70}], [{}], [lossy(-1.0, 1.0, cases)]).verdict == "explained"
    for cases in ("10 red *", "1 codel *", "10 codel reno 11 ms x22"):
        assert judged("drops", [{"drops": 70}], [{}], [lossy(-1.0, 1.0, cases)]).verdict == "beyond"


def test_what_agrees_needs_no_explanation() -> None:
    row = judged("drops", [{"drops": 97}], [{}], [lossy(-1.0, 1.0)])
    assert (row.verdict, row.explanation) == ("within", None)


def test_explained_differences_are_agreement() -> None:
    found = compare(summary({"drops": 70}), summary({}), RATES, known=[lossy(-0.35, -0.05)])
    assert found.agrees
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["agrees"] is True


def test_each_explanation_names_an_experiment_and_has_bounds() -> None:
    [quick] = standing(quick=True)
    known = explanations((quick.parent / "explained.toml").read_text(encoding="utf-8"))
    page = (Path(__file__).parent.parent / "docs" / "agreement.md").read_text(encoding="utf-8")
    compared = {row.metric for row in compare(summary({}), summary({}), RATES).rows}
    cases = {name for path in standing(quick=False) for name in case_names(path)}
    assert len({each.name for each in known}) == len(known) > 0
    for each in known:
        assert each.mechanism
        assert each.evidence
        assert f"`{each.name}`" in page, "docs/agreement.md tells of it"
        for where in each.where:
            assert set(where.numbers) <= compared
            assert all(low < high and not low <= 0 <= high for low, high in where.numbers.values())
            for pattern in where.cases:
                assert fnmatch.filter(cases, pattern), f"{pattern} is none of the standing set"


def case_names(path: Path) -> list[str]:
    """What the cases of a file are called, from what is to be run."""
    names = []
    for variant in load(path).variants():
        realised = variant.realise(1)
        flows = [flow for flow in realised["flows"] if "tcp" in flow["traffic"]]
        names.append(
            Case(
                qdisc=variant.label.split(",")[0],
                rate_bps=realised["links"][0]["rate"][0]["bps"],
                congestions=frozenset(flow["traffic"]["tcp"]["congestion"] for flow in flows),
                flows=len(flows),
                base_rtt_ms=(base_rtt(flows[0], realised["links"], realised["duration_ns"]) or math.nan)
                / 1e6,
            ).name
        )
    return names


# ------------------------------------------------------------------------------------------------------ many of them


def test_a_digest_counts_each_number_and_finds_the_worst() -> None:
    found = [compare(summary({"drops": drops}), summary({}), RATES, known=()) for drops in (70, 101, 98)]
    assert verdicts(found)["beyond"] == 1
    one = next(each for each in digest(found) if each.metric == "drops")
    assert (one.group, one.verdicts["within"], one.verdicts["beyond"]) == ("codel", 2, 1)
    assert one.median == pytest.approx(0.02)
    assert one.worst == pytest.approx(-0.30)
    assert sum(sum(each.verdicts.values()) for each in digest(found)) == sum(verdicts(found).values())
    assert tuple(verdicts(found)) == VERDICTS


# -------------------------------------------------------------------------------------------------- the standing set


def test_the_standing_set_is_every_combination_once() -> None:
    seen = set()
    for path in standing(quick=False):
        for variant in load(path).variants():
            realised = variant.realise(1)
            queue = realised["links"][0]
            flows = [
                flow["traffic"]["tcp"]["congestion"] for flow in realised["flows"] if "tcp" in flow["traffic"]
            ]
            seen.add(
                (
                    queue["rate"][0]["bps"],
                    queue["delay_ns"],
                    variant.label.split(",")[0],
                    len(flows),
                    flows[0],
                )
            )
    assert len(seen) == 8 * 2 * 3 * 2 * 3
    assert {rate for rate, *_ in seen} == {10**6, 10**7, 5 * 10**7}
    assert {delay for _, delay, *_ in seen} == {5_000_000, 40_000_000}
    assert {count for *_, count, _ in seen} == {1, 4, 16}


def test_the_quick_set_is_part_of_it() -> None:
    def described(path: Path) -> set[str]:
        # All that is run, without the words.
        return {
            json.dumps(
                {key: value for key, value in variant.realise(1).items() if key != "title"}, sort_keys=True
            )
            for variant in load(path).variants()
        }

    [quick] = standing(quick=True)
    whole = [path for path in standing(quick=False) if path.stem == "10-mbit"]
    assert len(described(quick)) == 16
    assert described(quick) < described(whole[0])


# ------------------------------------------------------------------------------------------------- the command line


def test_wrong_input_is_told_kindly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "one.toml"
    file.write_text(SMALL)
    for words, said in (
        (["--tolerance", "five"], "five"),
        (["--tolerance", "120 %"], "120 %"),
        (["--quick", str(file)], "--quick"),
        (["--engine", "sim"], "sim"),
        ([str(tmp_path / "none.toml")], "none.toml"),
    ):
        assert status(["agree", "-q", *words]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert said in captured.err
        assert "Traceback" not in captured.err


def test_without_a_guest_it_says_how_to_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert status(["agree", "-q", "--quick"]) == 2
    assert "sojourn kernel setup" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------------- with a guest

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
    whole = json.loads(capsys.readouterr().out)
    assert code == 0, [
        row for one in whole["comparisons"] for row in one["rows"] if row["verdict"] == "beyond"
    ]
    assert whole == json.loads((out / "agreement.json").read_text())
    assert [one["case"]["qdisc"] for one in whole["comparisons"]] == ["codel", "pfifo limit 206"]
    for one in whole["comparisons"]:
        assert one["seeds"] == 4
        for row in one["rows"]:
            if row["metric"] in ("goodput", "utilisation", "sojourn mean", "ping mean"):
                assert abs(row["difference"]) <= agreement.TOLERANCE, row
    # Both sides can be read again.
    runs = sorted(path.parent.name for path in out.glob("*/*/meta.json"))
    assert len(runs) == 4
    assert metrics.summary(Run.open(out / "kernel" / runs[0])).engine == "kernel"
