//! The core for a page in a browser: a request in JSON in, an answer in bytes out.
//!
//! The page lets a `Worker` of the browser hold one `Lab`. What it asks is an `Asked`: whether a text
//! is a scenario (`read`), a text with one quantity changed (`knobs`), a run in slices, so that the
//! page can show progress and think better of it (`running`). Answers are JSON; tables are numbers as
//! typed arrays take them (`columns`).
//!
//! Nothing is decided here: the language is crates/scenario's, numbers are crates/metrics', the run is
//! crates/sim's. The tables of a run are native's, byte for byte (tests/test_lab.py).

mod abi;
mod asked;
mod columns;
mod knobs;
mod read;
mod running;
mod text;

pub use asked::{Asked, Chosen};
pub use knobs::Knob;

use running::Running;
use serde_json::{Value, json};

/// The longest text that the page runs, bytes. A scenario is written by hand; what is longer came with
/// a link, and would keep the page busy.
pub const MOST_TEXT: usize = 256 << 10;

/// The state behind the requests: one run at most.
#[derive(Default)]
pub struct Lab {
    running: Option<Running>,
    /// The numbers of the seeds that were finished since the last fresh run.
    seeds: Vec<metrics::Value>,
}

impl Lab {
    /// The answer to a request; what is wrong with it is `{"refused": ...}`.
    pub fn answer(&mut self, request: &str) -> Vec<u8> {
        let Some(asked) = Asked::of(request) else {
            return told(&json!({ "refused": "not a request" }));
        };
        match asked {
            Asked::Read { text: scenario } => told(&read::answer(&scenario)),
            Asked::Turn { text: scenario, key, value } => {
                told(&match knobs::turned(&scenario, &key, value) {
                    Ok(text) => json!({ "text": text, "read": read::answer(&text) }),
                    Err(why) => json!({ "refused": why }),
                })
            }
            Asked::TurnWord { qdisc, word, value } => {
                told(&turned(knobs::word_turned(&qdisc, &word, value)))
            }
            Asked::Words { qdisc } => told(&read::words(&qdisc)),
            Asked::Begin { chosen, seed, packets, fresh } => {
                if fresh {
                    self.seeds.clear();
                }
                self.running = None;
                match Running::new(&chosen, seed, packets) {
                    Ok(running) => {
                        let about = running.about();
                        self.running = Some(running);
                        told(&about)
                    }
                    Err(refusal) => told(&refusal),
                }
            }
            Asked::Go { events } => match &mut self.running {
                Some(running) => told(&running.go(events)),
                None => nothing_runs(),
            },
            Asked::Tables => match self.running.take() {
                Some(running) => {
                    let (tables, numbers) = running.finished();
                    self.seeds.push(numbers);
                    columns::bytes(&tables, json!({ "numbers": self.numbers() }))
                }
                None => nothing_runs(),
            },
            Asked::Film { from_ns, until_ns } => match self.running.take() {
                Some(running) => {
                    let tables = running.packets(from_ns, until_ns);
                    columns::bytes(&tables, json!({}))
                }
                None => nothing_runs(),
            },
        }
    }

    /// The numbers over the seeds so far, each a mean with half its interval.
    fn numbers(&self) -> Value {
        let over = metrics::over_seeds(&self.seeds, &mut || true);
        plain(&over.expect("nothing ends it"))
    }
}

fn turned(text: Result<String, String>) -> Value {
    match text {
        Ok(text) => json!({ "text": text }),
        Err(why) => json!({ "refused": why }),
    }
}

fn nothing_runs() -> Vec<u8> {
    told(&json!({ "refused": "nothing runs" }))
}

fn told(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// As JSON has it: what can't be said is null.
fn plain(value: &metrics::Value) -> Value {
    match value {
        metrics::Value::Nothing => Value::Null,
        metrics::Value::Whole(whole) => json!(whole),
        metrics::Value::Real(real) => json!(real),
        metrics::Value::Text(text) => json!(text),
        metrics::Value::List(values) => values.iter().map(plain).collect(),
        metrics::Value::Object(entries) => {
            // Extended, not collected: that would sort first, by code that the page carries.
            let mut object = serde_json::Map::new();
            object.extend(entries.iter().map(|(name, value)| (name.clone(), plain(value))));
            Value::Object(object)
        }
    }
}
