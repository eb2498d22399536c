//! A recorded capture as traffic: pcapng, or pcap as tcpdump writes it.
//!
//! `kind = "capture"` with `file = "line.pcapng"` becomes `packets`: the time and the IP bytes of
//! each packet, so that a scenario is complete without the file. Payloads are not kept. `interface`
//! (a name or a number from 0), `src` and `dst` (addresses) select packets. Times count from the
//! first selected packet. Packets with the same time stamp get times 1 ns apart. Packets of several
//! flows or directions become one flow in one direction; a note reports how many flows there were.
//!
//! Formats: draft-ietf-opsawg-pcapng, draft-ietf-opsawg-pcap; Ethernet with VLAN tags, Linux's
//! cooked frames of both versions, bare IP. Frames that do not carry IP are skipped. Link types
//! have the numbers of tcpdump.org/linktypes.html. The caller hands in the file.

use crate::forms::MAX_ROWS;
use crate::problem::{Problem, below};
use crate::trace::{MAX_BYTES, Open, READS_FILES, not_read};
use core::cmp::Reverse;
use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet};
use traffic::TrafficKind;
use values::quantity::{format_duration, format_size};
use values::{Table, Value, Wrong, quoted};

/// The keys that `resolve` replaces by `packets`.
pub(crate) const KEYS: [&str; 4] = ["file", "interface", "src", "dst"];
const PACKETS: &str = "packets";

/// Replaces each capture's file by its packets. Returns the problems and appends to `notes`.
pub(crate) fn resolve(
    document: &mut Table,
    notes: &mut Vec<Problem>,
    open: &Open<'_>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let Some(Value::List(entries)) = document.get_mut("flow") else { return problems };
    for (index, entry) in entries.iter_mut().enumerate() {
        let Value::Table(table) = entry else { continue };
        if table.get("kind").and_then(Value::text) != Some(TrafficKind::Capture.word())
            || !table.has("file")
        {
            continue;
        }
        let given = KEYS.map(|key| table.remove(key));
        let at = vec!["flow".into(), index.into()];
        let (key, selection) = if table.has(PACKETS) {
            ("file", Err(Wrong::new("file and packets are both given", "keep one of them")))
        } else {
            selected(&given, open)
        };
        match selection {
            Ok((rows, new_notes)) => {
                table.set(PACKETS, rows);
                let note = |(message, hint)| Problem::new(message, hint, below(&at, "file"));
                notes.extend(new_notes.into_iter().map(note));
            }
            Err(wrong) => {
                problems.push(Problem::new(wrong.message, wrong.hint, below(&at, key)));
                let row = Value::List(vec!["0 s".into(), "100 B".into()]);
                table.set(PACKETS, Value::List(vec![row]));
            }
        }
    }
    problems
}

/// The rows of `packets`, and the notes to them, each a message and a hint.
type Selection = (Value, Vec<(String, String)>);

/// Returns the selected packets, or the key at fault and what is wrong with it.
fn selected(
    given: &[Option<Value>; 4],
    open: &Open<'_>,
) -> (&'static str, Result<Selection, Wrong>) {
    let [file, interface, from, to] = given;
    let mut addresses = [None, None];
    for ((key, value), address) in [("src", from), ("dst", to)].into_iter().zip(&mut addresses) {
        let Some(value) = value else { continue };
        let parsed = value.text().and_then(|text| text.parse::<IpAddr>().ok());
        if parsed.is_none() {
            let message = format!("{} is not an IP address", quoted(value));
            return (key, Err(Wrong::new(message, "write one like \"192.0.2.1\"")));
        }
        *address = parsed;
    }
    let name = file.as_ref().unwrap_or(&Value::Bool(false));
    let capture = match read(name, open) {
        Ok(capture) => capture,
        Err(wrong) => return ("file", Err(wrong)),
    };
    if !READS_FILES {
        return ("file", Err(not_read()));
    }
    let number = match interface {
        None => None,
        Some(value) => match capture.interface(value) {
            Ok(number) => Some(number),
            Err(wrong) => return ("interface", Err(wrong)),
        },
    };
    let [from, to] = addresses;
    let chosen: Vec<&Recorded> = capture
        .packets
        .iter()
        .filter(|packet| number.is_none_or(|number| packet.interface == number))
        .filter(|packet| from.is_none_or(|from| packet.from == from))
        .filter(|packet| to.is_none_or(|to| packet.to == to))
        .collect();
    if chosen.is_empty() {
        let picked = given[1..].iter().any(Option::is_some);
        return ("file", Err(no_packets(name, &capture, number, picked)));
    }
    let times: Vec<_> = chosen.iter().map(|packet| (packet.at_ns, packet.bytes)).collect();
    let mut notes = Vec::new();
    notes.extend(several(name, &chosen));
    notes.extend(unread(name, &capture, number));
    ("file", rows(times, name).map(|rows| (rows, notes)))
}

/// Why no packet of the capture is left.
fn no_packets(name: &Value, capture: &Capture, number: Option<usize>, picked: bool) -> Wrong {
    let name = quoted(name);
    if let Some((message, hint)) = unread_types(capture, number) {
        return Wrong::new(format!("{name} has no IP packets that can be read: {message}"), hint);
    }
    if picked && !capture.packets.is_empty() {
        let pairs = counted(capture.packets.iter());
        let hint = format!("it has {}: choose among these", listed(&pairs));
        return Wrong::new(format!("{name} has no such IP packets"), hint);
    }
    let hint = "give a capture of IPv4 or IPv6";
    Wrong::new(format!("{name} has no IP packets"), hint)
}

/// The note that packets of several flows become one flow, with the pairs of addresses.
fn several(name: &Value, chosen: &[&Recorded]) -> Option<(String, String)> {
    let flows: BTreeSet<_> = chosen.iter().map(|each| (each.from, each.to, each.ports)).collect();
    if flows.len() < 2 {
        return None;
    }
    let pairs = counted(chosen.iter().copied());
    let back = pairs.iter().any(|(&(from, to), _)| pairs.contains_key(&(to, from)));
    let ways = if back { " in both directions" } else { "" };
    let message = format!(
        "{} packets of {}, from {} flows{ways}, become one flow in one direction",
        chosen.len(),
        quoted(name),
        flows.len()
    );
    let hint = if pairs.len() > 1 {
        format!("choose with src, dst or interface; there are {}", listed(&pairs))
    } else {
        "a discipline that separates flows sees one flow: give each a [[flow]] and a capture".into()
    };
    Some((message, hint))
}

/// The number of packets from one address to another.
type Pairs = BTreeMap<(IpAddr, IpAddr), usize>;

fn counted<'p>(packets: impl Iterator<Item = &'p Recorded>) -> Pairs {
    let mut pairs = Pairs::new();
    packets.for_each(|packet| *pairs.entry((packet.from, packet.to)).or_default() += 1);
    pairs
}

/// The most frequent pairs: `40 from 192.0.2.1 to 192.0.2.2`.
fn listed(pairs: &Pairs) -> String {
    const SHOWN: usize = 3;
    let mut most: Vec<_> = pairs.iter().collect();
    most.sort_by_key(|(_, count)| Reverse(**count));
    let shown: Vec<_> = most
        .iter()
        .take(SHOWN)
        .map(|((from, to), count)| format!("{count} from {from} to {to}"))
        .collect();
    let more = match most.len().saturating_sub(SHOWN) {
        0 => String::new(),
        1 => " and one more pair of addresses".to_owned(),
        more => format!(" and {more} more pairs of addresses"),
    };
    format!("{}{more}", shown.join(", "))
}

/// The note that frames of some of the selected interfaces can't be read.
fn unread(name: &Value, capture: &Capture, number: Option<usize>) -> Option<(String, String)> {
    let (message, hint) = unread_types(capture, number)?;
    Some((format!("{}: {message}", quoted(name)), hint))
}

fn unread_types(capture: &Capture, number: Option<usize>) -> Option<(String, String)> {
    let chosen = |(each, _): &(&usize, &usize)| number.is_none_or(|number| number == **each);
    let unread: Vec<_> = capture.unread.iter().filter(chosen).collect();
    let &(first, _) = unread.first()?;
    let link = capture.interfaces[*first].link;
    let frames: usize = unread.iter().map(|(_, frames)| **frames).sum();
    let known = LINK_TYPES.iter().find(|(number, _)| *number == link).map(|(_, known)| *known);
    let link = known.map_or(format!("{link}"), |known| format!("{known} ({link})"));
    let message = format!("{frames} frames are not read: their link type is {link}");
    let hint = "Ethernet, Linux's cooked frames (tcpdump -i any) and bare IP are read";
    Some((message, hint.to_owned()))
}

/// Link types that are not read.
const LINK_TYPES: &[(u16, &str)] = &[
    (0, "BSD loopback"),
    (8, "SLIP"),
    (9, "PPP"),
    (50, "PPP in HDLC"),
    (51, "PPPoE"),
    (104, "Cisco HDLC"),
    (105, "IEEE 802.11"),
    (108, "OpenBSD loopback"),
    (117, "OpenBSD pflog"),
    (119, "IEEE 802.11 with a Prism header"),
    (127, "IEEE 802.11 with radiotap"),
    (149, "Apple's PKTAP"),
    (163, "IEEE 802.11 with an AVS header"),
    (189, "USB of Linux"),
    (192, "PPI"),
    (195, "IEEE 802.15.4"),
    (201, "Bluetooth"),
    (220, "USB of Linux"),
    (226, "ipnet of Solaris"),
    (230, "IEEE 802.15.4 without FCS"),
    (242, "IP over InfiniBand"),
    (249, "USBPcap"),
    (253, "netlink"),
    (258, "Apple's PKTAP"),
];

fn rows(mut packets: Vec<(u64, u32)>, name: &Value) -> Result<Value, Wrong> {
    packets.sort_by_key(|&(at, _)| at);
    let first = packets[0].0;
    if packets.len() > MAX_ROWS {
        let message = format!("{} has {} packets", quoted(name), packets.len());
        return Err(Wrong::new(message, format!("the most is {MAX_ROWS}: give a shorter capture")));
    }
    if let Some((_, bytes)) = packets.iter().find(|(_, bytes)| *bytes > tcp::params::MTU) {
        let message = format!(
            "{} has a packet of {bytes} bytes; the most is {}",
            quoted(name),
            tcp::params::MTU
        );
        let hint =
            "the host joined packets before the capture: turn its offloads off first (ethtool -K)";
        return Err(Wrong::new(message, hint));
    }
    let mut last = None;
    let row = |(at, bytes): (u64, u32)| {
        let at = last.map_or(0, |last: u64| (at - first).max(last + 1));
        last = Some(at);
        Value::List(vec![format_duration(at).into(), format_size(bytes.into()).into()])
    };
    Ok(Value::List(packets.into_iter().map(row).collect()))
}

#[derive(Debug, PartialEq)]
struct Recorded {
    at_ns: u64,
    interface: usize,
    from: IpAddr,
    to: IpAddr,
    /// The protocol, and for TCP and UDP both ports.
    ports: (u8, u16, u16),
    /// Length of the IP packet.
    bytes: u32,
}

struct Interface {
    name: Option<String>,
    link: u16,
    /// Time stamp units in a second.
    units: u128,
}

#[derive(Default)]
struct Capture {
    interfaces: Vec<Interface>,
    packets: Vec<Recorded>,
    /// Frames of each interface whose link type can't be read.
    unread: BTreeMap<usize, usize>,
}

impl Capture {
    /// Returns the number of the interface with this name or number.
    fn interface(&self, value: &Value) -> Result<usize, Wrong> {
        let named = |each: &Interface| each.name.as_deref() == value.text();
        let number = match value {
            Value::Int(number) => usize::try_from(*number).ok(),
            _ => self.interfaces.iter().position(named).filter(|_| value.text().is_some()),
        };
        number.filter(|number| *number < self.interfaces.len()).ok_or_else(|| {
            let names: Vec<_> = self
                .interfaces
                .iter()
                .enumerate()
                .map(|(number, each)| each.name.clone().unwrap_or_else(|| number.to_string()))
                .collect();
            let message = format!("the capture has no interface {}", quoted(value));
            Wrong::new(message, format!("it has {}", names.join(", ")))
        })
    }

    fn add(&mut self, interface: usize, at_ns: u64, frame: &[u8], length: u32) {
        let Some(source) = self.interfaces.get(interface) else { return };
        let Some(at) = header(source.link) else {
            *self.unread.entry(interface).or_default() += 1;
            return;
        };
        let Some((from, to, ports, bytes)) = packet(source.link, at, frame, length) else { return };
        self.packets.push(Recorded { at_ns, interface, from, to, ports, bytes });
    }
}

fn read(name: &Value, open: &Open<'_>) -> Result<Capture, Wrong> {
    let file = name.text().filter(|name| !name.is_empty() && !name.contains('\0'));
    let file = file.ok_or_else(|| {
        let hint = "write a path in quotes, like \"line.pcapng\"";
        Wrong::new(format!("{} is not a file name", quoted(name)), hint)
    })?;
    let data = open(file).map_err(|why| {
        let hint = "the path is relative to the scenario's folder";
        Wrong::new(format!("can't read {}: {why}", quoted(name)), hint)
    })?;
    if !READS_FILES {
        return Err(not_read());
    }
    if data.len() > MAX_BYTES {
        let message = format!("{} is larger than {}", quoted(name), format_size(MAX_BYTES as u64));
        let hint = "give a shorter capture, or the headers alone (tcpdump -s 96)";
        return Err(Wrong::new(message, hint));
    }
    let mut bytes = Bytes { data: &data, big: false };
    bytes.capture().map_err(|(at, what)| {
        Wrong::new(
            format!("{}, byte {at}: {what}", quoted(name)),
            "give a capture, pcapng or pcap, as tcpdump or Wireshark writes it",
        )
    })
}

/// The byte at which a file is wrong, and the reason.
type Fault = (usize, &'static str);

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED: u32 = 6;
const SHORT: (usize, &str) = (0, "the file ends within a packet");

struct Bytes<'d> {
    data: &'d [u8],
    big: bool,
}

impl Bytes<'_> {
    fn part(&self, at: usize, size: usize) -> Result<&[u8], Fault> {
        let end = at.checked_add(size).ok_or((at, SHORT.1))?;
        self.data.get(at..end).ok_or((at, SHORT.1))
    }

    fn number(&self, at: usize, size: usize) -> Result<u64, Fault> {
        let digits = self.part(at, size)?.iter().map(|byte| u64::from(*byte));
        Ok(if self.big {
            digits.fold(0, |sum, digit| sum << 8 | digit)
        } else {
            digits.rev().fold(0, |sum, digit| sum << 8 | digit)
        })
    }

    fn u32(&self, at: usize) -> Result<u32, Fault> {
        self.number(at, 4).map(|number| number as u32)
    }

    fn capture(&mut self) -> Result<Capture, Fault> {
        match self.u32(0)? {
            SECTION => self.pcapng(),
            0xa1b2_c3d4 => self.pcap(1_000_000),
            0xa1b2_3c4d => self.pcap(1_000_000_000),
            0xd4c3_b2a1 => {
                self.big = true;
                self.pcap(1_000_000)
            }
            0x4d3c_b2a1 => {
                self.big = true;
                self.pcap(1_000_000_000)
            }
            magic if magic & 0xffff == 0x8b1f => Err((0, "it is compressed: unpack it (gunzip)")),
            _ => Err((0, "this is not a capture file")),
        }
    }

    /// One interface; all time stamps have the same unit.
    fn pcap(&self, units: u32) -> Result<Capture, Fault> {
        let mut capture = Capture::default();
        let link = self.number(20, 2 + 2 * usize::from(self.big))? as u16;
        capture.interfaces.push(Interface { name: None, link, units: units.into() });
        let mut at = 24;
        while at < self.data.len() {
            let (seconds, rest) = (self.u32(at)?, self.u32(at + 4)?);
            let (kept, length) = (self.u32(at + 8)?, self.u32(at + 12)?);
            let at_ns = u64::from(seconds) * 1_000_000_000
                + u64::from(rest) * (1_000_000_000 / u64::from(units));
            capture.add(0, at_ns, self.part(at + 16, kept as usize)?, length);
            at += 16 + kept as usize;
        }
        Ok(capture)
    }

    fn pcapng(&mut self) -> Result<Capture, Fault> {
        let mut capture = Capture::default();
        // Each section numbers its interfaces from 0.
        let (mut at, mut first) = (0, 0);
        while at < self.data.len() {
            // The type of a section header block is the same in both byte orders.
            if self.u32(at)? == SECTION {
                self.big = self.part(at + 8, 4)? == [0x1a, 0x2b, 0x3c, 0x4d];
                first = capture.interfaces.len();
            }
            let (kind, size) = (self.u32(at)?, self.u32(at + 4)? as usize);
            if size < 12 || !size.is_multiple_of(4) {
                return Err((at, "a block has an invalid length"));
            }
            self.part(at, size)?;
            match kind {
                INTERFACE => capture.interfaces.push(self.interface(at + 8, at + size - 4)?),
                ENHANCED => {
                    let number = first + self.u32(at + 8)? as usize;
                    let source = capture.interfaces.get(number).ok_or((
                        at,
                        "a packet names an interface that the file does not describe",
                    ))?;
                    let stamp =
                        u128::from(self.u32(at + 12)?) << 32 | u128::from(self.u32(at + 16)?);
                    let at_ns = (stamp * 1_000_000_000 / source.units) as u64;
                    let (kept, length) = (self.u32(at + 20)?, self.u32(at + 24)?);
                    let frame = self.part(at + 28, kept as usize)?;
                    capture.add(number, at_ns, frame, length);
                }
                _ => {}
            }
            at += size;
        }
        Ok(capture)
    }

    fn interface(&self, body: usize, end: usize) -> Result<Interface, Fault> {
        let link = self.number(body, 2)? as u16;
        let mut description = Interface { name: None, link, units: 1_000_000 };
        let mut at = body + 8;
        while at + 4 <= end {
            let (code, size) = (self.number(at, 2)?, self.number(at + 2, 2)? as usize);
            let value = self.part(at + 4, size)?;
            match (code, value) {
                (0, _) => break,
                (2, name) => description.name = Some(String::from_utf8_lossy(name).into_owned()),
                // if_tsresol: a power of ten, or a power of two if the first bit is set.
                (9, [power]) if power & 0x80 == 0 && *power <= 18 => {
                    description.units = 10u128.pow((*power).into());
                }
                (9, [power]) if power & 0x80 != 0 && power & 0x7f < 64 => {
                    description.units = 1 << (power & 0x7f);
                }
                (9, _) => {
                    return Err((at, "an interface has an unsupported time stamp resolution"));
                }
                _ => {}
            }
            at += 4 + size.div_ceil(4) * 4;
        }
        Ok(description)
    }
}

/// The bytes before the IP packet in a frame of this link type; `None`: the type is not supported.
fn header(link: u16) -> Option<usize> {
    match link {
        1 => Some(14),
        113 => Some(16),
        276 => Some(20),
        12 | 101 | 228 | 229 => Some(0),
        _ => None,
    }
}

/// Source, destination, protocol and ports, length of the IP packet.
type Addressed = (IpAddr, IpAddr, (u8, u16, u16), u32);

/// Parses the IP packet of a frame, `skip` bytes from its start. Returns `None` if it is not IP or
/// if the capture kept too few bytes of it.
fn packet(link: u16, mut skip: usize, frame: &[u8], length: u32) -> Option<Addressed> {
    let kind = |at: usize| Some(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?));
    let mut ethertype = match link {
        1 => kind(12)?,
        113 => kind(14)?,
        276 => kind(0)?,
        _ if frame.first()? >> 4 == 6 => 0x86dd,
        _ => 0x0800,
    };
    while link == 1 && [0x8100, 0x88a8].contains(&ethertype) {
        ethertype = kind(skip + 2)?;
        skip += 4;
    }
    let ip = frame.get(skip..)?;
    let number =
        |at: usize| Some(u32::from(u16::from_be_bytes(ip.get(at..at + 2)?.try_into().ok()?)));
    let (from, to, length_field, protocol, next) = match ethertype {
        0x0800 => {
            let address =
                |at: usize| Some(IpAddr::from(<[u8; 4]>::try_from(ip.get(at..at + 4)?).ok()?));
            (address(12)?, address(16)?, number(2)?, ip[9], usize::from(ip[0] & 15) * 4)
        }
        0x86dd => {
            let address =
                |at: usize| Some(IpAddr::from(<[u8; 16]>::try_from(ip.get(at..at + 16)?).ok()?));
            (address(8)?, address(24)?, number(4)? + 40, ip[6], 40)
        }
        _ => return None,
    };
    // Above segmentation offload the length field of a packet is 0.
    let frame_length = length.checked_sub(skip as u32)?;
    // Fragments count as a flow of their own: later fragments have no ports.
    let fragment = ethertype == 0x0800 && number(6)? & 0x3fff != 0;
    let has_ports = [6, 17].contains(&protocol) && !fragment;
    let port = |at: usize| number(next + at).filter(|_| has_ports);
    let ports = (protocol, port(0).unwrap_or(0) as u16, port(2).unwrap_or(0) as u16);
    let missing = length_field == 0 || length_field == 40 && ethertype == 0x86dd;
    Some((from, to, ports, if missing { frame_length } else { length_field }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UDP: u8 = 17;

    /// The captured bytes of an IPv4 packet between ports 5 and 7.
    fn ipv4(length: u16, fragment: u16) -> Vec<u8> {
        let (length, fragment) = (length.to_be_bytes(), fragment.to_be_bytes());
        let head = [0x45, 0, length[0], length[1], 0, 0, fragment[0], fragment[1], 64, UDP, 0, 0];
        [&head[..], &[192, 0, 2, 1, 198, 51, 100, 2], &[0, 5, 0, 7]].concat()
    }

    /// The same for IPv6.
    fn ipv6(length: u16) -> Vec<u8> {
        let length = length.to_be_bytes();
        let head = [0x60, 0, 0, 0, length[0], length[1], UDP, 64];
        [&head[..], &[1; 16], &[2; 16], &[0, 5, 0, 7]].concat()
    }

    fn ethernet(types: &[u16], ip: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 12];
        for (number, each) in types.iter().enumerate() {
            // A tag's number follows its type.
            frame.extend(if number > 0 { &[0, 9][..] } else { &[] });
            frame.extend(each.to_be_bytes());
        }
        frame.extend(ip);
        frame
    }

    /// Ports and IP bytes of a frame that was 3014 bytes long on the wire.
    fn parsed(link: u16, frame: &[u8]) -> Option<((u8, u16, u16), u32)> {
        let (_, _, ports, bytes) = packet(link, header(link)?, frame, 3014)?;
        Some((ports, bytes))
    }

    #[test]
    fn a_packet_is_found_behind_each_link_s_header_and_tags() {
        let expected = Some(((UDP, 5, 7), 100));
        for types in [&[0x0800][..], &[0x8100, 0x0800], &[0x88a8, 0x8100, 0x0800]] {
            assert_eq!(parsed(1, &ethernet(types, &ipv4(100, 0))), expected, "{types:x?}");
        }
        assert_eq!(parsed(1, &ethernet(&[0x8100, 0x86dd], &ipv6(60))), expected);
        assert_eq!(parsed(1, &ethernet(&[0x0806], &ipv4(100, 0))), None, "ARP");
        for bare in [12, 101, 228] {
            assert_eq!(parsed(bare, &ipv4(100, 0)), expected, "{bare}");
        }
        assert_eq!(parsed(229, &ipv6(60)), expected);
        assert_eq!(parsed(105, &ipv4(100, 0)), None);
    }

    #[test]
    fn a_packet_without_a_length_has_the_frame_s_and_fragments_have_no_ports() {
        let of = |types, ip: &[u8]| parsed(1, &ethernet(&[types], ip)).expect("IP");
        assert_eq!(of(0x0800, &ipv4(0, 0)).1, 3000);
        assert_eq!(of(0x86dd, &ipv6(0)).1, 3000);
        for (fragment, ports) in [(0x4000, (UDP, 5, 7)), (0x2000, (UDP, 0, 0)), (9, (UDP, 0, 0))] {
            assert_eq!(of(0x0800, &ipv4(100, fragment)).0, ports, "{fragment:#x}");
        }
    }

    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let size = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes(), &size, body, &size].concat()
    }

    /// A section with one interface of bare IP, named `eth`, and a packet at this stamp.
    fn section(resolution: u8, stamp: u64) -> Vec<u8> {
        let header = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[255; 8]].concat();
        let options = [2, 0, 3, 0, b'e', b't', b'h', 0, 9, 0, 1, 0, resolution, 0, 0, 0];
        let interface = [&[101, 0, 0, 0, 0, 0, 0, 0][..], &options].concat();
        let [high, low] = [stamp >> 32, stamp].map(|half| (half as u32).to_le_bytes());
        let length = 24_u32.to_le_bytes();
        let packet = [&[0; 4][..], &high, &low, &length, &length, &ipv4(100, 0)].concat();
        [block(SECTION, &header), block(INTERFACE, &interface), block(ENHANCED, &packet)].concat()
    }

    #[test]
    fn stamps_have_the_resolution_of_their_section_s_interface() {
        // 10^-18 s, 2^-20 s, 10^-3 s; and each stamp is a second and a half.
        let sections =
            [section(18, 1_500_000_000_000_000_000), section(0x94, 3 << 19), section(3, 1500)];
        let data = sections.concat();
        let capture = Bytes { data: &data, big: false }.capture().expect("a capture");
        let times: Vec<_> =
            capture.packets.iter().map(|each| (each.interface, each.at_ns)).collect();
        assert_eq!(times, [0, 1, 2].map(|interface| (interface, 1_500_000_000)));
        assert_eq!(capture.interface(&"eth".into()), Ok(0));
        assert_eq!(capture.interface(&Value::Int(2)), Ok(2));
        let wrong = capture.interface(&Value::Int(3)).expect_err("there are three");
        assert_eq!(wrong.message, "the capture has no interface 3");
        let coarse = section(19, 1);
        assert!(Bytes { data: &coarse, big: false }.capture().is_err());
    }

    #[test]
    fn frames_that_are_not_read_are_those_of_the_chosen_interface() {
        let interface = |link| Interface { name: None, link, units: 1 };
        let mut capture = Capture::default();
        capture.interfaces.extend([101, 105].map(interface));
        (0..3).for_each(|_| capture.add(1, 0, &ipv4(100, 0), 24));
        let (message, _) = unread_types(&capture, None).expect("all are chosen");
        assert_eq!(message, "3 frames are not read: their link type is IEEE 802.11 (105)");
        assert_eq!(unread_types(&capture, Some(1)).map(|note| note.0), Some(message));
        assert_eq!(unread_types(&capture, Some(0)), None);
    }

    fn recorded(from: u8, to: u8, port: u16) -> Recorded {
        let address = |last| IpAddr::from([192, 0, 2, last]);
        let (from, to, ports) = (address(from), address(to), (UDP, port, 7));
        Recorded { at_ns: 0, interface: 0, from, to, ports, bytes: 100 }
    }

    #[test]
    fn merged_conversations_are_noted_with_their_directions() {
        let note = |all: &[Recorded]| several(&"a.pcap".into(), &all.iter().collect::<Vec<_>>());
        let flow = |port| recorded(1, 2, port);
        assert_eq!(note(&[flow(5), flow(5)]), None);
        let (message, hint) = note(&[flow(5), flow(6)]).expect("two");
        assert_eq!(
            message,
            "2 packets of 'a.pcap', from 2 flows, become one flow in one direction"
        );
        assert!(hint.starts_with("a discipline that separates flows sees one"), "{hint}");
        let (message, _) = note(&[flow(5), recorded(2, 1, 5)]).expect("two");
        assert!(message.contains("from 2 flows in both directions"), "{message}");
        // At most three pairs are shown.
        let pairs = |count| (0..count).map(|to| recorded(1, 2 + to, 5)).collect::<Vec<_>>();
        assert!(note(&pairs(3)).expect("three").1.ends_with("192.0.2.4"));
        assert!(note(&pairs(4)).expect("four").1.ends_with(" and one more pair of addresses"));
        assert!(note(&pairs(9)).expect("nine").1.ends_with(" and 6 more pairs of addresses"));
    }

    #[test]
    fn the_most_packets_and_the_largest_sizes_are_accepted() {
        let name = Value::from("a.pcap");
        let many = |count| rows(vec![(0, 100); count], &name).map(|_| ());
        assert_eq!(many(MAX_ROWS), Ok(()));
        assert!(many(MAX_ROWS + 1).is_err());
        let large = |bytes| rows(vec![(0, bytes)], &name).map(|_| ());
        assert_eq!(large(tcp::params::MTU), Ok(()));
        assert!(large(tcp::params::MTU + 1).is_err());
    }
}
