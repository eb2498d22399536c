//! adt: Active Drop-Tail, a drop-tail queue that adapts its limit to the least one that keeps the
//! link busy.
//!
//! The limit is `q_adt`. On the first arrival after each sample period the throughput of that
//! period enters a weighted average. While the average is below the wanted utilisation of the link,
//! the limit is multiplied by c, otherwise divided by it. Many flows keep a link busy with a short
//! queue, few flows need a long one; the number of flows need not be known.
//!
//! Source: Stanojevic, Shorten, Kellett, "Adaptive Tuning of Drop-Tail Buffers for Reducing
//! Queueing Delays", IEEE Communications Letters 10(7), 2006, §II. THR, q_adt, u, c and rho are the
//! paper's letters. The paper does not specify the start. Here q_adt starts at the buffer size
//! (Comment 1 needs that) unless `start` is given, and THR at zero, as if the link had been idle
//! before the run. So the limit begins to shrink after the average has seen enough of a busy link
//! (44 full samples at rho = 0.1, u = 0.99). Deviations from the paper: q_adt is at least one
//! packet. Below one packet the decisions are the same: an empty queue takes a packet, any other
//! drops it. But q_adt could fall without bound, and would take as long to return. While the
//! service rate is unknown or zero, q_adt does not change: there is no utilisation to regulate.

use crate::{Backlog, Cause, Context, Fifo, Packet, Qdisc, State, Verdict};
use serde::Deserialize;
use units::{Rate, Span, Time};

/// `adt limit PACKETS utilisation U increase C weight RHO sample TIME rate RATE start PACKETS
/// packet BYTES`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdtParams {
    /// The paper's SizeOfBuffer, in packets: q_adt never exceeds it.
    pub limit: u64,
    /// The paper's u: the wanted utilisation of the link, a fraction (0.99).
    pub utilisation: f64,
    /// The paper's c: q_adt is multiplied or divided by it once a sample (1.01).
    pub increase: f64,
    /// The paper's rho: weight of the newest sample in the average (0.1).
    pub weight: f64,
    /// The paper's SamplePeriod, ns (300 000 000).
    pub sample_ns: u64,
    /// The paper's ServiceRate, bit/s. `None`: the link's rate, including its changes.
    pub rate: Option<u64>,
    /// q_adt at the start, packets; `None`: `limit`.
    pub start: Option<u64>,
    /// Bytes of a packet if the queue is counted in bytes (footnote 4). `None`: the queue is
    /// counted in packets.
    pub packet: Option<u64>,
}

/// The algorithm's state.
#[derive(Clone, Debug)]
struct Control {
    /// The limit in force, packets. It is a real number, since a factor of 1.01 would never change
    /// a small integer.
    q_adt: f64,
    /// THR: the weighted average of the throughput, bit/s.
    throughput: f64,
    /// NmbBEnq(now) - NmbBEnq(LastUpdate), bytes.
    enqueued_bytes: u64,
    last_update: Time,
}

/// A drop-tail queue that adapts its limit.
pub struct Adt<B> {
    limit: f64,
    utilisation: f64,
    increase: f64,
    weight: f64,
    sample: Span,
    /// The user has given the rate, so changes of the link's rate are ignored.
    rate_is_fixed: bool,
    packet: Option<u64>,
    /// ServiceRate, bit/s; 0 = unknown.
    service_rate: f64,
    control: Control,
    queue: Fifo<B>,
}

impl<B> Adt<B> {
    /// An empty queue.
    pub fn new(params: &AdtParams, context: Context) -> Self {
        let limit = params.limit as f64;
        let start = params.start.map_or(limit, |packets| packets as f64);
        Adt {
            limit,
            utilisation: params.utilisation,
            increase: params.increase,
            weight: params.weight,
            sample: Span(params.sample_ns),
            rate_is_fixed: params.rate.is_some(),
            packet: params.packet,
            service_rate: params.rate.or(context.rate.map(|r| r.0)).unwrap_or(0) as f64,
            control: Control {
                q_adt: bounded(start, limit),
                throughput: 0.0,
                enqueued_bytes: 0,
                last_update: Time::ZERO,
            },
            queue: Fifo::default(),
        }
    }

    /// The queue's size in packets, counted by packets or by bytes.
    fn size(&self) -> f64 {
        let backlog = self.queue.backlog();
        match self.packet {
            None => f64::from(backlog.packets),
            Some(bytes) => backlog.bytes as f64 / bytes as f64,
        }
    }

    /// Takes one sample: the paper's pseudo-code between IF and LastUpdate := now.
    #[cold]
    fn update(&mut self, now: Time) {
        let control = &mut self.control;
        let elapsed = now.since(control.last_update).as_secs_f64();
        let current = control.enqueued_bytes as f64 * 8.0 / elapsed;
        control.throughput = self.weight * current + (1.0 - self.weight) * control.throughput;
        if self.service_rate > 0.0 {
            let wanted = if control.throughput / self.service_rate < self.utilisation {
                control.q_adt * self.increase
            } else {
                control.q_adt / self.increase
            };
            control.q_adt = bounded(wanted, self.limit);
        }
        control.enqueued_bytes = 0;
        control.last_update = now;
    }
}

/// min(q_adt, SizeOfBuffer), but at least one packet unless the buffer has no room for any.
fn bounded(q_adt: f64, limit: f64) -> f64 {
    q_adt.max(1.0).min(limit)
}

impl<B> Qdisc<B> for Adt<B> {
    #[inline]
    fn enqueue(&mut self, packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        if now.since(self.control.last_update) > self.sample {
            self.update(now);
        }
        // "the queue has size less than q_adt": with q_adt = 6.3 a queue of 6 still takes a seventh
        // packet.
        if self.size() < self.control.q_adt {
            self.control.enqueued_bytes += u64::from(packet.size);
            self.queue.push(packet, now);
        } else {
            verdicts.push(Verdict::Dropped(packet, Cause::Limit));
        }
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
            limit: Some(self.control.q_adt),
            average: Some(self.control.throughput),
            ..State::default()
        }
    }

    fn rate_changed(&mut self, rate: Rate) {
        if !self.rate_is_fixed {
            self.service_rate = rate.0 as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DsField;
    use units::Rng;

    fn adt(limit: u64, start: Option<u64>) -> Adt<()> {
        let params = AdtParams {
            limit,
            utilisation: 0.99,
            increase: 1.01,
            weight: 0.1,
            sample_ns: 300_000_000,
            rate: None,
            start,
            packet: None,
        };
        let context = Context {
            rate: Some(Rate(12_000_000)),
            mtu: 1514,
            header_bytes: 0,
            root: false,
            rng: Rng::new(1, "adt"),
        };
        Adt::new(&params, context)
    }

    fn packet() -> Packet<()> {
        Packet { enqueued: Time::ZERO, flow: 0, size: 1500, ds: DsField::BEST_EFFORT, body: () }
    }

    /// Offers a packet every `gap_ns` from `from` to `to`. The link sends each at once.
    fn offer(q: &mut Adt<()>, from: u64, to: u64, gap_ns: u64) {
        let mut verdicts = Vec::new();
        for t in (from..to).step_by(gap_ns as usize) {
            q.enqueue(packet(), Time(t), &mut verdicts);
            q.dequeue(Time(t), &mut verdicts);
        }
        assert!(verdicts.is_empty(), "an empty queue takes every packet");
    }

    #[test]
    fn a_queue_is_full_once_it_is_not_shorter_than_q_adt() {
        let mut q = adt(500, Some(6));
        q.control.q_adt = 6.3;
        let mut verdicts = Vec::new();
        for _ in 0..8 {
            q.enqueue(packet(), Time(1), &mut verdicts);
        }
        assert_eq!(q.backlog().packets, 7);
        assert!(matches!(verdicts[..], [Verdict::Dropped(_, Cause::Limit)]));
    }

    #[test]
    fn in_byte_mode_an_ack_takes_the_space_of_its_bytes() {
        // q_adt is 6.3 packets of 1500 bytes: 9450 bytes. 236 ACKs of 40 bytes are 9440 bytes, so
        // exactly one more fits.
        let mut q = adt(500, Some(6));
        q.packet = Some(1500);
        q.control.q_adt = 6.3;
        let mut verdicts = Vec::new();
        for _ in 0..240 {
            q.enqueue(Packet { size: 40, ..packet() }, Time(1), &mut verdicts);
        }
        assert_eq!(q.backlog().packets, 237);
        assert_eq!(verdicts.len(), 3);
    }

    #[test]
    fn one_sample_follows_the_pseudo_code() {
        let mut q = adt(500, Some(100));
        // 100 packets of 1500 bytes enter at 1 ms. At exactly 300 ms there is no sample yet
        // ("greater", not "at least").
        let mut verdicts = Vec::new();
        for _ in 0..100 {
            q.enqueue(packet(), Time(1_000_000), &mut verdicts);
        }
        q.enqueue(packet(), Time(300_000_000), &mut verdicts);
        assert_eq!(q.state(Time::NEVER).average, Some(0.0));
        // At 400 ms: CURTHR = 1.2 Mbit / 0.4 s = 3 Mbit/s; THR = 0.1 * 3 = 0.3 Mbit/s, 2.5 % of the
        // link: q_adt grows.
        q.enqueue(packet(), Time(400_000_000), &mut verdicts);
        assert!((q.control.throughput - 300_000.0).abs() < 1e-6);
        assert!((q.control.q_adt - 101.0).abs() < 1e-9);
        // The packet at 300 ms was refused (queue 100, not shorter than q_adt 100). The one at 400
        // ms fits q_adt = 101.
        assert_eq!(verdicts.len(), 1);
        assert_eq!(q.control.enqueued_bytes, 1500);
    }

    #[test]
    fn an_uncongested_link_keeps_the_whole_buffer() {
        // Comment 1. 1500 bytes every 2 ms are 6 Mbit/s, half of the link.
        let mut q = adt(500, None);
        offer(&mut q, 0, 60_000_000_000, 2_000_000);
        assert_eq!(q.state(Time::NEVER).limit, Some(500.0));
        assert!((q.control.throughput / 6e6 - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_full_link_shrinks_the_limit_after_44_samples() {
        // 1500 bytes every 1 ms are 12 Mbit/s, the whole link. 1 - 0.9^k exceeds 0.99 from k = 44.
        let mut q = adt(500, None);
        offer(&mut q, 0, 301_000_000 * 43 + 2, 1_000_000);
        assert_eq!(q.state(Time::NEVER).limit, Some(500.0));
        offer(&mut q, 12_944_000_000, 20_000_000_000, 1_000_000);
        assert!(q.control.q_adt < 500.0);
    }

    #[test]
    fn the_limit_never_falls_below_a_packet_and_comes_back() {
        let mut q = adt(500, None);
        offer(&mut q, 0, 400_000_000_000, 1_000_000);
        assert_eq!(q.state(Time::NEVER).limit, Some(1.0));
        offer(&mut q, 400_000_000_000, 440_000_000_000, 2_000_000);
        assert!(q.control.q_adt > 2.0);
    }

    #[test]
    fn the_service_rate_follows_the_link_unless_it_was_given() {
        let mut q = adt(500, None);
        q.rate_changed(Rate(1));
        assert_eq!(q.service_rate, 1.0);
        q.rate_is_fixed = true;
        q.rate_changed(Rate(2));
        assert_eq!(q.service_rate, 1.0);
    }
}
