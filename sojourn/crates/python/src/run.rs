//! `run` and `watch` drive the simulator without the GIL. `run` drives it in slices, checks the
//! clock and Ctrl-C in between, and keeps its tables in Rust until an array is requested. `watch`
//! calls a function from time to time with the state of the run.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use sim::{Scenario, Sim};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::own::{OwnCode, OwnControlCode, raised};
use crate::realised::Realised;
use crate::seed::SeedTables;

pyo3::create_exception!(
    sojourn._core,
    Cancelled,
    pyo3::exceptions::PyException,
    "The run was stopped before its end."
);

/// Events between two checks of the clock: a few milliseconds.
const SLICE: u64 = 1 << 16;
/// The same with user-defined code, which may take a tenth of a second for each event.
const OWN_SLICE: u64 = 1 << 4;
/// Wall time between two calls of the progress function.
const PROGRESS_EVERY: Duration = Duration::from_millis(50);

/// Runs a realised scenario to its end; see `_core.pyi`.
#[pyfunction]
#[pyo3(signature = (realised, progress = None, own = None, controls = None))]
pub fn run(
    py: Python<'_>,
    realised: &Realised,
    progress: Option<Py<PyAny>>,
    own: Option<HashMap<String, Py<OwnCode>>>,
    controls: Option<HashMap<String, Py<OwnControlCode>>>,
) -> PyResult<SeedTables> {
    let has_own = own.is_some() || controls.is_some();
    let slice = if has_own { OWN_SLICE } else { SLICE };
    let scenario = simulated(realised, own, controls)?;
    // A panic is a broken invariant of the simulator. It becomes an exception that Python's `except
    // Exception` catches; PyO3's own PanicException is a BaseException, like an exit request.
    let outcome =
        py.detach(|| catch_unwind(AssertUnwindSafe(|| drive(&scenario, slice, progress.as_ref()))));
    let tables = outcome.map_err(thrown)??;
    Ok(SeedTables::new(tables))
}

/// Runs a realised scenario for an observer; see `_core.pyi`.
#[pyfunction]
#[pyo3(signature = (realised, every_ns, look, own = None, controls = None))]
pub fn watch(
    py: Python<'_>,
    realised: &Realised,
    every_ns: u64,
    look: Py<PyAny>,
    own: Option<HashMap<String, Py<OwnCode>>>,
    controls: Option<HashMap<String, Py<OwnControlCode>>>,
) -> PyResult<()> {
    let scenario = simulated(realised, own, controls)?;
    py.detach(|| {
        catch_unwind(AssertUnwindSafe(|| follow(&scenario, every_ns, &look))).map_err(thrown)?
    })
}

/// The simulator's scenario, with the user's code.
fn simulated(
    realised: &Realised,
    own: Option<HashMap<String, Py<OwnCode>>>,
    controls: Option<HashMap<String, Py<OwnControlCode>>>,
) -> PyResult<Scenario> {
    let mut scenario = realised.simulated()?;
    let own = own.unwrap_or_default();
    for (link, run) in scenario.links.iter_mut().zip(realised.run_links()) {
        give_code(&mut link.qdisc, &run.qdisc.text(), &own);
    }
    let controls = controls.unwrap_or_default();
    for flow in &mut scenario.flows {
        if let Some(own) = flow.traffic.tcp_mut().and_then(|tcp| tcp.own.as_mut()) {
            own.code.0 = controls.get(&own.text()).map(|code| code.get().program());
        }
    }
    Ok(scenario)
}

/// Gives a user-defined discipline its compiled code: the entry of `own` for its words.
pub fn give_code(params: &mut qdisc::Params, words: &str, own: &HashMap<String, Py<OwnCode>>) {
    if let qdisc::Params::Own(params) = params {
        params.code.0 = own.get(words).map(|code| code.get().program());
    }
}

/// A panic as Python's exception.
pub fn thrown(panic: Box<dyn std::any::Any + Send>) -> PyErr {
    if let Some(raised) = raised(&*panic) {
        return raised;
    }
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
    PyRuntimeError::new_err(format!(
        "the simulator broke an invariant: {}",
        text.unwrap_or_default()
    ))
}

fn drive(
    scenario: &Scenario,
    slice: u64,
    progress: Option<&Py<PyAny>>,
) -> PyResult<Vec<tables::Table>> {
    let mut sim = Sim::new(scenario);
    let mut last = Instant::now();
    while !sim.run(slice) {
        if last.elapsed() < PROGRESS_EVERY {
            continue;
        }
        last = Instant::now();
        Python::attach(|py| {
            py.check_signals()?;
            match progress {
                Some(progress) if !progress.call1(py, (sim.now().0,))?.is_truthy(py)? => {
                    Err(Cancelled::new_err("stopped before its end"))
                }
                _ => Ok(()),
            }
        })?;
    }
    Ok(sim.into_tables())
}

fn follow(scenario: &Scenario, every_ns: u64, look: &Py<PyAny>) -> PyResult<()> {
    let mut sim = Sim::new(scenario);
    let mut next = 0;
    loop {
        let over = sim.run(1);
        if !over && sim.now().0 < next {
            continue;
        }
        next = sim.now().0 + every_ns;
        Python::attach(|py| {
            py.check_signals()?;
            let (packets, bytes): (Vec<u32>, Vec<u64>) =
                sim.backlogs().map(|backlog| (backlog.packets, backlog.bytes)).unzip();
            let cwnds: Vec<Option<u64>> = sim.cwnds().collect();
            look.call1(py, (sim.now().0, packets, bytes, cwnds))
        })?;
        if over {
            return Ok(());
        }
    }
}
