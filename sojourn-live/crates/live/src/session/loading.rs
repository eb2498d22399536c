//! The client's end of a load, on its own thread.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use probe::bulk::Options;
use probe::sys::{self, Interest, Kind};
use probe::{Clock, Epoll};

use crate::load::{Load, Row};
use crate::protocol::{self, Direction, Request};

/// The configuration of a load.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Direction of the data.
    pub direction: Direction,
    /// The load's number.
    pub number: u32,
    /// Connections.
    pub streams: usize,
    /// The server.
    pub server: SocketAddr,
    /// The token for the connections.
    pub token: u64,
    /// Congestion control, if this end sends.
    pub congestion: Option<String>,
    /// DSCP codepoint of the packets that this end sends.
    pub dscp: u8,
    /// Whether samples contain ECN's values.
    pub ecn: bool,
    /// Interval between samples, ns.
    pub interval: i64,
    /// Time limit for opening the connections, and for data in flight at the end, ns.
    pub patience: i64,
}

/// Commands to the thread. Until the first command the value is 0, and the thread opens the
/// connections.
const GO: u8 = 1;
const STOP: u8 = 2;
const ABANDON: u8 = 3;
/// Longest interval between two checks for a command, ms.
const LOOK: u32 = 2;

#[derive(Debug, Default)]
struct Shared {
    command: AtomicU8,
    /// Number of open connections.
    ready: AtomicI64,
}

/// The thread of a load.
#[derive(Debug)]
pub struct Loading {
    shared: Arc<Shared>,
    /// Returns an error message if the load failed.
    thread: JoinHandle<Option<String>>,
    rows: Receiver<Vec<Row>>,
}

impl Loading {
    /// Starts the thread, which opens the connections.
    pub fn start(spec: Spec, clock: Clock) -> io::Result<Loading> {
        let shared = Arc::new(Shared::default());
        let thread_shared = shared.clone();
        let (sender, rows) = channel();
        let thread = std::thread::Builder::new().name("load".into()).spawn(move || {
            sys::defer_thread();
            let load = Load::new(spec.direction == Direction::Up, spec.streams);
            let mut load = load.with_ecn(spec.ecn);
            let result = drive(&mut load, &spec, &clock, &thread_shared, &sender);
            // The receiver may be gone after a failed session.
            let _ = sender.send(load.take_rows());
            let broken = result.err().map(|e| e.to_string());
            broken.or(load.broken().map(str::to_string))
        })?;
        Ok(Loading { shared, thread, rows })
    }

    /// Returns the samples of this end since the last call, on our clock.
    pub fn take_rows(&self) -> impl Iterator<Item = Row> {
        self.rows.try_iter().flatten()
    }

    /// Returns the number of open connections.
    pub fn ready(&self) -> usize {
        self.shared.ready.load(Ordering::Relaxed) as usize
    }

    /// Whether the thread has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Begins to send.
    pub fn go(&self) {
        self.command(GO);
    }

    /// Stops sending; the thread continues until the receiving connections have ended.
    pub fn stop(&self) {
        self.command(STOP);
    }

    fn command(&self, what: u8) {
        self.shared.command.fetch_max(what, Ordering::Relaxed);
    }

    /// Ends the thread; returns its last samples, and an error message if it failed.
    pub fn finish(self) -> (Vec<Row>, Option<String>) {
        self.command(ABANDON);
        let broken = self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (self.rows.try_iter().flatten().collect(), broken)
    }
}

fn drive(
    load: &mut Load,
    spec: &Spec,
    clock: &Clock,
    shared: &Shared,
    rows: &Sender<Vec<Row>>,
) -> io::Result<()> {
    let mut epoll = Epoll::new()?;
    if !connect(load, spec, clock, shared, &mut epoll)? {
        return Ok(());
    }
    let mut happened = Vec::new();
    let mut due = None;
    let mut over = None;
    loop {
        let command = shared.command.load(Ordering::Relaxed);
        let now = clock.now();
        if due.is_none() && command >= GO {
            for (stream, fd) in load.go()? {
                epoll.add(&fd, Interest::Writable, stream as u64)?;
            }
            load.sample(now);
            due = Some(now + spec.interval);
        }
        if over.is_none() && command >= STOP {
            load.sample(now);
            load.stop();
            over = Some(now + spec.patience);
        }
        if let Some(at) = due
            && now >= at
            && over.is_none()
        {
            load.sample(now);
            let _ = rows.send(load.take_rows());
            due = Some(at + spec.interval * ((now - at) / spec.interval + 1));
        }
        if load.is_over() && (over.is_some() || load.sends())
            || over.is_some_and(|until| now >= until)
            || command == ABANDON
        {
            // A last sample: data that arrived after the phase counts for the connection only.
            if !load.sends() {
                load.sample(now);
            }
            load.close();
            return Ok(());
        }
        happened.clear();
        epoll.wait(Some(LOOK), &mut happened)?;
        for event in &happened {
            load.on_ready(event.token as usize, event.closed);
        }
    }
}

/// Opens all connections and sends the first line on each; returns false if it was stopped.
fn connect(
    load: &mut Load,
    spec: &Spec,
    clock: &Clock,
    shared: &Shared,
    epoll: &mut Epoll,
) -> io::Result<bool> {
    let any: IpAddr = match spec.server.ip() {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let options = Options {
        congestion: spec.congestion.clone().filter(|_| load.sends()),
        ds: spec.dscp << 2,
        ..Options::default()
    };
    let mut coming: Vec<Option<OwnedFd>> = Vec::new();
    for stream in 0..spec.streams {
        let fd = sys::socket(Kind::Stream, any)?;
        options.apply(&fd, any)?;
        sys::connect(&fd, spec.server)?;
        epoll.add(&fd, Interest::WritableEdge, stream as u64)?;
        coming.push(Some(fd));
    }
    let until = clock.now() + spec.patience;
    let mut happened = Vec::new();
    while coming.iter().any(Option::is_some) {
        if shared.command.load(Ordering::Relaxed) >= STOP {
            return Ok(false);
        }
        if clock.now() >= until {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "its connections were not established in time",
            ));
        }
        happened.clear();
        epoll.wait(Some(LOOK * 5), &mut happened)?;
        for event in &happened {
            let stream = event.token as usize;
            let Some(fd) = coming[stream].take() else {
                continue;
            };
            sys::take_error(&fd)?;
            let first =
                Request::Stream { token: spec.token, load: spec.number, stream: stream as u32 };
            let line = protocol::line(&first);
            // The first bytes of a connection always fit.
            if sys::send(&fd, &line)? != line.len() {
                return Err(io::Error::from(io::ErrorKind::WriteZero));
            }
            epoll.remove(&fd)?;
            if !load.sends() {
                epoll.add(&fd.as_raw_fd(), load.interest(), stream as u64)?;
            }
            load.add(stream, fd, 0);
            shared.ready.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(true)
}
