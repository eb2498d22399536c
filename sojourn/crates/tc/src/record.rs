//! All that is known of a queue discipline, as one value.

use crate::error::TcError;
use crate::grammar::{Fields, Grammar, Value};
use crate::linux::{Linux, OF_7_3};

/// The simulator's parameters of a discipline's words.
pub type Translated = fn(&Fields) -> Vec<(&'static str, Value)>;

/// How tc makes a discipline whose parts have commands of their own.
#[derive(Clone, Copy)]
pub struct Tree {
    /// The words of its own line, behind its name.
    pub own: fn(&Fields) -> String,
    /// The lines behind that, of a device and the discipline's handle (`10:`).
    pub parts: fn(&Fields, &str, &str) -> Vec<String>,
}

/// A queue discipline: a file in `disciplines/` has one for each.
pub struct Record {
    /// Its name, tc's where Linux has it.
    pub kind: &'static str,
    /// Its words, by variant; the first is the default.
    pub grammars: &'static [Grammar],
    /// Whether the simulator has it (`qdisc::Params`). Where it does not, and where its parameters
    /// are `translated`, what is not said is left to the kernel.
    pub simulated: bool,
    /// The word among those said for which the simulator lacks it all the same.
    pub lacking: fn(&Fields) -> Option<&'static str>,
    /// The simulator's parameters, where they are others than Linux's words; what is not said has
    /// its default there.
    pub translated: Option<Translated>,
    /// Parameters of recordings of former releases. The words that they stand for are now in that of
    /// its `in_order`, in this order.
    pub former: &'static [&'static str],
    /// Its canonical words, where they don't begin with its name.
    pub written: Option<fn(&Fields) -> String>,
    /// How the kernel's is configured and read; `None`: Linux has none of this name.
    pub linux: Option<Linux>,
    /// Where tc makes its parts by commands of their own.
    pub tree: Option<Tree>,
    /// Where it has another discipline on each queue of a card, whose words follow its own: that of
    /// the kernel's choice.
    pub child: Option<&'static str>,
    /// Whether it is for a card with several queues, of which each has one of it.
    pub for_each_queue: bool,
    /// The fewest words with which tc takes it.
    pub least: &'static str,
    /// What its limit counts.
    pub counts: Counts,
    /// The limit of the kernel's choice, packets, where it is left to it.
    pub usual_limit: Option<u64>,
    /// The parameter that gives it a rate of its own, to which it holds packets back.
    pub shapes: Option<&'static str>,
    /// What of the simulator's comes nearest to one that Linux alone has.
    pub nearest: Option<&'static str>,
    /// Why it can't do without a rate of the link, and what to write.
    pub without_a_rate: fn(&Fields) -> Option<TcError>,
    /// How its sizes follow from the rate of its link where none is given.
    pub sized: Option<Sized>,
}

/// Bands of prio and ets where their number is not given.
pub(crate) const USUAL_BANDS: u64 = 3;

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// Packets.
    Packets,
    /// Packets in each band.
    PacketsOfABand,
    /// Bytes; of several limits those of all.
    Bytes,
}

/// Sizes that follow from the link's rate.
pub struct Sized {
    /// The words without any of them.
    pub grammar: &'static Grammar,
    /// The words of which none is given.
    pub none_of: &'static [&'static str],
    /// The parameter that is not said until the rate is known.
    pub waits: &'static str,
    /// Fills them in, of a rate in bit/s.
    pub at: fn(&mut Fields, u64),
}

impl Record {
    /// To be filled in.
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
        nearest: None,
        without_a_rate: |_| None,
        sized: None,
    };

    /// The words of a variant, by its name or another name for it.
    pub fn grammar(&self, variant: Option<&str>) -> Option<&'static Grammar> {
        let named = |grammar: &&Grammar| match variant {
            None => true,
            Some(name) => grammar.variant == Some(name) || grammar.aliases.contains(&name),
        };
        self.grammars.iter().find(named)
    }

    /// `codel [limit PACKETS] [target TIME] ... [ecn] [noecn]`, of one of its grammars.
    pub fn usage(&self, grammar: &Grammar) -> String {
        let child = if self.child.is_some() { " [QDISC [WORDS]]" } else { "" };
        format!("{}{child}", grammar.usage())
    }

    /// Whether Linux has it in this variant.
    pub fn in_linux(&self, variant: Option<&str>) -> bool {
        self.linux.is_some() && variant.is_none_or(|name| ["linux", OF_7_3].contains(&name))
    }
}
