//! Ctrl-C during work without Python's lock.

use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// Wall time between two checks.
const EVERY: Duration = Duration::from_millis(50);

/// Checks from time to time whether Python has a signal to handle.
pub struct CtrlC {
    looked: Instant,
    raised: Option<PyErr>,
}

impl CtrlC {
    /// Starts the checks.
    pub fn watched() -> CtrlC {
        CtrlC { looked: Instant::now(), raised: None }
    }

    /// Whether to continue. Called without Python's lock, as often as needed.
    pub fn go_on(&mut self) -> bool {
        if self.looked.elapsed() >= EVERY {
            self.looked = Instant::now();
            self.raised = Python::attach(|py| py.check_signals()).err();
        }
        self.raised.is_none()
    }

    /// The exception of the signal's handler.
    pub fn raised(self) -> Option<PyErr> {
        self.raised
    }
}
