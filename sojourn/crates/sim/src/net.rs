//! The network between hosts and links: routes, packets in flight, and how far ahead of each other
//! the parts of a scenario may run.

use crate::addresses::Tunnels;
use crate::due::Due;
use crate::inbox::{self, Inbox, Sender};
use crate::jitter::Jitter;
use crate::lanes::Lanes;
use crate::payload::{Parcel, Slip};
use crate::scenario::{LinkSpec, Scenario, Traffic};
use link::Leaf;
use qdisc::{DsField, Params};
use std::collections::{BTreeMap, BTreeSet};
use units::{Rate, Span, Time};

/// The route of packets of one direction. A flow has two: its packets, then its replies. The lane
/// to the host at the end has the direction's own number.
struct Route {
    /// The link whose inbox they enter at once; NO_LINK: there is none, or they wait before it.
    inbox: u32,
    /// Index of its first link in `Net::hops`.
    first: u32,
    /// The number of its links.
    len: u32,
    /// Propagation after the last link.
    extra: Span,
    /// The kind of sender.
    sender: Sender,
    /// The random delay with which packets leave their host, and the lane to the first link, in
    /// which they wait until that delay is over.
    jitter: Option<Box<(Jitter, u32)>>,
}

/// The lane to a link that has no link before it.
const NO_LANE: u32 = u32::MAX;
const NO_LINK: u32 = u32::MAX;
const NO_LEAF: u32 = u32::MAX;

/// The inbox of the link that a host's packets enter at once.
pub struct FirstLink<'a> {
    link: u32,
    sender: Sender,
    inbox: &'a mut Inbox,
}

/// A link of a route.
#[derive(Clone, Copy)]
struct Hop {
    link: u32,
    /// The lane from the link before it.
    lane: u32,
}

/// The state of the network between hosts and links.
pub struct Net {
    /// The tunnels of the flows.
    pub tunnels: Tunnels,
    routes: Vec<Route>,
    hops: Vec<Hop>,
    pub lanes: Lanes,
    /// The start of this window.
    pub began: Time,
    /// The time of the next event at each host, at either end.
    pub hosts_due: Due,
    /// The time of the next event at each link, by its place in the order of links.
    pub links_due: Due,
    /// The place of each link.
    places: Vec<u32>,
    /// The lanes to each link.
    lanes_to: Vec<Vec<u32>>,
    /// Steps of links, of a rate or of a discipline's parameters, so far.
    pub link_steps: u64,
    /// The leaves. A leaf computes a packet's arrival at once, without a turn in the window.
    pub leaves: Vec<Leaf<Slip>>,
    /// The leaf of each link; NO_LEAF.
    leaf_of: Vec<u32>,
}

impl Net {
    /// Links run in `order`.
    pub fn new(scenario: &Scenario, order: &[u32]) -> Net {
        let links = scenario.links.len();
        let mut net = Net {
            tunnels: Tunnels::new(&scenario.flows),
            routes: Vec::new(),
            hops: Vec::new(),
            lanes: Lanes::new(),
            began: Time::ZERO,
            hosts_due: Due::new(vec![Time::NEVER; scenario.flows.len()]),
            links_due: Due::new(vec![Time::NEVER; links]),
            places: vec![0; links],
            lanes_to: vec![Vec::new(); links],
            link_steps: 0,
            leaves: Vec::new(),
            leaf_of: vec![NO_LEAF; links],
        };
        for (place, &link) in order.iter().enumerate() {
            net.places[link as usize] = place as u32;
        }
        (0..2 * scenario.flows.len()).for_each(|_| _ = net.lanes.open());
        let mut lanes = BTreeMap::new();
        for flow in &scenario.flows {
            let sender = match flow.traffic.tcp() {
                Some(_) => Sender::Kernel,
                None => Sender::Program,
            };
            let ways = [(&flow.path, flow.path_extra_ns), (&flow.back, flow.back_extra_ns)];
            for ((path, extra), jitter) in ways.into_iter().zip(Jitter::new(flow, scenario.seed)) {
                let extra = Span(extra);
                let first = net.hops.len() as u32;
                let mut before = None;
                for &link in path {
                    let lane = before.map_or(NO_LANE, |from| {
                        *lanes.entry((from, link)).or_insert_with(|| net.open_lane_to(link))
                    });
                    net.hops.push(Hop { link, lane });
                    before = Some(link);
                }
                let jitter = jitter.map(|jitter| {
                    Box::new((jitter, path.first().map_or(NO_LANE, |&to| net.open_lane_to(to))))
                });
                let inbox = path.first().filter(|_| jitter.is_none()).map_or(NO_LINK, |&link| link);
                let len = path.len() as u32;
                net.routes.push(Route { inbox, first, len, extra, sender, jitter });
            }
        }
        net
    }

    /// These links are leaves from now on.
    pub fn set_leaves(&mut self, leaves: Vec<(u32, Leaf<Slip>)>) {
        for (link, leaf) in leaves {
            self.leaf_of[link as usize] = self.leaves.len() as u32;
            self.leaves.push(leaf);
        }
        // A packet enters no leaf's inbox.
        for route in &mut self.routes {
            if self.leaf_of.get(route.inbox as usize).is_some_and(|leaf| *leaf != NO_LEAF) {
                route.inbox = NO_LINK;
            }
        }
    }

    fn open_lane_to(&mut self, link: u32) -> u32 {
        let lane = self.lanes.open();
        self.lanes_to[link as usize].push(lane);
        lane
    }

    /// The inbox that packets of this direction enter at once, if there is one.
    #[inline]
    pub fn first_link<'a>(
        &self,
        direction: u32,
        inboxes: &'a mut [Inbox],
    ) -> Option<FirstLink<'a>> {
        let Route { inbox: link, sender, .. } = self.routes[direction as usize];
        let inbox = inboxes.get_mut(link as usize)?;
        inbox.next_host();
        Some(FirstLink { link, sender, inbox })
    }

    /// A packet leaves its host.
    #[inline(always)]
    pub fn leave(&mut self, packet: Parcel, now: Time, first_link: &mut Option<FirstLink<'_>>) {
        let node = self.lanes.place(packet);
        let Some(FirstLink { link, sender, inbox }) = first_link else {
            self.leave_otherwise(node, packet.flow, now);
            return;
        };
        if inbox.push(now.0 - self.began.0, *sender, node) {
            self.links_due.hasten(self.places[*link as usize] as usize, now);
        }
    }

    /// A packet leaves late, or enters a leaf, or crosses no link.
    #[inline(never)]
    fn leave_otherwise(&mut self, node: u32, flow: u32, now: Time) {
        let route = &mut self.routes[flow as usize];
        let (at, lane) = match &mut route.jitter {
            Some(jitter) => (jitter.0.leaves_at(now), jitter.1),
            None => (now, NO_LANE),
        };
        self.go_on(node, flow, 0, lane, at);
    }

    /// A packet continues at `at` with the `hop`th link of its route, in `lane` if that is the
    /// first link, or to its host.
    fn go_on(&mut self, node: u32, flow: u32, hop: u32, lane: u32, mut at: Time) {
        let Route { first, len, extra, .. } = self.routes[flow as usize];
        for hop in hop..len {
            let packet = self.lanes.packet(node);
            packet.hop = hop as u8;
            let next = self.hops[(first + hop) as usize];
            let Some(leaf) = self.leaves.get_mut(self.leaf_of[next.link as usize] as usize) else {
                let lane = if hop == 0 { lane } else { next.lane };
                return self.arrive_at_link(node, at, Hop { lane, ..next });
            };
            at = leaf.pass(packet.slip(node, 0), at);
        }
        self.arrive_at_host(node, flow, at + extra);
    }

    /// A packet has left a link. It continues to the next link, or by propagation to its host.
    #[inline(always)]
    pub fn cross(&mut self, node: u32, flow: u32, ds: DsField, arrives: Time) {
        let route = &self.routes[flow as usize];
        if route.len > 1 {
            return self.cross_one_of_many(node, flow, ds, arrives);
        }
        // On a route of one link nobody reads how many links its packets have crossed.
        let at = arrives + route.extra;
        if self.lanes.push_with(ds, flow, at, node) {
            self.hosts_due.hasten((flow / 2) as usize, at);
        }
    }

    /// `cross` on a route of several links.
    fn cross_one_of_many(&mut self, node: u32, flow: u32, ds: DsField, arrives: Time) {
        let packet = self.lanes.packet(node);
        packet.ds = ds;
        let hop = u32::from(packet.hop) + 1;
        self.go_on(node, flow, hop, NO_LANE, arrives);
    }

    #[inline]
    fn arrive_at_host(&mut self, node: u32, flow: u32, at: Time) {
        if self.lanes.push(flow, at, node) {
            self.hosts_due.hasten((flow / 2) as usize, at);
        }
    }

    #[inline]
    fn arrive_at_link(&mut self, node: u32, at: Time, hop: Hop) {
        if self.lanes.push(hop.lane, at, node) {
            self.links_due.hasten(self.places[hop.link as usize] as usize, at);
        }
    }

    /// Moves packets that arrive at a link before `until`, from other wires or late from its hosts,
    /// into its inbox. Returns the time at which the next packet arrives.
    #[inline]
    pub fn collect(&mut self, link: usize, until: Time, inbox: &mut Inbox) -> Time {
        let mut next = Time::NEVER;
        for &lane in &self.lanes_to[link] {
            let mut at = self.lanes.first_arrives(lane);
            while at < until {
                let node = self.lanes.pop(lane);
                let packet = self.lanes.packet(node);
                let sender = match packet.hop {
                    0 => self.routes[packet.flow as usize].sender,
                    _ => Sender::Wire,
                };
                inbox.next_host();
                inbox.push(at.0 - self.began.0, sender, node);
                at = self.lanes.first_arrives(lane);
            }
            next = next.min(at);
        }
        next
    }
}

/// The order of links in a window, and the longest window.
pub struct Lookahead {
    /// Every link once.
    pub order: Vec<u32>,
    /// The longest window. A packet from one part to a part that runs earlier in a window takes at
    /// least this long.
    pub window: Span,
}

impl Lookahead {
    /// In a window hosts run first, the far end of each before its source, then links. A link runs
    /// after the links that lead to it, if possible.
    pub fn new(scenario: &Scenario) -> Lookahead {
        let takes: Vec<Span> = scenario.links.iter().map(least_time).collect();
        let mut window = Span(u64::MAX);
        let mut leads_to = BTreeSet::new();
        for flow in &scenario.flows {
            let replies = flow.traffic.packet_bytes().1.is_some();
            let back = replies.then_some((&flow.back, flow.back_extra_ns));
            for (path, extra) in [(&flow.path, flow.path_extra_ns)].into_iter().chain(back) {
                leads_to.extend(path.windows(2).map(|pair| (pair[0] as usize, pair[1] as usize)));
                if let Some(&last) = path.last() {
                    window = window.min(takes[last as usize] + Span(extra));
                }
            }
            if flow.path.is_empty() {
                window = window.min(Span(flow.path_extra_ns));
            }
        }
        let place = places(takes.len(), &leads_to);
        let circles = leads_to.iter().filter(|(from, to)| place[*to] <= place[*from]);
        window = circles.fold(window, |window, &(from, _)| window.min(takes[from]));
        let mut order: Vec<u32> = (0..takes.len() as u32).collect();
        order.sort_unstable_by_key(|&link| place[link as usize]);
        let window = window.clamp(Span(1), Span(inbox::LONGEST));
        Lookahead { order, window }
    }
}

/// The place of each link after those that lead to it; in a circle the lowest index is first.
fn places(links: usize, leads_to: &BTreeSet<(usize, usize)>) -> Vec<usize> {
    let mut before = vec![0; links];
    leads_to.iter().for_each(|&(_, to)| before[to] += 1);
    let mut place = vec![usize::MAX; links];
    // `extend`, not `collect`: `collect` sorts first, and the code of that sort would make the
    // lab's page larger.
    let (mut ready, mut unplaced) = (BTreeSet::new(), BTreeSet::new());
    ready.extend((0..links).filter(|&link| before[link] == 0));
    unplaced.extend(0..links);
    for at in 0..links {
        let next = ready.pop_first().or_else(|| unplaced.first().copied()).expect("one is left");
        unplaced.remove(&next);
        place[next] = at;
        for &(_, to) in leads_to.range((next, 0)..(next + 1, 0)) {
            before[to] -= 1;
            if before[to] == 0 && unplaced.contains(&to) {
                ready.insert(to);
            }
        }
    }
    place
}

/// The least time that any packet takes from a link's queue to its far end.
fn least_time(link: &LinkSpec) -> Span {
    let fastest = link.rate.iter().map(|step| step.bps).max();
    let transmission = fastest.and_then(|bps| Rate(bps).time_for(link.framing.wire_bytes(1)));
    link.impairments.least_delay(link.delay_ns) + transmission.unwrap_or(Span::ZERO)
}

/// Whether a discipline may hold a packet back while its link is free to send it.
fn may_hold(qdisc: &Params) -> bool {
    use Params::{Bfifo, Codel, FqCodel, Pfifo, PfifoFast, PfifoHeadDrop};
    !matches!(qdisc, Pfifo(_) | Bfifo(_) | PfifoHeadDrop(_) | PfifoFast(_) | Codel(_) | FqCodel(_))
}

/// For each link, whether arriving packets are put in order. That is unnecessary if no packet at
/// the link can affect another and packets are not recorded: packets of one flow stay in order
/// anyway.
pub fn in_order(scenario: &Scenario) -> Vec<bool> {
    let paths = scenario.flows.iter().flat_map(|flow| [&flow.path, &flow.back]);
    let mut leads_on: BTreeSet<u32> = BTreeSet::new();
    leads_on.extend(
        paths.flat_map(|path| path.split_last().map_or(&[][..], |(_, before)| before)).copied(),
    );
    let meets = |(index, link): (usize, &LinkSpec)| {
        scenario.record.packets
            || !link.rate.is_empty()
            || link.loss != link::Loss::None
            || !link.impairments.is_none()
            || link.ring.is_some()
            || link.shaper.is_some()
            || link.police.is_some()
            || link.replay_window.is_some()
            || may_hold(&link.qdisc)
            || leads_on.contains(&(index as u32))
    };
    scenario.links.iter().enumerate().map(meets).collect()
}

/// The links that packets reach in order of time: they come from one direction of one host, or
/// from one link that keeps their order (`plain`). None if there are web pages: a page is over at
/// the end of a window, so windows must not change.
pub fn reached_in_order(scenario: &Scenario, plain: impl Fn(u32) -> bool) -> Vec<u32> {
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Before {
        Direction(usize),
        Link(u32),
        Several,
    }
    let mut before: Vec<Option<Before>> = vec![None; scenario.links.len()];
    for (number, flow) in scenario.flows.iter().enumerate() {
        if matches!(flow.traffic, Traffic::Transfers { objects: Some(_), .. }) {
            return Vec::new();
        }
        for (way, path) in [&flow.path, &flow.back].into_iter().enumerate() {
            let mut from = match flow.jitter_ns {
                0 => Before::Direction(2 * number + way),
                _ => Before::Several,
            };
            for &link in path {
                let known = before[link as usize].get_or_insert(from);
                if *known != from {
                    *known = Before::Several;
                }
                from = if plain(link) { Before::Link(link) } else { Before::Several };
            }
        }
    }
    let one = |link: &u32| before[*link as usize].is_some_and(|known| known != Before::Several);
    (0..scenario.links.len() as u32).filter(one).collect()
}
