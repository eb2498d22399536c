//! drr: tc-drr(8). One line describes the discipline, its classes and the filters that sort packets
//! into them. Linux has a command for each, and drops packets that no filter matches.
//!
//! Deviations from tc: `classes`, `quanta` and `priomap` are ours, after ets and prio. A class is a
//! pfifo of the device's txqueuelen.

use super::bands::{MOST_BANDS, PRIORITIES, USUAL_LIMIT, check_map, written};
use super::refused;
use crate::error::TcError;
use crate::grammar::{Fields, Grammar, Read, Value, word};
use crate::linux::{Change, Linux};
use crate::numbers::U32;
use crate::record::{Counts, Record, Tree};
use qdisc::{DsField, priority_of};

pub(super) static DRR: Record = Record {
    kind: "drr",
    grammars: &[Grammar {
        kind: "drr",
        words: &[
            word("classes", "NUMBER", Read::Count(1, MOST_BANDS)),
            word("quanta", "BYTES...", Read::Counts(U32)),
            word("priomap", "CLASS...", Read::Counts(MOST_BANDS - 1)),
        ],
        complete,
        ..Grammar::NONE
    }],
    simulated: true,
    translated: Some(simulated),
    linux: Some(Linux { change: Change::Refused, ..Linux::PLAIN }),
    tree: Some(Tree { own: |_| String::new(), parts }),
    least: "drr classes 2",
    counts: Counts::PacketsOfABand,
    usual_limit: Some(USUAL_LIMIT),
    ..Record::NONE
};

/// The number of classes; by default the number of quanta.
fn classes(fields: &Fields) -> u64 {
    fields.count("classes").unwrap_or(fields.numbers("quanta").len() as u64)
}

/// The class of each priority. By default priority n has class n, or the last class.
fn map(fields: &Fields) -> Vec<u64> {
    let last = classes(fields) - 1;
    let mut map = fields.numbers("priomap");
    if map.is_empty() {
        map = (0..PRIORITIES as u64).map(|priority| priority.min(last)).collect();
    }
    map.resize(PRIORITIES, last);
    map
}

/// Refuses what tc and Linux refuse.
fn complete(fields: &mut Fields, _given: &[&'static str]) -> Result<(), TcError> {
    let (classes, quanta) = (classes(fields), fields.numbers("quanta"));
    if classes == 0 {
        return refused(
            "drr: the number of classes is missing".to_owned(),
            "write drr classes 2, or quanta in bytes for each class",
        );
    }
    if quanta.len() as u64 > classes.min(MOST_BANDS) {
        let problem = format!("drr: {} quanta are more than {classes} classes", quanta.len());
        let most = (quanta.len() as u64).min(MOST_BANDS);
        return refused(problem, format!("write classes {most} at most, a quantum for each"));
    }
    if quanta.contains(&0) {
        let hint = "write for each quantum the bytes that its class may send in a turn";
        return refused("drr: a quantum is 0".to_owned(), hint);
    }
    let hint = "write priomap with existing classes, from 0 on";
    check_map("drr", &fields.numbers("priomap"), classes, hint)
}

/// The simulator's parameters.
fn simulated(fields: &Fields) -> Vec<(&'static str, Value)> {
    vec![
        ("classes", Value::Count(classes(fields))),
        ("quanta", written(&fields.numbers("quanta"))),
        ("priomap", written(&map(fields))),
        ("limit", Value::Count(USUAL_LIMIT)),
    ]
}

/// A command for each class, and a filter for each value of the four TOS bits that give a priority.
/// A class without a quantum gets the device's largest packet.
fn parts(fields: &Fields, device: &str, handle: &str) -> Vec<String> {
    let quanta = fields.numbers("quanta");
    let class = |number: u64| format!("{handle}{:x}", number + 1);
    let created = (0..classes(fields)).map(|number| {
        let quantum = quanta.get(number as usize).map(|bytes| format!(" quantum {bytes}"));
        let quantum = quantum.unwrap_or_default();
        format!("class add dev {device} parent {handle} classid {} drr{quantum}", class(number))
    });
    let map = map(fields);
    let sorted = (0..PRIORITIES as u8).map(|bits| {
        let tos = bits << 1;
        let number = map[usize::from(priority_of(DsField(tos)))];
        format!(
            "filter add dev {device} parent {handle} protocol ip prio 1 u32 match ip tos {tos:#04x} 0x1e \
             flowid {}",
            class(number)
        )
    });
    created.chain(sorted).collect()
}
