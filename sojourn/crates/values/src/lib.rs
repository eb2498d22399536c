//! Values as people write them, and the messages about wrong ones.
//!
//! `Value` and `Table` form a document. `quantity` parses "20 Mbit/s" and "5 ms" into integers and
//! writes them again, `dscp` does so with codepoints. `text` quotes words in messages and finds
//! similar known words. A `Wrong` has a message about a value and a hint what to write instead.
//!
//! They are used for the scenario language, tc's syntax, command lines and pages.

pub mod dscp;
pub mod quantity;
pub mod text;
mod value;
mod wrong;

pub use value::{Table, Value, general, quoted, real};
pub use wrong::Wrong;
