//! The columns of a file of numbers: time, value, and their units.
//!
//! Two columns without names are a time in seconds and a value in the unit of its key (Mbit/s, ms,
//! bytes). A first line of names may change that: `time_ms, rtt_ms, loss, bandwidth_kbps` is a rate
//! in its fourth column. Among more than two columns, time and value are chosen by their names
//! alone, and a value's name contains its unit. Ambiguous columns are refused.
//!
//! `sojourn import` chooses columns by names as well (formats/line_table.py), for rates in both
//! directions, delays, RTTs, losses and dates at once, where no key implies a quantity. A name that
//! both know has the same meaning in both.

use values::Wrong;
use values::text::quoted;

/// The quantity in the column of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Quantity {
    Rate,
    Delay,
    Size,
    Loss,
}

impl Quantity {
    /// The power of ten of its unit, relative to the scenario's unit, for a column whose name has
    /// no unit.
    fn usual(self) -> i32 {
        match self {
            Quantity::Rate | Quantity::Delay => 6,
            Quantity::Size => 0,
            Quantity::Loss => PERCENT,
        }
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Quantity::Rate => ("a rate", "rate_mbps"),
            Quantity::Delay => ("a delay", "delay_ms"),
            Quantity::Size => ("a size", "bytes"),
            Quantity::Loss => ("a loss", "loss_percent"),
        }
    }
}

/// A percent in parts of 10^9.
const PERCENT: i32 = 7;

/// The columns of time and value, from 0, each with the power of ten of its unit relative to ns,
/// bit/s, bytes and parts of 10^9.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) time: (usize, i32),
    pub(crate) value: (usize, i32),
    /// The names of the columns that are not read.
    pub(crate) unread: Vec<String>,
}

/// The cells of a line, separated by tabs, commas or semicolons if the line has any, else by
/// blanks.
pub(crate) fn fields(line: &str) -> Vec<&str> {
    let mut cells: Vec<&str> = if line.contains(['\t', ',', ';']) {
        line.split(['\t', ',', ';']).map(str::trim).collect()
    } else {
        line.split_whitespace().collect()
    };
    while cells.last().is_some_and(|cell| cell.is_empty()) {
        cells.pop();
    }
    cells
}

/// The meaning of a column's name.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Named {
    /// A time; its unit, if it has one.
    Time(Option<i32>),
    /// A time span without a name, only a unit: `ms`.
    Span(i32),
    Value(Quantity, Option<i32>),
    /// Another quantity: a round trip, bytes a second.
    Else,
    Unknown,
}

const TIMES: &[&str] = &["time", "timestamp", "ts", "t", "elapsed", "at", "offset"];
const SPANS: &[(&[&str], i32)] = &[
    (&["s", "sec", "secs", "second", "seconds"], 9),
    (&["ms", "msec", "msecs", "millisecond", "milliseconds"], 6),
    (&["us", "usec", "usecs", "microsecond", "microseconds"], 3),
    (&["ns", "nsec", "nanosecond", "nanoseconds"], 0),
];
const RATES: &[&str] =
    &["rate", "bandwidth", "bw", "throughput", "tput", "capacity", "bitrate", "datarate"];
const RATE_UNITS: &[(&[&str], i32)] = &[
    (&["bps", "bit", "bits"], 0),
    (&["kbps", "kbit", "kbits"], 3),
    (&["mbps", "mbit", "mbits"], 6),
    (&["gbps", "gbit", "gbits"], 9),
];
const DELAYS: &[&str] = &["delay", "owd", "latency"];
const SIZES: &[&str] = &["bytes", "size"];
const LOSSES: &[&str] = &["loss", "lost", "plr"];

/// The meaning of a name, by its words: `DL_bandwidth [Mbit/s]` is a rate in Mbit/s.
fn named(name: &str) -> Named {
    let split = |c: char| !c.is_ascii_alphanumeric();
    let written: Vec<&str> = name.split(split).filter(|word| !word.is_empty()).collect();
    let words: Vec<String> = written.iter().map(|word| word.to_ascii_lowercase()).collect();
    let any = |known: &[&str]| words.iter().any(|word| known.contains(&&**word));
    let unit = |units: &[(&[&str], i32)], word: &str| {
        units.iter().find(|(names, _)| names.contains(&word)).map(|(_, power)| *power)
    };
    let Some(last) = words.last() else { return Named::Unknown };
    // `Mbit/s` is two words; `MB/s` and `MBps` are bytes a second.
    let a_second = words.len() > 1 && last == "s" && name.contains('/');
    let at = words.len() - if a_second { 2 } else { 1 };
    let stem = written[at].strip_suffix("ps").or(Some(written[at]).filter(|_| a_second));
    if stem.is_some_and(|stem| stem.len() <= 2 && stem.ends_with('B')) {
        return Named::Else;
    }
    if let Some(power) = unit(RATE_UNITS, &words[at]) {
        return Named::Value(Quantity::Rate, Some(power));
    }
    if any(&["rtt", "jitter"]) {
        return Named::Else;
    }
    if any(LOSSES) {
        let percent = name.contains('%') || any(&["percent", "pct"]);
        let whole = any(&["fraction", "ratio", "probability"]);
        let unit = if percent { Some(PERCENT) } else { whole.then_some(PERCENT + 2) };
        // A number of lost packets or bytes is no share of them.
        let is_count = any(&["packets", "pkts", "bytes", "count"]);
        return if is_count { Named::Else } else { Named::Value(Quantity::Loss, unit) };
    }
    let span = unit(SPANS, last);
    if TIMES.contains(&&*words[0]) {
        return Named::Time(span);
    }
    match span {
        Some(power) if any(DELAYS) => Named::Value(Quantity::Delay, Some(power)),
        Some(power) if words.len() == 1 => Named::Span(power),
        Some(_) => Named::Else,
        None if any(RATES) => Named::Value(Quantity::Rate, None),
        None if any(DELAYS) => Named::Value(Quantity::Delay, None),
        None if any(SIZES) => Named::Value(Quantity::Size, Some(0)),
        None => Named::Unknown,
    }
}

/// Chooses the columns of a file whose first row has `count` cells; `names` are the names of its
/// columns, if a line contains them.
pub(crate) fn chosen(
    file: &str,
    count: usize,
    names: &[String],
    of: Quantity,
) -> Result<Chosen, Wrong> {
    let (what, example) = of.words();
    let usual = Chosen { time: (0, 9), value: (1, of.usual()), unread: Vec::new() };
    let keep = format!(
        "leave a time and {what}, or name the columns in a first line, such as time_s,{example}"
    );
    if names.len() != count {
        if count == 2 && names.is_empty() {
            return Ok(usual);
        }
        let message = if names.is_empty() {
            format!("{file} has {count} columns without names")
        } else {
            format!("{file} names {} columns, and its rows have {count}", names.len())
        };
        return Err(Wrong::new(message, keep));
    }
    let kinds: Vec<Named> = names.iter().map(|name| named(name)).collect();
    let only = |is: &dyn Fn(Named) -> bool| {
        let mut matching = (0..count).filter(|&column| is(kinds[column]));
        matching.next().filter(|_| matching.next().is_none())
    };
    let time = only(&|kind| matches!(kind, Named::Time(_)))
        .or_else(|| (0..count).find(|&column| matches!(kinds[column], Named::Span(_))));
    let with_unit = only(&|kind| matches!(kind, Named::Value(quantity, Some(_)) if quantity == of));
    let value = with_unit.or_else(|| {
        let span = |column: &usize| {
            of == Quantity::Delay
                && Some(*column) != time
                && matches!(kinds[*column], Named::Span(_))
        };
        let bare = |kind| count == 2 && kind == Named::Value(of, None);
        only(&|kind| bare(kind)).or_else(|| (0..count).find(span))
    });
    let power = |column: usize, usual: i32| match kinds[column] {
        Named::Time(power) | Named::Value(_, power) => power.unwrap_or(usual),
        Named::Span(power) => power,
        Named::Else | Named::Unknown => usual,
    };
    let listed = || names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    match (time, value) {
        (Some(time), Some(value)) => {
            let unread = (0..count).filter(|column| ![time, value].contains(column));
            Ok(Chosen {
                time: (time, power(time, 9)),
                value: (value, power(value, of.usual())),
                unread: unread.map(|column| names[column].clone()).collect(),
            })
        }
        // Two columns whose names have no known meaning are read as columns without names.
        (None | Some(0), None | Some(1)) if count == 2 => {
            let known = |kind: Named, mine: bool| mine || kind == Named::Unknown;
            let first = known(kinds[0], time == Some(0));
            if first && known(kinds[1], value == Some(1)) {
                let time = (0, power(0, 9));
                return Ok(Chosen { time, value: (1, power(1, of.usual())), ..usual });
            }
            Err(Wrong::new(
                format!("{file} has the columns {}; it needs a time and {what}", listed()),
                keep,
            ))
        }
        _ => {
            let message = format!(
                "{file} has the columns {}: it is not clear which are a time and {what} with its unit",
                listed()
            );
            Err(Wrong::new(message, keep))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(names: &str, of: Quantity) -> Option<((usize, i32), (usize, i32))> {
        let names: Vec<String> = fields(names).into_iter().map(str::to_owned).collect();
        chosen("f", names.len(), &names, of).ok().map(|columns| (columns.time, columns.value))
    }

    #[test]
    fn columns_are_found_by_their_names() {
        let rate = |names| columns(names, Quantity::Rate);
        assert_eq!(rate("time,rtt_ms,loss_rate,bandwidth_mbps"), Some(((0, 9), (3, 6))));
        assert_eq!(rate("Time (ms), Rate [kbit/s]"), Some(((0, 6), (1, 3))));
        assert_eq!(rate("rate_bps;time"), Some(((1, 9), (0, 0))));
        assert_eq!(rate("DL Mbit/s, seconds, ping ms"), Some(((1, 9), (0, 6))));
        assert_eq!(rate("timestamp\tGbps\tx"), Some(((0, 9), (1, 9))));
        let delay = |names| columns(names, Quantity::Delay);
        assert_eq!(delay("s us"), Some(((0, 9), (1, 3))));
        assert_eq!(delay("time_s,owd_ms,rate_mbps"), Some(((0, 9), (1, 6))));
        assert_eq!(columns("t,type,bytes", Quantity::Size), Some(((0, 9), (2, 0))));
    }

    #[test]
    fn two_columns_with_unknown_names_are_read_as_without_names() {
        for names in ["seconds,mbit", "x,y", "seconds value", "t rate", "Zeit Mbit/s"] {
            assert_eq!(columns(names, Quantity::Rate), Some(((0, 9), (1, 6))), "{names}");
        }
    }

    #[test]
    fn ambiguous_traces_are_refused() {
        for names in [
            "time,rtt_ms",
            "time,rate_MBps",
            "time,speed MB/s",
            "time,up_mbps,down_mbps",
            "time,up,down",
            "time,DL_bitrate,UL_bitrate",
            "time,rate,loss",
            "x,rate_mbps,y",
            "delay_ms,x",
        ] {
            assert_eq!(columns(names, Quantity::Rate), None, "{names}");
        }
        for names in ["time,rtt_ms", "time,mbps", "time_s,delay_ms,owd_ms"] {
            assert_eq!(columns(names, Quantity::Delay), None, "{names}");
        }
        assert!(chosen("f", 3, &[], Quantity::Rate).is_err());
        assert!(chosen("f", 3, &["a".into(), "b".into()], Quantity::Rate).is_err());
    }

    #[test]
    fn cells_are_kept_apart_where_one_is_empty() {
        assert_eq!(fields("1, ,3"), ["1", "", "3"]);
        assert_eq!(fields("1 2  "), ["1", "2"]);
        assert_eq!(fields("1,2,,"), ["1", "2"]);
    }
}
