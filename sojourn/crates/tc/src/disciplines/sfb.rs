//! sfb: tc-sfb(8). A scenario's words are passed to Linux unchanged; `simulated` fills in tc's or
//! else Linux's defaults for unset parameters.

use super::LIMIT;
use crate::grammar::{Fields, Grammar, Read, Value, word};
use crate::linux::{Change, Linux, Why, Xstats, counter, state};
use crate::numbers::U32;
use crate::record::Record;
use qdisc::Cause;

pub(super) static SFB: Record = Record {
    kind: "sfb",
    grammars: &[Grammar {
        kind: "sfb",
        words: &[
            word("rehash", "MS", Read::Count(0, U32)),
            word("db", "MS", Read::Count(0, U32)),
            LIMIT,
            word("max", "PACKETS", Read::Count(1, U32)),
            word("target", "PACKETS", Read::Count(1, U32)),
            word("increment", "NUMBER", Read::RealAbove(0.0, 1.0)),
            word("decrement", "NUMBER", Read::RealAbove(0.0, 1.0)),
            word("penalty_rate", "PACKETS", Read::Count(0, U32)),
            word("penalty_burst", "PACKETS", Read::Count(0, U32)),
        ],
        ..Grammar::NONE
    }],
    simulated: true,
    translated: Some(simulated),
    linux: Some(Linux {
        // struct tc_sfb_xstats.
        xstats: Xstats {
            skipped: 0,
            names: &[
                "earlydrop",
                "penaltydrop",
                "bucketdrop",
                "queuedrop",
                "childdrop",
                "marked",
                "maxqlen",
                "maxprob",
                "avgprob",
            ],
        },
        in_order: true,
        drops: Why::Counted(&[
            counter(Cause::Early, &["earlydrop", "penaltydrop", "bucketdrop"]),
            counter(Cause::Limit, &["queuedrop", "childdrop"]),
        ]),
        marks: Why::Counted(&[counter(Cause::Early, &["marked"])]),
        // The probability has 16 bits.
        state: &[state("probability", &["avgprob"], &[], 65_535.0)],
        change: Change::Whole,
        ..Linux::PLAIN
    }),
    least: "sfb",
    usual_limit: Some(USUAL_LIMIT),
    ..Record::NONE
};

/// The default limit: the device's txqueuelen.
const USUAL_LIMIT: u64 = 1_000;
/// p = 1 (SFB_MAX_PROB).
const ONE: f64 = 65_535.0;

/// The simulator's parameters. tc computes an unset `max` from `target` and the reverse: `max` is a
/// quarter larger.
fn simulated(fields: &Fields) -> Vec<(&'static str, Value)> {
    let count = |field: &str, usual: u64| Value::Count(fields.count(field).unwrap_or(usual));
    let p = |field: &str, usual: f64| {
        let p = fields.get(field).real().unwrap_or(usual);
        Value::Count((p * ONE).round() as u64)
    };
    let target = fields.count("target");
    let max = fields.count("max").or(target.map(|target| (5 * target + 1) / 4)).unwrap_or(25);
    vec![
        ("limit", count("limit", USUAL_LIMIT)),
        ("rehash_ms", count("rehash", 600_000)),
        ("db_ms", count("db", 60_000)),
        ("max", Value::Count(max)),
        ("target", Value::Count(target.unwrap_or((4 * max + 3) / 5))),
        ("increment", p("increment", 0.0005)),
        ("decrement", p("decrement", 0.000_05)),
        ("penalty_rate", count("penalty_rate", 10)),
        ("penalty_burst", count("penalty_burst", 20)),
    ]
}
