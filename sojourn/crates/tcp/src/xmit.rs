//! The time of the last transmission of each outstanding segment, and whether it was retransmitted
//! (RFC 8985 §5.1: Segment.xmit_ts, Segment.retransmitted).
//!
//! A ring over the sequence numbers from SND.UNA to SND.NXT. Each transmission writes it once. It
//! is read only after SACKs, duplicates or timeouts, and by an ACK of several segments. F-RTO and
//! RTT samples need it to distinguish an original from a retransmission, and RACK needs it to
//! compare times of sending.

use units::Time;

/// The bit of an entry that means "retransmitted". The clock would need 292 years to reach it.
const RETRANSMITTED: u64 = 1 << 63;

/// Times of sending of the outstanding segments.
pub struct XmitTimes {
    /// The ring, whose length is a power of two. Segment n uses entry n modulo the length.
    entries: Vec<u64>,
    /// No segment from here on was retransmitted.
    retransmitted_end: u32,
}

impl XmitTimes {
    /// A ring of 16 segments, which grows as needed.
    pub fn new() -> XmitTimes {
        XmitTimes { entries: vec![0; 16], retransmitted_end: 0 }
    }

    /// The segment is sent for the first time; `una` is the first outstanding one.
    #[inline]
    pub fn transmit(&mut self, seq: u32, una: u32, now: Time) {
        if (seq - una) as usize >= self.entries.len() {
            self.grow(una, seq);
        }
        let index = self.index(seq);
        self.entries[index] = now.0;
    }

    /// The segment is retransmitted.
    pub fn retransmit(&mut self, seq: u32, now: Time) {
        let index = self.index(seq);
        self.entries[index] = now.0 | RETRANSMITTED;
        self.retransmitted_end = self.retransmitted_end.max(seq + 1);
    }

    /// No segment from here on was retransmitted.
    #[inline]
    pub fn retransmitted_end(&self) -> u32 {
        self.retransmitted_end
    }

    /// The time of the segment's last transmission.
    pub fn xmit_ts(&self, seq: u32) -> Time {
        Time(self.entries[self.index(seq)] & !RETRANSMITTED)
    }

    /// Whether the segment was retransmitted.
    pub fn retransmitted(&self, seq: u32) -> bool {
        self.entries[self.index(seq)] & RETRANSMITTED != 0
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
    fn outstanding_segments_keep_their_times_however_the_window_grows() {
        let mut sent = XmitTimes::new();
        let (mut una, mut nxt) = (0, 0);
        for round in 0..200 {
            while nxt - una < 1 + round {
                sent.transmit(nxt, una, Time(u64::from(nxt)));
                nxt += 1;
            }
            sent.retransmit(una + round / 2, Time(7));
            for seq in una..nxt {
                let retransmitted = seq == una + round / 2;
                assert_eq!(
                    (sent.xmit_ts(seq), sent.retransmitted(seq)),
                    (Time(if retransmitted { 7 } else { seq.into() }), retransmitted)
                );
            }
            sent.transmit(nxt, una, Time(nxt.into()));
            nxt += 1;
            una = nxt - round / 3;
        }
    }
}
