//! The receiver: when to acknowledge, what to say in an acknowledgement, and how wide to open the window.
//!
//! The in-order case is the common one and does little: advance `next`, count, and every n-th time write an ACK.
//! Anything unusual (a gap, a gap being filled, a duplicate, news of congestion) is acknowledged at once, because the
//! sender's recovery runs on those ACKs. The application reads at once, so only segments beyond a gap occupy the
//! buffer. The buffer grows by dynamic right-sizing: a sender that may double its window every RTT needs, an RTT
//! from now, twice what it delivered in the last one.
//!
//! Sources: RFC 5681 §4.2 (delayed ACKs), RFC 2018 (SACK), RFC 7323 §4.3 (which timestamp to echo), RFC 3168 §6.1.3
//! (ECE), RFC 9293 §3.8.6 (window); Fisk and Feng, "Dynamic Right-Sizing in TCP" (2001), with Linux's arithmetic.
//! Deviations: data beyond the offered window is taken rather than refused; no duplicate SACK (RFC 2883). Linux
//! takes the receiver's RTT from timestamps echoed on data; ours carries none, so the queueing part of the RTT comes
//! from the one-way delay of the stamps above their minimum, and the base from the time one window of data takes.

use crate::{AckSegment, MAX_SACK_BLOCKS, Segment, TcpParams};
use std::collections::VecDeque;
use units::{Span, Time};

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
    delivered: u64,
    /// TS.Recent of RFC 7323; NEVER before the first stamp, and always without timestamps.
    echo: Time,
    /// When the delayed ACK is due; NEVER while none is.
    deadline: Time,
    delay: Span,
    mss: u32,
    timestamps: bool,
    ecn: bool,
    /// A CE mark has come and no CWR since.
    ece: bool,
    window: Window,
    gaps: Gaps,
}

impl Receiver {
    /// A receiver that expects segment 0.
    pub fn new(params: &TcpParams) -> Receiver {
        Receiver {
            next: 0,
            acked: 0,
            ack_every: params.delayed_ack_segments.max(1),
            quick: params.quick_acks,
            delivered: 0,
            echo: Time::NEVER,
            deadline: Time::NEVER,
            delay: Span(params.delayed_ack_ns),
            mss: params.mss,
            timestamps: params.timestamps,
            ecn: params.ecn,
            ece: false,
            window: Window::new(params),
            gaps: Gaps::new(params),
        }
    }

    /// Takes a segment in; `ce` says that a queue marked it. Gives the acknowledgement to send now, if one is due.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment, ce: bool, now: Time) -> Option<AckSegment> {
        // RFC 7323 §4.3 rule 2: only a segment that reaches down to Last.ACK.sent sets the stamp, so a delayed ACK
        // echoes the earliest segment it covers and a segment beyond a gap is never echoed.
        if self.timestamps
            && segment.seq <= self.acked
            && (segment.stamp >= self.echo || self.echo == Time::NEVER)
        {
            self.echo = segment.stamp;
        }
        let mut at_once = self.ecn && self.note_ecn(segment.cwr, ce);

        if segment.seq == self.next {
            at_once |= !self.gaps.is_empty();
            self.next += 1;
            self.delivered += u64::from(segment.len);
            if !self.gaps.is_empty() {
                let (next, bytes) = self.gaps.advance(self.next);
                self.next = next;
                self.delivered += bytes;
            }
            self.window.adjust(self.next, self.delivered, self.mss, segment.stamp, now);
        } else {
            at_once = true;
            if segment.seq > self.next {
                self.gaps.hold(segment.seq, segment.len);
            }
        }

        // A quick ACK, an n-th segment, or one of the reasons above (RFC 5681 §4.2).
        if at_once || self.quick > 0 || self.next - self.acked >= self.ack_every {
            return Some(self.acknowledge());
        }
        if self.deadline == Time::NEVER {
            self.deadline = now + self.delay;
        }
        None
    }

    /// When the delayed acknowledgement is due, if one is pending.
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        (self.deadline != Time::NEVER).then_some(self.deadline)
    }

    /// The delayed acknowledgement, once its time has come; called early it does nothing.
    #[inline]
    pub fn on_deadline(&mut self, now: Time) -> Option<AckSegment> {
        (self.deadline != Time::NEVER && now >= self.deadline).then(|| self.acknowledge())
    }

    /// Bytes handed to the application, in order.
    #[inline]
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered
    }

    /// The receive window an acknowledgement sent now would carry, in bytes.
    #[inline]
    pub fn window_bytes(&self) -> u64 {
        self.window.offered(self.delivered, self.gaps.held_bytes)
    }

    /// RFC 3168 §6.1.3: ECE is set from a CE mark until a CWR. True when the ACK should not wait: the sender of a CWR
    /// may be down to one segment, and the first CE is news (Linux: two quick ACKs).
    #[inline]
    fn note_ecn(&mut self, cwr: bool, ce: bool) -> bool {
        let was = self.ece;
        self.ece = (self.ece && !cwr) || ce;
        if self.ece && !was {
            self.quick = self.quick.max(2);
        }
        cwr
    }

    #[inline]
    fn acknowledge(&mut self) -> AckSegment {
        self.quick = self.quick.saturating_sub(1);
        self.acked = self.next;
        self.deadline = Time::NEVER;
        AckSegment {
            ack: self.next,
            echo: self.echo,
            window: self.window.offer(self.delivered, self.gaps.held_bytes),
            sacks: self.gaps.blocks,
            sack_count: self.gaps.reported(),
            ece: self.ece,
        }
    }
}

/// What has arrived beyond a gap: run-length ranges, and in which order they were last heard of.
#[derive(Clone, Debug)]
struct Gaps {
    /// Half-open ranges of segments, ascending, with at least one missing segment before and between them.
    ranges: VecDeque<(u32, u32)>,
    /// Those of `ranges` that changed last, most recent first (RFC 2018 §4); zero beyond `block_count`.
    blocks: [(u32, u32); MAX_SACK_BLOCKS],
    block_count: u8,
    /// How many blocks fit beside the other options: three with timestamps; none without SACK.
    block_limit: u8,
    mss: u32,
    /// Payload bytes in `ranges`.
    held_bytes: u64,
    /// Held segments shorter than mss and by how many bytes: the last ones of transfers, so nearly always none.
    short: Vec<(u32, u32)>,
}

impl Gaps {
    fn new(params: &TcpParams) -> Gaps {
        let block_limit = match (params.sack, params.timestamps) {
            (false, _) => 0,
            (true, true) => 3,
            (true, false) => 4,
        };
        Gaps {
            ranges: VecDeque::new(),
            blocks: [(0, 0); MAX_SACK_BLOCKS],
            block_count: 0,
            block_limit,
            mss: params.mss,
            held_bytes: 0,
            short: Vec::new(),
        }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    #[inline]
    fn reported(&self) -> u8 {
        self.block_count.min(self.block_limit)
    }

    /// Keeps a segment that lies beyond a gap. The block it falls into is reported first, duplicate or not.
    fn hold(&mut self, seq: u32, len: u32) {
        let (block, new) = insert(&mut self.ranges, seq);
        if new {
            self.held_bytes += u64::from(len);
            if len < self.mss {
                self.short.push((seq, self.mss - len));
            }
        }
        // Blocks that grew into this one go; one segment changes one range, so the others are still exact.
        self.retain_blocks(|old| old.1 < block.0 || old.0 > block.1);
        let kept = usize::from(self.block_count).min(MAX_SACK_BLOCKS - 1);
        self.blocks.copy_within(0..kept, 1);
        self.blocks[0] = block;
        self.block_count = kept as u8 + 1;
    }

    /// All before `next` have arrived: hands out the range that this completes. Gives the new RCV.NXT and the bytes.
    fn advance(&mut self, next: u32) -> (u32, u64) {
        match self.ranges.front() {
            Some(&(start, end)) if start == next => {
                self.ranges.pop_front();
                let mut bytes = u64::from(end - start) * u64::from(self.mss);
                self.short.retain(|&(seq, missing)| {
                    if seq < end {
                        bytes -= u64::from(missing);
                    }
                    seq >= end
                });
                self.held_bytes -= bytes;
                self.retain_blocks(|old| old.0 > end);
                (end, bytes)
            }
            _ => (next, 0),
        }
    }

    fn retain_blocks(&mut self, keep: impl Fn((u32, u32)) -> bool) {
        let mut kept = 0;
        for i in 0..usize::from(self.block_count) {
            if keep(self.blocks[i]) {
                self.blocks[kept] = self.blocks[i];
                kept += 1;
            }
        }
        self.blocks[kept..].fill((0, 0));
        self.block_count = kept as u8;
    }
}

/// Adds `seq` to the sorted ranges; gives the range it now lies in, and whether it was missing before.
fn insert(ranges: &mut VecDeque<(u32, u32)>, seq: u32) -> ((u32, u32), bool) {
    // Nearly always the segment is the highest yet.
    match ranges.back_mut() {
        Some(last) if last.1 == seq => {
            last.1 += 1;
            return (*last, true);
        }
        Some(last) if last.1 > seq => {}
        _ => {
            ranges.push_back((seq, seq + 1));
            return ((seq, seq + 1), true);
        }
    }
    // The first range that ends at or after `seq`: it holds it, ends at it, begins after it, or lies wholly beyond.
    let i = ranges.partition_point(|&(_, end)| end < seq);
    let (start, end) = ranges[i];
    if start <= seq && seq < end {
        return ((start, end), false);
    }
    if end == seq {
        ranges[i].1 += 1;
        if let Some(&(after, after_end)) = ranges.get(i + 1)
            && after == seq + 1
        {
            ranges[i].1 = after_end;
            ranges.remove(i + 1);
        }
        return (ranges[i], true);
    }
    if start == seq + 1 {
        ranges[i].0 = seq;
        return (ranges[i], true);
    }
    ranges.insert(i, (seq, seq + 1));
    ((seq, seq + 1), true)
}

/// The receive window and its growth. Positions are bytes of the stream.
#[derive(Clone, Debug)]
struct Window {
    /// What may be offered when nothing is held, bytes: the buffer's advertisable part.
    space: u64,
    /// The bound `space` grows to.
    space_max: u64,
    /// The right edge offered; it never moves left (RFC 9293 §3.8.6).
    edge: u64,
    /// The receiver's RTT is taken when this segment is next: one window after `rtt_start`.
    rtt_mark: u32,
    rtt_start: Time,
    /// The least time one window of data took; NEVER before the first. Too long while the sender is limited by
    /// something else than this window, hence the minimum.
    rtt: Span,
    /// The least one-way delay seen, up to a constant: the sender's clock need not be ours.
    delay_min: Span,
    /// When the measured RTT is over.
    round_end: Time,
    round_start_bytes: u64,
    /// The most bytes delivered in one round.
    round_max: u64,
}

impl Window {
    fn new(params: &TcpParams) -> Window {
        let part = |bytes: u64| (bytes as f64 * params.receive_window_fraction) as u64;
        let space = part(params.receive_buffer);
        let space_max = part(params.receive_buffer_max.max(params.receive_buffer));
        let mut window = Window {
            space,
            space_max,
            edge: space,
            rtt_mark: u32::MAX,
            rtt_start: Time::NEVER,
            rtt: Span(u64::MAX),
            delay_min: Span(u64::MAX),
            round_end: Time::NEVER,
            round_start_bytes: 0,
            // Linux starts from ten segments: what a sender has in flight at first.
            round_max: space.min(10 * u64::from(params.mss)).max(1),
        };
        if space < space_max {
            window.rtt_mark = 0;
        }
        window
    }

    #[inline]
    fn offered(&self, delivered: u64, held: u64) -> u64 {
        self.edge.saturating_sub(delivered).max(self.space.saturating_sub(held))
    }

    #[inline]
    fn offer(&mut self, delivered: u64, held: u64) -> u64 {
        let window = self.offered(delivered, held);
        self.edge = self.edge.max(delivered.saturating_add(window));
        window
    }

    /// Takes note of progress; while autotuning is off or done this is one comparison.
    #[inline]
    fn adjust(&mut self, next: u32, delivered: u64, mss: u32, stamp: Time, now: Time) {
        if self.space >= self.space_max {
            return;
        }
        let delay = Span(now.0.wrapping_sub(stamp.0));
        self.delay_min = self.delay_min.min(delay);
        if next >= self.rtt_mark {
            self.measure_rtt(next, delivered, mss, now);
        }
        if now >= self.round_end {
            self.end_round(delivered, mss);
            self.round_end = now + self.rtt + (delay - self.delay_min);
        }
    }

    fn measure_rtt(&mut self, next: u32, delivered: u64, mss: u32, now: Time) {
        if self.rtt_start != Time::NEVER {
            self.rtt = self.rtt.min(now.since(self.rtt_start));
            if self.round_end == Time::NEVER {
                self.round_end = now;
            }
        }
        let segments = self.edge.saturating_sub(delivered) / u64::from(mss.max(1));
        self.rtt_mark = next.saturating_add(segments.clamp(1, u64::from(u32::MAX)) as u32);
        self.rtt_start = now;
    }

    /// Linux's dynamic right-sizing: room for twice what the last RTT brought and 16 segments, and twice the rate of
    /// growth on top, so that a sender in slow start is never held back.
    fn end_round(&mut self, delivered: u64, mss: u32) {
        let copied = delivered - self.round_start_bytes;
        self.round_start_bytes = delivered;
        if copied <= self.round_max {
            return;
        }
        let wanted = 2 * u128::from(copied) + 16 * u128::from(mss);
        let growth = wanted * u128::from(copied - self.round_max) / u128::from(self.round_max);
        let space = (wanted + 2 * growth).min(u128::from(self.space_max)) as u64;
        self.space = self.space.max(space);
        self.round_max = copied;
    }
}
