//! Recovery: which segments are lost, which reductions are needless, how cwnd falls, and when a
//! recovery ends. It follows Linux's tcp_fastretrans_alert and its callees; each function's comment
//! names its counterpart.
//!
//! RACK (RFC 8985) or RFC 6675 detect losses; without SACK, duplicate ACKs do (RFC 6582). PRR (RFC
//! 6937) reduces cwnd. F-RTO (RFC 5682), timestamps and DSACKs detect needless reductions.

use super::state::{CaState, EcnState, Frto, Loss, Prr, Recovery, Tlp};
use super::{AckNews, SacktagState, Sender};
use crate::AckSegment;
use crate::cc::{Congestion, Signal};
use crate::params::FastRecovery;
use crate::rack::DUP_THRESH;
use crate::rtt::echo_is_before;
use crate::scoreboard::Detected;
use crate::timer::Pending;
use crate::undo::Undo;
use units::{Span, Time};

/// Further effects of an ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alerted {
    /// The timer is armed for RACK's reordering window and must stay so (without
    /// FLAG_SET_XMIT_TIMER).
    pub rack_armed_timer: bool,
}

impl Sender {
    /// The SACK blocks of an ACK; empty if SACK was not agreed on.
    pub(super) fn sacks<'a>(&self, ack: &'a AckSegment) -> &'a [(u32, u32)] {
        if self.settings.sack { &ack.sacks[..usize::from(ack.sack_count)] } else { &[] }
    }

    /// tcp_check_dsack: the range that the first SACK block reports as a duplicate (RFC 2883 §4).
    /// The block lies below the ACK, or within the second block.
    #[cold]
    pub(super) fn check_dsack(&mut self, ack: &AckSegment) -> Option<(u32, u32)> {
        let (first, second) = (ack.sacks[0], ack.sacks[1]);
        let within = ack.sack_count > 1 && second.0 <= first.0 && first.1 <= second.1;
        if first.0 >= ack.ack && !within {
            return None;
        }
        // More duplicates than retransmissions: the path duplicates packets, so a DSACK proves
        // nothing about our retransmissions (tcp_dsack_seen).
        self.cold.dsack_dups += u64::from(first.1.saturating_sub(first.0));
        if self.cold.dsack_dups > self.stats.retransmits {
            return None;
        }
        for seq in first.0..first.1.min(self.nxt) {
            // An outstanding segment must have been retransmitted. An acknowledged segment is
            // assumed to be retransmitted, as in Linux.
            if seq < self.una || self.xmit.retransmitted(seq) {
                self.cold.undo.on_dsack(seq);
            }
            if seq >= self.una {
                self.scoreboard.on_dsack(seq, self.una);
            }
        }
        if !self.is_tlp_retransmission(first.1) {
            self.cold.rack.on_dsack();
        }
        Some(first)
    }

    /// Whether the tail loss probe was a retransmission of the segment before `end`.
    fn is_tlp_retransmission(&self, end: u32) -> bool {
        matches!(self.tlp, Tlp::Sent { end_seq, retransmitted: Some(_) } if end_seq == end)
    }

    /// Visits each segment that the ACK is the first to acknowledge or SACK (tcp_sacktag_one,
    /// tcp_clean_rtx_queue).
    #[cold]
    pub(super) fn sacktag(
        &mut self,
        ack: &AckSegment,
        dsack: Option<(u32, u32)>,
        now: Time,
    ) -> SacktagState {
        let mut sacktag = SacktagState::default();
        if !self.settings.rack && !self.ca_state.in_frto() {
            return sacktag;
        }
        let (sacks, outstanding) = (self.sacks(ack), (self.una, self.nxt));
        let (xmit, rack, recover) = (&self.xmit, &mut self.cold.rack, self.recover);
        let prior_fack = self.scoreboard.highest_sacked().max(self.una);
        let min_rtt = self.rtt.min_rtt();
        // The first segments sent once and delivered below an earlier SACK: SACKed now, and
        // acknowledged now.
        let (mut reord, mut reord_acked) = (self.nxt, self.nxt);
        // The latest departure of a delivered segment.
        let mut newest = None;
        let mut look = |from: u32, to: u32| {
            for seq in from..to {
                let (sent, retransmitted) = (xmit.xmit_ts(seq), xmit.retransmitted(seq));
                sacktag.original |= !retransmitted && seq < recover;
                if !retransmitted && seq >= ack.ack {
                    sacktag.first_sackt = sacktag.first_sackt.or(Some(sent));
                    sacktag.last_sackt = Some(sent);
                } else if seq < ack.ack {
                    sacktag.last_ackt = Some(sent);
                }
                if !retransmitted && seq < prior_fack {
                    let reord = if seq < ack.ack { &mut reord_acked } else { &mut reord };
                    *reord = (*reord).min(seq);
                }
                newest = newest.max(Some(sent));
                // The echo is from before the retransmission left, so the original is acknowledged
                // (RFC 8985 §6.2 step 2). The echo says nothing about segments beyond a gap.
                let of_original = retransmitted && seq < ack.ack && echo_is_before(ack.echo, sent);
                if !of_original {
                    rack.update(seq, sent, retransmitted, min_rtt, now);
                }
            }
        };
        // RACK.rtt is the RTT of the segment visited last.
        self.scoreboard.newly_delivered(ack.ack, sacks, outstanding, &mut look);
        if let Some((start, end)) = dsack {
            // The retransmission of a SACKed original was needless: other segments overtook the
            // original.
            let overtaken = (start.max(self.una)..end.min(self.nxt))
                .find(|&seq| self.xmit.retransmitted(seq) && self.scoreboard.is_sacked(seq));
            reord = reord.min(overtaken.unwrap_or(reord));
        }
        let fack = sacks.iter().map(|block| block.1.min(self.nxt)).fold(prior_fack, u32::max);
        let in_loss = matches!(self.ca_state, CaState::Loss(_));
        if !in_loss || self.cold.undo.is_possible() {
            self.cold.rack.check_reordering(reord, fack);
        }
        self.cold.rack.check_reordering(reord_acked, fack.max(ack.ack));
        if let Some(newest) = newest {
            self.cold.rack.update_reo_wnd(newest, now);
        }
        self.dsack_waits = self.cold.rack.has_dsack();
        sacktag
    }

    /// tcp_fastretrans_alert: all ACKs off the fast path, with duplicates, SACKs, ECN echoes or a
    /// recovery.
    pub(super) fn fastretrans_alert(
        &mut self,
        ack: &AckSegment,
        news: AckNews,
        now: Time,
    ) -> Alerted {
        let AckNews { acked, delivered, rtt, ece: echo, .. } = news;
        // Without SACK, an ACK after a timeout may acknowledge many segments that arrived before
        // the timeout: it counts as one segment (RFC 3465 §2.3).
        let without_sack = matches!(self.ca_state, CaState::Loss(_)) && !self.settings.sack;
        let delivered = if without_sack { delivered.min(1) } else { delivered };
        if echo {
            self.cold.undo.on_ecn_echo();
        }
        self.ca_state.reset_rexmit();
        self.tlp.not_due();
        self.process_tlp_ack(ack, &news, now);
        if !self.ca_state.is_open() && self.recovery_point_acked() {
            // NewReno's full ACK sets cwnd and does not grow it (RFC 6582 §3.2 step 3).
            let ns2 = &self.settings.ns2;
            let full_ack_grows = if self.settings.sack {
                !ns2.sack_full_ack_stands
            } else {
                ns2.newreno_full_ack_grows
            };
            let done = matches!(self.ca_state, CaState::Recovery(_)) && !full_ack_grows;
            if self.may_undo(&news) {
                self.undo_cwnd_reduction(false);
            } else {
                self.end_cwnd_reduction();
            }
            if done {
                return Alerted::default();
            }
        } else {
            self.try_undo(&news);
        }
        let before = self.scoreboard.lost();
        let sacks_raise_cwnd =
            self.settings.rack && news.duplicate && self.cold.rack.reorders_much();
        let mut detected = Detected::default();
        match self.ca_state {
            CaState::Open => {
                // RFC 6582 §3.2 step 2. RFC 6675 needs no such check: SACKs distinguish a new loss
                // from segments that arrived twice.
                let new_window_only = !self.settings.sack || self.settings.ns2.sack_bug_fix;
                if (!new_window_only || self.is_new_window())
                    && self.time_to_recover(&mut detected, now)
                {
                    if self.is_tahoe() {
                        self.start_over(now);
                        return Alerted::default();
                    }
                    self.enter_recovery(now);
                    if echo {
                        self.cold.undo.on_ecn_echo();
                    }
                    self.count_sack1_pipe();
                    self.cwnd_reduction(delivered, self.progress(acked, before));
                } else if echo && (!self.settings.ns2.ecn_once_a_window || self.is_new_window()) {
                    // tcp_try_to_open checks no window: after an undo, or right after a recovery,
                    // an echo reduces cwnd at once.
                    self.enter_cwr(now);
                    self.cwnd_reduction(delivered, acked > 0);
                } else if acked > 0 || sacks_raise_cwnd {
                    self.cong_avoid(delivered, rtt, ack.one_way, now);
                }
            }
            CaState::Recovery(Recovery { in_doubt: true, .. }) => {
                self.cwnd_reduction(delivered, acked > 0);
            }
            CaState::Recovery(_) if self.settings.sack => {
                detected = self.identify_loss(now);
                self.count_sack1_pipe();
                self.cwnd_reduction(delivered, self.progress(acked, before));
            }
            CaState::Recovery(_)
                if acked > 0 && self.settings.fast_recovery == FastRecovery::Reno =>
            {
                self.end_cwnd_reduction();
                if self.settings.ns2.newreno_full_ack_grows {
                    self.cong_avoid(delivered, rtt, ack.one_way, now);
                }
            }
            CaState::Recovery(_) => self.newreno_ack(acked),
            CaState::Cwr(_) => {
                if self.time_to_recover(&mut detected, now) {
                    if self.is_tahoe() {
                        self.start_over(now);
                        return Alerted::default();
                    }
                    self.enter_recovery(now);
                    self.cwnd_reduction(delivered, self.progress(acked, before));
                } else if self.uses_prr() {
                    self.cwnd_reduction(delivered, acked > 0);
                } else if acked > 0 && !echo {
                    self.cong_avoid(delivered, rtt, ack.one_way, now);
                }
            }
            CaState::Loss(_) => {
                if self.settings.frto && !self.settings.sack {
                    // A duplicate after F-RTO's new data means that some new data has arrived,
                    // which makes room for lost segments.
                    let arrived = acked == 0 && self.nxt > self.recover;
                    self.inflation = if arrived { self.inflation + 1 } else { 0 };
                }
                if self.settings.rack {
                    detected = self.identify_loss(now);
                }
                if detected.lost_retransmission {
                    // A retransmission is lost: a new reduction (Linux).
                    self.enter_recovery(now);
                    self.cwnd_reduction(delivered, self.progress(acked, before));
                } else if acked > 0 || sacks_raise_cwnd {
                    self.cong_avoid(delivered, rtt, ack.one_way, now);
                }
            }
        }
        if self.settings.limited_transmit
            && !self.settings.sack
            && matches!(self.ca_state, CaState::Open | CaState::Cwr(_))
        {
            // RFC 3042: each of the first duplicates allows a new segment. With SACK, pipe has the
            // same effect.
            self.inflation = self.dup_acks.min(DUP_THRESH - 1) as i32;
        }
        Alerted { rack_armed_timer: detected.reo_timeout > Span::ZERO }
    }

    /// The ACK advances SND.UNA and shows no new loss (FLAG_SND_UNA_ADVANCED without newly_lost).
    /// `lost` is the number of losses before the ACK.
    fn progress(&self, acked: u32, lost: u32) -> bool {
        acked > 0 && self.scoreboard.lost() == lost
    }

    /// tcp_try_keep_open: decides whether TCP_CA_Open is TCP_CA_Disorder.
    pub(super) fn try_keep_open(&mut self) {
        if self.settings.tlp {
            self.disorder = self.ca_state.is_open()
                && (self.scoreboard.sacked_out() > 0
                    || self.scoreboard.retrans_out(self.una) > 0
                    || (self.una < self.nxt && self.xmit.retransmitted(self.una)));
        }
    }

    /// No segment is marked as lost (TCP_CA_Open, TCP_CA_CWR).
    pub(super) fn is_calm(&self) -> bool {
        matches!(self.ca_state, CaState::Open | CaState::Cwr(_))
    }

    /// tcp_may_undo: timestamps, DSACKs, or after a timeout the delivery of originals (RFC 5682
    /// §3.1 step 3b) prove the reduction needless.
    fn may_undo(&self, news: &AckNews) -> bool {
        if let CaState::Cwr(_) = self.ca_state {
            return false;
        }
        let packet_delayed = news.acked > 0 && self.cold.undo.packet_delayed(news.echo);
        let originals_arrived = self.ca_state.in_frto() && news.original;
        packet_delayed || self.cold.undo.all_retrans_dsacked() || originals_arrived
    }

    /// Undoes the reduction if it has proved needless, while the recovery continues
    /// (tcp_try_undo_partial, tcp_try_undo_dsack, tcp_try_undo_loss).
    fn try_undo(&mut self, news: &AckNews) {
        match self.ca_state {
            CaState::Open => {
                if self.cold.undo.all_retrans_dsacked() {
                    self.cold.rack.on_dsack_undo();
                    self.undo_cwnd_reduction(false);
                }
            }
            CaState::Cwr(_) => {}
            CaState::Recovery(mut recovery) => {
                if news.acked > 0 && self.cold.undo.packet_delayed(news.echo) {
                    // tcp_try_undo_partial: an original filled the hole. The losses are in doubt
                    // until the retransmissions are acknowledged.
                    let fack = self.scoreboard.highest_sacked().max(self.una);
                    self.cold.rack.check_reordering(self.una - news.acked, fack);
                    if self.scoreboard.retrans_out(self.una) > 0 {
                        recovery.in_doubt = true;
                        self.ca_state = CaState::Recovery(recovery);
                    } else {
                        self.undo_cwnd_reduction(true);
                    }
                } else if self.cold.undo.all_retrans_dsacked() {
                    self.cold.rack.on_dsack_undo();
                    self.undo_cwnd_reduction(false);
                }
            }
            CaState::Loss(loss) => {
                let answered = news.acked > 0 || news.original;
                if answered && self.may_undo(news) {
                    self.undo_cwnd_reduction(true);
                } else if loss.frto != Frto::Off {
                    let frto = self.process_frto(news);
                    self.ca_state = CaState::Loss(Loss { frto, ..loss });
                }
            }
        }
    }

    /// F-RTO (RFC 5682 §3.1; tcp_process_loss): the first ACK that advances SND.UNA allows new
    /// data; the next ACK decides by the segments that it acknowledges.
    fn process_frto(&mut self, news: &AckNews) -> Frto {
        if self.nxt > self.recover {
            // Step 3a: new data has arrived and no data from before the timeout: the loss was real.
            if news.duplicate { Frto::Off } else { Frto::Undecided }
        } else if news.acked > 0 {
            self.recover = self.nxt;
            Frto::NewData
        } else {
            Frto::Undecided
        }
    }

    /// tcp_undo_cwnd_reduction: restores the earlier cwnd and ssthresh, unless they are larger now
    /// (tcp_reno_undo_cwnd, which Linux's CUBIC and Vegas use too). With `unmark`, no segment
    /// counts as lost any more.
    fn undo_cwnd_reduction(&mut self, unmark: bool) {
        self.stats.undos += 1;
        match (unmark, self.settings.rack) {
            (false, _) => {}
            (true, false) => self.scoreboard.unmark_lost(self.una),
            (true, true) => {
                self.scoreboard.unmark_lost_rack(self.una, |seq| self.xmit.xmit_ts(seq))
            }
        }
        // RACK looks for losses again.
        self.cold.rack.advanced = true;
        if let Some((cwnd, ssthresh)) = self.cold.undo.take() {
            let totals = self.totals();
            self.control.undo(cwnd, totals);
            if ssthresh > self.control.ssthresh() {
                self.control.set_ssthresh(ssthresh);
                if self.ecn == EcnState::QueueCwr {
                    self.ecn = EcnState::Ok;
                }
            }
        }
        self.rtt.reset_backoff();
        self.enter_open();
    }

    /// tcp_time_to_recover: duplicates or SACKs show that a segment is lost. With SACK the
    /// duplicates need not be consecutive.
    fn time_to_recover(&mut self, detected: &mut Detected, now: Time) -> bool {
        if self.settings.rack {
            *detected = self.identify_loss(now);
            // Lost segments count even if they were retransmitted. At the end of a recovery they
            // are from data sent during the recovery.
            return self.scoreboard.lost_out(self.una) > 0;
        }
        if self.settings.sack {
            self.scoreboard.mark_lost(self.una)
        } else {
            self.dup_acks >= DUP_THRESH
        }
    }

    /// tcp_identify_packet_loss: marks the segments that SACKs show to be lost, by RACK or by RFC
    /// 6675.
    fn identify_loss(&mut self, now: Time) -> Detected {
        if !self.settings.rack {
            self.scoreboard.mark_lost(self.una);
        } else if std::mem::take(&mut self.cold.rack.advanced) {
            return self.rack_detect_loss(now);
        }
        Detected::default()
    }

    /// RACK_detect_loss on all outstanding segments. Arms the timer for segments that are not lost
    /// yet.
    fn rack_detect_loss(&mut self, now: Time) -> Detected {
        let recovering = matches!(self.ca_state, CaState::Recovery(_) | CaState::Loss(_));
        let no_window_unless_reordering = recovering || self.scoreboard.sacked_out() >= DUP_THRESH;
        let window = self.cold.rack.reo_wnd(
            no_window_unless_reordering,
            self.rtt.min_rtt(),
            self.rtt.srtt().span(),
        );
        let (rack, xmit) = (&self.cold.rack, &self.xmit);
        let detected = self.scoreboard.detect_loss(self.una, self.nxt, |seq| {
            rack.detect_loss(seq, xmit.xmit_ts(seq), window, now)
        });
        if detected.reo_timeout > Span::ZERO {
            // tcp_rack_mark_lost adds TCP_TIMEOUT_MIN_US, 2 ms.
            self.timer.arm(Pending::ReoTimeout, now, detected.reo_timeout + Span::from_millis(2));
        }
        detected
    }

    /// tcp_rack_reo_timeout: the reordering window has passed without an ACK.
    pub(super) fn rack_reo_timeout(&mut self, now: Time) {
        let before = self.scoreboard.to_retransmit();
        let noted = self.losses();
        self.ca_state.reset_rexmit();
        self.rack_detect_loss(now);
        if let Some((marks, lost)) = noted {
            self.report_losses(&marks, lost, now);
        }
        if self.scoreboard.to_retransmit() == before {
            return;
        }
        if !matches!(self.ca_state, CaState::Recovery(_)) {
            self.enter_recovery(now);
            self.cwnd_reduction(1, false);
        }
        self.update_limits();
    }

    /// tcp_process_tlp_ack: whether the answer to a tail loss probe reveals a loss (RFC 8985 §7.4).
    fn process_tlp_ack(&mut self, ack: &AckSegment, news: &AckNews, now: Time) {
        let Tlp::Sent { end_seq, retransmitted } = self.tlp else { return };
        if ack.ack < end_seq {
            return;
        }
        let both_arrived = news.dsack_end == Some(end_seq) || (news.acked == 0 && !news.duplicate);
        if retransmitted.is_none() || both_arrived {
            // The probe was new data, or both the original and the retransmission have arrived.
            self.tlp = Tlp::None;
        } else if ack.ack > end_seq {
            // The retransmission filled a hole: a loss, repaired before it was detected.
            self.init_cwnd_reduction(Signal::Loss, now);
            self.ca_state = CaState::Open;
            self.cold.undo = Undo::new();
            self.leave_reduction();
        }
    }

    /// The window of data that reduced cwnd is acknowledged. After an ECN echo one further segment
    /// must be acknowledged: it carried CWR, and earlier echoes belong to the last reduction
    /// (Linux).
    fn recovery_point_acked(&self) -> bool {
        let in_cwr = matches!(self.ca_state, CaState::Cwr(_));
        self.una > self.recover || (self.una == self.recover && !in_cwr)
    }

    /// A congestion signal now comes from data sent after the last reduction. Without SACK,
    /// duplicates up to `recover` may answer retransmissions (RFC 6582 §3.2 step 2, ns-2's
    /// bugFix_). In ns-2 an ECN echo up to `recover` belongs to the last reduction.
    fn is_new_window(&self) -> bool {
        self.una > self.recover || self.recover == 0
    }

    /// ns-2's Sack1 (`pipe_`): lost segments and their retransmissions count as in flight until
    /// acknowledged.
    pub(super) fn count_sack1_pipe(&mut self) {
        if self.settings.sack && self.settings.ns2.sack1_pipe {
            self.inflation = -(self.scoreboard.lost_out(self.una) as i32);
        }
    }

    /// tcp_enter_recovery: a segment is lost. In TCP_CA_CWR cwnd was already reduced for this round
    /// trip, so lost segments are only retransmitted.
    fn enter_recovery(&mut self, now: Time) {
        self.init_undo();
        let prr = if let CaState::Cwr(prr) = self.ca_state {
            // The reduction stands, and the recovery ends with its window. Evidence that nothing
            // was lost also ends the recovery.
            self.cold.undo.on_ecn_echo();
            prr
        } else {
            self.recover = self.nxt;
            self.init_cwnd_reduction(Signal::Loss, now)
        };
        let fast_retransmit = !(self.settings.prr && self.settings.sack);
        self.ca_state = CaState::Recovery(Recovery {
            prr,
            fast_retransmit,
            in_doubt: false,
            rescue_sent: false,
            partial_acks: 0,
        });
        self.control.on_recovery();
        self.stats.fast_recoveries += 1;
        if !self.settings.sack {
            // Three duplicates show only that the first segment is lost.
            self.scoreboard.mark_lost_below(self.una + 1, self.una);
            self.inflation = self.dup_acks as i32;
        }
        if fast_retransmit {
            self.leave_reduction();
        }
        if !self.settings.rack {
            // The first outstanding segment is retransmitted now, so the RTO starts anew (Linux,
            // ns-2).
            self.start_rto(now);
        }
    }

    /// Without SACK and without fast recovery.
    fn is_tahoe(&self) -> bool {
        !self.settings.sack && self.settings.fast_recovery == FastRecovery::Tahoe
    }

    /// Tahoe's fast retransmit: like a timeout, but the RTO does not back off. All outstanding data
    /// is sent again while cwnd grows from one segment.
    fn start_over(&mut self, now: Time) {
        if self.ca_state.is_open() {
            self.init_undo();
            self.init_cwnd_reduction(Signal::Loss, now);
        }
        self.stats.fast_recoveries += 1;
        self.rtt_source.on_retransmit();
        self.tlp = Tlp::None;
        self.control.set_cwnd(1.0);
        self.ca_state = CaState::Loss(Loss { una: self.una, frto: Frto::Off });
        self.recover = self.nxt;
        self.inflation = 0;
        self.scoreboard.timeout_mark_lost(self.una, self.nxt);
        self.start_rto(now);
        self.update_limits();
    }

    /// tcp_enter_cwr: an ECN echo while no reduction is under way.
    fn enter_cwr(&mut self, now: Time) {
        self.stats.ecn_reductions += 1;
        self.cold.undo = Undo::new();
        self.ca_state = CaState::Cwr(self.init_cwnd_reduction(Signal::Ecn, now));
        self.recover = self.nxt;
        if !self.settings.prr {
            self.leave_reduction();
        }
    }

    /// tcp_init_undo: saves cwnd and ssthresh before a reduction, which may prove needless.
    pub(super) fn init_undo(&mut self) {
        // tcp_current_ssthresh: three quarters of a cwnd above ssthresh.
        let cwnd = self.control.cwnd();
        let ssthresh = self.control.ssthresh().max(0.75 * cwnd);
        let marker = self.settings.undo.then_some(self.una);
        match self.scoreboard.retrans_out(self.una) {
            0 => self.cold.undo.begin(marker, cwnd, ssthresh),
            retrans_out => self.cold.undo.begin_with_retrans(marker, cwnd, ssthresh, retrans_out),
        }
        if let Tlp::Sent { retransmitted: Some(_), .. } = self.tlp {
            self.cold.undo.expect_dsack();
        }
    }

    /// tcp_init_cwnd_reduction: a congestion signal from a window of data that has not reduced cwnd
    /// yet. An outstanding loss probe is cancelled, and another may be sent.
    pub(super) fn init_cwnd_reduction(&mut self, signal: Signal, now: Time) -> Prr {
        self.tlp = Tlp::None;
        let prr = Prr { delivered: 0, out: 0, prior_cwnd: self.control.cwnd() };
        let inflight = self.nxt - self.una;
        self.control.on_congestion(&Congestion { now, signal, inflight });
        if matches!(self.ecn, EcnState::Ok | EcnState::QueueCwr) {
            // CWR tells the receiver of the reduction, whatever its reason (RFC 3168 §6.1.2).
            self.ecn = EcnState::QueueCwr;
        }
        prr
    }

    /// Whether PRR reduces cwnd. PRR must know how much is delivered, so it needs SACK, or no loss
    /// at all.
    fn uses_prr(&self) -> bool {
        let possible = match self.ca_state {
            CaState::Cwr(_) => true,
            CaState::Recovery(_) => self.settings.sack,
            CaState::Open | CaState::Loss(_) => false,
        };
        possible && self.settings.prr && !self.settings.control.sets_cwnd
    }

    /// cwnd becomes ssthresh, unless the congestion control sets cwnd by itself.
    fn leave_reduction(&mut self) {
        if !self.settings.control.sets_cwnd {
            self.control.set_cwnd(self.control.ssthresh());
        }
    }

    /// tcp_cwnd_reduction: PRR (RFC 6937 §3). While pipe > ssthresh, ssthresh/RecoverFS segments
    /// leave for each delivered one. Below ssthresh cwnd grows as in slow start, or follows packet
    /// conservation while further losses are detected. `progress`: the ACK advances SND.UNA and
    /// shows no new loss (Linux's FLAG_SND_UNA_ADVANCED without newly_lost).
    fn cwnd_reduction(&mut self, delivered: u32, progress: bool) {
        if delivered == 0 || !self.uses_prr() {
            return;
        }
        let pipe = self.pipe();
        let ssthresh = self.control.ssthresh() as u32;
        let Some(prr) = self.ca_state.reduction() else { return };
        prr.delivered += delivered;
        let allowed = if pipe > ssthresh {
            let prior_cwnd = (prr.prior_cwnd as u64).max(1);
            let share = (u64::from(ssthresh) * u64::from(prr.delivered)).div_ceil(prior_cwnd);
            (share as u32).saturating_sub(prr.out)
        } else {
            let conserved = prr.delivered.saturating_sub(prr.out).max(delivered);
            (ssthresh - pipe).min(conserved + u32::from(progress))
        };
        // The first retransmission is always allowed.
        let allowed = allowed.max(u32::from(prr.out == 0));
        self.control.set_cwnd(f64::from(pipe + allowed));
    }

    /// RFC 6582 §3.2 steps 3 to 5: duplicates inflate cwnd; a partial ACK deflates it and shows the
    /// next hole.
    fn newreno_ack(&mut self, acked: u32) {
        if acked == 0 {
            self.inflation += 1;
            return;
        }
        if let CaState::Recovery(recovery) = &mut self.ca_state {
            recovery.partial_acks += 1;
            recovery.fast_retransmit = true;
        }
        self.inflation = (self.inflation + 1).saturating_sub_unsigned(acked).max(0);
        self.scoreboard.mark_lost_below(self.una + 1, self.una);
    }

    fn end_cwnd_reduction(&mut self) {
        match self.ca_state {
            _ if self.settings.control.sets_cwnd => {}
            CaState::Recovery(_)
                if !self.settings.sack && !self.settings.ns2.newreno_exit_at_ssthresh =>
            {
                // RFC 6582 §3.2 step 3, option 1: no burst after a flight of duplicates (ns-2
                // bursts).
                let flight = f64::from((self.nxt - self.una).max(1) + 1);
                self.control.set_cwnd(self.control.ssthresh().min(flight));
            }
            _ if self.uses_prr() => self.control.set_cwnd(self.control.ssthresh()),
            _ => {}
        }
        if !matches!(self.ca_state, CaState::Cwr(_)) {
            self.cold.rack.on_recovery_exit();
        }
        if matches!(self.ca_state, CaState::Recovery(_))
            && self.settings.sack
            && self.settings.ns2.sack_bug_fix
        {
            // ns-2's Sack1 applies bugFix_ after timeouts only.
            self.recover = 0;
        }
        self.enter_open();
    }

    fn enter_open(&mut self) {
        self.ca_state = CaState::Open;
        self.inflation = 0;
    }
}
