//! `Server` and `measure`: the live crate without the GIL, which is taken now and then for Ctrl-C
//! and for the callbacks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use live::Failure;
use live::server::{self, Options, Owner, Stopper};
use live::session::{self, Measured, Plan, Watcher};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use arrays::tables;

pyo3::create_exception!(
    _live,
    MeasureError,
    pyo3::exceptions::PyException,
    "Nothing could be measured or served: (what and where, what to do)."
);

fn refusal(Failure { problem, hint }: Failure) -> PyErr {
    MeasureError::new_err((problem, hint))
}

/// Converts a panic, which is a broken invariant of ours, to a RuntimeError: Python's `except
/// Exception` must catch it.
pub fn unbroken<T>(outcome: std::thread::Result<T>) -> PyResult<T> {
    outcome.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
        PyRuntimeError::new_err(format!(
            "the measurement broke an invariant: {}",
            text.unwrap_or_default()
        ))
    })
}

/// A server; see `_live.pyi`.
#[pyclass]
pub struct Server {
    server: Mutex<server::Server>,
    stopper: Stopper,
    addresses: Vec<(String, u16)>,
}

#[pymethods]
impl Server {
    #[new]
    fn new(options_json: &str) -> PyResult<Server> {
        let options: Options = serde_json::from_str(options_json)
            .map_err(|e| PyValueError::new_err(format!("not a server's options: {e}")))?;
        let server = server::Server::bind(&options).map_err(refusal)?;
        let addresses = server.addresses().iter().map(|a| (a.ip().to_string(), a.port())).collect();
        Ok(Server { stopper: server.stopper(), server: Mutex::new(server), addresses })
    }

    /// Returns the bound addresses.
    #[getter]
    fn addresses(&self) -> Vec<(String, u16)> {
        self.addresses.clone()
    }

    /// Serves.
    #[pyo3(signature = (seconds = None, once = false, tell = None))]
    fn run(
        &self,
        py: Python<'_>,
        seconds: Option<f64>,
        once: bool,
        tell: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let until = seconds.map(|s| Instant::now() + Duration::from_secs_f64(s.clamp(0.0, 1e9)));
        let mut owner = Caller { until, callback: tell, keep: None, error: None, interrupt: None };
        let outcome = py.detach(|| {
            let server = self.server.try_lock().map_err(|_| "it serves already")?;
            Ok::<_, &str>(catch_unwind(AssertUnwindSafe(|| server.serve(once, &mut owner))))
        });
        let served = unbroken(outcome.map_err(PyRuntimeError::new_err)?)?;
        match owner.error {
            Some(error) => Err(error),
            None => Ok(served?),
        }
    }

    /// Ends `run`.
    fn stop(&self) {
        self.stopper.stop();
    }
}

/// The Python side of a server or a session.
struct Caller {
    until: Option<Instant>,
    callback: Option<Py<PyAny>>,
    /// Takes the results of a session so far.
    keep: Option<Py<PyAny>>,
    /// An exception from Python, which ends the work.
    error: Option<PyErr>,
    /// Ctrl-C.
    interrupt: Option<PyErr>,
}

impl Owner for Caller {
    fn report(&mut self, words: &str) {
        if let Some(callback) = &self.callback
            && let Err(error) = Python::attach(|py| callback.call1(py, (words,)).map(drop))
        {
            self.error.get_or_insert(error);
        }
    }

    fn go_on(&mut self) -> bool {
        if let Err(error) = Python::attach(|py| py.check_signals()) {
            self.error.get_or_insert(error);
        }
        self.error.is_none() && self.until.is_none_or(|until| Instant::now() < until)
    }
}

impl Watcher for Caller {
    fn reached(&mut self, now: i64, total: i64, phase: &str) -> bool {
        let go_on = Python::attach(|py| {
            py.check_signals()?;
            match &self.callback {
                Some(callback) => callback.call1(py, (now, total, phase))?.is_truthy(py),
                None => Ok(true),
            }
        });
        self.goes_on(go_on)
    }

    fn keeps(&self) -> bool {
        self.keep.is_some()
    }

    fn keep(&mut self, so_far: Measured) -> bool {
        let result = Python::attach(|py| {
            if let Some(keep) = &self.keep {
                keep.call1(py, results(py, &so_far)?)?;
            }
            Ok(true)
        });
        self.goes_on(result)
    }
}

impl Caller {
    fn goes_on(&mut self, answer: PyResult<bool>) -> bool {
        answer.unwrap_or_else(|error| {
            // Ctrl-C may also arrive while Python code runs.
            let ctrl_c = Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py));
            let slot = if ctrl_c { &mut self.interrupt } else { &mut self.error };
            slot.get_or_insert(error);
            false
        })
    }
}

/// Returns the tables, and the facts as JSON.
fn results<'py>(py: Python<'py>, measured: &Measured) -> PyResult<(Bound<'py, PyDict>, String)> {
    let facts = serde_json::to_string(&measured.facts).expect("facts are plain values");
    Ok((tables(py, &measured.tables)?, facts))
}

/// Does one session; see `_live.pyi`.
#[pyfunction]
#[pyo3(signature = (plan_json, reached = None, keep = None))]
pub fn measure<'py>(
    py: Python<'py>,
    plan_json: &str,
    reached: Option<Py<PyAny>>,
    keep: Option<Py<PyAny>>,
) -> PyResult<(Bound<'py, PyDict>, String)> {
    let plan =
        Plan::parse(plan_json).map_err(|e| PyValueError::new_err(format!("not a plan: {e}")))?;
    let mut watcher = Caller { until: None, callback: reached, keep, error: None, interrupt: None };
    let outcome =
        py.detach(|| catch_unwind(AssertUnwindSafe(|| session::measure(&plan, &mut watcher))));
    let measured = unbroken(outcome)?;
    if let Some(error) = watcher.error {
        return Err(error);
    }
    // After Ctrl-C, the results so far are returned, and the facts contain the outcome. Without
    // results, Ctrl-C is raised as usual.
    let measured =
        measured.map_err(|failure| watcher.interrupt.unwrap_or_else(|| refusal(failure)))?;
    results(py, &measured)
}

/// Returns host and port of a server's name; see `_live.pyi`.
#[pyfunction]
pub fn endpoint(text: &str) -> PyResult<(String, Option<u16>)> {
    session::endpoint(text).map_err(refusal)
}
