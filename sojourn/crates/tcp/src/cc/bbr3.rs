//! BBR, version 3: BBR's model of the path with bounds that losses set, so that BBR leaves room for
//! other flows.
//!
//! The model is the largest delivery rate of two probing cycles and the least RTT of ten seconds.
//! In the long term, a probe that loses more than 2 % of a flight sets `inflight_longterm`, the
//! largest safe number in flight. In the short term, a round trip with a loss outside a probe sets
//! `bw_shortterm` and `inflight_shortterm`, which it reduces by a factor of at least 0.7. ProbeBW
//! cycles through *Down* (0.9 of the rate), *Cruise*, *Refill* (a round trip without the short-term
//! bounds) and *Up* (5/4). A cycle takes two to three seconds, or less where Reno would probe
//! sooner: then as many round trips as there are segments in flight, at most 63. ProbeRTT halves
//! the segments in flight for 200 ms if five seconds gave no lower RTT.
//!
//! Source: draft-ietf-ccwg-bbr of 3 August 2026, whose names this file uses. Choices where the
//! draft leaves one: gains are those of its table. Drain ends by time once more than three rounds
//! have begun since its start. The loss rate of a round of Startup is taken at the segment that
//! ends the round. The state that an undo restores is saved when a recovery begins. Deviations:
//! segments, not bytes. A late segment takes up to half of its lateness off the next gap, as in
//! Linux. An ECN echo counts as a loss.

use super::minmax::WindowedMax;
use super::{Ack, Congestion, CongestionControl, Needs, Paced, RateSampled, Signal};
use crate::TcpParams;
use crate::rate::{LostSegment, RateSample, Repair, Sample, Totals, micros};
use units::{Rng, Span, Time, whole};

const LOSS_THRESH: f64 = 0.02;
const BETA: f64 = 0.7;
const HEADROOM: f64 = 0.15;
const MIN_PIPE_CWND: f64 = 4.0;
const DEFAULT_CWND_GAIN: f64 = 2.0;
const UP_CWND_GAIN: f64 = 2.25;
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
const STARTUP_PACING_GAIN: f64 = 2.77;
const DRAIN_PACING_GAIN: f64 = 0.5;
const DOWN_PACING_GAIN: f64 = 0.9;
const UP_PACING_GAIN: f64 = 1.25;
/// 1 - PacingMarginPercent.
const PACING_MARGIN: f64 = 0.99;
const FULL_BW_GROWTH: f64 = 1.25;
const FULL_BW_ROUNDS: u32 = 3;
const STARTUP_FULL_LOSS_COUNT: u32 = 6;
const DRAIN_ROUNDS: u32 = 3;
const EXTRA_ACKED_ROUNDS: u32 = 10;
const MIN_RTT_FILTER: Span = Span::from_secs(10);
const PROBE_RTT_INTERVAL: Span = Span::from_secs(5);
const PROBE_RTT_DURATION: Span = Span::from_millis(200);
const RENO_ROUNDS: f64 = 63.0;
const MOST_QUANTUM_BYTES: f64 = 65_536.0;
/// The initial RTT if the handshake gave none, s.
const FIRST_RTT: f64 = 0.001;

/// BBR.state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl Phase {
    fn is_probe_bw(self) -> bool {
        matches!(self, Phase::Down | Phase::Cruise | Phase::Refill | Phase::Up)
    }

    /// The phase sends faster than before, to find more bandwidth.
    fn is_probing(self) -> bool {
        matches!(self, Phase::Startup | Phase::Refill | Phase::Up)
    }

    pub(crate) fn pacing_gain(self) -> f64 {
        match self {
            Phase::Startup => STARTUP_PACING_GAIN,
            Phase::Drain => DRAIN_PACING_GAIN,
            Phase::Down => DOWN_PACING_GAIN,
            Phase::Up => UP_PACING_GAIN,
            Phase::Cruise | Phase::Refill | Phase::ProbeRtt => 1.0,
        }
    }

    pub(crate) fn cwnd_gain(self) -> f64 {
        match self {
            Phase::Up => UP_CWND_GAIN,
            Phase::ProbeRtt => PROBE_RTT_CWND_GAIN,
            _ => DEFAULT_CWND_GAIN,
        }
    }
}

/// BBR.ack_phase: the part of a probe to which the current ACKs belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// Bounds that losses set; infinite means no bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// BBR.bw_shortterm, segments a second.
    pub bw_shortterm: f64,
    /// BBR.inflight_shortterm, segments.
    pub inflight_shortterm: f64,
    /// BBR.inflight_longterm, segments.
    pub inflight_longterm: f64,
}

const UNBOUNDED: Bounds = Bounds {
    bw_shortterm: f64::INFINITY,
    inflight_shortterm: f64::INFINITY,
    inflight_longterm: f64::INFINITY,
};

/// The state that an undo of a spurious recovery restores.
#[derive(Clone, Copy, Debug)]
struct Undo {
    /// The phase that a loss ended.
    phase: Option<Phase>,
    bounds: Bounds,
}

/// State of BBRv3.
pub struct Bbr3 {
    pub(crate) phase: Phase,
    cwnd: f64,
    initial_cwnd: f64,
    prior_cwnd: f64,
    /// Payload bytes a second.
    pacing_rate: f64,
    mss: f64,
    rng: Rng,
    repair: Repair,
    /// C.delivered at the last ACK.
    delivered: u32,
    /// RS.delivery_rate of the last ACK, segments a second; 0: no valid sample.
    delivery_rate: f64,

    // the model
    /// BBR.max_bw of the current cycle and of the preceding one.
    max_bw: [f64; 2],
    pub(crate) bounds: Bounds,
    min_rtt_us: Option<f64>,
    min_rtt_stamp: Time,
    extra_acked: ExtraAcked,

    // rounds and what they delivered
    pub(crate) round_count: u32,
    next_round_delivered: u32,
    pub(crate) round_start: bool,
    loss_round_delivered: u32,
    loss_round_start: bool,
    is_loss_in_round: bool,
    bw_latest: f64,
    inflight_latest: f64,

    // Startup and Drain
    full_bw: f64,
    full_bw_count: u32,
    pub(crate) full_bw_now: bool,
    pub(crate) full_bw_reached: bool,
    /// The number of separate ranges lost in this round.
    lost_ranges: u32,
    /// The round in which the current fast recovery began.
    recovery_round: Option<u32>,
    drain_start_round: u32,

    // ProbeBW
    ack_phase: AckPhase,
    is_bw_probe_sample: bool,
    pub(crate) prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    rounds_since_probe_up: u32,
    cycle_stamp: Time,
    bw_probe_wait: Span,
    bw_probe_up_rounds: u32,
    bw_probe_up_acked: f64,
    probe_up_acked_per_inc: f64,

    // ProbeRTT
    probe_rtt_min_us: f64,
    probe_rtt_min_stamp: Time,
    probe_rtt_expired: bool,
    probe_rtt_done_stamp: Option<Time>,
    probe_rtt_round_done: bool,
    pub(crate) idle_restart: bool,
    undo: Undo,
}

impl Bbr3 {
    /// The state before the connection is established.
    pub fn new(params: &TcpParams) -> Bbr3 {
        let initial_cwnd = f64::from(params.growth.initial_window);
        Bbr3 {
            phase: Phase::Startup,
            cwnd: initial_cwnd,
            initial_cwnd,
            prior_cwnd: 0.0,
            pacing_rate: 0.0,
            mss: params.mss_without_options().into(),
            rng: Rng::new(0, "bbr3"),
            repair: Repair::None,
            delivered: 0,
            delivery_rate: 0.0,
            max_bw: [0.0; 2],
            bounds: UNBOUNDED,
            min_rtt_us: None,
            min_rtt_stamp: Time::ZERO,
            extra_acked: ExtraAcked::default(),
            round_count: 0,
            next_round_delivered: 0,
            round_start: false,
            loss_round_delivered: 0,
            loss_round_start: false,
            is_loss_in_round: false,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            full_bw: 0.0,
            full_bw_count: 0,
            full_bw_now: false,
            full_bw_reached: false,
            lost_ranges: 0,
            recovery_round: None,
            drain_start_round: 0,
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            rounds_since_probe_up: 0,
            cycle_stamp: Time::ZERO,
            bw_probe_wait: Span::ZERO,
            bw_probe_up_rounds: 0,
            bw_probe_up_acked: 0.0,
            probe_up_acked_per_inc: f64::INFINITY,
            probe_rtt_min_us: f64::INFINITY,
            probe_rtt_min_stamp: Time::ZERO,
            probe_rtt_expired: false,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            undo: Undo { phase: None, bounds: UNBOUNDED },
        }
    }

    // --- the model's values ---

    /// BBR.max_bw, segments a second.
    pub(crate) fn max_bw(&self) -> f64 {
        self.max_bw[0].max(self.max_bw[1])
    }

    /// BBR.bw: the largest bandwidth, unless losses have bounded it for the short term.
    pub(crate) fn bw(&self) -> f64 {
        self.max_bw().min(self.bounds.bw_shortterm)
    }

    /// The BDP for a bandwidth, segments; before the first RTT, the initial window.
    fn bdp(&self, bw: f64) -> f64 {
        self.min_rtt_us.map_or(self.initial_cwnd, |us| bw * us / 1e6)
    }

    /// QuantizationBudget.
    fn quantized(&self, inflight: f64) -> f64 {
        let quantum =
            (self.pacing_rate / 1000.0).min(MOST_QUANTUM_BYTES).max(2.0 * self.mss) / self.mss;
        let enough = inflight.max(3.0 * quantum).max(MIN_PIPE_CWND);
        if self.phase == Phase::Up { enough + 2.0 } else { enough }
    }

    /// Inflight: the segments that fill the path `gain` times at a bandwidth.
    pub(crate) fn inflight(&self, bw: f64, gain: f64) -> f64 {
        self.quantized(gain * self.bdp(bw))
    }

    /// InflightWithHeadroom: leaves a part of the safe inflight to other flows.
    pub(crate) fn inflight_with_headroom(&self) -> f64 {
        let longterm = self.bounds.inflight_longterm;
        if longterm.is_infinite() {
            return longterm;
        }
        (longterm - (HEADROOM * longterm).max(1.0)).max(MIN_PIPE_CWND)
    }

    fn probe_rtt_cwnd(&self) -> f64 {
        (PROBE_RTT_CWND_GAIN * self.bdp(self.bw())).max(MIN_PIPE_CWND)
    }

    /// TargetInflight.
    fn target_inflight(&self) -> f64 {
        self.bdp(self.bw()).min(self.cwnd)
    }

    // --- rounds, delivery and losses ---

    fn start_round(&mut self) {
        self.next_round_delivered = self.delivered;
    }

    /// UpdateLatestDeliverySignals.
    fn update_latest_delivery_signals(&mut self, rs: &RateSample) {
        self.loss_round_start = false;
        let Some(sample) = rs.sample else { return };
        self.bw_latest = self.bw_latest.max(self.delivery_rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered.into());
        if sample.prior_delivered >= self.loss_round_delivered {
            self.loss_round_delivered = self.delivered;
            self.loss_round_start = true;
        }
    }

    /// AdvanceLatestDeliverySignals.
    fn advance_latest_delivery_signals(&mut self, rs: &RateSample) {
        if let (true, Some(sample)) = (self.loss_round_start, rs.sample) {
            self.bw_latest = self.delivery_rate;
            self.inflight_latest = sample.delivered.into();
        }
    }

    fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        (self.bw_latest, self.inflight_latest) = (0.0, 0.0);
    }

    /// UpdateCongestionSignals.
    fn update_congestion_signals(&mut self, rs: &RateSample) {
        self.update_max_bw(rs);
        if !self.loss_round_start {
            return;
        }
        if !self.phase.is_probing() && self.is_loss_in_round {
            self.lower_bounds();
        }
        self.is_loss_in_round = false;
    }

    /// UpdateMaxBw and UpdateRound.
    fn update_max_bw(&mut self, rs: &RateSample) {
        self.round_start = false;
        let Some(sample) = rs.sample else { return };
        if sample.prior_delivered >= self.next_round_delivered {
            self.start_round();
            self.round_count += 1;
            self.rounds_since_probe_up += 1;
            self.round_start = true;
        }
        let rate = self.delivery_rate;
        if rate > 0.0 && (rate >= self.max_bw() || !sample.app_limited) {
            self.max_bw[0] = self.max_bw[0].max(rate);
        }
    }

    /// AdvanceMaxBwFilter: after a cycle without a sample the earlier cycle remains.
    fn advance_max_bw_filter(&mut self) {
        if self.max_bw[0] > 0.0 {
            self.max_bw = [0.0, self.max_bw[0]];
        }
    }

    /// InitLowerBounds and LossLowerBounds: once a round trip, moves the bounds towards its
    /// delivery.
    fn lower_bounds(&mut self) {
        let (max_bw, cwnd) = (self.max_bw(), self.cwnd);
        let bounds = &mut self.bounds;
        if bounds.bw_shortterm.is_infinite() {
            bounds.bw_shortterm = max_bw;
        }
        if bounds.inflight_shortterm.is_infinite() {
            bounds.inflight_shortterm = cwnd;
        }
        bounds.bw_shortterm = self.bw_latest.max(BETA * bounds.bw_shortterm);
        bounds.inflight_shortterm = self.inflight_latest.max(BETA * bounds.inflight_shortterm);
    }

    fn reset_short_term_model(&mut self) {
        self.bounds.bw_shortterm = f64::INFINITY;
        self.bounds.inflight_shortterm = f64::INFINITY;
    }

    /// NoteLoss. The state is saved only when the recovery begins. If it were saved here, the
    /// second lost segment of an ACK would overwrite the state from before the first.
    fn note_loss(&mut self) {
        if !self.is_loss_in_round {
            self.loss_round_delivered = self.delivered;
        }
        self.is_loss_in_round = true;
    }

    /// HandleInflightTooHigh, once a probe.
    fn handle_inflight_too_high(&mut self, inflight: f64, app_limited: bool, now: Time) {
        self.prev_probe_too_high = true;
        self.is_bw_probe_sample = false;
        if !app_limited {
            self.bounds.inflight_longterm = inflight.max(self.target_inflight() * BETA);
        }
        if self.phase == Phase::Up {
            self.undo.phase = Some(Phase::Up);
            self.start_down(now);
        }
    }

    fn save_cwnd(&mut self) {
        let fresh = self.repair == Repair::None && self.phase != Phase::ProbeRtt;
        self.prior_cwnd = if fresh { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    fn save_state_upon_loss(&mut self) {
        self.save_cwnd();
        self.undo = Undo { phase: None, bounds: self.bounds };
    }

    // --- Startup and Drain ---

    fn reset_full_bw(&mut self, full_bw: f64) {
        (self.full_bw, self.full_bw_count, self.full_bw_now) = (full_bw, 0, false);
    }

    /// CheckFullBWReached.
    fn check_full_bw_reached(&mut self, rs: &RateSample) {
        let Some(Sample { app_limited: false, .. }) = rs.sample else { return };
        if self.full_bw_now || !self.round_start {
            return;
        }
        let rate = self.delivery_rate;
        if rate >= self.full_bw * FULL_BW_GROWTH {
            self.reset_full_bw(rate);
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= FULL_BW_ROUNDS;
        self.full_bw_reached |= self.full_bw_now;
    }

    /// CheckStartupHighLoss, CheckStartupDone.
    fn check_startup_done(&mut self, rs: &RateSample) {
        if self.phase == Phase::Startup && !self.full_bw_reached && self.is_startup_lossy(rs) {
            self.undo.phase = Some(Phase::Startup);
            (self.full_bw_now, self.full_bw_reached) = (true, true);
            self.bounds.inflight_longterm = self.bdp(self.bw()).max(self.inflight_latest);
        }
        if self.loss_round_start {
            self.lost_ranges = 0;
        }
        if self.phase == Phase::Startup && self.full_bw_reached {
            self.phase = Phase::Drain;
            self.drain_start_round = self.round_count;
        }
    }

    /// A whole round trip of a fast recovery lost more than the threshold, in several ranges.
    fn is_startup_lossy(&self, rs: &RateSample) -> bool {
        let whole_round = self.recovery_round.is_some_and(|began| self.round_count > began);
        self.loss_round_start
            && whole_round
            && self.lost_ranges >= STARTUP_FULL_LOSS_COUNT
            && rs.sample.is_some_and(|sample| is_too_high(sample.lost, sample.tx_in_flight))
    }

    fn check_drain_done(&mut self, rs: &RateSample) {
        if self.phase == Phase::Drain
            && (f64::from(rs.in_flight) <= self.inflight(self.bw(), 1.0)
                || self.round_count > self.drain_start_round + DRAIN_ROUNDS)
        {
            self.start_down(rs.now);
        }
    }

    // --- ProbeBW ---

    fn start_down(&mut self, now: Time) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_inc = f64::INFINITY;
        self.rounds_since_probe_up = self.rng.below(2) as u32;
        self.bw_probe_wait = Span::from_secs_f64(2.0 + self.rng.unit());
        self.cycle_stamp = now;
        self.ack_phase = AckPhase::Stopping;
        self.start_round();
        self.phase = Phase::Down;
    }

    fn start_refill(&mut self) {
        self.reset_short_term_model();
        self.bw_probe_up_rounds = 0;
        self.bw_probe_up_acked = 0.0;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.phase = Phase::Refill;
    }

    fn start_up(&mut self) {
        self.is_bw_probe_sample = true;
        self.ack_phase = AckPhase::Starting;
        self.start_round();
        self.reset_full_bw(self.delivery_rate);
        self.phase = Phase::Up;
        self.raise_inflight_longterm_slope();
    }

    /// UpdateProbeBWCyclePhase.
    fn update_probe_bw_cycle_phase(&mut self, rs: &RateSample) {
        if !self.full_bw_reached || self.adapt_long_term_model(rs) {
            return;
        }
        match self.phase {
            Phase::Down | Phase::Cruise if self.is_time_to_probe_bw(rs.now) => self.start_refill(),
            Phase::Down if self.is_time_to_cruise(rs) => self.phase = Phase::Cruise,
            Phase::Refill if self.round_start => self.start_up(),
            Phase::Up => self.go_down_in_time(rs),
            _ => {}
        }
    }

    fn is_time_to_probe_bw(&self, now: Time) -> bool {
        let as_reno = self.target_inflight().min(RENO_ROUNDS);
        now > self.cycle_stamp + self.bw_probe_wait
            || f64::from(self.rounds_since_probe_up) >= as_reno
    }

    fn is_time_to_cruise(&self, rs: &RateSample) -> bool {
        let in_flight = f64::from(rs.in_flight);
        in_flight <= self.inflight_with_headroom() && in_flight <= self.inflight(self.max_bw(), 1.0)
    }

    fn go_down_in_time(&mut self, rs: &RateSample) {
        if self.is_time_to_go_down(rs) {
            self.prev_probe_too_high = false;
            self.start_down(rs.now);
        }
    }

    fn is_time_to_go_down(&mut self, rs: &RateSample) -> bool {
        let longterm = self.bounds.inflight_longterm;
        if self.prev_probe_too_high && f64::from(rs.in_flight) >= longterm {
            self.prev_probe_precautionary = true;
            return true;
        }
        if rs.cwnd_limited && self.cwnd >= longterm {
            // The bound hides further bandwidth.
            self.reset_full_bw(self.delivery_rate);
            return false;
        }
        self.full_bw_now
    }

    /// AdaptLongTermModel. Returns whether it has changed the phase.
    fn adapt_long_term_model(&mut self, rs: &RateSample) -> bool {
        if self.ack_phase == AckPhase::Starting && self.round_start {
            self.ack_phase = AckPhase::Feedback;
        }
        if self.ack_phase == AckPhase::Stopping && self.round_start {
            self.is_bw_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            let app_limited = rs.sample.is_some_and(|sample| sample.app_limited);
            if self.phase.is_probe_bw() && !app_limited {
                self.advance_max_bw_filter();
            }
            if self.phase.is_probe_bw()
                && self.prev_probe_precautionary
                && !self.prev_probe_too_high
            {
                self.start_refill();
                return true;
            }
        }
        let Some(sample) = rs.sample else { return false };
        let longterm = self.bounds.inflight_longterm;
        if !is_too_high(sample.lost, sample.tx_in_flight) && longterm.is_finite() {
            self.bounds.inflight_longterm = longterm.max(sample.tx_in_flight.into());
            if self.phase == Phase::Up {
                self.probe_inflight_longterm_upward(rs);
            }
        }
        false
    }

    fn raise_inflight_longterm_slope(&mut self) {
        let growth_this_round = f64::from(1u32 << self.bw_probe_up_rounds);
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_inc = (self.cwnd / growth_this_round).max(1.0);
    }

    fn probe_inflight_longterm_upward(&mut self, rs: &RateSample) {
        if !rs.cwnd_limited || self.cwnd < self.bounds.inflight_longterm {
            return;
        }
        self.bw_probe_up_acked += f64::from(rs.acked);
        if self.bw_probe_up_acked >= self.probe_up_acked_per_inc {
            let delta = (self.bw_probe_up_acked / self.probe_up_acked_per_inc).floor();
            self.bw_probe_up_acked -= delta * self.probe_up_acked_per_inc;
            self.bounds.inflight_longterm += delta;
        }
        if self.round_start {
            self.raise_inflight_longterm_slope();
        }
    }

    // --- ProbeRTT ---

    fn update_min_rtt(&mut self, rs: &RateSample) {
        self.probe_rtt_expired = rs.now > self.probe_rtt_min_stamp + PROBE_RTT_INTERVAL;
        if let Some(us) = rs.rtt_us.map(f64::from)
            && (us < self.probe_rtt_min_us || self.probe_rtt_expired)
        {
            (self.probe_rtt_min_us, self.probe_rtt_min_stamp) = (us, rs.now);
        }
        let expired = rs.now > self.min_rtt_stamp + MIN_RTT_FILTER;
        if self.probe_rtt_min_us.is_finite()
            && (expired || self.min_rtt_us.is_none_or(|least| self.probe_rtt_min_us < least))
        {
            self.min_rtt_us = Some(self.probe_rtt_min_us);
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
    }

    fn check_probe_rtt(&mut self, rs: &RateSample) {
        if self.phase != Phase::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.save_cwnd();
            self.phase = Phase::ProbeRtt;
            self.probe_rtt_done_stamp = None;
            self.ack_phase = AckPhase::Stopping;
            self.start_round();
        }
        if self.phase == Phase::ProbeRtt {
            self.handle_probe_rtt(rs);
        }
        if rs.sample.is_some_and(|sample| sample.delivered > 0) {
            self.idle_restart = false;
        }
    }

    fn handle_probe_rtt(&mut self, rs: &RateSample) {
        if self.probe_rtt_done_stamp.is_some() {
            self.probe_rtt_round_done |= self.round_start;
            if self.probe_rtt_round_done {
                self.check_probe_rtt_done(rs.now);
            }
        } else if f64::from(rs.in_flight) <= self.probe_rtt_cwnd() {
            self.probe_rtt_done_stamp = Some(rs.now + PROBE_RTT_DURATION);
            self.probe_rtt_round_done = false;
            self.start_round();
        }
    }

    fn check_probe_rtt_done(&mut self, now: Time) {
        if self.probe_rtt_done_stamp.is_none_or(|done| now <= done) {
            return;
        }
        self.probe_rtt_min_stamp = now;
        self.restore_cwnd();
        self.reset_short_term_model();
        if self.full_bw_reached {
            self.start_down(now);
            self.phase = Phase::Cruise;
        } else {
            self.phase = Phase::Startup;
        }
    }

    // --- pacing rate and cwnd ---

    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bw() * self.mss * PACING_MARGIN;
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    fn update_cwnd(&mut self, rs: &RateSample) {
        if rs.acked == 0 {
            return self.bound_cwnd();
        }
        let acked = f64::from(rs.acked);
        let extra = self.extra_acked.get();
        let most = self.quantized(self.phase.cwnd_gain() * self.bdp(self.bw()) + extra);
        if self.full_bw_reached {
            self.cwnd = (self.cwnd + acked).min(most);
        } else if self.cwnd < most || f64::from(self.delivered) < self.initial_cwnd {
            self.cwnd += acked;
        }
        self.cwnd = self.cwnd.max(MIN_PIPE_CWND);
        self.bound_cwnd();
    }

    /// BoundCwndForProbeRTT, BoundCwndForModel.
    fn bound_cwnd(&mut self) {
        if self.phase == Phase::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        let longterm = match self.phase {
            Phase::Cruise | Phase::ProbeRtt => self.inflight_with_headroom(),
            phase if phase.is_probe_bw() => self.bounds.inflight_longterm,
            _ => f64::INFINITY,
        };
        let most = longterm.min(self.bounds.inflight_shortterm).max(MIN_PIPE_CWND);
        self.cwnd = self.cwnd.min(most);
    }

    /// Applies the start and the end of a recovery.
    fn follow_recovery(&mut self, rs: &RateSample) {
        let before = std::mem::replace(&mut self.repair, rs.repair);
        if rs.repair == Repair::Recovery && before != Repair::Recovery {
            self.recovery_round = Some(self.round_count);
        } else if rs.repair != Repair::Recovery {
            self.recovery_round = None;
        }
        if before != Repair::None && rs.repair == Repair::None {
            self.restore_cwnd();
        }
    }
}

/// RS.delivery_rate, segments a second; 0: no valid sample.
fn delivery_rate(rs: &RateSample) -> f64 {
    match (rs.sample, rs.interval()) {
        (Some(sample), Some(us)) => f64::from(sample.delivered) * 1e6 / f64::from(us),
        _ => 0.0,
    }
}

/// IsInflightTooHigh.
fn is_too_high(lost: u32, tx_in_flight: u32) -> bool {
    f64::from(lost) > f64::from(tx_in_flight) * LOSS_THRESH
}

/// InflightAtLoss: the point of a flight, up to this segment, where the losses passed the
/// threshold.
pub(crate) fn inflight_at_loss(lost: &LostSegment) -> f64 {
    let inflight_prev = f64::from(lost.tx_in_flight) - 1.0;
    let lost_prev = f64::from(lost.lost) - 1.0;
    inflight_prev + (LOSS_THRESH * inflight_prev - lost_prev) / (1.0 - LOSS_THRESH)
}

impl RateSampled for Bbr3 {
    fn on_established(&mut self, rtt: Option<Span>, totals: Totals, now: Time) {
        let seconds = rtt.map_or(FIRST_RTT, |rtt| rtt.as_secs_f64());
        self.pacing_rate = STARTUP_PACING_GAIN * self.cwnd * self.mss / seconds;
        self.min_rtt_us = rtt.map(|rtt| micros(Time(rtt.0)) as f64);
        self.probe_rtt_min_us = self.min_rtt_us.unwrap_or(f64::INFINITY);
        (self.min_rtt_stamp, self.probe_rtt_min_stamp) = (now, now);
        self.delivered = totals.delivered;
        self.extra_acked.restart(now);
    }

    fn set_rng(&mut self, rng: Rng) {
        self.rng = rng;
    }

    fn on_lost(&mut self, lost: &LostSegment) {
        self.delivered = lost.delivered;
        self.note_loss();
        self.lost_ranges += u32::from(lost.begins_range);
        if self.is_bw_probe_sample && is_too_high(lost.lost, lost.tx_in_flight) {
            self.handle_inflight_too_high(inflight_at_loss(lost), lost.app_limited, lost.now);
        }
    }

    fn on_rate_sample(&mut self, rs: &RateSample) {
        self.delivered = rs.totals.delivered;
        self.delivery_rate = delivery_rate(rs);
        self.follow_recovery(rs);
        self.update_latest_delivery_signals(rs);
        self.update_congestion_signals(rs);
        let (bw, cwnd) = (self.bw(), self.cwnd);
        let rounds = if self.full_bw_reached { EXTRA_ACKED_ROUNDS } else { 1 };
        self.extra_acked.update(rs, bw, cwnd, (self.round_count, rounds));
        self.check_full_bw_reached(rs);
        self.check_startup_done(rs);
        self.check_drain_done(rs);
        self.update_probe_bw_cycle_phase(rs);
        self.update_min_rtt(rs);
        self.check_probe_rtt(rs);
        self.advance_latest_delivery_signals(rs);
        self.set_pacing_rate(self.phase.pacing_gain());
        self.update_cwnd(rs);
    }

    fn limits_itself(&self) -> bool {
        self.phase == Phase::ProbeRtt
    }

    fn on_idle_restart(&mut self, now: Time, _: Totals) {
        self.idle_restart = true;
        self.extra_acked.restart(now);
        if self.phase.is_probe_bw() {
            self.set_pacing_rate(1.0);
        } else if self.phase == Phase::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }

    fn on_timeout(&mut self, _: Totals) {
        self.repair = Repair::Loss;
        self.recovery_round = None;
    }
}

impl Paced for Bbr3 {
    fn rate(&self) -> Option<u64> {
        Some(whole(self.pacing_rate))
    }
}

impl CongestionControl for Bbr3 {
    fn needs(&self) -> Needs {
        Needs { acks: false, rate_samples: true, sets_cwnd: true, paced: true, ..Needs::ACKS }
    }

    fn on_ack(&mut self, _: &Ack) {}

    fn on_congestion(&mut self, event: &Congestion) {
        self.save_state_upon_loss();
        if event.signal == Signal::Ecn {
            self.note_loss();
            if self.is_bw_probe_sample {
                self.handle_inflight_too_high(event.inflight.into(), false, event.now);
            }
        }
    }

    /// HandleSpuriousLossDetection.
    fn undo(&mut self, _: f64, _: Totals) {
        self.restore_cwnd();
        self.is_loss_in_round = false;
        self.reset_full_bw(0.0);
        let (now, before) = (&mut self.bounds, self.undo.bounds);
        now.bw_shortterm = now.bw_shortterm.max(before.bw_shortterm);
        now.inflight_shortterm = now.inflight_shortterm.max(before.inflight_shortterm);
        now.inflight_longterm = now.inflight_longterm.max(before.inflight_longterm);
        match self.undo.phase.take() {
            Some(Phase::Startup) if self.phase != Phase::Startup => {
                self.full_bw_reached = false;
                if self.phase != Phase::ProbeRtt {
                    self.phase = Phase::Startup;
                }
            }
            Some(Phase::Up) if !matches!(self.phase, Phase::Up | Phase::ProbeRtt) => {
                self.start_refill();
            }
            _ => {}
        }
    }

    fn cwnd(&self) -> f64 {
        self.cwnd
    }

    fn set_cwnd(&mut self, cwnd: f64) {
        self.cwnd = cwnd;
    }

    /// BBR has no ssthresh.
    fn ssthresh(&self) -> f64 {
        f64::INFINITY
    }

    fn set_ssthresh(&mut self, _: f64) {}
}

/// BBR.extra_acked: the maximum, over some round trips, of segments acknowledged beyond the
/// bandwidth.
#[derive(Clone, Copy, Debug, Default)]
struct ExtraAcked {
    interval_start: Time,
    delivered: f64,
    most: WindowedMax,
}

impl ExtraAcked {
    fn get(&self) -> f64 {
        self.most.get() as f64
    }

    fn restart(&mut self, now: Time) {
        (self.interval_start, self.delivered) = (now, 0.0);
    }

    fn update(&mut self, rs: &RateSample, bw: f64, cwnd: f64, (round, window): (u32, u32)) {
        let mut expected = bw * rs.now.since(self.interval_start).as_secs_f64();
        if self.delivered <= expected {
            self.restart(rs.now);
            expected = 0.0;
        }
        self.delivered += f64::from(rs.acked);
        let extra = (self.delivered - expected).min(cwnd);
        self.most.update(whole(extra), round, window);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// The model has converged: 1000 segments a second and an RTT of 40 ms, so the BDP is 40.
    fn converged(phase: Phase) -> Bbr3 {
        let mut bbr = Bbr3::new(&TcpParams::LINUX);
        bbr.on_established(Some(Span::from_millis(40)), Totals::default(), Time::ZERO);
        (bbr.max_bw, bbr.cwnd) = ([1000.0; 2], 80.0);
        (bbr.phase, bbr.full_bw_reached) = (phase, true);
        bbr
    }

    /// An ACK at `ms` of one segment. Since that segment left, 40 were delivered in 40 ms.
    fn ack(ms: u64) -> RateSample {
        RateSample {
            now: Time(ms * MS),
            sample: Some(sample()),
            acked: 1,
            losses: 0,
            prior_in_flight: 40,
            in_flight: 39,
            rtt_us: Some(40_000),
            totals: Totals { delivered: 100, delivered_us: 1000 * ms, lost: 0 },
            departure: Time(ms * MS),
            repair: Repair::None,
            cwnd_limited: true,
        }
    }

    fn sample() -> Sample {
        Sample {
            prior_delivered: 60,
            delivered: 40,
            interval_us: Some(40_000),
            app_limited: false,
            tx_in_flight: 40,
            lost: 0,
        }
    }
    #[test]
    fn up_continues_if_a_bound_limits_it_and_not_the_application() {
        for cwnd_limited in [true, false] {
            let mut bbr = converged(Phase::Up);
            (bbr.bounds.inflight_longterm, bbr.full_bw_now) = (60.0, true);
            let goes_down = bbr.is_time_to_go_down(&RateSample { cwnd_limited, ..ack(1) });
            assert_eq!(goes_down, !cwnd_limited);
        }
    }
    #[test]
    fn the_headroom_is_15_percent_and_at_least_a_segment() {
        let left = [100.0, 6.0, 4.0, f64::INFINITY].map(|longterm| {
            let mut bbr = converged(Phase::Cruise);
            bbr.bounds.inflight_longterm = longterm;
            bbr.inflight_with_headroom()
        });
        assert_eq!(left, [85.0, 5.0, 4.0, f64::INFINITY]);
    }
    #[test]
    fn the_time_between_probes_is_drawn_between_two_and_three_seconds() {
        let mut bbr = converged(Phase::Up);
        bbr.set_rng(Rng::new(1, "bbr3"));
        let mut rounds = [0; 2];
        for _ in 0..200 {
            bbr.start_down(Time::ZERO);
            let wait = bbr.bw_probe_wait.as_secs_f64();
            assert!((2.0..3.0).contains(&wait), "{wait}");
            rounds[bbr.rounds_since_probe_up as usize] += 1;
        }
        assert!(rounds.iter().all(|times| *times > 60), "{rounds:?}");
    }
    #[test]
    fn startup_ends_on_losses_in_six_places_of_a_round_trip() {
        let lossy = |ranges, lost| {
            let mut bbr = converged(Phase::Startup);
            (bbr.lost_ranges, bbr.loss_round_start) = (ranges, true);
            (bbr.recovery_round, bbr.round_count) = (Some(3), 4);
            let sample = Some(Sample { lost, tx_in_flight: 100, ..sample() });
            bbr.is_startup_lossy(&RateSample { sample, ..ack(1) })
        };
        assert_eq!([(5, 3), (6, 3), (6, 2)].map(|(r, l)| lossy(r, l)), [false, true, false]);
    }
    #[test]
    fn a_loss_lowers_the_short_term_bounds_to_what_was_delivered_or_by_three_tenths() {
        let lowered = |bw_latest, inflight_latest| {
            let mut bbr = converged(Phase::Cruise);
            (bbr.bw_latest, bbr.inflight_latest) = (bw_latest, inflight_latest);
            bbr.lower_bounds();
            (bbr.bounds.bw_shortterm, bbr.bounds.inflight_shortterm)
        };
        assert_eq!(lowered(800.0, 70.0), (800.0, 70.0));
        assert_eq!(lowered(100.0, 10.0), (700.0, 56.0));
    }
    #[test]
    fn the_window_of_up_has_two_more_segments() {
        let holds = [Phase::Cruise, Phase::Up].map(|phase| converged(phase).inflight(1000.0, 1.0));
        assert_eq!(holds, [40.0, 42.0]);
    }
    #[test]
    fn the_least_rtt_is_of_ten_seconds_and_probe_rtt_s_of_five() {
        let mut bbr = converged(Phase::Cruise);
        let mut least = |ms| {
            bbr.update_min_rtt(&RateSample { rtt_us: Some(50_000), ..ack(ms) });
            (bbr.min_rtt_us, bbr.probe_rtt_min_us)
        };
        assert_eq!(least(5_000), (Some(40_000.0), 40_000.0));
        assert_eq!(least(5_001), (Some(40_000.0), 50_000.0));
        assert_eq!(least(10_000), (Some(40_000.0), 50_000.0));
        assert_eq!(least(10_001), (Some(50_000.0), 50_000.0));
    }
    #[test]
    fn probe_rtt_lasts_200_ms_and_a_round_trip() {
        let mut bbr = converged(Phase::ProbeRtt);
        let mut phase = |ms, round_start| {
            bbr.round_start = round_start;
            bbr.handle_probe_rtt(&RateSample { in_flight: 20, ..ack(ms) });
            bbr.phase
        };
        assert_eq!(phase(100, true), Phase::ProbeRtt, "it begins: half of the path is in flight");
        assert_eq!(phase(301, false), Phase::ProbeRtt, "no round trip has passed");
        assert_eq!(phase(300, true), Phase::ProbeRtt, "200 ms are not over");
        assert_eq!(phase(301, false), Phase::Cruise);
    }
    #[test]
    fn in_up_the_bound_grows_twice_as_fast_each_round_trip() {
        let mut bbr = converged(Phase::Refill);
        bbr.start_up();
        let mut steps = vec![bbr.probe_up_acked_per_inc];
        for _ in 0..7 {
            bbr.raise_inflight_longterm_slope();
            steps.push(bbr.probe_up_acked_per_inc);
        }
        assert_eq!(steps, [80.0, 40.0, 20.0, 10.0, 5.0, 2.5, 1.25, 1.0]);
    }
    #[test]
    fn the_ack_aggregation_allowance_is_at_most_a_window_and_in_startup_lasts_a_round_trip() {
        let remembered = |reached: bool, acked| {
            let mut bbr = converged(if reached { Phase::Cruise } else { Phase::Startup });
            (bbr.full_bw_reached, bbr.cycle_stamp) = (reached, Time(MS));
            bbr.bw_probe_wait = Span::from_secs(9);
            for round in 0..4u32 {
                let delivered = 100 + 40 * round;
                bbr.on_rate_sample(&RateSample {
                    acked: if round == 0 { acked } else { 1 },
                    sample: Some(Sample { prior_delivered: delivered - 40, ..sample() }),
                    totals: Totals { delivered, delivered_us: 0, lost: 0 },
                    ..ack(40 + 40 * u64::from(round))
                });
            }
            bbr.extra_acked.get()
        };
        assert_eq!([remembered(true, 30), remembered(true, 100)], [30.0, 80.0]);
        assert_eq!(remembered(false, 30), 1.0);
    }
    #[test]
    fn an_undo_restores_the_window_before_the_first_of_several_reductions() {
        let saved = |phase, repair| {
            let mut bbr = converged(phase);
            (bbr.prior_cwnd, bbr.cwnd, bbr.repair) = (90.0, 30.0, repair);
            bbr.save_cwnd();
            bbr.prior_cwnd
        };
        assert_eq!(saved(Phase::Cruise, Repair::None), 30.0);
        assert_eq!(saved(Phase::Cruise, Repair::Recovery), 90.0);
        assert_eq!(saved(Phase::ProbeRtt, Repair::None), 90.0);
    }
    #[test]
    fn after_an_idle_time_it_sends_at_the_bandwidth_in_any_phase_of_its_cycle() {
        for phase in [Phase::Down, Phase::Cruise, Phase::Up] {
            let mut bbr = converged(phase);
            bbr.set_pacing_rate(phase.pacing_gain());
            bbr.on_idle_restart(Time(MS), Totals::default());
            assert_eq!(bbr.rate(), Some(whole(1000.0 * bbr.mss * PACING_MARGIN)), "{phase:?}");
        }
    }
    #[test]
    fn it_probes_as_often_as_reno_would_and_at_least_every_63_round_trips() {
        let is_time = |segments: f64, rounds| {
            let mut bbr = converged(Phase::Cruise);
            (bbr.max_bw, bbr.cwnd, bbr.rounds_since_probe_up) = ([25.0 * segments; 2], 1e6, rounds);
            bbr.bw_probe_wait = Span::from_secs(2);
            bbr.is_time_to_probe_bw(Time(MS))
        };
        assert_eq!([39, 40].map(|rounds| is_time(40.0, rounds)), [false, true]);
        assert_eq!([62, 63].map(|rounds| is_time(500.0, rounds)), [false, true]);
    }
    #[test]
    fn the_window_grows_until_the_first_is_delivered_whatever_the_model_says() {
        let grown = |delivered| {
            let mut bbr = converged(Phase::Startup);
            (bbr.full_bw_reached, bbr.max_bw, bbr.cwnd) = (false, [1.0; 2], 10.0);
            bbr.delivered = delivered;
            bbr.update_cwnd(&RateSample { acked: 2, ..ack(40) });
            bbr.cwnd
        };
        assert_eq!([9, 10].map(grown), [12.0, 10.0]);
    }
    #[test]
    fn an_undone_loss_lowers_no_bound_at_the_end_of_the_round() {
        let mut bbr = converged(Phase::Cruise);
        bbr.note_loss();
        bbr.undo(0.0, Totals::default());
        bbr.loss_round_delivered = 0;
        bbr.update_latest_delivery_signals(&ack(40));
        bbr.update_congestion_signals(&ack(40));
        assert!(bbr.loss_round_start && bbr.bounds.bw_shortterm.is_infinite());
    }
    #[test]
    fn a_quarter_more_bandwidth_counts_as_growth() {
        let counted = |rate| {
            let mut bbr = converged(Phase::Startup);
            (bbr.full_bw, bbr.full_bw_count, bbr.full_bw_now) = (1000.0, 1, false);
            (bbr.round_start, bbr.delivery_rate) = (true, rate);
            bbr.check_full_bw_reached(&ack(40));
            bbr.full_bw_count
        };
        assert_eq!([1249.0, 1250.0].map(counted), [2, 0]);
    }
    #[test]
    fn a_cycle_limited_by_the_application_keeps_the_bandwidth() {
        let max_bw_after = |app_limited| {
            let mut bbr = converged(Phase::Down);
            (bbr.max_bw, bbr.ack_phase) = ([900.0, 1000.0], AckPhase::Stopping);
            bbr.round_start = true;
            let sample = Some(Sample { app_limited, ..sample() });
            bbr.adapt_long_term_model(&RateSample { sample, ..ack(40) });
            bbr.max_bw
        };
        assert_eq!([true, false].map(max_bw_after), [[900.0, 1000.0], [0.0, 900.0]]);
    }
}
