//! Quantities for Python: between the text that people write and the engines' integers; errors as
//! `UnitError`.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use values::quantity::{self, Times};
use values::{Value, Wrong, dscp};

use crate::values::value_of;

/// The exception with the message and the hint.
fn refusal(py: Python<'_>, Wrong { message, hint, offset, .. }: Wrong) -> PyErr {
    let raise = || py.import("sojourn.units")?.getattr("UnitError")?.call1((message, hint, offset));
    raise().map_or_else(|error| error, PyErr::from_value)
}

/// A value in a message; a value that no document can contain has Python's text.
pub fn shown(value: &Bound<'_, PyAny>) -> PyResult<String> {
    match value_of(value) {
        Ok(known) => Ok(values::quoted(&known)),
        Err(_) => Ok(value.repr()?.to_string()),
    }
}

/// Parses a value; `unlike` makes the error for a value that no document can contain; its argument
/// is Python's text of the value.
fn read<T>(
    value: &Bound<'_, PyAny>,
    unlike: impl FnOnce(&str) -> Wrong,
    parse: impl FnOnce(&Value) -> Result<T, Wrong>,
) -> PyResult<T> {
    let read = match value_of(value) {
        Ok(known) => parse(&known),
        Err(_) => Err(unlike(&shown(value)?)),
    };
    read.map_err(|wrong| refusal(value.py(), wrong))
}

/// Nanoseconds; see `_core.pyi`.
#[pyfunction]
#[pyo3(signature = (value, *, what, example, zero, most, days))]
fn parse_duration(
    value: &Bound<'_, PyAny>,
    what: &str,
    example: &str,
    zero: bool,
    most: u64,
    days: bool,
) -> PyResult<u64> {
    let times = Times { what, example, zero, most, days };
    let unlike = |shown: &str| quantity::unlike(shown, what, example);
    read(value, unlike, |value| quantity::parse_duration(value, &times))
}

/// Bit/s; see `_core.pyi`.
#[pyfunction]
#[pyo3(signature = (value, *, zero))]
fn parse_rate(value: &Bound<'_, PyAny>, zero: bool) -> PyResult<u64> {
    let unlike = |shown: &str| quantity::unlike(shown, "a rate", "20 Mbit/s");
    read(value, unlike, |value| quantity::parse_rate(value, zero))
}

/// Bytes; see `_core.pyi`.
#[pyfunction]
#[pyo3(signature = (value, *, what, least, most))]
fn parse_size(value: &Bound<'_, PyAny>, what: &str, least: u64, most: u64) -> PyResult<u64> {
    let unlike = |shown: &str| quantity::unlike(shown, what, "1500 B");
    read(value, unlike, |value| quantity::parse_size(value, what, least, most))
}

/// A fraction; see `_core.pyi`.
#[pyfunction]
fn parse_probability(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    read(value, quantity::no_probability, quantity::parse_probability)
}

/// A codepoint; see `_core.pyi`.
#[pyfunction]
fn parse_dscp(value: &Bound<'_, PyAny>) -> PyResult<u8> {
    let unlike = |shown: &str| {
        Wrong::new(
            format!("{shown} is not a DSCP"),
            "write a name like ef, or a number from 0 to 63",
        )
    };
    read(value, unlike, dscp::parse)
}

/// Its name or number.
#[pyfunction]
fn format_dscp<'py>(py: Python<'py>, dscp: u8) -> PyResult<Bound<'py, PyAny>> {
    match dscp::format(dscp) {
        Value::Text(name) => name.into_bound_py_any(py),
        _ => dscp.into_bound_py_any(py),
    }
}

/// The known word that was probably meant; see `_core.pyi`.
#[pyfunction]
fn nearest(word: &str, known: Vec<String>) -> Option<String> {
    values::text::nearest(word, known.iter().map(String::as_str)).map(str::to_owned)
}

/// The texts; see `_core.pyi`.
#[pyfunction]
fn format_duration(ns: u64) -> String {
    quantity::format_duration(ns)
}

#[pyfunction]
fn format_rate(bps: u64) -> String {
    quantity::format_rate(bps)
}

#[pyfunction]
fn format_size(size: u64) -> String {
    quantity::format_size(size)
}

#[pyfunction]
fn format_probability(fraction: f64) -> String {
    quantity::format_probability(fraction)
}

/// Adds the functions and constants to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("UNITS", quantity::units().collect::<Vec<_>>())?;
    module.add("MAX_DURATION", quantity::MAX_DURATION)?;
    module.add("MAX_RATE", quantity::MAX_RATE)?;
    module.add("MAX_SIZE", quantity::MAX_SIZE)?;
    module.add_function(wrap_pyfunction!(parse_duration, module)?)?;
    module.add_function(wrap_pyfunction!(parse_rate, module)?)?;
    module.add_function(wrap_pyfunction!(parse_size, module)?)?;
    module.add_function(wrap_pyfunction!(parse_probability, module)?)?;
    module.add_function(wrap_pyfunction!(parse_dscp, module)?)?;
    module.add_function(wrap_pyfunction!(format_dscp, module)?)?;
    module.add_function(wrap_pyfunction!(format_duration, module)?)?;
    module.add_function(wrap_pyfunction!(format_rate, module)?)?;
    module.add_function(wrap_pyfunction!(format_size, module)?)?;
    module.add_function(wrap_pyfunction!(format_probability, module)?)?;
    module.add_function(wrap_pyfunction!(nearest, module)?)
}
