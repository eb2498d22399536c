//! An isochronous prober: it sends one request to each of several targets in every interval,
//! whatever the outcome of the previous request.
//!
//! Target `i` of `n` has its slots at `start + i × interval / n + k × interval`, so requests to
//! different targets are spread out. A slot never moves: a late request records its lateness. Slots
//! that have passed entirely, because the program was suspended, are skipped and counted, not sent
//! in a burst. A reply settles its request at once. A request without a reply within the timeout is
//! lost; a reply after the timeout counts as late. A request is lost at once, with the reason, if
//! the kernel refuses to send it, or if a router or the target reports that it can't be delivered.
//! Probing goes on.
//!
//! The caller owns the clock and the event loop. It adds `sockets` to its `Epoll`, calls `do_due`
//! at `next_due`, and calls `on_readable` when a socket is readable. The calls may come in any
//! order, late or too often. The caller takes the `Sample`s whenever it likes.
//!
//! A round trip ends at the kernel's receive timestamp, which is in time of day. The difference of
//! the two clocks at that moment converts it to the caller's clock, so a step of the time of day
//! changes no sample.

use std::collections::VecDeque;
use std::io::{self, Error, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::Clock;
use crate::bulk::set_ds;
use crate::echo::Echo;
use crate::icmp::{Pinger, unwrap_sequence};
use crate::sys::{self, Batch, Kind};

/// The protocol of requests to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// ICMP echo, which every host answers unless configured not to.
    Icmp,
    /// Our own echo to this UDP port. A server of ours answers (`echo`), or any server that returns
    /// each datagram unchanged (RFC 862).
    Udp(u16),
}

/// A host to probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The host's address.
    pub address: IpAddr,
    /// The protocol of the requests.
    pub protocol: Protocol,
    /// Bytes of a request after the IP header (ICMP) or after the UDP header. Smaller sizes than
    /// the protocol's header are raised to it.
    pub size: usize,
    /// The DS field of the requests.
    pub ds: u8,
}

/// Send times and timeout of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The first slot of the first target, ns, on the caller's clock.
    pub start: i64,
    /// Interval between slots of one target, ns.
    pub interval: i64,
    /// A request without a reply after this time is lost, ns.
    pub timeout: i64,
}

/// Reason why there is no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Loss {
    /// No reply came in time.
    Timeout,
    /// ENETUNREACH: there is no route.
    NetworkUnreachable,
    /// EHOSTUNREACH: the address does not answer.
    HostUnreachable,
    /// ENETDOWN, ENODEV: the interface is down or gone.
    NetworkDown,
    /// ENOBUFS, EAGAIN: the interface's queue or the socket's buffer is full.
    NoBuffers,
    /// ECONNREFUSED: the UDP port is closed.
    Refused,
    /// EPERM, EACCES: a packet filter or a route of type prohibit.
    Forbidden,
    /// EADDRNOTAVAIL: this host has no address to send from.
    NoAddress,
    /// The kernel reported another error.
    Other,
}

impl Loss {
    /// All reasons, in the order of their numbers.
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

    /// Returns the reason in words.
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

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A reply came.
    Reply {
        /// From just before the request was sent to the kernel's receive timestamp of the reply,
        /// ns.
        rtt: i64,
        /// Time at which the server returned it, ns on the server's clock; only in our own echo.
        turned: Option<i64>,
        /// Which of the last 64 requests, up to this one, reached the server
        /// (`Echo::received_bits`); 0: unknown.
        received_bits: u64,
    },
    /// No reply came.
    Lost(Loss),
}

/// A request and its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Index of the target.
    pub target: usize,
    /// Number of the request among the target's, from 0.
    pub sequence: u64,
    /// Send time, ns, on the caller's clock.
    pub sent: i64,
    /// Send time minus slot, ns.
    pub lateness: i64,
    /// Outcome.
    pub outcome: Outcome,
}

/// Totals of one target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests, including those that the kernel refused to send.
    pub sent: u64,
    /// Replies within the timeout.
    pub received: u64,
    /// Requests without a reply in time.
    pub lost: u64,
    /// Replies after the timeout.
    pub late: u64,
    /// Additional replies to one request.
    pub duplicate: u64,
    /// Slots that had passed before the caller called `do_due`.
    pub missed: u64,
}

/// Number of lost requests that are remembered, to distinguish a late reply from a duplicate.
const REMEMBERED: usize = 4096;

/// Probes several targets.
pub struct Prober {
    states: Vec<TargetState>,
    timing: Timing,
    batch: Batch,
    settled: Vec<Sample>,
    stopped: bool,
}

impl Prober {
    /// Opens a socket for each target in the calling thread's namespace. ICMP identifiers count up
    /// from `identifier`; another prober on this host needs other identifiers.
    pub fn new(targets: &[Target], timing: Timing, identifier: u16) -> io::Result<Prober> {
        let wrong = |text: &str| Err(Error::new(ErrorKind::InvalidInput, text));
        if timing.interval <= 0 || timing.timeout <= 0 {
            return wrong("interval and timeout must be above zero");
        }
        // ICMP's sequence numbers have 16 bits: two outstanding requests must not share one.
        if timing.timeout / timing.interval > i64::from(u16::MAX / 2) {
            return wrong("the timeout is longer than 32767 intervals");
        }
        let mut states = Vec::with_capacity(targets.len());
        for (i, target) in targets.iter().enumerate() {
            let phase = timing.interval as i128 * i as i128 / targets.len() as i128;
            let socket = Socket::open(target, identifier.wrapping_add(i as u16))
                .map_err(|e| Error::new(e.kind(), format!("{}: {e}", target.address)))?;
            states.push(TargetState {
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
        Ok(Prober { states, timing, batch: Batch::new(16), settled: Vec::new(), stopped: false })
    }

    /// Sets the token of a target's requests by our own echo. A server ignores requests without a
    /// token.
    pub fn set_token(&mut self, index: usize, token: u64) {
        self.states[index].token = token;
    }

    /// Returns the sockets in the order of the targets. Call `on_readable` when one is readable.
    pub fn sockets(&self) -> impl Iterator<Item = &(impl AsRawFd + use<>)> {
        self.states.iter().map(|state| &state.socket)
    }

    /// Returns the time of the next action, ns, on the caller's clock; `None`: there is none.
    pub fn next_due(&self) -> Option<i64> {
        let sends = self.states.iter().map(|state| state.due).filter(|_| !self.stopped);
        let ends = self
            .states
            .iter()
            .filter_map(TargetState::oldest)
            .map(|sent| sent + self.timing.timeout);
        sends.chain(ends).min()
    }

    /// Sends the requests that are due, and gives up those that have reached the timeout.
    pub fn do_due(&mut self, clock: &Clock) {
        for (index, state) in self.states.iter_mut().enumerate() {
            let mut sink = SampleSink { target: index, settled: &mut self.settled };
            let before = clock.now() - self.timing.timeout;
            if state.oldest().is_some_and(|sent| sent <= before) {
                // A reply may have arrived in time and wait in the socket because the caller was
                // suspended.
                state.take_replies(&mut self.batch, clock, self.timing.timeout, &mut sink);
                state.give_up(before, &mut sink);
            }
            // Read just before sending: the other targets may have taken some time.
            let now = clock.now();
            if !self.stopped && state.due <= now {
                state.send(now, self.timing.interval, &mut sink);
            }
        }
    }

    /// Reads the replies of a target whose socket is readable.
    pub fn on_readable(&mut self, index: usize, clock: &Clock) {
        if let Some(state) = self.states.get_mut(index) {
            let mut sink = SampleSink { target: index, settled: &mut self.settled };
            state.take_replies(&mut self.batch, clock, self.timing.timeout, &mut sink);
        }
    }

    /// Sends no more requests. Outstanding requests still settle, until `next_due` is `None`.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Returns the samples settled since the last call, in the order of settling.
    pub fn take(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.settled)
    }

    /// Returns the totals of a target.
    pub fn counts(&self, index: usize) -> Counts {
        self.states[index].counts
    }
}

/// Destination of one target's samples.
struct SampleSink<'a> {
    target: usize,
    settled: &'a mut Vec<Sample>,
}

/// An outstanding request.
#[derive(Clone, Copy, Debug)]
struct Request {
    sent: i64,
    lateness: i64,
    settled: bool,
}

/// A target, its socket and its requests.
struct TargetState {
    target: Target,
    socket: Socket,
    /// Token of the requests by our own echo.
    token: u64,
    /// The next slot.
    due: i64,
    /// Sequence number of the first of `outstanding`, which is never a settled request.
    first: u64,
    outstanding: VecDeque<Request>,
    /// Sequence numbers, in ascending order.
    given_up: VecDeque<u64>,
    counts: Counts,
}

impl TargetState {
    /// Returns the send time of the oldest request without a reply.
    fn oldest(&self) -> Option<i64> {
        self.outstanding.front().map(|request| request.sent)
    }

    fn send(&mut self, now: i64, interval: i64, sink: &mut SampleSink) {
        let missed = (now - self.due) / interval;
        let slot = self.due + missed * interval;
        self.counts.missed += missed as u64;
        self.due = slot + interval;
        let sequence = self.counts.sent;
        self.counts.sent += 1;
        self.outstanding.push_back(Request { sent: now, lateness: now - slot, settled: false });
        let mut result = self.socket.send(&self.target, self.token, sequence, now);
        if result.as_ref().is_err_and(|error| Loss::of(error) != Loss::NoBuffers) {
            // The error may belong to an earlier request; then nothing was sent.
            result = self.socket.send(&self.target, self.token, sequence, now);
        }
        if let Err(error) = result {
            self.lose(sequence, Loss::of(&error), sink);
        }
    }

    /// Returns the sequence number of a reply, and the echo if it is one of ours.
    fn read(&self, from: SocketAddr, bytes: &[u8]) -> Option<(u64, Option<Echo>)> {
        let latest = self.counts.sent.checked_sub(1)?;
        match (&self.socket, self.target.protocol) {
            (Socket::Udp(_), Protocol::Udp(port))
                if from == SocketAddr::new(self.target.address, port) =>
            {
                let echo = Echo::parse(bytes)?;
                // The upper half is restored as for ICMP. A number that was not sent yet belongs to
                // no request.
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
        sink: &mut SampleSink,
    ) {
        self.take_errors(batch, sink);
        // An error here was already read by `take_errors`, and the call has cleared it.
        while let Ok(1..) = batch.receive(&self.socket).or_else(|_| batch.receive(&self.socket)) {
            for datagram in batch.datagrams() {
                let (Some(from), Some(stamp)) = (datagram.from, datagram.stamp) else {
                    continue;
                };
                if let Some((sequence, echo)) = self.read(from, datagram.bytes) {
                    let rtt = |sent| clock.just_stamped(stamp, sent) - sent;
                    self.reply(sequence, rtt, echo, timeout, sink);
                }
            }
        }
    }

    /// Marks requests as lost for which an ICMP error arrived.
    fn take_errors(&mut self, batch: &mut Batch, sink: &mut SampleSink) {
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
                    self.lose(sequence, Loss::of(&Error::from_raw_os_error(code)), sink);
                }
            }
        }
    }

    /// Returns the sequence number of a request that an error quotes; `None` if the quote is too
    /// short.
    fn quoted(&self, bytes: &[u8]) -> Option<u64> {
        let latest = self.counts.sent.checked_sub(1)?;
        match &self.socket {
            Socket::Icmp(pinger) => Some(unwrap_sequence(pinger.request(bytes)?, latest)),
            Socket::Udp(_) => latest
                .checked_sub(u64::from((latest as u32).wrapping_sub(Echo::parse(bytes)?.sequence))),
        }
    }

    /// Handles a reply to a request; `rtt` computes the round trip from the send time.
    fn reply(
        &mut self,
        sequence: u64,
        rtt: impl Fn(i64) -> i64,
        echo: Option<Echo>,
        timeout: i64,
        sink: &mut SampleSink,
    ) {
        let request =
            sequence.checked_sub(self.first).and_then(|at| self.outstanding.get(at as usize));
        if let Some(request) = request.filter(|request| !request.settled) {
            let rtt = rtt(request.sent);
            if rtt <= timeout {
                self.counts.received += 1;
                // A server that returns datagrams unchanged adds no time.
                let turned = echo.map(|echo| echo.turned).filter(|&turned| turned != 0);
                let received_bits = echo.map_or(0, |echo| echo.received_bits);
                self.settle(sequence, Outcome::Reply { rtt, turned, received_bits }, sink);
                return;
            }
            // The reply came after the timeout, but is read before the request was given up.
            self.lose(sequence, Loss::Timeout, sink);
        }
        match self.given_up.binary_search(&sequence) {
            Ok(at) => {
                self.given_up.remove(at);
                self.counts.late += 1;
            }
            Err(_) => self.counts.duplicate += 1,
        }
    }

    /// Gives up the requests sent at or before this time.
    fn give_up(&mut self, before: i64, sink: &mut SampleSink) {
        while self.oldest().is_some_and(|sent| sent <= before) {
            self.lose(self.first, Loss::Timeout, sink);
        }
    }

    fn lose(&mut self, sequence: u64, loss: Loss, sink: &mut SampleSink) {
        self.counts.lost += 1;
        if self.given_up.len() == REMEMBERED {
            self.given_up.pop_front();
        }
        if let Err(at) = self.given_up.binary_search(&sequence) {
            self.given_up.insert(at, sequence);
        }
        self.settle(sequence, Outcome::Lost(loss), sink);
    }

    fn settle(&mut self, sequence: u64, outcome: Outcome, sink: &mut SampleSink) {
        let request = &mut self.outstanding[(sequence - self.first) as usize];
        request.settled = true;
        let &mut Request { sent, lateness, .. } = request;
        sink.settled.push(Sample { target: sink.target, sequence, sent, lateness, outcome });
        while self.outstanding.front().is_some_and(|request| request.settled) {
            self.outstanding.pop_front();
            self.first += 1;
        }
    }
}

/// A target's socket. It is not bound to an address, because a host's address may change over days.
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
        match target.protocol {
            Protocol::Icmp => {
                // Another program's unprivileged socket may have the identifier. With 0 the kernel
                // would choose one without our knowledge.
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
            Protocol::Udp(_) => {
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
        match (self, target.protocol) {
            (Socket::Udp(fd), Protocol::Udp(port)) => {
                let echo = Echo { sequence: sequence as u32, sent: now, token, ..Echo::default() };
                let to = SocketAddr::new(target.address, port);
                sys::send_to(fd, &echo.write(target.size), to).map(drop)
            }
            (Socket::Icmp(pinger), _) => pinger.send(sequence as u16, target.size),
            (Socket::Udp(_), Protocol::Icmp) => {
                unreachable!("a socket is opened for its target's protocol")
            }
        }
    }
}

/// Makes a socket keep the ICMP errors of its requests.
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

    fn target(protocol: Protocol) -> Target {
        Target { address: HERE, protocol, size: 56, ds: 0 }
    }

    /// An echo server that returns every `every`-th datagram, `delay` ns after its arrival,
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
        fn new(delay: i64, every: u32, copies: usize) -> (Far, Protocol) {
            let fd = sys::socket(Kind::Datagram, HERE).unwrap();
            sys::bind(&fd, SocketAddr::new(HERE, 0)).unwrap();
            let port = sys::local_address(&fd).unwrap().port();
            (
                Far { fd, held: VecDeque::new(), batch: Batch::new(16), delay, every, copies },
                Protocol::Udp(port),
            )
        }

        /// Reads arrived datagrams and sends the due ones; returns whether it sent any.
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

    /// Drives a prober and the far end until `end`, then until all requests have settled.
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
    fn every_request_has_one_result_at_its_own_index() {
        let (far, protocol) = Far::new(0, 1, 1);
        let clock = Clock::starting_in(5 * MS);
        let timing = Timing { start: 0, interval: 10 * MS, timeout: 500 * MS };
        let mut prober = Prober::new(&[target(protocol), target(protocol)], timing, 1).unwrap();
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
                // The second target's slots are half an interval after the first target's.
                assert_eq!((s.sent - s.lateness).rem_euclid(10 * MS), index as i64 * 5 * MS);
                assert!((0..10 * MS).contains(&s.lateness));
                let Outcome::Reply { rtt, turned, .. } = s.outcome else { panic!("{s:?}") };
                assert!(rtt > 0);
                assert_eq!(turned, Some(7_000 + s.sequence as i64));
            }
        }
    }

    #[test]
    fn unanswered_requests_are_lost_and_others_are_not() {
        let (far, protocol) = Far::new(0, 3, 1);
        let clock = Clock::starting_in(0);
        let timing = Timing { start: 0, interval: 5 * MS, timeout: 100 * MS };
        let mut prober = Prober::new(&[target(protocol)], timing, 1).unwrap();
        let samples = of(&drive(&mut prober, &clock, 200 * MS, Some(far)), 0);
        assert!(samples.len() > 10);
        for s in samples {
            let answered = matches!(s.outcome, Outcome::Reply { .. });
            assert_eq!(answered, s.sequence % 3 == 0, "{s:?}");
        }
    }

    #[test]
    fn a_late_reply_is_lost_and_late_and_a_second_one_is_a_duplicate() {
        let (far, protocol) = Far::new(60 * MS, 1, 2);
        let clock = Clock::starting_in(0);
        let timing = Timing { start: 0, interval: 10 * MS, timeout: 20 * MS };
        let mut prober = Prober::new(&[target(protocol)], timing, 1).unwrap();
        let samples = drive(&mut prober, &clock, 200 * MS, Some(far));
        let counts = prober.counts(0);
        assert!(samples.iter().all(|s| s.outcome == Outcome::Lost(Loss::Timeout)));
        assert_eq!(counts.lost, counts.sent);
        assert!(counts.late > 0 && counts.late.abs_diff(counts.duplicate) <= 1, "{counts:?}");
    }

    #[test]
    fn a_reply_that_was_read_late_is_judged_by_its_timestamp() {
        let (mut far, protocol) = Far::new(0, 1, 1);
        let clock = Clock::starting_in(0);
        let timing = Timing { start: 0, interval: 1_000 * MS, timeout: 100 * MS };
        let mut prober = Prober::new(&[target(protocol)], timing, 1).unwrap();
        prober.do_due(&clock);
        while !far.turn(clock.now()) {}
        // Loopback may take a moment.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let stamped = clock.now();
        // The caller is suspended for longer than the timeout.
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
    fn missed_slots_are_counted_and_not_sent_later() {
        let (_far, protocol) = Far::new(0, 1, 1);
        // The first slot is a second late: a hundred slots have passed.
        let clock = Clock::starting_in(-1_000 * MS);
        let timing = Timing { start: 0, interval: 10 * MS, timeout: 20 * MS };
        let mut prober = Prober::new(&[target(protocol)], timing, 1).unwrap();
        prober.do_due(&clock);
        let counts = prober.counts(0);
        assert_eq!(counts.sent, 1);
        assert!(counts.missed >= 100);
        assert_eq!(prober.states[0].due, (counts.missed as i64 + 1) * 10 * MS);
    }

    #[test]
    fn requests_that_the_kernel_refuses_are_lost_at_once_and_probing_continues() {
        // A socket may not broadcast without SO_BROADCAST; if no interface is up, there is no
        // route.
        let nowhere =
            Target { address: IpAddr::from([255, 255, 255, 255]), ..target(Protocol::Udp(9)) };
        let (far, protocol) = Far::new(0, 1, 1);
        let clock = Clock::starting_in(0);
        let timing = Timing { start: 0, interval: 10 * MS, timeout: 500 * MS };
        let mut prober = Prober::new(&[nowhere, target(protocol)], timing, 1).unwrap();
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
    fn a_closed_port_is_reported_and_every_request_to_it_is_sent() {
        for here in [HERE, IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            let Ok(fd) = sys::socket(Kind::Datagram, here) else { continue };
            // A host may have no IPv6.
            let Ok(()) = sys::bind(&fd, SocketAddr::new(here, 0)) else { continue };
            let protocol = Protocol::Udp(sys::local_address(&fd).unwrap().port());
            drop(fd);
            let clock = Clock::starting_in(0);
            let timing = Timing { start: 0, interval: 10 * MS, timeout: 20_000 * MS };
            let mut prober =
                Prober::new(&[Target { address: here, ..target(protocol) }], timing, 1).unwrap();
            let samples = drive(&mut prober, &clock, 200 * MS, None);
            assert!(samples.len() > 5);
            assert!(
                samples.iter().all(|s| s.outcome == Outcome::Lost(Loss::Refused)),
                "{samples:?}"
            );
        }
    }

    #[test]
    fn icmp_echoes_are_answered_where_they_are_permitted() {
        let timing = Timing { start: 0, interval: 10 * MS, timeout: 500 * MS };
        let clock = Clock::starting_in(0);
        let targets = [target(Protocol::Icmp), target(Protocol::Icmp)];
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
    fn sequence_numbers_continue_when_those_on_the_wire_wrap() {
        let (mut far, protocol) = Far::new(0, 1, 1);
        let clock = Clock::starting_in(0);
        let timing = Timing { start: 0, interval: 1, timeout: 30_000 };
        let mut prober = Prober::new(&[target(protocol)], timing, 1).unwrap();
        let before = u64::from(u32::MAX) - 1;
        prober.states[0].counts.sent = before;
        prober.states[0].first = before;
        for _ in 0..4 {
            let mut sink = SampleSink { target: 0, settled: &mut prober.settled };
            prober.states[0].send(clock.now(), 1, &mut sink);
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
    fn a_timeout_too_long_for_icmp_s_sequence_numbers_is_refused() {
        let timing = Timing { start: 0, interval: MS, timeout: 40_000 * MS };
        let refused = Prober::new(&[target(Protocol::Udp(9))], timing, 1).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    }
}
