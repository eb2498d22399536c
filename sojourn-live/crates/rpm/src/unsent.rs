//! Keeps a sender's own socket from becoming the queue that is measured.
//!
//! Data that the application has written and TCP has not sent delays everything written later.
//! TCP_NOTSENT_LOWAT limits this data in the socket; the size of a frame limits it in HTTP/2 and
//! TLS. The draft asks for "a reasonable amount"; here it is the data sent in 5 ms, measured every
//! 100 ms. If a connection could have sent but had no data, its limit is doubled instead, so that a
//! host that wakes this program late does not limit the rate.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use probe::tcp_info::TcpInfo;

use crate::FRAME;

/// Limit of a connection's unsent data, as time at its present rate.
const WORTH: Duration = Duration::from_millis(5);
const MEASURED_OVER: Duration = Duration::from_millis(100);
/// The limit until the rate is known.
const AT_FIRST: u64 = 64 * 1024;
/// More than two segments: with less, TCP would send them in halves.
const LEAST: u64 = 4 * 1024;
const MOST: u64 = 4 * 1024 * 1024;
/// The smallest frame: one segment with all its headers.
const LEAST_FRAME: usize = 1350;

/// The limit of one connection, which follows its rate.
#[derive(Debug)]
pub struct Unsent {
    socket: OwnedFd,
    since: Instant,
    bytes: u64,
    bound: u64,
}

impl Unsent {
    /// Limits the unsent bytes of this socket (any handle to it) from now on.
    pub fn new(socket: OwnedFd, now: Instant) -> Unsent {
        let mut unsent = Unsent { socket, since: now, bytes: 0, bound: 0 };
        unsent.set(AT_FIRST);
        unsent
    }

    /// Returns the largest size of the next frame, bytes: half the limit, because one frame is
    /// buffered before the socket.
    pub fn frame(&self) -> usize {
        (self.bound as usize / 2).clamp(LEAST_FRAME, FRAME)
    }

    /// Takes the number of bytes that were passed to the connection.
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
            // A kernel without this option sends as well, but its socket then is a queue.
            let _ = probe::sys::set_option(
                &self.socket,
                libc::IPPROTO_TCP,
                libc::TCP_NOTSENT_LOWAT,
                bound as libc::c_int,
            );
        }
    }
}

/// Whether TCP could send but has no data.
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
    fn waiting_for_the_application_is_distinguished_from_waiting_for_the_network() {
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
    fn the_kernel_gets_the_limit_of_unsent_data() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let lowat = |stream: &std::net::TcpStream| {
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
        assert_eq!((lowat(&stream), unsent.frame()), (64 * 1024, FRAME));
        unsent.handed(12_500_000, begun + Duration::from_millis(50));
        assert_eq!(lowat(&stream), 64 * 1024);
        // This connection could have sent but has sent nothing: the limit doubles.
        unsent.handed(0, begun + Duration::from_millis(100));
        assert_eq!(lowat(&stream), 128 * 1024);
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
