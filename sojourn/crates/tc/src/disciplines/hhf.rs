//! hhf: tc-hhf(8). A scenario's words are passed to Linux unchanged; `simulated` fills in Linux's
//! defaults for unset parameters.

use super::{LIMIT, microseconds, refused};
use crate::error::TcError;
use crate::grammar::{Fields, Grammar, Read, Value, word};
use crate::linux::{Change, Linux, Place};
use crate::numbers::U32;
use crate::record::Record;

pub(super) static HHF: Record = Record {
    kind: "hhf",
    grammars: &[Grammar {
        kind: "hhf",
        words: &[
            LIMIT,
            word("quantum", "BYTES", Read::Count(1, MOST_TURN)),
            word("hh_limit", "NUMBER", Read::Count(1, U32)),
            microseconds("reset_timeout", "reset_timeout_ns"),
            word("admit_bytes", "BYTES", Read::Size),
            microseconds("evict_timeout", "evict_timeout_ns"),
            word("non_hh_weight", "NUMBER", Read::Count(1, U32)),
        ],
        complete,
        ..Grammar::NONE
    }],
    simulated: true,
    translated: Some(simulated),
    linux: Some(Linux {
        // TCA_HHF_BACKLOG_LIMIT.
        read: &[("limit", Place::Attribute(1))],
        change: Change::Named(&[]),
        ..Linux::PLAIN
    }),
    least: "hhf",
    usual_limit: Some(USUAL_LIMIT),
    ..Record::NONE
};

const USUAL_LIMIT: u64 = 1_000;
const USUAL_WEIGHT: u64 = 2;
/// The largest number of bytes in a turn, INT_MAX.
const MOST_TURN: u64 = (1 << 31) - 1;
/// Ethernet's largest packet.
const USUAL_QUANTUM: u64 = 1514;

/// Refuses what Linux refuses.
fn complete(fields: &mut Fields, _given: &[&'static str]) -> Result<(), TcError> {
    let quantum = fields.count("quantum").unwrap_or(USUAL_QUANTUM);
    let weight = fields.count("non_hh_weight").unwrap_or(USUAL_WEIGHT);
    if quantum * weight <= MOST_TURN {
        return Ok(());
    }
    let problem =
        format!("hhf: quantum {quantum} times non_hh_weight {weight} is above {MOST_TURN}");
    refused(problem, format!("write non_hh_weight {} or less", (MOST_TURN / quantum).max(1)))
}

/// The simulator's parameters.
fn simulated(fields: &Fields) -> Vec<(&'static str, Value)> {
    let count = |field: &str, usual: u64| Value::Count(fields.count(field).unwrap_or(usual));
    vec![
        ("limit", count("limit", USUAL_LIMIT)),
        ("quantum", fields.get("quantum").clone()),
        ("hh_limit", count("hh_limit", 2048)),
        ("reset_timeout_ns", count("reset_timeout_ns", 40_000_000)),
        ("admit_bytes", count("admit_bytes", 131_072)),
        ("evict_timeout_ns", count("evict_timeout_ns", 1_000_000_000)),
        ("non_hh_weight", count("non_hh_weight", USUAL_WEIGHT)),
    ]
}
