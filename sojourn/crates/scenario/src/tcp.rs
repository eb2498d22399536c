//! What a TCP endpoint is: a profile, and what a flow sets otherwise in `tcp = { ... }`.
//!
//! The profiles are `tcp::params`'s. A setting carries its field's name without the unit:
//! `min_rto = "1 s"`.

use crate::forms::{
    ACK_DELAY, BOOL, BUFFER, NamedControl, Notification, TARGET, TIMEOUT, Within, Words,
};
use crate::reader::{keys, whole};
use serde::Serialize;
use std::borrow::Cow;
use tc::disciplines::own::OwnClass;
use tcp::own::OwnControl;
pub use tcp::params::MTU;
use tcp::params::{ACCECN_BYTES, FastRecovery, PragueVariant, header_bytes};
use tcp::{CongestionKind, TcpParams};

/// Profiles by name.
pub const PROFILES: &[&str] =
    &[TcpParams::PROFILES[0].0, TcpParams::PROFILES[1].0, TcpParams::PROFILES[2].0];

const SEGMENTS: Within<i128> = Within { least: 1, most: 1 << 31, above: false };
const QUEUED: Within<i128> = Within { least: 0, most: 1 << 31, above: false };
const HEADERS: Within<i128> = Within { least: 40, most: 120, above: false };

/// What a flow's endpoints do otherwise than their profile: each key a field of `tcp::TcpParams`.
macro_rules! settings {
    ($($(#[doc = $meaning:expr])+ $field:ident: $type:ty => $form:expr => $($param:ident).+;)+) => {
        keys! {
            /// What a flow's endpoints do otherwise than their profile; none: as the profile.
            TcpSettings {
                $($(#[doc = $meaning])+ $field: Optional<$type> => $form;)+
            }
        }

        impl TcpSettings {
            /// Sets what is given.
            pub(crate) fn apply(&self, params: &mut tcp::TcpParams) {
                $(if let Some(given) = self.$field {
                    params.$($param).+ = given.into();
                })+
            }
        }

        impl Default for TcpSettings {
            fn default() -> TcpSettings {
                TcpSettings { $($field: None),+ }
            }
        }
    };
}

settings! {
    /// Payload bytes of a segment.
    mss: u32 => Within { least: 88i128, most: 65_000, above: false } => mss;
    /// IP and TCP header bytes of a segment.
    header_bytes: u32 => HEADERS => header_bytes;
    /// IP bytes of an acknowledgement.
    ack_bytes: u32 => HEADERS => ack_bytes;
    /// Selective acknowledgements.
    sack: bool => BOOL => recovery.sack;
    /// Without SACK: what three duplicate ACKs start.
    fast_recovery: &'static str => Words(FastRecovery::NAMES) => recovery.fast_recovery;
    /// Proportional rate reduction (RFC 6937).
    prr: bool => BOOL => recovery.prr;
    /// Duplicates are reported (RFC 2883).
    dsack: bool => BOOL => recovery.dsack;
    /// Needless reductions are undone.
    undo: bool => BOOL => recovery.undo;
    /// Spurious timeouts are found out (RFC 5682).
    frto: bool => BOOL => recovery.frto;
    /// Losses are found by the time of sending (RFC 8985).
    rack: bool => BOOL => recovery.rack;
    /// Tail loss probe (RFC 8985).
    tlp: bool => BOOL => recovery.tlp;
    /// RFC 3042.
    limited_transmit: bool => BOOL => recovery.limited_transmit;
    /// An RTT sample from every ACK.
    timestamps: bool => BOOL => timestamps;
    /// Segments.
    initial_window: u32 => SEGMENTS => growth.initial_window;
    /// Segments.
    initial_ssthresh: u32 => SEGMENTS => growth.initial_ssthresh;
    /// Segments.
    max_window: u32 => SEGMENTS => growth.max_window;
    /// All that ns-2's agents do otherwise (docs/tcp.md, ns-2 mode).
    packet_counted: bool => BOOL => ns2;
    /// Segments are spaced.
    pacing: bool => BOOL => growth.pacing;
    /// HyStart (cubic only).
    hystart: bool => BOOL => growth.hystart;
    /// HyStart++ (RFC 9406; reno and cubic only).
    hystart_plus_plus: bool => BOOL => growth.hystart_plus_plus;
    /// Segments queued (vegas only).
    vegas_alpha: u32 => QUEUED => growth.vegas_alpha;
    /// Segments queued (vegas only).
    vegas_beta: u32 => QUEUED => growth.vegas_beta;
    /// Segments queued (vegas only).
    vegas_gamma: u32 => QUEUED => growth.vegas_gamma;
    /// The queueing delay it aims at (ledbat only).
    ledbat_target: u64 => TARGET => growth.ledbat_target_ns;
    /// RFC 6817's GAIN (ledbat only).
    ledbat_gain: f64 => Within { least: 0.0, most: 1000.0, above: true } => growth.ledbat_gain;
    /// What an ECN echo leaves of cwnd (RFC 8511; reno and cubic only).
    beta_ecn: f64 => Within { least: 0.0, most: 1.0, above: true } => growth.beta_ecn;
    /// The RTT that flows of shorter RTTs behave as if they had; 0: none (prague only).
    prague_virtual_rtt: u64 => ACK_DELAY => growth.prague_virtual_rtt_ns;
    /// Whose description of Prague (prague only).
    prague_variant: &'static str => Words(PragueVariant::NAMES) => growth.prague_variant;
    /// SYN, its answer and an ACK before data.
    handshake: bool => BOOL => handshake;
    /// The RTO before the first sample.
    initial_rto: u64 => TIMEOUT => timers.initial_rto_ns;
    /// Lower bound of the RTO.
    min_rto: u64 => TIMEOUT => timers.min_rto_ns;
    /// Upper bound of the RTO.
    max_rto: u64 => TIMEOUT => timers.max_rto_ns;
    /// Clock granularity.
    tick: u64 => TIMEOUT => timers.tick_ns;
    /// The lower bound is applied as Linux does.
    min_rto_on_variance: bool => BOOL => timers.min_rto_on_variance;
    /// Full segments for an acknowledgement.
    delayed_ack_segments: u32 => Within { least: 1i128, most: 1000, above: false } => acks.delayed_ack_segments;
    /// How long an acknowledgement is delayed.
    delayed_ack: u64 => ACK_DELAY => acks.delayed_ack_ns;
    /// How long where segments come slowly.
    delayed_ack_max: u64 => ACK_DELAY => acks.delayed_ack_max_ns;
    /// Segments acknowledged at once.
    quick_acks: u32 => Within { least: 0i128, most: 1_000_000, above: false } => acks.quick_acks;
    /// How long SACKs wait for each other.
    sack_delay: u64 => ACK_DELAY => acks.sack_delay_ns;
    /// What the application writes at once, bytes.
    write_bytes: u32 => QUEUED => buffers.write_bytes;
    /// The timers' clock.
    timer_tick: u64 => TIMEOUT => timers.timer_tick_ns;
    /// Bytes at the start.
    receive_buffer: u64 => BUFFER => buffers.receive_buffer;
    /// Bytes at most.
    receive_buffer_max: u64 => BUFFER => buffers.receive_buffer_max;
    /// Of the buffer, advertised.
    receive_window_fraction: f64 => Within { least: 0.0, most: 1.0, above: true } => buffers.receive_window_fraction;
}
whole!(TcpSettings);

/// What the endpoints of a flow are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Endpoints {
    /// All but the congestion control, which is Reno here where the simulator has none of the name.
    #[serde(flatten)]
    pub params: TcpParams,
    /// By name: that of a record of `tcp::congestion`, or a class of the user's own.
    pub congestion: Cow<'static, str>,
    /// The name of the profile that they follow where nothing else is set.
    #[serde(skip)]
    pub profile: &'static str,
}

impl Endpoints {
    /// What the simulator takes; `None` where the congestion control is Linux's alone.
    pub fn simulated(&self) -> Option<TcpParams> {
        let ours = self.params.own.is_some()
            || tcp::congestion::record(&self.congestion)?.simulated.is_some();
        ours.then(|| self.params.clone())
    }

    /// The same with the text of its file, where its congestion control is the user's own.
    pub(crate) fn with_source(mut self, sources: impl Fn(&str) -> Option<String>) -> Endpoints {
        if let Some(own) = &mut self.params.own {
            own.source = sources(&own.file);
        }
        self
    }

    /// All parameters by name, as `TcpParams` names them.
    pub fn parameters(&self) -> serde_json::Map<String, serde_json::Value> {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::Object(parameters)) => parameters,
            _ => unreachable!("it is made of plain values under names"),
        }
    }
}

impl AsRef<TcpParams> for Endpoints {
    fn as_ref(&self) -> &TcpParams {
        &self.params
    }
}

/// What the endpoints of a profile are where a flow sets nothing.
pub fn profile(name: &str) -> Endpoints {
    endpoints(name, None, Notification::Off, &TcpSettings::default())
}

/// The profile, what is set otherwise, and what follows from it (headers, MSS, buffers).
pub(crate) fn endpoints(
    profile: &str,
    congestion: Option<&NamedControl>,
    ecn: Notification,
    settings: &TcpSettings,
) -> Endpoints {
    let known = TcpParams::PROFILES.iter().find(|(name, _)| *name == profile);
    let &(profile, params) = known.expect("profiles are checked when read");
    let mut params = params.clone();
    let usual = params.congestion.name();
    settings.apply(&mut params);
    params.ecn = ecn != Notification::Off;
    params.accecn = ecn == Notification::Accurate;
    let congestion = match congestion {
        None => Cow::Borrowed(usual),
        Some(NamedControl::Known(name)) => Cow::Borrowed(*name),
        Some(NamedControl::Own(own)) => {
            let OwnClass { file, class, words } = own.clone();
            let (source, code) = Default::default();
            params.own = Some(Box::new(OwnControl { file, class, words, source, code }));
            Cow::Owned(own.text())
        }
    };
    let simulated = tcp::congestion::record(&congestion).and_then(|record| record.simulated);
    params.congestion = simulated.unwrap_or(CongestionKind::Reno);
    if params.congestion == CongestionKind::Ledbat && settings.initial_window.is_none() {
        // INIT_CWND (RFC 6817 §2.5), whatever a TCP of that host begins with.
        params.growth.initial_window = 2;
    }
    if settings.header_bytes.is_none() {
        // The option of AccECN is on every packet but a SYN; that of an ACK is counted by itself.
        let option = if params.accecn { ACCECN_BYTES } else { 0 };
        params.header_bytes = header_bytes(params.timestamps) + option;
    }
    if settings.ack_bytes.is_none() {
        params.ack_bytes = params.header_bytes - if params.accecn { ACCECN_BYTES } else { 0 };
    }
    if settings.mss.is_none() {
        params.mss = MTU - params.header_bytes;
    }
    // A buffer above the profile's maximum is a fixed one.
    if settings.receive_buffer_max.is_none() {
        let buffers = &mut params.buffers;
        buffers.receive_buffer_max = buffers.receive_buffer_max.max(buffers.receive_buffer);
    }
    Endpoints { params, congestion, profile }
}
