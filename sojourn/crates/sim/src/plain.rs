//! The simulator with a list of events, one after another, in the order that lib.rs describes.
//! Simple and slow, it is the reference for the windows.

use crate::ends::Path;
use crate::headers;
use crate::inbox::{Sender, lot};
use crate::jitter::Jitter;
use crate::payload::{Parcel, Slip};
use crate::{Mark, Scenario, Sim, Traffic};
use link::{Departure, Outlet};
use qdisc::{Packet, Qdisc, Verdict};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use tables::Table;
use units::{Span, Time};

/// The parts that run in a pass, in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    /// Samples before all other events of their time.
    Before(Mark),
    FarEnd(u32),
    Source(u32),
    /// By its place in the order of links.
    Link(u32),
    /// A sample after all other events of its time.
    Behind,
}

/// The order within a turn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// A host's timer, a change of a link's rate, or a sample.
    First,
    /// A packet: its sender, its lot, and its origin.
    Packet(u32, u32, u64),
    /// The transmitter is free, or the gate may be open.
    Dequeue,
}

/// The order of events: time, pass, turn, step, then order of entry.
type Key = (Time, u32, Turn, Step, u64);

struct Plain<'a> {
    scenario: &'a Scenario,
    sim: Sim,
    /// The events. An event with a packet has the packet's index in `packets`.
    events: BinaryHeap<Reverse<(Key, Option<usize>)>>,
    packets: Vec<Parcel>,
    /// Free entries of `packets`.
    free: Vec<usize>,
    entered: u64,
    /// The last time entered for each waiting part: the same time is not entered twice.
    woken: BTreeMap<(Turn, Step), Time>,
    /// The present event.
    now: (Time, u32, Turn),
    places: Vec<u32>,
    jitters: Vec<Option<Jitter>>,
    /// A number for each wire between two links, and for each way of a direction's late packets to
    /// their first link. The key is the start of the way and the link to which it leads.
    ways: BTreeMap<(Origin, u32), u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    Link(u32),
    Late(u32),
}

/// The packet that arrives at a host, if there is one, and the packets that the host sends.
struct Moment {
    now: Time,
    arriving: Option<Parcel>,
    sent: Vec<Parcel>,
}

impl Path for Moment {
    fn first_arrives(&self) -> Time {
        if self.arriving.is_some() { self.now } else { Time::NEVER }
    }

    fn receive(&mut self) -> Parcel {
        self.arriving.take().expect("one arrives")
    }

    fn send(&mut self, packet: Parcel, now: Time) {
        assert_eq!(now, self.now);
        self.sent.push(packet);
    }
}

/// The events of a link's packets, in order: drops of one instant are recorded in order.
#[derive(Default)]
struct LinkEvents(Vec<(Outcome, Time)>);

enum Outcome {
    /// The next departure arrives a second time.
    Doubled(Time),
    Departed(Departure<Slip>),
    Decided(Verdict<Slip>),
}

impl Outlet<Slip> for LinkEvents {
    fn departed(&mut self, departure: Departure<Slip>) {
        let at = departure.dequeued;
        self.0.push((Outcome::Departed(departure), at));
    }

    fn doubled(&mut self, _: &Packet<Slip>, arrives: Time) {
        self.0.push((Outcome::Doubled(arrives), Time::NEVER));
    }

    fn decided(&mut self, verdict: Verdict<Slip>, at: Time) {
        self.0.push((Outcome::Decided(verdict), at));
    }
}

impl<'a> Plain<'a> {
    fn new(scenario: &'a Scenario) -> Plain<'a> {
        let sim = Sim::new(scenario);
        let mut places = vec![0; scenario.links.len()];
        for (place, &link) in sim.lookahead.order.iter().enumerate() {
            places[link as usize] = place as u32;
        }
        let (mut jitters, mut ways) = (Vec::new(), BTreeMap::new());
        for flow in &scenario.flows {
            for (path, jitter) in
                [&flow.path, &flow.back].into_iter().zip(Jitter::new(flow, scenario.seed))
            {
                for pair in path.windows(2) {
                    let number = ways.len() as u64;
                    ways.entry((Origin::Link(pair[0]), pair[1])).or_insert(number);
                }
                if let (Some(&first), true) = (path.first(), jitter.is_some()) {
                    let number = ways.len() as u64;
                    ways.insert((Origin::Late(jitters.len() as u32), first), number);
                }
                jitters.push(jitter);
            }
        }
        let now = (Time::ZERO, 0, Turn::Before(Mark::Warm));
        let (events, packets, free) = (BinaryHeap::new(), Vec::new(), Vec::new());
        let mut plain = Plain {
            scenario,
            sim,
            events,
            packets,
            free,
            entered: 0,
            woken: BTreeMap::new(),
            now,
            places,
            jitters,
            ways,
        };
        plain.enter(Time(scenario.warmup_ns), Turn::Before(Mark::Warm));
        plain.enter_sample(Mark::Flows);
        plain.enter_sample(Mark::Queues);
        for link in 0..scenario.links.len() {
            plain.enter_link_step(link, Time::ZERO);
        }
        for (host, flow) in scenario.flows.iter().enumerate() {
            let first = match flow.traffic {
                Traffic::Requests { .. } => Turn::FarEnd(host as u32),
                _ => Turn::Source(host as u32),
            };
            plain.enter(Time(flow.start_ns), first);
        }
        plain
    }

    fn tables(mut self) -> Vec<Table> {
        while let Some(Reverse(((at, pass, turn, step, _), packet))) = self.events.pop() {
            if at > self.sim.end {
                break;
            }
            self.now = (at, pass, turn);
            if packet.is_none() && self.woken.get(&(turn, step)) == Some(&at) {
                self.woken.remove(&(turn, step));
            }
            self.free.extend(packet);
            let packet = packet.map(|place| self.packets[place]);
            match turn {
                Turn::Before(mark) => {
                    self.sim.record(mark);
                    self.enter_sample(mark);
                }
                Turn::Behind => {
                    self.sim.record(Mark::Queues);
                    self.enter_sample(Mark::Queues);
                }
                Turn::FarEnd(host) | Turn::Source(host) => self.host(host, packet),
                Turn::Link(place) => {
                    let link = self.sim.lookahead.order[place as usize] as usize;
                    self.link(link, step, packet);
                }
            }
        }
        self.sim.record(Mark::End);
        self.sim.into_tables()
    }

    fn host(&mut self, index: u32, arriving: Option<Parcel>) {
        let (now, _, turn) = self.now;
        let mut moment = Moment { now, arriving, sent: Vec::new() };
        let Sim { hosts, sacks, .. } = &mut self.sim;
        let host = &mut hosts[index as usize];
        let (_, due) = match turn {
            Turn::FarEnd(_) if host.is_exchange() => {
                host.move_client(now + Span(1), &mut moment, sacks)
            }
            Turn::FarEnd(_) => host.move_far_end(now + Span(1), &mut moment, sacks),
            _ if host.is_exchange() => host.move_server(now + Span(1), &mut moment, sacks),
            _ => host.move_source(now + Span(1), &mut moment, sacks),
        };
        self.enter(due, turn);
        for packet in moment.sent {
            let flow = packet.flow as usize;
            let late = self.jitters[flow].as_mut().map(|jitter| jitter.leaves_at(now));
            let (path, extra) = self.path(packet.flow);
            let Some(&first) = path.first() else {
                self.arrive(packet, late.unwrap_or(now) + extra);
                continue;
            };
            let sender = match self.scenario.flows[flow / 2].traffic.tcp() {
                Some(_) => Sender::Kernel,
                None => Sender::Program,
            };
            // Packets that leave at once are ordered by host, the far end before the source. Late
            // packets follow, by the number of their way.
            let origin = match late {
                None => (packet.flow ^ 1).into(),
                Some(_) => 1 << 32 | self.ways[&(Origin::Late(packet.flow), first)],
            };
            let at = late.unwrap_or(now);
            self.reach(
                first,
                packet,
                at,
                Step::Packet(sender as u32, lot(packet.flow / 2, at), origin),
            );
        }
    }

    fn link(&mut self, index: usize, step: Step, packet: Option<Parcel>) {
        let now = self.now.0;
        let Sim { links, net, sacks, .. } = &mut self.sim;
        let link = &mut links[index];
        let mut events = LinkEvents::default();
        match packet {
            Some(packet) => {
                let node = net.lanes.place(packet);
                if let Some(ack) = sacks.ack_view(&packet) {
                    link.qdisc_mut().sees(ack);
                }
                link.send(packet.slip(node, net.tunnels.of(packet.flow)), now, &mut events);
            }
            None if step == Step::First => link.step(now, &mut events),
            None => link.advance(now, &mut events),
        }
        if step == Step::First {
            self.enter_link_step(index, now);
        }
        let mut again = None;
        for (outcome, at) in events.0 {
            assert!(at == now || at == Time::NEVER, "a link was called late");
            match outcome {
                Outcome::Doubled(arrives) => again = Some(arrives),
                Outcome::Departed(departure) => self.departed(index, departure, again.take()),
                Outcome::Decided(verdict) => self.decided(index, verdict),
            }
        }
        let next = self.sim.links[index].next_event().unwrap_or(Time::NEVER);
        let turn = Turn::Link(self.places[index]);
        self.enter_step(next, turn, Step::Dequeue, None, true);
    }

    fn departed(&mut self, link: usize, departure: Departure<Slip>, again: Option<Time>) {
        let Sim { recorder, net, sacks, hosts, .. } = &mut self.sim;
        recorder.departure(link as u32, &departure);
        if let Some(rows) = recorder.headers() {
            let packet = net.lanes.packet(departure.packet.body.node);
            let left = (link as u32, departure.packet.ds, departure.dequeued);
            let host = &hosts[departure.packet.flow as usize / 2];
            rows.push(headers::row(packet, left, host, sacks));
        }
        if let Some(cause) = departure.lost {
            self.decided(link, Verdict::Dropped(departure.packet, cause));
            return;
        }
        let mut packet = net.lanes.take(departure.packet.body.node);
        packet.ds = departure.packet.ds;
        packet.hop += 1;
        if let Some(again) = again {
            packet.mark_twin();
            let mut copy = packet;
            sacks.share(&mut copy);
            self.cross(link, copy, again);
        }
        self.cross(link, packet, departure.arrives);
    }

    fn cross(&mut self, link: usize, packet: Parcel, arrives: Time) {
        let (path, extra) = self.path(packet.flow);
        match path.get(usize::from(packet.hop)) {
            None => self.arrive(packet, arrives + extra),
            Some(&next) => {
                let way = 1 << 32 | self.ways[&(Origin::Link(link as u32), next)];
                let step = Step::Packet(Sender::Wire as u32, lot(packet.flow / 2, arrives), way);
                self.reach(next, packet, arrives, step);
            }
        }
    }

    fn decided(&mut self, link: usize, verdict: Verdict<Slip>) {
        let Sim { recorder, net, sacks, hosts, .. } = &mut self.sim;
        recorder.verdicts.add(link as u32, &verdict, self.now.0);
        if let Verdict::Dropped(packet, _) = verdict {
            let packet = net.lanes.take(packet.body.node);
            sacks.release(&packet);
            hosts[packet.flow as usize / 2].dropped(&packet);
        }
    }

    fn path(&self, flow: u32) -> (&'a [u32], Span) {
        let spec = &self.scenario.flows[flow as usize / 2];
        if flow.is_multiple_of(2) {
            (&spec.path, Span(spec.path_extra_ns))
        } else {
            (&spec.back, Span(spec.back_extra_ns))
        }
    }

    fn arrive(&mut self, packet: Parcel, at: Time) {
        let host = packet.flow / 2;
        let back = !packet.flow.is_multiple_of(2);
        let turn = if back { Turn::Source(host) } else { Turn::FarEnd(host) };
        self.enter_step(at, turn, Step::Packet(0, 0, 0), Some(packet), false);
    }

    fn reach(&mut self, link: u32, packet: Parcel, at: Time, step: Step) {
        let turn = Turn::Link(self.places[link as usize]);
        self.enter_step(at, turn, step, Some(packet), false);
    }

    fn enter_link_step(&mut self, link: usize, now: Time) {
        let change = self.sim.links[link].next_step(now);
        self.enter(change, Turn::Link(self.places[link]));
    }

    fn enter_sample(&mut self, mark: Mark) {
        let (at, turn) = match mark {
            Mark::Flows => (self.sim.due.flows, Turn::Before(mark)),
            Mark::Queues => (self.sim.due.queues, Turn::Behind),
            Mark::Warm | Mark::End => return,
        };
        if at < self.sim.end {
            self.enter(at, turn);
        }
    }

    fn enter(&mut self, at: Time, turn: Turn) {
        self.enter_step(at, turn, Step::First, None, true);
    }

    /// Enters an event. An event that is due now runs in this pass if its turn is later in the
    /// pass, or if its turn is the present one and `own` is true. Otherwise it runs in the next
    /// pass.
    fn enter_step(&mut self, at: Time, turn: Turn, step: Step, packet: Option<Parcel>, own: bool) {
        let (now, pass, current) = self.now;
        let pass = match at == now {
            true if turn == Turn::Behind => u32::MAX,
            true => pass + u32::from(turn < current || (turn == current && !own)),
            false if turn == Turn::Behind => u32::MAX,
            false => 0,
        };
        if packet.is_none() && at > now && self.woken.insert((turn, step), at) == Some(at) {
            return;
        }
        let place = packet.map(|packet| {
            let place = self.free.pop().unwrap_or_else(|| {
                self.packets.push(packet);
                self.packets.len() - 1
            });
            self.packets[place] = packet;
            place
        });
        self.entered += 1;
        let key = (at, pass, turn, step, self.entered);
        self.events.push(Reverse((key, place)));
    }
}

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/common/scenarios.rs"]
mod scenarios;

use crate::FlowSpec;
use common::{MS, bulk, flow, link, reno};
use proptest::prelude::*;
use qdisc::{Params, TbfLinkLayer, TbfParams};

/// The first column that differs, except the engine's own. Columns are compared as text, in which
/// NaN equals NaN.
fn difference(left: &[Table], right: &[Table]) -> Option<String> {
    let tables = left.iter().zip(right).filter(|(table, _)| table.name != "engine");
    let mut columns =
        tables.flat_map(|(a, b)| a.columns.iter().zip(&b.columns).map(|pair| (a.name, pair)));
    columns.find_map(|(table, ((name, a), (_, b)))| {
        let (a, b) = (format!("{a:?}"), format!("{b:?}"));
        (a != b).then(|| format!("{table}.{name}: {a}\nand: {b}"))
    })
}

/// Half of the scenarios record no packets. Without a record, the simulator need not sort the
/// packets of a link on which no two meet.
fn recorded_or_not(mut scenario: Scenario) -> Scenario {
    scenario.record.packets = scenario.seed.is_multiple_of(2);
    scenario.record.headers = scenario.record.packets;
    scenario
}

/// Replaces pages by transfers. The earliest start of a page depends on the windows (`pages`),
/// which this simulator does not have.
fn without_pages(mut scenario: Scenario) -> Scenario {
    for flow in &mut scenario.flows {
        if let Traffic::Transfers { objects, .. } = &mut flow.traffic {
            *objects = None;
        }
    }
    scenario
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn simulating_in_windows_changes_no_result(scenario in scenarios::any_scenario().prop_map(recorded_or_not)) {
        let scenario = without_pages(scenario);
        let tables = common::run(&scenario).0;
        prop_assert_eq!(difference(&tables, &Plain::new(&scenario).tables()), None);
    }

    #[test]
    fn simulating_in_windows_changes_no_result_at_busy_instants(
        scenario in scenarios::any_maze().prop_map(recorded_or_not),
    ) {
        let scenario = without_pages(scenario);
        let tables = common::run(&scenario).0;
        prop_assert_eq!(difference(&tables, &Plain::new(&scenario).tables()), None);
    }
}

/// Two flows over a bottleneck, each behind an access link that never drops.
fn behind_access_links() -> Scenario {
    let endless = || Params::Pfifo(qdisc::FifoParams { limit: u32::MAX.into() });
    let access = |name: &str| link(name, 20_000_000, 0, endless());
    let links = vec![
        link("bottleneck", 8_000_000, 3 * MS, Params::Pfifo(qdisc::FifoParams { limit: 30 })),
        link("back", 8_000_000, 3 * MS, Params::Pfifo(qdisc::FifoParams { limit: 30 })),
        access("one"),
        access("one-back"),
        access("two"),
        access("two-back"),
    ];
    let over = |name, first: u32, seconds: u64| FlowSpec {
        path: vec![first, 0],
        back: vec![1, first + 1],
        start_ns: seconds * 100 * MS,
        ..flow(name, bulk(reno()))
    };
    let scenario = common::scenario(2000 * MS, links, vec![over("one", 2, 0), over("two", 4, 1)]);
    Scenario { warmup_ns: 730 * MS, ..scenario }
}

#[test]
fn leaves_change_no_result() {
    for sampled in [true, false] {
        let mut scenario = behind_access_links();
        scenario.links[2..].iter_mut().for_each(|link| link.sampled = sampled);
        assert_eq!(Sim::new(&scenario).leaves.links, [2, 3, 4, 5]);
        let tables = common::run(&scenario).0;
        assert_eq!(difference(&tables, &Plain::new(&scenario).tables()), None);
    }
}

#[test]
fn the_backlog_of_a_leaf_is_seen_while_the_simulation_runs() {
    let mut sim = Sim::new(&behind_access_links());
    let mut most = 0;
    while !sim.run(1) {
        let now = sim.now();
        let leaf = sim.backlogs().nth(2).expect("there is a third link");
        // The link has seen all packets before now.
        assert!(sim.leaves.counted >= now);
        most = most.max(leaf.packets);
    }
    assert!(most > 2, "the first window waits at the access link: {most}");
}

/// A link without a rate sends at once, but its discipline may hold packets back, and then their
/// order of arrival matters.
#[test]
fn a_discipline_with_a_rate_of_its_own_has_its_packets_in_order() {
    let tbf = TbfParams {
        rate: 1_000_000,
        burst: 1600,
        limit: 10_000,
        peakrate: None,
        mtu: 1500,
        mpu: 0,
        overhead: 0,
        linklayer: TbfLinkLayer::Ethernet,
    };
    let links = vec![
        link("paced", 0, 2 * MS, Params::Tbf(tbf)),
        link("back", 0, MS, Params::Pfifo(qdisc::FifoParams { limit: 1000 })),
    ];
    let flows = ["one", "two", "three"].map(|name| flow(name, bulk(reno()))).into();
    let scenario = common::scenario(600 * MS, links, flows);
    let tables = common::run(&scenario).0;
    assert_eq!(difference(&tables, &Plain::new(&scenario).tables()), None);
}
