//! The sender's state machines as types: each state has what belongs to it and nothing else.
//!
//! `CaState` is Linux's tcp_ca_state. `Tlp` is the tail loss probe, which may be out in any of
//! these states. `EcnState` is whether a reduction is still to be announced.

use units::Time;

/// Which reduction of cwnd is under way (icsk_ca_state). Linux's TCP_CA_Disorder is `Open` with
/// SACKed segments or duplicate ACKs.
#[derive(Clone, Copy, Debug)]
pub enum CaState {
    /// TCP_CA_Open: cwnd grows.
    Open,
    /// TCP_CA_CWR: cwnd comes down after an ECN echo; nothing is lost.
    Cwr(Prr),
    /// TCP_CA_Recovery: lost segments are retransmitted while cwnd comes down.
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

    /// F-RTO is at work: the timeout may be spurious (tp->frto).
    pub fn in_frto(&self) -> bool {
        matches!(self, CaState::Loss(Loss { frto: Frto::Undecided | Frto::NewData, .. }))
    }

    /// Which segments leave first where lost ones are to be retransmitted.
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

    /// An ACK arrives: lost segments leave first, unless it shows anew that they should not.
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
    /// How cwnd comes down.
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
    /// Whether the timeout may be spurious.
    pub frto: Frto,
}

/// F-RTO (RFC 5682 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frto {
    /// It is not at work, or has found the loss to be real.
    Off,
    /// The next ACK that advances SND.UNA, or the one after it, decides.
    Undecided,
    /// Step 2b: an ACK has advanced SND.UNA, and new data leaves if any may be sent.
    NewData,
}

/// Which segments leave first, where lost segments are to be retransmitted (Linux's REXMIT_LOST,
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

/// Proportional rate reduction (RFC 6937): cwnd in a recovery follows what is delivered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prr {
    /// prr_delivered.
    pub delivered: u32,
    /// prr_out.
    pub out: u32,
    /// prior_cwnd: cwnd when the reduction began, which Linux uses as RecoverFS.
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
        /// When the probe left, if it was a retransmission (TLP.is_retrans).
        retransmitted: Option<Time>,
    },
}

impl Tlp {
    /// A probe is out.
    #[inline]
    pub fn is_sent(&self) -> bool {
        matches!(self, Tlp::Sent { .. })
    }

    /// A probe leaves next.
    #[inline]
    pub fn is_due(&self) -> bool {
        matches!(self, Tlp::Due)
    }

    /// Something else leaves, or an ACK arrives: no probe is needed now.
    #[inline]
    pub fn not_due(&mut self) {
        if self.is_due() {
            *self = Tlp::None;
        }
    }
}

/// What the timer is to be armed for once nothing more leaves: a burst of segments arms it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rearm {
    /// It stays as it is.
    No,
    /// An ACK has advanced SND.UNA (tcp_set_xmit_timer).
    Acked,
    /// A new segment has left, after that ACK if there was one (tcp_event_new_data_sent).
    Sent,
}

/// ECN at the sender (Linux's ecn_flags).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnState {
    /// Not agreed on.
    Off,
    /// TCP_ECN_OK.
    Ok,
    /// AccECN.
    Accurate,
    /// TCP_ECN_QUEUE_CWR: cwnd was reduced, and the next new segment carries CWR (RFC 3168 §6.1.2).
    QueueCwr,
}
