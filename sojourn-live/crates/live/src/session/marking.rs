//! What becomes of ECN and DSCP on the way (`probe::marks`), asked by a thread of its own.
//!
//! First each field of `fields` is sent `ROUNDS` times each way: there with an answer that bears
//! none, and back to a request that bears none, so that what is lost or changed one way says
//! nothing of the other. From then on requests with ECT(0) and with ECT(1) take turns, both ways:
//! under load a queue that marks turns some of them to CE.

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

/// ECN's fields: RFC 3168 §5.
pub const ECT_1: u8 = 0b01;
pub const ECT_0: u8 = 0b10;
const CE: u8 = 0b11;
/// Codepoints that are tried beside the one asked for: LE, CS1, AF41, NQB, EF.
const CODEPOINTS: [u8; 5] = [1, 8, 34, 45, 46];
/// How often each field is sent each way at first.
const ROUNDS: u32 = 8;
/// From request to request then, and later: each of ECT(0) and ECT(1) every 50 ms.
const QUICK: i64 = 5 * MS;
const SLOW: i64 = 25 * MS;
/// For the last answers of the beginning, and of the end.
const LINGER: i64 = SECOND;
const TIMER: u64 = 1;
const SOCKET: u64 = 2;
/// At least this often it is looked whether to stop, ms.
const LOOK: u32 = 100;

/// A request, and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When it was sent, ns.
    pub t: i64,
    /// Whether it is of the beginning.
    pub first: bool,
    /// The field it bore, and with which it came.
    pub there: u8,
    /// See above; `None`: no answer came.
    pub there_came: Option<u8>,
    /// The same of the answer.
    pub back: u8,
    /// The same of the answer.
    pub back_came: Option<u8>,
}

/// The fields that are tried: those of ECN, then codepoints.
pub fn fields(dscp: u8) -> Vec<u8> {
    let mut codepoints = CODEPOINTS.to_vec();
    if dscp != 0 && !codepoints.contains(&dscp) {
        codepoints.push(dscp);
    }
    [0, ECT_0, ECT_1, CE].into_iter().chain(codepoints.iter().map(|dscp| dscp << 2)).collect()
}

/// Whom to ask, and as whom.
#[derive(Clone, Copy, Debug)]
pub struct Whom {
    /// The server.
    pub server: SocketAddr,
    /// What requests must bear.
    pub token: u64,
    /// The codepoint of streams and probes.
    pub dscp: u8,
}

/// The thread.
#[derive(Debug)]
pub struct Marking {
    stop: Arc<AtomicBool>,
    tried: Arc<AtomicBool>,
    asked: Shared,
    /// `None`: it has ended.
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// The requests so far.
type Shared = Arc<Mutex<Vec<Asked>>>;

fn lock(asked: &Shared) -> MutexGuard<'_, Vec<Asked>> {
    asked.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Marking {
    /// Begins.
    pub fn start(whom: Whom, clock: Clock) -> io::Result<Marking> {
        let (stop, tried) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (seen, told) = (Arc::clone(&stop), Arc::clone(&tried));
        let asked = Shared::default();
        let asking = Asking::new(whom, clock, Arc::clone(&asked))?;
        let thread = std::thread::Builder::new().name("marks".into()).spawn(move || {
            let ended = asking.run(&seen, &told);
            told.store(true, Ordering::Relaxed);
            ended
        })?;
        Ok(Marking { stop, tried, asked, thread: Some(thread) })
    }

    /// Whether all fields have been tried.
    pub fn is_through(&self) -> bool {
        self.tried.load(Ordering::Relaxed)
    }

    /// What was asked by now.
    pub fn so_far(&self) -> Vec<Asked> {
        lock(&self.asked).clone()
    }

    /// Ends it; `so_far` is the whole then.
    pub fn finish(&mut self) -> io::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

struct Asking {
    whom: Whom,
    clock: Clock,
    socket: OwnedFd,
    batch: Batch,
    asked: Shared,
    answers: usize,
}

impl Asking {
    fn new(whom: Whom, clock: Clock, asked: Shared) -> io::Result<Asking> {
        let any: IpAddr = match whom.server.ip() {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = sys::socket(Kind::Datagram, any)?;
        sys::bind(&socket, SocketAddr::new(any, 0))?;
        marks::report_ds(&socket, any)?;
        Ok(Asking { whom, clock, socket, batch: Batch::new(16), asked, answers: 0 })
    }

    fn run(mut self, stop: &AtomicBool, tried: &AtomicBool) -> io::Result<()> {
        let mut epoll = Epoll::new()?;
        let timer = Timer::new()?;
        epoll.add(&timer, Interest::ReadableEdge, TIMER)?;
        epoll.add(&self.socket, Interest::Readable, SOCKET)?;
        let fields = fields(self.whom.dscp);
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
                let asked = lock(&self.asked);
                (asked.len(), asked.last().map_or(now, |one| one.t))
            };
            if end.is_some_and(|end| now >= end || self.answers == count) {
                return Ok(());
            }
            if end.is_none() && now >= due {
                if let Some(&(there, back)) = first.get(count) {
                    self.ask(there, back, true);
                    due = now + QUICK;
                } else if tried.load(Ordering::Relaxed) {
                    let ect = if count.is_multiple_of(2) { ECT_0 } else { ECT_1 };
                    let field = self.whom.dscp << 2 | ect;
                    self.ask(field, field, false);
                    due = (due + SLOW).max(now);
                } else if self.answers == count || now >= last + LINGER {
                    tried.store(true, Ordering::Relaxed);
                } else {
                    due = now + QUICK;
                }
            }
            timer.set(self.clock.monotonic(due))?;
            happened.clear();
            epoll.wait(Some(LOOK), &mut happened)?;
            if happened.iter().any(|event| event.token == SOCKET) {
                self.hear();
            }
        }
    }

    fn ask(&mut self, there: u8, back: u8, first: bool) {
        let number = lock(&self.asked).len() as u32;
        let request = Marked { number, token: self.whom.token, reply_ds: back, request_ds: None };
        let t = self.clock.now();
        // What can't be sent is not answered, as what is lost.
        let _ = sys::send_marked(&self.socket, &request.write(), self.whom.server, there);
        let asked = Asked { t, first, there, there_came: None, back, back_came: None };
        lock(&self.asked).push(asked);
    }

    fn hear(&mut self) {
        let mut all = lock(&self.asked);
        // An error is one of an earlier request, which the socket no longer holds.
        while let Ok(1..) =
            self.batch.receive(&self.socket).or_else(|_| self.batch.receive(&self.socket))
        {
            for datagram in self.batch.datagrams().filter(|d| d.from == Some(self.whom.server)) {
                let Some(Marked { number, token, request_ds: Some(came), .. }) =
                    Marked::parse(datagram.bytes)
                else {
                    continue;
                };
                let asked = all.get_mut(number as usize);
                let asked = asked.filter(|a| a.there_came.is_none() && token == self.whom.token);
                if let (Some(asked), Some(ds)) = (asked, datagram.ds) {
                    (asked.there_came, asked.back_came) = (Some(came), Some(ds));
                    self.answers += 1;
                }
            }
        }
    }
}

/// What they tell. `phases`: the bounds of each.
pub fn told(asked: &[Asked], dscp: u8, phases: &[(i64, i64)]) -> Marks {
    let mut path = Vec::new();
    for direction in [Direction::Up, Direction::Down] {
        for &field in &fields(dscp) {
            let tried: Vec<&Asked> = asked
                .iter()
                .filter(|one| one.first && of(one, direction).0 == field)
                // A request that bears none in both directions is of either.
                .filter(|one| field != 0 || other(one, direction) == 0)
                .collect();
            path.push(MarkedPath {
                direction,
                ds: field,
                sent: tried.len(),
                arrived: arrived(tried.iter().map(|one| of(one, direction).1)),
            });
        }
    }
    let mut loads = Vec::new();
    for (phase, bounds) in phases.iter().enumerate() {
        for direction in [Direction::Up, Direction::Down] {
            for ect in [ECT_0, ECT_1] {
                let field = dscp << 2 | ect;
                let sent: Vec<&Asked> = asked
                    .iter()
                    .filter(|one| !one.first && (bounds.0..bounds.1).contains(&one.t))
                    .filter(|one| of(one, direction).0 == field)
                    .collect();
                loads.push(MarkedLoad {
                    phase,
                    direction,
                    ds: field,
                    sent: sent.len(),
                    arrived: arrived(sent.iter().map(|one| of(one, direction).1)),
                });
            }
        }
    }
    let answered = asked.iter().any(|one| one.there_came.is_some());
    Marks { answered, dscp, path, loads, tcp: Vec::new() }
}

/// The field that was sent this way, and with which it came.
fn of(one: &Asked, direction: Direction) -> (u8, Option<u8>) {
    match direction {
        Direction::Up => (one.there, one.there_came),
        Direction::Down => (one.back, one.back_came),
    }
}

/// The field that was sent the other way.
fn other(one: &Asked, direction: Direction) -> u8 {
    match direction {
        Direction::Up => one.back,
        Direction::Down => one.there,
    }
}

/// With which fields, how many each.
fn arrived(came: impl Iterator<Item = Option<u8>>) -> Vec<Arrived> {
    let mut counts: BTreeMap<u8, usize> = BTreeMap::new();
    came.flatten().for_each(|ds| *counts.entry(ds).or_default() += 1);
    counts.into_iter().map(|(ds, count)| Arrived { ds, count }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(there: u8, back: u8, came: Option<(u8, u8)>) -> Asked {
        let (there_came, back_came) = (came.map(|c| c.0), came.map(|c| c.1));
        Asked { t: 0, first: true, there, there_came, back, back_came }
    }

    #[test]
    fn each_way_is_told_by_the_requests_that_bore_the_field_that_way() {
        // On the way there ECT(0) is bleached, on the way back nothing happens.
        let all = [
            asked(0, 0, Some((0, 0))),
            asked(ECT_0, 0, Some((0, 0))),
            asked(ECT_0, 0, None),
            asked(0, ECT_0, Some((0, ECT_0))),
            Asked { first: false, t: 7, ..asked(ECT_0, ECT_0, Some((0, CE))) },
        ];
        let marks = told(&all, 0, &[(0, 5), (5, 10)]);
        let of = |direction, ds| {
            let one = marks.path.iter().find(|p| p.direction == direction && p.ds == ds).unwrap();
            (one.sent, one.arrived.iter().map(|a| (a.ds, a.count)).collect::<Vec<_>>())
        };
        assert_eq!(of(Direction::Up, ECT_0), (2, vec![(0, 1)]));
        assert_eq!(of(Direction::Down, ECT_0), (1, vec![(ECT_0, 1)]));
        assert_eq!(of(Direction::Up, 0), (1, vec![(0, 1)]));
        let loaded: Vec<_> = marks.loads.iter().filter(|load| load.sent > 0).collect();
        assert_eq!(loaded.len(), 2);
        assert!(loaded.iter().all(|load| load.phase == 1 && load.ds == ECT_0));
        assert_eq!(loaded[1].arrived, [Arrived { ds: CE, count: 1 }]);
    }

    #[test]
    fn the_codepoint_asked_for_is_tried_too() {
        assert_eq!(fields(0).len(), 9);
        assert_eq!(fields(46), fields(0));
        assert_eq!(fields(10).last(), Some(&40));
    }
}
