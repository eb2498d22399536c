//! tbf: tc-tbf(8), with the bfifo that tbf makes as its child.
//!
//! `latency` is another way of saying `limit`, which follows from it as tc computes it.

use super::refused;
use crate::error::TcError;
use crate::grammar::{Fields, Grammar, Read, Value, time, word};
use crate::linux::Linux;
use crate::record::{Counts, Record};

pub(super) static TBF: Record = Record {
    kind: "tbf",
    grammars: &[Grammar {
        kind: "tbf",
        words: &[
            word("rate", "RATE", Read::Rate),
            word("burst", "BYTES", Read::Size),
            word("limit", "BYTES", Read::Size),
            time("latency", "latency_ns", Read::Microseconds),
            word("mtu", "BYTES", Read::Size),
            word("peakrate", "RATE", Read::Rate),
            word("mpu", "BYTES", Read::Size),
            word("overhead", "BYTES", Read::Count(0, 1000)),
        ],
        required: &["rate", "burst"],
        complete,
        elsewhere: &[("linklayer", "write link_layer at the link, or shaper with htb's words")],
        ..Grammar::NONE
    }],
    simulated: true,
    lacking: |fields| ["mpu", "overhead"].into_iter().find(|word| fields.get(word).is_said()),
    translated: Some(simulated),
    linux: Some(Linux { in_order: true, ..Linux::PLAIN }),
    least: "tbf rate 1mbit burst 5k limit 60k",
    counts: Counts::Bytes,
    shapes: Some("rate"),
    ..Record::NONE
};

/// What tc and Linux refuse, and the limit.
fn complete(fields: &mut Fields, _given: &[&'static str]) -> Result<(), TcError> {
    let (rate, burst) = (fields.count("rate").unwrap_or(0), fields.count("burst").unwrap_or(0));
    let peak = fields.count("peakrate");
    let mtu = fields.count("mtu").filter(|mtu| *mtu > 0);
    match (peak, mtu) {
        (Some(_), None) => {
            let problem = "tbf: peakrate needs mtu, the room of its bucket";
            return refused(problem.to_owned(), "write mtu 1514, a packet, or a little more");
        }
        (None, Some(_)) => {
            return refused(
                "tbf: mtu is the room of peakrate's bucket, and there is none".to_owned(),
                "write peakrate too, or leave out mtu",
            );
        }
        _ => {}
    }
    if let Some(peak) = peak.filter(|peak| peak / 8 <= rate / 8) {
        let problem = format!("tbf: peakrate {peak} bit/s is not above rate {rate} bit/s");
        return refused(problem, "write a peakrate above the rate, or leave it out");
    }
    match (fields.get("limit").is_said(), fields.count("latency_ns")) {
        (true, Some(_)) => {
            let problem = "tbf: limit and latency say the same thing differently";
            return refused(problem.to_owned(), "keep one of them");
        }
        (false, None) => {
            let problem = "tbf: it is not said how much may wait";
            return refused(problem.to_owned(), "write limit in bytes, or latency 50ms");
        }
        (true, None) => {}
        (false, Some(ns)) => {
            let most = |bps: u64, room: u64| (bps / 8) as f64 * ns as f64 / 1e9 + room as f64;
            let peak = peak.zip(mtu).map_or(f64::INFINITY, |(peak, mtu)| most(peak, mtu));
            let limit = most(rate, burst).min(peak);
            if limit > f64::from(u32::MAX) {
                let problem = format!("tbf: this latency is a limit of {limit:.0} bytes");
                return refused(problem, "write a shorter latency: tc takes up to 4294967295");
            }
            fields.set("limit", Value::Count(limit as u64));
            fields.set("latency_ns", Value::Unsaid);
        }
    }
    Ok(())
}

/// The simulator's parameters.
fn simulated(fields: &Fields) -> Vec<(&'static str, Value)> {
    let same = ["rate", "burst", "limit", "peakrate"].map(|name| (name, fields.get(name).clone()));
    let mtu = Value::Count(fields.count("mtu").unwrap_or(0));
    same.into_iter().chain([("mtu", mtu)]).collect()
}
