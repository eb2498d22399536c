//! An outcome as sojourn keeps a measurement: tables, and facts beside them as JSON.
//!
//! Flows are numbered through: first the kinds of probe (`PROBES`), then the connections that
//! carried load.

use serde_json::{Value, json};
use tables::{FlowId, Table, engine, flow, flows, probe};

use crate::client::{Outcome, PROBES, Plan, Stopped};
use crate::load::Direction;

impl Outcome {
    /// The tables that have rows: probe, flow, flows, engine.
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
                // A probe has none of TCP's, in every engine.
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

    /// What else there is to say, in the shape of a measurement's facts; what is RPM's alone lies
    /// under `rpm`.
    pub fn facts(&self, plan: &Plan) -> Value {
        let (outcome, why) = match &self.stopped {
            None => ("complete", String::new()),
            Some(Stopped::Asked) => ("interrupted", "it was interrupted".into()),
            Some(Stopped::Failed(problem)) => ("partial", problem.to_string()),
        };
        json!({
            "format": 1,
            "outcome": outcome,
            "why": why,
            "notes": [],
            "zero_ns": self.zero_ns,
            "duration_ns": self.end_ns,
            "phases": self.phases(),
            "flows": self.flow_facts(),
            "links": [],
            "server": {
                "host": self.document.small.host, "address": self.address.ip().to_string(),
                "port": self.address.port(),
            },
            "client": {"version": env!("CARGO_PKG_VERSION")},
            "rpm": {
                "parameters": plan.parameters,
                "small_url": self.document.small.to_string(),
                "large_url": self.document.large.to_string(),
                "upload_url": self.document.upload.to_string(),
                "tls_round_trips": self.tls_round_trips,
                "loaded": self.loaded,
            },
        })
    }

    fn phases(&self) -> Vec<Value> {
        let complete = self.stopped.is_none() || !self.loaded.is_empty();
        let idle = json!({
            "name": "idle", "kind": "idle", "start_ns": 0, "end_ns": self.idle_end_ns, "complete": complete,
        });
        let mut phases = vec![idle];
        for (number, loaded) in self.loaded.iter().enumerate() {
            let complete = self.stopped.is_none() || number + 1 < self.loaded.len();
            let kind = kind(&loaded.directions);
            phases.push(json!({
                "name": kind, "kind": kind, "start_ns": loaded.start_ns, "end_ns": loaded.end_ns,
                "complete": complete,
            }));
        }
        phases
    }

    fn flow_facts(&self) -> Vec<Value> {
        let probes = PROBES.iter().enumerate().map(|(group, name)| {
            json!({
                "name": name, "kind": "ping", "direction": "", "phase": null, "group": group,
                "congestion": null,
            })
        });
        let load = self.flows.iter().map(|name| {
            let up = name.starts_with(Direction::Upload.word());
            // The phase that loads this direction: each is loaded once.
            let direction = if up { Direction::Upload } else { Direction::Download };
            let phase =
                self.loaded.iter().position(|loaded| loaded.directions.contains(&direction));
            json!({
                "name": name, "kind": "bulk", "direction": if up { "up" } else { "down" },
                "phase": phase.map(|phase| phase + 1), "group": PROBES.len() + usize::from(up),
                // TCP's, but of this connection's other end, or the system's: not known.
                "congestion": "",
            })
        });
        probes.chain(load).collect()
    }
}

fn kind(directions: &[Direction]) -> &'static str {
    match directions {
        [one] => one.word(),
        _ => "both",
    }
}

/// Totals of a flow of which nothing was counted.
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
