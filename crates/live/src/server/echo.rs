//! The server's echoes, on a thread of their own which the load does not disturb.
//!
//! A datagram is turned round only if it bears a client's token and comes from that client's
//! address, with as many bytes as it came with and not oftener than `MOST` a second. So nobody gets
//! anything he did not ask for, and none more than he sent.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use probe::echo::{Echo, Heard};
use probe::sys::{self, Batch, Interest, Kind};
use probe::{Clock, Epoll};

/// Echoes of one client in a second.
const MOST: u32 = 2000;
const SECOND: i64 = 1_000_000_000;
/// How soon the thread learns that it is to end, ms.
const LOOK: u32 = 100;
/// The oldest stamp that is believed, ns before now.
const OLD: i64 = SECOND;

/// Whom echoes are turned round for.
#[derive(Clone, Debug, Default)]
pub struct Known(Arc<Mutex<HashMap<u64, Client>>>);

#[derive(Clone, Copy, Debug)]
struct Client {
    address: IpAddr,
    heard: Heard,
    second: i64,
    in_second: u32,
}

impl Known {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Client>> {
        // What is in it is whole after each statement.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a client in.
    pub fn add(&self, token: u64, address: IpAddr) {
        self.lock()
            .insert(token, Client { address, heard: Heard::default(), second: 0, in_second: 0 });
    }

    /// Forgets a client.
    pub fn remove(&self, token: u64) {
        self.lock().remove(&token);
    }

    /// What has been heard of a client.
    pub fn heard(&self, token: u64) -> Heard {
        self.lock().get(&token).map_or_else(Heard::default, |client| client.heard)
    }

    /// The reply to a datagram that came at `now`; `None`: it gets none.
    fn reply(&self, bytes: &[u8], length: usize, from: IpAddr, now: i64) -> Option<Vec<u8>> {
        let echo = Echo::parse(bytes)?;
        let mut clients = self.lock();
        let client =
            clients.get_mut(&echo.token).filter(|client| client.address == from.to_canonical())?;
        if client.second != now / SECOND {
            (client.second, client.in_second) = (now / SECOND, 0);
        }
        client.in_second += 1;
        if client.in_second > MOST {
            return None;
        }
        let heard = client.heard.hear(echo.sequence);
        let reply = Echo { turned: now, heard, ..echo }.write(length);
        (reply.len() <= length).then_some(reply)
    }
}

/// A socket for echoes.
pub fn socket(at: SocketAddr) -> io::Result<OwnedFd> {
    let fd = sys::socket(Kind::Datagram, at.ip())?;
    only_v6(&fd, at.ip())?;
    sys::set_option(&fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
    sys::bind(&fd, at)?;
    Ok(fd)
}

/// An IPv6 socket leaves IPv4 to another one.
pub fn only_v6(fd: &OwnedFd, address: IpAddr) -> io::Result<()> {
    if address.is_ipv6() {
        sys::set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)
    } else {
        Ok(())
    }
}

/// Turns echoes round until `stop`.
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
            // An error is one that the socket held, of a client that is gone; it is gone by that.
            if batch.receive(fd).is_err() {
                continue;
            }
            for datagram in batch.datagrams() {
                let Some(from) = datagram.from else { continue };
                let now = match datagram.stamp {
                    Some(stamp) => clock.just_stamped(stamp, clock.now() - OLD),
                    None => clock.now(),
                };
                if let Some(reply) = known.reply(datagram.bytes, datagram.length, from.ip(), now) {
                    // If it can't be sent it is lost, as on any link.
                    let _ = sys::send_to(fd, &reply, from);
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
        let reply = known.reply(&request(7, 3), 64, HERE, 99).unwrap();
        assert_eq!(reply.len(), 64);
        let echo = Echo::parse(&reply).unwrap();
        assert_eq!((echo.sequence, echo.turned, echo.heard), (3, 99, 1));
        assert_eq!(known.reply(&request(8, 3), 64, HERE, 99), None);
        assert_eq!(known.reply(&request(7, 3), 64, elsewhere, 99), None);
        assert_eq!(known.reply(&Echo::default().write(24), 24, HERE, 99), None);
        known.remove(7);
        assert_eq!(known.reply(&request(7, 4), 64, HERE, 99), None);
        assert_eq!(known.heard(7), Heard::default());
    }

    #[test]
    fn nobody_gets_more_than_his_share_of_a_second() {
        let known = known();
        let got = (0..3000)
            .filter(|&i| known.reply(&request(7, i), 64, HERE, SECOND + 5).is_some())
            .count();
        assert_eq!(got, MOST as usize);
        assert!(known.reply(&request(7, 3000), 64, HERE, 2 * SECOND).is_some());
    }

    proptest! {
        #[test]
        fn no_datagram_gets_a_longer_reply(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), ours: bool) {
            if ours && bytes.len() >= 4 {
                bytes[..4].copy_from_slice(b"sjp1");
            }
            if ours && bytes.len() >= 32 {
                bytes[24..32].copy_from_slice(&7u64.to_le_bytes());
            }
            if let Some(reply) = known().reply(&bytes, bytes.len(), HERE, 1) {
                prop_assert_eq!(reply.len(), bytes.len());
            }
        }
    }
}
