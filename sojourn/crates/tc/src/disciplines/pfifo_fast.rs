//! pfifo_fast: tc-pfifo_fast(8). tc has no words for it: the limit is the device's txqueuelen,
//! which ip-link(8) sets.

use super::LIMIT;
use crate::grammar::{Grammar, Value};
use crate::linux::{Change, Linux, PINNED};
use crate::record::Record;

pub(super) static PFIFO_FAST: Record = Record {
    kind: "pfifo_fast",
    grammars: &[
        Grammar {
            variant: Some("linux"),
            aliases: &[PINNED],
            defaults: &[("variant", Value::word("linux")), ("limit", Value::Count(1000))],
            ..WORDS
        },
        Grammar {
            variant: Some("shared"),
            defaults: &[("variant", Value::word("shared")), ("limit", Value::Count(1000))],
            ..WORDS
        },
    ],
    simulated: true,
    linux: Some(Linux { limit_is_device_s: true, change: Change::Refused, ..Linux::PLAIN }),
    least: "pfifo_fast",
    ..Record::NONE
};

const WORDS: Grammar =
    Grammar { kind: "pfifo_fast", words: &[LIMIT], always: &["limit"], ..Grammar::NONE };
