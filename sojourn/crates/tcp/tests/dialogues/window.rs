//! Windows: the receiver's, the profile's bound, and the growth of cwnd against both. Pacing.

use crate::player::{play, play_transfer};
use crate::profiles::{linux, reno, room};

#[test]
fn the_receive_window_limits() {
    play(
        &room(10, linux()),
        "
        > seq 0..10
        +0.1 < ack 2 win 9500         # nine segments from 2 on
        > seq 10
        < ack 3
        > seq 11
        < ack 3 win 12000
        > seq 12..15
        ",
    );
}

#[test]
fn the_right_edge_never_moves_left() {
    // RFC 9293 §3.8.6: an offered window stays offered.
    play(
        &room(10, linux()),
        "
        > seq 0..10
        +0.1 < ack 1 win 20000
        > seq 10..12
        < ack 2 win 3000              # the edge would be 5; it stays 21
        > seq 12..14
        < ack 10
        > seq 14..21
        ",
    );
}

#[test]
fn a_window_narrower_than_a_segment_permits_one() {
    play(
        &linux().with(|p| {
            p.buffers.receive_buffer = 1000;
            p.buffers.receive_buffer_max = 1000;
            p.buffers.receive_window_fraction = 0.5;
        }),
        "
        > seq 0                       # half of 1000 bytes
        +0.1 < ack 1 win 0
        > seq 1
        +0.1 < ack 2 win 300
        > seq 2
        ",
    );
}

#[test]
fn the_bound_of_the_profile_limits_like_a_receive_window() {
    let params = linux().with(|p| p.growth.max_window = Some(12));
    play(
        &params,
        "
        > seq 0..10
        +0.1 < ack 2
        > seq 10..14
        cwnd == 12
        < ack 4
        > seq 14..16
        < ack 6
        > seq 16..18
        inflight == 12
        ",
    );
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    // An unused cwnd does not grow in congestion avoidance (RFC 7661). In slow start it grows up to
    // twice the segments in flight, as in Linux.
    let slow = reno(true).with(|p| p.growth.max_window = Some(8));
    play(
        &slow,
        "
        > seq 0..8
        +0.1 < ack 8
        > seq 8..16
        cwnd == 18
        +0.1 < ack 16                 # 18 is more than twice eight
        > seq 16..24
        cwnd == 18
        +0.1 < ack 24
        > seq 24..32
        cwnd == 18
        ",
    );
    let avoiding = slow.with(|p| p.growth.initial_ssthresh = Some(10));
    play(
        &avoiding,
        "
        > seq 0..8
        +0.1 < ack 8
        > seq 8..16
        +0.1 < ack 16
        > seq 16..24
        +0.1 < ack 24
        > seq 24..32
        cwnd == 10
        ",
    );
}

#[test]
fn reno_grows_by_a_segment_each_round_trip() {
    let params = reno(true).with(|p| p.growth.initial_ssthresh = Some(10));
    play(
        &params,
        "
        > seq 0..10
        +0.1 < ack 5
        > seq 10..15
        < ack 10
        > seq 15..21                  # a window of ten is acknowledged
        cwnd == 11
        +0.1 < ack 15
        > seq 21..26
        < ack 20
        > seq 26..31
        cwnd == 11                    # ten of eleven
        +0.1 < ack 31
        cwnd == 12
        > seq 31..43
        +0.1 < ack 43
        cwnd == 13
        > seq 43..56
        ",
    );
}

#[test]
fn pacing_spreads_the_window_over_the_round_trip() {
    // The first window leaves at once, since the RTT is unknown. Then 2 · 12/100 ms: a segment each
    // 4.1667 ms.
    let params = linux().with(|p| p.growth.pacing = true);
    play(
        &params,
        "
        > seq 0..10
        +0.1 < ack 2
        > seq 10
        > nothing
        cwnd == 12
        @0.104166667 timer
        > seq 11
        @0.108333334 timer
        > seq 12
        @0.112500001 timer
        > seq 13
        > nothing
        inflight == 12
        ",
    );
}

#[test]
fn pacing_slows_down_in_the_last_round_of_slow_start() {
    // cwnd 12 of ssthresh 20: 1.2 · 12/100 ms, a segment each 6.944 ms.
    let params = linux().with(|p| {
        p.growth.pacing = true;
        p.growth.initial_ssthresh = Some(20);
    });
    play(
        &params,
        "
        > seq 0..10
        +0.1 < ack 2
        > seq 10
        @0.106944444 timer
        > seq 11
        @0.113888888 timer
        > seq 12
        @0.120833332 timer
        > seq 13
        ",
    );
}

#[test]
fn retransmissions_are_paced_as_well_and_do_not_delay_the_timer() {
    let params = linux().with(|p| {
        p.growth.pacing = true;
        p.recovery.tlp = false;
    });
    play_transfer(
        &params,
        10_000,
        "
        > seq 0..10
        +0.1 < ack 1
        rto == 0.3
        @0.4 timer
        > seq 1 again
        > nothing
        ",
    );
}
