//! choke: tc-choke(8). A scenario's words are passed to Linux unchanged; `simulated` fills in tc's
//! defaults for unset parameters.

use super::{LIMIT, red};
use crate::grammar::{Fields, Grammar, Read, Value, on, word};
use crate::linux::{Change, Linux, Why, Xstats, counter};
use crate::numbers::U32;
use crate::record::Record;
use qdisc::Cause;

pub(super) static CHOKE: Record = Record {
    kind: "choke",
    grammars: &[Grammar {
        kind: "choke",
        words: &[
            LIMIT,
            word("bandwidth", "RATE", Read::Rate),
            word("min", "PACKETS", Read::Count(1, U32)),
            word("max", "PACKETS", Read::Count(1, U32)),
            word("avpkt", "BYTES", Read::SizeWithin(1, U32)),
            word("burst", "PACKETS", Read::Count(1, U32)),
            word("probability", "NUMBER", Read::RealAbove(0.0, 1.0)),
        ],
        flags: &[on("ecn", "ecn")],
        required: &["limit", "bandwidth"],
        complete: red::complete_choke,
        ..Grammar::NONE
    }],
    simulated: true,
    translated: Some(simulated),
    linux: Some(Linux {
        // struct tc_choke_xstats.
        xstats: Xstats { skipped: 0, names: &["early", "pdrop", "other", "marked", "matched"] },
        in_order: true,
        drops: Why::Counted(&[
            counter(Cause::Early, &["early", "matched"]),
            counter(Cause::Limit, &["pdrop"]),
        ]),
        marks: Why::Counted(&[counter(Cause::Early, &["marked"])]),
        change: Change::Whole,
        ..Linux::PLAIN
    }),
    least: "choke limit 1000 bandwidth 10mbit",
    ..Record::NONE
};

/// tc-choke(8)'s default.
const AVPKT: u64 = 1000;
const PROBABILITY: f64 = 0.02;

/// The simulator's parameters: max is a quarter of the limit, min a twelfth, and the burst is
/// between them.
fn simulated(fields: &Fields) -> Vec<(&'static str, Value)> {
    let given = |field: &str| fields.count(field);
    let limit = given("limit").unwrap_or_default();
    let max = given("max").unwrap_or(limit / 4);
    let min = given("min").unwrap_or(max / 3);
    let burst = given("burst").unwrap_or((2 * min + max) / 3);
    vec![
        ("limit", Value::Count(limit)),
        ("min", Value::Count(min)),
        ("max", Value::Count(max)),
        ("avpkt", Value::Count(given("avpkt").unwrap_or(AVPKT))),
        ("burst", Value::Count(burst)),
        ("probability", Value::Real(fields.get("probability").real().unwrap_or(PROBABILITY))),
        ("bandwidth", Value::Count(given("bandwidth").unwrap_or_default())),
        ("ecn", Value::Flag(fields.get("ecn").is_on())),
    ]
}
