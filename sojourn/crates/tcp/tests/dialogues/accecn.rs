//! AccECN (RFC 9768): the marks that ACKs report, and the number that a sender infers. The expected
//! behaviour is that of Linux's packetdrill scripts (docs/tcp.md, AccECN). Comments name the
//! scripts without their prefix tcp_accecn_.

use crate::player::{play, play_receiver};
use crate::profiles::linux;
use tcp::{CongestionKind, TcpParams};

fn accecn() -> TcpParams {
    linux().with(|p| {
        p.ecn = true;
        p.accecn = true;
        p.congestion = CongestionKind::Reno;
    })
}

fn every_second() -> TcpParams {
    accecn().with(|p| {
        p.acks.quick_acks = 0;
        p.buffers.receive_buffer_max = p.buffers.receive_buffer;
    })
}

#[test]
fn a_change_of_the_field_is_acknowledged_at_once_with_its_counters() {
    play_receiver(
        &every_second(),
        "
        < seq 0
        > ack 1 ace 5 counters 1 0 1001         # the first ECT(0)
        < seq 1
        > nothing
        < seq 2 ce
        > ack 3 ace 6 counters 1 1000 2001
        < seq 3 ce
        > nothing
        < seq 4
        > ack 5 ace 7 counters 1 2000 3001      # no separate ACK for the delayed one
        < seq 5 ect1
        > ack 6 ace 7 counters 1001 2000 3001
        ",
    );
}

#[test]
fn retransmissions_are_ecn_capable_and_no_cwr_is_sent() {
    play(
        &accecn(),
        "
        > seq 0..10 ect
        +0.1 < ack 1 ace 6 counters 1 1000 1
        ssthresh == 5
        > seq 10 ect
        reductions == 1
        < ack 1 sack 2..5 ace 6 counters 1 1000 3001
        > seq 1 again ect
        ",
    );
}

#[test]
fn an_ack_of_more_than_seven_segments_without_the_option_counts_the_most_marks_possible() {
    // Scripts delivered_largeack, delivered_largeack2 and delivered_maxack: one ACK acknowledges
    // ten segments.
    for (ace, reductions) in [(5, 0), (6, 1), (4, 1)] {
        play(
            &accecn(),
            &format!(
                "
                > seq 0..10
                +0.1 < ack 10 ace {ace}
                > seq {}
                reductions == {reductions}
                ",
                if reductions == 0 { "10..30" } else { "10..15" }
            ),
        );
    }
}

#[test]
fn ace_wraps_and_a_full_turn_is_found_by_the_usual_number_of_segments() {
    // Script delivered_2ndlargeack: an ACK of one segment, then an ACK of nine with the same ACE.
    // ACE wrapped, so eight segments were marked.
    play(
        &accecn(),
        "
        > seq 0..10
        +0.1 < ack 1 ace 5
        > seq 10..12
        < ack 10 ace 5
        reductions == 1
        > seq 12..15
        ",
    );
}

#[test]
fn the_option_shows_that_ace_has_not_wrapped() {
    // Script delivered_falseoverflow_detect.
    play(
        &accecn(),
        "
        > seq 0..10
        +0.1 < ack 1 ace 5 counters 1 0 1001
        > seq 10..12
        < ack 10 ace 5 counters 1 0 10001
        reductions == 0
        > seq 12..30
        ",
    );
}

#[test]
fn an_ack_of_no_new_data_reports_no_marks() {
    // Script noprogress.
    play(
        &accecn(),
        "
        > seq 0..10
        +0.1 < ack 2 ace 5
        > seq 10..14
        < ack 2 ace 6
        reductions == 0
        ",
    );
}
