//! CUBIC through the sender: packetdrill's scripts of Linux's CUBIC, and the cubic curve.

use crate::player::play;
use crate::profiles::{linux, room};
use tcp::{AckSegment, MAX_SACK_BLOCKS, Millis, Segment, Sender, TcpParams};
use units::{Span, Time};

#[test]
fn hystart_stops_where_the_delay_jumps() {
    // packetdrill's cubic-hystart-delay-rtt-jumps-upward: 200 ms, then 240 ms and more, above 9/8
    // of the least RTT. The ninth sample of the round decides.
    play(
        &linux(),
        "
        > seq 0..10
        +0.2 < ack 2
        > seq 10..14
        < ack 4
        > seq 14..18
        < ack 6
        > seq 18..22
        < ack 8
        > seq 22..26
        < ack 10
        > seq 26..30
        cwnd == 20
        ssthresh == none
        +0.24 < ack 12
        > seq 30..34
        +0.001 < ack 14
        > seq 34..38
        +0.001 < ack 16
        > seq 38..42
        +0.001 < ack 18
        > seq 42..46
        +0.001 < ack 20
        > seq 46..50
        +0.001 < ack 22
        > seq 50..54
        +0.001 < ack 24
        > seq 54..58
        +0.001 < ack 26
        > seq 58..62
        cwnd == 36
        ssthresh == none
        +0.001 < ack 28
        > seq 62..64
        cwnd == 36
        ssthresh == 36
        ",
    );
}

#[test]
fn hystart_measures_by_the_last_segment_of_an_ack() {
    // cubictcp_acked gets the RTT of the last segment acknowledged (ca_rtt_us). Each ACK of the
    // second round acknowledges a segment that left 225 ms ago and one that left 205 ms ago. The
    // first RTT is above the bound, 200 + 16 ms, and the last is not. Both would have nine samples.
    let mut script = String::from("> seq 0..10\n@0.2 < ack 1\n> seq 10..12\n");
    for ack in 2..=9 {
        let at = 0.18 + 0.02 * f64::from(ack);
        let nxt = 8 + 2 * ack;
        script += &format!("@{at:.3} < ack {ack}\n> seq {nxt}..{}\n", nxt + 2);
    }
    script += "cwnd == 19\n@0.405 < ack 11\n> seq 28..32\n";
    for more in 1..=8 {
        let at = 0.405 + 0.02 * f64::from(more);
        let nxt = 28 + 4 * more;
        script += &format!("@{at:.3} < ack {}\n> seq {nxt}..{}\n", 11 + 2 * more, nxt + 4);
    }
    play(&linux(), &(script + "cwnd == 37\nssthresh == none\n"));
}

/// A sender and a path without loss, which answers each segment an RTT later.
struct Path {
    sender: Sender,
    now: Time,
    rtt: Span,
    flying: Vec<Segment>,
}

impl Path {
    fn new(params: &TcpParams, rtt: Span) -> Path {
        let mut path =
            Path { sender: Sender::new(params, None), now: Time::ZERO, rtt, flying: Vec::new() };
        path.pump();
        path
    }

    fn pump(&mut self) {
        self.flying.extend(std::iter::from_fn(|| self.sender.poll(self.now)));
    }

    fn ack(&mut self, ack: u32, echo: Time, sack: Option<(u32, u32)>) {
        let mut sacks = [(0, 0); MAX_SACK_BLOCKS];
        sacks[0] = sack.unwrap_or_default();
        let sack_count = u8::from(sack.is_some());
        let ack = AckSegment {
            ack,
            echo,
            window: 1 << 30,
            sacks,
            sack_count,
            ace: 0,
            accecn: None,
            ecn: units::Ecn::NotEct,
            one_way: None,
            syn: false,
            stamp: Millis(0),
        };
        self.sender.on_ack(&ack, self.now);
        self.pump();
    }

    /// Runs one round trip. With `lose` the first segment is lost and retransmitted.
    fn round(&mut self, lose: bool) {
        let start = self.now;
        let flying = std::mem::take(&mut self.flying);
        let (first, count) = (flying[0].seq, flying.len() as u64);
        for (i, segment) in flying.iter().enumerate() {
            self.now = start + self.rtt * (i as u64 + 1) / count;
            if !lose {
                self.ack(segment.seq + 1, segment.stamp, None);
            } else if i > 0 {
                self.ack(first, segment.stamp, Some((first + 1, segment.seq + 1)));
            }
        }
        if lose {
            let again = self
                .flying
                .iter()
                .position(|s| s.retransmit)
                .expect("the lost segment is sent again");
            // Segments that left earlier arrived earlier.
            let end = first + count as u32 + again as u32;
            let again = self.flying.drain(..=again).next_back().expect("it is there");
            self.now = start + self.rtt * 2;
            self.ack(end, again.stamp, None);
        }
    }

    fn cwnd(&self) -> f64 {
        self.sender.cwnd_bytes() as f64 / 1000.0
    }
}

#[test]
fn after_a_loss_the_window_is_first_concave_and_then_convex() {
    // W(t) = 0.4 (t - K)³ + 200, K = cbrt(200 · 0.3/0.4) = 5.313 s.
    let params = room(100_000, linux()).with(|p| {
        p.growth.initial_window = 200;
        p.growth.hystart = false;
    });
    let mut path = Path::new(&params, Span::from_millis(100));
    path.round(true);
    assert_eq!(path.sender.ssthresh_bytes(), Some(140_000));
    assert!((path.cwnd() - 140.0).abs() < 1.0, "{}", path.cwnd());

    let start = path.now;
    let k = libm::cbrt(200.0 * 0.3 / 0.4);
    let mut windows = Vec::new();
    for _ in 0..90 {
        path.round(false);
        let t = path.now.since(start).as_secs_f64();
        let cubic = 0.4 * (t - k) * (t - k) * (t - k) + 200.0;
        // The window reaches the curve during the round trip.
        assert!(
            (path.cwnd() / cubic - 1.0).abs() < 0.03,
            "{} instead of {cubic} after {t} s",
            path.cwnd()
        );
        windows.push(path.cwnd());
    }
    // Steps of a second: they become smaller up to K, and larger after K.
    let step = |at: usize| windows[at + 10] - windows[at];
    assert!(step(0) > step(10) && step(10) > step(20) && step(20) > step(30));
    assert!(step(55) < step(65) && step(65) < step(75));
    assert_eq!(path.sender.stats().retransmits, 1);
}

#[test]
fn the_bulk_flow_of_packetdrill_leaves_slow_start_and_then_follows_the_cubic() {
    // packetdrill's cubic-bulk-166k: an ACK of two segments every 100 ms, so the RTT rises as the
    // window fills. Its 48 at the 19th ACK is from a Linux before 6.14, which counted HyStart's
    // rounds from a window of 16 on. Since 6.14 the second round begins with segment 12, and its
    // ninth sample comes with the 14th ACK.
    let mut sender = Sender::new(&linux(), None);
    let mut stamps = Vec::new();
    let mut windows = Vec::new();
    for ack in 0..=60 {
        let now = Time::ZERO + Span::from_millis(100) * ack;
        if ack > 0 {
            let una = sender.outstanding().0;
            let segment = AckSegment {
                ack: una + 2,
                echo: stamps[una as usize],
                window: 65_536,
                sacks: [(0, 0); MAX_SACK_BLOCKS],
                sack_count: 0,
                ace: 0,
                accecn: None,
                ecn: units::Ecn::NotEct,
                one_way: None,
                syn: false,
                stamp: Millis(0),
            };
            sender.on_ack(&segment, now);
            windows.push(sender.cwnd_bytes() / 1000);
        }
        stamps.extend(std::iter::from_fn(|| sender.poll(now)).map(|segment| segment.stamp));
    }
    let at = |ack: usize| windows[ack - 1];
    assert_eq!([at(5), at(10), at(13), at(14)], [20, 30, 36, 36]);
    assert_eq!(sender.ssthresh_bytes(), Some(36_000));
    // Nothing is known of the path: cwnd grows by at least one segment for every twenty
    // acknowledged, then by the cubic, at most one segment for two.
    assert!(at(30) >= 37 && at(40) >= at(30));
    for ack in 15..=60 {
        assert!(at(ack) <= at(ack - 1) + 1);
    }
    assert!(at(60) > at(50) && at(50) - at(30) < 2 * (at(60) - at(50)));
}
