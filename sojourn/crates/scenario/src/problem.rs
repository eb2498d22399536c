//! The problems of a scenario: all are reported at once, each with its place, its key and what to
//! write instead.
//!
//! ```text
//! home.toml:3:12: duration: a duration needs a unit; 60 is a bare number
//!      3 | duration = 60
//!        |            ^
//! hint: write "60 s"
//! ```

use std::collections::BTreeMap;
use std::fmt;
use values::text::printable;

/// A step on the path to a value: a table's key, or an index in a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// A table's key.
    Name(String),
    /// Counts from 0.
    Index(usize),
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Name(name) => f.write_str(name),
            Part::Index(index) => write!(f, "{index}"),
        }
    }
}

impl From<&str> for Part {
    fn from(name: &str) -> Part {
        Part::Name(name.to_owned())
    }
}

impl From<usize> for Part {
    fn from(index: usize) -> Part {
        Part::Index(index)
    }
}

/// The path to a value in the document: `flow`, 0, `rtt`.
pub type Key = Vec<Part>;

/// Returns the key of a part below `key`.
pub fn below(key: &[Part], part: impl Into<Part>) -> Key {
    let mut key = key.to_vec();
    key.push(part.into());
    key
}

/// The key as text: `flow.0.rtt`.
pub fn dotted(key: &[Part]) -> String {
    key.iter().map(Part::to_string).collect::<Vec<_>>().join(".")
}

/// One problem of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Problem {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: String,
    /// The key of the value.
    pub key: Key,
    /// The file's name.
    pub file: String,
    /// Line and column from 1, in characters; `None` if there is no text (a missing file, a
    /// scenario made in a program).
    pub place: Option<(usize, usize)>,
    /// The line itself.
    pub source: String,
}

impl Problem {
    /// A problem that has no place yet.
    pub fn new(message: impl Into<String>, hint: impl Into<String>, key: Key) -> Problem {
        Problem {
            message: message.into(),
            hint: hint.into(),
            key,
            file: String::new(),
            place: None,
            source: String::new(),
        }
    }

    /// The key as text: `flow.0.rtt`.
    pub fn dotted(&self) -> String {
        dotted(&self.key)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.place {
            Some((line, column)) => format!("{}:{line}:{column}", self.file),
            None => self.file.clone(),
        };
        let missing = |last: &Part| self.message.starts_with(&format!("{last} is missing"));
        let text = match self.key.split_last() {
            Some((last, around)) if missing(last) && around.is_empty() => {
                vec![self.message.clone()]
            }
            Some((last, around)) if missing(last) => {
                vec![format!("{}.{}", dotted(around), self.message)]
            }
            _ => vec![self.dotted(), self.message.clone()],
        };
        let parts: Vec<_> =
            std::iter::once(place).chain(text).filter(|part| !part.is_empty()).collect();
        f.write_str(&parts.join(": "))?;
        if let Some((line, column)) = self.place
            && !self.source.is_empty()
        {
            f.write_str(&excerpt(&self.source, line, column))?;
        }
        if self.hint.is_empty() { Ok(()) } else { write!(f, "\nhint: {}", self.hint) }
    }
}

/// The line with a caret below; for a very long line the part around the caret.
fn excerpt(source: &str, line: usize, column: usize) -> String {
    let start = if source.chars().count() > 120 { column.saturating_sub(70) } else { 0 };
    let shown: String = source
        .chars()
        .skip(start)
        .take(120)
        .map(|char| match char {
            '\t' => ' ',
            _ if printable(char) => char,
            _ => '\u{fffd}',
        })
        .collect();
    format!("\n{line:6} | {shown}\n       | {}^", " ".repeat((column - 1).saturating_sub(start)))
}

/// The text of a scenario, and the place of each value in it.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The name that messages use.
    pub name: String,
    text: Option<String>,
    places: BTreeMap<String, (usize, usize)>,
    /// Start and end of each line, in bytes.
    lines: Vec<(usize, usize)>,
}

impl Source {
    /// A text with the place (line and column from 1) of each value by dotted key.
    pub fn new(name: &str, text: &str, places: BTreeMap<String, (usize, usize)>) -> Source {
        let mut lines = Vec::new();
        let mut start = 0;
        for line in text.split('\n') {
            lines.push((start, start + line.len()));
            start += line.len() + 1;
        }
        Source { name: name.to_owned(), text: Some(text.to_owned()), places, lines }
    }

    /// Adds the place of the problem's key, or of the nearest enclosing table that the text
    /// contains.
    pub fn locate(&self, problem: Problem, offset: usize) -> Problem {
        if self.text.is_none() {
            return problem;
        }
        let known = (1..=problem.key.len())
            .rev()
            .find_map(|length| Some((length, *self.places.get(&dotted(&problem.key[..length]))?)));
        let exact = known.map_or(problem.key.is_empty(), |(length, _)| length == problem.key.len());
        let place = known.map_or((1, 1), |(_, place)| place);
        let mut located = self.at(problem, place, if exact { offset } else { 0 });
        if known.is_none() {
            // The text does not contain this key, so no line is quoted.
            located.source.clear();
        }
        located
    }

    /// Adds this place, or `offset` characters into the string that begins there.
    pub fn at(&self, problem: Problem, (line, column): (usize, usize), offset: usize) -> Problem {
        let text = self.text.as_deref().unwrap_or_default();
        let line = line.clamp(1, self.lines.len().max(1));
        let (start, end) = self.lines.get(line - 1).copied().unwrap_or_default();
        let source = text[start..end].trim_end_matches('\r');
        let length = source.chars().count();
        let mut column = column.clamp(1, length + 1);
        let rest: String = source.chars().skip(column - 1).collect();
        // An offset counts characters of the file only in a plain string: one quote, no escapes.
        let plain = rest.starts_with(['\'', '"'])
            && !rest.starts_with("'''")
            && !rest.starts_with("\"\"\"")
            && !rest.contains('\\');
        if offset > 0 && plain {
            column = (column + 1 + offset).min(length + 1);
        }
        Problem {
            file: self.name.clone(),
            place: Some((line, column)),
            source: source.to_owned(),
            ..problem
        }
    }

    /// Adds the place of the last key's name rather than of its value: for keys that are not
    /// allowed.
    pub fn at_name(&self, problem: Problem) -> Problem {
        let located = self.locate(problem, 0);
        let (Some((line, column)), Some(last)) = (located.place, located.key.last()) else {
            return located;
        };
        let before: String = located.source.chars().take(column - 1).collect();
        match before.rfind(&last.to_string()) {
            Some(byte) => {
                let start = before[..byte].chars().count();
                self.at(located, (line, start + 1), 0)
            }
            None => located,
        }
    }
}
