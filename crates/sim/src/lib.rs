//! The packet simulator: a scenario of integers in, tables out.
//!
//! One run is one thread and one agenda. A packet that is sent is put into its link's queue at
//! once; when its transmission begins its arrival at the far end is entered into the agenda, and a
//! link has at most one event pending, and only while something waits. So a data packet costs two
//! to three events: transmission, arrival, and its share of an ACK.
//!
//! Order: events happen in order of time, simultaneous ones in the order in which they were
//! entered. At one instant a link that is free sends what waits before it takes a newcomer in.
//! Timers are lazy: each endpoint has one pending event, and one that comes early is entered again.
//! Everything random has a stream of its own, named after what it belongs to.
//!
//! No I/O, no clock, no thread: whoever calls `Sim::run` in slices may look at his clock in
//! between.

mod agenda;
mod host;
mod payload;
mod recorder;
mod replay;
mod scenario;

pub use qdisc::{Cause, DsField};
pub use replay::{Arrival, Decision, Fell, replay};
pub use scenario::*;
pub use traffic::{Draw, Frames};

use agenda::{Agenda, Due};
use host::{Host, Outbox};
use link::{Departure, Link, LinkParts, LossLaw, Schedule};
use payload::{Parcel, Payload, SackPool};
use qdisc::{Body, Context, Discipline, Fate};
use recorder::Recorder;
use units::{Luck, Rate, Span, Time};

/// Words of the agenda: what happens, in the upper four bits; how often it gave way to what else
/// happens at its time, in the next two; to whom, below.
mod word {
    pub const ARRIVE: u32 = 0 << 28;
    pub const AT_LINK: u32 = 1 << 28;
    pub const LINK_FREE: u32 = 2 << 28;
    pub const SOURCE: u32 = 3 << 28;
    pub const SINK: u32 = 4 << 28;
    pub const EMIT: u32 = 5 << 28;
    pub const RATE_STEP: u32 = 6 << 28;
    pub const SAMPLE_QUEUES: u32 = 7 << 28;
    pub const SAMPLE_FLOWS: u32 = 8 << 28;
    pub const WARM: u32 = 9 << 28;
    pub const KIND: u32 = 15 << 28;
    pub const GAVE_WAY: u32 = 1 << 26;
    pub const TIMES: u32 = 3 << 26;
    pub const INDEX: u32 = (1 << 26) - 1;

    /// Programs send behind what the kernel does at that time: timers go off before programs run.
    pub const BEHIND_TIMERS: u32 = GAVE_WAY;
    /// A link that becomes free takes in what comes at that time before it asks, from programs too.
    pub const BEHIND_PROGRAMS: u32 = 2 * GAVE_WAY;
}

/// Where packets of one direction of a flow go. Two to a flow: its packets, then its replies.
#[derive(Clone, Copy)]
struct Route {
    /// First of its links in `Sim::hops`.
    first: u32,
    /// How many.
    len: u32,
    /// Propagation after the last link.
    extra: Span,
}

/// A run in progress.
pub struct Sim {
    now: Time,
    warm_at: Time,
    links: Vec<Link<Payload>>,
    /// The time of each link's pending event; `Time::NEVER` without one.
    link_timers: Vec<Time>,
    wires: Wires,
    hosts: Vec<Host>,
    outbox: Outbox,
    sacks: SackPool,
    /// Drops and marks of the link that is being called.
    fates: Vec<Fate<Payload>>,
    events: u64,
    finished: bool,
}

const NO_PACKET: Parcel = Parcel {
    enqueued: Time::ZERO,
    flow: 0,
    size: 0,
    ds: DsField::BEST_EFFORT,
    body: Payload {
        stamp: Time::ZERO,
        seq: 0,
        window: 0,
        sack: payload::NO_SACK,
        epoch: 0,
        hop: 0,
        kind: 0,
    },
};

impl Sim {
    /// A run at its start. The scenario must be consistent (indices in range, names unique): it was
    /// made so in `scenario/`.
    pub fn new(scenario: &Scenario) -> Sim {
        let links: Vec<Link<Payload>> =
            scenario.links.iter().map(|spec| make_link(spec, scenario.seed)).collect();
        let (mut routes, mut hops) = (Vec::new(), Vec::new());
        for flow in &scenario.flows {
            for (path, extra) in
                [(&flow.path, flow.path_extra_ns), (&flow.back, flow.back_extra_ns)]
            {
                assert!(
                    path.iter().all(|&l| (l as usize) < links.len()),
                    "a path names a link that is not there"
                );
                routes.push(Route {
                    first: hops.len() as u32,
                    len: path.len() as u32,
                    extra: Span(extra),
                });
                hops.extend_from_slice(path);
            }
        }
        let hosts: Vec<Host> = scenario
            .flows
            .iter()
            .enumerate()
            .map(|(i, flow)| Host::new(flow, i, scenario.seed))
            .collect();
        let mut recorder = Recorder::new(scenario);
        let end = Time(scenario.duration_ns);
        recorder.set_base_rtts(scenario.base_rtts());
        let (slot, horizon) = agenda_shape(scenario);
        let agenda = Agenda::new(slot, horizon);
        let mut sim = Sim {
            now: Time::ZERO,
            warm_at: Time(scenario.warmup_ns),
            link_timers: vec![Time::NEVER; links.len()],
            links,
            wires: Wires { agenda, routes, hops, recorder, lost: Vec::new(), end },
            hosts,
            outbox: Outbox::default(),
            sacks: SackPool::default(),
            fates: Vec::new(),
            events: 0,
            finished: false,
        };
        sim.enter_first_events(scenario);
        sim
    }

    fn enter_first_events(&mut self, scenario: &Scenario) {
        self.wires.enter(Time(scenario.warmup_ns), word::WARM);
        self.wires
            .enter_sample(Time::ZERO + self.wires.recorder.queue_interval, word::SAMPLE_QUEUES);
        self.wires.enter_sample(Time::ZERO + self.wires.recorder.flow_interval, word::SAMPLE_FLOWS);
        for index in 0..self.links.len() {
            let change = self.links[index].schedule().next_change(Time::ZERO);
            self.wires.enter(change, word::RATE_STEP | index as u32);
        }
        for index in 0..self.hosts.len() {
            self.rearm_source(index);
        }
    }

    /// Where the run is.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Goes on to the end, or until `budget` further events have happened; true when the run is
    /// complete.
    pub fn run(&mut self, budget: u64) -> bool {
        let pause_at = self.events.saturating_add(budget);
        while let Some(due) = self.wires.agenda.pop(self.wires.end) {
            self.events += 1;
            self.now = due.time;
            let index = due.word & word::INDEX;
            match due.word & word::KIND {
                word::ARRIVE => {
                    let packet = self.wires.agenda.packet(due);
                    self.arrive(packet);
                }
                word::AT_LINK => {
                    let packet = self.wires.agenda.packet(due);
                    self.send(index, packet);
                }
                word::LINK_FREE
                    if !self.links[index as usize].asks_at_once()
                        && self.gives_way(&due, word::BEHIND_PROGRAMS) => {}
                word::LINK_FREE => self.link_free(index, due.time),
                word::SOURCE
                    if self.hosts[index as usize].is_program()
                        && self.gives_way(&due, word::BEHIND_TIMERS) => {}
                word::SOURCE => self.source_timer(index as usize, due.time),
                word::SINK => self.sink_timer(index as usize, due.time),
                word::EMIT => {
                    let packet = self.wires.agenda.packet(due);
                    self.enter_path(packet);
                }
                word::RATE_STEP => self.rate_step(index),
                // Else a sample would let links go on before what comes to them at that time.
                word::SAMPLE_QUEUES if self.gives_way(&due, word::BEHIND_PROGRAMS) => {}
                word::SAMPLE_QUEUES => self.sample_queues(),
                word::SAMPLE_FLOWS => self.sample_flows(),
                _ => self.warm(),
            }
            if self.events == pause_at {
                return false;
            }
        }
        if !self.finished {
            self.finished = true;
            self.now = self.wires.end;
            self.finish();
        }
        true
    }

    /// Puts an event behind all else that is to happen at its time, if there is something, until it
    /// has given way `times`.
    #[inline]
    fn gives_way(&mut self, due: &Due, times: u32) -> bool {
        let again = due.word & word::TIMES < times && self.wires.agenda.more_at(due.time);
        if again {
            self.wires.enter(due.time, due.word + word::GAVE_WAY);
        }
        again
    }

    /// Packets of data delivered to their hosts so far.
    pub fn delivered_packets(&self) -> u64 {
        self.hosts.iter().map(|host| host.counters.received_packets).sum()
    }

    /// The tables of a finished run.
    pub fn into_tables(self) -> Vec<tables::Table> {
        let delivered = self.delivered_packets();
        self.wires.recorder.into_tables(
            &self.hosts,
            self.events,
            delivered,
            self.wires.agenda.peak(),
        )
    }

    // --- links ---

    /// Puts a packet on the path that its flow's direction has, or straight to its host where there
    /// is no link.
    #[inline]
    fn enter_path(&mut self, packet: Parcel) {
        let route = self.wires.routes[packet.flow as usize];
        if route.len == 0 {
            self.wires.enter_packet(self.now + route.extra, word::ARRIVE, packet);
        } else {
            self.send(self.wires.hops[route.first as usize], packet);
        }
    }

    #[inline]
    fn send(&mut self, link: u32, packet: Parcel) {
        let behind = |departure| self.wires.carry(link, departure);
        self.links[link as usize].send(packet, self.now, &mut self.fates, behind);
        self.settle(link);
    }

    fn link_free(&mut self, link: u32, at: Time) {
        if at != self.link_timers[link as usize] {
            return;
        }
        self.link_timers[link as usize] = Time::NEVER;
        self.advance(link);
    }

    #[inline]
    fn advance(&mut self, link: u32) {
        let mut behind = |departure| self.wires.carry(link, departure);
        self.links[link as usize].advance(self.now, &mut self.fates, &mut behind);
        self.settle(link);
    }

    /// After a link was called: its next event is entered, its drops and marks are told.
    #[inline]
    fn settle(&mut self, link: u32) {
        let l = link as usize;
        if let Some(next) = self.links[l].next_event()
            && next < self.link_timers[l]
        {
            self.link_timers[l] = next;
            self.wires.enter(next, word::LINK_FREE | link);
        }
        if !self.fates.is_empty() || !self.wires.lost.is_empty() {
            self.tell_fates(link);
        }
    }

    #[cold]
    fn tell_fates(&mut self, link: u32) {
        self.fates
            .extend(self.wires.lost.drain(..).map(|packet| Fate::Dropped(packet, Cause::Wire)));
        for fate in self.fates.drain(..) {
            self.wires.recorder.fate(link, &fate, self.now);
            if let Fate::Dropped(packet, _) = fate {
                self.sacks.release(&packet.body);
                self.hosts[(packet.flow / 2) as usize].dropped(&packet);
            }
        }
    }

    fn rate_step(&mut self, link: u32) {
        let l = &mut self.links[link as usize];
        l.rate_stepped(self.now);
        let change = l.schedule().next_change(self.now);
        self.wires.enter(change, word::RATE_STEP | link);
    }

    // --- hosts ---

    #[inline]
    fn arrive(&mut self, packet: Parcel) {
        let index = (packet.flow / 2) as usize;
        let host = &mut self.hosts[index];
        if packet.flow.is_multiple_of(2) {
            host.at_far_end(packet, self.now, &mut self.sacks, &mut self.outbox);
            self.flush(index);
            self.rearm_sink(index);
        } else {
            host.at_source(packet, self.now, &mut self.sacks, &mut self.outbox);
            self.flush(index);
            self.rearm_source(index);
        }
    }

    fn source_timer(&mut self, index: usize, at: Time) {
        let host = &mut self.hosts[index];
        if at != host.source_timer {
            return;
        }
        host.source_timer = Time::NEVER;
        host.source_due(self.now, &mut self.outbox);
        self.flush(index);
        self.rearm_source(index);
    }

    fn sink_timer(&mut self, index: usize, at: Time) {
        let host = &mut self.hosts[index];
        if at != host.sink_timer {
            return;
        }
        host.sink_timer = Time::NEVER;
        host.sink_due(self.now, &mut self.sacks, &mut self.outbox);
        self.flush(index);
        self.rearm_sink(index);
    }

    /// Sends what a host has put into the outbox, later by its jitter if it has any.
    #[inline]
    fn flush(&mut self, index: usize) {
        if self.outbox.packets.is_empty() {
            return;
        }
        let jitters = self.hosts[index].jitters();
        // The outbox is read by index because sending borrows the whole simulator.
        for i in 0..self.outbox.packets.len() {
            let packet = self.outbox.packets[i];
            if jitters {
                let at = self.hosts[index].leaves_at(&packet, self.now);
                self.wires.enter_packet(at, word::EMIT, packet);
            } else {
                self.enter_path(packet);
            }
        }
        self.outbox.packets.clear();
    }

    #[inline]
    fn rearm_source(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        if let Some(deadline) = host.source_deadline()
            && deadline < host.source_timer
        {
            let at = deadline.max(self.now);
            host.source_timer = at;
            self.wires.enter(at, word::SOURCE | index as u32);
        }
    }

    #[inline]
    fn rearm_sink(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        if let Some(deadline) = host.sink_deadline()
            && deadline < host.sink_timer
        {
            let at = deadline.max(self.now);
            host.sink_timer = at;
            self.wires.enter(at, word::SINK | index as u32);
        }
    }

    // --- recording ---

    fn sample_queues(&mut self) {
        if self.now != self.warm_at {
            self.bring_links_up_to_date();
            self.wires.recorder.sample_queues(&self.links, self.now);
        }
        self.wires.enter_sample(self.now + self.wires.recorder.queue_interval, word::SAMPLE_QUEUES);
    }

    fn sample_flows(&mut self) {
        if self.now != self.warm_at {
            self.wires.recorder.sample_flows(&self.hosts, self.now);
        }
        self.wires.enter_sample(self.now + self.wires.recorder.flow_interval, word::SAMPLE_FLOWS);
    }

    /// The first event of its instant: all else that happens in it is measured. Rows that are due
    /// then end here, too, so that the rows after them add up to the totals.
    fn warm(&mut self) {
        for link in &mut self.links {
            link.settle(self.now);
        }
        let recorder = &mut self.wires.recorder;
        let due = |interval: Span| self.now > Time::ZERO && self.now.0.is_multiple_of(interval.0);
        if due(recorder.queue_interval) {
            recorder.sample_queues(&self.links, self.now);
        }
        if due(recorder.flow_interval) {
            recorder.sample_flows(&self.hosts, self.now);
        }
        recorder.warm(&mut self.links, &mut self.hosts, self.now);
    }

    /// After the last event: so the last rows have what happened at the end itself.
    fn finish(&mut self) {
        self.bring_links_up_to_date();
        self.wires.recorder.sample_queues(&self.links, self.now);
        self.wires.recorder.sample_flows(&self.hosts, self.now);
        self.wires.recorder.finish(&mut self.links, self.now);
    }

    /// A link's event due at this very instant may stand behind the sample in the agenda.
    fn bring_links_up_to_date(&mut self) {
        for link in 0..self.links.len() {
            if self.link_timers[link] <= self.now {
                self.link_free(link as u32, self.link_timers[link]);
            } else if self.links[link].ring().is_some() {
                // Completions have no event while nothing waits for them.
                self.advance(link as u32);
            }
        }
    }
}

/// What lies behind the links: a packet that leaves a queue is recorded and entered into the agenda
/// for its arrival. Apart from `Sim` so that a link can be called with it.
struct Wires {
    agenda: Agenda<Parcel>,
    routes: Vec<Route>,
    hops: Vec<u32>,
    recorder: Recorder,
    /// What the wire of the link that is being called has lost.
    lost: Vec<Parcel>,
    end: Time,
}

impl Wires {
    #[inline]
    fn carry(&mut self, link: u32, departure: Departure<Payload>) {
        self.recorder.departure(link, &departure);
        let mut packet = departure.packet;
        if departure.lost {
            self.lost.push(packet);
            return;
        }
        packet.body.hop += 1;
        let route = self.routes[packet.flow as usize];
        let hop = u32::from(packet.body.hop);
        if hop == route.len {
            self.enter_packet(departure.arrives + route.extra, word::ARRIVE, packet);
        } else {
            let next = self.hops[(route.first + hop) as usize];
            self.enter_packet(departure.arrives, word::AT_LINK | next, packet);
        }
    }

    /// Enters an event; nothing beyond the end is entered.
    #[inline]
    fn enter(&mut self, at: Time, word: u32) {
        if at <= self.end {
            self.agenda.push(at, word, NO_PACKET);
        }
    }

    /// Enters a sample. The one at the end is taken when all has happened.
    fn enter_sample(&mut self, at: Time, word: u32) {
        if at < self.end {
            self.agenda.push(at, word, NO_PACKET);
        }
    }

    /// Enters a packet's arrival.
    #[inline]
    fn enter_packet(&mut self, at: Time, word: u32, packet: Parcel) {
        if at <= self.end {
            self.agenda.push(at, word, packet);
        }
    }
}

fn make_link<B: Body>(spec: &LinkSpec, seed: u64) -> Link<B> {
    let schedule = Schedule::new(spec.rate.clone(), spec.rate_period_ns);
    let shaped = spec.shaper.map(|shaper| Rate(shaper.bps));
    let context = Context {
        rate: [schedule.rate_at(Time::ZERO), shaped].into_iter().flatten().min(),
        mtu: 1500 + spec.framing.header_bytes,
        header_bytes: spec.framing.header_bytes,
        root: spec.shaper.is_none(),
        luck: Luck::new(seed, &format!("{}/qdisc", spec.name)),
    };
    let mut link = Link::new(LinkParts {
        qdisc: Discipline::new(&spec.qdisc, context),
        schedule,
        delay: Span(spec.delay_ns),
        framing: spec.framing,
        loss: LossLaw::new(spec.loss.clone(), Luck::new(seed, &format!("{}/loss", spec.name))),
        ring: spec.ring,
        shaper: spec.shaper,
    });
    if spec.asks_at_once {
        link.ask_at_once();
    }
    link
}

/// Slots a quarter of the shortest full-size transmission wide, and a horizon beyond the longest
/// path.
fn agenda_shape(scenario: &Scenario) -> (Span, Span) {
    let fastest =
        scenario.links.iter().flat_map(|l| l.rate.iter().map(|s| s.bps)).max().unwrap_or(0);
    let slot = Rate(fastest).time_for(1500).map_or(Span::from_micros(16), |t| t / 4);
    let links: u64 = scenario.links.iter().map(|l| l.delay_ns).max().unwrap_or(0);
    let extra =
        scenario.flows.iter().map(|f| f.path_extra_ns.max(f.back_extra_ns)).max().unwrap_or(0);
    (slot.max(Span(256)).min(Span::from_millis(1)), Span(links + extra) + Span::from_millis(20))
}
