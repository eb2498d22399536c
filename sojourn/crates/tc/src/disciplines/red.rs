//! red: tc-red(8), and the RED of ns-2.35 and ns-3 under its name.
//!
//! The tool tc computes max, min and burst from the given parameters before it configures the
//! kernel; this file does the same.

use super::{LIMIT, above, refused};
use crate::error::TcError;
use crate::grammar::{Fields, Grammar, Read, Value, off, on, time, word};
use crate::linux::{Change, Linux, PINNED, Place, State, Why, Xstats, counter, state};
use crate::numbers::U32;
use crate::record::{Counts, Record, Sized};
use qdisc::Cause;
use values::text::number;

pub(super) static RED: Record = Record {
    kind: "red",
    grammars: &[
        Grammar {
            variant: Some("linux"),
            aliases: &[PINNED],
            defaults: &linux_defaults(true),
            required: &["limit", "avpkt"],
            complete: complete_linux,
            ..LINUX
        },
        // ns-2.35's Queue/RED: thresholds and weight automatic (0), linterm_ 10 (probability 0.1).
        Grammar {
            variant: Some("ns2"),
            defaults: &floyd_defaults("ns2", 50, [0.0, 0.0, 0.0, 0.1], true),
            ..FLOYD
        },
        // ns-3's RedQueueDisc: LInterm 50 (0.02).
        Grammar {
            variant: Some("ns3"),
            defaults: &floyd_defaults("ns3", 25, [5.0, 15.0, 0.002, 0.02], false),
            ..FLOYD
        },
    ],
    simulated: true,
    linux: Some(Linux {
        // TCA_RED_MAX_P: the adaptive mode's current probability, in units of 2^-32.
        read: &[("max_p", Place::Attribute(3))],
        // struct tc_red_xstats. Early and forced drops of the average are one number.
        xstats: Xstats { skipped: 0, names: &["early", "pdrop", "other", "marked"] },
        in_order: true,
        drops: Why::Counted(&[
            counter(Cause::Early, &["early"]),
            counter(Cause::Limit, &["pdrop"]),
        ]),
        marks: Why::Counted(&[counter(Cause::Early, &["marked"])]),
        state: &[State {
            else_field: Some("probability"),
            ..state("probability", &["max_p"], &[], 4_294_967_296.0)
        }],
        change: Change::Whole,
        ..Linux::PLAIN
    }),
    changes: &[
        "limit",
        "min",
        "max",
        "avpkt",
        "burst",
        "probability",
        "bandwidth",
        "adaptive",
        "ecn",
        "harddrop",
        "nodrop",
    ],
    least: "red limit 400000 avpkt 1000",
    counts: Counts::Bytes,
    without_a_rate: |fields| {
        let zero = |name: &str| fields.get(name).real() == Some(0.0);
        let any = ["min", "max", "weight"].into_iter().any(zero);
        any.then(|| {
            TcError::new(
                "red computes min, max or weight from the rate, and this link has none",
                "give min, max and weight, or give the link a rate",
            )
        })
    },
    sized: Some(Sized { grammar: &BARE, none_of: SIZES, waits: "limit", at: recommended }),
    ..Record::NONE
};

const SIZES: &[&str] = &["limit", "min", "max", "avpkt", "burst"];

const LINUX: Grammar = Grammar {
    kind: "red",
    words: &[
        word("limit", "BYTES", Read::Size),
        word("min", "BYTES", Read::Size),
        word("max", "BYTES", Read::Size),
        word("avpkt", "BYTES", Read::Size),
        word("burst", "PACKETS", Read::Count(0, U32)),
        word("probability", "NUMBER", Read::RealAbove(0.0, 1.0)),
        word("bandwidth", "RATE", Read::Rate),
    ],
    flags: &[
        on("adaptive", "adaptive"),
        on("adaptative", "adaptive"),
        on("ecn", "ecn"),
        on("harddrop", "harddrop"),
        on("nodrop", "nodrop"),
    ],
    elsewhere: &[("qevent", "no filter acts on red's drops or marks: leave it out")],
    ..Grammar::NONE
};

/// `red`, `red ecn`: the sizes, and the bandwidth unless given, follow from the link's rate.
static BARE: Grammar = Grammar {
    variant: Some("linux"),
    aliases: &[PINNED],
    defaults: &linux_defaults(false),
    ..LINUX
};

/// A size to compute: 0 if it follows from the others, otherwise unset until the link's rate is
/// known.
const fn size(from_others: bool) -> Value {
    if from_others { Value::Count(0) } else { Value::Unset }
}

const fn linux_defaults(sized: bool) -> [(&'static str, Value); 12] {
    [
        ("variant", Value::word("linux")),
        ("limit", size(sized)),
        ("min", size(sized)),
        ("max", size(sized)),
        ("avpkt", size(sized)),
        ("burst", size(sized)),
        ("probability", Value::Real(0.02)),
        ("bandwidth", if sized { Value::Count(10_000_000) } else { Value::Unset }),
        ("adaptive", Value::Flag(false)),
        ("ecn", Value::Flag(false)),
        ("harddrop", Value::Flag(false)),
        ("nodrop", Value::Flag(false)),
    ]
}

const FLOYD: Grammar = Grammar {
    kind: "red",
    words: &[
        LIMIT,
        word("min", "PACKETS", Read::Real(0.0, U32 as f64)),
        word("max", "PACKETS", Read::Real(0.0, U32 as f64)),
        word("weight", "NUMBER", Read::Real(0.0, 1.0)),
        word("probability", "NUMBER", Read::RealAbove(0.0, 1.0)),
        word("mean_bytes", "BYTES", Read::Count(1, 65535)),
        time("target_delay", "target_delay_ns", Read::PositiveTime),
    ],
    flags: &[
        on("bytes", "byte_mode"),
        off("packets", "byte_mode"),
        on("gentle", "gentle"),
        off("nogentle", "gentle"),
        on("wait", "wait"),
        off("nowait", "wait"),
        on("adaptive", "adaptive"),
        on("adaptative", "adaptive"),
        on("ecn", "ecn"),
        off("noecn", "ecn"),
    ],
    always: &["limit", "min", "max", "weight"],
    complete: complete_floyd,
    ..Grammar::NONE
};

/// min, max, weight, probability.
const fn floyd_defaults(
    variant: &'static str,
    limit: u64,
    [min, max, weight, probability]: [f64; 4],
    byte_mode: bool,
) -> [(&'static str, Value); 13] {
    [
        ("variant", Value::word(variant)),
        ("limit", Value::Count(limit)),
        ("min", Value::Real(min)),
        ("max", Value::Real(max)),
        ("weight", Value::Real(weight)),
        ("probability", Value::Real(probability)),
        ("mean_bytes", Value::Count(500)),
        ("byte_mode", Value::Flag(byte_mode)),
        ("gentle", Value::Flag(true)),
        ("wait", Value::Flag(true)),
        ("adaptive", Value::Flag(false)),
        ("target_delay_ns", Value::Count(5_000_000)),
        ("ecn", Value::Flag(false)),
    ]
}

/// tc-red(8): "1000 is a good value".
const AVPKT: u64 = 1000;
/// The queueing delay above which a RED without sizes drops, ns.
const TOLERATED_NS: u128 = 20_000_000;
/// Below a threshold of about five packets RED drops from ordinary bursts (Floyd and Jacobson 1993
/// use 5).
const LEAST_MIN_PACKETS: u64 = 5;

/// tc-red(8)'s recommendation.
///
/// min: the tolerated delay times the rate, but five packets at least. max: three times min. limit:
/// four times max. burst: (min + min + max) / (3 avpkt). At 20 Mbit/s: 20 ms are 50000 bytes, so
/// min 50000, max 150000, limit 600000, burst 83.
fn recommended(fields: &mut Fields, rate_bps: u64) {
    let tolerated = u128::from(rate_bps) * TOLERATED_NS / 8_000_000_000;
    let tolerated = u64::try_from(tolerated).unwrap_or(U32);
    // Above 143 Gbit/s the limit would exceed tc's 32 bits.
    let min = tolerated.clamp(LEAST_MIN_PACKETS * AVPKT, U32 / 12);
    let sizes =
        [("limit", 12 * min), ("min", min), ("max", 3 * min), ("avpkt", AVPKT), ("burst", 0)];
    for (name, size) in sizes {
        fields.set(name, Value::Count(size));
    }
    if !fields.get("bandwidth").is_set() {
        fields.set("bandwidth", Value::Count(rate_bps));
    }
    complete_linux(fields, &[]).expect("the recommended sizes are consistent");
}

fn complete_linux(fields: &mut Fields, _given: &[&'static str]) -> Result<(), TcError> {
    let size = |name: &str| fields.count(name).unwrap_or(0);
    let sizes = sizes("red", ["limit", "min", "max", "avpkt", "burst"].map(size))?;
    for (name, size) in ["min", "max", "burst"].into_iter().zip(sizes) {
        fields.set(name, Value::Count(size));
    }
    Ok(())
}

/// min, max and burst as tc computes them from limit, min, max, avpkt and burst. 0 stands for an
/// unset size.
pub(super) fn sizes(
    kind: &str,
    [limit, min, max, avpkt, burst]: [u64; 5],
) -> Result<[u64; 3], TcError> {
    let or = |size: u64, other: u64| if size == 0 { other } else { size };
    let max = or(max, or(3 * min, limit / 4));
    let min = or(min, max / 3);
    let burst = or(burst, (2 * min + max) / (3 * avpkt));
    let refused =
        |problem: String, hint: String| Err(TcError::new(format!("{kind}: {problem}"), hint));
    if min >= max {
        let hint = "give a min below max, both in bytes".to_owned();
        return refused(format!("min {min} is not below max {max}"), hint);
    }
    if max > limit {
        let word = if kind == "sfq" { "redflowlimit" } else { "limit" };
        let hint = format!("give a {word} of at least {max} bytes");
        return refused(format!("max {max} is above {word} {limit}"), hint);
    }
    // tc's EWMA constant: the smallest power of two that lets a burst of this many packets pass.
    let thresholds = min as f64 / avpkt as f64;
    let passing = (burst + 1) as f64 - thresholds;
    let least = min.div_ceil(avpkt);
    if passing < 1.0 {
        let hint = format!("give a burst of at least {least} packets");
        return refused(format!("burst {burst} is too small for min {min}"), hint);
    }
    let passes = |log: i32| {
        let weight = libm::ldexp(1.0, -log);
        passing <= (1.0 - libm::pow(1.0 - weight, burst as f64)) / weight
    };
    if !(1..32).any(passes) {
        let hint = format!("give a burst near {least}");
        return refused(format!("no averaging constant lets a burst of {burst} pass"), hint);
    }
    Ok([min, max, burst])
}

/// With `adaptive` unset parameters become automatic (0): thresholds and weight follow from the
/// rate.
fn complete_floyd(fields: &mut Fields, given: &[&'static str]) -> Result<(), TcError> {
    if fields.get("adaptive").is_on() {
        for name in ["min", "max", "weight"] {
            if !given.contains(&name) {
                fields.set(name, Value::Real(0.0));
            }
        }
    }
    let [min, max] = ["min", "max"].map(|name| fields.get(name).real().unwrap_or(0.0));
    if min != 0.0 && max != 0.0 && min >= max {
        let problem = format!("red: min {} is not below max {}", number(min), number(max));
        return refused(problem, "give a min below max, or 0 for automatic ones");
    }
    Ok(())
}

/// choke has the thresholds of RED, in packets.
pub(super) fn complete_choke(fields: &mut Fields, _given: &[&'static str]) -> Result<(), TcError> {
    let hint = "give a min below max, and a limit that is not below either, in packets";
    if let Some((min, max)) = above(fields, "min", "max") {
        return refused(format!("choke: min {min} is not below max {max}"), hint);
    }
    match (fields.count("limit"), fields.count("max")) {
        (Some(limit), Some(max)) if max > limit => {
            refused(format!("choke: max {max} is above the limit, {limit}"), hint)
        }
        _ => Ok(()),
    }
}
