//! The two ends of a flow: its source and its far end. Only a simulator can have both in one
//! struct.
//!
//! A host receives packets and the time, and sends packets. A packet's direction determines the
//! end: even five-tuple numbers run from the source to the far end, odd numbers back. The two ends
//! exchange only packets: one end may be ahead of the other by the time that a packet takes between
//! them.

use crate::ends::{Counters, Path, TcpHeaders, Transfer};
use crate::exchange::Exchange;
use crate::payload::{
    Envelope, Parcel, SackPool, kind, pack_ack, pack_segment, unpack_ack, unpack_plain_ack,
    unpack_plain_segment, unpack_segment,
};
use crate::player::Player;
use crate::scenario::{FlowSpec, Traffic};

use std::collections::BTreeSet;
use tables::Histogram;
use tcp::params::ACCECN_BYTES;
use tcp::{AckSegment, Acked, Receiver, Sender, TcpParams};
use traffic::{Draw, PacedWriter, RTP_HEADERS, UDP_HEADERS, UdpSource, VideoSource};
use units::{Rate, Rng, Span, Time};

/// One ping: the time it left, its round trip and its delay to the far end.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    pub sent: Time,
    pub rtt: Option<Span>,
    pub forward: Option<Span>,
    pub lost: bool,
}

/// A flow: both ends, its timers, its counts.
pub struct Host {
    envelope: Envelope,
    ends: Ends,
    start: Time,
    stop: Time,
    /// The time of a paced application's next write, or `stop` if that is earlier.
    due: Time,
    started: bool,
    stopped: bool,
    pub counters: Counters,
    pub rtt: Histogram,
    /// The longest delay of a datagram that arrived since the last sample.
    pub longest: Option<Span>,
    pub transfers: Vec<Transfer>,
    pub probes: Vec<Probe>,
    /// Datagrams that a wire has doubled: one copy has arrived, the other has not.
    twins: BTreeSet<u32>,
}

#[allow(clippy::large_enum_variant)] // TCP must be fast; the others are few.
enum Ends {
    Tcp(TcpEnds),
    Requests(Box<Exchange>),
    Udp { source: UdpSource, packet_bytes: u32, next: Time, seq: u32 },
    Ping { interval: Span, packet_bytes: u32, next: Time },
    Video { source: VideoSource, payload_bytes: u32, next: Time, seq: u32 },
}

struct TcpEnds {
    sender: Sender,
    receiver: Receiver,
    header_bytes: u32,
    /// Bytes of a SYN without the options that only a SYN has.
    syn_bytes: u32,
    ack_bytes: u32,
    /// The connection's number modulo 256: packets of earlier connections are ignored.
    epoch: u8,
    /// The far end's latest connection, and the bytes delivered by earlier ones.
    far_epoch: u8,
    far_delivered: u64,
    /// Between transfers: the time at which the next one starts. NEVER during a transfer, and while
    /// no next one is scheduled.
    resume: Time,
    began: Time,
    /// The counts of earlier connections of this flow, without those of the present one.
    earlier: Counters,
    cold: Box<TcpCold>,
}

struct TcpCold {
    params: TcpParams,
    /// Bytes of each connection up to the present one.
    streams: Vec<Option<u64>>,
    /// Further transfers.
    next: Option<Next>,
    /// The application, if it has a pace.
    writer: Option<PacedWriter>,
    rng: Rng,
    /// Draws the random stream of each connection's congestion control.
    congestion: Rng,
}

/// The successor of a transfer.
enum Next {
    /// Another transfer of a drawn size, after a drawn pause.
    Transfer(Draw, Draw),
    /// The next object of a web page. At the page's end the connection waits for the page's other
    /// connections (`pages`).
    Object(Share),
    /// The next segment of a video.
    Segment(Player),
}

/// The objects of a web page that one connection fetches.
struct Share {
    sizes: Draw,
    /// Pause from page to page.
    pause: Draw,
    /// Objects per page.
    objects: u32,
    /// Remaining objects of the present page, the one in progress included.
    left: u32,
    /// Bytes fetched of the present page.
    bytes: u64,
    /// The time at which its last object arrived; NEVER: not yet.
    over: Time,
}

impl Host {
    pub fn new(spec: &FlowSpec, flow: usize, seed: u64) -> Host {
        let rng = |what: &str| Rng::new(seed, &format!("{}/{what}", spec.name));
        let start = Time(spec.start_ns);
        let ends = match &spec.traffic.sent() {
            Traffic::Call | Traffic::Capture { .. } => unreachable!("it is sent as datagrams"),
            Traffic::Program => unreachable!("`scenario::realised::simulated` refuses it"),
            Traffic::Bulk { bytes, pace, tcp } => {
                let mut ends =
                    TcpEnds::new(tcp, *bytes, None, (rng("traffic"), rng("congestion")), start);
                if let Some(pace) = pace {
                    ends.cold.writer = Some(PacedWriter::new(pace.clone(), start));
                    ends.sender = ends.sender.with_application(tcp);
                }
                Ends::Tcp(ends)
            }
            Traffic::Transfers { bytes, pause_ns, objects, tcp } => {
                let mut traffic = rng("traffic");
                let first = bytes.next(&mut traffic).max(1);
                let (sizes, pause) = (bytes.clone(), pause_ns.clone());
                let next = match *objects {
                    None => Next::Transfer(sizes, pause),
                    Some(objects) => Next::Object(Share {
                        sizes,
                        pause,
                        objects,
                        left: objects,
                        bytes: 0,
                        over: Time::NEVER,
                    }),
                };
                Ends::Tcp(TcpEnds::new(
                    tcp,
                    Some(first),
                    Some(next),
                    (traffic, rng("congestion")),
                    start,
                ))
            }
            Traffic::Requests { request_bytes, bytes, pause_ns, write_bytes: _, tcp } => {
                let draws = [request_bytes, bytes, pause_ns];
                let stop = spec.stop_ns.map_or(Time::NEVER, Time);
                let rngs = (rng("traffic"), rng("congestion"));
                let exchange = Exchange::new(tcp, draws, envelope(spec, flow), (start, stop), rngs);
                Ends::Requests(Box::new(exchange))
            }
            Traffic::Stream { ladder_bps, segment_ns, ahead_ns, tcp } => {
                let player = Player::new(ladder_bps, Span(*segment_ns), Span(*ahead_ns));
                let first = player.segment_bytes();
                let next = Some(Next::Segment(player));
                Ends::Tcp(TcpEnds::new(
                    tcp,
                    Some(first),
                    next,
                    (rng("traffic"), rng("congestion")),
                    start,
                ))
            }
            Traffic::Udp { bps, packet_bytes, on_ns, off_ns } => {
                let periods = on_ns.clone().zip(off_ns.clone());
                let source = UdpSource::new(Rate(*bps), *packet_bytes, periods, rng("traffic"));
                Ends::Udp { source, packet_bytes: *packet_bytes, next: start, seq: 0 }
            }
            Traffic::Ping { interval_ns, packet_bytes } => Ends::Ping {
                interval: Span(*interval_ns),
                packet_bytes: *packet_bytes,
                next: start,
            },
            Traffic::Video { frames, payload_bytes } => {
                let source = VideoSource::new(frames.clone(), start, rng("traffic"));
                Ends::Video { source, payload_bytes: *payload_bytes, next: start, seq: 0 }
            }
        };
        let stop = spec.stop_ns.map_or(Time::NEVER, Time);
        let paced = matches!(&ends, Ends::Tcp(tcp) if tcp.cold.writer.is_some());
        Host {
            envelope: envelope(spec, flow),
            ends,
            start,
            stop,
            due: if paced { start.min(stop) } else { stop },
            started: false,
            stopped: false,
            counters: Counters::default(),
            rtt: Histogram::default(),
            transfers: Vec::new(),
            probes: Vec::new(),
            longest: None,
            twins: BTreeSet::new(),
        }
    }

    /// The time of the source's next own event; NEVER: none.
    #[inline]
    pub fn source_deadline(&self) -> Time {
        if !self.started {
            return self.start;
        }
        let own = match &self.ends {
            Ends::Tcp(tcp) if tcp.resume != Time::NEVER => tcp.resume,
            Ends::Tcp(tcp) => tcp.sender.deadline().unwrap_or(Time::NEVER),
            // A stopped TCP source still retransmits outstanding data; the other sources are
            // silent.
            _ if self.stopped => Time::NEVER,
            Ends::Requests(_) => unreachable!("the ends of an exchange have their own loops"),
            Ends::Udp { next, .. } | Ends::Ping { next, .. } | Ends::Video { next, .. } => *next,
        };
        if self.stopped { own } else { own.min(self.due) }
    }

    /// The source's deadline is reached.
    fn source_due(&mut self, now: Time, path: &mut impl Path) {
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
                if self.due <= now && !self.stopped {
                    self.due = tcp.write(now).min(self.stop);
                }
                if tcp.sender.deadline().is_some_and(|deadline| deadline <= now) {
                    tcp.sender.on_deadline(now);
                }
                tcp.pump(self.envelope, now, &mut self.counters, path);
            }
            Ends::Requests(_) => unreachable!("the ends of an exchange have their own loops"),
            _ if self.stopped => {}
            Ends::Udp { source, packet_bytes, next, seq } => {
                if *next <= now {
                    path.send(
                        self.envelope.of_program(*packet_bytes, kind::DATAGRAM, *seq, now),
                        now,
                    );
                    *seq += 1;
                    count_sent(&mut self.counters, *packet_bytes);
                    *next = source.next_after(now);
                }
            }
            Ends::Ping { interval, packet_bytes, next } => {
                if *next <= now {
                    let (size, seq) = (*packet_bytes, self.probes.len() as u32);
                    self.probes.push(Probe { sent: now, rtt: None, forward: None, lost: false });
                    count_sent(&mut self.counters, size);
                    path.send(self.envelope.of_program(size, kind::PING, seq, now), now);
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
                        path.send(self.envelope.of_program(size, kind::DATAGRAM, *seq, now), now);
                        *seq += 1;
                        count_sent(&mut self.counters, size);
                    }
                }
            }
        }
    }

    /// Whether the flow is an exchange. Then `move_client` and `move_server` replace `move_far_end`
    /// and `move_source`, so that the loops of the latter two stay small.
    #[inline]
    pub fn is_exchange(&self) -> bool {
        matches!(self.ends, Ends::Requests(_))
    }

    /// Runs the client of an exchange, the far end, as `move_far_end` does.
    pub fn move_client(
        &mut self,
        until: Time,
        path: &mut impl Path,
        sacks: &mut SackPool,
    ) -> (u64, Time) {
        let Ends::Requests(exchange) = &mut self.ends else { unreachable!("it is an exchange") };
        let records = (&mut self.counters, &mut self.transfers);
        exchange.move_client(until, path, sacks, records)
    }

    /// Runs the server of an exchange, the source, as `move_source` does.
    pub fn move_server(
        &mut self,
        until: Time,
        path: &mut impl Path,
        sacks: &mut SackPool,
    ) -> (u64, Time) {
        let Ends::Requests(exchange) = &mut self.ends else { unreachable!("it is an exchange") };
        let measured = |rtt: Span| self.rtt.add(rtt.0);
        exchange.move_server(until, path, sacks, &mut self.counters, measured)
    }

    /// Runs the far end up to `until`; returns the number of events and the time of the next.
    #[inline]
    pub fn move_far_end(
        &mut self,
        until: Time,
        path: &mut impl Path,
        sacks: &mut SackPool,
    ) -> (u64, Time) {
        let mut events = 0;
        let Ends::Tcp(tcp) = &mut self.ends else {
            loop {
                let arrival = path.first_arrives();
                if arrival >= until {
                    return (events, arrival);
                }
                events += 1;
                self.arrive(path, arrival);
            }
        };
        let mut now = Time::ZERO;
        loop {
            let timer = tcp.receiver.deadline().unwrap_or(Time::NEVER);
            let arrival = path.first_arrives();
            if arrival.min(timer) >= until {
                return (events, arrival.min(timer));
            }
            events += 1;
            // A timer expires before a packet that arrives at the same time.
            let ack = if timer <= arrival {
                now = timer.max(now);
                tcp.receiver.on_deadline(now)
            } else {
                now = arrival;
                let packet = path.receive();
                self.counters.received_packets += 1;
                if packet.epoch != tcp.far_epoch && !tcp.accept_next(packet.epoch) {
                    continue;
                }
                match unpack_plain_segment(&packet, tcp.header_bytes) {
                    Some(segment) => tcp.receiver.on_segment(&segment, now),
                    None => tcp.on_flagged_segment(&packet, now),
                }
            };
            if let Some(ack) = ack {
                path.send(tcp.reply(&ack, self.envelope, sacks), now);
            }
        }
    }

    /// A program's packet reaches the far end.
    fn arrive(&mut self, path: &mut impl Path, now: Time) {
        let packet = path.receive();
        let Parcel { stamp, seq, size, .. } = packet;
        if let Ends::Ping { .. } = self.ends {
            // Of two copies only the first counts, as with the replies.
            let forward = &mut self.probes[seq as usize].forward;
            self.counters.received_packets += u64::from(forward.is_none());
            forward.get_or_insert(now.since(stamp));
            let pong = self.envelope.reply().of_program(size, kind::PONG, seq, stamp);
            path.send(pong, now);
        } else {
            if packet.kind & kind::TWIN != 0 && !self.twins.insert(seq) {
                return;
            }
            self.counters.received_packets += 1;
            let headers =
                if matches!(self.ends, Ends::Video { .. }) { RTP_HEADERS } else { UDP_HEADERS };
            self.counters.delivered_bytes += u64::from(size.saturating_sub(headers));
            let delay = now.since(stamp);
            self.rtt.add(delay.0);
            self.longest = self.longest.max(Some(delay));
        }
    }

    /// Runs the source up to `until`; returns the number of events and the time of the next.
    #[inline]
    pub fn move_source(
        &mut self,
        until: Time,
        path: &mut impl Path,
        sacks: &mut SackPool,
    ) -> (u64, Time) {
        let (mut events, mut now) = (0, Time::ZERO);
        loop {
            let (arrival, timer) = (path.first_arrives(), self.source_deadline());
            if arrival.min(timer) >= until {
                return (events, arrival.min(timer));
            }
            events += 1;
            if timer <= arrival {
                now = timer.max(now);
                self.source_due(now, path);
            } else {
                now = arrival;
                self.at_source(now, path, sacks);
            }
        }
    }

    /// A reply reaches the source.
    #[inline]
    fn at_source(&mut self, now: Time, path: &mut impl Path, sacks: &mut SackPool) {
        let packet = path.receive();
        match &mut self.ends {
            Ends::Tcp(tcp) => {
                let ignored = packet.epoch != tcp.epoch || tcp.resume != Time::NEVER;
                let acked = match unpack_plain_ack(&packet, tcp.receiver.window_scale()) {
                    _ if ignored => return sacks.release(&packet),
                    Some(ack) => tcp.sender.on_ack(&ack, now),
                    None => tcp.on_flagged_ack(&packet, sacks, now),
                };
                if let Some(rtt) = acked.rtt {
                    self.rtt.add(rtt.0);
                }
                if acked.complete {
                    let bytes = tcp.cold.stream().unwrap_or(0);
                    // A page is one transfer, complete when all of it has arrived.
                    if !matches!(tcp.cold.next, Some(Next::Object(_))) {
                        self.transfers.push(Transfer { start: tcp.began, end: now, bytes });
                    }
                    tcp.rest(now);
                    return;
                }
                tcp.pump(self.envelope, now, &mut self.counters, path);
            }
            Ends::Ping { .. } => {
                let probe = &mut self.probes[packet.seq as usize];
                probe.rtt.get_or_insert(now.since(packet.stamp));
                probe.lost = false;
            }
            _ => unreachable!("one-way traffic gets no replies"),
        }
    }

    /// A queue or a wire dropped one of the flow's packets.
    pub fn dropped(&mut self, packet: &Parcel) {
        let data = packet.flow.is_multiple_of(2) && packet.kind() != kind::ACK;
        self.counters.lost_packets += u64::from(data);
        if matches!(self.ends, Ends::Ping { .. }) {
            let probe = &mut self.probes[packet.seq as usize];
            probe.lost = probe.rtt.is_none();
        }
    }

    /// Common parts of the headers of the connection to which a packet belongs; `None`: the flow is
    /// not TCP.
    pub fn tcp_headers(&self, packet: &Parcel) -> Option<TcpHeaders<'_>> {
        let tcp = match &self.ends {
            Ends::Tcp(tcp) => tcp,
            Ends::Requests(exchange) => return Some(exchange.headers(packet)),
            _ => return None,
        };
        let connection = packet.epoch;
        let params = &tcp.cold.params;
        let streams = &tcp.cold.streams;
        // A host may be ahead of packets in flight by less than 256 connections.
        let ago = tcp.epoch.wrapping_sub(connection);
        let stream = streams.len().checked_sub(1 + usize::from(ago));
        Some(TcpHeaders {
            mss: params.mss,
            bytes: params.header_bytes,
            timestamps: params.timestamps,
            sack: params.recovery.sack,
            scale: tcp.receiver.window_scale(),
            syn_window: tcp.receiver.syn_window(),
            stream_bytes: stream.and_then(|stream| streams[stream]),
            sender: (ago == 0).then_some(&tcp.sender),
            other: None,
        })
    }

    /// The counts up to now, those of TCP's endpoints included.
    pub fn totals(&self) -> Counters {
        match &self.ends {
            Ends::Tcp(tcp) => tcp.totals(&self.counters),
            Ends::Requests(exchange) => {
                let stats = exchange.server().sender().stats();
                Counters {
                    delivered_bytes: exchange.client().receiver().delivered_bytes(),
                    retransmits: stats.retransmits,
                    timeouts: stats.timeouts,
                    fast_recoveries: stats.fast_recoveries,
                    ..self.counters
                }
            }
            _ => self.counters,
        }
    }

    /// TCP's endpoints, if there are any.
    pub fn tcp(&self) -> Option<(&Sender, &Receiver)> {
        match &self.ends {
            Ends::Tcp(tcp) => Some((&tcp.sender, &tcp.receiver)),
            Ends::Requests(exchange) => {
                Some((exchange.server().sender(), exchange.client().receiver()))
            }
            _ => None,
        }
    }

    /// Whether it is a probe: its samples are in the table `probe`, not in the flows' time lines.
    pub fn is_probe(&self) -> bool {
        matches!(self.ends, Ends::Ping { .. })
    }
}

/// Web pages: the interface of `pages` to a host.
impl Host {
    fn share(&mut self) -> Option<(&mut Share, &mut Rng, &mut Time)> {
        match &mut self.ends {
            Ends::Tcp(tcp) => match &mut tcp.cold.next {
                Some(Next::Object(share)) => Some((share, &mut tcp.cold.rng, &mut tcp.resume)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The time at which this connection's last object of the present page arrived, and the bytes
    /// of its objects; None: some are missing, or the source has stopped.
    pub fn page_over(&mut self) -> Option<(Time, u64)> {
        let (share, ..) = self.share()?;
        (share.over != Time::NEVER).then_some((share.over, share.bytes))
    }

    /// The user's pause after a page.
    pub fn page_pause(&mut self) -> Span {
        self.share().map_or(Span(0), |(share, rng, _)| Span(share.pause.next(rng)))
    }

    /// The next page begins at `at`.
    pub fn next_page(&mut self, at: Time) {
        if let Some((share, _, resume)) = self.share() {
            (share.left, share.bytes, share.over) = (share.objects, 0, Time::NEVER);
            *resume = at;
        }
    }
}

impl Share {
    /// An object has arrived; returns the time of the next request.
    fn fetched(&mut self, bytes: u64, now: Time) -> Time {
        self.bytes += bytes;
        self.left -= 1;
        if self.left > 0 {
            return now;
        }
        self.over = now;
        Time::NEVER
    }
}

/// The common fields of the packets that a flow's source sends.
fn envelope(spec: &FlowSpec, flow: usize) -> Envelope {
    Envelope { flow: 2 * flow as u32, ds: spec.ds }
}

fn count_sent(counters: &mut Counters, bytes: u32) {
    counters.sent_packets += 1;
    counters.sent_bytes += u64::from(bytes);
}

/// The sender of a connection, with its own random stream.
fn connection(params: &TcpParams, bytes: Option<u64>, rng: &mut Rng) -> Sender {
    let stream = Rng::new(rng.next_u64(), "connection");
    Sender::new(params, bytes).with_rng(stream)
}

impl TcpCold {
    /// Bytes of the present connection; none: without end.
    fn stream(&self) -> Option<u64> {
        self.streams.last().copied().flatten()
    }
}

impl TcpEnds {
    fn new(
        params: &TcpParams,
        bytes: Option<u64>,
        next: Option<Next>,
        (traffic, mut congestion): (Rng, Rng),
        start: Time,
    ) -> TcpEnds {
        TcpEnds {
            sender: connection(params, bytes, &mut congestion),
            receiver: Receiver::new(params),
            header_bytes: params.header_bytes,
            syn_bytes: params.header_bytes - if params.accecn { ACCECN_BYTES } else { 0 },
            ack_bytes: params.ack_bytes,
            epoch: 0,
            far_epoch: 0,
            far_delivered: 0,
            resume: Time::NEVER,
            began: start,
            earlier: Counters::default(),
            cold: Box::new(TcpCold {
                params: params.clone(),
                streams: vec![bytes],
                next,
                writer: None,
                rng: traffic,
                congestion,
            }),
        }
    }

    #[inline]
    fn pump(
        &mut self,
        envelope: Envelope,
        now: Time,
        counters: &mut Counters,
        path: &mut impl Path,
    ) {
        while let Some(segment) = self.sender.poll(now) {
            let header_bytes = if segment.syn { self.syn_bytes } else { self.header_bytes };
            let packet = pack_segment(&segment, header_bytes, envelope, self.epoch);
            count_sent(counters, packet.size);
            path.send(packet, now);
        }
    }

    /// A paced application writes what it has produced. Returns the time of its next write.
    #[cold]
    fn write(&mut self, now: Time) -> Time {
        let Some(writer) = &mut self.cold.writer else { return Time::NEVER };
        self.sender.produce(writer.produce(now, self.sender.written_bytes()), now);
        writer.next()
    }

    /// A segment with a flag, or without data, reaches the far end.
    #[inline(never)]
    fn on_flagged_segment(&mut self, packet: &Parcel, now: Time) -> Option<AckSegment> {
        self.receiver.on_segment(&unpack_segment(packet, self.header_bytes), now)
    }

    /// An ACK with a flag or blocks reaches the source.
    #[inline(never)]
    fn on_flagged_ack(&mut self, packet: &Parcel, sacks: &mut SackPool, now: Time) -> Acked {
        let ack = unpack_ack(packet, self.receiver.window_scale(), sacks);
        self.sender.on_ack(&ack, now)
    }

    /// The packet of an ACK, on its way back.
    #[inline]
    fn reply(&self, ack: &AckSegment, envelope: Envelope, sacks: &mut SackPool) -> Parcel {
        pack_ack(
            ack,
            self.receiver.window_scale(),
            self.ack_bytes,
            envelope.reply(),
            self.far_epoch,
            sacks,
        )
    }

    /// The transfer is complete: the next one begins after a pause, if there is one.
    fn rest(&mut self, now: Time) {
        let cold = &mut *self.cold;
        let bytes = cold.stream().unwrap_or(0);
        self.resume = match &mut cold.next {
            Some(Next::Transfer(_, pause)) => now + Span(pause.next(&mut cold.rng)),
            Some(Next::Object(share)) => share.fetched(bytes, now),
            Some(Next::Segment(player)) => player.fetched(bytes, self.began, now),
            None => Time::NEVER,
        };
    }

    fn begin_next(&mut self, now: Time, counters: &mut Counters) {
        let cold = &mut *self.cold;
        let bytes = match &cold.next {
            Some(Next::Transfer(sizes, _)) => sizes.next(&mut cold.rng).max(1),
            Some(Next::Object(share)) => share.sizes.next(&mut cold.rng).max(1),
            Some(Next::Segment(player)) => player.segment_bytes(),
            None => return,
        };
        self.earlier = self.totals(&Counters { ..*counters });
        self.cold.streams.push(Some(bytes));
        self.sender = connection(&self.cold.params, Some(bytes), &mut self.cold.congestion);
        self.epoch = self.epoch.wrapping_add(1);
        self.resume = Time::NEVER;
        self.began = now;
    }

    /// A packet of another connection arrives at the far end. If that connection is later, it
    /// becomes the far end's present one, and this returns true.
    #[cold]
    fn accept_next(&mut self, epoch: u8) -> bool {
        let later = epoch.wrapping_sub(self.far_epoch) < 128;
        if later {
            self.far_delivered += self.receiver.delivered_bytes();
            self.receiver = Receiver::new(&self.cold.params);
            self.far_epoch = epoch;
        }
        later
    }

    fn totals(&self, counters: &Counters) -> Counters {
        let stats = self.sender.stats();
        Counters {
            delivered_bytes: self.far_delivered + self.receiver.delivered_bytes(),
            retransmits: self.earlier.retransmits + stats.retransmits,
            timeouts: self.earlier.timeouts + stats.timeouts,
            fast_recoveries: self.earlier.fast_recoveries + stats.fast_recoveries,
            ..*counters
        }
    }
}
