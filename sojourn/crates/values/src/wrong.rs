//! Errors of a value.

/// A value that is not accepted, and what to write instead.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrong {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: String,
    /// Offset in the text of the value, characters.
    pub offset: usize,
    /// Index of the wrong item, if the value is a list.
    pub item: Option<usize>,
}

impl Wrong {
    /// An error of the whole value.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Wrong {
        Wrong { message: message.into(), hint: hint.into(), offset: 0, item: None }
    }

    /// Sets the offset in characters.
    pub fn at(self, offset: usize) -> Wrong {
        Wrong { offset, ..self }
    }
}
