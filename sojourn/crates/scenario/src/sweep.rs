//! Sweeps: `"bottleneck.qdisc" = ["pfifo", "codel"]` under `[sweep]`, and the meaning of dotted
//! keys.
//!
//! Each combination of the values is one scenario; the first key varies slowest. A key is the path
//! to a value. The entries of `[[flow]]` and `[[link]]` are named by index from 0 (`flow.0.count`),
//! by name or kind (`flow.bulk.count`), or all at once (`flow.*.ecn`). Keys with ranges have values
//! drawn together (`samples.rs`): each drawn point is combined with every combination of the other
//! values.

use crate::model::{Axis, MAX_VARIANTS, SEVERAL, Sweep};
use crate::problem::{Key, Part, Problem, Source, below, dotted};
use std::collections::BTreeSet;
use values::quantity::{TIME, parse_duration};
use values::text::{nearest, quoted as quoted_words};
use values::{Table, Value, quoted, real};

/// Keys whose value needs no key in a label.
const SELF_EXPLANATORY: [&str; 5] = ["qdisc", "congestion", "profile", "title", "link_layer"];

/// One point of a sweep: the value of each key.
#[derive(Clone, Debug)]
pub(crate) struct Change<'s> {
    settings: Vec<Setting<'s>>,
}

/// The value of one key of a sweep.
#[derive(Clone, Debug)]
struct Setting<'s> {
    key: &'s str,
    /// The index of the key's value; `None`: the value was drawn.
    index: Option<usize>,
    value: Value,
}

impl Setting<'_> {
    /// Its key in the document.
    fn at(&self) -> Key {
        let key: Key = vec!["sweep".into(), self.key.into()];
        self.index.map_or_else(|| key.clone(), |index| below(&key, index))
    }
}

impl Change<'_> {
    /// Returns the document with the values set.
    pub(crate) fn apply(&self, document: &Table, source: &Source) -> Result<Table, Vec<Problem>> {
        let mut result = document.clone();
        let moved = |setting: &Setting<'_>, result: Result<(), Vec<Problem>>| {
            let problems = result.err().unwrap_or_default().into_iter();
            let at = move |problem| Problem { key: setting.at(), ..problem };
            problems.map(|problem| source.locate(at(problem), 0)).collect::<Vec<_>>()
        };
        let mut problems = Vec::new();
        for setting in &self.settings {
            problems.extend(moved(setting, change(&mut result, setting.key, Some(&setting.value))));
        }
        if problems.is_empty() {
            for setting in &self.settings {
                problems.extend(moved(setting, check_set(&result, setting.key)));
            }
        }
        if problems.is_empty() { Ok(result) } else { Err(problems) }
    }

    /// The setting of the key that a problem of the changed scenario is about.
    fn near(&self, problem: &Problem) -> Option<&Setting<'_>> {
        let written: Vec<_> = problem.key.iter().map(Part::to_string).collect();
        self.settings.iter().find(|setting| {
            reaches(&setting.key.split('.').collect::<Vec<_>>(), &written)
                || problem.dotted().starts_with(setting.key)
        })
    }

    /// Whether a problem of the changed scenario is about a key that the sweep sets.
    pub(crate) fn is_of(&self, problem: &Problem) -> bool {
        self.near(problem).is_some()
    }

    /// Moves a problem of the changed scenario to the value in `[sweep]` that caused it.
    pub(crate) fn relocate(&self, problem: Problem, source: &Source) -> Problem {
        if problem.key.first() == Some(&"sweep".into()) {
            return problem;
        }
        let near = self.near(&problem);
        let message = match near {
            Some(_) => problem.message.clone(),
            None => format!("with {}: {}: {}", self.words(), problem.dotted(), problem.message),
        };
        let at = near.unwrap_or(&self.settings[0]).at();
        source.locate(Problem::new(message, problem.hint, at), 0)
    }

    /// Each key with its value.
    pub(crate) fn values(&self) -> Vec<(String, Value)> {
        self.settings.iter().map(|set| (set.key.to_owned(), set.value.clone())).collect()
    }

    /// The change as a label: `codel, rate 5 Mbit/s`.
    fn words(&self) -> String {
        let words = |set: &Setting<'_>| {
            let last = set.key.rsplit('.').next().unwrap_or(set.key);
            if SELF_EXPLANATORY.contains(&last) {
                text(&set.value)
            } else {
                format!("{last} {}", text(&set.value))
            }
        };
        self.settings.iter().map(words).collect::<Vec<_>>().join(", ")
    }
}

/// Sets the value at a dotted key; `None` removes the key.
pub(crate) fn change(
    document: &mut Table,
    key: &str,
    value: Option<&Value>,
) -> Result<(), Vec<Problem>> {
    for path in paths(document, key).map_err(|wrong| wrong.of(key))? {
        set(document, &path, value).map_err(|wrong| wrong.of(key))?;
    }
    Ok(())
}

/// Refuses a key that changes nothing, after all keys are set in any order.
pub(crate) fn check_set(document: &Table, key: &str) -> Result<(), Vec<Problem>> {
    for path in paths(document, key).map_err(|wrong| wrong.of(key))? {
        check_common(document, &path).map_err(|wrong| wrong.of(key))?;
        check_steps(document, &path).map_err(|wrong| wrong.of(key))?;
    }
    Ok(())
}

/// Every point of the sweep: drawn values point by point; among the others the first key varies
/// slowest.
pub(crate) fn changes<'s>(
    sweep: &'s Sweep,
    source: &Source,
) -> Result<Vec<Change<'s>>, Vec<Problem>> {
    if sweep.is_empty() {
        return Ok(Vec::new());
    }
    check(sweep, source)?;
    let mut points = drawn(sweep);
    for (key, axis) in &sweep.axes {
        let Axis::Values(values) = axis else { continue };
        points = points
            .iter()
            .flat_map(|point| {
                values.iter().enumerate().map(|(index, value)| {
                    let mut settings = point.settings.clone();
                    settings.push(Setting { key, index: Some(index), value: value.clone() });
                    Change { settings }
                })
            })
            .collect();
    }
    let place = |key: &str| sweep.axes.iter().position(|(name, _)| name == key);
    for point in &mut points {
        point.settings.sort_by_key(|setting| place(setting.key));
    }
    Ok(points)
}

/// Refuses keys and values that can't be swept.
fn check(sweep: &Sweep, source: &Source) -> Result<(), Vec<Problem>> {
    let mut problems = Vec::new();
    let mut size = sweep.sampling.as_ref().map_or(1, |sampling| sampling.count);
    let mut refuse = |message: String, hint: String, key: Key| {
        problems.push(source.locate(Problem::new(message, hint, key), 0));
    };
    for (key, axis) in &sweep.axes {
        let at: Key = vec!["sweep".into(), key.as_str().into()];
        let head = key.split('.').next().unwrap_or_default();
        if ["sweep", "seed", "seeds", "label"].contains(&head) {
            refuse(
                format!("{key} can't be swept"),
                "every variant runs with every seed".into(),
                at,
            );
            continue;
        }
        let Axis::Values(values) = axis else { continue };
        if values.is_empty() {
            let shown = quoted(&Value::List(values.clone()));
            refuse(
                format!("{shown} is not a list of values"),
                "write [\"codel\", \"fq_codel\"]".into(),
                at,
            );
        } else if values.iter().map(|value| format!("{value:?}")).collect::<BTreeSet<_>>().len()
            < values.len()
        {
            refuse("a value is listed twice".into(), "write each value once".into(), at);
        } else {
            size = size.saturating_mul(values.len());
        }
    }
    if size > MAX_VARIANTS {
        refuse(
            format!("{size} variants"),
            format!("the most is {MAX_VARIANTS}"),
            vec!["sweep".into()],
        );
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// The points that are drawn from ranges, each once; a single point without settings if there are
/// no ranges.
fn drawn(sweep: &Sweep) -> Vec<Change<'_>> {
    let Some(sampling) = &sweep.sampling else { return vec![Change { settings: Vec::new() }] };
    let columns: Vec<_> = sweep
        .axes
        .iter()
        .filter_map(|(key, axis)| match axis {
            Axis::Range(range) => Some((&**key, range.drawn(key, sampling))),
            Axis::Values(_) => None,
        })
        .collect();
    let point = |row: usize| Change {
        settings: columns
            .iter()
            .map(|(key, values)| Setting { key, index: None, value: values[row].clone() })
            .collect(),
    };
    // Few whole numbers are drawn several times.
    let mut seen = BTreeSet::new();
    (0..sampling.count)
        .map(point)
        .filter(|point| seen.insert(format!("{:?}", point.values())))
        .collect()
}

/// A short name for each point, unique.
pub(crate) fn labels(points: &[Change<'_>]) -> Vec<String> {
    let short: Vec<_> = points.iter().map(Change::words).collect();
    if short.iter().cloned().collect::<BTreeSet<_>>().len() == short.len() {
        return short;
    }
    let full = |point: &Change<'_>| {
        let words = point.settings.iter().map(|set| format!("{} {}", set.key, text(&set.value)));
        words.collect::<Vec<_>>().join(", ")
    };
    points.iter().map(full).collect()
}

/// Flattens a table: `bottleneck.qdisc = [...]` without quotes means the same as the quoted key.
pub(crate) fn flat(sweep: &Table) -> Table {
    let mut flattened = Table::default();
    for (key, value) in sweep.iter() {
        match value.table() {
            Some(inner) => {
                for (rest, value) in flat(inner).iter() {
                    flattened.set(&format!("{key}.{rest}"), value.clone());
                }
            }
            None => flattened.set(key, value.clone()),
        }
    }
    flattened
}

/// Why a dotted key names nothing, and what to write instead.
pub(crate) struct NoSuchKey(String, String);

impl NoSuchKey {
    /// Returns it as a problem of the key.
    fn of(self, key: &str) -> Vec<Problem> {
        vec![Problem::new(self.0, self.1, key.split('.').map(Part::from).collect())]
    }
}

/// The places in the document that a dotted key names.
pub(crate) fn paths(document: &Table, key: &str) -> Result<Vec<Key>, NoSuchKey> {
    let plain = || key.split('.').map(Part::from).collect::<Key>();
    let Some((head, rest)) =
        key.split_once('.').filter(|(head, rest)| SEVERAL.contains(head) && !rest.is_empty())
    else {
        return Ok(vec![plain()]);
    };
    let entries = document.get(head).and_then(Value::list).unwrap_or_default();
    let names: Vec<_> = entries.iter().map(|entry| name_of(entry, head)).collect();
    let mut places = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let number = index.to_string();
        let below =
            ["*", &number, name].iter().find_map(|word| rest.strip_prefix(word)?.strip_prefix('.'));
        if let Some(below) = below {
            let mut path: Key = vec![head.into(), index.into()];
            path.extend(below.split('.').map(Part::from));
            places.push(path);
        }
    }
    if !places.is_empty() {
        return Ok(places);
    }
    let words: Vec<_> = names
        .iter()
        .cloned()
        .chain((0..entries.len()).map(|index| index.to_string()))
        .chain(["*".into()])
        .collect();
    let entry = rest.split('.').next().unwrap_or_default();
    let guess = nearest(entry, words.iter().map(String::as_str))
        .map_or(String::new(), |guess| format!("did you mean {head}.{guess}? "));
    let hint = format!("{guess}known: {}", words[..words.len().min(20)].join(", "));
    Err(NoSuchKey(format!("{} names no [[{head}]]", quoted_words(key)), hint))
}

/// The rest of a sweep after the values at these places are settled; a key stays if it names any
/// other place.
pub(crate) fn unsettled(sweep: &Sweep, document: &Table, settled: &BTreeSet<Key>) -> Sweep {
    let axes: Vec<_> =
        sweep.axes.iter().filter(|(key, _)| stays(key, document, settled)).cloned().collect();
    let ranged = axes.iter().any(|(_, axis)| matches!(axis, Axis::Range(_)));
    Sweep { axes, sampling: sweep.sampling.clone().filter(|_| ranged) }
}

/// Whether this key of a sweep names any place that is not settled.
pub(crate) fn stays(key: &str, document: &Table, settled: &BTreeSet<Key>) -> bool {
    match paths(document, key) {
        // Reading the sweep reports the error.
        Err(_) => true,
        Ok(named) => !named
            .iter()
            .all(|path| (1..=path.len()).any(|length| settled.contains(&path[..length]))),
    }
}

/// The name of an entry in a key: its name, or its kind (for a link: from-to).
fn name_of(entry: &Value, head: &str) -> String {
    let get = |key: &str| entry.table().and_then(|table| table.get(key));
    let shown = |value: Option<&Value>| value.map_or("None".into(), text);
    match get("name") {
        Some(name) => text(name),
        None if head == "flow" => get("kind").map_or(String::new(), text),
        None if head == "program" => "program".to_owned(),
        None => format!("{}-{}", shown(get("from")), shown(get("to"))),
    }
}

/// Keys that belong together: a direction that sets one of them takes none from the common table.
const RATES: &[&str] = &["rate", "schedule", "repeat", "trace"];
const DELAYS: &[&str] = &["delay", "delay_schedule", "delay_repeat", "delay_trace"];
const LOSSES: &[&str] = &["loss", "loss_schedule", "loss_repeat", "loss_trace"];

/// The keys that a table's own `key` replaces together with `key`.
pub(crate) fn together(key: &str) -> Vec<&str> {
    let group = [RATES, DELAYS, LOSSES].into_iter().find(|keys| keys.contains(&key));
    group.map_or(vec![key], <[_]>::to_vec)
}

/// Refuses a common value of the bottleneck that neither direction uses, since setting it would
/// change nothing.
fn check_common(document: &Table, path: &Key) -> Result<(), NoSuchKey> {
    let [Part::Name(head), Part::Name(key)] = &path[..] else { return Ok(()) };
    if head != "bottleneck" || key == "up" || key == "down" {
        return Ok(());
    }
    let rivals = together(key);
    let Some(bottleneck) = document.get(head).and_then(Value::table) else { return Ok(()) };
    let takes_its_own = |way: &str| {
        bottleneck
            .get(way)
            .and_then(Value::table)
            .is_some_and(|own| rivals.iter().any(|rival| own.has(rival)))
    };
    if takes_its_own("up") && takes_its_own("down") {
        let message = format!("setting it changes nothing: up and down each have their own {key}");
        return Err(NoSuchKey(
            message,
            format!("set bottleneck.up.{key} or bottleneck.down.{key}"),
        ));
    }
    Ok(())
}

/// Refuses a rate, delay or loss whose table has steps from 0 s, since setting it would change
/// nothing.
fn check_steps(document: &Table, path: &Key) -> Result<(), NoSuchKey> {
    let Some((Part::Name(key), around)) = path.split_last() else { return Ok(()) };
    let (steps, file) = match &**key {
        "rate" => ("schedule", "trace"),
        "delay" => ("delay_schedule", "delay_trace"),
        "loss" => ("loss_schedule", "loss_trace"),
        _ => return Ok(()),
    };
    let of_a_link =
        |part: &Part| matches!(part, Part::Name(name) if name == "link" || name == "bottleneck");
    let Some(table) = table_at(document, around).filter(|_| around.first().is_some_and(of_a_link))
    else {
        return Ok(());
    };
    let first = table.get(steps).and_then(Value::list).and_then(<[_]>::first);
    let at = first.and_then(Value::list).and_then(<[_]>::first).and_then(Value::text);
    let at_once = at.and_then(|at| parse_duration(&at.into(), &TIME).ok()) == Some(0);
    if !at_once && !table.has(file) {
        return Ok(());
    }
    let message = format!("setting it changes nothing: its steps begin at 0 s ({steps} or {file})");
    Err(NoSuchKey(message, format!("take {steps} or {file} away as well")))
}

/// The table at a place.
pub(crate) fn table_at<'d>(document: &'d Table, at: &[Part]) -> Option<&'d Table> {
    let Some((Part::Name(name), rest)) = at.split_first() else { return Some(document) };
    match (document.get(name)?, rest) {
        (Value::Table(inner), _) => table_at(inner, rest),
        (Value::List(items), [Part::Index(index), rest @ ..]) => {
            table_at(items.get(*index)?.table()?, rest)
        }
        _ => None,
    }
}

/// Sets a value; `None` removes the key.
fn set(document: &mut Table, path: &Key, value: Option<&Value>) -> Result<(), NoSuchKey> {
    match &path[0] {
        Part::Name(name) if name == "seed" => document.remove("seeds"),
        Part::Name(name) if name == "seeds" => document.remove("seed"),
        _ => None,
    };
    let (last, around) = path.split_last().expect("a key has a part");
    let no_table = |depth: usize| {
        let message = format!("{} is not a table", dotted(&path[..=depth]));
        NoSuchKey(message, format!("a key below it can't be set: {last}"))
    };
    let mut table = document;
    let mut depth = 0;
    while depth < around.len() {
        let Part::Name(name) = &around[depth] else { return Err(no_table(depth)) };
        if !table.has(name) {
            table.set(name, Value::Table(Table::default()));
        }
        let index =
            if let Some(Part::Index(index)) = around.get(depth + 1) { Some(*index) } else { None };
        table = match (table.get_mut(name).expect("it is there now"), index) {
            (Value::Table(inner), None) => inner,
            (Value::List(items), Some(index)) => {
                depth += 1;
                let Value::Table(inner) = &mut items[index] else { return Err(no_table(depth)) };
                inner
            }
            _ => return Err(no_table(depth)),
        };
        depth += 1;
    }
    match value {
        Some(value) => table.set(&last.to_string(), value.clone()),
        None => {
            table.remove(&last.to_string());
        }
    }
    Ok(())
}

/// Whether a problem's key is equal to, below or above a swept key; an entry may be given by name.
fn reaches(swept: &[&str], written: &[String]) -> bool {
    let entries = SEVERAL.contains(&swept[0]);
    if !entries {
        let shorter = swept.len().min(written.len());
        return swept[..shorter].iter().zip(written).all(|(key, part)| key == part);
    }
    written.len() > 2
        && written[0] == swept[0]
        && swept.len() >= 2
        && written[2..swept.len().max(2).min(written.len())].iter().eq(swept[2..].iter())
}

fn text(value: &Value) -> String {
    match value {
        Value::Bool(truth) => if *truth { "on" } else { "off" }.to_owned(),
        Value::Text(text) => text.clone(),
        Value::List(items) => {
            format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", "))
        }
        Value::Int(number) => number.to_string(),
        Value::Float(number) => real(*number),
        Value::Table(_) => quoted(value),
    }
}
