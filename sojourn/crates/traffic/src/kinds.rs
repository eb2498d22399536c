//! The kinds of traffic, each declared once: its words, what its packets are, what is told of it and
//! who can send it.
//!
//! `traffic_kinds!` makes of a line a member of `TrafficKind` and its record. Everything that asks
//! what kind a flow is of matches `TrafficKind` to the end or reads the record: the language
//! (crates/scenario, whose macro `flows!` says which keys a kind has), the realised scenario
//! (`sim::Traffic`), the numbers of a seed (crates/metrics), and Python
//! (`sojourn.traffic`). A kind that is only declared here does not compile there.

/// What a kind's packets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packets {
    /// Segments of TCP connections: the kernel sends them, and they are acknowledged.
    Segments,
    /// Datagrams one way: a program sends them. So many bytes of each are the headers of IP and what
    /// is above it.
    Datagrams {
        /// The headers of a packet over IPv4, bytes.
        headers: u32,
    },
    /// Echo requests, which are answered: a probe. Its RTTs are in the table `probe`, and it is in no
    /// group of flows.
    Echoes,
}

/// What a kind of traffic is, for whoever asks.
#[derive(Debug)]
pub struct KindRecord {
    /// The word of a `[[flow]]`'s `kind`.
    pub word: &'static str,
    /// Other programs' words for it.
    pub also: &'static [&'static str],
    /// What its packets are.
    pub packets: Packets,
    /// It sends for as long as it is let, as fast as its way allows: shares of such flows can be
    /// compared.
    pub greedy: bool,
    /// It is speech: its quality is told as a mean opinion score.
    pub speech: bool,
    /// Linux's engines can send it. The simulator sends every kind.
    pub in_linux: bool,
    /// The kind that tables and numbers call it: of a realised flow.
    pub told_as: TrafficKind,
}

macro_rules! traffic_kinds {
    ($(
        $(#[doc = $about:expr])+
        $Name:ident $word:literal: $packets:expr $(, $field:ident: $value:expr)*;
    )+) => {
        /// A kind of traffic.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum TrafficKind {
            $($(#[doc = $about])+ $Name,)+
        }

        impl TrafficKind {
            /// Every kind there is, in the order in which they are listed.
            pub const ALL: &[TrafficKind] = &[$(TrafficKind::$Name),+];

            /// What it is.
            pub fn record(self) -> &'static KindRecord {
                match self {
                    $(TrafficKind::$Name => {
                        const RECORD: &KindRecord = &KindRecord {
                            $($field: $value,)*
                            ..plain(TrafficKind::$Name, $word, $packets)
                        };
                        RECORD
                    })+
                }
            }
        }
    };
}

traffic_kinds! {
    /// One TCP connection that sends without end, or a size.
    Bulk "bulk": Packets::Segments, also: &["tcp", "ftp", "greedy"], greedy: true;

    /// Transfers one after another, each a new TCP connection.
    Transfers "transfers": Packets::Segments;

    /// A browser: pages of many objects over several connections.
    Web "web": Packets::Segments,
        also: &["http", "page", "browser"], in_linux: false;

    /// Video over TCP that adapts its rate.
    Stream "stream": Packets::Segments, also: &["dash", "hls", "abr"], in_linux: false;

    /// One way of a voice call.
    Call "call": Packets::Datagrams { headers: UDP_HEADERS }, also: &["voip", "voice"], speech: true;

    /// Datagrams at a constant rate.
    Udp "udp": Packets::Datagrams { headers: UDP_HEADERS },
        also: &["cbr"];

    /// Datagrams at a constant rate, on and off: realised, `udp` with periods.
    OnOff "onoff": Packets::Datagrams { headers: UDP_HEADERS },
        told_as: TrafficKind::Udp;

    /// Echo requests and replies.
    Ping "ping": Packets::Echoes;

    /// RTP video at a variable bit rate.
    Video "video": Packets::Datagrams { headers: RTP_HEADERS };

    /// Packets as a capture has them.
    Capture "capture": Packets::Datagrams { headers: RTP_HEADERS },
        also: &["pcap", "pcapng", "replay"];
}

/// Headers of a datagram over IPv4, IP's and UDP's, bytes.
pub const UDP_HEADERS: u32 = 28;
/// Those of a packet of video: RTP's, too.
pub const RTP_HEADERS: u32 = UDP_HEADERS + 12;

/// A kind of which no more is said: every engine sends it, and tables call it as
/// a scenario does.
const fn plain(kind: TrafficKind, word: &'static str, packets: Packets) -> KindRecord {
    KindRecord {
        word,
        also: &[],
        packets,
        greedy: false,
        speech: false,
        in_linux: true,
        told_as: kind,
    }
}

impl TrafficKind {
    /// Its word.
    pub fn word(self) -> &'static str {
        self.record().word
    }

    /// The kind of this word.
    pub fn of(word: &str) -> Option<TrafficKind> {
        TrafficKind::ALL.iter().copied().find(|kind| kind.word() == word)
    }

    /// Every kind's word, in their order.
    pub fn words() -> impl Iterator<Item = &'static str> {
        TrafficKind::ALL.iter().map(|kind| kind.word())
    }

    /// Whether it asks rather than sends.
    pub fn is_probe(self) -> bool {
        self.record().packets == Packets::Echoes
    }

    /// Whether it runs over TCP.
    pub fn is_tcp(self) -> bool {
        self.record().packets == Packets::Segments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_one_kind_s() {
        let mut words: Vec<_> = TrafficKind::ALL
            .iter()
            .flat_map(|kind| kind.record().also.iter().chain([&kind.record().word]))
            .collect();
        let number = words.len();
        words.sort();
        words.dedup();
        assert_eq!(words.len(), number);
        assert!(!words.contains(&&""));
    }
}
