//! The compiled code of user-defined disciplines and congestion controls. It has the only `unsafe`
//! of this crate: calls of C functions by their addresses.
//!
//! `sojourn.own` compiles a Python class by numba and passes the addresses of its functions, the
//! bytes of its state at its start, and its shape; see `_core.pyi`. Why a call is sound:
//!
//! - The addresses are those of functions that numba compiled with exactly this signature. They
//!   live as long as the Python object that owns them, which `Program` or `Control` keeps.
//! - A function gets pointers and keeps none of them. It reads and writes the state: a buffer of
//!   this law alone, of the size for which it was compiled, aligned to 8 bytes. It reads the packet
//!   and the link, the ACK, or the congestion signal: `sojourn/own/language.py` refuses code that
//!   writes to anything but the state, and every index is checked against the size of its array.
//! - The link has as many queues as the code was compiled for: both come from the same shape.
//! - A function does not unwind: an exception in it returns `FAILED`. It takes neither locks nor
//!   Python's lock, and does no I/O.

#![allow(unsafe_code)]

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use qdisc::own::{
    LINK_NUMBERS, OwnFailure, OwnLaw, OwnLink, OwnPacket, OwnProgram, OwnShape, PASS,
};
use std::collections::HashMap;
use std::sync::Arc;
use tcp::own::{
    OwnAck, OwnCongestion, OwnControlFailure, OwnControlLaw, OwnControlProgram, OwnDelivery,
    OwnWindow,
};

/// `int64_t decide(state *, const packet *, const link *)`; an unused argument is null.
type Decide = unsafe extern "C" fn(*mut u64, *const OwnPacket, *const i64) -> i64;

/// The first words of a state: the random stream's key, the reason of a failure, its line.
const RNG_KEY: usize = 0;
const WHY: usize = 1;
const LINE: usize = 2;
/// Index of a congestion control's cwnd, ssthresh and pacing rate, after the loops' counters.
const WINDOW: usize = 4;

pyo3::create_exception!(
    sojourn._core,
    OwnCodeError,
    pyo3::exceptions::PyException,
    "User-defined code failed: (file, class, function, time of its call in ns, its answer or None, \
     why, line)."
);

/// The failure of user-defined code as Python's exception, if the panic is such a failure.
pub fn raised(panic: &(dyn std::any::Any + Send)) -> Option<PyErr> {
    if let Some(failure) = panic.downcast_ref::<OwnFailure>() {
        return Some(of_discipline(failure));
    }
    panic.downcast_ref::<OwnControlFailure>().map(of_control)
}

/// The answer is the name and the value of the invalid variable that the code set.
fn of_control(failure: &OwnControlFailure) -> PyErr {
    let [file, class] = failure.law.clone();
    let [why, line] = failure.failed;
    let &OwnControlFailure { function, at_ns, set, .. } = failure;
    OwnCodeError::new_err((file, class, function, at_ns, set, why, line))
}

fn of_discipline(failure: &OwnFailure) -> PyErr {
    let [file, class] = failure.law.clone();
    let [why, line] = failure.failed;
    let OwnFailure { call, at_ns, answer, .. } = *failure;
    OwnCodeError::new_err((file, class, call, at_ns, answer, why, line))
}

/// A discipline's compiled code; see `_core.pyi`.
#[pyclass(frozen, module = "sojourn._core")]
pub struct OwnCode(Arc<Program>);

impl OwnCode {
    /// The program for a discipline's parameters.
    pub fn program(&self) -> Arc<dyn OwnProgram> {
        self.0.clone()
    }
}

#[pymethods]
impl OwnCode {
    /// `functions`: addresses by the names of the functions. A missing function gives the default
    /// answer.
    #[new]
    #[pyo3(signature = (functions, state, owner, *, queues, limit, timer = None, bypass = false))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        functions: HashMap<String, usize>,
        state: &Bound<'_, PyBytes>,
        owner: Py<PyAny>,
        queues: u32,
        limit: u64,
        timer: Option<u64>,
        bypass: bool,
    ) -> PyResult<OwnCode> {
        if queues == 0 {
            return Err(PyValueError::new_err("a law needs at least one queue"));
        }
        let state = words(state, LINE + 1)?;
        let of = |asked: &str| of(&functions, asked);
        let functions = Functions {
            enqueue: of("enqueue")?,
            overflow: of("overflow")?,
            choose: of("choose")?,
            dequeue: of("dequeue")?,
            idle: of("idle")?,
            timer: of("timer")?,
        };
        let overflows = functions.overflow.is_some();
        let timer = timer.filter(|_| functions.timer.is_some());
        let shape = OwnShape { queues, limit, timer, overflows, bypass };
        let owner = Arc::new(owner);
        Ok(OwnCode(Arc::new(Program { shape, functions, state, owner })))
    }
}

/// A state as words of 8 bytes, at least `least` of them.
fn words(state: &Bound<'_, PyBytes>, least: usize) -> PyResult<Vec<u64>> {
    let bytes = state.as_bytes();
    if bytes.len() < 8 * least || !bytes.len().is_multiple_of(8) {
        return Err(PyValueError::new_err(
            "the state is too short, or its length is not a multiple of 8 bytes",
        ));
    }
    Ok(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect())
}

fn of(functions: &HashMap<String, usize>, asked: &str) -> PyResult<Option<Decide>> {
    functions.get(asked).map(|address| function(*address)).transpose()
}

fn function(address: usize) -> PyResult<Decide> {
    if address == 0 {
        return Err(PyValueError::new_err("the address of a function is 0"));
    }
    // SAFETY: numba gave the address as that of a function of this signature (see above); a function
    // pointer is as wide as an address, and is not null.
    Ok(unsafe { std::mem::transmute::<usize, Decide>(address) })
}

#[derive(Clone, Copy)]
struct Functions {
    enqueue: Option<Decide>,
    overflow: Option<Decide>,
    choose: Option<Decide>,
    dequeue: Option<Decide>,
    idle: Option<Decide>,
    timer: Option<Decide>,
}

struct Program {
    shape: OwnShape,
    functions: Functions,
    /// The state at the start.
    state: Vec<u64>,
    /// The owner of the functions, which keeps them in memory.
    owner: Arc<Py<PyAny>>,
}

impl OwnProgram for Program {
    fn shape(&self) -> OwnShape {
        self.shape
    }

    fn begin(&self, key: u64) -> Box<dyn OwnLaw> {
        let mut state = self.state.clone();
        state[RNG_KEY] = key;
        Box::new(Law { functions: self.functions, state, _owner: self.owner.clone() })
    }
}

struct Law {
    functions: Functions,
    state: Vec<u64>,
    _owner: Arc<Py<PyAny>>,
}

impl Law {
    #[inline]
    fn ask(
        &mut self,
        decide: Option<Decide>,
        packet: Option<&OwnPacket>,
        link: &OwnLink,
    ) -> Option<i64> {
        debug_assert!(link.len() > LINK_NUMBERS);
        let packet = packet.map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: see the head of this file; all three live until the call returns.
        decide.map(|decide| unsafe { decide(self.state.as_mut_ptr(), packet, link.as_ptr()) })
    }
}

impl OwnLaw for Law {
    fn enqueue(&mut self, packet: &OwnPacket, link: &OwnLink) -> i64 {
        self.ask(self.functions.enqueue, Some(packet), link).unwrap_or(0)
    }

    fn overflow(&mut self, link: &OwnLink) -> i64 {
        self.ask(self.functions.overflow, None, link).unwrap_or(0)
    }

    fn choose(&mut self, link: &OwnLink) -> i64 {
        self.ask(self.functions.choose, None, link).unwrap_or(0)
    }

    fn dequeue(&mut self, packet: &OwnPacket, link: &OwnLink) -> i64 {
        self.ask(self.functions.dequeue, Some(packet), link).unwrap_or(PASS)
    }

    fn idle(&mut self, link: &OwnLink) -> i64 {
        self.ask(self.functions.idle, None, link).unwrap_or(0)
    }

    fn timer(&mut self, link: &OwnLink) -> i64 {
        self.ask(self.functions.timer, None, link).unwrap_or(i64::MAX)
    }

    fn failure(&self) -> [i64; 2] {
        [self.state[WHY], self.state[LINE]].map(|word| word as i64)
    }
}

/// A congestion control's compiled code; see `_core.pyi`.
#[pyclass(frozen, module = "sojourn._core")]
pub struct OwnControlCode(Arc<Control>);

impl OwnControlCode {
    /// The program for a flow's parameters.
    pub fn program(&self) -> Arc<dyn OwnControlProgram> {
        self.0.clone()
    }
}

#[pymethods]
impl OwnControlCode {
    #[new]
    #[pyo3(signature = (functions, state, owner, *, paces))]
    fn new(
        functions: HashMap<String, usize>,
        state: &Bound<'_, PyBytes>,
        owner: Py<PyAny>,
        paces: bool,
    ) -> PyResult<OwnControlCode> {
        let answers = Answers {
            on_ack: of(&functions, "on_ack")?,
            on_loss: of(&functions, "on_loss")?,
            on_ecn: of(&functions, "on_ecn")?,
            on_timeout: of(&functions, "on_timeout")?,
            on_delivery: of(&functions, "on_delivery")?,
        };
        let state = words(state, WINDOW + 3)?;
        Ok(OwnControlCode(Arc::new(Control { answers, state, paces, owner: Arc::new(owner) })))
    }
}

#[derive(Clone, Copy)]
struct Answers {
    on_ack: Option<Decide>,
    on_loss: Option<Decide>,
    on_ecn: Option<Decide>,
    on_timeout: Option<Decide>,
    on_delivery: Option<Decide>,
}

struct Control {
    answers: Answers,
    /// The state at the start.
    state: Vec<u64>,
    paces: bool,
    /// The owner of the functions, which keeps them in memory.
    owner: Arc<Py<PyAny>>,
}

impl OwnControlProgram for Control {
    fn paces(&self) -> bool {
        self.paces
    }

    fn samples(&self) -> bool {
        self.answers.on_delivery.is_some()
    }

    fn begin(&self) -> Box<dyn OwnControlLaw> {
        let (answers, state) = (self.answers, self.state.clone());
        Box::new(ControlLaw { answers, state, _owner: self.owner.clone() })
    }
}

struct ControlLaw {
    answers: Answers,
    state: Vec<u64>,
    _owner: Arc<Py<PyAny>>,
}

impl ControlLaw {
    /// All fields of `seen` are 64-bit numbers.
    #[inline]
    fn ask<T>(&mut self, decide: Option<Decide>, window: &mut OwnWindow, input: &T) -> Option<i64> {
        let decide = decide?;
        let [cwnd, ssthresh, rate] = &mut self.state[WINDOW..WINDOW + 3] else { unreachable!() };
        *cwnd = window.cwnd.to_bits();
        *ssthresh = window.ssthresh.to_bits();
        *rate = window.pacing_rate as u64;
        let input = std::ptr::from_ref(input).cast();
        // SAFETY: see the head of this file; both live until the call returns, and the third pointer
        // is not used.
        let answer = unsafe { decide(self.state.as_mut_ptr(), input, std::ptr::null()) };
        *window = OwnWindow {
            cwnd: f64::from_bits(self.state[WINDOW]),
            ssthresh: f64::from_bits(self.state[WINDOW + 1]),
            pacing_rate: self.state[WINDOW + 2] as i64,
        };
        Some(answer)
    }
}

impl OwnControlLaw for ControlLaw {
    fn on_ack(&mut self, window: &mut OwnWindow, ack: &OwnAck) -> Option<i64> {
        self.ask(self.answers.on_ack, window, ack)
    }

    fn on_loss(&mut self, window: &mut OwnWindow, event: &OwnCongestion) -> Option<i64> {
        self.ask(self.answers.on_loss, window, event)
    }

    fn on_ecn(&mut self, window: &mut OwnWindow, event: &OwnCongestion) -> Option<i64> {
        self.ask(self.answers.on_ecn, window, event)
    }

    fn on_timeout(&mut self, window: &mut OwnWindow, event: &OwnCongestion) -> Option<i64> {
        self.ask(self.answers.on_timeout, window, event)
    }

    fn on_delivery(&mut self, window: &mut OwnWindow, delivery: &OwnDelivery) -> Option<i64> {
        self.ask(self.answers.on_delivery, window, delivery)
    }

    fn seed(&mut self, key: u64) {
        self.state[RNG_KEY] = key;
    }

    fn failure(&self) -> [i64; 2] {
        [self.state[WHY], self.state[LINE]].map(|word| word as i64)
    }
}
