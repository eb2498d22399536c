//! ICMP echo: sends requests, recognises replies, and captures the requests that reach the far end.
//!
//! An unprivileged socket is tried first: its kernel delivers only our own replies. If it is
//! refused (net.ipv4.ping_group_range), a raw socket does the same at the cost of more copies.
//! Replies have the kernel's receive timestamp.
//!
//! Source: RFC 792, RFC 4443 (ICMPv6), RFC 1071 (checksum).

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::sys::{self, Kind};

/// Bytes of an ICMP echo header.
pub const HEADER: usize = 8;
/// The raw level of socket options, and its filter's name (linux/icmp.h; the numbers are the ABI).
const SOL_RAW: i32 = 255;
const ICMP_FILTER: i32 = 1;
const ICMP6_FILTER: i32 = 1;

/// ICMP echo types of an address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Types {
    request: u8,
    reply: u8,
}

fn types(family: IpAddr) -> Types {
    if family.is_ipv4() {
        Types { request: 8, reply: 0 }
    } else {
        Types { request: 128, reply: 129 }
    }
}

/// The Internet checksum: the complement of the one's complement sum of 16-bit words.
pub fn checksum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | w.get(1).map_or(0, |&b| u32::from(b)));
    let mut sum: u64 = words.map(u64::from).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Returns an echo packet of `size` bytes of ICMP in all, with zeros after the header.
fn echo(kind: u8, identifier: u16, sequence: u16, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size.max(HEADER)];
    bytes[0] = kind;
    bytes[4..6].copy_from_slice(&identifier.to_be_bytes());
    bytes[6..8].copy_from_slice(&sequence.to_be_bytes());
    let sum = checksum(&bytes);
    bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// Returns identifier and sequence of an echo packet of type `kind`.
fn parse(bytes: &[u8], kind: u8) -> Option<(u16, u16)> {
    let header = bytes.get(..HEADER)?;
    (header[0] == kind && header[1] == 0).then(|| {
        (u16::from_be_bytes([header[4], header[5]]), u16::from_be_bytes([header[6], header[7]]))
    })
}

/// Returns the ICMP part of an IPv4 packet.
fn behind_ipv4(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(usize::from(bytes.first()? & 15) * 4..)
}

/// Sends requests to one address and recognises the replies.
#[derive(Debug)]
pub struct Pinger {
    fd: OwnedFd,
    to: SocketAddr,
    raw: bool,
    identifier: u16,
}

impl Pinger {
    /// Creates a pinger from `from` to `to`, with this identifier, in the calling thread's
    /// namespace.
    pub fn new(from: IpAddr, to: IpAddr, identifier: u16, ds: u8) -> io::Result<Pinger> {
        let (fd, raw) = match sys::socket(Kind::Echo, from) {
            Ok(fd) => (fd, false),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => (Pinger::raw(from)?, true),
            Err(error) => return Err(error),
        };
        // An unprivileged socket's port is its identifier.
        sys::bind(&fd, SocketAddr::new(from, if raw { 0 } else { identifier }))?;
        sys::set_option(&fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        crate::bulk::set_ds(&fd, from, ds)?;
        Ok(Pinger { fd, to: SocketAddr::new(to, 0), raw, identifier })
    }

    fn raw(family: IpAddr) -> io::Result<OwnedFd> {
        let fd = sys::socket(Kind::RawIcmp, family).map_err(|e| match e.kind() {
            ErrorKind::PermissionDenied => io::Error::new(
                ErrorKind::PermissionDenied,
                "neither an unprivileged ICMP socket (sysctl net.ipv4.ping_group_range) nor a raw one (CAP_NET_RAW) is allowed",
            ),
            _ => e,
        })?;
        pass_only(&fd, family, types(family).reply)?;
        Ok(fd)
    }

    /// Whether the pinger uses a raw socket.
    pub fn is_raw(&self) -> bool {
        self.raw
    }

    /// Sends the request with this sequence number. `size` counts the ICMP header but not the IP
    /// header.
    pub fn send(&self, sequence: u16, size: usize) -> io::Result<()> {
        let packet = echo(types(self.to.ip()).request, self.identifier, sequence, size);
        sys::send_to(&self.fd, &packet, self.to).map(drop)
    }

    /// Returns the sequence number of the request that this datagram answers; `None` if it answers
    /// none of ours.
    pub fn reply(&self, bytes: &[u8]) -> Option<u16> {
        let icmp = if self.raw && self.to.is_ipv4() { behind_ipv4(bytes)? } else { bytes };
        let (identifier, sequence) = parse(icmp, types(self.to.ip()).reply)?;
        (identifier == self.identifier).then_some(sequence)
    }
}

impl Pinger {
    /// Returns the sequence number of a request of ours that an ICMP error quotes. `bytes` begins
    /// after the IP header.
    pub fn request(&self, bytes: &[u8]) -> Option<u16> {
        let (identifier, sequence) = parse(bytes, types(self.to.ip()).request)?;
        (identifier == self.identifier).then_some(sequence)
    }
}

impl AsRawFd for Pinger {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// Captures the requests that reach a host. The kernel answers them by itself; their timestamps
/// give the one-way delays.
#[derive(Debug)]
pub struct EchoListener {
    fd: OwnedFd,
    family: IpAddr,
}

impl EchoListener {
    /// Captures requests to `at` in the calling thread's namespace. Needs the privilege for raw
    /// sockets.
    pub fn new(at: IpAddr) -> io::Result<EchoListener> {
        let fd = sys::socket(Kind::RawIcmp, at)?;
        pass_only(&fd, at, types(at).request)?;
        sys::bind(&fd, SocketAddr::new(at, 0))?;
        sys::set_option(&fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        Ok(EchoListener { fd, family: at })
    }

    /// Returns identifier and sequence number of a request.
    pub fn request(&self, bytes: &[u8]) -> Option<(u16, u16)> {
        let icmp = if self.family.is_ipv4() { behind_ipv4(bytes)? } else { bytes };
        parse(icmp, types(self.family).request)
    }
}

impl AsRawFd for EchoListener {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// Lets only one ICMP type into a raw socket. A set bit blocks its type.
fn pass_only(fd: &OwnedFd, family: IpAddr, kind: u8) -> io::Result<()> {
    if family.is_ipv4() {
        let mask = !(1u32 << kind);
        return sys::set_option_bytes(fd, SOL_RAW, ICMP_FILTER, &mask.to_ne_bytes());
    }
    let mut words = [u32::MAX; 8];
    words[usize::from(kind / 32)] &= !(1 << (kind % 32));
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
    sys::set_option_bytes(fd, libc::IPPROTO_ICMPV6, ICMP6_FILTER, &bytes)
}

/// Extends the lower 16 bits of a sequence number: the latest number up to `sent` with these bits.
pub fn unwrap_sequence(low: u16, sent: u64) -> u64 {
    sent.wrapping_sub(u64::from((sent as u16).wrapping_sub(low)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_rfc_1071() {
        // The RFC's worked example: 0001 f203 f4f5 f6f7 sum to ddf2.
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        // An odd byte is padded with zero; a packet with its own checksum sums to zero.
        assert_eq!(checksum(&[0x12]), !0x1200);
        assert_eq!(checksum(&echo(8, 7, 300, 57)), 0);
    }

    #[test]
    fn only_complete_echoes_of_the_given_type_are_recognised() {
        let reply = echo(0, 7, 300, 64);
        assert_eq!(parse(&reply, 0), Some((7, 300)));
        assert_eq!(parse(&reply, 8), None);
        assert_eq!(parse(&reply[..7], 0), None);
        let mut packet = vec![0x46; 24];
        packet.extend(&reply);
        assert_eq!(parse(behind_ipv4(&packet).unwrap(), 0), Some((7, 300)));
        assert_eq!(behind_ipv4(&[0x4f; 20]), None);
    }

    #[test]
    fn a_sequence_number_is_extended_to_64_bits() {
        assert_eq!(unwrap_sequence(5, 5), 5);
        assert_eq!(unwrap_sequence(65_535, 65_536), 65_535);
        assert_eq!(unwrap_sequence(2, 65_536 * 3 + 10), 65_536 * 3 + 2);
    }
}
