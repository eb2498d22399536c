//! The server: sends and receives load within its limits, answers clock requests, returns echoes.
//!
//! One thread serves all connections of all clients with one epoll; nothing on it blocks. It closes
//! a connection that does not identify itself within `PATIENCE`, and a client that sends nothing
//! for `SILENCE`, so half-open connections do not accumulate. Every line, buffer and load has a
//! limit.
//!
//! No source (`probe::source`) can lock the others out. When `NEWCOMERS` connections have not
//! identified themselves, the source with most of them loses its oldest for each new one. A source
//! has at most a quarter of the clients. Its load and bytes are counted over an hour (`accounts`).
//! A server with a secret admits only clients that prove to know it.

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
/// Time for a connection to identify itself.
const PATIENCE: i64 = 5 * SECOND;
/// Time for a client to send any message.
const SILENCE: i64 = 30 * SECOND;
/// Limit of connections that have not identified themselves.
const NEWCOMERS: usize = 256;
/// Longest interval between two checks whether to end, ms.
const LOOK: i64 = 50;
/// Time to send the last messages when the server ends.
const FAREWELL: i64 = SECOND / 2;
/// Attempts to find a port that is free for TCP and UDP at all addresses.
const TRIES: usize = 20;

/// The options of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Addresses to bind to; empty: loopback, of the available families.
    pub bind: Vec<IpAddr>,
    /// TCP and UDP port; 0: any free port.
    pub port: u16,
    /// Limits for clients.
    pub caps: Caps,
    /// Secret that clients must prove to know; empty: none.
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
    /// Ends the server soon. It can't be restarted; this also holds before `serve`.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The owner of a server: receives its messages and decides when it ends.
pub trait Owner {
    /// Reports in words that a client has connected, was refused or has left.
    fn report(&mut self, words: &str);
    /// Whether the server should continue; called at least every 50 ms.
    fn go_on(&mut self) -> bool;
}

impl Server {
    /// Binds the server's sockets.
    pub fn bind(options: &Options) -> Result<Server, Failure> {
        Server::bind_all(options).map_err(|error| Failure {
            problem: format!("can't serve at {error}"),
            hint: match error.kind() {
                ErrorKind::AddrInUse => {
                    "another server uses this port: stop it, or choose another port".into()
                }
                ErrorKind::AddrNotAvailable => "bind to an address of this host".into(),
                ErrorKind::PermissionDenied => {
                    "ports below 1024 need root: choose a higher one".into()
                }
                _ => String::new(),
            },
        })
    }

    /// Like `bind`; the error contains the address.
    fn bind_all(options: &Options) -> io::Result<Server> {
        let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        let (addresses, optional) = match options.bind.as_slice() {
            [] => (&loopback[..], true),
            bind => (bind, false),
        };
        let mut last = io::Error::from(ErrorKind::AddrInUse);
        for _ in 0..if options.port == 0 { TRIES } else { 1 } {
            match Server::bind_once(addresses, options, optional) {
                Err(error) if error.kind() == ErrorKind::AddrInUse => last = error,
                other => return other,
            }
        }
        Err(last)
    }

    fn bind_once(addresses: &[IpAddr], options: &Options, optional: bool) -> io::Result<Server> {
        let mut server = Server {
            listeners: Vec::new(),
            datagrams: Vec::new(),
            addresses: Vec::new(),
            caps: options.caps,
            secret: options.secret.clone(),
            stop: Arc::new(AtomicBool::new(false)),
        };
        let mut port = options.port;
        for &address in addresses {
            let at = SocketAddr::new(address, port);
            let request =
                |e: io::Error, what: &str| io::Error::new(e.kind(), format!("{at} ({what}): {e}"));
            let listener = match listen(at) {
                Ok(listener) => listener,
                // The host may lack one of the families.
                Err(e)
                    if optional
                        && e.kind() != ErrorKind::AddrInUse
                        && !server.listeners.is_empty() =>
                {
                    continue;
                }
                Err(e) => return Err(request(e, "TCP")),
            };
            let bound = listener.local_addr()?;
            port = bound.port();
            server.datagrams.push(echo::socket(bound).map_err(|e| request(e, "UDP"))?);
            server.listeners.push(listener);
            server.addresses.push(bound);
        }
        Ok(server)
    }

    /// Returns the bound addresses.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns a handle that ends the server from another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.stop.clone())
    }

    /// Serves until its owner or its `Stopper` ends it or, with `once`, until the first client has
    /// left. May be called again unless it was stopped.
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

/// A connection that has not identified itself.
struct Newcomer {
    stream: TcpStream,
    from: IpAddr,
    lines: Lines,
    until: i64,
    /// The nonce that it must answer, after its hello.
    challenge: Option<String>,
}

/// The connection that an event belongs to.
enum Conn {
    New(Newcomer),
    Control(Box<Client>),
    /// A data connection of a load.
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
    /// A key is never reused: a late event finds no connection.
    next: u64,
    client_left: bool,
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
            client_left: false,
        })
    }

    fn run(&mut self, once: bool, owner: &mut impl Owner) -> io::Result<()> {
        sys::defer_thread();
        let mut happened = Vec::new();
        while owner.go_on()
            && !self.server.stop.load(Ordering::Relaxed)
            && !(once && self.client_left)
        {
            let left = (self.next_due() - self.clock.now()).clamp(0, LOOK * 1_000_000);
            happened.clear();
            self.epoll.wait(Some((left + 999_999) as u32 / 1_000_000), &mut happened)?;
            for event in &happened {
                self.take(event, owner);
            }
            self.do_due(owner);
        }
        self.shut_down(owner);
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
            // One connection per event: level-triggered, the event repeats for the others.
            if let Ok((stream, from)) = listener.accept() {
                self.accept(stream, from.ip().to_canonical());
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

    fn accept(&mut self, stream: TcpStream, from: IpAddr) {
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

    /// If too many connections have not identified themselves, closes the oldest one of the source
    /// that has most of them.
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

    /// Reads the first line of a connection, which identifies it.
    fn on_newcomer(&mut self, key: u64, owner: &mut impl Owner) {
        let Some(Conn::New(mut newcomer)) = self.conns.remove(&key) else {
            return;
        };
        let request = match first_line(&mut newcomer) {
            Ok(None) => {
                self.conns.insert(key, Conn::New(newcomer));
                return;
            }
            Ok(Some(line)) => protocol::parse::<Request>(&line).map_err(|_| {
                "this is a sojourn server, and the request is not from `sojourn measure`"
                    .to_string()
            }),
            Err(error) if error.kind() == ErrorKind::InvalidData => Err(error.to_string()),
            // The connection has already closed.
            Err(_) => return,
        };
        let result = match request {
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
                None => Err("the first message must be hello".into()),
            },
            Ok(_) if newcomer.challenge.is_some() => Err("answer the challenge first".into()),
            Ok(Request::Hello { version }) => Err(format!(
                "this server speaks version {VERSION} of the protocol, the client version {version}; use one release of sojourn"
            )),
            Ok(Request::Stream { token, load, stream }) => {
                let client = self
                    .client_of(token, newcomer.from)
                    .ok_or("no client has this token".to_string());
                match client
                    .and_then(|(owner, client)| client.may_join(load, stream).map(|()| owner))
                {
                    Ok(owner) => {
                        self.join(key, newcomer, Conn::Data { client: owner, load, stream });
                        return;
                    }
                    Err(why) => Err(why),
                }
            }
            Ok(_) => Err("the first message must be hello".into()),
            Err(why) => Err(why),
        };
        match result.and_then(|()| crate::token().map_err(|e| format!("can't create a token: {e}")))
        {
            Ok(token) => self.admit(key, newcomer, token, owner),
            Err(why) => {
                if self.accounts.of(newcomer.from, self.clock.now()).should_report_refusal() {
                    owner.report(&format!("{} was refused: {why}", newcomer.from));
                }
                refuse(&newcomer.stream, why);
            }
        }
    }

    /// Fails if a client from this address can't be admitted.
    fn has_room(&mut self, from: IpAddr) -> Result<(), String> {
        let (mut present, mut own) = (0, 0);
        for (_, client) in self.clients() {
            present += 1;
            own += usize::from(probe::source(client.from()) == probe::source(from));
        }
        self.server.caps.clients(present, own)
    }

    /// Sends a challenge to a connection that has sent its hello.
    fn challenge(&mut self, key: u64, mut newcomer: Newcomer) {
        match secret::nonce() {
            Ok(nonce) => {
                // This is the first write on the connection: it always fits.
                let line = protocol::line(&Reply::Challenge { nonce: nonce.clone() });
                if io::Write::write_all(&mut newcomer.stream, &line).is_ok() {
                    newcomer.challenge = Some(nonce);
                    self.conns.insert(key, Conn::New(newcomer));
                }
            }
            Err(error) => refuse(&newcomer.stream, format!("can't create a challenge: {error}")),
        }
    }

    fn admit(&mut self, key: u64, newcomer: Newcomer, token: u64, owner: &mut impl Owner) {
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
        client.send(&Reply::Welcome {
            version: VERSION,
            software: env!("CARGO_PKG_VERSION").into(),
            kernel: crate::kernel(),
            token,
            caps,
            congestion: crate::default_congestion(),
        });
        owner.report(&format!("{} connected", newcomer.from));
        self.conns.insert(key, Conn::Control(Box::new(client)));
    }

    fn client_of(&mut self, token: u64, from: IpAddr) -> Option<(u64, &mut Client)> {
        self.clients().find(|(_, client)| client.token() == token && client.from() == from)
    }

    /// Adds a data connection to its load.
    fn join(&mut self, key: u64, newcomer: Newcomer, conn: Conn) {
        let Conn::Data { client: owner, load, stream } = conn else {
            return;
        };
        let now = self.clock.now();
        let Some(Conn::Control(client)) = self.conns.get_mut(&owner) else {
            return;
        };
        if client.sends(load) {
            // Data from a receiver does not matter; the connection is added again when this end
            // begins to send.
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
            // The connection was removed from the epoll in `join`.
            let entry = self.conns.iter().find(|(_, conn)| {
                matches!(conn, Conn::Data { client, load: l, stream: s } if (*client, *l, *s) == (key, load, stream))
            });
            if let Some((&data, _)) = entry {
                // If this fails, the connection sends nothing, and its load shows it.
                let _ = self.epoll.add(&raw, Interest::Writable, data);
            }
        }
        if let Err(why) = result {
            self.remove_client(key, &why, owner);
        }
    }

    fn remove_client(&mut self, key: u64, why: &str, owner: &mut impl Owner) {
        if let Some(Conn::Control(mut client)) = self.conns.remove(&key) {
            client.leave(self.clock.now());
            self.known.remove(client.token());
            self.conns
                .retain(|_, conn| !matches!(conn, Conn::Data { client, .. } if *client == key));
            owner.report(&format!(
                "{} left ({why}): {:.1} MB",
                client.from(),
                client.moved() as f64 / 1e6
            ));
            self.client_left = true;
        }
    }

    fn do_due(&mut self, owner: &mut impl Owner) {
        let now = self.clock.now();
        let mut client_left = Vec::new();
        for (key, client) in self.clients() {
            if let Err(why) = client.do_due(now) {
                client_left.push((key, why));
            }
        }
        for (key, why) in client_left {
            self.remove_client(key, &why, owner);
        }
        self.conns.retain(|_, conn| !matches!(conn, Conn::New(newcomer) if newcomer.until <= now));
    }

    /// Ends all loads and sends the last messages, for at most `FAREWELL`.
    fn shut_down(&mut self, owner: &mut impl Owner) {
        let now = self.clock.now();
        for (_, client) in self.clients() {
            client.end("the server was stopped", now);
        }
        let until = now + FAREWELL;
        while self.clients().any(|(_, client)| client.has_output()) && self.clock.now() < until {
            std::thread::sleep(std::time::Duration::from_millis(5));
            self.clients().for_each(|(_, client)| client.flush());
        }
        let keys: Vec<u64> = self.clients().map(|(key, _)| key).collect();
        for key in keys {
            self.remove_client(key, "the server was stopped", owner);
        }
    }
}

/// Returns the first line of a connection, when it is complete.
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
    // If this fails, the client has gone.
    let _ = io::Write::write(&mut stream, &protocol::line(&Reply::Refused { why }));
}

#[cfg(test)]
mod tests;
