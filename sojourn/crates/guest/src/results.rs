//! The results: one tar archive of an index and columns.
//!
//! `index.json` is the last file. It lists the tables, their rows, each column's name and type, and
//! everything that can't be a column (names, errors, packets that the capture lost). The file
//! `TABLE/NAME` contains a column's values, little-endian. The host does all interpretation.
//!
//! The archive is written from front to back, so the output may be a pipe or a port. The format is
//! POSIX ustar.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value, json};
use tables::Column;

/// A column's values.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Integers; -1: no value.
    I64(Vec<i64>),
    /// Flows, link indices, sizes; -1: no value.
    I32(Vec<i32>),
    /// Bytes.
    U8(Vec<u8>),
    /// Sums that may exceed 64 bits; exact up to 2^53.
    F64(Vec<f64>),
}

impl Values {
    fn kind(&self) -> &'static str {
        match self {
            Values::I64(_) => "i64",
            Values::I32(_) => "i32",
            Values::U8(_) => "u8",
            Values::F64(_) => "f64",
        }
    }

    fn len(&self) -> usize {
        match self {
            Values::I64(v) => v.len(),
            Values::I32(v) => v.len(),
            Values::U8(v) => v.len(),
            Values::F64(v) => v.len(),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Values::I64(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Values::I32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Values::U8(v) => v.clone(),
            Values::F64(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        }
    }
}

/// Declares tables of integers that grow row by row. Each is a module with its `Row`, and with
/// `Rows`, to which rows are pushed by column name.
macro_rules! rows {
    ($($(#[doc = $about:literal])+ $table:ident { $($column:ident,)+ })+) => {
        $(
            $(#[doc = $about])+
            pub mod $table {
                /// One row.
                #[allow(missing_docs)]
                pub struct Row {
                    $(pub $column: i64,)+
                }

                /// All rows, by column.
                #[derive(Default)]
                pub struct Rows {
                    $($column: Vec<i64>,)+
                }

                impl Rows {
                    /// Adds a row.
                    pub fn push(&mut self, row: Row) {
                        $(self.$column.push(row.$column);)+
                    }

                    /// Returns the columns with their names.
                    pub fn columns(self) -> Vec<(String, $crate::results::Values)> {
                        vec![$((
                            stringify!($column).to_owned(),
                            $crate::results::Values::I64(self.$column),
                        ),)+]
                    }
                }
            }
        )+
    };
}
pub(crate) use rows;

/// An archive being written.
pub struct Archive<W: Write> {
    out: W,
    prefix: &'static str,
    tables: BTreeMap<String, Value>,
}

/// The results of a run inside another archive: files and index, without the archive's end.
pub struct Part {
    bytes: Vec<u8>,
    index: serde_json::Map<String, Value>,
}

impl Part {
    /// Collects the files that `write` adds to an archive, with `prefix` before each name, and the
    /// index that `write` returns.
    pub fn new(
        prefix: &'static str,
        write: impl FnOnce(&mut Archive<Vec<u8>>) -> io::Result<serde_json::Map<String, Value>>,
    ) -> io::Result<Part> {
        let mut archive = Archive { out: Vec::new(), prefix, tables: BTreeMap::new() };
        let mut index = write(&mut archive)?;
        index.insert("tables".into(), json!(archive.tables));
        Ok(Part { bytes: archive.out, index })
    }
}

/// Size of tar's blocks.
const BLOCK: usize = 512;

impl<W: Write> Archive<W> {
    /// Creates an empty archive.
    pub fn new(out: W) -> Archive<W> {
        Archive { out, prefix: "", tables: BTreeMap::new() }
    }

    /// Adds the files of a part and returns its index.
    pub fn part(&mut self, part: Part) -> io::Result<serde_json::Map<String, Value>> {
        self.out.write_all(&part.bytes)?;
        Ok(part.index)
    }

    /// Adds a table. All columns must have the same length.
    pub fn table(&mut self, name: &str, columns: Vec<(String, Values)>) -> io::Result<()> {
        let rows = columns.first().map_or(0, |(_, values)| values.len());
        let mut listed = Vec::new();
        for (column, values) in columns {
            assert_eq!(
                values.len(),
                rows,
                "column {column} of table {name} is as long as the others"
            );
            listed.push(json!({"name": column, "type": values.kind()}));
            self.file(&format!("{name}/{column}"), &values.bytes())?;
        }
        self.tables.insert(name.to_string(), json!({"rows": rows, "columns": listed}));
        Ok(())
    }

    /// Adds a table of the schema that all engines share.
    pub fn declared(&mut self, table: tables::Table) -> io::Result<()> {
        let of = |column| match column {
            Column::U8(values) => Values::U8(values),
            Column::U32(values) => Values::I64(values.into_iter().map(i64::from).collect()),
            Column::U64(values) => Values::I64(values.into_iter().map(|v| v as i64).collect()),
            Column::I64(values) => Values::I64(values),
            Column::F64(values) => Values::F64(values),
        };
        let columns = table.columns.into_iter().map(|(name, values)| (name.into(), of(values)));
        self.table(table.name, columns.collect())
    }

    /// Adds a file.
    pub fn file(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(&header(&format!("{}{name}", self.prefix), bytes.len())?)?;
        self.out.write_all(bytes)?;
        let rest = bytes.len().next_multiple_of(BLOCK) - bytes.len();
        self.out.write_all(&[0; BLOCK][..rest])
    }

    /// Adds the index, including `tables`, and ends the archive.
    pub fn finish(mut self, mut index: serde_json::Map<String, Value>) -> io::Result<()> {
        index.insert("tables".into(), json!(self.tables));
        let text = serde_json::to_vec_pretty(&index)?;
        self.file("index.json", &text)?;
        self.out.write_all(&[0; 2 * BLOCK])?;
        self.out.flush()
    }
}

/// Returns the header of a file: ustar, owner 0, time 0, so equal results give equal bytes.
fn header(name: &str, size: usize) -> io::Result<[u8; BLOCK]> {
    let refuse = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, format!("{name}: {why}"));
    if name.len() > 100 {
        return Err(refuse("a name in the archive has at most 100 bytes"));
    }
    if size >= 1 << 33 {
        return Err(refuse("a file in the archive has less than 8 GiB"));
    }
    let mut bytes = [0; BLOCK];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    let mut put =
        |at: usize, text: &str| bytes[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{size:011o}\0"));
    put(136, "00000000000\0");
    // The checksum field counts as eight blanks.
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = bytes.iter().map(|&b| u32::from(b)).sum();
    bytes[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    rows! {
        /// Two columns.
        pairs {
            t_ns,
            flow,
        }
        /// One.
        times {
            t_ns,
        }
    }

    #[test]
    fn the_archive_is_a_tar() {
        let mut bytes = Vec::new();
        let mut archive = Archive::new(&mut bytes);
        let mut rows = pairs::Rows::default();
        rows.push(pairs::Row { t_ns: 5, flow: 0 });
        rows.push(pairs::Row { t_ns: 7, flow: -1 });
        archive.table("flow", rows.columns()).unwrap();
        archive.table("packets", vec![("ds".into(), Values::U8(vec![3; 600]))]).unwrap();
        archive.finish(serde_json::Map::new()).unwrap();
        assert_eq!(bytes.len() % BLOCK, 0);
        // Headers at 0, 1024, 2048 (each column 16 bytes in a block), then 600 bytes in two blocks.
        assert_eq!(&bytes[..9], b"flow/t_ns");
        assert_eq!(bytes[BLOCK..BLOCK + 8], 5i64.to_le_bytes());
        assert_eq!(bytes[3 * BLOCK + 8..3 * BLOCK + 16], (-1i64).to_le_bytes());
        assert_eq!(&bytes[4 * BLOCK..4 * BLOCK + 10], b"packets/ds");
        assert_eq!(&bytes[7 * BLOCK..7 * BLOCK + 10], b"index.json");
        let sum: u32 = (0..BLOCK)
            .map(|i| if (148..156).contains(&i) { 32 } else { u32::from(bytes[i]) })
            .sum();
        assert_eq!(std::str::from_utf8(&bytes[148..154]).unwrap(), format!("{sum:06o}"));
        let index: Value =
            serde_json::from_slice(bytes[8 * BLOCK..].split(|&b| b == 0).next().unwrap()).unwrap();
        assert_eq!(index["tables"]["packets"]["rows"], 600);
        assert_eq!(index["tables"]["flow"]["columns"][1]["name"], "flow");
    }

    #[test]
    fn a_part_has_its_files_in_the_archive_and_its_tables_to_itself() {
        let rows = |value: i64| {
            let mut rows = times::Rows::default();
            rows.push(times::Row { t_ns: value });
            rows.columns()
        };
        let part = Part::new("check/", |archive| {
            archive.table("flow", rows(5))?;
            Ok(serde_json::Map::new())
        })
        .unwrap();
        let mut bytes = Vec::new();
        let mut archive = Archive::new(&mut bytes);
        archive.table("flow", rows(7)).unwrap();
        let index = archive.part(part).unwrap();
        assert_eq!(index["tables"]["flow"]["rows"], 1);
        archive
            .finish(serde_json::Map::from_iter([("check".to_string(), Value::from(index))]))
            .unwrap();
        assert_eq!(&bytes[..9], b"flow/t_ns");
        assert_eq!(&bytes[2 * BLOCK..2 * BLOCK + 15], b"check/flow/t_ns");
        assert_eq!(bytes[3 * BLOCK..3 * BLOCK + 8], 5i64.to_le_bytes());
        assert_eq!(&bytes[4 * BLOCK..4 * BLOCK + 10], b"index.json");
    }

    #[test]
    fn entries_that_tar_can_not_hold_are_refused() {
        assert!(header(&"x".repeat(101), 1).is_err());
        assert!(header("x", 1 << 33).is_err());
    }
}
