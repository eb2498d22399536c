//! The bytes that a link layer adds to an IP packet.
//!
//! Two sizes matter and differ: the queue discipline's (on Linux the packet with its 14-byte
//! Ethernet header) and the wire's (with checksum, preamble and gap, or whole ATM cells). Source:
//! IEEE 802.3 (18 + 20 bytes around the payload), ITU-T I.363.5 (AAL5: 8-byte trailer, 48 of 53
//! bytes a cell), ITU-T G.992.3 annex N (PTM: 65 bytes on the wire for 64).

use serde::{Deserialize, Serialize};

/// Bytes around an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Framing {
    /// Added to the IP packet in the discipline's count.
    pub header_bytes: u32,
    /// Added to the IP packet on the wire, before cells.
    pub overhead_bytes: u32,
    /// Smallest size on the wire, before cells (Ethernet: 84 with preamble and gap).
    pub minimum_bytes: u32,
    /// The cells on the wire.
    pub cells: Cells,
}

/// Fixed-size cells of a link layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cells {
    /// No cells.
    None,
    /// ATM: 48 payload bytes in each 53-byte cell, the last one padded.
    Atm,
    /// PTM: 65 bytes for each 64.
    Ptm,
}

impl Framing {
    /// A link layer that adds nothing.
    pub const NONE: Framing =
        Framing { header_bytes: 0, overhead_bytes: 0, minimum_bytes: 0, cells: Cells::None };

    /// Bytes on the wire for an IP packet of `ip_bytes`.
    ///
    /// # Examples
    ///
    /// ```rust
    /// use link::{Cells, Framing};
    ///
    /// let ethernet =
    ///     Framing { header_bytes: 14, overhead_bytes: 38, minimum_bytes: 84, cells: Cells::None };
    /// assert_eq!(ethernet.wire_bytes(1500), 1538);
    /// assert_eq!(ethernet.wire_bytes(40), 84);
    /// ```
    #[inline]
    pub fn wire_bytes(&self, ip_bytes: u32) -> u64 {
        let framed = u64::from(ip_bytes + self.overhead_bytes).max(u64::from(self.minimum_bytes));
        match self.cells {
            Cells::None => framed,
            Cells::Atm => framed.div_ceil(48) * 53,
            Cells::Ptm => (framed * 65).div_ceil(64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_ethernet_packet_occupies_1538_bytes_and_an_ack_84() {
        let ethernet =
            Framing { header_bytes: 14, overhead_bytes: 38, minimum_bytes: 84, cells: Cells::None };
        assert_eq!(ethernet.wire_bytes(1500), 1538);
        assert_eq!(ethernet.wire_bytes(40), 84);
    }

    #[test]
    fn an_ack_over_pppoa_vcmux_fits_one_cell_and_a_full_packet_takes_32() {
        // RFC 2364: 2 bytes of PPP, 8 of AAL5 trailer.
        let pppoa =
            Framing { header_bytes: 0, overhead_bytes: 10, minimum_bytes: 0, cells: Cells::Atm };
        assert_eq!(pppoa.wire_bytes(38), 53);
        assert_eq!(pppoa.wire_bytes(1500), 32 * 53);
    }
}
