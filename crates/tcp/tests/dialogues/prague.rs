//! Prague through the sender: the bursts in which it sends.

use crate::player::play;
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

/// A window of 12 in 1 ms, twice as fast in slow start, is 24 000 segments a second: 5.9 in 2^-12 s,
/// 6 in 250 µs. The pace counts whole packets in Linux, of 1052 bytes, and payload in the draft: four
/// segments take 39.608 or 41.667 µs each, those after the second ACK 29.706 or 31.250 µs. As nothing was
/// paced before, half of it is made good.
#[test]
fn what_the_pace_sends_in_a_quarter_of_a_millisecond_leaves_at_once() {
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
fn one_segment_is_a_burst_where_two_take_longer() {
    play(
        &prague(PragueVariant::Draft),
        "
        > seq 0..10
        +0.05 < ack 2 ace 5           # 2 · 12/50 ms: one in 2.083 ms
        > seq 10
        > nothing
        @0.051041667 timer            # half of it is made good
        > seq 11
        @0.053125 timer
        > seq 12
        ",
    );
}
