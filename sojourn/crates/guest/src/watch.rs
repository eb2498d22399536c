//! Statistics of a link's queue: takes packet events, gives sums and rows.
//!
//! A packet is enqueued, then dequeued or dropped; then its last bit is transmitted, and the wire
//! may lose it. These events come in order of time, from the cards' log or derived from taps. The
//! sums are updated at each event, so memory is needed only for packets in the queue or in flight.
//! A row per packet is kept only on request.
//!
//! Totals cover the measured time: from the end of the warm-up to the end of the run, both
//! included. Spans and drops cover the whole run.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};

use probe::journey::NEVER;
use probe::tap::CE;
use tables::Histogram;

use crate::plan::{Plan, Tap};
use crate::results::{Archive, Values};

/// The measured part of a run, and the length of its spans.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    warm: i64,
    end: i64,
    /// Length of a span, ns; the last span may be shorter.
    span: i64,
}

impl Window {
    /// Returns the window of a plan.
    pub fn of(plan: &Plan) -> Window {
        let span =
            if plan.sample.queue_ns > 0 { plan.sample.queue_ns } else { plan.duration_ns.max(1) };
        Window { warm: plan.warmup_ns as i64, end: plan.duration_ns as i64, span: span as i64 }
    }

    /// Whether an event at `t` is in the measured time.
    pub fn contains(self, t: i64) -> bool {
        (self.warm..=self.end).contains(&t)
    }

    fn overlap(self, from: i64, to: i64) -> i64 {
        (to.min(self.end) - from.max(self.warm)).max(0)
    }

    fn spans(self) -> usize {
        (self.end as u64).div_ceil(self.span as u64).max(1) as usize
    }

    /// Returns the number of the span that contains a time. A span starts at a whole multiple of
    /// its length; the end of the run belongs to the last span.
    fn span_of(self, t: i64) -> usize {
        ((t / self.span) as usize).min(self.spans() - 1)
    }
}

/// A packet on arrival at a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Twice the flow's index, plus 1 in the reverse direction; -1: no flow.
    pub flow: i32,
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// Its DS field.
    pub ds: u8,
    /// The hash by which queues distinguish flows; 0: unknown.
    pub hash: u32,
    /// Bytes of kernel memory that the packet takes; 0: unknown.
    pub truesize: u32,
}

/// A packet in the queue or on the wire.
#[derive(Clone, Copy, Debug)]
struct Held {
    arrival: Arrival,
    enqueued: i64,
    dequeued: i64,
    row: usize,
}

/// The queue's level and its maximum in the measured time. Events at one instant count together:
/// departures of waiting packets come first, and a packet that passes without waiting counts as
/// present.
#[derive(Debug, Default)]
struct Level {
    now: i64,
    packets: i64,
    bytes: i64,
    enqueued: [i64; 2],
    passed: [i64; 2],
    dequeued: [i64; 2],
    most: [i64; 2],
    begun: bool,
}

impl Level {
    fn at(&mut self, t: i64, window: Window) {
        if t != self.now {
            self.settle(window);
            self.now = t;
        }
    }

    fn settle(&mut self, window: Window) {
        let [dequeued, enqueued, passed] = [self.dequeued, self.enqueued, self.passed];
        if dequeued == [0; 2] && enqueued == [0; 2] {
            return;
        }
        if self.now >= window.warm && !self.begun {
            self.begun = true;
            self.raise([self.packets, self.bytes]);
        }
        let peak =
            [self.packets - dequeued[0] + enqueued[0], self.bytes - dequeued[1] + enqueued[1]];
        if window.contains(self.now) {
            self.raise(peak);
        }
        (self.packets, self.bytes) = (peak[0] - passed[0], peak[1] - passed[1]);
        (self.dequeued, self.enqueued, self.passed) = ([0; 2], [0; 2], [0; 2]);
    }

    fn finish(&mut self, window: Window) {
        self.settle(window);
        if !self.begun {
            self.raise([self.packets, self.bytes]);
        }
    }

    fn raise(&mut self, level: [i64; 2]) {
        self.most = [self.most[0].max(level[0]), self.most[1].max(level[1])];
    }
}

fn add(sum: &mut [i64; 2], bytes: i64) {
    sum[0] += 1;
    sum[1] += bytes;
}

/// Sums between two edges of the time line.
#[derive(Clone, Debug, Default)]
struct Span {
    sent: i64,
    sent_bytes: i64,
    sojourn_sum: u128,
    sojourn_max: i64,
    dropped: i64,
    marked: i64,
}

/// Drop or mark of a packet; the table `drops` contains these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DropKind {
    /// Dropped on arrival.
    Refused,
    /// Dropped from the queue.
    Dropped,
    Marked,
    Lost,
}

#[derive(Debug, Default)]
struct Drops {
    t: Vec<i64>,
    flow: Vec<i32>,
    reverse: Vec<u8>,
    what: Vec<u8>,
    bytes: Vec<i32>,
}

#[derive(Debug, Default)]
struct Rows {
    enqueued: Vec<i64>,
    dequeued: Vec<i64>,
    dropped: Vec<i64>,
    out: Vec<i64>,
    flow: Vec<i32>,
    reverse: Vec<u8>,
    bytes: Vec<i32>,
    ds_in: Vec<u8>,
    ds_out: Vec<u8>,
    refused: Vec<u8>,
    hash: Vec<i64>,
    truesize: Vec<i32>,
    /// Number of packets sent before its arrival, and before its departure.
    after: Vec<i64>,
    order: Vec<i64>,
}

/// Statistics of one link's queue.
#[derive(Debug)]
pub struct Watch {
    link: u32,
    header: i64,
    /// Whether the ends of transmissions are reported.
    out: bool,
    window: Window,
    /// Packets in the queue, from this serial on.
    first: u32,
    held: VecDeque<Option<Held>>,
    /// Dequeued packets that are not transmitted yet, and the latest transmitted packet.
    ring: VecDeque<(u32, Held)>,
    latest: Option<(u32, Held)>,
    packets: u64,
    newest: u32,
    sent_all: i64,
    unexpected: u64,

    arrived: [i64; 2],
    sent: [i64; 2],
    dropped: i64,
    marked: i64,
    sojourn: Histogram,
    packet_ns: u128,
    byte_ns: u128,
    level: Level,
    sizes: BTreeMap<u32, i64>,
    spans: Vec<Span>,
    drops: Drops,

    ring_wait: Histogram,
    ring_ns: u128,
    ring_level: Level,
    rows: Option<Rows>,
}

impl Watch {
    /// Creates the statistics for a tap of the plan.
    pub fn new(plan: &Plan, tap: &Tap) -> Watch {
        let window = Window::of(plan);
        Watch {
            link: tap.link,
            header: i64::from(tap.header_bytes),
            out: tap.out,
            window,
            first: 1,
            held: VecDeque::new(),
            ring: VecDeque::new(),
            latest: None,
            packets: 0,
            newest: 0,
            sent_all: 0,
            unexpected: 0,
            arrived: [0; 2],
            sent: [0; 2],
            dropped: 0,
            marked: 0,
            sojourn: Histogram::default(),
            packet_ns: 0,
            byte_ns: 0,
            level: Level::default(),
            sizes: BTreeMap::new(),
            spans: vec![Span::default(); window.spans()],
            drops: Drops::default(),
            ring_wait: Histogram::default(),
            ring_ns: 0,
            ring_level: Level::default(),
            rows: tap.rows.then(Rows::default),
        }
    }

    /// A packet is enqueued. Serials count up from 1.
    pub fn enqueued(&mut self, serial: u32, t: i64, arrival: Arrival) {
        if self.held.is_empty() {
            self.first = serial;
        }
        if t < 0 {
            self.held.push_back(None); // Before the run.
            return;
        }
        self.packets += 1;
        self.newest = serial;
        let bytes = i64::from(arrival.bytes);
        if self.window.contains(t) {
            add(&mut self.arrived, bytes);
        }
        self.level.at(t, self.window);
        add(&mut self.level.enqueued, bytes + self.header);
        let mut row = 0;
        if let Some(rows) = &mut self.rows {
            row = rows.enqueued.len();
            rows.enqueued.push(t);
            [&mut rows.dequeued, &mut rows.dropped, &mut rows.out, &mut rows.order]
                .into_iter()
                .for_each(|column| column.push(NEVER));
            let (flow, reverse) = flow_of(arrival.flow);
            rows.flow.push(flow);
            rows.reverse.push(reverse);
            rows.bytes.push(arrival.bytes as i32);
            rows.ds_in.push(arrival.ds);
            rows.ds_out.push(arrival.ds);
            rows.refused.push(0);
            rows.hash.push(i64::from(arrival.hash));
            rows.truesize.push(arrival.truesize as i32);
            rows.after.push(self.sent_all);
        }
        self.held.push_back(Some(Held { arrival, enqueued: t, dequeued: NEVER, row }));
    }

    fn take(&mut self, serial: u32) -> Option<Held> {
        let at = serial.wrapping_sub(self.first) as usize;
        let slot = self.held.get_mut(at);
        let known = slot.is_some();
        let packet = slot.and_then(Option::take);
        while self.held.front().is_some_and(Option::is_none) {
            self.held.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        if !known {
            self.unexpected += 1;
        }
        packet
    }

    /// A packet's wait ends at `t`, by a dequeue or a drop.
    fn waited(&mut self, held: &Held, t: i64) {
        let size = i64::from(held.arrival.bytes) + self.header;
        let inside = self.window.overlap(held.enqueued, t) as u128;
        self.packet_ns += inside;
        self.byte_ns += inside * size as u128;
        self.level.at(t, self.window);
        let place =
            if held.enqueued == t { &mut self.level.passed } else { &mut self.level.dequeued };
        add(place, size);
    }

    /// A packet is dequeued, with this DS field.
    pub fn dequeued(&mut self, serial: u32, t: i64, ds: u8) {
        let Some(mut held) = self.take(serial) else { return };
        let order = self.sent_all;
        self.sent_all += 1;
        held.dequeued = t;
        self.waited(&held, t);
        if let Some(rows) = &mut self.rows {
            (rows.dequeued[held.row], rows.ds_out[held.row], rows.order[held.row]) = (t, ds, order);
        }
        if t <= self.window.end {
            let marked = held.arrival.ds & CE != CE && ds & CE == CE;
            let (wait, bytes) = (t - held.enqueued, i64::from(held.arrival.bytes));
            let span = &mut self.spans[self.window.span_of(t)];
            span.sent += 1;
            span.sent_bytes += bytes;
            span.sojourn_sum += wait as u128;
            span.sojourn_max = span.sojourn_max.max(wait);
            span.marked += i64::from(marked);
            if self.window.contains(t) {
                add(&mut self.sent, bytes);
                self.marked += i64::from(marked);
                self.sojourn.add(wait as u64);
                *self.sizes.entry(held.arrival.bytes).or_default() += 1;
            }
            if marked {
                self.drop_row(t, &held, DropKind::Marked);
            }
        }
        if self.out {
            self.ring_level.at(t, self.window);
            add(&mut self.ring_level.enqueued, 0);
            self.ring.push_back((serial, held));
        } else {
            self.latest = Some((serial, held));
        }
    }

    /// A packet is dropped from the queue.
    pub fn dropped(&mut self, serial: u32, t: i64) {
        let Some(held) = self.take(serial) else { return };
        // A later packet of the same time may have caused the drop. Then this packet was not
        // refused.
        let refused = held.enqueued == t && serial == self.newest;
        if held.enqueued == t {
            // It never was in the queue.
            let size = i64::from(held.arrival.bytes) + self.header;
            self.level.at(t, self.window);
            self.level.enqueued[0] -= 1;
            self.level.enqueued[1] -= size;
        } else {
            self.waited(&held, t);
        }
        if let Some(rows) = &mut self.rows {
            (rows.dropped[held.row], rows.order[held.row]) = (t, self.sent_all);
            rows.refused[held.row] = u8::from(refused);
        }
        if t <= self.window.end {
            self.spans[self.window.span_of(t)].dropped += 1;
            self.dropped += i64::from(self.window.contains(t));
            self.drop_row(t, &held, if refused { DropKind::Refused } else { DropKind::Dropped });
        }
    }

    /// A packet's last bit is transmitted.
    pub fn transmitted(&mut self, serial: u32, t: i64) {
        let Some(at) = self.ring.iter().position(|&(each, _)| each == serial) else { return };
        let Some((_, held)) = self.ring.remove(at) else { return };
        self.ring_level.at(t, self.window);
        add(&mut self.ring_level.dequeued, 0);
        if let Some(rows) = &mut self.rows {
            rows.out[held.row] = t;
        }
        if held.dequeued <= self.window.end {
            if self.window.contains(t) {
                self.ring_wait.add((t - held.dequeued).max(0) as u64);
            }
            self.ring_ns += self.window.overlap(held.dequeued, t) as u128;
        }
        self.latest = Some((serial, held));
    }

    /// The wire loses the packet that was transmitted last.
    pub fn lost(&mut self, serial: u32) {
        let Some((_, held)) = self.latest.filter(|&(each, _)| each == serial) else { return };
        if let Some(rows) = &mut self.rows {
            rows.out[held.row] = NEVER;
        }
        if held.dequeued <= self.window.end {
            self.drop_row(held.dequeued, &held, DropKind::Lost);
        }
    }

    fn drop_row(&mut self, t: i64, held: &Held, what: DropKind) {
        if held.arrival.flow < 0 {
            return;
        }
        let (flow, reverse) = flow_of(held.arrival.flow);
        self.drops.t.push(t);
        self.drops.flow.push(flow);
        self.drops.reverse.push(reverse);
        self.drops.what.push(what as u8);
        self.drops.bytes.push(held.arrival.bytes as i32);
    }

    /// The run ends: packets still in the queue waited until the end.
    pub fn finish(&mut self) {
        for held in std::mem::take(&mut self.held).into_iter().flatten() {
            let inside = self.window.overlap(held.enqueued, i64::MAX) as u128;
            self.packet_ns += inside;
            self.byte_ns += inside * (i64::from(held.arrival.bytes) + self.header) as u128;
        }
        for (_, held) in std::mem::take(&mut self.ring) {
            self.ring_ns += self.window.overlap(held.dequeued, i64::MAX) as u128;
        }
        self.level.finish(self.window);
        self.ring_level.finish(self.window);
    }

    /// Returns the number of packets enqueued during the run.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the number of events for packets that were not in the queue.
    pub fn unexpected(&self) -> u64 {
        self.unexpected
    }
}

fn flow_of(flow: i32) -> (i32, u8) {
    if flow < 0 { (-1, 0) } else { (flow / 2, (flow % 2) as u8) }
}

/// Writes the statistics of all links: the tables `passed`, `spans`, `sojourn`, `sizes` and
/// `drops`, and `tapN` for links with rows.
pub fn write<W: Write>(watched: Vec<Watch>, archive: &mut Archive<W>) -> io::Result<()> {
    passed(&watched, archive)?;
    let spans = || {
        watched.iter().flat_map(|w| w.spans.iter().enumerate().map(move |(i, span)| (w, i, span)))
    };
    let integers = |of: fn(&Span) -> i64| Values::I64(spans().map(|(.., span)| of(span)).collect());
    archive.table(
        "spans",
        vec![
            ("link".into(), Values::I64(spans().map(|(w, ..)| i64::from(w.link)).collect())),
            ("span".into(), Values::I64(spans().map(|(_, i, _)| i as i64).collect())),
            ("sent_packets".into(), integers(|s| s.sent)),
            ("sent_bytes".into(), integers(|s| s.sent_bytes)),
            (
                "sojourn_sum_ns".into(),
                Values::F64(spans().map(|(.., span)| span.sojourn_sum as f64).collect()),
            ),
            ("sojourn_max_ns".into(), integers(|s| s.sojourn_max)),
            ("dropped_packets".into(), integers(|s| s.dropped)),
            ("marked_packets".into(), integers(|s| s.marked)),
        ],
    )?;
    histograms(
        archive,
        "sojourn",
        "link",
        watched.iter().map(|w| (i64::from(w.link), &w.sojourn)),
    )?;
    let sizes =
        || watched.iter().flat_map(|w| w.sizes.iter().map(move |(&bytes, &many)| (w, bytes, many)));
    archive.table(
        "sizes",
        vec![
            ("link".into(), Values::I64(sizes().map(|(w, ..)| i64::from(w.link)).collect())),
            ("bytes".into(), Values::I64(sizes().map(|(_, bytes, _)| i64::from(bytes)).collect())),
            ("packets".into(), Values::I64(sizes().map(|(.., many)| many).collect())),
        ],
    )?;
    let mut links = Vec::new();
    let mut all = Drops::default();
    let mut rows = Vec::new();
    for (number, mut watch) in watched.into_iter().enumerate() {
        links.resize(links.len() + watch.drops.t.len(), i64::from(watch.link));
        all.t.append(&mut watch.drops.t);
        all.flow.append(&mut watch.drops.flow);
        all.reverse.append(&mut watch.drops.reverse);
        all.what.append(&mut watch.drops.what);
        all.bytes.append(&mut watch.drops.bytes);
        rows.extend(watch.rows.map(|rows| (number, watch.out, rows)));
    }
    archive.table(
        "drops",
        vec![
            ("link".into(), Values::I64(links)),
            ("t_ns".into(), Values::I64(all.t)),
            ("flow".into(), Values::I32(all.flow)),
            ("reverse".into(), Values::U8(all.reverse)),
            ("what".into(), Values::U8(all.what)),
            ("bytes".into(), Values::I32(all.bytes)),
        ],
    )?;
    for (number, out, rows) in rows {
        let mut columns = vec![
            ("t_before_ns".to_string(), Values::I64(rows.enqueued)),
            ("t_after_ns".into(), Values::I64(rows.dequeued)),
            ("t_gone_ns".into(), Values::I64(rows.dropped)),
            ("flow".into(), Values::I32(rows.flow)),
            ("reverse".into(), Values::U8(rows.reverse)),
            ("bytes".into(), Values::I32(rows.bytes)),
            ("ds_in".into(), Values::U8(rows.ds_in)),
            ("ds_out".into(), Values::U8(rows.ds_out)),
            ("refused".into(), Values::U8(rows.refused)),
            ("hash".into(), Values::I64(rows.hash)),
            ("truesize".into(), Values::I32(rows.truesize)),
            ("after".into(), Values::I64(rows.after)),
            ("order".into(), Values::I64(rows.order)),
        ];
        if out {
            columns.insert(2, ("t_out_ns".into(), Values::I64(rows.out)));
        }
        archive.table(&format!("tap{number}"), columns)?;
    }
    Ok(())
}

fn passed<W: Write>(watched: &[Watch], archive: &mut Archive<W>) -> io::Result<()> {
    type Integer = (&'static str, fn(&Watch) -> i64);
    let integers: [Integer; 14] = [
        ("link", |w| w.link.into()),
        ("arrived_packets", |w| w.arrived[0]),
        ("arrived_bytes", |w| w.arrived[1]),
        ("sent_packets", |w| w.sent[0]),
        ("sent_bytes", |w| w.sent[1]),
        ("dropped_packets", |w| w.dropped),
        ("marked_packets", |w| w.marked),
        ("sojourn_max_ns", |w| w.sojourn.max as i64),
        ("backlog_max_packets", |w| w.level.most[0]),
        ("backlog_max_bytes", |w| w.level.most[1]),
        ("ring_sent_packets", |w| w.ring_wait.count as i64),
        ("ring_sojourn_max_ns", |w| w.ring_wait.max as i64),
        ("ring_max_packets", |w| w.ring_level.most[0]),
        ("out", |w| w.out.into()),
    ];
    type Real = (&'static str, fn(&Watch) -> u128);
    let real: [Real; 5] = [
        ("sojourn_sum_ns", |w| w.sojourn.sum),
        ("backlog_packet_ns", |w| w.packet_ns),
        ("backlog_byte_ns", |w| w.byte_ns),
        ("ring_sojourn_sum_ns", |w| w.ring_wait.sum),
        ("ring_packet_ns", |w| w.ring_ns),
    ];
    let integers = integers.map(|(name, of)| {
        (name.to_string(), Values::I64(watched.iter().map(of).collect::<Vec<_>>()))
    });
    let real = real.map(|(name, of)| {
        (name.to_string(), Values::F64(watched.iter().map(|w| of(w) as f64).collect::<Vec<_>>()))
    });
    archive.table("passed", integers.into_iter().chain(real).collect())
}

/// Writes histograms, one row per bin. The column `owner` has the index of the link or flow.
pub fn histograms<'a, W: Write>(
    archive: &mut Archive<W>,
    name: &str,
    owner: &str,
    each: impl Iterator<Item = (i64, &'a Histogram)> + Clone,
) -> io::Result<()> {
    let bins = || {
        each.clone().flat_map(|(owner, histogram)| histogram.buckets().map(move |bin| (owner, bin)))
    };
    archive.table(
        name,
        vec![
            (owner.to_string(), Values::I64(bins().map(|(owner, _)| owner).collect())),
            ("lower_ns".into(), Values::I64(bins().map(|(_, (lower, ..))| lower as i64).collect())),
            (
                "upper_ns".into(),
                Values::I64(bins().map(|(_, (_, upper, _))| upper as i64).collect()),
            ),
            ("count".into(), Values::I64(bins().map(|(_, (.., many))| many as i64).collect())),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Arrival = Arrival { flow: 0, bytes: 1500, ds: 2, hash: 0, truesize: 0 };

    fn watch(out: bool, warm: i64, end: i64) -> Watch {
        let tap = Tap { out, rows: true, header_bytes: 14, ..Tap::of_link(3) };
        let mut plan = Plan::sample();
        (plan.warmup_ns, plan.duration_ns, plan.sample.queue_ns) = (warm as u64, end as u64, 100);
        Watch::new(&plan, &tap)
    }

    #[test]
    fn sums_leave_the_warm_up_out_and_time_spans_have_it() {
        let mut watch = watch(false, 100, 350);
        watch.enqueued(1, 10, FULL); // Leaves before.
        watch.dequeued(1, 60, 2);
        watch.enqueued(2, 90, FULL); // Waits across the warm-up's end, and is marked.
        watch.dequeued(2, 150, 3);
        watch.enqueued(3, 200, FULL); // Dropped later.
        watch.enqueued(4, 200, FULL); // Refused.
        watch.dropped(4, 200);
        watch.dropped(3, 260);
        watch.enqueued(5, 300, FULL); // Still waits.
        watch.finish();
        assert_eq!((watch.arrived, watch.sent), ([3, 4500], [1, 1500]));
        assert_eq!((watch.dropped, watch.marked, watch.unexpected()), (2, 1, 0));
        assert_eq!((watch.sojourn.sum, watch.sojourn.max), (60, 60));
        assert_eq!(watch.packet_ns, 50 + 60 + 50);
        assert_eq!(watch.byte_ns, (50 + 60 + 50) * 1514);
        assert_eq!(watch.level.most, [1, 1514]);
        let sent: Vec<i64> = watch.spans.iter().map(|span| span.sent).collect();
        let dropped: Vec<i64> = watch.spans.iter().map(|span| span.dropped).collect();
        assert_eq!((sent, dropped), (vec![1, 1, 0, 0], vec![0, 0, 2, 0]));
        assert_eq!(watch.drops.t, [150, 200, 260]);
        assert_eq!(
            watch.drops.what,
            [DropKind::Marked as u8, DropKind::Refused as u8, DropKind::Dropped as u8]
        );
    }

    #[test]
    fn at_one_instant_departures_precede_arrivals() {
        let mut watch = watch(false, 0, 1000);
        watch.enqueued(1, 10, FULL);
        watch.enqueued(2, 20, FULL);
        watch.dequeued(1, 20, 2);
        assert_eq!(watch.level.most[0], 1);
        watch.dequeued(2, 30, 2);
        watch.enqueued(3, 30, FULL);
        watch.dequeued(3, 30, 2);
        watch.finish();
        assert_eq!((watch.level.most, watch.level.packets), ([1, 1514], 0));
    }

    #[test]
    fn packets_waiting_at_the_end_of_the_warm_up_count_in_the_maximum() {
        let mut watch = watch(false, 100, 200);
        for serial in 1..=3 {
            watch.enqueued(serial, i64::from(serial), FULL);
        }
        for serial in 1..=3 {
            watch.dequeued(serial, 110 + i64::from(serial), 2);
        }
        watch.finish();
        assert_eq!(watch.level.most[0], 3);
    }

    #[test]
    fn packets_may_leave_in_any_order() {
        let mut watch = watch(false, 0, 1000);
        for serial in 1..=4 {
            watch.enqueued(serial, 10 * i64::from(serial), FULL);
        }
        for serial in [3, 1, 4, 2] {
            watch.dequeued(serial, 100 + i64::from(serial), 2);
        }
        watch.dequeued(2, 200, 2);
        watch.finish();
        let rows = watch.rows.as_ref().unwrap();
        assert_eq!(rows.dequeued, [101, 102, 103, 104]);
        assert_eq!((&rows.order, &rows.after), (&vec![1, 3, 0, 2], &vec![0; 4]));
        assert_eq!(watch.unexpected(), 1, "it had left already");
    }

    #[test]
    fn a_packet_dropped_for_another_of_the_same_time_is_not_refused() {
        let mut watch = watch(false, 0, 1000);
        watch.enqueued(1, 10, FULL);
        watch.enqueued(2, 10, FULL);
        watch.dropped(1, 10);
        watch.enqueued(3, 20, FULL);
        watch.dropped(3, 20);
        assert_eq!(watch.drops.what, [DropKind::Dropped as u8, DropKind::Refused as u8]);
    }

    #[test]
    fn packets_in_a_ring_and_lost_on_the_wire_are_counted() {
        let mut watch = watch(true, 0, 1000);
        watch.enqueued(1, 10, FULL);
        watch.dequeued(1, 10, 2);
        watch.enqueued(2, 20, FULL);
        watch.dequeued(2, 20, 2);
        watch.transmitted(1, 40);
        watch.transmitted(2, 70);
        watch.lost(2);
        watch.finish();
        assert_eq!((watch.ring_wait.count, watch.ring_wait.sum, watch.ring_wait.max), (2, 80, 50));
        assert_eq!((watch.ring_ns, watch.ring_level.most[0]), (80, 2));
        assert_eq!(
            (watch.drops.t.clone(), watch.drops.what.clone()),
            (vec![20], vec![DropKind::Lost as u8])
        );
    }

    #[test]
    fn packets_before_the_run_do_not_count() {
        let mut watch = watch(false, 0, 1000);
        watch.enqueued(1, -5, FULL);
        watch.enqueued(2, 5, FULL);
        watch.dequeued(1, 6, 2);
        watch.dequeued(2, 7, 2);
        watch.finish();
        assert_eq!((watch.packets(), watch.sent, watch.unexpected()), (1, [1, 1500], 0));
    }
}
