//! What a TCP endpoint is: a profile, and what a flow sets otherwise in `tcp = { ... }`.
//!
//! The profiles are `tcp::params`'s. A setting carries its field's name without the unit:
//! `min_rto = "1 s"`.

use crate::model::TcpSettings;
use serde::Serialize;
pub use tcp::params::MTU;
use tcp::params::header_bytes;
use tcp::{CongestionKind, TcpParams};

/// Profiles by name.
pub const PROFILES: &[&str] = &[TcpParams::PROFILES[0].0, TcpParams::PROFILES[1].0];

/// What the endpoints of a flow are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Endpoints {
    /// All but the congestion control, which is Reno here where the simulator has none of the name.
    #[serde(flatten)]
    pub params: TcpParams,
    /// By name: one of `tcp::congestion::NAMES`.
    pub congestion: &'static str,
}

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
    let known = TcpParams::PROFILES.iter().find(|(name, _)| *name == profile);
    let mut params = known.expect("profiles are checked when read").1.clone();
    let usual = params.congestion.name();
    settings.apply(&mut params);
    params.ecn = ecn;
    let congestion = congestion.unwrap_or(usual);
    let simulated = tcp::congestion::record(congestion).and_then(|record| record.simulated);
    params.congestion = simulated.unwrap_or(CongestionKind::Reno);
    if params.congestion == CongestionKind::Ledbat && settings.initial_window.is_none() {
        // INIT_CWND (RFC 6817 §2.5), whatever a TCP of that host begins with.
        params.growth.initial_window = 2;
    }
    if settings.header_bytes.is_none() {
        params.header_bytes = header_bytes(params.timestamps);
    }
    if settings.ack_bytes.is_none() {
        params.ack_bytes = params.header_bytes;
    }
    if settings.mss.is_none() {
        params.mss = MTU - params.header_bytes;
    }
    // A buffer above the profile's maximum is a fixed one.
    if settings.receive_buffer_max.is_none() {
        let buffers = &mut params.buffers;
        buffers.receive_buffer_max = buffers.receive_buffer_max.max(buffers.receive_buffer);
    }
    Endpoints { params, congestion }
}
