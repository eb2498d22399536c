//! The table `headers`: the header fields of packets, if the plan asks for them.
//!
//! A tap after each link's queue (`probe::tap`) keeps the first bytes of each sent packet. They are
//! parsed after the run, in order of time: the SYN on one link gives the initial sequence numbers
//! for the connection's packets on every link.
//!
//! Sequence numbers are relative: 0 is the connection's SYN, so the initial sequence numbers (RFC
//! 9293, section 3.4.1) are subtracted. All other fields are as in the packet.

use std::collections::HashMap;
use std::io::{self, Write};

use probe::Clock;
use probe::icmp::unwrap_sequence;
use probe::tap::{self, Direction, Packet, Tap};
use tables::headers::{Columns, Row};
use tables::{FlowId, LinkId};

use crate::plan::{Plan, Traffic};
use crate::results::Archive;
use crate::taps::Flows;
use crate::world::World;

/// Bytes of the IP and TCP headers with all TCP options.
const MAX_BYTES: usize = 80;
/// TCP flags (RFC 9293, section 3.1).
const SYN: u64 = 0x02;
const ACK: u64 = 0x10;
/// AE, CWR, ECE, URG, ACK, PSH, RST, SYN, FIN.
const FLAGS: u16 = 0x1ff;

/// The first bytes of a captured packet.
struct Captured {
    t: i64,
    /// Twice the flow's index, plus 1 in the reverse direction.
    flow: u32,
    link: u32,
    /// Ports of the flow's source and target.
    ports: [u16; 2],
    bytes: [u8; MAX_BYTES],
    length: u8,
}

/// The taps and the captured packets.
pub struct Headers {
    taps: Vec<(u32, Tap)>,
    captured: Vec<Captured>,
    end: i64,
}

impl Headers {
    /// Opens a tap after the queue of each link that the plan names.
    pub fn open(plan: &Plan, world: &World) -> Result<Headers, String> {
        let mut taps = Vec::new();
        for place in &plan.headers {
            let open = || Tap::open(&place.device, Direction::Out, place.ring_bytes);
            let tap = world.inside(Some(&place.namespace), open).map_err(|e| {
                format!("headers: tap on {} in {}: {e}", place.device, place.namespace)
            })?;
            taps.push((place.link, tap));
        }
        Ok(Headers { taps, captured: Vec::new(), end: plan.duration_ns as i64 })
    }

    /// Returns the taps, whose descriptors `run` waits for.
    pub fn taps(&self) -> impl Iterator<Item = &Tap> {
        self.taps.iter().map(|(_, tap)| tap)
    }

    /// Reads the packets that a tap has captured.
    pub fn drain(&mut self, index: usize, clock: &Clock, flows: &Flows) {
        let (captured, end) = (&mut self.captured, self.end);
        let Some((link, tap)) = self.taps.get_mut(index) else { return };
        tap.drain_bytes(|packet: Packet, head: &[u8]| {
            let (t, flow) = (clock.stamp(packet.stamp), flows.of(&packet.five_tuple));
            if flow < 0 || !(0..=end).contains(&t) {
                return;
            }
            let length = head.len().min(MAX_BYTES);
            let mut bytes = [0; MAX_BYTES];
            bytes[..length].copy_from_slice(&head[..length]);
            captured.push(Captured {
                t,
                flow: flow as u32,
                link: *link,
                ports: [0, 1].map(|end| packet.five_tuple.ports[(end + flow as usize) % 2]),
                bytes,
                length: length as u8,
            });
        });
    }

    /// Reads the remaining packets at the end of the run.
    pub fn finish(&mut self, clock: &Clock, flows: &Flows) {
        (0..self.taps.len()).for_each(|index| self.drain(index, clock, flows));
    }

    /// Returns the number of packets that a tap had no room for.
    pub fn lost(&mut self) -> io::Result<u32> {
        self.taps.iter_mut().map(|(_, tap)| tap.lost()).sum()
    }

    /// Writes the table.
    pub fn write<W: Write>(mut self, plan: &Plan, archive: &mut Archive<W>) -> io::Result<()> {
        self.captured.sort_by_key(|packet| (packet.t, packet.link));
        let mut tracker = Tracker::new(plan);
        let rows: Columns =
            self.captured.drain(..).filter_map(|packet| tracker.row(&packet)).collect();
        archive.declared(rows.into_table())
    }
}

/// A connection: its number within the flow, and the initial sequence numbers of both ends.
#[derive(Clone, Copy, Default)]
struct Connection {
    number: u32,
    initial_seq: [Option<u32>; 2],
}

/// State of the flows, derived from the packets so far.
struct Tracker<'a> {
    traffic: Vec<&'a Traffic>,
    /// By flow and its ends' ports.
    connections: HashMap<(u32, [u16; 2]), Connection>,
    /// Number of connections of each flow.
    counts: HashMap<u32, u32>,
    /// The latest full number of a 16-bit counter, by flow and direction.
    latest: HashMap<u32, u64>,
}

fn pair(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

impl<'a> Tracker<'a> {
    fn new(plan: &'a Plan) -> Tracker<'a> {
        Tracker {
            traffic: plan.flows.iter().map(|flow| &flow.traffic).collect(),
            connections: HashMap::new(),
            counts: HashMap::new(),
            latest: HashMap::new(),
        }
    }

    /// Returns a packet's row; `None` if its headers are truncated.
    fn row(&mut self, packet: &Captured) -> Option<Row> {
        let bytes = &packet.bytes[..usize::from(packet.length)];
        let network = usize::from(bytes.first()? & 15) * 4;
        let total = u32::from(pair(bytes, 2)?);
        let protocol = *bytes.get(9)?;
        let transport = bytes.get(network..)?;
        let plain = Row {
            t_ns: packet.t as u64,
            link: LinkId(packet.link),
            flow: FlowId(packet.flow / 2),
            reply: packet.flow % 2,
            connection: 0,
            protocol: protocol.into(),
            bytes: total,
            payload_bytes: total.saturating_sub(network as u32 + 8),
            ds: bytes[1].into(),
            seq: 0,
            ..Row::default()
        };
        match protocol {
            tap::TCP => self.segment(packet, transport, total.checked_sub(network as u32)?, plain),
            tap::ICMP => {
                Some(Row { seq: self.unwrapped(packet.flow, pair(transport, 6)?), ..plain })
            }
            _ => Some(Row { seq: self.running(packet.flow, transport.get(8..)?)?, ..plain }),
        }
    }

    /// Extends the lower 16 bits of a sequence number.
    fn unwrapped(&mut self, flow: u32, low: u16) -> u32 {
        // The packet may be up to half of the 16-bit range earlier or later.
        const HALF: u64 = 1 << 15;
        let latest = self.latest.entry(flow).or_default();
        let number = unwrap_sequence(low, *latest + HALF - 1);
        *latest = number.max(*latest);
        number as u32
    }

    /// Returns a datagram's sequence number, from the place where `flows` writes it.
    fn running(&mut self, flow: u32, payload: &[u8]) -> Option<u32> {
        match self.traffic.get(flow as usize / 2)? {
            Traffic::Video { .. } => Some(self.unwrapped(flow, pair(payload, 2)?)),
            Traffic::Echo { .. } => probe::echo::Echo::parse(payload).map(|echo| echo.sequence),
            // A program's datagrams have no number that is known here.
            Traffic::Program { .. } => Some(0),
            Traffic::Bulk { .. }
            | Traffic::Transfers { .. }
            | Traffic::Requests { .. }
            | Traffic::Udp { .. }
            | Traffic::Ping { .. } => Some(u32::from_le_bytes(payload.get(..4)?.try_into().ok()?)),
        }
    }

    /// Returns the connection of a segment, and adds it if it is new.
    fn connection(&mut self, packet: &Captured, seq: u32, ack: u32, flags: u64) -> Connection {
        let (flow, direction) = (packet.flow / 2, (packet.flow % 2) as usize);
        let key = (flow, packet.ports);
        let first = flags & (SYN | ACK) == SYN;
        let known = self.connections.get(&key).copied();
        // A SYN with another sequence number starts a new connection from a reused port.
        let mut connection =
            match known.filter(|c| !first || c.initial_seq[direction].is_none_or(|b| b == seq)) {
                Some(connection) => connection,
                None => {
                    let number = self.counts.entry(flow).or_default();
                    *number += 1;
                    Connection { number: *number - 1, initial_seq: [None; 2] }
                }
            };
        // A connection that began before the run has no SYN here.
        let initial_seq = if flags & SYN != 0 { seq } else { seq.wrapping_sub(1) };
        connection.initial_seq[direction].get_or_insert(initial_seq);
        if flags & ACK != 0 {
            connection.initial_seq[1 - direction].get_or_insert(ack.wrapping_sub(1));
        }
        self.connections.insert(key, connection);
        connection
    }

    fn segment(&mut self, packet: &Captured, tcp: &[u8], total: u32, plain: Row) -> Option<Row> {
        let (seq, ack, flags) = (word(tcp, 4)?, word(tcp, 8)?, pair(tcp, 12)?);
        let header = usize::from(flags >> 12) * 4;
        let flags = u64::from(flags & FLAGS);
        let connection = self.connection(packet, seq, ack, flags);
        let direction = plain.reply as usize;
        let initial_seq = |direction: usize| connection.initial_seq[direction].unwrap_or_default();
        let row = Row {
            connection: connection.number % 256,
            payload_bytes: total.checked_sub(header as u32)?,
            seq: seq.wrapping_sub(initial_seq(direction)),
            ack: (flags & ACK != 0).then(|| ack.wrapping_sub(initial_seq(1 - direction)).into()),
            flags: Some(flags),
            window: Some(pair(tcp, 14)?.into()),
            ..plain
        };
        options(tcp.get(20..header)?, initial_seq(1 - direction), row)
    }
}

/// Adds TCP's options to a row. SACK edges are relative to `initial_seq`.
fn options(mut left: &[u8], initial_seq: u32, mut row: Row) -> Option<Row> {
    loop {
        let (kind, size) = match left {
            [] | [0, ..] => return Some(row),
            [1, ..] => {
                left = &left[1..];
                continue;
            }
            [kind, size, ..] => (*kind, usize::from(*size)),
            [_] => return None,
        };
        let value = left.get(2..size)?;
        left = &left[size..];
        match kind {
            2 => row.mss = Some(pair(value, 0)?.into()),
            3 => row.scale = Some((*value.first()?).into()),
            4 => row.sack_permitted = Some(1),
            5 => {
                let edge = |at: usize| word(value, at).map(|e| e.wrapping_sub(initial_seq).into());
                [row.sack1_left, row.sack1_right] = [edge(0), edge(4)];
                [row.sack2_left, row.sack2_right] = [edge(8), edge(12)];
                [row.sack3_left, row.sack3_right] = [edge(16), edge(20)];
                [row.sack4_left, row.sack4_right] = [edge(24), edge(28)];
            }
            8 => [row.tsval, row.tsecr] = [0, 4].map(|at| word(value, at).map(u64::from)),
            // AccECN has two orders of its counters (RFC 9768, section 3.2.3).
            172 | 174 => {
                let counter = |n: usize| {
                    let three = value.get(3 * n..3 * n + 3)?;
                    Some(u64::from(u32::from_be_bytes([0, three[0], three[1], three[2]])))
                };
                let [first, last] = [counter(0), counter(2)];
                row.accecn_ceb = counter(1);
                [row.accecn_e1b, row.accecn_e0b] =
                    if kind == 174 { [first, last] } else { [last, first] };
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracker() -> Tracker<'static> {
        static UDP: Traffic = Traffic::Udp { bps: 1, packet_bytes: 100, on_ns: None, off_ns: None };
        Tracker {
            traffic: vec![&UDP; 3],
            connections: HashMap::new(),
            counts: HashMap::new(),
            latest: HashMap::new(),
        }
    }

    /// A packet of flow 1: its direction, client port and the bytes after the IP header; `more`
    /// further bytes were not captured.
    fn packet(
        direction: u32,
        near_port: u16,
        protocol: u8,
        transport: &[u8],
        more: u16,
    ) -> Captured {
        let mut bytes = [0; MAX_BYTES];
        bytes[..2].copy_from_slice(&[0x45, 2]);
        bytes[2..4].copy_from_slice(&(20 + transport.len() as u16 + more).to_be_bytes());
        bytes[9] = protocol;
        bytes[20..20 + transport.len()].copy_from_slice(transport);
        let length = (20 + transport.len()) as u8;
        Captured { t: 5, flow: 2 + direction, link: 3, ports: [near_port, 5001], bytes, length }
    }

    fn tcp(seq: u32, ack: u32, flags: u16, options: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x9c, 0x40, 0x13, 0x89];
        bytes.extend(seq.to_be_bytes());
        bytes.extend(ack.to_be_bytes());
        bytes.extend(((5 + options.len() as u16 / 4) << 12 | flags).to_be_bytes());
        bytes.extend([0xfa, 0xf0, 0, 0, 0, 0]);
        bytes.extend(options);
        bytes
    }

    fn segment(tracker: &mut Tracker, direction: u32, port: u16, tcp: &[u8], data: u16) -> Row {
        tracker.row(&packet(direction, port, tap::TCP, tcp, data)).unwrap()
    }

    #[test]
    fn numbers_are_counted_from_the_syns() {
        let mut tracker = tracker();
        let asks = tcp(u32::MAX, 0, 0xc2, &[2, 4, 5, 0xb4, 4, 2, 1, 1, 1, 3, 3, 7]);
        let syn = segment(&mut tracker, 0, 40_000, &asks, 0);
        assert_eq!((syn.seq, syn.ack, syn.flags, syn.window), (0, None, Some(0xc2), Some(64_240)));
        assert_eq!((syn.mss, syn.sack_permitted, syn.scale), (Some(1460), Some(1), Some(7)));
        assert_eq!((syn.ds, syn.bytes, syn.payload_bytes, syn.tsval), (2, 52, 0, None));
        let answer = segment(&mut tracker, 1, 40_000, &tcp(700, 0, 0x12, &[]), 0);
        assert_eq!((answer.seq, answer.ack, answer.reply), (0, Some(1), 1));
        let data = segment(&mut tracker, 0, 40_000, &tcp(0, 701, 0x18, &[]), 1000);
        assert_eq!((data.seq, data.ack, data.payload_bytes), (1, Some(1), 1000));
    }

    #[test]
    fn complete_options_are_read_and_truncated_ones_are_not() {
        let mut tracker = tracker();
        segment(&mut tracker, 0, 40_000, &tcp(100, 0, 2, &[]), 0);
        let mut both = vec![1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8, 1, 1, 5, 18];
        for edge in [1101u32, 2101, 3101, 4101] {
            both.extend(edge.to_be_bytes());
        }
        let ack = segment(&mut tracker, 1, 40_000, &tcp(500, 601, 0x10, &both), 0);
        assert_eq!((ack.tsval, ack.tsecr, ack.ack), (Some(9), Some(8), Some(501)));
        assert_eq!((ack.sack1_left, ack.sack1_right), (Some(1001), Some(2001)));
        assert_eq!((ack.sack2_left, ack.sack2_right), (Some(3001), Some(4001)));
        assert_eq!((ack.sack3_left, ack.accecn_ceb), (None, None));
        let counted = [172, 8, 0, 0, 7, 0, 1, 0, 172, 5, 0, 0, 9, 0, 0, 0];
        let ack = segment(&mut tracker, 1, 40_000, &tcp(501, 601, 0x10, &counted[..8]), 0);
        assert_eq!((ack.accecn_e0b, ack.accecn_ceb, ack.accecn_e1b), (Some(7), Some(256), None));
        let cut = packet(1, 40_000, tap::TCP, &tcp(501, 601, 0x10, &[8, 10, 0, 0]), 0);
        assert_eq!(tracker.row(&cut), None, "an option that ends beyond the header");
        let mut short = packet(1, 40_000, tap::TCP, &tcp(501, 601, 0x10, &counted), 0);
        for length in 0..MAX_BYTES as u8 {
            short.length = length;
            assert_eq!(tracker.row(&short).is_some(), length >= 56, "cut at {length}");
        }
    }

    #[test]
    fn a_port_that_is_used_again_is_another_connection() {
        let mut tracker = tracker();
        let opened: Vec<u32> = [(40_000, 1), (40_001, 9), (40_000, 1), (40_000, 77)]
            .map(|(port, seq)| segment(&mut tracker, 0, port, &tcp(seq, 0, 2, &[]), 0).connection)
            .to_vec();
        assert_eq!(opened, [0, 1, 0, 2]);
        // The first connection of another flow.
        let other = Captured { flow: 0, ..packet(0, 40_000, tap::TCP, &tcp(5, 0, 2, &[]), 0) };
        assert_eq!(tracker.row(&other).unwrap().connection, 0);
    }

    #[test]
    fn datagrams_and_pings_have_running_numbers() {
        let mut tracker = tracker();
        let mut datagram = vec![0; 8];
        datagram.extend(70_000u32.to_le_bytes());
        let row = tracker.row(&packet(0, 5001, tap::UDP, &datagram, 88)).unwrap();
        assert_eq!((row.seq, row.payload_bytes, row.flags), (70_000, 92, None));
        let mut numbers = Vec::new();
        for low in [0xfffe_u16, 0xffff, 1, 0] {
            tracker.latest.entry(2).or_insert(0xfff0);
            let [high, low] = low.to_be_bytes();
            let echo = packet(0, 7, tap::ICMP, &[8, 0, 0, 0, 0, 7, high, low], 56);
            numbers.push(tracker.row(&echo).unwrap().seq);
        }
        assert_eq!(numbers, [0xfffe, 0xffff, 0x1_0001, 0x1_0000]);
    }
}
