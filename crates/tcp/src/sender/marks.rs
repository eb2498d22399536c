//! What the receiver's feedback tells of marks: how much was delivered, and how much of it with CE.
//!
//! RFC 3168's feedback has one bit. Where the receiver sets it as DCTCP's does, an ACK with ECE
//! tells that all it delivers was marked.
//!
//! Source: RFC 8257 §3.2; Linux net/ipv4/tcp_input.c (tcp_count_delivered, tcp_in_ack_event).

use super::Sender;
use crate::cc::{CongestionControl, Delivered};

/// How much of the delivered segments was marked.
pub struct Marks {
    /// Since the start.
    pub delivered: Delivered,
    /// An ACK's own segments are counted before the congestion control hears of it.
    pub counts_ack: bool,
}

impl Marks {
    /// Adds segments.
    fn count(&mut self, segments: u32, marked: bool) {
        let all = &mut self.delivered;
        all.packets = all.packets.wrapping_add(segments);
        all.ce = all.ce.wrapping_add(if marked { segments } else { 0 });
    }
}

impl Sender {
    /// An ACK has delivered segments: so many by its number, so many by SACKs. The congestion
    /// control hears of the counts. Linux until 6.14 tells it between the two kinds.
    #[cold]
    pub(super) fn count_marks(&mut self, by_number: u32, by_sacks: u32, ece: bool) {
        let Some(marks) = &mut self.cold.marks else { return };
        marks.count(by_sacks, ece);
        if marks.counts_ack {
            marks.count(by_number, ece);
        }
        self.control.in_ack_event(marks.delivered, self.una, self.nxt);
        if !marks.counts_ack {
            marks.count(by_number, ece);
        }
    }
}
