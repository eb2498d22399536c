//! A scenario and a seed become what an engine takes: plain integers, every link and every flow
//! written out.
//!
//! What is drawn (RTTs, start times) comes from a random stream named after the flow, so that
//! adding a flow does not change another's luck. A flow's base RTT is what its links take and the
//! rest split in two halves behind the last link of each way.

use crate::check::base_names;
use crate::laws::{self, Spread};
use crate::links::{Line, Link as Shared, Routes, Way, links_of, way_of};
use crate::model::{Flow as Entry, Kind, Scenario, Udp};
use crate::tcp::{Endpoints, endpoints};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use tc::{Discipline, Value};
use units::Luck;

const MS: u64 = 1_000_000;

/// One run: links, flows, what to record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// Length of the run, ns.
    pub duration_ns: u64,
    /// Left out of totals and histograms, ns from the start.
    pub warmup_ns: u64,
    /// Seed of every random stream of the run.
    pub seed: u64,
    /// Every link, each one direction.
    pub links: Vec<Link>,
    /// Every flow, counts expanded.
    pub flows: Vec<Flow>,
    /// What to record.
    pub record: Record,
    /// Hosts hand down packets of up to 64 kB. The simulator has none: it is not told of them.
    #[serde(skip_serializing_if = "is_false")]
    pub offloads: bool,
}

fn is_false(truth: &bool) -> bool {
    !truth
}

/// From `at_ns` on the link runs at `bps` bit/s; 0 is an outage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Time of the step, ns.
    pub at_ns: u64,
    /// Rate from then on, bit/s.
    pub bps: u64,
}

/// One direction of a link: a queue, a transmitter, a wire.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Link {
    /// Its name in every table.
    pub name: String,
    /// The node it leaves.
    #[serde(skip)]
    pub tail: String,
    /// The node it leads to.
    #[serde(skip)]
    pub head: String,
    /// Steps of (from, rate): the first at 0. Empty: no rate limit.
    pub rate: Vec<Step>,
    /// The steps start again after this many ns.
    pub rate_period_ns: Option<u64>,
    /// One-way propagation delay, ns.
    pub delay_ns: u64,
    /// The queue discipline.
    #[serde(serialize_with = "params_of")]
    pub qdisc: Discipline,
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

/// A discipline's parameters, `kind` among them; what nobody said is null.
fn params_of<S: Serializer>(qdisc: &Discipline, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("kind", qdisc.kind())?;
    for (name, value) in qdisc.fields().iter() {
        match value {
            Value::Unsaid => map.serialize_entry(name, &())?,
            Value::Flag(on) => map.serialize_entry(name, on)?,
            Value::Count(count) => map.serialize_entry(name, count)?,
            Value::Real(real) => map.serialize_entry(name, real)?,
            Value::Text(text) => map.serialize_entry(name, text)?,
        }
    }
    map.end()
}

/// One flow or probe.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flow {
    /// Its name in every table, unique.
    pub name: String,
    /// Index of the `[[flow]]` entry it came from.
    pub group: usize,
    /// Links its packets cross, by index, in order.
    pub path: Vec<usize>,
    /// Links its replies (ACKs, ping echoes) cross.
    pub back: Vec<usize>,
    /// Propagation beyond the links, one way, ns: the rest of the flow's base RTT. Lies after the
    /// last link.
    pub path_extra_ns: u64,
    /// The same on the way back.
    pub back_extra_ns: u64,
    /// When it starts, ns.
    pub start_ns: u64,
    /// When it stops sending, ns.
    pub stop_ns: Option<u64>,
    /// Each packet, replies included, leaves its host up to this much later, ns.
    pub jitter_ns: u64,
    /// The byte of the IP header, of which the DSCP is the upper six bits.
    pub ds: u8,
    /// What it sends.
    pub traffic: Traffic,
}

/// Kinds of traffic.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Traffic {
    /// One TCP connection: endless, or a transfer of `bytes`.
    Bulk {
        /// Application bytes to transfer; `None` never ends.
        bytes: Option<u64>,
        /// The endpoints.
        tcp: Endpoints,
    },
    /// Transfers one after another, each a new TCP connection, with a pause between.
    Transfers {
        /// Application bytes of each.
        bytes: Draw,
        /// Pause between the end of one and the start of the next, ns.
        pause_ns: Draw,
        /// The endpoints.
        tcp: Endpoints,
    },
    /// Constant-rate UDP, or on/off where `on_ns` and `off_ns` are given.
    Udp {
        /// Rate of IP bytes while on, bit/s.
        bps: u64,
        /// IP packet size, bytes.
        packet_bytes: u64,
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
        packet_bytes: u64,
    },
    /// RTP video at a variable bit rate.
    Video {
        /// Frame sizes.
        frames: Frames,
        /// Largest RTP payload of a packet, bytes.
        payload_bytes: u64,
    },
}

/// A number drawn anew each time it is needed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "law", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Draw {
    Constant { value: u64 },
    Uniform { min: u64, max: u64 },
    Exponential { mean: u64 },
    Pareto { mean: u64, shape: f64 },
}

impl From<&laws::Draw> for Draw {
    fn from(draw: &laws::Draw) -> Draw {
        match *draw {
            laws::Draw::Constant(value) => Draw::Constant { value },
            laws::Draw::Uniform(min, max) => Draw::Uniform { min, max },
            laws::Draw::Exponential(mean) => Draw::Exponential { mean },
            laws::Draw::Pareto(mean, shape) => Draw::Pareto { mean, shape },
        }
    }
}

/// Where video frame sizes come from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum Frames {
    /// Groups of pictures.
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
    /// Recorded frames: (time from the start, bytes).
    Trace {
        /// The frames.
        frames: Vec<(u64, u64)>,
        /// Length of one pass, ns.
        period_ns: Option<u64>,
    },
}

/// What to record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Record {
    /// Interval of the `queue` table, ns.
    pub queue_ns: u64,
    /// Interval of the `flow` table, ns.
    pub flow_ns: u64,
    /// Keep every packet's sojourn time, not only its histogram.
    pub packets: bool,
}

impl Scenario {
    /// The run of this scenario with this seed. A sweep has none: each of its variants does.
    pub fn realise(&self, seed: u64) -> Result<Run, &'static str> {
        if !self.sweep.is_empty() {
            return Err("this scenario is a sweep: realise each of its variants()");
        }
        let shared = links_of(self);
        let mut routes = Routes::new(&shared);
        let mut links: Vec<Link> = shared.iter().map(shared_link).collect();
        let mut flows = Vec::new();
        for (group, (entry, base)) in self.flows.iter().zip(base_names(&self.flows)).enumerate() {
            let way = way_of(&entry.entry, &mut routes, self.dumbbell(), entry.probe())
                .map_err(|_| "a scenario that was checked has a way for each flow")?;
            let takes = way.delay(&shared);
            let traffic = traffic(entry);
            for index in 0..entry.entry.count {
                let name = if entry.entry.count == 1 {
                    base.clone()
                } else {
                    format!("{base}.{}", index + 1)
                };
                let own = way_with_access(entry, &name, &way, &mut links);
                flows.push(flow(entry, name, group, index, own, takes, seed, traffic.clone()));
            }
        }
        let record = Record {
            queue_ns: self
                .record
                .queue
                .unwrap_or_else(|| queue_interval(self.duration, shared.len())),
            flow_ns: self.record.flow.unwrap_or_else(|| flow_interval(self.duration, flows.len())),
            packets: self.record.packets,
        };
        Ok(Run {
            duration_ns: self.duration,
            warmup_ns: self.warmup,
            seed,
            links,
            flows,
            record,
            offloads: self.offloads,
        })
    }
}

fn shared_link(shared: &Shared) -> Link {
    let line: &Line = &shared.line;
    Link {
        name: shared.name.clone(),
        tail: shared.tail.clone(),
        head: shared.head.clone(),
        rate: line.steps.iter().map(|&(at_ns, bps)| Step { at_ns, bps }).collect(),
        rate_period_ns: line.period,
        delay_ns: line.delay,
        qdisc: line.qdisc.clone(),
        framing: line.framing,
        loss: line.loss.params(),
        ring: line.ring.map(|descriptors| link::RingParams {
            descriptors,
            bql: line.bql,
            coalesce_ns: line.coalesce,
        }),
        shaper: line.shaper.map(|shaper| shaper.0),
        sampled: true,
    }
}

/// The flow's way; with `access`, from the sender's own link to the network and back over it.
fn way_with_access(entry: &Entry, name: &str, way: &Way, links: &mut Vec<Link>) -> Way {
    let Some(bps) = entry.entry.access else { return way.clone() };
    let first = links.len();
    let (enters, leaves) =
        (links[way.path[0]].tail.clone(), links[way.back[way.back.len() - 1]].head.clone());
    let host = format!("{name}/host");
    // A queue that never drops.
    let pfifo =
        Discipline::parse(&format!("pfifo limit {}", u32::MAX)).expect("these are tc's words");
    for (end, tail, head) in [("access", host.clone(), enters), ("access-back", leaves, host)] {
        links.push(Link {
            name: format!("{name}/{end}"),
            tail,
            head,
            rate: vec![Step { at_ns: 0, bps }],
            rate_period_ns: None,
            delay_ns: 0,
            qdisc: pfifo.clone(),
            framing: link::Framing::NONE,
            loss: link::Loss::None,
            ring: None,
            shaper: None,
            sampled: false,
        });
    }
    let path = std::iter::once(first).chain(way.path.iter().copied()).collect();
    let back = way.back.iter().copied().chain([first + 1]).collect();
    Way { path, back }
}

#[allow(clippy::too_many_arguments)]
fn flow(
    entry: &Entry,
    name: String,
    group: usize,
    index: u32,
    way: Way,
    takes: u64,
    seed: u64,
    traffic: Traffic,
) -> Flow {
    let common = &entry.entry;
    let of = |spread: &Spread, what: &str| {
        // The first number of the stream called so, drawn if it is asked for.
        spread.of(index, common.count, || Luck::new(seed, &format!("{name}/{what}")).next_u64())
    };
    let rest = common.rtt.as_ref().map_or(takes, |rtt| of(rtt, "rtt")) - takes;
    Flow {
        group,
        path: way.path,
        back: way.back,
        path_extra_ns: rest - rest / 2,
        back_extra_ns: rest / 2,
        start_ns: of(&common.start, "start"),
        stop_ns: common.stop.as_ref().map(|stop| of(stop, "stop")),
        jitter_ns: common.jitter,
        ds: common.dscp << 2,
        traffic,
        name,
    }
}

fn traffic(entry: &Entry) -> Traffic {
    let udp = |udp: &Udp, on_ns, off_ns| Traffic::Udp {
        bps: udp.rate,
        packet_bytes: udp.packet,
        on_ns,
        off_ns,
        ecn: udp.ecn,
    };
    match &entry.kind {
        Kind::Bulk(tcp, own) => Traffic::Bulk {
            bytes: own.size,
            tcp: endpoints(tcp.profile, tcp.congestion, tcp.ecn, &tcp.tcp),
        },
        Kind::Transfers(tcp, own) => Traffic::Transfers {
            bytes: (&own.size).into(),
            pause_ns: (&own.pause).into(),
            tcp: endpoints(tcp.profile, tcp.congestion, tcp.ecn, &tcp.tcp),
        },
        Kind::Udp(own) => udp(own, None, None),
        Kind::OnOff(own, periods) => {
            udp(own, Some((&periods.on).into()), Some((&periods.off).into()))
        }
        Kind::Ping(own) => Traffic::Ping { interval_ns: own.interval, packet_bytes: own.packet },
        Kind::Video(own) => {
            let frames = match &own.frames {
                Some(frames) => Frames::Trace { frames: frames.clone(), period_ns: own.repeat },
                None => Frames::Model {
                    bps: own.rate.unwrap_or(0),
                    fps: own.fps,
                    gop: own.gop,
                    i_ratio: own.i_ratio,
                    cv: own.cv,
                },
            };
            Traffic::Video { frames, payload_bytes: own.payload }
        }
    }
}

/// 100 ms, or longer so that the table keeps to about 20 000 rows.
fn queue_interval(duration: u64, links: usize) -> u64 {
    at_least(100 * MS, u128::from(duration) * links as u128 / 20_000)
}

/// 100 ms for up to 20 flows, 1 s beyond, or longer so that the table keeps to about 200 000 rows.
fn flow_interval(duration: u64, flows: usize) -> u64 {
    let shortest = if flows <= 20 { 100 * MS } else { 1000 * MS };
    at_least(shortest, u128::from(duration) * flows as u128 / 200_000)
}

/// The next of 1, 2, 5, 10, ... times the shortest.
fn at_least(shortest: u64, needed: u128) -> u64 {
    let scales = (0..20).flat_map(|power| [1, 2, 5].map(|step| step * 10u128.pow(power)));
    let mut intervals = scales.map(|scale| u128::from(shortest) * scale);
    intervals.find(|interval| *interval >= needed).unwrap_or(u128::from(shortest)) as u64
}
