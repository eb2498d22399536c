//! The tables' declaration, and columns from Python's arrays.

use arrays::{Integers, Numbers, Reals};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tables::{ALL, Column, Kind};

/// A declared column; see `_core.pyi`.
#[pyclass(frozen, name = "ColumnSchema")]
pub struct ColumnInfo(tables::ColumnSchema);

#[pymethods]
impl ColumnInfo {
    #[getter]
    fn name(&self) -> &str {
        self.0.name
    }

    #[getter]
    fn unit(&self) -> &str {
        self.0.unit()
    }

    #[getter]
    fn kind(&self) -> &str {
        match self.0.kind {
            Kind::Integer => "integer",
            Kind::Real => "real",
            Kind::Link => "link",
            Kind::Flow => "flow",
            Kind::Cause => "cause",
        }
    }

    #[getter]
    fn meaning(&self) -> &str {
        self.0.meaning
    }

    #[getter]
    fn null(&self) -> Option<&str> {
        self.0.null
    }

    fn __repr__(&self) -> String {
        format!("<ColumnSchema {} ({})>", self.0.name, self.kind())
    }
}

/// A declared table; see `_core.pyi`.
#[pyclass(frozen, name = "TableSchema")]
pub struct TableInfo {
    schema: tables::Schema,
    columns: Py<PyTuple>,
}

#[pymethods]
impl TableInfo {
    #[getter]
    fn name(&self) -> &str {
        self.schema.name
    }

    #[getter]
    fn about(&self) -> &str {
        self.schema.about
    }

    #[getter]
    fn columns(&self, py: Python<'_>) -> Py<PyTuple> {
        self.columns.clone_ref(py)
    }

    fn __repr__(&self) -> String {
        format!("<TableSchema {}>", self.schema.name)
    }
}

/// Every table by its name, in the order of the declaration.
pub fn declared(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for schema in ALL {
        let columns: Vec<ColumnInfo> = schema.columns.iter().copied().map(ColumnInfo).collect();
        let columns =
            columns.into_iter().map(|each| Py::new(py, each)).collect::<PyResult<Vec<_>>>()?;
        let columns = PyTuple::new(py, columns)?.unbind();
        all.set_item(schema.name, Py::new(py, TableInfo { schema: *schema, columns })?)?;
    }
    Ok(all)
}

/// A column from whole numbers or reals of any width.
pub fn column(values: &Bound<'_, PyAny>) -> PyResult<Column> {
    macro_rules! of_width {
        ($($number:ty => $variant:ident),+) => {
            $( if let Ok(values) = values.extract::<Numbers<$number>>() {
                return Ok(Column::$variant(values.into_vec()));
            } )+
        };
    }
    of_width!(i64 => I64, f64 => F64, u32 => U32, u64 => U64, u8 => U8);
    let kind: String = values.getattr("dtype")?.getattr("kind")?.extract()?;
    let wider = if matches!(kind.as_str(), "i" | "u" | "b") { "int64" } else { "float64" };
    let values = values.call_method1("astype", (wider,))?;
    if wider == "int64" {
        return Ok(Column::I64(values.extract::<Integers>()?.into_vec()));
    }
    Ok(Column::F64(values.extract::<Reals>()?.into_vec()))
}
