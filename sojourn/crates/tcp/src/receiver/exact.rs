//! The receiver's part of DCTCP: ECE reports the mark of each segment.
//!
//! ECE is set while arriving segments are marked. When that changes, two ACKs leave at once: one
//! for the earlier segments with the old ECE, if their ACK was delayed, and one for this segment
//! with the new ECE. So delayed ACKs report exactly how many segments were marked. A CWR does not
//! end ECE. It is acknowledged at once, as without DCTCP.
//!
//! With AccECN the same two ACKs leave, without ECE. The counters already include the segment, so
//! the first ACK reports its mark although it does not acknowledge the segment.
//!
//! Source: RFC 8257 §3.2; Linux net/ipv4/tcp_dctcp.h. Deviations: none known.

use super::{Echo, Pending, Receiver};
use crate::{AckSegment, Segment};
use units::{Ecn, Time};

/// State besides the last segment's mark.
#[derive(Clone, Debug, Default)]
pub struct Exact {
    /// The last segment was marked (ce_state).
    ce: bool,
    /// RCV.NXT after the last segment (prior_rcv_nxt).
    prior_rcv_nxt: u32,
    /// The ACK that follows another at once, and the pending ACK after it.
    second: Option<(AckSegment, Pending)>,
}

impl Receiver {
    /// Handles a segment with data. It is acknowledged `at_once` if the feedback requires that
    /// (dctcp_ece_ack_update).
    #[cold]
    pub(super) fn on_exact(
        &mut self,
        segment: &Segment,
        at_once: bool,
        now: Time,
    ) -> Option<AckSegment> {
        let Some(exact) = &self.exact else { return self.on_data(segment, at_once, now) };
        if segment.seq < self.rcv_nxt || segment.ecn == Ecn::NotEct {
            // A duplicate is acknowledged before its ECN field is checked.
            return self.on_data(segment, at_once, now);
        }
        let ce = segment.ecn == Ecn::Ce;
        let changed = exact.ce != ce;
        let delayed = matches!(self.pending, Pending::Delayed { .. });
        let first = (changed && delayed).then(|| self.ack_of_prior(segment, now));
        if let Echo::Exact { .. } = self.ecn {
            self.ecn = Echo::Exact { ce };
        }
        if let Some(exact) = &mut self.exact {
            exact.ce = ce;
            exact.prior_rcv_nxt = self.rcv_nxt + u32::from(segment.seq == self.rcv_nxt);
        }
        let ack = self.on_data(segment, at_once || changed, now);
        let (Some(first), Some(ack)) = (first, ack) else { return first.or(ack) };
        if let Some(exact) = &mut self.exact {
            exact.second = Some((ack, self.pending));
            self.pending = Pending::Second { due: now };
        }
        Some(first)
    }

    /// The delayed ACK of the segments before `segment`, with the old ECE. The kernel has already
    /// queued `segment`, so the window is the one after it.
    fn ack_of_prior(&mut self, segment: &Segment, now: Time) -> AckSegment {
        let in_order = segment.seq == self.rcv_nxt;
        let rmem = self.ofo.rmem() + if in_order { self.ofo.truesize.in_order } else { 0 };
        let delivered = self.delivered + if in_order { u64::from(segment.len) } else { 0 };
        if self.window.is_half_full(rmem) {
            self.policy.on_half_full();
        }
        let window = self.window.select_window(delivered, rmem);
        let prior = self.exact.as_ref().map_or(self.rcv_nxt, |exact| exact.prior_rcv_nxt);
        AckSegment { ack: prior, ..self.ack_that_offers(window, now) }
    }

    /// The ACK that follows another at once.
    #[cold]
    pub(super) fn second_ack(&mut self) -> Option<AckSegment> {
        let (ack, pending) = self.exact.as_mut()?.second.take()?;
        self.pending = pending;
        Some(ack)
    }
}
