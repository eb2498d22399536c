//! The two profiles as the scenario language fills them in, with segments of 1000 bytes.

use tcp::{CongestionKind, TcpParams};

#[path = "../common/linux.rs"]
mod linux;

pub use linux::linux;

/// A Linux host with RFC 6675's loss detection and the timer, nothing else.
pub fn counting() -> TcpParams {
    linux().with(|p| {
        p.recovery.rack = false;
        p.recovery.tlp = false;
    })
}

/// The same host, which accepts each timeout and each loss as real: no F-RTO, no undo.
pub fn believing() -> TcpParams {
    counting().with(|p| {
        p.recovery.dsack = false;
        p.recovery.undo = false;
        p.recovery.frto = false;
    })
}

/// An RFC 5681 host with Linux's timer: Reno, with or without SACK.
pub fn reno(sack: bool) -> TcpParams {
    believing().with(|p| {
        p.congestion = CongestionKind::Reno;
        p.recovery.sack = sack;
        p.recovery.prr = false;
        p.growth.hystart = false;
    })
}

/// The same host with a receiver that has room for `segments` segments.
pub fn room(segments: u64, params: TcpParams) -> TcpParams {
    let buffer = 2 * segments * u64::from(params.mss);
    params.with(|p| {
        p.buffers.receive_buffer = buffer;
        p.buffers.receive_buffer_max = buffer;
        p.buffers.receive_window_fraction = 0.5;
    })
}

/// ns-2.35's Agent/TCP/Newreno and its sink.
pub fn ns2() -> TcpParams {
    TcpParams::NS2.with(|p| p.mss = 1000)
}
