//! The page's requests.
//!
//! Parsed by hand: serde's code for a tagged enum takes tens of thousands of bytes of a page.

use serde_json::Value;

/// A request: `{"ask": "read", "text": "..."}`.
#[derive(Clone, Debug)]
pub enum Request {
    /// The content of a text, or all problems with it.
    Read {
        /// The scenario.
        text: String,
    },
    /// The text with one quantity changed and the rest unchanged, and the answer of `Read` for it.
    Turn {
        /// The scenario.
        text: String,
        /// A knob's key.
        key: String,
        /// The value in the knob's unit.
        value: f64,
    },
    /// A discipline with one of its words changed.
    TurnWord {
        /// The discipline, in tc's syntax.
        qdisc: String,
        /// The word to change.
        word: String,
        /// The value in the word's unit.
        value: f64,
    },
    /// The words of a discipline, each as a knob.
    Words {
        /// The discipline, in tc's syntax.
        qdisc: String,
    },
    /// Starts a run.
    Begin {
        /// The run.
        chosen: Chosen,
        /// The seed.
        seed: u64,
        /// Whether each packet is recorded.
        packets: bool,
        /// Whether it begins a new series, rather than being a further seed of the last one.
        fresh: bool,
    },
    /// Continues the run.
    Go {
        /// About how many events to process; the run may end earlier.
        events: u64,
    },
    /// The tables of the finished run, and the numbers over all finished seeds of its series.
    Tables,
    /// Each packet that left a queue, and each drop and mark, in a part of the run.
    Film {
        /// Start, ns.
        from_ns: u64,
        /// End, ns.
        until_ns: u64,
    },
}

/// One of the runs that are compared.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The scenario.
    pub text: String,
    /// The index of its sweep's point, from 0.
    pub variant: usize,
    /// The link of the discipline; `None`: the bottleneck, in both directions.
    pub link: Option<String>,
    /// The discipline there; `None`: as in the text.
    pub qdisc: Option<String>,
}

impl Request {
    /// Parses JSON; `None`: it is not a request.
    pub fn of(request: &str) -> Option<Request> {
        let all: Value = serde_json::from_str(request).ok()?;
        let text = |key: &str| all.get(key)?.as_str().map(str::to_owned);
        let number = |key: &str| all.get(key)?.as_u64();
        Some(match all.get("ask")?.as_str()? {
            "read" => Request::Read { text: text("text")? },
            "turn" => Request::Turn {
                text: text("text")?,
                key: text("key")?,
                value: all.get("value")?.as_f64()?,
            },
            "turn_word" => Request::TurnWord {
                qdisc: text("qdisc")?,
                word: text("word")?,
                value: all.get("value")?.as_f64()?,
            },
            "words" => Request::Words { qdisc: text("qdisc")? },
            "begin" => Request::Begin {
                chosen: Chosen {
                    text: text("text")?,
                    variant: number("variant")? as usize,
                    link: text("link"),
                    qdisc: text("qdisc"),
                },
                seed: number("seed")?,
                packets: all.get("packets")?.as_bool()?,
                fresh: all.get("fresh")?.as_bool()?,
            },
            "go" => Request::Go { events: number("events")? },
            "tables" => Request::Tables,
            "film" => Request::Film { from_ns: number("from_ns")?, until_ns: number("until_ns")? },
            _ => return None,
        })
    }
}
