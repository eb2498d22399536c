//! Undo: reverts a reduction of cwnd that the retransmissions prove needless.
//!
//! There are two kinds of evidence. Timestamps (Eifel): an ACK that advances SND.UNA echoes a stamp
//! from before the first retransmission, so the original had arrived. DSACKs: the receiver reports
//! as many duplicates as there were retransmissions. cwnd and ssthresh become their values before
//! the reduction, or stay if they are larger now.
//!
//! Sources: RFC 3522 and RFC 4015 (Eifel), RFC 2883 and RFC 3708 (DSACK); Linux's tcp_may_undo and
//! the functions that it calls. The fields have Linux's names. RFC 9438 §4.9 would also restore
//! CUBIC's old epoch. Linux starts a new epoch at the restored cwnd, and so does this code.

use crate::rtt::echo_is_before;
use units::Time;

/// A reduction that may be undone.
pub struct Undo {
    /// SND.UNA at the reduction; with `None` neither kind of evidence counts.
    undo_marker: Option<u32>,
    /// Retransmissions since then that no DSACK has reported; `None` before the first.
    undo_retrans: Option<u32>,
    /// The departure of the first retransmission; NEVER before it.
    retrans_stamp: Time,
    prior_cwnd: f64,
    /// `None` after an ECN echo: the congestion was real, whatever the losses show.
    prior_ssthresh: Option<f64>,
}

impl Undo {
    /// The state without a reduction to undo.
    pub fn new() -> Undo {
        Undo {
            undo_marker: None,
            undo_retrans: None,
            retrans_stamp: Time::NEVER,
            prior_cwnd: 0.0,
            prior_ssthresh: None,
        }
    }

    /// tcp_init_undo: records cwnd and ssthresh before a reduction. Without an `undo_marker`,
    /// timestamps and DSACKs are no evidence; F-RTO's evidence is kept by the sender.
    pub fn begin(&mut self, undo_marker: Option<u32>, prior_cwnd: f64, prior_ssthresh: f64) {
        *self =
            Undo { undo_marker, prior_cwnd, prior_ssthresh: Some(prior_ssthresh), ..Undo::new() };
    }

    /// Like `begin`, with `retrans_out` earlier retransmissions that are still in flight.
    pub fn begin_with_retrans(
        &mut self,
        undo_marker: Option<u32>,
        prior_cwnd: f64,
        prior_ssthresh: f64,
        retrans_out: u32,
    ) {
        let retrans_stamp = self.retrans_stamp;
        self.begin(undo_marker, prior_cwnd, prior_ssthresh);
        (self.retrans_stamp, self.undo_retrans) = (retrans_stamp, Some(retrans_out));
    }

    /// An ECN echo: the reduction must not be undone.
    pub fn on_ecn_echo(&mut self) {
        self.prior_ssthresh = None;
    }

    /// A retransmission leaves.
    pub fn on_retransmit(&mut self, now: Time) {
        self.retrans_stamp = self.retrans_stamp.min(now);
        self.expect_dsack();
    }

    /// A tail loss probe's retransmission is in flight, outside a recovery: a DSACK for it may
    /// arrive.
    pub fn expect_dsack(&mut self) {
        self.undo_retrans = Some(self.undo_retrans.unwrap_or(0) + 1);
    }

    /// A reduction may be undone (undo_marker).
    pub fn is_possible(&self) -> bool {
        self.undo_marker.is_some()
    }

    /// Handles a DSACK: the receiver already had this segment when a retransmission of it arrived.
    pub fn on_dsack(&mut self, seq: u32) {
        if let Some(undo_retrans) = &mut self.undo_retrans
            && self.undo_marker.is_some_and(|marker| seq >= marker)
        {
            *undo_retrans = undo_retrans.saturating_sub(1);
        }
    }

    /// DSACKs have reported every retransmission.
    pub fn all_retrans_dsacked(&self) -> bool {
        self.undo_marker.is_some() && self.undo_retrans == Some(0)
    }

    /// tcp_packet_delayed: an ACK that advances SND.UNA and echoes `echo` answers the original
    /// (Eifel), or nothing was retransmitted.
    pub fn packet_delayed(&self, echo: Time) -> bool {
        self.undo_marker.is_some()
            && (self.retrans_stamp == Time::NEVER || echo_is_before(echo, self.retrans_stamp))
    }

    /// Ends the undo. Returns the cwnd and ssthresh to restore, if any.
    pub fn take(&mut self) -> Option<(f64, f64)> {
        self.undo_marker = None;
        self.prior_ssthresh.take().map(|ssthresh| (self.prior_cwnd, ssthresh))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    fn reduced() -> Undo {
        let mut undo = Undo::new();
        undo.begin(Some(10), 20.0, 15.0);
        undo
    }

    #[test]
    fn as_many_duplicates_as_retransmissions_prove_a_spurious_recovery() {
        let mut undo = reduced();
        assert!(!undo.all_retrans_dsacked());
        undo.on_retransmit(Time(1));
        undo.on_retransmit(Time(2));
        undo.on_dsack(10);
        undo.on_dsack(9); // from before the reduction
        assert!(!undo.all_retrans_dsacked());
        undo.on_dsack(11);
        assert!(undo.all_retrans_dsacked());
        assert_eq!(undo.take(), Some((20.0, 15.0)));
        assert!(!undo.all_retrans_dsacked());
    }

    #[test]
    fn an_echo_older_than_the_first_retransmission_proves_a_spurious_recovery() {
        let mut undo = reduced();
        assert!(undo.packet_delayed(Time::NEVER));
        undo.on_retransmit(ms(5));
        undo.on_retransmit(ms(9));
        assert_eq!([4, 5, 8].map(|echo| undo.packet_delayed(ms(echo))), [true, false, false]);
        // Stamps are whole ms.
        assert!(undo.packet_delayed(Time(4_999_999)) && !undo.packet_delayed(Time(5_999_999)));
        assert!(!undo.packet_delayed(Time::NEVER), "ACKs without timestamps have no echo");
        undo.take();
        assert!(!undo.packet_delayed(ms(4)));
    }

    #[test]
    fn retransmissions_before_a_further_reduction_count_for_its_undo() {
        let mut undo = reduced();
        undo.on_retransmit(ms(5));
        undo.begin_with_retrans(Some(30), 10.0, 7.0, 1);
        assert!(undo.packet_delayed(ms(4)) && !undo.packet_delayed(ms(5)));
        undo.on_retransmit(ms(9));
        assert!(!undo.packet_delayed(ms(8)));
        undo.on_dsack(30);
        assert!(!undo.all_retrans_dsacked());
        undo.on_dsack(31);
        assert!(undo.all_retrans_dsacked());
    }

    #[test]
    fn after_an_ecn_echo_the_window_is_not_restored() {
        let mut undo = reduced();
        undo.on_ecn_echo();
        assert_eq!(undo.take(), None);
    }
}
