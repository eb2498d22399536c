//! The main numbers of a session: RTTs of each target in each phase, goodput, and the delay added
//! by load. `sojourn import` computes verdict, queue depths and scores from the file of
//! `session_file`.
//!
//! The definitions are those of `sojourn measure`. A probe belongs to the phase of its send time.
//! The added delay is a percentile of the loaded RTT minus the median of the first idle phase, for
//! the first target that answered under load. Percentiles are interpolated linearly between
//! samples.

use live::protocol::Direction;
use live::session::Measured;
use live::session::facts::{Facts, Marks};
use metrics::{Distribution, distribution};
use serde::Serialize;
use tables::facts::{Outcome, Phase};
use tables::probe;

use crate::words::{table, three};

/// A smaller added delay is within the time that hosts take to answer.
const NOTHING_MS: f64 = 1.0;
/// Version of the format of `--json`.
const FORMAT: u32 = 1;

/// All numbers of a session.
#[derive(Debug, Serialize)]
pub struct Numbers {
    format: u32,
    version: &'static str,
    host: String,
    address: String,
    port: u16,
    server_version: String,
    streams: u32,
    congestion: Used,
    outcome: Outcome,
    why: String,
    /// The target of `added_ms`.
    target: Option<String>,
    phases: Vec<PhaseNumbers>,
    /// Changes of ECN and DSCP, from the session; `None`: not requested.
    marks: Option<Marks>,
    notes: Vec<String>,
}

/// Congestion controls.
#[derive(Debug, Serialize)]
struct Used {
    client: String,
    server: String,
}

/// The numbers of a phase.
#[derive(Debug, Serialize)]
struct PhaseNumbers {
    name: String,
    kind: &'static str,
    complete: bool,
    /// `None`: nothing was sent in this direction.
    down_mbps: Option<f64>,
    up_mbps: Option<f64>,
    /// Delay that the load adds to the idle median; `None`: the phase is idle, or a comparison is
    /// impossible.
    added_ms: Option<Added>,
    targets: Vec<TargetNumbers>,
}

#[derive(Debug, Serialize)]
struct Added {
    p50: f64,
    p95: f64,
}

/// The numbers of a target in a phase.
#[derive(Debug, Serialize)]
struct TargetNumbers {
    name: String,
    sent: usize,
    lost: usize,
    /// `None`: no probe was answered.
    rtt_ms: Option<Rtt>,
}

#[derive(Debug, Serialize)]
struct Rtt {
    min: f64,
    p50: f64,
    mean: f64,
    p95: f64,
    max: f64,
}

impl Numbers {
    /// Computes the numbers of a session.
    pub fn of(measured: &Measured) -> Numbers {
        let facts = &measured.facts;
        let probes = measured.tables.iter().find(|table| table.name == probe::SCHEMA.name);
        let rows = probes
            .and_then(|table| probe::Columns::from_table(table.clone()))
            .expect("a session has the table of probes");
        let first = facts.flows.len() - facts.probes.len();
        let mut phases: Vec<PhaseNumbers> = facts
            .phases
            .iter()
            .enumerate()
            .map(|(at, phase)| of_phase(facts, &rows, first, at, phase))
            .collect();
        let loaded = |phase: &&PhaseNumbers| phase.kind != "idle";
        let answers = |at: &usize, phase: &PhaseNumbers| phase.targets[*at].rtt_ms.is_some();
        let target = (0..facts.probes.len())
            .find(|at| phases.iter().filter(loaded).any(|phase| answers(at, phase)))
            .or((!facts.probes.is_empty()).then_some(0));
        let idle = phases.iter().find(|phase| phase.kind == "idle" && phase.complete);
        let base =
            target.zip(idle).and_then(|(at, idle)| Some(idle.targets[at].rtt_ms.as_ref()?.p50));
        if let (Some(at), Some(base)) = (target, base) {
            for phase in phases.iter_mut().filter(|phase| phase.kind != "idle") {
                let rtt = phase.targets[at].rtt_ms.as_ref();
                phase.added_ms = rtt.map(|rtt| Added { p50: rtt.p50 - base, p95: rtt.p95 - base });
            }
        }
        Numbers {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION"),
            host: facts.server.host.clone(),
            address: facts.server.address.clone(),
            port: facts.server.port,
            server_version: facts.server.version.clone(),
            streams: facts.load.streams,
            congestion: Used {
                client: facts.load.congestion.client.clone(),
                server: facts.load.congestion.server.clone(),
            },
            outcome: facts.outcome,
            why: facts.why.clone(),
            target: target.map(|at| facts.probes[at].name.clone()),
            phases,
            marks: facts.marks.clone(),
            notes: facts.notes.clone(),
        }
    }

    /// Returns the numbers as text.
    pub fn in_words(&self) -> String {
        let mut lines = vec![
            format!(
                "{} port {}, {} streams, {} up and {} down; RTTs of {}",
                self.address,
                self.port,
                self.streams,
                self.congestion.client,
                self.congestion.server,
                self.target.as_deref().unwrap_or("nobody")
            ),
            String::new(),
        ];
        let header = [
            "phase",
            "min ms",
            "median ms",
            "p95 ms",
            "max ms",
            "lost %",
            "down Mbit/s",
            "up Mbit/s",
            "adds p95 ms",
        ];
        let mut rows = vec![header.map(String::from).to_vec()];
        rows.extend(self.phases.iter().map(|phase| self.row(phase)));
        lines.push(table(&rows));
        lines.push(String::new());
        lines.push(self.verdict());
        lines.extend(self.marks.iter().map(Marks::in_words));
        lines.extend(self.notes.iter().map(|note| format!("Note: {note}")));
        lines.join("\n")
    }

    fn row(&self, phase: &PhaseNumbers) -> Vec<String> {
        let target = phase.targets.iter().find(|target| Some(&target.name) == self.target.as_ref());
        let rtt = |of: fn(&Rtt) -> f64| {
            three(target.and_then(|target| target.rtt_ms.as_ref()).map_or(f64::NAN, of))
        };
        let lost =
            target.map_or(f64::NAN, |target| 100.0 * target.lost as f64 / target.sent as f64);
        let known = |value: Option<f64>| three(value.unwrap_or(f64::NAN));
        let name =
            if phase.complete { phase.name.clone() } else { format!("{}, cut short", phase.name) };
        vec![
            name,
            rtt(|rtt| rtt.min),
            rtt(|rtt| rtt.p50),
            rtt(|rtt| rtt.p95),
            rtt(|rtt| rtt.max),
            three(lost),
            known(phase.down_mbps),
            known(phase.up_mbps),
            known(phase.added_ms.as_ref().map(|added| added.p95)),
        ]
    }

    fn verdict(&self) -> String {
        let worst = self
            .phases
            .iter()
            .filter_map(|phase| Some((phase, phase.added_ms.as_ref()?)))
            .max_by(|a, b| a.1.p95.total_cmp(&b.1.p95));
        match worst {
            Some((_, added)) if added.p95 < NOTHING_MS => {
                "Every load adds less than 1 ms to the idle median, at the 95th percentile.".into()
            }
            Some((phase, added)) => format!(
                "The phase {} adds the most delay: {} ms at the median, {} ms at the 95th percentile.",
                phase.name,
                three(added.p50),
                three(added.p95)
            ),
            None => {
                "The delay added by load is unknown: there is no loaded phase, or no complete idle phase to compare with."
                    .into()
            }
        }
    }
}

fn of_phase(
    facts: &Facts,
    rows: &probe::Columns,
    first: usize,
    at: usize,
    phase: &Phase,
) -> PhaseNumbers {
    let mbps = |direction: Direction| {
        let goodput = facts.goodput.iter().find(|g| g.phase == at && g.direction == direction);
        goodput.map(|goodput| goodput.bps as f64 / 1e6)
    };
    let targets = facts.probes.iter().enumerate().map(|(number, probe)| {
        let rows_of_probe: Vec<_> = rows
            .rows()
            .filter(|row| row.probe.0 as usize == first + number)
            .filter(|row| (phase.start_ns..phase.end_ns).contains(&row.t_ns))
            .collect();
        let rtts: Vec<f64> =
            rows_of_probe.iter().filter_map(|row| row.rtt_ns).map(|ns| ns as f64 / 1e6).collect();
        TargetNumbers {
            name: probe.name.clone(),
            sent: rows_of_probe.len(),
            lost: rows_of_probe.len() - rtts.len(),
            rtt_ms: (!rtts.is_empty()).then(|| {
                let Distribution { min, mean, p50, p95, max, .. } = distribution(&rtts);
                Rtt { min, p50, mean, p95, max }
            }),
        }
    });
    PhaseNumbers {
        name: phase.name.clone(),
        kind: phase.kind,
        complete: phase.complete,
        down_mbps: mbps(Direction::Down),
        up_mbps: mbps(Direction::Up),
        added_ms: None,
        targets: targets.collect(),
    }
}
