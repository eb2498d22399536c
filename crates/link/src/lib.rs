//! A link: a queue discipline, a transmitter with a rate, and a wire with a delay and a loss law.
//!
//! Two verbs move it. `send` hands it a packet, `advance` brings it up to date; both put each packet whose transmission
//! begins into `out`, with the time it reaches the far end. The discipline is asked at the time the transmitter became
//! free, not at the time of the call, so calling late, early or twice changes nothing: a simulator and a real-time loop
//! see the same link.
//!
//! Bytes are charged honestly: the discipline counts the IP packet plus the link-layer header, the transmitter counts
//! everything the wire carries (`Framing`). A transmission that spans a change of rate takes exactly the time its bits
//! need at the rates in force.

mod framing;
mod loss;
mod schedule;

pub use framing::{Cells, Framing};
pub use loss::{Loss, LossLaw};
pub use schedule::{RateStep, Schedule};

use qdisc::{Backlog, Discipline, Fate, Packet, Qdisc};
use units::{Span, Time};

/// A packet whose transmission has begun.
#[derive(Clone, Copy, Debug)]
pub struct Departure<B> {
    /// When it left the queue: its sojourn is `dequeued - packet.enqueued`.
    pub dequeued: Time,
    /// When its last bit reaches the far end.
    pub arrives: Time,
    /// The wire loses it.
    pub lost: bool,
    /// The packet; `size` is again that of the IP packet.
    pub packet: Packet<B>,
}

/// What a link has done since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Packets handed to `send`.
    pub arrived_packets: u64,
    /// Their IP bytes.
    pub arrived_bytes: u64,
    /// Packets whose transmission began.
    pub sent_packets: u64,
    /// Their IP bytes.
    pub sent_bytes: u64,
    /// Their bytes on the wire, framing included.
    pub wire_bytes: u64,
    /// Time spent transmitting, ns, counted in whole transmissions: see `Link::busy_ns`.
    busy_ns: u64,
    /// Time integral of the backlog, packet·ns, up to the last change.
    packet_ns: u128,
    /// Time integral of the backlog, byte·ns, up to the last change.
    byte_ns: u128,
}

/// One direction of a link.
pub struct Link<B> {
    qdisc: Discipline<B>,
    schedule: Schedule,
    /// When the transmitter is or was free.
    free_at: Time,
    delay: Span,
    framing: Framing,
    loss: LossLaw,
    counters: Counters,
    backlog: Backlog,
    backlog_since: Time,
    peak: Backlog,
}

/// What a link is made of.
pub struct LinkParts<B> {
    /// Its queue.
    pub qdisc: Discipline<B>,
    /// Its rate over time.
    pub schedule: Schedule,
    /// One-way propagation.
    pub delay: Span,
    /// What its link layer adds.
    pub framing: Framing,
    /// What its wire loses.
    pub loss: LossLaw,
}

impl<B> Link<B> {
    /// An idle link.
    pub fn new(parts: LinkParts<B>) -> Link<B> {
        let LinkParts { qdisc, schedule, delay, framing, loss } = parts;
        Link {
            qdisc,
            schedule,
            free_at: Time::ZERO,
            delay,
            framing,
            loss,
            counters: Counters::default(),
            backlog: Backlog::default(),
            backlog_since: Time::ZERO,
            peak: Backlog::default(),
        }
    }

    /// A packet of `packet.size` IP bytes arrives at the queue.
    #[inline]
    pub fn send(
        &mut self,
        mut packet: Packet<B>,
        now: Time,
        fates: &mut Vec<Fate<B>>,
        mut out: impl FnMut(Departure<B>),
    ) {
        self.counters.arrived_packets += 1;
        self.counters.arrived_bytes += u64::from(packet.size);
        if self.schedule.is_unlimited() {
            // No rate, no queue: the packet is on the wire at once.
            packet.enqueued = now;
            self.begin(packet, now, now, &mut out);
            return;
        }
        self.advance(now, fates, &mut out);
        if self.backlog.packets == 0 && self.free_at <= now {
            // The transmitter asked in vain when it became free: disciplines date their idle periods from there.
            let none = self.qdisc.dequeue(self.free_at, fates);
            debug_assert!(none.is_none(), "an empty queue gave a packet");
        }
        packet.size += self.framing.header_bytes;
        self.qdisc.enqueue(packet, now, fates);
        self.note_backlog(now);
        if self.free_at <= now {
            self.advance(now, fates, &mut out);
        }
    }

    /// Starts every transmission that is due by `now`.
    #[inline]
    pub fn advance(&mut self, now: Time, fates: &mut Vec<Fate<B>>, out: &mut impl FnMut(Departure<B>)) {
        while self.backlog.packets > 0 && self.free_at <= now {
            // A packet that came while the transmitter idled leaves when it came, not when the idling began: `send`
            // advances before and after it enqueues, so then the last change of the backlog is its arrival.
            let mut at = self.free_at.max(self.backlog_since);
            if let Some(wakeup) = self.qdisc.next_wakeup() {
                at = at.max(wakeup);
                if at > now {
                    return;
                }
            }
            let Some(mut packet) = self.qdisc.dequeue(at, fates) else {
                self.note_backlog(at);
                return;
            };
            self.note_backlog(at);
            packet.size -= self.framing.header_bytes;
            let wire_bytes = self.framing.wire_bytes(packet.size);
            let finished = self.schedule.finish(at, wire_bytes);
            self.counters.busy_ns += finished.since(at).0;
            self.free_at = finished;
            self.begin(packet, at, finished, out);
        }
    }

    /// When `advance` has something to do next: when the transmitter is free and something waits.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        if self.backlog.packets == 0 {
            return None;
        }
        match self.qdisc.next_wakeup() {
            Some(wakeup) => Some(wakeup.max(self.free_at)),
            None => Some(self.free_at),
        }
    }

    /// What waits now, the packet in transmission not counted.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// The most that waited at once since the start or the last `forget_peak`: packets and bytes each on their own.
    pub fn peak(&self) -> Backlog {
        self.peak
    }

    /// Starts a new search for the peak.
    pub fn forget_peak(&mut self) {
        self.peak = self.backlog;
    }

    /// Tells the discipline that the schedule has reached a new step at `now`.
    pub fn rate_stepped(&mut self, now: Time) {
        if let Some(rate) = self.schedule.rate_at(now) {
            self.qdisc.rate_changed(rate);
        }
    }

    /// The discipline, for its state.
    pub fn qdisc(&self) -> &Discipline<B> {
        &self.qdisc
    }

    /// The rate over time.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// What the link has done up to now.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Nanoseconds spent transmitting up to `now`.
    pub fn busy_ns(&self, now: Time) -> u64 {
        self.counters.busy_ns - self.free_at.since(now).0.min(self.counters.busy_ns)
    }

    /// Time integrals of the backlog up to `now`: packet·ns and byte·ns.
    pub fn backlog_integrals(&self, now: Time) -> (u128, u128) {
        let span = u128::from(now.since(self.backlog_since).0);
        let packets = self.counters.packet_ns + u128::from(self.backlog.packets) * span;
        (packets, self.counters.byte_ns + u128::from(self.backlog.bytes) * span)
    }

    /// The time a packet of `ip_bytes` takes from the head of an empty queue to the far end, at the start of the run.
    pub fn idle_delay(&self, ip_bytes: u32) -> Span {
        self.schedule.finish(Time::ZERO, self.framing.wire_bytes(ip_bytes)).since(Time::ZERO) + self.delay
    }

    #[inline]
    fn begin(&mut self, packet: Packet<B>, at: Time, finished: Time, out: &mut impl FnMut(Departure<B>)) {
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += u64::from(packet.size);
        self.counters.wire_bytes += self.framing.wire_bytes(packet.size);
        out(Departure { dequeued: at, arrives: finished + self.delay, lost: self.loss.loses(), packet });
    }

    #[inline]
    fn note_backlog(&mut self, now: Time) {
        let span = u128::from(now.since(self.backlog_since).0);
        self.counters.packet_ns += u128::from(self.backlog.packets) * span;
        self.counters.byte_ns += u128::from(self.backlog.bytes) * span;
        self.backlog_since = now.max(self.backlog_since);
        self.backlog = self.qdisc.backlog();
        self.peak.packets = self.peak.packets.max(self.backlog.packets);
        self.peak.bytes = self.peak.bytes.max(self.backlog.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use qdisc::{Context, Ecn, Params};
    use units::Luck;

    fn link(rate: &[RateStep], limit: u64) -> Link<u32> {
        let params = Params::Pfifo(qdisc::FifoParams { limit });
        let schedule = Schedule::new(rate.to_vec(), None);
        let context = Context { rate: schedule.rate_at(Time::ZERO), mtu: 1500, luck: Luck::new(1, "test") };
        Link::new(LinkParts {
            qdisc: Discipline::new(&params, context),
            schedule,
            delay: Span::from_millis(10),
            framing: Framing::NONE,
            loss: LossLaw::new(Loss::None, Luck::new(1, "loss")),
        })
    }

    fn packet(body: u32) -> Packet<u32> {
        Packet { enqueued: Time::ZERO, flow: 0, size: 1500, ecn: Ecn::NotEct, body }
    }

    /// 1500 bytes at 12 Mbit/s take 1 ms.
    const STEP: RateStep = RateStep { at_ns: 0, bps: 12_000_000 };
    const MS: u64 = 1_000_000;

    #[test]
    fn packets_leave_one_transmission_apart() {
        let mut l = link(&[STEP], 10);
        let (mut fates, mut out) = (Vec::new(), Vec::new());
        for body in 0..3 {
            l.send(packet(body), Time(5 * MS), &mut fates, |d| out.push(d));
        }
        assert_eq!(l.next_event(), Some(Time(6 * MS)));
        l.advance(Time(7 * MS), &mut fates, &mut |d| out.push(d));
        let arrivals: Vec<_> =
            out.iter().map(|d| (d.packet.body, d.dequeued.0 / MS, d.arrives.0 / MS)).collect();
        assert_eq!(arrivals, [(0, 5, 16), (1, 6, 17), (2, 7, 18)]);
        assert_eq!(l.next_event(), None);
        assert_eq!(l.busy_ns(Time(7 * MS + 1)), 2 * MS + 1);
    }

    #[test]
    fn late_calls_change_nothing() {
        let drive = |wakeups: &[u64]| {
            let mut l = link(&[STEP], 10);
            let (mut fates, mut out) = (Vec::new(), Vec::new());
            for body in 0..4 {
                l.send(packet(body), Time(u64::from(body) * MS / 2), &mut fates, |d| out.push(d));
            }
            for &at in wakeups {
                l.advance(Time(at), &mut fates, &mut |d| out.push(d));
            }
            (
                out.iter().map(|d| (d.packet.body, d.dequeued, d.arrives)).collect::<Vec<_>>(),
                l.backlog_integrals(Time(30 * MS)),
            )
        };
        let punctual = drive(&[MS, 2 * MS, 3 * MS, 4 * MS]);
        assert_eq!(drive(&[20 * MS]), punctual);
        assert_eq!(drive(&[2 * MS, 2 * MS, MS, 9 * MS, 9 * MS]), punctual);
    }

    #[test]
    fn the_backlog_integral_is_what_little_s_law_says() {
        let mut l = link(&[STEP], 10);
        let (mut fates, mut out) = (Vec::new(), Vec::new());
        for body in 0..4 {
            l.send(packet(body), Time(0), &mut fates, |d| out.push(d));
        }
        l.advance(Time(50 * MS), &mut fates, &mut |d| out.push(d));
        let waited: u128 = out.iter().map(|d| u128::from(d.dequeued.since(d.packet.enqueued).0)).sum();
        assert_eq!(l.backlog_integrals(Time(50 * MS)), (waited, 1500 * waited));
    }

    #[test]
    fn an_outage_holds_the_packet_and_lets_it_go_on() {
        // Half of the packet is out when the link stops for 10 ms.
        let steps =
            [STEP, RateStep { at_ns: MS / 2, bps: 0 }, RateStep { at_ns: 10 * MS + MS / 2, bps: 12_000_000 }];
        let mut l = link(&steps, 10);
        let (mut fates, mut out) = (Vec::new(), Vec::new());
        l.send(packet(0), Time::ZERO, &mut fates, |d| out.push(d));
        assert_eq!(out[0].arrives, Time(21 * MS));
        assert_eq!(l.busy_ns(Time(2 * MS)), 2 * MS);
    }

    #[test]
    fn a_link_without_a_rate_never_queues() {
        let mut l = link(&[], 1);
        let (mut fates, mut out) = (Vec::new(), Vec::new());
        for body in 0..100 {
            l.send(packet(body), Time(MS), &mut fates, |d| out.push(d));
        }
        assert!(fates.is_empty() && out.iter().all(|d| d.arrives == Time(11 * MS)));
    }
}
