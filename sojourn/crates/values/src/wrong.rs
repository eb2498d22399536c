//! What is wrong with a value.

/// A value that is not what is taken there.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrong {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: String,
    /// Characters into the text of the value.
    pub offset: usize,
    /// Which item of the value, where it is a list.
    pub item: Option<usize>,
}

impl Wrong {
    /// Of the whole value.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Wrong {
        Wrong { message: message.into(), hint: hint.into(), offset: 0, item: None }
    }

    /// So many characters into it.
    pub fn at(self, offset: usize) -> Wrong {
        Wrong { offset, ..self }
    }
}
