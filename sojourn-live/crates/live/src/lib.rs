//! Measuring a real link: a server that takes and gives load and turns echoes round, and a session
//! with it.
//!
//! The load runs on threads of its own, so does the prober, which is preferred: what is measured is
//! the network, not how busy this program is with loading it; by how much requests were late is
//! part of the result. Times are on the kernel's monotonic clock. `unsafe` has no place here:
//! system calls are `probe`'s.
//!
//! - `protocol`: what client and server say to each other. `caps`: what a server grants. `secret`:
//!   whom, if not everybody.
//! - `load`: the connections of a load, at whichever end.
//! - `server`: `Server`, one thread for all clients and one for echoes.
//! - `session`: `measure`, from a `Plan` to tables and facts.

pub mod caps;
pub mod load;
pub mod protocol;
pub mod secret;
pub mod server;
pub mod session;

use std::io::{self, Read};

/// Why nothing was measured or served: what and where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What and where.
    pub problem: String,
    /// What to do.
    pub hint: String,
}

impl Failure {
    /// In words.
    pub fn new(problem: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure { problem: problem.into(), hint: hint.into() }
    }
}

/// The kernel's release.
fn kernel() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string()
}

/// The congestion control that connections have by default.
fn default_congestion() -> String {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control")
        .unwrap_or_default()
        .trim()
        .to_string()
}

/// A number that nobody else knows, and not 0.
fn token() -> io::Result<u64> {
    Ok(u64::from_ne_bytes(random()?).max(1))
}

/// Bytes that nobody can foretell.
fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
