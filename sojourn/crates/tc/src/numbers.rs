//! Reads and writes tc's numbers, times, sizes and rates.
//!
//! A bare TIME is microseconds, `k` in a SIZE is 1024, a RATE's `kbps` is 1000 *bytes* a second.
//!
//! Source: tc(8). Deviations: a number beyond 32 bits and a leading 0, which tc reads as octal, are
//! refused.

use crate::error::{Note, TcError};
use link::Cells;
use std::fmt;
use std::ops::Range;
use values::quantity::format_rate;
use values::text::{listed, number, quoted};

/// The largest of tc's numbers, which have 32 bits.
pub const U32: u64 = u32::MAX as u64;
/// 10 Tbit/s: the largest rate that is accepted, bit/s.
pub const MAX_RATE: u64 = 10_000_000_000_000;

type Units = &'static [(&'static str, u64)];

const TIMES: Units = &[
    ("", 1_000),
    ("ns", 1),
    ("nsec", 1),
    ("nsecs", 1),
    ("us", 1_000),
    ("usec", 1_000),
    ("usecs", 1_000),
    ("ms", 1_000_000),
    ("msec", 1_000_000),
    ("msecs", 1_000_000),
    ("s", 1_000_000_000),
    ("sec", 1_000_000_000),
    ("secs", 1_000_000_000),
];
const SIZES: Units = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kb", 1 << 10),
    ("m", 1 << 20),
    ("mb", 1 << 20),
    ("g", 1 << 30),
    ("gb", 1 << 30),
    ("kbit", (1 << 10) / 8),
    ("mbit", (1 << 20) / 8),
    ("gbit", (1 << 30) / 8),
];
/// `bps` is bytes a second.
const RATES: Units = &[
    ("bit", 1),
    ("kbit", 1_000),
    ("mbit", 1_000_000),
    ("gbit", 1_000_000_000),
    ("tbit", 1_000_000_000_000),
    ("kibit", 1 << 10),
    ("mibit", 1 << 20),
    ("gibit", 1 << 30),
    ("tibit", 1 << 40),
    ("bps", 8),
    ("kbps", 8_000),
    ("mbps", 8_000_000),
    ("gbps", 8_000_000_000),
    ("tbps", 8_000_000_000_000),
    ("kibps", 8 << 10),
    ("mibps", 8 << 20),
    ("gibps", 8 << 30),
    ("tibps", 8 << 40),
    ("", 1),
];

/// Splits a text into the digits before and behind the point, up to 18 each, and the unit.
fn split(text: &str) -> Option<(u128, &str, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = text.split_at(digits(text));
    let (fraction, unit) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    let any = !whole.is_empty() || !fraction.is_empty();
    let sized = whole.len() <= 18 && fraction.len() <= 18;
    let named = unit.bytes().all(|b| b.is_ascii_alphabetic() || b == b'/' || b == b'%');
    (any && sized && named).then(|| (whole.parse().unwrap_or(0), fraction, unit))
}

fn scaled(text: &str, what: &str, units: Units, example: &str, most: u64) -> Result<u64, TcError> {
    let Some((whole, fraction, unit)) = split(text) else {
        return Err(TcError::new(
            format!("{} is not {what} in tc's syntax", quoted(text)),
            format!("write it like {example}"),
        ));
    };
    let lower = unit.to_ascii_lowercase();
    let Some(&(_, scale)) = units.iter().find(|(name, _)| *name == lower) else {
        let noun = what.rsplit(' ').next().unwrap_or(what);
        let known = listed(units.iter().map(|(name, _)| *name).filter(|name| !name.is_empty()));
        return Err(TcError::new(
            format!("{} is not a unit of {noun} in tc's syntax", quoted(unit)),
            format!("known units: {known}"),
        ));
    };
    let tail = u128::from(scale) * fraction.parse::<u128>().unwrap_or(0);
    let parts = 10_u128.pow(fraction.len() as u32);
    if tail % parts != 0 {
        return Err(TcError::new(
            format!("{} is not a whole number", quoted(text)),
            format!("write it like {example}"),
        ));
    }
    let exact = whole * u128::from(scale) + tail / parts;
    u64::try_from(exact).ok().filter(|exact| *exact <= most).ok_or_else(|| {
        TcError::new(format!("{} is too large", quoted(text)), format!("the most is {most}"))
    })
}

/// Reads a TIME, ns; tc stores it in 32 bits of microseconds.
pub fn read_time(text: &str) -> Result<u64, TcError> {
    scaled(text, "a time", TIMES, "5ms (a bare number is microseconds)", U32 * 1_000)
}

/// Reads a TIME above zero, ns.
pub fn read_positive_time(text: &str) -> Result<u64, TcError> {
    match read_time(text)? {
        0 => Err(TcError::new(
            format!("{} must be above zero", quoted(text)),
            "write a time like 100ms".to_owned(),
        )),
        ns => Ok(ns),
    }
}

/// Reads a SIZE, bytes.
pub fn read_size(text: &str) -> Result<u64, TcError> {
    scaled(text, "a size", SIZES, "30000 or 30k (k is 1024)", U32)
}

/// Reads a RATE above zero, bit/s.
pub fn read_rate(text: &str) -> Result<u64, TcError> {
    if text.ends_with('%') {
        return Err(TcError::new(
            format!("{}: a share of a device's rate is not supported", quoted(text)),
            "write a rate like 10mbit",
        ));
    }
    match scaled(text, "a rate", RATES, "10mbit (bps is bytes a second)", MAX_RATE)? {
        0 => Err(TcError::new(
            format!("{} must be above zero", quoted(text)),
            "write a rate like 10mbit".to_owned(),
        )),
        bps => Ok(bps),
    }
}

/// A note on a RATE in bytes a second: `20Mbps` probably means bits. `word` is the word before it.
pub(crate) fn note_bytes_a_second(word: &str, text: &str, at: &Range<usize>) -> Option<Note> {
    let bits = format!("{}bit", text.to_ascii_lowercase().strip_suffix("bps")?);
    let bps = read_rate(text).ok()?;
    let meant = format_rate(read_rate(&bits).ok()?);
    Some(Note {
        message: format!("{word} {text} is {}: to tc bps is bytes a second", format_rate(bps)),
        hint: format!("write {word} {bits} if {meant} is meant, else {word} {}", write_rate(bps)),
        at: at.clone(),
    })
}

/// Reads a whole number, decimal or hexadecimal.
pub fn read_count(text: &str, least: u64, most: u64) -> Result<u64, TcError> {
    let decimal = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if let Some(packets) = text.strip_suffix(['p', 'P'])
        && decimal(packets)
    {
        return Err(TcError::new(
            format!("tc prints {} but reads only a bare number", quoted(text)),
            format!("write {packets}"),
        ));
    }
    if text.len() > 1 && text.starts_with('0') && decimal(text) {
        let digits = text.trim_start_matches('0');
        return Err(TcError::new(
            format!("{} begins with 0, which tc reads as octal", quoted(text)),
            format!("write {}", if digits.is_empty() { "0" } else { digits }),
        ));
    }
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let number = match hexadecimal {
        Some(digits) if digits.len() <= 15 && digits.bytes().all(|b| b.is_ascii_hexdigit()) => {
            u64::from_str_radix(digits, 16).ok()
        }
        None if decimal(text) && text.len() <= 18 => text.parse().ok(),
        _ => None,
    };
    let Some(number) = number else {
        return Err(TcError::new(
            format!("{} is not a whole number", quoted(text)),
            "write it like 1000".to_owned(),
        ));
    };
    within(text, number, least, most)
}

/// Reads a whole number that may be negative.
pub fn read_integer(text: &str, least: i64, most: i64) -> Result<i64, TcError> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let integer = sign * read_count(digits, 0, U32)? as i64;
    within(text, integer, least, most)
}

/// The number in this text, if it is within these bounds.
pub(crate) fn within<T: PartialOrd + fmt::Display>(
    text: &str,
    number: T,
    least: T,
    most: T,
) -> Result<T, TcError> {
    if (&least..=&most).contains(&&number) {
        return Ok(number);
    }
    let problem = format!("{} is out of range", quoted(text));
    Err(TcError::new(problem, format!("write a number from {least} to {most}")))
}

/// Reads a real number from `least` to `most`. `open_below`: `least` itself is excluded.
pub fn read_real(text: &str, least: f64, most: f64, open_below: bool) -> Result<f64, TcError> {
    let Some(real) = real(text) else {
        let problem = format!("{} is not a number", quoted(text));
        return Err(TcError::new(problem, "write it like 0.02"));
    };
    if !(least..=most).contains(&real) || (open_below && real == least) {
        let bound = if open_below { "above" } else { "from" };
        return Err(TcError::new(
            format!("{} is out of range", quoted(text)),
            format!("write a number {bound} {} to {}", number(least), number(most)),
        ));
    }
    Ok(real)
}

/// Parses up to 18 digits before the point, 24 behind it and 2 in the exponent.
fn real(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits =
        |text: &str, most: usize| text.len() <= most && text.bytes().all(|b| b.is_ascii_digit());
    let shaped = digits(whole, 18) && digits(fraction, 24) && digits(unsigned, 2);
    let none = unsigned.is_empty() || (whole.is_empty() && fraction.is_empty());
    if shaped && !none { text.parse().ok() } else { None }
}

/// Reads tc's `linklayer`: how a line cuts packets.
pub(crate) fn read_link_layer(text: &str) -> Result<Cells, TcError> {
    match text {
        "ethernet" => Ok(Cells::None),
        "atm" | "adsl" => Ok(Cells::Atm),
        _ => Err(TcError::new(
            format!("unknown linklayer {}", quoted(text)),
            "one of ethernet, atm, adsl",
        )),
    }
}

/// Writes a time in the largest unit in which it is whole: `100ms`.
pub fn write_time(ns: u64) -> String {
    match ns {
        0 => "0us".to_owned(),
        _ => in_units(ns, &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)]),
    }
}

/// Writes a rate in the largest unit in which it is whole: `10mbit`.
pub fn write_rate(bps: u64) -> String {
    in_units(bps, &[("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)])
}

fn in_units(value: u64, units: &[(&str, u64)]) -> String {
    let (unit, scale) =
        units.iter().find(|(_, scale)| value.is_multiple_of(*scale)).expect("the last is 1");
    format!("{}{unit}", value / scale)
}
