//! sfq: tc-sfq(8). A scenario's words are passed to Linux unchanged, and unset parameters are left
//! to Linux; `simulated` fills them in for the simulator.
//!
//! `redflowlimit` switches RED on, and tc computes RED's sizes from it. tc refuses RED's other
//! words without it.

use super::red::sizes;
use super::{LIMIT, refused};
use crate::error::TcError;
use crate::grammar::{Fields, Grammar, Read, Value, on, word};
use crate::linux::{CauseCounter, Change, Linux, Options, Place, Why, counter};
use crate::numbers::U32;
use crate::record::Record;
use qdisc::{Cause, LinuxRedParams};
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
            word("redflowlimit", "BYTES", Read::Count(1, U32)),
            word("min", "BYTES", Read::Count(1, U32)),
            word("max", "BYTES", Read::Count(1, U32)),
            word("avpkt", "BYTES", Read::SizeWithin(1, U32)),
            word("burst", "PACKETS", Read::Count(1, U32)),
            word("probability", "NUMBER", Read::RealAbove(0.0, 1.0)),
        ],
        flags: &[on("headdrop", "headdrop"), on("ecn", "ecn"), on("harddrop", "harddrop")],
        complete,
        ..Grammar::NONE
    }],
    simulated: true,
    translated: Some(simulated),
    linux: Some(Linux {
        // struct tc_sfq_qopt_v1: RED's numbers behind headdrop, and space for its statistics.
        options: Options::Words(&[
            |fields| fields.count("quantum"),
            |fields| fields.count("perturb"),
            |fields| fields.count("limit"),
            |fields| fields.count("divisor"),
            |fields| fields.count("flows"),
            |fields| fields.count("depth"),
            |fields| fields.get("headdrop").is_on().then_some(1),
            |fields| fields.count("redflowlimit"),
            |fields| Red::of(fields).map(|red| red.min),
            |fields| Red::of(fields).map(|red| red.max),
            |fields| Red::of(fields).map(Red::logs_and_flags),
            |fields| Red::of(fields).map(|red| red.max_p()),
            |_| None,
            |_| None,
            |_| None,
            |_| None,
            |_| None,
            |_| None,
        ]),
        // struct tc_sfq_qopt_v1 again, with struct tc_sfqred_stats at its end.
        read: &[
            ("limit", Place::Word(2)),
            ("prob_drop", Place::Word(12)),
            ("forced_drop", Place::Word(13)),
        ],
        drops: Why::Counted(&[
            CauseCounter { cause: Cause::Limit, plus: &["drops"], minus: RED_DROPS },
            counter(Cause::Early, RED_DROPS),
        ]),
        marks: Why::Always(Cause::Early),
        change: Change::Refused,
        ..Linux::PLAIN
    }),
    least: "sfq",
    usual_limit: Some(USUAL_LIMIT),
    ..Record::NONE
};

const RED_DROPS: &[&str] = &["prob_drop", "forced_drop"];

/// RED's words, which need `redflowlimit`.
const OF_RED: &[&str] = &["min", "max", "avpkt", "burst", "probability", "ecn", "harddrop"];

/// The longest period: a longer one overflows the kernel's jiffies (INT_MAX / HZ).
const MOST_SECONDS: u64 = ((1 << 31) - 1) / 250;
/// SFQ_MAX_DEPTH, also the default limit.
const USUAL_LIMIT: u64 = 127;
const MOST_DEPTH: u64 = 127;
/// SFQ_DEFAULT_FLOWS.
const USUAL_FLOWS: u64 = 128;
/// SFQ_MAX_FLOWS: 16 bits number the flows and the depths.
const MOST_FLOWS: u64 = 65536 - MOST_DEPTH - 1;
/// SFQ_DEFAULT_HASH_DIVISOR.
const USUAL_DIVISOR: u64 = 1024;
/// Ethernet's largest packet.
const USUAL_QUANTUM: u64 = 1514;
const QUANTA: RangeInclusive<u64> = 256..=(1 << 31) - 1;

/// The sizes as Linux computes them (sfq_change). There are no more slots than buckets. A given
/// limit bounds the slots, and is itself bounded by their capacity.
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
        let flows = if fields.get("divisor").is_set() { flows.min(divisor) } else { flows };
        let depth = fields.count("depth").unwrap_or(MOST_DEPTH).min(MOST_DEPTH);
        let limit = fields.count("limit").map(|limit| limit.min(depth * flows));
        let flows = limit.map_or(flows, |limit| flows.min(limit));
        Sizes { limit: limit.unwrap_or(USUAL_LIMIT), flows, depth, divisor }
    }
}

/// A slot's RED, as tc computes it.
#[derive(Clone, Copy)]
struct Red {
    min: u64,
    max: u64,
    avpkt: u64,
    burst: u64,
    probability: f64,
    ecn: bool,
    harddrop: bool,
}

impl Red {
    /// The simulator's parameters without a RED.
    const NONE: Red = Red {
        min: 0,
        max: 0,
        avpkt: 1000,
        burst: 1,
        probability: 0.02,
        ecn: false,
        harddrop: false,
    };

    fn read(fields: &Fields) -> Result<Option<Red>, TcError> {
        let Some(limit) = fields.count("redflowlimit") else { return Ok(None) };
        let [min, max, burst] = ["min", "max", "burst"].map(|name| fields.count(name).unwrap_or(0));
        // red would compute max from min first.
        let max = if max == 0 { limit / 4 } else { max };
        let avpkt = fields.count("avpkt").unwrap_or(1000);
        let [min, max, burst] = sizes("sfq", [limit, min, max, avpkt, burst])?;
        let probability = fields.get("probability").real().unwrap_or(0.02);
        let [ecn, harddrop] = ["ecn", "harddrop"].map(|name| fields.get(name).is_on());
        Ok(Some(Red { min, max, avpkt, burst, probability, ecn, harddrop }))
    }

    /// tc's four bytes: Wlog, for the weight 2^-Wlog; Plog, where 2^-Plog is the next power of two
    /// below the probability of a byte; Scell_log, for idle times, which sfq does not have; the
    /// flags.
    fn logs_and_flags(self) -> u64 {
        let weight = LinuxRedParams {
            limit: 0,
            min: self.min as u32,
            max: self.max as u32,
            avpkt: self.avpkt as u32,
            burst: self.burst as u32,
            probability: self.probability,
            bandwidth: 0,
            adaptive: false,
            ecn: self.ecn,
            harddrop: self.harddrop,
            nodrop: false,
        };
        let wlog = weight.weight_log().map_or(0, u64::from);
        let a_byte = self.probability / (self.max - self.min) as f64;
        let plog = (0..32).find(|log| libm::ldexp(1.0, -log) < a_byte).unwrap_or(31) as u64;
        let flags = u64::from(self.ecn) | u64::from(self.harddrop) << 1;
        wlog | plog << 8 | flags << 24
    }

    /// max_p in units of 2^-32. 1 does not fit, and tc passes 0.
    fn max_p(self) -> u64 {
        (self.probability * 4_294_967_296.0) as u64 & U32
    }

    /// The RED of parameters that were checked.
    fn of(fields: &Fields) -> Option<Red> {
        Red::read(fields).expect("the parameters were checked")
    }
}

/// Refuses what tc and Linux refuse.
fn complete(fields: &mut Fields, _given: &[&'static str]) -> Result<(), TcError> {
    let sizes = Sizes::of(fields);
    let quantum = fields.count("quantum").unwrap_or(USUAL_QUANTUM);
    if !QUANTA.contains(&quantum) {
        let [least, most] = [QUANTA.start(), QUANTA.end()];
        let problem = format!("sfq: quantum {quantum} is not from {least} to {most} bytes");
        return refused(problem, format!("write quantum {}", quantum.clamp(*least, *most)));
    }
    if !sizes.divisor.is_power_of_two() {
        let problem = format!("sfq: divisor {} is not a power of two", sizes.divisor);
        return refused(problem, format!("write divisor {}", sizes.divisor.next_power_of_two()));
    }
    if Red::read(fields)?.is_none()
        && let Some(word) = OF_RED.iter().find(|word| fields.get(word).is_set())
    {
        let problem = format!("sfq: {word} needs redflowlimit, which switches RED on");
        return refused(problem, "write redflowlimit 100000 too, or leave it out");
    }
    if sizes.limit == 1 {
        let problem = "sfq: this limit, flows and depth leave room for one packet only";
        return refused(problem.to_owned(), "Linux requires room for two packets: write limit 2");
    }
    Ok(())
}

/// The simulator's parameters.
fn simulated(fields: &Fields) -> Vec<(&'static str, Value)> {
    let Sizes { limit, flows, depth, divisor } = Sizes::of(fields);
    let redflowlimit = fields.count("redflowlimit").unwrap_or(0);
    let red = Red::of(fields).unwrap_or(Red::NONE);
    vec![
        ("limit", Value::Count(limit)),
        ("perturb", Value::Count(fields.count("perturb").unwrap_or(0))),
        ("quantum", Value::Count(fields.count("quantum").unwrap_or(USUAL_QUANTUM))),
        ("divisor", Value::Count(divisor)),
        ("flows", Value::Count(flows)),
        ("depth", Value::Count(depth)),
        ("headdrop", Value::Flag(fields.get("headdrop").is_on())),
        ("redflowlimit", Value::Count(redflowlimit)),
        ("min", Value::Count(red.min)),
        ("max", Value::Count(red.max)),
        ("avpkt", Value::Count(red.avpkt)),
        ("burst", Value::Count(red.burst)),
        ("probability", Value::Real(red.probability)),
        ("ecn", Value::Flag(red.ecn)),
        ("harddrop", Value::Flag(red.harddrop)),
    ]
}
