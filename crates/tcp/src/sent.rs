//! When each outstanding segment last left, and whether it had left before.
//!
//! A ring over the sequence numbers from `una` to `nxt`, written once for each segment sent and
//! read only when something is amiss. It tells an original from a copy (F-RTO), and what was sent
//! before what (RACK).

use units::Time;

/// The bit of an entry that says "sent again". The clock would need 292 years to reach it.
const AGAIN: u64 = 1 << 63;

/// Times of sending, one for each segment outstanding.
pub struct SentTimes {
    /// As many as a power of two; segment n lies at n modulo their number.
    entries: Vec<u64>,
}

impl SentTimes {
    /// Room for a small window; it grows.
    pub fn new() -> SentTimes {
        SentTimes { entries: vec![0; 16] }
    }

    /// The segment leaves for the first time; `una` is the first one outstanding.
    #[inline]
    pub fn sent(&mut self, seq: u32, una: u32, now: Time) {
        if (seq - una) as usize >= self.entries.len() {
            self.grow(una, seq);
        }
        let index = self.index(seq);
        self.entries[index] = now.0;
    }

    /// The segment leaves again.
    pub fn sent_again(&mut self, seq: u32, now: Time) {
        let index = self.index(seq);
        self.entries[index] = now.0 | AGAIN;
    }

    /// When it left last.
    pub fn at(&self, seq: u32) -> Time {
        Time(self.entries[self.index(seq)] & !AGAIN)
    }

    /// Whether it left more than once.
    pub fn again(&self, seq: u32) -> bool {
        self.entries[self.index(seq)] & AGAIN != 0
    }

    #[inline]
    fn index(&self, seq: u32) -> usize {
        seq as usize & (self.entries.len() - 1)
    }

    #[cold]
    fn grow(&mut self, una: u32, nxt: u32) {
        let mut wider = vec![0; 2 * self.entries.len()];
        let mask = wider.len() - 1;
        for seq in una..nxt {
            wider[seq as usize & mask] = self.entries[self.index(seq)];
        }
        self.entries = wider;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_outstanding_keeps_its_times_however_the_window_grows() {
        let mut sent = SentTimes::new();
        let (mut una, mut nxt) = (0, 0);
        for round in 0..200 {
            while nxt - una < 1 + round {
                sent.sent(nxt, una, Time(u64::from(nxt)));
                nxt += 1;
            }
            sent.sent_again(una + round / 2, Time(7));
            for seq in una..nxt {
                let again = seq == una + round / 2;
                assert_eq!(
                    (sent.at(seq), sent.again(seq)),
                    (Time(if again { 7 } else { seq.into() }), again)
                );
            }
            sent.sent(nxt, una, Time(nxt.into()));
            nxt += 1;
            una = nxt - round / 3;
        }
    }
}
