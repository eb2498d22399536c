//! The simulated cards' own account of their packets, event by event: `/dev/simlog` of the built
//! guest.
//!
//! The driver notes where each packet comes to a queue, leaves it, is thrown away, goes out and is
//! lost, and TCP each RTT sample it takes, where no virtual time passes
//! (engine/kernel/linux/simlog.h says what an event is). They are read some thousands at a time.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, RawFd};

use probe::Clock;
use probe::tap::Kin;
use serde_json::{Value, json};
use tables::Histogram;

use crate::plan::Plan;
use crate::results::{Archive, Values};
use crate::taps::Flows;
use crate::watch::{Coming, Watch, Window, histograms};

const DEVICE: &str = "/dev/simlog";
const EVENT: usize = 40;
/// Read at a time.
const EVENTS: usize = 4096;

const CAME: u8 = 0;
const LEFT: u8 = 1;
const GONE: u8 = 2;
const OUT: u8 = 3;
const LOST: u8 = 4;
const RTT: u8 = 5;
const MISSED: u8 = 6;

/// An event as the driver lays it out.
struct Event<'a>(&'a [u8]);

impl Event<'_> {
    fn word(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.0[at..at + 4].try_into().unwrap_or_default())
    }

    fn t(&self) -> i64 {
        i64::from_ne_bytes(self.0[..8].try_into().unwrap_or_default())
    }

    fn serial(&self) -> u32 {
        self.word(8)
    }

    /// Bytes of the packet, or what else is counted.
    fn value(&self) -> u32 {
        self.word(12)
    }

    fn card(&self) -> u16 {
        u16::from_ne_bytes([self.0[32], self.0[33]])
    }

    fn truesize(&self) -> u32 {
        u32::from_le_bytes([self.0[37], self.0[38], self.0[39], 0])
    }

    fn what(&self) -> u8 {
        self.0[34]
    }

    fn ds(&self) -> u8 {
        self.0[35]
    }

    fn kin(&self) -> Kin {
        let address = |at: usize| {
            IpAddr::V4(Ipv4Addr::new(self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]))
        };
        let port = |at: usize| u16::from_be_bytes([self.0[at], self.0[at + 1]]);
        Kin {
            source: address(20),
            destination: address(24),
            protocol: self.0[36],
            ports: [port(28), port(30)],
        }
    }
}

/// The log, being read.
pub struct Log {
    file: File,
    buffer: Vec<u8>,
    /// Which of the plan's taps a card's number in the log belongs to.
    taps: HashMap<u16, usize>,
    missed: u64,
    window: Window,
    /// Samples of TCP's RTT, by flow.
    rtts: Vec<Histogram>,
}

impl AsRawFd for Log {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

impl Log {
    /// Opens it, if the plan's taps are cards that are logged.
    pub fn open(plan: &Plan) -> Result<Option<Log>, String> {
        let cards =
            plan.taps.iter().enumerate().filter_map(|(index, tap)| Some((tap.card?, index)));
        let taps: HashMap<u16, usize> = cards.collect();
        if taps.is_empty() {
            return Ok(None);
        }
        Ok(Some(Log {
            file: File::open(DEVICE).map_err(|e| format!("{DEVICE}: {e}"))?,
            buffer: vec![0; EVENTS * EVENT],
            taps,
            missed: 0,
            window: Window::of(plan),
            rtts: vec![Histogram::default(); plan.flows.len()],
        }))
    }

    /// Takes in all that there is.
    pub fn drain(&mut self, clock: &Clock, flows: &Flows, watched: &mut [Watch]) -> io::Result<()> {
        loop {
            let got = self.file.read(&mut self.buffer)?;
            if got == 0 {
                return Ok(());
            }
            let buffer = std::mem::take(&mut self.buffer);
            buffer[..got]
                .chunks_exact(EVENT)
                .for_each(|bytes| self.take(&Event(bytes), clock, flows, watched));
            self.buffer = buffer;
        }
    }

    fn take(&mut self, event: &Event, clock: &Clock, flows: &Flows, watched: &mut [Watch]) {
        let t = event.t() - clock.monotonic(0);
        match event.what() {
            MISSED => self.missed += u64::from(event.value()),
            RTT => {
                let flow = flows.of(&event.kin());
                // The end that sends; the other one has the handshake's only.
                if flow >= 0 && flow % 2 == 0 && self.window.holds(t) {
                    self.rtts[flow as usize / 2].add(u64::from(event.value()) * 1000);
                }
            }
            what => {
                let Some(watch) = self.taps.get(&event.card()).map(|&index| &mut watched[index])
                else {
                    return;
                };
                match what {
                    CAME => {
                        let coming = Coming {
                            flow: flows.of(&event.kin()),
                            bytes: event.value(),
                            ds: event.ds(),
                            hash: event.word(16),
                            truesize: event.truesize(),
                        };
                        watch.came(event.serial(), t, coming);
                    }
                    LEFT => watch.left(event.serial(), t, event.ds()),
                    GONE => watch.gone(event.serial(), t),
                    OUT => watch.out(event.serial(), t),
                    LOST => watch.lost(event.serial()),
                    _ => {}
                }
            }
        }
    }

    /// What is to be said of a link's part of it.
    pub fn about(&self, watch: &Watch) -> Value {
        json!([{
            "name": "log", "packets": watch.packets(), "lost_records": self.missed, "unexpected": watch.unexpected(),
        }])
    }

    /// Writes the tables `rtts` (one row a flow) and `rtt` (their bins).
    pub fn write<W: Write>(&self, archive: &mut Archive<W>) -> io::Result<()> {
        let each = || self.rtts.iter().zip(0i64..);
        let whole = |of: fn(&Histogram) -> i64| Values::I64(each().map(|(h, _)| of(h)).collect());
        archive.table(
            "rtts",
            vec![
                ("flow".into(), Values::I64(each().map(|(_, flow)| flow).collect())),
                ("samples".into(), whole(|h| h.count as i64)),
                ("sum_ns".into(), Values::F64(each().map(|(h, _)| h.sum as f64).collect())),
                ("min_ns".into(), whole(|h| if h.count > 0 { h.min as i64 } else { -1 })),
                ("max_ns".into(), whole(|h| h.max as i64)),
            ],
        )?;
        histograms(archive, "rtt", "flow", each().map(|(h, flow)| (flow, h)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::tap::TCP;

    #[test]
    fn an_event_is_read_as_the_driver_lays_it_out() {
        let mut bytes = Vec::new();
        bytes.extend(7i64.to_ne_bytes());
        [5u32, 1500, 0xabcd].iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        bytes.extend([10, 0, 1, 1, 10, 0, 2, 1]);
        bytes.extend([0x9c, 0x40, 0x13, 0x89]);
        bytes.extend(3u16.to_ne_bytes());
        bytes.extend([LEFT, 0xb8, TCP, 0xe8, 8, 0]);
        assert_eq!(bytes.len(), EVENT);
        let event = Event(&bytes);
        assert_eq!(
            (event.t(), event.serial(), event.value(), event.word(16)),
            (7, 5, 1500, 0xabcd)
        );
        assert_eq!(
            (event.card(), event.what(), event.ds(), event.truesize()),
            (3, LEFT, 0xb8, 2280)
        );
        let kin = event.kin();
        assert_eq!(
            (kin.source.to_string(), kin.destination.to_string()),
            ("10.0.1.1".into(), "10.0.2.1".into())
        );
        assert_eq!((kin.protocol, kin.ports), (TCP, [40_000, 5001]));
    }
}
