//! Tins: classes of traffic by DSCP, each with a rate above which other tins are served first.
//!
//! | | tins | rate of each, of the whole |
//! |---|---|---|
//! | besteffort | all | 1 |
//! | diffserv3 | best effort, bulk, voice | 1, 1/16, 1/4 |
//! | diffserv4 | best effort, bulk, video, voice | 1, 1/16, 1/2, 1/4 |
//! | diffserv8, precedence | eight | (7/8)^i |
//!
//! Source: tc-cake(8); RFC 4594, RFC 8622 (LE) for the codepoints.

use serde::Deserialize;
use units::{Rate, Span};

/// The mapping from codepoints to tins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TinMode {
    /// One tin.
    Besteffort,
    /// By IP precedence, the upper three bits of the codepoint.
    Precedence,
    /// Bulk, best effort, voice.
    Diffserv3,
    /// Bulk, best effort, video, voice.
    Diffserv4,
    /// Eight classes.
    Diffserv8,
}

/// The numbers of a tin that follow from cake's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TinNumbers {
    /// tc's heading of the tin.
    pub name: &'static str,
    /// The rate above which other tins are served first; 0: none.
    pub threshold: Rate,
    /// COBALT's target.
    pub target: Span,
    /// COBALT's interval.
    pub interval: Span,
    /// The turn of a flow, bytes.
    pub quantum: u32,
}

impl TinMode {
    /// Every mode.
    pub const ALL: [TinMode; 5] = [
        TinMode::Besteffort,
        TinMode::Precedence,
        TinMode::Diffserv3,
        TinMode::Diffserv4,
        TinMode::Diffserv8,
    ];

    /// For each tin: its rate, bytes/s, given the total `rate`, and the bytes of its turn if there
    /// is no rate.
    pub(super) fn shares(self, rate: u64) -> Vec<(u64, u32)> {
        match self {
            TinMode::Besteffort => vec![(rate, 65_535)],
            TinMode::Diffserv3 => vec![(rate, 1024), (rate >> 4, 64), (rate >> 2, 256)],
            TinMode::Diffserv4 => {
                vec![(rate, 1024), (rate >> 4, 64), (rate >> 1, 512), (rate >> 2, 256)]
            }
            // Each tin has 7/8 of the previous one.
            TinMode::Precedence | TinMode::Diffserv8 => {
                let (mut rate, mut quantum) = (rate, 256);
                let mut next = || {
                    let share = (rate, quantum);
                    (rate, quantum) = (rate * 7 / 8, quantum * 7 / 8);
                    share
                };
                (0..8).map(|_| next()).collect()
            }
        }
    }

    /// The tins as tc shows them: their headings, and their numbers here.
    pub(super) fn shown(self) -> Vec<(&'static str, usize)> {
        const NUMBERED: [&str; 8] =
            ["Tin 0", "Tin 1", "Tin 2", "Tin 3", "Tin 4", "Tin 5", "Tin 6", "Tin 7"];
        match self {
            TinMode::Besteffort => vec![(NUMBERED[0], 0)],
            TinMode::Diffserv3 => vec![("Bulk", 1), ("Best Effort", 0), ("Voice", 2)],
            TinMode::Diffserv4 => {
                vec![("Bulk", 1), ("Best Effort", 0), ("Video", 2), ("Voice", 3)]
            }
            TinMode::Precedence | TinMode::Diffserv8 => NUMBERED.into_iter().zip(0..).collect(),
        }
    }

    /// The tin of each codepoint.
    pub(super) fn by_codepoint(self) -> [u8; 64] {
        std::array::from_fn(|dscp| self.tin(dscp as u8))
    }

    fn tin(self, dscp: u8) -> u8 {
        let class = dscp >> 3;
        // AFx1, AFx2 and AFx3.
        let assured = [2, 4, 6].contains(&(dscp & 7)) && (1..=4).contains(&class);
        let is_low = matches!(dscp, LE | CS1);
        let is_voice = matches!(dscp, VOICE_ADMIT | EF | CS6 | CS7);
        match self {
            TinMode::Besteffort => 0,
            TinMode::Precedence => class,
            TinMode::Diffserv3 if is_low => 1,
            TinMode::Diffserv3 if is_voice || dscp == LOW_DELAY => 2,
            TinMode::Diffserv4 if is_low => 1,
            TinMode::Diffserv4 if is_voice || matches!(dscp, CS4 | CS5) => 3,
            TinMode::Diffserv4 if assured && class >= 2 => 2,
            TinMode::Diffserv4 if matches!(dscp, LOW_DELAY | CS2 | CS3) => 2,
            TinMode::Diffserv8 => match dscp {
                LE => 0,
                CS6 | CS7 => 7,
                CS4 | CS5 | VOICE_ADMIT | EF => 6,
                CS2 => 5,
                LOW_DELAY => 4,
                THROUGHPUT | CS1 => 1,
                CS3 => 3,
                _ if !assured => 2,
                _ => [1, 4, 3, 3][usize::from(class) - 1],
            },
            TinMode::Diffserv3 | TinMode::Diffserv4 => 0,
        }
    }
}

const LE: u8 = 1;
/// RFC 1349's TOS bits, before there were codepoints.
const THROUGHPUT: u8 = 2;
const LOW_DELAY: u8 = 4;
const CS1: u8 = 8;
const CS2: u8 = 16;
const CS3: u8 = 24;
const CS4: u8 = 32;
const CS5: u8 = 40;
const VOICE_ADMIT: u8 = 44;
const EF: u8 = 46;
const CS6: u8 = 48;
const CS7: u8 = 56;
