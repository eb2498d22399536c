//! A sender whose application may be short of data: how much of cwnd it uses, and how an unused
//! cwnd falls.
//!
//! cwnd that no data has filled is no evidence about the path. So cwnd grows only in a window of
//! data that cwnd limited (`is_cwnd_limited`). If nothing was sent for longer than an RTO, cwnd is
//! halved for each RTO that passed, down to the initial window, before new data leaves. ssthresh
//! becomes at least three quarters of the old cwnd (`slow_start_after_idle`). If the application
//! fills less than cwnd for an RTO while it sends, cwnd falls half of the way to what the
//! application used (`cwnd_validate`).
//!
//! Source: RFC 2861, RFC 5681 §4.1; Linux's tcp_cwnd_validate, tcp_cwnd_application_limited,
//! tcp_cwnd_restart and tcp_slow_start_after_idle_check, whose identifiers the comments contain.
//! Deviation: the stamp of the last use of cwnd is not renewed at the end of a recovery.

use super::Sender;
use super::lengths::Lengths;
use crate::TcpParams;
use units::Time;

/// The use of cwnd, of a sender whose application may be short of data.
#[derive(Debug)]
pub(super) struct CwndUsage {
    /// The length of a jiffy, ns.
    jiffy: u64,
    /// The rules of RFC 2861 apply: the sysctl is on, and the congestion control does not set cwnd
    /// by itself (cong_control).
    falls: bool,
    initial_window: u32,
    /// cwnd has limited the sender in this window of data (tp->is_cwnd_limited).
    is_cwnd_limited: bool,
    /// The most segments outstanding in this window of data.
    max_packets_out: u32,
    /// The end of this window of data.
    cwnd_usage_seq: u32,
    /// The most segments outstanding since cwnd was last the limit.
    snd_cwnd_used: u32,
    /// The last time at which cwnd was the limit, or grew.
    snd_cwnd_stamp: Time,
    /// The last departure of a segment with data.
    lsndtime: Time,
    /// SND.NXT when the use of cwnd was last checked.
    nxt: u32,
    /// Bytes of the transfer; `None`: without end.
    whole: Option<u64>,
    /// Bytes that the application has produced; `u64::MAX`: it always has more.
    produced: u64,
}

impl CwndUsage {
    /// Bytes of the transfer that the application has not produced; `None`: without end.
    pub(super) fn unproduced(&self) -> Option<u64> {
        self.whole.map(|whole| whole.saturating_sub(self.produced))
    }

    fn jiffies(&self, at: Time) -> u64 {
        at.0 / self.jiffy
    }
}

impl Sender {
    /// Adds an application: the sender has only the data that it has produced (`produce`).
    pub fn with_application(mut self, params: &TcpParams) -> Sender {
        let whole = (self.end != u32::MAX)
            .then(|| u64::from(self.end - 1) * u64::from(params.mss) + u64::from(self.last_len));
        let control = self.settings.control;
        self.usage = Some(Box::new(CwndUsage {
            jiffy: params.timers.timer_tick_ns.max(1),
            falls: params.growth.slow_start_after_idle
                && !control.rate_samples
                && !control.sets_cwnd,
            initial_window: params.growth.initial_window,
            is_cwnd_limited: false,
            max_packets_out: 0,
            cwnd_usage_seq: 0,
            snd_cwnd_used: 0,
            snd_cwnd_stamp: Time::ZERO,
            lsndtime: Time::ZERO,
            nxt: 0,
            whole,
            produced: 0,
        }));
        self.settings.lengths_vary = true;
        self.cold.lengths = Some(Lengths::new(params.mss, Some(0)));
        self.writer.wait_for_data();
        self.update_limits();
        self
    }

    /// The application has produced `bytes` since the start of the connection; `u64::MAX`: it
    /// always has more. Call `poll` afterwards.
    pub fn produce(&mut self, bytes: u64, now: Time) {
        let sent = self.first_byte(self.nxt);
        let (Some(usage), Some(lengths)) = (&mut self.usage, &mut self.cold.lengths) else {
            return;
        };
        usage.produced = usage.whole.map_or(bytes, |whole| whole.min(bytes));
        lengths.set_left(usage.produced - sent);
        if self.writer.writes_at_once() {
            self.slow_start_after_idle(now);
            if self.rate.is_some() {
                self.check_app_limited();
            }
        }
        let ends = self.ends();
        self.end = ends.transfer;
        self.writer.produced(ends.data, self.nxt);
        self.update_limits();
    }

    /// Bytes that the application has written.
    pub fn written_bytes(&self) -> u64 {
        let mss = u64::from(self.settings.mss);
        let unsent = u64::from(self.writer.written() - self.nxt) * mss;
        let produced = self.usage.as_ref().map_or(u64::MAX, |usage| usage.produced);
        (self.first_byte(self.nxt) + unsent).min(produced)
    }

    /// Whether cwnd is the limit (tcp_is_cwnd_limited) when `acked` segments are acknowledged. In
    /// slow start, a cwnd that is more than half used counts as the limit, since it doubles faster
    /// than it fills.
    pub(super) fn is_cwnd_limited(&self, acked: u32) -> bool {
        let (limited, used) = match &self.usage {
            None => (self.una <= self.cwnd_usage_seq, self.nxt - self.una + acked),
            Some(usage) => (usage.is_cwnd_limited, usage.max_packets_out),
        };
        limited || self.in_slow_start() && self.control.cwnd() < 2.0 * f64::from(used)
    }

    /// Whether cwnd has limited this window of data.
    pub(super) fn cwnd_was_limit(&self) -> bool {
        match &self.usage {
            None => self.una <= self.cwnd_usage_seq,
            Some(usage) => usage.is_cwnd_limited,
        }
    }

    fn in_slow_start(&self) -> bool {
        self.control.cwnd() < self.control.ssthresh()
    }

    /// The sender has sent what it may, and the application may write.
    #[cold]
    pub(super) fn before_write(&mut self, now: Time) {
        self.cwnd_validate(now);
        if self.writer.end() > self.writer.written() {
            self.slow_start_after_idle(now);
        }
        let in_flight = self.pipe();
        let room = match &self.pacer {
            None => self.cwnd.saturating_sub(in_flight),
            Some(pacer) => u32::from(pacer.departure() <= now && in_flight < self.cwnd),
        };
        self.writer.leaves_at_once(self.nxt.saturating_add(room).min(self.right_edge));
    }

    /// Whether cwnd was the limit (the end of tcp_write_xmit, tcp_cwnd_validate).
    fn cwnd_validate(&mut self, now: Time) {
        let (una, nxt) = (self.una, self.nxt);
        let limited = self.pipe() >= self.cwnd;
        let unsent = nxt < self.writer.written();
        let Some(usage) = &mut self.usage else { return };
        let sent = usage.nxt != nxt;
        usage.nxt = nxt;
        if !(sent || limited && unsent) {
            return;
        }
        let packets_out = nxt - una;
        let more = !usage.is_cwnd_limited && packets_out > usage.max_packets_out;
        if una >= usage.cwnd_usage_seq || limited || more {
            usage.is_cwnd_limited = limited;
            usage.max_packets_out = packets_out;
            usage.cwnd_usage_seq = nxt;
        }
        let is_limit = self.is_cwnd_limited(0);
        let rto = self.rtt.rto();
        let Some(usage) = &mut self.usage else { return };
        if is_limit {
            usage.snd_cwnd_used = 0;
            usage.snd_cwnd_stamp = now;
            return;
        }
        usage.snd_cwnd_used = usage.snd_cwnd_used.max(packets_out);
        let unused = usage.jiffies(now) - usage.jiffies(usage.snd_cwnd_stamp);
        if usage.falls && unused >= rto.0.div_ceil(usage.jiffy) {
            usage.snd_cwnd_stamp = now;
            self.cwnd_application_limited();
        }
    }

    /// tcp_cwnd_application_limited: cwnd falls half of the way to what the application uses.
    #[cold]
    fn cwnd_application_limited(&mut self) {
        if !self.ca_state.is_open() || self.disorder || self.writer.no_space() {
            return;
        }
        let Some(usage) = &mut self.usage else { return };
        let used = std::mem::take(&mut usage.snd_cwnd_used).max(usage.initial_window);
        let cwnd = self.control.cwnd() as u32;
        if used < cwnd {
            self.remember_cwnd(cwnd);
            self.control.set_cwnd(f64::from((cwnd + used) / 2));
            self.update_limits();
        }
    }

    /// The application writes: cwnd falls if nothing was sent for longer than an RTO
    /// (tcp_slow_start_after_idle_check, tcp_cwnd_restart).
    fn slow_start_after_idle(&mut self, now: Time) {
        let rto = self.rtt.rto();
        let Some(usage) = &mut self.usage else { return };
        let idle = usage.jiffies(now) - usage.jiffies(usage.lsndtime);
        let rto = rto.0.div_ceil(usage.jiffy);
        if !usage.falls || self.una != self.nxt || self.nxt == 0 || idle <= rto {
            return;
        }
        usage.snd_cwnd_used = 0;
        usage.snd_cwnd_stamp = now;
        let cwnd = self.control.cwnd() as u32;
        let least = usage.initial_window.min(cwnd);
        // Once for each RTO that ended before now.
        let halvings = (idle - 1) / rto.max(1);
        self.remember_cwnd(cwnd);
        let halved = cwnd.checked_shr(halvings.min(u64::from(u32::BITS)) as u32).unwrap_or(0);
        self.control.set_cwnd(f64::from(halved.max(least)));
        self.update_limits();
    }

    /// tcp_current_ssthresh: ssthresh remembers three quarters of cwnd.
    fn remember_cwnd(&mut self, cwnd: u32) {
        if self.ca_state.reduction().is_none() {
            let most = f64::from(cwnd / 2 + cwnd / 4);
            self.control.set_ssthresh(self.control.ssthresh().max(most));
        }
    }

    /// An ACK has arrived. It may have grown cwnd if `avoids` (tcp_cong_avoid).
    #[inline]
    pub(super) fn acked(&mut self, avoids: bool, now: Time) {
        if let Some(usage) = &mut self.usage {
            if avoids {
                usage.snd_cwnd_stamp = now;
            }
            self.writer.on_ack();
        }
    }

    /// A segment with data leaves (tcp_event_data_sent), for the first time if it is `new`.
    pub(super) fn data_sent(&mut self, new: Option<u32>, now: Time) {
        if let Some(usage) = &mut self.usage {
            usage.lsndtime = now;
            if let Some(seq) = new {
                self.writer.on_sent(seq);
            }
        }
    }

    /// The last departure of a segment with data; now, if the application is never short of it.
    pub(super) fn lsndtime(&self, now: Time) -> Time {
        self.usage.as_ref().map_or(now, |usage| usage.lsndtime)
    }
}
