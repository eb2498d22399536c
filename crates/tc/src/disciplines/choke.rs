//! choke: tc-choke(8).

use super::{LIMIT, red};
use crate::grammar::{Grammar, Read, on, word};
use crate::linux::{Linux, Why, Xstats, tell};
use crate::numbers::U32;
use crate::record::Record;
use qdisc::Cause;

pub(super) static CHOKE: Record = Record {
    kind: "choke",
    grammars: &[Grammar {
        kind: "choke",
        words: &[
            LIMIT,
            word("bandwidth", "RATE", Read::Rate),
            word("min", "PACKETS", Read::Count(1, U32)),
            word("max", "PACKETS", Read::Count(1, U32)),
            word("avpkt", "BYTES", Read::Size),
            word("burst", "PACKETS", Read::Count(1, U32)),
            word("probability", "NUMBER", Read::Above(0.0, 1.0)),
        ],
        flags: &[on("ecn", "ecn")],
        required: &["limit", "bandwidth"],
        complete: red::complete_choke,
        ..Grammar::NONE
    }],
    linux: Some(Linux {
        // struct tc_choke_xstats.
        xstats: Xstats { skipped: 0, names: &["early", "pdrop", "other", "marked", "matched"] },
        in_order: true,
        drops: Why::Counted(&[
            tell(Cause::Early, &["early", "matched"]),
            tell(Cause::Limit, &["pdrop"]),
        ]),
        marks: Why::Counted(&[tell(Cause::Early, &["marked"])]),
        ..Linux::PLAIN
    }),
    least: "choke limit 1000 bandwidth 10mbit",
    nearest: Some("red"),
    ..Record::NONE
};
