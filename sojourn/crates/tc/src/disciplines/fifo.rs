//! pfifo, bfifo, pfifo_head_drop: tc-pfifo(8).
//!
//! tc's default limit is the device's txqueuelen, 1000 packets on every Ethernet device; for bfifo
//! it is that times the MTU.

use crate::error::TcError;
use crate::grammar::{Grammar, Read, Value, time, word};
use crate::linux::{Change, End, Linux, Options};
use crate::record::{Counts, Record};

const IN_LINUX: Linux =
    Linux { options: Options::Limit, in_order: true, change: Change::Whole, ..Linux::PLAIN };

pub(super) static PFIFO: Record = Record {
    kind: "pfifo",
    grammars: &[Grammar {
        kind: "pfifo",
        words: &[word("limit", "PACKETS", Read::Size)],
        defaults: &[("limit", Value::Count(1000))],
        always: &["limit"],
        ..Grammar::NONE
    }],
    simulated: true,
    linux: Some(IN_LINUX),
    least: "pfifo",
    changes: &["limit"],
    ..Record::NONE
};

pub(super) static BFIFO: Record = Record {
    kind: "bfifo",
    grammars: &[
        Grammar {
            kind: "bfifo",
            words: &[word("limit", "BYTES", Read::Size)],
            defaults: &[("limit", Value::Count(1000 * 1514))],
            always: &["limit"],
            ..Grammar::NONE
        },
        Grammar {
            kind: "bfifo",
            variant: Some("time"),
            words: &[time("limit", "limit_ns", Read::PositiveTime)],
            defaults: &[("variant", Value::word("time")), ("limit_ns", Value::Count(SECOND))],
            always: &["limit_ns"],
            ..Grammar::NONE
        },
    ],
    without_a_rate: |fields| {
        fields.has("limit_ns").then(|| {
            TcError::new(
                "bfifo's limit in time needs a rate, and this link has none",
                "give the link a rate, or write limit in bytes without variant time",
            )
        })
    },
    simulated: true,
    linux: Some(IN_LINUX),
    least: "bfifo",
    changes: &["limit"],
    counts: Counts::Bytes,
    ..Record::NONE
};

/// The default of a limit in time, ns.
const SECOND: u64 = 1_000_000_000;

pub(super) static PFIFO_HEAD_DROP: Record = Record {
    kind: "pfifo_head_drop",
    grammars: &[Grammar {
        kind: "pfifo_head_drop",
        words: &[word("limit", "PACKETS", Read::Size)],
        defaults: &[("limit", Value::Count(1000))],
        always: &["limit"],
        ..Grammar::NONE
    }],
    simulated: true,
    linux: Some(Linux { end: End::Head, ..IN_LINUX }),
    least: "pfifo_head_drop",
    changes: &["limit"],
    ..Record::NONE
};
