//! The marks that the receiver's feedback reports: how many segments were delivered, and how many
//! of these with CE.
//!
//! RFC 3168's feedback has one bit. If the receiver sets it as DCTCP's does, an ACK with ECE
//! reports that all segments it delivers were marked. AccECN's field ACE counts the CE segments
//! that have arrived, modulo 8. If an ACK delivers more than seven segments, the option's bytes or
//! the average number of segments for an ACK decide how often ACE has wrapped.
//!
//! Source: RFC 8257 §3.2, RFC 9768 §3.2 and appendix A; Linux net/ipv4/tcp_input.c
//! (tcp_in_ack_event, __tcp_accecn_process).

use super::state::EcnState;
use super::{Handshake, Sender};
use crate::cc::{AckEvent, Delivered, Needs};
use crate::receiver::{ACE_OFFSET, COUNTER_OFFSETS, is_transition, reflection};
use crate::{AccEcnOption, AckSegment, CeCount, Millis, TcpParams};
use units::{Ecn, Time};

/// ACE of a SYN-ACK that agrees to AccECN but reflects nothing (RFC 9768 §3.1.2).
const RESERVED: u8 = 0b101;
/// The largest number of CE segments that ACE can report.
const ACE_MASK: u32 = 7;
/// If ACKs cover more segments than this on average, the path is assumed to thin out ACKs.
const THINNED: u32 = 4;
/// The number of ACKs in the moving average.
const ACKS: u32 = 64;
/// From this many segments on, an ACK's share of CE bytes estimates its share of CE segments.
const MANY: u32 = 16;

/// Counts of delivered segments and of marks.
pub struct Marks {
    /// Since the start.
    delivered: Delivered,
    /// Bytes with ECT(1), CE and ECT(0) (delivered_ecn_bytes).
    bytes: [u32; 3],
    /// Index of the counter that grew last (est_ecnfield); `None` if that is unknown.
    growing: Option<usize>,
    /// Average number of segments for an ACK, times `ACKS` (pkts_acked_ewma); 0 before the first
    /// ACK.
    segments_per_ack: u32,
    /// TSval of the last ACK.
    stamp: Millis,
    /// ACE of the last ACK of the handshake.
    reflects_synack: u8,
    mss: u32,
    sack: bool,
}

/// The delivery of an ACK, for decoding ACE.
struct Delivery {
    segments: u32,
    bytes: u32,
    /// The state is TCP_CA_Open or TCP_CA_CWR.
    calm: bool,
}

impl Marks {
    /// Before the first ACK.
    pub fn new(params: &TcpParams) -> Marks {
        Marks {
            delivered: Delivered::default(),
            bytes: [0; 3],
            growing: None,
            segments_per_ack: 0,
            stamp: Millis(0),
            reflects_synack: 0,
            mss: params.mss,
            sack: params.recovery.sack,
        }
    }

    /// Copies an option's counters. Returns whether they are reliable (tcp_accecn_process_option).
    /// Without an option the delivered bytes are added to the counter that grew last, if only one
    /// did.
    fn take_option(&mut self, option: Option<AccEcnOption>, bytes: u32) -> bool {
        let Some(option) = option else {
            if let Some(field) = self.growing {
                self.bytes[field] = self.bytes[field].wrapping_add(bytes);
            }
            return self.growing.is_some();
        };
        let (before, mut changed, mut ambiguous) = (self.growing, None, false);
        // The loop visits all three fields, so that it is unrolled.
        for (field, offset) in COUNTER_OFFSETS.into_iter().enumerate() {
            let (counter, known) =
                (option.bytes[field].wrapping_sub(offset), &mut self.bytes[field]);
            // A signed difference of 24 bits.
            let delta = (counter.wrapping_sub(*known) << 8) as i32 >> 8;
            if delta == 0 || field >= usize::from(option.fields) {
                continue;
            }
            *known = known.wrapping_add_signed(delta);
            ambiguous |= delta < 0;
            if before != Some(field) {
                ambiguous |= changed.is_some();
                changed = changed.or(Some(field));
            }
        }
        self.growing = if ambiguous { None } else { changed.or(before) };
        before.is_some() && !ambiguous
    }

    /// The CE segments that this ACK is the first to report (__tcp_accecn_process).
    fn newly_ce(&mut self, ack: &AckSegment, delivery: &Delivery) -> u32 {
        let newer = std::mem::replace(&mut self.stamp, ack.stamp) != ack.stamp;
        let n = delivery.segments;
        if n == 0 && !newer {
            return 0;
        }
        let ce_bytes = self.bytes[1];
        let reliable = self.take_option(ack.accecn, delivery.bytes);
        let ce_bytes = self.bytes[1].wrapping_sub(ce_bytes);
        self.segments_per_ack = match self.segments_per_ack {
            average if n == 0 => average,
            0 => n * ACKS,
            average => (average * (ACKS - 1) + n * ACKS) / ACKS,
        };
        let reported = u32::from(ack.ace).wrapping_sub(ACE_OFFSET);
        let delta = reported.wrapping_sub(self.delivered.ce) & ACE_MASK;
        if n <= ACE_MASK {
            return delta;
        }
        // The largest number that ACE and the delivered segments allow.
        let safe = n - (n.wrapping_sub(delta) & ACE_MASK);
        if !reliable {
            return if self.segments_per_ack > THINNED * ACKS { delta } else { safe };
        }
        if ce_bytes == 0 {
            return delta;
        }
        if n >= MANY && (self.sack || delivery.calm) {
            if delivery.bytes <= ce_bytes {
                return safe;
            }
            let share = (u64::from(ce_bytes) * u64::from(n)).div_ceil(delivery.bytes.into());
            return safe.min(delta + (share as u32 & !ACE_MASK));
        }
        let few = ce_bytes <= delta * self.mss && ce_bytes < safe * self.mss / 2;
        if few { delta } else { safe }
    }
}

impl Sender {
    /// The marks that feedback has reported so far; `None` if feedback does not report each mark.
    pub fn ce_reported(&self) -> Option<CeCount> {
        let marks = self.cold.marks.as_ref().filter(|_| self.ecn != EcnState::Off)?;
        Some(CeCount { segments: marks.delivered.ce, bytes: marks.bytes[1] })
    }

    /// An ACK has delivered `segments`. Reports them to the congestion control. Returns whether the
    /// ACK reports marks.
    #[cold]
    pub(super) fn count_marks(&mut self, ack: &AckSegment, segments: u32, now: Time) -> bool {
        let (calm, echo) = (self.is_calm(), self.ecn != EcnState::Off && ack.ece());
        let payload = self.payload();
        let Some(marks) = &mut self.cold.marks else { return false };
        let ce = match self.ecn {
            EcnState::Accurate => {
                let bytes = segments.wrapping_mul(payload);
                marks.newly_ce(ack, &Delivery { segments, bytes, calm })
            }
            _ if echo => segments,
            _ => 0,
        };
        let all = &mut marks.delivered;
        all.packets = all.packets.wrapping_add(segments);
        all.ce = all.ce.wrapping_add(ce);
        // A congestion control that sets cwnd by itself is called at the end of the ACK
        // (`control_by_marks`).
        if !self.settings.control.sets_cwnd
            && let Some(event) = self.ack_event(segments, now)
        {
            self.control.in_ack_event(&event);
        }
        if self.ecn == EcnState::Accurate { ce > 0 } else { echo }
    }

    /// At the end of an ACK that delivered `segments`: a congestion control that sets cwnd by
    /// itself does so now.
    #[cold]
    pub(super) fn control_by_marks(&mut self, segments: u32, now: Time) {
        if let Some(event) = self.ack_event(segments, now) {
            self.control.cong_control(&event);
        }
    }

    fn ack_event(&self, segments: u32, now: Time) -> Option<AckEvent> {
        Some(AckEvent {
            delivered: self.cold.marks.as_ref()?.delivered,
            una: self.una,
            nxt: self.nxt,
            now,
            srtt: self.rtt.srtt().span(),
            in_flight: self.pipe(),
            cwnd_limited: self.is_cwnd_limited(segments),
            lossless: self.is_calm(),
        })
    }

    /// Applies the agreement that the SYN-ACK makes (tcp_ecn_rcv_synack).
    #[cold]
    pub(super) fn on_agreed(&mut self, ack: &AckSegment) {
        if self.ecn != EcnState::Accurate {
            if !ack.ece() {
                self.ecn = EcnState::Off;
            }
            return;
        }
        self.ecn = match ack.ace {
            0 | 7 => EcnState::Off,
            1 => EcnState::Ok,
            _ => EcnState::Accurate,
        };
        if self.ecn != EcnState::Accurate {
            self.fall_back();
            return;
        }
        let sent = if self.settings.needs_ecn { self.ect } else { Ecn::NotEct };
        if ack.ecn == Ecn::Ce && ack.ace != RESERVED && !is_transition(sent, ack.ace) {
            // The path clears or sets the field, so no segment is ECN-capable from now on. A change
            // from ECT(1) to ECT(0) is accepted (tcp_ect_transition_valid). Linux 7.3 checks only
            // if the SYN-ACK arrives with CE; RFC 9768 §3.2.2.2 always requires the check.
            self.ect = Ecn::NotEct;
        }
        if let Some(marks) = &mut self.cold.marks {
            marks.reflects_synack = reflection(ack.ecn);
        }
    }

    /// A SYN-ACK arrives again: the next ACK reflects the ECN field of this copy.
    #[cold]
    pub(super) fn reflect_latest(&mut self, ack: &AckSegment) {
        if let Some(marks) = &mut self.cold.marks {
            marks.reflects_synack = reflection(ack.ecn);
        }
    }

    /// AccECN was not agreed on. A congestion control that needs it becomes Reno, without ECN and
    /// without a pacing rate of its own (TCP_CONG_NO_FALLBACK_RFC3168).
    #[cold]
    pub(super) fn fall_back(&mut self) {
        if self.control.fall_back() {
            self.ecn = EcnState::Off;
            self.cold.marks = None;
            self.pacer = self.pacer.filter(|_| self.settings.pacing);
            let settings = &mut self.settings;
            (settings.needs_ecn, settings.exact) = (false, false);
            let shorter_segments = settings.control.shorter_segments;
            settings.control = Needs { shorter_segments, ..self.control.needs() };
        }
    }

    /// Whether a SYN asks for ECN: the first does, and with AccECN the second too (RFC 3168
    /// §6.1.1.1; tcp_ecn_fallback). ECN may be the reason why a SYN was dropped.
    pub(super) fn asks_for_ecn(&self) -> bool {
        match self.ecn {
            EcnState::Off => false,
            EcnState::Accurate => self.stats.timeouts < 2,
            _ => self.stats.timeouts == 0,
        }
    }

    /// ACE of the handshake's segments: a SYN asks for AccECN, and the last ACK reflects the
    /// SYN-ACK.
    pub(super) fn ace_of_handshake(&self, stage: Handshake) -> u8 {
        if self.ecn != EcnState::Accurate {
            return 0;
        }
        match stage {
            Handshake::SendAck => self.cold.marks.as_ref().map_or(0, |marks| marks.reflects_synack),
            _ if self.asks_for_ecn() => 0b111,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_SACK_BLOCKS;

    const MSS: u32 = 1000;

    /// The CE segments that an ACK reports. It delivers `segments` full segments, its field ACE
    /// counts `ce`, and its option, if any, counts bytes with ECT(1), CE and ECT(0).
    fn reported_ce(marks: &mut Marks, segments: u32, ce: u32, option: Option<[u32; 3]>) -> u32 {
        let counters = |bytes: [u32; 3]| AccEcnOption {
            bytes: [0, 1, 2].map(|field| bytes[field] + COUNTER_OFFSETS[field]),
            fields: 3,
            size: 12,
        };
        let ack = AckSegment {
            ack: 0,
            echo: Time::NEVER,
            window: 1 << 20,
            sacks: [(0, 0); MAX_SACK_BLOCKS],
            sack_count: 0,
            ace: ((ce + ACE_OFFSET) & ACE_MASK) as u8,
            accecn: option.map(counters),
            ecn: Ecn::NotEct,
            one_way: None,
            syn: false,
            stamp: Millis(1),
        };
        marks.newly_ce(&ack, &Delivery { segments, bytes: segments * MSS, calm: true })
    }

    /// The state after an ACK of one segment with these counters.
    fn after(option: Option<[u32; 3]>) -> Marks {
        let mut marks = Marks::new(&TcpParams::LINUX.with(|p| p.mss = MSS));
        assert_eq!(reported_ce(&mut marks, 1, 0, option), 0);
        marks
    }

    #[test]
    fn options_are_trusted_from_the_second_on_and_not_after_a_falling_counter() {
        // With eight segments ACE can report 0 or 8; the option shows that none was marked.
        let next = |option| Some([0, 0, option]);
        assert_eq!(reported_ce(&mut after(next(1000)), 8, 0, next(9000)), 0);
        assert_eq!(reported_ce(&mut after(None), 8, 0, next(9000)), 8, "the first");
        assert_eq!(reported_ce(&mut after(next(1000)), 8, 0, next(500)), 8, "it falls");
    }

    #[test]
    fn if_acks_of_more_than_four_segments_are_usual_ace_does_not_count_as_wrapped() {
        let wrapped = [252, 253].map(|average| {
            let mut marks = after(None);
            // With this ACK of eight segments the average is 256 or 257, in 64ths.
            marks.segments_per_ack = average;
            reported_ce(&mut marks, 8, 0, None)
        });
        assert_eq!(wrapped, [8, 0]);
    }

    #[test]
    fn from_sixteen_segments_on_the_share_of_marked_bytes_gives_the_wraps_of_ace() {
        let of = |segments, ce, bytes| {
            let mut marks = after(Some([0, 0, 1000]));
            reported_ce(&mut marks, segments, ce, Some([0, bytes, 1000 + segments * MSS - bytes]))
        };
        // Four segments, or twelve, cannot have 5000 bytes.
        assert_eq!([15, 16].map(|segments| of(segments, 4, 5000)), [12, 4]);
        // Eight of sixteen segments, one of which is short.
        assert_eq!(of(16, 0, 7500), 8);
        assert_eq!(of(16, 0, 16_000), 16);
    }
}
