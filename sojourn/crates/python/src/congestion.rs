//! The records of the congestion controls, for Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tcp::CongestionKind;
use tcp::congestion::{ELSEWHERE, RECORDS, Record};

/// See `_core.pyi`.
#[pyclass(frozen, module = "sojourn._core")]
pub struct CongestionRecord(&'static Record);

#[pymethods]
impl CongestionRecord {
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name
    }

    #[getter]
    fn simulated(&self) -> bool {
        self.0.simulated.is_some()
    }

    #[getter]
    fn needs_ecn(&self) -> bool {
        self.0.simulated.is_some_and(CongestionKind::needs_ecn)
    }

    #[getter]
    fn needs_accecn(&self) -> bool {
        self.0.simulated.is_some_and(CongestionKind::needs_accecn)
    }

    #[getter]
    fn in_linux(&self) -> bool {
        self.0.in_linux
    }

    #[getter]
    fn nearest(&self) -> Option<&'static str> {
        self.0.nearest
    }

    #[getter]
    fn module_settings(&self) -> Vec<&'static str> {
        self.0.module_settings.to_vec()
    }

    fn __repr__(&self) -> String {
        format!("CongestionRecord({:?})", self.0.name)
    }
}

/// Adds the class and the tables to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<CongestionRecord>()?;
    let records = PyDict::new(py);
    for record in RECORDS {
        records.set_item(record.name, Py::new(py, CongestionRecord(record))?)?;
    }
    module.add("CONGESTION", records)?;
    let elsewhere = PyDict::new(py);
    for (name, instead) in ELSEWHERE {
        elsewhere.set_item(name, instead)?;
    }
    module.add("CONGESTION_ELSEWHERE", elsewhere)
}
