//! pfifo, bfifo, pfifo_head_drop: tc-pfifo(8).
//!
//! tc's default limit is the device's txqueuelen, 1000 packets on every Ethernet device; for bfifo
//! it is that times the MTU.

use crate::grammar::{Grammar, Read, Value, word};
use crate::linux::{End, Linux, Options};
use crate::record::{Counts, Record};

const IN_LINUX: Linux = Linux { options: Options::Limit, in_order: true, ..Linux::PLAIN };

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
    ..Record::NONE
};

pub(super) static BFIFO: Record = Record {
    kind: "bfifo",
    grammars: &[Grammar {
        kind: "bfifo",
        words: &[word("limit", "BYTES", Read::Size)],
        defaults: &[("limit", Value::Count(1000 * 1514))],
        always: &["limit"],
        ..Grammar::NONE
    }],
    simulated: true,
    linux: Some(IN_LINUX),
    least: "bfifo",
    counts: Counts::Bytes,
    ..Record::NONE
};

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
    ..Record::NONE
};
