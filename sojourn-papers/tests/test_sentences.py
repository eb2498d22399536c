"""Checks every sentence of every paper with made-up Runs. They stand for the full version, whose
real Runs would take minutes, and for an engine that runs only a part of a paper."""

from __future__ import annotations

import ast
import functools
import hashlib
import re
from collections.abc import Mapping
from typing import Any, cast

import pytest
from tree import ROOT

import sojourn_papers as papers
from sojourn_papers import published, readings, verdict
from sojourn_papers.evidence import Estimate, Evidence, Measure, SearchResults, estimated
from sojourn_papers.paper import Paper
from sojourn_papers.study import Variant
from sojourn_papers.verdict import Verdict


class MadeUp(Evidence):
    """Each measure has some value on each variant that was run."""

    salt = ""

    def estimate(self, variant: Variant, measure: Measure) -> Estimate:
        if not self.can_say(variant, measure):
            self.run(variant)
        self.used.add(variant)
        # A measure that another function made is identified by the arguments of that function.
        inside = [cell.cell_contents for cell in measure.__closure__ or ()]
        drawn = hashlib.sha256(
            f"{self.salt}{variant} {measure.__qualname__} {inside}".encode()
        ).digest()
        return estimated(10 ** (drawn[0] / 64) * (1 + seed / 1000) for seed in drawn[1:6])


@functools.cache
def asked_of(paper: str, engine: str, quick: bool) -> dict[Variant, None]:
    """The variants of a paper that this engine runs."""
    loaded = papers.load(paper)
    return dict.fromkeys(
        one for study in loaded.studies for one in study.scenarios(loaded.folder, quick, engine)
    )


def run(paper: Paper, engine: str, quick: bool = False) -> Evidence:
    asked = asked_of(paper.id, engine, quick)
    searched = paper.searched(quick) if engine == "sim" else SearchResults()
    return MadeUp(quick, cast(Any, dict(asked)), engine, searched)


@pytest.mark.parametrize("name", papers.NAMES)
def test_the_full_version_runs_every_claim(name: str) -> None:
    paper = papers.load(name)
    evidence = run(paper, "sim")
    rows, claims = verdict.rows(paper, evidence), verdict.claims(paper, evidence)
    for row in claims:
        # Each quantity with a threshold is measured, and each measured quantity has a threshold.
        asked = {*row.claim.asks, *row.claim.partly}
        assert set(row.measured) == asked, row.claim.id
        assert "nan" not in row.found, row.claim.id
    for number in paper.numbers:
        assert number.ours(evidence).seeds == 5
    matrix = readings.matrix(paper, evidence, rows, claims)
    for reading in paper.readings:
        for other in reading.under:
            assert "not run here" not in matrix.described(other), other
    assert list(paper.story(evidence))


@pytest.mark.parametrize("name", papers.NAMES)
@pytest.mark.parametrize(("engine", "quick"), [("sim", True), ("kernel", False)])
def test_runs_that_are_left_out_are_named(name: str, engine: str, quick: bool) -> None:
    paper = papers.load(name)
    evidence = run(paper, engine, quick)
    for row in verdict.claims(paper, evidence):
        missing = {*row.claim.asks, *row.claim.partly} - set(row.measured)
        assert bool(missing) == (row.verdict is Verdict.NOT_RUN), row.claim.id
        assert ("not run here" in row.found) == any(what in row.claim.asks for what in missing)


@pytest.mark.parametrize("name", papers.NAMES)
def test_a_verdict_follows_from_the_runs(name: str) -> None:
    paper = papers.load(name)

    ours = run(paper, "sim")
    theirs = MadeUp(False, ours.runs, searched=ours.searched)
    theirs.salt = "others"
    for one in paper.claims:
        here, there = one.check(ours).measured, one.check(theirs).measured
        assert here.keys() == there.keys()
        assert here != pytest.approx(there), one.id


# ------------------------------------------------------------------------- numbers that stand twice

WORDS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9}
UNIT = r"(packets?|places|segments?|ms|s|Mbit/s|kbit/s|kB|flows?|users?|%|times)"
COUNTED = re.compile(rf"\b(\d+(?:\.\d+)?|{'|'.join(WORDS)}) {UNIT}\b")


def stated(paper: Paper) -> set[float]:
    """The values that the source states, and the bounds of its claims."""
    found: set[float] = set()

    def collect(value: object) -> None:
        if isinstance(value, bool | str):
            found.update(float(one) for one in re.findall(r"\d+(?:\.\d+)?", str(value)))
        elif isinstance(value, int | float):
            found.add(float(value))
        elif isinstance(value, dict):
            for one in value.values():
                collect(one)
        elif isinstance(value, list):
            for one in value:
                collect(one)

    said = published.read(paper.folder / "published.toml")
    collect(dict(said.values))
    collect([claim.says for claim in paper.claims])
    collect([number.what + number.where for number in paper.numbers])
    collect([reading.source for reading in paper.readings])
    return found


def unknown(texts: Mapping[str, str], known: set[float]) -> dict[str, list[str]]:
    """The numbers with a unit in each text that are not among the known ones."""
    found = {
        id_: [
            one.group()
            for one in COUNTED.finditer(text)
            if float(WORDS.get(one.group(1), one.group(1))) not in known
        ]
        for id_, text in texts.items()
    }
    return {id_: numbers for id_, numbers in found.items() if numbers}


def settings(paper: Paper) -> set[float]:
    """All settings that the paper runs or searches, and the chosen values of its readings."""
    studies = (*paper.studies, *paper.search_studies)
    texts = [f"{name} {changes}" for one in studies for name, changes in one.variants.items()]
    texts += [(paper.folder / one.scenario).read_text() for one in studies]
    texts += [one.parameter + one.chosen for one in paper.readings]
    return {float(one) for text in texts for one in re.findall(r"\d+(?:\.\d+)?", text)}


@pytest.mark.parametrize("name", papers.NAMES)
def test_a_caption_has_no_number_of_ours(name: str) -> None:
    # A setting or a result that a caption repeats becomes wrong when it changes. Captions may have
    # the source's numbers.
    paper = papers.load(name)
    captions = {picture.id: picture.caption for picture in paper.pictures}
    assert unknown(captions, stated(paper)) == {}


@pytest.mark.parametrize("name", papers.NAMES)
def test_a_reason_has_no_result_of_ours(name: str) -> None:
    # A reason may name settings of the source and settings that are run. Results of Runs are shown
    # on the page, from the Runs.
    paper = papers.load(name)
    reasons = {
        **{one.parameter: f"{one.why} {one.others}" for one in paper.readings},
        **{f"refused {reading}": why for reading, why in paper.refused.items()},
        **{one.id: f"{one.reason} {one.engines}" for one in paper.numbers},
    }
    assert unknown(reasons, stated(paper) | settings(paper)) == {}


@pytest.mark.parametrize("name", papers.NAMES)
def test_the_text_of_claims_and_figures_has_no_result_of_ours(name: str) -> None:
    # Numbers of Runs come from the Runs; settings may be written out.
    paper = papers.load(name)
    texts = {}
    for file in ("claims.py", "figures.py"):
        tree = ast.parse((paper.folder / file).read_text(encoding="utf-8"))
        strings = [one for one in ast.walk(tree) if isinstance(one, ast.Constant)]
        texts |= {f"{file}:{one.lineno}": str(one.value) for one in strings}
    assert unknown(texts, stated(paper) | settings(paper)) == {}


def test_the_documentation_has_no_result_of_ours() -> None:
    known = set().union(*(stated(papers.load(name)) for name in papers.NAMES))
    text = (ROOT / "docs/papers.md").read_text(encoding="utf-8")
    assert unknown({"docs/papers.md": text}, known) == {}


def test_a_number_without_a_source_is_found() -> None:
    text = "124 to 132 segments give 10 s, and three packets are run"
    assert unknown({"a": text}, {10.0}) == {"a": ["132 segments", "three packets"]}


@pytest.mark.parametrize("name", papers.NAMES)
def test_a_reading_runs_the_discipline_that_it_names(name: str) -> None:
    paper = papers.load(name)
    run_ = " ".join(
        str(changes) for study in paper.studies for changes in study.variants.values()
    ) + " ".join((paper.folder / study.scenario).read_text() for study in paper.studies)
    named = re.compile(r"\b(?:red|codel|fq_codel|pfifo|htb) (?:limit|rate) [^,;.\n]*\d\w*")
    for reading in paper.readings:
        for words in named.findall(reading.chosen):
            assert words in run_, f"{reading.parameter}: {words}"
