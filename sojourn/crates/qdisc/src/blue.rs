//! blue: drops or marks at random; the probability follows overflows of the queue and idle periods
//! of the link.
//!
//! Earlier schemes measured the queue. BLUE keeps one probability p instead. A packet that finds
//! the queue full raises p by d1, and a link that finds the queue empty lowers p by d2. BLUE changes
//! p at most once in `freeze_time`, so that senders have time to react. A queue that overflows
//! needs a larger p, and one that runs empty needs a smaller one. If neither happens, p is right.
//!
//! Source: W. Feng, D. Kandlur, D. Saha and K. Shin, "BLUE: a new class of active queue management
//! algorithms", University of Michigan CSE-TR-387-99 (1999). By the same authors: "The BLUE active
//! queue management algorithms", IEEE/ACM Transactions on Networking 10(4), 2002. The paper has the
//! names p_m, d1, d2 and freeze_time; the defaults are ours.
//!
//! Deviations: an idle period is one event, however long it lasts. The variant that raises p when
//! the queue exceeds a length L is not implemented: here L is the limit.

use crate::ds::mark;
use crate::{Backlog, Cause, Context, Fifo, Packet, Qdisc, State, Verdict};
use serde::Deserialize;
use units::{Rng, Span, Time};

/// `blue limit PACKETS freeze_time TIME increment P decrement P ecn|noecn`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlueParams {
    /// The limit, packets (1000).
    pub limit: u64,
    /// The least time between two changes of p, ns (100 000 000).
    pub freeze_ns: u64,
    /// The paper's d1 (0.02).
    pub increment: f64,
    /// The paper's d2 (0.002).
    pub decrement: f64,
    /// Mark ECN-capable packets instead of dropping them (false).
    pub ecn: bool,
}

/// A FIFO whose packets are dropped or marked at random on arrival.
pub struct Blue<B> {
    limit: u64,
    freeze: Span,
    increment: f64,
    decrement: f64,
    ecn: bool,
    /// The paper's p_m.
    probability: f64,
    /// The time of the last change of p; `None` before the first change.
    last_update: Option<Time>,
    rng: Rng,
    queue: Fifo<B>,
    /// A dequeue has found the queue empty since the last packet, so this idle period is counted.
    found_empty: bool,
}

impl<B> Blue<B> {
    /// An empty queue.
    pub fn new(params: &BlueParams, context: Context) -> Self {
        Blue {
            limit: params.limit,
            freeze: Span(params.freeze_ns),
            increment: params.increment,
            decrement: params.decrement,
            ecn: params.ecn,
            probability: 0.0,
            last_update: None,
            rng: context.rng,
            queue: Fifo::default(),
            found_empty: false,
        }
    }

    /// Changes p by `by`, unless the last change was less than `freeze_time` ago.
    fn step(&mut self, by: f64, now: Time) {
        if self.last_update.is_none_or(|last| now.since(last) > self.freeze) {
            self.probability = (self.probability + by).clamp(0.0, 1.0);
            self.last_update = Some(now);
        }
    }
}

impl<B> Qdisc<B> for Blue<B> {
    #[inline]
    fn enqueue(&mut self, mut packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        self.found_empty = false;
        if u64::from(self.queue.backlog().packets) >= self.limit {
            self.step(self.increment, now);
            return verdicts.push(Verdict::Dropped(packet, Cause::Limit));
        }
        let signals = self.probability > 0.0 && self.rng.chance(self.probability);
        if signals && !(self.ecn && mark(&mut packet, Cause::Blue, verdicts)) {
            return verdicts.push(Verdict::Dropped(packet, Cause::Blue));
        }
        self.queue.push(packet, now);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        let packet = self.queue.pop();
        if packet.is_none() && !std::mem::replace(&mut self.found_empty, true) {
            self.step(-self.decrement, now);
        }
        packet
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn state(&self, _now: Time) -> State {
        State {
            limit: Some(self.limit as f64),
            probability: Some(self.probability),
            ..State::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DsField;

    const MS: u64 = 1_000_000;

    fn blue(limit: u64, ecn: bool) -> Blue<()> {
        let params =
            BlueParams { limit, freeze_ns: 100 * MS, increment: 0.25, decrement: 0.125, ecn };
        let rng = Rng::new(1, "blue");
        Blue::new(&params, Context { rate: None, mtu: 1500, header_bytes: 0, root: true, rng })
    }

    fn send(q: &mut Blue<()>, ds: DsField, at: u64) -> Vec<Verdict<()>> {
        let mut verdicts = Vec::new();
        let packet = Packet { enqueued: Time::ZERO, flow: 0, size: 1500, ds, body: () };
        q.enqueue(packet, Time(at), &mut verdicts);
        verdicts
    }

    fn p(q: &Blue<()>) -> Option<f64> {
        Qdisc::<()>::state(q, Time::ZERO).probability
    }

    #[test]
    fn an_overflow_raises_p_and_an_idle_link_lowers_it_once_in_freeze_time() {
        let mut q = blue(1, false);
        send(&mut q, DsField::BEST_EFFORT, 0);
        assert_eq!(p(&q), Some(0.0));
        for at in [MS, 2 * MS, 101 * MS] {
            send(&mut q, DsField::BEST_EFFORT, at);
            assert_eq!(p(&q), Some(0.25), "the second and third arrive within the freeze time");
        }
        send(&mut q, DsField::BEST_EFFORT, 102 * MS);
        assert_eq!(p(&q), Some(0.5));
        assert!(q.dequeue(Time(300 * MS), &mut Vec::new()).is_some());
        for at in [301, 500] {
            assert!(q.dequeue(Time(at * MS), &mut Vec::new()).is_none());
            assert_eq!(p(&q), Some(0.375), "one idle period is one event");
        }
    }

    #[test]
    fn p_is_the_share_that_is_dropped_or_marked() {
        for ecn in [false, true] {
            let mut q = blue(u64::MAX, ecn);
            q.probability = 0.25;
            let capable = DsField(2);
            let signalled = (0..10_000).filter(|at| !send(&mut q, capable, *at).is_empty()).count();
            assert!((2300..2700).contains(&signalled), "{signalled}");
            let waits = if ecn { 10_000 } else { 10_000 - signalled };
            assert_eq!(q.backlog().packets as usize, waits, "marked packets are queued");
        }
    }
}
