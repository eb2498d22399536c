//! Ctrl-C in work that does not hold Python's lock.

use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// Between two looks, in wall time.
const EVERY: Duration = Duration::from_millis(50);

/// Looks now and then whether Python has a signal to handle.
pub struct CtrlC {
    looked: Instant,
    raised: Option<PyErr>,
}

impl CtrlC {
    /// Begins to look.
    pub fn watched() -> CtrlC {
        CtrlC { looked: Instant::now(), raised: None }
    }

    /// Whether to go on. Called without Python's lock, as often as one likes.
    pub fn go_on(&mut self) -> bool {
        if self.looked.elapsed() >= EVERY {
            self.looked = Instant::now();
            self.raised = Python::attach(|py| py.check_signals()).err();
        }
        self.raised.is_none()
    }

    /// What the signal's handler raised.
    pub fn raised(self) -> Option<PyErr> {
        self.raised
    }
}
