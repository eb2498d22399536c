//! fq_pie: tc-fq_pie(8).

use super::{LIMIT, flag, pie, whole_microseconds};
use crate::grammar::{Grammar, Read, Value, word};
use crate::linux::{
    CauseCounter, Change, Linux, Options, Place, Why, Xstats, counter, packed, state,
};
use crate::record::Record;
use qdisc::Cause;

pub(super) static FQ_PIE: Record = Record {
    kind: "fq_pie",
    grammars: &[Grammar {
        kind: "fq_pie",
        words: &[
            LIMIT,
            word("flows", "NUMBER", Read::Count(1, 65536)),
            pie::TARGET,
            pie::TUPDATE,
            pie::ALPHA,
            pie::BETA,
            word("quantum", "BYTES", Read::SizeWithin(256, 1 << 20)),
            word("memory_limit", "BYTES", Read::Size),
            word("ecn_prob", "NUMBER", Read::Count(0, 99)),
        ],
        flags: pie::FLAGS,
        defaults: &[
            ("limit", Value::Count(10_240)),
            ("flows", Value::Count(1024)),
            ("target_ns", Value::Count(15_000_000)),
            ("tupdate_ns", Value::Count(15_000_000)),
            ("alpha", Value::Count(2)),
            ("beta", Value::Count(20)),
            ("quantum", Value::Count(1514)),
            ("memory_limit", Value::Count(32 << 20)),
            ("ecn_prob", Value::Count(10)),
            ("ecn", Value::Flag(false)),
            ("bytemode", Value::Flag(false)),
            ("dq_rate_estimator", Value::Flag(false)),
        ],
        ..Grammar::NONE
    }],
    simulated: true,
    linux: Some(Linux {
        // TCA_FQ_PIE_*.
        options: Options::Packed(&[
            packed(1, |fields| fields.count("limit")),
            packed(2, |fields| fields.count("flows")),
            packed(3, |fields| whole_microseconds(fields, "target_ns")),
            packed(4, |fields| whole_microseconds(fields, "tupdate_ns")),
            packed(5, |fields| fields.count("alpha")),
            packed(6, |fields| fields.count("beta")),
            packed(7, |fields| fields.count("quantum")),
            packed(8, |fields| fields.count("memory_limit")),
            packed(9, |fields| fields.count("ecn_prob")),
            packed(10, |fields| flag(fields, "ecn")),
            packed(11, |fields| flag(fields, "bytemode")),
            packed(12, |fields| flag(fields, "dq_rate_estimator")),
        ]),
        // TCA_FQ_PIE_LIMIT.
        read: &[("limit", Place::Attribute(1))],
        // struct tc_fq_pie_xstats.
        xstats: Xstats {
            skipped: 0,
            names: &[
                "packets_in",
                "dropped",
                "overlimit",
                "overmemory",
                "marked",
                "new_flow_count",
                "new_flows_len",
                "old_flows_len",
                "memory_usage",
            ],
        },
        drops: Why::Counted(&[
            // The kernel counts a drop at the limit as both. Packets above memory_limit are counted
            // but not dropped.
            CauseCounter { cause: Cause::Early, plus: &["dropped"], minus: &["overlimit"] },
            counter(Cause::Limit, &["overlimit"]),
        ]),
        marks: Why::Counted(&[counter(Cause::Early, &["marked"])]),
        state: &[state("flows", &["new_flows_len", "old_flows_len"], &[], 1.0)],
        change: Change::Named(&["flows"]),
        ..Linux::PLAIN
    }),
    least: "fq_pie",
    ..Record::NONE
};
