//! sfb: tc-sfb(8).

use super::LIMIT;
use crate::grammar::{Grammar, Read, word};
use crate::linux::{Linux, Why, Xstats, state, tell};
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
            word("increment", "NUMBER", Read::Above(0.0, 1.0)),
            word("decrement", "NUMBER", Read::Above(0.0, 1.0)),
            word("penalty_rate", "PACKETS", Read::Count(0, U32)),
            word("penalty_burst", "PACKETS", Read::Count(0, U32)),
        ],
        ..Grammar::NONE
    }],
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
            tell(Cause::Early, &["earlydrop", "penaltydrop", "bucketdrop"]),
            tell(Cause::Limit, &["queuedrop", "childdrop"]),
        ]),
        marks: Why::Counted(&[tell(Cause::Early, &["marked"])]),
        // A probability of 16 bits.
        state: &[state("probability", &["avgprob"], &[], 65_535.0)],
        ..Linux::PLAIN
    }),
    least: "sfb",
    usual_limit: Some(1_000),
    nearest: Some("codel"),
    ..Record::NONE
};
