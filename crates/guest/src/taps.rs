//! Taps: packets before and after a queue, put together into one row each.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::net::IpAddr;

use probe::Clock;
use probe::journey::{Journeys, NEVER};
use probe::tap::{self, Kin, Seen, Tap};
use serde_json::{Value, json};

use crate::plan::{Direction, Plan, Protocol};
use crate::results::{Archive, Values};
use crate::world::World;

/// Stage 0 has told everything that is older than this, ns: its blocks are handed over after `RETIRE_MS`, and some ticks of slack.
pub const BEHIND: i64 = 4 * tap::RETIRE_MS as i64 * 1_000_000;

/// A queue whose packets are followed.
pub struct Follower {
    link: u32,
    stages: Vec<(String, Vec<Tap>)>,
    only: Option<HashSet<i32>>,
    journeys: Journeys,
}

/// What a host says to its neighbours on a link by itself (IPv6's discovery): no traffic of a scenario, and a device that
/// only carries copies says it too.
fn between_neighbours(kin: &Kin) -> bool {
    let local =
        |ip: IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local() || ip.is_unspecified());
    kin.destination.is_multicast() || local(kin.source) || local(kin.destination)
}

/// Which flow a packet belongs to.
pub struct Flows(HashMap<(Protocol, u16), (i32, IpAddr)>);

impl Flows {
    /// By protocol and port, which belong to one flow.
    pub fn new(plan: &Plan) -> Flows {
        let each = plan.flows.iter().enumerate();
        Flows(each.map(|(i, f)| ((f.traffic.protocol(), f.port), (i as i32, f.to.address))).collect())
    }

    /// Twice the flow's index, plus 1 for a packet on its way back; -1 for none.
    fn of(&self, kin: &Kin) -> i32 {
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
    pub fn new(plan: &Plan, index: usize, world: &World) -> Result<Follower, String> {
        let spec = &plan.taps[index];
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
            link: spec.link,
            journeys: Journeys::new(stages.len()),
            stages,
            only: only
                .map(|only| only.iter().map(|&(flow, back)| 2 * flow as i32 + i32::from(back)).collect()),
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

    /// Takes in the rest: nothing more will come.
    pub fn finish(&mut self, clock: &Clock, flows: &Flows) {
        self.drain(clock, i64::MAX, flows);
    }

    /// Packets seen at stage 0.
    pub fn packets(&self) -> u64 {
        self.journeys.count(0)
    }

    /// Writes its table; what is to be said of it.
    pub fn write<W: Write>(mut self, name: &str, archive: &mut Archive<W>) -> io::Result<Value> {
        let mut times: Vec<Vec<i64>> = vec![Vec::new(); self.stages.len()];
        let (mut flow, mut reverse, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        let mut ds: [Vec<u8>; 2] = [Vec::new(), Vec::new()];
        for row in self.journeys.rows() {
            times.iter_mut().zip(row.times).for_each(|(column, time)| column.push(time));
            flow.push(if row.flow < 0 { -1 } else { row.flow / 2 });
            reverse.push(u8::from(row.flow >= 0 && row.flow % 2 == 1));
            bytes.push(row.bytes as i32);
            ds.iter_mut().zip(row.ds).for_each(|(column, ds)| column.push(ds));
        }
        let marked =
            ds[0].iter().zip(&ds[1]).filter(|(a, b)| *a & tap::CE != tap::CE && *b & tap::CE == tap::CE);
        let marked = marked.count();
        let dropped = times[1].iter().filter(|&&t| t == NEVER).count();
        let mut stages = Vec::new();
        for (i, (stage, taps)) in self.stages.iter_mut().enumerate() {
            let mut lost = 0;
            for tap in taps {
                lost += tap.lost()?;
            }
            stages.push(json!({
                "name": stage,
                "packets": self.journeys.count(i),
                "lost_records": lost,
                "unexpected": if i == 0 { 0 } else { self.journeys.unexpected(i) },
            }));
        }
        let names = self.stages.iter().map(|(stage, _)| format!("t_{stage}_ns"));
        let mut columns: Vec<(String, Values)> = names.zip(times.into_iter().map(Values::I64)).collect();
        let [ds_in, ds_out] = ds;
        columns.extend([
            ("flow".to_string(), Values::I32(flow)),
            ("reverse".to_string(), Values::U8(reverse)),
            ("bytes".to_string(), Values::I32(bytes)),
            ("ds_in".to_string(), Values::U8(ds_in)),
            ("ds_out".to_string(), Values::U8(ds_out)),
        ]);
        archive.table(name, columns)?;
        Ok(json!({
            "table": name, "link": self.link, "stages": stages, "missing_after": dropped, "marked": marked,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kin(source: &str, destination: &str, protocol: u8, ports: [u16; 2]) -> Kin {
        Kin { source: source.parse().unwrap(), destination: destination.parse().unwrap(), protocol, ports }
    }

    #[test]
    fn a_packet_belongs_to_the_flow_whose_port_is_at_the_flows_far_end() {
        let far: IpAddr = "10.0.2.1".parse().unwrap();
        let flows =
            Flows(HashMap::from([((Protocol::Tcp, 5001), (0, far)), ((Protocol::Icmp, 7), (3, far))]));
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
}
