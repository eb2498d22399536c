//! tc(8)'s words, and all that is known of a queue discipline, in one record each.
//!
//! `Discipline::parse("fq_codel target 5ms")` reads a discipline, `Shaper::parse("htb rate 1mbit")`
//! a token bucket, `Police::parse("rate 10mbit burst 64k")` a policer, `read_layer("pppoe-ptm")` a link layer; each has a canonical `text` that reads
//! back as the same value. The words, their units and their defaults are tc's, so that a text means
//! here what it means in a terminal. `variant X` chooses where the field has several algorithms
//! under one name; disciplines and variants that Linux lacks follow the same style.
//!
//! A `Record` (`disciplines/`, a file each) says what words there are, what the kernel's netlink
//! options and own numbers look like, why it drops and marks, what it holds, and whether the
//! simulator has it (`qdisc::Params`) or Linux alone. Scenarios, the kernel engine, the shaper of
//! live interfaces and the command line read it there.
//!
//! Source: tc(8) and its pages for each discipline; the kernel's net/sched and linux/pkt_sched.h
//! for defaults, names and layouts; ns-2's and ns-3's manuals for theirs. Deviations from tc: a
//! word given twice, a number beyond 32 bits, and a leading 0 (tc reads octal) are refused.
//! `100p`, as tc shows packets, is read. A `red` without sizes, which tc
//! refuses, takes those that tc-red(8) recommends for the rate of its link.

mod discipline;
pub mod disciplines;
mod error;
mod grammar;
pub mod layer;
pub mod linux;
mod lookup;
pub mod numbers;
pub mod police;
mod record;
pub mod shaper;

pub use discipline::{CHILD, Discipline};
pub use disciplines::{RECORDS, record};
pub use error::{Note, Notes, TcError};
pub use grammar::{Fields, Flag, Grammar, Idle, InOrder, Read, Value, Word};
pub use layer::read_layer;
pub use police::Police;
pub use record::{Counts, Record, Sized};
pub use shaper::{Shaper, default_burst, not_a_shaper};
