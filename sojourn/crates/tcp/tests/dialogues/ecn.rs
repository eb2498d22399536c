//! ECN at the sender (RFC 3168 §6.1): one reduction a window, CWR on the next new segment.

use crate::player::{play, play_receiver};
use crate::profiles::{linux, ns2, reno};
use tcp::{CongestionKind, TcpParams};

fn marked() -> TcpParams {
    linux().with(|p| p.ecn = true)
}

#[test]
fn an_echo_reduces_the_window_once_until_cwr_has_arrived() {
    // PRR reduces 10 to 7 over the round trip: seven segments for ten.
    play(
        &marked(),
        "
        > seq 0..10 ect
        +0.1 < ack 1 ece
        > seq 10 cwr ect              # ceil(0.7 · 1)
        ssthresh == 7
        reductions == 1
        < ack 2 ece
        > seq 11                      # ceil(0.7 · 2)
        < ack 3 ece
        > seq 12
        < ack 4 ece
        > nothing
        < ack 5 ece
        > seq 13
        < ack 6 ece
        > seq 14
        < ack 7 ece
        > nothing
        inflight == 8
        < ack 8 ece                   # seven in flight, as ssthresh: now one leaves for each delivered
        > nothing
        < ack 9 ece
        > seq 15
        < ack 10 ece
        > seq 16
        > nothing                     # CWR left after these ten, so the echo belongs to the old reduction
        inflight == 7
        +0.1 < ack 11                 # CWR has arrived
        > seq 17
        cwnd == 7
        reductions == 1
        < ack 12 ece                  # so this is a new signal
        > seq 18 cwr
        ssthresh == 4                 # 0.7 · 7.1
        reductions == 2
        ",
    );
}

#[test]
fn retransmissions_are_not_ecn_capable_and_a_loss_also_sets_cwr() {
    // RFC 3168 §6.1.2: CWR for every kind of reduction, on the first new segment.
    play(
        &marked(),
        "
        > seq 0..10 ect
        +0.1 < ack 0 sack 1..4
        > seq 0 again not-ect
        < ack 0 sack 1..5
        > seq 10 cwr ect
        < ack 0 sack 1..6
        > seq 11 ect
        ",
    );
}

#[test]
fn an_echo_in_recovery_is_ignored_and_one_at_its_end_reduces_the_window() {
    // tcp_try_to_open checks no window: the ACK that ends the recovery reduces again, though the
    // segment with CWR has not arrived.
    play(
        &marked(),
        "
        > seq 0..10
        +0.1 < ack 0 sack 1..4 ece
        > seq 0 again
        ssthresh == 7
        < ack 0 sack 1..10 ece
        > seq 10 cwr
        > seq 11..16
        reductions == 0
        +0.1 < ack 10 ece             # 10 with its CWR has not arrived yet
        > seq 16 cwr                  # PRR: one of one
        ssthresh == 4                 # 0.7 · 7
        reductions == 1
        < ack 11 ece                  # up to 16 the echo belongs to this reduction
        > seq 17
        reductions == 1
        ",
    );
}

#[test]
fn ns2_counts_an_echo_once_what_was_outstanding_is_acknowledged() {
    // recover_ is the highest segment sent when the recovery began.
    let params = ns2().with(|p| {
        p.ecn = true;
        p.growth.initial_window = 10;
    });
    play(
        &params,
        "
        > seq 0..10
        +0.1 < ack 0 times 3
        > seq 10..12
        > seq 0 again
        +0.1 < ack 12 ece             # all of it
        > seq 12 cwr
        > seq 13..17
        reductions == 0
        +0.1 < ack 13 ece
        reductions == 1
        ",
    );
}

#[test]
fn after_an_undo_the_next_echo_reduces_the_window() {
    // The timeout was needless. So none of the ten segments outstanding at that time has reduced
    // cwnd.
    play(
        &marked().with(|p| p.recovery.tlp = false),
        "
        > seq 0..10
        @1 timer
        > seq 0 again
        +0.01 < ack 1 echo 0
        > seq 10..12
        cwnd == 11
        undos == 1
        +0.01 < ack 2 ece
        reductions == 1
        ssthresh == 7                 # 0.7 · 11
        > seq 12 cwr
        ",
    );
    // In this recovery the original arrived late.
    play(
        &marked(),
        "
        > seq 0..10
        +0.1 < ack 0 sack 1..4
        > seq 0 again
        +0.01 < ack 5 echo 0
        > seq 10..17
        undos == 1
        +0.01 < ack 6 ece
        reductions == 1
        ssthresh == 8                 # 0.7 · 12
        > seq 17 cwr
        ",
    );
}

#[test]
fn a_loss_after_an_echo_in_the_same_window_is_retransmitted_without_a_reduction() {
    play(
        &marked(),
        "
        > seq 0..10
        +0.1 < ack 1 ece
        > seq 10 cwr
        ssthresh == 7
        < ack 1 sack 2..5 ece
        > seq 1 again
        ssthresh == 7
        reductions == 1
        recoveries == 1
        ",
    );
}

#[test]
fn without_prr_the_window_falls_at_once() {
    let params = reno(false).with(|p| p.ecn = true);
    play(
        &params,
        "
        > seq 0..10
        +0.1 < ack 1 ece
        cwnd == 5
        > nothing
        < ack 6 ece
        > seq 10 cwr
        cwnd == 5
        ",
    );
}

#[test]
fn ns2_grows_on_after_the_reduction() {
    // An ACK without an echo belongs to the window after the mark: it adds 1/cwnd.
    let params = ns2().with(|p| {
        p.ecn = true;
        p.growth.initial_window = 10;
    });
    play(
        &params,
        "
        > seq 0..10
        +0.1 < ack 1 ece
        cwnd == 5
        < ack 5 ece
        > nothing
        cwnd == 5
        < ack 6                       # 5 + 1/5
        > seq 10 cwr
        < ack 7
        > seq 11
        < ack 8
        > seq 12
        < ack 9
        > seq 13
        < ack 10
        > seq 14
        cwnd == 5
        < ack 11
        > seq 15..17
        cwnd == 6
        reductions == 1
        ",
    );
}

#[test]
fn a_connection_without_ecn_ignores_echoes() {
    play(
        &linux(),
        "
        > seq 0..10 not-ect
        +0.1 < ack 1 ece
        > seq 10..12 not-ect
        cwnd == 11
        ssthresh == none
        ",
    );
}

#[test]
fn bbr_announces_a_reduction_and_does_not_reduce() {
    // tcp_enter_cwr as for any other control; but BBR sets cwnd by itself and ignores marks.
    for congestion in [CongestionKind::Bbr, CongestionKind::Bbr3] {
        let params = marked().with(|p| p.congestion = congestion);
        play_receiver(
            &params,
            "
            < seq 0 ce
            > ack 1 ece
            < seq 1
            > ack 2 ece
            < seq 2 cwr
            > ack 3
            ",
        );
        play(
            &params,
            "
            > seq 0..10 ect
            +0.1 < ack 1 ece
            reductions == 1
            cwnd == 11
            > seq 10 cwr ect
            ",
        );
    }
}
