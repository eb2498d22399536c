//! The client's end of the control connection.

use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use probe::Epoll;
use probe::sys::{self, Interest, Kind};

use super::Plan;
use crate::Failure;
use crate::protocol::{self, ANSWER, Lines, Reply, Request, VERSION};
use crate::secret::Secret;

/// The control connection is lost; contains the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerLost(pub String);

/// Interval between two checks whether to continue.
const LOOK: Duration = Duration::from_millis(100);

/// A control connection to a server.
#[derive(Debug)]
pub struct Control {
    stream: TcpStream,
    lines: Lines,
    address: SocketAddr,
    patience: Duration,
}

impl Control {
    /// Connects to the first of the host's addresses that answers. Here and below, `go_on` is
    /// called repeatedly and ends the wait if it returns false.
    pub fn connect(plan: &Plan, go_on: &mut dyn FnMut() -> bool) -> Result<Control, Failure> {
        let patience = Duration::from_nanos(plan.patience_ns as u64);
        let (host, port) = (plan.host.as_str(), plan.port);
        let all = (host, port).to_socket_addrs().map_err(|e| {
            Failure::new(
                format!("there is no host '{host}': {e}"),
                "give the name or address of the host that runs `sojourn serve`",
            )
        })?;
        let of_family =
            |a: &SocketAddr| plan.family.is_none_or(|family| (family == 4) == a.is_ipv4());
        let addresses: Vec<SocketAddr> = all.filter(of_family).collect();
        let mut last = None;
        for &address in &addresses {
            match dial(address, patience, go_on) {
                Ok(stream) => {
                    let broken = |e: std::io::Error| Failure::new(format!("{address}: {e}"), "");
                    stream.set_nodelay(true).map_err(broken)?;
                    stream.set_write_timeout(Some(patience)).map_err(broken)?;
                    return Ok(Control { stream, lines: Lines::new(ANSWER), address, patience });
                }
                Err(error) => last = Some((address, error)),
            }
        }
        Err(match last {
            None => Failure::new(
                format!("{host} has no IPv{} address", plan.family.unwrap_or(4)),
                "leave the family open, or give another host",
            ),
            Some((at, e)) if e.kind() == ErrorKind::ConnectionRefused => Failure::new(
                format!("no server listens at {at}"),
                "run `sojourn serve` there; other hosts reach it only with --bind ADDRESS",
            ),
            Some((at, e)) if e.kind() == ErrorKind::TimedOut => Failure::new(
                format!("{at} does not answer within {:.0} s", patience.as_secs_f64()),
                "check that `sojourn serve` runs there and that no firewall blocks TCP or UDP",
            ),
            Some((at, e)) => Failure::new(
                format!("{at} can't be reached: {e}"),
                "check that the network is up and the address is right",
            ),
        })
    }

    /// Returns the server's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns our own address on this connection.
    pub fn own_address(&self) -> Option<SocketAddr> {
        self.stream.local_addr().ok()
    }

    /// Sends a message.
    pub fn send(&mut self, request: &Request) -> Result<(), ServerLost> {
        let line = protocol::line(request);
        self.stream
            .write_all(&line)
            .map_err(|e| ServerLost(format!("sending to the server failed: {e}")))
    }

    /// Returns the server's next message; `None` if none arrives within `timeout`.
    pub fn receive(&mut self, timeout: Duration) -> Result<Option<Reply>, ServerLost> {
        if let Some(reply) = self.next()? {
            return Ok(Some(reply));
        }
        let timeout = timeout.max(Duration::from_millis(1));
        self.stream.set_read_timeout(Some(timeout)).map_err(|e| ServerLost(e.to_string()))?;
        match self.lines.read(&mut self.stream) {
            Ok(0) => Err(ServerLost("the server closed the connection".into())),
            Ok(_) => self.next(),
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(ServerLost(format!("the connection to the server failed: {error}"))),
        }
    }

    fn next(&mut self) -> Result<Option<Reply>, ServerLost> {
        let invalid =
            |e: std::io::Error| ServerLost(format!("the server's message is invalid: {e}"));
        match self.lines.next_line().map_err(invalid)? {
            None => Ok(None),
            Some(line) => match protocol::parse(&line).map_err(invalid)? {
                Reply::Ending { why } => Err(ServerLost(why)),
                reply => Ok(Some(reply)),
            },
        }
    }

    /// Sends the hello, and the proof of the secret if the server demands it. Returns the welcome.
    pub fn hello(
        &mut self,
        own: &Secret,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Reply, Failure> {
        let address = self.address;
        self.send(&Request::Hello { version: VERSION })
            .map_err(|ServerLost(why)| Failure::new(why, ""))?;
        let mut answer = self.answer(go_on);
        if let Ok(Reply::Challenge { nonce }) = &answer {
            if own.is_none() {
                return Err(Failure::new(format!("{address} requires a secret"), GIVE_SECRET));
            }
            let proof = own.prove(nonce);
            self.send(&Request::Prove { proof })
                .map_err(|ServerLost(why)| Failure::new(why, ""))?;
            answer = self.answer(go_on);
            if let Ok(Reply::Refused { why }) = answer {
                return Err(Failure::new(format!("{address} refused: {why}"), GIVE_SECRET));
            }
        }
        match answer {
            Ok(welcome @ Reply::Welcome { .. }) => Ok(welcome),
            Ok(Reply::Refused { why }) => {
                Err(Failure::new(format!("{address} refused: {why}"), ""))
            }
            Ok(_) => Err(Failure::new(format!("{address} sent an unexpected reply"), NO_SERVER)),
            Err(ServerLost(why)) => {
                Err(Failure::new(format!("{address} did not answer the hello: {why}"), NO_SERVER))
            }
        }
    }

    /// Waits for the server's next message.
    pub fn answer(&mut self, go_on: &mut dyn FnMut() -> bool) -> Result<Reply, ServerLost> {
        let until = Instant::now() + self.patience;
        while go_on() {
            if let Some(reply) =
                self.receive(LOOK.min(until.saturating_duration_since(Instant::now())))?
            {
                return Ok(reply);
            }
            if Instant::now() >= until {
                return Err(ServerLost(format!(
                    "no answer within {:.0} s",
                    self.patience.as_secs_f64()
                )));
            }
        }
        Err(ServerLost("the wait was cancelled".into()))
    }
}

/// Opens the TCP connection.
fn dial(
    to: SocketAddr,
    patience: Duration,
    go_on: &mut dyn FnMut() -> bool,
) -> io::Result<TcpStream> {
    let any: IpAddr = match to.ip() {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let fd: OwnedFd = sys::socket(Kind::Stream, any)?;
    let mut epoll = Epoll::new()?;
    sys::connect(&fd, to)?;
    epoll.add(&fd, Interest::Writable, 0)?;
    let until = Instant::now() + patience;
    let mut happened = Vec::new();
    while happened.is_empty() {
        if !go_on() {
            return Err(ErrorKind::Interrupted.into());
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        epoll.wait(Some(LOOK.min(left).as_millis() as u32 + 1), &mut happened)?;
    }
    sys::take_error(&fd)?;
    let stream = TcpStream::from(fd);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

const GIVE_SECRET: &str =
    "give the server's secret: --secret @FILE, or the environment variable SOJOURN_SECRET";
const NO_SERVER: &str = "check that `sojourn serve` listens at this port";
