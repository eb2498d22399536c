//! dualpi2: tc-dualpi2(8). Linux has it since 6.17. The tc of the guests does not know its words,
//! so the guest's program sets the given ones by netlink. The variants are those of crates/qdisc,
//! dualpi2.
//!
//! Source: tc-dualpi2(8); linux/pkt_sched.h for numbers and layouts; RFC 9332 appendix A for the
//! parameters that follow from max_rtt and typical_rtt.

use super::{LIMIT, microseconds, refused, whole_microseconds};
use crate::error::TcError;
use crate::grammar::{Fields, Grammar, Read, Value, Word, off, on, one, time, word};
use crate::linux::{CauseCounter, Linux, Options, Packed, Place, Why, Xstats, counter, state};
use crate::numbers::U32;
use crate::record::Record;
use qdisc::Cause;

pub(super) static DUALPI2: Record = Record {
    kind: "dualpi2",
    grammars: &[LINUX, RFC, DOCSIS],
    simulated: true,
    translated: Some(simulated),
    linux: Some(Linux {
        since: Some((6, 17)),
        // TCA_DUALPI2_*.
        options: Options::Packed(&[
            Packed { number: 1, bytes: 4, value: |fields| fields.count("limit") },
            Packed { number: 2, bytes: 4, value: |fields| fields.count("memlimit") },
            Packed { number: 3, bytes: 4, value: |fields| whole_microseconds(fields, "target_ns") },
            Packed {
                number: 4,
                bytes: 4,
                value: |fields| whole_microseconds(fields, "tupdate_ns"),
            },
            Packed { number: 5, bytes: 4, value: |fields| gain(fields, "alpha") },
            Packed { number: 6, bytes: 4, value: |fields| gain(fields, "beta") },
            Packed { number: 7, bytes: 4, value: step_packets },
            Packed {
                number: 8,
                bytes: 4,
                value: |fields| whole_microseconds(fields, "step_thresh"),
            },
            Packed { number: 9, bytes: 4, value: |fields| fields.count("min_qlen_step") },
            Packed { number: 10, bytes: 1, value: |fields| fields.count("coupling_factor") },
            Packed {
                number: 11,
                bytes: 1,
                value: |fields| is(fields, "overload", "drop_on_overload"),
            },
            Packed { number: 12, bytes: 1, value: |fields| is(fields, "drops", "drop_enqueue") },
            Packed { number: 13, bytes: 1, value: |fields| fields.count("classic_protection") },
            // TC_DUALPI2_ECN_MASK: ECT(1) and CE, or any but Not-ECT.
            Packed {
                number: 14,
                bytes: 1,
                value: |fields| Some(1 + 2 * is(fields, "classifier", "any_ect")?),
            },
            Packed { number: 15, bytes: 1, value: split_gso },
        ]),
        read: &[("limit", Place::Attribute(1))],
        // struct tc_dualpi2_xstats.
        xstats: Xstats {
            skipped: 0,
            names: &[
                "prob",
                "delay_c",
                "delay_l",
                "packets_in_c",
                "packets_in_l",
                "maxq",
                "ecn_mark",
                "step_marks",
                "credit",
                "memory_used",
                "max_memory_used",
                "memory_limit",
            ],
        },
        // The two queues take turns. The limit drops on arrival, the controller later.
        drops: Why::ByEnd { arrival: Cause::Limit, departure: Cause::Early },
        marks: Why::Counted(&[
            CauseCounter { cause: Cause::Early, plus: &["ecn_mark"], minus: &["step_marks"] },
            counter(Cause::CeThreshold, &["step_marks"]),
        ]),
        state: &[
            state("probability", &["prob"], &[], 4_294_967_296.0),
            // In microseconds.
            state("classic_delay_ns", &["delay_c"], &[], 0.001),
            state("l4s_delay_ns", &["delay_l"], &[], 0.001),
        ],
        ..Linux::PLAIN
    }),
    least: "dualpi2",
    usual_limit: Some(USUAL_LIMIT),
    without_a_rate: |fields| {
        let docsis = fields.get("variant").text() == Some("docsis");
        docsis.then(|| {
            TcError::new(
                "dualpi2 variant docsis computes delays from the rate, and this link has none",
                "give the link a rate, or write dualpi2 variant rfc",
            )
        })
    },
    ..Record::NONE
};

const USUAL_LIMIT: u64 = 10_000;

/// Unset parameters are left to the kernel.
const LINUX: Grammar = Grammar {
    kind: "dualpi2",
    variant: Some("linux"),
    aliases: &["linux7.3"],
    words: &[
        LIMIT,
        word("memlimit", "BYTES", Read::Size),
        COUPLING,
        Word {
            word: "step_thresh",
            field: "step_thresh",
            shows: "TIME|PACKETS",
            read: Read::TimeOrPackets,
        },
        word("min_qlen_step", "PACKETS", Read::Count(0, U32)),
        word("classic_protection", "PERCENT", Read::Count(0, 100)),
        microseconds("max_rtt", "max_rtt_ns"),
        microseconds("typical_rtt", "typical_rtt_ns"),
        microseconds("target", "target_ns"),
        microseconds("tupdate", "tupdate_ns"),
        word("alpha", "NUMBER", GAIN),
        word("beta", "NUMBER", GAIN),
    ],
    flags: &[
        one("overload", "drop_on_overload"),
        one("overload", "overflow"),
        one("drops", "drop_enqueue"),
        one("drops", "drop_dequeue"),
        one("classifier", "l4s_ect"),
        one("classifier", "any_ect"),
        on("split_gso", "split_gso"),
        off("no_split_gso", "split_gso"),
    ],
    defaults: &[
        ("variant", Value::word("linux")),
        ("limit", Value::Unset),
        ("memlimit", Value::Unset),
        ("coupling_factor", Value::Unset),
        ("step_thresh", Value::Unset),
        ("min_qlen_step", Value::Unset),
        ("classic_protection", Value::Unset),
        ("max_rtt_ns", Value::Unset),
        ("typical_rtt_ns", Value::Unset),
        ("target_ns", Value::Unset),
        ("tupdate_ns", Value::Unset),
        ("alpha", Value::Unset),
        ("beta", Value::Unset),
        ("overload", Value::Unset),
        ("drops", Value::Unset),
        ("classifier", Value::Unset),
        ("split_gso", Value::Unset),
    ],
    complete,
    ..Grammar::NONE
};

/// RFC 9332 A.1, for a longest RTT of 100 ms.
const RFC: Grammar = Grammar {
    kind: "dualpi2",
    variant: Some("rfc"),
    aliases: &["rfc9332"],
    words: &[
        LIMIT,
        COUPLING,
        time("min_th", "min_th_ns", Read::Time),
        time("range", "range_ns", Read::PositiveTime),
        word("min_qlen_ramp", "PACKETS", Read::Count(0, U32)),
        word("classic_protection", "PERCENT", Read::Real(0.0, 100.0)),
        TARGET,
        TUPDATE,
        ALPHA,
        BETA,
    ],
    defaults: &[
        ("variant", Value::word("rfc")),
        ("limit", Value::Unset),
        ("coupling_factor", Value::Count(2)),
        ("min_th_ns", Value::Count(800_000)),
        ("range_ns", Value::Count(400_000)),
        ("min_qlen_ramp", Value::Count(1)),
        ("classic_protection", Value::Real(6.25)),
        ("target_ns", Value::Count(15_000_000)),
        ("tupdate_ns", Value::Count(15_000_000)),
        ("alpha", Value::Real(0.15)),
        ("beta", Value::Real(3.0)),
    ],
    ..Grammar::NONE
};

const DOCSIS: Grammar = Grammar {
    kind: "dualpi2",
    variant: Some("docsis"),
    words: &[
        LIMIT,
        COUPLING,
        time("max_th", "max_th_ns", Read::PositiveTime),
        TARGET,
        TUPDATE,
        ALPHA,
        BETA,
    ],
    flags: &[
        on("queue_protection", "queue_protection"),
        off("no_queue_protection", "queue_protection"),
    ],
    defaults: &[
        ("variant", Value::word("docsis")),
        ("limit", Value::Unset),
        ("coupling_factor", Value::Count(2)),
        ("max_th_ns", Value::Count(1_000_000)),
        ("target_ns", Value::Count(10_000_000)),
        ("tupdate_ns", Value::Count(16_000_000)),
        ("alpha", Value::Real(0.25)),
        ("beta", Value::Real(2.5)),
        ("queue_protection", Value::Flag(true)),
    ],
    ..Grammar::NONE
};

const COUPLING: Word = word("coupling_factor", "NUMBER", Read::Count(1, 255));
const TARGET: Word = time("target", "target_ns", Read::Time);
const TUPDATE: Word = time("tupdate", "tupdate_ns", Read::PositiveTime);
const ALPHA: Word = word("alpha", "NUMBER", Read::Real(0.0, MOST_GAIN));
const BETA: Word = word("beta", "NUMBER", Read::Real(0.0, MOST_GAIN));

/// The kernel's defaults for variant linux; gains in 256ths of 1 Hz, 41 and 819.
const USUAL: &[(&str, u64)] = &[
    ("limit", USUAL_LIMIT),
    ("coupling_factor", 2),
    ("min_qlen_step", 0),
    ("classic_protection", 10),
    ("target_ns", 15_000_000),
    ("tupdate_ns", 16_000_000),
];
const USUAL_STEP_NS: u64 = 1_000_000;
const USUAL_ALPHA: u64 = 41;
const USUAL_BETA: u64 = 819;

/// The simulator's parameters.
fn simulated(fields: &Fields) -> Vec<(&'static str, Value)> {
    if fields.get("variant").text() != Some("linux") {
        return fields.iter().map(|(name, value)| (name, value.clone())).collect();
    }
    let usual = |(name, usual): &(&'static str, u64)| {
        (*name, Value::Count(fields.count(name).unwrap_or(*usual)))
    };
    let chosen = |field, word, otherwise| {
        Value::Flag(is(fields, field, word).map_or(otherwise, |chosen| chosen == 1))
    };
    let mut all = vec![("variant", Value::word("linux"))];
    all.extend(USUAL.iter().map(usual));
    all.extend([
        ("memlimit", fields.get("memlimit").clone()),
        ("step_thresh_ns", Value::Count(fields.count("step_thresh").unwrap_or(USUAL_STEP_NS))),
        ("step_thresh_packets", step_packets(fields).map_or(Value::Unset, Value::Count)),
        ("alpha", Value::Count(gain(fields, "alpha").unwrap_or(USUAL_ALPHA))),
        ("beta", Value::Count(gain(fields, "beta").unwrap_or(USUAL_BETA))),
        ("drop_on_overload", chosen("overload", "drop_on_overload", true)),
        ("drop_enqueue", chosen("drops", "drop_enqueue", false)),
        ("any_ect", chosen("classifier", "any_ect", false)),
    ]);
    all
}

/// A gain in Hz. The kernel counts in 256ths, refuses 0, and has 31 bits.
const GAIN: Read = Read::Real(LEAST_GAIN, MOST_GAIN);
const LEAST_GAIN: f64 = 1.0 / 256.0;
const MOST_GAIN: f64 = 8_388_607.0;

fn gain(fields: &Fields, name: &str) -> Option<u64> {
    fields.get(name).real().map(|hz| (256.0 * hz) as u64)
}

/// Whether this word of a choice was given; `None` if no word was.
fn is(fields: &Fields, field: &str, chosen: &str) -> Option<u64> {
    fields.get(field).text().map(|word| u64::from(word == chosen))
}

fn split_gso(fields: &Fields) -> Option<u64> {
    let given = fields.get("split_gso");
    given.is_set().then(|| u64::from(given.is_on()))
}

/// The number of packets of a threshold like `2p`.
fn step_packets(fields: &Fields) -> Option<u64> {
    fields.get("step_thresh").text()?.strip_suffix('p')?.parse().ok()
}

/// max_rtt and typical_rtt replace the parameters that follow from them: RFC 9332 appendix A, with
/// a default typical RTT of a sixth of the longest.
fn complete(fields: &mut Fields, _given: &[&'static str]) -> Result<(), TcError> {
    let (longest, typical) = match (fields.count("max_rtt_ns"), fields.count("typical_rtt_ns")) {
        (None, None) => return Ok(()),
        (Some(longest), None) => (longest, longest / 6),
        (None, Some(typical)) => (typical.saturating_mul(6), typical),
        (Some(longest), Some(typical)) => (longest, typical),
    };
    let (typical, tupdate) =
        (floor_to_microseconds(typical), floor_to_microseconds(typical.min(longest / 3)));
    let longest_s = longest as f64 / 1e9;
    let alpha = 0.1 * (tupdate as f64 / 1e9) / (longest_s * longest_s);
    let beta = 0.3 / longest_s;
    let countable = LEAST_GAIN..=MOST_GAIN;
    if tupdate == 0 || !countable.contains(&alpha) || !countable.contains(&beta) {
        let problem = "dualpi2: these RTTs need gains that the kernel can't represent";
        return refused(problem.to_owned(), "write max_rtt like 100ms, and a typical_rtt below it");
    }
    fields.set("target_ns", Value::Count(typical));
    fields.set("tupdate_ns", Value::Count(tupdate));
    fields.set("alpha", Value::Real(alpha));
    fields.set("beta", Value::Real(beta));
    fields.set("max_rtt_ns", Value::Unset);
    fields.set("typical_rtt_ns", Value::Unset);
    Ok(())
}

/// Rounds down to whole microseconds, tc's unit.
fn floor_to_microseconds(ns: u64) -> u64 {
    ns / 1_000 * 1_000
}
