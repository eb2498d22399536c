use std::fmt;
use std::ops::Range;

/// Words that can't be read, or that Linux has no words for: what is wrong, what to write instead,
/// and where it stands in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcError {
    /// What is wrong.
    pub problem: String,
    /// What to write instead.
    pub hint: String,
    /// The wrong word, in bytes of the text; `0..0` where no single word is wrong.
    pub at: Range<usize>,
}

impl TcError {
    /// Of the text as a whole.
    pub fn new(problem: impl Into<String>, hint: impl Into<String>) -> TcError {
        TcError { problem: problem.into(), hint: hint.into(), at: 0..0 }
    }

    /// The same of this part of the text.
    pub fn at(self, at: Range<usize>) -> TcError {
        TcError { at, ..self }
    }

    /// The same with a word of context before the problem: `codel target: ...`.
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

/// Words that are read as tc reads them, and that probably mean something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What the words mean to tc.
    pub message: String,
    /// What to write for either meaning.
    pub hint: String,
    /// The doubtful word, in bytes of the text.
    pub at: Range<usize>,
}

/// Notes on the words from which a value was read; they are no part of the value.
#[derive(Clone, Debug, Default)]
pub struct Notes(pub Vec<Note>);

impl PartialEq for Notes {
    fn eq(&self, _: &Notes) -> bool {
        true
    }
}
