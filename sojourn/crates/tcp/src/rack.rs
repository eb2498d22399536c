//! RACK: a segment is lost if a segment sent later has arrived and enough time has passed.
//!
//! RACK compares times of sending, not sequence numbers, so it detects a lost retransmission in the
//! same way as a lost original. Enough time is RACK.rtt, the RTT of the segment delivered last,
//! plus the reordering window:
//!
//! ```text
//! reo_wnd = min(reo_wnd_mult · min_rtt/4, SRTT)
//! reo_wnd = 0    while no reordering was seen, and in a recovery or with DupThresh SACKed
//! ```
//!
//! A round trip with a DSACK adds one to reo_wnd_mult; sixteen recoveries without an undo reset it
//! to one. A DSACK takes effect with the next ACK that delivers anything. It has no effect if all
//! segments which that ACK delivers left before reo_wnd_mult last grew.
//!
//! Source: RFC 8985 §6.2, as in Linux (tcp_recovery.c), which also computes in whole µs.

use units::{Span, Time};

/// A microsecond, ns.
const MICRO: u64 = 1_000;

/// DupThresh: a segment is lost after this many duplicate ACKs or SACKed segments above it (RFC
/// 5681, RFC 6675).
pub const DUP_THRESH: u32 = 3;

/// The initial RACK.reo_wnd_persist: a widened window stays for this many recoveries (RFC 8985 §6.2
/// step 4).
const REO_WND_PERSIST: u8 = 16;

/// The upper bound of the degree of reordering (tcp_max_reordering).
const MAX_REORDERING: u32 = 300;

/// RACK's variables (RFC 8985 §5.2).
pub struct Rack {
    /// RACK.rtt: the RTT of the segment delivered last.
    rtt: Span,
    /// RACK.xmit_ts and RACK.segment: the delivered segment that was sent last.
    xmit: (Time, u32),
    /// A segment was delivered since the last search for losses (rack.advanced).
    pub advanced: bool,
    /// RACK.reordering_seen: an original was delivered after a segment above it was SACKed.
    reordering_seen: bool,
    /// RACK.reo_wnd_mult: quarters of min_rtt in the reordering window.
    reo_wnd_mult: u32,
    /// RACK.reo_wnd_persist: the number of recoveries until `reo_wnd_mult` is one again.
    reo_wnd_persist: u8,
    /// A DSACK waits for an ACK that delivers anything (rack.dsack_seen).
    dsack_seen: bool,
    /// When `reo_wnd_mult` last grew (RACK.dsack_round; rack.last_delivered).
    grown_at: Time,
    /// The degree of reordering: the number of segments that overtook one (tp->reordering).
    reordering: u32,
}

/// RACK's decision on a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Lost,
    /// Lost unless it is delivered within this time.
    Wait(Span),
    /// No segment sent after this one was delivered.
    Unknown,
}

impl Rack {
    /// The state before any delivery.
    pub fn new() -> Rack {
        Rack {
            rtt: Span::ZERO,
            xmit: (Time::ZERO, 0),
            advanced: false,
            reordering_seen: false,
            reo_wnd_mult: 1,
            reo_wnd_persist: 0,
            dsack_seen: false,
            grown_at: Time::ZERO,
            reordering: DUP_THRESH,
        }
    }

    /// RACK_update: a segment, last sent at `sent`, is newly acknowledged or SACKed.
    pub fn update(
        &mut self,
        seq: u32,
        sent: Time,
        retransmitted: bool,
        min_rtt: Option<Span>,
        now: Time,
    ) {
        let rtt = since(sent, now);
        if retransmitted && min_rtt.is_some_and(|least| rtt < least) {
            // This is too soon for the retransmission: the original arrived (RFC 8985 §6.2 step 2).
            return;
        }
        self.advanced = true;
        self.rtt = rtt;
        self.xmit = self.xmit.max((whole_micros(sent), seq));
    }

    /// tcp_check_sack_reordering: `low`, which was sent once, is delivered after segments below
    /// `highest_sacked`.
    pub fn check_reordering(&mut self, low: u32, highest_sacked: u32) {
        if low < highest_sacked {
            self.reordering_seen = true;
            self.reordering = self.reordering.max((highest_sacked - low).min(MAX_REORDERING));
        }
    }

    /// The path reorders by more than DupThresh, so an ACK that only SACKs grows cwnd too
    /// (tcp_may_raise_cwnd).
    pub fn reorders_much(&self) -> bool {
        self.reordering > DUP_THRESH
    }

    /// A timeout occurred while no segment was marked as lost and `sacked_out` were SACKed: the
    /// degree of reordering was overestimated (tcp_enter_loss).
    pub fn on_timeout_in_disorder(&mut self, sacked_out: u32) {
        if sacked_out >= DUP_THRESH {
            self.reordering = DUP_THRESH;
        }
    }

    /// Handles a DSACK that is not for a tail loss probe (tcp_dsack_seen).
    pub fn on_dsack(&mut self) {
        self.dsack_seen |= self.reordering_seen;
    }

    /// A DSACK waits for the next ACK that delivers anything.
    pub fn has_dsack(&self) -> bool {
        self.dsack_seen
    }

    /// RACK_update_reo_wnd: an ACK delivers segments. The last of them left at `sent`.
    pub fn update_reo_wnd(&mut self, sent: Time, now: Time) {
        if sent < self.grown_at {
            self.dsack_seen = false;
        }
        if std::mem::take(&mut self.dsack_seen) {
            self.reo_wnd_mult = (self.reo_wnd_mult + 1).min(255);
            self.grown_at = now;
            self.reo_wnd_persist = REO_WND_PERSIST;
        } else if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// A recovery or a timeout has ended, without an undo.
    pub fn on_recovery_exit(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
    }

    /// DSACKs have undone a reduction (tcp_try_undo_dsack).
    pub fn on_dsack_undo(&mut self) {
        self.reo_wnd_persist = (self.reo_wnd_persist + 1).min(REO_WND_PERSIST);
    }

    /// The reordering window (RACK_update_reo_wnd). `no_window_unless_reordering`: in a recovery,
    /// or with DupThresh segments SACKed.
    pub fn reo_wnd(
        &self,
        no_window_unless_reordering: bool,
        min_rtt: Option<Span>,
        srtt: Option<Span>,
    ) -> Span {
        if no_window_unless_reordering && !self.reordering_seen {
            return Span::ZERO;
        }
        // Before the first RTT sample of a cumulative ACK, only SACKs have given samples.
        let (min_rtt, srtt) = (min_rtt.unwrap_or(self.rtt), srtt.unwrap_or(self.rtt));
        let quarter = Span(min_rtt.0 / MICRO / 4 * MICRO);
        (quarter * u64::from(self.reo_wnd_mult)).min(Span(srtt.0 / MICRO * MICRO))
    }

    /// RACK_detect_loss for an outstanding segment last sent at `sent`. Among segments sent at one
    /// time, the smaller sequence number left first (RACK_sent_after), because retransmissions
    /// leave before new data.
    pub fn detect_loss(&self, seq: u32, sent: Time, window: Span, now: Time) -> Decision {
        if (whole_micros(sent), seq) >= self.xmit {
            return Decision::Unknown;
        }
        let (due, now) = (whole_micros(sent) + self.rtt + window, whole_micros(now));
        if due <= now { Decision::Lost } else { Decision::Wait(due.since(now)) }
    }
}

/// A time rounded down to whole µs.
fn whole_micros(time: Time) -> Time {
    Time(time.0 / MICRO * MICRO)
}

/// The time between two readings of a clock of whole µs (tcp_stamp_us_delta).
fn since(from: Time, to: Time) -> Span {
    whole_micros(to).since(whole_micros(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> Time {
        Time(ms * MS)
    }

    /// Segment 5, sent at 10 ms, arrives at 110 ms.
    fn rack() -> Rack {
        let mut rack = Rack::new();
        rack.update(5, at(10), false, None, at(110));
        rack
    }

    #[test]
    fn an_earlier_segment_is_lost_after_an_rtt_and_the_reordering_window() {
        let rack = rack();
        let detect = |seq, sent, window, now| {
            rack.detect_loss(seq, at(sent), Span::from_millis(window), at(now))
        };
        assert_eq!(detect(4, 10, 0, 110), Decision::Lost);
        assert_eq!(detect(4, 10, 25, 110), Decision::Wait(Span::from_millis(25)));
        assert_eq!(detect(4, 10, 25, 135), Decision::Lost);
        assert_eq!(detect(6, 10, 0, 200), Decision::Unknown);
        assert_eq!(detect(1, 11, 0, 200), Decision::Unknown);
    }

    #[test]
    fn segments_sent_in_one_microsecond_are_ordered_by_sequence_number() {
        let mut rack = Rack::new();
        rack.update(5, Time(10_000_900), false, None, Time(110_000_100));
        let detect = |seq| rack.detect_loss(seq, Time(10_000_100), Span::ZERO, Time(110_000_100));
        assert_eq!([detect(4), detect(6)], [Decision::Lost, Decision::Unknown]);
    }

    #[test]
    fn an_ack_too_early_for_the_retransmission_does_not_count_for_it() {
        let mut rack = rack();
        rack.advanced = false;
        rack.update(1, at(105), true, Some(Span::from_millis(100)), at(120));
        assert!(!rack.advanced);
        assert_eq!(rack.detect_loss(6, at(20), Span::ZERO, at(130)), Decision::Unknown);
    }

    #[test]
    fn duplicates_widen_the_window_once_a_round_and_recoveries_narrow_it() {
        let mut rack = rack();
        let (least, smooth) = (Some(Span::from_millis(40)), Some(Span::from_millis(45)));
        assert_eq!(rack.reo_wnd(true, least, smooth), Span::ZERO);
        assert_eq!(rack.reo_wnd(false, least, smooth), Span::from_millis(10));
        rack.on_dsack();
        rack.update_reo_wnd(at(100), at(110));
        assert_eq!(rack.reo_wnd(false, least, smooth), Span::from_millis(10), "no reordering seen");
        rack.check_reordering(4, 6);
        // Segments that left before the window last grew do not widen it again.
        for (sent, now, window) in [(100, 110, 20), (105, 115, 20), (112, 125, 30), (125, 140, 40)]
        {
            rack.on_dsack();
            assert!(rack.has_dsack());
            rack.update_reo_wnd(at(sent), at(now));
            assert_eq!(rack.reo_wnd(true, least, smooth), Span::from_millis(window), "{sent}");
            assert!(!rack.has_dsack());
        }
        rack.on_dsack();
        rack.update_reo_wnd(at(140), at(150));
        for _ in 0..16 {
            rack.update_reo_wnd(at(150), at(160));
            assert_eq!(rack.reo_wnd(true, least, smooth), Span::from_millis(45));
            rack.on_recovery_exit();
        }
        rack.update_reo_wnd(at(160), at(170));
        assert_eq!(rack.reo_wnd(true, least, smooth), Span::from_millis(10));
    }

    #[test]
    fn the_degree_of_reordering_is_how_far_a_segment_was_overtaken() {
        let mut rack = rack();
        for (low, highest_sacked, much) in [(5, 5, false), (5, 8, false), (5, 9, true)] {
            rack.check_reordering(low, highest_sacked);
            assert_eq!(rack.reorders_much(), much, "{low} {highest_sacked}");
        }
        rack.on_timeout_in_disorder(2);
        assert!(rack.reorders_much());
        rack.on_timeout_in_disorder(3);
        assert!(!rack.reorders_much());
    }
}
