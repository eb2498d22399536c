//! prio: tc-prio(8).

use super::MOST_BANDS;
use crate::grammar::{Grammar, Read, word};
use crate::linux::Linux;
use crate::record::{Counts, Record};

pub(super) static PRIO: Record = Record {
    kind: "prio",
    grammars: &[Grammar {
        kind: "prio",
        words: &[
            word("bands", "NUMBER", Read::Count(2, MOST_BANDS)),
            word("priomap", "BAND...", Read::Counts(MOST_BANDS - 1)),
        ],
        ..Grammar::NONE
    }],
    linux: Some(Linux::PLAIN),
    least: "prio",
    counts: Counts::PacketsOfABand,
    usual_limit: Some(1_000),
    nearest: Some("pfifo_fast"),
    ..Record::NONE
};
