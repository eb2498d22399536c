//! The receive window: what of the buffer is offered, and how both grow.
//!
//! The buffer grows by dynamic right-sizing: a sender that may double its window every RTT needs,
//! an RTT from now, twice what it delivered in the last one. The RTT is that of stamps that data
//! echo: the least one, followed upwards by eighths. What the buffer allows is not offered at once:
//! the window opens by two segments with each that arrives.
//!
//! Sources: RFC 9293 §3.8.6; Fisk and Feng, "Dynamic Right-Sizing in TCP" (2001), with Linux's
//! arithmetic (tcp_rcv_space_adjust, tcp_rcv_rtt_update, tcp_grow_window). Deviations: a buffer of
//! a fixed size is offered whole from the start, where Linux opens that, too. Most tests are the
//! receiver's.

use crate::{Millis, Segment, TcpParams};
use units::{Span, Time};

/// The receive window and its growth. Positions are bytes of the stream.
#[derive(Clone, Debug)]
pub struct Window {
    /// The receive buffer, and the bound it grows to, bytes.
    buffer: u64,
    buffer_max: u64,
    /// Of it may be advertised, and once the first segment is there.
    fraction: f64,
    fraction_measured: f64,
    /// What may be offered when the buffer is empty, bytes.
    space: u64,
    /// How much of `space` is offered: it opens with what arrives (Linux's rcv_ssthresh).
    open: u64,
    /// What is offered is a multiple of 2 to this power, rounded up.
    scale: u32,
    /// The right edge offered; it never moves left (RFC 9293 §3.8.6).
    edge: u64,
    /// The window offered last.
    told: u64,
    timestamps: bool,
    echo: Option<Millis>,
    /// The receiver's RTT in eighths of a ns: the least sample, and upwards an eighth of the way
    /// with each.
    rtt: u64,
    /// Without stamps it is the least time that one window of data took: when this segment is next
    /// it is over.
    rtt_mark: u32,
    rtt_start: Time,
    round_start: Time,
    round_start_bytes: u64,
    /// The most bytes delivered in one round.
    round_max: u64,
}

/// No sample yet.
const NO_RTT: u64 = u64::MAX;
/// The part of its buffer that Linux takes for advertisable before it has seen how much room a
/// segment's data needs.
const PART_AT_FIRST: f64 = 0.5;

impl Window {
    /// Before the first segment.
    pub fn new(params: &TcpParams) -> Window {
        let (buffer, buffer_max) = (
            params.buffers.receive_buffer,
            params.buffers.receive_buffer_max.max(params.buffers.receive_buffer),
        );
        let fraction_measured = params.buffers.receive_window_fraction;
        let fraction = if buffer < buffer_max { PART_AT_FIRST } else { fraction_measured };
        let (space, space_max) = (part(buffer, fraction), part(buffer_max, fraction_measured));
        // As much as a window of 16 bits needs (RFC 7323 §2.3).
        let scale = (space_max.max(1).ilog2().saturating_sub(15)).min(14);
        let mut open = space;
        if buffer < buffer_max {
            let mss = u64::from(params.mss);
            open = open.saturating_sub(mss).max(space.min(2 * mss));
        }
        let mut window = Window {
            buffer,
            buffer_max,
            fraction,
            fraction_measured,
            space,
            open,
            scale,
            edge: 0,
            told: 0,
            timestamps: params.timestamps,
            echo: None,
            rtt: NO_RTT,
            rtt_mark: 0,
            rtt_start: Time::NEVER,
            round_start: Time::NEVER,
            round_start_bytes: 0,
            // Linux starts from ten segments: what a sender has in flight at first.
            round_max: space.min(10 * u64::from(params.mss)).max(1),
        };
        window.offer(0, 0);
        window
    }

    /// What is offered is a multiple of 2 to the power of (RFC 7323 §2).
    pub fn scale(&self) -> u32 {
        self.scale
    }

    /// The first segment shows how much of its room is data.
    #[cold]
    pub fn measure(&mut self) {
        self.fraction = self.fraction_measured;
        self.space = part(self.buffer, self.fraction);
        self.open = self.open.min(self.space);
    }

    /// The first round begins.
    pub fn begin(&mut self, now: Time) {
        self.round_start = now;
    }

    /// Whether the buffer may still grow.
    #[inline]
    pub fn grows(&self) -> bool {
        self.buffer < self.buffer_max
    }

    /// What may be offered with so much of the buffer taken, were it open.
    #[inline]
    fn free(&self, taken: u64) -> u64 {
        if taken == 0 { self.space } else { part(self.buffer.saturating_sub(taken), self.fraction) }
    }

    /// What is open of it, as a window is told.
    #[inline]
    fn room(&self, taken: u64) -> u64 {
        self.scaled(self.free(taken).min(self.open))
    }

    #[inline]
    fn scaled(&self, window: u64) -> u64 {
        let below = (1 << self.scale) - 1;
        window.saturating_add(below) & !below
    }

    /// What an ACK sent now would offer, bytes, with so much delivered and so much of the buffer
    /// taken.
    #[inline]
    pub fn offered(&self, delivered: u64, taken: u64) -> u64 {
        let left = self.edge.saturating_sub(delivered);
        self.scaled(left.max(self.free(taken).min(self.open)))
    }

    /// More than half of the room is taken.
    #[inline]
    pub fn is_half_full(&self, taken: u64) -> bool {
        taken > 0 && self.free(taken) < self.space / 2
    }

    /// There is room for the window that was offered last.
    #[inline]
    pub fn as_wide_as_told(&self, taken: u64) -> bool {
        self.room(taken) >= self.told
    }

    /// What is left of the window is a half of the room at most, and a half of what could be
    /// offered: worth an ACK (tcp_cleanup_rbuf).
    #[cold]
    pub fn doubles(&self, taken: u64, delivered: u64) -> bool {
        let left = self.edge.saturating_sub(delivered).saturating_mul(2);
        let room = self.room(taken);
        left <= self.space && room >= left && room > 0
    }

    /// The window opens by two segments, as far as what is taken allows; whether it did.
    #[inline]
    pub fn opens(&mut self, taken: u64, mss: u32) -> bool {
        if self.open >= self.space {
            return false;
        }
        let most = self.free(taken);
        let opens = self.open < most;
        if opens {
            self.open = most.min(self.open + 2 * u64::from(mss));
        }
        opens
    }

    /// What the ACK that is sent now offers.
    #[inline]
    pub fn offer(&mut self, delivered: u64, taken: u64) -> u64 {
        let window = self.offered(delivered, taken);
        self.edge = self.edge.max(delivered.saturating_add(window));
        self.told = window;
        window
    }

    /// A segment that answers another ACK than the last one did is a sample of the RTT; the first
    /// one takes `one_way` twice.
    #[inline]
    pub fn hear(&mut self, segment: &Segment, mss: u32, one_way: Span, now: Time) {
        if !self.grows() {
            return;
        }
        if self.round_start == Time::NEVER {
            self.round_start = now;
            if self.timestamps {
                self.sample(one_way * 2, true);
            }
        }
        if segment.echo != self.echo
            && segment.len >= mss
            && let Some(echo) = segment.echo
        {
            self.echo = segment.echo;
            self.sample(Millis::at(now).since(echo), true);
        }
    }

    #[inline]
    fn sample(&mut self, rtt: Span, smooth: bool) {
        if rtt == Span::ZERO {
            return;
        }
        if rtt.0 * 8 < self.rtt {
            self.rtt = rtt.0 * 8;
        } else if smooth {
            self.rtt = self.rtt - self.rtt / 8 + rtt.0;
        }
    }

    /// Takes note of what was read: up to `delivered`, with so many bytes behind it, of a gap that
    /// is filled, which belong to the next round. While autotuning is off or done this is one
    /// comparison.
    #[inline]
    pub fn adjust(&mut self, next: u32, delivered: u64, behind: u64, mss: u32, now: Time) {
        if !self.grows() {
            return;
        }
        if next >= self.rtt_mark {
            self.time_window(next, mss, now);
        }
        if self.rtt != NO_RTT && now.since(self.round_start).0 >= self.rtt / 8 {
            self.end_round(delivered, behind, mss);
            self.round_start = now;
        }
    }

    /// A sender can't send more than a window in an RTT.
    fn time_window(&mut self, next: u32, mss: u32, now: Time) {
        if self.rtt_start != Time::NEVER {
            self.sample(now.since(self.rtt_start), false);
        }
        let segments = self.told / u64::from(mss.max(1));
        self.rtt_mark = next.saturating_add(segments.clamp(1, u64::from(u32::MAX)) as u32);
        self.rtt_start = now;
    }

    /// Linux's dynamic right-sizing: room for twice what the last RTT brought and 16 segments, and
    /// twice the rate of growth on top, so that a sender in slow start is never held back.
    fn end_round(&mut self, delivered: u64, behind: u64, mss: u32) {
        let copied = (delivered - self.round_start_bytes).saturating_sub(behind);
        self.round_start_bytes = delivered;
        if copied <= self.round_max {
            return;
        }
        let wanted = 2 * u128::from(copied) + 16 * u128::from(mss);
        let growth = wanted * u128::from(copied - self.round_max) / u128::from(self.round_max);
        let buffer = ((wanted + 2 * growth) as f64 / self.fraction) as u64;
        self.buffer = self.buffer.max(buffer.min(self.buffer_max));
        self.space = part(self.buffer, self.fraction);
        self.round_max = copied;
    }
}

/// A fraction of a buffer, rounded down.
#[inline]
fn part(buffer: u64, fraction: f64) -> u64 {
    (buffer as f64 * fraction) as u64
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
        let mut window = Window::new(&sizes.with(|p| p.buffers.receive_window_fraction = 0.5));
        window.measure();
        window
    }

    #[test]
    fn a_round_that_brought_twice_as_much_asks_for_room_as_linux_s() {
        // Twice 20 000 bytes and 16 segments are 56 000; the round brought twice the last one, so
        // twice that on top.
        let mut window = window();
        window.round_max = 10_000;
        window.end_round(20_000, 0, 1000);
        assert_eq!((window.buffer, window.space), (336_000, 168_000));
        window.end_round(40_000, 0, 1000);
        assert_eq!(window.buffer, 336_000, "no more than the round before: nothing new");
    }

    #[test]
    fn the_rtt_falls_at_once_and_rises_by_eighths() {
        let mut window = window();
        for (sample, eighths) in [(100, 800), (200, 900), (50, 400)] {
            window.sample(Span(sample), true);
            assert_eq!(window.rtt, eighths);
        }
    }

    #[test]
    fn half_full_is_more_than_half() {
        let window = window();
        assert!(!window.is_half_full(50_000));
        assert!(window.is_half_full(50_002));
    }
}
