"""A user's own congestion control: its decisions, the code that is refused, and the engines it runs
on."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_controls import CUBIC, DELIVERIES, HEAD, RANDOM, RANDOM_RATES, acking
from shortened import unrendered

import sojourn
from sojourn import Scenario
from sojourn.errors import UserError
from sojourn.own import language
from sojourn.scenario import examples

RENO = (examples.FOLDER / "own_reno.py").read_text()
RATE = (examples.FOLDER / "own_rate.py").read_text()
pytest.importorskip("numba", reason="pip install sojourn[own]")

SCENARIO = """
title = "own"
duration = "20 s"
record = { packets = true }
bottleneck = { rate = "10 Mbit/s", delay = "20 ms", qdisc = "QDISC", down.loss = "0.2 %" }
flow = [
    { kind = "bulk", count = 2, ecn = true, stop = "16 s", congestion = "CONTROL", tcp = { hystart = false } },
    { kind = "transfers", size = "exp 80 kB", congestion = "CONTROL", start = "1 s", stop = "16 s", tcp = { hystart = false } },
    { kind = "ping", stop = "16 s" },
]
"""
BOTTLENECKS = ("pfifo limit 40", "codel ecn")


def scenario(tmp_path: Path, source: str, control: str, qdisc: str = "pfifo limit 40") -> Scenario:
    (tmp_path / "cc.py").write_text(source)
    text = SCENARIO.replace("CONTROL", control).replace("QDISC", qdisc)
    (tmp_path / "cc.toml").write_text(text)
    return sojourn.load(tmp_path / "cc.toml")


def run(loaded: Scenario, seed: int = 1) -> sojourn.Simulated:
    return sojourn.simulate(loaded, seeds=[seed])


# ---------------------------------------------------------------------------------------- decisions


@pytest.mark.parametrize("qdisc", BOTTLENECKS)
@pytest.mark.parametrize(
    ("source", "own", "native"),
    [(RENO, "cc.py:Reno", "reno"), (CUBIC, "cc.py:Cubic", "cubic")],
    ids=["reno", "cubic"],
)
def test_a_user_written_control_sends_the_same_packets_as_ours(
    tmp_path: Path, source: str, own: str, native: str, qdisc: str
) -> None:
    ours = run(scenario(tmp_path, source, native, qdisc))
    theirs = run(scenario(tmp_path, source, own, qdisc))
    assert ours.table("packets").height > 5000
    assert sum(ours.table("flows")["retransmits"]) + sum(ours.table("links")["marked_packets"]) > 20
    for table in ("packets", "flow", "queue", "transfers"):
        assert theirs.table(table).equals(ours.table(table)), table


@pytest.mark.parametrize("source", [RANDOM, RANDOM_RATES], ids=["acks", "rates"])
def test_all_data_arrive_whatever_own_code_sets(tmp_path: Path, source: str) -> None:
    for seed in range(1, 6):
        made = run(scenario(tmp_path, source, "cc.py:Random"), seed)
        for row in made.table("links").rows(named=True):
            left = row["arrived_packets"] - row["sent_packets"] - row["dropped_packets"]
            assert left == 0, row
        assert made.table("transfers").height > 3


def test_the_same_seed_gives_the_same_tables_and_another_others(tmp_path: Path) -> None:
    loaded = scenario(tmp_path, RANDOM, "cc.py:Random")
    one, other = (sojourn.simulate(loaded, seeds=2, jobs=jobs) for jobs in (1, 2))
    for seed in (1, 2):
        assert one.table("flow", seed).equals(other.table("flow", seed))
    assert not one.table("flow", 1).equals(one.table("flow", 2))


def test_a_scenario_sets_the_numbers_of_a_class(tmp_path: Path) -> None:
    def goodput(words: str) -> float:
        made = run(scenario(tmp_path, RENO, f"cc.py:Reno {words}".strip()))
        return float(made.table("flows")["delivered_bytes"].sum())

    assert goodput("beta 0.7") != goodput("") == goodput("beta 0.5")


def test_a_pacing_rate_bounds_what_leaves(tmp_path: Path) -> None:
    source = acking(
        "self.cwnd = 1000.0\nself.pacing_rate = self.x",
        "x: int = 2000000\n    pacing_rate: int = 0",
    )
    (tmp_path / "cc.py").write_text(source)
    (tmp_path / "cc.toml").write_text(
        'duration = "10 s"\nwarmup = "2 s"\n'
        'bottleneck = { rate = "100 Mbit/s", delay = "20 ms", qdisc = "pfifo limit 10000" }\n'
        'flow = [{ kind = "bulk", congestion = "cc.py:Mine" }]\n'
    )
    loaded = sojourn.load(tmp_path / "cc.toml")
    goodput = run(loaded).summary.summary["flows"][0]["goodput_mbps"]["mean"]
    assert goodput == pytest.approx(2.0, rel=0.01)
    faster = loaded.with_({"flow.bulk.congestion": "cc.py:Mine x 5000000"})
    goodput = run(faster).summary.summary["flows"][0]["goodput_mbps"]["mean"]
    assert goodput == pytest.approx(5.0, rel=0.01)


ALONE = """
duration = "DURATION"
warmup = "2 s"
bottleneck = { rate = "10 Mbit/s", delay = "20 ms", qdisc = "pfifo limit 1000" }
flow = [{ name = "new", kind = "bulk", congestion = "CONTROL" }, { kind = "ping" }]
"""


def alone(tmp_path: Path, source: str, control: str, duration: str = "10 s") -> Scenario:
    (tmp_path / "cc.py").write_text(source)
    text = ALONE.replace("CONTROL", control).replace("DURATION", duration)
    (tmp_path / "cc.toml").write_text(text)
    return sojourn.load(tmp_path / "cc.toml")


def test_delivery_rate_samples_equal_the_rate_of_the_path(tmp_path: Path) -> None:
    # The round trip is 40 ms plus the transmission of some of the ten segments. The receiver
    # acknowledges every second segment.
    loaded = alone(tmp_path, DELIVERIES, "cc.py:Deliveries", "4 s")
    made = run(loaded.with_({"flow.new.tcp.initial_window": 10}))
    round_trip = 2.0 * 10 * 1448 / made.table("flows")["delivered_bytes"][0]
    assert 0.041 < round_trip < 0.046
    # A window beyond the path's capacity: each sample is the link's rate, and none is higher.
    run(loaded.with_({"flow.new.congestion": "cc.py:Deliveries window 100 slowest 9500000"}))
    with pytest.raises(UserError, match=r"Deliveries\.on_delivery failed at .* too slow"):
        run(loaded.with_({"flow.new.congestion": "cc.py:Deliveries window 100 slowest 9700000"}))


def test_a_user_written_control_by_delivery_rate_fills_the_path_and_no_buffer(
    tmp_path: Path,
) -> None:
    def numbers(control: str, **changes: object) -> tuple[float, float]:
        loaded = alone(tmp_path, RATE, control, "30 s").with_(changes)
        said = run(loaded).summary.summary
        return said["flows"][0]["goodput_mbps"]["mean"], said["probes"][0]["rtt_ms"]["p95"]["mean"]

    goodput, delay = numbers("cc.py:Rate")
    cubic_goodput, cubic_delay = numbers("cubic")
    assert goodput > 0.95 * cubic_goodput
    assert delay < 60 < 500 < cubic_delay
    # This control does not react to loss.
    lossy = {"bottleneck.down.loss": "1 %"}
    assert numbers("cc.py:Rate", **lossy)[0] > 0.9 * goodput
    assert numbers("cubic", **lossy)[0] < 0.7 * goodput


def test_flows_of_a_control_by_delivery_rate_share_the_link(tmp_path: Path) -> None:
    loaded = alone(tmp_path, RATE, "cc.py:Rate", "60 s").with_({"flow.new.count": 2})
    flows = run(loaded).summary.summary["flows"]
    shares = [flow["goodput_mbps"]["mean"] for flow in flows[:2]]
    assert sum(shares) > 9
    assert min(shares) > 0.2 * max(shares)


def test_without_methods_a_loss_halves_cwnd_and_no_ack_grows_it(tmp_path: Path) -> None:
    made = run(
        scenario(tmp_path, HEAD + "class Mine(CongestionControl):\n    x: int = 0\n", "cc.py:Mine")
    )
    assert max(made.table("flow")["cwnd_bytes"].drop_nulls()) == 10 * 1448


# ----------------------------------------------------------------------------------------- failures

FAILURES = [
    ("self.x = 1 // (ack.acked - ack.acked)", "a division by zero"),
    ("self.x = (1 << 62) * (ack.acked + 3)", "a whole number beyond 64 bits"),
    ("self.x = int(self.ssthresh)", "a real number that does not fit a whole number"),
    ("while ack.now >= 0: self.x = 0", "loops that had not ended"),
    ("raise ValueError('too late')", "raised: too late"),
]


def test_a_failure_in_own_code_gives_an_error_with_its_line(tmp_path: Path) -> None:
    cases = "\n".join(f"if self.case == {i}:\n    {body}" for i, (body, _) in enumerate(FAILURES))
    source = acking(cases, "case: int = 0\n    x: int = 0")
    for i, (body, why) in enumerate(FAILURES):
        line = next(n for n, text in enumerate(source.splitlines(), 1) if text.strip() == body)
        with pytest.raises(UserError) as raised:
            run(scenario(tmp_path, source, f"cc.py:Mine case {i}"))
        problem = raised.value.problem
        assert problem.startswith(f"cc.py:{line}: Mine.on_ack failed at 0."), problem
        assert why in problem
    run(scenario(tmp_path, source, "cc.py:Mine case 99"))


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("self.cwnd = 0.5", "cwnd to 0.5"),
        ("self.cwnd = math.inf", "cwnd to inf"),
        ("self.cwnd = math.inf - math.inf", "cwnd to nan"),
        ("self.ssthresh = -1.0", "ssthresh to -1"),
        ("self.pacing_rate = -8", "pacing_rate to -8"),
    ],
)
def test_an_invalid_window_of_own_code_gives_an_error(tmp_path: Path, body: str, what: str) -> None:
    source = acking(body, "pacing_rate: int = 0")
    with pytest.raises(UserError, match=rf"cc.py: Mine.on_ack set {what} at 0\.\d+ s"):
        run(scenario(tmp_path, source, "cc.py:Mine"))


def test_a_threshold_after_a_loss_is_finite(tmp_path: Path) -> None:
    source = HEAD + (
        "class Mine(CongestionControl):\n"
        "    def on_ack(self, ack: Ack) -> None:\n        self.cwnd += 1\n\n"
        "    def on_loss(self, event: Congestion) -> None:\n        self.ssthresh = math.inf\n"
    )
    with pytest.raises(UserError, match=r"Mine.on_loss set ssthresh to inf"):
        run(scenario(tmp_path, source, "cc.py:Mine"))


REFUSED = [
    (acking("self.y = 1"), "cc.py:9: Mine has no field y"),
    (acking("self.x = ack.age"), "cc.py:9: ack has no age"),
    (acking("ack.rtt = 3"), "cc.py:9: ack.rtt can't be set"),
    (acking("self.pacing_rate = 3"), "cc.py:9: Mine has no field pacing_rate"),
    (acking("self.x = 1", "cwnd: float = 3.0"), "cc.py:6: cwnd is set by the connection"),
    (acking("self.x = 1", "pacing_rate: int = 3"), "cc.py:6: pacing_rate begins at 0"),
    (acking("open('x')"), "there is no function open here"),
    (acking("self.x = 1").replace("on_ack(self, ack: Ack)", "on_ack(self)"), "takes 1 arguments"),
    (
        acking("self.x = 1").replace("(CongestionControl)", ""),
        "neither a discipline nor a congestion control",
    ),
]


@pytest.mark.parametrize(("source", "why"), REFUSED)
def test_code_outside_of_the_language_is_refused_with_its_line(source: str, why: str) -> None:
    with pytest.raises(UserError) as raised:
        language.read(source, "cc.py", "Mine", "")
    assert why in raised.value.problem


def test_a_discipline_is_refused_as_a_congestion_control_and_the_reverse(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cc.py:Reno is a congestion control, not a discipline"):
        run(scenario(tmp_path, RENO, "reno", "cc.py:Reno"))
    codel = (examples.FOLDER / "own_codel.py").read_text()
    with pytest.raises(UserError, match=r"cc.py:CoDel is a discipline, not a congestion control"):
        run(scenario(tmp_path, codel, "cc.py:CoDel"))


def test_a_missing_file_is_reported_with_its_place(tmp_path: Path) -> None:
    text = SCENARIO.replace("CONTROL", "absent.py:Reno").replace("QDISC", "pfifo")
    (tmp_path / "cc.toml").write_text(text)
    with pytest.raises(UserError, match=r"can't read 'absent.py'") as raised:
        sojourn.load(tmp_path / "cc.toml")
    assert "^" in str(raised.value)
    (tmp_path / "cc.toml").write_text(text.replace("absent.py:Reno", "cc.py:"))
    with pytest.raises(UserError, match=r"does not name a class of its file"):
        sojourn.load(tmp_path / "cc.toml")


# ---------------------------------------------------------------------------------------- engines


def test_a_run_keeps_the_source_and_is_verified_without_the_file(tmp_path: Path) -> None:
    from sojourn.engine.verify import verify

    loaded = scenario(tmp_path, RENO, "cc.py:Reno")
    run = sojourn.run(loaded, out=tmp_path / "run")
    (tmp_path / "cc.py").unlink()
    assert "class Reno" in run.scenario_text
    assert {flow.congestion for flow in run.meta.flows} == {"cc.py:Reno", None}
    found = verify([sojourn.Run.open(tmp_path / "run")])[0]
    assert found.same_build
    assert found.equal


def test_a_changed_source_or_compiler_changes_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sojourn.engine import seed_source
    from sojourn.engine.registry import find
    from sojourn.own import compiled

    def named(source: str) -> tuple[str, str]:
        loaded = scenario(tmp_path, source, "cc.py:Reno")
        return loaded.fingerprint(), seed_source.key(find("sim"), loaded.realise(1))

    one, other = named(RENO), named(RENO.replace("+= 1", "+= 2"))
    assert one[0] != other[0]
    assert one[1] != other[1]
    monkeypatch.setattr(compiled, "_maker", lambda: "own another")
    assert named(RENO)[1] != one[1]


def test_a_worker_runs_what_it_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sojourn import _core, metrics
    from sojourn.engine import seed_source, worker
    from sojourn.engine.registry import find
    from sojourn.engine.request import meta_of

    loaded = scenario(tmp_path, RENO, "cc.py:Reno")
    sim, realised = find("sim"), loaded.realise(1)
    about = metrics.about(meta_of(sim, loaded, [1], realised), _core.CAUSES)
    (tmp_path / "cc.py").unlink()
    monkeypatch.setattr(worker, "_wanted", lambda: lambda _: True)
    asked = worker.SeedRequest(loaded.to_toml(), 1, about, seed_source.key(sim, realised))
    (ran,) = worker.work_off("sim", [asked])
    assert isinstance(ran, worker.Ran), ran
    assert ran.packed == seed_source.make(sim, realised, about, lambda _: True).packed


def test_no_kernel_runs_own_code(tmp_path: Path) -> None:
    from sojourn.engine.kernel.plan import fits
    from sojourn.engine.registry import find

    loaded = scenario(tmp_path, RENO, "cc.py:Reno")
    assert fits
    with pytest.raises(UserError, match=r"cc\.py:Reno is Python, which no kernel runs"):
        find("kernel").check(loaded.realise(1))


def test_the_command_line_accepts_own_code_wherever_it_accepts_a_congestion_control(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sojourn.cli import status

    unrendered(monkeypatch)
    scenario(tmp_path, RENO, "cubic")
    monkeypatch.chdir(tmp_path)
    key = "flow.bulk.congestion"
    less = ["--set", "duration=2 s", "-q"]
    for words in (
        ["run", "cc.toml", "--set", f"{key}=cc.py:Reno", "-o", "run", *less],
        ["run", "cc.toml", "--vary", f"{key}=reno,cc.py:Reno beta 0.7", "-o", "swept", *less],
        ["evaluate", "cc.py:Reno", "--only", "5.1.1", "--seeds", "2", "-q", "-o", "evaluated"],
    ):
        assert status(words) == 0, words
    assert "cc.py:Reno" in (tmp_path / "evaluated" / "report.html").read_text()
