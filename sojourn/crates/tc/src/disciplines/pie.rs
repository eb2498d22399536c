//! pie: tc-pie(8). The variants are those of crates/qdisc, pie.

use super::{LIMIT, flag, microseconds, whole_microseconds};
use crate::error::TcError;
use crate::grammar::{Flag, Grammar, Read, Value, Word, off, on, time, word};
use crate::linux::{
    CauseCounter, Change, Linux, Options, PINNED, Place, Why, Xstats, counter, packed, state,
};
use crate::numbers::U32;
use crate::record::Record;
use qdisc::Cause;

pub(super) static PIE: Record = Record {
    kind: "pie",
    grammars: &[
        Grammar {
            kind: "pie",
            variant: Some("linux"),
            aliases: &[PINNED],
            words: &[LIMIT, TARGET, TUPDATE, ALPHA, BETA],
            flags: FLAGS,
            defaults: &[
                ("variant", Value::word("linux")),
                ("limit", Value::Count(1000)),
                ("target_ns", Value::Count(15_000_000)),
                ("tupdate_ns", Value::Count(15_000_000)),
                ("alpha", Value::Count(2)),
                ("beta", Value::Count(20)),
                ("ecn", Value::Flag(false)),
                ("bytemode", Value::Flag(false)),
                ("dq_rate_estimator", Value::Flag(false)),
            ],
            ..Grammar::NONE
        },
        // RFC 8033: alpha 0.125 and beta 1.25.
        Grammar {
            variant: Some("rfc"),
            aliases: &["rfc8033"],
            flags: &[on("ecn", "ecn"), off("noecn", "ecn")],
            defaults: &[
                ("variant", Value::word("rfc")),
                ("limit", Value::Count(1000)),
                ("target_ns", Value::Count(15_000_000)),
                ("tupdate_ns", Value::Count(15_000_000)),
                ("alpha", Value::Real(2.0)),
                ("beta", Value::Real(20.0)),
                ("ecn", Value::Flag(false)),
            ],
            ..REALS
        },
        // RFC 8034: A 0.25 and B 2.5.
        Grammar {
            variant: Some("docsis"),
            aliases: &["rfc8034"],
            defaults: &[
                ("variant", Value::word("docsis")),
                ("limit", Value::Count(1000)),
                ("target_ns", Value::Count(10_000_000)),
                ("tupdate_ns", Value::Count(16_000_000)),
                ("alpha", Value::Real(4.0)),
                ("beta", Value::Real(40.0)),
            ],
            ..REALS
        },
    ],
    simulated: true,
    linux: Some(Linux {
        // TCA_PIE_*.
        options: Options::Packed(&[
            packed(1, |fields| whole_microseconds(fields, "target_ns")),
            packed(2, |fields| fields.count("limit")),
            packed(3, |fields| whole_microseconds(fields, "tupdate_ns")),
            packed(4, |fields| fields.count("alpha")),
            packed(5, |fields| fields.count("beta")),
            packed(6, |fields| flag(fields, "ecn")),
            packed(7, |fields| flag(fields, "bytemode")),
            packed(8, |fields| flag(fields, "dq_rate_estimator")),
        ]),
        // TCA_PIE_LIMIT.
        read: &[("limit", Place::Attribute(2))],
        // struct tc_pie_xstats. The probability has 64 bits; its upper half is enough.
        xstats: Xstats {
            skipped: 4,
            names: &[
                "prob_high",
                "delay",
                "avg_dq_rate",
                "dq_rate_estimating",
                "packets_in",
                "dropped",
                "overlimit",
                "maxq",
                "marked",
            ],
        },
        in_order: true,
        drops: Why::Counted(&[
            // The kernel counts a drop at the limit as both.
            CauseCounter { cause: Cause::Early, plus: &["dropped"], minus: &["overlimit"] },
            counter(Cause::Limit, &["overlimit"]),
        ]),
        marks: Why::Counted(&[counter(Cause::Early, &["marked"])]),
        state: &[state("probability", &["prob_high"], &[], 4_294_967_296.0)],
        change: Change::Named(&[]),
        ..Linux::PLAIN
    }),
    changes: &["limit", "target_ns", "alpha", "beta", "ecn", "bytemode", "dq_rate_estimator"],
    least: "pie",
    without_a_rate: |fields| {
        let docsis = fields.get("variant").text() == Some("docsis");
        docsis.then(|| {
            TcError::new(
                "pie variant docsis computes the delay from the rate, and this link has none",
                "give the link a rate, or write pie variant rfc",
            )
        })
    },
    ..Record::NONE
};

/// The RFCs' alpha and beta: real numbers in sixteenths of 1/s, tc's unit.
const REALS: Grammar = Grammar {
    kind: "pie",
    words: &[
        LIMIT,
        time("target", "target_ns", Read::Time),
        time("tupdate", "tupdate_ns", Read::PositiveTime),
        word("alpha", "NUMBER", Read::Real(0.0, U32 as f64)),
        word("beta", "NUMBER", Read::Real(0.0, U32 as f64)),
    ],
    ..Grammar::NONE
};

pub(super) const TARGET: Word = microseconds("target", "target_ns");
pub(super) const TUPDATE: Word = microseconds("tupdate", "tupdate_ns");
pub(super) const ALPHA: Word = word("alpha", "NUMBER", Read::Count(0, 32));
pub(super) const BETA: Word = word("beta", "NUMBER", Read::Count(0, 32));
/// The flags of pie, which fq_pie shares.
pub(super) const FLAGS: &[Flag] = &[
    on("ecn", "ecn"),
    off("noecn", "ecn"),
    on("bytemode", "bytemode"),
    off("nobytemode", "bytemode"),
    on("dq_rate_estimator", "dq_rate_estimator"),
    off("no_dq_rate_estimator", "dq_rate_estimator"),
];
