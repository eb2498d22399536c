use std::fmt;
use std::ops::Range;

/// An error in tc's syntax, or an error for words that Linux lacks: the problem, what to write
/// instead, and the place in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcError {
    /// The problem.
    pub problem: String,
    /// What to write instead.
    pub hint: String,
    /// The place of the wrong word, in bytes of the text; `0..0` if no single word is wrong.
    pub at: Range<usize>,
}

impl TcError {
    /// An error about the text as a whole.
    pub fn new(problem: impl Into<String>, hint: impl Into<String>) -> TcError {
        TcError { problem: problem.into(), hint: hint.into(), at: 0..0 }
    }

    /// The same error at this place in the text.
    pub fn at(self, at: Range<usize>) -> TcError {
        TcError { at, ..self }
    }

    /// The same error with context before the problem: `codel target: ...`.
    pub(crate) fn of(self, what: &str) -> TcError {
        TcError { problem: format!("{what}: {}", self.problem), ..self }
    }
}

impl fmt::Display for TcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for TcError {}

/// A note on words that are read as tc reads them but probably mean something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What the words mean in tc.
    pub message: String,
    /// What to write for either meaning.
    pub hint: String,
    /// The doubtful word, in bytes of the text.
    pub at: Range<usize>,
}

/// Notes on the words that a value was read from. They are not part of the value: values with
/// different notes are equal.
#[derive(Clone, Debug, Default)]
pub struct Notes(pub Vec<Note>);

impl PartialEq for Notes {
    fn eq(&self, _: &Notes) -> bool {
        true
    }
}
