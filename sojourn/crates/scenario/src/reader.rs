//! Declares and reads the tables of the language: a table is a struct whose fields are keys. A
//! reader fills the struct key by key and collects the problems.
//!
//! `keys!` declares a table or a part of a table, each key in a line: name, type, default, form.
//! `whole!` makes a table of one part, `joined!` of several. The tables themselves are in
//! `model.rs` and `tcp.rs`, the forms in `forms.rs`.

use crate::problem::{Key, Part, Problem, below};
use values::{Table, Value, Wrong, quoted};

/// Reads and writes the value of a key.
pub(crate) trait Form<T> {
    /// Returns the value, or `None` after it has reported a problem to the reader.
    fn read(&self, value: &Value, key: &Key, reader: &mut Reader<'_>) -> Option<T>;

    /// The value as a file would contain it; `all` includes defaults.
    fn write(&self, value: &T, all: bool) -> Value;

    /// The keys of the tables that it reads; `None`: it reads no tables.
    fn below(&self) -> Option<fn() -> Vec<KeyOf>> {
        None
    }
}

/// A key of a table, for callers that list the language.
#[derive(Clone, Debug)]
pub struct KeyOf {
    /// Its name in a file.
    pub name: &'static str,
    /// The keys of its table, or of each table of its list.
    pub below: Option<fn() -> Vec<KeyOf>>,
}

/// A struct whose fields are keys of a table, or of a part of a table.
pub(crate) trait Fields: Sized {
    /// Returns the values of its keys, or `None` after it has reported a problem to the reader.
    fn read(table: &Table, key: &Key, reader: &mut Reader<'_>) -> Option<Self>;

    /// Its keys and their values as a file would contain them; `None`: no value. `all` includes
    /// defaults.
    fn list(&self, all: bool, out: &mut Vec<(&'static str, Option<Value>)>);

    /// Its keys, in order.
    fn keys() -> Vec<KeyOf>;
}

/// A whole table.
pub(crate) trait Tables: Sized {
    /// Its keys, in order.
    fn keys_whole() -> Vec<KeyOf>;

    fn read_whole(table: &Table, key: &Key, reader: &mut Reader<'_>) -> Option<Self>;

    fn list_whole(&self, all: bool) -> Vec<(&'static str, Option<Value>)>;

    fn entries(&self, all: bool) -> Table {
        let mut table = Table::default();
        for (name, value) in self.list_whole(all) {
            if let Some(value) = value {
                table.push(name.to_owned(), value);
            }
        }
        table
    }
}

/// Fills a table key by key and collects the problems.
pub(crate) struct Reader<'d> {
    /// Returns the hint for a key that a table does not have, from the key's name, the table's
    /// place and the table's keys.
    pub(crate) hint: &'d dyn Fn(&str, &Key, &[KeyOf]) -> String,
    /// The problems, each with the part of the key that it is about.
    pub(crate) problems: Vec<(Problem, Place)>,
}

/// The part of a key that a problem is about.
pub(crate) enum Place {
    /// The key's name.
    Name,
    /// The value, this many characters from its start.
    Value(usize),
}

impl Reader<'_> {
    pub(crate) fn refuse(&mut self, wrong: Wrong, key: &Key) {
        let key = match wrong.item {
            Some(index) => below(key, index),
            None => key.clone(),
        };
        self.problems
            .push((Problem::new(wrong.message, wrong.hint, key), Place::Value(wrong.offset)));
    }

    pub(crate) fn table<T: Tables>(&mut self, value: &Value, key: &Key) -> Option<T> {
        match value.table() {
            Some(table) => T::read_whole(table, key, self),
            None => {
                let message = format!("{} is not a table", quoted(value));
                let tables = value.list().is_some_and(|list| list.iter().any(is_table));
                let hint = match (&key[..], T::keys_whole().first()) {
                    ([name], _) if tables => {
                        format!("there is only one: write [{name}], in single brackets")
                    }
                    ([.., name @ Part::Name(_)], Some(first)) => {
                        format!("write a key of it, such as {name}.{}", first.name)
                    }
                    _ => "write it as a table, not as a value".to_owned(),
                };
                self.refuse(Wrong::new(message, hint), key);
                None
            }
        }
    }

    pub(crate) fn list<'v>(&mut self, value: &'v Value, key: &Key) -> Option<&'v [Value]> {
        if value.list().is_none() {
            let hint = match &key[..] {
                [name] if is_table(value) => {
                    format!("there can be several: write [[{name}]], in double brackets")
                }
                _ => "write it in brackets; a list of tables needs two: [[flow]]".to_owned(),
            };
            self.refuse(Wrong::new(format!("{} is not a list", quoted(value)), hint), key);
        }
        value.list()
    }

    pub(crate) fn missing(&mut self, name: &str, key: &Key) {
        let example = match name {
            "duration" => "duration = \"60 s\"",
            "rate" => "rate = \"20 Mbit/s\"",
            "delay" => "delay = \"10 ms\"",
            "size" => "size = \"50 kB\"",
            "from" => "from = \"server\"",
            "to" => "to = \"home\"",
            "kind" => "kind = \"bulk\"",
            "packets" => "file = \"line.pcapng\"",
            _ => &format!("{name} = ..."),
        };
        let wrong = Wrong::new(format!("{name} is missing"), format!("write {example}"));
        self.refuse(wrong, &below(key, name));
    }

    /// Refuses the keys that are not in this table.
    pub(crate) fn unknown(&mut self, table: &Table, key: &Key, known: &[KeyOf]) {
        for (name, _) in table.iter() {
            if !known.iter().any(|each| each.name == name) {
                let hint = (self.hint)(name, key, known);
                self.problems
                    .push((Problem::new("unknown key", hint, below(key, name)), Place::Name));
            }
        }
    }
}

fn is_table(value: &Value) -> bool {
    value.table().is_some()
}

macro_rules! field_type {
    (Required, $type:ty) => { $type };
    (Optional, $type:ty) => { Option<$type> };
    (Defaulted, $type:ty) => { $type };
}

macro_rules! read_field {
    (Required, $form:expr, $value:expr, $name:expr, $key:expr, $reader:expr, $default:expr) => {
        match $value {
            Some(value) => {
                $crate::reader::Form::read(&$form, value, &$crate::below($key, $name), $reader)
            }
            None => {
                $reader.missing($name, $key);
                None
            }
        }
    };
    (Optional, $form:expr, $value:expr, $name:expr, $key:expr, $reader:expr, $default:expr) => {
        match $value {
            Some(value) => {
                $crate::reader::Form::read(&$form, value, &$crate::below($key, $name), $reader)
                    .map(Some)
            }
            None => Some(None),
        }
    };
    (Defaulted, $form:expr, $value:expr, $name:expr, $key:expr, $reader:expr, $default:expr) => {
        match $value {
            Some(value) => {
                $crate::reader::Form::read(&$form, value, &$crate::below($key, $name), $reader)
            }
            None => Some($default),
        }
    };
}

macro_rules! list_field {
    (Required, $form:expr, $value:expr, $all:expr, $default:expr) => {
        Some($crate::reader::Form::write(&$form, $value, $all))
    };
    (Optional, $form:expr, $value:expr, $all:expr, $default:expr) => {
        $value.as_ref().map(|value| $crate::reader::Form::write(&$form, value, $all))
    };
    (Defaulted, $form:expr, $value:expr, $all:expr, $default:expr) => {
        ($all || *$value != $default).then(|| $crate::reader::Form::write(&$form, $value, $all))
    };
}

macro_rules! keys {
    ($(#[doc = $about:expr])+ $table:ident {
        $($(#[doc = $meaning:expr])+ $field:ident $(as $name:literal)?:
            $kind:ident<$type:ty> $(= $default:expr)? => $form:expr;)+
    }) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        pub struct $table {
            $($(#[doc = $meaning])+ pub $field: $crate::reader::field_type!($kind, $type),)+
        }

        impl $crate::reader::Fields for $table {
            fn read(
                table: &$crate::Table,
                key: &$crate::Key,
                reader: &mut $crate::reader::Reader<'_>,
            ) -> Option<$table> {
                $(
                    let name = $crate::reader::keys!(@name $field $($name)?);
                    #[allow(unused_variables)]
                    let $field: Option<$crate::reader::field_type!($kind, $type)> =
                        $crate::reader::read_field!(
                            $kind, $form, table.get(name), name, key, reader,
                            $crate::reader::keys!(@default $($default)?)
                        );
                )+
                Some($table { $($field: $field?,)+ })
            }

            fn list(&self, all: bool, out: &mut Vec<(&'static str, Option<$crate::Value>)>) {
                $(out.push((
                    $crate::reader::keys!(@name $field $($name)?),
                    $crate::reader::list_field!(
                        $kind, $form, &self.$field, all, $crate::reader::keys!(@default $($default)?)
                    ),
                ));)+
            }

            fn keys() -> Vec<$crate::KeyOf> {
                vec![$($crate::KeyOf {
                    name: $crate::reader::keys!(@name $field $($name)?),
                    below: $crate::reader::Form::<$type>::below(&$form),
                }),+]
            }
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
    (@default) => { unreachable!("it has no default") };
    (@default $default:expr) => { $default };
}

/// A table with exactly these keys.
macro_rules! whole {
    ($table:ident) => {
        impl $crate::reader::Tables for $table {
            fn keys_whole() -> Vec<$crate::KeyOf> {
                <$table as $crate::reader::Fields>::keys()
            }

            fn read_whole(
                table: &$crate::Table,
                key: &$crate::Key,
                reader: &mut $crate::reader::Reader<'_>,
            ) -> Option<$table> {
                let read = <$table as $crate::reader::Fields>::read(table, key, reader);
                reader.unknown(table, key, &$table::keys_whole());
                read
            }

            fn list_whole(&self, all: bool) -> Vec<(&'static str, Option<$crate::Value>)> {
                let mut out = Vec::new();
                $crate::reader::Fields::list(self, all, &mut out);
                out
            }
        }
    };
}

/// A table whose keys are those of several parts, in order.
macro_rules! joined {
    ($table:ident { $($field:ident: $part:ident),+ }) => {
        impl $crate::reader::Tables for $table {
            fn keys_whole() -> Vec<$crate::KeyOf> {
                [$(<$part as $crate::reader::Fields>::keys()),+].concat()
            }

            fn read_whole(
                table: &$crate::Table,
                key: &$crate::Key,
                reader: &mut $crate::reader::Reader<'_>,
            ) -> Option<$table> {
                $(let $field = <$part as $crate::reader::Fields>::read(table, key, reader);)+
                reader.unknown(table, key, &$table::keys_whole());
                Some($table { $($field: $field?),+ })
            }

            fn list_whole(&self, all: bool) -> Vec<(&'static str, Option<$crate::Value>)> {
                let mut out = Vec::new();
                $($crate::reader::Fields::list(&self.$field, all, &mut out);)+
                out
            }
        }
    };
}

pub(crate) use {field_type, joined, keys, list_field, read_field, whole};
