//! The static properties of a queue discipline, as one value.

use crate::error::TcError;
use crate::grammar::{Fields, Grammar, Value};
use crate::linux::{Linux, OF_7_3};

/// Translates a discipline's words to the simulator's parameters.
pub type Translated = fn(&Fields) -> Vec<(&'static str, Value)>;

/// The tc commands for a discipline whose parts have commands of their own.
#[derive(Clone, Copy)]
pub struct Tree {
    /// The words of the discipline's own command, behind its name.
    pub own: fn(&Fields) -> String,
    /// The commands for the parts, given the device and the discipline's handle (`10:`).
    pub parts: fn(&Fields, &str, &str) -> Vec<String>,
}

/// A queue discipline. Each has a file in `disciplines/`.
pub struct Record {
    /// The name; tc's if Linux has the discipline.
    pub kind: &'static str,
    /// The words of each variant; the first variant is the default.
    pub grammars: &'static [Grammar],
    /// Whether the simulator has it (`qdisc::Params`). If not, or if its parameters are
    /// `translated`, unset parameters are left to the kernel.
    pub simulated: bool,
    /// The given word that the simulator lacks, though it has the discipline.
    pub lacking: fn(&Fields) -> Option<&'static str>,
    /// The simulator's parameters, if they differ from Linux's words. Unset parameters get their
    /// defaults there.
    pub translated: Option<Translated>,
    /// Parameters in recordings of earlier releases. Their words are now in the parameter of
    /// `in_order`, in this order.
    pub former: &'static [&'static str],
    /// Its canonical words, if they do not begin with its name.
    pub written: Option<fn(&Fields) -> String>,
    /// How the kernel's discipline is configured and read. `None`: Linux has none of this name.
    pub linux: Option<Linux>,
    /// The commands for its parts, if tc has separate ones.
    pub tree: Option<Tree>,
    /// The kernel's default for the discipline on each queue of a card, if there is one. Its words
    /// follow the words of this discipline.
    pub child: Option<&'static str>,
    /// Whether it runs once on each queue of a card.
    pub for_each_queue: bool,
    /// The fewest words that tc accepts.
    pub least: &'static str,
    /// The unit of its limit.
    pub counts: Counts,
    /// The kernel's default limit, packets, if the limit may be left to the kernel.
    pub usual_limit: Option<u64>,
    /// The parameter with the rate that it shapes to.
    pub shapes: Option<&'static str>,
    /// The parameters that the simulator can change while its queue stands.
    pub changes: &'static [&'static str],
    /// Pairs of parameters with one meaning: to change one unsets the other.
    pub pairs: &'static [(&'static str, &'static str)],
    /// The simulator's nearest discipline to one that only Linux has.
    pub nearest: Option<&'static str>,
    /// The error if it can't work without a rate of the link.
    pub without_a_rate: fn(&Fields) -> Option<TcError>,
    /// How unset sizes follow from the rate of its link.
    pub sized: Option<Sized>,
}

/// The default number of bands of prio and ets.
pub(crate) const USUAL_BANDS: u64 = 3;

/// The unit of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// Packets.
    Packets,
    /// Packets in each band.
    PacketsOfABand,
    /// Bytes; of several limits the total.
    Bytes,
}

/// Sizes that follow from the link's rate.
pub struct Sized {
    /// The words, without any size.
    pub grammar: &'static Grammar,
    /// The words of the sizes. None of them is given.
    pub none_of: &'static [&'static str],
    /// The parameter that is unset until the rate is known.
    pub waits: &'static str,
    /// Computes the sizes from a rate in bit/s.
    pub at: fn(&mut Fields, u64),
}

impl Record {
    /// The defaults of a record's fields.
    pub(crate) const NONE: Record = Record {
        kind: "",
        grammars: &[],
        simulated: false,
        lacking: |_| None,
        translated: None,
        former: &[],
        written: None,
        linux: None,
        tree: None,
        child: None,
        for_each_queue: false,
        least: "",
        counts: Counts::Packets,
        usual_limit: None,
        shapes: None,
        changes: &[],
        pairs: &[],
        nearest: None,
        without_a_rate: |_| None,
        sized: None,
    };

    /// The words of a variant, by its name or an alias.
    pub fn grammar(&self, variant: Option<&str>) -> Option<&'static Grammar> {
        let named = |grammar: &&Grammar| match variant {
            None => true,
            Some(name) => grammar.variant == Some(name) || grammar.aliases.contains(&name),
        };
        self.grammars.iter().find(named)
    }

    /// `codel [limit PACKETS] [target TIME] ... [ecn] [noecn]`, for one of its grammars.
    pub fn usage(&self, grammar: &Grammar) -> String {
        let child = if self.child.is_some() { " [QDISC [WORDS]]" } else { "" };
        format!("{}{child}", grammar.usage())
    }

    /// Whether Linux has this variant.
    pub fn in_linux(&self, variant: Option<&str>) -> bool {
        self.linux.is_some() && variant.is_none_or(|name| ["linux", OF_7_3].contains(&name))
    }
}
