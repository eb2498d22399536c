//! fq: tc-fq(8). A scenario's words are passed to Linux unchanged; `simulated` fills in Linux's
//! defaults for unset parameters. `buckets` and `horizon` have no effect in the simulator: see
//! crates/qdisc, fq.rs. `bands`, `priomap` and `weights` need iproute2 6.7.

use super::bands::{PRIORITIES, check_map, written};
use super::{LIMIT, microseconds, refused};
use crate::error::TcError;
use crate::grammar::{Fields, Grammar, Read, Value, off, on, one, word};
use crate::linux::{Change, Linux, Place, Why, Xstats, counter, state};
use crate::numbers::U32;
use crate::record::Record;
use qdisc::Cause;

pub(super) static FQ: Record = Record {
    kind: "fq",
    grammars: &[Grammar {
        kind: "fq",
        words: &[
            LIMIT,
            word("flow_limit", "PACKETS", Read::Count(1, U32)),
            word("quantum", "BYTES", Read::Count(1, 1 << 20)),
            word("initial_quantum", "BYTES", Read::Count(1, (1 << 31) - 1)),
            word("maxrate", "RATE", Read::Rate),
            word("buckets", "NUMBER", Read::Count(2, 1 << 18)),
            microseconds("refill_delay", "refill_delay_ns"),
            word("low_rate_threshold", "RATE", Read::Rate),
            word("orphan_mask", "NUMBER", Read::Count(0, U32)),
            microseconds("timer_slack", "timer_slack_ns"),
            microseconds("ce_threshold", "ce_threshold_ns"),
            microseconds("horizon", "horizon_ns"),
            word("bands", "NUMBER", Read::Count(BANDS, BANDS)),
            word("priomap", "BAND...", Read::Counts(BANDS - 1)),
            word("weights", "BYTES...", Read::Counts((1 << 31) - 1)),
        ],
        flags: &[
            on("pacing", "pacing"),
            off("nopacing", "pacing"),
            one("beyond", "horizon_cap"),
            one("beyond", "horizon_drop"),
        ],
        complete,
        ..Grammar::NONE
    }],
    simulated: true,
    lacking: |fields| {
        let wide = fields.count("orphan_mask").is_some_and(|mask| mask > MOST_MASK);
        wide.then_some("orphan_mask of more than 16 bits")
    },
    translated: Some(simulated),
    linux: Some(Linux {
        // TCA_FQ_PLIMIT.
        read: &[("limit", Place::Attribute(1))],
        // struct tc_fq_qd_stats: eight numbers of 64 bits come first.
        xstats: Xstats {
            skipped: 64,
            names: &[
                "flows",
                "inactive_flows",
                "throttled_flows",
                "unthrottle_latency_ns",
                "ce_mark",
            ],
        },
        marks: Why::Counted(&[counter(Cause::CeThreshold, &["ce_mark"])]),
        state: &[state("flows", &["flows"], &["inactive_flows"], 1.0)],
        change: Change::Named(&[]),
        ..Linux::PLAIN
    }),
    least: "fq",
    usual_limit: Some(USUAL_LIMIT),
    shapes: Some("maxrate"),
    ..Record::NONE
};

/// FQ_BANDS.
const BANDS: u64 = 3;
/// The default limit of each band, packets.
const USUAL_LIMIT: u64 = 10_000;
/// The largest mask. The simulator has a table of this size.
const MOST_MASK: u64 = (1 << 16) - 1;
/// FQ_MIN_WEIGHT.
const LEAST_WEIGHT: u64 = 1 << 14;
const USUAL_WEIGHTS: [u64; BANDS as usize] = [9 << 16, 3 << 16, 1 << 16];
/// sch_default_prio2band, the map of pfifo_fast.
const USUAL_MAP: [u64; PRIORITIES] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];

/// Refuses what tc and Linux refuse.
fn complete(fields: &mut Fields, _given: &[&'static str]) -> Result<(), TcError> {
    if fields.get("bands").is_set() != fields.get("priomap").is_set() {
        let problem = "fq: tc takes bands and priomap together".to_owned();
        return refused(problem, "write bands 3 priomap and 16 bands");
    }
    let map = fields.numbers("priomap");
    if fields.get("priomap").is_set() && map.len() < PRIORITIES {
        let problem = format!("fq: priomap has {} bands, and there are 16 priorities", map.len());
        return refused(problem, "give 16 bands");
    }
    check_map("fq", &map, BANDS, "write priomap with bands 0 to 2")?;
    let weights = fields.numbers("weights");
    if fields.get("weights").is_set() && weights.len() != BANDS as usize {
        let problem = format!("fq: there are {} weights and 3 bands", weights.len());
        return refused(problem, "give 3 weights, in bytes");
    }
    match weights.iter().find(|weight| **weight < LEAST_WEIGHT) {
        Some(weight) => refused(
            format!(
                "fq: weight {weight} is below {LEAST_WEIGHT} bytes, the least that Linux takes"
            ),
            format!("write {LEAST_WEIGHT} or more"),
        ),
        None => Ok(()),
    }
}

/// The simulator's parameters.
fn simulated(fields: &Fields) -> Vec<(&'static str, Value)> {
    let count = |field: &str, usual: u64| Value::Count(fields.count(field).unwrap_or(usual));
    let numbers = |field: &str, usual: &[u64]| {
        let given = fields.numbers(field);
        written(if given.is_empty() { usual } else { &given })
    };
    vec![
        ("limit", count("limit", USUAL_LIMIT)),
        ("flow_limit", count("flow_limit", 100)),
        ("quantum", fields.get("quantum").clone()),
        ("initial_quantum", fields.get("initial_quantum").clone()),
        ("maxrate", fields.get("maxrate").clone()),
        ("pacing", Value::Flag(*fields.get("pacing") != Value::Flag(false))),
        ("low_rate_threshold", count("low_rate_threshold", 550_000)),
        ("refill_delay_ns", count("refill_delay_ns", 40_000_000)),
        ("orphan_mask", count("orphan_mask", 1023)),
        ("ce_threshold_ns", fields.get("ce_threshold_ns").clone()),
        ("timer_slack_ns", count("timer_slack_ns", 10_000)),
        ("priomap", numbers("priomap", &USUAL_MAP)),
        ("weights", numbers("weights", &USUAL_WEIGHTS)),
    ]
}
