//! BBR, version 1: paces at the path's delivery rate, and keeps cwnd at twice the BDP.
//!
//! The model of the path is the largest delivery rate of ten round trips and the least RTT of ten
//! seconds. In *Startup* BBR doubles the rate each round trip, until three round trips in a row
//! raise the delivery rate by less than a quarter. In *Drain* it removes the queue that Startup
//! built. In *ProbeBW* it paces one round trip at 5/4 of the rate, one at 3/4 and six at the rate
//! itself. If ten seconds gave no lower RTT, it empties the queue for 200 ms (*ProbeRTT*). Losses
//! don't change the model, except for a policer, which shows as a loss of a fifth at a steady rate.
//!
//! Source: Cardwell et al., "BBR: congestion-based congestion control", ACM Queue 14(5), 2016;
//! draft-cardwell-iccrg-bbr-congestion-control-00; Linux 6.12's tcp_bbr.c, whose integers, scales
//! and order of steps this file uses (7.3's are the same). Deviation: the delayed ACK of a lone
//! short segment is treated as any other ACK.

use super::minmax::WindowedMax;
use super::{Ack, Congestion, CongestionControl, Needs, Paced, RateSampled};
use crate::TcpParams;
use crate::rate::{RateSample, Repair, Sample, Totals, micros};
use units::{Rng, Span, Time};

/// Bandwidths are in segments a µs, times 2^24.
const BW_SCALE: u32 = 24;
const BW_UNIT: u64 = 1 << BW_SCALE;
/// Gains are in parts of 256.
const UNIT: u64 = 256;
/// 2/ln 2: the least gain that doubles the rate each round trip.
const HIGH_GAIN: u64 = 739;
/// The inverse of `HIGH_GAIN`.
const DRAIN_GAIN: u64 = 88;
const CWND_GAIN: u64 = 2 * UNIT;
/// The phases of ProbeBW.
const PACING_GAINS: [u64; 8] = [320, 192, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// The window of the bandwidth filter, round trips.
const BW_ROUNDS: u32 = 10;
/// The pacing rate is this much below the bandwidth, percent, so that a queue drains.
const MARGIN_PERCENT: u64 = 1;
/// The lower bound of cwnd, and its upper bound in ProbeRTT.
const MIN_CWND: u32 = 4;
const MIN_RTT_WINDOW: Span = Span::from_secs(10);
const PROBE_RTT_TIME: Span = Span::from_millis(200);
/// Startup ends when this many round trips bring less than 320/256 of the earlier bandwidth.
const FULL_BW_ROUNDS: u32 = 3;
const FULL_BW_GAIN: u64 = 320;
/// Below this rate, bytes a second, Linux passes single segments to the card.
const ONE_SEGMENT_RATE: u64 = 1_200_000 / 8;
/// GSO_LEGACY_MAX_SIZE - 1 - MAX_TCP_HEADER.
const MAX_TSO_BYTES: u64 = 65_535 - 320;
/// The window that Linux assumes before the first RTT sample, segments (TCP_INIT_CWND).
const INIT_CWND: u32 = 10;
/// The initial RTT if the handshake gave none, µs.
const FIRST_RTT_US: u64 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    /// The phase of the cycle and its start, µs.
    ProbeBw {
        phase: usize,
        since_us: u64,
    },
    /// `done`: the earliest end, ticks; `None` until few enough segments are in flight.
    /// `round_done`: a round trip has passed since `done` was set.
    ProbeRtt {
        done: Option<u64>,
        round_done: bool,
    },
}

/// State of BBR.
pub struct Bbr {
    cwnd: u32,
    ssthresh: f64,
    /// cwnd before a recovery or ProbeRTT.
    prior_cwnd: u32,
    mode: Mode,
    pacing_gain: u64,
    /// Bytes a second (sk_pacing_rate).
    pacing_rate: u64,
    max_bw: WindowedMax,
    /// Round trips so far. The next begins when a segment sent after `next_rtt_delivered`
    /// deliveries is delivered.
    rounds: u32,
    next_rtt_delivered: u32,
    round_start: bool,
    full_bw: u64,
    full_bw_rounds: u32,
    /// Startup has found the bandwidth. An undo does not change this.
    full_bw_reached: bool,
    min_rtt_us: Option<u32>,
    /// The time of the measurement, ticks.
    min_rtt_tick: u64,
    has_seen_rtt: bool,
    /// The last ACK arrived in ProbeRTT, whose low rates say nothing about the path.
    limits_itself: bool,
    /// The sender restarts after a pause.
    idle_restart: bool,
    repair: Repair,
    /// In the first round trip of a recovery, one segment leaves for each delivered one.
    packet_conservation: bool,
    aggregation: Aggregation,
    policer: Policer,
    /// The bytes of a segment, for rates. With AccECN it is 12 more than a segment's payload, as in
    /// Linux.
    mss: u64,
    /// Length of a jiffy, ns.
    tick_ns: u64,
    rng: Rng,
}

impl Bbr {
    /// The state before the connection is established.
    pub fn new(params: &TcpParams) -> Bbr {
        let mss = params.mss_without_options().into();
        Bbr {
            cwnd: params.growth.initial_window,
            ssthresh: f64::INFINITY,
            prior_cwnd: 0,
            mode: Mode::Startup,
            pacing_gain: HIGH_GAIN,
            pacing_rate: 0,
            max_bw: WindowedMax::default(),
            rounds: 0,
            next_rtt_delivered: 1,
            round_start: false,
            full_bw: 0,
            full_bw_rounds: 0,
            full_bw_reached: false,
            min_rtt_us: None,
            min_rtt_tick: 0,
            has_seen_rtt: false,
            limits_itself: false,
            idle_restart: false,
            repair: Repair::None,
            packet_conservation: false,
            aggregation: Aggregation::default(),
            policer: Policer { mss, ..Policer::default() },
            mss,
            tick_ns: params.timers.timer_tick_ns.max(1),
            rng: Rng::new(0, "bbr"),
        }
    }

    fn tick(&self, now: Time) -> u64 {
        now.0 / self.tick_ns
    }

    fn ticks(&self, span: Span) -> u64 {
        span.0 / self.tick_ns
    }

    /// The bandwidth used for pacing: the largest, or a policer's.
    fn bw(&self) -> u64 {
        self.policer.bw().unwrap_or(self.max_bw.get())
    }

    fn cwnd_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBw { .. } => CWND_GAIN,
            Mode::ProbeRtt { .. } => UNIT,
        }
    }

    // --- rates and windows ---

    /// Before the first sample, the bandwidth follows from cwnd and the handshake's RTT.
    fn init_pacing_rate(&mut self, rtt: Option<Span>) {
        self.has_seen_rtt = rtt.is_some();
        let rtt_us = rtt.map_or(FIRST_RTT_US, |rtt| (rtt.0 / 1000).max(1));
        let bw = u64::from(self.cwnd) * BW_UNIT / rtt_us;
        self.pacing_rate = bytes_per_second(bw, HIGH_GAIN, self.mss);
    }

    /// Sets the pacing rate. Until Startup has found the bandwidth, the rate only rises.
    fn set_pacing_rate(&mut self, gain: u64) {
        let rate = bytes_per_second(self.bw(), gain, self.mss);
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// The segments that Linux would pass to the card at a time if segmentation offload were on.
    fn tso_segs_goal(&self) -> u32 {
        let least = if self.pacing_rate < ONE_SEGMENT_RATE { 1 } else { 2 };
        let of_a_ms = (self.pacing_rate >> 10).min(MAX_TSO_BYTES) / self.mss;
        of_a_ms.max(least).min(127) as u32
    }

    /// The BDP for this bandwidth, times the gain, rounded up.
    fn bdp(&self, bw: u64, gain: u64) -> u32 {
        let Some(min_rtt_us) = self.min_rtt_us else { return INIT_CWND };
        let scaled = (bw * u64::from(min_rtt_us) * gain) >> 8;
        scaled.div_ceil(BW_UNIT) as u32
    }

    /// Adds a budget for segments that either end sends or acknowledges together.
    fn with_quantization_budget(&self, segments: u32) -> u32 {
        let even = (segments + 3 * self.tso_segs_goal()).next_multiple_of(2);
        // Without this, the phase that probes would not fill a short path.
        let probing = matches!(self.mode, Mode::ProbeBw { phase: 0, .. });
        if probing { even + 2 } else { even }
    }

    /// The segments in flight when the path is `gain` times full.
    fn inflight(&self, gain: u64) -> u32 {
        self.with_quantization_budget(self.bdp(self.max_bw.get(), gain))
    }

    /// The segments in flight when the next segment leaves (bbr_packets_in_net_at_edt).
    fn in_flight_at_departure(&self, in_flight: u32, rs: &RateSample) -> u32 {
        let wait_us = Time(rs.departure.0.max(rs.now.0)).since(rs.now).0 / 1000;
        let delivered = (self.bw() * wait_us) >> BW_SCALE;
        let tso = if self.pacing_gain > UNIT { self.tso_segs_goal() } else { 0 };
        u64::from(in_flight + tso).saturating_sub(delivered) as u32
    }

    // --- the model ---

    /// Counts round trips, and updates the largest bandwidth.
    fn update_bw(&mut self, rs: &RateSample) {
        self.round_start = false;
        let Some(Sample { prior_delivered, delivered, app_limited, .. }) = rs.sample else {
            return;
        };
        let Some(interval_us) = rs.interval() else { return };
        if prior_delivered >= self.next_rtt_delivered {
            self.next_rtt_delivered = rs.totals.delivered;
            self.rounds += 1;
            self.round_start = true;
            self.packet_conservation = false;
        }
        self.sample_policer(rs.losses > 0, app_limited, rs.totals);
        let bw = u64::from(delivered) * BW_UNIT / u64::from(interval_us);
        if !app_limited || bw >= self.max_bw.get() {
            self.max_bw.update(bw, self.rounds, BW_ROUNDS);
        }
    }

    fn sample_policer(&mut self, lossy: bool, app_limited: bool, totals: Totals) {
        if self.policer.bw().is_some() {
            let probes = matches!(self.mode, Mode::ProbeBw { .. });
            if probes && self.round_start && self.policer.tires() {
                self.policer.reset(totals);
                self.enter_probe_bw(totals.delivered_us);
            }
            return;
        }
        if self.policer.sample(lossy, app_limited, self.round_start, totals) {
            self.pacing_gain = UNIT;
        }
    }

    fn update_ack_aggregation(&mut self, rs: &RateSample) {
        if rs.acked == 0 || rs.interval().is_none() {
            return;
        }
        let (bw, cwnd, round_start) = (self.bw(), self.cwnd, self.round_start);
        self.aggregation.update(rs.acked, rs.totals.delivered_us, bw, cwnd, round_start);
    }

    fn update_cycle_phase(&mut self, rs: &RateSample) {
        let Mode::ProbeBw { phase, since_us } = self.mode else { return };
        let elapsed = rs.totals.delivered_us.saturating_sub(since_us);
        let full_length = elapsed > self.min_rtt_us.unwrap_or(u32::MAX).into();
        let in_flight = || self.in_flight_at_departure(rs.prior_in_flight, rs);
        let over = if self.pacing_gain == UNIT {
            full_length
        } else if self.pacing_gain > UNIT {
            full_length && (rs.losses > 0 || in_flight() >= self.inflight(self.pacing_gain))
        } else {
            full_length || in_flight() <= self.inflight(UNIT)
        };
        if over {
            let phase = (phase + 1) % PACING_GAINS.len();
            self.mode = Mode::ProbeBw { phase, since_us: rs.totals.delivered_us };
        }
    }

    /// Enters a random phase of the cycle, except the one that drains.
    fn enter_probe_bw(&mut self, now_us: u64) {
        let phase = (8 - self.rng.below(7) as usize) % PACING_GAINS.len();
        self.mode = Mode::ProbeBw { phase, since_us: now_us };
    }

    fn check_full_bw_reached(&mut self, rs: &RateSample) {
        let app_limited = rs.sample.is_some_and(|sample| sample.app_limited);
        if self.full_bw_reached || !self.round_start || app_limited {
            return;
        }
        let bw = self.max_bw.get();
        if bw >= (self.full_bw * FULL_BW_GAIN) >> 8 {
            (self.full_bw, self.full_bw_rounds) = (bw, 0);
        } else {
            self.full_bw_rounds += 1;
            self.full_bw_reached = self.full_bw_rounds >= FULL_BW_ROUNDS;
        }
    }

    fn check_drain(&mut self, rs: &RateSample) {
        if self.mode == Mode::Startup && self.full_bw_reached {
            self.mode = Mode::Drain;
            self.ssthresh = self.inflight(UNIT).into();
        }
        if self.mode == Mode::Drain
            && self.in_flight_at_departure(rs.in_flight, rs) <= self.inflight(UNIT)
        {
            self.enter_probe_bw(rs.totals.delivered_us);
        }
    }

    fn update_min_rtt(&mut self, rs: &RateSample) {
        let tick = self.tick(rs.now);
        let expired = tick > self.min_rtt_tick + self.ticks(MIN_RTT_WINDOW);
        if let Some(rtt_us) = rs.rtt_us
            && (expired || self.min_rtt_us.is_none_or(|least| rtt_us < least))
        {
            (self.min_rtt_us, self.min_rtt_tick) = (Some(rtt_us), tick);
        }
        if expired && !self.idle_restart && !matches!(self.mode, Mode::ProbeRtt { .. }) {
            // As in Linux, the mode changes before cwnd is saved, so a cwnd saved earlier stays if
            // it is larger.
            self.mode = Mode::ProbeRtt { done: None, round_done: false };
            self.save_cwnd();
        }
        // The last ACK of ProbeRTT still belongs to ProbeRTT.
        self.limits_itself = matches!(self.mode, Mode::ProbeRtt { .. });
        self.probe_rtt(rs, tick);
        if rs.sample.is_some_and(|sample| sample.delivered > 0) {
            self.idle_restart = false;
        }
    }

    fn probe_rtt(&mut self, rs: &RateSample, tick: u64) {
        let Mode::ProbeRtt { done, round_done } = self.mode else { return };
        if done.is_some() {
            self.mode = Mode::ProbeRtt { done, round_done: round_done || self.round_start };
            if round_done || self.round_start {
                self.end_probe_rtt(tick, rs.totals.delivered_us);
            }
        } else if rs.in_flight <= MIN_CWND {
            let done = Some(tick + PROBE_RTT_TIME.0.div_ceil(self.tick_ns));
            self.mode = Mode::ProbeRtt { done, round_done: false };
            self.next_rtt_delivered = rs.totals.delivered;
        }
    }

    /// Ends ProbeRTT once its time has passed.
    fn end_probe_rtt(&mut self, tick: u64, now_us: u64) {
        let Mode::ProbeRtt { done: Some(done), .. } = self.mode else { return };
        if tick <= done {
            return;
        }
        self.min_rtt_tick = tick;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.full_bw_reached {
            self.enter_probe_bw(now_us);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn update_pacing_gain(&mut self) {
        self.pacing_gain = match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBw { .. } if self.policer.bw().is_some() => UNIT,
            Mode::ProbeBw { phase, .. } => PACING_GAINS[phase],
            Mode::ProbeRtt { .. } => UNIT,
        };
    }

    // --- cwnd ---

    fn save_cwnd(&mut self) {
        let fresh = self.repair < Repair::Recovery && !matches!(self.mode, Mode::ProbeRtt { .. });
        self.prior_cwnd = if fresh { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    fn update_cwnd(&mut self, rs: &RateSample) {
        if rs.acked > 0 && !self.recover_or_restore(rs) {
            let (acked, full) = (rs.acked, self.full_bw_reached);
            let mut target = self.bdp(self.bw(), self.cwnd_gain());
            if full {
                target += self.aggregation.cwnd(self.bw());
            }
            let target = self.with_quantization_budget(target);
            if full {
                self.cwnd = (self.cwnd + acked).min(target);
            } else if self.cwnd < target || rs.totals.delivered < INIT_CWND {
                self.cwnd += acked;
            }
            self.cwnd = self.cwnd.max(MIN_CWND);
        }
        if let Mode::ProbeRtt { .. } = self.mode {
            self.cwnd = self.cwnd.min(MIN_CWND);
        }
    }

    /// Applies losses, and the start and the end of a recovery. Returns true during packet
    /// conservation: then cwnd is already set.
    fn recover_or_restore(&mut self, rs: &RateSample) -> bool {
        let before = std::mem::replace(&mut self.repair, rs.repair);
        self.cwnd = self.cwnd.saturating_sub(rs.losses).max(1);
        if rs.repair == Repair::Recovery && before != Repair::Recovery {
            self.packet_conservation = true;
            self.next_rtt_delivered = rs.totals.delivered;
            self.cwnd = rs.in_flight + rs.acked;
        } else if before >= Repair::Recovery && rs.repair < Repair::Recovery {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        if self.packet_conservation {
            self.cwnd = self.cwnd.max(rs.in_flight + rs.acked);
        }
        self.packet_conservation
    }
}

impl RateSampled for Bbr {
    fn on_established(&mut self, rtt: Option<Span>, totals: Totals, now: Time) {
        self.init_pacing_rate(rtt);
        self.min_rtt_us = rtt.map(|rtt| micros(Time(rtt.0)) as u32);
        self.min_rtt_tick = self.tick(now);
        self.next_rtt_delivered = totals.delivered;
        self.aggregation.restart(micros(now));
        self.policer.reset(totals);
    }

    fn set_rng(&mut self, rng: Rng) {
        self.rng = rng;
    }

    fn on_rate_sample(&mut self, rs: &RateSample) {
        if !self.has_seen_rtt && rs.rtt_us.is_some() {
            // tcp_bbr.c uses SRTT, which equals the first sample.
            self.init_pacing_rate(rs.rtt_us.map(|us| Span::from_micros(us.into())));
        }
        self.update_bw(rs);
        self.update_ack_aggregation(rs);
        self.update_cycle_phase(rs);
        self.check_full_bw_reached(rs);
        self.check_drain(rs);
        self.update_min_rtt(rs);
        self.update_pacing_gain();
        self.set_pacing_rate(self.pacing_gain);
        self.update_cwnd(rs);
    }

    fn limits_itself(&self) -> bool {
        self.limits_itself
    }

    fn on_idle_restart(&mut self, now: Time, totals: Totals) {
        self.idle_restart = true;
        self.aggregation.restart(micros(now));
        match self.mode {
            Mode::ProbeBw { .. } => self.set_pacing_rate(UNIT),
            Mode::ProbeRtt { .. } => self.end_probe_rtt(self.tick(now), totals.delivered_us),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn on_timeout(&mut self, totals: Totals) {
        self.repair = Repair::Loss;
        self.full_bw = 0;
        self.round_start = true;
        self.sample_policer(true, false, totals);
    }
}

impl Paced for Bbr {
    fn rate(&self) -> Option<u64> {
        Some(self.pacing_rate)
    }
}

impl CongestionControl for Bbr {
    fn needs(&self) -> Needs {
        Needs { acks: false, rate_samples: true, sets_cwnd: true, paced: true, ..Needs::ACKS }
    }

    fn on_ack(&mut self, _: &Ack) {}

    /// ssthresh stays: BBR sets cwnd by itself.
    fn on_congestion(&mut self, _: &Congestion) {
        self.save_cwnd();
    }

    /// A recovery was needless: BBR restarts the search for a policer, and in Startup for the
    /// bandwidth. cwnd is restored when the recovery ends.
    fn undo(&mut self, _: f64, totals: Totals) {
        (self.full_bw, self.full_bw_rounds) = (0, 0);
        self.policer.reset(totals);
    }

    fn cwnd(&self) -> f64 {
        self.cwnd.into()
    }

    fn set_cwnd(&mut self, cwnd: f64) {
        self.cwnd = cwnd as u32;
    }

    fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    fn set_ssthresh(&mut self, ssthresh: f64) {
        self.ssthresh = ssthresh;
    }
}

/// The payload rate of a bandwidth in bytes a second, times the gain and less the margin.
fn bytes_per_second(bw: u64, gain: u64, mss: u64) -> u64 {
    let scaled = (bw * mss * gain) >> 8;
    (scaled * (1_000_000 / 100 * (100 - MARGIN_PERCENT))) >> BW_SCALE
}

/// The number of segments acknowledged beyond the bandwidth. Links that aggregate packets would
/// stall a cwnd of twice the BDP.
#[derive(Clone, Copy, Debug, Default)]
struct Aggregation {
    epoch_us: u64,
    epoch_acked: u64,
    /// The maximum of the current period of five round trips and that of the period before.
    extra: [u32; 2],
    present: usize,
    rounds: u32,
}

impl Aggregation {
    /// Round trips of each maximum.
    const ROUNDS: u32 = 5;
    /// A count above this restarts.
    const MOST_ACKED: u64 = 1 << 20;
    /// The extra is at most the bandwidth times this, µs.
    const MOST_US: u64 = 100_000;

    fn restart(&mut self, now_us: u64) {
        (self.epoch_us, self.epoch_acked) = (now_us, 0);
    }

    fn update(&mut self, acked: u32, now_us: u64, bw: u64, cwnd: u32, round_start: bool) {
        if round_start {
            self.rounds += 1;
            if self.rounds >= Self::ROUNDS {
                self.rounds = 0;
                self.present = 1 - self.present;
                self.extra[self.present] = 0;
            }
        }
        let acked = u64::from(acked);
        let mut expected = bw * now_us.saturating_sub(self.epoch_us) / BW_UNIT;
        if self.epoch_acked <= expected || self.epoch_acked + acked >= Self::MOST_ACKED {
            self.restart(now_us);
            expected = 0;
        }
        self.epoch_acked = (self.epoch_acked + acked).min(Self::MOST_ACKED - 1);
        let extra = (self.epoch_acked - expected).min(cwnd.into()) as u32;
        self.extra[self.present] = self.extra[self.present].max(extra);
    }

    /// The segments that cwnd needs in addition.
    fn cwnd(&self, bw: u64) -> u32 {
        let most = bw * Self::MOST_US / BW_UNIT;
        u64::from(self.extra[0].max(self.extra[1])).min(most) as u32
    }
}

/// Detects a policer, which drops packets above a rate. A policer shows as two successive intervals
/// that begin and end with a loss, lose a fifth, and have nearly the same rate (lt_bw).
#[derive(Clone, Copy, Debug, Default)]
struct Policer {
    sampling: bool,
    rounds: u32,
    start_ms: u64,
    start: Totals,
    /// The rate of the preceding interval; 0: none.
    bw: u64,
    detected: bool,
    mss: u64,
}

impl Policer {
    /// The least and the largest length of an interval, round trips.
    const ROUNDS: (u32, u32) = (4, 16);
    /// The least ratio of lost to delivered segments, in 256ths.
    const LOSS: u64 = 50;
    /// Two rates count as equal if they differ by at most an eighth, or by at most 500 bytes a
    /// second.
    const NEAR: (u64, u64) = (8, 500);
    /// Round trips after which a policer's rate expires.
    const MOST_ROUNDS: u32 = 48;

    /// The rate of the policer, if one is detected.
    fn bw(&self) -> Option<u64> {
        self.detected.then_some(self.bw)
    }

    fn begin_interval(&mut self, totals: Totals) {
        (self.rounds, self.start_ms, self.start) = (0, totals.delivered_us / 1000, totals);
    }

    fn reset(&mut self, totals: Totals) {
        *self = Policer { mss: self.mss, ..Policer::default() };
        self.begin_interval(totals);
    }

    /// A round trip at the policer's rate has ended. Returns whether it was the last.
    fn tires(&mut self) -> bool {
        self.rounds += 1;
        self.rounds >= Self::MOST_ROUNDS
    }

    /// Returns whether this ACK shows a policer.
    fn sample(
        &mut self,
        lossy: bool,
        app_limited: bool,
        round_start: bool,
        totals: Totals,
    ) -> bool {
        if !self.sampling {
            if !lossy {
                return false;
            }
            self.begin_interval(totals);
            self.sampling = true;
        }
        if app_limited {
            self.reset(totals);
            return false;
        }
        self.rounds += u32::from(round_start);
        if self.rounds < Self::ROUNDS.0 {
            return false;
        }
        if self.rounds > Self::ROUNDS.1 {
            self.reset(totals);
            return false;
        }
        if !lossy {
            return false;
        }
        let lost = u64::from(totals.lost - self.start.lost);
        let delivered = u64::from(totals.delivered - self.start.delivered);
        let ms = (totals.delivered_us / 1000).saturating_sub(self.start_ms);
        if delivered == 0 || lost << 8 < Self::LOSS * delivered || ms == 0 {
            return false;
        }
        self.end_interval(delivered * BW_UNIT / (ms * 1000), totals)
    }

    fn end_interval(&mut self, bw: u64, totals: Totals) -> bool {
        let apart = bw.abs_diff(self.bw);
        let near = apart * Self::NEAR.0 <= self.bw
            || bytes_per_second(apart, UNIT, self.mss) <= Self::NEAR.1;
        if self.bw > 0 && near {
            self.bw = (bw + self.bw) / 2;
            (self.detected, self.rounds) = (true, 0);
            return true;
        }
        self.bw = bw;
        self.begin_interval(totals);
        false
    }
}

#[cfg(test)]
impl Bbr {
    /// Startup has not found the bandwidth yet.
    pub(crate) fn in_startup(&self) -> bool {
        self.mode == Mode::Startup
    }

    pub(crate) fn in_drain(&self) -> bool {
        self.mode == Mode::Drain
    }

    pub(crate) fn in_probe_rtt(&self) -> bool {
        matches!(self.mode, Mode::ProbeRtt { .. })
    }

    /// The phase of ProbeBW's cycle.
    pub(crate) fn phase(&self) -> Option<usize> {
        match self.mode {
            Mode::ProbeBw { phase, .. } => Some(phase),
            _ => None,
        }
    }

    /// Round trips so far.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The BDP and the quantization budget, segments (inflight at a gain of 1).
    pub(crate) fn path_holds(&self) -> f64 {
        self.inflight(UNIT).into()
    }

    pub(crate) fn is_restarting(&self) -> bool {
        self.idle_restart
    }

    /// The largest bandwidth.
    pub(crate) fn segments_per_second(&self) -> f64 {
        self.max_bw.get() as f64 / BW_UNIT as f64 * 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::ACCECN_BYTES;

    const MS: u64 = 1_000_000;

    /// A connection with this RTT, segments of 1448 bytes and jiffies of 4 ms.
    fn established(rtt_ms: Option<u64>) -> Bbr {
        let mut bbr = Bbr::new(&TcpParams::LINUX);
        bbr.on_established(rtt_ms.map(Span::from_millis), Totals::default(), Time::ZERO);
        bbr
    }

    /// ProbeBW on a link of full packets with a known bandwidth, without aggregation.
    fn cruising(mbit: u64, rtt_ms: u64, phase: usize) -> Bbr {
        let mut bbr = established(Some(rtt_ms));
        bbr.max_bw.update(mbit * BW_UNIT / 12_000, 0, BW_ROUNDS);
        bbr.full_bw_reached = true;
        bbr.mode = Mode::ProbeBw { phase, since_us: 0 };
        bbr.set_pacing_rate(UNIT);
        bbr
    }

    /// An ACK at `ms` of `acked` segments. `totals`: all delivered, and in flight before the ACK.
    /// Its sample is a round trip of `rtt_ms` in which `delivered` segments were delivered.
    fn ack(ms: u64, acked: u32, delivered: u32, rtt_ms: u32, totals: (u32, u32)) -> RateSample {
        let (all, in_flight) = totals;
        RateSample {
            now: Time(ms * MS),
            sample: Some(Sample {
                prior_delivered: all - delivered,
                delivered,
                interval_us: Some(1000 * rtt_ms),
                app_limited: false,
                tx_in_flight: in_flight,
                lost: 0,
            }),
            acked,
            losses: 0,
            prior_in_flight: in_flight,
            in_flight: in_flight - acked,
            rtt_us: Some(1000 * rtt_ms),
            totals: Totals { delivered: all, delivered_us: 1000 * ms, lost: 0 },
            departure: Time(ms * MS),
            repair: Repair::None,
            cwnd_limited: true,
        }
    }

    #[test]
    fn the_first_rate_is_the_first_window_over_the_rtt_or_over_a_millisecond() {
        assert_eq!(established(Some(40)).rate(), Some(1_034_467));
        assert_eq!(established(None).rate(), Some(41_381_651));
    }

    #[test]
    fn with_accecn_a_rate_is_one_of_segments_without_its_option() {
        let plain = TcpParams::LINUX;
        let params = TcpParams { accecn: true, mss: plain.mss - ACCECN_BYTES, ..plain };
        assert_eq!(Bbr::new(&params).mss, u64::from(plain.mss));
    }

    #[test]
    fn rates_and_windows_of_a_link_are_linuxs() {
        // Mbit/s, ms; bandwidth, rate, segments a ms, BDP, cwnd; and cwnd while probing. 10 Mbit/s
        // are 13981/2^24 segments a µs, and 40 ms of that are 33.3 segments.
        for (mbit, rtt_ms, bw, rate, goal, bdp, cwnd) in [
            (1, 40, 1398, 119_451, 1, 4, 10),
            (10, 10, 13_981, 1_194_598, 2, 9, 24),
            (10, 40, 13_981, 1_194_598, 2, 34, 74),
            (100, 40, 139_810, 11_945_988, 8, 334, 692),
            (1000, 100, 1_398_101, 119_459_971, 45, 8334, 16_802),
        ] {
            let bbr = cruising(mbit, rtt_ms, 2);
            let target = |bbr: &Bbr| bbr.with_quantization_budget(bbr.bdp(bbr.bw(), CWND_GAIN));
            let values =
                (bbr.bw(), bbr.rate(), bbr.tso_segs_goal(), bbr.bdp(bbr.bw(), UNIT), target(&bbr));
            assert_eq!(values, (bw, Some(rate), goal, bdp, cwnd), "{mbit} Mbit/s, {rtt_ms} ms");
            let probing = Bbr { mode: Mode::ProbeBw { phase: 0, since_us: 0 }, ..bbr };
            assert_eq!(target(&probing), cwnd + 2);
        }
    }

    #[test]
    fn startup_ends_after_three_round_trips_that_bring_less_than_a_quarter_more() {
        let mut bbr = established(Some(40));
        let (mut all, mut ended) = (1, 0);
        for round in 1..12 {
            // The rate doubles up to 100 segments in an RTT of 40 ms.
            let delivered = (10 << round).min(100);
            all += delivered;
            bbr.on_rate_sample(&ack(40 * round, delivered, delivered, 40, (all, delivered)));
            if bbr.mode != Mode::Startup {
                ended = round;
                break;
            }
        }
        // 20, 40, 80, 100: the fourth is 5/4 of the third; three rounds without growth follow.
        assert_eq!(ended, 7);
        // Nothing is in flight, so Startup's queue has drained at once.
        assert!(matches!(bbr.mode, Mode::ProbeBw { .. }));
        // At 2.89 times 3.6 MB/s a millisecond is six segments.
        assert_eq!(bbr.ssthresh, 118.0, "100 segments and three times six");
    }

    #[test]
    fn the_cycle_begins_with_any_phase_but_the_one_that_drains() {
        let mut counts = [0; 8];
        let mut bbr = cruising(10, 40, 2);
        for _ in 0..700 {
            bbr.enter_probe_bw(0);
            let Mode::ProbeBw { phase, .. } = bbr.mode else { unreachable!() };
            counts[phase] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!(counts.iter().enumerate().all(|(phase, &n)| phase == 1 || n > 60), "{counts:?}");
    }

    #[test]
    fn after_ten_seconds_without_a_lower_rtt_probe_rtt_lasts_fifty_jiffies_and_a_round_trip() {
        let mut bbr = cruising(10, 40, 2);
        bbr.cwnd = 74;
        let mut step = |ms: u64, all: u32, in_flight: u32| {
            bbr.on_rate_sample(&ack(ms, 1, 34, 41, (all, in_flight)));
            (matches!(bbr.mode, Mode::ProbeRtt { .. }), bbr.cwnd)
        };
        assert_eq!(
            step(10_000, 100, 74),
            (false, 74),
            "2500 jiffies do not exceed the window, as in Linux"
        );
        assert_eq!(step(10_004, 110, 74), (true, 4));
        // The time starts once four segments are left, at 2502 jiffies. It lasts 50 jiffies, and
        // one more must pass.
        assert_eq!(step(10_008, 170, 5), (true, 4));
        assert_eq!(step(10_100, 300, 5), (true, 4), "a round trip is over");
        assert_eq!(step(10_208, 310, 5), (true, 4));
        assert!(!step(10_212, 311, 5).0);
        assert!(bbr.limits_itself(), "the last ACK belongs to ProbeRTT");
        assert!(bbr.cwnd >= 74 && bbr.min_rtt_us == Some(41_000));
    }

    #[test]
    fn losses_do_not_change_the_model_and_a_recovery_conserves_packets_for_a_round_trip() {
        let mut bbr = cruising(10, 40, 2);
        bbr.cwnd = 60;
        bbr.save_cwnd();
        let lossy = |ms, all, in_flight, losses| RateSample {
            losses,
            repair: Repair::Recovery,
            ..ack(ms, 1, 33, 40, (all, in_flight))
        };
        let rate = bbr.rate();
        bbr.on_rate_sample(&lossy(100, 100, 60, 3));
        assert_eq!((bbr.cwnd, bbr.rate()), (60, rate), "59 in flight and the one acknowledged");
        bbr.on_rate_sample(&lossy(101, 101, 40, 0));
        assert_eq!(bbr.cwnd, 60, "cwnd does not fall with the segments in flight");
        bbr.on_rate_sample(&lossy(150, 140, 40, 0));
        assert_eq!(bbr.cwnd, 61, "a round trip later it grows again");
        bbr.on_rate_sample(&ack(160, 1, 33, 40, (141, 40)));
        assert!(bbr.cwnd >= 60 && !bbr.packet_conservation);
    }

    #[test]
    fn a_fifth_lost_twice_at_one_rate_is_a_policer_for_48_round_trips() {
        let mut bbr = cruising(10, 40, 2);
        let mut lost = 0;
        let mut found_at = None;
        for round in 1..70 {
            // In each round trip 20 segments arrive and 5 are lost.
            lost += 5;
            let mut rs = ack(40 * round, 20, 20, 40, (20 * round as u32 + 100, 30));
            rs.losses = 5;
            rs.totals.lost = lost;
            bbr.on_rate_sample(&rs);
            match (bbr.policer.bw().is_some(), found_at) {
                (true, None) => found_at = Some(round),
                (false, Some(at)) => {
                    assert_eq!(round - at, 48);
                    return;
                }
                _ => {}
            }
            // 20 segments in 40 ms.
            assert!(!bbr.policer.detected || bbr.policer.bw == 20 * BW_UNIT / 40_000);
        }
        panic!("the policer of round {found_at:?} never expires");
    }

    #[test]
    fn an_app_limited_sample_counts_only_if_it_is_no_less_than_the_largest() {
        // 10 Mbit/s are 13 981/2^24 segments a µs, 17 segments in 40 ms are 7130, 68 are 28 521.
        let largest = |app_limited, delivered: u32| {
            let mut bbr = cruising(10, 40, 2);
            for round in 1..=12 {
                let all = delivered * round;
                let mut rs = ack(40 * u64::from(round), delivered, delivered, 40, (all, delivered));
                rs.sample.as_mut().unwrap().app_limited = app_limited;
                bbr.on_rate_sample(&rs);
            }
            assert_eq!(bbr.rounds, 12);
            bbr.bw()
        };
        assert_eq!(largest(false, 17), 7130, "ten round trips later the largest is forgotten");
        assert_eq!(largest(true, 17), 13_981);
        assert_eq!(largest(true, 68), 28_521);
    }

    #[test]
    fn the_time_of_probe_rtt_begins_with_four_segments_in_flight() {
        let mut bbr = cruising(10, 40, 2);
        let mut done = |ms, in_flight: u32| {
            bbr.on_rate_sample(&ack(ms, 1, 34, 41, (100, in_flight + 1)));
            let Mode::ProbeRtt { done, .. } = bbr.mode else { panic!("{:?}", bbr.mode) };
            done
        };
        // 10 016 ms are 2504 jiffies, and 200 ms 50.
        let in_flight = [(10_004, 73), (10_008, 8), (10_012, 5), (10_016, 4)];
        assert_eq!(in_flight.map(|(ms, many)| done(ms, many)), [None, None, None, Some(2554)]);
    }

    #[test]
    fn a_restart_after_idle_paces_at_the_bandwidth_whatever_the_phase() {
        for phase in [0, 1, 2] {
            let mut bbr = cruising(10, 40, phase);
            bbr.set_pacing_rate(PACING_GAINS[phase]);
            bbr.on_idle_restart(Time(500 * MS), Totals::default());
            assert_eq!(bbr.rate(), Some(1_194_598), "phase {phase}");
        }
        // Startup has found no bandwidth, so its rate stays.
        let mut starting = established(Some(40));
        starting.on_idle_restart(Time(500 * MS), Totals::default());
        assert_eq!(starting.rate(), established(Some(40)).rate());
    }

    #[test]
    fn after_an_undo_startup_counts_its_rounds_again_and_keeps_its_bandwidth() {
        let mut bbr = established(Some(40));
        bbr.undo(0.0, Totals::default());
        // The first round trip has no predecessor; three more bring no growth.
        let mut full_bw_reached = |round: u32| {
            let rs = ack(40 * u64::from(round), 34, 34, 40, (34 * round, 34));
            bbr.on_rate_sample(&rs);
            bbr.full_bw_reached
        };
        assert_eq!([1, 2, 3, 4].map(&mut full_bw_reached), [false, false, false, true]);
        // 34 segments in 40 ms: twice the BDP, one for aggregation, and six. The rate falls.
        let mut bbr = cruising(10, 40, 2);
        (bbr.cwnd, bbr.pacing_rate) = (200, 9_000_000);
        bbr.undo(0.0, Totals::default());
        bbr.on_rate_sample(&ack(40, 1, 34, 40, (100, 60)));
        assert_eq!((bbr.cwnd, bbr.rate()), (76, Some(1_218_437)));
    }

    #[test]
    fn aggregation_older_than_five_round_trips_does_not_count() {
        let mut gathered = Aggregation::default();
        let mut round = |acked| {
            gathered.update(acked, 1, 0, 1000, true);
            gathered.restart(1);
            gathered.extra
        };
        assert_eq!([30, 2, 2, 2].map(&mut round), [[30, 0]; 4]);
        assert_eq!([2, 2, 2, 2, 2].map(&mut round), [[30, 2]; 5]);
        assert_eq!(round(2), [2, 2]);
    }
}
