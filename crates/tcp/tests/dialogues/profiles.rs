//! The two profiles as the scenario language fills them in, with segments of 1000 bytes.

use tcp::{CongestionKind, TcpParams};

#[path = "../common/linux.rs"]
mod linux;

pub use linux::linux;

const MS: u64 = 1_000_000;

/// A Linux host with RFC 6675's loss detection and the timer, nothing else.
pub fn counting() -> TcpParams {
    TcpParams { rack: false, tlp: false, ..linux() }
}

/// The same that takes each timeout and each loss for what it seems to be: no F-RTO, no undo.
pub fn believing() -> TcpParams {
    TcpParams { dsack: false, undo: false, frto: false, ..counting() }
}

/// An RFC 5681 host with Linux's timer: Reno, SACK or not.
pub fn reno(sack: bool) -> TcpParams {
    TcpParams { congestion: CongestionKind::Reno, sack, prr: false, hystart: false, ..believing() }
}

/// The same with a receiver that has room for so many segments.
pub fn room(segments: u64, params: TcpParams) -> TcpParams {
    let buffer = 2 * segments * u64::from(params.mss);
    TcpParams { receive_buffer: buffer, receive_buffer_max: buffer, receive_window_fraction: 0.5, ..params }
}

/// ns-2.35's Agent/TCP/Newreno and its sink.
pub fn ns2() -> TcpParams {
    TcpParams {
        congestion: CongestionKind::Reno,
        sack: false,
        prr: false,
        dsack: false,
        undo: false,
        frto: false,
        rack: false,
        tlp: false,
        timestamps: false,
        initial_window: 2,
        packet_counted: true,
        hystart: false,
        initial_rto_ns: 3000 * MS,
        max_rto_ns: 60_000 * MS,
        tick_ns: 10 * MS,
        min_rto_on_variance: false,
        delayed_ack_segments: 1,
        delayed_ack_ns: 100 * MS,
        delayed_ack_max_ns: 100 * MS,
        quick_acks: 0,
        receive_buffer: 1 << 30,
        receive_buffer_max: 1 << 30,
        receive_window_fraction: 1.0,
        ..linux()
    }
}
