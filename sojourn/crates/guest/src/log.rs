//! The simulated cards' log of their packets, event by event: `/dev/simlog` of the built guest.
//!
//! The driver logs when each packet is enqueued, dequeued, dropped, transmitted and lost. TCP logs
//! each of its RTT samples. No virtual time passes while the kernel logs;
//! engine/kernel/linux/simlog.h defines the events. The program reads thousands of events at a
//! time.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, RawFd};

use probe::Clock;
use probe::tap::FiveTuple;
use serde_json::{Value, json};
use tables::Histogram;

use crate::plan::Plan;
use crate::results::{Archive, Values};
use crate::taps::Flows;
use crate::watch::{Arrival, Watch, Window, histograms};

const DEVICE: &str = "/dev/simlog";
const EVENT: usize = 40;
/// Events per read.
const EVENTS: usize = 4096;

const CAME: u8 = 0;
const LEFT: u8 = 1;
const GONE: u8 = 2;
const OUT: u8 = 3;
const LOST: u8 = 4;
const RTT: u8 = 5;
const MISSED: u8 = 6;

/// An event in the driver's layout.
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

    /// Bytes of the packet, or another count.
    fn value(&self) -> u32 {
        self.word(12)
    }

    fn card(&self) -> u16 {
        u16::from_ne_bytes([self.0[32], self.0[33]])
    }

    fn truesize(&self) -> u32 {
        u32::from_le_bytes([self.0[37], self.0[38], self.0[39], 0])
    }

    fn kind(&self) -> u8 {
        self.0[34]
    }

    fn ds(&self) -> u8 {
        self.0[35]
    }

    fn five_tuple(&self) -> FiveTuple {
        let address = |at: usize| {
            IpAddr::V4(Ipv4Addr::new(self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]))
        };
        let port = |at: usize| u16::from_be_bytes([self.0[at], self.0[at + 1]]);
        FiveTuple {
            source: address(20),
            destination: address(24),
            protocol: self.0[36],
            ports: [port(28), port(30)],
        }
    }
}

/// Reads the log.
pub struct Log {
    file: File,
    buffer: Vec<u8>,
    /// The tap in the plan for each card number in the log.
    taps: HashMap<u16, usize>,
    missed: u64,
    window: Window,
    /// TCP's RTT samples, by flow.
    rtts: Vec<Histogram>,
}

impl AsRawFd for Log {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

impl Log {
    /// Opens the log if the plan's taps are cards.
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

    /// Reads all logged events.
    pub fn drain(&mut self, clock: &Clock, flows: &Flows, watched: &mut [Watch]) -> io::Result<()> {
        loop {
            let length = self.file.read(&mut self.buffer)?;
            if length == 0 {
                return Ok(());
            }
            let buffer = std::mem::take(&mut self.buffer);
            buffer[..length]
                .chunks_exact(EVENT)
                .for_each(|bytes| self.take(&Event(bytes), clock, flows, watched));
            self.buffer = buffer;
        }
    }

    fn take(&mut self, event: &Event, clock: &Clock, flows: &Flows, watched: &mut [Watch]) {
        let t = event.t() - clock.monotonic(0);
        match event.kind() {
            MISSED => self.missed += u64::from(event.value()),
            RTT => {
                let flow = flows.of(&event.five_tuple());
                // Only the sender's samples; the receiver has just the one of the handshake.
                if flow >= 0 && flow % 2 == 0 && self.window.contains(t) {
                    self.rtts[flow as usize / 2].add(u64::from(event.value()) * 1000);
                }
            }
            kind => {
                let Some(watch) = self.taps.get(&event.card()).map(|&index| &mut watched[index])
                else {
                    return;
                };
                match kind {
                    CAME => {
                        let arrival = Arrival {
                            flow: flows.of(&event.five_tuple()),
                            bytes: event.value(),
                            ds: event.ds(),
                            hash: event.word(16),
                            truesize: event.truesize(),
                        };
                        watch.enqueued(event.serial(), t, arrival);
                    }
                    LEFT => watch.dequeued(event.serial(), t, event.ds()),
                    GONE => watch.dropped(event.serial(), t),
                    OUT => watch.transmitted(event.serial(), t),
                    LOST => watch.lost(event.serial()),
                    _ => {}
                }
            }
        }
    }

    /// Returns the log's summary for one link.
    pub fn about(&self, watch: &Watch) -> Value {
        json!([{
            "name": "log", "packets": watch.packets(), "lost_records": self.missed, "unexpected": watch.unexpected(),
        }])
    }

    /// Writes the tables `rtts` (one row per flow) and `rtt` (the bins).
    pub fn write<W: Write>(&self, archive: &mut Archive<W>) -> io::Result<()> {
        let each = || self.rtts.iter().zip(0i64..);
        let column = |of: fn(&Histogram) -> i64| Values::I64(each().map(|(h, _)| of(h)).collect());
        archive.table(
            "rtts",
            vec![
                ("flow".into(), Values::I64(each().map(|(_, flow)| flow).collect())),
                ("samples".into(), column(|h| h.count as i64)),
                ("sum_ns".into(), Values::F64(each().map(|(h, _)| h.sum as f64).collect())),
                ("min_ns".into(), column(|h| if h.count > 0 { h.min as i64 } else { -1 })),
                ("max_ns".into(), column(|h| h.max as i64)),
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
            (event.card(), event.kind(), event.ds(), event.truesize()),
            (3, LEFT, 0xb8, 2280)
        );
        let five_tuple = event.five_tuple();
        assert_eq!(
            (five_tuple.source.to_string(), five_tuple.destination.to_string()),
            ("10.0.1.1".into(), "10.0.2.1".into())
        );
        assert_eq!((five_tuple.protocol, five_tuple.ports), (TCP, [40_000, 5001]));
    }
}
