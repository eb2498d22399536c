//! The system calls, and the only `unsafe` code of this crate.
//!
//! Three rules keep each block sound. A pointer passed to the kernel comes from a live borrow,
//! together with that borrow's length. The kernel writes only plain bytes or integers, for which
//! every value is valid. A descriptor is wrapped into an `OwnedFd` exactly once, directly after the
//! kernel returned it.
#![allow(unsafe_code)]

use std::io::{self, Error, ErrorKind};
use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use libc::{c_int, c_void};

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result) }
}

fn check_size(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| Error::last_os_error())
}

/// Takes ownership of a descriptor that the kernel has just returned.
fn own(fd: c_int) -> io::Result<OwnedFd> {
    let fd = check(fd)?;
    // SAFETY: the kernel returned this descriptor to this call, so it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

// ----------------------------------------------------------------------------------------- clocks

/// The clocks of the kernel, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Never steps. Counts from an unspecified start.
    Monotonic,
    /// The time of day, since 1970, which packet timestamps use. It may be stepped.
    Realtime,
}

/// Reads a clock of the kernel.
pub fn read_clock(clock: Kernel) -> i64 {
    let id = match clock {
        Kernel::Monotonic => libc::CLOCK_MONOTONIC,
        Kernel::Realtime => libc::CLOCK_REALTIME,
    };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live timespec; both clocks exist on every Linux, so the call can't fail.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    nanoseconds(time)
}

fn nanoseconds(time: libc::timespec) -> i64 {
    // On 32-bit systems these types are shorter.
    let (seconds, rest): (i64, i64) = (time.tv_sec as _, time.tv_nsec as _);
    seconds * 1_000_000_000 + rest
}

/// 64 ticks with HZ = 250, ns: the granularity of timers from 2 to 16 s.
const PERIOD: i64 = 256_000_000;
/// One tick with HZ = 1000, ns; a tick with HZ = 250 or 100 is a multiple of it.
const LEAST_TICK: i64 = 1_000_000;

/// A run's monotonic clock: 0 at a chosen instant. Packet timestamps are in time of day; the
/// difference of the two clocks at that instant converts them.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: i64,
    zero_of_day: i64,
}

impl Clock {
    /// Creates a clock that shows 0 `ahead` ns from now.
    pub fn starting_in(ahead: i64) -> Clock {
        let difference = Clock::difference();
        let zero = read_clock(Kernel::Monotonic) + ahead;
        Clock { zero, zero_of_day: zero + difference }
    }

    /// Creates a clock that shows 0 at a tick of the kernel's timers: `PERIOD` after a tick that
    /// comes in `ahead` ns or slightly later. If `ahead` is 2016 ms or more (HZ 250), the tick is
    /// one at which timers of up to 16 s expire, and all shorter ones too. Waits for that tick.
    pub fn starting_with_tick(ahead: i64) -> io::Result<Clock> {
        // Socket timeouts use the kernel's timer wheels (kernel/time/timer.c). Sleeps use other
        // clocks.
        let idle = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        idle.set_read_timeout(Some(Duration::from_nanos(ahead.max(1) as u64)))?;
        loop {
            match idle.recv(&mut [0]) {
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
                Err(e) if e.kind() != ErrorKind::Interrupted => return Err(e),
                _ => {}
            }
        }
        // Ticks are at multiples of their length (tick_init_jiffy_update). We wake some µs after
        // one. A clock that showed 0 then would make each tick, and each whole ms of a timestamp,
        // too early by these µs.
        let woken = read_clock(Kernel::Monotonic);
        let zero = woken - woken % LEAST_TICK + PERIOD;
        Ok(Clock { zero, zero_of_day: zero + Clock::difference() })
    }

    /// Returns the current time, ns; negative before the start.
    pub fn now(&self) -> i64 {
        read_clock(Kernel::Monotonic) - self.zero
    }

    /// Converts a packet's timestamp to this clock.
    pub fn stamp(&self, time_of_day: i64) -> i64 {
        time_of_day - self.zero_of_day
    }

    /// Converts the timestamp of a packet that has just arrived to this clock, with the current
    /// difference of the two clocks. Unlike `stamp`, a step of the time of day since the start has
    /// no effect. A result before `earliest` or after now is impossible (the time was just
    /// stepped), and becomes now.
    pub fn just_stamped(&self, time_of_day: i64, earliest: i64) -> i64 {
        let stamped = time_of_day - Clock::difference() - self.zero;
        let now = self.now();
        if (earliest..=now).contains(&stamped) { stamped } else { now }
    }

    /// Converts a time of this clock to the kernel's monotonic clock, which timers use.
    pub fn monotonic(&self, time: i64) -> i64 {
        self.zero + time
    }

    /// Returns the time of day at 0, ns.
    pub fn zero_of_day(&self) -> i64 {
        self.zero_of_day
    }

    /// Returns how far the time of day was stepped or slewed since the start, ns. Packet timestamps
    /// are wrong by this amount.
    pub fn stepped(&self) -> i64 {
        Clock::difference() - (self.zero_of_day - self.zero)
    }

    /// Returns time of day minus monotonic time. The two can't be read at once: of three tries, the
    /// shortest counts.
    fn difference() -> i64 {
        let once = || {
            let before = read_clock(Kernel::Monotonic);
            let day = read_clock(Kernel::Realtime);
            let after = read_clock(Kernel::Monotonic);
            (after - before, day - (before + (after - before) / 2))
        };
        [once(), once(), once()].into_iter().min_by_key(|&(took, _)| took).map_or(0, |(_, d)| d)
    }
}

/// A timer of the kernel that an `Epoll` can wait for.
#[derive(Debug)]
pub struct Timer(OwnedFd);

impl Timer {
    /// Creates a timer that is not set.
    pub fn new() -> io::Result<Timer> {
        // SAFETY: no pointers.
        let fd = unsafe {
            libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC)
        };
        Ok(Timer(own(fd)?))
    }

    /// Makes the timer readable from this time of the monotonic clock on; at once if the time has
    /// passed. Setting it again clears an earlier expiry, so reading it is not necessary.
    pub fn set(&self, monotonic: i64) -> io::Result<()> {
        let at = monotonic.max(1);
        let value = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: libc::timespec {
                tv_sec: (at / 1_000_000_000) as _,
                tv_nsec: (at % 1_000_000_000) as _,
            },
        };
        // SAFETY: `value` is live for the call; the null pointer means that the old value is not
        // wanted.
        let result = unsafe {
            libc::timerfd_settime(
                self.0.as_raw_fd(),
                libc::TFD_TIMER_ABSTIME,
                &raw const value,
                std::ptr::null_mut(),
            )
        };
        check(result).map(drop)
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

// ------------------------------------------------------------------------------------------ epoll

/// Events to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Readable; reported again as long as it stays readable.
    Readable,
    /// Readable; reported when more data has arrived.
    ReadableEdge,
    /// Writable, or the far end has closed; reported again as long as it stays so.
    Writable,
    /// Writable, or the far end has closed; reported when that changes.
    WritableEdge,
    /// Readable or writable; reported when more data has arrived, or that changes.
    BothEdges,
}

/// An event of one descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The token passed to `add`.
    pub token: u64,
    /// The descriptor is readable.
    pub readable: bool,
    /// The descriptor is writable.
    pub writable: bool,
    /// The far end has closed its half, or the connection is gone.
    pub closed: bool,
}

/// Waits for many descriptors at once.
#[derive(Debug)]
pub struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Epoll {
    /// Creates an empty set.
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: no pointers.
        let fd = own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        Ok(Epoll { fd, events: vec![libc::epoll_event { events: 0, u64: 0 }; 256] })
    }

    /// Adds a descriptor. Closing it removes it from the set.
    pub fn add(&self, fd: &impl AsRawFd, interest: Interest, token: u64) -> io::Result<()> {
        let events = match interest {
            Interest::Readable => libc::EPOLLIN,
            Interest::ReadableEdge => libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET,
            Interest::Writable => libc::EPOLLOUT | libc::EPOLLRDHUP,
            Interest::WritableEdge => libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET,
            Interest::BothEdges => {
                libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET
            }
        };
        let mut event = libc::epoll_event { events: events as u32, u64: token };
        // SAFETY: `event` is live for the call.
        let result = unsafe {
            libc::epoll_ctl(
                self.fd.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                fd.as_raw_fd(),
                &raw mut event,
            )
        };
        check(result).map(drop)
    }

    /// Removes a descriptor.
    pub fn remove(&self, fd: &impl AsRawFd) -> io::Result<()> {
        // SAFETY: this operation takes no event, so the pointer may be null.
        let result = unsafe {
            libc::epoll_ctl(
                self.fd.as_raw_fd(),
                libc::EPOLL_CTL_DEL,
                fd.as_raw_fd(),
                std::ptr::null_mut(),
            )
        };
        check(result).map(drop)
    }

    /// Waits for an event, at most `timeout_ms` (`None`: without a limit), and appends all events
    /// to `happened`.
    pub fn wait(&mut self, timeout_ms: Option<u32>, happened: &mut Vec<Event>) -> io::Result<()> {
        let timeout = timeout_ms.map_or(-1, |ms| i32::try_from(ms).unwrap_or(i32::MAX));
        // SAFETY: the kernel writes at most `len` events into the live vector.
        let result = unsafe {
            libc::epoll_wait(
                self.fd.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.events.len() as c_int,
                timeout,
            )
        };
        let count = match check(result) {
            Ok(count) => count as usize,
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        happened.extend(self.events[..count].iter().map(|event| {
            let bits = event.events as i32;
            Event {
                token: event.u64,
                readable: bits & libc::EPOLLIN != 0,
                writable: bits & libc::EPOLLOUT != 0,
                closed: bits & (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) != 0,
            }
        }));
        Ok(())
    }
}

// ---------------------------------------------------------------------------------------- sockets

/// Kinds of sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TCP.
    Stream,
    /// UDP.
    Datagram,
    /// ICMP echo without privileges: the kernel assigns the identifier.
    Echo,
    /// ICMP with the IP header (IPv4) or without it (IPv6). Needs a privilege.
    RawIcmp,
}

/// Opens a non-blocking socket in the calling thread's network namespace, for addresses of the same
/// family as `family`.
pub fn socket(kind: Kind, family: IpAddr) -> io::Result<OwnedFd> {
    let domain = if family.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let icmp = if family.is_ipv4() { libc::IPPROTO_ICMP } else { libc::IPPROTO_ICMPV6 };
    let (kind, protocol) = match kind {
        Kind::Stream => (libc::SOCK_STREAM, 0),
        Kind::Datagram => (libc::SOCK_DGRAM, 0),
        Kind::Echo => (libc::SOCK_DGRAM, icmp),
        Kind::RawIcmp => (libc::SOCK_RAW, icmp),
    };
    new_socket(domain, kind | libc::SOCK_NONBLOCK, protocol)
}

/// Opens a blocking netlink socket for routes and queue disciplines.
pub(crate) fn netlink_socket() -> io::Result<OwnedFd> {
    new_socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)
}

/// Opens a packet socket without link headers, which receives nothing until it is bound.
pub(crate) fn packet_socket() -> io::Result<OwnedFd> {
    new_socket(libc::AF_PACKET, libc::SOCK_DGRAM | libc::SOCK_NONBLOCK, 0)
}

fn new_socket(domain: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    own(unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol) })
}

/// Sets an integer option.
pub fn set_option(fd: &impl AsRawFd, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
    set_option_bytes(fd, level, name, &value.to_ne_bytes())
}

/// Sets an option that is a string or a struct, passed as bytes.
pub fn set_option_bytes(
    fd: &impl AsRawFd,
    level: c_int,
    name: c_int,
    value: &[u8],
) -> io::Result<()> {
    // SAFETY: pointer and length of one live slice.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            value.as_ptr().cast::<c_void>(),
            value.len() as libc::socklen_t,
        )
    };
    check(result).map(drop)
}

/// Reads an option into `value`; returns the number of bytes that the kernel wrote.
pub fn option_bytes(
    fd: &impl AsRawFd,
    level: c_int,
    name: c_int,
    value: &mut [u8],
) -> io::Result<usize> {
    let mut length = value.len() as libc::socklen_t;
    // SAFETY: pointer and length of one live slice of bytes, which the kernel fills at most to that
    // length.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            level,
            name,
            value.as_mut_ptr().cast::<c_void>(),
            &raw mut length,
        )
    };
    check(result)?;
    Ok((length as usize).min(value.len()))
}

/// Returns and clears the error of a socket, for example the result of a connect in the background.
pub fn take_error(fd: &impl AsRawFd) -> io::Result<()> {
    let mut value = [0; 4];
    option_bytes(fd, libc::SOL_SOCKET, libc::SO_ERROR, &mut value)?;
    match i32::from_ne_bytes(value) {
        0 => Ok(()),
        code => Err(Error::from_raw_os_error(code)),
    }
}

/// A socket address in the kernel's layout.
struct Name {
    bytes: [u8; 28],
    len: usize,
}

impl Name {
    fn of(address: SocketAddr) -> Name {
        let mut bytes = [0; 28];
        bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        let (family, len) = match address.ip() {
            IpAddr::V4(ip) => {
                bytes[4..8].copy_from_slice(&ip.octets());
                (libc::AF_INET, 16)
            }
            IpAddr::V6(ip) => {
                bytes[8..24].copy_from_slice(&ip.octets());
                (libc::AF_INET6, 28)
            }
        };
        bytes[..2].copy_from_slice(&(family as u16).to_ne_bytes());
        Name { bytes, len }
    }

    fn parse(bytes: &[u8; 28]) -> Option<SocketAddr> {
        let port = u16::from_be_bytes([bytes[2], bytes[3]]);
        let ip = match i32::from(u16::from_ne_bytes([bytes[0], bytes[1]])) {
            libc::AF_INET => IpAddr::V4(Ipv4Addr::new(bytes[4], bytes[5], bytes[6], bytes[7])),
            libc::AF_INET6 => {
                let octets: [u8; 16] = bytes[8..24].try_into().ok()?;
                IpAddr::V6(Ipv6Addr::from(octets))
            }
            _ => return None,
        };
        Some(SocketAddr::new(ip, port))
    }
}

/// Binds a socket to a local address.
pub fn bind(fd: &impl AsRawFd, address: SocketAddr) -> io::Result<()> {
    let name = Name::of(address);
    // SAFETY: the bytes are laid out as the sockaddr of their family and live for the call; the
    // kernel copies them.
    let result = unsafe {
        libc::bind(fd.as_raw_fd(), name.bytes.as_ptr().cast(), name.len as libc::socklen_t)
    };
    check(result).map(drop)
}

/// Connects, or begins to connect. A TCP socket becomes writable when this has ended; `take_error`
/// returns the result.
pub fn connect(fd: &impl AsRawFd, address: SocketAddr) -> io::Result<()> {
    let name = Name::of(address);
    // SAFETY: as in `bind`.
    let result = unsafe {
        libc::connect(fd.as_raw_fd(), name.bytes.as_ptr().cast(), name.len as libc::socklen_t)
    };
    match check(result) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(()),
    }
}

/// Starts to accept connections.
pub fn listen(fd: &impl AsRawFd, backlog: c_int) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::listen(fd.as_raw_fd(), backlog) }).map(drop)
}

/// Accepts a connection, as a non-blocking socket.
pub fn accept(fd: &impl AsRawFd) -> io::Result<OwnedFd> {
    // SAFETY: null pointers: the address is not wanted.
    let result = unsafe {
        libc::accept4(
            fd.as_raw_fd(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
        )
    };
    own(result)
}

/// Returns a socket's own address.
pub fn local_address(fd: &impl AsRawFd) -> io::Result<SocketAddr> {
    let mut bytes = [0; 28];
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into the live array.
    check(unsafe {
        libc::getsockname(fd.as_raw_fd(), bytes.as_mut_ptr().cast(), &raw mut length)
    })?;
    Name::parse(&bytes).ok_or_else(|| Error::from(ErrorKind::Unsupported))
}

/// Returns the address of the other end of a connection.
pub fn peer_address(fd: &impl AsRawFd) -> io::Result<SocketAddr> {
    let mut bytes = [0; 28];
    let mut length = bytes.len() as libc::socklen_t;
    // SAFETY: as in `local_address`.
    check(unsafe {
        libc::getpeername(fd.as_raw_fd(), bytes.as_mut_ptr().cast(), &raw mut length)
    })?;
    Name::parse(&bytes).ok_or_else(|| Error::from(ErrorKind::Unsupported))
}

/// Closes the sending direction of a connection.
pub fn end_sending(fd: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_WR) }).map(drop)
}

/// Sends bytes. A broken connection is an error, not a signal.
pub fn send(fd: &impl AsRawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: pointer and length of one live slice.
    check_size(unsafe {
        libc::send(fd.as_raw_fd(), bytes.as_ptr().cast::<c_void>(), bytes.len(), libc::MSG_NOSIGNAL)
    })
}

/// Sends a datagram to an address.
pub fn send_to(fd: &impl AsRawFd, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
    let name = Name::of(to);
    // SAFETY: pointers and lengths of live slices; the address as in `bind`.
    check_size(unsafe {
        libc::sendto(
            fd.as_raw_fd(),
            bytes.as_ptr().cast::<c_void>(),
            bytes.len(),
            libc::MSG_NOSIGNAL,
            name.bytes.as_ptr().cast(),
            name.len as libc::socklen_t,
        )
    })
}

/// Like `send_to`, with this DS field instead of the socket's.
pub fn send_marked(fd: &impl AsRawFd, bytes: &[u8], to: SocketAddr, ds: u8) -> io::Result<usize> {
    let mut name = Name::of(to);
    let (level, kind) = match to.ip() {
        IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
        IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
    };
    let mut control = Control::EMPTY;
    let control_length = control.write(level, kind, &i32::from(ds).to_ne_bytes());
    let mut part =
        libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast::<c_void>(), iov_len: bytes.len() };
    // SAFETY: an all-zero msghdr is a valid value: integers and null pointers.
    let mut head: libc::msghdr = unsafe { std::mem::zeroed() };
    head.msg_name = name.bytes.as_mut_ptr().cast::<c_void>();
    head.msg_namelen = name.len as libc::socklen_t;
    head.msg_iov = &raw mut part;
    head.msg_iovlen = 1;
    head.msg_control = (&raw mut control).cast::<c_void>();
    head.msg_controllen = control_length as _;
    // SAFETY: every pointer in `head` refers to memory that outlives the call, with its length; the
    // kernel does not write to any of it.
    check_size(unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const head, libc::MSG_NOSIGNAL) })
}

/// Receives bytes.
pub fn receive(fd: &impl AsRawFd, bytes: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most the live slice's length into it.
    check_size(unsafe {
        libc::recv(fd.as_raw_fd(), bytes.as_mut_ptr().cast::<c_void>(), bytes.len(), 0)
    })
}

/// Discards up to `most` bytes from a TCP socket; returns 0 at the end of the stream.
pub fn discard(fd: &impl AsRawFd, most: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC a TCP socket copies nothing (tcp(7)), so the null pointer is not
    // written to.
    check_size(unsafe { libc::recv(fd.as_raw_fd(), std::ptr::null_mut(), most, libc::MSG_TRUNC) })
}

/// Returns the sender of the ICMP message that caused the oldest queued error of a datagram socket
/// (IP_RECVERR); `None` if there is no error, or ICMP did not cause it.
pub fn error_source(fd: &impl AsRawFd) -> io::Result<Option<IpAddr>> {
    let mut control = Control::EMPTY;
    // SAFETY: an all-zero msghdr is a valid value: integers and null pointers.
    let mut head: libc::msghdr = unsafe { std::mem::zeroed() };
    head.msg_control = (&raw mut control).cast::<c_void>();
    head.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the only pointer in `head` refers to the live array, with its length.
    let result = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut head, libc::MSG_ERRQUEUE) };
    match check_size(result) {
        Ok(_) => Ok(source_of(&control, head.msg_controllen as usize)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the address in the control messages, after a sock_extended_err of 16 bytes.
fn source_of(control: &Control, length: usize) -> Option<IpAddr> {
    let given = control.find(length, &ERRORS)?.1.get(16..)?;
    let mut name = [0; 28];
    let most = given.len().min(name.len());
    name[..most].copy_from_slice(&given[..most]);
    Name::parse(&name).map(|address| address.ip())
}

/// A received datagram.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Its first bytes, as many as the batch keeps.
    pub bytes: &'a [u8],
    /// Its full length, bytes.
    pub length: usize,
    /// The sender's address; `None` if the family is not IP.
    pub from: Option<SocketAddr>,
    /// Receive time, ns of the time of day; `None` if SO_TIMESTAMPNS is not set.
    pub stamp: Option<i64>,
    /// Its DS field on arrival; `None` if not enabled (`marks::report_ds`).
    pub ds: Option<u8>,
    /// The errno, if this is a sent datagram that caused an ICMP error (`Batch::receive_errors`).
    pub error: Option<i32>,
}

/// A buffer for datagrams: one call receives many.
pub struct Batch {
    room: Vec<Room>,
    got: usize,
}

/// Bytes kept of each datagram.
const KEPT: usize = 256;
/// Room for control messages: the timestamp takes 32 bytes, an error with its sender's address up
/// to 64.
const CONTROL: usize = 128;

#[derive(Clone)]
struct Room {
    bytes: [u8; KEPT],
    from: [u8; 28],
    control: Control,
    length: usize,
    control_length: usize,
}

impl Batch {
    /// Creates a buffer for `most` datagrams.
    pub fn new(most: usize) -> Batch {
        let empty = Room {
            bytes: [0; KEPT],
            from: [0; 28],
            control: Control::EMPTY,
            length: 0,
            control_length: 0,
        };
        Batch { room: vec![empty; most], got: 0 }
    }

    /// Receives waiting datagrams, as many as fit, and returns their number. If the buffer is full,
    /// more may be waiting.
    pub fn receive(&mut self, fd: &impl AsRawFd) -> io::Result<usize> {
        self.take(fd, 0)
    }

    /// Like `receive`, but receives errors (IP_RECVERR): the part of each sent datagram that ICMP
    /// quotes, without IP and UDP headers, with the address it was sent to.
    pub fn receive_errors(&mut self, fd: &impl AsRawFd) -> io::Result<usize> {
        self.take(fd, libc::MSG_ERRQUEUE)
    }

    fn take(&mut self, fd: &impl AsRawFd, flags: c_int) -> io::Result<usize> {
        let mut parts: Vec<libc::iovec> = self
            .room
            .iter_mut()
            .map(|r| libc::iovec { iov_base: r.bytes.as_mut_ptr().cast::<c_void>(), iov_len: KEPT })
            .collect();
        let mut heads: Vec<libc::mmsghdr> = Vec::with_capacity(self.room.len());
        for (room, part) in self.room.iter_mut().zip(&mut parts) {
            // SAFETY: an all-zero msghdr is a valid value: integers and null pointers.
            let mut head: libc::msghdr = unsafe { std::mem::zeroed() };
            head.msg_name = room.from.as_mut_ptr().cast::<c_void>();
            head.msg_namelen = room.from.len() as libc::socklen_t;
            head.msg_iov = &raw mut *part;
            head.msg_iovlen = 1;
            head.msg_control = (&raw mut room.control).cast::<c_void>();
            head.msg_controllen = CONTROL as _;
            heads.push(libc::mmsghdr { msg_hdr: head, msg_len: 0 });
        }
        self.got = 0;
        // SAFETY: every pointer in `heads` refers to memory of `self.room` or `parts`, which
        // outlive the call, with its length. MSG_TRUNC makes msg_len the datagram's own length.
        let result = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                heads.as_mut_ptr(),
                heads.len() as libc::c_uint,
                (libc::MSG_TRUNC | flags) as _,
                std::ptr::null_mut(),
            )
        };
        self.got = match check(result) {
            Ok(count) => count as usize,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        for (room, head) in self.room.iter_mut().zip(&heads) {
            room.length = head.msg_len as usize;
            // The field's type depends on the C library.
            room.control_length = head.msg_hdr.msg_controllen as _;
        }
        Ok(self.got)
    }

    /// Returns the datagrams of the last `receive`.
    pub fn datagrams(&self) -> impl Iterator<Item = Datagram<'_>> {
        self.room[..self.got].iter().map(|room| Datagram {
            bytes: &room.bytes[..room.length.min(KEPT)],
            length: room.length,
            from: Name::parse(&room.from),
            stamp: stamp_of(&room.control, room.control_length),
            ds: ds_of(&room.control, room.control_length),
            error: error_of(&room.control, room.control_length),
        })
    }
}

// ------------------------------------------------------------------------------- control messages

/// Control messages in the kernel's layout. A header contains the length (as wide as an address),
/// level (i32) and type (i32); the data follows. The next message begins at a multiple of an
/// address.
#[derive(Clone)]
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// Bytes of an address, and of a header.
const WORD: usize = size_of::<usize>();
const HEAD: usize = WORD + 8;

/// Levels and types of control messages.
const ERRORS: [(c_int, c_int); 2] =
    [(libc::IPPROTO_IP, libc::IP_RECVERR), (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)];
const DS_FIELDS: [(c_int, c_int); 2] =
    [(libc::IPPROTO_IP, libc::IP_TOS), (libc::IPPROTO_IPV6, libc::IPV6_TCLASS)];

impl Control {
    const EMPTY: Control = Control([0; CONTROL]);

    /// Writes one message alone; returns its bytes, including the padding before the next message.
    fn write(&mut self, level: c_int, kind: c_int, data: &[u8]) -> usize {
        let size = HEAD + data.len();
        self.0[..WORD].copy_from_slice(&size.to_ne_bytes());
        self.0[WORD..WORD + 4].copy_from_slice(&level.to_ne_bytes());
        self.0[WORD + 4..HEAD].copy_from_slice(&kind.to_ne_bytes());
        self.0[HEAD..size].copy_from_slice(data);
        size.next_multiple_of(WORD)
    }

    /// Returns type and data of the first message that is one of `these`, within the first `length`
    /// bytes.
    fn find(&self, length: usize, these: &[(c_int, c_int)]) -> Option<(c_int, &[u8])> {
        let mut rest = &self.0[..length.min(CONTROL)];
        loop {
            let size = usize::from_ne_bytes(*rest.first_chunk()?);
            let level = c_int::from_ne_bytes(*rest.get(WORD..)?.first_chunk()?);
            let kind = c_int::from_ne_bytes(*rest.get(WORD + 4..)?.first_chunk()?);
            if these.contains(&(level, kind)) {
                return Some((kind, rest.get(HEAD..size)?));
            }
            rest = rest.get(size.max(HEAD).next_multiple_of(WORD)..)?;
        }
    }
}

/// Returns the timestamp in the control messages: a timespec of the kernel, two words as wide as an
/// address.
fn stamp_of(control: &Control, length: usize) -> Option<i64> {
    let (_, data) = control.find(length, &[(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS)])?;
    let word = |at: usize| Some(isize::from_ne_bytes(*data.get(at..)?.first_chunk()?) as i64);
    Some(word(0)? * 1_000_000_000 + word(WORD)?)
}

/// Returns the DS field in the control messages: a byte for IPv4, an int for IPv6.
fn ds_of(control: &Control, length: usize) -> Option<u8> {
    match control.find(length, &DS_FIELDS)? {
        (libc::IP_TOS, data) => data.first().copied(),
        (_, data) => Some(i32::from_ne_bytes(*data.first_chunk()?) as u8),
    }
}

/// Returns the errno in the control messages: the first word of a sock_extended_err.
fn error_of(control: &Control, length: usize) -> Option<i32> {
    let (_, data) = control.find(length, &ERRORS)?;
    Some(i32::from_ne_bytes(*data.first_chunk()?))
}

// ----------------------------------------------------------------------------------- packet rings

/// An instruction of the kernel's classic packet filter (BPF).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instruction {
    pub code: u16,
    pub if_true: u8,
    pub if_false: u8,
    pub value: u32,
}

/// Attaches a filter to a socket: the kernel drops packets it rejects, and cuts the others to the
/// length it returns.
pub(crate) fn attach_filter(fd: &impl AsRawFd, program: &[Instruction]) -> io::Result<()> {
    let mut code: Vec<libc::sock_filter> = program
        .iter()
        .map(|i| libc::sock_filter { code: i.code, jt: i.if_true, jf: i.if_false, k: i.value })
        .collect();
    let program = libc::sock_fprog { len: code.len() as u16, filter: code.as_mut_ptr() };
    // SAFETY: `program` points to `code`, with its length; both outlive the call, and the kernel
    // copies them.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast::<c_void>(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    check(result).map(drop)
}

/// Binds a packet socket to a device, for every protocol.
pub(crate) fn bind_packet(fd: &impl AsRawFd, device: u32) -> io::Result<()> {
    // SAFETY: an all-zero sockaddr_ll is a valid value: integers.
    let mut name: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    name.sll_family = libc::AF_PACKET as u16;
    name.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    name.sll_ifindex = device as c_int;
    // SAFETY: a live struct and its size.
    let result = unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const name).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    check(result).map(drop)
}

/// Blocks of memory that a packet socket writes and this program reads, in turn.
#[derive(Debug)]
pub(crate) struct Ring {
    start: *mut u8,
    block_bytes: usize,
    blocks: usize,
    next: usize,
}

/// Offset of the owner in a block's header: 0 is the kernel, odd is this program (TP_STATUS_USER).
const BLOCK_STATUS: usize = 8;

impl Ring {
    /// Maps the ring of a packet socket that was set up with `blocks` blocks of `block_bytes`.
    pub fn map(fd: &impl AsRawFd, block_bytes: usize, blocks: usize) -> io::Result<Ring> {
        // SAFETY: a new mapping at an address chosen by the kernel overlaps no memory of ours.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                block_bytes * blocks,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        let ring = Ring { start: start.cast(), block_bytes, blocks, next: 0 };
        // A child does not read the ring. User-mode Linux also can't copy such a mapping: the child
        // would have pages that the kernel takes for damaged.
        // SAFETY: the range is the mapping of `ring`.
        let result = unsafe { libc::madvise(start, block_bytes * blocks, libc::MADV_DONTFORK) };
        if result < 0 { Err(Error::last_os_error()) } else { Ok(ring) }
    }

    /// Passes the next block that we own to `read` and returns it to the kernel. Returns whether
    /// there was one.
    pub fn read_block(&mut self, read: impl FnOnce(&[u8])) -> bool {
        // SAFETY: `next` < `blocks`, so the block lies within the mapping, which lives as long as
        // `self`.
        let block = unsafe { self.start.add(self.next * self.block_bytes) };
        // SAFETY: the status is an aligned u32 within the block (blocks are page-aligned) that both
        // sides access atomically.
        let status = unsafe { AtomicU32::from_ptr(block.add(BLOCK_STATUS).cast()) };
        if status.load(Ordering::Acquire) & 1 == 0 {
            return false;
        }
        // SAFETY: while the status is odd the kernel does not write into the block, and nothing
        // else maps it. The slice ends before the status is changed.
        read(unsafe { std::slice::from_raw_parts(block, self.block_bytes) });
        status.store(0, Ordering::Release);
        self.next = (self.next + 1) % self.blocks;
        true
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `map`, of the same length, and nothing refers to it
        // any more.
        unsafe { libc::munmap(self.start.cast(), self.block_bytes * self.blocks) };
    }
}

// ---------------------------------------------------------------------------------------- threads

/// Scheduling priority of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Runs before all other threads.
    Realtime,
    /// Runs before most other threads.
    Raised,
    /// Runs like any other thread.
    Normal,
}

/// Raises the calling thread's priority as far as its privileges allow, and returns the result.
/// Call it only for a thread that mostly sleeps.
pub fn prefer_thread() -> Priority {
    // SAFETY: an all-zero sched_param is a valid value: integers. musl's has more of them.
    let mut lowest: libc::sched_param = unsafe { std::mem::zeroed() };
    lowest.sched_priority = 1;
    // Not sched_setscheduler, which musl refuses: it applies to threads in Linux, to processes in
    // POSIX.
    // SAFETY: a live struct, and the calling thread's own id.
    let refused = unsafe {
        libc::pthread_setschedparam(libc::pthread_self(), libc::SCHED_FIFO, &raw const lowest)
    };
    if refused == 0 {
        return Priority::Realtime;
    }
    if set_nice(-10) { Priority::Raised } else { Priority::Normal }
}

/// Lowers the calling thread's priority.
pub fn defer_thread() {
    // No privilege is needed for this.
    set_nice(5);
}

/// Sets the calling thread's niceness.
fn set_nice(nice: c_int) -> bool {
    // SAFETY: no pointers; 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) == 0 }
}

// ------------------------------------------------------------------------------------------ files

/// Locks an open file until it is closed or this process ends. Fails with `WouldBlock` if another
/// process has the lock.
pub fn lock_file(file: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }).map(drop)
}

// ------------------------------------------------------------------------------------- namespaces

/// Moves the calling thread into a network namespace.
pub(crate) fn enter_network(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Moves the calling thread into a new network namespace.
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(drop)
}

/// Returns the index of a device in the calling thread's namespace.
pub fn device_index(name: &str) -> io::Result<u32> {
    let text = std::ffi::CString::new(name).map_err(|_| Error::from(ErrorKind::InvalidInput))?;
    // SAFETY: a live string that ends in 0.
    match unsafe { libc::if_nametoindex(text.as_ptr()) } {
        0 => Err(Error::last_os_error()),
        index => Ok(index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_decoded_from_the_kernels_layout_unchanged() {
        for text in ["10.1.2.3:5001", "[fd00::7]:443"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(Name::parse(&Name::of(address).bytes), Some(address));
        }
    }

    #[test]
    fn a_bound_socket_knows_its_address() {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let fd = socket(Kind::Datagram, loopback).unwrap();
        bind(&fd, SocketAddr::new(loopback, 0)).unwrap();
        let address = local_address(&fd).unwrap();
        assert_eq!(address.ip(), loopback);
        assert_ne!(address.port(), 0);
    }

    #[test]
    fn the_timestamp_is_found_behind_another_control_message() {
        // (IPPROTO_IP, IP_TTL, 64), then (SOL_SOCKET, SCM_TIMESTAMPNS, 5.000000007 s).
        let mut control = Control::EMPTY;
        let stamp = [5isize.to_ne_bytes(), 7isize.to_ne_bytes()].concat();
        let second = control.write(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &stamp);
        let stamp = control.0;
        let first = control.write(libc::IPPROTO_IP, libc::IP_TTL, &64i32.to_ne_bytes());
        control.0[first..first + second].copy_from_slice(&stamp[..second]);
        assert_eq!(stamp_of(&control, first + second), Some(5_000_000_007));
        assert_eq!(stamp_of(&control, first), None);
        assert_eq!(stamp_of(&control, 0), None);
    }

    #[test]
    fn datagrams_are_received_with_their_length_and_timestamp() {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let (a, b) =
            (socket(Kind::Datagram, loopback).unwrap(), socket(Kind::Datagram, loopback).unwrap());
        bind(&a, SocketAddr::new(loopback, 0)).unwrap();
        bind(&b, SocketAddr::new(loopback, 0)).unwrap();
        set_option(&b, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1).unwrap();
        let before = read_clock(Kernel::Realtime);
        for size in [10, 1000] {
            send_to(&a, &vec![7; size], local_address(&b).unwrap()).unwrap();
        }
        let mut batch = Batch::new(8);
        assert_eq!(batch.receive(&b).unwrap(), 2);
        let got: Vec<_> = batch.datagrams().collect();
        assert_eq!((got[0].bytes, got[0].length), (&[7u8; 10][..], 10));
        assert_eq!((got[1].bytes.len(), got[1].length), (KEPT, 1000));
        assert_eq!(got[0].from, Some(local_address(&a).unwrap()));
        let after = read_clock(Kernel::Realtime);
        assert!(got.iter().all(|d| (before..=after).contains(&d.stamp.unwrap())));
        assert_eq!(batch.receive(&b).unwrap(), 0);
    }
}
