//! What the engine is given: a scenario made of integers, every flow written out, nothing left to
//! choose.
//!
//! The text form, its units, defaults, sweeps and draws (start times, RTTs) belong to
//! crates/scenario; this is the shape it hands over as JSON, under the same names.

use link::RateStep;
use qdisc::{DsField, Params};
use serde::Deserialize;
use tcp::TcpParams;

/// One run: links, flows, what to record.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Length of the run, ns.
    pub duration_ns: u64,
    /// Left out of totals and histograms, ns from the start.
    pub warmup_ns: u64,
    /// Seed of every random stream of the run.
    pub seed: u64,
    /// Every link, each one direction.
    pub links: Vec<LinkSpec>,
    /// Every flow, counts expanded.
    pub flows: Vec<FlowSpec>,
    /// What to record.
    pub record: RecordSpec,
}

/// One direction of a link: a queue, a transmitter, a wire.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Its name in every table.
    pub name: String,
    /// Steps of (from, rate): the first at 0. Empty: no rate limit, so never a queue without a
    /// shaper. A rate of 0 is an outage.
    pub rate: Vec<RateStep>,
    /// The steps start again after this many ns (a trace that is shorter than the run).
    pub rate_period_ns: Option<u64>,
    /// One-way propagation delay, ns.
    pub delay_ns: u64,
    /// The queue discipline.
    pub qdisc: Params,
    /// What the link layer adds to an IP packet.
    pub framing: link::Framing,
    /// What the wire loses.
    pub loss: link::Loss,
    /// The driver's ring below the discipline.
    pub ring: Option<link::RingParams>,
    /// The shaper between discipline and ring.
    pub shaper: Option<link::ShaperParams>,
    /// Whether it has rows in the `queue` table. A host's own access link, of which there may be
    /// thousands, has not.
    pub sampled: bool,
}

/// One flow or probe.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
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
    /// The DS field of its packets and of their replies; its ECN bits, 0 here, are each packet's
    /// own.
    pub ds: DsField,
    /// What it sends.
    pub traffic: Traffic,
}

/// Kinds of traffic.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Traffic {
    /// One TCP connection: endless, or a transfer of `bytes`.
    Bulk {
        /// Application bytes to transfer; `None` never ends.
        bytes: Option<u64>,
        /// The endpoints.
        tcp: TcpParams,
    },
    /// Transfers one after another, each a new TCP connection, with a pause between: web-like load.
    Transfers {
        /// Application bytes of each.
        bytes: Draw,
        /// Pause between the end of one and the start of the next, ns.
        pause_ns: Draw,
        /// The endpoints.
        tcp: TcpParams,
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
        /// ECN-capable.
        ecn: bool,
    },
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
}

/// A number drawn anew each time it is needed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "law", rename_all = "snake_case", deny_unknown_fields)]
pub enum Draw {
    /// Always the same.
    Constant {
        /// The value.
        value: u64,
    },
    /// Uniform between the two, both included.
    Uniform {
        /// Least.
        min: u64,
        /// Greatest.
        max: u64,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        mean: u64,
    },
    /// Pareto: heavy-tailed.
    Pareto {
        /// Mean.
        mean: u64,
        /// Tail exponent, above 1.
        shape: f64,
    },
}

/// Where video frame sizes come from.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "source", rename_all = "snake_case", deny_unknown_fields)]
pub enum Frames {
    /// Groups of pictures: one I frame `i_ratio` times the mean P frame's size, then P frames;
    /// sizes log-normal.
    Model {
        /// Mean rate of the video's payload, bit/s.
        bps: u64,
        /// Frames a second.
        fps: f64,
        /// Frames in a group, the I frame included.
        gop: u32,
        /// Mean I size over mean P size.
        i_ratio: f64,
        /// Coefficient of variation of the frame sizes of one kind.
        cv: f64,
    },
    /// Recorded frames: (time from the start, bytes), repeated from the beginning when they run
    /// out.
    Trace {
        /// The frames.
        frames: Vec<(u64, u32)>,
        /// Length of one pass, ns.
        period_ns: u64,
    },
}

/// What to record.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordSpec {
    /// Interval of the `queue` table, ns.
    pub queue_ns: u64,
    /// Interval of the `flow` table, ns.
    pub flow_ns: u64,
    /// Keep every packet's sojourn time, not only its histogram.
    pub packets: bool,
}
