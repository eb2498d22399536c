//! Laws of a connection for all parameters and paths: a sender and a receiver, and between them a
//! channel that loses, marks, delays and (in some tests) reorders.
//!
//! Every transfer completes, and each byte is delivered once and in order. No new segment leaves
//! beyond the windows. A timer runs while data is outstanding. The run-length scoreboard counts the
//! same segments in flight as a table with an entry per segment that follows the words of RFC 6675.

#[path = "common/congestion.rs"]
mod congestion;

use proptest::prelude::*;
use tcp::params::{
    Acknowledging, Buffers, FastRecovery, Growth, LossRecovery, Ns2Mode, PragueVariant, Timers,
};
use tcp::{AckSegment, CeCount, CongestionKind, Millis, Receiver, Segment, Sender, TcpParams};
use units::{Ecn, Rng, Span, Time};

/// RFC 6675 to the letter: one entry for each segment ever sent.
#[derive(Default)]
struct Table {
    una: usize,
    entries: Vec<Entry>,
    /// After a timeout, SACKs prove no new loss until this segment is acknowledged.
    slow_start_to: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    sacked: bool,
    lost: bool,
    resent: bool,
}

impl Entry {
    fn in_flight(&self) -> bool {
        !self.sacked && (!self.lost || self.resent)
    }
}

impl Table {
    fn pipe(&self) -> usize {
        self.entries[self.una..].iter().filter(|entry| entry.in_flight()).count()
    }

    fn sent(&mut self, segment: &Segment) {
        let seq = segment.seq as usize;
        if !segment.retransmit {
            assert_eq!(seq, self.entries.len(), "new data leaves in order");
            let missing = self.entries[self.una..].iter().any(|e| !e.sacked && e.lost && !e.resent);
            assert!(!missing, "{seq} is sent while a lost segment waits");
            self.entries.push(Entry::default());
            return;
        }
        let sacked_above = self.entries[seq..].iter().any(|entry| entry.sacked);
        let waiting = |entry: &Entry| !entry.sacked && entry.lost && !entry.resent;
        let first = (self.una..self.entries.len()).find(|&i| waiting(&self.entries[i]));
        let entry = &mut self.entries[seq];
        assert!(!entry.sacked, "{seq} has arrived and is retransmitted");
        match first {
            Some(first) => assert_eq!(seq, first, "lost segments are retransmitted in order"),
            None => assert!(!entry.lost, "{seq} is sent a third time"),
        }
        // NextSeg's rule 1, and rule 3, after which the segment counts as lost and retransmitted.
        // Rule 4 changes nothing.
        if entry.lost || sacked_above {
            (entry.lost, entry.resent) = (true, true);
        }
    }

    fn acknowledged(&mut self, ack: &AckSegment) {
        if (ack.ack as usize) < self.una {
            return;
        }
        self.una = ack.ack as usize;
        for &(start, end) in &ack.sacks[..usize::from(ack.sack_count)] {
            for seq in (start as usize).max(self.una)..end as usize {
                self.entries[seq].sacked = true;
            }
        }
        if self.slow_start_to.is_some_and(|end| self.una < end) {
            return;
        }
        self.slow_start_to = None;
        // IsLost: three segments above are SACKed.
        let mut above = 0;
        for entry in self.entries[self.una..].iter_mut().rev() {
            above += usize::from(entry.sacked);
            entry.lost |= !entry.sacked && above >= 3;
        }
    }

    fn timed_out(&mut self) {
        self.slow_start_to = Some(self.entries.len());
        for entry in &mut self.entries[self.una..] {
            (entry.lost, entry.resent) = (!entry.sacked, false);
        }
    }
}

/// The behaviour of the network.
#[derive(Clone, Debug)]
struct Channel {
    delay_ms: u64,
    data_loss: f64,
    ack_loss: f64,
    marks: f64,
    /// A packet is delayed by up to this much more. It overtakes another if the delay exceeds their
    /// distance.
    jitter_us: u64,
    seed: u64,
}

/// The largest number of CE segments that ACE can report.
const ACE_MAX: u32 = 7;

struct World {
    params: TcpParams,
    sender: Sender,
    receiver: Receiver,
    table: Table,
    channel: Channel,
    rng: Rng,
    now: Time,
    /// Segments in flight, in the order of arrival; ties in the order of sending.
    segments: Vec<(Time, Segment, bool)>,
    acks: Vec<(Time, AckSegment, CeCount)>,
    /// Marked segments with data that have arrived, copies included.
    taken: CeCount,
    /// The marks reported by the last valid ACK: an ACK is valid if it delivers a segment or has a
    /// newer stamp.
    reported: CeCount,
    stamp: Millis,
    /// The most by which the sender's count of marks may be wrong: segments of ACKs that delivered
    /// more than ACE can count, and marks of ACKs that reported more than that.
    ambiguous: u32,
    /// One past the last segment that the receiver's windows allow.
    edge: u64,
    /// Retransmitted SYNs.
    syns_again: u64,
    /// Answers to SYNs that have arrived and were not acknowledged.
    answers: u32,
    /// The result of the handshake, once it is known.
    ecn: bool,
    agreed: bool,
    complete: bool,
}

impl World {
    fn new(params: TcpParams, bytes: Option<u64>, channel: Channel) -> World {
        let receiver = Receiver::new(&params);
        World {
            sender: Sender::new(&params, bytes),
            table: Table::default(),
            rng: Rng::new(channel.seed, "channel"),
            now: Time::ZERO,
            segments: Vec::new(),
            acks: Vec::new(),
            taken: CeCount::default(),
            reported: CeCount::default(),
            stamp: Millis(0),
            ambiguous: 0,
            edge: room(&params, receiver.window_bytes()),
            syns_again: 0,
            answers: 0,
            ecn: params.ecn,
            agreed: false,
            receiver,
            complete: false,
            params,
            channel,
        }
    }

    fn arrival(&mut self) -> Time {
        self.now
            + Span::from_millis(self.channel.delay_ms)
            + Span::from_micros(self.rng.below(self.channel.jitter_us.max(1)))
    }

    fn window(&self) -> u64 {
        (self.sender.cwnd_bytes() / u64::from(self.sender.payload())).max(1)
    }

    fn inflight(&self) -> u64 {
        self.sender.inflight_bytes() / u64::from(self.sender.payload())
    }

    fn launch(&mut self, segment: Segment, marked: bool) {
        if !self.rng.chance(self.channel.data_loss) {
            let at = self.arrival();
            let index = self.segments.partition_point(|&(t, ..)| t <= at);
            self.segments.insert(index, (at, segment, marked));
        }
    }

    fn pump(&mut self) {
        let mut forced = 0;
        let probes = self.sender.stats().probes;
        loop {
            let full = self.inflight() >= self.window();
            let Some(segment) = self.sender.poll(self.now) else { break };
            let (una, nxt) = self.sender.outstanding();
            if segment.len == 0 {
                // But a repeated answer is acknowledged again.
                let requests = 1 + u64::from(self.params.accecn);
                let again = self.sender.stats().timeouts >= requests;
                assert_eq!(
                    segment.cwr,
                    segment.syn && self.params.ecn && !again,
                    "a sender asks for ECN once"
                );
                self.syns_again += u64::from(segment.syn && self.sender.stats().timeouts > 0);
                if segment.syn || self.answers == 0 {
                    assert_eq!((una, nxt), (0, 0), "a handshake precedes data");
                } else {
                    self.answers -= 1;
                }
                assert!(
                    self.params.handshake && (!segment.syn || self.sender.deadline().is_some())
                );
                self.launch(segment, false);
                continue;
            }
            assert!(segment.seq < nxt && segment.len > 0 && segment.len <= self.params.mss);
            if segment.retransmit {
                assert!(
                    segment.seq >= una
                        && (segment.ecn == Ecn::NotEct
                            || self.params.congestion.needs_ecn()
                            || self.params.accecn)
                        && !segment.cwr
                );
                forced += u32::from(full && self.sender.stats().probes == probes);
            } else {
                let probe = self.sender.stats().probes > probes;
                assert!(!full || probe, "new data leaves though the window is full");
                assert_eq!(segment.seq + 1, nxt);
                assert!(u64::from(segment.seq) < self.edge, "beyond the receive window");
                assert!(
                    segment.seq - una < self.params.growth.max_window.unwrap_or(u32::MAX).max(1)
                );
                assert_eq!(segment.ecn != Ecn::NotEct, self.ecn);
            }
            if self.is_modelled() {
                // A probe that retransmits the last segment does not imply its loss. The segment
                // may even be SACKed.
                let probe = segment.retransmit && self.sender.stats().probes > probes;
                if !probe {
                    self.table.sent(&segment);
                }
                self.check_pipe();
            }
            assert!(self.sender.deadline().is_some(), "data is outstanding and no timer runs");
            let marked = segment.ecn != Ecn::NotEct && self.rng.chance(self.channel.marks);
            self.launch(segment, marked);
        }
        assert!(self.sender.stats().probes <= probes + 1);
        assert!(forced <= 1, "only the first retransmission may leave if the window is full");
        let (una, nxt) = self.sender.outstanding();
        assert!(una == nxt || self.sender.deadline().is_some());
        assert!(self.sender.poll(self.now).is_none(), "poll returned None before");
    }

    /// Whether the table applies. ns-2's Sack1 counts differently from RFC 6675; an undo moves the
    /// marks back; F-RTO sends new data before lost segments.
    fn is_modelled(&self) -> bool {
        let LossRecovery { sack, undo, frto, rack, .. } = self.params.recovery;
        sack && self.params.ns2 == Ns2Mode::OFF && !undo && !frto && !rack
    }

    fn check_pipe(&self) {
        assert_eq!(self.inflight(), self.table.pipe() as u64, "in flight, by the table");
    }

    fn reply(&mut self, ack: Option<AckSegment>) {
        if let Some(ack) = ack
            && !self.rng.chance(self.channel.ack_loss)
        {
            let at = self.arrival();
            let index = self.acks.partition_point(|&(t, ..)| t <= at);
            self.acks.insert(index, (at, ack, self.taken));
        }
    }

    /// Handles the next event. Returns false if there is none.
    fn step(&mut self) -> bool {
        let segment = self.segments.first().map(|&(at, ..)| at);
        let ack = self.acks.first().map(|&(at, ..)| at);
        let [timer, delayed] = [self.sender.deadline(), self.receiver.deadline()];
        let Some(next) = [segment, ack, timer, delayed].into_iter().flatten().min() else {
            return false;
        };
        self.now = self.now.max(next);
        if segment == Some(next) {
            let (_, segment, marked) = self.segments.remove(0);
            let before = self.receiver.delivered_bytes();
            let ecn = if marked { Ecn::Ce } else { segment.ecn };
            if marked {
                self.taken.segments += 1;
                self.taken.bytes += segment.len;
            }
            let reply = self.receiver.on_segment(&Segment { ecn, ..segment }, self.now);
            assert!(self.receiver.delivered_bytes() >= before);
            self.reply(reply);
        } else if ack == Some(next) {
            let (_, ack, reported) = self.acks.remove(0);
            self.edge = self.edge.max(u64::from(ack.ack) + room(&self.params, ack.window));
            let (una, _) = self.sender.outstanding();
            self.answers += u32::from(ack.syn);
            if ack.syn {
                assert!(
                    ack.ace == 0 || self.params.ecn,
                    "an answer agrees to ECN without a request"
                );
                if !std::mem::replace(&mut self.agreed, true) {
                    self.ecn = ack.ace != 0;
                }
            }
            let acked = self.sender.on_ack(&ack, self.now);
            assert!(!(self.complete && acked.complete), "a transfer completes once");
            self.complete |= acked.complete;
            if !ack.syn && ack.ack >= una {
                let newer = std::mem::replace(&mut self.stamp, ack.stamp) != ack.stamp;
                if acked.delivered > 0 || newer {
                    // Marks of copies count too. An ACK that delivers nothing is ignored.
                    let marks = reported.segments.abs_diff(self.reported.segments);
                    self.ambiguous += if marks > ACE_MAX { marks } else { 0 };
                    self.reported = reported;
                }
                self.ambiguous += if acked.delivered > ACE_MAX { acked.delivered } else { 0 };
            }
            // A SYN after data is answered without effect: the answer's acknowledgement of data is
            // ignored.
            assert_eq!(self.sender.outstanding().0, if ack.syn { una } else { una.max(ack.ack) });
            if self.is_modelled() {
                if !ack.syn {
                    self.table.acknowledged(&ack);
                }
                self.check_pipe();
            }
            self.pump();
        } else if delayed == Some(next) {
            let reply = self.receiver.on_deadline(self.now);
            let later = self.receiver.deadline() > Some(self.now);
            assert!(
                reply.is_some() || later,
                "the receiver wanted to be woken now, or waits for a tick"
            );
            self.reply(reply);
        } else {
            let timeouts = self.sender.stats().timeouts;
            self.sender.on_deadline(self.now);
            if self.is_modelled() && self.sender.stats().timeouts > timeouts {
                self.table.timed_out();
                self.check_pipe();
            }
            self.pump();
            assert!(self.sender.deadline() > Some(self.now) || self.sender.deadline().is_none());
        }
        true
    }
}

/// Segments that a window allows: a window below one segment allows one.
fn room(params: &TcpParams, window: u64) -> u64 {
    (window / u64::from(params.mss)).max(1)
}

fn named() -> impl Strategy<Value = (FastRecovery, PragueVariant)> {
    let repairs =
        FastRecovery::NAMES.iter().map(|name| FastRecovery::from(*name)).collect::<Vec<_>>();
    let pragues =
        PragueVariant::NAMES.iter().map(|name| PragueVariant::from(*name)).collect::<Vec<_>>();
    (prop::sample::select(repairs), prop::sample::select(pragues))
}

fn params() -> impl Strategy<Value = TcpParams> {
    let switches =
        (any::<[bool; 8]>(), any::<[bool; 2]>(), congestion::any(), doubts(), ns2(), named());
    let windows = (
        1..20u32,
        prop::option::of(2..40u32),
        prop::option::of(1..40u32),
        1..200_000u64,
        1..4u64,
        0.1..1.0f64,
    );
    let timing = (1..3_000u64, 1..1_000u64, prop_oneof![Just(1u64), 1_000_000..100_000_000u64]);
    let acks = (1..4u32, 0..200u64, 0..4u64, 0..20u32, 88..2_000u32);
    let whose = prop_oneof![Just(TcpParams::LINUX), Just(TcpParams::LINUX_7_3)];
    let pauses = (0..3u64, 0..20_000u32, prop_oneof![Just(1u64), Just(4_000_000u64)], whose);
    (switches, windows, timing, acks, pauses).prop_map(
        |(
            (
                [sack, prr, limited_transmit, timestamps, ecn, accecn, pacing, hystart],
                [min_rto_on_variance, handshake],
                control,
                [dsack, undo, frto, rack, tlp],
                ns2,
                (fast_recovery, prague_variant),
            ),
            (
                initial_window,
                initial_ssthresh,
                max_window,
                receive_buffer,
                growth,
                receive_window_fraction,
            ),
            (initial_rto, min_rto, tick_ns),
            (delayed_ack_segments, delayed_ack, stretch, quick_acks, mss),
            (sack_delay, write_bytes, timer_tick_ns, whose),
        )| TcpParams {
            congestion: control.kind,
            own: control.own,
            mss,
            header_bytes: 52,
            ack_bytes: 52,
            timestamps,
            ecn,
            // Prague requires it (TCP_CONG_NEEDS_ACCECN).
            accecn: accecn || control.kind == CongestionKind::Prague,
            handshake,
            recovery: LossRecovery {
                sack,
                fast_recovery,
                prr,
                dsack,
                undo,
                frto,
                rack,
                tlp,
                limited_transmit,
            },
            growth: Growth {
                initial_window,
                initial_ssthresh,
                max_window,
                pacing,
                hystart,
                hystart_plus_plus: min_rto_on_variance,
                prague_virtual_rtt_ns: u64::from(!pacing) * 25_000_000,
                prague_variant,
                ..TcpParams::LINUX.growth
            },
            ns2,
            timers: Timers {
                initial_rto_ns: initial_rto * 1_000_000,
                min_rto_ns: min_rto * 1_000_000,
                max_rto_ns: 120_000_000_000,
                tick_ns,
                min_rto_on_variance,
                timer_tick_ns,
            },
            acks: Acknowledging {
                delayed_ack_segments,
                delayed_ack_ns: delayed_ack * 1_000_000,
                delayed_ack_max_ns: delayed_ack * stretch * 1_000_000,
                quick_acks,
                sack_delay_ns: sack_delay * 1_000_000,
                ..whose.acks
            },
            buffers: Buffers {
                write_bytes,
                receive_buffer,
                receive_buffer_max: receive_buffer * growth,
                receive_window_fraction,
                ..whose.buffers
            },
        },
    )
}

/// None of ns-2's differences, all of them, or some.
fn ns2() -> impl Strategy<Value = Ns2Mode> {
    let some = any::<[bool; 12]>().prop_map(
        |[
            growth_per_ack,
            growth_unvalidated,
            fractional_ssthresh,
            reduces_at_each_timeout,
            newreno_exit_at_ssthresh,
            newreno_full_ack_grows,
            ecn_once_a_window,
            sack_full_ack_stands,
            sack1_pipe,
            sack_bug_fix,
            timeout_forgets_sacks,
            vegas_of_paper,
        ]| Ns2Mode {
            growth_per_ack,
            growth_unvalidated,
            fractional_ssthresh,
            reduces_at_each_timeout,
            newreno_exit_at_ssthresh,
            newreno_full_ack_grows,
            ecn_once_a_window,
            sack_full_ack_stands,
            sack1_pipe,
            sack_bug_fix,
            timeout_forgets_sacks,
            vegas_of_paper,
        },
    );
    prop_oneof![2 => Just(Ns2Mode::OFF), 1 => Just(Ns2Mode::ON), 1 => some]
}

/// The mechanisms that doubt a loss. All are off in half of the cases: then the table above
/// applies.
fn doubts() -> impl Strategy<Value = [bool; 5]> {
    prop_oneof![Just([false; 5]), any::<[bool; 5]>()]
}

fn channel(jitter_us: u64) -> impl Strategy<Value = Channel> {
    let loss = || prop_oneof![Just(0.0), 0.0..0.05f64, 0.0..0.35f64];
    (1..200u64, loss(), loss(), prop_oneof![Just(0.0), 0.0..0.5f64], any::<u64>()).prop_map(
        move |(delay_ms, data_loss, ack_loss, marks, seed)| Channel {
            delay_ms,
            data_loss,
            ack_loss,
            marks,
            jitter_us,
            seed,
        },
    )
}

/// Far more than any of these transfers takes; a transfer with more events never ends.
const MOST_EVENTS: usize = 200_000;

fn transfers_completely(params: TcpParams, bytes: u64, channel: Channel) {
    let mut world = World::new(params, Some(bytes), channel);
    world.pump();
    let mut events = 0;
    while world.step() {
        events += 1;
        assert!(
            events < MOST_EVENTS,
            "{:?} outstanding at {:?}",
            world.sender.outstanding(),
            world.now
        );
        assert!(world.receiver.delivered_bytes() <= bytes);
    }
    assert!(world.complete);
    assert_eq!(world.receiver.delivered_bytes(), bytes);
    assert_eq!(world.sender.inflight_bytes(), 0);
    let stats = world.sender.stats();
    let segments = bytes.div_ceil(u64::from(world.params.mss));
    let sent = stats.sent_segments - (stats.retransmits - world.syns_again);
    // Prague makes some segments shorter.
    let smaller = world.params.congestion == CongestionKind::Prague;
    assert!(sent == segments || smaller && sent > segments, "{sent} segments for {segments}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_transfer_completes_over_a_path_that_keeps_order(
        params in params(), bytes in 1..300_000u64, channel in channel(0)
    ) {
        transfers_completely(params, bytes, channel);
    }

    #[test]
    fn every_transfer_completes_over_a_path_that_reorders(
        params in params(), bytes in 1..300_000u64, channel in channel(5_000)
    ) {
        transfers_completely(params, bytes, channel);
    }

    #[test]
    fn without_loss_or_reordering_nothing_is_sent_twice(
        params in params(), bytes in 1..300_000u64, delay_ms in 1..200u64
    ) {
        // The timer is longer than the RTT and the delayed ACK together. A probe may be needless.
        let params = params.with(|p| {
p.recovery.tlp = false;
p.timers.initial_rto_ns = 3_000_000_000;
p.timers.min_rto_ns = 1_000_000_000;
});
        let channel = Channel { delay_ms, data_loss: 0.0, ack_loss: 0.0, marks: 0.0, jitter_us: 0, seed: 1 };
        let mut world = World::new(params, Some(bytes), channel);
        world.pump();
        while world.step() {}
        prop_assert!(world.complete);
        prop_assert_eq!(world.sender.stats().retransmits, 0);
    }

    #[test]
    fn segments_outstanding_at_the_stop_are_delivered(
        params in params(), channel in channel(1_000), after in 0..2_000usize
    ) {
        let mut world = World::new(params, None, channel);
        world.pump();
        for _ in 0..after {
            world.step();
        }
        world.sender.stop();
        let (_, nxt) = world.sender.outstanding();
        let mut events = 0;
        while world.step() {
            events += 1;
            prop_assert!(events < MOST_EVENTS);
        }
        prop_assert_eq!(world.sender.outstanding(), (nxt, nxt));
        prop_assert_eq!(world.receiver.delivered_bytes(), world.sender.first_byte(nxt));
        if world.params.congestion != CongestionKind::Prague {
            prop_assert_eq!(world.sender.first_byte(nxt), u64::from(nxt) * u64::from(world.params.mss));
        }
    }
}

/// A connection that has agreed on AccECN, run to its end. `None` if its SYNs were lost, so that it
/// did not agree.
fn with_accurate_feedback(params: TcpParams, bytes: u64, channel: Channel) -> Option<World> {
    let params = params.with(|p| (p.ecn, p.accecn) = (true, true));
    let mut world = World::new(params, Some(bytes), channel);
    world.pump();
    while world.step() {}
    world.receiver.ce_received().and(world.sender.ce_reported()).is_some().then_some(world)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_marks_that_arrive_are_reported_to_the_sender(
        params in params(), bytes in 1..300_000u64, channel in channel(0)
    ) {
        let channel = Channel { ack_loss: 0.0, ..channel };
        let Some(world) = with_accurate_feedback(params, bytes, channel) else { return Ok(()) };
        prop_assert_eq!(world.receiver.ce_received(), Some(world.taken));
        let reported = world.sender.ce_reported().unwrap().segments;
        let amiss = reported.abs_diff(world.reported.segments);
        prop_assert!(amiss <= world.ambiguous, "{reported} reported, not {:?}", world.reported);
        prop_assert_eq!(amiss % (ACE_MAX + 1), 0);
    }

    #[test]
    fn lost_acks_hide_multiples_of_eight_marks(
        params in params(), bytes in 1..300_000u64, channel in channel(0)
    ) {
        let Some(world) = with_accurate_feedback(params, bytes, channel) else { return Ok(()) };
        prop_assert_eq!(world.receiver.ce_received(), Some(world.taken));
        let reported = world.sender.ce_reported().unwrap().segments;
        prop_assert!(reported <= world.reported.segments + world.ambiguous);
        prop_assert_eq!(reported.abs_diff(world.reported.segments) % (ACE_MAX + 1), 0);
    }

    #[test]
    fn the_option_reports_the_marked_bytes_despite_lost_acks(
        params in params(), bytes in 1..300_000u64, channel in channel(0)
    ) {
        // Without SACKs the option always has room.
        let params = params.with(|p| p.recovery.sack = false);
        let Some(world) = with_accurate_feedback(params, bytes, channel) else { return Ok(()) };
        prop_assert_eq!(world.sender.ce_reported().unwrap().bytes, world.reported.bytes);
    }
}

#[test]
fn with_ecn_every_congestion_control_is_marked_and_gets_the_echoes() {
    for &congestion in CongestionKind::ALL {
        for (accecn, handshake) in [(false, false), (false, true), (true, false), (true, true)] {
            if congestion.needs_accecn() && !accecn {
                continue;
            }
            let params = TcpParams::LINUX.with(|p| {
                (p.congestion, p.handshake) = (congestion, handshake);
                (p.ecn, p.accecn) = (true, accecn);
            });
            let (marks, [data_loss, ack_loss]) = (0.2, [0.0; 2]);
            let channel =
                Channel { delay_ms: 10, data_loss, ack_loss, marks, jitter_us: 0, seed: 1 };
            let mut world = World::new(params, Some(300_000), channel);
            world.pump();
            while world.step() {}
            let setting = (congestion, accecn, handshake);
            assert!(world.taken.segments > 10, "{setting:?}");
            assert!(world.sender.stats().ecn_reductions > 0, "{setting:?}");
        }
    }
}

#[test]
fn a_timeout_that_clears_sacks_clears_the_retransmissions_too() {
    let params = TcpParams::NS2.with(|p| {
        p.mss = 88;
        p.ecn = true;
        p.recovery.sack = true;
        p.recovery.rack = true;
        p.recovery.limited_transmit = false;
        p.growth.initial_window = 1;
        p.ns2 = Ns2Mode { sack_bug_fix: true, timeout_forgets_sacks: true, ..Ns2Mode::OFF };
        p.timers.initial_rto_ns = 304_000_000;
        p.timers.min_rto_ns = 1_000_000;
        p.timers.max_rto_ns = 120_000_000_000;
        p.timers.tick_ns = 1;
        p.acks.delayed_ack_ns = 0;
        p.acks.delayed_ack_max_ns = 0;
        p.buffers.receive_buffer = 3686;
        p.buffers.receive_buffer_max = 3686;
        p.buffers.receive_window_fraction = 0.459_128_971_871_266_83;
    });
    let channel = Channel {
        delay_ms: 5,
        data_loss: 0.336_862_052_449_335_37,
        ack_loss: 0.288_640_702_065_619_87,
        marks: 0.0,
        jitter_us: 0,
        seed: 2731831106714877800,
    };
    transfers_completely(params, 21_649, channel);
}
