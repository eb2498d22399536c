//! How Linux's discipline is told its parameters by netlink, and what its own numbers tell.
//!
//! Source: linux/pkt_sched.h for names, numbers and layouts.

use crate::error::TcError;
use crate::grammar::Fields;
use qdisc::Cause;

/// The kernel whose algorithms `variant linux` of the simulator's disciplines are: Debian 12's,
/// which the built guest runs.
pub const RELEASE: &str = "6.12.117";
/// What `variant linux` means today, by a name that will mean it tomorrow.
pub const PINNED: &str = "linux6.12";

/// Ethernet's, bytes: what Linux counts beside the IP packet.
pub const HEADER: u32 = 14;

/// The variant of Linux 7.3, where its algorithm is another.
pub const OF_7_3: &str = "linux7.3";

/// A discipline in the Linux kernel.
#[derive(Clone, Copy)]
pub struct Linux {
    /// The release of Linux that it came with, where that is younger than the usual guest's.
    pub since: Option<(u32, u32)>,
    /// Its options, where sojourn builds a shaper with it.
    pub options: Options,
    /// What the kernel tells of its options and sojourn reads: (name, where).
    pub read: &'static [(&'static str, Place)],
    /// Its own numbers (TCA_STATS_APP).
    pub xstats: Xstats,
    /// Whether it sends packets in the order in which they came.
    pub in_order: bool,
    /// At which end of the queue it drops.
    pub end: End,
    /// Why it drops.
    pub drops: Why,
    /// Why it marks.
    pub marks: Why,
    /// Its state at each sample, for time lines.
    pub state: &'static [State],
    /// The limit is the device's `txqueuelen`: tc has no word for it.
    pub limit_is_device_s: bool,
    /// Its parameters where tc-stab(8) has it count another header than the device's, of so many
    /// bytes.
    pub counting: fn(&Fields, u32) -> Result<Fields, TcError>,
}

/// Options in a netlink message.
#[derive(Clone, Copy)]
pub enum Options {
    /// sojourn tells it none.
    None,
    /// `struct tc_fifo_qopt`: the limit alone.
    Limit,
    /// Attributes: their names' prefix (`TCA_CODEL`) and each.
    Attributes(&'static str, &'static [Attribute]),
    /// Attributes by their numbers.
    Packed(&'static [Packed]),
    /// A struct of words of 32 bits, as long as it is here; what is not said is 0.
    Words(&'static [fn(&Fields) -> Option<u64>]),
}

/// An attribute by its number.
#[derive(Clone, Copy)]
pub struct Packed {
    /// In linux/pkt_sched.h.
    pub number: u16,
    /// How many bytes its value has: 1, 4 or 8.
    pub bytes: usize,
    /// Its value of the parameters; `None`: it is not said.
    pub value: fn(&Fields) -> Option<u64>,
}

/// An attribute of 32 bits.
pub(crate) const fn packed(number: u16, value: fn(&Fields) -> Option<u64>) -> Packed {
    Packed { number, bytes: 4, value }
}

/// An attribute of an options message.
#[derive(Clone, Copy)]
pub struct Attribute {
    /// `LIMIT` of `TCA_CODEL_LIMIT`.
    pub name: &'static str,
    /// Its value of the parameters; `None`: it is not said.
    pub value: fn(&Fields) -> Option<u64>,
}

/// Where a number of 32 bits stands in the options that the kernel tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The attribute of this number.
    Attribute(u16),
    /// The word of this index of a struct.
    Word(usize),
}

/// The layout of a discipline's own numbers: words of 32 bits, the low one of two first.
#[derive(Clone, Copy, Debug)]
pub struct Xstats {
    /// Bytes that are not read, at the beginning.
    pub skipped: usize,
    /// The words behind them.
    pub names: &'static [&'static str],
}

/// Where a discipline drops packets, for who does not see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As they come.
    Arrival,
    /// As they leave, and as they come where the limit is reached.
    Departure,
    /// The oldest, when one comes.
    Head,
}

impl End {
    /// As crates/guest, plan.rs, has it.
    pub fn word(self) -> &'static str {
        match self {
            End::Arrival => "arrival",
            End::Departure => "departure",
            End::Head => "head",
        }
    }
}

/// Why a discipline does something to packets.
#[derive(Clone, Copy, Debug)]
pub enum Why {
    /// It has one reason.
    Always(Cause),
    /// One for packets that come, another for packets that have waited.
    ByEnd {
        /// As it came.
        arrival: Cause,
        /// Later.
        departure: Cause,
    },
    /// Its counters tell.
    Counted(&'static [CauseCounter]),
}

impl Why {
    /// The counters, where they tell: of those that grew the one that grew most.
    pub fn counters(&self) -> &'static [CauseCounter] {
        if let Why::Counted(counters) = self { counters } else { &[] }
    }
}

/// What counts packets that met a cause: numbers added up, and others taken away. `drops` is the
/// count that every discipline has.
#[derive(Clone, Copy, Debug)]
pub struct CauseCounter {
    /// The cause.
    pub cause: Cause,
    /// Added.
    pub plus: &'static [&'static str],
    /// Taken away.
    pub minus: &'static [&'static str],
}

/// A cause with one counter.
pub(crate) const fn counter(cause: Cause, plus: &'static [&'static str]) -> CauseCounter {
    CauseCounter { cause, plus, minus: &[] }
}

/// A column of the time line: numbers added up, others taken away, as a share of a whole.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Of the table `queue`.
    pub column: &'static str,
    /// Added.
    pub plus: &'static [&'static str],
    /// Taken away.
    pub minus: &'static [&'static str],
    /// The number that stands for 1.
    pub whole: f64,
    /// Zero where this number is zero.
    pub while_on: Option<&'static str>,
    /// The parameter that holds where the kernel tells none.
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

/// Why CoDel marks, and what is built on it.
pub(crate) const CODEL_MARKS: &[CauseCounter] =
    &[counter(Cause::Target, &["ecn_mark"]), counter(Cause::CeThreshold, &["ce_mark"])];

impl Linux {
    /// It drops what comes at its limit, tells nothing of itself, and marks, if it does, as CoDel
    /// does.
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
        counting: |fields, _| Ok(fields.clone()),
    };
}
