//! What the headers of packets say, as rows of the table `headers`, where a plan asks for it.
//!
//! A tap behind each link's queue (`probe::tap`) keeps the first bytes of what the device sends.
//! They are read when the run is over, in order of time: a connection's SYN, which the tap of one
//! link has, says what the numbers of its packets on another link are counted from.
//!
//! Numbers of a connection begin with 0 for its SYN, as the table has them: the initial sequence
//! numbers (RFC 9293 §3.4.1) are taken off. All else is as the packet has it.

use std::collections::HashMap;
use std::io::{self, Write};

use probe::Clock;
use probe::icmp::unwrap_sequence;
use probe::tap::{self, Direction, Seen, Tap};
use tables::headers::{Columns, Row};
use tables::{FlowId, LinkId};

use crate::plan::{Plan, Traffic};
use crate::results::Archive;
use crate::taps::Flows;
use crate::world::World;

/// Bytes of the headers of IP and TCP with every option of TCP.
const MOST: usize = 80;
/// Flags of TCP (RFC 9293 §3.1).
const SYN: u64 = 0x02;
const ACK: u64 = 0x10;
/// AE, CWR, ECE, URG, ACK, PSH, RST, SYN, FIN.
const FLAGS: u16 = 0x1ff;

/// A packet as a tap kept it.
struct Kept {
    t: i64,
    /// Twice the flow's index, plus 1 on its way back.
    flow: u32,
    link: u32,
    near_port: u16,
    bytes: [u8; MOST],
    many: u8,
}

/// The taps, and what they have kept.
pub struct Headers {
    taps: Vec<(u32, Tap)>,
    kept: Vec<Kept>,
    end: i64,
}

impl Headers {
    /// Opens a tap behind the queue of each link that the plan names.
    pub fn open(plan: &Plan, world: &World) -> Result<Headers, String> {
        let mut taps = Vec::new();
        for place in &plan.headers {
            let open = || Tap::open(&place.device, Direction::Out, place.ring_bytes);
            let tap = world.inside(Some(&place.namespace), open).map_err(|e| {
                format!("headers: tap on {} in {}: {e}", place.device, place.namespace)
            })?;
            taps.push((place.link, tap));
        }
        Ok(Headers { taps, kept: Vec::new(), end: plan.duration_ns as i64 })
    }

    /// Its taps: what to wait for.
    pub fn taps(&self) -> impl Iterator<Item = &Tap> {
        self.taps.iter().map(|(_, tap)| tap)
    }

    /// Takes in what a tap has.
    pub fn drain(&mut self, index: usize, clock: &Clock, flows: &Flows) {
        let (kept, end) = (&mut self.kept, self.end);
        let Some((link, tap)) = self.taps.get_mut(index) else { return };
        tap.drain_bytes(|seen: Seen, packet: &[u8]| {
            let (t, flow) = (clock.stamp(seen.stamp), flows.of(&seen.kin));
            if flow < 0 || !(0..=end).contains(&t) {
                return;
            }
            let many = packet.len().min(MOST);
            let mut bytes = [0; MOST];
            bytes[..many].copy_from_slice(&packet[..many]);
            kept.push(Kept {
                t,
                flow: flow as u32,
                link: *link,
                near_port: seen.kin.ports[flow as usize % 2],
                bytes,
                many: many as u8,
            });
        });
    }

    /// Takes in the rest: nothing more will come.
    pub fn finish(&mut self, clock: &Clock, flows: &Flows) {
        (0..self.taps.len()).for_each(|index| self.drain(index, clock, flows));
    }

    /// Packets that found no room in a tap.
    pub fn lost(&mut self) -> io::Result<u32> {
        self.taps.iter_mut().map(|(_, tap)| tap.lost()).sum()
    }

    /// Writes the table.
    pub fn write<W: Write>(mut self, plan: &Plan, archive: &mut Archive<W>) -> io::Result<()> {
        self.kept.sort_by_key(|packet| (packet.t, packet.link));
        let mut known = Known::new(plan);
        let rows: Columns = self.kept.drain(..).filter_map(|packet| known.row(&packet)).collect();
        archive.declared(rows.into_table())
    }
}

/// Where the numbers of both ends of a connection begin, and which of its flow's it is.
#[derive(Clone, Copy, Default)]
struct Connection {
    number: u32,
    begins: [Option<u32>; 2],
}

/// What is known of flows from their packets so far.
struct Known<'a> {
    traffic: Vec<&'a Traffic>,
    /// By flow and its source's port.
    connections: HashMap<(u32, u16), Connection>,
    /// How many connections each flow has had.
    counts: HashMap<u32, u32>,
    /// The latest running number of what counts in 16 bits, by flow and way.
    latest: HashMap<u32, u64>,
}

fn pair(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

impl<'a> Known<'a> {
    fn new(plan: &'a Plan) -> Known<'a> {
        Known {
            traffic: plan.flows.iter().map(|flow| &flow.traffic).collect(),
            connections: HashMap::new(),
            counts: HashMap::new(),
            latest: HashMap::new(),
        }
    }

    /// The row of a packet; `None`: its headers are not whole.
    fn row(&mut self, packet: &Kept) -> Option<Row> {
        let bytes = &packet.bytes[..usize::from(packet.many)];
        let network = usize::from(bytes.first()? & 15) * 4;
        let whole = u32::from(pair(bytes, 2)?);
        let protocol = *bytes.get(9)?;
        let above = bytes.get(network..)?;
        let plain = Row {
            t_ns: packet.t as u64,
            link: LinkId(packet.link),
            flow: FlowId(packet.flow / 2),
            reply: packet.flow % 2,
            connection: 0,
            protocol: protocol.into(),
            bytes: whole,
            payload_bytes: whole.saturating_sub(network as u32 + 8),
            ds: bytes[1].into(),
            seq: 0,
            ..Row::default()
        };
        match protocol {
            tap::TCP => self.segment(packet, above, whole.checked_sub(network as u32)?, plain),
            tap::ICMP => Some(Row { seq: self.unwrapped(packet.flow, pair(above, 6)?), ..plain }),
            _ => Some(Row { seq: self.running(packet.flow, above.get(8..)?)?, ..plain }),
        }
    }

    /// A running number in full from its lower 16 bits.
    fn unwrapped(&mut self, flow: u32, low: u16) -> u32 {
        // Within half of what 16 bits count, it may be an earlier or a later one.
        const HALF: u64 = 1 << 15;
        let latest = self.latest.entry(flow).or_default();
        let number = unwrap_sequence(low, *latest + HALF - 1);
        *latest = number.max(*latest);
        number as u32
    }

    /// A datagram's running number, from where `flows` writes it.
    fn running(&mut self, flow: u32, payload: &[u8]) -> Option<u32> {
        match self.traffic.get(flow as usize / 2)? {
            Traffic::Video { .. } => Some(self.unwrapped(flow, pair(payload, 2)?)),
            Traffic::Echo { .. } => probe::echo::Echo::parse(payload).map(|echo| echo.sequence),
            Traffic::Bulk { .. }
            | Traffic::Transfers { .. }
            | Traffic::Udp { .. }
            | Traffic::Ping { .. } => Some(u32::from_le_bytes(payload.get(..4)?.try_into().ok()?)),
        }
    }

    /// The connection of a segment with these numbers.
    fn connection(&mut self, packet: &Kept, seq: u32, ack: u32, flags: u64) -> Connection {
        let (flow, way) = (packet.flow / 2, (packet.flow % 2) as usize);
        let key = (flow, packet.near_port);
        let first = flags & (SYN | ACK) == SYN;
        let known = self.connections.get(&key).copied();
        // A SYN with another number is that of a new connection from a port that was used before.
        let mut found = match known.filter(|c| !first || c.begins[way].is_none_or(|b| b == seq)) {
            Some(connection) => connection,
            None => {
                let number = self.counts.entry(flow).or_default();
                *number += 1;
                Connection { number: *number - 1, begins: [None; 2] }
            }
        };
        // What begins before the run has no SYN here.
        let begins = if flags & SYN != 0 { seq } else { seq.wrapping_sub(1) };
        found.begins[way].get_or_insert(begins);
        if flags & ACK != 0 {
            found.begins[1 - way].get_or_insert(ack.wrapping_sub(1));
        }
        self.connections.insert(key, found);
        found
    }

    fn segment(&mut self, packet: &Kept, tcp: &[u8], whole: u32, plain: Row) -> Option<Row> {
        let (seq, ack, flags) = (word(tcp, 4)?, word(tcp, 8)?, pair(tcp, 12)?);
        let header = usize::from(flags >> 12) * 4;
        let flags = u64::from(flags & FLAGS);
        let connection = self.connection(packet, seq, ack, flags);
        let way = plain.reply as usize;
        let begins = |way: usize| connection.begins[way].unwrap_or_default();
        let row = Row {
            connection: connection.number % 256,
            payload_bytes: whole.checked_sub(header as u32)?,
            seq: seq.wrapping_sub(begins(way)),
            ack: (flags & ACK != 0).then(|| ack.wrapping_sub(begins(1 - way)).into()),
            flags: Some(flags),
            window: Some(pair(tcp, 14)?.into()),
            ..plain
        };
        options(tcp.get(20..header)?, begins(1 - way), row)
    }
}

/// Adds TCP's options to a row. What they acknowledge is counted from `begins`.
fn options(mut left: &[u8], begins: u32, mut row: Row) -> Option<Row> {
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
                let edge = |at: usize| word(value, at).map(|e| e.wrapping_sub(begins).into());
                [row.sack1_left, row.sack1_right] = [edge(0), edge(4)];
                [row.sack2_left, row.sack2_right] = [edge(8), edge(12)];
                [row.sack3_left, row.sack3_right] = [edge(16), edge(20)];
                [row.sack4_left, row.sack4_right] = [edge(24), edge(28)];
            }
            8 => [row.tsval, row.tsecr] = [0, 4].map(|at| word(value, at).map(u64::from)),
            // AccECN's two orders of its counters (RFC 9768 §3.2.3).
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

    fn known() -> Known<'static> {
        static UDP: Traffic = Traffic::Udp { bps: 1, packet_bytes: 100, on_ns: None, off_ns: None };
        Known {
            traffic: vec![&UDP; 3],
            connections: HashMap::new(),
            counts: HashMap::new(),
            latest: HashMap::new(),
        }
    }

    /// A packet of flow 1: its way, its source's port, what lies above IP; `more` bytes of it were
    /// not kept.
    fn packet(way: u32, near_port: u16, protocol: u8, above: &[u8], more: u16) -> Kept {
        let mut bytes = [0; MOST];
        bytes[..2].copy_from_slice(&[0x45, 2]);
        bytes[2..4].copy_from_slice(&(20 + above.len() as u16 + more).to_be_bytes());
        bytes[9] = protocol;
        bytes[20..20 + above.len()].copy_from_slice(above);
        let many = (20 + above.len()) as u8;
        Kept { t: 5, flow: 2 + way, link: 3, near_port, bytes, many }
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

    fn segment(known: &mut Known, way: u32, port: u16, tcp: &[u8], data: u16) -> Row {
        known.row(&packet(way, port, tap::TCP, tcp, data)).unwrap()
    }

    #[test]
    fn numbers_are_counted_from_the_syns() {
        let mut known = known();
        let asks = tcp(u32::MAX, 0, 0xc2, &[2, 4, 5, 0xb4, 4, 2, 1, 1, 1, 3, 3, 7]);
        let syn = segment(&mut known, 0, 40_000, &asks, 0);
        assert_eq!((syn.seq, syn.ack, syn.flags, syn.window), (0, None, Some(0xc2), Some(64_240)));
        assert_eq!((syn.mss, syn.sack_permitted, syn.scale), (Some(1460), Some(1), Some(7)));
        assert_eq!((syn.ds, syn.bytes, syn.payload_bytes, syn.tsval), (2, 52, 0, None));
        let answer = segment(&mut known, 1, 40_000, &tcp(700, 0, 0x12, &[]), 0);
        assert_eq!((answer.seq, answer.ack, answer.reply), (0, Some(1), 1));
        let data = segment(&mut known, 0, 40_000, &tcp(0, 701, 0x18, &[]), 1000);
        assert_eq!((data.seq, data.ack, data.payload_bytes), (1, Some(1), 1000));
    }

    #[test]
    fn blocks_stamps_and_counters_are_read_where_they_are_whole() {
        let mut known = known();
        segment(&mut known, 0, 40_000, &tcp(100, 0, 2, &[]), 0);
        let mut both = vec![1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8, 1, 1, 5, 18];
        for edge in [1101u32, 2101, 3101, 4101] {
            both.extend(edge.to_be_bytes());
        }
        let ack = segment(&mut known, 1, 40_000, &tcp(500, 601, 0x10, &both), 0);
        assert_eq!((ack.tsval, ack.tsecr, ack.ack), (Some(9), Some(8), Some(501)));
        assert_eq!((ack.sack1_left, ack.sack1_right), (Some(1001), Some(2001)));
        assert_eq!((ack.sack2_left, ack.sack2_right), (Some(3001), Some(4001)));
        assert_eq!((ack.sack3_left, ack.accecn_ceb), (None, None));
        let counted = [172, 8, 0, 0, 7, 0, 1, 0, 172, 5, 0, 0, 9, 0, 0, 0];
        let ack = segment(&mut known, 1, 40_000, &tcp(501, 601, 0x10, &counted[..8]), 0);
        assert_eq!((ack.accecn_e0b, ack.accecn_ceb, ack.accecn_e1b), (Some(7), Some(256), None));
        let cut = packet(1, 40_000, tap::TCP, &tcp(501, 601, 0x10, &[8, 10, 0, 0]), 0);
        assert_eq!(known.row(&cut), None, "an option that leads out of the header");
        let mut short = packet(1, 40_000, tap::TCP, &tcp(501, 601, 0x10, &counted), 0);
        for many in 0..MOST as u8 {
            short.many = many;
            assert_eq!(known.row(&short).is_some(), many >= 56, "cut at {many}");
        }
    }

    #[test]
    fn a_port_that_is_used_again_is_another_connection() {
        let mut known = known();
        let opened: Vec<u32> = [(40_000, 1), (40_001, 9), (40_000, 1), (40_000, 77)]
            .map(|(port, seq)| segment(&mut known, 0, port, &tcp(seq, 0, 2, &[]), 0).connection)
            .to_vec();
        assert_eq!(opened, [0, 1, 0, 2]);
        // The first of another flow.
        let other = Kept { flow: 0, ..packet(0, 40_000, tap::TCP, &tcp(5, 0, 2, &[]), 0) };
        assert_eq!(known.row(&other).unwrap().connection, 0);
    }

    #[test]
    fn datagrams_and_pings_have_running_numbers() {
        let mut known = known();
        let mut datagram = vec![0; 8];
        datagram.extend(70_000u32.to_le_bytes());
        let row = known.row(&packet(0, 5001, tap::UDP, &datagram, 88)).unwrap();
        assert_eq!((row.seq, row.payload_bytes, row.flags), (70_000, 92, None));
        let mut numbers = Vec::new();
        for low in [0xfffe_u16, 0xffff, 1, 0] {
            known.latest.entry(2).or_insert(0xfff0);
            let [high, low] = low.to_be_bytes();
            let echo = packet(0, 7, tap::ICMP, &[8, 0, 0, 0, 0, 7, high, low], 56);
            numbers.push(known.row(&echo).unwrap().seq);
        }
        assert_eq!(numbers, [0xfffe, 0xffff, 0x1_0001, 0x1_0000]);
    }
}
