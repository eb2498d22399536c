"""`sojourn show` runs a seed of a Run again up to an instant, and prints the state of its queues
and senders."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import sojourn
from sojourn import scenario
from sojourn.cli import status
from sojourn.engine.instant import _number, as_ss, as_tc, instant
from sojourn.errors import UserError
from sojourn.records import Run

LINE = """
duration = "6 s"
warmup = "2 s"
seeds = [3, 4]
[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
qdisc = "fq_codel"
[[flow]]
name = "bulk"
kind = "bulk"
count = 2
ecn = true
[[flow]]
name = "late"
kind = "bulk"
congestion = "reno"
start = "5 s"
[[flow]]
name = "ping"
kind = "ping"
start = "uniform 0 s .. 100 ms"
"""
AT_NS = 4_000_000_000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return sojourn.run(scenario.loads(LINE), out=tmp_path_factory.mktemp("show") / "run")


@pytest.mark.parametrize("seed", [3, 4])
def test_the_shown_instant_equals_the_run_s_tables(run: Run, seed: int) -> None:
    found = instant(run, AT_NS, seed)
    for table, rows in (
        ("flow", {name: now for name, (_, _, now, _) in found.flows.items()}),
        ("queue", {name: now for name, (_, _, now) in found.links.items()}),
    ):
        column = {"flow": "flow", "queue": "link"}[table]
        recorded = run.table(table, seed)
        recorded = recorded.filter(recorded["t_ns"] == AT_NS)
        assert recorded.height > 0
        for row in recorded.to_dicts():
            assert rows[row[column]] == row
    # The counters begin with the run, not with the end of the warm-up.
    queue = run.table("queue", seed)
    for name, (_, totals, _) in found.links.items():
        until = queue.filter((queue["link"] == name) & (queue["t_ns"] <= AT_NS))
        assert totals["sent_packets"] == until["sent_packets"].sum()
        assert totals["marked_packets"] == until["marked_packets"].sum()


def test_the_first_seed_is_shown_by_default_and_seeds_differ(run: Run) -> None:
    first, second = instant(run, AT_NS), instant(run, AT_NS, 4)
    assert first == instant(run, AT_NS, 3)
    assert first.links != second.links


def test_the_lines_have_the_form_of_tc_and_ss(run: Run) -> None:
    found = instant(run, AT_NS)
    link, totals, now = found.links["down"]
    assert now is not None
    first, sent, backlog, state = list(as_tc(found))[:4]
    assert link.qdisc == "fq_codel"
    assert first == (
        "qdisc fq_codel dev down root limit 10240 flows 1024 memory_limit 33554432 target 5ms"
        " interval 100ms quantum 1514 drop_batch 64 ecn"
    )
    assert sent == f" Sent {totals['sent_bytes']} bytes {totals['sent_packets']} pkt (dropped {totals['dropped_packets']})"  # fmt: skip
    assert backlog == f" backlog {now['backlog_bytes']}b {now['backlog_packets']}p"
    assert state == f"  ecn_mark {totals['marked_packets']} count {now['count']:g} flows {now['flows']:g}"  # fmt: skip
    name, sender = list(as_ss(found))[:2]
    _, _, sample, mss = found.flows["bulk.1"]
    assert sample is not None
    assert mss == 1448
    assert name == "bulk.1  down"
    assert sender.startswith(f"\t cubic rtt:{sample['srtt_ns'] / 1e6:.3f} mss:1448 cwnd:{sample['cwnd_bytes'] // mss} ")  # fmt: skip
    # It starts later, and a ping has no window.
    assert not [line for line in as_ss(found) if line.startswith(("late", "ping"))]


@pytest.mark.parametrize(
    ("value", "shown"), [(4194304.0, "4194304"), (-0.0, "0"), (0.28125, "0.28125"), (3, "3")]
)
def test_whole_numbers_have_no_exponent(value: float, shown: str) -> None:
    assert _number(value) == shown


@pytest.mark.parametrize(
    ("at_ns", "seed", "says"),
    [
        (7_000_000_000, None, "no instant 7 s"),
        (10, None, "no instant 1e-08 s"),
        (AT_NS, 9, "no seed 9"),
    ],
)
def test_an_instant_that_is_not_in_the_run_is_refused(
    run: Run, at_ns: int, seed: int | None, says: str
) -> None:
    with pytest.raises(UserError, match=says):
        instant(run, at_ns, seed)


@pytest.mark.parametrize(
    ("engine", "says"),
    [("netns", "was run by netns, in real time"), ("flent", "is a measurement")],
)
def test_runs_that_can_t_be_repeated_are_refused(run: Run, engine: str, says: str) -> None:
    other = Run.open(run.path)
    other.meta = replace(run.meta, engine=engine)
    with pytest.raises(UserError, match=says):
        instant(other, AT_NS)


def test_the_verb_prints_text_or_an_object(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["show", str(run.path), "--at", "4s"]) == 0
    printed = capsys.readouterr().out
    found = instant(run, AT_NS)
    assert printed == "\n".join(as_tc(found)) + "\n\n" + "\n".join(as_ss(found)) + "\n"
    assert status(["show", str(run.path), "--at", "4 s", "--seed", "4", "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    assert (output["seed"], output["at_ns"]) == (4, AT_NS)
    assert output["links"][0]["queue"]["t_ns"] == AT_NS
    for words, says in (
        (["--at", "0 s"], "--at"),
        (["--at", "4"], "--at"),
        (["--at", "9 s"], "it lasts from 1 ms to 6 s"),
    ):
        assert status(["show", str(run.path), *words]) == 2
        assert says in capsys.readouterr().err
