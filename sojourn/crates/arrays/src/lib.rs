//! Converts numbers and tables from and to numpy's arrays by Python's buffer protocol, for the
//! extensions of each package. numpy makes an array; its numbers are copied once. So no part of
//! numpy has to be compiled.

use std::ops::Deref;

use pyo3::Borrowed;
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tables::{Column, Table};

/// A number type of arrays, with numpy's name.
pub trait Number: Element {
    /// The type's name.
    const DTYPE: &'static str;
}

macro_rules! numbers {
    ($($number:ty => $dtype:literal),+ $(,)?) => {
        $( impl Number for $number {
            const DTYPE: &'static str = $dtype;
        } )+
    };
}
numbers!(u8 => "uint8", u32 => "uint32", u64 => "uint64", i64 => "int64", f64 => "float64");

/// A new array of these numbers.
pub fn array<'py, T: Number>(py: Python<'py>, values: &[T]) -> PyResult<Bound<'py, PyAny>> {
    let array = py.import("numpy")?.call_method1("empty", (values.len(), T::DTYPE))?;
    PyBuffer::<T>::get(&array)?.copy_from_slice(py, values)?;
    Ok(array)
}

/// The numbers of an array: of one dimension and of exactly this type.
pub struct Numbers<T>(Vec<T>);

/// An array of integers.
pub type Integers = Numbers<i64>;
/// An array of reals.
pub type Reals = Numbers<f64>;

impl<T> Numbers<T> {
    /// The numbers alone.
    pub fn into_vec(self) -> Vec<T> {
        self.0
    }
}

impl<T> Deref for Numbers<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Number> FromPyObject<'_, '_> for Numbers<T> {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let wrong = || PyTypeError::new_err(format!("not an array of {} in one row", T::DTYPE));
        let buffer = PyBuffer::<T>::get(&given).map_err(|_| wrong())?;
        // PyO3 0.30 accepts numbers of the other byte order, too.
        let native = !matches!(buffer.format().to_bytes(), [b'<' | b'>' | b'!', ..]);
        if buffer.dimensions() != 1 || !native {
            return Err(wrong());
        }
        Ok(Numbers(buffer.to_vec(given.py())?))
    }
}

/// A table as a dict of its columns.
pub fn columns<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    for (name, column) in &table.columns {
        match column {
            Column::U8(values) => columns.set_item(name, array(py, values)?)?,
            Column::U32(values) => columns.set_item(name, array(py, values)?)?,
            Column::U64(values) => columns.set_item(name, array(py, values)?)?,
            Column::I64(values) => columns.set_item(name, array(py, values)?)?,
            Column::F64(values) => columns.set_item(name, array(py, values)?)?,
        }
    }
    Ok(columns)
}

/// Tables by name, each as a dict of its columns.
pub fn tables<'py>(py: Python<'py>, tables: &[Table]) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for table in tables {
        all.set_item(table.name, columns(py, table)?)?;
    }
    Ok(all)
}
