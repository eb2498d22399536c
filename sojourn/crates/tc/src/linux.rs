//! How a discipline of Linux gets its parameters by netlink, and how to read its statistics.
//!
//! Source: linux/pkt_sched.h for names, numbers and layouts.

use crate::error::TcError;
use crate::grammar::Fields;
use qdisc::Cause;

/// The kernel that `variant linux` of the simulator's disciplines reproduces: Debian 12's, which
/// the built guest runs.
pub const RELEASE: &str = "6.12.117";
/// The name that fixes today's meaning of `variant linux` for later releases.
pub const PINNED: &str = "linux6.12";

/// Ethernet's header, bytes, which Linux counts in addition to the IP packet.
pub const HEADER: u32 = 14;

/// The variant of Linux 7.3, if its algorithm differs.
pub const OF_7_3: &str = "linux7.3";

/// A discipline in the Linux kernel.
#[derive(Clone, Copy)]
pub struct Linux {
    /// The release of Linux that introduced it, if the usual guest's is older.
    pub since: Option<(u32, u32)>,
    /// Its options, if sojourn creates it as a part of a shaper.
    pub options: Options,
    /// The options that sojourn reads back from the kernel: (name, place).
    pub read: &'static [(&'static str, Place)],
    /// Its statistics (TCA_STATS_APP).
    pub xstats: Xstats,
    /// Whether it sends packets in the order of their arrival.
    pub in_order: bool,
    /// The end of the queue at which it drops.
    pub end: End,
    /// The cause of its drops.
    pub drops: Why,
    /// The cause of its marks.
    pub marks: Why,
    /// Its state at each sample, for time lines.
    pub state: &'static [State],
    /// The limit is the device's `txqueuelen`; tc has no word for it.
    pub limit_is_device_s: bool,
    /// The parameters that tc's `change` sets while its queue stands.
    pub change: Change,
    /// Its parameters if tc-stab(8) makes it count a header of this many bytes instead of the
    /// device's.
    pub counting: fn(&Fields, u32) -> Result<Fields, TcError>,
}

/// The effect of `tc qdisc change` on a discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The kernel refuses it: the discipline has no such operation.
    Refused,
    /// A scenario can't ask for it: the discipline has parts of its own, or tc has no words for it.
    NotHere,
    /// It sets all parameters: those that the words leave out get their defaults.
    Whole,
    /// It sets the parameters that the words name. Those listed here can't be changed.
    Named(&'static [&'static str]),
}

/// The options in a netlink message.
#[derive(Clone, Copy)]
pub enum Options {
    /// sojourn sets no options.
    None,
    /// `struct tc_fifo_qopt`: only the limit.
    Limit,
    /// Attributes by name: the common prefix (`TCA_CODEL`) and each attribute.
    Attributes(&'static str, &'static [Attribute]),
    /// Attributes by number.
    Packed(&'static [Packed]),
    /// The 32-bit words of a struct, in order; an unset word is 0.
    Words(&'static [fn(&Fields) -> Option<u64>]),
}

/// An attribute by its number.
#[derive(Clone, Copy)]
pub struct Packed {
    /// The number in linux/pkt_sched.h.
    pub number: u16,
    /// The size of the value: 1, 4 or 8 bytes.
    pub bytes: usize,
    /// The value, from the parameters; `None` if unset.
    pub value: fn(&Fields) -> Option<u64>,
}

/// An attribute of 32 bits.
pub(crate) const fn packed(number: u16, value: fn(&Fields) -> Option<u64>) -> Packed {
    Packed { number, bytes: 4, value }
}

/// An attribute of an options message.
#[derive(Clone, Copy)]
pub struct Attribute {
    /// The name, such as `LIMIT` of `TCA_CODEL_LIMIT`.
    pub name: &'static str,
    /// The value, from the parameters; `None` if unset.
    pub value: fn(&Fields) -> Option<u64>,
}

/// The place of a 32-bit number in the options that the kernel returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The attribute with this number.
    Attribute(u16),
    /// The word of a struct with this index.
    Word(usize),
}

/// The layout of a discipline's statistics: words of 32 bits, the low half of a 64-bit number
/// first.
#[derive(Clone, Copy, Debug)]
pub struct Xstats {
    /// Bytes to skip at the beginning.
    pub skipped: usize,
    /// The names of the words after that.
    pub names: &'static [&'static str],
}

/// The end at which a discipline drops packets, for an observer outside the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It drops packets as they arrive.
    Arrival,
    /// It drops packets as they leave, and on arrival if the limit is reached.
    Departure,
    /// It drops the oldest packet when one arrives.
    Head,
}

impl End {
    /// The name in crates/guest, plan.rs.
    pub fn word(self) -> &'static str {
        match self {
            End::Arrival => "arrival",
            End::Departure => "departure",
            End::Head => "head",
        }
    }
}

/// The cause of a discipline's drops or marks.
#[derive(Clone, Copy, Debug)]
pub enum Why {
    /// There is one cause.
    Always(Cause),
    /// There is one cause on arrival and another one later.
    ByEnd {
        /// The cause on arrival.
        arrival: Cause,
        /// The cause after the packet has waited.
        departure: Cause,
    },
    /// The discipline's counters show the cause.
    Counted(&'static [CauseCounter]),
}

impl Why {
    /// The counters, if they show the cause. Of those that grew, the one that grew most is the
    /// cause.
    pub fn counters(&self) -> &'static [CauseCounter] {
        if let Why::Counted(counters) = self { counters } else { &[] }
    }
}

/// A count of packets with a cause: a sum of numbers, less other numbers. Every discipline has the
/// number `drops`.
#[derive(Clone, Copy, Debug)]
pub struct CauseCounter {
    /// The cause.
    pub cause: Cause,
    /// The numbers to add.
    pub plus: &'static [&'static str],
    /// The numbers to subtract.
    pub minus: &'static [&'static str],
}

/// A cause with one counter.
pub(crate) const fn counter(cause: Cause, plus: &'static [&'static str]) -> CauseCounter {
    CauseCounter { cause, plus, minus: &[] }
}

/// A column of the time line: a sum of numbers, less other numbers, divided by `whole`.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// The column's name in the table `queue`.
    pub column: &'static str,
    /// The numbers to add.
    pub plus: &'static [&'static str],
    /// The numbers to subtract.
    pub minus: &'static [&'static str],
    /// The divisor that converts the kernel's number to the column's unit.
    pub whole: f64,
    /// The column is zero if this number is zero.
    pub while_on: Option<&'static str>,
    /// The parameter to use if the kernel has no number.
    pub else_field: Option<&'static str>,
}

/// A column that is a sum of numbers.
pub(crate) const fn state(
    column: &'static str,
    plus: &'static [&'static str],
    minus: &'static [&'static str],
    whole: f64,
) -> State {
    State { column, plus, minus, whole, while_on: None, else_field: None }
}

/// The causes of marks of CoDel and of disciplines built on it.
pub(crate) const CODEL_MARKS: &[CauseCounter] =
    &[counter(Cause::Target, &["ecn_mark"]), counter(Cause::CeThreshold, &["ce_mark"])];

impl Linux {
    /// The defaults: drops on arrival at its limit, no statistics, and CoDel's cause for marks.
    pub(crate) const PLAIN: Linux = Linux {
        since: None,
        options: Options::None,
        read: &[],
        xstats: Xstats { skipped: 0, names: &[] },
        in_order: false,
        end: End::Arrival,
        drops: Why::Always(Cause::Limit),
        marks: Why::Always(Cause::Target),
        state: &[],
        limit_is_device_s: false,
        change: Change::NotHere,
        counting: |fields, _| Ok(fields.clone()),
    };
}
