//! The retransmission timeout: smoothed RTT, its variation, and exponential backoff.
//!
//! Source: RFC 6298 (Jacobson and Karels, SIGCOMM 1988). srtt moves by 1/8 of the error, rttvar by
//! 1/4 of its size, RTO = srtt + 4 · rttvar, bounded; doubled at each timeout, up to the upper
//! bound, until the next RTT sample. Deviations, by parameter: Linux applies the lower bound to the
//! variance term, which is the largest of a round trip (`min_rto_on_variance`; tcp_rtt_estimator in
//! tcp_input.c); ns-2 measures in ticks of its clock (`tick_ns`), counting those that began while
//! the segment was under way. Deviations from ns-2: real numbers, not eighths of a tick; it forgets
//! srtt after four timeouts in a row.

use crate::TcpParams;
use units::{Span, Time};

/// State of RFC 6298.
#[derive(Debug)]
pub struct RttEstimator {
    /// ns; 0 before the first sample.
    srtt: f64,
    /// Four times the mean deviation, ns.
    variance: f64,
    peak: Option<Peak>,
    rto: Span,
    /// Two RTTs.
    probe: Span,
    backoff: u32,
    latest: Span,
    min_rtt: Span,
    tick: u64,
    min: f64,
    max: f64,
}

/// Linux's variance term: the largest of a round trip counts, at once where it is larger than
/// before, by a quarter where it is less. All in ns, of four times the mean deviation.
#[derive(Debug)]
struct Peak {
    held: f64,
    of_round: f64,
    /// What had been sent when the round trip began.
    round_end: u32,
}

impl Peak {
    /// `variance` after a sample by the ACK of all below `una`; `least`: the lower bound.
    #[inline]
    fn update(&mut self, variance: f64, least: f64, (una, nxt): (u32, u32)) {
        self.of_round = self.of_round.max(variance);
        self.held = self.held.max(self.of_round);
        if una > self.round_end {
            self.held -= (self.held - self.of_round) * 0.25;
            *self = Peak { held: self.held, of_round: least, round_end: nxt };
        }
    }
}

impl RttEstimator {
    /// Before the first sample.
    pub fn new(params: &TcpParams) -> RttEstimator {
        RttEstimator {
            srtt: 0.0,
            variance: 0.0,
            peak: params.timers.min_rto_on_variance.then_some(Peak {
                held: 0.0,
                of_round: 0.0,
                round_end: 0,
            }),
            rto: Span(params.timers.initial_rto_ns),
            probe: Span(params.timers.initial_rto_ns),
            backoff: 0,
            latest: Span::ZERO,
            min_rtt: Span(u64::MAX),
            tick: params.timers.tick_ns.max(1),
            min: params.timers.min_rto_ns as f64,
            max: params.timers.max_rto_ns as f64,
        }
    }

    /// A segment that left at `sent` and was not sent again is acknowledged; `outstanding` after
    /// it: from where to where.
    #[inline]
    pub fn sample(&mut self, sent: Time, outstanding: (u32, u32), now: Time) -> Span {
        let rtt = now.since(sent);
        self.latest = rtt;
        self.min_rtt = self.min_rtt.min(rtt);
        let r = if self.tick == 1 {
            rtt.0.max(1) as f64
        } else {
            // Ticks of the clock that began while it was under way, at least one.
            ((now.0 / self.tick - sent.0 / self.tick).max(1) * self.tick) as f64
        };
        let first = self.srtt == 0.0;
        let error = if first { 0.0 } else { r - self.srtt };
        if first {
            self.srtt = r;
            self.variance = 2.0 * r;
        } else {
            self.srtt += error * 0.125;
        }
        let grown = error.abs() - self.variance * 0.25;
        let rto = if let Some(peak) = &mut self.peak {
            if first {
                let held = self.variance.max(self.min);
                *peak = Peak { held, of_round: held, round_end: outstanding.1 };
            } else {
                // A falling RTT is no reason to wait for longer.
                self.variance += if error < 0.0 && grown > 0.0 { grown * 0.125 } else { grown };
                peak.update(self.variance, self.min, outstanding);
            }
            self.srtt + peak.held
        } else {
            self.variance += if first { 0.0 } else { grown };
            (self.srtt + self.variance).max(self.min)
        };
        self.rto = Span(rto.min(self.max) as u64);
        self.backoff = 0;
        self.probe = Span((2.0 * self.srtt) as u64);
        rtt
    }

    /// The timeout in force.
    #[inline]
    pub fn rto(&self) -> Span {
        if self.backoff == 0 {
            return self.rto;
        }
        (self.rto * (1 << self.backoff)).min(Span(self.max as u64))
    }

    /// When to probe for a lost tail (RFC 8985 §7.2); a lone segment's ACK may be delayed, for so
    /// long as an RTO is at least.
    #[inline]
    pub fn probe(&self, lone: bool) -> Span {
        // Linux's timers don't wait for less than 2 ms.
        self.probe + if lone { Span(self.min as u64) } else { Span::from_millis(2) }
    }

    /// The timer went off: twice as long the next time, up to the upper bound.
    pub fn back_off(&mut self) {
        if self.rto().0 < self.max as u64 && self.backoff < u64::BITS - 1 {
            self.backoff += 1;
        }
    }

    /// The timeouts were spurious: the next one is not longer for them.
    pub fn end_backoff(&mut self) {
        self.backoff = 0;
    }

    /// Smoothed RTT.
    #[inline]
    pub fn srtt(&self) -> Option<Span> {
        (self.srtt > 0.0).then_some(Span(self.srtt as u64))
    }

    /// The last sample; zero before the first.
    pub fn latest(&self) -> Span {
        self.latest
    }

    /// The least RTT so far.
    #[inline]
    pub fn min_rtt(&self) -> Option<Span> {
        (self.min_rtt.0 != u64::MAX).then_some(self.min_rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn params(min_rto_on_variance: bool, tick_ns: u64) -> TcpParams {
        crate::cc::test::params().with(|p| {
            p.timers.tick_ns = tick_ns;
            p.timers.min_rto_on_variance = min_rto_on_variance;
        })
    }

    fn sample(rtt: &mut RttEstimator, ms: u64) {
        rtt.sample(Time(0), (1, 1), Time(ms * MS));
    }

    #[test]
    fn the_held_variance_falls_when_more_than_the_round_is_acknowledged() {
        // Segment 5 was the next to be sent when the round began: its ACK is the first to come of
        // the next.
        for (una, held) in [(5, 100.0), (6, 77.5)] {
            let mut peak = Peak { held: 100.0, of_round: 10.0, round_end: 5 };
            peak.update(10.0, 0.0, (una, 9));
            assert_eq!(peak.held, held, "all below {una}");
        }
    }

    #[test]
    fn a_steady_rtt_ends_at_the_lower_bound() {
        for (on_variance, rto) in [(false, 200), (true, 320)] {
            let mut rtt = RttEstimator::new(&params(on_variance, 1));
            for round in 0..100 {
                rtt.sample(Time(0), (round, round), Time(120 * MS));
            }
            assert_eq!(rtt.srtt(), Some(Span::from_millis(120)));
            assert_eq!(rtt.rto(), Span::from_millis(rto));
        }
    }

    #[test]
    fn a_jump_widens_the_timeout_by_the_variation() {
        // From 100 ms, variation 50, to 500: variation 3/4 · 50 + 1/4 · 400 = 137.5, srtt 150;
        // 150 + 4 · 137.5 = 700.
        let mut rtt = RttEstimator::new(&params(false, 1));
        sample(&mut rtt, 100);
        sample(&mut rtt, 500);
        assert_eq!(rtt.rto(), Span::from_millis(700));
        assert_eq!(rtt.min_rtt(), Some(Span::from_millis(100)));
    }

    #[test]
    fn the_largest_variation_of_a_round_counts_and_is_forgotten_slowly() {
        let mut rtt = RttEstimator::new(&params(true, 1));
        let mut step = |una, nxt, ms| {
            rtt.sample(Time(0), (una, nxt), Time(ms * MS));
            rtt.rto().0 as f64 / MS as f64
        };
        // Variance terms: 2 · 100, below which it does not fall, and 3/4 · 200 + 400.
        assert_eq!(step(0, 1, 100), 300.0);
        assert_eq!(step(2, 10, 500), 150.0 + 550.0);
        // Now 412.5, but the round's largest is remembered; at its end a quarter of what that lies
        // above 412.5 goes.
        assert_eq!(step(5, 12, 150), 700.0);
        assert_eq!(step(11, 20, 150), 150.0 + 515.625);
    }

    #[test]
    fn a_falling_rtt_widens_it_less() {
        // 400 below the mean: by an eighth of 400 - 250.
        let falls = |linux| {
            let mut rtt = RttEstimator::new(&params(linux, 1));
            sample(&mut rtt, 500);
            sample(&mut rtt, 100);
            rtt.rto()
        };
        assert_eq!(falls(true), Span((450.0 + 1018.75) as u64 * MS + 750_000));
        assert_eq!(falls(false), Span::from_millis(450 + 1150));
    }

    #[test]
    fn backoff_doubles_to_the_upper_bound_and_a_sample_ends_it() {
        let mut rtt = RttEstimator::new(&params(false, 1));
        let mut timeouts = Vec::new();
        for _ in 0..8 {
            rtt.back_off();
            timeouts.push(rtt.rto().0 / (1000 * MS));
        }
        assert_eq!(timeouts, [2, 4, 8, 16, 32, 60, 60, 60]);
        sample(&mut rtt, 100);
        assert_eq!(rtt.rto(), Span::from_millis(300));
    }

    #[test]
    fn a_coarse_clock_counts_the_ticks_that_began_and_at_least_one() {
        let mut rtt = RttEstimator::new(&params(false, 10 * MS));
        // From 9 to 21 ms two ticks began, at 10 and at 20.
        rtt.sample(Time(9 * MS), (1, 1), Time(21 * MS));
        assert_eq!(rtt.srtt(), Some(Span::from_millis(20)));
        let mut rtt = RttEstimator::new(&params(false, 10 * MS));
        assert_eq!(rtt.sample(Time(11 * MS), (1, 1), Time(12 * MS)), Span::from_millis(1));
        assert_eq!(rtt.srtt(), Some(Span::from_millis(10)));
    }
}
