//! The routers on the way to a host. A datagram with a small TTL expires at a router, which reports
//! this by ICMP.
//!
//! The kernel keeps the ICMP message for the socket that sent (IP_RECVERR), so no privilege is
//! needed.
//!
//! Source: ip(7), RFC 792 (time exceeded), RFC 4443.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use crate::sys::{self, Epoll, Interest, Kind};

/// Returns the router at distance `hop` from here (1: the gateway) on the way to a UDP port; `None`
/// if no router answers in time. Blocks for at most `patience`.
pub fn router(to: SocketAddr, hop: u8, patience: Duration) -> io::Result<Option<IpAddr>> {
    let (any, level, ttl, recverr): (IpAddr, _, _, _) = match to.ip() {
        IpAddr::V4(_) => {
            (Ipv4Addr::UNSPECIFIED.into(), libc::IPPROTO_IP, libc::IP_TTL, libc::IP_RECVERR)
        }
        IpAddr::V6(_) => (
            Ipv6Addr::UNSPECIFIED.into(),
            libc::IPPROTO_IPV6,
            libc::IPV6_UNICAST_HOPS,
            libc::IPV6_RECVERR,
        ),
    };
    let fd = sys::socket(Kind::Datagram, any)?;
    sys::set_option(&fd, level, ttl, i32::from(hop))?;
    sys::set_option(&fd, level, recverr, 1)?;
    let mut epoll = Epoll::new()?;
    epoll.add(&fd, Interest::Readable, 0)?;
    let until = Instant::now() + patience;
    const TRIES: u32 = 3;
    for left in (1..=TRIES).rev() {
        // This call may report an error of the previous try.
        let _ = sys::send_to(&fd, &[0; 8], to);
        let share = until.saturating_duration_since(Instant::now()) / left;
        epoll.wait(Some(share.as_millis() as u32), &mut Vec::new())?;
        if let Some(router) = sys::error_source(&fd)? {
            // The host itself answered that the port is closed: it is nearer than `hop`.
            return Ok(Some(router).filter(|&router| router != to.ip()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_router_on_the_way_to_this_host() {
        let to = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 9);
        assert_eq!(router(to, 1, Duration::from_millis(300)).unwrap(), None);
    }
}
