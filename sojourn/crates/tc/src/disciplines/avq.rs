//! avq: Kunniyur and Srikant. Linux does not have it, so the words are ours, after the paper.

use crate::error::TcError;
use crate::grammar::{Grammar, Read, Value, off, on, word};
use crate::record::{Counts, Record};

pub(super) static AVQ: Record = Record {
    kind: "avq",
    grammars: &[Grammar {
        kind: "avq",
        words: &[
            word("limit", "BYTES", Read::Size),
            word("gamma", "NUMBER", Read::RealAbove(0.0, 1.0)),
            word("alpha", "NUMBER", Read::RealAbove(0.0, 1000.0)),
            word("rate", "RATE", Read::Rate),
        ],
        flags: &[on("ecn", "ecn"), off("noecn", "ecn")],
        defaults: &[
            ("limit", Value::Count(150_000)),
            ("gamma", Value::Real(0.98)),
            ("alpha", Value::Real(0.15)),
            ("rate", Value::Unset),
            ("ecn", Value::Flag(false)),
        ],
        ..Grammar::NONE
    }],
    simulated: true,
    least: "avq",
    counts: Counts::Bytes,
    without_a_rate: |fields| {
        let problem = "avq needs a rate, and this link has none";
        (!fields.get("rate").is_set()).then(|| TcError::new(problem, "write avq rate 20mbit"))
    },
    ..Record::NONE
};
