//! A client of the server: its control connection, its loads, and what it has used of its caps.

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
/// For all connections of a load to come.
const GATHER: i64 = 15 * SECOND;
/// For what is under way to arrive when a load has ended.
const DRAIN: i64 = 5 * SECOND;
/// When nothing has come for so long then, nothing will: the end of a connection may be lost like
/// any packet.
const QUIET: i64 = SECOND / 2;
/// Samples of one client at most: their memory is ours.
const SAMPLES: u64 = 200_000;
/// The shortest time between two samples, ms.
const LEAST_SAMPLE_MS: u32 = 10;
/// Samples in a line: some 150 bytes each.
const ROWS: usize = 250;
/// What a client may leave unread, bytes, before it is taken for gone.
const UNREAD: usize = 64 << 20;

/// How far a load is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its connections are to come until then.
    Gathering(i64),
    /// They have come; it is to begin until then.
    Complete(i64),
    /// It goes on until then.
    Going(i64),
    /// What is under way is to arrive until then, or until nothing has come for a while.
    Draining(i64),
    /// All has been said of it.
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

struct Served {
    load: Load,
    state: State,
    options: Options,
    length: i64,
    interval: i64,
    /// The next sample.
    due: i64,
    /// Bytes when they were last seen to have grown, and when that was.
    grown: (u64, i64),
    why: String,
}

impl Served {
    /// What it was granted and has not used, if it can still be used.
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
    /// Its source's, of which it has charged so many bytes.
    account: Rc<Account>,
    charged: u64,
    lines: Lines,
    /// What is still to be written.
    out: Vec<u8>,
    loads: BTreeMap<u32, Served>,
    samples: u64,
    silent_until: i64,
}

impl Client {
    /// One who has said hello.
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

    /// Its address.
    pub fn from(&self) -> IpAddr {
        self.from
    }

    /// What it is known by.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// Bytes of all its loads.
    pub fn moved(&self) -> u64 {
        self.loads.values().map(|served| served.load.moved()).sum()
    }

    /// Puts what it has moved on its source's account; what that has in this hour.
    pub fn settle(&mut self, now: i64) -> u64 {
        let had = self.account.bytes(now);
        let moved = self.moved();
        let more = moved - std::mem::replace(&mut self.charged, moved);
        self.account.charge(more);
        had + more
    }

    /// It goes: what was granted and not used goes back.
    pub fn leave(&mut self, now: i64) {
        for served in self.loads.values() {
            self.account.give_back(served.unused_ms(now));
        }
        self.settle(now);
    }

    /// Says something, now or as soon as the connection takes it.
    pub fn say(&mut self, reply: &Reply) {
        self.out.extend(protocol::line(reply));
        self.flush();
    }

    /// Writes what is to be written, as far as the connection takes it.
    pub fn flush(&mut self) {
        while !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(written) => drop(self.out.drain(..written)),
                // What is broken is seen when it is read.
                Err(_) => return,
            }
        }
    }

    /// Whether something is still to be written.
    pub fn has_to_say(&self) -> bool {
        !self.out.is_empty()
    }

    /// When there is something to do.
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

    /// Reads what the client says. What begins to send is put into `begun`: (load, stream,
    /// descriptor). An error is why it is to go.
    pub fn on_readable(
        &mut self,
        now: i64,
        clock: &Clock,
        known: &Known,
        silence: i64,
        begun: &mut Vec<(u32, u32, RawFd)>,
    ) -> Result<(), String> {
        match self.lines.read(&mut self.stream) {
            Ok(0) => return Err("it closed the connection".into()),
            Ok(_) => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                return Ok(());
            }
            Err(error) => return Err(error.to_string()),
        }
        // What comes at once is at most a line's length: not many lines wait at any time.
        while let Some(line) = self.lines.next_line().map_err(|e| self.refused(e.to_string()))? {
            let request =
                protocol::parse::<Request>(&line).map_err(|e| self.refused(e.to_string()))?;
            self.silent_until = now + silence;
            match request {
                Request::Clock { at } => self.say(&Reply::Clock { asked: at, at: clock.now() }),
                Request::Heard => {
                    let latest = known.received(self.token).latest();
                    let (latest, bits) =
                        latest.map_or((None, 0), |(latest, bits)| (Some(latest), bits));
                    self.say(&Reply::Heard { latest, bits });
                }
                Request::Bye => return Err("it was done".into()),
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
                    let made = self.make(request, now);
                    self.answer(made);
                }
                Request::Hello { .. } | Request::Prove { .. } | Request::Stream { .. } => {
                    return Err(self.refused("that was not to be said here".into()));
                }
            }
        }
        Ok(())
    }

    fn answer(&mut self, result: Result<Reply, String>) {
        let reply = result.unwrap_or_else(|why| Reply::Refused { why });
        self.say(&reply);
    }

    fn refused(&mut self, why: String) -> String {
        self.say(&Reply::Refused { why: why.clone() });
        why
    }

    fn make(&mut self, request: Request, now: i64) -> Result<Reply, String> {
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
            unreachable!("only a load is made");
        };
        self.caps.streams(streams)?;
        let moved = self.settle(now);
        self.caps.bytes(moved)?;
        self.caps.seconds(self.account.milliseconds(now), u64::from(milliseconds))?;
        if self.loads.contains_key(&load) {
            return Err(format!("there is a load {load} already"));
        }
        if sample_ms < LEAST_SAMPLE_MS {
            return Err(format!(
                "samples are {LEAST_SAMPLE_MS} ms apart at least; {sample_ms} were asked for"
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
        let served = Served {
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

    /// Why a data connection does not belong to this load.
    pub fn may_join(&self, number: u32, stream: u32) -> Result<(), String> {
        let served = self.loads.get(&number).ok_or_else(|| format!("there is no load {number}"))?;
        if !matches!(served.state, State::Gathering(_)) {
            return Err(format!("load {number} takes no more streams"));
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

    /// A data connection has come, which may. `early`: bytes of it that were read with its first
    /// line.
    pub fn join(&mut self, number: u32, stream: u32, fd: OwnedFd, early: u64, now: i64) {
        let Some(served) = self.loads.get_mut(&number) else {
            return;
        };
        let State::Gathering(until) = served.state else {
            return;
        };
        // That this kernel has its congestion control was seen when the load was made.
        let applied = served.options.apply(&fd, self.from);
        served.load.add(stream as usize, fd, early);
        if let Err(error) = applied {
            self.stop(number, &error.to_string(), now);
            return;
        }
        if served.load.absent() == 0 {
            served.state = State::Complete(until);
            self.say(&Reply::Complete { load: number });
        }
    }

    /// Begins a load. An error is why it can't; of one that is over its end was said.
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
            State::Going(_) => return Err(format!("load {number} goes on already")),
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

    /// Ends a load, if it is not over.
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
            self.say(&Reply::Samples { load: number, rows: part.to_vec() });
        }
        self.say(&Reply::Over { load: number, why });
    }

    /// Something happened to a data connection.
    pub fn on_data(&mut self, load: u32, stream: u32, closed: bool) {
        if let Some(served) = self.loads.get_mut(&load) {
            served.load.on_ready(stream as usize, closed);
        }
    }

    /// Does what is due. An error is why the client is to go.
    pub fn do_due(&mut self, now: i64) -> Result<(), String> {
        self.flush();
        if now >= self.silent_until {
            return Err("it was silent for too long".into());
        }
        if self.out.len() > UNREAD {
            return Err("it does not read what it is told".into());
        }
        let moved = self.settle(now);
        let spent = self.caps.bytes(moved).err();
        let numbers: Vec<u32> = self.loads.keys().copied().collect();
        for number in numbers {
            let served =
                &mut self.loads.get_mut(&number).expect("its number is of those there are");
            match served.state {
                State::Gathering(until) if now >= until => {
                    let absent = served.load.absent();
                    self.stop(number, &format!("{absent} of its streams did not come"), now);
                }
                State::Complete(until) if now >= until => {
                    self.stop(number, "it was not begun", now)
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

    /// Ends everything, in words.
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
        self.say(&Reply::Ending { why: why.into() });
    }
}

/// Whether this is a codepoint.
fn mark(dscp: u8) -> Result<(), String> {
    if dscp < 64 { Ok(()) } else { Err(format!("{dscp} is no codepoint: they are 0 to 63")) }
}

/// Whether this kernel has a congestion control and lets us have it.
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
    fn one_who_is_gone_without_a_word_is_let_go() {
        // Half-open: his end of the connection never says that it is no more.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let near = listener.accept().unwrap().0;
        near.set_nonblocking(true).unwrap();
        let address = far.local_addr().unwrap().ip();
        let mut client = Client::new(near, address, 1, Caps::default(), Rc::default(), 30 * SECOND);
        assert_eq!(client.next_due(), Some(30 * SECOND));
        assert_eq!(client.do_due(30 * SECOND - 1), Ok(()));
        assert!(client.do_due(30 * SECOND).unwrap_err().contains("silent"));
    }
}
