//! The receive window: the part of the buffer that is offered, and the growth of both.
//!
//! The buffer grows by dynamic right-sizing. A sender may double its window every RTT, so the next
//! RTT needs room for twice the bytes of the last one. An RTT sample is the age of the stamp that a
//! data segment echoes. The RTT is the least sample; a larger sample raises it by an eighth of the
//! difference. The window does not open at once to all that the buffer allows: each arriving
//! segment opens it by two segments.
//!
//! Sources: RFC 9293 §3.8.6; Fisk and Feng, "Dynamic Right-Sizing in TCP" (2001), with Linux's
//! arithmetic (tcp_rcv_space_adjust, tcp_rcv_rtt_update, tcp_grow_window). The fields have Linux's
//! names. Deviations: a buffer of fixed size is offered whole from the start, while Linux opens the
//! window gradually there too. Most tests are in `receiver`.

use crate::params::RightSizing;
use crate::{Millis, Segment, TcpParams};
use units::{Span, Time, memory, whole};

/// The receive window and its growth. Positions are bytes of the stream; `rmem` is the number of
/// bytes of the buffer in use (sk_rmem_alloc).
#[derive(Clone, Debug)]
pub struct Window {
    /// The receive buffer (sk_rcvbuf) and its upper bound (tcp_rmem[2]), bytes.
    rcvbuf: u64,
    rcvbuf_max: u64,
    /// The buffer is below its bound.
    may_grow: bool,
    /// The buffer may grow, or SACKs wait for a part of the RTT.
    measures_rtt: bool,
    right_sizing: RightSizing,
    /// The fraction of the buffer that may be advertised (scaling_ratio), and the fraction that the
    /// first segment will show.
    scaling_ratio: f64,
    measured_scaling_ratio: f64,
    /// The largest payload so far (icsk_ack.rcv_mss).
    rcv_mss: u32,
    /// The window of an empty buffer, bytes (tcp_full_space).
    full_space: u64,
    /// The window of a buffer with one segment in order, and the bytes that this segment uses.
    segment_space: u64,
    segment_rmem: u64,
    /// The offered part; it grows with arriving segments (rcv_ssthresh).
    rcv_ssthresh: u64,
    /// 2 to the power of the window scale (rcv_wscale): windows are rounded up to multiples of it.
    granularity: u64,
    /// The window in a SYN-ACK, bytes: whole segments, and unscaled (tcp_select_initial_window).
    syn_window: u16,
    /// The right edge of the window; it never moves left (RFC 9293 §3.8.6).
    right_edge: u64,
    /// The window offered last (rcv_wnd).
    rcv_wnd: u64,
    timestamps: bool,
    /// Payload of a full segment without AccECN's option (tp->advmss).
    advmss: u32,
    tsecr: Option<Millis>,
    /// The receiver's RTT in eighths of a µs (rcv_rtt_est.rtt_us): the least sample. A larger
    /// sample raises it by an eighth of the difference.
    rcv_rtt: u64,
    /// Without stamps the RTT is the least time that one window of data took. The window ends when
    /// RCV.NXT reaches this segment (rcv_rtt_est.seq).
    rcv_rtt_seq: u32,
    rcv_rtt_time: Time,
    /// The start of right-sizing's current RTT, whole µs; NOT_BEGUN before the first.
    rcvq_us: u64,
    copied_seq: u64,
    /// The most bytes delivered in one RTT (rcvq_space.space).
    rcvq_space: u64,
}

/// The largest buffer that a program may request (net.core.rmem_max), bytes.
const RMEM_MAX: u64 = 212_992;
/// The largest payload that is assumed before the first segment, bytes (tcp_initialize_rcv_mss).
const LEAST_RCV_MSS: u32 = 536;
/// The payload of the smallest segment that may open the window, bytes (tcp_event_data_recv).
const GROWING: u64 = 128;
/// A microsecond, ns.
const MICRO: u64 = 1_000;
/// No sample yet: longer than any RTT, and short enough for sums not to overflow.
const NO_RTT: u64 = 1 << 56;
/// No RTT of right-sizing has begun.
const NOT_BEGUN: u64 = u64::MAX;
/// TCP_DEFAULT_SCALING_RATIO: the fraction before the first segment has shown the share of data in
/// its truesize.
const DEFAULT_SCALING_RATIO: f64 = 0.5;

impl Window {
    /// The state before the first segment. A segment in order uses `segment_rmem` bytes of the
    /// buffer.
    pub fn new(params: &TcpParams, segment_rmem: u64) -> Window {
        let (rcvbuf, rcvbuf_max) = (
            params.buffers.receive_buffer,
            params.buffers.receive_buffer_max.max(params.buffers.receive_buffer),
        );
        let measured_scaling_ratio = params.buffers.receive_window_fraction;
        let scaling_ratio =
            if rcvbuf < rcvbuf_max { DEFAULT_SCALING_RATIO } else { measured_scaling_ratio };
        let space = part(rcvbuf, scaling_ratio);
        // The scale covers the whole buffer, though not all of it can be advertised
        // (tcp_select_initial_window; RFC 7323 §2.3).
        let scale = rcvbuf_max.max(RMEM_MAX).ilog2().saturating_sub(15).min(14);
        let advmss = params.mss_without_options();
        let mss = u64::from(advmss);
        let mut rcv_ssthresh = space;
        if rcvbuf < rcvbuf_max {
            rcv_ssthresh = rcv_ssthresh.saturating_sub(mss).max(space.min(2 * mss));
        }
        let measures_rtt = rcvbuf < rcvbuf_max || params.acks.sack_delay_ns > 0;
        let mut window = Window {
            rcvbuf,
            rcvbuf_max,
            may_grow: rcvbuf < rcvbuf_max,
            measures_rtt,
            right_sizing: params.buffers.right_sizing,
            scaling_ratio,
            measured_scaling_ratio,
            rcv_mss: LEAST_RCV_MSS,
            full_space: space,
            segment_space: 0,
            segment_rmem,
            rcv_ssthresh,
            granularity: 1 << scale,
            syn_window: (space / mss * mss).min(u16::MAX.into()) as u16,
            right_edge: 0,
            rcv_wnd: 0,
            timestamps: params.timestamps,
            advmss,
            tsecr: None,
            rcv_rtt: NO_RTT,
            // If nothing uses the RTT, RCV.NXT never reaches this segment.
            rcv_rtt_seq: if measures_rtt { 0 } else { u32::MAX },
            rcv_rtt_time: Time::NEVER,
            rcvq_us: NOT_BEGUN,
            copied_seq: 0,
            // tcp_init_buffer_space: ten segments, the sender's initial window.
            rcvq_space: space.min(10 * u64::from(advmss)).max(1),
        };
        window.measure_space();
        window.select_window(0, 0);
        window
    }

    /// The window scale (RFC 7323 §2).
    pub fn scale(&self) -> u32 {
        self.granularity.trailing_zeros()
    }

    /// The window in a SYN-ACK, bytes.
    pub fn syn_window(&self) -> u16 {
        self.syn_window
    }

    /// tcp_measure_rcv_mss: a segment that is larger than all earlier ones shows how much of its
    /// truesize is data.
    #[inline]
    pub fn measure_rcv_mss(&mut self, len: u32, mss: u32) {
        if len > self.rcv_mss {
            self.measure_scaling_ratio(len, mss);
        }
    }

    #[cold]
    fn measure_scaling_ratio(&mut self, len: u32, mss: u32) {
        self.rcv_mss = len;
        if len >= mss {
            self.scaling_ratio = self.measured_scaling_ratio;
        } else if self.may_grow {
            let share = (u64::from(len) << 8) / memory::segment(len.into());
            self.scaling_ratio = share as f64 / 256.0;
        }
        self.measure_space();
        self.rcv_ssthresh = self.rcv_ssthresh.min(self.full_space);
    }

    /// Recomputes the space after a change of the buffer or of its fraction.
    #[cold]
    fn measure_space(&mut self) {
        self.full_space = part(self.rcvbuf, self.scaling_ratio);
        let left = self.rcvbuf.saturating_sub(self.segment_rmem);
        self.segment_space = part(left, self.scaling_ratio);
    }

    /// The first RTT of right-sizing begins.
    pub fn init_buffer_space(&mut self, now: Time) {
        self.rcvq_us = now.0 / MICRO;
    }

    /// Whether the buffer may grow.
    #[inline]
    pub fn may_grow(&self) -> bool {
        self.may_grow
    }

    /// The window that the buffer allows with `rmem` bytes in use, bytes (tcp_space).
    #[inline]
    fn free_space(&self, rmem: u64) -> u64 {
        if rmem == self.segment_rmem {
            self.segment_space
        } else if rmem == 0 {
            self.full_space
        } else {
            part(self.rcvbuf.saturating_sub(rmem), self.scaling_ratio)
        }
    }

    /// The RTT measured by stamps or windows; zero before the first sample.
    pub fn rcv_rtt(&self) -> Span {
        if self.rcv_rtt == NO_RTT { Span::ZERO } else { Span(self.rcv_rtt * MICRO / 8) }
    }

    /// The window that the buffer and `rcv_ssthresh` allow, rounded up to the window scale
    /// (__tcp_select_window).
    #[inline]
    fn new_window(&self, rmem: u64) -> u64 {
        self.scaled(self.free_space(rmem).min(self.rcv_ssthresh))
    }

    #[inline]
    fn scaled(&self, window: u64) -> u64 {
        let below = self.granularity - 1;
        window.saturating_add(below) & !below
    }

    /// The window that an ACK sent now would offer, bytes, with these delivered and buffered bytes.
    #[inline]
    pub fn window(&self, delivered: u64, rmem: u64) -> u64 {
        let left = self.right_edge.saturating_sub(delivered);
        self.scaled(left.max(self.free_space(rmem).min(self.rcv_ssthresh)))
    }

    /// More than half of the buffer is used; then quick ACKs end (__tcp_select_window).
    #[inline]
    pub fn is_half_full(&self, rmem: u64) -> bool {
        rmem > 0 && self.free_space(rmem) < self.full_space / 2
    }

    /// The window would be at least the one offered last (__tcp_ack_snd_check).
    #[inline]
    pub fn keeps_rcv_wnd(&self, rmem: u64) -> bool {
        self.new_window(rmem) >= self.rcv_wnd
    }

    /// tcp_cleanup_rbuf: a window update is worth an ACK if the remaining window is small. It must
    /// be at most half of the buffer's room, and at most half of the window that could be offered.
    #[cold]
    pub fn update_is_worthwhile(&self, rmem: u64, delivered: u64) -> bool {
        let left = self.right_edge.saturating_sub(delivered).saturating_mul(2);
        let new_window = self.new_window(rmem);
        left <= self.full_space && new_window >= left && new_window > 0
    }

    /// Whether the window is smaller than an empty buffer allows.
    #[inline]
    pub fn can_open(&self) -> bool {
        self.rcv_ssthresh < self.full_space
    }

    /// tcp_grow_window: opens the window by two segments, at most to the space that `rmem` leaves.
    /// Returns whether it opened.
    #[inline]
    pub fn grow_window(&mut self, rmem: u64) -> bool {
        self.can_open() && self.grow_by(2 * u64::from(self.advmss), rmem)
    }

    /// tcp_grow_window for a segment shorter than the MSS. If data is a small share of its buffer,
    /// the window opens by less, and not at all once it is large (__tcp_grow_window).
    #[cold]
    pub fn grow_window_by_short(&mut self, len: u32, mss: u32, rmem: u64) -> bool {
        let len = u64::from(len);
        if len < GROWING {
            return false;
        }
        let mut truesize = part(memory::segment(len), self.scaling_ratio);
        if truesize <= len {
            return self.grow_window(rmem);
        }
        let mut window = part(self.rcvbuf_max, self.scaling_ratio) / 2;
        truesize /= 2;
        while truesize > len {
            (truesize, window) = (truesize / 2, window / 2);
        }
        self.rcv_ssthresh <= window && self.grow_by(2 * len.max(mss.into()), rmem)
    }

    #[inline]
    fn grow_by(&mut self, bytes: u64, rmem: u64) -> bool {
        let most = self.free_space(rmem);
        let grow_window = self.rcv_ssthresh < most;
        if grow_window {
            self.rcv_ssthresh = most.min(self.rcv_ssthresh + bytes);
        }
        grow_window
    }

    /// tcp_select_window: the window of the ACK that is sent now.
    #[inline]
    pub fn select_window(&mut self, delivered: u64, rmem: u64) -> u64 {
        let window = self.window(delivered, rmem);
        self.right_edge = self.right_edge.max(delivered.saturating_add(window));
        self.rcv_wnd = window;
        window
    }

    /// tcp_rcv_rtt_measure_ts: a segment that echoes a new stamp gives an RTT sample. The first
    /// sample is twice the first segment's one-way delay.
    #[inline]
    pub fn rcv_rtt_measure_ts(&mut self, segment: &Segment, mss: u32, one_way: Span, now: Time) {
        if !self.measures_rtt {
            return;
        }
        if self.rcvq_us == NOT_BEGUN {
            self.rcvq_us = now.0 / MICRO;
            if self.timestamps {
                self.rcv_rtt_update(one_way * 2, true);
            }
        }
        if segment.echo != self.tsecr
            && let Some(echo) = segment.echo
        {
            self.tsecr = segment.echo;
            if segment.len >= mss {
                self.rcv_rtt_update(Millis::at(now).since(echo), true);
            }
        }
    }

    /// An ACK without data echoes this stamp, off the fast path. A segment that echoes the same
    /// stamp later gives no sample.
    pub fn on_bare_stamp(&mut self, echo: Millis) {
        self.tsecr = Some(echo);
    }

    #[inline]
    fn rcv_rtt_update(&mut self, rtt: Span, smooth: bool) {
        if rtt == Span::ZERO {
            return;
        }
        let micros = rtt.0 / MICRO;
        if micros * 8 < self.rcv_rtt {
            self.rcv_rtt = micros * 8;
        } else if smooth {
            self.rcv_rtt = self.rcv_rtt - self.rcv_rtt / 8 + micros;
        }
    }

    /// tcp_rcv_space_adjust: the application has read up to `delivered`. The next `behind` bytes
    /// come from a filled gap and belong to the next RTT. `beyond` is the distance in bytes from
    /// RCV.NXT to the last byte beyond a further gap. While the buffer may not grow this is one
    /// comparison.
    #[inline]
    pub fn rcv_space_adjust(&mut self, delivered: u64, (behind, beyond): (u64, u64), now: Time) {
        if !self.may_grow() {
            return;
        }
        // Before the first sample the RTT counts as longer than any time. Both ends are readings in
        // whole µs.
        if now.0 >= (self.rcvq_us + self.rcv_rtt / 8) * MICRO {
            self.resize_buffer(delivered, behind, beyond);
            self.rcvq_us = now.0 / MICRO;
        }
    }

    /// tcp_rcv_rtt_measure: a sender sends at most one window in an RTT. RCV.NXT has become `next`
    /// through a segment in order, which no ACK has covered yet.
    #[inline]
    pub fn rcv_rtt_measure(&mut self, next: u32, mss: u32, now: Time) {
        if next >= self.rcv_rtt_seq {
            self.end_of_window(next, mss, now);
        }
    }

    #[cold]
    fn end_of_window(&mut self, next: u32, mss: u32, now: Time) {
        if self.rcv_rtt_time != Time::NEVER {
            self.rcv_rtt_update(Span(whole_micros(self.rcv_rtt_time, now) * MICRO), false);
        }
        let segments = self.rcv_wnd.div_ceil(u64::from(mss.max(1)));
        self.rcv_rtt_seq = next.saturating_add(segments.clamp(1, u64::from(u32::MAX)) as u32);
        self.rcv_rtt_time = now;
    }

    /// Dynamic right-sizing, once an RTT. c is the bytes copied in this RTT, p those of the last
    /// one:
    ///
    /// ```text
    /// buffer = (w + 2 w (c - p)/p) / scaling_ratio,  w = 2 c + 16 mss
    /// ```
    ///
    /// So the window never limits a sender in slow start. In Linux 7.3 w = 2 c, and the `beyond`
    /// bytes up to the last byte beyond a gap are added.
    #[cold]
    fn resize_buffer(&mut self, delivered: u64, behind: u64, beyond: u64) {
        let copied = (delivered - self.copied_seq).saturating_sub(behind);
        self.copied_seq = delivered;
        if copied <= self.rcvq_space {
            return;
        }
        let (cushion, beyond) = match self.right_sizing {
            RightSizing::Linux612 => (16 * u128::from(self.advmss), 0),
            RightSizing::Linux73 => (0, u128::from(beyond)),
        };
        let wanted = 2 * u128::from(copied) + cushion;
        let growth = wanted * u128::from(copied - self.rcvq_space) / u128::from(self.rcvq_space);
        let growth = self.low_rtt_growth(wanted).unwrap_or(2 * growth);
        self.rcvq_space = copied;
        self.grow_buffer(wanted + growth + beyond);
    }

    /// Linux 7.3 (tcp_data_queue_ofo): at each arrival beyond a gap the buffer grows to have room
    /// for twice the bytes of the last RTT. It must also have room up to the last byte that has
    /// arrived, which is `beyond` bytes after RCV.NXT.
    #[cold]
    pub fn on_out_of_order(&mut self, beyond: u64) {
        if self.right_sizing == RightSizing::Linux612 || !self.may_grow() {
            return;
        }
        let wanted = 2 * u128::from(self.rcvq_space);
        let growth = self.low_rtt_growth(wanted).unwrap_or(0);
        self.grow_buffer(wanted + growth + u128::from(beyond));
    }

    /// Linux 7.3: with an RTT below tcp_rcvbuf_low_rtt the window grows in proportion to the RTT.
    /// `None` before the first sample.
    fn low_rtt_growth(&self, wanted: u128) -> Option<u128> {
        const LOW_RTT_US: u64 = 1_000;
        let rtt = if self.rcv_rtt == NO_RTT { 0 } else { self.rcv_rtt / 8 };
        let applies = self.right_sizing == RightSizing::Linux73 && rtt < LOW_RTT_US;
        applies.then(|| wanted * u128::from(rtt) / u128::from(LOW_RTT_US))
    }

    /// Grows the buffer until its advertised part has `window` bytes, up to the bound; it never
    /// shrinks.
    fn grow_buffer(&mut self, window: u128) {
        let buffer = (window as f64 / self.scaling_ratio) as u64;
        self.rcvbuf = self.rcvbuf.max(buffer.min(self.rcvbuf_max));
        self.may_grow = self.rcvbuf < self.rcvbuf_max;
        self.measure_space();
    }
}

/// The time between two readings of a clock of whole µs (tcp_stamp_us_delta). Packets and RTTs are
/// often multiples of one time, so rounding decides.
#[inline]
fn whole_micros(from: Time, to: Time) -> u64 {
    (to.0 / MICRO).saturating_sub(from.0 / MICRO)
}

/// A fraction of a buffer, rounded down.
fn part(buffer: u64, scaling_ratio: f64) -> u64 {
    if buffer >= 1 << 62 {
        // The buffer has no limit.
        return (buffer as f64 * scaling_ratio) as u64;
    }
    whole(buffer as i64 as f64 * scaling_ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::test::params;

    fn window() -> Window {
        let sizes = params().with(|p| {
            p.buffers.receive_buffer = 100_000;
            p.buffers.receive_buffer_max = 1 << 30;
        });
        let half = sizes.with(|p| p.buffers.receive_window_fraction = 0.5);
        let mut window = Window::new(&half, 1832);
        window.measure_rcv_mss(1000, 1000);
        window
    }

    #[test]
    fn a_round_with_twice_the_data_grows_the_buffer_as_in_linux() {
        // Twice 20 000 bytes and 16 segments are 56 000. This round brought twice the last round's
        // bytes, so twice 56 000 is added.
        let mut window = window();
        window.rcvq_space = 10_000;
        window.resize_buffer(20_000, 0, 0);
        assert_eq!((window.rcvbuf, window.full_space), (336_000, 168_000));
        window.resize_buffer(40_000, 0, 0);
        assert_eq!(window.rcvbuf, 336_000, "no more than in the last round: no growth");
    }

    #[test]
    fn linux_7_3_has_no_cushion_and_counts_out_of_order_data() {
        let mut window = window();
        (window.right_sizing, window.rcvq_space) = (RightSizing::Linux73, 10_000);
        window.rcv_rtt_update(Span::from_millis(20), true);
        // Twice 20 000 bytes; twice that, because this round brought twice the last round's bytes;
        // and 9 000.
        window.resize_buffer(20_000, 0, 9_000);
        assert_eq!(window.full_space, 40_000 + 80_000 + 9_000);
        window.on_out_of_order(100_000);
        assert_eq!(window.full_space, 40_000 + 100_000, "room for the last round once more");
        window.on_out_of_order(50_000);
        assert_eq!(window.full_space, 140_000, "it never shrinks");
    }

    #[test]
    fn linux_7_3_grows_by_its_share_of_a_millisecond_where_the_rtt_is_less() {
        let mut window = window();
        (window.right_sizing, window.rcvq_space) = (RightSizing::Linux73, 10_000);
        window.rcv_rtt_update(Span(250_000), true);
        window.resize_buffer(40_000, 0, 0);
        assert_eq!(window.full_space, 80_000 + 20_000);
    }

    #[test]
    fn the_rtt_falls_at_once_and_rises_by_eighths() {
        let mut window = window();
        for (rcv_rtt_update, eighths) in [(100, 800), (200, 900), (50, 400)] {
            window.rcv_rtt_update(Span(rcv_rtt_update * MICRO), true);
            assert_eq!(window.rcv_rtt, eighths);
        }
    }

    #[test]
    fn a_window_of_data_bounds_the_rtt_from_above() {
        // 10 500 bytes end within the eleventh segment. The next window begins before this window's
        // ACK is sent.
        let mut window = window();
        window.rcv_wnd = 10_500;
        let mut measured = |next, ms: u64, rcv_wnd| {
            window.rcv_rtt_measure(next, 1000, Time(ms * MICRO * MICRO));
            window.rcv_wnd = rcv_wnd;
            window.rcv_rtt().0 / (MICRO * MICRO)
        };
        assert_eq!([measured(1, 5, 10_500), measured(11, 14, 10_500)], [0, 0]);
        assert_eq!(measured(12, 15, 20_000), 10);
        assert_eq!(measured(23, 24, 20_000), 9);
    }

    #[test]
    fn half_full_is_more_than_half() {
        let window = window();
        assert!(!window.is_half_full(50_000));
        assert!(window.is_half_full(50_002));
    }
}
