//! The recorder: time lines, drops, histograms and totals, as columns.
//!
//! Time lines cover the whole run. Histograms and totals begin at the end of the warm-up:
//! histograms are emptied then, counters are copied then and subtracted at the end. The crate
//! `tables` declares tables and columns.

use crate::ends::Counters;
use crate::host::Host;
use crate::payload::Slip;
use crate::scenario::Scenario;
use link::{Departure, Link, Ring, RingCounters};
use qdisc::{Cause, Qdisc, State, Verdict};
use tables::{
    Batch, CauseId, FlowId, Histogram, LinkId, Table, drops, engine, flow, flows, headers, links,
    packets, probe, queue, rtt, sojourn, transfers,
};
use units::{Span, Time};

/// The records of one link.
#[derive(Default)]
struct LinkRecord {
    /// Counts at the last sample.
    sampled: Totals,
    /// Counts at the end of the warm-up.
    warm: Totals,
    /// Counts at the end.
    last: Totals,
    peak_entries: u32,
    peak_bytes: u64,
    /// If there is a ring: most packets and longest sojourn since the warm-up, and BQL's last
    /// limit.
    ring: Option<RingRecord>,
}

/// The sojourn times of one link.
#[derive(Default)]
pub struct Sojourns {
    all: Histogram,
    /// Since the last sample: sum and maximum.
    interval_sum: u128,
    interval_max: u64,
}

impl Sojourns {
    /// A packet left the queue; the batch is added later.
    #[inline(always)]
    pub fn add_to_batch(&mut self, batch: &mut Batch, sojourn: u64) {
        self.all.add_to_batch(batch, sojourn);
    }

    /// Adds the totals of a batch.
    #[inline]
    pub fn end_batch(&mut self, batch: Batch) {
        self.all.end_batch(batch);
        self.interval_sum += u128::from(batch.sum);
        self.interval_max = self.interval_max.max(batch.max);
    }
}

/// Drops, marks and losses: their rows, and their number on each link.
pub struct Verdicts {
    links: Vec<Decided>,
    header_bytes: Vec<u32>,
    rows: Vec<drops::Row>,
}

/// The number of drops, marks and losses of one link.
#[derive(Clone, Copy, Default)]
struct Decided {
    dropped: u64,
    marked: u64,
    lost: u64,
}

impl Verdicts {
    /// A packet was dropped, lost or marked.
    pub fn add(&mut self, link: u32, verdict: &Verdict<Slip>, now: Time) {
        let decided = &mut self.links[link as usize];
        let (flow, bytes, cause, marked) = match *verdict {
            // These packets were dropped behind the queue.
            Verdict::Dropped(packet, cause @ (Cause::Wire | Cause::Replay)) => {
                decided.lost += 1;
                (packet.flow, packet.size, cause, 0)
            }
            Verdict::Dropped(packet, cause) => {
                decided.dropped += 1;
                (packet.flow, packet.size - self.header_bytes[link as usize], cause, 0)
            }
            Verdict::Marked { flow, size, cause } => {
                decided.marked += 1;
                (flow, size - self.header_bytes[link as usize], cause, 1)
            }
        };
        let (t_ns, cause) = (now.0, CauseId(cause as u8));
        self.rows.push(drops::Row {
            t_ns,
            link: LinkId(link),
            flow: FlowId(flow / 2),
            cause,
            marked,
            bytes,
        });
    }
}

#[derive(Clone, Copy)]
struct RingRecord {
    most_packets: u32,
    longest_ns: u64,
    limit_bytes: Option<u64>,
}

/// The counters that only grow, at one time.
#[derive(Clone, Copy, Default)]
struct Totals {
    arrived_packets: u64,
    arrived_bytes: u64,
    sent_packets: u64,
    sent_bytes: u64,
    wire_bytes: u64,
    dropped: u64,
    marked: u64,
    lost: u64,
    busy_ns: u64,
    packet_ns: u128,
    byte_ns: u128,
    ring: RingCounters,
}

pub struct Recorder {
    pub queue_interval: Span,
    pub flow_interval: Span,
    keep_packets: bool,
    warm_at: Time,
    ended_at: Time,
    links: Vec<LinkRecord>,
    pub sojourns: Vec<Sojourns>,
    pub verdicts: Verdicts,
    sampled: Vec<bool>,
    capacity_bits: Vec<Option<u128>>,
    warm_flows: Vec<Counters>,
    base_rtts: Vec<Option<u64>>,
    queue: queue::Columns,
    flow: flow::Columns,
    packets: Vec<packets::Row>,
    headers: Option<Vec<headers::Row>>,
}

impl Recorder {
    pub fn new(scenario: &Scenario) -> Recorder {
        Recorder {
            queue_interval: Span(scenario.record.queue_ns.max(1)),
            flow_interval: Span(scenario.record.flow_ns.max(1)),
            keep_packets: scenario.record.packets,
            warm_at: Time(scenario.warmup_ns),
            ended_at: Time::ZERO,
            links: scenario.links.iter().map(|_| LinkRecord::default()).collect(),
            sojourns: scenario.links.iter().map(|_| Sojourns::default()).collect(),
            verdicts: Verdicts {
                links: vec![Decided::default(); scenario.links.len()],
                header_bytes: scenario.links.iter().map(|l| l.framing.header_bytes).collect(),
                rows: Vec::new(),
            },
            sampled: scenario.links.iter().map(|l| l.sampled).collect(),
            capacity_bits: Vec::new(),
            warm_flows: vec![Counters::default(); scenario.flows.len()],
            base_rtts: Vec::new(),
            queue: queue::Columns::default(),
            flow: flow::Columns::default(),
            packets: Vec::new(),
            headers: scenario.record.headers.then(Vec::new),
        }
    }

    /// Sets the least round trip of each flow: propagation and the transmission of a full packet
    /// and of its reply. Without replies it is the one-way delay. It is `None` if a link on the
    /// path never sends the packet.
    pub fn set_base_rtts(&mut self, base_rtts: Vec<Option<u64>>) {
        self.base_rtts = base_rtts;
    }

    /// When the warm-up ends.
    pub fn warm_at(&self) -> Time {
        self.warm_at
    }

    /// Whether each departure is recorded: its row, or the headers of its packet.
    pub fn keeps_each(&self) -> bool {
        self.keep_packets || self.headers.is_some()
    }

    /// A packet left the queue.
    #[inline]
    pub fn departure(&mut self, link: u32, departure: &Departure<Slip>) {
        let sojourn = departure.dequeued.since(departure.packet.enqueued).0;
        let (sojourns, mut one) = (&mut self.sojourns[link as usize], Batch::default());
        sojourns.add_to_batch(&mut one, sojourn);
        sojourns.end_batch(one);
        if self.keep_packets {
            self.keep_packet(link, departure, sojourn);
        }
    }

    #[cold]
    fn keep_packet(&mut self, link: u32, departure: &Departure<Slip>, sojourn: u64) {
        self.packets.push(packets::Row {
            t_ns: departure.dequeued.0,
            link: LinkId(link),
            flow: FlowId(departure.packet.flow / 2),
            sojourn_ns: sojourn,
            bytes: departure.packet.size,
        });
    }

    /// The rows of packet headers, if they are recorded.
    #[inline]
    pub fn headers(&mut self) -> Option<&mut Vec<headers::Row>> {
        self.headers.as_mut()
    }

    /// One row of `queue` for each link that is sampled.
    pub fn sample_queues(&mut self, links: &[Link<Slip>], now: Time) {
        for (index, link) in links.iter().enumerate().filter(|(index, _)| self.sampled[*index]) {
            let record = &mut self.links[index];
            let sojourns = &mut self.sojourns[index];
            let totals = totals(link, self.verdicts.links[index], now);
            let backlog = link.backlog();
            let State { limit, count, probability, average, flows, classic_delay, l4s_delay } =
                link.qdisc().state(now);
            let ring = link.ring();
            let sent_packets = totals.sent_packets - record.sampled.sent_packets;
            let mean = sojourns.interval_sum as f64 / sent_packets as f64;
            self.queue.push(queue::Row {
                t_ns: now.0,
                link: LinkId(index as u32),
                backlog_packets: Some(backlog.packets.into()),
                backlog_bytes: Some(backlog.bytes),
                sojourn_mean_ns: (sent_packets > 0).then_some(mean),
                sojourn_max_ns: Some(sojourns.interval_max),
                sent_packets: Some(sent_packets),
                sent_bytes: Some(totals.sent_bytes - record.sampled.sent_bytes),
                dropped_packets: Some(totals.dropped - record.sampled.dropped),
                marked_packets: Some(totals.marked - record.sampled.marked),
                limit,
                count,
                probability,
                average,
                flows,
                classic_delay_ns: classic_delay,
                l4s_delay_ns: l4s_delay,
                ring_packets: ring.map(|ring| ring.backlog().packets.into()),
                ring_bytes: ring.map(|ring| ring.backlog().bytes),
                bql_limit_bytes: ring.and_then(Ring::limit),
            });
            record.sampled = totals;
            (sojourns.interval_sum, sojourns.interval_max) = (0, 0);
        }
    }

    /// One row of `flow` for each flow that is not a probe.
    pub fn sample_flows(&mut self, hosts: &mut [Host], now: Time) {
        for (index, host) in hosts.iter_mut().enumerate() {
            if host.is_probe() {
                continue;
            }
            let counters = host.totals();
            let delay_max_ns = host.longest.take().map(|delay| delay.0);
            let (sender, receiver) = host.tcp().unzip();
            self.flow.push(flow::Row {
                t_ns: now.0,
                flow: FlowId(index as u32),
                cwnd_bytes: sender.map(|sender| sender.cwnd_bytes()),
                ssthresh_bytes: sender.and_then(|sender| sender.ssthresh_bytes()),
                srtt_ns: sender.and_then(|sender| sender.srtt()).map(|srtt| srtt.0),
                inflight_bytes: sender.map(|sender| sender.inflight_bytes()),
                delivered_bytes: Some(counters.delivered_bytes),
                retransmits: Some(counters.retransmits),
                window_bytes: receiver.map(|receiver| receiver.window_bytes()),
                delay_max_ns,
            });
        }
    }

    /// The warm-up is over: the measured time begins.
    pub fn warm(&mut self, links: &mut [Link<Slip>], hosts: &mut [Host], now: Time) {
        let records = self.links.iter_mut().zip(&mut self.sojourns).zip(&self.verdicts.links);
        for (((record, sojourns), decided), link) in records.zip(links) {
            record.warm = totals(link, *decided, now);
            sojourns.all.clear();
            link.forget_peak();
        }
        for (warm, host) in self.warm_flows.iter_mut().zip(hosts) {
            *warm = host.totals();
            host.rtt.clear();
        }
    }

    /// Stores the last counts at the end of the run.
    pub fn finish(&mut self, links: &mut [Link<Slip>], now: Time) {
        self.ended_at = now;
        let records = self.links.iter_mut().zip(&self.verdicts.links);
        for ((record, decided), link) in records.zip(links) {
            record.last = totals(link, *decided, now);
            record.peak_entries = link.peak().packets;
            record.peak_bytes = link.peak().bytes;
            record.ring = link.ring().map(|ring| {
                let (most_packets, longest) = ring.peak();
                RingRecord { most_packets, longest_ns: longest.0, limit_bytes: ring.limit() }
            });
            self.capacity_bits.push(link.capacity_bits(self.warm_at, now));
        }
    }

    /// Returns everything as tables.
    pub fn into_tables(
        self,
        hosts: &[Host],
        events: u64,
        packets: u64,
        peak_entries: usize,
    ) -> Vec<Table> {
        let engine = engine::Row {
            events: Some(events),
            packets: Some(packets),
            peak_entries: Some(peak_entries as u64),
        };
        let mut tables = vec![
            self.link_totals().into_table(),
            self.flow_totals(hosts).into_table(),
            self.sojourns().into_table(),
            rtts(hosts).into_table(),
            probes(hosts).into_table(),
            transfers(hosts).into_table(),
            self.queue.into_table(),
            self.flow.into_table(),
        ];
        // Each link runs alone for a window of time, so rows are not yet in order.
        let drops = by_time(self.verdicts.rows, |row| (row.t_ns, row.link.0));
        tables.push(drops::Columns::from_iter(drops).into_table());
        if self.keep_packets {
            let packets = by_time(self.packets, |row| (row.t_ns, row.link.0));
            tables.push(packets::Columns::from_iter(packets).into_table());
        }
        if let Some(headers) = self.headers {
            let headers = by_time(headers, |row| (row.t_ns, row.link.0));
            tables.push(headers::Columns::from_iter(headers).into_table());
        }
        tables.push(engine::Columns::from_iter([engine]).into_table());
        tables
    }

    fn link_totals(&self) -> links::Columns {
        let measured = self.ended_at.since(self.warm_at).0;
        let per_ns = |integral: u128| integral as f64 / measured.max(1) as f64;
        let rows = self.links.iter().zip(&self.sojourns).zip(&self.capacity_bits).enumerate();
        let rows = rows.map(|(number, ((record, Sojourns { all: sojourn, .. }), capacity))| {
            let LinkRecord { last, warm, ring, .. } = record;
            let (now, then) = (last.ring, warm.ring);
            links::Row {
                link: LinkId(number as u32),
                arrived_packets: Some(last.arrived_packets - warm.arrived_packets),
                arrived_bytes: Some(last.arrived_bytes - warm.arrived_bytes),
                sent_packets: Some(last.sent_packets - warm.sent_packets),
                sent_bytes: Some(last.sent_bytes - warm.sent_bytes),
                wire_bytes: Some(last.wire_bytes - warm.wire_bytes),
                dropped_packets: Some(last.dropped - warm.dropped),
                marked_packets: Some(last.marked - warm.marked),
                lost_packets: Some(last.lost - warm.lost),
                sojourn_sum_ns: Some(sojourn.sum as f64),
                sojourn_max_ns: Some(sojourn.max),
                backlog_mean_packets: Some(per_ns(last.packet_ns - warm.packet_ns)),
                backlog_mean_bytes: Some(per_ns(last.byte_ns - warm.byte_ns)),
                backlog_max_packets: Some(record.peak_entries.into()),
                backlog_max_bytes: Some(record.peak_bytes),
                busy_ns: Some(last.busy_ns - warm.busy_ns),
                capacity_bits: capacity.map(|bits| bits as f64),
                measured_ns: Some(measured),
                ring_sent_packets: ring.map(|_| now.sent_packets - then.sent_packets),
                ring_sojourn_sum_ns: ring
                    .map(|_| (now.sojourn_sum_ns - then.sojourn_sum_ns) as f64),
                ring_sojourn_max_ns: ring.map(|ring| ring.longest_ns),
                ring_mean_packets: ring.map(|_| per_ns(now.packet_ns - then.packet_ns)),
                ring_max_packets: ring.map(|ring| ring.most_packets.into()),
                bql_limit_bytes: ring.and_then(|ring| ring.limit_bytes),
            }
        });
        rows.collect()
    }

    fn flow_totals(&self, hosts: &[Host]) -> flows::Columns {
        let all = hosts.iter().zip(&self.warm_flows).zip(&self.base_rtts).enumerate();
        let rows = all.map(|(number, ((host, warm), base))| {
            let (now, rtt) = (host.totals(), &host.rtt);
            let least = (rtt.count > 0).then_some(rtt.min);
            flows::Row {
                flow: FlowId(number as u32),
                sent_packets: Some(now.sent_packets - warm.sent_packets),
                sent_bytes: Some(now.sent_bytes - warm.sent_bytes),
                received_packets: Some(now.received_packets - warm.received_packets),
                delivered_bytes: Some(now.delivered_bytes - warm.delivered_bytes),
                lost_packets: Some(now.lost_packets - warm.lost_packets),
                retransmits: Some(now.retransmits - warm.retransmits),
                timeouts: Some(now.timeouts - warm.timeouts),
                fast_recoveries: Some(now.fast_recoveries - warm.fast_recoveries),
                rtt_sum_ns: Some(rtt.sum as f64),
                rtt_samples: Some(rtt.count),
                rtt_min_ns: least,
                rtt_max_ns: Some(rtt.max),
                // A packet that is not full may be quicker than a full packet.
                base_rtt_ns: base.map(|base| least.map_or(base, |least| base.min(least))),
            }
        });
        rows.collect()
    }

    fn sojourns(&self) -> sojourn::Columns {
        let of_link = |(number, sojourns): (usize, &Sojourns)| {
            let link = LinkId(number as u32);
            let rows = sojourns.all.buckets();
            rows.map(move |(lower_ns, upper_ns, packets)| sojourn::Row {
                link,
                lower_ns,
                upper_ns,
                packets,
            })
            .collect::<Vec<_>>()
        };
        self.sojourns.iter().enumerate().flat_map(of_link).collect()
    }
}

/// Sorts rows by time and then by link; rows of one time and link keep their order.
fn by_time<R>(mut rows: Vec<R>, of: impl Fn(&R) -> (u64, u32)) -> Vec<R> {
    rows.sort_by_key(of);
    rows
}

fn rtts(hosts: &[Host]) -> rtt::Columns {
    let of_host = |(number, host): (usize, &Host)| {
        let flow = FlowId(number as u32);
        let rows = host.rtt.buckets();
        rows.map(move |(lower_ns, upper_ns, samples)| rtt::Row {
            flow,
            lower_ns,
            upper_ns,
            samples,
        })
        .collect::<Vec<_>>()
    };
    hosts.iter().enumerate().flat_map(of_host).collect()
}

/// Pings in flight at the end are neither received nor lost; they are left out.
fn probes(hosts: &[Host]) -> probe::Columns {
    let mut rows = probe::Columns::default();
    for (index, host) in hosts.iter().enumerate() {
        for (number, p) in host.probes.iter().enumerate().filter(|(_, p)| p.rtt.is_some() || p.lost)
        {
            rows.push(probe::Row {
                t_ns: p.sent.0,
                probe: FlowId(index as u32),
                seq: number as u64,
                rtt_ns: p.rtt.map(|span| span.0),
                forward_ns: p.forward.map(|span| span.0),
            });
        }
    }
    rows
}

fn transfers(hosts: &[Host]) -> transfers::Columns {
    let mut rows = transfers::Columns::default();
    for (index, host) in hosts.iter().enumerate() {
        for transfer in &host.transfers {
            rows.push(transfers::Row {
                flow: FlowId(index as u32),
                start_ns: transfer.start.0,
                end_ns: transfer.end.0,
                bytes: transfer.bytes,
            });
        }
    }
    rows
}

fn totals(link: &Link<Slip>, decided: Decided, now: Time) -> Totals {
    let counters = link.counters();
    let (packet_ns, byte_ns) = link.backlog_integrals(now);
    Totals {
        arrived_packets: counters.arrived_packets,
        arrived_bytes: counters.arrived_bytes,
        sent_packets: counters.sent_packets,
        sent_bytes: counters.sent_bytes,
        wire_bytes: link.wire_bytes(now),
        dropped: decided.dropped,
        marked: decided.marked,
        lost: decided.lost,
        busy_ns: link.busy_ns(now),
        packet_ns,
        byte_ns,
        ring: link.ring().map_or(RingCounters::default(), |ring| ring.counters(now)),
    }
}
