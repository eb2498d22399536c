//! Values as people write them, and what is said when one is wrong.
//!
//! `Value` and `Table` are what a document is made of. `quantity` reads "20 Mbit/s" and "5 ms" as
//! integers and writes them again, `dscp` does so with codepoints. `text` quotes words in messages
//! and finds the one that was probably meant. A `Wrong` says what is wrong with a value and what to
//! write instead.
//!
//! The scenario language and tc's words are read with these, and what the command lines and pages
//! are given.

pub mod dscp;
pub mod quantity;
pub mod text;
mod value;
mod wrong;

pub use value::{Table, Value, general, quoted, real};
pub use wrong::Wrong;
