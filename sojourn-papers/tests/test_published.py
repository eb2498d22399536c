"""A paper's published.toml: tables are expanded, words filled in, and wrong names refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import sojourn_papers as papers
from sojourn_papers import folder, published
from sojourn_papers.paper import Tolerance
from sojourn_papers.published import Published, PublishedError

HEAD = '[paper]\ntitle = "T"\nsource = "S"\nabout = "A"\nstory = "delay"\n'
NUMBER = 'where = "w"\nunit = "ms"\nstudy = "s"\nmeasure = "m"\n'


def read(tmp_path: Path, text: str) -> Published:
    path = tmp_path / "published.toml"
    path.write_text(HEAD + text)
    published.read.cache_clear()
    return published.read(path)


def test_a_table_is_a_number_for_each_row_and_column(tmp_path: Path) -> None:
    said = read(
        tmp_path,
        '[tolerances.near]\nshare = 0.1\nbecause = "read off"\n'
        f'[[numbers]]\nid = "{{quantity}}/{{n}}"\nwhat = "{{quantity}} of {{n}} flows"\n{NUMBER}'
        'columns = [{ quantity = "delay", tolerance = "near" }, { quantity = "loss", unit = "%" }]\n'
        'rows = [{ n = 2, published = [1.5, ""], role = ["predicted", ""], against = [["delay/4"], []] }, '
        '{ n = 4, published = [3, 7], role = "predicted" }]\n',
    )
    assert [(one["id"], one.get("published"), one["unit"]) for one in said.numbers] == [
        ("delay/2", 1.5, "ms"),
        ("loss/2", None, "%"),
        ("delay/4", 3, "ms"),
        ("loss/4", 7, "%"),
    ]
    assert said.numbers[0]["what"] == "delay of 2 flows"
    assert said.numbers[0]["against"] == ["delay/4"]
    assert said.numbers[0]["tolerance"] == Tolerance(0.1, "read off")
    assert said.values == {"delay/2": 1.5, "delay/4": 3, "loss/4": 7}


def test_words_are_replaced_in_every_text(tmp_path: Path) -> None:
    said = read(
        tmp_path,
        '[words]\nwhy = "the queue is full"\n[quoted]\nlimit = 5\n'
        f'[[numbers]]\nid = "a"\nwhat = "b"\nreason = "here {{why}}"\n{NUMBER}',
    )
    assert said.numbers[0]["reason"] == "here the queue is full"
    assert said.values == {"limit": 5}


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (
            f'[[numbers]]\nid = "a"\nwhat = "b"\ntolerence = 1\n{NUMBER}',
            "tolerence is neither a field nor used in a text",
        ),
        (f'[[numbers]]\nid = "a"\nwhat = "{{n}}"\n{NUMBER}', "'n'"),
        (f'[[numbers]]\nid = "a"\nwhat = "b"\ntolerance = "near"\n{NUMBER}', "no tolerance 'near'"),
        (
            f'[[numbers]]\nid = "a"\nwhat = "b"\n{NUMBER}tolerance.abslute = 1\ntolerance.because = "c"\n',
            "a: a tolerance has share or absolute",
        ),
        (f'[[numbers]]\nid = "a"\nwhat = "b"\n{NUMBER}rows = [{{}}, {{}}]\n', "'a' occurs twice"),
        (
            f'[[numbers]]\nid = "{{n}}"\nwhat = "b"\n{NUMBER}columns = [{{ n = 1 }}, {{ n = 2 }}]\n'
            "rows = [{ published = [1] }]\n",
            "needs a value for each of 2 columns",
        ),
        (
            f'[[numbers]]\nid = "a"\nwhat = "b"\npublished = 1\n{NUMBER}',
            "a: a published value needs a role, one of input, fitted, derived, predicted; not None",
        ),
        (
            f'[[numbers]]\nid = "a"\nwhat = "b"\npublished = 1\nrole = "guessed"\n{NUMBER}',
            "one of input, fitted, derived, predicted; not 'guessed'",
        ),
        (
            f'[[numbers]]\nid = "a"\nwhat = "b"\npublished = 1\nrole = "fitted"\n{NUMBER}',
            "role_because, the reason of 'fitted', is required",
        ),
        (
            f'[[numbers]]\nid = "a"\nwhat = "b"\npublished = 1\nrole.guessed = "why"\n{NUMBER}',
            "one of input, fitted, derived, predicted; not 'guessed'",
        ),
        ('[refused]\n"a reading" = "since {it}"\n', "refused: 'it'"),
        (
            f'[[numbers]]\nid = "a"\nwhat = "b"\nrole = "predicted"\n{NUMBER}',
            "a number without a published value has no role: 'predicted'",
        ),
        (
            '[[grids]]\ntitle = "T"\nrows = ["2"]\ncolumns = { "delay/{row}" = "ms" }\n',
            "grid 'T': there is no number 'delay/2'",
        ),
        ('[[grids]]\ntitle = "T"\n', "a grid has columns, rows, title, not title"),
    ],
)
def test_an_error_in_the_file_is_reported_with_its_place(
    text: str, refused: str, tmp_path: Path
) -> None:
    with pytest.raises(PublishedError, match=refused):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("was", "drifted", "refused"),
    [
        (
            'measure = "upload_s"',
            'measure = "upload_ms"',
            "there is no 'upload_ms'; did you mean 'upload_s'",
        ),
        (
            'id = "unsteady"',
            'id = "unstedy"',
            "there is no 'unstedy'; did you mean 'unsteady'",
        ),
        (
            'check = "no_loss"',
            'check = "no_los"',
            "there is no 'no_los'; did you mean 'no_loss'",
        ),
        (
            'variant = "upload/no shaper"',
            'variant = "upload/no shapr"',
            "there is no 'no shapr'; did you mean 'no shaper'",
        ),
        ('"upload/no', '"uplod/no', "there is no 'uplod'; did you mean 'upload'"),
        ('"upload/no shaper"', '"upload"', "variant of upload: there is no ''"),
    ],
)
def test_an_unknown_name_is_found_when_the_paper_is_loaded(
    was: str, drifted: str, refused: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = papers.load("home-upload").folder / "published.toml"
    text = own.read_text()
    assert was in text
    (tmp_path / "published.toml").write_text(text.replace(was, drifted))
    other = published.read(tmp_path / "published.toml")
    monkeypatch.setattr(published, "read", lambda _: other)
    with pytest.raises(PublishedError, match=refused):
        folder.read("sojourn_papers.home_upload")


@pytest.mark.parametrize("name", papers.NAMES)
def test_every_paper_s_folder_has_the_same_files(name: str) -> None:
    files = {path.name for path in papers.load(name).folder.iterdir() if path.is_file()}
    plan = {"__init__.py", "published.toml", "studies.py", "measures.py", "claims.py", "figures.py"}
    scenarios = {study.scenario for study in papers.load(name).studies}
    # Some papers also have a search and its results, frozen tolerances, or a model with the
    # source's formulas.
    assert files - {"search.py", "searched.csv", "tolerances.toml", "model.py"} == plan | scenarios
    assert ("search.py" in files) == ("searched.csv" in files)


def test_claims_and_searches_use_the_same_values_as_the_verdict(tmp_path: Path) -> None:
    tolerance = 'role = "predicted"\ntolerance.share = 0.1\ntolerance.because = "read off"\n'
    said = read(
        tmp_path, f'[[numbers]]\nid = "fall"\nwhat = "b"\npublished = -10\n{NUMBER}{tolerance}'
    )
    # A share of a negative number is a positive distance; a tenth less is within, to the last
    # digit.
    assert [said.targets["fall"].met(ours) for ours in (-9.0, -11.0, -8.9)] == [True, True, False]
    for paper in map(papers.load, papers.NAMES):
        targets = published.read(paper.folder / "published.toml").targets
        judged = {one.id: one.target for one in paper.numbers if one.published is not None}
        assert targets == judged


@pytest.mark.parametrize("name", papers.NAMES)
def test_the_line_below_the_title_and_the_bibliography_are_of_one_publication(name: str) -> None:
    paper = papers.load(name)
    cite = paper.cite
    families = [author.split(",")[0] for author in cite["author"].split(" and ")]
    assert [one for one in families if one.split()[-1] not in paper.source] == []
    assert cite["year"] in paper.source
    assert cite["year"] in cite["key"]
    if cite["kind"] == "article":
        assert f"{cite['journal']} {cite['volume']}({cite['number']})" in paper.source
        assert cite["pages"]


def test_red_droptail_is_the_article_of_three_authors() -> None:
    cite = papers.load("red-droptail").cite
    assert (cite["volume"], cite["number"], cite["year"]) == ("9", "2", "2009")
    assert cite["pages"] == "405--408"
    assert "doi" not in cite, "that of 2008 is another article's"


@pytest.mark.parametrize("name", papers.NAMES)
def test_a_paper_is_named_as_in_its_file(name: str) -> None:
    whole = published.read(Path(papers.__file__).parent / name.replace("-", "_") / "published.toml")
    assert papers.about(name) == whole.paper
