//! A flow of programs: the packets between its two hosts, of any protocol.
//!
//! Packet sockets at the hosts' devices (`probe::tap`) capture the headers of the packets that leave
//! the first host, and of those that reach the second. The payload is what is behind the headers of
//! TCP, UDP or ICMP; behind IP's for another protocol. It includes repetitions: which bytes a
//! program has read is not known. A segment counts as sent again if the host had sent its last
//! sequence number before (RFC 9293, section 3.4).

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;

use probe::Clock;
use probe::sys::Interest;
use probe::tap::{self, Direction, Packet, Tap};
use serde_json::{Value, json};

use crate::context::{Context, EventTarget};
use crate::plan::Traffic;
use crate::recorded::{Tables, carried};
use crate::watch::Window;

/// SYN and FIN take a sequence number each (RFC 9293, section 3.1).
const SYN: u8 = 0x02;
const FIN: u8 = 0x01;
/// Bytes of the headers of UDP and of an ICMP echo.
const SHORT_HEADER: u32 = 8;

/// A flow of programs.
pub struct Conversation {
    index: usize,
    hosts: [IpAddr; 2],
    leaving: Tap,
    reaching: Tap,
    counts: Counts,
}

/// Packets, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    packets: u64,
    bytes: u64,
}

impl Sum {
    fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

/// Sums over an interval of the time line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Span {
    payload: u64,
    retransmits: u64,
}

/// The sums of a flow.
struct Counts {
    window: Window,
    end: i64,
    interval: i64,
    spans: Vec<Span>,
    /// IP packets that left the first host in the measured time.
    sent: Sum,
    /// Packets that reached the second host in the measured time, and their payload.
    received: Sum,
    retransmits: u64,
    /// Packets that reached the second host over the whole run.
    packets: u64,
    /// Whether any packet was TCP.
    is_tcp: bool,
    /// For each connection of the first host, by its ports: the first sequence number, and the one
    /// behind the last that was sent.
    connections: HashMap<[u16; 2], [u32; 2]>,
}

/// The parts of a packet behind its IP header.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Inside {
    payload: u32,
    segment: Option<Segment>,
}

/// The sequence numbers of a TCP segment: its first, and the one behind its last.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Segment {
    first: u32,
    behind: u32,
    begins: bool,
}

fn inside(packet: &Packet, head: &[u8]) -> Inside {
    let is_v4 = head.first().is_some_and(|first| first >> 4 == 4);
    let network = if is_v4 { usize::from(head[0] & 15) * 4 } else { 40 };
    let pair = |at: usize| {
        head.get(at..at + 2).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    };
    let rest = packet.bytes.saturating_sub(network as u32);
    let later_fragment = is_v4 && pair(6) & 0x1fff != 0;
    let behind = |header: u32| rest.saturating_sub(header);
    match packet.five_tuple.protocol {
        _ if later_fragment => Inside { payload: rest, segment: None },
        tap::TCP => {
            let header = u32::from(pair(network + 12) >> 12) * 4;
            let flags = pair(network + 12) as u8;
            let payload = behind(header);
            let first = u32::from(pair(network + 4)) << 16 | u32::from(pair(network + 6));
            let flagged = u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
            let behind = first.wrapping_add(payload).wrapping_add(flagged);
            let segment = Segment { first, behind, begins: flags & SYN != 0 };
            Inside { payload, segment: Some(segment) }
        }
        tap::UDP | tap::ICMP | tap::ICMPV6 => {
            Inside { payload: behind(SHORT_HEADER), segment: None }
        }
        _ => Inside { payload: rest, segment: None },
    }
}

impl Counts {
    fn new(window: Window, end: i64, interval: u64) -> Counts {
        let interval = if interval > 0 { interval as i64 } else { end.max(1) };
        let spans = (end as u64).div_ceil(interval as u64).max(1) as usize;
        Counts {
            window,
            end,
            interval,
            spans: vec![Span::default(); spans],
            sent: Sum::default(),
            received: Sum::default(),
            retransmits: 0,
            packets: 0,
            is_tcp: false,
            connections: HashMap::new(),
        }
    }

    /// The interval of an event: those of its end are in it.
    fn span(&mut self, t: i64) -> &mut Span {
        let last = self.spans.len() - 1;
        &mut self.spans[(((t - 1).max(0) / self.interval) as usize).min(last)]
    }

    /// A packet leaves the first host.
    fn leaves(&mut self, t: i64, bytes: u32, ports: [u16; 2], inside: Inside) {
        let again = inside.segment.is_some_and(|segment| self.is_again(ports, segment));
        if !(0..=self.end).contains(&t) {
            return;
        }
        if again {
            self.span(t).retransmits += 1;
        }
        if self.window.contains(t) {
            self.sent.add(bytes);
            self.retransmits += u64::from(again);
        }
    }

    fn is_again(&mut self, ports: [u16; 2], segment: Segment) -> bool {
        self.is_tcp = true;
        let Segment { first, behind, begins } = segment;
        let [begun, highest] = self.connections.entry(ports).or_insert([first; 2]);
        // A SYN that is no repetition begins another connection of the same ports.
        if begins && *begun != first {
            [*begun, *highest] = [first; 2];
        }
        let is_new = (behind.wrapping_sub(*highest) as i32) > 0;
        if is_new {
            *highest = behind;
        }
        !is_new && behind != first
    }

    /// A packet reaches the second host.
    fn reaches(&mut self, t: i64, inside: Inside) {
        self.is_tcp |= inside.segment.is_some();
        if !(0..=self.end).contains(&t) {
            return;
        }
        self.packets += 1;
        self.span(t).payload += u64::from(inside.payload);
        if self.window.contains(t) {
            self.received.add(inside.payload);
        }
    }

    /// The count of retransmissions; -1 without any TCP.
    fn known(&self, retransmits: u64) -> i64 {
        if self.is_tcp { retransmits as i64 } else { -1 }
    }
}

impl Conversation {
    /// Opens the taps at both hosts.
    pub fn open(context: &mut Context, index: usize) -> io::Result<Conversation> {
        let spec = &context.plan.flows[index];
        let Traffic::Program { devices, ring_bytes } = &spec.traffic else {
            unreachable!("only flows of programs are opened here")
        };
        let tap = |end: &str, device: &str, direction| {
            context.world.inside(Some(end), || Tap::open(device, direction, *ring_bytes))
        };
        let leaving = tap(&spec.from.namespace, &devices[0], Direction::Out)?;
        let reaching = tap(&spec.to.namespace, &devices[1], Direction::In)?;
        context.epoll.add(&leaving, Interest::Readable, EventTarget::Sender.token(index))?;
        context.epoll.add(&reaching, Interest::Readable, EventTarget::Receiver.token(index))?;
        let plan = context.plan;
        Ok(Conversation {
            index,
            hosts: [spec.from.address, spec.to.address],
            leaving,
            reaching,
            counts: Counts::new(Window::of(plan), plan.duration_ns as i64, plan.sample.flow_ns),
        })
    }

    /// Counts the packets that have left the first host.
    pub fn drain_leaving(&mut self, clock: &Clock) {
        let (hosts, counts) = (self.hosts, &mut self.counts);
        self.leaving.drain_bytes(|packet, head| {
            let ends = packet.five_tuple;
            if [ends.source, ends.destination] == hosts {
                let t = clock.stamp(packet.stamp);
                counts.leaves(t, packet.bytes, ends.ports, inside(&packet, head));
            }
        });
    }

    /// Counts the packets that have reached the second host.
    pub fn drain_reaching(&mut self, clock: &Clock) {
        let (hosts, counts) = (self.hosts, &mut self.counts);
        self.reaching.drain_bytes(|packet, head| {
            let ends = packet.five_tuple;
            if [ends.source, ends.destination] == hosts {
                counts.reaches(clock.stamp(packet.stamp), inside(&packet, head));
            }
        });
    }

    /// Counts the remaining packets.
    ///
    /// # Errors
    ///
    /// A tap had no room for some packets.
    pub fn conclude(&mut self, clock: &Clock) -> io::Result<()> {
        self.drain_leaving(clock);
        self.drain_reaching(clock);
        match self.leaving.lost()? + self.reaching.lost()? {
            0 => Ok(()),
            lost => Err(io::Error::other(format!("the records of {lost} packets were lost"))),
        }
    }

    /// Adds its rows and returns its summary.
    pub fn finish(self, tables: &mut Tables) -> Value {
        let counts = self.counts;
        let mut so_far = Span::default();
        for (span, number) in counts.spans.iter().zip(1i64..) {
            so_far.payload += span.payload;
            so_far.retransmits += span.retransmits;
            tables.carried.push(carried::Row {
                flow: self.index as i64,
                t_ns: (number * counts.interval).min(counts.end),
                payload_bytes: so_far.payload as i64,
                retransmits: counts.known(so_far.retransmits),
            });
        }
        json!({
            "kind": "conversation",
            "sent_packets": counts.sent.packets,
            "sent_bytes": counts.sent.bytes,
            "received_packets": counts.received.packets,
            "payload_bytes": counts.received.bytes,
            "retransmits": counts.known(counts.retransmits),
            "packets": counts.packets,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    fn counts() -> Counts {
        let mut plan = Plan::sample();
        (plan.warmup_ns, plan.duration_ns) = (100, 250);
        Counts::new(Window::of(&plan), 250, 100)
    }

    fn segment(first: u32, payload: u32) -> Inside {
        let behind = first.wrapping_add(payload);
        Inside { payload, segment: Some(Segment { first, behind, begins: false }) }
    }

    /// An IPv4 packet of `total` bytes with these bytes behind its header.
    fn packet(protocol: u8, fragment: u16, total: u16, above: &[u8]) -> (Packet, Vec<u8>) {
        let mut bytes = vec![0x45, 0];
        bytes.extend(total.to_be_bytes());
        bytes.extend([0, 1]);
        bytes.extend(fragment.to_be_bytes());
        bytes.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend(above);
        (tap::parse(&bytes, 0).unwrap(), bytes)
    }

    #[test]
    fn payload_is_behind_the_headers_of_each_protocol() {
        let payload = |(packet, bytes): (Packet, Vec<u8>)| inside(&packet, &bytes).payload;
        // TCP with a header of 32 bytes; ports, sequence number 9, ACK.
        let tcp = [0, 80, 0, 81, 0, 0, 0, 9, 0, 0, 0, 0, 0x80, 0x10, 0, 0, 0, 0, 0, 0];
        assert_eq!(payload(packet(tap::TCP, 0, 1500, &tcp)), 1448);
        assert_eq!(payload(packet(tap::UDP, 0, 1500, &[0; 8])), 1472);
        assert_eq!(payload(packet(tap::ICMP, 0, 84, &[8, 0, 0, 0, 0, 1, 0, 2])), 56);
        assert_eq!(payload(packet(47, 0, 100, &[0; 8])), 80);
        assert_eq!(payload(packet(tap::UDP, 185, 1000, &[0; 8])), 980, "a later fragment");
    }

    #[test]
    fn syn_and_fin_take_a_sequence_number() {
        let flagged = |flags: u8| {
            let tcp = [0, 80, 0, 81, 0, 0, 0, 9, 0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0];
            let (packet, bytes) = packet(tap::TCP, 0, 40, &tcp);
            inside(&packet, &bytes).segment.unwrap()
        };
        assert_eq!(flagged(0x10), Segment { first: 9, behind: 9, begins: false });
        assert_eq!(flagged(0x02), Segment { first: 9, behind: 10, begins: true });
        assert_eq!(flagged(0x11), Segment { first: 9, behind: 10, begins: false });
    }

    #[test]
    fn a_segment_whose_end_was_sent_before_is_sent_again() {
        let mut counts = counts();
        let ports = [80, 5000];
        let mut again = |inside: Inside| counts.is_again(ports, inside.segment.unwrap());
        let near_the_end = u32::MAX - 50;
        assert!(!again(segment(near_the_end, 100)));
        assert!(!again(segment(near_the_end.wrapping_add(100), 100)));
        assert!(again(segment(near_the_end, 100)));
        assert!(!again(segment(near_the_end.wrapping_add(200), 0)), "an ACK has no data");
        assert!(!again(segment(near_the_end.wrapping_add(150), 100)), "half of it is new");
    }

    #[test]
    fn a_new_connection_on_the_same_ports_has_no_retransmissions() {
        let mut counts = counts();
        let syn = |first: u32| Segment { first, behind: first.wrapping_add(1), begins: true };
        assert!(!counts.is_again([1, 2], syn(7000)));
        assert!(counts.is_again([1, 2], syn(7000)), "the SYN is sent again");
        assert!(!counts.is_again([1, 2], segment(7001, 500).segment.unwrap()));
        assert!(counts.is_again([1, 2], syn(7000)), "and once more");
        assert!(counts.is_again([1, 2], segment(7001, 500).segment.unwrap()));
        assert!(!counts.is_again([1, 2], syn(40)));
        assert!(!counts.is_again([1, 2], segment(41, 500).segment.unwrap()));
        assert!(!counts.is_again([3, 2], segment(41, 500).segment.unwrap()), "other ports");
    }

    #[test]
    fn totals_leave_the_warm_up_out_and_the_time_line_has_it() {
        let mut counts = counts();
        let data = |first| segment(first, 100);
        for (t, first) in [(-5, 0), (50, 100), (100, 200), (101, 200), (250, 300), (251, 400)] {
            counts.leaves(t, 152, [1, 2], data(first));
            counts.reaches(t, data(first));
        }
        assert_eq!(counts.sent, Sum { packets: 3, bytes: 3 * 152 });
        assert_eq!(counts.received, Sum { packets: 3, bytes: 300 });
        assert_eq!((counts.retransmits, counts.packets), (1, 4));
        let payload: Vec<u64> = counts.spans.iter().map(|span| span.payload).collect();
        assert_eq!(payload, [200, 100, 100]);
        assert_eq!(counts.known(counts.retransmits), 1);
    }

    #[test]
    fn without_tcp_no_retransmission_is_known() {
        let mut counts = counts();
        counts.leaves(120, 100, [1, 2], Inside { payload: 72, segment: None });
        counts.reaches(130, Inside { payload: 72, segment: None });
        assert_eq!(counts.known(counts.retransmits), -1);
    }
}
