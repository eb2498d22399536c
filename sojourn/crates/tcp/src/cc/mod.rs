//! Congestion control: how many segments may be in flight.
//!
//! The sender reports each ACK and each congestion signal; a congestion control sets cwnd and
//! ssthresh. The sender decides how cwnd falls during a recovery (PRR, window inflation), in the
//! same way for all controls. Windows are in segments here, with fractions; the sender's public
//! functions return bytes. The traits have the hooks of Linux's `tcp_congestion_ops` under readable
//! names. `CongestionControl` has the hooks of every control, `RateSampled` those of BBR,
//! `MarkBased` those of DCTCP, and `Paced` those of a control with its own pacing rate.

/// The accessors of `CongestionControl` for a state with the fields `cwnd` and `ssthresh`, `f64`.
macro_rules! window_accessors {
    () => {
        #[inline]
        fn cwnd(&self) -> f64 {
            self.cwnd
        }

        #[inline]
        fn set_cwnd(&mut self, cwnd: f64) {
            self.cwnd = cwnd;
        }

        #[inline]
        fn ssthresh(&self) -> f64 {
            self.ssthresh
        }

        fn set_ssthresh(&mut self, ssthresh: f64) {
            self.ssthresh = ssthresh;
        }
    };
}

mod bbr;
pub(crate) mod bbr3;
mod cubic;
mod dctcp;
mod hystart_plus_plus;
mod ledbat;
mod minmax;
mod own;
mod prague;
mod reno;
mod vegas;

pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use ledbat::Ledbat;
pub use own::Own;
pub use prague::Prague;
pub use reno::Reno;
pub use vegas::Vegas;

use crate::rate::{LostSegment, RateSample, Totals};
use crate::rtt::Srtt;
use crate::{CongestionKind, TcpParams};
use units::{Rng, Span, Time, forward};

/// An ACK of new data.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// Now.
    pub now: Time,
    /// Segments that the ACK newly acknowledged, cumulatively or by SACK; none counts twice.
    pub acked: u32,
    /// The ACK's RTT sample, if any.
    pub rtt: Option<Span>,
    /// One-way delay of the newest segment that the ACK answers, if the receiver measures it (RFC
    /// 6817 §2.3).
    pub one_way: Option<Span>,
    /// Smoothed RTT (RFC 6298).
    pub srtt: Srtt,
    /// The first unacknowledged segment, after this ACK.
    pub una: u32,
    /// The next segment to be sent for the first time.
    pub nxt: u32,
    /// cwnd, not the application or the receive window, limits the sender: only then may cwnd grow
    /// (RFC 7661; tcp_is_cwnd_limited).
    pub cwnd_limited: bool,
    /// The sender is in Linux's state TCP_CA_Open: no recovery, and no segment SACKed beyond a gap.
    pub ca_open: bool,
}

/// The RTT that an ACK reports to the congestion control (Linux's struct ack_sample).
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// The RTT, whole µs. It is that of the last segment that this ACK newly SACKs, or else of the
    /// last one that it newly acknowledges. If it newly acknowledges a retransmission, the RTT
    /// follows from the timestamp's echo.
    pub rtt_us: u64,
    /// Now.
    pub now: Time,
    /// Smoothed RTT (RFC 6298).
    pub srtt: Srtt,
    /// The first unacknowledged segment, after this ACK.
    pub una: u32,
    /// The next segment to be sent for the first time.
    pub nxt: u32,
}

/// A segment is about to leave while nothing is in flight.
#[derive(Clone, Copy, Debug)]
pub struct TxStart {
    /// Now.
    pub now: Time,
    /// The next segment to be sent for the first time.
    pub nxt: u32,
    /// The last departure of a segment with data (tp->lsndtime).
    pub lsndtime: Time,
}

/// The kind of a congestion signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// ECN echo.
    Ecn,
    /// Fast retransmit.
    Loss,
    /// Retransmission timeout.
    Timeout,
}

/// A congestion signal, at most one a window of data.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// Now.
    pub now: Time,
    /// The kind of the signal.
    pub signal: Signal,
    /// Segments outstanding.
    pub inflight: u32,
}

/// Segments delivered since the start, by ACK or SACK, modulo 2^32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// All delivered segments (tp->delivered).
    pub packets: u32,
    /// Segments that arrived with CE according to feedback (tp->delivered_ce).
    pub ce: u32,
}

/// An ACK of a connection with exact feedback on marks.
#[derive(Clone, Copy, Debug)]
pub struct AckEvent {
    /// Segments delivered since the start, this ACK's included.
    pub delivered: Delivered,
    /// The first unacknowledged segment, after this ACK.
    pub una: u32,
    /// The next segment to be sent for the first time.
    pub nxt: u32,
    /// Now.
    pub now: Time,
    /// Smoothed RTT; `None` before the first sample.
    pub srtt: Option<Span>,
    /// Segments in flight, after this ACK (tcp_packets_in_flight).
    pub in_flight: u32,
    /// See `Ack::cwnd_limited`.
    pub cwnd_limited: bool,
    /// The state is TCP_CA_Open or TCP_CA_CWR.
    pub lossless: bool,
}

/// The needs of a congestion control. The sender reads them once, at the start of the connection.
/// By default a control needs only ACKs.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// `CongestionControl::on_ack` is called.
    pub acks: bool,
    /// `CongestionControl::on_delivered` is called.
    pub segment_rtts: bool,
    /// The sender takes samples of the delivery rate, and calls the methods of `RateSampled`.
    pub rate_samples: bool,
    /// The control sets cwnd by itself, even in a reduction: no PRR.
    pub sets_cwnd: bool,
    /// Segments are paced, at the control's own rate once it has set one (`Paced`).
    pub paced: bool,
    /// The first segments are paced too; Linux does not pace them.
    pub paced_from_the_start: bool,
    /// Some segments are shorter than the MSS (`Paced::payload`).
    pub shorter_segments: bool,
}

impl Needs {
    /// Only ACKs.
    const ACKS: Needs = Needs {
        acks: true,
        segment_rtts: false,
        rate_samples: false,
        sets_cwnd: false,
        paced: false,
        paced_from_the_start: false,
        shorter_segments: false,
    };
}

/// A congestion control algorithm. A control that only moves the window by ACKs and losses
/// implements `on_ack` and `on_congestion`. `window_accessors!` and the defaults implement the
/// rest.
pub trait CongestionControl {
    /// The control's needs.
    fn needs(&self) -> Needs {
        Needs::ACKS
    }

    /// An ACK of new data outside recovery: cwnd may grow (`cong_avoid`). Called if `Needs::acks`.
    fn on_ack(&mut self, ack: &Ack);

    /// A congestion signal: sets ssthresh (`ssthresh`), and cwnd to 1 on a timeout. In fast
    /// recovery the sender reduces cwnd to ssthresh.
    fn on_congestion(&mut self, event: &Congestion);

    /// An ACK gives an RTT, also in a recovery (`pkts_acked`). Called before `on_ack`, if
    /// `Needs::segment_rtts`.
    fn on_delivered(&mut self, _sample: &AckSample) {}

    /// A segment is about to leave while nothing is in flight (CA_EVENT_TX_START): at the start,
    /// after a pause, and when a timeout has marked all segments as lost.
    fn on_tx_start(&mut self, _start: &TxStart) {}

    /// A reduction proved needless; cwnd was `prior_cwnd` before it (undo_cwnd).
    fn undo(&mut self, prior_cwnd: f64, _totals: Totals) {
        self.set_cwnd(self.cwnd().max(prior_cwnd));
    }

    /// The window, segments.
    fn cwnd(&self) -> f64;

    /// Sets the window. The sender calls it during a recovery and at its end.
    fn set_cwnd(&mut self, cwnd: f64);

    /// The slow-start threshold, segments; infinite at first.
    fn ssthresh(&self) -> f64;

    /// Sets the threshold. The sender calls it when it undoes a reduction. Other changes that
    /// `on_congestion` made to the control's state stay.
    fn set_ssthresh(&mut self, ssthresh: f64);

    /// The pacing rate as a multiple of cwnd/srtt, as in Linux: 2 in slow start
    /// (`tcp_pacing_ss_ratio`), 1.2 afterwards (`tcp_pacing_ca_ratio`). The last round trip of slow
    /// start has 1.2 too, or it would overshoot.
    fn pacing_gain(&self) -> f64 {
        if self.cwnd() < self.ssthresh() / 2.0 { 2.0 } else { 1.2 }
    }
}

/// A congestion control with its own pacing rate.
pub trait Paced {
    /// The rate at which segments are paced, payload bytes a second.
    fn rate(&self) -> Option<u64> {
        None
    }

    /// Segments that may leave at one instant, at least one (tso_segs).
    fn burst(&self) -> u32 {
        1
    }

    /// Payload of segments that leave now, bytes; at most the MSS. Called if
    /// `Needs::shorter_segments`.
    fn payload(&self) -> u32 {
        u32::MAX
    }
}

/// A congestion control that models the path from samples of the delivery rate. It sets cwnd and
/// its pacing rate at each sample, also in a recovery (cong_control). The methods are called if
/// `Needs::rate_samples`.
pub trait RateSampled: CongestionControl + Paced {
    /// Sets the random stream before the connection begins, whatever the needs are.
    fn set_rng(&mut self, rng: Rng);

    /// The connection is established. `rtt` is the handshake's RTT.
    fn on_established(&mut self, _rtt: Option<Span>, _totals: Totals, _now: Time) {}

    /// An ACK was processed.
    fn on_rate_sample(&mut self, sample: &RateSample);

    /// A segment was marked as lost. Called before the ACK's `on_rate_sample`.
    fn on_lost(&mut self, _lost: &LostSegment) {}

    /// The control keeps cwnd so low that samples show less than the path delivers.
    fn limits_itself(&self) -> bool {
        false
    }

    /// A segment is about to leave after a pause of the application.
    fn on_idle_restart(&mut self, _now: Time, _totals: Totals) {}

    /// The retransmission timer has expired (TCP_CA_Loss).
    fn on_timeout(&mut self, _totals: Totals) {}
}

/// A congestion control that counts marks. The endpoints' feedback on marks is exact.
pub trait MarkBased: CongestionControl + Paced {
    /// An ACK arrives, also in a recovery, before the sender decides whether to reduce cwnd
    /// (`in_ack_event`). Not called if `Needs::sets_cwnd`.
    fn in_ack_event(&mut self, _event: &AckEvent) {}

    /// The ACK has been processed: the control sets cwnd. Called if `Needs::sets_cwnd`.
    fn cong_control(&mut self, _event: &AckEvent) {}

    /// A recovery begins. Called after `on_congestion` if cwnd is reduced for the recovery
    /// (`set_state` with TCP_CA_Recovery).
    fn on_recovery(&mut self) {}
}

/// Linux's `snd_cwnd_cnt`: acknowledged segments that count towards the next growth of cwnd by one
/// segment.
#[derive(Clone, Copy, Default)]
struct CwndCnt(u32);

impl CwndCnt {
    /// tcp_cong_avoid_ai: counts `acked` segments. Returns the growth of cwnd: one segment for each
    /// `w` counted.
    #[inline]
    fn cong_avoid_ai(&mut self, acked: u32, w: u32) -> u32 {
        // If `w` has fallen to the count or below, the earlier count grows cwnd by only one
        // segment.
        let reached = self.0 >= w;
        let cnt = if reached { acked } else { self.0 + acked };
        if cnt < w {
            self.0 = cnt;
            return u32::from(reached);
        }
        self.0 = cnt % w;
        cnt / w + u32::from(reached)
    }
}

/// tcp_reno_cong_avoid: cwnd in whole segments after `acked` more segments are acknowledged (RFC
/// 5681 §3.1). Slow start applies up to ssthresh, congestion avoidance to the rest.
#[inline]
fn reno_cong_avoid(cwnd: f64, ssthresh: f64, acked: u32, cwnd_cnt: &mut CwndCnt) -> f64 {
    let (mut cwnd, mut left) = (cwnd, acked);
    if cwnd < ssthresh {
        let after = (cwnd + f64::from(left)).min(ssthresh);
        left -= (after - cwnd) as u32;
        cwnd = after;
    }
    if left > 0 {
        cwnd += f64::from(cwnd_cnt.cong_avoid_ai(left, cwnd as u32));
    }
    cwnd
}

/// Declares each congestion control once, with its state and its constructor. The group gives its
/// traits: all implement `CongestionControl`, those of `sampled` also `RateSampled`, and those of
/// `marks` also `MarkBased`.
macro_rules! controls {
    (
        window { $($(#[$window_doc:meta])* $Window:ident($WindowState:ty): $make_window:expr;)* }
        sampled { $($(#[$sampled_doc:meta])* $Sampled:ident($SampledState:ty): $make_sampled:expr;)* }
        marks { $($(#[$marks_doc:meta])* $Marks:ident($MarksState:ty): $make_marks:expr;)* }
    ) => {
        /// A congestion control with static dispatch.
        pub enum Control {
            $($(#[$window_doc])* $Window($WindowState),)*
            $($(#[$sampled_doc])* $Sampled($SampledState),)*
            $($(#[$marks_doc])* $Marks($MarksState),)*
            /// See `own`. On the heap, so that `Control` stays small.
            Own(Box<Own>),
        }

        impl Control {
            /// The user-defined control if there is one, or else that of `params.congestion`.
            pub fn new(params: &TcpParams) -> Control {
                if let Some(own) = &params.own {
                    return Control::Own(Box::new(Own::new(own, params)));
                }
                match params.congestion {
                    $(CongestionKind::$Window => Control::$Window(($make_window)(params)),)*
                    $(CongestionKind::$Sampled => Control::$Sampled(($make_sampled)(params)),)*
                    $(CongestionKind::$Marks => Control::$Marks(($make_marks)(params)),)*
                }
            }
        }

        macro_rules! each {
            ($self:expr, $c:ident => $body:expr) => {
                match $self {
                    $(Control::$Window($c) => $body,)*
                    $(Control::$Sampled($c) => $body,)*
                    $(Control::$Marks($c) => $body,)*
                    Control::Own($c) => $body,
                }
            };
        }

        macro_rules! each_paced {
            ($self:expr, $c:ident => $body:expr, else $default:expr) => {
                match $self {
                    $(Control::$Sampled($c) => $body,)*
                    $(Control::$Marks($c) => $body,)*
                    Control::Own($c) => $body,
                    _ => $default,
                }
            };
        }

        macro_rules! each_sampled {
            ($self:expr, $c:ident => $body:expr) => {
                match $self {
                    $(Control::$Sampled($c) => $body,)*
                    Control::Own($c) => $body,
                    _ => Default::default(),
                }
            };
        }

        macro_rules! each_of_marks {
            ($self:expr, $c:ident => $body:expr) => {
                match $self {
                    $(Control::$Marks($c) => $body,)*
                    _ => {}
                }
            };
        }
    };
}

controls! {
    window {
        /// See `Reno`.
        Reno(Reno): Reno::new;
        /// See `Cubic`.
        Cubic(Cubic): Cubic::new;
        /// See `Vegas`.
        Vegas(Vegas): Vegas::new;
        /// See `Ledbat`. Its delay histories are large, so they are on the heap and `Control` stays
        /// small.
        Ledbat(Box<Ledbat>): |params| Box::new(Ledbat::new(params));
    }
    sampled {
        /// See `Bbr`.
        Bbr(Box<Bbr>): |params| Box::new(Bbr::new(params));
        /// See `Bbr3`.
        Bbr3(Box<Bbr3>): |params| Box::new(Bbr3::new(params));
    }
    marks {
        /// See `Dctcp`.
        Dctcp(Dctcp): Dctcp::new;
        /// See `Prague`. On the heap, so that `Control` stays small.
        Prague(Box<Prague>): |params| Box::new(Prague::new(params));
    }
}

/// The methods of every control, and the methods of each trait. A method does nothing for a control
/// without its trait. `Control` implements none of the traits, so only methods forwarded here can
/// be called.
impl Control {
    forward! { each:
        pub fn needs(&self) -> Needs;
        #[inline]
        pub fn on_ack(&mut self, ack: &Ack);
        pub fn on_congestion(&mut self, event: &Congestion);
        #[inline]
        pub fn on_delivered(&mut self, sample: &AckSample);
        pub fn on_tx_start(&mut self, start: &TxStart);
        pub fn undo(&mut self, prior_cwnd: f64, totals: Totals);
        #[inline]
        pub fn cwnd(&self) -> f64;
        #[inline]
        pub fn set_cwnd(&mut self, cwnd: f64);
        #[inline]
        pub fn ssthresh(&self) -> f64;
        pub fn set_ssthresh(&mut self, ssthresh: f64);
        #[inline]
        pub fn pacing_gain(&self) -> f64;
    }

    forward! { each_sampled:
        pub fn set_rng(&mut self, rng: Rng);
        pub fn on_established(&mut self, rtt: Option<Span>, totals: Totals, now: Time);
        pub fn on_rate_sample(&mut self, sample: &RateSample);
        pub fn on_lost(&mut self, lost: &LostSegment);
        pub fn limits_itself(&self) -> bool;
        pub fn on_idle_restart(&mut self, now: Time, totals: Totals);
        pub fn on_timeout(&mut self, totals: Totals);
    }

    forward! { each_of_marks:
        pub fn in_ack_event(&mut self, event: &AckEvent);
        pub fn cong_control(&mut self, event: &AckEvent);
        pub fn on_recovery(&mut self);
    }

    /// See `Paced`.
    #[inline]
    pub fn rate(&self) -> Option<u64> {
        each_paced!(self, c => c.rate(), else None)
    }

    /// See `Paced`.
    #[inline]
    pub fn burst(&self) -> u32 {
        each_paced!(self, c => c.burst(), else 1)
    }

    /// See `Paced`.
    pub fn payload(&self) -> u32 {
        each_paced!(self, c => c.payload(), else u32::MAX)
    }

    /// AccECN was not agreed on: Prague becomes Reno (prague_reno). Returns whether the control was
    /// Prague.
    pub fn fall_back(&mut self) -> bool {
        let Control::Prague(prague) = self else { return false };
        *self = Control::Reno(prague.fallback().clone());
        true
    }
}

#[cfg(test)]
#[path = "../../tests/common/linux.rs"]
mod linux;

/// Parameters for the tests of this crate.
#[cfg(test)]
pub(crate) mod test {
    use crate::TcpParams;

    /// A Linux host that acknowledges every second segment from the first on.
    pub fn params() -> TcpParams {
        super::linux::linux().with(|p| {
            p.timers.max_rto_ns = 60_000_000_000;
            p.acks.quick_acks = 0;
            p.buffers.receive_buffer = 1 << 20;
            p.buffers.receive_buffer_max = 1 << 20;
        })
    }
}
