//! Reno: cwnd doubles each RTT up to ssthresh, then grows by one segment an RTT; each congestion
//! signal halves it.
//!
//! Source: RFC 5681 §3.1, with RFC 3465's count of acknowledged segments in place of ACKs. Fields
//! of `Ns2Mode` choose ns-2's variants: `growth_per_ack` counts ACKs, so that delayed ACKs halve
//! the growth. The lesser of cwnd and `max_window` is halved. Deviations, all as in Linux:
//!
//! - in slow start an ACK may add all segments that it acknowledged, not at most two (RFC 3465's L
//!   = 2);
//! - cwnd is halved, not the flight size, and an unused cwnd does not grow (RFC 7661);
//! - windows are whole segments: half of an odd cwnd is rounded down, and cwnd grows by one when a
//!   whole cwnd was acknowledged (tcp_cong_avoid_ai).

use super::hystart_plus_plus::HystartPlusPlus;
use super::{Ack, Congestion, CongestionControl, CwndCnt, Signal, reno_cong_avoid};
use crate::TcpParams;
use crate::params::Ns2Mode;

/// State of RFC 5681.
#[derive(Clone)]
pub struct Reno {
    cwnd: f64,
    ssthresh: f64,
    cwnd_cnt: CwndCnt,
    ns2: Ns2Mode,
    max_window: f64,
    beta_ecn: Option<f64>,
    /// HyStart++, until the first slow start has ended.
    plus_plus: Option<Box<HystartPlusPlus>>,
}

impl Reno {
    /// The initial window, in slow start.
    pub fn new(params: &TcpParams) -> Reno {
        Reno {
            cwnd: f64::from(params.growth.initial_window),
            ssthresh: params.growth.initial_ssthresh.map_or(f64::INFINITY, f64::from),
            cwnd_cnt: CwndCnt::default(),
            ns2: params.ns2,
            max_window: params.growth.max_window.map_or(f64::INFINITY, f64::from),
            beta_ecn: params.growth.beta_ecn,
            plus_plus: HystartPlusPlus::new(params),
        }
    }

    /// RFC 9406.
    #[cold]
    fn slow_start_plus_plus(&mut self, ack: &Ack, limited: bool) {
        let Some(plus_plus) = &mut self.plus_plus else { return };
        if limited {
            self.cwnd = (self.cwnd + f64::from(plus_plus.growth(ack.acked))).min(self.ssthresh);
        }
        if plus_plus.ends(ack) {
            (self.ssthresh, self.plus_plus) = (self.cwnd, None);
        }
    }
}

impl CongestionControl for Reno {
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        let limited = ack.cwnd_limited || self.ns2.growth_unvalidated;
        if self.plus_plus.is_some() && self.cwnd < self.ssthresh {
            return self.slow_start_plus_plus(ack, limited);
        }
        if !limited {
            return;
        }
        if self.ns2.growth_per_ack {
            self.cwnd += if self.cwnd < self.ssthresh { 1.0 } else { 1.0 / self.cwnd };
        } else {
            self.cwnd = reno_cong_avoid(self.cwnd, self.ssthresh, ack.acked, &mut self.cwnd_cnt);
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        // RFC 8511 §3.1: an ECN echo may reduce cwnd less than a loss does.
        let beta = if event.signal == Signal::Ecn { self.beta_ecn } else { None };
        let left = self.cwnd.min(self.max_window) * beta.unwrap_or(0.5);
        self.ssthresh = if self.ns2.fractional_ssthresh { left } else { left.floor() }.max(2.0);
        self.cwnd_cnt = CwndCnt::default();
        self.plus_plus = None;
        if event.signal == Signal::Timeout {
            self.cwnd = 1.0;
        }
    }

    window_accessors!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Time;

    fn reno(cwnd: f64, ssthresh: f64, packet_counted: bool, max_window: f64) -> Reno {
        Reno {
            cwnd,
            ssthresh,
            cwnd_cnt: CwndCnt::default(),
            ns2: packet_counted.into(),
            max_window,
            beta_ecn: None,
            plus_plus: None,
        }
    }

    fn ack(reno: &mut Reno, acked: u32, cwnd_limited: bool) {
        reno.on_ack(&Ack {
            now: Time::ZERO,
            acked,
            rtt: None,
            one_way: None,
            srtt: None.into(),
            una: 0,
            nxt: 0,
            cwnd_limited,
            ca_open: true,
        });
    }

    fn congestion(reno: &mut Reno, signal: Signal) {
        reno.on_congestion(&Congestion { now: Time::ZERO, signal, inflight: 0 });
    }

    #[test]
    fn slow_start_doubles_and_avoidance_adds_one_a_window() {
        let mut reno = reno(10.0, 20.0, false, f64::INFINITY);
        ack(&mut reno, 10, true);
        assert_eq!(reno.cwnd(), 20.0);
        ack(&mut reno, 20, true);
        assert_eq!(reno.cwnd(), 21.0);
    }

    #[test]
    fn an_ack_that_crosses_ssthresh_counts_for_both() {
        let mut reno = reno(10.0, 15.0, false, f64::INFINITY);
        // Five of the eight segments grow cwnd in slow start. The other three count towards the
        // fifteen for the next segment.
        ack(&mut reno, 8, true);
        assert_eq!(reno.cwnd(), 15.0);
        ack(&mut reno, 11, true);
        assert_eq!(reno.cwnd(), 15.0);
        ack(&mut reno, 1, true);
        assert_eq!(reno.cwnd(), 16.0);
    }

    #[test]
    fn a_window_that_is_not_the_limit_does_not_grow_unless_packets_are_counted() {
        let mut bytes = reno(10.0, 20.0, false, f64::INFINITY);
        ack(&mut bytes, 1, false);
        assert_eq!(bytes.cwnd(), 10.0);
        let mut packets = reno(10.0, 20.0, true, f64::INFINITY);
        ack(&mut packets, 1, false);
        assert_eq!(packets.cwnd(), 11.0);
    }

    #[test]
    fn if_packets_are_counted_each_ack_counts_as_one() {
        let mut reno = reno(4.0, 4.0, true, f64::INFINITY);
        ack(&mut reno, 2, true);
        assert_eq!(reno.cwnd(), 4.25);
    }

    #[test]
    fn congestion_halves_the_window_in_force_to_at_least_two_segments() {
        for (cwnd, max_window, half) in
            [(20.0, f64::INFINITY, 10.0), (50.0, 20.0, 10.0), (3.0, 20.0, 2.0)]
        {
            let mut reno = reno(cwnd, f64::INFINITY, true, max_window);
            congestion(&mut reno, Signal::Loss);
            assert_eq!((reno.ssthresh(), reno.cwnd()), (half, cwnd));
        }
    }

    #[test]
    fn an_ecn_echo_reduces_to_beta_ecn_if_set_and_a_loss_to_a_half() {
        let ssthresh = |signal| {
            let mut reno = reno(33.0, f64::INFINITY, false, f64::INFINITY);
            reno.beta_ecn = Some(0.8);
            congestion(&mut reno, signal);
            reno.ssthresh()
        };
        assert_eq!([Signal::Ecn, Signal::Loss, Signal::Timeout].map(ssthresh), [26.0, 16.0, 16.0]);
    }

    #[test]
    fn a_timeout_leaves_one_segment() {
        let mut reno = reno(20.0, f64::INFINITY, false, f64::INFINITY);
        congestion(&mut reno, Signal::Timeout);
        assert_eq!((reno.ssthresh(), reno.cwnd()), (10.0, 1.0));
    }
}
