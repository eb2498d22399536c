//! The probe thread: it does nothing but send requests when they are due and take replies in, and
//! it is preferred to all others.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
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
    /// `None`: it has ended.
    thread: Option<JoinHandle<io::Result<()>>>,
    /// What settles, in parts: a channel, since the probe thread waits for nobody.
    parts: Receiver<Probed>,
    so_far: Probed,
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
        let (sender, parts) = channel();
        let thread = std::thread::Builder::new().name("probes".into()).spawn(move || {
            let priority = sys::prefer_thread();
            let told = |prober: &mut Prober| {
                let counts = (0..targets).map(|index| prober.counts(index)).collect();
                // Nobody is left to be told after a session that failed.
                let _ = sender.send(Probed { samples: prober.take(), counts, priority });
            };
            probe(&mut prober, &clock, &seen, linger, &told)
        })?;
        let so_far = Probed {
            samples: Vec::new(),
            counts: vec![Counts::default(); targets],
            priority: Priority::Normal,
        };
        Ok(Probing { stop, thread: Some(thread), parts, so_far })
    }

    /// Takes in what has settled by now.
    pub fn update(&mut self) {
        for part in self.parts.try_iter() {
            self.so_far.samples.extend(part.samples);
            (self.so_far.counts, self.so_far.priority) = (part.counts, part.priority);
        }
    }

    /// What had settled at the last `update`.
    pub fn so_far(&self) -> &Probed {
        &self.so_far
    }

    /// Ends it; `so_far` is the whole then.
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
    told: &dyn Fn(&mut Prober),
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
        // Requests first: they have a time to be sent at, replies have stamps.
        prober.do_due(clock);
        for event in happened.iter().filter(|event| event.token != TIMER) {
            prober.on_readable(event.token as usize, clock);
        }
        told(prober);
    }
    told(prober);
    Ok(())
}
