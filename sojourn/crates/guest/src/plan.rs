//! The plan: the host's complete instructions for the guest, in one JSON file.
//!
//! The host has translated a scenario into namespaces, devices, commands and flows; this program
//! parses only the plan. Times are ns on the run's clock, which is 0 when the traffic begins: after
//! the set-up and `settle_ns`. Sizes are bytes, rates are bit/s. Unknown fields are errors, so a
//! host and a guest of different versions can't misunderstand each other silently.
//!
//! Random values come from the seed by the simulator's own generators, in streams with the
//! simulator's names (`<flow>/traffic`). So both engines offer the same sizes, pauses and video
//! frames.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::Deserialize;
use traffic::{Draw, Frames, Pace};

/// The version of this schema; the plan contains the version it was written for.
pub const VERSION: u32 = 2;

/// One run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// `VERSION`.
    pub version: u32,
    /// Seed of every random stream of the traffic.
    pub seed: u64,
    /// Length of the run, ns.
    pub duration_ns: u64,
    /// Start of the measured time, ns: totals exclude everything before.
    pub warmup_ns: u64,
    /// Wait between the end of the set-up and time 0, ns: carriers come up, addresses become
    /// usable. Time 0 is at a tick of the kernel's timers, so the wait is longer by some hundred ms
    /// (`Clock::starting_with_tick`).
    pub settle_ns: u64,
    /// Wait after the end, ns, for packets in flight: taps continue, sources and samples stop.
    pub linger_ns: u64,
    /// Time limit since the program's start, ns: after it, the program prints `@FAIL deadline` and
    /// ends.
    pub deadline_ns: u64,
    /// Kernel modules to load first, in this order: paths of uncompressed .ko files.
    pub modules: Vec<String>,
    /// Network namespaces to create before the set-up, each under `/run/netns` with its loopback
    /// up.
    pub namespaces: Vec<String>,
    /// The set-up, in order. The first failure ends the run.
    pub setup: Vec<Step>,
    /// Steps during the run, in order of time.
    pub events: Vec<Event>,
    /// Devices whose queues and counters are sampled.
    pub devices: Vec<Device>,
    /// Queues whose packets are recorded individually.
    pub taps: Vec<Tap>,
    /// Links whose packet headers are recorded; may be empty.
    #[serde(default)]
    pub headers: Vec<HeaderTap>,
    /// The traffic; a flow's index is its position here.
    pub flows: Vec<Flow>,
    /// Sampling intervals.
    pub sample: Sample,
    /// Destination of the results.
    pub output: Output,
    /// Programs of the host that start during the run.
    #[serde(default)]
    pub programs: Vec<Program>,
    /// The root of their file system; without programs there is none.
    #[serde(default)]
    pub program_root: Option<ProgramRoot>,
    /// A short run in its own namespaces before the main run. It checks that this kernel keeps time
    /// on this host. Its results are in the same archive under `check/`; the archive's index has
    /// them under `check`. Modules, deadline and output are those of the main run.
    #[serde(default)]
    pub check: Option<Box<Plan>>,
}

/// A step of the set-up.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Run a program and wait for it; an exit status other than 0 is a failure.
    Run {
        /// The namespace it runs in; `None`: the program's own.
        namespace: Option<String>,
        /// The program (looked up in PATH) and its arguments: `["tc", "-batch", "-"]`.
        argv: Vec<String>,
        /// Its standard input.
        stdin: Option<String>,
    },
    /// Write a text into an existing file: a sysctl, or a device's attribute in `/sys`.
    /// `/proc/sys/net` and `/sys` are those of the namespace.
    Write {
        /// The namespace; `None`: the program's own.
        namespace: Option<String>,
        /// The file.
        path: String,
        /// The text.
        text: String,
    },
    /// Add a queue discipline that the guest's tc can't express.
    Qdisc {
        /// The namespace of its device.
        namespace: String,
        /// Its device.
        device: String,
        /// Its parent: a class, or 0xffff_ffff for the root.
        parent: u32,
        /// Its handle, `major << 16`.
        handle: u32,
        /// Its kind.
        kind: String,
        /// Bytes added to the length of each packet (tc-stab).
        overhead: i32,
        /// Its options: the attributes of a netlink message, as bytes.
        options: Vec<u8>,
    },
}

/// A step at a time of the run, for example a rate change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Time, ns.
    pub at_ns: u64,
    /// The step.
    pub step: Step,
}

/// A device whose qdiscs, counters and gauges are sampled.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Index of the scenario's link that sends through this device.
    pub link: u32,
    /// Its namespace.
    pub namespace: String,
    /// Its name there.
    pub name: String,
    /// Files with a number, relative to `/sys/class/net/NAME`, read at each sample: BQL's
    /// `queues/tx-0/byte_queue_limits/limit`, or a driver's ring. A missing file reads as -1.
    pub gauges: Vec<String>,
}

/// A queue whose packets are recorded: by the log of its simulated card, or by packet sockets
/// (`taps`). `watch` makes statistics of these records.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tap {
    /// Index of the scenario's link.
    pub link: u32,
    /// Bytes that the discipline counts in addition to the IP packet.
    pub header_bytes: u32,
    /// The end of each transmission is recorded too.
    pub out: bool,
    /// One row per packet is kept.
    pub rows: bool,
    /// The card's number in the log; `None` if packet sockets record.
    pub card: Option<u16>,
    /// The places of the packet sockets; `None` if a card's log records.
    pub seen: Option<Stages>,
}

/// A link whose packet headers are recorded after its queue.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeaderTap {
    /// Index of the scenario's link that sends through this device.
    pub link: u32,
    /// Its namespace.
    pub namespace: String,
    /// Its name there.
    pub device: String,
    /// Memory for its records in the kernel, bytes.
    pub ring_bytes: u32,
}

/// The places at which a queue's packets are captured. Stage 0 sees every packet before the queue,
/// stage 1 after it, further stages later (the far end of the wire). A packet that is missing at a
/// stage was dropped before it. A link on which no packet waits has no stage before the queue: its
/// first stage is `after`.
///
/// A packet socket captures the packets that a device *receives*, and those that it sends, *after*
/// the qdisc. So there are two ways to capture before the queue: at the ingress of a router (`in`);
/// or copies of the packets, which tc mirrors before the qdisc to a device M, at M (`out`). The
/// filter is `tc filter ... egress ... action mirred egress mirror dev M` under clsact. Copies work
/// for any qdisc, including a host's own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stages {
    /// The stages, at least two.
    pub stages: Vec<Stage>,
    /// Records only these flows, as (flow, reverse); `None`: every IP packet at stage 0. For a
    /// router with several outgoing links.
    pub only: Option<Vec<(u32, bool)>>,
    /// Memory for each point's packet records in the kernel, bytes.
    pub ring_bytes: u32,
    /// Delay from the end of a transmission to the far end, ns.
    pub delay_ns: u64,
    /// The wire loses packets: a packet that is missing at the far end is lost.
    pub loses: bool,
    /// How the discipline drops, to find the times at which missing packets were dropped.
    pub drops: Drops,
}

/// Drop behaviour of a discipline. Taps see which packets are missing after the queue, but not when
/// they were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drops {
    /// The discipline is a FIFO.
    pub in_order: bool,
    /// The time at which it drops.
    pub how: How,
    /// The discipline's limit, packets, if it matters.
    pub limit: Option<u64>,
}

/// Time at which a packet is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// On arrival.
    Arrival,
    /// When it would be dequeued; on arrival if the limit is reached.
    Departure,
    /// From the head of the queue, when the limit is reached and another packet arrives.
    Head,
}

/// A stage of a tap: one or several devices that together see the stream of packets.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Its name in the results: `before`, `after`, `arrived`.
    pub name: String,
    /// The devices.
    pub points: Vec<Point>,
}

/// A device and direction at which packets are captured.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// The namespace.
    pub namespace: String,
    /// The device.
    pub device: String,
    /// Received or sent packets.
    pub direction: Direction,
}

/// Direction of a packet at a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Received.
    In,
    /// Sent.
    Out,
}

/// One flow or probe.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Its unique name, which also names its random stream.
    pub name: String,
    /// The sending end.
    pub from: End,
    /// The receiving or echoing end.
    pub to: End,
    /// The TCP or UDP port of the end that listens, or ping's ICMP identifier. The receiver listens;
    /// of requests, the source. Unique among the flows of its
    /// protocol, because taps use it to identify the flow. UDP sends from the same port; the kernel
    /// chooses TCP's source port.
    pub port: u16,
    /// Start time, ns.
    pub start_ns: u64,
    /// Time at which it stops sending, ns; `None`: at the end. TCP still delivers the data in its
    /// socket.
    pub stop_ns: Option<u64>,
    /// Largest random delay of each packet or frame, ns. It is uniform, from the stream
    /// `<flow>/jitter`, and keeps the order. Not for TCP, whose packets the kernel sends.
    #[serde(default)]
    pub jitter_ns: u64,
    /// The DS byte of the IP header: DSCP in the upper six bits, ECN in the lower two. For TCP
    /// these two bits are 0, because the kernel sets them for each packet.
    pub ds: u8,
    /// The traffic.
    pub traffic: Traffic,
}

impl Flow {
    /// Whether the source listens at `port`, rather than the far end.
    pub fn source_listens(&self) -> bool {
        matches!(self.traffic, Traffic::Requests { .. })
    }
}

/// One end of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// The namespace.
    pub namespace: String,
    /// An address of this namespace.
    pub address: IpAddr,
}

/// Kinds of traffic, with the simulator's names.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Traffic {
    /// One TCP connection: without end, or a transfer of `bytes`.
    Bulk {
        /// Application bytes; `None`: without end.
        bytes: Option<u64>,
        /// The application's pace; `None`: it always has more to write.
        #[serde(default)]
        pace: Option<Pace>,
        /// The endpoints.
        tcp: Tcp,
    },
    /// Sequential transfers, each on a new connection, with pauses.
    Transfers {
        /// Application bytes of each transfer.
        bytes: Draw,
        /// Pause between the end of a transfer and the start of the next, ns.
        pause_ns: Draw,
        /// The endpoints.
        tcp: Tcp,
    },
    /// Requests over one kept connection: the far end connects and asks, the source answers.
    Requests {
        /// Application bytes of each request.
        request_bytes: Draw,
        /// Application bytes of each answer.
        bytes: Draw,
        /// Pause between the end of an answer and the next request, ns.
        pause_ns: Draw,
        /// Each end writes whole multiples of this many bytes, except at the end of a message.
        write_bytes: u64,
        /// The endpoints.
        tcp: Tcp,
    },
    /// Datagrams at a constant rate, or on/off if both periods are given.
    Udp {
        /// Rate of IP bytes while on, bit/s.
        bps: u64,
        /// IP packet size, bytes.
        packet_bytes: u32,
        /// Length of the on periods, ns; `None`: always on.
        on_ns: Option<Draw>,
        /// Length of the off periods, ns.
        off_ns: Option<Draw>,
    },
    /// ICMP echo request and the kernel's reply.
    Ping {
        /// Time between requests, ns.
        interval_ns: u64,
        /// IP packet size both ways, bytes.
        packet_bytes: u32,
    },
    /// A datagram and our own echo, which contains the time at which the far end received it.
    Echo {
        /// Time between requests, ns.
        interval_ns: u64,
        /// IP packet size both ways, bytes.
        packet_bytes: u32,
    },
    /// Packets of any protocol between two hosts, which programs send. The flow's hosts have no
    /// other flow: their addresses identify its packets.
    Program {
        /// The devices at which packets leave the first host and reach the second.
        devices: [String; 2],
        /// Memory for each device's packet records in the kernel, bytes.
        ring_bytes: u32,
    },
    /// RTP video: one frame every 1/fps, its packets back to back.
    Video {
        /// Frame sizes: from the model, or a list of (time from the flow's start in ns, bytes).
        frames: Frames,
        /// Largest RTP payload of a packet, bytes, without IP, UDP and RTP headers.
        payload_bytes: u32,
    },
}

/// Options of a TCP connection. The set-up writes ECN (the namespace's sysctl or a route feature)
/// and the buffers (sysctls).
#[derive(Clone, Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tcp {
    /// Congestion control of the sender, by the kernel's name; `None`: the namespace's default.
    pub congestion: Option<String>,
    /// Largest segment, bytes; `None`: as the path allows.
    pub mss: Option<u32>,
    /// Largest window that the receiver advertises, bytes; `None`: the kernel tunes it.
    pub window_bytes: Option<u32>,
}

/// A program of the host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its name, of the file with what it prints.
    pub name: String,
    /// The namespace it runs in.
    pub namespace: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Its whole environment.
    pub env: BTreeMap<String, String>,
    /// Time of its start, ns; `None`: before the run, so that it is ready when the run begins.
    pub start_ns: Option<u64>,
    /// Time at which it gets SIGTERM, ns; `None`: at the end of the run.
    #[serde(default)]
    pub stop_ns: Option<u64>,
}

/// The root of the programs' file system. Everything in it but the host's folders is in memory.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramRoot {
    /// Folders of the host, read-only: the option of hostfs, and the place.
    pub sees: Vec<(String, String)>,
    /// Symbolic links, and what they lead to.
    pub links: Vec<(String, String)>,
    /// Files: path and text.
    pub files: Vec<(String, String)>,
    /// The folder of the programs' own files, each in a folder of its program's name; read-only.
    pub folder: String,
}

/// Sampling intervals, ns; 0: never. Samples are taken at whole multiples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Qdiscs, device counters and gauges.
    pub queue_ns: u64,
    /// TCP_INFO of both ends and delivered bytes.
    pub flow_ns: u64,
}

/// Destination of the results.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Modules to load after the measurement, before the results are written (virtio, which must
    /// not be loaded earlier).
    pub modules: Vec<String>,
    /// A file system to mount after the measurement (UML: hostfs).
    pub mount: Option<Mount>,
    /// The archive: a new file, or a device to wait for (QEMU: a virtio port).
    pub path: String,
}

/// A file system to mount.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// Its type: `hostfs`.
    pub kind: String,
    /// Its source: `none`.
    pub source: String,
    /// The mount point; created if missing.
    pub target: String,
    /// Its options.
    pub options: String,
}

/// IP and UDP headers of a datagram over IPv4 and over IPv6.
const UDP_HEADERS: [u32; 2] = [28, 48];
/// Bytes of the sequence number that the program writes into each datagram.
const DATAGRAM_BYTES: u32 = 4;

impl Traffic {
    /// Returns the protocol whose ports it uses.
    pub fn protocol(&self) -> Protocol {
        match self {
            Traffic::Bulk { .. } | Traffic::Transfers { .. } | Traffic::Requests { .. } => {
                Protocol::Tcp
            }
            Traffic::Udp { .. } | Traffic::Echo { .. } | Traffic::Video { .. } => Protocol::Udp,
            Traffic::Ping { .. } => Protocol::Icmp,
            Traffic::Program { .. } => Protocol::Any,
        }
    }
}

/// The protocol of a flow's port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP; the port is its identifier.
    Icmp,
    /// Any protocol, between the flow's two hosts; the port has no meaning.
    Any,
}

impl Plan {
    /// Parses and checks a plan; the error names the place and the fault.
    pub fn parse(text: &str) -> Result<Plan, String> {
        let plan: Plan = serde_json::from_str(text).map_err(|e| e.to_string())?;
        plan.check()?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), String> {
        if self.version != VERSION {
            return Err(format!(
                "version: this program reads plans of version {VERSION}, not {}",
                self.version
            ));
        }
        let known: BTreeSet<&str> = self.namespaces.iter().map(String::as_str).collect();
        if known.len() != self.namespaces.len() {
            return Err("namespaces: a name occurs twice".into());
        }
        if let Some(name) =
            known.iter().find(|n| n.is_empty() || n.contains('/') || n.starts_with('.'))
        {
            return Err(format!("namespaces: '{name}' is not a valid namespace name"));
        }
        let needs = |place: String, name: &str| {
            if known.contains(name) {
                Ok(())
            } else {
                Err(format!("{place}: there is no namespace '{name}' in `namespaces`"))
            }
        };
        let steps = self.setup.iter().enumerate().map(|(i, step)| (format!("setup[{i}]"), step));
        let events = self.events.iter().enumerate().map(|(i, e)| (format!("events[{i}]"), &e.step));
        for (place, step) in steps.chain(events) {
            let namespace = match step {
                Step::Run { namespace, .. } | Step::Write { namespace, .. } => namespace.as_ref(),
                Step::Qdisc { namespace, .. } => Some(namespace),
            };
            if let Some(name) = namespace {
                needs(place.clone(), name)?;
            }
            if matches!(step, Step::Run { argv, .. } if argv.is_empty()) {
                return Err(format!("{place}: argv is empty"));
            }
        }
        if let Some(check) = &self.check {
            check.check().map_err(|e| format!("check: {e}"))?;
            if let Some(name) = check.namespaces.iter().find(|n| known.contains(n.as_str())) {
                return Err(format!("check: '{name}' is a namespace of the run itself"));
            }
        }
        for (i, program) in self.programs.iter().enumerate() {
            needs(format!("programs[{i}]"), &program.namespace)?;
            if program.argv.is_empty() {
                return Err(format!("programs[{i}]: argv is empty"));
            }
            let name = &program.name;
            if name.contains('/') || matches!(name.as_str(), "" | "." | "..") {
                return Err(format!("programs[{i}]: '{name}' is not a file's name"));
            }
            if self.programs[..i].iter().any(|other| other.name == *name) {
                return Err(format!("programs[{i}]: '{name}' belongs to an earlier program"));
            }
        }
        if self.programs.is_empty() != self.program_root.is_none() {
            return Err("programs: they need `program_root`, and it needs them".into());
        }
        if !self.events.is_sorted_by_key(|e| e.at_ns) {
            return Err("events: not in order of time".into());
        }
        for (i, device) in self.devices.iter().enumerate() {
            needs(format!("devices[{i}]"), &device.namespace)?;
        }
        for (i, place) in self.headers.iter().enumerate() {
            needs(format!("headers[{i}]"), &place.namespace)?;
        }
        for (i, tap) in self.taps.iter().enumerate() {
            if tap.card.is_some() == tap.seen.is_some() {
                return Err(format!("taps[{i}]: needs a card or stages, and not both"));
            }
            let Some(stages) = &tap.seen else { continue };
            if stages.stages.len() < 2 {
                return Err(format!("taps[{i}]: needs at least two stages"));
            }
            for point in stages.stages.iter().flat_map(|s| &s.points) {
                needs(format!("taps[{i}]"), &point.namespace)?;
            }
            let flows = self.flows.len() as u32;
            if stages.only.iter().flatten().any(|&(flow, _)| flow >= flows) {
                return Err(format!("taps[{i}]: `only` names a flow that does not exist"));
            }
        }
        let mut ports = BTreeSet::new();
        for (i, flow) in self.flows.iter().enumerate() {
            needs(format!("flows[{i}].from"), &flow.from.namespace)?;
            needs(format!("flows[{i}].to"), &flow.to.namespace)?;
            flow.check().map_err(|e| format!("flows[{i}]: {e}"))?;
            if !ports.insert((flow.traffic.protocol(), flow.port)) {
                return Err(format!("flows[{i}]: port {} belongs to an earlier flow", flow.port));
            }
        }
        Ok(())
    }
}

impl Flow {
    /// Returns the bytes of the IP and UDP headers of its packets (ICMP's header has the same
    /// size).
    pub fn headers(&self) -> u32 {
        UDP_HEADERS[usize::from(self.to.address.is_ipv6())]
    }

    fn check(&self) -> Result<(), String> {
        if self.from.address.is_ipv4() != self.to.address.is_ipv4() {
            return Err("its ends have addresses of different families".into());
        }
        if self.port == 0 {
            return Err("port: 0 is not a valid port".into());
        }
        let is_tcp = self.traffic.protocol() == Protocol::Tcp;
        if self.ds & 3 != 0 && is_tcp {
            return Err(format!("ds: {} has ECN bits; for TCP the kernel sets them", self.ds));
        }
        if self.jitter_ns > 0 && is_tcp {
            return Err(
                "jitter_ns: the kernel sends TCP's packets; delay them with netem on the sender's device"
                    .into(),
            );
        }
        let least = self.headers() + DATAGRAM_BYTES;
        let size = |bytes: u32, least: u32| {
            if (least..=65_535).contains(&bytes) {
                Ok(())
            } else {
                Err(format!("packet_bytes: {bytes} is not between {least} and 65535"))
            }
        };
        match &self.traffic {
            Traffic::Udp { bps, packet_bytes, on_ns, off_ns, .. } => {
                size(*packet_bytes, least)?;
                if *bps == 0 {
                    return Err("bps: 0 never sends".into());
                }
                if on_ns.is_some() != off_ns.is_some() {
                    return Err("on_ns and off_ns must be given together".into());
                }
            }
            Traffic::Ping { interval_ns, packet_bytes } => {
                size(*packet_bytes, self.headers())?;
                if *interval_ns == 0 {
                    return Err("interval_ns: must be above 0".into());
                }
            }
            Traffic::Echo { interval_ns, packet_bytes } => {
                size(*packet_bytes, self.headers() + probe::echo::BYTES as u32)?;
                if *interval_ns == 0 {
                    return Err("interval_ns: must be above 0".into());
                }
            }
            Traffic::Video { payload_bytes, frames } => {
                size(payload_bytes.saturating_add(self.headers() + 12), least)?;
                if matches!(frames, Frames::Trace { frames, .. } if frames.is_empty()) {
                    return Err("frames: the list is empty".into());
                }
            }
            Traffic::Bulk { .. }
            | Traffic::Transfers { .. }
            | Traffic::Requests { .. }
            | Traffic::Program { .. } => {}
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::{Value, json};

    impl Tap {
        /// The tap of a card, for a link.
        pub(crate) fn of_link(link: u32) -> Tap {
            Tap { link, header_bytes: 0, out: false, rows: false, card: Some(1), seen: None }
        }
    }

    impl Plan {
        /// A valid plan, which tests modify.
        pub(crate) fn sample() -> Plan {
            Plan::parse(&plan().to_string()).unwrap()
        }
    }

    fn plan() -> Value {
        json!({
            "version": 2, "seed": 9, "duration_ns": 1000, "warmup_ns": 5, "settle_ns": 1, "linger_ns": 2, "deadline_ns": 3000,
            "modules": ["/m/a.ko"], "namespaces": ["a", "b"],
            "setup": [{"do": "run", "namespace": "a", "argv": ["ip", "-batch", "-"], "stdin": "link\n"},
                      {"do": "write", "namespace": null, "path": "/proc/x", "text": "1"}],
            "events": [{"at_ns": 5, "step": {"do": "write", "namespace": "b", "path": "/sys/y", "text": "2"}}],
            "devices": [{"link": 3, "namespace": "a", "name": "d", "gauges": ["g"]}],
            "taps": [{"link": 3, "header_bytes": 14, "out": false, "rows": true, "card": null, "seen": {
                "only": [[0, true]], "ring_bytes": 4096, "delay_ns": 7, "loses": false,
                "drops": {"in_order": true, "how": "head", "limit": 5}, "stages": [
                {"name": "before", "points": [{"namespace": "a", "device": "d", "direction": "in"}]},
                {"name": "after", "points": [{"namespace": "a", "device": "e", "direction": "out"}]}]}}],
            "flows": [{"name": "f", "from": {"namespace": "a", "address": "10.0.0.1"},
                "to": {"namespace": "b", "address": "10.0.0.2"}, "port": 5001, "start_ns": 7, "stop_ns": 8, "ds": 184,
                "traffic": {"kind": "udp", "bps": 1000, "packet_bytes": 100, "on_ns": {"law": "exponential", "mean": 5},
                            "off_ns": {"law": "uniform", "min": 1, "max": 2}}}],
            "sample": {"queue_ns": 10, "flow_ns": 20},
            "output": {"modules": [], "mount": {"kind": "hostfs", "source": "none", "target": "/h", "options": ""},
                       "path": "/h/results.tar"},
        })
    }

    #[test]
    fn every_field_of_a_plan_is_parsed() {
        let plan = Plan::parse(&plan().to_string()).unwrap();
        assert_eq!(
            (plan.seed, plan.duration_ns, plan.settle_ns, plan.linger_ns, plan.deadline_ns),
            (9, 1000, 1, 2, 3000)
        );
        assert_eq!(
            (plan.modules, plan.namespaces),
            (vec!["/m/a.ko".into()], vec!["a".to_string(), "b".into()])
        );
        let argv = vec!["ip".into(), "-batch".into(), "-".into()];
        assert_eq!(
            plan.setup[0],
            Step::Run { namespace: Some("a".into()), argv, stdin: Some("link\n".into()) }
        );
        let text = |path: &str, text: &str, namespace: Option<&str>| Step::Write {
            namespace: namespace.map(str::to_string),
            path: path.into(),
            text: text.into(),
        };
        assert_eq!(plan.setup[1], text("/proc/x", "1", None));
        assert_eq!(plan.events, [Event { at_ns: 5, step: text("/sys/y", "2", Some("b")) }]);
        assert_eq!((plan.devices[0].link, &plan.devices[0].gauges), (3, &vec!["g".to_string()]));
        let stages = plan.taps[0].seen.as_ref().unwrap();
        assert_eq!(stages.only, Some(vec![(0, true)]));
        assert_eq!(stages.stages[1].points[0].direction, Direction::Out);
        assert_eq!(stages.drops, Drops { in_order: true, how: How::Head, limit: Some(5) });
        let flow = &plan.flows[0];
        assert_eq!((flow.port, flow.start_ns, flow.stop_ns, flow.ds), (5001, 7, Some(8), 184));
        assert_eq!(
            flow.traffic,
            Traffic::Udp {
                bps: 1000,
                packet_bytes: 100,
                on_ns: Some(Draw::Exponential { mean: 5 }),
                off_ns: Some(Draw::Uniform { min: 1, max: 2 }),
            }
        );
        assert_eq!(plan.sample, Sample { queue_ns: 10, flow_ns: 20 });
        assert_eq!(plan.output.mount.unwrap().kind, "hostfs");
    }

    /// Returns the error for the plan after the value at `place` is replaced.
    fn refused(place: &str, value: Value) -> String {
        let mut changed = plan();
        match changed.pointer_mut(place) {
            Some(slot) => *slot = value,
            None => {
                let (parent, key) = place.rsplit_once('/').unwrap();
                changed.pointer_mut(parent).unwrap()[key] = value;
            }
        }
        Plan::parse(&changed.to_string()).unwrap_err()
    }

    #[test]
    fn unknown_fields_are_refused_wherever_they_are() {
        for place in [
            "",
            "/setup/0",
            "/events/0",
            "/devices/0",
            "/taps/0",
            "/taps/0/seen",
            "/taps/0/seen/drops",
            "/taps/0/seen/stages/0/points/0",
            "/flows/0",
            "/flows/0/from",
            "/flows/0/traffic",
            "/sample",
            "/output",
            "/output/mount",
        ] {
            let message = refused(&format!("{place}/bloat"), json!(1));
            assert!(message.contains("unknown field `bloat`"), "{place}: {message}");
        }
    }

    #[test]
    fn a_check_is_a_separate_plan_in_separate_namespaces() {
        let renamed =
            |text: String| text.replace(r#":"a""#, r#":"x""#).replace(r#":"b""#, r#":"y""#);
        let mut check: Value = serde_json::from_str(&renamed(plan().to_string())).unwrap();
        check["namespaces"] = json!(["x", "y"]);
        let mut with_check = plan();
        with_check["check"] = check.clone();
        let parsed = Plan::parse(&with_check.to_string()).unwrap();
        assert_eq!(parsed.check.unwrap().namespaces, ["x", "y"]);
        assert_eq!(refused("/check", plan()), "check: 'a' is a namespace of the run itself");
        check["namespaces"] = json!(["x"]);
        assert!(
            refused("/check", check).starts_with("check: events[0]: there is no namespace 'y'")
        );
    }

    #[test]
    fn impossible_settings_are_refused_with_their_place() {
        let cases = [
            ("/version", json!(1), "version: this program reads plans of version 2, not 1"),
            ("/namespaces/1", json!("a"), "a name occurs twice"),
            ("/namespaces/1", json!("../b"), "'../b' is not a valid namespace name"),
            ("/setup/0/namespace", json!("c"), "setup[0]: there is no namespace 'c'"),
            ("/setup/0/argv", json!([]), "setup[0]: argv is empty"),
            ("/taps/0/seen/stages", json!([]), "taps[0]: needs at least two stages"),
            (
                "/taps/0/seen/only",
                json!([[1, false]]),
                "taps[0]: `only` names a flow that does not exist",
            ),
            ("/taps/0/card", json!(5), "taps[0]: needs a card or stages, and not both"),
            (
                "/flows/0/to/address",
                json!("fd00::1"),
                "flows[0]: its ends have addresses of different families",
            ),
            (
                "/flows/0",
                json!({"name": "f", "from": {"namespace": "a", "address": "10.0.0.1"},
                    "to": {"namespace": "b", "address": "10.0.0.2"}, "port": 1, "start_ns": 0, "stop_ns": null, "ds": 3,
                    "jitter_ns": 0, "traffic": {"kind": "bulk", "bytes": null,
                        "tcp": {"congestion": null, "mss": null, "window_bytes": null}}}),
                "flows[0]: ds: 3 has ECN bits; for TCP the kernel sets them",
            ),
            (
                "/flows/0",
                json!({"name": "f", "from": {"namespace": "a", "address": "10.0.0.1"},
                    "to": {"namespace": "b", "address": "10.0.0.2"}, "port": 1, "start_ns": 0, "stop_ns": null, "ds": 0,
                    "jitter_ns": 5, "traffic": {"kind": "bulk", "bytes": null,
                        "tcp": {"congestion": null, "mss": null, "window_bytes": null}}}),
                "flows[0]: jitter_ns: the kernel sends TCP's packets",
            ),
            ("/flows/0/port", json!(0), "flows[0]: port: 0 is not a valid port"),
            (
                "/flows/0/traffic/packet_bytes",
                json!(31),
                "packet_bytes: 31 is not between 32 and 65535",
            ),
            ("/flows/0/traffic/bps", json!(0), "bps: 0 never sends"),
            ("/flows/0/traffic/off_ns", Value::Null, "on_ns and off_ns must be given together"),
        ];
        for (place, value, message) in cases {
            let error = refused(place, value);
            assert!(error.contains(message), "{place}: {error}");
        }
        let flow = plan()["flows"][0].clone();
        let error = refused("/flows", json!([flow, flow]));
        assert_eq!(error, "flows[1]: port 5001 belongs to an earlier flow");
    }

    #[test]
    fn programs_need_a_root_a_namespace_and_names_of_their_own() {
        let program = |name: &str, namespace: &str, argv: Value| json!({"name": name, "namespace": namespace, "argv": argv, "env": {}, "start_ns": 0});
        let root = json!({"sees": [["/see/0", "/usr"]], "links": [], "files": [], "folder": "/s"});
        let checked = |programs: Value, root: &Value| {
            let mut whole = plan();
            whole["programs"] = programs;
            whole["program_root"] = root.clone();
            Plan::parse(&whole.to_string()).map(|_| ())
        };
        let sound = program("p", "a", json!(["true"]));
        assert_eq!(checked(json!([sound]), &root), Ok(()));
        for (programs, root, message) in [
            (json!([sound]), &Value::Null, "they need `program_root`"),
            (json!([]), &root, "they need `program_root`, and it needs them"),
            (json!([program("p", "c", json!(["true"]))]), &root, "there is no namespace 'c'"),
            (json!([program("p", "a", json!([]))]), &root, "programs[0]: argv is empty"),
            (json!([program("../p", "a", json!(["x"]))]), &root, "'../p' is not a file's name"),
            (json!([sound, sound]), &root, "programs[1]: 'p' belongs to an earlier program"),
        ] {
            let error = checked(programs, root).unwrap_err();
            assert!(error.contains(message), "{message}: {error}");
        }
    }
}
