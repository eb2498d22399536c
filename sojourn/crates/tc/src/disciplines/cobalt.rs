//! cobalt: the law of cake's flows on one queue. Linux has it only within cake, so the words are
//! ours: CoDel's.

use super::LIMIT;
use crate::grammar::{Grammar, Read, Value, off, on, time};
use crate::record::Record;

pub(super) static COBALT: Record = Record {
    kind: "cobalt",
    grammars: &[Grammar {
        kind: "cobalt",
        words: &[
            LIMIT,
            time("target", "target_ns", Read::Time),
            time("interval", "interval_ns", Read::PositiveTime),
        ],
        flags: &[on("ecn", "ecn"), off("noecn", "ecn")],
        defaults: &[
            ("limit", Value::Count(1000)),
            ("target_ns", Value::Count(5_000_000)),
            ("interval_ns", Value::Count(100_000_000)),
            ("ecn", Value::Flag(true)),
        ],
        ..Grammar::NONE
    }],
    simulated: true,
    least: "cobalt",
    ..Record::NONE
};
