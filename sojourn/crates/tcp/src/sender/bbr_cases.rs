//! The draft's example test cases (draft-ietf-ccwg-bbr of August 2026, appendix *BBR Example Test
//! Cases*), in its order and with its titles. They run over a small path: one bottleneck, a delay,
//! and what a case needs (losses, a policer, aggregated ACKs, an application that sends little).
//! `version_1` runs the cases that apply to version 1.
//!
//! Cases 4 and 6 differ from the draft; their comments give the reason.

mod version_1;

use super::Sender;
use crate::cc::bbr3::{Bbr3, Phase};
use crate::cc::{Bbr, Control};
use crate::{AckSegment, CongestionKind, Receiver, Segment, TcpParams};
use std::collections::VecDeque;
use units::{Span, Time};

const MS: u64 = 1_000_000;
/// Bytes of a segment on the link: 1000 of payload.
const WIRE: u64 = 1052;

type Loses = Box<dyn FnMut(&Segment) -> bool>;

/// A connection over a bottleneck.
struct Path {
    now: Time,
    sender: Sender,
    receiver: Receiver,
    bps: u64,
    one_way: Span,
    /// The capacity of the bottleneck's queue, segments.
    buffer: usize,
    queue: VecDeque<Segment>,
    free_at: Option<Time>,
    forward: VecDeque<(Time, Segment)>,
    back: VecDeque<(Time, AckSegment)>,
    /// ACKs arrive only at multiples of this time.
    gather: Option<Span>,
    /// The segments that the path loses before the bottleneck.
    loses: Option<Loses>,
    /// Nothing arrives at the receiver before this time. Earlier arrivals are postponed until then.
    stalled_until: Time,
    /// The application's writes: segments a second, their start, and the segments written before.
    writes: Option<(f64, Time, f64)>,
    /// A policer: segments a second, its depth, its tokens, and the time of the last update.
    policer: Option<(f64, f64, f64, Time)>,
    sent: u64,
    dropped: u64,
}

impl Path {
    fn new(kind: CongestionKind, mbit: f64, rtt_ms: u64, buffer: usize) -> Path {
        let params: TcpParams = crate::cc::test::params().with(|p| {
            p.congestion = kind;
            p.buffers.receive_buffer = 1 << 27;
            p.buffers.receive_buffer_max = 1 << 27;
            p.timers.max_rto_ns = 60_000 * MS;
            p.handshake = true;
        });
        Path {
            now: Time::ZERO,
            sender: Sender::new(&params, None),
            receiver: Receiver::new(&params),
            bps: (mbit * 1e6) as u64,
            one_way: Span(rtt_ms * MS / 2),
            buffer,
            queue: VecDeque::new(),
            free_at: None,
            forward: VecDeque::new(),
            back: VecDeque::new(),
            gather: None,
            loses: None,
            stalled_until: Time::ZERO,
            writes: None,
            policer: None,
            sent: 0,
            dropped: 0,
        }
    }

    /// A connection of version 3 over a path with a queue of two BDPs.
    fn v3(mbit: f64, rtt_ms: u64) -> Path {
        let bdp = mbit * 1e6 / 8.0 / WIRE as f64 * rtt_ms as f64 / 1000.0;
        Path::new(CongestionKind::Bbr3, mbit, rtt_ms, 20 + 4 * bdp as usize)
    }

    fn bbr3(&mut self) -> &mut Bbr3 {
        match &mut self.sender.control {
            Control::Bbr3(bbr) => bbr,
            _ => unreachable!("of another version"),
        }
    }

    fn bbr(&mut self) -> &mut Bbr {
        match &mut self.sender.control {
            Control::Bbr(bbr) => bbr,
            _ => unreachable!("of another version"),
        }
    }

    fn phase(&mut self) -> Phase {
        self.bbr3().phase
    }

    fn in_flight(&self) -> f64 {
        f64::from(self.sender.pipe())
    }

    /// The link's capacity, segments a second.
    fn link(&self) -> f64 {
        self.bps as f64 / 8.0 / WIRE as f64
    }

    fn bdp(&self) -> f64 {
        self.link() * 2.0 * self.one_way.as_secs_f64()
    }

    /// From now on the application writes `per_second` segments a second.
    fn write(&mut self, per_second: f64) {
        self.writes = Some((per_second, self.now, f64::from(self.sender.nxt)));
    }

    fn written(&self) -> Option<u32> {
        let (per_second, since, before) = self.writes?;
        Some((before + per_second * self.now.since(since).as_secs_f64()) as u32)
    }

    fn next_write(&self) -> Time {
        match (self.writes, self.written()) {
            (Some((per_second, since, before)), Some(written)) if per_second > 0.0 => {
                let seconds = (f64::from(written + 1) - before) / per_second;
                since + Span(Span::from_secs_f64(seconds).0 + 1)
            }
            _ => Time::NEVER,
        }
    }

    fn step(&mut self) {
        let front = |due: Option<Time>| due.unwrap_or(Time::NEVER);
        let arrival = front(self.forward.front().map(|&(at, _)| at.max(self.stalled_until)));
        let next = front(self.sender.deadline())
            .min(front(self.receiver.deadline()))
            .min(front(self.free_at))
            .min(arrival)
            .min(front(self.back.front().map(|&(at, _)| at)))
            .min(self.next_write());
        assert_ne!(next, Time::NEVER, "no event is left");
        self.now = self.now.max(next);
        if self.free_at.is_some_and(|at| at <= self.now) {
            self.free_at = None;
            if let Some(segment) = self.queue.pop_front() {
                self.forward.push_back((self.now + self.one_way, segment));
            }
            self.transmit();
        }
        if arrival <= self.now
            && let Some((_, segment)) = self.forward.pop_front()
        {
            let ack = self.receiver.on_segment(&segment, self.now);
            self.answer(ack);
        }
        if self.receiver.deadline().is_some_and(|at| at <= self.now) {
            let ack = self.receiver.on_deadline(self.now);
            self.answer(ack);
        }
        if self.back.front().is_some_and(|&(at, _)| at <= self.now)
            && let Some((_, ack)) = self.back.pop_front()
        {
            self.sender.on_ack(&ack, self.now);
        }
        if self.sender.deadline().is_some_and(|at| at <= self.now) {
            self.sender.on_deadline(self.now);
        }
        self.pump();
    }

    fn answer(&mut self, ack: Option<AckSegment>) {
        let mut at = self.now + self.one_way;
        if let Some(gather) = self.gather {
            at = Time(at.0.div_ceil(gather.0) * gather.0);
        }
        self.back.extend(ack.map(|ack| (at, ack)));
    }

    fn pump(&mut self) {
        self.sender.update_limits();
        loop {
            if let Some(written) = self.written() {
                self.sender.send_limit = self.sender.send_limit.min(written.max(self.sender.nxt));
                let waits = self.sender.nxt >= self.sender.send_limit
                    && self.sender.pipe() < self.sender.cwnd;
                let in_flight = self.sender.pipe();
                if let (true, Some(rate)) = (waits, &mut self.sender.rate) {
                    rate.limit_by_app(in_flight);
                }
            }
            let Some(segment) = self.sender.poll(self.now) else { break };
            self.sent += 1;
            if self.is_lost(&segment) {
                self.dropped += 1;
            } else {
                self.queue.push_back(segment);
                self.transmit();
            }
            self.sender.update_limits();
        }
    }

    fn is_lost(&mut self, segment: &Segment) -> bool {
        if self.loses.as_mut().is_some_and(|loses| loses(segment)) {
            return true;
        }
        if let Some((per_second, depth, holds, since)) = &mut self.policer {
            *holds = (*holds + *per_second * self.now.since(*since).as_secs_f64()).min(*depth);
            *since = self.now;
            if *holds < 1.0 {
                return true;
            }
            *holds -= 1.0;
        }
        self.queue.len() >= self.buffer
    }

    fn transmit(&mut self) {
        if self.free_at.is_none() && !self.queue.is_empty() {
            self.free_at = Some(self.now + Span(WIRE * 8 * 1_000_000_000 / self.bps));
        }
    }

    /// Runs until the condition holds. Panics if it does not within `seconds`.
    fn until(&mut self, seconds: f64, what: &str, holds: impl Fn(&mut Path) -> bool) {
        let end = self.now + Span::from_secs_f64(seconds);
        self.pump();
        while !holds(self) {
            assert!(self.now < end, "{what}: not within {seconds} s");
            self.step();
        }
    }

    fn run(&mut self, seconds: f64) {
        let end = self.now + Span::from_secs_f64(seconds);
        self.until(seconds + 61.0, "time passes", |path| path.now >= end);
    }

    /// Segments delivered in the next `seconds`, as a share of the link's capacity.
    fn utilisation(&mut self, seconds: f64) -> f64 {
        let (before, start) = (self.sender.una, self.now);
        self.run(seconds);
        let took = self.now.since(start).as_secs_f64();
        f64::from(self.sender.una - before) / took / self.link()
    }

    /// Twenty segments arrive 15 ms late, so that later ones show them as lost.
    fn reorder(&mut self) {
        self.until(1.0, "a flight", |path| path.forward.len() > 40);
        let late: Vec<_> = self.forward.drain(5..25).collect();
        let at = self.forward.partition_point(|&(at, _)| at <= late[0].0 + Span::from_millis(15));
        for (index, (_, segment)) in late.into_iter().enumerate() {
            let behind = self.forward[at + index - 1].0;
            self.forward.insert(at + index, (behind, segment));
        }
        self.until(1.0, "a recovery", |path| path.sender.stats.fast_recoveries > 0);
    }

    /// Runs until this phase of ProbeBW begins.
    fn reach(&mut self, phase: Phase) {
        self.until(30.0, "the phase is reached", |path| path.phase() == phase);
    }
}

/// Every n-th segment, without retransmissions.
fn every(n: u32) -> Option<Loses> {
    Some(Box::new(move |segment| !segment.retransmit && segment.seq % n == 0))
}

#[test]
fn case_1_startup_ends_on_a_bandwidth_plateau() {
    for (mbit, rtt_ms) in [(0.5, 100), (10.0, 40), (100.0, 5), (1000.0, 1), (20.0, 300)] {
        let mut path = Path::v3(mbit, rtt_ms);
        path.until(60.0, "Startup ends", |path| path.phase() != Phase::Startup);
        let link = path.link();
        let bbr = path.bbr3();
        assert_eq!(bbr.phase, Phase::Drain);
        assert!(bbr.full_bw_now && bbr.full_bw_reached);
        let share = bbr.max_bw() / link;
        assert!((0.98..1.02).contains(&share), "{mbit} Mbit/s, {rtt_ms} ms: {share}");
        assert_eq!(path.dropped, 0);
    }
}

#[test]
fn case_2_startup_ends_on_loss_when_application_limited() {
    let mut path = Path::v3(50.0, 40);
    path.write(0.5 * path.link());
    path.run(0.5);
    assert_eq!(path.phase(), Phase::Startup);
    path.loses = every(10);
    path.until(2.0, "Startup ends", |path| path.phase() != Phase::Startup);
    let bbr = path.bbr3();
    assert!(bbr.full_bw_now && bbr.full_bw_reached);
    assert!(bbr.bounds.inflight_longterm.is_finite());
}

#[test]
fn case_3_drain_ends_by_what_is_in_flight() {
    let mut path = Path::v3(10.0, 40);
    path.reach(Phase::Drain);
    assert_eq!(path.bbr3().phase.pacing_gain(), 0.5);
    let (began, over) = (path.bbr3().round_count, path.in_flight());
    path.until(5.0, "Drain ends", |path| path.phase() != Phase::Drain);
    let bbr = path.bbr3();
    let enough = bbr.inflight(bbr.bw(), 1.0);
    assert!(matches!(bbr.phase, Phase::Down | Phase::Cruise) && bbr.round_count <= began + 3);
    // The ACK that ended Drain may have allowed one more segment.
    assert!(path.in_flight() <= enough + 1.0 && over > enough);
}

/// In the draft's case the bandwidth falls by ten percent. Over this path Drain would then empty
/// the queue within three round trips: the queue is one BDP, and Drain paces at half of the old
/// rate, so 0.9 - 0.5 = 0.4 of the old rate drains the queue. So in this test the bandwidth falls
/// by four fifths.
#[test]
fn case_4_drain_ends_by_time() {
    let mut path = Path::v3(10.0, 40);
    path.reach(Phase::Drain);
    path.bps /= 5;
    let began = path.bbr3().round_count;
    path.until(5.0, "Drain ends", |path| path.phase() != Phase::Drain);
    let bbr = path.bbr3();
    let enough = bbr.inflight(bbr.bw(), 1.0);
    assert_eq!((bbr.phase, bbr.round_count), (Phase::Down, began + 4));
    assert!(path.in_flight() > enough);
}

#[test]
fn case_5_up_ends_on_a_bandwidth_plateau() {
    let mut path = Path::v3(10.0, 40);
    path.reach(Phase::Up);
    let rounds = path.bbr3().round_count;
    path.until(5.0, "Up ends", |path| path.phase() != Phase::Up);
    let bbr = path.bbr3();
    assert!(bbr.phase == Phase::Down && bbr.full_bw_now && !bbr.prev_probe_too_high);
    assert!(bbr.round_count >= rounds + 3);
    assert_eq!(path.dropped, 0);
}

/// The case expects a new inflight_longterm, but the steps of HandleInflightTooHigh keep it if the
/// lost segment was application-limited. The test follows the steps.
#[test]
fn case_6_up_ends_on_loss_when_application_limited() {
    let mut path = Path::v3(50.0, 40);
    path.reach(Phase::Up);
    path.write(0.5 * path.link());
    // Segments that left earlier are not application-limited.
    let end = path.sender.nxt;
    path.until(1.0, "all segments are application-limited", |path| path.sender.una > end);
    assert_eq!(path.phase(), Phase::Up);
    path.loses = every(10);
    path.until(1.0, "Up ends", |path| path.phase() != Phase::Up);
    let bbr = path.bbr3();
    assert!(matches!(bbr.phase, Phase::Down | Phase::Cruise) && bbr.prev_probe_too_high);
    assert!(bbr.bounds.inflight_longterm.is_infinite());
}

#[test]
fn case_7_up_and_startup_never_end_when_application_limited_without_loss() {
    let mut path = Path::v3(50.0, 40);
    path.reach(Phase::Up);
    path.write(0.3 * path.link());
    path.until(20.0, "Up ends", |path| path.phase() != Phase::Up);
    assert_eq!(path.phase(), Phase::ProbeRtt, "after only five seconds without a lower RTT");
    let mut path = Path::v3(50.0, 40);
    path.write(0.3 * path.link());
    path.until(20.0, "Startup ends", |path| path.phase() != Phase::Startup);
    assert_eq!(path.phase(), Phase::ProbeRtt);
}

#[test]
fn case_8_down_ends_by_what_is_in_flight() {
    let mut path = Path::v3(10.0, 40);
    path.reach(Phase::Up);
    path.reach(Phase::Down);
    assert_eq!(path.bbr3().phase.pacing_gain(), 0.9);
    path.until(5.0, "Down ends", |path| path.phase() != Phase::Down);
    assert_eq!(path.phase(), Phase::Cruise);
    let bbr = path.bbr3();
    let most = bbr.inflight(bbr.max_bw(), 1.0).min(bbr.inflight_with_headroom());
    assert!(path.in_flight() <= most + 1.0);
}

#[test]
fn case_9_down_ends_after_its_time() {
    let mut path = Path::v3(50.0, 20);
    path.reach(Phase::Up);
    path.reach(Phase::Down);
    let began = path.now;
    path.bps = path.bps / 10 * 8;
    path.until(5.0, "Down ends", |path| path.phase() != Phase::Down);
    assert_eq!(path.phase(), Phase::Refill, "without a cruise");
    let took = path.now.since(began).as_secs_f64();
    // 63 round trips with their queue, or two to three seconds.
    assert!((1.2..3.1).contains(&took), "{took} s");
}

#[test]
fn case_10_probe_rtt_comes_after_five_seconds_and_ends() {
    let mut path = Path::v3(10.0, 40);
    path.until(8.0, "ProbeRTT", |path| path.phase() == Phase::ProbeRtt);
    assert!(path.now >= Time(5000 * MS));
    assert_eq!(path.bbr3().phase.cwnd_gain(), 0.5);
    let began = path.now;
    path.until(2.0, "ProbeRTT ends", |path| path.phase() != Phase::ProbeRtt);
    assert_eq!(path.phase(), Phase::Cruise);
    assert!(path.now.since(began) >= Span::from_millis(200));
    assert!(path.utilisation(2.0) > 0.95);
}

#[test]
fn case_11_an_idle_sender_skips_probe_rtt() {
    let mut path = Path::v3(10.0, 40);
    path.run(3.0);
    path.write(0.0);
    path.until(2.0, "it is idle", |path| path.in_flight() == 0.0);
    path.now += Span::from_secs(6);
    path.writes = None;
    path.pump();
    assert!(path.bbr3().idle_restart);
    path.until(1.0, "an ACK", |path| !path.bbr3().idle_restart);
    assert_ne!(path.phase(), Phase::ProbeRtt);
}

#[test]
fn case_12_startup_finds_the_bandwidth_where_acks_gather() {
    let mut path = Path::new(CongestionKind::Bbr3, 20.0, 40, 1000);
    path.gather = Some(Span::from_millis(20));
    path.run(3.0);
    let (cwnd, link, bdp) = (path.sender.control.cwnd(), path.link(), path.bdp());
    assert!(cwnd > 2.0 * bdp, "{cwnd} of {bdp}");
    let share = path.bbr3().max_bw() / link;
    assert!((0.95..1.3).contains(&share), "{share}");
}

#[test]
fn case_13_a_cruise_does_not_stall_where_acks_gather() {
    let mut path = Path::v3(20.0, 40);
    path.reach(Phase::Up);
    path.reach(Phase::Cruise);
    path.gather = Some(Span::from_millis(30));
    path.run(0.5);
    let bdp = path.bdp();
    let cwnd = path.sender.control.cwnd();
    assert!(cwnd > 2.2 * bdp, "{cwnd} of {bdp}");
    // The measurement ends before the next ProbeRTT.
    let share = path.utilisation(0.6);
    assert!(share > 0.95, "{share}");
}

#[test]
fn case_14_less_than_a_segment_in_the_path() {
    less_than_a_segment(CongestionKind::Bbr3);
}

fn less_than_a_segment(kind: CongestionKind) {
    // The path holds 0.08 and 0.6 of a segment. Four segments form a queue, which min_rtt then
    // includes.
    for (mbit, rtt_ms, seconds) in [(0.064, 10, 60.0), (1.0, 5, 10.0)] {
        let mut path = Path::new(kind, mbit, rtt_ms, 100);
        path.run(seconds);
        let cwnd = path.sender.control.cwnd();
        assert!((4.0..=24.0).contains(&cwnd), "{kind:?}: {cwnd}");
        let share = path.utilisation(seconds);
        assert!(share > 0.9, "{kind:?}, {mbit} Mbit/s: {share}");
    }
}

#[test]
fn case_15_ten_times_the_bandwidth_is_found() {
    let mut path = Path::v3(10.0, 40);
    // A short queue, so that a probe's losses bound the segments in flight.
    path.buffer = 8;
    path.run(4.0);
    assert!(path.bbr3().bounds.inflight_longterm.is_finite());
    path.bps *= 10;
    path.buffer = 400;
    let (rounds, link) = (path.bbr3().round_count, path.link());
    path.until(20.0, "BBR finds the bandwidth", |path| path.bbr3().max_bw() > 0.9 * link);
    // Two cycles may come first: up to 63 round trips of 40 ms each.
    assert!(path.bbr3().round_count < rounds + 150, "{}", path.bbr3().round_count - rounds);
}

#[test]
fn case_16_a_fall_to_a_tenth_of_the_bandwidth_is_detected() {
    let mut path = Path::v3(100.0, 40);
    path.buffer = 100;
    path.run(4.0);
    path.bps /= 10;
    let link = path.link();
    path.until(3.0, "bw_shortterm falls", |path| path.bbr3().bounds.bw_shortterm < 3.0 * link);
    path.until(12.0, "max_bw falls", |path| path.bbr3().max_bw() < 1.05 * link);
    assert!(path.utilisation(5.0) > 0.85);
}

#[test]
fn case_17_a_policer_s_rate_is_kept() {
    let mut path = Path::v3(100.0, 40);
    let per_second = 0.1 * path.link();
    path.policer = Some((per_second, 50.0, 50.0, Time::ZERO));
    path.run(5.0);
    assert!(
        path.bbr3().bounds.bw_shortterm.is_finite()
            || path.bbr3().bounds.inflight_longterm.is_finite()
    );
    let (sent, dropped) = (path.sent, path.dropped);
    let share = path.utilisation(10.0) / 0.1;
    let lost = (path.dropped - dropped) as f64 / (path.sent - sent) as f64;
    assert!(share > 0.75, "{share}");
    assert!(lost < 0.05, "{lost}");
}

#[test]
fn case_18_a_spurious_fast_recovery_is_undone() {
    let mut path = Path::v3(50.0, 40);
    path.reach(Phase::Up);
    let cwnd = path.sender.control.cwnd();
    let undos = path.sender.stats.undos;
    path.reorder();
    path.until(1.0, "an undo", |path| path.sender.stats.undos > undos);
    assert!(matches!(path.phase(), Phase::Up | Phase::Refill), "{:?}", path.phase());
    let bounds = path.bbr3().bounds;
    assert!(bounds.bw_shortterm.is_infinite() && bounds.inflight_longterm.is_infinite());
    assert!(path.sender.control.cwnd() >= cwnd);
}

#[test]
fn case_19_a_spurious_timeout_is_undone() {
    let mut path = Path::v3(50.0, 40);
    path.reach(Phase::Up);
    let (cwnd, undos) = (path.sender.control.cwnd(), path.sender.stats.undos);
    path.stalled_until = path.now + Span::from_millis(600);
    path.until(1.0, "a timeout", |path| path.sender.stats.timeouts > 0);
    path.until(2.0, "an undo", |path| path.sender.stats.undos > undos);
    assert!(matches!(path.phase(), Phase::Up | Phase::Refill), "{:?}", path.phase());
    let bounds = path.bbr3().bounds;
    assert!(bounds.bw_shortterm.is_infinite() && bounds.inflight_longterm.is_infinite());
    assert!(path.sender.control.cwnd() >= 0.9 * cwnd);
}

#[test]
fn case_20_probe_rtt_during_startup_returns_to_startup() {
    let mut path = Path::v3(50.0, 40);
    path.write(0.3 * path.link());
    path.until(8.0, "ProbeRTT", |path| path.phase() == Phase::ProbeRtt);
    path.until(2.0, "ProbeRTT ends", |path| path.phase() != Phase::ProbeRtt);
    assert_eq!(path.phase(), Phase::Startup);
    path.writes = None;
    path.until(5.0, "Startup ends", |path| path.phase() != Phase::Startup);
    assert!(path.bbr3().max_bw() / path.link() > 0.97);
}

#[test]
fn case_21_a_loss_in_up_lowers_the_bound_that_is_set() {
    let mut path = Path::v3(10.0, 40);
    path.buffer = 12;
    path.until(20.0, "a bound", |path| path.bbr3().bounds.inflight_longterm.is_finite());
    path.buffer = 1000;
    path.until(20.0, "Up without an earlier loss", |path| {
        path.phase() == Phase::Up && !path.bbr3().prev_probe_too_high
    });
    path.loses = every(8);
    path.until(2.0, "Up ends", |path| path.phase() != Phase::Up);
    let before = path.bdp();
    let bbr = path.bbr3();
    assert!(bbr.phase == Phase::Down && bbr.prev_probe_too_high);
    let bound = bbr.bounds.inflight_longterm;
    assert!((0.69 * before..1.3 * before).contains(&bound), "{bound} of {before}");
}

#[test]
fn case_22_an_application_limited_refill_leaves_the_bandwidth() {
    let mut path = Path::v3(50.0, 40);
    path.reach(Phase::Refill);
    let before = path.bbr3().max_bw();
    path.write(0.1 * path.link());
    path.until(1.0, "Up", |path| path.phase() == Phase::Up);
    assert_eq!(path.bbr3().max_bw(), before);
    path.run(0.3);
    assert_eq!(path.bbr3().max_bw(), before);
    path.writes = None;
    path.until(5.0, "Down", |path| path.phase() == Phase::Down);
    assert!(path.bbr3().max_bw() / path.link() > 0.97);
}
