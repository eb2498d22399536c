//! LEDBAT at both ends: the receiver reports the one-way delay, and the window follows it.

use crate::player::{play, play_receiver};
use crate::profiles::{counting, linux, room};
use tcp::{CongestionKind, TcpParams};

fn ledbat() -> TcpParams {
    room(100, counting()).with(|p| {
        p.congestion = CongestionKind::Ledbat;
        p.growth.initial_window = 2;
    })
}

#[test]
fn the_receiver_reports_the_one_way_delay_of_the_newest_segment() {
    let patient = ledbat().with(|p| {
        p.acks.quick_acks = 0;
        p.timestamps = false;
    });
    play_receiver(
        &patient,
        "
        @0.050 < seq 0 stamp 0.010
        > nothing
        @0.060 < seq 1 stamp 0.011
        > ack 2 oneway 0.049 echo none     # of segment 1, not of 0
        @0.070 < seq 2 stamp 0.030
        @0.110 timer
        > ack 3 oneway 0.040               # it excludes the wait for the delayed ACK
        @0.130 < seq 4 stamp 0.100         # beyond a gap
        > ack 3 sack 4..5 oneway 0.030
        ",
    );
}

#[test]
fn other_receivers_do_not_report_it() {
    play_receiver(
        &linux(),
        "
        @0.050 < seq 0 stamp 0.010
        > ack 1 echo 0.010
        ",
    );
}

#[test]
fn the_window_opens_by_a_segment_a_round_trip_and_closes_above_the_target() {
    play(
        &ledbat(),
        "
        > seq 0..2
        +0.1 < ack 2 oneway 0.04           # off_target 1: 2 + 2/2
        > seq 2..5
        cwnd == 3
        +0.1 < ack 5 oneway 0.04
        > seq 5..9
        cwnd == 4
        +0.1 < ack 9 oneway 0.14           # 100 ms more: but the least of the last four is still 40 ms
        > seq 9..14
        cwnd == 5
        +0.1 < ack 11 oneway 0.14
        > seq 14..16
        +0.1 < ack 13 oneway 0.14          # 5.4 + 2/5.4 = 5.77
        > seq 16..18
        +0.1 < ack 14 oneway 0.14          # four samples at the target: no change
        > seq 18
        cwnd == 5
        +0.1 < ack 16 oneway 0.34
        > seq 19..21
        +0.1 < ack 18 oneway 0.34
        > seq 21..23
        +0.1 < ack 19 oneway 0.34
        > seq 23
        +0.1 < ack 21 oneway 0.34          # 300 ms queued, off_target -2: 5.77 - 2 · 2/5.77
        > seq 24..26
        cwnd == 5
        +0.1 < ack 22 oneway 0.34          # - 2/5.08
        > nothing
        cwnd == 4
        ",
    );
}

#[test]
fn a_loss_halves_once_a_round_trip() {
    play(
        &ledbat().with(|p| p.growth.initial_window = 10),
        "
        > seq 0..10
        +0.1 < ack 0 sack 1..2 oneway 0.04
        > seq 10
        < ack 0 sack 1..3 oneway 0.04
        > seq 11
        < ack 0 sack 1..4 oneway 0.04
        > seq 0 again
        ssthresh == 5
        < ack 0 sack 1..4 5..6 oneway 0.04
        < ack 0 sack 1..4 5..7 oneway 0.04
        > seq 12                           # PRR: one for two delivered
        < ack 0 sack 1..4 5..8 oneway 0.04 # 4 is lost as well: the same window
        < ack 0 sack 1..4 5..9 oneway 0.04 # five in flight, the most allowed
        < ack 0 sack 1..4 5..10 oneway 0.04
        > seq 4 again
        ssthresh == 5
        recoveries == 1
        ",
    );
}
