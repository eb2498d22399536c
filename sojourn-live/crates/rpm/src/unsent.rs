//! Keeping a sender's own socket from being the queue that is measured.
//!
//! What an application has written and TCP has not yet sent delays whatever is written next.
//! TCP_NOTSENT_LOWAT bounds it in the socket, the size of a frame what HTTP/2 and TLS hold in front
//! of it. The draft asks for "a reasonable amount"; we take what the connection sends in 5 ms,
//! measured anew every 100 ms. A connection that had nothing to send although it might have is
//! given twice as much instead, so that a host that wakes us late is no limit of its own.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use probe::tcp_info::TcpInfo;

use crate::FRAME;

/// What a connection may hold unsent, in time at its present rate.
const WORTH: Duration = Duration::from_millis(5);
const MEASURED_OVER: Duration = Duration::from_millis(100);
/// As long as the rate is not known.
const AT_FIRST: u64 = 64 * 1024;
/// Two segments and more: with less, TCP would send them in halves.
const LEAST: u64 = 4 * 1024;
const MOST: u64 = 4 * 1024 * 1024;
/// The smallest frame: one segment with all its headers.
const LEAST_FRAME: usize = 1350;

/// The bound of one connection, which follows its rate.
#[derive(Debug)]
pub struct Unsent {
    socket: OwnedFd,
    since: Instant,
    bytes: u64,
    bound: u64,
}

impl Unsent {
    /// Bounds the unsent bytes of this socket (any handle to it) from now on.
    pub fn new(socket: OwnedFd, now: Instant) -> Unsent {
        let mut unsent = Unsent { socket, since: now, bytes: 0, bound: 0 };
        unsent.set(AT_FIRST);
        unsent
    }

    /// What the next frame should hold at most, bytes: half the bound, since one lies in front of
    /// the socket.
    pub fn frame(&self) -> usize {
        (self.bound as usize / 2).clamp(LEAST_FRAME, FRAME)
    }

    /// So many bytes more were handed to the connection.
    pub fn handed(&mut self, bytes: usize, now: Instant) {
        self.bytes += bytes as u64;
        let time = now.saturating_duration_since(self.since);
        if time < MEASURED_OVER {
            return;
        }
        let idle = TcpInfo::of(&self.socket).is_ok_and(|info| starved(&info));
        self.set(if idle { (2 * self.bound).min(MOST) } else { bound(self.bytes, time) });
        (self.since, self.bytes) = (now, 0);
    }

    fn set(&mut self, bound: u64) {
        if bound != self.bound {
            self.bound = bound;
            // A kernel without the option sends all the same; only its socket is a queue of its own
            // then.
            let _ = probe::sys::set_option(
                &self.socket,
                libc::IPPROTO_TCP,
                libc::TCP_NOTSENT_LOWAT,
                bound as libc::c_int,
            );
        }
    }
}

/// TCP could send, and has nothing.
fn starved(info: &TcpInfo) -> bool {
    info.notsent_bytes == 0 && info.unacked_segments < info.cwnd_segments
}

fn bound(bytes: u64, time: Duration) -> u64 {
    let worth = u128::from(bytes) * WORTH.as_nanos() / time.as_nanos().max(1);
    u64::try_from(worth).unwrap_or(MOST).clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_five_milliseconds_worth_of_the_rate() {
        let tenth = Duration::from_millis(100);
        // 1 Gbit/s: 12.5 MB in 100 ms, 625 000 bytes in 5 ms.
        assert_eq!(bound(12_500_000, tenth), 625_000);
        assert_eq!(bound(250_000, tenth), 12_500);
        // 1 Mbit/s would be 625 bytes: less than a segment.
        assert_eq!(bound(12_500, tenth), LEAST);
        assert_eq!(bound(u64::MAX, tenth), MOST);
    }

    #[test]
    fn a_connection_that_waits_for_us_is_told_from_one_that_waits_for_the_network() {
        let info = |notsent_bytes, unacked_segments| TcpInfo {
            notsent_bytes,
            unacked_segments,
            cwnd_segments: 10,
            ..TcpInfo::default()
        };
        assert!(starved(&info(0, 3)));
        assert!(!starved(&info(0, 10)));
        assert!(!starved(&info(1448, 3)));
    }

    #[test]
    fn the_kernel_is_told() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let asked = |stream: &std::net::TcpStream| {
            let mut value = [0; 4];
            probe::sys::option_bytes(
                stream,
                libc::IPPROTO_TCP,
                libc::TCP_NOTSENT_LOWAT,
                &mut value,
            )
            .unwrap();
            i32::from_ne_bytes(value)
        };
        let begun = Instant::now();
        let mut unsent = Unsent::new(stream.try_clone().unwrap().into(), begun);
        assert_eq!((asked(&stream), unsent.frame()), (64 * 1024, FRAME));
        unsent.handed(12_500_000, begun + Duration::from_millis(50));
        assert_eq!(asked(&stream), 64 * 1024);
        // This connection has sent nothing at all, though it might: twice as much.
        unsent.handed(0, begun + Duration::from_millis(100));
        assert_eq!(asked(&stream), 128 * 1024);
    }

    #[test]
    fn frames_are_small_where_the_rate_is() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut unsent = Unsent::new(stream.into(), Instant::now());
        let mut frame_at = |bound| {
            unsent.set(bound);
            unsent.frame()
        };
        assert_eq!(
            (frame_at(LEAST), frame_at(8000), frame_at(1 << 20)),
            (LEAST as usize / 2, 4000, FRAME)
        );
    }
}
