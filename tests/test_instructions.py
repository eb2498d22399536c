"""The number of instructions per packet matches the record in benches/instructions.json. The quick
test counts one case with access links in the build that tests use. `make test-long` adds a second
case of that build and all eight cases of the release build."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tree import ROOT

sys.path.insert(0, str(ROOT / "benches"))

import bench
import callgrind
import instructions
import page

BY = {"rustc": "rustc 1.95.0 (59807616e 2026-04-14)", "target": "x86_64-unknown-linux-gnu"}
LENGTHS = {"warmup_s": 1, "short_s": 2, "long_s": 5}


def of(tcp: float, links: float = 200.0) -> dict[str, Any]:
    return {"lengths": LENGTHS, "parts": {"TCP": tcp, "links": links}}


KEPT = {**BY, "valgrind": "3.19.0", "cases": {"ten": of(800.0)}}


# ------------------------------------------------------------------------------------- the verdict


def test_more_than_one_percent_above_the_record_fails_and_names_the_part() -> None:
    risen = instructions.judged("ten", of(805.0, 206.0), KEPT, BY)
    assert risen.failed
    assert risen.words == "+1.1%; most of it in: links (+6)"
    assert not instructions.judged("ten", of(804.0, 205.5), KEPT, BY).failed


def test_below_the_record_passes_and_says_how_to_record_it() -> None:
    fallen = instructions.judged("ten", of(780.0), KEPT, BY)
    assert not fallen.failed
    assert fallen.words == f"-2.0%: {instructions.RECORD_IT}"
    assert instructions.judged("ten", of(800.3), KEPT, BY).words == ""


def test_numbers_of_another_compiler_are_not_judged() -> None:
    other = {**BY, "rustc": "rustc 1.99.0"}
    verdict = instructions.judged("ten", of(1600.0), KEPT, other)
    assert verdict.other_compiler
    assert not verdict.failed
    assert "this is rustc 1.99.0" in verdict.words


def test_a_case_that_is_not_recorded_fails() -> None:
    assert instructions.judged("new", of(800.0), KEPT, BY).failed
    longer = {**of(800.0), "lengths": {**LENGTHS, "long_s": 9}}
    assert instructions.judged("ten", longer, KEPT, BY).failed


def test_recording_with_another_compiler_removes_the_old_cases(tmp_path: Path) -> None:
    file, tree = tmp_path / "instructions.json", {"commit": "c0ffee", "date": "2026-01-01"}
    for name, by in (("ten", BY), ("more", BY), ("new", {**BY, "rustc": "rustc 1.99.0"})):
        instructions.keep("checked", {name: of(1.0)}, by, "3.19.0", tree, file)
        if name == "more":
            assert [*instructions.recorded(file)["checked"]["cases"]] == ["ten", "more"]
    assert [*instructions.recorded(file)["checked"]["cases"]] == ["new"]


def test_every_case_is_recorded() -> None:
    for build, kept in instructions.recorded().items():
        of, _, _ = build.partition(",")
        assert [*kept["cases"]] == [case.name for case in instructions.cases(of)]
    assert {case.name for case in instructions.cases("release")} == {
        "home-uplink",
        *(file.stem for file in bench.CASES.glob("*.toml")),
    }


def test_the_page_shows_what_is_recorded() -> None:
    if "release" not in instructions.recorded():
        pytest.skip(f"no counts of the release build are recorded: {instructions.RECORD_IT}")
    shown = json.loads(page.RECORD.read_text(encoding="utf-8"))
    for name, value in instructions.places(instructions.recorded()["release"]).items():
        form = "text" if isinstance(value, str) else "rows"
        assert shown[name][form] == (value if form == "text" else [list(row) for row in value])


# ----------------------------------------------------------------------------------- what is counted


def test_a_function_counts_for_its_crate() -> None:
    found = {
        name: callgrind.part_of_function(name)
        for name in (
            "sim::inbox::Inbox::take",
            "<sim::recorder::Recorder as core::fmt::Debug>::fmt",
            "sim::hosts::Hosts::deliver",
            "<&mut tcp::sender::Sender>::on_ack",
            "<alloc::vec::Vec<sim::Parcel> as core::ops::drop::Drop>::drop",
            "simple::thing",
        )
    }
    names = {path: name for name, path in callgrind.PARTS}
    assert [*found.values()] == [
        names["crates/sim/src/inbox.rs"],
        names["crates/sim/src/recorder.rs"],
        names["crates/sim/"],
        "TCP",
        callgrind.REST,
        callgrind.REST,
    ]


@pytest.fixture(scope="session")
def counted(request: pytest.FixtureRequest) -> callgrind.Speed:
    """The program of this build, under valgrind. Without valgrind the test is skipped, or fails in
    CI."""
    try:
        return callgrind.program(request.param)
    except callgrind.NoToolError as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(str(missing))
        pytest.skip(str(missing))


def _hold(speed: callgrind.Speed, name: str) -> None:
    [case] = instructions.cases(speed.build, [name])
    kept = instructions.recorded().get(instructions.kept_as(speed.build), {})
    verdict = instructions.judged(
        name, instructions.count(speed, case), kept, instructions.compiler()
    )
    if verdict.other_compiler:
        pytest.skip(instructions.line(verdict))
    print(instructions.line(verdict))
    parts = f"; {instructions.BY_FUNCTION}" if speed.build == "checked" else ""
    assert not verdict.failed, instructions.line(verdict) + parts


@pytest.mark.parametrize("counted", ["checked"], indirect=True)
@pytest.mark.parametrize(
    "name",
    [pytest.param(instructions.CHECKED[0], marks=pytest.mark.long), *instructions.CHECKED[1:]],
)
def test_a_packet_takes_the_recorded_number_of_instructions(
    counted: callgrind.Speed, name: str
) -> None:
    _hold(counted, name)


@pytest.mark.long
@pytest.mark.parametrize("counted", ["release"], indirect=True)
@pytest.mark.parametrize("name", [case.name for case in bench.ALL])
def test_a_packet_of_the_release_takes_the_recorded_number_of_instructions(
    counted: callgrind.Speed, name: str
) -> None:
    _hold(counted, name)
