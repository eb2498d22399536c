//! mq: a discipline on each transmit queue of a card, in its own words behind mq's name. How many
//! queues there are, and which of them a flow has, the link says.

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
    // The kernel's own choice, where nobody said another (net.core.default_qdisc).
    child: Some("pfifo_fast"),
    for_each_queue: true,
    ..Record::NONE
};

/// What can't be on a card's queue.
pub(crate) fn check_child(child: &Discipline) -> Result<(), TcError> {
    let record = child.record();
    let kind = record.kind;
    let (why, hint) = if record.for_each_queue {
        ("is itself for a whole card", "write what each queue is to have: mq fq_codel".to_owned())
    } else if kind == own::KIND {
        ("is Python, which stands at a link alone", format!("write {}", child.text()))
    } else if record.tree.is_some() {
        let hint = "write a discipline without classes: mq fq_codel".to_owned();
        ("has classes and filters of its own", hint)
    } else {
        return Ok(());
    };
    Err(TcError::new(format!("mq: {} {why}", quoted(kind)), hint))
}
