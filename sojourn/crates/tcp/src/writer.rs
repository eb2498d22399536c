//! The sending application and its socket's send buffer: when the application writes, and so which
//! segments carry PSH.
//!
//! The application writes whenever its socket is writable, until the socket accepts no more. W is
//! the bytes of one write (`write_bytes`):
//!
//! ```text
//! the socket becomes writable when 3 × used ≤ 2 × sndbuf and unsent < W
//! the application writes until used ≥ sndbuf or unsent ≥ 2 W
//! ```
//!
//! An application with a pace of its own writes at once what it has produced. Only if the socket
//! refuses (SOCK_NOSPACE) does it wait until the socket is writable.
//!
//! sndbuf grows with cwnd: twice the memory of cwnd segments (BBR: three times). PSH is set on the
//! last segment written before the socket is full. It is also set on each segment that lies more
//! than half of the largest window beyond the last PSH (forced_push). The end of an earlier write
//! has no PSH, because the next write fills the same segment.
//!
//! Source: Linux net/ipv4/tcp.c (tcp_sendmsg_locked, forced_push), tcp_input.c (tcp_sndbuf_expand),
//! include/net/sock.h (sk_stream_is_writeable). Deviations: tcp_wmem's maximum does not bound the
//! buffer. A segment takes the memory measured in the recorded guests (docs/tcp.md); kernels with
//! other options differ.

use crate::{CongestionKind, TcpParams};
use std::collections::VecDeque;

/// skb->truesize less the payload, bytes.
const TRUESIZE_OVERHEAD: u64 = 832;
/// MAX_TCP_HEADER and skb_shared_info, bytes: their sum with the MSS is rounded up to a power of
/// two (tcp_sndbuf_expand's per_mss).
const HEADERS: u64 = 576;
/// struct sk_buff, bytes, added to that power of two.
const DESCRIPTOR: u64 = 256;
/// The buffer is sized for at least this cwnd, segments (TCP_INIT_CWND).
const LEAST_CWND: u32 = 10;
const TIMESTAMP_BYTES: u64 = 12;

/// The number of windows for which the buffer is sized (sndbuf_expand): BBR may double cwnd in a
/// recovery.
fn windows(params: &TcpParams) -> u64 {
    if matches!(params.congestion, CongestionKind::Bbr | CongestionKind::Bbr3) { 3 } else { 2 }
}

/// The application and its socket. Positions are segments, except `pushed_seq`.
#[derive(Debug)]
pub struct Writer {
    /// One past the last segment written.
    written: u32,
    end: u32,
    /// The largest cwnd so far, which sizes the buffer.
    max_cwnd: u32,
    /// The segments of one write: the socket is writable only with fewer unsent segments
    /// (TCP_NOTSENT_LOWAT).
    lowat_segments: u32,
    /// The first segment with PSH that has not left yet.
    next_push: u32,
    cold: Box<Cold>,
}

/// State that only a write needs.
#[derive(Debug)]
struct Cold {
    /// Bytes of one write; with 0 everything is written at once, without PSH.
    write_bytes: u64,
    /// The application produces its data with time.
    paced: bool,
    /// The socket has refused data and is not writable yet (SOCK_NOSPACE).
    no_space: bool,
    /// Since the socket refused data, an ACK has arrived or a segment has left (tcp_check_space).
    check_space: bool,
    /// One past the last segment that would leave if it were written now.
    at_once: u32,
    mss: u64,
    /// Bytes of the buffer for each segment of cwnd (per_mss), times the number of windows.
    per_mss: u64,
    /// pushed_seq: the byte up to which all data is pushed.
    pushed_seq: u64,
    max_window: u64,
    /// The unacknowledged segments with PSH.
    pushes: VecDeque<u32>,
}

impl Writer {
    /// An application that transfers `end` segments.
    pub fn new(params: &TcpParams, end: u32) -> Writer {
        let mss = u64::from(params.mss);
        let options = if params.timestamps { TIMESTAMP_BYTES } else { 0 };
        Writer {
            written: if params.buffers.write_bytes == 0 { end } else { 0 },
            end,
            max_cwnd: LEAST_CWND,
            lowat_segments: u64::from(params.buffers.write_bytes).div_ceil(mss) as u32,
            next_push: u32::MAX,
            cold: Box::new(Cold {
                write_bytes: params.buffers.write_bytes.into(),
                paced: false,
                no_space: false,
                check_space: false,
                at_once: 0,
                mss,
                per_mss: windows(params)
                    * ((mss + options + HEADERS).next_power_of_two() + DESCRIPTOR),
                pushed_seq: 0,
                max_window: 0,
                pushes: VecDeque::new(),
            }),
        }
    }

    /// One past the last segment that may leave.
    #[inline]
    pub fn written(&self) -> u32 {
        self.written
    }

    /// One past the last segment that the application has produced.
    pub fn end(&self) -> u32 {
        self.end
    }

    /// The application has produced nothing yet.
    pub fn wait_for_data(&mut self) {
        (self.written, self.end) = (0, 0);
        self.cold.paced = true;
        self.set_no_space(false);
    }

    /// The application has produced the segments below `end`; `nxt` is the first that has not left.
    pub fn produced(&mut self, end: u32, nxt: u32) {
        self.end = end;
        if self.cold.write_bytes == 0 {
            self.written = end;
        } else if end > self.written && self.written - nxt >= self.lowat_segments {
            self.set_no_space(true);
        }
    }

    /// Whether the socket accepts all data at once.
    pub fn writes_at_once(&self) -> bool {
        self.cold.write_bytes == 0
    }

    /// An ACK has arrived.
    pub fn on_ack(&mut self) {
        self.cold.check_space = true;
    }

    /// A segment has left for the first time. If it left at once, the socket had not yet refused
    /// the data behind it.
    pub fn on_sent(&mut self, seq: u32) {
        self.cold.check_space |= seq >= self.cold.at_once;
    }

    /// A segment below `at_once` leaves as soon as it is written. It then has no PSH, because the
    /// socket refuses more data only later (tcp_push_one).
    pub fn leaves_at_once(&mut self, at_once: u32) {
        self.cold.at_once = at_once;
    }

    /// Whether the socket has refused data and is not writable yet.
    pub fn no_space(&self) -> bool {
        self.cold.no_space
    }

    /// An application that waits for its socket writes again once the unsent data is below half of
    /// the amount at which the socket refuses more (tcp_stream_memory_free).
    fn set_no_space(&mut self, no_space: bool) {
        (self.cold.no_space, self.cold.check_space) = (no_space, false);
        if self.cold.paced {
            let writes = if no_space { 1 } else { 2 };
            self.lowat_segments = (writes * self.cold.write_bytes).div_ceil(self.cold.mss) as u32;
        }
    }

    /// Moves the end of the transfer to `end`. If everything is written, the written data ends
    /// there too, and the last segment keeps its PSH.
    pub fn end_at(&mut self, end: u32) {
        if self.written == self.end || self.written > end {
            let last = self.written.wrapping_sub(1);
            if let Some(push) = self.cold.pushes.back_mut()
                && *push == last
            {
                *push = end.wrapping_sub(1);
                if self.next_push == last {
                    self.next_push = *push;
                }
            }
            self.written = end;
        }
        self.end = end;
    }

    /// The application stops: data that has not left, from `nxt` on, never leaves.
    pub fn stop(&mut self, nxt: u32) {
        (self.written, self.end) = (nxt, nxt);
    }

    /// The receiver offers this window, bytes (tp->max_window).
    #[inline]
    pub fn offered(&mut self, window: u64) {
        self.cold.max_window = self.cold.max_window.max(window);
    }

    /// Writes if the socket is writable. Returns whether it did. `merged`: SACKed segments that
    /// share a buffer with the preceding one (tcp_shift_skb_data).
    #[inline]
    pub fn write(&mut self, una: u32, nxt: u32, merged: u32, cwnd: u32) -> bool {
        if self.written == self.end {
            return false;
        }
        if self.cold.paced && self.written > 0 {
            // Only while the application waits for its socket does the buffer grow, when an ACK
            // arrives or a segment leaves (tcp_new_space).
            if self.cold.no_space && !std::mem::take(&mut self.cold.check_space) {
                return false;
            }
            if !self.cold.no_space {
                return self.write_in(self.max_cwnd, una, nxt, merged);
            }
        }
        self.write_in(self.max_cwnd.max(cwnd), una, nxt, merged)
    }

    /// Writes if a buffer for `cwnd` has room.
    #[inline]
    fn write_in(&mut self, cwnd: u32, una: u32, nxt: u32, merged: u32) -> bool {
        self.max_cwnd = cwnd;
        let unsent = self.written - nxt;
        if unsent >= self.lowat_segments {
            return false;
        }
        let sndbuf = self.cold.per_mss * u64::from(self.max_cwnd);
        let used = u64::from(self.written - una) * (self.cold.mss + TRUESIZE_OVERHEAD)
            - u64::from(merged) * TRUESIZE_OVERHEAD;
        let refuses = if self.cold.no_space { 3 * used > 2 * sndbuf } else { used >= sndbuf };
        if refuses {
            self.set_no_space(true);
            return false;
        }
        let room = sndbuf.saturating_sub(used).div_ceil(self.cold.mss + TRUESIZE_OVERHEAD);
        self.fill(una, u64::from(unsent) * self.cold.mss, room);
        self.set_no_space(self.written < self.end);
        true
    }

    fn fill(&mut self, una: u32, unsent: u64, room: u64) {
        // What leaves at once is never unsent.
        let gone = self.cold.at_once.saturating_sub(self.written);
        let wanted = (2 * self.cold.write_bytes - unsent).div_ceil(self.cold.mss) + u64::from(gone);
        let segments = wanted.min(room).min(u64::from(self.end - self.written)).max(1) as u32;
        let acknowledged = self.cold.pushes.partition_point(|&seq| seq < una);
        self.cold.pushes.drain(..acknowledged);
        let until = self.written + segments;
        let known = self.cold.pushes.len();
        if self.cold.paced {
            self.push_writes(until);
        } else {
            if self.cold.max_window / 2 < self.cold.write_bytes {
                self.forced_push(until);
            }
            self.push(until - 1);
        }
        self.written = until;
        if let Some(&push) = self.cold.pushes.get(known) {
            self.next_push = self.next_push.min(push);
        }
    }

    /// Sets PSH on a segment.
    fn push(&mut self, seq: u32) {
        self.cold.pushes.push_back(seq);
        self.cold.pushed_seq = u64::from(seq + 1) * self.cold.mss;
    }

    /// The writes of a paced application, up to `until`: whole segments, at most W bytes each. The
    /// last segment of each write has PSH, unless the socket refused a part of the write and the
    /// rest had left.
    #[cold]
    fn push_writes(&mut self, until: u32) {
        let most = (self.cold.write_bytes / self.cold.mss).max(1) as u32;
        let mut from = self.written;
        while from < until {
            let end = until.min(from.saturating_add(most));
            for seq in from..end - 1 {
                let at = u64::from(seq + 1) * self.cold.mss;
                if at > self.cold.pushed_seq + self.cold.max_window / 2 {
                    self.push(seq);
                }
            }
            if end - from == most || end == self.end || end > self.cold.at_once {
                self.push(end - 1);
            }
            from = end;
        }
    }

    /// forced_push: sets PSH on segments, up to `until`, that are more than half of the largest
    /// window beyond the last PSH.
    fn forced_push(&mut self, until: u32) {
        let mut write_end = u64::from(self.written) * self.cold.mss + self.cold.write_bytes;
        for seq in self.written..until - 1 {
            let at = u64::from(seq + 1) * self.cold.mss;
            if at > write_end {
                self.cold.pushed_seq = write_end;
                write_end += self.cold.write_bytes;
            }
            if at > self.cold.pushed_seq + self.cold.max_window / 2 {
                self.cold.pushes.push_back(seq);
                self.cold.pushed_seq = at;
            }
        }
    }

    /// Whether a segment that leaves for the first time has PSH. Such segments leave in order.
    #[inline]
    pub fn pushes_new(&mut self, seq: u32) -> bool {
        if seq != self.next_push {
            return false;
        }
        let next = self.cold.pushes.partition_point(|&push| push <= seq);
        self.next_push = self.cold.pushes.get(next).copied().unwrap_or(u32::MAX);
        true
    }

    /// Whether a retransmission has PSH.
    pub fn pushes_again(&self, seq: u32) -> bool {
        self.cold.pushes.binary_search(&seq).is_ok()
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

    /// For each ACK that causes a write: the acknowledged segments, and the segments written by
    /// then. Beyond the acknowledged ones up to `cwnd` segments are in flight.
    fn bouts(writer: &mut Writer, acks: impl IntoIterator<Item = (u32, u32)>) -> Vec<(u32, u32)> {
        acks.into_iter()
            .filter_map(|(una, cwnd)| {
                let nxt = writer.written().min(una + cwnd);
                writer.write(una, nxt, 0, cwnd).then(|| (una, writer.written()))
            })
            .collect()
    }

    #[test]
    fn a_writer_is_woken_when_linux_wakes_one() {
        // A guest's slow start: the acknowledged segments with cwnd, and the bytes written
        // according to its socket.
        let mut w = writer(u32::MAX);
        let slow_start = (0..24).map(|acked| (acked, 10 + acked));
        let writes = [(0, 30_408), (4, 47_784), (9, 69_504), (15, 95_568), (23, 130_320)];
        assert_eq!(bouts(&mut w, slow_start), writes.map(|(una, bytes)| (una, bytes / 1448)));
    }

    #[test]
    fn with_a_large_window_at_most_two_writes_are_unsent() {
        let mut w = writer(u32::MAX);
        let writes = [(85, 392_408), (111, 467_704)];
        assert!(w.write(0, 0, 0, 10));
        let mut w = Writer { written: 305_528 / 1448, ..w };
        assert_eq!(
            bouts(&mut w, [(84, 94), (85, 95), (109, 119), (111, 121)]),
            writes.map(|(una, bytes)| (una, bytes / 1448))
        );
    }

    #[test]
    fn the_last_segment_of_a_bout_and_of_the_transfer_has_psh() {
        let mut w = writer(30);
        assert!(w.write(0, 0, 0, 10));
        assert!(w.write(10, 20, 0, 20) && !w.write(11, 21, 0, 20));
        assert_eq!((0..30).filter(|&seq| w.pushes_new(seq)).collect::<Vec<_>>(), [20, 29]);
        assert_eq!((0..30).filter(|&seq| w.pushes_again(seq)).collect::<Vec<_>>(), [20, 29]);
    }

    #[test]
    fn a_segment_at_half_of_the_largest_window_has_psh() {
        let mut w = writer(u32::MAX);
        w.cold.max_window = 40_000;
        w.write(0, 0, 0, 20);
        // Every 14th segment (20 000 bytes) has PSH, and so has the last one written.
        assert_eq!((0..50).filter(|&seq| w.pushes_new(seq)).collect::<Vec<_>>(), [13, 27, 40]);
    }

    #[test]
    fn without_a_size_of_writes_everything_is_written_without_psh() {
        let mut w =
            Writer::new(&crate::cc::test::params().with(|p| p.buffers.write_bytes = 0), u32::MAX);
        assert_eq!((w.written(), w.write(0, 0, 0, 10), w.pushes_new(5)), (u32::MAX, false, false));
    }

    fn paced() -> Writer {
        let mut w = writer(u32::MAX);
        w.wait_for_data();
        w
    }

    #[test]
    fn a_paced_application_writes_its_produced_data_with_psh() {
        let mut w = paced();
        assert!(!w.write(0, 0, 0, 10));
        w.produced(1, 0);
        assert!(w.write(0, 0, 0, 10) && !w.write(0, 1, 0, 10));
        w.produced(4, 1);
        assert!(w.write(0, 1, 0, 10));
        assert_eq!((0..4).filter(|&seq| w.pushes_new(seq)).collect::<Vec<_>>(), [0, 3]);
        assert!(!w.no_space());
    }

    #[test]
    fn its_buffer_grows_only_while_it_waits_and_with_an_ack() {
        // As in a guest: 14 segments are in flight, and the buffer is sized for cwnd 21, as when it
        // last grew. At a cwnd of 55 the application fills the buffer with 29 more, which leave at
        // once. The next ACK, at a cwnd of 56, makes room for 114 in all.
        let mut w = Writer { max_cwnd: 21, written: 1727, ..paced() };
        w.produced(u32::MAX, 1727);
        w.cold.pushed_seq = 1727 * 1448;
        w.leaves_at_once(1727 + 41);
        assert!(w.write(1713, 1727, 0, 55) && w.no_space());
        assert_eq!(w.written(), 1756);
        (1727..1756).for_each(|seq| w.on_sent(seq));
        assert!(!w.write(1713, 1756, 0, 55));
        w.on_ack();
        assert!(w.write(1714, 1756, 0, 56));
        assert_eq!(w.written(), 1828);
        // No segment has PSH where the socket refused data after the rest had left. The last
        // segment of a whole write of 45 has PSH, and so has the last one that waits.
        assert_eq!((1727..1828).filter(|&seq| w.pushes_new(seq)).collect::<Vec<_>>(), [1800, 1827]);
    }
}
