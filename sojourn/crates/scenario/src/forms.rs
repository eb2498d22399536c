//! The forms of keys: each reads a value, refuses it with a message, and writes it back.
//!
//! A form is named once here and used by every key of its kind (`model.rs`, `tcp.rs`). A written
//! value reads back as the same value.

use crate::laws::{Spread, read_draw, write_draw};
use crate::problem::{Key, below};
use crate::reader::{Form, KeyOf, Reader, Tables};
use crate::wire::{self, Loss};
use link::{DelayJitter, Duplication, EcnRemark, Framing, Reordering, Slots};
use std::collections::BTreeSet;
use tc::disciplines::own::OwnClass;
use tc::{Discipline, Police, Shaper, TcError};
use units::Ecn;
use values::quantity::{
    TIME, Times, format_duration, format_probability, format_rate, format_size, parse_duration,
    parse_probability, parse_rate, parse_size,
};
use values::text::{in_quotes, nearest, printable};
use values::{Value, Wrong, dscp, quoted};

/// A form that needs the value alone.
pub(crate) struct Plain<T> {
    pub(crate) read: fn(&Value) -> Result<T, Wrong>,
    pub(crate) write: fn(&T) -> Value,
}

impl<T> Form<T> for Plain<T> {
    fn read(&self, value: &Value, key: &Key, reader: &mut Reader<'_>) -> Option<T> {
        (self.read)(value).map_err(|wrong| reader.refuse(wrong, key)).ok()
    }

    fn write(&self, value: &T, _all: bool) -> Value {
        (self.write)(value)
    }
}

/// A table inside a table.
pub(crate) struct Sub;

impl<T: Tables> Form<T> for Sub {
    fn read(&self, value: &Value, key: &Key, reader: &mut Reader<'_>) -> Option<T> {
        reader.table(value, key)
    }

    fn write(&self, value: &T, all: bool) -> Value {
        Value::Table(value.entries(all))
    }

    fn below(&self) -> Option<fn() -> Vec<KeyOf>> {
        Some(T::keys_whole)
    }
}

/// A whole number or a real number within bounds.
pub(crate) struct Within<N> {
    pub(crate) least: N,
    pub(crate) most: N,
    /// Refuses `least` itself.
    pub(crate) above: bool,
}

impl<N: Copy + std::fmt::Display> Within<N> {
    fn outside(&self, value: &Value, low: bool) -> Wrong {
        let bound = match (low, self.above) {
            (false, _) => format!("less than or equal to {}", self.most),
            (true, false) => format!("greater than or equal to {}", self.least),
            (true, true) => format!("greater than {}", self.least),
        };
        let message = format!("{} is out of range: it should be {bound}", quoted(value));
        Wrong::new(message, "write a number within that range")
    }
}

impl<T: Copy + TryFrom<i128> + Into<i128>> Form<T> for Within<i128> {
    fn read(&self, value: &Value, key: &Key, reader: &mut Reader<'_>) -> Option<T> {
        let number = match value {
            Value::Int(number) => *number,
            _ => {
                let hint = "write a whole number, without quotes and without a point";
                reader.refuse(
                    Wrong::new(format!("{} is not a whole number", quoted(value)), hint),
                    key,
                );
                return None;
            }
        };
        if number > self.most || number < self.least {
            reader.refuse(self.outside(value, number < self.least), key);
            return None;
        }
        T::try_from(number).ok()
    }

    fn write(&self, value: &T, _all: bool) -> Value {
        Value::Int((*value).into())
    }
}

impl Form<f64> for Within<f64> {
    fn read(&self, value: &Value, key: &Key, reader: &mut Reader<'_>) -> Option<f64> {
        let number = match value {
            Value::Int(number) => *number as f64,
            Value::Float(number) if number.is_finite() => *number,
            Value::Float(_) => {
                reader.refuse(
                    Wrong::new(
                        format!("{} is not a finite number", quoted(value)),
                        "write a number",
                    ),
                    key,
                );
                return None;
            }
            _ => {
                let hint = "write a number, without quotes";
                reader.refuse(Wrong::new(format!("{} is not a number", quoted(value)), hint), key);
                return None;
            }
        };
        let low = number < self.least || (self.above && number == self.least);
        if number > self.most || low {
            reader.refuse(self.outside(value, low), key);
            return None;
        }
        Some(number)
    }

    fn write(&self, value: &f64, _all: bool) -> Value {
        Value::Float(*value)
    }
}

/// One of a list of words.
pub(crate) struct Words(pub(crate) &'static [&'static str]);

impl Words {
    fn refusal(&self, value: &Value, key: &Key) -> Wrong {
        let known = format!("one of {}", self.0.join(", "));
        let not = format!("{} is not {known}", quoted(value));
        let Some(text) = value.text() else {
            return Wrong::new(not, format!("write \"{}\"", self.0[0]));
        };
        let lower = text.to_ascii_lowercase();
        let last = key.last().map(ToString::to_string).unwrap_or_default();
        if last == "congestion"
            && let Some((_, instead)) =
                tcp::congestion::ELSEWHERE.iter().find(|(name, _)| *name == lower)
        {
            let release = tc::linux::RELEASE;
            let message = format!(
                "{} is neither in the simulator nor in the guest's Linux {release}",
                quoted(value)
            );
            return Wrong::new(message, *instead);
        }
        if last == "direction"
            && ["both", "bidirectional", "duplex", "updown", "up down"].contains(&&*lower)
        {
            let hint =
                "write two [[flow]], one with direction = \"down\" and one with direction = \"up\"";
            return Wrong::new(not, hint);
        }
        match nearest(text, self.0.iter().copied()) {
            Some(guess) => Wrong::new(not, format!("did you mean {guess}?")),
            None => Wrong::new(not, format!("write \"{}\"", self.0[0])),
        }
    }
}

impl Form<&'static str> for Words {
    fn read(&self, value: &Value, key: &Key, reader: &mut Reader<'_>) -> Option<&'static str> {
        let known = value.text().and_then(|text| self.0.iter().find(|word| **word == text));
        if known.is_none() {
            reader.refuse(self.refusal(value, key), key);
        }
        known.copied()
    }

    fn write(&self, value: &&'static str, _all: bool) -> Value {
        Value::from(*value)
    }
}

// Times, rates and sizes
// ----------------------------------------------------------------------------------------------

const HOUR: u64 = 3_600_000_000_000;

fn time(ns: &u64) -> Value {
    format_duration(*ns).into()
}

fn rate(bps: &u64) -> Value {
    format_rate(*bps).into()
}

fn size(bytes: &u64) -> Value {
    format_size(*bytes).into()
}

const SECONDS: Times<'static> = Times { example: "1 s", ..TIME };
const ON: Times<'static> = Times { example: "1 s", zero: false, ..TIME };

fn interval(value: &Value) -> Result<u64, Wrong> {
    let times = Times { what: "an interval", example: "100 ms", zero: false, ..TIME };
    let ns = parse_duration(value, &times)?;
    if ns < 1_000 {
        let message = format!("an interval of {} is too short", quoted(value));
        return Err(Wrong::new(message, "the least is 1 us"));
    }
    Ok(ns)
}

fn transfer(value: &Value) -> Result<u64, Wrong> {
    parse_size(value, "a transfer", 1, 1_000_000_000_000)
}

fn rtt(value: &Value) -> Result<u64, Wrong> {
    parse_duration(value, &Times { what: "an RTT", example: "50 ms", most: 2 * HOUR, ..TIME })
}

fn seconds(value: &Value) -> Result<u64, Wrong> {
    parse_duration(value, &SECONDS)
}

pub(crate) const DURATION: Plain<u64> = Plain {
    read: |value| parse_duration(value, &Times { example: "60 s", zero: false, ..TIME }),
    write: time,
};
pub(crate) const WARMUP: Plain<u64> =
    Plain { read: |value| parse_duration(value, &Times { example: "5 s", ..TIME }), write: time };
pub(crate) const DELAY: Plain<u64> = Plain {
    read: |value| {
        parse_duration(value, &Times { what: "a delay", example: "10 ms", most: HOUR, ..TIME })
    },
    write: time,
};
pub(crate) const SYSCALL: Plain<u64> = Plain {
    read: |value| {
        let most = 1_000_000;
        parse_duration(
            value,
            &Times { what: "a price", example: "1 us", most, zero: false, ..TIME },
        )
    },
    write: time,
};
pub(crate) const INTERVAL: Plain<u64> = Plain { read: interval, write: time };
pub(crate) const RATE: Plain<u64> = Plain { read: |value| parse_rate(value, false), write: rate };
pub(crate) const PACKET: Plain<u64> =
    Plain { read: |value| parse_size(value, "a packet", 28, 65_535), write: size };
pub(crate) const PAYLOAD: Plain<u64> =
    Plain { read: |value| parse_size(value, "a payload", 1, 65_000), write: size };
pub(crate) const TIMEOUT: Plain<u64> =
    Plain { read: |value| parse_duration(value, &Times { most: HOUR, ..ON }), write: time };
pub(crate) const TARGET: Plain<u64> = Plain {
    read: |value| {
        parse_duration(
            value,
            &Times { example: "100 ms", zero: false, most: 10_000_000_000, ..TIME },
        )
    },
    write: time,
};
pub(crate) const ACK_DELAY: Plain<u64> = Plain {
    read: |value| parse_duration(value, &Times { example: "40 ms", most: 10_000_000_000, ..TIME }),
    write: time,
};
pub(crate) const BUFFER: Plain<u64> =
    Plain { read: |value| parse_size(value, "a buffer", 2048, 1 << 40), write: size };

/// A link's rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinkRate {
    /// No rate: a link that is never busy.
    Unlimited,
    /// Bit/s.
    Bps(u64),
}

impl LinkRate {
    /// The rate in bit/s, if there is a limit.
    pub fn bps(self) -> Option<u64> {
        if let LinkRate::Bps(bps) = self { Some(bps) } else { None }
    }
}

pub(crate) const LINK_RATE: Plain<LinkRate> = Plain {
    read: |value| match value.text() {
        Some("unlimited") => Ok(LinkRate::Unlimited),
        _ => parse_rate(value, false).map(LinkRate::Bps),
    },
    write: |rate| match rate {
        LinkRate::Unlimited => "unlimited".into(),
        LinkRate::Bps(bps) => format_rate(*bps).into(),
    },
};

// Steps and frames
// -------------------------------------------------------------------------------------------------

/// The most rows of a trace, a schedule or a video's frames.
pub const MAX_ROWS: usize = 200_000;

/// (start in ns, value from then on), in rising order.
pub type Pairs = Vec<(u64, u64)>;

fn pairs<T>(
    value: &Value,
    what: &str,
    example: &str,
    read: fn(&Value) -> Result<T, Wrong>,
) -> Result<Vec<(u64, T)>, Wrong> {
    let hint = format!("write pairs: [{example}, ...]");
    let rows = value.list().filter(|rows| !rows.is_empty());
    let Some(rows) = rows else {
        return Err(Wrong::new(format!("{} is not a list of {what}", quoted(value)), hint));
    };
    if rows.len() > MAX_ROWS {
        return Err(Wrong::new(
            format!("{} {what}", rows.len()),
            format!("the most is {MAX_ROWS}"),
        ));
    }
    let mut pairs = Vec::with_capacity(rows.len());
    for row in rows {
        let Some([at, each]) = row.list() else {
            return Err(Wrong::new(format!("{} is not a pair", quoted(row)), hint));
        };
        let times = Times { what: "a time", example: "10 s", ..TIME };
        pairs.push((parse_duration(at, &times)?, read(each)?));
    }
    for pair in pairs.windows(2) {
        let (before, after) = (pair[0].0, pair[1].0);
        if after <= before {
            let times = format!("{} follows {}", format_duration(after), format_duration(before));
            return Err(Wrong::new(
                format!("times must rise: {times}"),
                "write them in order, each once",
            ));
        }
    }
    Ok(pairs)
}

fn rows<T: Copy>(pairs: &[(u64, T)], write: fn(T) -> String) -> Value {
    let row =
        |&(at, each): &(u64, T)| Value::List(vec![format_duration(at).into(), write(each).into()]);
    Value::List(pairs.iter().map(row).collect())
}

/// Rows of a time and words.
pub(crate) fn rows_of_words(changes: &[(u64, String)]) -> Value {
    let row = |(at, words): &(u64, String)| {
        Value::List(vec![format_duration(*at).into(), words.as_str().into()])
    };
    Value::List(changes.iter().map(row).collect())
}

pub(crate) const SCHEDULE: Plain<Pairs> = Plain {
    read: |value| {
        let example = r#"["0 s", "20 Mbit/s"], ["10 s", "5 Mbit/s"]"#;
        pairs(value, "steps", example, |rate| parse_rate(rate, true))
    },
    write: |steps| rows(steps, format_rate),
};

/// The pace of an application: (ns from the flow's start, rate from then on), the first at 0.
pub type PaceSteps = Vec<(u64, LinkRate)>;

pub(crate) const PACE: Plain<PaceSteps> = Plain {
    read: |value| {
        if value.text().is_some() {
            return (LINK_RATE.read)(value).map(|rate| vec![(0, rate)]);
        }
        let example = r#"["0 s", "4 Mbit/s"], ["20 s", "unlimited"]"#;
        let steps = pairs(value, "steps", example, |rate| match rate.text() {
            Some("unlimited") => Ok(LinkRate::Unlimited),
            _ => parse_rate(rate, true).map(LinkRate::Bps),
        })?;
        if steps[0].0 > 0 {
            let message = format!(
                "the rate before the first step at {} is missing",
                format_duration(steps[0].0)
            );
            return Err(Wrong::new(message, "write a first step at \"0 s\""));
        }
        Ok(steps)
    },
    write: |steps| match steps[..] {
        [(_, LinkRate::Bps(bps))] if bps > 0 => format_rate(bps).into(),
        [(_, LinkRate::Unlimited)] => "unlimited".into(),
        _ => rows(steps, |rate| rate.bps().map_or("unlimited".into(), format_rate)),
    },
};
pub(crate) const FRAMES: Plain<Pairs> = Plain {
    read: |value| {
        let example = r#"["0 s", "12 kB"], ["40 ms", "3 kB"]"#;
        pairs(value, "frames", example, |size| parse_size(size, "a frame", 1, 1 << 31))
    },
    write: |frames| rows(frames, format_size),
};
pub(crate) const PACKETS: Plain<Pairs> = Plain {
    read: |value| {
        let example = r#"["0 s", "1500 B"], ["2 ms", "52 B"]"#;
        pairs(value, "packets", example, |size| {
            parse_size(size, "a packet", 1, tcp::params::MTU.into())
        })
    },
    write: |packets| rows(packets, format_size),
};

/// The most rates of a video.
const MAX_RUNGS: usize = 100;
pub(crate) const LADDER: Plain<Vec<u64>> = Plain {
    read: |value| {
        let hint = r#"write rising rates: ["500 kbit/s", "2 Mbit/s"]"#;
        let given = value.list().filter(|rates| (1..=MAX_RUNGS).contains(&rates.len()));
        let Some(given) = given else {
            let message = format!("{} is not a list of 1 to {MAX_RUNGS} rates", quoted(value));
            return Err(Wrong::new(message, hint));
        };
        let rates =
            given.iter().map(|rate| parse_rate(rate, false)).collect::<Result<Vec<_>, _>>()?;
        if rates.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(Wrong::new("the rates of a ladder must rise", hint));
        }
        Ok(rates)
    },
    write: |rates| Value::List(rates.iter().map(|&rate| format_rate(rate).into()).collect()),
};

// Numbers that differ
// -------------------------------------------------------------------------------------------------

pub(crate) const RTT: Plain<Spread> = Plain {
    read: |value| Spread::parse(value, rtt, "50 ms", &[]),
    write: |s| s.document(format_duration),
};
pub(crate) const START: Plain<Spread> = Plain {
    read: |value| Spread::parse(value, seconds, "1 s", &["every", "poisson"]),
    write: |s| s.document(format_duration),
};
pub(crate) const STOP: Plain<Spread> = Plain {
    read: |value| Spread::parse(value, seconds, "1 s", &["every"]),
    write: |s| s.document(format_duration),
};
pub(crate) const PAUSE: Plain<traffic::Draw> = Plain {
    read: |value| read_draw(value, seconds, "1 s"),
    write: |draw| write_draw(draw, format_duration),
};
pub(crate) const ON_TIME: Plain<traffic::Draw> = Plain {
    read: |value| read_draw(value, |value| parse_duration(value, &ON), "1 s"),
    write: |draw| write_draw(draw, format_duration),
};
pub(crate) const SIZES: Plain<traffic::Draw> = Plain {
    read: |value| read_draw(value, transfer, "50 kB"),
    write: |draw| write_draw(draw, format_size),
};

// Names, numbers and words
// --------------------------------------------------------------------------------------------

pub(crate) const BOOL: Plain<bool> = Plain {
    read: |value| match value {
        Value::Bool(truth) => Ok(*truth),
        _ => {
            let hint = "write true or false, without quotes";
            Err(Wrong::new(format!("{} is not true or false", quoted(value)), hint))
        }
    },
    write: |truth| Value::Bool(*truth),
};

/// The ECN feedback of a flow's endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notification {
    /// No ECN.
    Off,
    /// Feedback as in RFC 3168.
    Classic,
    /// AccECN (RFC 9768).
    Accurate,
}

pub(crate) const NOTIFICATION: Plain<Notification> = Plain {
    read: |value| match value {
        Value::Bool(false) => Ok(Notification::Off),
        Value::Bool(true) => Ok(Notification::Classic),
        _ if value.text() == Some("accecn") => Ok(Notification::Accurate),
        _ => {
            let message = format!("{} is not true, false or \"accecn\"", quoted(value));
            Err(Wrong::new(message, "write ecn = true, or ecn = \"accecn\" for accurate feedback"))
        }
    },
    write: |feedback| match feedback {
        Notification::Off => Value::Bool(false),
        Notification::Classic => Value::Bool(true),
        Notification::Accurate => "accecn".to_owned().into(),
    },
};

/// The ECN field of a program's packets.
pub(crate) const CODEPOINT: Plain<Ecn> = Plain {
    read: |value| match value {
        Value::Bool(false) => Ok(Ecn::NotEct),
        Value::Bool(true) => Ok(Ecn::Ect0),
        _ if value.text() == Some("ect1") => Ok(Ecn::Ect1),
        _ => {
            let message = format!("{} is not true, false or \"ect1\"", quoted(value));
            Err(Wrong::new(message, "write ecn = true for ECT(0), or ecn = \"ect1\""))
        }
    },
    write: |field| match field {
        Ecn::NotEct => Value::Bool(false),
        Ecn::Ect1 => "ect1".to_owned().into(),
        Ecn::Ect0 | Ecn::Ce => Value::Bool(true),
    },
};

pub(crate) fn name(value: &Value) -> Result<String, Wrong> {
    let text = value.text().unwrap_or_default();
    let first = |c: char| c.is_alphanumeric() || c == '_';
    let later = |c: char| first(c) || " .:+-".contains(c);
    let sound = text.starts_with(first)
        && text.chars().count() <= 64
        && text.chars().all(|char| later(char) && printable(char));
    if !sound {
        let hint = "write letters, digits, spaces and . : + - _, at most 64";
        return Err(Wrong::new(format!("{} is not a name", quoted(value)), hint));
    }
    let numbered = text
        .rsplit_once('.')
        .is_some_and(|(_, end)| !end.is_empty() && end.bytes().all(|c| c.is_ascii_digit()));
    if numbered || text != text.trim() {
        let hint =
            "leave out the last .NUMBER and outer spaces: flows are numbered .1, .2 automatically";
        return Err(Wrong::new(format!("{} is not a name", quoted(value)), hint));
    }
    Ok(text.to_owned())
}

pub(crate) const NAME: Plain<String> = Plain { read: name, write: |name| name.clone().into() };

/// A list of names.
pub(crate) struct Names;

impl Form<Vec<String>> for Names {
    fn read(&self, value: &Value, key: &Key, reader: &mut Reader<'_>) -> Option<Vec<String>> {
        let items = reader.list(value, key)?;
        let names: Vec<_> = items
            .iter()
            .enumerate()
            .map(|(index, item)| NAME.read(item, &below(key, index), reader))
            .collect();
        names.into_iter().collect()
    }

    fn write(&self, names: &Vec<String>, _all: bool) -> Value {
        Value::List(names.iter().map(|name| name.clone().into()).collect())
    }
}

/// The most flows in all, and the most hosts of an entry.
pub const MAX_FLOWS: u32 = 100_000;

/// The hosts of an entry; its flows are assigned to them in turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Hosts {
    /// This many, named 1, 2, ...
    Numbered(u32),
    /// With names.
    Named(Vec<String>),
}

impl Hosts {
    /// The number of hosts.
    pub fn count(&self) -> usize {
        match self {
            Hosts::Numbered(count) => *count as usize,
            Hosts::Named(names) => names.len(),
        }
    }

    /// The host of the flow with this index in its entry.
    pub fn of(&self, index: u32) -> String {
        match self {
            Hosts::Numbered(count) => (index % count + 1).to_string(),
            Hosts::Named(names) => names[index as usize % names.len()].clone(),
        }
    }
}

fn hosts(value: &Value) -> Result<Hosts, Wrong> {
    let names = match value {
        Value::Int(count) => {
            let most = i128::from(MAX_FLOWS);
            if !(1..=most).contains(count) {
                let hint = format!("write a number from 1 to {most}, or names");
                return Err(Wrong::new(format!("{count} hosts"), hint));
            }
            return Ok(Hosts::Numbered(*count as u32));
        }
        Value::Text(_) => return Ok(Hosts::Named(vec![name(value)?])),
        Value::List(names) if !names.is_empty() => names,
        _ => {
            let hint = "write a number (hosts = 4), a name (hosts = \"laptop\") or a list of names";
            return Err(Wrong::new(format!("{} is not a list of hosts", quoted(value)), hint));
        }
    };
    let names = names.iter().enumerate();
    let names =
        names.map(|(index, each)| name(each).map_err(|wrong| Wrong { item: Some(index), ..wrong }));
    let names: Vec<String> = names.collect::<Result<_, _>>()?;
    let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
    if let Some((at, name)) = twice {
        let wrong =
            Wrong::new(format!("{} is named twice", in_quotes(name)), "name each host once");
        return Err(Wrong { item: Some(at), ..wrong });
    }
    Ok(Hosts::Named(names))
}

pub(crate) const HOSTS: Plain<Hosts> = Plain {
    read: hosts,
    write: |hosts| match hosts {
        Hosts::Numbered(count) => Value::Int((*count).into()),
        Hosts::Named(names) if names.len() == 1 => names[0].clone().into(),
        Hosts::Named(names) => Value::List(names.iter().map(|name| name.clone().into()).collect()),
    },
};

pub(crate) const TITLE: Plain<String> = Plain {
    read: |value| {
        let Some(text) = value.text() else {
            let hint = "write text in quotes, like \"Two uploads and a ping\"";
            return Err(Wrong::new(format!("{} is not a title", quoted(value)), hint));
        };
        if text.chars().count() > 300 || !text.chars().all(printable) {
            let message = "not a printable line of at most 300 characters";
            return Err(Wrong::new(message, "write one short line"));
        }
        Ok(text.to_owned())
    },
    write: |title| title.clone().into(),
};

fn seeds(value: &Value) -> Result<Vec<u64>, Wrong> {
    let items = match value {
        Value::Int(count) => {
            if !(1..=10_000).contains(count) {
                return Err(Wrong::new(format!("{count} seeds"), "give a count from 1 to 10000"));
            }
            return Ok((1..=*count as u64).collect());
        }
        Value::List(items) => items,
        _ => {
            let hint = "write a count (seeds = 5 is 1 to 5) or a list (seeds = [3, 8])";
            return Err(Wrong::new(
                format!("{} is not a count or a list of seeds", quoted(value)),
                hint,
            ));
        }
    };
    let mut seeds = Vec::with_capacity(items.len());
    for item in items {
        let Value::Int(seed) = item else {
            let message = format!("{} is not a seed", quoted(item));
            return Err(Wrong::new(message, "a seed is a whole number, like 1"));
        };
        if !(0..1i128 << 63).contains(seed) {
            let hint = "a seed is a whole number from 0 to 2^63 - 1";
            return Err(Wrong::new(format!("{seed} is not a seed"), hint));
        }
        seeds.push(*seed as u64);
    }
    let different = seeds.iter().copied().collect::<BTreeSet<_>>().len();
    if !(1..=10_000).contains(&seeds.len()) || different != seeds.len() {
        let message = format!("{} seeds, {different} of them different", seeds.len());
        return Err(Wrong::new(message, "give 1 to 10000 different seeds"));
    }
    Ok(seeds)
}

pub(crate) const SEEDS: Plain<Vec<u64>> = Plain {
    read: seeds,
    write: |seeds| Value::List(seeds.iter().map(|seed| Value::Int((*seed).into())).collect()),
};

/// The most descriptors: hardware has up to some thousands.
const MAX_RING: i128 = 65_536;

/// The most queues of a card: hardware has up to some hundreds.
const MAX_QUEUES: u32 = 1024;

pub(crate) const QUEUES: Within<i128> = Within { least: 1, most: MAX_QUEUES as i128, above: false };

pub(crate) const PINNED: Plain<Vec<u32>> = Plain {
    read: |value| {
        let wrong = |what: String| Wrong::new(what, "write queues by number, like pinned = [0, 1]");
        let items = match value {
            Value::List(items) if !items.is_empty() => items,
            _ => return Err(wrong(format!("{} is not a list of queues", quoted(value)))),
        };
        let queue = |item: &Value| match item {
            Value::Int(number) if (0..i128::from(MAX_QUEUES)).contains(number) => {
                Ok(*number as u32)
            }
            _ => Err(wrong(format!("{} is not the number of a queue", quoted(item)))),
        };
        items.iter().map(queue).collect()
    },
    write: |queues| Value::List(queues.iter().map(|queue| Value::Int((*queue).into())).collect()),
};

pub(crate) const RING: Plain<u32> = Plain {
    read: |value| {
        let Value::Int(number) = value else {
            let message = format!("{} is not a number of descriptors", quoted(value));
            return Err(Wrong::new(message, "write a whole number, like ring = 512"));
        };
        if *number == 0 {
            let message = "a ring of 0 descriptors would send nothing";
            return Err(Wrong::new(
                message,
                "leave ring out, or write ring = 1, which has the same effect",
            ));
        }
        if !(1..=MAX_RING).contains(number) {
            let message = format!("a ring of {} descriptors", quoted(value));
            return Err(Wrong::new(message, format!("write a number from 1 to {MAX_RING}")));
        }
        Ok(*number as u32)
    },
    write: |ring| Value::Int((*ring).into()),
};
pub(crate) const DSCP: Plain<u8> = Plain { read: dscp::parse, write: |dscp| dscp::format(*dscp) };
pub(crate) const LOSS: Plain<Loss> =
    Plain { read: wire::parse_loss, write: |loss| loss.text().into() };

pub(crate) const JITTER: Plain<Option<DelayJitter>> = Plain {
    read: |value| wire::parse_words(value, "5 ms normal", wire::parse_jitter),
    write: |jitter| wire::written(jitter, wire::jitter_text),
};
pub(crate) const REORDER: Plain<Option<Reordering>> = Plain {
    read: |value| wire::parse_words(value, "1 % gap 5", wire::parse_reorder),
    write: |reorder| wire::written(reorder, wire::reorder_text),
};
pub(crate) const DUPLICATE: Plain<Option<Duplication>> = Plain {
    read: |value| wire::parse_words(value, "0.1 %", wire::parse_duplicate),
    write: |duplicate| wire::written(duplicate, wire::duplicate_text),
};
pub(crate) const SLOT: Plain<Option<Slots>> = Plain {
    read: |value| wire::parse_words(value, "1 ms 5 ms packets 20", wire::parse_slot),
    write: |slot| wire::written(slot, wire::slot_text),
};
pub(crate) const REMARK: Plain<Option<EcnRemark>> = Plain {
    read: |value| {
        let name = value.text().unwrap_or_default();
        if name == "none" {
            return Ok(None);
        }
        let known = EcnRemark::ALL.iter().find(|(known, _)| *known == name);
        let names = EcnRemark::ALL.map(|(name, _)| format!("\"{name}\"")).join(", ");
        let wrong = || {
            let hint = format!("write {names} or \"none\"");
            Wrong::new(format!("{} is not an action on ECN fields", quoted(value)), hint)
        };
        known.map(|(_, remark)| Some(*remark)).ok_or_else(wrong)
    },
    write: |remark| remark.map_or("none".into(), |remark| remark.name().into()),
};
pub(crate) const DELAY_SCHEDULE: Plain<Pairs> = Plain {
    read: |value| {
        let example = r#"["0 s", "20 ms"], ["10 s", "80 ms"]"#;
        pairs(value, "steps", example, |delay| parse_duration(delay, &Times { most: HOUR, ..TIME }))
    },
    write: |steps| rows(steps, format_duration),
};

/// Steps of a probability: (ns, fraction).
pub type Chances = Vec<(u64, f64)>;

pub(crate) const LOSS_SCHEDULE: Plain<Chances> = Plain {
    read: |value| {
        let example = r#"["0 s", "0.1 %"], ["10 s", "5 %"]"#;
        pairs(value, "steps", example, parse_probability)
    },
    write: |steps| rows(steps, format_probability),
};

// tc's syntax
// -------------------------------------------------------------------------------------------------

/// The problem in `text`, which is in tc's syntax.
fn wrong_words(error: TcError, text: &str) -> Wrong {
    Wrong::new(error.problem, error.hint).at(text[..error.at.start].chars().count())
}

fn words<T>(
    value: &Value,
    read: fn(&str) -> Result<T, TcError>,
    no_text: fn(&str) -> TcError,
) -> Result<T, Wrong> {
    match value {
        Value::Text(text) => read(text).map_err(|error| wrong_words(error, text)),
        _ => Err(wrong_words(no_text(&quoted(value)), "")),
    }
}

fn not_a_discipline(shown: &str) -> TcError {
    let problem = format!("{shown} is not a queue discipline");
    TcError::new(problem, "write a string in tc's syntax, like \"fq_codel\"")
}

pub(crate) const QDISC: Plain<Discipline> = Plain {
    read: |value| words(value, Discipline::parse, not_a_discipline),
    write: |qdisc| qdisc.text().into(),
};

/// Steps of a discipline's parameters: (ns, words of tc's `change`).
pub type QdiscChanges = Vec<(u64, String)>;

pub(crate) const QDISC_SCHEDULE: Plain<QdiscChanges> = Plain {
    read: |value| {
        let example = r#"["10 s", "cake bandwidth 8mbit"], ["20 s", "cake bandwidth 20mbit"]"#;
        let changes = pairs(value, "steps", example, |words| {
            let not_words = || {
                let message = format!("{} is not a queue discipline", quoted(words));
                Wrong::new(message, "write its name and the words that change, in tc's syntax")
            };
            let text = words.text().ok_or_else(not_words)?;
            Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
        })?;
        if changes[0].0 == 0 {
            let hint = "write the parameters of the start in qdisc";
            return Err(Wrong::new("a step at 0 s", hint));
        }
        Ok(changes)
    },
    write: |changes| rows_of_words(changes),
};

/// A congestion control as a flow names it: one of ours or Linux's, or a user-defined one.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum NamedControl {
    Known(&'static str),
    Own(OwnClass),
}

impl NamedControl {
    /// Whether it is the known control with this name.
    pub fn is(&self, name: &str) -> bool {
        matches!(self, NamedControl::Known(known) if *known == name)
    }
}

/// `"cubic"`, or `"mine.py:Mine beta 0.7"`.
pub(crate) struct Controls;

impl Form<NamedControl> for Controls {
    fn read(&self, value: &Value, key: &Key, reader: &mut Reader<'_>) -> Option<NamedControl> {
        let Some((text, own)) = value.text().and_then(|text| Some((text, OwnClass::read(text)?)))
        else {
            let known = Words(tcp::congestion::NAMES).read(value, key, reader)?;
            return Some(NamedControl::Known(known));
        };
        match own {
            Ok(own) => Some(NamedControl::Own(own)),
            Err(error) => {
                reader.refuse(wrong_words(error, text), key);
                None
            }
        }
    }

    fn write(&self, control: &NamedControl, _all: bool) -> Value {
        match control {
            NamedControl::Known(name) => Value::from(*name),
            NamedControl::Own(own) => own.text().into(),
        }
    }
}

/// The files of the user's own code: the name and the text of each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Code(pub Vec<(String, String)>);

impl Code {
    /// The text of this file.
    pub fn text(&self, file: &str) -> Option<String> {
        self.0.iter().find(|(name, _)| name == file).map(|(_, text)| text.clone())
    }
}

pub(crate) const CODE: Plain<Code> = Plain {
    read: |value| {
        let no_text = || {
            let message = format!("{} is not a table of files and their text", quoted(value));
            Wrong::new(message, "leave it out: it is filled from the files that are named")
        };
        let text = |(name, text): (&str, &Value)| {
            Ok((name.to_owned(), text.text().ok_or_else(no_text)?.to_owned()))
        };
        let files = value.table().ok_or_else(no_text)?.iter().map(text);
        Ok(Code(files.collect::<Result<_, Wrong>>()?))
    },
    write: |code| {
        let files = code.0.iter().map(|(name, text)| (name.clone(), text.clone().into()));
        Value::Table(files.collect())
    },
};
pub(crate) const LINK_LAYER: Plain<Framing> = Plain {
    read: |value| words(value, tc::read_layer, tc::layer::not_a_layer),
    write: |layer| tc::layer::write_layer(layer).into(),
};
/// `none` turns off a policer of the common table.
pub(crate) const POLICE: Plain<Option<Police>> = Plain {
    read: |value| words(value, Police::parse, tc::police::not_a_policer),
    write: |police| police.as_ref().map_or("none".into(), |police| police.text().into()),
};
/// `none` turns off a shaper of the common table.
pub(crate) const SHAPER: Plain<Option<Shaper>> = Plain {
    read: |value| words(value, Shaper::parse, tc::shaper::not_a_shaper),
    write: |shaper| shaper.as_ref().map_or("none".into(), |shaper| shaper.text().into()),
};
