//! The sender: what may leave now, what is lost, when to give up waiting.
//!
//! Four states. *Open*: growing. *Recovery*: a loss was inferred from duplicate ACKs or SACKs; lost segments are sent again
//! while the window comes down, until everything outstanding at the start is acknowledged. *Reduced*: the same without a
//! loss, after an ECN echo. *Loss*: the timer went off; everything outstanding counts as lost and is sent again in slow
//! start, unless F-RTO finds that it was not. What is in flight is always `nxt - una - sacked - missing` (see
//! `scoreboard`), less the duplicate ACKs where there is no SACK, and a segment may leave while that is below cwnd. A
//! window of data is reduced for once, whatever signals come: `recover` says how far it reaches. What was reduced for
//! nothing is given back (see `undo`).
//!
//! Sources: RFC 5681 (slow start, fast retransmit), RFC 6675 (SACK recovery), RFC 6937 (PRR), RFC 6582 (NewReno),
//! RFC 3042 (limited transmit), RFC 8985 (RACK, tail loss probe), RFC 5682 (F-RTO), RFC 6298 (timer), RFC 3168 §6.1
//! (ECN); Linux and ns-2.35 where these leave a choice.
//! Deviations: no teardown. No zero-window probe: a window narrower than a segment counts as one
//! segment. What NextSeg's rule 3 sends again counts as lost, so once and not twice in what is in flight. Without RACK a
//! lost retransmission waits for the timer.

use crate::cc::{Ack, Congestion, CongestionControl, Control, Signal};
use crate::rack::Rack;
use crate::rtt::RttEstimator;
use crate::scoreboard::{DUP_THRESH, Found, Scoreboard};
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
}

/// What an ACK did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    /// The RTT it measured.
    pub rtt: Option<Span>,
    /// Segments it newly acknowledged or SACKed.
    pub delivered: u32,
    /// It acknowledged the last of the transfer. True once: an echo of something sent twice may still come after it.
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
    packet_counted: bool,
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

/// So often a SYN goes again a second after the one before, then ever later (tcp_syn_linear_timeouts, since 6.5).
const SYNS_A_SECOND_APART: u64 = 4;

/// One connection's sending end.
pub struct Sender {
    una: u32,
    nxt: u32,
    /// One past the last segment that receiver, application and `max_window` let go.
    bound: u32,
    /// cwnd in whole segments.
    window: u32,
    /// Duplicate ACKs that count as having left the network, where there is no SACK. In ns-2's Sack1, below zero: what is lost
    /// and counts as in flight all the same.
    inflation: i32,
    dup_acks: u32,
    phase: Phase,
    /// One segment may be sent again whatever the window says: the first of a recovery.
    force: bool,
    /// `nxt` when cwnd last stopped the sender: until that is acknowledged cwnd is what limits it (Linux).
    limited_until: u32,
    cwr_due: bool,
    /// One past the window of data that was last reduced for: RFC 6582's `recover`, Linux's high_seq.
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
            sack: params.sack,
            prr: params.prr,
            undo: params.undo,
            frto: params.frto,
            rack: params.rack && params.sack && !params.packet_counted,
            tlp: params.tlp && params.sack && !params.packet_counted,
            limited_transmit: params.limited_transmit,
            timestamps: params.timestamps,
            ecn: params.ecn,
            packet_counted: params.packet_counted,
            pacing: params.pacing,
            max_window: params.max_window.unwrap_or(u32::MAX).max(1),
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
            alarm: Alarm::new(Clock::new(params.timer_tick_ns)),
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
            cwr: false,
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
        if inflight >= self.window && !(self.force && self.first == First::Lost && self.board.missing() > 0) {
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
        let amiss = self.phase != Phase::Open || self.board.sacked() > 0 || telling || self.probe.is_some();
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
            // RFC 6675 §2: without news in its SACK blocks an ACK is no duplicate, only the echo of a segment sent twice.
            if ack.sack_count > 0 {
                delivered += self.take_sacks(ack);
            }
        } else if acked == 0 && self.nxt > self.una {
            self.dup_acks += 1;
            delivered = 1;
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
            let heard = Heard { acked, delivered, rtt, echo: ack.echo, original, duplicate, reported };
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
        self.open_edge(0, ack.window);
        if self.settings.timestamps {
            self.echo = Some(ack.stamp);
        }
        if self.settings.timestamps || self.stats.timeouts == 0 {
            self.rtt.sample(ack.echo, (0, 0), now);
        }
        if self.stats.timeouts > 1 {
            // RFC 5681 §3.1, but not for a single SYN, since the first timeout is a second only (RFC 6298 §2.1; Linux).
            self.control.set_cwnd(1.0);
        }
    }

    /// When `on_deadline` wants to be called: the retransmission timer, or the release of a paced segment.
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
            // Less than a segment counts as one, or nothing would ever leave: the receiver's silly window avoidance
            // and the sender's override of it (RFC 9293 §3.8.6.2) come to that, segments being of one size.
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
            if !self.settings.limited_transmit && self.phase == Phase::Open && self.board.sacked() > 0 {
                // Without limited transmit SACKed segments free no room: nothing new leaves before recovery.
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
        let push = if retransmit { self.writer.pushes_again(seq) } else { self.writer.pushes_new(seq) };
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

    /// Whether what is lost goes before new data: always, but for the moment in which it is in doubt.
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

    /// A recovery with room in the window and nothing that is certain to be of use: RFC 6675's NextSeg, rules 3 and 4.
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
            // Rule 3: not SACKed, with fewer than DupThresh SACKed above. No more SACKs may come to make it certain.
            self.board.mark_lost_below(seq + 1, self.una);
            self.count_as_sack1();
            return self.poll_lost(now);
        }
        if self.rescued {
            return None;
        }
        // Rule 4, once a recovery: the last segment outstanding, so that the loss of a tail is found by SACK rather than
        // by the timer. Only what lies above every SACK, and so has not been sent again, can be a lost tail; and what was
        // first sent during this recovery is too young.
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
        let rate = self.control.pacing_gain() * window * f64::from(self.settings.mss) / srtt.as_secs_f64();
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

    /// An ACK that does not advance SACKs a segment that left at `sent`, and only once: a sample too (Linux). Where it left before
    /// the first one outstanding last did, there is life in the path, and the timer begins anew.
    #[cold]
    fn measure_sacked(&mut self, sent: Time, now: Time) -> bool {
        self.rtt.sample(sent, (self.una, self.nxt), now);
        sent < self.sent.at(self.una)
    }

    /// `acked`: the segments that the ACK is the first to tell of; what was SACKed before has had its share.
    #[inline]
    fn grow(&mut self, acked: u32, rtt: Option<Span>, one_way: Option<Span>, now: Time) {
        // In slow start a window that is more than half used counts as the limit: it doubles faster than it fills.
        let flight = self.nxt - self.una + acked;
        let filling =
            self.control.cwnd() < self.control.ssthresh() && self.control.cwnd() < 2.0 * f64::from(flight);
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
        };
        self.control.on_ack(&ack);
    }

    fn take_sacks(&mut self, ack: &AckSegment) -> u32 {
        let blocks = &ack.sacks[..usize::from(ack.sack_count)];
        let new = blocks.iter().map(|&block| self.board.sack(block, self.una, self.nxt, |_, _| ())).sum();
        if new > 0 {
            self.board.sacks_taken(self.una);
            // An ACK that SACKs something new is a duplicate, whatever else it says (RFC 6675 §2).
            self.dup_acks += 1;
        }
        new
    }

    /// Whether the first SACK block reports a segment that came twice (RFC 2883 §4): it lies below the ACK, or within the
    /// second block.
    #[cold]
    fn hear_duplicate(&mut self, ack: &AckSegment) -> Option<u32> {
        let (first, second) = (ack.sacks[0], ack.sacks[1]);
        let within = ack.sack_count > 1 && second.0 <= first.0 && first.1 <= second.1;
        if first.0 >= ack.ack && !within {
            return None;
        }
        for seq in first.0..first.1.min(self.nxt) {
            // What is still outstanding must have been sent again; of what is forgotten it is taken for granted (Linux).
            if seq < self.una || self.sent.again(seq) {
                self.undo.duplicate(seq);
            }
        }
        if !self.is_probe_copy(first.1) {
            self.rack.duplicate(self.una, self.nxt);
        }
        Some(first.1)
    }

    /// The probe was a copy of the segment before `end`.
    fn is_probe_copy(&self, end: u32) -> bool {
        self.probe.is_some_and(|probe| probe.copy.is_some() && probe.end == end)
    }

    /// Looks at each segment that the ACK is the first to tell of.
    #[cold]
    fn hear_arrivals(&mut self, ack: &AckSegment, now: Time) -> Arrivals {
        let mut arrivals = Arrivals::default();
        if !self.frto && !self.settings.rack {
            return arrivals;
        }
        let (sent, rack, recover) = (&self.sent, &mut self.rack, self.recover);
        let (highest, min_rtt) = (self.board.highest(), self.rtt.min_rtt());
        let mut look = |from: u32, to: u32| {
            for seq in from..to {
                let again = sent.again(seq);
                arrivals.original |= !again && seq < recover;
                if !again && seq >= ack.ack {
                    arrivals.sacked = arrivals.sacked.or(Some(sent.at(seq)));
                }
                rack.reordering_seen |= !again && seq < highest;
                // An echo from before the copy left: the original is acknowledged (RFC 8985 §6.2 step 2). Of what lies beyond a
                // gap the echo says nothing.
                let of_original = again && seq < ack.ack && ack.echo < sent.at(seq);
                if !of_original {
                    rack.arrived(seq, sent.at(seq), again, min_rtt, now);
                }
            }
        };
        // The RTT that counts is that of the segment looked at last: SACKed ones come before those acknowledged (Linux).
        let mut blocks = ack.sacks;
        let blocks = &mut blocks[..usize::from(ack.sack_count)];
        blocks.sort_unstable();
        for &mut (from, to) in blocks {
            let from = from.max(ack.ack);
            self.board.unsacked_below(to.min(self.nxt), from, &mut look);
        }
        self.board.unsacked_below(ack.ack, self.una, &mut look);
        arrivals
    }

    /// Everything but the common case: duplicates, SACKs, ECN, recovery.
    fn on_ack_amiss(&mut self, ack: &AckSegment, heard: Heard, now: Time) {
        let Heard { acked, delivered, rtt, .. } = heard;
        // Without SACK an ACK after a timeout may tell of much that had arrived before: it counts for one segment
        // (RFC 3465 §2.3).
        let blind = self.phase == Phase::Loss && !self.settings.sack;
        let delivered = if blind { delivered.min(1) } else { delivered };
        let echo = ack.ece && self.settings.ecn;
        if echo {
            self.undo.confirm();
        }
        self.first = First::Lost;
        self.probing = false;
        self.answer_probe(ack, &heard, now);
        if self.phase != Phase::Open && self.is_over() {
            // NewReno's full ACK sets the window and does no more (RFC 6582 §3.2 step 3). In ns-2 it is the other way
            // about: Newreno grows by it, Sack1 does not.
            let no_more = self.phase == Phase::Recovery && self.settings.sack == self.settings.packet_counted;
            if self.proves_needless(&heard) {
                self.give_back(false);
            } else {
                self.leave_recovery();
            }
            if no_more {
                return;
            }
        } else {
            self.reconsider(&heard);
        }
        let missing = self.board.missing();
        match self.phase {
            Phase::Open => {
                // RFC 6675 needs no such care: SACKs tell what has arrived from what was sent twice. ns-2's Sack1 takes it.
                let careful = !self.settings.sack || self.settings.packet_counted;
                if (!careful || self.is_news()) && self.finds_loss(now) {
                    self.signal(Signal::Loss, Phase::Recovery, now);
                    if echo {
                        self.undo.confirm();
                    }
                    self.begin_resending(now);
                    self.count_as_sack1();
                    self.reduce(delivered, acked > 0 && self.board.missing() <= missing);
                } else if echo && self.is_news() {
                    self.stats.ecn_reductions += 1;
                    self.signal(Signal::Ecn, Phase::Reduced, now);
                    self.recover = self.nxt;
                    self.reduce(delivered, acked > 0);
                } else if acked > 0 {
                    self.grow(delivered, rtt, ack.one_way, now);
                }
            }
            Phase::Recovery => {
                if self.first == First::OnlyNew {
                    self.reduce(delivered, acked > 0);
                } else if self.settings.sack {
                    self.mark_lost(now);
                    self.count_as_sack1();
                    self.reduce(delivered, acked > 0 && self.board.missing() <= missing);
                } else {
                    self.newreno(acked);
                }
            }
            Phase::Reduced => {
                if self.finds_loss(now) {
                    // The window was reduced for this round trip already: only the lost segments are sent again.
                    self.phase = Phase::Recovery;
                    self.begin_resending(now);
                    self.reduce(delivered, acked > 0 && self.board.missing() <= missing);
                } else if self.proportional() {
                    self.reduce(delivered, acked > 0);
                } else if acked > 0 && !echo {
                    self.grow(delivered, rtt, ack.one_way, now);
                }
            }
            Phase::Loss => {
                if self.settings.frto && !self.settings.sack {
                    // A duplicate after F-RTO's new data says that some of that has arrived: room for what is lost.
                    let arrived = acked == 0 && self.nxt > self.recover;
                    self.inflation = if arrived { self.inflation + 1 } else { 0 };
                }
                if self.settings.rack && self.mark_lost(now).copies {
                    // What was sent again is lost again: congestion anew (Linux).
                    self.signal(Signal::Loss, Phase::Recovery, now);
                    self.begin_resending(now);
                    self.reduce(delivered, acked > 0 && self.board.missing() <= missing);
                } else if acked > 0 {
                    self.grow(delivered, rtt, ack.one_way, now);
                }
            }
        }
        if self.settings.limited_transmit
            && !self.settings.sack
            && (self.phase == Phase::Open || self.phase == Phase::Reduced)
        {
            // RFC 3042: each of the first duplicates lets a new segment out. With SACK the count of what is in flight
            // does that by itself.
            self.inflation = self.dup_acks.min(DUP_THRESH - 1) as i32;
        }
    }

    /// The reduction was for nothing: by stamps, by DSACKs, or, of a timeout, because originals arrive (RFC 5682 §3.1 step 3b).
    fn proves_needless(&self, heard: &Heard) -> bool {
        if self.phase == Phase::Reduced {
            return false;
        }
        let delayed = heard.acked > 0 && self.undo.delayed(heard.echo);
        delayed || self.undo.all_reported() || (self.frto && heard.original)
    }

    /// Before what was reduced for is acknowledged: was it for nothing?
    fn reconsider(&mut self, heard: &Heard) {
        match self.phase {
            Phase::Open => {
                if self.undo.all_reported() {
                    self.give_back(false);
                }
            }
            Phase::Reduced => {}
            Phase::Recovery => {
                if heard.acked > 0 && self.undo.delayed(heard.echo) {
                    // An original filled the hole. Until the copies are in, losses are in doubt (Linux).
                    if self.board.resent(self.una) > 0 {
                        self.first = First::OnlyNew;
                    } else {
                        self.give_back(true);
                    }
                } else if self.undo.all_reported() {
                    self.give_back(false);
                }
            }
            Phase::Loss => {
                let answered = heard.acked > 0 || heard.original;
                if answered && self.proves_needless(heard) {
                    self.give_back(true);
                } else if self.frto {
                    self.probe_timeout(heard);
                }
            }
        }
    }

    /// F-RTO (RFC 5682 §3.1): the first ACK that advances lets new data out, the next one tells by what it acknowledges.
    fn probe_timeout(&mut self, heard: &Heard) {
        if self.nxt > self.recover {
            // Step 3a: the new data has arrived and nothing from before the timeout. The loss was real.
            self.frto &= !heard.duplicate;
        } else if heard.acked > 0 {
            self.recover = self.nxt;
            self.first = First::New;
        }
    }

    /// Undoes the reduction: cwnd and ssthresh as before, or as now where that is more (Linux's rule for CUBIC, Reno
    /// and Vegas alike). With `unmark` nothing counts as lost any more.
    fn give_back(&mut self, unmark: bool) {
        self.stats.undos += 1;
        match (unmark, self.settings.rack) {
            (false, _) => {}
            (true, false) => self.board.unmark(self.una),
            (true, true) => self.board.trust(self.una, |seq| self.sent.at(seq)),
        }
        // RACK looks again.
        self.rack.advanced = true;
        if let Some((cwnd, ssthresh)) = self.undo.take() {
            self.control.set_cwnd(self.control.cwnd().max(cwnd));
            if ssthresh > self.control.ssthresh() {
                self.control.set_ssthresh(ssthresh);
                self.cwr_due = false;
            }
        }
        self.rtt.end_backoff();
        self.reopen();
    }

    /// Duplicates or SACKs say that a segment is lost. With SACK they need not come in a row.
    fn finds_loss(&mut self, now: Time) -> bool {
        if self.settings.rack {
            self.mark_lost(now);
            // What is lost and was sent again counts: when a recovery ends, that is of data sent since it began.
            return self.board.lost(self.una) > 0;
        }
        if self.settings.sack { self.board.mark_lost(self.una) } else { self.dup_acks >= DUP_THRESH }
    }

    /// Marks what SACKs say is lost: by RACK, or by RFC 6675.
    fn mark_lost(&mut self, now: Time) -> Found {
        if !self.settings.rack {
            self.board.mark_lost(self.una);
        } else if std::mem::take(&mut self.rack.advanced) {
            return self.judge(now);
        }
        Found::default()
    }

    /// RACK: judges everything outstanding; comes back to what has to wait.
    fn judge(&mut self, now: Time) -> Found {
        let recovering = self.phase == Phase::Recovery || self.phase == Phase::Loss;
        let sure = recovering || self.board.sacked() >= DUP_THRESH;
        let window = self.rack.window(sure, self.rtt.min_rtt(), self.rtt.srtt());
        let (rack, sent) = (&self.rack, &self.sent);
        let found = self.board.judge(self.una, self.nxt, |seq| rack.judge(seq, sent.at(seq), window, now));
        if found.wait > Span::ZERO {
            // Linux's timers don't wait for less than 2 ms.
            self.alarm.set(Due::Judge, now, found.wait + Span::from_millis(2));
            self.judging = true;
        }
        found
    }

    /// The reordering window has passed without an ACK.
    fn judge_late(&mut self, now: Time) {
        let before = self.board.missing();
        self.judge(now);
        if self.board.missing() == before {
            return;
        }
        match self.phase {
            Phase::Recovery => {}
            Phase::Reduced => {
                self.phase = Phase::Recovery;
                self.begin_resending(now);
                self.reduce(1, false);
            }
            Phase::Open | Phase::Loss => {
                self.signal(Signal::Loss, Phase::Recovery, now);
                self.begin_resending(now);
                self.reduce(1, false);
            }
        }
        self.refresh();
    }

    /// RFC 8985 §7.4: what the answer to a probe tells.
    fn answer_probe(&mut self, ack: &AckSegment, heard: &Heard, now: Time) {
        let Some(probe) = self.probe else { return };
        if ack.ack < probe.end {
            return;
        }
        let twice = heard.reported == Some(probe.end) || (heard.acked == 0 && !heard.duplicate);
        if probe.copy.is_none() || twice {
            // It was new data, or both the original and the copy have arrived.
            self.probe = None;
        } else if ack.ack > probe.end {
            // The copy filled a hole: a loss, repaired before it was found.
            self.signal(Signal::Loss, Phase::Open, now);
            self.undo = Undo::new();
            self.control.set_cwnd(self.control.ssthresh());
        }
    }

    /// What the window was reduced for is acknowledged. After an ECN echo one segment more: that one carried CWR, and
    /// before it has arrived an echo is the old one (Linux).
    fn is_over(&self) -> bool {
        self.una > self.recover || (self.una == self.recover && self.phase != Phase::Reduced)
    }

    /// A signal now is of data sent after the last reduction. Up to `recover` an ECN echo is the old one, and without
    /// SACK duplicates may answer what was sent twice (RFC 6582 §3.2 step 2, ns-2's bugFix_).
    fn is_news(&self) -> bool {
        self.una > self.recover || self.recover == 0
    }

    /// ns-2's Sack1 takes what is lost to be in flight until it is acknowledged, and what is sent again of it as well.
    fn count_as_sack1(&mut self) {
        if self.is_sack1() {
            self.inflation = -(self.board.lost(self.una) as i32);
        }
    }

    fn is_sack1(&self) -> bool {
        self.settings.sack && self.settings.packet_counted
    }

    fn begin_resending(&mut self, now: Time) {
        self.stats.fast_recoveries += 1;
        self.recover = self.nxt;
        self.partial_acks = 0;
        self.rescued = false;
        self.force = !self.proportional();
        self.end_probe();
        if !self.settings.sack {
            // All that three duplicates tell is that the first segment is lost.
            self.board.mark_lost_below(self.una + 1, self.una);
            self.inflation = self.dup_acks as i32;
        }
        if !self.proportional() {
            self.control.set_cwnd(self.control.ssthresh());
        }
        if !self.settings.rack {
            // The first segment outstanding is sent again now: its time begins anew (Linux, ns-2).
            self.begin_timeout(now);
        }
    }

    /// Congestion, in a window of data that was not reduced for yet.
    fn signal(&mut self, signal: Signal, next: Phase, now: Time) {
        let cwnd = self.control.cwnd();
        if signal == Signal::Ecn {
            self.undo = Undo::new();
        } else {
            // A window that has outgrown ssthresh is remembered by three quarters of it (Linux).
            let ssthresh = self.control.ssthresh().max(0.75 * cwnd);
            let marker = self.settings.undo.then_some(self.una);
            match self.board.resent(self.una) {
                0 => self.undo.begin(marker, cwnd, ssthresh),
                copies => self.undo.begin_anew(marker, cwnd, ssthresh, copies),
            }
            if let Some(Probe { copy: Some(sent), .. }) = self.probe {
                self.undo.sent_again(sent);
            }
        }
        if signal != Signal::Ecn {
            self.end_probe();
        }
        self.phase = next;
        self.prr = Prr { delivered: 0, out: 0, from: cwnd };
        let inflight = self.nxt - self.una;
        self.control.on_congestion(&Congestion { now, signal, inflight });
        if signal == Signal::Ecn && !self.proportional() {
            self.control.set_cwnd(self.control.ssthresh());
        }
        // The receiver hears of it, whatever the reason (RFC 3168 §6.1.2).
        self.cwr_due = self.settings.ecn;
    }

    /// Whether the window comes down by PRR: it needs to know what is delivered, so SACK, or no loss at all.
    fn proportional(&self) -> bool {
        let able = self.phase == Phase::Reduced || (self.phase == Phase::Recovery && self.settings.sack);
        able && self.settings.prr
    }

    /// PRR (RFC 6937 §3): above ssthresh send in proportion to what is delivered, below it in slow start, or packet for
    /// packet while further losses are found. Linux's variant: progress is an ACK that advances and tells of no loss.
    fn reduce(&mut self, delivered: u32, progress: bool) {
        if delivered == 0 || !self.proportional() {
            return;
        }
        self.prr.delivered += delivered;
        let pipe = self.pipe();
        let ssthresh = self.control.ssthresh() as u32;
        let allowed = if pipe > ssthresh {
            let from = (self.prr.from as u64).max(1);
            let share = (u64::from(ssthresh) * u64::from(self.prr.delivered)).div_ceil(from);
            (share as u32).saturating_sub(self.prr.out)
        } else {
            let conserved = self.prr.delivered.saturating_sub(self.prr.out).max(delivered);
            (ssthresh - pipe).min(conserved + u32::from(progress))
        };
        // The first segment is always sent again.
        let allowed = allowed.max(u32::from(self.prr.out == 0));
        self.control.set_cwnd(f64::from(pipe + allowed));
    }

    /// RFC 6582 §3.2 steps 3 to 5: duplicates inflate the window, a partial ACK deflates it and shows the next hole.
    fn newreno(&mut self, acked: u32) {
        if acked == 0 {
            self.inflation += 1;
            return;
        }
        self.partial_acks += 1;
        self.inflation = (self.inflation + 1).saturating_sub_unsigned(acked).max(0);
        self.board.mark_lost_below(self.una + 1, self.una);
        self.force = true;
    }

    fn leave_recovery(&mut self) {
        match self.phase {
            Phase::Recovery if !self.settings.sack && !self.settings.packet_counted => {
                // RFC 6582 §3.2 step 3, option 1: no burst after a window full of duplicates (ns-2 bursts).
                let flight = f64::from((self.nxt - self.una).max(1) + 1);
                self.control.set_cwnd(self.control.ssthresh().min(flight));
            }
            _ if self.proportional() => self.control.set_cwnd(self.control.ssthresh()),
            _ => {}
        }
        if self.phase != Phase::Reduced {
            self.rack.recovered();
        }
        if self.phase == Phase::Recovery && self.is_sack1() {
            // ns-2's Sack1 is careful after timeouts only.
            self.recover = 0;
        }
        self.reopen();
    }

    fn reopen(&mut self) {
        self.phase = Phase::Open;
        self.frto = false;
        self.inflation = 0;
        self.force = false;
    }

    // --- the timer ---

    /// An ACK shows that there is life in the path.
    #[inline]
    fn restart_timer(&mut self, now: Time) {
        if self.una == self.nxt {
            self.alarm.off();
        } else if self.settings.tlp {
            if !self.await_probe(now, true) {
                self.rearm(now);
            }
        } else if self.settings.sack || self.phase != Phase::Recovery || self.partial_acks <= 1 {
            // NewReno's impatient variant: only the first partial ACK restarts the timer (RFC 6582 §4).
            self.rearm(now);
        }
    }

    #[inline]
    fn begin_timeout(&mut self, now: Time) {
        self.alarm.set(Due::Timeout, now, self.rtt.rto());
    }

    /// Sets the timer to the timeout: from now, or, in place of something else, from when the first segment outstanding last left.
    #[inline]
    fn rearm(&mut self, now: Time) {
        let span = if self.alarm.due() == Due::Timeout { self.rtt.rto() } else { self.left_of_timeout(now) };
        self.alarm.set(Due::Timeout, now, span.max(Span(1)));
    }

    /// Of the first segment outstanding.
    fn left_of_timeout(&self, now: Time) -> Span {
        Span(self.rtt.rto().0.saturating_sub(now.since(self.sent.at(self.una)).0))
    }

    /// Sets the timer to probe, while all is well (RFC 8985 §7.2): before a timeout. That is counted from now after an ACK, else from when the
    /// first segment outstanding left (tcp_schedule_loss_probe).
    #[inline]
    fn await_probe(&mut self, now: Time, after_ack: bool) -> bool {
        let well = self.phase == Phase::Reduced || (self.phase == Phase::Open && self.board.sacked() == 0);
        if !well {
            return false;
        }
        let span = self.rtt.probe(self.nxt - self.una == 1);
        let timeout = if after_ack { self.rtt.rto() } else { self.left_of_timeout(now) };
        let span = if timeout > Span::ZERO { span.min(timeout) } else { span };
        self.alarm.set(Due::Probe, now, span);
        true
    }

    /// No probe is out any more.
    fn end_probe(&mut self) {
        self.probe = None;
        self.probing = false;
    }

    fn timeout(&mut self, now: Time) {
        if self.opening.is_some() {
            self.stats.timeouts += 1;
            if self.stats.timeouts > SYNS_A_SECOND_APART {
                self.rtt.back_off();
            }
            self.opening = Some(Opening::Begin);
            return;
        }
        if self.una == self.nxt {
            self.alarm.off();
            return;
        }
        self.stats.timeouts += 1;
        self.rtt.back_off();
        self.timed = None;
        // F-RTO: not out of a recovery, but again at a further timeout of the same segment (RFC 5682 §2.1 step 1, §3.2; Linux).
        let further = self.phase == Phase::Loss && self.una == self.timed_out;
        let first = self.phase == Phase::Open || self.phase == Phase::Reduced;
        self.frto = self.settings.frto && (first || further);
        self.first = First::Lost;
        // ns-2 halves the window each time. RFC 5681 §3.1: ssthresh stays when the same data times out again.
        if self.settings.packet_counted || !further {
            let reduced = self.phase == Phase::Recovery || self.phase == Phase::Reduced;
            if reduced && self.una < self.recover && !self.settings.packet_counted {
                // This window of data was reduced for: ssthresh follows from what cwnd was before, and so does what an
                // undo gives back (Linux).
                let undo = std::mem::replace(&mut self.undo, Undo::new());
                self.control.set_cwnd(self.prr.from);
                self.signal(Signal::Timeout, Phase::Loss, now);
                self.undo = undo;
            } else {
                self.signal(Signal::Timeout, Phase::Loss, now);
            }
        }
        self.end_probe();
        self.control.set_cwnd(1.0);
        self.phase = Phase::Loss;
        self.timed_out = self.una;
        self.recover = self.nxt;
        self.dup_acks = 0;
        self.inflation = 0;
        self.force = false;
        if self.settings.packet_counted {
            self.board.forget_sacks();
        }
        if self.settings.rack {
            let (latest, sent) = (self.rtt.latest(), &self.sent);
            self.board.mark_old_lost(self.una, self.nxt, |seq| sent.at(seq) + latest <= now);
            // What was sent a moment ago is still on its way.
            self.control.set_cwnd(f64::from(self.pipe() + 1));
        } else {
            self.board.mark_all_lost(self.una, self.nxt);
        }
        self.begin_timeout(now);
        self.release = self.release.min(now);
        self.refresh();
    }
}
