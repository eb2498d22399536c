//! The probe thread: it only sends requests at their times and reads replies, with a higher
//! priority than all other threads.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use probe::prober::{Counts, Prober, Sample};
use probe::sys::{self, Interest, Priority};
use probe::{Clock, Epoll, Timer};

/// The results of a probe thread.
#[derive(Debug)]
pub struct Probed {
    /// Samples in the order of settling.
    pub samples: Vec<Sample>,
    /// Totals by target.
    pub counts: Vec<Counts>,
    /// The thread's priority.
    pub priority: Priority,
}

/// The probe thread.
#[derive(Debug)]
pub struct Probing {
    stop: Arc<AtomicBool>,
    /// `None`: the thread has ended.
    thread: Option<JoinHandle<io::Result<()>>>,
    /// Settled samples, in parts; a channel, because the probe thread must not block.
    parts: Receiver<Probed>,
    so_far: Probed,
}

const TIMER: u64 = u64::MAX;
/// Longest interval between two checks whether to stop, ms.
const LOOK: u32 = 100;

impl Probing {
    /// Starts the thread. When stopped, it waits up to `linger` ns for outstanding replies.
    pub fn start(
        mut prober: Prober,
        targets: usize,
        clock: Clock,
        linger: i64,
    ) -> io::Result<Probing> {
        let stop = Arc::new(AtomicBool::new(false));
        let stop_flag = stop.clone();
        let (sender, parts) = channel();
        let thread = std::thread::Builder::new().name("probes".into()).spawn(move || {
            let priority = sys::prefer_thread();
            let report = |prober: &mut Prober| {
                let counts = (0..targets).map(|index| prober.counts(index)).collect();
                // The receiver may be gone after a failed session.
                let _ = sender.send(Probed { samples: prober.take(), counts, priority });
            };
            probe(&mut prober, &clock, &stop_flag, linger, &report)
        })?;
        let so_far = Probed {
            samples: Vec::new(),
            counts: vec![Counts::default(); targets],
            priority: Priority::Normal,
        };
        Ok(Probing { stop, thread: Some(thread), parts, so_far })
    }

    /// Reads the samples that have settled since the last call.
    pub fn update(&mut self) {
        for part in self.parts.try_iter() {
            self.so_far.samples.extend(part.samples);
            (self.so_far.counts, self.so_far.priority) = (part.counts, part.priority);
        }
    }

    /// Returns the samples up to the last `update`.
    pub fn so_far(&self) -> &Probed {
        &self.so_far
    }

    /// Ends the thread; then `so_far` is complete.
    pub fn finish(&mut self) -> io::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        self.update();
        ended
    }
}

fn probe(
    prober: &mut Prober,
    clock: &Clock,
    stop: &AtomicBool,
    linger: i64,
    report: &dyn Fn(&mut Prober),
) -> io::Result<()> {
    let mut epoll = Epoll::new()?;
    let timer = Timer::new()?;
    epoll.add(&timer, Interest::ReadableEdge, TIMER)?;
    for (index, socket) in prober.sockets().enumerate() {
        epoll.add(socket, Interest::Readable, index as u64)?;
    }
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
        // Requests first: they have a send time, whereas replies have timestamps.
        prober.do_due(clock);
        for event in happened.iter().filter(|event| event.token != TIMER) {
            prober.on_readable(event.token as usize, clock);
        }
        report(prober);
    }
    report(prober);
    Ok(())
}
