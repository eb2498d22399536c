//! adt: a drop-tail queue that adapts its limit. Linux does not have it.
//!
//! Source: Stanojevic, Shorten, Kellett 2006; their published settings are the defaults.

use super::{LIMIT, refused};
use crate::error::TcError;
use crate::grammar::{Fields, Grammar, Read, Value, time, word};
use crate::numbers::U32;
use crate::record::Record;

pub(super) static ADT: Record = Record {
    kind: "adt",
    grammars: &[Grammar {
        kind: "adt",
        words: &[
            LIMIT,
            word("utilisation", "NUMBER", Read::RealAbove(0.0, 1.0)),
            word("increase", "NUMBER", Read::RealAbove(1.0, 10.0)),
            word("weight", "NUMBER", Read::RealAbove(0.0, 1.0)),
            time("sample", "sample_ns", Read::PositiveTime),
            word("rate", "RATE", Read::Rate),
            word("start", "PACKETS", Read::Count(1, U32)),
            word("packet", "BYTES", Read::Count(1, 65535)),
        ],
        defaults: &[
            ("limit", Value::Count(1000)),
            ("utilisation", Value::Real(0.99)),
            ("increase", Value::Real(1.01)),
            ("weight", Value::Real(0.1)),
            ("sample_ns", Value::Count(300_000_000)),
            ("rate", Value::Unset),
            ("start", Value::Unset),
            ("packet", Value::Unset),
        ],
        always: &["limit"],
        complete,
        ..Grammar::NONE
    }],
    simulated: true,
    least: "adt",
    without_a_rate: |fields| {
        let problem = "adt needs a rate, and this link has none";
        (!fields.get("rate").is_set()).then(|| TcError::new(problem, "write adt rate 20mbit"))
    },
    ..Record::NONE
};

fn complete(fields: &mut Fields, _given: &[&'static str]) -> Result<(), TcError> {
    match (fields.count("start"), fields.count("limit")) {
        (Some(start), Some(limit)) if !(1..=limit).contains(&start) => refused(
            format!("adt: start {start} is not within 1 and the limit {limit}"),
            "give a start up to the limit",
        ),
        _ => Ok(()),
    }
}
