//! Traces: a link's rate or delay, or a video's frames, from a file of two columns; and measured
//! distributions of sizes (`size = "cdf sizes.csv"`): bytes, and the share of all that is no larger.
//!
//! ```text
//! # seconds  Mbit/s            # seconds  ms            # seconds  bytes
//! 0          20                0          40            0.00       14210
//! 1          12.5              1          55.2          0.04       2380
//! ```
//!
//! A rate's file of one column is Mahimahi's (R. Netravali et al., "Mahimahi: accurate
//! record-and-replay for HTTP", 2015): each line the millisecond of a chance to send 1500 bytes, the
//! last one the length of the trace. Of n chances in a millisecond a rate of n · 12 Mbit/s is made
//! that ends then. Deviation: what a chance leaves unused is not lost, and a packet of 1501 bytes
//! takes no whole second chance.
//!
//! Columns are separated by spaces, tabs, commas or semicolons; lines that begin with # (and one
//! line of column names) are skipped. Times count from the first line's. A trace repeats: its last
//! row lasts as long as the one before it. Reading one turns `trace = "file"` into the rows
//! themselves, so that a scenario is complete without the file. The file is handed in: nothing is
//! opened here.

use crate::forms::MAX_ROWS;
use crate::laws::{CDF, MAX_POINTS};
use crate::problem::{Key, Problem, below};
use values::quantity::{format_duration, format_rate, format_size, is_blank};
use values::text::quoted as quoted_words;
use values::{Table, Value, Wrong, quoted, real};

/// The bytes of a file beside the scenario, or why it can't be read.
pub type Open<'o> = dyn Fn(&str) -> Result<Vec<u8>, String> + 'o;

/// The longest file, bytes.
pub const MAX_BYTES: usize = 16 << 20;

/// Replaces every `trace` of the document by its rows; gives what was wrong.
pub(crate) fn resolve(document: &mut Table, open: &Open<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some(Value::Table(bottleneck)) = document.get_mut("bottleneck") {
        let at: Key = vec!["bottleneck".into()];
        resolve_table(bottleneck, &at, &RATE, open, &mut problems);
        resolve_table(bottleneck, &at, &DELAY, open, &mut problems);
        for way in ["up", "down"] {
            if let Some(Value::Table(own)) = bottleneck.get_mut(way) {
                resolve_table(own, &below(&at, way), &RATE, open, &mut problems);
                resolve_table(own, &below(&at, way), &DELAY, open, &mut problems);
            }
        }
    }
    for (list, kinds) in [("link", &[&RATE, &DELAY][..]), ("flow", &[&FRAMES])] {
        let Some(Value::List(entries)) = document.get_mut(list) else { continue };
        for (index, entry) in entries.iter_mut().enumerate() {
            let Value::Table(table) = entry else { continue };
            if list == "flow"
                && let Some(size) = table.get("size").and_then(measured)
            {
                match distribution(&size, open) {
                    Ok(points) => table.set("size", points),
                    Err(wrong) => {
                        let at = vec![list.into(), index.into(), "size".into()];
                        problems.push(Problem::new(wrong.message, wrong.hint, at));
                        // Said once: what stands in for it is right.
                        table.set("size", "1 B".into());
                    }
                }
            }
            if list == "link" || table.get("kind").and_then(Value::text) == Some("video") {
                let at = vec![list.into(), index.into()];
                kinds.iter().for_each(|kind| resolve_table(table, &at, kind, open, &mut problems));
            }
        }
    }
    problems
}

/// What a trace is of.
struct Kind {
    /// The key that names the file.
    trace: &'static str,
    /// The keys that its contents are written to.
    rows: &'static str,
    repeat: &'static str,
    /// A key that is needed, and stands in for a file that can't be read.
    needs: Option<(&'static str, &'static str)>,
    /// The second column times ten to this power is a whole number, at least and at most these.
    scale: i32,
    least: u128,
    most: u128,
    write: fn(u64) -> String,
}

const RATE: Kind = Kind {
    trace: "trace",
    rows: "schedule",
    repeat: "repeat",
    needs: Some(("rate", "1 Mbit/s")),
    scale: 6,
    least: 0,
    most: 10u128.pow(13),
    write: format_rate,
};
const DELAY: Kind = Kind {
    trace: "delay_trace",
    rows: "delay_schedule",
    repeat: "delay_repeat",
    needs: Some(("delay", "0 s")),
    scale: 6,
    least: 0,
    most: 3_600_000_000_000,
    write: format_duration,
};
const FRAMES: Kind = Kind {
    trace: "trace",
    rows: "frames",
    repeat: "repeat",
    needs: None,
    scale: 0,
    least: 1,
    most: 1 << 31,
    write: format_size,
};
/// The rate of one chance in a millisecond: 1500 bytes.
const CHANCE_BPS: u64 = 12_000_000;
const MS: u64 = 1_000_000;

fn resolve_table(
    table: &mut Table,
    at: &Key,
    kind: &Kind,
    open: &Open<'_>,
    problems: &mut Vec<Problem>,
) {
    let Kind { trace, rows, repeat, .. } = *kind;
    let Some(name) = table.remove(trace) else { return };
    let mut tell =
        |wrong: Wrong| problems.push(Problem::new(wrong.message, wrong.hint, below(at, trace)));
    if let Some(clash) = [rows, repeat].into_iter().find(|name| table.has(name)) {
        tell(Wrong::new(format!("{trace} and {clash} are both given"), "keep one of them"));
        return;
    }
    match read(&name, kind, open) {
        Ok((steps, length)) => {
            table.set(rows, steps);
            table.set(repeat, length.into());
        }
        Err(wrong) => {
            tell(wrong);
            // It is said by the trace, wherever it went wrong: no second complaint about it.
            if let Some((key, value)) = kind.needs.filter(|(key, _)| !table.has(key)) {
                table.set(key, value.into());
            }
        }
    }
}

/// The rows and after which time they begin again, in the words of a scenario.
fn read(name: &Value, kind: &Kind, open: &Open<'_>) -> Result<(Value, String), Wrong> {
    let file =
        name.text().filter(|name| !name.is_empty() && !name.contains('\0')).ok_or_else(|| {
            let hint = "write a path in quotes, like \"lte.csv\"";
            Wrong::new(format!("{} is not a file name", quoted(name)), hint)
        })?;
    let data = open(file).map_err(|why| {
        let hint = "the path counts from the scenario's folder";
        Wrong::new(format!("can't read {}: {why}", quoted(name)), hint)
    })?;
    if data.len() > MAX_BYTES {
        let message = format!("{} is larger than {}", quoted(name), format_size(MAX_BYTES as u64));
        return Err(Wrong::new(message, "give a shorter trace"));
    }
    let text = String::from_utf8(data).map_err(|_| {
        Wrong::new(format!("{} is not text (UTF-8)", quoted(name)), "give two columns of numbers")
    })?;
    if kind.rows == RATE.rows
        && let Some(chances) = chances(&text, file)?
    {
        return Ok(rate_of_chances(&chances));
    }
    let pairs = pairs(&text, file)?;
    let Kind { scale, least, most, write, .. } = *kind;
    let start = pairs[0].at;
    let mut table = Vec::with_capacity(pairs.len());
    for pair in &pairs {
        let value = whole(pair.number, scale).filter(|value| *value <= most);
        let Some(value) = value.filter(|value| *value >= least) else {
            let message =
                format!("{file}, line {}: {} is out of range", pair.line, decimal(pair.number));
            return Err(Wrong::new(message, format!("the most is {}", write(most as u64))));
        };
        table.push(Value::List(vec![
            format_duration(pair.at - start).into(),
            write(value as u64).into(),
        ]));
    }
    let last = pairs[pairs.len() - 1].at - start;
    let step =
        if pairs.len() > 1 { last - (pairs[pairs.len() - 2].at - start) } else { 1_000_000_000 };
    Ok((Value::List(table), format_duration(last + step)))
}

/// The milliseconds of a Mahimahi trace and how many chances each has; `None`: it is none.
fn chances(text: &str, name: &str) -> Result<Option<Vec<(u64, u64)>>, Wrong> {
    let rows = || {
        let lines = text.lines().zip(1..).map(|(row, line)| (line, row.trim()));
        lines.filter(|(_, row)| !row.is_empty() && !row.starts_with('#'))
    };
    if !rows().all(|(_, row)| row.bytes().all(|c| c.is_ascii_digit())) {
        return Ok(None);
    }
    let mut found: Vec<(u64, u64)> = Vec::new();
    for (line, row) in rows() {
        let ms = row.parse().ok().filter(|ms| *ms <= 1_000_000_000).ok_or_else(|| {
            Wrong::new(format!("{name}, line {line}: {row} ms is too long"), "times are in ms")
        })?;
        match found.last_mut() {
            Some((last, chances)) if *last == ms => *chances += 1,
            Some((last, _)) if *last > ms => {
                let hint = "each line is the millisecond of a chance to send 1500 bytes";
                return Err(Wrong::new(format!("{name}, line {line}: times must not fall"), hint));
            }
            _ => found.push((ms, 1)),
        }
    }
    match found.last() {
        None => Ok(None),
        Some((0, _)) => {
            let hint = "its last line is the millisecond at which it begins again";
            Err(Wrong::new(format!("{name} is a trace of no time"), hint))
        }
        Some(_) if found.len() > MAX_ROWS / 2 => {
            let message = format!("{name} has chances in more than {} milliseconds", MAX_ROWS / 2);
            Err(Wrong::new(message, "give a shorter trace"))
        }
        Some(_) => Ok(Some(found)),
    }
}

/// Steps of the rate at which these chances are over when they are.
fn rate_of_chances(chances: &[(u64, u64)]) -> (Value, String) {
    let last = chances[chances.len() - 1].0;
    let mut steps: Vec<(u64, u64)> = Vec::new();
    let mut step = |at: u64, bps: u64| match steps.last_mut() {
        Some((before, rate)) if *before == at => *rate += bps,
        Some((_, rate)) if *rate == bps => {}
        _ => steps.push((at, bps)),
    };
    let mut over = 0;
    // A chance at 0 is one at the end of the pass before.
    let at_zero = chances.iter().find(|(ms, _)| *ms == 0).map_or(0, |(_, chances)| *chances);
    for &(ms, count) in chances.iter().filter(|(ms, _)| *ms > 0) {
        if ms - 1 > over {
            step(over, 0);
        }
        let more = if ms == last { at_zero } else { 0 };
        step(ms - 1, (count + more) * CHANCE_BPS);
        over = ms;
    }
    let row = |(at, bps): (u64, u64)| {
        Value::List(vec![format_duration(at * MS).into(), format_rate(bps).into()])
    };
    (Value::List(steps.into_iter().map(row).collect()), format_duration(last * MS))
}

struct Pair<'t> {
    line: usize,
    /// ns.
    at: u64,
    number: &'t str,
}

/// The file of `cdf FILE`: what follows is neither several points nor one.
fn measured(value: &Value) -> Option<String> {
    let rest = value.text()?.trim().strip_prefix(CDF)?;
    let file = rest.strip_prefix(is_blank)?.trim_matches(is_blank);
    let share = file.rsplit_once(is_blank).is_some_and(|(_, share)| share.parse::<f64>().is_ok());
    (!file.is_empty() && !file.contains([',', '\0']) && !share).then(|| file.to_owned())
}

/// Its points, as a scenario has them.
fn distribution(file: &str, open: &Open<'_>) -> Result<Value, Wrong> {
    let name = quoted(&file.into());
    let data = open(file).map_err(|why| {
        let hint = "the path counts from the scenario's folder";
        Wrong::new(format!("can't read {name}: {why}"), hint)
    })?;
    let columns = "write on each line bytes, and the share of all that is no larger";
    let text = String::from_utf8(data)
        .map_err(|_| Wrong::new(format!("{name} is not text (UTF-8)"), columns))?;
    let mut points: Vec<(u64, f64)> = Vec::new();
    let mut headed = false;
    for (line, row) in text.lines().enumerate() {
        let fields: Vec<_> = row
            .split(|c: char| c.is_whitespace() || c == ',' || c == ';')
            .filter(|field| !field.is_empty())
            .collect();
        let Some(first) = fields.first().filter(|first| !first.starts_with('#')) else { continue };
        if points.is_empty() && !headed && first.starts_with(char::is_alphabetic) {
            headed = true;
            continue;
        }
        let point = match fields[..] {
            [bytes, share] if is_number(bytes) => {
                whole(bytes, 0).and_then(|bytes| Some((bytes, share.parse::<f64>().ok()?)))
            }
            _ => None,
        };
        let most = u128::from(1_000_000_000_000u64);
        let Some((bytes, share)) = point.filter(|point| point.0 <= most && point.1.is_finite())
        else {
            return Err(Wrong::new(format!("{file}, line {}: {row:?}", line + 1), columns));
        };
        points.push(((bytes as u64).max(1), share));
    }
    if points.is_empty() || points.len() > MAX_POINTS {
        let message = format!("{file} has {} rows", points.len());
        return Err(Wrong::new(message, format!("a distribution has 1 to {MAX_POINTS} points")));
    }
    // In percent.
    let all = if points[points.len() - 1].1 == 100.0 { 100.0 } else { 1.0 };
    let point =
        |&(bytes, share): &(u64, f64)| format!("{} {}", format_size(bytes), real(share / all));
    let points: Vec<_> = points.iter().map(point).collect();
    Ok(format!("{CDF} {}", points.join(", ")).into())
}

/// Times rising.
fn pairs<'t>(text: &'t str, name: &str) -> Result<Vec<Pair<'t>>, Wrong> {
    let mut pairs: Vec<Pair<'t>> = Vec::new();
    let mut headed = false;
    for (line, row) in text.lines().enumerate() {
        let line = line + 1;
        let fields: Vec<_> = row
            .split(|c: char| c.is_whitespace() || c == ',' || c == ';')
            .filter(|field| !field.is_empty())
            .collect();
        let Some(first) = fields.first().filter(|first| !first.starts_with('#')) else { continue };
        let [time, number, ..] = fields[..] else {
            if pairs.is_empty() && !headed && first.starts_with(char::is_alphabetic) {
                headed = true;
                continue;
            }
            return Err(not_two(name, line, row));
        };
        if !is_number(time) || !is_number(number) {
            if pairs.is_empty() && !headed && first.starts_with(char::is_alphabetic) {
                headed = true;
                continue;
            }
            return Err(not_two(name, line, row));
        }
        let at = whole(time, 9).filter(|at| *at <= 10u128.pow(18)).ok_or_else(|| {
            Wrong::new(
                format!("{name}, line {line}: a time of {time} s is too long"),
                "times are in seconds",
            )
        })? as u64;
        if pairs.last().is_some_and(|last| at <= last.at) {
            let hint = "the first column is the time in seconds";
            return Err(Wrong::new(format!("{name}, line {line}: times must rise"), hint));
        }
        pairs.push(Pair { line, at, number });
        if pairs.len() > MAX_ROWS {
            return Err(Wrong::new(
                format!("{name} has more than {MAX_ROWS} rows"),
                "give a shorter trace",
            ));
        }
    }
    if pairs.is_empty() {
        return Err(Wrong::new(
            format!("{name} has no rows"),
            "write a time and a value on each line",
        ));
    }
    Ok(pairs)
}

fn not_two(name: &str, line: usize, row: &str) -> Wrong {
    let message = format!("{name}, line {line}: {} is not two numbers", quoted_words(row.trim()));
    Wrong::new(message, "write a time and a value")
}

/// Up to 15 digits, 15 decimals and an exponent of two digits.
fn is_number(text: &str) -> bool {
    let digits = |text: &str, most: usize| {
        (1..=most).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_digit())
    };
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent)),
        None => (text, None),
    };
    let (whole, decimals) = match number.split_once('.') {
        Some((whole, decimals)) => (whole, Some(decimals)),
        None => (number, None),
    };
    digits(whole, 15)
        && decimals.is_none_or(|decimals| digits(decimals, 15))
        && exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e), 2))
}

/// The number times ten to the power of `scale`, rounded to the nearest, halves to the even;
/// `None`: too large.
fn whole(number: &str, scale: i32) -> Option<u128> {
    let (digits, exponent) = parts(number);
    let exponent = exponent + scale;
    if digits == 0 {
        return Some(0);
    }
    if exponent >= 0 {
        return 10u128.checked_pow(exponent as u32)?.checked_mul(digits);
    }
    let Some(divisor) = 10u128.checked_pow(-exponent as u32) else { return Some(0) };
    let (quotient, rest) = (digits / divisor, digits % divisor);
    let up = rest > divisor / 2 || (rest == divisor / 2 && quotient % 2 == 1);
    Some(quotient + u128::from(up && divisor > 1))
}

fn parts(number: &str) -> (u128, i32) {
    let (number, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{decimals}").parse().unwrap_or(0);
    (digits, exponent.parse::<i32>().unwrap_or(0) - decimals.len() as i32)
}

/// As it was written, but for a capital or unsigned exponent.
fn decimal(number: &str) -> String {
    match number.split_once(['e', 'E']) {
        None => number.to_owned(),
        Some((digits, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent.strip_prefix('+').unwrap_or(exponent)),
            };
            format!("{digits}E{sign}{}", exponent.trim_start_matches('0'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> (Vec<(String, String)>, String) {
        let found = chances(text, "lte").expect("it is right").expect("it is Mahimahi's");
        let (rows, length) = rate_of_chances(&found);
        let cell = |row: &Value, i: usize| row.list().and_then(|r| r[i].text()).unwrap().to_owned();
        let rows = rows.list().unwrap().iter().map(|row| (cell(row, 0), cell(row, 1))).collect();
        (rows, length)
    }

    #[test]
    fn chances_of_1500_bytes_are_rates_that_end_with_their_millisecond() {
        let row = |at: &str, rate: &str| (at.to_owned(), rate.to_owned());
        let (rows, length) = steps("1\n2\n2\n5\n");
        let expected = [
            row("0 s", "12 Mbit/s"),
            row("1 ms", "24 Mbit/s"),
            row("2 ms", "0 bit/s"),
            row("4 ms", "12 Mbit/s"),
        ];
        assert_eq!((rows.as_slice(), length.as_str()), (&expected[..], "5 ms"));
        // One at 0 belongs to the end, and equal rates are one step.
        let (rows, length) = steps("0\n3\n4\n");
        let expected = [row("0 s", "0 bit/s"), row("2 ms", "12 Mbit/s"), row("3 ms", "24 Mbit/s")];
        assert_eq!((rows.as_slice(), length.as_str()), (&expected[..], "4 ms"));
    }

    #[test]
    fn what_is_not_one_column_of_milliseconds_is_none_of_mahimahi_s_or_refused() {
        assert_eq!(chances("0 20\n1 12\n", "f").unwrap(), None);
        assert_eq!(chances("# nothing\n", "f").unwrap(), None);
        for wrong in ["5\n4\n", "0\n", "99999999999\n"] {
            assert!(chances(wrong, "f").is_err(), "{wrong}");
        }
    }
}
