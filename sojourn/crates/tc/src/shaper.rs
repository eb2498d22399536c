//! A shaper in tc(8)'s words: `htb rate 125kbps burst 1600`.
//!
//! One class of htb with the link's queue discipline as its leaf: a token bucket between the
//! discipline and the layer below it (crates/link, shaper.rs).
//!
//! Source: tc-htb(8), tc-stab(8), and iproute2 for the default burst: 1600 bytes and the bytes of
//! one tick of the clock, a nanosecond, at the rate. Deviations from tc: `ceil` and `cburst` must
//! equal `rate` and `burst`, since a single class can't borrow. A word given twice is refused.

use crate::error::{Notes, TcError};
use crate::numbers::{
    note_bytes_a_second, read_count, read_link_layer, read_rate, read_size, write_rate,
};
use link::{Cells, ShaperParams};
use values::text::{did_you_mean, listed, nearest, quoted, up_to, words};

/// The size that tc assumes for the largest packet, bytes.
const PACKET: u64 = 1600;
/// The usage.
const USAGE: &str =
    "htb rate RATE [burst BYTES] [overhead BYTES] [mpu BYTES] [linklayer ethernet|atm]";
const WORDS: &[(&str, &str)] = &[
    ("rate", "RATE"),
    ("burst", "BYTES"),
    ("overhead", "BYTES"),
    ("mpu", "BYTES"),
    ("linklayer", "ethernet|atm"),
    ("ceil", "RATE"),
    ("cburst", "BYTES"),
];
/// tc's synonyms.
const SYNONYMS: &[(&str, &str)] =
    &[("buffer", "burst"), ("maxburst", "burst"), ("cbuffer", "cburst"), ("cmaxburst", "cburst")];
/// Names that users of other tools write.
const COMMON_NAMES: &[(&str, &str)] = &[("bandwidth", "rate"), ("bw", "rate")];

/// The least rate, one byte a second, in bit/s.
const LEAST_RATE: u64 = 8;

/// tc's default burst at a rate, bytes.
pub fn default_burst(bps: u64) -> u64 {
    PACKET + bps / 8_000_000_000
}

/// A token bucket, as tc describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Shaper {
    /// The simulator's parameters.
    pub params: ShaperParams,
    /// Notes on the words that it was read from.
    pub notes: Notes,
}

impl From<ShaperParams> for Shaper {
    fn from(params: ShaperParams) -> Shaper {
        Shaper { params, notes: Notes::default() }
    }
}

impl Shaper {
    /// Reads `htb rate 125kbps`. `none` is `None`.
    pub fn parse(text: &str) -> Result<Option<Shaper>, TcError> {
        let tokens = words(up_to(text, 1_000));
        let Some(((kind, at), rest)) = tokens.split_first() else {
            return Err(not_a_shaper(&quoted(text)));
        };
        match (*kind, rest.first()) {
            ("none", None) => return Ok(None),
            ("none", Some((_, at))) => {
                let hint = "write none, or a shaper like htb rate 1mbit";
                return Err(
                    TcError::new("'none' can't be combined with other words", hint).at(at.clone())
                );
            }
            ("htb", _) => {}
            _ => return Err(not_htb(kind).at(at.clone())),
        }
        let (mut bps, mut burst, mut notes) = (None, None, Notes::default());
        let (mut overhead, mut minimum, mut cells) = (None, None, None);
        let (mut ceil, mut cburst) = (None, None);
        for pair in rest.chunks(2) {
            let (token, at) = &pair[0];
            let word =
                &SYNONYMS.iter().find(|(name, _)| name == token).map_or(*token, |(_, word)| word);
            let Some((_, shows)) = WORDS.iter().find(|(each, _)| each == word) else {
                return Err(unknown(word).at(at.clone()));
            };
            let Some((value, value_at)) = pair.get(1) else {
                let problem = format!("htb: {word} needs a value");
                return Err(TcError::new(problem, format!("write {word} {shows}")).at(at.clone()));
            };
            let fresh = match *word {
                "rate" => bps.is_none(),
                "burst" => burst.is_none(),
                "overhead" => overhead.is_none(),
                "mpu" => minimum.is_none(),
                "ceil" => ceil.is_none(),
                "cburst" => cburst.is_none(),
                _ => cells.is_none(),
            };
            if !fresh {
                let problem = format!("htb: {word} is given twice");
                return Err(TcError::new(problem, "write it once").at(at.clone()));
            }
            let wrong = |error: TcError| error.of(&format!("htb {word}")).at(value_at.clone());
            let bytes = |text| read_count(text, 0, 1000).map(|bytes| bytes as u32);
            match *word {
                "rate" | "ceil" => {
                    let read = read_rate(value).map_err(wrong)?;
                    if read < LEAST_RATE {
                        let problem = format!("{value} is less than a byte a second");
                        let hint = format!("htb counts those: write {LEAST_RATE}bit or more");
                        return Err(wrong(TcError::new(problem, hint)));
                    }
                    if *word == "rate" {
                        bps = Some(read)
                    } else {
                        ceil = Some((read, value_at))
                    }
                    notes.0.extend(note_bytes_a_second(word, value, value_at));
                }
                "cburst" => cburst = Some((read_burst(value).map_err(wrong)?, value_at)),
                "burst" => burst = Some(read_burst(value).map_err(wrong)?),
                "overhead" => overhead = Some(bytes(value).map_err(wrong)?),
                "mpu" => minimum = Some(bytes(value).map_err(wrong)?),
                _ => cells = Some(read_link_layer(value).map_err(wrong)?),
            }
        }
        let Some(bps) = bps else {
            let hint = "tc requires it; write it like htb rate 1mbit";
            return Err(TcError::new("htb: rate is missing", hint));
        };
        let burst = burst.unwrap_or(default_burst(bps));
        if let Some((ceil, at)) = ceil.filter(|(ceil, _)| *ceil != bps) {
            let rate = write_rate(bps);
            let problem = format!("htb: ceil {} is not the rate, {rate}", write_rate(ceil));
            let hint = "a single class can't borrow: write ceil";
            return Err(
                TcError::new(problem, format!("{hint} {rate}, or leave it out")).at(at.clone())
            );
        }
        if let Some((cburst, at)) = cburst.filter(|(cburst, _)| *cburst != burst) {
            let problem = format!("htb: cburst {cburst} is not the burst, {burst}");
            let hint = format!("write cburst {burst}, or leave it out");
            return Err(TcError::new(problem, hint).at(at.clone()));
        }
        let params = ShaperParams {
            bps,
            burst_bytes: burst,
            overhead_bytes: overhead.unwrap_or(0),
            minimum_bytes: minimum.unwrap_or(0),
            cells: cells.unwrap_or(Cells::None),
        };
        Ok(Some(Shaper { params, notes }))
    }

    /// The canonical words: the parameters that differ from tc's defaults.
    pub fn text(&self) -> String {
        let ShaperParams { bps, burst_bytes, overhead_bytes, minimum_bytes, cells } = self.params;
        let mut text = format!("htb rate {}", write_rate(bps));
        if burst_bytes != default_burst(bps) {
            text += &format!(" burst {burst_bytes}");
        }
        if overhead_bytes != 0 {
            text += &format!(" overhead {overhead_bytes}");
        }
        if minimum_bytes != 0 {
            text += &format!(" mpu {minimum_bytes}");
        }
        if cells == Cells::Atm {
            text += " linklayer atm";
        }
        text
    }
}

/// The error for a value that is not a text; `shown` is the quoted value.
pub fn not_a_shaper(shown: &str) -> TcError {
    let problem = format!("{shown} is not a shaper");
    TcError::new(problem, r#"write a string in tc's syntax, like "htb rate 1mbit""#)
}

fn read_burst(text: &str) -> Result<u64, TcError> {
    match read_size(text)? {
        0 => Err(TcError::new(
            "a burst of 0 bytes",
            format!("write at least one packet, like {PACKET}, or leave burst out"),
        )),
        size => Ok(size),
    }
}

fn not_htb(kind: &str) -> TcError {
    let known = format!("known: {USAGE}; or none");
    if ["tbf", "hfsc", "cbq", "cake"].contains(&kind) {
        let problem = format!("the engine has no shaper {}", quoted(kind));
        let or = if ["tbf", "cake"].contains(&kind) { " (or write it as qdisc)" } else { "" };
        return TcError::new(problem, format!("nearest: htb{or}; {known}"));
    }
    let guess = nearest(kind, ["htb", "none"]);
    TcError::new(format!("unknown shaper {}", quoted(kind)), did_you_mean(guess, &known))
}

fn unknown(word: &str) -> TcError {
    let named = || WORDS.iter().map(|(name, _)| *name);
    let common = COMMON_NAMES.iter().find(|(name, _)| *name == word).map(|(_, common)| *common);
    let guess = common.or_else(|| nearest(word, named()));
    let known = format!("known words: {}", listed(named()));
    TcError::new(format!("htb has no word {}", quoted(word)), did_you_mean(guess, &known))
}
