//! A video player that adapts its rate: it fetches segment after segment, each at the highest rate
//! of a ladder that the expected throughput allows.
//!
//! The expected throughput is the harmonic mean of the last five segments' throughputs, and a rate
//! may take at most four fifths of it. The player fetches ahead up to a bound, then waits until
//! there is room for a segment. The rules are those of rate-based players (Jiang, Sekar and Zhang
//! 2012 have the harmonic mean); the two numbers are ours.

use units::{Span, Time};

/// Segments in the mean.
const REMEMBERED: usize = 5;
/// The share of the mean that a rate may take, as a fraction.
const SHARE: (u64, u64) = (4, 5);

/// The state of a player.
pub struct Player {
    ladder_bps: Vec<u64>,
    segment: Span,
    most_ahead: Span,
    /// The rung of the present segment.
    rung: usize,
    /// Fetched and not yet played, at `since`.
    ahead: Span,
    since: Time,
    /// ns for each bit of the last segments, the oldest first.
    slowness: Vec<f64>,
}

impl Player {
    /// A player that begins with the lowest rate.
    pub fn new(ladder_bps: &[u64], segment: Span, most_ahead: Span) -> Player {
        Player {
            ladder_bps: ladder_bps.to_vec(),
            segment,
            most_ahead,
            rung: 0,
            ahead: Span(0),
            since: Time::ZERO,
            slowness: Vec::new(),
        }
    }

    /// Bytes of the present segment, or of the next one.
    pub fn segment_bytes(&self) -> u64 {
        let bits = u128::from(self.ladder_bps[self.rung]) * u128::from(self.segment.0);
        ((bits / 8_000_000_000) as u64).max(1)
    }

    /// A segment that was requested at `began` has arrived; returns the time of the next request.
    pub fn fetched(&mut self, bytes: u64, began: Time, now: Time) -> Time {
        let played = now.since(self.since);
        self.ahead = Span(self.ahead.0.saturating_sub(played.0)) + self.segment;
        self.since = now;
        if self.slowness.len() == REMEMBERED {
            self.slowness.remove(0);
        }
        self.slowness.push(now.since(began).0.max(1) as f64 / (8 * bytes) as f64);
        let mean = self.slowness.iter().sum::<f64>() / self.slowness.len() as f64;
        let expected = 1e9 / mean * SHARE.0 as f64 / SHARE.1 as f64;
        self.rung = self.ladder_bps.iter().rposition(|&bps| bps as f64 <= expected).unwrap_or(0);
        let room = Span(self.most_ahead.0.saturating_sub(self.segment.0));
        now + Span(self.ahead.0.saturating_sub(room.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn player() -> Player {
        Player::new(&[1_000_000, 2_000_000, 4_000_000], Span(4 * S), Span(12 * S))
    }

    #[test]
    fn the_rate_follows_the_throughput_and_is_a_fifth_below_it() {
        let mut player = player();
        assert_eq!(player.segment_bytes(), 500_000);
        // 4 Mbit in 1 s: the rate may be 3.2 Mbit/s.
        player.fetched(500_000, Time(0), Time(S));
        assert_eq!(player.segment_bytes(), 1_000_000);
        // 8 Mbit in 1 s: the harmonic mean of 4 and 8 is 5.33, so the rate may be 4.27.
        player.fetched(1_000_000, Time(S), Time(2 * S));
        assert_eq!(player.segment_bytes(), 2_000_000);
        // 16 Mbit in 16 s: the mean of 4, 8 and 1 is 2.18, so the rate may be 1.75.
        player.fetched(2_000_000, Time(2 * S), Time(18 * S));
        assert_eq!(player.segment_bytes(), 500_000);
    }

    #[test]
    fn it_pauses_when_its_buffer_is_full() {
        let mut player = player();
        // After the first segment 4 s are fetched ahead, after the second 7 s. At most 12 s may be,
        // so another segment of 4 s has room each time.
        assert_eq!(player.fetched(500_000, Time(0), Time(S)), Time(S));
        assert_eq!(player.fetched(500_000, Time(S), Time(2 * S)), Time(2 * S));
        // After the third 10 s are fetched ahead: the player waits until 8 s are left.
        assert_eq!(player.fetched(500_000, Time(2 * S), Time(3 * S)), Time(5 * S));
        // The fourth takes 35 s. Meanwhile the player has played all, so it requests another at
        // once.
        assert_eq!(player.fetched(500_000, Time(5 * S), Time(40 * S)), Time(40 * S));
    }
}
