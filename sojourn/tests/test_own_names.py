"""A user's own discipline or congestion control is compared like any other, and shown by its
class's name."""

from __future__ import annotations

from pathlib import Path

import synthetic
from synthetic import Shape

import sojourn
from sojourn import report
from sojourn.cli import grid_text
from sojourn.judgement import compare
from sojourn.judgement.likeness import conditions, is_choice
from sojourn.judgement.own_names import shortened
from sojourn.records import Run
from sojourn.sweeps.grid import of_runs

LATE = """
from sojourn.own import DROP, MS, PASS, Discipline, Link, Packet
USUAL = 5 * MS
class Late(Discipline):
    target: int = 20 * MS
    least: int = USUAL
    room: int = 7
    def dequeue(self, packet: Packet, link: Link) -> int:
        return DROP if packet.sojourn > self.target else PASS
class Early(Late):
    limit = 20
"""


def made(
    path: Path, words: str, label: str = "", code: str = LATE, rate: int = 20, **settings: str
) -> Run:
    """A Run of the discipline `words`, as a scenario writes them."""
    file = words.partition(":")[0]
    own = f"[code]\n{file!r} = '''{code}'''\n" if ".py:" in words else ""
    text = (
        'title = "A line"\nduration = "20 s"\nwarmup = "5 s"\n[bottleneck]\ndelay = "5 ms"\n'
        f'rate = "{rate} Mbit/s"\nqdisc = "{words}"\n[[flow]]\nkind = "bulk"\n{own}'
    )
    given = tuple((key.replace("_", "."), value) for key, value in settings.items())
    # Runs with equal tables count as the same Run, so each gets other numbers.
    pings = 50 + sum(f"{words} {label} {code}".encode()) % 97
    shape = Shape(words, label=label, ping_ms=pings, title="A line", scenario=text, settings=given)
    return synthetic.run(path, shape)


def names(*runs: Run) -> list[str]:
    """The name of each Run; all of them compete."""
    found = compare(runs)
    [contest] = found.contests
    assert set(contest.called.values()) == set(found.runs)
    return list(found.runs)


def test_a_class_competes_and_is_called_by_its_name_and_settings(tmp_path: Path) -> None:
    runs = [
        made(tmp_path / "fq", "fq_codel", "fq_codel"),
        made(tmp_path / "usual", "mine.py:Late", "mine.py:Late"),
        made(tmp_path / "five", "mine.py:Late target 5000000", "mine.py:Late target 5ms"),
        made(tmp_path / "other", "mine.py:Early", "mine.py:Early"),
    ]
    assert names(*runs) == ["fq_codel", "Late", "Late target 5ms", "Early"]
    said = " ".join(compare(runs).sentences())
    assert "mine.py" not in said
    assert "5000000" not in said


def test_a_time_that_only_the_scenario_states_has_its_unit(tmp_path: Path) -> None:
    every = "mine.py:Late target 5000000 least 1500000 room 9000"
    runs = [made(tmp_path / "a", every), made(tmp_path / "b", "pfifo limit 1000")]
    assert names(*runs) == [
        "Late target 5ms least 1500us room 9000",
        "pfifo limit 1000",
    ]
    # A label may also be the scenario's text.
    plain = "mine.py:Late target 5000000"
    assert "Late target 5ms" in names(made(tmp_path / "c", plain, plain), runs[1])


def test_classes_of_the_same_name_are_named_with_their_files(tmp_path: Path) -> None:
    both = ["mine.py:Late", "a/mine.py:Late"]
    runs = [made(tmp_path / str(i), words, words) for i, words in enumerate(both)]
    assert set(names(*runs)) == set(both)
    # A class with the name of a discipline also keeps its file.
    assert shortened(["x.py:red", "x.py:Late"]) == {"x.py:red": "x.py:red", "x.py:Late": "Late"}


def test_a_changed_file_competes_with_the_former_one(tmp_path: Path) -> None:
    changed = LATE.replace("20 * MS", "10 * MS")
    runs = [
        made(tmp_path / "old", "mine.py:Late", "mine.py:Late"),
        made(tmp_path / "new", "mine.py:Late", "mine.py:Late", code=changed),
    ]
    assert names(*runs) == ["Late, old", "Late, new"]


def sweep(path: Path, code: str = LATE) -> list[Run]:
    """Two disciplines at two rates; one is user-defined."""
    return [
        made(
            path / f"{i}-{rate}",
            words,
            f"{text}, {rate} Mbit/s",
            code,
            rate,
            bottleneck_qdisc=text,
            bottleneck_rate=f"{rate} Mbit/s",
        )
        for rate in (10, 20)
        for i, (words, text) in enumerate(
            [
                ("pfifo limit 1000", "pfifo"),
                ("mine.py:Late target 5000000", "mine.py:Late target 5ms"),
            ]
        )
    ]


def test_own_code_competes_in_a_sweep(tmp_path: Path) -> None:
    runs = sweep(tmp_path)
    found = compare(runs)
    assert [len(contest.runs) for contest in found.contests] == [2, 2]
    assert found.sentences()[0].startswith("Late target 5ms wins 2 of 2 comparisons")
    grid = of_runs(runs)
    for form in ("table", "md", "latex"):
        table = grid_text.rendered(grid, form, ())
        assert "Late target 5ms" in table
        assert "mine.py" not in table
    latex = grid_text.rendered(grid, "latex", ()).splitlines()
    assert all(r"\textbf" in line for line in latex if "Late" in line)
    # Output for programs has the scenario's text.
    assert "mine.py:Late target 5ms" in grid_text.rendered(grid, "csv", ())
    page = report.render(runs)
    assert '<td class="won"' in page.partition("Late target 5ms<small>")[0][-400:]
    pairs = page.partition('<h2 id="pairs"')[2] or page.partition("seed by seed")[2]
    assert "Late target 5ms" in pairs
    assert "mine.py default" not in page


def test_in_two_sweeps_a_changed_file_is_named_with_its_hash(tmp_path: Path) -> None:
    old = sweep(tmp_path / "old")[1::2]
    new = sweep(tmp_path / "new", LATE.replace("7", "8"))[1::2]
    contests = compare([*old, *new]).contests
    called = [sorted(contest.called.values()) for contest in contests]
    assert called[0] == called[1]
    assert all(name.startswith("Late target 5ms, mine.py ") for name in called[0])


def test_a_congestion_control_competes() -> None:
    text = (
        'duration = "2 s"\n[bottleneck]\nrate = "5 Mbit/s"\ndelay = "5 ms"\n'
        '[[flow]]\nname = "up"\nkind = "bulk"\ndirection = "up"\n'
    )
    cubic, calm = (
        sojourn.loads(text + more)
        for more in (
            'congestion = "cubic"\n',
            'congestion = "calm.py:Calm queueing 5000000"\n[code]\n"calm.py" = "x"\n',
        )
    )
    both = [conditions(dict(each.meaning())) for each in (cubic, calm)]
    assert both[0] == both[1]


def test_a_flow_named_code_does_not_count_as_a_choice() -> None:
    assert not is_choice("flow.code.rtt")
    assert is_choice("flow.code.congestion")
    assert is_choice("bottleneck.up.qdisc")
