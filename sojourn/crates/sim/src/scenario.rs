//! A realised scenario: integers, every link and every flow written out, nothing left to choose.
//!
//! The crate `scenario` makes it from the text with its units, defaults, sweeps and draws (start
//! times, RTTs). There the types `Q` of a link's discipline and `T` of a flow's TCP endpoints
//! include those that only Linux has. The simulator uses its own parameters for both.

use link::{QdiscStep, RateStep, Schedule};
use qdisc::{CardQueues, DsField, Params};
use serde::{Deserialize, Serialize};
use tcp::TcpParams;
use traffic::{Draw, Frames, Pace, RTP_HEADERS, TrafficKind};
use units::Time;

/// One run: links, flows, and recorded tables.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario<Q = Params, T = TcpParams> {
    /// Length of the run, ns.
    pub duration_ns: u64,
    /// Length of the warm-up, ns from the start: totals and histograms exclude it.
    pub warmup_ns: u64,
    /// Seed of every random stream of the run.
    pub seed: u64,
    /// Every link, each one direction.
    pub links: Vec<LinkSpec<Q>>,
    /// Every flow, counts expanded.
    pub flows: Vec<FlowSpec<T>>,
    /// What to record.
    pub record: RecordSpec,
    /// Hosts send packets of up to 64 kB to their links. The simulator's hosts never do.
    #[serde(default, skip_serializing_if = "is_false")]
    pub offloads: bool,
}

fn is_false(truth: &bool) -> bool {
    !truth
}

impl<Q, T> Scenario<Q, T> {
    /// The same scenario with other types of disciplines and TCP endpoints; `None` if one of them
    /// can't be converted.
    pub fn with<P, U>(
        &self,
        qdisc: impl Fn(&Q) -> Option<P>,
        tcp: impl Fn(&T) -> Option<U>,
    ) -> Option<Scenario<P, U>> {
        Some(Scenario {
            duration_ns: self.duration_ns,
            warmup_ns: self.warmup_ns,
            seed: self.seed,
            links: self.links.iter().map(|link| link.with(&qdisc)).collect::<Option<_>>()?,
            flows: self.flows.iter().map(|flow| flow.with(&tcp)).collect::<Option<_>>()?,
            record: self.record.clone(),
            offloads: self.offloads,
        })
    }
}

impl<Q, T: AsRef<TcpParams>> Scenario<Q, T> {
    /// For each flow the round trip of a full packet through empty queues (one way without
    /// replies), ns, with each link at its fastest rate during the run. `None`: a link on the path
    /// never sends the packet, or its reply.
    pub fn base_rtts(&self) -> Vec<Option<u64>> {
        let idle = |(link, schedule): (&LinkSpec<Q>, &Schedule), bytes| {
            let wire = link.framing.wire_bytes(bytes);
            Some(schedule.least_time(wire, Time(self.duration_ns))?.0 + link.delay_ns)
        };
        let schedules: Vec<Schedule> = self
            .links
            .iter()
            .map(|link| Schedule::new(link.rate.clone(), link.rate_period_ns))
            .collect();
        let one_way = |path: &[u32], extra: u64, bytes: u32| {
            let mut links =
                path.iter().map(|&at| (&self.links[at as usize], &schedules[at as usize]));
            links.try_fold(extra, |sum, link| Some(sum + idle(link, bytes)?))
        };
        let round = |flow: &FlowSpec<T>| {
            let (packet, reply) = flow.traffic.packet_bytes();
            let back =
                reply.map_or(Some(0), |bytes| one_way(&flow.back, flow.back_extra_ns, bytes));
            Some(one_way(&flow.path, flow.path_extra_ns, packet)? + back?)
        };
        self.flows.iter().map(round).collect()
    }
}

/// One direction of a link: a queue, a transmitter, a wire.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec<Q = Params> {
    /// Its name in every table.
    pub name: String,
    /// The node where it starts. Nodes matter on a real kernel; the simulator uses the flows'
    /// paths.
    #[serde(skip)]
    pub tail: String,
    /// The node where it ends.
    #[serde(skip)]
    pub head: String,
    /// Steps of (from, rate): the first at 0. Empty: no rate limit, so no queue without a shaper. A
    /// rate of 0 is an outage.
    pub rate: Vec<RateStep>,
    /// The steps repeat after this many ns (a trace that is shorter than the run).
    pub rate_period_ns: Option<u64>,
    /// One-way propagation delay, ns.
    pub delay_ns: u64,
    /// The queue discipline.
    pub qdisc: Q,
    /// Steps of its parameters, in order of time, after 0.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub qdisc_steps: Vec<QdiscStep<Q>>,
    /// The bytes that the link layer adds to an IP packet.
    pub framing: link::Framing,
    /// The losses of the wire.
    pub loss: link::Loss,
    /// The other impairments of the wire.
    #[serde(default, skip_serializing_if = "link::Impairments::is_none")]
    pub impairments: link::Impairments,
    /// The driver's ring below the discipline.
    pub ring: Option<link::RingParams>,
    /// The shaper between discipline and ring.
    pub shaper: Option<link::ShaperParams>,
    /// The policer before the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub police: Option<link::PolicerParams>,
    /// The replay window of the tunnels' ends behind it, packets; `None`: they drop nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_window: Option<u32>,
    /// Its card's transmit queues, for a discipline with an instance for each queue; `None`: one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<CardQueues>,
    /// Whether it has rows in the table `queue`. A host's own access link has none, since there may
    /// be thousands.
    pub sampled: bool,
    /// Whether the link, when it becomes free, dequeues before all other events of that instant, as
    /// in ns-2. The profiles of the flows' hosts decide this.
    #[serde(skip)]
    pub asks_at_once: bool,
}

impl<Q> LinkSpec<Q> {
    /// The same link with another type of discipline; `None` if its own can't be converted.
    pub fn with<P>(&self, qdisc: &impl Fn(&Q) -> Option<P>) -> Option<LinkSpec<P>> {
        Some(LinkSpec {
            name: self.name.clone(),
            tail: self.tail.clone(),
            head: self.head.clone(),
            rate: self.rate.clone(),
            rate_period_ns: self.rate_period_ns,
            delay_ns: self.delay_ns,
            qdisc: qdisc(&self.qdisc)?,
            qdisc_steps: self
                .qdisc_steps
                .iter()
                .map(|step| Some(QdiscStep { at_ns: step.at_ns, qdisc: qdisc(&step.qdisc)? }))
                .collect::<Option<_>>()?,
            framing: self.framing,
            loss: self.loss.clone(),
            impairments: self.impairments.clone(),
            ring: self.ring,
            shaper: self.shaper,
            police: self.police,
            replay_window: self.replay_window,
            queues: self.queues.clone(),
            sampled: self.sampled,
            asks_at_once: self.asks_at_once,
        })
    }
}

/// One flow or probe.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec<T = TcpParams> {
    /// Its name in every table, unique.
    pub name: String,
    /// Index of its `[[flow]]` entry: flows of one entry are drawn together.
    pub group: u32,
    /// Links its packets cross, by index, in order.
    pub path: Vec<u32>,
    /// Links its replies (ACKs, ping echoes) cross. Unused by one-way traffic.
    pub back: Vec<u32>,
    /// Propagation beyond the links, one way, ns: the rest of the flow's base RTT, after the last
    /// link.
    pub path_extra_ns: u64,
    /// The same in the reverse direction.
    pub back_extra_ns: u64,
    /// Its start, ns.
    pub start_ns: u64,
    /// The time at which it stops sending, ns; `None`: the end, or when its transfer is complete.
    pub stop_ns: Option<u64>,
    /// Each packet, replies included, leaves its host up to this much later, drawn uniformly (order
    /// kept), ns. This breaks phase effects.
    pub jitter_ns: u64,
    /// The DS field of its packets and of their replies. TCP's ECN bits are 0 here, since each
    /// packet has its own.
    pub ds: DsField,
    /// The tunnel of its packets and their replies: to queues all of them are one connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<String>,
    /// The hosts at its source and its target, if the scenario names them.
    #[serde(default, skip_serializing_if = "unnamed")]
    pub hosts: [Option<String>; 2],
    /// Its traffic.
    pub traffic: Traffic<T>,
}

fn unnamed(hosts: &[Option<String>; 2]) -> bool {
    hosts.iter().all(Option::is_none)
}

impl<T> FlowSpec<T> {
    /// The same flow with another type of TCP endpoints; `None` if its own can't be converted.
    pub fn with<U>(&self, tcp: &impl Fn(&T) -> Option<U>) -> Option<FlowSpec<U>> {
        Some(FlowSpec {
            name: self.name.clone(),
            group: self.group,
            path: self.path.clone(),
            back: self.back.clone(),
            path_extra_ns: self.path_extra_ns,
            back_extra_ns: self.back_extra_ns,
            start_ns: self.start_ns,
            stop_ns: self.stop_ns,
            jitter_ns: self.jitter_ns,
            ds: self.ds,
            tunnel: self.tunnel.clone(),
            hosts: self.hosts.clone(),
            traffic: self.traffic.with(tcp)?,
        })
    }
}

/// A voice call: bit/s of IP, and bytes of a packet: 160 of speech plus the headers of RTP, UDP and
/// IP.
pub const CALL: (u64, u32) = (80_000, 200);

/// IP bytes of an acknowledgement of Linux's TCP with timestamps.
const PROGRAM_ACK_BYTES: u32 = 52;

/// Kinds of traffic.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Traffic<T = TcpParams> {
    /// One TCP connection: endless, or a transfer of `bytes`.
    Bulk {
        /// Application bytes to transfer; `None` never ends.
        bytes: Option<u64>,
        /// The application's pace; `None`: it always has more to write.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pace: Option<Pace>,
        /// The endpoints.
        tcp: T,
    },
    /// Transfers one after another, each a new TCP connection, with a pause between: web-like load.
    Transfers {
        /// Application bytes of each.
        bytes: Draw,
        /// Pause between the end of one and the start of the next, ns.
        pause_ns: Draw,
        /// For a web page, which all flows of the group fetch: the number of its objects over this
        /// connection. Each is a transfer; the pause is from page to page. `None`: no page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        objects: Option<u32>,
        /// The endpoints.
        tcp: T,
    },
    /// Requests over one kept TCP connection: the far end asks, the source answers, and after a
    /// pause the far end asks again.
    Requests {
        /// Application bytes of each request.
        request_bytes: Draw,
        /// Application bytes of each answer.
        bytes: Draw,
        /// Pause from the end of an answer to the next request, ns.
        pause_ns: Draw,
        /// Each end writes whole multiples of this many bytes, except at the end of a message.
        write_bytes: u64,
        /// The endpoints.
        tcp: T,
    },
    /// Video that adapts to the throughput: segments, each a new TCP connection, at a rate of the
    /// ladder.
    Stream {
        /// Rates of the payload, bit/s, rising.
        ladder_bps: Vec<u64>,
        /// The playing time of a segment, ns.
        segment_ns: u64,
        /// The longest playing time that is fetched ahead, ns.
        ahead_ns: u64,
        /// The endpoints.
        tcp: T,
    },
    /// Constant-rate UDP, or on/off if `on_ns` and `off_ns` are given.
    Udp {
        /// Rate of IP bytes while on, bit/s.
        bps: u64,
        /// IP packet size, bytes.
        packet_bytes: u32,
        /// Length of the on periods, ns; `None` is always on.
        on_ns: Option<Draw>,
        /// Length of the off periods, ns.
        off_ns: Option<Draw>,
    },
    /// One direction of a voice call: G.711, a packet each 20 ms.
    Call,
    /// Echo request and reply.
    Ping {
        /// Time between requests, ns.
        interval_ns: u64,
        /// IP packet size both ways, bytes.
        packet_bytes: u32,
    },
    /// RTP video at a variable bit rate: one frame each 1/fps, split into packets sent back to
    /// back.
    Video {
        /// Frame sizes.
        frames: Frames,
        /// Largest RTP payload of a packet, bytes; IP, UDP and RTP headers add 40.
        payload_bytes: u32,
    },
    /// Datagrams with the times and sizes of recorded packets.
    Capture {
        /// Times from the start, and IP bytes.
        packets: Vec<(u64, u32)>,
        /// The packets repeat after this time, ns.
        period_ns: u64,
    },
    /// Two programs of the host, which only Linux runs.
    Program,
}

impl<T: Clone> Traffic<T> {
    /// The traffic as it is sent: a call as datagrams, recorded packets as frames of one packet
    /// each; other traffic unchanged. A frame has at least a byte.
    pub fn sent(&self) -> Traffic<T> {
        match self {
            Traffic::Call => {
                let (bps, packet_bytes) = CALL;
                Traffic::Udp { bps, packet_bytes, on_ns: None, off_ns: None }
            }
            Traffic::Capture { packets, period_ns } => {
                let frame =
                    |&(at, size): &(u64, u32)| (at, size.saturating_sub(RTP_HEADERS).max(1));
                let frames = packets.iter().map(frame).collect();
                Traffic::Video {
                    frames: Frames::Trace { frames, period_ns: *period_ns },
                    payload_bytes: tcp::params::MTU - RTP_HEADERS,
                }
            }
            Traffic::Bulk { .. }
            | Traffic::Transfers { .. }
            | Traffic::Requests { .. }
            | Traffic::Stream { .. }
            | Traffic::Udp { .. }
            | Traffic::Ping { .. }
            | Traffic::Video { .. }
            | Traffic::Program => self.clone(),
        }
    }
}

impl<T> Traffic<T> {
    /// Its kind in tables and numbers.
    pub fn kind(&self) -> TrafficKind {
        match self {
            Traffic::Bulk { .. } => TrafficKind::Bulk,
            Traffic::Transfers { objects: Some(_), .. } => TrafficKind::Web,
            Traffic::Transfers { .. } => TrafficKind::Transfers,
            Traffic::Requests { .. } => TrafficKind::Requests,
            Traffic::Stream { .. } => TrafficKind::Stream,
            Traffic::Udp { .. } => TrafficKind::Udp,
            Traffic::Call => TrafficKind::Call,
            Traffic::Ping { .. } => TrafficKind::Ping,
            Traffic::Video { .. } => TrafficKind::Video,
            Traffic::Capture { .. } => TrafficKind::Capture,
            Traffic::Program => TrafficKind::Program,
        }
    }

    /// Whether it transfers a size and completes.
    pub fn finite(&self) -> bool {
        match self {
            Traffic::Bulk { bytes, .. } => bytes.is_some(),
            Traffic::Transfers { .. } | Traffic::Requests { .. } | Traffic::Stream { .. } => true,
            Traffic::Udp { .. }
            | Traffic::Call
            | Traffic::Ping { .. }
            | Traffic::Video { .. }
            | Traffic::Capture { .. }
            | Traffic::Program => false,
        }
    }

    /// Its endpoints, if it is TCP.
    pub fn tcp(&self) -> Option<&T> {
        match self {
            Traffic::Bulk { tcp, .. }
            | Traffic::Transfers { tcp, .. }
            | Traffic::Requests { tcp, .. }
            | Traffic::Stream { tcp, .. } => Some(tcp),
            Traffic::Udp { .. }
            | Traffic::Call
            | Traffic::Ping { .. }
            | Traffic::Video { .. }
            | Traffic::Capture { .. }
            | Traffic::Program => None,
        }
    }

    /// Its endpoints, mutable, if it is TCP.
    pub fn tcp_mut(&mut self) -> Option<&mut T> {
        match self {
            Traffic::Bulk { tcp, .. }
            | Traffic::Transfers { tcp, .. }
            | Traffic::Requests { tcp, .. }
            | Traffic::Stream { tcp, .. } => Some(tcp),
            Traffic::Udp { .. }
            | Traffic::Call
            | Traffic::Ping { .. }
            | Traffic::Video { .. }
            | Traffic::Capture { .. }
            | Traffic::Program => None,
        }
    }

    fn with<U>(&self, of: &impl Fn(&T) -> Option<U>) -> Option<Traffic<U>> {
        Some(match self {
            Traffic::Bulk { bytes, pace, tcp } => {
                Traffic::Bulk { bytes: *bytes, pace: pace.clone(), tcp: of(tcp)? }
            }
            Traffic::Transfers { bytes, pause_ns, objects, tcp } => Traffic::Transfers {
                bytes: bytes.clone(),
                pause_ns: pause_ns.clone(),
                objects: *objects,
                tcp: of(tcp)?,
            },
            Traffic::Requests { request_bytes, bytes, pause_ns, write_bytes, tcp } => {
                Traffic::Requests {
                    request_bytes: request_bytes.clone(),
                    bytes: bytes.clone(),
                    pause_ns: pause_ns.clone(),
                    write_bytes: *write_bytes,
                    tcp: of(tcp)?,
                }
            }
            Traffic::Stream { ladder_bps, segment_ns, ahead_ns, tcp } => Traffic::Stream {
                ladder_bps: ladder_bps.clone(),
                segment_ns: *segment_ns,
                ahead_ns: *ahead_ns,
                tcp: of(tcp)?,
            },
            Traffic::Udp { bps, packet_bytes, on_ns, off_ns } => Traffic::Udp {
                bps: *bps,
                packet_bytes: *packet_bytes,
                on_ns: on_ns.clone(),
                off_ns: off_ns.clone(),
            },
            Traffic::Call => Traffic::Call,
            Traffic::Ping { interval_ns, packet_bytes } => {
                Traffic::Ping { interval_ns: *interval_ns, packet_bytes: *packet_bytes }
            }
            Traffic::Video { frames, payload_bytes } => {
                Traffic::Video { frames: frames.clone(), payload_bytes: *payload_bytes }
            }
            Traffic::Capture { packets, period_ns } => {
                Traffic::Capture { packets: packets.clone(), period_ns: *period_ns }
            }
            Traffic::Program => Traffic::Program,
        })
    }
}

impl<T: AsRef<TcpParams>> Traffic<T> {
    /// IP bytes of a full packet and of its reply; `None`: there are no replies.
    pub fn packet_bytes(&self) -> (u32, Option<u32>) {
        match self {
            Traffic::Bulk { tcp, .. }
            | Traffic::Transfers { tcp, .. }
            | Traffic::Requests { tcp, .. }
            | Traffic::Stream { tcp, .. } => {
                let tcp = tcp.as_ref();
                (tcp.mss + tcp.header_bytes, Some(tcp.ack_bytes))
            }
            Traffic::Udp { packet_bytes, .. } => (*packet_bytes, None),
            Traffic::Call => (CALL.1, None),
            Traffic::Ping { packet_bytes, .. } => (*packet_bytes, Some(*packet_bytes)),
            Traffic::Video { payload_bytes, .. } => (payload_bytes + RTP_HEADERS, None),
            Traffic::Capture { packets, .. } => {
                (packets.iter().map(|(_, size)| *size).max().unwrap_or(RTP_HEADERS + 1), None)
            }
            // Counted as TCP with timestamps: the tables have the RTT samples of the programs' TCP.
            Traffic::Program => (tcp::params::MTU, Some(PROGRAM_ACK_BYTES)),
        }
    }
}

/// The recorded tables.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordSpec {
    /// Interval of the `queue` table, ns.
    pub queue_ns: u64,
    /// Interval of the `flow` table, ns.
    pub flow_ns: u64,
    /// Records every packet's sojourn time, besides its histogram.
    pub packets: bool,
    /// Records every packet's headers.
    pub headers: bool,
}
