//! Whom to probe: the plan's words become addresses, and whom this host can't probe is left out
//! with the reason.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use probe::icmp::Pinger;
use probe::{hops, prober};

use super::local::Surroundings;
use super::plan::{How, Plan, Target};
use crate::Failure;

/// The farthest router that may be asked for.
const FARTHEST: u8 = 8;
/// For a router to say that it is there.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Someone who will be probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aim {
    /// Of the probe.
    pub name: String,
    /// How it is asked.
    pub how: How,
    /// Where it is.
    pub address: IpAddr,
    /// By which kind of socket: `unprivileged`, `raw` or `udp`.
    pub socket: &'static str,
}

impl Aim {
    /// As the prober takes it.
    pub fn target(&self, port: u16, size: u32, dscp: u8) -> prober::Target {
        let protocol = match self.how {
            How::Icmp => prober::Protocol::Icmp,
            How::Udp => prober::Protocol::Udp(port),
        };
        prober::Target { address: self.address, protocol, size: size as usize, ds: dscp << 2 }
    }
}

/// Those who can be probed; sentences about the others go to `notes`.
pub fn resolve(
    plan: &Plan,
    server: SocketAddr,
    around: &Surroundings,
    identifier: u16,
    notes: &mut Vec<String>,
) -> Result<Vec<Aim>, Failure> {
    let mut aims: Vec<Aim> = Vec::new();
    for target in &plan.targets {
        let Some(address) = address(target, plan, server, around, notes)? else {
            continue;
        };
        if aims.iter().any(|aim| aim.address == address && aim.how == target.how) {
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
            (given, _) => given.to_string(),
        };
        if aims.iter().any(|aim| aim.name == name) {
            return Err(Failure::new(
                format!("two targets are called '{name}'"),
                "give them names of their own",
            ));
        }
        aims.push(Aim { name, how: target.how, address, socket });
    }
    Ok(aims)
}

/// Where a target is; `None`: it is not there, which `notes` say.
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
            format!("'{word}' can't be probed by udp: only the server turns our datagrams round"),
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
        let wrong =
            || Failure::new(format!("'{word}' is no router"), format!("hop 1 .. hop {FARTHEST}"));
        let number: u8 =
            number.trim().parse().ok().filter(|n| (1..=FARTHEST).contains(n)).ok_or_else(wrong)?;
        if around.gateway.is_none() {
            return Ok(None);
        }
        let found = hops::router(server, number, PATIENCE);
        if !matches!(found, Ok(Some(_))) {
            notes.push(format!("{word} is left out: no router says that it is there"));
        }
        return Ok(found.ok().flatten());
    }
    let unknown = |e: io::Error| {
        Failure::new(
            format!("there is no host '{word}' to probe: {e}"),
            "give an address, or leave the target out",
        )
    };
    let all = (word, 0).to_socket_addrs().map_err(unknown)?;
    let mut all = all
        .map(|a| a.ip())
        .filter(|a| plan.family.is_none_or(|family| (family == 4) == a.is_ipv4()));
    all.next().map(Some).ok_or_else(|| unknown(ErrorKind::NotFound.into()))
}

/// Whether this host can ask in this way, and by which socket.
fn open(how: How, address: IpAddr, identifier: u16) -> io::Result<&'static str> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    match how {
        How::Udp => Ok("udp"),
        How::Icmp => match Pinger::new(any, address, identifier, 0) {
            Ok(pinger) => Ok(if pinger.is_raw() { "raw" } else { "unprivileged" }),
            // Another program has this identifier; the prober looks for a free one.
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

    fn asked(targets: &[(How, &str, &str)]) -> (Result<Vec<String>, Failure>, Vec<String>) {
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
        let found = resolve(&plan, SocketAddr::new(HERE, 1), &around, 1, &mut notes);
        (found.map(|aims| aims.into_iter().map(|aim| aim.name).collect()), notes)
    }

    #[test]
    fn the_same_target_is_probed_once_and_what_is_not_there_is_said() {
        let (names, notes) = asked(&[(How::Udp, "server", ""), (How::Udp, "127.0.0.1", "x")]);
        assert!(names.unwrap_err().problem.contains("only the server"));
        assert!(notes.is_empty());
        let (names, notes) = asked(&[
            (How::Udp, "server", ""),
            (How::Udp, "server", "again"),
            (How::Icmp, "gateway", ""),
        ]);
        assert_eq!(names.unwrap(), ["server udp"]);
        assert_eq!(notes, ["there is no gateway: the server is on this host's own network"]);
        assert!(asked(&[(How::Icmp, "hop 9", "")]).0.unwrap_err().hint.contains("hop 8"));
        assert!(
            asked(&[(How::Icmp, "no.such.host.invalid", "")])
                .0
                .unwrap_err()
                .problem
                .contains("no.such.host")
        );
    }
}
