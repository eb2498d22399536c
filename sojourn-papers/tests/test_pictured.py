"""Parts of a page except verdicts: the data of its figures, other readings, and working links."""

from __future__ import annotations

import csv
import hashlib
import importlib
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import numpy as np
import pytest
from matplotlib.figure import Figure

import sojourn_papers as papers
from sojourn import bundles
from sojourn.cli import status
from sojourn.errors import UserError
from sojourn.figures import style
from sojourn_papers import bibliography, drawn, frozen, page, published, readings, searched, tornado
from sojourn_papers.drawing import (
    Series,
    curve,
    grid_of_numbers,
    grouped,
    look,
    stated_level,
)
from sojourn_papers.evidence import Estimate, Evidence, Seed, estimated
from sojourn_papers.paper import (
    Claim,
    Finding,
    Grid,
    Number,
    Paper,
    Picture,
    Role,
    Threshold,
    Tolerance,
)
from sojourn_papers.published import PublishedError
from sojourn_papers.reproduction import reproduce
from sojourn_papers.study import Study, Variant
from sojourn_papers.verdict import Verdict

SCENARIO = """
title = "A queue and a ping"
duration = "1 s"
[bottleneck]
rate = "5 Mbit/s"
delay = "5 ms"
[[flow]]
kind = "ping"
"""
NEAR, FAR = Variant("line", "10 ms there and back"), Variant("line", "20 ms")


# ----------------------------------------------------------------------------------- figures' data


@style.drawn
def two_panels() -> Figure:
    """A curve with bars and published marks, a level; bars and a grid."""
    figure = Figure()
    left, right, grid = figure.subplots(1, 3)
    curve(
        left,
        "RED",
        {10: estimated((1.0, 3.0)), 20: estimated((5.0,))},
        look("red"),
        published={10: 2.5},
    )
    stated_level(left, 4, "wanted")
    left.set_ylabel("delay [ms]")
    right.bar([0, 1], [7.0, 8.0], yerr=[0.5, 0.25], label="loss")
    right.set_xticks([0, 1], ["few", "many"])
    right.set_ylabel("loss [%]")
    numbers = np.array([[1.234, 2.345]])
    grid_of_numbers(grid, numbers, lambda value: f"{value:.0f}", numbers)
    grid.set_xticks([0, 1], ["80", "4096"])
    grid.set_yticks([0], ["512"])
    grid.set_ylabel("ring")
    return figure


def test_the_data_of_a_figure_is_what_its_panels_show() -> None:
    rows = list(csv.reader(io.StringIO(drawn.as_csv(two_panels()))))
    assert rows[0] == list(drawn.HEAD)
    # Two seeds, 1 and 3: half of the 95 % interval is 12.7 times the standard error of 1.
    [low, high] = [float(end) for end in rows[1][4:]]
    assert (low, high) == pytest.approx((2 - 12.706, 2 + 12.706), abs=1e-3)
    assert rows[1][:4] == ["delay [ms]", "RED, ours", "10.0", "2.0"]
    assert rows[2] == ["delay [ms]", "RED, ours", "20.0", "5.0", "5.0", "5.0"]
    assert rows[3] == ["delay [ms]", "RED, published", "10.0", "2.5", "", ""]
    assert rows[4] == ["delay [ms]", "wanted", "", "4.0", "", ""]
    assert rows[5:7] == [
        ["loss [%]", "loss", "few", "7.0", "6.5", "7.5"],
        ["loss [%]", "loss", "many", "8.0", "7.75", "8.25"],
    ]
    # A grid has the numbers themselves, not rounded.
    assert rows[7:] == [
        ["ring", "512", "80", "1.234", "", ""],
        ["ring", "512", "4096", "2.345", "", ""],
    ]


def test_the_data_of_groups_have_their_names_and_each_discipline_its_published_values() -> None:
    figure = Figure()
    axes = figure.subplots()
    one, other = estimated((1.0, 3.0)), estimated((5.0,))
    series = [
        Series("RED", "red", [one, other], [2.5, None]),
        Series("CoDel", "blue", [other, None], [None, 4.0]),
    ]
    grouped(axes, ["few", "many"], series, lambda value: f"{value:.0f}")
    axes.set_ylabel("delay [ms]")
    axes.tick_params(labelbottom=False)
    rows = [row[1:4] for row in csv.reader(io.StringIO(drawn.as_csv(figure)))][1:]
    assert rows == [
        ["RED", "few", "2.0"],
        ["RED", "many", "5.0"],
        ["RED, published", "few", "2.5"],
        ["CoDel", "few", "5.0"],
        ["CoDel, published", "many", "4.0"],
    ]


def test_the_number_of_an_interval_that_leaves_its_panel_stays_in_the_figure() -> None:
    figure = Figure(figsize=(4, 3))
    axes = figure.subplots()
    wide, narrow = Estimate(34.0, 80.0, ()), Estimate(50.0, 2.0, ())
    series = [Series("LEDBAT", "red", [wide, narrow])]
    grouped(axes, ["long", "short"], series, lambda share: f"{share:.0f}")
    axes.set_ylim(0, 72)
    figure.draw_without_rendering()
    labels = {each.get_text(): each for each in axes.texts}
    whole = figure.bbox
    for label in (labels["34"], labels["50"]):
        box = label.get_window_extent()
        assert whole.y0 <= box.y0
        assert box.y1 <= whole.y1
    assert labels["50"].xy[1] == 52


# ------------------------------------------------------------------------------- a made-up paper


def rtt_ms(seed: Seed) -> float:
    return float(seed.probe()["rtt_ms"]["mean"])


def half_ms(seed: Seed) -> float:
    return rtt_ms(seed) / 2


def both(evidence: Evidence) -> Estimate:
    return evidence.compared(NEAR, NEAR, rtt_ms, lambda one, other: one + other)


def drawing(evidence: Evidence) -> Figure:
    figure = Figure(figsize=(2, 1))
    figure.subplots().plot([0], [evidence.mean(NEAR, rtt_ms)], label="ours")
    return figure


def found(_: Evidence) -> Finding:
    return Finding({"ping, ms": 10.0})


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    place = tmp_path / "paper"
    place.mkdir()
    (place / "line.toml").write_text(SCENARIO)
    near = Number(
        "the ping",
        "section 1",
        "ping RTT",
        "ms",
        10.0,
        NEAR,
        rtt_ms,
        Tolerance(0.2, "read off a plot"),
        Role.PREDICTED,
    )
    return Paper(
        id="adt",
        title="A line",
        source="Nobody 2026",
        about="A line of two lengths.",
        folder=place,
        studies=(
            Study(
                "line",
                "two lengths",
                "line.toml",
                {NEAR.name: {}, FAR.name: {"bottleneck.delay": "10 ms"}},
                seeds=2,
            ),
        ),
        numbers=(near, replace(near, id="twice", published=20.0, measure=None, whole=both)),
        claims=(
            Claim(
                "a line",
                "section 1",
                "the ping is short",
                found,
                {"ping, ms": Threshold("< 15", lambda ours: ours < 15)},
                pictures=("pings",),
            ),
        ),
        readings=(),
        pictures=(Picture("pings", "Pings", "One of them.", drawing, "Figure 1"),),
        story=lambda _: [],
        grids=(
            Grid("Table 1", ("RTT", "twice"), {"near": ("the ping", ""), "both": ("", "twice")}),
        ),
        swaps={"a longer line": {NEAR: FAR}, "a line that was not run": {NEAR: None}},
        stored={"searched": {"the ping": estimated((10.5, 11.5))}},
    )


def test_a_number_is_asked_for_under_each_reading_that_changes_it(
    paper: Paper, tmp_path: Path
) -> None:
    [one] = reproduce([paper], out=tmp_path / "out")
    matrix = readings.matrix(paper, one.evidence, one.rows)
    assert [number.id for number in matrix.numbers] == ["the ping", "twice"]
    assert set(matrix.others) == {"a longer line", "searched"}
    longer = matrix.others["a longer line"]
    # 5 or 10 ms each way, and 0.2 ms for 98 bytes or so at 5 Mbit/s.
    assert matrix.chosen["the ping"].ours == pytest.approx(10, abs=0.5)
    assert longer["the ping"].ours == pytest.approx(20, abs=0.5)
    assert longer["twice"].ours == pytest.approx(40, abs=1)
    assert (matrix.chosen["twice"].fits, longer["twice"].fits) == (True, False)
    # 11 is within a fifth of 10; a search has only its stored numbers.
    assert set(matrix.others["searched"]) == {"the ping"}
    assert matrix.others["searched"]["the ping"].fits
    # The ping fits as chosen, and 20 ms do not.
    assert matrix.fitting("a longer line") == (0, 2, 2)
    assert matrix.fitting("searched") == (1, 1, 1)
    assert (
        matrix.described("searched") == "searched: fits 1 of 1 number that it changes, 1 as chosen"
    )
    assert matrix.described("a line that was not run").startswith(
        "a line that was not run: not run here"
    )
    assert matrix.elsewhere(matrix.numbers[0]) == "Other readings fit it: searched (11.0)."
    assert matrix.elsewhere(matrix.numbers[1]).startswith("Of 1 other readings the nearest: a long")
    assert tornado.least_contradicted(matrix).startswith("No other reading fits more")
    worse = replace(matrix, chosen=longer)
    assert tornado.least_contradicted(worse).endswith(
        "were not chosen: searched (1 of 1, as chosen 0): no reason is given."
    )
    explained = replace(worse, refused={"searched": "It was made up."})
    assert tornado.least_contradicted(explained).endswith("as chosen 0): It was made up.")


def test_a_claim_is_listed_for_each_reading_that_changes_its_verdict(
    paper: Paper, tmp_path: Path
) -> None:
    def measured(evidence: Evidence) -> Finding:
        return Finding({"ping, ms": evidence.mean(NEAR, rtt_ms)})

    asked = replace(paper, claims=(replace(paper.claims[0], check=measured),))
    [one] = reproduce([asked], out=tmp_path / "out")
    matrix = readings.matrix(asked, one.evidence, one.rows, one.claims)
    # 20 ms are not below 15; a reading that was not run changes no claim.
    assert matrix.claims == {"a longer line": {"a line": Verdict.NOT_REPRODUCED}}
    assert "a line is not reproduced" in matrix.described("a longer line")
    assert "a line: not reproduced" in tornado.table(matrix)


def test_the_score_without_a_difference_between_disciplines_is_counted(
    paper: Paper, tmp_path: Path
) -> None:
    alike = replace(paper, no_difference={NEAR: FAR})
    [one] = reproduce([alike], out=tmp_path / "out")
    # Both numbers are of NEAR: 10 and 20 ms as chosen, 20 and 40 if NEAR were FAR.
    assert readings.no_difference(alike, one.evidence, one.rows) == (2, 0, 2)
    said = page.sentence([one])
    assert "Predictions of adt that compare disciplines: 2 of 2 within the tolerance; 0 if" in said


def test_a_tornado_s_longest_bar_is_on_top(paper: Paper, tmp_path: Path) -> None:
    [one] = reproduce([paper], out=tmp_path / "out")
    drawn_ = tornado.plots(readings.matrix(paper, one.evidence, one.rows))
    ping = drawn_[: drawn_.index("</svg>")]
    assert ping.index("a longer line") < ping.index("searched")
    assert drawn_.count("<svg") == 2


# ---------------------------------------------------------------------------------------- the page


def links(text: str) -> set[str]:
    return {unescape(one) for one in re.findall(r'href="([^"]+)"', text)}


def ids(text: str) -> list[str]:
    return [unescape(one) for one in re.findall(r' id="([^"]+)"', text)]


def test_every_link_of_a_page_leads_somewhere(paper: Paper, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = reproduce([paper], out=out)
    overview = page.write(done, out)
    texts = {path: path.read_text() for path in (overview, out / "adt" / "index.html")}
    for path, text in texts.items():
        for link in links(text):
            file, _, place = unquote(link).partition("#")
            target = (path.parent / file).resolve() if file else path
            assert target.is_file(), link
            assert not place or place in ids(texts[target]), link
        # An id is one word, and occurs once.
        own = [one for one in ids(text) if one.startswith(("claim-", "number-", "picture-"))]
        assert len(set(own)) == len(own)
        assert not any(" " in one for one in own)
    there = links(texts[out / "adt" / "index.html"])
    assert {"#claim-a-line", "#number-the-ping", "#picture-pings", "figures/pings.csv"} <= there
    made_of = [link for link in there if link.endswith("scenario.toml")]
    assert made_of == ["runs/line/10-ms-there-and-back/scenario.toml"]
    assert (out / "adt" / "figures" / "pings.csv").read_text().startswith("panel,series,x,y")


def test_a_grid_has_no_cell_where_the_source_has_none(paper: Paper, tmp_path: Path) -> None:
    done = reproduce([paper], out=tmp_path / "out")
    page.write(done, tmp_path / "out")
    text = (tmp_path / "out" / "adt" / "index.html").read_text()
    [grid] = re.findall(r'<table class="grid"><caption>Table 1.*?</table>', text, re.DOTALL)
    assert grid.count("<td></td>") == 3
    assert grid.count('href="#number-') == 2


# -------------------------------------------------------------------------- published.toml's grids

HEAD = '[paper]\ntitle = "T"\nsource = "S"\nabout = "A"\nstory = "delay"\n'
NUMBER = (
    '[[numbers]]\nid = "a/1"\nwhat = "b"\nwhere = "w"\nunit = "ms"\nstudy = "s"\nmeasure = "m"\n'
)


def read(tmp_path: Path, grid: str) -> list[Mapping[str, object]]:
    path = tmp_path / "published.toml"
    path.write_text(
        f"{HEAD}{NUMBER}[[grids]]\ntitle = 'T'\ncolumns = {{ '{{row}}/1' = 'x' }}\n{grid}"
    )
    published.read.cache_clear()
    return list(published.read(path).grids)


def test_a_cell_may_be_another_number_or_none(tmp_path: Path) -> None:
    [grid] = read(
        tmp_path,
        "rows = ['a', 'b', 'c']\nnames = ['A', 'B', 'C']\ninstead = { 'b/1' = 'a/1', 'c/1' = '' }\n",
    )
    assert grid["rows"] == {"A": ("a/1",), "B": ("a/1",), "C": ("",)}


@pytest.mark.parametrize(
    ("grid", "refused"),
    [
        ("rows = ['a', 'b']\n", "there is no number 'b/1'"),
        ("rows = ['a']\nnames = ['A', 'B']\n", "a name for each row"),
        ("rows = ['a']\ninstead = { 'd/1' = '' }\n", "no cell is d/1"),
    ],
)
def test_a_grid_with_unknown_names_is_refused(grid: str, refused: str, tmp_path: Path) -> None:
    with pytest.raises(PublishedError, match=refused):
        read(tmp_path, grid)


# -------------------------------------------------------------------------------------- the search


def test_a_search_can_be_made_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def rows() -> Iterable[Mapping[str, object]]:
        yield {"reading": "a", "loss": 1.5}
        yield {"reading": "b, c", "loss": 2}

    search = SimpleNamespace(SEEDS=range(101, 104), rows=rows)
    monkeypatch.setattr(searched, "import_module", lambda _: search)
    assert status(["reproduce", "--search", "adt"]) == 0
    made, *table = capsys.readouterr().out.splitlines()
    assert made.startswith("# made by `sojourn reproduce --search adt`, seeds 101 to 103, sojourn")
    assert table == ["reading,loss", "a,1.5", '"b, c",2']


def test_a_paper_without_a_search_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(searched, "has", lambda one: one.id in ("adt", "red-droptail"))
    assert status(["reproduce", "--search", "home-upload"]) == 2
    assert "name one paper with a stored search: adt or red-droptail" in capsys.readouterr().err


@pytest.mark.parametrize("name", papers.NAMES)
def test_a_search_by_studies_is_stored_completely_and_on_its_own_seeds(
    name: str,
) -> None:
    paper = papers.load(name)
    judged = {
        seed for one in paper.studies for seed in range(one.first_seed, one.first_seed + one.seeds)
    }
    for study in paper.search_studies:
        assert judged.isdisjoint(range(study.first_seed, study.first_seed + study.seeds))
        for quick in (False, True):
            known = paper.searched(quick).known
            seeds = study.quick_seeds if quick and study.quick else study.seeds
            for variant in (study[each] for each in study.variants):
                found = [each for (one, _), each in known.items() if one == variant]
                assert found, variant
                assert {len(each.values) for each in found} == {seeds}, variant
    assert not {one.id for one in paper.search_studies} & {one.id for one in paper.studies}


@pytest.mark.parametrize("name", papers.NAMES)
def test_a_replacement_for_a_number_s_variant_is_run_by_the_paper(name: str) -> None:
    paper = papers.load(name)
    # `Paper` checks that the variants exist. This test checks that each reading changes a published
    # number.
    stated = {one.variant for one in paper.numbers if one.published is not None}
    assert all(stated & set(swap) for swap in paper.swaps.values())
    known = {one.id for one in paper.numbers}
    assert all(set(estimates) <= known for estimates in paper.stored.values())
    assert paper.swaps or paper.stored


@pytest.mark.parametrize("name", [one for one in papers.NAMES if papers.load(one).search_studies])
def test_a_line_of_a_stored_study_is_reproduced(name: str) -> None:
    paper = papers.load(name)
    search = importlib.import_module(f"sojourn_papers.{paper.folder.name}.search")
    rows = searched.beside(search.__file__).rows
    # The last version that is stored is the shortest.
    stored = next(row for row in reversed(rows) if row["version"] == rows[-1]["version"])
    [study] = [one for one in paper.search_studies if one.id == stored["study"]]
    only = replace(
        study,
        variants={stored["variant"]: study.variants[stored["variant"]]},
        first_seed=int(stored["seed"]),
        seeds=1,
        quick_seeds=1,
        quick=study.quick if stored["version"] == "quick" else {},
    )
    again = list(searched.OfStudies(paper.folder, [only], search.MEASURES).rows())[-1]
    wanted = {**stored, "version": again["version"]}
    assert {key: str(value) for key, value in again.items()} == wanted


# ------------------------------------------------------------------------------ papers to be cited


def test_pages_can_be_cited_and_verified(
    paper: Paper, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cite = {"kind": "article", "key": "nobody2026", "author": "Nobody, N.", "year": "2026"}
    (paper.folder / frozen.FILE).write_text(frozen.text(paper, date(2026, 1, 2)))
    into = tmp_path / "out"
    (into / "adt" / "old").mkdir(parents=True)
    (into / "adt" / "old" / "of-somebody-s.txt").write_text("not ours")
    page.write(reproduce([replace(paper, cite=cite)], out=into), into)
    bib = (into / "papers.bib").read_text()
    assert "@article{nobody2026,\n  title = {A line},\n  author = {Nobody, N.}" in bib
    assert bibliography.OURSELVES in bib
    listed = bundles.read((into / "manifest.json").read_bytes(), "manifest.json")
    files = {file.relative_to(into).as_posix() for file in into.rglob("*") if file.is_file()}
    assert set(listed.files) == files - {"manifest.json", "adt/old/of-somebody-s.txt"}
    assert [entry.seeds for entry in listed.runs] == [(1, 2), (1, 2)]
    assert status(["verify", "-q", str(into)]) == 0
    rows = into / "adt" / "rows.json"
    rows.write_text(rows.read_text().replace("10.0", "10.5"))
    assert status(["verify", "-q", str(into)]) == 1
    assert "adt/rows.json: its SHA-256" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["papers.bib", "manifest.json"])
def test_files_of_others_are_not_replaced(name: str, paper: Paper, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(UserError, match="is not a file of sojourn"):
        page.check([paper], tmp_path)


def test_the_page_names_the_frozen_tolerances_and_what_has_changed_since(
    paper: Paper, tmp_path: Path
) -> None:
    def shown(one: Paper) -> str:
        page.write(reproduce([one], out=tmp_path / "out", redraw=again), tmp_path / "out")
        return (tmp_path / "out" / "adt" / "index.html").read_text()

    again = False
    assert "is not frozen yet" in shown(paper)
    again = True
    file = paper.folder / frozen.FILE
    file.write_text(frozen.text(paper, date(2026, 1, 2)))
    kept = frozen.of(paper)
    assert kept is not None
    assert kept.judged == {
        "the ping": "10 ± 20 %: rtt_ms of line/10 ms there and back",
        "twice": "20 ± 20 %: both",
    }
    assert kept.claims == {"a line": "ping, ms: < 15"}
    text = shown(paper)
    assert f'frozen on 2026-01-02, after the first runs, in <a href="{frozen.FILE}">' in text
    assert hashlib.sha256(file.read_bytes()).hexdigest() in text
    assert "Judged differently" not in text
    wider = Tolerance(0.3, "it did not fit")
    numbers = (replace(paper.numbers[0], tolerance=wider), paper.numbers[1])
    assert "Judged differently from that file: the ping." in shown(replace(paper, numbers=numbers))
    # Changes of the measure, of the compared numbers and of a claim's thresholds are shown, too.
    [claim] = paper.claims
    for other in (
        replace(paper, numbers=(replace(paper.numbers[0], measure=half_ms), paper.numbers[1])),
        replace(paper, numbers=(replace(paper.numbers[0], against=("twice",)), paper.numbers[1])),
    ):
        assert frozen.changed(other, kept) == ["the ping"]
    lenient = replace(claim, asks={"ping, ms": Threshold("< 50", lambda ours: ours < 50)})
    assert frozen.changed(replace(paper, claims=(lenient,)), kept) == ["a line"]
    # A new date for a threshold does not change the date of the tolerances.
    again_ = frozen.write(replace(paper, claims=(lenient,)), date(2026, 3, 4))
    assert again_ == file
    assert "frozen = 2026-03-04\ntolerances = 2026-01-02\n" in again_.read_text()


@pytest.mark.parametrize("name", papers.NAMES)
def test_everything_is_judged_by_the_frozen_rules(name: str) -> None:
    paper = papers.load(name)
    kept = frozen.of(paper)
    assert kept is not None
    assert frozen.changed(paper, kept) == [], "a change needs a new file with a new date"
