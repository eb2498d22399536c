//! The rate of a link over time: constant, or steps, once or repeated.
//!
//! A transmission takes the time that its bits need at the rates in force while it lasts. So a link
//! that slows down or stops in the middle of a packet finishes that packet at the exact time.

use serde::{Deserialize, Serialize};
use units::{Rate, Span, Time};

/// From `at_ns` on the link has a rate of `bps` bit/s; 0 is an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RateStep {
    /// Time of the step, ns.
    pub at_ns: u64,
    /// Rate from then on, bit/s.
    pub bps: u64,
}

/// Steps in order of time, the first at 0.
#[derive(Clone, Debug)]
pub struct Schedule {
    steps: Vec<RateStep>,
    period: Option<u64>,
    /// The bits of a whole period, bit·ns/s; undefined without a period.
    pass: u128,
}

impl Schedule {
    /// Steps that repeat every `period` ns, if given. No step at all means no rate limit.
    pub fn new(steps: Vec<RateStep>, period: Option<u64>) -> Schedule {
        assert!(steps.first().is_none_or(|s| s.at_ns == 0), "a schedule's first step is at 0");
        assert!(
            steps.windows(2).all(|w| w[0].at_ns < w[1].at_ns),
            "a schedule's steps are in order of time"
        );
        assert!(
            period.is_none_or(|p| steps.last().is_none_or(|s| s.at_ns < p)),
            "a schedule's period is longer than its steps"
        );
        let mut schedule = Schedule { steps, period, pass: 0 };
        let pass = schedule.bit_ns(Time::ZERO, Time(period.unwrap_or(0)), u128::MAX);
        schedule.pass = pass;
        schedule
    }

    /// Whether the link has no rate limit.
    #[inline]
    pub fn is_unlimited(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether the rate never changes.
    pub fn is_constant(&self) -> bool {
        self.steps.len() <= 1
    }

    /// The rate at `time`; `None`: there is no limit.
    pub fn rate_at(&self, time: Time) -> Option<Rate> {
        if self.steps.is_empty() {
            return None;
        }
        let (index, _) = self.locate(time.0);
        Some(Rate(self.steps[index].bps))
    }

    /// The end of the step in force at `time`; `Time::NEVER` for the last step.
    pub fn next_change(&self, time: Time) -> Time {
        if self.is_constant() {
            return Time::NEVER;
        }
        let (index, base) = self.locate(time.0);
        self.end_of(index, base)
    }

    /// The end of a transmission of `bytes` that begins at `start`; `Time::NEVER` if the link stops
    /// forever before that.
    ///
    /// # Examples
    ///
    /// ```rust
    /// use link::{RateStep, Schedule};
    /// use units::Time;
    ///
    /// // 1500 bytes take 1 ms at 12 Mbit/s. The link stops after 0.5 ms, for 10 ms.
    /// let steps = [(0, 12_000_000), (500_000, 0), (10_500_000, 12_000_000)];
    /// let steps = steps.map(|(at_ns, bps)| RateStep { at_ns, bps });
    /// let schedule = Schedule::new(steps.to_vec(), None);
    /// assert_eq!(schedule.finish(Time(0), 1500), Time(11_000_000));
    /// ```
    #[inline]
    pub fn finish(&self, start: Time, bytes: u64) -> Time {
        match self.steps.as_slice() {
            [] => start,
            [step] => Rate(step.bps).time_for(bytes).map_or(Time::NEVER, |span| start + span),
            _ => self.finish_over_steps(start, bytes),
        }
    }

    /// The time that `bytes` take at the fastest rate in force before `end`: no transmission is
    /// quicker. `None`: the link stops forever, or does not run before `end`.
    pub fn least_time(&self, bytes: u64, end: Time) -> Option<Span> {
        if self.finish(Time::ZERO, bytes) == Time::NEVER {
            return None;
        }
        let in_force = self.steps.iter().filter(|step| step.at_ns < end.0);
        match in_force.map(|step| step.bps).max() {
            Some(fastest) => Rate(fastest).time_for(bytes),
            None => Some(Span::ZERO),
        }
    }

    /// The bits that the link can carry from `from` to `to`, never faster than `most`.
    pub fn capacity_bits(&self, from: Time, to: Time, most: Option<Rate>) -> Option<u128> {
        let most = most.map_or(u128::MAX, |rate| u128::from(rate.0));
        if self.steps.is_empty() {
            return (most < u128::MAX).then(|| most * u128::from(to.since(from).0) / 1_000_000_000);
        }
        Some(self.bit_ns(from, to, most) / 1_000_000_000)
    }

    fn bit_ns(&self, from: Time, to: Time, most: u128) -> u128 {
        let (mut at, mut bit_ns) = (from, 0u128);
        while at < to {
            let (index, base) = self.locate(at.0);
            if let Some(period) = self.period
                && at.0 == base
                && at.0 + period < to.0
            {
                // Whole passes at once.
                let passes = to.since(at).0 / period;
                bit_ns += u128::from(passes) * self.pass_bit_ns(most);
                at += Span(passes * period);
                continue;
            }
            let end = self.end_of(index, base).min(to);
            bit_ns += u128::from(self.steps[index].bps).min(most) * u128::from(end.since(at).0);
            at = end;
        }
        bit_ns
    }

    /// The same in one pass of a schedule that repeats.
    fn pass_bit_ns(&self, most: u128) -> u128 {
        let each = (0..self.steps.len()).map(|index| {
            let (begins, ends) = (self.steps[index].at_ns, self.end_of(index, 0).0);
            u128::from(self.steps[index].bps).min(most) * u128::from(ends - begins)
        });
        each.sum()
    }

    fn finish_over_steps(&self, start: Time, bytes: u64) -> Time {
        // Bits times 10^9, so that a rate in bit/s times nanoseconds needs no division.
        let mut left = u128::from(bytes) * 8_000_000_000;
        let mut at = start;
        loop {
            let (index, base) = self.locate(at.0);
            let bps = u128::from(self.steps[index].bps);
            let end = self.end_of(index, base);
            let carried = bps * u128::from(end.since(at).0);
            if carried >= left {
                return at + Span(left.div_ceil(bps) as u64);
            }
            if end == Time::NEVER
                || (self.period.is_some() && self.steps.iter().all(|s| s.bps == 0))
            {
                return Time::NEVER;
            }
            left -= carried;
            at = end;
            if let Some(period) = self.period
                && at.0.is_multiple_of(period)
                && left > self.pass
            {
                // Whole passes at once: a pass may take nanoseconds, and the transmission hours.
                let passes = (left - 1) / self.pass;
                left -= passes * self.pass;
                at += Span(
                    u64::try_from(passes).map_or(u64::MAX, |passes| passes.saturating_mul(period)),
                );
            }
        }
    }

    /// The step in force at `t` and the start of the pass it belongs to.
    fn locate(&self, t: u64) -> (usize, u64) {
        let base = self.period.map_or(0, |period| t / period * period);
        let index = self.steps.partition_point(|s| s.at_ns <= t - base) - 1;
        (index, base)
    }

    fn end_of(&self, index: usize, base: u64) -> Time {
        match (self.steps.get(index + 1), self.period) {
            (Some(next), _) => Time(base.saturating_add(next.at_ns)),
            (None, Some(period)) => Time(base.saturating_add(period)),
            (None, None) => Time::NEVER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(pairs: &[(u64, u64)]) -> Vec<RateStep> {
        pairs.iter().map(|&(at_ns, bps)| RateStep { at_ns, bps }).collect()
    }

    #[test]
    fn a_transmission_spans_steps_and_passes() {
        // 8 bit/s for 1 s, then 16 bit/s for 1 s, repeated: 3 bytes a pass.
        let schedule = Schedule::new(steps(&[(0, 8), (1_000_000_000, 16)]), Some(2_000_000_000));
        assert_eq!(schedule.finish(Time(0), 3), Time(2_000_000_000));
        assert_eq!(schedule.finish(Time(0), 4), Time(3_000_000_000));
        assert_eq!(schedule.finish(Time(500_000_000), 2), Time(1_750_000_000));
        let (from, to) = (Time(500_000_000), Time(3_500_000_000));
        assert_eq!(schedule.capacity_bits(from, to, None), Some(4 + 16 + 8 + 8));
        assert_eq!(schedule.capacity_bits(from, to, Some(Rate(10))), Some(4 + 10 + 8 + 5));
        assert_eq!(schedule.rate_at(Time(3_000_000_000)), Some(Rate(16)));
        assert_eq!(schedule.next_change(Time(3_000_000_000)), Time(4_000_000_000));
    }

    #[test]
    fn the_capacity_over_many_passes_is_that_of_each() {
        let schedule = Schedule::new(steps(&[(0, 8), (3, 0), (5, 40)]), Some(7));
        for (from, to) in [(0, 7), (0, 700), (6, 701), (7, 14), (13, 15), (350, 699)] {
            let each = (from..to).map(|at| schedule.rate_at(Time(at)).expect("it has one").0);
            for most in [None, Some(Rate(10))] {
                let least = |bps: u64| u128::from(most.map_or(bps, |rate| bps.min(rate.0)));
                let bits = each.clone().map(least).sum::<u128>() / 1_000_000_000;
                let most_bits = most.map_or(u128::MAX, |rate| u128::from(rate.0));
                let bit_ns = schedule.bit_ns(Time(from), Time(to), most_bits);
                assert_eq!(bit_ns, each.clone().map(least).sum(), "{from} to {to}");
                assert_eq!(schedule.capacity_bits(Time(from), Time(to), most), Some(bits));
            }
        }
    }

    #[test]
    fn a_transmission_over_very_many_passes_is_computed_in_one_step() {
        // 1 bit/s in every other nanosecond: 1500 bytes take 24 000 s, less the outage at the end.
        let schedule = Schedule::new(steps(&[(0, 1), (1, 0)]), Some(2));
        assert_eq!(schedule.finish(Time(0), 1500), Time(24_000_000_000_000 - 1));
        assert_eq!(schedule.finish(Time(1), 1500), Time(24_000_000_000_000 + 1));
        assert_eq!(
            Schedule::new(steps(&[(0, 1), (1, 0)]), Some(1 << 60)).finish(Time(0), 1500),
            Time::NEVER
        );
    }

    #[test]
    fn a_link_that_stops_for_good_never_finishes() {
        assert_eq!(Schedule::new(steps(&[(0, 8), (10, 0)]), None).finish(Time(0), 1), Time::NEVER);
        assert_eq!(
            Schedule::new(steps(&[(0, 0), (10, 0)]), Some(20)).finish(Time(0), 1),
            Time::NEVER
        );
        assert_eq!(Schedule::new(steps(&[(0, 0)]), None).finish(Time(0), 1), Time::NEVER);
    }

    #[test]
    fn no_transmission_is_quicker_than_at_the_fastest_rate_before_the_end() {
        // 8 Mbit/s for the last of three seconds, after an outage and 4 Mbit/s: a byte takes at
        // least 1 µs.
        let schedule = Schedule::new(
            steps(&[(0, 0), (1_000_000_000, 4_000_000), (2_000_000_000, 8_000_000)]),
            None,
        );
        assert_eq!(schedule.least_time(1, Time(3_000_000_000)), Some(Span(1_000)));
        assert_eq!(schedule.least_time(1, Time(2_000_000_000)), Some(Span(2_000)));
        assert_eq!(
            schedule.least_time(1, Time(1_000_000_000)),
            None,
            "it does not run before the end"
        );
        assert_eq!(Schedule::new(vec![], None).least_time(1, Time(1)), Some(Span::ZERO));
        // Bytes that are not sent before a link stops forever are never sent.
        let stops = Schedule::new(steps(&[(0, 8), (1_000_000_000, 0)]), None);
        assert_eq!(stops.least_time(1, Time(3_000_000_000)), Some(Span(1_000_000_000)));
        assert_eq!(stops.least_time(2, Time(3_000_000_000)), None);
    }

    #[test]
    fn without_a_rate_a_link_can_carry_what_its_shaper_lets_through() {
        let unlimited = Schedule::new(vec![], None);
        assert_eq!(unlimited.capacity_bits(Time(0), Time(2_000_000_000), None), None);
        assert_eq!(unlimited.capacity_bits(Time(0), Time(2_000_000_000), Some(Rate(7))), Some(14));
    }

    #[test]
    fn a_constant_rate_agrees_with_a_schedule_of_equal_steps() {
        let constant = Schedule::new(steps(&[(0, 1_234_567)]), None);
        let stepped = Schedule::new(steps(&[(0, 1_234_567), (777, 1_234_567)]), Some(1555));
        for bytes in [1, 40, 1500, 9000] {
            assert_eq!(constant.finish(Time(123), bytes), stepped.finish(Time(123), bytes));
        }
    }
}
