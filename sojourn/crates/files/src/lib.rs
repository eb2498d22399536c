//! Writes tables as Parquet, in memory: the files of a Run folder.
//!
//! A column is Int64, Float64 or String, whatever its width in an engine. Any value may be null;
//! `tables` declares how an engine encodes a missing value. Names of links, flows and causes are
//! written out, as a dictionary. The same table gives the same bytes.
//!
//! A run of ten seconds has eleven tables of some hundred rows and a hundred columns, so the cost
//! of a column matters rather than the cost of a row. Whole numbers are delta-encoded (times grow
//! evenly, most counters little), which shrinks short columns as much as zstd does. A zstd context,
//! one for each column, costs more than the encoding of a thousand values. So only columns of more
//! rows than `WORTH_COMPRESSING` are compressed.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterPropertiesPtr,
};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};
use tables::{Column, Kind, NONE, Schema, Table};

/// A column of this many rows or more is compressed: zstd then saves more than it costs.
const WORTH_COMPRESSING: usize = 512;
/// Rows of a row group: the part that a reader reads at once, with a thread for each column.
const GROUP_ROWS: usize = 1 << 18;

/// The names for the numbers in columns of links, flows and causes.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Names {
    pub links: Vec<String>,
    pub flows: Vec<String>,
    pub causes: Vec<String>,
}

/// Why a table is not a declared one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit(pub String);

impl From<ParquetError> for Unfit {
    fn from(error: ParquetError) -> Unfit {
        Unfit(error.to_string())
    }
}

/// Encodes a table as the content of a file.
///
/// # Errors
///
/// Fails if a number has no name, or does not fit a column of 64 bits with a sign.
pub fn parquet(table: &Table, names: &Names) -> Result<Vec<u8>, Unfit> {
    let schema = schema_of(table.name)?;
    let columns = in_order(table, schema)?;
    let rows = columns.first().map_or(0, |column| column.len());
    let mut writer =
        SerializedFileWriter::new(Vec::new(), fields(schema)?, properties(schema, rows)?)?;
    for from in (0..rows).step_by(GROUP_ROWS) {
        let rows = from..rows.min(from + GROUP_ROWS);
        let mut group = writer.next_row_group()?;
        for (declared, column) in schema.columns.iter().zip(&columns) {
            let listed = match declared.kind {
                Kind::Integer => {
                    write_integers(&mut group, column, rows.clone())?;
                    continue;
                }
                Kind::Real => {
                    write_reals(&mut group, column, rows.clone())?;
                    continue;
                }
                Kind::Link => &names.links,
                Kind::Flow => &names.flows,
                Kind::Cause => &names.causes,
            };
            write_names(&mut group, column, rows.clone(), listed)
                .map_err(|Unfit(why)| Unfit(format!("{}.{}: {why}", schema.name, declared.name)))?;
        }
        group.close()?;
    }
    Ok(writer.into_inner()?)
}

fn schema_of(name: &str) -> Result<&'static Schema, Unfit> {
    let schema = tables::ALL.iter().find(|schema| schema.name == name);
    schema.ok_or_else(|| Unfit(format!("there is no table {name:?}")))
}

/// The columns in the order of the declaration, all equally long.
fn in_order<'a>(table: &'a Table, schema: &Schema) -> Result<Vec<&'a Column>, Unfit> {
    let columns = schema.columns.iter().map(|declared| {
        let missing = || Unfit(format!("the table {:?} lacks {}", table.name, declared.name));
        table.column(declared.name).ok_or_else(missing)
    });
    let columns = columns.collect::<Result<Vec<_>, Unfit>>()?;
    if table.columns.len() != columns.len() {
        return Err(Unfit(format!("the table {:?} has columns that are not declared", table.name)));
    }
    if columns.windows(2).any(|two| two[0].len() != two[1].len()) {
        return Err(Unfit(format!("the columns of {:?} are not equally long", table.name)));
    }
    Ok(columns)
}

fn fields(schema: &Schema) -> Result<Arc<Type>, Unfit> {
    let field = |column: &tables::ColumnSchema| {
        let (physical, logical) = match column.kind {
            Kind::Integer => (Physical::INT64, None),
            Kind::Real => (Physical::DOUBLE, None),
            Kind::Link | Kind::Flow | Kind::Cause => {
                (Physical::BYTE_ARRAY, Some(LogicalType::String))
            }
        };
        Type::primitive_type_builder(column.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    };
    let fields = schema.columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(Type::group_type_builder(schema.name).with_fields(fields).build()?))
}

fn properties(schema: &Schema, rows: usize) -> Result<WriterPropertiesPtr, Unfit> {
    let compression = if rows < WORTH_COMPRESSING {
        Compression::UNCOMPRESSED
    } else {
        Compression::ZSTD(ZstdLevel::try_new(3)?)
    };
    let common = WriterProperties::builder()
        .set_created_by("sojourn".to_owned())
        .set_compression(compression)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_dictionary_enabled(false);
    let add = |all: WriterPropertiesBuilder, column: &tables::ColumnSchema| {
        let path = ColumnPath::from(column.name);
        match column.kind {
            Kind::Integer => all.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            Kind::Real => all.set_column_encoding(path, Encoding::PLAIN),
            Kind::Link | Kind::Flow | Kind::Cause => all.set_column_dictionary_enabled(path, true),
        }
    };
    Ok(Arc::new(schema.columns.iter().fold(common, add).build()))
}

type Group<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;
type Rows = std::ops::Range<usize>;

/// The values that are present, and for each row whether there is one, as Parquet's levels.
fn present<T>(cells: impl ExactSizeIterator<Item = Option<T>>) -> (Vec<T>, Vec<i16>) {
    let mut values = Vec::with_capacity(cells.len());
    let levels = cells.map(|cell| cell.map(|value| values.push(value)).is_some().into());
    let levels = levels.collect();
    (values, levels)
}

macro_rules! write {
    ($group:expr, $kind:ty, $cells:expr) => {{
        let (values, levels) = present($cells);
        let mut column = $group.next_column()?.expect("a column for each that is declared");
        column.typed::<$kind>().write_batch(&values, Some(&levels), None)?;
        column.close()?;
    }};
}

fn write_integers(group: &mut Group<'_>, column: &Column, rows: Rows) -> Result<(), Unfit> {
    match column {
        Column::U8(all) => write!(group, Int64Type, all[rows].iter().map(|&v| Some(v.into()))),
        Column::U32(all) => write!(group, Int64Type, all[rows].iter().map(|&v| Some(v.into()))),
        Column::U64(all) => {
            if let Some(beyond) = all[rows.clone()].iter().find(|&&v| i64::try_from(v).is_err()) {
                return Err(Unfit(format!("{beyond} is beyond 2^63")));
            }
            write!(group, Int64Type, all[rows].iter().map(|&v| Some(v as i64)));
        }
        Column::I64(all) => {
            write!(group, Int64Type, all[rows].iter().map(|&v| (v != NONE).then_some(v)));
        }
        Column::F64(all) => {
            let cells = all[rows].iter().map(|&v| (!v.is_nan()).then_some(v as i64));
            write!(group, Int64Type, cells);
        }
    }
    Ok(())
}

fn write_reals(group: &mut Group<'_>, column: &Column, rows: Rows) -> Result<(), Unfit> {
    match column {
        Column::U8(all) => write!(group, DoubleType, all[rows].iter().map(|&v| Some(v.into()))),
        Column::U32(all) => write!(group, DoubleType, all[rows].iter().map(|&v| Some(v.into()))),
        Column::U64(all) => write!(group, DoubleType, all[rows].iter().map(|&v| Some(v as f64))),
        Column::I64(all) => {
            write!(group, DoubleType, all[rows].iter().map(|&v| (v != NONE).then_some(v as f64)));
        }
        Column::F64(all) => {
            write!(group, DoubleType, all[rows].iter().map(|&v| (!v.is_nan()).then_some(v)));
        }
    }
    Ok(())
}

fn write_names(
    group: &mut Group<'_>,
    column: &Column,
    rows: Rows,
    names: &[String],
) -> Result<(), Unfit> {
    let names: Vec<ByteArray> = names.iter().map(|name| name.as_str().into()).collect();
    let named = |number: Option<usize>, shown: &dyn std::fmt::Display| {
        let name = number.and_then(|number| names.get(number)).cloned();
        name.ok_or_else(|| {
            Unfit(format!("{shown} is not the number of one of {} names", names.len()))
        })
    };
    let encoded: Result<Vec<ByteArray>, Unfit> = match column {
        Column::U8(all) => all[rows].iter().map(|&v| named(Some(v.into()), &v)).collect(),
        Column::U32(all) => all[rows].iter().map(|&v| named(v.try_into().ok(), &v)).collect(),
        Column::U64(all) => all[rows].iter().map(|&v| named(v.try_into().ok(), &v)).collect(),
        Column::I64(all) => all[rows].iter().map(|&v| named(v.try_into().ok(), &v)).collect(),
        Column::F64(_) => Err(Unfit("a name's number is whole".to_owned())),
    };
    write!(group, ByteArrayType, encoded?.into_iter().map(Some));
    Ok(())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use tables::{CauseId, FlowId, LinkId, drops, probe, transfers};

    use super::*;

    fn names() -> Names {
        let named = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Names {
            links: named(&["up", "down"]),
            flows: named(&["bulk", "ping"]),
            causes: named(&["limit", "target"]),
        }
    }

    fn read(content: Vec<u8>) -> Vec<Vec<Field>> {
        let reader = SerializedFileReader::new(Bytes::from(content)).expect("it is Parquet");
        let rows = reader.get_row_iter(None).expect("it has rows");
        rows.map(|row| {
            let row = row.expect("it can be read");
            row.get_column_iter().map(|(_, field)| field.clone()).collect()
        })
        .collect()
    }

    fn requests(count: u64) -> Table {
        let row = |seq| probe::Row {
            t_ns: seq * 20_000_000,
            probe: FlowId(1),
            seq,
            rtt_ns: (seq % 3 != 0).then_some(30_000_000 + seq),
            forward_ns: None,
        };
        (0..count).map(row).collect::<probe::Columns>().into_table()
    }

    #[test]
    fn missing_values_become_null_and_others_are_unchanged() {
        for count in [0, 1, 7, 2000] {
            let rows = read(parquet(&requests(count), &names()).expect("as declared"));
            assert_eq!(rows.len() as u64, count);
            for (seq, row) in (0..count as i64).zip(rows) {
                let rtt = if seq % 3 == 0 { Field::Null } else { Field::Long(30_000_000 + seq) };
                let (t, seq) = (Field::Long(seq * 20_000_000), Field::Long(seq));
                assert_eq!(row, [t, Field::Str("ping".into()), seq, rtt, Field::Null]);
            }
        }
    }

    #[test]
    fn the_same_table_gives_the_same_bytes() {
        let once = || parquet(&requests(1000), &names());
        assert_eq!(once(), once());
    }

    #[test]
    fn a_table_longer_than_a_row_group_is_whole() {
        let count = 2 * GROUP_ROWS as u64 + 3;
        let content = parquet(&requests(count), &names()).expect("as declared");
        let reader = SerializedFileReader::new(Bytes::from(content)).expect("it is Parquet");
        assert_eq!(reader.num_row_groups(), 3);
        assert_eq!(reader.metadata().file_metadata().num_rows() as u64, count);
    }

    #[test]
    fn numbers_become_names_and_an_unknown_number_is_refused() {
        let row = |link, cause| drops::Row {
            t_ns: 5,
            link: LinkId(link),
            flow: FlowId(0),
            cause: CauseId(cause),
            marked: 1,
            bytes: 1500,
        };
        let table = |row| drops::Columns::from_iter([row]).into_table();
        let rows = read(parquet(&table(row(1, 1)), &names()).expect("as declared"));
        let named = ["down", "bulk", "target"].map(|name| Field::Str(name.into()));
        assert_eq!(rows[0][1..4], named);
        for (link, cause) in [(2, 0), (0, 2)] {
            assert!(parquet(&table(row(link, cause)), &names()).is_err(), "{link} {cause}");
        }
    }

    #[test]
    fn columns_that_are_not_as_declared_are_refused() {
        let empty = transfers::Columns::default().into_table();
        assert!(parquet(&empty, &names()).is_ok());
        let mut short = empty.clone();
        short.columns.pop();
        let mut uneven = empty.clone();
        uneven.columns[0].1 = Column::I64(vec![1]);
        let mut strange = empty;
        strange.columns.push(("surprise", Column::I64(vec![])));
        for table in [short, uneven, strange] {
            assert!(parquet(&table, &names()).is_err(), "{table:?}");
        }
    }

    #[test]
    fn a_column_is_the_same_in_any_width() {
        let (one, two, three) = (vec![3_u8, 7], vec![3_u64, 7], vec![3_i64, 7]);
        let contents = [Column::U8(one), Column::U64(two), Column::I64(three)].map(|column| {
            let rows = requests(2);
            let columns = rows.columns.into_iter();
            let columns = columns
                .map(|(name, each)| (name, if name == "seq" { column.clone() } else { each }));
            parquet(&Table { name: "probe", columns: columns.collect() }, &names())
        });
        assert!(contents[0].is_ok());
        assert!(contents.iter().all(|each| *each == contents[0]));
    }
}
