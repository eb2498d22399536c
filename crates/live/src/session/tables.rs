//! Columns as `sojourn.records.TABLES` has them. What there is none of is -1, in reals NaN.

use super::Pair;
use super::clock::Offset;
use super::local::{Local, Sample};
use crate::load::Row;
use crate::protocol::Direction;

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Of integers.
    I64(Vec<i64>),
    /// Of reals.
    F64(Vec<f64>),
}

/// A table: equally long columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns by name.
    pub columns: Vec<(&'static str, Column)>,
}

const NONE: i64 = -1;

impl Table {
    /// Of rows of integers.
    pub fn of<const N: usize>(name: &'static str, columns: [&'static str; N], rows: &[[i64; N]]) -> Table {
        let column = |i: usize| Column::I64(rows.iter().map(|row| row[i]).collect());
        Table { name, columns: columns.iter().enumerate().map(|(i, &name)| (name, column(i))).collect() }
    }

    /// Adds columns of reals that hold nothing.
    fn with_unknown(mut self, names: &[&'static str]) -> Table {
        let rows = self.columns.first().map_or(0, |(_, column)| match column {
            Column::I64(values) => values.len(),
            Column::F64(values) => values.len(),
        });
        self.columns.extend(names.iter().map(|&name| (name, Column::F64(vec![f64::NAN; rows]))));
        self
    }

    /// Replaces a column of integers by one of reals with the same values.
    fn in_reals(mut self, names: &[&str]) -> Table {
        for (name, column) in &mut self.columns {
            if let (true, Column::I64(values)) = (names.contains(name), &column) {
                *column = Column::F64(
                    values.iter().map(|&v| if v == NONE { f64::NAN } else { v as f64 }).collect(),
                );
            }
        }
        self
    }
}

// ------------------------------------------------------------------------------------------------------------ streams

/// One TCP connection over its life, on our clock: its receiver's samples, each with its sender's nearest in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// (when, bytes delivered, the sender's sample).
    pub rows: Vec<(i64, i64, Option<Row>)>,
    /// The sender's last sample.
    pub last: Option<Row>,
}

impl Stream {
    /// Bytes delivered in all.
    pub fn delivered(&self) -> i64 {
        self.rows.last().map_or(0, |row| row.1)
    }

    /// Bytes delivered at a time, between samples in proportion; before the first: none.
    pub fn delivered_at(&self, t: i64) -> i64 {
        let after = self.rows.partition_point(|row| row.0 <= t);
        match (after.checked_sub(1).map(|i| self.rows[i]), self.rows.get(after)) {
            (None, _) => 0,
            (Some(before), None) => before.1,
            (Some((t0, b0, _)), Some(&(t1, b1, _))) => {
                b0 + ((b1 - b0) as i128 * (t - t0) as i128 / (t1 - t0).max(1) as i128) as i64
            }
        }
    }
}

/// The streams of a load. `acked`: the receiver's samples are missing, so what its acknowledgements say stands in for them.
pub fn streams(pair: &Pair, count: usize, offset: Option<&Offset>, interval: i64) -> (Vec<Stream>, bool) {
    let theirs: Vec<Row> = offset.map_or_else(Vec::new, |offset| {
        pair.theirs.iter().map(|row| Row { t: offset.ours(row.t), ..*row }).collect()
    });
    let (receiver, sender) = match pair.direction {
        Direction::Down => (&pair.ours, &theirs),
        Direction::Up => (&theirs, &pair.ours),
    };
    let acked = receiver.is_empty() && !sender.is_empty();
    let streams = (0..count as i64).map(|number| {
        let sent: Vec<Row> = sender.iter().filter(|row| row.stream == number).copied().collect();
        let received = if acked { sender } else { receiver };
        let rows = received.iter().filter(|row| row.stream == number).map(|row| {
            let bytes = if acked { row.acked } else { row.received };
            (row.t.max(0), bytes, nearest(&sent, row.t, interval))
        });
        Stream { rows: rows.collect(), last: sent.last().copied() }
    });
    (streams.collect(), acked)
}

/// The sample nearest in time, if within an interval.
fn nearest(rows: &[Row], t: i64, interval: i64) -> Option<Row> {
    let after = rows.partition_point(|row| row.t < t);
    let around = [after.checked_sub(1), Some(after)].into_iter().flatten().filter_map(|i| rows.get(i));
    around.min_by_key(|row| (row.t - t).abs()).filter(|row| (row.t - t).abs() <= interval).copied()
}

/// The table `flow`, of streams that are the flows from 0 on.
pub fn flow(streams: &[Stream]) -> Table {
    let mut rows = Vec::new();
    for (flow, stream) in streams.iter().enumerate() {
        for &(t, delivered, sender) in &stream.rows {
            let of = |field: fn(&Row) -> i64| sender.as_ref().map_or(NONE, field);
            rows.push([
                t,
                flow as i64,
                of(|r| r.cwnd),
                of(|r| r.ssthresh),
                of(|r| r.srtt),
                of(|r| r.inflight),
                delivered,
                of(|r| r.retransmits),
                of(|r| r.window),
            ]);
        }
    }
    // As an engine writes them: in order of time, and of flows within it.
    rows.sort_by_key(|row| (row[0], row[1]));
    Table::of(
        "flow",
        [
            "t_ns",
            "flow",
            "cwnd_bytes",
            "ssthresh_bytes",
            "srtt_ns",
            "inflight_bytes",
            "delivered_bytes",
            "retransmits",
            "window_bytes",
        ],
        &rows,
    )
}

/// Totals of a flow, in the order of the table's columns from `sent_packets` on.
pub type Totals = [i64; 12];

/// Of a TCP connection.
pub fn totals(stream: &Stream) -> Totals {
    let of = |field: fn(&Row) -> i64| stream.last.as_ref().map_or(NONE, field);
    let retransmits = of(|r| r.retransmits);
    [
        of(|r| r.segments).max(0),
        of(|r| r.sent).max(0),
        of(|r| r.delivered).max(0),
        stream.delivered(),
        // What the sender took to be lost.
        retransmits.max(0),
        retransmits,
        of(|r| r.timeouts),
        NONE,
        0,
        0,
        of(|r| r.min_rtt),
        NONE,
    ]
}

/// The table `flows`: totals, and the base RTT of each (0: none).
pub fn flows(totals: &[Totals], base: &[i64]) -> Table {
    let rows: Vec<[i64; 14]> = totals
        .iter()
        .zip(base)
        .enumerate()
        .map(|(flow, (totals, &base))| {
            let mut row = [flow as i64; 14];
            row[1..13].copy_from_slice(totals);
            row[13] = base;
            row
        })
        .collect();
    Table::of(
        "flows",
        [
            "flow",
            "sent_packets",
            "sent_bytes",
            "received_packets",
            "delivered_bytes",
            "lost_packets",
            "retransmits",
            "timeouts",
            "fast_recoveries",
            "rtt_sum_ns",
            "rtt_samples",
            "rtt_min_ns",
            "rtt_max_ns",
            "base_rtt_ns",
        ],
        &rows,
    )
}

// -------------------------------------------------------------------------------------------------------------- links

/// What a link counted up to a sample.
#[derive(Clone, Copy, Default)]
struct Count {
    packets: i64,
    bytes: i64,
    dropped: i64,
    /// Queued now; `NONE`: not told.
    backlog: [i64; 2],
}

/// The links of an interface, out and in, as they counted.
fn counts(samples: &[Sample]) -> [Vec<(i64, Count)>; 2] {
    let out = |sample: &Sample| match &sample.root {
        Some(root) => Count {
            packets: root.sent_packets,
            bytes: root.sent_bytes,
            dropped: root.dropped,
            backlog: [root.backlog_packets, root.backlog_bytes],
        },
        None => Count {
            packets: sample.counters.sent_packets as i64,
            bytes: sample.counters.sent_bytes as i64,
            dropped: sample.counters.sent_dropped as i64,
            backlog: [NONE; 2],
        },
    };
    let into = |sample: &Sample| Count {
        packets: sample.counters.received_packets as i64,
        bytes: sample.counters.received_bytes as i64,
        dropped: sample.counters.received_dropped as i64,
        backlog: [NONE; 2],
    };
    [samples.iter().map(|s| (s.t, out(s))).collect(), samples.iter().map(|s| (s.t, into(s))).collect()]
}

/// What was counted between two samples. A qdisc that was replaced in between, or never counted below a noqueue, begins anew.
fn between(before: Count, after: Count) -> Count {
    let grown = |a: i64, b: i64| if b >= a { b - a } else { b };
    Count {
        packets: grown(before.packets, after.packets),
        bytes: grown(before.bytes, after.bytes),
        dropped: grown(before.dropped, after.dropped),
        backlog: after.backlog,
    }
}

/// The tables `queue` and `links` of an interface.
pub fn queue_and_links(local: Option<&Local>) -> (Table, Table) {
    let mut queue = Vec::new();
    let mut links = Vec::new();
    let samples = local.map_or(&[][..], |local| &local.samples);
    let both = if local.is_some() { counts(samples).to_vec() } else { Vec::new() };
    for (link, counted) in both.iter().enumerate() {
        let steps: Vec<(i64, Count)> =
            counted.windows(2).map(|pair| (pair[1].0, between(pair[0].1, pair[1].1))).collect();
        for (t, step) in &steps {
            queue.push([
                *t,
                link as i64,
                step.backlog[0],
                step.backlog[1],
                NONE,
                step.packets,
                step.bytes,
                step.dropped,
                NONE,
                NONE,
                NONE,
                NONE,
            ]);
        }
        let sum = |of: fn(&Count) -> i64| steps.iter().map(|(_, step)| of(step)).sum::<i64>();
        let known = |i: usize| counted.iter().map(move |(_, c)| c.backlog[i]).filter(|&b| b != NONE);
        let mean = |i: usize| match known(i).count() {
            0 => NONE,
            n => (known(i).sum::<i64>() as f64 / n as f64).round() as i64,
        };
        let span = counted.last().map_or(0, |l| l.0) - counted.first().map_or(0, |f| f.0);
        links.push([
            link as i64,
            sum(|c| c.packets) + sum(|c| c.dropped),
            sum(|c| c.bytes),
            sum(|c| c.packets),
            sum(|c| c.bytes),
            sum(|c| c.bytes),
            sum(|c| c.dropped),
            NONE,
            NONE,
            NONE,
            NONE,
            mean(0),
            mean(1),
            known(0).max().unwrap_or(NONE),
            known(1).max().unwrap_or(NONE),
            NONE,
            NONE,
            span,
            NONE,
            NONE,
            NONE,
            NONE,
            NONE,
            NONE,
        ]);
    }
    queue.sort_by_key(|row| (row[0], row[1]));
    let queue = Table::of(
        "queue",
        [
            "t_ns",
            "link",
            "backlog_packets",
            "backlog_bytes",
            "sojourn_max_ns",
            "sent_packets",
            "sent_bytes",
            "dropped_packets",
            "marked_packets",
            "ring_packets",
            "ring_bytes",
            "bql_limit_bytes",
        ],
        &queue,
    )
    .with_unknown(&["sojourn_mean_ns", "limit", "count", "probability", "average", "flows"]);
    let links = Table::of(
        "links",
        [
            "link",
            "arrived_packets",
            "arrived_bytes",
            "sent_packets",
            "sent_bytes",
            "wire_bytes",
            "dropped_packets",
            "marked_packets",
            "lost_packets",
            "sojourn_sum_ns",
            "sojourn_max_ns",
            "backlog_mean_packets",
            "backlog_mean_bytes",
            "backlog_max_packets",
            "backlog_max_bytes",
            "busy_ns",
            "capacity_bits",
            "measured_ns",
            "ring_sent_packets",
            "ring_sojourn_sum_ns",
            "ring_sojourn_max_ns",
            "ring_mean_packets",
            "ring_max_packets",
            "bql_limit_bytes",
        ],
        &links,
    )
    .in_reals(&["backlog_mean_packets", "backlog_mean_bytes", "ring_mean_packets"]);
    (queue, links)
}

// -------------------------------------------------------------------------------------------------------------- probes

/// A request and what came of it, on our clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it was sent.
    pub sent: i64,
    /// Its number.
    pub sequence: u64,
    /// Its round trip; `None`: lost.
    pub rtt: Option<i64>,
    /// The way there, if it is known.
    pub forward: Option<i64>,
    /// Whether it reached the far end, if that is known.
    pub arrived: Option<bool>,
}

/// The table `probe`; probes are the flows from `first` on.
pub fn probe(probes: &[Vec<Request>], first: usize) -> Table {
    let mut rows = Vec::new();
    for (index, requests) in probes.iter().enumerate() {
        for request in requests {
            rows.push([
                request.sent,
                (first + index) as i64,
                request.sequence as i64,
                request.rtt.unwrap_or(NONE),
                request.forward.unwrap_or(NONE),
            ]);
        }
    }
    rows.sort_by_key(|row| (row[0], row[1]));
    Table::of("probe", ["t_ns", "probe", "seq", "rtt_ns", "forward_ns"], &rows)
}

/// Those of an engine that a measurement has nothing for, and `engine`.
pub fn others(segments: i64) -> Vec<Table> {
    vec![
        Table::of("drops", ["t_ns", "link", "flow", "cause", "marked", "bytes"], &[]),
        Table::of("sojourn", ["link", "lower_ns", "upper_ns", "packets"], &[]),
        Table::of("rtt", ["flow", "lower_ns", "upper_ns", "samples"], &[]),
        Table::of("transfers", ["flow", "start_ns", "end_ns", "bytes"], &[]),
        Table::of("engine", ["events", "packets", "peak_entries"], &[[0, segments, 0]]),
    ]
}

/// Values at the quantiles, each a sample (nearest rank): the least for 0, the largest for 1.
pub fn quantiles<const N: usize>(values: &mut [i64], wanted: [f64; N]) -> Option<[i64; N]> {
    values.sort_unstable();
    let last = values.len().checked_sub(1)?;
    Some(wanted.map(|q| values[(q * last as f64).round() as usize]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::netlink::Counters;

    fn row(stream: i64, t: i64, received: i64, cwnd: i64) -> Row {
        let mut values = [-1; 15];
        values[..4].copy_from_slice(&[stream, t, received, cwnd]);
        values.into()
    }

    fn offset(at_zero: f64) -> Offset {
        Offset { at_zero, drift: 0.0, error: 0.0, samples: 1 }
    }

    #[test]
    fn the_receivers_bytes_meet_the_senders_state_nearest_in_time() {
        // The server's clock is 1000 ahead.
        let pair = Pair {
            phase: 1,
            direction: Direction::Down,
            ours: vec![row(0, 100, 10, -1), row(0, 200, 30, -1), row(0, 400, 50, -1)],
            theirs: vec![row(0, 1090, -1, 7), row(0, 1240, -1, 8)],
        };
        let (streams, acked) = streams(&pair, 1, Some(&offset(1000.0)), 100);
        assert!(!acked);
        let cwnds: Vec<_> = streams[0].rows.iter().map(|(_, _, r)| r.map(|r| (r.t, r.cwnd))).collect();
        assert_eq!(cwnds, [Some((90, 7)), Some((240, 8)), None]);
        assert_eq!(streams[0].delivered(), 50);
        let at: Vec<i64> = [50, 100, 150, 300, 900].map(|t| streams[0].delivered_at(t)).to_vec();
        assert_eq!(at, [0, 10, 20, 40, 50]);
    }

    #[test]
    fn a_server_that_went_away_leaves_what_it_acknowledged() {
        let mut ours = vec![row(0, 100, -1, 7), row(0, 200, -1, 8)];
        (ours[0].acked, ours[1].acked) = (11, 22);
        let pair = Pair { phase: 1, direction: Direction::Up, ours, theirs: Vec::new() };
        let (streams, acked) = streams(&pair, 1, Some(&offset(0.0)), 100);
        assert!(acked);
        assert_eq!(streams[0].rows.iter().map(|r| (r.0, r.1)).collect::<Vec<_>>(), [(100, 11), (200, 22)]);
    }

    #[test]
    fn an_interface_is_two_links_that_count_by_intervals() {
        let sample = |t, sent: i64, received: u64, backlog| Sample {
            t,
            root: Some(super::super::local::Root {
                handle: 1,
                backlog_packets: backlog,
                backlog_bytes: backlog * 100,
                sent_packets: sent,
                sent_bytes: sent * 100,
                dropped: 0,
            }),
            counters: Counters {
                received_packets: received,
                received_bytes: received * 10,
                ..Counters::default()
            },
        };
        let mut local = Local::new(probe::sys::device_index("lo").unwrap(), "lo").unwrap();
        // In between the qdisc is replaced: it counts from 0 again.
        local.samples = vec![sample(0, 50, 7, 1), sample(100, 60, 9, 3), sample(200, 4, 9, 2)];
        let (queue, links) = queue_and_links(Some(&local));
        let column = |table: &Table, name: &str| {
            table.columns.iter().find(|(known, _)| *known == name).unwrap().1.clone()
        };
        assert_eq!(column(&queue, "t_ns"), Column::I64(vec![100, 100, 200, 200]));
        assert_eq!(column(&queue, "sent_packets"), Column::I64(vec![10, 2, 4, 0]));
        assert_eq!(column(&queue, "backlog_bytes"), Column::I64(vec![300, -1, 200, -1]));
        assert_eq!(column(&links, "sent_bytes"), Column::I64(vec![1400, 20]));
        assert_eq!(column(&links, "backlog_max_packets"), Column::I64(vec![3, -1]));
        let Column::F64(means) = column(&links, "backlog_mean_packets") else { panic!("of reals") };
        assert!(means[0] == 2.0 && means[1].is_nan());
        assert_eq!(queue_and_links(None).0.columns[0].1, Column::I64(vec![]));
    }

    #[test]
    fn quantiles_are_samples() {
        assert_eq!(quantiles(&mut [5, 1, 3], [0.0, 0.5, 1.0]), Some([1, 3, 5]));
        assert_eq!(quantiles(&mut [], [0.5]), None);
    }
}
