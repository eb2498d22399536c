//! The numbers of one seed.

use serde::Deserialize;
use tables::{drops, engine, flows, links, probe, rtt, sojourn, transfers};
use traffic::{Packets, TrafficKind};

use crate::samples::{
    Distribution, LATE_MS, QUANTILES, distribution, exact_sum, histogram_quantile, late_rate,
};
use crate::value::{Count, Sometimes, numbers};
use crate::voice::mos;
use crate::{goodput_mbps, jain, ratio, utilisation};

/// The facts of the run that numbers depend on.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct About {
    pub duration_ns: u64,
    pub warmup_ns: u64,
    pub links: Vec<LinkAbout>,
    pub flows: Vec<FlowAbout>,
    /// The words of the numbers in `drops.cause`.
    pub causes: Vec<String>,
}

/// A link.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs)]
pub struct LinkAbout {
    pub name: String,
    pub qdisc: String,
}

/// A flow or probe.
#[derive(Clone, Debug, Deserialize)]
pub struct FlowAbout {
    /// The name.
    pub name: String,
    /// A `TrafficKind`'s word; in a measurement bulk or ping. A Run from elsewhere may have another
    /// word.
    pub kind: String,
    /// `None`: not TCP.
    pub congestion: Option<String>,
    /// Index of its `[[flow]]` entry.
    pub group: u64,
    /// Numbers of the links that its packets cross.
    pub path: Vec<u32>,
    /// Whether it transfers a size and completes.
    pub finite: bool,
}

/// The tables from which numbers are computed.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct Tables {
    pub links: links::Columns,
    pub flows: flows::Columns,
    pub sojourn: sojourn::Columns,
    pub rtt: rtt::Columns,
    pub probe: probe::Columns,
    pub drops: drops::Columns,
    pub transfers: transfers::Columns,
    pub engine: engine::Columns,
}

numbers! {
    /// The numbers of one seed.
    #[allow(missing_docs)]
    pub struct Seed {
        pub queues: Vec<Queue>,
        pub flows: Vec<Flow>,
        pub groups: Vec<Group>,
        pub probes: Vec<Probe>,
        pub jain: f64,
        pub goodput_mbps: f64,
        pub packets: Count,
    }
}

numbers! {
    /// A link's queue.
    #[allow(missing_docs)]
    pub struct Queue {
        pub link: String,
        pub qdisc: String,
        pub utilisation: f64,
        pub arrived_packets: Count,
        pub dropped_packets: Count,
        pub marked_packets: Count,
        pub drop_rate: f64,
        pub lost_packets: Count,
        pub drops: Vec<(String, u64)>,
        pub marks: Vec<(String, u64)>,
        pub sojourn_ms: Times,
        pub backlog_packets: MeanAndMost,
        pub ring: Option<Ring>,
        pub goodput_mbps: f64,
        pub jain: f64,
    }
}

numbers! {
    /// Times without a minimum.
    #[allow(missing_docs)]
    pub struct Times {
        pub mean: f64,
        pub p50: f64,
        pub p95: f64,
        pub p99: f64,
        pub max: f64,
    }
}

numbers! {
    /// A mean over time, and the maximum.
    #[allow(missing_docs)]
    pub struct MeanAndMost {
        pub mean: f64,
        pub max: Count,
    }
}

numbers! {
    /// A mean, and the maximum.
    #[allow(missing_docs)]
    pub struct MeanAndMax {
        pub mean: f64,
        pub max: f64,
    }
}

numbers! {
    /// The driver's ring below the queue.
    #[allow(missing_docs)]
    pub struct Ring {
        pub sojourn_ms: MeanAndMax,
        pub packets: MeanAndMost,
        pub bql_limit_bytes: Option<u64>,
    }
}

numbers! {
    /// A flow.
    #[allow(missing_docs)]
    pub struct Flow {
        pub name: String,
        pub kind: String,
        pub congestion: Option<String>,
        pub goodput_mbps: f64,
        pub delivered_bytes: Count,
        pub sent_packets: Count,
        pub loss_rate: f64,
        pub retransmits: Count,
        pub timeouts: Count,
        pub base_rtt_ms: f64,
        pub rtt_ms: Distribution,
        pub transfers: Sometimes<Transfers>,
    }
}

numbers! {
    /// Transfers that began after the warm-up and were completed, and their durations.
    #[allow(missing_docs)]
    pub struct Transfers {
        pub completed: u64,
        pub completion_ms: Distribution,
    }
}

numbers! {
    /// The data flows of a scenario's entry as one. Samples are pooled, goodputs added.
    #[allow(missing_docs)]
    pub struct Group {
        pub name: String,
        pub flows: u64,
        pub kind: String,
        pub congestion: Option<String>,
        pub goodput_mbps: f64,
        pub transfers: Sometimes<Transfers>,
        pub late_rate: Sometimes<f64>,
        pub mos: Sometimes<f64>,
    }
}

numbers! {
    /// A probe.
    #[allow(missing_docs)]
    pub struct Probe {
        pub name: String,
        pub sent: Count,
        pub received: u64,
        pub loss_rate: f64,
        pub base_rtt_ms: f64,
        pub rtt_ms: Distribution,
    }
}

type Bins = Vec<(u64, u64, u64)>;

/// The tables by flow and link, split once: there may be thousands of both.
struct Cut {
    totals: Vec<flows::Row>,
    rtts: Vec<Bins>,
    completions_ms: Vec<Vec<f64>>,
    /// Round trips of the requests sent after the warm-up.
    requests: Vec<Vec<Option<u64>>>,
    links: Vec<links::Row>,
    sojourns: Vec<Bins>,
    /// By cause: drops, marks.
    verdicts: Vec<[Vec<u64>; 2]>,
}

/// The numbers of one seed.
///
/// # Panics
///
/// If the tables are not of this scenario: a link or flow has no row of totals.
pub fn of_seed(about: &About, tables: &Tables) -> Seed {
    let cut = cut(about, tables);
    let measured_s = about.duration_ns.saturating_sub(about.warmup_ns) as f64 / 1e9;
    let flows: Vec<Flow> = (0..about.flows.len())
        .map(|number| flow(&about.flows[number], &cut.totals[number], &cut, number, measured_s))
        .collect();
    let queue_of = |number: usize| queue(about, &cut, number, &flows);
    let queues = (0..about.links.len()).map(queue_of).collect();
    let groups = groups(about, &cut, &flows);
    let probes = (0..about.flows.len()).filter(|&number| is_probe(&about.flows[number].kind));
    let probes = probes.map(|number| probe_numbers(about, &cut, number)).collect();
    let packets = Count(tables.engine.row(0).packets);
    let all: Vec<&Flow> = flows.iter().collect();
    let (jain, goodput_mbps) = (jain(&endless(&all)), total_goodput(&all));
    Seed { queues, groups, probes, jain, goodput_mbps, packets, flows }
}

fn cut(about: &About, tables: &Tables) -> Cut {
    let many = about.flows.len();
    let mut totals: Vec<Option<flows::Row>> = vec![None; many];
    for row in tables.flows.rows() {
        totals[row.flow.0 as usize] = Some(row);
    }
    let totals = totals.into_iter().map(|row| row.expect("each flow has its totals")).collect();
    let mut links: Vec<Option<links::Row>> = vec![None; about.links.len()];
    for row in tables.links.rows() {
        links[row.link.0 as usize] = Some(row);
    }
    let links = links.into_iter().map(|row| row.expect("each link has its totals")).collect();
    let mut sojourns = vec![Bins::new(); about.links.len()];
    for row in tables.sojourn.rows() {
        sojourns[row.link.0 as usize].push((row.lower_ns, row.upper_ns, row.packets));
    }
    let none = || vec![0; about.causes.len()];
    let mut verdicts = vec![[none(), none()]; about.links.len()];
    for row in tables.drops.rows().filter(|row| row.t_ns >= about.warmup_ns) {
        verdicts[row.link.0 as usize][usize::from(row.marked > 0)][row.cause.0 as usize] += 1;
    }
    let mut requests = vec![Vec::new(); many];
    for row in tables.probe.rows().filter(|row| row.t_ns >= about.warmup_ns) {
        requests[row.probe.0 as usize].push(row.rtt_ns);
    }
    let mut rtts = vec![Bins::new(); many];
    for row in tables.rtt.rows() {
        rtts[row.flow.0 as usize].push((row.lower_ns, row.upper_ns, row.samples));
    }
    let mut completions_ms = vec![Vec::new(); many];
    for row in tables.transfers.rows().filter(|row| row.start_ns >= about.warmup_ns) {
        completions_ms[row.flow.0 as usize]
            .push(row.end_ns.wrapping_sub(row.start_ns) as i64 as f64 / 1e6);
    }
    Cut { totals, rtts, completions_ms, requests, links, sojourns, verdicts }
}

fn is_probe(kind: &str) -> bool {
    TrafficKind::of(kind).is_some_and(TrafficKind::is_probe)
}

fn is_greedy(kind: &str) -> bool {
    TrafficKind::of(kind).is_some_and(|kind| kind.record().greedy)
}

fn is_speech(kind: &str) -> bool {
    TrafficKind::of(kind).is_some_and(|kind| kind.record().speech)
}

/// Goodput of the TCP flows that send all the time: flows whose shares can be compared.
fn endless(flows: &[&Flow]) -> Vec<f64> {
    let alike = flows.iter().filter(|flow| is_greedy(&flow.kind) && flow.congestion.is_some());
    alike.map(|flow| flow.goodput_mbps).collect()
}

fn total_goodput(flows: &[&Flow]) -> f64 {
    flows.iter().filter(|flow| !is_probe(&flow.kind)).fold(0.0, |sum, flow| sum + flow.goodput_mbps)
}

fn ms(ns: Option<u64>) -> f64 {
    real(ns) / 1e6
}

/// A count that was not observed is NaN, and so is every number from it.
fn real(count: Option<u64>) -> f64 {
    count.map_or(f64::NAN, |count| count as f64)
}

fn queue(about: &About, cut: &Cut, number: usize, flows: &[Flow]) -> Queue {
    let (row, bins, [drops, marks]) =
        (&cut.links[number], &cut.sojourns[number], &cut.verdicts[number]);
    let crosses = |flow: &FlowAbout| flow.path.contains(&(number as u32));
    let here = flows.iter().zip(&about.flows).filter(|(_, info)| crosses(info));
    let here: Vec<&Flow> = here.map(|(flow, _)| flow).collect();
    let most = row.sojourn_max_ns.map(|most| most as f64);
    let [p50, p95, p99] = quantiles_ms(bins, None, most);
    let sum = row.sojourn_sum_ns.unwrap_or(f64::NAN);
    let max = ms(row.sojourn_max_ns.filter(|_| row.sent_packets != Some(0)));
    Queue {
        link: about.links[number].name.clone(),
        qdisc: about.links[number].qdisc.clone(),
        utilisation: utilisation(real(row.wire_bytes), row.capacity_bits),
        arrived_packets: Count(row.arrived_packets),
        dropped_packets: Count(row.dropped_packets),
        marked_packets: Count(row.marked_packets),
        drop_rate: ratio(real(row.dropped_packets), real(row.arrived_packets)),
        lost_packets: Count(row.lost_packets),
        drops: by_word(about, drops),
        marks: by_word(about, marks),
        sojourn_ms: Times { mean: ratio(sum, real(row.sent_packets)) / 1e6, p50, p95, p99, max },
        backlog_packets: MeanAndMost {
            mean: row.backlog_mean_packets.unwrap_or(f64::NAN),
            max: Count(row.backlog_max_packets),
        },
        ring: row.ring_sent_packets.map(|sent| ring(row, sent)),
        goodput_mbps: total_goodput(&here),
        jain: jain(&endless(&here)),
    }
}

fn ring(row: &links::Row, sent: u64) -> Ring {
    let sum = row.ring_sojourn_sum_ns.unwrap_or(f64::NAN);
    Ring {
        sojourn_ms: MeanAndMax {
            mean: ratio(sum, sent as f64) / 1e6,
            max: if sent > 0 { ms(row.ring_sojourn_max_ns) } else { f64::NAN },
        },
        packets: MeanAndMost {
            mean: row.ring_mean_packets.unwrap_or(f64::NAN),
            max: Count(row.ring_max_packets),
        },
        bql_limit_bytes: row.bql_limit_bytes,
    }
}

/// Counts in the alphabetical order of the causes.
fn by_word(about: &About, counts: &[u64]) -> Vec<(String, u64)> {
    let named = about.causes.iter().cloned().zip(counts.iter().copied());
    let mut occurred: Vec<_> = named.filter(|(_, count)| *count > 0).collect();
    occurred.sort_unstable();
    occurred
}

fn flow(info: &FlowAbout, row: &flows::Row, cut: &Cut, number: usize, measured_s: f64) -> Flow {
    let measured = |ns: Option<u64>| ms(ns.filter(|_| row.rtt_samples.is_some_and(|n| n > 0)));
    let (least, most) = (row.rtt_min_ns.map(|ns| ns as f64), row.rtt_max_ns.map(|ns| ns as f64));
    let [p50, p95, p99] = quantiles_ms(&cut.rtts[number], least, most);
    let lost = real(row.lost_packets);
    Flow {
        name: info.name.clone(),
        kind: info.kind.clone(),
        congestion: info.congestion.clone(),
        goodput_mbps: goodput_mbps(real(row.delivered_bytes), measured_s),
        delivered_bytes: Count(row.delivered_bytes),
        sent_packets: Count(row.sent_packets),
        loss_rate: ratio(lost, lost + real(row.received_packets)),
        retransmits: Count(row.retransmits),
        timeouts: Count(row.timeouts),
        base_rtt_ms: ms(row.base_rtt_ns),
        rtt_ms: Distribution {
            min: measured(row.rtt_min_ns),
            mean: ratio(row.rtt_sum_ns.unwrap_or(f64::NAN), real(row.rtt_samples)) / 1e6,
            p50,
            p95,
            p99,
            max: measured(row.rtt_max_ns),
        },
        transfers: Sometimes(info.finite.then(|| transfers(cut.completions_ms[number].clone()))),
    }
}

fn transfers(ms: Vec<f64>) -> Transfers {
    Transfers { completed: ms.len() as u64, completion_ms: distribution(&ms) }
}

/// Whether programs of the host send the flow: its one-way delays are not known.
fn of_programs(kind: &str) -> bool {
    TrafficKind::of(kind).is_some_and(|kind| kind.record().packets == Packets::Programs)
}

/// The scenario's entries, in the order of their first flows; probes form no group.
fn groups(about: &About, cut: &Cut, flows: &[Flow]) -> Vec<Group> {
    let mut members: Vec<(u64, Vec<usize>)> = Vec::new();
    for (number, info) in about.flows.iter().enumerate().filter(|(_, info)| !is_probe(&info.kind)) {
        match members.iter_mut().find(|(group, _)| *group == info.group) {
            Some((_, numbers)) => numbers.push(number),
            None => members.push((info.group, vec![number])),
        }
    }
    members.into_iter().map(|(_, numbers)| group(about, cut, flows, &numbers)).collect()
}

fn group(about: &About, cut: &Cut, flows: &[Flow], numbers: &[usize]) -> Group {
    let first = &about.flows[numbers[0]];
    let stem = first.name.rsplit_once('.').map_or("", |(stem, _)| stem);
    let whole = numbers.len() == 1 || stem.is_empty();
    let pooled = || numbers.iter().flat_map(|&n| cut.completions_ms[n].iter().copied()).collect();
    let late = || {
        let bins: Bins = numbers.iter().flat_map(|&n| cut.rtts[n].iter().copied()).collect();
        let lost = numbers.iter().fold(0.0, |sum, &n| sum + real(cut.totals[n].lost_packets));
        late_rate(&bins, lost, LATE_MS)
    };
    // The mean of the calls' scores, rather than the score of a call with the packets of all.
    let sounds = || {
        let each = numbers.iter().map(|&n| mos(&cut.rtts[n], real(cut.totals[n].lost_packets)));
        exact_sum(each) / numbers.len() as f64
    };
    Group {
        name: if whole { first.name.clone() } else { stem.into() },
        flows: numbers.len() as u64,
        kind: first.kind.clone(),
        congestion: first.congestion.clone(),
        goodput_mbps: exact_sum(numbers.iter().map(|&n| flows[n].goodput_mbps)),
        transfers: Sometimes(first.finite.then(|| transfers(pooled()))),
        late_rate: Sometimes((first.congestion.is_none() && !of_programs(&first.kind)).then(late)),
        mos: Sometimes(is_speech(&first.kind).then(sounds)),
    }
}

fn probe_numbers(about: &About, cut: &Cut, number: usize) -> Probe {
    // Requests in flight at the end are neither received nor lost: they are not in the table.
    let rtts = &cut.requests[number];
    let answered: Vec<f64> = rtts.iter().flatten().map(|&ns| ns as f64 / 1e6).collect();
    let received = answered.len();
    // If losses are not known, only answered requests are in the table.
    let sent = cut.totals[number].lost_packets.map(|_| rtts.len() as u64);
    Probe {
        name: about.flows[number].name.clone(),
        sent: Count(sent),
        received: received as u64,
        loss_rate: sent.map_or(f64::NAN, |sent| ratio(sent as f64 - received as f64, sent as f64)),
        base_rtt_ms: ms(cut.totals[number].base_rtt_ns),
        rtt_ms: distribution(&answered),
    }
}

/// p50, p95 and p99 of a histogram in ms, between the least and the largest sample; NaN without a
/// sample.
///
/// A bin begins below its least sample and ends above its largest one, hence the bounds.
fn quantiles_ms(bins: &Bins, least: Option<f64>, most: Option<f64>) -> [f64; 3] {
    QUANTILES.map(|(_, q)| {
        let value = histogram_quantile(bins, q);
        // With NaN both comparisons are false.
        let value = least.filter(|least| *least > value).unwrap_or(value);
        most.filter(|most| *most < value).unwrap_or(value) / 1e6
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tables::CauseId;

    /// A second with a warm-up of 100 ns, one link and one bulk flow.
    fn about() -> About {
        let flow = FlowAbout {
            name: "bulk".into(),
            kind: "bulk".into(),
            congestion: Some("cubic".into()),
            group: 0,
            path: vec![0],
            finite: false,
        };
        About {
            duration_ns: 1_000_000_000,
            warmup_ns: 100,
            links: vec![LinkAbout { name: "link".into(), qdisc: "fifo".into() }],
            flows: vec![flow],
            causes: vec!["limit".into(), "target".into()],
        }
    }

    /// Tables with a row of totals for that link and that flow.
    fn tables(flow: flows::Row) -> Tables {
        Tables {
            links: [links::Row::default()].into_iter().collect(),
            flows: [flow].into_iter().collect(),
            engine: [engine::Row::default()].into_iter().collect(),
            ..Tables::default()
        }
    }

    #[test]
    fn the_instant_at_which_the_warm_up_ends_is_measured() {
        let mut tables = tables(flows::Row { lost_packets: Some(1), ..flows::Row::default() });
        for (t_ns, cause, marked) in [(99, 0, 0), (100, 0, 0), (100, 1, 1), (101, 0, 0)] {
            let cause = CauseId(cause);
            tables.drops.push(drops::Row { t_ns, cause, marked, ..drops::Row::default() });
        }
        for (t_ns, rtt_ns) in [(99, None), (100, None), (101, Some(7))] {
            tables.probe.push(probe::Row { t_ns, rtt_ns, ..probe::Row::default() });
        }
        for start_ns in [99, 100, 101] {
            tables.transfers.push(transfers::Row { start_ns, ..transfers::Row::default() });
        }
        let of = |kind: &str| {
            let mut about = about();
            (about.flows[0].kind, about.flows[0].finite) = (kind.into(), kind == "transfers");
            of_seed(&about, &tables)
        };
        let (seed, transfers) = (of("ping"), of("transfers"));
        assert_eq!(seed.queues[0].drops, [("limit".to_string(), 2)]);
        assert_eq!(seed.queues[0].marks, [("target".to_string(), 1)]);
        assert_eq!((seed.probes[0].sent, seed.probes[0].received), (Count(Some(2)), 1));
        assert_eq!(transfers.flows[0].transfers.0.as_ref().map(|all| all.completed), Some(2));
    }

    #[test]
    fn a_packet_in_flight_at_the_end_is_neither_lost_nor_received() {
        // Of 100 packets 10 are still in flight: the loss rate is that of the other 90.
        let flow = flows::Row {
            sent_packets: Some(100),
            received_packets: Some(81),
            lost_packets: Some(9),
            ..flows::Row::default()
        };
        assert_eq!(of_seed(&about(), &tables(flow)).flows[0].loss_rate, 0.1);
    }
}
