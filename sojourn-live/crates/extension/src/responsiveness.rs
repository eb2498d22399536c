//! `RpmServer` and `measure_rpm`: responsiveness over HTTP/2, on their own threads, without the
//! GIL.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rpm::Problem;
use rpm::client::{Outcome, Plan, Reached, measure};
use rpm::server::{Options, Served, Server};

use crate::session::{MeasureError, unbroken};
use arrays::tables;

/// Interval between two checks for Ctrl-C.
const LOOK_EVERY: Duration = Duration::from_millis(50);

fn refusal(problem: Problem) -> PyErr {
    MeasureError::new_err((problem.problem, problem.hint))
}

/// A server for RPM clients; see `_live.pyi`.
#[pyclass]
pub struct RpmServer {
    // `None` after it was stopped.
    server: Mutex<Option<Server>>,
    addresses: Vec<(String, u16)>,
    certificate: Option<String>,
    last: Mutex<Served>,
}

#[pymethods]
impl RpmServer {
    #[new]
    fn new(py: Python<'_>, options_json: &str) -> PyResult<RpmServer> {
        let options: Options = serde_json::from_str(options_json)
            .map_err(|error| PyValueError::new_err(format!("not a server's options: {error}")))?;
        let server = py.detach(|| Server::start(&options)).map_err(refusal)?;
        Ok(RpmServer {
            addresses: server
                .addresses()
                .iter()
                .map(|at| (at.ip().to_string(), at.port()))
                .collect(),
            certificate: server.certificate().map(String::from),
            server: Mutex::new(Some(server)),
            last: Mutex::default(),
        })
    }

    #[getter]
    fn addresses(&self) -> Vec<(String, u16)> {
        self.addresses.clone()
    }

    #[getter]
    fn certificate(&self) -> Option<String> {
        self.certificate.clone()
    }

    fn served<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let served = py.detach(|| self.look());
        let all = PyDict::new(py);
        all.set_item("connections", served.connections)?;
        all.set_item("accepted", served.accepted)?;
        all.set_item("refused", served.refused)?;
        all.set_item("requests", served.requests)?;
        all.set_item("sent_bytes", served.sent_bytes)?;
        all.set_item("received_bytes", served.received_bytes)?;
        Ok(all)
    }

    #[pyo3(signature = (seconds = None, tell = None))]
    fn run(&self, py: Python<'_>, seconds: Option<f64>, tell: Option<Py<PyAny>>) -> PyResult<()> {
        let begun = Instant::now();
        let over = || seconds.is_some_and(|seconds| begun.elapsed().as_secs_f64() >= seconds);
        while !over() && py.detach(|| self.wait()) {
            py.check_signals()?;
            for words in self.lines() {
                if let Some(callback) = &tell {
                    callback.call1(py, (words,))?;
                }
            }
        }
        Ok(())
    }

    fn stop(&self, py: Python<'_>) {
        py.detach(|| {
            let server = self.server.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(server) = server {
                *self.last.lock().unwrap_or_else(PoisonError::into_inner) =
                    Served { connections: 0, ..server.served() };
            }
        });
    }
}

impl RpmServer {
    fn look(&self) -> Served {
        match &*self.server.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(server) => server.served(),
            None => *self.last.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    fn lines(&self) -> Vec<String> {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        server.as_ref().map(Server::take_lines).unwrap_or_default()
    }

    /// Waits for a moment; returns whether the server still runs.
    fn wait(&self) -> bool {
        std::thread::sleep(LOOK_EVERY);
        self.server.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// Does one measurement of responsiveness; see `_live.pyi`.
#[pyfunction]
#[pyo3(signature = (plan_json, reached = None, keep = None))]
pub fn measure_rpm<'py>(
    py: Python<'py>,
    plan_json: &str,
    reached: Option<Py<PyAny>>,
    keep: Option<Py<PyAny>>,
) -> PyResult<(Bound<'py, PyDict>, String)> {
    let plan: Plan = serde_json::from_str(plan_json)
        .map_err(|error| PyValueError::new_err(format!("not a plan: {error}")))?;
    let raised = Mutex::new(None);
    let goes_on = |answer: PyResult<bool>| {
        answer.unwrap_or_else(|error| {
            *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            false
        })
    };
    let mut progress = |now: &Reached| goes_on(go_on(now, reached.as_ref()));
    let mut keep = |so_far: &Outcome| {
        goes_on(Python::attach(|py| {
            if let Some(keep) = &keep {
                keep.call1(py, results(py, so_far, &plan)?)?;
            }
            Ok(true)
        }))
    };
    let outcome =
        unbroken(py.detach(|| {
            catch_unwind(AssertUnwindSafe(|| measure(&plan, &mut progress, &mut keep)))
        }))?;
    let raised = raised.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Ctrl-C ends the measurement and keeps the results so far. Other exceptions of the callback
    // are passed on to the caller.
    let outcome = match (outcome, raised) {
        (Ok(outcome), Some(error)) if error.is_instance_of::<PyKeyboardInterrupt>(py) => outcome,
        (_, Some(error)) => return Err(error),
        (outcome, None) => outcome.map_err(refusal)?,
    };
    results(py, &outcome, &plan)
}

/// Returns the tables, and the facts as JSON.
fn results<'py>(
    py: Python<'py>,
    outcome: &Outcome,
    plan: &Plan,
) -> PyResult<(Bound<'py, PyDict>, String)> {
    let facts = serde_json::to_string(&outcome.facts(plan)).expect("facts are plain values");
    Ok((tables(py, &outcome.tables())?, facts))
}

fn go_on(now: &Reached, reached: Option<&Py<PyAny>>) -> PyResult<bool> {
    Python::attach(|py| {
        py.check_signals()?;
        let Some(reached) = reached else { return Ok(true) };
        let stage = match now.stage {
            rpm::algorithm::Stage::Goodput => "goodput",
            rpm::algorithm::Stage::Responsiveness => "responsiveness",
            rpm::algorithm::Stage::Done => "done",
        };
        reached
            .call1(py, (now.elapsed_ns, now.phase, stage, now.intervals, now.goodput_bps))?
            .is_truthy(py)
    })
}
