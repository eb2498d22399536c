//! Prague as in the L4STeam's reference for UDP, as a congestion control of TCP.
//!
//! There is no slow start: a flow begins at 100 kbit/s. The amount of data sent in a virtual RTT
//! grows by one packet from each virtual RTT to the next. After a while without marks and losses it
//! grows by the bytes that the rate sends in 1 ms instead. The virtual RTT is the larger of 25 ms
//! and SRTT. From the start it applies to growth, to alpha, and to the time without a further
//! reduction. The pacing rate is 3 % above the rate in the first half of a virtual RTT and 3 %
//! below it in the second. cwnd is the amount that the rate sends in an SRTT, plus 3 % and a
//! packet.
//!
//! A burst is the number of packets that the pacing rate sends in 250 µs. Below 0.96 Mbit/s,
//! headers included, packets are smaller, so that two are sent in a virtual RTT; their least size
//! is 150 bytes.
//!
//! The state is a window, or a rate if SRTT is below 2 ms or below a packet's transmission time.
//!
//! Source: udp_prague of February 2026, prague_cc.cpp. The comments contain its names; times are in
//! µs. Deviations: the MSS is the largest packet without headers. A rate grows continuously with
//! the delivered bytes, not by a step for each packet. Growth needs half of the window in use (RFC
//! 7661), while udp_prague's application always sends all that it may. The second half of the
//! virtual RTT begins at an ACK. Frames of video are absent.

use super::since;
use crate::TcpParams;
use crate::cc::{
    Ack, AckEvent, Congestion, CongestionControl, Delivered, MarkBased, Needs, Paced, Signal,
};
use crate::rate::Totals;
use units::{Span, Time};

/// 100 kbit/s, in bytes a second: the initial and the least rate (PRAGUE_INITRATE, PRAGUE_MINRATE).
const LEAST_RATE: f64 = 12_500.0;
/// 100 Gbit/s (PRAGUE_MAXRATE).
const MOST_RATE: f64 = 12.5e9;
/// After a mark the faster growth waits `LEAST_WAIT` virtual RTTs, and one more for each
/// `RATE_STEP` bytes a second of the rate (MIN_STEP, RATE_STEP).
const LEAST_WAIT: i64 = 7;
const RATE_STEP: f64 = 1_920_000.0;
/// The queue that the faster growth builds in a virtual RTT (QUEUE_GROWTH).
const QUEUE_GROWTH: f64 = 0.001;
/// The RTT for the wait after a loss (REF_RTT).
const REFERENCE_RTT: f64 = 0.025;
/// Below this SRTT the state is a rate.
const SHORT_RTT: Span = Span::from_millis(2);
/// Alpha is in 2^-20, and no remainder is carried over (PROB_SHIFT, ALPHA_SHIFT).
const ALPHA_ONE: i64 = 1 << 20;
const ALPHA_DIVISOR: i64 = 16;
/// Packets (MIN_PKT_WIN).
const LEAST_CWND: f64 = 2.0;
/// Bytes (PRAGUE_MINMTU).
const LEAST_PACKET: f64 = 150.0;
/// RATE_OFFSET.
const OFFSET: f64 = 1.03;
/// The length of a burst, s (BURST_TIME).
const BURST_TIME: f64 = 250e-6;

/// The time of a reduction, and the first segment sent since.
#[derive(Clone, Copy)]
struct Reduction {
    seq: u32,
    at: Time,
}

/// The last reduction, until a round trip and a virtual RTT have passed (cs_tp).
#[derive(Clone, Copy)]
enum State {
    Avoidance,
    Cwr(Reduction),
    Loss(Reduction),
}

/// The amounts that an undo restores: window, rate, and virtual RTTs to wait.
#[derive(Clone, Copy, Default)]
struct Lost {
    window: f64,
    rate: f64,
    wait: i64,
}

/// The state of this variant.
pub struct UdpPrague {
    /// cwnd, segments.
    cwnd: f64,
    /// The rate, bytes a second, and the window, bytes.
    rate: f64,
    window: f64,
    by_rate: bool,
    begun: bool,
    alpha: i64,
    /// The first segment sent after the last update of alpha, the time of that update, and the
    /// counts then.
    alpha_seq: u32,
    alpha_at: Time,
    before: Delivered,
    /// The counts at the last ACK.
    last: Delivered,
    state: State,
    /// A loss was detected with this ACK.
    loses: bool,
    lost: Lost,
    /// Virtual RTTs until the faster growth (m_rtts_to_growth).
    wait: i64,
    virtual_rtt: Span,
    /// Bytes of a packet: the current size, and the largest.
    packet: f64,
    full_packet: f64,
    paced: u64,
    /// Packets that may leave at once (m_packet_burst).
    burst: u32,
}

impl UdpPrague {
    /// The state at the least rate.
    pub fn new(params: &TcpParams) -> UdpPrague {
        let mut prague = UdpPrague {
            cwnd: LEAST_CWND,
            rate: LEAST_RATE,
            window: 0.0,
            by_rate: false,
            begun: false,
            alpha: 0,
            alpha_seq: 0,
            alpha_at: Time::ZERO,
            before: Delivered::default(),
            last: Delivered::default(),
            state: State::Avoidance,
            loses: false,
            lost: Lost::default(),
            wait: LEAST_WAIT,
            virtual_rtt: Span(params.growth.prague_virtual_rtt_ns),
            packet: f64::from(params.mss),
            full_packet: f64::from(params.mss),
            paced: LEAST_RATE as u64,
            burst: 1,
        };
        prague.size_packets(LEAST_RATE, prague.virtual_rtt);
        prague
    }

    /// Chooses between rate and window. A change from a rate to a window keeps the value.
    fn choose_state(&mut self, srtt: Span) {
        let packet_time = Span::from_secs_f64(self.packet / self.rate);
        let by_rate = srtt <= SHORT_RTT || srtt <= packet_time;
        if !self.begun || (self.by_rate && !by_rate) {
            self.window = self.rate * srtt.as_secs_f64();
        }
        (self.by_rate, self.begun) = (by_rate, true);
    }

    fn update_alpha(&mut self, event: &AckEvent, virtual_rtt: Span) {
        if event.una <= self.alpha_seq || event.now.since(self.alpha_at) < virtual_rtt {
            return;
        }
        let Delivered { packets, ce } = since(self.before, event.delivered);
        let share = i64::from(ce) * ALPHA_ONE / i64::from(packets.max(1));
        self.alpha = (self.alpha + (share - self.alpha) / ALPHA_DIVISOR).min(ALPHA_ONE);
        (self.alpha_seq, self.alpha_at, self.before) = (event.nxt, event.now, event.delivered);
        self.wait = (self.wait - 1).max(0);
    }

    /// Halves the rate or the window after a loss. The wait is the time in which a flow with the
    /// reference RTT recovers.
    fn lose(&mut self, reduction: Reduction, virtual_rtt: Span) {
        let packets = (self.rate / 2.0 / self.full_packet).floor();
        let longer = REFERENCE_RTT / virtual_rtt.as_secs_f64();
        let wait = (packets * longer * REFERENCE_RTT) as i64;
        self.lost.wait = (self.lost.wait + wait - self.wait).min(wait);
        self.wait = wait;
        if self.by_rate {
            self.lost.rate = self.rate / 2.0;
            self.rate -= self.lost.rate;
        } else {
            self.lost.window = self.window / 2.0;
            self.window -= self.lost.window;
        }
        self.state = State::Loss(reduction);
    }

    /// Whether the application uses at least half of the window. cwnd does not stop a paced flow.
    fn is_used(&self, event: &AckEvent, packets: u32) -> bool {
        let in_flight = f64::from(event.in_flight + packets) * self.packet;
        2.0 * in_flight >= self.window
    }

    /// Grows for `unmarked` delivered segments without a mark.
    fn grow(&mut self, unmarked: u32, srtt: Span, virtual_rtt: Span) {
        let delivered = f64::from(unmarked) * self.packet;
        let mut increment = self.rate * QUEUE_GROWTH;
        if increment < self.full_packet || self.wait > 0 {
            increment = self.full_packet;
        }
        if self.by_rate {
            // The rate grows by increment/vrtt in each vrtt, in which rate · vrtt are delivered.
            let seconds = virtual_rtt.as_secs_f64();
            let squared = self.rate * self.rate + 2.0 * delivered * increment / (seconds * seconds);
            self.rate = squared.sqrt();
        } else {
            let share = srtt.as_secs_f64() / virtual_rtt.as_secs_f64();
            self.window += delivered * increment * share * share / self.window;
        }
    }

    /// Reduces the rate or the window after a mark, by the share alpha/2.
    fn reduce(&mut self, reduction: Reduction) {
        self.wait = (self.rate / RATE_STEP) as i64 + LEAST_WAIT;
        let share = self.alpha as f64 / (2 * ALPHA_ONE) as f64;
        if self.by_rate {
            self.rate -= self.rate * share;
        } else {
            self.window -= self.window * share;
        }
        self.state = State::Cwr(reduction);
    }

    /// Makes packets small enough that two fit into a virtual RTT.
    fn size_packets(&mut self, paced: f64, virtual_rtt: Span) {
        let packet = paced * virtual_rtt.as_secs_f64() / LEAST_CWND;
        self.packet = packet.floor().max(LEAST_PACKET).min(self.full_packet);
    }

    /// Derives rate and window from each other, and cwnd and the pacing rate from both.
    fn settle(&mut self, now: Time, srtt: Span, virtual_rtt: Span) {
        let seconds = srtt.as_secs_f64();
        if !self.by_rate {
            self.rate = self.window / seconds;
        }
        self.rate = self.rate.clamp(LEAST_RATE, MOST_RATE);
        self.window = self.rate * seconds;
        let second_half = now.since(self.alpha_at) >= virtual_rtt / 2;
        let paced = if second_half { self.rate / OFFSET } else { self.rate * OFFSET };
        self.paced = paced as u64;
        self.size_packets(paced, virtual_rtt);
        self.cwnd = (self.window * OFFSET / self.packet + 1.0).floor().max(LEAST_CWND);
        self.burst = (paced * BURST_TIME / self.packet).max(1.0) as u32;
    }
}

impl CongestionControl for UdpPrague {
    fn needs(&self) -> Needs {
        Needs { paced_from_the_start: true, shorter_segments: true, ..Needs::PRAGUE }
    }

    fn on_ack(&mut self, _: &Ack) {}

    /// `cong_control` handles marks and losses; a timeout resets the state (ResetCCInfo).
    fn on_congestion(&mut self, event: &Congestion) {
        match event.signal {
            Signal::Ecn => {}
            Signal::Loss => self.loses = true,
            Signal::Timeout => {
                (self.begun, self.by_rate, self.loses) = (false, false, false);
                (self.alpha, self.alpha_at) = (0, event.now);
                (self.rate, self.paced, self.burst) = (LEAST_RATE, LEAST_RATE as u64, 1);
                self.packet = self.full_packet;
                (self.wait, self.lost, self.cwnd) = (LEAST_WAIT, Lost::default(), LEAST_CWND);
                self.state = State::Avoidance;
            }
        }
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// The sender calls this around a timeout. The next delivery sets cwnd again.
    fn set_cwnd(&mut self, cwnd: f64) {
        self.cwnd = cwnd;
    }

    /// This variant has no ssthresh.
    #[inline]
    fn ssthresh(&self) -> f64 {
        f64::INFINITY
    }

    fn set_ssthresh(&mut self, _: f64) {}

    /// An undo reverts the reduction of a loss once. It does not revert that of a timeout.
    fn undo(&mut self, _: f64, _: Totals) {
        let lost = std::mem::take(&mut self.lost);
        self.window += lost.window;
        self.rate += lost.rate;
        self.wait = (self.wait - lost.wait).max(0);
        (self.state, self.loses) = (State::Avoidance, false);
    }
}

impl MarkBased for UdpPrague {
    fn cong_control(&mut self, event: &AckEvent) {
        let Delivered { packets, ce } = since(self.last, event.delivered);
        self.last = event.delivered;
        let Some(srtt) = event.srtt.filter(|srtt| *srtt > Span::ZERO) else { return };
        let virtual_rtt = srtt.max(self.virtual_rtt);
        let now = Reduction { seq: event.nxt, at: event.now };
        let over = |reduction: Reduction| {
            event.una > reduction.seq && event.now.since(reduction.at) >= virtual_rtt
        };
        self.choose_state(srtt);
        self.update_alpha(event, virtual_rtt);
        if let State::Loss(reduction) = self.state
            && over(reduction)
        {
            self.state = State::Avoidance;
        }
        let loses = std::mem::replace(&mut self.loses, false);
        if loses && !matches!(self.state, State::Loss(_)) {
            self.lose(now, virtual_rtt);
        }
        let unmarked = packets.saturating_sub(ce);
        if unmarked > 0 && self.is_used(event, packets) && !matches!(self.state, State::Loss(_)) {
            self.grow(unmarked, srtt, virtual_rtt);
        }
        if let State::Cwr(reduction) = self.state
            && over(reduction)
        {
            self.state = State::Avoidance;
        }
        if ce > 0 && matches!(self.state, State::Avoidance) {
            self.reduce(now);
        }
        self.settle(event.now, srtt, virtual_rtt);
    }
}

impl Paced for UdpPrague {
    #[inline]
    fn rate(&self) -> Option<u64> {
        Some(self.paced)
    }

    #[inline]
    fn burst(&self) -> u32 {
        self.burst
    }

    fn payload(&self) -> u32 {
        self.packet as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(20);
    const VRTT: Span = Span::from_millis(25);

    fn udp() -> UdpPrague {
        let mut udp = UdpPrague::new(&TcpParams::LINUX);
        udp.choose_state(RTT);
        udp
    }

    /// A flow with a window, at `rate` bytes a second.
    fn at(rate: f64) -> UdpPrague {
        let mut udp = udp();
        (udp.by_rate, udp.window, udp.rate) = (false, rate * 0.02, rate);
        udp.size_packets(rate, VRTT);
        udp
    }

    fn event(packets: u32, ce: u32, ms: u64) -> AckEvent {
        AckEvent {
            delivered: Delivered { packets, ce },
            una: packets,
            nxt: packets + 10,
            now: Time(ms * 1_000_000),
            srtt: Some(RTT),
            in_flight: 10,
            cwnd_limited: true,
            lossless: true,
        }
    }

    #[test]
    fn it_begins_at_100_kbit_s_and_uses_a_rate_at_short_rtts() {
        let udp = udp();
        assert_eq!((udp.rate(), udp.cwnd(), udp.window), (Some(12_500), 2.0, 250.0));
        // A packet of 156 bytes takes 12.48 ms.
        let by_rate = [12_480_000, 12_480_001].map(|ns| {
            let mut udp = UdpPrague::new(&TcpParams::LINUX);
            udp.choose_state(Span(ns));
            udp.by_rate
        });
        assert_eq!(by_rate, [true, false]);
        // At 8 Mbit/s a packet takes 1.4 ms, and 2 ms count as short.
        let by_rate = [2_000_000, 2_000_001].map(|ns| {
            let mut udp = at(1e6);
            udp.choose_state(Span(ns));
            udp.by_rate
        });
        assert_eq!(by_rate, [true, false]);
    }

    /// In each virtual RTT of 25 ms the rate grows by 1448 bytes per 25 ms.
    #[test]
    fn a_rate_grows_by_a_packet_per_virtual_rtt() {
        let mut udp = udp();
        (udp.by_rate, udp.packet) = (true, udp.full_packet);
        let mut segments = 0.0;
        while segments * 1448.0 < 1e6 {
            udp.grow(1, RTT, VRTT);
            segments += 1.0;
        }
        // After t seconds r = r0 + 57 920 t/0.025. Its integral is the bytes delivered.
        let slope = 1448.0 / 0.025 / 0.025;
        let wanted = (12_500.0_f64.powi(2) + 2.0 * slope * segments * 1448.0).sqrt();
        assert!((udp.rate / wanted - 1.0).abs() < 1e-9, "{} of {wanted}", udp.rate);
    }

    #[test]
    fn a_window_grows_by_a_packet_or_after_the_wait_by_a_millisecond_of_the_rate() {
        let mut udp = at(10e6);
        let delivered = (udp.window / 1448.0) as u32;
        let mut grown = || {
            let before = udp.window;
            udp.grow(delivered, RTT, VRTT);
            let by = udp.window - before;
            (udp.window, udp.wait) = (before, 0);
            by
        };
        // The window of 25 ms would grow by a packet in 25 ms. This window is that of 20 ms, and it
        // grows for 20 ms, so it grows by (20/25)² of a packet.
        assert!((grown() / (1448.0 * 0.64) - 1.0).abs() < 0.01);
        assert!((grown() / (10_000.0 * 0.64) - 1.0).abs() < 0.01);
    }

    #[test]
    fn the_wait_follows_the_rate_and_falls_by_one_a_virtual_rtt() {
        let mut udp = at(10e6);
        udp.reduce(Reduction { seq: 0, at: Time::ZERO });
        assert_eq!(udp.wait, 5 + 7);
        (1..=3)
            .for_each(|round| udp.update_alpha(&event(20 * round, 0, 25 * u64::from(round)), VRTT));
        assert_eq!(udp.wait, 9);
        udp.update_alpha(&event(80, 0, 99), VRTT);
        assert_eq!(udp.wait, 9, "24 ms are less than a virtual RTT");
    }

    /// Integers are truncated: when alpha rises it stops up to 15 units below its share.
    #[test]
    fn alpha_does_not_carry_its_remainder() {
        let mut udp = udp();
        let mut packets = 0;
        for round in 1..1000 {
            packets += 10;
            udp.update_alpha(&event(packets, round, 25 * u64::from(round)), VRTT);
        }
        assert_eq!(udp.alpha, ALPHA_ONE / 10 - 15);
    }

    #[test]
    fn marks_reduce_once_a_virtual_rtt_by_alpha_half() {
        let mut udp = at(1e6);
        udp.alpha = ALPHA_ONE / 2;
        (udp.alpha_seq, udp.wait) = (u32::MAX, 100);
        let mut window = |packets, ce, ms| {
            let before = udp.window;
            udp.cong_control(&event(packets, ce, ms));
            udp.window / before
        };
        assert_eq!(window(1, 1, 100), 0.75);
        assert_eq!(window(12, 12, 124), 1.0, "all marked, a round trip later");
        assert_eq!(window(13, 13, 125), 0.75);
    }

    #[test]
    fn after_two_losses_an_undo_restores_the_wait_before_both() {
        let mut udp = at(1e6);
        udp.wait = 3;
        let lose = |udp: &mut UdpPrague| udp.lose(Reduction { seq: 0, at: Time::ZERO }, VRTT);
        lose(&mut udp);
        assert_eq!((udp.wait, udp.lost.wait), (8, 5));
        // Two virtual RTTs later the wait is 6 and the rate half. 172 packets a second give a wait
        // of 4, and the two losses have added 5 + (4 - 6).
        (udp.rate, udp.wait) = (5e5, 6);
        lose(&mut udp);
        assert_eq!((udp.wait, udp.lost.wait), (4, 3));
    }

    #[test]
    fn a_loss_halves_and_an_undo_restores_the_reduction_once() {
        let mut udp = at(1e6);
        udp.wait = 3;
        let lose = Congestion { now: Time::ZERO, signal: Signal::Loss, inflight: 10 };
        udp.on_congestion(&lose);
        udp.cong_control(&event(1, 0, 100));
        assert_eq!(udp.window, 10_000.0);
        udp.on_congestion(&lose);
        udp.cong_control(&event(2, 0, 110));
        assert_eq!(udp.window, 10_000.0, "one loss a virtual RTT, and no growth in it");
        // One of the 3 virtual RTTs of the former wait had passed. Half of the rate is 345 segments
        // a second, for which the wait is 8.
        assert_eq!(udp.wait, 8);
        udp.undo(0.0, Totals::default());
        assert_eq!((udp.window, udp.wait), (20_000.0, 2));
        udp.undo(0.0, Totals::default());
        assert_eq!(udp.window, 20_000.0);
    }

    #[test]
    fn a_window_that_the_application_does_not_fill_does_not_grow() {
        let mut udp = at(1e6);
        // The window is 13.8 segments. Before the first ACK 6 are in flight, less than half; before
        // the second, 7.
        udp.cong_control(&AckEvent { in_flight: 5, ..event(1, 0, 100) });
        assert_eq!(udp.window, 20_000.0);
        udp.cong_control(&AckEvent { in_flight: 6, ..event(2, 0, 101) });
        assert!(udp.window > 20_000.0);
    }

    #[test]
    fn a_timeout_resets_the_state() {
        let mut udp = at(1e6);
        udp.alpha = 1000;
        let signal = Signal::Timeout;
        udp.on_congestion(&Congestion { now: Time::ZERO, signal, inflight: 10 });
        assert_eq!((udp.rate(), udp.alpha, udp.wait), (Some(12_500), 0, 7));
    }

    #[test]
    fn pacing_alternates_three_percent_above_and_below_the_rate() {
        let mut udp = at(1e6);
        let paces = [0, 12, 13, 25].map(|ms| {
            udp.settle(Time(ms * 1_000_000), RTT, VRTT);
            udp.rate().unwrap()
        });
        assert_eq!(paces, [1_030_000, 1_030_000, 970_873, 970_873]);
        // 20 000 bytes and 3 % are 14.2 packets; one more, rounded down.
        assert_eq!(udp.cwnd(), 15.0);
    }

    #[test]
    fn two_packets_of_the_pace_fit_into_a_virtual_rtt_down_to_150_bytes() {
        let sizes = [200_000.0, 100_000.0, 50_000.0, 12_500.0].map(|rate| {
            let mut udp = at(rate);
            udp.size_packets(rate, VRTT);
            udp.payload()
        });
        assert_eq!(sizes, [1448, 1250, 625, 156]);
        assert_eq!(udp().payload(), 156, "its first packets");
    }
}
