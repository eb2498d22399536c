//! Turns a scenario and a seed into an engine's input: plain integers, every link and every flow
//! written out.
//!
//! Draws (RTTs, start times) come from a random stream named after the flow, so that a new flow
//! does not change the draws of another. A flow's base RTT is the delay of its links, and a rest
//! that is split in two halves behind the last link of each direction.

use crate::forms::{Code, PaceSteps};
use crate::laws::Spread;
use crate::links::{HOME, Line, Link as Shared, Routes, Way, links_of, way_of};
use crate::model::{Bulk, Flow as Entry, FlowEntry, Kind, Scenario, TcpFlow, Udp, base_names};
use crate::programs::{self, FlowPlace, Programs};
use crate::tcp::{Endpoints, endpoints};
use link::{QdiscStep, RateStep};
use qdisc::DsField;
use sim::RecordSpec;
use tc::Discipline;
use traffic::{Frames, Pace};
use units::Rng;

const MS: u64 = 1_000_000;

/// One run of a scenario, for any engine.
pub type Run = sim::Scenario<Discipline, Endpoints>;
/// One direction of one of its links.
pub type Link = sim::LinkSpec<Discipline>;
/// One of its flows.
pub type Flow = sim::FlowSpec<Endpoints>;
/// The traffic of a flow.
pub type Traffic = sim::Traffic<Endpoints>;

/// The simulator's input; `None` if only Linux has a discipline, a congestion control or a kind of
/// traffic of the run.
pub fn simulated(run: &Run) -> Option<sim::Scenario> {
    if run.flows.iter().any(|flow| !flow.traffic.kind().record().in_simulator) {
        return None;
    }
    if run.links.iter().any(|link| lacking_change(link).is_some()) {
        return None;
    }
    run.with(Discipline::params, Endpoints::simulated)
}

/// The simulator's input for a link; `None` if only Linux has its discipline or can change it.
pub fn simulated_link(link: &Link) -> Option<sim::LinkSpec> {
    if lacking_change(link).is_some() { None } else { link.with(&Discipline::params) }
}

/// What the first step of a link changes that the simulator can't change: `cake besteffort`.
pub fn lacking_change(link: &Link) -> Option<String> {
    let before =
        std::iter::once(&link.qdisc).chain(link.qdisc_steps.iter().map(|step| &step.qdisc));
    let word = before
        .zip(&link.qdisc_steps)
        .find_map(|(before, step)| before.lacking_change(&step.qdisc))?;
    Some(format!("{} {word}", link.qdisc.kind()))
}

impl Scenario {
    /// Returns the run of this scenario with this seed.
    ///
    /// # Errors
    ///
    /// Fails for a sweep: realise each of its variants.
    ///
    /// # Examples
    ///
    /// ```rust
    /// use scenario::{Loaded, no_file};
    ///
    /// let text = r#"
    /// duration = "10 s"
    /// bottleneck = { rate = "20 Mbit/s", delay = "10 ms" }
    /// flow = [{ kind = "bulk", count = 2 }]
    /// "#;
    /// let home = Loaded::read(text, "home.toml", None, &no_file).expect("a scenario");
    /// let run = home.scenario.realise(1).expect("it is not a sweep");
    /// let names: Vec<_> = run.flows.iter().map(|flow| flow.name.as_str()).collect();
    /// assert_eq!(names, ["bulk.1", "bulk.2"]);
    /// // There would be none if only Linux had a discipline of the run.
    /// assert!(scenario::realised::simulated(&run).is_some());
    /// ```
    pub fn realise(&self, seed: u64) -> Result<Run, &'static str> {
        if !self.sweep.is_empty() {
            return Err("this scenario is a sweep: realise each of its variants()");
        }
        let shared = links_of(self);
        let mut routes = Routes::new(&shared);
        let mut links: Vec<Link> =
            shared.iter().map(|link| shared_link(link, &self.code)).collect();
        let mut flows = Vec::new();
        for (group, (entry, base)) in self.flows.iter().zip(base_names(&self.flows)).enumerate() {
            let way = way_of(&entry.entry, &mut routes, self.dumbbell(), entry.probe())
                .map_err(|_| "a checked scenario has a route for each flow")?;
            let takes = way.delay(&shared);
            let traffic = traffic(entry, &self.code, self.duration);
            let arrivals = Rng::new(seed, &format!("{base}/arrivals"));
            let starts = entry.entry.start.in_order(entry.entry.count, || arrivals);
            for index in 0..entry.entry.count {
                let name = if entry.entry.count == 1 {
                    base.clone()
                } else {
                    format!("{base}.{}", index + 1)
                };
                let own = way_with_access(entry, &name, &way, &mut links);
                let hosts = hosts(&entry.entry, index, &links[own.path[own.path.len() - 1]].head);
                let group = group as u32;
                let sent = sized(entry, dealt(&traffic, index, entry.entry.count), &name, seed);
                let mut flow = flow(entry, name, group, index, own, hosts, takes, seed, sent);
                if let Some(starts) = &starts {
                    flow.start_ns = starts[index as usize];
                }
                flows.push(flow);
            }
        }
        if of_ns2(&flows) {
            links.iter_mut().for_each(|link| link.asks_at_once = true);
        }
        let record = RecordSpec {
            queue_ns: self
                .record
                .queue
                .unwrap_or_else(|| queue_interval(self.duration, shared.len())),
            flow_ns: self.record.flow.unwrap_or_else(|| flow_interval(self.duration, flows.len())),
            packets: self.record.packets,
            headers: self.record.headers,
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

impl Scenario {
    /// The programs of one of its runs: those on nodes, then those of flows.
    pub fn realised_programs(&self, run: &Run) -> Programs {
        if !self.has_programs() {
            return Programs::default();
        }
        let of_flows = run.flows.iter().enumerate().flat_map(|(number, flow)| {
            let last = flow.path[flow.path.len() - 1];
            let nodes = [&run.links[flow.path[0] as usize].tail, &run.links[last as usize].head];
            let place = FlowPlace {
                flow: number as u32,
                name: &flow.name,
                nodes: nodes.map(String::as_str),
                start_ns: flow.start_ns,
                stop_ns: flow.stop_ns,
            };
            programs::ends(self, &self.flows[flow.group as usize], place)
        });
        Programs {
            programs: programs::on_nodes(self).chain(of_flows).collect(),
            sees: self.program_settings.sees.clone(),
            syscall_ns: self.program_settings.syscall,
        }
    }
}

/// Whether all its TCP hosts are ns-2's; its links are then ns-2's, too.
fn of_ns2(flows: &[Flow]) -> bool {
    let mut profiles = flows.iter().filter_map(|flow| flow.traffic.tcp()).map(|tcp| tcp.profile);
    profiles.next() == Some("ns2") && profiles.all(|profile| profile == "ns2")
}

fn shared_link(shared: &Shared, code: &Code) -> Link {
    let line: &Line = &shared.line;
    Link {
        name: shared.name.clone(),
        tail: shared.tail.clone(),
        head: shared.head.clone(),
        rate: line.steps.iter().map(|&(at_ns, bps)| RateStep { at_ns, bps }).collect(),
        rate_period_ns: line.period,
        delay_ns: line.delay,
        qdisc: line.qdisc.with_source(|file| code.text(file)),
        qdisc_steps: line
            .qdisc_steps
            .iter()
            .map(|(at_ns, qdisc)| QdiscStep { at_ns: *at_ns, qdisc: qdisc.clone() })
            .collect(),
        framing: line.framing,
        loss: line.loss.params(),
        impairments: line.impairments.clone(),
        ring: line.ring.map(|descriptors| link::RingParams {
            descriptors,
            bql: line.bql,
            coalesce_ns: line.coalesce,
        }),
        shaper: line.shaper.as_ref().map(|shaper| shaper.params),
        police: line.police.as_ref().map(|police| police.params),
        replay_window: line.replay_window,
        queues: line.queues.map(|count| qdisc::CardQueues { count, pinned: line.pinned.clone() }),
        sampled: true,
        asks_at_once: false,
    }
}

/// The flow's route; with `access` it starts at the sender's own link, and ends there.
fn way_with_access(entry: &Entry, name: &str, way: &Way, links: &mut Vec<Link>) -> Way {
    let Some(bps) = entry.entry.access else { return way.clone() };
    let first = links.len();
    let (enters, leaves) =
        (links[way.path[0]].tail.clone(), links[way.back[way.back.len() - 1]].head.clone());
    let host = format!("{name}/host");
    // A queue that never drops.
    let pfifo =
        Discipline::parse(&format!("pfifo limit {}", u32::MAX)).expect("this is tc's syntax");
    for (end, tail, head) in [("access", host.clone(), enters), ("access-back", leaves, host)] {
        links.push(Link {
            name: format!("{name}/{end}"),
            tail,
            head,
            rate: vec![RateStep { at_ns: 0, bps }],
            rate_period_ns: None,
            delay_ns: 0,
            qdisc: pfifo.clone(),
            qdisc_steps: Vec::new(),
            framing: link::Framing::NONE,
            loss: link::Loss::None,
            impairments: link::Impairments::default(),
            ring: None,
            shaper: None,
            police: None,
            replay_window: None,
            queues: None,
            sampled: false,
            asks_at_once: false,
        });
    }
    let path = std::iter::once(first).chain(way.path.iter().copied()).collect();
    let back = way.back.iter().copied().chain([first + 1]).collect();
    Way { path, back }
}

/// The named host at one of the flow's two ends: its source, or `target`, the node where it ends.
fn hosts(entry: &FlowEntry, index: u32, target: &str) -> [Option<String>; 2] {
    let Some(hosts) = &entry.hosts else { return [None, None] };
    let node = entry.hosts_at.as_deref().unwrap_or(HOME);
    let name = Some(format!("{node}/{}", hosts.of(index)));
    if node == target { [None, name] } else { [name, None] }
}

#[allow(clippy::too_many_arguments)]
fn flow(
    entry: &Entry,
    name: String,
    group: u32,
    index: u32,
    way: Way,
    hosts: [Option<String>; 2],
    takes: u64,
    seed: u64,
    traffic: Traffic,
) -> Flow {
    let common = &entry.entry;
    let of = |spread: &Spread, what: &str| {
        // The first number of the stream with this name, drawn only if needed.
        spread.of(index, common.count, || Rng::new(seed, &format!("{name}/{what}")).next_u64())
    };
    // A named host has flows of many RTTs, so the rest of each RTT lies at the flow's other end.
    let rest = common.rtt.as_ref().map_or(takes, |rtt| of(rtt, "rtt")) - takes;
    let path_extra_ns = match &hosts {
        [None, None] => rest - rest / 2,
        [None, Some(_)] => 0,
        [Some(_), _] => rest,
    };
    Flow {
        group,
        path: numbers(way.path),
        back: numbers(way.back),
        path_extra_ns,
        back_extra_ns: rest - path_extra_ns,
        start_ns: of(&common.start, "start"),
        stop_ns: common.stop.as_ref().map(|stop| of(stop, "stop")),
        jitter_ns: common.jitter,
        ds: DsField(common.dscp << 2).with_ecn(entry.ecn()),
        tunnel: common.tunnel.clone(),
        hosts,
        traffic,
        name,
    }
}

fn numbers(way: Vec<usize>) -> Vec<u32> {
    way.into_iter().map(|link| link as u32).collect()
}

/// A size in bytes that its form bounds far below 2^32.
fn bytes(number: u64) -> u32 {
    u32::try_from(number).expect("its form bounds it")
}

/// The traffic of flow `index` of an entry: a page's objects are assigned to the flows in turn.
fn dealt(all: &Traffic, index: u32, count: u32) -> Traffic {
    let mut own = all.clone();
    if let Traffic::Transfers { objects: Some(objects), .. } = &mut own {
        *objects = *objects / count + u32::from(index < *objects % count);
    }
    own
}

/// Draws the size of a bulk flow that has one.
fn sized(entry: &Entry, mut traffic: Traffic, name: &str, seed: u64) -> Traffic {
    if let (Kind::Bulk(_, Bulk { size: Some(size), .. }), Traffic::Bulk { bytes, .. }) =
        (&entry.kind, &mut traffic)
    {
        *bytes = Some(size.next(&mut Rng::new(seed, &format!("{name}/size"))).max(1));
    }
    traffic
}

fn traffic(entry: &Entry, code: &Code, duration: u64) -> Traffic {
    let endpoints = |tcp: &TcpFlow| {
        endpoints(tcp.profile, tcp.congestion.as_ref(), tcp.notification(), &tcp.tcp)
            .with_source(|file| code.text(file))
    };
    let udp = |udp: &Udp, on_ns, off_ns| Traffic::Udp {
        bps: udp.rate,
        packet_bytes: bytes(udp.packet),
        on_ns,
        off_ns,
    };
    match &entry.kind {
        // `sized` draws it for each flow.
        Kind::Bulk(tcp, own) => {
            let bytes = own.size.as_ref().map(|size| size.mean() as u64);
            let tcp = endpoints(tcp);
            let pace = own.rate.as_ref().and_then(|steps| pace(steps, tcp.params.mss));
            Traffic::Bulk { bytes, pace, tcp }
        }
        Kind::Transfers(tcp, own) => Traffic::Transfers {
            bytes: own.size.clone(),
            pause_ns: own.pause.clone(),
            objects: None,
            tcp: endpoints(tcp),
        },
        Kind::Requests(tcp, own) => {
            let tcp = endpoints(tcp);
            Traffic::Requests {
                request_bytes: own.request.clone(),
                bytes: own.size.clone(),
                pause_ns: own.pause.clone(),
                write_bytes: tcp.params.mss.into(),
                tcp,
            }
        }
        Kind::Web(tcp, own) => Traffic::Transfers {
            bytes: own.size.clone(),
            pause_ns: own.pause.clone(),
            objects: Some(own.objects),
            tcp: endpoints(tcp),
        },
        Kind::Stream(tcp, own) => Traffic::Stream {
            ladder_bps: own.ladder.clone(),
            segment_ns: own.segment,
            ahead_ns: own.ahead,
            tcp: endpoints(tcp),
        },
        Kind::Call() => Traffic::Call,
        Kind::Udp(own) => udp(own, None, None),
        Kind::OnOff(own, periods) => udp(own, Some(periods.on.clone()), Some(periods.off.clone())),
        Kind::Ping(own) => {
            Traffic::Ping { interval_ns: own.interval, packet_bytes: bytes(own.packet) }
        }
        Kind::Capture(own) => {
            let last = own.packets.last().map_or(0, |packet| packet.0);
            Traffic::Capture {
                packets: own.packets.iter().map(|&(at, size)| (at, bytes(size))).collect(),
                // The packets do not repeat within the run, nor at its last instant.
                period_ns: own.repeat.unwrap_or(duration.max(last) + 1),
            }
        }
        Kind::Program(_) => Traffic::Program,
        Kind::Video(own) => {
            let frames = match &own.frames {
                Some(frames) => Frames::Trace {
                    frames: frames.iter().map(|&(at, size)| (at, bytes(size))).collect(),
                    period_ns: own.repeat.expect("a trace of frames has a length"),
                },
                None => Frames::Model {
                    bps: own.rate.unwrap_or(0),
                    fps: own.fps,
                    gop: own.gop,
                    i_ratio: own.i_ratio,
                    cv: own.cv,
                },
            };
            Traffic::Video { frames, payload_bytes: bytes(own.payload) }
        }
    }
}

/// An application that writes full segments at these rates; `None`: it always has more to write.
fn pace(steps: &PaceSteps, mss: u32) -> Option<Pace> {
    let steps: Vec<_> = steps.iter().map(|&(at, rate)| (at, rate.bps())).collect();
    let limited = steps.iter().any(|(_, bps)| bps.is_some());
    limited.then_some(Pace { steps, write_bytes: mss.into() })
}

/// 100 ms, or longer so that the table has at most about 20 000 rows.
fn queue_interval(duration: u64, links: usize) -> u64 {
    at_least(100 * MS, u128::from(duration) * links as u128 / 20_000)
}

/// 100 ms for up to 20 flows, 1 s for more, or longer so that the table has at most about 200 000
/// rows.
fn flow_interval(duration: u64, flows: usize) -> u64 {
    let shortest = if flows <= 20 { 100 * MS } else { 1000 * MS };
    at_least(shortest, u128::from(duration) * flows as u128 / 200_000)
}

/// The first of 1, 2, 5, 10, ... times the shortest that is long enough.
fn at_least(shortest: u64, needed: u128) -> u64 {
    let scales = (0..20).flat_map(|power| [1, 2, 5].map(|step| step * 10u128.pow(power)));
    let mut intervals = scales.map(|scale| u128::from(shortest) * scale);
    intervals.find(|interval| *interval >= needed).unwrap_or(u128::from(shortest)) as u64
}
