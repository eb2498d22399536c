//! Prague as in draft-briscoe-iccrg-prague-congestion-control, in real numbers.
//!
//! The window follows alpha at once: alpha (§2.3.2), reduction (§2.4.2), growth (§2.4.3), in this
//! order, as in DCTCP. Slow start ends with the first mark (§2.4.5). Over the first 500 round trips
//! a flow follows its own RTT. Then growth, alpha and the time without a further reduction follow a
//! reference RTT, the larger of 25 ms and the flow's own (§2.4.4). Segments are paced at cwnd/SRTT,
//! and at twice that in slow start (§2.5.1). A burst is the number of segments that the pacing rate
//! sends in 250 µs (§2.5.2).
//!
//! Source: the text of version 00, from its authors' repository; for version 04, which expired in
//! January 2025, the values that implementers quote: 25 ms, 1/16, 500 round trips. Choices where
//! the draft is silent: the initial alpha is 1, as in RFC 8257 §4.2, to which the draft refers; the
//! least window is two segments. Options of the draft that are absent: a smaller reduction for a
//! loss right after a mark (§2.4.1), and windows of less than a segment (§3.5).

use super::since;
use crate::TcpParams;
use crate::cc::{
    Ack, AckEvent, Congestion, CongestionControl, Delivered, MarkBased, Needs, Paced, Signal,
};
use units::{Span, Time};

/// The gain of alpha.
const G: f64 = 1.0 / 16.0;
/// Round trips before the reference RTT applies (D).
const ROUNDS: u32 = 500;
const LEAST_CWND: f64 = 2.0;
/// MAX_BURST_DELAY, s.
const BURST_DELAY: f64 = 250e-6;

/// The state of this variant.
pub struct PragueDraft {
    cwnd: f64,
    ssthresh: f64,
    alpha: f64,
    /// The first segment sent after the last update of alpha, the time of that update, and the
    /// counts then.
    next_seq: u32,
    updated: Time,
    before: Delivered,
    /// The counts at the last ACK.
    last: Delivered,
    /// Marks have reduced cwnd: the first segment sent since the reduction, and the time of the
    /// reduction.
    cwr: Option<(u32, Time)>,
    /// Round trips so far.
    rounds: u32,
    /// The lower bound of the reference RTT; zero: each flow follows its own RTT.
    virtual_rtt: Span,
    mss: f64,
    paced: Option<u64>,
    /// Segments that may leave at once.
    burst: u32,
}

impl PragueDraft {
    /// The initial window, in slow start.
    pub fn new(params: &TcpParams) -> PragueDraft {
        PragueDraft {
            cwnd: f64::from(params.growth.initial_window),
            ssthresh: params.growth.initial_ssthresh.map_or(f64::INFINITY, f64::from),
            alpha: 1.0,
            next_seq: 0,
            updated: Time::ZERO,
            before: Delivered::default(),
            last: Delivered::default(),
            cwr: None,
            rounds: 0,
            virtual_rtt: Span(params.growth.prague_virtual_rtt_ns),
            mss: f64::from(params.mss),
            paced: None,
            burst: 1,
        }
    }

    /// The ratio of the reference RTT to the RTT (M).
    fn reference(&self, srtt: Span) -> f64 {
        if self.rounds < ROUNDS || srtt == Span::ZERO {
            return 1.0;
        }
        (self.virtual_rtt.as_secs_f64() / srtt.as_secs_f64()).max(1.0)
    }

    /// Whether a reference RTT has passed since that time. The caller knows that a round trip has
    /// passed.
    fn passed(&self, since: Time, now: Time) -> bool {
        self.rounds < ROUNDS || now.since(since) >= self.virtual_rtt
    }

    /// Updates alpha at the end of a reference RTT.
    fn update_alpha(&mut self, event: &AckEvent) {
        if event.una <= self.next_seq || !self.passed(self.updated, event.now) {
            return;
        }
        let Delivered { packets, ce } = since(self.before, event.delivered);
        self.alpha += G * (f64::from(ce) / f64::from(packets.max(1)) - self.alpha);
        (self.next_seq, self.updated, self.before) = (event.nxt, event.now, event.delivered);
        self.rounds = self.rounds.saturating_add(1);
    }

    /// Reduces cwnd for a mark, once a reference RTT.
    fn reduce(&mut self, event: &AckEvent) {
        let still = |(seq, at)| event.una <= seq || !self.passed(at, event.now);
        if self.cwr.is_some_and(still) {
            return;
        }
        self.cwr = Some((event.nxt, event.now));
        self.cwnd = ((1.0 - self.alpha / 2.0) * self.cwnd).max(LEAST_CWND);
        self.ssthresh = self.cwnd;
    }

    /// Grows cwnd for `unmarked` delivered segments without a mark.
    fn grow(&mut self, unmarked: u32, srtt: Span) {
        let mut unmarked = f64::from(unmarked);
        if self.cwnd < self.ssthresh {
            let after = (self.cwnd + unmarked).min(self.ssthresh);
            unmarked -= after - self.cwnd;
            self.cwnd = after;
        }
        let reference = self.reference(srtt);
        self.cwnd += unmarked / (reference * reference * self.cwnd);
    }
}

impl CongestionControl for PragueDraft {
    fn needs(&self) -> Needs {
        Needs::PRAGUE
    }

    fn on_ack(&mut self, _: &Ack) {}

    /// `cong_control` handles marks: a reduction may be due before the sender's own reduction has
    /// ended.
    fn on_congestion(&mut self, event: &Congestion) {
        if event.signal == Signal::Ecn {
            return;
        }
        self.ssthresh = (self.cwnd / 2.0).max(LEAST_CWND);
        self.cwnd = if event.signal == Signal::Timeout { 1.0 } else { self.ssthresh };
    }

    window_accessors!();
}

impl MarkBased for PragueDraft {
    fn cong_control(&mut self, event: &AckEvent) {
        let Delivered { packets, ce } = since(self.last, event.delivered);
        self.last = event.delivered;
        let srtt = event.srtt.unwrap_or(Span::ZERO);
        self.update_alpha(event);
        if ce > 0 {
            self.reduce(event);
        }
        let unmarked = packets.saturating_sub(ce);
        if unmarked > 0 && event.cwnd_limited && event.lossless {
            self.grow(unmarked, srtt);
        }
        if srtt > Span::ZERO {
            let gain = if self.cwnd < self.ssthresh / 2.0 { 2.0 } else { 1.0 };
            let window = self.cwnd.max(event.in_flight.into());
            let segments = gain * window / srtt.as_secs_f64();
            self.paced = Some((segments * self.mss) as u64);
            self.burst = (segments * BURST_DELAY).max(1.0) as u32;
        }
    }
}

impl Paced for PragueDraft {
    #[inline]
    fn rate(&self) -> Option<u64> {
        self.paced
    }

    #[inline]
    fn burst(&self) -> u32 {
        self.burst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> PragueDraft {
        PragueDraft::new(&TcpParams::LINUX)
    }

    fn event(packets: u32, ce: u32, at_ms: u64) -> AckEvent {
        AckEvent {
            delivered: Delivered { packets, ce },
            una: packets,
            nxt: packets + 10,
            now: Time(at_ms * 1_000_000),
            srtt: Some(Span::from_millis(10)),
            in_flight: 10,
            cwnd_limited: true,
            lossless: true,
        }
    }

    /// §2.4.5: slow start ends at a single mark, whatever else its ACK delivers.
    #[test]
    fn the_first_mark_ends_slow_start_beside_unmarked_segments_too() {
        let mut draft = draft();
        draft.cong_control(&event(2, 1, 10));
        // Half of the first round trip's segments were marked: alpha falls from 1 by a sixteenth of
        // a half.
        assert_eq!(draft.alpha, 1.0 - 0.5 / 16.0);
        assert_eq!(draft.ssthresh, 10.0 * (1.0 - draft.alpha / 2.0));
        assert_eq!(draft.cwnd, draft.ssthresh + 1.0 / draft.ssthresh);
    }

    /// §2.3.2: alpha is updated once a round trip throughout a connection.
    #[test]
    fn alpha_decays_while_nothing_is_marked() {
        let mut draft = draft();
        (1..=20).for_each(|round| draft.cong_control(&event(20 * round, 0, u64::from(round))));
        let wanted = (0..20).fold(1.0, |alpha, _| alpha * 15.0 / 16.0);
        assert!((draft.alpha - wanted).abs() < 1e-12, "{}", draft.alpha);
    }

    /// §2.4.4: at 10 ms M is 2.5. After D round trips the window grows by 1/M² segments a round
    /// trip.
    #[test]
    fn after_500_round_trips_growth_and_reductions_follow_the_reference_rtt() {
        let mut draft = draft();
        (draft.cwnd, draft.ssthresh, draft.alpha) = (10.0, 10.0, 0.5);
        draft.grow(10, Span::from_millis(10));
        assert_eq!(draft.cwnd, 11.0);
        (draft.cwnd, draft.rounds, draft.next_seq) = (10.0, ROUNDS, u32::MAX);
        draft.grow(10, Span::from_millis(10));
        assert_eq!(draft.cwnd, 10.16);
        let windows = [(20, 100), (40, 110), (60, 124), (80, 125)].map(|(packets, ms)| {
            draft.cwnd = 10.0;
            draft.reduce(&event(packets, 1, ms));
            draft.cwnd
        });
        assert_eq!(windows, [7.5, 10.0, 10.0, 7.5], "one in 25 ms");
        draft.rounds = 0;
        draft.cwnd = 10.0;
        draft.reduce(&event(100, 1, 134));
        assert_eq!(draft.cwnd, 7.5, "one a round trip of 10 ms");
    }

    #[test]
    fn a_loss_halves_the_window_and_growth_stops_until_the_recovery_ends() {
        let mut draft = draft();
        let signal = Signal::Loss;
        draft.on_congestion(&Congestion { now: Time::ZERO, signal, inflight: 10 });
        draft.cong_control(&AckEvent { lossless: false, ..event(3, 0, 10) });
        assert_eq!((draft.cwnd, draft.ssthresh), (5.0, 5.0));
    }

    /// §2.5.1: the pacing rate follows the segments in flight if they are more; it is doubled in
    /// slow start.
    #[test]
    fn it_is_paced_at_one_window_per_round_trip() {
        let mut draft = draft();
        draft.cong_control(&event(1, 0, 10));
        assert_eq!(draft.rate(), Some(2 * 11 * 1448 * 100));
        draft.ssthresh = 11.0;
        draft.cong_control(&AckEvent { in_flight: 20, ..event(1, 0, 20) });
        assert_eq!(draft.rate(), Some(20 * 1448 * 100));
    }
}
