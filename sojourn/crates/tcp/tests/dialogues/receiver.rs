//! The receiver: delayed ACKs, immediate ACKs, SACK blocks, echoed timestamps, ECN.

use crate::player::play_receiver;
use crate::profiles::linux;
use tcp::TcpParams;

/// Linux without quick ACKs.
fn patient() -> TcpParams {
    linux().with(|p| p.acks.quick_acks = 0)
}

/// A window that is open from the start: while a window opens, every segment is acknowledged at
/// once.
fn open(quick_acks: u32) -> TcpParams {
    linux().with(|p| {
        p.acks.quick_acks = quick_acks;
        p.buffers.receive_buffer_max = 131_072;
    })
}

#[test]
fn every_second_segment_is_acknowledged_or_the_timer_does_it() {
    play_receiver(
        &patient(),
        "
        < seq 0
        > nothing
        +0.01 < seq 1
        > ack 2
        +0.01 < seq 2
        +0.04 timer                   # 40 ms after 2
        > ack 3
        +1 > nothing
        delivered == 3000
        ",
    );
}

#[test]
fn the_first_segments_are_acknowledged_one_by_one() {
    play_receiver(
        &open(3),
        "
        < seq 0
        > ack 1
        < seq 1
        > ack 2
        < seq 2
        > ack 3
        < seq 3
        > nothing
        < seq 4
        > ack 5
        ",
    );
}

#[test]
fn a_gap_and_its_filling_are_acknowledged_at_once() {
    play_receiver(
        &patient(),
        "
        < seq 0..2
        > ack 2
        < seq 3
        > ack 2 sack 3..4
        < seq 5
        > ack 2 sack 5..6 3..4
        < seq 2                       # fills the first
        > ack 4 sack 5..6
        < seq 4
        > ack 6
        delivered == 6000
        < seq 4 again                 # a copy: reported (RFC 2883)
        > ack 6 sack 4..5
        delivered == 6000
        ",
    );
}

#[test]
fn the_latest_block_comes_first_and_three_fit_beside_a_timestamp() {
    play_receiver(
        &patient(),
        "
        < seq 1
        > ack 0 sack 1..2
        < seq 3
        > ack 0 sack 3..4 1..2
        < seq 5
        > ack 0 sack 5..6 3..4 1..2
        < seq 7
        > ack 0 sack 7..8 5..6 3..4
        < seq 4                       # joins two
        > ack 0 sack 3..6 7..8 1..2
        ",
    );
}

#[test]
fn the_earliest_segment_that_an_ack_covers_is_echoed() {
    // RFC 7323 §4.3: the echo makes the RTT include the delay of a delayed ACK. When a hole is
    // filled, the segment that filled it gives the sample, not a segment beyond the hole.
    play_receiver(
        &patient(),
        "
        @0.1 < seq 0 stamp 0.05
        @0.12 < seq 1 stamp 0.07
        > ack 2 echo 0.05
        @0.2 < seq 3 stamp 0.15
        > ack 2 sack 3..4 echo 0.05
        @0.3 < seq 2 stamp 0.25 again
        > ack 4 echo 0.25
        ",
    );
}

#[test]
fn ece_is_set_until_cwr() {
    play_receiver(
        &patient().with(|p| p.ecn = true),
        "
        < seq 0 ce
        > ack 1 ece
        < seq 1
        > ack 2 ece
        < seq 2..4
        > ack 4 ece
        < seq 4 cwr
        > ack 5
        < seq 5..7
        > ack 7
        < seq 7 cwr ce                # marked again in the network
        > ack 8 ece
        ",
    );
}

#[test]
fn the_window_is_the_free_buffer_and_its_right_edge_stays() {
    play_receiver(
        &patient().with(|p| {
            p.buffers.receive_buffer = 20_000;
            p.buffers.receive_buffer_max = 20_000;
            p.buffers.receive_window_fraction = 0.5;
        }),
        "
        window == 10000
        < seq 1
        > ack 0 sack 1..2 win 10000   # a kilobyte is queued, but ten were offered
        < seq 0
        > ack 2 win 8000              # none of it was read yet: the edge stays
        < seq 2..4
        > ack 4 win 9084              # (20000 - 1832)/2
        ",
    );
}

#[test]
fn after_the_third_the_sacks_of_a_gap_are_compressed() {
    // Linux: a twentieth of the RTT, at most tcp_comp_sack_delay_ns, plus its slack of 0.1 ms. With
    // 5 ms one way the SACKs wait for 0.5 ms and the slack.
    play_receiver(
        &patient().with(|p| p.acks.sack_delay_ns = 1_000_000),
        "
        @0.1 < seq 0 stamp 0.095
        > nothing
        < seq 2 stamp 0.095
        > ack 1 sack 2..3
        < seq 3 stamp 0.095
        > ack 1 sack 2..4
        < seq 4 stamp 0.095
        > ack 1 sack 2..5
        < seq 5 stamp 0.095
        > nothing
        < seq 6 stamp 0.095
        > nothing
        +0.0006 timer
        > ack 1 sack 2..7
        < seq 7 stamp 0.095
        > nothing
        < seq 1 again stamp 0.095     # fills the gap: at once
        > ack 8
        +1 > nothing
        ",
    );
}

#[test]
fn after_a_pause_and_after_a_duplicate_segments_are_acknowledged_one_by_one() {
    // Linux: a pause longer than its RTO, and any segment below the expected one.
    play_receiver(
        &open(2),
        "
        < seq 0
        > ack 1
        < seq 1
        > ack 2
        +0.2 < seq 2                  # min_rto, not longer
        > nothing
        < seq 3
        > ack 4
        +0.201 < seq 4
        > ack 5
        < seq 5
        > ack 6
        < seq 6
        > nothing
        < seq 7
        > ack 8
        < seq 3 again
        > ack 8 sack 3..4             # the first of two
        < seq 8
        > ack 9
        < seq 9
        > nothing
        < seq 10
        > ack 11
        ",
    );
}

#[test]
fn a_segment_with_psh_is_acknowledged_at_once() {
    play_receiver(
        &patient(),
        "
        < seq 0..2
        > ack 2
        < seq 2 push
        > ack 3
        < seq 3
        > nothing
        < seq 4
        > ack 5
        < seq 5 push
        > ack 6
        ",
    );
}

#[test]
fn while_the_window_opens_every_segment_is_acknowledged_at_once() {
    // Linux: the first window is half of 20 000 bytes, less a segment. Each arriving segment adds
    // two segments. The bound is 0.7 of the buffer without the 1832 bytes of the segment that has
    // just arrived.
    play_receiver(
        &linux().with(|p| {
            p.acks.quick_acks = 1;
            p.buffers.receive_buffer = 20_000;
            p.buffers.receive_buffer_max = 30_000;
            p.buffers.receive_window_fraction = 0.7;
        }),
        "
        window == 9000
        < seq 0 push
        > ack 1 win 11000
        < seq 1
        > ack 2 win 12720
        < seq 2
        > nothing
        < seq 3
        > ack 4 win 12720
        ",
    );
}

#[test]
fn the_ack_of_a_filled_gap_is_one_of_the_three_that_leave_at_once() {
    // Linux counts the ACK of a filled gap if it reports a single segment and another gap is left.
    play_receiver(
        &patient().with(|p| p.acks.sack_delay_ns = 1_000_000),
        "
        @0.1 < seq 0..2 stamp 0.095
        > ack 2
        < seq 4 stamp 0.095
        > ack 2 sack 4..5
        < seq 2 again stamp 0.095
        > ack 3 sack 4..5
        < seq 5 stamp 0.095
        > ack 3 sack 4..6
        < seq 6 stamp 0.095
        > ack 3 sack 4..7
        < seq 7 stamp 0.095
        > nothing
        ",
    );
}

#[test]
fn the_delayed_ack_waits_for_a_tick() {
    // HZ 250: due after 41 ms, and the tick comes at 44.
    play_receiver(
        &patient().with(|p| p.timers.timer_tick_ns = 4_000_000),
        "
        @0.001 < seq 0
        @0.041 timer
        > nothing
        @0.044 timer
        > ack 1
        ",
    );
}

#[test]
fn if_segments_arrive_slowly_the_delay_grows_up_to_a_round_trip() {
    // The first segment was in flight for 40 ms, so a round trip is 80 ms.
    play_receiver(
        &patient(),
        "
        @0.04 < seq 0 stamp 0
        @0.08 timer
        > ack 1
        @0.1 < seq 1 stamp 0.06       # the timer doubled ato to 80; 80/2 + 60, at most a round trip
        @0.18 timer
        > ack 2
        @0.2 < seq 2 stamp 0.16       # the timer doubled ato to 200; 200/2 + 100
        @0.21 < seq 3 stamp 0.17      # before the timer: 200/2 + 20
        > ack 4
        @0.215 < seq 4 stamp 0.175
        @0.219 < seq 5 stamp 0.179    # 120/2 + 20, then 80/2 + 20
        > ack 6
        @0.3 < seq 6 stamp 0.26
        @0.36 timer
        > ack 7
        ",
    );
}

#[test]
fn if_segments_arrive_slowly_the_delay_is_at_most_twice_their_distance() {
    play_receiver(
        &patient(),
        "
        @0.1 < seq 0 stamp 0
        @0.136 < seq 1 stamp 0.036     # 40/2 + 36
        > ack 2
        @0.172 < seq 2 stamp 0.072     # 56/2 + 36
        @0.236 timer
        > ack 3
        @0.24 < seq 0 stamp 0.14 again # a duplicate: the estimate is reset
        > ack 3 sack 0..1
        @0.245 < seq 3 stamp 0.145
        @0.285 timer
        > ack 4
        ",
    );
}

#[test]
fn without_a_longer_delay_it_stays_as_it_is() {
    play_receiver(
        &patient().with(|p| p.acks.delayed_ack_max_ns = 40_000_000),
        "
        @0.1 < seq 0 stamp 0
        @0.14 timer
        > ack 1
        @0.2 < seq 1
        @0.24 timer
        > ack 2
        ",
    );
}

#[test]
fn a_discarded_block_is_reported_again_in_part() {
    // Linux remembers four blocks. 2 to 4 is the fifth: a segment that joins it is reported alone,
    // until the next block in the list touches it.
    play_receiver(
        &patient(),
        "
        < seq 0
        > nothing
        < seq 2
        > ack 1 sack 2..3
        < seq 3
        > ack 1 sack 2..4
        < seq 6
        > ack 1 sack 6..7 2..4
        < seq 8
        > ack 1 sack 8..9 6..7 2..4
        < seq 10
        > ack 1 sack 10..11 8..9 6..7
        < seq 12
        > ack 1 sack 12..13 10..11 8..9
        < seq 4
        > ack 1 sack 4..5 12..13 10..11
        < seq 3 again
        > ack 1 sack 3..4 3..5 12..13
        ",
    );
}

#[test]
fn a_delayed_sack_leaves_before_a_third_block_displaces_one() {
    play_receiver(
        &patient().with(|p| p.acks.sack_delay_ns = 1_000_000),
        "
        @0.1 < seq 0..2 stamp 0.095
        > ack 2
        < seq 3 stamp 0.095
        > ack 2 sack 3..4
        < seq 5 stamp 0.095
        > ack 2 sack 5..6 3..4
        < seq 6 stamp 0.095
        > ack 2 sack 5..7 3..4
        < seq 7 stamp 0.095
        > nothing
        < seq 9 stamp 0.095
        > ack 2 sack 5..8 3..4
        +0.01 < seq 10 stamp 0.105    # 9 is reported with the next segment, whose SACK waits too
        > nothing
        +0.0006 timer
        > ack 2 sack 9..11 5..8 3..4
        ",
    );
}

#[test]
fn quick_acks_begin_with_the_first_segment_in_order_unless_one_beyond_a_gap_was_first() {
    // In Linux, if the first segment lies beyond a gap, its ACK ends quick ACKs before they begin.
    let linux = patient().with(|p| p.acks.quick_acks = 16);
    play_receiver(
        &linux,
        "
        < seq 0
        > ack 1
        < seq 1
        > ack 2
        < seq 2
        > ack 3
        ",
    );
    play_receiver(
        &linux.with(|p| p.buffers.receive_buffer_max = linux.buffers.receive_buffer * 2),
        "
        < seq 1
        > ack 0 sack 1..2
        < seq 0
        > ack 2
        ",
    );
}

#[test]
fn a_window_that_doubles_by_a_read_is_advertised() {
    // 100 000 bytes, half of them offered. Forty queued segments take 40 · 2304. When the gap is
    // filled none is read yet, and 9000 bytes of the window are left; then all are read.
    play_receiver(
        &patient().with(|p| {
            p.buffers.receive_buffer = 100_000;
            p.buffers.receive_buffer_max = 100_000;
            p.buffers.receive_window_fraction = 0.5;
            p.acks.sack_delay_ns = 1_000_000;
        }),
        "
        window == 50000
        < seq 1..41
        > ack 0 sack 1..2 win 50000
        > ack 0 sack 1..3 win 50000
        > ack 0 sack 1..4 win 50000
        < seq 0
        > ack 41 win 9000
        > nothing
        timer
        > ack 41 win 50000
        ",
    );
}
