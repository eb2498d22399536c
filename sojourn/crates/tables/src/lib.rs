//! The tables of a Run, each declared once.
//!
//! `declared.rs` is the declaration: a table's name, its columns, their types, what they hold and
//! what null means. From it come, by the macro in `declare.rs`, the struct of columns that an
//! engine fills row by row, and the `Schema` that readers, documentation and tests go by. Nobody
//! else lists columns.
//!
//! In code a value that may be missing is an `Option`. Outside, in a `Column`, none is one number
//! for each type: `NONE` in a column of integers, NaN in one of reals.

mod declare;
mod declared;
pub mod facts;
pub mod histogram;

pub use declared::*;
pub use histogram::Histogram;

/// What stands for none in a column of integers.
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
    /// How many values there are.
    pub fn len(&self) -> usize {
        match self {
            Column::U8(values) => values.len(),
            Column::U32(values) => values.len(),
            Column::U64(values) => values.len(),
            Column::I64(values) => values.len(),
            Column::F64(values) => values.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A table: its name, and its columns by name, equally long.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// `queue`, `flow`, ...
    pub name: &'static str,
    /// Name and values.
    pub columns: Vec<(&'static str, Column)>,
}

impl Table {
    /// A column's values.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|(known, _)| *known == name).map(|(_, values)| values)
    }

    /// Takes a column's values out.
    fn take(&mut self, name: &str) -> Option<Column> {
        let at = self.columns.iter().position(|(known, _)| *known == name)?;
        Some(self.columns.swap_remove(at).1)
    }
}

/// What a table is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    /// `queue`, `flow`, ...
    pub name: &'static str,
    /// What a row is.
    pub about: &'static str,
    /// In their order.
    pub columns: &'static [ColumnSchema],
}

/// What a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSchema {
    /// Ends with the unit, if it has one.
    pub name: &'static str,
    /// Of its values.
    pub kind: Kind,
    /// What it holds.
    pub meaning: &'static str,
    /// What it means that there is no value; `None`: there always is one.
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
    /// Doubles: means, sums that pass 2^63 within years, the disciplines' own state.
    Real,
    /// The name of a link; an engine writes the link's number in the scenario.
    Link,
    /// The name of a flow; an engine writes the flow's number in the scenario.
    Flow,
    /// A word for why; an engine writes the number of `qdisc::Cause`.
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

/// What a cell may hold, and how a column keeps it.
pub trait Cell: Copy {
    /// As a column keeps it.
    type Kept: Copy;
    /// Of the column.
    const KIND: Kind;
    /// Whether a cell may be empty.
    const NULLABLE: bool;
    /// Into a column.
    fn keep(self) -> Self::Kept;
    /// Out of a column.
    fn of(kept: Self::Kept) -> Self;
    /// A whole column.
    fn column(kept: Vec<Self::Kept>) -> Column;
    /// A whole column's values, be they kept in another width; `None`: it holds others.
    fn kept(column: Column) -> Option<Vec<Self::Kept>>;
}

/// Integers of another width; `None`: one does not fit, or these are none.
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

/// Integers as reals.
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
    ($cell:ty, $kind:ident, $nullable:literal, $kept:ty, $variant:ident, $read:ident,
     |$value:ident| $keep:expr, |$raw:ident| $of:expr) => {
        impl Cell for $cell {
            type Kept = $kept;
            const KIND: Kind = Kind::$kind;
            const NULLABLE: bool = $nullable;
            #[inline]
            fn keep(self) -> $kept {
                let $value = self;
                $keep
            }
            #[inline]
            fn of($raw: $kept) -> $cell {
                $of
            }
            fn column(kept: Vec<$kept>) -> Column {
                Column::$variant(kept)
            }
            fn kept(column: Column) -> Option<Vec<$kept>> {
                match column {
                    Column::$variant(values) => Some(values),
                    other => $read(other),
                }
            }
        }
    };
}

cell!(u8, Integer, false, u8, U8, integers, |value| value, |kept| kept);
cell!(u32, Integer, false, u32, U32, integers, |value| value, |kept| kept);
cell!(u64, Integer, false, u64, U64, integers, |value| value, |kept| kept);
cell!(f64, Real, false, f64, F64, reals, |value| value, |kept| kept);
cell!(LinkId, Link, false, u32, U32, integers, |value| value.0, |kept| LinkId(kept));
cell!(FlowId, Flow, false, u32, U32, integers, |value| value.0, |kept| FlowId(kept));
cell!(CauseId, Cause, false, u8, U8, integers, |value| value.0, |kept| CauseId(kept));
cell!(
    Option<u64>,
    Integer,
    true,
    i64,
    I64,
    integers,
    |value| value.map_or(NONE, |some| i64::try_from(some).unwrap_or(i64::MAX)),
    |kept| u64::try_from(kept).ok()
);
cell!(Option<f64>, Real, true, f64, F64, reals, |value| value.unwrap_or(f64::NAN), |kept| (!kept
    .is_nan())
.then_some(kept));

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
        let made = links::Columns::default().into_table();
        let names: Vec<_> = made.columns.iter().map(|(name, _)| *name).collect();
        assert_eq!(
            names,
            links::SCHEMA.columns.iter().map(|column| column.name).collect::<Vec<_>>()
        );
    }

    #[test]
    fn whatever_may_be_missing_says_what_that_means() {
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
