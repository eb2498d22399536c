//! Converts Python's values to those of a scenario's document.

use ::scenario::{Table, Value};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};

/// A plain value; an object with canonical words (a discipline) becomes these words. `None` inside
/// a table is a missing key.
pub fn value_of(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_instance_of::<PyBool>() {
        return Ok(Value::Bool(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        // A number beyond 128 bits is out of every range.
        return Ok(Value::Int(value.extract().unwrap_or(if value.lt(0)? {
            i128::MIN
        } else {
            i128::MAX
        })));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Value::Float(value.extract()?));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::Text(text.to_string_lossy().into_owned()));
    }
    if let Ok(mapping) = value.cast::<PyMapping>() {
        return Ok(Value::Table(table_of(mapping)?));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items: PyResult<Vec<Value>> = value.try_iter()?.map(|item| value_of(&item?)).collect();
        return Ok(Value::List(items?));
    }
    if let Ok(text) = value.getattr("text") {
        return value_of(&text);
    }
    Err(PyTypeError::new_err(format!("a scenario can't contain a {}", value.get_type().name()?)))
}

/// The same for a table.
pub fn table_of(mapping: &Bound<'_, PyMapping>) -> PyResult<Table> {
    let mut table = Table::default();
    for entry in mapping.items()?.iter() {
        let (key, value): (String, Bound<'_, PyAny>) = entry.extract()?;
        if !value.is_none() {
            table.set(&key, value_of(&value)?);
        }
    }
    Ok(table)
}
