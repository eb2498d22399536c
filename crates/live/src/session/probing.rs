//! The probe thread: it does nothing but send requests when they are due and take replies in, and
//! it is preferred to all others.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use probe::prober::{Counts, Prober, Sample};
use probe::sys::{self, Interest, Priority};
use probe::{Clock, Epoll, Timer};

/// What a probe thread brought back.
#[derive(Debug)]
pub struct Probed {
    /// In order of settling.
    pub samples: Vec<Sample>,
    /// By target.
    pub counts: Vec<Counts>,
    /// How the thread ran.
    pub priority: Priority,
}

/// A probe thread.
#[derive(Debug)]
pub struct Probing {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Probed>>,
}

const TIMER: u64 = u64::MAX;
/// At least this often it is looked whether to stop, ms.
const LOOK: u32 = 100;

impl Probing {
    /// Begins. When it is stopped it waits up to `linger` ns for the replies to what is on the way.
    pub fn start(
        mut prober: Prober,
        targets: usize,
        clock: Clock,
        linger: i64,
    ) -> io::Result<Probing> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let thread = std::thread::Builder::new().name("probes".into()).spawn(move || {
            let priority = sys::prefer_thread();
            let samples = probe(&mut prober, &clock, &seen, linger)?;
            let counts = (0..targets).map(|index| prober.counts(index)).collect();
            Ok(Probed { samples, counts, priority })
        })?;
        Ok(Probing { stop, thread })
    }

    /// Ends it.
    pub fn finish(self) -> io::Result<Probed> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn probe(
    prober: &mut Prober,
    clock: &Clock,
    stop: &AtomicBool,
    linger: i64,
) -> io::Result<Vec<Sample>> {
    let mut epoll = Epoll::new()?;
    let timer = Timer::new()?;
    epoll.add(&timer, Interest::ReadableEdge, TIMER)?;
    for (index, socket) in prober.sockets().enumerate() {
        epoll.add(socket, Interest::Readable, index as u64)?;
    }
    let mut samples = Vec::new();
    let mut happened = Vec::new();
    let mut end = None;
    loop {
        if end.is_none() && stop.load(Ordering::Relaxed) {
            prober.stop();
            end = Some(clock.now() + linger);
        }
        let Some(due) = prober.next_due() else {
            break;
        };
        if end.is_some_and(|end| clock.now() >= end) {
            break;
        }
        timer.set(clock.monotonic(due))?;
        happened.clear();
        epoll.wait(Some(LOOK), &mut happened)?;
        // Requests first: they have a time to be sent at, replies have stamps.
        prober.do_due(clock);
        for event in happened.iter().filter(|event| event.token != TIMER) {
            prober.on_readable(event.token as usize, clock);
        }
        samples.extend(prober.take());
    }
    samples.extend(prober.take());
    Ok(samples)
}
