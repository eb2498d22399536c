//! An isochronous prober: one request to each of several targets every interval, whatever became of
//! the one before.
//!
//! Target `i` of `n` has its slots at `start + i × interval / n + k × interval`, so that targets
//! don't get their requests at one moment. A slot is never moved: a request that goes out late says
//! by how much, and slots that have passed altogether (the program stood still) are left out and
//! counted, not made up for in a burst. A reply settles its request at once; one that has not come
//! within the timeout is lost, and counts as late should it come after all. A request that the
//! kernel would not send, or of which a router or the target says that it can't be delivered, is
//! lost at once, with the reason, and probing goes on.
//!
//! The caller owns clock and event loop: it adds `sockets` to its `Epoll`, calls `do_due` at
//! `next_due` and `on_readable` when a socket is, in any order, late or too often, and takes the
//! `Sample`s whenever it likes.
//!
//! Round trips end at the kernel's receive stamp, which is in time of day. It is put on the
//! caller's clock by the difference of the two as of its coming in, so a step of the time of day
//! moves no sample.

use std::collections::VecDeque;
use std::io::{self, Error, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::Clock;
use crate::bulk::set_ds;
use crate::echo::Echo;
use crate::icmp::{Pinger, unwrap_sequence};
use crate::sys::{self, Batch, Kind};

/// How a target is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// ICMP echo, which every host answers by itself unless told not to.
    Icmp,
    /// Our own echo to this UDP port, where someone turns datagrams round: a server of ours
    /// (`echo`), or any that sends back what it gets (RFC 862).
    Udp(u16),
}

/// Someone to probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where it is.
    pub address: IpAddr,
    /// How it is asked.
    pub way: Way,
    /// Bytes of a request behind the IP header (ICMP) or the UDP header; at least what either
    /// needs.
    pub size: usize,
    /// The DS field of its packets.
    pub ds: u8,
}

/// When requests are sent and given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The first slot of the first target, ns, on the caller's clock.
    pub start: i64,
    /// From slot to slot of one target, ns.
    pub interval: i64,
    /// A request without a reply for so long is lost, ns.
    pub timeout: i64,
}

/// Why there is no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Loss {
    /// None came in time.
    Timeout,
    /// ENETUNREACH: there is no route.
    NetworkUnreachable,
    /// EHOSTUNREACH: nobody at that address.
    HostUnreachable,
    /// ENETDOWN, ENODEV: the interface is down or gone.
    NetworkDown,
    /// ENOBUFS, EAGAIN: the interface's queue or the socket's buffer is full.
    NoBuffers,
    /// ECONNREFUSED: nobody listens at the UDP port.
    Refused,
    /// EPERM, EACCES: a packet filter or a route of type prohibit.
    Forbidden,
    /// EADDRNOTAVAIL: this host has no address to send from.
    NoAddress,
    /// The kernel said something else.
    Other,
}

impl Loss {
    /// All of them, in the order of their numbers.
    pub const ALL: [Loss; 9] = [
        Loss::Timeout,
        Loss::NetworkUnreachable,
        Loss::HostUnreachable,
        Loss::NetworkDown,
        Loss::NoBuffers,
        Loss::Refused,
        Loss::Forbidden,
        Loss::NoAddress,
        Loss::Other,
    ];

    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            Loss::Timeout => "no reply",
            Loss::NetworkUnreachable => "network unreachable",
            Loss::HostUnreachable => "host unreachable",
            Loss::NetworkDown => "interface down",
            Loss::NoBuffers => "no buffer space",
            Loss::Refused => "port closed",
            Loss::Forbidden => "forbidden",
            Loss::NoAddress => "no source address",
            Loss::Other => "send failed",
        }
    }

    fn of(error: &Error) -> Loss {
        match error.raw_os_error() {
            Some(libc::ENETUNREACH) => Loss::NetworkUnreachable,
            Some(libc::EHOSTUNREACH) => Loss::HostUnreachable,
            Some(libc::ENETDOWN | libc::ENODEV | libc::ENXIO) => Loss::NetworkDown,
            Some(libc::ENOBUFS | libc::EAGAIN | libc::ENOMEM) => Loss::NoBuffers,
            Some(libc::ECONNREFUSED) => Loss::Refused,
            Some(libc::EPERM | libc::EACCES) => Loss::Forbidden,
            Some(libc::EADDRNOTAVAIL) => Loss::NoAddress,
            _ => Loss::Other,
        }
    }
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A reply came.
    Reply {
        /// From before the request was sent to the kernel's receive stamp of the reply, ns.
        rtt: i64,
        /// When it turned round, ns on the far end's clock; our own echo says so.
        turned: Option<i64>,
        /// Which of the 64 requests up to this one the far end has heard (`Echo::heard`); 0: not
        /// told.
        heard: u64,
    },
    /// None did.
    Lost(Loss),
}

/// A request and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Which of the targets.
    pub target: usize,
    /// Counts the target's requests from 0.
    pub sequence: u64,
    /// When it was sent, ns, on the caller's clock.
    pub sent: i64,
    /// By how much that was after its slot, ns.
    pub lateness: i64,
    /// What became of it.
    pub outcome: Outcome,
}

/// Totals of one target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests, those among them that the kernel would not send.
    pub sent: u64,
    /// Replies in time.
    pub received: u64,
    /// Requests without one.
    pub lost: u64,
    /// Replies to requests that had been given up.
    pub late: u64,
    /// Further replies to one request.
    pub duplicate: u64,
    /// Slots that had passed before the caller came round to them.
    pub missed: u64,
}

/// Given-up requests that are remembered, so that a late reply is told from a second one.
const REMEMBERED: usize = 4096;

/// Probes targets.
pub struct Prober {
    aims: Vec<Aim>,
    timing: Timing,
    batch: Batch,
    settled: Vec<Sample>,
    stopped: bool,
}

impl Prober {
    /// Opens a socket for each target in the calling thread's namespace. ICMP identifiers count up
    /// from `identifier`; other probers of this host want others.
    pub fn new(targets: &[Target], timing: Timing, identifier: u16) -> io::Result<Prober> {
        let wrong = |text: &str| Err(Error::new(ErrorKind::InvalidInput, text));
        if timing.interval <= 0 || timing.timeout <= 0 {
            return wrong("interval and timeout must be above zero");
        }
        // ICMP's sequence numbers have 16 bits: two requests on the way may not share one.
        if timing.timeout / timing.interval > i64::from(u16::MAX / 2) {
            return wrong("the timeout is longer than 32767 intervals");
        }
        let mut aims = Vec::with_capacity(targets.len());
        for (i, target) in targets.iter().enumerate() {
            let phase = timing.interval as i128 * i as i128 / targets.len() as i128;
            let socket = Socket::open(target, identifier.wrapping_add(i as u16))
                .map_err(|e| Error::new(e.kind(), format!("{}: {e}", target.address)))?;
            aims.push(Aim {
                target: *target,
                socket,
                token: 0,
                due: timing.start + phase as i64,
                first: 0,
                outstanding: VecDeque::new(),
                given_up: VecDeque::new(),
                counts: Counts::default(),
            });
        }
        Ok(Prober { aims, timing, batch: Batch::new(16), settled: Vec::new(), stopped: false })
    }

    /// Lets a target's requests by our own echo bear this token, without which a server does not
    /// answer.
    pub fn bear(&mut self, index: usize, token: u64) {
        self.aims[index].token = token;
    }

    /// The sockets, in the order of the targets: `on_readable` wants to be told when one is
    /// readable.
    pub fn sockets(&self) -> impl Iterator<Item = &(impl AsRawFd + use<>)> {
        self.aims.iter().map(|aim| &aim.socket)
    }

    /// When there is something to do next, ns, on the caller's clock; `None`: never again.
    pub fn next_due(&self) -> Option<i64> {
        let sends = self.aims.iter().map(|aim| aim.due).filter(|_| !self.stopped);
        let ends = self.aims.iter().filter_map(Aim::oldest).map(|sent| sent + self.timing.timeout);
        sends.chain(ends).min()
    }

    /// Sends what is due and gives up what has waited for too long.
    pub fn do_due(&mut self, clock: &Clock) {
        for (index, aim) in self.aims.iter_mut().enumerate() {
            let mut record = Record { target: index, settled: &mut self.settled };
            let before = clock.now() - self.timing.timeout;
            if aim.oldest().is_some_and(|sent| sent <= before) {
                // A reply may have come in time and wait for a caller who stood still.
                aim.take_replies(&mut self.batch, clock, self.timing.timeout, &mut record);
                aim.give_up(before, &mut record);
            }
            // Read right before sending: what else was due may have taken some time.
            let now = clock.now();
            if !self.stopped && aim.due <= now {
                aim.send(now, self.timing.interval, &mut record);
            }
        }
    }

    /// Takes in the replies of a target, whose socket is readable.
    pub fn on_readable(&mut self, index: usize, clock: &Clock) {
        if let Some(aim) = self.aims.get_mut(index) {
            let mut record = Record { target: index, settled: &mut self.settled };
            aim.take_replies(&mut self.batch, clock, self.timing.timeout, &mut record);
        }
    }

    /// Sends nothing more. What is on the way still settles: until `next_due` is `None`.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// What has settled since the last call, in that order.
    pub fn take(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.settled)
    }

    /// Totals of a target.
    pub fn counts(&self, index: usize) -> Counts {
        self.aims[index].counts
    }
}

/// Where settled requests of one target go.
struct Record<'a> {
    target: usize,
    settled: &'a mut Vec<Sample>,
}

/// A request on the way.
#[derive(Clone, Copy, Debug)]
struct Request {
    sent: i64,
    lateness: i64,
    settled: bool,
}

/// A target and its requests.
struct Aim {
    target: Target,
    socket: Socket,
    /// What its requests by our own echo bear.
    token: u64,
    /// Its next slot.
    due: i64,
    /// The sequence number of the first of `outstanding`, which does not begin with a settled one.
    first: u64,
    outstanding: VecDeque<Request>,
    /// Sequence numbers, ascending.
    given_up: VecDeque<u64>,
    counts: Counts,
}

impl Aim {
    /// When the oldest request without a reply was sent.
    fn oldest(&self) -> Option<i64> {
        self.outstanding.front().map(|request| request.sent)
    }

    fn send(&mut self, now: i64, interval: i64, record: &mut Record) {
        let missed = (now - self.due) / interval;
        let slot = self.due + missed * interval;
        self.counts.missed += missed as u64;
        self.due = slot + interval;
        let sequence = self.counts.sent;
        self.counts.sent += 1;
        self.outstanding.push_back(Request { sent: now, lateness: now - slot, settled: false });
        let mut result = self.socket.send(&self.target, self.token, sequence, now);
        if result.as_ref().is_err_and(|error| Loss::of(error) != Loss::NoBuffers) {
            // It may be an earlier request that this is about: then nothing was sent.
            result = self.socket.send(&self.target, self.token, sequence, now);
        }
        if let Err(error) = result {
            self.lose(sequence, Loss::of(&error), record);
        }
    }

    /// Sequence number and turning time of a reply that came from there.
    fn read(&self, from: SocketAddr, bytes: &[u8]) -> Option<(u64, Option<Echo>)> {
        let latest = self.counts.sent.checked_sub(1)?;
        match (&self.socket, self.target.way) {
            (Socket::Udp(_), Way::Udp(port))
                if from == SocketAddr::new(self.target.address, port) =>
            {
                let echo = Echo::parse(bytes)?;
                // The upper half as with ICMP. A number that has not been sent yet is nobody's.
                let behind = u64::from((latest as u32).wrapping_sub(echo.sequence));
                Some((latest.checked_sub(behind)?, Some(echo)))
            }
            (Socket::Icmp(pinger), _) if from.ip() == self.target.address => {
                Some((unwrap_sequence(pinger.reply(bytes)?, latest), None))
            }
            _ => None,
        }
    }

    fn take_replies(
        &mut self,
        batch: &mut Batch,
        clock: &Clock,
        timeout: i64,
        record: &mut Record,
    ) {
        self.take_errors(batch, record);
        // An error is one that `take_errors` has told of; the socket no longer holds it.
        while let Ok(1..) = batch.receive(&self.socket).or_else(|_| batch.receive(&self.socket)) {
            for datagram in batch.datagrams() {
                let (Some(from), Some(stamp)) = (datagram.from, datagram.stamp) else {
                    continue;
                };
                if let Some((sequence, echo)) = self.read(from, datagram.bytes) {
                    let rtt = |sent| clock.just_stamped(stamp, sent) - sent;
                    self.reply(sequence, rtt, echo, timeout, record);
                }
            }
        }
    }

    /// Loses the requests of which someone says that they can't be delivered.
    fn take_errors(&mut self, batch: &mut Batch, record: &mut Record) {
        while let Ok(1..) = batch.receive_errors(&self.socket) {
            for datagram in batch.datagrams() {
                let Some((sequence, code)) = self.quoted(datagram.bytes).zip(datagram.error) else {
                    continue;
                };
                let at = sequence.checked_sub(self.first).map(|at| at as usize);
                if at
                    .and_then(|at| self.outstanding.get(at))
                    .is_some_and(|request| !request.settled)
                {
                    self.lose(sequence, Loss::of(&Error::from_raw_os_error(code)), record);
                }
            }
        }
    }

    /// Sequence number of a request as an error quotes it, which may be too little to tell.
    fn quoted(&self, bytes: &[u8]) -> Option<u64> {
        let latest = self.counts.sent.checked_sub(1)?;
        match &self.socket {
            Socket::Icmp(pinger) => Some(unwrap_sequence(pinger.request(bytes)?, latest)),
            Socket::Udp(_) => latest
                .checked_sub(u64::from((latest as u32).wrapping_sub(Echo::parse(bytes)?.sequence))),
        }
    }

    /// A reply to this request came; `rtt` tells its round trip from when it was sent.
    fn reply(
        &mut self,
        sequence: u64,
        rtt: impl Fn(i64) -> i64,
        echo: Option<Echo>,
        timeout: i64,
        record: &mut Record,
    ) {
        let request =
            sequence.checked_sub(self.first).and_then(|at| self.outstanding.get(at as usize));
        if let Some(request) = request.filter(|request| !request.settled) {
            let rtt = rtt(request.sent);
            if rtt <= timeout {
                self.counts.received += 1;
                // Whoever only sends back what he gets does not say when.
                let turned = echo.map(|echo| echo.turned).filter(|&turned| turned != 0);
                let heard = echo.map_or(0, |echo| echo.heard);
                self.settle(sequence, Outcome::Reply { rtt, turned, heard }, record);
                return;
            }
            // It came too late, and is taken in before it was given up.
            self.lose(sequence, Loss::Timeout, record);
        }
        match self.given_up.binary_search(&sequence) {
            Ok(at) => {
                self.given_up.remove(at);
                self.counts.late += 1;
            }
            Err(_) => self.counts.duplicate += 1,
        }
    }

    /// Gives up the requests that were sent at or before this time.
    fn give_up(&mut self, before: i64, record: &mut Record) {
        while self.oldest().is_some_and(|sent| sent <= before) {
            self.lose(self.first, Loss::Timeout, record);
        }
    }

    fn lose(&mut self, sequence: u64, loss: Loss, record: &mut Record) {
        self.counts.lost += 1;
        if self.given_up.len() == REMEMBERED {
            self.given_up.pop_front();
        }
        if let Err(at) = self.given_up.binary_search(&sequence) {
            self.given_up.insert(at, sequence);
        }
        self.settle(sequence, Outcome::Lost(loss), record);
    }

    fn settle(&mut self, sequence: u64, outcome: Outcome, record: &mut Record) {
        let request = &mut self.outstanding[(sequence - self.first) as usize];
        request.settled = true;
        let &mut Request { sent, lateness, .. } = request;
        record.settled.push(Sample { target: record.target, sequence, sent, lateness, outcome });
        while self.outstanding.front().is_some_and(|request| request.settled) {
            self.outstanding.pop_front();
            self.first += 1;
        }
    }
}

/// A target's socket. It is bound to no address: over days a host gets another one.
enum Socket {
    Icmp(Pinger),
    Udp(OwnedFd),
}

impl Socket {
    fn open(target: &Target, identifier: u16) -> io::Result<Socket> {
        let any: IpAddr = match target.address {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        match target.way {
            Way::Icmp => {
                // Another program's unprivileged socket may have the identifier; 0 would let the
                // kernel choose, unseen.
                let identifiers = (0..64).map(|more| identifier.wrapping_add(more * 257).max(1));
                let mut last = Error::from(ErrorKind::AddrInUse);
                for identifier in identifiers {
                    match Pinger::new(any, target.address, identifier, target.ds) {
                        Ok(pinger) => {
                            keep_errors(&pinger, any)?;
                            return Ok(Socket::Icmp(pinger));
                        }
                        Err(error) if error.kind() == ErrorKind::AddrInUse => last = error,
                        Err(error) => return Err(error),
                    }
                }
                Err(last)
            }
            Way::Udp(_) => {
                let fd = sys::socket(Kind::Datagram, any)?;
                sys::bind(&fd, SocketAddr::new(any, 0))?;
                sys::set_option(&fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
                set_ds(&fd, any, target.ds)?;
                keep_errors(&fd, any)?;
                Ok(Socket::Udp(fd))
            }
        }
    }

    fn send(&self, target: &Target, token: u64, sequence: u64, now: i64) -> io::Result<()> {
        match (self, target.way) {
            (Socket::Udp(fd), Way::Udp(port)) => {
                let echo = Echo { sequence: sequence as u32, sent: now, token, ..Echo::default() };
                let to = SocketAddr::new(target.address, port);
                sys::send_to(fd, &echo.write(target.size), to).map(drop)
            }
            (Socket::Icmp(pinger), _) => pinger.send(sequence as u16, target.size),
            (Socket::Udp(_), Way::Icmp) => unreachable!("a socket is opened for its target's way"),
        }
    }
}

/// Lets a socket keep what ICMP says of its requests.
fn keep_errors(fd: &impl AsRawFd, family: IpAddr) -> io::Result<()> {
    if family.is_ipv4() {
        sys::set_option(fd, libc::IPPROTO_IP, libc::IP_RECVERR, 1)
    } else {
        sys::set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Socket::Icmp(pinger) => pinger.as_raw_fd(),
            Socket::Udp(fd) => fd.as_raw_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{Epoll, Interest, Timer};

    const MS: i64 = 1_000_000;
    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn target(way: Way) -> Target {
        Target { address: HERE, way, size: 56, ds: 0 }
    }

    /// An echo server that turns round every `every`-th datagram, `delay` ns after it came,
    /// `copies` times.
    struct Far {
        fd: OwnedFd,
        held: VecDeque<(i64, SocketAddr, Vec<u8>)>,
        batch: Batch,
        delay: i64,
        every: u32,
        copies: usize,
    }

    impl Far {
        fn new(delay: i64, every: u32, copies: usize) -> (Far, Way) {
            let fd = sys::socket(Kind::Datagram, HERE).unwrap();
            sys::bind(&fd, SocketAddr::new(HERE, 0)).unwrap();
            let port = sys::local_address(&fd).unwrap().port();
            (
                Far { fd, held: VecDeque::new(), batch: Batch::new(16), delay, every, copies },
                Way::Udp(port),
            )
        }

        /// Takes in what has come and sends what is due; whether it sent anything.
        fn turn(&mut self, now: i64) -> bool {
            let mut sent = false;
            self.batch.receive(&self.fd).unwrap();
            for datagram in self.batch.datagrams() {
                let echo = Echo::parse(datagram.bytes).unwrap();
                if echo.sequence.is_multiple_of(self.every) {
                    let bytes = Echo { turned: 7_000 + i64::from(echo.sequence), ..echo }
                        .write(datagram.length);
                    self.held.push_back((now + self.delay, datagram.from.unwrap(), bytes));
                }
            }
            while self.held.front().is_some_and(|(at, ..)| *at <= now) {
                let (_, to, bytes) = self.held.pop_front().unwrap();
                for _ in 0..self.copies {
                    sys::send_to(&self.fd, &bytes, to).unwrap();
                }
                sent = true;
            }
            sent
        }
    }

    /// Drives a prober and the far end until `end`, then until all has settled.
    fn drive(prober: &mut Prober, clock: &Clock, end: i64, mut far: Option<Far>) -> Vec<Sample> {
        let mut epoll = Epoll::new().unwrap();
        let timer = Timer::new().unwrap();
        epoll.add(&timer, Interest::ReadableEdge, 1000).unwrap();
        for (i, socket) in prober.sockets().enumerate() {
            epoll.add(socket, Interest::Readable, i as u64).unwrap();
        }
        let mut happened = Vec::new();
        let mut samples = Vec::new();
        loop {
            if clock.now() >= end {
                prober.stop();
            }
            let Some(due) = prober.next_due() else {
                return samples;
            };
            timer.set(clock.monotonic(due)).unwrap();
            happened.clear();
            epoll.wait(Some(1), &mut happened).unwrap();
            prober.do_due(clock);
            if let Some(far) = &mut far {
                far.turn(clock.now());
            }
            for event in happened.iter().filter(|event| event.token < 1000) {
                prober.on_readable(event.token as usize, clock);
            }
            samples.extend(prober.take());
        }
    }

    fn of(samples: &[Sample], target: usize) -> Vec<Sample> {
        let mut of: Vec<Sample> = samples.iter().filter(|s| s.target == target).copied().collect();
        of.sort_by_key(|s| s.sequence);
        of
    }

    #[test]
    fn every_request_settles_once_in_its_slot() {
        let (far, way) = Far::new(0, 1, 1);
        let clock = Clock::starting_in(5 * MS);
        let timing = Timing { start: 0, interval: 10 * MS, timeout: 500 * MS };
        let mut prober = Prober::new(&[target(way), target(way)], timing, 1).unwrap();
        let samples = drive(&mut prober, &clock, 300 * MS, Some(far));
        for index in 0..2 {
            let own = of(&samples, index);
            let counts = prober.counts(index);
            assert!(own.iter().enumerate().all(|(i, s)| s.sequence == i as u64));
            assert_eq!(own.len() as u64, counts.sent);
            assert_eq!(counts.received, counts.sent);
            assert_eq!((counts.lost, counts.late, counts.duplicate), (0, 0, 0));
            assert!(counts.sent + counts.missed >= 29);
            for s in &own {
                // The slot of the second target lies half an interval after that of the first.
                assert_eq!((s.sent - s.lateness).rem_euclid(10 * MS), index as i64 * 5 * MS);
                assert!((0..10 * MS).contains(&s.lateness));
                let Outcome::Reply { rtt, turned, .. } = s.outcome else { panic!("{s:?}") };
                assert!(rtt > 0);
                assert_eq!(turned, Some(7_000 + s.sequence as i64));
            }
        }
    }

    #[test]
    fn what_is_not_answered_is_lost_and_the_rest_is_not() {
        let (far, way) = Far::new(0, 3, 1);
        let clock = Clock::starting_in(0);
        let timing = Timing { start: 0, interval: 5 * MS, timeout: 100 * MS };
        let mut prober = Prober::new(&[target(way)], timing, 1).unwrap();
        let samples = of(&drive(&mut prober, &clock, 200 * MS, Some(far)), 0);
        assert!(samples.len() > 10);
        for s in samples {
            let answered = matches!(s.outcome, Outcome::Reply { .. });
            assert_eq!(answered, s.sequence % 3 == 0, "{s:?}");
        }
    }

    #[test]
    fn a_late_reply_is_lost_and_late_and_a_second_one_is_a_duplicate() {
        let (far, way) = Far::new(60 * MS, 1, 2);
        let clock = Clock::starting_in(0);
        let timing = Timing { start: 0, interval: 10 * MS, timeout: 20 * MS };
        let mut prober = Prober::new(&[target(way)], timing, 1).unwrap();
        let samples = drive(&mut prober, &clock, 200 * MS, Some(far));
        let counts = prober.counts(0);
        assert!(samples.iter().all(|s| s.outcome == Outcome::Lost(Loss::Timeout)));
        assert_eq!(counts.lost, counts.sent);
        assert!(counts.late > 0 && counts.late.abs_diff(counts.duplicate) <= 1, "{counts:?}");
    }

    #[test]
    fn a_reply_that_waited_for_the_caller_is_judged_by_its_stamp() {
        let (mut far, way) = Far::new(0, 1, 1);
        let clock = Clock::starting_in(0);
        let timing = Timing { start: 0, interval: 1_000 * MS, timeout: 100 * MS };
        let mut prober = Prober::new(&[target(way)], timing, 1).unwrap();
        prober.do_due(&clock);
        while !far.turn(clock.now()) {}
        // Loopback may take a moment.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let stamped = clock.now();
        // The caller stands still for longer than the timeout.
        std::thread::sleep(std::time::Duration::from_millis(150));
        prober.do_due(&clock);
        let samples = prober.take();
        let [Sample { sent, outcome: Outcome::Reply { rtt, .. }, .. }] = samples[..] else {
            panic!("{samples:?}")
        };
        assert!(sent + rtt <= stamped);
        assert_eq!(prober.counts(0).lost, 0);
    }

    #[test]
    fn slots_that_have_passed_are_counted_and_not_made_up_for() {
        let (_far, way) = Far::new(0, 1, 1);
        // A second late for the first slot: a hundred slots have passed.
        let clock = Clock::starting_in(-1_000 * MS);
        let timing = Timing { start: 0, interval: 10 * MS, timeout: 20 * MS };
        let mut prober = Prober::new(&[target(way)], timing, 1).unwrap();
        prober.do_due(&clock);
        let counts = prober.counts(0);
        assert_eq!(counts.sent, 1);
        assert!(counts.missed >= 100);
        assert_eq!(prober.aims[0].due, (counts.missed as i64 + 1) * 10 * MS);
    }

    #[test]
    fn what_the_kernel_will_not_send_is_lost_at_once_and_probing_goes_on() {
        // Broadcasting is not allowed to a socket that has not asked for it; where no interface is
        // up there is no route.
        let nowhere = Target { address: IpAddr::from([255, 255, 255, 255]), ..target(Way::Udp(9)) };
        let (far, way) = Far::new(0, 1, 1);
        let clock = Clock::starting_in(0);
        let timing = Timing { start: 0, interval: 10 * MS, timeout: 500 * MS };
        let mut prober = Prober::new(&[nowhere, target(way)], timing, 1).unwrap();
        let samples = drive(&mut prober, &clock, 100 * MS, Some(far));
        let lost = of(&samples, 0);
        assert!(lost.len() > 5);
        assert!(lost.iter().all(|s| matches!(
            s.outcome,
            Outcome::Lost(Loss::Forbidden | Loss::NetworkUnreachable)
        )));
        assert_eq!(prober.counts(1).received, prober.counts(1).sent);
    }

    #[test]
    fn a_closed_port_is_told_and_every_request_to_it_is_sent() {
        for here in [HERE, IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            let Ok(fd) = sys::socket(Kind::Datagram, here) else { continue };
            // A host may have no IPv6.
            let Ok(()) = sys::bind(&fd, SocketAddr::new(here, 0)) else { continue };
            let way = Way::Udp(sys::local_address(&fd).unwrap().port());
            drop(fd);
            let clock = Clock::starting_in(0);
            let timing = Timing { start: 0, interval: 10 * MS, timeout: 20_000 * MS };
            let mut prober =
                Prober::new(&[Target { address: here, ..target(way) }], timing, 1).unwrap();
            let samples = drive(&mut prober, &clock, 200 * MS, None);
            assert!(samples.len() > 5);
            assert!(
                samples.iter().all(|s| s.outcome == Outcome::Lost(Loss::Refused)),
                "{samples:?}"
            );
        }
    }

    #[test]
    fn icmp_echo_comes_back_where_it_is_allowed() {
        let timing = Timing { start: 0, interval: 10 * MS, timeout: 500 * MS };
        let clock = Clock::starting_in(0);
        let targets = [target(Way::Icmp), target(Way::Icmp)];
        let mut prober = match Prober::new(&targets, timing, 40_000) {
            Ok(prober) => prober,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
                assert!(error.to_string().contains("ping_group_range"), "{error}");
                return;
            }
        };
        let samples = drive(&mut prober, &clock, 150 * MS, None);
        for index in 0..2 {
            let counts = prober.counts(index);
            assert_eq!(of(&samples, index).len() as u64, counts.sent);
            assert_eq!((counts.received, counts.duplicate), (counts.sent, 0));
        }
    }

    #[test]
    fn sequence_numbers_go_on_where_the_wire_s_wrap() {
        let (mut far, way) = Far::new(0, 1, 1);
        let clock = Clock::starting_in(0);
        let timing = Timing { start: 0, interval: 1, timeout: 30_000 };
        let mut prober = Prober::new(&[target(way)], timing, 1).unwrap();
        let before = u64::from(u32::MAX) - 1;
        prober.aims[0].counts.sent = before;
        prober.aims[0].first = before;
        for _ in 0..4 {
            let mut record = Record { target: 0, settled: &mut prober.settled };
            prober.aims[0].send(clock.now(), 1, &mut record);
        }
        let until = clock.now() + 1_000 * MS;
        while prober.counts(0).received < 4 && clock.now() < until {
            far.turn(clock.now());
            prober.on_readable(0, &clock);
        }
        let sequences: Vec<u64> = prober.take().iter().map(|s| s.sequence).collect();
        assert_eq!(sequences, [before, before + 1, before + 2, before + 3]);
    }

    #[test]
    fn a_timeout_that_icmp_can_t_tell_apart_is_refused() {
        let timing = Timing { start: 0, interval: MS, timeout: 40_000 * MS };
        let refused = Prober::new(&[target(Way::Udp(9))], timing, 1).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    }
}
