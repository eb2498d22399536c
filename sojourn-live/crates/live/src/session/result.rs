//! What was measured becomes tables and facts.

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

/// Echoes that one echo tells of.
const TOLD: u64 = 64;
/// A clock that was stepped by more than slewing does is worth a word, ns.
const STEPPED: i64 = 100 * MS;

/// Makes them. `duration`: the session's time at its end.
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
        let (made, by_ack) = tables::streams(pair, count, offsets.best(), plan.sample_ns);
        acked |= by_ack;
        let begun = session.phases.get(pair.phase);
        if let Some(phase) = begun {
            let between = |s: &Stream| s.delivered_at(phase.end) - s.delivered_at(phase.start);
            let bytes: i64 = made.iter().map(between).sum();
            let span = (phase.end - phase.start).max(1);
            goodput.push(Goodput {
                phase: pair.phase,
                direction: pair.direction,
                bytes,
                bps: (bytes as f64 * 8e9 / span as f64).round() as i64,
            });
        }
        if plan.ecn {
            tcp.extend(marked_tcp(pair.phase, pair.direction, &made));
        }
        for number in 0..made.len() {
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
        streams.extend(made);
    }
    if acked {
        notes.push(
            "the server's samples of an upload are missing: delivered_bytes is what it acknowledged".into(),
        );
    }
    let first = streams.len();
    for (index, aim) in session.aims.iter().enumerate() {
        flows.push(Flow::probe(&aim.name, session.loads.len() + index));
    }
    let told = tell_probes(session, &probes, &mut notes);
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
        Marks { tcp, ..marking::told(&marking.so_far(), plan.dscp, &phases) }
    });
    let more = Told { flows, probes: told, goodput, marks, notes };
    let facts = facts(session, ended, duration, &offsets, more);
    Measured { tables: all, facts }
}

/// What ECN told the senders of a load; `None`: no sample says.
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

/// What the streams of each load are called.
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

/// The congestion control of those who send in this direction.
fn congestion(session: &Session, direction: Direction) -> String {
    let default = match direction {
        Direction::Down => session.welcome.congestion.clone(),
        Direction::Up => crate::default_congestion(),
    };
    session.plan.congestion.clone().unwrap_or(default)
}

// ----------------------------------------------------------------------------------------- clocks

/// The server's clock by the two ways there are to ask for it.
struct Offsets {
    udp: Option<Offset>,
    control: Option<Offset>,
}

impl Offsets {
    fn of(session: &Session, samples: &[Sample]) -> Offsets {
        let echoes = samples.iter().filter_map(|sample| match sample.outcome {
            Outcome::Reply { rtt, turned: Some(turned), .. }
                if session.aims[sample.target].how == How::Udp =>
            {
                Some(Exchange { sent: sample.sent, rtt, turned })
            }
            _ => None,
        });
        let echoes: Vec<Exchange> = echoes.collect();
        Offsets { udp: Offset::fit(&echoes), control: Offset::fit(&session.exchanges) }
    }

    /// Echoes have the kernels' stamps and no retransmissions.
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

/// The requests of each target, in their order.
fn requests(session: &Session, samples: &[Sample], offset: Option<&Offset>) -> Vec<Vec<Request>> {
    let targets = session.aims.iter().enumerate();
    let of_target = |(index, aim): (usize, &super::Aim)| {
        let ours: Vec<&Sample> = samples.iter().filter(|s| s.target == index).collect();
        let told = (aim.how == How::Udp).then(|| Heard::of(&ours, session.heard));
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
                    arrived: told.as_ref().and_then(|told| told.arrived(sample.sequence)),
                },
            })
            .collect();
        requests.sort_by_key(|request| request.sequence);
        requests
    };
    targets.map(of_target).collect()
}

/// How long a request was under way to the server, which turned it round at `turned` of its clock.
/// Where the clocks' offset is off by more than the way takes, it is 0 or the round trip.
fn forward(offset: &Offset, turned: i64, sent: i64, rtt: i64) -> i64 {
    (offset.ours(turned) - sent).clamp(0, rtt)
}

/// What the server's echoes tell of the requests that it heard.
struct Heard {
    /// Of each request by its number: not told, not heard, heard.
    requests: Vec<Option<bool>>,
}

impl Heard {
    /// From the echoes, and from what the server says at the end: (number of the latest, bits).
    fn of(samples: &[&Sample], last: Option<(u32, u64)>) -> Heard {
        let count = samples.iter().map(|s| s.sequence + 1).max().unwrap_or(0);
        let mut told = Heard { requests: vec![None; count as usize] };
        for sample in samples {
            if let Outcome::Reply { received_bits, .. } = sample.outcome {
                told.add(sample.sequence, received_bits);
            }
        }
        if let Some((latest, bits)) = last {
            let latest = u64::from(latest);
            if bits != 0 {
                told.add(latest, bits);
            }
            // Nothing after the latest one came.
            let from = if bits == 0 { 0 } else { latest + 1 };
            (from..count).for_each(|sequence| told.set(sequence, false));
        }
        told
    }

    fn add(&mut self, sequence: u64, heard: u64) {
        // Nothing is told by an echo without bits: its own is always set.
        if heard != 0 {
            for behind in 0..TOLD.min(sequence + 1) {
                self.set(sequence - behind, heard >> behind & 1 == 1);
            }
        }
    }

    /// One that was overtaken is told as missing before it is told as heard.
    fn set(&mut self, sequence: u64, heard: bool) {
        if let Some(known) = self.requests.get_mut(sequence as usize) {
            *known = Some(heard || known.unwrap_or(false));
        }
    }

    fn arrived(&self, sequence: u64) -> Option<bool> {
        self.requests.get(sequence as usize).copied().flatten()
    }
}

/// Lost requests, and where: (all, on the way there, on the way back); the latter two only if all
/// are known.
fn lost<'a>(requests: impl Iterator<Item = &'a Request>) -> (usize, Option<usize>, Option<usize>) {
    let (mut all, mut there, mut back, mut unknown) = (0, 0, 0, 0);
    for request in requests.filter(|request| request.rtt.is_none()) {
        all += 1;
        match request.arrived {
            Some(false) => there += 1,
            Some(true) => back += 1,
            None => unknown += 1,
        }
    }
    let known = |count: usize| (unknown == 0).then_some(count);
    (all, known(there), known(back))
}

fn tell_probes(session: &Session, probes: &[Vec<Request>], notes: &mut Vec<String>) -> Vec<Probe> {
    let probed = session.probing.so_far();
    let mut told = Vec::new();
    for (index, (aim, requests)) in session.aims.iter().zip(probes).enumerate() {
        let udp = aim.how == How::Udp;
        let where_lost = |requests: &mut dyn Iterator<Item = &Request>| {
            let (all, there, back) = lost(requests);
            if udp { (all, there, back) } else { (all, None, None) }
        };
        let received = requests.iter().filter(|r| r.rtt.is_some()).count();
        let (all, there, back) = where_lost(&mut requests.iter());
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
                let (all, there, back) = where_lost(&mut sent());
                ProbedPhase {
                    phase: number,
                    sent: sent().count(),
                    lost: all,
                    lost_forward: there,
                    lost_backward: back,
                }
            })
            .collect();
        if received == 0 && !requests.is_empty() {
            let why = reasons.keys().next().map_or("no reply", |word| *word);
            notes.push(format!(
                "{} ({}) never answered any of {} requests by {}: {why}",
                aim.name,
                aim.address,
                requests.len(),
                aim.how.word()
            ));
        }
        let counts = probed.counts[index];
        if counts.missed > 0 {
            notes.push(format!(
                "{} slots of {} were missed: this host stood still",
                counts.missed, aim.name
            ));
        }
        told.push(Probe {
            name: aim.name.clone(),
            how: aim.how.word(),
            address: aim.address.to_string(),
            socket: aim.socket,
            sent: requests.len(),
            received,
            lost: all,
            late: counts.late,
            duplicate: counts.duplicate,
            missed: counts.missed,
            reasons,
            lost_forward: there,
            lost_backward: back,
            phases,
        });
    }
    told
}

// ------------------------------------------------------------------------------------------ facts

/// What was made beside the tables.
struct Told {
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
    mut more: Told,
) -> Facts {
    let probed = session.probing.so_far();
    let (outcome, why) = match ended {
        Ok(()) => (facts::Outcome::Complete, String::new()),
        Err(End::Interrupted) => {
            (facts::Outcome::Interrupted, "it was ended before its end".into())
        }
        Err(End::Gone(why) | End::Refused(why)) => (facts::Outcome::Partial, why.clone()),
    };
    let stepped = session.clock.stepped();
    if stepped.abs() >= STEPPED {
        let seconds = stepped as f64 / 1e9;
        more.notes.push(format!(
            "the time of day was stepped by {seconds:.3} s meanwhile; no time here follows it"
        ));
    }
    if let Some(why) = session.local.as_ref().and_then(|local| local.broken.as_ref()) {
        more.notes.push(format!(
            "{} was watched until it broke off: {why}",
            session.local.as_ref().map_or("", |l| &l.name)
        ));
    }
    let phases = session.phases.iter().map(|phase| Phase {
        name: phase.name.clone(),
        kind: phase.kind.word(),
        start_ns: tables::whole(phase.start),
        end_ns: tables::whole(phase.end),
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
        flows: more.flows,
        links,
        probes: more.probes,
        goodput: more.goodput,
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
        notes: more.notes,
        marks: more.marks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(sequence: u64, heard: u64) -> Sample {
        let outcome = Outcome::Reply { rtt: 1, turned: Some(1), received_bits: heard };
        Sample { target: 0, sequence, sent: 0, lateness: 0, outcome }
    }

    fn lost_one(sequence: u64) -> Sample {
        let outcome = Outcome::Lost(probe::prober::Loss::Timeout);
        Sample { target: 0, sequence, sent: 0, lateness: 0, outcome }
    }

    #[test]
    fn where_a_request_was_lost_is_told_by_later_echoes_and_at_the_end() {
        // 1 was lost on the way there, 2 on the way back, 4 and 5 there, 6 back.
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
        let told = Heard::of(&samples, Some((6, 0b1011001)));
        let arrived: Vec<_> = (0..7).map(|i| told.arrived(i)).collect();
        assert_eq!(arrived, [true, false, true, true, false, false, true].map(Some));
        // Without the server's last word the end is not known.
        let told = Heard::of(&samples, None);
        assert_eq!(
            (told.arrived(1), told.arrived(2), told.arrived(5)),
            (Some(false), Some(true), None)
        );
        // One who heard nothing at all.
        let none = [lost_one(0), lost_one(1)];
        let told = Heard::of(&none.iter().collect::<Vec<_>>(), Some((0, 0)));
        assert_eq!((told.arrived(0), told.arrived(1)), (Some(false), Some(false)));
    }

    #[test]
    fn one_that_is_overtaken_was_heard() {
        let samples = [reply(1, 0b10), reply(2, 0b110), lost_one(0)];
        let told = Heard::of(&samples.iter().collect::<Vec<_>>(), None);
        assert_eq!(told.arrived(0), Some(true));
        let samples = [reply(1, 0b1), reply(2, 0b111), lost_one(0)];
        let told = Heard::of(&samples.iter().collect::<Vec<_>>(), None);
        assert_eq!(told.arrived(0), Some(true));
    }

    #[test]
    fn losses_of_which_one_is_unknown_have_no_direction() {
        let request = |arrived| Request { sent: 0, sequence: 0, rtt: None, forward: None, arrived };
        let all = [request(Some(true)), request(Some(false)), request(Some(false))];
        assert_eq!(lost(all.iter()), (3, Some(2), Some(1)));
        assert_eq!(lost([request(Some(true)), request(None)].iter()), (2, None, None));
    }

    #[test]
    fn a_way_takes_no_less_than_nothing_and_no_more_than_the_round_trip() {
        let offset = Offset { at_zero: 1000.0, drift: 0.0, error: 50.0, samples: 1 };
        let ways = [1060, 1110, 1140, 1190].map(|turned| forward(&offset, turned, 100, 50));
        assert_eq!(ways, [0, 10, 40, 50]);
    }

    #[test]
    fn what_ecn_told_is_of_the_streams_whose_samples_say_it() {
        let stream = |ecn, delivered, marked| {
            let row =
                crate::load::Row { ecn, delivered, marked, ..crate::load::Row::from([-1; 17]) };
            Stream { rows: Vec::new(), last: Some(row) }
        };
        let streams = [stream(1, 100, 5), stream(0, 50, -1), stream(-1, 900, 9)];
        let told = marked_tcp(2, Direction::Up, &streams).expect("two say it");
        assert_eq!((told.streams, told.ecn, told.delivered, told.marked), (2, 1, 150, 5));
        assert!(marked_tcp(2, Direction::Up, &streams[2..]).is_none());
    }
}
