//! Delivery-rate samples: how many segments were delivered in which time.
//!
//! Each segment that leaves is stamped with the count of segments delivered so far and with the
//! times of the last delivery and of the first segment of the sample. Of the segments that an ACK
//! delivers, the one that left last is measured:
//!
//! ```text
//! delivered = C.delivered now - C.delivered when it left
//! interval  = max(time to send them, time to acknowledge them)
//! ```
//!
//! The longer of the two times counts, so that ACKs which come in a burst don't show a rate that no
//! link had. A sample is *application-limited* if the sender had nothing to send at some time in it.
//! Only a congestion control that asks for samples pays for them.
//!
//! Source: draft-cheng-iccrg-delivery-rate-estimation; Linux's tcp_rate.c and struct rate_sample,
//! whose units (segments, whole µs) these are. Deviations: no reneging. A segment that is shorter
//! than the MSS and alone in flight is not told apart (FLAG_ACK_MAYBE_DELAYED): it ends a transfer.

use units::Time;

/// What has been delivered and lost since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Segments delivered, the SYN among them.
    pub delivered: u32,
    /// When the last delivery was, µs (delivered_mstamp).
    pub delivered_us: u64,
    /// How often a segment or a retransmission was found lost.
    pub lost: u32,
}

/// The sender's state, as far as it matters to a congestion control (tcp_ca_state).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Repair {
    /// Nothing is being repaired.
    None,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// The segment that a sample measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// `Totals::delivered` when the segment left.
    pub prior_delivered: u32,
    /// Segments delivered since.
    pub delivered: u32,
    /// In which time, µs; `None`: in less than the least RTT, so it can't be right.
    pub interval_us: Option<u32>,
    /// The sender was short of data when the segment left.
    pub app_limited: bool,
    /// Segments in flight when the segment had left, itself included.
    pub tx_in_flight: u32,
    /// Segments lost since the segment left.
    pub lost: u32,
}

/// What an ACK says of the rate of delivery, after all else was done for it (struct rate_sample).
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// Now.
    pub now: Time,
    /// The sample; `None`: the ACK delivers nothing.
    pub sample: Option<Sample>,
    /// Segments that the ACK delivers (acked_sacked).
    pub acked: u32,
    /// Segments that the ACK shows to be lost.
    pub losses: u32,
    /// Segments in flight before the ACK.
    pub prior_in_flight: u32,
    /// Segments in flight after it.
    pub in_flight: u32,
    /// RTT of the segment SACKed or acknowledged last, µs.
    pub rtt_us: Option<u32>,
    /// All so far.
    pub totals: Totals,
    /// When the next segment may leave, as far as pacing goes (tcp_wstamp_ns).
    pub departure: Time,
    /// What is being repaired.
    pub repair: Repair,
    /// cwnd, not pacing, the application or the receive window, has limited the sender.
    pub cwnd_limited: bool,
}

/// A segment that is found lost, or a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostSegment {
    /// Now.
    pub now: Time,
    /// Segments in flight when it had left, itself included.
    pub tx_in_flight: u32,
    /// Segments lost since, itself included.
    pub lost: u32,
    /// The sender was short of data when it left.
    pub app_limited: bool,
    /// The segment before it was not lost with it.
    pub begins_range: bool,
    /// Segments delivered so far.
    pub delivered: u32,
}

impl RateSample {
    /// The interval of a sample that can be right, µs.
    pub fn interval(&self) -> Option<u32> {
        self.sample?.interval_us
    }
}

/// What is kept of a segment that has left.
#[derive(Clone, Copy, Debug, Default)]
struct TxRecord {
    delivered_us: u64,
    first_tx_us: u64,
    delivered: u32,
    lost: u32,
    tx_in_flight: u32,
    app_limited: bool,
}

/// Of the segments that an ACK delivers, the one that left last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured(Option<(u32, TxRecord, u64)>);

/// Takes the samples.
pub struct RateSampler {
    totals: Totals,
    /// When the segment left that was measured last: the next sample begins there (first_tx_mstamp).
    first_tx_us: u64,
    /// The sender was short of data until this many were delivered; 0: it is not.
    app_limited: u32,
    /// The least RTT so far, µs.
    min_rtt_us: u32,
    /// A power of two in number; segment n has record n modulo their number.
    records: Vec<TxRecord>,
}

/// A segment that leaves, for the record of it.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The segment.
    pub seq: u32,
    /// The first segment outstanding, and one past the last, without this one.
    pub outstanding: (u32, u32),
    /// Segments in flight, this one included.
    pub in_flight: u32,
}

/// A time in whole µs.
pub fn micros(time: Time) -> u64 {
    time.0 / 1000
}

impl RateSampler {
    /// Before the first segment. The SYN counts as delivered, and what leaves first as sent by a
    /// sender short of data, as it begins with a write on an empty socket.
    pub fn new() -> RateSampler {
        RateSampler {
            totals: Totals { delivered: 1, delivered_us: 0, lost: 0 },
            first_tx_us: 0,
            app_limited: 1,
            min_rtt_us: u32::MAX,
            records: vec![TxRecord::default(); 16],
        }
    }

    /// Delivered and lost so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The sender was short of data, and what left then is not all delivered.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// The sender is short of data with so many segments in flight (tcp_rate_check_app_limited).
    pub fn limit_by_app(&mut self, in_flight: u32) {
        self.app_limited = (self.totals.delivered + in_flight).max(1);
    }

    /// So many were found lost so far.
    pub fn set_lost(&mut self, lost: u32) {
        self.totals.lost = lost;
    }

    /// An RTT was measured.
    pub fn on_rtt(&mut self, rtt_us: u32) {
        self.min_rtt_us = self.min_rtt_us.min(rtt_us.max(1));
    }

    /// A segment leaves (tcp_rate_skb_sent).
    pub fn on_sent(&mut self, sent: Sent, now: Time) {
        let (una, nxt) = sent.outstanding;
        if una == nxt {
            // Nothing is out, so neither time of a sample has begun.
            (self.first_tx_us, self.totals.delivered_us) = (micros(now), micros(now));
        }
        if (sent.seq - una) as usize >= self.records.len() {
            self.grow(una, nxt);
        }
        let index = self.index(sent.seq);
        self.records[index] = TxRecord {
            delivered_us: self.totals.delivered_us,
            first_tx_us: self.first_tx_us,
            delivered: self.totals.delivered,
            lost: self.totals.lost,
            tx_in_flight: sent.in_flight,
            app_limited: self.is_app_limited(),
        };
    }

    /// A segment that left last at `sent` is delivered (tcp_rate_skb_delivered).
    pub fn on_delivered(&mut self, seq: u32, sent: Time, measured: &mut Measured) {
        let sent_us = micros(sent);
        if measured.0.is_none_or(|(last, ..)| (sent_us, seq) > (self.first_tx_us, last)) {
            let record = self.records[self.index(seq)];
            self.first_tx_us = sent_us;
            measured.0 = Some((seq, record, sent_us - record.first_tx_us));
        }
    }

    /// A segment is found lost, after so many others.
    pub fn lost(&self, seq: u32, before: u32, begins_range: bool, now: Time) -> LostSegment {
        let record = self.records[self.index(seq)];
        LostSegment {
            now,
            tx_in_flight: record.tx_in_flight,
            lost: before + 1 - record.lost,
            app_limited: record.app_limited,
            begins_range,
            delivered: self.totals.delivered,
        }
    }

    /// The ACK is processed, which delivered so many (tcp_rate_gen).
    pub fn sample(&mut self, measured: Measured, acked: u32, now: Time) -> Option<Sample> {
        self.totals.delivered += acked;
        if self.totals.delivered > self.app_limited {
            self.app_limited = 0;
        }
        if acked > 0 {
            self.totals.delivered_us = micros(now);
        }
        let (_, record, send_us) = measured.0?;
        let interval = send_us.max(micros(now) - record.delivered_us) as u32;
        Some(Sample {
            prior_delivered: record.delivered,
            delivered: self.totals.delivered - record.delivered,
            interval_us: (interval > 0 && interval >= self.min_rtt_us).then_some(interval),
            app_limited: record.app_limited,
            tx_in_flight: record.tx_in_flight,
            lost: self.totals.lost - record.lost,
        })
    }

    fn index(&self, seq: u32) -> usize {
        seq as usize & (self.records.len() - 1)
    }

    #[cold]
    fn grow(&mut self, una: u32, nxt: u32) {
        let mut wider = vec![TxRecord::default(); 2 * self.records.len()];
        let mask = wider.len() - 1;
        for seq in una..nxt {
            wider[seq as usize & mask] = self.records[self.index(seq)];
        }
        self.records = wider;
    }
}
