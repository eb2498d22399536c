//! fq_codel: tc-fq_codel(8). It has the variants of codel, and mac80211.

use super::{LIMIT, flag, whole_microseconds};
use crate::grammar::{Fields, Grammar, Read, Value, Word, off, on, time, word};
use crate::linux::{
    Attribute, CODEL_MARKS, CauseCounter, Change, End, Linux, OF_7_3, Options, PINNED, Why, Xstats,
    counter, state,
};
use crate::numbers::{U32, read_count};
use crate::record::Record;
use qdisc::Cause;

pub(super) static FQ_CODEL: Record = Record {
    kind: "fq_codel",
    grammars: &[
        Grammar {
            variant: Some("linux"),
            aliases: &[PINNED],
            words: &words(LINUX_QUANTUM),
            defaults: &defaults("linux"),
            ..WORDS
        },
        Grammar {
            variant: Some(OF_7_3),
            words: &words(LINUX_QUANTUM),
            defaults: &defaults(OF_7_3),
            ..WORDS
        },
        Grammar {
            variant: Some("linux2012"),
            words: &words(LINUX_QUANTUM),
            defaults: &defaults("linux2012"),
            ..WORDS
        },
        Grammar {
            variant: Some("rfc"),
            aliases: &["rfc8290"],
            words: &words(1),
            defaults: &defaults("rfc"),
            ..WORDS
        },
        Grammar { variant: Some("ns3"), words: &words(1), defaults: &defaults("ns3"), ..WORDS },
        Grammar { variant: Some("mac80211"), words: &words(1), defaults: &MAC80211, ..WORDS },
    ],
    simulated: true,
    linux: Some(Linux {
        options: Options::Attributes(
            "TCA_FQ_CODEL",
            &[
                Attribute { name: "LIMIT", value: |fields| fields.count("limit") },
                Attribute { name: "FLOWS", value: |fields| fields.count("flows") },
                Attribute { name: "QUANTUM", value: |fields| fields.count("quantum") },
                Attribute { name: "MEMORY_LIMIT", value: |fields| fields.count("memory_limit") },
                Attribute { name: "DROP_BATCH_SIZE", value: |fields| fields.count("drop_batch") },
                Attribute {
                    name: "TARGET",
                    value: |fields| whole_microseconds(fields, "target_ns"),
                },
                Attribute {
                    name: "INTERVAL",
                    value: |fields| whole_microseconds(fields, "interval_ns"),
                },
                Attribute {
                    name: "CE_THRESHOLD",
                    value: |fields| whole_microseconds(fields, "ce_threshold_ns"),
                },
                Attribute {
                    name: "CE_THRESHOLD_SELECTOR",
                    value: |fields| selector(fields).map(|(value, _)| value),
                },
                Attribute {
                    name: "CE_THRESHOLD_MASK",
                    value: |fields| selector(fields).map(|(_, mask)| mask),
                },
                Attribute { name: "ECN", value: |fields| flag(fields, "ecn") },
            ],
        ),
        // struct tc_fq_codel_xstats. Its first word says that these are the discipline's
        // statistics, not a class's.
        xstats: Xstats {
            skipped: 4,
            names: &[
                "maxpacket",
                "drop_overlimit",
                "ecn_mark",
                "new_flow_count",
                "new_flows_len",
                "old_flows_len",
                "ce_mark",
                "memory_usage",
                "drop_overmemory",
            ],
        },
        end: End::Departure,
        drops: Why::Counted(&[
            CauseCounter { cause: Cause::Target, plus: &["drops"], minus: &["drop_overlimit"] },
            CauseCounter {
                cause: Cause::Limit,
                plus: &["drop_overlimit"],
                minus: &["drop_overmemory"],
            },
            counter(Cause::Overmemory, &["drop_overmemory"]),
        ]),
        marks: Why::Counted(CODEL_MARKS),
        state: &[state("flows", &["new_flows_len", "old_flows_len"], &[], 1.0)],
        change: Change::Named(&["flows"]),
        ..Linux::PLAIN
    }),
    changes: &[
        "limit",
        "memory_limit",
        "target_ns",
        "interval_ns",
        "quantum",
        "ecn",
        "ce_threshold_ns",
        "ce_threshold_selector",
        "drop_batch",
    ],
    least: "fq_codel",
    ..Record::NONE
};

/// The kernel silently raises a smaller quantum to this.
const LINUX_QUANTUM: u64 = 256;

const WORDS: Grammar =
    Grammar { kind: "fq_codel", flags: &[on("ecn", "ecn"), off("noecn", "ecn")], ..Grammar::NONE };

/// The value and the mask of ce_threshold_selector.
fn selector(fields: &Fields) -> Option<(u64, u64)> {
    let (value, mask) = fields.get("ce_threshold_selector").text()?.split_once('/')?;
    let byte = |text: &str| read_count(text, 0, 255).ok();
    Some((byte(value)?, byte(mask)?))
}

const fn words(least_quantum: u64) -> [Word; 9] {
    [
        LIMIT,
        word("flows", "QUEUES", Read::Count(1, 65536)),
        word("memory_limit", "BYTES", Read::Size),
        time("target", "target_ns", Read::Time),
        time("interval", "interval_ns", Read::PositiveTime),
        word("quantum", "BYTES", Read::Count(least_quantum, 1 << 20)),
        time("ce_threshold", "ce_threshold_ns", Read::Time),
        word("ce_threshold_selector", "VALUE/MASK", Read::Selector),
        word("drop_batch", "PACKETS", Read::Count(1, U32)),
    ]
}

const fn defaults(variant: &'static str) -> [(&'static str, Value); 11] {
    [
        ("variant", Value::word(variant)),
        ("limit", Value::Count(10240)),
        ("flows", Value::Count(1024)),
        ("memory_limit", Value::Count(32 << 20)),
        ("target_ns", Value::Count(5_000_000)),
        ("interval_ns", Value::Count(100_000_000)),
        ("quantum", Value::Count(1514)),
        ("ecn", Value::Flag(true)),
        ("ce_threshold_ns", Value::Unset),
        ("ce_threshold_selector", Value::Unset),
        ("drop_batch", Value::Count(64)),
    ]
}

/// Linux's values for a radio of 802.11ac or later; for an older one the memory limit is 4 MiB.
const MAC80211: [(&str, Value); 11] = [
    ("variant", Value::word("mac80211")),
    ("limit", Value::Count(8192)),
    ("flows", Value::Count(4096)),
    ("memory_limit", Value::Count(16 << 20)),
    ("target_ns", Value::Count(20_000_000)),
    ("interval_ns", Value::Count(100_000_000)),
    ("quantum", Value::Count(300)),
    ("ecn", Value::Flag(true)),
    ("ce_threshold_ns", Value::Unset),
    ("ce_threshold_selector", Value::Unset),
    ("drop_batch", Value::Count(32)),
];
