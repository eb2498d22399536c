//! The receiver's part of AccECN: each ACK reports how many segments and bytes arrived with CE.
//!
//! The field ACE, three bits, is the number of CE segments plus 5, modulo 8. The option has three
//! byte counters, for ECT(1), CE and ECT(0). A change of the ECN field is acknowledged at once. In
//! the handshake ACE reflects the ECN field of the segment that it answers.
//!
//! Source: RFC 9768 as in Linux 7.3 (include/net/tcp_ecn.h, tcp_ecn_option 2). Deviations: the
//! option is on every ACK from the first, as the sender's first segment carries one too. The path
//! never removes or zeroes options.

use super::{Echo, Receiver};
use crate::{AccEcnOption, AckSegment, CeCount, Segment};
use units::{Ecn, Time};

/// ACE for no CE segment, and the initial values of the counters of ECT(1), CE and ECT(0) bytes.
pub const ACE_OFFSET: u32 = 5;
pub const COUNTER_OFFSETS: [u32; 3] = [1, 0, 1];
/// The most CE segments that may be unreported before an ACK leaves at once
/// (TCP_ACCECN_ACE_MAX_DELTA).
const MAX_UNREPORTED: u32 = 6;
/// The space for TCP's options, and the timestamp option with its padding, bytes.
const OPTIONS: u32 = 40;
const TIMESTAMPS: u32 = 12;
/// The option's kind and length, and one counter, bytes.
const OPTION_HEAD: u32 = 2;
const COUNTER: u32 = 3;

/// Whether a segment sent with the field `sent` may arrive with the field that is reflected: the
/// path has neither cleared nor set the field (tcp_ect_transition_valid).
pub const fn is_transition(sent: Ecn, reflected: u8) -> bool {
    matches!(sent, Ecn::NotEct) == (reflected == reflection(Ecn::NotEct))
}

/// Counters of the segments that have arrived.
#[derive(Clone, Debug, Default)]
pub struct Accurate {
    /// Segments with CE, the handshake's ACKs included (r.cep less its offset).
    ce: u32,
    /// CE segments that no ACK has reported yet.
    unreported: u32,
    /// Bytes with ECT(1), CE and ECT(0) (r.e1b, r.ceb, r.e0b less their offsets).
    bytes: [u32; 3],
    /// The number of counters up to the last that has changed since the last option
    /// (accecn_minlen).
    needed: u32,
    /// The ECN field of the last segment (prev_ecnfield).
    last: Ecn,
    /// The ECN field of the SYN.
    syn: Ecn,
}

/// The reflection in ACE of the ECN field of a SYN or SYN-ACK (RFC 9768 §3.1.1, table 2).
pub const fn reflection(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

impl Accurate {
    /// The first SYN has arrived. ACE reflects its mark, and the counters ignore it.
    pub fn on_syn(&mut self, ecn: Ecn) {
        (self.syn, self.last) = (ecn, ecn);
    }

    /// The SYN has arrived again.
    pub fn on_syn_again(&mut self, ecn: Ecn) {
        self.syn = ecn;
    }

    /// The value that the SYN-ACK reflects.
    pub fn reflects_syn(&self) -> u8 {
        reflection(self.syn)
    }

    /// Counts a segment (tcp_ecn_received_counters). Returns whether it is acknowledged at once.
    pub fn on_segment(&mut self, ecn: Ecn, len: u32) -> bool {
        let edge = self.last != ecn;
        self.last = ecn;
        let field = match ecn {
            Ecn::NotEct => return edge,
            Ecn::Ect1 => 0,
            Ecn::Ce => 1,
            Ecn::Ect0 => 2,
        };
        if ecn == Ecn::Ce {
            self.ce = self.ce.wrapping_add(1);
            self.unreported += 1;
        }
        if len > 0 {
            self.bytes[field] = self.bytes[field].wrapping_add(len);
            self.needed = self.needed.max(field as u32 + 1);
        }
        edge || self.unreported >= MAX_UNREPORTED
    }

    /// ACE of the ACK that leaves now.
    fn ace(&mut self) -> u8 {
        self.unreported = 0;
        (self.ce.wrapping_add(ACE_OFFSET) & 7) as u8
    }

    /// The option that fits beside `sack_count` SACK blocks and `others` bytes of other options,
    /// and the number of blocks that remain (tcp_options_fit_accecn). Blocks beyond the second make
    /// room for changed counters. The option may use the two bytes of padding of a SACK option.
    fn option(&mut self, sack_count: u8, others: u32) -> (Option<AccEcnOption>, u8) {
        for blocks in (2.min(sack_count)..=sack_count).rev() {
            let sacks = if blocks == 0 { 0 } else { 4 + 8 * u32::from(blocks) };
            let padding = if blocks == 0 { 0 } else { 2 };
            let room = OPTIONS.saturating_sub(others + sacks);
            for fields in (self.needed..=3).rev() {
                let size = OPTION_HEAD + COUNTER * fields;
                let size = if size & 3 > padding { size.next_multiple_of(4) } else { size & !3 };
                if size <= room {
                    self.needed = 0;
                    return (Some(self.counters(fields, size)), blocks);
                }
            }
            if self.needed == 0 {
                break;
            }
        }
        (None, sack_count)
    }

    fn counters(&self, fields: u32, size: u32) -> AccEcnOption {
        let mut bytes = [0; 3];
        for (counter, (count, offset)) in
            bytes.iter_mut().zip(self.bytes.iter().zip(COUNTER_OFFSETS))
        {
            *counter = count.wrapping_add(offset) & 0xff_ffff;
        }
        AccEcnOption { bytes, fields: fields as u8, size: size as u8 }
    }
}

impl Receiver {
    /// The marks that have arrived; `None` without AccECN.
    pub fn ce_received(&self) -> Option<CeCount> {
        let Accurate { ce, bytes, .. } = *self.accurate;
        (self.ecn == Echo::Accurate).then_some(CeCount { segments: ce, bytes: bytes[1] })
    }

    /// A segment with data arrives.
    #[cold]
    pub(super) fn on_accurate(&mut self, segment: &Segment, now: Time) -> Option<AckSegment> {
        let at_once = self.accurate.on_segment(segment.ecn, segment.len);
        self.on_exact(segment, at_once, now)
    }

    /// ACE, the option, and the number of SACK blocks of an ACK that leaves now.
    #[cold]
    pub(super) fn feedback(&mut self, sack_count: u8) -> (u8, Option<AccEcnOption>, u8) {
        let others = if self.timestamps { TIMESTAMPS } else { 0 };
        let (option, sack_count) = self.accurate.option(sack_count, others);
        (self.accurate.ace(), option, sack_count)
    }

    /// Applies the request of the first SYN (tcp_ecn_create_request).
    #[cold]
    pub(super) fn negotiate(&mut self, syn: &Segment) {
        self.ecn = match self.ecn {
            // Every ACE other than RFC 3168's request asks for AccECN (RFC 9768 §3.1.3).
            Echo::Accurate if syn.ace != 0 => {
                self.accurate.on_syn(syn.ecn);
                Echo::Accurate
            }
            Echo::Accurate if syn.cwr => self.classic,
            agreed if syn.cwr && agreed != Echo::Accurate => agreed,
            _ => Echo::Off,
        };
    }

    /// A SYN has arrived again, before data: the SYN-ACK reflects the ECN field of this copy. A SYN
    /// without a request ends ECT (tcp_check_req).
    #[cold]
    pub(super) fn on_syn_again(&mut self, syn: &Segment) {
        if self.ecn == Echo::Accurate {
            self.accurate.on_syn_again(syn.ecn);
            self.ect = if syn.ace == 0 { Ecn::NotEct } else { self.ect };
        }
    }

    /// The last ACK of the handshake has arrived and reflects the SYN-ACK's ECN field. If the path
    /// cleared or set that field, or if the ACK has no reflection, ACKs are not ECN-capable from
    /// now on (tcp_accecn_third_ack).
    #[cold]
    pub(super) fn on_third_ack(&mut self, ace: u8) {
        let is_reflection = !matches!(ace, 1 | 5 | 7);
        if self.ecn == Echo::Accurate
            && is_reflection
            && (ace == 0 || !is_transition(self.synack_ecn, ace))
        {
            self.ect = Ecn::NotEct;
        }
    }

    /// ACE of the SYN-ACK. The third SYN-ACK is plain (RFC 9768 §3.1.4.2; tcp_ecn's SYN-ACK).
    #[cold]
    pub(super) fn ace_of_synack(&self, timeouts: u32) -> u8 {
        match self.ecn {
            Echo::Off => 0,
            Echo::Accurate if timeouts > 1 => 0,
            Echo::Accurate => self.accurate.reflects_syn(),
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_SACK_BLOCKS;

    #[test]
    fn ace_counts_ce_segments_from_five_and_wraps() {
        let mut accurate = Accurate::default();
        let mut after = |ecn| {
            accurate.on_segment(ecn, 100);
            accurate.ace()
        };
        assert_eq!(after(Ecn::Ect0), 5);
        assert_eq!([Ecn::Ce; 8].map(after), [6, 7, 0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_change_is_acknowledged_at_once_and_so_are_six_unreported_marks() {
        let mut accurate = Accurate::default();
        let at_once = |accurate: &mut Accurate, ecn| accurate.on_segment(ecn, 1);
        let fields = [Ecn::Ect0, Ecn::Ect0, Ecn::Ce, Ecn::Ce, Ecn::Ect0, Ecn::NotEct];
        let changes = fields.map(|ecn| at_once(&mut accurate, ecn));
        assert_eq!(changes, [true, false, true, false, true, true]);
        // The field of the SYN is not a change.
        accurate.on_syn(Ecn::Ect1);
        assert!(!at_once(&mut accurate, Ecn::Ect1));
        let mut unreported = Accurate { last: Ecn::Ce, ..Accurate::default() };
        assert_eq!((1..=6).find(|_| unreported.on_segment(Ecn::Ce, 1)), Some(6));
    }

    #[test]
    fn the_option_takes_the_space_that_sacks_leave_and_their_padding() {
        let fits = |sacks, ecn, others| {
            let mut accurate = Accurate::default();
            accurate.on_segment(ecn, 1);
            let (option, blocks) = accurate.option(sacks, others);
            (option.map(|option| (option.fields, option.size)), blocks)
        };
        // With timestamps 28 bytes are free: one block leaves 16, two leave 8, three leave none.
        assert_eq!(fits(0, Ecn::Ect0, TIMESTAMPS), (Some((3, 12)), 0));
        assert_eq!(fits(1, Ecn::Ect0, TIMESTAMPS), (Some((3, 12)), 1));
        assert_eq!(fits(2, Ecn::Ect0, TIMESTAMPS), (None, 2), "ECT(0) is the third counter");
        assert_eq!(fits(2, Ecn::Ce, TIMESTAMPS), (Some((2, 8)), 2));
        assert_eq!(fits(3, Ecn::Ce, TIMESTAMPS), (Some((2, 8)), 2), "one block makes room");
        assert_eq!(fits(3, Ecn::Ect0, TIMESTAMPS), (None, 3), "one less is no help");
        assert_eq!(fits(3, Ecn::Ect1, TIMESTAMPS), (Some((2, 8)), 2));
        assert_eq!(fits(MAX_SACK_BLOCKS as u8, Ecn::Ect0, 0), (Some((3, 12)), 3));
        // Without a changed counter the option may have no counter, in the padding of the blocks.
        let (option, blocks) = Accurate::default().option(3, TIMESTAMPS);
        assert_eq!((option.map(|option| (option.fields, option.size)), blocks), (Some((0, 0)), 3));
    }

    #[test]
    fn a_reported_counter_is_not_repeated_in_the_next_option() {
        let mut accurate = Accurate::default();
        let mut option = |sacks| accurate.option(sacks, TIMESTAMPS).0.map(|option| option.fields);
        assert_eq!(option(2), Some(2), "nothing has arrived: two counters fit");
        accurate.on_segment(Ecn::Ect0, 0);
        let mut option = |sacks| accurate.option(sacks, TIMESTAMPS).0.map(|option| option.fields);
        assert_eq!(option(2), Some(2), "no bytes have arrived either");
        accurate.on_segment(Ecn::Ect0, 1);
        let mut option = |sacks| accurate.option(sacks, TIMESTAMPS).0.map(|option| option.fields);
        assert_eq!(option(2), None, "ECT(0) is the third counter, and does not fit");
        assert_eq!(option(0), Some(3));
        assert_eq!(option(2), Some(2));
    }
}
