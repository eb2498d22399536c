//! The headers of packets, as rows of the table `headers`.
//!
//! The model counts segments; headers count bytes. A connection's SYN has number 0, and its first
//! byte of data 1, with or without a handshake. Where data flow in one direction, a data segment
//! acknowledges only the SYN of the other side. Timestamps count ms from the start of the run.

use crate::ends::TcpHeaders;
use crate::host::Host;
use crate::payload::{NO_ECHO, Parcel, SackPool, ace, kind};
use qdisc::DsField;
use tables::headers::Row;
use tables::{FlowId, LinkId};
use traffic::UDP_HEADERS;
use units::Time;

/// IP's protocol numbers.
const ICMP: u32 = 1;
const TCP: u32 = 6;
const UDP: u32 = 17;
/// Bytes of the headers of IP and TCP without options.
const IP_AND_TCP: u32 = 40;
/// Flags of TCP.
const ACK: u32 = 0x10;
const PSH: u32 = 0x08;
const SYN: u32 = 0x02;
/// CWR and ECE of a SYN that requests ECN (RFC 3168, section 6.1.1).
const REQUESTS_ECN: u32 = 0xc0;
/// The position of ACE (AE, CWR and ECE) among the flags, and the bit of CWR.
const ACE_SHIFT: u32 = 6;
const CWR: u32 = 0x80;

/// The row of a packet that leaves the queue of a link at `at`, with its DS field at that time.
pub fn row(
    packet: &Parcel,
    (link, ds, at): (u32, DsField, Time),
    host: &Host,
    sacks: &SackPool,
) -> Row {
    let plain = Row {
        t_ns: at.0,
        link: LinkId(link),
        flow: FlowId(packet.flow / 2),
        reply: packet.flow % 2,
        connection: packet.epoch.into(),
        protocol: UDP,
        bytes: packet.size,
        // An echo's headers, of IP and ICMP, have the same length.
        payload_bytes: packet.size.saturating_sub(UDP_HEADERS),
        ds: ds.0.into(),
        seq: packet.seq,
        ..Row::default()
    };
    match (packet.kind(), host.tcp_headers(packet)) {
        (kind::DATA, Some(of)) => data(packet, &of, sacks, plain),
        (kind::ACK, Some(of)) => ack(packet, &of, sacks, plain),
        (kind::PING | kind::PONG, _) => Row { protocol: ICMP, ..plain },
        _ => plain,
    }
}

/// The number of a segment's first byte, modulo 2^32.
fn first_byte(segment: u32, of: &TcpHeaders) -> u32 {
    (of.first_byte(segment) as u32).wrapping_add(1)
}

/// The last ms no later than `at` whose lowest 16 bits are `low`, which is all that the model
/// stores.
fn whole_millis(low: u16, at: u64) -> u64 {
    let now = at / 1_000_000;
    (now - u64::from((now as u16).wrapping_sub(low))) & 0xffff_ffff
}

/// A timestamp's clock, modulo 2^32.
fn millis(stamp: Time) -> u64 {
    (stamp.0 / 1_000_000) & 0xffff_ffff
}

fn of_syn(packet: &Parcel, of: &TcpHeaders, row: Row) -> Row {
    if packet.kind & kind::SYN == 0 {
        return row;
    }
    // The MSS of a segment without options (RFC 6691, section 2).
    let most = (of.mss + of.bytes).saturating_sub(IP_AND_TCP);
    Row {
        mss: Some(most.into()),
        scale: Some(of.scale.into()),
        sack_permitted: of.sack.then_some(1),
        ..row
    }
}

fn data(packet: &Parcel, of: &TcpHeaders, sacks: &SackPool, row: Row) -> Row {
    let syn = packet.kind & kind::SYN != 0;
    let (blocks, _) = sacks.options(packet);
    let options = if blocks.is_empty() { 0 } else { 4 + 8 * blocks.len() as u32 };
    let payload_bytes = if syn { 0 } else { packet.size.saturating_sub(of.bytes + options) };
    let carried = sacks.carried(packet);
    let flag = |bit: u8, flag: u32| if packet.kind & bit != 0 { flag } else { 0 };
    let flags = if payload_bytes > 0 {
        let ece = carried.map_or(0, |ack| u32::from(ack.ace) << ACE_SHIFT);
        ACK | flag(kind::PUSH, PSH) | flag(kind::CWR, CWR) | ece
    } else {
        let ace = u32::from(ace(packet)) << ACE_SHIFT;
        let bits = if syn && ace == CWR { REQUESTS_ECN } else { ace };
        bits | if syn { SYN } else { ACK }
    };
    let echo = || match packet.window {
        NO_ECHO => 0,
        echo => whole_millis(echo as u16, row.t_ns),
    };
    let seq = if syn { 0 } else { first_byte(packet.seq, of) };
    let acked = carried.map_or(0, |ack| of.other_byte(ack.ack) as u32);
    let row = Row { window: carried.map(|ack| ack.window >> of.scale), ..row };
    let row = edges(blocks, |segment| (of.other_byte(segment) as u32).wrapping_add(1), row);
    let row = of_syn(packet, of, row);
    Row {
        protocol: TCP,
        payload_bytes,
        seq,
        ack: (!syn).then_some(acked.wrapping_add(1).into()),
        flags: Some(flags.into()),
        tsval: of.timestamps.then(|| millis(packet.stamp)),
        tsecr: of.timestamps.then(echo),
        ..row
    }
}

/// Adds SACK blocks, whose edges are segments; `next` is the number of a segment's first byte.
fn edges(blocks: &[(u32, u32)], next: impl Fn(u32) -> u32, row: Row) -> Row {
    let left = |n: usize| blocks.get(n).map(|block| next(block.0).into());
    let right = |n: usize| blocks.get(n).map(|block| next(block.1).into());
    Row {
        sack1_left: left(0),
        sack1_right: right(0),
        sack2_left: left(1),
        sack2_right: right(1),
        sack3_left: left(2),
        sack3_right: right(2),
        sack4_left: left(3),
        sack4_right: right(3),
        ..row
    }
}

fn ack(packet: &Parcel, of: &TcpHeaders, sacks: &SackPool, row: Row) -> Row {
    let syn = packet.kind & kind::SYN != 0;
    let next = |segment: u32| first_byte(segment, of);
    let (blocks, accecn) = sacks.options(packet);
    let counter = |n: usize| {
        let has = accecn.filter(|option| usize::from(option.fields) > n);
        has.map(|option| option.bytes[n].into())
    };
    // The window of a SYN is never scaled (RFC 7323, section 2.2).
    let window = if syn { of.syn_window.into() } else { packet.window >> 16 };
    let row = edges(blocks, next, of_syn(packet, of, row));
    let own = (of.other_byte(sacks.snd_nxt(packet)) as u32).wrapping_add(1);
    Row {
        protocol: TCP,
        payload_bytes: 0,
        seq: if syn { 0 } else { own },
        ack: Some(next(packet.seq).into()),
        flags: Some((ACK | u32::from(ace(packet)) << ACE_SHIFT | if syn { SYN } else { 0 }).into()),
        window: Some(window.into()),
        tsval: of.timestamps.then(|| whole_millis(packet.window as u16, row.t_ns)),
        tsecr: of.timestamps.then(|| millis(packet.stamp)),
        accecn_e1b: counter(0),
        accecn_ceb: counter(1),
        accecn_e0b: counter(2),
        ..row
    }
}
