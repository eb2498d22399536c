//! A client of the server: its control connection, its loads, and its use of the limits.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::net::{IpAddr, TcpStream};
use std::os::fd::{OwnedFd, RawFd};
use std::rc::Rc;

use probe::Clock;
use probe::bulk::Options;
use probe::sys::{self, Kind};

use super::accounts::Account;
use super::echo::Known;
use crate::caps::Caps;
use crate::load::Load;
use crate::protocol::{self, Direction, LINE, Lines, Reply, Request};

const SECOND: i64 = 1_000_000_000;
/// Time for all connections of a load to be opened.
const GATHER: i64 = 15 * SECOND;
/// Time for data in flight to arrive after the end of a load.
const DRAIN: i64 = 5 * SECOND;
/// If no data arrives for this time, none will: the end of a connection may be lost like any
/// packet.
const QUIET: i64 = SECOND / 2;
/// Largest number of samples for one client, because they use the server's memory.
const SAMPLES: u64 = 200_000;
/// Shortest sample interval, ms.
const LEAST_SAMPLE_MS: u32 = 10;
/// Samples per line: some 150 bytes each.
const ROWS: usize = 250;
/// Unread output, bytes, at which a client counts as gone.
const UNREAD: usize = 64 << 20;

/// Progress of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its connections must be opened before this time.
    Gathering(i64),
    /// All connections are open; the load must start before this time.
    Complete(i64),
    /// The load runs until this time.
    Going(i64),
    /// Data in flight may arrive until this time, or until none has arrived for `QUIET`.
    Draining(i64),
    /// All results were sent.
    Over,
}

impl State {
    fn until(self) -> Option<i64> {
        match self {
            State::Gathering(t) | State::Complete(t) | State::Going(t) | State::Draining(t) => {
                Some(t)
            }
            State::Over => None,
        }
    }
}

struct ServedLoad {
    load: Load,
    state: State,
    options: Options,
    length: i64,
    interval: i64,
    /// Time of the next sample.
    due: i64,
    /// The bytes at the last increase, and its time.
    grown: (u64, i64),
    why: String,
}

impl ServedLoad {
    /// Returns the granted load time that can still be used, ms.
    fn unused_ms(&self, now: i64) -> u64 {
        let left = match self.state {
            State::Gathering(_) | State::Complete(_) => self.length,
            State::Going(until) => (until - now).clamp(0, self.length),
            State::Draining(_) | State::Over => 0,
        };
        (left / 1_000_000) as u64
    }
}

/// A client.
pub struct Client {
    stream: TcpStream,
    from: IpAddr,
    token: u64,
    caps: Caps,
    /// The source's account, and the bytes of this client that were charged to it.
    account: Rc<Account>,
    charged: u64,
    lines: Lines,
    /// Output not written yet.
    out: Vec<u8>,
    loads: BTreeMap<u32, ServedLoad>,
    samples: u64,
    silent_until: i64,
}

impl Client {
    /// Creates a client that has completed its hello.
    pub fn new(
        stream: TcpStream,
        from: IpAddr,
        token: u64,
        caps: Caps,
        account: Rc<Account>,
        silent_until: i64,
    ) -> Client {
        Client {
            stream,
            from,
            token,
            caps,
            account,
            charged: 0,
            lines: Lines::new(LINE),
            out: Vec::new(),
            loads: BTreeMap::new(),
            samples: 0,
            silent_until,
        }
    }

    /// Returns its address.
    pub fn from(&self) -> IpAddr {
        self.from
    }

    /// Returns its token.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// Returns the bytes of all its loads.
    pub fn moved(&self) -> u64 {
        self.loads.values().map(|served| served.load.moved()).sum()
    }

    /// Charges its bytes to the source's account; returns the account's bytes of this hour.
    pub fn settle(&mut self, now: i64) -> u64 {
        let had = self.account.bytes(now);
        let moved = self.moved();
        let more = moved - std::mem::replace(&mut self.charged, moved);
        self.account.charge(more);
        had + more
    }

    /// The client leaves: returns the granted but unused load time to the account.
    pub fn leave(&mut self, now: i64) {
        for served in self.loads.values() {
            self.account.give_back(served.unused_ms(now));
        }
        self.settle(now);
    }

    /// Sends a message, now or when the connection is writable.
    pub fn send(&mut self, reply: &Reply) {
        self.out.extend(protocol::line(reply));
        self.flush();
    }

    /// Writes as much output as the connection accepts.
    pub fn flush(&mut self) {
        while !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(written) => drop(self.out.drain(..written)),
                // A broken connection is detected on the next read.
                Err(_) => return,
            }
        }
    }

    /// Whether there is output not written yet.
    pub fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// Returns the time of the next action.
    pub fn next_due(&self) -> Option<i64> {
        let loads = self.loads.values().filter_map(|served| {
            let until = served.state.until()?;
            Some(match served.state {
                State::Going(_) => until.min(served.due),
                State::Draining(_) => until.min(served.grown.1 + QUIET),
                _ => until,
            })
        });
        loads.chain([self.silent_until]).min()
    }

    /// Reads and handles the client's messages. Connections that begin to send are added to
    /// `begun`: (load, stream, descriptor). An error is the reason to remove the client.
    pub fn on_readable(
        &mut self,
        now: i64,
        clock: &Clock,
        known: &Known,
        silence: i64,
        begun: &mut Vec<(u32, u32, RawFd)>,
    ) -> Result<(), String> {
        match self.lines.read(&mut self.stream) {
            Ok(0) => return Err("connection closed".into()),
            Ok(_) => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(());
            }
            Err(error) => return Err(error.to_string()),
        }
        // One read returns at most the length of one line, so few lines wait at any time.
        while let Some(line) = self.lines.next_line().map_err(|e| self.refused(e.to_string()))? {
            let request =
                protocol::parse::<Request>(&line).map_err(|e| self.refused(e.to_string()))?;
            self.silent_until = now + silence;
            match request {
                Request::Clock { at } => self.send(&Reply::Clock { asked: at, at: clock.now() }),
                Request::Received => {
                    let latest = known.received(self.token).latest();
                    let (latest, bits) =
                        latest.map_or((None, 0), |(latest, bits)| (Some(latest), bits));
                    self.send(&Reply::Received { latest, bits });
                }
                Request::Bye => return Err("session finished".into()),
                Request::Stop { load } if self.loads.contains_key(&load) => {
                    self.stop(load, "", now)
                }
                Request::Stop { load } => self.answer(Err(format!("there is no load {load}"))),
                Request::Go { load } => {
                    if let Err(why) = self.go(load, now, begun) {
                        self.answer(Err(why));
                    }
                }
                Request::Ask { streams, seconds, congestion } => {
                    let (caps, had) = (self.caps, self.account.milliseconds(now));
                    let granted = self.caps.streams(streams);
                    let granted =
                        granted.and_then(|()| self.caps.seconds(had, u64::from(seconds) * 1000));
                    let granted = granted.and_then(|()| caps.bytes(self.settle(now)));
                    let granted = granted.and_then(|()| check_congestion(congestion.as_deref()));
                    self.answer(granted.map(|()| Reply::Granted));
                }
                Request::Mark { dscp } => {
                    let marked = mark(dscp).map(|()| {
                        known.mark(self.token, dscp);
                        Reply::Granted
                    });
                    self.answer(marked);
                }
                request @ Request::Load { .. } => {
                    let reply = self.prepare_load(request, now);
                    self.answer(reply);
                }
                Request::Hello { .. } | Request::Prove { .. } | Request::Stream { .. } => {
                    return Err(
                        self.refused("this message is not allowed on a control connection".into())
                    );
                }
            }
        }
        Ok(())
    }

    fn answer(&mut self, result: Result<Reply, String>) {
        let reply = result.unwrap_or_else(|why| Reply::Refused { why });
        self.send(&reply);
    }

    fn refused(&mut self, why: String) -> String {
        self.send(&Reply::Refused { why: why.clone() });
        why
    }

    fn prepare_load(&mut self, request: Request, now: i64) -> Result<Reply, String> {
        let Request::Load {
            load,
            direction,
            streams,
            milliseconds,
            congestion,
            sample_ms,
            dscp,
            ecn,
        } = request
        else {
            unreachable!("only a load request gets here");
        };
        self.caps.streams(streams)?;
        let moved = self.settle(now);
        self.caps.bytes(moved)?;
        self.caps.seconds(self.account.milliseconds(now), u64::from(milliseconds))?;
        if self.loads.contains_key(&load) {
            return Err(format!("load {load} already exists"));
        }
        if sample_ms < LEAST_SAMPLE_MS {
            return Err(format!(
                "the shortest sample interval is {LEAST_SAMPLE_MS} ms; {sample_ms} ms was requested"
            ));
        }
        let samples = self.samples + u64::from(streams) * (u64::from(milliseconds / sample_ms) + 2);
        if samples > SAMPLES {
            return Err(format!(
                "that would be {samples} samples, and the server keeps {SAMPLES} for a client; sample less often"
            ));
        }
        check_congestion(congestion.as_deref())?;
        mark(dscp)?;
        self.account.grant(u64::from(milliseconds));
        self.samples = samples;
        let served = ServedLoad {
            load: Load::new(direction == Direction::Down, streams as usize).with_ecn(ecn),
            state: State::Gathering(now + GATHER),
            options: Options { congestion, ds: dscp << 2, ..Options::default() },
            length: i64::from(milliseconds) * 1_000_000,
            interval: i64::from(sample_ms) * 1_000_000,
            due: 0,
            grown: (0, 0),
            why: String::new(),
        };
        self.loads.insert(load, served);
        Ok(Reply::Ready { load })
    }

    /// Fails if a data connection does not belong to this load.
    pub fn may_join(&self, number: u32, stream: u32) -> Result<(), String> {
        let served = self.loads.get(&number).ok_or_else(|| format!("there is no load {number}"))?;
        if !matches!(served.state, State::Gathering(_)) {
            return Err(format!("load {number} accepts no more streams"));
        }
        if served.load.lacks(stream as usize) {
            return Ok(());
        }
        Err(format!("load {number} has no stream {stream}, or has it already"))
    }

    /// Whether this end of a load sends.
    pub fn sends(&self, number: u32) -> bool {
        self.loads.get(&number).is_some_and(|served| served.load.sends())
    }

    /// Adds a data connection that `may_join` has allowed. `early` is the number of bytes read with
    /// its first line.
    pub fn join(&mut self, number: u32, stream: u32, fd: OwnedFd, early: u64, now: i64) {
        let Some(served) = self.loads.get_mut(&number) else {
            return;
        };
        let State::Gathering(until) = served.state else {
            return;
        };
        // The congestion control was checked when the load was prepared.
        let applied = served.options.apply(&fd, self.from);
        served.load.add(stream as usize, fd, early);
        if let Err(error) = applied {
            self.stop(number, &error.to_string(), now);
            return;
        }
        if served.load.absent() == 0 {
            served.state = State::Complete(until);
            self.send(&Reply::Complete { load: number });
        }
    }

    /// Starts a load. Fails if it can't start; does nothing if it has already ended, because its
    /// end was reported.
    fn go(
        &mut self,
        number: u32,
        now: i64,
        begun: &mut Vec<(u32, u32, RawFd)>,
    ) -> Result<(), String> {
        let served =
            self.loads.get_mut(&number).ok_or_else(|| format!("there is no load {number}"))?;
        match served.state {
            State::Complete(_) => {}
            State::Gathering(_) => {
                return Err(format!(
                    "load {number} waits for {} of its streams",
                    served.load.absent()
                ));
            }
            State::Going(_) => return Err(format!("load {number} is already running")),
            State::Draining(_) | State::Over => return Ok(()),
        }
        served.state = State::Going(now + served.length);
        served.load.sample(now);
        served.due = now + served.interval;
        match served.load.go() {
            Ok(ends) => begun.extend(ends.iter().map(|&(stream, fd)| (number, stream as u32, fd))),
            Err(error) => self.stop(number, &error.to_string(), now),
        }
        Ok(())
    }

    /// Ends a load unless it has ended.
    fn stop(&mut self, number: u32, why: &str, now: i64) {
        let Some(served) = self.loads.get_mut(&number) else {
            return;
        };
        if matches!(served.state, State::Draining(_) | State::Over) {
            return;
        }
        self.account.give_back(served.unused_ms(now));
        served.load.sample(now);
        if let Some(broken) = served.load.broken() {
            served.why = broken.to_string();
        }
        if !why.is_empty() {
            served.why = why.to_string();
        }
        served.load.stop();
        served.state = State::Draining(now + DRAIN);
        served.grown = (served.load.moved(), now);
        self.finish_if_over(number, now);
    }

    fn finish_if_over(&mut self, number: u32, now: i64) {
        let Some(served) = self.loads.get_mut(&number) else {
            return;
        };
        let State::Draining(until) = served.state else {
            return;
        };
        if served.load.moved() != served.grown.0 {
            served.grown = (served.load.moved(), now);
        }
        if !served.load.is_over() && now < until.min(served.grown.1 + QUIET) {
            return;
        }
        if !served.load.sends() {
            served.load.sample(now);
        }
        served.load.close();
        served.state = State::Over;
        let (rows, why) = (served.load.take_rows(), served.why.clone());
        for part in rows.chunks(ROWS) {
            self.send(&Reply::Samples { load: number, rows: part.to_vec() });
        }
        self.send(&Reply::Over { load: number, why });
    }

    /// Handles an event of a data connection.
    pub fn on_data(&mut self, load: u32, stream: u32, closed: bool) {
        if let Some(served) = self.loads.get_mut(&load) {
            served.load.on_ready(stream as usize, closed);
        }
    }

    /// Does everything that is due. An error is the reason to remove the client.
    pub fn do_due(&mut self, now: i64) -> Result<(), String> {
        self.flush();
        if now >= self.silent_until {
            return Err("no message for too long".into());
        }
        if self.out.len() > UNREAD {
            return Err("it does not read the server's messages".into());
        }
        let moved = self.settle(now);
        let spent = self.caps.bytes(moved).err();
        let numbers: Vec<u32> = self.loads.keys().copied().collect();
        for number in numbers {
            let served = &mut self.loads.get_mut(&number).expect("the number is from the map");
            match served.state {
                State::Gathering(until) if now >= until => {
                    let absent = served.load.absent();
                    self.stop(number, &format!("{absent} of its streams did not connect"), now);
                }
                State::Complete(until) if now >= until => {
                    self.stop(number, "it was not started in time", now)
                }
                State::Going(until) => {
                    if now >= served.due {
                        served.load.sample(now);
                        served.due += served.interval * ((now - served.due) / served.interval + 1);
                    }
                    if let Some(why) = &spent {
                        self.stop(number, why, now);
                    } else if now >= until || served.load.is_over() {
                        self.stop(number, "", now);
                    }
                }
                State::Draining(_) => self.finish_if_over(number, now),
                State::Gathering(_) | State::Complete(_) | State::Over => {}
            }
        }
        Ok(())
    }

    /// Ends all loads and the session, with a reason.
    pub fn end(&mut self, why: &str, now: i64) {
        let numbers: Vec<u32> = self.loads.keys().copied().collect();
        for number in numbers {
            self.stop(number, why, now);
            if let Some(served) = self.loads.get_mut(&number)
                && matches!(served.state, State::Draining(_))
            {
                served.load.close();
                self.finish_if_over(number, now);
            }
        }
        self.send(&Reply::Ending { why: why.into() });
    }
}

/// Fails unless this is a DSCP codepoint.
fn mark(dscp: u8) -> Result<(), String> {
    if dscp < 64 { Ok(()) } else { Err(format!("{dscp} is not a DSCP codepoint: use 0 to 63")) }
}

/// Fails unless this kernel has a congestion control and permits it.
pub fn check_congestion(name: Option<&str>) -> Result<(), String> {
    let options = Options { congestion: name.map(str::to_string), ..Options::default() };
    let any = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);
    sys::socket(Kind::Stream, any).and_then(|fd| options.apply(&fd, any)).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_client_that_vanished_is_disconnected() {
        // Half-open: the client's end never signals that it is gone.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let near = listener.accept().unwrap().0;
        near.set_nonblocking(true).unwrap();
        let address = far.local_addr().unwrap().ip();
        let mut client = Client::new(near, address, 1, Caps::default(), Rc::default(), 30 * SECOND);
        assert_eq!(client.next_due(), Some(30 * SECOND));
        assert_eq!(client.do_due(30 * SECOND - 1), Ok(()));
        assert!(client.do_due(30 * SECOND).unwrap_err().contains("no message"));
    }
}
