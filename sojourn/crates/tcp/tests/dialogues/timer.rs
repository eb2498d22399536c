//! The retransmission timer (RFC 6298): its value, backoff, Karn's rule, and recovery after it.

use crate::player::{play, play_transfer};
use crate::profiles::{believing, counting, reno, room};

#[test]
fn the_timer_doubles_each_time() {
    play(
        &counting(),
        "
        > seq 0..10
        rto == 1
        @1 timer
        > seq 0 again
        rto == 2
        @3 timer
        > seq 0 again
        rto == 4
        @7 timer
        > seq 0 again
        rto == 8
        timeouts == 3
        cwnd == 1
        ssthresh == 7                 # the same data reduces ssthresh only once
        ",
    );
}

#[test]
fn the_timer_doubles_up_to_its_bound() {
    let params = counting().with(|p| p.timers.max_rto_ns = 5_000_000_000);
    play(
        &params,
        "
        > seq 0..10
        @1 timer
        > seq 0 again
        @3 timer
        > seq 0 again
        @7 timer
        > seq 0 again
        rto == 5
        @12 timer
        > seq 0 again
        @17 timer
        > seq 0 again
        ",
    );
}

#[test]
fn without_timestamps_a_retransmitted_segment_gives_no_sample_and_the_backoff_stays() {
    // Karn's rule: the ACK may be for the first copy or the second.
    let params = reno(true).with(|p| {
        p.timestamps = false;
        p.growth.initial_window = 1;
    });
    play(
        &params,
        "
        > seq 0
        @1 timer
        > seq 0 again
        +0.1 < ack 1
        rto == 2
        > seq 1..3
        +0.1 < ack 2                  # sent once
        > seq 3                       # 2 + 1/2
        rto == 0.3
        ",
    );
}

#[test]
fn timestamps_distinguish_the_copies() {
    let params = reno(true).with(|p| p.growth.initial_window = 1);
    play(
        &params,
        "
        > seq 0
        @1 timer
        > seq 0 again
        +0.1 < ack 1 echo 1           # for the second copy
        rto == 0.3
        srtt == 0.1
        > seq 1..3
        ",
    );
}

#[test]
fn an_echo_measures_in_whole_milliseconds() {
    // Linux's stamps are in units of 1 ms (tcp_rtt_tsopt_us): sent in the 1000th, acknowledged in
    // the 1100th. The RTT of a segment sent once follows from its time of sending.
    let params = reno(true).with(|p| p.growth.initial_window = 1);
    play(
        &params,
        "
        > seq 0
        @1 timer
        > seq 0 again
        @1.1007 < ack 1 echo 1
        srtt == 0.1
        > seq 1..3
        +0.1087 < ack 2
        srtt == 0.1010875             # 100 + 8.7/8
        > seq 3
        ",
    );
}

#[test]
fn an_ack_of_several_segments_measures_the_first_whatever_it_echoes() {
    // The ACK of 0 was lost: the next one echoes 1.
    let params = reno(true).with(|p| p.growth.initial_window = 1);
    play(
        &params,
        "
        > seq 0
        +0.1 < ack 1
        > seq 1..3
        +0.1 < ack 2
        > seq 3..5
        +0.18 < ack 5 echo 0.2
        srtt == 0.1225                # 2, sent at 0.1: 280 ms
        > seq 5..11
        ",
    );
}

#[test]
fn the_first_sample_sets_srtt_and_the_next_move_it_by_an_eighth() {
    // RFC 6298 §2: srtt = 100 ms, rttvar = 50 ms; then 180 ms: rttvar = 3/4 · 50 + 1/4 · 80 = 57.5,
    // srtt = 110 ms.
    let params = reno(true).with(|p| {
        p.timers.min_rto_on_variance = false;
        p.timers.min_rto_ns = 1_000_000;
    });
    play(
        &params,
        "
        > seq 0..10
        +0.1 < ack 1
        > seq 10..12
        srtt == 0.1
        rto == 0.3
        +0.08 < ack 2
        > seq 12..14
        srtt == 0.11
        rto == 0.34
        ",
    );
}

#[test]
fn linux_bounds_the_variance_and_others_the_sum() {
    // 50 ms: 4 · rttvar is 100 ms. RFC 6298 bounds the sum, 150 ms; Linux adds the bound to srtt.
    for (on_variance, rto) in [(false, "0.2"), (true, "0.25")] {
        let params = reno(true).with(|p| p.timers.min_rto_on_variance = on_variance);
        play(
            &params,
            &"
            > seq 0..10
            +0.05 < ack 1
            > seq 10..12
            rto == RTO
            "
            .replace("RTO", rto),
        );
    }
}

#[test]
fn each_ack_of_new_data_restarts_the_timer_and_the_last_stops_it() {
    play_transfer(
        &counting(),
        10_000,
        "
        > seq 0..10
        @0.9 < ack 1 echo 0.8
        rto == 0.3
        @1.1 < ack 2 echo 1           # due at 1.2
        @1.3 < ack 10 echo 1.2        # was due at 1.4
        complete == 1
        +100 > nothing
        ",
    );
}

#[test]
fn after_a_timeout_all_but_the_sacked_segments_are_retransmitted() {
    play(
        &room(10, believing()),
        "
        > seq 0..10
        +0.1 < ack 0 sack 3..4
        < ack 0 sack 6..7 3..4
        > nothing
        @1 timer
        > seq 0 again
        cwnd == 1
        ssthresh == 7
        +0.1 < ack 1 sack 6..7 3..4
        > seq 1..3 again
        cwnd == 2
        +0.1 < ack 4 sack 6..7        # 1 and 2 are new, 3 was SACKed before
        cwnd == 4
        > seq 4..6 again
        > seq 7..9 again
        +0.1 < ack 9                  # 4, 5, 7, 8: up to ssthresh, then avoidance
        cwnd == 7
        > seq 9 again
        > seq 10..16
        ",
    );
}

#[test]
fn without_sack_slow_start_after_a_timeout_counts_acks() {
    // 1..9 had arrived. The ACK of ten segments does not deliver ten.
    play(
        &reno(false),
        "
        > seq 0..10
        @1 timer
        > seq 0 again
        +0.1 < ack 10
        cwnd == 2
        > seq 10..12
        ",
    );
}

#[test]
fn a_timeout_in_recovery_does_not_reduce_twice() {
    // 0.7 · 10 = 7. PRR has cwnd at 7 when the timer expires, but this window of data has already
    // reduced ssthresh.
    play(
        &counting(),
        "
        > seq 0..10
        +0.1 < ack 0 sack 1..4 win 10000
        > seq 0 again
        ssthresh == 7
        @1.1 timer
        > seq 0 again
        ssthresh == 7
        cwnd == 1
        ",
    );
}

#[test]
fn after_progress_the_next_timeout_reduces_again() {
    play(
        &believing(),
        "
        > seq 0..10
        @1 timer
        > seq 0 again
        ssthresh == 7
        +0.1 < ack 4 echo 1           # cwnd 5
        > seq 4..9 again
        cwnd == 5
        +0.3 timer                    # 100 + 200 ms
        > seq 4 again
        ssthresh == 3                 # 0.7 · 5
        ",
    );
}

#[test]
fn a_loss_during_slow_start_after_a_timeout_waits_for_its_end() {
    play(
        &reno(true),
        "
        > seq 0..10
        @1 timer
        > seq 0 again
        +0.1 < ack 10
        > seq 10..15                  # ssthresh is 5, all ten were new
        cwnd == 6
        > seq 15
        < ack 10 sack 11..14          # after recover: a new loss
        > seq 10 again
        recoveries == 1
        ssthresh == 3
        ",
    );
}

#[test]
fn a_stopped_sender_only_waits_for_its_acks() {
    play(
        &counting(),
        "
        > seq 0..10
        stop
        @1 timer
        > seq 0 again
        +0.1 < ack 10
        > nothing
        +1000 > nothing
        ",
    );
}

#[test]
fn the_timer_expires_at_a_tick_of_its_clock() {
    // HZ 250: 1 s is 250 ticks, more than 63, so it expires at every eighth tick: 1.024 s. Backed
    // off, 2 s are 500, still fewer than 504.
    let params = believing().with(|p| p.timers.timer_tick_ns = 4_000_000);
    play(
        &params,
        "
        > seq 0..10
        @1 timer
        > nothing
        @1.024 timer
        > seq 0 again
        @3.024 timer
        > nothing
        @3.04 timer
        > seq 0 again
        timeouts == 2
        ",
    );
}
