//! The compiled core as a Python module, `sojourn._core`: scenarios in, columns out.
//!
//! Only this crate, `arrays` and the extension of sojourn-live use Python.
//! `python/sojourn/_core.pyi` documents each function with its types.

mod congestion;
mod interrupt;
mod json;
mod metrics;
mod own;
mod quantities;
mod realised;
mod replay;
mod run;
mod scenario;
mod seed;
mod tables;
mod tc;
mod values;

use std::io::Read as _;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMapping};
use units::Rng;

/// The key of the random stream `name` in a run with this seed.
#[pyfunction]
fn rng_key(seed: u64, name: &str) -> u64 {
    Rng::key(seed, name)
}

/// Unpacks zstd, at most `most` bytes of it. Raises ValueError if it is damaged.
#[pyfunction]
fn unpack_zstd<'py>(py: Python<'py>, packed: &[u8], most: usize) -> PyResult<Bound<'py, PyBytes>> {
    let mut unpacked = Vec::new();
    zstd::stream::read::Decoder::new(packed)
        .and_then(|decoder| decoder.take(most as u64).read_to_end(&mut unpacked))
        .map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(PyBytes::new(py, &unpacked))
}

/// Fills the module.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("ENGINE", env!("SOJOURN_ENGINE"))?;
    module.add("TC", env!("SOJOURN_TC"))?;
    module.add("FILES", env!("SOJOURN_FILES"))?;
    module.add("METRICS", env!("SOJOURN_METRICS"))?;
    module.add("BUILD", env!("SOJOURN_BUILD"))?;
    module.add("CAUSES", sim::Cause::ALL.map(sim::Cause::word).to_vec())?;
    module.add("LATE_MS", ::metrics::LATE_MS)?;
    module.add("TABLES", tables::declared(module.py())?)?;
    module.add_class::<tables::ColumnInfo>()?;
    module.add_class::<tables::TableInfo>()?;
    module.add_class::<seed::SeedTables>()?;
    module.add_class::<metrics::Numbers>()?;
    PyMapping::register::<seed::SeedTables>(module.py())?;
    module.add_class::<own::OwnCode>()?;
    module.add_class::<own::OwnControlCode>()?;
    module.add("OwnCodeError", module.py().get_type::<own::OwnCodeError>())?;
    module.add("Cancelled", module.py().get_type::<run::Cancelled>())?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(run::watch, module)?)?;
    module.add_function(wrap_pyfunction!(replay::replay, module)?)?;
    module.add_function(wrap_pyfunction!(rng_key, module)?)?;
    module.add_function(wrap_pyfunction!(unpack_zstd, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::over_seeds, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::histogram_quantile, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::late_rate, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::distribution, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::jain, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::utilisation, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::mean_ci95, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::welch, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::student_t975, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::wire_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::bins_of, module)?)?;
    module.add_function(wrap_pyfunction!(metrics::bins_from, module)?)?;
    scenario::fill(module)?;
    realised::add_to(module)?;
    congestion::add_to(module)?;
    quantities::add_to(module)?;
    tc::add_to(module)?;
    module.add("LINUX", cfg!(target_os = "linux"))?;
    Ok(())
}
