//! The endpoint that the tests of this crate and of `sim` vary.

// Each module that includes this one imports `TcpParams` from `crate` or from `tcp`.
use super::TcpParams;

/// A Linux host with segments of 1000 bytes. Its timers are exact, SACKs don't wait, no segment is
/// pushed, and there is no handshake, so that scripts can name times.
pub fn linux() -> TcpParams {
    TcpParams::LINUX.with(|p| {
        p.mss = 1000;
        p.handshake = false;
        p.timers.timer_tick_ns = 1;
        p.acks.sack_delay_ns = 0;
        p.buffers.write_bytes = 0;
    })
}
