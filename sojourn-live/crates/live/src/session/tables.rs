//! The tables of a session: its samples and requests, on our clock.

use ::tables::{
    FlowId, LinkId, Table, drops, engine, flow, flows, links, probe, queue, rtt, sojourn, transfers,
};

use super::Pair;
use super::clock::Offset;
use super::local::{Local, Sample};
use crate::load::Row;
use crate::protocol::Direction;

/// Converts a number; a negative one means no value.
fn some(value: i64) -> Option<u64> {
    u64::try_from(value).ok()
}

/// Converts a time or a count; a negative one becomes 0.
pub fn non_negative(value: i64) -> u64 {
    value.max(0) as u64
}

// ---------------------------------------------------------------------------------------- streams

/// One TCP connection over its life, on our clock: each sample of the receiver with the sender's
/// nearest sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// (time, bytes delivered, the sender's sample).
    pub rows: Vec<(i64, i64, Option<Row>)>,
    /// The sender's last sample.
    pub last: Option<Row>,
}

impl Stream {
    /// Returns the total of delivered bytes; `None`: no sample has it.
    pub fn delivered(&self) -> Option<i64> {
        self.rows.last().map(|row| row.1)
    }

    /// Returns the delivered segments that the sender knows of; `None`: no sample has them.
    pub fn received(&self) -> Option<u64> {
        self.last.as_ref().and_then(|last| some(last.delivered))
    }

    /// Returns the bytes delivered up to `t`, interpolated between samples; 0 before the first.
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

/// Returns the streams of a load. The second value is true if the receiver's samples are missing,
/// so the acknowledged bytes replace them.
pub fn streams(
    pair: &Pair,
    count: usize,
    offset: Option<&Offset>,
    interval: i64,
) -> (Vec<Stream>, bool) {
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

/// Returns the nearest sample in time, if it is within an interval.
fn nearest(rows: &[Row], t: i64, interval: i64) -> Option<Row> {
    let after = rows.partition_point(|row| row.t < t);
    let around =
        [after.checked_sub(1), Some(after)].into_iter().flatten().filter_map(|i| rows.get(i));
    around.min_by_key(|row| (row.t - t).abs()).filter(|row| (row.t - t).abs() <= interval).copied()
}

/// Creates the table `flow`; the streams are the flows from 0 on.
pub fn flow(streams: &[Stream]) -> Table {
    let mut rows = Vec::new();
    for (number, stream) in streams.iter().enumerate() {
        for &(t, delivered, sender) in &stream.rows {
            let of = |field: fn(&Row) -> i64| sender.as_ref().map(field).and_then(some);
            rows.push(flow::Row {
                t_ns: non_negative(t),
                flow: FlowId(number as u32),
                cwnd_bytes: of(|r| r.cwnd),
                ssthresh_bytes: of(|r| r.ssthresh),
                srtt_ns: of(|r| r.srtt),
                inflight_bytes: of(|r| r.inflight),
                delivered_bytes: some(delivered),
                retransmits: of(|r| r.retransmits),
                window_bytes: of(|r| r.window),
                delay_max_ns: None,
            });
        }
    }
    // In the order of the engines: by time, then by flow.
    rows.sort_by_key(|row| (row.t_ns, row.flow));
    flow::Columns::from_iter(rows).into_table()
}

/// Creates the table `flows`: the streams from flow 0 on, then the probes.
pub fn flows(streams: &[Stream], probes: &[Vec<Request>]) -> Table {
    let streams =
        streams.iter().enumerate().map(|(number, stream)| of_stream(number as u32, stream));
    let first = streams.len();
    let probes = probes
        .iter()
        .enumerate()
        .map(|(index, requests)| of_probe((first + index) as u32, requests));
    flows::Columns::from_iter(streams.chain(probes)).into_table()
}

/// Returns the totals of a TCP connection.
fn of_stream(number: u32, stream: &Stream) -> flows::Row {
    let of = |field: fn(&Row) -> i64| stream.last.as_ref().map(field).and_then(some);
    let retransmits = of(|r| r.retransmits);
    flows::Row {
        flow: FlowId(number),
        sent_packets: of(|r| r.segments),
        sent_bytes: of(|r| r.sent),
        received_packets: stream.received(),
        delivered_bytes: stream.delivered().and_then(some),
        // Segments that the sender considered lost.
        lost_packets: retransmits,
        retransmits,
        timeouts: of(|r| r.timeouts),
        fast_recoveries: None,
        rtt_sum_ns: None,
        rtt_samples: None,
        rtt_min_ns: of(|r| r.min_rtt),
        rtt_max_ns: None,
        base_rtt_ns: of(|r| r.min_rtt),
    }
}

/// Returns the totals of a probe.
fn of_probe(number: u32, requests: &[Request]) -> flows::Row {
    let received = requests.iter().filter(|r| r.rtt.is_some()).count() as u64;
    let sent = requests.len() as u64;
    flows::Row {
        flow: FlowId(number),
        sent_packets: Some(sent),
        sent_bytes: None,
        received_packets: Some(received),
        delivered_bytes: None,
        lost_packets: Some(sent - received),
        // A probe has no retransmissions, in every engine.
        retransmits: Some(0),
        timeouts: Some(0),
        fast_recoveries: Some(0),
        rtt_sum_ns: None,
        rtt_samples: None,
        rtt_min_ns: None,
        rtt_max_ns: None,
        base_rtt_ns: requests.iter().filter_map(|r| r.rtt).min().and_then(some),
    }
}

// ------------------------------------------------------------------------------------------ links

/// A link's counters at a sample.
#[derive(Clone, Copy, Default)]
struct Count {
    packets: i64,
    bytes: i64,
    dropped: i64,
    /// Queued now, packets and bytes; `None`: unknown.
    backlog: Option<(i64, i64)>,
}

/// Returns the counters of an interface's two links, out and in.
fn counts(samples: &[Sample]) -> [Vec<(i64, Count)>; 2] {
    let out = |sample: &Sample| match &sample.root {
        Some(root) => Count {
            packets: root.sent_packets,
            bytes: root.sent_bytes,
            dropped: root.dropped,
            backlog: Some((root.backlog_packets, root.backlog_bytes)),
        },
        None => Count {
            packets: sample.counters.sent_packets as i64,
            bytes: sample.counters.sent_bytes as i64,
            dropped: sample.counters.sent_dropped as i64,
            backlog: None,
        },
    };
    let into = |sample: &Sample| Count {
        packets: sample.counters.received_packets as i64,
        bytes: sample.counters.received_bytes as i64,
        dropped: sample.counters.received_dropped as i64,
        backlog: None,
    };
    [
        samples.iter().map(|s| (s.t, out(s))).collect(),
        samples.iter().map(|s| (s.t, into(s))).collect(),
    ]
}

/// Returns the difference between two samples. A smaller counter means that the qdisc was replaced,
/// or that noqueue counted nothing before; it then counts from 0.
fn between(before: Count, after: Count) -> Count {
    let grown = |a: i64, b: i64| if b >= a { b - a } else { b };
    Count {
        packets: grown(before.packets, after.packets),
        bytes: grown(before.bytes, after.bytes),
        dropped: grown(before.dropped, after.dropped),
        backlog: after.backlog,
    }
}

/// Creates the tables `queue` and `links` of an interface.
pub fn queue_and_links(local: Option<&Local>) -> (Table, Table) {
    let (mut queue, mut links) = (Vec::new(), links::Columns::default());
    let both = local.map(|local| counts(&local.samples));
    for (number, counted) in both.iter().flatten().enumerate() {
        let link = LinkId(number as u32);
        let steps: Vec<(i64, Count)> =
            counted.windows(2).map(|pair| (pair[1].0, between(pair[0].1, pair[1].1))).collect();
        queue.extend(steps.iter().map(|(t, step)| queue_row(link, *t, step)));
        let span = counted.last().map_or(0, |l| l.0) - counted.first().map_or(0, |f| f.0);
        links.push(link_row(link, &steps, counted, span));
    }
    queue.sort_by_key(|row| (row.t_ns, row.link));
    (queue::Columns::from_iter(queue).into_table(), links.into_table())
}

/// Returns a link's row for the time between two samples. The kernel does not report the packets'
/// waiting times.
fn queue_row(link: LinkId, t: i64, step: &Count) -> queue::Row {
    queue::Row {
        t_ns: non_negative(t),
        link,
        backlog_packets: step.backlog.and_then(|(packets, _)| some(packets)),
        backlog_bytes: step.backlog.and_then(|(_, bytes)| some(bytes)),
        sojourn_mean_ns: None,
        sojourn_max_ns: None,
        sent_packets: Some(non_negative(step.packets)),
        sent_bytes: Some(non_negative(step.bytes)),
        dropped_packets: Some(non_negative(step.dropped)),
        marked_packets: None,
        limit: None,
        count: None,
        probability: None,
        average: None,
        flows: None,
        classic_delay_ns: None,
        l4s_delay_ns: None,
        ring_packets: None,
        ring_bytes: None,
        bql_limit_bytes: None,
    }
}

/// Returns the totals of a link over all its samples, `span` ns.
fn link_row(
    link: LinkId,
    steps: &[(i64, Count)],
    counted: &[(i64, Count)],
    span: i64,
) -> links::Row {
    let sum = |of: fn(&Count) -> i64| non_negative(steps.iter().map(|(_, step)| of(step)).sum());
    let known: Vec<(i64, i64)> = counted.iter().filter_map(|(_, count)| count.backlog).collect();
    let mean = |of: fn(&(i64, i64)) -> i64| {
        let total: i64 = known.iter().map(of).sum();
        (!known.is_empty()).then(|| (total as f64 / known.len() as f64).round())
    };
    let most = |of: fn(&(i64, i64)) -> i64| known.iter().map(of).max().and_then(some);
    let (sent_packets, sent_bytes, dropped_packets) =
        (sum(|c| c.packets), sum(|c| c.bytes), sum(|c| c.dropped));
    links::Row {
        link,
        arrived_packets: Some(sent_packets + dropped_packets),
        arrived_bytes: Some(sent_bytes),
        sent_packets: Some(sent_packets),
        sent_bytes: Some(sent_bytes),
        wire_bytes: Some(sent_bytes),
        dropped_packets: Some(dropped_packets),
        marked_packets: None,
        lost_packets: None,
        sojourn_sum_ns: None,
        sojourn_max_ns: None,
        backlog_mean_packets: mean(|b| b.0),
        backlog_mean_bytes: mean(|b| b.1),
        backlog_max_packets: most(|b| b.0),
        backlog_max_bytes: most(|b| b.1),
        busy_ns: None,
        capacity_bits: None,
        measured_ns: Some(non_negative(span)),
        ring_sent_packets: None,
        ring_sojourn_sum_ns: None,
        ring_sojourn_max_ns: None,
        ring_mean_packets: None,
        ring_max_packets: None,
        bql_limit_bytes: None,
    }
}

// ----------------------------------------------------------------------------------------- probes

/// A request and its outcome, on our clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Send time.
    pub sent: i64,
    /// Its number.
    pub sequence: u64,
    /// Round trip; `None`: lost.
    pub rtt: Option<i64>,
    /// One-way delay to the server, if known.
    pub forward: Option<i64>,
    /// Whether it reached the server, if known.
    pub arrived: Option<bool>,
}

/// Creates the table `probe`; probes are the flows from `first` on.
pub fn probe(probes: &[Vec<Request>], first: usize) -> Table {
    let mut rows = Vec::new();
    for (index, requests) in probes.iter().enumerate() {
        for request in requests {
            rows.push(probe::Row {
                t_ns: non_negative(request.sent),
                probe: FlowId((first + index) as u32),
                seq: request.sequence,
                rtt_ns: request.rtt.and_then(some),
                forward_ns: request.forward.and_then(some),
            });
        }
    }
    rows.sort_by_key(|row| (row.t_ns, row.probe));
    probe::Columns::from_iter(rows).into_table()
}

/// Returns the engines' tables that are empty in a measurement, and `engine`.
pub fn others(packets: Option<u64>) -> Vec<Table> {
    let engine = engine::Row { events: None, packets, peak_entries: None };
    vec![
        drops::Columns::default().into_table(),
        sojourn::Columns::default().into_table(),
        rtt::Columns::default().into_table(),
        transfers::Columns::default().into_table(),
        engine::Columns::from_iter([engine]).into_table(),
    ]
}

/// Returns the values at the quantiles, each a sample (nearest rank): the smallest for 0, the
/// largest for 1.
pub fn quantiles<const N: usize>(values: &mut [i64], levels: [f64; N]) -> Option<[i64; N]> {
    values.sort_unstable();
    let last = values.len().checked_sub(1)?;
    Some(levels.map(|q| values[(q * last as f64).round() as usize]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::probe::netlink::Counters;

    fn row(stream: i64, t: i64, received: i64, cwnd: i64) -> Row {
        let mut values = [-1; 17];
        values[..4].copy_from_slice(&[stream, t, received, cwnd]);
        values.into()
    }

    fn offset(at_zero: f64) -> Offset {
        Offset { at_zero, drift: 0.0, error: 0.0, samples: 1 }
    }

    #[test]
    fn a_row_has_the_receivers_bytes_and_the_senders_nearest_state() {
        // The server's clock is 1000 ahead.
        let pair = Pair {
            phase: 1,
            direction: Direction::Down,
            ours: [(100, 10), (200, 30), (340, 44), (400, 50)]
                .map(|(t, n)| row(0, t, n, -1))
                .into(),
            theirs: vec![row(0, 1090, -1, 7), row(0, 1240, -1, 8)],
        };
        let (streams, acked) = streams(&pair, 1, Some(&offset(1000.0)), 100);
        assert!(!acked);
        let cwnds: Vec<_> =
            streams[0].rows.iter().map(|(_, _, r)| r.map(|r| (r.t, r.cwnd))).collect();
        // The largest allowed distance is one interval.
        assert_eq!(cwnds, [Some((90, 7)), Some((240, 8)), Some((240, 8)), None]);
        assert_eq!(streams[0].delivered(), Some(50));
        let at: Vec<i64> = [50, 100, 150, 300, 900].map(|t| streams[0].delivered_at(t)).to_vec();
        assert_eq!(at, [0, 10, 20, 40, 50]);
    }

    #[test]
    fn without_the_server_acknowledged_bytes_count_as_delivered() {
        let mut ours = vec![row(0, 100, -1, 7), row(0, 200, -1, 8)];
        (ours[0].acked, ours[1].acked) = (11, 22);
        let pair = Pair { phase: 1, direction: Direction::Up, ours, theirs: Vec::new() };
        let (streams, acked) = streams(&pair, 1, Some(&offset(0.0)), 100);
        assert!(acked);
        assert_eq!(
            streams[0].rows.iter().map(|r| (r.0, r.1)).collect::<Vec<_>>(),
            [(100, 11), (200, 22)]
        );
    }

    #[test]
    fn a_load_without_samples_at_either_end_has_no_results() {
        let (ours, theirs) = (Vec::new(), Vec::new());
        let pair = Pair { phase: 1, direction: Direction::Up, ours, theirs };
        let (streams, acked) = streams(&pair, 1, None, 100);
        assert_eq!((acked, streams[0].delivered()), (false, None));
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
                dropped: sent / 10,
            }),
            counters: Counters {
                received_packets: received,
                received_bytes: received * 10,
                ..Counters::default()
            },
        };
        let mut local = Local::new(::probe::sys::device_index("lo").unwrap(), "lo").unwrap();
        // The qdisc is replaced in between: it counts from 0 again.
        local.samples = vec![sample(0, 50, 7, 1), sample(100, 60, 9, 3), sample(200, 4, 9, 2)];
        let (queue, links) = queue_and_links(Some(&local));
        let queue = queue::Columns::from_table(queue).unwrap();
        let links = links::Columns::from_table(links).unwrap();
        assert_eq!(queue.t_ns, [100, 100, 200, 200]);
        assert_eq!(queue.sent_packets, [10, 2, 4, 0]);
        let backlog: Vec<_> = queue.rows().map(|row| row.backlog_bytes).collect();
        assert_eq!(backlog, [Some(300), None, Some(200), None]);
        let [out, back] = [0, 1].map(|link| links.row(link));
        assert_eq!((out.sent_bytes, back.sent_bytes), (Some(1400), Some(20)));
        assert_eq!((out.dropped_packets, out.arrived_packets), (Some(1), Some(14 + 1)));
        assert_eq!((out.backlog_max_packets, back.backlog_max_packets), (Some(3), None));
        assert_eq!((out.backlog_mean_packets, back.backlog_mean_packets), (Some(2.0), None));
        assert_eq!(queue_and_links(None).0, queue::Columns::default().into_table());
    }

    #[test]
    fn quantiles_are_samples() {
        assert_eq!(quantiles(&mut [5, 1, 3], [0.0, 0.5, 1.0]), Some([1, 3, 5]));
        assert_eq!(quantiles(&mut [], [0.5]), None);
    }
}
