//! Requests and answers over one kept connection: both ends, and their applications.
//!
//! The client, a flow's far end, connects and writes a request. When the whole request has arrived,
//! the server, its source, writes the answer. When the whole answer has arrived, the client pauses
//! and writes the next request. A request's time begins when the client writes it; the first one's
//! begins with the SYN. It ends when the client has the whole answer.
//!
//! An application acts at the instant at which its last byte arrives, after its kernel has
//! acknowledged it. Sizes and pauses are drawn in the order in which they are needed: request,
//! answer, pause. The program in a kernel's guest (crates/guest, `flows/requests.rs`) does the same
//! with Linux's sockets.

use crate::ends::{Counters, Path, TcpHeaders, Transfer};
use crate::payload::{
    Envelope, Parcel, SackPool, kind, pack_ack_beside, pack_carrier, pack_segment, unpack_ack,
    unpack_carrier,
};
use std::collections::VecDeque;
use tcp::{AckSegment, Endpoint, Outgoing, TcpParams};
use traffic::Draw;
use units::{Rng, Span, Time};

/// A connection with requests.
pub struct Exchange {
    client: End,
    server: End,
    asking: Asking,
    answering: Answering,
    params: TcpParams,
}

/// An end of the connection, and its packets.
struct End {
    tcp: Endpoint,
    envelope: Envelope,
    header_bytes: u32,
    ack_bytes: u32,
}

/// The client's application.
struct Asking {
    request_bytes: Draw,
    bytes: Draw,
    pause: Draw,
    rng: Rng,
    /// The time of the next request; NEVER: an answer is awaited, or there is none.
    next: Time,
    stop: Time,
    /// Bytes of all requests so far, and of their answers.
    asked: u64,
    owed: u64,
    /// The start of the present request, and the bytes of its answer.
    present: Option<(Time, u64)>,
}

/// The server's application.
struct Answering {
    /// For each request that has not arrived: bytes of all requests up to it, and of its answer.
    due: VecDeque<(u64, u64)>,
    /// Bytes of all answers so far.
    written: u64,
}

impl Exchange {
    /// A connection whose first request is at `start`; requests begin before `stop`. `draws` are
    /// the laws of the requests' bytes, the answers' bytes and the pauses. The first random stream
    /// is the applications', the second the congestion controls'.
    pub fn new(
        tcp: &TcpParams,
        draws: [&Draw; 3],
        envelope: Envelope,
        (start, stop): (Time, Time),
        (rng, mut congestion): (Rng, Rng),
    ) -> Exchange {
        let [request_bytes, bytes, pause] = draws.map(Clone::clone);
        let mut stream = || Rng::new(congestion.next_u64(), "connection");
        let end = |tcp_end, envelope| End {
            tcp: tcp_end,
            envelope,
            header_bytes: tcp.header_bytes,
            ack_bytes: tcp.ack_bytes,
        };
        let server = end(Endpoint::accepting(tcp, stream()), envelope);
        let client = end(Endpoint::connecting(tcp, stream()), envelope.reply());
        let next = if start < stop { start } else { Time::NEVER };
        let (asked, owed) = (0, 0);
        Exchange {
            client,
            server,
            asking: Asking {
                request_bytes,
                bytes,
                pause,
                rng,
                next,
                stop,
                asked,
                owed,
                present: None,
            },
            answering: Answering { due: VecDeque::new(), written: 0 },
            params: tcp.clone(),
        }
    }

    /// Runs the client up to `until`; returns the number of events and the time of the next.
    pub fn move_client(
        &mut self,
        until: Time,
        path: &mut impl Path,
        sacks: &mut SackPool,
        (counters, transfers): (&mut Counters, &mut Vec<Transfer>),
    ) -> (u64, Time) {
        let (mut events, mut now) = (0, Time::ZERO);
        loop {
            let own = self.client.tcp.deadline();
            let timer = own.min(self.asking.next);
            let arrival = path.first_arrives();
            if arrival.min(timer) >= until {
                return (events, arrival.min(timer));
            }
            events += 1;
            if timer <= arrival {
                now = timer.max(now);
                if own <= now {
                    self.client.expire(now, path, sacks);
                }
            } else {
                now = arrival;
                let packet = path.receive();
                counters.received_packets += u64::from(packet.kind() == kind::DATA);
                self.client.arrive(packet, now, path, sacks);
                self.take_answer(now, transfers);
            }
            if self.asking.next <= now {
                self.ask(now);
            }
            self.client.pump(now, path, sacks);
        }
    }

    /// Runs the server up to `until`; returns the number of events and the time of the next.
    /// Reports the RTT of each ACK that measures one.
    pub fn move_server(
        &mut self,
        until: Time,
        path: &mut impl Path,
        sacks: &mut SackPool,
        counters: &mut Counters,
        mut measured: impl FnMut(Span),
    ) -> (u64, Time) {
        let (mut events, mut now) = (0, Time::ZERO);
        loop {
            let (timer, arrival) = (self.server.tcp.deadline(), path.first_arrives());
            if arrival.min(timer) >= until {
                return (events, arrival.min(timer));
            }
            events += 1;
            if timer <= arrival {
                now = timer.max(now);
                self.server.expire(now, path, sacks);
            } else {
                now = arrival;
                let packet = path.receive();
                if let Some(rtt) = self.server.arrive(packet, now, path, sacks) {
                    measured(rtt);
                }
                self.answer(now);
            }
            let (packets, bytes) = self.server.pump(now, path, sacks);
            counters.sent_packets += packets;
            counters.sent_bytes += bytes;
        }
    }

    /// The client writes a request.
    fn ask(&mut self, now: Time) {
        let asking = &mut self.asking;
        let request = asking.request_bytes.next(&mut asking.rng).max(1);
        let answer = asking.bytes.next(&mut asking.rng).max(1);
        asking.asked += request;
        asking.owed += answer;
        asking.present = Some((now, answer));
        asking.next = Time::NEVER;
        self.answering.due.push_back((asking.asked, answer));
        self.client.tcp.produce(asking.asked, now);
    }

    /// The client reads. With the last byte of an answer the pause begins.
    fn take_answer(&mut self, now: Time, transfers: &mut Vec<Transfer>) {
        let asking = &mut self.asking;
        if self.client.tcp.receiver().delivered_bytes() < asking.owed {
            return;
        }
        let Some((start, bytes)) = asking.present.take() else { return };
        transfers.push(Transfer { start, end: now, bytes });
        let next = now + Span(asking.pause.next(&mut asking.rng));
        asking.next = if next < asking.stop { next } else { Time::NEVER };
    }

    /// The server reads, and answers each request that is complete.
    fn answer(&mut self, now: Time) {
        let Answering { due, written } = &mut self.answering;
        let received = self.server.tcp.receiver().delivered_bytes();
        while let Some(&(asked, answer)) = due.front()
            && asked <= received
        {
            due.pop_front();
            *written += answer;
            self.server.tcp.produce(*written, now);
        }
    }

    /// Common parts of the headers of a packet of the connection.
    pub fn headers(&self, packet: &Parcel) -> TcpHeaders<'_> {
        let of_server = packet.flow.is_multiple_of(2) == (packet.kind() == kind::DATA);
        let mut senders = [self.server.tcp.sender(), self.client.tcp.sender()];
        if !of_server {
            senders.reverse();
        }
        TcpHeaders::both_ways(&self.params, self.client.tcp.receiver(), senders)
    }

    /// The server's end: the sender of the answers is the flow's sender.
    pub fn server(&self) -> &Endpoint {
        &self.server.tcp
    }

    /// The client's end: the receiver of the answers is the flow's receiver.
    pub fn client(&self) -> &Endpoint {
        &self.client.tcp
    }
}

impl End {
    fn scale(&self) -> u32 {
        self.tcp.receiver().window_scale()
    }

    /// A packet arrives; returns its RTT sample.
    fn arrive(
        &mut self,
        packet: Parcel,
        now: Time,
        path: &mut impl Path,
        sacks: &mut SackPool,
    ) -> Option<Span> {
        if packet.kind() == kind::ACK {
            let ack = unpack_ack(&packet, self.scale(), sacks);
            return self.tcp.on_ack(&ack, now).rtt;
        }
        let (segment, carried) = unpack_carrier(&packet, self.header_bytes, sacks);
        let (acked, reply) = self.tcp.on_segment(&segment, carried.as_ref(), now);
        if let Some(ack) = reply {
            self.send_ack(&ack, now, path, sacks);
        }
        acked.rtt
    }

    /// A deadline is reached.
    fn expire(&mut self, now: Time, path: &mut impl Path, sacks: &mut SackPool) {
        if let Some(ack) = self.tcp.on_deadline(now) {
            self.send_ack(&ack, now, path, sacks);
        }
    }

    fn send_ack(&self, ack: &AckSegment, now: Time, path: &mut impl Path, sacks: &mut SackPool) {
        let (_, snd_nxt) = self.tcp.sender().outstanding();
        let (scale, bytes) = (self.scale(), self.ack_bytes);
        path.send(pack_ack_beside(ack, snd_nxt, scale, bytes, self.envelope, 0, sacks), now);
    }

    /// Sends what may leave; returns packets and IP bytes.
    fn pump(&mut self, now: Time, path: &mut impl Path, sacks: &mut SackPool) -> (u64, u64) {
        let mut sent = (0, 0);
        while let Some(out) = self.tcp.poll(now) {
            let packet = match out {
                Outgoing::Syn(segment) => {
                    pack_segment(&segment, self.header_bytes, self.envelope, 0)
                }
                Outgoing::Segment(segment, ack) => pack_carrier(
                    &segment,
                    &ack,
                    self.scale(),
                    self.header_bytes,
                    self.envelope,
                    sacks,
                ),
            };
            sent = (sent.0 + 1, sent.1 + u64::from(packet.size));
            path.send(packet, now);
        }
        sent
    }
}
