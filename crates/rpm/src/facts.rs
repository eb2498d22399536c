//! An outcome as sojourn keeps a measurement: tables of integers (-1: none), and facts beside them as JSON.
//!
//! Flows are numbered through: first the kinds of probe (`PROBES`), then the connections that carried load.

use serde_json::{Value, json};

use crate::client::{Outcome, PROBES, Plan, Stopped};
use crate::load::Direction;

/// A table: its name, and its columns by name.
pub type Table = (&'static str, Vec<(&'static str, Vec<i64>)>);

const NONE: i64 = -1;

fn some(value: Option<u64>) -> i64 {
    value.map_or(NONE, |value| value as i64)
}

impl Outcome {
    /// The tables that have rows: probe, flow, flows, engine.
    pub fn tables(&self) -> Vec<Table> {
        vec![self.probe_table(), self.flow_table(), self.totals(), self.engine_table()]
    }

    fn probe_table(&self) -> Table {
        let column = |of: fn(&crate::client::Probe) -> i64| self.probes.iter().map(of).collect();
        let columns = vec![
            ("t_ns", column(|probe| probe.t_ns as i64)),
            ("probe", column(|probe| probe.kind as i64)),
            ("seq", column(|probe| probe.seq as i64)),
            ("rtt_ns", column(|probe| some(probe.rtt_ns))),
            ("forward_ns", vec![NONE; self.probes.len()]),
        ];
        ("probe", columns)
    }

    fn flow_table(&self) -> Table {
        let column = |of: fn(&crate::client::FlowSample) -> Option<u64>| {
            self.samples.iter().map(|sample| some(of(sample))).collect()
        };
        let columns = vec![
            ("t_ns", column(|sample| Some(sample.t_ns))),
            ("flow", column(|sample| Some((PROBES.len() + sample.flow) as u64))),
            ("cwnd_bytes", column(|sample| sample.sender.map(|sender| sender.cwnd_bytes))),
            ("ssthresh_bytes", column(|sample| sample.sender.and_then(|sender| sender.ssthresh_bytes))),
            ("srtt_ns", column(|sample| sample.sender.map(|sender| sender.srtt_ns))),
            ("inflight_bytes", column(|sample| sample.sender.map(|sender| sender.inflight_bytes))),
            ("delivered_bytes", column(|sample| Some(sample.delivered_bytes))),
            ("retransmits", column(|sample| sample.sender.map(|sender| sender.retransmits))),
            ("window_bytes", column(|sample| sample.sender.map(|sender| sender.window_bytes))),
        ];
        ("flow", columns)
    }

    fn totals(&self) -> Table {
        let (kinds, all) = (PROBES.len(), PROBES.len() + self.flows.len());
        let (mut sent, mut received) = (vec![0; all], vec![0; all]);
        let (mut delivered, mut retransmits, mut base) = (vec![0; all], vec![0; all], vec![0; all]);
        for probe in &self.probes {
            sent[probe.kind] += 1;
            if let Some(rtt_ns) = probe.rtt_ns.map(|rtt_ns| rtt_ns as i64) {
                received[probe.kind] += 1;
                base[probe.kind] =
                    if received[probe.kind] == 1 { rtt_ns } else { rtt_ns.min(base[probe.kind]) };
            }
        }
        for sample in &self.samples {
            delivered[kinds + sample.flow] = sample.delivered_bytes as i64;
            retransmits[kinds + sample.flow] = sample.sender.map_or(0, |sender| sender.retransmits as i64);
        }
        let lost = sent.iter().zip(&received).map(|(sent, received)| sent - received).collect();
        let nothing = || vec![0; all];
        let columns = vec![
            ("flow", (0..all as i64).collect()),
            ("sent_packets", sent),
            ("sent_bytes", nothing()),
            ("received_packets", received),
            ("delivered_bytes", delivered),
            ("lost_packets", lost),
            ("retransmits", retransmits),
            ("timeouts", nothing()),
            ("fast_recoveries", nothing()),
            ("rtt_sum_ns", nothing()),
            ("rtt_samples", nothing()),
            ("rtt_min_ns", vec![NONE; all]),
            ("rtt_max_ns", vec![NONE; all]),
            ("base_rtt_ns", base),
        ];
        ("flows", columns)
    }

    fn engine_table(&self) -> Table {
        ("engine", vec![("events", vec![0]), ("packets", vec![0]), ("peak_entries", vec![0])])
    }

    /// What else there is to say, in the shape of a measurement's facts; what is RPM's alone lies under `rpm`.
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
            let phase = self.loaded.iter().position(|loaded| loaded.directions.contains(&direction));
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
