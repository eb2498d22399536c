//! A session as a file that `sojourn import` makes a Run of: the plan, the facts and the tables that
//! `live` hands over, as JSON. A real number that is none is null.

use std::collections::BTreeMap;
use std::path::Path;

use live::Failure;
use live::session::facts::Facts;
use live::session::{Measured, Plan};
use serde::Serialize;
use tables::Column;

/// How such a file begins.
const FORMAT: &str = "sojourn-probe 1";

#[derive(Serialize)]
struct Kept<'a> {
    format: &'static str,
    /// Without the secret.
    plan: &'a Plan,
    facts: &'a Facts,
    tables: BTreeMap<&'static str, BTreeMap<&'static str, Values<'a>>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Values<'a> {
    U8(&'a [u8]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    I64(&'a [i64]),
    F64(&'a [f64]),
}

impl Values<'_> {
    fn of(column: &Column) -> Values<'_> {
        match column {
            Column::U8(values) => Values::U8(values),
            Column::U32(values) => Values::U32(values),
            Column::U64(values) => Values::U64(values),
            Column::I64(values) => Values::I64(values),
            Column::F64(values) => Values::F64(values),
        }
    }
}

/// Writes it.
pub fn write(file: &Path, plan: &Plan, measured: &Measured) -> Result<(), Failure> {
    let tables = measured.tables.iter().map(|table| {
        let columns = table.columns.iter().map(|(name, column)| (*name, Values::of(column)));
        (table.name, columns.collect())
    });
    let kept = Kept { format: FORMAT, plan, facts: &measured.facts, tables: tables.collect() };
    let text = serde_json::to_string(&kept).expect("a session is plain values");
    std::fs::write(file, text)
        .map_err(|error| Failure::new(format!("can't write {}: {error}", file.display()), ""))
}
