//! The macro that makes columns, rows and a schema of a declaration.

/// `name { column: type, ... }` for each table, sentences as doc comments. A column that may be
/// empty has an `Option` for its type and, behind a bar, what null means.
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
                    $( $(#[doc = $meaning])+ pub $column: Vec<<$cell as Cell>::Kept>, )+
                }

                /// What the table is made of.
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

                // A column says what null means if and only if it may be empty.
                $( const _: () = assert!(
                    <$cell as Cell>::NULLABLE == declared_null!($($null)?).is_some()
                ); )+

                impl Columns {
                    /// Adds a row.
                    #[inline]
                    pub fn push(&mut self, row: Row) {
                        $( self.$column.push(row.$column.keep()); )+
                    }

                    /// How many rows there are.
                    pub fn len(&self) -> usize {
                        [$( self.$column.len() ),+][0]
                    }

                    /// Whether there is none.
                    pub fn is_empty(&self) -> bool {
                        self.len() == 0
                    }

                    /// A row, by its number from 0.
                    pub fn row(&self, at: usize) -> Row {
                        Row { $( $column: <$cell as Cell>::of(self.$column[at]), )+ }
                    }

                    /// Row after row.
                    pub fn rows(&self) -> impl Iterator<Item = Row> + '_ {
                        (0..self.len()).map(|at| self.row(at))
                    }

                    /// For whoever takes tables of any kind.
                    pub fn into_table(self) -> Table {
                        let columns = vec![
                            $( (stringify!($column), <$cell as Cell>::column(self.$column)), )+
                        ];
                        Table { name: SCHEMA.name, columns }
                    }

                    /// The same back, whatever the order of the columns; `None`: they are others.
                    pub fn from_table(mut table: Table) -> Option<Columns> {
                        let known = table.columns.len() == SCHEMA.columns.len();
                        let columns = Columns {
                            $( $column: <$cell as Cell>::kept(table.take(stringify!($column))?)?, )+
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
