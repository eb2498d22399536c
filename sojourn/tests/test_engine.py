"""The engine: running several seeds and variants at once changes nothing, and finished seeds are
kept whatever stops the work. Tests of threads, interrupts and failures use a stand-in for the
compiled core, which can be slow or fail on command. Tests of results use the core itself."""

import errno
import gc
import json
import math
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from small_run import Tables, small_tables

import sojourn
from sojourn import _core, engine, metrics
from sojourn.cli import status
from sojourn.engine import (
    Interrupted,
    Progress,
    estimate,
    fingerprint,
    run,
    run_all,
    run_more,
    runs,
    sim,
    variants,
)
from sojourn.errors import UserError
from sojourn.figures import series
from sojourn.records import Run, RunError
from sojourn.scenario import Qdisc, Scenario, ScenarioError, linux, loads
from sojourn.scenario.realised import Realised

SHORT = """
title = "Two downloads and a ping"
duration = "3 s"
warmup = "1 s"
[bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
qdisc = "pfifo limit 50"
[[flow]]
kind = "bulk"
count = 2
rtt = "uniform 30 ms .. 60 ms"
start = "uniform 0 s .. 500 ms"
[[flow]]
kind = "ping"
"""
SWEEP = SHORT + '[sweep]\n"bottleneck.qdisc" = ["pfifo limit 50", "codel", "fq_codel"]\n'

Core = Callable[[str, Callable[[int], bool] | None], Tables]


def scenario(text: str = SHORT) -> Scenario:
    return loads(text)


def stand_in(realised: Realised) -> Tables:
    """Tables for the scenario's two links and three flows; the seed shows in one number."""
    tables = small_tables()
    links = tables["links"]
    tables["links"] = {name: np.concatenate([values, values]) for name, values in links.items()}
    tables["links"]["link"] = np.array([0, 1])
    tables["flows"]["delivered_bytes"] = np.array([realised.seed * 1000, 1000, 0])
    return tables


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> Callable[[Core], None]:
    def put(body: Core) -> None:
        monkeypatch.setattr(_core, "run", body)

    return put


def quick(realised: Realised, _progress: Callable[[int], bool] | None) -> Tables:
    return stand_in(realised)


# ----------------------------------------------------------------------------------- written Runs


def test_a_run_records_exactly_what_was_run(tmp_path: Path) -> None:
    done = run(scenario(), out=tmp_path / "run", seeds=[4, 2])
    meta = Run.open(tmp_path / "run").meta
    assert meta == done.meta
    assert (meta.title, meta.engine, meta.version) == (
        "Two downloads and a ping",
        "sim",
        _core.VERSION,
    )
    assert (meta.duration_ns, meta.warmup_ns) == (3_000_000_000, 1_000_000_000)
    assert (meta.seeds, meta.seeds_asked) == ((2, 4), (4, 2))
    assert {link.name: (link.qdisc, link.rate_bps, link.delay_ns) for link in meta.links} == {
        "up": ("pfifo limit 50", 5_000_000, 10_000_000),
        "down": ("pfifo limit 50", 5_000_000, 10_000_000),
    }
    assert [
        (flow.name, flow.kind, flow.congestion, flow.group, flow.path) for flow in meta.flows
    ] == [
        ("bulk.1", "bulk", "cubic", 0, ("down",)),
        ("bulk.2", "bulk", "cubic", 0, ("down",)),
        ("ping", "ping", None, 1, ("up",)),
    ]
    assert meta.fingerprint == fingerprint(scenario().fingerprint([2, 4]), _core.ENGINE)
    assert (meta.engine_build, meta.format) == (_core.ENGINE, 2)
    assert meta.host["sojourn"] == _core.VERSION
    assert set(meta.host) >= {"python", "polars", "numpy"}
    assert loads(done.scenario_text) == scenario()


def test_the_core_writes_the_tables_that_records_promises(tmp_path: Path) -> None:
    text = SHORT + "[record]\npackets = true\nheaders = true\n"
    done = run(scenario(text), out=tmp_path / "run")
    for name in sojourn.records.TABLES:
        assert done.table(name, seed=1).columns, name


STOPS = """
duration = "4 s"
[bottleneck]
rate = "100 kbit/s"
delay = "5 ms"
schedule = [["1 s", "0 bit/s"]]
[[flow]]
kind = "ping"
packet = "65535 B"
interval = "2 s"
[[flow]]
kind = "bulk"
"""
OUTAGE = """
duration = "3 s"
[bottleneck]
rate = "5 Mbit/s"
delay = "10 ms"
schedule = [["0 s", "0 bit/s"], ["1 s", "5 Mbit/s"]]
[[flow]]
kind = "ping"
packet = "1250 B"
"""


def test_a_link_that_stops_for_good_has_tables_and_a_null_base_rtt(
    tmp_path: Path,
) -> None:
    done = run(scenario(STOPS), out=tmp_path / "run")
    # 65 kB take 5 s at 100 kbit/s, and the link stops after one.
    assert done.table("flows", seed=1)["base_rtt_ns"].is_null().to_list() == [True, False]
    shown = json.loads(sojourn.metrics.summary(done).to_json())
    assert shown["runs"][0]["probes"][0]["base_rtt_ms"] is None


def test_an_outage_at_the_start_does_not_count_in_the_base_rtt() -> None:
    done = run(scenario(OUTAGE))
    # 2 ms of transmission and 10 ms of propagation each way.
    assert done.table("flows", seed=1)["base_rtt_ns"].item() == 24_000_000
    assert done.table("probe", seed=1)["rtt_ns"].min() == 24_000_000


TEN_YEARS = """
duration = "87600 h"
[bottleneck]
rate = "1 bit/s"
delay = "5 ms"
qdisc = "pfifo limit 850"
[[flow]]
kind = "udp"
direction = "down"
rate = "10 bit/s"
"""


def test_a_sum_of_waiting_beyond_64_bits_is_kept(tmp_path: Path) -> None:
    done = run(scenario(TEN_YEARS), out=tmp_path / "run")
    (down,) = (
        queue
        for queue in sojourn.metrics.summary(done).runs[0]["queues"]
        if queue["link"] == "down"
    )
    row = done.table("links", seed=1).filter(pl.col("link") == "down").row(0, named=True)
    assert row["sojourn_sum_ns"] > 2**64
    # Little's law: the mean number of waiting packets is the departure rate times the mean wait,
    # except for packets that still wait.
    waited = down["sojourn_ms"]["mean"] / 1e3 * row["sent_packets"] / (87_600 * 3600)
    assert waited == pytest.approx(down["backlog_packets"]["mean"], rel=0.04)
    # A packet of 1500 bytes takes 12 000 s, and one arrives each 1200 s. 850 wait once the queue is
    # full. A packet that arrives just as one leaves finds no place; the next one does, 1200 s into
    # a transmission.
    assert down["sojourn_ms"]["max"] == (850 * 12_000 - 1200) * 1000


def test_events_at_the_end_of_the_run_are_in_the_last_row_of_a_time_line() -> None:
    # A packet arrives every 10 ms, leaves at once, and arrives at the far end at once: the last one
    # at the very end.
    text = 'duration = "1 s"\n[bottleneck]\nrate = "1 Gbit/s"\ndelay = "0 s"\n'
    text += '[[flow]]\nkind = "udp"\nrate = "32 kbit/s"\npacket = "40 B"\n[record]\nqueue = "100 ms"\nflow = "300 ms"\n'
    done = run(scenario(text))
    queue, flow = done.table("queue", seed=1), done.table("flow", seed=1)
    assert done.table("links", seed=1)["sent_packets"].sum() == 101
    assert queue["sent_packets"].sum() == 101
    assert flow["t_ns"].to_list() == [300_000_000, 600_000_000, 900_000_000, 1_000_000_000]


def test_results_do_not_depend_on_the_number_of_threads(tmp_path: Path) -> None:
    # Losses are drawn during a run; all other draws come before it.
    lossy = scenario(SWEEP).with_({"bottleneck.loss": "1 %"})
    run_all(lossy, seeds=3, out=tmp_path / "one", jobs=1)
    run_all(lossy, seeds=3, out=tmp_path / "many", jobs=5)
    files = sorted(
        path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.parquet")
    )
    assert len(files) >= 3 * 3 * 10
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "many" / file).read_bytes(), (
            file
        )


def test_another_seed_gives_other_tables(tmp_path: Path) -> None:
    done = run(scenario(), seeds=2)
    assert not done.table("flow", seed=1).equals(done.table("flow", seed=2))


def test_a_sweep_gives_a_run_for_each_variant_in_its_order(tmp_path: Path) -> None:
    runs = run_all(scenario(SWEEP), out=tmp_path)
    assert [each.name for each in runs] == ["pfifo limit 50", "codel", "fq_codel"]
    assert [each.path.name for each in runs] == ["pfifo-limit-50", "codel", "fq-codel"]
    assert [each.name for each in Run.find(tmp_path)] == ["pfifo limit 50", "codel", "fq_codel"]


def test_each_lazy_name_of_the_package_exists_in_its_module() -> None:
    assert [*engine._HOME] == engine.__all__
    assert all(hasattr(engine, name) for name in engine.__all__)


def test_a_sweep_is_refused_where_one_run_is_wanted() -> None:
    with pytest.raises(ValueError, match="run_all"):
        run(scenario(SWEEP))


def test_without_a_folder_the_run_is_temporary() -> None:
    done = run(scenario())
    folder = done.path
    assert done.table("links").height == 2
    del done
    assert not folder.exists()


def test_seeds_may_be_counted_or_named(core: Callable[[Core], None]) -> None:
    core(quick)
    assert run(scenario()).seeds == (1,)
    assert run(scenario(), seeds=3).seeds == (1, 2, 3)
    assert run(scenario(), seeds=[7, 3, 7]).seeds == (3, 7)
    assert run(scenario("seeds = [5, 9]\n" + SHORT)).seeds == (5, 9)
    assert run(scenario("seed = 10\n" + SHORT), seeds=2).seeds == (10, 11)


def test_adding_seeds_later_gives_the_same_run_as_running_all_at_once(tmp_path: Path) -> None:
    one = scenario()
    later, at_once = (
        run(one, seeds=1, out=tmp_path / "later"),
        run(one, seeds=3, out=tmp_path / "whole"),
    )
    run_more([later], [one], [[1, 2, 3]])
    assert Run.open(later.path).seeds == (1, 2, 3)
    for key in ("seeds_asked", "fingerprint", "checksums"):
        assert getattr(Run.open(later.path).meta, key) == getattr(at_once.meta, key)


def test_more_seeds_are_of_the_same_scenario_and_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = scenario()
    kept = run(one, seeds=1, out=tmp_path / "kept")
    with pytest.raises(UserError, match="from another scenario"):
        run_more([kept], [one.with_(duration="4 s")], [[2]])
    monkeypatch.setattr(sim.Simulator, "build", "0123456789abcdef")
    with pytest.raises(UserError, match="by another build"):
        run_more([kept], [one], [[2]])
    assert Run.open(kept.path).meta.seeds_asked == (1,)


def test_labels_become_different_names_of_folders() -> None:
    assert runs.folder_names(["codel target 5ms", "codel/target 5ms", "", "../../x", "CoDel"]) == [
        "codel-target-5ms",
        "codel-target-5ms-2",
        "run",
        "x",
        "codel",
    ]


# --------------------------------------------------------------------------- threads and progress


def test_runs_go_in_parallel_up_to_the_number_of_jobs(core: Callable[[Core], None]) -> None:
    # Three runs must meet before any of them continues. A fourth one in parallel would break the
    # barrier.
    meeting = threading.Barrier(3, timeout=60)
    inside: set[int] = set()
    most: list[int] = []

    def together(realised: Realised, progress: Callable[[int], bool] | None) -> Tables:
        inside.add(threading.get_ident())
        meeting.wait()
        most.append(len(inside))
        return quick(realised, progress)

    core(together)
    assert run(scenario(), seeds=6, jobs=3).seeds == (1, 2, 3, 4, 5, 6)
    assert max(most) == 3


def test_progress_rises_to_the_end(core: Callable[[Core], None]) -> None:
    def stepwise(realised: Realised, progress: Callable[[int], bool] | None) -> Tables:
        assert progress is not None
        for second in range(4):
            assert progress(second * 1_000_000_000)
            time.sleep(0.03)
        return quick(realised, progress)

    core(stepwise)
    seen: list[Progress] = []
    run(scenario(), seeds=4, jobs=2, progress=seen.append)
    assert seen[-1] == Progress(finished=4, runs=4, fraction=1.0)
    assert [p.finished for p in seen] == sorted(p.finished for p in seen)
    assert [p.fraction for p in seen] == sorted(p.fraction for p in seen)


def test_the_expected_time_is_printed_once_before_the_work_begins(
    core: Callable[[Core], None],
) -> None:
    core(quick)
    seen: list[Progress] = []
    run(scenario(), seeds=4, jobs=2, progress=seen.append)
    assert seen[0] == Progress(finished=0, runs=4, fraction=0.0, expected_s=seen[0].expected_s)
    assert seen[0].expected_s == pytest.approx(2 * estimate.run_s("sim", scenario().realise(1)))
    assert {p.expected_s for p in seen[1:]} == {None}


def test_expected_time_is_that_of_all_runs_over_the_threads_and_not_less_than_the_longest() -> None:
    short, long = (scenario().with_(duration=length).realise(1) for length in ("3 s", "3000 s"))
    for name in estimate.TAKES:
        short_s, long_s = estimate.run_s(name, short), estimate.run_s(name, long)
        assert short_s < long_s
        assert estimate.expected_s([(short_s, 4)], 1) == pytest.approx(4 * short_s)
        assert estimate.expected_s([(short_s, 4)], 9) == pytest.approx(short_s)
        assert estimate.expected_s([(short_s, 4), (long_s, 1)], 4) == pytest.approx(long_s)
    # A kernel is slower than the simulator, and real time can't be shortened.
    assert estimate.run_s("kernel-uml", long) > estimate.run_s("sim", long)
    assert estimate.run_s("netns", long) > 3000


# ------------------------------------------------------------------------------- interrupted work


def stubborn(after: int) -> Core:
    """A core whose runs of seeds above `after` continue until they are stopped."""

    def body(realised: Realised, progress: Callable[[int], bool] | None) -> Tables:
        assert progress is not None
        if realised.seed <= after:
            return quick(realised, progress)
        while progress(1):
            time.sleep(0.005)
        raise _core.Cancelled

    return body


def test_an_interrupt_keeps_finished_runs_and_reports_the_missing_ones(
    tmp_path: Path, core: Callable[[Core], None]
) -> None:
    core(stubborn(after=2))

    def interrupt(p: Progress) -> None:
        if p.finished == 2:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as stop:
        run(scenario(), seeds=5, out=tmp_path / "run", jobs=2, progress=interrupt)
    assert [seed for _, seed in stop.value.missing] == [3, 4, 5]
    read = Run.open(tmp_path / "run")
    assert read.seeds == (1, 2)
    assert read.meta.seeds_asked == (1, 2, 3, 4, 5)
    assert not [path for path in (tmp_path / "run").iterdir() if path.name.startswith(".")]


MANY = """
duration = "1 s"
[bottleneck]
rate = "100 Mbit/s"
delay = "10 ms"
[[flow]]
kind = "bulk"
count = 99999
size = "20 kB"
"""


class StoppedError(Exception):
    """Raised by a signal's handler."""


@pytest.mark.parametrize(
    "work",
    [
        lambda: [loads(MANY).realise(seed) for seed in range(40)],
        lambda: loads(MANY).fingerprint(range(60)),
        lambda: metrics.over_seeds([{"flows": [{"a": 1.0, "b": 2, "c": {"d": 3.0}}] * 99999}] * 40),
    ],
    ids=["realise", "fingerprint", "over_seeds"],
)
def test_ctrl_c_works_at_once_with_a_hundred_thousand_flows(work: Callable[[], object]) -> None:
    def handle(*_: object) -> None:
        raise StoppedError

    former = signal.signal(signal.SIGPROF, handle)
    # Python ignores an exception in the callback of a weak reference. So no garbage of other tests
    # may be collected while the signal's handler can raise one.
    gc.collect()
    gc.disable()
    try:
        # CPU time, like the bound, so that the machine's load does not matter.
        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, 0.3)
        with pytest.raises(StoppedError):
            work()
        assert time.process_time() - began < 2
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, former)
        gc.enable()


def test_runs_do_not_get_far_ahead_of_the_writing(
    core: Callable[[Core], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    most = 0
    write = Run.add_seed

    def counted(realised: Realised, progress: Callable[[int], bool] | None) -> Tables:
        begun.append(realised.seed)
        return quick(realised, progress)

    def slow(self: Run, *what: Any, **how: Any) -> None:
        nonlocal most
        # Until no thread runs any more.
        before = -1
        while before != (before := len(begun)):
            time.sleep(0.05)
        most = max(most, len(begun) - len(self.seeds))
        write(self, *what, **how)

    core(counted)
    monkeypatch.setattr(Run, "add_seed", slow)
    assert len(run(scenario(), seeds=20, jobs=2).seeds) == 20
    assert most <= 4


def test_the_summary_of_a_new_run_equals_that_of_its_folder(tmp_path: Path) -> None:
    done = run(scenario(), seeds=3, out=tmp_path / "run")
    assert set(done.numbers) == {1, 2, 3}
    assert sojourn.summary(done).to_json() == sojourn.summary(Run.open(tmp_path / "run")).to_json()


def test_a_table_that_is_damaged_after_it_was_written_is_refused_in_a_summary(
    tmp_path: Path,
) -> None:
    done = run(scenario(), seeds=2, out=tmp_path / "run")
    file = tmp_path / "run" / "seed-2" / "rtt.parquet"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(RunError, match=r"rtt\.parquet"):
        sojourn.summary(done)


def test_meta_is_written_at_the_first_seed_then_rarely_and_at_the_end(
    tmp_path: Path, core: Callable[[Core], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    core(quick)
    # However fast it is, meta.json takes too long to be written often.
    monkeypatch.setattr(engine.runs, "NAMING", math.inf)
    named: list[tuple[int, ...]] = []
    write = Run._write_meta

    def seen(self: Run) -> None:
        write(self)
        named.append(Run.open(self.path).seeds)

    monkeypatch.setattr(Run, "_write_meta", seen)
    run(scenario(), seeds=20, out=tmp_path / "run", jobs=1)
    assert named == [(), (1,), tuple(range(1, 21))]


def test_an_interrupt_leaves_no_thread_behind(core: Callable[[Core], None]) -> None:
    core(stubborn(after=0))

    def interrupt(_: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        run(scenario(), seeds=5, jobs=3, progress=interrupt)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("sojourn")]


def test_a_panic_of_the_simulator_is_an_error_with_its_sentence() -> None:
    realised = scenario().realise(1)
    inconsistent = Realised(
        duration_ns=10**9,
        seed=1,
        links=realised.links[:1],
        flows=realised.flows,
        queue_ns=10**8,
        flow_ns=10**8,
    )
    with pytest.raises(
        RuntimeError, match="broke an invariant: a path names a link that does not exist"
    ):
        _core.run(inconsistent)


def test_a_failure_in_one_run_is_shown_and_the_others_are_kept(
    tmp_path: Path, core: Callable[[Core], None]
) -> None:
    def failing(realised: Realised, progress: Callable[[int], bool] | None) -> Tables:
        if realised.seed == 2:
            raise RuntimeError("an invariant broke")
        return quick(realised, progress)

    core(failing)
    with pytest.raises(RuntimeError, match="invariant"):
        run(scenario(), seeds=2, out=tmp_path / "run", jobs=1)
    assert Run.open(tmp_path / "run").seeds == (1,)


def test_a_disk_that_fills_up_stops_the_work_and_keeps_finished_seeds(
    tmp_path: Path, core: Callable[[Core], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    core(quick)
    real = Path.write_bytes

    def full(self: Path, data: Any) -> int:
        if ".seed-3" in str(self):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(self, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RunError, match="seed 3 could not be written"):
        run(scenario(), seeds=4, out=tmp_path / "run", jobs=1)
    finished = set(Run.open(tmp_path / "run").seeds)
    assert {1, 2} <= finished
    assert 3 not in finished


def test_a_full_disk_is_found_before_anything_runs(
    tmp_path: Path, core: Callable[[Core], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    core(lambda text, progress: pytest.fail("a simulation ran"))
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(RunError, match="MB free"):
        run(scenario(), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_every_folder_is_checked_before_anything_runs(
    tmp_path: Path, core: Callable[[Core], None]
) -> None:
    core(lambda text, progress: pytest.fail("a simulation ran"))
    (tmp_path / "fq-codel").mkdir()
    (tmp_path / "fq-codel" / "mine.txt").write_text("")
    with pytest.raises(RunError, match="not a Run"):
        run_all(scenario(SWEEP), out=tmp_path, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["fq-codel"]


def test_a_run_s_folder_can_not_hold_the_runs_of_a_sweep(
    tmp_path: Path, core: Callable[[Core], None]
) -> None:
    core(quick)
    run(scenario(), out=tmp_path)
    with pytest.raises(UserError, match="itself a Run"):
        run_all(scenario(SWEEP), out=tmp_path)


# ------------------------------------------------------------------------------------ comparisons


def qdiscs_of(variant: Scenario) -> dict[str, str]:
    return {link.name: link.qdisc.kind for link in variant.realise(1).links}


def test_every_discipline_can_replace_the_one_at_the_bottleneck() -> None:
    contenders = variants(scenario(SWEEP), ["pfifo", "codel target 20ms"])
    assert [each.label for each in contenders] == ["pfifo", "codel target 20ms"]
    assert qdiscs_of(contenders[1]) == {"up": "codel", "down": "codel"}
    assert not contenders[0].sweep


def test_a_direction_with_its_own_discipline_keeps_it() -> None:
    text = SHORT.replace(
        'rate = "5 Mbit/s"', 'up.rate = "1 Mbit/s"\ndown.rate = "9 Mbit/s"\ndown.qdisc = "bfifo"'
    )
    assert qdiscs_of(variants(scenario(text), ["codel"])[0]) == {"up": "codel", "down": "bfifo"}


def test_red_gets_the_sizes_that_tc_red_recommends_for_each_direction_s_rate() -> None:
    text = SHORT.replace('rate = "5 Mbit/s"', 'up.rate = "20 Mbit/s"\ndown.rate = "100 Mbit/s"')
    [variant] = variants(scenario(text), ["red"])
    red = {link.name: link.qdisc.params for link in variant.realise(1).links}
    # 20 ms at 20 Mbit/s are 50000 bytes; max is three times min, limit four times max.
    assert (red["up"]["min"], red["up"]["max"], red["up"]["limit"]) == (50_000, 150_000, 600_000)
    assert red["up"]["burst"] == (2 * 50_000 + 150_000) // 3000
    assert red["up"]["bandwidth"] == 20_000_000
    assert red["down"]["min"] == 250_000
    assert variant.label == "red"


def test_a_run_records_which_kernel_its_linux_is() -> None:
    for qdisc, conditions in (
        ("codel", {"variant linux": f"of {linux.LINUX_RELEASE}"}),
        ("codel variant linux6.12", {"variant linux": f"of {linux.LINUX_RELEASE}"}),
        ("codel variant linux2012", {}),
        ("pfifo", {}),
    ):
        done = run(scenario().with_({"bottleneck.qdisc": qdisc, "sweep": None}))
        assert done.meta.conditions == conditions, qdisc


def test_red_on_a_slow_link_begins_at_five_packets_not_at_less() -> None:
    assert Qdisc.parse("red").at(500_000).text.startswith("red limit 60000 min 5000 max 15000 ")


def test_disciplines_with_given_sizes_stay_as_written() -> None:
    for text in ("red limit 400000 avpkt 1000", "red variant ns2", "codel", "pfifo limit 5"):
        assert Qdisc.parse(text).at(10_000_000) == Qdisc.parse(text)
    assert Qdisc.parse("red ecn").at(10_000_000).text.endswith(" ecn")


def test_a_comparison_refuses_what_it_can_not_answer() -> None:
    with pytest.raises(ScenarioError, match="named twice: codel"):
        variants(scenario(), ["codel", "pfifo", "codel"])
    with pytest.raises(ScenarioError, match="codell"):
        variants(scenario(), ["codell"])


def test_if_both_directions_have_a_discipline_the_direction_must_be_named() -> None:
    text = SHORT.replace(
        'rate = "5 Mbit/s"', 'rate = "5 Mbit/s"\nup.qdisc = "bfifo"\ndown.qdisc = "pfifo"'
    )
    # Otherwise every contender would be the same scenario.
    with pytest.raises(ScenarioError, match=r"--link up\|down"):
        variants(scenario(text), ["codel", "fq_codel"])
    with pytest.raises(ScenarioError, match="links: up, down"):
        variants(scenario(text), ["codel"], link="core")
    [variant] = variants(scenario(text), ["codel"], link="up")
    assert qdiscs_of(variant) == {"up": "codel", "down": "pfifo"}


@pytest.mark.parametrize("seeds", [0, -1, []])
def test_a_run_without_a_seed_is_refused(seeds: Any) -> None:
    with pytest.raises(ValueError, match="at least one"):
        run(scenario(), seeds=seeds)


def test_in_a_graph_the_link_is_named() -> None:
    graph = """
    duration = "1 s"
    [[link]]
    name = "core"
    from = "a"
    to = "b"
    rate = "5 Mbit/s"
    delay = "1 ms"
    [[flow]]
    kind = "bulk"
    from = "a"
    to = "b"
    """
    with pytest.raises(ScenarioError, match="--link core"):
        variants(loads(graph), ["codel"])
    with pytest.raises(ScenarioError, match="links: core"):
        variants(loads(graph), ["codel"], link="cor")
    assert qdiscs_of(variants(loads(graph), ["codel"], link="core")[0])["core"] == "codel"


def test_a_host_s_access_link_is_counted_but_not_sampled_nor_drawn(tmp_path: Path) -> None:
    text = """
title = "Behind a slow access link"
duration = "2 s"
bottleneck = {rate = "10 Mbit/s", delay = "5 ms"}
[[flow]]
kind = "bulk"
access = "1 Mbit/s"
"""
    done = run(loads(text), out=tmp_path / "run")
    assert {link.name for link in done.meta.links if not link.sampled} == {
        "bulk/access",
        "bulk/access-back",
    }
    assert set(done.table("queue")["link"].unique()) == {"down", "up"}
    backlog = dict(done.table("links").select("link", "backlog_mean_packets").iter_rows())
    assert backlog["bulk/access"] > backlog["down"], "the queue is at the access link"
    assert series.bottleneck(done) == "down", "a figure shows a link with a time line"


def test_a_codepoint_from_the_file_reaches_the_queue(tmp_path: Path) -> None:
    base = scenario().with_({"bottleneck.qdisc": "pfifo_fast limit 50"})
    longest = {}
    for dscp in ("throughput", "cs0"):
        done = run(base.with_({"flow.bulk.dscp": dscp}), out=tmp_path / dscp)
        longest[dscp] = done.table("probe")["rtt_ns"].drop_nulls().to_numpy().max() / 1e6
    # 20 ms of delay, 2.4 ms of a full packet on the way down, and less than 1 ms of short packets.
    assert longest["throughput"] < 23.4, "pings pass the files in the middle band"
    assert longest["cs0"] > 60, "in the same band pings wait"


def test_jitter_is_each_host_s_so_that_a_round_trip_has_it_twice(tmp_path: Path) -> None:
    text = """
title = "Pings alone"
duration = "60 s"
bottleneck = {rate = "unlimited", delay = "5 ms"}
[[flow]]
kind = "ping"
jitter = "4 ms"
"""
    done = run(loads(text), out=tmp_path / "run")
    assert done.table("flows")["base_rtt_ns"].to_list() == [10_000_000]
    rtt, forward = (done.table("probe")[name].to_numpy() / 1e6 for name in ("rtt_ns", "forward_ns"))
    assert len(rtt) > 590
    back = rtt - forward
    for way in (forward, back):
        assert 5 <= way.min() < 5.1
        assert 8.9 < way.max() < 9
        assert way.mean() == pytest.approx(7, abs=0.2)
    # The two draws are independent.
    assert abs(np.corrcoef(forward, back)[0, 1]) < 0.15


@pytest.mark.parametrize(
    ("shares", "least", "most"), [("dual-srchost", 0.4, 0.6), ("flows", 0.0, 0.2)]
)
def test_cake_gives_each_host_half_however_many_flows_it_has(
    shares: str, least: float, most: float, tmp_path: Path
) -> None:
    """The same test as in the guest (sojourn/tests/kernel/test_linux_only.py): a flow of the laptop
    against eight of the phone."""
    text = """
    duration = "8 s"
    warmup = "2 s"
    [bottleneck]
    rate = "20 Mbit/s"
    delay = "5 ms"
    up.qdisc = "cake bandwidth 10mbit besteffort SHARES"
    [[flow]]
    name = "one"
    kind = "bulk"
    direction = "up"
    rtt = "20 ms"
    hosts = "laptop"
    [[flow]]
    name = "eight"
    kind = "bulk"
    direction = "up"
    count = 8
    rtt = "20 ms"
    hosts = "phone"
    """
    flows = run(loads(text.replace("SHARES", shares)), out=tmp_path / "run").table("flows")
    delivered = dict(zip(flows["flow"], flows["delivered_bytes"], strict=True))
    assert least < delivered["one"] / sum(delivered.values()) < most


@pytest.mark.parametrize(
    "words",
    [
        ["run", "adt.toml", "-e", "kernel"],
        ["run", "adt.toml", "-e", "kernel-qemu"],
        ["run", "adt.toml", "-e", "kernel-7.3"],
        ["compare", "adt.toml", "fq_codel", "adt", "-e", "kernel"],
        ["agree", "adt.toml"],
        ["replay", "adt.toml"],
        ["evaluate", "adt", "-e", "kernel"],
    ],
    ids=" ".join,
)
def test_scenarios_that_no_kernel_can_run_are_refused_for_that_reason(
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("adt.toml").write_text(SHORT.replace("pfifo limit 50", "adt limit 50"))
    assert status([*words, "-q"]) == 2
    stderr = capsys.readouterr().err
    assert "Linux has no queue discipline 'adt'" in stderr
    assert "no guest" not in stderr


def test_the_error_for_a_missing_guest_names_the_command_that_makes_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "short.toml"
    file.write_text(SHORT)
    assert status(["run", str(file), "-e", "kernel-7.3", "-q"]) == 2
    assert "sojourn kernel setup --linux 7.3" in capsys.readouterr().err


STEPS = """
duration = "10 h"
[bottleneck]
delay = "10 ms"
schedule = [["0 s", "10 Mbit/s"], ["1 us", "5 Mbit/s"]]
repeat = "2 us"
[[flow]]
kind = "ping"
"""
CROWD = """
duration = "700 ms"
[bottleneck]
rate = "2 Mbit/s"
delay = "100 ms"
[[flow]]
kind = "bulk"
count = 20000
"""


@pytest.mark.parametrize(
    ("text", "least_s"),
    [
        # 10 000 flows took 2.7 s of user time, and 6e7 steps of two links 3 s.
        (CROWD, 2),
        (STEPS, 1000),
        # 7.2e9 updates of two links' controllers.
        (STEPS.replace("10 h", "1 h").replace("schedule", 'rate = "9 Mbit/s"\n#').replace(
            "repeat =", 'qdisc = "dualpi2 tupdate 1us"\n#'), 10),
    ],
)  # fmt: skip
def test_the_cost_of_runs_without_packets_is_estimated(text: str, least_s: float) -> None:
    foreseen = estimate.cost([loads(text)], 1)
    assert least_s < foreseen.cpu_s < 30 * least_s
    assert foreseen.packets < 1_000_000


DUMBBELL = """
duration = "3 s"
[bottleneck]
rate = "12 Mbit/s"
delay = "10 ms"
[[flow]]
kind = "bulk"
"""
TWO_RATES = 'schedule = [["0 s", "12 Mbit/s"], ["1 s", "6 Mbit/s"]]\nrepeat = "2 s"'
UDP = 'kind = "udp"\nrate = "100 Mbit/s"'


@pytest.mark.parametrize(
    ("old", "new", "packets"),
    [
        # 12 Mbit/s are 1000 packets of 1500 bytes a second.
        ("", "", 3000),
        ('kind = "bulk"', 'kind = "bulk"\ncount = 2', 3000),
        ('kind = "bulk"', 'kind = "bulk"\nstop = "2 s"', 2000),
        # 10 segments of 1448 bytes, and one of 20.
        ('kind = "bulk"', 'kind = "bulk"\nsize = "14500 B"', 11),
        ('kind = "bulk"', UDP, 3000),
        # 12, 6 and again 12 Mbit/s.
        ('rate = "12 Mbit/s"', TWO_RATES, 2500),
    ],
    ids=["one", "two", "stopped", "sized", "too fast", "two rates"],
)
def test_the_estimate_counts_the_packets_that_the_line_carries(
    old: str, new: str, packets: int
) -> None:
    realised = loads(DUMBBELL.replace(old, new, 1)).realise(1)
    assert estimate.expected_packets(realised) == packets


def test_the_headers_of_a_packet_take_as_much_room_as_two_rows_of_others() -> None:
    plain, packets, headers = (
        estimate.expected_bytes(loads(DUMBBELL + record).realise(1))
        for record in ("", "[record]\npackets = true", "[record]\nheaders = true")
    )
    assert headers - plain == 2 * (packets - plain) > 0


def test_dualpi2_updates_each_16_ms_by_default() -> None:
    def idle_s(qdisc: str) -> float:
        text = DUMBBELL.replace("delay", f'qdisc = "{qdisc}"\ndelay')
        return estimate._idle_s(loads(text).realise(1))

    assert idle_s("dualpi2") == idle_s("dualpi2 tupdate 16ms") == 2 * idle_s("dualpi2 tupdate 32ms")
    assert idle_s("codel") == 0


def test_a_run_that_has_no_room_in_memory_or_takes_weeks_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crowd = loads(CROWD)
    assert 4e8 < estimate.cost([crowd], 1).memory_bytes < 1.6e9
    monkeypatch.setattr(estimate, "free_memory", lambda: 500_000_000)
    with pytest.raises(UserError, match=r"about 0\.7 GB of memory, and 0\.5 GB are free"):
        run(crowd, seeds=1)
    with pytest.raises(UserError, match=r"one seed would take about [0-9]+ days"):
        run(loads(STEPS.replace("2 us", "2 ns").replace("1 us", "1 ns")), seeds=1)


def test_a_run_without_packets_can_be_stopped() -> None:
    asked = 0

    def stop(_: int) -> bool:
        nonlocal asked
        asked += 1
        return False

    with pytest.raises(_core.Cancelled):
        _core.run(loads(STEPS).realise(1), stop)
    assert asked == 1


def test_a_kernel_is_not_given_a_thousand_million_steps() -> None:
    kernel = next(fit for fit in estimate.fits([loads(STEPS)]) if fit.engine == "kernel")
    assert kernel.refused
    assert "steps of rate, delay, loss and discipline" in kernel.problems[0]
