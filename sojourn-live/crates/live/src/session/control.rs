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

/// Why nothing more will be heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone(pub String);

/// Between two looks at whether to go on.
const LOOK: Duration = Duration::from_millis(100);

/// A connection to a server.
#[derive(Debug)]
pub struct Control {
    stream: TcpStream,
    lines: Lines,
    address: SocketAddr,
    patience: Duration,
}

impl Control {
    /// Connects to the first of the host's addresses that answers. `go_on` is asked now and then,
    /// here and below.
    pub fn connect(plan: &Plan, go_on: &mut dyn FnMut() -> bool) -> Result<Control, Failure> {
        let patience = Duration::from_nanos(plan.patience_ns as u64);
        let (host, port) = (plan.host.as_str(), plan.port);
        let all = (host, port).to_socket_addrs().map_err(|e| {
            Failure::new(
                format!("there is no host '{host}': {e}"),
                "give the name or address of the host that runs `sojourn serve`",
            )
        })?;
        let wanted = |a: &SocketAddr| plan.family.is_none_or(|family| (family == 4) == a.is_ipv4());
        let addresses: Vec<SocketAddr> = all.filter(wanted).collect();
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
                format!("nobody serves at {at}"),
                "run `sojourn serve` there; from another host it is reached only with --bind ADDRESS",
            ),
            Some((at, e)) if e.kind() == ErrorKind::TimedOut => Failure::new(
                format!("{at} does not answer within {:.0} s", patience.as_secs_f64()),
                "see that `sojourn serve` runs there and that no firewall is between (TCP and UDP)",
            ),
            Some((at, e)) => Failure::new(
                format!("{at} can't be reached: {e}"),
                "see that the network is up and the address right",
            ),
        })
    }

    /// The server's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Our own address towards it.
    pub fn own_address(&self) -> Option<SocketAddr> {
        self.stream.local_addr().ok()
    }

    /// Says something.
    pub fn say(&mut self, request: &Request) -> Result<(), Gone> {
        let line = protocol::line(request);
        self.stream
            .write_all(&line)
            .map_err(|e| Gone(format!("the server can't be told anything: {e}")))
    }

    /// What the server says next, if it says something in time.
    pub fn hear(&mut self, timeout: Duration) -> Result<Option<Reply>, Gone> {
        if let Some(reply) = self.next()? {
            return Ok(Some(reply));
        }
        let timeout = timeout.max(Duration::from_millis(1));
        self.stream.set_read_timeout(Some(timeout)).map_err(|e| Gone(e.to_string()))?;
        match self.lines.read(&mut self.stream) {
            Ok(0) => Err(Gone("the server closed the connection".into())),
            Ok(_) => self.next(),
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(Gone(format!("the server is gone: {error}"))),
        }
    }

    fn next(&mut self) -> Result<Option<Reply>, Gone> {
        let strange =
            |e: std::io::Error| Gone(format!("what the server says is not understood: {e}"));
        match self.lines.next_line().map_err(strange)? {
            None => Ok(None),
            Some(line) => match protocol::parse(&line).map_err(strange)? {
                Reply::Ending { why } => Err(Gone(why)),
                reply => Ok(Some(reply)),
            },
        }
    }

    /// Says hello, and proves to have the secret if that is asked for; the welcome.
    pub fn hello(
        &mut self,
        own: &Secret,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Reply, Failure> {
        let address = self.address;
        self.say(&Request::Hello { version: VERSION })
            .map_err(|Gone(why)| Failure::new(why, ""))?;
        let mut answer = self.answer(go_on);
        if let Ok(Reply::Challenge { nonce }) = &answer {
            if own.is_none() {
                return Err(Failure::new(
                    format!("{address} lets in only who has its secret"),
                    GIVE_SECRET,
                ));
            }
            let proof = own.prove(nonce);
            self.say(&Request::Prove { proof }).map_err(|Gone(why)| Failure::new(why, ""))?;
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
            Ok(_) => Err(Failure::new(format!("{address} speaks another language"), NO_SERVER)),
            Err(Gone(why)) => {
                Err(Failure::new(format!("{address} did not say welcome: {why}"), NO_SERVER))
            }
        }
    }

    /// What the server says next, waited for.
    pub fn answer(&mut self, go_on: &mut dyn FnMut() -> bool) -> Result<Reply, Gone> {
        let until = Instant::now() + self.patience;
        while go_on() {
            if let Some(reply) =
                self.hear(LOOK.min(until.saturating_duration_since(Instant::now())))?
            {
                return Ok(reply);
            }
            if Instant::now() >= until {
                return Err(Gone(format!("no answer within {:.0} s", self.patience.as_secs_f64())));
            }
        }
        Err(Gone("it was not waited for".into()))
    }
}

/// Connects.
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

const GIVE_SECRET: &str = "give the one that `sojourn serve` has there: --secret @FILE, or the environment's SOJOURN_SECRET";
const NO_SERVER: &str = "see that it is `sojourn serve` that listens at this port";
