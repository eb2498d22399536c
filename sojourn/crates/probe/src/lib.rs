//! Real sockets for measuring: load, probes, what the kernel knows, packets on both sides of a
//! queue.
//!
//! Everything here is non-blocking and owns no thread and no clock of its own: a caller with an
//! event loop (`Epoll`, `Timer`) drives any number of them. The traffic program of the kernel guest
//! is one such caller, a live measurement another.
//!
//! - `bulk`: a TCP sender that never starves its socket and a receiver that throws away what it
//!   gets.
//! - `icmp`, `echo`: echo requests by ICMP and by our own datagrams, with the kernel's receive
//!   stamps.
//! - `hops`: the routers on the way to a host.
//! - `prober`: requests to several targets at fixed times, and what became of each.
//! - `marks`: what becomes of the DS field, ECN in it, on the way.
//! - `tcp_info`: what the kernel says about a connection.
//! - `netlink`: queue disciplines and device counters.
//! - `tap`, `journey`: packets as a device sees them, and one packet's times at several places.
//! - `netns`: sockets in other network namespaces.
//! - `source`: whom a server takes for one client.
//!
//! `unsafe` lives in `sys` alone.

pub mod bulk;
pub mod echo;
pub mod hops;
pub mod icmp;
pub mod journey;
pub mod marks;
pub mod netlink;
pub mod netns;
pub mod prober;
mod source;
pub mod sys;
pub mod tap;
pub mod tcp_info;

pub use source::source;
pub use sys::{Clock, Epoll, Timer};
