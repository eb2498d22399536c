//! DOCSIS's queue protection: a flow that fills queue L beyond its threshold is sent to C.
//!
//! Each flow has a score, in units of time. A packet raises the score by 2^11 ns times its bytes
//! times the probability that L's own law marks it. The score falls as time passes, so it is stored
//! as the time at which it will be 0. A hash selects the flow's bucket among 32; a flow that finds
//! no free bucket uses one that is shared. A packet is sanctioned, that is, sent to C, if two
//! quantities exceed their critical values: L's delay, and the product of delay and score.
//!
//! Source: MULPIv3.1, Annex P; RFC 9957.

use units::{Span, Time};

const BUCKETS: usize = 32;
/// The bits of the hash that select a bucket, and the number of attempts.
const BITS: u32 = 5;
const ATTEMPTS: usize = 2;
/// The score of one byte that L's law marks with probability 1: 2^11 ns.
const AGING: f64 = 2048.0;
/// The largest score.
const MOST: Span = Span::from_secs(5);
/// The least score at which a packet is sanctioned at L's critical delay.
const CRITICAL_SCORE: Span = Span::from_millis(4);

#[derive(Clone, Copy, Debug)]
struct Bucket {
    flow: Option<u64>,
    expires: Time,
}

pub(super) struct Protection {
    /// The last bucket is shared.
    buckets: [Bucket; BUCKETS + 1],
}

impl Protection {
    pub(super) fn new() -> Protection {
        Protection { buckets: [Bucket { flow: None, expires: Time::ZERO }; BUCKETS + 1] }
    }

    /// Scores a packet of `flow` with this hash. Returns whether it is sanctioned. `native` is the
    /// probability of L's own law, `critical` L's critical delay.
    pub(super) fn sanctions(
        &mut self,
        (flow, hash): (u64, u32),
        bytes: u32,
        native: f64,
        (delay, critical): (Span, Span),
        now: Time,
    ) -> bool {
        let index = self.bucket(flow, hash, now);
        let score = self.fill(index, bytes, native, now);
        let product = |score: Span, delay: Span| u128::from(score.0) * u128::from(delay.0);
        delay > critical && product(score, delay) > product(CRITICAL_SCORE, critical)
    }

    /// The bucket of this flow, otherwise a free one, otherwise the shared one.
    fn bucket(&mut self, flow: u64, hash: u32, now: Time) -> usize {
        let mut bucket = BUCKETS;
        for attempt in 0..ATTEMPTS {
            let index = (hash >> (BITS * attempt as u32)) as usize % BUCKETS;
            if self.buckets[index].flow == Some(flow) {
                bucket = index;
                break;
            }
            if bucket == BUCKETS && self.buckets[index].expires <= now {
                bucket = index;
            }
        }
        self.buckets[bucket].flow = (bucket < BUCKETS).then_some(flow);
        bucket
    }

    /// Adds a packet to the score of a bucket, and returns the score.
    fn fill(&mut self, index: usize, bytes: u32, native: f64, now: Time) -> Span {
        let bucket = &mut self.buckets[index];
        let more = Span((native * f64::from(bytes) * AGING) as u64);
        bucket.expires = (bucket.expires.max(now) + more).min(now + MOST);
        bucket.expires.since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRITICAL: Span = Span::from_millis(1);
    const NOW: Time = Time(1_000_000_000);

    #[test]
    fn a_full_packet_at_probability_1_adds_three_ms_to_a_score_that_decays() {
        let mut protection = Protection::new();
        assert_eq!(protection.fill(0, 1500, 1.0, NOW), Span(3_072_000));
        let bucket = protection.bucket(7, 0, NOW + Span(3_072_000));
        assert_eq!(protection.fill(bucket, 1500, 0.5, NOW + Span(3_072_000)), Span(1_536_000));
        for _ in 0..2000 {
            protection.fill(3, 1500, 1.0, NOW);
        }
        assert_eq!(protection.fill(3, 1500, 1.0, NOW), MOST);
    }

    #[test]
    fn a_flow_is_sanctioned_by_the_product_of_delay_and_score() {
        let mut protection = Protection::new();
        let mut sent = |flow: u64, delay| {
            let hash = flow as u32;
            protection.sanctions((flow, hash), 1500, 1.0, (delay, CRITICAL), NOW)
        };
        // At a delay of 1.1 ms, the product with a score of 3.072 ms is below the critical 4 ms²,
        // and with 6.144 ms above it. A delay equal to the critical one causes no sanction.
        let (long, short) = (Span(1_100_000), CRITICAL);
        assert_eq!([sent(1, long), sent(1, long)], [false, true]);
        assert_eq!([sent(2, short), sent(2, short), sent(2, short)], [false; 3]);
        // At 1.4 ms, the product with 3.072 ms is 4.3 ms².
        assert!(sent(3, Span(1_400_000)));
    }

    #[test]
    fn a_flow_takes_a_free_bucket_or_its_second_or_the_shared_one() {
        let mut protection = Protection::new();
        let hash = 0b00010_00001;
        for (flow, expected) in [(1, 1), (2, 2), (3, BUCKETS), (4, BUCKETS), (1, 1)] {
            let index = protection.bucket(flow, hash, NOW);
            assert_eq!(index, expected, "flow {flow}");
            protection.fill(index, 1500, 1.0, NOW);
        }
        // After aging any flow may use the first bucket.
        let later = NOW + MOST + MOST;
        assert_eq!(protection.bucket(3, hash, later), 1);
    }
}
