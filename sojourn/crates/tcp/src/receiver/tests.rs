//! The receiver, segment by segment.

use super::reassembly::TrueSize;
use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const MSS: u32 = 1000;

fn params() -> TcpParams {
    crate::cc::test::params().with(|p| {
        p.congestion = CongestionKind::Reno;
        p.ecn = true;
        p.buffers.receive_buffer = 100_000;
        p.buffers.receive_buffer_max = 100_000;
        p.buffers.receive_window_fraction = 0.5;
    })
}

fn receiver() -> Receiver {
    Receiver::new(&params())
}

/// A segment sent at `ms`, which is also its stamp.
fn segment(seq: u32, ms: u64) -> Segment {
    Segment {
        seq,
        len: MSS,
        stamp: Time(ms * MS),
        retransmit: false,
        cwr: false,
        ace: 0,
        ecn: Ecn::Ect0,
        syn: false,
        push: false,
        echo: None,
    }
}

/// The ECN field of a segment with or without a mark.
fn field(ce: bool) -> Ecn {
    if ce { Ecn::Ce } else { Ecn::Ect0 }
}

/// A segment that arrives at `at` after `way_ms`. It answers an ACK that took `ack_way_ms`.
fn answering(seq: u32, at: Time, way_ms: u64, ack_way_ms: u64) -> Segment {
    let stamp = Time(at.0.saturating_sub(way_ms * MS));
    let echo = stamp.0.checked_sub(ack_way_ms * MS).map(|sent| Millis::at(Time(sent)));
    Segment { stamp, echo, ..segment(seq, 0) }
}

fn arrive(r: &mut Receiver, seq: u32, ms: u64) -> Option<AckSegment> {
    r.on_segment(&segment(seq, ms), Time((ms + 10) * MS))
}

fn sacks(ack: &AckSegment) -> &[(u32, u32)] {
    &ack.sacks[..usize::from(ack.sack_count)]
}

#[test]
fn every_second_segment_is_acknowledged() {
    let mut r = receiver();
    assert_eq!(arrive(&mut r, 0, 0), None);
    assert_eq!(arrive(&mut r, 1, 1).map(|a| a.ack), Some(2));
    assert_eq!(arrive(&mut r, 2, 2), None);
    assert_eq!(arrive(&mut r, 3, 3).map(|a| a.ack), Some(4));
    assert_eq!(r.delivered_bytes(), 4000);
}

#[test]
fn a_single_segment_is_acknowledged_by_the_delayed_ack_timer() {
    let mut r = receiver();
    assert_eq!(r.deadline(), None);
    arrive(&mut r, 0, 0);
    assert_eq!(r.deadline(), Some(Time(50 * MS)));
    assert_eq!(r.on_deadline(Time(50 * MS - 1)), None);
    assert_eq!(r.on_deadline(Time(50 * MS)).map(|a| a.ack), Some(1));
    assert_eq!(r.deadline(), None);
    assert_eq!(r.on_deadline(Time(60 * MS)), None);
}

#[test]
fn an_ack_disarms_the_timer() {
    let mut r = receiver();
    arrive(&mut r, 0, 0);
    arrive(&mut r, 1, 1);
    assert_eq!(r.deadline(), None);
}

#[test]
fn the_first_segments_are_acknowledged_one_by_one() {
    let mut r = Receiver::new(&params().with(|p| p.acks.quick_acks = 3));
    let acks: Vec<bool> = (0..7).map(|seq| arrive(&mut r, seq, 0).is_some()).collect();
    assert_eq!(acks, [true, true, true, false, true, false, true]);
}

#[test]
fn a_gap_its_filling_and_a_duplicate_are_acknowledged_at_once() {
    let mut r = receiver();
    arrive(&mut r, 0, 0);
    // 1 and 3 are missing.
    assert_eq!(arrive(&mut r, 2, 2).map(|a| a.ack), Some(1));
    assert_eq!(arrive(&mut r, 4, 4).map(|a| a.ack), Some(1));
    // Part of the gap, all of it, and an old segment.
    assert_eq!(arrive(&mut r, 1, 5).map(|a| a.ack), Some(3));
    assert_eq!(arrive(&mut r, 3, 6).map(|a| a.ack), Some(5));
    assert_eq!(arrive(&mut r, 2, 7).map(|a| a.ack), Some(5));
    // The receiver delays ACKs again.
    assert_eq!(arrive(&mut r, 5, 8), None);
    assert_eq!(r.delivered_bytes(), 6000);
}

#[test]
fn the_block_of_the_latest_segment_is_reported_first() {
    // RFC 2018 §4: then the blocks reported most recently. 0, 2, 4, 6 and 8 are missing.
    let mut r = receiver();
    let mut last = |seq| arrive(&mut r, seq, 0).map(|a| sacks(&a).to_vec());
    assert_eq!(last(1), Some(vec![(1, 2)]));
    assert_eq!(last(3), Some(vec![(3, 4), (1, 2)]));
    assert_eq!(last(5), Some(vec![(5, 6), (3, 4), (1, 2)]));
    assert_eq!(last(7), Some(vec![(7, 8), (5, 6), (3, 4)]));
    // A block that grows moves to the front; a segment that joins two blocks leaves one.
    assert_eq!(last(8), Some(vec![(7, 9), (5, 6), (3, 4)]));
    assert_eq!(last(4), Some(vec![(3, 6), (7, 9), (1, 2)]));
    // A duplicate's block moves to the front too, after the duplicate itself (RFC 2883 §4): three
    // in all.
    assert_eq!(last(1), Some(vec![(1, 2), (1, 2), (3, 6)]));
    // Acknowledged segments are not reported.
    assert_eq!(last(0), Some(vec![(3, 6), (7, 9)]));
    assert_eq!(last(2), Some(vec![(7, 9)]));
    assert_eq!(last(6), Some(vec![]));
}

#[test]
fn a_duplicate_is_reported_once_and_first() {
    // RFC 2883 §4: below the ACK, or within the second block.
    let mut r = receiver();
    let mut last = |seq| arrive(&mut r, seq, 0).map(|a| (a.ack, sacks(&a).to_vec()));
    last(0);
    assert_eq!(last(1), Some((2, vec![])));
    assert_eq!(last(0), Some((2, vec![(0, 1)])));
    assert_eq!(last(4), Some((2, vec![(4, 5)])));
    assert_eq!(last(5), Some((2, vec![(4, 6)])));
    assert_eq!(last(4), Some((2, vec![(4, 5), (4, 6)])));
    assert_eq!(last(1), Some((2, vec![(1, 2), (4, 6)])));
    assert_eq!(last(2), Some((3, vec![(4, 6)])));
}

#[test]
fn four_blocks_fit_without_timestamps_and_none_without_sack() {
    let report = |timestamps, sack| {
        let mut r = Receiver::new(&params().with(|p| {
            p.timestamps = timestamps;
            p.recovery.sack = sack;
        }));
        (1..6).filter_map(|i| arrive(&mut r, 2 * i, 0)).last().map(|a| sacks(&a).to_vec())
    };
    assert_eq!(report(false, true), Some(vec![(10, 11), (8, 9), (6, 7), (4, 5)]));
    assert_eq!(report(true, true), Some(vec![(10, 11), (8, 9), (6, 7)]));
    assert_eq!(report(true, false), Some(vec![]));
}

#[test]
fn a_delayed_ack_echoes_the_earliest_segment_it_covers() {
    // RFC 7323 §4.3, case (A).
    let mut r = receiver();
    arrive(&mut r, 0, 1);
    assert_eq!(arrive(&mut r, 1, 2).map(|a| a.echo), Some(Time(MS)));
    arrive(&mut r, 2, 3);
    assert_eq!(arrive(&mut r, 3, 4).map(|a| a.echo), Some(Time(3 * MS)));
}

#[test]
fn a_segment_beyond_a_gap_is_not_echoed_and_the_one_that_fills_it_is() {
    // RFC 7323 §4.3, cases (B) and (C): the table there, with every segment acknowledged.
    let mut r = Receiver::new(&params().with(|p| p.acks.delayed_ack_segments = 1));
    let echoes: Vec<u64> = [(0, 1), (2, 3), (1, 2), (4, 5), (3, 4)]
        .iter()
        .filter_map(|&(seq, ms)| arrive(&mut r, seq, ms).map(|a| a.echo.0 / MS))
        .collect();
    assert_eq!(echoes, [1, 1, 2, 2, 4]);
}

/// Three SACKs of the gap have left. The SACKs of segments that arrive at the times `came`, ms,
/// wait.
fn with_a_waiting_sack(came: &[f64], late: bool) -> (Receiver, Time) {
    let mut r = Receiver::new(&params().with(|p| {
        p.acks.sack_delay_ns = MS;
        p.acks.sack_stamp_is_late = late;
    }));
    arrive(&mut r, 0, 0);
    for seq in [2, 3, 4] {
        assert!(arrive(&mut r, seq, 1).is_some());
    }
    for (seq, ms) in (5..).zip(came) {
        let now = Time((ms * 1e6) as u64);
        assert_eq!(r.on_segment(&segment(seq, now.0 / MS - 10), now), None);
    }
    let due = r.deadline().unwrap();
    (r, due)
}

#[test]
fn in_linux_6_12_a_delayed_sack_has_the_timestamp_of_the_latest_arrival() {
    // The SACK leaves 1.1 ms after the first that waits; 1 ms is 5 % of twice the 10 ms of one way.
    for (late, stamp) in [(true, 20), (false, 21)] {
        let (mut r, due) = with_a_waiting_sack(&[20.5, 20.9], late);
        assert_eq!(due, Time(21_600_000));
        assert_eq!(r.on_deadline(due).unwrap().stamp, Millis(stamp));
    }
    // The delayed-ACK timer of the first segment still runs, and it reads the clock.
    let (mut r, due) = with_a_waiting_sack(&[49.5, 49.9], true);
    assert_eq!(due, Time(50 * MS));
    assert_eq!(r.on_deadline(due).unwrap().stamp, Millis(50));
}

#[test]
fn sacks_wait_for_a_part_of_the_lesser_rtt_of_timestamps_and_handshake() {
    for (rtt_us, waits_us) in [(16_900, 845), (20_900, 900)] {
        let mut r = Receiver::new(&params().with(|p| {
            p.acks.sack_delay_ns = MS;
            p.handshake = true;
        }));
        r.policy.established(Some(Span::from_micros(rtt_us)), Time::ZERO);
        // Each stamp is answered after 18 ms.
        for seq in [0, 2, 3, 4, 5] {
            let at = Time((30 + u64::from(seq)) * MS);
            r.on_segment(&answering(seq, at, 10, 8), at);
        }
        assert_eq!(r.deadline(), Some(Time(35 * MS + 1000 * (waits_us + 100))), "{rtt_us}");
    }
}

#[test]
fn an_older_stamp_does_not_replace_a_newer_one() {
    let mut r = Receiver::new(&params().with(|p| p.acks.delayed_ack_segments = 1));
    arrive(&mut r, 0, 5);
    assert_eq!(arrive(&mut r, 0, 1).map(|a| a.echo), Some(Time(5 * MS)));
}

#[test]
fn without_timestamps_nothing_is_echoed() {
    let mut r = Receiver::new(&params().with(|p| {
        p.timestamps = false;
        p.acks.delayed_ack_segments = 1;
    }));
    assert_eq!(arrive(&mut r, 0, 1).map(|a| a.echo), Some(Time::NEVER));
}

#[test]
fn ece_is_set_from_the_first_mark_until_cwr() {
    let mut r = Receiver::new(&params().with(|p| p.acks.delayed_ack_segments = 1));
    let mut ece = |seq, ce, cwr| {
        r.on_segment(&Segment { cwr, ecn: field(ce), ..segment(seq, 0) }, Time::ZERO)
            .map(|a| a.ece())
    };
    assert_eq!(ece(0, false, false), Some(false));
    assert_eq!(ece(1, true, false), Some(true));
    assert_eq!(ece(2, false, false), Some(true));
    assert_eq!(ece(3, false, true), Some(false));
    assert_eq!(ece(4, false, false), Some(false));
    // A mark on the segment that carries CWR starts a new demand.
    assert_eq!(ece(5, true, false), Some(true));
    assert_eq!(ece(6, true, true), Some(true));
}

#[test]
fn an_ecn_echo_does_not_wait_for_the_delayed_ack() {
    let mut r = receiver();
    assert_eq!(
        r.on_segment(&Segment { ecn: Ecn::Ce, ..segment(0, 0) }, Time::ZERO).map(|a| a.ece()),
        Some(true)
    );
    let cwr = Segment { cwr: true, ..segment(1, 0) };
    assert_eq!(r.on_segment(&cwr, Time::ZERO).map(|a| a.ece()), Some(false));
}

#[test]
fn a_marked_cwr_is_answered_as_quickly_as_the_first_mark() {
    let mut r = receiver();
    let mut answered = |seq, ce, cwr| {
        let now = Time(u64::from(seq) * MS);
        r.on_segment(&Segment { cwr, ecn: field(ce), ..segment(seq, 0) }, now).is_some()
    };
    assert!(answered(0, true, false));
    // Once quick ACKs are used up, every second segment is answered.
    let calm = (1..40).find(|&seq| !answered(seq, false, false)).unwrap();
    assert!(answered(calm + 1, false, false));
    assert!(answered(calm + 2, true, true));
    assert!(answered(calm + 3, false, false), "the new demand has two quick ACKs");
}

#[test]
fn a_connection_without_ecn_ignores_marks() {
    let mut r = Receiver::new(&params().with(|p| {
        p.ecn = false;
        p.acks.delayed_ack_segments = 1;
    }));
    assert_eq!(
        r.on_segment(&Segment { ecn: Ecn::Ce, ..segment(0, 0) }, Time::ZERO).map(|a| a.ece()),
        Some(false)
    );
}

#[test]
fn the_window_is_the_advertisable_part_of_the_buffer() {
    let mut r = receiver();
    assert_eq!(r.window_bytes(), 50_000);
    arrive(&mut r, 0, 0);
    assert_eq!(arrive(&mut r, 1, 0).map(|a| a.window), Some(50_000));
}

#[test]
fn buffered_segments_narrow_the_window_but_its_right_edge_stays() {
    let mut r = receiver();
    // Ten segments beyond the gap: the right edge was offered and stays.
    for seq in 1..=10 {
        assert_eq!(arrive(&mut r, seq, 0).map(|a| (a.ack, a.window)), Some((0, 50_000)));
    }
    // Ten more beyond a second gap; then the first is filled up to 11.
    for seq in 12..=21 {
        arrive(&mut r, seq, 0);
    }
    // The offered edge is 50 000. The buffer allows 11 000 + (100 000 - 20 · 2304 - 1832) / 2,
    // where the data now in order has not been read yet.
    assert_eq!(arrive(&mut r, 0, 0).map(|a| (a.ack, a.window)), Some((11, 39_000)));
    // All data is in order, ten segments of it not read: (100 000 - 10 · 2304 - 1832) / 2. Then the
    // whole buffer again, except for the segment that has just arrived.
    assert_eq!(arrive(&mut r, 11, 0).map(|a| (a.ack, a.window)), Some((22, 37_564)));
    arrive(&mut r, 22, 0);
    assert_eq!(arrive(&mut r, 23, 0).map(|a| (a.ack, a.window)), Some((24, 50_000 - 1832 / 2)));
}

#[test]
fn an_unlimited_buffer_stays_unlimited() {
    for fraction in [1.0, 0.5] {
        let mut r = Receiver::new(&params().with(|p| {
            p.buffers.receive_buffer = u64::MAX;
            p.buffers.receive_buffer_max = u64::MAX;
            p.buffers.receive_window_fraction = fraction;
        }));
        for seq in (0..100).filter(|seq| seq % 7 != 3) {
            if let Some(ack) = arrive(&mut r, seq, u64::from(seq)) {
                assert!(ack.window >= u64::MAX / 4);
            }
        }
    }
}

#[test]
fn a_short_segment_counts_its_payload_in_order_or_not() {
    let mut r = receiver();
    let short = Segment { len: 10, ..segment(3, 0) };
    arrive(&mut r, 0, 0);
    assert!(r.on_segment(&short, Time::ZERO).is_some());
    arrive(&mut r, 2, 0);
    assert_eq!(r.delivered_bytes(), 1000);
    assert_eq!(arrive(&mut r, 1, 0).map(|a| a.ack), Some(4));
    assert_eq!(r.delivered_bytes(), 3010);
    r.on_segment(&Segment { len: 7, ..segment(4, 0) }, Time::ZERO);
    assert_eq!(r.delivered_bytes(), 3017);
}

/// A sender that doubles its window each RTT of 100 ms, up to the offered window and `path`
/// segments. Returns the window offered and the segments sent, round by round.
fn slow_start(r: &mut Receiver, path: u64, rounds: u64) -> Vec<(u64, u64)> {
    let (mut seq, mut cwnd) = (0, 10);
    (0..rounds)
        .map(|round| {
            let sent = cwnd.min(r.window_bytes() / u64::from(MSS)).min(path);
            for i in 0..sent {
                // A path of `path` segments a round trip, one segment after the other.
                let at = Time((round * 100 + 10) * MS + i * 100 * MS / path);
                r.on_segment(&answering(seq, at, 10, 90), at);
                seq += 1;
            }
            cwnd = 2 * sent;
            (r.window_bytes(), sent)
        })
        .collect()
}

#[test]
fn autotuning_never_limits_slow_start() {
    let mut r = Receiver::new(&params().with(|p| p.buffers.receive_buffer_max = 100_000_000));
    for (round, (window, sent)) in slow_start(&mut r, 20_000, 8).into_iter().enumerate() {
        if round >= 3 {
            assert!(
                window >= 2 * sent * u64::from(MSS),
                "round {round}: {window} for {sent} segments"
            );
        }
    }
    assert!(r.window_bytes() > 1_000_000);
}

#[test]
fn autotuning_stops_at_the_buffers_bound() {
    let mut r = Receiver::new(&params().with(|p| p.buffers.receive_buffer_max = 300_000));
    slow_start(&mut r, 20_000, 20);
    // The segment that has just arrived is in the buffer while the window opens.
    let most = (300_000 - TrueSize::new(MSS).in_order) / 2;
    assert_eq!(r.window_bytes(), most.next_multiple_of(1 << r.window_scale()));
}

#[test]
fn the_scale_is_of_the_whole_buffer() {
    let scale = |most| {
        let buffers = params().with(|p| {
            (p.buffers.receive_buffer, p.buffers.receive_buffer_max) = (131_072, most);
        });
        Receiver::new(&buffers).window_scale()
    };
    // The scales in the guests' SYNs with a maximum of 6 MiB, Linux's default. A program may ask
    // for 208 KiB.
    assert_eq!([131_072, 1 << 20, 6 << 20].map(scale), [2, 5, 7]);
}

#[test]
fn the_window_of_a_steady_flow_settles() {
    // 200 segments a round trip: the buffer has room for a multiple of that, not for the whole 50
    // MB.
    let mut r = Receiver::new(&params().with(|p| p.buffers.receive_buffer_max = 100_000_000));
    slow_start(&mut r, 200, 100);
    assert!(r.window_bytes() >= 2 * 200_000);
    assert!(r.window_bytes() <= 20 * 200_000);
}

#[test]
fn a_standing_queue_counts_as_round_trip_time() {
    // 10 segments a millisecond with 1 s of queue ahead: 10 000 segments an RTT must fit.
    let offered = |queue_ms: u64| {
        let mut r = Receiver::new(&params().with(|p| p.buffers.receive_buffer_max = 1_000_000_000));
        for seq in 0..100_000u32 {
            let at = Time(10 * MS + u64::from(seq) * MS / 10);
            // The queue builds up over the first second.
            let queue = queue_ms * MS * u64::from(seq.min(10_000)) / 10_000;
            r.on_segment(&answering(seq, at, 10 + queue / MS, 10), at);
        }
        r.window_bytes()
    };
    assert!(offered(1000) >= 10_000_000);
    assert!(offered(0) < 2_000_000);
}

proptest! {
    #[test]
    fn in_any_order_with_duplicates_every_byte_is_delivered_once_and_sacks_are_correct(
        // With eight segments at most four ranges lie beyond a gap, so no block is dropped.
        order in prop_oneof![Just(8u32), Just(60)].prop_flat_map(|n| Just((0..n).collect::<Vec<_>>()).prop_shuffle()),
        again in proptest::collection::vec(0..60usize, 0..60),
    ) {
        let mut r = receiver();
        let mut arrived = std::collections::BTreeSet::new();
        let mut edge = 0;
        let sequence = order.iter().zip(again.iter().map(Some).chain(std::iter::repeat(None)));
        let mut seqs = Vec::new();
        for (&seq, repeat) in sequence {
            seqs.push(seq);
            seqs.extend(repeat.map(|&i| seqs[i % seqs.len()]));
        }
        for (i, &seq) in seqs.iter().enumerate() {
            let ack = arrive(&mut r, seq, i as u64);
            let duplicate = !arrived.insert(seq);
            let next = (0..).find(|n| !arrived.contains(n)).unwrap_or(0);
            prop_assert_eq!(r.delivered_bytes(), u64::from(next * MSS));
            let held = arrived.iter().filter(|&&s| s > next).count() as u64;
            prop_assert_eq!(r.ofo.held_bytes(), held * u64::from(MSS));
            if let Some(ack) = ack {
                prop_assert_eq!(ack.ack, next);
                prop_assert!(r.delivered_bytes() + ack.window >= edge);
                edge = r.delivered_bytes() + ack.window;
                let (first, others) = sacks(&ack).split_at(usize::from(duplicate));
                prop_assert!(!duplicate || first == [(seq, seq + 1)]);
                for &(from, to) in others {
                    prop_assert!(from > next && from < to);
                    prop_assert!((from..to).all(|s| arrived.contains(&s)));
                    let is_maximal = !arrived.contains(&(from - 1)) && !arrived.contains(&to);
                    prop_assert!(is_maximal || order.len() > 8);
                }
                if seq > next {
                    prop_assert!((others[0].0..others[0].1).contains(&seq));
                }
            } else {
                prop_assert!(held == 0);
            }
        }
        prop_assert_eq!(r.delivered_bytes(), order.len() as u64 * u64::from(MSS));
        prop_assert!(r.ofo.is_empty() && r.ofo.sack_blocks(None).1 == 0);
    }
}
