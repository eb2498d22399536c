//! avq: adaptive virtual queue. A virtual queue, which is only a number, on a link a little slower
//! than the real one decides when to drop.
//!
//! Each packet that arrives also joins a virtual queue of the same buffer B, which is served at a
//! virtual capacity C~. A packet that would overflow the virtual queue is dropped or marked in the
//! real queue. C~ changes with each arrival so that arrivals use the fraction gamma of the link. If
//! arrivals exceed that, C~ shrinks and the virtual queue overflows sooner. So the real queue stays
//! short, and the utilisation is gamma.
//!
//! On an arrival of b bytes at time t, with the previous arrival at time s:
//!
//! ```text
//! VQ = max(VQ - C~ (t - s), 0)
//! if VQ + b > B: drop or mark, else: VQ = VQ + b
//! C~ = max(min(C~ + alpha gamma C (t - s), C) - alpha b, 0)
//! ```
//!
//! Source: S. Kunniyur and R. Srikant, "Analysis and design of an adaptive virtual queue (AVQ)
//! algorithm for active queue management", SIGCOMM 2001 (IEEE/ACM Transactions on Networking 12(2),
//! 2004). From it are the names, gamma 0.98, alpha 0.15 and a buffer of 100 packets.
//!
//! Deviations and readings: at the start C~ is C, and the virtual queue is empty. While the rate is
//! unknown or zero there is no virtual queue. Every packet that arrives changes C~, also one that
//! is dropped. So if packets are dropped rather than marked, the utilisation is lower by the
//! dropped packets.

use crate::ds::mark;
use crate::{Backlog, Cause, Context, Fifo, Packet, Qdisc, State, Verdict};
use serde::Deserialize;
use units::{Rate, Time};

/// `avq limit BYTES gamma G alpha A rate RATE ecn|noecn`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AvqParams {
    /// The paper's B: the limit of the real queue and of the virtual queue, bytes (150 000).
    pub limit: u64,
    /// The paper's gamma: the wanted utilisation of the link, a fraction (0.98).
    pub gamma: f64,
    /// The paper's alpha: how quickly C~ adapts, 1/s (0.15).
    pub alpha: f64,
    /// The paper's C, bit/s. `None`: the link's rate, including its changes.
    pub rate: Option<u64>,
    /// Mark ECN-capable packets instead of dropping them (false).
    pub ecn: bool,
}

/// A FIFO with a virtual queue.
pub struct Avq<B> {
    params: AvqParams,
    /// The paper's C, bytes/s; 0: unknown.
    capacity: f64,
    /// The paper's C~, bytes/s.
    virtual_capacity: f64,
    /// The paper's VQ, bytes.
    virtual_queue: f64,
    /// The paper's s: the time of the last arrival.
    last_arrival: Time,
    queue: Fifo<B>,
}

impl<B> Avq<B> {
    /// An empty queue.
    pub fn new(params: &AvqParams, context: Context) -> Self {
        let bps = params.rate.or(context.rate.map(|rate| rate.0)).unwrap_or(0);
        let capacity = bps as f64 / 8.0;
        Avq {
            params: params.clone(),
            capacity,
            virtual_capacity: capacity,
            virtual_queue: 0.0,
            last_arrival: Time::ZERO,
            queue: Fifo::default(),
        }
    }

    /// Updates the virtual queue for an arriving packet. Returns whether it overflows.
    #[inline]
    fn overflows(&mut self, size: u32, now: Time) -> bool {
        if self.capacity <= 0.0 {
            return false;
        }
        let AvqParams { limit, gamma, alpha, .. } = self.params;
        let (size, elapsed) = (f64::from(size), now.since(self.last_arrival).as_secs_f64());
        self.last_arrival = now;
        self.virtual_queue = (self.virtual_queue - self.virtual_capacity * elapsed).max(0.0);
        let overflows = self.virtual_queue + size > limit as f64;
        if !overflows {
            self.virtual_queue += size;
        }
        let risen = self.virtual_capacity + alpha * gamma * self.capacity * elapsed;
        self.virtual_capacity = (risen.min(self.capacity) - alpha * size).max(0.0);
        overflows
    }
}

impl<B> Qdisc<B> for Avq<B> {
    #[inline]
    fn enqueue(&mut self, mut packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        let overflows = self.overflows(packet.size, now);
        if self.queue.backlog().bytes + u64::from(packet.size) > self.params.limit {
            return verdicts.push(Verdict::Dropped(packet, Cause::Limit));
        }
        if overflows && !(self.params.ecn && mark(&mut packet, Cause::Early, verdicts)) {
            return verdicts.push(Verdict::Dropped(packet, Cause::Early));
        }
        self.queue.push(packet, now);
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, _verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        self.queue.pop()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn state(&self, _now: Time) -> State {
        State {
            limit: Some(self.params.limit as f64),
            average: Some(self.virtual_capacity * 8.0),
            ..State::default()
        }
    }

    fn rate_changed(&mut self, rate: Rate) {
        if self.params.rate.is_some() {
            return;
        }
        // The virtual capacity keeps its ratio to the real one.
        let share = if self.capacity > 0.0 { self.virtual_capacity / self.capacity } else { 1.0 };
        self.capacity = rate.0 as f64 / 8.0;
        self.virtual_capacity = share * self.capacity;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DsField;
    use units::Rng;

    const MS: u64 = 1_000_000;

    /// C is a million bytes a second.
    fn avq(limit: u64, [gamma, alpha]: [f64; 2], ecn: bool) -> Avq<()> {
        let params = AvqParams { limit, gamma, alpha, rate: None, ecn };
        let (rate, rng) = (Some(Rate(8_000_000)), Rng::new(1, "avq"));
        Avq::new(&params, Context { rate, mtu: 1500, header_bytes: 0, root: true, rng })
    }

    fn send(q: &mut Avq<()>, ds: DsField, at: u64) -> Vec<Verdict<()>> {
        let mut verdicts = Vec::new();
        let packet = Packet { enqueued: Time::ZERO, flow: 0, size: 1000, ds, body: () };
        q.enqueue(packet, Time(at), &mut verdicts);
        verdicts
    }

    #[test]
    fn the_virtual_queue_and_capacity_are_the_paper_s_step_by_step() {
        // alpha is 100/s, so each packet lowers C~ by 100 000 bytes/s.
        let mut q = avq(2000, [0.5, 100.0], false);
        let close =
            |actual: f64, expected: f64| assert!((actual - expected).abs() < 1e-6, "{actual}");
        assert!(send(&mut q, DsField::BEST_EFFORT, 0).is_empty());
        // min(C, C) - 100 * 1000.
        close(q.virtual_queue, 1000.0);
        close(q.virtual_capacity, 900_000.0);
        // After 1 ms: VQ = 1000 - 900 + 1000. C~ = 900 000 + 100 * 0.5 * 10^6 * 0.001 - 100 000.
        assert!(send(&mut q, DsField::BEST_EFFORT, MS).is_empty());
        close(q.virtual_queue, 1100.0);
        close(q.virtual_capacity, 850_000.0);
        // At the same time: 1100 + 1000 exceeds 2000. C~ falls although the packet is dropped.
        let verdicts = send(&mut q, DsField::BEST_EFFORT, MS);
        assert!(
            matches!(verdicts[..], [Verdict::Dropped(_, Cause::Limit)]),
            "the real queue is full, too"
        );
        close(q.virtual_queue, 1100.0);
        close(q.virtual_capacity, 750_000.0);
        assert!(q.dequeue(Time(MS), &mut Vec::new()).is_some());
        let verdicts = send(&mut q, DsField::BEST_EFFORT, MS);
        assert!(matches!(verdicts[..], [Verdict::Dropped(_, Cause::Early)]), "{verdicts:?}");
        close(q.virtual_capacity, 650_000.0);
        // After a second C~ is C again, less the packet's share.
        assert!(send(&mut q, DsField::BEST_EFFORT, 1_001 * MS).is_empty());
        close(q.virtual_queue, 1000.0);
        close(q.virtual_capacity, 900_000.0);
        q.rate_changed(Rate(4_000_000));
        close(q.virtual_capacity, 450_000.0);
    }

    #[test]
    fn evenly_spaced_arrivals_are_signalled_above_gamma() {
        // The rates are 99 % and 97 % of the link's 1000 bytes per ms.
        for (gap, signalled) in [(MS * 100 / 99, true), (MS * 100 / 97, false)] {
            let mut q = avq(20_000, [0.98, 0.15], true);
            let mut marks = 0;
            for number in 0..200_000 {
                marks += send(&mut q, DsField(2), number * gap).len();
                if q.dequeue(Time(number * gap), &mut Vec::new()).is_none() {
                    panic!("no packet was queued");
                }
            }
            assert_eq!(marks > 0, signalled, "{marks}");
        }
    }

    #[test]
    fn without_a_rate_it_is_a_fifo() {
        let params = AvqParams { limit: 5000, gamma: 0.98, alpha: 0.15, rate: None, ecn: false };
        let rng = Rng::new(1, "avq");
        let context = Context { rate: None, mtu: 1500, header_bytes: 0, root: true, rng };
        let mut q = Avq::new(&params, context);
        let accepted = (0..9).filter(|_| send(&mut q, DsField::BEST_EFFORT, 0).is_empty()).count();
        assert_eq!(accepted, 5);
    }
}
