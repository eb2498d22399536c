//! Samples of queues and devices: the kernel's counters at whole multiples of an interval.
//!
//! Netlink returns the qdiscs, with their specific statistics as bytes. These bytes are stored in
//! one blob, and a row contains their position. Bytes that equal those of the qdisc's last row are
//! not stored again. Gauges are sysfs files with a number, which stay open.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use probe::netlink::{Netlink, Qdisc};

use crate::plan::Plan;
use crate::results::{Archive, rows};
use crate::world::World;

rows! {
    /// A qdisc's counters, and the positions of its own statistics and options in the blob.
    qdisc {
        t_ns,
        device,
        kind,
        handle,
        parent,
        sent_bytes,
        sent_packets,
        backlog_packets,
        backlog_bytes,
        drops,
        requeues,
        overlimits,
        own_at,
        own_bytes,
        options_at,
        options_bytes,
    }
    /// A device's counters.
    device {
        t_ns,
        device,
        received_packets,
        sent_packets,
        received_bytes,
        sent_bytes,
        received_dropped,
        sent_dropped,
    }
    /// The number in a file of sysfs; -1: it can't be read.
    gauge {
        t_ns,
        device,
        gauge,
        value,
    }
}

/// All samples of queues and devices.
pub struct Queues {
    spaces: Vec<Space>,
    gauges: Vec<Gauge>,
    kinds: Vec<String>,
    qdisc: qdisc::Rows,
    device: device::Rows,
    gauge: gauge::Rows,
    blob: Vec<u8>,
    /// Position and length of the latest bytes for (device, handle, parent, whether they are
    /// options).
    latest: HashMap<(usize, u32, u32, bool), (usize, usize)>,
}

/// A namespace and its sampled devices: (index in the plan, index in the kernel).
struct Space {
    netlink: Netlink,
    devices: Vec<(usize, u32)>,
}

struct Gauge {
    device: usize,
    gauge: usize,
    file: Option<File>,
}

impl Queues {
    /// Opens the devices and gauges that the plan lists.
    pub fn new(plan: &Plan, world: &World) -> Result<Queues, String> {
        let mut spaces: Vec<(&str, Space)> = Vec::new();
        let mut gauges = Vec::new();
        for (i, device) in plan.devices.iter().enumerate() {
            let name = device.namespace.as_str();
            let fail = |e: io::Error| format!("devices[{i}] ({} in {name}): {e}", device.name);
            let (index, netlink) = world
                .inside(Some(name), || {
                    Ok((probe::sys::device_index(&device.name)?, Netlink::new()?))
                })
                .map_err(fail)?;
            match spaces.iter_mut().find(|(known, _)| *known == name) {
                Some((_, space)) => space.devices.push((i, index)),
                None => spaces.push((name, Space { netlink, devices: vec![(i, index)] })),
            }
            for (gauge, file) in device.gauges.iter().enumerate() {
                let path =
                    world.path(Some(name), &format!("/sys/class/net/{}/{file}", device.name));
                gauges.push(Gauge { device: i, gauge, file: File::open(path).ok() });
            }
        }
        Ok(Queues {
            spaces: spaces.into_iter().map(|(_, space)| space).collect(),
            gauges,
            kinds: Vec::new(),
            qdisc: qdisc::Rows::default(),
            device: device::Rows::default(),
            gauge: gauge::Rows::default(),
            blob: Vec::new(),
            latest: HashMap::new(),
        })
    }

    /// Takes a sample at `now`.
    pub fn take(&mut self, now: i64) -> Result<(), String> {
        for i in 0..self.spaces.len() {
            let space = &mut self.spaces[i];
            let devices = space.devices.clone();
            let qdiscs = space.netlink.qdiscs().map_err(|e| format!("reading the qdiscs: {e}"))?;
            for (device, index) in &devices {
                let counters =
                    space.netlink.counters(*index).map_err(|e| format!("reading a device: {e}"))?;
                self.device.push(device::Row {
                    t_ns: now,
                    device: *device as i64,
                    received_packets: counters.received_packets as i64,
                    sent_packets: counters.sent_packets as i64,
                    received_bytes: counters.received_bytes as i64,
                    sent_bytes: counters.sent_bytes as i64,
                    received_dropped: counters.received_dropped as i64,
                    sent_dropped: counters.sent_dropped as i64,
                });
            }
            for qdisc in qdiscs {
                if let Some(&(device, _)) = devices.iter().find(|(_, index)| *index == qdisc.device)
                {
                    self.add(now, device, &qdisc);
                }
            }
        }
        for gauge in &self.gauges {
            let value = gauge.file.as_ref().and_then(number).unwrap_or(-1);
            self.gauge.push(gauge::Row {
                t_ns: now,
                device: gauge.device as i64,
                gauge: gauge.gauge as i64,
                value,
            });
        }
        Ok(())
    }

    fn add(&mut self, now: i64, device: usize, qdisc: &Qdisc) {
        let kind = self.kinds.iter().position(|k| *k == qdisc.kind).unwrap_or_else(|| {
            self.kinds.push(qdisc.kind.clone());
            self.kinds.len() - 1
        });
        let (own_at, own_bytes) =
            self.store((device, qdisc.handle, qdisc.parent, false), &qdisc.own);
        let (options_at, options_bytes) =
            self.store((device, qdisc.handle, qdisc.parent, true), &qdisc.options);
        self.qdisc.push(qdisc::Row {
            t_ns: now,
            device: device as i64,
            kind: kind as i64,
            handle: i64::from(qdisc.handle),
            parent: i64::from(qdisc.parent),
            sent_bytes: qdisc.sent_bytes as i64,
            sent_packets: qdisc.sent_packets as i64,
            backlog_packets: i64::from(qdisc.backlog_packets),
            backlog_bytes: i64::from(qdisc.backlog_bytes),
            drops: i64::from(qdisc.drops),
            requeues: i64::from(qdisc.requeues),
            overlimits: i64::from(qdisc.overlimits),
            own_at: own_at as i64,
            own_bytes: own_bytes as i64,
            options_at: options_at as i64,
            options_bytes: options_bytes as i64,
        });
    }

    /// Stores bytes in the blob; returns their position and length.
    fn store(&mut self, whose: (usize, u32, u32, bool), bytes: &[u8]) -> (usize, usize) {
        if let Some(&(at, length)) = self.latest.get(&whose)
            && self.blob[at..at + length] == *bytes
        {
            return (at, length);
        }
        let place = (self.blob.len(), bytes.len());
        self.blob.extend(bytes);
        self.latest.insert(whose, place);
        place
    }

    /// Writes the tables; returns the names of the qdisc kinds.
    pub fn write<W: Write>(self, archive: &mut Archive<W>) -> io::Result<Vec<String>> {
        archive.table("qdisc", self.qdisc.columns())?;
        archive.file("qdisc/blob", &self.blob)?;
        archive.table("device", self.device.columns())?;
        archive.table("gauge", self.gauge.columns())?;
        Ok(self.kinds)
    }
}

/// Reads the number in a sysfs file. The kernel produces the content anew at each read from offset
/// 0.
fn number(file: &File) -> Option<i64> {
    let mut text = [0; 32];
    let length = file.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(&text[..length]).ok()?.trim();
    // Some files contain "max" for no limit; unsigned values may not fit.
    text.parse()
        .ok()
        .or_else(|| text.parse::<u64>().ok().map(|v| i64::try_from(v).unwrap_or(i64::MAX)))
}

/// Returns the processor's time in each state, in ticks since boot, with the names of proc(5).
pub fn processor_time() -> Option<serde_json::Value> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let mut fields =
        text.lines().next()?.split_whitespace().skip(1).map(|f| f.parse::<u64>().unwrap_or(0));
    let words = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];
    Some(
        words
            .iter()
            .map(|&word| (word.to_string(), fields.next().unwrap_or(0).into()))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    )
}
