//! Probe flows: pings that the far kernel answers, and our own echo.
//!
//! Each request has three times: its send time, its arrival at the far end, and the arrival of the
//! reply. The two arrival times are kernel timestamps. A request without a reply at the end is
//! lost.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use probe::bulk::set_ds;
use probe::echo::Echo;
use probe::icmp::{self, Pinger, unwrap_sequence};
use probe::journey::NEVER;
use probe::sys::{self, Interest, Kind};
use serde_json::Value;

use super::{allow_memory, counted, far_end};
use crate::context::{Context, EventTarget};
use crate::plan::Traffic;
use crate::recorded::{Tables, probes};

/// A flow of probes.
pub struct Probes {
    index: usize,
    interval: i64,
    /// Bytes after the IP header (ping) or the UDP header (echo).
    size: usize,
    ends: Ends,
    /// Times by sequence number.
    sent: Vec<i64>,
    turned: Vec<i64>,
    received: Vec<i64>,
}

enum Ends {
    Ping(Pinger),
    Echo { client: OwnedFd, server: OwnedFd },
}

impl Probes {
    /// Opens both ends.
    pub fn open(context: &mut Context, index: usize) -> io::Result<Probes> {
        let spec = &context.plan.flows[index];
        let (from, to) = (&spec.from, &spec.to);
        let (ends, interval, size) = match spec.traffic {
            Traffic::Ping { interval_ns, packet_bytes } => {
                let pinger = context.world.inside(Some(&from.namespace), || {
                    let pinger = Pinger::new(from.address, to.address, spec.port, spec.ds)?;
                    allow_memory(&pinger)?;
                    Ok(pinger)
                })?;
                context.epoll.add(&pinger, Interest::Readable, EventTarget::Sender.token(index))?;
                (
                    Ends::Ping(pinger),
                    interval_ns,
                    packet_bytes - spec.headers() + icmp::HEADER as u32,
                )
            }
            Traffic::Echo { interval_ns, packet_bytes } => {
                let open = |own: SocketAddr| {
                    let fd = sys::socket(Kind::Datagram, own.ip())?;
                    sys::set_option(&fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
                    allow_memory(&fd)?;
                    set_ds(&fd, own.ip(), spec.ds)?;
                    sys::bind(&fd, own)?;
                    Ok(fd)
                };
                let server = context.world.inside(Some(&to.namespace), || open(far_end(spec)))?;
                let client = context.world.inside(Some(&from.namespace), || {
                    let fd = open(SocketAddr::new(from.address, spec.port))?;
                    sys::connect(&fd, far_end(spec))?;
                    Ok(fd)
                })?;
                context.epoll.add(
                    &server,
                    Interest::Readable,
                    EventTarget::Listener.token(index),
                )?;
                context.epoll.add(&client, Interest::Readable, EventTarget::Sender.token(index))?;
                (Ends::Echo { client, server }, interval_ns, packet_bytes - spec.headers())
            }
            _ => unreachable!("only probes are opened here"),
        };
        Ok(Probes {
            index,
            interval: interval as i64,
            size: size as usize,
            ends,
            sent: Vec::new(),
            turned: Vec::new(),
            received: Vec::new(),
        })
    }

    /// Sends the request that was due at `due`; returns the next due time.
    pub fn send(&mut self, context: &mut Context, due: i64) -> (io::Result<()>, i64) {
        let sequence = self.sent.len();
        // Read just before sending: other work due at this time may have taken some time.
        let now = context.clock.now();
        self.sent.push(now);
        self.turned.push(NEVER);
        self.received.push(NEVER);
        let result = match &self.ends {
            Ends::Ping(pinger) => pinger.send(sequence as u16, self.size),
            Ends::Echo { client, .. } => {
                let echo = Echo { sequence: sequence as u32, sent: now, ..Echo::default() };
                sys::send(client, &echo.write(self.size)).map(drop)
            }
        };
        (result, due + self.interval)
    }

    /// Sends an echo for each request that has reached the far end.
    pub fn turn_round(&mut self, context: &mut Context) -> io::Result<()> {
        let Ends::Echo { server, .. } = &self.ends else {
            return Ok(());
        };
        context.batch.receive(server)?;
        for datagram in context.batch.datagrams() {
            if let (Some(echo), Some(from), Some(stamp)) =
                (Echo::parse(datagram.bytes), datagram.from, datagram.stamp)
            {
                let echo = Echo { turned: context.clock.stamp(stamp), ..echo };
                sys::send_to(server, &echo.write(datagram.length), from)?;
            }
        }
        Ok(())
    }

    /// Reads replies.
    pub fn on_replies(&mut self, context: &mut Context) -> io::Result<()> {
        match &self.ends {
            Ends::Ping(pinger) => context.batch.receive(pinger)?,
            Ends::Echo { client, .. } => context.batch.receive(client)?,
        };
        for datagram in context.batch.datagrams() {
            let (Some(latest), Some(stamp)) = (self.sent.len().checked_sub(1), datagram.stamp)
            else {
                continue;
            };
            let (sequence, turned) = match &self.ends {
                Ends::Ping(pinger) => match pinger.reply(datagram.bytes) {
                    Some(low) => (unwrap_sequence(low, latest as u64) as usize, None),
                    None => continue,
                },
                Ends::Echo { .. } => match Echo::parse(datagram.bytes) {
                    Some(echo) => (echo.sequence as usize, Some(echo.turned)),
                    None => continue,
                },
            };
            // A duplicate reply does not change the arrival time.
            if let Some(slot) = self.received.get_mut(sequence).filter(|slot| **slot == NEVER) {
                *slot = context.clock.stamp(stamp);
                if let Some(turned) = turned {
                    self.turned[sequence] = turned;
                }
            }
        }
        Ok(())
    }

    /// The ping with this sequence number has reached the far end.
    pub fn request_arrived(&mut self, sequence: u16, time: i64) {
        let Some(latest) = self.sent.len().checked_sub(1) else {
            return;
        };
        let sequence = unwrap_sequence(sequence, latest as u64) as usize;
        if let Some(slot) = self.turned.get_mut(sequence).filter(|slot| **slot == NEVER) {
            *slot = time;
        }
    }

    /// Adds its rows and returns its summary.
    pub fn finish(self, tables: &mut Tables) -> Value {
        for (sequence, &sent) in self.sent.iter().enumerate() {
            tables.probes.push(probes::Row {
                flow: self.index as i64,
                seq: sequence as i64,
                sent_ns: sent,
                turned_ns: self.turned[sequence],
                received_ns: self.received[sequence],
            });
        }
        let mut summary = counted(self.sent.len(), &self.received);
        summary["kind"] = "probes".into();
        summary
    }
}
