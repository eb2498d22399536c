//! fq_pie: tc-fq_pie(8).

use super::{LIMIT, pie};
use crate::grammar::{Grammar, Read, word};
use crate::linux::{Linux, Place, Tell, Why, Xstats, state, tell};
use crate::numbers::U32;
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
            word("quantum", "BYTES", Read::Count(1, U32)),
            word("memory_limit", "BYTES", Read::Size),
            word("ecn_prob", "NUMBER", Read::Count(0, 100)),
        ],
        flags: pie::FLAGS,
        ..Grammar::NONE
    }],
    linux: Some(Linux {
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
            tell(Cause::Early, &["dropped"]),
            Tell { cause: Cause::Limit, plus: &["overlimit"], minus: &["overmemory"] },
            tell(Cause::Overmemory, &["overmemory"]),
        ]),
        marks: Why::Counted(&[tell(Cause::Early, &["marked"])]),
        state: &[state("flows", &["new_flows_len", "old_flows_len"], &[], 1.0)],
        ..Linux::PLAIN
    }),
    least: "fq_pie",
    usual_limit: Some(10_240),
    nearest: Some("fq_codel"),
    ..Record::NONE
};
