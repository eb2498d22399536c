//! cake: tc-cake(8). A scenario's words are passed to Linux unchanged, and unset parameters are
//! left to Linux; `simulated` fills them in for the simulator. `live` is cake as the shaper of an
//! interface, whose rate and line are set elsewhere.

use super::whole_microseconds;
use crate::discipline::Discipline;
use crate::error::TcError;
use crate::grammar::{
    Fields, Grammar, Ignored, InOrder, Read, Value, Word, off, on, one, time, word,
};
use crate::layer::{LAYERS, VLAN, VLAN_BYTES};
use crate::linux::{Attribute, Change, End, Linux, Options, Packed, Why, packed};
use crate::record::Record;
use link::{Cells, Framing};
use qdisc::Cause;

/// Groups of words that exclude each other, and the words behind them.
macro_rules! flags {
    ($($more:expr),*) => {
        flags!(@
            "free": "unlimited";
            "path": "datacentre" "lan" "metro" "regional" "internet" "oceanic" "satellite" "interplanetary";
            "tins": "besteffort" "precedence" "diffserv8" "diffserv4" "diffserv3";
            "isolation": "flowblind" "srchost" "dsthost" "hosts" "flows" "dual-srchost" "dual-dsthost"
                "triple-isolate";
            "wash": "wash" "nowash";
            "gso": "split-gso" "no-split-gso";
            "acks": "ack-filter" "ack-filter-aggressive" "no-ack-filter";
            "shaping": "ingress" "egress";
            "line": "ptm" "atm" "noatm" "raw" "conservative" "ethernet" "ether-vlan" "docsis"
                "pppoa-vcmux" "pppoa-llc" "pppoe-vcmux" "pppoe-llcsnap"
                "bridged-vcmux" "bridged-llcsnap" "ipoa-vcmux" "ipoa-llcsnap" "pppoe-ptm" "bridged-ptm";
            + $($more),*
        )
    };
    (@ $($field:literal: $($word:literal)*;)* + $($more:expr),*) => {
        &[$($(one($field, $word),)*)* $($more),*]
    };
}

/// The words of a line accumulate. Each replaces only the part of the earlier words that it sets.
const LINE: Option<InOrder> = Some(InOrder { field: "line", repeatable: &["ether-vlan"] });

/// In earlier releases each of these was a parameter. A name's cells and its `mpu` took effect
/// last.
const FORMER: &[&str] = &["cells", "layer", "overhead", "mpu"];

const SYNONYMS: &[(&str, &str)] = &[("diffserv", "diffserv4")];

const IDLE: &[Ignored] = &[
    Ignored { word: "nonat", note: None },
    Ignored {
        word: "nat",
        note: Some((
            "nat changes nothing here: no engine translates addresses, so cake sees each host's own",
            "leave it out",
        )),
    },
    // tc reads it and ignores it.
    Ignored { word: "via-ethernet", note: None },
];

const NO_MARKS: &str = "leave it out: no firewall gives packets a mark; write dscp at the flows";

pub(super) static CAKE: Record = Record {
    kind: "cake",
    grammars: &[Grammar {
        kind: "cake",
        words: WORDS,
        flags: flags!(),
        complete: one_way_of_saying,
        synonyms: SYNONYMS,
        in_order: LINE,
        ignored: IDLE,
        elsewhere: &[
            ("autorate-ingress", "no engine estimates the rate: write bandwidth RATE"),
            ("fwmark", NO_MARKS),
        ],
        ..Grammar::NONE
    }],
    simulated: true,
    translated: Some(simulated),
    former: FORMER,
    linux: Some(Linux {
        options: Options::Attributes("TCA_CAKE", ATTRIBUTES),
        end: End::Departure,
        counting,
        // The control law and the limit share a counter. The law causes nearly all drops.
        drops: Why::Always(Cause::Target),
        change: Change::Named(&["line"]),
        ..Linux::PLAIN
    }),
    changes: &["bandwidth", "rtt_ns", "path", "memlimit", "wash", "shaping", "gso"],
    pairs: PAIRS,
    least: "cake",
    usual_limit: Some(10_240),
    shapes: Some("bandwidth"),
    ..Record::NONE
};

/// Linux 7.3's cake_mq: a cake for each queue of a card. `sync_time` is ours; it is fixed in Linux.
pub(crate) static CAKE_MQ: Record = Record {
    kind: "cake_mq",
    grammars: &[Grammar {
        kind: "cake_mq",
        words: MQ_WORDS,
        flags: flags!(),
        complete: one_way_of_saying,
        synonyms: SYNONYMS,
        in_order: LINE,
        ignored: IDLE,
        elsewhere: &[
            ("autorate-ingress", "cake_mq refuses it: write bandwidth RATE"),
            ("fwmark", NO_MARKS),
        ],
        ..Grammar::NONE
    }],
    simulated: true,
    translated: Some(simulated_mq),
    former: FORMER,
    linux: Some(Linux {
        since: Some((7, 3)),
        options: Options::Packed(MQ_ATTRIBUTES),
        end: End::Departure,
        drops: Why::Always(Cause::Target),
        ..Linux::PLAIN
    }),
    least: "cake_mq",
    for_each_queue: true,
    usual_limit: Some(10_240),
    shapes: Some("bandwidth"),
    ..Record::NONE
};

const SYNC_NS: u64 = 200_000;

/// Refuses a cake_mq that Linux can't run.
pub(crate) fn as_linux_has_it(fields: &Fields) -> Result<(), TcError> {
    if fields.count("sync_ns").is_some_and(|ns| ns != SYNC_NS) {
        let problem = "cake_mq: Linux's sync_time is 200us, and can't be set";
        return Err(TcError::new(problem, "leave sync_time out, or run it on the engine sim"));
    }
    Ok(())
}

fn simulated_mq(fields: &Fields) -> Vec<(&'static str, Value)> {
    let mut params = simulated(fields);
    params.push(("sync_ns", Value::Count(fields.count("sync_ns").unwrap_or(SYNC_NS))));
    params
}

/// The attributes by number. For a word for an RTT or a line, the values are those that tc would
/// fill in.
const MQ_ATTRIBUTES: &[Packed] = &[
    Packed {
        number: 2,
        bytes: 8,
        value: |fields| Some(fields.count("bandwidth").unwrap_or(0) / 8),
    },
    packed(3, |fields| number_of(fields, "tins", TINS)),
    packed(4, |fields| Line::of(fields).cells()),
    packed(5, |fields| number_of(fields, "isolation", ISOLATIONS)),
    packed(6, |fields| Line::of(fields).overhead()),
    packed(7, |fields| Some(filled_in(fields, "rtt_ns", &[])? / 1_000)),
    packed(8, |fields| Some((filled_in(fields, "rtt_ns", &[])? / 20_000).max(1))),
    packed(10, |fields| fields.count("memlimit")),
    packed(12, |fields| Line::of(fields).raw()),
    packed(13, |fields| number_of(fields, "wash", &["nowash", "wash"])),
    packed(14, |fields| Line::of(fields).mpu),
    packed(15, |fields| number_of(fields, "shaping", &["egress", "ingress"])),
    packed(16, |fields| number_of(fields, "acks", ACK_FILTERS)),
    packed(17, |fields| number_of(fields, "gso", &["no-split-gso", "split-gso"])),
];

/// A parameter's number in the kernel: the number itself, or the index of a word.
fn filled_in(fields: &Fields, name: &str, words: &[&str]) -> Option<u64> {
    let (_, value) = simulated(fields).into_iter().find(|(each, _)| *each == name)?;
    let number = |name: &str| words.iter().position(|word| *word == name);
    value.count().or_else(|| Some(number(value.text()?)? as u64))
}

const MQ_WORDS: &[Word] =
    &[time("sync_time", "sync_ns", Read::Time), WORDS[0], WORDS[1], WORDS[2], WORDS[3], WORDS[4]];

const WORDS: &[Word] = &[
    word("bandwidth", "RATE", Read::Rate),
    time("rtt", "rtt_ns", Read::PositiveMicroseconds),
    word("memlimit", "BYTES", Read::Size),
    Word { word: "overhead", field: "line", shows: "BYTES", read: Read::Integer(LEAST, MOST) },
    Word { word: "mpu", field: "line", shows: "BYTES", read: Read::Count(0, 256) },
];

/// The least value of tc's `overhead`.
const LEAST: i64 = -64;
const MOST: i64 = 256;

/// cake's words for an RTT, ns.
const PATHS_NS: &[(&str, u64)] = &[
    ("datacentre", 100_000),
    ("lan", 1_000_000),
    ("metro", 10_000_000),
    ("regional", 30_000_000),
    ("internet", 100_000_000),
    ("oceanic", 300_000_000),
    ("satellite", 1_000_000_000),
    ("interplanetary", 1_000_000_000_000),
];
/// The isolation modes, in the order of the kernel's numbers.
const ISOLATIONS: &[&str] = &[
    "flowblind",
    "srchost",
    "dsthost",
    "hosts",
    "flows",
    "dual-srchost",
    "dual-dsthost",
    "triple-isolate",
];
/// The tin modes, in the order of the kernel's numbers.
const TINS: &[&str] = &["diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence"];
const ACK_FILTERS: &[&str] = &["no-ack-filter", "ack-filter", "ack-filter-aggressive"];
const CELLS: &[Cells] = &[Cells::None, Cells::Atm, Cells::Ptm];

const ATTRIBUTES: &[Attribute] = &[
    Attribute { name: "BASE_RATE64", value: |fields| Some(fields.count("bandwidth")? / 8) },
    Attribute { name: "DIFFSERV_MODE", value: |fields| number_of(fields, "tins", TINS) },
    Attribute { name: "FLOW_MODE", value: |fields| number_of(fields, "isolation", ISOLATIONS) },
    Attribute { name: "WASH", value: |fields| number_of(fields, "wash", &["nowash", "wash"]) },
    Attribute { name: "ACK_FILTER", value: |fields| number_of(fields, "acks", ACK_FILTERS) },
    Attribute {
        name: "SPLIT_GSO",
        value: |fields| number_of(fields, "gso", &["no-split-gso", "split-gso"]),
    },
    Attribute {
        name: "INGRESS",
        value: |fields| number_of(fields, "shaping", &["egress", "ingress"]),
    },
    Attribute { name: "RTT", value: |fields| whole_microseconds(fields, "rtt_ns") },
    // A twentieth of the RTT, as in tc.
    Attribute {
        name: "TARGET",
        value: |fields| Some((whole_microseconds(fields, "rtt_ns")? / 20).max(1)),
    },
    Attribute { name: "NAT", value: |fields| fields.get("nat").is_on().then_some(1) },
    Attribute { name: "MEMORY", value: |fields| fields.count("memlimit") },
    Attribute { name: "RAW", value: |fields| Line::of(fields).raw() },
    Attribute { name: "ATM", value: |fields| Line::of(fields).cells() },
    Attribute { name: "OVERHEAD", value: |fields| Line::of(fields).overhead() },
    Attribute { name: "MPU", value: |fields| Line::of(fields).mpu },
];

fn number_of(fields: &Fields, field: &str, words: &[&str]) -> Option<u64> {
    let given = fields.get(field).text()?;
    words.iter().position(|word| *word == given).map(|number| number as u64)
}

/// The words for a rate, and those for an RTT.
const PAIRS: &[(&str, &str)] = &[("bandwidth", "free"), ("rtt_ns", "path")];

fn one_way_of_saying(fields: &mut Fields, _given: &[&'static str]) -> Result<(), TcError> {
    for &(field, other) in PAIRS {
        if fields.get(field).is_set()
            && let Some(given) = fields.get(other).text()
        {
            let word = field.trim_end_matches("_ns");
            let problem = format!("cake: {given} and {word} exclude each other");
            return Err(TcError::new(problem, "keep one of them"));
        }
    }
    Ok(())
}

/// The simulator's parameters. Unset parameters get tc's default, or else Linux's.
fn simulated(fields: &Fields) -> Vec<(&'static str, Value)> {
    let word = |field: &str, usual: &'static str| {
        let given = fields.get(field);
        if given.is_set() { given.clone() } else { Value::word(usual) }
    };
    let chosen = |field: &str, word: &str| Value::Flag(fields.get(field).text() == Some(word));
    let path = fields.get("path").text();
    let path_ns = PATHS_NS.iter().find(|(name, _)| Some(*name) == path).map(|(_, ns)| *ns);
    let rtt_ns = fields.count("rtt_ns").or(path_ns).unwrap_or(100_000_000);
    let line = Line::of(fields);
    vec![
        ("bandwidth", fields.get("bandwidth").clone()),
        ("rtt_ns", Value::Count(rtt_ns)),
        ("memlimit", fields.get("memlimit").clone()),
        ("tins", word("tins", "diffserv3")),
        ("isolation", word("isolation", "triple-isolate")),
        ("wash", chosen("wash", "wash")),
        ("ingress", chosen("shaping", "ingress")),
        ("raw", Value::Flag(line.raw || line.overhead.is_none())),
        ("overhead", Value::Integer(line.overhead.unwrap_or(0))),
        ("mpu", Value::Count(line.mpu.unwrap_or(0))),
        ("acks", word("acks", ACK_FILTERS[0])),
        ("cells", Value::word(cells_word(line.cells.unwrap_or(Cells::None)))),
    ]
}

/// The result of a line's words. Values that no word sets are `None`, and tc does not send them to
/// the kernel.
#[derive(Default)]
struct Line {
    /// `overhead` is added to the packet as queued, not to the IP packet.
    raw: bool,
    overhead: Option<i64>,
    mpu: Option<u64>,
    cells: Option<Cells>,
}

impl Line {
    /// Applies the words one after the other, as tc does: a name adds to the overhead, and
    /// `overhead`, `raw` and `conservative` replace it.
    fn of(fields: &Fields) -> Line {
        let mut line = Line::default();
        let mut words = fields.get("line").text().unwrap_or_default().split(' ');
        while let Some(word) = words.next() {
            let mut number = || words.next().unwrap_or_default().parse::<i64>().unwrap_or(0);
            let added = line.overhead.unwrap_or(0);
            match word {
                "" => {}
                "overhead" => line.overhead = Some(number()),
                "mpu" => line.mpu = Some(number() as u64),
                "noatm" => line.cells = Some(Cells::None),
                "atm" => line.cells = Some(Cells::Atm),
                "ptm" => line.cells = Some(Cells::Ptm),
                "raw" => (line.raw, line.overhead, line.cells) = (true, Some(0), Some(Cells::None)),
                VLAN => line.overhead = Some(added + i64::from(VLAN_BYTES)),
                name => {
                    let (_, layer) = LAYERS
                        .iter()
                        .find(|(each, _)| *each == name)
                        .expect("cake's other names are those of link layers");
                    let Framing { overhead_bytes, minimum_bytes, cells, .. } = *layer;
                    let before = if name == "conservative" { 0 } else { added };
                    line.overhead = Some(before + i64::from(overhead_bytes));
                    if minimum_bytes > 0 {
                        line.mpu = Some(minimum_bytes.into());
                    }
                    if name != "ethernet" {
                        line.cells = Some(cells);
                    }
                }
            }
        }
        line
    }

    /// The values of the kernel's attributes; `None` is not sent.
    fn raw(&self) -> Option<u64> {
        self.raw.then_some(0)
    }

    fn overhead(&self) -> Option<u64> {
        self.overhead.map(|bytes| u64::from(bytes as u32))
    }

    fn cells(&self) -> Option<u64> {
        CELLS.iter().position(|cells| Some(*cells) == self.cells).map(|number| number as u64)
    }
}

/// Linux subtracts the device's header from a packet's size after tc-stab(8), to get the IP packet.
/// With `raw` it subtracts nothing, so the overhead is added to the size after tc-stab(8).
fn counting(fields: &Fields, header: u32) -> Result<Fields, TcError> {
    let line = Line::of(fields);
    let Some(overhead) = line.overhead.filter(|_| !line.raw) else {
        return Ok(fields.clone());
    };
    let beside = overhead - i64::from(header);
    if beside < LEAST {
        let problem = format!(
            "cake: overhead {overhead} is {beside} after a header of {header} is subtracted, and tc's least is {LEAST}"
        );
        let hint = format!("write an overhead of at least {}", LEAST + i64::from(header));
        return Err(TcError::new(problem, hint));
    }
    let cells = cells_word(line.cells.unwrap_or(Cells::None));
    let mpu = line.mpu.map_or_else(String::new, |mpu| format!(" mpu {mpu}"));
    let mut fields = fields.clone();
    fields.set("line", Value::Text(format!("raw {cells} overhead {beside}{mpu}").into()));
    Ok(fields)
}

/// cake's word for cells.
fn cells_word(cells: Cells) -> &'static str {
    match cells {
        Cells::None => "noatm",
        Cells::Atm => "atm",
        Cells::Ptm => "ptm",
    }
}

const RATE_SAID: &str = "--up and --down set the rate";
const LINE_SAID: &str = "--link sets the line";

/// cake's words for a live interface. NAT may be given; the rate and the line are set elsewhere.
static LIVE: Grammar = Grammar {
    kind: "cake",
    words: WORDS,
    flags: flags!(on("nat", "nat"), off("nonat", "nat")),
    complete: one_way_of_saying,
    synonyms: SYNONYMS,
    in_order: LINE,
    elsewhere: &[
        ("bandwidth", RATE_SAID),
        ("free", RATE_SAID),
        ("line", LINE_SAID),
        ("autorate-ingress", "sojourn tune finds the rate"),
    ],
    ..Grammar::NONE
};

/// cake as the shaper of an interface, at a rate in bit/s. Parameters that the words leave out are
/// set here. Without a `layer`, a packet has the size that Linux counts.
///
/// If packets are `arriving`, strangers set their priorities. These are ignored unless the words
/// ask for them, and cleared.
pub fn live(
    words: &str,
    bps: u64,
    layer: Option<Framing>,
    arriving: bool,
) -> Result<Discipline, TcError> {
    let mut cake = Discipline::parse_by(&CAKE, &LIVE, words)?;
    let choice = |one: &'static str, other: &'static str| if arriving { one } else { other };
    let chosen = [
        ("tins", choice("besteffort", "diffserv3")),
        ("isolation", "triple-isolate"),
        ("wash", choice("wash", "nowash")),
        ("acks", "no-ack-filter"),
        ("gso", "split-gso"),
        ("shaping", choice("ingress", "egress")),
        ("path", "internet"),
    ];
    for (field, word) in chosen {
        if !cake.fields().get(field).is_set() {
            cake = cake.with(field, Value::word(word));
        }
    }
    if !cake.fields().get("rtt_ns").is_set() {
        let given = cake.fields().get("path").text();
        let ns = PATHS_NS.iter().find(|(path, _)| Some(*path) == given).map(|(_, ns)| *ns);
        cake = cake.with("rtt_ns", Value::Count(ns.expect("every path has an RTT")));
    }
    // A kernel without conntrack refuses the attribute even if it is 0.
    let nat = match cake.fields().get("nat") {
        Value::Flag(false) => Value::Unset,
        _ => Value::Flag(true),
    };
    cake = cake.with("path", Value::Unset).with("nat", nat).with("bandwidth", Value::Count(bps));
    let line = match layer {
        None => "raw".to_owned(),
        Some(Framing { overhead_bytes, minimum_bytes, cells, .. }) => {
            format!("{} overhead {overhead_bytes} mpu {minimum_bytes}", cells_word(cells))
        }
    };
    Ok(cake.with("line", Value::Text(line.into())))
}
