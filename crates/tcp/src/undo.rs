//! What was sent again may have been sent in vain: then the window was reduced for nothing, and is
//! given back.
//!
//! Two kinds of evidence. By timestamps (Eifel): the ACK that advances echoes a stamp from before
//! the first copy left, so the original had arrived. By duplicate SACKs: the receiver reports as
//! many duplicates as copies were sent. What is given back is cwnd and ssthresh as they were
//! before, or what they are now if that is more.
//!
//! Sources: RFC 3522 and RFC 4015 (Eifel), RFC 2883 and RFC 3708 (DSACK); Linux's tcp_may_undo and
//! what it calls. Deviations from Linux: none in what is decided, but stamps are ns here and ms
//! there. RFC 9438 §4.9 would have CUBIC return to its old epoch as well; Linux and so we begin one
//! at the window given back.

use units::Time;

/// A reduction that may yet be undone.
pub struct Undo {
    /// `una` when the window was reduced; `None`: no evidence counts.
    marker: Option<u32>,
    /// Copies sent since that have not been reported as duplicates; `None` before the first.
    unreported: Option<u32>,
    /// When the first copy left; NEVER before.
    first: Time,
    cwnd: f64,
    /// `None` after an ECN echo: congestion was real, whatever was lost.
    ssthresh: Option<f64>,
}

impl Undo {
    /// Nothing reduced yet.
    pub fn new() -> Undo {
        Undo { marker: None, unreported: None, first: Time::NEVER, cwnd: 0.0, ssthresh: None }
    }

    /// The window is reduced, from `cwnd` and `ssthresh`. Without a `marker` neither stamps nor
    /// duplicates are evidence: F-RTO's is the sender's own.
    pub fn begin(&mut self, marker: Option<u32>, cwnd: f64, ssthresh: f64) {
        *self = Undo { marker, cwnd, ssthresh: Some(ssthresh), ..Undo::new() };
    }

    /// As `begin`, when so many copies that left since the last reduction are still on their way.
    pub fn begin_anew(&mut self, marker: Option<u32>, cwnd: f64, ssthresh: f64, copies: u32) {
        let first = self.first;
        self.begin(marker, cwnd, ssthresh);
        (self.first, self.unreported) = (first, Some(copies));
    }

    /// An ECN echo: the reduction was due.
    pub fn confirm(&mut self) {
        self.ssthresh = None;
    }

    /// A copy leaves.
    pub fn sent_again(&mut self, now: Time) {
        self.first = self.first.min(now);
        self.unreported = Some(self.unreported.unwrap_or(0) + 1);
    }

    /// The receiver had this segment already when a copy of it came.
    pub fn duplicate(&mut self, seq: u32) {
        if let Some(unreported) = &mut self.unreported
            && self.marker.is_some_and(|marker| seq >= marker)
        {
            *unreported = unreported.saturating_sub(1);
        }
    }

    /// All copies sent were reported as duplicates.
    pub fn all_reported(&self) -> bool {
        self.marker.is_some() && self.unreported == Some(0)
    }

    /// An ACK that advances and echoes `echo` answers the original (Eifel), or no copy has left at
    /// all.
    pub fn delayed(&self, echo: Time) -> bool {
        self.marker.is_some() && (self.first == Time::NEVER || echo < self.first)
    }

    /// Ends it; gives the cwnd and ssthresh to return to, if any.
    pub fn take(&mut self) -> Option<(f64, f64)> {
        self.marker = None;
        self.ssthresh.take().map(|ssthresh| (self.cwnd, ssthresh))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduced() -> Undo {
        let mut undo = Undo::new();
        undo.begin(Some(10), 20.0, 15.0);
        undo
    }

    #[test]
    fn as_many_duplicates_as_copies_prove_it() {
        let mut undo = reduced();
        assert!(!undo.all_reported());
        undo.sent_again(Time(1));
        undo.sent_again(Time(2));
        undo.duplicate(10);
        undo.duplicate(9); // from before the reduction
        assert!(!undo.all_reported());
        undo.duplicate(11);
        assert!(undo.all_reported());
        assert_eq!(undo.take(), Some((20.0, 15.0)));
        assert!(!undo.all_reported());
    }

    #[test]
    fn an_echo_from_before_the_first_copy_proves_it() {
        let mut undo = reduced();
        assert!(undo.delayed(Time::NEVER));
        undo.sent_again(Time(5));
        undo.sent_again(Time(9));
        assert_eq!([4, 5, 8].map(|echo| undo.delayed(Time(echo))), [true, false, false]);
        assert!(!undo.delayed(Time::NEVER), "without timestamps there is no echo");
        undo.take();
        assert!(!undo.delayed(Time(4)));
    }

    #[test]
    fn copies_from_before_a_further_reduction_answer_for_it() {
        let mut undo = reduced();
        undo.sent_again(Time(5));
        undo.begin_anew(Some(30), 10.0, 7.0, 1);
        assert!(undo.delayed(Time(4)) && !undo.delayed(Time(5)));
        undo.sent_again(Time(9));
        assert!(!undo.delayed(Time(8)));
        undo.duplicate(30);
        assert!(!undo.all_reported());
        undo.duplicate(31);
        assert!(undo.all_reported());
    }

    #[test]
    fn an_ecn_echo_keeps_the_window_down() {
        let mut undo = reduced();
        undo.confirm();
        assert_eq!(undo.take(), None);
    }
}
