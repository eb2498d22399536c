//! codel: tc-codel(8). The variants are those of crates/qdisc, codel.rs.

use super::{LIMIT, flag, whole_microseconds};
use crate::grammar::{Grammar, Read, Value, off, on, time};
use crate::linux::{
    Attribute, CODEL_MARKS, Change, End, Linux, OF_7_3, Options, PINNED, State, Why, Xstats, state,
};
use crate::record::Record;
use qdisc::Cause;

pub(super) static CODEL: Record = Record {
    kind: "codel",
    grammars: &[
        Grammar {
            variant: Some("linux"),
            aliases: &[PINNED],
            defaults: &defaults("linux"),
            ..WORDS
        },
        Grammar { variant: Some(OF_7_3), defaults: &defaults(OF_7_3), ..WORDS },
        Grammar { variant: Some("linux2012"), defaults: &defaults("linux2012"), ..WORDS },
        Grammar {
            variant: Some("rfc"),
            aliases: &["rfc8289"],
            defaults: &defaults("rfc"),
            ..WORDS
        },
        Grammar { variant: Some("ns3"), defaults: &defaults("ns3"), ..WORDS },
    ],
    simulated: true,
    linux: Some(Linux {
        options: Options::Attributes(
            "TCA_CODEL",
            &[
                Attribute { name: "LIMIT", value: |fields| fields.count("limit") },
                Attribute {
                    name: "TARGET",
                    value: |fields| whole_microseconds(fields, "target_ns"),
                },
                Attribute {
                    name: "INTERVAL",
                    value: |fields| whole_microseconds(fields, "interval_ns"),
                },
                Attribute {
                    name: "CE_THRESHOLD",
                    value: |fields| whole_microseconds(fields, "ce_threshold_ns"),
                },
                Attribute { name: "ECN", value: |fields| flag(fields, "ecn") },
            ],
        ),
        // struct tc_codel_xstats.
        xstats: Xstats {
            skipped: 0,
            names: &[
                "maxpacket",
                "count",
                "lastcount",
                "ldelay",
                "drop_next",
                "drop_overlimit",
                "ecn_mark",
                "dropping",
                "ce_mark",
            ],
        },
        in_order: true,
        end: End::Departure,
        // The limit drops on arrival, the control law later.
        drops: Why::ByEnd { arrival: Cause::Limit, departure: Cause::Target },
        marks: Why::Counted(CODEL_MARKS),
        state: &[State { while_on: Some("dropping"), ..state("count", &["count"], &[], 1.0) }],
        change: Change::Named(&[]),
        ..Linux::PLAIN
    }),
    changes: &["limit", "target_ns", "interval_ns", "ecn", "ce_threshold_ns"],
    least: "codel",
    ..Record::NONE
};

const WORDS: Grammar = Grammar {
    kind: "codel",
    words: &[
        LIMIT,
        time("target", "target_ns", Read::Time),
        time("interval", "interval_ns", Read::PositiveTime),
        time("ce_threshold", "ce_threshold_ns", Read::Time),
    ],
    flags: &[on("ecn", "ecn"), off("noecn", "ecn")],
    ..Grammar::NONE
};

const fn defaults(variant: &'static str) -> [(&'static str, Value); 6] {
    [
        ("variant", Value::word(variant)),
        ("limit", Value::Count(1000)),
        ("target_ns", Value::Count(5_000_000)),
        ("interval_ns", Value::Count(100_000_000)),
        ("ecn", Value::Flag(false)),
        ("ce_threshold_ns", Value::Unset),
    ]
}
