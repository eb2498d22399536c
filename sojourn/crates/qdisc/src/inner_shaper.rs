//! The shapers inside disciplines, for readers of a recording: their rate, and the bytes that they
//! charge for a packet.

use crate::Params;
use crate::cake::Sizes;
use crate::tbf::Charge;
use units::Rate;

/// The shaper inside a discipline.
pub struct InnerShaper {
    /// The rate, bit/s.
    pub rate: Rate,
    /// Packets that the discipline dropped are charged, too (cake's `ingress`).
    pub charges_drops: bool,
    law: Law,
}

enum Law {
    Cake(Sizes),
    Tbf(Charge),
}

impl InnerShaper {
    /// The shaper of a discipline on a link with this header; `None`: it has none, or one for each
    /// flow or queue.
    pub fn of(params: &Params, header_bytes: u32) -> Option<InnerShaper> {
        let (rate, charges_drops, law) = match params {
            Params::Cake(cake) | Params::CakeMq(cake) => {
                (cake.bandwidth?, cake.ingress, Law::Cake(Sizes::new(cake, header_bytes)))
            }
            Params::Tbf(tbf) => (tbf.rate, false, Law::Tbf(Charge::new(tbf))),
            _ => return None,
        };
        Some(InnerShaper { rate: Rate(rate), charges_drops, law })
    }

    /// The bytes that a packet is charged whose size is `bytes` as the discipline counts them.
    pub fn charged(&self, bytes: u32) -> u64 {
        match &self.law {
            Law::Cake(sizes) => sizes.adjusted(bytes).into(),
            Law::Tbf(charge) => charge.bytes(bytes.into()),
        }
    }
}
