//! What a text says: its links, flows and variants, what can be turned, or what is wrong with it.

use crate::knobs;
use crate::running::{lacking, variants};
use crate::{Knob, MOST_TEXT};
use scenario::{Loaded, Problem, no_file};
use serde_json::{Value, json};
use tc::Discipline;

/// Most runs that stand side by side.
pub const MOST_VARIANTS: usize = 8;

/// The scenario, or its problems in the order in which they stand.
pub fn load(text: &str) -> Result<Loaded, Vec<Problem>> {
    if text.len() > MOST_TEXT {
        let message = format!("the text is longer than {} KiB", MOST_TEXT >> 10);
        let hint = "run it in a terminal: sojourn run scenario.toml";
        return Err(vec![Problem::new(message, hint, Vec::new())]);
    }
    Loaded::read(text, "scenario.toml", None, &|name| {
        let write = "write its steps as schedule, or run it in a terminal";
        no_file(name).map_err(|_| format!("a page reads no files: {write}"))
    })
}

/// The answer to `Asked::Read`.
pub fn answer(text: &str) -> Value {
    let loaded = match load(text) {
        Ok(loaded) => loaded,
        Err(problems) => return refused(&problems),
    };
    let all = match variants(&loaded) {
        Ok(all) => all,
        Err(problems) => return refused(&problems),
    };
    let first = all[0].scenario.realise(all[0].scenario.seeds[0]).expect("a variant is no sweep");
    let links: Vec<Value> = first
        .links
        .iter()
        .filter(|link| link.sampled)
        .map(|link| json!({ "name": link.name, "qdisc": link.qdisc.text(), "queues": !link.rate.is_empty() || link.shaper.is_some() }))
        .collect();
    let labels = all.iter().take(MOST_VARIANTS).map(|each| each.scenario.label.clone());
    json!({
        "title": loaded.scenario.title,
        "duration_ns": loaded.scenario.duration,
        "warmup_ns": loaded.scenario.warmup,
        "seeds": loaded.scenario.seeds,
        "links": links,
        "flows": first.flows.len(),
        "both_ways": loaded.scenario.bottleneck.is_some() && loaded.qdisc_key(None).is_ok(),
        "variants": labels.collect::<Vec<_>>(),
        "more_variants": all.len().saturating_sub(MOST_VARIANTS),
        "knobs": knobs::of(&loaded, text),
        "notes": loaded.notes.iter().map(shown).collect::<Vec<_>>(),
        "lacking": lacking(&first),
    })
}

/// The answer to `Asked::Words`.
pub fn words(qdisc: &str) -> Value {
    match Discipline::parse(qdisc) {
        Err(error) => json!({
            "refused": error.problem,
            "hint": error.hint,
            "at": error.at.start,
        }),
        Ok(discipline) => {
            let knobs: Vec<Knob> = knobs::of_words(&discipline, "");
            let lacking = discipline.lacking();
            json!({ "text": discipline.text(), "knobs": knobs, "lacking": lacking })
        }
    }
}

/// Problems as the page shows them.
pub fn refused(problems: &[Problem]) -> Value {
    json!({ "problems": problems.iter().map(shown).collect::<Vec<_>>() })
}

fn shown(problem: &Problem) -> Value {
    json!({
        "message": problem.message,
        "hint": problem.hint,
        "key": problem.dotted(),
        "line": problem.place.map(|(line, _)| line),
        "column": problem.place.map(|(_, column)| column),
        "source": problem.source,
    })
}
