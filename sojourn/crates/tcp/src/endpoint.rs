//! An end that sends and receives data: a sender and a receiver of one connection.
//!
//! Each direction of the data has its own `Sender` and `Receiver`, as if it were alone. The two
//! directions depend on each other in three ways:
//!
//! - A segment with data also carries the acknowledgement of the other direction. A pending ACK then
//!   needs no separate packet.
//! - If an end sends data within its ato (the delayed-ACK timeout) of an arrival, ping-pong mode
//!   begins: its receiver expects that data will carry its ACKs (tcp_event_data_sent).
//! - The receiver uses the SRTT and RTO of the same end's sender to decide how long it delays ACKs.
//!
//! In the handshake the connecting end uses its sender, and the other end its receiver. These two
//! parts then inform the other sender and receiver that the connection is established.
//!
//! Source: RFC 9293 §3.8.6.3; Linux net/ipv4/tcp_input.c and tcp_output.c, whose functions the
//! comments name. Deviations: when a segment arrives, the receiver decides whether it causes an ACK
//! before the sender sends the data that the segment's own acknowledgement allows. Small segments
//! that wait together count as full ones when the receiver decides whether an ACK is due.

use crate::{AckSegment, Acked, Receiver, Segment, Sender, TcpParams};
use units::{Rng, Time};

/// An end of a connection with data in both directions.
pub struct Endpoint {
    sender: Sender,
    receiver: Receiver,
}

/// A packet that leaves an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// A SYN.
    Syn(Segment),
    /// A segment with data, or the last ACK of the handshake, and its acknowledgement.
    Segment(Segment, AckSegment),
}

impl Endpoint {
    /// The end that sends the SYN when `poll` is first called. Its application has written nothing.
    pub fn connecting(params: &TcpParams, rng: Rng) -> Endpoint {
        Endpoint::new(params, params, rng)
    }

    /// The end that answers the SYN. Its application has written nothing.
    pub fn accepting(params: &TcpParams, rng: Rng) -> Endpoint {
        Endpoint::new(params, &params.with(|p| p.handshake = false), rng)
    }

    fn new(params: &TcpParams, own: &TcpParams, rng: Rng) -> Endpoint {
        Endpoint {
            sender: Sender::new(own, None).with_rng(rng).with_application(own),
            receiver: Receiver::new(params),
        }
    }

    /// Returns the next packet that may leave now. Call until `None`.
    pub fn poll(&mut self, now: Time) -> Option<Outgoing> {
        let segment = self.sender.poll(now)?;
        if segment.syn {
            return Some(Outgoing::Syn(segment));
        }
        Some(Outgoing::Segment(segment, self.receiver.acknowledge_with(&segment, now)))
    }

    /// Handles an ACK without data, or a SYN-ACK. Call `poll` afterwards.
    pub fn on_ack(&mut self, ack: &AckSegment, now: Time) -> Acked {
        let connects = ack.syn && self.sender.awaits_syn_ack();
        if !ack.syn && self.sender.is_off_fast_path(ack) {
            self.receiver.on_slow_ack(ack);
        }
        let acked = self.sender.on_ack(ack, now);
        if connects {
            self.receiver.connected(self.sender.srtt(), now);
        }
        self.tell_rtt();
        acked
    }

    /// Handles a segment and the acknowledgement that it carries; a SYN carries none. Returns what
    /// the acknowledgement did, and the ACK to send now, if one is due. Call `poll` afterwards.
    pub fn on_segment(
        &mut self,
        segment: &Segment,
        carried: Option<&AckSegment>,
        now: Time,
    ) -> (Acked, Option<AckSegment>) {
        let nothing = Acked { rtt: None, delivered: 0, complete: false };
        let Some(ack) = carried else {
            return (nothing, self.receiver.on_segment(segment, now));
        };
        if self.receiver.is_in_handshake() {
            let reply = self.receiver.on_segment(segment, now);
            self.sender.accepted(ack, self.receiver.rtt(), now);
            self.tell_rtt();
            return (nothing, reply);
        }
        let (una, _) = self.sender.outstanding();
        let acked = if segment.len > 0 && ack.ack <= una && ack.sack_count == 0 && ack.ace == 0 {
            // A segment with data is no duplicate ACK (RFC 5681 §2).
            self.sender.on_window(ack);
            nothing
        } else {
            self.sender.on_ack(ack, now)
        };
        self.tell_rtt();
        (acked, self.receiver.on_segment(segment, now))
    }

    /// The receiver's delays follow from the sender's RTT.
    fn tell_rtt(&mut self) {
        if let Some(srtt) = self.sender.srtt() {
            self.receiver.measured(srtt, self.sender.rto());
        }
    }

    /// The time of the next call of `on_deadline`, once `poll` has returned `None`; NEVER: none.
    pub fn deadline(&self) -> Time {
        let [sender, receiver] = [self.sender.deadline(), self.receiver.deadline()];
        sender.unwrap_or(Time::NEVER).min(receiver.unwrap_or(Time::NEVER))
    }

    /// Handles a deadline. Returns the pending ACK if it is due. Call `poll` afterwards.
    pub fn on_deadline(&mut self, now: Time) -> Option<AckSegment> {
        if self.sender.deadline().is_some_and(|deadline| deadline <= now) {
            self.sender.on_deadline(now);
        }
        self.receiver.on_deadline(now)
    }

    /// The application has written `bytes` since the start of the connection. Call `poll`
    /// afterwards.
    pub fn produce(&mut self, bytes: u64, now: Time) {
        self.sender.produce(bytes, now);
    }

    /// The part that sends.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The part that receives.
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Span;

    /// A packet on its way, and whether it goes to the server.
    type Packet = (Time, bool, Result<Outgoing, AckSegment>);

    /// A client that asks with 400 bytes at 0 s and 1 s, a server that answers with `answer` bytes,
    /// and 10 ms each way.
    struct Talk {
        ends: [Endpoint; 2],
        packets: Vec<Packet>,
        /// Time in ms, sender, bytes of data, segment acknowledged.
        log: Vec<(u64, &'static str, u32, u32)>,
        written: [u64; 2],
        answer: u64,
    }

    impl Talk {
        fn new(answer: u64) -> Talk {
            let params = TcpParams::LINUX;
            let end = |make: fn(&TcpParams, Rng) -> Endpoint| make(&params, Rng::new(1, "end"));
            Talk {
                ends: [end(Endpoint::connecting), end(Endpoint::accepting)],
                packets: Vec::new(),
                log: Vec::new(),
                written: [0; 2],
                answer,
            }
        }

        fn write(&mut self, end: usize, bytes: u64, now: Time) {
            self.written[end] += bytes;
            self.ends[end].produce(self.written[end], now);
            self.pump(end, now);
        }

        fn send(&mut self, end: usize, packet: Result<Outgoing, AckSegment>, now: Time) {
            let (len, acked) = match packet {
                Ok(Outgoing::Syn(_)) => (0, 0),
                Ok(Outgoing::Segment(segment, ack)) => (segment.len, ack.ack),
                Err(ack) => (0, ack.ack),
            };
            self.log.push((now.0 / 1_000_000, ["client", "server"][end], len, acked));
            self.packets.push((now + Span::from_millis(10), end == 0, packet));
        }

        fn pump(&mut self, end: usize, now: Time) {
            while let Some(out) = self.ends[end].poll(now) {
                self.send(end, Ok(out), now);
            }
        }

        /// Lets everything happen up to `until`.
        fn run(&mut self, until: Time) {
            loop {
                let deadline = |end: usize| (self.ends[end].deadline(), end, None);
                let arrivals = self.packets.iter().enumerate();
                let first =
                    arrivals.map(|(at, packet)| (packet.0, usize::from(packet.1), Some(at)));
                let next = first.chain([deadline(0), deadline(1)]).min_by_key(|next| next.0);
                let Some((now, end, packet)) = next.filter(|next| next.0 < until) else { return };
                let before = self.ends[end].receiver().delivered_bytes();
                let ack = match packet.map(|at| self.packets.remove(at).2) {
                    None => self.ends[end].on_deadline(now),
                    Some(Err(ack)) => {
                        self.ends[end].on_ack(&ack, now);
                        None
                    }
                    Some(Ok(Outgoing::Syn(segment))) => {
                        self.ends[end].on_segment(&segment, None, now).1
                    }
                    Some(Ok(Outgoing::Segment(segment, ack))) => {
                        self.ends[end].on_segment(&segment, Some(&ack), now).1
                    }
                };
                if let Some(ack) = ack {
                    self.send(end, Err(ack), now);
                }
                self.pump(end, now);
                if end == 1 && self.ends[1].receiver().delivered_bytes() > before {
                    self.write(1, self.answer, now);
                }
            }
        }
    }

    #[test]
    fn the_first_answer_follows_an_ack_and_the_next_ones_carry_it() {
        let mut talk = Talk::new(1000);
        talk.write(0, 400, Time::ZERO);
        talk.run(Time(1_000_000_000));
        talk.write(0, 400, Time(1_000_000_000));
        talk.run(Time(2_000_000_000));
        // SYN, SYN-ACK, ACK and request, quick ACK and answer, quick ACK. A second later the answer
        // carries the ACK of the request, and the client is not in ping-pong mode: it asked long
        // after the last arrival.
        let expected = [
            (0, "client", 0, 0),
            (10, "server", 0, 0),
            (20, "client", 0, 0),
            (20, "client", 400, 0),
            (30, "server", 0, 1),
            (30, "server", 1000, 1),
            (40, "client", 0, 1),
            (1000, "client", 400, 1),
            (1010, "server", 1000, 2),
            (1020, "client", 0, 2),
        ];
        assert_eq!(talk.log, expected);
        assert_eq!(talk.ends[0].receiver().delivered_bytes(), 2000);
    }

    #[test]
    fn a_client_that_asks_at_once_acknowledges_with_the_request_and_by_the_timer_at_the_end() {
        let mut talk = Talk::new(1000);
        talk.write(0, 400, Time::ZERO);
        talk.run(Time(40_000_001));
        // The client asks 5 ms after the answer, well within its ato of 40 ms: ping-pong mode.
        talk.write(0, 400, Time(45_000_000));
        talk.run(Time(1_000_000_000));
        let last: Vec<_> = talk.log[7..].to_vec();
        // The answer of 65 ms is acknowledged 40 ms later, at a tick of 4 ms.
        let expected = [(45, "client", 400, 1), (55, "server", 1000, 2), (108, "client", 0, 2)];
        assert_eq!(last, expected);
    }

    #[test]
    fn a_server_measures_its_rtt_by_the_syn_ack() {
        let mut talk = Talk::new(1000);
        talk.write(0, 400, Time::ZERO);
        talk.run(Time(30_000_001));
        for end in &talk.ends {
            assert_eq!(end.sender().srtt(), Some(Span::from_millis(20)));
            assert_eq!(end.receiver().rtt(), Span::from_millis(20));
        }
    }
}
