//! The times of acknowledgements: quick ACKs, the delay of a delayed ACK, compressed SACKs.
//!
//! `AckPolicy` is Linux's icsk_ack with the functions that set it. In quick-ACK mode each segment
//! is acknowledged at once. Otherwise a segment that does not make an ACK due is acknowledged after
//! the ato, an estimate of the time between segments. `SackCompression` decides which SACKs of a
//! gap wait.
//!
//! Sources: RFC 5681 §4.2; Linux net/ipv4/tcp_input.c, tcp_output.c and tcp_timer.c, whose
//! functions the comments name.

use super::pending::Pending;
use crate::TcpParams;
use crate::timer::TimerWheel;
use units::{Span, Time};

/// The times at which segments in order are acknowledged (icsk_ack).
#[derive(Clone, Debug)]
pub struct AckPolicy {
    /// Quick ACKs that remain (icsk_ack.quick).
    quick: u32,
    /// Data has left this end within the ato of an arrival, so an ACK waits for data to carry it
    /// (inet_csk_in_pingpong_mode).
    pingpong: bool,
    /// TCP_MAX_QUICKACKS.
    max_quickacks: u32,
    tick: u64,
    /// The least delay, ticks (TCP_ATO_MIN).
    ato_min: u64,
    /// Half of `ato_min`, ns. If the time between two segments is shorter, the ato falls halfway to
    /// `ato_min`.
    half_ato_min: Span,
    /// The longest ato, ticks (TCP_DELACK_MAX).
    ato_max: u64,
    /// The longest delay, ticks: the ACK leaves before the sender's least RTO is over
    /// (tcp_delack_max).
    delay_max: u64,
    /// icsk_ack.ato, ticks. 0 until the first segment in order arrives. But if quick ACKs of other
    /// segments are used up before, it is `ato_min` from then on.
    ato: u64,
    /// The arrival of the last segment (icsk_ack.lrcvtime); before the first, the start of the
    /// connection.
    lrcvtime: Time,
    /// The lower bound of the RTO, ns.
    min_rto: u64,
    /// The handshake's RTT, or SRTT if this end sends data too, ns.
    rtt: u64,
    /// The RTO that follows from that RTT, ns: whole ticks. A pause longer than this
    /// starts quick-ACK mode, because the sender may be in slow start again.
    rto: u64,
}

impl AckPolicy {
    /// The state before the first segment.
    pub fn new(params: &TcpParams) -> AckPolicy {
        let tick = params.timers.timer_tick_ns.max(1);
        let ato_min = params.acks.delayed_ack_ns.div_ceil(tick);
        let ato_max = (params.acks.delayed_ack_max_ns / tick).max(ato_min);
        AckPolicy {
            quick: 0,
            pingpong: false,
            max_quickacks: params.acks.quick_acks,
            tick,
            ato_min,
            half_ato_min: Span(ato_min / 2 * tick),
            ato_max,
            delay_max: ato_max.min((params.timers.min_rto_ns / tick).max(2) - 1).max(ato_min),
            ato: 0,
            lrcvtime: Time::ZERO,
            min_rto: params.timers.min_rto_ns,
            rtt: 0,
            rto: params.timers.initial_rto_ns,
        }
    }

    /// tcp_in_quickack_mode: each segment is acknowledged at once.
    #[inline]
    pub fn in_quickack_mode(&self) -> bool {
        self.quick > 0 && !self.in_pingpong_mode()
    }

    /// inet_csk_in_pingpong_mode: data is expected to carry the next ACK. Cold: few ACKs are
    /// quick, and few segments have PSH.
    #[cold]
    pub fn in_pingpong_mode(&self) -> bool {
        self.pingpong
    }

    /// tcp_event_data_sent: data leaves this end.
    pub fn event_data_sent(&mut self, now: Time) {
        let ticks = now.0 / self.tick - self.lrcvtime.0 / self.tick;
        self.pingpong |= ticks < self.ato;
    }

    /// tcp_enter_quickack_mode: at least this many quick ACKs, and the least ato.
    #[cold]
    pub fn enter_quickack_mode(&mut self, quick: u32) {
        self.quick = self.quick.max(quick);
        self.pingpong = false;
        self.ato = self.ato_min;
    }

    /// Quick ACKs after a duplicate (tcp_send_dupack).
    #[cold]
    pub fn on_duplicate(&mut self) {
        self.enter_quickack_mode(self.max_quickacks);
    }

    /// tcp_dec_quickack_mode: an ACK leaves.
    #[inline]
    pub fn dec_quickack_mode(&mut self) {
        if self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = self.ato_min;
            }
        }
    }

    /// More than half of the buffer is used: quick ACKs end (__tcp_select_window).
    #[cold]
    pub fn on_half_full(&mut self) {
        self.quick = 0;
    }

    /// The window has opened: this segment is acknowledged at once (tcp_grow_window).
    #[inline]
    pub fn on_window_growth(&mut self) {
        if self.max_quickacks > 0 {
            self.quick |= 1;
        }
    }

    /// tcp_event_data_recv: a segment in order has arrived. The first one, and one after a pause,
    /// start quick-ACK mode (tcp_incr_quickack).
    #[inline]
    pub fn event_data_recv(&mut self, now: Time) {
        if self.begins_or_follows_a_pause(now) {
            self.quick = self.quick.max(self.max_quickacks);
        }
    }

    /// Whether this segment in order is the first, or follows a pause longer than the RTO. Moves
    /// the ato towards the time since the last segment.
    #[inline]
    fn begins_or_follows_a_pause(&mut self, now: Time) -> bool {
        let last = std::mem::replace(&mut self.lrcvtime, now);
        if now.since(last) < self.half_ato_min && self.ato == self.ato_min {
            return false;
        }
        self.ato_moves(last, now)
    }

    /// The slow path of `begins_or_follows_a_pause`, where the ato may change.
    #[cold]
    fn ato_moves(&mut self, last: Time, now: Time) -> bool {
        if self.ato == 0 {
            self.ato = self.ato_min;
            return true;
        }
        let half = self.ato_min / 2;
        if now.since(last) < self.half_ato_min {
            if self.ato > self.ato_min {
                self.ato = self.ato / 2 + half;
            }
            return false;
        }
        let ticks = now.0 / self.tick - last.0 / self.tick;
        if ticks <= half {
            self.ato = self.ato / 2 + half;
        } else if ticks < self.ato {
            self.ato = (self.ato / 2 + ticks).min(self.rto / self.tick).min(self.ato_max);
        } else {
            return ticks * self.tick > self.rto;
        }
        false
    }

    /// tcp_delack_timer_handler: no segment came before the delayed ACK left, so the ato doubles. If
    /// data was expected to carry the ACK, this expectation ends instead.
    pub fn on_delack_timeout(&mut self) {
        if std::mem::take(&mut self.pingpong) {
            self.ato = self.ato_min;
            return;
        }
        self.ato = (2 * self.ato).min((self.rto / self.tick).max(self.ato_min)).min(self.ato_max);
    }

    /// tcp_send_delayed_ack: the delay, bounded by the RTT and `delay_max`.
    #[inline]
    pub fn delay(&self) -> Span {
        if self.ato <= self.ato_min {
            return Span(self.ato_min * self.tick);
        }
        let bound = (self.rtt.div_ceil(self.tick)).max(self.ato_min);
        Span(self.ato.min(bound).min(self.delay_max) * self.tick)
    }

    /// The RTT: the handshake's, or that of this end's own data.
    pub fn rtt(&self) -> Span {
        Span(self.rtt)
    }

    /// The handshake is complete, with or without an RTT sample.
    pub fn established(&mut self, rtt: Option<Span>, now: Time) {
        self.lrcvtime = now;
        if let Some(rtt) = rtt {
            self.set_rtt(rtt);
        }
    }

    /// This end sends data too, and has measured its RTT.
    pub fn measured(&mut self, srtt: Span, rto: Span) {
        (self.rtt, self.rto) = (srtt.0, rto.0.div_ceil(self.tick) * self.tick);
    }

    fn set_rtt(&mut self, rtt: Span) {
        self.rtt = rtt.0;
        let rto = self.rtt + self.min_rto.max(2 * self.rtt);
        self.rto = rto.div_ceil(self.tick) * self.tick;
    }

    /// Without a handshake: a segment had a smaller one-way delay than all earlier ones. The RTT is
    /// estimated as this least delay plus the one-way delay of the first segment. A handshake would
    /// measure about that: the queue of the moment in one direction, and no queue in the other.
    #[cold]
    pub fn estimate_rtt(&mut self, one_way: Span, least: Span) {
        let first = if least.0 == u64::MAX { one_way.0 } else { self.rtt - least.0 };
        self.set_rtt(Span(first + one_way.0));
    }
}

/// SACKs of one gap that leave at once, before the others wait (TCP_FASTRETRANS_THRESH).
const PROMPT_SACKS: u32 = 3;

/// The rule for which SACKs wait, and how long (__tcp_ack_snd_check).
#[derive(Clone, Debug)]
pub struct SackCompression {
    /// The longest wait (tcp_comp_sack_delay_ns); with 0 no SACK waits.
    delay: Span,
    /// The longest wait as a share of the RTT, percent (tcp_comp_sack_rtt_percent).
    rtt_percent: u64,
    /// The slack of the timer (tcp_comp_sack_slack_ns).
    slack: Span,
    /// A compressed SACK's timestamp is the arrival time of the latest segment.
    stamp_is_late: bool,
    /// RCV.NXT of the gap whose SACKs are counted (compressed_ack_rcv_nxt).
    rcv_nxt: u32,
    /// SACKs of this gap (dup_ack_counter).
    dup_acks: u32,
    /// The delayed-ACK timer as last armed. Linux leaves it running when the ACK is sent early
    /// (icsk_delack_timer); when it expires, it sends a compressed SACK too.
    delack_timer: Time,
    /// The delay for which it was armed. Its tick is computed when a SACK needs it.
    delack_delay: Span,
}

impl SackCompression {
    /// The state before the first gap.
    pub fn new(params: &TcpParams) -> SackCompression {
        SackCompression {
            delay: Span(params.acks.sack_delay_ns),
            rtt_percent: u64::from(params.acks.sack_rtt_percent),
            slack: Span(params.acks.sack_slack_ns),
            stamp_is_late: params.acks.sack_stamp_is_late,
            rcv_nxt: 0,
            dup_acks: 0,
            delack_timer: Time::ZERO,
            delack_delay: Span::ZERO,
        }
    }

    /// A delayed ACK is pending.
    #[inline]
    pub fn on_delayed_ack(&mut self, due: Time, delay: Span) {
        (self.delack_timer, self.delack_delay) = (due, delay);
    }

    /// An ACK that fills part of a gap counts as the first SACK of the remaining gap.
    #[cold]
    pub fn on_partial_fill(&mut self, rcv_nxt: u32) {
        (self.rcv_nxt, self.dup_acks) = (rcv_nxt, 1);
    }

    /// Whether the SACK of a segment beyond the gap at `rcv_nxt` waits.
    #[cold]
    pub fn compresses(&mut self, rcv_nxt: u32) -> bool {
        if self.delay == Span::ZERO {
            return false;
        }
        let sent = if self.rcv_nxt == rcv_nxt { self.dup_acks } else { 0 };
        (self.rcv_nxt, self.dup_acks) = (rcv_nxt, sent + 1);
        sent >= PROMPT_SACKS
    }

    /// A compressed SACK that starts to wait now: for its share of the RTT or the longest wait,
    /// whichever is less, plus tcp_comp_sack_slack_ns.
    #[cold]
    pub fn pending(&self, rtt: Span, wheel: &TimerWheel, now: Time) -> Pending {
        let share = Span(rtt.0.saturating_mul(self.rtt_percent) / 100);
        let due = now + share.min(self.delay) + self.slack;
        let delack = wheel.expiry(self.delack_timer, self.delack_delay);
        if delack > now && delack <= due {
            return Pending::Sack { due: delack, arrived: Time::NEVER };
        }
        Pending::Sack { due, arrived: if self.stamp_is_late { now } else { Time::NEVER } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn policy() -> AckPolicy {
        let mut policy = AckPolicy::new(&TcpParams::LINUX);
        policy.established(Some(Span::from_millis(100)), Time::ZERO);
        policy
    }

    #[test]
    fn sixteen_quick_acks_begin_a_connection_and_follow_a_pause() {
        let mut policy = policy();
        let mut quick_acks_from = |ms: u64| {
            policy.event_data_recv(Time(ms * MS));
            let mut count = 0;
            while policy.in_quickack_mode() {
                policy.dec_quickack_mode();
                count += 1;
            }
            count
        };
        assert_eq!(quick_acks_from(100), 16);
        assert_eq!(quick_acks_from(101), 0);
        // RTO: 100 ms + max(200, 2 · 100) ms.
        assert_eq!(quick_acks_from(401), 0);
        assert_eq!(quick_acks_from(705), 16);
    }

    #[test]
    fn a_pause_as_long_as_the_rto_in_whole_ticks_does_not_count() {
        // 20.1 + 200 ms are 56 ticks of 4 ms, rounded up.
        for (pause, quick) in [(56, false), (57, true)] {
            let mut policy = AckPolicy::new(&TcpParams::LINUX);
            policy.established(Some(Span(20_100_000)), Time::ZERO);
            policy.event_data_recv(Time(4 * MS));
            while policy.in_quickack_mode() {
                policy.dec_quickack_mode();
            }
            policy.event_data_recv(Time((1 + pause) * 4 * MS));
            assert_eq!(policy.in_quickack_mode(), quick, "{pause}");
        }
    }

    #[test]
    fn an_expired_delayed_ack_doubles_the_ato_up_to_the_rtt() {
        let mut policy = policy();
        policy.event_data_recv(Time(100 * MS));
        let mut delay = || {
            let delay = policy.delay();
            policy.on_delack_timeout();
            delay.0 / MS
        };
        assert_eq!([delay(), delay(), delay(), delay()], [40, 80, 100, 100]);
    }

    #[test]
    fn a_delay_ends_a_tick_before_the_least_rto() {
        let mut policy = AckPolicy::new(&TcpParams::LINUX);
        policy.established(Some(Span::from_secs(1)), Time::ZERO);
        policy.event_data_recv(Time(100 * MS));
        let mut delay = || {
            let delay = policy.delay();
            policy.on_delack_timeout();
            delay.0 / MS
        };
        // 10, 20, 40 and 50 ticks; 50 is one too long.
        assert_eq!([delay(), delay(), delay(), delay(), delay()], [40, 80, 160, 196, 196]);
    }

    #[test]
    fn the_first_three_sacks_of_a_gap_leave_at_once() {
        let mut sacks = SackCompression::new(&TcpParams::LINUX);
        assert_eq!(
            [5, 5, 5, 5, 5, 9, 9].map(|nxt| sacks.compresses(nxt)),
            [false, false, false, true, true, false, false]
        );
        sacks.on_partial_fill(12);
        assert_eq!([12, 12, 12].map(|nxt| sacks.compresses(nxt)), [false, false, true]);
    }

    #[test]
    fn a_delayed_ack_timer_that_still_runs_sends_a_compressed_sack() {
        let mut sacks = SackCompression::new(&TcpParams::LINUX);
        let wheel = TimerWheel::new(1);
        let due =
            |sacks: &SackCompression| sacks.pending(Span::from_millis(100), &wheel, Time(MS)).due();
        // 1 ms and a tenth.
        assert_eq!(due(&sacks), Time(MS + MS + MS / 10));
        sacks.on_delayed_ack(Time(2 * MS), Span(MS));
        assert_eq!(due(&sacks), Time(2 * MS));
    }
}
