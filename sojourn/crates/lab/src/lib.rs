//! The core for a page in a browser: takes a request in JSON and returns an answer in bytes.
//!
//! A `Worker` of the browser owns one `Lab`. A `Request` of the page asks it to parse a text
//! (`read`), to change one quantity in a text (`knobs`), or to continue a run by a slice
//! (`running`). Between slices the page can show progress and cancel the run. Answers are JSON;
//! tables are numbers for typed arrays (`columns`).
//!
//! This crate decides nothing itself: the language is crates/scenario's, numbers are
//! crates/metrics', the run is crates/sim's. The tables of a run are those of the native engine,
//! byte for byte (tests/test_lab.py).

mod abi;
mod columns;
mod knobs;
mod read;
mod request;
mod running;
mod text;

pub use knobs::Knob;
pub use request::{Chosen, Request};

use running::Running;
use serde_json::{Value, json};

/// The longest text that the page runs, bytes. A scenario is written by hand; a longer text would
/// come from a link, and keep the page busy.
pub const MOST_TEXT: usize = 256 << 10;

/// The state between requests: at most one run.
#[derive(Default)]
pub struct Lab {
    running: Option<Running>,
    /// The numbers of the finished seeds since the last new series.
    seeds: Vec<metrics::Value>,
}

impl Lab {
    /// The answer to a request; an error is `{"refused": ...}`.
    pub fn answer(&mut self, request: &str) -> Vec<u8> {
        let Some(request) = Request::of(request) else {
            return json_bytes(&json!({ "refused": "not a request" }));
        };
        match request {
            Request::Read { text: scenario } => json_bytes(&read::answer(&scenario)),
            Request::Turn { text: scenario, key, value } => {
                json_bytes(&match knobs::turned(&scenario, &key, value) {
                    Ok(text) => json!({ "text": text, "read": read::answer(&text) }),
                    Err(why) => json!({ "refused": why }),
                })
            }
            Request::TurnWord { qdisc, word, value } => {
                json_bytes(&turned(knobs::word_turned(&qdisc, &word, value)))
            }
            Request::Words { qdisc } => json_bytes(&read::words(&qdisc)),
            Request::Begin { chosen, seed, packets, fresh } => {
                if fresh {
                    self.seeds.clear();
                }
                self.running = None;
                match Running::new(&chosen, seed, packets) {
                    Ok(running) => {
                        let about = running.about();
                        self.running = Some(running);
                        json_bytes(&about)
                    }
                    Err(refusal) => json_bytes(&refusal),
                }
            }
            Request::Go { events } => match &mut self.running {
                Some(running) => json_bytes(&running.go(events)),
                None => nothing_runs(),
            },
            Request::Tables => match self.running.take() {
                Some(running) => {
                    let (tables, numbers) = running.finished();
                    self.seeds.push(numbers);
                    columns::bytes(&tables, json!({ "numbers": self.numbers() }))
                }
                None => nothing_runs(),
            },
            Request::Film { from_ns, until_ns } => match self.running.take() {
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
    json_bytes(&json!({ "refused": "no run is in progress" }))
}

fn json_bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// As JSON: NaN is null.
fn plain(value: &metrics::Value) -> Value {
    match value {
        metrics::Value::Nothing => Value::Null,
        metrics::Value::Whole(whole) => json!(whole),
        metrics::Value::Real(real) => json!(real),
        metrics::Value::Text(text) => json!(text),
        metrics::Value::List(values) => values.iter().map(plain).collect(),
        metrics::Value::Object(entries) => {
            // `extend`, because `collect` would sort first, and the page would contain that code.
            let mut object = serde_json::Map::new();
            object.extend(entries.iter().map(|(name, value)| (name.clone(), plain(value))));
            Value::Object(object)
        }
    }
}
