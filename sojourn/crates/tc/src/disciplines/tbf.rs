//! tbf: tc-tbf(8), with the bfifo that tbf creates as its child.
//!
//! `latency` is an alternative to `limit`, which tc computes from it.

use super::refused;
use crate::error::TcError;
use crate::grammar::{Fields, Grammar, Read, Value, time, word};
use crate::linux::{Change, Linux};
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
            word("overhead", "BYTES", Read::Count(0, U16)),
            word("linklayer", "ethernet|atm", Read::LinkLayer),
        ],
        required: &["rate", "burst"],
        complete,
        synonyms: &[("buffer", "burst"), ("maxburst", "burst"), ("minburst", "mtu")],
        shortened: &["limit", "latency", "burst", "peakrate", "overhead", "linklayer"],
        ..Grammar::NONE
    }],
    simulated: true,
    translated: Some(simulated),
    linux: Some(Linux { in_order: true, change: Change::Whole, ..Linux::PLAIN }),
    least: "tbf rate 1mbit burst 5k limit 60k",
    counts: Counts::Bytes,
    shapes: Some("rate"),
    ..Record::NONE
};

/// struct tc_ratespec has 16 bits for `overhead` and `mpu`.
const U16: u64 = u16::MAX as u64;

/// Refuses what tc and Linux refuse, and computes the limit.
fn complete(fields: &mut Fields, _given: &[&'static str]) -> Result<(), TcError> {
    let (rate, burst) = (fields.count("rate").unwrap_or(0), fields.count("burst").unwrap_or(0));
    if let Some(mpu) = fields.count("mpu").filter(|mpu| *mpu > U16) {
        let problem = format!("tbf: an mpu of {mpu} bytes does not fit tc's 16 bits");
        return refused(problem, "write the least that a packet is charged, like mpu 64");
    }
    let peak = fields.count("peakrate");
    let mtu = fields.count("mtu").filter(|mtu| *mtu > 0);
    match (peak, mtu) {
        (Some(_), None) => {
            let problem = "tbf: peakrate needs mtu, the size of its bucket";
            return refused(problem.to_owned(), "write mtu 1514, a packet, or a little more");
        }
        (None, Some(_)) => {
            return refused(
                "tbf: mtu is the size of peakrate's bucket, and there is no peakrate".to_owned(),
                "write peakrate too, or leave out mtu",
            );
        }
        _ => {}
    }
    if let Some(peak) = peak.filter(|peak| peak / 8 <= rate / 8) {
        let problem = format!("tbf: peakrate {peak} bit/s is not above rate {rate} bit/s");
        return refused(problem, "write a peakrate above the rate, or leave it out");
    }
    // tc treats zero as unset.
    let something = |field: &str| fields.count(field).filter(|count| *count > 0);
    match (something("limit").is_some(), something("latency_ns")) {
        (true, Some(_)) => {
            let problem = "tbf: limit and latency exclude each other";
            return refused(problem.to_owned(), "keep one of them");
        }
        (false, None) => {
            let problem = "tbf: the limit of its queue is missing";
            return refused(problem.to_owned(), "write limit in bytes, or latency 50ms");
        }
        (true, None) => {}
        (false, Some(ns)) => {
            let most = |bps: u64, room: u64| (bps / 8) as f64 * ns as f64 / 1e9 + room as f64;
            let peak = peak.zip(mtu).map_or(f64::INFINITY, |(peak, mtu)| most(peak, mtu));
            let limit = most(rate, burst).min(peak);
            if limit > f64::from(u32::MAX) {
                let problem = format!(
                    "tbf: this latency makes the limit {limit:.0} bytes, which is too large"
                );
                return refused(
                    problem,
                    "write a shorter latency: the limit is at most 4294967295 bytes",
                );
            }
            fields.set("limit", Value::Count(limit as u64));
            fields.set("latency_ns", Value::Unset);
        }
    }
    Ok(())
}

/// The simulator's parameters.
fn simulated(fields: &Fields) -> Vec<(&'static str, Value)> {
    let same = ["rate", "burst", "limit", "peakrate"].map(|name| (name, fields.get(name).clone()));
    let or_0 = |name: &'static str| (name, Value::Count(fields.count(name).unwrap_or(0)));
    let linklayer = Value::word(match fields.get("linklayer").text() {
        Some("atm") => "atm",
        _ => "ethernet",
    });
    let others = ["mtu", "mpu", "overhead"].map(or_0);
    same.into_iter().chain(others).chain([("linklayer", linklayer)]).collect()
}
