//! LEDBAT: a background transfer that keeps the queueing delay at TARGET and yields to flows that
//! build a longer queue.
//!
//! The receiver measures each segment's one-way delay, so queues on the return path and a constant
//! difference of the clocks do not count. The queueing delay is the current delay less the least of
//! the last ten minutes. Each round trip cwnd moves by GAIN · (TARGET - queueing delay)/TARGET
//! segments: up by one with an empty queue, not at all at TARGET, down above it. So a flow that
//! fills a long queue reduces LEDBAT to two segments. Under CoDel or fq_codel no queue reaches
//! TARGET, so LEDBAT only reacts to losses, like other TCPs: Gong et al. (2014) call it
//! reprioritisation.
//!
//! Source: RFC 6817; the names are those of its §2.4.2. Its parameters: BASE_HISTORY 10 minutes,
//! CURRENT_FILTER 4 samples with their minimum as FILTER, ALLOWED_INCREASE 1, MIN_CWND 2; TARGET
//! and GAIN are settings, 100 ms and 1 by default (BitTorrent's, ns-3's; RFC 7928 §5.4 tests with 5
//! ms and 10); INIT_CWND is `initial_window`, 2.
//!
//! The RFC leaves three choices. There is no slow start: the RFC's pseudo-code has none, and ns-3's
//! overruns the queue once before the first delay is used. An ECN echo counts as a loss. An ACK
//! brings one delay sample, that of the newest segment, even if it acknowledges two. Deviations:
//! delay samples of a fast recovery are ignored; CTO is the sender's RTO. ns-3's clocks count whole
//! milliseconds. Its sample is the delay of the earliest segment plus the time by which the
//! receiver delays the ACK.

use super::{Ack, Congestion, CongestionControl, Signal};
use crate::TcpParams;
use units::{Span, Time};

/// The number of minutes in the base history.
const BASE_HISTORY: usize = 10;
/// The number of samples for the current delay.
const CURRENT_FILTER: usize = 4;
/// The segments by which the window may exceed the flight size.
const ALLOWED_INCREASE: f64 = 1.0;
/// The lower bound of the window, except after a timeout.
const MIN_CWND: f64 = 2.0;
/// The unit of BASE_HISTORY, ns.
const MINUTE: u64 = 60_000_000_000;

/// State of RFC 6817. Windows are in segments.
pub struct Ledbat {
    cwnd: f64,
    /// cwnd after the last loss, for the sender's recovery. There is no slow start.
    ssthresh: f64,
    target: f64,
    gain: f64,
    /// The least delay of each of the last minutes with a sample, as a ring; `Span(u64::MAX)`:
    /// none.
    base_delays: [Span; BASE_HISTORY],
    /// The entry of `base_delays` for this minute, and the number of this minute.
    newest: usize,
    last_rollover: Option<u64>,
    current_delays: [Span; CURRENT_FILTER],
    /// The oldest of `current_delays`.
    oldest: usize,
}

impl Ledbat {
    /// The initial window, without delay samples.
    pub fn new(params: &TcpParams) -> Ledbat {
        Ledbat {
            cwnd: f64::from(params.growth.initial_window),
            ssthresh: f64::INFINITY,
            target: params.growth.ledbat_target_ns as f64,
            gain: params.growth.ledbat_gain,
            base_delays: [Span(u64::MAX); BASE_HISTORY],
            newest: 0,
            last_rollover: None,
            current_delays: [Span(u64::MAX); CURRENT_FILTER],
            oldest: 0,
        }
    }

    fn update_current_delay(&mut self, delay: Span) {
        self.current_delays[self.oldest] = delay;
        self.oldest = (self.oldest + 1) % CURRENT_FILTER;
    }

    /// Adds a sample. Each entry is the minimum of a minute, so an old path or a clock drift
    /// disappears after ten.
    fn update_base_delay(&mut self, delay: Span, now: Time) {
        let minute = now.0 / MINUTE;
        if self.last_rollover == Some(minute) {
            let least = &mut self.base_delays[self.newest];
            *least = (*least).min(delay);
            return;
        }
        self.last_rollover = Some(minute);
        self.newest = (self.newest + 1) % BASE_HISTORY;
        self.base_delays[self.newest] = delay;
    }

    /// FILTER(current_delays) - MIN(base_delays); none before the first sample.
    fn queuing_delay(&self) -> Option<Span> {
        let least = |delays: &[Span]| delays.iter().copied().fold(Span(u64::MAX), Span::min);
        let (current, base) = (least(&self.current_delays), least(&self.base_delays));
        (base != Span(u64::MAX)).then(|| current.saturating_sub(base))
    }
}

impl CongestionControl for Ledbat {
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(delay) = ack.one_way {
            self.update_base_delay(delay, ack.now);
            self.update_current_delay(delay);
        }
        let Some(queuing_delay) = self.queuing_delay() else { return };
        let off_target = (self.target - queuing_delay.0 as f64) / self.target;
        let acked = f64::from(ack.acked);
        let cwnd = self.cwnd + self.gain * off_target * acked / self.cwnd;
        // The flight size before this ACK. A flow that does not use its cwnd does not get a larger
        // one.
        let flightsize = f64::from(ack.nxt - ack.una) + acked;
        self.cwnd = cwnd.min(flightsize + ALLOWED_INCREASE).max(MIN_CWND);
    }

    /// The sender calls this at most once an RTT.
    fn on_congestion(&mut self, event: &Congestion) {
        self.ssthresh = self.cwnd.min((self.cwnd / 2.0).max(MIN_CWND));
        if event.signal == Signal::Timeout {
            self.cwnd = 1.0;
        }
    }

    window_accessors!();

    /// There is no slow start, so the pacing rate is always that of congestion avoidance.
    fn pacing_gain(&self) -> f64 {
        1.2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::test::params;

    /// TARGET 100 ms, GAIN 1, a window of ten, no delay samples.
    fn ledbat() -> Ledbat {
        Ledbat::new(&params())
    }

    fn at(minute: u64) -> Time {
        Time(minute * MINUTE)
    }

    /// An ACK for one segment with this delay and this flight size before the ACK.
    fn ack_at(ledbat: &mut Ledbat, now: Time, delay_ms: u64, flightsize: u32) {
        ledbat.on_ack(&Ack {
            now,
            acked: 1,
            rtt: None,
            one_way: Some(Span::from_millis(delay_ms)),
            srtt: None.into(),
            una: 100,
            nxt: 99 + flightsize,
            cwnd_limited: true,
            ca_open: true,
        });
    }

    fn ack(ledbat: &mut Ledbat, delay_ms: u64) {
        let flightsize = ledbat.cwnd() as u32;
        ack_at(ledbat, Time::ZERO, delay_ms, flightsize);
    }

    fn after(delays_ms: &[u64]) -> Ledbat {
        let mut ledbat = ledbat();
        for &delay in delays_ms {
            ack(&mut ledbat, delay);
        }
        ledbat.set_cwnd(10.0);
        ledbat
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn growth_is_in_proportion_to_the_distance_from_target() {
        // The base delay is 40 ms. An ACK of one of ten segments adds 1/10 if the queue is empty,
        // and nothing at TARGET.
        for (delay, grown) in [(40, 0.1), (90, 0.05), (140, 0.0), (190, -0.05), (340, -0.2)] {
            let mut ledbat = after(&[40, delay, delay, delay]);
            ack(&mut ledbat, delay);
            assert!(near(ledbat.cwnd(), 10.0 + grown), "{delay} ms: {}", ledbat.cwnd());
        }
    }

    #[test]
    fn growth_is_proportional_to_gain_and_inversely_to_target() {
        // RFC 7928 §5.4: 5 ms and 10. With 1 ms queued: 10 · 4/5 · 1/10.
        let rfc7928 = params().with(|p| {
            p.growth.ledbat_target_ns = 5_000_000;
            p.growth.ledbat_gain = 10.0;
        });
        let mut ledbat = Ledbat::new(&rfc7928);
        for delay in [20, 21, 21, 21] {
            ack(&mut ledbat, delay);
        }
        ledbat.set_cwnd(10.0);
        ack(&mut ledbat, 21);
        assert!(near(ledbat.cwnd(), 10.8));
    }

    #[test]
    fn the_current_delay_is_the_least_of_four_samples() {
        let mut ledbat = after(&[40, 340, 340, 340]);
        // The sample of 40 ms is still among the last four, then no longer.
        assert_eq!(ledbat.queuing_delay(), Some(Span::ZERO));
        ack(&mut ledbat, 340);
        assert_eq!(ledbat.queuing_delay(), Some(Span::from_millis(300)));
        ack(&mut ledbat, 60);
        assert_eq!(ledbat.queuing_delay(), Some(Span::from_millis(20)));
    }

    #[test]
    fn the_base_delay_is_the_least_of_ten_minutes() {
        let mut ledbat = ledbat();
        ack_at(&mut ledbat, at(0), 40, 10);
        for minute in 1..=9 {
            ack_at(&mut ledbat, at(minute), 60 + minute, 10);
            ack_at(&mut ledbat, at(minute), 60, 10);
        }
        let base = |ledbat: &Ledbat| ledbat.base_delays.iter().copied().min();
        assert_eq!(base(&ledbat), Some(Span::from_millis(40)));
        ack_at(&mut ledbat, at(10), 70, 10);
        assert_eq!(base(&ledbat), Some(Span::from_millis(60)));
    }

    #[test]
    fn the_window_is_at_most_a_segment_above_the_data_in_flight_and_at_least_two() {
        for (flightsize, cwnd) in [(30, 10.1), (6, 7.0), (1, 2.0)] {
            let mut ledbat = after(&[40, 40, 40, 40]);
            ack_at(&mut ledbat, Time::ZERO, 40, flightsize);
            assert!(near(ledbat.cwnd(), cwnd), "{flightsize} in flight: {}", ledbat.cwnd());
        }
        // 4.96 s are queued: off_target is -48.6. One ACK removes 48.6/10; the next would remove
        // more than the window.
        let mut ledbat = after(&[40, 5_000, 5_000, 5_000]);
        ack(&mut ledbat, 5_000);
        assert!(near(ledbat.cwnd(), 10.0 - 4.86));
        ack(&mut ledbat, 5_000);
        assert_eq!(ledbat.cwnd(), 2.0);
    }

    #[test]
    fn a_loss_halves_the_window_to_at_least_two_segments() {
        for (cwnd, left) in [(20.0, 10.0), (3.0, 2.0), (1.0, 1.0)] {
            let mut ledbat = ledbat();
            ledbat.set_cwnd(cwnd);
            ledbat.on_congestion(&Congestion {
                now: Time::ZERO,
                signal: Signal::Loss,
                inflight: 0,
            });
            assert_eq!((ledbat.ssthresh(), ledbat.cwnd()), (left, cwnd));
        }
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_the_next_ack_two() {
        let mut ledbat = after(&[40, 40, 40, 40]);
        ledbat.on_congestion(&Congestion { now: Time::ZERO, signal: Signal::Timeout, inflight: 0 });
        assert_eq!(ledbat.cwnd(), 1.0);
        ack_at(&mut ledbat, Time::ZERO, 40, 10);
        assert_eq!(ledbat.cwnd(), 2.0);
    }
}
