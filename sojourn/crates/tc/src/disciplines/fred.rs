//! fred: Lin and Morris. Linux does not have it, so the words are ours, after the paper.

use super::{LIMIT, refused};
use crate::error::TcError;
use crate::grammar::{Fields, Grammar, Read, Value, on, word};
use crate::numbers::U32;
use crate::record::Record;
use values::text::number;

pub(super) static FRED: Record = Record {
    kind: "fred",
    grammars: &[Grammar {
        kind: "fred",
        words: &[
            LIMIT,
            word("min", "PACKETS", Read::RealAbove(0.0, U32 as f64)),
            word("max", "PACKETS", Read::RealAbove(0.0, U32 as f64)),
            word("probability", "NUMBER", Read::RealAbove(0.0, 1.0)),
            word("weight", "NUMBER", Read::RealAbove(0.0, 1.0)),
            word("minq", "PACKETS", Read::Count(1, U32)),
        ],
        flags: &[on("many_flows", "many_flows")],
        defaults: &[
            ("limit", Value::Count(100)),
            ("min", Value::Real(25.0)),
            ("max", Value::Real(50.0)),
            ("probability", Value::Real(0.02)),
            ("weight", Value::Real(0.002)),
            ("minq", Value::Count(4)),
            ("many_flows", Value::Flag(false)),
        ],
        complete,
        ..Grammar::NONE
    }],
    simulated: true,
    least: "fred",
    ..Record::NONE
};

/// The paper's defaults: min is a quarter of the buffer, max twice min.
fn complete(fields: &mut Fields, given: &[&'static str]) -> Result<(), TcError> {
    let real = |fields: &Fields, name: &str| fields.get(name).real().unwrap_or(0.0);
    if !given.contains(&"min") {
        fields.set("min", Value::Real(real(fields, "limit") / 4.0));
    }
    if !given.contains(&"max") {
        fields.set("max", Value::Real(2.0 * real(fields, "min")));
    }
    let [min, max] = ["min", "max"].map(|name| real(fields, name));
    if min >= max {
        let problem = format!("fred: min {} is not below max {}", number(min), number(max));
        return refused(problem, "give a min below max, both in packets");
    }
    Ok(())
}
