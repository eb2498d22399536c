//! Plain values: the parts of a TOML document, and their text in messages.

use crate::text::{in_quotes, shortened};

/// A value of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number; wide enough for TOML's and an engine's 64 bits.
    Int(i128),
    /// A real number.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// A table.
    Table(Table),
}

/// Keys and values, in the order of the text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table(Vec<(String, Value)>);

impl Table {
    /// The value of a key.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The value of a key, for changes.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.0.iter_mut().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Whether the key exists.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Sets the value of a key, in its place or at the end.
    pub fn set(&mut self, name: &str, value: Value) {
        match self.get_mut(name) {
            Some(old) => *old = value,
            None => self.push(name.to_owned(), value),
        }
    }

    /// Adds a key that does not exist yet.
    pub fn push(&mut self, name: String, value: Value) {
        self.0.push((name, value));
    }

    /// Removes the key.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(key, _)| key == name)?;
        Some(self.0.remove(at).1)
    }

    /// Keys and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, Value)> for Table {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(entries: I) -> Table {
        Table(entries.into_iter().collect())
    }
}

impl Value {
    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    /// The table, if it is one.
    pub fn table(&self) -> Option<&Table> {
        if let Value::Table(table) = self { Some(table) } else { None }
    }

    /// The list, if it is one.
    pub fn list(&self) -> Option<&[Value]> {
        if let Value::List(list) = self { Some(list) } else { None }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

/// A value for a message: on one line and not too long.
pub fn quoted(value: &Value) -> String {
    shortened(&shown(value))
}

/// The value as in TOML, except for text, whose quotes are those that it does not contain.
fn shown(value: &Value) -> String {
    match value {
        Value::Bool(truth) => truth.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => real(*number),
        Value::Text(text) => in_quotes(text),
        Value::List(list) => format!("[{}]", list.iter().map(shown).collect::<Vec<_>>().join(", ")),
        Value::Table(table) => {
            let entries: Vec<_> =
                table.iter().map(|(key, value)| format!("{key} = {}", shown(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

/// The shortest decimal of this number, always with a point or an exponent: `5.0`, `1e-07`.
pub fn real(number: f64) -> String {
    if number.is_nan() {
        return "nan".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.into();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if number != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let plain = format!("{number}");
    if plain.contains('.') { plain } else { plain + ".0" }
}

/// At most `digits` significant digits, without trailing zeros: `0.02`, `6e+10`, `1.2e-05`.
pub fn general(number: f64, digits: usize) -> String {
    if number == 0.0 || !number.is_finite() {
        return if number == 0.0 { "0".into() } else { real(number) };
    }
    let scientific = format!("{number:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", bare(mantissa), exponent.abs());
    }
    bare(&format!("{number:.*}", (digits as i32 - 1 - exponent).max(0) as usize)).to_owned()
}

fn bare(decimal: &str) -> &str {
    if decimal.contains('.') {
        decimal.trim_end_matches('0').trim_end_matches('.')
    } else {
        decimal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_with_the_shortest_text_that_reads_back() {
        for (number, text) in
            [(5.0, "5.0"), (1e-7, "1e-07"), (0.0001, "0.0001"), (1e16, "1e+16"), (1.5, "1.5")]
        {
            assert_eq!(real(number), text);
        }
        for (number, text) in
            [(5.95e6, "5.95e+06"), (6e10, "6e+10"), (0.02, "0.02"), (999.6, "1e+03")]
        {
            assert_eq!(general(number, 3), text);
        }
    }
}
