//! The names of congestion controls: which engines implement each, and for each control that the
//! simulator lacks its nearest control.
//!
//! The names are those in the kernel. Only the engines with Linux run the controls that the
//! simulator lacks.
//! `bbr` is version 1.
//!
//! Source: the kernel's net/ipv4/Kconfig, and its tcp_*.c for the parameters of modules.

use serde::{Deserialize, Serialize};
use units::Ecn;

/// Declares the simulator's congestion controls: the kernel's name, then ours.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:literal $Kind:ident;)*) => {
        /// The congestion controls of the simulator.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
        pub enum CongestionKind {
            $($(#[$doc])* #[serde(rename = $name)] $Kind,)*
        }

        impl CongestionKind {
            /// Every kind.
            pub const ALL: &[CongestionKind] = &[$(CongestionKind::$Kind),*];

            /// The kernel's name for this kind.
            pub const fn name(self) -> &'static str {
                match self {
                    $(CongestionKind::$Kind => $name,)*
                }
            }
        }
    };
}

impl CongestionKind {
    /// The control needs ECN and feedback that reports each mark (Linux's TCP_CONG_NEEDS_ECN).
    pub const fn needs_ecn(self) -> bool {
        matches!(self, CongestionKind::Dctcp | CongestionKind::Prague)
    }

    /// The control uses AccECN or no ECN at all (Linux's TCP_CONG_NO_FALLBACK_RFC3168).
    pub const fn needs_accecn(self) -> bool {
        matches!(self, CongestionKind::Prague)
    }

    /// The ECN codepoint of the flow's packets.
    pub const fn ect(self) -> Ecn {
        match self {
            CongestionKind::Prague => Ecn::Ect1,
            _ => Ecn::Ect0,
        }
    }
}

kinds! {
    /// RFC 5681's slow start and congestion avoidance.
    "reno" Reno;
    /// RFC 9438, with HyStart.
    "cubic" Cubic;
    /// Brakmo, O'Malley and Peterson (1994): keeps a few segments queued.
    "vegas" Vegas;
    /// RFC 6817: keeps a target queueing delay.
    "ledbat" Ledbat;
    /// Cardwell and others (2016), version 1: paces at the delivery rate.
    "bbr" Bbr;
    /// draft-ietf-ccwg-bbr: BBR with bounds that losses set.
    "bbr3" Bbr3;
    /// RFC 8257: the reduction follows the share of marks.
    "dctcp" Dctcp;
    /// L4S's: fractional window, ECT(1), and growth as if every RTT were at least 25 ms.
    "prague" Prague;
}

/// A congestion control.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// The kernel's name.
    pub name: &'static str,
    /// The simulator's kind; `None` if only Linux has the control.
    pub simulated: Option<CongestionKind>,
    /// Whether Linux has the control.
    pub in_linux: bool,
    /// The simulator's nearest control, if the simulator lacks this one.
    pub nearest: Option<&'static str>,
    /// Settings (`TcpParams`) that are parameters of Linux's module: all flows of a kernel share
    /// one value.
    pub module_settings: &'static [&'static str],
}

/// A control that the simulator and Linux have.
const fn both(kind: CongestionKind, module_settings: &'static [&'static str]) -> Record {
    Record {
        name: kind.name(),
        simulated: Some(kind),
        in_linux: true,
        nearest: None,
        module_settings,
    }
}

/// A control that only Linux has.
const fn linux(name: &'static str, nearest: Option<&'static str>) -> Record {
    Record { name, simulated: None, in_linux: true, nearest, module_settings: &[] }
}

/// Every congestion control, in the order in which they are listed.
pub const RECORDS: &[Record] = &[
    both(CongestionKind::Reno, &[]),
    both(CongestionKind::Cubic, &["hystart"]),
    both(CongestionKind::Vegas, &["vegas_alpha", "vegas_beta", "vegas_gamma"]),
    Record { in_linux: false, ..both(CongestionKind::Ledbat, &[]) },
    both(CongestionKind::Bbr, &[]),
    Record { in_linux: false, ..both(CongestionKind::Bbr3, &[]) },
    linux("bic", Some("cubic")),
    linux("cdg", Some("vegas")),
    both(CongestionKind::Dctcp, &[]),
    linux("highspeed", Some("cubic")),
    linux("htcp", Some("cubic")),
    linux("hybla", Some("cubic")),
    linux("illinois", Some("cubic")),
    linux("lp", Some("ledbat")),
    linux("nv", Some("vegas")),
    Record { in_linux: false, ..both(CongestionKind::Prague, &[]) },
    linux("scalable", Some("cubic")),
    linux("veno", Some("vegas")),
    linux("westwood", Some("reno")),
    linux("yeah", Some("cubic")),
];

/// The names of all congestion controls.
pub const NAMES: &[&str] = &{
    let mut names = [""; RECORDS.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = RECORDS[index].name;
        index += 1;
    }
    names
};

/// The congestion control with this name.
///
/// # Examples
///
/// ```rust
/// use tcp::congestion::record;
///
/// let westwood = record("westwood").expect("Linux has Westwood");
/// assert!(westwood.simulated.is_none() && westwood.nearest == Some("reno"));
/// assert!(record("bbr2").is_none());
/// ```
pub fn record(name: &str) -> Option<&'static Record> {
    RECORDS.iter().find(|record| record.name == name)
}

const BBR: &str = "congestion = \"bbr3\", in the simulator; \"bbr\" is version 1";

/// Congestion controls that users ask for but that neither the simulator nor the guest's kernel
/// has, each with the name to write instead.
pub static ELSEWHERE: &[(&str, &str)] = &[("bbr2", BBR), ("bbrv2", BBR), ("bbrv3", BBR)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_records_have_every_control_once_and_suggest_a_simulated_one() {
        let simulated: Vec<_> = RECORDS.iter().filter_map(|record| record.simulated).collect();
        assert_eq!(simulated, CongestionKind::ALL);
        for record in RECORDS {
            assert_eq!(RECORDS.iter().filter(|other| other.name == record.name).count(), 1);
            assert_eq!(record.simulated.is_none(), record.nearest.is_some(), "{}", record.name);
            let near = |name| CongestionKind::ALL.iter().any(|kind| kind.name() == name);
            assert!(record.nearest.is_none_or(near), "{}", record.name);
        }
    }
}
