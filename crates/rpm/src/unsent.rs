//! Keeping a sender's own socket from being the queue that is measured.
//!
//! What an application has written and TCP has not yet sent delays whatever is written next. TCP_NOTSENT_LOWAT bounds it. The
//! draft asks for "a reasonable amount"; we take what the connection sends in 5 ms, measured anew every 100 ms, and never
//! less than one frame.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// What a connection may hold unsent, in time at its present rate.
const WORTH: Duration = Duration::from_millis(5);
const MEASURED_OVER: Duration = Duration::from_millis(100);
/// One frame of HTTP/2: with less, a fast connection would wait for us each time.
const LEAST: u64 = 16 * 1024;
const MOST: u64 = 4 * 1024 * 1024;

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
        unsent.set(LEAST);
        unsent
    }

    /// So many bytes more were handed to the connection.
    pub fn handed(&mut self, bytes: usize, now: Instant) {
        self.bytes += bytes as u64;
        let time = now.saturating_duration_since(self.since);
        if time < MEASURED_OVER {
            return;
        }
        self.set(bound(self.bytes, time));
        (self.since, self.bytes) = (now, 0);
    }

    fn set(&mut self, bound: u64) {
        if bound != self.bound {
            self.bound = bound;
            // A kernel without the option sends all the same; only its socket is a queue of its own then.
            let _ = probe::sys::set_option(
                &self.socket,
                libc::IPPROTO_TCP,
                libc::TCP_NOTSENT_LOWAT,
                bound as libc::c_int,
            );
        }
    }
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
        // 20 Mbit/s would be 12 500 bytes: less than one frame.
        assert_eq!(bound(250_000, tenth), LEAST);
        assert_eq!(bound(u64::MAX, tenth), MOST);
    }

    #[test]
    fn the_kernel_is_told() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let asked = |stream: &std::net::TcpStream| {
            let mut value = [0; 4];
            probe::sys::option_bytes(stream, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, &mut value).unwrap();
            i32::from_ne_bytes(value)
        };
        let begun = Instant::now();
        let mut unsent = Unsent::new(stream.try_clone().unwrap().into(), begun);
        assert_eq!(asked(&stream), 16 * 1024);
        unsent.handed(12_500_000, begun + Duration::from_millis(50));
        assert_eq!(asked(&stream), 16 * 1024);
        unsent.handed(0, begun + Duration::from_millis(100));
        assert_eq!(asked(&stream), 625_000);
    }
}
