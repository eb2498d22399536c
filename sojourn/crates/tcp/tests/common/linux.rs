//! The endpoint that the tests of this crate and of `sim` vary.

// Within the crate it is `crate`, outside `tcp`: whoever declares this module says which.
use super::TcpParams;

/// A Linux host with segments of 1000 bytes. Its timers are exact, its SACKs don't wait, nothing is
/// pushed, and there is no handshake: scripts name times.
pub fn linux() -> TcpParams {
    TcpParams::LINUX.with(|p| {
        p.mss = 1000;
        p.handshake = false;
        p.timers.timer_tick_ns = 1;
        p.acks.sack_delay_ns = 0;
        p.buffers.write_bytes = 0;
    })
}
