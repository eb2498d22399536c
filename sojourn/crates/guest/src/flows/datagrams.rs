//! Datagram flows: constant rate, on/off, and RTP video, by the simulator's own generators.
//!
//! Sender and receiver are in one program, so the send times are kept here. Each datagram carries a
//! sequence number: RTP's own 16 bits for video, 32 bits at the start of the payload otherwise. The
//! arrival time is the kernel's timestamp at the receiver.
//!
//! Source of the header: RFC 3550, section 5.1, payload type 96, clock 90 kHz.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use probe::bulk::set_ds;
use probe::icmp::unwrap_sequence;
use probe::journey::NEVER;
use probe::sys::{self, Interest, Kind};
use serde_json::Value;
use traffic::{UdpSource, VideoSource};
use units::{Rate, Rng, Time};

use super::{allow_memory, counted, far_end};
use crate::context::{Context, EventTarget};
use crate::plan::Traffic;
use crate::recorded::{Tables, datagrams};

/// A flow of datagrams.
pub struct Datagrams {
    index: usize,
    source: Source,
    headers: u32,
    sender: OwnedFd,
    receiver: OwnedFd,
    buffer: Vec<u8>,
    /// By sequence number: send time, bytes, frame, arrival time.
    sent: Vec<i64>,
    bytes: Vec<u32>,
    frame: Vec<i64>,
    received: Vec<i64>,
}

enum Source {
    Constant { source: UdpSource, packet_bytes: u32 },
    Video { source: VideoSource, payload_bytes: u32, frames: u32 },
}

/// Bytes of RTP's header.
const RTP: usize = 12;

impl Datagrams {
    /// Opens both ends.
    pub fn open(context: &mut Context, index: usize) -> io::Result<Datagrams> {
        let spec = &context.plan.flows[index];
        let rng = Rng::new(context.plan.seed, &format!("{}/traffic", spec.name));
        let source = match &spec.traffic {
            Traffic::Udp { bps, packet_bytes, on_ns, off_ns } => {
                let periods = on_ns.clone().zip(off_ns.clone());
                let source = UdpSource::new(Rate(*bps), *packet_bytes, periods, rng);
                Source::Constant { source, packet_bytes: *packet_bytes }
            }
            Traffic::Video { frames, payload_bytes } => {
                let source = VideoSource::new(frames.clone(), Time(spec.start_ns), rng);
                Source::Video { source, payload_bytes: *payload_bytes, frames: 0 }
            }
            _ => unreachable!("only datagrams are opened here"),
        };
        let receiver = context.world.inside(Some(&spec.to.namespace), || {
            let fd = sys::socket(Kind::Datagram, spec.to.address)?;
            sys::set_option(&fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
            allow_memory(&fd)?;
            sys::bind(&fd, far_end(spec))?;
            Ok(fd)
        })?;
        context.epoll.add(&receiver, Interest::Readable, EventTarget::Receiver.token(index))?;
        let sender = context.world.inside(Some(&spec.from.namespace), || {
            let fd = sys::socket(Kind::Datagram, spec.from.address)?;
            allow_memory(&fd)?;
            set_ds(&fd, spec.from.address, spec.ds)?;
            sys::bind(&fd, SocketAddr::new(spec.from.address, spec.port))?;
            sys::connect(&fd, far_end(spec))?;
            Ok(fd)
        })?;
        Ok(Datagrams {
            index,
            source,
            headers: spec.headers(),
            sender,
            receiver,
            buffer: vec![0; 1 << 16],
            sent: Vec::new(),
            bytes: Vec::new(),
            frame: Vec::new(),
            received: Vec::new(),
        })
    }

    /// Sends the packet or frame that was due at `due`; returns the next due time.
    pub fn send(&mut self, context: &mut Context, due: i64) -> (io::Result<()>, i64) {
        let now = context.clock.now();
        let at = Time(due.max(0) as u64);
        match &mut self.source {
            Source::Constant { source, packet_bytes } => {
                let (size, next) = (*packet_bytes, source.next_after(at));
                let sequence = self.sent.len() as u32;
                self.buffer[..4].copy_from_slice(&sequence.to_le_bytes());
                let payload = (size - self.headers) as usize;
                (self.put(now, payload, -1), next.0 as i64)
            }
            Source::Video { source, payload_bytes, frames } => {
                let (bytes, next) = source.next_frame();
                let (most, frame) = (u64::from(*payload_bytes), *frames);
                *frames += 1;
                (self.put_frame(now, bytes, most, frame), next.0 as i64)
            }
        }
    }

    /// Sends a frame in as many packets as it needs, back to back; the last one has the marker bit.
    fn put_frame(&mut self, now: i64, bytes: u64, most: u64, frame: u32) -> io::Result<()> {
        let (mut left, mut result) = (bytes, Ok(()));
        // Ticks of 90 kHz.
        let stamp = (now.max(0) as u64 / 100_000 * 9) as u32;
        while left > 0 {
            let part = left.min(most);
            left -= part;
            let marker = if left == 0 { 0x80 } else { 0 };
            self.buffer[..2].copy_from_slice(&[0x80, 96 | marker]);
            self.buffer[2..4].copy_from_slice(&(self.sent.len() as u16).to_be_bytes());
            self.buffer[4..8].copy_from_slice(&stamp.to_be_bytes());
            self.buffer[8..12].copy_from_slice(&(self.index as u32).to_be_bytes());
            result = result.and(self.put(now, RTP + part as usize, i64::from(frame)));
        }
        result
    }

    /// Sends one packet. A packet that the host's own queue refuses counts as dropped, like any
    /// other.
    fn put(&mut self, now: i64, payload: usize, frame: i64) -> io::Result<()> {
        self.sent.push(now);
        self.bytes.push(payload as u32 + self.headers);
        self.frame.push(frame);
        self.received.push(NEVER);
        match sys::send(&self.sender, &self.buffer[..payload]) {
            Err(error)
                if error.kind() == ErrorKind::WouldBlock
                    || error.raw_os_error() == Some(libc::ENOBUFS) =>
            {
                Ok(())
            }
            other => other.map(drop),
        }
    }

    /// Reads the datagrams that have arrived.
    pub fn receive(&mut self, context: &mut Context) -> io::Result<()> {
        context.batch.receive(&self.receiver)?;
        let video = matches!(self.source, Source::Video { .. });
        for datagram in context.batch.datagrams() {
            let bytes = datagram.bytes;
            let (Some(stamp), true, Some(latest)) =
                (datagram.stamp, bytes.len() >= 4, self.sent.len().checked_sub(1))
            else {
                continue;
            };
            let sequence = if video {
                unwrap_sequence(u16::from_be_bytes([bytes[2], bytes[3]]), latest as u64)
            } else {
                u64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            };
            // A later duplicate does not change the arrival time.
            if let Some(slot) =
                self.received.get_mut(sequence as usize).filter(|slot| **slot == NEVER)
            {
                *slot = context.clock.stamp(stamp);
            }
        }
        Ok(())
    }

    /// Adds its rows and returns its summary.
    pub fn finish(self, tables: &mut Tables) -> Value {
        for (sequence, &sent) in self.sent.iter().enumerate() {
            tables.datagrams.push(datagrams::Row {
                flow: self.index as i64,
                seq: sequence as i64,
                sent_ns: sent,
                received_ns: self.received[sequence],
                bytes: i64::from(self.bytes[sequence]),
                frame: self.frame[sequence],
            });
        }
        let mut summary = counted(self.sent.len(), &self.received);
        summary["kind"] = "datagrams".into();
        summary
    }
}
