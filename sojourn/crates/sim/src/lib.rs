//! The packet simulator: a scenario of integers in, tables out.
//!
//! There is no list of events. A packet takes time from a link to the host behind it. So what
//! happens at a link can't matter to any host within a short window of time. Window by window each
//! host is moved alone, first its far end, then its source. Then each link is handed what comes to
//! it, in order. `net::Lookahead` computes how long a window may be. A host's state is in the
//! processor's cache for all packets of a window, and only what meets at a link is sorted.
//!
//! Order at one instant: flows are sampled. A host's timers expire, then its packets arrive. A link
//! takes in what comes: off wires, then from TCP, then from programs. Among several hosts a lot
//! decides, another each time, so that none is always first. Then the link dequeues. Queues are
//! sampled. What takes no time at all, over a path without any delay, happens in a further pass over
//! hosts and links. `plain`, in tests, is the same with a list of events.
//!
//! Everything random has a stream of its own, named after what it belongs to.
//!
//! No I/O, no clock, no thread: whoever calls `Sim::run` in slices may look at his clock in
//! between.

mod addresses;
mod due;
mod headers;
mod host;
mod inbox;
mod jitter;
mod lanes;
mod net;
mod pages;
mod payload;
#[cfg(test)]
mod plain;
mod player;
mod recorder;
mod replay;
mod scenario;

// The tests' scenarios call it so from within, too.
#[cfg(test)]
extern crate self as sim;

pub use qdisc::{Cause, DsField, ReplayHint};
pub use replay::{Arrival, Decision, Fell, Replayed, replay};
pub use scenario::*;
pub use traffic::{Draw, Frames, Packets, TrafficKind};

use due::Due;
use host::{Host, Path};
use inbox::Inbox;
use link::{Departure, Link, LinkParts, Outlet, Propagation, Schedule};
use net::{FirstLink, Lookahead, Net};
use pages::Browser;
use payload::{Parcel, SackPool, Slip};
use qdisc::{Body, Context, Discipline, Hosts, Packet, Qdisc, Verdict};
use recorder::Recorder;
use std::cell::OnceCell;
use units::{Rate, Rng, Span, Time};

/// A run in progress.
pub struct Sim {
    /// All before this has happened.
    now: Time,
    end: Time,
    due: Samples,
    links: Vec<Link<Slip>>,
    drives: Vec<Drive>,
    /// What comes to each link in this window.
    inboxes: Vec<Inbox>,
    lookahead: Lookahead,
    hosts: Vec<Host>,
    browsers: Vec<Browser>,
    sacks: SackPool,
    net: Net,
    recorder: Recorder,
    events: u64,
    finished: bool,
}

/// When samples are due. The last ones are taken at the end.
struct Samples {
    /// The end of the warm-up; NEVER once it is over.
    warm: Time,
    flows: Time,
    queues: Time,
}

/// What is recorded at one time for the whole run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    /// Behind all that happens at that time.
    Queues,
    /// Ahead of all that happens at that time.
    Warm,
    Flows,
    End,
}

/// What a window costs beside its packets.
const WINDOW_EVENTS: u64 = 8;

impl Sim {
    /// A run at its start. The scenario must be consistent (indices in range, names unique): it was
    /// made so in `scenario/`.
    ///
    /// # Panics
    ///
    /// If a path names a link that is not there.
    pub fn new(scenario: &Scenario) -> Sim {
        let links = scenario.links.len() as u32;
        let mut named = scenario.flows.iter().flat_map(|flow| flow.path.iter().chain(&flow.back));
        assert!(named.all(|&link| link < links), "a path names a link not there");
        let addresses = OnceCell::new();
        let made = || addresses::hosts(&scenario.flows, &scenario.links);
        let hosts = || addresses.get_or_init(made).clone();
        let links = scenario.links.iter().map(|spec| make_link(spec, scenario.seed, hosts));
        let links: Vec<Link<Slip>> = links.collect();
        let flows = scenario.flows.iter().enumerate();
        let hosts: Vec<Host> = flows.map(|(i, flow)| Host::new(flow, i, scenario.seed)).collect();
        let mut recorder = Recorder::new(scenario);
        recorder.set_base_rtts(scenario.base_rtts());
        let due = Samples {
            warm: Time(scenario.warmup_ns),
            flows: Time::ZERO + recorder.flow_interval,
            queues: Time::ZERO + recorder.queue_interval,
        };
        let drives = net::in_order(scenario).into_iter().zip(&links).map(|(in_order, link)| {
            Drive { rate_change: link.schedule().next_change(Time::ZERO), in_order }
        });
        let drives: Vec<Drive> = drives.collect();
        let lookahead = Lookahead::new(scenario);
        let mut net = Net::new(scenario, &lookahead.order);
        let changes = lookahead.order.iter().map(|&link| drives[link as usize].rate_change);
        net.links_due = Due::new(changes.collect());
        net.hosts_due = Due::new(hosts.iter().map(Host::source_deadline).collect());
        Sim {
            now: Time::ZERO,
            end: Time(scenario.duration_ns),
            due,
            inboxes: links.iter().map(|_| Inbox::default()).collect(),
            links,
            drives,
            lookahead,
            hosts,
            browsers: Browser::all(&scenario.flows),
            sacks: SackPool::default(),
            net,
            recorder,
            events: 0,
            finished: false,
        }
    }

    /// Where the run is.
    pub fn now(&self) -> Time {
        self.now.min(self.end)
    }

    /// Goes on to the end, or until some `budget` further events have happened; true when the run
    /// is complete. Each window counts as `WINDOW_EVENTS` more, and each step of a rate as one, so
    /// that a call ends soon however long no packet comes.
    pub fn run(&mut self, budget: u64) -> bool {
        let pause_at = (self.events + self.net.rate_steps).saturating_add(budget);
        let mut windows = 0;
        while !self.finished {
            windows += WINDOW_EVENTS;
            let (until, mark) = self.next_mark();
            let next = self.net.hosts_due.soonest().min(self.net.links_due.soonest());
            if next >= until {
                self.now = until;
                self.record(mark);
                continue;
            }
            self.net.began = next;
            self.now = until.min(next + self.lookahead.window);
            self.pass(self.now);
            if self.events + self.net.rate_steps + windows >= pause_at {
                return false;
            }
        }
        true
    }

    /// Packets of data delivered to their hosts so far.
    pub fn delivered_packets(&self) -> u64 {
        self.hosts.iter().map(|host| host.counters.received_packets).sum()
    }

    /// What waits in each link's queue where the run is.
    pub fn backlogs(&self) -> impl Iterator<Item = qdisc::Backlog> {
        self.links.iter().map(Link::backlog)
    }

    /// The congestion window of each flow where the run is, bytes; `None`: its sender has none.
    pub fn cwnds(&self) -> impl Iterator<Item = Option<u64>> {
        self.hosts.iter().map(|host| host.tcp().map(|(sender, _)| sender.cwnd_bytes()))
    }

    /// The tables of a finished run.
    pub fn into_tables(self) -> Vec<tables::Table> {
        let delivered = self.delivered_packets();
        let peak = self.net.lanes.peak();
        self.recorder.into_tables(&self.hosts, self.events, delivered, peak)
    }

    // --- windows ---

    /// Everything before `until`, once.
    fn pass(&mut self, until: Time) {
        let Sim { links, hosts, browsers, net, inboxes, recorder, sacks, .. } = self;
        let mut events = 0;
        for (block, parts) in net.hosts_due.blocks() {
            if !net.hosts_due.in_block(block, until) {
                continue;
            }
            for index in parts.clone() {
                if net.hosts_due.at(index) < until {
                    events += move_host(&mut hosts[index], index, until, (net, inboxes), sacks);
                }
            }
            net.hosts_due.settle(block, parts);
        }
        for browser in browsers {
            if let Some(at) = browser.turn(hosts, until) {
                browser.connections.iter().for_each(|&host| net.hosts_due.hasten(host, at));
            }
        }
        for (block, places) in net.links_due.blocks() {
            if !net.links_due.in_block(block, until) {
                continue;
            }
            for place in places.clone() {
                if net.links_due.at(place) >= until {
                    continue;
                }
                let link = self.lookahead.order[place] as usize;
                let inbox = &mut inboxes[link];
                let coming = net.collect(link, until, inbox);
                events += inbox.len() as u64;
                // What it sends to itself may be the next to come to it.
                net.links_due.set(place, coming);
                let behind = &mut Behind { link: link as u32, net, recorder, hosts, sacks };
                let own = self.drives[link].move_link(&mut links[link], until, inbox, behind);
                net.links_due.hasten(place, own);
            }
            net.links_due.settle(block, places);
        }
        self.events += events;
    }

    // --- recording ---

    /// The next time at which something is recorded for the whole run: all that happens before the
    /// time that is given has to have happened.
    fn next_mark(&self) -> (Time, Mark) {
        let Samples { warm, flows, queues } = self.due;
        let behind = |at: Time| at + Span(1);
        let queues = (queues < self.end).then_some((behind(queues), Mark::Queues));
        let flows = (flows < self.end).then_some((flows, Mark::Flows));
        let ends = [(warm, Mark::Warm), (behind(self.end), Mark::End)];
        ends.into_iter().chain(queues).chain(flows).min().expect("there is an end")
    }

    fn record(&mut self, mark: Mark) {
        let Sim { links, hosts, recorder, due, .. } = self;
        match mark {
            Mark::Queues => {
                let now = due.queues;
                due.queues = now + recorder.queue_interval;
                if now != recorder.warm_at() {
                    self.sample_queues(now);
                }
            }
            Mark::Flows => {
                let now = due.flows;
                due.flows = now + recorder.flow_interval;
                if now != recorder.warm_at() {
                    recorder.sample_flows(hosts, now);
                }
            }
            // Rows that are due then end here, too, so that the rows after them add up to the
            // totals.
            Mark::Warm => {
                let now = std::mem::replace(&mut due.warm, Time::NEVER);
                links.iter_mut().for_each(|link| link.settle(now));
                let is_due = |interval: Span| now > Time::ZERO && now.0.is_multiple_of(interval.0);
                if is_due(recorder.queue_interval) {
                    recorder.sample_queues(links, now);
                }
                if is_due(recorder.flow_interval) {
                    recorder.sample_flows(hosts, now);
                }
                recorder.warm(links, hosts, now);
            }
            // The last rows have what happened at the end itself.
            Mark::End => {
                self.sample_queues(self.end);
                self.recorder.sample_flows(&mut self.hosts, self.end);
                self.recorder.finish(&mut self.links, self.end);
                self.finished = true;
            }
        }
    }

    fn sample_queues(&mut self, now: Time) {
        let Sim { links, recorder, .. } = self;
        // A ring's completions have no event while nothing waits for them.
        links.iter_mut().for_each(|link| link.settle(now));
        recorder.sample_queues(links, now);
    }
}

/// All that happens at a host before `until`, both ends; how much.
#[inline]
fn move_host(
    host: &mut Host,
    index: usize,
    until: Time,
    (net, inboxes): (&mut Net, &mut [Inbox]),
    sacks: &mut SackPool,
) -> u64 {
    let [there, back] = [0, 1].map(|direction| 2 * index as u32 + direction);
    let first_link = net.first_link(back, inboxes);
    let far_end = &mut End { lane: there, net, first_link };
    let (far, far_due) = host.move_far_end(until, far_end, sacks);
    let first_link = net.first_link(there, inboxes);
    let source = &mut End { lane: back, net, first_link };
    let (near, near_due) = host.move_source(until, source, sacks);
    // Where the way there crosses no link the far end may have something to do again.
    let due = far_due.min(near_due).min(net.lanes.first_arrives(there));
    net.hosts_due.set(index, due);
    far + near
}

/// How a link is moved.
struct Drive {
    /// When its rate changes next.
    rate_change: Time,
    /// Whether what comes to it is put in order.
    in_order: bool,
}

impl Drive {
    /// All that happens at the link before `until`; when something next happens by itself.
    #[inline]
    fn move_link(
        &mut self,
        link: &mut Link<Slip>,
        until: Time,
        inbox: &mut Inbox,
        behind: &mut Behind<'_>,
    ) -> Time {
        let began = behind.net.began;
        if self.in_order {
            inbox.put_in_order(began, |node| behind.net.lanes.host(node));
        }
        let sees_acks = link.qdisc().sees_acks();
        inbox.drain(began, |node, at| {
            self.step_rate(link, at, behind);
            let parcel = behind.net.lanes.packet(node);
            let packet = parcel.slip(node, behind.net.tunnels.of(parcel.flow));
            if sees_acks && let Some(ack) = behind.sacks.ack_view(parcel) {
                link.qdisc_mut().sees(ack);
            }
            link.send(packet, at, behind);
        });
        let last = Time(until.0 - 1);
        self.step_rate(link, last, behind);
        link.advance(last, behind);
        link.next_event().unwrap_or(Time::NEVER).min(self.rate_change)
    }

    /// Tells the link of the changes of its rate up to `now`.
    #[inline]
    fn step_rate(&mut self, link: &mut Link<Slip>, now: Time, behind: &mut Behind<'_>) {
        while self.rate_change <= now {
            link.advance(Time(self.rate_change.0 - 1), behind);
            link.rate_stepped(self.rate_change);
            behind.net.rate_steps += 1;
            self.rate_change = link.schedule().next_change(self.rate_change);
        }
    }
}

/// What lies behind a link.
struct Behind<'a> {
    link: u32,
    net: &'a mut Net,
    recorder: &'a mut Recorder,
    hosts: &'a mut [Host],
    sacks: &'a mut SackPool,
}

impl Outlet<Slip> for Behind<'_> {
    #[inline]
    fn departed(&mut self, departure: Departure<Slip>) {
        self.recorder.departure(self.link, &departure);
        if let Some(kept) = self.recorder.headers() {
            let packet = self.net.lanes.packet(departure.packet.body.node);
            let left = (self.link, departure.packet.ds, departure.dequeued);
            let host = &self.hosts[departure.packet.flow as usize / 2];
            kept.push(headers::row(packet, left, host, self.sacks));
        }
        let Departure { dequeued, arrives, lost, packet } = departure;
        if let Some(cause) = lost {
            self.decided(Verdict::Dropped(packet, cause), dequeued);
        } else {
            self.net.cross(packet.body.node, packet.flow, packet.ds, arrives);
        }
    }

    #[cold]
    fn doubled(&mut self, packet: &Packet<Slip>, arrives: Time) {
        let original = self.net.lanes.packet(packet.body.node);
        original.mark_twin();
        let mut copy = *original;
        self.sacks.share(&mut copy);
        let node = self.net.lanes.place(copy);
        self.net.cross(node, packet.flow, packet.ds, arrives);
    }

    #[cold]
    fn decided(&mut self, verdict: Verdict<Slip>, at: Time) {
        self.recorder.verdict(self.link, &verdict, at);
        if let Verdict::Dropped(packet, _) = verdict {
            let packet = self.net.lanes.take(packet.body.node);
            self.sacks.release(&packet);
            self.hosts[(packet.flow / 2) as usize].dropped(&packet);
        }
    }
}

/// An end of a flow's path: what arrives at it lies in a lane.
struct End<'a> {
    lane: u32,
    net: &'a mut Net,
    first_link: Option<FirstLink<'a>>,
}

impl Path for End<'_> {
    #[inline]
    fn first_arrives(&self) -> Time {
        self.net.lanes.first_arrives(self.lane)
    }

    #[inline]
    fn receive(&mut self) -> Parcel {
        self.net.lanes.receive(self.lane)
    }

    #[inline]
    fn send(&mut self, packet: Parcel, now: Time) {
        self.net.leave(packet, now, &mut self.first_link);
    }
}

/// The link as it is before its first packet. `hosts` are asked for by disciplines that share by
/// host.
fn make_link<B: Body>(spec: &LinkSpec, seed: u64, hosts: impl FnOnce() -> Hosts) -> Link<B> {
    let schedule = Schedule::new(spec.rate.clone(), spec.rate_period_ns);
    let shaped = spec.shaper.map(|shaper| Rate(shaper.bps));
    let context = Context {
        rate: [schedule.rate_at(Time::ZERO), shaped].into_iter().flatten().min(),
        mtu: 1500 + spec.framing.header_bytes,
        header_bytes: spec.framing.header_bytes,
        root: spec.shaper.is_none(),
        rng: Rng::new(seed, &format!("{}/qdisc", spec.name)),
    };
    let mut qdisc = match &spec.queues {
        Some(card) => Discipline::on_card(&spec.qdisc, card, context),
        None => Discipline::new(&spec.qdisc, context),
    };
    if let Some(its) = Qdisc::<B>::hosts(&mut qdisc) {
        *its = hosts();
    }
    let mut link = Link::new(LinkParts {
        qdisc,
        schedule,
        framing: spec.framing,
        wire: Propagation::new(Span(spec.delay_ns), &spec.loss, &spec.impairments, |what| {
            Rng::new(seed, &format!("{}/{what}", spec.name))
        }),
        ring: spec.ring,
        shaper: spec.shaper,
        police: spec.police,
        replay_window: spec.replay_window,
    });
    if spec.asks_at_once {
        link.ask_at_once();
    }
    link
}
