//! A sender whose application is short of data: RFC 2861, and what the congestion controls do then.

use crate::player::play_application;
use crate::profiles::{linux, room};
use tcp::{CongestionKind, TcpParams};

fn with(congestion: CongestionKind) -> TcpParams {
    room(1000, linux()).with(|p| p.congestion = congestion)
}

/// Slow start to a window of 40, all of it used, then a pause from 0.3 s on. SRTT is 100 ms and
/// RTO 100 + 200 ms.
const WINDOW_OF_40: &str = "
    write 70
    > seq 0..10
    @0.1 < ack 10
    > seq 10..30
    @0.2 < ack 30
    > seq 30..70
    @0.3 < ack 70
    cwnd == 80
    rto == 0.3
    ";

#[test]
fn a_pause_within_an_rto_leaves_the_window() {
    for congestion in [CongestionKind::Reno, CongestionKind::Cubic] {
        // The last segment left at 0.2 s.
        let script = "@0.5 write 100\n> seq 70..150\ncwnd == 80\nssthresh == none\n";
        play_application(&with(congestion), &(WINDOW_OF_40.to_owned() + script));
    }
}

#[test]
fn each_rto_of_a_pause_halves_the_window_down_to_the_initial_window() {
    // tcp_cwnd_restart: halvings for whole RTOs that ended before the write. A pause of 0.3 s + x
    // has one, of 0.6 s + x two, and so on. ssthresh becomes at least three quarters of cwnd, but
    // it is unlimited here.
    for (at, cwnd) in [(0.501, 40), (0.8, 40), (0.801, 20), (1.1, 20), (1.101, 10), (60.0, 10)] {
        let script = format!("@{at} write 100\n> seq 70..{}\ncwnd == {cwnd}\n", 70 + cwnd);
        play_application(&linux(), &(WINDOW_OF_40.to_owned() + &script));
    }
}

#[test]
fn a_pause_raises_ssthresh_to_three_quarters_of_the_window() {
    let params = with(CongestionKind::Reno).with(|p| p.growth.initial_ssthresh = Some(8));
    play_application(
        &params,
        "
        write 10
        > seq 0..10
        @0.1 < ack 10
        write 11
        > seq 10..21
        @0.2 < ack 21
        cwnd == 12
        @1 write 20
        > seq 21..31
        cwnd == 10
        ssthresh == 9 # 12/2 + 12/4
        ",
    );
}

#[test]
fn after_a_pause_the_data_beyond_the_reduced_window_wait_in_the_socket() {
    // W is 20 segments. cwnd is 10 after the pause: 10 segments leave at once, 2 W wait. The end of
    // each whole write has PSH (89, 109), and so has the last segment that waits.
    let params = room(1000, linux()).with(|p| p.buffers.write_bytes = 20_000);
    let script = "
        @60 write 100
        > seq 70..80
        @60.1 < ack 80
        > seq 80..100
        @60.2 < ack 100
        > seq 100..109 no-push
        > seq 109 push
        > seq 110..119 no-push
        > seq 119 push
        > seq 120..139 no-push
        > seq 139 push
        ";
    play_application(&params, &(WINDOW_OF_40.to_owned() + script));
}

#[test]
fn the_sysctl_turns_it_off() {
    let params = room(1000, linux()).with(|p| p.growth.slow_start_after_idle = false);
    let script = "@60 write 100\n> seq 70..150\ncwnd == 80\n";
    play_application(&params, &(WINDOW_OF_40.to_owned() + script));
}

#[test]
fn a_control_that_sets_cwnd_itself_keeps_it() {
    // tcp_slow_start_after_idle_check skips a control with cong_control.
    let script =
        "write 10\n> seq 0..10\n@0.1 < ack 10\ncwnd == 20\n@30 write 1\n> seq 10\ncwnd == 20\n";
    play_application(&with(CongestionKind::Bbr), script);
}

#[test]
fn a_window_that_was_not_the_limit_for_an_rto_without_an_ack_falls_half_of_the_way_to_its_use() {
    // tcp_cwnd_application_limited: the application uses three of 80 segments, and the ACKs stay
    // away. The loss probe at 2 SRTT + 2 ms arms the timer anew, so that it has not expired when an
    // RTO has passed since the last ACK. The initial window of 10 counts as used.
    let script = "
        @0.31 write 2
        > seq 70..72
        @0.512 timer # the probe
        > seq 71 again
        @0.595 write 1
        > seq 72
        cwnd == 80
        @0.6 write 1
        > seq 73
        cwnd == 45
        ssthresh == none
        ";
    play_application(&with(CongestionKind::Reno), &(WINDOW_OF_40.to_owned() + script));
    let params = with(CongestionKind::Reno).with(|p| p.growth.initial_ssthresh = Some(8));
    play_application(
        &params,
        "
        write 10
        > seq 0..10
        @0.1 < ack 10
        write 11
        > seq 10..21
        @0.2 < ack 21
        cwnd == 12
        @0.21 write 2
        > seq 21..23
        @0.412 timer
        > seq 22 again
        @0.5 write 1
        > seq 23
        cwnd == 11
        ssthresh == 9 # 12/2 + 12/4
        ",
    );
}

#[test]
fn a_window_that_is_less_than_half_used_does_not_grow() {
    // tcp_is_cwnd_limited in slow start: cwnd < 2 max_packets_out. Windows of 4, 5 and 6 segments.
    play_application(
        &with(CongestionKind::Reno),
        "
        write 4
        > seq 0..4
        @0.1 < ack 4
        cwnd == 10
        write 5
        > seq 4..9
        @0.2 < ack 9
        cwnd == 10
        write 6
        > seq 9..15
        @0.3 < ack 15
        cwnd == 16
        ",
    );
}

#[test]
fn in_congestion_avoidance_only_a_full_window_grows() {
    let params = with(CongestionKind::Reno).with(|p| p.growth.initial_ssthresh = Some(10));
    play_application(
        &params,
        "
        write 9
        > seq 0..9
        @0.1 < ack 9
        cwnd == 10
        @0.2 write 10
        > seq 9..19
        @0.3 < ack 19
        cwnd == 11
        ",
    );
}

#[test]
fn a_write_is_sent_completely_and_a_short_one_is_a_short_segment() {
    play_application(
        &linux(),
        "
        write 2500 B
        > seq 0..2
        > seq 2 len 500
        @0.1 < ack 3
        # The next write begins behind the short segment.
        @0.2 write 3
        > seq 3..6
        @0.402 timer # the probe after 2 SRTT + 2 ms
        > seq 5 again
        @0.51 < ack 6
        ",
    );
}
