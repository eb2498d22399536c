//! The tables of a Run, each declared once.
//!
//! `declared.rs` is the declaration: a table's name, its columns, their types, their meaning and
//! the meaning of null. From it the macro in `declare.rs` makes two things: a struct of columns,
//! which an engine fills row by row, and a `Schema` for readers, documentation and tests. No other
//! place lists columns.
//!
//! A row holds a value that may be missing as an `Option`. A `Column` has a number in its place:
//! `NONE` in a column of integers, NaN in a column of reals.

mod declare;
mod declared;
pub mod facts;
pub mod histogram;

pub use declared::*;
pub use histogram::{Batch, Histogram};

/// The missing value in a column of integers.
pub const NONE: i64 = -1;

/// A column's values.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Column {
    U8(Vec<u8>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F64(Vec<f64>),
}

impl Column {
    /// The number of values.
    pub fn len(&self) -> usize {
        match self {
            Column::U8(values) => values.len(),
            Column::U32(values) => values.len(),
            Column::U64(values) => values.len(),
            Column::I64(values) => values.len(),
            Column::F64(values) => values.len(),
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A table: its name, and its columns by name, equally long.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// `queue`, `flow`, ...
    pub name: &'static str,
    /// The columns with their names.
    pub columns: Vec<(&'static str, Column)>,
}

impl Table {
    /// The values of a column.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|(known, _)| *known == name).map(|(_, values)| values)
    }

    /// Removes a column and returns its values.
    fn take(&mut self, name: &str) -> Option<Column> {
        let at = self.columns.iter().position(|(known, _)| *known == name)?;
        Some(self.columns.swap_remove(at).1)
    }
}

/// The declaration of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    /// `queue`, `flow`, ...
    pub name: &'static str,
    /// The meaning of a row.
    pub about: &'static str,
    /// The columns in their order.
    pub columns: &'static [ColumnSchema],
}

/// The declaration of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSchema {
    /// The name, which ends with the unit, if there is one.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// The meaning of a value.
    pub meaning: &'static str,
    /// The meaning of a missing value; `None`: no value is ever missing.
    pub null: Option<&'static str>,
}

impl ColumnSchema {
    /// `ns`, `bytes`, `packets` or `bits`; empty for plain numbers and names.
    pub fn unit(&self) -> &'static str {
        let ending = self.name.rsplit('_').next().unwrap_or(self.name);
        ["ns", "bytes", "packets", "bits"].into_iter().find(|unit| *unit == ending).unwrap_or("")
    }
}

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers below 2^63.
    Integer,
    /// Doubles: means, the disciplines' own state, and sums that would exceed 2^63 in a run of some
    /// years.
    Real,
    /// The name of a link; an engine writes the link's number in the scenario.
    Link,
    /// The name of a flow; an engine writes the flow's number in the scenario.
    Flow,
    /// The word of a cause; an engine writes the number of `qdisc::Cause`.
    Cause,
}

/// A link, by its number in the scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(pub u32);

/// A flow, by its number in the scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowId(pub u32);

/// A cause, by its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CauseId(pub u8);

/// The type of a cell, and its raw form in a column.
pub trait Cell: Copy {
    /// The raw form of a cell in a column.
    type Raw: Copy;
    /// The kind of the column.
    const KIND: Kind;
    /// Whether a cell may be empty.
    const NULLABLE: bool;
    /// The raw form of a cell.
    fn to_raw(self) -> Self::Raw;
    /// The cell of a raw form.
    fn from_raw(raw: Self::Raw) -> Self;
    /// A column from raw cells.
    fn column(raw: Vec<Self::Raw>) -> Column;
    /// The raw cells of a column of any width; `None`: its values do not fit.
    fn raw(column: Column) -> Option<Vec<Self::Raw>>;
}

/// Converts integers to another width; `None`: one does not fit, or they are not integers.
fn integers<T: TryFrom<i64>>(column: Column) -> Option<Vec<T>> {
    let fit = |value: i64| T::try_from(value).ok();
    match column {
        Column::U8(values) => values.into_iter().map(|value| fit(value.into())).collect(),
        Column::U32(values) => values.into_iter().map(|value| fit(value.into())).collect(),
        Column::U64(values) => {
            values.into_iter().map(|value| fit(value.try_into().ok()?)).collect()
        }
        Column::I64(values) => values.into_iter().map(fit).collect(),
        Column::F64(_) => None,
    }
}

/// Converts integers to reals.
fn reals(column: Column) -> Option<Vec<f64>> {
    let values: Vec<i64> = integers(column)?;
    Some(
        values
            .into_iter()
            .map(|value| if value == NONE { f64::NAN } else { value as f64 })
            .collect(),
    )
}

macro_rules! cell {
    ($cell:ty, $kind:ident, $nullable:literal, $raw_type:ty, $variant:ident, $read:ident,
     |$value:ident| $to_raw:expr, |$raw:ident| $from_raw:expr) => {
        impl Cell for $cell {
            type Raw = $raw_type;
            const KIND: Kind = Kind::$kind;
            const NULLABLE: bool = $nullable;
            #[inline]
            fn to_raw(self) -> $raw_type {
                let $value = self;
                $to_raw
            }
            #[inline]
            fn from_raw($raw: $raw_type) -> $cell {
                $from_raw
            }
            fn column(raw: Vec<$raw_type>) -> Column {
                Column::$variant(raw)
            }
            fn raw(column: Column) -> Option<Vec<$raw_type>> {
                match column {
                    Column::$variant(values) => Some(values),
                    other => $read(other),
                }
            }
        }
    };
}

cell!(u8, Integer, false, u8, U8, integers, |value| value, |raw| raw);
cell!(u32, Integer, false, u32, U32, integers, |value| value, |raw| raw);
cell!(u64, Integer, false, u64, U64, integers, |value| value, |raw| raw);
cell!(f64, Real, false, f64, F64, reals, |value| value, |raw| raw);
cell!(LinkId, Link, false, u32, U32, integers, |value| value.0, |raw| LinkId(raw));
cell!(FlowId, Flow, false, u32, U32, integers, |value| value.0, |raw| FlowId(raw));
cell!(CauseId, Cause, false, u8, U8, integers, |value| value.0, |raw| CauseId(raw));
cell!(
    Option<u64>,
    Integer,
    true,
    i64,
    I64,
    integers,
    |value| value.map_or(NONE, |some| i64::try_from(some).unwrap_or(i64::MAX)),
    |raw| u64::try_from(raw).ok()
);
cell!(Option<f64>, Real, true, f64, F64, reals, |value| value.unwrap_or(f64::NAN), |raw| (!raw
    .is_nan())
.then_some(raw));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_pushed_can_be_read() {
        let mut probes = probe::Columns::default();
        let lost =
            probe::Row { t_ns: 5, probe: FlowId(2), seq: 7, rtt_ns: None, forward_ns: Some(3) };
        probes.push(lost);
        assert_eq!((probes.len(), probes.row(0)), (1, lost));
        let table = probes.clone().into_table();
        assert_eq!(table.column("rtt_ns"), Some(&Column::I64(vec![NONE])));
        assert_eq!(probe::Columns::from_table(table), Some(probes));
    }

    #[test]
    fn a_schema_names_the_columns_that_a_table_has() {
        let table = links::Columns::default().into_table();
        let names: Vec<_> = table.columns.iter().map(|(name, _)| *name).collect();
        assert_eq!(
            names,
            links::SCHEMA.columns.iter().map(|column| column.name).collect::<Vec<_>>()
        );
    }

    #[test]
    fn each_column_that_may_be_null_has_the_meaning_of_null() {
        for table in ALL {
            assert!(!table.about.is_empty() && !table.about.contains('\n'), "{}", table.name);
            for column in table.columns {
                assert!(!column.meaning.is_empty(), "{} {}", table.name, column.name);
                assert_ne!(column.null, Some(""), "{} {}", table.name, column.name);
            }
        }
    }

    #[test]
    fn the_unit_is_in_the_name() {
        let unit =
            |name| queue::SCHEMA.columns.iter().find(|c| c.name == name).expect("there").unit();
        assert_eq!(["t_ns", "sent_bytes", "limit"].map(unit), ["ns", "bytes", ""]);
    }
}
