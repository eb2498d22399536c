//! What the sender makes of ACKs that tell of more than progress: what is lost, what was reduced
//! for nothing, how the window comes down and when a recovery is over.
//!
//! RACK (RFC 8985) or RFC 6675 say what is lost, duplicates where there is no SACK (RFC 6582); PRR
//! (RFC 6937) lets the window come down; F-RTO (RFC 5682), stamps and DSACKs tell what was for
//! nothing.

use super::{Arrivals, First, Heard, Phase, Probe, Prr, Sender};
use crate::AckSegment;
use crate::cc::{Congestion, CongestionControl, Signal};
use crate::scoreboard::{DUP_THRESH, Found};
use crate::timer::Due;
use crate::undo::Undo;
use units::{Span, Time};

impl Sender {
    /// Whether the first SACK block reports a segment that came twice (RFC 2883 §4): it lies below
    /// the ACK, or within the second block.
    #[cold]
    pub(super) fn hear_duplicate(&mut self, ack: &AckSegment) -> Option<u32> {
        let (first, second) = (ack.sacks[0], ack.sacks[1]);
        let within = ack.sack_count > 1 && second.0 <= first.0 && first.1 <= second.1;
        if first.0 >= ack.ack && !within {
            return None;
        }
        for seq in first.0..first.1.min(self.nxt) {
            // What is still outstanding must have been sent again; of what is forgotten it is taken
            // for granted (Linux).
            if seq < self.una || self.sent.again(seq) {
                self.undo.duplicate(seq);
            }
        }
        if !self.is_probe_copy(first.1) {
            self.rack.duplicate(self.una, self.nxt);
        }
        Some(first.1)
    }

    /// The probe was a copy of the segment before `end`.
    fn is_probe_copy(&self, end: u32) -> bool {
        self.probe.is_some_and(|probe| probe.copy.is_some() && probe.end == end)
    }

    /// Looks at each segment that the ACK is the first to tell of.
    #[cold]
    pub(super) fn hear_arrivals(&mut self, ack: &AckSegment, now: Time) -> Arrivals {
        let mut arrivals = Arrivals::default();
        if !self.frto && !self.settings.rack {
            return arrivals;
        }
        let (sent, rack, recover) = (&self.sent, &mut self.rack, self.recover);
        let (highest, min_rtt) = (self.board.highest(), self.rtt.min_rtt());
        let mut look = |from: u32, to: u32| {
            for seq in from..to {
                let again = sent.again(seq);
                arrivals.original |= !again && seq < recover;
                if !again && seq >= ack.ack {
                    arrivals.sacked = arrivals.sacked.or(Some(sent.at(seq)));
                    arrivals.sacked_last = Some(sent.at(seq));
                }
                rack.reordering_seen |= !again && seq < highest;
                // An echo from before the copy left: the original is acknowledged (RFC 8985 §6.2
                // step 2). Of what lies beyond a gap the echo says nothing.
                let of_original = again && seq < ack.ack && ack.echo < sent.at(seq);
                if !of_original {
                    rack.arrived(seq, sent.at(seq), again, min_rtt, now);
                }
            }
        };
        // The RTT that counts is that of the segment looked at last: SACKed ones come before those
        // acknowledged (Linux).
        let mut blocks = ack.sacks;
        let blocks = &mut blocks[..usize::from(ack.sack_count)];
        blocks.sort_unstable();
        for &mut (from, to) in blocks {
            let from = from.max(ack.ack);
            self.board.unsacked_below(to.min(self.nxt), from, &mut look);
        }
        self.board.unsacked_below(ack.ack, self.una, &mut look);
        arrivals
    }

    /// Everything but the common case: duplicates, SACKs, ECN, recovery.
    pub(super) fn on_ack_amiss(&mut self, ack: &AckSegment, heard: Heard, now: Time) {
        let Heard { acked, delivered, rtt, .. } = heard;
        // Without SACK an ACK after a timeout may tell of much that had arrived before: it counts
        // for one segment (RFC 3465 §2.3).
        let blind = self.phase == Phase::Loss && !self.settings.sack;
        let delivered = if blind { delivered.min(1) } else { delivered };
        let echo = ack.ece && self.settings.ecn;
        if echo {
            self.undo.confirm();
        }
        self.first = First::Lost;
        self.probing = false;
        self.answer_probe(ack, &heard, now);
        if self.phase != Phase::Open && self.is_over() {
            // NewReno's full ACK sets the window and does no more (RFC 6582 §3.2 step 3).
            let ns2 = &self.settings.ns2;
            let full_ack_grows = if self.settings.sack {
                !ns2.sack_full_ack_stands
            } else {
                ns2.newreno_full_ack_grows
            };
            let no_more = self.phase == Phase::Recovery && !full_ack_grows;
            if self.proves_needless(&heard) {
                self.give_back(false);
            } else {
                self.leave_recovery();
            }
            if no_more {
                return;
            }
        } else {
            self.reconsider(&heard);
        }
        let missing = self.board.missing();
        match self.phase {
            Phase::Open => {
                // RFC 6582 §3.2 step 2. RFC 6675 needs no such care: SACKs tell what has arrived
                // from what was sent twice.
                let careful = !self.settings.sack || self.settings.ns2.sack_bug_fix;
                if (!careful || self.is_news()) && self.finds_loss(now) {
                    self.signal(Signal::Loss, Phase::Recovery, now);
                    if echo {
                        self.undo.confirm();
                    }
                    self.begin_resending(now);
                    self.count_as_sack1();
                    self.reduce(delivered, acked > 0 && self.board.missing() <= missing);
                } else if echo && self.is_news() {
                    self.stats.ecn_reductions += 1;
                    self.signal(Signal::Ecn, Phase::Reduced, now);
                    self.recover = self.nxt;
                    self.reduce(delivered, acked > 0);
                } else if acked > 0 {
                    self.grow(delivered, rtt, ack.one_way, now);
                }
            }
            Phase::Recovery => {
                if self.first == First::OnlyNew {
                    self.reduce(delivered, acked > 0);
                } else if self.settings.sack {
                    self.mark_lost(now);
                    self.count_as_sack1();
                    self.reduce(delivered, acked > 0 && self.board.missing() <= missing);
                } else {
                    self.newreno(acked);
                }
            }
            Phase::Reduced => {
                if self.finds_loss(now) {
                    // The window was reduced for this round trip already: only the lost segments
                    // are sent again.
                    self.phase = Phase::Recovery;
                    self.begin_resending(now);
                    self.reduce(delivered, acked > 0 && self.board.missing() <= missing);
                } else if self.proportional() {
                    self.reduce(delivered, acked > 0);
                } else if acked > 0 && !echo {
                    self.grow(delivered, rtt, ack.one_way, now);
                }
            }
            Phase::Loss => {
                if self.settings.frto && !self.settings.sack {
                    // A duplicate after F-RTO's new data says that some of that has arrived: room
                    // for what is lost.
                    let arrived = acked == 0 && self.nxt > self.recover;
                    self.inflation = if arrived { self.inflation + 1 } else { 0 };
                }
                if self.settings.rack && self.mark_lost(now).copies {
                    // What was sent again is lost again: congestion anew (Linux).
                    self.signal(Signal::Loss, Phase::Recovery, now);
                    self.begin_resending(now);
                    self.reduce(delivered, acked > 0 && self.board.missing() <= missing);
                } else if acked > 0 {
                    self.grow(delivered, rtt, ack.one_way, now);
                }
            }
        }
        if self.settings.limited_transmit
            && !self.settings.sack
            && (self.phase == Phase::Open || self.phase == Phase::Reduced)
        {
            // RFC 3042: each of the first duplicates lets a new segment out. With SACK the count of
            // what is in flight does that by itself.
            self.inflation = self.dup_acks.min(DUP_THRESH - 1) as i32;
        }
    }

    /// The reduction was for nothing: by stamps, by DSACKs, or, of a timeout, because originals
    /// arrive (RFC 5682 §3.1 step 3b).
    fn proves_needless(&self, heard: &Heard) -> bool {
        if self.phase == Phase::Reduced {
            return false;
        }
        let delayed = heard.acked > 0 && self.undo.delayed(heard.echo);
        delayed || self.undo.all_reported() || (self.frto && heard.original)
    }

    /// Before what was reduced for is acknowledged: was it for nothing?
    fn reconsider(&mut self, heard: &Heard) {
        match self.phase {
            Phase::Open => {
                if self.undo.all_reported() {
                    self.give_back(false);
                }
            }
            Phase::Reduced => {}
            Phase::Recovery => {
                if heard.acked > 0 && self.undo.delayed(heard.echo) {
                    // An original filled the hole. Until the copies are in, losses are in doubt
                    // (Linux).
                    if self.board.resent(self.una) > 0 {
                        self.first = First::OnlyNew;
                    } else {
                        self.give_back(true);
                    }
                } else if self.undo.all_reported() {
                    self.give_back(false);
                }
            }
            Phase::Loss => {
                let answered = heard.acked > 0 || heard.original;
                if answered && self.proves_needless(heard) {
                    self.give_back(true);
                } else if self.frto {
                    self.probe_timeout(heard);
                }
            }
        }
    }

    /// F-RTO (RFC 5682 §3.1): the first ACK that advances lets new data out, the next one tells by
    /// what it acknowledges.
    fn probe_timeout(&mut self, heard: &Heard) {
        if self.nxt > self.recover {
            // Step 3a: the new data has arrived and nothing from before the timeout. The loss was
            // real.
            self.frto &= !heard.duplicate;
        } else if heard.acked > 0 {
            self.recover = self.nxt;
            self.first = First::New;
        }
    }

    /// Undoes the reduction: cwnd and ssthresh as before, or as now where that is more (Linux's
    /// rule for CUBIC, Reno and Vegas alike). With `unmark` nothing counts as lost any more.
    fn give_back(&mut self, unmark: bool) {
        self.stats.undos += 1;
        match (unmark, self.settings.rack) {
            (false, _) => {}
            (true, false) => self.board.unmark(self.una),
            (true, true) => self.board.trust(self.una, |seq| self.sent.at(seq)),
        }
        // RACK looks again.
        self.rack.advanced = true;
        if let Some((cwnd, ssthresh)) = self.undo.take() {
            self.control.set_cwnd(self.control.cwnd().max(cwnd));
            if ssthresh > self.control.ssthresh() {
                self.control.set_ssthresh(ssthresh);
                self.cwr_due = false;
            }
        }
        self.rtt.end_backoff();
        self.reopen();
    }

    /// Duplicates or SACKs say that a segment is lost. With SACK they need not come in a row.
    fn finds_loss(&mut self, now: Time) -> bool {
        if self.settings.rack {
            self.mark_lost(now);
            // What is lost and was sent again counts: when a recovery ends, that is of data sent
            // since it began.
            return self.board.lost(self.una) > 0;
        }
        if self.settings.sack {
            self.board.mark_lost(self.una)
        } else {
            self.dup_acks >= DUP_THRESH
        }
    }

    /// Marks what SACKs say is lost: by RACK, or by RFC 6675.
    fn mark_lost(&mut self, now: Time) -> Found {
        if !self.settings.rack {
            self.board.mark_lost(self.una);
        } else if std::mem::take(&mut self.rack.advanced) {
            return self.judge(now);
        }
        Found::default()
    }

    /// RACK: judges everything outstanding; comes back to what has to wait.
    fn judge(&mut self, now: Time) -> Found {
        let recovering = self.phase == Phase::Recovery || self.phase == Phase::Loss;
        let sure = recovering || self.board.sacked() >= DUP_THRESH;
        let window = self.rack.window(sure, self.rtt.min_rtt(), self.rtt.srtt());
        let (rack, sent) = (&self.rack, &self.sent);
        let found =
            self.board.judge(self.una, self.nxt, |seq| rack.judge(seq, sent.at(seq), window, now));
        if found.wait > Span::ZERO {
            // Linux's timers don't wait for less than 2 ms.
            self.alarm.set(Due::Judge, now, found.wait + Span::from_millis(2));
            self.judging = true;
        }
        found
    }

    /// The reordering window has passed without an ACK.
    pub(super) fn judge_late(&mut self, now: Time) {
        let before = self.board.missing();
        self.judge(now);
        if self.board.missing() == before {
            return;
        }
        match self.phase {
            Phase::Recovery => {}
            Phase::Reduced => {
                self.phase = Phase::Recovery;
                self.begin_resending(now);
                self.reduce(1, false);
            }
            Phase::Open | Phase::Loss => {
                self.signal(Signal::Loss, Phase::Recovery, now);
                self.begin_resending(now);
                self.reduce(1, false);
            }
        }
        self.refresh();
    }

    /// RFC 8985 §7.4: what the answer to a probe tells.
    fn answer_probe(&mut self, ack: &AckSegment, heard: &Heard, now: Time) {
        let Some(probe) = self.probe else { return };
        if ack.ack < probe.end {
            return;
        }
        let twice = heard.reported == Some(probe.end) || (heard.acked == 0 && !heard.duplicate);
        if probe.copy.is_none() || twice {
            // It was new data, or both the original and the copy have arrived.
            self.probe = None;
        } else if ack.ack > probe.end {
            // The copy filled a hole: a loss, repaired before it was found.
            self.signal(Signal::Loss, Phase::Open, now);
            self.undo = Undo::new();
            self.control.set_cwnd(self.control.ssthresh());
        }
    }

    /// What the window was reduced for is acknowledged. After an ECN echo one segment more: that
    /// one carried CWR, and before it has arrived an echo is the old one (Linux).
    fn is_over(&self) -> bool {
        self.una > self.recover || (self.una == self.recover && self.phase != Phase::Reduced)
    }

    /// A signal now is of data sent after the last reduction. Up to `recover` an ECN echo is the
    /// old one, and without SACK duplicates may answer what was sent twice (RFC 6582 §3.2 step 2,
    /// ns-2's bugFix_).
    fn is_news(&self) -> bool {
        self.una > self.recover || self.recover == 0
    }

    /// ns-2's Sack1 takes what is lost to be in flight until it is acknowledged, and what is sent
    /// again of it as well.
    pub(super) fn count_as_sack1(&mut self) {
        if self.settings.sack && self.settings.ns2.sack1_pipe {
            self.inflation = -(self.board.lost(self.una) as i32);
        }
    }

    fn begin_resending(&mut self, now: Time) {
        self.stats.fast_recoveries += 1;
        self.recover = self.nxt;
        self.partial_acks = 0;
        self.rescued = false;
        self.force = !self.proportional();
        self.end_probe();
        if !self.settings.sack {
            // All that three duplicates tell is that the first segment is lost.
            self.board.mark_lost_below(self.una + 1, self.una);
            self.inflation = self.dup_acks as i32;
        }
        if !self.proportional() {
            self.control.set_cwnd(self.control.ssthresh());
        }
        if !self.settings.rack {
            // The first segment outstanding is sent again now: its time begins anew (Linux, ns-2).
            self.begin_timeout(now);
        }
    }

    /// Congestion, in a window of data that was not reduced for yet.
    pub(super) fn signal(&mut self, signal: Signal, next: Phase, now: Time) {
        let cwnd = self.control.cwnd();
        if signal == Signal::Ecn {
            self.undo = Undo::new();
        } else {
            // A window that has outgrown ssthresh is remembered by three quarters of it (Linux).
            let ssthresh = self.control.ssthresh().max(0.75 * cwnd);
            let marker = self.settings.undo.then_some(self.una);
            match self.board.resent(self.una) {
                0 => self.undo.begin(marker, cwnd, ssthresh),
                copies => self.undo.begin_anew(marker, cwnd, ssthresh, copies),
            }
            if let Some(Probe { copy: Some(sent), .. }) = self.probe {
                self.undo.sent_again(sent);
            }
        }
        if signal != Signal::Ecn {
            self.end_probe();
        }
        self.phase = next;
        self.prr = Prr { delivered: 0, out: 0, from: cwnd };
        let inflight = self.nxt - self.una;
        self.control.on_congestion(&Congestion { now, signal, inflight });
        if signal == Signal::Ecn && !self.proportional() {
            self.control.set_cwnd(self.control.ssthresh());
        }
        // The receiver hears of it, whatever the reason (RFC 3168 §6.1.2).
        self.cwr_due = self.settings.ecn;
    }

    /// Whether the window comes down by PRR: it needs to know what is delivered, so SACK, or no
    /// loss at all.
    fn proportional(&self) -> bool {
        let able =
            self.phase == Phase::Reduced || (self.phase == Phase::Recovery && self.settings.sack);
        able && self.settings.prr
    }

    /// PRR (RFC 6937 §3): above ssthresh send in proportion to what is delivered, below it in slow
    /// start, or packet for packet while further losses are found. Linux's variant: progress is an
    /// ACK that advances and tells of no loss.
    fn reduce(&mut self, delivered: u32, progress: bool) {
        if delivered == 0 || !self.proportional() {
            return;
        }
        self.prr.delivered += delivered;
        let pipe = self.pipe();
        let ssthresh = self.control.ssthresh() as u32;
        let allowed = if pipe > ssthresh {
            let from = (self.prr.from as u64).max(1);
            let share = (u64::from(ssthresh) * u64::from(self.prr.delivered)).div_ceil(from);
            (share as u32).saturating_sub(self.prr.out)
        } else {
            let conserved = self.prr.delivered.saturating_sub(self.prr.out).max(delivered);
            (ssthresh - pipe).min(conserved + u32::from(progress))
        };
        // The first segment is always sent again.
        let allowed = allowed.max(u32::from(self.prr.out == 0));
        self.control.set_cwnd(f64::from(pipe + allowed));
    }

    /// RFC 6582 §3.2 steps 3 to 5: duplicates inflate the window, a partial ACK deflates it and
    /// shows the next hole.
    fn newreno(&mut self, acked: u32) {
        if acked == 0 {
            self.inflation += 1;
            return;
        }
        self.partial_acks += 1;
        self.inflation = (self.inflation + 1).saturating_sub_unsigned(acked).max(0);
        self.board.mark_lost_below(self.una + 1, self.una);
        self.force = true;
    }

    fn leave_recovery(&mut self) {
        match self.phase {
            Phase::Recovery
                if !self.settings.sack && !self.settings.ns2.newreno_exit_at_ssthresh =>
            {
                // RFC 6582 §3.2 step 3, option 1: no burst after a window full of duplicates (ns-2
                // bursts).
                let flight = f64::from((self.nxt - self.una).max(1) + 1);
                self.control.set_cwnd(self.control.ssthresh().min(flight));
            }
            _ if self.proportional() => self.control.set_cwnd(self.control.ssthresh()),
            _ => {}
        }
        if self.phase != Phase::Reduced {
            self.rack.recovered();
        }
        if self.phase == Phase::Recovery && self.settings.sack && self.settings.ns2.sack_bug_fix {
            // ns-2's Sack1 is careful after timeouts only.
            self.recover = 0;
        }
        self.reopen();
    }

    fn reopen(&mut self) {
        self.phase = Phase::Open;
        self.frto = false;
        self.inflation = 0;
        self.force = false;
    }
}
