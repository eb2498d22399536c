//! Encodes tables as bytes: a line of JSON with the place of each column, then the columns. A
//! column is as in a processor's memory, low byte first, and starts at a multiple of eight bytes
//! after the line.

use serde_json::{Value, json};
use tables::{Column, Table};

/// The type of the column's values, by its name in the page, and their bytes.
fn words(column: &Column) -> (&'static str, Vec<u8>) {
    fn each<T: Copy, const N: usize>(values: &[T], bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
        values.iter().flat_map(|value| bytes(*value)).collect()
    }
    match column {
        Column::U8(values) => ("u8", values.clone()),
        Column::U32(values) => ("u32", each(values, u32::to_le_bytes)),
        Column::U64(values) => ("u64", each(values, u64::to_le_bytes)),
        Column::I64(values) => ("i64", each(values, i64::to_le_bytes)),
        Column::F64(values) => ("f64", each(values, f64::to_le_bytes)),
    }
}

/// Encodes all tables; the line also contains `more`.
pub fn bytes(tables: &[Table], mut more: Value) -> Vec<u8> {
    let mut body = Vec::new();
    let mut places = serde_json::Map::new();
    for table in tables {
        let mut columns = serde_json::Map::new();
        for (name, column) in &table.columns {
            body.resize(body.len().next_multiple_of(8), 0);
            let (kind, values) = words(column);
            columns.insert((*name).into(), json!([kind, body.len(), column.len()]));
            body.extend(values);
        }
        places.insert(table.name.into(), Value::Object(columns));
    }
    more["tables"] = Value::Object(places);
    let mut line = more.to_string().into_bytes();
    // The line is padded so that the columns begin at a multiple of eight.
    line.resize((line.len() + 1).next_multiple_of(8) - 1, b' ');
    line.push(b'\n');
    line.extend(body);
    line
}
