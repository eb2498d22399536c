//! The recorder: time lines, drops, histograms and totals, as columns.
//!
//! Time lines cover the whole run. Histograms and totals begin at the end of the warm-up: histograms are emptied then,
//! counters are copied then and subtracted at the end. ARCHITECTURE.md lists the tables and their columns.

use crate::histogram::Histogram;
use crate::host::{Counters, Host};
use crate::payload::Payload;
use crate::scenario::Scenario;
use link::{Departure, Link, Ring, RingCounters};
use qdisc::{Cause, Fate, Qdisc, State};
use units::{Span, Time};

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Column {
    U8(Vec<u8>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F64(Vec<f64>),
}

/// A table: its name, and its columns by name, equally long.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// `queue`, `flow`, ...
    pub name: &'static str,
    /// Name and values.
    pub columns: Vec<(&'static str, Column)>,
}

/// What is recorded of one link.
#[derive(Default)]
struct LinkRecord {
    sojourn: Histogram,
    /// Since the last sample: sum, number and greatest of the sojourn times.
    interval_sum: u128,
    interval_count: u64,
    interval_max: u64,
    dropped: u64,
    marked: u64,
    lost: u64,
    /// Counts at the last sample.
    sampled: Totals,
    /// Counts at the end of the warm-up.
    warm: Totals,
    /// Counts at the end.
    last: Totals,
    peak_packets: u32,
    peak_bytes: u64,
    /// Of the ring, where there is one: most packets and longest sojourn since the warm-up, BQL's last limit.
    ring: Option<RingRecord>,
}

#[derive(Clone, Copy)]
struct RingRecord {
    most_packets: u32,
    longest_ns: u64,
    limit_bytes: Option<u64>,
}

/// Everything that only ever grows, at one time.
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

#[derive(Default)]
struct QueueRows {
    t_ns: Vec<u64>,
    link: Vec<u32>,
    backlog_packets: Vec<u32>,
    backlog_bytes: Vec<u64>,
    sojourn_mean_ns: Vec<f64>,
    sojourn_max_ns: Vec<u64>,
    sent_packets: Vec<u64>,
    sent_bytes: Vec<u64>,
    dropped_packets: Vec<u64>,
    marked_packets: Vec<u64>,
    limit: Vec<f64>,
    count: Vec<f64>,
    probability: Vec<f64>,
    average: Vec<f64>,
    flows: Vec<f64>,
    ring_packets: Vec<i64>,
    ring_bytes: Vec<i64>,
    bql_limit_bytes: Vec<i64>,
}

#[derive(Default)]
struct FlowRows {
    t_ns: Vec<u64>,
    flow: Vec<u32>,
    cwnd_bytes: Vec<i64>,
    ssthresh_bytes: Vec<i64>,
    srtt_ns: Vec<i64>,
    inflight_bytes: Vec<i64>,
    delivered_bytes: Vec<u64>,
    retransmits: Vec<u64>,
    window_bytes: Vec<i64>,
}

#[derive(Default)]
struct DropRows {
    t_ns: Vec<u64>,
    link: Vec<u32>,
    flow: Vec<u32>,
    cause: Vec<u8>,
    marked: Vec<u8>,
    bytes: Vec<u32>,
}

#[derive(Default)]
struct PacketRows {
    t_ns: Vec<u64>,
    link: Vec<u32>,
    flow: Vec<u32>,
    sojourn_ns: Vec<u64>,
    bytes: Vec<u32>,
}

pub struct Recorder {
    pub queue_interval: Span,
    pub flow_interval: Span,
    keep_packets: bool,
    warm_at: Time,
    ended_at: Time,
    links: Vec<LinkRecord>,
    header_bytes: Vec<u32>,
    sampled: Vec<bool>,
    capacity_bits: Vec<Option<u128>>,
    warm_flows: Vec<Counters>,
    base_rtts: Vec<Option<u64>>,
    queue: QueueRows,
    flow: FlowRows,
    drops: DropRows,
    packets: PacketRows,
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
            header_bytes: scenario.links.iter().map(|l| l.framing.header_bytes).collect(),
            sampled: scenario.links.iter().map(|l| l.sampled).collect(),
            capacity_bits: Vec::new(),
            warm_flows: vec![Counters::default(); scenario.flows.len()],
            base_rtts: Vec::new(),
            queue: QueueRows::default(),
            flow: FlowRows::default(),
            drops: DropRows::default(),
            packets: PacketRows::default(),
        }
    }

    /// The least round trip of each flow: propagation and the transmission of a full packet and of its reply. One way
    /// where there are no replies; none where a link on the way never sends one.
    pub fn set_base_rtts(&mut self, base_rtts: Vec<Option<u64>>) {
        self.base_rtts = base_rtts;
    }

    /// A packet left the queue.
    #[inline]
    pub fn departure(&mut self, link: u32, departure: &Departure<Payload>) {
        let sojourn = departure.dequeued.since(departure.packet.enqueued).0;
        let record = &mut self.links[link as usize];
        record.sojourn.add(sojourn);
        record.interval_sum += u128::from(sojourn);
        record.interval_count += 1;
        record.interval_max = record.interval_max.max(sojourn);
        if self.keep_packets {
            self.keep_packet(link, departure, sojourn);
        }
    }

    #[cold]
    fn keep_packet(&mut self, link: u32, departure: &Departure<Payload>, sojourn: u64) {
        self.packets.t_ns.push(departure.dequeued.0);
        self.packets.link.push(link);
        self.packets.flow.push(departure.packet.flow / 2);
        self.packets.sojourn_ns.push(sojourn);
        self.packets.bytes.push(departure.packet.size);
    }

    /// A packet was dropped, lost or marked.
    pub fn fate(&mut self, link: u32, fate: &Fate<Payload>, now: Time) {
        let record = &mut self.links[link as usize];
        let (flow, bytes, cause, marked) = match *fate {
            Fate::Dropped(packet, Cause::Wire) => {
                record.lost += 1;
                (packet.flow, packet.size, Cause::Wire, 0)
            }
            Fate::Dropped(packet, cause) => {
                record.dropped += 1;
                (packet.flow, packet.size - self.header_bytes[link as usize], cause, 0)
            }
            Fate::Marked { flow, size, cause } => {
                record.marked += 1;
                (flow, size - self.header_bytes[link as usize], cause, 1)
            }
        };
        self.drops.t_ns.push(now.0);
        self.drops.link.push(link);
        self.drops.flow.push(flow / 2);
        self.drops.cause.push(cause as u8);
        self.drops.marked.push(marked);
        self.drops.bytes.push(bytes);
    }

    /// One row of `queue` for each link that is sampled.
    pub fn sample_queues(&mut self, links: &[Link<Payload>], now: Time) {
        for (index, link) in links.iter().enumerate().filter(|(index, _)| self.sampled[*index]) {
            let record = &mut self.links[index];
            let totals = totals(link, record, now);
            let backlog = link.backlog();
            let State { limit, count, probability, average, flows } = link.qdisc().state();
            let rows = &mut self.queue;
            rows.t_ns.push(now.0);
            rows.link.push(index as u32);
            rows.backlog_packets.push(backlog.packets);
            rows.backlog_bytes.push(backlog.bytes);
            let mean = record.interval_sum as f64 / record.interval_count as f64;
            rows.sojourn_mean_ns.push(mean);
            rows.sojourn_max_ns.push(record.interval_max);
            rows.sent_packets.push(totals.sent_packets - record.sampled.sent_packets);
            rows.sent_bytes.push(totals.sent_bytes - record.sampled.sent_bytes);
            rows.dropped_packets.push(totals.dropped - record.sampled.dropped);
            rows.marked_packets.push(totals.marked - record.sampled.marked);
            for (column, value) in [
                (&mut rows.limit, limit),
                (&mut rows.count, count),
                (&mut rows.probability, probability),
                (&mut rows.average, average),
                (&mut rows.flows, flows),
            ] {
                column.push(value.unwrap_or(f64::NAN));
            }
            let ring = link.ring();
            rows.ring_packets.push(ring.map_or(-1, |ring| i64::from(ring.backlog().packets)));
            rows.ring_bytes.push(ring.map_or(-1, |ring| signed(ring.backlog().bytes)));
            rows.bql_limit_bytes.push(ring.and_then(Ring::limit).map_or(-1, signed));
            record.sampled = totals;
            (record.interval_sum, record.interval_count, record.interval_max) = (0, 0, 0);
        }
    }

    /// One row of `flow` for each flow that is not a probe.
    pub fn sample_flows(&mut self, hosts: &[Host], now: Time) {
        for (index, host) in hosts.iter().enumerate() {
            if host.is_probe() {
                continue;
            }
            let counters = host.totals();
            let rows = &mut self.flow;
            rows.t_ns.push(now.0);
            rows.flow.push(index as u32);
            let (cwnd, ssthresh, srtt, inflight, window) = match host.tcp() {
                Some((sender, receiver)) => (
                    signed(sender.cwnd_bytes()),
                    sender.ssthresh_bytes().map_or(-1, signed),
                    sender.srtt().map_or(-1, |s| signed(s.0)),
                    signed(sender.inflight_bytes()),
                    signed(receiver.window_bytes()),
                ),
                None => (-1, -1, -1, -1, -1),
            };
            rows.cwnd_bytes.push(cwnd);
            rows.ssthresh_bytes.push(ssthresh);
            rows.srtt_ns.push(srtt);
            rows.inflight_bytes.push(inflight);
            rows.window_bytes.push(window);
            rows.delivered_bytes.push(counters.delivered_bytes);
            rows.retransmits.push(counters.retransmits);
        }
    }

    /// The warm-up is over: what follows is measured.
    pub fn warm(&mut self, links: &mut [Link<Payload>], hosts: &mut [Host], now: Time) {
        for (record, link) in self.links.iter_mut().zip(links) {
            record.warm = totals(link, record, now);
            record.sojourn.clear();
            link.forget_peak();
        }
        for (warm, host) in self.warm_flows.iter_mut().zip(hosts) {
            *warm = host.totals();
            host.rtt.clear();
        }
    }

    /// The run is over: the last counts.
    pub fn finish(&mut self, links: &mut [Link<Payload>], now: Time) {
        self.ended_at = now;
        for (record, link) in self.links.iter_mut().zip(links) {
            record.last = totals(link, record, now);
            record.peak_packets = link.peak().packets;
            record.peak_bytes = link.peak().bytes;
            record.ring = link.ring().map(|ring| {
                let (most_packets, longest) = ring.peak();
                RingRecord { most_packets, longest_ns: longest.0, limit_bytes: ring.limit() }
            });
            self.capacity_bits.push(link.capacity_bits(self.warm_at, now));
        }
    }

    /// Everything as tables.
    pub fn into_tables(self, hosts: &[Host], events: u64, packets: u64, peak_entries: usize) -> Vec<Table> {
        let mut tables = vec![self.link_totals(), self.flow_totals(hosts), self.sojourn(), rtts(hosts)];
        tables.push(probes(hosts));
        tables.push(transfers(hosts));
        let q = self.queue;
        tables.push(Table {
            name: "queue",
            columns: vec![
                ("t_ns", Column::U64(q.t_ns)),
                ("link", Column::U32(q.link)),
                ("backlog_packets", Column::U32(q.backlog_packets)),
                ("backlog_bytes", Column::U64(q.backlog_bytes)),
                ("sojourn_mean_ns", Column::F64(q.sojourn_mean_ns)),
                ("sojourn_max_ns", Column::U64(q.sojourn_max_ns)),
                ("sent_packets", Column::U64(q.sent_packets)),
                ("sent_bytes", Column::U64(q.sent_bytes)),
                ("dropped_packets", Column::U64(q.dropped_packets)),
                ("marked_packets", Column::U64(q.marked_packets)),
                ("limit", Column::F64(q.limit)),
                ("count", Column::F64(q.count)),
                ("probability", Column::F64(q.probability)),
                ("average", Column::F64(q.average)),
                ("flows", Column::F64(q.flows)),
                ("ring_packets", Column::I64(q.ring_packets)),
                ("ring_bytes", Column::I64(q.ring_bytes)),
                ("bql_limit_bytes", Column::I64(q.bql_limit_bytes)),
            ],
        });
        let f = self.flow;
        tables.push(Table {
            name: "flow",
            columns: vec![
                ("t_ns", Column::U64(f.t_ns)),
                ("flow", Column::U32(f.flow)),
                ("cwnd_bytes", Column::I64(f.cwnd_bytes)),
                ("ssthresh_bytes", Column::I64(f.ssthresh_bytes)),
                ("srtt_ns", Column::I64(f.srtt_ns)),
                ("inflight_bytes", Column::I64(f.inflight_bytes)),
                ("delivered_bytes", Column::U64(f.delivered_bytes)),
                ("retransmits", Column::U64(f.retransmits)),
                ("window_bytes", Column::I64(f.window_bytes)),
            ],
        });
        let d = self.drops;
        tables.push(Table {
            name: "drops",
            columns: vec![
                ("t_ns", Column::U64(d.t_ns)),
                ("link", Column::U32(d.link)),
                ("flow", Column::U32(d.flow)),
                ("cause", Column::U8(d.cause)),
                ("marked", Column::U8(d.marked)),
                ("bytes", Column::U32(d.bytes)),
            ],
        });
        if self.keep_packets {
            let p = self.packets;
            tables.push(Table {
                name: "packets",
                columns: vec![
                    ("t_ns", Column::U64(p.t_ns)),
                    ("link", Column::U32(p.link)),
                    ("flow", Column::U32(p.flow)),
                    ("sojourn_ns", Column::U64(p.sojourn_ns)),
                    ("bytes", Column::U32(p.bytes)),
                ],
            });
        }
        tables.push(Table {
            name: "engine",
            columns: vec![
                ("events", Column::U64(vec![events])),
                ("packets", Column::U64(vec![packets])),
                ("peak_entries", Column::U64(vec![peak_entries as u64])),
            ],
        });
        tables
    }

    fn link_totals(&self) -> Table {
        let measured = self.ended_at.since(self.warm_at).0;
        let u64s = |f: &dyn Fn(&LinkRecord) -> u64| Column::U64(self.links.iter().map(f).collect());
        // Real: beyond 2^53, where they are no longer exact, these would soon be beyond the tables' integers.
        let f64s = |f: &dyn Fn(&LinkRecord) -> f64| Column::F64(self.links.iter().map(f).collect());
        let per_ns = |integral: u128| integral as f64 / measured.max(1) as f64;
        let of_ring = |f: &dyn Fn(&LinkRecord, RingRecord) -> u64| {
            Column::I64(self.links.iter().map(|l| l.ring.map_or(-1, |ring| signed(f(l, ring)))).collect())
        };
        let ring_mean = |l: &LinkRecord| {
            l.ring.map_or(f64::NAN, |_| per_ns(l.last.ring.packet_ns - l.warm.ring.packet_ns))
        };
        let ring_sum = |l: &LinkRecord| {
            l.ring.map_or(f64::NAN, |_| (l.last.ring.sojourn_sum_ns - l.warm.ring.sojourn_sum_ns) as f64)
        };
        let bits = |capacity: &Option<u128>| capacity.map_or(f64::NAN, |bits| bits as f64);
        let capacity_bits = Column::F64(self.capacity_bits.iter().map(bits).collect());
        let bql = |l: &LinkRecord| l.ring.and_then(|ring| ring.limit_bytes).map_or(-1, signed);
        Table {
            name: "links",
            columns: vec![
                ("link", Column::U32((0..self.links.len() as u32).collect())),
                ("arrived_packets", u64s(&|l| l.last.arrived_packets - l.warm.arrived_packets)),
                ("arrived_bytes", u64s(&|l| l.last.arrived_bytes - l.warm.arrived_bytes)),
                ("sent_packets", u64s(&|l| l.last.sent_packets - l.warm.sent_packets)),
                ("sent_bytes", u64s(&|l| l.last.sent_bytes - l.warm.sent_bytes)),
                ("wire_bytes", u64s(&|l| l.last.wire_bytes - l.warm.wire_bytes)),
                ("dropped_packets", u64s(&|l| l.last.dropped - l.warm.dropped)),
                ("marked_packets", u64s(&|l| l.last.marked - l.warm.marked)),
                ("lost_packets", u64s(&|l| l.last.lost - l.warm.lost)),
                ("sojourn_sum_ns", f64s(&|l| l.sojourn.sum as f64)),
                ("sojourn_max_ns", u64s(&|l| l.sojourn.max)),
                ("backlog_mean_packets", f64s(&|l| per_ns(l.last.packet_ns - l.warm.packet_ns))),
                ("backlog_mean_bytes", f64s(&|l| per_ns(l.last.byte_ns - l.warm.byte_ns))),
                ("backlog_max_packets", u64s(&|l| u64::from(l.peak_packets))),
                ("backlog_max_bytes", u64s(&|l| l.peak_bytes)),
                ("busy_ns", u64s(&|l| l.last.busy_ns - l.warm.busy_ns)),
                ("capacity_bits", capacity_bits),
                ("measured_ns", u64s(&|_| measured)),
                ("ring_sent_packets", of_ring(&|l, _| l.last.ring.sent_packets - l.warm.ring.sent_packets)),
                ("ring_sojourn_sum_ns", f64s(&ring_sum)),
                ("ring_sojourn_max_ns", of_ring(&|_, ring| ring.longest_ns)),
                ("ring_mean_packets", f64s(&ring_mean)),
                ("ring_max_packets", of_ring(&|_, ring| u64::from(ring.most_packets))),
                ("bql_limit_bytes", Column::I64(self.links.iter().map(bql).collect())),
            ],
        }
    }

    fn flow_totals(&self, hosts: &[Host]) -> Table {
        let since_warm = |f: &dyn Fn(&Counters) -> u64| {
            let pairs = hosts.iter().zip(&self.warm_flows);
            Column::U64(pairs.map(|(host, warm)| f(&host.totals()) - f(warm)).collect())
        };
        let of_rtt = |f: &dyn Fn(&Histogram) -> u64| Column::U64(hosts.iter().map(|h| f(&h.rtt)).collect());
        let rtt_sum = Column::F64(hosts.iter().map(|h| h.rtt.sum as f64).collect());
        // A packet that was not full may have been quicker than a full one can be.
        let quickest = |h: &Host, base: u64| if h.rtt.count == 0 { base } else { base.min(h.rtt.min) };
        let base_rtt = hosts.iter().zip(&self.base_rtts);
        let base_rtt = base_rtt.map(|(h, base)| base.map_or(-1, |base| signed(quickest(h, base))));
        let least = |h: &Host| if h.rtt.count == 0 { -1 } else { signed(h.rtt.min) };
        Table {
            name: "flows",
            columns: vec![
                ("flow", Column::U32((0..hosts.len() as u32).collect())),
                ("sent_packets", since_warm(&|c| c.sent_packets)),
                ("sent_bytes", since_warm(&|c| c.sent_bytes)),
                ("received_packets", since_warm(&|c| c.received_packets)),
                ("delivered_bytes", since_warm(&|c| c.delivered_bytes)),
                ("lost_packets", since_warm(&|c| c.lost_packets)),
                ("retransmits", since_warm(&|c| c.retransmits)),
                ("timeouts", since_warm(&|c| c.timeouts)),
                ("fast_recoveries", since_warm(&|c| c.fast_recoveries)),
                ("rtt_sum_ns", rtt_sum),
                ("rtt_samples", of_rtt(&|h| h.count)),
                ("rtt_min_ns", Column::I64(hosts.iter().map(least).collect())),
                ("rtt_max_ns", of_rtt(&|h| h.max)),
                ("base_rtt_ns", Column::I64(base_rtt.collect())),
            ],
        }
    }

    fn sojourn(&self) -> Table {
        histograms("sojourn", "link", "packets", self.links.iter().map(|l| &l.sojourn))
    }
}

fn rtts(hosts: &[Host]) -> Table {
    histograms("rtt", "flow", "samples", hosts.iter().map(|h| &h.rtt))
}

fn histograms<'a>(
    name: &'static str,
    key: &'static str,
    counted: &'static str,
    all: impl Iterator<Item = &'a Histogram>,
) -> Table {
    let (mut owner, mut lower, mut upper, mut counts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (index, histogram) in all.enumerate() {
        for (lo, hi, count) in histogram.buckets() {
            owner.push(index as u32);
            lower.push(lo);
            upper.push(hi);
            counts.push(count);
        }
    }
    let columns = vec![
        (key, Column::U32(owner)),
        ("lower_ns", Column::U64(lower)),
        ("upper_ns", Column::U64(upper)),
        (counted, Column::U64(counts)),
    ];
    Table { name, columns }
}

/// Pings still under way at the end are neither received nor lost; they are left out.
fn probes(hosts: &[Host]) -> Table {
    let (mut t_ns, mut probe, mut seq, mut rtt, mut forward) = (vec![], vec![], vec![], vec![], vec![]);
    for (index, host) in hosts.iter().enumerate() {
        for (number, p) in host.probes.iter().enumerate().filter(|(_, p)| p.rtt.is_some() || p.lost) {
            t_ns.push(p.sent.0);
            probe.push(index as u32);
            seq.push(number as u32);
            rtt.push(p.rtt.map_or(-1, |span| span.0 as i64));
            forward.push(p.forward.map_or(-1, |span| span.0 as i64));
        }
    }
    Table {
        name: "probe",
        columns: vec![
            ("t_ns", Column::U64(t_ns)),
            ("probe", Column::U32(probe)),
            ("seq", Column::U32(seq)),
            ("rtt_ns", Column::I64(rtt)),
            ("forward_ns", Column::I64(forward)),
        ],
    }
}

fn transfers(hosts: &[Host]) -> Table {
    let (mut flow, mut start, mut end, mut bytes) = (vec![], vec![], vec![], vec![]);
    for (index, host) in hosts.iter().enumerate() {
        for transfer in &host.transfers {
            flow.push(index as u32);
            start.push(transfer.start.0);
            end.push(transfer.end.0);
            bytes.push(transfer.bytes);
        }
    }
    Table {
        name: "transfers",
        columns: vec![
            ("flow", Column::U32(flow)),
            ("start_ns", Column::U64(start)),
            ("end_ns", Column::U64(end)),
            ("bytes", Column::U64(bytes)),
        ],
    }
}

fn totals(link: &Link<Payload>, record: &LinkRecord, now: Time) -> Totals {
    let counters = link.counters();
    let (packet_ns, byte_ns) = link.backlog_integrals(now);
    Totals {
        arrived_packets: counters.arrived_packets,
        arrived_bytes: counters.arrived_bytes,
        sent_packets: counters.sent_packets,
        sent_bytes: counters.sent_bytes,
        wire_bytes: link.wire_bytes(now),
        dropped: record.dropped,
        marked: record.marked,
        lost: record.lost,
        busy_ns: link.busy_ns(now),
        packet_ns,
        byte_ns,
        ring: link.ring().map_or(RingCounters::default(), |ring| ring.counters(now)),
    }
}

/// As a column that may hold -1 for none.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
