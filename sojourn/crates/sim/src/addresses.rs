//! Host and connection numbers: which ends of flows are one host, and which flows are one
//! connection. They are for disciplines that share by host or by flow.
//!
//! An end that the scenario names is the host of that name. The other ends follow the rule by which
//! the kernel's guest assigns addresses (engine/kernel/plan/guest_plan.py). Ends at one node are
//! one host if their delay, jitter, TCP settings and the links on the path to them are the same. An
//! end without TCP counts as having the TCP settings of the first TCP end with its node, delay and
//! jitter.
//!
//! Flows in a tunnel are one connection between two hosts, the tunnel's ends.

use crate::scenario::{FlowSpec, LinkSpec};
use qdisc::Hosts;
use std::collections::BTreeMap;
use tcp::TcpParams;

/// The TCP settings of a host's kernel. Flows with different settings have different hosts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TcpSide {
    /// ecn, sack, dsack, frto, rack, tlp, timestamps.
    switches: [bool; 7],
    sack_delay_ns: u64,
    buffers: [u64; 2],
    initial_window: u32,
    min_rto_ns: u64,
}

impl TcpSide {
    fn of(tcp: &TcpParams) -> TcpSide {
        let TcpParams { recovery, growth, timers, acks, buffers, .. } = tcp;
        TcpSide {
            switches: [
                tcp.ecn,
                recovery.sack,
                recovery.dsack,
                recovery.frto,
                recovery.rack,
                recovery.tlp,
                tcp.timestamps,
            ],
            sack_delay_ns: acks.sack_delay_ns,
            buffers: [buffers.receive_buffer, buffers.receive_buffer_max],
            initial_window: growth.initial_window,
            min_rto_ns: timers.min_rto_ns,
        }
    }
}

/// The place of an end without a name: its node, the delay toward it and its packets' jitter.
type Place<'s> = (&'s str, u64, u64);

/// The key of a host: two ends with equal keys are one host.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Address<'s> {
    /// The end of a tunnel at a node.
    Tunnel(&'s str, &'s str),
    Named(&'s str),
    Alike(Place<'s>, Option<TcpSide>, &'s [u32]),
}

/// An end of a flow.
struct End<'s> {
    tunnel: Option<&'s str>,
    name: Option<&'s str>,
    place: Place<'s>,
    side: Option<TcpSide>,
    /// The links that lead to it.
    path: &'s [u32],
}

/// A flow's source and its target.
fn ends<'s>(flow: &'s FlowSpec, links: &'s [LinkSpec]) -> [End<'s>; 2] {
    let side = flow.traffic.tcp().map(TcpSide::of);
    let ways = [(&flow.back, flow.back_extra_ns), (&flow.path, flow.path_extra_ns)];
    let mut ends = ways.into_iter().zip(&flow.hosts).map(|((path, toward_ns), name)| {
        let node = path.last().map_or("", |&link| &*links[link as usize].head);
        let (tunnel, name) = (flow.tunnel.as_deref(), name.as_deref());
        End { tunnel, name, place: (node, toward_ns, flow.jitter_ns), side, path }
    });
    [(); 2].map(|()| ends.next().expect("a flow has two ends"))
}

/// The hosts of the packets in each direction: 2 i for flow i, and 2 i + 1 for its replies.
pub fn hosts<'s>(flows: &'s [FlowSpec], links: &'s [LinkSpec]) -> Hosts {
    let ends: Vec<[End<'s>; 2]> = flows.iter().map(|flow| ends(flow, links)).collect();
    // For each place, the TCP settings that ends without TCP count as having.
    let mut hosting = BTreeMap::new();
    for end in ends.iter().flatten().filter(|end| end.name.is_none() && end.side.is_some()) {
        hosting.entry(end.place).or_insert(end.side);
    }
    let mut numbers = BTreeMap::new();
    let mut number = |end: &End<'s>| {
        let address = match (end.tunnel, end.name) {
            (Some(tunnel), _) => Address::Tunnel(tunnel, end.place.0),
            (None, Some(name)) => Address::Named(name),
            (None, None) => {
                let side = end.side.or_else(|| *hosting.get(&end.place).unwrap_or(&None));
                Address::Alike(end.place, side, end.path)
            }
        };
        let next = numbers.len() as u32;
        *numbers.entry(address).or_insert(next)
    };
    let of_flow = |flow: &[End<'s>; 2]| {
        let [source, target] = [number(&flow[0]), number(&flow[1])];
        [[source, target], [target, source]]
    };
    ends.iter().flat_map(of_flow).collect()
}

/// The tunnel of packets outside all tunnels.
pub const NO_TUNNEL: u8 = 0;

/// The tunnels of flows, by number from 1.
pub struct Tunnels(Box<[u8]>);

impl Tunnels {
    /// Numbers the tunnels in the order of the flows.
    pub fn new(flows: &[FlowSpec]) -> Tunnels {
        if flows.iter().all(|flow| flow.tunnel.is_none()) {
            return Tunnels(Box::default());
        }
        let mut names: Vec<&str> = Vec::new();
        let numbers = flows.iter().map(|flow| {
            let Some(name) = flow.tunnel.as_deref() else { return NO_TUNNEL };
            let index = names.iter().position(|known| *known == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            });
            u8::try_from(index + 1).expect("a scenario has at most 255 tunnels")
        });
        Tunnels(numbers.collect())
    }

    /// The tunnel of a direction's packets, or `NO_TUNNEL`.
    #[inline]
    pub fn of(&self, direction: u32) -> u8 {
        self.0.get(direction as usize / 2).copied().unwrap_or(NO_TUNNEL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Traffic;
    use link::RateStep;
    use qdisc::DsField;

    fn link(head: &str) -> LinkSpec {
        LinkSpec {
            name: head.into(),
            tail: String::new(),
            head: head.into(),
            rate: vec![RateStep { at_ns: 0, bps: 1_000_000 }],
            rate_period_ns: None,
            delay_ns: 0,
            qdisc: qdisc::Params::Pfifo(qdisc::FifoParams { limit: 1000 }),
            qdisc_steps: Vec::new(),
            framing: link::Framing::NONE,
            loss: link::Loss::None,
            impairments: link::Impairments::default(),
            ring: None,
            shaper: None,
            police: None,
            replay_window: None,
            queues: None,
            sampled: true,
            asks_at_once: false,
        }
    }

    fn bulk(tcp: TcpParams) -> Traffic {
        Traffic::Bulk { bytes: None, pace: None, tcp }
    }

    /// A flow down link 0 to home; its replies leave by link 1.
    fn flow(traffic: Traffic) -> FlowSpec {
        FlowSpec {
            name: String::new(),
            group: 0,
            path: vec![0],
            back: vec![1],
            path_extra_ns: 5,
            back_extra_ns: 5,
            start_ns: 0,
            stop_ns: None,
            jitter_ns: 0,
            ds: DsField::BEST_EFFORT,
            tunnel: None,
            hosts: [None, None],
            traffic,
        }
    }

    /// The same flow in the other direction.
    fn up(flow: FlowSpec) -> FlowSpec {
        let [source, target] = flow.hosts;
        FlowSpec { path: vec![1], back: vec![0], hosts: [target, source], ..flow }
    }

    fn of(flows: &[FlowSpec]) -> Vec<[u32; 2]> {
        hosts(flows, &[link("home"), link("net")]).to_vec()
    }

    #[test]
    fn a_named_host_is_one_at_any_rtt_and_whichever_way_its_packets_take() {
        let named = |name: &str| FlowSpec {
            hosts: [None, Some(name.into())],
            ..flow(bulk(TcpParams::LINUX))
        };
        let far = FlowSpec { back_extra_ns: 99, ..named("home/a") };
        let numbers = of(&[named("home/a"), far, up(named("home/a")), named("home/b")]);
        // Each of these directions starts at the host at home: the replies to packets down, and the
        // packets up.
        let at_home: Vec<u32> =
            [1, 3, 4, 7].iter().map(|&direction| numbers[direction][0]).collect();
        assert_eq!(at_home[..3], [at_home[0]; 3]);
        assert_ne!(at_home[3], at_home[0]);
        for (there, back) in [(0, 1), (2, 3), (4, 5), (6, 7)] {
            assert_eq!(
                [numbers[there][0], numbers[there][1]],
                [numbers[back][1], numbers[back][0]]
            );
        }
        assert_ne!(numbers[0][0], numbers[2][0], "servers at different distances are two hosts");
    }

    #[test]
    fn ends_alike_in_place_delay_jitter_and_tcp_are_one_host() {
        let ping = Traffic::Ping { interval_ns: 1, packet_bytes: 84 };
        let plain = || flow(bulk(TcpParams::LINUX));
        let marked = flow(bulk(TcpParams { ecn: true, ..TcpParams::LINUX }));
        let late = FlowSpec { jitter_ns: 7, ..plain() };
        let numbers = of(&[up(flow(ping)), plain(), plain(), marked, late, up(plain())]);
        let at_home = [numbers[0][0], numbers[2][1], numbers[4][1], numbers[6][1], numbers[8][1]];
        assert_eq!(at_home[..3], [at_home[0]; 3], "a ping has the host of the first TCP flow");
        assert_ne!(at_home[3], at_home[0]);
        assert_ne!(at_home[4], at_home[0]);
        assert_eq!(numbers[10], [numbers[2][1], numbers[2][0]]);
    }
    #[test]
    fn flows_of_a_tunnel_are_one_connection_between_its_ends() {
        let inside = |flow: FlowSpec| FlowSpec { tunnel: Some("vpn".into()), ..flow };
        let plain = || flow(bulk(TcpParams::LINUX));
        let marked = || flow(bulk(TcpParams { ecn: true, ..TcpParams::LINUX }));
        let flows = [inside(plain()), inside(marked()), inside(up(plain())), plain()];
        let numbers = of(&flows);
        assert_eq!(numbers[0], numbers[2]);
        assert_eq!(
            numbers[4], numbers[1],
            "the source of packets up is the target of packets down"
        );
        assert_ne!(numbers[6], numbers[0]);
        let tunnels = Tunnels::new(&flows);
        assert_eq!([0, 3, 5, 6].map(|direction| tunnels.of(direction)), [1, 1, 1, 0]);
        assert_eq!(Tunnels::new(&flows[3..]).of(0), 0);
    }
}
