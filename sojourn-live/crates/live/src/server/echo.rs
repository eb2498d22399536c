//! The server's echoes, on their own thread, so the load does not delay them.
//!
//! A datagram is returned only if it contains a client's token and comes from that client's
//! address. The reply is never longer than the request, and a client gets at most `MOST` per
//! second. So nobody gets unrequested data, and nobody gets more than they sent.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use probe::echo::{Echo, ReceivedRequests};
use probe::marks::{self, Marked};
use probe::sys::{self, Batch, Interest, Kind};
use probe::{Clock, Epoll};

/// Limit of echoes per client and second.
const MOST: u32 = 2000;
const SECOND: i64 = 1_000_000_000;
/// Longest delay until the thread notices the end, ms.
const LOOK: u32 = 100;
/// The oldest timestamp that is trusted, ns before now.
const OLD: i64 = SECOND;

/// The clients whose echoes are returned.
#[derive(Clone, Debug, Default)]
pub struct Known(Arc<Mutex<HashMap<u64, Client>>>);

#[derive(Clone, Copy, Debug)]
struct Client {
    address: IpAddr,
    received: ReceivedRequests,
    /// The DS field of its echoes.
    ds: u8,
    second: i64,
    in_second: u32,
}

impl Known {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Client>> {
        // The map is consistent after each statement, so a poisoned lock is usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client.
    pub fn add(&self, token: u64, address: IpAddr) {
        self.lock().insert(
            token,
            Client {
                address,
                received: ReceivedRequests::default(),
                ds: 0,
                second: 0,
                in_second: 0,
            },
        );
    }

    /// Sets the DSCP codepoint of a client's echoes.
    pub fn mark(&self, token: u64, dscp: u8) {
        if let Some(client) = self.lock().get_mut(&token) {
            client.ds = dscp << 2;
        }
    }

    /// Removes a client.
    pub fn remove(&self, token: u64) {
        self.lock().remove(&token);
    }

    /// Returns the echo requests that have arrived from a client.
    pub fn received(&self, token: u64) -> ReceivedRequests {
        self.lock().get(&token).map_or_else(ReceivedRequests::default, |client| client.received)
    }

    /// Returns the reply to a datagram that arrived at `now`, and the reply's DS field; `None`: no
    /// reply.
    fn reply(&self, incoming: &Incoming, now: i64) -> Option<(Vec<u8>, u8)> {
        let request = Request::parse(incoming.bytes)?;
        let mut clients = self.lock();
        let client = clients
            .get_mut(&request.token())
            .filter(|client| client.address == incoming.from.to_canonical())?;
        if client.second != now / SECOND {
            (client.second, client.in_second) = (now / SECOND, 0);
        }
        client.in_second += 1;
        if client.in_second > MOST {
            return None;
        }
        let (reply, ds) = match request {
            Request::Echo(echo) => {
                let received_bits = client.received.record(echo.sequence);
                (Echo { turned: now, received_bits, ..echo }.write(incoming.length), client.ds)
            }
            Request::Marks(request) => (
                Marked { request_ds: Some(incoming.ds?), ..request }.write().to_vec(),
                request.reply_ds,
            ),
        };
        (reply.len() <= incoming.length).then_some((reply, ds))
    }
}

/// A received datagram.
struct Incoming<'a> {
    bytes: &'a [u8],
    length: usize,
    from: IpAddr,
    ds: Option<u8>,
}

/// A request in a datagram.
enum Request {
    Echo(Echo),
    Marks(Marked),
}

impl Request {
    fn parse(bytes: &[u8]) -> Option<Request> {
        Echo::parse(bytes).map(Request::Echo).or_else(|| Marked::parse(bytes).map(Request::Marks))
    }

    fn token(&self) -> u64 {
        match self {
            Request::Echo(echo) => echo.token,
            Request::Marks(request) => request.token,
        }
    }
}

/// Opens a socket for echoes.
pub fn socket(at: SocketAddr) -> io::Result<OwnedFd> {
    let fd = sys::socket(Kind::Datagram, at.ip())?;
    only_v6(&fd, at.ip())?;
    sys::set_option(&fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
    marks::report_ds(&fd, at.ip())?;
    sys::bind(&fd, at)?;
    Ok(fd)
}

/// Restricts an IPv6 socket to IPv6, so that another socket can have IPv4.
pub fn only_v6(fd: &OwnedFd, address: IpAddr) -> io::Result<()> {
    if address.is_ipv6() {
        sys::set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)
    } else {
        Ok(())
    }
}

/// Returns echoes until `stop` is set.
pub fn turn_round(
    sockets: &[OwnedFd],
    known: &Known,
    clock: Clock,
    stop: &AtomicBool,
) -> io::Result<()> {
    sys::prefer_thread();
    let mut epoll = Epoll::new()?;
    for (index, fd) in sockets.iter().enumerate() {
        epoll.add(fd, Interest::Readable, index as u64)?;
    }
    let mut batch = Batch::new(32);
    let mut happened = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        happened.clear();
        epoll.wait(Some(LOOK), &mut happened)?;
        for event in &happened {
            let fd = &sockets[event.token as usize];
            // The error belongs to an earlier datagram to a client that has gone; reading it has
            // cleared it.
            if batch.receive(fd).is_err() {
                continue;
            }
            for datagram in batch.datagrams() {
                let Some(from) = datagram.from else { continue };
                let now = match datagram.stamp {
                    Some(stamp) => clock.just_stamped(stamp, clock.now() - OLD),
                    None => clock.now(),
                };
                let incoming = Incoming {
                    bytes: datagram.bytes,
                    length: datagram.length,
                    from: from.ip(),
                    ds: datagram.ds,
                };
                if let Some((reply, ds)) = known.reply(&incoming, now) {
                    // If sending fails, the reply is lost, as on any link.
                    let _ = sys::send_marked(fd, &reply, from, ds);
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    /// Returns the reply to these bytes.
    fn reply(known: &Known, bytes: &[u8], from: IpAddr, now: i64) -> Option<Vec<u8>> {
        let incoming = Incoming { bytes, length: bytes.len(), from, ds: Some(0) };
        known.reply(&incoming, now).map(|(reply, _)| reply)
    }

    fn known() -> Known {
        let known = Known::default();
        known.add(7, HERE);
        known
    }

    fn request(token: u64, sequence: u32) -> Vec<u8> {
        Echo { sequence, token, ..Echo::default() }.write(64)
    }

    #[test]
    fn only_a_known_client_from_its_own_address_gets_a_reply() {
        let known = known();
        let elsewhere: IpAddr = "192.0.2.1".parse().unwrap();
        let bytes_of_reply = reply(&known, &request(7, 3), HERE, 99).unwrap();
        assert_eq!(bytes_of_reply.len(), 64);
        let echo = Echo::parse(&bytes_of_reply).unwrap();
        assert_eq!((echo.sequence, echo.turned, echo.received_bits), (3, 99, 1));
        assert_eq!(reply(&known, &request(8, 3), HERE, 99), None);
        assert_eq!(reply(&known, &request(7, 3), elsewhere, 99), None);
        assert_eq!(reply(&known, &Echo::default().write(24), HERE, 99), None);
        known.remove(7);
        assert_eq!(reply(&known, &request(7, 4), HERE, 99), None);
        assert_eq!(known.received(7), ReceivedRequests::default());
    }

    #[test]
    fn a_request_that_is_shorter_than_its_reply_gets_none() {
        let known = Known::default();
        known.add(0, HERE);
        let short = Echo { sequence: 1, sent: 0, turned: 0, token: 0, received_bits: 0 }.write(0);
        assert_eq!(reply(&known, &short, HERE, 0), None);
    }

    #[test]
    fn a_reply_has_the_requested_field_and_reports_the_received_one() {
        let known = known();
        let marked = Marked { number: 3, token: 7, reply_ds: 0xb9, request_ds: None };
        let bytes = marked.write();
        let incoming = Incoming { bytes: &bytes, length: bytes.len(), from: HERE, ds: Some(2) };
        let (reply, ds) = known.reply(&incoming, 5).unwrap();
        assert_eq!(
            (Marked::parse(&reply), ds),
            (Some(Marked { request_ds: Some(2), ..marked }), 0xb9)
        );
        // It is not an echo request: the set of received echo requests does not change.
        assert_eq!(known.received(7), ReceivedRequests::default());
        known.mark(7, 46);
        let bytes = request(7, 0);
        let incoming = Incoming { bytes: &bytes, length: bytes.len(), from: HERE, ds: Some(0) };
        assert_eq!(known.reply(&incoming, 5).unwrap().1, 46 << 2);
    }

    #[test]
    fn no_client_gets_more_than_its_share_in_a_second() {
        let known = known();
        let got = (0..3000)
            .filter(|&i| reply(&known, &request(7, i), HERE, SECOND + 5).is_some())
            .count();
        assert_eq!(got, MOST as usize);
        assert!(reply(&known, &request(7, 3000), HERE, 2 * SECOND).is_some());
    }

    proptest! {
        #[test]
        fn no_datagram_gets_a_longer_reply(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..200), ours: bool, marks: bool
        ) {
            if ours && bytes.len() >= 4 {
                bytes[..4].copy_from_slice(if marks { b"sjm1" } else { b"sjp1" });
            }
            if ours && marks && bytes.len() >= 16 {
                bytes[8..16].copy_from_slice(&7u64.to_le_bytes());
            }
            if ours && bytes.len() >= 32 {
                bytes[24..32].copy_from_slice(&7u64.to_le_bytes());
            }
            if let Some(reply) = reply(&known(), &bytes, HERE, 1) {
                prop_assert!(reply.len() <= bytes.len());
            }
        }
    }
}
