//! Measures what the path does to ECN and DSCP (`probe::marks`), on its own thread.
//!
//! First each field of `fields` is sent `ROUNDS` times in each direction. Upwards it is sent with a
//! reply of field 0; downwards it is the reply to a request of field 0. So a loss or change in one
//! direction does not affect the result of the other. From then on requests with ECT(0) and ECT(1)
//! alternate, in both directions: under load a queue that marks changes some of them to CE.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use probe::marks::{self, Marked};
use probe::sys::{self, Batch, Interest, Kind};
use probe::{Clock, Epoll, Timer};

use super::facts::{Arrived, MarkedLoad, MarkedPath, Marks};
use super::{MS, SECOND};
use crate::protocol::Direction;

/// ECN codepoints: RFC 3168, section 5.
pub const ECT_1: u8 = 0b01;
pub const ECT_0: u8 = 0b10;
const CE: u8 = 0b11;
/// DSCP codepoints that are tried besides the requested one: LE, CS1, AF41, NQB, EF.
const CODEPOINTS: [u8; 5] = [1, 8, 34, 45, 46];
/// Number of times that each field is sent in each direction at first.
const ROUNDS: u32 = 8;
/// Interval between requests at first, and later: ECT(0) and ECT(1) every 50 ms each.
const QUICK: i64 = 5 * MS;
const SLOW: i64 = 25 * MS;
/// Wait for the last replies of the first rounds, and at the end.
const LINGER: i64 = SECOND;
const TIMER: u64 = 1;
const SOCKET: u64 = 2;
/// Longest interval between two checks whether to stop, ms.
const LOOK: u32 = 100;

/// A request and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Send time, ns.
    pub t: i64,
    /// Whether it belongs to the first rounds.
    pub first: bool,
    /// The DS field of the request as sent.
    pub up: u8,
    /// The DS field of the request on arrival; `None`: no reply came.
    pub up_received: Option<u8>,
    /// The DS field of the reply as sent.
    pub down: u8,
    /// The DS field of the reply on arrival.
    pub down_received: Option<u8>,
}

/// Returns the DS fields to try: ECN's codepoints, then DSCP's.
pub fn fields(dscp: u8) -> Vec<u8> {
    let mut codepoints = CODEPOINTS.to_vec();
    if dscp != 0 && !codepoints.contains(&dscp) {
        codepoints.push(dscp);
    }
    [0, ECT_0, ECT_1, CE].into_iter().chain(codepoints.iter().map(|dscp| dscp << 2)).collect()
}

/// The server, and the client's data for requests.
#[derive(Clone, Copy, Debug)]
pub struct Destination {
    /// The server.
    pub server: SocketAddr,
    /// The token for requests.
    pub token: u64,
    /// DSCP codepoint of streams and probes.
    pub dscp: u8,
}

/// The thread that sends the requests.
#[derive(Debug)]
pub struct Marking {
    stop: Arc<AtomicBool>,
    fields_tried: Arc<AtomicBool>,
    requests: Shared,
    /// `None`: the thread has ended.
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// The requests so far.
type Shared = Arc<Mutex<Vec<Request>>>;

fn lock(requests: &Shared) -> MutexGuard<'_, Vec<Request>> {
    requests.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Marking {
    /// Starts the thread.
    pub fn start(destination: Destination, clock: Clock) -> io::Result<Marking> {
        let (stop, fields_tried) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (stop_flag, done) = (Arc::clone(&stop), Arc::clone(&fields_tried));
        let requests = Shared::default();
        let requester = Requester::new(destination, clock, Arc::clone(&requests))?;
        let thread = std::thread::Builder::new().name("marks".into()).spawn(move || {
            let ended = requester.run(&stop_flag, &done);
            done.store(true, Ordering::Relaxed);
            ended
        })?;
        Ok(Marking { stop, fields_tried, requests, thread: Some(thread) })
    }

    /// Whether all fields have been tried.
    pub fn is_through(&self) -> bool {
        self.fields_tried.load(Ordering::Relaxed)
    }

    /// Returns the requests so far.
    pub fn so_far(&self) -> Vec<Request> {
        lock(&self.requests).clone()
    }

    /// Ends the thread; then `so_far` is complete.
    pub fn finish(&mut self) -> io::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

struct Requester {
    destination: Destination,
    clock: Clock,
    socket: OwnedFd,
    batch: Batch,
    requests: Shared,
    answers: usize,
}

impl Requester {
    fn new(destination: Destination, clock: Clock, requests: Shared) -> io::Result<Requester> {
        let any: IpAddr = match destination.server.ip() {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = sys::socket(Kind::Datagram, any)?;
        sys::bind(&socket, SocketAddr::new(any, 0))?;
        marks::report_ds(&socket, any)?;
        Ok(Requester { destination, clock, socket, batch: Batch::new(16), requests, answers: 0 })
    }

    fn run(mut self, stop: &AtomicBool, fields_tried: &AtomicBool) -> io::Result<()> {
        let mut epoll = Epoll::new()?;
        let timer = Timer::new()?;
        epoll.add(&timer, Interest::ReadableEdge, TIMER)?;
        epoll.add(&self.socket, Interest::Readable, SOCKET)?;
        let fields = fields(self.destination.dscp);
        let round = fields.iter().flat_map(|&field| [(field, 0), (0, field)]);
        let first: Vec<(u8, u8)> = (0..ROUNDS).flat_map(|_| round.clone()).collect();
        let mut happened = Vec::new();
        let (mut due, mut end) = (self.clock.now(), None);
        loop {
            let now = self.clock.now();
            if end.is_none() && stop.load(Ordering::Relaxed) {
                end = Some(now + LINGER);
            }
            let (count, last) = {
                let requests = lock(&self.requests);
                (requests.len(), requests.last().map_or(now, |request| request.t))
            };
            if end.is_some_and(|end| now >= end || self.answers == count) {
                return Ok(());
            }
            if end.is_none() && now >= due {
                if let Some(&(up, down)) = first.get(count) {
                    self.ask(up, down, true);
                    due = now + QUICK;
                } else if fields_tried.load(Ordering::Relaxed) {
                    let ect = if count.is_multiple_of(2) { ECT_0 } else { ECT_1 };
                    let field = self.destination.dscp << 2 | ect;
                    self.ask(field, field, false);
                    due = (due + SLOW).max(now);
                } else if self.answers == count || now >= last + LINGER {
                    fields_tried.store(true, Ordering::Relaxed);
                } else {
                    due = now + QUICK;
                }
            }
            timer.set(self.clock.monotonic(due))?;
            happened.clear();
            epoll.wait(Some(LOOK), &mut happened)?;
            if happened.iter().any(|event| event.token == SOCKET) {
                self.receive();
            }
        }
    }

    fn ask(&mut self, up: u8, down: u8, first: bool) {
        let number = lock(&self.requests).len() as u32;
        let request =
            Marked { number, token: self.destination.token, reply_ds: down, request_ds: None };
        let t = self.clock.now();
        // If sending fails, there is no reply, as for a lost request.
        let _ = sys::send_marked(&self.socket, &request.write(), self.destination.server, up);
        let request = Request { t, first, up, up_received: None, down, down_received: None };
        lock(&self.requests).push(request);
    }

    fn receive(&mut self) {
        let mut all = lock(&self.requests);
        // An error belongs to an earlier request; reading it has cleared it.
        while let Ok(1..) =
            self.batch.receive(&self.socket).or_else(|_| self.batch.receive(&self.socket))
        {
            for datagram in
                self.batch.datagrams().filter(|d| d.from == Some(self.destination.server))
            {
                let Some(Marked { number, token, request_ds: Some(received), .. }) =
                    Marked::parse(datagram.bytes)
                else {
                    continue;
                };
                let request = all.get_mut(number as usize);
                let request =
                    request.filter(|r| r.up_received.is_none() && token == self.destination.token);
                if let (Some(request), Some(ds)) = (request, datagram.ds) {
                    (request.up_received, request.down_received) = (Some(received), Some(ds));
                    self.answers += 1;
                }
            }
        }
    }
}

/// Evaluates the requests. `phases` are the bounds of each phase.
pub fn evaluate(requests: &[Request], dscp: u8, phases: &[(i64, i64)]) -> Marks {
    let mut path = Vec::new();
    for direction in [Direction::Up, Direction::Down] {
        for &field in &fields(dscp) {
            let tried: Vec<&Request> = requests
                .iter()
                .filter(|request| request.first && field_of(request, direction).0 == field)
                // A request with field 0 in both directions counts for both.
                .filter(|request| field != 0 || opposite(request, direction) == 0)
                .collect();
            path.push(MarkedPath {
                direction,
                ds: field,
                sent: tried.len(),
                arrived: arrived(tried.iter().map(|request| field_of(request, direction).1)),
            });
        }
    }
    let mut loads = Vec::new();
    for (phase, bounds) in phases.iter().enumerate() {
        for direction in [Direction::Up, Direction::Down] {
            for ect in [ECT_0, ECT_1] {
                let field = dscp << 2 | ect;
                let sent: Vec<&Request> = requests
                    .iter()
                    .filter(|request| !request.first && (bounds.0..bounds.1).contains(&request.t))
                    .filter(|request| field_of(request, direction).0 == field)
                    .collect();
                loads.push(MarkedLoad {
                    phase,
                    direction,
                    ds: field,
                    sent: sent.len(),
                    arrived: arrived(sent.iter().map(|request| field_of(request, direction).1)),
                });
            }
        }
    }
    let answered = requests.iter().any(|request| request.up_received.is_some());
    Marks { answered, dscp, path, loads, tcp: Vec::new() }
}

/// Returns the DS field in this direction, as sent and on arrival.
fn field_of(request: &Request, direction: Direction) -> (u8, Option<u8>) {
    match direction {
        Direction::Up => (request.up, request.up_received),
        Direction::Down => (request.down, request.down_received),
    }
}

/// Returns the DS field that was sent in the opposite direction.
fn opposite(request: &Request, direction: Direction) -> u8 {
    match direction {
        Direction::Up => request.down,
        Direction::Down => request.up,
    }
}

/// Returns the DS fields on arrival, and how often each occurred.
fn arrived(received: impl Iterator<Item = Option<u8>>) -> Vec<Arrived> {
    let mut counts: BTreeMap<u8, usize> = BTreeMap::new();
    received.flatten().for_each(|ds| *counts.entry(ds).or_default() += 1);
    counts.into_iter().map(|(ds, count)| Arrived { ds, count }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(up: u8, down: u8, received: Option<(u8, u8)>) -> Request {
        let (up_received, down_received) = (received.map(|c| c.0), received.map(|c| c.1));
        Request { t: 0, first: true, up, up_received, down, down_received }
    }

    #[test]
    fn each_direction_is_judged_by_the_requests_that_carried_the_field_there() {
        // Upwards ECT(0) is cleared, downwards nothing changes.
        let all = [
            request(0, 0, Some((0, 0))),
            request(ECT_0, 0, Some((0, 0))),
            request(ECT_0, 0, None),
            request(0, ECT_0, Some((0, ECT_0))),
            Request { first: false, t: 7, ..request(ECT_0, ECT_0, Some((0, CE))) },
        ];
        let marks = evaluate(&all, 0, &[(0, 5), (5, 10)]);
        let counts = |direction, ds| {
            let path = marks.path.iter().find(|p| p.direction == direction && p.ds == ds).unwrap();
            (path.sent, path.arrived.iter().map(|a| (a.ds, a.count)).collect::<Vec<_>>())
        };
        assert_eq!(counts(Direction::Up, ECT_0), (2, vec![(0, 1)]));
        assert_eq!(counts(Direction::Down, ECT_0), (1, vec![(ECT_0, 1)]));
        assert_eq!(counts(Direction::Up, 0), (1, vec![(0, 1)]));
        let loaded: Vec<_> = marks.loads.iter().filter(|load| load.sent > 0).collect();
        assert_eq!(loaded.len(), 2);
        assert!(loaded.iter().all(|load| load.phase == 1 && load.ds == ECT_0));
        assert_eq!(loaded[1].arrived, [Arrived { ds: CE, count: 1 }]);
    }

    #[test]
    fn the_requested_codepoint_is_tried_too() {
        assert_eq!(fields(0).len(), 9);
        assert_eq!(fields(46), fields(0));
        assert_eq!(fields(10).last(), Some(&40));
    }
}
