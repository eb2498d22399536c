//! Linux's DualPI2: integers, a step in L, and independent draws. Sources and deviations:
//! `dualpi2`.

use super::{Controller, Pair, Side, Turns, Updated};
use crate::ds::mark;
use crate::{
    Body, Cause, Context, DrawOutcome, Ecn, Packet, ReplayDraws, ReplayHint, State, Verdict,
};
use serde::Deserialize;
use std::collections::VecDeque;
use units::{Rng, Span, Time};

/// `dualpi2 limit PACKETS target TIME tupdate TIME alpha HZ beta HZ ...`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinuxDualPi2Params {
    /// The limit of both queues, packets (10000).
    pub limit: u64,
    /// The memory of both queues, bytes. `None`: two of the link's largest packets for each packet
    /// of `limit`.
    pub memlimit: Option<u64>,
    /// k (2).
    pub coupling_factor: u8,
    /// L marks packets that waited longer, ns (1 000 000).
    pub step_thresh_ns: u64,
    /// Replaces `step_thresh_ns`: L marks a packet that leaves more packets than this behind.
    pub step_thresh_packets: Option<u32>,
    /// There is no step for a packet that finds fewer packets in L (0).
    pub min_qlen_step: u32,
    /// C's share of the link while both queues have packets, percent (10).
    pub classic_protection: u8,
    /// The delay that p is controlled for, ns (15 000 000).
    pub target_ns: u64,
    /// The time between two updates of p, ns (16 000 000).
    pub tupdate_ns: u64,
    /// Weight of the delay's distance from the target, Hz / 256 (41).
    pub alpha: u32,
    /// Weight of the delay's growth, Hz / 256 (819).
    pub beta: u32,
    /// If k p exceeds 1, L drops with p squared. Otherwise p is limited so that k p does not exceed
    /// 1 (true).
    pub drop_on_overload: bool,
    /// The controller decides as packets arrive rather than as they leave (false).
    pub drop_enqueue: bool,
    /// ECT(0) joins L, too (false).
    pub any_ect: bool,
}

/// The value of p that stands for 1.
const MOST: u64 = u32::MAX as u64;
/// The shift between a gain's product with ns and p.
const GAIN_SHIFT: u32 = 6;

/// A gain, given in 256ths of 1 Hz, in units of p per ns, times 2^6.
pub(super) fn scaled(gain: u32) -> i64 {
    ((u64::from(gain) * MOST / 4) / 1_000_000_000) as i64
}

/// The PI controller. p in units of 2^-32, delays in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pi {
    pub(super) p: u32,
    last: i64,
    alpha: i64,
    beta: i64,
    target: i64,
    most: u32,
}

impl Pi {
    pub(super) fn new(params: &LinuxDualPi2Params) -> Pi {
        let k = u64::from(params.coupling_factor.max(1));
        let most = if params.drop_on_overload { MOST } else { MOST / k };
        Pi {
            p: 0,
            last: 0,
            alpha: scaled(params.alpha),
            beta: scaled(params.beta),
            target: params.target_ns as i64,
            most: most as u32,
        }
    }
}

impl Controller for Pi {
    /// The step of p is cast to 32 bits, as in the kernel. So it wraps if the delay falls by more
    /// than 312 ms.
    #[inline]
    fn update(&mut self, delay: Span) {
        let delay = delay.0 as i64;
        let step = (delay - self.target)
            .wrapping_mul(self.alpha)
            .wrapping_add((delay - self.last).wrapping_mul(self.beta));
        self.last = delay;
        let by = (step.unsigned_abs() >> GAIN_SHIFT) as u32;
        let moved = if step > 0 { self.p.saturating_add(by) } else { self.p.saturating_sub(by) };
        self.p = moved.min(self.most);
    }
}

/// The decision on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    Pass,
    /// Mark it if it can be marked, else drop it.
    Signal,
    Drop,
}

pub(super) struct LinuxDualPi2<B> {
    limit: u64,
    memlimit: u64,
    header_bytes: u32,
    /// Two of the link's largest packets. With a smaller backlog every packet passes.
    enough_bytes: u64,
    k: u64,
    step: Step,
    min_qlen_step: u32,
    drop_on_overload: bool,
    drop_enqueue: bool,
    any_ect: bool,
    queues: Pair<B>,
    /// For each packet in L whether the step applies to it.
    stepped: VecDeque<bool>,
    memory: u64,
    pub(super) turns: Turns,
    pub(super) pi: Updated<Pi>,
    rng: Rng,
    replay_draws: ReplayDraws,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Sojourn(Span),
    Packets(u32),
}

impl<B: Body> LinuxDualPi2<B> {
    pub(super) fn new(params: &LinuxDualPi2Params, context: Context) -> LinuxDualPi2<B> {
        let mtu = u64::from(context.mtu);
        let protection = i64::from(params.classic_protection);
        let period = Span(params.tupdate_ns.max(1_000));
        LinuxDualPi2 {
            limit: params.limit,
            memlimit: params.memlimit.unwrap_or(2 * mtu * params.limit),
            header_bytes: context.header_bytes,
            enough_bytes: 2 * mtu,
            k: params.coupling_factor.into(),
            step: params
                .step_thresh_packets
                .map_or(Step::Sojourn(Span(params.step_thresh_ns)), Step::Packets),
            min_qlen_step: params.min_qlen_step,
            drop_on_overload: params.drop_on_overload,
            drop_enqueue: params.drop_enqueue,
            any_ect: params.any_ect,
            queues: Pair::new(),
            stepped: VecDeque::new(),
            memory: 0,
            turns: Turns::new(protection, 100 - protection, context.mtu),
            pi: Updated::every(period, Pi::new(params)),
            rng: context.rng,
            replay_draws: ReplayDraws { at_arrival: params.drop_enqueue, ..ReplayDraws::default() },
        }
    }

    pub(super) fn queues(&self) -> &Pair<B> {
        &self.queues
    }

    pub(super) fn replay_draws(&mut self) -> &mut ReplayDraws {
        &mut self.replay_draws
    }

    fn truesize(&self, packet: &Packet<B>) -> u64 {
        packet.body.truesize(packet.size - self.header_bytes)
    }

    #[inline]
    fn side(&self, packet: &Packet<B>) -> Side {
        match packet.ds.ecn() {
            Ecn::Ect1 | Ecn::Ce => Side::L,
            Ecn::Ect0 if self.any_ect => Side::L,
            Ecn::Ect0 | Ecn::NotEct => Side::C,
        }
    }

    pub(super) fn enqueue(&mut self, packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        let side = self.side(&packet);
        self.enqueue_to(side, packet, now, verdicts);
    }

    pub(super) fn enqueue_to(
        &mut self,
        side: Side,
        mut packet: Packet<B>,
        now: Time,
        verdicts: &mut Vec<Verdict<B>>,
    ) {
        self.pi.catch_up(&self.queues, now);
        if u64::from(self.queues.backlog().packets) >= self.limit {
            return verdicts.push(Verdict::Dropped(packet, Cause::Limit));
        }
        let memory = self.truesize(&packet);
        if self.memory + memory > self.memlimit {
            return verdicts.push(Verdict::Dropped(packet, Cause::Overmemory));
        }
        if self.drop_enqueue && !self.controller_passes(side, &mut packet, false, verdicts) {
            return verdicts.push(Verdict::Dropped(packet, Cause::Early));
        }
        self.memory += memory;
        if side == Side::L {
            self.stepped.push_back(self.queues.l.backlog().packets >= self.min_qlen_step);
        }
        self.queues.of_mut(side).push(packet, now);
    }

    pub(super) fn dequeue(
        &mut self,
        now: Time,
        verdicts: &mut Vec<Verdict<B>>,
    ) -> Option<Packet<B>> {
        self.pi.catch_up(&self.queues, now);
        loop {
            let side = self.turns.next(&self.queues)?;
            let mut packet =
                self.queues.of_mut(side).pop().expect("the side whose turn it is has packets");
            self.memory -= self.truesize(&packet);
            let steps = side == Side::L && self.steps(&packet, now);
            if !self.drop_enqueue && !self.controller_passes(side, &mut packet, steps, verdicts) {
                verdicts.push(Verdict::Dropped(packet, Cause::Early));
                continue;
            }
            if steps && !mark(&mut packet, Cause::CeThreshold, verdicts) {
                verdicts.push(Verdict::Dropped(packet, Cause::CeThreshold));
                continue;
            }
            let other = if side == Side::L { Side::C } else { Side::L };
            self.turns.sent(side, packet.size, !self.queues.is_empty(other));
            return Some(packet);
        }
    }

    /// Whether L's step marks this packet, which has just left L.
    #[inline]
    fn steps(&mut self, packet: &Packet<B>, now: Time) -> bool {
        let applies = self.stepped.pop_front().expect("each packet in L has an entry");
        applies
            && match self.step {
                Step::Sojourn(most) => now.since(packet.enqueued) > most,
                Step::Packets(most) => self.queues.l.backlog().packets > most,
            }
    }

    /// Whether the controller lets a packet pass, marked or not, given the backlog behind it.
    #[inline]
    fn controller_passes(
        &mut self,
        side: Side,
        packet: &mut Packet<B>,
        steps: bool,
        verdicts: &mut Vec<Verdict<B>>,
    ) -> bool {
        let replay_hint = packet.body.replay_hint();
        let decision = self.decide(side, packet.ds.ecn(), replay_hint);
        // The recording does not show the draw if the step also marks the packet, or may mark it
        // later, or if the packet arrived marked.
        let later = side == Side::L && (self.drop_enqueue || packet.ds.ecn() == Ecn::Ce);
        let judged = &mut self.replay_draws.now;
        if (steps || later) && judged.chance > 0.0 {
            judged.chance = f64::NAN;
        }
        let passes = match decision {
            Decision::Pass => true,
            Decision::Signal => mark(packet, Cause::Early, verdicts),
            Decision::Drop => false,
        };
        if replay_hint.is_some() {
            self.replay_draws.now.dropped = !passes;
            self.replay_draws.decided.push(self.replay_draws.now);
        }
        passes
    }

    #[inline]
    fn decide(&mut self, side: Side, ecn: Ecn, replay_hint: Option<ReplayHint>) -> Decision {
        self.replay_draws.now = DrawOutcome::default();
        if self.queues.backlog().bytes < self.enough_bytes {
            return Decision::Pass;
        }
        let p = u64::from(self.pi.controller.p);
        let overload = self.k * p > MOST;
        let signalled = replay_hint.map(|hint| hint != ReplayHint::Passed);
        match side {
            Side::C if !self.throws(p, 2, signalled) => Decision::Pass,
            Side::C if ecn == Ecn::NotEct || overload => Decision::Drop,
            Side::L if overload && self.drop_on_overload => {
                let dropped = replay_hint.map(|hint| hint == ReplayHint::Dropped);
                if self.throws(p, 2, dropped) { Decision::Drop } else { Decision::Signal }
            }
            Side::L if !self.throws(self.k * p, 1, signalled) => Decision::Pass,
            Side::C | Side::L => Decision::Signal,
        }
    }

    /// Whether `times` draws of 32 bits are all at most `p`. In a replay the recorded outcome, if p
    /// allows both.
    #[inline]
    fn throws(&mut self, p: u64, times: i32, recorded: Option<bool>) -> bool {
        if let Some(drew) = recorded
            && 0 < p
            && p < MOST
        {
            let once = p as f64 / (MOST + 1) as f64;
            let chance = (0..times).map(|_| once).product();
            self.replay_draws.now = DrawOutcome { dropped: false, chance, drew };
            return drew;
        }
        (0..times).all(|_| self.rng.next_u64() >> 32 <= p)
    }

    pub(super) fn state(&self, now: Time) -> State {
        let p = self.pi.at(&self.queues, now).p;
        State {
            limit: Some(self.limit as f64),
            probability: Some(f64::from(p) / (MOST + 1) as f64),
            ..self.queues.state(now)
        }
    }
}
