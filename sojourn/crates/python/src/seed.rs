//! The tables of a seed, kept in Rust: written as Parquet and turned into numbers without Python's
//! lock, and copied to arrays on request.

use files::Names;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyIterator, PyList, PyMapping};
use tables::{ALL, Column, Table};

use crate::metrics::Numbers;
use crate::tables::column;

/// Every table of a seed; see `_core.pyi`.
#[pyclass(frozen, mapping)]
pub struct SeedTables(Vec<Table>);

impl SeedTables {
    pub fn new(tables: Vec<Table>) -> SeedTables {
        SeedTables(tables)
    }

    fn table(&self, name: &str) -> Option<&Table> {
        self.0.iter().find(|table| table.name == name)
    }
}

#[pymethods]
impl SeedTables {
    #[new]
    fn of(tables: &Bound<'_, PyMapping>) -> PyResult<SeedTables> {
        let mut given = Vec::new();
        let mut unknown = Vec::new();
        for entry in tables.items()?.iter() {
            let (name, columns): (String, Bound<'_, PyAny>) = entry.extract()?;
            match ALL.iter().find(|schema| schema.name == name) {
                Some(schema) => given.push((schema, columns)),
                None => unknown.push(name),
            }
        }
        if !unknown.is_empty() {
            unknown.sort();
            return Err(PyValueError::new_err(format!(
                "the engine wrote tables that are not declared: {}",
                unknown.join(", ")
            )));
        }
        let tables = given.iter().map(|(schema, columns)| as_declared(schema, columns));
        Ok(SeedTables(tables.collect::<PyResult<_>>()?))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.keys(py)?.try_iter()
    }

    fn __contains__(&self, name: &str) -> bool {
        self.table(name).is_some()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyDict>> {
        let table = self.table(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        arrays::columns(py, table)
    }

    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.0.iter().map(|table| table.name))
    }

    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let all =
            self.0.iter().map(|table| arrays::columns(py, table)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, all)
    }

    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let all = self.0.iter().map(|table| Ok((table.name, arrays::columns(py, table)?)));
        PyList::new(py, all.collect::<PyResult<Vec<_>>>()?)
    }

    #[pyo3(signature = (name, default = None, /))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.table(name) {
            Some(table) => Ok(Some(arrays::columns(py, table)?.into_any())),
            None => Ok(default),
        }
    }

    fn parquet<'py>(
        &self,
        py: Python<'py>,
        links: Vec<String>,
        flows: Vec<String>,
        causes: Vec<String>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let names = Names { links, flows, causes };
        let files = py.detach(|| {
            let files = self.0.iter().map(|table| Ok((table.name, files::parquet(table, &names)?)));
            files.collect::<Result<Vec<_>, files::Unfit>>()
        });
        let files = files.map_err(|files::Unfit(why)| PyValueError::new_err(why))?;
        let all = PyDict::new(py);
        for (name, content) in files {
            all.set_item(name, PyBytes::new(py, &content))?;
        }
        Ok(all)
    }

    fn numbers(&self, py: Python<'_>, about_json: &str) -> PyResult<Numbers> {
        Numbers::of(py, about_json, &|name| {
            let missing = || PyValueError::new_err(format!("there is no table {name:?}"));
            self.table(name).cloned().ok_or_else(missing)
        })
    }

    /// Compares bit by bit, so that NaN is equal to itself; see `_core.pyi`.
    fn equals(&self, other: &SeedTables, names: Vec<String>) -> bool {
        names.iter().all(|name| match (self.table(name), other.table(name)) {
            (Some(left), Some(right)) => same(left, right),
            (left, right) => left.is_none() && right.is_none(),
        })
    }

    fn __repr__(&self) -> String {
        let names: Vec<_> = self.0.iter().map(|table| table.name).collect();
        format!("<SeedTables {}>", names.join(", "))
    }
}

fn same(left: &Table, right: &Table) -> bool {
    left.columns.len() == right.columns.len()
        && left.columns.iter().zip(&right.columns).all(|((name, values), (known, others))| {
            name == known
                && match (values, others) {
                    (Column::F64(values), Column::F64(others)) => {
                        values.iter().map(|v| v.to_bits()).eq(others.iter().map(|v| v.to_bits()))
                    }
                    (values, others) => values == others,
                }
        })
}

/// A table from Python's arrays, which have to be exactly the declared columns.
fn as_declared(schema: &'static tables::Schema, given: &Bound<'_, PyAny>) -> PyResult<Table> {
    let given = given.cast::<PyMapping>()?;
    let names: Vec<String> = given.keys()?.extract()?;
    let mut differing: Vec<&str> = schema
        .columns
        .iter()
        .map(|column| column.name)
        .filter(|name| !names.iter().any(|known| known == name))
        .chain(
            names
                .iter()
                .map(String::as_str)
                .filter(|name| !schema.columns.iter().any(|column| column.name == *name)),
        )
        .collect();
    if !differing.is_empty() {
        differing.sort_unstable();
        return Err(PyValueError::new_err(format!(
            "the engine's table '{}' is not as declared: {}",
            schema.name,
            differing.join(", ")
        )));
    }
    let columns =
        schema.columns.iter().map(|each| Ok((each.name, column(&given.get_item(each.name)?)?)));
    Ok(Table { name: schema.name, columns: columns.collect::<PyResult<_>>()? })
}
