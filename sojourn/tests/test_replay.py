"""Recordings of the kernel's queues, replayed through our disciplines and compared decision by
decision.

`sojourn replay` made the files in `recordings` on Linux 6.12. They are of three or four CUBIC flows
and a ping, over 5 s at 2 or 4 Mbit/s or 9 s at 1 Mbit/s. The files contain the kernel's decisions,
so the comparison runs everywhere. Where a guest is ready, the tests also make new recordings.

Files that are named after their subject also contain the kernel's hashes and its charges for
memory: `fq_codel_flows` (five flows in three of four queues), `fq_codel_memory` (40 000 bytes, data
and ACKs), `fq_codel_tie` (0.4 s at 100 Mbit/s), `red_htb` (0.4 s below a shaper), `cake_hosts`
(each packet's hosts), `cake_overhead` (PPPoA, 52 bytes that take two cells) and `codel_htb` (below
1 817 003 bit/s).
"""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sojourn
from sojourn import _core
from sojourn.agreement import decisions as replaying
from sojourn.agreement import recorder as recorded_by
from sojourn.agreement import replaying as replay_face
from sojourn.agreement import standing
from sojourn.agreement.decisions import Compared, compare, replayed
from sojourn.agreement.recorder import RecordingStopped, record
from sojourn.cli import status
from sojourn.engine.kernel.guest import ready
from sojourn.engine.kernel.observed.passage import Passage
from sojourn.engine.kernel.observed.recorded import trace_of
from sojourn.engine.kernel.plan.fits import PlanError
from sojourn.engine.kernel.plan.guest_plan import Machine, plan, recorded
from sojourn.engine.protocol import Cancelled, Outcome
from sojourn.engine.recording import (
    DROPPED,
    MARKED,
    REFUSED,
    SENT,
    WAITS,
    Recording,
    Trace,
)
from sojourn.engine.request import Progress
from sojourn.errors import UserError
from sojourn.scenario import load, loads
from sojourn.scenario.qdisc import LINK_LAYERS, QDISCS, Qdisc
from sojourn.scenario.realised import Link, Realised

FOLDER = Path(__file__).parent / "recordings"
QUEUE = """
duration = "2 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
qdisc = "codel ecn"

[[flow]]
kind = "bulk"
"""
FILES = sorted(path.stem for path in FOLDER.glob("*.parquet"))


def recording(name: str) -> Recording:
    return Recording.load(FOLDER / f"{name}.parquet")


# ------------------------------------------------------------------------- the kernel's decisions


def test_there_is_a_recording_of_each_discipline_with_ecn_and_without() -> None:
    kinds = ("codel", "fq_codel", "fq_pie", "pfifo", "pie", "red", "sfb")
    assert {f"{kind}-{ecn}" for kind in kinds for ecn in ("ecn", "noecn")} <= set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_our_disciplines_make_the_kernel_s_decisions(name: str) -> None:
    outcome = compare(recording(name))
    assert outcome.first is None, outcome.first.words
    assert outcome.agrees
    assert outcome.kernel == outcome.ours
    assert outcome.arrivals > 800
    assert outcome.latest_ns <= 1000


@pytest.mark.parametrize("name", FILES)
def test_a_recording_has_something_to_decide(name: str) -> None:
    kind, ecn = name.rsplit("-", 1)
    side = compare(recording(name)).kernel
    refuses = kind in (
        "ets",
        "fq",
        "fq_maxrate",
        "fq_pie",
        "mq_pie",
        "pfifo",
        "pfifo_fast",
        "pie",
        "red",
        "red_htb",
        "prio",
        "sfb",
        "sfq",
        "sfq_red",
        "tbf",
        "tbf_atm",
    )
    assert (side.refused > 0) == refuses
    assert side.refused + side.dropped + side.marked > 30
    assert (side.marked > 0) == (ecn == "ecn" and kind not in ("pfifo",))


@pytest.mark.parametrize(
    "name",
    [
        "cake-ecn",
        "cake_diffserv4-ecn",
        "dualpi2-ecn",
        "fq_pie-ecn",
        "fq_pie-noecn",
        "mq_pie-noecn",
        "pie-ecn",
        "pie-noecn",
        "red-ecn",
        "red-noecn",
        "sfb-ecn",
        "sfb-noecn",
        "sfq_red-ecn",
        "sfq_red_headdrop-ecn",
    ],
)
def test_the_number_of_the_kernel_s_random_decisions_fits_our_probabilities(name: str) -> None:
    draws = compare(recording(name)).draws
    assert draws is not None
    # The bound is three standard deviations. The recording is fixed, so the test can't fail by
    # chance.
    assert abs(draws.drawn - draws.expected) < 1.5 * draws.ci95
    assert draws.drawn > 10


def test_marks_by_dualpi2_s_step_are_not_draws_and_its_timer_s_start_is_found() -> None:
    one = recording("dualpi2-ecn")
    ours = replayed(one)
    # Marks of packets that waited longer than the step are not the controller's.
    marked = ours.fate == MARKED
    step = ours.cause == _core.CAUSES.index("ce_threshold")
    assert np.isnan(ours.chance[marked]).sum() > 100
    assert (marked & step).sum() + np.isfinite(ours.chance[marked]).sum() <= marked.sum()
    # The chosen start makes the draws at least as likely as any start at a 16th of a period.
    starts = replaying._starts(one)
    likely = [replaying._likelihood(one, replaying._started(one, at)) for at in starts]
    assert len(starts) == 16
    assert replaying._likelihood(one, ours) >= max(likely) > min(likely)


def test_sfq_s_key_changes_at_a_time_that_fits_the_recording() -> None:
    # 1 s is 250 jiffies, which the kernel's timer wheel rounds up to 256.
    one = changed(recording("sfq-noecn"), perturb=1, divisor=65_536)
    starts = replaying._starts(one)
    assert np.diff(starts).tolist() == [4_000_000] * 255
    # Another time of the key change causes another order of departures.
    at_each = {tuple(replaying._started(one, at).order.tolist()) for at in starts[::16]}
    assert len(at_each) > 4


def test_pie_s_timer_is_started_where_all_agrees() -> None:
    one = recording("pie-ecn")
    starts = replaying._starts(one)
    # 15 ms are four jiffies, and the timer expires every fifth jiffy.
    assert np.diff(starts).tolist() == [4_000_000] * 4
    agreeing = [int(replaying._same(one, replaying._started(one, at)).sum()) for at in starts]
    # On a short recording several starts may agree.
    assert min(agreeing) < max(agreeing) == len(one.trace)


@pytest.mark.parametrize("shaping", [None, "ingress"])
@pytest.mark.parametrize("name", ["cake-ecn", "cake_diffserv4-ecn"])
def test_the_draws_of_our_own_cake_are_inferred(name: str, shaping: str | None) -> None:
    one = ten_times_as_fast(changed(recording(name), shaping=shaping))
    for seed in range(12):
        assert compare(own_recording(one, seed)).agrees, seed


def test_an_unobserved_draw_is_reversed_if_a_later_packet_contradicts_it() -> None:
    one = ten_times_as_fast(changed(recording("cake-ecn"), shaping="ingress"))
    turned = 0
    for seed in range(50):
        drawn = own_recording(one, seed)
        likely = replaying._started(drawn, replaying._starts(drawn)[0])
        turned += not replaying._same(drawn, likely).all()
        assert len(likely.unseen) > 0
        assert compare(drawn).agrees
    assert 1 <= turned <= 10


def ten_times_as_fast(one: Recording) -> Recording:
    """A recording of cake at 1 Mbit/s, replayed at 10."""
    faster = replace(one.trace, t_ns=one.trace.t_ns // 10)
    return changed(replace(one, trace=faster), bandwidth=10_000_000)


def own_recording(one: Recording, seed: int) -> Recording:
    """Returns the recording that our link makes of the same arrivals, with draws of its own."""
    trace = one.trace
    (start,) = replaying._starts(one)
    columns = (trace.t_ns + start, trace.flow, trace.bytes, trace.ds)
    known = {name: getattr(trace, name) for name in ("hash", "truesize", "source", "destination")}
    found = _core.replay(one.link, seed, *columns, **known)
    fates = [found["t_ns"] < 0, found["dropped"] >= 0, found["marked"] >= 0]
    fate = np.select(fates, [WAITS, DROPPED, MARKED], SENT)
    left = np.where(fate == WAITS, -1, found["t_ns"] - start)
    sent = np.sort(left[np.isin(fate, (SENT, MARKED))])
    done = replace(
        trace,
        fate=fate,
        left_ns=left,
        order=replaying._sent_before(fate, found["order"]),
        after=np.searchsorted(sent, trace.t_ns, side="right"),
    )
    return replace(one, trace=done)


def lacking(one: Recording, column: str) -> Recording:
    """The recording without this column, as an older sojourn made it."""
    return replace(one, trace=replace(one.trace, **{column: None}))


def test_flows_share_a_queue_if_the_kernel_s_did() -> None:
    one = recording("fq_codel_flows-noecn")
    assert one.trace.hash is not None
    assert len(np.unique(one.trace.flow)) == 5
    # reciprocal_scale(hash, flows).
    assert len(np.unique(one.trace.hash * 4 >> 32)) == 3
    assert compare(one).agrees
    # Without the kernel's hashes the replay doesn't know which flows share a queue.
    assert not compare(lacking(one, "hash")).agrees


def test_cake_shares_among_the_hosts_of_the_recording() -> None:
    one = recording("cake_hosts-ecn")
    # Each other isolation mode selects another queue as the next one.
    for isolation in ("flows", "srchost", "dsthost", "dual-srchost", "dual-dsthost"):
        assert not compare(changed(one, isolation=isolation)).agrees, isolation
    # Isolation by hosts needs the recording's hosts; isolation by flows doesn't.
    for column in ("source", "destination"):
        with pytest.raises(UserError, match="shares among hosts, and this recording") as refused:
            compare(lacking(one, column))
        assert "record it again" in refused.value.hint
        replayed(changed(lacking(one, column), isolation="flows"))


@pytest.mark.parametrize(
    ("name", "change", "why"),
    [
        ("cake-ecn", {"acks": "ack-filter"}, "ack-filter reads ACKs, which no recording has"),
        ("cake-ecn", {"kind": "cake_mq"}, "depends on how busy the others are"),
        (
            "pfifo-noecn",
            {"kind": "choke", "limit": 1000},
            "compares a packet with one that it draws",
        ),
    ],
)
def test_unrecorded_values_do_not_count_as_differences(
    name: str, change: dict[str, Any], why: str
) -> None:
    one = recording(name)
    words = {"choke": "choke limit 100 min 20 max 60 avpkt 1000 burst 30 bandwidth 2mbit"}
    kind = change.get("kind")
    qdisc = Qdisc.parse(words.get(kind, kind)) if kind else changed(one, **change).link.qdisc
    with pytest.raises(UserError, match=why):
        replayed(one.by(qdisc))


def test_memory_is_counted_as_the_kernel_charged_it() -> None:
    one = recording("fq_codel_memory-ecn")
    trace = one.trace
    assert trace.truesize is not None
    assert compare(one).agrees
    assert not compare(lacking(one, "truesize")).agrees
    # The memory charges of crates/units for a full segment, a bare ACK with up to three SACK blocks
    # and a small datagram (ping, 84 bytes; UDP, 400).
    for size, truesize in ((1500, {2280}), (52, {2, 832}), (64, {2}), (84, {832}), (400, {1280})):
        assert set(trace.truesize[trace.bytes == size].tolist()) <= truesize, size


def test_an_unknown_hash_or_charge_counts_as_not_recorded() -> None:
    one = recording("fq_codel_memory-ecn")
    none = np.full(len(one.trace), -1)
    without = lacking(lacking(one, "truesize"), "hash")
    unknown = replace(one, trace=replace(one.trace, truesize=none, hash=none))
    assert compare(unknown) == compare(without)


def test_a_discipline_without_draws_has_no_count_of_draws() -> None:
    assert compare(recording("codel-ecn")).draws is None


def without_its_luck(one: Recording) -> Recording:
    """RED's recording, with every drop on arrival and every mark removed."""
    fate = np.where(np.isin(one.trace.fate, (REFUSED, MARKED)), SENT, one.trace.fate)
    return replace(one, trace=replace(one.trace, fate=fate))


def test_a_recording_can_not_change_a_decision_that_red_does_not_draw() -> None:
    outcome = compare(without_its_luck(recording("red-noecn")))
    assert not outcome.agrees
    assert outcome.ours.refused > 0


# --------------------------------------------------------------------- a comparison that can fail


def changed(one: Recording, **changes: Any) -> Recording:
    """The same recording with changed settings of its link."""
    link = json.loads(one.link.to_json())
    for key, value in changes.items():
        if key in link:
            link[key] = value
        else:
            link["qdisc"] = {**link["qdisc"], key: value}
    return replace(one, link=Link.from_json(json.dumps(link)))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("pfifo-noecn", {"limit": 21}),
        ("pfifo-noecn", {"rate": [{"at_ns": 0, "bps": 2_000_100}]}),
        ("pfifo_head_drop-noecn", {"limit": 19}),
        ("pfifo_fast-noecn", {"variant": "shared"}),
        ("codel-noecn", {"target_ns": 20_000_000}),
        ("codel-noecn", {"interval_ns": 100_500_000}),
        ("codel-noecn", {"variant": "rfc"}),
        ("codel-ecn", {"ecn": False}),
        ("codel-bql", {"ring": None}),
        ("fq-ecn", {"limit": 26}),
        ("fq-ecn", {"quantum": 1514}),
        ("fq-ecn", {"ce_threshold_ns": 20_000_000}),
        ("fq_maxrate-noecn", {"maxrate": 610_000}),
        ("fq_maxrate-noecn", {"low_rate_threshold": 700_000}),
        ("fq_codel-noecn", {"quantum": 3000}),
        ("fq_codel-noecn", {"variant": "linux2012"}),
        ("red-noecn", {"max": 44_000}),
        ("red-ecn", {"burst": 60}),
        ("red_htb-ecn", {"shaper": None}),
        ("cake_overhead-noecn", {"line": "atm overhead -4"}),
        ("cake_overhead-noecn", {"line": "overhead 10"}),
        ("sfb-noecn", {"target": 8}),
        ("sfb-ecn", {"max": 30}),
        ("ets-noecn", {"quanta": "1500 1500"}),
        ("ets-noecn", {"strict": 0}),
        ("hhf-noecn", {"admit_bytes": 20_000}),
        ("hhf-noecn", {"non_hh_weight": 3}),
        ("hhf-noecn", {"evict_timeout_ns": 30_000_000}),
        ("tbf-noecn", {"burst": 6_143}),
        ("tbf-noecn", {"peakrate": 5_100_000}),
        ("tbf-noecn", {"limit": 24_000}),
        ("tbf_atm-noecn", {"overhead": 30}),
        ("tbf_atm-noecn", {"linklayer": "ethernet"}),
        ("tbf_atm-noecn", {"mpu": 192}),
        ("prio-noecn", {"bands": 16, "priomap": "0 " * 15 + "0"}),
        ("sfq-noecn", {"limit": 31}),
        ("sfq-noecn", {"quantum": 3000}),
        ("sfq_headdrop-noecn", {"headdrop": None}),
        ("sfq_red-ecn", {"max": 9_300}),
        ("sfq_red-ecn", {"burst": 12}),
        ("sfq_red-ecn", {"harddrop": True}),
        ("fq_codel_selector-ecn", {"ce_threshold_selector": None}),
        ("fq_codel_selector-ecn", {"ce_threshold_selector": "0x0/0xfc"}),
        ("fq_codel_flows-noecn", {"flows": 5}),
        ("fq_codel_memory-ecn", {"memory_limit": 42_000}),
    ],
)
def test_a_queue_with_other_settings_makes_other_decisions(
    name: str, changes: dict[str, Any]
) -> None:
    outcome = compare(changed(recording(name), **changes))
    assert not outcome.agrees
    assert outcome.first is not None
    assert outcome.first.words.startswith(f"packet {outcome.first.packet} of {outcome.arrivals}")


def test_a_queue_below_an_idle_shaper_makes_other_decisions_than_a_root() -> None:
    one = recording("fq_codel-noecn")
    # As fast as the wire, with a burst of one packet: the shaper never delays a packet that the
    # wire would send.
    shaper = {
        "bps": 10**9,
        "burst_bytes": 2000,
        "overhead_bytes": 0,
        "minimum_bytes": 0,
        "cells": "none",
    }
    outcome = compare(changed(one, shaper=shaper))
    assert not outcome.agrees


def test_whole_ticks_of_the_kernel_s_clock_make_no_difference() -> None:
    one = recording("codel-bql")
    assert compare(replace(one, zero_ns=one.zero_ns + 16_000_000)).agrees
    # A part of the kernel's 4 ms tick makes a difference: it decides when BQL reduces its slack.
    assert not all(
        compare(replace(one, zero_ns=one.zero_ns + shift * 10**6)).agrees for shift in (1, 2, 3)
    )


# ---------------------------------------------------------------------------------------- by hand

PFIFO = {
    "name": "down",
    "rate": [{"at_ns": 0, "bps": 12_000_000}],
    "rate_period_ns": None,
    "delay_ns": 0,
    "qdisc": {"kind": "pfifo", "limit": 1},
    "framing": {"header_bytes": 0, "overhead_bytes": 0, "minimum_bytes": 0, "cells": "none"},
    "loss": {"law": "none"},
    "ring": None,
    "shaper": None,
    "sampled": True,
}
"""A full packet takes 1 ms, and one may wait."""
MS = 1_000_000


def by_hand(**columns: list[int]) -> Recording:
    """Four packets: the first is sent at once, the second waits, the third finds a full queue, the
    fourth arrives later."""
    usual = {
        "t_ns": [0, 0, 0, 5 * MS],
        "flow": [0] * 4,
        "bytes": [1500] * 4,
        "ds": [0] * 4,
        "after": [0, 1, 1, 2],
        "fate": [SENT, SENT, REFUSED, SENT],
        "left_ns": [0, MS, 0, 5 * MS],
        "order": [0, 1, 1, 2],
    }
    trace = Trace(**{name: np.array(values) for name, values in {**usual, **columns}.items()})
    return Recording(
        title="by hand",
        seed=1,
        version="-",
        zero_ns=0,
        link=Link.from_json(json.dumps(PFIFO)),
        trace=trace,
    )


def test_the_counts_of_a_comparison() -> None:
    outcome = compare(by_hand())
    assert outcome.agrees
    assert (outcome.arrivals, outcome.agreeing, outcome.late) == (4, 4, 0)
    assert (
        outcome.kernel.sent,
        outcome.kernel.refused,
        outcome.kernel.dropped,
        outcome.kernel.marked,
    ) == (
        3,
        1,
        0,
        0,
    )
    assert replayed(by_hand()).backlog_packets.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("columns", "packet"),
    [
        ({"fate": [SENT, SENT, DROPPED, SENT], "left_ns": [0, MS, MS, 5 * MS]}, 2),
        (
            {
                "fate": [SENT, SENT, SENT, SENT],
                "left_ns": [0, MS, 2 * MS, 5 * MS],
                "order": [0, 1, 2, 3],
            },
            2,
        ),
        ({"fate": [SENT, MARKED, REFUSED, SENT]}, 1),
        ({"left_ns": [0, MS + 2001, 0, 5 * MS]}, 1),
        ({"left_ns": [0, MS - 1, 0, 5 * MS]}, 1),
        ({"order": [0, 2, 1, 1]}, 1),
        (
            {
                "fate": [SENT, WAITS, REFUSED, SENT],
                "left_ns": [0, -1, 0, 5 * MS],
                "order": [0, -1, 1, 1],
            },
            1,
        ),
    ],
)
def test_each_kind_of_difference_is_found(columns: dict[str, list[int]], packet: int) -> None:
    outcome = compare(by_hand(**columns))
    assert outcome.first is not None
    assert outcome.first.packet == packet


def test_the_first_difference_shows_both_sides() -> None:
    outcome = compare(
        by_hand(fate=[SENT, SENT, SENT, SENT], left_ns=[0, MS, 2 * MS, 5 * MS], order=[0, 1, 2, 3])
    )
    assert outcome.first is not None
    assert outcome.first.words == (
        "packet 2 of 4 (flow 0, 1500 bytes, came at 0.000000 s):"
        " the kernel, with 1 packets queued, sent it at 0.002000000 s, after 2 others were sent;"
        " ours, with 1 queued, dropped it on arrival at 0.000000000 s, after 1 others were sent for limit"
    )


def test_a_difference_names_a_young_kernel_and_unobserved_draws() -> None:
    young = changed(recording("fq_codel-noecn"), quantum=3000)
    differences = {age_s: compare(replace(young, zero_ns=age_s * 10**9)).first for age_s in (1, 2)}
    # 16 intervals are 1.6 s.
    assert all(differences.values())
    assert "up for less than 16 intervals" in differences[1].words  # type: ignore[union-attr]
    assert "intervals" not in differences[2].words  # type: ignore[union-attr]
    cake = recording("cake-ecn")
    last = int(np.flatnonzero(cake.trace.fate == SENT)[-1])
    left_ns = cake.trace.left_ns + np.where(np.arange(len(cake.trace)) == last, 3000, 0)
    wrong = compare(replace(cake, trace=replace(cake.trace, left_ns=left_ns))).first
    assert wrong is not None
    assert " of cake's draws before it are invisible" in wrong.words


def test_a_kernel_may_be_a_little_late() -> None:
    outcome = compare(by_hand(left_ns=[0, MS + 700, 0, 5 * MS + 90]))
    assert outcome.agrees
    assert (outcome.late, outcome.latest_ns) == (2, 700)


def test_a_packet_that_waits_at_the_end_has_no_decision() -> None:
    outcome = compare(
        by_hand(fate=[SENT, SENT, REFUSED, WAITS], left_ns=[0, MS, 0, -1], order=[0, 1, 1, -1])
    )
    assert outcome.agrees
    assert outcome.kernel.sent == outcome.ours.sent == 2


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    one = recording("fq_codel_memory-ecn")
    one.save(tmp_path / "again.parquet")
    again = Recording.load(tmp_path / "again.parquet")
    assert (again.title, again.seed, again.version, again.zero_ns, again.link) == (
        *(one.title, one.seed, one.version, one.zero_ns),
        one.link,
    )
    for name, column in vars(one.trace).items():
        assert np.array_equal(column, getattr(again.trace, name)), name


def test_a_recording_without_hashes_and_charges_is_read(tmp_path: Path) -> None:
    one = recording("fq_codel-ecn")
    assert one.trace.hash is None
    assert one.trace.truesize is None
    with_both = recording("fq_codel_memory-ecn")
    lacking(with_both, "hash").save(tmp_path / "again.parquet")
    again = Recording.load(tmp_path / "again.parquet").trace
    assert again.hash is None
    assert np.array_equal(again.truesize, with_both.trace.truesize)


@pytest.mark.parametrize("text", [b"", b"no parquet"])
def test_a_file_that_is_not_a_recording_is_refused(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "x.parquet"
    file.write_bytes(text)
    with pytest.raises(UserError, match="is not a recording of a queue"):
        Recording.load(file)
    with pytest.raises(UserError, match="is not a recording of a queue"):
        Recording.load(tmp_path / "nowhere.parquet")


def test_invalid_arrivals_are_refused() -> None:
    one = np.zeros(2, dtype=np.int64)
    for times, flows, why in (
        (np.array([5, 3]), one, "in order"),
        (np.array([-1, 3]), one, "in order"),
        (np.array([1, 2]), one[:1], "equally long"),
        (np.array([1, 2]), one - 1, "32 bits"),
    ):
        with pytest.raises(ValueError, match=why):
            _core.replay(Link.from_json(json.dumps(PFIFO)), 1, times, flows, one + 100, one)
    with pytest.raises(TypeError, match="int64"):
        _core.replay(
            *(Link.from_json(json.dumps(PFIFO)), 1, one, one, one + 100, one),
            verdict=one > 0,  # type: ignore[arg-type]
        )
    with pytest.raises(ValueError, match="not a link"):
        Link.from_json("{}")


# ----------------------------------------------------------------------------- the kernel's trace


def test_rows_of_packets_become_a_trace() -> None:
    rows = {
        # Sent, marked, dropped from the queue, refused, still in the queue, arrived after the end.
        "t_before_ns": [10, 20, 30, 40, 50, 1001],
        "t_after_ns": [15, 25, -1, -1, 2000, 1002],
        "t_gone_ns": [-1, -1, 45, 40, -1, -1],
        "refused": [0, 0, 0, 1, 0, 0],
        # The fourth packet is on the way back; the fifth belongs to no flow of the scenario.
        "flow": [0, 0, 0, 0, -1, 0],
        "reverse": [0, 0, 0, 1, 0, 0],
        "bytes": [1500] * 6,
        "ds_in": [2] * 6,
        "ds_out": [2, 3, 2, 2, 2, 2],
        "hash": [7] * 6,
        "truesize": [2280] * 6,
        "after": [0, 1, 2, 2, 2, 2],
        "order": [0, 1, 2, 3, 2, 3],
    }
    realised = loads(QUEUE).with_({"duration": "1000 ns", "warmup": "0 s"}).realise(1)
    made = plan(realised, Machine("simnic", own=True, ipv6=False)).plan
    trace = trace_of(
        realised, made, Passage.of({name: np.array(column) for name, column in rows.items()})
    )
    assert trace.fate.tolist() == [SENT, MARKED, DROPPED, REFUSED, WAITS]
    assert trace.left_ns.tolist() == [15, 25, 45, 40, -1]
    assert trace.after.tolist() == [0, 1, 2, 2, 2]
    # A refused packet counts as leaving when it arrives, even if another packet was sent in
    # between.
    assert trace.order.tolist() == [0, 1, 2, 2, -1]
    assert trace.hash is not None
    assert trace.hash.tolist() == [7] * 5
    assert trace.truesize is not None
    assert trace.truesize.tolist() == [2280] * 5
    assert trace.source is not None
    assert trace.destination is not None
    assert trace.source.tolist() == [0, 0, 0, 1, -1]
    assert trace.destination.tolist() == [1, 1, 1, 0, -1]


def test_more_packets_than_can_be_written_down_are_refused() -> None:
    realised = loads(QUEUE).realise(1)
    machine = Machine("simnic", own=True, ipv6=False)
    assert all(tap["rows"] for tap in recorded(realised, machine, 1e5).plan["taps"])
    with pytest.raises(PlanError, match="million packets"):
        recorded(realised, machine, 1e8)


# ------------------------------------------------------------------------------- the command line


def test_the_committed_recordings_have_these_queues() -> None:
    many = {file.stem: len(load(file).variants()) for file in standing.replays("kernel-7.3")}
    assert many == {
        "usual": 39,
        "mixed": 5,
        "pauses": 6,
        "100-mbit": 6,
        "pie": 18,
        "cake": 11,
        "cake-hosts": 7,
        "cake-overhead": 5,
        "drr": 4,
        "ets": 9,
        "fq": 15,
        "fq-maxrate": 4,
        "fq-pie": 15,
        "gred": 12,
        "hhf": 15,
        "mq": 21,
        "prio": 9,
        "sfb": 12,
        "sfb-ecn": 6,
        "sfq": 18,
        "sfq-red": 15,
        "steps": 18,
        "tbf": 6,
        "codel-drops": 6,
        "dualpi2": 21,
    }


def test_a_recording_is_compared_without_a_guest(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(FOLDER / f"{name}.parquet") for name in ("codel-noecn", "red-ecn")]
    assert status(["replay", *files]) == 0
    table = capsys.readouterr().out
    assert "1044" in table
    assert "1946 of 1946 packets agree, in 2 queues; none of the queues differ" in table
    assert status(["replay", "--json", *files]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["agrees"]
    assert [each["agreeing"] for each in document["replays"]] == [1044, 902]


def test_a_difference_is_reported_and_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed(recording("codel-noecn"), target_ns=20_000_000).save(tmp_path / "other.parquet")
    assert status(["replay", "-o", str(tmp_path / "out"), str(tmp_path / "other.parquet")]) == 1
    assert "the first difference is packet" in capsys.readouterr().out
    written = json.loads((tmp_path / "out" / "replay.json").read_text())
    assert not written["agrees"]
    assert written["replays"][0]["first"]["packet"] > 0


def test_a_recording_that_can_t_be_compared_is_left_out_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, whole = tmp_path / "old.parquet", str(FOLDER / "codel-noecn.parquet")
    lacking(recording("cake_hosts-ecn"), "source").save(old)
    assert status(["replay", str(old)]) == 2
    assert "this recording of an older sojourn has none" in capsys.readouterr().err
    assert status(["replay", "--json", str(old), whole]) == 0
    output = capsys.readouterr()
    assert len(json.loads(output.out)["replays"]) == 1
    assert "is left out: cake shares among hosts" in output.err


def test_a_scenario_without_a_comparable_queue_is_refused_before_it_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(replay_face, "record", lambda *_, **__: pytest.fail("it was recorded"))
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO.format(qdisc="cake bandwidth 4mbit ack-filter", ecn="false"))
    assert status(["replay", "-q", str(file)]) == 2
    assert "which no recording has" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--quick"], "no option --quick"),
        (["--tolerance", "3 %"], "no option --tolerance"),
        (["nowhere.parquet"], "there is no file nowhere.parquet"),
        (["nowhere.toml"], "nowhere.toml"),
        (["-e", "netns"], "can't record its queues"),
    ],
)
def test_wrong_input_gives_an_error_with_a_hint(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["replay", "-q", *words]) == 2
    output = capsys.readouterr().err
    assert said in output
    assert "Traceback" not in output


def test_existing_files_are_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").write_text("x")
    file = str(FOLDER / "pfifo-ecn.parquet")
    assert status(["replay", "-q", "-o", str(tmp_path), file]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert status(["replay", "-q", "-o", str(tmp_path), "--force", file]) == 0


class TwoSeeds:
    """An engine that records the first seed at once, and runs the second one until it is
    stopped."""

    name, version, alone, build = "kernel-uml", "-", False, "of a test"

    def check(self, realised: Realised) -> None: ...

    def conditions(self, realised: Realised) -> dict[str, str]:
        return {}

    def tables(self, realised: Realised, reached: Callable[[int], bool]) -> Outcome:
        raise NotImplementedError

    def recordings(
        self, realised: Realised, reached: Callable[[int], bool]
    ) -> tuple[list[Recording], int]:
        while realised.seed != 1 and reached(0):
            time.sleep(0.01)
        if not reached(0):
            raise Cancelled
        return [by_hand()], 0


def test_ctrl_c_keeps_finished_recordings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(p: Progress) -> None:
        if p.finished:
            raise KeyboardInterrupt

    monkeypatch.setattr(recorded_by, "find", lambda _: TwoSeeds())
    scenario = loads(SCENARIO.format(qdisc="pfifo", ecn="false"))
    with pytest.raises(RecordingStopped) as stopped:
        record([scenario], seeds=2, jobs=2, progress=stop)
    assert (len(stopped.value.recordings), stopped.value.missing) == (1, 1)
    assert stopped.value.recordings[0].title == "Anew"

    monkeypatch.setattr(
        replay_face, "record", lambda *_, **__: (_ for _ in ()).throw(stopped.value)
    )
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO.format(qdisc="pfifo", ecn="false"))
    assert status(["replay", "-q", "-o", str(tmp_path / "kept"), str(file)]) == 130
    output = capsys.readouterr()
    assert "4 of 4 packets agree" in output.out
    assert "1 guests had not finished" in output.err
    assert Recording.load(tmp_path / "kept" / "anew-seed-1-link-down.parquet").seed == 1


def test_a_guest_that_fails_loses_no_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Fails(TwoSeeds):
        def recordings(
            self, realised: Realised, reached: Callable[[int], bool]
        ) -> tuple[list[Recording], int]:
            if realised.seed == 1:
                raise UserError("it gave up", "have it rest")
            return [by_hand()], 0

    monkeypatch.setattr(recorded_by, "find", lambda _: Fails())
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO.format(qdisc="pfifo", ecn="false"))
    assert status(["replay", "--json", "-q", "--seeds", "2", str(file)]) == 1
    output = capsys.readouterr()
    whole = json.loads(output.out)
    assert (whole["agrees"], len(whole["replays"])) == (True, 1)
    assert whole["failed"] == [
        {"run": "Anew", "seed": 1, "error": "it gave up", "hint": "have it rest"}
    ]
    assert "1 of 2 runs failed" in output.err


def test_replay_in_python_gives_what_the_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Records(TwoSeeds):
        def recordings(
            self, realised: Realised, reached: Callable[[int], bool]
        ) -> tuple[list[Recording], int]:
            return [by_hand()], 0

    monkeypatch.setattr(recorded_by, "find", lambda _: Records())
    file, old = tmp_path / "scenario.toml", FOLDER / "red-ecn.parquet"
    file.write_text(SCENARIO.format(qdisc="pfifo", ecn="false"))
    assert status(["replay", "-q", "--json", str(file), str(old)]) == 0
    printed = capsys.readouterr().out
    out, reports, said = tmp_path / "kept", [], []
    found = sojourn.replay(
        [load(file), Recording.load(old)], out=out, progress=reports.append, say=said.append
    )
    assert isinstance(found, sojourn.Replays)
    assert f"{found.to_json()}\n" == printed == (out / "replay.json").read_text()
    assert [one.arrivals for one in found.queues] == [902, 4]
    assert (reports[0].finished, reports[-1].finished, said) == (0, 1, ["1 scenario on kernel"])
    [kept] = out.glob("*.parquet")
    [again] = sojourn.replay(kept).queues
    assert again == found.queues[1]
    with pytest.raises(UserError, match="is not empty"):
        sojourn.replay(old, out=out)


def test_replay_in_python_keeps_what_was_recorded_at_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(p: Progress) -> None:
        if p.finished:
            raise KeyboardInterrupt

    monkeypatch.setattr(recorded_by, "find", lambda _: TwoSeeds())
    scenario = loads(SCENARIO.format(qdisc="pfifo", ecn="false"))
    with pytest.raises(sojourn.ReplayInterrupted) as stopped:
        sojourn.replay(scenario, seeds=2, jobs=2, out=tmp_path / "kept", progress=stop)
    assert (len(stopped.value.found.queues), stopped.value.missing) == (1, 1)
    kept = (tmp_path / "kept" / "replay.json").read_text()
    assert kept == f"{stopped.value.found.to_json()}\n"


# ----------------------------------------------------------------------------------- with a guest

SCENARIO = """
title    = "Anew"
duration = "4 s"
[bottleneck]
rate       = "5 Mbit/s"
delay      = "5 ms"
link_layer = "linux"
qdisc      = "{qdisc}"
[[flow]]
kind       = "bulk"
count      = 3
ecn        = {ecn}
start      = "uniform 0 s .. 500 ms"
[[flow]]
kind = "ping"
"""


def recorded_anew(qdisc: str, ecn: str, **others: str) -> list[Compared]:
    """Records in a guest, with these values of the bottleneck, and compares."""
    if reason := ready("uml").why_not:
        pytest.skip(reason)
    scenario = loads(SCENARIO.format(qdisc=qdisc, ecn=ecn))
    changed = scenario.with_({f"bottleneck.{key}": value for key, value in others.items()})
    return [compare(each) for each in record([changed])]


@pytest.mark.guest
@pytest.mark.parametrize("ecn", ["false", "true"])
@pytest.mark.parametrize(
    "qdisc",
    [
        "pfifo limit 40",
        "codel ecn",
        "fq_codel",
        "red limit 100000 min 20000 max 60000 avpkt 1000 burst 35 bandwidth 5mbit ecn",
    ],
)
def test_a_new_recording_of_the_kernel_agrees_with_ours(qdisc: str, ecn: str) -> None:
    found = recorded_anew(qdisc, ecn)
    assert found
    for outcome in found:
        assert outcome.first is None, outcome.first.words
        assert outcome.arrivals > 1500
        assert outcome.kernel.refused + outcome.kernel.dropped + outcome.kernel.marked > 10


@pytest.mark.guest
def test_a_full_packet_has_the_length_of_the_link_layer() -> None:
    # pie doesn't drop early with fewer than two packets in the queue. At 1 Mbit/s there are often
    # two.
    for outcome in recorded_anew("pie", "false", rate="1 Mbit/s", link_layer="none"):
        assert outcome.first is None, outcome.first.words
        assert outcome.kernel.refused > 10


@pytest.mark.guest
def test_cake_charges_its_whole_overhead_where_packets_have_no_header() -> None:
    # An ACK of 52 + 10 bytes takes two cells of ATM; it would take one if 14 bytes of Ethernet were
    # removed.
    cake = "cake bandwidth 2mbit flows atm overhead 10"
    for outcome in recorded_anew(cake, "false", link_layer="none"):
        assert outcome.first is None, outcome.first.words
        assert outcome.kernel.dropped > 10


LINES = [
    *("", "raw", "overhead 10", "atm overhead 10", "ptm overhead 30", "overhead -20 mpu 64"),
    *("mpu 84", "noatm overhead 44", "overhead 200", "raw atm overhead 10 mpu 96"),
    *("ethernet ether-vlan ether-vlan", "overhead 0"),
    *sorted({word for word, _ in QDISCS["cake"].words(None)} & set(LINK_LAYERS)),
]
"""cake's options for a link layer."""


@pytest.mark.long
@pytest.mark.guest
@pytest.mark.parametrize("layer", [*LINK_LAYERS, "ethernet header 18", "none header 4"])
def test_each_overhead_is_charged_on_each_link_layer(layer: str) -> None:
    if reason := ready("uml").why_not:
        pytest.skip(reason)
    # A link for each line, in two guests.
    for lines in (LINES[::2], LINES[1::2]):
        text = f'title = "{layer}"\nduration = "600 ms"\n'
        for number, line in enumerate(lines):
            there, back = f's{number}"\nto = "c{number}', f'c{number}"\nto = "s{number}'
            common = 'delay = "1 ms"\nduplex = false\n'
            text += f"""
[[link]]
from = "{there}"
rate = "20 Mbit/s"
link_layer = "{layer}"
qdisc = "cake bandwidth 2mbit besteffort flows {line}"
{common}
[[link]]
from = "{back}"
rate = "unlimited"
{common}"""
        for number in range(len(lines)):
            for size, rate in (
                ("52 B", "900 kbit/s"),
                ("100 B", "900 kbit/s"),
                ("1500 B", "1.5 Mbit/s"),
            ):
                text += f"""
[[flow]]
name = "{size} {number}"
kind = "udp"
from = "s{number}"
to = "c{number}"
packet = "{size}"
rate = "{rate}"
"""
        found = [compare(each) for each in record([loads(text)])]
        assert len(found) == len(lines)
        assert [one.first for one in found if not one.agrees] == []
