//! The receiver: when to acknowledge, what an acknowledgement carries, and how wide the window is.
//!
//! In order, the common case, a segment advances RCV.NXT, and every n-th one is acknowledged.
//! Acknowledged at once are:
//!
//! - a gap, its filling, a duplicate and a CWR, because the sender's recovery runs on these ACKs;
//!   but from the fourth SACK of a gap on, SACKs are compressed (`compress_sack`);
//! - the first segments of a connection, and those after a duplicate or a pause (quick ACKs);
//! - a segment with PSH;
//! - each segment while the window opens (`window`).
//!
//! The application reads at once, but after the kernel has acknowledged. `reassembly` has the
//! out-of-order queue.
//!
//! Sources: RFC 5681 §4.2 (delayed ACKs), RFC 2018 (SACK), RFC 2883 (DSACK), RFC 7323 §4.3
//! (TS.Recent), RFC 3168 §6.1.3 (ECE); Linux net/ipv4/tcp_input.c, whose functions the comments
//! name. Deviations: data beyond the offered window is accepted. The handshake's RTT stands for
//! Linux's srtt. Without a handshake it is twice the least one-way delay for compressed SACKs, and
//! otherwise that delay plus the first segment's. A compressed SACK leaves tcp_comp_sack_slack_ns
//! late, the most that Linux allows its timer and what an idle machine does.

use crate::reassembly::{OutOfOrderQueue, Queued, TrueSize};
use crate::timer::TimerWheel;
use crate::window::Window;
use crate::{AckSegment, CongestionKind, Millis, Segment, TcpParams};
use units::{Span, Time};

/// tcp_sack_compress_send_ack: with more SACK blocks than these no compressed SACK may wait, or a
/// new block could push one out.
const COMPRESSED_BLOCKS: usize = 2;
/// The SYN-ACK's timeout doubles this often, up to 64 s.
const SYNACK_BACKOFFS: u32 = 6;

/// The receiving end of one connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// RCV.NXT: all segments before it have arrived.
    rcv_nxt: u32,
    /// Last.ACK.sent of RFC 7323 §4.3 (rcv_wup).
    rcv_wup: u32,
    /// Unacknowledged segments that cause an ACK.
    ack_every: u32,
    /// ACKs still to be sent at once (icsk_ack.quick).
    quick: u32,
    /// What `quick` becomes after a duplicate or a pause (TCP_MAX_QUICKACKS).
    max_quickacks: u32,
    ato: Ato,
    /// There is a handshake, and when its SYN-ACK left; NEVER before and after.
    handshake: bool,
    synack_sent: Time,
    /// Stamp of the SYN.
    syn_stamp: Time,
    /// Timeouts of the SYN-ACK, up to `SYNACK_BACKOFFS`.
    synack_timeouts: u32,
    /// The least one-way delay of a segment.
    one_way_min: Span,
    /// SACKs since RCV.NXT last moved, and that RCV.NXT (compressed_ack_rcv_nxt, dup_ack_counter).
    dup_acks: (u32, u32),
    comp_sack_delay: Span,
    delivered: u64,
    /// TS.Recent (RFC 7323 §4.3); NEVER before the first stamp, and always without timestamps.
    ts_recent: Time,
    /// When the pending ACK is due; NEVER: none is pending.
    deadline: Time,
    /// `deadline` is exact, not rounded to a tick: a compressed SACK (compressed_ack_timer), or an
    /// ACK that follows another at once.
    deadline_is_exact: bool,
    /// When the delayed-ACK timer last armed expires. Linux leaves it running when the ACK is sent
    /// early (icsk_delack_timer); when it expires, it sends a compressed SACK too.
    delack_timer: Time,
    /// The pending ACK is a window update: the application has read (tcp_cleanup_rbuf).
    window_update: bool,
    wheel: TimerWheel,
    /// The time for which the pending ACK was delayed.
    delack_delay: Span,
    mss: u32,
    timestamps: bool,
    ecn: bool,
    dsack: bool,
    /// The duplicate segment that the next ACK reports.
    duplicate: Option<u32>,
    /// ACKs carry the one-way delay (RFC 6817 §2.3).
    reports_one_way: bool,
    one_way: Option<Span>,
    /// A CE mark has come and no CWR since (TCP_ECN_DEMAND_CWR).
    ece: bool,
    window: Window,
    truesize: TrueSize,
    ofo: OutOfOrderQueue,
}

impl Receiver {
    /// A receiver before the first segment.
    pub fn new(params: &TcpParams) -> Receiver {
        Receiver {
            rcv_nxt: 0,
            rcv_wup: 0,
            ack_every: params.acks.delayed_ack_segments.max(1),
            quick: 0,
            max_quickacks: params.acks.quick_acks,
            ato: Ato::new(params),
            handshake: params.handshake,
            synack_sent: Time::NEVER,
            syn_stamp: Time::NEVER,
            synack_timeouts: 0,
            one_way_min: Span(u64::MAX),
            dup_acks: (0, 0),
            comp_sack_delay: Span(params.acks.sack_delay_ns),
            delivered: 0,
            ts_recent: Time::NEVER,
            deadline: Time::NEVER,
            deadline_is_exact: false,
            delack_timer: Time::ZERO,
            window_update: false,
            wheel: TimerWheel::new(params.timers.timer_tick_ns),
            delack_delay: Span(params.acks.delayed_ack_ns),
            mss: params.mss,
            timestamps: params.timestamps,
            ecn: params.ecn,
            dsack: params.recovery.dsack && params.recovery.sack,
            duplicate: None,
            reports_one_way: params.congestion == CongestionKind::Ledbat,
            one_way: None,
            ece: false,
            window: Window::new(params),
            truesize: TrueSize::new(params.mss),
            ofo: OutOfOrderQueue::new(params),
        }
    }

    /// A segment arrives; `ce`: a queue marked it. Returns the acknowledgement to send now, if one
    /// is due.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment, ce: bool, now: Time) -> Option<AckSegment> {
        if self.synack_sent != Time::NEVER || segment.len == 0 {
            if segment.syn {
                return Some(self.on_syn(segment, now));
            }
            self.establish(now);
            if segment.len == 0 {
                return None;
            }
        }
        // RFC 7323 §4.3 rule 2: only a segment that reaches down to Last.ACK.sent sets the stamp,
        // so a delayed ACK echoes the earliest segment it covers and a segment beyond a gap is
        // never echoed.
        if self.timestamps
            && segment.seq <= self.rcv_wup
            && (segment.stamp >= self.ts_recent || self.ts_recent == Time::NEVER)
        {
            self.ts_recent = segment.stamp;
        }
        let at_once = self.ecn && self.check_ecn(segment.cwr, ce);
        let one_way = now.since(segment.stamp);
        if self.reports_one_way {
            self.one_way = Some(one_way);
        }
        if one_way < self.one_way_min {
            if !self.handshake {
                self.ato.estimate_rtt(one_way, self.one_way_min);
            }
            self.one_way_min = one_way;
        }

        if self.rcv_nxt == 0 {
            self.window.measure_scaling_ratio();
        }
        self.window.rcv_rtt_measure_ts(segment, self.mss, one_way, now);
        if segment.seq == self.rcv_nxt {
            return self.on_in_order(segment, at_once, now);
        }
        if segment.seq > self.rcv_nxt {
            return self.on_out_of_order(segment, at_once, now);
        }
        self.duplicate = self.dsack.then_some(segment.seq);
        self.quick = self.quick.max(self.max_quickacks);
        self.ato.reset();
        Some(self.acknowledge(self.ofo.rmem(), now))
    }

    /// tcp_data_queue, of the segment expected. The kernel decides about the ACK before the
    /// application reads; then the application reads all that is in order.
    #[inline]
    fn on_in_order(&mut self, segment: &Segment, at_once: bool, now: Time) -> Option<AckSegment> {
        if self.ato.on_segment(now) {
            self.quick = self.quick.max(self.max_quickacks);
        }
        self.rcv_nxt += 1;
        self.delivered += u64::from(segment.len);
        let mut rmem = self.ofo.rmem() + self.truesize.in_order;
        self.grow_window(rmem);
        let (mut read, fills) = (self.delivered, !self.ofo.is_empty());
        if fills {
            let released = self.ofo.release(self.rcv_nxt);
            self.rcv_nxt += released.segments;
            self.delivered += released.bytes;
            read += released.coalesced;
            rmem -= if released.coalesced > 0 { self.truesize.out_of_order } else { 0 };
        }
        let due = self.rcv_nxt - self.rcv_wup >= self.ack_every;
        if due && self.window.is_half_full(rmem) {
            self.quick = 0;
        }
        let open = due && self.window.keeps_rcv_wnd(rmem);
        let ack = if at_once || fills || open || self.quick > 0 {
            if fills && !open && self.quick == 0 && !self.ofo.is_empty() {
                // This ACK counts as the first of the three SACKs that are not compressed
                // (__tcp_ack_snd_check).
                self.dup_acks = (self.rcv_nxt, 1);
            }
            Some(self.acknowledge(rmem, now))
        } else if due || segment.push {
            Some(self.acknowledge(self.ofo.rmem(), now))
        } else {
            None
        };
        self.window.rcv_space_adjust(self.rcv_nxt, read, self.delivered - read, self.mss, now);
        if ack.is_none() {
            if self.deadline == Time::NEVER {
                self.delack_delay = self.ato.delay();
                self.deadline = now + self.delack_delay;
                self.delack_timer = self.wheel.expiry(self.deadline, self.delack_delay);
            }
        } else if fills && self.window.update_is_worthwhile(self.ofo.rmem(), self.delivered) {
            self.ack_again_at_once(now);
            self.window_update = true;
        }
        ack
    }

    /// tcp_data_queue_ofo: a segment beyond a gap.
    fn on_out_of_order(
        &mut self,
        segment: &Segment,
        at_once: bool,
        now: Time,
    ) -> Option<AckSegment> {
        let rmem = self.ofo.rmem();
        let queued = self.ofo.queue(segment.seq, segment.len);
        if queued == Queued::Coalesced {
            self.grow_window(rmem);
        }
        self.duplicate =
            (self.dsack && queued == Queued::Duplicate).then_some(segment.seq).or(self.duplicate);
        let place = self.ofo.extend_block(segment.seq);
        // tcp_sack_compress_send_ack: a compressed SACK is sent before a new block can push out one
        // of its blocks.
        let waits = self.deadline != Time::NEVER && self.deadline_is_exact && !self.window_update;
        let before =
            (waits && place.index >= COMPRESSED_BLOCKS).then(|| self.acknowledge(rmem, now));
        self.ofo.move_block_to_front(place, segment.seq);
        if queued == Queued::NewBuffer {
            self.grow_window(rmem);
        }
        if !at_once && self.quick == 0 && self.compress_sack(now) {
            return before;
        }
        if before.is_some() {
            self.ack_again_at_once(now);
            return before;
        }
        Some(self.acknowledge(self.ofo.rmem(), now))
    }

    /// Another ACK is to follow at once.
    #[cold]
    fn ack_again_at_once(&mut self, now: Time) {
        self.deadline = now;
        self.deadline_is_exact = true;
    }

    /// Answers a SYN. One that comes after data is a needless retransmission; its SYN-ACK changes
    /// nothing.
    #[cold]
    fn on_syn(&mut self, segment: &Segment, now: Time) -> AckSegment {
        // The stamp echoed is the first SYN's, and ECN is agreed on if the first SYN asked for it
        // (Linux's request sock).
        if self.syn_stamp == Time::NEVER {
            self.ecn &= segment.cwr;
        }
        if self.syn_stamp == Time::NEVER || self.rcv_nxt > 0 {
            self.syn_stamp = segment.stamp;
        }
        if self.timestamps {
            self.ts_recent = self.syn_stamp;
        }
        self.send_synack(now)
    }

    /// The SYN-ACK. It is retransmitted until something answers: after 1 s, 2 s, 4 s.
    #[cold]
    fn send_synack(&mut self, now: Time) -> AckSegment {
        // A SYN-ACK is no quick ACK.
        let quick = self.quick;
        let synack = AckSegment {
            syn: true,
            echo: self.syn_stamp,
            ece: self.ecn,
            ..self.acknowledge(0, now)
        };
        self.quick = quick;
        if self.rcv_nxt == 0 {
            self.synack_sent = now;
            self.delack_delay = Span::from_secs(1 << self.synack_timeouts);
            self.deadline = now + self.delack_delay;
        }
        synack
    }

    /// The first segment after the SYN-ACK has come: the connection is established.
    #[cold]
    fn establish(&mut self, now: Time) {
        if self.synack_sent != Time::NEVER {
            self.ato.set_rtt(now.since(self.synack_sent), now);
            self.window.init_buffer_space(now);
            self.synack_sent = Time::NEVER;
            self.deadline = Time::NEVER;
        }
    }

    /// When the pending ACK is due, if there is one.
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        (self.deadline != Time::NEVER).then_some(self.deadline)
    }

    /// The pending ACK, once it is due. Called early it does nothing.
    #[inline]
    pub fn on_deadline(&mut self, now: Time) -> Option<AckSegment> {
        if self.deadline_is_exact {
            if self.deadline > now {
                return None;
            }
            // A window update is no quick ACK.
            let quick = self.window_update.then_some(self.quick);
            let ack = self.acknowledge(self.ofo.rmem(), now);
            self.quick = quick.unwrap_or(self.quick);
            return Some(ack);
        }
        if !self.wheel.has_expired(&mut self.deadline, self.delack_delay, now) {
            return None;
        }
        if self.synack_sent != Time::NEVER {
            self.synack_timeouts = (self.synack_timeouts + 1).min(SYNACK_BACKOFFS);
            return Some(self.send_synack(now));
        }
        self.ato.on_timeout();
        Some(self.acknowledge(self.ofo.rmem(), now))
    }

    /// __tcp_ack_snd_check: whether a SACK is compressed. From a gap's fourth SACK on they wait for
    /// RTT/20 or `comp_sack_delay`, whichever is less, and leave as one.
    #[cold]
    fn compress_sack(&mut self, now: Time) -> bool {
        if self.comp_sack_delay == Span::ZERO {
            return false;
        }
        let (at, sent) = self.dup_acks;
        let sent = if at == self.rcv_nxt { sent } else { 0 };
        self.dup_acks = (self.rcv_nxt, sent + 1);
        if sent < 3 {
            return false;
        }
        if self.deadline == Time::NEVER {
            let rtt = if self.handshake { Span(self.ato.rtt) } else { self.one_way_min * 2 };
            self.deadline = now + (rtt / 20).min(self.comp_sack_delay) + self.comp_sack_delay / 10;
            if self.delack_timer > now {
                self.deadline = self.deadline.min(self.delack_timer);
            }
            self.deadline_is_exact = true;
        }
        true
    }

    /// Bytes delivered to the application, in order.
    #[inline]
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered
    }

    /// The receive window an acknowledgement sent now would carry, in bytes.
    #[inline]
    pub fn window_bytes(&self) -> u64 {
        self.window.window(self.delivered, self.ofo.rmem())
    }

    /// The window scale: windows are multiples of 2 to this power (RFC 7323 §2).
    pub fn window_scale(&self) -> u32 {
        self.window.scale()
    }

    /// RFC 3168 §6.1.3: ECE is set from a CE mark until a CWR. Returns whether the ACK leaves at
    /// once: for a CWR it does, because its sender may be down to one segment. The first CE gives
    /// two quick ACKs (tcp_enter_quickack_mode).
    #[inline]
    fn check_ecn(&mut self, cwr: bool, ce: bool) -> bool {
        // A CWR with a CE mark ends one demand and begins another.
        let was = self.ece && !cwr;
        self.ece = was || ce;
        if self.ece && !was {
            self.quick = self.quick.max(2);
            self.ato.reset();
        }
        cwr
    }

    /// tcp_grow_window, by a new segment. While the window opens each segment is acknowledged at
    /// once.
    #[inline]
    fn grow_window(&mut self, rmem: u64) {
        if self.window.grow_window(rmem, self.mss) && self.max_quickacks > 0 {
            self.quick |= 1;
        }
    }

    /// The acknowledgement to send now, with `rmem` bytes of the buffer taken.
    #[inline]
    fn acknowledge(&mut self, rmem: u64, now: Time) -> AckSegment {
        if self.window.is_half_full(rmem) {
            self.quick = 0;
        }
        if self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato.reset();
            }
        }
        self.rcv_wup = self.rcv_nxt;
        self.deadline = Time::NEVER;
        self.deadline_is_exact = false;
        self.window_update = false;
        let (sacks, sack_count) = self.ofo.sack_blocks(self.duplicate.take());
        AckSegment {
            ack: self.rcv_nxt,
            echo: self.ts_recent,
            window: self.window.select_window(self.delivered, rmem),
            sacks,
            sack_count,
            ece: self.ece,
            one_way: self.one_way,
            syn: false,
            stamp: if self.window.may_grow() { Millis::at(now) } else { Millis(0) },
        }
    }
}

/// The delay of an ACK, by the time between segments (icsk_ack.ato).
#[derive(Clone, Debug)]
struct Ato {
    tick: u64,
    /// The least delay, ticks (TCP_ATO_MIN).
    ato_min: u64,
    /// The longest delay, ns (TCP_DELACK_MAX).
    ato_max: u64,
    /// icsk_ack.ato, ticks. 0 before the first segment in order, unless segments beyond a gap took
    /// all quick ACKs before.
    ato: u64,
    /// When the last segment came (icsk_ack.lrcvtime); before the first, when the connection began.
    lrcvtime: Time,
    /// The lower bound of the RTO, ns.
    min_rto: u64,
    /// The handshake's RTT, ns.
    rtt: u64,
    /// The RTO by the handshake's RTT, ns. After a longer pause the sender may have restarted.
    rto: u64,
}

impl Ato {
    fn new(params: &TcpParams) -> Ato {
        let tick = params.timers.timer_tick_ns.max(1);
        let ato_min = params.acks.delayed_ack_ns.div_ceil(tick);
        let ato_max = params.acks.delayed_ack_max_ns;
        Ato {
            tick,
            ato_min,
            ato_max,
            ato: 0,
            lrcvtime: Time::ZERO,
            min_rto: params.timers.min_rto_ns,
            rtt: 0,
            rto: 0,
        }
    }

    /// Without a handshake: a segment had a smaller one-way delay than any before. The RTT is
    /// estimated as the least delay plus the first segment's, as a handshake's would be with the
    /// first one's queue.
    #[cold]
    fn estimate_rtt(&mut self, one_way: Span, least: Span) {
        let first = if least.0 == u64::MAX { one_way.0 } else { self.rtt - least.0 };
        self.set_rtt(Span(first + one_way.0), self.lrcvtime);
    }

    /// The handshake's RTT.
    fn set_rtt(&mut self, rtt: Span, now: Time) {
        self.lrcvtime = now;
        self.rtt = rtt.0;
        self.rto = self.rtt + self.min_rto.max(2 * self.rtt);
    }

    /// tcp_event_data_recv: a segment in order has come. True if it is the first one, or follows a
    /// pause.
    #[inline]
    fn on_segment(&mut self, now: Time) -> bool {
        let gap = now.since(self.lrcvtime).0;
        let last = std::mem::replace(&mut self.lrcvtime, now);
        if self.ato == 0 {
            self.ato = self.ato_min;
            return true;
        }
        let half = self.ato_min / 2;
        if gap < half * self.tick {
            if self.ato > self.ato_min {
                self.ato = self.ato / 2 + half;
            }
            return false;
        }
        let ticks = now.0 / self.tick - last.0 / self.tick;
        if ticks <= half {
            self.ato = self.ato / 2 + half;
        } else if ticks < self.ato {
            self.ato = (self.ato / 2 + ticks).min(self.rto / self.tick);
        } else {
            return ticks * self.tick > self.rto;
        }
        false
    }

    /// tcp_delack_timer_handler: no segment came before the delayed ACK left, so the ato doubles.
    fn on_timeout(&mut self) {
        self.ato = (2 * self.ato).min((self.rto / self.tick).max(self.ato_min));
    }

    /// A duplicate, a CE mark, or the end of quick ACKs: the least ato (tcp_enter_quickack_mode,
    /// tcp_dec_quickack_mode).
    fn reset(&mut self) {
        self.ato = self.ato_min;
    }

    /// tcp_send_delayed_ack: the delay, bounded by the RTT and `ato_max`.
    #[inline]
    fn delay(&self) -> Span {
        if self.ato <= self.ato_min {
            return Span(self.ato_min * self.tick);
        }
        let bound = (self.rtt.div_ceil(self.tick)).max(self.ato_min);
        Span((self.ato.min(bound) * self.tick).min(self.ato_max.max(self.ato_min * self.tick)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;
    const MSS: u32 = 1000;

    fn params() -> TcpParams {
        crate::cc::test::params().with(|p| {
            p.congestion = CongestionKind::Reno;
            p.ecn = true;
            p.buffers.receive_buffer = 100_000;
            p.buffers.receive_buffer_max = 100_000;
            p.buffers.receive_window_fraction = 0.5;
        })
    }

    fn receiver() -> Receiver {
        Receiver::new(&params())
    }

    /// Sent at `ms`, which is also its stamp.
    fn segment(seq: u32, ms: u64) -> Segment {
        Segment {
            seq,
            len: MSS,
            stamp: Time(ms * MS),
            retransmit: false,
            cwr: false,
            ect: true,
            syn: false,
            push: false,
            echo: None,
        }
    }

    /// A segment that arrives 10 ms after it was sent at `ms`. That comes at `at`, was under way
    /// for so long, and answers an ACK that was so long under way.
    fn answering(seq: u32, at: Time, way_ms: u64, ack_way_ms: u64) -> Segment {
        let stamp = Time(at.0.saturating_sub(way_ms * MS));
        let echo = stamp.0.checked_sub(ack_way_ms * MS).map(|sent| Millis::at(Time(sent)));
        Segment { stamp, echo, ..segment(seq, 0) }
    }

    fn arrive(r: &mut Receiver, seq: u32, ms: u64) -> Option<AckSegment> {
        r.on_segment(&segment(seq, ms), false, Time((ms + 10) * MS))
    }

    fn sacks(ack: &AckSegment) -> &[(u32, u32)] {
        &ack.sacks[..usize::from(ack.sack_count)]
    }

    #[test]
    fn every_second_segment_is_acknowledged() {
        let mut r = receiver();
        assert_eq!(arrive(&mut r, 0, 0), None);
        assert_eq!(arrive(&mut r, 1, 1).map(|a| a.ack), Some(2));
        assert_eq!(arrive(&mut r, 2, 2), None);
        assert_eq!(arrive(&mut r, 3, 3).map(|a| a.ack), Some(4));
        assert_eq!(r.delivered_bytes(), 4000);
    }

    #[test]
    fn a_lone_segment_is_acknowledged_when_the_timer_says_so() {
        let mut r = receiver();
        assert_eq!(r.deadline(), None);
        arrive(&mut r, 0, 0);
        assert_eq!(r.deadline(), Some(Time(50 * MS)));
        assert_eq!(r.on_deadline(Time(50 * MS - 1)), None);
        assert_eq!(r.on_deadline(Time(50 * MS)).map(|a| a.ack), Some(1));
        assert_eq!(r.deadline(), None);
        assert_eq!(r.on_deadline(Time(60 * MS)), None);
    }

    #[test]
    fn an_ack_disarms_the_timer() {
        let mut r = receiver();
        arrive(&mut r, 0, 0);
        arrive(&mut r, 1, 1);
        assert_eq!(r.deadline(), None);
    }

    #[test]
    fn the_first_segments_are_acknowledged_one_by_one() {
        let mut r = Receiver::new(&params().with(|p| p.acks.quick_acks = 3));
        let acks: Vec<bool> = (0..7).map(|seq| arrive(&mut r, seq, 0).is_some()).collect();
        assert_eq!(acks, [true, true, true, false, true, false, true]);
    }

    #[test]
    fn a_gap_its_filling_and_a_duplicate_are_acknowledged_at_once() {
        let mut r = receiver();
        arrive(&mut r, 0, 0);
        // 1 and 3 are missing.
        assert_eq!(arrive(&mut r, 2, 2).map(|a| a.ack), Some(1));
        assert_eq!(arrive(&mut r, 4, 4).map(|a| a.ack), Some(1));
        // Part of the gap, all of it, and an old segment.
        assert_eq!(arrive(&mut r, 1, 5).map(|a| a.ack), Some(3));
        assert_eq!(arrive(&mut r, 3, 6).map(|a| a.ack), Some(5));
        assert_eq!(arrive(&mut r, 2, 7).map(|a| a.ack), Some(5));
        // Back to delayed ACKs.
        assert_eq!(arrive(&mut r, 5, 8), None);
        assert_eq!(r.delivered_bytes(), 6000);
    }

    #[test]
    fn the_block_of_the_latest_segment_is_reported_first() {
        // RFC 2018 §4: then the blocks most recently reported. 0, 2, 4, 6 and 8 stay away.
        let mut r = receiver();
        let mut last = |seq| arrive(&mut r, seq, 0).map(|a| sacks(&a).to_vec());
        assert_eq!(last(1), Some(vec![(1, 2)]));
        assert_eq!(last(3), Some(vec![(3, 4), (1, 2)]));
        assert_eq!(last(5), Some(vec![(5, 6), (3, 4), (1, 2)]));
        assert_eq!(last(7), Some(vec![(7, 8), (5, 6), (3, 4)]));
        // A block that grows comes to the front; one that joins two stands for both.
        assert_eq!(last(8), Some(vec![(7, 9), (5, 6), (3, 4)]));
        assert_eq!(last(4), Some(vec![(3, 6), (7, 9), (1, 2)]));
        // So does a duplicate's, after the duplicate itself (RFC 2883 §4): three in all.
        assert_eq!(last(1), Some(vec![(1, 2), (1, 2), (3, 6)]));
        // What is acknowledged is not reported.
        assert_eq!(last(0), Some(vec![(3, 6), (7, 9)]));
        assert_eq!(last(2), Some(vec![(7, 9)]));
        assert_eq!(last(6), Some(vec![]));
    }

    #[test]
    fn a_duplicate_is_reported_once_and_first() {
        // RFC 2883 §4: below the ACK, or within the second block.
        let mut r = receiver();
        let mut last = |seq| arrive(&mut r, seq, 0).map(|a| (a.ack, sacks(&a).to_vec()));
        last(0);
        assert_eq!(last(1), Some((2, vec![])));
        assert_eq!(last(0), Some((2, vec![(0, 1)])));
        assert_eq!(last(4), Some((2, vec![(4, 5)])));
        assert_eq!(last(5), Some((2, vec![(4, 6)])));
        assert_eq!(last(4), Some((2, vec![(4, 5), (4, 6)])));
        assert_eq!(last(1), Some((2, vec![(1, 2), (4, 6)])));
        assert_eq!(last(2), Some((3, vec![(4, 6)])));
    }

    #[test]
    fn four_blocks_fit_without_timestamps_and_none_without_sack() {
        let report = |timestamps, sack| {
            let mut r = Receiver::new(&params().with(|p| {
                p.timestamps = timestamps;
                p.recovery.sack = sack;
            }));
            (1..6).filter_map(|i| arrive(&mut r, 2 * i, 0)).last().map(|a| sacks(&a).to_vec())
        };
        assert_eq!(report(false, true), Some(vec![(10, 11), (8, 9), (6, 7), (4, 5)]));
        assert_eq!(report(true, true), Some(vec![(10, 11), (8, 9), (6, 7)]));
        assert_eq!(report(true, false), Some(vec![]));
    }

    #[test]
    fn a_delayed_ack_echoes_the_earliest_segment_it_covers() {
        // RFC 7323 §4.3, case (A).
        let mut r = receiver();
        arrive(&mut r, 0, 1);
        assert_eq!(arrive(&mut r, 1, 2).map(|a| a.echo), Some(Time(MS)));
        arrive(&mut r, 2, 3);
        assert_eq!(arrive(&mut r, 3, 4).map(|a| a.echo), Some(Time(3 * MS)));
    }

    #[test]
    fn a_segment_beyond_a_gap_is_not_echoed_and_the_one_that_fills_it_is() {
        // RFC 7323 §4.3, cases (B) and (C): the table there, with every segment acknowledged.
        let mut r = Receiver::new(&params().with(|p| p.acks.delayed_ack_segments = 1));
        let echoes: Vec<u64> = [(0, 1), (2, 3), (1, 2), (4, 5), (3, 4)]
            .iter()
            .filter_map(|&(seq, ms)| arrive(&mut r, seq, ms).map(|a| a.echo.0 / MS))
            .collect();
        assert_eq!(echoes, [1, 1, 2, 2, 4]);
    }

    #[test]
    fn an_older_stamp_does_not_replace_a_newer_one() {
        let mut r = Receiver::new(&params().with(|p| p.acks.delayed_ack_segments = 1));
        arrive(&mut r, 0, 5);
        assert_eq!(arrive(&mut r, 0, 1).map(|a| a.echo), Some(Time(5 * MS)));
    }

    #[test]
    fn without_timestamps_nothing_is_echoed() {
        let mut r = Receiver::new(&params().with(|p| {
            p.timestamps = false;
            p.acks.delayed_ack_segments = 1;
        }));
        assert_eq!(arrive(&mut r, 0, 1).map(|a| a.echo), Some(Time::NEVER));
    }

    #[test]
    fn ece_stands_from_the_first_mark_until_cwr() {
        let mut r = Receiver::new(&params().with(|p| p.acks.delayed_ack_segments = 1));
        let mut ece = |seq, ce, cwr| {
            r.on_segment(&Segment { cwr, ..segment(seq, 0) }, ce, Time::ZERO).map(|a| a.ece)
        };
        assert_eq!(ece(0, false, false), Some(false));
        assert_eq!(ece(1, true, false), Some(true));
        assert_eq!(ece(2, false, false), Some(true));
        assert_eq!(ece(3, false, true), Some(false));
        assert_eq!(ece(4, false, false), Some(false));
        // A mark on the very segment that carries CWR is news again.
        assert_eq!(ece(5, true, false), Some(true));
        assert_eq!(ece(6, true, true), Some(true));
    }

    #[test]
    fn news_of_congestion_does_not_wait_for_the_delayed_ack() {
        let mut r = receiver();
        assert_eq!(r.on_segment(&segment(0, 0), true, Time::ZERO).map(|a| a.ece), Some(true));
        let cwr = Segment { cwr: true, ..segment(1, 0) };
        assert_eq!(r.on_segment(&cwr, false, Time::ZERO).map(|a| a.ece), Some(false));
    }

    #[test]
    fn a_marked_cwr_is_answered_as_quickly_as_the_first_mark() {
        let mut r = receiver();
        let mut answered = |seq, ce, cwr| {
            let now = Time(u64::from(seq) * MS);
            r.on_segment(&Segment { cwr, ..segment(seq, 0) }, ce, now).is_some()
        };
        assert!(answered(0, true, false));
        // Once quick ACKs are used up, every second segment is answered.
        let calm = (1..40).find(|&seq| !answered(seq, false, false)).unwrap();
        assert!(answered(calm + 1, false, false));
        assert!(answered(calm + 2, true, true));
        assert!(answered(calm + 3, false, false), "the new demand has two quick ACKs");
    }

    #[test]
    fn a_connection_without_ecn_ignores_marks() {
        let mut r = Receiver::new(&params().with(|p| {
            p.ecn = false;
            p.acks.delayed_ack_segments = 1;
        }));
        assert_eq!(r.on_segment(&segment(0, 0), true, Time::ZERO).map(|a| a.ece), Some(false));
    }

    #[test]
    fn the_window_is_the_advertisable_part_of_the_buffer() {
        let mut r = receiver();
        assert_eq!(r.window_bytes(), 50_000);
        arrive(&mut r, 0, 0);
        assert_eq!(arrive(&mut r, 1, 0).map(|a| a.window), Some(50_000));
    }

    #[test]
    fn segments_held_narrow_the_window_but_its_right_edge_stays() {
        let mut r = receiver();
        // Ten segments beyond the gap: the right edge was offered and stays.
        for seq in 1..=10 {
            assert_eq!(arrive(&mut r, seq, 0).map(|a| (a.ack, a.window)), Some((0, 50_000)));
        }
        // Ten more beyond a second gap; then the first is filled up to 11.
        for seq in 12..=21 {
            arrive(&mut r, seq, 0);
        }
        // Edge 50 000 against 11 000 + (100 000 - 20 · 2304 held - 1832) / 2: what is in order now
        // has not been read yet.
        assert_eq!(arrive(&mut r, 0, 0).map(|a| (a.ack, a.window)), Some((11, 39_000)));
        // All in order, ten of them not read: (100 000 - 10 · 2304 - 1832) / 2. Then all of the
        // buffer again, but for the one that has just come.
        assert_eq!(arrive(&mut r, 11, 0).map(|a| (a.ack, a.window)), Some((22, 37_564)));
        arrive(&mut r, 22, 0);
        assert_eq!(arrive(&mut r, 23, 0).map(|a| (a.ack, a.window)), Some((24, 50_000 - 1832 / 2)));
    }

    #[test]
    fn an_unlimited_buffer_stays_unlimited() {
        for fraction in [1.0, 0.5] {
            let mut r = Receiver::new(&params().with(|p| {
                p.buffers.receive_buffer = u64::MAX;
                p.buffers.receive_buffer_max = u64::MAX;
                p.buffers.receive_window_fraction = fraction;
            }));
            for seq in (0..100).filter(|seq| seq % 7 != 3) {
                if let Some(ack) = arrive(&mut r, seq, u64::from(seq)) {
                    assert!(ack.window >= u64::MAX / 4);
                }
            }
        }
    }

    #[test]
    fn a_short_segment_counts_what_it_carries_in_order_or_not() {
        let mut r = receiver();
        let short = Segment { len: 10, ..segment(3, 0) };
        arrive(&mut r, 0, 0);
        assert!(r.on_segment(&short, false, Time::ZERO).is_some());
        arrive(&mut r, 2, 0);
        assert_eq!(r.delivered_bytes(), 1000);
        assert_eq!(arrive(&mut r, 1, 0).map(|a| a.ack), Some(4));
        assert_eq!(r.delivered_bytes(), 3010);
        r.on_segment(&Segment { len: 7, ..segment(4, 0) }, false, Time::ZERO);
        assert_eq!(r.delivered_bytes(), 3017);
    }

    /// A sender that doubles its window each RTT of 100 ms, never above what it is offered or
    /// `path` segments. Gives the window offered and the segments sent, round by round.
    fn slow_start(r: &mut Receiver, path: u64, rounds: u64) -> Vec<(u64, u64)> {
        let (mut seq, mut cwnd) = (0, 10);
        (0..rounds)
            .map(|round| {
                let sent = cwnd.min(r.window_bytes() / u64::from(MSS)).min(path);
                for i in 0..sent {
                    // A path of `path` segments a round trip, one segment after the other.
                    let at = Time((round * 100 + 10) * MS + i * 100 * MS / path);
                    r.on_segment(&answering(seq, at, 10, 90), false, at);
                    seq += 1;
                }
                cwnd = 2 * sent;
                (r.window_bytes(), sent)
            })
            .collect()
    }

    #[test]
    fn autotuning_never_holds_a_slow_start_back() {
        let mut r = Receiver::new(&params().with(|p| p.buffers.receive_buffer_max = 100_000_000));
        for (round, (window, sent)) in slow_start(&mut r, 20_000, 8).into_iter().enumerate() {
            if round >= 3 {
                assert!(
                    window >= 2 * sent * u64::from(MSS),
                    "round {round}: {window} for {sent} segments"
                );
            }
        }
        assert!(r.window_bytes() > 1_000_000);
    }

    #[test]
    fn autotuning_stops_at_the_buffers_bound() {
        let mut r = Receiver::new(&params().with(|p| p.buffers.receive_buffer_max = 300_000));
        slow_start(&mut r, 20_000, 20);
        // The segment that has just come lies in the buffer as the window opens.
        assert_eq!(r.window_bytes(), (300_000 - TrueSize::new(MSS).in_order) / 2);
    }

    #[test]
    fn the_window_follows_a_steady_flow_and_does_not_run_away() {
        // 200 segments a round trip: room for some times that, not for the whole 50 MB.
        let mut r = Receiver::new(&params().with(|p| p.buffers.receive_buffer_max = 100_000_000));
        slow_start(&mut r, 200, 100);
        assert!(r.window_bytes() >= 2 * 200_000);
        assert!(r.window_bytes() <= 20 * 200_000);
    }

    #[test]
    fn a_standing_queue_counts_as_round_trip_time() {
        // 10 segments a millisecond with 1 s of queue ahead: 10 000 segments an RTT must fit.
        let offered = |queue_ms: u64| {
            let mut r =
                Receiver::new(&params().with(|p| p.buffers.receive_buffer_max = 1_000_000_000));
            for seq in 0..100_000u32 {
                let at = Time(10 * MS + u64::from(seq) * MS / 10);
                // The queue builds up over the first second.
                let queue = queue_ms * MS * u64::from(seq.min(10_000)) / 10_000;
                r.on_segment(&answering(seq, at, 10 + queue / MS, 10), false, at);
            }
            r.window_bytes()
        };
        assert!(offered(1000) >= 10_000_000);
        assert!(offered(0) < 2_000_000);
    }

    proptest! {
        #[test]
        fn any_order_with_duplicates_gives_every_byte_once_and_honest_sacks(
            // Of eight segments four at most lie apart from each other behind a gap: no block is
            // forgotten.
            order in prop_oneof![Just(8u32), Just(60)].prop_flat_map(|n| Just((0..n).collect::<Vec<_>>()).prop_shuffle()),
            again in proptest::collection::vec(0..60usize, 0..60),
        ) {
            let mut r = receiver();
            let mut arrived = std::collections::BTreeSet::new();
            let mut edge = 0;
            let sequence = order.iter().zip(again.iter().map(Some).chain(std::iter::repeat(None)));
            let mut seqs = Vec::new();
            for (&seq, repeat) in sequence {
                seqs.push(seq);
                seqs.extend(repeat.map(|&i| seqs[i % seqs.len()]));
            }
            for (i, &seq) in seqs.iter().enumerate() {
                let ack = arrive(&mut r, seq, i as u64);
                let duplicate = !arrived.insert(seq);
                let next = (0..).find(|n| !arrived.contains(n)).unwrap_or(0);
                prop_assert_eq!(r.delivered_bytes(), u64::from(next * MSS));
                let held = arrived.iter().filter(|&&s| s > next).count() as u64;
                prop_assert_eq!(r.ofo.held_bytes(), held * u64::from(MSS));
                if let Some(ack) = ack {
                    prop_assert_eq!(ack.ack, next);
                    prop_assert!(r.delivered_bytes() + ack.window >= edge);
                    edge = r.delivered_bytes() + ack.window;
                    let (first, others) = sacks(&ack).split_at(usize::from(duplicate));
                    prop_assert!(!duplicate || first == [(seq, seq + 1)]);
                    for &(from, to) in others {
                        prop_assert!(from > next && from < to);
                        prop_assert!((from..to).all(|s| arrived.contains(&s)));
                        let whole = !arrived.contains(&(from - 1)) && !arrived.contains(&to);
                        prop_assert!(whole || order.len() > 8);
                    }
                    if seq > next {
                        prop_assert!((others[0].0..others[0].1).contains(&seq));
                    }
                } else {
                    prop_assert!(held == 0);
                }
            }
            prop_assert_eq!(r.delivered_bytes(), order.len() as u64 * u64::from(MSS));
            prop_assert!(r.ofo.is_empty() && r.ofo.sack_blocks(None).1 == 0);
        }
    }
}
