//! `Prober`: a prober on its own thread, whose samples Python takes when it likes. Two functions
//! read the kernel for a monitor: the device on the way to an address, and a device's byte
//! counters.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use probe::netlink::Netlink;
use probe::prober::{Counts, Outcome, Prober as Probes, Protocol, Sample, Target, Timing};
use probe::sys::Interest;
use probe::{Clock, Epoll, Timer};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use arrays::array;

/// Stands for no value in a column.
const NONE: i64 = -1;
/// Epoll tokens above those of the targets.
const TIMER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;

/// The thread's results.
#[derive(Default)]
struct Shared {
    samples: Vec<Sample>,
    counts: Vec<Counts>,
    broken: Option<String>,
}

/// A prober on its own thread; see `_live.pyi`.
#[pyclass]
pub struct Prober {
    shared: Arc<Mutex<Shared>>,
    clock: Clock,
    /// Closing the writing end of the pipe ends the thread.
    running: Option<(JoinHandle<()>, io::PipeWriter)>,
}

#[pymethods]
impl Prober {
    #[new]
    #[pyo3(signature = (targets, interval_ns, timeout_ns, *, size = 56, ds = 0, identifier = 1))]
    fn new(
        targets: Vec<(String, Option<u16>)>,
        interval_ns: i64,
        timeout_ns: i64,
        size: usize,
        ds: u8,
        identifier: u16,
    ) -> PyResult<Prober> {
        let targets: Vec<Target> = targets
            .into_iter()
            .map(|(address, port)| {
                let protocol = port.map_or(Protocol::Icmp, Protocol::Udp);
                Ok(Target { address: parse(&address)?, protocol, size, ds })
            })
            .collect::<PyResult<_>>()?;
        let clock = Clock::starting_in(0);
        let timing = Timing { start: clock.now(), interval: interval_ns, timeout: timeout_ns };
        let probes = Probes::new(&targets, timing, identifier).map_err(python)?;
        let epoll = Epoll::new()?;
        let timer = Timer::new()?;
        let (ends, writer) = io::pipe()?;
        epoll.add(&timer, Interest::ReadableEdge, TIMER)?;
        epoll.add(&ends, Interest::Readable, STOP)?;
        for (index, socket) in probes.sockets().enumerate() {
            epoll.add(socket, Interest::Readable, index as u64)?;
        }
        let shared = Arc::new(Mutex::new(Shared::default()));
        let thread_shared = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("prober".into()).spawn(move || {
            // As far as its privileges allow: the thread mostly sleeps.
            probe::sys::prefer_thread();
            // The reading end lives as long as the thread waits for it.
            let _ends = ends;
            if let Err(error) = drive(probes, epoll, &timer, &clock, &thread_shared) {
                lock(&thread_shared).broken = Some(error.to_string());
            }
        })?;
        Ok(Prober { shared, clock, running: Some((thread, writer)) })
    }

    /// Returns the samples that have settled since the last call.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let samples = {
            let mut shared = lock(&self.shared);
            if let Some(broken) = &shared.broken {
                return Err(PyRuntimeError::new_err(format!(
                    "the prober's thread ended: {broken}"
                )));
            }
            std::mem::take(&mut shared.samples)
        };
        let columns = PyDict::new(py);
        let column =
            |of: &dyn Fn(&Sample) -> i64| array(py, &samples.iter().map(of).collect::<Vec<i64>>());
        columns.set_item("target", column(&|s| s.target as i64)?)?;
        columns.set_item("sequence", column(&|s| s.sequence as i64)?)?;
        columns.set_item("sent_ns", column(&|s| self.clock.monotonic(s.sent))?)?;
        columns.set_item("lateness_ns", column(&|s| s.lateness)?)?;
        columns.set_item("rtt_ns", column(&|s| reply(s).map_or(NONE, |(rtt, _)| rtt))?)?;
        columns.set_item(
            "turned_ns",
            column(&|s| reply(s).and_then(|(_, turned)| turned).unwrap_or(NONE))?,
        )?;
        columns.set_item(
            "loss",
            column(&|s| match s.outcome {
                Outcome::Lost(loss) => loss as i64,
                Outcome::Reply { .. } => NONE,
            })?,
        )?;
        Ok(columns)
    }

    /// Returns the totals of each target.
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let counts = lock(&self.shared).counts.clone();
        let all = counts.into_iter().map(|count| {
            let dict = PyDict::new(py);
            for (name, value) in [
                ("sent", count.sent),
                ("received", count.received),
                ("lost", count.lost),
                ("late", count.late),
                ("duplicate", count.duplicate),
                ("missed", count.missed),
            ] {
                dict.set_item(name, value)?;
            }
            Ok(dict)
        });
        all.collect()
    }

    /// Ends the thread.
    fn stop(&mut self, py: Python<'_>) {
        if let Some((thread, writer)) = self.running.take() {
            drop(writer);
            // `take` reports the thread's error.
            let _ = py.detach(|| thread.join());
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn reply(sample: &Sample) -> Option<(i64, Option<i64>)> {
    match sample.outcome {
        Outcome::Reply { rtt, turned, .. } => Some((rtt, turned)),
        Outcome::Lost(_) => None,
    }
}

/// Runs the thread: sleeps until a slot, a reply, a timeout or the end.
fn drive(
    mut probes: Probes,
    mut epoll: Epoll,
    timer: &Timer,
    clock: &Clock,
    shared: &Mutex<Shared>,
) -> io::Result<()> {
    let targets = probes.sockets().count();
    let mut happened = Vec::new();
    loop {
        if let Some(due) = probes.next_due() {
            timer.set(clock.monotonic(due))?;
        }
        happened.clear();
        epoll.wait(None, &mut happened)?;
        for event in &happened {
            match event.token {
                TIMER => probes.do_due(clock),
                STOP => return Ok(()),
                index => probes.on_readable(index as usize, clock),
            }
        }
        let mut shared = lock(shared);
        shared.samples.extend(probes.take());
        shared.counts.clear();
        shared.counts.extend((0..targets).map(|index| probes.counts(index)));
    }
}

/// Returns the index of the device on the way to an address.
#[pyfunction]
pub fn route_device(address: &str) -> PyResult<u32> {
    let address = parse(address)?;
    Ok(Netlink::new()?.route(address)?.device)
}

/// Returns the bytes that a device has received and sent since its creation.
#[pyfunction]
pub fn device_bytes(index: u32) -> PyResult<(u64, u64)> {
    let counters = Netlink::new()?.counters(index)?;
    Ok((counters.received_bytes, counters.sent_bytes))
}

fn parse(address: &str) -> PyResult<IpAddr> {
    address.parse().map_err(|_| PyValueError::new_err(format!("{address:?} is not an IP address")))
}

/// Maps an invalid argument to ValueError, other errors to the matching OSError.
fn python(error: io::Error) -> PyErr {
    match error.kind() {
        io::ErrorKind::InvalidInput => PyValueError::new_err(error.to_string()),
        _ => error.into(),
    }
}
