//! The packet simulator: turns a scenario of integers into tables.
//!
//! There is no list of events. A packet takes time from a link to the host behind it, so events at
//! a link can't affect any host within a short window of time. In each window every host runs
//! alone, first its far end, then its source. Then each link receives the packets that arrive at
//! it, in order. `net::Lookahead` computes the length of a window. A host's state stays in the
//! processor's cache for all packets of a window, and only packets that meet at a link are sorted.
//!
//! The order at one instant is this. Flows are sampled. A host's timers expire, then its packets
//! arrive. A link enqueues arriving packets: from wires, then from TCP, then from programs. A lot
//! decides the order among several hosts, a new lot at each instant, so that no host is always
//! first. Then the link dequeues. Queues are sampled. Events that another event causes at the same
//! instant, over a path without delay, happen in a further pass over hosts and links. `plain`, in
//! tests, is the same simulator with a list of events.
//!
//! Each random quantity has its own stream, named after the thing that it belongs to.
//!
//! There is no I/O, no clock and no thread: a caller that runs `Sim::run` in slices may read its
//! clock in between.

mod addresses;
mod due;
mod ends;
mod exchange;
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

// The tests' scenarios use this name from inside the crate, too.
#[cfg(test)]
extern crate self as sim;

pub use qdisc::{Cause, DsField, ReplayHint};
pub use replay::{Action, Arrival, Decision, Replayed, replay};
pub use scenario::*;
pub use traffic::{Draw, Frames, Pace, Packets, TrafficKind};

use addresses::NO_TUNNEL;
use due::Due;
use ends::Path;
use host::Host;
use inbox::Inbox;
use link::{Departure, Leaf, Link, LinkParts, Outlet, Propagation, Schedule, Window};
use net::{FirstLink, Lookahead, Net};
use pages::Browser;
use payload::{Parcel, SackPool, Slip};
use qdisc::{Body, Context, Discipline, Hosts, Packet, Qdisc, Verdict};
use recorder::{Recorder, Sojourns, Verdicts};
use std::cell::OnceCell;
use tables::Batch;
use units::{Rate, Rng, Span, Time};

/// A run in progress.
pub struct Sim {
    /// All events before this time have happened.
    now: Time,
    end: Time,
    due: Samples,
    links: Vec<Link<Slip>>,
    drives: Vec<Drive>,
    /// The packets that arrive at each link in this window.
    inboxes: Vec<Inbox>,
    lookahead: Lookahead,
    hosts: Vec<Host>,
    browsers: Vec<Browser>,
    sacks: SackPool,
    net: Net,
    leaves: Leaves,
    recorder: Recorder,
    events: u64,
    finished: bool,
}

/// The links that follow behind their leaves (`link::Leaf`).
struct Leaves {
    links: Vec<u32>,
    /// Whether one of them is in the table `queue`.
    sampled: bool,
    /// They have followed up to this time; NEVER: there are none.
    counted: Time,
}

/// A leaf's link lags behind its leaf by at most about this time, ns, so that a leaf stores few
/// packets that its link has not seen.
const LEAVES_FOLLOW: u64 = 1 << 28;

/// The times of the next samples. The last samples are taken at the end.
struct Samples {
    /// The end of the warm-up; NEVER after it.
    warm: Time,
    flows: Time,
    queues: Time,
}

/// A record of the whole run at one time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    /// After all events of that time.
    Queues,
    /// Before all events of that time.
    Warm,
    Flows,
    End,
}

/// The cost of a window besides its packets, in events.
const WINDOW_EVENTS: u64 = 8;

impl Sim {
    /// A run at its start. The scenario must be consistent (indices in range, names unique), as
    /// `scenario/` makes it.
    ///
    /// # Examples
    ///
    /// ```rust
    /// // A queue of one packet: of three packets within 3 ns the third finds no room.
    /// use serde_json::{from_value, json};
    ///
    /// let link = |name: &str, bps: Option<u64>| {
    ///     let rate: Vec<_> = bps.iter().map(|bps| json!({"at_ns": 0, "bps": bps})).collect();
    ///     json!({
    ///         "name": name, "rate": rate, "rate_period_ns": null, "delay_ns": 10_000_000,
    ///         "qdisc": {"kind": "pfifo", "limit": 1}, "loss": {"law": "none"},
    ///         "framing": {"header_bytes": 0, "overhead_bytes": 0, "minimum_bytes": 0, "cells": "none"},
    ///         "ring": null, "shaper": null, "sampled": true,
    ///     })
    /// };
    /// let capture = json!({"kind": "capture", "packets": [[0, 1500], [1, 1500], [2, 1500]],
    ///     "period_ns": 1_000_000_000});
    /// let scenario: sim::Scenario = from_value(json!({
    ///     "duration_ns": 100_000_000, "warmup_ns": 0, "seed": 1,
    ///     "links": [link("down", Some(12_000_000)), link("up", None)],
    ///     "flows": [{
    ///         "name": "capture", "group": 0, "path": [0], "back": [1], "path_extra_ns": 0,
    ///         "back_extra_ns": 0, "start_ns": 0, "stop_ns": null, "jitter_ns": 0, "ds": 0,
    ///         "traffic": capture,
    ///     }],
    ///     "record": {"queue_ns": 10_000_000, "flow_ns": 10_000_000, "packets": false, "headers": false},
    /// }))
    /// .expect("the description is complete");
    /// let mut run = sim::Sim::new(&scenario);
    /// while !run.run(1_000) {
    ///     // The caller may read a clock here, or stop.
    /// }
    /// assert_eq!(run.delivered_packets(), 2);
    /// let tables = run.into_tables();
    /// assert!(tables.iter().any(|table| table.name == "drops"));
    /// ```
    ///
    /// # Panics
    ///
    /// If a path names a link that does not exist.
    pub fn new(scenario: &Scenario) -> Sim {
        let links = scenario.links.len() as u32;
        let mut named = scenario.flows.iter().flat_map(|flow| flow.path.iter().chain(&flow.back));
        assert!(named.all(|&link| link < links), "a path names a link that does not exist");
        let addresses = OnceCell::new();
        let compute = || addresses::hosts(&scenario.flows, &scenario.links);
        let hosts = || addresses.get_or_init(compute).clone();
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
        let is_plain = |link: &Link<Slip>| {
            link.is_plain() && !link.qdisc().sees_acks() && !recorder.keeps_each()
        };
        let tunnels = scenario.flows.iter().any(|flow| flow.tunnel.is_some());
        let drives = net::in_order(scenario).into_iter().zip(&links).map(|(in_order, link)| {
            let plain = is_plain(link) && !tunnels;
            Drive { step: link.next_step(Time::ZERO), in_order, plain }
        });
        let drives: Vec<Drive> = drives.collect();
        let lookahead = Lookahead::new(scenario);
        let mut net = Net::new(scenario, &lookahead.order);
        let changes = lookahead.order.iter().map(|&link| drives[link as usize].step);
        net.links_due = Due::new(changes.collect());
        net.hosts_due = Due::new(hosts.iter().map(Host::source_deadline).collect());
        let plain = |link: u32| is_plain(&links[link as usize]);
        let in_order = net::reached_in_order(scenario, plain).into_iter().filter(|&it| plain(it));
        let leaves = in_order.filter_map(|link| Some((link, links[link as usize].leaf()?)));
        let leaves: Vec<(u32, Leaf<Slip>)> = leaves.collect();
        let leaf_links: Vec<u32> = leaves.iter().map(|(link, _)| *link).collect();
        let sampled = leaf_links.iter().any(|&link| scenario.links[link as usize].sampled);
        net.set_leaves(leaves);
        let counted = if leaf_links.is_empty() { Time::NEVER } else { Time::ZERO };
        let leaves = Leaves { links: leaf_links, sampled, counted };
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
            leaves,
            recorder,
            events: 0,
            finished: false,
        }
    }

    /// The time up to which the run has advanced.
    pub fn now(&self) -> Time {
        self.now.min(self.end)
    }

    /// Advances to the end, or until about `budget` further events have happened; returns true when
    /// the run is complete. Each window counts as `WINDOW_EVENTS` more, and each step of a link as
    /// one, so that a call also ends soon if no packet is sent for a long time.
    pub fn run(&mut self, budget: u64) -> bool {
        let pause_at = (self.events + self.net.link_steps).saturating_add(budget);
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
            if self.now.since(self.leaves.counted).0 > LEAVES_FOLLOW {
                self.count_leaves(Time(self.now.0 - 1));
            }
            if self.events + self.net.link_steps + windows >= pause_at {
                return false;
            }
        }
        true
    }

    /// Data packets delivered to their hosts so far.
    pub fn delivered_packets(&self) -> u64 {
        self.hosts.iter().map(|host| host.counters.received_packets).sum()
    }

    /// The present backlog of each link's queue.
    pub fn backlogs(&mut self) -> impl Iterator<Item = qdisc::Backlog> {
        if self.now > Time::ZERO {
            self.count_leaves(Time(self.now.0 - 1));
        }
        self.links.iter().map(Link::backlog)
    }

    /// The present congestion window of each flow, bytes; `None`: its sender has none.
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

    /// Runs each part once up to `until`.
    fn pass(&mut self, until: Time) {
        let Sim { hosts, browsers, net, inboxes, sacks, .. } = self;
        let events = move_hosts(hosts, until, (net, inboxes), sacks);
        for browser in browsers {
            if let Some(at) = browser.turn(hosts, until) {
                browser.connections.iter().for_each(|&host| net.hosts_due.hasten(host, at));
            }
        }
        self.events += events + self.move_links(until);
    }

    /// Runs all links up to `until`; returns the number of packets that arrived.
    #[inline(never)]
    fn move_links(&mut self, until: Time) -> u64 {
        let Sim { links, hosts, net, inboxes, recorder, sacks, .. } = self;
        let mut events = 0;
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
                // The next packet to arrive at a link may be one that it sends to itself.
                net.links_due.set(place, coming);
                let downstream = &mut Downstream { link: link as u32, net, recorder, hosts, sacks };
                let own = self.drives[link].move_link(&mut links[link], until, inbox, downstream);
                net.links_due.hasten(place, own);
            }
            net.links_due.settle(block, places);
        }
        events
    }

    // --- recording ---

    /// The time of the next record of the whole run: all events before the returned time must have
    /// happened.
    fn next_mark(&self) -> (Time, Mark) {
        let Samples { warm, flows, queues } = self.due;
        let behind = |at: Time| at + Span(1);
        let queues = (queues < self.end).then_some((behind(queues), Mark::Queues));
        let flows = (flows < self.end).then_some((flows, Mark::Flows));
        let ends = [(warm, Mark::Warm), (behind(self.end), Mark::End)];
        ends.into_iter().chain(queues).chain(flows).min().expect("there is an end")
    }

    /// Moves the links of leaves up to `last`.
    fn count_leaves(&mut self, last: Time) {
        let Sim { links, net, leaves, recorder, events, .. } = self;
        if leaves.counted > last {
            return;
        }
        for (&link, leaf) in leaves.links.iter().zip(&mut net.leaves) {
            let (sojourns, mut batch) = (&mut recorder.sojourns[link as usize], Batch::default());
            let left = |sojourn: Span| sojourns.add_to_batch(&mut batch, sojourn.0);
            *events += links[link as usize].count(leaf, last, left);
            sojourns.end_batch(batch);
        }
        leaves.counted = last + Span(1);
    }

    fn record(&mut self, mark: Mark) {
        match mark {
            Mark::Queues if self.leaves.sampled => self.count_leaves(self.due.queues),
            Mark::Warm if self.due.warm > Time::ZERO => {
                self.count_leaves(Time(self.due.warm.0 - 1));
            }
            Mark::End => self.count_leaves(self.end),
            _ => {}
        }
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
            // Rows that are due at this time end here, too, so that the rows after them add up to
            // the totals.
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
            // The last rows include the events of the end itself.
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
        // A ring's completions cause no event while no packet waits for them.
        links.iter_mut().for_each(|link| link.settle(now));
        recorder.sample_queues(links, now);
    }
}

/// Runs all hosts up to `until`; returns the number of events.
#[inline(never)]
fn move_hosts(
    hosts: &mut [Host],
    until: Time,
    (net, inboxes): (&mut Net, &mut [Inbox]),
    sacks: &mut SackPool,
) -> u64 {
    let mut events = 0;
    for (block, parts) in net.hosts_due.blocks() {
        if !net.hosts_due.in_block(block, until) {
            continue;
        }
        for index in parts.clone() {
            if net.hosts_due.at(index) < until {
                let host = &mut hosts[index];
                events += if host.is_exchange() {
                    move_exchange(host, index, until, (net, inboxes), sacks)
                } else {
                    move_host::<false>(host, index, until, (net, inboxes), sacks)
                };
            }
        }
        net.hosts_due.settle(block, parts);
    }
    events
}

/// Runs both ends of an exchange. A function of its own, so that the loops of other hosts keep
/// their state in registers.
#[cold]
#[inline(never)]
fn move_exchange(
    host: &mut Host,
    index: usize,
    until: Time,
    network: (&mut Net, &mut [Inbox]),
    sacks: &mut SackPool,
) -> u64 {
    move_host::<true>(host, index, until, network, sacks)
}

/// Runs both ends of a host up to `until`; returns the number of events. `EXCHANGE`: whether the
/// host is one.
#[inline]
fn move_host<const EXCHANGE: bool>(
    host: &mut Host,
    index: usize,
    until: Time,
    (net, inboxes): (&mut Net, &mut [Inbox]),
    sacks: &mut SackPool,
) -> u64 {
    let [there, back] = [0, 1].map(|direction| 2 * index as u32 + direction);
    let first_link = net.first_link(back, inboxes);
    let far_end = &mut End { lane: there, net, first_link };
    let (far, far_due) = if EXCHANGE {
        host.move_client(until, far_end, sacks)
    } else {
        host.move_far_end(until, far_end, sacks)
    };
    let first_link = net.first_link(there, inboxes);
    let source = &mut End { lane: back, net, first_link };
    let (near, near_due) = if EXCHANGE {
        host.move_server(until, source, sacks)
    } else {
        host.move_source(until, source, sacks)
    };
    // If the path to the far end crosses no link, the far end may have further packets.
    let due = far_due.min(near_due).min(net.lanes.first_arrives(there));
    net.hosts_due.set(index, due);
    far + near
}

/// The state of a link between windows.
struct Drive {
    /// The next change of its rate or of its discipline's parameters.
    step: Time,
    /// Whether arriving packets are put in order.
    in_order: bool,
    /// Whether the link is plain, neither its discipline nor the recorder reads the packets, and no
    /// flow has a tunnel.
    plain: bool,
}

impl Drive {
    /// Runs the link up to `until`; returns the time of its next own event.
    #[inline]
    fn move_link(
        &mut self,
        link: &mut Link<Slip>,
        until: Time,
        inbox: &mut Inbox,
        downstream: &mut Downstream<'_>,
    ) -> Time {
        let began = downstream.net.began;
        if self.in_order {
            inbox.put_in_order(began, |node| downstream.net.lanes.host(node));
        }
        let last = Time(until.0 - 1);
        if self.plain {
            let Downstream { link: index, net, recorder, hosts, sacks } = downstream;
            let Recorder { sojourns, verdicts, .. } = &mut **recorder;
            let window = PlainWindow {
                link: *index,
                arrivals: inbox.packets(began),
                net,
                sojourns: &mut sojourns[*index as usize],
                batch: Batch::default(),
                verdicts,
                hosts,
                sacks,
            };
            link.run((began, last), window);
            inbox.clear();
            return link.next_event().unwrap_or(Time::NEVER);
        }
        let sees_acks = link.qdisc().sees_acks();
        for (node, at) in inbox.packets(began) {
            self.take_steps(link, at, downstream);
            let parcel = downstream.net.lanes.packet(node);
            let packet = parcel.slip(node, downstream.net.tunnels.of(parcel.flow));
            if sees_acks && let Some(ack) = downstream.sacks.ack_view(parcel) {
                link.qdisc_mut().sees(ack);
            }
            link.send(packet, at, downstream);
        }
        inbox.clear();
        self.take_steps(link, last, downstream);
        link.advance(last, downstream);
        link.next_event().unwrap_or(Time::NEVER).min(self.step)
    }

    /// Carries out the link's steps up to `now`.
    #[inline]
    fn take_steps(&mut self, link: &mut Link<Slip>, now: Time, downstream: &mut Downstream<'_>) {
        while self.step <= now {
            link.advance(Time(self.step.0 - 1), downstream);
            link.step(self.step, downstream);
            downstream.net.link_steps += 1;
            self.step = link.next_step(self.step);
        }
    }
}

/// The parts that receive a link's packets.
struct Downstream<'a> {
    link: u32,
    net: &'a mut Net,
    recorder: &'a mut Recorder,
    hosts: &'a mut [Host],
    sacks: &'a mut SackPool,
}

impl Outlet<Slip> for Downstream<'_> {
    #[inline]
    fn departed(&mut self, departure: Departure<Slip>) {
        self.recorder.departure(self.link, &departure);
        if let Some(rows) = self.recorder.headers() {
            let packet = self.net.lanes.packet(departure.packet.body.node);
            let left = (self.link, departure.packet.ds, departure.dequeued);
            let host = &self.hosts[departure.packet.flow as usize / 2];
            rows.push(headers::row(packet, left, host, self.sacks));
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

    #[inline]
    fn decided(&mut self, verdict: Verdict<Slip>, at: Time) {
        let Downstream { link, net, recorder, hosts, sacks } = self;
        decided((*link, verdict, at), net, &mut recorder.verdicts, (hosts, sacks));
    }
}

/// A link drops or marks a packet.
#[cold]
fn decided(
    (link, verdict, at): (u32, Verdict<Slip>, Time),
    net: &mut Net,
    verdicts: &mut Verdicts,
    (hosts, sacks): (&mut [Host], &mut SackPool),
) {
    verdicts.add(link, &verdict, at);
    if let Verdict::Dropped(packet, _) = verdict {
        let packet = net.lanes.take(packet.body.node);
        sacks.release(&packet);
        hosts[(packet.flow / 2) as usize].dropped(&packet);
    }
}

/// The packets of a window at a plain link, in a scenario without tunnels.
struct PlainWindow<'a, I> {
    link: u32,
    arrivals: I,
    net: &'a mut Net,
    sojourns: &'a mut Sojourns,
    batch: Batch,
    verdicts: &'a mut Verdicts,
    hosts: &'a mut [Host],
    sacks: &'a mut SackPool,
}

impl<I: Iterator<Item = (u32, Time)>> Window<Slip> for PlainWindow<'_, I> {
    #[inline(always)]
    fn arrival(&mut self) -> Option<(Packet<Slip>, Time)> {
        let (node, at) = self.arrivals.next()?;
        Some((self.net.lanes.packet(node).slip(node, NO_TUNNEL), at))
    }

    #[inline]
    fn end(self) {
        self.sojourns.end_batch(self.batch);
    }
}

impl<I> Outlet<Slip> for PlainWindow<'_, I> {
    #[inline(always)]
    fn departed(&mut self, departure: Departure<Slip>) {
        let Departure { dequeued, arrives, packet, .. } = departure;
        self.sojourns.add_to_batch(&mut self.batch, dequeued.0 - packet.enqueued.0);
        self.net.cross(packet.body.node, packet.flow, packet.ds, arrives);
    }

    fn doubled(&mut self, _: &Packet<Slip>, _: Time) {
        unreachable!("a plain wire doubles no packet")
    }

    #[inline(always)]
    fn decided(&mut self, verdict: Verdict<Slip>, at: Time) {
        let PlainWindow { link, net, verdicts, hosts, sacks, .. } = self;
        decided((*link, verdict, at), net, verdicts, (hosts, sacks));
    }
}

/// An end of a flow's path: packets that arrive at it are in a lane.
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

    #[inline(always)]
    fn send(&mut self, packet: Parcel, now: Time) {
        self.net.leave(packet, now, &mut self.first_link);
    }
}

/// The link before its first packet. `hosts` is called only for disciplines that share by host.
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
    if let Some(numbers) = Qdisc::<B>::hosts(&mut qdisc) {
        *numbers = hosts();
    }
    let mut link = Link::new(LinkParts {
        qdisc,
        qdisc_steps: spec.qdisc_steps.clone(),
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
