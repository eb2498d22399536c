//! This host's end of the link: an interface's root qdisc and counters, by netlink.
//!
//! The root qdisc counts for all below it: the kernel propagates backlog and drops upwards
//! (sch_api.c, qdisc_tree_reduce_backlog), and mq adds up its children. Received packets pass no
//! qdisc; for them there are the interface's counters.

use std::io;
use std::net::IpAddr;

use probe::netlink::{Counters, Netlink, Qdisc};

/// The parent of a root qdisc.
const ROOT: u32 = 0xffff_ffff;
/// The pseudo-qdiscs ingress and clsact, which have no queue.
const INGRESS: u32 = 0xffff_fff1;

/// An interface that is sampled.
#[derive(Debug)]
pub struct Local {
    netlink: Netlink,
    device: u32,
    /// Its name.
    pub name: String,
    /// The kinds of its qdiscs, from the root down.
    pub qdisc: String,
    /// Samples in order of time.
    pub samples: Vec<Sample>,
    /// The kernel's error that ended the sampling.
    pub broken: Option<String>,
}

/// A sample of an interface; counters count from the creation of the interface or its qdisc.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Time, ns.
    pub t: i64,
    /// Its root qdisc; `None`: it has none that queues.
    pub root: Option<Root>,
    /// Its counters.
    pub counters: Counters,
}

/// The counters of a root qdisc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Root {
    pub handle: u32,
    pub backlog_packets: i64,
    pub backlog_bytes: i64,
    pub sent_packets: i64,
    pub sent_bytes: i64,
    pub dropped: i64,
}

/// The interfaces of this host, and the interface and router on the way to an address.
#[derive(Debug)]
pub struct Surroundings {
    /// (index, name).
    pub devices: Vec<(u32, String)>,
    /// Name of the interface that sends packets to the server.
    pub device: Option<String>,
    /// The next router on the way to the server.
    pub gateway: Option<IpAddr>,
}

impl Surroundings {
    /// Reads them for the way to `to`.
    pub fn look(to: IpAddr) -> io::Result<Surroundings> {
        let mut netlink = Netlink::new()?;
        let devices = netlink.devices()?;
        let route = netlink.route(to).ok();
        let device = route.and_then(|r| devices.iter().find(|(index, _)| *index == r.device));
        Ok(Surroundings {
            device: device.map(|(_, name)| name.clone()),
            gateway: route.and_then(|r| r.gateway),
            devices,
        })
    }
}

impl Local {
    /// Begins to sample an interface.
    pub fn new(device: u32, name: &str) -> io::Result<Local> {
        let mut netlink = Netlink::new()?;
        netlink.counters(device)?;
        let qdiscs: Vec<Qdisc> =
            netlink.qdiscs()?.into_iter().filter(|q| q.device == device).collect();
        Ok(Local {
            netlink,
            device,
            name: name.to_string(),
            qdisc: kinds(&qdiscs),
            samples: Vec::new(),
            broken: None,
        })
    }

    /// Takes a sample at `now`; a failure ends the sampling.
    pub fn sample(&mut self, now: i64) {
        if self.broken.is_some() {
            return;
        }
        let sample = self.netlink.counters(self.device).and_then(|counters| {
            let qdiscs = self.netlink.qdiscs()?;
            let root = qdiscs.into_iter().find(|q| q.device == self.device && q.parent == ROOT);
            // A device without a queue has "noqueue", which counts nothing.
            Ok((counters, root.filter(|q| q.kind != "noqueue")))
        });
        match sample {
            Ok((counters, root)) => {
                self.samples.push(Sample { t: now, root: root.as_ref().map(Root::of), counters });
            }
            Err(error) => self.broken = Some(error.to_string()),
        }
    }
}

impl Root {
    fn of(qdisc: &Qdisc) -> Root {
        Root {
            handle: qdisc.handle,
            backlog_packets: qdisc.backlog_packets.into(),
            backlog_bytes: qdisc.backlog_bytes.into(),
            sent_packets: qdisc.sent_packets as i64,
            sent_bytes: qdisc.sent_bytes as i64,
            dropped: qdisc.drops.into(),
        }
    }
}

/// Returns the kinds from the root down, each once: `htb, bfifo`.
fn kinds(qdiscs: &[Qdisc]) -> String {
    let (root, below): (Vec<&Qdisc>, Vec<&Qdisc>) =
        qdiscs.iter().filter(|q| q.parent != INGRESS).partition(|q| q.parent == ROOT);
    let mut words: Vec<&str> = Vec::new();
    for qdisc in root.into_iter().chain(below) {
        if !words.contains(&qdisc.kind.as_str()) {
            words.push(&qdisc.kind);
        }
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_are_listed_from_the_root_down() {
        let qdisc = |kind: &str, parent| Qdisc { kind: kind.into(), parent, ..Qdisc::default() };
        let all = [
            qdisc("fq_codel", 0x10001),
            qdisc("htb", ROOT),
            qdisc("ingress", INGRESS),
            qdisc("fq_codel", 0x10002),
        ];
        assert_eq!(kinds(&all), "htb, fq_codel");
        assert_eq!(kinds(&[]), "");
    }

    #[test]
    fn the_interface_to_loopback_is_lo_and_can_be_observed() {
        let here = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
        let around = Surroundings::look(here).unwrap();
        assert_eq!((around.device.as_deref(), around.gateway), (Some("lo"), None));
        let (index, name) = around.devices.iter().find(|(_, name)| name == "lo").unwrap();
        let mut local = Local::new(*index, name).unwrap();
        local.sample(7);
        assert_eq!((local.samples.len(), local.samples[0].t), (1, 7));
        assert!(Local::new(u32::MAX / 2, "none").is_err());
    }
}
