//! CUBIC: after a loss cwnd follows a cubic function of the time since the loss, flat near the cwnd
//! of the loss and steep beyond it.
//!
//! W_cubic(t) = C (t - K)³ + W_max: concave up to W_max, then convex. Growth depends on the time
//! since the loss and not on the RTT, so flows of different RTTs share more evenly. If Reno would
//! be faster (small windows, short RTTs), cwnd follows W_est, Reno's window: the Reno-friendly
//! region. HyStart ends slow start before it overshoots: when a train of ACKs has become half an
//! RTT long, or when a round's RTTs exceed the least RTT by an eighth.
//!
//! Sources: RFC 9438 (section numbers below); Ha and Rhee, "Taming the elephants: new TCP slow
//! start" (2011); Linux net/ipv4/tcp_cubic.c since 6.14 for choices that neither fixes. The
//! comments contain Linux's identifiers.
//!
//! All numbers are whole, as in Linux; at windows of tens of segments this changes the losses by a
//! tenth:
//!
//! - windows in segments; time in jiffies of 4 ms (HZ 250), delay_min rounded up to whole jiffies;
//! - t and K in 1/1024 s, rounded down; |W_cubic - W_max| rounded down;
//! - β is 717/1024, and each product with β is rounded down;
//! - growth is `cnt`, the acknowledged segments for one segment of growth, rounded down: just below
//!   its target cwnd grows faster than the cubic;
//! - `cnt` is recomputed once a jiffy, and only once in 8 jiffies while cwnd does not change.
//!
//! Deviations from RFC 9438, all as in Linux: the target is W_cubic one delay_min ahead, not one
//! srtt; a multiplicative decrease starts from cwnd, not from the flight size; W_est keeps its α
//! when it passes the old cwnd; before the first loss cwnd grows by at least 1/20 an RTT; HyStart,
//! unless §4.10's HyStart++ is chosen; a cube root that is off by up to 0.15 %. §4.2 excludes from
//! the epoch all time in which cwnd was not the limit; Linux excludes only the time in which
//! nothing was in flight. `Ns2Mode` changes nothing here.

use super::hystart_plus_plus::HystartPlusPlus;
use super::{Ack, AckSample, Congestion, CongestionControl, CwndCnt, Needs, Signal, TxStart};
use crate::TcpParams;
use units::{Span, Time};

/// C, 0.4 segments per second cubed (§5.1), in 1024ths: bic_scale × 10.
const C: u64 = 410;
/// The kernel's jiffy with HZ 250, as in Debian's and Ubuntu's kernels.
const JIFFY: Span = Span::from_millis(4);
/// bictcp_update: while cwnd is `last_cwnd`, `cnt` is not recomputed for HZ/32.
const LAST_CWND_JIFFIES: u64 = 7;
/// β_cubic in 1024ths: congestion reduces cwnd to 0.7 (§4.6).
const BETA: u32 = 717;
/// beta_scale: W_est grows by one for `BETA_SCALE`/8 × cwnd acknowledged segments. 1/α_cubic =
/// (1+β)/3(1-β) = 1.89, rounded down to 15/8. With this α a Reno that reduces to β of its window
/// has the average window of one that halves it (§4.3).
const BETA_SCALE: u32 = 15;
/// At most one segment of growth for two acknowledged: 1.5 × cwnd in an RTT (§4.4, §4.5).
const CNT_MIN: u32 = 2;
/// At least one segment of growth for twenty acknowledged while W_max is unknown (bictcp_update).
const CNT_MAX_NO_LOSS: u32 = 20;
/// At or above the target: one segment of growth for a hundred cwnd (bictcp_update).
const PLATEAU_WINDOWS: u32 = 100;

/// State of RFC 9438. Windows are in segments.
pub struct Cubic {
    cwnd: u32,
    /// `u32::MAX`: unlimited.
    ssthresh: u32,
    cwnd_cnt: CwndCnt,
    /// W_max: cwnd at the last congestion, lowered by fast convergence (last_max_cwnd); 0 before
    /// the first.
    w_max: u32,
    epoch: Option<Epoch>,
    /// The least RTT since the last timeout (delay_min).
    delay_min: Option<Span>,
    /// RFC 8511.
    beta_ecn: Option<f64>,
    /// HyStart, for slow start.
    hystart: Box<HyStart>,
    /// HyStart++, which replaces HyStart until the first slow start has ended.
    plus_plus: Option<Box<HystartPlusPlus>>,
}

/// Congestion avoidance from its start to the next congestion (§4.2). The fields are those of
/// Linux's `struct bictcp`.
struct Epoch {
    /// epoch_start, advanced by the time in which nothing was in flight.
    start: Time,
    /// bic_origin_point: the cubic's plateau. It is the larger of W_max and the cwnd of the start.
    origin_point: u32,
    /// K: the time from the start to the plateau, in 1024ths of a second (bic_K).
    k: u64,
    /// W_est: Reno's window (tcp_cwnd).
    w_est: u32,
    /// Acknowledged segments that have not yet grown W_est.
    ack_cnt: u32,
    /// The time at which `cnt` was computed, in jiffies, and cwnd at that time.
    last_time: u64,
    last_cwnd: u32,
    /// Acknowledged segments for one segment of growth.
    cnt: u32,
}

impl Cubic {
    /// At the initial window, in slow start.
    pub fn new(params: &TcpParams) -> Cubic {
        Cubic {
            cwnd: params.growth.initial_window,
            ssthresh: params.growth.initial_ssthresh.unwrap_or(u32::MAX),
            cwnd_cnt: CwndCnt::default(),
            w_max: 0,
            epoch: None,
            delay_min: None,
            beta_ecn: params.growth.beta_ecn,
            hystart: Box::new(HyStart::new(params)),
            plus_plus: HystartPlusPlus::new(params),
        }
    }

    /// RFC 9406.
    #[cold]
    fn slow_start_plus_plus(&mut self, ack: &Ack) {
        let Some(plus_plus) = &mut self.plus_plus else { return };
        if ack.cwnd_limited {
            let growth = plus_plus.growth(ack.acked);
            self.cwnd = self.cwnd.saturating_add(growth).min(self.ssthresh);
        }
        if plus_plus.ends(ack) {
            (self.ssthresh, self.plus_plus) = (self.cwnd, None);
        }
    }

    /// Congestion avoidance (§4.4).
    #[inline]
    fn avoid_congestion(&mut self, acked: u32, ack: &Ack) {
        let cnt = self.update(acked, ack);
        self.cwnd = self.cwnd.saturating_add(self.cwnd_cnt.cong_avoid_ai(acked, cnt));
    }

    /// bictcp_update: the acknowledged segments for one segment of growth, by W_cubic or by W_est,
    /// whichever grows faster.
    #[inline]
    fn update(&mut self, acked: u32, ack: &Ack) -> u32 {
        let (cwnd, w_max) = (self.cwnd, self.w_max);
        let begun = self.epoch.is_some();
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(cwnd, w_max, ack.now));
        epoch.ack_cnt += acked;
        let now = jiffies(ack.now);
        let recent = begun && now - epoch.last_time <= LAST_CWND_JIFFIES;
        if recent && cwnd == epoch.last_cwnd {
            return epoch.cnt;
        }
        if !begun || now != epoch.last_time {
            let ahead = self.delay_min.unwrap_or(Span::ZERO).0.div_ceil(JIFFY.0);
            epoch.follow_w_cubic(now, ahead, cwnd);
            if w_max == 0 {
                epoch.cnt = epoch.cnt.min(CNT_MAX_NO_LOSS);
            }
        }
        epoch.follow_w_est(cwnd);
        epoch.cnt = epoch.cnt.max(CNT_MIN);
        epoch.cnt
    }
}

impl Epoch {
    /// §4.2: K is the time that the cubic takes from cwnd to W_max. A cwnd above W_max starts at
    /// the plateau.
    fn new(cwnd: u32, w_max: u32, now: Time) -> Epoch {
        let origin_point = w_max.max(cwnd);
        Epoch {
            start: now,
            origin_point,
            k: cubic_k(origin_point - cwnd),
            w_est: cwnd,
            ack_cnt: 0,
            last_time: 0,
            last_cwnd: cwnd,
            cnt: CNT_MIN,
        }
    }

    /// §4.4: cnt = cwnd/(target - cwnd), where the target is W_cubic `ahead` jiffies later.
    fn follow_w_cubic(&mut self, now: u64, ahead: u64, cwnd: u32) {
        self.last_time = now;
        self.last_cwnd = cwnd;
        let t = (now - jiffies(self.start) + ahead) * JIFFY.0 * 1024 / 1_000_000_000;
        let offset = u128::from(t.abs_diff(self.k));
        let delta =
            u32::try_from((u128::from(C) * offset * offset * offset) >> 40).unwrap_or(u32::MAX);
        let target = if t < self.k {
            self.origin_point.saturating_sub(delta)
        } else {
            self.origin_point.saturating_add(delta)
        };
        self.cnt = if target > cwnd {
            cwnd / (target - cwnd)
        } else {
            PLATEAU_WINDOWS.saturating_mul(cwnd)
        };
    }

    /// §4.3: W_est grows by α_cubic segments a window. cwnd grows at least fast enough to reach
    /// W_est within an RTT.
    fn follow_w_est(&mut self, cwnd: u32) {
        let delta = (cwnd.saturating_mul(BETA_SCALE) / 8).max(1);
        // Linux: W_est grows once `ack_cnt` is above `delta`, not at it.
        let grown = self.ack_cnt.saturating_sub(1) / delta;
        self.ack_cnt -= grown * delta;
        self.w_est += grown;
        if self.w_est > cwnd {
            self.cnt = self.cnt.min(cwnd / (self.w_est - cwnd));
        }
    }
}

/// K in 1024ths of a second: the cube root of distance/C, where `distance` is W_max - cwnd in
/// segments (§4.2).
///
/// It is one step of Newton's method in whole numbers, from a first guess by the leading bits. It
/// is off by up to 0.15 %, by the same amount as Linux's (cubic_root). The same amount matters,
/// because one acknowledged segment more or less changes a whole cycle of losses. Linux's values
/// are in tests/recordings/cubic-k.txt.
fn cubic_k(distance: u32) -> u64 {
    if distance == 0 {
        return 0;
    }
    let a = (1 << 40) / C * u64::from(distance);
    // a = m * 8^octaves with m from 8 up to 64.
    let octaves = a.ilog2() / 3 - 1;
    let x = (first_guess(a >> (3 * octaves)) << octaves) / 64;
    // Newton: x' = (2 x + a/x²) / 3, with x (x - 1) in place of x² and 341/1024 in place of a
    // third.
    (2 * x + a / (x * (x - 1))) * 341 / 1024
}

/// 64 times the cube root of a number between m and m + 1, for m from 8 to 63. It may be a little
/// more than that, since Newton's step ends above the root from either side. The curve is fitted to
/// the first guesses that the recorded values of K imply, and corrected where it is off by a 64th.
fn first_guess(m: u64) -> u64 {
    let curve = (65.4 * libm::cbrt(m as f64) + 3.8) as u64;
    match m {
        15 | 60 => curve + 1,
        8 | 11 | 16 | 18 | 20..=22 | 24 | 32..=35 | 45 | 46 | 49 => curve - 1,
        _ => curve,
    }
}

fn jiffies(at: Time) -> u64 {
    at.0 / JIFFY.0
}

/// β_cubic × cwnd, rounded down.
fn times_beta(cwnd: u32) -> u32 {
    (u64::from(cwnd) * u64::from(BETA) / 1024) as u32
}

impl CongestionControl for Cubic {
    fn needs(&self) -> Needs {
        Needs { segment_rtts: true, ..Needs::ACKS }
    }

    /// cubictcp_acked: an RTT sample for delay_min and HyStart. Samples of an epoch's first second
    /// are ignored, because the queue that caused the loss is still there.
    #[inline]
    fn on_delivered(&mut self, sample: &AckSample) {
        let age = self.epoch.as_ref().map(|epoch| sample.now.since(epoch.start));
        if age.is_some_and(|age| age < Span::from_secs(1)) {
            return;
        }
        let rtt = Span::from_micros(sample.rtt_us.max(1));
        let delay_min = self.delay_min.map_or(rtt, |least| least.min(rtt));
        self.delay_min = Some(delay_min);
        if self.cwnd < self.ssthresh
            && self.hystart.update(sample, rtt, delay_min, f64::from(self.cwnd))
        {
            self.ssthresh = self.cwnd;
        }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        if self.plus_plus.is_some() && self.cwnd < self.ssthresh {
            return self.slow_start_plus_plus(ack);
        }
        if !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.acked;
        if self.cwnd < self.ssthresh {
            // Slow start up to ssthresh; the rest of the ACK counts for congestion avoidance.
            let grown = self.cwnd.saturating_add(acked).min(self.ssthresh);
            acked -= grown - self.cwnd;
            self.cwnd = grown;
            if acked == 0 {
                return;
            }
        }
        self.avoid_congestion(acked, ack);
    }

    /// cubictcp_cwnd_event: the time since the last segment left must not grow cwnd (§4.2).
    fn on_tx_start(&mut self, start: &TxStart) {
        if let Some(epoch) = &mut self.epoch {
            let idle = jiffies(start.now) - jiffies(start.lsndtime);
            epoch.start = (epoch.start + JIFFY * idle).min(start.now);
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        // Fast convergence (§4.7): a cwnd below the last W_max makes room for new flows.
        let lower = self.cwnd < self.w_max;
        self.w_max = if lower {
            (u64::from(self.cwnd) * u64::from(1024 + BETA) / 2048) as u32
        } else {
            self.cwnd
        };
        self.ssthresh = match self.beta_ecn {
            // RFC 8511 §3.1: an ECN echo may reduce cwnd less than a loss does.
            Some(beta) if event.signal == Signal::Ecn => (f64::from(self.cwnd) * beta) as u32,
            _ => times_beta(self.cwnd),
        }
        .max(2);
        self.epoch = None;
        self.plus_plus = None;
        self.cwnd_cnt = CwndCnt::default();
        if event.signal == Signal::Timeout {
            // §4.8, and bictcp_reset: the path may have changed, so W_max and delay_min are reset.
            self.cwnd = 1;
            self.w_max = 0;
            self.delay_min = None;
            self.hystart.restart();
        }
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        f64::from(self.cwnd)
    }

    #[inline]
    fn set_cwnd(&mut self, cwnd: f64) {
        self.cwnd = cwnd as u32;
    }

    #[inline]
    fn ssthresh(&self) -> f64 {
        if self.ssthresh == u32::MAX { f64::INFINITY } else { f64::from(self.ssthresh) }
    }

    fn set_ssthresh(&mut self, ssthresh: f64) {
        // An infinite ssthresh becomes u32::MAX.
        self.ssthresh = ssthresh as u32;
    }
}

/// hystart_low_window: a round at a smaller cwnd has too few samples.
const LOW_WINDOW: f64 = 16.0;
/// hystart_ack_delta_us: ACKs that follow each other within this time belong to one train.
const TRAIN_GAP: Span = Span::from_millis(2);
/// HYSTART_MIN_SAMPLES: the RTT samples of a round before their minimum counts.
const ROUND_SAMPLES: u8 = 8;

/// The exit from slow start. The fields are those of Linux's `struct bictcp`.
struct HyStart {
    searching: bool,
    enabled: bool,
    /// The sender paces: pacing alone spreads its ACK train over half an RTT.
    paced: bool,
    mss: f64,
    /// Rounds are counted from this cwnd on: 0, or LOW_WINDOW in Linux 5.16 to 6.13.
    reset_from: f64,
    /// The round ends when an ACK reaches beyond this segment.
    end_seq: u32,
    round_start: Time,
    /// The arrival of the last ACK in the train that began with the round.
    last_ack: Time,
    sample_cnt: u8,
    /// The least RTT of the round.
    curr_rtt: Span,
}

impl HyStart {
    fn new(params: &TcpParams) -> HyStart {
        let enabled = params.growth.hystart && !params.growth.hystart_plus_plus;
        HyStart {
            searching: enabled,
            enabled,
            paced: params.growth.pacing,
            mss: f64::from(params.mss),
            reset_from: 0.0,
            end_seq: 0,
            round_start: Time::ZERO,
            last_ack: Time::ZERO,
            sample_cnt: 0,
            curr_rtt: Span(u64::MAX),
        }
    }

    fn restart(&mut self) {
        self.searching = self.enabled;
        // The next ACK begins a round (bictcp_hystart_reset).
        self.end_seq = 0;
    }

    /// hystart_update: whether this ACK, in slow start at `cwnd`, ends slow start.
    fn update(&mut self, sample: &AckSample, rtt: Span, delay_min: Span, cwnd: f64) -> bool {
        if !self.searching || cwnd < self.reset_from {
            return false;
        }
        if sample.una > self.end_seq {
            self.end_seq = sample.nxt;
            self.round_start = sample.now;
            self.last_ack = sample.now;
            self.sample_cnt = 0;
            self.curr_rtt = Span(u64::MAX);
        }
        if cwnd < LOW_WINDOW {
            return false;
        }
        let ends = self.ack_train_is_long(sample, delay_min, cwnd)
            | self.delay_has_increased(rtt, delay_min);
        self.searching = !ends;
        ends
    }

    /// HYSTART_ACK_TRAIN: the ACKs since the start of the round span more than half of delay_min,
    /// the delay of one way.
    fn ack_train_is_long(&mut self, sample: &AckSample, delay_min: Span, cwnd: f64) -> bool {
        if sample.now.since(self.last_ack) > TRAIN_GAP {
            return false;
        }
        self.last_ack = sample.now;
        let threshold = delay_min + self.ack_delay(sample, cwnd);
        let threshold = if self.paced { threshold } else { threshold / 2 };
        sample.now.since(self.round_start) > threshold
    }

    /// hystart_ack_delay: an allowance for segments sent in bursts. It is the time of four bursts
    /// of 64 KiB at slow start's pacing rate, 2 cwnd/srtt, and at most 1 ms; below 2 Gbit/s it is 1
    /// ms.
    fn ack_delay(&self, sample: &AckSample, cwnd: f64) -> Span {
        let srtt = sample.srtt.span().map_or(0.0, Span::as_secs_f64);
        let bursts = 4.0 * 65_536.0 * srtt / (2.0 * cwnd * self.mss);
        Span::from_secs_f64(bursts).min(Span::from_millis(1))
    }

    /// HYSTART_DELAY: the minimum of eight samples exceeds delay_min by delay_min/8, bounded to 4
    /// to 16 ms. A queue has built up.
    fn delay_has_increased(&mut self, rtt: Span, delay_min: Span) -> bool {
        self.curr_rtt = self.curr_rtt.min(rtt);
        if self.sample_cnt < ROUND_SAMPLES {
            self.sample_cnt += 1;
            return false;
        }
        let tolerance = (delay_min / 8).clamp(Span::from_millis(4), Span::from_millis(16));
        self.curr_rtt > delay_min + tolerance
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::test::params;

    const MS: u64 = 1_000_000;

    /// A bulk sender that fills its window, and a path to answer it.
    struct Bulk {
        cubic: Cubic,
        now: Time,
        una: u32,
        nxt: u32,
        rtt: Span,
    }

    impl Bulk {
        fn new(cubic: Cubic, rtt: Span) -> Bulk {
            let nxt = cubic.cwnd() as u32;
            Bulk { cubic, now: Time::ZERO, una: 0, nxt, rtt }
        }

        /// Congestion avoidance at once: the sender lost a segment at window `peak` and has
        /// recovered.
        fn after_loss_at(peak: f64, rtt: Span) -> Bulk {
            let mut cubic = Cubic::new(&params());
            cubic.set_cwnd(peak);
            lose(&mut cubic, Signal::Loss);
            Bulk::new(cubic, rtt)
        }

        fn ack(&mut self, acked: u32, rtt: Span, cwnd_limited: bool) {
            self.una += acked;
            let (now, una, nxt) = (self.now, self.una, self.nxt);
            let srtt = Some(rtt).into();
            self.cubic.on_delivered(&AckSample { rtt_us: rtt.0 / 1000, now, srtt, una, nxt });
            self.cubic.on_ack(&Ack {
                now,
                acked,
                rtt: Some(rtt),
                one_way: None,
                srtt,
                una,
                nxt,
                cwnd_limited,
                ca_open: true,
            });
            self.nxt = self.nxt.max(self.una + self.cubic.cwnd() as u32);
        }

        /// One RTT, its ACKs spread evenly over it.
        fn round(&mut self) {
            let window = (self.cubic.cwnd() as u32).max(1);
            let start = self.now;
            for i in 1..=window {
                self.now = Time(start.0 + self.rtt.0 * u64::from(i) / u64::from(window));
                self.ack(1, self.rtt, true);
            }
        }
    }

    fn lose(cubic: &mut Cubic, signal: Signal) {
        let inflight = cubic.cwnd() as u32;
        cubic.on_congestion(&Congestion { now: Time::ZERO, signal, inflight });
        if signal != Signal::Timeout {
            let ssthresh = cubic.ssthresh();
            cubic.set_cwnd(ssthresh);
        }
    }

    fn near(a: f64, b: f64, tolerance: f64) -> bool {
        (a - b).abs() <= tolerance * b.abs()
    }

    #[test]
    fn an_ecn_echo_reduces_to_beta_ecn_if_set_and_a_loss_to_seven_tenths() {
        let ssthresh = |signal| {
            let mut cubic = Cubic::new(&params().with(|p| p.growth.beta_ecn = Some(0.85)));
            cubic.set_cwnd(100.0);
            lose(&mut cubic, signal);
            cubic.ssthresh()
        };
        assert_eq!([Signal::Ecn, Signal::Loss].map(ssthresh), [85.0, 70.0]);
    }

    #[test]
    fn congestion_reduces_to_seven_tenths_and_at_least_two_segments() {
        for signal in [Signal::Loss, Signal::Ecn] {
            let mut cubic = Cubic::new(&params());
            cubic.set_cwnd(100.0);
            lose(&mut cubic, signal);
            assert_eq!(cubic.ssthresh(), 70.0);
        }
        let mut cubic = Cubic::new(&params());
        cubic.set_cwnd(1.0);
        lose(&mut cubic, Signal::Loss);
        assert_eq!(cubic.ssthresh(), 2.0);
    }

    #[test]
    fn growth_is_in_whole_numbers_as_in_linux() {
        // 99 · 717/1024 = 69.3. K = cbrt(30/0.4) = 4.217 s would be 4318/1024, and 4316 by Linux's
        // cube root. With 100 ms ahead, 102/1024, W = 99 - 0.4 · 4.117³ = 71.1. Linux rounds the
        // 27.9 below 99 down to 27: W is 72, and cnt = 69/(72 - 69).
        let mut bulk = Bulk::after_loss_at(99.0, Span::from_millis(100));
        assert_eq!(bulk.cubic.ssthresh(), 69.0);
        bulk.ack(1, Span::from_millis(100), true);
        let epoch = bulk.cubic.epoch.as_ref().expect("it has begun");
        assert_eq!((epoch.k, epoch.cnt), (4316, 23));
        bulk.ack(21, Span::from_millis(100), true);
        assert_eq!(bulk.cubic.cwnd(), 69.0);
        bulk.ack(1, Span::from_millis(100), true);
        assert_eq!(bulk.cubic.cwnd(), 70.0);
    }

    #[test]
    fn k_is_linux_s_at_every_recorded_distance_to_the_plateau() {
        let recorded = include_str!("../../tests/recordings/cubic-k.txt");
        let rows: Vec<(u32, u64)> = recorded
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split_once(' ').expect("two numbers"))
            .map(|(short, k)| (short.parse().expect("segments"), k.parse().expect("a time")))
            .collect();
        assert!(rows.len() > 1000 && rows.last().is_some_and(|row| row.0 == u32::MAX));
        for (short, k) in rows {
            assert_eq!(cubic_k(short), k, "{short} segments");
        }
    }

    #[test]
    fn k_is_rfc_9438_s_to_a_sixth_of_a_per_cent() {
        assert_eq!(cubic_k(0), 0);
        for short in (1..100_000).chain((100_000..u32::MAX).step_by(999_983)) {
            let exact = 1024.0 * libm::cbrt(f64::from(short) / 0.4);
            let k = cubic_k(short) as f64;
            assert!((k - exact).abs() <= exact / 600.0 + 1.0, "{k} for {exact}");
        }
    }

    #[test]
    fn at_its_plateau_it_grows_by_a_segment_in_a_hundred_windows() {
        let mut epoch = Epoch::new(70, 50, Time::ZERO);
        epoch.follow_w_cubic(0, 0, 70);
        assert_eq!((epoch.origin_point, epoch.k, epoch.cnt), (70, 0, 7000));
    }

    #[test]
    fn the_reno_friendly_window_grows_when_its_credit_exceeds_the_cost() {
        // 10 segments: 10 * 15/8 = 18 acknowledged.
        for (acked, w_est) in [(18, 10), (19, 11), (36, 11), (37, 12)] {
            let mut epoch = Epoch::new(10, 10, Time::ZERO);
            epoch.ack_cnt = acked;
            epoch.follow_w_est(10);
            assert_eq!(epoch.w_est, w_est, "{acked} acknowledged");
        }
    }

    #[test]
    fn rtts_of_the_first_second_of_an_epoch_are_not_samples_of_the_path() {
        let mut bulk = Bulk::after_loss_at(100.0, Span::from_millis(100));
        bulk.ack(1, Span::from_millis(100), true);
        for (ms, least) in [(999, 100), (1000, 50)] {
            bulk.now = Time(ms * MS);
            bulk.ack(1, Span::from_millis(50), false);
            assert_eq!(bulk.cubic.delay_min, Some(Span::from_millis(least)), "after {ms} ms");
        }
    }

    #[test]
    fn the_cubic_is_computed_once_a_tick_and_at_constant_cwnd_once_in_eight() {
        let mut bulk = Bulk::after_loss_at(1000.0, Span::from_millis(100));
        let mut last_time = Vec::new();
        for ms in 0..48 {
            bulk.now = Time(ms * MS);
            bulk.ack(1, Span::from_millis(100), true);
            last_time.push(bulk.cubic.epoch.as_ref().expect("it has begun").last_time);
        }
        last_time.dedup();
        assert_eq!(last_time, [0, 8]);
    }

    #[test]
    fn the_window_follows_the_cubic_of_rfc_9438() {
        // W_max 1000, 100 ms: K = cbrt(1000 · 0.3 / 0.4) = 9.086 s. Reno's estimate is far below.
        let mut bulk = Bulk::after_loss_at(1000.0, Span::from_millis(100));
        let k = libm::cbrt(1000.0 * 0.3 / 0.4);
        for round in 1..=160 {
            bulk.round();
            let t = bulk.now.as_secs_f64();
            let w = 0.4 * (t - k) * (t - k) * (t - k) + 1000.0;
            assert!(
                near(bulk.cubic.cwnd(), w, 0.01),
                "round {round}: {} instead of {w}",
                bulk.cubic.cwnd()
            );
        }
    }

    #[test]
    fn growth_over_time_hardly_depends_on_the_rtt() {
        let window_after_12_s = |rtt: u64| {
            let mut bulk = Bulk::after_loss_at(1000.0, Span::from_millis(rtt));
            while bulk.now < Time(12_000 * MS) {
                bulk.round();
            }
            bulk.cubic.cwnd()
        };
        assert!(near(window_after_12_s(60), window_after_12_s(240), 0.02));
    }

    #[test]
    fn fast_convergence_applies_if_a_window_peaks_below_the_last_maximum() {
        let mut cubic = Cubic::new(&params());
        cubic.set_cwnd(100.0);
        lose(&mut cubic, Signal::Loss);
        assert_eq!(cubic.w_max, 100);
        cubic.set_cwnd(90.0);
        lose(&mut cubic, Signal::Loss);
        // 0.85 times 90 is 76.5.
        assert_eq!(cubic.w_max, 76);
        cubic.set_cwnd(90.0);
        lose(&mut cubic, Signal::Loss);
        assert_eq!(cubic.w_max, 90);
        // 107 times 1741/2048 is 90.96.
        (cubic.cwnd, cubic.w_max) = (107, 200);
        lose(&mut cubic, Signal::Loss);
        assert_eq!(cubic.w_max, 90);
    }

    #[test]
    fn at_a_small_window_and_a_short_rtt_it_grows_as_reno_would() {
        // W_max 20 at 10 ms: the cubic alone needs K = 2.47 s to return, Reno (8/15 an RTT) 0.11 s.
        let mut bulk = Bulk::after_loss_at(20.0, Span::from_millis(10));
        let start = bulk.cubic.cwnd();
        for _ in 0..50 {
            bulk.round();
        }
        let gained = bulk.cubic.cwnd() - start;
        assert!(near(gained, 50.0 * 8.0 / 15.0, 0.1), "{gained} instead of {}", 50.0 * 8.0 / 15.0);
        let cubic_alone = 20.0 + 0.4 * libm::pow(0.5 - libm::cbrt(20.0 * 0.3 / 0.4), 3.0);
        assert!(bulk.cubic.cwnd() > 2.0 * cubic_alone);
    }

    #[test]
    fn the_window_grows_by_at_most_half_an_rtt() {
        // 100 s after a loss at window 10 the cubic is at some hundred thousand segments.
        let mut bulk = Bulk::after_loss_at(10.0, Span::from_secs(20));
        for _ in 0..5 {
            bulk.round();
        }
        for _ in 0..5 {
            let before = bulk.cubic.cwnd();
            bulk.round();
            // The remainder of an odd window counts in the next round.
            assert!(bulk.cubic.cwnd() <= (1.5 * before).ceil());
            assert!(bulk.cubic.cwnd() > 1.4 * before);
        }
    }

    /// Linux: the cubic goes on while the application uses a part of cwnd. RFC 9438 §4.2 would
    /// exclude that time.
    #[test]
    fn a_window_that_is_not_full_does_not_grow_but_its_time_counts() {
        let rtt = Span::from_millis(100);
        let mut bulk = Bulk::after_loss_at(100.0, rtt);
        for _ in 0..20 {
            bulk.round();
        }
        let before = bulk.cubic.cwnd();
        for _ in 0..300 {
            bulk.now += rtt;
            bulk.ack(1, rtt, false);
        }
        assert_eq!(bulk.cubic.cwnd(), before);
        // W_cubic is thousands of segments after 32 s, so cwnd grows as fast as it may.
        bulk.round();
        assert!(bulk.cubic.cwnd() >= (1.45 * before).floor());
    }

    #[test]
    fn idle_time_does_not_grow_the_window() {
        let rtt = Span::from_millis(100);
        let mut idle = Bulk::after_loss_at(100.0, rtt);
        let mut busy = Bulk::after_loss_at(100.0, rtt);
        for bulk in [&mut idle, &mut busy] {
            (0..60).for_each(|_| bulk.round());
        }
        let start = |bulk: &Bulk| bulk.cubic.epoch.as_ref().map(|epoch| epoch.start);
        let began = start(&idle);
        let lsndtime = idle.now;
        idle.now += Span::from_secs(60);
        idle.cubic.on_tx_start(&TxStart { now: idle.now, nxt: idle.nxt, lsndtime });
        assert_eq!(start(&idle), began.map(|at| at + Span::from_secs(60)));
        for bulk in [&mut idle, &mut busy] {
            (0..50).for_each(|_| bulk.round());
        }
        assert_eq!(idle.cubic.cwnd(), busy.cubic.cwnd());
    }

    #[test]
    fn a_timeout_starts_from_one_segment_and_forgets_the_path() {
        let mut bulk = Bulk::new(Cubic::new(&params()), Span::from_millis(100));
        bulk.cubic.set_cwnd(100.0);
        bulk.ack(1, Span::from_millis(100), false);
        lose(&mut bulk.cubic, Signal::Timeout);
        assert_eq!((bulk.cubic.cwnd(), bulk.cubic.w_max, bulk.cubic.delay_min), (1.0, 0, None));
        assert_eq!(bulk.cubic.ssthresh(), 70.0);

        // Slow start returns to ssthresh with 69 of the 75 segments, and avoidance counts the other
        // six. Then cwnd grows by one segment for twenty.
        bulk.ack(75, Span::from_millis(100), true);
        assert_eq!(bulk.cubic.cwnd(), 70.0);
        bulk.ack(13, Span::from_millis(100), true);
        assert_eq!(bulk.cubic.cwnd(), 70.0);
        bulk.ack(1, Span::from_millis(100), true);
        assert_eq!(bulk.cubic.cwnd(), 71.0);
    }

    #[test]
    fn hystart_leaves_slow_start_when_a_rounds_rtts_have_risen_by_an_eighth() {
        // packetdrill, cubic-hystart-delay-rtt-jumps-upward: 200 ms, then 240 ms and more, ACKs of
        // two segments.
        let mut bulk = Bulk::new(Cubic::new(&params()), Span::ZERO);
        bulk.now = Time(200 * MS);
        bulk.ack(10, Span::from_millis(200), true);
        bulk.now = Time(440 * MS);
        let mut windows = Vec::new();
        for sample in 0..10 {
            bulk.ack(2, Span::from_millis(240 + sample), true);
            windows.push(bulk.cubic.cwnd() as u32);
            bulk.now += Span::from_millis(1);
        }
        assert_eq!(windows, [22, 24, 26, 28, 30, 32, 34, 36, 36, 36]);
        assert_eq!(bulk.cubic.ssthresh(), 36.0);
    }

    #[test]
    fn a_lower_minimum_rtt_does_not_end_slow_start() {
        // packetdrill, cubic-hystart-delay-min-rtt-jumps-downward: RTTs of 200 to 208 ms, the ninth
        // and last of 29 ms.
        let mut bulk = Bulk::new(Cubic::new(&params()), Span::ZERO);
        bulk.now = Time(200 * MS);
        bulk.ack(10, Span::from_millis(200), true);
        bulk.now = Time(400 * MS);
        for rtt in [200, 201, 202, 203, 204, 205, 206, 207, 208, 29] {
            bulk.ack(2, Span::from_millis(rtt), true);
            bulk.now += Span::from_millis(1);
        }
        assert_eq!((bulk.cubic.cwnd(), bulk.cubic.ssthresh()), (40.0, f64::INFINITY));
    }

    #[test]
    fn hystart_leaves_slow_start_when_the_ack_train_is_half_an_rtt_long() {
        // 100 ms, an ACK a millisecond: the train of a window of 80 passes (100 ms + 1 ms)/2 with
        // its 52nd ACK.
        let train = |pacing: bool| {
            let mut bulk =
                Bulk::new(Cubic::new(&params().with(|p| p.growth.pacing = pacing)), Span::ZERO);
            bulk.cubic.set_cwnd(80.0);
            bulk.nxt = 80;
            for i in 0..80 {
                bulk.now = Time((100 + i) * MS);
                bulk.ack(1, Span::from_millis(100), true);
            }
            bulk.cubic.ssthresh()
        };
        assert_eq!(train(false), 131.0);
        // Pacing spreads a window over half an RTT by itself: the train may be a whole RTT long.
        assert_eq!(train(true), f64::INFINITY);
    }

    #[test]
    fn a_pause_of_more_than_two_milliseconds_breaks_the_train() {
        let mut bulk = Bulk::new(Cubic::new(&params()), Span::ZERO);
        bulk.cubic.set_cwnd(80.0);
        bulk.nxt = 80;
        for i in 0..80 {
            let pause = if i >= 20 { 3 } else { 0 };
            bulk.now = Time((100 + i + pause) * MS);
            bulk.ack(1, Span::from_millis(100), true);
        }
        assert_eq!(bulk.cubic.ssthresh(), f64::INFINITY);
    }

    #[test]
    fn without_hystart_slow_start_continues() {
        let mut bulk =
            Bulk::new(Cubic::new(&params().with(|p| p.growth.hystart = false)), Span::ZERO);
        for i in 0..100 {
            bulk.now = Time((100 + i) * MS);
            bulk.ack(2, Span::from_millis(100 + 10 * i), true);
        }
        assert_eq!((bulk.cubic.cwnd(), bulk.cubic.ssthresh()), (210.0, f64::INFINITY));
    }

    /// packetdrill's cubic-bulk-166k: an ACK of two segments every 100 ms, whatever is outstanding.
    fn bulk_166k(cubic: Cubic, acks: u32) -> Vec<u32> {
        let mut bulk = Bulk::new(cubic, Span::ZERO);
        let mut sent = vec![Time::ZERO; bulk.nxt as usize];
        let mut windows = Vec::new();
        for _ in 0..acks {
            bulk.now += Span::from_millis(100);
            let rtt = bulk.now.since(sent[bulk.una as usize + 1]);
            bulk.ack(2, rtt, true);
            sent.resize(bulk.nxt as usize, bulk.now);
            windows.push(bulk.cubic.cwnd() as u32);
        }
        windows
    }

    #[test]
    fn packetdrills_bulk_flow_is_reproduced() {
        // The script is for a Linux before 6.14, where rounds were counted from the low window on:
        // 48 at the 19th ACK.
        let mut cubic = Cubic::new(&params());
        cubic.hystart.reset_from = LOW_WINDOW;
        let windows = bulk_166k(cubic, 200);
        let at = |ack: usize| windows[ack - 1];
        assert_eq!([at(5), at(10), at(15), at(19)], [20, 30, 40, 48]);
        assert_eq!([at(30), at(40), at(50)], [49, 50, 52]);
        // Linux rounds down the number of acknowledged segments for one more, and has 58 here.
        assert!((57..=58).contains(&at(60)), "{}", at(60));
        // From then on cwnd grows by one segment for every two acknowledged.
        for ack in 65..200 {
            assert_eq!(windows[ack], windows[ack - 1] + 1);
        }
    }

    #[test]
    fn hystart_s_rounds_begin_with_the_first_ack() {
        // As in Linux since 6.14: the second round begins with segment 12, and its ninth sample is
        // segment 28.
        let windows = bulk_166k(Cubic::new(&params()), 14);
        assert_eq!(windows[12..], [36, 36]);
    }
}
