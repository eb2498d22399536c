"""The two-level queue in its quick version: its laws hold, and each miss has a reason."""

from collections import Counter
from typing import Any

import polars as pl
import pytest
from laws import *  # noqa: F403

import sojourn_papers as papers
from sojourn.scenario import load
from sojourn_papers.evidence import Along, Estimate, Evidence, Measure, NotRun, Seed
from sojourn_papers.queue_anatomy import figures, studies
from sojourn_papers.queue_anatomy import measures as m
from sojourn_papers.reproduction import Reproduction

PAPER = papers.load("queue-anatomy")

MUST_HOLD = 12
IN_PART: set[str] = set()
REPRODUCED = {"rtt/4096", "rtt/more", "window", "throughput/apart"}
UNEXPLAINED: set[str] = set()


RATE = studies.one_interface_mbps(contended=True) * 1e6


def waits_s(packets: float) -> float:
    """The time of these packets on the wire, with Ethernet's framing."""
    return packets * studies.SEGMENT_BYTES * 8 / RATE


def test_the_rate_is_what_ten_megabits_half_duplex_leave() -> None:
    # Two segments and an ACK, in and out: 2 (2 x 1538 + 90) B for 2 x 1538; a slot of 64 B before
    # each of the six.
    assert studies.one_interface_mbps(contended=False) == pytest.approx(10 * 3076 / 6332)
    assert pytest.approx(10 * 3076 / 6716) == RATE / 1e6
    down = load(PAPER.folder / "testbed.toml").realise(1).links[0]
    assert down.name == "down"
    assert down.rate[0].bps == pytest.approx(RATE, rel=1e-3)


def test_a_full_ring_takes_its_packets_on_the_wire(quick: Reproduction) -> None:
    for ring in (512, 4096):
        ours = quick.evidence.mean(studies.over_rings(studies.UNLIMITED)[ring], m.p95_s)
        assert ours == pytest.approx(waits_s(ring), rel=0.01)


def test_limited_windows_wait_in_a_ring_that_has_room_for_all(quick: Reproduction) -> None:
    within = {
        **{segments: studies.rings_within(segments) for segments in (117, 146)},
        studies.SEGMENTS: studies.over_rings(studies.MAIN),
    }
    for segments, along in within.items():
        waiting = min(30 * segments, 4096)
        assert quick.evidence.mean(along[4096], m.p95_s) == pytest.approx(
            waits_s(waiting), rel=0.01
        )


def test_the_limit_lies_where_both_stated_numbers_hold() -> None:
    rtt, more = (figures.SAYS[one] for one in ("rtt/4096", "rtt/more"))
    packets = 30 * studies.SEGMENTS
    assert waits_s(packets) > rtt
    assert abs(100 * (packets / 512 - 1) / more - 1) < 0.15


def test_one_searched_limit_gives_both_stated_numbers_and_absorbs_all() -> None:
    stored = Evidence(False, {}, searched=PAPER.searched(False))
    targets = {one.id: one.target for one in PAPER.numbers if one.published is not None}

    def fits(segments: int) -> bool:
        rings, qdiscs = studies.rings_within(segments), studies.qdiscs_within(segments)
        rtt = stored.means(rings, m.rtt_s)
        more = 100 * (rtt[4096] / rtt[512] - 1)
        both = targets["rtt/4096"].met(rtt[4096]) and targets["rtt/more"].met(more)
        return both and all(stored.mean(one[4096], m.drops) == 0 for one in (rings, qdiscs))

    assert [one for one in studies.SEARCHED if fits(one)] == [studies.SEGMENTS]


def test_thirty_limited_windows_lose_no_packet_if_they_fit(quick: Reproduction) -> None:
    rings, qdiscs = (
        quick.evidence.means(along(studies.MAIN), m.drops)
        for along in (studies.over_rings, studies.over_qdiscs)
    )
    assert rings[4096] == 0 == qdiscs[4096]
    assert min(rings[80], rings[512], qdiscs[80], qdiscs[512], qdiscs[1024]) > 1000
    # Windows that do not fit into the queues cause losses.
    assert quick.evidence.mean(studies.rings_within(200)[4096], m.drops) > 1000


def test_in_a_fifo_only_the_sum_of_both_queues_counts(quick: Reproduction) -> None:
    long, short = (
        quick.evidence.mean(studies.over_bql("fifo", False)[ring], m.p95_s) for ring in (80, 4096)
    )
    assert long == pytest.approx(short, rel=1e-3)
    assert long == pytest.approx(waits_s(5000), rel=0.02)


def test_with_bql_the_ring_contains_the_packets_of_one_completion(quick: Reproduction) -> None:
    # 43 ms at this rate are 16 packets: those being sent, and those waiting for completion.
    assert studies.coalesced(RATE / 1e6) == {"bottleneck.down.coalesce": "42982 us"}
    for cure in ("fifo", "bands", "codel", "fq_codel"):
        assert 16 < quick.evidence.mean(studies.cure(cure, True), m.in_ring) < 2 * 16
    at_once = studies.OTHERS[studies.at_once(2048)]
    assert quick.evidence.mean(at_once, m.in_ring) < 4


def test_drops_vanish_above_a_qdisc_of_512_if_windows_end_at_64_kb(quick: Reproduction) -> None:
    drops = quick.evidence.means(studies.qdiscs_within(studies.NARROW_WINDOW), m.drops)
    for qdisc in (1024, 4096):
        assert drops[qdisc] < 0.05 * drops[512]

    # The peak at 512 also needs a TCP that does not detect spurious timeouts. The receivers' quick
    # ACKs after each pause shorten RFC 6298's timer, so that it also expires at a short qdisc.
    # Drops rise by the claim's threshold, retransmissions by far more.
    def believed(measure: Measure) -> tuple[float, ...]:
        found = quick.evidence.means(
            studies.qdiscs_within(studies.NARROW_WINDOW, believed=True), measure
        )
        return tuple(found[qdisc] for qdisc in (80, 512, 4096))

    small, peak, large = believed(m.drops)
    assert 1.05 * small < peak > 20 * large
    small, peak, large = believed(m.retransmissions)
    assert 1.2 * small < peak > 5 * large


def test_queued_segments_are_retransmitted_only_if_tcp_does_not_detect_spurious_timeouts(
    quick: Reproduction,
) -> None:
    for reading in (studies.MAIN, studies.UNLIMITED):
        sane = quick.evidence.mean(studies.over_rings(reading)[4096], m.needless)
        tcp = studies.other_tcp(studies.BELIEVED, 4096, reading=reading)
        believed = quick.evidence.mean(tcp, m.needless)
        assert believed > 0.5
        assert sane < believed / 3


def test_the_text_states_eight_numbers_and_the_pictures_have_the_rest() -> None:
    stated = [number for number in PAPER.numbers if number.published is not None]
    assert len(stated) == 8
    assert Counter(number.relation for number in stated) == {"=": 6, ">": 1, "<": 1}
    assert sum(number.published or 0 for number in stated) == 10 + 585 + 20 + 4 + 13 + 106 + 20 + 1
    # Figures 3 and 4: three panels of seven sizes; four corners of two surfaces; four lines of
    # figures 8 and 9.
    assert len(PAPER.numbers) - len(stated) == 2 * 3 * 7 + 2 * 4 + 2 * 4


def test_the_sources_own_sizes_are_all_there() -> None:
    assert list(studies.QDISCS) == [0, 80, *(2**n for n in range(8, 13))]
    assert (min(studies.RINGS), max(studies.RINGS)) == (80, 4096)
    assert all(
        int(variant.split()[4]) + int(variant.split()[2]) == 5000
        for variant in studies.BQL.variants
    )


class _Tables(Seed):
    """A seed with hand-made tables: two files, one of them recorded twice, and three pings."""

    def __init__(self) -> None:
        tables = {
            "transfers": pl.DataFrame(
                {
                    "flow": ["file.1", "file.2", "file.2"],
                    "bytes": [1_000_000, 3_000_000, 3_000_000],
                    "end_ns": [4_000_000_000, 8_000_000_000, 9_000_000_000],
                }
            ),
            "probe": pl.DataFrame(
                {
                    "t_ns": [1_000_000_000, 2_000_000_000, 3_000_000_000, 8_500_000_000],
                    "probe": ["ping"] * 4,
                    "rtt_ns": [100_000_000, None, 300_000_000, 999_000_000],
                }
            ),
            "flows": pl.DataFrame(
                {
                    "flow": ["file.1", "file.2", "ping"],
                    "retransmits": [6, 4, 0],
                    "lost_packets": [1, 2, 5],
                }
            ),
            "links": pl.DataFrame(
                {
                    "link": ["down", "up"],
                    "measured_ns": [20_000_000_000] * 2,
                    "ring_mean_packets": [3.0, None],
                    "backlog_mean_packets": [9.0, 0.0],
                }
            ),
        }
        flow = type("Flow", (), {"finite": True})
        ping = type("Flow", (), {"finite": False})
        run: Any = type("Run", (), {"meta": type("Meta", (), {"flows": [flow, flow, ping]})})
        super().__init__(run, 1)
        self._tables = tables


def test_measures_end_with_the_last_copy() -> None:
    seed = _Tables()
    assert m.end_s(seed) == 8.0
    # The RTTs are 100 and 300 ms; one ping was lost, one was sent after the last copy.
    assert m.rtt_ms(seed) == pytest.approx(200)
    assert m.throughput_mbps(seed) == pytest.approx(4.0)


def test_queues_are_averaged_over_the_copies_not_over_the_run() -> None:
    seed = _Tables()
    # The Run lasts 20 s, the copies 8 s: all packets waited during the copies.
    assert m.in_ring(seed) == pytest.approx(7.5)
    assert m.in_qdisc_percent(seed) == pytest.approx(75)


def test_a_guest_runs_the_cases_that_decide() -> None:
    asked = {study.id: study.scenarios(PAPER.folder, True, "kernel") for study in PAPER.studies}
    assert sum(map(len, asked.values())) == 16
    # They include the variants that are judged, and no variant that a guest can't run.
    judged = {
        number.id for number in PAPER.numbers if number.variant in asked[number.variant.study]
    }
    assert {
        "rtt/4096",
        "rtt/more",
        "throughput/apart",
        "p95/2048",
        "p95/2048 BQL",
        "p95/apart",
    } <= judged
    # In a guest the receiver limits the windows: max_window alone does not.
    for one in asked["ring"]:
        tcp = asked["ring"][one].realise(1).flows[0].tcp
        assert tcp is not None
        assert (tcp.receive_buffer_max == 130 * 2280) == one.name.startswith(studies.MAIN)
    guests = [scenario.to_toml() for scenarios in asked.values() for scenario in scenarios.values()]
    assert not any("variant shared" in words for words in guests)


def test_a_size_that_was_not_run_is_an_error() -> None:
    with pytest.raises(NotRun, match="512"):
        Along({80: 1.0})[512]


def test_a_retransmission_is_needless_if_nothing_was_lost_for_it() -> None:
    seed = _Tables()
    assert m.retransmissions(seed) == 10
    assert m.needless(seed) == pytest.approx(0.7)


def test_comparisons_are_of_one_seed_with_itself(quick: Reproduction) -> None:
    ours: Estimate = m.more_at_4096(quick.evidence)
    along = studies.over_rings(studies.MAIN)
    large, default = (quick.evidence.estimate(along[ring], m.rtt_s).values for ring in (4096, 512))
    assert ours.values == tuple(100 * (a / b - 1) for a, b in zip(large, default, strict=True))
