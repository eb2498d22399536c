//! Responsiveness under working conditions, in round trips per minute (RPM): a server and a client
//! of draft-ietf-ippm-responsiveness.
//!
//! The client loads the network with HTTP/2 transfers over TLS, one connection more each interval,
//! until goodput and then responsiveness no longer change; meanwhile it asks for one byte again and
//! again, on connections of their own (foreign probes) and on those that carry the load (self
//! probes). The times of these probes are the result.
//!
//! - `algorithm`: the draft's decisions, without sockets or clock.
//! - `client`: a measurement; `load` and `asking` are its two kinds of traffic.
//! - `server`: what it measures against; `accounts` is what a client may ask of it.
//! - `document`: `/.well-known/nq`, which tells a client where everything is.
//! - `facts`: an outcome as tables and JSON.
//! - `http`: what both ends ask of HTTP/2 and of threads.
//! - `tls`: certificates, and whom to trust. `unsent`, `brief`: why socket and TLS are no queues
//!   here.
//!
//! Source: draft-ietf-ippm-responsiveness-09 for the parameters, of which only the interval differs
//! from the text of -06 that the algorithm was read in. Deviations:
//! - MPS counts probes of both kinds together, as the draft's own sum does (300 kB a second at
//!   100), where its list of steps says pairs.
//! - Until MAD intervals have passed, the moving average of the goodput is over those there have
//!   been; the draft divides by MAD intervals from the first one on, which would be no average.
//! - HTTP/3, and plain HTTP for devices too slow for TLS, are absent.

mod accounts;
pub mod algorithm;
mod asking;
mod brief;
pub mod client;
pub mod document;
pub mod facts;
mod http;
pub mod load;
pub mod server;
pub mod tls;
mod unsent;

use std::fmt;

/// What went wrong, and what the person who reads it can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What and where.
    pub problem: String,
    /// What to do; may be empty.
    pub hint: String,
}

impl Problem {
    fn new(problem: impl Into<String>, hint: impl Into<String>) -> Problem {
        Problem { problem: problem.into(), hint: hint.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.problem)
    }
}

impl std::error::Error for Problem {}

/// What is sent as load: it is thrown away where it arrives, and under TLS it looks like anything
/// else.
static ZEROS: [u8; 16 * 1024] = [0; 16 * 1024];

/// The most of one DATA frame: with its header of 9 bytes it fills one TLS record of 2^14 bytes and
/// no second one.
const FRAME: usize = ZEROS.len() - 9;
/// What a frame is longer on the wire: 9 bytes of header in HTTP/2; in TLS 1.3 5 of header, 1 of
/// type, 16 of seal.
const OVERHEAD: usize = 9 + 22;
