//! Vegas through the sender: slow start up to the first sign of a queue, then one segment a round
//! trip, or none.

use crate::player::play;
use crate::profiles::{counting, linux, ns2, room};
use tcp::{CongestionKind, TcpParams};

fn vegas(params: TcpParams) -> TcpParams {
    room(100, params).with(|p| {
        p.congestion = CongestionKind::Vegas;
        p.growth.initial_window = 4;
    })
}

#[test]
fn slow_start_ends_at_the_path_s_capacity_and_avoidance_keeps_alpha_to_beta_queued() {
    play(
        &vegas(counting()).with(|p| p.growth.initial_window = 6),
        "
        > seq 0..6
        +0.1 < ack 2                # base RTT 100 ms; the first round ends after segment 6
        > seq 6..10
        < ack 4
        > seq 10..14
        < ack 6
        > seq 14..18
        cwnd == 12
        +0.1 < ack 8                # still 100 ms: slow start continues; the next round ends after segment 18
        > seq 18..22
        < ack 12
        > seq 22..30
        < ack 16
        > seq 30..38
        < ack 18
        > seq 38..42
        cwnd == 24
        +0.125 < ack 20             # the first of 125 ms; the least of the round is 100 ms. Next after 42
        > seq 42..46
        < ack 28
        > seq 46..62
        < ack 36
        > seq 62..78
        < ack 42
        > seq 78..90
        cwnd == 48
        ssthresh == none
        +0.125 < ack 44             # 48 · 25/100 = 12 queued, more than gamma: the BDP, 38.4, rounded down, and one
        cwnd == 39
        ssthresh == 39
        < ack 60
        > seq 90..99
        < ack 80
        > seq 99..119
        < ack 90
        > seq 119..129
        cwnd == 39
        +0.12 < ack 92              # 120 ms: 39 · 20/100 = 7.8 queued, more than beta
        > seq 129
        cwnd == 38
        ssthresh == 38
        ",
    );
}

#[test]
fn with_fewer_than_three_samples_a_round_it_grows_like_reno() {
    // One ACK acknowledges a whole round: one sample. An acknowledged window grows cwnd by one
    // segment.
    let params = vegas(counting()).with(|p| p.growth.initial_ssthresh = Some(2));
    play(
        &params.with(|p| p.growth.initial_window = 2),
        "
        > seq 0..2
        +0.1 < ack 2
        > seq 2..5
        +0.3 < ack 5                # 300 ms for 100: twice the window would be queued
        > seq 5..9
        cwnd == 4
        ",
    );
}

#[test]
fn without_timestamps_one_timed_segment_per_round_is_enough() {
    // ns-2's Vegas: alpha 1, beta 3, growth every other round.
    play(
        &vegas(ns2().with(|p| {
            p.growth.vegas_alpha = 1;
            p.growth.vegas_beta = 3;
        })),
        "
        > seq 0..4
        +0.1 < ack 1                # times segment 0: 100 ms
        > seq 4..6
        < ack 2
        > seq 6..8
        < ack 3
        > seq 8..10
        < ack 4
        > seq 10..12
        cwnd == 8
        +0.1 < ack 5                # times segment 4: 100 ms, nothing queued; the next round stands still
        > seq 12
        < ack 6
        > seq 13
        < ack 12
        > seq 14..20
        cwnd == 8
        +0.1 < ack 13               # times segment 12; the next one grows
        > seq 20..22
        < ack 14
        > seq 22..24
        cwnd == 10
        ",
    );
}

#[test]
fn the_ack_of_a_retransmission_measures_the_rtt_by_its_echo_in_whole_milliseconds() {
    // tcp_ack_update_rtt passes tcp_rtt_tsopt_us to pkts_acked. The path takes 3.9 ms. The
    // retransmission leaves at 4.05 ms and its ACK arrives at 7.95: 7 - 4 = 3 ms, which is the base
    // RTT from now on. At a cwnd of ten 10 · 0.9/3 = 2.99 segments seem to be queued, the number
    // that Vegas wants, so it never grows.
    play(
        &vegas(linux()).with(|p| p.growth.initial_window = 20),
        "
        > seq 0..20
        +0.00405 < ack 0 sack 1..4
        > seq 0 again
        > seq 20
        < ack 0 sack 1..20
        > seq 21..29
        cwnd == 10
        +0.0039 < ack 20
        > seq 29
        cwnd == 10
        +0.00001 < ack 22
        > seq 30..32
        < ack 24
        > seq 32..34
        < ack 29
        > seq 34..39
        +0.0039 < ack 30              # the round ends, with four samples
        > seq 39
        cwnd == 10
        < ack 32
        > seq 40..42
        < ack 34
        > seq 42..44
        < ack 39
        > seq 44..49
        +0.0039 < ack 40
        > seq 49
        cwnd == 10
        ",
    );
}
