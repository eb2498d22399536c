//! The two profiles as the scenario language fills them in, with segments of 1000 bytes.

use tcp::{CongestionKind, TcpParams};

const MS: u64 = 1_000_000;

/// A Linux host: CUBIC, SACK, PRR, timestamps. Its timers are exact, its SACKs don't wait and nothing is pushed: scripts name times.
pub fn linux() -> TcpParams {
    TcpParams {
        congestion: CongestionKind::Cubic,
        mss: 1000,
        header_bytes: 52,
        ack_bytes: 52,
        sack: true,
        prr: true,
        dsack: true,
        undo: true,
        frto: true,
        rack: true,
        tlp: true,
        limited_transmit: true,
        timestamps: true,
        ecn: false,
        initial_window: 10,
        initial_ssthresh: None,
        max_window: None,
        packet_counted: false,
        pacing: false,
        hystart: true,
        vegas_alpha: 2,
        vegas_beta: 4,
        vegas_gamma: 1,
        ledbat_target_ns: 100 * MS,
        ledbat_gain: 1.0,
        initial_rto_ns: 1000 * MS,
        min_rto_ns: 200 * MS,
        max_rto_ns: 120_000 * MS,
        tick_ns: 1,
        min_rto_on_variance: true,
        delayed_ack_segments: 2,
        delayed_ack_ns: 40 * MS,
        delayed_ack_max_ns: 200 * MS,
        quick_acks: 16,
        sack_delay_ns: 0,
        write_bytes: 0,
        timer_tick_ns: 1,
        receive_buffer: 131_072,
        receive_buffer_max: 6_291_456,
        receive_window_fraction: 0.5,
    }
}

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
    TcpParams { receive_buffer: buffer, receive_buffer_max: buffer, ..params }
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
