//! gred: generic RED. One line describes the discipline, its virtual queues and the filters that
//! sort packets into them. Linux has a command for each.
//!
//! Deviations from tc: a list has the numbers of all virtual queues in order, and its last number
//! applies to the rest. `priomap` is ours, after prio. tc's `default` and `setup ... limit` apply
//! to packets that no filter has sorted; here there are none.

use super::bands::{PRIORITIES, check_map, written};
use super::{red, refused};
use crate::error::TcError;
use crate::grammar::{Fields, Grammar, Read, Value, on, word};
use crate::linux::{Linux, Why};
use crate::numbers::write_rate;
use crate::record::{Counts, Record, Tree};
use qdisc::{Cause, DsField, priority_of};

pub(super) static GRED: Record = Record {
    kind: "gred",
    grammars: &[Grammar {
        kind: "gred",
        words: &[
            word("vqs", "NUMBER", Read::Count(1, MOST)),
            word("limit", "BYTES...", Read::Sizes),
            word("min", "BYTES...", Read::Sizes),
            word("max", "BYTES...", Read::Sizes),
            word("avpkt", "BYTES", Read::Size),
            word("burst", "PACKETS...", Read::Counts(u32::MAX as u64)),
            word("probability", "NUMBER...", Read::Reals(0.0, 1.0)),
            word("bandwidth", "RATE", Read::Rate),
            word("prio", "NUMBER...", Read::Counts(MOST)),
            word("priomap", "VQ...", Read::Counts(MOST - 1)),
        ],
        flags: &[on("grio", "grio"), on("ecn", "ecn"), on("harddrop", "harddrop")],
        required: &["limit", "avpkt"],
        complete,
        elsewhere: &[("default", "priomap sends every packet to a virtual queue: leave it out")],
        ..Grammar::NONE
    }],
    simulated: true,
    translated: Some(simulated),
    linux: Some(Linux {
        in_order: true,
        // The kernel reports these two only for each virtual queue.
        drops: Why::Always(Cause::Early),
        marks: Why::Always(Cause::Early),
        ..Linux::PLAIN
    }),
    tree: Some(Tree { own, parts }),
    least: "gred limit 60000 avpkt 1000",
    counts: Counts::Bytes,
    ..Record::NONE
};

/// MAX_DPs.
const MOST: u64 = 16;
/// tc's default.
const PROBABILITY: &str = "0.02";
const BANDWIDTH: u64 = 10_000_000;
/// The default: the drop precedence of an AF codepoint, whose bits are TOS bits. All other
/// priorities have the first virtual queue.
const USUAL_MAP: [u64; PRIORITIES] = [0, 0, 0, 0, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];

const LISTS: [&str; 6] = ["limit", "min", "max", "burst", "probability", "prio"];

fn length(fields: &Fields, word: &str) -> u64 {
    fields.get(word).text().map_or(0, |text| text.split_whitespace().count() as u64)
}

/// The number of virtual queues; by default the length of the longest list.
fn vqs(fields: &Fields) -> u64 {
    let longest = LISTS.iter().map(|word| length(fields, word)).max().unwrap_or(0);
    fields.count("vqs").unwrap_or(longest)
}

/// A list's number for a virtual queue: the last one for those beyond the list.
fn nth(numbers: &[u64], index: usize) -> Option<u64> {
    numbers.get(index).or(numbers.last()).copied()
}

fn map(fields: &Fields) -> Vec<u64> {
    let last = vqs(fields) - 1;
    let mut map = fields.numbers("priomap");
    map.extend(USUAL_MAP.iter().skip(map.len()).map(|queue| (*queue).min(last)));
    map
}

/// Completes each virtual queue with the values that tc computes and those that a short list omits.
/// Refuses what tc refuses.
fn complete(fields: &mut Fields, _given: &[&'static str]) -> Result<(), TcError> {
    let count = vqs(fields);
    if let Some(word) = LISTS.iter().find(|word| length(fields, word) > count) {
        let numbers = length(fields, word);
        let problem = format!("gred: {word} has {numbers} numbers, and there are {count} vqs");
        return refused(problem, format!("write vqs {}, or fewer numbers", numbers.min(MOST)));
    }
    if count > MOST {
        let hint = format!("Linux has {MOST} virtual queues at most");
        return refused(format!("gred: {count} vqs are too many"), hint);
    }
    let hint = "write priomap with existing virtual queues, from 0 on";
    check_map("gred", &fields.numbers("priomap"), count, hint)?;
    let avpkt = fields.count("avpkt").unwrap_or(0);
    let lists = ["limit", "min", "max", "burst"].map(|word| fields.numbers(word));
    let mut columns: [Vec<u64>; 4] = Default::default();
    for index in 0..count as usize {
        let [limit, min, max, burst] =
            [0, 1, 2, 3].map(|list: usize| nth(&lists[list], index).unwrap_or(0));
        let [min, max, burst] =
            red::sizes(&format!("gred vq {index}"), [limit, min, max, avpkt, burst])?;
        for (column, number) in columns.iter_mut().zip([limit, min, max, burst]) {
            column.push(number);
        }
    }
    for (word, column) in ["limit", "min", "max", "burst"].into_iter().zip(&columns) {
        fields.set(word, written(column));
    }
    Ok(())
}

fn probabilities(fields: &Fields) -> Vec<String> {
    let given = fields.get("probability").text().unwrap_or(PROBABILITY);
    let given: Vec<&str> = given.split_whitespace().collect();
    let last = given.last().copied().unwrap_or(PROBABILITY);
    (0..vqs(fields) as usize).map(|i| given.get(i).copied().unwrap_or(last).to_owned()).collect()
}

/// The `prio` of each virtual queue; Linux's default is half of the largest.
fn prios(fields: &Fields) -> Vec<u64> {
    let given = fields.numbers("prio");
    (0..vqs(fields) as usize).map(|index| nth(&given, index).unwrap_or(MOST / 2)).collect()
}

fn bandwidth(fields: &Fields) -> u64 {
    fields.count("bandwidth").unwrap_or(BANDWIDTH)
}

/// The simulator's parameters.
fn simulated(fields: &Fields) -> Vec<(&'static str, Value)> {
    let same = |word: &'static str| (word, fields.get(word).clone());
    let flag = |word: &'static str| (word, Value::Flag(fields.get(word).is_on()));
    vec![
        same("limit"),
        same("min"),
        same("max"),
        same("burst"),
        ("probability", written(&probabilities(fields))),
        ("prio", written(&prios(fields))),
        same("avpkt"),
        ("bandwidth", Value::Count(bandwidth(fields))),
        ("priomap", written(&map(fields))),
        flag("grio"),
        flag("ecn"),
        flag("harddrop"),
    ]
}

/// The given ones of these words, each with a blank before it.
fn flags(fields: &Fields, words: &[&'static str]) -> String {
    words.iter().filter(|word| fields.get(word).is_on()).flat_map(|word| [" ", *word]).collect()
}

/// tc's first command creates the table of virtual queues. ECN is given for each: if the table has
/// it, Linux accepts no command for a virtual queue from tc.
fn own(fields: &Fields) -> String {
    format!("setup vqs {} default 0{}", vqs(fields), flags(fields, &["grio"]))
}

/// A command for each virtual queue. Before the discipline there is a filter of clsact for each
/// value of the four TOS bits that give a priority. gred reads the class that the filter sets
/// (skb->tc_index).
fn parts(fields: &Fields, device: &str, handle: &str) -> Vec<String> {
    let (map, probabilities, prios) = (map(fields), probabilities(fields), prios(fields));
    let number = |word: &str, index: usize| fields.numbers(word)[index];
    let avpkt = fields.count("avpkt").unwrap_or(0);
    let (bandwidth, flags) = (write_rate(bandwidth(fields)), flags(fields, &["ecn", "harddrop"]));
    let queues = (0..vqs(fields) as usize).map(|index| {
        let sizes: String = ["limit", "min", "max", "burst"]
            .into_iter()
            .map(|word| format!(" {word} {}", number(word, index)))
            .collect();
        format!(
            "qdisc change dev {device} handle {handle} gred vq {index} prio {}{sizes} avpkt {avpkt} \
             probability {} bandwidth {bandwidth}{flags}",
            prios[index], probabilities[index],
        )
    });
    let sorted = (0..PRIORITIES as u8).map(|bits| {
        let tos = bits << 1;
        let queue = map[usize::from(priority_of(DsField(tos)))];
        format!(
            "filter add dev {device} egress protocol ip prio 1 u32 match ip tos {tos:#04x} 0x1e \
             flowid 1:{queue:x}"
        )
    });
    queues.chain([format!("qdisc add dev {device} clsact")]).chain(sorted).collect()
}
