//! Prague through the sender: its bursts, and its short segments at low rates.

use crate::player::{play, play_transfer};
use crate::profiles::linux;
use tcp::params::PragueVariant;
use tcp::{CongestionKind, TcpParams};

fn prague(variant: PragueVariant) -> TcpParams {
    linux().with(|p| {
        (p.ecn, p.accecn) = (true, true);
        p.congestion = CongestionKind::Prague;
        p.growth.prague_variant = variant;
    })
}

/// A window of 12 in 1 ms, twice as fast in slow start, is 24 000 segments a second: 5.9 in 2^-12
/// s, 6 in 250 µs. Linux's pacing counts whole packets of 1052 bytes, the draft's counts payload:
/// four segments take 39.608 or 41.667 µs each, those after the second ACK 29.706 or 31.250 µs. No
/// pacing came before the first burst, so it counts as late: each of its gaps is shortened by half
/// to catch up.
#[test]
fn the_segments_of_a_quarter_of_a_millisecond_of_the_pace_leave_at_once() {
    for (variant, burst, after) in
        [(PragueVariant::Linux, 5, "0.001094069"), (PragueVariant::Draft, 6, "0.001114582")]
    {
        let end = 10 + burst;
        play(
            &prague(variant),
            &format!(
                "
                > seq 0..10
                +0.001 < ack 2 ace 5
                > seq 10..14          # what cwnd allows
                cwnd == 12
                < ack 6 ace 5
                > seq 14..{end}       # the rest of the burst
                > nothing
                cwnd == 16
                @{after} timer
                > seq {end}..22
                "
            ),
        );
    }
}

#[test]
fn a_burst_is_one_segment_if_two_take_longer() {
    play(
        &prague(PragueVariant::Draft),
        "
        > seq 0..10
        +0.05 < ack 2 ace 5           # 2 · 12/50 ms: one in 2.083 ms
        > seq 10
        > nothing
        @0.051041667 timer            # half of the gap is made up
        > seq 11
        @0.053125 timer
        > seq 12
        ",
    );
}

/// udp_prague begins at 100 kbit/s, at which 25 ms hold two packets of 156 bytes, 12.48 ms apart.
/// The first ACK sets the window to 250 bytes and then adds (20/25)² · 1000 · 156/250 = 399, which
/// makes 649. In the second half of a virtual RTT the pacing rate for that is 31 522 bytes a
/// second, and 12.5 ms are 394 bytes.
#[test]
fn at_low_rates_segments_are_short_and_a_transfer_takes_more_of_them() {
    let begins = "
        > seq 0 len 156
        > nothing
        @0.01248 timer
        > seq 1 len 156
        @0.02 < ack 1 ace 5
        @0.02496 timer
    ";
    play(&prague(PragueVariant::Udp), &format!("{begins} > seq 2 len 394"));
    let ends = "
        > seq 2 len 188               # the rest of 500
        > nothing
        @0.04 < ack 3 ace 5
        > nothing
        inflight == 0
    ";
    play_transfer(&prague(PragueVariant::Udp), 500, &format!("{begins}{ends}"));
}

#[test]
fn the_last_of_short_segments_has_psh() {
    play_transfer(
        &prague(PragueVariant::Udp).with(|p| p.buffers.write_bytes = 16_384),
        500,
        "
        > seq 0 len 156 no-push
        @0.01248 timer
        > seq 1 len 156 no-push
        @0.02 < ack 1 ace 5
        @0.02496 timer
        > seq 2 len 188 push
        ",
    );
}

#[test]
fn a_retransmitted_segment_has_its_original_length() {
    // After a timeout new packets are full-sized; a retransmission keeps its length.
    play(
        &prague(PragueVariant::Udp).with(|p| p.recovery.tlp = false),
        "
        > seq 0 len 156
        @0.01248 timer
        > seq 1 len 156
        @1 timer
        > seq 0 again len 156
        ",
    );
}
