//! Fast retransmit and NewReno's fast recovery (RFC 5681, RFC 6582): no SACK.

use crate::player::{play, play_transfer};
use crate::profiles::{ns2, reno, room};
use tcp::TcpParams;
use tcp::params::FastRecovery;

#[test]
fn the_third_duplicate_ack_sends_the_first_segment_again() {
    play(
        &reno(false),
        "
        > seq 0..10
        +0.1 < ack 1
        > seq 10..12                  # slow start
        cwnd == 11
        < ack 1 times 2
        > seq 12..14                  # limited transmit
        < ack 1
        > seq 1 again
        > nothing
        ssthresh == 5                 # 11/2 = 5.5
        cwnd == 5
        recoveries == 1
        ",
    );
}

#[test]
fn two_duplicates_count_as_reordering() {
    play(
        &reno(false),
        "
        > seq 0..10
        +0.1 < ack 1 times 3          # the first is not a duplicate
        > seq 10..14
        < ack 4
        > seq 14..16                  # back to the window of 12: 4..16
        recoveries == 0
        cwnd == 12                    # two of three segments were counted as duplicates
        ",
    );
}

#[test]
fn duplicates_inflate_the_window_and_the_full_ack_deflates_it() {
    play(
        &reno(false),
        "
        > seq 0..10
        +0.1 < ack 1
        > seq 10..12
        < ack 1 times 3
        > seq 12..14
        > seq 1 again
        # 13 are outstanding, and each duplicate ACK means one less in flight. A new segment may
        # leave once 13 - duplicates < 5.
        < ack 1 times 5
        > nothing
        inflight == 5
        < ack 1
        > seq 14
        < ack 1 times 3
        > seq 15..18
        +0.1 < ack 14                 # full: all segments outstanding at the third duplicate
        cwnd == 5                     # the least of ssthresh (5.5) and flight + 1 = 5
        > seq 18
        < ack 15                      # congestion avoidance: 5 + 1/5
        > seq 19
        cwnd == 5
        ",
    );
}

#[test]
fn after_a_full_ack_with_little_in_flight_slow_start_begins() {
    // RFC 6582 §3.2 step 3, option 1: no burst of ssthresh segments.
    play(
        &room(10, reno(false)),
        "
        > seq 0..10
        +0.1 < ack 1
        > seq 10                      # the receive window ends there
        < ack 1 times 3
        > seq 1 again
        ssthresh == 5
        < ack 1 times 6
        +0.1 < ack 11 win 60000
        cwnd == 2                     # max(flight, 1) + 1: nothing is in flight
        > seq 11..13
        +0.1 < ack 13
        cwnd == 4                     # and slow start up to ssthresh
        > seq 13..17
        ",
    );
}

#[test]
fn a_partial_ack_shows_the_next_hole() {
    // 1 and 4 are lost.
    play(
        &reno(false),
        "
        > seq 0..10
        +0.1 < ack 1
        > seq 10..12
        < ack 1 times 2
        > seq 12..14
        < ack 1 times 7               # 2, 3 and 5 to 11 have arrived
        > seq 1 again
        > seq 14                      # 13 outstanding less nine: room for one
        +0.1 < ack 1 times 2          # for 12 and 13
        > seq 15..17
        < ack 4
        > seq 4 again
        > seq 17                      # 13 outstanding less 9 (11 duplicates - 3 acknowledged + 1)
        cwnd == 5
        inflight == 5
        +0.1 < ack 17                 # full: beyond 14
        > seq 18
        cwnd == 2
        recoveries == 1
        ",
    );
}

#[test]
fn the_timer_is_restarted_by_the_first_partial_ack_only() {
    // RFC 6582's impatient variant: many losses end in a timeout rather than in one retransmission
    // an RTT. The RTT is 100 ms, and the first RTO = 100 + max(4 · 50, 200) ms.
    play(
        &reno(false),
        "
        > seq 0..10
        +0.1 < ack 0 times 3 echo 0   # no new data, no sample
        > seq 10..12
        > seq 0 again
        rto == 1                      # still the initial one; restarted by the retransmission
        +0.1 < ack 1                  # partial: first
        > seq 1 again
        rto == 0.3
        +0.1 < ack 2                  # second: the timer runs on
        > seq 2 again
        +0.1 < ack 3
        > seq 3 again
        timeouts == 0
        @0.5 timer                    # 0.2 + 0.3
        > seq 3 again
        timeouts == 1
        ",
    );
}

#[test]
fn duplicates_of_retransmitted_data_cause_no_second_fast_retransmit() {
    // RFC 6582's careful variant (ns-2's bugFix_): the ACKs were lost, not the segments. After the
    // timeout 0 is retransmitted, and its ACK covers everything. Duplicates that answer further
    // copies must not count as losses.
    play(
        &reno(false),
        "
        > seq 0..10
        @1 timer
        > seq 0 again
        +0.1 < ack 4                  # 0..4 had arrived
        > seq 4..6 again
        +0.1 < ack 10
        > seq 10..13                  # cwnd 3
        cwnd == 3
        < ack 10 times 3              # for the copies of 4 and 5 and one more
        > seq 13..15                  # limited transmit
        > nothing
        recoveries == 0
        ",
    );
}

#[test]
fn lost_segments_are_retransmitted_after_a_stop() {
    play(
        &reno(false),
        "
        > seq 0..10
        stop
        +0.1 < ack 1 times 4
        > seq 1 again
        +0.1 < ack 3                  # 3 is lost as well
        > seq 3 again
        +0.1 < ack 10
        > nothing
        inflight == 0
        +100 > nothing                # and no timer
        ",
    );
}

#[test]
fn a_transfer_ends_with_a_short_segment() {
    play_transfer(
        &reno(false),
        10_500,
        "
        > seq 0..10
        +0.1 < ack 9
        > seq 10 len 500
        complete == 0
        +0.1 < ack 11
        complete == 1
        +100 > nothing
        ",
    );
}

/// One of ns-2's agents, with an initial window of ten.
fn agent(fast_recovery: FastRecovery) -> TcpParams {
    ns2().with(|p| {
        p.recovery.fast_recovery = fast_recovery;
        p.recovery.limited_transmit = false;
        p.growth.initial_window = 10;
    })
}

#[test]
fn reno_ends_its_recovery_at_the_first_new_ack() {
    // 0 and 4 are lost.
    play(
        &agent(FastRecovery::Reno),
        "
        > seq 0..10
        +0.1 < ack 0 times 3
        > seq 0 again
        ssthresh == 5
        < ack 0 times 5               # room once 10 - duplicates < 5
        > seq 10..13
        +0.1 < ack 4                  # NewReno would send 4 now
        > nothing
        recoveries == 1
        # Nine are outstanding, more than the window of 5.2 segments.
        < ack 4 times 3               # in the same window: no second reduction
        > nothing
        recoveries == 1
        timeouts == 0
        ",
    );
}

#[test]
fn newreno_repairs_the_second_hole_in_the_same_recovery() {
    play(
        &agent(FastRecovery::NewReno),
        "
        > seq 0..10
        +0.1 < ack 0 times 3
        > seq 0 again
        < ack 0 times 5
        > seq 10..13
        +0.1 < ack 4
        > seq 4 again
        > seq 13
        recoveries == 1
        ",
    );
}

#[test]
fn tahoe_starts_over_from_one_segment() {
    play(
        &agent(FastRecovery::Tahoe),
        "
        > seq 0..10
        +0.1 < ack 0 times 3
        > seq 0 again
        cwnd == 1
        ssthresh == 5
        < ack 0 times 6               # the rest of the window: nothing leaves
        > nothing
        +0.1 < ack 4                  # all outstanding segments are sent again
        cwnd == 2
        > seq 4..6 again
        +0.1 < ack 5
        cwnd == 3
        > seq 6..8 again
        timeouts == 0
        recoveries == 1
        ",
    );
}
