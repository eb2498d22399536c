//! The DS field: the byte of the IP header that once was TOS, in which hosts say how to treat a
//! packet and queues say that there is congestion.
//!
//! The upper six bits are the DSCP, the lower two the ECN field. The DSCP is the sender's and no
//! queue changes it; only pfifo_fast reads it, and reads it the old way, as TOS bits.
//!
//! Source: RFC 2474 §3 (DSCP), RFC 3168 §5 (ECN), RFC 1349 (TOS).

use crate::{Cause, Fate, Packet};
use serde::{Deserialize, Serialize};

/// The byte as it stands in the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct DsField(pub u8);

/// The ECN field (RFC 3168 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Ecn {
    /// The sender does not speak ECN: congestion can only be signalled by a drop.
    #[default]
    NotEct,
    /// ECN-capable transport: ECT(0), or ECT(1), which no discipline here tells apart.
    Ect,
    /// Congestion experienced: a queue marked it.
    Ce,
}

impl DsField {
    /// CS0 without ECN: what every host sends that says nothing else.
    pub const BEST_EFFORT: DsField = DsField(0);

    /// The codepoint, 0 to 63.
    #[inline]
    pub const fn dscp(self) -> u8 {
        self.0 >> 2
    }

    /// The ECN field.
    #[inline]
    pub const fn ecn(self) -> Ecn {
        match self.0 & 0b11 {
            0b00 => Ecn::NotEct,
            0b11 => Ecn::Ce,
            _ => Ecn::Ect,
        }
    }

    /// The same codepoint with this ECN field; `Ect` is written as ECT(0).
    #[inline]
    pub const fn with_ecn(self, ecn: Ecn) -> DsField {
        let bits = match ecn {
            Ecn::NotEct => 0b00,
            Ecn::Ect => 0b10,
            Ecn::Ce => 0b11,
        };
        DsField(self.0 & !0b11 | bits)
    }
}

impl From<Ecn> for DsField {
    /// Best effort with this ECN field.
    fn from(ecn: Ecn) -> DsField {
        DsField::BEST_EFFORT.with_ecn(ecn)
    }
}

/// Marks CE where the sender speaks ECN; says whether the packet now carries CE. A second mark is
/// no news.
#[inline]
pub(crate) fn mark<B>(packet: &mut Packet<B>, cause: Cause, fates: &mut Vec<Fate<B>>) -> bool {
    match packet.ds.ecn() {
        Ecn::NotEct => false,
        Ecn::Ce => true,
        Ecn::Ect => {
            packet.ds = packet.ds.with_ecn(Ecn::Ce);
            fates.push(Fate::Marked { flow: packet.flow, size: packet.size, cause });
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_leaves_the_codepoint_alone() {
        for byte in 0..=255 {
            let marked = DsField(byte).with_ecn(Ecn::Ce);
            assert_eq!((marked.dscp(), marked.ecn()), (byte >> 2, Ecn::Ce));
        }
    }

    #[test]
    fn both_ect_codepoints_speak_ecn() {
        let fields = [0b00, 0b01, 0b10, 0b11].map(|bits| DsField(46 << 2 | bits).ecn());
        assert_eq!(fields, [Ecn::NotEct, Ecn::Ect, Ecn::Ect, Ecn::Ce]);
    }

    #[test]
    fn what_is_written_reads_back() {
        for ecn in [Ecn::NotEct, Ecn::Ect, Ecn::Ce] {
            assert_eq!(DsField::from(ecn).ecn(), ecn);
        }
    }
}
