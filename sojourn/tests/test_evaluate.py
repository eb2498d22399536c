"""`sojourn evaluate`: suites as data, candidates in their places, verdicts, matrix, page."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_chromium import HAS_BROWSER, Opened

import sojourn
from sojourn.cli import main
from sojourn.engine import check as engine_check
from sojourn.errors import UserError
from sojourn.evaluation import claim_results, entrants, evaluate, matrix, suite
from sojourn.evaluation.suite import Claim
from sojourn.figures import ellipses
from sojourn.metrics import Interval
from sojourn.scenario import load
from sojourn.scenario.linux import CONGESTION
from sojourn.scenario.qdisc import QDISCS
from sojourn.scenario.realised import Realised
from sojourn.sweeps.grid import of_runs

SCENARIO = """
title = "Two flows, short"
duration = "8 s"
warmup = "2 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
down.qdisc = "pfifo limit 60"
up.qdisc = "pfifo limit 1000"
[[flow]]
name = "new"
kind = "bulk"
start = "uniform 0 s .. 1 s"
[[flow]]
name = "legacy"
kind = "bulk"
start = "uniform 0 s .. 1 s"
"""
ALONE = SCENARIO.replace(SCENARIO[SCENARIO.index("[[flow]]") : SCENARIO.rindex("[[flow]]")], "")
PFIFO = "pfifo limit 60"
SUITE = """
[suite]
title = "Criteria of one's own"
source = "nobody"
about = "A trial."
of = "{of}"
baseline = "{baseline}"
others = ["{other}"]
at = "{at}"
link = "down"
[sources]
mine = "my own wish"
[[criteria]]
name = "both"
section = "1"
force = "must"
title = "Two flows"
scenario = "both.toml"
alone = "alone.toml"
claims = [{claims}]
[[missing]]
section = "2"
force = "may"
title = "Another"
needs = "time"
"""


def own(folder: Path, claims: str, of: str = "qdisc", **words: str) -> Path:
    """A suite of one criterion in a folder."""
    usual = {
        "qdisc": {"baseline": "pfifo", "other": "codel", "at": "bottleneck.down.qdisc"},
        "congestion": {"baseline": "cubic", "other": "reno", "at": "flow.new.congestion"},
    }[of]
    folder.mkdir(exist_ok=True)
    text = SUITE.format(of=of, claims=claims, **{**usual, **words})
    (folder / "suite.toml").write_text(text)
    (folder / "both.toml").write_text(SCENARIO)
    (folder / "alone.toml").write_text(ALONE)
    return folder


# ---------------------------------------------------------------------------------- suites as data


@pytest.mark.parametrize("name", suite.names())
def test_every_scenario_of_a_suite_has_the_quantities_of_its_claims(name: str) -> None:
    loaded = suite.read(name)
    for one in loaded.criteria:
        scenario = loaded.scenario(one)
        flows = {flow.name or flow.kind: flow for flow in scenario.flows}
        for claim in one.claims:
            assert not claim.judged or loaded.source(claim)
            for column in claim.columns:
                head, _, of = column.partition(":")
                if of:
                    assert of in flows, (one.name, column)
                if head == "own_goodput":
                    assert len(flows) > 1, (one.name, column)
                if head.startswith("ping"):
                    assert "ping" in flows
        if any(claim.harm for claim in one.claims):
            assert loaded.alone(one) is not None


@pytest.mark.parametrize("name", suite.names())
def test_our_suites_cover_all_that_the_simulator_has(name: str) -> None:
    loaded = suite.read(name)
    words, left_out = entrants.all_of(loaded, loaded.criteria, "sim")
    assert words[0] == loaded.head.baseline
    catalogue: dict[str, Any] = {**(QDISCS if loaded.head.of == "qdisc" else CONGESTION)}
    simulated = {kind for kind, record in catalogue.items() if record.simulated}
    # A link can have these disciplines only with options that the user chooses.
    elsewhere = {"mq", "cake_mq", "tbf"} & simulated
    kinds = [each.partition(" ")[0] for each in words]
    assert len(kinds) == len(set(kinds))
    assert set(kinds) == simulated - elsewhere
    assert {one.candidate for one in left_out} == set(catalogue) - set(kinds)
    assert all(one.why for one in left_out)
    # Each of them fits into its place in every criterion.
    for one in loaded.criteria:
        contending = entrants.contending(loaded, one, words)
        engine_check(contending, "sim")
        at = entrants.place(loaded, one)
        assert len({each.settings[at] for each in contending}) == len(words), one.name


def test_the_ecn_of_one_candidate_does_not_change_that_of_another() -> None:
    loaded = suite.read("rfc9743")
    (one,) = loaded.only(("aqm",)).criteria
    ecn = "flow.new.ecn"
    without: dict[object, set[object]] = {}
    for variant in entrants.contending(loaded, one, ["cubic", "bbr3", "dctcp"]):
        settings = variant.settings
        without.setdefault(settings["flow.new.congestion"], set()).add(settings[ecn])
    assert without == {"cubic": {False, True}, "bbr3": {False, True}, "dctcp": {True}}


@pytest.mark.parametrize(
    ("other", "says"),
    [("codle", "neither a queue"), ("codel targt 5ms", "targt"), ("tbf", "rate is missing")],
)
def test_a_wrong_name_in_a_suite_is_reported(tmp_path: Path, other: str, says: str) -> None:
    loaded = suite.read(own(tmp_path / "own", '{ of = "goodput" }', other=other))
    with pytest.raises(UserError, match=says):
        entrants.all_of(loaded, loaded.criteria, "sim")


def test_candidates_look_different_as_long_as_there_are_markers() -> None:
    words, _ = entrants.all_of(suite.read("rfc7928"), suite.read("rfc7928").criteria, "sim")
    looks = matrix._looks(words)
    assert len(set(looks)) == len(words)


def test_every_threshold_of_our_suites_names_its_source() -> None:
    for name in suite.names():
        loaded = suite.read(name)
        for one in loaded.criteria:
            for claim in one.claims:
                if claim.judged:
                    words = loaded.source(claim)
                    assert re.search(r"ours|RFC \d+|ITU-T G\.\d+|et al\. \d{4}", words), (
                        name,
                        one.name,
                        words,
                    )


@pytest.mark.parametrize(
    ("claims", "says"),
    [
        ('{ of = "speed" }', "no column is called 'speed'"),
        ('{ of = "goodput", at_most = 1.0, at_least = 2.0, source = "mine" }', "one of them"),
        ('{ of = "goodput", at_most = 1.0 }', "source"),
        ('{ of = "goodput", between = [2.0, 1.0], source = "mine" }', "the lower first"),
        ('{ of = "goodput", atmost = 1.0 }', "atmost: no such key"),
        (
            '{ of = "goodput", at_most = "1" }',
            "criteria.0.claims.0.at_most: expected `float | null`, got `str`",
        ),
        (
            '{ of = "goodput", at_most = inf, source = "mine" }',
            "claims.0.at_most: expected `float` <= 1e+18",
        ),
    ],
)
def test_an_error_in_a_suite_is_reported_with_its_place(
    tmp_path: Path, claims: str, says: str
) -> None:
    with pytest.raises(UserError) as caught:
        suite.read(own(tmp_path / "own", claims))
    assert says in str(caught.value)
    assert "suite.toml" in str(caught.value)


def test_a_folder_without_a_suite_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a suite"):
        suite.read(tmp_path)


def test_only_keeps_the_requested_criteria() -> None:
    loaded = suite.read("rfc7928")
    assert [one.name for one in loaded.only(("6.2", "ecn")).criteria] == ["rtts", "ecn"]
    with pytest.raises(UserError, match=r"no criterion '6\.3'"):
        loaded.only(("6.3",))


# -------------------------------------------------------------------------------------- candidates


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("codel target 20ms", "codel limit 83 target 20ms"),
        ("fq_codel limit 1000", "fq_codel limit 1000"),
        ("bfifo", f"bfifo limit {83 * 1514}"),
        ("cake", "cake"),
        ("codel variant rfc", "codel limit 83 variant rfc"),
    ],
)
def test_every_discipline_has_the_same_buffer_unless_it_sets_a_limit(
    words: str, expected: str
) -> None:
    assert entrants.with_limit(words, 83) == expected


def test_red_has_the_parameters_of_its_manual_page_and_the_same_buffer() -> None:
    loaded = suite.read("rfc7928")
    one = loaded.criteria[0]
    (red,) = entrants.values(loaded, one, loaded.scenario(one), ["red"])
    assert red.startswith(f"red limit {83 * 1514} min 25000 max 75000 ")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["codel", "cubic"], "criteria of their own"),
        (["codle"], "neither a queue discipline nor"),
    ],
)
def test_an_invalid_candidate_is_refused(words: list[str], says: str) -> None:
    with pytest.raises(UserError, match=says):
        entrants.suite_of(words)


def test_the_candidates_determine_the_suite() -> None:
    assert entrants.suite_of([]) == "rfc7928"
    assert entrants.suite_of(["fq_codel", "codel target 20ms"]) == "rfc7928"
    assert entrants.suite_of(["reno", "bbr"]) == "rfc9743"
    with pytest.raises(UserError, match="is for congestion controls, and codel is not one"):
        entrants.chosen(suite.read("rfc9743"), ["codel"])


def test_a_suite_that_is_added_to_the_folder_is_available(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in suite.names():
        shutil.copytree(suite.SUITES / name, tmp_path / name)
    shutil.copytree(suite.SUITES / "rfc9743", tmp_path / "document")
    before = suite.names()
    monkeypatch.setattr(suite, "SUITES", tmp_path)
    assert suite.names() == sorted(["document", *before])
    assert suite.read("document").word == "document"
    assert entrants.suite_of(["reno"]) == "document", "the first suite by name is chosen"
    assert entrants.suite_of(["codel"]) == "rfc7928"


# ---------------------------------------------------------------------------------------- verdicts


def test_a_ratio_of_means_has_the_interval_of_its_residuals() -> None:
    same = claim_results.ratio([2, 4, 6], [1, 2, 3])
    assert (same.value, same.low, same.high) == pytest.approx((2, 2, 2))
    # 3 / 2 with residuals of -0.25, 0 and 0.25: s = 0.25, t(0.975, 2) = 4.303, / sqrt(3).
    spread = claim_results.ratio([2.5, 3, 3.5], [2, 2, 2])
    assert spread.value == pytest.approx(1.5)
    assert spread.high - spread.value == pytest.approx(4.303 * 0.25 / math.sqrt(3), rel=1e-3)
    assert math.isnan(claim_results.ratio([1, 2], [0, 0]).value)
    # A seed with only one known value counts in neither mean.
    assert claim_results.ratio([2, 50, 6], [1, math.nan, 3]) == claim_results.ratio([2, 6], [1, 3])


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory):
    """pfifo and codel on the scenario, five seeds, and the legacy flow alone."""
    folder = tmp_path_factory.mktemp("cells")
    (folder / "both.toml").write_text(SCENARIO)
    (folder / "alone.toml").write_text(ALONE)
    both = load(folder / "both.toml").with_(
        {"sweep": {"bottleneck.down.qdisc": ["pfifo limit 60", "codel"]}}
    )
    runs = sojourn.run_all(both, seeds=5)
    alone = sojourn.run_all(load(folder / "alone.toml"), seeds=5)
    return of_runs(runs, "down"), of_runs(alone, "down")


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (Claim("sojourn_p95", at_most=0.5, times_baseline=True, source="x"), "holds"),
        (Claim("sojourn_p95", at_most=0.01, times_baseline=True, source="x"), "fails"),
        (Claim("sojourn_p95", at_least=0.5, times_baseline=True, source="x"), "fails"),
        (Claim("goodput", at_least=0.5, times_baseline=True, source="x"), "holds"),
        (Claim("goodput", at_least=9.0, source="x"), "holds"),
        (Claim("goodput", at_least=11.0, source="x"), "fails"),
        (Claim("own_goodput:new", "own_goodput:legacy", between=(1e-3, 1e3), source="x"), "holds"),
        (Claim("own_goodput:new", "own_goodput:legacy", between=(50.0, 60.0), source="x"), "fails"),
        (Claim("drop_rate"), "reported"),
        (Claim("completion_mean:new", at_most=1.0, source="x"), "unknown"),
    ],
)
def test_a_claim_is_decided_by_its_whole_interval(cells, claim: Claim, verdict: str) -> None:
    grid, alone = cells
    result = claim_results.judge(
        claim, grid, "bottleneck.down.qdisc", "codel", "pfifo limit 60", alone
    )
    assert result.verdict == verdict


def test_undecided_seeds_are_reported(cells) -> None:
    grid, alone = cells
    ratio = claim_results.judge(
        Claim("own_goodput:new", "own_goodput:legacy"),
        grid,
        "bottleneck.down.qdisc",
        "codel",
        "pfifo limit 60",
        alone,
    ).findings[0]
    # A threshold within the interval, farther from its ends than the tolerance.
    claim = Claim("own_goodput:new", "own_goodput:legacy", at_most=ratio.number.value, source="x")
    result = claim_results.judge(
        claim, grid, "bottleneck.down.qdisc", "codel", "pfifo limit 60", alone
    )
    assert ratio.number.high - ratio.number.low > 0.1 * ratio.number.value
    assert result.verdict == "unclear"


def test_the_baseline_is_reported_against_itself(cells) -> None:
    grid, alone = cells
    claim = Claim("sojourn_p95", at_most=0.5, times_baseline=True, source="x")
    at = "bottleneck.down.qdisc"
    result = claim_results.judge(claim, grid, at, "pfifo limit 60", "pfifo limit 60", alone)
    assert result.verdict == "reported"
    assert result.findings[0].unit == "ms"


def test_harm_is_the_share_of_what_the_legacy_flow_has_alone(cells) -> None:
    grid, alone = cells
    claim = Claim("own_goodput:legacy", harm=True, source="x")
    at = "bottleneck.down.qdisc"
    result = claim_results.judge(claim, grid, at, "codel", "pfifo limit 60", alone).findings[0]
    solo = alone.cells[0].at.over_seeds("goodput")[0]
    shared = next(c for c in grid.cells if c.settings[at] == "codel").at.per_seed(claim.of)
    expected = sum(100 * (1 - each / solo) for each in shared) / len(shared)
    assert result.number.value == pytest.approx(expected)
    assert 20 < expected < 80


def by_hand(cells, own: list[dict[str, float]], base: list[dict[str, float]]):
    """codel with the numbers `own` and pfifo with `base`, seed by seed: goodput and legacy in
    Mbit/s, pings lost in %. A legacy flow alone has 10 Mbit/s."""

    def numbers(seed: dict[str, float]) -> dict[str, Any]:
        queue = {"link": "down", "goodput_mbps": seed.get("goodput", math.nan)}
        groups = [
            {"name": name, "kind": "bulk", "goodput_mbps": seed.get(name, math.nan)}
            for name in ("new", "legacy")
        ]
        lost = {"loss_rate": seed.get("lost", math.nan) / 100}
        return {
            "queues": [queue],
            "flows": [],
            "groups": groups,
            "probes": [lost],
            "goodput_mbps": 0,
        }

    def given(grid, values):
        changed = []
        for cell, seeds in zip(grid.cells, values, strict=True):
            summary = dataclasses.replace(
                cell.at.summary, runs=[numbers(seed) for seed in seeds], samples=len(seeds)
            )
            at = dataclasses.replace(cell.at, summary=summary)
            changed.append(dataclasses.replace(cell, at=at))
        return dataclasses.replace(grid, cells=tuple(changed))

    grid, alone = cells
    assert [cell.settings["bottleneck.down.qdisc"] for cell in grid.cells] == [PFIFO, "codel"]
    return given(grid, [base, own]), given(alone, [[{"goodput": 10.0}] * len(own)])


def test_an_interval_on_both_sides_of_the_widened_threshold_is_unclear(cells) -> None:
    # 10.076 to 10.324: the interval is above 10 Mbit/s, but not by more than 2 % everywhere.
    seeds = [{"goodput": goodput} for goodput in (10.15, 10.2, 10.25)]
    grid, alone = by_hand(cells, seeds, seeds)
    claim = Claim("goodput", at_most=10.0, source="x")
    result = claim_results.judge(claim, grid, "bottleneck.down.qdisc", "codel", PFIFO, alone)
    assert result.findings[0].number.low == pytest.approx(10.2 - 4.303 * 0.05 / math.sqrt(3))
    assert result.verdict == "unclear"


@pytest.mark.parametrize(("lost", "verdict"), [(1.5, "holds"), (1.6, "fails")])
def test_a_threshold_of_the_baseline_is_widened_by_a_negligible_difference(
    cells, lost: float, verdict: str
) -> None:
    # 0.5 % of the pings, which is more than 2 % of the baseline's 1 %.
    grid, alone = by_hand(cells, [{"lost": lost}] * 3, [{"lost": 1.0}] * 3)
    claim = Claim("ping_loss", at_most=1.0, times_baseline=True, source="x")
    result = claim_results.judge(claim, grid, "bottleneck.down.qdisc", "codel", PFIFO, alone)
    assert result.verdict == verdict


def test_a_seed_in_which_the_legacy_flow_gains_does_not_offset_harm_in_others(cells) -> None:
    # 10 Mbit/s alone: 12 is no loss, 8 is a loss of 20 %. The mean loss is 10 %, not 0.
    seeds = [{"legacy": 12.0}, {"legacy": 8.0}]
    grid, alone = by_hand(cells, seeds, seeds)
    claim = Claim("own_goodput:legacy", harm=True, source="x")
    at = "bottleneck.down.qdisc"
    result = claim_results.judge(claim, grid, at, "codel", PFIFO, alone).findings[0]
    assert (result.number.value, result.reference) == pytest.approx((10, 10))
    assert result.strain == pytest.approx(1)


def test_the_distance_to_a_range_is_that_to_its_nearer_end(cells) -> None:
    # 9 within 5 to 10: 5 / 9 of the lower end, 9 / 10 of the upper end.
    seeds = [{"goodput": 9.0}] * 3
    grid, alone = by_hand(cells, seeds, seeds)
    claim = Claim("goodput", between=(5.0, 10.0), source="x")
    result = claim_results.judge(claim, grid, "bottleneck.down.qdisc", "codel", PFIFO, alone)
    assert result.verdict == "holds"
    assert result.findings[0].strain == pytest.approx(0.9)


def test_the_cell_nearest_to_the_threshold_decides() -> None:
    def at(rate: int, verdict: claim_results.Standing, strain: float) -> claim_results.Finding:
        number = Interval(strain, strain, strain)
        return claim_results.Finding(
            {"rate": rate}, "x", number, "", strain, math.nan, verdict, strain
        )

    cells = (at(1, "holds", 0.5), at(2, "holds", 0.9), at(3, "holds", math.nan))
    claim = Claim("goodput", at_most=1.0, source="x")
    assert claim_results.ClaimResult(claim, "x", cells).decisive is cells[1]
    # A cell that fails decides, whatever the strain of those that hold.
    fails = at(4, "fails", 1.1)
    combined = claim_results.ClaimResult(claim, "x", (*cells, fails))
    assert (combined.verdict, combined.decisive) == ("fails", fails)


@pytest.mark.parametrize(
    "claim",
    [
        Claim("goodput", at_least=0.9, times_baseline=True, source="x"),
        Claim("goodput", at_least=1.0, source="x"),
        Claim("goodput", between=(1.0, 10.0), source="x"),
    ],
    ids=["of the baseline", "at least", "between"],
)
def test_a_candidate_that_carries_nothing_fails(cells, claim: Claim) -> None:
    grid, alone = by_hand(cells, [{"goodput": 0.0}] * 3, [{"goodput": 9.0}] * 3)
    result = claim_results.judge(claim, grid, "bottleneck.down.qdisc", "codel", PFIFO, alone)
    assert result.verdict == "fails"
    assert result.findings[0].strain == math.inf


def test_the_ellipse_is_one_standard_deviation_along_its_axes() -> None:
    # Four points at (3, 2) -+ 2 along a line of 45 degrees and -+ 1 across: variances 2 and 0.5.
    along, across = np.array([1, 1]) / math.sqrt(2), np.array([1, -1]) / math.sqrt(2)
    middle = np.array([3.0, 2.0])
    points = np.array([middle + 2 * along, middle - 2 * along, middle + across, middle - across])
    ellipse = ellipses.contour(points).T - middle
    assert np.abs(ellipse @ along).max() == pytest.approx(math.sqrt(2), rel=1e-6)
    assert np.abs(ellipse @ across).max() == pytest.approx(math.sqrt(0.5), rel=1e-6)


def test_a_cell_whose_runs_failed_is_empty_and_the_others_keep_their_rows(tmp_path: Path) -> None:
    claims = '{ of = "sojourn_p95", at_most = 0.5, times_baseline = true, source = "mine" }'
    mine = own(tmp_path / "own", claims)
    swept = SCENARIO + '\n[sweep]\n"flow.new.rtt" = ["30 ms", "90 ms"]\n'
    (mine / "both.toml").write_text(swept.replace('duration = "8 s"', 'duration = "4 s"'))
    evaluation = evaluate.evaluate(suite.read(mine), (), evaluate.How(2), lambda _: None)
    (one,) = evaluation.assessments
    ((held, codel),) = one.results
    assert [each["flow.new.rtt"] for each in one.conditions] == ["30 ms", "90 ms"]
    late = dataclasses.replace(codel, findings=codel.findings[1:])
    lacking = dataclasses.replace(one, results=((held, late),))
    page = matrix.render(dataclasses.replace(evaluation, assessments=(lacking,)))
    rows = re.findall(r'<th scope="row">rtt (\d+ ms).*?</tr>', page, re.DOTALL)
    fields = re.findall(r'<th scope="row">rtt \d+ ms.*?(<td.*?)\s*</tr>', page, re.DOTALL)
    assert rows == ["30 ms", "90 ms"]
    assert fields[0].endswith('<td class="unknown" data-name="codel">–</td>')
    assert 'class="unknown"' not in fields[1]


# -------------------------------------------------------------------------------------- the command

CLAIMS = """
{ of = "sojourn_p95", at_most = 0.5, times_baseline = true, source = "mine" },
{ of = "own_goodput:legacy", harm = true, source = "mine" },
{ of = "drop_rate" },
"""


def status(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    return int(caught.value.code or 0)


def test_the_matrix_the_page_and_the_json_say_the_same(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = own(tmp_path / "own", CLAIMS, "congestion")
    command = ["evaluate", "--suite", str(mine), "--seeds", "3", "-q"]
    assert status([*command, "-o", "out"]) == 0
    stdout = capsys.readouterr().out
    assert status([*command, "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output["candidates"] == ["cubic", "reno"]
    assert output["missing"][0]["needs"] == "time"
    assert output["left_out"] == []
    signs = {"holds": "✓", "fails": "✗", "unclear": "?", "reported": "·", "unknown": "–"}
    page = (tmp_path / "out" / "report.html").read_text()
    for at, name in enumerate(output["candidates"]):
        verdicts = [claim["candidates"][at]["verdict"] for claim in output["criteria"][0]["claims"]]
        assert re.search(
            rf"^{name} +{' +'.join(map(re.escape, map(signs.get, verdicts)))}$", stdout, re.M
        )
    for claim in output["criteria"][0]["claims"]:
        for name, one in zip(output["candidates"], claim["candidates"], strict=True):
            assert f'<td class="{one["verdict"]}" data-name="{name}">' in page
    assert "my own wish" in page
    assert "not run: 2 Another: needs time" in stdout
    assert f"sojourn evaluate --suite {mine} --only both" in page
    # The Runs are stored, each with a page that the matrix links to.
    assert 'href="both/report.html"' in page
    assert (tmp_path / "out" / "both" / "report.html").exists()
    assert (tmp_path / "out" / "both" / "alone").is_dir()
    if HAS_BROWSER:
        browser = request.getfixturevalue("browser")
        file, phone = tmp_path / "out" / "report.html", {"width": 400, "height": 800}
        # A suite whose path is wider than a phone.
        longer = (
            "all => all.forEach(code => { code.textContent += '/a_suite_in_a_folder'.repeat(3); })"
        )
        for scheme in ("light", "dark"):
            shown = Opened(browser, file, viewport=phone, color_scheme=scheme)
            shown.page.locator("code").evaluate_all(longer)
            assert shown.too_wide() <= 0
            assert shown.faint() == []
            shown.close()


def test_ctrl_c_keeps_each_criterion_that_had_ended_with_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = own(tmp_path / "own", CLAIMS, "congestion")
    text = (mine / "suite.toml").read_text()
    begin, end = text.index("[[criteria]]"), text.index("[[missing]]")
    again = text[begin:end].replace('name = "both"', 'name = "again"')
    (mine / "suite.toml").write_text(text[:end] + again + text[end:])
    write_runs = matrix.write_runs

    def in_the_second_page(one: evaluate.Assessment, folder: Path) -> Path:
        if one.criterion.name == "again":
            raise KeyboardInterrupt
        return write_runs(one, folder)

    monkeypatch.setattr(matrix, "write_runs", in_the_second_page)
    assert status(["evaluate", "--suite", str(mine), "--seeds", "2", "-o", "out"]) == 130
    stderr = capsys.readouterr().err.split("\n")
    assert [line for line in stderr if line][-2:] == ["complete: both", "interrupted"]
    assert (tmp_path / "out" / "both" / "report.html").exists()
    assert (tmp_path / "out" / "again").is_dir()
    assert not (tmp_path / "out" / "report.html").exists()


def test_criteria_that_an_engine_can_not_run_are_listed_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from sojourn.engine import registry

    class Poor:
        """The simulator without tunnels."""

        def __init__(self) -> None:
            self.ours = registry.find("sim")

        def __getattr__(self, name: str) -> object:
            return getattr(self.ours, name)

        def check(self, realised: Realised) -> None:
            if any(flow.tunnel is not None for flow in realised.flows):
                raise UserError("no tunnels here", "dig")
            self.ours.check(realised)

    monkeypatch.setattr("sojourn.engine.runs.find", lambda _: Poor())
    monkeypatch.chdir(tmp_path)
    command = ["evaluate", "reno", "--only", "6.2", "--seeds", "2", "-q"]
    assert status([*command, "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in output["criteria"]] == ["marks-lost"]
    assert [one["needs"] for one in output["missing"]] == [
        "another engine than sim: no tunnels here"
    ]
    assert status(["evaluate", "reno", "--only", "tunnel", "--json"]) == 2
    assert "no tunnels here" in capsys.readouterr().err


def test_doubtful_words_of_a_candidate_are_noted_before_it_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise UserError("far enough", "")

    monkeypatch.setattr("sojourn.evaluation.evaluate.evaluate", refused)
    assert status(["evaluate", "cake bandwidth 20Mbps", "--json"]) == 2
    stderr = capsys.readouterr().err
    assert "note: cake bandwidth 20Mbps: bandwidth 20Mbps is 160 Mbit/s" in stderr
    assert "hint: write bandwidth 20mbit" in stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["codel", "cubic"], "criteria of their own"),
        (["nothing"], "neither a queue discipline nor a congestion control"),
        (["--suite", "rfc1"], "is not a suite"),
        (["--suite", "rfc9743", "codel"], "name the suite that fits"),
        (["--only", "99"], "no criterion '99'"),
        (["codel target x"], "target"),
        (["bic", "--only", "fairness"], "bic"),
    ],
)
def test_wrong_input_is_reported_before_anything_is_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert status(["evaluate", *arguments]) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_candidate_of_the_suite_that_an_engine_lacks_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = own(tmp_path / "own", CLAIMS, "congestion", other='reno", "illinois')
    command = ["evaluate", "--suite", str(mine), "--seeds", "2", "-q"]
    assert status([*command, "-o", "out"]) == 0
    assert "not evaluated: illinois: only Linux has it" in capsys.readouterr().out
    assert "only Linux has it" in (tmp_path / "out" / "report.html").read_text()
    assert status([*command, "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert output["candidates"] == ["cubic", "reno"]
    assert output["left_out"] == [{"candidate": "illinois", "why": "only Linux has it"}]
    # The candidate is refused if the user names it.
    assert status([*command, "illinois"]) == 2
