//! The sender's timer: the retransmission timeout (RFC 6298) and the tail loss probe before it (RFC
//! 8985 §7).

use super::state::{CaState, Frto, Loss, Prr, Rearm, Recovery, Tlp};
use super::{Handshake, Sender};
use crate::cc::Signal;
use crate::timer::Pending;
use units::{Span, Time};

/// Timeouts of a SYN before its RTO begins to back off (tcp_syn_linear_timeouts, since 6.5).
const SYN_LINEAR_TIMEOUTS: u64 = 4;

impl Sender {
    /// Arms the timer for the events since the last call. The last event decides, since each would
    /// arm the timer now and for the same first segment.
    #[inline]
    pub(super) fn rearm_timer(&mut self, now: Time) {
        match std::mem::replace(&mut self.rearm, Rearm::No) {
            Rearm::No => {}
            Rearm::Acked => self.rearm_on_ack(now),
            Rearm::Sent => {
                if !self.schedule_loss_probe(now, false)
                    && self.timer.pending() == Pending::LossProbe
                {
                    self.rearm_rto(now);
                }
            }
        }
    }

    /// Arms the timer again after an ACK that advances SND.UNA (RFC 6298 §5.3; tcp_set_xmit_timer).
    #[inline]
    pub(super) fn rearm_on_ack(&mut self, now: Time) {
        if self.una == self.nxt {
            self.timer.stop();
        } else if self.settings.tlp {
            if !self.schedule_loss_probe(now, true) {
                self.rearm_rto(now);
            }
        } else if self.settings.sack
            || !matches!(self.ca_state, CaState::Recovery(Recovery { partial_acks: 2.., .. }))
        {
            // NewReno's impatient variant: only the first partial ACK arms the timer again (RFC
            // 6582 §4).
            self.rearm_rto(now);
        }
    }

    #[inline]
    pub(super) fn start_rto(&mut self, now: Time) {
        self.timer.arm(Pending::Retrans, now, self.rtt.rto());
    }

    /// tcp_rearm_rto: arms the timer for the RTO. The RTO counts from now. If it replaces another
    /// use of the timer, it counts from the last transmission of the first outstanding segment.
    #[inline]
    pub(super) fn rearm_rto(&mut self, now: Time) {
        let span = if self.timer.pending() == Pending::Retrans {
            self.rtt.rto()
        } else {
            self.rto_left(now)
        };
        self.timer.arm(Pending::Retrans, now, span.max(Span(1)));
    }

    /// tcp_rto_delta_us: the remaining RTO of the first outstanding segment.
    fn rto_left(&self, now: Time) -> Span {
        Span(self.rtt.rto().0.saturating_sub(now.since(self.xmit.xmit_ts(self.una)).0))
    }

    /// tcp_schedule_loss_probe: in TCP_CA_Open or TCP_CA_CWR, without SACKed segments, arms the
    /// timer for the PTO, but no later than the RTO (RFC 8985 §7.2). The RTO counts from now after
    /// an ACK, otherwise from the last transmission of the first outstanding segment.
    #[inline]
    pub(super) fn schedule_loss_probe(&mut self, now: Time, after_ack: bool) -> bool {
        let eligible = match self.ca_state {
            CaState::Open => !self.disorder,
            CaState::Cwr(_) => true,
            CaState::Recovery(_) | CaState::Loss(_) => false,
        };
        if !eligible {
            return false;
        }
        let span = self.rtt.pto(self.nxt - self.una == 1);
        let timeout = if after_ack { self.rtt.rto() } else { self.rto_left(now) };
        let span = if timeout > Span::ZERO { span.min(timeout) } else { span };
        self.timer.arm(Pending::LossProbe, now, span);
        true
    }

    pub(super) fn on_rto(&mut self, now: Time) {
        if self.handshake.is_some() {
            self.stats.timeouts += 1;
            self.stats.retransmits += 1;
            if self.stats.timeouts > SYN_LINEAR_TIMEOUTS {
                self.rtt.back_off();
            }
            self.handshake = Some(Handshake::SendSyn);
            return;
        }
        if self.una == self.nxt {
            self.timer.stop();
            return;
        }
        self.stats.timeouts += 1;
        self.rtt.back_off();
        self.rtt_source.on_retransmit();
        // The same data times out again.
        let again = matches!(self.ca_state, CaState::Loss(Loss { una, .. }) if una == self.una);
        // F-RTO starts outside a recovery, and also at a further timeout of the same segment (RFC
        // 5682 §2.1 step 1, §3.2; tcp_enter_loss).
        let possible = again || matches!(self.ca_state, CaState::Open | CaState::Cwr(_));
        let frto = if self.settings.frto && possible { Frto::Undecided } else { Frto::Off };
        let noted = self.losses();
        if self.settings.rack {
            if self.ca_state.is_open() {
                self.cold.rack.on_timeout_in_disorder(self.scoreboard.sacked_out());
            }
            // Segments sent within the last RTT are still in flight.
            let (latest_rtt, xmit) = (self.rtt.latest_rtt(), &self.xmit);
            self.scoreboard.timeout_mark_lost_rack(self.una, self.nxt, |seq| {
                xmit.xmit_ts(seq) + latest_rtt <= now
            });
        }
        // RFC 5681 §3.1: ssthresh stays when the same data times out again.
        let each = self.settings.ns2.reduces_at_each_timeout;
        match self.ca_state {
            // A reduction by the share of marks stands. If the congestion control sets cwnd by
            // itself, there is nothing to reduce again.
            CaState::Cwr(_) | CaState::Recovery(_)
                if self.una < self.recover && (self.settings.needs_ecn || self.rate.is_some()) => {}
            CaState::Cwr(Prr { prior_cwnd, .. })
            | CaState::Recovery(Recovery { prr: Prr { prior_cwnd, .. }, .. })
                if self.una < self.recover && !each =>
            {
                // This window of data has already reduced cwnd. ssthresh follows from the cwnd
                // before that reduction, and an undo restores that cwnd (Linux).
                self.control.set_cwnd(prior_cwnd);
                self.init_cwnd_reduction(Signal::Timeout, now);
            }
            _ if each || !again => {
                self.init_undo();
                self.init_cwnd_reduction(Signal::Timeout, now);
            }
            _ => {}
        }
        self.tlp = Tlp::None;
        self.control.set_cwnd(1.0);
        self.ca_state = CaState::Loss(Loss { una: self.una, frto });
        self.recover = self.nxt;
        self.dup_acks = 0;
        self.inflation = 0;
        if self.settings.ns2.timeout_forgets_sacks {
            self.scoreboard.forget_sacks();
        }
        if self.settings.rack {
            self.control.set_cwnd(f64::from(self.pipe() + 1));
        } else {
            self.scoreboard.timeout_mark_lost(self.una, self.nxt);
        }
        if let Some((marks, lost)) = noted {
            self.report_losses(&marks, lost, now);
            let totals = self.totals();
            self.control.on_timeout(totals);
        }
        self.start_rto(now);
        if let Some(pacer) = &mut self.pacer {
            pacer.reset(now);
        }
        self.update_limits();
    }
}
