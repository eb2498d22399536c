//! The application that sends, and its socket's buffer: when it writes, and so which segments are
//! pushed.
//!
//! It writes as soon as the socket takes something, and until it takes no more. A socket takes
//! something again when a third of its buffer is free and no more than one write's bytes are
//! unsent, and then until the buffer is full or two writes' bytes are unsent. The buffer grows with
//! cwnd: twice what so many segments may take.
//!
//! Pushed is the segment that ends such a bout, and each that is further than half of the largest
//! window offered behind the last push. The end of a write within a bout is not, because the next
//! write goes on with the same segment.
//!
//! Source: Linux net/ipv4/tcp.c (tcp_sendmsg_locked, forced_push), tcp_input.c (tcp_sndbuf_expand),
//! include/net/sock.h (sk_stream_is_writeable). Deviations: tcp_wmem's maximum doesn't bound the
//! buffer. What a segment takes is what it takes in the guests that were looked at (docs/tcp.md);
//! kernels with other options differ.

use crate::TcpParams;
use std::collections::VecDeque;

/// What the kernel keeps beside a segment's payload, bytes.
const OVERHEAD: u64 = 832;
/// Headers and bookkeeping that it reckons with beside the largest segment, bytes: together they
/// are rounded up to a power of two.
const HEADERS: u64 = 576;
/// Bytes that are not in that power.
const DESCRIPTOR: u64 = 256;
/// cwnd that the buffer reckons with at least, segments.
const LEAST_WINDOW: u32 = 10;
const TIMESTAMP_BYTES: u64 = 12;

/// The application and its socket. Positions are segments.
#[derive(Debug)]
pub struct Writer {
    /// Bytes written at once; 0: everything is written, and nothing pushed.
    write: u64,
    mss: u64,
    /// One past the last segment that is written.
    written: u32,
    end: u32,
    /// The largest cwnd, which the buffer follows.
    peak: u32,
    /// So many segments unsent are a write's bytes.
    low: u32,
    /// What the buffer reckons with for a segment.
    budget: u64,
    /// The stream's byte up to which all is pushed.
    pushed: u64,
    window_max: u64,
    /// Segments that are pushed, of those not acknowledged, and the first of them that has not
    /// left.
    pushes: VecDeque<u32>,
    coming: u32,
}

impl Writer {
    /// Of a transfer of so many segments.
    pub fn new(params: &TcpParams, end: u32) -> Writer {
        let mss = u64::from(params.mss);
        let options = if params.timestamps { TIMESTAMP_BYTES } else { 0 };
        Writer {
            write: params.buffers.write_bytes.into(),
            mss,
            written: if params.buffers.write_bytes == 0 { end } else { 0 },
            end,
            peak: LEAST_WINDOW,
            low: u64::from(params.buffers.write_bytes).div_ceil(mss) as u32,
            budget: (mss + options + HEADERS).next_power_of_two() + DESCRIPTOR,
            pushed: 0,
            window_max: 0,
            pushes: VecDeque::new(),
            coming: u32::MAX,
        }
    }

    /// One past the last segment that may leave.
    #[inline]
    pub fn written(&self) -> u32 {
        self.written
    }

    /// The receiver offers this window, bytes.
    #[inline]
    pub fn offered(&mut self, window: u64) {
        self.window_max = self.window_max.max(window);
    }

    /// Writes if the socket takes something; whether it did. `merged`: SACKed segments that the
    /// kernel keeps together with the one before.
    #[inline]
    pub fn write(&mut self, una: u32, nxt: u32, merged: u32, cwnd: u32) -> bool {
        if self.written == self.end {
            return false;
        }
        self.peak = self.peak.max(cwnd);
        let unsent = self.written - nxt;
        if unsent >= self.low {
            return false;
        }
        let buffer = 2 * self.budget * u64::from(self.peak);
        let memory =
            u64::from(self.written - una) * (self.mss + OVERHEAD) - u64::from(merged) * OVERHEAD;
        if 3 * memory > 2 * buffer {
            return false;
        }
        let room = buffer.saturating_sub(memory).div_ceil(self.mss + OVERHEAD);
        self.fill(una, u64::from(unsent) * self.mss, room);
        true
    }

    fn fill(&mut self, una: u32, unsent: u64, room: u64) {
        let wanted = (2 * self.write - unsent).div_ceil(self.mss);
        let segments = wanted.min(room).min(u64::from(self.end - self.written)).max(1) as u32;
        let acknowledged = self.pushes.partition_point(|&seq| seq < una);
        self.pushes.drain(..acknowledged);
        let until = self.written + segments;
        let known = self.pushes.len();
        if self.window_max / 2 < self.write {
            self.push_far(until);
        }
        self.written = until;
        self.pushes.push_back(until - 1);
        self.coming = self.coming.min(self.pushes[known]);
        self.pushed = u64::from(until) * self.mss;
    }

    /// Pushes what lies too far behind the last push, in a bout of writing up to `until`.
    fn push_far(&mut self, until: u32) {
        let mut write_end = u64::from(self.written) * self.mss + self.write;
        for seq in self.written..until - 1 {
            let at = u64::from(seq + 1) * self.mss;
            if at > write_end {
                self.pushed = write_end;
                write_end += self.write;
            }
            if at > self.pushed + self.window_max / 2 {
                self.pushes.push_back(seq);
                self.pushed = at;
            }
        }
    }

    /// Whether a segment is pushed that leaves for the first time: they do in order.
    #[inline]
    pub fn pushes_new(&mut self, seq: u32) -> bool {
        if seq != self.coming {
            return false;
        }
        let next = self.pushes.partition_point(|&other| other <= seq);
        self.coming = self.pushes.get(next).copied().unwrap_or(u32::MAX);
        true
    }

    /// Whether a segment is pushed that leaves again.
    pub fn pushes_again(&self, seq: u32) -> bool {
        self.pushes.binary_search(&seq).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(end: u32) -> Writer {
        let params = crate::cc::test::params().with(|p| {
            p.mss = 1448;
            p.buffers.write_bytes = 65536;
        });
        let mut writer = Writer::new(&params, end);
        writer.offered(1 << 20);
        writer
    }

    /// What was written, in segments, by the time that so many were acknowledged, with `cwnd` more
    /// in flight.
    fn bouts(writer: &mut Writer, acks: impl IntoIterator<Item = (u32, u32)>) -> Vec<(u32, u32)> {
        acks.into_iter()
            .filter_map(|(una, cwnd)| {
                let nxt = writer.written().min(una + cwnd);
                writer.write(una, nxt, 0, cwnd).then(|| (una, writer.written()))
            })
            .collect()
    }

    #[test]
    fn it_writes_when_linux_writes() {
        // A guest's slow start: (acknowledged, cwnd) and the segments written, as its socket told
        // them.
        let mut w = writer(u32::MAX);
        let slow_start = (0..24).map(|acked| (acked, 10 + acked));
        let told = [(0, 30_408), (4, 47_784), (9, 69_504), (15, 95_568), (23, 130_320)];
        assert_eq!(bouts(&mut w, slow_start), told.map(|(una, bytes)| (una, bytes / 1448)));
    }

    #[test]
    fn with_a_large_window_two_writes_lie_unsent_at_most() {
        let mut w = writer(u32::MAX);
        let told = [(85, 392_408), (111, 467_704)];
        assert!(w.write(0, 0, 0, 10));
        let mut w = Writer { written: 305_528 / 1448, ..w };
        assert_eq!(
            bouts(&mut w, [(84, 94), (85, 95), (109, 119), (111, 121)]),
            told.map(|(una, bytes)| (una, bytes / 1448))
        );
    }

    #[test]
    fn the_last_segment_of_a_bout_is_pushed_and_the_last_of_all() {
        let mut w = writer(30);
        assert!(w.write(0, 0, 0, 10));
        assert!(w.write(10, 20, 0, 20) && !w.write(11, 21, 0, 20));
        assert_eq!((0..30).filter(|&seq| w.pushes_new(seq)).collect::<Vec<_>>(), [20, 29]);
        assert_eq!((0..30).filter(|&seq| w.pushes_again(seq)).collect::<Vec<_>>(), [20, 29]);
    }

    #[test]
    fn half_of_the_largest_window_is_pushed_at_once() {
        let mut w = writer(u32::MAX);
        w.window_max = 40_000;
        w.write(0, 0, 0, 20);
        // Each 20 000 bytes, 14 segments; and the end of the bout.
        assert_eq!((0..50).filter(|&seq| w.pushes_new(seq)).collect::<Vec<_>>(), [13, 27, 40]);
    }

    #[test]
    fn without_a_size_of_writes_everything_is_written_and_nothing_pushed() {
        let mut w =
            Writer::new(&crate::cc::test::params().with(|p| p.buffers.write_bytes = 0), u32::MAX);
        assert_eq!((w.written(), w.write(0, 0, 0, 10), w.pushes_new(5)), (u32::MAX, false, false));
    }
}
