//! blue: Feng, Kandlur, Saha and Shin. Linux has it only within sfb, so the words are ours, after
//! the papers.

use super::LIMIT;
use crate::grammar::{Grammar, Read, Value, off, on, time, word};
use crate::record::Record;

pub(super) static BLUE: Record = Record {
    kind: "blue",
    grammars: &[Grammar {
        kind: "blue",
        words: &[
            LIMIT,
            time("freeze_time", "freeze_ns", Read::Time),
            word("increment", "NUMBER", Read::RealAbove(0.0, 1.0)),
            word("decrement", "NUMBER", Read::RealAbove(0.0, 1.0)),
        ],
        flags: &[on("ecn", "ecn"), off("noecn", "ecn")],
        defaults: &[
            ("limit", Value::Count(1000)),
            ("freeze_ns", Value::Count(100_000_000)),
            ("increment", Value::Real(0.02)),
            ("decrement", Value::Real(0.002)),
            ("ecn", Value::Flag(false)),
        ],
        ..Grammar::NONE
    }],
    simulated: true,
    least: "blue",
    ..Record::NONE
};
