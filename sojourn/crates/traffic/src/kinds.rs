//! The kinds of traffic. Each kind is declared once: its words, its packets, the name under which
//! tables list it, and the engines that can send it.
//!
//! `traffic_kinds!` turns each declaration into a member of `TrafficKind` and its record. All other
//! code either matches `TrafficKind` exhaustively or reads the record. It is in the scenario
//! language (crates/scenario, whose macro `flows!` lists the keys of each kind), the realised
//! scenario (`sim::Traffic`), the numbers of a seed (crates/metrics), and Python
//! (`sojourn.traffic`). So a kind that is declared only here does not compile there.

/// The packets of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packets {
    /// Segments of TCP connections: the kernel sends them, and they are acknowledged.
    Segments,
    /// Datagrams in one direction, which a program sends. `headers` bytes of each are the headers
    /// of IP and of the protocols above it.
    Datagrams {
        /// The headers of a packet over IPv4, bytes.
        headers: u32,
    },
    /// Echo requests, each of which is answered: a probe. Its RTTs are in the table `probe`, and it
    /// belongs to no group of flows.
    Echoes,
    /// Whatever two programs of the host send each other, of any protocol.
    Programs,
}

/// The properties of a kind of traffic.
#[derive(Debug)]
pub struct KindRecord {
    /// The word of a `[[flow]]`'s `kind`.
    pub word: &'static str,
    /// Other programs' words for the kind.
    pub also: &'static [&'static str],
    /// The kind's packets.
    pub packets: Packets,
    /// The flow sends without pause, as fast as the path allows: such flows' shares can be
    /// compared.
    pub greedy: bool,
    /// The flow's messages follow one another over one connection, enough of them for a 99th
    /// percentile.
    pub kept: bool,
    /// The flow is speech: its quality is reported as a mean opinion score.
    pub speech: bool,
    /// Linux's engines can send it.
    pub in_linux: bool,
    /// The simulator can send it.
    pub in_simulator: bool,
    /// The kind under which tables and numbers list a realised flow.
    pub listed_as: TrafficKind,
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
            /// Every kind, in the order in which they are listed.
            pub const ALL: &[TrafficKind] = &[$(TrafficKind::$Name),+];

            /// The record of this kind.
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
    /// One TCP connection that sends without end, or a given number of bytes.
    Bulk "bulk": Packets::Segments, also: &["tcp", "ftp", "greedy"], greedy: true;

    /// Transfers one after another, each a new TCP connection.
    Transfers "transfers": Packets::Segments;

    /// Requests and their answers, one after another, over one kept TCP connection.
    Requests "requests": Packets::Segments, also: &["rpc", "keepalive", "keep-alive"], kept: true;

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

    /// Datagrams at a constant rate, on and off. Realised, it is `udp` with periods.
    OnOff "onoff": Packets::Datagrams { headers: UDP_HEADERS },
        listed_as: TrafficKind::Udp;

    /// Echo requests and replies.
    Ping "ping": Packets::Echoes;

    /// RTP video at a variable bit rate.
    Video "video": Packets::Datagrams { headers: RTP_HEADERS };

    /// The packets of a capture.
    Capture "capture": Packets::Datagrams { headers: RTP_HEADERS },
        also: &["pcap", "pcapng", "replay"];

    /// Two programs of the host, a server and a client, each on a host of its own.
    Program "program": Packets::Programs,
        also: &["command", "iperf3", "curl", "quic"], in_simulator: false;
}

/// Headers of a datagram over IPv4, IP's and UDP's, bytes.
pub const UDP_HEADERS: u32 = 28;
/// Headers of a video packet over IPv4, RTP's included, bytes.
pub const RTP_HEADERS: u32 = UDP_HEADERS + 12;

/// The defaults of a record: every engine sends the kind, and tables list it under its own word.
const fn plain(kind: TrafficKind, word: &'static str, packets: Packets) -> KindRecord {
    KindRecord {
        word,
        also: &[],
        packets,
        greedy: false,
        kept: false,
        speech: false,
        in_linux: true,
        in_simulator: true,
        listed_as: kind,
    }
}

impl TrafficKind {
    /// The kind's word.
    pub fn word(self) -> &'static str {
        self.record().word
    }

    /// The kind with this word.
    pub fn of(word: &str) -> Option<TrafficKind> {
        TrafficKind::ALL.iter().copied().find(|kind| kind.word() == word)
    }

    /// Every kind's word, in the order of `ALL`.
    pub fn words() -> impl Iterator<Item = &'static str> {
        TrafficKind::ALL.iter().map(|kind| kind.word())
    }

    /// Whether the kind sends requests rather than data.
    pub fn is_probe(self) -> bool {
        self.record().packets == Packets::Echoes
    }

    /// Whether the kind runs over TCP.
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
