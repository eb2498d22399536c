//! Taps: matches packets before and after a queue, for kernels without logging cards.
//!
//! The taps record when a packet arrived and when it was sent. A packet that was not sent was
//! dropped, unless it may still have waited at the end of the run. The drop time follows from the
//! discipline (`plan::Drops`): a FIFO drops on arrival, CoDel at the dequeue. A drop of a fair
//! queue gets the time of its flow's next departure.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::net::IpAddr;

use probe::Clock;
use probe::journey::{Journeys, NEVER};
use probe::tap::{self, FiveTuple, Packet, Tap};
use serde_json::{Value, json};

use crate::plan::{Direction, Drops, How, Plan, Protocol, Stages};
use crate::watch::{Arrival, Watch};
use crate::world::World;

/// Stage 0 is complete for all times older than this, ns: its blocks are delivered after
/// `RETIRE_MS`, plus some ticks of slack.
pub const SETTLE_DELAY: i64 = 4 * tap::RETIRE_MS as i64 * 1_000_000;

/// Records the packets of one queue with taps.
pub struct Follower {
    spec: Stages,
    stages: Vec<(String, Vec<Tap>)>,
    only: Option<HashSet<i32>>,
    journeys: Journeys,
}

/// Whether this is a host's own traffic to its neighbours (IPv6 discovery). It belongs to no
/// scenario, and a device that only carries copies sends it too.
fn is_neighbour_traffic(five_tuple: &FiveTuple) -> bool {
    let local = |ip: IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local() || ip.is_unspecified());
    five_tuple.destination.is_multicast()
        || local(five_tuple.source)
        || local(five_tuple.destination)
}

/// Finds the flow of a packet.
#[derive(Default)]
pub struct Flows {
    /// By protocol and port, which belong to one flow: its number as in `Flows::of` of packets to the
    /// end that listens, and the address of that end.
    ports: HashMap<(Protocol, u16), (i32, IpAddr)>,
    /// By source and destination: the flows of programs.
    hosts: HashMap<[IpAddr; 2], i32>,
}

impl Flows {
    /// Indexes the flows.
    pub fn new(plan: &Plan) -> Flows {
        let mut flows = Flows::default();
        for (flow, index) in plan.flows.iter().zip(0i32..) {
            let (from, to) = (flow.from.address, flow.to.address);
            match flow.traffic.protocol() {
                Protocol::Any => {
                    flows.hosts.insert([from, to], 2 * index);
                    flows.hosts.insert([to, from], 2 * index + 1);
                }
                protocol => {
                    let source = flow.source_listens();
                    let number = 2 * index + i32::from(source);
                    let listens = if source { from } else { to };
                    flows.ports.insert((protocol, flow.port), (number, listens));
                }
            }
        }
        flows
    }

    /// Returns twice the flow's index, plus 1 in the reverse direction; -1 for no flow.
    pub fn of(&self, five_tuple: &FiveTuple) -> i32 {
        if !self.hosts.is_empty()
            && let Some(&flow) = self.hosts.get(&[five_tuple.source, five_tuple.destination])
        {
            return flow;
        }
        let protocol = match five_tuple.protocol {
            tap::TCP => Protocol::Tcp,
            tap::UDP => Protocol::Udp,
            tap::ICMP | tap::ICMPV6 => Protocol::Icmp,
            _ => return -1,
        };
        let find = |port: u16, address: IpAddr| {
            self.ports.get(&(protocol, port)).filter(|(_, at)| *at == address).map(|&(to, _)| to)
        };
        let [source, destination] = five_tuple.ports;
        match find(destination, five_tuple.destination) {
            Some(to) => to,
            None => find(source, five_tuple.source).map_or(-1, |to| to ^ 1),
        }
    }
}

impl Follower {
    /// Opens the taps of `plan.taps[index]`.
    pub fn new(spec: &Stages, index: usize, world: &World) -> Result<Follower, String> {
        let mut stages = Vec::new();
        for stage in &spec.stages {
            let mut taps = Vec::new();
            for point in &stage.points {
                let direction = match point.direction {
                    Direction::In => tap::Direction::In,
                    Direction::Out => tap::Direction::Out,
                };
                let open = || Tap::open(&point.device, direction, spec.ring_bytes);
                taps.push(world.inside(Some(&point.namespace), open).map_err(|e| {
                    format!("taps[{index}]: tap on {} in {}: {e}", point.device, point.namespace)
                })?);
            }
            stages.push((stage.name.clone(), taps));
        }
        let only = spec.only.as_ref();
        Ok(Follower {
            journeys: Journeys::new(stages.len()),
            stages,
            only: only.map(|only| {
                only.iter().map(|&(flow, back)| 2 * flow as i32 + i32::from(back)).collect()
            }),
            spec: spec.clone(),
        })
    }

    /// Returns all taps, whose descriptors `run` waits for.
    pub fn taps(&self) -> impl Iterator<Item = &Tap> {
        self.stages.iter().flat_map(|(_, taps)| taps)
    }

    /// Reads the packets that the taps have captured up to `now`.
    pub fn drain(&mut self, clock: &Clock, now: i64, flows: &Flows) {
        let (journeys, only) = (&mut self.journeys, &self.only);
        for (stage, (_, taps)) in self.stages.iter_mut().enumerate() {
            for tap in taps {
                tap.drain(|packet: Packet| {
                    if is_neighbour_traffic(&packet.five_tuple) {
                        return;
                    }
                    let flow = flows.of(&packet.five_tuple);
                    if only.as_ref().is_some_and(|only| !only.contains(&flow)) {
                        return;
                    }
                    let time = clock.stamp(packet.stamp);
                    if time < 0 {
                        return; // Before the run.
                    }
                    if stage == 0 {
                        journeys.begin(&packet, time, flow);
                    } else {
                        journeys.pass(stage, &packet, time);
                    }
                });
            }
        }
        self.journeys.settle(now.saturating_sub(SETTLE_DELAY));
    }

    /// Reads the remaining packets, and passes all events to `watch` in order of time.
    pub fn finish(&mut self, clock: &Clock, flows: &Flows, watch: &mut Watch) {
        self.drain(clock, i64::MAX, flows);
        let named = |name: &str| self.stages.iter().position(|(stage, _)| stage == name);
        let (before, after, arrived) = (named("before"), named("after"), named("arrived"));
        let rows: Vec<Observed> = self
            .journeys
            .rows()
            .map(|row| {
                let at = |stage: Option<usize>| stage.map_or(NEVER, |stage| row.times[stage]);
                let arrived = at(arrived);
                Observed {
                    enqueued: if before.is_some() { at(before) } else { at(after) },
                    dequeued: at(after),
                    transmitted: if arrived < 0 {
                        NEVER
                    } else {
                        arrived - self.spec.delay_ns as i64
                    },
                    arrival: Arrival {
                        flow: row.flow,
                        bytes: row.bytes,
                        ds: row.ds[0],
                        hash: 0,
                        truesize: 0,
                    },
                    ds_after: row.ds[1],
                }
            })
            .collect();
        replay(&rows, &self.spec, arrived.is_some(), watch);
    }

    /// Returns the summary of each stage; the run ended at `end`.
    pub fn about(&mut self, end: i64) -> io::Result<Value> {
        let mut stages = Vec::new();
        let cut_off = self.cut_off(end);
        for (i, (stage, taps)) in self.stages.iter_mut().enumerate() {
            let mut lost = 0;
            for tap in taps {
                lost += tap.lost()?;
            }
            stages.push(json!({
                "name": stage,
                "packets": self.journeys.count(i),
                "lost_records": lost,
                "unexpected": if i == 0 { 0 } else { self.journeys.unexpected(i).saturating_sub(cut_off) },
            }));
        }
        Ok(json!(stages))
    }

    /// Returns how many packets one tap may have captured and another not. These are the packets of
    /// the last blocks, because the taps are closed one by one when the run has ended.
    fn cut_off(&self, end: i64) -> u64 {
        let last = self.journeys.rows().map(|row| row.times[0]).max().unwrap_or(NEVER);
        let since = last - 2 * i64::from(tap::RETIRE_MS) * 1_000_000;
        if last <= end {
            0
        } else {
            self.journeys.rows().filter(|row| row.times[0] > since).count() as u64
        }
    }
}

/// A packet's times as the taps saw them.
#[derive(Clone, Copy)]
struct Observed {
    enqueued: i64,
    dequeued: i64,
    transmitted: i64,
    arrival: Arrival,
    ds_after: u8,
}

/// Returns, for each packet, the first packet that left the queue, starting with the packet itself.
/// With `in_order` all packets are searched, otherwise those of its flow.
fn successors(rows: &[Observed], in_order: bool) -> Vec<Option<usize>> {
    let mut next: HashMap<i32, usize> = HashMap::new();
    let mut successors = vec![None; rows.len()];
    for (at, row) in rows.iter().enumerate().rev() {
        let key = if in_order { 0 } else { row.arrival.flow };
        if row.dequeued >= 0 {
            next.insert(key, at);
        }
        successors[at] = next.get(&key).copied();
    }
    successors
}

/// Returns the packets that found a FIFO full: the queue is replayed, arrival by arrival.
fn refused(rows: &[Observed], limit: u64) -> HashSet<usize> {
    let departures: Vec<usize> = (0..rows.len()).filter(|&at| rows[at].dequeued >= 0).collect();
    let mut refused = HashSet::new();
    let mut waiting = VecDeque::new();
    let mut done = 0;
    for (at, row) in rows.iter().enumerate() {
        while let Some(&departed) = departures
            .get(done)
            .filter(|&&departed| departed < at && rows[departed].dequeued <= row.enqueued)
        {
            // Every packet before it has left, dequeued or dropped.
            while waiting.front().is_some_and(|&first| first <= departed) {
                waiting.pop_front();
            }
            done += 1;
        }
        if row.dequeued < 0 && waiting.len() as u64 >= limit {
            refused.insert(at);
        } else {
            waiting.push_back(at);
        }
    }
    refused
}

/// Returns the drop time of each packet that did not leave; `None`: it left or may still wait.
fn drop_times(rows: &[Observed], drops: &Drops) -> Vec<Option<i64>> {
    let successor = successors(rows, drops.in_order);
    let dequeued = || rows.iter().filter(|row| row.dequeued >= 0);
    let longest = dequeued().map(|row| row.dequeued - row.enqueued).max();
    let last = dequeued().map(|row| row.dequeued).max();
    let refused = match (drops.how, drops.limit) {
        (How::Departure, Some(limit)) => refused(rows, limit),
        _ => HashSet::new(),
    };
    let each = rows.iter().enumerate().map(|(at, row)| {
        // After the last departure there is no evidence. But a packet that would have waited longer
        // than every other one was dropped.
        let overdue =
            last.zip(longest).is_some_and(|(last, longest)| row.enqueued < last - longest);
        if row.dequeued >= 0 || (successor[at].is_none() && !overdue) {
            return None;
        }
        Some(match (drops.how, drops.limit) {
            (How::Departure, _) if !refused.contains(&at) => {
                successor[at].map_or(row.enqueued, |next| rows[next].dequeued)
            }
            // The head is dropped when `limit` packets are behind it and one more arrives.
            (How::Head, Some(limit)) => {
                rows.get(at + limit as usize).map_or(row.enqueued, |full| full.enqueued)
            }
            _ => row.enqueued,
        })
    });
    each.collect()
}

/// Passes the taps' observations to `watch` as events. At equal times, departures precede arrivals.
fn replay(rows: &[Observed], spec: &Stages, watched: bool, watch: &mut Watch) {
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    enum Step {
        Dequeue,
        Enqueue,
        PassThrough,
        Transmit,
    }
    let dropped = drop_times(rows, &spec.drops);
    // After the last arrival at the far end there is no evidence of loss.
    let last_out = rows.iter().map(|row| row.transmitted).max().unwrap_or(NEVER);
    let mut events = Vec::new();
    for (at, (row, drop_time)) in rows.iter().zip(&dropped).enumerate() {
        events.push((row.enqueued, Step::Enqueue, at));
        if let Some(t) = drop_time.or((row.dequeued >= 0).then_some(row.dequeued)) {
            events.push((t, if t > row.enqueued { Step::Dequeue } else { Step::PassThrough }, at));
        }
        if row.transmitted >= 0 {
            events.push((row.transmitted, Step::Transmit, at));
        }
    }
    events.sort();
    for (t, turn, at) in events {
        let (row, serial) = (&rows[at], at as u32 + 1);
        match turn {
            Step::Enqueue => watch.enqueued(serial, t, row.arrival),
            Step::Transmit => watch.transmitted(serial, t),
            Step::Dequeue | Step::PassThrough if dropped[at].is_some() => watch.dropped(serial, t),
            Step::Dequeue | Step::PassThrough => {
                watch.dequeued(serial, t, row.ds_after);
                if watched && spec.loses && row.transmitted < 0 && t < last_out {
                    watch.transmitted(serial, t);
                    watch.lost(serial);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn five_tuple(source: &str, destination: &str, protocol: u8, ports: [u16; 2]) -> FiveTuple {
        FiveTuple {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            protocol,
            ports,
        }
    }

    #[test]
    fn a_packet_belongs_to_the_flow_whose_port_is_at_the_flows_far_end() {
        let far: IpAddr = "10.0.2.1".parse().unwrap();
        let near: IpAddr = "10.0.1.1".parse().unwrap();
        let ports = HashMap::from([
            ((Protocol::Tcp, 5001), (0, far)),
            ((Protocol::Icmp, 7), (6, far)),
            ((Protocol::Tcp, 5002), (5, near)),
        ]);
        let hosts: [IpAddr; 2] = ["10.0.4.1".parse().unwrap(), "10.0.5.1".parse().unwrap()];
        let hosts = HashMap::from([(hosts, 8), ([hosts[1], hosts[0]], 9)]);
        let flows = Flows { ports, hosts };
        let of = |a: &str, b: &str, protocol, ports| flows.of(&five_tuple(a, b, protocol, ports));
        assert_eq!(of("10.0.1.1", "10.0.2.1", tap::TCP, [40_000, 5001]), 0);
        assert_eq!(of("10.0.2.1", "10.0.1.1", tap::TCP, [5001, 40_000]), 1);
        // A ping has one identifier in both directions: the address distinguishes them.
        assert_eq!(of("10.0.1.1", "10.0.2.1", tap::ICMP, [7, 7]), 6);
        assert_eq!(of("10.0.2.1", "10.0.1.1", tap::ICMP, [7, 7]), 7);
        assert_eq!(of("10.0.1.1", "10.0.2.1", tap::UDP, [40_000, 5001]), -1);
        assert_eq!(of("10.0.1.1", "10.0.3.1", tap::TCP, [40_000, 5001]), -1);
        assert_eq!(of("10.0.1.1", "10.0.2.1", 47, [0, 0]), -1);
        // The source of requests listens.
        assert_eq!(of("10.0.2.1", "10.0.1.1", tap::TCP, [40_000, 5002]), 5);
        assert_eq!(of("10.0.1.1", "10.0.2.1", tap::TCP, [5002, 40_000]), 4);
        // Between the hosts of programs any packet is their flow's.
        assert_eq!(of("10.0.4.1", "10.0.5.1", 47, [0, 0]), 8);
        assert_eq!(of("10.0.5.1", "10.0.4.1", tap::TCP, [5001, 5001]), 9);
        assert_eq!(of("10.0.4.1", "10.0.2.2", tap::UDP, [1, 2]), -1);
    }

    #[test]
    fn neighbour_discovery_does_not_count_as_traffic() {
        assert!(is_neighbour_traffic(&five_tuple("fe80::1", "ff02::2", tap::ICMPV6, [0, 0])));
        assert!(is_neighbour_traffic(&five_tuple("::", "fd00::1", tap::ICMPV6, [0, 0])));
        assert!(is_neighbour_traffic(&five_tuple("10.0.1.1", "224.0.0.22", 2, [0, 0])));
        assert!(!is_neighbour_traffic(&five_tuple("fd00::1", "fd00::2", tap::UDP, [1, 2])));
        assert!(!is_neighbour_traffic(&five_tuple("10.0.1.1", "10.0.2.1", tap::TCP, [1, 2])));
    }

    fn observed(rows: &[(i64, i64, i32)]) -> Vec<Observed> {
        let each = rows.iter().map(|&(enqueued, dequeued, flow)| Observed {
            enqueued,
            dequeued,
            transmitted: NEVER,
            arrival: Arrival { flow, bytes: 1500, ds: 0, hash: 0, truesize: 0 },
            ds_after: 0,
        });
        each.collect()
    }

    fn drop_times_of(
        rows: &[(i64, i64, i32)],
        in_order: bool,
        how: How,
        limit: Option<u64>,
    ) -> Vec<Option<i64>> {
        drop_times(&observed(rows), &Drops { in_order, how, limit })
    }

    #[test]
    fn packets_overtaken_in_order_are_dropped_and_later_ones_may_wait() {
        let rows = [(10, 20, 0), (12, NEVER, 0), (14, 30, 0), (25, NEVER, 0)];
        assert_eq!(drop_times_of(&rows, true, How::Arrival, None), [None, Some(12), None, None]);
        assert_eq!(drop_times_of(&rows, true, How::Departure, None), [None, Some(30), None, None]);
        // A packet that waits longer than every other one was dropped, whatever follows.
        let rows = [(10, NEVER, 2), (100, 105, 0), (200, 210, 0)];
        assert_eq!(drop_times_of(&rows, false, How::Departure, None)[0], Some(10));
    }

    #[test]
    fn a_fair_queue_s_drop_gets_the_time_of_its_flow_s_next_departure() {
        let rows = [(10, NEVER, 0), (11, 12, 2), (13, 40, 0)];
        assert_eq!(drop_times_of(&rows, false, How::Departure, None), [Some(40), None, None]);
        assert_eq!(drop_times_of(&rows, true, How::Departure, None), [Some(12), None, None]);
    }

    #[test]
    fn codel_s_drops_at_the_limit_are_distinguished_from_those_of_its_control_law() {
        // Two packets fit: the third is refused on arrival; the fourth is dropped at its dequeue.
        let rows = [(10, 50, 0), (11, 60, 0), (12, NEVER, 0), (55, NEVER, 0), (61, 70, 0)];
        assert_eq!(
            drop_times_of(&rows, true, How::Departure, Some(2)),
            [None, None, Some(12), Some(70), None]
        );
    }

    #[test]
    fn a_packet_above_the_limit_drops_the_head() {
        let rows = [(10, NEVER, 0), (11, 40, 0), (12, 50, 0)];
        assert_eq!(drop_times_of(&rows, true, How::Head, Some(2)), [Some(12), None, None]);
    }
}
