//! A user-defined discipline: `FILE.py:CLASS WORD NUMBER ...`. Its words are the numbers of
//! the class, which the compiler of the class checks. crates/qdisc, own.rs, runs it.

use super::refused;
use crate::discipline::Discipline;
use crate::error::TcError;
use crate::grammar::{Fields, Grammar, Value};
use crate::numbers::read_time;
use crate::record::Record;
use std::ops::Range;
use values::text::{joined, quoted};

/// Its name among the simulator's parameters. It is never written: a file and a class take its
/// place.
pub const KIND: &str = "own";

const SUFFIX: &str = ".py";

pub(super) static OWN: Record = Record {
    kind: KIND,
    grammars: &[Grammar {
        kind: KIND,
        defaults: &[
            ("file", Value::Unset),
            ("class", Value::Unset),
            ("words", Value::Unset),
            ("source", Value::Unset),
        ],
        ..Grammar::NONE
    }],
    simulated: true,
    written: Some(text),
    usual_limit: Some(1000),
    ..Record::NONE
};

/// A class in a Python file, and the numbers that a scenario sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnClass {
    /// The path of the file, as given.
    pub file: String,
    /// The class.
    pub class: String,
    /// The numbers, `WORD NUMBER` repeated; `None` if there are none.
    pub words: Option<String>,
}

impl OwnClass {
    /// Reads a class, if the first word is a Python file.
    pub fn read(text: &str) -> Option<Result<OwnClass, TcError>> {
        OwnClass::of(&crate::discipline::tokens(text))
    }

    /// The words that `read` accepts.
    pub fn text(&self) -> String {
        let name = format!("{}:{}", self.file, self.class);
        self.words.as_ref().map_or_else(|| name.clone(), |words| format!("{name} {words}"))
    }

    fn of(tokens: &[(&str, Range<usize>)]) -> Option<Result<OwnClass, TcError>> {
        let (name, at) = tokens.first()?;
        let (file, class) = name.rsplit_once(':').unwrap_or((name, ""));
        if !file.ends_with(SUFFIX) {
            return None;
        }
        if !is_name(class) {
            let problem = format!("{} does not name a class of its file", quoted(name));
            return Some(Err(TcError::new(problem, format!("write {file}:CLASS")).at(at.clone())));
        }
        Some(words(&tokens[1..], class).map(|words| OwnClass {
            file: file.to_owned(),
            class: class.to_owned(),
            words: (!words.is_empty()).then_some(words),
        }))
    }
}

/// Reads a discipline, if the first word is a Python file.
pub(crate) fn read(tokens: &[(&str, Range<usize>)]) -> Option<Result<Discipline, TcError>> {
    let discipline = |own: OwnClass| {
        let mut fields = OWN.grammars[0].fields();
        fields.set("file", Value::Text(own.file.into()));
        fields.set("class", Value::Text(own.class.into()));
        if let Some(words) = own.words {
            fields.set("words", Value::Text(words.into()));
        }
        Discipline::new(&OWN, &OWN.grammars[0], fields, Vec::new())
    };
    Some(OwnClass::of(tokens)?.map(discipline))
}

/// `WORD NUMBER ...` with each number in the unit that the class uses.
fn words(tokens: &[(&str, Range<usize>)], class: &str) -> Result<String, TcError> {
    let mut parsed: Vec<String> = Vec::new();
    for pair in tokens.chunks(2) {
        let (word, at) = &pair[0];
        if !is_name(word) {
            let problem = format!("{class}: {} is not the name of a parameter", quoted(word));
            return Err(TcError::new(problem, "write NAME NUMBER").at(at.clone()));
        }
        if parsed.iter().step_by(2).any(|other| other == word) {
            let problem = format!("{class}: {word} sets a parameter again");
            return Err(TcError::new(problem, "write it once").at(at.clone()));
        }
        let Some((text, at)) = pair.get(1) else {
            let problem = format!("{class}: {word} needs a number");
            return Err(TcError::new(problem, format!("write {word} NUMBER")).at(at.clone()));
        };
        let number = number(text).ok_or_else(|| {
            let problem = format!("{class}: {word} {} is not a number", quoted(text));
            let hint = "write a number like 1000 or 0.5, or a time like 5ms: it counts as ns";
            TcError::new(problem, hint).at(at.clone())
        })?;
        parsed.extend([(*word).to_owned(), number]);
    }
    Ok(parsed.join(" "))
}

/// A number as written; a time with a unit is converted to ns.
fn number(text: &str) -> Option<String> {
    if let Ok(integer) = text.parse::<i64>() {
        return Some(integer.to_string());
    }
    if let Some(real) = text.parse::<f64>().ok().filter(|real| real.is_finite())
        && text.contains(|c: char| c.is_ascii_digit())
    {
        return Some(values::text::number(real));
    }
    Some(read_time(text).ok()?.to_string())
}

fn is_name(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The words that `read` accepts.
fn text(fields: &Fields) -> String {
    let of = |name| fields.get(name).text().unwrap_or_default();
    let (file, class, words) = (of("file"), of("class"), of("words"));
    let name = format!("{file}:{class}");
    if words.is_empty() { name } else { format!("{name} {words}") }
}

/// The Python file in these words, if they name a user-defined class.
pub fn file_of(words: &str) -> Option<String> {
    OwnClass::read(words)?.ok().map(|own| own.file)
}

impl Discipline {
    /// The same discipline with the text of its file. Any other discipline is unchanged.
    pub fn with_source(&self, sources: impl Fn(&str) -> Option<String>) -> Discipline {
        let file = self.fields().get("file").text();
        match file.filter(|_| self.kind() == KIND).and_then(sources) {
            Some(source) => self.with("source", Value::Text(source.into())),
            None => self.clone(),
        }
    }
}

/// The error for a user-defined discipline in Linux.
pub(crate) fn not_in_linux(own: &Discipline) -> Result<(), TcError> {
    let problem = format!("{} is Python, which no kernel runs", joined(&[(&own.text(), 0..0)]));
    refused(problem, "run it in the simulator: -e sim")
}
