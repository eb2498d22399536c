//! A window of time at a plain link: a queue, a transmitter of one rate and a wire of one delay.
//!
//! `run` has the effect of `send` for each packet that arrives in the window and then of `advance`.
//! It is shorter because nothing rare can happen at a plain link, and faster because the
//! discipline's type is known and the link's state is local. A law (tests/laws.rs) compares the
//! two.

use crate::{Counters, Departure, Framing, Link, Outlet, Schedule, Transmission};
use qdisc::{Backlog, Body, Packet, Qdisc, Verdict, Visitor};
use units::{Rate, Span, Time};

/// The packets that arrive at a link in a window, and the outlet of those that leave it.
pub trait Window<B>: Outlet<B> + Sized {
    /// The next packet that arrives, and its time. Times never decrease.
    fn arrival(&mut self) -> Option<(Packet<B>, Time)>;

    /// The window is over.
    fn end(self);
}

impl<B: Body> Link<B> {
    /// Whether the link has a queue whose parameters stay, a transmitter of one rate, a wire of one
    /// delay, and nothing else.
    pub fn is_plain(&self) -> bool {
        let rate = self.schedule.rate_at(Time::ZERO).filter(|_| self.schedule.is_constant());
        rate.is_some_and(|rate| rate > Rate(0))
            && self.gate.is_none()
            && self.qdisc_steps.is_empty()
            && self.policer.is_none()
            && self.replay.is_none()
            && !self.asks_at_once
            && self.wire.is_plain()
    }

    /// Moves a plain link from `began`, at which nothing was overdue, up to `last`: enqueues every
    /// packet of the window and removes from the queue every packet that is due.
    #[inline]
    pub fn run(&mut self, (began, last): (Time, Time), window: impl Window<B>) {
        self.integrate(began);
        let Link { framing, schedule, counters, verdicts, .. } = self;
        let transmitter = Transmitter { framing, schedule, delay: self.wire.delay() };
        let present = Present {
            free_at: self.free_at,
            since: self.backlog_since,
            backlog: self.backlog,
            peak: self.peak,
            alike: self.last,
            sums: Sums::default(),
        };
        let run = Run { present, last, transmitter, counters, verdicts, window };
        let present = self.qdisc.visit(run);
        self.free_at = present.free_at;
        self.backlog_since = present.since;
        self.backlog = present.backlog;
        self.peak = present.peak;
        self.last = present.alike;
    }
}

/// The part of a link's state that changes with each packet.
#[derive(Clone, Copy)]
struct Present {
    free_at: Time,
    since: Time,
    backlog: Backlog,
    peak: Backlog,
    /// The last transmission.
    alike: Transmission,
    sums: Sums,
}

/// Sums over a window of seconds at most: 64 bits are enough.
#[derive(Clone, Copy, Default)]
struct Sums {
    arrived_packets: u64,
    arrived_bytes: u64,
    /// Packets transmitted since the last packet of another size.
    alike: u64,
    packet_ns: u64,
    byte_ns: u64,
}

/// The part of a link that never changes.
#[derive(Clone, Copy)]
struct Transmitter<'a> {
    framing: &'a Framing,
    schedule: &'a Schedule,
    delay: Span,
}

struct Run<'a, B, W> {
    present: Present,
    last: Time,
    transmitter: Transmitter<'a>,
    counters: &'a mut Counters,
    verdicts: &'a mut Vec<Verdict<B>>,
    window: W,
}

impl<B: Body, W: Window<B>> Visitor<B> for Run<'_, B, W> {
    type Answer = Present;

    #[inline]
    fn visit<Q: Qdisc<B>>(self, qdisc: &mut Q) -> Present {
        // Local variables: the compiler keeps what it can of them in registers.
        let Run { present: mut link, last, transmitter, counters, verdicts, mut window } = self;
        let header_bytes = transmitter.framing.header_bytes;
        let mut before = Time::NEVER;
        loop {
            let arrival = window.arrival();
            // A packet that arrives as the transmitter becomes free is enqueued before the dequeue.
            // That dequeue is before the next arrival, even one at the same instant.
            let until = match &arrival {
                Some((_, now)) => now.0 + u64::from(*now == before),
                None => last.0 + 1,
            };
            while link.backlog.packets > 0 && link.free_at.0 < until {
                let begins = link.free_at.max(link.since);
                link.integrate(begins);
                let left = qdisc.dequeue(begins, verdicts);
                if !verdicts.is_empty() {
                    link.backlog = report(verdicts, link.backlog, begins, &mut window);
                }
                let Some(packet) = left else { break };
                link.backlog.packets -= 1;
                link.backlog.bytes -= u64::from(packet.size);
                window.departed(link.transmit(packet, begins, transmitter, counters));
            }
            let Some((mut packet, now)) = arrival else { break };
            before = now;
            link.sums.arrived_packets += 1;
            link.sums.arrived_bytes += u64::from(packet.size);
            packet.size += header_bytes;
            if link.free_at > now || link.backlog.packets > 0 {
                link.integrate(now);
                link.backlog.packets += 1;
                link.backlog.bytes += u64::from(packet.size);
                qdisc.enqueue(packet, now, verdicts);
                if !verdicts.is_empty() {
                    link.backlog = report(verdicts, link.backlog, now, &mut window);
                }
                link.note_peak();
            } else {
                link.since = now;
                link.backlog = Backlog { packets: 1, bytes: packet.size.into() };
                link.note_peak();
                // The transmitter found the queue empty when it became free.
                let since = (link.free_at < now).then_some(link.free_at);
                let passed = qdisc.pass(packet, since, now, verdicts);
                if !verdicts.is_empty() {
                    link.backlog = report(verdicts, link.backlog, now, &mut window);
                }
                if let Some(packet) = passed {
                    link.backlog = Backlog::default();
                    window.departed(link.transmit(packet, now, transmitter, counters));
                }
            }
        }
        debug_assert_eq!(link.backlog, qdisc.backlog(), "a verdict was not reported");
        counters.add(&link.sums, link.alike);
        window.end();
        link
    }
}

impl Present {
    /// `Link::integrate`.
    #[inline(always)]
    fn integrate(&mut self, now: Time) {
        let span = now.0 - self.since.0;
        self.sums.packet_ns += u64::from(self.backlog.packets) * span;
        self.sums.byte_ns += self.backlog.bytes * span;
        self.since = now;
    }

    /// `Link::note_peak`.
    #[inline(always)]
    fn note_peak(&mut self) {
        if self.backlog.packets > self.peak.packets {
            self.peak.packets = self.backlog.packets;
        }
        if self.backlog.bytes > self.peak.bytes {
            self.peak.bytes = self.backlog.bytes;
        }
    }

    /// `Link::transmit`, and the wire.
    #[inline(always)]
    fn transmit<B>(
        &mut self,
        mut packet: Packet<B>,
        begins: Time,
        Transmitter { framing, schedule, delay }: Transmitter<'_>,
        counters: &mut Counters,
    ) -> Departure<B> {
        packet.size -= framing.header_bytes;
        if packet.size != self.alike.ip_bytes {
            counters.transmitted(self.sums.alike, self.alike);
            self.sums.alike = 0;
            self.alike = Transmission::new(framing, schedule, packet.size, begins);
        }
        self.sums.alike += 1;
        self.free_at = begins + self.alike.span;
        Departure { dequeued: begins, arrives: self.free_at + delay, lost: None, packet }
    }
}

/// Reports each verdict; returns the remaining backlog.
#[inline(always)]
fn report<B>(
    verdicts: &mut Vec<Verdict<B>>,
    mut backlog: Backlog,
    at: Time,
    outlet: &mut impl Outlet<B>,
) -> Backlog {
    for verdict in verdicts.drain(..) {
        if let Verdict::Dropped(packet, _) = &verdict {
            backlog.packets -= 1;
            backlog.bytes -= u64::from(packet.size);
        }
        outlet.decided(verdict, at);
    }
    backlog
}

impl Counters {
    /// Counts a number of equal transmissions.
    #[inline(never)]
    fn transmitted(&mut self, packets: u64, each: Transmission) {
        self.sent_packets += packets;
        self.sent_bytes += packets * u64::from(each.ip_bytes);
        self.wire_bytes += packets * each.wire_bytes;
        self.busy_ns += packets * each.span.0;
    }

    /// Adds the sums of a window, in which the last transmissions were `alike`.
    #[inline]
    fn add(&mut self, sums: &Sums, alike: Transmission) {
        self.transmitted(sums.alike, alike);
        self.arrived_packets += sums.arrived_packets;
        self.arrived_bytes += sums.arrived_bytes;
        self.packet_ns += u128::from(sums.packet_ns);
        self.byte_ns += u128::from(sums.byte_ns);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Impairments, LinkParts, Log, Loss, Propagation, RateStep};
    use proptest::prelude::*;
    use qdisc::{CodelParams, CodelVariant, Context, Discipline, DsField, Ecn, FifoParams};
    use qdisc::{FqCodelParams, LinuxRedParams, Params, RedParams};
    use units::Rng;

    const MS: u64 = 1_000_000;
    /// 1500 bytes take 1 ms.
    const RATE: u64 = 12_000_000;

    pub(crate) fn link(params: &Params, header_bytes: u32) -> Link<u32> {
        let schedule = Schedule::new(vec![RateStep { at_ns: 0, bps: RATE }], None);
        let (rate, rng) = (schedule.rate_at(Time::ZERO), |name: &str| Rng::new(1, name));
        let context = Context { rate, mtu: 1500, header_bytes, root: true, rng: rng("qdisc") };
        let delay = Span::from_millis(5);
        let link = Link::new(LinkParts {
            qdisc: Discipline::new(params, context),
            qdisc_steps: Vec::new(),
            schedule,
            framing: Framing { header_bytes, ..Framing::NONE },
            wire: Propagation::new(delay, &Loss::None, &Impairments::default(), rng),
            ring: None,
            shaper: None,
            police: None,
            replay_window: None,
        });
        assert!(link.is_plain());
        link
    }

    fn any_params() -> impl Strategy<Value = Params> {
        let (variant, times) = (CodelVariant::Linux, (MS, 10 * MS));
        let codel = CodelParams {
            variant,
            limit: 30,
            target_ns: times.0,
            interval_ns: times.1,
            ecn: true,
            ce_threshold_ns: None,
        };
        let fq_codel = FqCodelParams {
            variant,
            limit: 30,
            flows: 4,
            memory_limit: 1 << 25,
            target_ns: times.0,
            interval_ns: times.1,
            quantum: 1500,
            ecn: false,
            ce_threshold_ns: None,
            ce_threshold_selector: None,
            drop_batch: 3,
        };
        let red = LinuxRedParams {
            limit: 30_000,
            min: 3_000,
            max: 9_000,
            avpkt: 1000,
            burst: 5,
            probability: 0.1,
            bandwidth: RATE,
            adaptive: false,
            ecn: true,
            harddrop: false,
            nodrop: false,
        };
        prop::sample::select(vec![
            Params::Pfifo(FifoParams { limit: 0 }),
            Params::Pfifo(FifoParams { limit: 8 }),
            Params::Codel(codel),
            Params::FqCodel(fq_codel),
            Params::Red(RedParams::Linux(red)),
        ])
    }

    /// Packets with their times. Many arrive together, or as the transmitter becomes free.
    pub(crate) fn any_arrivals() -> impl Strategy<Value = Vec<(Packet<u32>, Time)>> {
        let gap = prop_oneof![4 => Just(0), 2 => Just(MS), 1 => Just(3 * MS), 2 => 0..4 * MS];
        let size = prop_oneof![2 => Just(1500), 1 => 40u32..1500];
        let packets = prop::collection::vec((gap, size, 0u32..6), 1..150);
        packets.prop_map(|packets| {
            let numbered = (0..).zip(packets);
            let timed = numbered.scan(Time::ZERO, |now, (body, (gap, size, flow))| {
                *now += Span(gap);
                let ecn = if flow % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
                let ds = DsField::BEST_EFFORT.with_ecn(ecn);
                Some((Packet { enqueued: Time::ZERO, flow, size, ds, body }, *now))
            });
            timed.collect()
        })
    }

    struct Logged<'a, I> {
        arrivals: I,
        log: &'a mut Log<u32>,
    }

    impl<I> Outlet<u32> for Logged<'_, I> {
        fn departed(&mut self, departure: Departure<u32>) {
            self.log.departed(departure);
        }

        fn doubled(&mut self, _: &Packet<u32>, _: Time) {
            unreachable!("a plain wire doubles no packet")
        }

        fn decided(&mut self, verdict: Verdict<u32>, at: Time) {
            self.log.decided(verdict, at);
        }
    }

    impl<I: Iterator<Item = (Packet<u32>, Time)>> Window<u32> for Logged<'_, I> {
        fn arrival(&mut self) -> Option<(Packet<u32>, Time)> {
            self.arrivals.next()
        }

        fn end(self) {}
    }

    /// All counts and the state of a link at `now`.
    pub(crate) fn state(link: &Link<u32>, now: Time) -> String {
        let Link { counters, backlog, peak, free_at, .. } = link;
        let counters = Counters { packet_ns: 0, byte_ns: 0, ..*counters };
        let integrals = link.backlog_integrals(now);
        let inside = link.qdisc().state(now);
        format!("{counters:?} {backlog:?} {peak:?} {free_at:?} {integrals:?} {inside:?}")
    }

    proptest! {
        #[test]
        fn a_window_gives_the_results_of_send_and_advance(
            params in any_params(),
            header_bytes in prop::sample::select(vec![0u32, 14]),
            arrivals in any_arrivals(),
            mut ends in prop::collection::vec(0..400 * MS, 0..40),
        ) {
            let (mut general, mut plain) = (link(&params, header_bytes), link(&params, header_bytes));
            let (mut general_log, mut log) = (Log::default(), Log::default());
            let mut left = &arrivals[..];
            ends.sort_unstable();
            for until in ends.into_iter().chain([400 * MS, 1000 * MS]).map(Time) {
                let (inside, after) = left.split_at(left.partition_point(|(_, at)| *at < until));
                left = after;
                let first = inside.first().map(|(_, at)| *at);
                let due = [first, plain.next_event()].into_iter().flatten().min();
                let Some(began) = due.filter(|due| *due < until) else { continue };
                let last = Time(until.0 - 1);
                inside.iter().for_each(|(packet, at)| general.send(*packet, *at, &mut general_log));
                general.advance(last, &mut general_log);
                let arrivals = inside.iter().copied();
                plain.run((began, last), Logged { arrivals, log: &mut log });
                prop_assert_eq!(state(&plain, until), state(&general, until));
            }
            prop_assert!(left.is_empty());
            prop_assert_eq!(format!("{log:?}"), format!("{general_log:?}"));
        }
    }
}
