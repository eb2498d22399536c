//! The sender: which segment may leave now (this file), which segments are lost (`recovery`), when
//! the retransmission timer and the loss probe expire (`timeouts`), and the sender's state
//! (`state`).
//!
//! Four states are named after Linux's tcp_ca_state. In *Open*, cwnd grows. The sender enters
//! *Recovery* when duplicate ACKs or SACKs show a loss. Lost segments are then retransmitted while
//! cwnd falls, until all data outstanding at the start is acknowledged. After an ECN echo, *Cwr* is
//! the same without a loss. The sender enters *Loss* when the retransmission timer expires. All
//! outstanding data counts as lost and is retransmitted in slow start, unless F-RTO finds the
//! timeout spurious.
//!
//! The number of segments in flight (pipe) is always `nxt - una - sacked_out - to_retransmit` (see
//! `scoreboard`), less the duplicate ACKs if there is no SACK. A segment may leave while pipe <
//! cwnd. Each window of data reduces cwnd once, however many signals arrive; `recover` is the end
//! of that window. A needless reduction is undone (see `undo`).
//!
//! Sources: RFC 5681 (slow start, fast retransmit), RFC 6675 (SACK recovery), RFC 6937 (PRR), RFC
//! 6582 (NewReno), RFC 3042 (limited transmit), RFC 8985 (RACK, tail loss probe), RFC 5682 (F-RTO),
//! RFC 6298 (timer), RFC 3168 §6.1 (ECN); Linux and ns-2.35 where these leave a choice. Deviations:
//! no teardown. No zero-window probe: a window narrower than a segment counts as one segment. A
//! segment that NextSeg's rule 3 retransmits counts as lost, so it is in flight once, not twice.
//! Without RACK only the timer detects a lost retransmission.

mod application;
#[cfg(test)]
mod bbr_cases;
mod delivery;
mod lengths;
mod marks;
mod pacing;
mod recovery;
mod state;
mod timeouts;

use crate::cc::{Ack, AckSample, Control, Needs, TxStart};
use crate::params::{FastRecovery, Ns2Mode};
use crate::rack::Rack;
use crate::rate::{RateSampler, micros};
use crate::rtt::{RttEstimator, RttSource, sent_by_echo};
use crate::scoreboard::Scoreboard;
use crate::timer::{Pending, RetransmitTimer, TimerWheel};
use crate::undo::Undo;
use crate::writer::Writer;
use crate::xmit::XmitTimes;
use crate::{AckSegment, Receiver, Segment, TcpParams};
use application::CwndUsage;
use lengths::Lengths;
use marks::Marks;
use pacing::Pacer;
use state::{CaState, EcnState, Frto, Loss, Rearm, Recovery, Rexmit, Tlp};
use units::{Ecn, Rng, Span, Time};

/// The content of an ACK beyond its number.
struct AckNews {
    acked: u32,
    delivered: u32,
    rtt: Option<Span>,
    echo: Time,
    /// The ACK reports marks.
    ece: bool,
    /// The ACK delivers a segment that was sent only once, before the last reduction
    /// (FLAG_ORIG_SACK_ACKED).
    original: bool,
    /// The ACK SACKs something new, or without SACK is a duplicate.
    duplicate: bool,
    /// The end of the range that the ACK's DSACK reports.
    dsack_end: Option<u32>,
}

/// Properties of the segments that an ACK is the first to acknowledge or SACK (Linux's struct
/// tcp_sacktag_state).
#[derive(Clone, Copy, Debug, Default)]
struct SacktagState {
    /// One of the segments is from before `recover` and was sent only once.
    original: bool,
    /// The departure of the first SACKed segment that was sent only once (first_sackt).
    first_sackt: Option<Time>,
    /// The departure of the last SACKed segment that was sent only once (last_sackt).
    last_sackt: Option<Time>,
    /// The departure of the last segment that is acknowledged, not SACKed (last_ackt).
    last_ackt: Option<Time>,
}

/// The effect of an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    /// The ACK's RTT sample.
    pub rtt: Option<Span>,
    /// Segments that the ACK newly acknowledged or SACKed.
    pub delivered: u32,
    /// The ACK acknowledged the last segment of the transfer. True once; ACKs of retransmissions
    /// may follow.
    pub complete: bool,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// Segments with data sent, retransmissions included.
    pub sent_segments: u64,
    /// Segments retransmitted, SYNs too (tcpi_total_retrans).
    pub retransmits: u64,
    /// Retransmission timeouts, of a SYN or of data.
    pub timeouts: u64,
    /// Fast recoveries entered.
    pub fast_recoveries: u64,
    /// Reductions of cwnd for an ECN echo.
    pub ecn_reductions: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Reductions of cwnd that were undone as needless.
    pub undos: u64,
}

/// A sender's settings; the names are those of `TcpParams`.
#[derive(Clone, Copy, Debug)]
struct Settings {
    mss: u32,
    sack: bool,
    fast_recovery: FastRecovery,
    prr: bool,
    undo: bool,
    frto: bool,
    rack: bool,
    tlp: bool,
    limited_transmit: bool,
    ns2: Ns2Mode,
    max_window: u32,
    /// The congestion control needs ECN (Linux's TCP_CONG_NEEDS_ECN): every segment is ECT, and the
    /// receiver reports each mark.
    needs_ecn: bool,
    /// ACKs report each mark.
    exact: bool,
    /// The needs of the congestion control.
    control: Needs,
    /// Segments are paced whatever the congestion control is.
    pacing: bool,
    /// Segments may be shorter than the MSS before the end of the transfer (`lengths`).
    lengths_vary: bool,
}

/// The state of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handshake {
    /// The SYN is due.
    SendSyn,
    /// The SYN was sent (SYN-SENT).
    SynSent,
    /// The SYN-ACK has arrived, and its ACK is due.
    SendAck,
}

/// State that only losses, marks or short segments need.
struct Cold {
    undo: Undo,
    rack: Rack,
    /// Segments that DSACKs have reported (dsack_dups).
    dsack_dups: u64,
    /// Present if feedback reports each mark.
    marks: Option<Box<Marks>>,
    /// Present if `Settings::lengths_vary`.
    lengths: Option<Lengths>,
}

/// One connection's sending end.
pub struct Sender {
    una: u32,
    nxt: u32,
    /// One past the last segment that the receive window, the application and `max_window` allow.
    send_limit: u32,
    /// cwnd in whole segments, at least 1.
    cwnd: u32,
    /// Without SACK: duplicate ACKs, each of which means that a segment has left the network (RFC
    /// 6582's inflation). Negative in ns-2's Sack1, where lost segments still count as in flight.
    inflation: i32,
    dup_acks: u32,
    ca_state: CaState,
    /// In `Open`: the state is TCP_CA_Disorder. Segments are SACKed, or the first segment was
    /// retransmitted. No loss probe is armed.
    disorder: bool,
    /// A DSACK waits for the next ACK that delivers anything (`Rack::has_dsack`).
    dsack_waits: bool,
    /// SND.NXT when cwnd last stopped the sender; cwnd is the limit until this is acknowledged
    /// (cwnd_usage_seq).
    cwnd_usage_seq: u32,
    ecn: EcnState,
    /// The codepoint of ECN-capable segments.
    ect: Ecn,
    /// One past the window of data that last reduced cwnd: RFC 6582's `recover`, Linux's high_seq.
    recover: u32,
    timer: RetransmitTimer,
    rearm: Rearm,
    tlp: Tlp,
    control: Control,
    scoreboard: Scoreboard,
    xmit: XmitTimes,
    rtt: RttEstimator,
    /// Right edge of the receive window (SND.UNA + SND.WND), in segments.
    right_edge: u32,
    snd_wnd: u64,
    snd_wnd_segments: u32,
    settings: Settings,
    writer: Writer,
    rtt_source: RttSource,
    cold: Box<Cold>,
    /// Segments of the transfer; `u32::MAX`: endless.
    end: u32,
    last_len: u32,
    /// The handshake, until its last ACK is sent.
    handshake: Option<Handshake>,
    pacer: Option<Pacer>,
    /// Present if the congestion control needs samples. Then there is a pacer too.
    rate: Option<Box<RateSampler>>,
    /// Present if the application may be short of data.
    usage: Option<Box<CwndUsage>>,
    stats: SenderStats,
}

impl Sender {
    /// A connection that transfers `bytes`. With `None` the transfer is endless.
    ///
    /// # Examples
    ///
    /// Without a handshake, the initial window leaves at once:
    ///
    /// ```rust
    /// use tcp::{Sender, TcpParams};
    /// use units::Time;
    ///
    /// let params = TcpParams::LINUX.with(|p| p.handshake = false);
    /// let mut sender = Sender::new(&params, None);
    /// let burst = std::iter::from_fn(|| sender.poll(Time::ZERO));
    /// assert_eq!(burst.map(|segment| segment.seq).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    /// ```
    pub fn new(params: &TcpParams, bytes: Option<u64>) -> Sender {
        let mss = u64::from(params.mss);
        // 2^32 segments are 6 TB; a longer transfer is treated as endless.
        let end = bytes.map_or(u32::MAX, |b| b.div_ceil(mss).clamp(1, u64::from(u32::MAX)) as u32);
        let last_len = bytes.map_or(mss, |b| b.max(1) - (u64::from(end) - 1) * mss) as u32;
        let sack1 = params.ns2.sack1_pipe || params.ns2.timeout_forgets_sacks;
        let sack_is_linuxs = params.recovery.sack && !sack1;
        let control = Control::new(params);
        let needs = control.needs();
        let settings = Settings {
            mss: params.mss,
            sack: params.recovery.sack,
            fast_recovery: params.recovery.fast_recovery,
            prr: params.recovery.prr,
            undo: params.recovery.undo,
            frto: params.recovery.frto,
            rack: params.recovery.rack && sack_is_linuxs,
            tlp: params.recovery.tlp && sack_is_linuxs,
            limited_transmit: params.recovery.limited_transmit,
            ns2: params.ns2,
            max_window: params.growth.max_window.unwrap_or(u32::MAX).max(1),
            needs_ecn: params.ecn && params.congestion.needs_ecn(),
            control: needs,
            pacing: params.growth.pacing,
            lengths_vary: needs.shorter_segments,
            exact: (params.congestion.needs_ecn() || params.accecn) && params.ecn,
        };
        let marks = settings.exact.then(|| Box::new(Marks::new(params)));
        let paced = params.growth.pacing || needs.paced;
        let lengths = needs
            .shorter_segments
            .then(|| Lengths::new(params.mss, bytes.map(|bytes| bytes.max(1))));
        let rate = needs.rate_samples.then(|| Box::new(RateSampler::new()));
        let mut sender = Sender {
            una: 0,
            nxt: 0,
            send_limit: 0,
            cwnd: 0,
            inflation: 0,
            dup_acks: 0,
            ca_state: CaState::Open,
            disorder: false,
            dsack_waits: false,
            cwnd_usage_seq: 0,
            ecn: match (params.ecn, params.accecn) {
                (false, _) => EcnState::Off,
                (true, false) => EcnState::Ok,
                (true, true) => EcnState::Accurate,
            },
            ect: params.congestion.ect(),
            recover: 0,
            timer: RetransmitTimer::new(TimerWheel::new(params.timers.timer_tick_ns)),
            rearm: Rearm::No,
            tlp: Tlp::None,
            control,
            scoreboard: Scoreboard::default(),
            xmit: XmitTimes::new(),
            rtt: RttEstimator::new(params),
            right_edge: 0,
            snd_wnd: u64::MAX,
            snd_wnd_segments: u32::MAX,
            settings,
            writer: Writer::new(params, end),
            rtt_source: RttSource::new(params),
            cold: Box::new(Cold {
                undo: Undo::new(),
                rack: Rack::new(),
                dsack_dups: 0,
                marks,
                lengths,
            }),
            end,
            last_len,
            handshake: params.handshake.then_some(Handshake::SendSyn),
            pacer: paced.then(Pacer::default),
            rate,
            usage: None,
            stats: SenderStats::default(),
        };
        if sender.ecn != EcnState::Accurate {
            sender.fall_back();
        }
        // The window of the receiver's SYN-ACK.
        sender.update_snd_wnd(0, Receiver::new(params).window_bytes());
        sender.update_limits();
        sender
    }

    /// Sets the random stream of the congestion control.
    pub fn with_rng(mut self, rng: Rng) -> Sender {
        self.control.set_rng(rng);
        self
    }

    /// Returns the next segment that may leave now. Call until `None`.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Option<Segment> {
        loop {
            let next = self.poll_window(now);
            if next.is_some() {
                return next;
            }
            if let Some(stage) = self.handshake {
                return self.poll_handshake(stage, now);
            }
            if self.usage.is_some() {
                self.before_write(now);
            }
            if !self.writer.write(self.una, self.nxt, self.scoreboard.merged(), self.cwnd) {
                self.rearm_timer(now);
                return None;
            }
            if self.rate.is_some() {
                self.check_app_limited();
            }
            self.update_limits();
        }
    }

    /// Returns a segment of the handshake. Data may leave after the last of these segments.
    #[cold]
    fn poll_handshake(&mut self, stage: Handshake, now: Time) -> Option<Segment> {
        // With AccECN the last ACK is ECN-capable as all other segments are.
        let established = stage == Handshake::SendAck && self.ecn == EcnState::Accurate;
        let capable = self.settings.needs_ecn || established;
        let bare = Segment {
            seq: 0,
            len: 0,
            stamp: now,
            retransmit: false,
            // An ECN-setup SYN (RFC 3168 §6.1.1).
            cwr: stage == Handshake::SendSyn && self.asks_for_ecn(),
            ace: self.ace_of_handshake(stage),
            ecn: self.ecn_field(capable),
            syn: stage == Handshake::SendSyn,
            push: false,
            echo: self.rtt_source.ts_recent(),
        };
        match stage {
            Handshake::SynSent => return None,
            Handshake::SendSyn => {
                self.handshake = Some(Handshake::SynSent);
                self.start_rto(now);
            }
            Handshake::SendAck => {
                self.handshake = None;
                self.update_limits();
            }
        }
        Some(bare)
    }

    #[inline]
    fn poll_window(&mut self, now: Time) -> Option<Segment> {
        let inflight = self.pipe();
        if inflight >= self.cwnd
            && !(self.scoreboard.to_retransmit() > 0 && self.ca_state.retransmits_at_once())
        {
            if self.tlp.is_due() {
                return self.poll_probe(now);
            }
            self.cwnd_usage_seq = self.nxt;
            return None;
        }
        if let Some(pacer) = &mut self.pacer
            && pacer.blocks(now)
        {
            return None;
        }
        if self.scoreboard.to_retransmit() > 0 && self.retransmits_first() {
            return self.poll_retransmit(now);
        }
        if self.nxt < self.send_limit {
            return Some(self.send_new(inflight, now));
        }
        if self.tlp.is_due() {
            return self.poll_probe(now);
        }
        self.poll_next_seg(now)
    }

    /// Handles an ACK. The fast path is an ACK of new data in TCP_CA_Open, without SACKs.
    #[inline(always)]
    pub fn on_ack(&mut self, ack: &AckSegment, now: Time) -> Acked {
        let amiss = ack.ack <= self.una
            || ack.ack > self.nxt
            || ack.sack_count > 0
            || ack.ace != 0
            || ack.syn
            || self.scoreboard.sacked_out() > 0
            || self.dup_acks > 0
            || !self.ca_state.is_open()
            || self.disorder
            || self.dsack_waits
            || self.tlp.is_sent()
            || self.settings.exact
            || self.rate.is_some();
        if amiss {
            // A copy: an ACK to which nothing refers can stay in registers.
            let ack = *ack;
            return self.on_ack_amiss(&ack, now);
        }
        self.rtt_source.on_ack(ack.stamp);
        self.update_snd_wnd(ack.ack, ack.window);
        let last = self.last_sent(ack, &SacktagState::default(), now);
        let rtt = self.rtt_sample(ack, last, now);
        let acked = ack.ack - self.una;
        self.una = ack.ack;
        self.scoreboard.advance(ack.ack);
        if self.settings.control.segment_rtts {
            self.on_delivered(last, now);
        }
        self.cong_avoid(acked, rtt, ack.one_way, now);
        self.inflation = 0;
        if self.una == self.nxt {
            self.timer.stop();
        } else {
            self.rearm = Rearm::Acked;
        }
        self.update_limits();
        Acked { rtt, delivered: acked, complete: self.una == self.end }
    }

    /// Handles any other ACK (tcp_ack).
    #[inline(never)]
    fn on_ack_amiss(&mut self, ack: &AckSegment, now: Time) -> Acked {
        if ack.syn || ack.ack > self.nxt || ack.ack < self.una {
            if ack.syn {
                self.on_syn_ack(ack, now);
            }
            // The ACK acknowledges a segment that was never sent, or is older than an earlier ACK.
            return Acked { rtt: None, delivered: 0, complete: false };
        }
        let acked = ack.ack - self.una;
        let delivery = self.rate.is_some().then(|| self.take_delivered(ack));
        self.rtt_source.on_ack(ack.stamp);
        let mut delivered = acked;
        // TCP_CA_Open without SACKs needs none of this.
        let sacks = ack.sack_count > 0 && self.settings.sack;
        let dsack = if sacks { self.check_dsack(ack) } else { None };
        let dsack_end = dsack.map(|(_, end)| end);
        if let Some((first, end)) = dsack {
            // A needless retransmission is delivered as well (tcp_dsack_seen).
            delivered += end - first;
        }
        let alert = !self.ca_state.is_open()
            || self.disorder
            || self.scoreboard.sacked_out() > 0
            || sacks
            || self.tlp.is_sent();
        // This also applies in TCP_CA_CWR. Without SACKs and retransmissions all outstanding
        // segments left after the delivered ones, so RACK can find no loss.
        let in_order = self.is_calm()
            && self.scoreboard.sacked_out() == 0
            && !sacks
            && !self.tlp.is_sent()
            && self.una >= self.xmit.retransmitted_end();
        let looks = alert && !in_order || self.dsack_waits;
        let sacktag = if looks { self.sacktag(ack, dsack, now) } else { SacktagState::default() };
        self.update_snd_wnd(ack.ack, ack.window);
        let last = self.last_sent(ack, &sacktag, now);
        let mut rtt = None;
        if acked > 0 {
            rtt = match self.rtt_source {
                RttSource::Timestamps { .. } => {
                    self.rtt_of_acked(ack, sacktag.first_sackt, last, now)
                }
                RttSource::OneSegment { .. } => self.rtt_sample(ack, last, now),
            };
            // Segments that were SACKed earlier were counted as delivered then.
            delivered -= self.sacked_below(ack.ack);
            if !self.settings.sack && self.dup_acks > 0 {
                // Each duplicate ACK was for a delivered segment; one more segment filled the gap.
                delivered = acked.saturating_sub(self.dup_acks).max(1);
            }
            self.una = ack.ack;
            self.dup_acks = 0;
            self.scoreboard.advance(ack.ack);
        }
        let dup_acks = self.dup_acks;
        if self.settings.sack {
            // RFC 6675 §2: an ACK whose SACK blocks contain nothing new is not a duplicate. It only
            // answers a segment that arrived twice.
            if ack.sack_count > 0 {
                delivered += self.apply_sacks(ack);
            }
        } else if acked == 0 && self.nxt > self.una {
            self.dup_acks += 1;
            delivered = 1;
        }
        if self.settings.control.segment_rtts {
            self.on_delivered(last, now);
        }
        let ece = if self.settings.exact {
            self.count_marks(ack, delivered, now)
        } else {
            ack.ece() && self.ecn != EcnState::Off
        };
        let mut rearm = acked > 0;
        if let (None, Some(sent), true) = (rtt, sacktag.first_sackt, self.settings.rack) {
            rearm |= self.rtt_sample_of_sack(sent, last, now);
        }
        let quiet = !alert && self.dup_acks == 0;
        if quiet && !ece {
            // The fast path: new data is acknowledged in TCP_CA_Open.
            if acked > 0 {
                if self.settings.control.acks {
                    self.cong_avoid(delivered, rtt, ack.one_way, now);
                }
                self.inflation = 0;
            }
        } else {
            let duplicate = self.dup_acks > dup_acks;
            let original = sacktag.original;
            let news = AckNews {
                acked,
                delivered,
                rtt,
                echo: ack.echo,
                ece,
                original,
                duplicate,
                dsack_end,
            };
            rearm &= !self.fastretrans_alert(ack, news, now).rack_armed_timer;
            self.try_keep_open();
        }
        if self.settings.control.sets_cwnd && delivery.is_none() {
            self.control_by_marks(delivered, now);
        }
        if rearm {
            self.rearm_on_ack(now);
        }
        if let Some(delivery) = delivery {
            self.control_by_rate(delivery, ack, (acked, delivered), now);
        }
        self.acked(false, now);
        self.update_limits();
        Acked { rtt, delivered, complete: acked > 0 && self.una == self.end }
    }

    /// Reports to the congestion control the RTT of the segment that left at `last`, if the ACK
    /// measures one (pkts_acked).
    fn on_delivered(&mut self, last: Option<Time>, now: Time) {
        if let Some(sent) = last {
            let (srtt, una, nxt) = (self.rtt.srtt(), self.una, self.nxt);
            let rtt_us = micros(now) - micros(sent);
            self.control.on_delivered(&AckSample { rtt_us, now, srtt, una, nxt });
        }
    }

    /// Handles a SYN-ACK. The receiver retransmits it until something answers it.
    #[cold]
    fn on_syn_ack(&mut self, ack: &AckSegment, now: Time) {
        if self.handshake.replace(Handshake::SendAck) != Some(Handshake::SynSent) {
            self.reflect_latest(ack);
            return;
        }
        self.timer.stop();
        self.on_agreed(ack);
        self.update_snd_wnd(0, ack.window);
        self.rtt_source.on_ack(ack.stamp);
        // If the SYN was retransmitted, the echo shows which SYN is answered, by a clock of whole
        // ms.
        let sent = match (self.stats.timeouts, self.rtt_source.has_timestamps()) {
            (0, _) => Some(ack.echo),
            (_, true) => sent_by_echo(ack, now),
            (_, false) => None,
        };
        if let Some(sent) = sent {
            self.sample(sent, None, 0, now);
        }
        if self.rate.is_some() {
            self.established(now);
        }
        if self.stats.timeouts > 1 {
            // RFC 5681 §3.1. But one lost SYN does not reduce cwnd, since its timeout was only 1 s
            // (RFC 6298 §2.1; tcp_init_transfer).
            self.control.set_cwnd(1.0);
        }
    }

    /// Whether the SYN has been sent and not been answered.
    pub(crate) fn awaits_syn_ack(&self) -> bool {
        self.handshake == Some(Handshake::SynSent)
    }

    /// Whether an ACK without data differs from the prediction of its header (pred_flags).
    pub(crate) fn is_off_fast_path(&self, ack: &AckSegment) -> bool {
        ack.window != self.snd_wnd || ack.sack_count > 0 || ack.ace != 0
    }

    /// An acknowledgement that repeats an earlier one, in a segment with data: only its window and
    /// its stamp are new.
    pub(crate) fn on_window(&mut self, ack: &AckSegment) {
        if ack.ack == self.una {
            self.rtt_source.on_ack(ack.stamp);
            self.update_snd_wnd(ack.ack, ack.window);
            self.update_limits();
        }
    }

    /// The other end has begun the connection, and `ack` answers the SYN-ACK, which left `rtt` ago.
    #[cold]
    pub(crate) fn accepted(&mut self, ack: &AckSegment, rtt: Span, now: Time) {
        self.update_snd_wnd(0, ack.window);
        self.rtt_source.on_ack(ack.stamp);
        if rtt > Span::ZERO {
            self.sample(Time(now.0 - rtt.0), None, 0, now);
        }
        if self.rate.is_some() {
            self.established(now);
        }
        self.update_limits();
    }

    /// The time of the next call of `on_deadline`, once `poll` has returned `None`: the expiry of
    /// the timer, or the departure of a paced segment.
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        let departure = self.pacer.as_ref().map_or(Time::NEVER, Pacer::deadline);
        let at = self.timer.at().min(departure);
        (at != Time::NEVER).then_some(at)
    }

    /// Handles a deadline. Call `poll` afterwards.
    ///
    /// # Examples
    ///
    /// A segment without an answer is retransmitted after the RTO:
    ///
    /// ```rust
    /// use tcp::{Sender, TcpParams};
    /// use units::Time;
    ///
    /// let params = TcpParams::LINUX.with(|p| p.handshake = false);
    /// let mut sender = Sender::new(&params, Some(1000));
    /// sender.poll(Time::ZERO);
    /// while sender.stats().timeouts == 0 {
    ///     let now = sender.deadline().expect("a timer runs while data is outstanding");
    ///     sender.on_deadline(now);
    ///     if let Some(segment) = sender.poll(now) {
    ///         assert!(segment.retransmit);
    ///     }
    /// }
    /// ```
    pub fn on_deadline(&mut self, now: Time) {
        if let Some(pacer) = &mut self.pacer {
            pacer.on_deadline(now);
        }
        match self.timer.has_expired(now) {
            None => {}
            Some(Pending::Retrans) => self.on_rto(now),
            Some(Pending::ReoTimeout) => {
                self.rack_reo_timeout(now);
                self.rearm_rto(now);
            }
            Some(Pending::LossProbe) => {
                if !self.tlp.is_sent() {
                    self.tlp = Tlp::Due;
                }
                // The probe arms the timer again. Without a probe the first segment's RTO keeps
                // running.
                self.rearm_rto(now);
            }
        }
    }

    /// The application stops: no new data is sent, but lost segments are still retransmitted.
    pub fn stop(&mut self) {
        self.writer.stop(self.nxt);
        self.update_limits();
    }

    /// cwnd in bytes.
    pub fn cwnd_bytes(&self) -> u64 {
        (self.control.cwnd() * f64::from(self.payload())) as u64
    }

    /// ssthresh in bytes; `None` while unlimited.
    pub fn ssthresh_bytes(&self) -> Option<u64> {
        let ssthresh = self.control.ssthresh();
        ssthresh.is_finite().then_some((ssthresh * f64::from(self.payload())) as u64)
    }

    /// RFC 6675's pipe, bytes.
    pub fn inflight_bytes(&self) -> u64 {
        u64::from(self.pipe()) * u64::from(self.payload())
    }

    /// SRTT (RFC 6298).
    pub fn srtt(&self) -> Option<Span> {
        self.rtt.srtt().span()
    }

    /// The RTO, with its backoff.
    pub fn rto(&self) -> Span {
        self.rtt.rto()
    }

    /// The first unacknowledged segment, and the next segment to send for the first time.
    pub fn outstanding(&self) -> (u32, u32) {
        (self.una, self.nxt)
    }

    /// Counters since the start.
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }

    // --- what is in flight ---

    #[inline]
    fn pipe(&self) -> u32 {
        let left =
            self.scoreboard.sacked_out() as i32 + self.scoreboard.to_retransmit() + self.inflation;
        ((self.nxt - self.una) as i32).wrapping_sub(left).max(0) as u32
    }

    #[inline]
    fn update_snd_wnd(&mut self, ack: u32, window: u64) {
        if window != self.snd_wnd {
            self.snd_wnd = window;
            // A window below one segment counts as one, or nothing would ever leave. As all
            // segments have one size, this equals the receiver's silly window avoidance and the
            // sender's override of it (RFC 9293 §3.8.6.2).
            let segments = (window / u64::from(self.settings.mss)).clamp(1, u64::from(u32::MAX));
            self.snd_wnd_segments = segments as u32;
            self.writer.offered(window);
        }
        // The right edge never moves left (RFC 9293 §3.8.6).
        self.right_edge = self.right_edge.max(ack.saturating_add(self.snd_wnd_segments));
    }

    /// Updates the two limits that `poll` reads, after a change of cwnd or the receive window.
    #[inline]
    fn update_limits(&mut self) {
        self.cwnd = (self.control.cwnd() as u32).max(1);
        if self.handshake.is_none() {
            let most = self.una.saturating_add(self.settings.max_window);
            self.send_limit = self.right_edge.min(self.writer.written()).min(most);
            if !self.settings.limited_transmit
                && self.ca_state.is_open()
                && self.scoreboard.sacked_out() > 0
            {
                // Without limited transmit, SACKed segments allow no new segment before a recovery.
                self.send_limit = self.send_limit.min(self.nxt);
            }
        }
    }

    #[inline]
    fn sacked_below(&self, ack: u32) -> u32 {
        if self.scoreboard.sacked_out() == 0 { 0 } else { self.scoreboard.sacked_below(ack) }
    }

    // --- sending ---

    /// A segment is about to leave while nothing is in flight.
    #[cold]
    fn tx_start(&mut self, now: Time) {
        let lsndtime = self.lsndtime(now);
        self.control.on_tx_start(&TxStart { now, nxt: self.nxt, lsndtime });
        if let Some(rate) = &self.rate
            && rate.is_app_limited()
        {
            self.control.on_idle_restart(now, rate.totals());
        }
    }

    #[inline]
    fn send_new(&mut self, inflight: u32, now: Time) -> Segment {
        let seq = self.nxt;
        if inflight == 0 {
            self.tx_start(now);
        }
        self.nxt += 1;
        self.tlp.not_due();
        self.xmit.transmit(seq, self.una, now);
        let segment = self.send(seq, false, now);
        if self.settings.tlp {
            self.rearm = Rearm::Sent;
        }
        segment
    }

    /// A tail loss probe (RFC 8985 §7.3, tcp_send_loss_probe): a new segment, or the last one
    /// again.
    #[cold]
    fn poll_probe(&mut self, now: Time) -> Option<Segment> {
        self.rearm_timer(now);
        let new = self.nxt < self.send_limit;
        let segment =
            if new { self.send_new(self.pipe(), now) } else { self.send_again(self.nxt - 1, now) };
        self.stats.probes += 1;
        self.tlp = Tlp::Sent { end_seq: self.nxt, retransmitted: (!new).then_some(now) };
        self.rearm = Rearm::No;
        self.start_rto(now);
        Some(segment)
    }

    #[inline]
    fn send(&mut self, seq: u32, retransmit: bool, now: Time) -> Segment {
        self.stats.sent_segments += 1;
        if !self.timer.is_armed() {
            self.start_rto(now);
        }
        if let Some(prr) = self.ca_state.reduction() {
            prr.out += 1;
        }
        if !retransmit {
            self.rtt_source.on_transmit(seq, now);
        }
        let len = if self.settings.lengths_vary {
            self.length(seq, retransmit, now)
        } else if seq + 1 == self.end {
            self.last_len
        } else {
            self.settings.mss
        };
        if self.pacer.is_some() {
            self.pace(seq, len, retransmit, now);
        }
        let all = self.settings.needs_ecn || self.ecn == EcnState::Accurate;
        let ecn = self.ecn_field(!retransmit || all);
        let cwr = self.ecn == EcnState::QueueCwr && !retransmit;
        if cwr {
            self.ecn = EcnState::Ok;
        }
        let push =
            if retransmit { self.writer.pushes_again(seq) } else { self.writer.pushes_new(seq) };
        Segment {
            seq,
            len,
            stamp: now,
            retransmit,
            cwr,
            ace: 0,
            ecn,
            syn: false,
            push,
            echo: self.rtt_source.ts_recent(),
        }
    }

    /// The ECN field of a segment. It is ECT if ECN was agreed on and the segment is `capable`.
    #[inline]
    fn ecn_field(&self, capable: bool) -> Ecn {
        if capable && self.ecn != EcnState::Off { self.ect } else { Ecn::NotEct }
    }

    fn retransmit(&mut self, seq: u32, now: Time) -> Segment {
        if let CaState::Recovery(recovery) = &mut self.ca_state {
            recovery.fast_retransmit = false;
        }
        self.cold.undo.on_retransmit(now);
        self.send_again(seq, now)
    }

    /// Retransmits a segment, because it is lost or as a probe.
    fn send_again(&mut self, seq: u32, now: Time) -> Segment {
        self.stats.retransmits += 1;
        self.rtt_source.on_retransmit();
        self.xmit.retransmit(seq, now);
        self.send(seq, true, now)
    }

    /// Whether lost segments leave before new data. They do unless F-RTO or an undo has put the
    /// losses in doubt.
    #[inline]
    fn retransmits_first(&self) -> bool {
        match self.ca_state.rexmit() {
            Rexmit::Lost => true,
            Rexmit::New => self.nxt >= self.send_limit,
            Rexmit::None => false,
        }
    }

    #[cold]
    fn poll_retransmit(&mut self, now: Time) -> Option<Segment> {
        let seq = self.scoreboard.next_to_retransmit()?;
        self.rearm_timer(now);
        if self.pipe() == 0 {
            self.tx_start(now);
        }
        self.scoreboard.on_retransmit(seq);
        if let CaState::Loss(Loss { frto: frto @ Frto::NewData, .. }) = &mut self.ca_state {
            // RFC 5682 §2.1 step 2b: without new data to send, F-RTO ends.
            *frto = Frto::Off;
        }
        if seq == self.una && self.settings.rack && self.timer.pending() != Pending::ReoTimeout {
            // A retransmission starts a full RTO (Linux). RACK may detect its loss earlier.
            self.start_rto(now);
        }
        Some(self.retransmit(seq, now))
    }

    /// RFC 6675's NextSeg, rules 3 and 4: in a recovery, while pipe < cwnd and no segment is known
    /// to be lost.
    #[inline]
    fn poll_next_seg(&mut self, now: Time) -> Option<Segment> {
        let CaState::Recovery(Recovery { in_doubt: false, rescue_sent, .. }) = self.ca_state else {
            return None;
        };
        if !self.settings.sack || self.settings.rack {
            return None;
        }
        if let Some(seq) = self.scoreboard.next_seg_rule_3(self.una) {
            // Rule 3: a segment that is not SACKed, with fewer than DupThresh segments SACKed
            // above. Perhaps no further SACK will show that it is lost.
            self.scoreboard.mark_lost_below(seq + 1, self.una);
            self.count_sack1_pipe();
            return self.poll_retransmit(now);
        }
        if rescue_sent {
            return None;
        }
        // Rule 4, once a recovery: the last outstanding segment, so that SACK and not the timer
        // detects the loss of a tail. A lost tail lies above every SACK, so it was not
        // retransmitted. A segment first sent during this recovery is too young.
        let seq = self.scoreboard.last_unsacked(self.una, self.nxt)?;
        if seq < self.scoreboard.highest_sacked() || seq >= self.recover {
            return None;
        }
        self.rearm_timer(now);
        if let CaState::Recovery(recovery) = &mut self.ca_state {
            recovery.rescue_sent = true;
        }
        Some(self.retransmit(seq, now))
    }

    fn pace(&mut self, seq: u32, len: u32, retransmit: bool, now: Time) {
        if self.rate.is_some() {
            return self.pace_at_rate(seq, len, retransmit, now);
        }
        if let Some(rate) = self.control.rate() {
            return self.pace_at(rate, len, now);
        }
        if !self.settings.pacing {
            // The congestion control sets its own rate but has not set one yet.
            return;
        }
        let Some(srtt) = self.rtt.srtt().span() else {
            return;
        };
        // tcp_update_pacing_rate: max(cwnd, packets_out), since cwnd may have just fallen.
        let window = self.control.cwnd().max(f64::from(self.nxt - self.una));
        let rate =
            self.control.pacing_gain() * window * f64::from(self.settings.mss) / srtt.as_secs_f64();
        if let Some(pacer) = &mut self.pacer {
            pacer.sent(Span::from_secs_f64(f64::from(len) / rate), now);
        }
    }

    // --- acknowledgements ---

    /// The RTT sample, if any, of an ACK that advances SND.UNA on the fast path. If the ACK covers
    /// one segment that was sent once, its echo is the time of sending.
    #[inline(always)]
    fn rtt_sample(&mut self, ack: &AckSegment, last: Option<Time>, now: Time) -> Option<Span> {
        if !self.rtt_source.has_timestamps() {
            let sent = self.rtt_source.sent(ack)?;
            return Some(self.sample(sent, Some(sent), ack.ack, now));
        }
        if self.una < self.xmit.retransmitted_end() {
            let ack = *ack;
            return self.rtt_of_acked(&ack, None, last, now);
        }
        let sent = if ack.ack - self.una > 1 {
            self.xmit.xmit_ts(self.una)
        } else {
            self.rtt_source.sent(ack)?
        };
        Some(self.sample(sent, last, ack.ack, now))
    }

    /// The RTT sample as tcp_clean_rtx_queue and tcp_ack_update_rtt compute it. It measures the
    /// first segment acknowledged now. If a retransmission is among those acknowledged, it measures
    /// the first segment SACKed now (`first_sackt`), or else uses the timestamp's echo, whose clock
    /// has whole ms.
    #[cold]
    fn rtt_of_acked(
        &mut self,
        ack: &AckSegment,
        first_sackt: Option<Time>,
        last: Option<Time>,
        now: Time,
    ) -> Option<Span> {
        // SND.UNA is never SACKed.
        let first_ackt = (!self.acks_retransmitted(ack)).then(|| self.xmit.xmit_ts(self.una));
        let sent = match first_ackt.or(first_sackt) {
            Some(sent) => sent,
            None => sent_by_echo(ack, now)?,
        };
        Some(self.sample(sent, last, ack.ack, now))
    }

    /// The RTT sample of an ACK that does not advance SND.UNA but SACKs segments sent once (Linux).
    /// The first of these left at `sent`. Returns true if that was before the first outstanding
    /// segment was last sent: then the timer is armed again.
    #[cold]
    fn rtt_sample_of_sack(&mut self, sent: Time, last: Option<Time>, now: Time) -> bool {
        self.sample(sent, last, self.una, now);
        sent < self.xmit.xmit_ts(self.una)
    }

    /// tcp_ack_update_rtt: an ACK of all data below `una` measures segments that left from `first`
    /// to `last`.
    #[inline(always)]
    fn sample(&mut self, first: Time, last: Option<Time>, una: u32, now: Time) -> Span {
        self.rtt.sample(first, last.unwrap_or(first), (una, self.nxt), now)
    }

    /// The departure of the last segment that an ACK measures, before SND.UNA advances. It is the
    /// last segment SACKed now, or else the last acknowledged. If a retransmission is among those
    /// acknowledged, the timestamp's echo gives the departure (ca_rtt_us).
    #[inline]
    fn last_sent(&self, ack: &AckSegment, sacktag: &SacktagState, now: Time) -> Option<Time> {
        if sacktag.last_sackt.is_some() || ack.ack == self.una {
            return sacktag.last_sackt;
        }
        if self.una < self.xmit.retransmitted_end() && self.acks_retransmitted(ack) {
            return if self.rtt_source.has_timestamps() { sent_by_echo(ack, now) } else { None };
        }
        sacktag.last_ackt.or_else(|| Some(self.xmit.xmit_ts(ack.ack - 1)))
    }

    /// Whether the ACK is the first to acknowledge a retransmitted segment
    /// (FLAG_RETRANS_DATA_ACKED).
    fn acks_retransmitted(&self, ack: &AckSegment) -> bool {
        let xmit = &self.xmit;
        (self.una..ack.ack.min(xmit.retransmitted_end())).any(|seq| xmit.retransmitted(seq))
    }

    /// Lets the congestion control grow cwnd (tcp_cong_avoid). `acked` counts the segments that the
    /// ACK is the first to acknowledge or SACK.
    #[inline(always)]
    fn cong_avoid(&mut self, acked: u32, rtt: Option<Span>, one_way: Option<Span>, now: Time) {
        let ack = Ack {
            now,
            acked,
            rtt,
            one_way,
            srtt: self.rtt.srtt(),
            una: self.una,
            nxt: self.nxt,
            cwnd_limited: self.is_cwnd_limited(acked),
            ca_open: self.ca_state.is_open() && self.scoreboard.sacked_out() == 0,
        };
        self.control.on_ack(&ack);
        self.acked(true, now);
    }

    fn apply_sacks(&mut self, ack: &AckSegment) -> u32 {
        let blocks = &ack.sacks[..usize::from(ack.sack_count)];
        let new = blocks
            .iter()
            .map(|&block| self.scoreboard.sack(block, self.una, self.nxt, |_, _| ()))
            .sum();
        if new > 0 {
            self.scoreboard.on_sacks(self.una);
            // An ACK that SACKs something new is a duplicate, even if it advances SND.UNA (RFC 6675
            // §2).
            self.dup_acks += 1;
        }
        new
    }
}
