//! The out-of-order queue: the ranges of segments beyond a gap, the SACK blocks that report them,
//! and the buffers that store them.
//!
//! A range keeps no list of its segments. It stores its start and end, the number of its buffers,
//! and whether another segment still fits into the last one. The SACK blocks are a separate list of
//! four, as in Linux (selective_acks). If a segment joins a range whose block has dropped out of
//! the list, that segment is reported as a block of its own, until a neighbour in the list merges
//! with it.
//!
//! Sources: RFC 2018 §4 (which blocks are reported, in which order); Linux tcp_input.c
//! (tcp_data_queue_ofo, tcp_sack_new_ofo_skb, tcp_sack_remove, tcp_ofo_queue) and net/core/skbuff.c
//! (skb_condense, skb_try_coalesce). Deviations: a receiver with a full buffer neither repacks the
//! queue (tcp_collapse_ofo_queue) nor drops it (tcp_prune_ofo_queue).

use crate::{MAX_SACK_BLOCKS, TcpParams};
use std::collections::VecDeque;
use units::memory::{self, HEADERS, RECORD, SHARED};

/// Spare bytes that __pskb_pull_tail adds when it makes a packet contiguous.
const CONDENSE_SPARE: u64 = 128;

/// skb->truesize: the bytes of a receiver's buffer that segments take if the card receives each
/// packet contiguously (offloads are off).
#[derive(Clone, Copy, Debug)]
pub struct TrueSize {
    /// A segment in order, until the application reads it.
    pub in_order: u64,
    /// A buffer of the out-of-order queue.
    pub out_of_order: u64,
    /// Successive segments that fit into one such buffer (skb_try_coalesce).
    pub segments: u32,
}

impl TrueSize {
    /// The truesize of full segments.
    pub fn new(mss: u32) -> TrueSize {
        let mss = u64::from(mss).max(1);
        // A contiguous packet takes the next power of two; it is charged for that only in the
        // out-of-order queue.
        let piece = (HEADERS + mss + CONDENSE_SPARE + SHARED).next_power_of_two();
        let segments = ((piece - SHARED - HEADERS) / mss).max(1) as u32;
        TrueSize { in_order: memory::segment(mss), out_of_order: piece + RECORD, segments }
    }
}

/// Adjacent segments beyond a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    start: u32,
    end: u32,
    buffers: u32,
    /// Segments in the first buffer, and in the last.
    first_segments: u32,
    last_segments: u32,
}

impl Range {
    fn new(seq: u32) -> Range {
        Range { start: seq, end: seq + 1, buffers: 1, first_segments: 1, last_segments: 1 }
    }

    /// Appends the next segment. Returns true if it fits into the last buffer.
    fn append(&mut self, most: u32) -> bool {
        self.end += 1;
        let fits = self.last_segments < most;
        self.last_segments = if fits { self.last_segments + 1 } else { 1 };
        self.buffers += u32::from(!fits);
        if self.buffers == 1 {
            self.first_segments = self.last_segments;
        }
        fits
    }

    /// Prepends the preceding segment, in a buffer of its own.
    fn prepend(&mut self) {
        self.start -= 1;
        self.buffers += 1;
        self.first_segments = 1;
    }

    /// Appends the next range, once the gap to it is filled.
    fn join(&mut self, behind: Range) {
        *self = Range {
            start: self.start,
            end: behind.end,
            buffers: self.buffers + behind.buffers,
            first_segments: self.first_segments,
            last_segments: behind.last_segments,
        };
    }
}

/// The place of a segment in the list of SACK blocks: a block that it extends, or a new one after
/// all others.
#[derive(Clone, Copy, Debug)]
pub struct BlockPlace {
    /// The number of blocks before it.
    pub index: usize,
    exists: bool,
}

/// How a segment beyond a gap was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    /// Not queued: it was in the queue already.
    Duplicate,
    /// In a buffer of its own.
    NewBuffer,
    /// In its predecessor's buffer (skb_try_coalesce).
    Coalesced,
}

/// The range that leaves the queue when a gap is filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// Segments and their bytes.
    pub segments: u32,
    pub bytes: u64,
    /// The part of `bytes` that is coalesced with the segment that filled the gap.
    pub coalesced: u64,
}

/// The out-of-order queue.
#[derive(Clone, Debug)]
pub struct OutOfOrderQueue {
    block_count: u8,
    /// The number of blocks that fit beside the other options: three with timestamps, four without;
    /// zero without SACK.
    block_limit: u8,
    mss: u32,
    /// The buffer space that segments take.
    pub truesize: TrueSize,
    /// The number of buffers of all ranges.
    buffers: u64,
    lists: Box<Lists>,
}

/// Lists that are empty while no segment is missing.
#[derive(Clone, Debug, Default)]
struct Lists {
    /// Ascending, with at least one missing segment before each.
    ranges: VecDeque<Range>,
    /// The blocks last reported, most recent first (RFC 2018 §4); zero beyond `block_count`.
    blocks: [(u32, u32); MAX_SACK_BLOCKS],
    /// Queued segments shorter than the MSS, with the missing bytes. Only a transfer's last segment
    /// is shorter, so the list is nearly always empty.
    short: Vec<(u32, u32)>,
}

impl OutOfOrderQueue {
    /// An empty queue.
    pub fn new(params: &TcpParams) -> OutOfOrderQueue {
        let block_limit = match (params.recovery.sack, params.timestamps) {
            (false, _) => 0,
            (true, true) => 3,
            (true, false) => 4,
        };
        OutOfOrderQueue {
            block_count: 0,
            block_limit,
            mss: params.mss,
            truesize: TrueSize::new(params.mss),
            buffers: 0,
            lists: Box::default(),
        }
    }

    /// No segment is missing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.buffers == 0
    }

    /// Bytes from RCV.NXT to the end of the last queued segment; 0 if the queue is empty.
    pub fn bytes_beyond(&self, rcv_nxt: u32) -> u64 {
        let Some(last) = self.lists.ranges.back() else { return 0 };
        let missing: u64 = self.lists.short.iter().map(|&(_, by)| u64::from(by)).sum();
        u64::from(last.end - rcv_nxt) * u64::from(self.mss) - missing
    }

    /// Bytes of the receive buffer that the queue uses (sk_rmem_alloc).
    #[inline]
    pub fn rmem(&self) -> u64 {
        self.buffers * self.truesize.out_of_order
    }

    /// The SACK blocks of an ACK, and their number. A duplicate segment is first, then the block
    /// that contains it (RFC 2883 §4).
    pub fn sack_blocks(&self, duplicate: Option<u32>) -> ([(u32, u32); MAX_SACK_BLOCKS], u8) {
        let (mut sacks, mut count) = (self.lists.blocks, self.block_count.min(self.block_limit));
        if let Some(seq) = duplicate {
            sacks.copy_within(..MAX_SACK_BLOCKS - 1, 1);
            sacks[0] = (seq, seq + 1);
            count = (count + 1).min(self.block_limit);
        }
        (sacks, count)
    }

    /// Queues a segment beyond a gap.
    pub fn queue(&mut self, seq: u32, len: u32) -> Queued {
        let queued = self.insert(seq);
        if queued != Queued::Duplicate && len < self.mss {
            self.lists.short.push((seq, self.mss - len));
        }
        self.buffers += u64::from(queued == Queued::NewBuffer);
        queued
    }

    fn insert(&mut self, seq: u32) -> Queued {
        let most = self.truesize.segments;
        let queued = |fits| if fits { Queued::Coalesced } else { Queued::NewBuffer };
        // Nearly always the segment is the highest so far.
        match self.lists.ranges.back_mut() {
            Some(last) if last.end == seq => return queued(last.append(most)),
            Some(last) if last.end > seq => {}
            _ => {
                self.lists.ranges.push_back(Range::new(seq));
                return Queued::NewBuffer;
            }
        }
        // The first range that ends at or after `seq` contains the segment, ends at it, begins
        // after it, or lies wholly beyond.
        let i = self.lists.ranges.partition_point(|range| range.end < seq);
        let range = &mut self.lists.ranges[i];
        if range.start <= seq && seq < range.end {
            return Queued::Duplicate;
        }
        if range.end == seq {
            let how = queued(range.append(most));
            if self.lists.ranges.get(i + 1).is_some_and(|behind| behind.start == seq + 1)
                && let Some(behind) = self.lists.ranges.remove(i + 1)
            {
                self.lists.ranges[i].join(behind);
            }
            return how;
        }
        if range.start == seq + 1 {
            range.prepend();
        } else {
            self.lists.ranges.insert(i, Range::new(seq));
        }
        Queued::NewBuffer
    }

    /// tcp_sack_new_ofo_skb, first half: extends the first block that the segment touches.
    pub fn extend_block(&mut self, seq: u32) -> BlockPlace {
        let count = usize::from(self.block_count);
        let touched = self.lists.blocks[..count]
            .iter()
            .position(|block| block.0 <= seq + 1 && seq <= block.1);
        if let Some(at) = touched {
            let block = &mut self.lists.blocks[at];
            *block = (block.0.min(seq), block.1.max(seq + 1));
        }
        BlockPlace { index: touched.unwrap_or(count), exists: touched.is_some() }
    }

    /// tcp_sack_new_ofo_skb, second half: moves the segment's block to the front and merges into it
    /// the blocks that it touches. A full list drops its last block.
    pub fn move_block_to_front(&mut self, place: BlockPlace, seq: u32) {
        if !place.exists {
            let rest = usize::from(self.block_count).min(MAX_SACK_BLOCKS - 1);
            self.lists.blocks.copy_within(0..rest, 1);
            self.lists.blocks[0] = (seq, seq + 1);
            self.block_count = rest as u8 + 1;
            return;
        }
        self.lists.blocks[..=place.index].rotate_right(1);
        let mut count = 1;
        for i in 1..usize::from(self.block_count) {
            let (first, block) = (self.lists.blocks[0], self.lists.blocks[i]);
            if block.0 <= first.1 && first.0 <= block.1 {
                self.lists.blocks[0] = (first.0.min(block.0), first.1.max(block.1));
            } else {
                self.lists.blocks[count] = block;
                count += 1;
            }
        }
        self.truncate_blocks(count);
    }

    /// tcp_ofo_queue: all segments before `next` have arrived. Releases the range that begins
    /// there, if any.
    pub fn release(&mut self, next: u32) -> Released {
        let Some(&Range { start, end, buffers, first_segments, .. }) = self.lists.ranges.front()
        else {
            return Released::default();
        };
        if start != next {
            return Released::default();
        }
        self.lists.ranges.pop_front();
        self.buffers -= u64::from(buffers);
        let mss = u64::from(self.mss);
        let mut bytes = u64::from(end - start) * mss;
        self.lists.short.retain(|&(seq, missing)| {
            if seq < end {
                bytes -= u64::from(missing);
            }
            seq >= end
        });
        let mut count = 0;
        for i in 0..usize::from(self.block_count) {
            if self.lists.blocks[i].0 > end {
                self.lists.blocks[count] = self.lists.blocks[i];
                count += 1;
            }
        }
        self.truncate_blocks(if self.lists.ranges.is_empty() { 0 } else { count });
        let fits = first_segments < self.truesize.segments;
        let coalesced = if fits { bytes.min(u64::from(first_segments) * mss) } else { 0 };
        Released { segments: end - start, bytes, coalesced }
    }

    fn truncate_blocks(&mut self, count: usize) {
        self.lists.blocks[count..].fill((0, 0));
        self.block_count = count as u8;
    }

    /// Payload in the queue, bytes.
    #[cfg(test)]
    pub fn held_bytes(&self) -> u64 {
        let segments: u64 =
            self.lists.ranges.iter().map(|range| u64::from(range.end - range.start)).sum();
        segments * u64::from(self.mss)
            - self.lists.short.iter().map(|short| u64::from(short.1)).sum::<u64>()
    }
}
