//! What a TCP endpoint is: a profile, and what a flow sets otherwise in `tcp = { ... }`.
//!
//! `linux` is what a Linux host of today does by default; `ns2` is ns-2.35's one-way agents (TCP/Newreno with a plain sink), for papers
//! made with them. A profile is a full set of `TcpParams`; a setting carries the same name without its unit: `min_rto = "1 s"`.
//!
//! Source: Linux Documentation/networking/ip-sysctl.rst and tcp(7); ns-2.35's ns-default.tcl.
//! Deviations: ns-2's `window_` of 20 segments is not part of the profile, since every paper sets its own: `max_window = 20`.

use crate::forms::{ACK_DELAY, BOOL, BUFFER, TARGET, TIMEOUT, Within};
use crate::reader::{keys, whole};
use serde::Serialize;
use tcp::{CongestionKind, TcpParams};

/// Congestion controls by name: the simulator's, then the kernel's alone.
pub const CONGESTION: &[&str] = &[
    "reno",
    "cubic",
    "vegas",
    "ledbat",
    "bbr",
    "bic",
    "cdg",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "scalable",
    "veno",
    "westwood",
    "yeah",
];
/// Profiles by name.
pub const PROFILES: &[&str] = &["linux", "ns2"];

/// IP bytes of a full segment.
pub const MTU: u32 = 1500;

const SEGMENTS: Within<i128> = Within { least: 1, most: 1 << 31, above: false };
const QUEUED: Within<i128> = Within { least: 0, most: 1 << 31, above: false };
const HEADERS: Within<i128> = Within { least: 40, most: 120, above: false };

/// What a flow's endpoints do otherwise than their profile: each key a field of `tcp::TcpParams`.
macro_rules! settings {
    ($($(#[doc = $meaning:expr])+ $field:ident: $type:ty => $form:expr => $param:ident;)+) => {
        keys! {
            /// What a flow's endpoints do otherwise than their profile; none: as the profile.
            TcpSettings {
                $($(#[doc = $meaning])+ $field: Optional<$type> => $form;)+
            }
        }

        impl TcpSettings {
            /// Sets what is given.
            pub(crate) fn apply(&self, params: &mut TcpParams) {
                $(if let Some(given) = self.$field {
                    params.$param = given.into();
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
    sack: bool => BOOL => sack;
    /// Proportional rate reduction (RFC 6937).
    prr: bool => BOOL => prr;
    /// Duplicates are reported (RFC 2883).
    dsack: bool => BOOL => dsack;
    /// Needless reductions are undone.
    undo: bool => BOOL => undo;
    /// Spurious timeouts are found out (RFC 5682).
    frto: bool => BOOL => frto;
    /// Losses are found by the time of sending (RFC 8985).
    rack: bool => BOOL => rack;
    /// Tail loss probe (RFC 8985).
    tlp: bool => BOOL => tlp;
    /// RFC 3042.
    limited_transmit: bool => BOOL => limited_transmit;
    /// An RTT sample from every ACK.
    timestamps: bool => BOOL => timestamps;
    /// Segments.
    initial_window: u32 => SEGMENTS => initial_window;
    /// Segments.
    initial_ssthresh: u32 => SEGMENTS => initial_ssthresh;
    /// Segments.
    max_window: u32 => SEGMENTS => max_window;
    /// The window in packets, as ns-2.
    packet_counted: bool => BOOL => packet_counted;
    /// Segments are spaced.
    pacing: bool => BOOL => pacing;
    /// HyStart (cubic only).
    hystart: bool => BOOL => hystart;
    /// Segments queued (vegas only).
    vegas_alpha: u32 => QUEUED => vegas_alpha;
    /// Segments queued (vegas only).
    vegas_beta: u32 => QUEUED => vegas_beta;
    /// Segments queued (vegas only).
    vegas_gamma: u32 => QUEUED => vegas_gamma;
    /// The queueing delay it aims at (ledbat only).
    ledbat_target: u64 => TARGET => ledbat_target_ns;
    /// RFC 6817's GAIN (ledbat only).
    ledbat_gain: f64 => Within { least: 0.0, most: 1000.0, above: true } => ledbat_gain;
    /// SYN, its answer and an ACK before data.
    handshake: bool => BOOL => handshake;
    /// The RTO before the first sample.
    initial_rto: u64 => TIMEOUT => initial_rto_ns;
    /// Lower bound of the RTO.
    min_rto: u64 => TIMEOUT => min_rto_ns;
    /// Upper bound of the RTO.
    max_rto: u64 => TIMEOUT => max_rto_ns;
    /// Clock granularity.
    tick: u64 => TIMEOUT => tick_ns;
    /// The lower bound is applied as Linux does.
    min_rto_on_variance: bool => BOOL => min_rto_on_variance;
    /// Full segments for an acknowledgement.
    delayed_ack_segments: u32 => Within { least: 1i128, most: 1000, above: false } => delayed_ack_segments;
    /// How long an acknowledgement is delayed.
    delayed_ack: u64 => ACK_DELAY => delayed_ack_ns;
    /// How long where segments come slowly.
    delayed_ack_max: u64 => ACK_DELAY => delayed_ack_max_ns;
    /// Segments acknowledged at once.
    quick_acks: u32 => Within { least: 0i128, most: 1_000_000, above: false } => quick_acks;
    /// How long SACKs wait for each other.
    sack_delay: u64 => ACK_DELAY => sack_delay_ns;
    /// What the application writes at once, bytes.
    write_bytes: u32 => QUEUED => write_bytes;
    /// The timers' clock.
    timer_tick: u64 => TIMEOUT => timer_tick_ns;
    /// Bytes at the start.
    receive_buffer: u64 => BUFFER => receive_buffer;
    /// Bytes at most.
    receive_buffer_max: u64 => BUFFER => receive_buffer_max;
    /// Of the buffer, advertised.
    receive_window_fraction: f64 => Within { least: 0.0, most: 1.0, above: true } => receive_window_fraction;
}
whole!(TcpSettings);

/// What the endpoints of a flow are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Endpoints {
    /// All but the congestion control, which is Reno here where the simulator has none of the name.
    #[serde(flatten)]
    pub params: TcpParams,
    /// By name: one of `CONGESTION`.
    pub congestion: &'static str,
}

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// Headers and segment follow from `timestamps`.
const LINUX: TcpParams = TcpParams {
    congestion: CongestionKind::Cubic,
    mss: 0,
    header_bytes: 0,
    ack_bytes: 0,
    sack: true,
    prr: true,
    dsack: true,
    undo: true,
    frto: true,
    rack: true,
    tlp: true,
    limited_transmit: true,
    timestamps: true,
    ecn: false,
    initial_window: 10,
    initial_ssthresh: None,
    max_window: None,
    packet_counted: false,
    pacing: false,
    hystart: true,
    vegas_alpha: 2,
    vegas_beta: 4,
    vegas_gamma: 1,
    ledbat_target_ns: 100 * MS,
    ledbat_gain: 1.0,
    handshake: true,
    initial_rto_ns: S,
    min_rto_ns: 200 * MS,
    max_rto_ns: 120 * S,
    tick_ns: 1,
    min_rto_on_variance: true,
    delayed_ack_segments: 2,
    delayed_ack_ns: 40 * MS,
    delayed_ack_max_ns: 200 * MS,
    // TCP_MAX_QUICKACKS.
    quick_acks: 16,
    // tcp_comp_sack_delay_ns.
    sack_delay_ns: MS,
    write_bytes: 65536,
    // HZ 250, as Debian and Ubuntu have it.
    timer_tick_ns: 4 * MS,
    // tcp_rmem's default and maximum; of what a full segment takes, 2280 bytes, 1448 are data, in parts of 256.
    receive_buffer: 131_072,
    receive_buffer_max: 6_291_456,
    receive_window_fraction: 162.0 / 256.0,
};

const NS2: TcpParams = TcpParams {
    congestion: CongestionKind::Reno,
    mss: 0,
    header_bytes: 0,
    ack_bytes: 0,
    sack: false,
    prr: false,
    dsack: false,
    undo: false,
    frto: false,
    rack: false,
    tlp: false,
    limited_transmit: true,
    timestamps: false,
    ecn: false,
    initial_window: 2,
    initial_ssthresh: None,
    max_window: None,
    packet_counted: true,
    pacing: false,
    hystart: false,
    vegas_alpha: 1,
    vegas_beta: 3,
    vegas_gamma: 1,
    ledbat_target_ns: 100 * MS,
    ledbat_gain: 1.0,
    handshake: false,
    initial_rto_ns: 3 * S,
    min_rto_ns: 200 * MS,
    max_rto_ns: 60 * S,
    tick_ns: 10 * MS,
    min_rto_on_variance: false,
    delayed_ack_segments: 1,
    delayed_ack_ns: 100 * MS,
    delayed_ack_max_ns: 100 * MS,
    quick_acks: 0,
    sack_delay_ns: 0,
    write_bytes: 0,
    timer_tick_ns: 1,
    // ns-2's sink advertises no window.
    receive_buffer: 1 << 30,
    receive_buffer_max: 1 << 30,
    receive_window_fraction: 1.0,
};

/// What the endpoints of a profile are where a flow sets nothing.
pub fn profile(name: &str) -> Endpoints {
    endpoints(name, None, false, &TcpSettings::default())
}

/// The profile, what is set otherwise, and what follows from it (headers, MSS, buffers).
pub(crate) fn endpoints(
    profile: &str,
    congestion: Option<&'static str>,
    ecn: bool,
    settings: &TcpSettings,
) -> Endpoints {
    let mut params = if profile == "ns2" { NS2 } else { LINUX };
    settings.apply(&mut params);
    params.ecn = ecn;
    let congestion = congestion.unwrap_or(if profile == "ns2" { "reno" } else { "cubic" });
    params.congestion = match congestion {
        "cubic" => CongestionKind::Cubic,
        "vegas" => CongestionKind::Vegas,
        "ledbat" => CongestionKind::Ledbat,
        _ => CongestionKind::Reno,
    };
    if congestion == "ledbat" && settings.initial_window.is_none() {
        // INIT_CWND (RFC 6817 §2.5), whatever a TCP of that host begins with.
        params.initial_window = 2;
    }
    // 20 bytes each of IP and TCP; the timestamp option takes 12 with its padding.
    if settings.header_bytes.is_none() {
        params.header_bytes = if params.timestamps { 52 } else { 40 };
    }
    if settings.ack_bytes.is_none() {
        params.ack_bytes = params.header_bytes;
    }
    if settings.mss.is_none() {
        params.mss = MTU - params.header_bytes;
    }
    // A buffer above the profile's maximum is a fixed one.
    if settings.receive_buffer_max.is_none() {
        params.receive_buffer_max = params.receive_buffer_max.max(params.receive_buffer);
    }
    Endpoints { params, congestion }
}
