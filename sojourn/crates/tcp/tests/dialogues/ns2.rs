//! The profile `ns2`: one-way agents that count packets.

use crate::player::play;
use crate::profiles::ns2;

#[test]
fn slow_start_adds_one_for_each_ack_however_much_it_acknowledges() {
    play(
        &ns2(),
        "
        > seq 0..2
        +0.1 < ack 2                  # two segments, one ACK
        cwnd == 3
        > seq 2..5
        +0.1 < ack 3
        > seq 5..7
        cwnd == 4
        < ack 4
        > seq 7..9
        < ack 5
        > seq 9..11
        cwnd == 6
        ",
    );
}

#[test]
fn congestion_avoidance_adds_a_fraction_for_each_ack() {
    // 4 + 1/4 + 1/4.25 + 1/4.485 + 1/4.708 = 4.92; the fifth makes it 5.12.
    let params = ns2().with(|p| {
        p.growth.initial_window = 4;
        p.growth.initial_ssthresh = Some(4);
    });
    play(
        &params,
        "
        > seq 0..4
        +0.1 < ack 1
        > seq 4
        < ack 2
        > seq 5
        < ack 3
        > seq 6
        < ack 4
        > seq 7
        cwnd == 4
        +0.1 < ack 5
        > seq 8..10
        cwnd == 5
        ",
    );
}

#[test]
fn a_reduction_halves_the_window_in_force() {
    // cwnd grows past window_ (10) unused; the loss halves ten, not cwnd.
    let params = ns2().with(|p| {
        p.growth.initial_window = 10;
        p.growth.max_window = Some(10);
    });
    play(
        &params,
        "
        > seq 0..10
        +0.1 < ack 1
        > seq 10
        < ack 2
        > seq 11
        < ack 3
        > seq 12
        cwnd == 13
        < ack 3 times 2
        > nothing                     # limited transmit is within window_
        < ack 3
        > seq 3 again
        ssthresh == 5
        cwnd == 5
        ",
    );
}

#[test]
fn the_full_ack_leaves_half_the_window_and_grows() {
    // exit_recovery_fix_ 0: cwnd stays at the reduced value, whatever is in flight.
    let params = ns2().with(|p| {
        p.growth.initial_window = 8;
        p.growth.max_window = Some(8);
    });
    play(
        &params,
        "
        > seq 0..8
        +0.1 < ack 0 times 3
        > seq 0 again
        cwnd == 4
        +0.1 < ack 8
        cwnd == 4                     # 4 + 1/4
        > seq 8..12
        ",
    );
}

#[test]
fn rtts_are_the_number_of_ticks_that_began_meanwhile() {
    // Sent at 0.000 and acknowledged at 0.105: ten ticks of 10 ms began. Sent at 0.105 and
    // acknowledged at 0.2101: eleven. RTO = 0.1 + 4 · 0.05, then srtt = 0.1 + 0.01/8, rttvar = 3/4
    // · 0.05 + 1/4 · 0.01.
    play(
        &ns2(),
        "
        > seq 0..2
        rto == 3
        +0.105 < ack 1
        srtt == 0.1
        rto == 0.3
        > seq 2..4
        +0.1051 < ack 3
        srtt == 0.10125
        rto == 0.26125
        > seq 4..7
        ",
    );
}

#[test]
fn one_segment_per_window_is_timed() {
    play(
        &ns2(),
        "
        > seq 0..2
        +0.1 < ack 1
        > seq 2..4                    # 2 is timed now
        +0.2 < ack 2                  # 1 is not
        srtt == 0.1
        > seq 4..6
        +0.2 < ack 3                  # 2: 400 ms; srtt = 100 + 300/8
        srtt == 0.1375
        > seq 6..8
        ",
    );
}

#[test]
fn the_window_is_halved_at_each_timeout_and_the_timer_doubles() {
    let params = ns2().with(|p| p.growth.initial_window = 16);
    play(
        &params,
        "
        > seq 0..16
        @3 timer
        > seq 0 again
        ssthresh == 8
        cwnd == 1
        @9 timer
        > seq 0 again
        ssthresh == 2                 # of a window of one, but never less than two
        rto == 12
        @21 timer
        > seq 0 again
        @45 timer
        > seq 0 again
        rto == 48
        @93 timer
        > seq 0 again
        rto == 60                     # maxrto_
        ",
    );
}

#[test]
fn sack1_counts_lost_segments_as_in_flight() {
    // 0, 1 and 2 of twelve are lost. RFC 6675 would count 12 - 9 SACKed - 3 lost = none in flight
    // and send all three at once. Sack1 counts 12 - 9 = 3 at the ninth SACK, and counts each
    // retransmitted segment twice.
    let params = ns2().with(|p| {
        p.recovery.sack = true;
        p.growth.initial_window = 12;
        p.growth.max_window = Some(12);
    });
    play(
        &params,
        "
        > seq 0..12
        +0.1 < ack 0 sack 3..4
        < ack 0 sack 3..5
        < ack 0 sack 3..6
        > seq 0 again
        cwnd == 6
        inflight == 10
        < ack 0 sack 3..10
        inflight == 6
        < ack 0 sack 3..11
        > seq 1 again
        < ack 0 sack 3..12
        > seq 2 again
        inflight == 6
        +0.1 < ack 1 sack 3..12       # 0 and its copy have left: window_ has room for one
        > seq 12
        inflight == 5
        < ack 12
        cwnd == 6                     # the full ACK adds nothing
        > seq 13..18
        retransmits == 3
        ",
    );
}

#[test]
fn with_sack_a_timeout_clears_the_scoreboard() {
    // As in ns-2's Sack1, and as RFC 2018 §8 allows.
    let params = ns2().with(|p| {
        p.recovery.sack = true;
        p.growth.initial_window = 4;
    });
    play(
        &params,
        "
        > seq 0..4
        +0.1 < ack 0 sack 1..2
        > seq 4
        @3 timer
        > seq 0 again
        +0.1 < ack 1
        > seq 1..3 again              # 1 too
        ",
    );
}
