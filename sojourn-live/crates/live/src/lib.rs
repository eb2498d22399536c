//! Measurement of a real link: a server that sends and receives load and returns echoes, and a
//! client's session with it.
//!
//! The load has its own threads, and so has the prober, with a higher priority: the measurement
//! must show the network, not how busy this program is. The lateness of requests is part of the
//! result. Times are on the kernel's monotonic clock. This crate has no `unsafe` code: `probe`
//! makes the system calls.
//!
//! - `protocol`: the messages between client and server. `caps`: a server's limits. `secret`:
//!   access control.
//! - `load`: the connections of a load, at either end.
//! - `server`: `Server`, with one thread for all clients and one for echoes.
//! - `session`: `measure`, from a `Plan` to tables and facts.

pub mod caps;
pub mod load;
pub mod protocol;
pub mod secret;
pub mod server;
pub mod session;

use std::io::{self, Read};

/// A failure to measure or serve: the problem and a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What is wrong, and where.
    pub problem: String,
    /// What the user can do.
    pub hint: String,
}

impl Failure {
    /// Creates a failure from its two texts.
    pub fn new(problem: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure { problem: problem.into(), hint: hint.into() }
    }
}

/// Returns the kernel's release.
fn kernel() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string()
}

/// Returns the kernel's default congestion control.
fn default_congestion() -> String {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control")
        .unwrap_or_default()
        .trim()
        .to_string()
}

/// Returns a random number that is not 0.
fn token() -> io::Result<u64> {
    Ok(u64::from_ne_bytes(random()?).max(1))
}

/// Returns unpredictable bytes.
fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
