//! Hints for keys that a table does not have.
//!
//! The search order is: other programs' words for keys of the table itself, the exact name in every
//! other table, then similar names, in the table itself first. The tables are those of
//! `model::language`. A hint names a key that is accepted in the place that the hint names.

use crate::capture;
use crate::model::{Flow, PROGRAM_TABLE, SEVERAL, language};
use crate::problem::{Key, Part};
use crate::reader::KeyOf;
use crate::sweep::table_at;
use traffic::TrafficKind;
use values::text::{did_you_mean, nearest};
use values::{Table, Value};

/// Other programs' words, and ours.
const MEANT: &[(&[&str], &str)] = &[
    (&["bandwidth", "speed", "bw", "capacity"], "rate"),
    (&["latency", "propagation"], "delay"),
    (&["aqm", "queue_discipline", "buffer", "discipline", "queue"], "qdisc"),
    (&["cc", "tcp_cc", "congestion_control"], "congestion"),
    (&["type", "traffic"], "kind"),
    (&["base_rtt"], "rtt"),
    (&["tos", "ds", "dsfield", "diffserv", "ipqos", "priority", "prio"], "dscp"),
    (&["overhead", "linklayer", "framing"], "link_layer"),
    (&["tx_ring", "txring", "ring_buffer", "descriptors", "tx"], "ring"),
    (&["reordering"], "reorder"),
    (&["duplication"], "duplicate"),
    (&["remark", "bleach", "bleaching"], "ecn"),
    (&["slots"], "slot"),
    (&["overtaking"], "overtake"),
    (&["byte_queue_limits", "dql"], "bql"),
    (&["numtxqueues", "tx_queues", "txqueues"], "queues"),
    (&["queue_mapping", "xps", "pin"], "pinned"),
    (&["tx_usecs", "coalescing", "interrupts"], "coalesce"),
    (&["htb", "tbf", "shape", "shaping"], "shaper"),
    (&["policer", "policing", "car"], "police"),
    (&["anti_replay", "replay"], "replay_window"),
    (&["vpn", "wireguard", "ipsec"], "tunnel"),
    (&["flows"], "flow"),
    (&["links"], "link"),
    (&["warm_up"], "warmup"),
    (&["time", "length", "stop_time"], "duration"),
    (&["number", "n"], "count"),
    (&["host", "subscriber", "subscribers"], "hosts"),
    (&["upload", "uplink"], "up"),
    (&["download", "downlink"], "down"),
];

/// Keys that a table (a link, a flow) does not have, and hints for them.
const INSTEAD: &[(&str, &[&str], &str)] = &[
    (
        "link",
        &["mtu", "mss", "packet"],
        "packet sizes belong to a [[flow]]: tcp = { mss = 1400 }, or packet = \"1400 B\"",
    ),
    (
        "link",
        &["corrupt", "corruption"],
        "no engine damages packets: a receiver drops a damaged packet, so write loss",
    ),
    (
        "link",
        &["rtt", "base_rtt"],
        "rtt belongs to a [[flow]]: write it there; a link has delay, one way",
    ),
    ("flow", &["delay", "latency"], "delay belongs to a link, one way; a flow has rtt, both ways"),
    (
        "flow",
        &["up", "down", "upload", "download"],
        "up and down are the links of [bottleneck]; a flow has direction = \"up\" or \"down\"",
    ),
];

/// Keys that the loader accepts in a table with other keys: `trace = "lte.csv"` becomes a schedule.
const LOADED: &[(&[&str], &[&str])] = &[
    (&["seeds"], &["seed"]),
    (&["schedule"], &["trace"]),
    (&["delay_schedule"], &["delay_trace"]),
    (&["loss_schedule"], &["loss_trace"]),
    (&["frames"], &["trace"]),
    (&["packets", "repeat"], &capture::KEYS),
];

/// Our word for another program's.
fn our_word(name: &str) -> Option<&'static str> {
    MEANT.iter().find(|(words, _)| words.contains(&name)).map(|(_, key)| *key)
}

fn has(keys: &[KeyOf], name: &str) -> bool {
    keys.iter().any(|key| key.name == name)
}

/// The names that a table with these keys accepts.
fn accepted(keys: &[KeyOf]) -> Vec<&'static str> {
    let loaded = LOADED.iter().filter(|(names, _)| names.iter().all(|name| has(keys, name)));
    keys.iter()
        .map(|key| key.name)
        .chain(loaded.flat_map(|(_, names)| names.iter().copied()))
        .collect()
}

/// The table of the language at a place in the document.
fn table_of(key: &Key) -> &'static str {
    let is = |part: Option<&Part>, name: &str| part == Some(&Part::from(name));
    match key.first() {
        None => "",
        _ if is(key.last(), "tcp") => "tcp",
        first if is(first, "flow") => "flow",
        first if is(first, "record") => "record",
        first if is(first, "program") => "program",
        first if is(first, "programs") => "programs",
        _ => "link",
    }
}

/// The hint for the key `name`, which is not among the `keys` of the table at `key`.
pub(crate) fn hint_for_key(name: &str, key: &Key, keys: &[KeyOf], document: &Table) -> String {
    let lower = name.to_ascii_lowercase();
    let other = our_word(&lower);
    let here = table_of(key);
    let known = accepted(keys);
    let listed: Vec<_> = known.iter().copied().filter(|key| *key != "label").collect();
    let listed = format!("known keys: {}", listed.join(", "));
    let own = |word: &str| known.iter().copied().find(|key| *key == word);
    let guess = own(&lower).or_else(|| own(other?));
    let near = nearest(name, known.iter().copied());
    if here.is_empty() {
        let plain = document
            .get(name)
            .is_none_or(|value| value.table().is_none() && value.list().is_none());
        let far = dotted_in(name, document).or_else(|| match (guess, other, near) {
            (Some(_), ..) => None,
            (None, Some(other), _) => dotted_in(other, document),
            (None, None, Some(_)) => None,
            (None, None, None) if plain => dotted_in(nearest(name, anywhere(document))?, document),
            (None, None, None) => None,
        });
        return match far {
            Some(dotted) => format!("did you mean {dotted}?"),
            None => did_you_mean(guess.or(near), &listed),
        };
    }
    let instead =
        |(table, words, _): &&(&str, &[&str], &str)| *table == here && words.contains(&&*lower);
    if let Some((_, _, hint)) = INSTEAD.iter().find(instead) {
        return (*hint).to_owned();
    }
    if guess.is_some() {
        return did_you_mean(guess, &listed);
    }
    if here == "link" && word_of_the_qdisc(&lower, key, document) {
        return format!(
            "{lower} is a word of the queue discipline: write it into qdisc, as for tc"
        );
    }
    let elsewhere = [Some(&*lower), other].into_iter().flatten();
    if let Some(hint) = elsewhere.filter_map(|word| is_of(word, here, document)).next() {
        return hint;
    }
    if near.is_none()
        && let Some(guess) = nearest(name, anywhere(document))
        && let Some(hint) = is_of(guess, here, document)
    {
        return format!("did you mean {guess}? {hint}");
    }
    did_you_mean(near, &listed)
}

/// The tables of a document of this form, each with the dotted key of its entries.
fn tables(document: &Table) -> Vec<(&'static str, &'static str, Vec<KeyOf>)> {
    let long = document.has("link");
    let dotted = |table: &'static str| match table {
        "" => "",
        "bottleneck" => "bottleneck.",
        "link" => "link.*.",
        "record" => "record.",
        PROGRAM_TABLE => "program.*.",
        "programs" => "programs.",
        "tcp" => "flow.*.tcp.",
        _ => "flow.*.",
    };
    language()
        .into_iter()
        .filter(|(table, _)| *table != if long { "bottleneck" } else { "link" })
        .map(|(table, keys)| (table, dotted(table), keys))
        .collect()
}

/// Every key of every table.
fn anywhere(document: &Table) -> Vec<&'static str> {
    tables(document).iter().flat_map(|(_, _, keys)| accepted(keys)).collect()
}

/// A text with the other tables that have the key; `None`: no table has it.
fn is_of(word: &str, here: &str, document: &Table) -> Option<String> {
    let tables = tables(document);
    let (_, _, whole) = tables.first()?;
    if let Some(key) = whole.iter().find(|key| key.name == word)
        && (key.below.is_some() || word == "sweep")
    {
        let brackets = if SEVERAL.contains(&word) { "[[" } else { "[" };
        let closing = &"]]"[..brackets.len()];
        return Some(format!("{word} is a table of the whole file: {brackets}{word}{closing}"));
    }
    if here == "tcp" && has(&Flow::keys(TrafficKind::Bulk), word) {
        return Some(format!("{word} is a key of the flow itself, not of its tcp"));
    }
    let mut kinds = Vec::new();
    let mut homes = Vec::new();
    for (table, _, keys) in &tables {
        if !accepted(keys).contains(&word) {
            continue;
        }
        match *table {
            "" => homes.push("the whole file: write it above the first table".to_owned()),
            "bottleneck" => homes.push("[bottleneck]".to_owned()),
            "link" => homes.push("[[link]]".to_owned()),
            "record" => homes.push("[record]".to_owned()),
            PROGRAM_TABLE => homes.push(PROGRAM_TABLE.to_owned()),
            "programs" => homes.push("[programs]".to_owned()),
            "tcp" => homes.push(format!("a [[flow]]'s tcp: tcp = {{ {word} = … }}")),
            kind => kinds.push(kind),
        }
    }
    if kinds.len() == TrafficKind::ALL.len() {
        homes.insert(0, "[[flow]]".to_owned());
    } else if !kinds.is_empty() {
        let kinds = kinds.join(", ");
        let kinds = match kinds.rsplit_once(", ") {
            Some((others, last)) => format!("{others} or {last}"),
            None => kinds,
        };
        homes.insert(0, format!("a [[flow]] of kind {kinds}"));
    }
    (!homes.is_empty()).then(|| format!("{word} is a key of {}", homes.join(", and of ")))
}

/// Whether a word is one of the discipline that the link at `key` has.
fn word_of_the_qdisc(word: &str, key: &Key, document: &Table) -> bool {
    let of = |at: &[Part]| table_at(document, at)?.get("qdisc")?.text();
    let words = (1..=key.len()).rev().find_map(|length| of(&key[..length]));
    let kind = words.and_then(|words| words.split_whitespace().next()).unwrap_or("pfifo");
    tc::record(kind).is_some_and(|record| record.grammars.iter().any(|grammar| grammar.has(word)))
}

/// The dotted key that was probably meant by a key of the top table, if a table has it.
fn dotted_in(name: &str, document: &Table) -> Option<String> {
    let tables = tables(document);
    let (_, dotted, _) = tables.iter().skip(1).find(|(_, _, keys)| has(keys, name))?;
    let inner = document.get(name).and_then(Value::table).filter(|table| table.len() == 1);
    Some(match inner.and_then(|table| table.iter().next()) {
        Some((inner, _)) => format!("{dotted}{name}.{inner}"),
        None => format!("{dotted}{name}"),
    })
}

/// The key of a scenario with a [bottleneck] for a word, ours or another program's. The word for a
/// table means its first key: `up` is `bottleneck.up.rate`.
pub fn dotted_key(word: &str) -> Option<String> {
    let lower = word.to_ascii_lowercase();
    let document = Table::default();
    let tables = tables(&document);
    let below = |name: &str| {
        let keys = tables.iter().flat_map(|(_, _, keys)| keys).find(|key| key.name == name)?;
        Some(format!(".{}", keys.below?().first()?.name))
    };
    let known = |name: &str| {
        let of_the_file = has(&tables[0].2, name)
            && !SEVERAL.contains(&name)
            && !["code", "sweep"].contains(&name);
        let dotted = if of_the_file { Some(name.to_owned()) } else { dotted_in(name, &document) };
        dotted.map(|dotted| dotted + &below(name).unwrap_or_default())
    };
    known(&lower).or_else(|| known(our_word(&lower)?))
}
