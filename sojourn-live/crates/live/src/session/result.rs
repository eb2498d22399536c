//! Turns the measurements of a session into tables and facts.

use ::tables::facts::{self, Flow, FlowDirection, FlowKind, Link, LinkDirection, Phase};
use probe::prober::{Outcome, Sample};
use std::collections::BTreeMap;

use super::clock::{Exchange, Offset};
use super::facts::{
    Client, Clock, Congestion, Facts, Goodput, Lateness, Load, MarkedTcp, Marks, Probe,
    ProbedPhase, Server, priority,
};
use super::marking;
use super::plan::{How, Kind};
use super::tables::{self, Request, Stream};
use super::{End, MS, Measured, Session};
use crate::protocol::Direction;

/// Requests that the bits of one echo cover.
const ECHO_BITS: u64 = 64;
/// A change of the time of day by this much, ns, or more was a step, not slewing: the facts get a
/// note.
const STEPPED: i64 = 100 * MS;

/// Creates tables and facts. `duration` is the session's time at its end.
pub fn make(session: &Session, ended: &Result<(), End>, duration: i64) -> Measured {
    let probed = session.probing.so_far();
    let mut notes = session.notes.clone();
    let offsets = Offsets::of(session, &probed.samples);
    let probes = requests(session, &probed.samples, offsets.best());
    let plan = session.plan;
    let mut streams: Vec<Stream> = Vec::new();
    let mut flows = Vec::new();
    let mut goodput = Vec::new();
    let mut acked = false;
    let mut tcp = Vec::new();
    let names = LoadNames::of(session);
    for (group, pair) in session.loads.iter().enumerate() {
        let count = plan.streams as usize;
        let (load_streams, by_ack) = tables::streams(pair, count, offsets.best(), plan.sample_ns);
        acked |= by_ack;
        let begun = session.phases.get(pair.phase);
        if let Some(phase) = begun {
            let between = |s: &Stream| s.delivered_at(phase.end) - s.delivered_at(phase.start);
            let bytes: i64 = load_streams.iter().map(between).sum();
            let span = (phase.end - phase.start).max(1);
            goodput.push(Goodput {
                phase: pair.phase,
                direction: pair.direction,
                bytes,
                bps: (bytes as f64 * 8e9 / span as f64).round() as i64,
            });
        }
        if plan.ecn {
            tcp.extend(marked_tcp(pair.phase, pair.direction, &load_streams));
        }
        for number in 0..load_streams.len() {
            flows.push(Flow {
                name: format!("{}-{}", names.of_load(group), number + 1),
                kind: FlowKind::Bulk,
                direction: match pair.direction {
                    Direction::Down => FlowDirection::Down,
                    Direction::Up => FlowDirection::Up,
                },
                phase: begun.map(|_| pair.phase),
                group,
                congestion: Some(congestion(session, pair.direction)),
            });
        }
        streams.extend(load_streams);
    }
    if acked {
        notes.push(
            "the server's samples of an upload are missing: delivered_bytes counts acknowledged bytes instead".into(),
        );
    }
    let first = streams.len();
    for (index, target) in session.probe_targets.iter().enumerate() {
        flows.push(Flow::probe(&target.name, session.loads.len() + index));
    }
    let summaries = summarize_probes(session, &probes, &mut notes);
    let (queue, links) = tables::queue_and_links(session.local.as_ref());
    let mut all = vec![
        tables::flow(&streams),
        tables::flows(&streams, &probes),
        tables::probe(&probes, first),
        queue,
        links,
    ];
    let received = streams.iter().filter_map(Stream::received);
    all.extend(tables::others(received.reduce(|sum, more| sum + more)));
    let marks = session.marking.as_ref().map(|marking| {
        let phases: Vec<(i64, i64)> = session.phases.iter().map(|p| (p.start, p.end)).collect();
        Marks { tcp, ..marking::evaluate(&marking.so_far(), plan.dscp, &phases) }
    });
    let results = Results { flows, probes: summaries, goodput, marks, notes };
    let facts = facts(session, ended, duration, &offsets, results);
    Measured { tables: all, facts }
}

/// Returns the ECN feedback to the senders of a load; `None`: no sample contains it.
fn marked_tcp(phase: usize, direction: Direction, streams: &[Stream]) -> Option<MarkedTcp> {
    let known: Vec<_> =
        streams.iter().filter_map(|s| s.last).filter(|last| last.ecn >= 0).collect();
    let sum = |of: fn(&crate::load::Row) -> i64| known.iter().map(|l| of(l).max(0) as u64).sum();
    (!known.is_empty()).then(|| MarkedTcp {
        phase,
        direction,
        streams: known.len(),
        ecn: known.iter().filter(|last| last.ecn == 1).count(),
        delivered: sum(|last| last.delivered),
        marked: sum(|last| last.marked),
    })
}

/// The name prefixes of each load's streams.
struct LoadNames(Vec<String>);

impl LoadNames {
    fn of(session: &Session) -> LoadNames {
        let name = |pair: &super::Pair| match session.phases.get(pair.phase) {
            Some(phase) if phase.kind == Kind::Both => {
                format!("{}-{}", phase.name.replace(' ', "-"), pair.direction.word())
            }
            Some(phase) => phase.name.replace(' ', "-"),
            // Its phase never began.
            None => format!("{}-unbegun", pair.direction.word()),
        };
        LoadNames(session.loads.iter().map(name).collect())
    }

    fn of_load(&self, group: usize) -> &str {
        &self.0[group]
    }
}

/// Returns the congestion control of the senders in this direction.
fn congestion(session: &Session, direction: Direction) -> String {
    let default = match direction {
        Direction::Down => session.welcome.congestion.clone(),
        Direction::Up => crate::default_congestion(),
    };
    session.plan.congestion.clone().unwrap_or(default)
}

// ----------------------------------------------------------------------------------------- clocks

/// The offset of the server's clock, from both sources.
struct Offsets {
    udp: Option<Offset>,
    control: Option<Offset>,
}

impl Offsets {
    fn of(session: &Session, samples: &[Sample]) -> Offsets {
        let echoes = samples.iter().filter_map(|sample| match sample.outcome {
            Outcome::Reply { rtt, turned: Some(turned), .. }
                if session.probe_targets[sample.target].how == How::Udp =>
            {
                Some(Exchange { sent: sample.sent, rtt, turned })
            }
            _ => None,
        });
        let echoes: Vec<Exchange> = echoes.collect();
        Offsets { udp: Offset::fit(&echoes), control: Offset::fit(&session.exchanges) }
    }

    /// Returns the better offset: echoes have kernel timestamps and no retransmissions.
    fn best(&self) -> Option<&Offset> {
        self.udp.as_ref().or(self.control.as_ref())
    }

    fn by(&self) -> &'static str {
        match (&self.udp, &self.control) {
            (Some(_), _) => "udp",
            (None, Some(_)) => "control",
            (None, None) => "",
        }
    }
}

// ----------------------------------------------------------------------------------------- probes

/// Returns the requests of each target, in order of their numbers.
fn requests(session: &Session, samples: &[Sample], offset: Option<&Offset>) -> Vec<Vec<Request>> {
    let targets = session.probe_targets.iter().enumerate();
    let of_target = |(index, target): (usize, &super::ProbeTarget)| {
        let ours: Vec<&Sample> = samples.iter().filter(|s| s.target == index).collect();
        let received =
            (target.how == How::Udp).then(|| ReceivedRequests::of(&ours, session.received));
        let mut requests: Vec<Request> = ours
            .iter()
            .map(|sample| match sample.outcome {
                Outcome::Reply { rtt, turned, .. } => Request {
                    sent: sample.sent,
                    sequence: sample.sequence,
                    rtt: Some(rtt),
                    forward: offset.zip(turned).map(|(o, at)| forward(o, at, sample.sent, rtt)),
                    arrived: Some(true),
                },
                Outcome::Lost(_) => Request {
                    sent: sample.sent,
                    sequence: sample.sequence,
                    rtt: None,
                    forward: None,
                    arrived: received
                        .as_ref()
                        .and_then(|received| received.arrived(sample.sequence)),
                },
            })
            .collect();
        requests.sort_by_key(|request| request.sequence);
        requests
    };
    targets.map(of_target).collect()
}

/// Returns the one-way delay of a request that the server returned at `turned` on its clock. If the
/// error of the offset exceeds the delay, the result is limited to 0 or the round trip.
fn forward(offset: &Offset, turned: i64, sent: i64, rtt: i64) -> i64 {
    (offset.ours(turned) - sent).clamp(0, rtt)
}

/// Which requests reached the server, as its echoes report.
struct ReceivedRequests {
    /// By number: unknown, missing or received.
    requests: Vec<Option<bool>>,
}

impl ReceivedRequests {
    /// Combines the bits of all echoes with the server's report at the end: (number of the latest,
    /// bits).
    fn of(samples: &[&Sample], last: Option<(u32, u64)>) -> ReceivedRequests {
        let count = samples.iter().map(|s| s.sequence + 1).max().unwrap_or(0);
        let mut received = ReceivedRequests { requests: vec![None; count as usize] };
        for sample in samples {
            if let Outcome::Reply { received_bits, .. } = sample.outcome {
                received.add(sample.sequence, received_bits);
            }
        }
        if let Some((latest, bits)) = last {
            let latest = u64::from(latest);
            if bits != 0 {
                received.add(latest, bits);
            }
            // Requests with numbers above `latest` did not arrive.
            let from = if bits == 0 { 0 } else { latest + 1 };
            (from..count).for_each(|sequence| received.set(sequence, false));
        }
        received
    }

    fn add(&mut self, sequence: u64, received_bits: u64) {
        // Bits of 0 contain no information: an echo's own bit is always set.
        if received_bits != 0 {
            for behind in 0..ECHO_BITS.min(sequence + 1) {
                self.set(sequence - behind, received_bits >> behind & 1 == 1);
            }
        }
    }

    /// A reordered request is reported as missing first and as received later.
    fn set(&mut self, sequence: u64, received: bool) {
        if let Some(known) = self.requests.get_mut(sequence as usize) {
            *known = Some(received || known.unwrap_or(false));
        }
    }

    fn arrived(&self, sequence: u64) -> Option<bool> {
        self.requests.get(sequence as usize).copied().flatten()
    }
}

/// Counts lost requests: (all, lost forward, lost backward). The last two are `None` if the
/// direction of any loss is unknown.
fn lost<'a>(requests: impl Iterator<Item = &'a Request>) -> (usize, Option<usize>, Option<usize>) {
    let (mut all, mut forward, mut backward, mut unknown) = (0, 0, 0, 0);
    for request in requests.filter(|request| request.rtt.is_none()) {
        all += 1;
        match request.arrived {
            Some(false) => forward += 1,
            Some(true) => backward += 1,
            None => unknown += 1,
        }
    }
    let known = |count: usize| (unknown == 0).then_some(count);
    (all, known(forward), known(backward))
}

fn summarize_probes(
    session: &Session,
    probes: &[Vec<Request>],
    notes: &mut Vec<String>,
) -> Vec<Probe> {
    let probed = session.probing.so_far();
    let mut summaries = Vec::new();
    for (index, (target, requests)) in session.probe_targets.iter().zip(probes).enumerate() {
        let udp = target.how == How::Udp;
        let where_lost = |requests: &mut dyn Iterator<Item = &Request>| {
            let (all, forward, backward) = lost(requests);
            if udp { (all, forward, backward) } else { (all, None, None) }
        };
        let received = requests.iter().filter(|r| r.rtt.is_some()).count();
        let (all, forward, backward) = where_lost(&mut requests.iter());
        let mut reasons: BTreeMap<&'static str, u64> = BTreeMap::new();
        for sample in probed.samples.iter().filter(|s| s.target == index) {
            if let Outcome::Lost(loss) = sample.outcome {
                *reasons.entry(loss.word()).or_default() += 1;
            }
        }
        let phases: Vec<ProbedPhase> = session
            .phases
            .iter()
            .enumerate()
            .map(|(number, phase)| {
                let sent =
                    || requests.iter().filter(|r| (phase.start..phase.end).contains(&r.sent));
                let (all, forward, backward) = where_lost(&mut sent());
                ProbedPhase {
                    phase: number,
                    sent: sent().count(),
                    lost: all,
                    lost_forward: forward,
                    lost_backward: backward,
                }
            })
            .collect();
        if received == 0 && !requests.is_empty() {
            let why = reasons.keys().next().map_or("no reply", |word| *word);
            notes.push(format!(
                "{} ({}) answered none of {} requests by {}: {why}",
                target.name,
                target.address,
                requests.len(),
                target.how.word()
            ));
        }
        let counts = probed.counts[index];
        if counts.missed > 0 {
            notes.push(format!(
                "{} requests to {} were not sent: this host was suspended or too busy",
                counts.missed, target.name
            ));
        }
        summaries.push(Probe {
            name: target.name.clone(),
            how: target.how.word(),
            address: target.address.to_string(),
            socket: target.socket,
            sent: requests.len(),
            received,
            lost: all,
            late: counts.late,
            duplicate: counts.duplicate,
            missed: counts.missed,
            reasons,
            lost_forward: forward,
            lost_backward: backward,
            phases,
        });
    }
    summaries
}

// ------------------------------------------------------------------------------------------ facts

/// The results besides the tables.
struct Results {
    flows: Vec<Flow>,
    probes: Vec<Probe>,
    goodput: Vec<Goodput>,
    marks: Option<Marks>,
    notes: Vec<String>,
}

fn facts(
    session: &Session,
    ended: &Result<(), End>,
    duration: i64,
    offsets: &Offsets,
    mut results: Results,
) -> Facts {
    let probed = session.probing.so_far();
    let (outcome, why) = match ended {
        Ok(()) => (facts::Outcome::Complete, String::new()),
        Err(End::Interrupted) => (facts::Outcome::Interrupted, "it was ended early".into()),
        Err(End::ServerLost(why) | End::Refused(why)) => (facts::Outcome::Partial, why.clone()),
    };
    let stepped = session.clock.stepped();
    if stepped.abs() >= STEPPED {
        let seconds = stepped as f64 / 1e9;
        results.notes.push(format!(
            "the time of day was stepped by {seconds:.3} s during the session; the times here are not affected"
        ));
    }
    if let Some(why) = session.local.as_ref().and_then(|local| local.broken.as_ref()) {
        results.notes.push(format!(
            "sampling of {} stopped: {why}",
            session.local.as_ref().map_or("", |l| &l.name)
        ));
    }
    let phases = session.phases.iter().map(|phase| Phase {
        name: phase.name.clone(),
        kind: phase.kind.word(),
        start_ns: tables::non_negative(phase.start),
        end_ns: tables::non_negative(phase.end),
        complete: phase.complete,
    });
    let phases = phases.collect();
    let links = session.local.iter().flat_map(|local| {
        let interface = &local.name;
        let link = |name: String, direction, qdisc: &str| Link {
            name,
            interface: interface.clone(),
            direction,
            qdisc: qdisc.into(),
        };
        [
            link(interface.clone(), LinkDirection::Out, &local.qdisc),
            link(format!("{interface} in"), LinkDirection::In, ""),
        ]
    });
    let links = links.collect();
    let mut late: Vec<i64> = probed.samples.iter().map(|sample| sample.lateness).collect();
    let [p50, p90, p99, max] =
        tables::quantiles(&mut late, [0.5, 0.9, 0.99, 1.0]).unwrap_or([0; 4]);
    let best = offsets.best();
    let address = session.control.address();
    Facts {
        format: facts::FORMAT,
        outcome,
        why,
        zero_ns: session.clock.zero_of_day(),
        duration_ns: duration,
        phases,
        flows: results.flows,
        links,
        probes: results.probes,
        goodput: results.goodput,
        clock: Clock {
            offset_ns: best.map(|offset| offset.at_zero.round() as i64),
            drift_ppm: best.map(|offset| offset.drift * 1e6),
            error_ns: best.map(|offset| offset.error.round() as i64),
            by: offsets.by(),
            samples: best.map_or(0, |offset| offset.samples),
            stepped_ns: stepped,
        },
        lateness_ns: Lateness {
            sends: late.len(),
            p50,
            p90,
            p99,
            max,
            priority: priority(probed.priority),
        },
        load: Load {
            streams: session.plan.streams,
            congestion: Congestion {
                asked: session.plan.congestion.clone(),
                client: congestion(session, Direction::Up),
                server: congestion(session, Direction::Down),
            },
            dscp: session.plan.dscp,
        },
        server: Server {
            host: session.plan.host.clone(),
            address: address.ip().to_canonical().to_string(),
            port: address.port(),
            version: session.welcome.software.clone(),
            kernel: session.welcome.kernel.clone(),
            caps: session.welcome.caps,
        },
        client: Client {
            address: session.control.own_address().map(|own| own.ip().to_canonical().to_string()),
            interface: session.around.device.clone(),
            gateway: session.around.gateway.map(|gateway| gateway.to_string()),
            version: env!("CARGO_PKG_VERSION"),
            kernel: crate::kernel(),
        },
        notes: results.notes,
        marks: results.marks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(sequence: u64, received_bits: u64) -> Sample {
        let outcome = Outcome::Reply { rtt: 1, turned: Some(1), received_bits };
        Sample { target: 0, sequence, sent: 0, lateness: 0, outcome }
    }

    fn lost_one(sequence: u64) -> Sample {
        let outcome = Outcome::Lost(probe::prober::Loss::Timeout);
        Sample { target: 0, sequence, sent: 0, lateness: 0, outcome }
    }

    #[test]
    fn later_echoes_and_the_end_show_where_a_request_was_lost() {
        // 1 was lost forward, 2 backward, 4 and 5 forward, 6 backward.
        let samples = [
            reply(0, 0b1),
            lost_one(1),
            lost_one(2),
            reply(3, 0b1011),
            lost_one(4),
            lost_one(5),
            lost_one(6),
        ];
        let samples: Vec<&Sample> = samples.iter().collect();
        let received = ReceivedRequests::of(&samples, Some((6, 0b1011001)));
        let arrived: Vec<_> = (0..7).map(|i| received.arrived(i)).collect();
        assert_eq!(arrived, [true, false, true, true, false, false, true].map(Some));
        // Without the server's report at the end, the last requests are unknown.
        let received = ReceivedRequests::of(&samples, None);
        assert_eq!(
            (received.arrived(1), received.arrived(2), received.arrived(5)),
            (Some(false), Some(true), None)
        );
        // A server that received nothing at all.
        let none = [lost_one(0), lost_one(1)];
        let received = ReceivedRequests::of(&none.iter().collect::<Vec<_>>(), Some((0, 0)));
        assert_eq!((received.arrived(0), received.arrived(1)), (Some(false), Some(false)));
    }

    #[test]
    fn an_overtaken_request_counts_as_received() {
        let samples = [reply(1, 0b10), reply(2, 0b110), lost_one(0)];
        let received = ReceivedRequests::of(&samples.iter().collect::<Vec<_>>(), None);
        assert_eq!(received.arrived(0), Some(true));
        let samples = [reply(1, 0b1), reply(2, 0b111), lost_one(0)];
        let received = ReceivedRequests::of(&samples.iter().collect::<Vec<_>>(), None);
        assert_eq!(received.arrived(0), Some(true));
    }

    #[test]
    fn losses_have_no_direction_if_one_of_them_is_unknown() {
        let request = |arrived| Request { sent: 0, sequence: 0, rtt: None, forward: None, arrived };
        let all = [request(Some(true)), request(Some(false)), request(Some(false))];
        assert_eq!(lost(all.iter()), (3, Some(2), Some(1)));
        assert_eq!(lost([request(Some(true)), request(None)].iter()), (2, None, None));
    }

    #[test]
    fn a_one_way_delay_is_between_0_and_the_rtt() {
        let offset = Offset { at_zero: 1000.0, drift: 0.0, error: 50.0, samples: 1 };
        let ways = [1060, 1110, 1140, 1190].map(|turned| forward(&offset, turned, 100, 50));
        assert_eq!(ways, [0, 10, 40, 50]);
    }

    #[test]
    fn ecn_counts_come_only_from_streams_that_report_them() {
        let stream = |ecn, delivered, marked| {
            let row =
                crate::load::Row { ecn, delivered, marked, ..crate::load::Row::from([-1; 17]) };
            Stream { rows: Vec::new(), last: Some(row) }
        };
        let streams = [stream(1, 100, 5), stream(0, 50, -1), stream(-1, 900, 9)];
        let received = marked_tcp(2, Direction::Up, &streams).expect("two say it");
        assert_eq!(
            (received.streams, received.ecn, received.delivered, received.marked),
            (2, 1, 150, 5)
        );
        assert!(marked_tcp(2, Direction::Up, &streams[2..]).is_none());
    }
}
