"""Verdicts from a published number and ours, and running, showing and stopping papers, with a
made-up paper."""

import json
import math
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from matplotlib.text import Text

import sojourn_papers as papers
from sojourn import _core
from sojourn.cli import status
from sojourn.engine import Progress, runs
from sojourn.engine.protocol import Outcome
from sojourn.engine.sim import Simulator
from sojourn.errors import UserError
from sojourn.records import RunError
from sojourn.scenario.realised import Realised
from sojourn_papers import page, readings, story, verdict
from sojourn_papers.cli.reproduce import _table as reproduce_table
from sojourn_papers.evidence import Estimate, Evidence, Seed
from sojourn_papers.paper import (
    Bar,
    Claim,
    Finding,
    Number,
    Paper,
    Picture,
    Reading,
    Role,
    Threshold,
    Tolerance,
)
from sojourn_papers.reproduction import ReproductionUnfinishedError, Stopped, reproduce
from sojourn_papers.study import Study, Variant
from sojourn_papers.verdict import Verdict

SCENARIO = """
title = "A download and a ping"
duration = "3 s"
warmup = "1 s"
[bottleneck]
rate = "5 Mbit/s"
delay = "5 ms"
[[flow]]
kind = "bulk"
rtt = "30 ms"
start = "uniform 0 s .. 200 ms"
[[flow]]
kind = "ping"
"""


SHORT, LONG = Variant("queues", "short"), Variant("queues", "long")


def nothing(_: Seed) -> float:
    return math.nan


def number(id_: str = "n", published: float | None = 10.0, **more: object) -> Number:
    plain = Number(
        id_,
        "section 1",
        "a delay",
        "ms",
        published,
        Variant("study", ""),
        nothing,
        Tolerance(0.1, "read off a plot"),
    )
    return replace(plain, **more)  # type: ignore[arg-type]


def ours(*values: float) -> Estimate:
    known = [value for value in values if not math.isnan(value)]
    return Estimate(sum(known) / len(known) if known else math.nan, math.nan, values)


# --------------------------------------------------------------------------------------- verdicts


def test_within_its_tolerance_a_number_is_reproduced() -> None:
    assert verdict.judge(number(), ours(11.0), []) is Verdict.REPRODUCED
    assert verdict.judge(number(), ours(11.01), []) is Verdict.NOT_REPRODUCED


def test_a_tolerance_may_be_in_the_number_s_own_unit() -> None:
    near = number(tolerance=Tolerance(0.5, "half a point", relative=False))
    assert verdict.judge(near, ours(10.5), []) is Verdict.REPRODUCED
    assert verdict.judge(near, ours(10.6), []) is Verdict.NOT_REPRODUCED


def test_uncertainty_does_not_widen_the_tolerance() -> None:
    assert verdict.judge(number(), Estimate(12.0, 100.0, (2.0, 22.0)), []) is Verdict.NOT_REPRODUCED


@pytest.mark.parametrize(
    ("relation", "value", "held"), [("<", 9.9, True), ("<", 10.0, False), (">", 10.1, True)]
)
def test_a_bound_is_a_side(relation: str, value: float, held: bool) -> None:
    bound = number(relation=relation, tolerance=None)
    assert (verdict.judge(bound, ours(value), []) is Verdict.REPRODUCED) == held


def test_a_value_only_in_a_lost_picture_is_not_judged() -> None:
    assert verdict.judge(number(published=None), ours(3.0), []) is Verdict.NOT_STATED


def test_a_number_that_can_not_be_measured_is_not_reproduced() -> None:
    assert (
        verdict.judge(number(), ours(math.nan), [(number(published=5.0), ours(1.0))])
        is Verdict.NOT_REPRODUCED
    )


def test_the_direction_holds_if_it_holds_in_every_seed() -> None:
    below = number("other", published=5.0)
    assert (
        verdict.judge(number(), ours(20.0, 21.0, 22.0), [(below, ours(12.0, 13.0, 14.0))])
        is Verdict.DIRECTION
    )
    # The published 10 is above the published 5, but our two numbers can't be told apart: their
    # differences are 8, -7, 1.
    mixed = [(below, ours(12.0, 28.0, 21.0))]
    assert verdict.judge(number(), ours(20.0, 21.0, 22.0), mixed) is Verdict.NOT_REPRODUCED


def test_equal_numbers_keep_their_direction_only_if_ours_are_near() -> None:
    equal = number("other")
    assert (
        verdict.judge(number(), ours(20.0, 20.0), [(equal, ours(21.0, 21.0))]) is Verdict.DIRECTION
    )
    assert (
        verdict.judge(number(), ours(20.0, 20.0), [(equal, ours(30.0, 30.0))])
        is Verdict.NOT_REPRODUCED
    )


def test_a_difference_to_zero_is_in_the_number_s_unit() -> None:
    zero = verdict.Row(number(published=0.0), ours(0.25), Verdict.NOT_REPRODUCED, "")
    assert page.difference(zero) == "+0.25 ms"


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=8), st.floats(-1e6, 1e6))
def test_a_shift_of_every_seed_is_seen_exactly(values: list[float], shift: float) -> None:
    low, high = verdict.difference(ours(*(v + shift for v in values)), ours(*values))
    assert low - 1e-6 <= shift <= high + 1e-6
    assert high - low < 1e-3


def test_one_seed_tells_no_direction() -> None:
    below = number("other", published=5.0)
    assert verdict.judge(number(), ours(20.0), [(below, ours(12.0))]) is Verdict.NOT_REPRODUCED
    partly = ours(20.0, math.nan)
    assert partly.seeds == 1
    assert verdict.judge(number(), partly, [(below, ours(12.0, 13.0))]) is Verdict.NOT_REPRODUCED


def claim(asks: dict[str, Threshold], partly: dict[str, Threshold] | None = None) -> Claim:
    def check(_: Evidence) -> Finding:
        return Finding({"one": 5.0, "other": 1.0})

    return Claim("c", "section 1", "so it is", check, asks, partly or {})


NO_RUNS = Evidence(quick=False, runs={})


def test_a_claim_s_verdict_follows_from_what_was_measured_and_its_thresholds() -> None:
    for asks, partly, wanted in (
        ({"one": above(4), "other": above(0)}, {}, Verdict.REPRODUCED),
        ({"one": above(6)}, {}, Verdict.NOT_REPRODUCED),
        ({"one": above(6)}, {"one": above(4)}, Verdict.DIRECTION),
        ({"one": above(6)}, {"one": above(4), "other": above(1)}, Verdict.NOT_REPRODUCED),
    ):
        row = verdict.checked(claim(asks, partly), NO_RUNS)
        assert row.verdict is wanted
        # All deciding quantities are printed, with their thresholds.
        assert all(f"{what}: " in row.found for what in asks)
        assert all(f"asked {one.words}" in row.found for one in asks.values())


def test_a_claim_whose_runs_are_missing_is_not_run_here() -> None:
    missing = verdict.checked(claim({"one": above(4), "third": above(0)}), NO_RUNS)
    assert missing.verdict is Verdict.NOT_RUN
    assert "third: not run here" in missing.found

    def needs_a_run(evidence: Evidence) -> Finding:
        return Finding({"one": evidence.mean(SHORT, nothing)})

    asked = replace(claim({"one": above(4)}), check=needs_a_run)
    assert verdict.checked(asked, NO_RUNS).verdict is Verdict.NOT_RUN


def test_a_difference_of_zero_as_printed_has_no_direction() -> None:
    below = number("other", published=9.0)
    near = [(below, ours(20.0, 21.0, 22.0))]
    assert verdict.judge(number(), ours(20.001, 21.001, 22.001), near) is Verdict.NOT_REPRODUCED
    assert verdict.judge(number(), ours(21.0, 22.0, 23.0), near) is Verdict.DIRECTION


# -------------------------------------------------------------------------------- a made-up paper


def ping_mean(seed: Seed) -> float:
    return float(seed.probe()["rtt_ms"]["mean"])


def drawing(_: Evidence) -> Figure:
    return Figure(figsize=(2, 1))


def shorter(evidence: Evidence) -> Finding:
    long, short = (evidence.mean(Variant("queues", name), ping_mean) for name in ("long", "short"))
    return Finding({"shorter, ms": long - short}, f"{short:.1f} ms against {long:.1f} ms")


def wrong(_: Evidence) -> Finding:
    return Finding({"curvature, 1/km": 0.00016})


def above(bound: float) -> Threshold:
    return Threshold(f"> {bound:g}", lambda ours: ours > bound)


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    folder = tmp_path / "paper"
    folder.mkdir()
    (folder / "queues.toml").write_text(SCENARIO)
    return Paper(
        id="adt",
        title="Queues <of> two lengths",
        source="Nobody 2026",
        about="A queue of 5 packets and one of 200.",
        folder=folder,
        studies=(
            Study(
                "queues",
                "two lengths",
                "queues.toml",
                {
                    "long": {"bottleneck.qdisc": "pfifo limit 200"},
                    "short": {"bottleneck.qdisc": "pfifo limit 5"},
                },
                seeds=2,
                quick={"duration": "2 s"},
                quick_variants=("short",),
                quick_seeds=1,
            ),
        ),
        numbers=(
            # 5 packets of 1500 B at 5 Mbit/s take 12 ms at most, the base RTT is 10 ms.
            Number(
                "short",
                "table 1",
                "ping, short",
                "ms",
                24.0,
                SHORT,
                ping_mean,
                role=Role.PREDICTED,
                relation="<",
            ),
            Number("long", "table 1", "ping, long", "ms", None, LONG, ping_mean),
        ),
        claims=(
            Claim(
                "shorter",
                "section 1",
                "a shorter queue waits less",
                shorter,
                {"shorter, ms": above(0)},
                pictures=("nothing",),
                must_hold=True,
            ),
        ),
        readings=(
            Reading(
                "rate",
                "not stated",
                "5 Mbit/s",
                "because",
                "nothing else was run",
            ),
        ),
        pictures=(
            Picture("nothing", "Nothing & all", "There is nothing to see.", drawing, "Figure 1"),
        ),
        story=lambda e: [Bar("long", e.mean(LONG, ping_mean), "bloated")],
    )


def test_a_paper_is_run_and_judged(paper: Paper, tmp_path: Path) -> None:
    [found] = reproduce([paper], out=tmp_path / "out")
    assert [row.verdict for row in found.rows] == [Verdict.REPRODUCED, Verdict.NOT_STATED]
    assert found.claims[0].verdict is Verdict.REPRODUCED
    assert not found.broken
    assert found.evidence.run(LONG).seeds == (1, 2)
    assert (tmp_path / "out" / "adt" / "runs" / "queues" / "short" / "meta.json").is_file()


def test_the_quick_version_says_what_it_leaves_out(paper: Paper, tmp_path: Path) -> None:
    lenient = replace(paper, claims=())
    [found] = reproduce([lenient], quick=True, out=tmp_path / "out")
    assert [row.number.id for row in found.rows] == ["short"]
    assert found.left_out == 1
    assert found.evidence.run(SHORT).meta.duration_ns == 2 * 10**9
    assert found.to_dict()["quick"] is True


def test_a_claim_and_a_number_from_a_part_of_their_variants_say_of_how_many(
    paper: Paper, tmp_path: Path
) -> None:
    queues = {variant.name: variant for variant in (LONG, SHORT)}

    def longest(evidence: Evidence) -> Finding:
        return Finding({"longest, ms": max(evidence.means(queues, ping_mean).values())}, "Some")

    def of_both(evidence: Evidence) -> Estimate:
        assert evidence.variants(paper.studies[0])
        return evidence.estimate(SHORT, ping_mean)

    general = replace(
        paper,
        claims=(replace(paper.claims[0], check=longest, asks={"longest, ms": above(0)}),),
        numbers=(replace(paper.numbers[0], measure=None, whole=of_both),),
    )
    [whole] = reproduce([general], out=tmp_path / "whole")
    [part] = reproduce([general], quick=True, out=tmp_path / "part")
    of_whole, of_part = (
        (page.sentence([one]), page._paper(one, {}), reproduce_table(one)) for one in (whole, part)
    )
    assert not any("variants" in text for text in (of_whole[0], of_whole[2]))
    assert "of 2 variants" not in of_whole[1]
    assert "1 of 1 claims, 1 of 1 numbers" in of_part[0]
    assert "Some. Judged on 1 of 2 variants only" in of_part[1]
    assert "(computed from 1 of 2 variants only)" in of_part[1]
    assert "reproduced on 1 of 2 variants" in of_part[2]
    assert "Judged on 1 of 2 variants only" in of_part[2]
    for row in (*part.to_dict()["claims"], *part.to_dict()["numbers"]):
        assert (row["variants"], row["variants_left_out"]) == (1, 1)


def test_runs_can_be_judged_again_without_running(paper: Paper, tmp_path: Path) -> None:
    [first] = reproduce([paper], out=tmp_path / "out")
    [again] = reproduce([paper], out=tmp_path / "out", redraw=True)
    assert again.to_dict() == first.to_dict()
    with pytest.raises(UserError, match="lacks seeds, or was made"):
        reproduce([replace(paper, claims=())], quick=True, out=tmp_path / "out", redraw=True)


def test_runs_without_a_folder_are_gone_with_the_result(paper: Paper) -> None:
    found = reproduce([paper])
    place = found[0].evidence.run(LONG).path
    assert place.is_dir()
    found.clear()
    assert not place.exists()


def endless(paper: Paper) -> Paper:
    """The paper under another name, with Runs that only Ctrl-C ends."""
    [study] = paper.studies
    changes = {name: {**keys, "duration": "100000 s"} for name, keys in study.variants.items()}
    return replace(paper, id="endless", studies=(replace(study, variants=changes),))


def interrupt_after(runs: int) -> Callable[[Progress], None]:
    def progress(now: Progress) -> None:
        if now.finished >= runs:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize("kept", [True, False])
def test_ctrl_c_leaves_the_papers_that_had_finished(
    kept: bool, paper: Paper, tmp_path: Path
) -> None:
    out = tmp_path / "out" if kept else None
    with pytest.raises(Stopped) as stopped:
        reproduce([paper, endless(paper)], out=out, jobs=1, progress=interrupt_after(4))
    [found] = stopped.value.finished
    assert stopped.value.counts == {"adt": (4, 4), "endless": (0, 4)}
    place = found.evidence.run(LONG).path
    assert found.evidence.seeds(LONG)[0].table("queue").height > 0
    stopped.value.finished = ()
    del found
    assert place.exists() == kept


def test_a_page_is_written_as_its_paper_ends_and_the_same_call_continues(
    paper: Paper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    longer = endless(paper)
    out, both = tmp_path / "out", [paper, longer]
    pages = page.Pages(out, both)
    with pytest.raises(Stopped):
        reproduce(both, out=out, jobs=1, progress=interrupt_after(4), finished=pages.add)
    assert (out / "adt" / "index.html").is_file()
    assert not (out / "endless" / "index.html").exists()
    assert "endless" not in (out / "index.html").read_text()

    ran: list[int] = []
    with monkeypatch.context() as patch:
        patch.setattr(_core, "run", lambda realised, _: ran.append(realised.seed))
        pages = page.Pages(out, [paper])
        [found] = reproduce([paper], out=out, finished=pages.add)
    assert not ran, "its Runs are there"
    assert found in pages
    shutil.rmtree(out / "adt" / "runs" / "queues" / "short")
    calls: list[Progress] = []
    [again] = reproduce([paper], out=out, progress=calls.append)
    assert (calls[0].there, calls[0].runs) == (2, 2)
    assert again.to_dict() == found.to_dict()


def test_ctrl_c_before_any_paper_has_finished_leaves_no_folder(
    paper: Paper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    with pytest.raises(Stopped) as stopped:
        reproduce([endless(paper)], progress=interrupt_after(0))
    assert stopped.value.finished == ()
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_run_that_fails_costs_its_paper_only(
    paper: Paper,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    [study] = paper.studies
    # One of its runs has another length, which identifies it below.
    changes = {**study.variants, "long": {**study.variants["long"], "duration": "5 s"}}
    other = replace(paper, id="other", studies=(replace(study, variants=changes),))
    sound = _core.run

    def fails(realised: Realised, reached: Callable[[int], bool] | None) -> object:
        if (realised.duration_ns, realised.seed) == (5 * 10**9, 2):
            raise RunError("it gave up", "have it rest")
        return sound(realised, reached)

    monkeypatch.setattr(_core, "run", fails)
    with pytest.raises(ReproductionUnfinishedError) as stopped:
        reproduce([paper, other], out=tmp_path / "out")
    assert [found.paper.id for found in stopped.value.finished] == ["adt"]
    assert stopped.value.left_out == ("other",)
    assert [failure.seed for failure in stopped.value.failed] == [2]

    monkeypatch.setattr(papers, "NAMES", ("adt", "other"))
    monkeypatch.setattr(papers, "load", {"adt": paper, "other": other}.__getitem__)
    assert status(["reproduce", "--json", "-q"]) == 1
    said = capsys.readouterr()
    whole = json.loads(said.out)
    assert [one["paper"] for one in whole["papers"]] == ["adt"]
    assert whole["failed"] == [
        {"run": "long", "seed": 2, "error": "it gave up", "hint": "have it rest"}
    ]
    assert "not judged, because some of their runs failed: other" in said.err


def test_an_unexplained_number_is_shown_as_unexplained(paper: Paper, tmp_path: Path) -> None:
    off = replace(paper.numbers[0], published=1.0)
    [found] = reproduce([replace(paper, numbers=(off,))], out=tmp_path / "out")
    assert found.rows[0].reason == verdict.NO_REASON


def test_the_page_shows_every_number_claim_and_picture(paper: Paper, tmp_path: Path) -> None:
    found = reproduce([paper], out=tmp_path / "out")
    overview = page.write(found, tmp_path / "out").read_text()
    text = (tmp_path / "out" / "adt" / "index.html").read_text()
    assert "Queues &lt;of&gt; two lengths" in text
    assert "not stated in the text" in text
    assert 'id="claim-shorter"' in text
    assert '<a href="#picture-nothing">Figure 1</a>' in text
    assert 'id="picture-nothing"' in text
    assert "nothing else was run" in text
    assert 'href="./adt/index.html#picture-nothing"' in overview
    # Nothing is fetched: the only addresses are names of XML's vocabularies.
    assert set(re.findall(r"https?://[^/\"]+", text)) <= {"http://www.w3.org"}
    assert json.loads((tmp_path / "out" / "adt" / "rows.json").read_text())["paper"] == "adt"
    assert (tmp_path / "out" / "adt" / "figures" / "nothing.svg").is_file()


# ------------------------------------------------------------------------------- the command line


@pytest.fixture
def one(paper: Paper, monkeypatch: pytest.MonkeyPatch) -> Callable[[Paper], None]:
    """Makes a paper the only one."""

    def put(other: Paper) -> None:
        monkeypatch.setattr(papers, "load", lambda _: other)

    monkeypatch.setattr(papers, "NAMES", ("adt",))
    put(paper)
    return put


def test_reproduce_prints_a_table_and_writes_pages(
    one: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["reproduce", "-o", str(tmp_path / "out"), "-q"]) == 0
    out = capsys.readouterr().out
    assert "ping, short [ms]" in out
    assert "< 24" in out
    assert (tmp_path / "out" / "index.html").is_file()


def test_json_is_one_object_and_keeps_nothing(
    one: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert status(["reproduce", "--json", "-q"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert [row["id"] for row in whole["papers"][0]["numbers"]] == ["short", "long"]
    assert sorted(tmp_path.iterdir()) == before


def test_a_claim_that_must_hold_and_does_not_ends_with_1(
    one: Callable[[Paper], None], paper: Paper, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = replace(
        paper,
        claims=(
            Claim(
                "c",
                "section 1",
                "the earth is flat",
                wrong,
                {"curvature, 1/km": Threshold("= 0", lambda ours: ours == 0)},
                must_hold=True,
            ),
        ),
    )
    one(broken)
    assert status(["reproduce", "-o", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    # The measured value is shown beside its threshold.
    assert "this claim must hold but does not: the earth is flat (curvature, 1/km: 0.00016" in said
    assert "(asked = 0)" in said


class DoubtsTheLongQueue(Simulator):
    """A simulator that does not trust its second seed of the longer queue."""

    def tables(self, realised: Realised, reached: Callable[[int], bool]) -> Outcome:
        found = super().tables(realised, reached)
        doubtful = realised.links[0].qdisc.params["limit"] == 200 and realised.seed == 2
        return replace(found, invalid=("a <clock> was wrong",)) if doubtful else found


def test_an_invalid_run_is_reported_everywhere_and_ends_with_1(
    one: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runs, "find", lambda _: DoubtsTheLongQueue())
    out = str(tmp_path / "out")
    for again in ([], ["--redraw"]):
        assert status(["reproduce", "-o", out, "-q", *again]) == 1
        said = capsys.readouterr()
        # It is above the numbers, and again on stderr, where logs are read.
        for words in (said.out, said.err):
            assert words.startswith("INVALID: the numbers of ")
            assert words.count("INVALID") == 1
            assert "long must not be used\n  seed 2: a <clock> was wrong\n" in words
        assert "must hold but does not" not in said.err
        assert "ping, long [ms]" in said.out
        for name in ("index.html", "adt/index.html"):
            text = (tmp_path / "out" / name).read_text()
            assert text.count("seed 2: a &lt;clock&gt; was wrong") == 1
            assert text.index("verdicts on them mean nothing") < text.index("<h2")
        rows = json.loads((tmp_path / "out" / "adt" / "rows.json").read_text())
        assert [why.partition("seed")[2] for why in rows["invalid"]] == [" 2: a <clock> was wrong"]
    assert status(["reproduce", "--json", "-q"]) == 1
    assert len(json.loads(capsys.readouterr().out)["papers"][0]["invalid"]) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["reproduce", "atd"], "did you mean adt?"),
        (["reproduce", "--redraw"], "needs -o"),
        (["reproduce", "-j", "0"], "range"),
        (["reproduce", "--redraw", "-o", "none"], "none"),
    ],
)
def test_wrong_input_is_reported_and_ends_with_2(
    arguments: list[str],
    said: str,
    one: object,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert status(arguments) == 2
    assert said in capsys.readouterr().err


def test_runs_in_the_folder_are_not_overwritten_unasked(
    one: Callable[[Paper], None],
    paper: Paper,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = str(tmp_path / "out")
    assert status(["reproduce", "-o", out, "-q"]) == 0
    metas = sorted((tmp_path / "out").rglob("meta.json"))
    before = [file.stat().st_mtime_ns for file in metas]
    assert status(["reproduce", "-o", out, "-q"]) == 0, "these are the Runs that it asks for"
    assert [file.stat().st_mtime_ns for file in metas] == before
    [study] = paper.studies
    one(replace(paper, studies=(replace(study, seeds=3),)))
    assert status(["reproduce", "-o", out, "-q"]) == 2
    assert "--force" in capsys.readouterr().err
    assert [file.stat().st_mtime_ns for file in metas] == before
    assert status(["reproduce", "-o", out, "-q", "--force"]) == 0


def test_ctrl_c_reports_what_is_kept_of_each_paper(
    one: Callable[[Paper], None],
    paper: Paper,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise Stopped((), {"adt": (3, 4), "endless": (0, 4)})

    monkeypatch.setattr(papers, "reproduce", interrupted)
    assert status(["reproduce", "-o", str(tmp_path / "out")]) == 130
    said = capsys.readouterr().err
    assert "interrupted: 3 of 8 runs had finished" in said
    assert f"adt: 3 of 4; kept in {tmp_path / 'out' / 'adt' / 'runs'}" in said
    assert "endless: 0 of 4; nothing kept" in said


@pytest.mark.parametrize(
    ("finished", "said"),
    [
        (4, "the Runs are kept; to continue: sojourn reproduce --redraw -o"),
        (0, "nothing had run yet"),
    ],
)
def test_ctrl_c_outside_of_the_runs_reports_whether_any_are_kept(
    finished: int,
    said: str,
    one: object,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(*_: object, progress: Callable[[Progress], None], **__: object) -> None:
        progress(Progress(finished, 4, finished / 4))
        raise KeyboardInterrupt

    monkeypatch.setattr(papers, "reproduce", interrupted)
    assert status(["reproduce", "-o", str(tmp_path / "out")]) == 130
    assert f"interrupted: {said}" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["index.html", "adt/index.html"])
def test_somebody_else_s_page_is_not_overwritten(
    name: str, one: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = tmp_path / "out" / name
    theirs.parent.mkdir(parents=True)
    theirs.write_text("<!doctype html>mine")
    assert status(["reproduce", "-o", str(tmp_path / "out"), "--force"]) == 2
    assert "is not a page of sojourn" in capsys.readouterr().err
    assert theirs.read_text() == "<!doctype html>mine"
    assert not (tmp_path / "out" / "adt" / "runs").exists()


# ------------------------------------------------------------------------------------ every paper


@pytest.mark.parametrize("name", papers.NAMES)
def test_every_paper_is_complete(name: str) -> None:
    paper = papers.load(name)
    assert paper.id == name
    assert paper.about
    assert paper.numbers
    assert paper.claims
    assert paper.readings
    assert paper.pictures
    assert any(claim.must_hold for claim in paper.claims)
    judged = {each.variant.study for each in paper.numbers if each.published is not None}
    assert all(study.seeds >= 5 for study in paper.studies if study.id in judged)
    for each in paper.numbers:
        assert each.tolerance is None or each.tolerance.because.strip()


@pytest.mark.parametrize("name", papers.NAMES)
@pytest.mark.parametrize("quick", [False, True])
def test_every_scenario_of_a_paper_is_valid(name: str, quick: bool) -> None:
    paper = papers.load(name)
    for study in paper.studies:
        for variant, scenario in study.scenarios(paper.folder, quick).items():
            assert scenario.label == variant.name


def test_unknown_papers_are_refused() -> None:
    with pytest.raises(KeyError, match="there are home-upload"):
        papers.load("nothing")


def test_the_sentence_counts_predictions_and_sets_the_others_beside_them(
    paper: Paper, tmp_path: Path
) -> None:
    missed = replace(paper.numbers[0], id="missed", published=1.0)
    others = [
        replace(paper.numbers[0], id=str(role), role=role, role_because=f"made {role}")
        for role in (Role.INPUT, Role.FITTED)
    ]
    fitted_badly = replace(others[1], id="badly", published=1.0)
    both = replace(paper, numbers=(*paper.numbers, missed, *others, fitted_badly))
    found = reproduce([both], out=tmp_path / "out")
    said = page.sentence(found)
    assert said.startswith("Predicted numbers: 1 of 2 reproduced, 0 in direction, 1 not. ")
    assert (
        "prove nothing. Reproduced among them: input numbers 1 of 1, fitted numbers 1 of 2." in said
    )
    overview = page.write(found, tmp_path / "out").read_text()
    row = overview[overview.index('href="adt/index.html"') :]
    cells = re.findall(r'<td class="number"[^>]*>([^<]*)</td>', row)[:8]
    assert cells == ["1 of 1", "1", "-", "1", "1 of 1", "1 of 2", "-", "1"]
    text = (tmp_path / "out" / "adt" / "index.html").read_text()
    assert text.count("made input") == 1
    assert '<span class="role">input</span>' in text


def test_a_published_value_without_a_role_is_refused(paper: Paper) -> None:
    with pytest.raises(AssertionError, match="a published value has a role"):
        replace(paper, numbers=(replace(paper.numbers[0], role=None),))


@pytest.mark.parametrize("name", papers.NAMES)
def test_a_number_that_a_searched_reading_fits_is_not_a_prediction(name: str) -> None:
    # A search of a parameter uses some published number or claim, so a paper with a search can't
    # have predictions only.
    paper = papers.load(name)
    searched = any(one.searched for one in paper.readings)
    assert searched == any(one.role is Role.FITTED for one in paper.numbers)
    assert any(one.role is Role.PREDICTED for one in (*paper.numbers, *paper.claims))


@pytest.mark.parametrize("name", papers.NAMES)
def test_a_search_s_readings_are_compared_with_the_chosen_one_on_its_seeds(name: str) -> None:
    paper = papers.load(name)
    only_searched = {study[one] for study in paper.search_studies for one in study.variants}
    found = [other for other, swap in paper.swaps.items() if only_searched & {*swap.values()}]
    assert (readings.ON_OTHER_SEEDS in found) == bool(found)


def test_a_heading_of_the_overviews_picture_is_not_cut(paper: Paper, tmp_path: Path) -> None:
    found = reproduce([paper], out=tmp_path / "out")
    longest = max(
        map(papers.load, papers.NAMES), key=lambda one: len(f"{one.id}: {one.story_axis}")
    )
    named = replace(paper, id=longest.id, story_axis=longest.story_axis)
    figure = story.draw([replace(found[0], paper=named)])
    figure.canvas.draw()
    cut = [
        text.get_text()
        for text in figure.findobj(Text)
        if text.get_window_extent().x0 < 0 and text.get_text()
    ]
    assert cut == []
    assert any(longest.story_axis in text.get_text() for text in figure.findobj(Text))
