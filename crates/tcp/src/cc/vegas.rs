//! Vegas: keep a few segments queued, by comparing the rate that is with the rate that would be without a queue.
//!
//! Expected = cwnd/base_rtt, Actual = cwnd/rtt. Their difference times base_rtt, cwnd · (rtt - base_rtt)/rtt, is what the
//! flow itself has waiting in queues. Once a round trip: fewer than alpha waiting, one segment more; more than beta, one
//! less; between them, nothing. Slow start ends as soon as more than gamma wait. So Vegas alone neither fills a queue nor
//! loses, and beside a flow that does both it starves.
//!
//! Sources: Brakmo, O'Malley, Peterson, "TCP Vegas: new techniques for congestion detection and avoidance" (SIGCOMM
//! 1994) §3.2 (avoidance) and §3.3 (slow start); Linux net/ipv4/tcp_vegas.c for which RTT is taken and when Reno takes over.
//! As Linux: the RTT is the least of the round; slow start doubles each round trip and on leaving falls to what the path
//! holds, cwnd · base_rtt/rtt + 1; with fewer than three samples in a round, which may all be of delayed ACKs, and after a
//! timeout until all that was outstanding is acknowledged, it is Reno. As the paper and ns-2, under `packet_counted`: slow start
//! grows every other round trip only, so that the two rates are compared at a window that stands still, and leaves with an
//! eighth less. Without timestamps the one segment timed a round is the paper's "distinguished segment", and enough.
//!
//! Deviations from the paper: no retransmission before the third duplicate (§3.1, by a fine-grained clock); a loss halves
//! the window where the paper takes a quarter. Deviations from Linux: its difference is over base_rtt, not over rtt, so it
//! holds less in long queues; real numbers; a window that is not the limit doesn't grow; the RTT is of the earliest segment
//! that an ACK covers, with the wait for the delayed ACK in it; base_rtt is of the whole connection, where Linux begins anew
//! after each idle period.
//! ns-3 rounds cwnd · base_rtt/rtt down before it subtracts and takes base_rtt from the SYN, which is short and
//! answered at once: with delayed ACKs it sees two segments queued where none is, and a lone flow stays at half the link.

use super::{Ack, Congestion, CongestionControl, Signal};
use crate::TcpParams;
use units::Span;

/// Fewer RTT samples than this in a round may all be of delayed ACKs (Linux).
const ENOUGH_SAMPLES: u32 = 3;

/// State of Vegas. Windows are in segments.
pub struct Vegas {
    cwnd: f64,
    ssthresh: f64,
    alpha: f64,
    beta: f64,
    gamma: f64,
    /// Slow start as in the paper: growth every other round.
    every_other: bool,
    enough_samples: u32,
    /// The least RTT of the connection.
    base_rtt: Span,
    /// The least RTT of this round, and how many samples it had.
    round_rtt: Span,
    samples: u32,
    /// The round is over when this segment is acknowledged and one more.
    round_end: u32,
    /// This round is one of growth, for a slow start as in the paper.
    growing: bool,
    after: After,
}

/// What congestion leaves to be done by the next ACK of new data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// Nothing.
    None,
    /// A round begins: the first, or the loss is repaired.
    Begin,
    /// The timer went off: what is outstanding is to be noted.
    Timeout,
    /// Reno until this segment is acknowledged.
    Until(u32),
}

impl Vegas {
    /// At the initial window, in slow start.
    pub fn new(params: &TcpParams) -> Vegas {
        Vegas {
            cwnd: f64::from(params.initial_window),
            ssthresh: params.initial_ssthresh.map_or(f64::INFINITY, f64::from),
            alpha: f64::from(params.vegas_alpha),
            beta: f64::from(params.vegas_beta),
            gamma: f64::from(params.vegas_gamma),
            every_other: params.packet_counted,
            enough_samples: if params.timestamps { ENOUGH_SAMPLES } else { 1 },
            base_rtt: Span(u64::MAX),
            round_rtt: Span(u64::MAX),
            samples: 0,
            round_end: 0,
            growing: true,
            after: After::Begin,
        }
    }

    #[inline]
    fn begin_round(&mut self, ack: &Ack) {
        self.round_end = ack.nxt;
        self.round_rtt = Span(u64::MAX);
        self.samples = 0;
    }

    /// The window that the path holds without a queue: Actual · base_rtt.
    fn path(&self) -> f64 {
        self.cwnd * self.base_rtt.0 as f64 / self.round_rtt.0 as f64
    }

    /// The end of a round of enough samples: what is queued decides.
    fn judge(&mut self, ack: &Ack) {
        let path = self.path();
        let diff = self.cwnd - path;
        if self.cwnd < self.ssthresh {
            if diff > self.gamma {
                self.leave_slow_start(path);
            } else if self.every_other {
                self.growing = !self.growing;
            }
            self.slow_start(ack);
        } else if diff > self.beta {
            self.cwnd = (self.cwnd - 1.0).max(2.0);
            self.stay_out_of_slow_start();
        } else if diff < self.alpha && ack.cwnd_limited {
            self.cwnd += 1.0;
        }
    }

    fn leave_slow_start(&mut self, path: f64) {
        let left = if self.every_other { self.cwnd * 7.0 / 8.0 } else { self.cwnd.min(path + 1.0) };
        self.cwnd = left.max(2.0);
        self.stay_out_of_slow_start();
    }

    /// ssthresh comes down with cwnd, below it, so that the next round is one of avoidance.
    fn stay_out_of_slow_start(&mut self) {
        self.ssthresh = self.ssthresh.min(self.cwnd - 1.0).max(2.0);
    }

    #[inline]
    fn slow_start(&mut self, ack: &Ack) {
        if self.cwnd < self.ssthresh && self.growing && ack.cwnd_limited {
            let acked = if self.every_other { 1.0 } else { f64::from(ack.acked) };
            self.cwnd = (self.cwnd + acked).min(self.ssthresh);
        }
    }

    /// RFC 5681, where Vegas can't tell.
    fn reno(&mut self, ack: &Ack) {
        if ack.cwnd_limited {
            self.cwnd = grown(self.cwnd, self.ssthresh, ack.acked);
        }
    }
}

/// Reno's window after so many segments were acknowledged: slow start up to ssthresh, avoidance with what is left of them.
fn grown(cwnd: f64, ssthresh: f64, acked: u32) -> f64 {
    let mut left = f64::from(acked);
    let mut grown = cwnd;
    if cwnd < ssthresh {
        grown = (cwnd + left).min(ssthresh);
        left -= grown - cwnd;
    }
    grown + left / grown
}

impl CongestionControl for Vegas {
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            // An RTT of nothing would make the path endless.
            let rtt = rtt.max(Span(1));
            self.base_rtt = self.base_rtt.min(rtt);
            self.round_rtt = self.round_rtt.min(rtt);
            self.samples += 1;
        }
        match self.after {
            After::None => {}
            After::Begin => {
                self.after = After::None;
                self.begin_round(ack);
            }
            After::Timeout => self.after = After::Until(ack.nxt),
            After::Until(end) if ack.una >= end => {
                self.after = After::None;
                self.begin_round(ack);
            }
            After::Until(_) => {}
        }
        if self.after != After::None {
            return self.reno(ack);
        }
        if ack.una <= self.round_end {
            return self.slow_start(ack);
        }
        if self.samples < self.enough_samples {
            self.reno(ack);
        } else {
            self.judge(ack);
        }
        self.begin_round(ack);
    }

    fn on_congestion(&mut self, event: &Congestion) {
        self.ssthresh = (self.cwnd / 2.0).max(2.0);
        self.growing = true;
        self.after = After::Begin;
        if event.signal == Signal::Timeout {
            self.cwnd = 1.0;
            self.after = After::Timeout;
        }
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        self.cwnd
    }

    #[inline]
    fn set_cwnd(&mut self, cwnd: f64) {
        self.cwnd = cwnd;
    }

    #[inline]
    fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    fn set_ssthresh(&mut self, ssthresh: f64) {
        self.ssthresh = ssthresh;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TcpParams;
    use crate::cc::test::params;
    use units::Time;

    const BASE: Span = Span::from_millis(100);

    /// In a round that began with segment 100 the next to be sent, at a base RTT of 100 ms.
    fn vegas(params: &TcpParams, cwnd: f64, ssthresh: f64) -> Vegas {
        let mut vegas = Vegas::new(params);
        (vegas.cwnd, vegas.ssthresh) = (cwnd, ssthresh);
        vegas.base_rtt = BASE;
        vegas.after = After::None;
        vegas.round_end = 100;
        vegas
    }

    fn linux(cwnd: f64, ssthresh: f64) -> Vegas {
        vegas(&params(), cwnd, ssthresh)
    }

    fn ack(vegas: &mut Vegas, una: u32, rtt_ms: u64) {
        vegas.on_ack(&Ack {
            now: Time::ZERO,
            acked: 1,
            rtt: Some(Span::from_millis(rtt_ms)),
            one_way: None,
            srtt: None,
            min_rtt: None,
            una,
            nxt: una + 50,
            cwnd_limited: true,
        });
    }

    /// Three samples; the third ACK ends the round. The least of them counts.
    fn round(vegas: &mut Vegas, rtt_ms: u64) {
        let end = vegas.round_end;
        ack(vegas, end - 1, rtt_ms + 7);
        ack(vegas, end, rtt_ms);
        ack(vegas, end + 1, rtt_ms + 30);
    }

    fn lose(vegas: &mut Vegas, signal: Signal) {
        vegas.on_congestion(&Congestion { now: Time::ZERO, signal, inflight: 0 });
    }

    #[test]
    fn between_alpha_and_beta_queued_the_window_stands() {
        // 38 segments at 106 ms: 38 · 6/106 = 2.15 are queued (ns-3's unit test). At 102 ms 0.75, at 120 ms 6.33.
        for (rtt, cwnd) in [(106, 38.0), (102, 39.0), (120, 37.0)] {
            let mut vegas = linux(38.0, 20.0);
            round(&mut vegas, rtt);
            assert_eq!(vegas.cwnd(), cwnd, "at {rtt} ms");
        }
    }

    #[test]
    fn exactly_alpha_beta_or_gamma_queued_is_between_them() {
        // At 110 ms an eleventh of the window is queued: 2, 4, and in slow start 1.
        for cwnd in [22.0, 44.0] {
            let mut vegas = linux(cwnd, 2.0);
            round(&mut vegas, 110);
            assert_eq!(vegas.cwnd(), cwnd);
        }
        let mut vegas = linux(9.0, 100.0);
        round(&mut vegas, 110);
        assert_eq!((vegas.cwnd(), vegas.ssthresh()), (12.0, 100.0), "11 at the end of the round, and on");
    }

    #[test]
    fn it_judges_once_a_round_trip() {
        let mut vegas = linux(38.0, 20.0);
        for una in 60..=100 {
            ack(&mut vegas, una, 102);
            assert_eq!(vegas.cwnd(), 38.0);
        }
        ack(&mut vegas, 101, 102);
        assert_eq!(vegas.cwnd(), 39.0);
        // The round that begins now ends when segment 151, the next to be sent, is acknowledged.
        for una in 102..=151 {
            ack(&mut vegas, una, 102);
            assert_eq!(vegas.cwnd(), 39.0);
        }
        ack(&mut vegas, 152, 102);
        assert_eq!(vegas.cwnd(), 40.0);
    }

    #[test]
    fn slow_start_ends_at_more_than_gamma_queued_with_what_the_path_holds() {
        // ns-3's unit test: of 38 segments at 106 ms the path holds 35.8; one more are 36 whole ones. Two more from before.
        let mut vegas = linux(36.0, 40.0);
        round(&mut vegas, 106);
        let path = 38.0 * 100.0 / 106.0;
        assert!((vegas.cwnd() - (path + 1.0)).abs() < 1e-9);
        assert!((vegas.ssthresh() - path).abs() < 1e-9);
        // 38 · 2/102 = 0.75 are not more than one: on to ssthresh.
        let mut vegas = linux(36.0, 40.0);
        round(&mut vegas, 102);
        assert_eq!((vegas.cwnd(), vegas.ssthresh()), (39.0, 40.0));
    }

    #[test]
    fn as_in_the_paper_slow_start_grows_every_other_round() {
        let paper = TcpParams { packet_counted: true, timestamps: false, ..params() };
        let mut vegas = vegas(&paper, 10.0, f64::INFINITY);
        let mut windows = Vec::new();
        for _ in 0..4 {
            round(&mut vegas, 100);
            windows.push(vegas.cwnd());
        }
        // Each of these rounds has three ACKs, the third of which belongs to the next: two grow, one, two, one.
        assert_eq!(windows, [12.0, 13.0, 15.0, 16.0]);
        // Two more; 18 · 10/110 = 1.6 are queued: an eighth less.
        round(&mut vegas, 110);
        assert_eq!(vegas.cwnd(), 18.0 * 7.0 / 8.0);
    }

    #[test]
    fn too_few_samples_make_it_reno() {
        let mut vegas = linux(10.0, 5.0);
        ack(&mut vegas, 100, 300);
        ack(&mut vegas, 101, 300);
        // 6.7 segments would be queued; Reno adds 1/10 for one acknowledged.
        assert_eq!(vegas.cwnd(), 10.1);
    }

    #[test]
    fn a_loss_halves_and_a_new_round_begins() {
        let mut vegas = linux(38.0, 20.0);
        lose(&mut vegas, Signal::Loss);
        assert_eq!(vegas.ssthresh(), 19.0);
        vegas.set_cwnd(19.0);
        // What was measured before the loss is of no use: the round that would end here begins.
        ack(&mut vegas, 130, 200);
        assert_eq!((vegas.cwnd(), vegas.round_end), (19.0, 180));
        round(&mut vegas, 102);
        assert_eq!(vegas.cwnd(), 20.0);
    }

    #[test]
    fn after_a_timeout_it_is_reno_until_all_that_was_outstanding_is_acknowledged() {
        let mut vegas = linux(38.0, 20.0);
        lose(&mut vegas, Signal::Timeout);
        assert_eq!((vegas.cwnd(), vegas.ssthresh()), (1.0, 19.0));
        // Segments up to 151 are outstanding. Long RTTs, which would end Vegas's slow start, do nothing.
        ack(&mut vegas, 101, 500);
        for una in 102..=110 {
            ack(&mut vegas, una, 500);
        }
        assert_eq!((vegas.cwnd(), vegas.ssthresh()), (11.0, 19.0));
        ack(&mut vegas, 151, 500);
        assert!(vegas.after == After::None && vegas.round_end == 201);
    }

    #[test]
    fn a_window_that_is_not_the_limit_does_not_grow() {
        let mut vegas = linux(38.0, 20.0);
        for una in [99, 100, 101] {
            vegas.on_ack(&Ack {
                now: Time::ZERO,
                acked: 1,
                rtt: Some(BASE),
                one_way: None,
                srtt: None,
                min_rtt: None,
                una,
                nxt: una + 5,
                cwnd_limited: false,
            });
        }
        assert_eq!(vegas.cwnd(), 38.0);
    }
}
