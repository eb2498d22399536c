//! The plan of a session: `sojourn_live.session.Plan` as JSON.

use serde::{Deserialize, Serialize};

use crate::Failure;
use crate::secret::Secret;

/// See `sojourn_live.session.Plan`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Plan {
    pub host: String,
    pub port: u16,
    /// Never stored.
    #[serde(skip_serializing)]
    pub secret: Secret,
    pub family: Option<u8>,
    pub streams: u32,
    pub congestion: Option<String>,
    pub dscp: u8,
    pub ecn: bool,
    pub phases: Vec<Phase>,
    pub targets: Vec<Target>,
    pub probe_interval_ns: i64,
    pub probe_bytes: u32,
    pub probe_timeout_ns: i64,
    pub interface: Option<String>,
    pub sample_ns: i64,
    pub patience_ns: i64,
}

/// A time span with one kind of load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// The kind of load.
    pub kind: Kind,
    /// Duration, ns.
    pub duration_ns: i64,
}

/// A kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Kind {
    Idle,
    Download,
    Upload,
    Both,
}

impl Kind {
    /// The default phases of a measurement.
    pub const USUAL: [Kind; 5] = [Kind::Idle, Kind::Download, Kind::Upload, Kind::Both, Kind::Idle];

    /// Returns the default duration of such a phase, ns.
    pub fn usual_ns(self) -> i64 {
        if self == Kind::Idle { 5000 * MS } else { 10_000 * MS }
    }

    /// Returns its word in plans.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Idle => "idle",
            Kind::Download => "download",
            Kind::Upload => "upload",
            Kind::Both => "both",
        }
    }
}

/// A host to probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The protocol of the requests.
    pub how: How,
    /// An address, a name, "server", "gateway" or "hop N".
    pub address: String,
    /// The probe's name; empty: made from the other fields.
    pub name: String,
}

/// The protocol of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum How {
    Icmp,
    Udp,
}

impl How {
    /// Returns its word in plans.
    pub fn word(self) -> &'static str {
        match self {
            How::Icmp => "icmp",
            How::Udp => "udp",
        }
    }
}

const MS: i64 = 1_000_000;

/// Default TCP and UDP port of a server.
pub const PORT: u16 = 35_500;

/// Parses `HOST`, `HOST:PORT`, an IPv6 address, or `[ADDRESS]:PORT` into host and port; the port is
/// `None` if there is none.
pub fn endpoint(text: &str) -> Result<(String, Option<u16>), Failure> {
    let bracketed = |host: &str| {
        host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).map(str::to_owned)
    };
    let is_name = |host: &str| !host.is_empty() && !host.contains([':', '[', ']']);
    let is_host = |host: &str| is_name(host) || bracketed(host).is_some_and(|h| is_inside(&h));
    if is_host(text) {
        return Ok((bracketed(text).unwrap_or_else(|| text.into()), None));
    }
    if text.matches(':').count() > 1 && !text.contains(['[', ']']) {
        return Ok((text.into(), None));
    }
    let Some((host, port)) = text.rsplit_once(':').filter(|(host, _)| is_host(host)) else {
        return Err(Failure::new(
            format!("'{text}' is not a host"),
            "write HOST, HOST:PORT or [ADDRESS]:PORT",
        ));
    };
    if port.is_empty() || port.len() > 5 || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        let wrong = match port {
            "" => "there is no port after the colon".into(),
            _ => format!("'{port}' is not a port"),
        };
        return Err(Failure::new(
            format!("'{text}': {wrong}"),
            format!("ports are 1 to 65535; without one: {host}"),
        ));
    }
    match port.parse().ok().filter(|&number: &u16| number > 0) {
        Some(number) => Ok((bracketed(host).unwrap_or_else(|| host.into()), Some(number))),
        None => Err(Failure::new(
            format!("'{text}': there is no port {}", port.parse().unwrap_or(0u32)),
            "ports are 1 to 65535",
        )),
    }
}

/// Whether this text may be between brackets.
fn is_inside(host: &str) -> bool {
    !host.is_empty() && !host.contains(['[', ']'])
}

impl Plan {
    /// Returns the default plan.
    pub fn usual(host: &str, port: u16) -> Plan {
        let phase = |kind: Kind| Phase { kind, duration_ns: kind.usual_ns() };
        let target = |how, address: &str| Target { how, address: address.into(), name: "".into() };
        Plan {
            host: host.into(),
            port,
            secret: Secret::default(),
            family: None,
            streams: 4,
            congestion: None,
            dscp: 0,
            ecn: false,
            phases: Kind::USUAL.map(phase).into(),
            targets: vec![
                target(How::Udp, "server"),
                target(How::Icmp, "server"),
                target(How::Icmp, "gateway"),
                target(How::Icmp, "hop 2"),
            ],
            probe_interval_ns: 50 * MS,
            probe_bytes: 64,
            probe_timeout_ns: 3000 * MS,
            interface: None,
            sample_ns: 100 * MS,
            patience_ns: 10_000 * MS,
        }
    }

    /// Parses and checks a plan; the error names the fault and the place.
    pub fn parse(text: &str) -> Result<Plan, String> {
        let plan: Plan = serde_json::from_str(text).map_err(|e| e.to_string())?;
        plan.check()?;
        Ok(plan)
    }

    /// Fails if the plan can't be used.
    pub fn check(&self) -> Result<(), String> {
        let within = |name: &str, value: i64, low: i64, high: i64| {
            if (low..=high).contains(&value) {
                return Ok(());
            }
            Err(format!("{name}: {value} is not between {low} and {high}"))
        };
        if self.phases.is_empty() {
            return Err("phases: the list is empty".into());
        }
        for (i, phase) in self.phases.iter().enumerate() {
            within(
                &format!("phases[{i}].duration_ns"),
                phase.duration_ns,
                100 * MS,
                86_400_000 * MS,
            )?;
        }
        if !matches!(self.family, None | Some(4 | 6)) {
            return Err("family: neither 4 nor 6".into());
        }
        within("dscp", self.dscp.into(), 0, 63)?;
        within("streams", self.streams.into(), 1, 1000)?;
        within("probe_interval_ns", self.probe_interval_ns, MS, 10_000 * MS)?;
        within("probe_bytes", self.probe_bytes.into(), probe::echo::FULL_BYTES as i64, 1400)?;
        within("probe_timeout_ns", self.probe_timeout_ns, 10 * MS, 60_000 * MS)?;
        within("sample_ns", self.sample_ns, 10 * MS, 10_000 * MS)?;
        within("patience_ns", self.patience_ns, 100 * MS, 600_000 * MS)?;
        if self.probe_timeout_ns / self.probe_interval_ns > i64::from(u16::MAX / 2) {
            return Err("probe_timeout_ns: longer than 32767 intervals".into());
        }
        Ok(())
    }

    /// Returns the total duration of the phases, ns.
    pub fn total(&self) -> i64 {
        self.phases.iter().map(|phase| phase.duration_ns).sum()
    }

    /// Returns the seconds of load; load in both directions counts twice, as in a server's limits.
    pub fn load_seconds(&self) -> u32 {
        let loaded = self.phases.iter().map(|phase| match phase.kind {
            Kind::Idle => 0,
            Kind::Download | Kind::Upload => phase.duration_ns,
            Kind::Both => 2 * phase.duration_ns,
        });
        u32::try_from((loaded.sum::<i64>() + 999_999_999) / 1_000_000_000).unwrap_or(u32::MAX)
    }

    /// Returns the names of the phases: those of their kinds, numbered if a loaded kind occurs more
    /// than once.
    pub fn phase_names(&self) -> Vec<String> {
        let count =
            |kind: Kind, end: usize| self.phases[..end].iter().filter(|p| p.kind == kind).count();
        let name = |(i, phase): (usize, &Phase)| {
            let before = count(phase.kind, i);
            match phase.kind {
                Kind::Idle => "idle".to_string(),
                kind if before == 0 => kind.word().to_string(),
                kind => format!("{} {}", kind.word(), before + 1),
            }
        };
        self.phases.iter().enumerate().map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn plan() -> Value {
        json!({
            "host": "h", "port": 35500, "secret": "", "family": null, "streams": 4, "congestion": null, "dscp": 0, "ecn": false,
            "phases": [{"kind": "idle", "duration_ns": 1_000_000_000}, {"kind": "both", "duration_ns": 2_000_000_000},
                       {"kind": "download", "duration_ns": 1_500_000_000}, {"kind": "both", "duration_ns": 1_000_000_000}],
            "targets": [{"how": "icmp", "address": "hop 2", "name": ""}],
            "probe_interval_ns": 50_000_000, "probe_bytes": 64, "probe_timeout_ns": 3_000_000_000_i64,
            "interface": null, "sample_ns": 100_000_000, "patience_ns": 10_000_000_000_i64,
        })
    }

    #[test]
    fn a_plan_is_parsed() {
        let plan = Plan::parse(&plan().to_string()).unwrap();
        assert_eq!((plan.total(), plan.load_seconds()), (5_500_000_000, 8));
        assert_eq!(plan.phase_names(), ["idle", "both", "download", "both 2"]);
        assert_eq!(plan.targets[0].how, How::Icmp);
    }

    #[test]
    fn a_port_is_a_number_of_up_to_five_digits() {
        let port = |text| endpoint(text).map(|endpoint| endpoint.1).map_err(|_| ());
        assert_eq!(
            ["a:80", "a:00080", "[::1]:65535"].map(port),
            [80, 80, 65_535].map(|n| Ok(Some(n)))
        );
        assert_eq!(["a:000080", "a:0", "a:65536", "a:"].map(port), [Err(()); 4]);
    }

    #[test]
    fn impossible_settings_are_refused_with_their_place() {
        let cases = [
            ("/phases", json!([]), "phases: the list is empty"),
            ("/phases/1/duration_ns", json!(5), "phases[1].duration_ns: 5 is not between"),
            ("/phases/1/kind", json!("sideways"), "unknown variant `sideways`"),
            ("/streams", json!(0), "streams: 0"),
            ("/dscp", json!(64), "dscp: 64 is not between 0 and 63"),
            ("/family", json!(5), "family: neither 4 nor 6"),
            ("/probe_interval_ns", json!(0), "probe_interval_ns: 0"),
            ("/probe_bytes", json!(20), "probe_bytes: 20"),
            ("/targets/0/how", json!("smoke"), "unknown variant `smoke`"),
        ];
        for (place, value, message) in cases {
            let mut changed = plan();
            *changed.pointer_mut(place).unwrap() = value;
            let error = Plan::parse(&changed.to_string()).unwrap_err();
            assert!(error.contains(message), "{place}: {error}");
        }
    }
}
