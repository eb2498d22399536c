//! Responsiveness under working conditions, in round trips per minute (RPM): a server and a client
//! of draft-ietf-ippm-responsiveness.
//!
//! The client loads the network with HTTP/2 transfers over TLS, with one more connection in each
//! interval, until first goodput and then responsiveness no longer change. Meanwhile it requests
//! one byte repeatedly, on new connections (foreign probes) and on those that carry load (self
//! probes). The times of these probes are the result.
//!
//! - `algorithm`: the draft's decisions, without sockets or clock.
//! - `client`: a measurement; `load` and `requests` are its two kinds of traffic.
//! - `server`: the server of a measurement; `accounts` contains its limits for clients.
//! - `document`: `/.well-known/nq`, which gives a client the URLs.
//! - `facts`: an outcome as tables and JSON.
//! - `http`: HTTP/2 settings and threads of both ends.
//! - `tls`: certificates and trust. `unsent`, `brief`: keep socket and TLS from becoming queues.
//!
//! Source: draft-ietf-ippm-responsiveness-09 for the parameters, and the text of -06 for the
//! algorithm. Of the parameters, only the interval differs between the two. Deviations:
//! - MPS counts probes of both kinds together, as the draft's own sum does (300 kB/s at 100),
//!   although its list of steps counts pairs.
//! - Until MAD intervals have passed, the moving average of the goodput uses the existing
//!   intervals. The draft divides by MAD from the first interval on, which would not be an average.
//! - HTTP/3 is absent, and so is plain HTTP for devices that are too slow for TLS.

mod accounts;
pub mod algorithm;
mod brief;
pub mod client;
pub mod document;
pub mod facts;
mod http;
pub mod load;
mod requests;
pub mod server;
pub mod tls;
mod unsent;

use std::fmt;

/// A problem, with a hint for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong, and where.
    pub problem: String,
    /// What the user can do; may be empty.
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

/// The content of load: the receiver discards it, and after TLS it looks like any other data.
static ZEROS: [u8; 16 * 1024] = [0; 16 * 1024];

/// Largest DATA frame: with its header of 9 bytes it fills exactly one TLS record of 2^14 bytes.
const FRAME: usize = ZEROS.len() - 9;
/// Overhead of a frame on the wire: 9 bytes of HTTP/2 header; in TLS 1.3 5 bytes of header, 1 of
/// type, 16 of authentication tag.
const OVERHEAD: usize = 9 + 22;
