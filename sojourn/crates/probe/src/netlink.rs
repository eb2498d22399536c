//! Queue disciplines and device counters from the kernel by netlink: the numbers that `tc -s qdisc`
//! and `ip -s link` print, without starting a program for each sample.
//!
//! The numbers of one kind of discipline (CoDel's count, RED's marks) are returned as the kernel's
//! bytes. Their layout depends on the kind, and the reader of the results knows the kinds.
//!
//! Source: netlink(7), rtnetlink(7), linux/gen_stats.h. Deviations: none.

use std::io::{self, Error, ErrorKind};
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use crate::sys;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP: u16 = 0x300;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;
const NLA_F_NESTED: u16 = 0x8000;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_STAB: u16 = 8;
const TCA_STAB_BASE: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
const TCA_STATS_APP: u16 = 4;
const TCA_STATS_PKT64: u16 = 8;
const IFLA_IFNAME: u16 = 3;
const IFLA_STATS64: u16 = 23;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
/// Bytes of nlmsghdr, tcmsg, ifinfomsg and rtmsg.
const HEADER: usize = 16;
const TCMSG: usize = 20;
const IFINFOMSG: usize = 16;
const RTMSG: usize = 12;

/// A queue discipline and its current counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Qdisc {
    /// Index of its device.
    pub device: u32,
    /// Its handle, `major << 16`.
    pub handle: u32,
    /// Its parent: a class, or `0xffff_ffff` for the root.
    pub parent: u32,
    /// Its kind: `fq_codel`.
    pub kind: String,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Queued now, packets.
    pub backlog_packets: u32,
    /// Queued now, bytes.
    pub backlog_bytes: u32,
    /// Packets dropped.
    pub drops: u32,
    /// Packets requeued because the device was busy.
    pub requeues: u32,
    /// Times it was over its limit or rate, or marked; the kind defines the meaning.
    pub overlimits: u32,
    /// Statistics of its kind (TCA_STATS_APP), in the kernel's layout.
    pub own: Vec<u8>,
    /// Its parameters (TCA_OPTIONS), in the kernel's layout. Some kinds report changing state here
    /// (adaptive RED's probability).
    pub options: Vec<u8>,
}

/// A queue discipline to create.
#[derive(Clone, Copy, Debug)]
pub struct NewQdisc<'a> {
    /// Index of its device.
    pub device: u32,
    /// Its handle, `major << 16`.
    pub handle: u32,
    /// Its parent: a class, or `0xffff_ffff` for the root.
    pub parent: u32,
    /// Its kind.
    pub kind: &'a str,
    /// Bytes added to the length of each packet (tc-stab).
    pub overhead: i32,
    /// Its options: attributes in the kernel's layout. Empty: the kind's defaults.
    pub options: &'a [u8],
}

/// A device's counters since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets received.
    pub received_packets: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets dropped on reception.
    pub received_dropped: u64,
    /// Packets dropped on sending.
    pub sent_dropped: u64,
}

/// The route of packets to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Index of the device that sends the packets.
    pub device: u32,
    /// The next router; `None` if the destination is on the link.
    pub gateway: Option<IpAddr>,
}

/// A netlink socket for one network namespace.
#[derive(Debug)]
pub struct Netlink {
    fd: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Netlink {
    /// Opens a socket in the calling thread's namespace.
    pub fn new() -> io::Result<Netlink> {
        Ok(Netlink { fd: sys::netlink_socket()?, sequence: 0, buffer: vec![0; 128 * 1024] })
    }

    /// Returns every queue discipline of the namespace, including `noqueue` of virtual devices.
    pub fn qdiscs(&mut self) -> io::Result<Vec<Qdisc>> {
        let mut qdiscs = Vec::new();
        self.ask(RTM_GETQDISC, NLM_F_DUMP, &[0; TCMSG], |kind, body| {
            if kind == RTM_NEWQDISC {
                qdiscs.extend(parse_qdisc(body));
            }
        })?;
        Ok(qdiscs)
    }

    /// Returns a device's counters.
    pub fn counters(&mut self, device: u32) -> io::Result<Counters> {
        let mut body = [0; IFINFOMSG];
        body[4..8].copy_from_slice(&device.to_ne_bytes());
        let mut counters = None;
        self.ask(RTM_GETLINK, 0, &body, |kind, body| {
            if kind == RTM_NEWLINK {
                counters = parse_counters(body);
            }
        })?;
        counters.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("device {device} has no counters"))
        })
    }

    /// Returns the devices of the namespace: (index, name).
    pub fn devices(&mut self) -> io::Result<Vec<(u32, String)>> {
        let mut devices = Vec::new();
        self.ask(RTM_GETLINK, NLM_F_DUMP, &[0; IFINFOMSG], |kind, body| {
            if kind == RTM_NEWLINK {
                devices.extend(parse_device(body));
            }
        })?;
        Ok(devices)
    }

    /// Returns the current route of packets to this address.
    pub fn route(&mut self, to: IpAddr) -> io::Result<Route> {
        let mut body = vec![0; RTMSG];
        let (family, octets) = match to {
            IpAddr::V4(ip) => (libc::AF_INET, ip.octets().to_vec()),
            IpAddr::V6(ip) => (libc::AF_INET6, ip.octets().to_vec()),
        };
        (body[0], body[1]) = (family as u8, octets.len() as u8 * 8);
        put(&mut body, RTA_DST, &octets);
        let mut route = None;
        self.ask(RTM_GETROUTE, 0, &body, |kind, body| {
            if kind == RTM_NEWROUTE {
                route = parse_route(body);
            }
        })?;
        route.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no route to {to}")))
    }

    /// Brings a device up.
    pub fn set_up(&mut self, device: u32) -> io::Result<()> {
        const IFF_UP: u32 = 1;
        let mut body = [0; IFINFOMSG];
        for (at, value) in [(4, device), (8, IFF_UP), (12, IFF_UP)] {
            body[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        self.ask(RTM_NEWLINK, NLM_F_ACK, &body, |_, _| ())
    }

    /// Adds a queue discipline where there is none, or replaces the kernel's default.
    pub fn add_qdisc(&mut self, qdisc: &NewQdisc<'_>) -> io::Result<()> {
        let mut body = vec![0; TCMSG];
        for (at, value) in [(4, qdisc.device), (8, qdisc.handle), (12, qdisc.parent)] {
            body[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        put(&mut body, TCA_KIND, &[qdisc.kind.as_bytes(), b"\0"].concat());
        if qdisc.overhead != 0 {
            // struct tc_sizespec, with an overhead and without a table of sizes.
            let mut sizes = [0; 24];
            sizes[4..8].copy_from_slice(&qdisc.overhead.to_ne_bytes());
            let mut base = Vec::new();
            put(&mut base, TCA_STAB_BASE, &sizes);
            put(&mut body, TCA_STAB | NLA_F_NESTED, &base);
        }
        if !qdisc.options.is_empty() {
            put(&mut body, TCA_OPTIONS | NLA_F_NESTED, qdisc.options);
        }
        let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
        self.ask(RTM_NEWQDISC, flags, &body, |_, _| ())
    }

    /// Sends a request and passes the type and body of every answer to `each`: one answer, or all
    /// of a dump.
    fn ask(
        &mut self,
        kind: u16,
        flags: u16,
        body: &[u8],
        mut each: impl FnMut(u16, &[u8]),
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        sys::send(&self.fd, &request(kind, flags, self.sequence, body))?;
        let dump = flags & NLM_F_DUMP == NLM_F_DUMP;
        loop {
            let length = sys::receive(&self.fd, &mut self.buffer)?;
            for message in messages(&self.buffer[..length]).filter(|m| m.sequence == self.sequence)
            {
                match message.kind {
                    NLMSG_DONE => return Ok(()),
                    // An error message with code 0 is an acknowledgement.
                    NLMSG_ERROR if word(message.body, 0) == Some(0) => return Ok(()),
                    NLMSG_ERROR => return Err(error_of(message.body)),
                    kind => each(kind, message.body),
                }
                if !dump {
                    return Ok(());
                }
            }
        }
    }
}

/// Appends an attribute, padded to a multiple of four bytes.
fn put(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    body.extend((value.len() as u16 + 4).to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

fn request(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend((NLM_F_REQUEST | flags).to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend(0u32.to_ne_bytes());
    bytes.extend(body);
    bytes
}

/// Returns the error of an answer, which begins with a negative errno.
fn error_of(body: &[u8]) -> Error {
    match word(body, 0) {
        Some(code) => Error::from_raw_os_error((code as i32).wrapping_neg()),
        None => Error::from(ErrorKind::InvalidData),
    }
}

struct Message<'a> {
    kind: u16,
    sequence: u32,
    body: &'a [u8],
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes)
}

/// Returns the messages in a buffer, up to the first truncated one.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = word(bytes, 0)? as usize;
        let body = bytes.get(HEADER..length)?;
        let kind = u16::from_ne_bytes([bytes[4], bytes[5]]);
        let sequence = word(bytes, 8)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some(Message { kind, sequence, body })
    })
}

/// Returns the attributes in a message's body, up to the first truncated one: (type without its
/// flags, value).
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let head: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let value = bytes.get(4..length)?;
        // The upper two bits are the flags for "nested" and "network byte order".
        let kind = u16::from_ne_bytes([head[2], head[3]]) & 0x3fff;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, value))
    })
}

fn parse_qdisc(body: &[u8]) -> Option<Qdisc> {
    let mut qdisc = Qdisc {
        device: word(body, 4)?,
        handle: word(body, 8)?,
        parent: word(body, 12)?,
        ..Qdisc::default()
    };
    for (kind, value) in attributes(body.get(TCMSG..)?) {
        match kind {
            TCA_KIND => {
                let text = value.split(|&b| b == 0).next().unwrap_or(&[]);
                qdisc.kind = String::from_utf8_lossy(text).into_owned();
            }
            TCA_OPTIONS => qdisc.options = value.to_vec(),
            TCA_STATS2 => read_stats(value, &mut qdisc)?,
            _ => {}
        }
    }
    Some(qdisc)
}

fn read_stats(bytes: &[u8], qdisc: &mut Qdisc) -> Option<()> {
    let mut packets = None;
    for (kind, value) in attributes(bytes) {
        match kind {
            TCA_STATS_BASIC => {
                qdisc.sent_bytes = long(value, 0)?;
                qdisc.sent_packets = u64::from(word(value, 8)?);
            }
            // The same count in 64 bits, so it does not wrap at 2^32.
            TCA_STATS_PKT64 => packets = long(value, 0),
            TCA_STATS_QUEUE => {
                qdisc.backlog_packets = word(value, 0)?;
                qdisc.backlog_bytes = word(value, 4)?;
                qdisc.drops = word(value, 8)?;
                qdisc.requeues = word(value, 12)?;
                qdisc.overlimits = word(value, 16)?;
            }
            TCA_STATS_APP => qdisc.own = value.to_vec(),
            _ => {}
        }
    }
    qdisc.sent_packets = packets.unwrap_or(qdisc.sent_packets);
    Some(())
}

fn parse_device(body: &[u8]) -> Option<(u32, String)> {
    let index = word(body, 4)?;
    let (_, name) = attributes(body.get(IFINFOMSG..)?).find(|&(kind, _)| kind == IFLA_IFNAME)?;
    let text = name.split(|&b| b == 0).next().unwrap_or(&[]);
    Some((index, String::from_utf8_lossy(text).into_owned()))
}

fn parse_route(body: &[u8]) -> Option<Route> {
    let (mut device, mut gateway) = (None, None);
    for (kind, value) in attributes(body.get(RTMSG..)?) {
        match kind {
            RTA_OIF => device = word(value, 0),
            RTA_GATEWAY => {
                gateway = <[u8; 4]>::try_from(value)
                    .map(IpAddr::from)
                    .or_else(|_| <[u8; 16]>::try_from(value).map(IpAddr::from))
                    .ok();
            }
            _ => {}
        }
    }
    Some(Route { device: device?, gateway })
}

fn parse_counters(body: &[u8]) -> Option<Counters> {
    let (_, stats) = attributes(body.get(IFINFOMSG..)?).find(|&(kind, _)| kind == IFLA_STATS64)?;
    Some(Counters {
        received_packets: long(stats, 0)?,
        sent_packets: long(stats, 8)?,
        received_bytes: long(stats, 16)?,
        sent_bytes: long(stats, 24)?,
        received_dropped: long(stats, 48)?,
        sent_dropped: long(stats, 56)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dump recorded from a kernel; its first line describes it.
    const RECORDED: &str = include_str!("../tests/qdisc_dump.hex");

    fn recorded() -> Vec<u8> {
        let digits: Vec<u8> = RECORDED
            .lines()
            .filter(|line| !line.starts_with('#'))
            .flat_map(str::bytes)
            .filter(u8::is_ascii_hexdigit)
            .collect();
        let digit = |d: u8| (d as char).to_digit(16).unwrap() as u8;
        digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
    }

    #[test]
    fn a_recorded_dump_is_parsed() {
        let bytes = recorded();
        let all: Vec<Message> = messages(&bytes).collect();
        let qdiscs: Vec<Qdisc> = all
            .iter()
            .filter(|m| m.kind == RTM_NEWQDISC)
            .filter_map(|m| parse_qdisc(m.body))
            .collect();
        assert_eq!(all.last().unwrap().kind, NLMSG_DONE);
        let kinds: Vec<&str> = qdiscs.iter().map(|q| q.kind.as_str()).collect();
        assert_eq!(kinds, ["noqueue", "tbf", "bfifo"]);
        let (tbf, bfifo) = (&qdiscs[1], &qdiscs[2]);
        assert_eq!((tbf.handle, tbf.parent, bfifo.parent), (0x10000, u32::MAX, 0x10001));
        assert_eq!(tbf.device, bfifo.device);
        // Ten packets of 1042 bytes were sent into it: four were sent in the burst, the others
        // waited.
        assert_eq!((tbf.sent_packets, tbf.sent_bytes), (4, 4 * 1042));
        assert_eq!((tbf.backlog_packets, tbf.backlog_bytes), (6, 6 * 1042));
        assert_eq!((bfifo.backlog_packets, tbf.drops), (6, 0));
        // bfifo's parameter is its limit.
        assert_eq!(word(&bfifo.options, 0), Some(100_000));
    }

    #[test]
    fn a_truncated_message_causes_no_panic() {
        let bytes = recorded();
        for end in 0..bytes.len() {
            for message in messages(&bytes[..end]) {
                let _ = parse_qdisc(message.body);
                let _ = parse_counters(message.body);
                let _ = (parse_device(message.body), parse_route(message.body));
            }
        }
    }

    #[test]
    fn an_invalid_length_ends_the_parsing() {
        assert_eq!(messages(&[0; 64]).count(), 0);
        assert_eq!(attributes(&[3, 0, 1, 0, 9, 9, 9, 9]).count(), 0);
        assert_eq!(attributes(&[200, 0, 1, 0, 9, 9]).count(), 0);
    }

    #[test]
    fn an_error_has_the_kernels_errno() {
        let body = (-libc::ENODEV).to_ne_bytes();
        assert_eq!(error_of(&body).raw_os_error(), Some(libc::ENODEV));
    }

    #[test]
    fn the_route_to_this_host_is_loopback() {
        let device = sys::device_index("lo").unwrap();
        for address in ["127.0.0.1", "::1"] {
            match Netlink::new().unwrap().route(address.parse().unwrap()) {
                Ok(route) => assert_eq!(route, Route { device, gateway: None }),
                // A host may have no IPv6.
                Err(error) => assert!(address == "::1", "{address}: {error}"),
            }
        }
    }

    #[test]
    fn the_counters_of_loopback_include_its_traffic() {
        let mut netlink = Netlink::new().unwrap();
        let device = sys::device_index("lo").unwrap();
        let before = netlink.counters(device).unwrap();
        let loopback = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
        let fd = sys::socket(sys::Kind::Datagram, loopback).unwrap();
        sys::send_to(&fd, &[0; 100], std::net::SocketAddr::new(loopback, 9)).unwrap();
        let after = netlink.counters(device).unwrap();
        assert!(after.sent_packets > before.sent_packets);
        assert!(after.sent_bytes >= before.sent_bytes + 128);
        assert!(netlink.counters(u32::MAX / 2).is_err());
        assert!(netlink.devices().unwrap().contains(&(device, "lo".to_string())));
        netlink.qdiscs().unwrap();
    }
}
