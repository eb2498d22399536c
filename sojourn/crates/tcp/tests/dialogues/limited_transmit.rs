//! Limited transmit (RFC 3042): the first two duplicates allow new segments, so that small windows
//! detect their losses.

use crate::player::play;
use crate::profiles::reno;

#[test]
fn a_window_of_two_finds_its_loss_without_the_timer() {
    let params = reno(false).with(|p| p.growth.initial_window = 2);
    play(
        &params,
        "
        > seq 0..2                    # 0 is lost
        +0.1 < ack 0
        > seq 2
        +0.1 < ack 0
        > seq 3
        +0.1 < ack 0
        > seq 0 again
        > seq 4                       # three have left the network
        cwnd == 2                     # ssthresh is never below two
        timeouts == 0
        ",
    );
}

#[test]
fn with_sack_the_data_in_flight_permit_the_same_segments() {
    let params = reno(true).with(|p| p.growth.initial_window = 2);
    play(
        &params,
        "
        > seq 0..2
        +0.1 < ack 0 sack 1..2
        > seq 2
        +0.1 < ack 0 sack 1..3
        > seq 3
        +0.1 < ack 0 sack 1..4
        > seq 0 again
        > seq 4
        ",
    );
}

#[test]
fn without_limited_transmit_nothing_is_sent_until_the_timer() {
    for sack in [false, true] {
        let params = reno(sack).with(|p| {
            p.growth.initial_window = 3;
            p.recovery.limited_transmit = false;
        });
        play(
            &params,
            &"
            > seq 0..3
            +0.1 < ack 0 SACK1
            +0.1 < ack 0 SACK2
            > nothing
            @1 timer
            > seq 0 again
            timeouts == 1
            "
            .replace("SACK1", if sack { "sack 1..2" } else { "" })
            .replace("SACK2", if sack { "sack 1..3" } else { "" }),
        );
    }
}

#[test]
fn a_cumulative_ack_ends_the_allowance_of_extra_segments() {
    play(
        &reno(false),
        "
        > seq 0..10
        +0.1 < ack 0 times 2
        > seq 10..12                  # 12 outstanding, window 10
        < ack 3                       # 1 and 2 arrived before 0: one of the three segments is new
        cwnd == 11
        > seq 12..14
        inflight == 11
        ",
    );
}
