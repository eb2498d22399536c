//! tc(8)'s syntax, and one record for each queue discipline with all that sojourn knows of it.
//!
//! `Discipline::parse("fq_codel target 5ms")` reads a discipline, `Shaper::parse("htb rate 1mbit")`
//! a token bucket, `Police::parse("rate 10mbit burst 64k")` a policer, and
//! `read_layer("pppoe-ptm")` a link layer. Each has a canonical `text` that reads back as the same
//! value. The words, their units and their defaults are tc's, so a text means the same here as in a
//! terminal. `variant X` selects one of several algorithms of the same name. Disciplines and
//! variants that Linux lacks follow the same style.
//!
//! A `Record` (`disciplines/`, one file each) lists a discipline's words, the kernel's netlink
//! options and statistics, the causes of its drops and marks, and its limit. It also says whether
//! the simulator has it (`qdisc::Params`) or only Linux. Scenarios, the kernel engine, the shaper
//! of live interfaces and the command line read the record.
//!
//! Source: tc(8) and its pages for each discipline; the kernel's net/sched and linux/pkt_sched.h
//! for defaults, names and layouts; ns-2's and ns-3's manuals for theirs. Deviations from tc: a
//! word given twice, a number beyond 32 bits, and a leading 0 (tc reads octal) are refused. `100p`,
//! as tc prints packets, is read. A `red` without sizes, which tc refuses, takes those that
//! tc-red(8) recommends for the rate of its link.
//!
//! # Examples
//!
//! ```rust
//! use tc::Discipline;
//!
//! let discipline = Discipline::parse("fq_codel target 5ms ecn limit 100")?;
//! assert_eq!(discipline.kind(), "fq_codel");
//! assert_eq!(discipline.text(), "fq_codel limit 100");
//! let error = Discipline::parse("fq_codel targer 5ms").expect_err("a typing error");
//! assert!(error.hint.starts_with("did you mean target?"));
//! # Ok::<(), tc::TcError>(())
//! ```

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
pub use grammar::{Fields, Flag, Grammar, Ignored, InOrder, Read, Value, Word};
pub use layer::read_layer;
pub use linux::Change;
pub use police::Police;
pub use record::{Counts, Record, Sized};
pub use shaper::{Shaper, default_burst, not_a_shaper};
