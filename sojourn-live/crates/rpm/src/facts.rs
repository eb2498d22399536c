//! An outcome in the form in which sojourn stores a measurement: tables and facts.
//!
//! The flows' numbers: first the kinds of probe (`PROBES`), then the connections that carried load.

use serde::Serialize;
use tables::facts::{
    FORMAT, Flow, FlowDirection, FlowKind, Link, Outcome as Ended, Phase, UNFINISHED,
};
use tables::{FlowId, Table, engine, flow, flows, probe};

use crate::algorithm::Parameters;
use crate::client::{Loaded, Outcome, PROBES, Plan, Stopped};
use crate::load::Direction;

impl Outcome {
    /// Returns the tables that have rows: probe, flow, flows, engine.
    pub fn tables(&self) -> Vec<Table> {
        let engine = engine::Row { events: None, packets: None, peak_entries: None };
        vec![
            self.probe_table().into_table(),
            self.flow_table().into_table(),
            self.totals().into_table(),
            engine::Columns::from_iter([engine]).into_table(),
        ]
    }

    fn probe_table(&self) -> probe::Columns {
        let rows = self.probes.iter().map(|probe| probe::Row {
            t_ns: probe.t_ns,
            probe: FlowId(probe.kind as u32),
            seq: probe.seq,
            rtt_ns: probe.rtt_ns,
            forward_ns: None,
        });
        rows.collect()
    }

    fn flow_table(&self) -> flow::Columns {
        let rows = self.samples.iter().map(|sample| {
            let sender = sample.sender;
            flow::Row {
                t_ns: sample.t_ns,
                flow: FlowId((PROBES.len() + sample.flow) as u32),
                cwnd_bytes: sender.map(|sender| sender.cwnd_bytes),
                ssthresh_bytes: sender.and_then(|sender| sender.ssthresh_bytes),
                srtt_ns: sender.map(|sender| sender.srtt_ns),
                inflight_bytes: sender.map(|sender| sender.inflight_bytes),
                delivered_bytes: Some(sample.delivered_bytes),
                retransmits: sender.map(|sender| sender.retransmits),
                window_bytes: sender.map(|sender| sender.window_bytes),
                delay_max_ns: None,
            }
        });
        rows.collect()
    }

    fn totals(&self) -> flows::Columns {
        let probes = (0..PROBES.len()).map(|kind| {
            let mine = || self.probes.iter().filter(move |probe| probe.kind == kind);
            let rtts = || mine().filter_map(|probe| probe.rtt_ns);
            let (sent, received) = (mine().count() as u64, rtts().count() as u64);
            flows::Row {
                sent_packets: Some(sent),
                received_packets: Some(received),
                lost_packets: Some(sent - received),
                // A probe has no retransmissions, in every engine.
                retransmits: Some(0),
                timeouts: Some(0),
                fast_recoveries: Some(0),
                base_rtt_ns: rtts().min(),
                ..uncounted(kind)
            }
        });
        let loads = (0..self.flows.len()).map(|number| {
            let last = self.samples.iter().rev().find(|sample| sample.flow == number);
            flows::Row {
                delivered_bytes: last.map(|sample| sample.delivered_bytes),
                retransmits: last.and_then(|sample| Some(sample.sender?.retransmits)),
                ..uncounted(PROBES.len() + number)
            }
        });
        probes.chain(loads).collect()
    }

    /// Returns the facts.
    pub fn facts<'a>(&'a self, plan: &'a Plan) -> Facts<'a> {
        let (outcome, why) = match &self.stopped {
            None => (Ended::Complete, String::new()),
            Some(Stopped::Interrupted) => (Ended::Interrupted, "it was interrupted".into()),
            Some(Stopped::Failed(problem)) => (Ended::Partial, problem.to_string()),
            Some(Stopped::Running) => (Ended::Partial, UNFINISHED.into()),
        };
        Facts {
            format: FORMAT,
            outcome,
            why,
            notes: Vec::new(),
            zero_ns: self.zero_ns,
            duration_ns: self.end_ns,
            phases: self.phases(),
            flows: self.flow_facts(),
            links: Vec::new(),
            server: Server {
                host: &self.document.small.host,
                address: self.address.ip().to_string(),
                port: self.address.port(),
            },
            client: Client { version: env!("CARGO_PKG_VERSION") },
            rpm: Decided {
                parameters: &plan.parameters,
                small_url: self.document.small.to_string(),
                large_url: self.document.large.to_string(),
                upload_url: self.document.upload.to_string(),
                tls_round_trips: self.tls_round_trips,
                loaded: &self.loaded,
            },
        }
    }

    fn phases(&self) -> Vec<Phase> {
        let complete = matches!(self.stopped, None | Some(Stopped::Running));
        let idle = Phase {
            name: "idle".into(),
            kind: "idle",
            start_ns: 0,
            end_ns: self.idle_end_ns,
            complete: complete || !self.loaded.is_empty(),
        };
        let loaded = self.loaded.iter().enumerate().map(|(number, loaded)| Phase {
            name: kind(&loaded.directions).into(),
            kind: kind(&loaded.directions),
            start_ns: loaded.start_ns,
            end_ns: loaded.end_ns,
            complete: complete || number + 1 < self.loaded.len(),
        });
        std::iter::once(idle).chain(loaded).collect()
    }

    fn flow_facts(&self) -> Vec<Flow> {
        let probes = PROBES.iter().enumerate().map(|(group, name)| Flow::probe(*name, group));
        let load = self.flows.iter().map(|name| {
            let up = name.starts_with(Direction::Upload.word());
            // The phase with load in this direction: each direction is loaded once.
            let direction = if up { Direction::Upload } else { Direction::Download };
            let phase =
                self.loaded.iter().position(|loaded| loaded.directions.contains(&direction));
            Flow {
                name: name.clone(),
                kind: FlowKind::Bulk,
                direction: if up { FlowDirection::Up } else { FlowDirection::Down },
                phase: phase.map(|phase| phase + 1),
                group: PROBES.len() + usize::from(up),
                // Unknown: it is the server's or the system's default.
                congestion: Some(String::new()),
            }
        });
        probes.chain(load).collect()
    }
}

/// The facts that are not in the tables: `sojourn.facts.RpmFacts` with the same names.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Facts<'a> {
    pub format: u32,
    pub outcome: Ended,
    /// The reason, as a sentence; empty if complete.
    pub why: String,
    pub notes: Vec<String>,
    /// The time of day at t = 0, ns since 1970.
    pub zero_ns: u64,
    pub duration_ns: u64,
    pub phases: Vec<Phase>,
    pub flows: Vec<Flow>,
    /// Empty: no interface is sampled.
    pub links: Vec<Link>,
    pub server: Server<'a>,
    pub client: Client,
    pub rpm: Decided<'a>,
}

/// The server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Server<'a> {
    pub host: &'a str,
    pub address: String,
    pub port: u16,
}

/// The measuring host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct Client {
    pub version: &'static str,
}

/// The algorithm's parameters, URLs and results.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Decided<'a> {
    pub parameters: &'a Parameters,
    pub small_url: String,
    pub large_url: String,
    pub upload_url: String,
    /// Round trips of a TLS handshake with this server.
    pub tls_round_trips: u32,
    pub loaded: &'a [Loaded],
}

fn kind(directions: &[Direction]) -> &'static str {
    match directions {
        [one] => one.word(),
        _ => "both",
    }
}

/// Returns the totals of a flow without any counts.
fn uncounted(number: usize) -> flows::Row {
    flows::Row {
        flow: FlowId(number as u32),
        sent_packets: None,
        sent_bytes: None,
        received_packets: None,
        delivered_bytes: None,
        lost_packets: None,
        retransmits: None,
        timeouts: None,
        fast_recoveries: None,
        rtt_sum_ns: None,
        rtt_samples: None,
        rtt_min_ns: None,
        rtt_max_ns: None,
        base_rtt_ns: None,
    }
}
