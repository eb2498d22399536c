//! Taps: packets before and after a queue, put together, for kernels without cards that keep a log.
//!
//! The taps say when a packet came and when it was sent on. One that was not sent on was dropped,
//! unless it may still have waited when the run ended; when, follows from the discipline
//! (`plan::Drops`): a fifo drops as a packet comes, CoDel as its turn is, and a fair queue's drop
//! is dated by its flow's next departure.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::net::IpAddr;

use probe::Clock;
use probe::journey::{Journeys, NEVER};
use probe::tap::{self, Kin, Seen, Tap};
use serde_json::{Value, json};

use crate::plan::{Direction, Drops, How, Plan, Protocol, Stages};
use crate::watch::{Coming, Watch};
use crate::world::World;

/// Stage 0 has told everything that is older than this, ns: its blocks are handed over after
/// `RETIRE_MS`, and some ticks of slack.
pub const BEHIND: i64 = 4 * tap::RETIRE_MS as i64 * 1_000_000;

/// A queue whose packets are followed by taps.
pub struct Follower {
    spec: Stages,
    stages: Vec<(String, Vec<Tap>)>,
    only: Option<HashSet<i32>>,
    journeys: Journeys,
}

/// What a host says to its neighbours on a link by itself (IPv6's discovery): no traffic of a
/// scenario, and a device that only carries copies says it too.
fn between_neighbours(kin: &Kin) -> bool {
    let local = |ip: IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local() || ip.is_unspecified());
    kin.destination.is_multicast() || local(kin.source) || local(kin.destination)
}

/// Which flow a packet belongs to.
pub struct Flows(HashMap<(Protocol, u16), (i32, IpAddr)>);

impl Flows {
    /// By protocol and port, which belong to one flow.
    pub fn new(plan: &Plan) -> Flows {
        let each = plan.flows.iter().enumerate();
        Flows(
            each.map(|(i, f)| ((f.traffic.protocol(), f.port), (i as i32, f.to.address))).collect(),
        )
    }

    /// Twice the flow's index, plus 1 for a packet on its way back; -1 for none.
    pub fn of(&self, kin: &Kin) -> i32 {
        let protocol = match kin.protocol {
            tap::TCP => Protocol::Tcp,
            tap::UDP => Protocol::Udp,
            tap::ICMP | tap::ICMPV6 => Protocol::Icmp,
            _ => return -1,
        };
        let find = |port: u16, address: IpAddr| {
            self.0.get(&(protocol, port)).filter(|(_, to)| *to == address).map(|&(flow, _)| flow)
        };
        let [source, destination] = kin.ports;
        match find(destination, kin.destination) {
            Some(flow) => 2 * flow,
            None => find(source, kin.source).map_or(-1, |flow| 2 * flow + 1),
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

    /// Its taps, as (stage, tap): what to wait for.
    pub fn taps(&self) -> impl Iterator<Item = &Tap> {
        self.stages.iter().flat_map(|(_, taps)| taps)
    }

    /// Takes in what the taps have, at `now`.
    pub fn drain(&mut self, clock: &Clock, now: i64, flows: &Flows) {
        let (journeys, only) = (&mut self.journeys, &self.only);
        for (stage, (_, taps)) in self.stages.iter_mut().enumerate() {
            for tap in taps {
                tap.drain(|seen: Seen| {
                    if between_neighbours(&seen.kin) {
                        return;
                    }
                    let flow = flows.of(&seen.kin);
                    if only.as_ref().is_some_and(|only| !only.contains(&flow)) {
                        return;
                    }
                    let time = clock.stamp(seen.stamp);
                    if time < 0 {
                        return; // Before the run.
                    }
                    if stage == 0 {
                        journeys.begin(&seen, time, flow);
                    } else {
                        journeys.pass(stage, &seen, time);
                    }
                });
            }
        }
        self.journeys.settle(now.saturating_sub(BEHIND));
    }

    /// Takes in the rest, and hands everything over as it happened: nothing more will come.
    pub fn finish(&mut self, clock: &Clock, flows: &Flows, watch: &mut Watch) {
        self.drain(clock, i64::MAX, flows);
        let named = |name: &str| self.stages.iter().position(|(stage, _)| stage == name);
        let (before, after, arrived) = (named("before"), named("after"), named("arrived"));
        let rows: Vec<Passed> = self
            .journeys
            .rows()
            .map(|row| {
                let at = |stage: Option<usize>| stage.map_or(NEVER, |stage| row.times[stage]);
                let arrived = at(arrived);
                Passed {
                    came: if before.is_some() { at(before) } else { at(after) },
                    left: at(after),
                    out: if arrived < 0 { NEVER } else { arrived - self.spec.delay_ns as i64 },
                    coming: Coming {
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

    /// What is to be said of it; the run ended at `end`.
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

    /// How many packets one tap may have told and another not when all of them were ended, after
    /// the run: those of the last blocks.
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

/// What taps saw of a packet.
#[derive(Clone, Copy)]
struct Passed {
    came: i64,
    left: i64,
    out: i64,
    coming: Coming,
    ds_after: u8,
}

/// Of each packet the next one from it on that left the queue: of all, or of its flow.
fn successors(rows: &[Passed], in_order: bool) -> Vec<Option<usize>> {
    let mut next: HashMap<i32, usize> = HashMap::new();
    let mut found = vec![None; rows.len()];
    for (at, row) in rows.iter().enumerate().rev() {
        let key = if in_order { 0 } else { row.coming.flow };
        if row.left >= 0 {
            next.insert(key, at);
        }
        found[at] = next.get(&key).copied();
    }
    found
}

/// Which packets found a queue of one order full: it is replayed, arrival by arrival.
fn refused(rows: &[Passed], limit: u64) -> HashSet<usize> {
    let departures: Vec<usize> = (0..rows.len()).filter(|&at| rows[at].left >= 0).collect();
    let mut refused = HashSet::new();
    let mut waiting = VecDeque::new();
    let mut done = 0;
    for (at, row) in rows.iter().enumerate() {
        while let Some(&gone) =
            departures.get(done).filter(|&&gone| gone < at && rows[gone].left <= row.came)
        {
            // All before it have left, one way or the other.
            while waiting.front().is_some_and(|&first| first <= gone) {
                waiting.pop_front();
            }
            done += 1;
        }
        if row.left < 0 && waiting.len() as u64 >= limit {
            refused.insert(at);
        } else {
            waiting.push_back(at);
        }
    }
    refused
}

/// When each packet that did not leave was dropped; `None`: it may still wait.
fn gone_at(rows: &[Passed], drops: &Drops) -> Vec<Option<i64>> {
    let successor = successors(rows, drops.in_order);
    let left = || rows.iter().filter(|row| row.left >= 0);
    let longest = left().map(|row| row.left - row.came).max();
    let last = left().map(|row| row.left).max();
    let refused = match (drops.how, drops.limit) {
        (How::Departure, Some(limit)) => refused(rows, limit),
        _ => HashSet::new(),
    };
    let each = rows.iter().enumerate().map(|(at, row)| {
        // Behind the last that left nobody tells. Whoever waits longer than anyone ever did is
        // gone.
        let overdue = last.zip(longest).is_some_and(|(last, longest)| row.came < last - longest);
        if row.left >= 0 || (successor[at].is_none() && !overdue) {
            return None;
        }
        Some(match (drops.how, drops.limit) {
            (How::Departure, _) if !refused.contains(&at) => {
                successor[at].map_or(row.came, |next| rows[next].left)
            }
            // It goes when as many as the limit are behind it and one more comes.
            (How::Head, Some(limit)) => {
                rows.get(at + limit as usize).map_or(row.came, |full| full.came)
            }
            _ => row.came,
        })
    });
    each.collect()
}

/// Hands over what taps saw as events. At one instant room is made before packets come.
fn replay(rows: &[Passed], spec: &Stages, watched: bool, watch: &mut Watch) {
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    enum Turn {
        Leaves,
        Comes,
        Passes,
        Out,
    }
    let gone = gone_at(rows, &spec.drops);
    // Behind the last that arrived nobody tells which were lost.
    let last_out = rows.iter().map(|row| row.out).max().unwrap_or(NEVER);
    let mut events = Vec::new();
    for (at, (row, gone)) in rows.iter().zip(&gone).enumerate() {
        events.push((row.came, Turn::Comes, at));
        if let Some(t) = gone.or((row.left >= 0).then_some(row.left)) {
            events.push((t, if t > row.came { Turn::Leaves } else { Turn::Passes }, at));
        }
        if row.out >= 0 {
            events.push((row.out, Turn::Out, at));
        }
    }
    events.sort();
    for (t, turn, at) in events {
        let (row, serial) = (&rows[at], at as u32 + 1);
        match turn {
            Turn::Comes => watch.came(serial, t, row.coming),
            Turn::Out => watch.out(serial, t),
            Turn::Leaves | Turn::Passes if gone[at].is_some() => watch.gone(serial, t),
            Turn::Leaves | Turn::Passes => {
                watch.left(serial, t, row.ds_after);
                if watched && spec.loses && row.out < 0 && t < last_out {
                    watch.out(serial, t);
                    watch.lost(serial);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kin(source: &str, destination: &str, protocol: u8, ports: [u16; 2]) -> Kin {
        Kin {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            protocol,
            ports,
        }
    }

    #[test]
    fn a_packet_belongs_to_the_flow_whose_port_is_at_the_flows_far_end() {
        let far: IpAddr = "10.0.2.1".parse().unwrap();
        let flows = Flows(HashMap::from([
            ((Protocol::Tcp, 5001), (0, far)),
            ((Protocol::Icmp, 7), (3, far)),
        ]));
        let of = |a: &str, b: &str, protocol, ports| flows.of(&kin(a, b, protocol, ports));
        assert_eq!(of("10.0.1.1", "10.0.2.1", tap::TCP, [40_000, 5001]), 0);
        assert_eq!(of("10.0.2.1", "10.0.1.1", tap::TCP, [5001, 40_000]), 1);
        // A ping has one identifier for both ways: the address tells them apart.
        assert_eq!(of("10.0.1.1", "10.0.2.1", tap::ICMP, [7, 7]), 6);
        assert_eq!(of("10.0.2.1", "10.0.1.1", tap::ICMP, [7, 7]), 7);
        assert_eq!(of("10.0.1.1", "10.0.2.1", tap::UDP, [40_000, 5001]), -1);
        assert_eq!(of("10.0.1.1", "10.0.3.1", tap::TCP, [40_000, 5001]), -1);
        assert_eq!(of("10.0.1.1", "10.0.2.1", 47, [0, 0]), -1);
    }

    #[test]
    fn neighbours_talk_is_no_traffic() {
        assert!(between_neighbours(&kin("fe80::1", "ff02::2", tap::ICMPV6, [0, 0])));
        assert!(between_neighbours(&kin("::", "fd00::1", tap::ICMPV6, [0, 0])));
        assert!(between_neighbours(&kin("10.0.1.1", "224.0.0.22", 2, [0, 0])));
        assert!(!between_neighbours(&kin("fd00::1", "fd00::2", tap::UDP, [1, 2])));
        assert!(!between_neighbours(&kin("10.0.1.1", "10.0.2.1", tap::TCP, [1, 2])));
    }

    fn seen(rows: &[(i64, i64, i32)]) -> Vec<Passed> {
        let each = rows.iter().map(|&(came, left, flow)| Passed {
            came,
            left,
            out: NEVER,
            coming: Coming { flow, bytes: 1500, ds: 0, hash: 0, truesize: 0 },
            ds_after: 0,
        });
        each.collect()
    }

    fn gone(
        rows: &[(i64, i64, i32)],
        in_order: bool,
        how: How,
        limit: Option<u64>,
    ) -> Vec<Option<i64>> {
        gone_at(&seen(rows), &Drops { in_order, how, limit })
    }

    #[test]
    fn what_was_overtaken_in_order_is_gone_and_what_is_behind_may_wait() {
        let rows = [(10, 20, 0), (12, NEVER, 0), (14, 30, 0), (25, NEVER, 0)];
        assert_eq!(gone(&rows, true, How::Arrival, None), [None, Some(12), None, None]);
        assert_eq!(gone(&rows, true, How::Departure, None), [None, Some(30), None, None]);
        // One that waits longer than anyone ever did is gone, whoever follows.
        let rows = [(10, NEVER, 2), (100, 105, 0), (200, 210, 0)];
        assert_eq!(gone(&rows, false, How::Departure, None)[0], Some(10));
    }

    #[test]
    fn a_fair_queues_drop_is_dated_by_its_flows_next_departure() {
        let rows = [(10, NEVER, 0), (11, 12, 2), (13, 40, 0)];
        assert_eq!(gone(&rows, false, How::Departure, None), [Some(40), None, None]);
        assert_eq!(gone(&rows, true, How::Departure, None), [Some(12), None, None]);
    }

    #[test]
    fn codels_limit_is_told_from_its_law() {
        // Two fit: the third is refused as it comes; the fourth is dropped as its turn is.
        let rows = [(10, 50, 0), (11, 60, 0), (12, NEVER, 0), (55, NEVER, 0), (61, 70, 0)];
        assert_eq!(
            gone(&rows, true, How::Departure, Some(2)),
            [None, None, Some(12), Some(70), None]
        );
    }

    #[test]
    fn the_head_goes_when_one_more_than_the_limit_comes() {
        let rows = [(10, NEVER, 0), (11, 40, 0), (12, 50, 0)];
        assert_eq!(gone(&rows, true, How::Head, Some(2)), [Some(12), None, None]);
    }
}
