"""Every sentence of every paper, on Runs that are made up: of the full version, which takes
minutes, and of an engine that runs a part."""

from __future__ import annotations

import hashlib
from typing import Any, cast

import pytest

from sojourn import papers
from sojourn.papers.evidence import Estimate, Evidence, Measure, SearchResults, estimated
from sojourn.papers.paper import Paper
from sojourn.papers.study import Variant
from sojourn.papers.verdict import worded


class MadeUp(Evidence):
    """Each measure has some value on each variant that was run."""

    def estimate(self, variant: Variant, measure: Measure) -> Estimate:
        if not self.can_say(variant, measure):
            self.run(variant)
        drawn = hashlib.sha256(f"{variant} {measure.__qualname__}".encode()).digest()
        return estimated(10 ** (drawn[0] / 64) * (1 + seed / 1000) for seed in drawn[1:6])


def run(paper: Paper, engine: str) -> Evidence:
    asked = [one for study in paper.studies for one in study.scenarios(paper.folder, False, engine)]
    searched = paper.searched(False) if engine == "sim" else SearchResults()
    return MadeUp(False, cast(Any, dict.fromkeys(asked)), engine, searched)


@pytest.mark.parametrize("name", papers.NAMES)
def test_the_full_version_can_be_said(name: str) -> None:
    paper = papers.load(name)
    evidence = run(paper, "sim")
    for claim in paper.claims:
        assert any(letter.isdigit() for letter in claim.check(evidence).because), claim.id
    for number in paper.numbers:
        assert number.ours(evidence).seeds == 5
        assert "nan" not in worded(number.reason, evidence), number.id
    for reading in paper.readings:
        assert "full version" not in worded(reading.others, evidence).lower(), reading.parameter
    for name, why in paper.refused.items():
        said = worded(why, evidence)
        assert said.endswith("."), name
        assert "full version" not in said.lower(), name
        assert "nan" not in said, name
    for picture in paper.pictures:
        assert "nan" not in worded(picture.caption, evidence), picture.id
    assert list(paper.story(evidence))


@pytest.mark.parametrize("name", ["home-upload", "queue-anatomy", "video-testbed"])
def test_what_a_kernel_does_not_run_is_said(name: str) -> None:
    paper = papers.load(name)
    evidence = run(paper, "kernel")
    told = [
        found.because
        for claim in paper.claims
        if (found := evidence.asked(claim.check)) is not None
    ]
    told += [worded(one.others, evidence) for one in paper.readings]
    told += [worded(one.caption, evidence) for one in paper.pictures]
    told += [worded(one.reason, evidence) for one in paper.numbers if one.variant in evidence.runs]
    assert len(told) > len(paper.readings)
    assert any("not run on the engine kernel: " in sentence for sentence in told)


@pytest.mark.parametrize("name", papers.NAMES)
def test_a_sentence_changes_with_the_runs(name: str) -> None:
    paper = papers.load(name)

    class Twice(MadeUp):
        def estimate(self, variant: Variant, measure: Measure) -> Estimate:
            return estimated(2.5 * value for value in super().estimate(variant, measure).values)

    ours = run(paper, "sim")
    theirs = Twice(False, ours.runs, searched=ours.searched)
    same = {one.id for one in paper.claims if one.check(ours).because == one.check(theirs).because}
    # Ratios alone: a common factor leaves them as they are.
    assert len(same) < len(paper.claims) / 3
