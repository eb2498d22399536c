//! sfq: tc-sfq(8). In a scenario its words are passed on to Linux as they are, and what nobody said
//! is Linux's choice; `simulated` fills that in for the simulator.

use super::{LIMIT, refused};
use crate::error::TcError;
use crate::grammar::{Fields, Grammar, Read, Value, on, word};
use crate::linux::{Linux, Options, Place};
use crate::numbers::U32;
use crate::record::Record;
use std::ops::RangeInclusive;

pub(super) static SFQ: Record = Record {
    kind: "sfq",
    grammars: &[Grammar {
        kind: "sfq",
        words: &[
            LIMIT,
            word("perturb", "SECONDS", Read::Count(0, MOST_SECONDS)),
            word("quantum", "BYTES", Read::Size),
            word("divisor", "NUMBER", Read::Count(1, 65536)),
            word("flows", "NUMBER", Read::Count(1, 65536)),
            word("depth", "PACKETS", Read::Count(1, U32)),
            word("redflowlimit", "BYTES", Read::Size),
            word("min", "BYTES", Read::Size),
            word("max", "BYTES", Read::Size),
            word("avpkt", "BYTES", Read::Size),
            word("burst", "PACKETS", Read::Count(1, U32)),
            word("probability", "NUMBER", Read::Above(0.0, 1.0)),
        ],
        flags: &[on("headdrop", "headdrop"), on("ecn", "ecn"), on("harddrop", "harddrop")],
        complete,
        ..Grammar::NONE
    }],
    simulated: true,
    lacking: |fields| fields.get("redflowlimit").is_said().then_some("redflowlimit"),
    translated: Some(simulated),
    linux: Some(Linux {
        // struct tc_sfq_qopt_v1 up to headdrop, and nothing of RED behind it.
        options: Options::Words(&[
            |fields| fields.count("quantum"),
            |fields| fields.count("perturb"),
            |fields| fields.count("limit"),
            |fields| fields.count("divisor"),
            |fields| fields.count("flows"),
            |fields| fields.count("depth"),
            |fields| fields.get("headdrop").is_on().then_some(1),
            |_| None,
            |_| None,
            |_| None,
            |_| None,
            |_| None,
            |_| None,
            |_| None,
            |_| None,
            |_| None,
            |_| None,
            |_| None,
        ]),
        // struct tc_sfq_qopt: quantum, perturb_period, limit.
        read: &[("limit", Place::Word(2))],
        ..Linux::PLAIN
    }),
    least: "sfq",
    usual_limit: Some(USUAL_LIMIT),
    ..Record::NONE
};

/// A period of more overflows the kernel's jiffies (INT_MAX / HZ).
const MOST_SECONDS: u64 = ((1 << 31) - 1) / 250;
/// SFQ_MAX_DEPTH, also the limit where none is said.
const USUAL_LIMIT: u64 = 127;
const MOST_DEPTH: u64 = 127;
/// SFQ_DEFAULT_FLOWS.
const USUAL_FLOWS: u64 = 128;
/// SFQ_MAX_FLOWS: what 16 bits can number beside each depth.
const MOST_FLOWS: u64 = 65536 - MOST_DEPTH - 1;
/// SFQ_DEFAULT_HASH_DIVISOR.
const USUAL_DIVISOR: u64 = 1024;
/// The largest packet of Ethernet.
const USUAL_QUANTUM: u64 = 1514;
const QUANTA: RangeInclusive<u64> = 256..=(1 << 31) - 1;

/// Linux's numbers of those that were said (sfq_change): there are no more slots than buckets, and
/// a limit that was said bounds slots and is bounded by what they can hold.
struct Sizes {
    limit: u64,
    flows: u64,
    depth: u64,
    divisor: u64,
}

impl Sizes {
    fn of(fields: &Fields) -> Sizes {
        let divisor = fields.count("divisor").unwrap_or(USUAL_DIVISOR);
        let flows = fields.count("flows").unwrap_or(USUAL_FLOWS).min(MOST_FLOWS);
        let flows = if fields.get("divisor").is_said() { flows.min(divisor) } else { flows };
        let depth = fields.count("depth").unwrap_or(MOST_DEPTH).min(MOST_DEPTH);
        let limit = fields.count("limit").map(|limit| limit.min(depth * flows));
        let flows = limit.map_or(flows, |limit| flows.min(limit));
        Sizes { limit: limit.unwrap_or(USUAL_LIMIT), flows, depth, divisor }
    }
}

/// What Linux refuses.
fn complete(fields: &mut Fields, _given: &[&'static str]) -> Result<(), TcError> {
    let sizes = Sizes::of(fields);
    let quantum = fields.count("quantum").unwrap_or(USUAL_QUANTUM);
    if !QUANTA.contains(&quantum) {
        let [least, most] = [QUANTA.start(), QUANTA.end()];
        let problem = format!("sfq: quantum {quantum} is not from {least} to {most} bytes");
        return refused(problem, format!("write quantum {}", quantum.clamp(*least, *most)));
    }
    if !sizes.divisor.is_power_of_two() {
        let problem = format!("sfq: divisor {} is no power of two", sizes.divisor);
        return refused(problem, format!("write divisor {}", sizes.divisor.next_power_of_two()));
    }
    if sizes.limit == 1 {
        let problem = "sfq: with this limit, flows and depth it has room for one packet";
        return refused(problem.to_owned(), "Linux wants room for two at least: write limit 2");
    }
    Ok(())
}

/// The simulator's parameters.
fn simulated(fields: &Fields) -> Vec<(&'static str, Value)> {
    let Sizes { limit, flows, depth, divisor } = Sizes::of(fields);
    vec![
        ("limit", Value::Count(limit)),
        ("perturb", Value::Count(fields.count("perturb").unwrap_or(0))),
        ("quantum", Value::Count(fields.count("quantum").unwrap_or(USUAL_QUANTUM))),
        ("divisor", Value::Count(divisor)),
        ("flows", Value::Count(flows)),
        ("depth", Value::Count(depth)),
        ("headdrop", Value::Flag(fields.get("headdrop").is_on())),
    ]
}
