//! Laws over random small scenarios, for all traffic, disciplines and losses.

mod common;
#[path = "common/scenarios.rs"]
mod scenarios;

use common::{MS, S, Tables, flow, link, run};
use link::RingParams;
use proptest::prelude::*;
use qdisc::Params;
use scenarios::any_scenario;
use sim::{Draw, FlowSpec, Frames, LinkSpec, Packets, Scenario, Sim, Traffic};
use tables::Table;

fn last_backlog(tables: &Tables, link: usize) -> f64 {
    let links = tables.column("queue", "link");
    let backlog = tables.column("queue", "backlog_packets");
    links
        .iter()
        .zip(backlog)
        .filter(|(l, _)| **l == link as f64)
        .map(|(_, b)| b)
        .next_back()
        .unwrap_or(0.0)
}

/// Whether one of its wires doubles packets.
fn doubles(scenario: &Scenario) -> bool {
    scenario.links.iter().any(|link| link.impairments.duplicate.is_some())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packets_are_conserved_on_every_link(scenario in any_scenario()) {
        let tables = run(&scenario);
        for l in 0..scenario.links.len() {
            let [arrived, sent, dropped] =
                ["arrived_packets", "sent_packets", "dropped_packets"].map(|c| tables.of("links", c, l));
            prop_assert_eq!(arrived, sent + dropped + last_backlog(&tables, l));
        }
        for f in 0..scenario.flows.len() {
            let [sent, received, lost] =
                ["sent_packets", "received_packets", "lost_packets"].map(|c| tables.of("flows", c, f));
            // All other packets are in flight. A copy that a wire made may be dropped, too.
            prop_assert!(doubles(&scenario) || received + lost <= sent, "{} {} {}", sent, received, lost);
        }
    }

    #[test]
    fn a_link_carries_at_most_its_rate_and_delivers_no_more_than_was_sent(scenario in any_scenario()) {
        let tables = run(&scenario);
        for l in 0..scenario.links.len() {
            let bits = 8.0 * tables.of("links", "wire_bytes", l);
            // The packet in transmission at the end counts as a whole. A shaper's bucket is full at
            // the start and fills again while the transmitter is the slower one. The packets that
            // its ring has gathered by then, at least one, later leave faster than the shaper.
            let LinkSpec { ring, shaper, rate, .. } = &scenario.links[l];
            let gathered = 1500 * ring.map_or(1, |ring| u64::from(ring.descriptors));
            let slower = |bps| 1 + rate.iter().filter(|step| step.bps < bps).count() as u64;
            let ahead = shaper.map_or(0, |shaper| (shaper.burst_bytes + gathered) * slower(shaper.bps)) as f64;
            prop_assert!(bits <= tables.of("links", "capacity_bits", l) + 8.0 * (1600.0 + ahead));
        }
        for f in 0..scenario.flows.len() {
            prop_assert!(tables.of("flows", "delivered_bytes", f) <= tables.of("flows", "sent_bytes", f));
        }
    }

    #[test]
    fn a_link_with_backlog_is_never_idle(scenario in any_scenario()) {
        let tables = run(&scenario);
        let of = |column| tables.column("packets", column);
        let rows: Vec<_> = of("link").into_iter().zip(of("t_ns").into_iter().zip(of("sojourn_ns").into_iter().zip(of("bytes")))).collect();
        // crates/link/tests has the laws with a shaper or a ring.
        let holds = |qdisc: &Params| match qdisc {
            Params::Cake(cake) | Params::CakeMq(cake) => cake.bandwidth.is_some(),
            Params::Fq(fq) => fq.maxrate.is_some(),
            Params::Tbf(_) => true,
            _ => false,
        };
        let plain = |spec: &LinkSpec| spec.ring.is_none() && spec.shaper.is_none() && !holds(&spec.qdisc);
        for (l, spec) in scenario.links.iter().enumerate().filter(|(_, spec)| plain(spec)) {
            let schedule = link::Schedule::new(spec.rate.clone(), None);
            let mut free_at = 0.0;
            for &(_, (left, (sojourn, bytes))) in rows.iter().filter(|r| r.0 == l as f64) {
                // It left when the transmitter became free, or at once on arrival.
                prop_assert!(left == free_at || (sojourn == 0.0 && left > free_at), "left {left}, free {free_at}");
                free_at = schedule.finish(units::Time(left as u64), bytes as u64).0 as f64;
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_tables_however_it_is_sliced(scenario in any_scenario(), slice in 1u64..5000) {
        let whole = run(&scenario);
        let mut sim = Sim::new(&scenario);
        while !sim.run(slice) {}
        // The debug texts of two NaN are equal.
        prop_assert_eq!(format!("{:?}", sim.into_tables()), format!("{:?}", whole.0));
    }

    #[test]
    fn datagrams_that_had_time_to_arrive_were_received_or_dropped(scenario in any_scenario()) {
        let mut scenario = scenario;
        scenario.flows.retain(|f| matches!(f.traffic.kind().record().packets, Packets::Datagrams { .. }));
        for f in &mut scenario.flows {
            f.stop_ns = Some(S);
        }
        for link in &mut scenario.links {
            if let Params::Fq(fq) = &mut link.qdisc {
                // At a rate below 1 Mbit/s a minute may be too short for all packets.
                fq.maxrate = fq.maxrate.filter(|bps| *bps >= 1_000_000);
            }
        }
        scenario.duration_ns = 60 * S;
        let tables = run(&scenario);
        for f in 0..scenario.flows.len() {
            let [sent, received, lost] =
                ["sent_packets", "received_packets", "lost_packets"].map(|c| tables.of("flows", c, f));
            // A copy that a wire made may be dropped, too.
            prop_assert!(doubles(&scenario) || sent == received + lost, "{} {} {}", sent, received, lost);
        }
    }
}

#[test]
#[should_panic(expected = "a path names a link that does not exist")]
fn an_inconsistent_scenario_panics_with_a_message() {
    let ping = flow("ping", Traffic::Ping { interval_ns: 20 * MS, packet_bytes: 84 });
    run(&common::scenario(S, vec![link("down", 0, 10 * MS, common::pfifo(1))], vec![ping]));
}

/// Over links without a rate no flows meet: only draws differ.
fn unhindered(flows: Vec<FlowSpec>) -> Tables {
    let links = ["down", "up"].map(|name| link(name, 0, 10 * MS, common::pfifo(1)));
    let mut scenario = common::scenario(2 * S, links.into(), flows);
    scenario.record.packets = true;
    run(&scenario)
}

/// The times at which the packets of a flow crossed each link.
fn crossings(tables: &Tables, flow: usize) -> Vec<(f64, f64)> {
    let of = |column| tables.column("packets", column);
    let rows = of("flow").into_iter().zip(of("link").into_iter().zip(of("t_ns")));
    rows.filter(|(of, _)| *of == flow as f64).map(|(_, row)| row).collect()
}

/// A flow of each kind with draws; the last two have only a jitter.
fn drawn() -> [FlowSpec; 5] {
    let random = |mean| Draw::Exponential { mean };
    let udp = |on_ns, off_ns| Traffic::Udp { bps: 1_000_000, packet_bytes: 1500, on_ns, off_ns };
    let (bytes, pause_ns) = (random(20_000), random(30 * MS));
    let frames = Frames::Model { bps: 1_000_000, fps: 25.0, gop: 12, i_ratio: 4.0, cv: 0.3 };
    let ping = Traffic::Ping { interval_ns: 20 * MS, packet_bytes: 84 };
    [
        flow("on and off", udp(Some(random(20 * MS)), Some(random(30 * MS)))),
        flow(
            "transfers",
            Traffic::Transfers { bytes, pause_ns, objects: None, tcp: common::reno() },
        ),
        flow("video", Traffic::Video { frames, payload_bytes: 1200 }),
        FlowSpec { jitter_ns: MS, ..flow("udp", udp(None, None)) },
        FlowSpec { jitter_ns: MS, ..flow("ping", ping) },
    ]
}

#[test]
fn an_added_flow_changes_no_other_flow_s_draws() {
    let drawn = drawn();
    let ping = flow("added", Traffic::Ping { interval_ns: 20 * MS, packet_bytes: 84 });
    // Each flow has an entry of its own.
    let numbered = |flows: &[FlowSpec]| {
        let flows = flows.iter().zip(0..).map(|(flow, group)| FlowSpec { group, ..flow.clone() });
        unhindered(flows.collect())
    };
    let alone = numbered(&drawn);
    let beside = numbered(&[[ping].as_slice(), &drawn].concat());
    for (index, flow) in drawn.iter().enumerate() {
        let (alone, beside) = (crossings(&alone, index), crossings(&beside, index + 1));
        assert!(alone.len() > 50 && alone == beside, "{}", flow.name);
    }
}

#[test]
fn flows_that_are_alike_but_for_their_names_have_draws_of_their_own() {
    for flow in drawn() {
        let name = flow.name.clone();
        let twin = FlowSpec { name: format!("{name} again"), ..flow.clone() };
        // Both flows are of one entry.
        let tables = unhindered(vec![flow, twin]);
        assert_ne!(crossings(&tables, 0), crossings(&tables, 1), "{name}");
    }
}

/// The scenario with every rate divided by a billion and every time multiplied by it: a third of a
/// second is ten years.
fn a_billion_times_slower(mut scenario: Scenario) -> Scenario {
    const SLOWER: u64 = 1_000_000_000;
    let slow = |time: &mut u64| *time *= SLOWER;
    slow(&mut scenario.duration_ns);
    slow(&mut scenario.warmup_ns);
    slow(&mut scenario.record.queue_ns);
    slow(&mut scenario.record.flow_ns);
    for link in &mut scenario.links {
        slow(&mut link.delay_ns);
        link.rate.iter_mut().for_each(|step| step.bps /= SLOWER);
        link.ring.iter_mut().for_each(|ring| slow(&mut ring.coalesce_ns));
    }
    for flow in &mut scenario.flows {
        slow(&mut flow.start_ns);
        match &mut flow.traffic {
            Traffic::Udp { bps, .. } => *bps /= SLOWER,
            Traffic::Ping { interval_ns, .. } => slow(interval_ns),
            _ => unreachable!("traffic of this kind is not scaled"),
        }
    }
    scenario
}

/// Sums of ten years' waiting are beyond 64 bits: 850 packets wait 2.7 * 10^20 ns.
#[test]
fn ten_years_are_a_third_of_a_second_a_billion_times_slower() {
    const GBIT: u64 = 1_000_000_000;
    // The link has no shaper, since a shaper does not scale: its tokens are ns at any rate, and its
    // debt is at most a minute.
    let ring = RingParams { descriptors: 200, bql: false, coalesce_ns: 5000 };
    for ring in [None, Some(ring)] {
        let down = LinkSpec { ring, ..link("down", GBIT, 1000, common::pfifo(850)) };
        let udp = Traffic::Udp { bps: 10 * GBIT, packet_bytes: 1500, on_ns: None, off_ns: None };
        let ping = Traffic::Ping { interval_ns: MS, packet_bytes: 84 };
        // The order at one instant depends on the time.
        let ping = FlowSpec { start_ns: 137, ..flow("ping", ping) };
        let flows = vec![flow("udp", udp), ping];
        let links = vec![down, link("up", GBIT, 1000, common::pfifo(850))];
        let seconds = Scenario { warmup_ns: 20 * MS, ..common::scenario(315 * MS, links, flows) };
        let years = run(&a_billion_times_slower(seconds.clone()));
        let seconds = run(&seconds);
        for (table, years) in seconds.0.iter().zip(&years.0) {
            if matches!(table.name, "engine" | "sojourn" | "rtt") {
                // The engine's own table is not compared, nor are bins, which are not a billion
                // times as wide.
                continue;
            }
            for (name, _) in &table.columns {
                let column = |tables: &Table| Tables(vec![tables.clone()]).column(table.name, name);
                let slower = if name.ends_with("_ns") { 1e9 } else { 1.0 };
                for (second, year) in column(table).into_iter().zip(column(years)) {
                    // -1 and not-a-number mean no value in either run.
                    let none =
                        (second == -1.0 && year == -1.0) || (second.is_nan() && year.is_nan());
                    let same = (second * slower - year).abs() <= 1e-15 * year.abs();
                    assert!(none || same, "{} {name}: {second} and {year}", table.name);
                }
            }
        }
        assert!(years.of("links", "sojourn_sum_ns", 0) > 2f64.powi(64));
    }
}
