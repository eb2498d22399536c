//! Quantities as people write them, "20 Mbit/s", "5 ms", "50 kB", "0.1 %", and as the engine counts
//! them.
//!
//! The engine counts in integers: nanoseconds, bit/s, bytes; a probability is a fraction. Text is
//! parsed exactly, in decimal, so 0.1 ms is exactly 100000 ns; a value finer than the unit of
//! counting is refused rather than rounded. Each `parse_` has a `format_` that writes the shortest
//! text that reads back as the same value.
//!
//! Source: decimal prefixes are SI's (kbit/s = 1000 bit/s, kB = 1000 B), KiB, MiB and GiB are IEC
//! 80000-13's.

use crate::text::nearest;
use crate::text::quoted as quoted_words;
use crate::value::{Value, general, quoted, real};
use crate::wrong::Wrong;

/// Ten years: the longest time, ns.
pub const MAX_DURATION: u64 = 10 * 365 * 86_400 * 1_000_000_000;
/// 10 Tbit/s, bit/s.
pub const MAX_RATE: u64 = 10_000_000_000_000;
/// 1 PB, bytes.
pub const MAX_SIZE: u64 = 1_000_000_000_000_000;

const DURATION: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
/// Further units of the calendar.
const DAYS: &[(&str, u64)] = &[("d", 86_400_000_000_000), ("w", 604_800_000_000_000)];
const RATE: &[(&str, u64)] = &[
    ("bit/s", 1),
    ("kbit/s", 1_000),
    ("Mbit/s", 1_000_000),
    ("Gbit/s", 1_000_000_000),
    ("Tbit/s", 1_000_000_000_000),
];
const SIZE: &[(&str, u64)] = &[
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

const PROBABILITY: &str = "write a percentage in quotes, like \"0.1 %\", or a fraction, like 0.001";

/// Other spellings, and the units that they mean.
const DURATION_ALIASES: &[(&[&str], &str)] = &[
    (&["sec", "secs", "second", "seconds", "S"], "s"),
    (&["msec", "msecs", "millisecond", "milliseconds", "MS", "Ms"], "ms"),
    (&["usec", "usecs", "microsecond", "microseconds"], "us"),
    (&["nsec", "nanosecond", "nanoseconds"], "ns"),
    (&["m", "mins", "minute", "minutes"], "min"),
    (&["hour", "hours", "hr", "H"], "h"),
];
const DAYS_ALIASES: &[(&[&str], &str)] =
    &[(&["day", "days", "D"], "d"), (&["week", "weeks", "W"], "w")];
const SIZE_ALIASES: &[(&[&str], &str)] = &[
    (&["b", "byte", "bytes", "octets"], "B"),
    (&["KB", "K", "k", "kb", "Kb"], "kB"),
    (&["M", "mb", "Mb"], "MB"),
    (&["G", "gb", "Gb"], "GB"),
    (&["kiB", "Ki"], "KiB"),
    (&["Mi", "miB"], "MiB"),
    (&["Gi", "giB"], "GiB"),
];

/// Every unit of a quantity except `%`.
pub fn units() -> impl Iterator<Item = &'static str> {
    [DURATION, RATE, SIZE].into_iter().flatten().map(|(unit, _)| *unit)
}

/// The accepted times.
#[derive(Clone, Copy, Debug)]
pub struct Times<'a> {
    /// Its name in messages: `a duration`.
    pub what: &'a str,
    /// An example: `5 ms`.
    pub example: &'a str,
    /// Whether it may be zero.
    pub zero: bool,
    /// The longest, ns.
    pub most: u64,
    /// Whether it may be written in days and weeks.
    pub days: bool,
}

/// A time of any length.
pub const TIME: Times<'static> =
    Times { what: "a duration", example: "5 ms", zero: true, most: MAX_DURATION, days: false };

/// Nanoseconds. `5 ms`, `1.5 s`, `2 min`; with `days` also `7 d`, `2 w`.
pub fn parse_duration(value: &Value, times: &Times<'_>) -> Result<u64, Wrong> {
    let (mut units, mut aliases) = (DURATION.to_vec(), flat(DURATION_ALIASES));
    if times.days {
        units.extend(DAYS);
        aliases.extend(flat(DAYS_ALIASES));
    }
    let ns = quantity(value, times.what, times.example, &units, &aliases, "a nanosecond")?;
    if ns == 0 && !times.zero {
        let hint = format!("write a time above zero, like \"{}\"", times.example);
        return Err(Wrong::new(format!("{} of zero", times.what), hint));
    }
    if ns > u128::from(times.most) {
        let most = format_duration(times.most);
        return Err(Wrong::new(format!("{} is too long: the most is {most}", quoted(value)), ""));
    }
    Ok(ns as u64)
}

/// Bit/s. `20 Mbit/s` only, because `Mbps` and `mbit` mean different things to different programs.
pub fn parse_rate(value: &Value, zero: bool) -> Result<u64, Wrong> {
    let mut aliases = Vec::new();
    for (unit, _) in RATE {
        let short = unit.trim_end_matches("bit/s");
        for end in ["bit", "bps", "bits/s", "b/s", "Bit/s", "bit/sec"] {
            let alias = format!("{short}{end}");
            aliases.extend([(alias.to_ascii_lowercase(), *unit), (alias, *unit)]);
        }
        if !short.is_empty() {
            aliases.extend([(short.to_owned(), *unit), (short.to_ascii_lowercase(), *unit)]);
        }
    }
    let rate = quantity(value, "a rate", "20 Mbit/s", RATE, &aliases, "one bit/s")?;
    if rate == 0 && !zero {
        let hint = "write a rate above zero, like \"20 Mbit/s\"; an outage is a step of a schedule";
        return Err(Wrong::new("a rate of zero", hint));
    }
    if rate > u128::from(MAX_RATE) {
        return Err(Wrong::new(
            format!("{} is too fast: the most is 10 Tbit/s", quoted(value)),
            "",
        ));
    }
    Ok(rate as u64)
}

/// Bytes. `1500 B`, `50 kB` (50000), `5 MiB` (5 × 2^20).
pub fn parse_size(value: &Value, what: &str, least: u64, most: u64) -> Result<u64, Wrong> {
    let size = quantity(value, what, "1500 B", SIZE, &flat(SIZE_ALIASES), "one byte")?;
    if size < u128::from(least) {
        let least = format_size(least);
        return Err(Wrong::new(
            format!("{} is too small: the least is {least}", quoted(value)),
            "",
        ));
    }
    if size > u128::from(most) {
        let most = format_size(most);
        return Err(Wrong::new(format!("{} is too large: the most is {most}", quoted(value)), ""));
    }
    Ok(size as u64)
}

/// A fraction. `0.1 %`, `0.001`; 0 to 1.
pub fn parse_probability(value: &Value) -> Result<f64, Wrong> {
    let none = || no_probability(&quoted(value));
    let fraction = match value {
        Value::Int(number) => *number as f64,
        Value::Float(number) => *number,
        Value::Text(text) => {
            let (number, rest) = number_of(text.trim_start_matches(is_blank)).ok_or_else(none)?;
            let percent = match rest.trim_matches(is_blank) {
                "" => false,
                "%" => true,
                _ => return Err(none()),
            };
            Exact::of(number).fraction(percent)
        }
        _ => return Err(none()),
    };
    if (0.0..=1.0).contains(&fraction) {
        return Ok(fraction);
    }
    let problem = format!("{} is not between 0 and 1 (0 % and 100 %)", quoted(value));
    Err(Wrong::new(problem, PROBABILITY))
}

/// The error for a value that is not a probability.
pub fn no_probability(shown: &str) -> Wrong {
    Wrong::new(format!("{shown} is not a probability"), PROBABILITY)
}

/// `5 ms` for 5000000.
pub fn format_duration(ns: u64) -> String {
    format(ns, &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)], "s")
}

/// `20 Mbit/s` for 20000000.
pub fn format_rate(bps: u64) -> String {
    let units: Vec<_> = RATE.iter().rev().copied().collect();
    format(bps, &units, "bit/s")
}

/// `1500 B`, `50 kB`; binary units only if they are whole and decimal ones are not: `5 MiB`.
pub fn format_size(size: u64) -> String {
    let (decimal, binary) = SIZE.split_at(5);
    let units = decimal[1..].iter().rev().chain(binary.iter().rev());
    for (unit, scale) in units {
        if size >= 2 * scale && size.is_multiple_of(*scale) {
            return format!("{} {unit}", size / scale);
        }
    }
    format!("{size} B")
}

/// `0.1 %` for 0.001, if the percentage reads back as the same number; otherwise the number itself.
pub fn format_probability(fraction: f64) -> String {
    let percent = general(fraction * 100.0, 6);
    let back = number_of(&percent)
        .filter(|(_, rest)| rest.is_empty())
        .map(|(n, _)| Exact::of(n).fraction(true));
    if back == Some(fraction) { format!("{percent} %") } else { format_number(fraction) }
}

/// The shortest decimal of this number: `0.02`, `1e-07`.
pub fn format_number(number: f64) -> String {
    if number == 0.0 || (1e-6..1e15).contains(&number.abs()) {
        format!("{number}")
    } else {
        real(number)
    }
}

/// Writes it in the largest unit in which the value is at least 1 and has at most three decimals.
fn format(value: u64, units: &[(&str, u64)], none: &str) -> String {
    if value == 0 {
        return format!("0 {none}");
    }
    for (unit, scale) in units {
        let thousandths = u128::from(value) * 1000;
        if value >= *scale && thousandths.is_multiple_of(u128::from(*scale)) {
            let thousandths = thousandths / u128::from(*scale);
            let decimals = format!(".{:03}", thousandths % 1000);
            let decimals = decimals.trim_end_matches('0').trim_end_matches('.');
            return format!("{}{decimals} {unit}", thousandths / 1000);
        }
    }
    unreachable!("every value is a whole number of the least unit")
}

fn flat(aliases: &[(&[&str], &'static str)]) -> Vec<(String, &'static str)> {
    aliases
        .iter()
        .flat_map(|(words, unit)| words.iter().map(|word| ((*word).to_owned(), *unit)))
        .collect()
}

/// Python's and C's blanks of ASCII.
pub fn is_blank(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

/// Splits a text after the number at its start: up to 18 digits, 24 decimals, an exponent. That
/// covers every number a float can print; more digits only make arithmetic slow.
fn number_of(text: &str) -> Option<(&str, &str)> {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(0);
    if whole == 0 || whole > 18 {
        return None;
    }
    let mut end = whole;
    if text[end..].starts_with('.') {
        let decimals = digits(end + 1);
        if decimals > 24 {
            return None;
        }
        end += if decimals == 0 { 0 } else { 1 + decimals };
    }
    let rest = &text[end..];
    if rest.starts_with(['e', 'E']) {
        let sign = usize::from(rest[1..].starts_with(['+', '-']));
        let figures = digits(end + 1 + sign);
        if (1..=3).contains(&figures) {
            end += 1 + sign + figures;
        }
    }
    Some((&text[..end], &text[end..]))
}

/// A number and its unit, and the offset of the unit.
fn split(text: &str) -> Option<(&str, Option<&str>, usize)> {
    let start = text.trim_start_matches(is_blank);
    let (number, rest) = number_of(start)?;
    let end = rest.trim_start_matches(is_blank);
    let unit = end.trim_end_matches(is_blank);
    if unit.is_empty() {
        return Some((number, None, 0));
    }
    if unit.contains(is_blank) || unit.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let at = text.len() - end.len();
    Some((number, Some(unit), text[..at].chars().count()))
}

/// A number as it was written: mantissa × 10^exponent.
struct Exact {
    digits: String,
    exponent: i64,
}

impl Exact {
    fn of(written: &str) -> Exact {
        let (number, exponent) = written.split_once(['e', 'E']).unwrap_or((written, "0"));
        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        let mut digits = format!("{whole}{decimals}");
        let mut exponent = exponent.parse::<i64>().unwrap_or(0) - decimals.len() as i64;
        while digits.ends_with('0') {
            digits.pop();
            exponent += 1;
        }
        Exact { digits: digits.trim_start_matches('0').to_owned(), exponent }
    }

    /// The number as a float; for a percentage a hundredth of it.
    fn fraction(&self, percent: bool) -> f64 {
        let exponent = self.exponent - if percent { 2 } else { 0 };
        let digits = if self.digits.is_empty() { "0" } else { &self.digits };
        format!("{digits}e{exponent}").parse().unwrap_or(f64::NAN)
    }

    /// This many of a unit, if that is whole; the error is true if it is too large, false if it is
    /// too fine.
    fn times(&self, unit: u64) -> Result<u128, bool> {
        if self.digits.is_empty() {
            return Ok(0);
        }
        if self.fraction(false) * unit as f64 > 1.000_000_000_1e21 {
            return Err(true);
        }
        let Ok(mut mantissa) = self.digits.parse::<u128>() else { return Err(false) };
        let mut unit = u128::from(unit);
        for _ in self.exponent..0 {
            for factor in [2, 5] {
                if mantissa.is_multiple_of(factor) {
                    mantissa /= factor;
                } else if unit.is_multiple_of(factor) {
                    unit /= factor;
                } else {
                    return Err(false);
                }
            }
        }
        let scale = 10u128.checked_pow(self.exponent.max(0) as u32).ok_or(true)?;
        mantissa
            .checked_mul(unit)
            .and_then(|n| n.checked_mul(scale))
            .filter(|n| *n <= 10u128.pow(21))
            .ok_or(true)
    }

    /// The product with `by`, written out.
    fn multiplied(&self, by: u128) -> String {
        let mantissa = self.digits.parse::<u128>().unwrap_or(0) * by;
        let mut digits = mantissa.to_string();
        if self.exponent >= 0 {
            return if mantissa == 0 {
                digits
            } else {
                digits + &"0".repeat(self.exponent as usize)
            };
        }
        let decimals = (-self.exponent) as usize;
        while digits.len() <= decimals {
            digits.insert(0, '0');
        }
        digits.insert(digits.len() - decimals, '.');
        digits.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

/// The error for a value that is neither text nor a number.
pub fn unlike(shown: &str, what: &str, example: &str) -> Wrong {
    Wrong::new(format!("{shown} is not {what}"), in_quotes(what, example))
}

fn in_quotes(what: &str, example: &str) -> String {
    format!("write {what} in quotes, like \"{example}\"")
}

fn quantity(
    value: &Value,
    what: &str,
    example: &str,
    units: &[(&'static str, u64)],
    aliases: &[(String, &'static str)],
    grain: &str,
) -> Result<u128, Wrong> {
    let default = example.split(' ').nth(1).unwrap_or_default();
    let bare = |number: String, small: bool| {
        let hint =
            if small { format!("write \"{number} {default}\"") } else { in_quotes(what, example) };
        Err(Wrong::new(format!("{what} needs a unit; {} is a bare number", quoted(value)), hint))
    };
    let text = match value {
        Value::Text(text) => text,
        Value::Int(number) => return bare(number.to_string(), (0..1_000_000_000).contains(number)),
        Value::Float(number) => return bare(real(*number), (0.0..1e9).contains(number)),
        _ => return Err(unlike(&quoted(value), what, example)),
    };
    let Some((number, unit, at)) = split(text) else {
        return Err(not_a_quantity(text, what, example));
    };
    let Some(unit) = unit else {
        let hint = format!("write \"{number} {default}\"");
        return Err(Wrong::new(format!("{what} needs a unit; {} has none", quoted(value)), hint));
    };
    let Some((_, scale)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err(unknown_unit(number, unit, what, units, aliases).at(at));
    };
    Exact::of(number).times(*scale).map_err(|much| {
        if much {
            let hint = format!("write something like \"{example}\"");
            return Wrong::new(format!("{} is far too large for {what}", quoted(value)), hint);
        }
        let hint = format!("{what} is counted in whole multiples of {grain}");
        Wrong::new(format!("{} is finer than {grain}", quoted(value)), hint)
    })
}

fn not_a_quantity(text: &str, what: &str, example: &str) -> Wrong {
    let hint = format!("write a number and a unit, like \"{example}\"");
    let shown = quoted_words(text);
    let text = text.trim();
    if text.is_empty() {
        return Wrong::new(format!("{what} is empty"), hint);
    }
    if text.starts_with('-') {
        return Wrong::new(format!("{what} can't be negative: {shown}"), hint);
    }
    let lower = text.trim_start_matches('+').to_ascii_lowercase();
    if text.matches('+').count() <= 1 && (lower.starts_with("nan") || lower.starts_with("inf")) {
        return Wrong::new(format!("{shown} is not a finite number"), hint);
    }
    if let Some(corrected) = with_point(text) {
        return Wrong::new(
            format!("{shown} has a comma"),
            format!("decimals take a point: \"{corrected}\""),
        );
    }
    Wrong::new(format!("{shown} is not {what}"), hint)
}

/// `5,5` with a point, if the text begins like that.
pub fn with_point(text: &str) -> Option<String> {
    let (whole, rest) = text.split_once(',')?;
    let number = !whole.is_empty() && whole.bytes().all(|c| c.is_ascii_digit());
    (number && rest.starts_with(|c: char| c.is_ascii_digit()) && !rest.contains('\n'))
        .then(|| text.replacen(',', ".", 1))
}

fn unknown_unit(
    number: &str,
    unit: &str,
    what: &str,
    units: &[(&'static str, u64)],
    aliases: &[(String, &'static str)],
) -> Wrong {
    let problem = format!(
        "{} is not a unit of {}",
        quoted_words(unit),
        what.strip_prefix("a ").unwrap_or(what)
    );
    let known: Vec<_> =
        units.iter().map(|(unit, _)| *unit).filter(|unit| unit.is_ascii()).collect();
    let known_units = format!("known units: {}", known.join(", "));
    let rates = known.contains(&"bit/s");
    let bytes = ["B/s", "Bps", "BPS"].iter().find_map(|end| unit.strip_suffix(end));
    if let Some(prefix @ ("k" | "K" | "M" | "G" | "T" | "")) = bytes.filter(|_| rates) {
        let prefix = if prefix == "K" { "k" } else { prefix };
        let bits = Exact::of(number).multiplied(8);
        return Wrong::new(
            problem,
            format!("that is bytes a second: write \"{bits} {prefix}bit/s\""),
        );
    }
    if let Some((_, meant)) = aliases.iter().find(|(alias, _)| alias == unit) {
        return Wrong::new(problem, format!("write \"{number} {meant}\""));
    }
    let lower = unit.to_ascii_lowercase();
    let by_alias = aliases
        .iter()
        .rev()
        .find(|(alias, _)| alias.to_ascii_lowercase() == lower)
        .map(|(_, unit)| *unit);
    let by_unit = || {
        units
            .iter()
            .rev()
            .find(|(name, _)| name.to_ascii_lowercase() == lower)
            .map(|(name, _)| *name)
    };
    if let Some(meant) = by_alias.or_else(by_unit) {
        return Wrong::new(problem, format!("write \"{number} {meant}\"; capitals matter"));
    }
    match nearest(unit, known) {
        Some(guess) => {
            Wrong::new(problem, format!("did you mean \"{number} {guess}\"? {known_units}"))
        }
        None => Wrong::new(problem, known_units),
    }
}
