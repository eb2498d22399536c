//! hhf: tc-hhf(8).

use super::{LIMIT, microseconds};
use crate::grammar::{Grammar, Read, word};
use crate::linux::{Linux, Place};
use crate::numbers::U32;
use crate::record::Record;

pub(super) static HHF: Record = Record {
    kind: "hhf",
    grammars: &[Grammar {
        kind: "hhf",
        words: &[
            LIMIT,
            word("quantum", "BYTES", Read::Count(1, U32)),
            word("hh_limit", "NUMBER", Read::Count(1, U32)),
            microseconds("reset_timeout", "reset_timeout_ns"),
            word("admit_bytes", "BYTES", Read::Size),
            microseconds("evict_timeout", "evict_timeout_ns"),
            word("non_hh_weight", "NUMBER", Read::Count(1, U32)),
        ],
        ..Grammar::NONE
    }],
    linux: Some(Linux {
        // TCA_HHF_BACKLOG_LIMIT.
        read: &[("limit", Place::Attribute(1))],
        ..Linux::PLAIN
    }),
    least: "hhf",
    usual_limit: Some(1_000),
    nearest: Some("fq_codel"),
    ..Record::NONE
};
