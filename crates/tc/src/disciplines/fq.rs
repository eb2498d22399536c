//! fq: tc-fq(8).

use super::{LIMIT, microseconds};
use crate::grammar::{Grammar, Read, off, on, one, word};
use crate::linux::{Linux, Place, Why, Xstats, state, tell};
use crate::numbers::U32;
use crate::record::Record;
use qdisc::Cause;

pub(super) static FQ: Record = Record {
    kind: "fq",
    grammars: &[Grammar {
        kind: "fq",
        words: &[
            LIMIT,
            word("flow_limit", "PACKETS", Read::Count(1, U32)),
            word("quantum", "BYTES", Read::Count(1, U32)),
            word("initial_quantum", "BYTES", Read::Count(1, U32)),
            word("maxrate", "RATE", Read::Rate),
            word("buckets", "NUMBER", Read::Count(1, 1 << 18)),
            microseconds("refill_delay", "refill_delay_ns"),
            word("low_rate_threshold", "RATE", Read::Rate),
            word("orphan_mask", "NUMBER", Read::Count(0, U32)),
            microseconds("timer_slack", "timer_slack_ns"),
            microseconds("ce_threshold", "ce_threshold_ns"),
            microseconds("horizon", "horizon_ns"),
        ],
        flags: &[
            on("pacing", "pacing"),
            off("nopacing", "pacing"),
            one("beyond", "horizon_cap"),
            one("beyond", "horizon_drop"),
        ],
        ..Grammar::NONE
    }],
    linux: Some(Linux {
        // TCA_FQ_PLIMIT.
        read: &[("limit", Place::Attribute(1))],
        // struct tc_fq_qd_stats: eight numbers of 64 bits come first.
        xstats: Xstats {
            skipped: 64,
            names: &[
                "flows",
                "inactive_flows",
                "throttled_flows",
                "unthrottle_latency_ns",
                "ce_mark",
            ],
        },
        marks: Why::Counted(&[tell(Cause::CeThreshold, &["ce_mark"])]),
        state: &[state("flows", &["flows"], &["inactive_flows"], 1.0)],
        ..Linux::PLAIN
    }),
    least: "fq",
    usual_limit: Some(10_000),
    shapes: Some("maxrate"),
    nearest: Some("fq_codel"),
    ..Record::NONE
};
