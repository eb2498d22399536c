//! The sender's state machines as types. Each state contains only its own variables.
//!
//! `CaState` is Linux's tcp_ca_state. `Tlp` is the tail loss probe, which may be outstanding in any
//! of these states. `EcnState` tracks whether a reduction still has to be announced.

use units::Time;

/// The reduction of cwnd that is under way (icsk_ca_state). Linux's TCP_CA_Disorder is `Open` with
/// SACKed segments or duplicate ACKs.
#[derive(Clone, Copy, Debug)]
pub enum CaState {
    /// TCP_CA_Open: cwnd grows.
    Open,
    /// TCP_CA_CWR: cwnd falls after an ECN echo; nothing is lost.
    Cwr(Prr),
    /// TCP_CA_Recovery: lost segments are retransmitted while cwnd falls.
    Recovery(Recovery),
    /// TCP_CA_Loss: the retransmission timer expired.
    Loss(Loss),
}

impl CaState {
    /// TCP_CA_Open.
    #[inline]
    pub fn is_open(&self) -> bool {
        matches!(self, CaState::Open)
    }

    /// The reduction under way, which PRR carries out (tcp_in_cwnd_reduction).
    #[inline]
    pub fn reduction(&mut self) -> Option<&mut Prr> {
        match self {
            CaState::Cwr(prr) | CaState::Recovery(Recovery { prr, .. }) => Some(prr),
            CaState::Open | CaState::Loss(_) => None,
        }
    }

    /// F-RTO is active: the timeout may be spurious (tp->frto).
    pub fn in_frto(&self) -> bool {
        matches!(self, CaState::Loss(Loss { frto: Frto::Undecided | Frto::NewData, .. }))
    }

    /// The segments that leave first while lost segments wait for retransmission.
    pub fn rexmit(&self) -> Rexmit {
        match self {
            CaState::Loss(Loss { frto: Frto::NewData, .. }) => Rexmit::New,
            CaState::Recovery(Recovery { in_doubt: true, .. }) => Rexmit::None,
            _ => Rexmit::Lost,
        }
    }

    /// The next lost segment leaves whatever cwnd is.
    pub fn retransmits_at_once(&self) -> bool {
        matches!(self, CaState::Recovery(Recovery { fast_retransmit: true, in_doubt: false, .. }))
    }

    /// An ACK arrives: lost segments leave first, unless the ACK shows again that they should not.
    pub fn reset_rexmit(&mut self) {
        match self {
            CaState::Recovery(recovery) => recovery.in_doubt = false,
            CaState::Loss(loss) if loss.frto == Frto::NewData => loss.frto = Frto::Undecided,
            _ => {}
        }
    }
}

/// A fast recovery (RFC 6675, RFC 6582).
#[derive(Clone, Copy, Debug)]
pub struct Recovery {
    /// The state of the reduction of cwnd.
    pub prr: Prr,
    /// Without PRR: the next lost segment leaves whatever cwnd is (RFC 5681 §3.2 step 3).
    pub fast_retransmit: bool,
    /// The losses are in doubt until the retransmissions in flight are acknowledged
    /// (tcp_try_undo_partial).
    pub in_doubt: bool,
    /// RFC 6675 §4 NextSeg rule 4: the rescue retransmission has left.
    pub rescue_sent: bool,
    /// Partial ACKs (RFC 6582 §3.2 step 3).
    pub partial_acks: u32,
}

/// A retransmission timeout.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// SND.UNA when the timer expired.
    pub una: u32,
    /// F-RTO's state.
    pub frto: Frto,
}

/// F-RTO (RFC 5682 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frto {
    /// F-RTO is inactive, or has found that the loss was real.
    Off,
    /// The next ACK that advances SND.UNA, or the one after it, decides.
    Undecided,
    /// Step 2b: an ACK has advanced SND.UNA, and new data leaves if any may be sent.
    NewData,
}

/// The segments that leave first while lost segments wait for retransmission (Linux's REXMIT_LOST,
/// REXMIT_NEW, REXMIT_NONE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rexmit {
    /// Lost segments.
    Lost,
    /// New data if any may be sent, otherwise lost segments.
    New,
    /// New data only.
    None,
}

/// Proportional rate reduction (RFC 6937): cwnd in a recovery follows the delivered segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prr {
    /// prr_delivered.
    pub delivered: u32,
    /// prr_out.
    pub out: u32,
    /// prior_cwnd: cwnd at the start of the reduction, which Linux uses as RecoverFS.
    pub prior_cwnd: f64,
}

/// The tail loss probe (RFC 8985 §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tlp {
    /// No probe.
    None,
    /// PTO has passed: a probe leaves next, whatever cwnd is.
    Due,
    /// A probe has left and is not yet answered (tlp_high_seq).
    Sent {
        /// SND.NXT after the probe left (TLP.end_seq).
        end_seq: u32,
        /// The probe's departure, if it was a retransmission (TLP.is_retrans).
        retransmitted: Option<Time>,
    },
}

impl Tlp {
    /// A probe is outstanding.
    #[inline]
    pub fn is_sent(&self) -> bool {
        matches!(self, Tlp::Sent { .. })
    }

    /// A probe leaves next.
    #[inline]
    pub fn is_due(&self) -> bool {
        matches!(self, Tlp::Due)
    }

    /// Another segment leaves, or an ACK arrives: no probe is needed now.
    #[inline]
    pub fn not_due(&mut self) {
        if self.is_due() {
            *self = Tlp::None;
        }
    }
}

/// The event for which the timer is to be armed once no more segments leave: a burst arms it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rearm {
    /// The timer stays as it is.
    No,
    /// An ACK has advanced SND.UNA (tcp_set_xmit_timer).
    Acked,
    /// A new segment has left, after that ACK if there was one (tcp_event_new_data_sent).
    Sent,
}

/// ECN at the sender (Linux's ecn_flags).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnState {
    /// ECN was not agreed on.
    Off,
    /// TCP_ECN_OK.
    Ok,
    /// AccECN.
    Accurate,
    /// TCP_ECN_QUEUE_CWR: cwnd was reduced, and the next new segment carries CWR (RFC 3168 §6.1.2).
    QueueCwr,
}
