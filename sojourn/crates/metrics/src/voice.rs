//! The quality of a voice call: the E-model of ITU-T G.107 with its default values.
//!
//! The codec is G.711 with loss concealment in packets of 20 ms: Ie = 0 and Bpl = 25.1 (ITU-T
//! G.113, appendix I), losses at random. The impairment by delay is the fit of Cole and Rosenbluth
//! (2001) to G.107. The receiver plays each packet at a fixed delay after it was sent: a later
//! packet is as good as lost. Its delay is the one with the best score, so no fixed playout delay
//! can have a better score.

/// Duration of the speech in a packet, which is complete before the packet leaves, ms.
const PACKET_MS: f64 = 20.0;
/// R without delay and loss.
const BEST: f64 = 93.2;
/// G.711's Bpl: how well it conceals losses.
const ROBUSTNESS: f64 = 25.1;

/// The mean opinion score, 1 to 4.5, of a call whose packets had the delays (from ns, to ns,
/// packets); `lost` more packets never arrived. NaN without a packet.
pub fn mos(bins: &[(u64, u64, u64)], lost: f64) -> f64 {
    let mut ends: Vec<(u64, f64)> = bins.iter().map(|bin| (bin.1, bin.2 as f64)).collect();
    ends.sort_unstable_by_key(|end| end.0);
    let all = ends.iter().map(|end| end.1).sum::<f64>() + lost;
    if all == 0.0 {
        return f64::NAN;
    }
    let mut in_time = 0.0;
    // The score if nothing is played.
    let mut best = 1.0_f64;
    for (end, count) in ends {
        in_time += count;
        best = best.max(score(rating(end as f64 / 1e6, 1.0 - in_time / all)));
    }
    best
}

/// R of a call that is played `delay_ms` after it was sent, and lacks this share of its packets.
fn rating(delay_ms: f64, lacking: f64) -> f64 {
    let delay = delay_ms + PACKET_MS;
    let impairment = 0.024 * delay + 0.11 * (delay - 177.3).max(0.0);
    let percent = 100.0 * lacking;
    BEST - impairment - 95.0 * percent / (percent + ROBUSTNESS)
}

/// G.107, annex B.
fn score(rating: f64) -> f64 {
    match rating {
        r if r <= 0.0 => 1.0,
        r if r >= 100.0 => 4.5,
        r => (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_rating_is_the_recommendation_s() {
        // Without loss: R = 93.2 - 0.024 * 100, and beyond 177.3 ms another 0.11 for each ms.
        assert!((rating(80.0, 0.0) - 90.8).abs() < 1e-9);
        assert!((rating(257.3, 0.0) - (93.2 - 0.024 * 277.3 - 11.0)).abs() < 1e-9);
        // 1 % lost: 95 * 1 / 26.1.
        assert!((rating(0.0, 0.01) - (93.2 - 0.48 - 95.0 / 26.1)).abs() < 1e-9);
        // Table B.1: R of 90, 80, 70, 60, 50 are 4.34, 4.03, 3.60, 3.10, 2.58.
        for (r, expected) in [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)]
        {
            assert!((score(r) - expected).abs() < 0.01, "{r}: {}", score(r));
        }
        assert_eq!(score(-5.0), 1.0);
    }

    #[test]
    fn the_play_out_delay_with_the_best_score_is_chosen() {
        let quick = (10 * MS, 20 * MS, 990);
        // Ten packets in a thousand took 2 s: the receiver does not wait for them.
        let late = mos(&[quick, (1990 * MS, 2000 * MS, 10)], 0.0);
        assert!((late - mos(&[quick], 10.0)).abs() < 1e-12);
        assert!((late - score(rating(20.0, 0.01))).abs() < 1e-12);
        // A third took 60 ms: the receiver waits for them.
        let waited = mos(&[(10 * MS, 20 * MS, 666), (50 * MS, 60 * MS, 334)], 0.0);
        assert!((waited - score(rating(60.0, 0.0))).abs() < 1e-12);
    }

    #[test]
    fn a_call_without_a_packet_received_has_the_worst_score_and_one_without_packets_none() {
        assert_eq!(mos(&[], 100.0), 1.0);
        assert!(mos(&[], 0.0).is_nan());
    }
}
