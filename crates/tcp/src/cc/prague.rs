//! Prague: a scalable congestion control for L4S, whose flows of short RTT grow as at 25 ms.
//!
//! The window has fractions. Each round trip it grows by one segment less the marked share; marks
//! reduce it by alpha/2, once a round trip, where alpha is a moving average of the marked share. So
//! in the mean it is 2 (1 - p)/p segments. Growth goes on while it is reduced. Below 25 ms growth
//! and alpha follow a virtual RTT of 25 ms once slow start is four round trips past.
//!
//! cwnd is the window rounded up; an ACK moves it by one segment at most. No PRR.
//!
//! Source: Linux's tcp_prague version 0.7 of the L4STeam (RFC 9331 §4.3 has the requirements; the
//! draft is draft-briscoe-iccrg-prague-congestion-control), in its order: what an ACK tells reduces
//! the window before the window grows, and alpha is last. Its 25 ms are in eighths of a µs, as its
//! SRTT; where it compares them with a clock it divides by eight, so they are 25 ms there too.
//! Deviations: below four segments the window stays a window, where version 0.7 keeps a rate;
//! segments keep their size; without bursts of 250 µs each segment is paced. Version 0.7 finds no
//! classic queue, and neither do we.

use super::{AckEvent, Congestion, CongestionControl, Delivered, Reno, Signal};
use crate::TcpParams;
use units::{Span, Time};

/// One segment, and one of alpha's units.
const ONE: u64 = 1 << 20;
/// A moving average that is a sixteenth of this is 1.
const ALPHA_ONE: u64 = 1 << 24;
const SHIFT_G: u32 = 4;
/// The RTT that flows of shorter RTT behave as if they had (REF_RTT).
const VIRTUAL_RTT: Span = Span::from_millis(25);
/// Round trips after slow start until they do.
const TRANSITION: u32 = 4;
const LEAST_CWND: f64 = 2.0;

/// Its state.
pub struct Prague {
    cwnd: f64,
    ssthresh: f64,
    /// The window, in 2^-20 segments (frac_cwnd).
    window: u64,
    /// Sixteen times the moving average, in 2^-24, which so carries remainders (alpha).
    alpha: u64,
    saw_ce: bool,
    /// One past the window whose marks are counted, and what was delivered when it began.
    next_seq: u32,
    before: Delivered,
    /// What was delivered up to the last ACK.
    last: Delivered,
    /// When alpha was last updated, and the window last reduced for marks.
    alpha_stamp: Time,
    reduced: Option<Time>,
    /// Round trips outside of slow start.
    rounds: u32,
    /// What a packet has over its payload: its pace is that of whole packets.
    packet_over_payload: f64,
    /// What there is without AccECN.
    fallback: Reno,
}

impl Prague {
    /// At the initial window, in slow start.
    pub fn new(params: &TcpParams) -> Prague {
        Prague {
            cwnd: f64::from(params.growth.initial_window),
            ssthresh: params.growth.initial_ssthresh.map_or(f64::INFINITY, f64::from),
            window: u64::from(params.growth.initial_window) * ONE,
            alpha: 0,
            saw_ce: false,
            next_seq: 0,
            before: Delivered::default(),
            last: Delivered::default(),
            alpha_stamp: Time::ZERO,
            reduced: None,
            rounds: 0,
            packet_over_payload: f64::from(params.mss + params.header_bytes)
                / f64::from(params.mss),
            fallback: Reno::new(params),
        }
    }

    /// The Reno of the same host, before its first segment.
    pub fn fallback(&self) -> &Reno {
        &self.fallback
    }

    fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    fn is_rtt_independent(&self) -> bool {
        !self.in_slow_start() && self.rounds >= TRANSITION
    }

    fn update_alpha(&mut self, packets: u32, ce: u32) {
        let share = u64::from(ce) * ALPHA_ONE / u64::from(packets.max(1));
        self.alpha = (self.alpha - (self.alpha >> SHIFT_G) + share).min(ALPHA_ONE << SHIFT_G);
    }

    /// The segments a round trip by which the window grows, in 2^-20: (srtt / 25 ms)^2.
    fn increase(&self, srtt: Option<Span>) -> u64 {
        let Some(srtt) = srtt.filter(|srtt| self.rounds >= TRANSITION && *srtt < VIRTUAL_RTT)
        else {
            return ONE;
        };
        let (srtt, target) = (srtt.0 * 8 / 1000, VIRTUAL_RTT.0 * 8 / 1000);
        rounded(srtt * srtt * ONE, target * target)
    }

    /// `acked` segments that were not marked were delivered. In slow start the window is cwnd, even
    /// where a first mark that came with them has just halved it.
    fn grow(&mut self, acked: u32, srtt: Option<Span>) {
        let mut acked = u64::from(acked);
        if self.in_slow_start() {
            let after = (self.cwnd + acked as f64).min(self.ssthresh);
            acked -= (after - self.cwnd) as u64;
            self.cwnd = after;
            self.window = after as u64 * ONE;
        }
        let grown = rounded(acked * self.increase(srtt) * ONE, self.window.max(1));
        self.window += grown.max(acked);
    }

    /// cwnd follows the window by one segment (prague_update_cwnd).
    fn step(&mut self) {
        let wanted = (self.window.div_ceil(ONE) as f64).max(LEAST_CWND);
        if wanted > self.cwnd {
            self.cwnd += 1.0;
        } else if wanted < self.cwnd {
            self.cwnd -= 1.0;
            self.ssthresh = self.cwnd;
        }
    }

    /// At the end of a round trip, and not before 25 ms have passed where RTTs play no part
    /// (prague_should_update_ewma, prague_update_alpha).
    fn end_round(&mut self, event: &AckEvent) {
        let long_enough =
            !self.is_rtt_independent() || event.now.since(self.alpha_stamp) >= VIRTUAL_RTT;
        if event.una < self.next_seq || !long_enough {
            return;
        }
        let Delivered { packets, ce } = event.delivered;
        if self.saw_ce {
            let packets = packets.wrapping_sub(self.before.packets);
            self.update_alpha(packets, ce.wrapping_sub(self.before.ce));
            self.alpha_stamp = event.now;
        }
        self.rounds += u32::from(!self.in_slow_start());
        (self.next_seq, self.before) = (event.nxt, event.delivered);
    }

    fn halve(&mut self) {
        self.window -= self.window / 2;
    }
}

/// A quotient, to the nearest whole number.
fn rounded(dividend: u64, divisor: u64) -> u64 {
    (dividend + divisor / 2) / divisor
}

impl CongestionControl for Prague {
    /// The window is moved by `cong_control`.
    fn on_ack(&mut self, _: &super::Ack) {}

    fn cong_control(&mut self, event: &AckEvent) {
        let acked = event.delivered.packets.wrapping_sub(self.last.packets);
        let ce = event.delivered.ce.wrapping_sub(self.last.ce);
        self.last = event.delivered;
        if ce > 0 && !std::mem::replace(&mut self.saw_ce, true) {
            self.halve();
        }
        let unmarked = acked.saturating_sub(ce);
        if unmarked > 0 && event.cwnd_limited && event.lossless {
            self.grow(unmarked, event.srtt);
        }
        self.step();
        self.end_round(event);
    }

    fn on_congestion(&mut self, event: &Congestion) {
        match event.signal {
            Signal::Loss | Signal::Timeout => self.halve(),
            Signal::Ecn => {
                let soon =
                    self.reduced.is_some_and(|reduced| event.now.since(reduced) < VIRTUAL_RTT);
                if soon && self.is_rtt_independent() {
                    return;
                }
                self.reduced = Some(event.now);
                let alpha = self.alpha >> SHIFT_G;
                self.window -= (self.window * alpha + ALPHA_ONE) / (2 * ALPHA_ONE);
            }
        }
        if event.signal == Signal::Timeout {
            self.cwnd = 1.0;
        }
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// The sender, in a recovery, where a timeout left one segment, or where it undoes a reduction.
    fn set_cwnd(&mut self, cwnd: f64) {
        self.cwnd = cwnd;
        self.window = self.window.max(cwnd as u64 * ONE);
    }

    #[inline]
    fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    fn set_ssthresh(&mut self, ssthresh: f64) {
        self.ssthresh = ssthresh;
    }

    /// Twice the rate in slow start, but for its last round trip.
    fn pacing_gain(&self) -> f64 {
        let gain = if self.cwnd < self.ssthresh / 2.0 { 2.0 } else { 1.0 };
        gain * self.packet_over_payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prague() -> Prague {
        let mut prague = Prague::new(&TcpParams::LINUX);
        prague.ssthresh = prague.cwnd;
        prague
    }

    fn alphas(packets: u32, ce: u32, windows: usize) -> Vec<f64> {
        let mut prague = prague();
        (0..windows)
            .map(|_| {
                prague.update_alpha(packets, ce);
                (prague.alpha >> SHIFT_G) as f64 / ALPHA_ONE as f64
            })
            .collect()
    }

    fn near(got: &[f64], wanted: &[f64]) {
        for (got, wanted) in got.iter().zip(wanted) {
            assert!((got - wanted).abs() < 1e-4, "{got} is not {wanted}");
        }
    }

    #[test]
    fn alpha_averages_over_sixteen_windows_and_forgets_no_remainder() {
        near(&alphas(10, 10, 6), &[0.0625, 0.1211, 0.1760, 0.2275, 0.2758, 0.3211]);
        near(&alphas(10, 1, 3), &[0.00625, 0.0121, 0.0176]);
        near(&alphas(10, 1, 500)[499..], &[0.1]);
        near(&alphas(1000, 1, 500)[499..], &[0.001]);
    }

    /// The mean window where one in so many segments is marked, over the later four fifths of 2500
    /// round trips of 40 ms.
    fn mean_window(one_in: u32) -> f64 {
        let (mut prague, rtt) = (prague(), Span::from_millis(40));
        let (mut now, mut una, mut all, mut sum) = (Time::ZERO, 0, Delivered::default(), 0.0);
        for round in 0..2500 {
            now += rtt;
            let nxt = una + prague.cwnd as u32;
            let mut reduced = false;
            for _ in 0..prague.cwnd as u32 {
                una += 1;
                all.packets += 1;
                let ce = all.packets.is_multiple_of(one_in);
                all.ce += u32::from(ce);
                let event = AckEvent {
                    delivered: all,
                    una,
                    nxt,
                    now,
                    srtt: Some(rtt),
                    cwnd_limited: true,
                    lossless: true,
                };
                if ce && !reduced {
                    reduced = true;
                    prague.on_congestion(&Congestion { now, signal: Signal::Ecn, inflight: 0 });
                }
                prague.cong_control(&event);
            }
            sum += if round < 500 { 0.0 } else { prague.window as f64 / ONE as f64 };
        }
        sum / 2000.0
    }

    #[test]
    fn the_window_is_that_of_the_share_of_marks() {
        for (one_in, wanted) in [(4, 6.0), (10, 18.0), (20, 38.0)] {
            let mean = mean_window(one_in);
            assert!((mean / wanted - 1.0).abs() < 0.15, "1 in {one_in}: {mean}, not {wanted}");
        }
    }

    #[test]
    fn below_25_ms_the_window_grows_as_much_less_as_the_square_of_the_rtt() {
        let mut prague = prague();
        prague.rounds = TRANSITION;
        let increases = [5, 10, 25, 80].map(|ms| prague.increase(Some(Span::from_millis(ms))));
        near(&increases.map(|ai| ai as f64 / ONE as f64), &[0.04, 0.16, 1.0, 1.0]);
        prague.rounds = TRANSITION - 1;
        assert_eq!(prague.increase(Some(Span::from_millis(5))), ONE);
    }

    fn first_mark(packets: u32) -> Prague {
        let mut prague = Prague::new(&TcpParams::LINUX);
        prague.cong_control(&AckEvent {
            delivered: Delivered { packets, ce: 1 },
            una: packets,
            nxt: 12,
            now: Time::ZERO,
            srtt: None,
            cwnd_limited: true,
            lossless: true,
        });
        prague
    }

    #[test]
    fn a_first_mark_that_comes_alone_ends_slow_start_and_halves() {
        let prague = first_mark(1);
        assert_eq!((prague.cwnd(), prague.ssthresh()), (9.0, 9.0), "one step of the way to 5");
        assert_eq!(prague.window, 5 * ONE);
    }

    #[test]
    fn a_first_mark_beside_an_unmarked_segment_does_not() {
        let prague = first_mark(2);
        assert_eq!((prague.cwnd(), prague.ssthresh()), (11.0, f64::INFINITY));
        assert_eq!(prague.window, 11 * ONE);
    }

    #[test]
    fn a_loss_halves() {
        let mut prague = prague();
        prague.on_congestion(&Congestion { now: Time::ZERO, signal: Signal::Loss, inflight: 0 });
        assert_eq!(prague.window, 5 * ONE);
        assert_eq!(prague.cwnd(), 10.0);
    }
}
