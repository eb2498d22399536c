//! The DS field, once the TOS byte of the IP header: its upper six bits are the DSCP, its lower two
//! the ECN field.
//!
//! The sender sets the DSCP. pfifo_fast reads it as TOS bits, cake as a class; cake's `wash` clears
//! it, and no other queue changes it.
//!
//! Source: RFC 2474 §3 (DSCP), RFC 3168 §5 (ECN), RFC 1349 (TOS).

use crate::{Cause, Packet, Verdict};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use units::Ecn;

/// The byte in the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct DsField(pub u8);

impl DsField {
    /// CS0 without ECN: the default of every host.
    pub const BEST_EFFORT: DsField = DsField(0);

    /// The DSCP, 0 to 63.
    #[inline]
    pub const fn dscp(self) -> u8 {
        self.0 >> 2
    }

    /// The ECN field.
    #[inline]
    pub const fn ecn(self) -> Ecn {
        match self.0 & 0b11 {
            0b00 => Ecn::NotEct,
            0b01 => Ecn::Ect1,
            0b10 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// The same DSCP with this ECN field.
    #[inline]
    pub const fn with_ecn(self, ecn: Ecn) -> DsField {
        let bits = match ecn {
            Ecn::NotEct => 0b00,
            Ecn::Ect1 => 0b01,
            Ecn::Ect0 => 0b10,
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

/// A set of DS fields: those whose bits within `mask` equal `value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DsSelector {
    /// The bits to compare with.
    pub value: u8,
    /// The bits that are compared. 0 compares none and selects every field.
    pub mask: u8,
}

impl DsSelector {
    /// Whether the selector includes this field.
    #[inline]
    pub fn takes(self, ds: DsField) -> bool {
        self.mask == 0 || ds.0 & self.mask == self.value
    }
}

impl<'de> Deserialize<'de> for DsSelector {
    /// `0x1/0x3`.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<DsSelector, D::Error> {
        let text = String::deserialize(from)?;
        let byte = |text: &str| u8::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        let read = text.split_once('/').and_then(|(value, mask)| Some((byte(value)?, byte(mask)?)));
        let (value, mask) = read.ok_or_else(|| D::Error::custom("a selector is like 0x1/0x3"))?;
        Ok(DsSelector { value, mask })
    }
}

/// Marks an ECN-capable packet CE. Returns whether the packet now carries CE. A packet that already
/// carried CE is not reported again.
#[inline]
pub(crate) fn mark<B>(
    packet: &mut Packet<B>,
    cause: Cause,
    verdicts: &mut Vec<Verdict<B>>,
) -> bool {
    match packet.ds.ecn() {
        Ecn::NotEct => false,
        Ecn::Ce => true,
        Ecn::Ect0 | Ecn::Ect1 => {
            packet.ds = packet.ds.with_ecn(Ecn::Ce);
            verdicts.push(Verdict::Marked { flow: packet.flow, size: packet.size, cause });
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
    fn a_selector_compares_only_the_bits_of_its_mask() {
        let takes = |value, mask, byte| DsSelector { value, mask }.takes(DsField(byte));
        assert!(takes(1, 3, 0b1101) && !takes(1, 3, 0b1110));
        assert!(takes(0x20, 0xfc, 0x23) && !takes(0x20, 0xfc, 0x2c));
        // As in Linux, a value with bits outside the mask never matches.
        assert!(!takes(5, 3, 1) && !takes(5, 3, 5));
        assert!(takes(5, 0, 0) && DsSelector::default().takes(DsField(0xff)));
    }

    #[test]
    fn every_codepoint_is_distinguished() {
        let fields = [0b00, 0b01, 0b10, 0b11].map(|bits| DsField(46 << 2 | bits).ecn());
        assert_eq!(fields, [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce]);
    }

    #[test]
    fn fields_convert_to_ecn_and_back() {
        for ecn in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce] {
            assert_eq!(DsField::from(ecn).ecn(), ecn);
        }
    }
}
