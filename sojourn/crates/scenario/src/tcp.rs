//! TCP endpoints: a profile, and a flow's own settings in `tcp = { ... }`.
//!
//! The profiles are those of `tcp::params`. A setting has its field's name without the unit:
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

/// The settings of a flow's endpoints that differ from their profile: each key is a field of
/// `tcp::TcpParams`.
macro_rules! settings {
    ($($(#[doc = $meaning:expr])+ $field:ident: $type:ty => $form:expr => $($param:ident).+;)+) => {
        keys! {
            /// The settings of a flow's endpoints that differ from their profile; none: as in the
            /// profile.
            TcpSettings {
                $($(#[doc = $meaning])+ $field: Optional<$type> => $form;)+
            }
        }

        impl TcpSettings {
            /// Sets the given parameters.
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
    /// Without SACK: the reaction to three duplicate ACKs.
    fast_recovery: &'static str => Words(FastRecovery::NAMES) => recovery.fast_recovery;
    /// Proportional rate reduction (RFC 6937).
    prr: bool => BOOL => recovery.prr;
    /// Reports duplicates (RFC 2883).
    dsack: bool => BOOL => recovery.dsack;
    /// Undoes needless reductions.
    undo: bool => BOOL => recovery.undo;
    /// Detects spurious timeouts (RFC 5682).
    frto: bool => BOOL => recovery.frto;
    /// Detects losses by the time of sending (RFC 8985).
    rack: bool => BOOL => recovery.rack;
    /// Tail loss probe (RFC 8985).
    tlp: bool => BOOL => recovery.tlp;
    /// Limited transmit (RFC 3042).
    limited_transmit: bool => BOOL => recovery.limited_transmit;
    /// An RTT sample from every ACK.
    timestamps: bool => BOOL => timestamps;
    /// Initial window, segments.
    initial_window: u32 => SEGMENTS => growth.initial_window;
    /// Initial slow start threshold, segments.
    initial_ssthresh: u32 => SEGMENTS => growth.initial_ssthresh;
    /// Largest window, segments.
    max_window: u32 => SEGMENTS => growth.max_window;
    /// All differences of ns-2's agents (docs/tcp.md, ns-2 mode).
    packet_counted: bool => BOOL => ns2;
    /// Reduces cwnd after an RTO without sending (RFC 2861).
    slow_start_after_idle: bool => BOOL => growth.slow_start_after_idle;
    /// Spaces segments.
    pacing: bool => BOOL => growth.pacing;
    /// HyStart (cubic only).
    hystart: bool => BOOL => growth.hystart;
    /// HyStart++ (RFC 9406; reno and cubic only).
    hystart_plus_plus: bool => BOOL => growth.hystart_plus_plus;
    /// Segments in the queue (vegas only).
    vegas_alpha: u32 => QUEUED => growth.vegas_alpha;
    /// Segments in the queue (vegas only).
    vegas_beta: u32 => QUEUED => growth.vegas_beta;
    /// Segments in the queue (vegas only).
    vegas_gamma: u32 => QUEUED => growth.vegas_gamma;
    /// The target queueing delay (ledbat only).
    ledbat_target: u64 => TARGET => growth.ledbat_target_ns;
    /// RFC 6817's GAIN (ledbat only).
    ledbat_gain: f64 => Within { least: 0.0, most: 1000.0, above: true } => growth.ledbat_gain;
    /// The share of cwnd that remains after an ECN echo (RFC 8511; reno and cubic only).
    beta_ecn: f64 => Within { least: 0.0, most: 1.0, above: true } => growth.beta_ecn;
    /// Flows with a shorter RTT grow as at this RTT; 0: each by its own RTT (prague only).
    prague_virtual_rtt: u64 => ACK_DELAY => growth.prague_virtual_rtt_ns;
    /// The description of Prague to follow (prague only).
    prague_variant: &'static str => Words(PragueVariant::NAMES) => growth.prague_variant;
    /// Three-way handshake before data.
    handshake: bool => BOOL => handshake;
    /// The RTO before the first sample.
    initial_rto: u64 => TIMEOUT => timers.initial_rto_ns;
    /// Lower bound of the RTO.
    min_rto: u64 => TIMEOUT => timers.min_rto_ns;
    /// Upper bound of the RTO.
    max_rto: u64 => TIMEOUT => timers.max_rto_ns;
    /// Clock granularity.
    tick: u64 => TIMEOUT => timers.tick_ns;
    /// Applies the lower bound as Linux does.
    min_rto_on_variance: bool => BOOL => timers.min_rto_on_variance;
    /// Full segments for each acknowledgement.
    delayed_ack_segments: u32 => Within { least: 1i128, most: 1000, above: false } => acks.delayed_ack_segments;
    /// The delay of an acknowledgement.
    delayed_ack: u64 => ACK_DELAY => acks.delayed_ack_ns;
    /// The delay of an acknowledgement if segments come slowly.
    delayed_ack_max: u64 => ACK_DELAY => acks.delayed_ack_max_ns;
    /// Segments that are acknowledged at once.
    quick_acks: u32 => Within { least: 0i128, most: 1_000_000, above: false } => acks.quick_acks;
    /// The time that SACKs wait for each other.
    sack_delay: u64 => ACK_DELAY => acks.sack_delay_ns;
    /// Bytes that the application writes at once.
    write_bytes: u32 => QUEUED => buffers.write_bytes;
    /// Granularity of the timers' clock.
    timer_tick: u64 => TIMEOUT => timers.timer_tick_ns;
    /// Bytes of the receive buffer at the start.
    receive_buffer: u64 => BUFFER => buffers.receive_buffer;
    /// Most bytes of the receive buffer.
    receive_buffer_max: u64 => BUFFER => buffers.receive_buffer_max;
    /// The share of the buffer that is advertised.
    receive_window_fraction: f64 => Within { least: 0.0, most: 1.0, above: true } => buffers.receive_window_fraction;
}
whole!(TcpSettings);

/// The endpoints of a flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Endpoints {
    /// All but the congestion control, which is Reno here if the simulator does not have it.
    #[serde(flatten)]
    pub params: TcpParams,
    /// The name of a record of `tcp::congestion`, or of a user-defined class.
    pub congestion: Cow<'static, str>,
    /// The profile of everything that is not set.
    #[serde(skip)]
    pub profile: &'static str,
}

impl Endpoints {
    /// The simulator's parameters; `None` if only Linux has the congestion control.
    pub fn simulated(&self) -> Option<TcpParams> {
        let simulated = self.params.own.is_some()
            || tcp::congestion::record(&self.congestion)?.simulated.is_some();
        simulated.then(|| self.params.clone())
    }

    /// Adds the text of its file, if the user wrote its congestion control.
    pub(crate) fn with_source(mut self, sources: impl Fn(&str) -> Option<String>) -> Endpoints {
        if let Some(own) = &mut self.params.own {
            own.source = sources(&own.file);
        }
        self
    }

    /// All parameters by the names in `TcpParams`.
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

/// The endpoints of a profile if a flow sets nothing.
pub fn profile(name: &str) -> Endpoints {
    endpoints(name, None, Notification::Off, &TcpSettings::default())
}

/// The profile, a flow's settings, and the parameters that follow from them (headers, MSS,
/// buffers).
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
        // INIT_CWND (RFC 6817, section 2.5) replaces the initial window of the host's TCP.
        params.growth.initial_window = 2;
    }
    if settings.header_bytes.is_none() {
        // Every packet but a SYN has the option of AccECN; for an ACK it is counted separately.
        let option = if params.accecn { ACCECN_BYTES } else { 0 };
        params.header_bytes = header_bytes(params.timestamps) + option;
    }
    if settings.ack_bytes.is_none() {
        params.ack_bytes = params.header_bytes - if params.accecn { ACCECN_BYTES } else { 0 };
    }
    if settings.mss.is_none() {
        params.mss = MTU - params.header_bytes;
    }
    // A buffer above the profile's maximum has a fixed size.
    if settings.receive_buffer_max.is_none() {
        let buffers = &mut params.buffers;
        buffers.receive_buffer_max = buffers.receive_buffer_max.max(buffers.receive_buffer);
    }
    Endpoints { params, congestion, profile }
}
