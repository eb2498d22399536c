//! Losses by the time of sending, and probes for lost tails (RFC 8985). Re-expresses the checks of
//! Linux's packetdrill scripts tcp_rack, tcp_tlp and tcp_fast_recovery.

use crate::player::{play, play_transfer};
use crate::profiles::{linux, room};
use tcp::TcpParams;

/// Linux without a probe before the timer.
fn unprobing() -> TcpParams {
    linux().with(|p| p.recovery.tlp = false)
}

#[test]
fn a_lost_retransmission_is_detected_when_later_data_arrive() {
    // RFC 6675 would wait for the timer. 1 and its copy are lost. 12 left after the copy.
    play(
        &linux(),
        "
        > seq 0..10
        +0.1 < ack 1
        > seq 10..12
        +0.001 < ack 1 sack 2..5      # three: no wait for reordering
        > seq 1 again
        inflight == 8
        +0.1 < ack 1 sack 2..12
        > seq 12..18
        +0.1 < ack 1 sack 2..13
        > seq 1 again
        > seq 18
        inflight == 7                 # 13..19, and 1
        timeouts == 0
        recoveries == 1
        retransmits == 2
        +0.1 < ack 18
        > seq 19..25
        cwnd == 7
        ssthresh == 7
        ",
    );
}

#[test]
fn losses_of_data_sent_in_a_recovery_reduce_once_more() {
    // 10 left after the loss of 0 was detected. 10 is lost and retransmitted before 0 arrives,
    // since the first copy of 0 was lost too. The copy of 10 then proves nothing about whether the
    // second reduction was needless (Linux).
    play(
        &linux(),
        "
        > seq 0..10
        +0.1 < ack 0 sack 1..4
        > seq 0 again
        < ack 0 sack 1..10
        > seq 10..16
        recoveries == 1
        ssthresh == 7
        +0.1 < ack 0 sack 1..10 11..14
        > seq 0 again
        > seq 10 again
        > seq 16..19
        < ack 10 sack 11..14
        > seq 19
        recoveries == 2
        ssthresh == 4
        +0.1 < ack 20
        > seq 20..25                  # cwnd was full: seven more delivered add one
        undos == 0
        ssthresh == 4
        ",
    );
}

#[test]
fn after_one_sack_and_a_quarter_of_the_least_rtt_a_segment_is_lost() {
    // Fewer than three are SACKed, so the reordering window is min_rtt/4 = 25 ms, and the timer
    // adds 2 ms.
    play_transfer(
        &linux(),
        4000,
        "
        > seq 0..4
        +0.1 < ack 1
        < ack 1 sack 3..4
        > nothing
        @0.127 timer
        > seq 1 again                 # PRR: one for one
        recoveries == 1
        +0.1 < ack 2 sack 3..4
        > seq 2 again
        +0.1 < ack 4
        complete == 1
        timeouts == 0
        ",
    );
}

#[test]
fn a_segment_within_the_reordering_window_is_not_lost() {
    play_transfer(
        &unprobing(),
        4000,
        "
        > seq 0..4
        +0.1 < ack 1
        < ack 1 sack 3..4
        @0.120 < ack 4 echo 0
        complete == 1
        retransmits == 0
        ",
    );
}

#[test]
fn after_reordering_three_sacks_are_not_enough() {
    // 1 arrives after 2: reordering is detected. Now 4 waits for its 25 ms, though 5 to 9 are
    // SACKed.
    play(
        &room(10, unprobing()),
        "
        > seq 0..10
        +0.1 < ack 1
        > seq 10
        < ack 1 sack 2..3
        < ack 4
        > seq 11..14
        < ack 4 sack 5..10
        > nothing
        recoveries == 0
        @0.127 timer
        > seq 4 again
        recoveries == 1
        ",
    );
}

#[test]
fn a_duplicate_widens_the_window_of_the_next_delivery() {
    // 1 arrives after 2, so reordering is detected. 3 and 4 are retransmitted too early: 5 is
    // SACKed, and they had min_rtt/4 = 25 ms. The DSACKs deliver nothing new. With the next
    // delivery the window is min_rtt/2.
    play(
        &room(40, unprobing()),
        "
        > seq 0..10
        +0.1 < ack 1
        > seq 10..12
        < ack 1 sack 2..3
        > seq 12
        < ack 3
        > seq 13..15
        < ack 3 sack 5..6
        > seq 15
        +0.027 timer
        > seq 3 again
        +0.01 < ack 6 echo 0
        > seq 16..20
        +0.09 < ack 6 sack 3..4       # the copy of 3
        < ack 16
        > seq 20..40
        +0.01 < ack 16 sack 18..19
        > seq 40
        +0.052 timer                  # 50 ms and 2
        > seq 16 again
        ",
    );
}

#[test]
fn a_timeout_does_not_mark_recently_sent_segments_as_lost() {
    // The window opens 50 ms before the timer expires. That is less than the RTT, so 3 counts as
    // still in flight.
    let params = room(2, unprobing()).with(|p| p.growth.initial_window = 2);
    play(
        &params,
        "
        > seq 0..2
        +0.1 < ack 1
        > seq 2
        @0.35 < ack 1 win 60000
        > seq 3
        @0.4 timer
        > seq 1 again
        inflight == 2
        cwnd == 2                     # what is in flight, and one
        ",
    );
}

#[test]
fn a_lost_tail_is_found_by_a_probe_after_two_round_trips() {
    // tcp_tlp: ten segments, the last three are lost. 2 · 100 + 2 ms after the last ACK the last
    // segment leaves again; its SACK shows the other two losses.
    play_transfer(
        &linux(),
        10_000,
        "
        > seq 0..10
        +0.1 < ack 7
        @0.302 timer
        > seq 9 again
        probes == 1
        cwnd == 17
        @0.402 < ack 7 sack 9..10     # sent 302 ms after 7 and 8: no need to wait for these
        > seq 7 again                 # PRR: one for one
        recoveries == 1
        @0.502 < ack 8 sack 9..10
        > seq 8 again
        @0.602 < ack 10
        complete == 1
        timeouts == 0
        ",
    );
}

#[test]
fn a_probe_sends_new_data_if_there_is_any_even_beyond_the_window() {
    play(
        &linux(),
        "
        > seq 0..10
        +0.1 < ack 2
        > seq 10..14
        cwnd == 12
        @0.3 timer                    # 2 left at 0: its 300 ms end before two round trips
        > seq 14
        inflight == 13
        retransmits == 0
        @0.6 timer                    # the timer restarted with the probe
        > seq 2 again
        timeouts == 1
        ",
    );
}

#[test]
fn a_reduction_for_marks_ends_the_outstanding_probe() {
    // The first probe is not answered yet when marks reduce cwnd. Another probe is sent all the
    // same, when the timer of the first segment would expire. That timer restarts.
    let params = linux().with(|p| p.ecn = true);
    play(
        &params,
        "
        > seq 0..10
        +0.1 < ack 1
        > seq 10..12
        @0.3 timer
        > seq 12
        probes == 1
        +0.01 < ack 2 ece
        > seq 13 cwr
        @0.48625 timer
        > seq 14
        probes == 2
        timeouts == 0
        ",
    );
}

#[test]
fn the_probe_of_a_single_segment_waits_for_the_delayed_ack_too() {
    // 2 · 100 + 200 ms is beyond the timer's 300, so the probe replaces the timer.
    play_transfer(
        &linux(),
        2000,
        "
        > seq 0..2
        +0.1 < ack 1
        rto == 0.3
        @0.4 timer
        > seq 1 again
        probes == 1
        timeouts == 0
        @0.7 timer
        > seq 1 again
        timeouts == 1
        ",
    );
}

#[test]
fn a_probe_reported_as_a_duplicate_costs_nothing() {
    // The ACK was late and the tail was not lost: the ACK has a DSACK of the probe.
    play(
        &room(4, linux().with(|p| p.growth.initial_window = 4)),
        "
        > seq 0..4
        +0.1 < ack 2
        > seq 4..6
        @0.3 timer
        > seq 5 again
        cwnd == 6
        @0.31 < ack 6 echo 0.1
        > seq 6..10
        @0.4 < ack 6 sack 5..6        # the copy
        @0.42 < ack 10 echo 0.31
        > seq 10..14
        ssthresh == none
        retransmits == 1
        ",
    );
}

#[test]
fn a_probe_that_repaired_a_loss_halves_the_window() {
    // The same case without a DSACK: the original was lost.
    play(
        &room(4, linux().with(|p| p.growth.initial_window = 4)),
        "
        > seq 0..4
        +0.1 < ack 2
        > seq 4..6
        @0.3 timer
        > seq 5 again
        @0.4 < ack 6 echo 0.1
        > seq 6..10
        @0.5 < ack 10
        ssthresh == 7                 # 0.7 · 10
        recoveries == 0
        > seq 10..14
        ",
    );
}

#[test]
fn a_retransmission_of_the_first_segment_restarts_the_whole_timer() {
    // 1 and its copy are lost, which is detected at 301 ms. Samples of 100, 101, 201 and 100 ms
    // make the RTO 111.142 ms, srtt in whole µs, plus 214.125 ms, the largest variation among them.
    // It counts from the second copy.
    play(
        &linux(),
        "
        > seq 0..10
        +0.1 < ack 1
        > seq 10..12
        +0.001 < ack 1 sack 2..5
        > seq 1 again
        +0.1 < ack 1 sack 2..12
        > seq 12..18
        +0.1 < ack 1 sack 2..13
        > seq 1 again
        > seq 18
        @0.626267 timer
        > seq 1 again
        timeouts == 1
        ",
    );
}

#[test]
fn sacks_of_data_sent_before_the_retransmission_restart_the_timer() {
    // A sample of 150 ms: srtt 106.25 ms plus 200 ms, from then on. 4 left before the copy of 0.
    play(
        &linux(),
        "
        > seq 0..10
        +0.1 < ack 0 sack 1..4
        > seq 0 again
        +0.05 < ack 0 sack 1..5
        > seq 10
        @0.45625 timer
        > seq 0 again
        timeouts == 1
        ",
    );
}

#[test]
fn an_ack_that_advances_and_sacks_uses_the_rtt_of_the_acknowledged_data() {
    // As recorded in a guest with Linux 6.12: 2 and 3 left at 100 ms, 4 and 5 30 ms later, which is
    // more than min_rtt/4. Segment 3 is lost, and 2 is acknowledged with the SACK of 4. By 4's RTT
    // 3 would be lost at once. By 2's RTT it has 25 ms, and the timer adds 2 ms.
    play(
        &linux().with(|p| p.growth.initial_window = 2),
        "
        > seq 0..2
        @0.1 < ack 1
        > seq 2..4
        @0.13 < ack 2
        > seq 4..6
        @0.23 < ack 3 sack 4..5
        > seq 6..10
        recoveries == 0
        @0.257 timer
        > seq 3 again
        recoveries == 1
        ",
    );
}

#[test]
fn only_the_first_segment_of_a_recovery_may_exceed_its_window() {
    // The second recovery begins with 19, since all lost segments were retransmitted. When 16 is
    // lost too, it waits until there is room (RFC 6937).
    play(
        &linux(),
        "
        > seq 0..10
        +0.1 < ack 0 sack 1..4
        > seq 0 again
        < ack 0 sack 1..10
        > seq 10..16
        +0.1 < ack 0 sack 1..10 11..14
        > seq 0 again
        > seq 10 again
        > seq 16..19
        < ack 10 sack 11..14
        > seq 19
        recoveries == 2
        +0.05 < ack 10 sack 11..16
        > seq 20
        +0.05 < ack 16
        > seq 21
        < ack 16 sack 17..18
        inflight == 4
        cwnd == 4
        > nothing
        < ack 16 sack 17..19
        > seq 16 again
        ",
    );
}
