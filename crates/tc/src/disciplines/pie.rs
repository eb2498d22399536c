//! pie: tc-pie(8).

use super::{LIMIT, microseconds};
use crate::grammar::{Flag, Grammar, Read, Word, off, on, word};
use crate::linux::{Linux, Place, Why, Xstats, state, tell};
use crate::record::Record;
use qdisc::Cause;

pub(super) static PIE: Record = Record {
    kind: "pie",
    grammars: &[Grammar {
        kind: "pie",
        words: &[LIMIT, TARGET, TUPDATE, ALPHA, BETA],
        flags: FLAGS,
        ..Grammar::NONE
    }],
    linux: Some(Linux {
        // TCA_PIE_LIMIT.
        read: &[("limit", Place::Attribute(2))],
        // struct tc_pie_xstats: the probability has 64 bits, of which the upper half is enough.
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
            tell(Cause::Early, &["dropped"]),
            tell(Cause::Limit, &["overlimit"]),
        ]),
        marks: Why::Counted(&[tell(Cause::Early, &["marked"])]),
        state: &[state("probability", &["prob_high"], &[], 4_294_967_296.0)],
        ..Linux::PLAIN
    }),
    least: "pie",
    usual_limit: Some(1_000),
    nearest: Some("codel"),
    ..Record::NONE
};

pub(super) const TARGET: Word = microseconds("target", "target_ns");
pub(super) const TUPDATE: Word = microseconds("tupdate", "tupdate_ns");
pub(super) const ALPHA: Word = word("alpha", "NUMBER", Read::Count(0, 32));
pub(super) const BETA: Word = word("beta", "NUMBER", Read::Count(0, 32));
/// fq_pie has them as well.
pub(super) const FLAGS: &[Flag] = &[
    on("ecn", "ecn"),
    off("noecn", "ecn"),
    on("bytemode", "bytemode"),
    off("nobytemode", "bytemode"),
    on("dq_rate_estimator", "dq_rate_estimator"),
    off("no_dq_rate_estimator", "dq_rate_estimator"),
];
