//! Packets that one device receives or sends, each with the kernel's timestamp.
//!
//! A packet socket sees received packets on reception. It sees sent packets when the driver gets
//! them: after the queue discipline. The records are in memory shared with the kernel (TPACKET_V3),
//! so a packet costs no system call. Only the first bytes are kept. A filter in the kernel excludes
//! the other direction and packets that are not IP.
//!
//! A key identifies a packet at several places. It contains every header field that no router or
//! queue may change: not TTL, the DS field and checksums.
//!
//! Source: packet(7), Documentation/networking/packet_mmap. Deviation: IPv6 extension headers are
//! not parsed; a packet with one belongs to no flow.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::sys::{self, Instruction, Ring};

/// The header fields of a packet that do not change on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    addresses: [[u8; 16]; 2],
    /// IPv4: total length, identification, fragment, protocol. IPv6: flow label, length, next
    /// header.
    network: [u8; 8],
    transport: [u8; 32],
}

/// A captured packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Time of capture, ns of the time of day.
    pub stamp: i64,
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// Its DS field: DSCP in the upper six bits, ECN in the lower two.
    pub ds: u8,
    /// Identifies the packet at other places.
    pub key: Key,
    /// Addresses, protocol and ports.
    pub five_tuple: FiveTuple,
}

/// Addresses, protocol and ports of a packet, which identify its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FiveTuple {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Protocol number in the IP header.
    pub protocol: u8,
    /// Source and destination ports. For ICMP echo: its identifier, twice. For other packets and
    /// later fragments: 0.
    pub ports: [u16; 2],
}

/// CE: both ECN bits.
pub const CE: u8 = 3;
/// Protocol number of TCP.
pub const TCP: u8 = 6;
/// Protocol number of UDP.
pub const UDP: u8 = 17;
/// Protocol number of ICMP.
pub const ICMP: u8 = 1;
/// Protocol number of ICMPv6.
pub const ICMPV6: u8 = 58;

/// Parses a packet from its first bytes, beginning with the IP header; `None` if the header is
/// incomplete or not IP.
pub fn parse(bytes: &[u8], stamp: i64) -> Option<Packet> {
    match bytes.first()? >> 4 {
        4 => parse_v4(bytes, stamp),
        6 => parse_v6(bytes, stamp),
        _ => None,
    }
}

fn pair(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn parse_v4(bytes: &[u8], stamp: i64) -> Option<Packet> {
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
    Some(with_transport(
        UpperLayer { protocol: bytes[9], later_fragment, bytes: &bytes[header..] },
        Packet {
            stamp,
            bytes: u32::from(pair(bytes, 2)),
            ds: bytes[1],
            key: Key {
                addresses: [source, destination].map(|a| a.to_ipv6_mapped().octets()),
                network,
                transport: [0; 32],
            },
            five_tuple: FiveTuple {
                source: IpAddr::V4(source),
                destination: IpAddr::V4(destination),
                protocol: bytes[9],
                ports: [0; 2],
            },
        },
    ))
}

fn parse_v6(bytes: &[u8], stamp: i64) -> Option<Packet> {
    let header: &[u8; 40] = bytes.get(..40)?.try_into().ok()?;
    let octets = |at: usize| -> [u8; 16] { std::array::from_fn(|i| header[at + i]) };
    let addresses = [octets(8), octets(24)];
    // The first two bytes share the traffic class; the second also contains the upper four bits of
    // the flow label.
    let network = [header[1] & 15, header[2], header[3], header[4], header[5], header[6], 0, 0];
    let ip = |octets: [u8; 16]| IpAddr::V6(Ipv6Addr::from(octets));
    Some(with_transport(
        UpperLayer { protocol: header[6], later_fragment: false, bytes: &bytes[40..] },
        Packet {
            stamp,
            bytes: 40 + u32::from(pair(header, 4)),
            ds: (header[0] & 15) << 4 | header[1] >> 4,
            key: Key { addresses, network, transport: [0; 32] },
            five_tuple: FiveTuple {
                source: ip(addresses[0]),
                destination: ip(addresses[1]),
                protocol: header[6],
                ports: [0; 2],
            },
        },
    ))
}

/// The bytes after the IP header.
struct UpperLayer<'a> {
    protocol: u8,
    later_fragment: bool,
    bytes: &'a [u8],
}

/// Adds the transport header's fields to a packet.
fn with_transport(upper: UpperLayer, mut packet: Packet) -> Packet {
    let bytes = upper.bytes;
    let length = bytes.len().min(32);
    packet.key.transport[..length].copy_from_slice(&bytes[..length]);
    if upper.later_fragment {
        return packet;
    }
    let checksum = match upper.protocol {
        TCP => 16,
        UDP => 6,
        ICMP | ICMPV6 => 2,
        _ => return packet,
    };
    packet.key.transport[checksum..checksum + 2].fill(0);
    if bytes.len() < 8 {
        return packet;
    }
    packet.five_tuple.ports = match (upper.protocol, bytes[0]) {
        (TCP | UDP, _) => [pair(bytes, 0), pair(bytes, 2)],
        (ICMP, 0 | 8) | (ICMPV6, 128 | 129) => [pair(bytes, 4); 2],
        _ => [0; 2],
    };
    packet
}

/// A capture of one device in one direction.
#[derive(Debug)]
pub struct Tap {
    // Dropped first: the ring must be unmapped before the socket is closed.
    ring: Ring,
    fd: OwnedFd,
    lost: u32,
}

/// Direction of the captured packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Packets that the device receives.
    In,
    /// Packets that the device sends.
    Out,
}

const SOL_PACKET: i32 = libc::SOL_PACKET;
const PACKET_RX_RING: i32 = 5;
const PACKET_STATISTICS: i32 = 6;
const PACKET_VERSION: i32 = 10;
const TPACKET_V3: i32 = 2;
/// Bytes of a block; a multiple of any page size in use.
const BLOCK: u32 = 1 << 17;
/// Smallest record size, passed to the ring; the kernel packs records regardless.
const FRAME: u32 = 1 << 11;
/// Bytes kept of a packet: IPv6 and 32 bytes after it, or IPv4 with all options.
const KEPT_BYTES: u32 = 96;

/// The kernel delivers a block that is not full after this time, ms.
pub const RETIRE_MS: u32 = 60;

impl Tap {
    /// Captures at a device of the calling thread's namespace, with this much memory.
    pub fn open(device: &str, direction: Direction, memory_bytes: u32) -> io::Result<Tap> {
        let index = sys::device_index(device)?;
        let fd = sys::packet_socket()?;
        sys::attach_filter(&fd, &filter(direction))?;
        sys::set_option(&fd, SOL_PACKET, PACKET_VERSION, TPACKET_V3)?;
        let blocks = (memory_bytes / BLOCK).max(4);
        // struct tpacket_req3: block size and number, frame size and number, timeout, private
        // bytes, features.
        let request = [BLOCK, blocks, FRAME, BLOCK / FRAME * blocks, RETIRE_MS, 0, 0];
        let request: Vec<u8> = request.iter().flat_map(|v| v.to_ne_bytes()).collect();
        sys::set_option_bytes(&fd, SOL_PACKET, PACKET_RX_RING, &request)?;
        let ring = Ring::map(&fd, BLOCK as usize, blocks as usize)?;
        sys::bind_packet(&fd, index)?;
        Ok(Tap { ring, fd, lost: 0 })
    }

    /// Passes every packet of the ready blocks to `each`.
    pub fn drain(&mut self, mut each: impl FnMut(Packet)) {
        self.drain_bytes(|packet, _| each(packet));
    }

    /// Like `drain`, and passes the kept bytes of each packet too, beginning with the IP header.
    pub fn drain_bytes(&mut self, mut each: impl FnMut(Packet, &[u8])) {
        while self
            .ring
            .read_block(|block| packets(block).for_each(|(packet, bytes)| each(packet, bytes)))
        {
        }
    }

    /// Returns the number of packets that the ring had no room for since the tap was opened.
    pub fn lost(&mut self) -> io::Result<u32> {
        // struct tpacket_stats_v3: packets, drops, freezes. The kernel resets it on each read.
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

/// Returns a filter that accepts `KEPT_BYTES` bytes of IP packets of one direction.
fn filter(direction: Direction) -> [Instruction; 7] {
    // Ancillary data: protocol and packet type, which is 4 for sent packets.
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
        step(RETURN, KEPT_BYTES),
        step(RETURN, 0),
    ]
}

/// Returns the packets of a block. The block's header contains their number and the first offset;
/// each record contains the offset of the next.
fn packets(block: &[u8]) -> impl Iterator<Item = (Packet, &[u8])> + '_ {
    let word = |at: usize| Some(u32::from_ne_bytes(*block.get(at..)?.first_chunk()?));
    // An offset outside the block becomes the block's end: 32-bit sums do not overflow.
    let within = |given: u32| usize::try_from(given).unwrap_or(usize::MAX).min(block.len());
    let count = word(12).unwrap_or(0);
    let mut at = within(word(16).unwrap_or(0));
    (0..count).filter_map(move |_| {
        let here = at;
        at = (at + within(word(here)?)).min(block.len());
        let stamp = i64::from(word(here + 4)?) * 1_000_000_000 + i64::from(word(here + 8)?);
        let length = within(word(here + 12)?);
        let network = here
            + usize::from(u16::from_ne_bytes([*block.get(here + 26)?, *block.get(here + 27)?]));
        let bytes = block.get(network..network + length)?;
        Some((parse(bytes, stamp)?, bytes))
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Builds an IPv4 packet: ds, identification, TTL, protocol, then the payload.
    pub(crate) fn ipv4(ds: u8, id: u16, ttl: u8, protocol: u8, above: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x45, ds];
        bytes.extend((20 + above.len() as u16).to_be_bytes());
        bytes.extend(id.to_be_bytes());
        bytes.extend([0x40, 0, ttl, protocol, 0xab, 0xcd, 10, 0, 1, 1, 10, 0, 2, 1]);
        bytes.extend(above);
        bytes
    }

    /// Builds a TCP header with this sequence number and checksum, and eight bytes of data.
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
        let packet = parse(&ipv4(0x2a, 7, 64, TCP, &tcp(1000, 0xbeef)), 5).unwrap();
        assert_eq!((packet.stamp, packet.bytes, packet.ds), (5, 48, 0x2a));
        assert_eq!(packet.five_tuple.source.to_string(), "10.0.1.1");
        assert_eq!((packet.five_tuple.protocol, packet.five_tuple.ports), (TCP, [40_000, 5001]));
        let ping = [8, 0, 1, 2, 0, 77, 0, 3];
        assert_eq!(parse(&ipv4(0, 7, 64, ICMP, &ping), 0).unwrap().five_tuple.ports, [77, 77]);
        let unreachable = [3, 1, 1, 2, 0, 77, 0, 3];
        assert_eq!(parse(&ipv4(0, 7, 64, ICMP, &unreachable), 0).unwrap().five_tuple.ports, [0, 0]);
    }

    #[test]
    fn fields_that_routers_change_are_not_in_the_key() {
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
        let packet = parse(&bytes, 0).unwrap();
        assert_eq!((packet.bytes, packet.ds, packet.five_tuple.ports), (52, 0x22, [3000, 3001]));
        assert_eq!(packet.five_tuple.destination.to_string(), "fd00::2");
        // CE in the traffic class does not change the key.
        bytes[1] |= 0x10;
        let marked = parse(&bytes, 0).unwrap();
        assert_eq!((marked.key, marked.ds & CE), (packet.key, CE));
    }

    #[test]
    fn a_truncated_packet_causes_no_panic() {
        let packet = ipv4(0, 7, 64, TCP, &tcp(1, 2));
        for end in 0..packet.len() {
            assert_eq!(parse(&packet[..end], 0).is_some(), end >= 20);
        }
        assert_eq!(parse(&[0x4f; 40], 0), None);
    }

    #[test]
    fn a_block_is_read_packet_by_packet() {
        // The block's header takes 48 bytes. In each record, 48 bytes of header and the link
        // address precede the packet at 80.
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
        let stamps: Vec<i64> = packets(&block).map(|(packet, _)| packet.stamp).collect();
        assert_eq!(stamps, [3_000_000_001, 3_000_000_002]);
        // Records with offsets outside the block are skipped.
        block[16..20].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(packets(&block).count(), 0);
    }
}
