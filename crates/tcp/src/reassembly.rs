//! What has arrived beyond a gap: the ranges, the SACK blocks that tell of them, and the buffers
//! they lie in.
//!
//! A range keeps no list of its segments: all that is ever asked is where it begins and ends, how
//! many buffers it fills, and whether another segment would still go into the last one. The blocks
//! are a list of their own, of four, as Linux has it: what has fallen out of it and is heard of
//! again comes as a block of its own, until a neighbour in the list joins it.
//!
//! Sources: RFC 2018 §4 (what is reported, and in which order); Linux tcp_input.c
//! (tcp_data_queue_ofo, tcp_sack_new_ofo_skb, tcp_sack_remove, tcp_ofo_queue) and net/core/skbuff.c
//! (skb_condense, skb_try_coalesce). Deviations: a receiver whose buffer is full does not pack what
//! it holds anew (tcp_collapse), nor throw it away.

use crate::{MAX_SACK_BLOCKS, TcpParams};
use std::collections::VecDeque;
use units::memory::{self, HEADERS, RECORD, SHARED};

/// Room that is left when a packet is made one piece.
const SPARE: u64 = 128;

/// The room that segments take in a receiver's buffer, bytes, where the card takes packets of one
/// piece only (offloads are off).
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// A segment in order, until the application reads it.
    pub in_order: u64,
    /// A buffer beyond a gap.
    pub held: u64,
    /// Segments that go into one, if they come one after the other.
    pub segments: u32,
}

impl Room {
    /// For full segments.
    pub fn new(mss: u32) -> Room {
        let mss = u64::from(mss).max(1);
        // Made one piece a packet lies in the next power of 2; it is charged for that only when it
        // is held.
        let piece = (HEADERS + mss + SPARE + SHARED).next_power_of_two();
        let segments = ((piece - SHARED - HEADERS) / mss).max(1) as u32;
        Room { in_order: memory::segment(mss), held: piece + RECORD, segments }
    }
}

/// Adjacent segments beyond a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    start: u32,
    end: u32,
    buffers: u32,
    /// Segments that the first buffer holds, and the last one.
    first: u32,
    last: u32,
}

impl Range {
    fn new(seq: u32) -> Range {
        Range { start: seq, end: seq + 1, buffers: 1, first: 1, last: 1 }
    }

    /// The next segment has come; whether it went into the last buffer.
    fn append(&mut self, most: u32) -> bool {
        self.end += 1;
        let fits = self.last < most;
        self.last = if fits { self.last + 1 } else { 1 };
        self.buffers += u32::from(!fits);
        if self.buffers == 1 {
            self.first = self.last;
        }
        fits
    }

    /// The one before has come, into a buffer of its own.
    fn prepend(&mut self) {
        self.start -= 1;
        self.buffers += 1;
        self.first = 1;
    }

    /// The gap to the range behind is filled.
    fn join(&mut self, behind: Range) {
        *self = Range {
            start: self.start,
            end: behind.end,
            buffers: self.buffers + behind.buffers,
            first: self.first,
            last: behind.last,
        };
    }
}

/// Where in the list of blocks a segment belongs: it made that one longer, or it is one of its own
/// behind them.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// How many blocks are before it.
    pub at: usize,
    known: bool,
}

/// What a segment is that came beyond a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// It was there.
    Again,
    /// It takes a buffer of its own.
    Apart,
    /// It goes into its predecessor's.
    Beside,
}

/// What is handed out when a gap is filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// Segments and their bytes.
    pub segments: u32,
    pub bytes: u64,
    /// Of those the bytes that go into the buffer of the segment that filled the gap.
    pub beside: u64,
}

/// What has arrived beyond a gap.
#[derive(Clone, Debug)]
pub struct Gaps {
    /// Ascending, with at least one missing segment before and between them.
    ranges: VecDeque<Range>,
    /// The blocks told of last, most recent first (RFC 2018 §4); zero beyond `block_count`.
    blocks: [(u32, u32); MAX_SACK_BLOCKS],
    block_count: u8,
    /// How many blocks fit beside the other options: three with timestamps; none without SACK.
    block_limit: u8,
    mss: u32,
    room: Room,
    /// Of all ranges.
    buffers: u64,
    /// Held segments shorter than mss and by how many bytes: the last ones of transfers, so nearly
    /// always none.
    short: Vec<(u32, u32)>,
}

impl Gaps {
    /// None yet.
    pub fn new(params: &TcpParams) -> Gaps {
        let block_limit = match (params.recovery.sack, params.timestamps) {
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
            room: Room::new(params.mss),
            buffers: 0,
            short: Vec::new(),
        }
    }

    /// All has come in order.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How much of the buffer it takes, bytes.
    #[inline]
    pub fn taken(&self) -> u64 {
        self.buffers * self.room.held
    }

    /// The blocks to tell of, of which so many; a segment that came twice goes first, then the
    /// block it lies in (RFC 2883 §4).
    pub fn report(&self, duplicate: Option<u32>) -> ([(u32, u32); MAX_SACK_BLOCKS], u8) {
        let (mut sacks, mut count) = (self.blocks, self.block_count.min(self.block_limit));
        if let Some(seq) = duplicate {
            sacks.copy_within(..MAX_SACK_BLOCKS - 1, 1);
            sacks[0] = (seq, seq + 1);
            count = (count + 1).min(self.block_limit);
        }
        (sacks, count)
    }

    /// Keeps a segment that lies beyond a gap.
    pub fn hold(&mut self, seq: u32, len: u32) -> Held {
        let held = self.insert(seq);
        if held != Held::Again && len < self.mss {
            self.short.push((seq, self.mss - len));
        }
        self.buffers += u64::from(held == Held::Apart);
        held
    }

    fn insert(&mut self, seq: u32) -> Held {
        let most = self.room.segments;
        let went = |beside| if beside { Held::Beside } else { Held::Apart };
        // Nearly always the segment is the highest yet.
        match self.ranges.back_mut() {
            Some(last) if last.end == seq => return went(last.append(most)),
            Some(last) if last.end > seq => {}
            _ => {
                self.ranges.push_back(Range::new(seq));
                return Held::Apart;
            }
        }
        // The first range that ends at or after `seq`: it holds it, ends at it, begins after it, or
        // lies wholly beyond.
        let i = self.ranges.partition_point(|range| range.end < seq);
        let range = &mut self.ranges[i];
        if range.start <= seq && seq < range.end {
            return Held::Again;
        }
        if range.end == seq {
            let held = went(range.append(most));
            if self.ranges.get(i + 1).is_some_and(|behind| behind.start == seq + 1)
                && let Some(behind) = self.ranges.remove(i + 1)
            {
                self.ranges[i].join(behind);
            }
            return held;
        }
        if range.start == seq + 1 {
            range.prepend();
        } else {
            self.ranges.insert(i, Range::new(seq));
        }
        Held::Apart
    }

    /// Makes the first block longer that a segment touches.
    pub fn extend(&mut self, seq: u32) -> Place {
        let count = usize::from(self.block_count);
        let touched =
            self.blocks[..count].iter().position(|block| block.0 <= seq + 1 && seq <= block.1);
        if let Some(at) = touched {
            let block = &mut self.blocks[at];
            *block = (block.0.min(seq), block.1.max(seq + 1));
        }
        Place { at: touched.unwrap_or(count), known: touched.is_some() }
    }

    /// The block of the segment just heard of comes first: it takes in those that it touches;
    /// without room the last one is forgotten.
    pub fn bring_forward(&mut self, place: Place, seq: u32) {
        if !place.known {
            let kept = usize::from(self.block_count).min(MAX_SACK_BLOCKS - 1);
            self.blocks.copy_within(0..kept, 1);
            self.blocks[0] = (seq, seq + 1);
            self.block_count = kept as u8 + 1;
            return;
        }
        self.blocks[..=place.at].rotate_right(1);
        let mut kept = 1;
        for i in 1..usize::from(self.block_count) {
            let (first, other) = (self.blocks[0], self.blocks[i]);
            if other.0 <= first.1 && first.0 <= other.1 {
                self.blocks[0] = (first.0.min(other.0), first.1.max(other.1));
            } else {
                self.blocks[kept] = other;
                kept += 1;
            }
        }
        self.keep_blocks(kept);
    }

    /// All before `next` have arrived: hands out the range that this completes, if one begins
    /// there.
    pub fn advance(&mut self, next: u32) -> Released {
        let Some(&Range { start, end, buffers, first, .. }) = self.ranges.front() else {
            return Released::default();
        };
        if start != next {
            return Released::default();
        }
        self.ranges.pop_front();
        self.buffers -= u64::from(buffers);
        let mss = u64::from(self.mss);
        let mut bytes = u64::from(end - start) * mss;
        self.short.retain(|&(seq, missing)| {
            if seq < end {
                bytes -= u64::from(missing);
            }
            seq >= end
        });
        let mut kept = 0;
        for i in 0..usize::from(self.block_count) {
            if self.blocks[i].0 > end {
                self.blocks[kept] = self.blocks[i];
                kept += 1;
            }
        }
        self.keep_blocks(if self.ranges.is_empty() { 0 } else { kept });
        let fits = first < self.room.segments;
        let beside = if fits { bytes.min(u64::from(first) * mss) } else { 0 };
        Released { segments: end - start, bytes, beside }
    }

    fn keep_blocks(&mut self, kept: usize) {
        self.blocks[kept..].fill((0, 0));
        self.block_count = kept as u8;
    }

    /// Payload held.
    #[cfg(test)]
    pub fn held_bytes(&self) -> u64 {
        let segments: u64 =
            self.ranges.iter().map(|range| u64::from(range.end - range.start)).sum();
        segments * u64::from(self.mss)
            - self.short.iter().map(|short| u64::from(short.1)).sum::<u64>()
    }
}
