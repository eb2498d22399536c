//! The DualPI2 of cable modems, Low Latency DOCSIS: both queues decide as packets arrive. L uses a
//! ramp of its backlog's time at the link's rate, C uses DOCSIS-PIE. Sources and deviations:
//! `dualpi2`.
//!
//! Deviations: L's buffer has room for at least eight full packets, also on a slow link. The queues
//! take turns as in Linux's dualpi2, by the same shares. Packets leave at the rate of the link;
//! requests and grants are not modelled.

use super::protection::Protection;
use super::rfc::ramp;
use super::{Pair, Recur, Side, Turns};
use crate::ds::mark;
use crate::pie::{Decision, Dice, DocsisPie};
use crate::timer::Timer;
use crate::{Body, Cause, Context, DocsisPieParams, Ecn, Packet, State, Verdict};
use serde::Deserialize;
use units::{Rate, Span, Time};

/// `dualpi2 variant docsis limit PACKETS target TIME tupdate TIME alpha HZ beta HZ ...`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocsisDualPi2Params {
    /// The limit of C in full packets. `None`: 100 ms at the link's first rate.
    pub limit: Option<u64>,
    /// k (2).
    pub coupling_factor: u8,
    /// The end of L's ramp on a fast link, ns (1 000 000).
    pub max_th_ns: u64,
    /// LATENCY_TARGET of C, ns (10 000 000).
    pub target_ns: u64,
    /// INTERVAL, ns (16 000 000).
    pub tupdate_ns: u64,
    /// A, Hz (0.25).
    pub alpha: f64,
    /// B, Hz (2.5).
    pub beta: f64,
    /// Send a flow that fills L to C (true).
    pub queue_protection: bool,
}

const C_BUFFER: Span = Span::from_millis(100);
const L_BUFFER: Span = Span::from_millis(10);
/// The least buffer of each queue, full packets.
const C_PACKETS: u64 = 2;
const L_PACKETS: u64 = 8;
/// The limit of each queue if no rate is known, full packets.
const USUAL_LIMIT: u64 = 10_000;
/// The length of L's ramp: 2^19 ns.
const RANGE: Span = Span(1 << 19);
/// The ramp starts at the time that these bytes take, or later.
const FLOOR_BYTES: u64 = 2 * 2000;
const MOST_TH: Span = Span(65_535_000);
/// L's and C's shares of the link.
const WEIGHTS: (i64, i64) = (230, 26);

pub(super) struct DocsisDualPi2<B> {
    c_limit: u64,
    l_limit: u64,
    mtu: u64,
    k: f64,
    max_th: Span,
    /// The link's rate, bit/s; 0: unknown, and transmission takes no time. An outage does not
    /// change it.
    rate: u64,
    protection: Option<Protection>,
    hash_key: u64,
    queues: Pair<B>,
    turns: Turns,
    recur: Recur,
    pub(super) pie: DocsisPie,
    dice: Dice,
    timer: Timer,
    /// Bytes that have left L since the last update.
    l_sent: u64,
}

impl<B: Body> DocsisDualPi2<B> {
    pub(super) fn new(params: &DocsisDualPi2Params, mut context: Context) -> DocsisDualPi2<B> {
        let mtu = u64::from(context.mtu);
        let rate = context.rate.filter(|rate| rate.0 > 0);
        let holds = |packets: u64, time| match rate {
            Some(rate) => rate.bytes_in(time).max(packets * mtu),
            None => USUAL_LIMIT * mtu,
        };
        let c_limit = params.limit.map_or(holds(C_PACKETS, C_BUFFER), |packets| packets * mtu);
        let pie = DocsisPieParams {
            limit: c_limit / mtu,
            target_ns: params.target_ns,
            tupdate_ns: params.tupdate_ns,
            alpha: 16.0 * params.alpha,
            beta: 16.0 * params.beta,
        };
        let period = Span(params.tupdate_ns.max(1_000));
        let hash_key = context.rng.next_u64();
        DocsisDualPi2 {
            c_limit,
            l_limit: holds(L_PACKETS, L_BUFFER),
            mtu,
            k: f64::from(params.coupling_factor),
            max_th: Span(params.max_th_ns),
            rate: rate.map_or(0, |rate| rate.0),
            protection: params.queue_protection.then(Protection::new),
            hash_key,
            queues: Pair::new(),
            turns: Turns::new(WEIGHTS.1, WEIGHTS.0, context.mtu),
            recur: Recur::default(),
            pie: DocsisPie::new(&pie, rate),
            dice: Dice::new(context.rng),
            timer: Timer::new(Time::ZERO + period, period),
            l_sent: 0,
        }
    }

    pub(super) fn queues(&self) -> &Pair<B> {
        &self.queues
    }

    pub(super) fn rate_changed(&mut self, rate: Rate) {
        if rate.0 > 0 {
            self.rate = rate.0;
        }
    }

    /// The time that these bytes take at the link's rate.
    fn time(&self, bytes: u64) -> Span {
        let ns = (u128::from(bytes) * 8_000_000_000).checked_div(self.rate.into());
        Span(ns.unwrap_or(0) as u64)
    }

    /// The start and the end of L's ramp.
    pub(super) fn thresholds(&self) -> (Span, Span) {
        let begins = Span(self.max_th.0.saturating_sub(RANGE.0)).max(self.time(FLOOR_BYTES));
        let ends = (begins + RANGE).min(MOST_TH);
        (begins.min(ends), ends)
    }

    /// The time that C's backlog takes at the rate that L leaves it, s. L's rate is that of the
    /// last interval, but at most L's share.
    pub(super) fn c_delay(&self, l_sent: u64) -> f64 {
        if self.rate == 0 {
            return 0.0;
        }
        let rate = self.rate as f64;
        let share = WEIGHTS.0 as f64 / (WEIGHTS.0 + WEIGHTS.1) as f64;
        let l_rate = 8.0 * l_sent as f64 / self.timer.period.as_secs_f64();
        8.0 * self.queues.c.backlog().bytes as f64 / (rate - l_rate.min(share * rate))
    }

    #[inline]
    fn catch_up(&mut self, now: Time) {
        if self.timer.next() <= now {
            self.pie = self.pie_at(now);
            self.timer.expiries(now);
            self.l_sent = 0;
        }
    }

    /// DOCSIS-PIE after the updates that are due, with the queues unchanged since the last call.
    #[cold]
    fn pie_at(&self, now: Time) -> DocsisPie {
        let (mut pie, mut timer) = (self.pie.clone(), self.timer);
        let times = timer.expiries(now);
        pie.updates(self.c_delay(self.l_sent), times.min(1));
        pie.updates(self.c_delay(0), times.saturating_sub(1));
        pie
    }

    pub(super) fn enqueue(
        &mut self,
        mut packet: Packet<B>,
        now: Time,
        verdicts: &mut Vec<Verdict<B>>,
    ) {
        self.catch_up(now);
        if !matches!(packet.ds.ecn(), Ecn::Ect1 | Ecn::Ce) {
            return self.enqueue_c(packet, now, verdicts);
        }
        let size = u64::from(packet.size);
        let backlog = self.queues.l.backlog().bytes;
        let delay = self.time(backlog + size);
        let (begins, ends) = self.thresholds();
        let native = ramp(delay, begins, Span(ends.0 - begins.0));
        if self.sanctions(&packet, native, (delay, ends), now) {
            self.signal_l(&mut packet, native, verdicts);
            return self.enqueue_c(packet, now, verdicts);
        }
        if backlog + self.mtu > self.l_limit {
            self.recur.decides(self.likelihood(native));
            return verdicts.push(Verdict::Dropped(packet, Cause::Limit));
        }
        self.signal_l(&mut packet, native, verdicts);
        self.queues.l.push(packet, now);
    }

    /// The larger of L's own probability and the coupled one.
    fn likelihood(&self, native: f64) -> f64 {
        native.max((self.k * self.pie.probability().sqrt()).min(1.0))
    }

    fn signal_l(&mut self, packet: &mut Packet<B>, native: f64, verdicts: &mut Vec<Verdict<B>>) {
        let likelihood = self.likelihood(native);
        if self.recur.decides(likelihood) {
            let own = native >= likelihood;
            mark(packet, if own { Cause::CeThreshold } else { Cause::Early }, verdicts);
        }
    }

    fn sanctions(
        &mut self,
        packet: &Packet<B>,
        native: f64,
        delay: (Span, Span),
        now: Time,
    ) -> bool {
        let flow = packet.body.connection(packet.flow);
        let hash = packet.body.hash(packet.flow, self.hash_key);
        let Some(protection) = &mut self.protection else { return false };
        protection.sanctions((flow, hash), packet.size, native, delay, now)
    }

    fn enqueue_c(&mut self, packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        let backlog = self.queues.c.backlog();
        if backlog.bytes + u64::from(packet.size) > self.c_limit {
            self.pie.dropped();
            return verdicts.push(Verdict::Dropped(packet, Cause::Limit));
        }
        if self.pie.decide(backlog, packet.size, &mut self.dice) != Decision::Pass {
            self.pie.dropped();
            return verdicts.push(Verdict::Dropped(packet, Cause::Early));
        }
        self.queues.c.push(packet, now);
    }

    pub(super) fn dequeue(
        &mut self,
        now: Time,
        _verdicts: &mut Vec<Verdict<B>>,
    ) -> Option<Packet<B>> {
        self.catch_up(now);
        let side = self.turns.next(&self.queues)?;
        let packet = self.queues.of_mut(side).pop().expect("the side whose turn it is has packets");
        let other = if side == Side::L { Side::C } else { Side::L };
        self.turns.sent(side, packet.size, !self.queues.is_empty(other));
        if side == Side::L {
            self.l_sent += u64::from(packet.size);
        }
        Some(packet)
    }

    pub(super) fn state(&self, now: Time) -> State {
        State {
            limit: Some(self.c_limit as f64),
            probability: Some(self.pie_at(now).probability()),
            ..self.queues.state(now)
        }
    }
}
