//! TOML text to values with their places, and values to canonical text.
//!
//! The parser returns spans; one walk over its tree makes the values and, beside them, the place of
//! each by its dotted key. A value's place is its start; a table's place is its header, where its
//! reader looks for it.
//!
//! Canonical text: tables come after plain keys, lists of tables as `[[flow]]`, small tables inside
//! them inline; a long list has a line for each row.
//!
//! Deviation from TOML: dates and times are refused, since a scenario has none.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use values::{Table, Value, real};

/// Line and column from 1, in characters, by dotted key.
pub type Places = BTreeMap<String, (usize, usize)>;

/// Why a text is not TOML, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct NotToml {
    /// The parser's message.
    pub message: String,
    /// Line and column from 1, in characters.
    pub place: (usize, usize),
}

/// Parses a text into values and their places.
pub fn read(text: &str) -> Result<(Table, Places), NotToml> {
    let lines = Lines::of(text);
    let document = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        lines.error(error.message(), at)
    })?;
    let mut walk = Walk { lines, places: Places::new() };
    let values = walk.table(document.get_ref(), "")?;
    Ok((values, walk.places))
}

struct Walk<'t> {
    lines: Lines<'t>,
    places: Places,
}

impl Walk<'_> {
    /// A table's entries in the order of the text; the parser sorts them by key.
    fn table(&mut self, table: &DeTable<'_>, path: &str) -> Result<Table, NotToml> {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let mut values = Table::default();
        for (key, value) in entries {
            let name: &str = key.get_ref();
            let below = join(path, name);
            let place = if value.get_ref().is_table() { key.span() } else { value.span() };
            values.push(name.to_owned(), self.value(value, place, below)?);
        }
        Ok(values)
    }

    fn value(
        &mut self,
        value: &Spanned<DeValue<'_>>,
        place: Range<usize>,
        path: String,
    ) -> Result<Value, NotToml> {
        let place_of_value = self.lines.place(place.start);
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.as_ref().to_owned()),
            DeValue::Boolean(truth) => Value::Bool(*truth),
            DeValue::Integer(integer) => {
                match i64::from_str_radix(integer.as_str(), integer.radix()) {
                    Ok(number) => Value::Int(number.into()),
                    Err(_) => {
                        return Err(self
                            .lines
                            .error("integer does not fit into 64 bits", place.start));
                    }
                }
            }
            DeValue::Float(float) => match float.as_str().parse::<f64>() {
                Ok(number) => Value::Float(number),
                Err(_) => return Err(self.lines.error("not a number", place.start)),
            },
            DeValue::Datetime(_) => {
                let what = "a scenario has no dates or times; write text in quotes";
                return Err(self.lines.error(what, place.start));
            }
            DeValue::Array(array) => {
                let mut list = Vec::with_capacity(array.len());
                for (index, item) in array.iter().enumerate() {
                    list.push(self.value(item, item.span(), join(&path, &index.to_string()))?);
                }
                Value::List(list)
            }
            DeValue::Table(table) => Value::Table(self.table(table, &path)?),
        };
        self.places.insert(path, place_of_value);
        Ok(value)
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The start of each line of a text.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
    /// The last byte that `place` was called with, and the characters between the start of its line
    /// and it. Most calls are in the order of the text: counting on from the last one keeps one
    /// very long line from taking quadratic time.
    last: Cell<(usize, usize)>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Lines<'t> {
        let starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Lines { text, starts, last: Cell::new((0, 0)) }
    }

    /// Line and column of a byte, both from 1; columns count characters.
    fn place(&self, byte: usize) -> (usize, usize) {
        let byte = byte.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= byte);
        let (known, characters) = match self.last.get() {
            (last, characters) if (self.starts[line - 1]..=byte).contains(&last) => {
                (last, characters)
            }
            _ => (self.starts[line - 1], 0),
        };
        let characters =
            characters + self.text.get(known..byte).map_or(0, |before| before.chars().count());
        self.last.set((byte, characters));
        (line, characters + 1)
    }

    fn error(&self, message: &str, byte: usize) -> NotToml {
        NotToml { message: message.to_owned(), place: self.place(byte) }
    }
}

/// Writes the document as text; reading it returns the same values.
pub fn write(document: &Table) -> String {
    let mut lines = Vec::new();
    table_text(document, "", &mut lines);
    let text = lines.join("\n");
    format!("{}\n", text.trim_matches('\n'))
}

fn table_text(table: &Table, path: &str, lines: &mut Vec<String>) {
    let nested = |value: &Value| matches!(value, Value::Table(_)) || is_tables(value);
    for (key, value) in table.iter().filter(|(_, value)| !nested(value)) {
        lines.push(format!("{} = {}", key_text(key), value_text(value)));
    }
    for (key, value) in table.iter() {
        let header = join(path, &key_text(key));
        match value {
            Value::Table(inner) => {
                lines.extend([String::new(), format!("[{header}]")]);
                table_text(inner, &header, lines);
            }
            Value::List(items) if is_tables(value) => {
                for item in items {
                    lines.extend([String::new(), format!("[[{header}]]")]);
                    let entries = item.table().into_iter().flat_map(Table::iter);
                    lines.extend(entries.map(|(name, inner)| {
                        format!("{} = {}", key_text(name), value_text(inner))
                    }));
                }
            }
            _ => {}
        }
    }
}

fn is_tables(value: &Value) -> bool {
    let Value::List(items) = value else { return false };
    !items.is_empty() && items.iter().all(|item| matches!(item, Value::Table(_)))
}

fn key_text(key: &str) -> String {
    let plain =
        !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if plain { key.to_owned() } else { string_text(key) }
}

fn value_text(value: &Value) -> String {
    match value {
        Value::Bool(truth) => truth.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => real(*number),
        Value::Text(text) => string_text(text),
        Value::Table(table) => {
            let entries: Vec<_> = table
                .iter()
                .map(|(key, inner)| format!("{} = {}", key_text(key), value_text(inner)))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
        Value::List(items) if items.len() > 4 && items.iter().any(|item| item.list().is_some()) => {
            let rows: String =
                items.iter().map(|item| format!("    {},\n", value_text(item))).collect();
            format!("[\n{rows}]")
        }
        Value::List(items) => {
            format!("[{}]", items.iter().map(value_text).collect::<Vec<_>>().join(", "))
        }
    }
}

fn string_text(text: &str) -> String {
    let mut out = String::from('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\0'..='\x1f' | '\x7f' => out.push_str(&format!("\\u{:04x}", char as u32)),
            _ => out.push(char),
        }
    }
    out.push('"');
    out
}
