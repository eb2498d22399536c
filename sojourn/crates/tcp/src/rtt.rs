//! The retransmission timeout: smoothed RTT, its variation, and exponential backoff.
//!
//! Source: RFC 6298 (Jacobson and Karels, SIGCOMM 1988):
//!
//! ```text
//! SRTT   <- SRTT + (R' - SRTT)/8
//! RTTVAR <- RTTVAR + (|R' - SRTT| - RTTVAR)/4
//! RTO    <- max(SRTT + 4 RTTVAR, min_rto), at most max_rto
//! ```
//!
//! Each timeout doubles the RTO, up to `max_rto`, until the next RTT sample. Deviations, by
//! parameter:
//!
//! - `timer_tick_ns` is the clock of Linux's timers. An RTO is whole ticks, rounded up, and a
//!   backoff doubles the ticks (icsk_rto is in jiffies).
//! - `min_rto_on_variance` is Linux's tcp_rtt_estimator: RTO = SRTT + max(4 RTTVAR, min_rto), where
//!   RTTVAR is the largest of a round trip. Then samples are whole µs, SRTT is whole eighths of a
//!   µs, and quotients are rounded down. An eighth of a µs decides whether a congestion control
//!   that paces by SRTT sends a segment earlier.
//! - `tick_ns` is ns-2's clock: a sample is the number of its ticks that began while the segment
//!   was in flight.
//!
//! Deviations from ns-2: real numbers in place of eighths of a tick; ns-2 resets SRTT after four
//! timeouts in a row.

use crate::rate::micros;
use crate::{AckSegment, Millis, TcpParams};
use units::{Span, Time, whole};

/// State of RFC 6298.
#[derive(Debug)]
pub struct RttEstimator {
    /// SRTT, ns; 0 before the first sample.
    srtt: f64,
    /// 4 RTTVAR, ns, unless `micros` has it.
    mdev: f64,
    micros: Option<Micros>,
    rto: Span,
    /// 2 SRTT, the probe timeout without its allowance (RFC 8985 §7.2).
    pto: Span,
    backoff: u32,
    latest_rtt: Span,
    min_rtt: Span,
    tick: u64,
    timer_tick: u64,
    min_rto: Span,
    max_rto: Span,
}

/// Linux's state, in whole µs (tcp_rtt_estimator).
#[derive(Debug)]
struct Micros {
    /// SRTT, eighths of a µs; 0 before the first sample.
    srtt: i64,
    /// 4 RTTVAR of all samples (mdev_us), the largest of this round trip, and the smoothed maximum.
    /// That maximum rises at once. At the end of a round trip it falls by a quarter of the distance
    /// to the round trip's largest.
    mdev: i64,
    mdev_max: i64,
    rttvar: i64,
    /// SND.NXT when the round trip began.
    rtt_seq: u32,
    /// The lower bound of the variance term.
    least: i64,
}

impl Micros {
    fn new(min_rto: Span) -> Micros {
        let least = micros(Time(min_rto.0)) as i64;
        Micros { srtt: 0, mdev: 0, mdev_max: 0, rttvar: 0, rtt_seq: 0, least }
    }

    /// Adds a sample, µs, from an ACK of all data below `una`. Returns the RTO, µs.
    #[inline]
    fn sample(&mut self, rtt: u64, (una, nxt): (u32, u32)) -> u64 {
        let rtt = rtt as i64;
        if self.srtt == 0 {
            self.srtt = 8 * rtt;
            self.mdev = 2 * rtt;
            self.rttvar = self.mdev.max(self.least);
            self.mdev_max = self.rttvar;
            self.rtt_seq = nxt;
        } else {
            let error = rtt - (self.srtt >> 3);
            self.srtt += error;
            let deviation = error.abs() - (self.mdev >> 2);
            // A fall of the RTT widens RTTVAR by only 1/32.
            self.mdev += if error < 0 && deviation > 0 { deviation >> 3 } else { deviation };
            self.end_round((una, nxt));
        }
        self.srtt = self.srtt.max(1);
        (self.srtt >> 3) as u64 + self.rttvar as u64
    }

    #[inline]
    fn end_round(&mut self, (una, nxt): (u32, u32)) {
        self.mdev_max = self.mdev_max.max(self.mdev);
        self.rttvar = self.rttvar.max(self.mdev_max);
        if una > self.rtt_seq {
            self.rttvar -= (self.rttvar - self.mdev_max) >> 2;
            (self.rtt_seq, self.mdev_max) = (nxt, self.least);
        }
    }
}

/// Smoothed RTT, ns; 0 before the first sample. Only `span` rounds it to whole ns.
#[derive(Clone, Copy, Debug)]
pub struct Srtt(f64);

impl Srtt {
    /// The smoothed RTT, if there was a sample.
    #[inline]
    pub fn span(self) -> Option<Span> {
        (self.0 > 0.0).then_some(Span(whole(self.0)))
    }
}

impl From<Option<Span>> for Srtt {
    fn from(srtt: Option<Span>) -> Srtt {
        Srtt(srtt.map_or(0.0, |srtt| srtt.0 as f64))
    }
}

impl RttEstimator {
    /// The state before the first sample.
    pub fn new(params: &TcpParams) -> RttEstimator {
        RttEstimator {
            srtt: 0.0,
            mdev: 0.0,
            micros: params
                .timers
                .min_rto_on_variance
                .then(|| Micros::new(Span(params.timers.min_rto_ns))),
            rto: Span(params.timers.initial_rto_ns),
            pto: Span(params.timers.initial_rto_ns),
            backoff: 0,
            latest_rtt: Span::ZERO,
            min_rtt: Span(u64::MAX),
            tick: params.timers.tick_ns.max(1),
            timer_tick: params.timers.timer_tick_ns,
            min_rto: Span(params.timers.min_rto_ns),
            max_rto: Span(params.timers.max_rto_ns),
        }
    }

    /// Adds the RTT sample of an ACK. SRTT and RTTVAR follow from the first segment that the ACK
    /// measures, which left at `sent`. The least RTT, in whole µs, follows from the last, which
    /// left at `last` (tcp_update_rtt_min). `outstanding`: SND.UNA and SND.NXT after the ACK.
    #[inline]
    pub fn sample(&mut self, sent: Time, last: Time, outstanding: (u32, u32), now: Time) -> Span {
        let rtt = now.since(sent);
        let us = micros(now) - micros(sent);
        let latest = if last == sent { us } else { micros(now) - micros(last) };
        self.latest_rtt = Span(latest * 1000);
        self.min_rtt = self.min_rtt.min(self.latest_rtt);
        let rto = match &mut self.micros {
            Some(state) => {
                let us =
                    if self.tick == 1 { us } else { ticks_between(self.tick, sent, now) / 1000 };
                let rto = state.sample(us, outstanding);
                self.srtt = (state.srtt * 125) as f64;
                self.pto = Span((state.srtt >> 2) as u64 * 1000);
                rto * 1000
            }
            None => self.real_sample(sent, now),
        };
        let ticks = |tick| rto.div_ceil(tick) * tick;
        self.rto =
            Span(if self.timer_tick > 1 { ticks(self.timer_tick) } else { rto }).min(self.max_rto);
        self.backoff = 0;
        rtt
    }

    /// RFC 6298 in real numbers. Returns the RTO, ns.
    #[inline]
    fn real_sample(&mut self, sent: Time, now: Time) -> u64 {
        let r = if self.tick == 1 {
            now.since(sent).0.max(1) as i64 as f64
        } else {
            ticks_between(self.tick, sent, now) as f64
        };
        if self.srtt == 0.0 {
            self.srtt = r;
            self.mdev = 2.0 * r;
        } else {
            let error = r - self.srtt;
            self.srtt += error * 0.125;
            self.mdev += error.abs() - self.mdev * 0.25;
        }
        self.pto = Span(whole(2.0 * self.srtt));
        whole(larger(self.srtt + self.mdev, self.min_rto.0 as i64 as f64))
    }

    /// The RTO, with its backoff.
    #[inline]
    pub fn rto(&self) -> Span {
        if self.backoff == 0 {
            return self.rto;
        }
        (self.rto * (1 << self.backoff)).min(self.max_rto)
    }

    /// PTO, the delay of a tail loss probe (RFC 8985 §7.2; tcp_schedule_loss_probe): 2 SRTT + 2 ms.
    /// The ACK of a lone segment may be delayed, so for a lone segment it is 2 SRTT + min_rto.
    #[inline]
    pub fn pto(&self, lone: bool) -> Span {
        // 2 ms is TCP_TIMEOUT_MIN_US.
        self.pto + if lone { self.min_rto } else { Span::from_millis(2) }
    }

    /// A timeout: the RTO doubles, up to `max_rto` (RFC 6298 §5.5).
    pub fn back_off(&mut self) {
        if self.rto() < self.max_rto && self.backoff < u64::BITS - 1 {
            self.backoff += 1;
        }
    }

    /// The timeouts were spurious: ends the backoff.
    pub fn reset_backoff(&mut self) {
        self.backoff = 0;
    }

    /// Smoothed RTT.
    #[inline]
    pub fn srtt(&self) -> Srtt {
        Srtt(self.srtt)
    }

    /// The RTT of the segment measured last; 0 before the first.
    pub fn latest_rtt(&self) -> Span {
        self.latest_rtt
    }

    /// The least RTT so far.
    #[inline]
    pub fn min_rtt(&self) -> Option<Span> {
        (self.min_rtt.0 != u64::MAX).then_some(self.min_rtt)
    }
}

/// ns-2's ticks that began while the segment was in flight, at least one, ns.
fn ticks_between(tick: u64, sent: Time, now: Time) -> u64 {
    (now.0 / tick - sent.0 / tick).max(1) * tick
}

/// The larger of two numbers, in one instruction: neither is NaN.
#[inline(always)]
fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// Which segments give an RTT sample.
#[derive(Clone, Copy, Debug)]
pub enum RttSource {
    /// Timestamps (RFC 7323 §4.1): each ACK that advances SND.UNA is a sample. If the ACK covers
    /// one segment that was sent once, its echo is the time of sending.
    Timestamps {
        /// The stamp of the last ACK, which data segments echo (TS.Recent, RFC 7323 §4.3).
        ts_recent: Option<Millis>,
    },
    /// One segment at a time, never a retransmission (Karn's rule, RFC 6298 §3).
    OneSegment {
        /// The timed segment and its departure.
        timed: Option<(u32, Time)>,
    },
}

impl RttSource {
    /// The state before the first segment.
    pub fn new(params: &TcpParams) -> RttSource {
        if params.timestamps {
            RttSource::Timestamps { ts_recent: None }
        } else {
            RttSource::OneSegment { timed: None }
        }
    }

    /// The segments carry timestamps.
    pub fn has_timestamps(&self) -> bool {
        matches!(self, RttSource::Timestamps { .. })
    }

    /// TSecr of the next segment.
    #[inline]
    pub fn ts_recent(&self) -> Option<Millis> {
        match self {
            RttSource::Timestamps { ts_recent } => *ts_recent,
            RttSource::OneSegment { .. } => None,
        }
    }

    /// An ACK with this stamp arrives.
    #[inline]
    pub fn on_ack(&mut self, stamp: Millis) {
        if let RttSource::Timestamps { ts_recent } = self {
            *ts_recent = Some(stamp);
        }
    }

    /// A segment leaves for the first time.
    #[inline]
    pub fn on_transmit(&mut self, seq: u32, now: Time) {
        if let RttSource::OneSegment { timed: timed @ None } = self {
            *timed = Some((seq, now));
        }
    }

    /// A retransmission leaves, or a timeout marks all segments as lost: an ACK may answer either
    /// copy.
    pub fn on_retransmit(&mut self) {
        if let RttSource::OneSegment { timed } = self {
            *timed = None;
        }
    }

    /// The departure of the segment that an ACK measures, if any. The ACK advances SND.UNA.
    #[inline]
    pub fn sent(&mut self, ack: &AckSegment) -> Option<Time> {
        match self {
            RttSource::Timestamps { .. } => (ack.echo != Time::NEVER).then_some(ack.echo),
            RttSource::OneSegment { timed } => Some(timed.take_if(|(seq, _)| ack.ack > *seq)?.1),
        }
    }
}

/// Whether an ACK's echo is a time before `sent`, in whole ms (tcp_tsopt_ecr_before).
pub fn echo_is_before(echo: Time, sent: Time) -> bool {
    echo.0 / 1_000_000 < sent.0 / 1_000_000
}

/// The RTT according to an ACK's echo (tcp_rtt_tsopt_us): whole ms, at least one.
pub fn rtt_by_echo(ack: &AckSegment, now: Time) -> Option<Span> {
    let ms = |time: Time| time.0 / 1_000_000;
    (ack.echo != Time::NEVER).then(|| Span::from_millis((ms(now) - ms(ack.echo)).max(1)))
}

/// The departure of the segment that an ACK answers, according to its echo.
pub fn sent_by_echo(ack: &AckSegment, now: Time) -> Option<Time> {
    Some(Time(now.0.saturating_sub(rtt_by_echo(ack, now)?.0)))
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
        rtt.sample(Time(0), Time(0), (1, 1), Time(ms * MS));
    }

    #[test]
    fn the_variance_falls_once_a_whole_round_is_acknowledged() {
        // Segment 5 was the next to be sent when the round began. So the ACK of segment 5 is the
        // first of the next round.
        for (una, rttvar) in [(5, 100_000), (6, 77_500)] {
            let mut state = Micros {
                mdev: 10_000,
                mdev_max: 10_000,
                rttvar: 100_000,
                rtt_seq: 5,
                ..Micros::new(Span::ZERO)
            };
            state.end_round((una, 9));
            assert_eq!(state.rttvar, rttvar, "all below {una}");
        }
    }

    #[test]
    fn a_steady_rtt_ends_at_the_lower_bound() {
        // A quarter of 3 µs rounds down to nothing, so Linux's variance term stays 3 µs above its
        // bound.
        for (on_variance, rto_us) in [(false, 200_000), (true, 320_003)] {
            let mut rtt = RttEstimator::new(&params(on_variance, 1));
            for round in 0..100 {
                rtt.sample(Time(0), Time(0), (round, round), Time(120 * MS));
            }
            assert_eq!(rtt.srtt().span(), Some(Span::from_millis(120)));
            assert_eq!(rtt.rto(), Span::from_micros(rto_us));
        }
    }

    #[test]
    fn a_jump_widens_the_timeout_by_the_variation() {
        // From an RTT of 100 ms, variation 50, to 500 ms: variation 3/4 · 50 + 1/4 · 400 = 137.5,
        // srtt 150; 150 + 4 · 137.5 = 700.
        let mut rtt = RttEstimator::new(&params(false, 1));
        sample(&mut rtt, 100);
        sample(&mut rtt, 500);
        assert_eq!(rtt.rto(), Span::from_millis(700));
        assert_eq!(rtt.min_rtt(), Some(Span::from_millis(100)));
    }

    #[test]
    fn the_largest_variation_of_a_round_counts_and_decays_slowly() {
        let mut rtt = RttEstimator::new(&params(true, 1));
        let mut step = |una, nxt, ms| {
            rtt.sample(Time(0), Time(0), (una, nxt), Time(ms * MS));
            rtt.rto().0 as f64 / MS as f64
        };
        // Variance terms: 2 · 100, the lower bound; then 3/4 · 200 + 400.
        assert_eq!(step(0, 1, 100), 300.0);
        assert_eq!(step(2, 10, 500), 150.0 + 550.0);
        // The term is now 412.5, but the round's largest stays. At the end of the round a quarter
        // of the excess over 412.5 is removed.
        assert_eq!(step(5, 12, 150), 700.0);
        assert_eq!(step(11, 20, 150), 150.0 + 515.625);
    }

    #[test]
    fn a_falling_rtt_widens_the_timeout_less() {
        // The sample is 400 below the mean: the term grows by an eighth of 400 - 250.
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
    fn linux_keeps_whole_microseconds_and_eighths_of_their_mean() {
        // From 0.9 µs to 1000.1 µs are 1000 µs by Linux's clock. Each µs above the whole µs of the
        // mean then adds an eighth: 8000, 8003, 8010.
        let mut rtt = RttEstimator::new(&params(true, 1));
        rtt.sample(Time(900), Time(900), (1, 1), Time(1_000_100));
        for us in [1003, 1007] {
            rtt.sample(Time(0), Time(0), (1, 1), Time(1000 * us + 999));
        }
        assert_eq!(rtt.srtt().span(), Some(Span(8010 * 125)));
        // The probe timeout is a quarter of that, 2002 µs, plus 2 ms.
        assert_eq!(rtt.pto(false), Span(4_002_000));
    }

    #[test]
    fn whole_ticks_are_doubled() {
        // 48.3 ms + 200 ms are 248.3 ms: 63 ticks of 4 ms. Doubled in ns they would be 125 ticks,
        // not 126.
        let mut rtt = RttEstimator::new(&params(true, 1).with(|p| p.timers.timer_tick_ns = 4 * MS));
        rtt.sample(Time(0), Time(0), (1, 1), Time(48_300_000));
        let mut ticks = Vec::new();
        for _ in 0..4 {
            ticks.push(rtt.rto().0 as f64 / (4 * MS) as f64);
            rtt.back_off();
        }
        assert_eq!(ticks, [63.0, 126.0, 252.0, 504.0]);
    }

    #[test]
    fn a_coarse_clock_counts_the_ticks_that_began_and_at_least_one() {
        let mut rtt = RttEstimator::new(&params(false, 10 * MS));
        // Two ticks began between 9 and 21 ms, at 10 and at 20.
        rtt.sample(Time(9 * MS), Time(9 * MS), (1, 1), Time(21 * MS));
        assert_eq!(rtt.srtt().span(), Some(Span::from_millis(20)));
        let mut rtt = RttEstimator::new(&params(false, 10 * MS));
        assert_eq!(
            rtt.sample(Time(11 * MS), Time(11 * MS), (1, 1), Time(12 * MS)),
            Span::from_millis(1)
        );
        assert_eq!(rtt.srtt().span(), Some(Span::from_millis(10)));
    }
}
