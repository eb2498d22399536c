//! tbf: a token bucket over a bfifo.
//!
//! Tokens arrive at the rate, and the bucket has room for the burst. A packet leaves when there are
//! tokens for all of it. A second bucket, with room for one packet or a little more, limits how
//! fast a burst leaves (`peakrate`). Packets wait for tokens in a FIFO with a limit in bytes.
//!
//! Source: tc-tbf(8); Linux net/sched/sch_tbf.c (6.12) for the arithmetic:
//!
//! - Tokens are ns at the rate. A packet takes its bytes times a 32-bit factor, divided by 2ⁿ and
//!   rounded down. The factor is the largest one below 10⁹ · 2ⁿ / rate.
//! - A dequeue that returns nothing leaves the buckets unchanged. Tokens are counted when a packet
//!   leaves, for at most the time that fills the bucket.
//! - The timer that ends a wait for tokens has no slack.
//! - A packet larger than the burst, or than `mtu` if there is a peak rate, is dropped on arrival.
//!
//! - A packet is charged `overhead` bytes more, `mpu` at least, and with `linklayer atm` whole
//!   cells, 53 bytes for each 48. The burst is converted in the same way, as if it were one packet.
//!   Whether a packet is too large depends on its bytes without overhead, `mpu` and cells.
//!
//! Difference from htb, the shaper of a link (crates/link): htb lets a packet leave while it has
//! any tokens left, and then owes the rest. So after a pause htb lets one packet more through.
//!
//! Deviation: the child is the bfifo that tbf creates; other children are not supported.

use crate::{Backlog, Cause, Fifo, Packet, Qdisc, State, Verdict};
use serde::Deserialize;
use units::{BytePace, Span, Time};

/// The link layer, by tc's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TbfLinkLayer {
    /// Packets are not cut.
    Ethernet,
    /// Packets are cut into cells of 48 bytes, sent as 53.
    Atm,
}

/// `tbf rate RATE burst BYTES limit BYTES [peakrate RATE mtu BYTES] [mpu BYTES] [overhead BYTES]
/// [linklayer ethernet|atm]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TbfParams {
    /// The rate of tokens, bit/s.
    pub rate: u64,
    /// The size of the bucket, bytes.
    pub burst: u64,
    /// The limit of the FIFO, bytes.
    pub limit: u64,
    /// The rate at which a burst leaves, bit/s, above `rate`. `None`: the link's rate.
    pub peakrate: Option<u64>,
    /// The size of the peak rate's bucket, bytes.
    pub mtu: u64,
    /// The least charge for a packet, bytes (0).
    pub mpu: u64,
    /// The bytes charged in addition to each packet (0).
    pub overhead: u64,
    /// The link layer (ethernet).
    pub linklayer: TbfLinkLayer,
}

/// The bytes that a packet is charged.
#[derive(Clone, Copy)]
struct Charge {
    overhead: u64,
    least: u64,
    linklayer: TbfLinkLayer,
}

impl Charge {
    fn bytes(self, bytes: u64) -> u64 {
        let framed = (bytes + self.overhead).max(self.least);
        match self.linklayer {
            TbfLinkLayer::Ethernet => framed,
            TbfLinkLayer::Atm => framed.div_ceil(48) * 53,
        }
    }
}

/// A token bucket; tokens are in ns.
struct Bucket {
    pace: BytePace,
    charge: Charge,
    room: i64,
    tokens: i64,
}

impl Bucket {
    fn new(bps: u64, bytes: u64, charge: Charge) -> Bucket {
        let pace = BytePace::new(bps);
        let room = pace.time(charge.bytes(bytes));
        Bucket { pace, charge, room, tokens: room }
    }

    /// The tokens for a packet of `bytes`.
    fn cost(&self, bytes: u32) -> i64 {
        self.pace.time(self.charge.bytes(bytes.into()))
    }

    /// The tokens left after a packet of `bytes`, if `come` ns have passed since tokens were last
    /// counted.
    fn left(&self, come: i64, bytes: u32) -> i64 {
        self.room.min(self.tokens + come) - self.cost(bytes)
    }
}

/// Linux's token bucket filter.
pub struct Tbf<B> {
    queue: Fifo<B>,
    limit: u64,
    largest: u64,
    bucket: Bucket,
    peak: Option<Bucket>,
    /// The time at which tokens were last counted.
    counted: Time,
}

impl<B> Tbf<B> {
    /// An empty queue with full buckets.
    pub fn new(params: &TbfParams) -> Self {
        let TbfParams { mpu: least, overhead, linklayer, .. } = *params;
        let charge = Charge { overhead, least, linklayer };
        let peak = params.peakrate.map(|bps| Bucket::new(bps, params.mtu, charge));
        Tbf {
            queue: Fifo::default(),
            limit: params.limit,
            largest: if peak.is_some() { params.burst.min(params.mtu) } else { params.burst },
            bucket: Bucket::new(params.rate, params.burst, charge),
            peak,
            counted: Time::ZERO,
        }
    }

    /// The tokens left in both buckets if the oldest packet leaves now; negative if there are too
    /// few. `None`: the queue is empty.
    fn left(&self, now: Time) -> Option<(i64, i64)> {
        let bytes = self.queue.front()?.size;
        let since = i64::try_from(now.since(self.counted).0).unwrap_or(i64::MAX);
        let come = since.min(self.bucket.room);
        let peak = self.peak.as_ref().map_or(0, |peak| peak.left(come, bytes));
        Some((self.bucket.left(come, bytes), peak))
    }
}

impl<B> Qdisc<B> for Tbf<B> {
    #[inline]
    fn enqueue(&mut self, packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        let size = u64::from(packet.size);
        if size > self.largest || self.queue.backlog().bytes + size > self.limit {
            return verdicts.push(Verdict::Dropped(packet, Cause::Limit));
        }
        self.queue.push(packet, now);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        let (tokens, peak_tokens) = self.left(now)?;
        if tokens < 0 || peak_tokens < 0 {
            return None;
        }
        self.counted = now;
        self.bucket.tokens = tokens;
        if let Some(peak) = &mut self.peak {
            peak.tokens = peak_tokens;
        }
        self.queue.pop()
    }

    /// The time at which there are tokens for the oldest packet.
    #[inline]
    fn holds_until(&self) -> Option<Time> {
        let Some(oldest) = self.queue.front() else {
            return Some(Time::ZERO);
        };
        let missing = |bucket: &Bucket| bucket.cost(oldest.size) - bucket.tokens;
        let missing = missing(&self.bucket).max(self.peak.as_ref().map_or(0, missing)).max(0);
        Some(self.counted + Span(missing as u64))
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn state(&self, _now: Time) -> State {
        State { limit: Some(self.limit as f64), ..State::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DsField;

    const MS: u64 = 1_000_000;

    fn params() -> TbfParams {
        TbfParams {
            rate: 1_000_000,
            burst: 3028,
            limit: 60_000,
            peakrate: None,
            mtu: 0,
            mpu: 0,
            overhead: 0,
            linklayer: TbfLinkLayer::Ethernet,
        }
    }

    /// The departure times of packets of these sizes that all arrive at `at`, and the number of
    /// drops.
    fn pass(params: &TbfParams, sizes: &[u32], at: u64) -> (Vec<u64>, usize) {
        let mut q = Tbf::new(params);
        let mut verdicts = Vec::new();
        for size in sizes {
            let ds = DsField::BEST_EFFORT;
            let packet = Packet { enqueued: Time::NEVER, flow: 0, size: *size, ds, body: () };
            q.enqueue(packet, Time(at), &mut verdicts);
        }
        let mut times = Vec::new();
        while q.backlog().packets > 0 {
            let now = q.holds_until().expect("tbf has a rate").max(Time(at));
            if now.0 > at {
                assert!(q.dequeue(Time(now.0 - 1), &mut verdicts).is_none(), "too soon");
            }
            times.push(now.0);
            assert!(q.dequeue(now, &mut verdicts).is_some());
        }
        (times, verdicts.len())
    }

    #[test]
    fn a_burst_leaves_at_once_and_later_packets_wait_for_tokens_for_their_whole_length() {
        // Five packets with Linux's numbers. Two of them are the burst; 1514 bytes take 12.112 ms.
        let (times, _) = pass(&params(), &[1514; 5], 0);
        assert_eq!(times, [0, 0, 12_112_000, 24_224_000, 36_336_000]);
        // A full bucket gains no tokens.
        let (times, _) = pass(&params(), &[1514; 3], 1_000 * MS);
        assert_eq!(times, [1_000 * MS, 1_000 * MS, 1_012_112_000]);
        // A bucket that lacks one byte waits 8 µs for it.
        let (times, _) = pass(&TbfParams { burst: 3027, ..params() }, &[1514; 2], 0);
        assert_eq!(times, [0, 8_000]);
    }

    #[test]
    fn the_peak_rate_keeps_a_burst_apart() {
        let params = TbfParams { peakrate: Some(12_112_000), mtu: 1514, ..params() };
        let (times, _) = pass(&params, &[1514; 3], 0);
        // The charge is rounded down.
        assert_eq!(times, [0, MS - 1, 12_112_000]);
    }

    #[test]
    fn packets_larger_than_a_bucket_or_beyond_the_limit_are_dropped() {
        assert_eq!(pass(&params(), &[3029, 3028], 0), (vec![0], 1));
        let peak = TbfParams { peakrate: Some(2_000_000), mtu: 1000, ..params() };
        assert_eq!(pass(&peak, &[1001, 1000], 0), (vec![0], 1));
        let small = TbfParams { limit: 3000, ..params() };
        assert_eq!(pass(&small, &[1000; 4], 0), (vec![0, 0, 0], 1));
    }

    #[test]
    fn a_packet_is_charged_overhead_a_least_and_whole_cells() {
        let charge = |mpu, overhead, linklayer| Charge { overhead, least: mpu, linklayer };
        let ethernet = charge(64, 24, TbfLinkLayer::Ethernet);
        assert_eq!([20, 40, 41, 1514].map(|bytes| ethernet.bytes(bytes)), [64, 64, 65, 1538]);
        // 1514 + 10 bytes are 32 cells, 12 bytes more are 33 cells; 50 bytes are two cells.
        let atm = charge(50, 10, TbfLinkLayer::Atm);
        assert_eq!([30, 1514, 1526, 1527].map(|bytes| atm.bytes(bytes)), [106, 1696, 1696, 1749]);

        // A packet takes 1538 bytes of a bucket of 3028 + 24. The second packet lacks 24 bytes of
        // tokens, 192 µs. The limit and the largest packet are counted without overhead.
        let plain = TbfParams { overhead: 24, ..params() };
        assert_eq!(pass(&plain, &[1514; 3], 0), (vec![0, 192_000, 12_496_000], 0));
        assert_eq!(pass(&TbfParams { limit: 3028, ..plain }, &[1514; 3], 0).1, 1);
        assert_eq!(pass(&TbfParams { burst: 1514, ..plain }, &[1514, 1515], 0), (vec![0], 1));
        // The peak rate's bucket uses the same charge.
        let peak = TbfParams { peakrate: Some(8_000_000), mtu: 1514, overhead: 24, ..params() };
        assert_eq!(pass(&peak, &[1514; 2], 0).0, [0, 1_538_000]);
    }
}
