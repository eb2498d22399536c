//! Vegas: keeps a few segments queued, by comparing the actual rate with the rate of an empty
//! queue.
//!
//! Expected = cwnd/base_rtt, Actual = cwnd/rtt. Their difference gives `diff`, the flow's queued
//! segments. Once a round trip: diff < alpha, one segment more; diff > beta, one less; between
//! them, no change. Slow start ends as soon as diff > gamma. So Vegas alone neither fills a queue
//! nor loses packets. Next to a flow that does both, Vegas starves.
//!
//! Two algorithms have the name (`Algorithm`):
//!
//! | | `Linux` | `OfPaper`: ns-2 (`vegas_of_paper`) |
//! |---|---|---|
//! | numbers | whole segments; RTTs in whole µs, plus one; each division rounds down | real |
//! | diff | cwnd · (rtt - base_rtt)/base_rtt | cwnd · (rtt - base_rtt)/rtt |
//! | RTT of an ACK | of the last segment SACKed, else acknowledged, by the echo after a retransmission; in a recovery too | of the first segment, with a delayed ACK's delay; or of the timed segment |
//! | slow start | doubles each RTT, whether or not cwnd is the limit; ends at cwnd · base_rtt/rtt + 1 | grows every other RTT; ends at 7/8 of cwnd |
//! | ssthresh after a round | at least 3/4 of cwnd | below cwnd once slow start has ended |
//! | base_rtt | restarts when a segment leaves and nothing is in flight | least of the connection |
//!
//! So in `Linux` the round after slow start is a round of avoidance. In `OfPaper` slow start
//! compares the two rates at a constant cwnd. In `Linux` base_rtt restarts after a pause and after
//! a timeout (CA_EVENT_TX_START).
//!
//! Both use the least RTT of the round. Fewer than three samples in a round may all be from delayed
//! ACKs. Then both grow cwnd as Reno does. They also do so while the sender is not in TCP_CA_Open;
//! when it returns to TCP_CA_Open, a round begins. In `OfPaper` without timestamps the one segment
//! timed in a round is the paper's "distinguished segment", and one sample is enough.
//!
//! Sources: Brakmo, O'Malley, Peterson, "TCP Vegas: new techniques for congestion detection and
//! avoidance" (SIGCOMM 1994) §3.2 (avoidance) and §3.3 (slow start); Linux net/ipv4/tcp_vegas.c,
//! whose names the fields have. Deviations from the paper: no retransmission before the third
//! duplicate (§3.1, by a fine-grained clock); a loss halves cwnd, while the paper reduces it by a
//! quarter. Deviation from Linux: cwnd · (rtt - base_rtt) does not overflow (in Linux it does at
//! 2^32: 4295 segments and a second of queue). In ns-3 cwnd · base_rtt/rtt is rounded down before
//! the subtraction, and base_rtt follows from the SYN, which is short and answered at once. With
//! delayed ACKs ns-3 computes a diff of two segments when none is queued, and a lone flow stays at
//! half the link.

use super::{
    Ack, AckSample, Congestion, CongestionControl, CwndCnt, Needs, Signal, TxStart, reno_cong_avoid,
};
use crate::TcpParams;

/// With fewer RTT samples in a round, all may be from delayed ACKs (tcp_vegas_cong_avoid).
const ENOUGH_SAMPLES: u32 = 3;

/// No sample yet.
const NO_RTT: u64 = u64::MAX;

/// The algorithm: see the table above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Linux,
    OfPaper,
}

/// State of Vegas. Windows are in segments; RTTs in µs, in `OfPaper` in ns.
pub struct Vegas {
    algorithm: Algorithm,
    cwnd: f64,
    ssthresh: f64,
    cwnd_cnt: CwndCnt,
    alpha: u32,
    beta: u32,
    gamma: u32,
    enough_samples: u32,
    /// The least RTT of the connection, or since a segment last left with nothing in flight
    /// (baseRTT).
    base_rtt: u64,
    /// The least RTT of this round (minRTT), and its number of samples (cntRTT).
    min_rtt: u64,
    cnt_rtt: u32,
    /// The round ends when an ACK reaches beyond this segment.
    beg_snd_nxt: u32,
    /// `OfPaper`: cwnd grows in this round of slow start.
    growing: bool,
    /// Vegas sets cwnd; otherwise cwnd grows as Reno's.
    doing_vegas_now: bool,
    /// The last ACK found the sender in TCP_CA_Open.
    ca_open: bool,
}

impl Vegas {
    /// The initial window, in slow start.
    pub fn new(params: &TcpParams) -> Vegas {
        let algorithm =
            if params.ns2.vegas_of_paper { Algorithm::OfPaper } else { Algorithm::Linux };
        let one_timed = algorithm == Algorithm::OfPaper && !params.timestamps;
        Vegas {
            algorithm,
            cwnd: f64::from(params.growth.initial_window),
            ssthresh: params.growth.initial_ssthresh.map_or(f64::INFINITY, f64::from),
            cwnd_cnt: CwndCnt::default(),
            alpha: params.growth.vegas_alpha,
            beta: params.growth.vegas_beta,
            gamma: params.growth.vegas_gamma,
            enough_samples: if one_timed { 1 } else { ENOUGH_SAMPLES },
            base_rtt: NO_RTT,
            min_rtt: NO_RTT,
            cnt_rtt: 0,
            beg_snd_nxt: 0,
            growing: true,
            doing_vegas_now: false,
            ca_open: algorithm == Algorithm::Linux,
        }
    }

    #[inline]
    fn begin_round(&mut self, nxt: u32) {
        self.doing_vegas_now = true;
        self.beg_snd_nxt = nxt;
        self.min_rtt = NO_RTT;
        self.cnt_rtt = 0;
    }

    #[inline]
    fn sample(&mut self, rtt: u64) {
        self.base_rtt = self.base_rtt.min(rtt);
        self.min_rtt = self.min_rtt.min(rtt);
        self.cnt_rtt += 1;
    }

    fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Ends a round with enough samples: Linux's tcp_vegas_cong_avoid, in whole numbers.
    fn cong_avoid(&mut self, ack: &Ack) {
        let (cwnd, base, rtt) =
            (u128::from(self.cwnd as u64), u128::from(self.base_rtt), u128::from(self.min_rtt));
        let diff = cwnd * (rtt - base) / base;
        if self.in_slow_start() {
            if diff > u128::from(self.gamma) {
                // One segment more, because the division rounds down.
                let target_cwnd = (cwnd * base / rtt) as f64;
                self.cwnd = self.cwnd.min(target_cwnd + 1.0);
                self.ssthresh = self.ssthresh.min(self.cwnd);
            } else {
                self.slow_start(ack);
            }
        } else if diff > u128::from(self.beta) {
            self.cwnd -= 1.0;
            self.ssthresh = self.ssthresh.min(self.cwnd);
        } else if diff < u128::from(self.alpha) {
            self.cwnd += 1.0;
        }
        self.cwnd = self.cwnd.max(2.0);
        let cwnd = self.cwnd as u64;
        self.ssthresh = self.ssthresh.max((cwnd / 2 + cwnd / 4) as f64);
    }

    /// Ends a round with enough samples: the paper's §3.2 and §3.3.
    fn cong_avoid_of_paper(&mut self, ack: &Ack) {
        let target_cwnd = self.cwnd * self.base_rtt as f64 / self.min_rtt as f64;
        let diff = self.cwnd - target_cwnd;
        if self.in_slow_start() {
            if diff > f64::from(self.gamma) {
                self.cwnd = (self.cwnd * 7.0 / 8.0).max(2.0);
                self.stay_out_of_slow_start();
            } else {
                self.growing = !self.growing;
            }
            self.slow_start(ack);
        } else if diff > f64::from(self.beta) {
            self.cwnd = (self.cwnd - 1.0).max(2.0);
            self.stay_out_of_slow_start();
        } else if diff < f64::from(self.alpha) && ack.cwnd_limited {
            self.cwnd += 1.0;
        }
    }

    /// Sets ssthresh below cwnd, so that the next round is a round of avoidance.
    fn stay_out_of_slow_start(&mut self) {
        self.ssthresh = self.ssthresh.min(self.cwnd - 1.0).max(2.0);
    }

    #[inline]
    fn slow_start(&mut self, ack: &Ack) {
        if !self.in_slow_start() {
            return;
        }
        let acked = match self.algorithm {
            Algorithm::Linux => f64::from(ack.acked),
            Algorithm::OfPaper if self.growing && ack.cwnd_limited => 1.0,
            Algorithm::OfPaper => 0.0,
        };
        self.cwnd = (self.cwnd + acked).min(self.ssthresh);
    }

    /// RFC 5681's growth, for rounds with too few samples.
    fn reno(&mut self, ack: &Ack) {
        if ack.cwnd_limited {
            self.cwnd = match self.algorithm {
                Algorithm::Linux => {
                    reno_cong_avoid(self.cwnd, self.ssthresh, ack.acked, &mut self.cwnd_cnt)
                }
                Algorithm::OfPaper => reno_cong_avoid_real(self.cwnd, self.ssthresh, ack.acked),
            };
        }
    }
}

/// RFC 5681's growth of cwnd in real numbers.
fn reno_cong_avoid_real(cwnd: f64, ssthresh: f64, acked: u32) -> f64 {
    let mut left = f64::from(acked);
    let mut grown = cwnd;
    if cwnd < ssthresh {
        grown = (cwnd + left).min(ssthresh);
        left -= grown - cwnd;
    }
    grown + left / grown
}

impl CongestionControl for Vegas {
    fn needs(&self) -> Needs {
        Needs { segment_rtts: true, ..Needs::ACKS }
    }

    #[inline]
    fn on_delivered(&mut self, sample: &AckSample) {
        if self.algorithm == Algorithm::Linux {
            // tcp_vegas_pkts_acked: plus one, so that an RTT is never 0.
            self.sample(sample.rtt_us + 1);
        }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        if let (Algorithm::OfPaper, Some(rtt)) = (self.algorithm, ack.rtt) {
            self.sample(rtt.0.max(1));
        }
        if ack.ca_open != self.ca_open {
            self.ca_open = ack.ca_open;
            if ack.ca_open {
                self.begin_round(ack.nxt);
            } else {
                self.doing_vegas_now = false;
            }
        }
        if !self.doing_vegas_now {
            return self.reno(ack);
        }
        if ack.una <= self.beg_snd_nxt {
            return self.slow_start(ack);
        }
        if self.cnt_rtt < self.enough_samples {
            self.reno(ack);
        } else if self.algorithm == Algorithm::Linux {
            self.cong_avoid(ack);
        } else {
            self.cong_avoid_of_paper(ack);
        }
        self.begin_round(ack.nxt);
    }

    fn on_congestion(&mut self, event: &Congestion) {
        let half = self.cwnd / 2.0;
        self.ssthresh =
            if self.algorithm == Algorithm::Linux { half.floor() } else { half }.max(2.0);
        self.cwnd_cnt = CwndCnt::default();
        self.growing = true;
        (self.doing_vegas_now, self.ca_open) = (false, false);
        if event.signal == Signal::Timeout {
            self.cwnd = 1.0;
        }
    }

    fn on_tx_start(&mut self, start: &TxStart) {
        if self.algorithm == Algorithm::Linux {
            self.base_rtt = NO_RTT;
            self.begin_round(start.nxt);
        }
    }

    window_accessors!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TcpParams;
    use crate::cc::test::params;
    use units::{Span, Time};

    const NOW: Time = Time(10_000_000_000);

    /// A round that began when segment 100 was the next to be sent, with a base RTT of 100 ms.
    fn vegas(params: &TcpParams, cwnd: f64, ssthresh: f64) -> Vegas {
        let mut vegas = Vegas::new(params);
        (vegas.cwnd, vegas.ssthresh) = (cwnd, ssthresh);
        vegas.base_rtt = if vegas.algorithm == Algorithm::Linux { 100_001 } else { 100_000_000 };
        vegas.ca_open = true;
        vegas.begin_round(100);
        vegas
    }

    fn linux(cwnd: f64, ssthresh: f64) -> Vegas {
        vegas(&params(), cwnd, ssthresh)
    }

    fn paper(timestamps: bool, cwnd: f64, ssthresh: f64) -> Vegas {
        vegas(
            &params().with(|p| {
                p.ns2.vegas_of_paper = true;
                p.timestamps = timestamps;
            }),
            cwnd,
            ssthresh,
        )
    }

    fn ack_of(una: u32, rtt: Span) -> Ack {
        Ack {
            now: NOW,
            acked: 1,
            rtt: Some(rtt),
            one_way: None,
            srtt: None.into(),
            una,
            nxt: una + 50,
            cwnd_limited: true,
            ca_open: true,
        }
    }

    /// An ACK whose last segment has this RTT.
    fn receive(vegas: &mut Vegas, ack: &Ack, rtt: Span) {
        vegas.on_delivered(&sampled(rtt));
        vegas.on_ack(ack);
    }

    fn sampled(rtt: Span) -> AckSample {
        AckSample { rtt_us: rtt.0 / 1000, now: NOW, srtt: None.into(), una: 1, nxt: 2 }
    }

    fn ack(vegas: &mut Vegas, una: u32, rtt_ms: u64) {
        let rtt = Span::from_millis(rtt_ms);
        receive(vegas, &ack_of(una, rtt), rtt);
    }

    /// Three samples; the third ACK ends the round. The least of them counts.
    fn round_of(vegas: &mut Vegas, rtt: Span) {
        let end = vegas.beg_snd_nxt;
        for (una, more) in [(end - 1, 7), (end, 0), (end + 1, 30)] {
            let rtt = rtt + Span::from_millis(more);
            receive(vegas, &ack_of(una, rtt), rtt);
        }
    }

    fn round(vegas: &mut Vegas, rtt_ms: u64) {
        round_of(vegas, Span::from_millis(rtt_ms));
    }

    fn lose(vegas: &mut Vegas, signal: Signal) {
        vegas.on_congestion(&Congestion { now: NOW, signal, inflight: 0 });
    }

    #[test]
    fn between_alpha_and_beta_queued_the_window_stays() {
        // 38 · 6000/100001 = 2.3: two whole segments are queued at 106 ms, none at 102, seven at
        // 120.
        for (rtt, cwnd) in [(106, 38.0), (102, 39.0), (120, 37.0)] {
            let mut vegas = linux(38.0, 20.0);
            round(&mut vegas, rtt);
            assert_eq!(vegas.cwnd(), cwnd, "at {rtt} ms");
        }
    }

    #[test]
    fn vegas_counts_whole_queued_segments() {
        // 38 · 5.26 = 199.9 hundredths are one segment, 38 · 5.27 = 200.3 are two. 38 · 13.15 are
        // 4.997 segments, 38 · 13.16 are 5.0008.
        for (us, cwnd) in [(105_260, 39.0), (105_270, 38.0), (113_150, 38.0), (113_160, 37.0)] {
            let mut vegas = linux(38.0, 20.0);
            round_of(&mut vegas, Span::from_micros(us));
            assert_eq!(vegas.cwnd(), cwnd, "at {us} µs");
        }
    }

    #[test]
    fn linux_s_vegas_divides_by_the_base_rtt_and_the_paper_s_by_the_rtt() {
        // At three times the base RTT, two thirds of the 6 segments are queued; Linux computes 6 ·
        // 200/100 = 11.
        let params = params().with(|p| {
            p.growth.vegas_alpha = 3;
            p.growth.vegas_beta = 8;
        });
        for (of_paper, cwnd) in [(false, 5.0), (true, 6.0)] {
            let mut vegas = vegas(&params.with(|p| p.ns2.vegas_of_paper = of_paper), 6.0, 2.0);
            round(&mut vegas, 300);
            assert_eq!(vegas.cwnd(), cwnd);
        }
    }

    #[test]
    fn the_rtt_is_that_of_the_last_segment_that_an_ack_acknowledges() {
        // Each ACK is for two segments. The first left 15 ms before the second.
        for (mut vegas, cwnd) in [(linux(38.0, 20.0), 39.0), (paper(true, 38.0, 20.0), 37.0)] {
            for una in [99, 100, 101] {
                receive(&mut vegas, &ack_of(una, Span::from_millis(117)), Span::from_millis(102));
            }
            assert_eq!(vegas.cwnd(), cwnd);
        }
    }

    #[test]
    fn it_changes_the_window_once_per_round_trip() {
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
    fn slow_start_ends_at_more_than_gamma_queued_with_the_window_of_an_empty_queue() {
        // Two of 38 segments are queued at 106 ms. The path holds 38 · 100001/106001 = 35.8
        // segments, so cwnd becomes 35 and one. Two of the 38 come from growth in this round.
        let mut vegas = linux(36.0, 40.0);
        round(&mut vegas, 106);
        assert_eq!((vegas.cwnd(), vegas.ssthresh()), (36.0, 36.0));
        // 38 · 2000/100001 is none. 38 · 5000/100001 is one and not more than gamma: slow start
        // continues to ssthresh.
        for rtt in [102, 105] {
            let mut vegas = linux(36.0, 40.0);
            round(&mut vegas, rtt);
            assert_eq!((vegas.cwnd(), vegas.ssthresh()), (39.0, 40.0));
        }
    }

    #[test]
    fn a_round_leaves_ssthresh_at_three_quarters_of_the_window_at_least() {
        let mut vegas = linux(39.0, 20.0);
        round(&mut vegas, 108);
        // ssthresh is a half and a quarter of cwnd, each rounded down: 19 and 9.
        assert_eq!((vegas.cwnd(), vegas.ssthresh()), (39.0, 28.0));
    }

    #[test]
    fn as_in_the_paper_slow_start_grows_every_other_round() {
        let mut vegas = paper(false, 10.0, f64::INFINITY);
        let mut windows = Vec::new();
        for _ in 0..4 {
            round(&mut vegas, 100);
            windows.push(vegas.cwnd());
        }
        // Each of these rounds has three ACKs, the third of which belongs to the next round. They
        // grow cwnd by two, one, two, one.
        assert_eq!(windows, [12.0, 13.0, 15.0, 16.0]);
        // cwnd grows by two more. Then 18 · 10/110 = 1.6 segments are queued, so it falls by an
        // eighth.
        round(&mut vegas, 110);
        assert_eq!(vegas.cwnd(), 18.0 * 7.0 / 8.0);
    }

    #[test]
    fn in_the_paper_s_real_numbers_the_window_stays_at_exactly_alpha_or_beta_queued() {
        // At 110 ms an eleventh of the window is queued: 2 and 4 segments.
        for cwnd in [22.0, 44.0] {
            let mut vegas = paper(true, cwnd, 2.0);
            round(&mut vegas, 110);
            assert_eq!(vegas.cwnd(), cwnd);
        }
    }

    #[test]
    fn with_too_few_samples_it_grows_like_reno() {
        for (mut vegas, cwnd) in [(linux(10.0, 5.0), 10.0), (paper(true, 10.0, 5.0), 10.1)] {
            ack(&mut vegas, 100, 300);
            ack(&mut vegas, 101, 300);
            // 6.7 segments would be queued. Reno adds 1/10 for one acknowledged segment, and Linux
            // one segment for a whole window.
            assert_eq!(vegas.cwnd(), cwnd);
        }
        let mut vegas = linux(10.0, 5.0);
        for una in 101..=110 {
            vegas.beg_snd_nxt = una - 1;
            ack(&mut vegas, una, 300);
        }
        assert_eq!(vegas.cwnd(), 11.0);
    }

    #[test]
    fn an_ack_of_a_retransmitted_segment_is_not_a_sample() {
        let mut vegas = linux(38.0, 20.0);
        for una in [99, 100, 101] {
            vegas.on_ack(&ack_of(una, Span::from_millis(102)));
        }
        assert_eq!(vegas.cwnd(), 38.0, "a round without samples");
    }

    #[test]
    fn an_rtt_measured_in_a_recovery_counts_for_the_base() {
        let mut vegas = linux(38.0, 20.0);
        lose(&mut vegas, Signal::Loss);
        vegas.on_delivered(&sampled(Span::from_millis(90)));
        assert_eq!(vegas.base_rtt, 90_001);
        ack(&mut vegas, 130, 200);
        assert_eq!(vegas.cnt_rtt, 0, "the round begins after the recovery");
    }

    #[test]
    fn a_loss_halves_and_a_new_round_begins() {
        let mut vegas = linux(39.0, 20.0);
        lose(&mut vegas, Signal::Loss);
        assert_eq!(vegas.ssthresh(), 19.0);
        vegas.set_cwnd(19.0);
        // Samples from before the loss do not count: this ACK begins a round instead of ending one.
        ack(&mut vegas, 130, 200);
        assert_eq!((vegas.cwnd(), vegas.beg_snd_nxt), (19.0, 180));
        round(&mut vegas, 102);
        assert_eq!(vegas.cwnd(), 20.0);
    }

    #[test]
    fn in_a_recovery_it_acts_like_reno_and_then_a_round_begins() {
        let mut vegas = linux(38.0, 50.0);
        // In slow start 38 · 50/100 = 19 segments are queued, but slow start does not end.
        for una in [99, 100, 101] {
            let rtt = Span::from_millis(150);
            receive(&mut vegas, &Ack { ca_open: false, ..ack_of(una, rtt) }, rtt);
        }
        assert_eq!((vegas.cwnd(), vegas.ssthresh()), (41.0, 50.0));
        ack(&mut vegas, 102, 150);
        assert_eq!((vegas.cnt_rtt, vegas.beg_snd_nxt), (0, 152));
    }

    #[test]
    fn after_a_timeout_the_base_rtt_is_measured_again() {
        let mut vegas = linux(38.0, 20.0);
        lose(&mut vegas, Signal::Timeout);
        vegas.on_tx_start(&TxStart { now: Time::ZERO, nxt: 151, lsndtime: Time::ZERO });
        assert_eq!((vegas.cwnd(), vegas.ssthresh()), (1.0, 19.0));
        // Segments up to 151 are outstanding: slow start applies, and no avoidance at ssthresh.
        for una in 102..=140 {
            let rtt = Span::from_millis(500);
            receive(&mut vegas, &Ack { ca_open: false, ..ack_of(una, rtt) }, rtt);
        }
        assert_eq!((vegas.cwnd(), vegas.ssthresh(), vegas.base_rtt), (19.0, 19.0, 500_001));
        ack(&mut vegas, 151, 500);
        assert_eq!(vegas.beg_snd_nxt, 201);
    }

    #[test]
    fn after_a_timeout_the_paper_s_variant_is_reno_until_the_recovery_ends() {
        let mut vegas = paper(true, 38.0, 20.0);
        lose(&mut vegas, Signal::Timeout);
        vegas.on_tx_start(&TxStart { now: Time::ZERO, nxt: 151, lsndtime: Time::ZERO });
        for una in 102..=111 {
            let rtt = Span::from_millis(500);
            receive(&mut vegas, &Ack { ca_open: false, ..ack_of(una, rtt) }, rtt);
        }
        assert_eq!((vegas.cwnd(), vegas.ssthresh(), vegas.base_rtt), (11.0, 19.0, 100_000_000));
        ack(&mut vegas, 151, 500);
        assert_eq!(vegas.beg_snd_nxt, 201);
    }

    #[test]
    fn a_window_that_is_not_the_limit_grows_only_in_linux() {
        for (mut vegas, cwnd) in [(linux(38.0, 20.0), 39.0), (paper(true, 38.0, 20.0), 38.0)] {
            for una in [99, 100, 101] {
                let rtt = Span::from_millis(100);
                receive(&mut vegas, &Ack { cwnd_limited: false, ..ack_of(una, rtt) }, rtt);
            }
            assert_eq!(vegas.cwnd(), cwnd);
        }
    }
}
