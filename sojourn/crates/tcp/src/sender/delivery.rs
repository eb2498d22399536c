//! The sender's part for a congestion control that samples the delivery rate: the samples, and a
//! pacing rate of its own. The order within an ACK is Linux's tcp_ack: recovery, then the sample,
//! then cwnd (tcp_rate_gen, tcp_cong_control).

use super::Sender;
use super::state::CaState;
use crate::AckSegment;
use crate::rate::{Measured, RateSample, Repair, Sent, Totals, micros};
use crate::rtt::rtt_by_echo;
use crate::scoreboard::Marks;
use units::{Span, Time};

/// The number of data segments that leave before pacing begins (tcp_update_skb_after_send).
const UNPACED: u64 = 9;

/// The delivery of an ACK, measured before the ACK is processed.
pub(super) struct Delivery {
    measured: Measured,
    /// The departure of the segment that gives the RTT, if it was sent once.
    timed: Option<Time>,
    prior_in_flight: u32,
    prior_lost: u32,
    prior_marks: Marks,
}

impl Sender {
    /// The totals so far. They are zero if the congestion control takes no samples.
    pub(super) fn totals(&mut self) -> Totals {
        let Some(rate) = &mut self.rate else { return Totals::default() };
        rate.set_lost(self.scoreboard.lost());
        rate.totals()
    }

    /// The connection is established.
    #[cold]
    pub(super) fn established(&mut self, now: Time) {
        let rtt = self.rtt.srtt().span();
        if let (Some(rate), Some(rtt)) = (&mut self.rate, rtt) {
            rate.on_rtt(micros(Time(rtt.0)) as u32);
        }
        let totals = self.totals();
        self.control.on_established(rtt, totals, now);
    }

    /// The application is about to write (tcp_rate_check_app_limited). If the sender was short of
    /// data, the samples from here on are application-limited.
    #[cold]
    pub(super) fn check_app_limited(&mut self) {
        let in_flight = self.pipe();
        let waited = self.nxt >= self.send_limit
            && self.nxt < self.right_edge
            && in_flight < self.cwnd
            && self.scoreboard.to_retransmit() == 0;
        if let (true, Some(rate)) = (waited, &mut self.rate) {
            rate.limit_by_app(in_flight);
        }
    }

    /// A segment leaves: records the counts with which its delivery is compared, and the earliest
    /// departure of the next segment.
    pub(super) fn pace_at_rate(&mut self, seq: u32, len: u32, retransmit: bool, now: Time) {
        let mut bytes_per_second = self.control.rate();
        if bytes_per_second == Some(0) {
            // There was no handshake.
            self.established(now);
            bytes_per_second = self.control.rate();
        }
        let (in_flight, lost) = (self.pipe(), self.scoreboard.lost());
        let Some(rate) = &mut self.rate else { return };
        let nxt = if retransmit { self.nxt } else { seq };
        rate.set_lost(lost);
        rate.on_sent(Sent { seq, outstanding: (self.una, nxt), in_flight }, now);
        if let Some(bytes_per_second) = bytes_per_second {
            self.pace_at(bytes_per_second, len, now);
        }
    }

    /// Sets the earliest departure of the next segment, after one of `len` bytes at the congestion
    /// control's rate.
    pub(super) fn pace_at(&mut self, bytes_per_second: u64, len: u32, now: Time) {
        if let Some(pacer) = &mut self.pacer
            && bytes_per_second > 0
            && (self.stats.sent_segments > UNPACED || self.settings.control.paced_from_the_start)
        {
            let gap = Span(u64::from(len) * 1_000_000_000 / bytes_per_second);
            pacer.sent_at_rate(gap, self.control.burst(), now);
        }
    }

    /// Measures the segments that the ACK is the first to acknowledge or SACK. The RTT of SACKed
    /// segments has precedence over that of acknowledged ones (tcp_clean_rtx_queue).
    pub(super) fn take_delivered(&mut self, ack: &AckSegment) -> Delivery {
        let prior_in_flight = self.pipe();
        let prior_lost = self.scoreboard.lost();
        let mut delivery = Delivery {
            measured: Measured::default(),
            timed: None,
            prior_in_flight,
            prior_lost,
            prior_marks: self.scoreboard.marks(),
        };
        let (sacks, outstanding) = (self.sacks(ack), (self.una, self.nxt));
        let Some(rate) = &mut self.rate else { return delivery };
        let (xmit, measured) = (&self.xmit, &mut delivery.measured);
        if sacks.is_empty()
            && self.scoreboard.sacked_out() == 0
            && self.una >= xmit.retransmitted_end()
        {
            // Segments that were sent once left in order, so the last one left last.
            if ack.ack > self.una {
                let last = ack.ack - 1;
                let sent = xmit.xmit_ts(last);
                rate.on_delivered(last, sent, measured);
                delivery.timed = Some(sent);
            }
            return delivery;
        }
        let (mut last_sackt, mut last_ackt) = (None, None);
        let mut look = |from: u32, to: u32| {
            for seq in from..to {
                let sent = xmit.xmit_ts(seq);
                rate.on_delivered(seq, sent, measured);
                if !xmit.retransmitted(seq) {
                    *(if seq < ack.ack { &mut last_ackt } else { &mut last_sackt }) = Some(sent);
                }
            }
        };
        self.scoreboard.newly_delivered(ack.ack, sacks, outstanding, &mut look);
        let ambiguous =
            (self.una..ack.ack.min(xmit.retransmitted_end())).any(|seq| xmit.retransmitted(seq));
        delivery.timed = last_sackt.or(last_ackt.filter(|_| !ambiguous));
        delivery
    }

    /// The segments marked as lost and the count of losses so far, if the congestion control takes
    /// samples.
    pub(super) fn losses(&self) -> Option<(Marks, u32)> {
        self.rate.as_ref().map(|_| (self.scoreboard.marks(), self.scoreboard.lost()))
    }

    /// Reports to the congestion control each segment that was marked as lost since `before`. At
    /// that time `lost` segments had been marked.
    #[cold]
    pub(super) fn report_losses(&mut self, before: &Marks, mut lost: u32, now: Time) {
        let Some(rate) = &self.rate else { return };
        let mut last = None;
        for seq in self.scoreboard.newly_lost(before, self.una) {
            let begins_range = last.is_none_or(|last| last + 1 != seq);
            self.control.on_lost(&rate.lost(seq, lost, begins_range, now));
            (last, lost) = (Some(seq), lost + 1);
        }
    }

    /// The ACK is processed: the congestion control sets cwnd and its rate. `acked` and `delivered`
    /// count the segments that the ACK has acknowledged and delivered.
    pub(super) fn control_by_rate(
        &mut self,
        delivery: Delivery,
        ack: &AckSegment,
        (acked, delivered): (u32, u32),
        now: Time,
    ) {
        let (in_flight, cwnd_limited) = (self.pipe(), self.cwnd_was_limit());
        let Some(rate) = &mut self.rate else { return };
        let rtt_us = match delivery.timed {
            Some(sent) => Some((micros(now) - micros(sent)) as u32),
            None if acked > 0 => rtt_by_echo(ack, now).map(|rtt| micros(Time(rtt.0)) as u32),
            None => None,
        };
        if let Some(rtt_us) = rtt_us {
            rate.on_rtt(rtt_us);
        }
        let losses = self.scoreboard.lost() - delivery.prior_lost;
        rate.set_lost(self.scoreboard.lost());
        let sample = rate.sample(delivery.measured, delivered, now);
        if losses > 0 {
            self.report_losses(&delivery.prior_marks, delivery.prior_lost, now);
        }
        let Some(rate) = &mut self.rate else { return };
        self.control.on_rate_sample(&RateSample {
            now,
            sample,
            acked: delivered,
            losses,
            prior_in_flight: delivery.prior_in_flight,
            in_flight,
            rtt_us,
            totals: rate.totals(),
            departure: self.pacer.as_ref().map_or(now, |pacer| pacer.departure()),
            repair: match self.ca_state {
                CaState::Open | CaState::Cwr(_) => Repair::None,
                CaState::Recovery(_) => Repair::Recovery,
                CaState::Loss(_) => Repair::Loss,
            },
            cwnd_limited,
        });
        if self.control.limits_itself() {
            rate.limit_by_app(in_flight);
        }
    }
}
