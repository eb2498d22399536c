//! The server: takes and gives load within its caps, answers clocks, turns echoes round.
//!
//! One thread has all clients' connections, by one epoll; nothing on it waits for anybody. A
//! connection that has not said what it is within `PATIENCE` is closed, so is a client that has
//! been silent for `SILENCE`: half-open connections don't stay. Every line has a longest length,
//! every buffer a largest size, every load an end.
//!
//! No source (`probe::source`) can lock the others out: where there are `NEWCOMERS` connections
//! that have not said what they are, the source that has most of them loses its oldest for each new
//! one; a source has a quarter of the clients at most; its load and bytes are counted over an hour
//! (`accounts`). A server with a secret lets in only who proves to have it.

mod accounts;
mod client;
mod echo;

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use probe::sys::{self, Event, Interest, Kind};
use probe::{Clock, Epoll};

use crate::Failure;
use crate::caps::Caps;
use crate::protocol::{self, LINE, Lines, Reply, Request, VERSION};
use crate::secret::{self, Secret};
use accounts::Accounts;
use client::Client;
pub(crate) use client::check_congestion;

const SECOND: i64 = 1_000_000_000;
/// For a connection to say what it is.
const PATIENCE: i64 = 5 * SECOND;
/// For a client to say anything.
const SILENCE: i64 = 30 * SECOND;
/// Connections at once that have not said what they are.
const NEWCOMERS: usize = 256;
/// The longest time between two looks at whether to end, ms.
const LOOK: i64 = 50;
/// For what is still to be said when the server ends.
const FAREWELL: i64 = SECOND / 2;
/// Tries to find a port that is free for TCP and UDP alike at all addresses.
const TRIES: usize = 20;

/// What a server is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Addresses to be bound to; none: loopback, of the families there are.
    pub bind: Vec<IpAddr>,
    /// TCP and UDP port; 0: any.
    pub port: u16,
    /// What clients may ask for.
    pub caps: Caps,
    /// What clients must prove to have; empty: nothing.
    pub secret: Secret,
}

/// A server whose sockets are bound.
#[derive(Debug)]
pub struct Server {
    listeners: Vec<TcpListener>,
    datagrams: Vec<OwnedFd>,
    addresses: Vec<SocketAddr>,
    caps: Caps,
    secret: Secret,
    stop: Arc<AtomicBool>,
}

/// Ends a server from any thread.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<AtomicBool>);

impl Stopper {
    /// Soon; for good, and also if it doesn't serve yet.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What a server tells its owner.
pub trait Owner {
    /// A client has come or gone, in words.
    fn tell(&mut self, words: &str);
    /// Whether to go on; asked at least every 50 ms.
    fn go_on(&mut self) -> bool;
}

impl Server {
    /// Binds its sockets.
    pub fn bind(options: &Options) -> Result<Server, Failure> {
        Server::bind_all(options).map_err(|error| Failure {
            problem: format!("can't serve at {error}"),
            hint: match error.kind() {
                ErrorKind::AddrInUse => {
                    "another server has the port: stop it, or choose another one".into()
                }
                ErrorKind::AddrNotAvailable => "bind to an address of this host".into(),
                ErrorKind::PermissionDenied => {
                    "ports below 1024 are for root: choose another one".into()
                }
                _ => String::new(),
            },
        })
    }

    /// The same; the error says which address it is about.
    fn bind_all(options: &Options) -> io::Result<Server> {
        let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        let (wanted, optional) = match options.bind.as_slice() {
            [] => (&loopback[..], true),
            given => (given, false),
        };
        let mut last = io::Error::from(ErrorKind::AddrInUse);
        for _ in 0..if options.port == 0 { TRIES } else { 1 } {
            match Server::bind_once(wanted, options, optional) {
                Err(error) if error.kind() == ErrorKind::AddrInUse => last = error,
                other => return other,
            }
        }
        Err(last)
    }

    fn bind_once(wanted: &[IpAddr], options: &Options, optional: bool) -> io::Result<Server> {
        let mut server = Server {
            listeners: Vec::new(),
            datagrams: Vec::new(),
            addresses: Vec::new(),
            caps: options.caps,
            secret: options.secret.clone(),
            stop: Arc::new(AtomicBool::new(false)),
        };
        let mut port = options.port;
        for &address in wanted {
            let at = SocketAddr::new(address, port);
            let said =
                |e: io::Error, what: &str| io::Error::new(e.kind(), format!("{at} ({what}): {e}"));
            let listener = match listen(at) {
                Ok(listener) => listener,
                // A host may do without one of the families.
                Err(e)
                    if optional
                        && e.kind() != ErrorKind::AddrInUse
                        && !server.listeners.is_empty() =>
                {
                    continue;
                }
                Err(e) => return Err(said(e, "TCP")),
            };
            let bound = listener.local_addr()?;
            port = bound.port();
            server.datagrams.push(echo::socket(bound).map_err(|e| said(e, "UDP"))?);
            server.listeners.push(listener);
            server.addresses.push(bound);
        }
        Ok(server)
    }

    /// What it is bound to.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What ends it from elsewhere.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.stop.clone())
    }

    /// Serves until its owner or its `Stopper` says so or, if `once`, until the first client is
    /// gone. May be called again, unless it was stopped.
    pub fn serve(&self, once: bool, owner: &mut impl Owner) -> io::Result<()> {
        let clock = Clock::starting_in(0);
        let known = echo::Known::default();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let echoes = scope.spawn(|| echo::turn_round(&self.datagrams, &known, clock, &over));
            let result = Serving::new(self, clock, known.clone())
                .and_then(|mut serving| serving.run(once, owner));
            over.store(true, Ordering::Relaxed);
            let echoed = echoes.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result.and(echoed)
        })
    }
}

fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let fd = sys::socket(Kind::Stream, at.ip())?;
    echo::only_v6(&fd, at.ip())?;
    sys::set_option(&fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    sys::bind(&fd, at)?;
    sys::listen(&fd, 128)?;
    Ok(fd.into())
}

/// A connection that has not said what it is.
struct Newcomer {
    stream: TcpStream,
    from: IpAddr,
    lines: Lines,
    until: i64,
    /// What it was sent when it said hello, and has to answer.
    challenge: Option<String>,
}

/// Whom an event is for.
enum Conn {
    New(Newcomer),
    Control(Box<Client>),
    /// The connection of a load: its client's key, the load, its number there.
    Data {
        client: u64,
        load: u32,
        stream: u32,
    },
}

struct Serving<'a> {
    server: &'a Server,
    clock: Clock,
    known: echo::Known,
    accounts: Accounts,
    epoll: Epoll,
    conns: HashMap<u64, Conn>,
    /// Keys are not used twice: a late event finds nobody.
    next: u64,
    gone: bool,
}

impl<'a> Serving<'a> {
    fn new(server: &'a Server, clock: Clock, known: echo::Known) -> io::Result<Serving<'a>> {
        let epoll = Epoll::new()?;
        for (index, listener) in server.listeners.iter().enumerate() {
            epoll.add(listener, Interest::Readable, index as u64)?;
        }
        let next = server.listeners.len() as u64;
        Ok(Serving {
            server,
            clock,
            known,
            accounts: Accounts::default(),
            epoll,
            conns: HashMap::new(),
            next,
            gone: false,
        })
    }

    fn run(&mut self, once: bool, owner: &mut impl Owner) -> io::Result<()> {
        sys::defer_thread();
        let mut happened = Vec::new();
        while owner.go_on() && !self.server.stop.load(Ordering::Relaxed) && !(once && self.gone) {
            let left = (self.next_due() - self.clock.now()).clamp(0, LOOK * 1_000_000);
            happened.clear();
            self.epoll.wait(Some((left + 999_999) as u32 / 1_000_000), &mut happened)?;
            for event in &happened {
                self.take(event, owner);
            }
            self.do_due(owner);
        }
        self.farewell(owner);
        Ok(())
    }

    fn clients(&mut self) -> impl Iterator<Item = (u64, &mut Client)> {
        self.conns.iter_mut().filter_map(|(&key, conn)| match conn {
            Conn::Control(client) => Some((key, &mut **client)),
            _ => None,
        })
    }

    fn next_due(&mut self) -> i64 {
        self.clients().filter_map(|(_, client)| client.next_due()).min().unwrap_or(i64::MAX)
    }

    fn take(&mut self, event: &Event, owner: &mut impl Owner) {
        let key = event.token;
        if let Some(listener) = self.server.listeners.get(key as usize) {
            // One each time: level-triggered, the others are told again.
            if let Ok((stream, from)) = listener.accept() {
                self.welcome(stream, from.ip().to_canonical());
            }
            return;
        }
        match self.conns.get_mut(&key) {
            Some(Conn::New(_)) => self.on_newcomer(key, owner),
            Some(Conn::Control(_)) => self.on_control(key, owner),
            Some(&mut Conn::Data { client, load, stream }) => {
                if let Some(Conn::Control(client)) = self.conns.get_mut(&client) {
                    client.on_data(load, stream, event.closed);
                }
            }
            None => {}
        }
    }

    fn welcome(&mut self, stream: TcpStream, from: IpAddr) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        self.make_room();
        let key = self.next;
        self.next += 1;
        if self.epoll.add(&stream, Interest::Readable, key).is_ok() {
            let until = self.clock.now() + PATIENCE;
            self.conns.insert(
                key,
                Conn::New(Newcomer {
                    stream,
                    from,
                    lines: Lines::new(LINE),
                    until,
                    challenge: None,
                }),
            );
        }
    }

    /// Where there are too many connections that have not said what they are, the source with most
    /// of them loses its oldest.
    fn make_room(&mut self) {
        let mut by_source: HashMap<IpAddr, (usize, u64)> = HashMap::new();
        let mut all = 0;
        for (&key, conn) in &self.conns {
            if let Conn::New(newcomer) = conn {
                let (count, oldest) =
                    by_source.entry(probe::source(newcomer.from)).or_insert((0, key));
                (*count, *oldest) = (*count + 1, key.min(*oldest));
                all += 1;
            }
        }
        if all >= NEWCOMERS
            && let Some((_, oldest)) = by_source.values().max()
        {
            self.conns.remove(oldest);
        }
    }

    /// A connection says what it is.
    fn on_newcomer(&mut self, key: u64, owner: &mut impl Owner) {
        let Some(Conn::New(mut newcomer)) = self.conns.remove(&key) else {
            return;
        };
        let said = match first_line(&mut newcomer) {
            Ok(None) => {
                self.conns.insert(key, Conn::New(newcomer));
                return;
            }
            Ok(Some(line)) => protocol::parse::<Request>(&line).map_err(|_| {
                "this is a sojourn server; what came is not what `sojourn measure` says".to_string()
            }),
            Err(error) if error.kind() == ErrorKind::InvalidData => Err(error.to_string()),
            // Gone again.
            Err(_) => return,
        };
        let result = match said {
            Ok(Request::Hello { version: VERSION }) if newcomer.challenge.is_none() => {
                if !self.server.secret.is_none() {
                    self.challenge(key, newcomer);
                    return;
                }
                self.has_room(newcomer.from)
            }
            Ok(Request::Prove { proof }) => match &newcomer.challenge {
                Some(nonce) if self.server.secret.is_proof(nonce, &proof) => {
                    self.has_room(newcomer.from)
                }
                Some(_) => Err("that is not this server's secret".into()),
                None => Err("the first thing to say is hello".into()),
            },
            Ok(_) if newcomer.challenge.is_some() => {
                Err("the challenge is to be answered first".into())
            }
            Ok(Request::Hello { version }) => Err(format!(
                "this server speaks version {VERSION} of the protocol, the client version {version}; use one release of sojourn"
            )),
            Ok(Request::Stream { token, load, stream }) => {
                let found = self
                    .client_of(token, newcomer.from)
                    .ok_or("no client has this token".to_string());
                match found
                    .and_then(|(owner, client)| client.may_join(load, stream).map(|()| owner))
                {
                    Ok(owner) => {
                        self.join(key, newcomer, Conn::Data { client: owner, load, stream });
                        return;
                    }
                    Err(why) => Err(why),
                }
            }
            Ok(_) => Err("the first thing to say is hello".into()),
            Err(why) => Err(why),
        };
        match result
            .and_then(|()| crate::token().map_err(|e| format!("no token could be made: {e}")))
        {
            Ok(token) => self.let_in(key, newcomer, token, owner),
            Err(why) => {
                if self.accounts.of(newcomer.from, self.clock.now()).tell_refused() {
                    owner.tell(&format!("{} was refused: {why}", newcomer.from));
                }
                refuse(&newcomer.stream, why);
            }
        }
    }

    /// Why a client from this address can't be let in.
    fn has_room(&mut self, from: IpAddr) -> Result<(), String> {
        let (mut present, mut own) = (0, 0);
        for (_, client) in self.clients() {
            present += 1;
            own += usize::from(probe::source(client.from()) == probe::source(from));
        }
        self.server.caps.clients(present, own)
    }

    /// Has a connection that said hello show that it has the secret.
    fn challenge(&mut self, key: u64, mut newcomer: Newcomer) {
        match secret::nonce() {
            Ok(nonce) => {
                // It is the first that is written: it fits.
                let line = protocol::line(&Reply::Challenge { nonce: nonce.clone() });
                if io::Write::write_all(&mut newcomer.stream, &line).is_ok() {
                    newcomer.challenge = Some(nonce);
                    self.conns.insert(key, Conn::New(newcomer));
                }
            }
            Err(error) => refuse(&newcomer.stream, format!("no challenge could be made: {error}")),
        }
    }

    fn let_in(&mut self, key: u64, newcomer: Newcomer, token: u64, owner: &mut impl Owner) {
        let caps = self.server.caps;
        let mut client = Client::new(
            newcomer.stream,
            newcomer.from,
            token,
            caps,
            self.accounts.of(newcomer.from, self.clock.now()),
            self.clock.now() + SILENCE,
        );
        self.known.add(token, newcomer.from);
        client.say(&Reply::Welcome {
            version: VERSION,
            software: env!("CARGO_PKG_VERSION").into(),
            kernel: crate::kernel(),
            token,
            caps,
            congestion: crate::default_congestion(),
        });
        owner.tell(&format!("{} has come", newcomer.from));
        self.conns.insert(key, Conn::Control(Box::new(client)));
    }

    fn client_of(&mut self, token: u64, from: IpAddr) -> Option<(u64, &mut Client)> {
        self.clients().find(|(_, client)| client.token() == token && client.from() == from)
    }

    /// A data connection comes to its load.
    fn join(&mut self, key: u64, newcomer: Newcomer, conn: Conn) {
        let Conn::Data { client: owner, load, stream } = conn else {
            return;
        };
        let now = self.clock.now();
        let Some(Conn::Control(client)) = self.conns.get_mut(&owner) else {
            return;
        };
        if client.sends(load) {
            // What a receiver says does not matter; it is waited for again when there is something
            // to send.
            let _ = self.epoll.remove(&newcomer.stream);
        }
        client.join(load, stream, newcomer.stream.into(), newcomer.lines.rest() as u64, now);
        self.conns.insert(key, conn);
    }

    fn on_control(&mut self, key: u64, owner: &mut impl Owner) {
        let now = self.clock.now();
        let Some(Conn::Control(client)) = self.conns.get_mut(&key) else {
            return;
        };
        let mut begun = Vec::new();
        let result = client.on_readable(now, &self.clock, &self.known, SILENCE, &mut begun);
        for (load, stream, raw) in begun {
            // Its key came with it; it was not waited for until now.
            let found = self.conns.iter().find(|(_, conn)| {
                matches!(conn, Conn::Data { client, load: l, stream: s } if (*client, *l, *s) == (key, load, stream))
            });
            if let Some((&data, _)) = found {
                // A connection that can't be waited for sends nothing: its load shows it.
                let _ = self.epoll.add(&raw, Interest::Writable, data);
            }
        }
        if let Err(why) = result {
            self.let_go(key, &why, owner);
        }
    }

    fn let_go(&mut self, key: u64, why: &str, owner: &mut impl Owner) {
        if let Some(Conn::Control(mut client)) = self.conns.remove(&key) {
            client.leave(self.clock.now());
            self.known.remove(client.token());
            self.conns
                .retain(|_, conn| !matches!(conn, Conn::Data { client, .. } if *client == key));
            owner.tell(&format!(
                "{} is gone ({why}): {:.1} MB",
                client.from(),
                client.moved() as f64 / 1e6
            ));
            self.gone = true;
        }
    }

    fn do_due(&mut self, owner: &mut impl Owner) {
        let now = self.clock.now();
        let mut gone = Vec::new();
        for (key, client) in self.clients() {
            if let Err(why) = client.do_due(now) {
                gone.push((key, why));
            }
        }
        for (key, why) in gone {
            self.let_go(key, &why, owner);
        }
        self.conns.retain(|_, conn| !matches!(conn, Conn::New(newcomer) if newcomer.until <= now));
    }

    /// Says what there is to say, ends what goes on, for a moment.
    fn farewell(&mut self, owner: &mut impl Owner) {
        let now = self.clock.now();
        for (_, client) in self.clients() {
            client.end("the server was stopped", now);
        }
        let until = now + FAREWELL;
        while self.clients().any(|(_, client)| client.has_to_say()) && self.clock.now() < until {
            std::thread::sleep(std::time::Duration::from_millis(5));
            self.clients().for_each(|(_, client)| client.flush());
        }
        let keys: Vec<u64> = self.clients().map(|(key, _)| key).collect();
        for key in keys {
            self.let_go(key, "the server was stopped", owner);
        }
    }
}

/// The first line of a connection.
fn first_line(newcomer: &mut Newcomer) -> io::Result<Option<Vec<u8>>> {
    match newcomer.lines.read(&mut newcomer.stream) {
        Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
        Ok(_) => {}
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
        Err(error) => return Err(error),
    }
    newcomer.lines.next_line()
}

fn refuse(mut stream: &TcpStream, why: String) {
    // Whoever does not hear it has gone.
    let _ = io::Write::write(&mut stream, &protocol::line(&Reply::Refused { why }));
}

#[cfg(test)]
mod tests;
