//! Resolves the plan's targets to addresses. Targets that this host can't probe are left out, with
//! the reason.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use probe::icmp::Pinger;
use probe::{hops, prober};

use super::local::Surroundings;
use super::plan::{How, Plan, Target};
use crate::Failure;

/// The farthest router that may be requested.
const FARTHEST: u8 = 8;
/// Time for a router to answer.
const PATIENCE: Duration = Duration::from_millis(1500);

/// A resolved target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeTarget {
    /// The probe's name.
    pub name: String,
    /// The protocol of the requests.
    pub how: How,
    /// The target's address.
    pub address: IpAddr,
    /// The kind of socket: `unprivileged`, `raw` or `udp`.
    pub socket: &'static str,
}

impl ProbeTarget {
    /// Returns the target for the prober.
    pub fn target(&self, port: u16, size: u32, dscp: u8) -> prober::Target {
        let protocol = match self.how {
            How::Icmp => prober::Protocol::Icmp,
            How::Udp => prober::Protocol::Udp(port),
        };
        prober::Target { address: self.address, protocol, size: size as usize, ds: dscp << 2 }
    }
}

/// Returns the targets that can be probed; adds a sentence about each other target to `notes`.
pub fn resolve(
    plan: &Plan,
    server: SocketAddr,
    around: &Surroundings,
    identifier: u16,
    notes: &mut Vec<String>,
) -> Result<Vec<ProbeTarget>, Failure> {
    let mut resolved: Vec<ProbeTarget> = Vec::new();
    for target in &plan.targets {
        let Some(address) = address(target, plan, server, around, notes)? else {
            continue;
        };
        if resolved
            .iter()
            .any(|probe_target| probe_target.address == address && probe_target.how == target.how)
        {
            continue;
        }
        let socket = match open(target.how, address, identifier) {
            Ok(socket) => socket,
            Err(error) => {
                notes.push(format!(
                    "{} by {} is left out: {error}",
                    target.address,
                    target.how.word()
                ));
                continue;
            }
        };
        let name = match (target.name.as_str(), target.how) {
            ("", How::Icmp) => target.address.clone(),
            ("", How::Udp) => format!("{} udp", target.address),
            (name, _) => name.to_string(),
        };
        if resolved.iter().any(|probe_target| probe_target.name == name) {
            return Err(Failure::new(
                format!("two targets are called '{name}'"),
                "give each its own name",
            ));
        }
        resolved.push(ProbeTarget { name, how: target.how, address, socket });
    }
    Ok(resolved)
}

/// Returns a target's address; `None` if it does not exist, with a sentence in `notes`.
fn address(
    target: &Target,
    plan: &Plan,
    server: SocketAddr,
    around: &Surroundings,
    notes: &mut Vec<String>,
) -> Result<Option<IpAddr>, Failure> {
    let word = target.address.as_str();
    if word == "server" {
        return Ok(Some(server.ip()));
    }
    if target.how == How::Udp {
        return Err(Failure::new(
            format!("'{word}' can't be probed by udp: only the server returns our datagrams"),
            "probe it by icmp",
        ));
    }
    if word == "gateway" {
        if around.gateway.is_none() {
            notes.push("there is no gateway: the server is on this host's own network".into());
        }
        return Ok(around.gateway);
    }
    if let Some(number) = word.strip_prefix("hop ") {
        let wrong = || {
            Failure::new(
                format!("'{word}' is not a router"),
                format!("write hop 1 to hop {FARTHEST}"),
            )
        };
        let number: u8 =
            number.trim().parse().ok().filter(|n| (1..=FARTHEST).contains(n)).ok_or_else(wrong)?;
        if around.gateway.is_none() {
            return Ok(None);
        }
        let router = hops::router(server, number, PATIENCE);
        if !matches!(router, Ok(Some(_))) {
            notes.push(format!("{word} is left out: no router answered"));
        }
        return Ok(router.ok().flatten());
    }
    let unknown = |e: io::Error| {
        Failure::new(
            format!("there is no host '{word}' to probe: {e}"),
            "give an address, or remove this target",
        )
    };
    let all = (word, 0).to_socket_addrs().map_err(unknown)?;
    let mut all = all
        .map(|a| a.ip())
        .filter(|a| plan.family.is_none_or(|family| (family == 4) == a.is_ipv4()));
    all.next().map(Some).ok_or_else(|| unknown(ErrorKind::NotFound.into()))
}

/// Returns the kind of socket for a probe; fails if this host can't open it.
fn open(how: How, address: IpAddr, identifier: u16) -> io::Result<&'static str> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    match how {
        How::Udp => Ok("udp"),
        How::Icmp => match Pinger::new(any, address, identifier, 0) {
            Ok(pinger) => Ok(if pinger.is_raw() { "raw" } else { "unprivileged" }),
            // Another program uses this identifier; the prober will find a free one.
            Err(error) if error.kind() == ErrorKind::AddrInUse => Ok("unprivileged"),
            Err(error) => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::plan::{Kind, Phase};

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn resolve_targets(
        targets: &[(How, &str, &str)],
    ) -> (Result<Vec<String>, Failure>, Vec<String>) {
        let targets = targets
            .iter()
            .map(|&(how, address, name)| Target { how, address: address.into(), name: name.into() })
            .collect();
        let plan = Plan {
            secret: Default::default(),
            host: "localhost".into(),
            port: 1,
            family: None,
            streams: 1,
            congestion: None,
            dscp: 0,
            ecn: false,
            phases: vec![Phase { kind: Kind::Idle, duration_ns: 1 }],
            targets,
            probe_interval_ns: 1,
            probe_bytes: 64,
            probe_timeout_ns: 1,
            interface: None,
            sample_ns: 1,
            patience_ns: 1,
        };
        let around = Surroundings { devices: Vec::new(), device: None, gateway: None };
        let mut notes = Vec::new();
        let resolved = resolve(&plan, SocketAddr::new(HERE, 1), &around, 1, &mut notes);
        (resolved.map(|targets| targets.into_iter().map(|target| target.name).collect()), notes)
    }

    #[test]
    fn a_target_is_probed_once_and_missing_ones_are_reported() {
        let (names, notes) =
            resolve_targets(&[(How::Udp, "server", ""), (How::Udp, "127.0.0.1", "x")]);
        assert!(names.unwrap_err().problem.contains("only the server"));
        assert!(notes.is_empty());
        let (names, notes) = resolve_targets(&[
            (How::Udp, "server", ""),
            (How::Udp, "server", "again"),
            (How::Icmp, "gateway", ""),
        ]);
        assert_eq!(names.unwrap(), ["server udp"]);
        assert_eq!(notes, ["there is no gateway: the server is on this host's own network"]);
        assert!(resolve_targets(&[(How::Icmp, "hop 9", "")]).0.unwrap_err().hint.contains("hop 8"));
        assert!(
            resolve_targets(&[(How::Icmp, "no.such.host.invalid", "")])
                .0
                .unwrap_err()
                .problem
                .contains("no.such.host")
        );
    }
}
