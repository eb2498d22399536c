//! A link: a queue discipline, a transmitter with a rate, and a wire (`Propagation`).
//!
//! Two methods move it. `send` hands it a packet, `advance` brings it up to date. Both report to an
//! `Outlet` each packet that leaves the queue, with the time at which it reaches the far end, and
//! each packet that is dropped or marked. The discipline is dequeued at the time at which the
//! transmitter became free, not at the time of the call. So a late, early or repeated call changes
//! nothing, and a simulator and a real-time loop see the same link.
//!
//! A transmitter that becomes free while nothing is queued dequeues too, and this has effects:
//! fq_codel takes emptied flows off its lists, RED begins an idle period. This dequeue is at the
//! end of the instant, as in Linux, where it runs in a softirq after the timers of the same
//! instant. So a packet that arrives at that nanosecond is enqueued first, and the dequeue returns
//! it. Below a shaper an empty discipline is not dequeued: htb does not dequeue a class without
//! packets.
//!
//! Between discipline and transmitter there may be a gate: a shaper, a driver's ring with or
//! without byte queue limits, or both in this order. Then the discipline is dequeued at the time at
//! which the gate opened. Packets leave the gate in order, so here too the time of arrival is known
//! at once. A discipline may hold packets back to keep to a rate of its own (cake). Then the gate
//! opens only when the discipline releases a packet. If nothing else kept the gate closed, a packet
//! that arrives at the same nanosecond is enqueued after the dequeue.
//!
//! Before the discipline there may be a policer, which drops packets that exceed its rate. They
//! count as arrived at the link, and the discipline never sees them.
//!
//! Behind the wire a tunnel may end (`Replay`). It drops packets that too many others have
//! overtaken.
//!
//! Two sizes are counted. The discipline counts the IP packet plus the link-layer header; the
//! transmitter counts everything on the wire (`Framing`). A transmission that spans a change of
//! rate takes exactly the time that its bits need at the rates in force.

mod dql;
mod framing;
mod leaf;
mod loss;
mod police;
mod propagation;
mod replay;
mod ring;
mod schedule;
mod shaper;
mod window;

pub use dql::Dql;
pub use framing::{Cells, Framing};
pub use leaf::Leaf;
pub use loss::{Loss, LossLaw, LossStep};
pub use police::{Policer, PolicerParams};
pub use propagation::{
    DelayJitter, DelayStep, Distribution, Duplication, EcnRemark, Impairments, Propagation,
    Reordering, Slots,
};
pub use replay::Replay;
pub use ring::{Ring, RingCounters, RingParams, Slot};
pub use schedule::{RateStep, Schedule};
pub use shaper::{Shaper, ShaperParams};
pub use window::Window;

use propagation::Crossing;
use qdisc::{Backlog, Body, Cause, Discipline, Packet, Params, Qdisc, Verdict};
use serde::{Deserialize, Serialize};
use units::{Rate, Span, Time};

/// A packet that has left the queue: it is in transmission or in the ring.
#[derive(Clone, Copy, Debug)]
pub struct Departure<B> {
    /// The time at which it left the queue: its sojourn is `dequeued - packet.enqueued`.
    pub dequeued: Time,
    /// The time at which its last bit reaches the far end.
    pub arrives: Time,
    /// Why it does not reach the far end: the wire loses it, or a tunnel's end drops it.
    pub lost: Option<Cause>,
    /// The packet; `size` is again the size of the IP packet.
    pub packet: Packet<B>,
}

/// Receives the events of a link's packets, in order of time.
pub trait Outlet<B> {
    /// A packet leaves the queue.
    fn departed(&mut self, departure: Departure<B>);

    /// The next packet that leaves arrives a second time, at `arrives`.
    fn doubled(&mut self, packet: &Packet<B>, arrives: Time);

    /// The discipline drops or marks a packet at this time.
    fn decided(&mut self, verdict: Verdict<B>, at: Time);
}

/// An outlet that stores all events.
#[derive(Clone, Debug)]
pub struct Log<B> {
    /// The packets that left.
    pub departures: Vec<Departure<B>>,
    /// The times at which packets arrive a second time.
    pub copies: Vec<Time>,
    /// Drops and marks, with their times.
    pub verdicts: Vec<(Verdict<B>, Time)>,
}

impl<B> Default for Log<B> {
    fn default() -> Self {
        Log { departures: Vec::new(), copies: Vec::new(), verdicts: Vec::new() }
    }
}

impl<B> Outlet<B> for Log<B> {
    fn departed(&mut self, departure: Departure<B>) {
        self.departures.push(departure);
    }

    fn doubled(&mut self, _: &Packet<B>, arrives: Time) {
        self.copies.push(arrives);
    }

    fn decided(&mut self, verdict: Verdict<B>, at: Time) {
        self.verdicts.push((verdict, at));
    }
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Packets handed to `send`.
    pub arrived_packets: u64,
    /// Their IP bytes.
    pub arrived_bytes: u64,
    /// Packets that left the queue.
    pub sent_packets: u64,
    /// Their IP bytes.
    pub sent_bytes: u64,
    /// Their bytes on the wire, with framing: see `Link::wire_bytes`.
    wire_bytes: u64,
    /// Time spent transmitting, ns, in whole transmissions: see `Link::busy_ns`.
    busy_ns: u64,
    /// Time integral of the backlog, packet·ns, up to the last change.
    packet_ns: u128,
    /// Time integral of the backlog, byte·ns, up to the last change.
    byte_ns: u128,
}

/// One direction of a link.
///
/// # Examples
///
/// ```rust
/// use link::{Framing, Impairments, Link, LinkParts, Log, Loss, Propagation, RateStep, Schedule};
/// use qdisc::{Context, Discipline, DsField, FifoParams, Packet, Params};
/// use units::{Rng, Span, Time};
///
/// let schedule = Schedule::new(vec![RateStep { at_ns: 0, bps: 12_000_000 }], None);
/// let context = Context {
///     rate: schedule.rate_at(Time::ZERO),
///     mtu: 1500,
///     header_bytes: 0,
///     root: true,
///     rng: Rng::new(1, "qdisc"),
/// };
/// let rng = |name: &str| Rng::new(1, name);
/// let wire = Propagation::new(Span::from_millis(10), &Loss::None, &Impairments::default(), rng);
/// let mut link: Link<u32> = Link::new(LinkParts {
///     qdisc: Discipline::new(&Params::Pfifo(FifoParams { limit: 10 }), context),
///     qdisc_steps: Vec::new(),
///     schedule,
///     framing: Framing::NONE,
///     wire,
///     ring: None,
///     shaper: None,
///     police: None,
///     replay_window: None,
/// });
/// let ds = DsField::BEST_EFFORT;
/// let packet = Packet { enqueued: Time::ZERO, flow: 0, size: 1500, ds, body: 7 };
/// let mut log = Log::default();
/// link.send(packet, Time::ZERO, &mut log);
/// // 1 ms of transmission and 10 ms of propagation.
/// assert_eq!(log.departures[0].arrives, Time(11_000_000));
/// ```
pub struct Link<B> {
    qdisc: Discipline<B>,
    /// The steps of its parameters that have not happened, the next one last.
    qdisc_steps: Vec<QdiscStep>,
    schedule: Schedule,
    /// The time at which the transmitter becomes or became free.
    free_at: Time,
    /// The last transmission. Most packets are as long as their predecessor, and take as long.
    last: Transmission,
    /// The link dequeues at the instant at which its transmitter becomes free, before arrivals of
    /// that instant are enqueued, as in ns-2.
    asks_at_once: bool,
    framing: Framing,
    wire: Propagation,
    /// Drops packets that exceed its rate, before the discipline.
    policer: Option<Box<Policer>>,
    /// Drops packets that were overtaken in a tunnel, behind the wire.
    replay: Option<Box<Replay>>,
    /// The shaper and ring between discipline and transmitter, if there are any.
    gate: Option<Box<Gate>>,
    counters: Counters,
    backlog: Backlog,
    backlog_since: Time,
    peak: Backlog,
    /// Drops and marks that the discipline has reported and the outlet has not yet received.
    verdicts: Vec<Verdict<B>>,
}

/// The transmission of a packet of `ip_bytes`, reused for packets of the same size. If the rate
/// changes over time, `ip_bytes` is NO_BYTES and nothing is reused.
#[derive(Clone, Copy)]
struct Transmission {
    ip_bytes: u32,
    wire_bytes: u64,
    span: Span,
}

const NO_BYTES: u32 = u32::MAX;

impl Transmission {
    /// The transmission of a packet of `ip_bytes` that begins at `at`.
    fn new(framing: &Framing, schedule: &Schedule, ip_bytes: u32, at: Time) -> Transmission {
        let wire_bytes = framing.wire_bytes(ip_bytes);
        let finished = schedule.finish(at, wire_bytes);
        let ip_bytes = if schedule.is_constant() { ip_bytes } else { NO_BYTES };
        Transmission { ip_bytes, wire_bytes, span: finished.since(at) }
    }
}

/// New parameters for the discipline at a time.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct QdiscStep<P = Params> {
    /// Time of the step, ns.
    pub at_ns: u64,
    /// All parameters from then on.
    pub qdisc: P,
}

/// The parts of a link.
pub struct LinkParts<B> {
    /// The queue discipline.
    pub qdisc: Discipline<B>,
    /// Steps of its parameters, in order of time.
    pub qdisc_steps: Vec<QdiscStep>,
    /// The rate over time.
    pub schedule: Schedule,
    /// The overhead of the link layer.
    pub framing: Framing,
    /// The wire.
    pub wire: Propagation,
    /// The driver's ring.
    pub ring: Option<RingParams>,
    /// The shaper, above the ring.
    pub shaper: Option<ShaperParams>,
    /// The policer, before the queue.
    pub police: Option<PolicerParams>,
    /// The replay window of the tunnels' ends behind it, packets.
    pub replay_window: Option<u32>,
}

/// A shaper above a ring. A link that has only a shaper, or only a discipline that holds packets
/// back, has no ring but the transmitter's own descriptor. A packet enters when the last one is
/// out.
struct Gate {
    shaper: Option<Shaper>,
    ring: Option<Box<Ring>>,
    /// The discipline holds packets back until this time, by the last call of `Qdisc::holds_until`.
    held: Option<Time>,
}

impl Gate {
    /// The earliest time at which a packet may pass, if that is not after `now`. The transmitter is
    /// free from `free` on.
    #[inline]
    fn opened_by(&mut self, now: Time, free: Time) -> Option<Time> {
        let below = match &mut self.ring {
            None => free,
            Some(ring) => ring.opened_by(now)?,
        };
        let open = self.above(below);
        (open <= now).then_some(open)
    }

    /// The time at which a packet passes the parts above the ring, from `below` on.
    #[inline]
    fn above(&self, below: Time) -> Time {
        let held = self.held.map_or(below, |held| below.max(held));
        self.shaper.as_ref().map_or(held, |shaper| held.max(shaper.ready_at()))
    }

    /// The earliest time at which it may be open.
    #[inline]
    fn may_open_at(&self, free: Time) -> Time {
        self.above(self.ring.as_ref().map_or(free, |ring| ring.may_open_at()))
    }

    /// Whether the discipline alone has held a packet back until exactly now.
    fn gives_at(&mut self, now: Time, free: Time) -> bool {
        self.held == Some(now) && self.opened_by(now, free) == Some(now) && {
            let held = self.held.take();
            let without = self.opened_by(now, free);
            self.held = held;
            without.is_some_and(|open| open < now)
        }
    }

    /// Asks the discipline again, after a change, until when it holds packets back.
    #[inline]
    fn ask<B: Body>(&mut self, qdisc: &Discipline<B>) {
        if self.held.is_some() {
            self.held = qdisc.holds_until();
        }
    }
}

impl<B: Body> Link<B> {
    /// An idle link.
    pub fn new(parts: LinkParts<B>) -> Link<B> {
        let LinkParts {
            qdisc,
            mut qdisc_steps,
            schedule,
            framing,
            wire,
            ring,
            shaper,
            police,
            replay_window,
        } = parts;
        qdisc_steps.reverse();
        let held = qdisc.holds_until();
        let gate = (ring.is_some() || shaper.is_some() || held.is_some()).then(|| {
            Box::new(Gate {
                shaper: shaper.map(Shaper::new),
                ring: ring.map(|ring| Box::new(Ring::new(ring))),
                held,
            })
        });
        Link {
            qdisc,
            qdisc_steps,
            schedule,
            free_at: Time::ZERO,
            last: Transmission { ip_bytes: NO_BYTES, wire_bytes: 0, span: Span::ZERO },
            asks_at_once: false,
            framing,
            wire,
            policer: police.map(|params| Box::new(Policer::new(params))),
            replay: replay_window.map(|window| Box::new(Replay::new(window))),
            gate,
            counters: Counters::default(),
            backlog: Backlog::default(),
            backlog_since: Time::ZERO,
            peak: Backlog::default(),
            verdicts: Vec::new(),
        }
    }

    /// From now on the link dequeues as soon as its transmitter is free. ns-2's links do so,
    /// because ns-2 runs events of one time in the order in which they were scheduled.
    pub fn ask_at_once(&mut self) {
        self.asks_at_once = true;
    }

    /// See `ask_at_once`.
    #[inline]
    pub fn asks_at_once(&self) -> bool {
        self.asks_at_once
    }

    /// A packet of `packet.size` IP bytes arrives at the queue.
    #[inline]
    pub fn send(&mut self, mut packet: Packet<B>, now: Time, out: &mut impl Outlet<B>) {
        self.counters.arrived_packets += 1;
        self.counters.arrived_bytes += u64::from(packet.size);
        if self.policer.is_some() && !self.conforms(packet.size, now) {
            return self.police(packet, now, out);
        }
        if let Some(replay) = &mut self.replay {
            replay.number(&packet);
        }
        if self.gate.is_some() {
            self.send_to_gate(packet, now, out);
            return;
        }
        if self.schedule.is_unlimited() {
            // Without a rate there is no queue: the packet is on the wire at once.
            packet.enqueued = now;
            let wire_bytes = self.framing.wire_bytes(packet.size);
            self.begin(packet, wire_bytes, (now, now), out);
            return;
        }
        // A packet that arrives at the instant at which the transmitter becomes free is enqueued
        // before the dequeue, as in Linux. There the completion's softirq dequeues, after the
        // timers of that instant. A packet that these timers send also causes a dequeue.
        if self.free_at <= now {
            self.send_to_free(packet, now, out);
        } else {
            self.enqueue(packet, now, out);
        }
    }

    /// Whether the policer passes a packet of `ip_bytes`.
    fn conforms(&mut self, ip_bytes: u32, now: Time) -> bool {
        let bytes = ip_bytes + self.framing.header_bytes;
        self.policer.as_mut().is_none_or(|policer| policer.conforms(bytes, now))
    }

    /// The policer drops a packet as it arrives.
    #[cold]
    fn police(&mut self, mut packet: Packet<B>, now: Time, out: &mut impl Outlet<B>) {
        // Earlier events are reported first.
        if now > Time::ZERO {
            self.advance(Time(now.0 - 1), out);
        }
        packet.size += self.framing.header_bytes;
        packet.enqueued = now;
        out.decided(Verdict::Dropped(packet, Cause::Police), now);
    }

    /// `send` if the transmitter is free, or becomes free before or as the packet arrives.
    fn send_to_free(&mut self, packet: Packet<B>, now: Time, out: &mut impl Outlet<B>) {
        if self.asks_at_once {
            self.advance(now, out);
        } else if self.free_at < now {
            self.advance(Time(now.0 - 1), out);
        }
        if self.free_at > now || self.backlog.packets > 0 {
            self.enqueue(packet, now, out);
            self.advance(now, out);
        } else {
            self.pass(packet, now, out);
        }
    }

    /// `send` if the transmitter is free and the queue is empty.
    #[inline(always)]
    fn pass(&mut self, mut packet: Packet<B>, now: Time, out: &mut impl Outlet<B>) {
        packet.size += self.framing.header_bytes;
        self.backlog_since = now;
        self.backlog = Backlog { packets: 1, bytes: packet.size.into() };
        self.note_peak();
        // The transmitter found the queue empty when it became free: idle periods start then.
        let since = (self.free_at < now).then_some(self.free_at);
        let passed = self.qdisc.pass(packet, since, now, &mut self.verdicts);
        self.report_verdicts(now, out);
        if let Some(packet) = passed {
            self.backlog = Backlog::default();
            self.transmit(packet, now, out);
        }
        debug_assert_eq!(self.backlog, self.qdisc.backlog(), "a verdict was not reported");
    }

    /// Removes from the queue every packet that is due by `now`.
    #[inline]
    pub fn advance(&mut self, now: Time, out: &mut impl Outlet<B>) {
        if self.gate.is_some() {
            self.advance_through_gate(now, out);
            return;
        }
        while self.backlog.packets > 0 && self.free_at <= now {
            if !self.transmit_next(out) {
                return;
            }
        }
    }

    /// The transmitter, which is free, takes the next packet, if the discipline returns one.
    fn transmit_next(&mut self, out: &mut impl Outlet<B>) -> bool {
        // A packet that arrived while the transmitter was idle leaves at its arrival, not when the
        // transmitter became free. `send` advances before and after it enqueues, so in this case
        // the last change of the backlog is that arrival.
        let at = self.free_at.max(self.backlog_since);
        let Some(packet) = self.dequeue(at, out) else {
            return false;
        };
        self.transmit(packet, at, out);
        true
    }

    /// Transmits a packet whose size is still the discipline's.
    #[inline(always)]
    fn transmit(&mut self, mut packet: Packet<B>, at: Time, out: &mut impl Outlet<B>) {
        packet.size -= self.framing.header_bytes;
        if packet.size != self.last.ip_bytes {
            self.last = Transmission::new(&self.framing, &self.schedule, packet.size, at);
        }
        let Transmission { wire_bytes, span, .. } = self.last;
        let finished = at + span;
        self.counters.busy_ns += span.0;
        self.free_at = finished;
        self.begin(packet, wire_bytes, (at, finished), out);
    }

    /// Enqueues a packet whose size is that of the IP packet.
    #[inline(always)]
    fn enqueue(&mut self, mut packet: Packet<B>, now: Time, out: &mut impl Outlet<B>) {
        packet.size += self.framing.header_bytes;
        self.integrate(now);
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(packet.size);
        self.qdisc.enqueue(packet, now, &mut self.verdicts);
        self.report_verdicts(now, out);
        self.note_peak();
        debug_assert_eq!(self.backlog, self.qdisc.backlog(), "a verdict was not reported");
    }

    #[inline(always)]
    fn note_peak(&mut self) {
        // Branches that are rarely taken.
        if self.backlog.packets > self.peak.packets {
            self.peak.packets = self.backlog.packets;
        }
        if self.backlog.bytes > self.peak.bytes {
            self.peak.bytes = self.backlog.bytes;
        }
    }

    /// The next packet; its size is still the discipline's.
    #[inline(always)]
    fn dequeue(&mut self, at: Time, out: &mut impl Outlet<B>) -> Option<Packet<B>> {
        self.integrate(at);
        let packet = self.qdisc.dequeue(at, &mut self.verdicts);
        self.report_verdicts(at, out);
        if let Some(packet) = &packet {
            self.backlog.packets -= 1;
            self.backlog.bytes -= u64::from(packet.size);
        }
        debug_assert_eq!(self.backlog, self.qdisc.backlog(), "a verdict was not reported");
        packet
    }

    /// Dequeues from an empty discipline, as an open gate does.
    fn dequeue_nothing(&mut self, at: Time, out: &mut impl Outlet<B>) {
        let none = self.qdisc.dequeue(at, &mut self.verdicts);
        debug_assert!(none.is_none(), "an empty queue returned a packet");
        self.report_verdicts(at, out);
    }

    #[inline(always)]
    fn report_verdicts(&mut self, at: Time, out: &mut impl Outlet<B>) {
        if !self.verdicts.is_empty() {
            self.report_each_verdict(at, out);
        }
    }

    #[cold]
    fn report_each_verdict(&mut self, at: Time, out: &mut impl Outlet<B>) {
        for verdict in self.verdicts.drain(..) {
            if let Verdict::Dropped(packet, _) = &verdict {
                self.backlog.packets -= 1;
                self.backlog.bytes -= u64::from(packet.size);
            }
            out.decided(verdict, at);
        }
    }

    /// Brings the integrals of the backlog up to `now`, before it changes.
    #[inline(always)]
    fn integrate(&mut self, now: Time) {
        let span = now.since(self.backlog_since).0;
        self.counters.packet_ns += u128::from(self.backlog.packets) * u128::from(span);
        self.counters.byte_ns += u128::from(self.backlog.bytes) * u128::from(span);
        self.backlog_since = now.max(self.backlog_since);
    }

    /// The next time at which `advance` has work: the transmitter is free (the gate may be open)
    /// and a packet waits.
    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        if self.backlog.packets == 0 {
            return None;
        }
        match &self.gate {
            None => Some(self.free_at),
            Some(gate) => Some(gate.may_open_at(self.free_at)),
        }
    }

    /// The queue's backlog now, without the packets in transmission and in the ring.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// The largest backlog since the start or the last `forget_peak`; packets and bytes are
    /// independent.
    pub fn peak(&self) -> Backlog {
        self.peak
    }

    /// Resets the peaks, those of the ring too.
    pub fn forget_peak(&mut self) {
        self.peak = self.backlog;
        if let Some(ring) = self.gate.as_mut().and_then(|gate| gate.ring.as_mut()) {
            ring.forget_peak();
        }
    }

    /// Brings the ring's counts up to date; no packet leaves the queue.
    pub fn settle(&mut self, now: Time) {
        if let Some(ring) = self.gate.as_mut().and_then(|gate| gate.ring.as_mut()) {
            ring.settle(now);
        }
    }

    /// The first time after `now` at which its rate or its discipline's parameters change. `step`
    /// has been called for those up to `now`.
    pub fn next_step(&self, now: Time) -> Time {
        self.schedule.next_change(now).min(self.next_qdisc_step())
    }

    /// The next time at which its discipline's parameters change.
    pub fn next_qdisc_step(&self) -> Time {
        self.qdisc_steps.last().map_or(Time::NEVER, |step| Time(step.at_ns))
    }

    /// Carries out the steps of `now`: reports a new rate to the discipline, and changes its
    /// parameters. Earlier events have been advanced.
    pub fn step(&mut self, now: Time, out: &mut impl Outlet<B>) {
        if now > Time::ZERO && self.schedule.next_change(Time(now.0 - 1)) == now {
            let rates = [self.schedule.rate_at(now), self.shaped_rate()];
            if let Some(rate) = rates.into_iter().flatten().min() {
                self.qdisc.rate_changed(rate);
            }
        }
        if self.next_qdisc_step() <= now {
            self.change_qdisc(now, out);
        }
    }

    /// The discipline's parameters change at `now`.
    #[cold]
    pub fn change_qdisc(&mut self, now: Time, out: &mut impl Outlet<B>) {
        while self.next_qdisc_step() <= now
            && let Some(step) = self.qdisc_steps.pop()
        {
            self.integrate(now);
            self.qdisc.change(&step.qdisc, now, &mut self.verdicts);
            self.report_verdicts(now, out);
        }
        if let Some(gate) = &mut self.gate {
            gate.ask(&self.qdisc);
        }
        debug_assert_eq!(self.backlog, self.qdisc.backlog(), "a verdict was not reported");
    }

    /// The driver's ring, in its state at the last call of the link.
    pub fn ring(&self) -> Option<&Ring> {
        self.gate.as_ref().and_then(|gate| gate.ring.as_deref())
    }

    /// Bytes on the wire, framing included, of the packets whose transmission began by `now`.
    pub fn wire_bytes(&self, now: Time) -> u64 {
        let waiting = self.ring().map_or(0, |ring| ring.unbegun_wire_bytes(now));
        self.counters.wire_bytes - waiting
    }

    /// The bits that the link could carry from `from` to `to`, at the rate of its transmitter or
    /// its shaper, whichever is slower.
    pub fn capacity_bits(&self, from: Time, to: Time) -> Option<u128> {
        self.schedule.capacity_bits(from, to, self.shaped_rate())
    }

    /// The discipline, for its state.
    pub fn qdisc(&self) -> &Discipline<B> {
        &self.qdisc
    }

    /// The discipline, for replays that report to it what it can't know. Only the link enqueues and
    /// dequeues.
    pub fn qdisc_mut(&mut self) -> &mut Discipline<B> {
        &mut self.qdisc
    }

    /// The rate over time.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The counts up to now.
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

    /// The least time that a packet of `ip_bytes` takes from the head of an empty queue to the far
    /// end, at the link's highest rate before `end`. `None`: the link never sends such a packet.
    pub fn idle_delay(&self, ip_bytes: u32, end: Time) -> Option<Span> {
        Some(self.schedule.least_time(self.framing.wire_bytes(ip_bytes), end)? + self.wire.delay())
    }

    fn shaped_rate(&self) -> Option<Rate> {
        self.gate.as_ref().and_then(|gate| gate.shaper.as_ref()).map(Shaper::rate)
    }

    /// `send` if there is a gate.
    fn send_to_gate(&mut self, packet: Packet<B>, now: Time, out: &mut impl Outlet<B>) {
        if self.gate.as_ref().is_none_or(|gate| gate.held.is_none()) {
            self.advance_through_gate(now, out);
        } else if now > Time::ZERO {
            // A packet that arrives as the transmitter becomes free is enqueued first, as on a
            // plain link. If the discipline itself releases a packet now, it is dequeued first: in
            // Linux its watchdog is a kernel timer, and the queue runs before received packets are
            // handed on.
            self.advance_through_gate(Time(now.0 - 1), out);
            if self.gate.as_mut().is_some_and(|gate| gate.gives_at(now, self.free_at)) {
                self.advance_through_gate(now, out);
            }
        }
        // As on a plain link: the gate opened and found the discipline empty.
        if let Some(open) = self.asks_in_vain(now).filter(|open| *open < now) {
            self.dequeue_nothing(open, out);
        }
        self.enqueue(packet, now, out);
        // The dequeue repeats if the discipline dropped the arriving packet (__dev_xmit_skb runs
        // the discipline in every case).
        if self.asks_in_vain(now).is_some() {
            self.dequeue_nothing(now, out);
        }
        if let Some(gate) = &mut self.gate {
            gate.ask(&self.qdisc);
        }
        self.advance_through_gate(now, out);
    }

    /// The time at which the gate opened and found the discipline empty, if that is not after
    /// `now`. `None` below a shaper, which does not dequeue from an empty discipline.
    fn asks_in_vain(&mut self, now: Time) -> Option<Time> {
        let gate = self.gate.as_mut().filter(|gate| gate.shaper.is_none())?;
        if self.backlog.packets > 0 { None } else { gate.opened_by(now, self.free_at) }
    }

    /// `advance` if there is a gate: each packet passes at the time at which the gate opened, and
    /// its times in the ring and the transmitter are known then.
    fn advance_through_gate(&mut self, now: Time, out: &mut impl Outlet<B>) {
        let mut gate = self.gate.take().expect("only links with a gate get here");
        while self.backlog.packets > 0
            && let Some(open) = gate.opened_by(now, self.free_at)
        {
            // A packet that arrived while the gate was open passes at its arrival.
            let at = open.max(self.backlog_since);
            if let Some(ring) = &mut gate.ring {
                ring.settle(at);
            }
            let dequeued = self.dequeue(at, out);
            gate.ask(&self.qdisc);
            let Some(mut packet) = dequeued else {
                // The packets that the discipline has dropped may have counted against its rate, or
                // it knows only now until when it holds packets back.
                if gate.held.is_some_and(|held| held > at) {
                    continue;
                }
                break;
            };
            let bytes = packet.size;
            packet.size -= self.framing.header_bytes;
            let begins = at.max(self.free_at);
            if packet.size != self.last.ip_bytes {
                self.last = Transmission::new(&self.framing, &self.schedule, packet.size, begins);
            }
            let Transmission { wire_bytes, span, .. } = self.last;
            let finished = begins + span;
            self.counters.busy_ns += span.0;
            self.free_at = finished;
            if let Some(ring) = &mut gate.ring {
                ring.push(Slot { entered: at, begins, finished, bytes, wire_bytes });
            }
            if let Some(shaper) = &mut gate.shaper {
                shaper.charge(bytes, at);
            }
            self.begin(packet, wire_bytes, (at, finished), out);
        }
        if let Some(ring) = &mut gate.ring {
            ring.settle(now);
        }
        self.gate = Some(gate);
    }

    #[inline(always)]
    fn begin(
        &mut self,
        mut packet: Packet<B>,
        wire_bytes: u64,
        (at, finished): (Time, Time),
        out: &mut impl Outlet<B>,
    ) {
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += u64::from(packet.size);
        self.counters.wire_bytes += wire_bytes;
        let Crossing { lost, arrives, again } =
            self.wire.cross(packet.size, &mut packet.ds, finished);
        let mut lost = lost.then_some(Cause::Wire);
        let mut again = again;
        if let Some(replay) = &mut self.replay
            && lost.is_none()
            && packet.body.tunnel() > 0
        {
            again = None;
            lost = replay.refuses(&packet).then_some(Cause::Replay);
        }
        if let Some(again) = again {
            out.doubled(&packet, again);
        }
        out.departed(Departure { dequeued: at, arrives, lost, packet });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use qdisc::{Context, DsField, Params};
    use units::Rng;

    fn link(rate: &[RateStep], limit: u64) -> Link<u32> {
        let params = Params::Pfifo(qdisc::FifoParams { limit });
        let schedule = Schedule::new(rate.to_vec(), None);
        let context = Context {
            rate: schedule.rate_at(Time::ZERO),
            mtu: 1500,
            header_bytes: 0,
            root: false,
            rng: Rng::new(1, "test"),
        };
        Link::new(LinkParts {
            qdisc: Discipline::new(&params, context),
            qdisc_steps: Vec::new(),
            schedule,
            framing: Framing::NONE,
            wire: Propagation::new(
                Span::from_millis(10),
                &Loss::None,
                &Impairments::default(),
                |name| Rng::new(1, name),
            ),
            ring: None,
            shaper: None,
            police: None,
            replay_window: None,
        })
    }

    fn packet(body: u32) -> Packet<u32> {
        Packet { enqueued: Time::ZERO, flow: 0, size: 1500, ds: DsField::BEST_EFFORT, body }
    }

    /// 1500 bytes at 12 Mbit/s take 1 ms.
    const STEP: RateStep = RateStep { at_ns: 0, bps: 12_000_000 };
    const MS: u64 = 1_000_000;

    #[test]
    fn packets_leave_one_transmission_apart() {
        let mut l = link(&[STEP], 10);
        let mut log = Log::default();
        for body in 0..3 {
            l.send(packet(body), Time(5 * MS), &mut log);
        }
        assert_eq!(l.next_event(), Some(Time(6 * MS)));
        l.advance(Time(7 * MS), &mut log);
        let arrivals: Vec<_> = log
            .departures
            .iter()
            .map(|d| (d.packet.body, d.dequeued.0 / MS, d.arrives.0 / MS))
            .collect();
        assert_eq!(arrivals, [(0, 5, 16), (1, 6, 17), (2, 7, 18)]);
        assert_eq!(l.next_event(), None);
        assert_eq!(l.busy_ns(Time(7 * MS + 1)), 2 * MS + 1);
    }

    #[test]
    fn late_calls_give_the_same_results() {
        let drive = |wakeups: &[u64]| {
            let mut l = link(&[STEP], 10);
            let mut log = Log::default();
            for body in 0..4 {
                l.send(packet(body), Time(u64::from(body) * MS / 2), &mut log);
            }
            for &at in wakeups {
                l.advance(Time(at), &mut log);
            }
            (
                log.departures
                    .iter()
                    .map(|d| (d.packet.body, d.dequeued, d.arrives))
                    .collect::<Vec<_>>(),
                l.backlog_integrals(Time(30 * MS)),
            )
        };
        let punctual = drive(&[MS, 2 * MS, 3 * MS, 4 * MS]);
        assert_eq!(drive(&[20 * MS]), punctual);
        assert_eq!(drive(&[2 * MS, 2 * MS, MS, 9 * MS, 9 * MS]), punctual);
    }

    #[test]
    fn a_packet_that_arrives_as_the_transmitter_becomes_free_is_enqueued_first() {
        let mut l = link(&[STEP], 2);
        let mut log = Log::default();
        for body in 0..3 {
            l.send(packet(body), Time(0), &mut log);
        }
        l.advance(Time(0), &mut log);
        assert_eq!((l.backlog().packets, log.verdicts.len()), (2, 0));
        // The last bit of the first packet is out: two packets still wait, and there is no room for
        // the fourth.
        l.send(packet(3), Time(MS), &mut log);
        assert_eq!((l.backlog().packets, log.verdicts.len()), (1, 1));
        // 1 ns later there is room.
        l.send(packet(4), Time(MS + 1), &mut log);
        assert_eq!((l.backlog().packets, log.verdicts.len()), (2, 1));
    }

    #[test]
    fn the_backlog_integral_is_what_little_s_law_says() {
        let mut l = link(&[STEP], 10);
        let mut log = Log::default();
        for body in 0..4 {
            l.send(packet(body), Time(0), &mut log);
        }
        l.advance(Time(50 * MS), &mut log);
        let waited: u128 =
            log.departures.iter().map(|d| u128::from(d.dequeued.since(d.packet.enqueued).0)).sum();
        assert_eq!(l.backlog_integrals(Time(50 * MS)), (waited, 1500 * waited));
    }

    #[test]
    fn taking_the_peak_resets_it_to_the_present_backlog() {
        let mut l = link(&[STEP], 10);
        let mut log = Log::default();
        for body in 0..4 {
            l.send(packet(body), Time(0), &mut log);
        }
        l.advance(Time(2 * MS), &mut log);
        assert_eq!((l.peak().packets, l.peak().bytes), (3, 4500));
        l.forget_peak();
        assert_eq!((l.peak().packets, l.peak().bytes), (1, 1500));
    }

    #[test]
    fn an_outage_pauses_the_transmission_of_a_packet() {
        // Half of the packet is out when the link stops for 10 ms.
        let steps = [
            STEP,
            RateStep { at_ns: MS / 2, bps: 0 },
            RateStep { at_ns: 10 * MS + MS / 2, bps: 12_000_000 },
        ];
        let mut l = link(&steps, 10);
        let mut log = Log::default();
        l.send(packet(0), Time::ZERO, &mut log);
        assert_eq!(log.departures[0].arrives, Time(21 * MS));
        assert_eq!(l.busy_ns(Time(2 * MS)), 2 * MS);
    }

    #[test]
    fn a_link_without_a_rate_never_queues() {
        let mut l = link(&[], 1);
        let mut log = Log::default();
        for body in 0..100 {
            l.send(packet(body), Time(MS), &mut log);
        }
        assert!(
            log.verdicts.is_empty() && log.departures.iter().all(|d| d.arrives == Time(11 * MS))
        );
    }
}
