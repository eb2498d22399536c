//! The sender: what may leave now (here), what is lost (`recovery`), when to give up waiting
//! (`timeouts`).
//!
//! Four states. *Open*: growing. *Recovery*: a loss was inferred from duplicate ACKs or SACKs; lost
//! segments are sent again while the window comes down, until everything outstanding at the start
//! is acknowledged. *Reduced*: the same without a loss, after an ECN echo. *Loss*: the timer went
//! off; everything outstanding counts as lost and is sent again in slow start, unless F-RTO finds
//! that it was not. What is in flight is always `nxt - una - sacked - missing` (see `scoreboard`),
//! less the duplicate ACKs where there is no SACK, and a segment may leave while that is below
//! cwnd. A window of data is reduced for once, whatever signals come: `recover` says how far it
//! reaches. What was reduced for nothing is given back (see `undo`).
//!
//! Sources: RFC 5681 (slow start, fast retransmit), RFC 6675 (SACK recovery), RFC 6937 (PRR), RFC
//! 6582 (NewReno), RFC 3042 (limited transmit), RFC 8985 (RACK, tail loss probe), RFC 5682 (F-RTO),
//! RFC 6298 (timer), RFC 3168 §6.1 (ECN); Linux and ns-2.35 where these leave a choice. Deviations:
//! no teardown. No zero-window probe: a window narrower than a segment counts as one segment. What
//! NextSeg's rule 3 sends again counts as lost, so once and not twice in what is in flight. Without
//! RACK a lost retransmission waits for the timer.

mod recovery;
mod timeouts;

use crate::cc::{Ack, CongestionControl, Control};
use crate::params::Ns2Mode;
use crate::rack::Rack;
use crate::rtt::RttEstimator;
use crate::scoreboard::Scoreboard;
use crate::sent::SentTimes;
use crate::timer::{Alarm, Clock, Due};
use crate::undo::Undo;
use crate::writer::Writer;
use crate::{AckSegment, Millis, Receiver, Segment, TcpParams};
use units::{Span, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    Recovery,
    Reduced,
    Loss,
}

/// What leaves first until the next ACK, where lost segments wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Lost,
    /// F-RTO's probe: new data, if any may be sent.
    New,
    /// The losses are in doubt: new data or nothing.
    OnlyNew,
}

/// A tail loss probe that is not answered.
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// One past what was outstanding with it (RFC 8985's TLP.end_seq).
    end: u32,
    /// When it left, if it was a copy.
    copy: Option<Time>,
}

/// What an ACK says beyond its number.
struct Heard {
    acked: u32,
    delivered: u32,
    rtt: Option<Span>,
    echo: Time,
    /// A segment from before the last reduction has arrived that was sent only once.
    original: bool,
    /// SACKs something new, or (without SACK) is a duplicate.
    duplicate: bool,
    /// What came twice at the receiver.
    reported: Option<u32>,
}

/// What an ACK is the first to tell of.
#[derive(Clone, Copy, Debug, Default)]
struct Arrivals {
    /// A segment from before `recover` that left only once.
    original: bool,
    /// When the first one left that is SACKed and left only once.
    sacked: Option<Time>,
    /// And the last one.
    sacked_last: Option<Time>,
}

/// What an ACK did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    /// The RTT it measured.
    pub rtt: Option<Span>,
    /// Segments it newly acknowledged or SACKed.
    pub delivered: u32,
    /// It acknowledged the last of the transfer. True once: an echo of something sent twice may
    /// still come after it.
    pub complete: bool,
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// Segments with data sent, again or for the first time.
    pub sent_segments: u64,
    /// Segments with data sent again.
    pub retransmits: u64,
    /// Times the retransmission timer went off, for a SYN or for data.
    pub timeouts: u64,
    /// Fast recoveries entered.
    pub fast_recoveries: u64,
    /// Windows reduced for an ECN echo.
    pub ecn_reductions: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Reductions that proved needless and were undone.
    pub undos: u64,
}

/// What a sender is set to, in the words of `TcpParams`.
#[derive(Clone, Copy, Debug)]
struct Settings {
    mss: u32,
    sack: bool,
    prr: bool,
    undo: bool,
    frto: bool,
    rack: bool,
    tlp: bool,
    limited_transmit: bool,
    timestamps: bool,
    ecn: bool,
    ns2: Ns2Mode,
    pacing: bool,
    max_window: u32,
}

/// Proportional rate reduction (RFC 6937): the window of recovery follows what is delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Prr {
    delivered: u32,
    out: u32,
    /// cwnd when the reduction began, which Linux takes for RecoverFS.
    from: f64,
}

/// How far the handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    /// A SYN is to leave.
    Begin,
    /// It is on its way.
    Asked,
    /// It was answered, which is to be acknowledged.
    Answered,
}

/// One connection's sending end.
pub struct Sender {
    una: u32,
    nxt: u32,
    /// One past the last segment that receiver, application and `max_window` let go.
    bound: u32,
    /// cwnd in whole segments.
    window: u32,
    /// Duplicate ACKs that count as having left the network, where there is no SACK. In ns-2's
    /// Sack1, below zero: what is lost and counts as in flight all the same.
    inflation: i32,
    dup_acks: u32,
    phase: Phase,
    /// One segment may be sent again whatever the window says: the first of a recovery.
    force: bool,
    /// `nxt` when cwnd last stopped the sender: until that is acknowledged cwnd is what limits it
    /// (Linux).
    limited_until: u32,
    cwr_due: bool,
    /// One past the window of data that was last reduced for: RFC 6582's `recover`, Linux's
    /// high_seq.
    recover: u32,
    /// `una` at the last timeout.
    timed_out: u32,
    alarm: Alarm,
    /// RACK has set the timer at this ACK.
    judging: bool,
    probe: Option<Probe>,
    control: Control,
    board: Scoreboard,
    sent: SentTimes,
    rtt: RttEstimator,
    /// Edge of the receive window, in segments.
    edge: u32,
    last_window: u64,
    last_window_segments: u32,
    settings: Settings,
    writer: Writer,
    /// The stamp of the last ACK.
    echo: Option<Millis>,
    prr: Prr,
    undo: Undo,
    /// After a timeout that may be spurious.
    frto: bool,
    first: First,
    rack: Rack,
    /// A probe leaves now, whatever the window says.
    probing: bool,
    /// Without timestamps one segment at a time is timed (Karn): its number and when it left.
    timed: Option<(u32, Time)>,
    partial_acks: u32,
    rescued: bool,
    /// Segments of the transfer; `u32::MAX` is endless.
    end: u32,
    last_len: u32,
    stopped: bool,
    /// The handshake, until it is over.
    opening: Option<Opening>,
    /// Pacing: the next segment may not leave before.
    release: Time,
    paced_out: bool,
    stats: SenderStats,
}

impl Sender {
    /// A connection that will transfer `bytes`, or go on for ever.
    pub fn new(params: &TcpParams, bytes: Option<u64>) -> Sender {
        let mss = u64::from(params.mss);
        // 4 billion segments are 6 TB; a longer transfer is as good as endless.
        let end = bytes.map_or(u32::MAX, |b| b.div_ceil(mss).clamp(1, u64::from(u32::MAX)) as u32);
        let last_len = bytes.map_or(mss, |b| b.max(1) - (u64::from(end) - 1) * mss) as u32;
        let settings = Settings {
            mss: params.mss,
            sack: params.recovery.sack,
            prr: params.recovery.prr,
            undo: params.recovery.undo,
            frto: params.recovery.frto,
            rack: params.recovery.rack && params.recovery.sack && !params.ns2.sack1_pipe,
            tlp: params.recovery.tlp && params.recovery.sack && !params.ns2.sack1_pipe,
            limited_transmit: params.recovery.limited_transmit,
            timestamps: params.timestamps,
            ecn: params.ecn,
            ns2: params.ns2,
            pacing: params.growth.pacing,
            max_window: params.growth.max_window.unwrap_or(u32::MAX).max(1),
        };
        let control = Control::new(params);
        let mut sender = Sender {
            una: 0,
            nxt: 0,
            bound: 0,
            window: 0,
            inflation: 0,
            dup_acks: 0,
            phase: Phase::Open,
            force: false,
            limited_until: 0,
            cwr_due: false,
            recover: 0,
            timed_out: 0,
            alarm: Alarm::new(Clock::new(params.timers.timer_tick_ns)),
            judging: false,
            probe: None,
            control,
            board: Scoreboard::default(),
            sent: SentTimes::new(),
            rtt: RttEstimator::new(params),
            edge: 0,
            last_window: u64::MAX,
            last_window_segments: u32::MAX,
            settings,
            writer: Writer::new(params, end),
            echo: None,
            prr: Prr::default(),
            undo: Undo::new(),
            frto: false,
            first: First::Lost,
            rack: Rack::new(),
            probing: false,
            timed: None,
            partial_acks: 0,
            rescued: false,
            end,
            last_len,
            stopped: false,
            opening: params.handshake.then_some(Opening::Begin),
            release: Time::ZERO,
            paced_out: false,
            stats: SenderStats::default(),
        };
        // What the receiver offered in its half of the handshake.
        sender.open_edge(0, Receiver::new(params).window_bytes());
        sender.refresh();
        sender
    }

    /// The next segment that may leave now. Call until `None`.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Option<Segment> {
        loop {
            let next = self.poll_written(now);
            if next.is_some() {
                return next;
            }
            if let Some(stage) = self.opening {
                return self.poll_opening(stage, now);
            }
            if !self.writer.write(self.una, self.nxt, self.board.merged(), self.window) {
                return None;
            }
            self.refresh();
        }
    }

    /// A segment of the handshake. Behind its last one data may leave.
    #[cold]
    fn poll_opening(&mut self, stage: Opening, now: Time) -> Option<Segment> {
        let bare = Segment {
            seq: 0,
            len: 0,
            stamp: now,
            retransmit: false,
            // An ECN-setup SYN (RFC 3168 §6.1.1). One that was lost may have been for just that
            // (§6.1.1.1; Linux: tcp_ecn_fallback).
            cwr: stage == Opening::Begin && self.settings.ecn && self.stats.timeouts == 0,
            ect: false,
            syn: stage == Opening::Begin,
            push: false,
            echo: self.echo,
        };
        match stage {
            Opening::Asked => return None,
            Opening::Begin => {
                self.opening = Some(Opening::Asked);
                self.begin_timeout(now);
            }
            Opening::Answered => {
                self.opening = None;
                self.refresh();
            }
        }
        Some(bare)
    }

    #[inline]
    fn poll_written(&mut self, now: Time) -> Option<Segment> {
        let inflight = self.pipe();
        if inflight >= self.window
            && !(self.force && self.first == First::Lost && self.board.missing() > 0)
        {
            if self.probing {
                return self.poll_probe(now);
            }
            self.limited_until = self.nxt;
            return None;
        }
        if self.settings.pacing && now < self.release {
            self.paced_out = true;
            return None;
        }
        if self.board.missing() > 0 && self.lost_first() {
            return self.poll_lost(now);
        }
        if self.nxt < self.bound {
            return Some(self.send_new(now));
        }
        if self.probing {
            return self.poll_probe(now);
        }
        self.poll_doubtful(now)
    }

    /// An ACK arrives.
    #[inline]
    pub fn on_ack(&mut self, ack: &AckSegment, now: Time) -> Acked {
        if ack.syn || ack.ack > self.nxt || ack.ack < self.una {
            if ack.syn {
                self.on_syn_ack(ack, now);
            }
            // Acknowledges what was never sent, or is older than one seen before.
            return Acked { rtt: None, delivered: 0, complete: false };
        }
        let acked = ack.ack - self.una;
        if self.settings.timestamps {
            self.echo = Some(ack.stamp);
        }
        let mut delivered = acked;
        // Nothing of this is worth a look while all is well.
        let telling = ack.sack_count > 0 && self.settings.sack;
        let reported = if telling { self.hear_duplicate(ack) } else { None };
        let amiss =
            self.phase != Phase::Open || self.board.sacked() > 0 || telling || self.probe.is_some();
        let arrivals = if amiss { self.hear_arrivals(ack, now) } else { Arrivals::default() };
        self.open_edge(ack.ack, ack.window);
        let mut rtt = None;
        if acked > 0 {
            rtt = self.measure(ack, now);
            // What of it was SACKed before counted as delivered then.
            delivered -= self.sacked_below(ack.ack);
            if !self.settings.sack && self.dup_acks > 0 {
                // Each duplicate was a segment delivered, but for the one that fills the gap.
                delivered = acked.saturating_sub(self.dup_acks).max(1);
            }
            self.una = ack.ack;
            self.dup_acks = 0;
            self.board.advance(ack.ack);
        }
        let dup_acks = self.dup_acks;
        if self.settings.sack {
            // RFC 6675 §2: without news in its SACK blocks an ACK is no duplicate, only the echo of
            // a segment sent twice.
            if ack.sack_count > 0 {
                delivered += self.take_sacks(ack);
            }
        } else if acked == 0 && self.nxt > self.una {
            self.dup_acks += 1;
            delivered = 1;
        }
        let last = self.una.wrapping_sub(1);
        let told = arrivals.sacked_last;
        if let Some(sent) =
            told.or_else(|| (acked > 0 && !self.sent.again(last)).then(|| self.sent.at(last)))
        {
            self.control.on_arrival(sent, now);
        }
        let mut lively = acked > 0;
        if let (None, Some(sent), true) = (rtt, arrivals.sacked, self.settings.rack) {
            lively |= self.measure_sacked(sent, now);
        }
        self.judging = false;
        let quiet = !amiss && self.dup_acks == 0;
        if quiet && !ack.ece {
            // The common case: new data acknowledged, nothing amiss.
            if acked > 0 {
                self.grow(delivered, rtt, ack.one_way, now);
                self.inflation = 0;
            }
        } else {
            let duplicate = self.dup_acks > dup_acks;
            let original = arrivals.original;
            let heard =
                Heard { acked, delivered, rtt, echo: ack.echo, original, duplicate, reported };
            self.on_ack_amiss(ack, heard, now);
        }
        if lively && !self.judging {
            self.restart_timer(now);
        }
        self.refresh();
        Acked { rtt, delivered, complete: acked > 0 && self.una == self.end }
    }

    /// The receiver has agreed. It says so again until it hears something.
    #[cold]
    fn on_syn_ack(&mut self, ack: &AckSegment, now: Time) {
        if self.opening.replace(Opening::Answered) != Some(Opening::Asked) {
            return;
        }
        self.alarm.off();
        self.settings.ecn &= ack.ece;
        self.open_edge(0, ack.window);
        if self.settings.timestamps {
            self.echo = Some(ack.stamp);
        }
        if self.settings.timestamps || self.stats.timeouts == 0 {
            self.rtt.sample(ack.echo, (0, 0), now);
        }
        if self.stats.timeouts > 1 {
            // RFC 5681 §3.1, but not for a single SYN, since the first timeout is a second only
            // (RFC 6298 §2.1; Linux).
            self.control.set_cwnd(1.0);
        }
    }

    /// When `on_deadline` wants to be called: the retransmission timer, or the release of a paced
    /// segment.
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        let timer = self.alarm.at();
        let at = if self.paced_out { timer.min(self.release) } else { timer };
        (at != Time::NEVER).then_some(at)
    }

    /// The deadline is reached; `poll` afterwards.
    pub fn on_deadline(&mut self, now: Time) {
        if self.paced_out && self.release <= now {
            self.paced_out = false;
        }
        match self.alarm.has_come(now) {
            None => {}
            Some(Due::Timeout) => self.timeout(now),
            Some(Due::Judge) => {
                self.judge_late(now);
                self.rearm(now);
            }
            Some(Due::Probe) => {
                let anything = self.nxt < self.bound || self.board.highest() < self.nxt;
                self.probing = self.probe.is_none() && anything;
                // A probe begins it anew; without one the first segment's time goes on.
                self.rearm(now);
            }
        }
    }

    /// The application stops: nothing new is sent, what is outstanding is still sent again if lost.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.bound = self.nxt;
    }

    /// cwnd in bytes.
    pub fn cwnd_bytes(&self) -> u64 {
        (self.control.cwnd() * f64::from(self.settings.mss)) as u64
    }

    /// ssthresh in bytes; `None` while unlimited.
    pub fn ssthresh_bytes(&self) -> Option<u64> {
        let ssthresh = self.control.ssthresh();
        ssthresh.is_finite().then_some((ssthresh * f64::from(self.settings.mss)) as u64)
    }

    /// What is in flight by RFC 6675's reckoning, bytes.
    pub fn inflight_bytes(&self) -> u64 {
        u64::from(self.pipe()) * u64::from(self.settings.mss)
    }

    /// Smoothed RTT.
    pub fn srtt(&self) -> Option<Span> {
        self.rtt.srtt()
    }

    /// The retransmission timeout in force.
    pub fn rto(&self) -> Span {
        self.rtt.rto()
    }

    /// The first segment that is not acknowledged, and the next one to be sent for the first time.
    pub fn outstanding(&self) -> (u32, u32) {
        (self.una, self.nxt)
    }

    /// Counts since the start.
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }

    // --- what is in flight ---

    #[inline]
    fn pipe(&self) -> u32 {
        let left = (self.board.sacked() + self.board.missing()).wrapping_add_signed(self.inflation);
        ((self.nxt - self.una).wrapping_sub(left) as i32).max(0) as u32
    }

    #[inline]
    fn open_edge(&mut self, ack: u32, window: u64) {
        if window != self.last_window {
            self.last_window = window;
            // Less than a segment counts as one, or nothing would ever leave: the receiver's silly
            // window avoidance and the sender's override of it (RFC 9293 §3.8.6.2) come to that,
            // segments being of one size.
            let segments = (window / u64::from(self.settings.mss)).clamp(1, u64::from(u32::MAX));
            self.last_window_segments = segments as u32;
            self.writer.offered(window);
        }
        // The right edge never moves left (RFC 9293 §3.8.6).
        self.edge = self.edge.max(ack.saturating_add(self.last_window_segments));
    }

    /// After anything that moves a window: the two numbers that `poll` looks at.
    #[inline]
    fn refresh(&mut self) {
        self.window = (self.control.cwnd() as u32).max(1);
        if !self.stopped && self.opening.is_none() {
            let most = self.una.saturating_add(self.settings.max_window);
            self.bound = self.edge.min(self.writer.written()).min(most);
            if !self.settings.limited_transmit
                && self.phase == Phase::Open
                && self.board.sacked() > 0
            {
                // Without limited transmit SACKed segments free no room: nothing new leaves before
                // recovery.
                self.bound = self.bound.min(self.nxt);
            }
        }
    }

    #[inline]
    fn sacked_below(&self, ack: u32) -> u32 {
        if self.board.sacked() == 0 { 0 } else { self.board.sacked_below(ack) }
    }

    // --- sending ---

    #[inline]
    fn send_new(&mut self, now: Time) -> Segment {
        let seq = self.nxt;
        if self.pipe() == 0 {
            self.control.on_start(seq);
        }
        self.nxt += 1;
        self.probing = false;
        self.sent.sent(seq, self.una, now);
        let segment = self.send(seq, false, now);
        if self.settings.tlp {
            if self.alarm.due() == Due::Probe {
                self.rearm(now);
            }
            self.await_probe(now, false);
        }
        segment
    }

    /// A tail loss probe (RFC 8985 §7.3): a new segment, or the last one again.
    #[cold]
    fn poll_probe(&mut self, now: Time) -> Option<Segment> {
        self.probing = false;
        let new = self.nxt < self.bound;
        let segment = if new { self.send_new(now) } else { self.resend(self.nxt - 1, now) };
        self.stats.probes += 1;
        self.probe = Some(Probe { end: self.nxt, copy: (!new).then_some(now) });
        self.begin_timeout(now);
        Some(segment)
    }

    #[inline]
    fn send(&mut self, seq: u32, retransmit: bool, now: Time) -> Segment {
        self.stats.sent_segments += 1;
        if !self.alarm.is_on() {
            self.begin_timeout(now);
        }
        if self.phase != Phase::Open {
            self.prr.out += 1;
        }
        if !self.settings.timestamps && !retransmit && self.timed.is_none() {
            self.timed = Some((seq, now));
        }
        let len = if seq + 1 == self.end { self.last_len } else { self.settings.mss };
        if self.settings.pacing {
            self.pace(len, now);
        }
        let cwr = self.cwr_due && !retransmit;
        self.cwr_due &= !cwr;
        let ect = self.settings.ecn && !retransmit;
        let push =
            if retransmit { self.writer.pushes_again(seq) } else { self.writer.pushes_new(seq) };
        Segment { seq, len, stamp: now, retransmit, cwr, ect, syn: false, push, echo: self.echo }
    }

    fn resend(&mut self, seq: u32, now: Time) -> Segment {
        self.force = false;
        self.stats.retransmits += 1;
        self.timed = None;
        self.sent.sent_again(seq, now);
        self.undo.sent_again(now);
        self.send(seq, true, now)
    }

    /// Whether what is lost goes before new data: always, but for the moment in which it is in
    /// doubt.
    #[inline]
    fn lost_first(&self) -> bool {
        match self.first {
            First::Lost => true,
            First::New => self.nxt >= self.bound,
            First::OnlyNew => false,
        }
    }

    #[cold]
    fn poll_lost(&mut self, now: Time) -> Option<Segment> {
        let seq = self.board.next_missing()?;
        if self.pipe() == 0 {
            self.control.on_start(self.nxt);
        }
        self.board.send_again(seq);
        // RFC 5682 §2.1 step 2b: with nothing new to send there is no telling.
        self.frto &= self.first != First::New;
        self.first = First::Lost;
        if seq == self.una && self.settings.rack && self.alarm.due() != Due::Judge {
            // A copy has as long as the original had (Linux): its own loss can be found before.
            self.begin_timeout(now);
        }
        Some(self.resend(seq, now))
    }

    /// A recovery with room in the window and nothing that is certain to be of use: RFC 6675's
    /// NextSeg, rules 3 and 4.
    #[inline]
    fn poll_doubtful(&mut self, now: Time) -> Option<Segment> {
        if self.phase != Phase::Recovery
            || !self.settings.sack
            || self.settings.rack
            || self.first == First::OnlyNew
        {
            return None;
        }
        if let Some(seq) = self.board.next_doubtful(self.una) {
            // Rule 3: not SACKed, with fewer than DupThresh SACKed above. No more SACKs may come to
            // make it certain.
            self.board.mark_lost_below(seq + 1, self.una);
            self.count_as_sack1();
            return self.poll_lost(now);
        }
        if self.rescued {
            return None;
        }
        // Rule 4, once a recovery: the last segment outstanding, so that the loss of a tail is
        // found by SACK rather than by the timer. Only what lies above every SACK, and so has not
        // been sent again, can be a lost tail; and what was first sent during this recovery is too
        // young.
        let seq = self.board.last_unsacked(self.una, self.nxt)?;
        if seq < self.board.highest() || seq >= self.recover {
            return None;
        }
        self.rescued = true;
        Some(self.resend(seq, now))
    }

    fn pace(&mut self, len: u32, now: Time) {
        let Some(srtt) = self.rtt.srtt() else {
            return;
        };
        // More than cwnd may be outstanding when the window has just come down (Linux).
        let window = self.control.cwnd().max(f64::from(self.nxt - self.una));
        let rate =
            self.control.pacing_gain() * window * f64::from(self.settings.mss) / srtt.as_secs_f64();
        self.release = self.release.max(now) + Span::from_secs_f64(f64::from(len) / rate);
    }

    // --- acknowledgements ---

    /// The RTT sample of an ACK that advances `una`, if it gives one.
    #[inline]
    fn measure(&mut self, ack: &AckSegment, now: Time) -> Option<Span> {
        if self.settings.timestamps {
            let outstanding = (ack.ack, self.nxt);
            return (ack.echo != Time::NEVER).then(|| self.rtt.sample(ack.echo, outstanding, now));
        }
        let (seq, sent) = self.timed?;
        if ack.ack <= seq {
            return None;
        }
        self.timed = None;
        Some(self.rtt.sample(sent, (ack.ack, self.nxt), now))
    }

    /// An ACK that does not advance SACKs a segment that left at `sent`, and only once: a sample
    /// too (Linux). Where it left before the first one outstanding last did, there is life in the
    /// path, and the timer begins anew.
    #[cold]
    fn measure_sacked(&mut self, sent: Time, now: Time) -> bool {
        self.rtt.sample(sent, (self.una, self.nxt), now);
        sent < self.sent.at(self.una)
    }

    /// `acked`: the segments that the ACK is the first to tell of; what was SACKed before has had
    /// its share.
    #[inline]
    fn grow(&mut self, acked: u32, rtt: Option<Span>, one_way: Option<Span>, now: Time) {
        // In slow start a window that is more than half used counts as the limit: it doubles faster
        // than it fills.
        let flight = self.nxt - self.una + acked;
        let filling = self.control.cwnd() < self.control.ssthresh()
            && self.control.cwnd() < 2.0 * f64::from(flight);
        let ack = Ack {
            now,
            acked,
            rtt,
            one_way,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            una: self.una,
            nxt: self.nxt,
            cwnd_limited: self.una <= self.limited_until || filling,
            orderly: self.phase == Phase::Open && self.board.sacked() == 0,
        };
        self.control.on_ack(&ack);
    }

    fn take_sacks(&mut self, ack: &AckSegment) -> u32 {
        let blocks = &ack.sacks[..usize::from(ack.sack_count)];
        let new =
            blocks.iter().map(|&block| self.board.sack(block, self.una, self.nxt, |_, _| ())).sum();
        if new > 0 {
            self.board.sacks_taken(self.una);
            // An ACK that SACKs something new is a duplicate, whatever else it says (RFC 6675 §2).
            self.dup_acks += 1;
        }
        new
    }
}
