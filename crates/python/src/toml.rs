//! A TOML document as plain Python values, with the place of every one of them.
//!
//! Python's own tomllib says nothing about where a value stands, and a scenario's errors must. The parser keeps spans;
//! one walk over its tree makes the values and, beside them, `{"flow.0.rtt": (line, column)}`. A value's place is
//! where the value begins; a table's is its header, which is what its reader looks for.
//!
//! Deviations from TOML: dates and times are refused, since nothing in a scenario is one.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::cell::Cell;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// See `_core.pyi`.
#[pyfunction]
pub fn parse_toml<'py>(py: Python<'py>, text: &str) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
    let lines = Lines::of(text);
    let document = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        lines.error(error.message(), at)
    })?;
    let walk = Walk { py, lines, places: PyDict::new(py) };
    let values = walk.table(document.get_ref(), "")?;
    Ok((values, walk.places))
}

struct Walk<'py, 't> {
    py: Python<'py>,
    lines: Lines<'t>,
    places: Bound<'py, PyDict>,
}

impl<'py> Walk<'py, '_> {
    /// A table's entries in the order in which they are written; the parser sorts them by key.
    fn table(&self, table: &DeTable<'_>, path: &str) -> PyResult<Bound<'py, PyDict>> {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let dict = PyDict::new(self.py);
        for (key, value) in entries {
            let name: &str = key.get_ref();
            let below = join(path, name);
            let place = if value.get_ref().is_table() { key.span() } else { value.span() };
            dict.set_item(name, self.value(value, place, &below)?)?;
        }
        Ok(dict)
    }

    fn value(
        &self,
        value: &Spanned<DeValue<'_>>,
        place: Range<usize>,
        path: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.places.set_item(path, self.lines.place(place.start))?;
        match value.get_ref() {
            DeValue::String(text) => text.as_ref().into_bound_py_any(self.py),
            DeValue::Boolean(truth) => truth.into_bound_py_any(self.py),
            DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
                Ok(number) => number.into_bound_py_any(self.py),
                Err(_) => Err(self.lines.error("integer does not fit into 64 bits", place.start)),
            },
            DeValue::Float(float) => match float.as_str().parse::<f64>() {
                Ok(number) => number.into_bound_py_any(self.py),
                Err(_) => Err(self.lines.error("not a number", place.start)),
            },
            DeValue::Datetime(_) => Err(self
                .lines
                .error("a date or time has no place in a scenario; text goes in quotes", place.start)),
            DeValue::Array(array) => {
                let list = PyList::empty(self.py);
                for (index, item) in array.iter().enumerate() {
                    list.append(self.value(item, item.span(), &join(path, &index.to_string()))?)?;
                }
                Ok(list.into_any())
            }
            DeValue::Table(table) => Ok(self.table(table, path)?.into_any()),
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Where each line of a text begins.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
    /// A byte asked for before and the characters between it and the start of its line: places are asked for mostly in the
    /// order of the text, and counting on from the last keeps one endless line from taking quadratic time.
    last: Cell<(usize, usize)>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Lines<'t> {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Lines { text, starts, last: Cell::new((0, 0)) }
    }

    /// Line and column of a byte, both from 1; columns count characters.
    fn place(&self, byte: usize) -> (usize, usize) {
        let byte = byte.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= byte);
        let (known, characters) = match self.last.get() {
            (last, characters) if (self.starts[line - 1]..=byte).contains(&last) => (last, characters),
            _ => (self.starts[line - 1], 0),
        };
        let characters = characters + self.text.get(known..byte).map_or(0, |before| before.chars().count());
        self.last.set((byte, characters));
        (line, characters + 1)
    }

    fn error(&self, message: &str, byte: usize) -> PyErr {
        let (line, column) = self.place(byte);
        PyValueError::new_err((message.to_owned(), line, column))
    }
}
