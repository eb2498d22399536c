//! The content of a text: its links, flows, variants and knobs, or its problems.

use crate::Knob;
use crate::knobs;
use crate::running::{lacking, lacking_of, variants};
use crate::text::{load, refused, shown};
use scenario::read_toml;
use serde_json::{Value, json};
use tc::Discipline;

/// The most runs that are compared.
pub const MOST_VARIANTS: usize = 8;

/// The answer to `Request::Read`.
pub fn answer(text: &str) -> Value {
    let loaded = match load(text) {
        Ok(loaded) => loaded,
        Err(problems) => return refused(&problems),
    };
    let all = match variants(&loaded) {
        Ok(all) => all,
        Err(problems) => return refused(&problems),
    };
    let first =
        all[0].scenario.realise(all[0].scenario.seeds[0]).expect("a variant is not a sweep");
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
        "knobs": read_toml(text).map_or(Vec::new(), |(document, _)| knobs::of(&document)),
        "notes": loaded.notes.iter().map(shown).collect::<Vec<_>>(),
        "lacking": lacking(&all[0].scenario, &first).iter().map(shown).collect::<Vec<_>>(),
    })
}

/// The answer to `Request::Words`.
pub fn words(qdisc: &str) -> Value {
    match Discipline::parse(qdisc) {
        Err(error) => json!({
            "refused": error.problem,
            "hint": error.hint,
            "at": error.at.start,
        }),
        Ok(discipline) => {
            let knobs: Vec<Knob> = knobs::of_words(&discipline, "");
            let lacking = lacking_of(&discipline).as_ref().map(shown);
            json!({ "text": discipline.text(), "knobs": knobs, "lacking": lacking })
        }
    }
}
