//! Linux's tcp_prague version 0.7 of the L4STeam, in its order: an ACK's marks reduce the window
//! before the window grows, and alpha is last.
//!
//! The virtual RTT applies after four round trips outside of slow start. Linux stores the virtual
//! RTT of 25 ms in eighths of a µs, like SRTT, and divides it by eight before it compares it with a
//! clock.
//!
//! The congestion window cwnd is the window rounded up; an ACK moves it by at most one segment.
//! There is no PRR. At four segments and below the state is a rate in place of a window, at least
//! 100 kbit/s. In each virtual RTT the rate grows by one segment per virtual RTT. The pacing rate
//! is 3 % above the rate in the first half of a virtual RTT and 3 % below it in the second. A
//! window of less than a segment would grow by its reciprocal.
//!
//! A burst is the number of segments that the pacing rate sends in 2^-12 s, at least one: two from
//! 98 Mbit/s on.
//!
//! While the state is the rate, packets are small enough that two leave in 25 ms, down to an MSS of
//! 150. So below 0.96 Mbit/s packets are smaller than full ones. The window counts packets of the
//! current size.
//!
//! Deviation: a retransmission has the size of the original. Version 0.7 does not detect classic
//! queues, and neither does this file.

use super::since;
use crate::TcpParams;
use crate::cc::{
    Ack, AckEvent, Congestion, CongestionControl, Delivered, MarkBased, Needs, Paced, Signal,
};
use crate::rate::Totals;
use units::{Span, Time};

/// One segment in the units of the window.
const ONE: u64 = 1 << 20;
/// 1 in the units of the moving average, whose state is sixteen times the average.
const ALPHA_ONE: u64 = 1 << 24;
const SHIFT_G: u32 = 4;
/// Round trips after slow start before the virtual RTT applies.
const TRANSITION: u32 = 4;
const LEAST_CWND: f64 = 2.0;
/// At this cwnd in full segments and below, the state is the rate (prague_cwnd_transit).
const RATE_BELOW: u64 = 4;
/// Packets in a virtual RTT (MIN_CWND_VIRT), and the smallest packet: an MSS of 150 with headers
/// and timestamps (MINIMUM_MSS).
const IN_VIRTUAL_RTT: u64 = 2;
const LEAST_PACKET: u64 = 150 + 52;
/// 100 kbit/s, in bytes a second (MINIMUM_RATE).
const LEAST_RATE: u64 = 12_500;
/// Growth by one segment is growth by this many bytes, whatever the size of packets (MTU_SYS).
const FULL_PACKET: u64 = 1500;
/// Times are in eighths of a µs. Where a division by 8 000 000 would give seconds, Linux divides by
/// 2^23, and so does this file.
const EIGHTHS: u64 = 8;
const SECOND: u64 = EIGHTHS * 1_000_000;
const SECOND_SHIFT: u32 = 23;
/// Each virtual RTT has a weight of 2^-7 in the smoothed SRTT (HSRTT_SHIFT).
const SMOOTH_SHIFT: u32 = 7;
/// The pacing offset above and below the rate, in 128ths (RATE_OFFSET, OFFSET_UNIT).
const OFFSET: u64 = 4;
const OFFSET_SHIFT: u32 = 7;
/// A burst is what the pacing rate sends in 2^-12 s, 244 µs (prague_burst_shift).
const BURST_SHIFT: u32 = 12;

/// The state of this variant.
pub struct TcpPrague {
    cwnd: f64,
    ssthresh: f64,
    /// The window, in 2^-20 segments (frac_cwnd).
    window: u64,
    /// The rate, bytes a second, and its value when a loss was detected (rate_bytes). While the
    /// state is the window, the rate is the pacing rate.
    rate: u64,
    rate_before_loss: u64,
    /// The state is the rate (cwnd_mode).
    by_rate: bool,
    /// A slow average of SRTT, times 2^7 (hsrtt_us).
    smooth_srtt: u64,
    /// The pacing rate; `None` before the first ACK.
    paced: Option<u64>,
    /// Segments that may leave at once (max_tso_burst).
    burst: u32,
    /// Bytes of a packet: the current size, the largest size, and the headers.
    packet: u64,
    full_packet: u64,
    headers: u64,
    /// Sixteen times the moving average, in 2^-24. The factor of sixteen carries remainders
    /// (alpha).
    alpha: u64,
    saw_ce: bool,
    /// One past the window whose marks are counted, and the counts at its start.
    next_seq: u32,
    before: Delivered,
    /// The counts at the last ACK.
    last: Delivered,
    /// The time of the last update of alpha, and of the last reduction for marks.
    alpha_stamp: Time,
    reduced: Option<Time>,
    /// Round trips outside of slow start.
    rounds: u32,
    /// Flows with a shorter RTT behave as if they had this RTT (REF_RTT); zero: no such RTT.
    virtual_rtt: Span,
    /// SRTT at the last ACK, in eighths of a µs.
    last_srtt: u64,
}

impl TcpPrague {
    /// The initial window, in slow start.
    pub fn new(params: &TcpParams) -> TcpPrague {
        TcpPrague {
            cwnd: f64::from(params.growth.initial_window),
            ssthresh: params.growth.initial_ssthresh.map_or(f64::INFINITY, f64::from),
            window: u64::from(params.growth.initial_window) * ONE,
            rate: LEAST_RATE,
            rate_before_loss: 0,
            by_rate: false,
            smooth_srtt: 0,
            paced: None,
            burst: 1,
            packet: u64::from(params.mss + params.header_bytes),
            full_packet: u64::from(params.mss + params.header_bytes),
            headers: params.header_bytes.into(),
            alpha: 0,
            saw_ce: false,
            next_seq: 0,
            before: Delivered::default(),
            last: Delivered::default(),
            alpha_stamp: Time::ZERO,
            reduced: None,
            rounds: 0,
            virtual_rtt: Span(params.growth.prague_virtual_rtt_ns),
            last_srtt: 0,
        }
    }

    fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    fn is_rtt_independent(&self) -> bool {
        self.virtual_rtt > Span::ZERO && !self.in_slow_start() && self.rounds >= TRANSITION
    }

    fn update_alpha(&mut self, packets: u32, ce: u32) {
        let share = u64::from(ce) * ALPHA_ONE / u64::from(packets.max(1));
        self.alpha = (self.alpha - (self.alpha >> SHIFT_G) + share).min(ALPHA_ONE << SHIFT_G);
    }

    /// Whether the state that changes is the rate.
    fn keeps_rate(&self) -> bool {
        self.by_rate && self.is_rtt_independent()
    }

    /// The virtual RTT, or SRTT if that is longer, in eighths of a µs.
    fn virtual_rtt(&self, srtt: u64) -> u64 {
        eighths(self.virtual_rtt).max(srtt)
    }

    /// The window that the rate fills in a smoothed SRTT (prague_pacing_rate_to_frac_cwnd).
    fn window_of_rate(&self, srtt: u64) -> u64 {
        let smooth = self.smooth_srtt >> SMOOTH_SHIFT;
        let rtt = if smooth > 0 { smooth } else { srtt };
        wide_shr(self.rate, rtt, SECOND_SHIFT - ONE.ilog2()).div_ceil(self.packet)
    }

    /// The rate. While the state is the window, it is the rate that fills the window in an SRTT
    /// (prague_frac_cwnd_to_pacing_rate), if an RTT is known.
    fn rate_now(&self) -> u64 {
        if self.by_rate || self.last_srtt == 0 {
            return self.rate;
        }
        let a_segment = SECOND * self.packet / self.last_srtt;
        wide_shr(a_segment, self.window, ONE.ilog2()).max(LEAST_RATE)
    }

    /// The growth of the window, segments a round trip in 2^-20: (srtt / 25 ms)^2.
    fn increase(&self, srtt: Option<Span>) -> u64 {
        let Some(srtt) = srtt.filter(|srtt| self.rounds >= TRANSITION && *srtt < self.virtual_rtt)
        else {
            return ONE;
        };
        let squared = |span| u128::from(eighths(span)).pow(2);
        let (srtt, target) = (squared(srtt), squared(self.virtual_rtt));
        ((srtt * u128::from(ONE) + target / 2) / target) as u64
    }

    /// Grows for `acked` delivered segments without a mark. In slow start the window is cwnd, even
    /// if a first mark in the same ACK has just halved it.
    fn grow(&mut self, acked: u32, event: &AckEvent) {
        let (mut acked, srtt) = (u64::from(acked), event.srtt.map_or(0, eighths));
        if self.in_slow_start() {
            let after = (self.cwnd + acked as f64).min(self.ssthresh);
            acked -= (after - self.cwnd) as u64;
            self.cwnd = after;
            self.window = after as u64 * ONE;
            if acked == 0 {
                return;
            }
        }
        if self.keeps_rate() {
            let rtt = self.virtual_rtt(srtt);
            let segment = ((acked * FULL_PACKET) << SECOND_SHIFT) / rtt;
            let bytes = u128::from(self.rate) * u128::from(rtt);
            let segments = bytes.div_ceil(u128::from(self.packet) << SECOND_SHIFT) as u64;
            self.rate += rounded(segment, segments.max(1));
            self.window = (self.window + acked).max(self.window_of_rate(srtt));
        } else {
            let grown = rounded(acked * self.increase(event.srtt) * ONE, self.window.max(1));
            self.window += (grown * FULL_PACKET / self.packet).max(acked);
        }
    }

    /// Moves cwnd towards the window by one segment (prague_update_cwnd).
    fn step(&mut self) {
        let wanted = (self.window.div_ceil(ONE) as f64).max(LEAST_CWND);
        if wanted > self.cwnd {
            self.cwnd += 1.0;
        } else if wanted < self.cwnd {
            self.cwnd -= 1.0;
            self.ssthresh = self.cwnd;
        }
    }

    /// Ends a round trip. Once the flow is RTT-independent, 25 ms must have passed too
    /// (prague_should_update_ewma, prague_update_alpha).
    fn end_round(&mut self, event: &AckEvent) {
        let long_enough =
            !self.is_rtt_independent() || event.now.since(self.alpha_stamp) >= self.virtual_rtt;
        if event.una < self.next_seq || !long_enough {
            return;
        }
        if self.saw_ce {
            let Delivered { packets, ce } = since(self.before, event.delivered);
            self.update_alpha(packets, ce);
            self.alpha_stamp = event.now;
        }
        let srtt = event.srtt.map_or(0, eighths);
        self.smooth_srtt = self.smooth_srtt + srtt - (self.smooth_srtt >> SMOOTH_SHIFT);
        self.rounds += u32::from(!self.in_slow_start());
        (self.next_seq, self.before) = (event.nxt, event.delivered);
    }

    /// Updates the pacing rate (prague_update_pacing_rate).
    fn pace(&mut self, event: &AckEvent) {
        let Some(srtt) = event.srtt.map(eighths).filter(|srtt| *srtt > 0) else { return };
        let mut rate = if self.keeps_rate() {
            let offset = (OFFSET * self.rate) >> OFFSET_SHIFT;
            let half = self.virtual_rtt(srtt) / 2 / EIGHTHS;
            let second_half = half <= event.now.since(self.alpha_stamp).0 / 1000;
            if second_half { self.rate - offset } else { self.rate + offset }
        } else {
            let segments = (self.window / ONE).max(event.in_flight.into());
            self.rate = (SECOND * self.packet / srtt * segments).max(LEAST_RATE);
            self.rate
        };
        if self.cwnd < self.ssthresh / 2.0 {
            rate *= 2;
        }
        self.burst = ((rate / self.packet) >> BURST_SHIFT).max(1) as u32;
        self.paced = Some(rate);
    }

    /// Chooses by cwnd whether the state is the rate or the window, once there were marks. Until
    /// the flow is RTT-independent, only the window changes, and the rate follows from it.
    fn choose_state(&mut self, srtt: u64) {
        let bytes = self.cwnd as u64 * self.packet;
        self.by_rate = self.saw_ce && bytes <= RATE_BELOW * self.full_packet;
        self.size_packets();
        if self.keeps_rate() {
            self.window = self.window_of_rate(srtt);
        }
    }

    /// Makes packets small enough that two fit into a virtual RTT, while the state is the rate.
    fn size_packets(&mut self) {
        let mut packet = self.full_packet;
        if self.keeps_rate() {
            let bytes = u128::from(self.rate) * u128::from(eighths(self.virtual_rtt));
            let bytes = (bytes / u128::from(SECOND)) as u64;
            packet = (bytes / IN_VIRTUAL_RTT).max(LEAST_PACKET).min(packet);
        }
        if packet != self.packet {
            self.window = self.window * self.packet / packet;
            self.packet = packet;
        }
    }

    /// Halves the window or the rate after a loss (prague_enter_loss).
    fn lose_half(&mut self) {
        self.rate_before_loss = self.rate_now();
        if self.keeps_rate() {
            self.rate -= self.rate / 2;
            self.window = self.window_of_rate(self.last_srtt);
        } else {
            self.window -= self.window / 2;
        }
    }

    /// Reduces the window or the rate after marks, by the share alpha/2 (prague_enter_cwr).
    fn reduce(&mut self) {
        let alpha = self.alpha >> SHIFT_G;
        if self.keeps_rate() {
            let by = wide_shr(self.rate, alpha, ALPHA_ONE.ilog2() + 1);
            self.rate = (self.rate - by).max(LEAST_RATE);
            self.window = self.window_of_rate(self.last_srtt);
        } else {
            let by = u128::from(self.window) * u128::from(alpha) + u128::from(ALPHA_ONE);
            self.window -= (by >> (ALPHA_ONE.ilog2() + 1)) as u64;
        }
    }
}

/// A time in eighths of a µs.
fn eighths(span: Span) -> u64 {
    span.0 * EIGHTHS / 1000
}

/// A product of 128 bits, shifted down.
fn wide_shr(a: u64, b: u64, shift: u32) -> u64 {
    ((u128::from(a) * u128::from(b)) >> shift) as u64
}

/// A quotient, to the nearest whole number.
fn rounded(dividend: u64, divisor: u64) -> u64 {
    (dividend + divisor / 2) / divisor
}

impl CongestionControl for TcpPrague {
    fn needs(&self) -> Needs {
        Needs { shorter_segments: self.virtual_rtt > Span::ZERO, ..Needs::PRAGUE }
    }

    fn on_ack(&mut self, _: &Ack) {}

    fn on_congestion(&mut self, event: &Congestion) {
        match event.signal {
            Signal::Loss | Signal::Timeout => self.lose_half(),
            Signal::Ecn => {
                let soon =
                    self.reduced.is_some_and(|reduced| event.now.since(reduced) < self.virtual_rtt);
                if soon && self.is_rtt_independent() {
                    return;
                }
                self.reduced = Some(event.now);
                self.reduce();
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

    /// The sender calls this in a recovery, when a timeout leaves one segment, or when it undoes a
    /// reduction.
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

    /// An undo keeps the larger of the current rate and the rate before the loss.
    fn undo(&mut self, prior_cwnd: f64, _: Totals) {
        self.rate = self.rate_now().max(self.rate_before_loss);
        self.window = if self.last_srtt == 0 {
            self.window.max(prior_cwnd as u64 * ONE)
        } else {
            self.window_of_rate(self.last_srtt)
        };
        self.cwnd = self.cwnd.max(prior_cwnd);
    }
}

impl MarkBased for TcpPrague {
    fn cong_control(&mut self, event: &AckEvent) {
        let Delivered { packets: acked, ce } = since(self.last, event.delivered);
        self.last = event.delivered;
        let srtt = event.srtt.map_or(0, eighths);
        if std::mem::replace(&mut self.last_srtt, srtt) == 0 {
            self.smooth_srtt = srtt << SMOOTH_SHIFT;
        }
        if ce > 0 && !std::mem::replace(&mut self.saw_ce, true) {
            self.window = self.window.div_ceil(2);
        }
        let unmarked = acked.saturating_sub(ce);
        if unmarked > 0 && event.cwnd_limited && event.lossless {
            self.grow(unmarked, event);
        }
        self.step();
        self.end_round(event);
        self.pace(event);
        self.choose_state(srtt);
    }
}

impl Paced for TcpPrague {
    #[inline]
    fn rate(&self) -> Option<u64> {
        self.paced
    }

    #[inline]
    fn burst(&self) -> u32 {
        self.burst
    }

    fn payload(&self) -> u32 {
        (self.packet - self.headers) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prague() -> TcpPrague {
        let mut prague = TcpPrague::new(&TcpParams::LINUX);
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
    fn alpha_averages_over_sixteen_windows_and_carries_its_remainder() {
        near(&alphas(10, 10, 6), &[0.0625, 0.1211, 0.1760, 0.2275, 0.2758, 0.3211]);
        near(&alphas(10, 1, 3), &[0.00625, 0.0121, 0.0176]);
        near(&alphas(10, 1, 500)[499..], &[0.1]);
        near(&alphas(1000, 1, 500)[499..], &[0.001]);
    }

    /// The mean window with one of `one_in` segments marked, over the last four fifths of 2500
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
                    in_flight: 0,
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
    fn the_window_follows_from_the_share_of_marks() {
        for (one_in, wanted) in [(4, 6.0), (10, 18.0), (20, 38.0)] {
            let mean = mean_window(one_in);
            assert!((mean / wanted - 1.0).abs() < 0.15, "1 in {one_in}: {mean}, not {wanted}");
        }
    }

    #[test]
    fn below_25_ms_growth_is_reduced_by_the_square_of_the_rtt() {
        let mut prague = prague();
        prague.rounds = TRANSITION;
        let increases = [5, 10, 25, 80].map(|ms| prague.increase(Some(Span::from_millis(ms))));
        near(&increases.map(|ai| ai as f64 / ONE as f64), &[0.04, 0.16, 1.0, 1.0]);
        assert_eq!(prague.increase(Some(Span::from_millis(1))), 1678, "1677.7 rounds up");
        prague.rounds = TRANSITION - 1;
        assert_eq!(prague.increase(Some(Span::from_millis(5))), ONE);
        (prague.rounds, prague.virtual_rtt) = (TRANSITION, Span::ZERO);
        assert_eq!(prague.increase(Some(Span::from_millis(5))), ONE, "each by its own RTT");
        assert!(!prague.is_rtt_independent());
    }

    #[test]
    fn a_virtual_rtt_of_seconds_and_a_large_window_do_not_overflow() {
        let mut prague = prague();
        (prague.virtual_rtt, prague.rounds) = (Span::from_secs(10), TRANSITION);
        assert_eq!(prague.increase(Some(Span::from_secs(5))), ONE / 4);
        (prague.window, prague.alpha) = (ONE << 26, ALPHA_ONE << SHIFT_G);
        prague.reduce();
        assert_eq!(prague.window, ONE << 25);
    }

    fn first_mark(packets: u32) -> TcpPrague {
        let mut prague = TcpPrague::new(&TcpParams::LINUX);
        prague.cong_control(&AckEvent {
            delivered: Delivered { packets, ce: 1 },
            una: packets,
            nxt: 12,
            now: Time::ZERO,
            srtt: None,
            in_flight: 0,
            cwnd_limited: true,
            lossless: true,
        });
        prague
    }

    #[test]
    fn a_first_ack_with_marks_only_ends_slow_start_and_halves_the_window() {
        let prague = first_mark(1);
        assert_eq!((prague.cwnd(), prague.ssthresh()), (9.0, 9.0), "one step of the way to 5");
        assert_eq!(prague.window, 5 * ONE);
    }

    #[test]
    fn a_first_mark_beside_an_unmarked_segment_does_not_end_slow_start() {
        let prague = first_mark(2);
        assert_eq!((prague.cwnd(), prague.ssthresh()), (11.0, f64::INFINITY));
        assert_eq!(prague.window, 11 * ONE);
    }

    /// A flow that has long been RTT-independent and has a rate as its state, at an SRTT of 20 ms.
    fn slow(rate: u64) -> TcpPrague {
        let mut slow = prague();
        (slow.rounds, slow.by_rate, slow.rate) = (TRANSITION, true, rate);
        (slow.cwnd, slow.ssthresh, slow.last_srtt) = (2.0, 2.0, 160_000);
        slow.smooth_srtt = 160_000 << SMOOTH_SHIFT;
        slow
    }

    #[test]
    fn a_rate_grows_by_a_segment_per_virtual_rtt_however_low_it_is() {
        // 1500 bytes in 25 ms are 60 000 bytes/s, and a second is 4.9 % longer here because of the
        // division by 2^23.
        let event = AckEvent {
            delivered: Delivered { packets: 1, ce: 0 },
            una: 1,
            nxt: 2,
            now: Time::ZERO,
            srtt: Some(Span::from_millis(20)),
            in_flight: 0,
            cwnd_limited: true,
            lossless: true,
        };
        for (rate, segments) in [(LEAST_RATE, 1), (50_000, 1), (100_000, 2)] {
            let mut slow = slow(rate);
            slow.grow(1, &event);
            assert_eq!(slow.rate, rate + rounded(62_914, segments), "{rate}");
        }
    }

    #[test]
    fn a_rate_falls_by_half_of_alpha_to_at_least_100_kbit_s_and_its_window_with_it() {
        let mut slow = slow(100_000);
        slow.alpha = ALPHA_ONE << SHIFT_G;
        slow.reduce();
        assert_eq!(slow.rate, 50_000);
        // 50 000 bytes/s · 20 ms are 1000 bytes of 1500; the result is 4.6 % less here.
        let window = slow.window as f64 / ONE as f64;
        assert!((window / (2.0 / 3.0) - 0.954).abs() < 0.001, "{window}");
        (0..10).for_each(|_| slow.reduce());
        assert_eq!(slow.rate, LEAST_RATE);
    }

    #[test]
    fn pacing_alternates_above_and_below_the_rate() {
        let mut slow = slow(128_000);
        let mut paced = |ms: u64| {
            let now = Time(ms * 1_000_000);
            slow.pace(&AckEvent {
                delivered: Delivered::default(),
                una: 0,
                nxt: 0,
                now,
                srtt: Some(Span::from_millis(20)),
                in_flight: 9,
                cwnd_limited: true,
                lossless: true,
            });
            slow.rate().unwrap()
        };
        assert_eq!([0, 12, 13, 30].map(&mut paced), [132_000, 132_000, 124_000, 124_000]);
    }

    #[test]
    fn a_loss_halves() {
        let mut prague = prague();
        prague.on_congestion(&Congestion { now: Time::ZERO, signal: Signal::Loss, inflight: 0 });
        assert_eq!(prague.window, 5 * ONE);
        assert_eq!(prague.cwnd(), 10.0);
    }

    /// The packet size of a flow whose rate sends `bytes` in 25 ms.
    fn sized(bytes: u64) -> u64 {
        let mut prague = prague();
        (prague.saw_ce, prague.by_rate, prague.rounds) = (true, true, TRANSITION);
        prague.rate = bytes * 40;
        prague.size_packets();
        prague.packet
    }

    #[test]
    fn two_packets_of_a_rate_fit_into_25_ms_down_to_an_mss_of_150() {
        assert_eq!([3200, 3000, 2998, 1500, 404].map(sized), [1500, 1500, 1499, 750, 202]);
        assert_eq!(sized(312), 202, "100 kbit/s");
    }

    #[test]
    fn a_window_has_the_same_bytes_when_packets_become_smaller() {
        let mut prague = prague();
        (prague.saw_ce, prague.by_rate, prague.rounds) = (true, true, TRANSITION);
        (prague.rate, prague.window) = (750 * 2 * 40, 3 * ONE);
        prague.size_packets();
        assert_eq!((prague.packet, prague.window, prague.payload()), (750, 6 * ONE, 698));
        // Eight small packets are as long as four full ones.
        (prague.cwnd, prague.ssthresh) = (8.0, 8.0);
        prague.choose_state(0);
        assert_eq!((prague.by_rate, prague.packet), (true, 750));
        prague.cwnd = 9.0;
        prague.choose_state(0);
        assert_eq!((prague.by_rate, prague.packet), (false, 1500));
    }

    #[test]
    fn without_a_virtual_rtt_packets_keep_their_size() {
        let params = TcpParams::LINUX.with(|p| p.growth.prague_virtual_rtt_ns = 0);
        assert!(!TcpPrague::new(&params).needs().shorter_segments);
    }

    #[test]
    fn after_marks_a_window_of_up_to_four_full_segments_is_stored_as_a_rate() {
        let by_rate = |saw_ce, cwnd| {
            let mut prague = prague();
            (prague.saw_ce, prague.cwnd) = (saw_ce, cwnd);
            prague.choose_state(0);
            prague.by_rate
        };
        assert_eq!(
            [3.0, 4.0, 5.0, 8.0].map(|cwnd| by_rate(true, cwnd)),
            [true, true, false, false]
        );
        assert!(!by_rate(false, 4.0));
    }

    #[test]
    fn round_trips_of_slow_start_do_not_count_towards_independence_of_the_rtt() {
        let mut prague = TcpPrague::new(&TcpParams::LINUX);
        let round = |prague: &mut TcpPrague, number: u32| {
            prague.end_round(&AckEvent {
                delivered: Delivered { packets: 10 * number, ce: 0 },
                una: 10 * number,
                nxt: 10 * number + 10,
                now: Time(u64::from(number) * 5_000_000),
                srtt: Some(Span::from_millis(5)),
                in_flight: 10,
                cwnd_limited: true,
                lossless: true,
            });
            (prague.rounds, prague.is_rtt_independent())
        };
        assert_eq!([1, 2, 3, 4, 5].map(|number| round(&mut prague, number)), [(0, false); 5]);
        prague.ssthresh = prague.cwnd;
        let later = [6, 7, 8, 9].map(|number| round(&mut prague, number));
        assert_eq!(later, [(1, false), (2, false), (3, false), (4, true)]);
    }

    /// An ACK after a second of `una` segments, with ten more outstanding.
    fn event(una: u32) -> AckEvent {
        AckEvent {
            delivered: Delivered { packets: una, ce: 0 },
            una,
            nxt: una + 10,
            now: Time(1_000_000_000),
            srtt: Some(Span::from_millis(20)),
            in_flight: 0,
            cwnd_limited: true,
            lossless: true,
        }
    }
    #[test]
    fn alpha_is_updated_at_most_every_25_ms() {
        let updated = |ns| {
            let mut prague = prague();
            (prague.saw_ce, prague.rounds) = (true, TRANSITION);
            let delivered = Delivered { packets: 10, ce: 10 };
            prague.end_round(&AckEvent { delivered, now: Time(ns), ..event(10) });
            prague.alpha > 0
        };
        assert_eq!([24_999_999, 25_000_000].map(updated), [false, true]);
    }
    #[test]
    fn it_is_paced_at_twice_its_rate_while_half_of_ssthresh_is_far() {
        // Ten segments of 1500 bytes in 20 ms.
        let paced = |ssthresh| {
            let mut prague = TcpPrague::new(&TcpParams::LINUX);
            prague.ssthresh = ssthresh;
            prague.pace(&event(0));
            prague.rate()
        };
        assert_eq!([f64::INFINITY, 20.0].map(paced), [Some(1_500_000), Some(750_000)]);
    }
    #[test]
    fn marks_reduce_once_in_25_ms_where_round_trips_play_no_part() {
        let reductions = |rounds| {
            let mut prague = prague();
            (prague.alpha, prague.rounds) = (ALPHA_ONE << SHIFT_G, rounds);
            [1, 2].map(|ms| {
                let now = Time(ms * 1_000_000);
                prague.on_congestion(&Congestion { now, signal: Signal::Ecn, inflight: 0 });
                prague.window / (ONE / 2)
            })
        };
        assert_eq!(reductions(TRANSITION), [10, 10]);
        assert_eq!(reductions(TRANSITION - 1), [10, 5]);
    }
    #[test]
    fn an_undo_restores_rate_and_windows() {
        let mut prague = prague();
        prague.last_srtt = 160_000;
        prague.on_congestion(&Congestion { now: Time::ZERO, signal: Signal::Loss, inflight: 0 });
        (prague.cwnd, prague.ssthresh) = (5.0, 5.0);
        prague.undo(10.0, Totals::default());
        assert_eq!((prague.rate, prague.cwnd()), (750_000, 10.0));
        // A second is 4.9 % longer where a rate becomes a window.
        assert_eq!(prague.window * 1049 / 1000 / ONE, 10);
    }
    #[test]
    fn the_sender_s_window_in_a_recovery_does_not_lower_the_control_s_own() {
        let windows = [1.0, 20.0].map(|cwnd| {
            let mut prague = prague();
            prague.set_cwnd(cwnd);
            prague.window / ONE
        });
        assert_eq!(windows, [10, 20]);
    }
    #[test]
    fn cwnd_is_at_least_two_segments_however_small_the_window() {
        let mut prague = prague();
        (prague.window, prague.cwnd) = (ONE, 3.0);
        prague.step();
        prague.step();
        assert_eq!(prague.cwnd(), 2.0);
    }

    #[test]
    fn the_smoothed_rtt_begins_with_the_first() {
        let mut prague = prague();
        prague.cong_control(&event(1));
        assert_eq!(prague.smooth_srtt, 160_000 << SMOOTH_SHIFT);
    }
}
