//! Probes, sessions and servers of live lines as a Python module, `sojourn_live._live`.
//!
//! `python/sojourn_live/_live.pyi` documents the arguments and results of each function, with their
//! types.

#[cfg(target_os = "linux")]
mod prober;
#[cfg(target_os = "linux")]
mod responsiveness;
#[cfg(target_os = "linux")]
mod session;

use pyo3::prelude::*;

#[cfg(target_os = "linux")]
fn add_linux(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("LOSSES", probe::prober::Loss::ALL.map(probe::prober::Loss::word).to_vec())?;
    module.add("MeasureError", module.py().get_type::<session::MeasureError>())?;
    module.add_class::<session::Server>()?;
    module.add_function(wrap_pyfunction!(session::measure, module)?)?;
    module.add_function(wrap_pyfunction!(session::endpoint, module)?)?;
    module.add_class::<prober::Prober>()?;
    module.add_function(wrap_pyfunction!(prober::route_device, module)?)?;
    module.add_function(wrap_pyfunction!(prober::device_bytes, module)?)?;
    module.add_class::<responsiveness::RpmServer>()?;
    module.add_function(wrap_pyfunction!(responsiveness::measure_rpm, module)?)
}

/// Fills the module.
#[pymodule]
fn _live(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    module.add("BUILD", env!("SOJOURN_LIVE_BUILD"))?;
    #[cfg(target_os = "linux")]
    add_linux(module)?;
    Ok(())
}
