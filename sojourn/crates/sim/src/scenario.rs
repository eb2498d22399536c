//! A realised scenario: integers, every link and every flow written out, nothing left to choose.
//!
//! crates/scenario makes it of the text form with its units, defaults, sweeps and draws (start
//! times, RTTs). There a link's discipline and a flow's TCP endpoints are what a scenario may name,
//! `Q` and `T`: some of it Linux alone has. The simulator takes its own parameters of both.

use link::{RateStep, Schedule};
use qdisc::{CardQueues, DsField, Params};
use serde::{Deserialize, Serialize};
use tcp::TcpParams;
use traffic::{Draw, Frames, RTP_HEADERS, TrafficKind};
use units::Time;

/// One run: links, flows, what to record.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario<Q = Params, T = TcpParams> {
    /// Length of the run, ns.
    pub duration_ns: u64,
    /// Left out of totals and histograms, ns from the start.
    pub warmup_ns: u64,
    /// Seed of every random stream of the run.
    pub seed: u64,
    /// Every link, each one direction.
    pub links: Vec<LinkSpec<Q>>,
    /// Every flow, counts expanded.
    pub flows: Vec<FlowSpec<T>>,
    /// What to record.
    pub record: RecordSpec,
    /// Hosts hand down packets of up to 64 kB. The simulator's never do.
    #[serde(default, skip_serializing_if = "is_false")]
    pub offloads: bool,
}

fn is_false(truth: &bool) -> bool {
    !truth
}

impl<Q, T> Scenario<Q, T> {
    /// The same with other kinds of disciplines and TCP endpoints; `None` where one of its own has
    /// none such.
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
    /// Of each flow the round trip of a full packet through empty queues (one way where there are
    /// no replies), ns, each link at the fastest that it is during the run. `None`: a link on the
    /// way never sends the packet, or its reply.
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
    /// The node that it leaves. Nodes are what links meet in on a real kernel; the simulator goes
    /// by the flows' paths.
    #[serde(skip)]
    pub tail: String,
    /// The node that it leads to.
    #[serde(skip)]
    pub head: String,
    /// Steps of (from, rate): the first at 0. Empty: no rate limit, so never a queue without a
    /// shaper. A rate of 0 is an outage.
    pub rate: Vec<RateStep>,
    /// The steps start again after this many ns (a trace that is shorter than the run).
    pub rate_period_ns: Option<u64>,
    /// One-way propagation delay, ns.
    pub delay_ns: u64,
    /// The queue discipline.
    pub qdisc: Q,
    /// What the link layer adds to an IP packet.
    pub framing: link::Framing,
    /// What the wire loses.
    pub loss: link::Loss,
    /// What else it does to packets.
    #[serde(default, skip_serializing_if = "link::Impairments::is_none")]
    pub impairments: link::Impairments,
    /// The driver's ring below the discipline.
    pub ring: Option<link::RingParams>,
    /// The shaper between discipline and ring.
    pub shaper: Option<link::ShaperParams>,
    /// The policer before the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub police: Option<link::PolicerParams>,
    /// The window of the tunnels' ends behind it, packets; `None`: they take whatever comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay_window: Option<u32>,
    /// Its card's transmit queues, for a discipline that is for each of them; `None`: one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<CardQueues>,
    /// Whether it has rows in the `queue` table. A host's own access link, of which there may be
    /// thousands, has not.
    pub sampled: bool,
    /// A link that becomes free asks its discipline ahead of what else happens at that instant, as
    /// ns-2's do. It follows from the profiles of the flows' hosts.
    #[serde(skip)]
    pub asks_at_once: bool,
}

impl<Q> LinkSpec<Q> {
    /// The same with another kind of discipline; `None` where its own has none such.
    pub fn with<P>(&self, qdisc: &impl Fn(&Q) -> Option<P>) -> Option<LinkSpec<P>> {
        Some(LinkSpec {
            name: self.name.clone(),
            tail: self.tail.clone(),
            head: self.head.clone(),
            rate: self.rate.clone(),
            rate_period_ns: self.rate_period_ns,
            delay_ns: self.delay_ns,
            qdisc: qdisc(&self.qdisc)?,
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
    /// Index of the `[[flow]]` entry it came from: flows of one entry are drawn together.
    pub group: u32,
    /// Links its packets cross, by index, in order.
    pub path: Vec<u32>,
    /// Links its replies (ACKs, ping echoes) cross. Unused by one-way traffic.
    pub back: Vec<u32>,
    /// Propagation beyond the links, one way, ns: the rest of the flow's base RTT. Lies after the
    /// last link.
    pub path_extra_ns: u64,
    /// The same on the way back.
    pub back_extra_ns: u64,
    /// When it starts, ns.
    pub start_ns: u64,
    /// When it stops sending, ns; `None`: at the end, or when its transfer is complete.
    pub stop_ns: Option<u64>,
    /// Each packet, replies included, leaves its host up to this much later, uniformly drawn (order
    /// kept): breaks phase effects, ns.
    pub jitter_ns: u64,
    /// The DS field of its packets and of their replies. The ECN bits of TCP's, 0 here, are each
    /// packet's own.
    pub ds: DsField,
    /// The tunnel that its packets and their replies are in: all of them one connection to queues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<String>,
    /// The hosts at its source and its target, where the scenario names them.
    #[serde(default, skip_serializing_if = "unnamed")]
    pub hosts: [Option<String>; 2],
    /// What it sends.
    pub traffic: Traffic<T>,
}

fn unnamed(hosts: &[Option<String>; 2]) -> bool {
    hosts.iter().all(Option::is_none)
}

impl<T> FlowSpec<T> {
    /// The same with another kind of TCP endpoints; `None` where its own has none such.
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

/// A voice call: bit/s of IP, and bytes of a packet, 160 of speech with the headers of RTP, UDP and
/// IP.
pub const CALL: (u64, u32) = (80_000, 200);

/// Kinds of traffic.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Traffic<T = TcpParams> {
    /// One TCP connection: endless, or a transfer of `bytes`.
    Bulk {
        /// Application bytes to transfer; `None` never ends.
        bytes: Option<u64>,
        /// The endpoints.
        tcp: T,
    },
    /// Transfers one after another, each a new TCP connection, with a pause between: web-like load.
    Transfers {
        /// Application bytes of each.
        bytes: Draw,
        /// Pause between the end of one and the start of the next, ns.
        pause_ns: Draw,
        /// Of a web page, all flows of the group: how many of its objects come over this
        /// connection. Each is a transfer; the pause is from page to page. `None`: no page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        objects: Option<u32>,
        /// The endpoints.
        tcp: T,
    },
    /// Video that adapts to what the way carries: segments, each a new TCP connection, at a rate of
    /// the ladder.
    Stream {
        /// Rates of the payload, bit/s, rising.
        ladder_bps: Vec<u64>,
        /// What a segment plays, ns.
        segment_ns: u64,
        /// The most that is fetched ahead, ns of playing.
        ahead_ns: u64,
        /// The endpoints.
        tcp: T,
    },
    /// Constant-rate UDP, or on/off where `on_ns` and `off_ns` are given.
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
    /// One way of a voice call: G.711, a packet each 20 ms.
    Call,
    /// Echo request and reply.
    Ping {
        /// Time between requests, ns.
        interval_ns: u64,
        /// IP packet size both ways, bytes.
        packet_bytes: u32,
    },
    /// RTP video at a variable bit rate: one frame each 1/fps, cut into packets sent back to back.
    Video {
        /// Frame sizes.
        frames: Frames,
        /// Largest RTP payload of a packet, bytes; IP, UDP and RTP headers (40) come on top.
        payload_bytes: u32,
    },
    /// Datagrams at the times and of the sizes of recorded packets.
    Capture {
        /// Time from the start, IP bytes.
        packets: Vec<(u64, u32)>,
        /// They begin again after it, ns.
        period_ns: u64,
    },
}

impl<T: Clone> Traffic<T> {
    /// A call as the datagrams that it consists of, recorded packets as frames of one packet each; all
    /// else as it is. A frame has a byte at least.
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
            | Traffic::Stream { .. }
            | Traffic::Udp { .. }
            | Traffic::Ping { .. }
            | Traffic::Video { .. } => self.clone(),
        }
    }
}

impl<T> Traffic<T> {
    /// What tables and numbers call it.
    pub fn kind(&self) -> TrafficKind {
        match self {
            Traffic::Bulk { .. } => TrafficKind::Bulk,
            Traffic::Transfers { objects: Some(_), .. } => TrafficKind::Web,
            Traffic::Transfers { .. } => TrafficKind::Transfers,
            Traffic::Stream { .. } => TrafficKind::Stream,
            Traffic::Udp { .. } => TrafficKind::Udp,
            Traffic::Call => TrafficKind::Call,
            Traffic::Ping { .. } => TrafficKind::Ping,
            Traffic::Video { .. } => TrafficKind::Video,
            Traffic::Capture { .. } => TrafficKind::Capture,
        }
    }

    /// It transfers a size and completes.
    pub fn finite(&self) -> bool {
        match self {
            Traffic::Bulk { bytes, .. } => bytes.is_some(),
            Traffic::Transfers { .. } | Traffic::Stream { .. } => true,
            Traffic::Udp { .. }
            | Traffic::Call
            | Traffic::Ping { .. }
            | Traffic::Video { .. }
            | Traffic::Capture { .. } => false,
        }
    }

    /// Its endpoints, where it is TCP.
    pub fn tcp(&self) -> Option<&T> {
        match self {
            Traffic::Bulk { tcp, .. }
            | Traffic::Transfers { tcp, .. }
            | Traffic::Stream { tcp, .. } => Some(tcp),
            Traffic::Udp { .. }
            | Traffic::Call
            | Traffic::Ping { .. }
            | Traffic::Video { .. }
            | Traffic::Capture { .. } => None,
        }
    }

    /// The same, to be changed.
    pub fn tcp_mut(&mut self) -> Option<&mut T> {
        match self {
            Traffic::Bulk { tcp, .. }
            | Traffic::Transfers { tcp, .. }
            | Traffic::Stream { tcp, .. } => Some(tcp),
            Traffic::Udp { .. }
            | Traffic::Call
            | Traffic::Ping { .. }
            | Traffic::Video { .. }
            | Traffic::Capture { .. } => None,
        }
    }

    fn with<U>(&self, of: &impl Fn(&T) -> Option<U>) -> Option<Traffic<U>> {
        Some(match self {
            Traffic::Bulk { bytes, tcp } => Traffic::Bulk { bytes: *bytes, tcp: of(tcp)? },
            Traffic::Transfers { bytes, pause_ns, objects, tcp } => Traffic::Transfers {
                bytes: bytes.clone(),
                pause_ns: pause_ns.clone(),
                objects: *objects,
                tcp: of(tcp)?,
            },
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
        })
    }
}

impl<T: AsRef<TcpParams>> Traffic<T> {
    /// IP bytes of a full packet and of its reply; `None`: there are no replies.
    pub fn packet_bytes(&self) -> (u32, Option<u32>) {
        match self {
            Traffic::Bulk { tcp, .. }
            | Traffic::Transfers { tcp, .. }
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
        }
    }
}

/// What to record.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordSpec {
    /// Interval of the `queue` table, ns.
    pub queue_ns: u64,
    /// Interval of the `flow` table, ns.
    pub flow_ns: u64,
    /// Keep every packet's sojourn time, not only its histogram.
    pub packets: bool,
    /// Keep what every packet's headers say.
    pub headers: bool,
}
