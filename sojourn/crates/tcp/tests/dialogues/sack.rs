//! Recovery with SACK (RFC 6675; rack.rs has RFC 8985) and proportional rate reduction (RFC 6937,
//! Linux's variant).

use crate::player::{play, play_transfer};
use crate::profiles::{counting, linux, reno, room};

#[test]
fn prr_sends_a_segment_for_each_that_arrives() {
    // packetdrill's prr-ss-10pkt-lost-1: ten segments, the first is lost. 7 = 0.7 · 10. With ten
    // outstanding, one lost and three SACKed, six are in flight, one less than ssthresh: one
    // segment per SACK.
    play(
        &room(10, linux()),
        "
        > seq 0..10
        +0.1 < ack 0 sack 1..2
        < ack 0 sack 1..3
        < ack 0 sack 1..4 win 60000
        > seq 0 again
        cwnd == 7
        ssthresh == 7
        < ack 0 sack 1..5
        > seq 10
        cwnd == 7
        < ack 0 sack 1..6
        > seq 11
        < ack 0 sack 1..7
        > seq 12
        < ack 0 sack 1..8
        > seq 13
        < ack 0 sack 1..9
        > seq 14
        < ack 0 sack 1..10
        > seq 15
        cwnd == 7
        inflight == 7
        +0.1 < ack 10                 # 0 has arrived
        > seq 16
        cwnd == 7
        recoveries == 1
        ",
    );
}

#[test]
fn prr_above_ssthresh_sends_in_proportion() {
    // 20 in flight at the loss, ssthresh 14: seven segments for ten that arrive, so that the window
    // falls over the round trip, not at its start.
    let params = room(20, linux().with(|p| p.growth.initial_window = 20));
    play(
        &params,
        "
        > seq 0..20
        +0.1 < ack 0 sack 1..2
        < ack 0 sack 1..3
        < ack 0 sack 1..4 win 60000
        > seq 0 again                 # 1 of ceil(0.7 · 1); 16 in flight and this one
        ssthresh == 14
        inflight == 17
        < ack 0 sack 1..5             # ceil(0.7 · 2) - 1
        > seq 20
        < ack 0 sack 1..6             # ceil(0.7 · 3) - 2
        > seq 21
        < ack 0 sack 1..7             # ceil(0.7 · 4) - 3
        > nothing
        < ack 0 sack 1..8             # ceil(0.7 · 5) - 3
        > seq 22
        < ack 0 sack 1..9
        > seq 23
        < ack 0 sack 1..10
        > nothing
        inflight == 15
        ",
    );
}

#[test]
fn prr_below_ssthresh_grows_in_slow_start_without_further_losses() {
    // 0..8 are lost of twenty: after the SACKs of 8..11 nine segments are in flight, five below
    // ssthresh.
    let params = room(20, linux().with(|p| p.growth.initial_window = 20));
    play(
        &params,
        "
        > seq 0..20
        +0.1 < ack 0 sack 8..11
        > seq 0..3 again              # three arrived: one for each, since losses were detected
        cwnd == 12
        < ack 0 sack 8..12
        > seq 3 again
        < ack 0 sack 8..20
        > seq 4..8 again              # eight arrived, four are missing
        inflight == 8
        cwnd == 12
        +0.1 < ack 1                  # 0 has arrived; one more than the five delivered and not replaced
        cwnd == 13
        > seq 20                      # the receive window's end
        < ack 2 win 60000
        > seq 21..27
        cwnd == 13
        < ack 3                       # two for one
        > seq 27..29
        cwnd == 14
        ",
    );
}

#[test]
fn several_holes_are_repaired_in_order_without_needless_retransmissions() {
    play(
        &reno(true),
        "
        > seq 0..10                   # 1, 4 and 5 are lost
        +0.1 < ack 1
        > seq 10..12
        < ack 1 sack 2..3
        > seq 12
        < ack 1 sack 2..4
        > seq 13
        < ack 1 sack 6..7 2..4        # three above 1, but only one above 4 and 5
        > seq 1 again
        cwnd == 5
        inflight == 10                # 13 outstanding less three SACKed
        < ack 1 sack 6..8 2..4
        inflight == 9
        < ack 1 sack 6..9 2..4        # three above 5: 4 and 5 are lost
        inflight == 6                 # 13 less five less two
        < ack 1 sack 6..10 2..4
        > nothing
        < ack 1 sack 6..11 2..4
        > seq 4 again
        < ack 1 sack 6..12 2..4
        > seq 5 again
        +0.1 < ack 1 sack 6..13 2..4
        > seq 14
        < ack 1 sack 6..14 2..4
        > seq 15
        < ack 4 sack 6..14            # 1 has arrived; 4 and 5 are in flight
        > seq 16
        < ack 14
        > seq 17..19
        inflight == 5
        recoveries == 1
        retransmits == 3
        ",
    );
}

#[test]
fn an_ack_that_advances_may_reveal_a_loss_too() {
    // RFC 6675 counts SACKed segments, not ACKs: one ACK suffices.
    play(
        &reno(true),
        "
        > seq 0..10
        +0.1 < ack 2 sack 5..8
        > seq 2..5 again
        inflight == 5
        recoveries == 1
        ",
    );
}

#[test]
fn an_ack_without_new_sacks_is_not_a_duplicate() {
    // RFC 6675 §2: an ACK without news in its SACK blocks is not a duplicate. Such ACKs answer
    // spurious retransmissions.
    play(
        &reno(true),
        "
        > seq 0..10
        +0.1 < ack 4
        > seq 10..18
        < ack 4 times 5
        > nothing
        recoveries == 0
        < ack 4 sack 6..7 times 5
        > seq 18                      # one SACKed, once
        recoveries == 0
        ",
    );
}

#[test]
fn a_lost_tail_is_repaired_by_the_rescue_retransmission() {
    // A transfer of ten segments; 0, 8 and 9 are lost. Nothing above 8 will be SACKed, so RFC
    // 6675's rule 4 retransmits the last segment, and its SACK shows the loss of 8 (rule 3).
    play_transfer(
        &counting(),
        10_000,
        "
        > seq 0..10
        +0.1 < ack 0 sack 1..4
        > seq 0 again
        < ack 0 sack 1..8
        > seq 9 again
        +0.1 < ack 8
        > nothing
        < ack 8 sack 9..10
        > seq 8 again
        +0.1 < ack 10
        complete == 1
        timeouts == 0
        ",
    );
}

#[test]
fn there_is_one_rescue_a_recovery() {
    play_transfer(
        &counting(),
        10_000,
        "
        > seq 0..10                   # 0, 8 and 9 are lost, and their retransmissions
        +0.1 < ack 0 sack 1..4
        > seq 0 again
        < ack 0 sack 1..8
        > seq 9 again
        +0.1 < ack 8
        > nothing
        rto == 0.3                    # 0 was sent again 100 ms ago
        @0.5 timer
        > seq 8 again
        recoveries == 1
        timeouts == 1
        ",
    );
}

#[test]
fn a_hole_below_too_few_sacks_is_retransmitted_if_nothing_else_can_be_sent() {
    // 0 and 7 of ten are lost: two SACKs above 7 don't prove its loss, and no more will come. RFC
    // 6675's rule 3 applies.
    play_transfer(
        &counting(),
        10_000,
        "
        > seq 0..10
        +0.1 < ack 0 sack 1..4
        > seq 0 again
        < ack 0 sack 1..7
        > seq 9 again                 # it may be the tail until SACKs above it arrive
        < ack 0 sack 1..7 8..10
        > seq 7 again
        +0.1 < ack 10
        complete == 1
        timeouts == 0
        ",
    );
}

#[test]
fn new_data_are_sent_before_doubtful_retransmissions() {
    play(
        &counting(),
        "
        > seq 0..10
        +0.1 < ack 0 sack 1..4
        > seq 0 again
        < ack 0 sack 1..7
        > seq 10..13
        ",
    );
}

#[test]
fn a_lost_retransmission_waits_for_the_timer() {
    // RFC 6675 §5.1: there is no RACK here. All other segments arrive, and new data leaves.
    play(
        &counting(),
        "
        > seq 0..10
        +0.1 < ack 1
        > seq 10..12
        rto == 0.3
        < ack 1 sack 2..5
        > seq 1 again
        inflight == 8
        +0.1 < ack 1 sack 2..12
        > seq 12..18
        +0.1 < ack 1 sack 2..18
        > seq 18..24
        timeouts == 0
        @0.4 timer                    # 300 ms after the retransmission
        > seq 1 again
        timeouts == 1
        ",
    );
}

#[test]
fn a_loss_after_a_recovery_begins_another() {
    play(
        &reno(true),
        "
        > seq 0..10
        +0.1 < ack 0 sack 1..4
        > seq 0 again
        ssthresh == 5
        < ack 0 sack 1..10
        > seq 10..14
        +0.1 < ack 10
        > seq 14
        cwnd == 5
        < ack 10 sack 11..14          # 10 is lost: sent after the reduction
        > seq 10 again
        ssthresh == 2
        recoveries == 2
        ",
    );
}
