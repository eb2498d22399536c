//! cobalt: CoDel with BLUE, the law on each of cake's flows; here also on one queue, for teaching.
//!
//! The CoDel half sends signals while packets' sojourns exceed the target, at a rate that grows
//! with the square root of the number of signals so far. It differs from codel.rs in two ways. The
//! first packet above target is signalled if a signal is due at the rate of the last episode.
//! Otherwise the first signal is an interval later. When the sojourn is below target, the count is
//! not reset at once: it falls by the same law by which it rose. The BLUE half drops at random. Its
//! probability grows when the queue overflows and shrinks when the queue is found empty, so flows
//! that respond to no signal are dropped, too.
//!
//! A packet that leaves its queue empty is sent even when the law drops it: a single packet is not
//! a standing queue. The law's state changes all the same.
//!
//! The standalone discipline drops at the head when its limit is exceeded, as cake does.
//!
//! Source: J. Morton's COBALT as in Linux's sch_cake (6.12, behaviour); Feng et al., BLUE, 1999.
//!
//! Deviations: the root of a count below 16 is computed by eight Newton steps. The results are
//! those of Linux's table, except for the last digit at 10. A mark is reported when the packet
//! leaves, and not if BLUE drops it.

use crate::ds::mark;
use crate::{Backlog, Cause, Context, Ecn, Fifo, Packet, Qdisc, State, Verdict};
use serde::Deserialize;
use units::{Rate, Rng, Time};

/// `cobalt limit PACKETS target TIME interval TIME ecn|noecn`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CobaltParams {
    /// The limit, packets (1000).
    pub limit: u64,
    /// The acceptable sojourn, ns (5 000 000).
    pub target_ns: u64,
    /// The time to the first signal, ns (100 000 000).
    pub interval_ns: u64,
    /// Mark ECN-capable packets instead of dropping them where CoDel signals (true).
    pub ecn: bool,
}

/// The increment of BLUE's probability, in units of 2^-32.
const BLUE_UP: u32 = 1 << 24;
/// The decrement of BLUE's probability, in units of 2^-32.
const BLUE_DOWN: u32 = 1 << 20;
/// The value 1 of a root, in units of 2^-32.
const ONE: u32 = u32::MAX;
/// The precomputed roots of small counts.
const ROOTS: [u32; 16] = roots();

/// One Newton step from `root` towards 1/sqrt(count): x' = x (3 - count x^2) / 2.
const fn newton(root: u32, count: u32) -> u32 {
    let x = root as u64;
    let x_squared = (x * x) >> 32;
    let factor = (3u64 << 32).wrapping_sub(count as u64 * x_squared) >> 2;
    (factor.wrapping_mul(x) >> 31) as u32
}

const fn roots() -> [u32; 16] {
    let mut roots = [ONE; 16];
    let mut root = ONE;
    let mut count = 1;
    while count < 16 {
        let mut step = 0;
        while step < 8 {
            root = newton(root, count as u32);
            step += 1;
        }
        roots[count] = root;
        count += 1;
    }
    roots
}

/// The law with its parameters, ns. All flows of a tin share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CobaltLaw {
    pub(crate) target: u64,
    pub(crate) interval: u64,
    /// The transmission time of the largest packet, ns. A sojourn of four of these is never too
    /// long.
    pub(crate) mtu_time: u64,
}

/// The law's state for one queue. It outlives the queue's packets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signals {
    /// Signals of this episode, less those that have decayed.
    pub(crate) count: u32,
    /// 1/sqrt(count) in units of 2^-32; 0 until the first signal.
    root: u32,
    /// BLUE's probability, of 2^32.
    pub(crate) p_drop: u32,
    pub(crate) dropping: bool,
    /// The time at which the next signal is due, or the count falls next; ns.
    pub(crate) drop_next: u64,
    /// When BLUE's probability last changed, ns.
    blue_timer: u64,
}

/// The random draws of BLUE.
pub(crate) struct Blue<'a> {
    pub(crate) rng: &'a mut Rng,
    /// In a replay: the recorded outcome.
    pub(crate) recorded_draw: Option<bool>,
}

impl Blue<'_> {
    fn hits(&mut self, p: u32) -> bool {
        self.recorded_draw.unwrap_or_else(|| ((self.rng.next_u64() >> 32) as u32) < p)
    }
}

/// The law's decision on a packet that is about to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    /// CoDel signals, and the packet can be marked.
    pub(crate) marked: bool,
    /// The cause to drop the packet for, unless it is the last of its queue.
    pub(crate) drop: Option<Cause>,
}

impl Decision {
    /// Reports the mark of a packet that leaves.
    #[inline]
    pub(crate) fn leaves<B>(self, packet: &mut Packet<B>, verdicts: &mut Vec<Verdict<B>>) {
        if self.marked {
            mark(packet, Cause::Target, verdicts);
        }
    }
}

impl Signals {
    /// Whether no state of a past episode is left at `now`.
    #[inline]
    pub(crate) fn at_rest(&self, now: Time) -> bool {
        self.p_drop == 0 && self.count == 0 && now.0 >= self.drop_next
    }

    #[inline]
    fn is_due(&self, now: u64) -> bool {
        self.count > 0 && now >= self.drop_next
    }

    fn set_count(&mut self, count: u32) {
        self.count = count;
        self.root = match ROOTS.get(count as usize) {
            Some(root) => *root,
            None => newton(self.root, count),
        };
    }
}

impl CobaltLaw {
    /// A gap of interval / sqrt(count) after `t`. Linux truncates the interval to 32 bits, which
    /// changes intervals of 4.29 s and more.
    #[inline]
    fn after(&self, t: u64, root: u32) -> u64 {
        t + ((u64::from(self.interval as u32) * u64::from(root)) >> 32)
    }

    /// Decides on a packet that is about to leave. A sojourn up to `least` is not too long,
    /// whatever the target.
    #[inline]
    pub(crate) fn decide(
        &self,
        signals: &mut Signals,
        (sojourn, least): (u64, u64),
        can_mark: bool,
        now: Time,
        blue: &mut Blue,
    ) -> Decision {
        let over = sojourn > self.target && sojourn > 4 * self.mtu_time && sojourn > least;
        if !over && signals.count == 0 && signals.p_drop == 0 {
            // The usual case: no congestion now, and none before.
            signals.dropping = false;
            signals.drop_next = now.0 + self.interval;
            return Decision { marked: false, drop: None };
        }
        self.signal(signals, over, can_mark, now.0, blue)
    }

    fn signal(
        &self,
        signals: &mut Signals,
        over: bool,
        can_mark: bool,
        now: u64,
        blue: &mut Blue,
    ) -> Decision {
        let due = signals.is_due(now);
        let mut next = signals.drop_next;
        if over {
            if !signals.dropping {
                signals.drop_next = self.after(now, signals.root);
            }
            signals.count = signals.count.max(1);
        }
        signals.dropping = over;
        let mut decision = Decision { marked: false, drop: None };
        if due && over {
            decision.marked = can_mark;
            decision.drop = (!can_mark).then_some(Cause::Target);
            signals.set_count(signals.count.saturating_add(1));
            signals.drop_next = self.after(signals.drop_next, signals.root);
            next = signals.drop_next;
        } else if due {
            while signals.is_due(now) {
                self.decay(signals);
            }
            next = signals.drop_next;
        }
        if signals.p_drop > 0 && blue.hits(signals.p_drop) {
            decision.drop = Some(Cause::Blue);
        }
        if signals.count == 0 {
            signals.drop_next = now + self.interval;
        } else if now > next && decision.drop.is_none() {
            signals.drop_next = now;
        }
        decision
    }

    /// Decrements the count along the law.
    fn decay(&self, signals: &mut Signals) {
        signals.set_count(signals.count - 1);
        signals.drop_next = self.after(signals.drop_next, signals.root);
    }

    /// The queue dropped a packet because there was no room.
    pub(crate) fn overflowed(&self, signals: &mut Signals, now: Time) {
        if now.0 - signals.blue_timer > self.target {
            signals.p_drop = signals.p_drop.saturating_add(BLUE_UP);
            signals.blue_timer = now.0;
        }
        signals.dropping = true;
        signals.drop_next = now.0;
        signals.count = signals.count.max(1);
    }

    /// The queue was served and found empty.
    #[inline]
    pub(crate) fn found_empty(&self, signals: &mut Signals, now: Time) {
        if signals.p_drop > 0 && now.0 - signals.blue_timer > self.target {
            signals.p_drop = signals.p_drop.saturating_sub(BLUE_DOWN);
            signals.blue_timer = now.0;
        }
        signals.dropping = false;
        if signals.is_due(now.0) {
            self.decay(signals);
        }
    }
}

/// One queue under COBALT.
pub struct Cobalt<B> {
    limit: u64,
    ecn: bool,
    law: CobaltLaw,
    mtu: u32,
    signals: Signals,
    rng: Rng,
    queue: Fifo<B>,
    /// A dequeue has found the queue empty since the last packet. Later ones do not count again.
    found_empty: bool,
}

impl<B> Cobalt<B> {
    /// An empty queue.
    pub fn new(params: &CobaltParams, context: Context) -> Self {
        let law = CobaltLaw { target: params.target_ns, interval: params.interval_ns, mtu_time: 0 };
        let mut cobalt = Cobalt {
            limit: params.limit,
            ecn: params.ecn,
            law,
            mtu: context.mtu,
            signals: Signals::default(),
            rng: context.rng,
            queue: Fifo::default(),
            found_empty: false,
        };
        if let Some(rate) = context.rate {
            cobalt.set_rate(rate);
        }
        cobalt
    }

    fn set_rate(&mut self, rate: Rate) {
        // During an outage the last rate stays in force.
        let bits_ns = u64::from(self.mtu) * 8_000_000_000;
        self.law.mtu_time = bits_ns.checked_div(rate.0).unwrap_or(self.law.mtu_time);
    }
}

impl<B> Qdisc<B> for Cobalt<B> {
    #[inline]
    fn enqueue(&mut self, packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        self.found_empty = false;
        self.queue.push(packet, now);
        if u64::from(self.queue.backlog().packets) > self.limit {
            let head = self.queue.pop().expect("a packet has just been enqueued");
            self.law.overflowed(&mut self.signals, now);
            verdicts.push(Verdict::Dropped(head, Cause::Limit));
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        loop {
            let Some(mut packet) = self.queue.pop() else {
                if !std::mem::replace(&mut self.found_empty, true) {
                    self.law.found_empty(&mut self.signals, now);
                }
                return None;
            };
            let sojourn = now.since(packet.enqueued).0;
            let can_mark = self.ecn && packet.ds.ecn() != Ecn::NotEct;
            let mut blue = Blue { rng: &mut self.rng, recorded_draw: None };
            let decision =
                self.law.decide(&mut self.signals, (sojourn, 0), can_mark, now, &mut blue);
            match decision.drop {
                Some(cause) if self.queue.backlog().packets > 0 => {
                    verdicts.push(Verdict::Dropped(packet, cause));
                }
                _ => {
                    decision.leaves(&mut packet, verdicts);
                    return Some(packet);
                }
            }
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn state(&self, _now: Time) -> State {
        let Signals { count, dropping, p_drop, .. } = self.signals;
        State {
            limit: Some(self.limit as f64),
            count: Some(if dropping { f64::from(count) } else { 0.0 }),
            probability: Some(f64::from(p_drop) / (1u64 << 32) as f64),
            ..State::default()
        }
    }

    fn rate_changed(&mut self, rate: Rate) {
        self.set_rate(rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DsField;

    const MS: u64 = 1_000_000;
    /// cake's law at 5 Mbit/s and more, with the default RTT.
    const LAW: CobaltLaw = CobaltLaw { target: 5 * MS, interval: 100 * MS, mtu_time: MS };

    fn drawing(rng: &mut Rng) -> Blue<'_> {
        Blue { rng, recorded_draw: None }
    }

    /// The times of marks, ms since `from`, if a packet with this sojourn leaves every 10 us.
    fn marks(signals: &mut Signals, from: u64, sojourn: u64, last_ms: u64) -> Vec<f64> {
        let mut rng = Rng::new(1, "cobalt");
        (0..=last_ms * 100)
            .map(|step| step * 10_000)
            .filter(|at| {
                LAW.decide(signals, (sojourn, 0), true, Time(from + at), &mut drawing(&mut rng))
                    .marked
            })
            .map(|at| at as f64 / 1e6)
            .collect()
    }

    /// Compares times to a tenth of a millisecond and a packet.
    fn are_at(actual: &[f64], expected: &[f64]) {
        let near = |(actual, expected): (&f64, &f64)| (actual - expected).abs() < 0.11;
        let all = actual.len() == expected.len() && actual.iter().zip(expected).all(near);
        assert!(all, "{actual:?}, not {expected:?}");
    }

    #[test]
    fn inverse_square_roots_equal_linux_s() {
        let linux: [u32; 16] = [
            4294967295, 4294967295, 3037000500, 2479700525, 2147483647, 1920767767, 1753413056,
            1623345051, 1518500250, 1431655765, 1358187914, 1294981364, 1239850263, 1191209601,
            1147878294, 1108955788,
        ];
        for (count, (ours, linux)) in ROOTS.iter().zip(linux).enumerate() {
            assert_eq!(linux - ours, u32::from(count == 10), "{count}");
        }
        let mut signals = Signals { root: ROOTS[15], ..Signals::default() };
        for (count, root) in [(16, 0x3fe5_4743), (17, 0x3e02_6f8d), (18, 0x3c45_13ac)] {
            signals.set_count(count);
            assert_eq!(signals.root, root, "{count}");
        }
    }

    #[test]
    fn the_first_episode_of_all_signals_at_once_and_then_by_the_square_root() {
        let mut fresh = Signals::default();
        are_at(
            &marks(&mut fresh, 1_000 * MS, 10 * MS, 310),
            &[0.0, 70.7, 128.4, 178.4, 223.2, 263.9, 301.8],
        );
    }

    #[test]
    fn a_later_episode_waits_an_interval() {
        let mut worn = Signals { root: ONE, ..Signals::default() };
        assert!(marks(&mut worn, 950 * MS, MS, 49).is_empty(), "below target");
        are_at(&marks(&mut worn, 1_000 * MS, 10 * MS, 325), &[100.0, 170.7, 228.4, 278.4, 323.2]);
    }

    #[test]
    fn behind_a_pause_of_an_interval_the_second_packet_signals() {
        let mut worn = Signals { root: ONE, ..Signals::default() };
        assert!(marks(&mut worn, 0, MS, 1).is_empty());
        are_at(&marks(&mut worn, 500 * MS, 10 * MS, 60), &[0.01]);
    }

    #[test]
    fn below_target_the_count_falls_at_the_intervals_at_which_it_rose() {
        let mut signals = Signals::default();
        assert_eq!(marks(&mut signals, 1_000 * MS, 10 * MS, 130).len(), 3);
        assert_eq!(signals.count, 4);
        let due = signals.drop_next;
        let mut rng = Rng::new(1, "cobalt");
        let mut falls = Vec::new();
        for at in (1_130 * MS..1_700 * MS).step_by(10_000) {
            let before = signals.count;
            let decision =
                LAW.decide(&mut signals, (MS, 0), true, Time(at), &mut drawing(&mut rng));
            assert_eq!(decision, Decision { marked: false, drop: None });
            if signals.count < before {
                falls.push((at - due) as f64 / 1e6);
            }
        }
        // The count falls from 4 to 3 when the signal was due, then after a gap of interval /
        // sqrt(count) each.
        are_at(&falls, &[0.0, 57.7, 128.4, 228.4]);
        assert!(signals.at_rest(Time(signals.drop_next)));
    }

    #[test]
    fn an_episode_that_begins_while_a_signal_is_due_signals_at_once_and_advances_two_steps() {
        let mut signals =
            Signals { count: 3, root: ROOTS[3], drop_next: 900 * MS, ..Signals::default() };
        let decision = LAW.decide(
            &mut signals,
            (10 * MS, 0),
            false,
            Time(1_000 * MS),
            &mut drawing(&mut Rng::new(1, "cobalt")),
        );
        assert_eq!(decision.drop, Some(Cause::Target));
        let gap = |count: usize| (100 * MS * u64::from(ROOTS[count])) >> 32;
        assert_eq!((signals.count, signals.drop_next), (4, 1_000 * MS + gap(3) + gap(4)));
    }

    #[test]
    fn a_backlog_of_four_packets_on_a_slow_line_does_not_count_as_a_queue() {
        let slow = CobaltLaw { mtu_time: 12 * MS, ..LAW };
        let mut rng = Rng::new(1, "cobalt");
        for (sojourn, marked) in [(48 * MS, false), (48 * MS + 1, true)] {
            let mut fresh = Signals::default();
            slow.decide(&mut fresh, (sojourn, 0), true, Time(1_000 * MS), &mut drawing(&mut rng));
            let second = slow.decide(
                &mut fresh,
                (sojourn, 0),
                true,
                Time(1_001 * MS),
                &mut drawing(&mut rng),
            );
            assert_eq!(second.marked, marked, "{sojourn}");
        }
    }

    #[test]
    fn an_interval_of_more_than_32_bits_is_cut() {
        let far = CobaltLaw { interval: 1_000_000 * MS, ..LAW };
        // 10^12 mod 2^32 ns, less one for the root's rounding.
        assert_eq!(far.after(0, ONE), 3_567_587_328 - 1);
    }

    #[test]
    fn blue_rises_in_256_steps_and_falls_in_4096() {
        let mut signals = Signals::default();
        let mut now = 1_000 * MS;
        let mut steps = |signals: &mut Signals, full: bool| {
            let mut steps = 0;
            while signals.p_drop != if full { u32::MAX } else { 0 } {
                now += 5 * MS + 1;
                if full {
                    LAW.overflowed(signals, Time(now));
                } else {
                    LAW.found_empty(signals, Time(now));
                }
                steps += 1;
            }
            // Within a target of the last change the probability does not change.
            LAW.overflowed(signals, Time(now + 1));
            assert_eq!(signals.p_drop, if full { u32::MAX } else { 0 });
            steps
        };
        assert_eq!(steps(&mut signals, true), 256);
        assert_eq!(steps(&mut signals, false), 4096);
    }

    fn cobalt(limit: u64, ecn: bool) -> Cobalt<u32> {
        let params = CobaltParams { limit, target_ns: 5 * MS, interval_ns: 100 * MS, ecn };
        let rng = Rng::new(1, "cobalt");
        let rate = Some(Rate::from_mbit(10));
        Cobalt::new(&params, Context { rate, mtu: 1514, header_bytes: 14, root: true, rng })
    }

    fn packet(body: u32) -> Packet<u32> {
        let ds = DsField::from(Ecn::Ect0);
        Packet { enqueued: Time::ZERO, flow: 0, size: 1514, ds, body }
    }

    #[test]
    fn the_last_packet_is_never_dropped_by_the_law() {
        let mut queue = cobalt(100, false);
        let mut verdicts = Vec::new();
        for body in 0..4 {
            queue.enqueue(packet(body), Time(0), &mut verdicts);
        }
        // The first packet is over target. At the second a signal is due, and it is dropped. None
        // is due at the third. One is due at the last, long after.
        let leaves = |queue: &mut Cobalt<u32>, ms: u64, verdicts: &mut Vec<_>| {
            queue.dequeue(Time(ms * MS), verdicts).map(|packet| packet.body)
        };
        assert_eq!(leaves(&mut queue, 10, &mut verdicts), Some(0));
        assert_eq!(leaves(&mut queue, 11, &mut verdicts), Some(2));
        let dropped = Verdict::Dropped(packet(1), Cause::Target);
        assert_eq!(verdicts, [dropped]);
        let before = queue.signals.count;
        assert_eq!(leaves(&mut queue, 500, &mut verdicts), Some(3));
        assert_eq!((verdicts.len(), queue.signals.count), (1, before + 1));
    }

    #[test]
    fn a_full_queue_drops_its_oldest_packet_and_raises_blue_s_probability() {
        let mut queue = cobalt(2, true);
        let mut verdicts = Vec::new();
        for body in 0..3 {
            queue.enqueue(packet(body), Time(1_000 * MS), &mut verdicts);
        }
        let oldest = Packet { enqueued: Time(1_000 * MS), ..packet(0) };
        assert_eq!(verdicts, [Verdict::Dropped(oldest, Cause::Limit)]);
        let state = queue.state(Time(1_000 * MS));
        assert_eq!((state.count, state.probability), (Some(1.0), Some(2f64.powi(-8))));
        // With p = 1 all packets but the last of the queue are dropped, markable or not.
        queue.signals.p_drop = u32::MAX;
        assert_eq!(
            queue.dequeue(Time(1_100 * MS), &mut verdicts).map(|packet| packet.body),
            Some(2)
        );
        assert!(matches!(verdicts[1], Verdict::Dropped(_, Cause::Blue)));
    }
}
