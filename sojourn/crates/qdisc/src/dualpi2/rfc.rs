//! DualPI2 of RFC 9332, Appendix A.2, in real numbers. Sources and deviations: `dualpi2`.
//!
//! The RFC does not specify the scheduler; this is the scheduler of Linux, with the share of 1/16
//! for C that the RFC suggests. Read literally, its line 5a counts the packets behind the one that
//! leaves L.

use super::{Controller, Pair, Recur, Side, Turns, Updated};
use crate::ds::mark;
use crate::{Cause, Context, Ecn, Packet, State, Verdict};
use serde::Deserialize;
use units::{Span, Time};

/// `dualpi2 variant rfc limit PACKETS target TIME tupdate TIME alpha HZ beta HZ ...`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RfcDualPi2Params {
    /// The limit in full packets, of both queues. `None`: 250 ms at the link's first rate.
    pub limit: Option<u64>,
    /// k (2).
    pub coupling_factor: u8,
    /// The start of L's ramp, ns (800 000).
    pub min_th_ns: u64,
    /// The length of L's ramp, ns (400 000).
    pub range_ns: u64,
    /// Th_len: no ramp up to this many packets in L (1).
    pub min_qlen_ramp: u32,
    /// C's share of the link while both queues have packets, percent (6.25).
    pub classic_protection: f64,
    /// The delay that p' is controlled for, ns (15 000 000).
    pub target_ns: u64,
    /// Tupdate, ns (15 000 000).
    pub tupdate_ns: u64,
    /// Weight of the delay's distance from the target, Hz (0.15).
    pub alpha: f64,
    /// Weight of the delay's growth, Hz (3).
    pub beta: f64,
}

/// The limit if no rate is known, full packets.
const USUAL_LIMIT: u64 = 10_000;
const BUFFER: Span = Span::from_millis(250);
/// p_Lmax.
const MOST_L: f64 = 1.0;
/// The unit of the link's shares: a hundredth of a percent.
const SHARES: f64 = 100.0;

/// The probability of a ramp at this delay. The ramp starts at `from` and is `length` long.
pub(super) fn ramp(delay: Span, from: Span, length: Span) -> f64 {
    if delay >= from + length {
        1.0
    } else if delay > from {
        (delay.0 - from.0) as f64 / length.0 as f64
    } else {
        0.0
    }
}

/// The PI controller of p', in seconds and 1/s.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pi {
    p: f64,
    last: f64,
    alpha: f64,
    beta: f64,
    target: f64,
}

impl Controller for Pi {
    fn update(&mut self, delay: Span) {
        let delay = delay.as_secs_f64();
        let step = self.alpha * (delay - self.target) + self.beta * (delay - self.last);
        self.p = (self.p + step).clamp(0.0, 1.0);
        self.last = delay;
    }
}

pub(super) struct RfcDualPi2<B> {
    limit_bytes: u64,
    mtu: u64,
    k: f64,
    /// p_Cmax.
    most_c: f64,
    min_th: Span,
    range: Span,
    min_qlen_ramp: u32,
    queues: Pair<B>,
    turns: Turns,
    recur_c: Recur,
    recur_l: Recur,
    pi: Updated<Pi>,
}

impl<B> RfcDualPi2<B> {
    pub(super) fn new(params: &RfcDualPi2Params, context: &Context) -> RfcDualPi2<B> {
        let mtu = u64::from(context.mtu);
        let of_the_rate = context.rate.map(|rate| rate.bytes_in(BUFFER));
        let packets = |limit: u64| limit * mtu;
        let usual = of_the_rate.unwrap_or(packets(USUAL_LIMIT)).max(2 * mtu);
        let k = f64::from(params.coupling_factor);
        let c_weight = (params.classic_protection * SHARES) as i64;
        let period = Span(params.tupdate_ns.max(1_000));
        RfcDualPi2 {
            limit_bytes: params.limit.map_or(usual, packets),
            mtu,
            k,
            most_c: (1.0 / (k * k)).min(1.0),
            min_th: Span(params.min_th_ns),
            range: Span(params.range_ns),
            min_qlen_ramp: params.min_qlen_ramp,
            queues: Pair::new(),
            turns: Turns::new(c_weight, (100.0 * SHARES) as i64 - c_weight, context.mtu),
            recur_c: Recur::default(),
            recur_l: Recur::default(),
            pi: Updated::every(
                period,
                Pi {
                    p: 0.0,
                    last: 0.0,
                    alpha: params.alpha,
                    beta: params.beta,
                    target: Span(params.target_ns).as_secs_f64(),
                },
            ),
        }
    }

    pub(super) fn queues(&self) -> &Pair<B> {
        &self.queues
    }

    pub(super) fn enqueue(&mut self, packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        self.pi.catch_up(&self.queues, now);
        if self.queues.backlog().bytes + self.mtu > self.limit_bytes {
            return verdicts.push(Verdict::Dropped(packet, Cause::Limit));
        }
        let side = match packet.ds.ecn() {
            Ecn::Ect1 | Ecn::Ce => Side::L,
            Ecn::Ect0 | Ecn::NotEct => Side::C,
        };
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
            let other = if side == Side::L { Side::C } else { Side::L };
            let passes = match side {
                Side::L => self.l_passes(&mut packet, now, verdicts),
                Side::C => self.c_passes(&mut packet, verdicts),
            };
            if passes {
                self.turns.sent(side, packet.size, !self.queues.is_empty(other));
                return Some(packet);
            }
            verdicts.push(Verdict::Dropped(packet, Cause::Early));
        }
    }

    fn l_passes(
        &mut self,
        packet: &mut Packet<B>,
        now: Time,
        verdicts: &mut Vec<Verdict<B>>,
    ) -> bool {
        let p = self.pi.controller.p;
        let coupled = self.k * p;
        if coupled >= MOST_L {
            if self.recur_l.decides(p * p) {
                return false;
            }
            if self.recur_l.decides(coupled.min(1.0)) {
                mark(packet, Cause::Early, verdicts);
            }
            return true;
        }
        let native = if self.queues.l.backlog().packets > self.min_qlen_ramp {
            ramp(now.since(packet.enqueued), self.min_th, self.range)
        } else {
            0.0
        };
        if self.recur_l.decides(native.max(coupled)) {
            let cause = if native > coupled { Cause::CeThreshold } else { Cause::Early };
            mark(packet, cause, verdicts);
        }
        true
    }

    fn c_passes(&mut self, packet: &mut Packet<B>, verdicts: &mut Vec<Verdict<B>>) -> bool {
        let p_c = self.pi.controller.p * self.pi.controller.p;
        !self.recur_c.decides(p_c) || (p_c < self.most_c && mark(packet, Cause::Early, verdicts))
    }

    pub(super) fn state(&self, now: Time) -> State {
        State {
            limit: Some(self.limit_bytes as f64),
            probability: Some(self.pi.at(&self.queues, now).p),
            ..self.queues.state(now)
        }
    }
}
