"""Traces as other programs write them: columns by name, numbers of numpy, and long traces."""

import gzip
import json
from pathlib import Path

import pytest

from sojourn import Scenario, ScenarioError, loads
from sojourn.cli import status
from sojourn.scenario.realised import SteppedLoss

HEAD = """duration = "5 s"
[bottleneck]
delay = "10 ms"
up.rate = "2 Mbit/s"
"""
FLOW = '[[flow]]\nkind = "bulk"\n'


def traced(folder: Path, rows: str | bytes, key: str = "down.trace") -> Scenario:
    (folder / "a.csv").write_bytes(rows if isinstance(rows, bytes) else rows.encode())
    return loads(f'{HEAD}{key} = "a.csv"\n{FLOW}', name="home.toml", folder=folder)


def steps(scenario: Scenario) -> list[tuple[int, int]]:
    return [(step.at_ns, step.bps) for step in scenario.realise(1).links[0].rate]


@pytest.mark.parametrize(
    ("rows", "unread"),
    [
        ("time_s,rtt_ms,loss,mbps\n0.0,45.2,0.02,8.5\n0.5,48.1,0.03,6.2\n", "'rtt_ms', 'loss'"),
        ("# time rtt[ms] Mbit/s\n7 40 8.5\n7.5 41 6.2\n", "'rtt[ms]'"),
        ('"x";"Rate (kbit/s)";"Time (ms)"\n1;8500;0\n;6200;500\n', "'x'"),
        ("bandwidth_bps\ttime\n8500000\t0\n6200000\t0.5\n", ""),
        ("time_ms,kbps\n0,8500\n500,6200\n", ""),
        ("seconds,mbit\n0,8.5\n0.5,6.2\n", ""),
        ("seconds Wert\n0 8.5\n0.5 6.2\n", ""),
        ("0 8.5\n0.5 6.2\n", ""),
        ("0,8.5,\n0.5,6.2,\n", ""),
    ],
)
def test_columns_are_chosen_by_their_names(tmp_path: Path, rows: str, unread: str) -> None:
    scenario = traced(tmp_path, rows)
    assert steps(scenario) == [(0, 8_500_000), (500_000_000, 6_200_000)]
    if not unread:
        assert scenario.notes == ()
        return
    (note,) = scenario.notes
    assert (note.dotted, note.line) == ("bottleneck.down.trace", 5)
    assert note.message.endswith(f"but not {unread}")
    # The note remains when an unrelated setting changes.
    assert scenario.with_(seed=3).notes == scenario.notes


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("0 5 7\n1 6 8\n", "has 3 columns without names"),
        (
            "# time up down\n0 5 7\n1 6 8\n",
            "'time', 'up', 'down': it is not clear which are a time and a rate",
        ),
        ("time,rtt_ms\n0,5\n1,6\n", "'time', 'rtt_ms'; it needs a time and a rate"),
        ("time,rate_MBps\n0,5\n1,6\n", "; it needs a time and a rate"),
        (
            "time,DL_bitrate,UL_bitrate\n0,5,6\n",
            "it is not clear which are a time and a rate with its unit",
        ),
        ("time,a,rate_mbps\n0,1,5\n1,6\n", "line 3: '1,6' is not two numbers"),
        ("time,a,rate_mbps\n0,1,5\n1,,6,7\n", "line 3: 4 columns, but 3 in the first row"),
        ("time,a,rate_mbps\n0,5\n", "names 3 columns, and its rows have 2"),
        ("0,5\n1,,6\n", "line 2: '1,,6' is not two numbers"),
    ],
)
def test_an_ambiguous_rate_is_refused(tmp_path: Path, rows: str, message: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        traced(tmp_path, rows)
    (problem,) = refused.value.problems
    assert message in problem.message
    assert problem.dotted == "bottleneck.down.trace"


def test_delays_and_frames_are_chosen_by_name_too(tmp_path: Path) -> None:
    head = 'down.rate = "5 Mbit/s"\ndown.delay_trace'
    delayed = traced(tmp_path, "time,mbps,owd_us\n0,5,20000.5\n1,6,1e-05\n", head)
    down = delayed.realise(1).links[0].impairments
    assert [ns for _, ns in down.delay_steps] == [20_000_500, 0]
    with pytest.raises(ScenarioError, match="; it needs a time and a delay"):
        traced(tmp_path, "time,rtt_ms\n0,5\n1,6\n", head)
    (tmp_path / "v.csv").write_text("t_ms,type,bytes\n0,I,14210\n40,P,2380\n")
    video = f'{HEAD}rate = "9 Mbit/s"\n[[flow]]\nkind = "video"\ntrace = "v.csv"\n'
    (note,) = loads(video, folder=tmp_path).notes
    assert note.message == "v.csv: columns 1 and 3 are read, but not 'type'"


@pytest.mark.parametrize(
    ("number", "bps"),
    [
        ("3.1686448801742917", 3_168_645),
        ("0.00012345678901234567", 123),
        ("1e-05", 10),
        ("1.0e+02", 100_000_000),
        ("1.000000000000000000e+00", 1_000_000),
        ("1.5E1", 15_000_000),
        ("1e-300", 0),
        ("123456789012345678e-17", 1_234_568),
    ],
)
def test_numbers_are_read_as_numpy_and_python_write_them(
    tmp_path: Path, number: str, bps: int
) -> None:
    assert steps(traced(tmp_path, f"0.0000000000000001 7\n1.0e+00 {number}\n"))[1] == (10**9, bps)


def test_a_byte_order_mark_and_gzip_are_removed(tmp_path: Path) -> None:
    rows = b"\xef\xbb\xbf0,5\r\n1,6\r\n"
    plain = traced(tmp_path, rows)
    assert steps(plain) == [(0, 5_000_000), (10**9, 6_000_000)]
    packed = gzip.compress(rows)
    assert steps(traced(tmp_path, packed)) == steps(plain)
    with pytest.raises(ScenarioError, match="gzip can't unpack it"):
        traced(tmp_path, packed[:-9])


def test_of_a_long_trace_a_run_has_only_the_steps_within_its_duration(tmp_path: Path) -> None:
    """A long trace has more steps than a scenario may have. A run gets the steps within its
    duration."""
    # One transmission opportunity every 2 ms; each gives two steps.
    (tmp_path / "long").write_text("\n".join(map(str, range(2, 202_004, 2))) + "\n1000000\n")
    text = f'{HEAD}down.trace = "long"\n{FLOW}'
    scenario = loads(text, folder=tmp_path)
    (tmp_path / "long").unlink()
    short = steps(scenario)
    assert short[:3] == [(0, 0), (1_000_000, 12_000_000), (2_000_000, 0)]
    # After the run's duration: the fastest step, for which disciplines are dimensioned, and a step
    # with rate 0.
    assert short[-2:] == [(5 * 10**9, 12_000_000), (5_001_000_000, 0)]
    assert scenario.realise(1).links[0].rate_period_ns is None
    assert loads(scenario.to_toml()) == scenario
    # A longer run gets more steps, although the file is deleted.
    longer = steps(scenario.with_(duration="6 s"))
    assert longer[: len(short) - 2] == short[:-2]
    assert len(longer) == len(short) + 1000


def test_the_rate_that_is_shown_is_the_mean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Eight transmission opportunities at 1 ms and one at 20 ms: nine times 12 kbit in 20 ms.
    (tmp_path / "lte").write_text("1\n" * 8 + "20\n")
    (tmp_path / "a.toml").write_text(f'{HEAD}down.trace = "lte"\n{FLOW}')
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    assert status(["check", "a.toml"]) == 0
    assert "0 bit/s to 96 Mbit/s, mean 5.4 Mbit/s" in capsys.readouterr().out
    assert status(["check", "a.toml", "--json"]) == 0
    links = json.loads(capsys.readouterr().out)["links"]
    assert [link["mean_bps"] for link in links] == [5_400_000, 2_000_000]
    assert status(["run", "a.toml", "-q"]) == 0
    out = capsys.readouterr().out
    assert "mean 5.4 Mbit/s" in out
    assert "2 Mbit/s" in out


def test_a_rate_that_no_step_uses_can_not_be_set(tmp_path: Path) -> None:
    scenario = traced(tmp_path, "0 5\n1 6\n")
    with pytest.raises(ScenarioError, match="setting it changes nothing: its steps begin at 0 s"):
        scenario.with_({"bottleneck.down.rate": "9 Mbit/s"})
    # Changed together with the keys that conflict with it, in any order.
    gone = {"bottleneck.down.schedule": None, "bottleneck.down.repeat": None}
    for changes in (
        {"bottleneck.down.rate": "9 Mbit/s", **gone},
        {**gone, "bottleneck.down.rate": "9 Mbit/s"},
    ):
        assert steps(scenario.with_(changes)) == [(0, 9_000_000)]
    swept = f'{HEAD}rate = "1 Mbit/s"\nschedule = [["0 s", "5 Mbit/s"]]\n{FLOW}[sweep]\n'
    with pytest.raises(ScenarioError) as refused:
        loads(f'{swept}"bottleneck.rate" = ["1 Mbit/s", "2 Mbit/s"]\n')
    assert refused.value.problems[0].line == 10


def test_a_trace_of_losses_has_percentages_and_a_name_tells_other_units(tmp_path: Path) -> None:
    head = 'down.rate = "5 Mbit/s"\ndown.loss_trace'
    for text, expected in (
        ("0 0\n1 2.5\n2 0\n", [(0, 0.0), (10**9, 0.025), (2 * 10**9, 0.0)]),
        ("time_ms,rtt_ms,loss_pct\n0,20,1\n500,20,100\n", [(0, 0.01), (5 * 10**8, 1.0)]),
        ("t,loss_ratio\n0,0.5\n2,0.25\n", [(0, 0.5), (2 * 10**9, 0.25)]),
    ):
        (tmp_path / "line").write_text(text)
        scenario = loads(f'{HEAD}{head} = "line"\n{FLOW}', folder=tmp_path)
        loss = scenario.realise(1).links[0].loss
        assert isinstance(loss, SteppedLoss)
        assert (loss.steps, loss.period_ns) == (expected, expected[-1][0] * 2 - expected[-2][0])
        assert loads(scenario.to_toml()) == scenario
    for text, why in (
        ("0 101\n", "is out of range"),
        ("t,lost_packets\n0,5\n", "it needs a time and a loss"),
        ("t,loss,owd_ms\n0,5,5\n", "it is not clear which are a time and a loss"),
    ):
        (tmp_path / "line").write_text(text)
        with pytest.raises(ScenarioError, match=why):
            loads(f'{HEAD}{head} = "line"\n{FLOW}', folder=tmp_path)
