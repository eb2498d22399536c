//! A recorded capture as traffic: pcapng, or pcap as tcpdump writes it.
//!
//! `kind = "capture"` with `file = "line.pcapng"` becomes `packets`, the time and the IP bytes of each
//! packet, so that a scenario is complete without the file. Nothing of what they carried is kept.
//! `interface` (a name or a number from 0), `src` and `dst` (addresses) choose among them. Times count
//! from the first chosen packet. Packets of one instant get times 1 ns apart.
//!
//! Formats: draft-ietf-opsawg-pcapng, draft-ietf-opsawg-pcap; Ethernet with VLAN tags, Linux's cooked
//! frames of both versions, bare IP. What is not IP is passed over. The file is handed in.

use crate::forms::MAX_ROWS;
use crate::problem::{Problem, below};
use crate::trace::{MAX_BYTES, Open};
use core::net::IpAddr;
use values::quantity::{format_duration, format_size};
use values::{Table, Value, Wrong, quoted};

/// The keys that are resolved.
pub(crate) const KEYS: [&str; 4] = ["file", "interface", "src", "dst"];
const PACKETS: &str = "packets";

/// Replaces each capture's file by its packets; gives what was wrong.
pub(crate) fn resolve(document: &mut Table, open: &Open<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let Some(Value::List(entries)) = document.get_mut("flow") else { return problems };
    for (index, entry) in entries.iter_mut().enumerate() {
        let Value::Table(table) = entry else { continue };
        if table.get("kind").and_then(Value::text) != Some("capture") || !table.has("file") {
            continue;
        }
        let given = KEYS.map(|key| table.remove(key));
        let at = vec!["flow".into(), index.into()];
        let (key, found) = if table.has(PACKETS) {
            ("file", Err(Wrong::new("file and packets are both given", "keep one of them")))
        } else {
            chosen(&given, open)
        };
        match found {
            Ok(rows) => table.set(PACKETS, rows),
            Err(wrong) => {
                problems.push(Problem::new(wrong.message, wrong.hint, below(&at, key)));
                let row = Value::List(vec!["0 s".into(), "100 B".into()]);
                table.set(PACKETS, Value::List(vec![row]));
            }
        }
    }
    problems
}

/// The packets as a scenario has them, or what is wrong with which key.
fn chosen(given: &[Option<Value>; 4], open: &Open<'_>) -> (&'static str, Result<Value, Wrong>) {
    let [file, interface, from, to] = given;
    let mut addresses = [None, None];
    for ((key, value), address) in [("src", from), ("dst", to)].into_iter().zip(&mut addresses) {
        let Some(value) = value else { continue };
        let parsed = value.text().and_then(|text| text.parse::<IpAddr>().ok());
        if parsed.is_none() {
            let message = format!("{} is no address", quoted(value));
            return (key, Err(Wrong::new(message, "write one like \"192.0.2.1\"")));
        }
        *address = parsed;
    }
    let name = file.as_ref().unwrap_or(&Value::Bool(false));
    let capture = match read(name, open) {
        Ok(capture) => capture,
        Err(wrong) => return ("file", Err(wrong)),
    };
    let number = match interface {
        None => None,
        Some(value) => match capture.interface(value) {
            Ok(number) => Some(number),
            Err(wrong) => return ("interface", Err(wrong)),
        },
    };
    let [from, to] = addresses;
    let found: Vec<(u64, u32)> = capture
        .packets
        .iter()
        .filter(|packet| number.is_none_or(|number| packet.interface == number))
        .filter(|packet| from.is_none_or(|from| packet.from == from))
        .filter(|packet| to.is_none_or(|to| packet.to == to))
        .map(|packet| (packet.at_ns, packet.bytes))
        .collect();
    ("file", rows(&found, name))
}

fn rows(found: &[(u64, u32)], name: &Value) -> Result<Value, Wrong> {
    let keys: Vec<_> = found.iter().map(|&(at, _)| (at, 0)).collect();
    let found: Vec<_> = units::ascending(&keys).into_iter().map(|row| found[row]).collect();
    let Some(&(first, _)) = found.first() else {
        let message = format!("{} has no such IP packets", quoted(name));
        return Err(Wrong::new(message, "take interface, src or dst away"));
    };
    if found.len() > MAX_ROWS {
        let message = format!("{} has {} packets", quoted(name), found.len());
        return Err(Wrong::new(message, format!("the most is {MAX_ROWS}: give a shorter capture")));
    }
    if let Some((_, bytes)) = found.iter().find(|(_, bytes)| *bytes > tcp::params::MTU) {
        let message = format!("{} has a packet of {bytes} bytes", quoted(name));
        let hint =
            "it was taken above segmentation offload: capture with offloads off (ethtool -K)";
        return Err(Wrong::new(message, hint));
    }
    let mut last = None;
    let row = |(at, bytes): (u64, u32)| {
        let at = last.map_or(0, |last: u64| (at - first).max(last + 1));
        last = Some(at);
        Value::List(vec![format_duration(at).into(), format_size(bytes.into()).into()])
    };
    Ok(Value::List(found.into_iter().map(row).collect()))
}

#[derive(Debug, PartialEq)]
struct Recorded {
    at_ns: u64,
    interface: usize,
    from: IpAddr,
    to: IpAddr,
    /// Of the IP packet.
    bytes: u32,
}

struct Interface {
    name: Option<String>,
    link: u16,
    /// Units of its stamps in a second.
    units: u128,
}

#[derive(Default)]
struct Capture {
    interfaces: Vec<Interface>,
    packets: Vec<Recorded>,
}

impl Capture {
    /// The number of the interface that is named.
    fn interface(&self, value: &Value) -> Result<usize, Wrong> {
        let named = |each: &Interface| each.name.as_deref() == value.text();
        let found = match value {
            Value::Int(number) => usize::try_from(*number).ok(),
            _ => self.interfaces.iter().position(named).filter(|_| value.text().is_some()),
        };
        found.filter(|number| *number < self.interfaces.len()).ok_or_else(|| {
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
        let Some(found) = self.interfaces.get(interface) else { return };
        if let Some((from, to, bytes)) = packet(found.link, frame, length) {
            self.packets.push(Recorded { at_ns, interface, from, to, bytes });
        }
    }
}

fn read(name: &Value, open: &Open<'_>) -> Result<Capture, Wrong> {
    let file = name.text().filter(|name| !name.is_empty() && !name.contains('\0'));
    let file = file.ok_or_else(|| {
        let hint = "write a path in quotes, like \"line.pcapng\"";
        Wrong::new(format!("{} is not a file name", quoted(name)), hint)
    })?;
    let data = open(file).map_err(|why| {
        let hint = "the path counts from the scenario's folder";
        Wrong::new(format!("can't read {}: {why}", quoted(name)), hint)
    })?;
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

/// Where a file is wrong, and what is.
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
            _ => Err((0, "this is no capture")),
        }
    }

    /// One interface, all stamps of one unit.
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
        // Interfaces are numbered anew in each section.
        let (mut at, mut first) = (0, 0);
        while at < self.data.len() {
            // A section's header reads the same in either order.
            if self.u32(at)? == SECTION {
                self.big = self.part(at + 8, 4)? == [0x1a, 0x2b, 0x3c, 0x4d];
                first = capture.interfaces.len();
            }
            let (kind, size) = (self.u32(at)?, self.u32(at + 4)? as usize);
            if size < 12 || !size.is_multiple_of(4) {
                return Err((at, "a block of no such length"));
            }
            self.part(at, size)?;
            match kind {
                INTERFACE => capture.interfaces.push(self.interface(at + 8, at + size - 4)?),
                ENHANCED => {
                    let number = first + self.u32(at + 8)? as usize;
                    let found = capture.interfaces.get(number).ok_or((at, "no such interface"))?;
                    let stamp =
                        u128::from(self.u32(at + 12)?) << 32 | u128::from(self.u32(at + 16)?);
                    let at_ns = (stamp * 1_000_000_000 / found.units) as u64;
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
        let mut found = Interface { name: None, link, units: 1_000_000 };
        let mut at = body + 8;
        while at + 4 <= end {
            let (code, size) = (self.number(at, 2)?, self.number(at + 2, 2)? as usize);
            let value = self.part(at + 4, size)?;
            match (code, value) {
                (0, _) => break,
                (2, name) => found.name = Some(String::from_utf8_lossy(name).into_owned()),
                // A power of ten, or of two where the first bit is set.
                (9, [power]) if power & 0x80 == 0 && *power <= 18 => {
                    found.units = 10u128.pow((*power).into());
                }
                (9, [power]) if power & 0x80 != 0 && power & 0x7f < 64 => {
                    found.units = 1 << (power & 0x7f);
                }
                (9, _) => return Err((at, "a resolution of stamps that nobody has")),
                _ => {}
            }
            at += 4 + size.div_ceil(4) * 4;
        }
        Ok(found)
    }
}

/// The addresses and the IP bytes of a frame; `None`: it is not IP, or too little of it was kept.
fn packet(link: u16, frame: &[u8], length: u32) -> Option<(IpAddr, IpAddr, u32)> {
    let kind = |at: usize| Some(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?));
    let mut skip = match link {
        1 => 14,
        113 => 16,
        276 => 20,
        12 | 101 | 228 | 229 => 0,
        _ => return None,
    };
    let mut carried = match link {
        1 => kind(12)?,
        113 => kind(14)?,
        276 => kind(0)?,
        _ if frame.first()? >> 4 == 6 => 0x86dd,
        _ => 0x0800,
    };
    while link == 1 && [0x8100, 0x88a8].contains(&carried) {
        carried = kind(skip + 2)?;
        skip += 4;
    }
    let ip = frame.get(skip..)?;
    let number =
        |at: usize| Some(u32::from(u16::from_be_bytes(ip.get(at..at + 2)?.try_into().ok()?)));
    let (from, to, said) = match carried {
        0x0800 => {
            let address =
                |at: usize| Some(IpAddr::from(<[u8; 4]>::try_from(ip.get(at..at + 4)?).ok()?));
            (address(12)?, address(16)?, number(2)?)
        }
        0x86dd => {
            let address =
                |at: usize| Some(IpAddr::from(<[u8; 16]>::try_from(ip.get(at..at + 16)?).ok()?));
            (address(8)?, address(24)?, number(4)? + 40)
        }
        _ => return None,
    };
    // A packet above segmentation offload says no length, or 0.
    let whole = length.checked_sub(skip as u32)?;
    Some((from, to, if said == 0 || said == 40 && carried == 0x86dd { whole } else { said }))
}
