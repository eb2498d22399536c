//! What the page asks.
//!
//! Read by hand: what serde makes of an enum by tag is ten thousands of bytes of a page.

use serde_json::Value;

/// A request: `{"ask": "read", "text": "..."}`.
#[derive(Clone, Debug)]
pub enum Asked {
    /// What a text says, or everything that is wrong with it.
    Read {
        /// The scenario.
        text: String,
    },
    /// The text with one quantity changed, all else as it is written; and what `Read` says of it.
    Turn {
        /// The scenario.
        text: String,
        /// A knob's key.
        key: String,
        /// In the knob's unit.
        value: f64,
    },
    /// A discipline with one of its words changed.
    TurnWord {
        /// In tc's words.
        qdisc: String,
        /// Which word.
        word: String,
        /// In its unit.
        value: f64,
    },
    /// What words a discipline has, each as a knob.
    Words {
        /// In tc's words.
        qdisc: String,
    },
    /// A run, at its start.
    Begin {
        /// What of the scenario.
        chosen: Chosen,
        /// With which seed.
        seed: u64,
        /// Each packet is kept.
        packets: bool,
        /// It is no further seed of the run before.
        fresh: bool,
    },
    /// So many further events.
    Go {
        /// At least.
        events: u64,
    },
    /// The tables of the finished run, and the numbers of it and of the seeds before.
    Tables,
    /// Each packet that left a queue, and each drop and mark, in a part of the run.
    Film {
        /// From, ns.
        from_ns: u64,
        /// Until, ns.
        until_ns: u64,
    },
}

/// One of the runs that stand side by side.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The scenario.
    pub text: String,
    /// Which of its sweep's points, from 0.
    pub variant: usize,
    /// At which link the discipline goes; `None`: at the bottleneck, both ways.
    pub link: Option<String>,
    /// The discipline there; `None`: as it is written.
    pub qdisc: Option<String>,
}

impl Asked {
    /// Of JSON; `None`: it is no request.
    pub fn of(request: &str) -> Option<Asked> {
        let all: Value = serde_json::from_str(request).ok()?;
        let text = |key: &str| all.get(key)?.as_str().map(str::to_owned);
        let whole = |key: &str| all.get(key)?.as_u64();
        Some(match all.get("ask")?.as_str()? {
            "read" => Asked::Read { text: text("text")? },
            "turn" => Asked::Turn {
                text: text("text")?,
                key: text("key")?,
                value: all.get("value")?.as_f64()?,
            },
            "turn_word" => Asked::TurnWord {
                qdisc: text("qdisc")?,
                word: text("word")?,
                value: all.get("value")?.as_f64()?,
            },
            "words" => Asked::Words { qdisc: text("qdisc")? },
            "begin" => Asked::Begin {
                chosen: Chosen {
                    text: text("text")?,
                    variant: whole("variant")? as usize,
                    link: text("link"),
                    qdisc: text("qdisc"),
                },
                seed: whole("seed")?,
                packets: all.get("packets")?.as_bool()?,
                fresh: all.get("fresh")?.as_bool()?,
            },
            "go" => Asked::Go { events: whole("events")? },
            "tables" => Asked::Tables,
            "film" => Asked::Film { from_ns: whole("from_ns")?, until_ns: whole("until_ns")? },
            _ => return None,
        })
    }
}
