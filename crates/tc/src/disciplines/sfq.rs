//! sfq: tc-sfq(8).

use super::LIMIT;
use crate::grammar::{Grammar, Read, on, word};
use crate::linux::{Linux, Place};
use crate::numbers::U32;
use crate::record::Record;

pub(super) static SFQ: Record = Record {
    kind: "sfq",
    grammars: &[Grammar {
        kind: "sfq",
        words: &[
            LIMIT,
            word("perturb", "SECONDS", Read::Count(0, (1 << 31) - 1)),
            word("quantum", "BYTES", Read::Size),
            word("divisor", "NUMBER", Read::Count(1, 65536)),
            word("flows", "NUMBER", Read::Count(1, 65536)),
            word("depth", "PACKETS", Read::Count(1, U32)),
            word("redflowlimit", "BYTES", Read::Size),
            word("min", "BYTES", Read::Size),
            word("max", "BYTES", Read::Size),
            word("avpkt", "BYTES", Read::Size),
            word("burst", "PACKETS", Read::Count(1, U32)),
            word("probability", "NUMBER", Read::Above(0.0, 1.0)),
        ],
        flags: &[on("headdrop", "headdrop"), on("ecn", "ecn"), on("harddrop", "harddrop")],
        ..Grammar::NONE
    }],
    linux: Some(Linux {
        // struct tc_sfq_qopt: quantum, perturb_period, limit.
        read: &[("limit", Place::Word(2))],
        ..Linux::PLAIN
    }),
    least: "sfq",
    usual_limit: Some(127),
    nearest: Some("fq_codel"),
    ..Record::NONE
};
