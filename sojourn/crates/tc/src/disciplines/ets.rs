//! ets: tc-ets(8). A scenario's words are passed to Linux unchanged; `simulated` fills in tc's or
//! else Linux's defaults for unset parameters.

use super::bands::{MOST_BANDS, PRIORITIES, USUAL_LIMIT, check_map, written};
use super::refused;
use crate::error::TcError;
use crate::grammar::{Fields, Grammar, Read, Value, word};
use crate::linux::Linux;
use crate::numbers::U32;
use crate::record::{Counts, Record};

pub(super) static ETS: Record = Record {
    kind: "ets",
    grammars: &[Grammar {
        kind: "ets",
        words: &[
            word("bands", "NUMBER", Read::Count(1, MOST_BANDS)),
            word("strict", "NUMBER", Read::Count(0, MOST_BANDS)),
            word("quanta", "BYTES...", Read::Counts(U32)),
            word("priomap", "BAND...", Read::Counts(MOST_BANDS - 1)),
        ],
        complete,
        ..Grammar::NONE
    }],
    simulated: true,
    translated: Some(simulated),
    linux: Some(Linux::PLAIN),
    least: "ets bands 3",
    counts: Counts::PacketsOfABand,
    usual_limit: Some(USUAL_LIMIT),
    ..Record::NONE
};

fn strict(fields: &Fields) -> u64 {
    fields.count("strict").unwrap_or(0)
}

/// The number of bands; by default those in strict priority and those with a quantum.
fn bands(fields: &Fields) -> u64 {
    let named = strict(fields) + fields.numbers("quanta").len() as u64;
    fields.count("bands").unwrap_or(named)
}

/// Refuses what tc and Linux refuse.
fn complete(fields: &mut Fields, _given: &[&'static str]) -> Result<(), TcError> {
    if ["bands", "strict", "quanta"].into_iter().all(|word| !fields.get(word).is_set()) {
        return refused(
            "ets: the number of bands is missing".to_owned(),
            "write ets bands 3, ets strict 3, or quanta in bytes for each band",
        );
    }
    let (bands, strict, quanta) = (bands(fields), strict(fields), fields.numbers("quanta"));
    let named = strict + quanta.len() as u64;
    if bands == 0 || bands > MOST_BANDS {
        let problem = format!("ets: there are {bands} bands");
        return refused(problem, format!("give from 1 to {MOST_BANDS}"));
    }
    if named > bands {
        let problem = format!(
            "ets: {strict} strict and {} with a quantum are more than {bands} bands",
            quanta.len()
        );
        return refused(problem, format!("write bands {named}, or leave out bands"));
    }
    if quanta.contains(&0) {
        let hint = "write for each quantum the bytes that its band may send in a turn";
        return refused("ets: a quantum is 0".to_owned(), hint);
    }
    let hint = "write priomap with existing bands";
    check_map("ets", &fields.numbers("priomap"), bands, hint)
}

/// The simulator's parameters. A priority that the map does not list has the last band.
fn simulated(fields: &Fields) -> Vec<(&'static str, Value)> {
    let bands = bands(fields);
    let mut map = fields.numbers("priomap");
    map.resize(PRIORITIES, bands - 1);
    vec![
        ("bands", Value::Count(bands)),
        ("strict", Value::Count(strict(fields))),
        ("quanta", written(&fields.numbers("quanta"))),
        ("priomap", written(&map)),
        ("limit", Value::Count(USUAL_LIMIT)),
    ]
}
