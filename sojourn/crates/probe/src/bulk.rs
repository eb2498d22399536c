//! Bulk TCP: a sender that never lets its socket run dry, unless its caller limits what it writes,
//! and a receiver that discards the data.
//!
//! The sender writes from one buffer of zeros whenever the socket accepts more. TCP_NOTSENT_LOWAT
//! keeps the unsent data to a few packets, so the socket's buffer does not become a queue of its
//! own. The limit is still above the amount that one burst of ACKs can release, so the network
//! limits the connection, not this program. The receiver lets the kernel discard the data without a
//! copy.
//!
//! A transfer ends when the far end has read all data and has closed its side: the sender learns
//! this with the last ACK.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::sys;

/// Options of both ends of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Congestion control by the kernel's name; `None`: the kernel's default.
    pub congestion: Option<String>,
    /// Largest segment, bytes; `None`: as the path allows.
    pub mss: Option<u32>,
    /// Largest receive window that this end advertises, bytes; `None`: the kernel tunes it.
    pub window_bytes: Option<u32>,
    /// The DS field without its ECN bits.
    pub ds: u8,
}

impl Options {
    /// Sets the options on a connection's socket.
    pub fn apply(&self, fd: &OwnedFd, family: IpAddr) -> io::Result<()> {
        if let Some(name) = &self.congestion {
            sys::set_option_bytes(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes()).map_err(
                |e| match e.raw_os_error() {
                    Some(libc::ENOENT) => io::Error::new(
                        ErrorKind::Unsupported,
                        format!("this kernel has no congestion control '{name}'"),
                    ),
                    Some(libc::EPERM) => io::Error::new(
                        ErrorKind::PermissionDenied,
                        format!(
                            "congestion control '{name}' is not allowed for unprivileged users here (sysctl net.ipv4.tcp_allowed_congestion_control)"
                        ),
                    ),
                    _ => e,
                },
            )?;
        }
        if let Some(mss) = self.mss {
            sys::set_option(fd, libc::IPPROTO_TCP, libc::TCP_MAXSEG, mss as i32)?;
        }
        if let Some(window) = self.window_bytes {
            sys::set_option(fd, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, window as i32)?;
        }
        set_ds(fd, family, self.ds)
    }
}

/// Sets the DS field of the packets that a socket sends.
pub fn set_ds(fd: &impl AsRawFd, family: IpAddr, ds: u8) -> io::Result<()> {
    if family.is_ipv4() {
        sys::set_option(fd, libc::IPPROTO_IP, libc::IP_TOS, i32::from(ds))
    } else {
        sys::set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, i32::from(ds))
    }
}

/// Largest amount of unsent data in the socket, bytes. The socket asks for more when half of it is
/// sent. So 64 kB, more than 40 segments, are ready for the ACKs that one interrupt may deliver.
const UNSENT: i32 = 128 * 1024;
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// The end that sends.
#[derive(Debug)]
pub struct Sender {
    fd: OwnedFd,
    state: State,
    left: Option<u64>,
    written: u64,
    /// Bytes that it may write since the start (`allow`).
    allowed: u64,
    /// Most bytes of one write.
    write: usize,
    /// The socket has refused data and is not writable yet.
    blocked: bool,
    /// Largest amount written in one call of `on_ready`, bytes.
    most: u64,
}

/// Progress of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The handshake is under way.
    Connecting,
    /// Data is being written.
    Sending,
    /// All data is written; the far end has not confirmed the end yet.
    Ending,
    /// The far end has read everything.
    Done,
}

impl Sender {
    /// Begins to connect to `to`, to send `bytes` (`None`: without end), from the calling thread's
    /// namespace.
    pub fn connect(
        from: IpAddr,
        to: SocketAddr,
        bytes: Option<u64>,
        options: &Options,
    ) -> io::Result<Sender> {
        let fd = sys::socket(sys::Kind::Stream, from)?;
        options.apply(&fd, from)?;
        sys::set_option(&fd, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, UNSENT)?;
        // The kernel chooses the port at connect, when the whole four-tuple is known. Otherwise 28
        // 000 connections would use up all ports.
        sys::set_option(&fd, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
        sys::bind(&fd, SocketAddr::new(from, 0))?;
        sys::connect(&fd, to)?;
        Ok(Sender {
            fd,
            state: State::Connecting,
            left: bytes,
            written: 0,
            allowed: u64::MAX,
            write: ZEROS.len(),
            blocked: false,
            most: u64::MAX,
        })
    }

    /// Sends without end over an existing connection, at most `most` bytes per call of `on_ready`. On a
    /// path as quick as memory the socket may never fill, and other sockets must be served too. So
    /// the caller waits for it with `Interest::Writable`.
    pub fn over(fd: OwnedFd, most: u64) -> io::Result<Sender> {
        sys::set_option(&fd, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, UNSENT)?;
        Ok(Sender {
            fd,
            state: State::Sending,
            left: None,
            written: 0,
            allowed: u64::MAX,
            write: ZEROS.len(),
            blocked: false,
            most,
        })
    }

    /// Returns the end of the other direction's data, over the same connection.
    pub fn receiver(&self) -> io::Result<Receiver> {
        Ok(Receiver::over(self.fd.try_clone()?))
    }

    /// Closes at once: the kernel discards unacknowledged data and sends an RST.
    pub fn abort(self) -> io::Result<()> {
        let linger = [1i32, 0].map(i32::to_ne_bytes).concat();
        sys::set_option_bytes(&self.fd, libc::SOL_SOCKET, libc::SO_LINGER, &linger)
    }

    /// Call this when the socket has become writable or the far end has closed
    /// (`Interest::WritableEdge`).
    pub fn on_ready(&mut self, closed: bool) -> io::Result<State> {
        if self.state == State::Connecting {
            sys::take_error(&self.fd)?;
            self.state = State::Sending;
        }
        if self.state == State::Sending {
            self.fill()?;
        }
        if self.state == State::Ending && closed {
            sys::take_error(&self.fd)?;
            if matches!(sys::discard(&self.fd, 1), Ok(0)) {
                self.state = State::Done;
            }
        }
        Ok(self.state)
    }

    /// Writes no more data. The kernel still sends the data in the socket's buffer.
    pub fn stop(&mut self) -> io::Result<()> {
        match self.state {
            State::Connecting => self.left = Some(0),
            State::Sending => self.end()?,
            State::Ending | State::Done => {}
        }
        Ok(())
    }

    /// From now on the sender writes whole multiples of `unit` bytes, except at the end.
    pub fn write_in_units_of(&mut self, unit: usize) {
        self.write = (ZEROS.len() / unit * unit).max(unit.min(ZEROS.len()));
    }

    /// Raises the number of bytes that the sender may write, counted from the start, to `bytes`. It
    /// writes at once, unless the socket has refused data before.
    pub fn allow(&mut self, bytes: u64) -> io::Result<()> {
        self.allowed = bytes;
        if self.state == State::Sending && !self.blocked { self.fill() } else { Ok(()) }
    }

    /// Returns the sender's progress.
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns the bytes written into the socket.
    pub fn written(&self) -> u64 {
        self.written
    }

    fn fill(&mut self) -> io::Result<()> {
        self.blocked = false;
        let until = self.written.saturating_add(self.most);
        while self.left != Some(0) {
            if self.written >= until.min(self.allowed) {
                return Ok(());
            }
            let most = self.left.unwrap_or(u64::MAX).min(self.allowed - self.written);
            let most = self.write.min(usize::try_from(most).unwrap_or(usize::MAX));
            match sys::send(&self.fd, &ZEROS[..most]) {
                Ok(sent) => {
                    self.written += sent as u64;
                    self.left = self.left.map(|left| left - sent as u64);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.blocked = true;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        self.left = Some(0);
        self.state = State::Ending;
        sys::end_sending(&self.fd)
    }
}

impl AsRawFd for Sender {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// Accepts the senders' connections.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
}

impl Listener {
    /// Listens at `at` in the calling thread's namespace. Accepted connections inherit the options.
    pub fn new(at: SocketAddr, options: &Options) -> io::Result<Listener> {
        let fd = sys::socket(sys::Kind::Stream, at.ip())?;
        options.apply(&fd, at.ip())?;
        sys::set_option(&fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
        sys::bind(&fd, at)?;
        sys::listen(&fd, 128)?;
        Ok(Listener { fd })
    }

    /// Returns the address it listens at.
    pub fn address(&self) -> io::Result<SocketAddr> {
        sys::local_address(&self.fd)
    }

    /// Returns the next waiting connection, if any.
    pub fn accept(&self) -> io::Result<Option<Receiver>> {
        match sys::accept(&self.fd) {
            Ok(fd) => Ok(Some(Receiver::over(fd))),
            // ECONNABORTED: the client has already closed it.
            Err(e)
                if e.kind() == ErrorKind::WouldBlock
                    || e.raw_os_error() == Some(libc::ECONNABORTED) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// The end that receives.
#[derive(Debug)]
pub struct Receiver {
    fd: OwnedFd,
    received: u64,
    ended: bool,
}

/// Bytes discarded in one call.
const GULP: usize = 1 << 20;

impl Receiver {
    /// Receives over an existing connection.
    pub fn over(fd: OwnedFd) -> Receiver {
        Receiver { fd, received: 0, ended: false }
    }

    /// Returns an end that sends without end over the same connection; it may write nothing yet.
    pub fn sender(&self) -> io::Result<Sender> {
        Ok(Sender { allowed: 0, ..Sender::over(self.fd.try_clone()?, u64::MAX)? })
    }

    /// Discards all data and returns its length. Call this when the socket has become readable
    /// (`Interest::ReadableEdge`). Epoll reports data that arrives after a discard of less than
    /// `GULP`, but it reports the end of the stream only once.
    pub fn on_ready(&mut self, closed: bool) -> io::Result<u64> {
        let before = self.received;
        while !self.ended {
            match sys::discard(&self.fd, GULP) {
                Ok(0) => self.ended = true,
                Ok(got) => {
                    self.received += got as u64;
                    if got < GULP && !closed {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(self.received - before)
    }

    /// Returns the bytes received since the start.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Whether the sender has ended and all data is read. Dropping the receiver then closes this
    /// side.
    pub fn ended(&self) -> bool {
        self.ended
    }
}

impl AsRawFd for Receiver {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{Epoll, Interest};
    use std::net::Ipv4Addr;

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// Runs one connection until both ends are done. Returns the bytes received and the sender's
    /// state.
    fn transfer(sender: &mut Sender, listener: &Listener) -> io::Result<(u64, State)> {
        let mut epoll = Epoll::new()?;
        epoll.add(listener, Interest::Readable, 0)?;
        epoll.add(sender, Interest::WritableEdge, 1)?;
        let (mut receiver, mut received) = (None::<Receiver>, 0);
        while sender.state() != State::Done {
            let mut happened = Vec::new();
            epoll.wait(Some(10_000), &mut happened)?;
            assert!(!happened.is_empty(), "nothing happens any more in state {:?}", sender.state());
            for event in happened {
                match event.token {
                    0 => {
                        if let Some(new) = listener.accept()? {
                            epoll.add(&new, Interest::ReadableEdge, 2)?;
                            receiver = Some(new);
                        }
                    }
                    1 => drop(sender.on_ready(event.closed)?),
                    _ => {
                        if let Some(open) = &mut receiver {
                            open.on_ready(event.closed)?;
                            received = open.received();
                            if open.ended() {
                                receiver = None;
                            }
                        }
                    }
                }
            }
        }
        Ok((received, sender.state()))
    }

    fn listener() -> Listener {
        Listener::new(SocketAddr::new(LOOPBACK, 0), &Options::default()).unwrap()
    }

    #[test]
    fn a_transfer_moves_its_bytes_and_ends() {
        for bytes in [1, 65_536, 10_000_019] {
            let listener = listener();
            let to = listener.address().unwrap();
            let mut sender =
                Sender::connect(LOOPBACK, to, Some(bytes), &Options::default()).unwrap();
            assert_eq!(transfer(&mut sender, &listener).unwrap(), (bytes, State::Done));
            assert_eq!(sender.written(), bytes);
        }
    }

    #[test]
    fn tcp_info_counts_what_was_sent() {
        let listener = listener();
        let options = Options { congestion: Some("reno".into()), ..Options::default() };
        let mut sender =
            Sender::connect(LOOPBACK, listener.address().unwrap(), Some(3_000_000), &options)
                .unwrap();
        transfer(&mut sender, &listener).unwrap();
        let info = crate::tcp_info::TcpInfo::of(&sender).unwrap();
        // Beginning and end of the stream count as one byte each.
        assert_eq!(info.bytes_acked, 3_000_002);
        assert_eq!(info.notsent_bytes, 0);
        assert!(info.data_segs_out > 0 && info.srtt_us > 0 && info.cwnd_segments > 0);
    }

    #[test]
    fn an_endless_sender_that_is_stopped_delivers_what_it_wrote() {
        let listener = listener();
        let mut sender =
            Sender::connect(LOOPBACK, listener.address().unwrap(), None, &Options::default())
                .unwrap();
        let mut epoll = Epoll::new().unwrap();
        epoll.add(&sender, Interest::WritableEdge, 1).unwrap();
        epoll.wait(Some(10_000), &mut Vec::new()).unwrap();
        assert_eq!(sender.on_ready(false).unwrap(), State::Sending);
        sender.stop().unwrap();
        let written = sender.written();
        assert!(written > 0);
        assert_eq!(transfer(&mut sender, &listener).unwrap(), (written, State::Done));
    }

    #[test]
    fn a_sender_writes_whole_units_within_its_allowance() {
        let listener = listener();
        let mut sender = Sender::connect(
            LOOPBACK,
            listener.address().unwrap(),
            Some(100_000),
            &Options::default(),
        )
        .unwrap();
        sender.write_in_units_of(1448);
        assert_eq!(sender.write, 45 * 1448);
        sender.allow(1448).unwrap();
        let mut epoll = Epoll::new().unwrap();
        epoll.add(&sender, Interest::WritableEdge, 1).unwrap();
        epoll.wait(Some(10_000), &mut Vec::new()).unwrap();
        for allowed in [1448, 4344, 10_000] {
            sender.allow(allowed).unwrap();
            sender.on_ready(false).unwrap();
            assert_eq!((sender.written(), sender.state()), (allowed, State::Sending));
        }
        sender.allow(u64::MAX).unwrap();
        assert_eq!(transfer(&mut sender, &listener).unwrap(), (100_000, State::Done));
    }

    #[test]
    fn an_unknown_congestion_control_is_named() {
        let options = Options { congestion: Some("bloat".into()), ..Options::default() };
        let error =
            Sender::connect(LOOPBACK, SocketAddr::new(LOOPBACK, 9), None, &options).unwrap_err();
        assert_eq!(error.to_string(), "this kernel has no congestion control 'bloat'");
    }

    #[test]
    fn a_refused_connection_is_an_error() {
        let closed_port = listener().address().unwrap();
        let mut sender =
            Sender::connect(LOOPBACK, closed_port, Some(1), &Options::default()).unwrap();
        let mut epoll = Epoll::new().unwrap();
        epoll.add(&sender, Interest::WritableEdge, 1).unwrap();
        epoll.wait(Some(10_000), &mut Vec::new()).unwrap();
        assert_eq!(sender.on_ready(true).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }
}
