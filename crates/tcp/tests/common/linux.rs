//! The endpoint that the tests of this crate and of `sim` vary, so that a new parameter is written once for all of them.

// Within the crate it is `crate`, outside `tcp`: whoever declares this module says which.
use super::{CongestionKind, TcpParams};

const MS: u64 = 1_000_000;

/// A Linux host: CUBIC, SACK, PRR, timestamps. Its timers are exact, its SACKs don't wait, nothing is pushed, and there is no handshake: scripts
/// name times.
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
        handshake: false,
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
        receive_window_fraction: 162.0 / 256.0,
    }
}
