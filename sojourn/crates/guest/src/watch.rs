//! What a link's queue did to its packets: events in, sums and rows out.
//!
//! A packet comes to the queue, leaves it or is gone, and its last bit goes out on the wire, where
//! it may be lost. These events come in the order in which they happened, from the cards' own log
//! or made up from taps. What the host needs is added up here as they come, so memory is for the
//! packets that are under way; a row for each packet is kept only where it is asked for.
//!
//! Totals are of the measured time: from the warm-up's end to the run's, both included. Spans and
//! drops are of the whole run.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};

use probe::journey::NEVER;
use probe::tap::CE;
use tables::Histogram;

use crate::plan::{Plan, Tap};
use crate::results::{Archive, Values};

/// The measured part of a run, and how its time line is cut.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    warm: i64,
    end: i64,
    /// Length of a span; the last one is what is left.
    span: i64,
}

impl Window {
    /// Of a plan.
    pub fn of(plan: &Plan) -> Window {
        let span =
            if plan.sample.queue_ns > 0 { plan.sample.queue_ns } else { plan.duration_ns.max(1) };
        Window { warm: plan.warmup_ns as i64, end: plan.duration_ns as i64, span: span as i64 }
    }

    /// Whether something that happens then is counted.
    pub fn holds(self, t: i64) -> bool {
        (self.warm..=self.end).contains(&t)
    }

    fn overlap(self, from: i64, to: i64) -> i64 {
        (to.min(self.end) - from.max(self.warm)).max(0)
    }

    fn spans(self) -> usize {
        (self.end as u64).div_ceil(self.span as u64).max(1) as usize
    }

    /// From a whole multiple on, before the next one; the end is the last one's.
    fn span_of(self, t: i64) -> usize {
        ((t / self.span) as usize).min(self.spans() - 1)
    }
}

/// A packet as it comes to a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coming {
    /// Twice the flow's index, plus 1 on its way back; -1: none.
    pub flow: i32,
    /// Of the IP packet.
    pub bytes: u32,
    /// Its DS field.
    pub ds: u8,
    /// By which queues tell flows apart; 0 where nobody says.
    pub hash: u32,
    /// What it takes of the kernel's memory; 0 where nobody says.
    pub truesize: u32,
}

/// One that is on its way.
#[derive(Clone, Copy, Debug)]
struct Held {
    coming: Coming,
    came: i64,
    left: i64,
    row: usize,
}

/// How many waited, and the most in the measured time: what happens at one instant counts together.
/// What waited longer makes room first, what passes without waiting counts as having been there.
#[derive(Debug, Default)]
struct Level {
    now: i64,
    packets: i64,
    bytes: i64,
    come: [i64; 2],
    passed: [i64; 2],
    left: [i64; 2],
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
        let [left, come, passed] = [self.left, self.come, self.passed];
        if left == [0; 2] && come == [0; 2] {
            return;
        }
        if self.now >= window.warm && !self.begun {
            self.begun = true;
            self.raise([self.packets, self.bytes]);
        }
        let peak = [self.packets - left[0] + come[0], self.bytes - left[1] + come[1]];
        if window.holds(self.now) {
            self.raise(peak);
        }
        (self.packets, self.bytes) = (peak[0] - passed[0], peak[1] - passed[1]);
        (self.left, self.come, self.passed) = ([0; 2], [0; 2], [0; 2]);
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

/// What happened between two edges of the time line.
#[derive(Clone, Debug, Default)]
struct Span {
    sent: i64,
    sent_bytes: i64,
    sojourn_sum: u128,
    sojourn_max: i64,
    dropped: i64,
    marked: i64,
}

/// What became of a packet besides being sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// As it came.
    Refused,
    /// As it waited.
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
    came: Vec<i64>,
    left: Vec<i64>,
    gone: Vec<i64>,
    out: Vec<i64>,
    flow: Vec<i32>,
    reverse: Vec<u8>,
    bytes: Vec<i32>,
    ds_in: Vec<u8>,
    ds_out: Vec<u8>,
    refused: Vec<u8>,
    hash: Vec<i64>,
    truesize: Vec<i32>,
    /// How many had been sent before it came, and before it left.
    after: Vec<i64>,
    order: Vec<i64>,
}

/// A link's queue, watched.
#[derive(Debug)]
pub struct Watch {
    link: u32,
    header: i64,
    /// Whether the end of its transmissions is told.
    out: bool,
    window: Window,
    /// Those in the queue, from this serial on.
    first: u32,
    held: VecDeque<Option<Held>>,
    /// Those that have left it and are not out yet, and the one that went out last.
    ring: VecDeque<(u32, Held)>,
    latest: Option<(u32, Held)>,
    come: u64,
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
    /// Of a tap of the plan.
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
            come: 0,
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

    /// A packet comes to the queue. Serials count up from 1.
    pub fn came(&mut self, serial: u32, t: i64, coming: Coming) {
        if self.held.is_empty() {
            self.first = serial;
        }
        if t < 0 {
            self.held.push_back(None); // Before the run.
            return;
        }
        self.come += 1;
        self.newest = serial;
        let bytes = i64::from(coming.bytes);
        if self.window.holds(t) {
            add(&mut self.arrived, bytes);
        }
        self.level.at(t, self.window);
        add(&mut self.level.come, bytes + self.header);
        let mut row = 0;
        if let Some(rows) = &mut self.rows {
            row = rows.came.len();
            rows.came.push(t);
            [&mut rows.left, &mut rows.gone, &mut rows.out, &mut rows.order]
                .into_iter()
                .for_each(|column| column.push(NEVER));
            let (flow, reverse) = flow_of(coming.flow);
            rows.flow.push(flow);
            rows.reverse.push(reverse);
            rows.bytes.push(coming.bytes as i32);
            rows.ds_in.push(coming.ds);
            rows.ds_out.push(coming.ds);
            rows.refused.push(0);
            rows.hash.push(i64::from(coming.hash));
            rows.truesize.push(coming.truesize as i32);
            rows.after.push(self.sent_all);
        }
        self.held.push_back(Some(Held { coming, came: t, left: NEVER, row }));
    }

    fn take(&mut self, serial: u32) -> Option<Held> {
        let at = serial.wrapping_sub(self.first) as usize;
        let slot = self.held.get_mut(at);
        let known = slot.is_some();
        let found = slot.and_then(Option::take);
        while self.held.front().is_some_and(Option::is_none) {
            self.held.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        if !known {
            self.unexpected += 1;
        }
        found
    }

    /// Ends its wait at `t`, however it ends.
    fn waited(&mut self, held: &Held, t: i64) {
        let size = i64::from(held.coming.bytes) + self.header;
        let inside = self.window.overlap(held.came, t) as u128;
        self.packet_ns += inside;
        self.byte_ns += inside * size as u128;
        self.level.at(t, self.window);
        let place = if held.came == t { &mut self.level.passed } else { &mut self.level.left };
        add(place, size);
    }

    /// It leaves the queue, with this DS field.
    pub fn left(&mut self, serial: u32, t: i64, ds: u8) {
        let Some(mut held) = self.take(serial) else { return };
        let order = self.sent_all;
        self.sent_all += 1;
        held.left = t;
        self.waited(&held, t);
        if let Some(rows) = &mut self.rows {
            (rows.left[held.row], rows.ds_out[held.row], rows.order[held.row]) = (t, ds, order);
        }
        if t <= self.window.end {
            let marked = held.coming.ds & CE != CE && ds & CE == CE;
            let (wait, bytes) = (t - held.came, i64::from(held.coming.bytes));
            let span = &mut self.spans[self.window.span_of(t)];
            span.sent += 1;
            span.sent_bytes += bytes;
            span.sojourn_sum += wait as u128;
            span.sojourn_max = span.sojourn_max.max(wait);
            span.marked += i64::from(marked);
            if self.window.holds(t) {
                add(&mut self.sent, bytes);
                self.marked += i64::from(marked);
                self.sojourn.add(wait as u64);
                *self.sizes.entry(held.coming.bytes).or_default() += 1;
            }
            if marked {
                self.drop_row(t, &held, What::Marked);
            }
        }
        if self.out {
            self.ring_level.at(t, self.window);
            add(&mut self.ring_level.come, 0);
            self.ring.push_back((serial, held));
        } else {
            self.latest = Some((serial, held));
        }
    }

    /// It is thrown away while it is in the queue.
    pub fn gone(&mut self, serial: u32, t: i64) {
        let Some(held) = self.take(serial) else { return };
        // Another one may have come at the same time, for which it had to go.
        let refused = held.came == t && serial == self.newest;
        if held.came == t {
            // It was never in the queue.
            let size = i64::from(held.coming.bytes) + self.header;
            self.level.at(t, self.window);
            self.level.come[0] -= 1;
            self.level.come[1] -= size;
        } else {
            self.waited(&held, t);
        }
        if let Some(rows) = &mut self.rows {
            (rows.gone[held.row], rows.order[held.row]) = (t, self.sent_all);
            rows.refused[held.row] = u8::from(refused);
        }
        if t <= self.window.end {
            self.spans[self.window.span_of(t)].dropped += 1;
            self.dropped += i64::from(self.window.holds(t));
            self.drop_row(t, &held, if refused { What::Refused } else { What::Dropped });
        }
    }

    /// Its last bit is on the wire.
    pub fn out(&mut self, serial: u32, t: i64) {
        let Some(at) = self.ring.iter().position(|&(each, _)| each == serial) else { return };
        let Some((_, held)) = self.ring.remove(at) else { return };
        self.ring_level.at(t, self.window);
        add(&mut self.ring_level.left, 0);
        if let Some(rows) = &mut self.rows {
            rows.out[held.row] = t;
        }
        if held.left <= self.window.end {
            if self.window.holds(t) {
                self.ring_wait.add((t - held.left).max(0) as u64);
            }
            self.ring_ns += self.window.overlap(held.left, t) as u128;
        }
        self.latest = Some((serial, held));
    }

    /// The wire loses the packet whose last bit just went out.
    pub fn lost(&mut self, serial: u32) {
        let Some((_, held)) = self.latest.filter(|&(each, _)| each == serial) else { return };
        if let Some(rows) = &mut self.rows {
            rows.out[held.row] = NEVER;
        }
        if held.left <= self.window.end {
            self.drop_row(held.left, &held, What::Lost);
        }
    }

    fn drop_row(&mut self, t: i64, held: &Held, what: What) {
        if held.coming.flow < 0 {
            return;
        }
        let (flow, reverse) = flow_of(held.coming.flow);
        self.drops.t.push(t);
        self.drops.flow.push(flow);
        self.drops.reverse.push(reverse);
        self.drops.what.push(what as u8);
        self.drops.bytes.push(held.coming.bytes as i32);
    }

    /// Nothing more happens: what still waits waited to the end.
    pub fn finish(&mut self) {
        for held in std::mem::take(&mut self.held).into_iter().flatten() {
            let inside = self.window.overlap(held.came, i64::MAX) as u128;
            self.packet_ns += inside;
            self.byte_ns += inside * (i64::from(held.coming.bytes) + self.header) as u128;
        }
        for (_, held) in std::mem::take(&mut self.ring) {
            self.ring_ns += self.window.overlap(held.left, i64::MAX) as u128;
        }
        self.level.finish(self.window);
        self.ring_level.finish(self.window);
    }

    /// Packets that came during the run.
    pub fn packets(&self) -> u64 {
        self.come
    }

    /// Events of packets that had not come.
    pub fn unexpected(&self) -> u64 {
        self.unexpected
    }
}

fn flow_of(flow: i32) -> (i32, u8) {
    if flow < 0 { (-1, 0) } else { (flow / 2, (flow % 2) as u8) }
}

/// Writes what was watched of every link: the tables `passed`, `spans`, `sojourn`, `sizes` and
/// `drops`, and of those whose rows were asked for `tapN`.
pub fn write<W: Write>(watched: Vec<Watch>, archive: &mut Archive<W>) -> io::Result<()> {
    passed(&watched, archive)?;
    let spans = || {
        watched.iter().flat_map(|w| w.spans.iter().enumerate().map(move |(i, span)| (w, i, span)))
    };
    let whole = |of: fn(&Span) -> i64| Values::I64(spans().map(|(.., span)| of(span)).collect());
    archive.table(
        "spans",
        vec![
            ("link".into(), Values::I64(spans().map(|(w, ..)| i64::from(w.link)).collect())),
            ("span".into(), Values::I64(spans().map(|(_, i, _)| i as i64).collect())),
            ("sent_packets".into(), whole(|s| s.sent)),
            ("sent_bytes".into(), whole(|s| s.sent_bytes)),
            (
                "sojourn_sum_ns".into(),
                Values::F64(spans().map(|(.., span)| span.sojourn_sum as f64).collect()),
            ),
            ("sojourn_max_ns".into(), whole(|s| s.sojourn_max)),
            ("dropped_packets".into(), whole(|s| s.dropped)),
            ("marked_packets".into(), whole(|s| s.marked)),
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
            ("t_before_ns".to_string(), Values::I64(rows.came)),
            ("t_after_ns".into(), Values::I64(rows.left)),
            ("t_gone_ns".into(), Values::I64(rows.gone)),
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
    type Whole = (&'static str, fn(&Watch) -> i64);
    let whole: [Whole; 14] = [
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
    let whole = whole.map(|(name, of)| {
        (name.to_string(), Values::I64(watched.iter().map(of).collect::<Vec<_>>()))
    });
    let real = real.map(|(name, of)| {
        (name.to_string(), Values::F64(watched.iter().map(|w| of(w) as f64).collect::<Vec<_>>()))
    });
    archive.table("passed", whole.into_iter().chain(real).collect())
}

/// Writes histograms, bin by bin, by their owners' numbers.
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

    const FULL: Coming = Coming { flow: 0, bytes: 1500, ds: 2, hash: 0, truesize: 0 };

    fn watch(out: bool, warm: i64, end: i64) -> Watch {
        let tap = Tap { out, rows: true, header_bytes: 14, ..Tap::of_link(3) };
        let mut plan = Plan::sample();
        (plan.warmup_ns, plan.duration_ns, plan.sample.queue_ns) = (warm as u64, end as u64, 100);
        Watch::new(&plan, &tap)
    }

    #[test]
    fn sums_are_of_the_measured_time_and_spans_of_all() {
        let mut watch = watch(false, 100, 350);
        watch.came(1, 10, FULL); // Leaves before.
        watch.left(1, 60, 2);
        watch.came(2, 90, FULL); // Waits across the warm-up's end, and is marked.
        watch.left(2, 150, 3);
        watch.came(3, 200, FULL); // Dropped later.
        watch.came(4, 200, FULL); // Refused.
        watch.gone(4, 200);
        watch.gone(3, 260);
        watch.came(5, 300, FULL); // Still waits.
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
            [What::Marked as u8, What::Refused as u8, What::Dropped as u8]
        );
    }

    #[test]
    fn at_one_instant_room_is_made_first_and_what_passes_was_there() {
        let mut watch = watch(false, 0, 1000);
        watch.came(1, 10, FULL);
        watch.came(2, 20, FULL);
        watch.left(1, 20, 2);
        assert_eq!(watch.level.most[0], 1);
        watch.left(2, 30, 2);
        watch.came(3, 30, FULL);
        watch.left(3, 30, 2);
        watch.finish();
        assert_eq!((watch.level.most, watch.level.packets), ([1, 1514], 0));
    }

    #[test]
    fn what_waits_as_the_warm_up_ends_counts_for_the_most() {
        let mut watch = watch(false, 100, 200);
        for serial in 1..=3 {
            watch.came(serial, i64::from(serial), FULL);
        }
        for serial in 1..=3 {
            watch.left(serial, 110 + i64::from(serial), 2);
        }
        watch.finish();
        assert_eq!(watch.level.most[0], 3);
    }

    #[test]
    fn packets_may_leave_in_any_order() {
        let mut watch = watch(false, 0, 1000);
        for serial in 1..=4 {
            watch.came(serial, 10 * i64::from(serial), FULL);
        }
        for serial in [3, 1, 4, 2] {
            watch.left(serial, 100 + i64::from(serial), 2);
        }
        watch.left(2, 200, 2);
        watch.finish();
        let rows = watch.rows.as_ref().unwrap();
        assert_eq!(rows.left, [101, 102, 103, 104]);
        assert_eq!((&rows.order, &rows.after), (&vec![1, 3, 0, 2], &vec![0; 4]));
        assert_eq!(watch.unexpected(), 1, "it had left already");
    }

    #[test]
    fn one_that_has_to_go_for_another_of_the_same_time_is_not_refused() {
        let mut watch = watch(false, 0, 1000);
        watch.came(1, 10, FULL);
        watch.came(2, 10, FULL);
        watch.gone(1, 10);
        watch.came(3, 20, FULL);
        watch.gone(3, 20);
        assert_eq!(watch.drops.what, [What::Dropped as u8, What::Refused as u8]);
    }

    #[test]
    fn a_ring_and_a_wire_that_loses() {
        let mut watch = watch(true, 0, 1000);
        watch.came(1, 10, FULL);
        watch.left(1, 10, 2);
        watch.came(2, 20, FULL);
        watch.left(2, 20, 2);
        watch.out(1, 40);
        watch.out(2, 70);
        watch.lost(2);
        watch.finish();
        assert_eq!((watch.ring_wait.count, watch.ring_wait.sum, watch.ring_wait.max), (2, 80, 50));
        assert_eq!((watch.ring_ns, watch.ring_level.most[0]), (80, 2));
        assert_eq!(
            (watch.drops.t.clone(), watch.drops.what.clone()),
            (vec![20], vec![What::Lost as u8])
        );
    }

    #[test]
    fn what_came_before_the_run_is_no_traffic() {
        let mut watch = watch(false, 0, 1000);
        watch.came(1, -5, FULL);
        watch.came(2, 5, FULL);
        watch.left(1, 6, 2);
        watch.left(2, 7, 2);
        watch.finish();
        assert_eq!((watch.packets(), watch.sent, watch.unexpected()), (1, [1, 1500], 0));
    }
}
