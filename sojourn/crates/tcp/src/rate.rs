//! Delivery-rate samples: the number of segments delivered, and the time they took.
//!
//! Each segment that leaves records the count of segments delivered so far, the time of the last
//! delivery and the departure of the sample's first segment. An ACK's sample measures the segment
//! that left last among the segments which the ACK delivers:
//!
//! ```text
//! delivered = C.delivered now - C.delivered when it left
//! interval  = max(time to send them, time to acknowledge them)
//! ```
//!
//! The sample uses the longer of the two times, so that a burst of ACKs does not show a rate that
//! no link had. A sample is *application-limited* if the sender had nothing to send at some time in
//! it. The sender takes samples only for a congestion control that needs them.
//!
//! Source: draft-cheng-iccrg-delivery-rate-estimation; Linux's tcp_rate.c and struct rate_sample,
//! whose units (segments, whole µs) this file uses. Deviations: no reneging. A segment that is
//! shorter than the MSS and alone in flight is treated as any other (no FLAG_ACK_MAYBE_DELAYED): it
//! ends a transfer.

use units::Time;

/// Counts of delivered and lost segments since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Segments delivered, the SYN included.
    pub delivered: u32,
    /// The time of the last delivery, µs (delivered_mstamp).
    pub delivered_us: u64,
    /// How many originals and retransmissions were marked as lost.
    pub lost: u32,
}

/// The part of the sender's state that a congestion control uses (tcp_ca_state).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Repair {
    /// No repair is under way.
    None,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// The measurement of one delivered segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// `Totals::delivered` when the segment left.
    pub prior_delivered: u32,
    /// Segments delivered since then.
    pub delivered: u32,
    /// The time they took, µs; `None` if it is less than the minimum RTT and so cannot be right.
    pub interval_us: Option<u32>,
    /// The sender was short of data when the segment left.
    pub app_limited: bool,
    /// Segments in flight when the segment had left, itself included.
    pub tx_in_flight: u32,
    /// Segments lost since the segment left.
    pub lost: u32,
}

/// The delivery-rate sample of an ACK, taken after all other processing (struct rate_sample).
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// Now.
    pub now: Time,
    /// The sample; `None` if the ACK delivers nothing.
    pub sample: Option<Sample>,
    /// Segments that the ACK delivers (acked_sacked).
    pub acked: u32,
    /// Segments that the ACK shows to be lost.
    pub losses: u32,
    /// Segments in flight before the ACK.
    pub prior_in_flight: u32,
    /// Segments in flight after the ACK.
    pub in_flight: u32,
    /// RTT of the last segment SACKed or acknowledged, µs.
    pub rtt_us: Option<u32>,
    /// The totals so far.
    pub totals: Totals,
    /// The earliest departure of the next segment by pacing (tcp_wstamp_ns).
    pub departure: Time,
    /// The repair under way.
    pub repair: Repair,
    /// cwnd has limited the sender, not pacing, the application or the receive window.
    pub cwnd_limited: bool,
}

/// An original or retransmission that was marked as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostSegment {
    /// Now.
    pub now: Time,
    /// Segments in flight after it had left, itself included.
    pub tx_in_flight: u32,
    /// Segments lost since, itself included.
    pub lost: u32,
    /// The sender was short of data when it left.
    pub app_limited: bool,
    /// The preceding segment was not marked as lost with it.
    pub begins_range: bool,
    /// Segments delivered so far.
    pub delivered: u32,
}

impl RateSample {
    /// The interval of a valid sample, µs.
    pub fn interval(&self) -> Option<u32> {
        self.sample?.interval_us
    }
}

/// The record of a segment at its departure.
#[derive(Clone, Copy, Debug, Default)]
struct TxRecord {
    delivered_us: u64,
    first_tx_us: u64,
    delivered: u32,
    lost: u32,
    tx_in_flight: u32,
    app_limited: bool,
}

/// The segment that left last among those that an ACK delivers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured(Option<(u32, TxRecord, u64)>);

/// Takes the delivery-rate samples of one sender.
pub struct RateSampler {
    totals: Totals,
    /// The departure of the last measured segment, where the next sample begins (first_tx_mstamp).
    first_tx_us: u64,
    /// The sender was short of data until this many segments were delivered; 0: it is not short.
    app_limited: u32,
    /// The least RTT so far, µs.
    min_rtt_us: u32,
    /// The records in a ring whose length is a power of two. Segment n uses record n modulo the
    /// length.
    records: Vec<TxRecord>,
}

/// A segment at its departure.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The segment.
    pub seq: u32,
    /// The first outstanding segment, and one past the last, without this segment.
    pub outstanding: (u32, u32),
    /// Segments in flight, this one included.
    pub in_flight: u32,
}

/// A time in whole µs.
pub fn micros(time: Time) -> u64 {
    time.0 / 1000
}

impl RateSampler {
    /// The state before the first segment. The SYN counts as delivered. The first segment counts as
    /// sent by a sender short of data, because it begins with a write on an empty socket.
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

    /// The sender was short of data, and not all segments sent until then are delivered.
    pub fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// The sender is short of data with `in_flight` segments in flight
    /// (tcp_rate_check_app_limited).
    pub fn limit_by_app(&mut self, in_flight: u32) {
        self.app_limited = (self.totals.delivered + in_flight).max(1);
    }

    /// Sets the number of segments marked as lost so far.
    pub fn set_lost(&mut self, lost: u32) {
        self.totals.lost = lost;
    }

    /// Records an RTT sample.
    pub fn on_rtt(&mut self, rtt_us: u32) {
        self.min_rtt_us = self.min_rtt_us.min(rtt_us.max(1));
    }

    /// Records a segment that leaves (tcp_rate_skb_sent).
    pub fn on_sent(&mut self, sent: Sent, now: Time) {
        let (una, nxt) = sent.outstanding;
        if una == nxt {
            // Nothing is outstanding, so both times of the sample begin now.
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

    /// A segment whose last transmission was at `sent` is delivered (tcp_rate_skb_delivered).
    pub fn on_delivered(&mut self, seq: u32, sent: Time, measured: &mut Measured) {
        let sent_us = micros(sent);
        if measured.0.is_none_or(|(last, ..)| (sent_us, seq) > (self.first_tx_us, last)) {
            let record = self.records[self.index(seq)];
            self.first_tx_us = sent_us;
            measured.0 = Some((seq, record, sent_us - record.first_tx_us));
        }
    }

    /// The report of a lost segment; `before` others were lost before it.
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

    /// The sample of an ACK that was processed and delivered `acked` segments (tcp_rate_gen).
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
