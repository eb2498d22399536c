//! What a TCP endpoint is: a profile, and what a flow sets otherwise in `tcp = { ... }`.
//!
//! `linux` is what a Linux host of today does by default; `ns2` is ns-2.35's one-way agents (TCP/Newreno with a plain sink), for papers
//! made with them. A profile is a full set of `TcpParams`; a setting carries the same name without its unit: `min_rto = "1 s"`.
//!
//! Source: Linux Documentation/networking/ip-sysctl.rst and tcp(7); ns-2.35's ns-default.tcl.
//! Deviations: ns-2's `window_` of 20 segments is not part of the profile, since every paper sets its own: `max_window = 20`.

use crate::model::TcpSettings;
use serde::Serialize;
use tcp::{CongestionKind, TcpParams};

/// Profiles by name.
pub const PROFILES: &[&str] = &["linux", "ns2"];

/// IP bytes of a full segment.
pub const MTU: u32 = 1500;

/// What the endpoints of a flow are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Endpoints {
    /// All but the congestion control, which is Reno here where the simulator has none of the name.
    #[serde(flatten)]
    pub params: TcpParams,
    /// By name: one of `tcp::congestion::NAMES`.
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
    let simulated = tcp::congestion::record(congestion).and_then(|record| record.simulated);
    params.congestion = simulated.unwrap_or(CongestionKind::Reno);
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
