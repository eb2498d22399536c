//! ets: tc-ets(8).

use super::{MOST_BANDS, refused};
use crate::error::TcError;
use crate::grammar::{Fields, Grammar, Read, word};
use crate::linux::Linux;
use crate::numbers::U32;
use crate::record::{Counts, Record};

pub(super) static ETS: Record = Record {
    kind: "ets",
    grammars: &[Grammar {
        kind: "ets",
        words: &[
            word("bands", "NUMBER", Read::Count(1, MOST_BANDS)),
            word("strict", "NUMBER", Read::Count(0, MOST_BANDS)),
            word("quanta", "BYTES...", Read::Counts(U32)),
            word("priomap", "BAND...", Read::Counts(MOST_BANDS - 1)),
        ],
        complete,
        ..Grammar::NONE
    }],
    linux: Some(Linux::PLAIN),
    least: "ets bands 3",
    counts: Counts::PacketsOfABand,
    usual_limit: Some(1_000),
    nearest: Some("pfifo_fast"),
    ..Record::NONE
};

fn complete(fields: &mut Fields, _given: &[&'static str]) -> Result<(), TcError> {
    if ["bands", "strict", "quanta"].into_iter().any(|word| fields.get(word).is_said()) {
        return Ok(());
    }
    refused(
        "ets: it is not said how many bands there are".to_owned(),
        "write ets bands 3, ets strict 3, or quanta in bytes for each band",
    )
}
