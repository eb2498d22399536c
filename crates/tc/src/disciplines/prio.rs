//! prio: tc-prio(8). In a scenario its words are passed on to Linux as they are; `simulated` fills
//! in what nobody said.

use super::{MOST_BANDS, refused};
use crate::error::TcError;
use crate::grammar::{Fields, Grammar, Read, Value, word};
use crate::linux::Linux;
use crate::record::{Counts, Record, USUAL_BANDS};

pub(super) static PRIO: Record = Record {
    kind: "prio",
    grammars: &[Grammar {
        kind: "prio",
        words: &[
            word("bands", "NUMBER", Read::Count(2, MOST_BANDS)),
            word("priomap", "BAND...", Read::Counts(MOST_BANDS - 1)),
        ],
        complete,
        ..Grammar::NONE
    }],
    simulated: true,
    translated: Some(simulated),
    linux: Some(Linux::PLAIN),
    least: "prio",
    counts: Counts::PacketsOfABand,
    usual_limit: Some(USUAL_LIMIT),
    ..Record::NONE
};

/// Of each band: the device's txqueuelen.
const USUAL_LIMIT: u64 = 1_000;
/// tc-prio(8): the band of each priority where nobody said it.
const USUAL_MAP: [u64; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];

fn bands(fields: &Fields) -> u64 {
    fields.count("bands").unwrap_or(USUAL_BANDS)
}

/// What was said, and behind it the usual.
fn priomap(fields: &Fields) -> Vec<u64> {
    let said = fields.get("priomap").text().unwrap_or_default();
    let mut map: Vec<u64> =
        said.split_whitespace().map(|band| band.parse().expect("a number was read")).collect();
    map.extend(USUAL_MAP.iter().skip(map.len()));
    map
}

/// What tc and Linux refuse.
fn complete(fields: &mut Fields, _given: &[&'static str]) -> Result<(), TcError> {
    let (bands, map) = (bands(fields), priomap(fields));
    if map.len() > USUAL_MAP.len() {
        let problem = format!("prio: priomap has {} bands, and there are 16 priorities", map.len());
        return refused(problem, "give 16 bands at most");
    }
    if let Some((priority, band)) = map.iter().enumerate().find(|(_, band)| **band >= bands) {
        let problem = format!(
            "prio: priority {priority} has band {band} in the priomap, and there are bands 0 to {}",
            bands - 1
        );
        return refused(problem, "write priomap with a band for each of the 16 priorities");
    }
    Ok(())
}

/// The simulator's parameters.
fn simulated(fields: &Fields) -> Vec<(&'static str, Value)> {
    let map: Vec<String> = priomap(fields).iter().map(u64::to_string).collect();
    vec![
        ("bands", Value::Count(bands(fields))),
        ("priomap", Value::Text(map.join(" ").into())),
        ("limit", Value::Count(USUAL_LIMIT)),
    ]
}
