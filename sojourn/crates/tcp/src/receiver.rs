//! The receiver: the content of acknowledgements, and the segments that cause one.
//!
//! In order, the common case, a segment advances RCV.NXT, and every n-th segment is acknowledged.
//! The receiver acknowledges at once:
//!
//! - a gap, its filling, a duplicate and a CWR, because the sender's recovery depends on these
//!   ACKs; but from the fourth SACK of a gap on, SACKs are compressed;
//! - the first segments of a connection, and those after a duplicate or a pause (quick ACKs);
//! - a segment with PSH;
//! - each segment while the window opens.
//!
//! The application reads at once, but after the kernel has acknowledged. The parts: `pending` is
//! the ACK that is due later. `policy` has quick ACKs, delayed ACKs and the compression of SACKs.
//! `reassembly` is the out-of-order queue, and `window` the receive window.
//!
//! Sources: RFC 5681 §4.2 (delayed ACKs), RFC 2018 (SACK), RFC 2883 (DSACK), RFC 7323 §4.3
//! (TS.Recent), RFC 3168 §6.1.3 (ECE); Linux net/ipv4/tcp_input.c, whose functions the comments
//! name. Deviations: data beyond the offered window is accepted. At an end that sends no data the
//! handshake's RTT replaces Linux's srtt. Without a handshake, compressed SACKs use twice the least
//! one-way delay, and all other uses take the least delay plus that of the first segment. A
//! compressed SACK leaves tcp_comp_sack_slack_ns late. Linux allows its timer no more than that,
//! and on an idle machine the timer is that late.

mod accurate;
mod exact;
mod pending;
mod policy;
mod reassembly;
#[cfg(test)]
mod tests;
mod window;

use crate::timer::TimerWheel;
use crate::{AckSegment, CongestionKind, MAX_SACK_BLOCKS, Millis, Segment, TcpParams};
pub use accurate::{ACE_OFFSET, COUNTER_OFFSETS, is_transition, reflection};

use accurate::Accurate;
use exact::Exact;
use pending::Pending;
use policy::{AckPolicy, SackCompression};
use reassembly::{OutOfOrderQueue, Queued};
use units::{Ecn, Span, Time};
use window::Window;

/// tcp_sack_compress_send_ack: with more SACK blocks than this no compressed SACK may wait, because
/// a new block could push one out.
const COMPRESSED_BLOCKS: usize = 2;
/// The number of times that the SYN-ACK's timeout doubles, up to 64 s.
const SYNACK_BACKOFFS: u32 = 6;

/// The receiving end of one connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// RCV.NXT: all segments before it have arrived.
    rcv_nxt: u32,
    /// Last.ACK.sent of RFC 7323 §4.3 (rcv_wup).
    rcv_wup: u32,
    /// The number of unacknowledged segments that causes an ACK.
    ack_every: u32,
    policy: AckPolicy,
    compression: SackCompression,
    pending: Pending,
    wheel: TimerWheel,
    /// `None` if the connection is established from the start.
    handshake: Option<Handshake>,
    /// The least one-way delay of a segment.
    one_way_min: Span,
    delivered: u64,
    /// TS.Recent (RFC 7323 §4.3); NEVER before the first stamp, and always without timestamps.
    ts_recent: Time,
    mss: u32,
    timestamps: bool,
    ecn: Echo,
    /// Feedback on each mark, if the congestion control needs it.
    exact: Option<Box<Exact>>,
    /// An ECN-capable segment has arrived (TCP_ECN_SEEN).
    ect_seen: bool,
    /// The state of AccECN. It is present even if the sender does not ask for AccECN.
    accurate: Box<Accurate>,
    /// The ECN field of ACKs with AccECN, and the ECN field of the SYN-ACK.
    ect: Ecn,
    synack_ecn: Ecn,
    classic: Echo,
    dsack: bool,
    /// The duplicate segment that the next ACK reports.
    duplicate: Option<u32>,
    /// ACKs carry the one-way delay (RFC 6817 §2.3).
    reports_one_way: bool,
    one_way: Option<Span>,
    window: Window,
    ofo: OutOfOrderQueue,
}

/// The receiver's state of a handshake (Linux's request sock).
#[derive(Clone, Debug)]
struct Handshake {
    /// Stamp of the first SYN; NEVER before it.
    syn_stamp: Time,
    /// Timeouts of the SYN-ACK, up to `SYNACK_BACKOFFS`.
    synack_timeouts: u32,
    /// The SYN-ACK was retransmitted, after a timeout or to answer a further SYN (num_retrans).
    sent_again: bool,
}

/// ECN at the receiver (Linux's ecn_flags).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Echo {
    /// ECN was not agreed on.
    Off,
    /// TCP_ECN_OK.
    Ok,
    /// TCP_ECN_DEMAND_CWR: a CE mark has arrived and no CWR since. ACKs carry ECE.
    DemandCwr,
    /// Each mark is reported (`exact`). `ce`: the last segment was marked.
    Exact { ce: bool },
    /// AccECN.
    Accurate,
}

impl Receiver {
    /// A receiver before the first segment.
    pub fn new(params: &TcpParams) -> Receiver {
        let ofo = OutOfOrderQueue::new(params);
        let classic = match params.ecn {
            false => Echo::Off,
            true if params.congestion.needs_accecn() => Echo::Off,
            true if params.congestion.needs_ecn() => Echo::Exact { ce: false },
            true => Echo::Ok,
        };
        Receiver {
            rcv_nxt: 0,
            rcv_wup: 0,
            ack_every: params.acks.delayed_ack_segments.max(1),
            policy: AckPolicy::new(params),
            compression: SackCompression::new(params),
            pending: Pending::None,
            wheel: TimerWheel::new(params.timers.timer_tick_ns),
            handshake: params.handshake.then_some(Handshake {
                syn_stamp: Time::NEVER,
                synack_timeouts: 0,
                sent_again: false,
            }),
            one_way_min: Span(u64::MAX),
            delivered: 0,
            ts_recent: Time::NEVER,
            mss: params.mss,
            timestamps: params.timestamps,
            ecn: if params.ecn && params.accecn { Echo::Accurate } else { classic },
            accurate: Box::default(),
            ect: params.congestion.ect(),
            synack_ecn: if params.ecn && params.congestion.needs_ecn() {
                params.congestion.ect()
            } else {
                Ecn::NotEct
            },
            classic,
            exact: (params.ecn && params.congestion == CongestionKind::Dctcp).then(Box::default),
            ect_seen: false,
            dsack: params.recovery.dsack && params.recovery.sack,
            duplicate: None,
            reports_one_way: params.congestion == CongestionKind::Ledbat,
            one_way: None,
            window: Window::new(params, ofo.truesize.in_order),
            ofo,
        }
    }

    /// Handles a segment. Returns the acknowledgement to send now, if one is due.
    ///
    /// # Examples
    ///
    /// Segment 0 is lost, so segment 1 is acknowledged at once, with a SACK block:
    ///
    /// ```rust
    /// use tcp::{Receiver, Sender, TcpParams};
    /// use units::Time;
    ///
    /// let params = TcpParams::LINUX.with(|p| p.handshake = false);
    /// let mut sender = Sender::new(&params, None);
    /// let _lost = sender.poll(Time::ZERO);
    /// let segment = sender.poll(Time::ZERO).expect("the window has ten segments");
    /// let ack = Receiver::new(&params).on_segment(&segment, Time::ZERO).expect("there is a gap");
    /// assert_eq!((ack.ack, ack.sack_count, ack.sacks[0]), (0, 1, (1, 2)));
    /// ```
    #[inline(always)]
    pub fn on_segment(&mut self, segment: &Segment, now: Time) -> Option<AckSegment> {
        // Rare segments are copied. A segment to which nothing refers can stay in registers.
        if segment.len == 0 || matches!(self.pending, Pending::SynAck { .. }) {
            let segment = *segment;
            if segment.syn {
                return Some(self.on_syn(&segment, now));
            }
            self.establish(&segment, now);
            if segment.len == 0 {
                if self.ecn == Echo::Accurate {
                    self.ect_seen |= segment.ecn != Ecn::NotEct;
                    self.accurate.on_segment(segment.ecn, 0);
                }
                return None;
            }
        }
        // RFC 7323 §4.3 rule 2: only a segment that reaches down to Last.ACK.sent updates the
        // stamp. So a delayed ACK echoes the earliest segment that it covers, and a segment beyond
        // a gap is never echoed.
        if self.timestamps
            && segment.seq <= self.rcv_wup
            && (segment.stamp >= self.ts_recent || self.ts_recent == Time::NEVER)
        {
            self.ts_recent = segment.stamp;
        }
        if self.ecn != Echo::Off {
            self.check_ect(segment);
        }
        let at_once = match self.ecn {
            Echo::Off => false,
            Echo::Exact { .. } => {
                let segment = *segment;
                return self.on_exact(&segment, segment.cwr, now);
            }
            Echo::Accurate => {
                let segment = *segment;
                return self.on_accurate(&segment, now);
            }
            _ => self.check_ecn(segment.cwr, segment.ecn == Ecn::Ce),
        };
        self.on_data(segment, at_once, now)
    }

    /// Handles a segment with data. It is acknowledged `at_once` if ECN requires that.
    #[inline(always)]
    fn on_data(&mut self, segment: &Segment, at_once: bool, now: Time) -> Option<AckSegment> {
        let one_way = now.since(segment.stamp);
        if self.reports_one_way {
            self.one_way = Some(one_way);
        }
        if one_way < self.one_way_min {
            if self.handshake.is_none() {
                self.policy.estimate_rtt(one_way, self.one_way_min);
            }
            self.one_way_min = one_way;
        }

        self.window.measure_rcv_mss(segment.len, self.mss);
        self.window.rcv_rtt_measure_ts(segment, self.mss, one_way, now);
        if segment.seq == self.rcv_nxt {
            return self.on_in_order(segment, at_once, now);
        }
        if segment.seq > self.rcv_nxt {
            return self.on_out_of_order((segment.seq, segment.len), at_once, now);
        }
        self.duplicate = self.dsack.then_some(segment.seq);
        self.policy.on_duplicate();
        Some(self.acknowledge(self.ofo.rmem(), now))
    }

    /// tcp_data_queue for the expected segment. The kernel decides about the ACK before the
    /// application reads; then the application reads all data in order.
    #[inline(always)]
    fn on_in_order(&mut self, segment: &Segment, at_once: bool, now: Time) -> Option<AckSegment> {
        self.policy.event_data_recv(now);
        self.rcv_nxt += 1;
        self.delivered += u64::from(segment.len);
        self.window.rcv_rtt_measure(self.rcv_nxt, self.mss, now);
        if !self.ofo.is_empty() {
            return Some(self.on_gap_filled(now));
        }
        let rmem = self.ofo.truesize.in_order;
        if self.window.can_open() {
            let has_opened = if segment.len >= self.mss {
                self.window.grow_window(rmem)
            } else {
                self.window.grow_window_by_short(segment.len, self.mss, rmem)
            };
            if has_opened {
                self.policy.on_window_growth();
            }
        }
        let due = self.is_ack_due(rmem);
        let ack = if due && self.window.keeps_rcv_wnd(rmem) {
            self.policy.dec_quickack_mode();
            Some(self.send_ack(rmem, now))
        } else if at_once || self.policy.in_quickack_mode() {
            Some(self.acknowledge(rmem, now))
        } else if due || segment.push && !self.policy.in_pingpong_mode() {
            Some(self.send_ack(0, now))
        } else {
            if self.pending == Pending::None {
                self.delay_ack(now);
            }
            None
        };
        self.window.rcv_space_adjust(self.delivered, (0, 0), now);
        ack
    }

    /// tcp_ofo_queue: the segment has filled a gap, or part of it. The application reads the
    /// segment together with the data beyond the gap that share a buffer with it.
    fn on_gap_filled(&mut self, now: Time) -> AckSegment {
        let mut rmem = self.ofo.rmem() + self.ofo.truesize.in_order;
        self.grow_window(rmem);
        let released = self.ofo.release(self.rcv_nxt);
        let read = self.delivered + released.coalesced;
        self.rcv_nxt += released.segments;
        self.delivered += released.bytes;
        rmem -= if released.coalesced > 0 { self.ofo.truesize.out_of_order } else { 0 };
        let due = self.is_ack_due(rmem);
        let open = due && self.window.keeps_rcv_wnd(rmem);
        if !open && !self.policy.in_quickack_mode() && !self.ofo.is_empty() {
            self.compression.on_partial_fill(self.rcv_nxt);
        }
        let ack = self.acknowledge(rmem, now);
        let unread = (self.delivered - read, self.ofo.bytes_beyond(self.rcv_nxt));
        self.window.rcv_space_adjust(read, unread, now);
        if self.window.update_is_worthwhile(self.ofo.rmem(), self.delivered) {
            self.pending = Pending::WindowUpdate { due: now };
        }
        ack
    }

    /// Enough segments are unacknowledged (__tcp_ack_snd_check). If more than half of the buffer is
    /// used, quick ACKs end (__tcp_select_window).
    #[inline]
    fn is_ack_due(&mut self, rmem: u64) -> bool {
        let due = self.rcv_nxt - self.rcv_wup >= self.ack_every;
        if due && self.window.is_half_full(rmem) {
            self.policy.on_half_full();
        }
        due
    }

    /// tcp_send_delayed_ack.
    #[inline]
    fn delay_ack(&mut self, now: Time) {
        let delay = self.policy.delay();
        self.pending = Pending::delayed(now, delay);
        self.compression.on_delayed_ack(now + delay, delay);
    }

    /// tcp_data_queue_ofo: a segment beyond a gap.
    fn on_out_of_order(
        &mut self,
        (seq, len): (u32, u32),
        at_once: bool,
        now: Time,
    ) -> Option<AckSegment> {
        let rmem = self.ofo.rmem();
        let queued = self.ofo.queue(seq, len);
        if queued == Queued::Coalesced {
            self.grow_window(rmem);
        }
        self.duplicate =
            (self.dsack && queued == Queued::Duplicate).then_some(seq).or(self.duplicate);
        let place = self.ofo.extend_block(seq);
        // tcp_sack_compress_send_ack: a compressed SACK is sent before a new block can push out one
        // of its blocks.
        let waits = matches!(self.pending, Pending::Sack { .. });
        let before =
            (waits && place.index >= COMPRESSED_BLOCKS).then(|| self.acknowledge(rmem, now));
        self.ofo.move_block_to_front(place, seq);
        if queued == Queued::NewBuffer {
            self.grow_window(rmem);
        }
        self.window.on_out_of_order(self.ofo.bytes_beyond(self.rcv_nxt));
        if before.is_some() {
            // That ACK takes the place of the scheduled one (inet_csk_ack_scheduled): the next
            // segment's ACK reports this segment.
            return before;
        }
        if !at_once && !self.policy.in_quickack_mode() && self.compression.compresses(self.rcv_nxt)
        {
            if self.pending == Pending::None {
                let rtt = match self.handshake {
                    Some(_) if self.policy.rtt() > Span::ZERO => {
                        self.policy.rtt().min(self.window.rcv_rtt())
                    }
                    Some(_) => self.window.rcv_rtt(),
                    None => self.one_way_min * 2,
                };
                self.pending = self.compression.pending(rtt, &self.wheel, now);
            }
            self.pending.on_segment(now);
            return None;
        }
        Some(self.acknowledge(self.ofo.rmem(), now))
    }

    /// Answers a SYN. A SYN after data is a needless retransmission; its SYN-ACK changes no state.
    #[cold]
    fn on_syn(&mut self, segment: &Segment, now: Time) -> AckSegment {
        // The echoed stamp is the first SYN's, and only the first SYN can ask for ECN.
        let first = self.handshake.as_ref().is_some_and(|h| h.syn_stamp == Time::NEVER);
        if first {
            self.negotiate(segment);
        } else if self.rcv_nxt == 0 {
            self.on_syn_again(segment);
        }
        if let Some(handshake) = &mut self.handshake
            && (handshake.syn_stamp == Time::NEVER || self.rcv_nxt > 0)
        {
            handshake.syn_stamp = segment.stamp;
        }
        self.send_synack(first, now)
    }

    /// The SYN-ACK. It does not count as a quick ACK. It is retransmitted until something answers
    /// it: after 1 s, 2 s, 4 s.
    #[cold]
    fn send_synack(&mut self, first: bool, now: Time) -> AckSegment {
        let (syn_stamp, timeouts) =
            self.handshake.as_ref().map_or((Time::NEVER, 0), |h| (h.syn_stamp, h.synack_timeouts));
        if self.timestamps {
            self.ts_recent = syn_stamp;
        }
        if let Some(handshake) = &mut self.handshake {
            handshake.sent_again = !first;
        }
        let ace = self.ace_of_synack(timeouts);
        let ack = self.send_ack(0, now);
        // Only the first SYN-ACK has the option (RFC 9768 §3.2.3.2.2). Before data, segments are
        // ECN-capable only if the congestion control needs ECN, whatever the SYN asks for.
        let accecn = if first { ack.accecn } else { None };
        let ecn = self.synack_ecn;
        let synack = AckSegment { syn: true, echo: syn_stamp, ace, accecn, ecn, ..ack };
        if self.rcv_nxt == 0 {
            self.pending = Pending::synack(now, Span::from_secs(1 << timeouts));
        }
        synack
    }

    /// The first segment after the SYN-ACK has arrived: the connection is established.
    #[cold]
    fn establish(&mut self, segment: &Segment, now: Time) {
        let plain = self.handshake.as_ref().is_some_and(|h| h.synack_timeouts > 1);
        if self.ecn == Echo::Accurate && plain && segment.len == 0 && segment.ace < 2 {
            self.ecn = Echo::Off;
        }
        if segment.len == 0 {
            self.on_third_ack(segment.ace);
        }
        if let Pending::SynAck { sent, .. } = self.pending {
            // If the SYN-ACK was retransmitted, the echo shows which one is answered, by a clock of
            // whole ms (tcp_synack_rtt_meas, tcp_ack_update_rtt).
            let again = self.handshake.as_ref().is_some_and(|h| h.sent_again);
            let by_echo = || {
                let rtt = Millis::at(now).since(segment.echo?);
                Some(rtt.max(Span::from_millis(1)))
            };
            let rtt = if again { by_echo() } else { Some(now.since(sent)) };
            self.policy.established(rtt, now);
            self.window.init_buffer_space(now);
            self.pending = Pending::None;
        }
    }

    /// This end has sent the SYN, and the SYN-ACK arrives after `rtt`.
    pub fn connected(&mut self, rtt: Option<Span>, now: Time) {
        self.policy.established(rtt, now);
        self.window.init_buffer_space(now);
    }

    /// An ACK without data arrives, off the fast path of tcp_rcv_established.
    pub(crate) fn on_slow_ack(&mut self, ack: &AckSegment) {
        if self.timestamps {
            self.window.on_bare_stamp(Millis::at(ack.echo));
        }
    }

    /// Whether a SYN-ACK waits for an answer.
    pub fn is_in_handshake(&self) -> bool {
        matches!(self.pending, Pending::SynAck { .. })
    }

    /// The RTT that the receiver knows; zero before the first.
    pub fn rtt(&self) -> Span {
        self.policy.rtt()
    }

    /// This end sends data too, and has measured its RTT.
    pub fn measured(&mut self, srtt: Span, rto: Span) {
        if self.handshake.is_some() {
            self.policy.measured(srtt, rto);
        }
    }

    /// The acknowledgement in a segment that this end sends, with or without data. A pending ACK
    /// needs no packet of its own then (tcp_event_ack_sent).
    pub fn acknowledge_with(&mut self, segment: &Segment, now: Time) -> AckSegment {
        let rmem = self.ofo.rmem();
        let ack = match self.pending {
            Pending::None => self.send_ack(rmem, now),
            _ => self.acknowledge(rmem, now),
        };
        if segment.len > 0 {
            self.policy.event_data_sent(now);
        }
        ack
    }

    /// The due time of the pending ACK, if there is one.
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        let due = self.pending.due();
        (due != Time::NEVER).then_some(due)
    }

    /// Returns the pending ACK if it is due. An early call does nothing.
    #[inline]
    pub fn on_deadline(&mut self, now: Time) -> Option<AckSegment> {
        if !self.pending.has_expired(&self.wheel, now) {
            return None;
        }
        let ack = match self.pending {
            Pending::None => return None,
            Pending::Delayed { .. } => {
                self.policy.on_delack_timeout();
                self.acknowledge(self.ofo.rmem(), now)
            }
            Pending::Sack { arrived, .. } => {
                let ack = self.acknowledge(self.ofo.rmem(), now);
                let stamp = if arrived == Time::NEVER { ack.stamp } else { Millis::at(arrived) };
                AckSegment { stamp, ..ack }
            }
            Pending::Second { .. } => return self.second_ack(),
            // A window update does not count as a quick ACK.
            Pending::WindowUpdate { .. } => self.send_ack(self.ofo.rmem(), now),
            Pending::SynAck { .. } => {
                if let Some(handshake) = &mut self.handshake {
                    handshake.synack_timeouts =
                        (handshake.synack_timeouts + 1).min(SYNACK_BACKOFFS);
                }
                self.send_synack(false, now)
            }
        };
        Some(ack)
    }

    /// Bytes delivered to the application, in order.
    #[inline]
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered
    }

    /// The receive window that an acknowledgement sent now would carry, bytes.
    #[inline]
    pub fn window_bytes(&self) -> u64 {
        self.window.window(self.delivered, self.ofo.rmem())
    }

    /// The window scale: windows are multiples of 2 to this power (RFC 7323 §2).
    pub fn window_scale(&self) -> u32 {
        self.window.scale()
    }

    /// The window that a SYN-ACK offers, bytes, unscaled (RFC 7323 §2.2).
    pub fn syn_window(&self) -> u16 {
        self.window.syn_window()
    }

    /// RFC 3168 §6.1.3: ECE is set from a CE mark until a CWR. Returns whether the ACK leaves at
    /// once. It does for a CWR, because the sender may be down to one segment. The first CE causes
    /// two quick ACKs (tcp_enter_quickack_mode).
    #[inline]
    fn check_ecn(&mut self, cwr: bool, ce: bool) -> bool {
        // A CWR with a CE mark ends one demand for a CWR and begins another.
        let demanded = self.ecn == Echo::DemandCwr && !cwr;
        self.ecn = if demanded || ce { Echo::DemandCwr } else { Echo::Ok };
        if ce && !demanded {
            self.policy.enter_quickack_mode(2);
        }
        cwr
    }

    /// A segment that is not ECN-capable, after an ECN-capable one, is probably a retransmission:
    /// it causes two quick ACKs (tcp_data_ecn_check).
    #[inline]
    fn check_ect(&mut self, segment: &Segment) {
        if segment.ecn != Ecn::NotEct {
            self.ect_seen = true;
        } else if self.ect_seen && segment.seq >= self.rcv_nxt {
            self.policy.enter_quickack_mode(2);
        }
    }

    /// tcp_grow_window for a new segment.
    #[inline]
    fn grow_window(&mut self, rmem: u64) {
        if self.window.grow_window(rmem) {
            self.policy.on_window_growth();
        }
    }

    /// The acknowledgement to send now, with `rmem` bytes of the buffer in use.
    #[inline]
    fn acknowledge(&mut self, rmem: u64, now: Time) -> AckSegment {
        if self.window.is_half_full(rmem) {
            self.policy.on_half_full();
        }
        self.policy.dec_quickack_mode();
        self.send_ack(rmem, now)
    }

    /// Like `acknowledge`, but the ACK does not count as a quick ACK. No other ACK remains pending.
    #[inline]
    fn send_ack(&mut self, rmem: u64, now: Time) -> AckSegment {
        let window = self.window.select_window(self.delivered, rmem);
        self.ack_that_offers(window, now)
    }

    fn ack_that_offers(&mut self, window: u64, now: Time) -> AckSegment {
        self.rcv_wup = self.rcv_nxt;
        self.pending = Pending::None;
        let (sacks, mut sack_count) = if self.ofo.is_empty() && self.duplicate.is_none() {
            ([(0, 0); MAX_SACK_BLOCKS], 0)
        } else {
            self.ofo.sack_blocks(self.duplicate.take())
        };
        let (ace, accecn, ecn) = match self.ecn {
            Echo::Off | Echo::Ok => (0, None, Ecn::NotEct),
            Echo::DemandCwr => (1, None, Ecn::NotEct),
            // With DCTCP all packets are ECN-capable, ACKs too.
            Echo::Exact { ce } => (u8::from(ce), None, Ecn::Ect0),
            Echo::Accurate => {
                let (ace, accecn, blocks) = self.feedback(sack_count);
                sack_count = blocks;
                (ace, accecn, self.ect)
            }
        };
        AckSegment {
            ack: self.rcv_nxt,
            echo: self.ts_recent,
            window,
            sacks,
            sack_count,
            ace,
            accecn,
            ecn,
            one_way: self.one_way,
            syn: false,
            stamp: Millis::at(now),
        }
    }
}
