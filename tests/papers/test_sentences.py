"""Every sentence of every paper, on Runs that are made up: of the full version, which takes
minutes, and of an engine that runs a part."""

from __future__ import annotations

import functools
import hashlib
import re
from typing import Any, cast

import pytest

from sojourn import papers
from sojourn.papers import published, readings, verdict
from sojourn.papers.evidence import Estimate, Evidence, Measure, SearchResults, estimated
from sojourn.papers.paper import Paper
from sojourn.papers.study import Variant
from sojourn.papers.verdict import Verdict


class MadeUp(Evidence):
    """Each measure has some value on each variant that was run."""

    salt = ""

    def estimate(self, variant: Variant, measure: Measure) -> Estimate:
        if not self.can_say(variant, measure):
            self.run(variant)
        self.used.add(variant)
        # A measure that another function made is known by what that was given.
        inside = [cell.cell_contents for cell in measure.__closure__ or ()]
        drawn = hashlib.sha256(
            f"{self.salt}{variant} {measure.__qualname__} {inside}".encode()
        ).digest()
        return estimated(10 ** (drawn[0] / 64) * (1 + seed / 1000) for seed in drawn[1:6])


@functools.cache
def asked_of(paper: str, engine: str, quick: bool) -> dict[Variant, None]:
    """What of a paper this engine runs."""
    loaded = papers.load(paper)
    return dict.fromkeys(
        one for study in loaded.studies for one in study.scenarios(loaded.folder, quick, engine)
    )


def run(paper: Paper, engine: str, quick: bool = False) -> Evidence:
    asked = asked_of(paper.id, engine, quick)
    searched = paper.searched(quick) if engine == "sim" else SearchResults()
    return MadeUp(quick, cast(Any, dict(asked)), engine, searched)


@pytest.mark.parametrize("name", papers.NAMES)
def test_the_full_version_says_all(name: str) -> None:
    paper = papers.load(name)
    evidence = run(paper, "sim")
    rows, claims = verdict.rows(paper, evidence), verdict.claims(paper, evidence)
    for row in claims:
        # Whatever is asked is measured, and whatever is measured is asked for.
        asked = {*row.claim.asks, *row.claim.partly}
        assert set(row.measured) == asked, row.claim.id
        assert "nan" not in row.found, row.claim.id
    for number in paper.numbers:
        assert number.ours(evidence).seeds == 5
    matrix = readings.matrix(paper, evidence, rows, claims)
    for reading in paper.readings:
        for other in reading.under:
            assert "not run here" not in matrix.told(other), other
    assert list(paper.story(evidence))


@pytest.mark.parametrize("name", papers.NAMES)
@pytest.mark.parametrize(("engine", "quick"), [("sim", True), ("kernel", False)])
def test_what_is_not_run_is_said_to_be(name: str, engine: str, quick: bool) -> None:
    paper = papers.load(name)
    evidence = run(paper, engine, quick)
    for row in verdict.claims(paper, evidence):
        missing = {*row.claim.asks, *row.claim.partly} - set(row.measured)
        assert bool(missing) == (row.verdict is Verdict.NOT_RUN), row.claim.id
        assert ("not run here" in row.found) == any(what in row.claim.asks for what in missing)


@pytest.mark.parametrize("name", papers.NAMES)
def test_a_verdict_is_of_the_runs(name: str) -> None:
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
UNIT = r"(packets?|segments?|ms|s|Mbit/s|kbit/s|kB|flows?|users?|%|times)"
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


@pytest.mark.parametrize("name", papers.NAMES)
def test_a_caption_has_no_number_of_ours(name: str) -> None:
    # A setting or a result that a caption repeats is wrong as soon as it changes. What the source
    # says may stand there.
    paper = papers.load(name)
    known = stated(paper)
    repeated = {
        picture.id: [found.group() for found in COUNTED.finditer(picture.caption)]
        for picture in paper.pictures
    }
    ours = {
        id_: [one for one in found if float(WORDS.get(one.split()[0], one.split()[0])) not in known]
        for id_, found in repeated.items()
    }
    assert {id_: found for id_, found in ours.items() if found} == {}


@pytest.mark.parametrize("name", papers.NAMES)
def test_a_discipline_that_a_reading_names_is_what_is_run(name: str) -> None:
    paper = papers.load(name)
    run_ = " ".join(
        str(changes) for study in paper.studies for changes in study.variants.values()
    ) + " ".join((paper.folder / study.scenario).read_text() for study in paper.studies)
    named = re.compile(r"\b(?:red|codel|fq_codel|pfifo|htb) (?:limit|rate) [^,;.\n]*\d\w*")
    for reading in paper.readings:
        for words in named.findall(reading.chosen):
            assert words in run_, f"{reading.parameter}: {words}"
