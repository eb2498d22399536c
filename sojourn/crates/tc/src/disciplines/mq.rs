//! mq: a discipline on each transmit queue of a card, with its words behind mq's name. The link
//! sets the number of queues and the queue of each flow.

use super::own;
use crate::discipline::Discipline;
use crate::error::TcError;
use crate::grammar::Grammar;
use crate::linux::Linux;
use crate::record::Record;
use values::text::quoted;

pub(super) static MQ: Record = Record {
    kind: "mq",
    grammars: &[Grammar { kind: "mq", ..Grammar::NONE }],
    simulated: true,
    linux: Some(Linux::PLAIN),
    least: "mq",
    // The kernel's default (net.core.default_qdisc).
    child: Some("pfifo_fast"),
    for_each_queue: true,
    ..Record::NONE
};

/// Refuses a discipline that can't be on a card's queue.
pub(crate) fn check_child(child: &Discipline) -> Result<(), TcError> {
    let record = child.record();
    let kind = record.kind;
    let (why, hint) = if record.for_each_queue {
        (
            "is itself for a card with several queues",
            "write the discipline of each queue: mq fq_codel".to_owned(),
        )
    } else if kind == own::KIND {
        ("is Python, which runs only directly at a link", format!("write {}", child.text()))
    } else if record.tree.is_some() {
        let hint = "write a discipline without classes: mq fq_codel".to_owned();
        ("has classes and filters of its own", hint)
    } else {
        return Ok(());
    };
    Err(TcError::new(format!("mq: {} {why}", quoted(kind)), hint))
}
