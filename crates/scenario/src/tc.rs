//! tc(8)'s words within a scenario: disciplines, shapers, link layers.

use crate::problem::Wrong;
use crate::value::{Value, quoted};
use std::sync::OnceLock;

/// A queue discipline with every parameter filled in.
#[derive(Clone, Debug)]
pub struct Discipline {
    /// Its name.
    pub kind: String,
    /// The canonical words.
    pub text: String,
    /// Parameters as an engine takes them, `kind` among them.
    pub params: serde_json::Map<String, serde_json::Value>,
    /// What its words leave doubtful.
    pub notes: Vec<Note>,
}

impl PartialEq for Discipline {
    fn eq(&self, other: &Discipline) -> bool {
        self.params == other.params
    }
}

/// Words that are taken as tc takes them, and that probably mean something else.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// What they are taken for.
    pub message: String,
    /// What to write instead.
    pub hint: String,
    /// Characters into the text.
    pub offset: usize,
}

/// A token bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct Shaper {
    /// The canonical words.
    pub text: String,
    /// As the engine takes it.
    pub params: link::ShaperParams,
}

/// What a link layer adds to an IP packet.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkLayer {
    /// Its name, or the words for its numbers.
    pub text: String,
    /// As the engine takes it.
    pub params: link::Framing,
}

/// Who reads tc's words.
pub struct Reader {
    /// `fq_codel target 5ms`.
    pub discipline: fn(&str) -> Result<Discipline, Wrong>,
    /// The discipline on a link of this rate, bit/s: a `red` without sizes takes those that tc-red(8) recommends.
    pub at_rate: fn(&Discipline, u64) -> Discipline,
    /// `htb rate 1mbit`; `none`.
    pub shaper: fn(&str) -> Result<Option<Shaper>, Wrong>,
    /// `ethernet`; `atm overhead 40`.
    pub link_layer: fn(&Value) -> Result<LinkLayer, Wrong>,
}

static READER: OnceLock<Reader> = OnceLock::new();

/// Says who reads tc's words; the first call counts.
pub fn read_by(reader: Reader) {
    let _ = READER.set(reader);
}

fn reader() -> &'static Reader {
    READER.get().expect("tc's words have a reader")
}

pub(crate) fn discipline(text: &str) -> Result<Discipline, Wrong> {
    (reader().discipline)(text)
}

impl Discipline {
    /// The same on a link of this rate, bit/s.
    pub(crate) fn at(&self, bps: u64) -> Discipline {
        (reader().at_rate)(self, bps)
    }
}

pub(crate) fn shaper(value: &Value) -> Result<Option<Shaper>, Wrong> {
    match value.text().filter(|text| !text.trim().is_empty()) {
        Some(text) => (reader().shaper)(text),
        None => {
            let message = format!("{} is not a shaper", quoted(value));
            Err(Wrong::new(message, "write tc's words in quotes, like \"htb rate 1mbit\""))
        }
    }
}

pub(crate) fn link_layer(value: &Value) -> Result<LinkLayer, Wrong> {
    (reader().link_layer)(value)
}

/// The kernel that Linux's names are of: the built guest's.
pub(crate) fn release() -> &'static str {
    "6.12.117"
}

/// What to write instead of a congestion control that people ask for and that kernel does not have.
pub(crate) fn not_there(name: &str) -> Option<&'static str> {
    Some(match name {
        "prague" => {
            r#"the nearest there is: congestion = "dctcp" and ecn = true, with -e kernel; reno, if it need not be scalable"#
        }
        "bbr2" | "bbr3" | "bbrv2" | "bbrv3" => r#"congestion = "bbr" is version 1, with -e kernel"#,
        _ => return None,
    })
}

/// Whether a discipline may hold packets back by itself, whatever lies below it.
pub(crate) fn shapes(discipline: &Discipline) -> bool {
    let held = match &*discipline.kind {
        "cake" => "bandwidth",
        "fq" => "maxrate",
        _ => return false,
    };
    discipline.params.get(held).is_some_and(|value| !value.is_null())
}
