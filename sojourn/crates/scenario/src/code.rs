//! The user's own code in the scenario: `qdisc = "my_aqm.py:Mine"`, `congestion = "my_cc.py:Mine"`
//! and a program's `files = ["rate.sh"]` name files beside the scenario; the table `[code]` contains
//! their text.
//!
//! So a scenario is complete without the file, as with traces: its Run, another machine and a
//! cluster's worker have the same text. A file that is already in `[code]` is not read again; a
//! file that no key names is removed. The caller hands in the file: nothing is opened or run here.

use crate::command::is_file;
use crate::problem::{Key, Problem, below};
use crate::trace::{Open, READS_FILES, not_read};
use std::collections::BTreeMap;
use values::quantity::format_size;
use values::{Table, Value, Wrong, quoted};

/// The longest file, bytes.
const MAX_BYTES: usize = 1 << 20;
/// The table's name.
pub(crate) const CODE: &str = "code";

/// Puts the text of each file that some key names into the table `[code]`, and removes the other
/// files. Returns the problems.
pub(crate) fn resolve(document: &mut Table, open: &Open<'_>) -> Vec<Problem> {
    let named = named(document);
    let known = match document.remove(CODE) {
        // The reader of `[code]` reports a value that is not a table.
        Some(other) if other.table().is_none() => {
            document.set(CODE, other);
            return Vec::new();
        }
        known => known,
    };
    let known = known.as_ref().and_then(Value::table);
    let mut problems = Vec::new();
    let mut code = Table::default();
    for (file, key) in named {
        let text =
            known.and_then(|known| known.get(&file)).cloned().map_or_else(|| read(&file, open), Ok);
        match text {
            Ok(text) => code.push(file, text),
            Err(wrong) => problems.push(Problem::new(wrong.message, wrong.hint, key)),
        }
    }
    if !code.is_empty() {
        document.push(CODE.to_owned(), Value::Table(code));
    }
    problems
}

/// Each file that is named, and the first key that names it.
fn named(document: &Table) -> BTreeMap<String, Key> {
    let mut files = BTreeMap::new();
    let mut add = |value: &Value, key: Key| {
        if let Some(file) = value.text().and_then(tc::disciplines::own::file_of) {
            files.entry(file).or_insert(key);
        }
    };
    let table = |value: &Value| value.table().cloned().unwrap_or_default();
    let list = |name: &str| document.get(name).and_then(Value::list).unwrap_or_default();
    let bottleneck = document.get("bottleneck").map(table).unwrap_or_default();
    let at: Key = vec!["bottleneck".into()];
    let ways = ["up", "down"].map(|way| (bottleneck.get(way).map(table), below(&at, way)));
    let links = list("link").iter().enumerate();
    let links = links.map(|(index, link)| (Some(table(link)), vec!["link".into(), index.into()]));
    let tables = [(Some(bottleneck.clone()), at)].into_iter().chain(ways).chain(links);
    for (table, key) in tables {
        if let Some(value) = table.as_ref().and_then(|table| table.get("qdisc")) {
            add(value, below(&key, "qdisc"));
        }
    }
    for (index, flow) in list("flow").iter().enumerate() {
        if let Some(value) = table(flow).get("congestion") {
            add(value, vec!["flow".into(), index.into(), "congestion".into()]);
        }
    }
    let sweep = document.get("sweep").map(table).unwrap_or_default();
    for (key, values) in sweep.iter() {
        for (index, value) in values.list().unwrap_or_default().iter().enumerate() {
            add(value, vec!["sweep".into(), key.into(), index.into()]);
        }
    }
    let several = ["program", "flow"].into_iter();
    let entries = several.flat_map(|head| list(head).iter().enumerate().map(move |at| (head, at)));
    for (head, (index, entry)) in entries {
        let at: Key = vec![head.into(), index.into(), "files".into()];
        let named = table(entry).get("files").and_then(Value::list).map(<[Value]>::to_vec);
        for (item, file) in named.unwrap_or_default().iter().enumerate() {
            // The key's own reader refuses what is no file.
            if let Some(file) = file.text().filter(|file| is_file(file)) {
                files.entry(file.to_owned()).or_insert_with(|| below(&at, item));
            }
        }
    }
    files
}

fn read(file: &str, open: &Open<'_>) -> Result<Value, Wrong> {
    let name = quoted(&file.into());
    let data = open(file).map_err(|why| {
        let hint = "the path is relative to the scenario's folder; with -q, to the current folder";
        Wrong::new(format!("can't read {name}: {why}"), hint)
    })?;
    if !READS_FILES {
        return Err(not_read());
    }
    if data.len() > MAX_BYTES {
        let message = format!("{name} is larger than {}", format_size(MAX_BYTES as u64));
        return Err(Wrong::new(message, "give smaller files"));
    }
    let text = String::from_utf8(data)
        .map_err(|_| Wrong::new(format!("{name} is not text (UTF-8)"), "give a text file"))?;
    Ok(text.replace("\r\n", "\n").into())
}
