//! The two ends of a flow: its source and its far end, which in a simulator may live in one struct.
//!
//! A host is handed packets and the time and puts packets into the outbox; the simulator sends
//! them. Which end is which follows from the packet's direction: even five-tuple numbers run from
//! the source to the far end, odd ones back.

use crate::payload::{
    Envelope, Parcel, Payload, SackPool, kind, pack_ack, pack_segment, unpack_ack, unpack_segment,
};
use crate::scenario::{FlowSpec, RTP_HEADERS, Traffic};

use qdisc::Ecn;
use tables::Histogram;
use tcp::{AckSegment, Receiver, Sender, TcpParams};
use traffic::{Draw, UdpSource, VideoSource};
use units::{Luck, Rate, Span, Time};

/// Packets on their way out of a host.
#[derive(Default)]
pub struct Outbox {
    pub packets: Vec<Parcel>,
}

/// What a flow has done since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Data packets its source has sent, retransmissions included.
    pub sent_packets: u64,
    /// Their IP bytes.
    pub sent_bytes: u64,
    /// Data packets that reached the far end.
    pub received_packets: u64,
    /// Application bytes delivered: TCP in order, datagrams as they come.
    pub delivered_bytes: u64,
    /// Data packets that a queue or a wire dropped; a lost ACK is not a lost segment.
    pub lost_packets: u64,
    /// TCP retransmissions, timeouts, fast recoveries.
    pub retransmits: u64,
    pub timeouts: u64,
    pub fast_recoveries: u64,
}

/// One ping: when it left, how long it took both ways and on the way out, ns.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    pub sent: Time,
    pub rtt: Option<Span>,
    pub forward: Option<Span>,
    pub lost: bool,
}

/// A completed transfer.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    pub start: Time,
    pub end: Time,
    pub bytes: u64,
}

/// A flow: both ends, its timers, its counts.
pub struct Host {
    envelope: Envelope,
    ends: Ends,
    /// Pending agenda events; `Time::NEVER` without one.
    pub source_timer: Time,
    pub sink_timer: Time,
    start: Time,
    stop: Time,
    started: bool,
    stopped: bool,
    pub counters: Counters,
    pub rtt: Histogram,
    jitter: Option<Box<Jitter>>,
    pub transfers: Vec<Transfer>,
    pub probes: Vec<Probe>,
}

#[allow(clippy::large_enum_variant)] // TCP is the case that must be quick; the others are few.
enum Ends {
    Tcp(TcpEnds),
    Udp { source: UdpSource, packet_bytes: u32, ecn: bool, next: Time, seq: u32 },
    Ping { interval: Span, packet_bytes: u32, next: Time },
    Video { source: VideoSource, payload_bytes: u32, next: Time, seq: u32 },
}

struct TcpEnds {
    sender: Sender,
    receiver: Receiver,
    header_bytes: u32,
    ack_bytes: u32,
    /// The connection's number modulo 256: what an earlier one has left in the network is ignored.
    epoch: u8,
    /// Between transfers: when the next begins.
    resume: Time,
    began: Time,
    /// What earlier connections of this flow did; the present one's counts come on top.
    before: Counters,
    cold: Box<TcpCold>,
}

struct TcpCold {
    params: TcpParams,
    /// Bytes of the connection in progress.
    bytes: Option<u64>,
    /// Further transfers: size and pause.
    next: Option<(Draw, Draw)>,
    luck: Luck,
}

struct Jitter {
    most: u64,
    luck: Luck,
    last: [Time; 2],
}

/// IP and UDP headers of a datagram.
const UDP_HEADERS: u32 = 28;

impl Host {
    pub fn new(spec: &FlowSpec, flow: usize, seed: u64) -> Host {
        let luck = |what: &str| Luck::new(seed, &format!("{}/{what}", spec.name));
        let start = Time(spec.start_ns);
        let ends = match &spec.traffic {
            Traffic::Bulk { bytes, tcp } => {
                Ends::Tcp(TcpEnds::new(tcp, *bytes, None, luck("traffic"), start))
            }
            Traffic::Transfers { bytes, pause_ns, tcp } => {
                let mut luck = luck("traffic");
                let first = bytes.next(&mut luck).max(1);
                Ends::Tcp(TcpEnds::new(
                    tcp,
                    Some(first),
                    Some((bytes.clone(), pause_ns.clone())),
                    luck,
                    start,
                ))
            }
            Traffic::Udp { bps, packet_bytes, on_ns, off_ns, ecn } => {
                let periods = on_ns.clone().zip(off_ns.clone());
                let source = UdpSource::new(Rate(*bps), *packet_bytes, periods, luck("traffic"));
                Ends::Udp { source, packet_bytes: *packet_bytes, ecn: *ecn, next: start, seq: 0 }
            }
            Traffic::Ping { interval_ns, packet_bytes } => Ends::Ping {
                interval: Span(*interval_ns),
                packet_bytes: *packet_bytes,
                next: start,
            },
            Traffic::Video { frames, payload_bytes } => {
                let source = VideoSource::new(frames.clone(), start, luck("traffic"));
                Ends::Video { source, payload_bytes: *payload_bytes, next: start, seq: 0 }
            }
        };
        let jitter = (spec.jitter_ns > 0).then(|| {
            Box::new(Jitter { most: spec.jitter_ns, luck: luck("jitter"), last: [Time::ZERO; 2] })
        });
        Host {
            envelope: Envelope { flow: 2 * flow as u32, ds: spec.ds },
            ends,
            source_timer: Time::NEVER,
            sink_timer: Time::NEVER,
            start,
            stop: spec.stop_ns.map_or(Time::NEVER, Time),
            started: false,
            stopped: false,
            counters: Counters::default(),
            rtt: Histogram::default(),
            jitter,
            transfers: Vec::new(),
            probes: Vec::new(),
        }
    }

    /// Whether a program sends by itself: datagrams, pings.
    pub fn is_program(&self) -> bool {
        !matches!(self.ends, Ends::Tcp(_))
    }

    /// When the source next has something to do by itself.
    #[inline]
    pub fn source_deadline(&self) -> Option<Time> {
        if !self.started {
            return Some(self.start);
        }
        let own = match &self.ends {
            Ends::Tcp(tcp) if tcp.resume != Time::NEVER => Some(tcp.resume),
            Ends::Tcp(tcp) => tcp.sender.deadline(),
            Ends::Udp { next, .. } | Ends::Ping { next, .. } | Ends::Video { next, .. } => {
                Some(*next)
            }
        };
        if self.stopped {
            // A stopped TCP source still retransmits what is outstanding; the others are silent.
            return if matches!(self.ends, Ends::Tcp(_)) { own } else { None };
        }
        match own {
            Some(own) => Some(own.min(self.stop)),
            None if self.stop != Time::NEVER => Some(self.stop),
            None => None,
        }
    }

    /// When the far end next has something to do by itself: TCP's delayed ACK.
    #[inline]
    pub fn sink_deadline(&self) -> Option<Time> {
        match &self.ends {
            Ends::Tcp(tcp) => tcp.receiver.deadline(),
            _ => None,
        }
    }

    /// The source's deadline is reached.
    pub fn source_due(&mut self, now: Time, outbox: &mut Outbox) {
        self.started |= now >= self.start;
        if !self.stopped && now >= self.stop {
            self.stopped = true;
            if let Ends::Tcp(tcp) = &mut self.ends {
                tcp.sender.stop();
                tcp.resume = Time::NEVER;
                tcp.cold.next = None;
            }
        }
        match &mut self.ends {
            Ends::Tcp(tcp) => {
                if tcp.resume <= now {
                    tcp.begin_next(now, &mut self.counters);
                }
                if tcp.sender.deadline().is_some_and(|deadline| deadline <= now) {
                    tcp.sender.on_deadline(now);
                }
                tcp.pump(self.envelope, now, &mut self.counters, outbox);
            }
            _ if self.stopped => {}
            Ends::Udp { source, packet_bytes, ecn, next, seq } => {
                if *next <= now {
                    let ecn = if *ecn { Ecn::Ect } else { Ecn::NotEct };
                    let body = Payload::new(kind::DATAGRAM, *seq, now);
                    *seq += 1;
                    count_sent(&mut self.counters, *packet_bytes);
                    outbox.packets.push(self.envelope.packet(*packet_bytes, ecn, body));
                    *next = source.next_after(now);
                }
            }
            Ends::Ping { interval, packet_bytes, next } => {
                if *next <= now {
                    let body = Payload::new(kind::PING, self.probes.len() as u32, now);
                    self.probes.push(Probe { sent: now, rtt: None, forward: None, lost: false });
                    count_sent(&mut self.counters, *packet_bytes);
                    outbox.packets.push(self.envelope.packet(*packet_bytes, Ecn::NotEct, body));
                    *next = now + *interval;
                }
            }
            Ends::Video { source, payload_bytes, next, seq } => {
                if *next <= now {
                    let (mut left, due) = source.next_frame();
                    *next = due;
                    while left > 0 {
                        let payload = left.min(u64::from(*payload_bytes)) as u32;
                        left -= u64::from(payload);
                        let size = payload + RTP_HEADERS;
                        let body = Payload::new(kind::DATAGRAM, *seq, now);
                        *seq += 1;
                        count_sent(&mut self.counters, size);
                        outbox.packets.push(self.envelope.packet(size, Ecn::NotEct, body));
                    }
                }
            }
        }
    }

    /// The far end's deadline is reached.
    pub fn sink_due(&mut self, now: Time, sacks: &mut SackPool, outbox: &mut Outbox) {
        if let Ends::Tcp(tcp) = &mut self.ends
            && tcp.receiver.deadline().is_some_and(|deadline| deadline <= now)
            && let Some(ack) = tcp.receiver.on_deadline(now)
        {
            outbox.packets.push(tcp.reply(&ack, self.envelope, sacks));
        }
    }

    /// A packet of the source reaches the far end.
    #[inline]
    pub fn at_far_end(
        &mut self,
        packet: Parcel,
        now: Time,
        sacks: &mut SackPool,
        outbox: &mut Outbox,
    ) {
        let body = packet.body;
        match &mut self.ends {
            Ends::Tcp(tcp) => {
                self.counters.received_packets += 1;
                if body.epoch != tcp.epoch {
                    return;
                }
                let segment = unpack_segment(&packet, tcp.header_bytes);
                if let Some(ack) =
                    tcp.receiver.on_segment(&segment, packet.ds.ecn() == Ecn::Ce, now)
                {
                    outbox.packets.push(tcp.reply(&ack, self.envelope, sacks));
                }
            }
            Ends::Ping { .. } => {
                self.counters.received_packets += 1;
                let stamp = body.stamp;
                self.probes[body.seq as usize].forward = Some(now.since(stamp));
                let reply = Payload::new(kind::PONG, body.seq, stamp);
                outbox.packets.push(self.envelope.reply().packet(packet.size, Ecn::NotEct, reply));
            }
            Ends::Udp { .. } | Ends::Video { .. } => {
                self.counters.received_packets += 1;
                let headers =
                    if matches!(self.ends, Ends::Video { .. }) { RTP_HEADERS } else { UDP_HEADERS };
                self.counters.delivered_bytes += u64::from(packet.size.saturating_sub(headers));
                let stamp = body.stamp;
                self.rtt.add(now.since(stamp).0);
            }
        }
    }

    /// A reply reaches the source.
    #[inline]
    pub fn at_source(
        &mut self,
        packet: Parcel,
        now: Time,
        sacks: &mut SackPool,
        outbox: &mut Outbox,
    ) {
        let body = packet.body;
        match &mut self.ends {
            Ends::Tcp(tcp) => {
                let ack = unpack_ack(&packet, tcp.receiver.window_scale(), sacks);
                if body.epoch != tcp.epoch || tcp.resume != Time::NEVER {
                    return;
                }
                let acked = tcp.sender.on_ack(&ack, now);
                if let Some(rtt) = acked.rtt {
                    self.rtt.add(rtt.0);
                }
                if acked.complete {
                    let bytes = tcp.cold.bytes.unwrap_or(0);
                    self.transfers.push(Transfer { start: tcp.began, end: now, bytes });
                    tcp.rest(now);
                    return;
                }
                tcp.pump(self.envelope, now, &mut self.counters, outbox);
            }
            Ends::Ping { .. } => {
                let stamp = body.stamp;
                self.probes[body.seq as usize].rtt = Some(now.since(stamp));
            }
            _ => unreachable!("one-way traffic gets no replies"),
        }
    }

    /// A queue or a wire dropped one of the flow's packets.
    pub fn dropped(&mut self, packet: &Parcel) {
        self.counters.lost_packets += u64::from(packet.flow.is_multiple_of(2));
        if matches!(self.ends, Ends::Ping { .. }) {
            self.probes[packet.body.seq as usize].lost = true;
        }
    }

    /// Whether packets leave the host late.
    #[inline]
    pub fn jitters(&self) -> bool {
        self.jitter.is_some()
    }

    /// When a packet leaves the host: now, or later by a random part of the jitter, order kept.
    #[inline]
    pub fn leaves_at(&mut self, packet: &Parcel, now: Time) -> Time {
        let Some(jitter) = &mut self.jitter else {
            return now;
        };
        let last = &mut jitter.last[(packet.flow % 2) as usize];
        *last = (*last).max(now + Span(jitter.luck.below(jitter.most)));
        *last
    }

    /// The counts up to now, those of TCP's endpoints included.
    pub fn totals(&self) -> Counters {
        match &self.ends {
            Ends::Tcp(tcp) => tcp.totals(&self.counters),
            _ => self.counters,
        }
    }

    /// TCP's endpoints, where there are any.
    pub fn tcp(&self) -> Option<(&Sender, &Receiver)> {
        match &self.ends {
            Ends::Tcp(tcp) => Some((&tcp.sender, &tcp.receiver)),
            _ => None,
        }
    }

    /// A probe's samples are in the `probe` table; it has no row among the flows' time lines.
    pub fn is_probe(&self) -> bool {
        matches!(self.ends, Ends::Ping { .. })
    }
}

fn count_sent(counters: &mut Counters, bytes: u32) {
    counters.sent_packets += 1;
    counters.sent_bytes += u64::from(bytes);
}

impl TcpEnds {
    fn new(
        params: &TcpParams,
        bytes: Option<u64>,
        next: Option<(Draw, Draw)>,
        luck: Luck,
        start: Time,
    ) -> TcpEnds {
        TcpEnds {
            sender: Sender::new(params, bytes),
            receiver: Receiver::new(params),
            header_bytes: params.header_bytes,
            ack_bytes: params.ack_bytes,
            epoch: 0,
            resume: Time::NEVER,
            began: start,
            before: Counters::default(),
            cold: Box::new(TcpCold { params: params.clone(), bytes, next, luck }),
        }
    }

    #[inline]
    fn pump(
        &mut self,
        envelope: Envelope,
        now: Time,
        counters: &mut Counters,
        outbox: &mut Outbox,
    ) {
        while let Some(segment) = self.sender.poll(now) {
            let packet = pack_segment(&segment, self.header_bytes, envelope, self.epoch);
            count_sent(counters, packet.size);
            outbox.packets.push(packet);
        }
    }

    /// The packet of an ACK, on its way back.
    #[inline]
    fn reply(&self, ack: &AckSegment, envelope: Envelope, sacks: &mut SackPool) -> Parcel {
        pack_ack(
            ack,
            self.receiver.window_scale(),
            self.ack_bytes,
            envelope.reply(),
            self.epoch,
            sacks,
        )
    }

    /// The transfer is complete: the next one begins after a pause, if there is one.
    fn rest(&mut self, now: Time) {
        let cold = &mut *self.cold;
        self.resume = match &cold.next {
            Some((_, pause)) => now + Span(pause.next(&mut cold.luck)),
            None => Time::NEVER,
        };
    }

    fn begin_next(&mut self, now: Time, counters: &mut Counters) {
        let Some((sizes, _)) = &self.cold.next else {
            return;
        };
        let bytes = sizes.next(&mut self.cold.luck).max(1);
        self.before = self.totals(&Counters { ..*counters });
        self.cold.bytes = Some(bytes);
        self.sender = Sender::new(&self.cold.params, Some(bytes));
        self.receiver = Receiver::new(&self.cold.params);
        self.epoch = self.epoch.wrapping_add(1);
        self.resume = Time::NEVER;
        self.began = now;
    }

    fn totals(&self, counters: &Counters) -> Counters {
        let stats = self.sender.stats();
        Counters {
            delivered_bytes: self.before.delivered_bytes + self.receiver.delivered_bytes(),
            retransmits: self.before.retransmits + stats.retransmits,
            timeouts: self.before.timeouts + stats.timeouts,
            fast_recoveries: self.before.fast_recoveries + stats.fast_recoveries,
            ..*counters
        }
    }
}
