//! Traces: a link's rate, or a video's frames, from a file of two columns.
//!
//! ```text
//! # seconds  Mbit/s            # seconds  bytes
//! 0          20                0.00       14210
//! 1          12.5              0.04       2380
//! ```
//!
//! Columns are separated by spaces, tabs, commas or semicolons; lines that begin with # (and one
//! line of column names) are skipped. Times count from the first line's. A trace repeats: its last
//! row lasts as long as the one before it. Reading one turns `trace = "file"` into the rows
//! themselves, so that a scenario is complete without the file. The file is handed in: nothing is
//! opened here.

use crate::forms::MAX_ROWS;
use crate::problem::{Key, Problem, Wrong, below};
use crate::quantity::{format_duration, format_rate, format_size};
use crate::value::{Table, Value, quoted};
use tc::text::quoted as quoted_words;

/// The bytes of a file beside the scenario, or why it can't be read.
pub type Open<'o> = dyn Fn(&str) -> Result<Vec<u8>, String> + 'o;

/// The longest file, bytes.
pub const MAX_BYTES: usize = 16 << 20;

/// Replaces every `trace` of the document by its rows; gives what was wrong.
pub(crate) fn resolve(document: &mut Table, open: &Open<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some(Value::Table(bottleneck)) = document.get_mut("bottleneck") {
        let at: Key = vec!["bottleneck".into()];
        resolve_table(bottleneck, &at, "schedule", open, &mut problems);
        for way in ["up", "down"] {
            if let Some(Value::Table(own)) = bottleneck.get_mut(way) {
                resolve_table(own, &below(&at, way), "schedule", open, &mut problems);
            }
        }
    }
    for (list, rows) in [("link", "schedule"), ("flow", "frames")] {
        let Some(Value::List(entries)) = document.get_mut(list) else { continue };
        for (index, entry) in entries.iter_mut().enumerate() {
            let Value::Table(table) = entry else { continue };
            if list == "link" || table.get("kind").and_then(Value::text) == Some("video") {
                resolve_table(table, &vec![list.into(), index.into()], rows, open, &mut problems);
            }
        }
    }
    problems
}

fn resolve_table(
    table: &mut Table,
    at: &Key,
    rows: &str,
    open: &Open<'_>,
    problems: &mut Vec<Problem>,
) {
    let Some(name) = table.remove("trace") else { return };
    let mut tell =
        |wrong: Wrong| problems.push(Problem::new(wrong.message, wrong.hint, below(at, "trace")));
    if let Some(clash) = [rows, "repeat"].into_iter().find(|name| table.has(name)) {
        tell(Wrong::new(format!("trace and {clash} are both given"), "keep one of them"));
        return;
    }
    match read(&name, rows, open) {
        Ok((steps, repeat)) => {
            table.set(rows, steps);
            table.set("repeat", repeat.into());
        }
        Err(wrong) => {
            tell(wrong);
            // The rate is said by the trace, wherever it went wrong: no second complaint about it.
            if !table.has("rate") {
                table.set("rate", "1 Mbit/s".into());
            }
        }
    }
}

/// The rows and after which time they begin again, in the words of a scenario.
fn read(name: &Value, rows: &str, open: &Open<'_>) -> Result<(Value, String), Wrong> {
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
    let pairs = pairs(&text, file)?;
    let (scale, most, write): (i32, u128, fn(u64) -> String) = if rows == "schedule" {
        (6, 10u128.pow(13), format_rate)
    } else {
        (0, 1 << 31, format_size)
    };
    let start = pairs[0].at;
    let mut table = Vec::with_capacity(pairs.len());
    for pair in &pairs {
        let value = whole(pair.number, scale).filter(|value| *value <= most);
        let Some(value) = value.filter(|value| rows != "frames" || *value >= 1) else {
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

struct Pair<'t> {
    line: usize,
    /// ns.
    at: u64,
    number: &'t str,
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
