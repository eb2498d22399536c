//! The server: four URLs over HTTP/2 and TLS, for every client that follows the draft.
//!
//! `/.well-known/nq` contains the other URLs: `/small` (one byte), `/large` (8 GiB, sent as fast as
//! it is read), `/upload` (a POST, discarded). Nothing that a client sends is stored, and its use
//! is limited: connections and bytes (`accounts`), the lifetime of a connection, and the time
//! without a request. A client without bytes left gets status 429. Data that is not an HTTP/2
//! request ends only its own connection.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{Method, Request, Response, StatusCode};
use serde::Deserialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Handle, Runtime};
use tokio::time::{sleep, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::accounts::{Accounts, Admission, Limits};
use crate::brief::Brief;
use crate::document::{self, Document};
use crate::http::{READY, SEALED, capacity, cores, runtime};
use crate::tls::{H2, Identity};
use crate::unsent::Unsent;
use crate::{Problem, ZEROS};

/// The options of a server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Addresses to listen at, with the same port. Port 0: any free port.
    pub at: Vec<SocketAddr>,
    /// Names and addresses for the self-signed certificate, besides this host's loopback ones.
    pub names: Vec<String>,
    /// PEM files of a certificate chain and its key, instead of a self-signed certificate.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Longest lifetime of a connection, s.
    pub seconds: u64,
    /// Bytes per client and hour.
    pub bytes: u64,
    /// Simultaneous connections per client.
    pub connections: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            at: vec![SocketAddr::from(([127, 0, 0, 1], PORT))],
            names: Vec::new(),
            identity: None,
            seconds: 300,
            bytes: 100_000_000_000,
            connections: 256,
        }
    }
}

/// Default port of responsiveness servers that are not web servers.
pub const PORT: u16 = 4043;
/// Size of the large object: the draft's "at least 8 GB".
pub const LARGE_BYTES: u64 = 8 << 30;

/// The limit for all clients' connections is this multiple of one client's limit.
const CLIENTS: u32 = 4;
/// Time limit for the handshakes of TLS and HTTP/2.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// A connection without a request is closed after this time.
const SILENCE: Duration = Duration::from_secs(60);
/// Time for an evicted connection to finish its last request.
const FAREWELL: Duration = Duration::from_secs(1);
/// HTTP/2's receive windows; the data is read at once.
const WINDOW: u32 = 8 << 20;
const STREAMS: u32 = 128;
const HEADERS: u32 = 16 * 1024;

/// The server's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Open connections.
    pub connections: usize,
    /// Accepted connections, including refused ones.
    pub accepted: u64,
    /// Refused connections: the client was at its limit with all connections busy, or all clients
    /// together were.
    pub refused: u64,
    /// Requests answered successfully.
    pub requests: u64,
    /// Bytes of large objects passed to connections.
    pub sent_bytes: u64,
    /// Bytes of uploads received.
    pub received_bytes: u64,
}

#[derive(Debug, Default)]
struct Counters {
    connections: AtomicUsize,
    accepted: AtomicU64,
    refused: AtomicU64,
    requests: AtomicU64,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<SocketAddr>,
    certificate: Option<String>,
    counters: Arc<Counters>,
    accounts: Arc<Accounts>,
    // Dropping the runtimes ends every task, and with it every connection.
    runtimes: Vec<Runtime>,
}

impl Server {
    /// Starts to listen and serve, on its own threads.
    pub fn start(options: &Options) -> Result<Server, Problem> {
        let identity = match &options.identity {
            Some((chain, key)) => Identity::read(chain, key)?,
            None => Identity::self_signed(&names(options))?,
        };
        let certificate = identity.pem.clone();
        let acceptor = TlsAcceptor::from(Arc::new(identity.into_config()?));
        let (front, load) = (runtime("rpm-answer", 2)?, runtime("rpm-serve", cores())?);
        let (mut addresses, mut listeners) = (Vec::<SocketAddr>::new(), Vec::new());
        for &(mut at) in &options.at {
            if at.port() == 0 {
                at.set_port(addresses.first().map_or(0, SocketAddr::port));
            }
            let cannot = |error: io::Error| listening_problem(at, &error);
            let listener = front.block_on(TcpListener::bind(at)).map_err(cannot)?;
            addresses.push(listener.local_addr().map_err(cannot)?);
            listeners.push(listener);
        }
        let counters = Arc::<Counters>::default();
        let limits = Limits {
            connections: options.connections,
            all_connections: options.connections.saturating_mul(CLIENTS),
            bytes: options.bytes,
        };
        let accounts = Accounts::new(limits);
        let shared = Arc::new(Shared {
            acceptor,
            accounts: Arc::clone(&accounts),
            counters: Arc::clone(&counters),
            lifetime: Duration::from_secs(options.seconds),
            load: load.handle().clone(),
        });
        for listener in listeners {
            front.spawn(Arc::clone(&shared).accept(listener));
        }
        Ok(Server { addresses, certificate, counters, accounts, runtimes: vec![front, load] })
    }

    /// Returns the addresses it listens at.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns its certificate as PEM, if it is self-signed.
    pub fn certificate(&self) -> Option<&str> {
        self.certificate.as_deref()
    }

    /// Returns the counters.
    pub fn served(&self) -> Served {
        let counters = &self.counters;
        Served {
            connections: counters.connections.load(Ordering::Relaxed),
            accepted: counters.accepted.load(Ordering::Relaxed),
            refused: counters.refused.load(Ordering::Relaxed),
            requests: counters.requests.load(Ordering::Relaxed),
            sent_bytes: counters.sent_bytes.load(Ordering::Relaxed),
            received_bytes: counters.received_bytes.load(Ordering::Relaxed),
        }
    }

    /// Returns reports for the owner since the last call, one sentence each.
    pub fn take_lines(&self) -> Vec<String> {
        self.accounts.take_lines()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // On a new thread: the caller may be a task of another runtime, which must not block on
        // one.
        let runtimes = std::mem::take(&mut self.runtimes);
        let ending = std::thread::spawn(move || {
            for runtime in runtimes {
                runtime.shutdown_timeout(Duration::from_secs(2));
            }
        });
        let _ = ending.join();
    }
}

fn names(options: &Options) -> Vec<String> {
    let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(String::from).into();
    let listens = options.at.iter().map(SocketAddr::ip).filter(|address| !address.is_unspecified());
    for name in listens.map(|address| address.to_string()).chain(options.names.iter().cloned()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn listening_problem(at: SocketAddr, error: &io::Error) -> Problem {
    let hint = match error.kind() {
        ErrorKind::AddrInUse => "another program listens there: choose another port",
        ErrorKind::PermissionDenied => "ports below 1024 need root: choose a higher one",
        ErrorKind::AddrNotAvailable => "that address is not this host's: see `ip address`",
        _ => "choose another address and port",
    };
    Problem::new(format!("can't listen at {at}: {error}"), hint)
}

struct Shared {
    acceptor: TlsAcceptor,
    accounts: Arc<Accounts>,
    counters: Arc<Counters>,
    lifetime: Duration,
    /// Threads for connections with load; others accept connections and answer small requests.
    load: Handle,
}

/// One client's connection, as its requests use it.
struct ClientConnection {
    shared: Arc<Shared>,
    admission: Admission,
    unsent: Mutex<Unsent>,
    /// Whether it has requested a large transfer.
    loaded: AtomicBool,
}

impl Shared {
    async fn accept(self: Arc<Self>, listener: TcpListener) -> Infallible {
        loop {
            let Ok((socket, from)) = listener.accept().await else {
                // No file descriptor is free: wait until connections close.
                sleep(Duration::from_millis(50)).await;
                continue;
            };
            self.counters.accepted.fetch_add(1, Ordering::Relaxed);
            match self.accounts.admit(from.ip(), Instant::now()) {
                Some(admission) => drop(tokio::spawn(Arc::clone(&self).serve(socket, admission))),
                None => drop(self.counters.refused.fetch_add(1, Ordering::Relaxed)),
            }
        }
    }

    /// Data that is not HTTP/2 over TLS ends here, together with its connection.
    async fn serve(self: Arc<Self>, socket: TcpStream, admission: Admission) {
        let present = Present::new(&self);
        let until = tokio::time::Instant::now() + self.lifetime;
        let Ok(Some((connection, client))) =
            timeout_at(until, self.handshake(socket, admission)).await
        else {
            return;
        };
        Visit { connection, client, until, _present: present }.serve_small().await;
    }

    async fn handshake(
        self: Arc<Self>,
        socket: TcpStream,
        admission: Admission,
    ) -> Option<(Http, Arc<ClientConnection>)> {
        socket.set_nodelay(true).ok()?;
        let handle = socket.as_fd().try_clone_to_owned().ok()?;
        let unsent = Mutex::new(Unsent::new(handle, Instant::now()));
        let mut stream = timeout(HANDSHAKE, self.acceptor.accept(socket)).await.ok()?.ok()?;
        let (_, tls) = stream.get_mut();
        if tls.alpn_protocol() != Some(H2) {
            return None;
        }
        tls.set_buffer_limit(Some(SEALED));
        let mut http = h2::server::Builder::new();
        http.initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_concurrent_streams(STREAMS)
            .max_header_list_size(HEADERS)
            .max_send_buffer_size(READY);
        let connection =
            timeout(HANDSHAKE, http.handshake::<_, Bytes>(Brief(stream))).await.ok()?.ok()?;
        admission.handshake_done(Instant::now());
        let loaded = AtomicBool::new(false);
        Some((connection, Arc::new(ClientConnection { shared: self, admission, unsent, loaded })))
    }
}

type Http = h2::server::Connection<Brief<TlsStream<TcpStream>>, Bytes>;

/// An HTTP/2 connection and its latest end.
struct Visit {
    connection: Http,
    client: Arc<ClientConnection>,
    until: tokio::time::Instant,
    _present: Present,
}

impl Visit {
    /// Answers small requests; moves to the load threads with the first large one.
    async fn serve_small(mut self) {
        while let Some((request, respond)) = self.next().await {
            let answer = Arc::clone(&self.client).answer(request, respond);
            if self.client.loaded.load(Ordering::Relaxed) {
                let load = self.client.shared.load.clone();
                load.spawn(answer);
                load.spawn(self.serve_loaded());
                return;
            }
            tokio::spawn(answer);
        }
    }

    async fn serve_loaded(mut self) {
        while let Some((request, respond)) = self.next().await {
            tokio::spawn(Arc::clone(&self.client).answer(request, respond));
        }
    }

    /// Returns the next request; `None`: the connection has ended or must end.
    async fn next(&mut self) -> Option<(Request<RecvStream>, SendResponse<Bytes>)> {
        loop {
            let silent_until = tokio::time::Instant::now() + SILENCE;
            let admission = &self.client.admission;
            let accepted = {
                let next = timeout_at(silent_until.min(self.until), self.connection.accept());
                let (mut next, mut leave) = (pin!(next), pin!(admission.asked_to_leave()));
                poll_fn(|context| match leave.as_mut().poll(context) {
                    Poll::Ready(()) => Poll::Ready(None),
                    Poll::Pending => next.as_mut().poll(context).map(Some),
                })
                .await
            };
            let Some(accepted) = accepted else {
                self.connection.graceful_shutdown();
                self.until = self.until.min(tokio::time::Instant::now() + FAREWELL);
                continue;
            };
            match accepted {
                Ok(Some(Ok((request, respond)))) => {
                    admission.begin();
                    if matches!(request.uri().path(), document::LARGE | document::UPLOAD) {
                        self.client.loaded.store(true, Ordering::Relaxed);
                    }
                    return Some((request, respond));
                }
                Ok(None | Some(Err(_))) => return None,
                Err(_) if tokio::time::Instant::now() >= self.until => return None,
                Err(_) if admission.is_idle() => return None,
                Err(_) => {}
            }
        }
    }
}

/// Counts a connection while it is open.
struct Present(Arc<Counters>);

impl Present {
    fn new(shared: &Shared) -> Present {
        shared.counters.connections.fetch_add(1, Ordering::Relaxed);
        Present(Arc::clone(&shared.counters))
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ClientConnection {
    async fn answer(self: Arc<Self>, request: Request<RecvStream>, respond: SendResponse<Bytes>) {
        // A client that has gone or cancelled its request needs no answer.
        let succeeded = self.reply(request, respond).await.is_ok();
        self.admission.end(Instant::now());
        if succeeded {
            self.shared.counters.requests.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn reply(
        &self,
        request: Request<RecvStream>,
        mut to: SendResponse<Bytes>,
    ) -> Result<(), h2::Error> {
        let (head, body) = request.into_parts();
        if let Some(why) = self.admission.spent() {
            return refuse_spent(&mut to, why);
        }
        match (head.method, head.uri.path()) {
            (Method::GET, document::PATH) => {
                let Some(authority) = head.uri.authority() else {
                    return refuse(&mut to, StatusCode::BAD_REQUEST);
                };
                let json = Document::write(authority.as_str());
                let mut body =
                    to.send_response(head_of("application/json", json.len() as u64), false)?;
                body.send_data(json.into(), true)
            }
            (Method::GET, document::SMALL) => to
                .send_response(head_of(OCTETS, 1), false)?
                .send_data(Bytes::from_static(b"0"), true),
            (Method::GET, document::LARGE) => {
                let body = to.send_response(head_of(OCTETS, LARGE_BYTES), false)?;
                self.send_large(body).await
            }
            (Method::POST | Method::PUT, document::UPLOAD) => {
                if let Some(why) = self.discard(body).await? {
                    return refuse_spent(&mut to, why);
                }
                to.send_response(head_of(OCTETS, 0), true).map(drop)
            }
            (_, document::PATH | document::SMALL | document::LARGE | document::UPLOAD) => {
                refuse(&mut to, StatusCode::METHOD_NOT_ALLOWED)
            }
            _ => refuse(&mut to, StatusCode::NOT_FOUND),
        }
    }

    fn unsent(&self) -> MutexGuard<'_, Unsent> {
        self.unsent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send_large(&self, mut body: SendStream<Bytes>) -> Result<(), h2::Error> {
        let mut left = LARGE_BYTES;
        while left > 0 {
            let most = left.min(self.unsent().frame() as u64) as usize;
            let bytes = capacity(&mut body, most).await?.min(most);
            if !self.admission.charge(bytes) {
                body.send_reset(Reason::ENHANCE_YOUR_CALM);
                return Err(Reason::ENHANCE_YOUR_CALM.into());
            }
            left -= bytes as u64;
            body.send_data(Bytes::from_static(&ZEROS[..bytes]), left == 0)?;
            self.shared.counters.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            self.unsent().handed(bytes, Instant::now());
        }
        Ok(())
    }

    /// Discards an upload. Returns the reason if the client's bytes are used up.
    async fn discard(&self, mut body: RecvStream) -> Result<Option<String>, h2::Error> {
        while let Some(data) = body.data().await {
            let bytes = data?.len();
            self.shared.counters.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            if !self.admission.charge(bytes) {
                return Ok(self.admission.spent());
            }
            body.flow_control().release_capacity(bytes)?;
        }
        Ok(None)
    }
}

const OCTETS: &str = "application/octet-stream";

fn head_of(kind: &'static str, bytes: u64) -> Response<()> {
    let mut head = Response::new(());
    head.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
    head.headers_mut().insert(http::header::CONTENT_LENGTH, bytes.into());
    head
}

fn refuse(to: &mut SendResponse<Bytes>, status: StatusCode) -> Result<(), h2::Error> {
    let mut head = Response::new(());
    *head.status_mut() = status;
    to.send_response(head, true).map(drop)
}

/// The client has reached its limit: RFC 6585, section 4.
fn refuse_spent(to: &mut SendResponse<Bytes>, why: String) -> Result<(), h2::Error> {
    let mut head = head_of("text/plain; charset=utf-8", why.len() as u64);
    *head.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    to.send_response(head, false)?.send_data(why.into(), true)
}
