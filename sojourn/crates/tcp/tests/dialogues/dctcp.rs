//! DCTCP (RFC 8257): the receiver's reports of marks, and the sender's reaction.

use crate::player::{play, play_receiver};
use crate::profiles::linux;
use tcp::{CongestionKind, TcpParams};

fn dctcp() -> TcpParams {
    linux().with(|p| {
        p.ecn = true;
        p.congestion = CongestionKind::Dctcp;
    })
}

/// Every second segment is acknowledged.
fn every_second() -> TcpParams {
    dctcp().with(|p| {
        p.acks.quick_acks = 0;
        p.buffers.receive_buffer_max = p.buffers.receive_buffer;
    })
}

#[test]
fn at_the_first_and_after_the_last_mark_the_delayed_ack_leaves_first() {
    play_receiver(
        &every_second(),
        "
        < seq 0
        > nothing
        < seq 1
        > ack 2
        < seq 2 ce
        > ack 3 ece
        < seq 3 ce
        > nothing                     # delayed
        < seq 4
        > ack 4 ece                   # the delayed ACK, with the old state
        @0 timer
        > ack 5
        < seq 5
        > nothing
        < seq 6 ce
        > ack 6
        @0 timer
        > ack 7 ece
        ",
    );
}

#[test]
fn a_cwr_is_acknowledged_at_once_and_changes_no_state() {
    play_receiver(
        &every_second(),
        "
        < seq 0 ce
        > ack 1 ece
        < seq 1 ce cwr
        > ack 2 ece
        < seq 2 cwr
        > ack 3
        < seq 3 cwr
        > ack 4
        ",
    );
}

#[test]
fn a_mark_beyond_a_gap_is_reported_with_its_sack() {
    play_receiver(
        &every_second(),
        "
        < seq 0
        > nothing
        < seq 2 ce
        > ack 1                       # the delayed ACK
        @0 timer
        > ack 1 sack 2..3 ece
        < seq 1
        > ack 3
        ",
    );
}

#[test]
fn the_first_mark_halves_and_later_ones_reduce_by_their_share() {
    // alpha is 1024 - 64 + 64: the first ACK's one segment was marked. 10 - 10/2 = 5.
    play(
        &dctcp(),
        "
        > seq 0..10 ect
        +0.1 < ack 1 ece
        ssthresh == 5
        > seq 10 cwr ect
        reductions == 1
        < ack 10                      # nine of nine unmarked: 960
        > seq 11..15
        +0.1 < ack 11                 # 10 with its CWR has arrived, unmarked: 900
        cwnd == 5
        > seq 15
        < ack 12 ece                  # 5 - floor(5 · 900/2048)
        ssthresh == 3
        > seq 16 cwr
        reductions == 2
        ",
    );
}

#[test]
fn retransmissions_are_ecn_capable_and_a_loss_halves() {
    play(
        &dctcp(),
        "
        > seq 0..10 ect
        +0.1 < ack 0 sack 1..4
        > seq 0 again ect
        > seq 10 cwr ect
        ssthresh == 5
        ",
    );
}
