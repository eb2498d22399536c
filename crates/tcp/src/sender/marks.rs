//! What the receiver's feedback tells of marks: how much was delivered, and how much of it with CE.
//!
//! RFC 3168's feedback has one bit. Where the receiver sets it as DCTCP's does, an ACK with ECE
//! tells that all it delivers was marked.
//!
//! Source: RFC 8257 §3.2; Linux net/ipv4/tcp_input.c (tcp_count_delivered, tcp_in_ack_event).

use super::Sender;
use crate::cc::{CongestionControl, Delivered};

/// How much of the delivered segments was marked.
#[derive(Default)]
pub struct Marks {
    /// Since the start.
    pub delivered: Delivered,
}

impl Sender {
    /// An ACK has delivered so many segments. The congestion control hears of it.
    #[cold]
    pub(super) fn count_marks(&mut self, segments: u32, ece: bool) {
        let Some(marks) = &mut self.cold.marks else { return };
        let all = &mut marks.delivered;
        all.packets = all.packets.wrapping_add(segments);
        all.ce = all.ce.wrapping_add(if ece { segments } else { 0 });
        self.control.in_ack_event(marks.delivered, self.una, self.nxt);
    }
}
