//! Real sockets for measurements: load, probes, the kernel's counters, and packets on both sides of
//! a queue.
//!
//! Everything here is non-blocking and owns neither a thread nor a clock. A caller with an event
//! loop (`Epoll`, `Timer`) drives any number of these objects. Two callers exist: the traffic
//! program of the kernel guest, and a live measurement.
//!
//! - `bulk`: a TCP sender that never starves its socket, and a receiver that discards the data.
//! - `icmp`, `echo`: echo requests by ICMP and by our own datagrams, with the kernel's receive
//!   timestamps.
//! - `hops`: the routers on the way to a host.
//! - `prober`: requests to several targets at fixed times, and the outcome of each request.
//! - `marks`: changes of the DS field, including ECN, on a path.
//! - `tcp_info`: the kernel's state of a connection (TCP_INFO).
//! - `netlink`: queue disciplines and device counters.
//! - `tap`, `journey`: packets captured at a device, and the times of one packet at several
//!   devices.
//! - `netns`: sockets in other network namespaces.
//! - `source`: the addresses that a server counts as one client.
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
