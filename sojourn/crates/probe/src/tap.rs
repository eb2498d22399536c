//! Packets as one device receives or sends them, each with the kernel's stamp.
//!
//! A packet socket sees what a device receives when it is received, and what it sends when its
//! driver gets it: after the queue discipline. The records lie in memory shared with the kernel
//! (TPACKET_V3), so a packet costs no system call. Only the first bytes are kept; a filter in the
//! kernel leaves out the other direction and what is not IP.
//!
//! A packet is known again at another place by a key: everything in its headers that no router or
//! queue may change. TTL, the DS field and checksums are left out.
//!
//! Source: packet(7), Documentation/networking/packet_mmap. Deviation: IPv6 extension headers are
//! not walked, such a packet belongs to no flow.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::sys::{self, Instruction, Ring};

/// What does not change of a packet on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    addresses: [[u8; 16]; 2],
    /// IPv4: total length, identification, fragment, protocol. IPv6: flow label, length, next
    /// header.
    network: [u8; 8],
    transport: [u8; 32],
}

/// A packet that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When, ns of the time of day.
    pub stamp: i64,
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// Its DS field: DSCP above, ECN below.
    pub ds: u8,
    /// By which it is known again.
    pub key: Key,
    /// What its headers say it belongs to.
    pub kin: Kin,
}

/// What tells a packet's flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kin {
    /// From.
    pub source: IpAddr,
    /// To.
    pub destination: IpAddr,
    /// IP's number of the protocol above it.
    pub protocol: u8,
    /// Ports of source and destination; ICMP echo: its identifier, twice; otherwise, and in later
    /// fragments, 0.
    pub ports: [u16; 2],
}

/// CE: both ECN bits.
pub const CE: u8 = 3;
/// IP's numbers of the protocols.
pub const TCP: u8 = 6;
/// UDP.
pub const UDP: u8 = 17;
/// ICMP.
pub const ICMP: u8 = 1;
/// ICMPv6.
pub const ICMPV6: u8 = 58;

/// A packet from its first bytes, beginning with the IP header; `None` if that is not whole or not
/// IP.
pub fn parse(bytes: &[u8], stamp: i64) -> Option<Seen> {
    match bytes.first()? >> 4 {
        4 => parse_v4(bytes, stamp),
        6 => parse_v6(bytes, stamp),
        _ => None,
    }
}

fn pair(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn parse_v4(bytes: &[u8], stamp: i64) -> Option<Seen> {
    let header = usize::from(bytes[0] & 15) * 4;
    if header < 20 || bytes.len() < header {
        return None;
    }
    let address = |at: usize| Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]);
    let mut network = [0; 8];
    network[..6].copy_from_slice(&bytes[2..8]);
    network[6] = bytes[9];
    let later_fragment = pair(bytes, 6) & 0x1fff != 0;
    let (source, destination) = (address(12), address(16));
    Some(seen(
        Above { protocol: bytes[9], later_fragment, bytes: &bytes[header..] },
        Seen {
            stamp,
            bytes: u32::from(pair(bytes, 2)),
            ds: bytes[1],
            key: Key {
                addresses: [source, destination].map(|a| a.to_ipv6_mapped().octets()),
                network,
                transport: [0; 32],
            },
            kin: Kin {
                source: IpAddr::V4(source),
                destination: IpAddr::V4(destination),
                protocol: bytes[9],
                ports: [0; 2],
            },
        },
    ))
}

fn parse_v6(bytes: &[u8], stamp: i64) -> Option<Seen> {
    let header: &[u8; 40] = bytes.get(..40)?.try_into().ok()?;
    let octets = |at: usize| -> [u8; 16] { std::array::from_fn(|i| header[at + i]) };
    let addresses = [octets(8), octets(24)];
    // The traffic class lies across the first two bytes; the flow label's upper four bits share the
    // second.
    let network = [header[1] & 15, header[2], header[3], header[4], header[5], header[6], 0, 0];
    let ip = |octets: [u8; 16]| IpAddr::V6(Ipv6Addr::from(octets));
    Some(seen(
        Above { protocol: header[6], later_fragment: false, bytes: &bytes[40..] },
        Seen {
            stamp,
            bytes: 40 + u32::from(pair(header, 4)),
            ds: (header[0] & 15) << 4 | header[1] >> 4,
            key: Key { addresses, network, transport: [0; 32] },
            kin: Kin {
                source: ip(addresses[0]),
                destination: ip(addresses[1]),
                protocol: header[6],
                ports: [0; 2],
            },
        },
    ))
}

/// What is above IP.
struct Above<'a> {
    protocol: u8,
    later_fragment: bool,
    bytes: &'a [u8],
}

/// Adds to a packet what is above IP.
fn seen(above: Above, mut seen: Seen) -> Seen {
    let bytes = above.bytes;
    let kept = bytes.len().min(32);
    seen.key.transport[..kept].copy_from_slice(&bytes[..kept]);
    if above.later_fragment {
        return seen;
    }
    let checksum = match above.protocol {
        TCP => 16,
        UDP => 6,
        ICMP | ICMPV6 => 2,
        _ => return seen,
    };
    seen.key.transport[checksum..checksum + 2].fill(0);
    if bytes.len() < 8 {
        return seen;
    }
    seen.kin.ports = match (above.protocol, bytes[0]) {
        (TCP | UDP, _) => [pair(bytes, 0), pair(bytes, 2)],
        (ICMP, 0 | 8) | (ICMPV6, 128 | 129) => [pair(bytes, 4); 2],
        _ => [0; 2],
    };
    seen
}

/// One device, one direction.
#[derive(Debug)]
pub struct Tap {
    // Unmapped before the socket is closed.
    ring: Ring,
    fd: OwnedFd,
    lost: u32,
}

/// Which packets of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Those it receives.
    In,
    /// Those it sends.
    Out,
}

const SOL_PACKET: i32 = libc::SOL_PACKET;
const PACKET_RX_RING: i32 = 5;
const PACKET_STATISTICS: i32 = 6;
const PACKET_VERSION: i32 = 10;
const TPACKET_V3: i32 = 2;
/// Bytes of a block; a multiple of any page size in use.
const BLOCK: u32 = 1 << 17;
/// Least size of a record as the ring is told; records are packed whatever it is.
const FRAME: u32 = 1 << 11;
/// Bytes kept of a packet: IPv6 and 32 of what is above, or IPv4 with every option.
const KEPT: u32 = 96;

/// A block that is not full is handed over after this long, ms.
pub const RETIRE_MS: u32 = 60;

impl Tap {
    /// On a device of the calling thread's namespace, with this much memory.
    pub fn open(device: &str, direction: Direction, memory_bytes: u32) -> io::Result<Tap> {
        let index = sys::device_index(device)?;
        let fd = sys::packet_socket()?;
        sys::attach_filter(&fd, &filter(direction))?;
        sys::set_option(&fd, SOL_PACKET, PACKET_VERSION, TPACKET_V3)?;
        let blocks = (memory_bytes / BLOCK).max(4);
        // tpacket_req3: block size and number, frame size and number, timeout, private bytes,
        // features.
        let asked = [BLOCK, blocks, FRAME, BLOCK / FRAME * blocks, RETIRE_MS, 0, 0];
        let asked: Vec<u8> = asked.iter().flat_map(|v| v.to_ne_bytes()).collect();
        sys::set_option_bytes(&fd, SOL_PACKET, PACKET_RX_RING, &asked)?;
        let ring = Ring::map(&fd, BLOCK as usize, blocks as usize)?;
        sys::bind_packet(&fd, index)?;
        Ok(Tap { ring, fd, lost: 0 })
    }

    /// Hands every packet of the blocks that are ready to `each`.
    pub fn drain(&mut self, mut each: impl FnMut(Seen)) {
        self.drain_bytes(|seen, _| each(seen));
    }

    /// The same with what was kept of each packet, from its IP header on.
    pub fn drain_bytes(&mut self, mut each: impl FnMut(Seen, &[u8])) {
        while self.ring.read_block(|block| packets(block).for_each(|(seen, kept)| each(seen, kept)))
        {
        }
    }

    /// Packets that found no room since the tap was opened.
    pub fn lost(&mut self) -> io::Result<u32> {
        // tpacket_stats_v3: packets, drops, freezes; reading clears it.
        let mut stats = [0; 12];
        sys::option_bytes(&self.fd, SOL_PACKET, PACKET_STATISTICS, &mut stats)?;
        self.lost += u32::from_ne_bytes([stats[4], stats[5], stats[6], stats[7]]);
        Ok(self.lost)
    }
}

impl AsRawFd for Tap {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// Accepts `KEPT` bytes of IP packets of the direction.
fn filter(direction: Direction) -> [Instruction; 7] {
    // Ancillary data: protocol and packet type, which is 4 for what the device sends.
    const LOAD_HALF: u16 = 0x28;
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const PROTOCOL: u32 = 0xffff_f000;
    const PACKET_TYPE: u32 = 0xffff_f004;
    let step = |code, value| Instruction { code, if_true: 0, if_false: 0, value };
    let when =
        |value, if_true, if_false| Instruction { code: JUMP_IF_EQUAL, if_true, if_false, value };
    let (if_sent, if_received) = if direction == Direction::Out { (0, 1) } else { (1, 0) };
    [
        step(LOAD_HALF, PROTOCOL),
        when(libc::ETH_P_IP as u32, 1, 0),
        when(libc::ETH_P_IPV6 as u32, 0, 3),
        step(LOAD_WORD, PACKET_TYPE),
        when(4, if_sent, if_received),
        step(RETURN, KEPT),
        step(RETURN, 0),
    ]
}

/// The packets of a block: its header tells their number and the first one's place, each tells the
/// next one's.
fn packets(block: &[u8]) -> impl Iterator<Item = (Seen, &[u8])> + '_ {
    let word = |at: usize| Some(u32::from_ne_bytes(*block.get(at..)?.first_chunk()?));
    // What points outside points to the end: sums of 32 bits do not overflow.
    let within = |given: u32| usize::try_from(given).unwrap_or(usize::MAX).min(block.len());
    let count = word(12).unwrap_or(0);
    let mut at = within(word(16).unwrap_or(0));
    (0..count).filter_map(move |_| {
        let here = at;
        at = (at + within(word(here)?)).min(block.len());
        let stamp = i64::from(word(here + 4)?) * 1_000_000_000 + i64::from(word(here + 8)?);
        let kept = within(word(here + 12)?);
        let network = here
            + usize::from(u16::from_ne_bytes([*block.get(here + 26)?, *block.get(here + 27)?]));
        let kept = block.get(network..network + kept)?;
        Some((parse(kept, stamp)?, kept))
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An IPv4 packet by hand: ds, identification, TTL, protocol, then what is above IP.
    pub(crate) fn ipv4(ds: u8, id: u16, ttl: u8, protocol: u8, above: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x45, ds];
        bytes.extend((20 + above.len() as u16).to_be_bytes());
        bytes.extend(id.to_be_bytes());
        bytes.extend([0x40, 0, ttl, protocol, 0xab, 0xcd, 10, 0, 1, 1, 10, 0, 2, 1]);
        bytes.extend(above);
        bytes
    }

    /// A TCP header with this sequence number and checksum, and eight bytes of data.
    pub(crate) fn tcp(seq: u32, checksum: u16) -> Vec<u8> {
        let mut bytes = vec![0x9c, 0x40, 0x13, 0x89];
        bytes.extend(seq.to_be_bytes());
        bytes.extend([0, 0, 0, 9, 0x50, 0x10, 0, 64]);
        bytes.extend(checksum.to_be_bytes());
        bytes.extend([0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        bytes
    }

    #[test]
    fn headers_are_read() {
        let seen = parse(&ipv4(0x2a, 7, 64, TCP, &tcp(1000, 0xbeef)), 5).unwrap();
        assert_eq!((seen.stamp, seen.bytes, seen.ds), (5, 48, 0x2a));
        assert_eq!(seen.kin.source.to_string(), "10.0.1.1");
        assert_eq!((seen.kin.protocol, seen.kin.ports), (TCP, [40_000, 5001]));
        let ping = [8, 0, 1, 2, 0, 77, 0, 3];
        assert_eq!(parse(&ipv4(0, 7, 64, ICMP, &ping), 0).unwrap().kin.ports, [77, 77]);
        let unreachable = [3, 1, 1, 2, 0, 77, 0, 3];
        assert_eq!(parse(&ipv4(0, 7, 64, ICMP, &unreachable), 0).unwrap().kin.ports, [0, 0]);
    }

    #[test]
    fn what_routers_and_queues_change_does_not_change_the_key() {
        let before = parse(&ipv4(0x02, 7, 64, TCP, &tcp(1000, 0xbeef)), 5).unwrap();
        let after = parse(&ipv4(0x03, 7, 63, TCP, &tcp(1000, 0x1234)), 9).unwrap();
        assert_eq!(before.key, after.key);
        let again = parse(&ipv4(0x02, 8, 64, TCP, &tcp(1000, 0xbeef)), 5).unwrap();
        assert_ne!(before.key, again.key, "a retransmission has another identification");
        let next = parse(&ipv4(0x02, 7, 64, TCP, &tcp(2448, 0xbeef)), 5).unwrap();
        assert_ne!(before.key, next.key);
    }

    #[test]
    fn ipv6_is_read() {
        let mut bytes = vec![0x62, 0x25, 0x43, 0x21, 0, 12, UDP, 64];
        bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        bytes.extend([0x0b, 0xb8, 0x0b, 0xb9, 0, 12, 9, 9, 1, 2, 3, 4]);
        let seen = parse(&bytes, 0).unwrap();
        assert_eq!((seen.bytes, seen.ds, seen.kin.ports), (52, 0x22, [3000, 3001]));
        assert_eq!(seen.kin.destination.to_string(), "fd00::2");
        // CE in the traffic class: the key stays.
        bytes[1] |= 0x10;
        let marked = parse(&bytes, 0).unwrap();
        assert_eq!((marked.key, marked.ds & CE), (seen.key, CE));
    }

    #[test]
    fn a_packet_cut_anywhere_is_no_panic() {
        let whole = ipv4(0, 7, 64, TCP, &tcp(1, 2));
        for end in 0..whole.len() {
            assert_eq!(parse(&whole[..end], 0).is_some(), end >= 20);
        }
        assert_eq!(parse(&[0x4f; 40], 0), None);
    }

    #[test]
    fn a_block_is_walked_packet_by_packet() {
        // The block's header in 48 bytes, then records: 48 bytes of header, the link address, the
        // packet at 80.
        let mut block = vec![0; 48];
        block[12..16].copy_from_slice(&2u32.to_ne_bytes());
        block[16..20].copy_from_slice(&48u32.to_ne_bytes());
        for seq in [1, 2] {
            let packet = ipv4(0, 7, 64, TCP, &tcp(seq, 0));
            let mut record = vec![0; 80];
            record[..4].copy_from_slice(&128u32.to_ne_bytes());
            record[4..8].copy_from_slice(&3u32.to_ne_bytes());
            record[8..12].copy_from_slice(&seq.to_ne_bytes());
            record[12..16].copy_from_slice(&(packet.len() as u32).to_ne_bytes());
            record[26..28].copy_from_slice(&80u16.to_ne_bytes());
            record.extend(&packet);
            record.resize(128, 0);
            block.extend(record);
        }
        let stamps: Vec<i64> = packets(&block).map(|(seen, _)| seen.stamp).collect();
        assert_eq!(stamps, [3_000_000_001, 3_000_000_002]);
        // Lengths that point outside are skipped, not followed.
        block[16..20].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(packets(&block).count(), 0);
    }
}
