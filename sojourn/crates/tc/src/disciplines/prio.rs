//! prio: tc-prio(8). A scenario's words are passed to Linux unchanged; `simulated` fills in the
//! defaults for unset parameters.

use super::bands::{MOST_BANDS, PRIORITIES, USUAL_LIMIT, check_map, written};
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
        elsewhere: &[("multiqueue", "Linux ignores it: write mq, a discipline on each queue")],
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

/// tc-prio(8): the default band of each priority.
const USUAL_MAP: [u64; PRIORITIES] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];

fn bands(fields: &Fields) -> u64 {
    fields.count("bands").unwrap_or(USUAL_BANDS)
}

/// The given bands, followed by the default ones.
fn priomap(fields: &Fields) -> Vec<u64> {
    let mut map = fields.numbers("priomap");
    map.extend(USUAL_MAP.iter().skip(map.len()));
    map
}

/// Refuses what tc and Linux refuse.
fn complete(fields: &mut Fields, _given: &[&'static str]) -> Result<(), TcError> {
    let hint = "write priomap with a band for each of the 16 priorities";
    check_map("prio", &priomap(fields), bands(fields), hint)
}

/// The simulator's parameters.
fn simulated(fields: &Fields) -> Vec<(&'static str, Value)> {
    vec![
        ("bands", Value::Count(bands(fields))),
        ("priomap", written(&priomap(fields))),
        ("limit", Value::Count(USUAL_LIMIT)),
    ]
}
