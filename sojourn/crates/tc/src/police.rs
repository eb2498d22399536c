//! A policer in tc(8)'s words: `rate 10mbit burst 64k`.
//!
//! tc's action police on every packet that arrives at a link, before the link's queue (crates/link,
//! police.rs). On Linux it is attached to the egress of the device, by a filter that matches all.
//!
//! Source: tc-police(8), tc-matchall(8); iproute2 for the largest packet without `mtu`: 2040 bytes,
//! the last entry of the table of times that tc makes for 2047. Deviations from tc: packets above
//! the rate are dropped, and other actions are not supported (tc's default is to classify such a
//! packet again). There is no peakrate, avrate or pkts_rate. A word given twice is refused.

use crate::error::{Notes, TcError};
use crate::numbers::{note_bytes_a_second, read_count, read_rate, read_size, write_rate};
use link::PolicerParams;
use values::text::{did_you_mean, listed, nearest, quoted, up_to, words};

/// The usage.
const USAGE: &str = "rate RATE burst BYTES [mtu BYTES] [overhead BYTES] [conform-exceed drop]";
const WORDS: [&str; 5] = ["rate", "burst", "mtu", "overhead", "conform-exceed"];
/// tc's synonyms.
const SYNONYMS: &[(&str, &str)] =
    &[("buffer", "burst"), ("maxburst", "burst"), ("minburst", "mtu")];
/// Names that users of other tools write.
const COMMON_NAMES: &[(&str, &str)] = &[("bandwidth", "rate")];
/// tc's options that are not supported.
const ABSENT: &[&str] =
    &["peakrate", "avrate", "estimator", "pkts_rate", "pkts_burst", "mpu", "linklayer", "index"];
/// tc's actions for packets above the rate.
const ENDS: &[&str] = &["continue", "pass", "ok", "pipe", "reclassify", "shot", "trap"];
/// The largest packet that passes by default, bytes.
const USUAL_MTU: u32 = 2040;

/// A policer, as tc describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Police {
    /// The simulator's parameters.
    pub params: PolicerParams,
    /// Notes on the words that it was read from.
    pub notes: Notes,
}

/// The words read so far.
#[derive(Default)]
struct Parsed {
    bps: Option<u64>,
    burst: Option<u64>,
    mtu: Option<u32>,
    overhead: Option<u32>,
    end: bool,
    notes: Notes,
}

impl From<PolicerParams> for Police {
    fn from(params: PolicerParams) -> Police {
        Police { params, notes: Notes::default() }
    }
}

impl Police {
    /// Reads `rate 10mbit burst 64k`, also behind `police`. `none` is `None`.
    pub fn parse(text: &str) -> Result<Option<Police>, TcError> {
        let tokens = words(up_to(text, 1_000));
        let mut tokens = &tokens[..];
        match tokens {
            [] => return Err(not_a_policer(&quoted(text))),
            [("none", _)] => return Ok(None),
            [("none", _), (_, at), ..] => {
                let hint = "write none, or a policer like rate 10mbit burst 64k";
                return Err(
                    TcError::new("'none' can't be combined with other words", hint).at(at.clone())
                );
            }
            [("police", _), rest @ ..] => tokens = rest,
            _ => {}
        }
        let mut parsed = Parsed::default();
        while let [(token, at), rest @ ..] = tokens {
            let synonym = SYNONYMS.iter().find(|(name, _)| name == token);
            let word = &synonym.map_or(*token, |(_, word)| word);
            tokens = rest;
            if *word == "drop" {
                once(!std::mem::replace(&mut parsed.end, true), word)
                    .map_err(|e| e.at(at.clone()))?;
                continue;
            }
            if !WORDS.contains(word) {
                return Err(unknown(word).at(at.clone()));
            }
            let [(value, value_at), rest @ ..] = tokens else {
                let problem = format!("police: {word} needs a value");
                return Err(TcError::new(problem, format!("write it as in {USAGE}")).at(at.clone()));
            };
            tokens = rest;
            if *word == "rate" {
                parsed.notes.0.extend(note_bytes_a_second(word, value, value_at));
            }
            parsed.take(word, value).map_err(|error| match error {
                Refused::Word(error) => error.at(at.clone()),
                Refused::Value(error) => error.of(&format!("police {word}")).at(value_at.clone()),
            })?;
        }
        parsed.finish().map(Some)
    }

    /// The canonical words: the parameters that differ from tc's defaults.
    pub fn text(&self) -> String {
        let PolicerParams { bps, burst_bytes, mtu_bytes, overhead_bytes } = self.params;
        let mut text = format!("rate {} burst {burst_bytes}", write_rate(bps));
        if mtu_bytes != USUAL_MTU {
            text += &format!(" mtu {mtu_bytes}");
        }
        if overhead_bytes != 0 {
            text += &format!(" overhead {overhead_bytes}");
        }
        text
    }
}

/// The part of a word and its value that is wrong.
enum Refused {
    Word(TcError),
    Value(TcError),
}

impl Parsed {
    fn take(&mut self, word: &str, value: &str) -> Result<(), Refused> {
        let fresh = match word {
            "rate" => self.bps.is_none(),
            "burst" => self.burst.is_none(),
            "mtu" => self.mtu.is_none(),
            "overhead" => self.overhead.is_none(),
            _ => !self.end,
        };
        once(fresh, word).map_err(Refused::Word)?;
        match word {
            "rate" => self.bps = Some(read_rate(value).map_err(Refused::Value)?),
            "burst" => self.burst = Some(read_bytes(value).map_err(Refused::Value)?),
            "mtu" => self.mtu = Some(read_bytes(value).map_err(Refused::Value)? as u32),
            "overhead" => {
                let bytes = read_count(value, 0, 1000).map_err(Refused::Value)?;
                self.overhead = Some(bytes as u32);
            }
            _ if ["drop", "drop/ok", "drop/pass"].contains(&value) => self.end = true,
            _ => return Err(Refused::Value(no_other_end(value))),
        }
        Ok(())
    }

    fn finish(self) -> Result<Police, TcError> {
        let missing = |name: &str| {
            let problem = format!("police: {name} is missing");
            TcError::new(problem, "write it like rate 10mbit burst 64k")
        };
        let bps = self.bps.ok_or_else(|| missing("rate"))?;
        let burst_bytes = self.burst.ok_or_else(|| missing("burst"))?;
        if u128::from(burst_bytes) * 8_000_000_000 / u128::from(bps) > LONGEST {
            let problem = format!(
                "police: a burst of {burst_bytes} bytes at {} lasts more than 274 s",
                write_rate(bps)
            );
            return Err(TcError::new(problem, "write a smaller burst: tc counts it in 32 bits"));
        }
        let params = PolicerParams {
            bps,
            burst_bytes,
            mtu_bytes: self.mtu.unwrap_or(USUAL_MTU),
            overhead_bytes: self.overhead.unwrap_or(0),
        };
        Ok(Police { params, notes: self.notes })
    }
}

/// The longest burst: 2^32 ticks of 64 ns, in ns.
const LONGEST: u128 = (64 << 32) - 1;

fn once(fresh: bool, word: &str) -> Result<(), TcError> {
    if fresh {
        return Ok(());
    }
    Err(TcError::new(format!("police: {word} is given twice"), "write it once"))
}

fn read_bytes(text: &str) -> Result<u64, TcError> {
    match read_size(text)? {
        0 => Err(TcError::new("0 bytes", "write at least a packet, like 1514")),
        size => Ok(size),
    }
}

/// The error for a value that is not a text; `shown` is the quoted value.
pub fn not_a_policer(shown: &str) -> TcError {
    let problem = format!("{shown} is not a policer");
    TcError::new(problem, r#"write a string in tc's syntax, like "rate 10mbit burst 64k""#)
}

fn no_other_end(end: &str) -> TcError {
    let problem = format!("{} is not an action for packets above the rate", quoted(end));
    TcError::new(problem, "a link's policer drops them: write conform-exceed drop, or nothing")
}

fn unknown(word: &str) -> TcError {
    if ABSENT.contains(&word) {
        let problem = format!("police: {word} is not supported");
        return TcError::new(problem, format!("leave it out; known: {USAGE}"));
    }
    if ENDS.contains(&word) {
        return no_other_end(word);
    }
    let common = COMMON_NAMES.iter().find(|(name, _)| *name == word).map(|(_, common)| *common);
    let guess = common.or_else(|| nearest(word, WORDS));
    let known = format!("known words: {}", listed(WORDS));
    TcError::new(format!("police has no word {}", quoted(word)), did_you_mean(guess, &known))
}
