//! The macro that makes columns, rows and a schema from a declaration.

/// `name { column: type, ... }` for each table, with doc comments. A column that may be empty has
/// an `Option` for its type and, after a bar, the meaning of null.
///
/// Each table becomes a module: `Row`, `Columns` with a typed `push`, and `SCHEMA`.
macro_rules! tables {
    ($(
        $(#[doc = $about:literal])+
        $table:ident {
            $( $(#[doc = $meaning:literal])+ $column:ident: $cell:ty $(| $null:expr)?, )+
        }
    )+) => {
        /// Every table.
        pub const ALL: &[$crate::Schema] = &[$($table::SCHEMA),+];

        $(
            $(#[doc = $about])+
            pub mod $table {
                #[allow(unused_imports)]
                use super::*;
                use $crate::{Cell, ColumnSchema, Schema, Table};

                /// One row.
                #[derive(Clone, Copy, Debug, Default, PartialEq)]
                pub struct Row {
                    $( $(#[doc = $meaning])+ pub $column: $cell, )+
                }

                /// All rows, by columns.
                #[derive(Clone, Debug, Default, PartialEq)]
                pub struct Columns {
                    $( $(#[doc = $meaning])+ pub $column: Vec<<$cell as Cell>::Raw>, )+
                }

                /// The schema of the table.
                pub const SCHEMA: Schema = Schema {
                    name: stringify!($table),
                    about: concat!($($about),+).trim_ascii(),
                    columns: &[$(
                        ColumnSchema {
                            name: stringify!($column),
                            kind: <$cell as Cell>::KIND,
                            meaning: concat!($($meaning),+).trim_ascii(),
                            null: declared_null!($($null)?),
                        },
                    )+],
                };

                // A column has a meaning of null if and only if it may be empty.
                $( const _: () = assert!(
                    <$cell as Cell>::NULLABLE == declared_null!($($null)?).is_some()
                ); )+

                impl Columns {
                    /// Adds a row.
                    #[inline]
                    pub fn push(&mut self, row: Row) {
                        $( self.$column.push(row.$column.to_raw()); )+
                    }

                    /// The number of rows.
                    pub fn len(&self) -> usize {
                        [$( self.$column.len() ),+][0]
                    }

                    /// Whether there are no rows.
                    pub fn is_empty(&self) -> bool {
                        self.len() == 0
                    }

                    /// A row, by its number from 0.
                    pub fn row(&self, at: usize) -> Row {
                        Row { $( $column: <$cell as Cell>::from_raw(self.$column[at]), )+ }
                    }

                    /// All rows in order.
                    pub fn rows(&self) -> impl Iterator<Item = Row> + '_ {
                        (0..self.len()).map(|at| self.row(at))
                    }

                    /// Returns the columns as a generic table.
                    pub fn into_table(self) -> Table {
                        let columns = vec![
                            $( (stringify!($column), <$cell as Cell>::column(self.$column)), )+
                        ];
                        Table { name: SCHEMA.name, columns }
                    }

                    /// Converts a generic table back, whatever the order of its columns; `None`:
                    /// it has other columns than this schema.
                    pub fn from_table(mut table: Table) -> Option<Columns> {
                        let known = table.columns.len() == SCHEMA.columns.len();
                        let columns = Columns {
                            $( $column: <$cell as Cell>::raw(table.take(stringify!($column))?)?, )+
                        };
                        known.then_some(columns)
                    }
                }

                impl FromIterator<Row> for Columns {
                    fn from_iter<I: IntoIterator<Item = Row>>(rows: I) -> Columns {
                        let mut columns = Columns::default();
                        rows.into_iter().for_each(|row| columns.push(row));
                        columns
                    }
                }
            }
        )+
    };
}

macro_rules! declared_null {
    () => {
        None::<&'static str>
    };
    ($null:expr) => {
        Some($null)
    };
}

pub(crate) use {declared_null, tables};
