//! The sender's timer: the retransmission timeout (RFC 6298) and the tail loss probe that goes
//! before it (RFC 8985 §7).

use super::{First, Opening, Phase, Sender};
use crate::cc::{CongestionControl, Signal};
use crate::timer::Due;
use crate::undo::Undo;
use units::{Span, Time};

/// So often a SYN goes again a second after the one before, then ever later
/// (tcp_syn_linear_timeouts, since 6.5).
const SYNS_A_SECOND_APART: u64 = 4;

impl Sender {
    /// An ACK shows that there is life in the path.
    #[inline]
    pub(super) fn restart_timer(&mut self, now: Time) {
        if self.una == self.nxt {
            self.alarm.off();
        } else if self.settings.tlp {
            if !self.await_probe(now, true) {
                self.rearm(now);
            }
        } else if self.settings.sack || self.phase != Phase::Recovery || self.partial_acks <= 1 {
            // NewReno's impatient variant: only the first partial ACK restarts the timer (RFC 6582
            // §4).
            self.rearm(now);
        }
    }

    #[inline]
    pub(super) fn begin_timeout(&mut self, now: Time) {
        self.alarm.set(Due::Timeout, now, self.rtt.rto());
    }

    /// Sets the timer to the timeout: from now, or, in place of something else, from when the first
    /// segment outstanding last left.
    #[inline]
    pub(super) fn rearm(&mut self, now: Time) {
        let span = if self.alarm.due() == Due::Timeout {
            self.rtt.rto()
        } else {
            self.left_of_timeout(now)
        };
        self.alarm.set(Due::Timeout, now, span.max(Span(1)));
    }

    /// Of the first segment outstanding.
    fn left_of_timeout(&self, now: Time) -> Span {
        Span(self.rtt.rto().0.saturating_sub(now.since(self.sent.at(self.una)).0))
    }

    /// Sets the timer to probe, while all is well (RFC 8985 §7.2): before a timeout. That is
    /// counted from now after an ACK, else from when the first segment outstanding left
    /// (tcp_schedule_loss_probe).
    #[inline]
    pub(super) fn await_probe(&mut self, now: Time, after_ack: bool) -> bool {
        let well =
            self.phase == Phase::Reduced || (self.phase == Phase::Open && self.board.sacked() == 0);
        if !well {
            return false;
        }
        let span = self.rtt.probe(self.nxt - self.una == 1);
        let timeout = if after_ack { self.rtt.rto() } else { self.left_of_timeout(now) };
        let span = if timeout > Span::ZERO { span.min(timeout) } else { span };
        self.alarm.set(Due::Probe, now, span);
        true
    }

    /// No probe is out any more.
    pub(super) fn end_probe(&mut self) {
        self.probe = None;
        self.probing = false;
    }

    pub(super) fn timeout(&mut self, now: Time) {
        if self.opening.is_some() {
            self.stats.timeouts += 1;
            if self.stats.timeouts > SYNS_A_SECOND_APART {
                self.rtt.back_off();
            }
            self.opening = Some(Opening::Begin);
            return;
        }
        if self.una == self.nxt {
            self.alarm.off();
            return;
        }
        self.stats.timeouts += 1;
        self.rtt.back_off();
        self.timed = None;
        // F-RTO: not out of a recovery, but again at a further timeout of the same segment (RFC
        // 5682 §2.1 step 1, §3.2; Linux).
        let further = self.phase == Phase::Loss && self.una == self.timed_out;
        let first = self.phase == Phase::Open || self.phase == Phase::Reduced;
        self.frto = self.settings.frto && (first || further);
        self.first = First::Lost;
        // RFC 5681 §3.1: ssthresh stays when the same data times out again.
        let each = self.settings.ns2.reduces_at_each_timeout;
        if each || !further {
            let reduced = self.phase == Phase::Recovery || self.phase == Phase::Reduced;
            if reduced && self.una < self.recover && !each {
                // This window of data was reduced for: ssthresh follows from what cwnd was before,
                // and so does what an undo gives back (Linux).
                let undo = std::mem::replace(&mut self.undo, Undo::new());
                self.control.set_cwnd(self.prr.from);
                self.signal(Signal::Timeout, Phase::Loss, now);
                self.undo = undo;
            } else {
                self.signal(Signal::Timeout, Phase::Loss, now);
            }
        }
        self.end_probe();
        self.control.set_cwnd(1.0);
        self.phase = Phase::Loss;
        self.timed_out = self.una;
        self.recover = self.nxt;
        self.dup_acks = 0;
        self.inflation = 0;
        self.force = false;
        if self.settings.ns2.timeout_forgets_sacks {
            self.board.forget_sacks();
        }
        if self.settings.rack {
            let (latest, sent) = (self.rtt.latest(), &self.sent);
            self.board.mark_old_lost(self.una, self.nxt, |seq| sent.at(seq) + latest <= now);
            // What was sent a moment ago is still on its way.
            self.control.set_cwnd(f64::from(self.pipe() + 1));
        } else {
            self.board.mark_all_lost(self.una, self.nxt);
        }
        self.begin_timeout(now);
        self.release = self.release.min(now);
        self.refresh();
    }
}
