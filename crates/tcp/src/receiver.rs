//! The receiver: when to acknowledge, what to say in an acknowledgement, and how wide to open the
//! window.
//!
//! The in-order case is the common one and does little: advance `next`, count, and every n-th time
//! write an ACK. Anything unusual (a gap, a gap being filled, a duplicate, news of congestion) is
//! acknowledged at once, because the sender's recovery runs on those ACKs; but beyond the third
//! SACK of a gap they wait for each other a little. At once go, too, the first segments after a
//! duplicate or a pause, and one that is pushed. The application reads at once, but after the
//! kernel has acknowledged. While the window opens (`window`) each segment is acknowledged at once.
//! What lies beyond gaps is in `reassembly`.
//!
//! Sources: RFC 5681 §4.2 (delayed ACKs), RFC 2018 (SACK), RFC 2883 (duplicate SACK), RFC 7323 §4.3
//! (which timestamp to echo), RFC 3168 §6.1.3 (ECE). Deviations: data beyond the offered window is
//! taken rather than refused. The RTT that a SACK's waiting, a pause and a delayed ACK are measured
//! by is the handshake's; without one it is for a SACK twice the least one-way delay, and else that
//! and the first segment's way. Linux's timers go off up to a tenth of sack_delay late, and on an
//! idle machine they do; ours always.

use crate::reassembly::{Gaps, Held, Room};
use crate::timer::Clock;
use crate::window::Window;
use crate::{AckSegment, CongestionKind, Millis, Segment, TcpParams};
use units::{Span, Time};

/// With more SACK blocks than these none waits that could be pushed out by another.
const BLOCKS_EXPECTED: usize = 2;
/// Its time doubles up to 64 s.
const ANSWERS_LOST: u32 = 6;

/// The receiving end of one connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// RCV.NXT: all before it have arrived.
    next: u32,
    /// Last.ACK.sent of RFC 7323.
    acked: u32,
    /// Acknowledge when this many segments are unacknowledged.
    ack_every: u32,
    /// Segments still to be acknowledged one by one.
    quick: u32,
    /// So many they are again after a duplicate or a pause.
    quick_acks: u32,
    pace: Pace,
    /// There is a handshake, and when its answer left; NEVER before and after.
    handshake: bool,
    greeted: Time,
    /// Stamp of the SYN that it answers.
    asked: Time,
    /// How often it went again, up to 6.
    answers_lost: u32,
    /// The least time a segment was under way.
    one_way_min: Span,
    /// SACKs sent since `next` last moved, and where that was.
    sacks: (u32, u32),
    sack_delay: Span,
    delivered: u64,
    /// TS.Recent of RFC 7323; NEVER before the first stamp, and always without timestamps.
    echo: Time,
    /// When the delayed ACK is due; NEVER while none is.
    deadline: Time,
    /// What waits goes by a clock without ticks: a SACK, or what has to be said besides.
    exact: bool,
    /// When the delayed ACK's timer goes off that was set last, needed or not: Linux leaves it
    /// running, and it takes a SACK that waits along.
    timer: Time,
    /// It only says that the application has made room.
    update: bool,
    clock: Clock,
    /// How long the ACK that waits was to wait.
    delay: Span,
    mss: u32,
    timestamps: bool,
    ecn: bool,
    dsack: bool,
    /// The segment that has just come a second time.
    duplicate: Option<u32>,
    /// Tells the sender how long segments are under way (RFC 6817 §2.3).
    tells_one_way: bool,
    one_way: Option<Span>,
    /// A CE mark has come and no CWR since.
    ece: bool,
    window: Window,
    room: Room,
    gaps: Gaps,
}

impl Receiver {
    /// A receiver that expects segment 0.
    pub fn new(params: &TcpParams) -> Receiver {
        Receiver {
            next: 0,
            acked: 0,
            ack_every: params.acks.delayed_ack_segments.max(1),
            quick: 0,
            quick_acks: params.acks.quick_acks,
            pace: Pace::new(params),
            handshake: params.handshake,
            greeted: Time::NEVER,
            asked: Time::NEVER,
            answers_lost: 0,
            one_way_min: Span(u64::MAX),
            sacks: (0, 0),
            sack_delay: Span(params.acks.sack_delay_ns),
            delivered: 0,
            echo: Time::NEVER,
            deadline: Time::NEVER,
            exact: false,
            timer: Time::ZERO,
            update: false,
            clock: Clock::new(params.timers.timer_tick_ns),
            delay: Span(params.acks.delayed_ack_ns),
            mss: params.mss,
            timestamps: params.timestamps,
            ecn: params.ecn,
            dsack: params.recovery.dsack && params.recovery.sack,
            duplicate: None,
            tells_one_way: params.congestion == CongestionKind::Ledbat,
            one_way: None,
            ece: false,
            window: Window::new(params),
            room: Room::new(params.mss),
            gaps: Gaps::new(params),
        }
    }

    /// Takes a segment in; `ce` says that a queue marked it. Gives the acknowledgement to send now,
    /// if one is due.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment, ce: bool, now: Time) -> Option<AckSegment> {
        if self.greeted != Time::NEVER || segment.len == 0 {
            if segment.syn {
                return Some(self.greet(segment, now));
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
            && segment.seq <= self.acked
            && (segment.stamp >= self.echo || self.echo == Time::NEVER)
        {
            self.echo = segment.stamp;
        }
        let at_once = self.ecn && self.note_ecn(segment.cwr, ce);
        let one_way = now.since(segment.stamp);
        if self.tells_one_way {
            self.one_way = Some(one_way);
        }
        if one_way < self.one_way_min {
            if !self.handshake {
                self.pace.expect(one_way, self.one_way_min);
            }
            self.one_way_min = one_way;
        }

        if self.next == 0 {
            self.window.measure();
        }
        self.window.hear(segment, self.mss, one_way, now);
        if segment.seq == self.next {
            return self.take_next(segment, at_once, now);
        }
        if segment.seq > self.next {
            return self.take_beyond(segment, at_once, now);
        }
        self.duplicate = self.dsack.then_some(segment.seq);
        self.quick = self.quick.max(self.quick_acks);
        self.pace.forget();
        Some(self.acknowledge(self.gaps.taken(), now))
    }

    /// The segment expected. The kernel decides by what its application has not read yet; then that
    /// reads all that is in order.
    #[inline]
    fn take_next(&mut self, segment: &Segment, at_once: bool, now: Time) -> Option<AckSegment> {
        if self.pace.arrived(now) {
            self.quick = self.quick.max(self.quick_acks);
        }
        self.next += 1;
        self.delivered += u64::from(segment.len);
        let mut unread = self.gaps.taken() + self.room.in_order;
        self.open_by(unread);
        let (mut read, fills) = (self.delivered, !self.gaps.is_empty());
        if fills {
            let released = self.gaps.advance(self.next);
            self.next += released.segments;
            self.delivered += released.bytes;
            read += released.beside;
            unread -= if released.beside > 0 { self.room.held } else { 0 };
        }
        let due = self.next - self.acked >= self.ack_every;
        if due && self.window.is_half_full(unread) {
            self.quick = 0;
        }
        let open = due && self.window.as_wide_as_told(unread);
        let ack = if at_once || fills || open || self.quick > 0 {
            if fills && !open && self.quick == 0 && !self.gaps.is_empty() {
                // It is one of the three.
                self.sacks = (self.next, 1);
            }
            Some(self.acknowledge(unread, now))
        } else if due || segment.push {
            Some(self.acknowledge(self.gaps.taken(), now))
        } else {
            None
        };
        self.window.adjust(self.next, read, self.delivered - read, self.mss, now);
        if ack.is_none() {
            if self.deadline == Time::NEVER {
                self.delay = self.pace.delay();
                self.deadline = now + self.delay;
                self.timer = self.clock.goes_off(self.deadline, self.delay);
            }
        } else if fills && self.window.doubles(self.gaps.taken(), self.delivered) {
            self.say_besides(now);
            self.update = true;
        }
        ack
    }

    /// A segment beyond a gap.
    fn take_beyond(&mut self, segment: &Segment, at_once: bool, now: Time) -> Option<AckSegment> {
        let room = self.gaps.taken();
        let held = self.gaps.hold(segment.seq, segment.len);
        if held == Held::Beside {
            self.open_by(room);
        }
        self.duplicate =
            (self.dsack && held == Held::Again).then_some(segment.seq).or(self.duplicate);
        let place = self.gaps.extend(segment.seq);
        // A SACK that waits goes before another block can push one out of it.
        let waits = self.deadline != Time::NEVER && self.exact && !self.update;
        let before = (waits && place.at >= BLOCKS_EXPECTED).then(|| self.acknowledge(room, now));
        self.gaps.bring_forward(place, segment.seq);
        if held == Held::Apart {
            self.open_by(room);
        }
        if !at_once && self.quick == 0 && self.may_wait(now) {
            return before;
        }
        if before.is_some() {
            self.say_besides(now);
            return before;
        }
        Some(self.acknowledge(self.gaps.taken(), now))
    }

    /// Another acknowledgement is to follow at once.
    #[cold]
    fn say_besides(&mut self, now: Time) {
        self.deadline = now;
        self.exact = true;
    }

    /// Answers a SYN. One that comes after data was sent again needlessly, and is answered in vain.
    #[cold]
    fn greet(&mut self, segment: &Segment, now: Time) -> AckSegment {
        // What is echoed is the first one's stamp, and what is agreed on is what that one asked for
        // (Linux).
        if self.asked == Time::NEVER {
            self.ecn &= segment.cwr;
        }
        if self.asked == Time::NEVER || self.next > 0 {
            self.asked = segment.stamp;
        }
        if self.timestamps {
            self.echo = self.asked;
        }
        self.answer(now)
    }

    /// The answer to a SYN, which goes again until something comes back: after 1 s, 2 s, 4 s.
    #[cold]
    fn answer(&mut self, now: Time) -> AckSegment {
        // It is none of the first segments, which are acknowledged at once.
        let quick = self.quick;
        let answer =
            AckSegment { syn: true, echo: self.asked, ece: self.ecn, ..self.acknowledge(0, now) };
        self.quick = quick;
        if self.next == 0 {
            self.greeted = now;
            self.delay = Span::from_secs(1 << self.answers_lost);
            self.deadline = now + self.delay;
        }
        answer
    }

    /// The first segment after the handshake's answer has come, or one that can only be late.
    #[cold]
    fn establish(&mut self, now: Time) {
        if self.greeted != Time::NEVER {
            self.pace.take(now.since(self.greeted), now);
            self.window.begin(now);
            self.greeted = Time::NEVER;
            self.deadline = Time::NEVER;
        }
    }

    /// When the delayed acknowledgement is due, if one is pending.
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        (self.deadline != Time::NEVER).then_some(self.deadline)
    }

    /// The delayed acknowledgement, once its time has come; called early it does nothing.
    #[inline]
    pub fn on_deadline(&mut self, now: Time) -> Option<AckSegment> {
        if self.exact {
            if self.deadline > now {
                return None;
            }
            // Only an answer to a segment is one of the quick ones.
            let quick = self.update.then_some(self.quick);
            let ack = self.acknowledge(self.gaps.taken(), now);
            self.quick = quick.unwrap_or(self.quick);
            return Some(ack);
        }
        if !self.clock.has_come(&mut self.deadline, self.delay, now) {
            return None;
        }
        if self.greeted != Time::NEVER {
            self.answers_lost = (self.answers_lost + 1).min(ANSWERS_LOST);
            return Some(self.answer(now));
        }
        self.pace.missed();
        Some(self.acknowledge(self.gaps.taken(), now))
    }

    /// Whether a SACK may wait for others: beyond the third of a gap, for a twentieth of the RTT or
    /// `sack_delay`.
    #[cold]
    fn may_wait(&mut self, now: Time) -> bool {
        if self.sack_delay == Span::ZERO {
            return false;
        }
        let (at, sent) = self.sacks;
        let sent = if at == self.next { sent } else { 0 };
        self.sacks = (self.next, sent + 1);
        if sent < 3 {
            return false;
        }
        if self.deadline == Time::NEVER {
            let rtt = if self.handshake { Span(self.pace.rtt) } else { self.one_way_min * 2 };
            self.deadline = now + (rtt / 20).min(self.sack_delay) + self.sack_delay / 10;
            if self.timer > now {
                self.deadline = self.deadline.min(self.timer);
            }
            self.exact = true;
        }
        true
    }

    /// Bytes handed to the application, in order.
    #[inline]
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered
    }

    /// The receive window an acknowledgement sent now would carry, in bytes.
    #[inline]
    pub fn window_bytes(&self) -> u64 {
        self.window.offered(self.delivered, self.gaps.taken())
    }

    /// What the windows offered are multiples of 2 to the power of (RFC 7323 §2).
    pub fn window_scale(&self) -> u32 {
        self.window.scale()
    }

    /// RFC 3168 §6.1.3: ECE is set from a CE mark until a CWR. True when the ACK should not wait:
    /// the sender of a CWR may be down to one segment, and the first CE is news (Linux: two quick
    /// ACKs).
    #[inline]
    fn note_ecn(&mut self, cwr: bool, ce: bool) -> bool {
        // A CWR that is marked itself ends one demand and begins another.
        let was = self.ece && !cwr;
        self.ece = was || ce;
        if self.ece && !was {
            self.quick = self.quick.max(2);
            self.pace.forget();
        }
        cwr
    }

    /// A new segment lets the window open. Linux hurries the sender on meanwhile.
    #[inline]
    fn open_by(&mut self, taken: u64) {
        if self.window.opens(taken, self.mss) && self.quick_acks > 0 {
            self.quick |= 1;
        }
    }

    /// With so much of the buffer taken.
    #[inline]
    fn acknowledge(&mut self, taken: u64, now: Time) -> AckSegment {
        if self.window.is_half_full(taken) {
            self.quick = 0;
        }
        if self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.pace.forget();
            }
        }
        self.acked = self.next;
        self.deadline = Time::NEVER;
        self.exact = false;
        self.update = false;
        let (sacks, sack_count) = self.gaps.report(self.duplicate.take());
        AckSegment {
            ack: self.next,
            echo: self.echo,
            window: self.window.offer(self.delivered, taken),
            sacks,
            sack_count,
            ece: self.ece,
            one_way: self.one_way,
            syn: false,
            stamp: if self.window.grows() { Millis::at(now) } else { Millis(0) },
        }
    }
}

/// How fast segments come, and so how long an ACK is delayed in the hope of another one (Linux's
/// ato). Its time is in ticks.
#[derive(Clone, Debug)]
struct Pace {
    tick: u64,
    /// Ticks; a delay is never less.
    least: u64,
    /// ns; nor more.
    most: u64,
    /// Ticks; 0 before the first segment in order, unless the first ones beyond a gap took all
    /// quick ACKs that there were.
    delay: u64,
    /// When the last one came; before it, when the connection began.
    last: Time,
    /// ns; the bound of the retransmission timeout.
    min_rto: u64,
    /// ns, the handshake's.
    rtt: u64,
    /// ns, by the handshake's RTT: after a pause that is longer the sender may have begun anew.
    rto: u64,
}

impl Pace {
    fn new(params: &TcpParams) -> Pace {
        let tick = params.timers.timer_tick_ns.max(1);
        let least = params.acks.delayed_ack_ns.div_ceil(tick);
        let most = params.acks.delayed_ack_max_ns;
        Pace {
            tick,
            least,
            most,
            delay: 0,
            last: Time::ZERO,
            min_rto: params.timers.min_rto_ns,
            rtt: 0,
            rto: 0,
        }
    }

    /// A segment was under way for less time than any before it. The handshake met the queue of the
    /// first one on one of its two ways.
    #[cold]
    fn expect(&mut self, one_way: Span, least: Span) {
        let first = if least.0 == u64::MAX { one_way.0 } else { self.rtt - least.0 };
        self.take(Span(first + one_way.0), self.last);
    }

    /// The handshake's RTT, known now.
    fn take(&mut self, rtt: Span, now: Time) {
        self.last = now;
        self.rtt = rtt.0;
        self.rto = self.rtt + self.min_rto.max(2 * self.rtt);
    }

    /// The next segment in order has come; whether it is the first one, or comes after a pause.
    #[inline]
    fn arrived(&mut self, now: Time) -> bool {
        let gap = now.since(self.last).0;
        let last = std::mem::replace(&mut self.last, now);
        if self.delay == 0 {
            self.delay = self.least;
            return true;
        }
        let half = self.least / 2;
        if gap < half * self.tick {
            if self.delay > self.least {
                self.delay = self.delay / 2 + half;
            }
            return false;
        }
        let ticks = now.0 / self.tick - last.0 / self.tick;
        if ticks <= half {
            self.delay = self.delay / 2 + half;
        } else if ticks < self.delay {
            self.delay = (self.delay / 2 + ticks).min(self.rto / self.tick);
        } else {
            return ticks * self.tick > self.rto;
        }
        false
    }

    /// No other one came in time.
    fn missed(&mut self) {
        self.delay = (2 * self.delay).min((self.rto / self.tick).max(self.least));
    }

    /// Something was amiss.
    fn forget(&mut self) {
        self.delay = self.least;
    }

    /// How long to wait for another one: not for longer than a round trip.
    #[inline]
    fn delay(&self) -> Span {
        if self.delay <= self.least {
            return Span(self.least * self.tick);
        }
        let bound = (self.rtt.div_ceil(self.tick)).max(self.least);
        Span((self.delay.min(bound) * self.tick).min(self.most.max(self.least * self.tick)))
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
        assert_eq!(r.window_bytes(), (300_000 - Room::new(MSS).in_order) / 2);
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
                prop_assert_eq!(r.gaps.held_bytes(), held * u64::from(MSS));
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
            prop_assert!(r.gaps.is_empty() && r.gaps.report(None).1 == 0);
        }
    }
}
