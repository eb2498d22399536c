//! Small scenarios for the tests, and a way to read their tables.
#![allow(dead_code)] // Each test file uses its part.

use link::{Cells, Framing, Loss, RateStep};
use qdisc::{DsField, FifoParams, Params};
use sim::{FlowSpec, LinkSpec, RecordSpec, Scenario, Sim, Traffic};
use tables::{Column, Table};
use tcp::{CongestionKind, TcpParams};

#[path = "../../../tcp/tests/common/linux.rs"]
mod linux;

pub const MS: u64 = 1_000_000;
pub const S: u64 = 1_000_000_000;

/// Linux's endpoint, which sends every ACK at once, without a limit on the receive window.
pub fn reno() -> TcpParams {
    linux::linux().with(|p| {
        p.congestion = CongestionKind::Reno;
        p.mss = 1448;
        p.growth.hystart = false;
        p.acks.delayed_ack_segments = 1;
        p.acks.quick_acks = 0;
        p.buffers.receive_buffer = 1 << 40;
        p.buffers.receive_buffer_max = 1 << 40;
        p.buffers.receive_window_fraction = 1.0;
    })
}

pub fn pfifo(limit: u64) -> Params {
    Params::Pfifo(FifoParams { limit })
}

/// A link of `bps` (0: no limit) and `delay_ns`.
pub fn link(name: &str, bps: u64, delay_ns: u64, qdisc: Params) -> LinkSpec {
    let rate = if bps == 0 { vec![] } else { vec![RateStep { at_ns: 0, bps }] };
    let framing =
        Framing { header_bytes: 0, overhead_bytes: 0, minimum_bytes: 0, cells: Cells::None };
    let loss = Loss::None;
    LinkSpec {
        name: name.into(),
        tail: String::new(),
        head: String::new(),
        rate,
        rate_period_ns: None,
        delay_ns,
        qdisc,
        qdisc_steps: Vec::new(),
        framing,
        loss,
        impairments: link::Impairments::default(),
        ring: None,
        shaper: None,
        police: None,
        replay_window: None,
        queues: None,
        sampled: true,
        asks_at_once: false,
    }
}

/// A flow over link 0 that gets its replies over link 1.
pub fn flow(name: &str, traffic: Traffic) -> FlowSpec {
    FlowSpec {
        name: name.into(),
        group: 0,
        path: vec![0],
        back: vec![1],
        path_extra_ns: 0,
        back_extra_ns: 0,
        start_ns: 0,
        stop_ns: None,
        jitter_ns: 0,
        ds: DsField::BEST_EFFORT,
        tunnel: None,
        hosts: [None, None],
        traffic,
    }
}

pub fn bulk(tcp: TcpParams) -> Traffic {
    Traffic::Bulk { bytes: None, pace: None, tcp }
}

pub fn scenario(duration_ns: u64, links: Vec<LinkSpec>, flows: Vec<FlowSpec>) -> Scenario {
    let record =
        RecordSpec { queue_ns: 100 * MS, flow_ns: 100 * MS, packets: false, headers: false };
    Scenario { duration_ns, warmup_ns: 0, seed: 1, links, flows, record, offloads: false }
}

/// The tables of a finished run.
pub struct Tables(pub Vec<Table>);

pub fn run(scenario: &Scenario) -> Tables {
    let mut sim = Sim::new(scenario);
    assert!(sim.run(u64::MAX));
    Tables(sim.into_tables())
}

impl Tables {
    /// A column as numbers.
    pub fn column(&self, table: &str, column: &str) -> Vec<f64> {
        let table = self.0.iter().find(|t| t.name == table).expect("a table of this name");
        let (_, values) =
            table.columns.iter().find(|c| c.0 == column).expect("a column of this name");
        match values {
            Column::U8(v) => v.iter().map(|&x| f64::from(x)).collect(),
            Column::U32(v) => v.iter().map(|&x| f64::from(x)).collect(),
            Column::U64(v) => v.iter().map(|&x| x as f64).collect(),
            Column::I64(v) => v.iter().map(|&x| x as f64).collect(),
            Column::F64(v) => v.clone(),
        }
    }

    /// The value of a column in the row of a link or flow.
    pub fn of(&self, table: &str, column: &str, row: usize) -> f64 {
        self.column(table, column)[row]
    }
}
