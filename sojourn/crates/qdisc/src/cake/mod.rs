//! cake: a shaper, tins of priority, and fair queues among flows and hosts, each queue under
//! COBALT.
//!
//! A packet's codepoint selects a tin (`tins`), and its flow a queue in the tin (`flows`). If a
//! rate is given, cake shapes to it. The highest tin that is within its own rate is served. If no
//! tin is, the one that will be within its rate soonest is served. In a tin, queues are served by
//! deficit round robin, new queues first. The bulk flows of a host share its turn. COBALT decides
//! on each packet that is about to leave (`cobalt`). When memory is exhausted, the queue with the
//! most bytes drops its oldest packet (`heap`). The arrival of a newer ACK may drop ACKs that are no
//! longer needed (`acks`).
//!
//! The shaper has no bucket. After each packet it waits for the packet's time at the rate. While
//! the discipline is empty no time is saved. A second clock counts one and a half times the time of
//! each sent packet. It releases a packet if the first is far ahead because of dropped packets
//! (`ingress`).
//!
//! Source: tc-cake(8); Høiland-Jørgensen, Täht, Morton, "Piece of CAKE", LANMAN 2018; Linux 6.12's
//! sch_cake for the behaviour.
//!
//! Deviations: packets have their size on the wire, so `split-gso` has nothing to split. There is
//! no `autorate-ingress`. Hashes and the fraction of a turn are drawn from the discipline's own
//! stream. A sender is not notified (NET_XMIT_CN) that its packet was dropped. If a negative
//! `overhead` makes a packet's size negative, it counts as 0 bytes; in Linux the size wraps, to 4
//! GB.

mod acks;
mod flows;
mod follow;
mod heap;
mod mq;
mod pace;
#[cfg(test)]
mod tests;
mod tins;

pub use acks::AckFilterMode;
pub use mq::CakeMq;
pub use tins::{TinMode, TinNumbers};

use crate::cobalt::{Blue, CobaltLaw};
use crate::slab::{NONE, Slab};
use crate::{
    AckView, Backlog, Body, Cause, Context, DsField, Ecn, Hosts, Packet, Qdisc, ReplayDraws,
    ReplayHint, Replayable, State, Verdict,
};
use acks::AckFilter;
use flows::{Flows, QUEUES};
use follow::{Followed, Following};
use heap::{Bytes, Heap, Queue};
use pace::{Pace, Sizes};
use serde::Deserialize;
use units::{Rate, Rng, Span, Time};

/// cake's parameters, including those that its other words imply.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CakeParams {
    /// The shaper's rate, bit/s; `None`: unlimited.
    pub bandwidth: Option<u64>,
    /// The typical round-trip time, which is COBALT's interval, ns (100 000 000). COBALT's target
    /// is a twentieth of it.
    pub rtt_ns: u64,
    /// The memory on a Linux host that all queues together may take, bytes; `None`: computed from
    /// the rate.
    pub memlimit: Option<u64>,
    /// The mapping from codepoints to tins (diffserv3).
    pub tins: TinMode,
    /// The units that share a tin (triple-isolate).
    pub isolation: Isolation,
    /// Clear the codepoint of packets after reading it (false).
    pub wash: bool,
    /// Dropped packets count against the rate, too, since they have used the line already (false).
    pub ingress: bool,
    /// `overhead` is added to the packet as queued, not to the IP packet (true).
    pub raw: bool,
    /// The bytes that the line adds to a packet (0).
    pub overhead: i64,
    /// The least size that a packet is charged, bytes (0).
    pub mpu: u32,
    /// How the line cuts packets into cells (noatm).
    pub cells: CakeCells,
    /// Whether ACKs that are no longer needed are dropped (no-ack-filter).
    pub acks: AckFilterMode,
    /// cake_mq only: the time for which a queue relies on its last look at the others, ns (200
    /// 000).
    #[serde(default)]
    pub sync_ns: u64,
}

/// The units that share a tin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// None: there is one queue.
    Flowblind,
    /// Sources.
    Srchost,
    /// Destinations.
    Dsthost,
    /// Pairs of source and destination.
    Hosts,
    /// Flows.
    Flows,
    /// Sources, and the flows of each.
    DualSrchost,
    /// Destinations, and the flows of each.
    DualDsthost,
    /// Sources and destinations, and the flows of each.
    TripleIsolate,
}

impl Isolation {
    /// Every mode.
    pub const ALL: [Isolation; 8] = [
        Isolation::Flowblind,
        Isolation::Srchost,
        Isolation::Dsthost,
        Isolation::Hosts,
        Isolation::Flows,
        Isolation::DualSrchost,
        Isolation::DualDsthost,
        Isolation::TripleIsolate,
    ];

    /// Whether it shares by sources, and by destinations.
    fn hosts(self) -> [bool; 2] {
        use Isolation::{Dsthost, DualDsthost, DualSrchost, Hosts, Srchost, TripleIsolate};
        [
            matches!(self, Srchost | Hosts | DualSrchost | TripleIsolate),
            matches!(self, Dsthost | Hosts | DualDsthost | TripleIsolate),
        ]
    }

    fn flows(self) -> bool {
        use Isolation::{DualDsthost, DualSrchost, Flows, TripleIsolate};
        matches!(self, Flows | DualSrchost | DualDsthost | TripleIsolate)
    }
}

/// How a line cuts packets into cells, by cake's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CakeCells {
    /// No cells.
    Noatm,
    /// Cells of 48 bytes, sent as 53.
    Atm,
    /// 65 bytes for each 64, or part of 64.
    Ptm,
}

/// The number of full packets that the memory is sized for by default.
const LIMIT: u64 = 10_240;
/// The least memory limit that is computed from a rate, bytes.
const LEAST_MEMORY: u64 = 4 << 20;
/// The bounds of a flow's turn at a rate, bytes.
const TURNS: (u64, u64) = (300, 1514);

/// A class of traffic.
#[derive(Clone, Debug)]
struct Tin {
    flows: Flows,
    law: CobaltLaw,
    pace: Pace,
    packets: u32,
    /// The time at which the tin is within its own rate again, ns.
    next: u64,
    /// Without a rate: the bytes that the tin may still send in its turn, and those of a turn.
    deficit: i64,
    quantum: u32,
}

impl Tin {
    /// A tin. `rate` is in bytes/s, 0 for unlimited; `mtu` is the largest packet.
    fn new(params: &CakeParams, (rate, quantum): (u64, u32), mtu: u32) -> Tin {
        let pace = Pace::new(rate);
        let isolation = params.isolation;
        let by_host = isolation.hosts().map(|by| by && isolation.flows());
        Tin {
            flows: Flows::new(by_host, turn(rate)),
            law: law(params.rtt_ns, pace.time(mtu)),
            pace,
            packets: 0,
            next: 0,
            deficit: 0,
            quantum,
        }
    }

    /// Charges bytes that were sent, or that were dropped and count as sent.
    #[inline]
    fn charge(&mut self, bytes: u32, now: u64) {
        let span = self.pace.time(bytes);
        // The tin owes the time of at most one packet.
        if self.next < now {
            self.next += span;
        } else {
            self.next = self.next.max(now + span);
        }
    }
}

impl Bytes for Vec<Tin> {
    fn bytes(&self, (tin, index): Queue) -> u32 {
        self.get(usize::from(tin)).map_or(0, |tin| tin.flows.at(usize::from(index)).bytes)
    }
}

/// The bytes of a flow's turn in a tin of this rate, bytes/s; 0 for unlimited.
fn turn(rate: u64) -> u32 {
    (if rate == 0 { TURNS.1 } else { (rate >> 12).clamp(TURNS.0, TURNS.1) }) as u32
}

/// COBALT's parameters for an RTT, on a line that sends the largest packet in `mtu_time`, ns.
fn law(rtt_ns: u64, mtu_time: u64) -> CobaltLaw {
    // tc counts both in microseconds.
    let wanted = (rtt_ns / 20_000).max(1) * 1_000;
    let target = wanted.max(mtu_time * 3 / 2);
    let interval = (rtt_ns + target - wanted).max(2 * target);
    CobaltLaw { target, interval, mtu_time }
}

impl CakeParams {
    /// The numbers of each tin that follow from the parameters, in the order of `tc -s qdisc show`.
    /// `mtu` is the largest packet as the discipline counts bytes.
    pub fn tin_numbers(&self, mtu: u32) -> Vec<TinNumbers> {
        let shares = self.tins.shares(self.bandwidth.unwrap_or(0) / 8);
        let numbers = |(name, at): (&'static str, usize)| {
            let tin = Tin::new(self, shares[at], mtu);
            TinNumbers {
                name,
                threshold: Rate(shares[at].0 * 8),
                target: Span(tin.law.target),
                interval: Span(tin.law.interval),
                quantum: tin.flows.quantum,
            }
        };
        self.tins.shown().into_iter().map(numbers).collect()
    }

    /// The memory that all queues together may take, bytes.
    pub fn memory(&self, mtu: u32) -> u64 {
        memory_limit(self, self.bandwidth.unwrap_or(0) / 8, mtu)
    }
}

/// The memory for all queues, bytes; `rate` is in bytes/s.
fn memory_limit(params: &CakeParams, rate: u64, mtu: u32) -> u64 {
    let given = params.memlimit.unwrap_or(0);
    let most = (LIMIT * u64::from(mtu)).max(given);
    let wanted = match (given, rate) {
        (0, 0) => u64::MAX,
        (0, rate) => {
            let four = u128::from(rate) * u128::from(params.rtt_ns / 1_000) * 4 / 1_000_000;
            u64::try_from(four).unwrap_or(u64::MAX).max(LEAST_MEMORY)
        }
        _ => given,
    };
    wanted.min(most)
}

/// The hashes of a packet's source and destination; 0 if the isolation does not use them.
fn hash_hosts<B: Body>(by: Isolation, known: &Hosts, key: u64, packet: &Packet<B>) -> [u32; 2] {
    let by = by.hosts();
    if !by.contains(&true) {
        return [0; 2];
    }
    let known = known.get(packet.flow as usize).copied();
    let hosts = known.unwrap_or_else(|| packet.body.hosts(packet.flow));
    [0, 1].map(|kind| if by[kind] { crate::hash(hosts[kind].into(), !key) } else { 0 })
}

/// Linux's cake.
pub struct Cake<B> {
    tins: Vec<Tin>,
    by_codepoint: [u8; 64],
    isolation: Isolation,
    wash: bool,
    ingress: bool,
    sizes: Sizes,
    header_bytes: u32,
    /// The largest packet of the link, bytes.
    mtu: u32,
    pace: Pace,
    /// The times at which the shaper releases the next packet, by its clock and at the latest, ns.
    next: u64,
    failsafe: u64,
    /// Without a rate: the tin whose turn it is.
    current: usize,
    slab: Slab<B>,
    total: Backlog,
    /// The number of queues with packets.
    active: u32,
    memory: u64,
    memory_limit: u64,
    heap: Heap,
    key: u64,
    rng: Rng,
    /// The hosts of each flow, if known. Otherwise a packet's body gives its hosts.
    hosts: Hosts,
    acks: Option<Box<AckFilter>>,
    /// In a replay: the draws that the recording shows.
    followed: Option<Box<Followed>>,
}

impl<B: Body> Cake<B> {
    /// An empty queue.
    pub fn new(params: &CakeParams, mut context: Context) -> Self {
        let rate = params.bandwidth.unwrap_or(0) / 8;
        let tin = |share| Tin::new(params, share, context.mtu);
        Cake {
            tins: params.tins.shares(rate).into_iter().map(tin).collect(),
            by_codepoint: params.tins.by_codepoint(),
            isolation: params.isolation,
            wash: params.wash,
            ingress: params.ingress,
            sizes: Sizes::new(params, context.header_bytes),
            header_bytes: context.header_bytes,
            mtu: context.mtu,
            pace: Pace::new(rate),
            next: 0,
            failsafe: 0,
            current: 0,
            slab: Slab::default(),
            total: Backlog::default(),
            active: 0,
            memory: 0,
            memory_limit: memory_limit(params, rate, context.mtu),
            heap: Heap::default(),
            key: context.rng.next_u64(),
            rng: context.rng,
            hosts: Hosts::default(),
            acks: AckFilter::new(params.acks),
            followed: None,
        }
    }

    /// Sets the parameters (cake_change, cake_reconfigure). Packets, flows and clocks stay as they
    /// are: what has been charged at the former rate is still due. Tins, isolation, line and ACK
    /// filter must not change.
    pub(crate) fn change(&mut self, params: &CakeParams) {
        let rate = params.bandwidth.unwrap_or(0) / 8;
        for (tin, (rate, _)) in self.tins.iter_mut().zip(params.tins.shares(rate)) {
            tin.pace = Pace::new(rate);
            tin.law = law(params.rtt_ns, tin.pace.time(self.mtu));
            tin.flows.quantum = turn(rate);
        }
        self.pace = Pace::new(rate);
        self.memory_limit = memory_limit(params, rate, self.mtu);
        (self.wash, self.ingress) = (params.wash, params.ingress);
    }

    /// For replays in which every packet has a place in the recorded order
    /// (`ReplayHints::recorded_place`). `unlikely` is the list in `ReplayDraws`.
    pub fn follow(&mut self, unlikely: Vec<u64>) {
        let mut followed = Followed::default();
        followed.replay_draws.unlikely = unlikely;
        self.followed = Some(Box::new(followed));
    }

    /// The queue of a packet.
    #[inline]
    fn queue(&mut self, tin: usize, packet: &Packet<B>) -> usize {
        let flows = &mut self.tins[tin].flows;
        let hosts = || hash_hosts(self.isolation, &self.hosts, self.key, packet);
        if self.isolation.flows() {
            return flows.queue(packet.body.hash(packet.flow, self.key), hosts);
        }
        let hosts = hosts();
        flows.queue(hosts[0] ^ hosts[1], || hosts)
    }

    fn truesize(&self, packet: &Packet<B>) -> u64 {
        packet.body.truesize(packet.size - self.header_bytes)
    }

    /// Sets to `now` the clocks that stopped while no packet was queued.
    #[inline]
    fn catch_up(&mut self, tin: usize, now: u64) {
        if self.tins[tin].packets > 0 {
            return;
        }
        self.tins[tin].next = self.tins[tin].next.max(now);
        if self.total.packets == 0 && self.next < now {
            (self.next, self.failsafe) = (now, now);
        }
    }

    #[inline]
    fn push(&mut self, tin: usize, index: usize, packet: Packet<B>) {
        let size = packet.size;
        self.memory += self.truesize(&packet);
        let place = self.slab.insert(packet);
        let flow = self.tins[tin].flows.at_mut(index);
        if flow.head == NONE {
            flow.head = place;
            self.active += 1;
        } else {
            self.slab.link(flow.tail, place);
        }
        flow.tail = place;
        flow.bytes += size;
        self.tins[tin].packets += 1;
        self.total.packets += 1;
        self.total.bytes += u64::from(size);
        if self.heap.is_in_order() {
            self.heap.grew((tin as u8, index as u16), &self.tins);
        }
    }

    #[inline]
    fn pop(&mut self, tin: usize, index: usize) -> Option<Packet<B>> {
        let flow = self.tins[tin].flows.at_mut(index);
        if flow.head == NONE {
            return None;
        }
        let (packet, next) = self.slab.remove(flow.head);
        flow.head = next;
        flow.bytes -= packet.size;
        if next == NONE {
            self.active -= 1;
        }
        self.tins[tin].packets -= 1;
        self.total.packets -= 1;
        self.total.bytes -= u64::from(packet.size);
        self.memory -= self.truesize(&packet);
        if self.heap.is_in_order() {
            self.heap.shrank((tin as u8, index as u16), &self.tins);
        }
        Some(packet)
    }

    /// Drops an ACK that the newcomer at the queue's tail has made unnecessary, if there is one.
    #[cold]
    fn filter_acks(&mut self, tin: usize, index: usize, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        let Some(filter) = &mut self.acks else { return };
        let flow = self.tins[tin].flows.at_mut(index);
        let Some((place, before)) = filter.arrived(&self.slab, flow.head, flow.tail) else {
            return;
        };
        let (packet, behind) = self.slab.remove(place);
        if before == NONE {
            flow.head = behind;
        } else {
            self.slab.link(before, behind);
        }
        flow.bytes -= packet.size;
        self.tins[tin].packets -= 1;
        self.total.packets -= 1;
        self.total.bytes -= u64::from(packet.size);
        self.memory -= self.truesize(&packet);
        if self.heap.is_in_order() {
            self.heap.shrank((tin as u8, index as u16), &self.tins);
        }
        if self.ingress {
            self.charge(tin, self.sizes.adjusted(packet.size), now, true);
        }
        verdicts.push(Verdict::Dropped(packet, Cause::AckFilter));
    }

    /// Memory is exhausted: the longest queue drops its oldest packet. The heap may return an empty
    /// queue (`heap`). Then nothing is dropped, and the heap is rebuilt the next time.
    #[cold]
    fn drop_from_longest(&mut self, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        let (tin, index) = self.heap.longest(&self.tins);
        let (tin, index) = (usize::from(tin), usize::from(index));
        let Some(packet) = self.pop(tin, index) else {
            self.heap.forget();
            return;
        };
        let law = self.tins[tin].law;
        law.overflowed(&mut self.tins[tin].flows.at_mut(index).signals, now);
        if self.ingress {
            self.charge(tin, self.sizes.adjusted(packet.size), now, true);
        }
        verdicts.push(Verdict::Dropped(packet, Cause::Overmemory));
    }

    /// Charges bytes to the shaper's clocks.
    #[inline]
    fn charge(&mut self, tin: usize, bytes: u32, now: Time, dropped: bool) {
        if self.pace.is_unlimited() {
            return;
        }
        self.tins[tin].charge(bytes, now.0);
        let span = self.pace.time(bytes);
        self.next += span;
        if !dropped {
            self.failsafe += span + span / 2;
        }
    }

    /// Charges a packet to the shaper's clocks and to the deficits of its flow and tin.
    #[inline]
    fn spend(&mut self, (tin, index): (usize, usize), size: u32, now: Time, dropped: bool) {
        let bytes = self.sizes.adjusted(size);
        self.charge(tin, bytes, now, dropped);
        let tin = &mut self.tins[tin];
        tin.deficit -= i64::from(bytes);
        tin.flows.at_mut(index).deficit -= bytes as i32;
    }

    /// The tin to serve now, among those with flows in turn.
    #[inline]
    fn choose_tin(&mut self, now: Time) -> usize {
        if self.tins.len() == 1 {
            0
        } else if self.pace.is_unlimited() {
            self.tin_by_turn()
        } else {
            self.tin_by_time(now.0)
        }
    }

    /// The highest tin that is within its rate, otherwise the tin that will be soonest; the higher
    /// of equals.
    fn tin_by_time(&self, now: u64) -> usize {
        let in_turn = |(_, tin): &(usize, &Tin)| tin.flows.in_turn();
        let mut best = (0, u64::MAX);
        for (index, tin) in self.tins.iter().enumerate().filter(in_turn) {
            let wait = tin.next.saturating_sub(now);
            if wait <= best.1 {
                best = (index, wait);
            }
        }
        best.0
    }

    /// The next tin by deficit round robin.
    fn tin_by_turn(&mut self) -> usize {
        loop {
            let tin = &mut self.tins[self.current];
            if tin.deficit >= 0 && tin.flows.in_turn() {
                return self.current;
            }
            if tin.deficit <= 0 {
                tin.deficit += i64::from(tin.quantum);
            }
            self.current = (self.current + 1) % self.tins.len();
        }
    }

    /// The queue of a tin whose turn it is.
    #[inline]
    fn next_queue(&mut self, tin: usize, first: bool) -> Option<usize> {
        if self.followed.is_some() {
            return self.next_recorded(tin, first);
        }
        self.tins[tin].flows.next(first, &mut self.rng)
    }

    #[cold]
    fn next_recorded(&mut self, tin: usize, first: bool) -> Option<usize> {
        let flows = &self.tins[tin].flows;
        let heads = (0..QUEUES).map(|index| (flows.at(index).head, index));
        let mut places: Vec<_> = heads
            .filter(|(head, _)| *head != NONE)
            .map(|(head, index)| (self.slab.get(head).body.recorded_place(), index))
            .collect();
        places.sort_unstable();
        // If two packets were dropped at one instant, their order is unknown.
        let next = match places[..] {
            [(first, index), (second, _), ..] if first < second => Some(index),
            _ => None,
        };
        let followed = self.followed.as_mut().expect("this is a replay");
        let mut draws = Following { followed, tin, next };
        self.tins[tin].flows.next(first, &mut draws)
    }

    /// A packet has arrived in a queue.
    #[inline]
    fn arrived(&mut self, tin: usize, index: usize) {
        let flows = &mut self.tins[tin].flows;
        match &mut self.followed {
            None => flows.arrived(index, &mut self.rng),
            Some(followed) => {
                flows.arrived(index, &mut Following { followed, tin, next: None });
            }
        }
    }

    /// The next packet of a tin. `None`: the queue whose turn it was is empty. If `first` is set, a
    /// decaying queue is examined first, once.
    #[inline]
    fn serve(
        &mut self,
        tin: usize,
        first: &mut bool,
        now: Time,
        verdicts: &mut Vec<Verdict<B>>,
    ) -> Option<Packet<B>> {
        loop {
            let index = self.next_queue(tin, std::mem::take(first))?;
            loop {
                let Some(mut packet) = self.pop(tin, index) else {
                    self.found_empty(tin, index, now);
                    return None;
                };
                match self.decide(tin, index, &mut packet, now, verdicts) {
                    None => {
                        self.spend((tin, index), packet.size, now, false);
                        self.heap.packet_left();
                        return Some(packet);
                    }
                    Some(cause) => {
                        let size = packet.size;
                        verdicts.push(Verdict::Dropped(packet, cause));
                        if self.ingress {
                            self.spend((tin, index), size, now, true);
                            break;
                        }
                    }
                }
            }
        }
    }

    /// COBALT's decision on a packet that has been removed from its queue: the cause of a drop, or
    /// `None` if the packet leaves, marked or not.
    #[inline]
    fn decide(
        &mut self,
        tin: usize,
        index: usize,
        packet: &mut Packet<B>,
        now: Time,
        verdicts: &mut Vec<Verdict<B>>,
    ) -> Option<Cause> {
        let Tin { law, flows, .. } = &mut self.tins[tin];
        let others = if self.ingress { u64::from(flows.bulk) } else { 0 };
        let times = (now.since(packet.enqueued).0, 2 * law.mtu_time * others);
        let flow = flows.at_mut(index);
        let can_mark = packet.ds.ecn() != Ecn::NotEct;
        // BLUE's outcome can't be seen for a queue's last packet, which is sent anyway.
        let hint = packet.body.replay_hint().filter(|_| flow.head != NONE);
        let mut blue = Blue {
            rng: &mut self.rng,
            recorded_draw: hint.map(|hint| hint == ReplayHint::Dropped),
        };
        let decision = law.decide(&mut flow.signals, times, can_mark, now, &mut blue);
        let cause = decision.drop.filter(|_| flow.head != NONE);
        if cause.is_none() {
            decision.leaves(packet, verdicts);
        }
        cause
    }

    fn found_empty(&mut self, tin: usize, index: usize, now: Time) {
        let Tin { law, flows, .. } = &mut self.tins[tin];
        let signals = &mut flows.at_mut(index).signals;
        law.found_empty(signals, now);
        let decays = !signals.at_rest(now);
        flows.found_empty(index, decays);
    }
}

impl<B: Body> Qdisc<B> for Cake<B> {
    #[inline]
    fn enqueue(&mut self, mut packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        let tin = usize::from(self.by_codepoint[usize::from(packet.ds.dscp())]);
        let index = self.queue(tin, &packet);
        if self.wash {
            packet.ds = DsField(packet.ds.0 & 0b11);
        }
        packet.enqueued = now;
        self.catch_up(tin, now.0);
        self.push(tin, index, packet);
        if self.acks.is_some() {
            self.filter_acks(tin, index, now, verdicts);
        }
        self.arrived(tin, index);
        while self.memory > self.memory_limit {
            self.drop_from_longest(now, verdicts);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        let mut first = true;
        while self.total.packets > 0 && self.next.min(self.failsafe) <= now.0 {
            let tin = self.choose_tin(now);
            if let Some(packet) = self.serve(tin, &mut first, now, verdicts) {
                return Some(packet);
            }
        }
        None
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.total
    }

    fn holds_until(&self) -> Option<Time> {
        (!self.pace.is_unlimited()).then(|| Time(self.next.min(self.failsafe)))
    }

    fn sees_acks(&self) -> bool {
        self.acks.is_some()
    }

    fn sees(&mut self, ack: AckView) {
        if let Some(filter) = &mut self.acks {
            filter.coming = Some(ack);
        }
    }

    fn hosts(&mut self) -> Option<&mut Hosts> {
        let asks = self.isolation.hosts().contains(&true);
        asks.then_some(&mut self.hosts)
    }

    fn state(&self, _now: Time) -> State {
        State {
            limit: Some(self.memory_limit as f64),
            flows: Some(f64::from(self.active)),
            ..State::default()
        }
    }
}

impl<B: Body> Replayable for Cake<B> {
    fn replay_draws(&mut self) -> Option<&mut ReplayDraws> {
        self.followed.as_mut().map(|followed| &mut followed.replay_draws)
    }
}
