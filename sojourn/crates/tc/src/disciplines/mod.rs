//! The disciplines, one file each, and the names of disciplines that no engine has.

mod adt;
mod avq;
mod bands;
mod blue;
pub mod cake;
mod choke;
mod cobalt;
mod codel;
mod drr;
mod dualpi2;
mod ets;
mod fifo;
mod fq;
mod fq_codel;
mod fq_pie;
mod fred;
mod gred;
mod hhf;
pub(crate) mod mq;
pub mod own;
mod pfifo_fast;
mod pie;
mod prio;
mod red;
mod sfb;
mod sfq;
mod tbf;

use crate::error::TcError;
use crate::grammar::{Fields, Read, Word, time, word};
use crate::numbers::U32;
use crate::record::Record;
use values::text::quoted;

/// Every discipline, in the order of listings.
pub static RECORDS: &[&Record] = &[
    &fifo::PFIFO,
    &fifo::BFIFO,
    &fifo::PFIFO_HEAD_DROP,
    &pfifo_fast::PFIFO_FAST,
    &codel::CODEL,
    &fq_codel::FQ_CODEL,
    &red::RED,
    &adt::ADT,
    &avq::AVQ,
    &blue::BLUE,
    &cake::CAKE,
    &cake::CAKE_MQ,
    &cobalt::COBALT,
    &choke::CHOKE,
    &drr::DRR,
    &dualpi2::DUALPI2,
    &ets::ETS,
    &fq::FQ,
    &fq_pie::FQ_PIE,
    &fred::FRED,
    &gred::GRED,
    &hhf::HHF,
    &mq::MQ,
    &pie::PIE,
    &prio::PRIO,
    &sfb::SFB,
    &sfq::SFQ,
    &tbf::TBF,
];

/// The discipline of this name.
pub fn record(kind: &str) -> Option<&'static Record> {
    let all = RECORDS.iter().copied().chain([&own::OWN]);
    all.into_iter().find(|record| record.kind == kind)
}

const LIMIT: Word = word("limit", "PACKETS", Read::Count(1, U32));

/// A word with a TIME that the kernel counts in microseconds.
const fn microseconds(word: &'static str, field: &'static str) -> Word {
    time(word, field, Read::Microseconds)
}

fn whole_microseconds(fields: &Fields, field: &str) -> Option<u64> {
    fields.count(field).map(|ns| ns / 1_000)
}

fn flag(fields: &Fields, field: &str) -> Option<u64> {
    Some(u64::from(fields.get(field).is_on()))
}

/// The values of `low` and `high`, if `low` is not below `high`.
fn above(fields: &Fields, low: &str, high: &str) -> Option<(u64, u64)> {
    let (low, high) = (fields.count(low)?, fields.count(high)?);
    (low >= high).then_some((low, high))
}

fn refused(problem: String, hint: impl Into<String>) -> Result<(), TcError> {
    Err(TcError::new(problem, hint))
}

/// Linux's disciplines that need classes, or that shape to a rate.
const CLASSFUL: &[&str] = &["htb", "hfsc", "qfq", "cbs", "multiq", "mqprio", "taprio", "etf"];

/// Linux's disciplines that are not queues, and their equivalents in a scenario.
const NO_QUEUES: &[(&str, &str)] = &[
    ("netem", r#"write the link's own keys: delay = "10 ms", loss = "0.1 %", rate = "10 Mbit/s""#),
    ("blackhole", r#"write loss = "100 %" at the link"#),
    (
        "sqm",
        r#"SQM is a shaper with a discipline: write qdisc = "fq_codel" and shaper = "htb rate 18mbit", or qdisc = "cake bandwidth 18mbit""#,
    ),
    ("plug", r#"write a schedule with a step of "0 bit/s" at the link: an outage"#),
];

/// Disciplines that no engine has, and the nearest that exists.
const NEAREST: &[(&[&str], &str)] = &[
    (&["skbprio", "sfqcodel", "sfq_codel"], "fq_codel"),
    (&["noqueue", "droptail", "fifo", "taildrop"], "pfifo limit 1000"),
    (&["ared", "arma"], "red variant ns2 adaptive"),
    (&["wred", "rio"], "gred"),
    (&["pi", "rem"], "pie"),
    (&["pi2", "dualq", "l4s"], "dualpi2"),
    (&["green"], "blue"),
];

/// The problem and the hint for a known name that is not a discipline here.
pub(crate) fn elsewhere(kind: &str) -> Option<(String, String)> {
    if CLASSFUL.contains(&kind) {
        return Some((
            format!(
                "{} needs classes or shapes to a rate, but a link has one queue and a rate of its own",
                quoted(kind)
            ),
            "write rate, or shaper with htb's words".to_owned(),
        ));
    }
    let lower = kind.to_ascii_lowercase();
    if let Some((_, hint)) = NO_QUEUES.iter().find(|(name, _)| *name == lower) {
        let problem = format!("{} is not a queue discipline of a link", quoted(kind));
        return Some((problem, (*hint).to_owned()));
    }
    let (_, near) = NEAREST.iter().find(|(names, _)| names.contains(&lower.as_str()))?;
    let problem = format!("no engine has a queue discipline {}", quoted(kind));
    Some((problem, format!("nearest: {near}")))
}
