//! Needless timeouts and retransmissions: F-RTO (RFC 5682), Eifel (RFC 3522), DSACK (RFC 2883, RFC
//! 3708), and the restored window. Re-expresses the checks of packetdrill's scripts for Linux
//! (frto_ack_on_sack, frto_spurious, undo by timestamp and by DSACK).

use crate::player::{play, play_transfer};
use crate::profiles::{self, believing, room};
use tcp::TcpParams;

/// Linux without the tail loss probe, which would precede the timer.
fn linux() -> TcpParams {
    profiles::linux().with(|p| p.recovery.tlp = false)
}

/// Linux without timestamps: F-RTO and DSACK are the only evidence.
fn stampless() -> TcpParams {
    linux().with(|p| p.timestamps = false)
}

#[test]
fn an_echo_from_before_the_retransmission_undoes_a_timeout() {
    // Eifel. The path stalls for a second. The originals arrive after all, so the ACK echoes the
    // stamp of 0's original, 0.
    play(
        &linux(),
        "
        > seq 0..10
        @1 timer
        > seq 0 again
        cwnd == 1
        ssthresh == 7
        rto == 2
        +0.01 < ack 1 echo 0          # 10 and one in slow start: eleven; nine are in flight
        > seq 10..12
        cwnd == 11
        ssthresh == none
        undos == 1
        rto == 3.03                   # srtt 1.01 s and four times half of it
        retransmits == 1
        ",
    );
}

#[test]
fn an_echo_of_the_retransmission_proves_the_timeout() {
    play(
        &linux(),
        "
        > seq 0..10
        @1 timer
        > seq 0 again
        +0.1 < ack 1 echo 1
        > seq 10..12                  # F-RTO's step 2b
        cwnd == 2
        ssthresh == 7
        undos == 0
        +0.1 < ack 1 sack 10..11      # step 3a: the new data has arrived, 1 has not
        > seq 1 again
        undos == 0
        < ack 1 sack 10..12
        > seq 2 again
        +0.1 < ack 2 sack 10..12 echo 1.2
        > seq 3..5 again
        ",
    );
}

#[test]
fn without_timestamps_new_data_reveal_a_spurious_timeout() {
    // frto_spurious: the first ACK allows two new segments. The second acknowledges an original, so
    // nothing was lost.
    play(
        &stampless(),
        "
        > seq 0..10
        @1 timer
        > seq 0 again
        ssthresh == 7
        +0.1 < ack 1
        > seq 10..12
        cwnd == 2
        timeouts == 1
        undos == 0
        < ack 2                       # 1 was sent only once
        > seq 12                      # 2..12 are in flight
        cwnd == 11                    # 10 as before, and one in slow start
        ssthresh == none
        undos == 1
        retransmits == 1
        ",
    );
}

#[test]
fn an_ack_beyond_the_retransmissions_reveals_a_spurious_timeout_at_once() {
    // All ACKs were lost: the first ACK after the timeout covers segments that were sent once.
    play(
        &stampless(),
        "
        > seq 0..10
        @1 timer
        > seq 0 again
        +0.1 < ack 10
        > seq 10..30                  # 10 as before, and ten in slow start
        cwnd == 20
        ssthresh == none
        undos == 1
        ",
    );
}

#[test]
fn a_sack_of_an_original_after_a_timeout_undoes_it() {
    // frto_ack_on_sack: 0 is really lost, but 3 and 4 arrive late, so not all segments were lost.
    // Then the loss of 0 is detected as usual.
    play(
        &stampless(),
        "
        > seq 0..10
        @1 timer
        > seq 0 again
        +0.1 < ack 0 sack 3..4
        > nothing                     # one of ten is SACKed, and 0 is in flight twice
        undos == 1
        cwnd == 10
        inflight == 10
        +0.01 < ack 3 sack 3..4       # with the original of 0 its copy no longer counts
        > seq 10..17                  # 4..10 are in flight; 0..3 have grown cwnd by 3
        cwnd == 13
        ",
    );
}

#[test]
fn without_new_data_f_rto_can_not_decide() {
    // RFC 5682 §2.1 step 2b: the end of a transfer. The usual recovery applies.
    play_transfer(
        &stampless(),
        10_000,
        "
        > seq 0..10
        @1 timer
        > seq 0 again
        +0.1 < ack 1
        > seq 1..3 again
        +0.1 < ack 3
        > seq 3..7 again
        undos == 0
        ",
    );
}

#[test]
fn a_timeout_within_a_recovery_is_not_probed() {
    // RFC 5682 §2.1 step 1: segments below a SACK are really lost.
    play(
        &room(20, stampless()),
        "
        > seq 0..10
        +0.1 < ack 0 sack 1..4
        > seq 0 again
        < ack 0 sack 1..8
        > seq 10..14
        @0.4 timer                    # the SACKs were a sample: 100 + 200 ms after the copy
        > seq 0 again
        +0.1 < ack 8
        > seq 8..10 again             # the conventional slow start
        undos == 0
        ",
    );
}

#[test]
fn a_needless_fast_retransmit_is_undone_by_the_timestamp() {
    // Four segments overtake segment 0, which is sent again. Its ACK echoes timestamp 0, which is
    // older than that of the copy.
    play(
        &linux(),
        "
        > seq 0..10
        +0.1 < ack 0 sack 1..4
        > seq 0 again
        ssthresh == 7
        +0.01 < ack 5 echo 0
        > seq 10..17                  # five are in flight
        undos == 1
        ssthresh == none
        cwnd == 12                    # 10, and one each for 0 and 4; 1..4 counted when SACKed
        retransmits == 1
        ",
    );
}

#[test]
fn segments_that_an_undo_unmarked_are_not_marked_lost_again() {
    // Segments overtake 0..4 by more than the reordering window. The undo clears their loss: they
    // are in flight, and later arrivals prove nothing about them.
    play(
        &linux(),
        "
        > seq 0..10
        +0.1 < ack 0 sack 4..5
        > seq 10
        @0.127 timer
        > seq 0 again
        inflight == 7                 # 1..4 are lost
        +0.01 < ack 1 sack 4..5 echo 0
        > seq 11..13                  # 10, and slow start by 0
        undos == 1
        inflight == 11
        ssthresh == none
        < ack 1 sack 4..10
        > seq 13..23                  # more than three overtook one, so SACKs grow cwnd too
        cwnd == 16
        +0.2 < ack 1 sack 4..20
        > seq 23..43
        < ack 20 echo 0
        > seq 43..49
        retransmits == 1
        recoveries == 1
        ",
    );
}

#[test]
fn lost_segments_that_an_undo_unmarked_wait_for_the_timer() {
    play(
        &room(11, linux()),
        "
        > seq 0..10
        +0.1 < ack 0 sack 4..5
        > seq 10
        @0.127 timer
        > seq 0 again
        +0.01 < ack 1 sack 4..5 echo 0
        > seq 11
        +0.1 < ack 1 sack 4..12
        > nothing
        retransmits == 1
        @0.441625 timer                # 1..4 are really lost
        timeouts == 1
        > seq 1 again
        ",
    );
}

#[test]
fn in_a_reduction_for_marks_an_undo_ends_the_recovery_and_restores_nothing() {
    let params = linux().with(|p| p.ecn = true);
    play(
        &params,
        "
        > seq 0..10
        +0.1 < ack 1 ece
        > seq 10 cwr
        ssthresh == 7
        < ack 1 sack 2..5
        > seq 1 again not-ect
        recoveries == 1
        +0.01 < ack 6 echo 0
        > seq 11..13
        undos == 1
        ssthresh == 7
        ",
    );
}

#[test]
fn duplicates_reported_for_all_copies_undo_a_fast_retransmit() {
    // Without timestamps the receiver's DSACK is the proof, here after the end of the recovery.
    play(
        &stampless(),
        "
        > seq 0..10
        +0.1 < ack 0 sack 1..4
        > seq 0 again
        < ack 0 sack 1..10
        > seq 10..16
        +0.01 < ack 10                # the late original
        > seq 16
        cwnd == 7
        ssthresh == 7
        +0.09 < ack 15 sack 0..1      # the copy
        undos == 1
        ssthresh == none
        cwnd == 16                    # 10, and slow start by five and the copy
        > seq 17..31
        ",
    );
}

#[test]
fn duplicates_that_the_path_makes_are_no_proof() {
    // As above, but two segments that were sent once have arrived twice: more duplicates than
    // retransmissions.
    play(
        &stampless(),
        "
        > seq 0..10
        +0.1 < ack 0 sack 1..4
        > seq 0 again
        < ack 0 sack 1..10
        > seq 10..16
        +0.01 < ack 10
        > seq 16
        +0.09 < ack 15 sack 10..12
        > seq 17..22
        < ack 15 sack 0..1
        undos == 0
        ssthresh == 7
        ",
    );
}

#[test]
fn a_duplicate_for_one_of_two_copies_proves_nothing() {
    play(
        &stampless(),
        "
        > seq 0..10
        +0.1 < ack 0 sack 2..6
        > seq 0..2 again
        > seq 10                      # PRR: as many as arrived, but at most seven in flight
        +0.1 < ack 10 sack 0..1       # 1 was lost
        > seq 11..18
        undos == 0
        cwnd == 8                     # the copy of 0 is delivered, too: seven in a window
        ",
    );
}

#[test]
fn after_an_ecn_echo_an_undo_restores_nothing() {
    let params = linux().with(|p| p.ecn = true);
    play(
        &params,
        "
        > seq 0..10
        +0.1 < ack 0 sack 1..4 ece
        > seq 0 again not-ect
        +0.01 < ack 5 echo 0
        > seq 10 cwr
        > seq 11
        ssthresh == 7
        cwnd == 7
        ",
    );
}

#[test]
fn a_sender_that_does_not_detect_spurious_timeouts_retransmits_everything() {
    // The same stall without any of these mechanisms: nine of ten segments are sent twice in vain.
    play(
        &room(10, believing()),
        "
        > seq 0..10
        @1 timer
        > seq 0 again
        +0.01 < ack 1 echo 0
        > seq 1..3 again
        < ack 2 echo 0
        > seq 3..5 again
        < ack 3 echo 0
        > seq 5..7 again
        < ack 4 echo 0
        > seq 7..9 again
        ssthresh == 7
        ",
    );
}
