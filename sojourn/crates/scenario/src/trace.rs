//! Traces: a link's rate, delay or loss, or a video's frames, from a file of two columns. Also
//! measured distributions of sizes (`size = "cdf sizes.csv"`): bytes, and the share of all sizes
//! that are no larger.
//!
//! ```text
//! # seconds  Mbit/s            # seconds  ms            # seconds  bytes
//! 0          20                0          40            0.00       14210
//! 1          12.5              1          55.2          0.04       2380
//! ```
//!
//! A rate's file of one column is Mahimahi's (R. Netravali et al., "Mahimahi: accurate
//! record-and-replay for HTTP", 2015): each line is the millisecond of an opportunity to send 1500
//! bytes. The last line is the length of the trace. n opportunities at a millisecond become a rate
//! of n · 12 Mbit/s for the millisecond that ends then. Deviation: the unused part of an
//! opportunity is not lost, and a packet of 1501 bytes does not use up a second opportunity.
//!
//! Columns are separated by tabs, commas, semicolons or blanks; lines that begin with # are
//! skipped. The first line may name the columns (`columns.rs`), and must if there are more than
//! two. Times count from the first row's. A trace repeats: its last row lasts as long as the one
//! before it. A trace with more than `MAX_ROWS` rows is read up to the end of the run. Reading
//! turns `trace = "file"` into rows, so that a scenario is complete without the file. The caller
//! hands in the file: nothing is opened here.

use crate::columns::{Chosen, Quantity, chosen, fields};
use crate::forms::MAX_ROWS;
use crate::laws::{CDF, MAX_POINTS};
use crate::problem::{Key, Part, Problem, below};
use traffic::TrafficKind;
use values::quantity::{
    TIME, Times, format_duration, format_probability, format_rate, format_size, is_blank,
    parse_duration,
};
use values::text::quoted as quoted_words;
use values::{Table, Value, Wrong, quoted, real};

/// Returns the bytes of a file beside the scenario, or why it can't be read.
pub type Open<'o> = dyn Fn(&str) -> Result<Vec<u8>, String> + 'o;

/// Whether this build can read files: the lab's page in a browser can't.
pub const READS_FILES: bool = cfg!(not(target_arch = "wasm32"));

/// The error of a build that reads no files.
pub fn not_read() -> Wrong {
    Wrong::new("a web page can't read files", "write the file's contents into the scenario")
}

/// The longest file, bytes.
pub const MAX_BYTES: usize = 64 << 20;

/// The result of `resolve`.
#[derive(Default)]
pub(crate) struct Resolved {
    /// Problems of the traces.
    pub(crate) problems: Vec<Problem>,
    /// Notes on columns that were not read.
    pub(crate) notes: Vec<Problem>,
    /// Traces that were read only up to the end of the run: their tables, and the files' names.
    pub(crate) cut: Vec<(Key, Value)>,
}

impl Resolved {
    /// Replaces rows of a part by the file's name again, since a run of another length needs
    /// another part. Returns the names.
    pub(crate) fn restore(&self, document: &mut Table) -> Vec<String> {
        for (at, name) in &self.cut {
            if let Some(table) = table_at(document, at) {
                table.remove(RATE.rows);
                table.set(RATE.trace, name.clone());
            }
        }
        self.cut.iter().filter_map(|(_, name)| Some(name.text()?.to_owned())).collect()
    }
}

fn table_at<'d>(document: &'d mut Table, at: &[Part]) -> Option<&'d mut Table> {
    let Some((Part::Name(name), rest)) = at.split_first() else { return Some(document) };
    match (document.get_mut(name)?, rest) {
        (Value::Table(inner), _) => table_at(inner, rest),
        (Value::List(items), [Part::Index(index), rest @ ..]) => match items.get_mut(*index)? {
            Value::Table(inner) => table_at(inner, rest),
            _ => None,
        },
        _ => None,
    }
}

/// Replaces every `trace` of the document by its rows.
pub(crate) fn resolve(document: &mut Table, open: &Open<'_>) -> Resolved {
    let mut resolved = Resolved::default();
    let times = Times { zero: false, ..TIME };
    let run = document.get("duration").and_then(|value| parse_duration(value, &times).ok());
    let mut each = |table: &mut Table, at: &Key, kind: &Kind| {
        resolve_table(table, at, kind, run, open, &mut resolved);
    };
    if let Some(Value::Table(bottleneck)) = document.get_mut("bottleneck") {
        let at: Key = vec!["bottleneck".into()];
        OF_LINKS.iter().for_each(|kind| each(bottleneck, &at, kind));
        for way in ["up", "down"] {
            if let Some(Value::Table(own)) = bottleneck.get_mut(way) {
                OF_LINKS.iter().for_each(|kind| each(own, &below(&at, way), kind));
            }
        }
    }
    for (list, kinds) in [("link", OF_LINKS), ("flow", &[&FRAMES])] {
        let Some(Value::List(entries)) = document.get_mut(list) else { continue };
        for (index, entry) in entries.iter_mut().enumerate() {
            let Value::Table(table) = entry else { continue };
            if list == "link"
                || table.get("kind").and_then(Value::text) == Some(TrafficKind::Video.word())
            {
                let at = vec![list.into(), index.into()];
                kinds.iter().for_each(|kind| each(table, &at, kind));
            }
        }
    }
    if let Some(Value::List(entries)) = document.get_mut("flow") {
        for (index, entry) in entries.iter_mut().enumerate() {
            let Value::Table(table) = entry else { continue };
            let Some(size) = table.get("size").and_then(measured) else { continue };
            match distribution(&size, open) {
                Ok(points) => table.set("size", points),
                Err(wrong) => {
                    let at = vec!["flow".into(), index.into(), "size".into()];
                    resolved.problems.push(Problem::new(wrong.message, wrong.hint, at));
                    // Reported once: the value in its place is valid.
                    table.set("size", "1 B".into());
                }
            }
        }
    }
    resolved
}

/// A kind of trace, by its keys.
struct Kind {
    /// The key that names the file.
    trace: &'static str,
    /// The keys that receive the contents.
    rows: &'static str,
    repeat: &'static str,
    /// A required key with a value, for a file that can't be read.
    needs: Option<(&'static str, &'static str)>,
    /// The quantity of the second column.
    of: Quantity,
    /// Whether it may be read only up to the end of the run.
    in_part: bool,
    /// Bounds, as whole numbers in the scenario's unit.
    least: u128,
    most: u128,
    write: fn(u64) -> String,
}

const RATE: Kind = Kind {
    trace: "trace",
    rows: "schedule",
    repeat: "repeat",
    needs: Some(("rate", "1 Mbit/s")),
    of: Quantity::Rate,
    in_part: true,
    least: 0,
    most: 10u128.pow(13),
    write: format_rate,
};
const DELAY: Kind = Kind {
    trace: "delay_trace",
    rows: "delay_schedule",
    repeat: "delay_repeat",
    needs: Some(("delay", "0 s")),
    of: Quantity::Delay,
    in_part: false,
    least: 0,
    most: 3_600_000_000_000,
    write: format_duration,
};
const LOSS: Kind = Kind {
    trace: "loss_trace",
    rows: "loss_schedule",
    repeat: "loss_repeat",
    needs: None,
    of: Quantity::Loss,
    in_part: false,
    least: 0,
    most: ALL,
    write: |parts| format_probability(parts as f64 / ALL as f64),
};
/// Every packet, in the parts of 10^9 in which a trace's losses are read.
const ALL: u128 = 1_000_000_000;
const FRAMES: Kind = Kind {
    trace: "trace",
    rows: "frames",
    repeat: "repeat",
    needs: None,
    of: Quantity::Size,
    in_part: false,
    least: 1,
    most: 1 << 31,
    write: format_size,
};
/// The kinds that a link may have.
const OF_LINKS: &[&Kind] = &[&RATE, &DELAY, &LOSS];
/// The rate of one opportunity in a millisecond: 1500 bytes.
const OPPORTUNITY_BPS: u64 = 12_000_000;
const MS: u64 = 1_000_000;

fn resolve_table(
    table: &mut Table,
    at: &Key,
    kind: &Kind,
    run: Option<u64>,
    open: &Open<'_>,
    resolved: &mut Resolved,
) {
    let Kind { trace, rows, repeat, .. } = *kind;
    let Some(name) = table.remove(trace) else { return };
    let mut refuse = |wrong: Wrong| {
        resolved.problems.push(Problem::new(wrong.message, wrong.hint, below(at, trace)));
    };
    if let Some(clash) = [rows, repeat].into_iter().find(|name| table.has(name)) {
        refuse(Wrong::new(format!("{trace} and {clash} are both given"), "keep one of them"));
        return;
    }
    match read(&name, kind, open).and_then(|trace| trace.within(&name, kind, run)) {
        Ok(steps) => {
            let row = |&(at, each): &(u64, u64)| {
                Value::List(vec![format_duration(at).into(), (kind.write)(each).into()])
            };
            table.set(rows, Value::List(steps.rows.iter().map(row).collect()));
            match steps.length {
                Some(length) => table.set(repeat, format_duration(length).into()),
                None => resolved.cut.push((at.clone(), name)),
            }
            if let Some((message, hint)) = steps.note {
                resolved.notes.push(Problem::new(message, hint, below(at, trace)));
            }
        }
        Err(wrong) => {
            refuse(wrong);
            // The trace's problem is enough: a missing key would be a second one.
            if let Some((key, value)) = kind.needs.filter(|(key, _)| !table.has(key)) {
                table.set(key, value.into());
            }
        }
    }
}

/// The contents of a file.
#[derive(Debug, Default)]
struct Trace {
    /// Times from the start in ns, each with the value from then on.
    rows: Vec<(u64, u64)>,
    /// The time after which the rows repeat, ns; `None`: the run ends before.
    length: Option<u64>,
    /// The message and the hint about the parts that were not read.
    note: Option<(String, String)>,
}

impl Trace {
    /// Keeps as many rows as a scenario may have. If there are more, it keeps those before `run`
    /// ns, and adds two: the greatest value, because disciplines are sized for it, and zero, so
    /// that a longer run shows that the trace has ended.
    fn within(mut self, name: &Value, kind: &Kind, run: Option<u64>) -> Result<Trace, Wrong> {
        if self.rows.len() <= MAX_ROWS {
            return Ok(self);
        }
        let wrong = |message: String| {
            let hint =
                format!("the most is {MAX_ROWS}: give a shorter trace, or a shorter duration");
            Err(Wrong::new(format!("{} {message}", quoted(name)), hint))
        };
        let Some(run) = run.filter(|run| kind.in_part && self.length >= Some(*run)) else {
            return wrong(format!("has {} steps", self.rows.len()));
        };
        let most = self.rows.iter().map(|(_, value)| *value).max().unwrap_or(0);
        self.rows.retain(|(at, _)| *at < run);
        if self.rows.len() > MAX_ROWS - 2 {
            return wrong(format!("has {} steps within the run", self.rows.len()));
        }
        self.rows.extend([(run, most), (run + MS, 0)]);
        self.length = None;
        Ok(self)
    }
}

/// The text of a file, without a byte order mark.
fn text_of(name: &Value, open: &Open<'_>) -> Result<String, Wrong> {
    let file =
        name.text().filter(|name| !name.is_empty() && !name.contains('\0')).ok_or_else(|| {
            let hint = "write a path in quotes, like \"lte.csv\"";
            Wrong::new(format!("{} is not a file name", quoted(name)), hint)
        })?;
    let data = open(file).map_err(|why| {
        let hint = "the path is relative to the scenario's folder";
        Wrong::new(format!("can't read {}: {why}", quoted(name)), hint)
    })?;
    if data.len() > MAX_BYTES {
        let message = format!("{} is larger than {}", quoted(name), format_size(MAX_BYTES as u64));
        return Err(Wrong::new(message, "give a shorter one"));
    }
    let text = String::from_utf8(data).map_err(|_| {
        Wrong::new(format!("{} is not text (UTF-8)", quoted(name)), "give two columns of numbers")
    })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// The contents of a file, in the scenario's units.
fn read(name: &Value, kind: &Kind, open: &Open<'_>) -> Result<Trace, Wrong> {
    let text = text_of(name, open)?;
    if !READS_FILES {
        return Err(not_read());
    }
    let file = name.text().unwrap_or_default();
    if kind.rows == RATE.rows
        && let Some(opportunities) = opportunities(&text, file)?
    {
        return Ok(rate_of_opportunities(&opportunities));
    }
    let (pairs, note) = pairs(&text, file, kind.of)?;
    let Kind { least, most, write, .. } = *kind;
    let start = pairs[0].at;
    let mut rows = Vec::with_capacity(pairs.len());
    for pair in &pairs {
        let value = whole(pair.number, pair.scale).filter(|value| *value <= most);
        let Some(value) = value.filter(|value| *value >= least) else {
            let message =
                format!("{file}, line {}: {} is out of range", pair.line, decimal(pair.number));
            return Err(Wrong::new(message, format!("the most is {}", write(most as u64))));
        };
        rows.push((pair.at - start, value as u64));
    }
    let last = rows[rows.len() - 1].0;
    let step = if rows.len() > 1 { last - rows[rows.len() - 2].0 } else { 1_000_000_000 };
    Ok(Trace { rows, length: Some(last + step), note })
}

/// The milliseconds of a Mahimahi trace, each with its number of opportunities; `None`: it is
/// another format.
fn opportunities(text: &str, name: &str) -> Result<Option<Vec<(u64, u64)>>, Wrong> {
    let rows = || {
        let lines = text.lines().zip(1..).map(|(row, line)| (line, row.trim()));
        lines.filter(|(_, row)| !row.is_empty() && !row.starts_with('#'))
    };
    if !rows().all(|(_, row)| row.bytes().all(|c| c.is_ascii_digit())) {
        return Ok(None);
    }
    let mut milliseconds: Vec<(u64, u64)> = Vec::new();
    for (line, row) in rows() {
        let ms = row.parse().ok().filter(|ms| *ms <= 1_000_000_000).ok_or_else(|| {
            Wrong::new(format!("{name}, line {line}: {row} ms is too long"), "times are in ms")
        })?;
        match milliseconds.last_mut() {
            Some((last, chances)) if *last == ms => *chances += 1,
            Some((last, _)) if *last > ms => {
                let hint = "each line is the millisecond of an opportunity to send 1500 bytes";
                return Err(Wrong::new(format!("{name}, line {line}: times must not fall"), hint));
            }
            _ => milliseconds.push((ms, 1)),
        }
    }
    match milliseconds.last() {
        None => Ok(None),
        Some((0, _)) => {
            let hint = "the last line is the length of the trace in milliseconds";
            Err(Wrong::new(format!("{name} is a trace of length 0"), hint))
        }
        Some(_) => Ok(Some(milliseconds)),
    }
}

/// Steps of the rate that uses up each opportunity by the end of its millisecond.
fn rate_of_opportunities(opportunities: &[(u64, u64)]) -> Trace {
    let last = opportunities[opportunities.len() - 1].0;
    let mut steps: Vec<(u64, u64)> = Vec::new();
    let mut step = |ms: u64, bps: u64| match steps.last_mut() {
        Some((before, rate)) if *before == ms * MS => *rate += bps,
        Some((_, rate)) if *rate == bps => {}
        _ => steps.push((ms * MS, bps)),
    };
    let mut over = 0;
    // An opportunity at 0 belongs to the end of the preceding pass of the trace.
    let at_zero = opportunities.iter().find(|(ms, _)| *ms == 0).map_or(0, |(_, count)| *count);
    for &(ms, count) in opportunities.iter().filter(|(ms, _)| *ms > 0) {
        if ms - 1 > over {
            step(over, 0);
        }
        let more = if ms == last { at_zero } else { 0 };
        step(ms - 1, (count + more) * OPPORTUNITY_BPS);
        over = ms;
    }
    Trace { rows: steps, length: Some(last * MS), note: None }
}

struct Pair<'t> {
    line: usize,
    /// ns.
    at: u64,
    number: &'t str,
    /// The scenario's value is `number` times ten to this power.
    scale: i32,
}

/// The file that `cdf FILE` names; `None` if the text is something else, such as the points of a
/// distribution.
fn measured(value: &Value) -> Option<String> {
    let rest = value.text()?.trim().strip_prefix(CDF)?;
    let file = rest.strip_prefix(is_blank)?.trim_matches(is_blank);
    let share = file.rsplit_once(is_blank).is_some_and(|(_, share)| share.parse::<f64>().is_ok());
    (!file.is_empty() && !file.contains([',', '\0']) && !share).then(|| file.to_owned())
}

/// The points of the distribution, as a scenario contains them.
fn distribution(file: &str, open: &Open<'_>) -> Result<Value, Wrong> {
    let columns = "write on each line bytes, and the share of sizes that are no larger";
    let text = text_of(&file.into(), open)?;
    if !READS_FILES {
        return Err(not_read());
    }
    let mut points: Vec<(u64, f64)> = Vec::new();
    let mut headed = false;
    for (line, row) in text.lines().enumerate() {
        let fields = fields(row);
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

/// The note on columns that are not read: a message and a hint.
type Note = Option<(String, String)>;

/// The time and the value of each row, in rising order of time.
fn pairs<'t>(text: &'t str, name: &str, of: Quantity) -> Result<(Vec<Pair<'t>>, Note), Wrong> {
    let mut pairs: Vec<Pair<'t>> = Vec::new();
    let mut names: Option<Vec<String>> = None;
    // The words of the last comment, if it names as many columns as a row has.
    let mut comment = Vec::new();
    let mut chosen_columns: Option<(usize, Chosen)> = None;
    for (line, row) in text.lines().enumerate() {
        let line = line + 1;
        let row = row.trim();
        if let Some(words) = row.strip_prefix('#') {
            comment = names_in(words.trim_start_matches('#').trim());
            continue;
        }
        if row.is_empty() {
            continue;
        }
        if pairs.is_empty()
            && names.is_none()
            && row.starts_with(|c: char| c.is_alphabetic() || c == '"')
        {
            names = Some(names_in(row));
            continue;
        }
        let cells = fields(row);
        let (count, columns) = match &chosen_columns {
            Some(columns) => columns,
            None => {
                let named = names.take().unwrap_or_else(|| {
                    let by_comment = cells.len() > 2 && comment.len() == cells.len();
                    if by_comment { std::mem::take(&mut comment) } else { Vec::new() }
                });
                names = Some(Vec::new());
                if cells.len() < 2 || !cells.iter().any(|cell| is_number(cell)) {
                    return Err(not_two(name, line, row));
                }
                &*chosen_columns.insert((cells.len(), chosen(name, cells.len(), &named, of)?))
            }
        };
        let cell = |column: usize| cells.get(column).copied().filter(|cell| is_number(cell));
        let (Some(time), Some(number)) = (cell(columns.time.0), cell(columns.value.0)) else {
            return Err(not_two(name, line, row));
        };
        if cells.len() > *count {
            let message = format!(
                "{name}, line {line}: {} columns, but {count} in the first row",
                cells.len()
            );
            return Err(Wrong::new(message, "write as many columns on each line"));
        }
        let at =
            whole(time, columns.time.1).filter(|at| *at <= 10u128.pow(18)).ok_or_else(|| {
                let message = format!("{name}, line {line}: a time of {time} is too long");
                Wrong::new(message, "times are in seconds, unless the first line says time_ms")
            })? as u64;
        if pairs.last().is_some_and(|last| at <= last.at) {
            let hint = format!("column {} is the time", columns.time.0 + 1);
            return Err(Wrong::new(format!("{name}, line {line}: times must rise"), hint));
        }
        pairs.push(Pair { line, at, number, scale: columns.value.1 });
    }
    let Some((_, columns)) = chosen_columns else {
        return Err(Wrong::new(
            format!("{name} has no rows"),
            "write a time and a value on each line",
        ));
    };
    let note = (!columns.unread.is_empty()).then(|| {
        let [time, value] = [columns.time.0 + 1, columns.value.0 + 1];
        let unread: Vec<_> = columns.unread.iter().map(|name| quoted_words(name)).collect();
        (
            format!("{name}: columns {time} and {value} are read, but not {}", unread.join(", ")),
            "leave the others out, or name the columns otherwise".to_owned(),
        )
    });
    Ok((pairs, note))
}

/// The names of columns in a line, without quotes.
fn names_in(line: &str) -> Vec<String> {
    fields(line).into_iter().map(|name| name.trim_matches('"').trim().to_owned()).collect()
}

fn not_two(name: &str, line: usize, row: &str) -> Wrong {
    let message = format!("{name}, line {line}: {} is not two numbers", quoted_words(row.trim()));
    Wrong::new(message, "write a time and a value")
}

/// Up to 18 digits, 20 decimals (a double has 17 figures) and an exponent of three digits.
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
    digits(whole, 18)
        && decimals.is_none_or(|decimals| digits(decimals, 20))
        && exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e), 3))
}

/// The number times ten to the power of `scale`, rounded to the nearest, ties to even; `None`: it
/// is too large.
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

/// The number as written, except that an exponent gets a lower-case e and a sign.
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
        let parsed = opportunities(text, "lte").expect("it is right").expect("it is Mahimahi's");
        let trace = rate_of_opportunities(&parsed);
        let rows = trace.rows.iter().map(|&(at, bps)| (format_duration(at), format_rate(bps)));
        (rows.collect(), format_duration(trace.length.expect("it repeats")))
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
        // An opportunity at 0 belongs to the end, and equal rates are one step.
        let (rows, length) = steps("0\n3\n4\n");
        let expected = [row("0 s", "0 bit/s"), row("2 ms", "12 Mbit/s"), row("3 ms", "24 Mbit/s")];
        assert_eq!((rows.as_slice(), length.as_str()), (&expected[..], "4 ms"));
    }

    #[test]
    fn a_file_that_is_not_one_column_of_milliseconds_is_not_a_mahimahi_trace() {
        assert_eq!(opportunities("0 20\n1 12\n", "f").unwrap(), None);
        assert_eq!(opportunities("# nothing\n", "f").unwrap(), None);
        for wrong in ["5\n4\n", "0\n", "99999999999\n"] {
            assert!(opportunities(wrong, "f").is_err(), "{wrong}");
        }
    }

    #[test]
    fn of_a_long_trace_the_rows_before_the_run_s_end_are_kept_where_two_more_fit() {
        let kept = |run: usize| {
            let rows = (0..=MAX_ROWS as u64).map(|at| (at, 1 + at % 2)).collect();
            let long = Trace { rows, length: Some(u64::MAX), note: None };
            long.within(&"long".into(), &RATE, Some(run as u64)).map(|part| part.rows)
        };
        let run = MAX_ROWS as u64 - 2;
        let rows = kept(MAX_ROWS - 2).expect("as many as there may be");
        assert_eq!((rows.len(), &rows[MAX_ROWS - 2..]), (MAX_ROWS, &[(run, 2), (run + MS, 0)][..]));
        let wrong = kept(MAX_ROWS - 1).expect_err("one too many").message;
        assert_eq!(wrong, "'long' has 199999 steps within the run");
    }

    #[test]
    fn the_last_row_lasts_as_long_as_the_one_before_and_one_alone_a_second() {
        let length = |text: &'static str| {
            let open = |_: &str| Ok(text.as_bytes().to_vec());
            read(&"f".into(), &DELAY, &open).expect(text).length
        };
        let seconds = ["0 5\n", "0 5\n2 7\n", "0 5\n2 7\n5 5\n"].map(length);
        assert_eq!(seconds, [1, 4, 8].map(|s| Some(s * 1_000_000_000)));
    }

    #[test]
    fn a_comment_names_columns_where_it_has_as_many_words() {
        let read = |text| pairs(text, "f", Quantity::Rate).map(|(rows, _)| rows[0].number);
        assert_eq!(read("# time rtt_ms rate_mbps\n0 30 5\n").ok(), Some("5"));
        let wrong = read("# on a train\n# downwards\n0 30 5\n").expect_err("it has no names");
        assert_eq!(wrong.message, "f has 3 columns without names");
    }
}
