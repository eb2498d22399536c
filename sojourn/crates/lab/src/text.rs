//! Parses a text as a scenario, and converts problems for the page.

use crate::MOST_TEXT;
use scenario::{Loaded, Problem, no_file};
use serde_json::{Value, json};

/// The scenario, or its problems in the order of the text.
pub fn load(text: &str) -> Result<Loaded, Vec<Problem>> {
    if text.len() > MOST_TEXT {
        let message = format!("the text is longer than {} KiB", MOST_TEXT >> 10);
        let hint = "run it in a terminal: sojourn run scenario.toml";
        return Err(vec![Problem::new(message, hint, Vec::new())]);
    }
    Loaded::read(text, "scenario.toml", None, &|name| {
        let write = "write its steps as schedule, or run it in a terminal";
        no_file(name).map_err(|_| format!("a web page can't read files: {write}"))
    })
}

/// Problems for the page.
pub fn refused(problems: &[Problem]) -> Value {
    json!({ "problems": problems.iter().map(shown).collect::<Vec<_>>() })
}

/// One problem for the page.
pub fn shown(problem: &Problem) -> Value {
    json!({
        "message": problem.message,
        "hint": problem.hint,
        "key": problem.dotted(),
        "line": problem.place.map(|(line, _)| line),
        "column": problem.place.map(|(_, column)| column),
        "source": problem.source,
    })
}
