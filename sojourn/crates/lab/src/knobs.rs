//! The knobs of a scenario: each quantity that is a value of its own in the text, and each word of
//! a discipline that is a number. Turning a knob changes that value in the text; the rest of the
//! text, its comments and its blanks, stays as it is.

use scenario::{Table, Value, read_toml};
use serde::Serialize;
use tc::{Discipline, Police, Read, Shaper, Word};
use values::quantity::{
    TIME, format_duration, format_rate, format_size, parse_duration, parse_rate, parse_size,
};

const MS: f64 = 1e6;

/// A value with a slider.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Knob {
    /// The dotted key of the text, with `#word` for a word of a discipline or shaper.
    pub key: String,
    /// Its label: its key, or the word.
    pub name: String,
    /// Its place: the bottleneck, the flow's name.
    pub of: String,
    /// The unit of `value`: ns, bit/s, bytes, packets, a plain number.
    pub unit: &'static str,
    /// The present value.
    pub value: f64,
    /// The value's text.
    pub text: String,
    /// The least value of the slider.
    pub least: f64,
    /// The greatest value of the slider.
    pub most: f64,
    /// Whether it takes whole numbers only.
    pub whole: bool,
}

impl Knob {
    /// Sets bounds, widened to include the present value.
    fn within(self, least: f64, most: f64) -> Knob {
        Knob { least: least.min(self.value), most: most.max(self.value), ..self }
    }
}

/// Keys that name or sort something, or that only change what is recorded.
const NO_KNOBS: [&str; 10] =
    ["title", "label", "name", "kind", "seed", "seeds", "sweep", "record", "congestion", "profile"];

/// The knobs of a scenario, in the order of its text. Swept keys have none.
pub fn of(document: &Table) -> Vec<Knob> {
    let mut swept = Vec::new();
    if let Some(Value::Table(sweep)) = document.get("sweep") {
        walk(sweep, "", "", &mut |key, _, _, _| swept.push(key.to_owned()));
    }
    let mut knobs = Vec::new();
    walk(document, "", "", &mut |key, name, of, value| {
        if !swept.iter().any(|axis| axis == key) {
            knobs.extend(knobs_of(key, name, of, value));
        }
    });
    knobs
}

/// Visits each value in a table and in its inner tables: its dotted key, its own key, its place.
fn walk(table: &Table, path: &str, of: &str, see: &mut impl FnMut(&str, &str, &str, &Value)) {
    for (name, value) in table.iter().filter(|(name, _)| !NO_KNOBS.contains(name)) {
        let key = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        match value {
            Value::Table(below) => {
                let of = if of.is_empty() { name.to_owned() } else { format!("{of} {name}") };
                walk(below, &key, &of, see);
            }
            Value::List(items) if matches!(items.first(), Some(Value::Table(_))) => {
                for (index, item) in items.iter().enumerate() {
                    let Value::Table(below) = item else { continue };
                    let called = ["name", "kind"].iter().find_map(|key| below.get(key)?.text());
                    let of = format!("{name} {}", called.unwrap_or_default());
                    walk(below, &format!("{key}.{index}"), of.trim_end(), see);
                }
            }
            _ => see(&key, name, of, value),
        }
    }
}

fn knobs_of(key: &str, name: &str, of: &str, value: &Value) -> Vec<Knob> {
    let knob = |unit, now: f64, whole| Knob {
        key: key.to_owned(),
        name: name.to_owned(),
        of: of.to_owned(),
        unit,
        value: now,
        text: shown(value),
        least: now,
        most: now,
        whole,
    };
    match (name, value) {
        ("qdisc", Value::Text(text)) => match Discipline::parse(text) {
            Ok(discipline) => of_words(&discipline, key)
                .into_iter()
                .map(|knob| Knob { of: format!("{of} {}", discipline.kind()), ..knob })
                .collect(),
            Err(_) => Vec::new(),
        },
        ("shaper", Value::Text(text)) => match Shaper::parse(text) {
            Ok(Some(shaper)) => vec![Knob {
                key: format!("{key}#rate"),
                name: "shaper rate".into(),
                ..knob("bit/s", shaper.params.bps as f64, true).within(128e3, 1e9)
            }],
            _ => Vec::new(),
        },
        ("police", Value::Text(text)) => match Police::parse(text) {
            Ok(Some(police)) => vec![Knob {
                key: format!("{key}#rate"),
                name: "policer rate".into(),
                ..knob("bit/s", police.params.bps as f64, true).within(128e3, 1e9)
            }],
            _ => Vec::new(),
        },
        (_, Value::Int(count)) => {
            let count = *count as f64;
            match name {
                "count" => vec![knob("", count, true).within(1.0, 64.0)],
                "ring" => vec![knob("packets", count, true).within(1.0, 4096.0)],
                "fps" => vec![knob("", count, true).within(1.0, 120.0)],
                _ => Vec::new(),
            }
        }
        (_, Value::Text(_)) => quantity(value)
            .map(|(unit, now)| {
                let most = match (unit, name) {
                    ("bit/s", _) => (128e3, 1e9),
                    ("ns", "duration") => (2000.0 * MS, 60_000.0 * MS),
                    ("ns", "warmup" | "start" | "stop") => (0.0, 30_000.0 * MS),
                    ("ns", _) => (MS, 1000.0 * MS),
                    _ => (1500.0, 64e6),
                };
                knob(unit, now, true).within(most.0, most.1)
            })
            .into_iter()
            .collect(),
        _ => Vec::new(),
    }
}

/// The unit and the amount of a value that is one quantity.
fn quantity(value: &Value) -> Option<(&'static str, f64)> {
    if let Ok(ns) = parse_duration(value, &TIME) {
        return Some(("ns", ns as f64));
    }
    if let Ok(bps) = parse_rate(value, true) {
        return Some(("bit/s", bps as f64));
    }
    parse_size(value, "a size", 0, u64::MAX).ok().map(|bytes| ("bytes", bytes as f64))
}

fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Int(number) => number.to_string(),
        _ => String::new(),
    }
}

/// The knobs of a discipline's numeric words; their keys are below `key`.
pub fn of_words(discipline: &Discipline, key: &str) -> Vec<Knob> {
    // In a red without sizes these follow from the rate of its link.
    if discipline.is_bare() {
        return Vec::new();
    }
    let record = discipline.record();
    let Some(grammar) = record.grammar(discipline.variant()) else { return Vec::new() };
    let each = grammar.words.iter().filter_map(|word| {
        let set = discipline.fields().get(word.field);
        let value = set.count().map(|count| count as f64).or(set.real())?;
        let (unit, whole, least, most) = bounds(word, value)?;
        Some(Knob {
            key: format!("{key}#{}", word.word),
            name: word.word.into(),
            of: discipline.kind().into(),
            unit,
            value,
            text: word.write(set),
            least: least.min(value),
            most: most.max(value),
            whole,
        })
    });
    each.collect()
}

/// A word's unit, whether it is whole, and the bounds of its slider.
fn bounds(word: &Word, now: f64) -> Option<(&'static str, bool, f64, f64)> {
    Some(match word.read {
        Read::Time | Read::PositiveTime | Read::Microseconds | Read::PositiveMicroseconds => {
            ("ns", true, (now / 50.0).clamp(10_000.0, MS), (now * 20.0).max(100.0 * MS))
        }
        Read::Rate => ("bit/s", true, 128e3, 1e9),
        Read::Count(least, most) | Read::SizeWithin(least, most) => {
            let unit = if word.shows == "PACKETS" { "packets" } else { "" };
            (unit, true, least.max(1) as f64, (most as f64).min((now * 10.0).max(1000.0)))
        }
        Read::Size if word.shows == "PACKETS" => ("packets", true, 1.0, (now * 10.0).max(1000.0)),
        Read::Size => ("bytes", true, 1500.0, (now * 10.0).max(1e6)),
        Read::Real(least, most) | Read::RealAbove(least, most)
            if most.is_finite() && most <= 1.0 =>
        {
            ("", false, least.max(0.0), most)
        }
        _ => return None,
    })
}

// Turning
// -------------------------------------------------------------------------------------------------

/// The text with the value of `key` changed to `value` in its unit; otherwise why not.
pub fn turned(text: &str, key: &str, value: f64) -> Result<String, String> {
    let (document, places) = read_toml(text).map_err(|wrong| wrong.message)?;
    let knob = of(&document).into_iter().find(|knob| knob.key == key);
    let knob = knob.ok_or_else(|| format!("there is no knob {key}"))?;
    let (path, word) = key.split_once('#').map_or((key, None), |(path, word)| (path, Some(word)));
    let place = places.get(path).ok_or_else(|| format!("{key} has no place in the text"))?;
    let written = match word {
        None => text_of(&knob, value),
        Some(word) => {
            let old = at(&document, path).and_then(Value::text).unwrap_or_default();
            let new = match (Shaper::parse(old), Police::parse(old)) {
                (_, Ok(Some(mut police))) => {
                    police.params.bps = whole(value);
                    police.text()
                }
                (Ok(Some(mut shaper)), _) => {
                    shaper.params.bps = whole(value);
                    shaper.text()
                }
                _ => word_turned(old, word, value)?,
            };
            format!("\"{new}\"")
        }
    };
    let span = span(text, *place).ok_or_else(|| format!("{key} is not written on one line"))?;
    Ok(format!("{}{written}{}", &text[..span.start], &text[span.end..]))
}

/// A discipline with one of its words changed to `value` in its unit; otherwise why not.
pub fn word_turned(qdisc: &str, word: &str, value: f64) -> Result<String, String> {
    let discipline = Discipline::parse(qdisc).map_err(|error| error.problem)?;
    let grammar = discipline.record().grammar(discipline.variant());
    let known = grammar.and_then(|grammar| grammar.words.iter().find(|known| known.word == word));
    let known = known.ok_or_else(|| format!("{} has no word {word}", discipline.kind()))?;
    let value = match known.read {
        Read::Real(..) | Read::RealAbove(..) => tc::Value::Real(value),
        Read::Microseconds | Read::PositiveMicroseconds => {
            tc::Value::Count(whole(value / 1000.0) * 1000)
        }
        _ => tc::Value::Count(whole(value)),
    };
    let text = discipline.with(known.field, value).text();
    Discipline::parse(&text).map(|read| read.text()).map_err(|error| error.problem)
}

/// A value as a file contains it.
fn text_of(knob: &Knob, value: f64) -> String {
    match knob.unit {
        "ns" => format!("\"{}\"", format_duration(whole(value))),
        "bit/s" => format!("\"{}\"", format_rate(whole(value))),
        "bytes" => format!("\"{}\"", format_size(whole(value))),
        _ => whole(value).to_string(),
    }
}

fn whole(value: f64) -> u64 {
    value.max(0.0).round() as u64
}

/// The value under a dotted key of tables and lists of tables.
fn at<'v>(document: &'v Table, path: &str) -> Option<&'v Value> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(a, b)| (a, Some(b)));
    let value = document.get(first)?;
    match (rest, value) {
        (None, _) => Some(value),
        (Some(rest), Value::Table(below)) => at(below, rest),
        (Some(rest), Value::List(items)) => {
            let (index, rest) = rest.split_once('.')?;
            at(items.get(index.parse::<usize>().ok()?)?.table()?, rest)
        }
        _ => None,
    }
}

/// The bytes of the text or number that begins at this line and column.
fn span(text: &str, (line, column): (usize, usize)) -> Option<std::ops::Range<usize>> {
    let row = text.split_inclusive('\n').nth(line - 1)?;
    let start_of_line = row.as_ptr() as usize - text.as_ptr() as usize;
    let begin = row.char_indices().nth(column - 1)?.0;
    let rest = &row[begin..];
    let length = match rest.chars().next()? {
        quote @ ('"' | '\'') => rest[1..].find(quote)? + 2,
        _ => rest.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(rest.len()),
    };
    let begin = start_of_line + begin;
    Some(begin..begin + length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::load;

    const HOME: &str = r#"
# A home line.
duration = "10 s"   # not long
[bottleneck]
delay = "8 ms"
qdisc = "codel limit 500 target 5ms"   # tc's syntax
up.rate = "10 Mbit/s"
down = { rate = "50 Mbit/s" }
shaper = "htb rate 9mbit"
police = "rate 30mbit burst 60k mtu 1514"
[[flow]]
name = "backup"
kind = "bulk"
count = 2
rtt = "uniform 20 ms .. 40 ms"
"#;

    fn knobs_in(text: &str) -> Vec<Knob> {
        of(&read_toml(text).expect("it is TOML").0)
    }

    fn knobs() -> Vec<Knob> {
        knobs_in(HOME)
    }

    #[test]
    fn every_quantity_that_stands_alone_can_be_turned() {
        let keys: Vec<_> = knobs().into_iter().map(|knob| knob.key).collect();
        for key in [
            "duration",
            "bottleneck.delay",
            "bottleneck.qdisc#limit",
            "bottleneck.qdisc#target",
            "bottleneck.qdisc#interval",
            "bottleneck.up.rate",
            "bottleneck.down.rate",
            "bottleneck.shaper#rate",
            "bottleneck.police#rate",
            "flow.0.count",
        ] {
            assert!(keys.iter().any(|known| known == key), "{key} of {keys:?}");
        }
        assert!(!keys.iter().any(|key| key.ends_with("rtt")), "a range has no single value");
    }

    #[test]
    fn turning_changes_one_value_and_nothing_else_of_the_text() {
        for (key, value, old, new) in [
            ("duration", 20e9, "\"10 s\"", "\"20 s\""),
            ("bottleneck.up.rate", 2.5e6, "\"10 Mbit/s\"", "\"2.5 Mbit/s\""),
            ("bottleneck.down.rate", 1e8, "\"50 Mbit/s\"", "\"100 Mbit/s\""),
            ("flow.0.count", 7.0, "count = 2", "count = 7"),
            ("bottleneck.qdisc#target", 20e6, "limit 500 target 5ms", "limit 500 target 20ms"),
            ("bottleneck.qdisc#interval", 5e7, "target 5ms", "interval 50ms"),
            ("bottleneck.shaper#rate", 8e6, "htb rate 9mbit", "htb rate 8mbit"),
            ("bottleneck.police#rate", 4e7, "30mbit burst 60k", "40mbit burst 61440"),
        ] {
            let text = turned(HOME, key, value).expect(key);
            if key.ends_with("interval") {
                // Default values are not written.
                assert!(text.contains("codel limit 500 interval 50ms"), "{text}");
                continue;
            }
            assert_eq!(text, HOME.replace(old, new), "{key}");
        }
    }

    #[test]
    fn the_text_has_the_value_of_the_knob_that_was_turned() {
        for knob in knobs() {
            // A delay beyond the RTT is refused.
            let most = if knob.key == "bottleneck.delay" { 9e6 } else { knob.most };
            let turned = turned(HOME, &knob.key, most).expect(&knob.key);
            load(&turned).unwrap_or_else(|wrong| panic!("{}: {wrong:?}", knob.key));
            let after = knobs_in(&turned).into_iter().find(|after| after.key == knob.key);
            let after = after.expect(&knob.key);
            assert!((after.value - most).abs() <= 1e-3 * most, "{after:?}");
        }
    }
}
