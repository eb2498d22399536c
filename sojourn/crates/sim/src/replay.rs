//! Replays recorded arrivals through one link: no hosts, no windows, the packets arrive at their
//! recorded times.
//!
//! The link's decision on each packet is recorded. The caller compares it with the decision of
//! another queue on the same packets: a queue of the Linux kernel, recorded before and after it.
//!
//! The order of events at one instant matters: a packet that arrives as another leaves may find
//! room or none. The simulator lets the leaving packet go first. If the recording has another order
//! (`Arrival::after`), the arriving packet is enqueued just before. A kernel is sometimes late,
//! because of other work at the same instant, and so are changes of its link's rate. So events
//! within `GRAIN` count as one instant.
//!
//! Some disciplines draw random numbers. Where the simulated discipline's law allows either
//! outcome, the discipline takes the recorded one (`Arrival::replay_hint`), and reports how likely
//! that was. Where its law allows one outcome only, the law decides. Disciplines that draw on
//! departure ask the packet for its outcome (`ReplayHints::replay_hint`). fq_codel, which hashes
//! flows, uses the recorded hash of each flow (`Arrival::hash`), so that flows share a queue if
//! they shared one in the kernel.

use std::collections::{BTreeSet, VecDeque};

use link::{Link, Log};
use qdisc::{
    Backlog, Body, Cause, Discipline, DrawOutcome, DsField, Hosts, Packet, Qdisc, ReplayHint,
    ReplayHints, Verdict,
};
use units::{Span, Time};

use crate::scenario::LinkSpec;

/// A packet that arrives at the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The time of arrival.
    pub at: Time,
    /// One direction of a five-tuple.
    pub flow: u32,
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// Its DS field.
    pub ds: DsField,
    /// The number of packets that the recorded queue had sent before, if known: it decides the
    /// order at one instant.
    pub after: Option<u64>,
    /// The recorded outcome; `None`: our draws decide.
    pub replay_hint: Option<ReplayHint>,
    /// The kernel's hash of its flow (skb_get_hash); `None`: not recorded. For disciplines that
    /// hash flows only.
    pub hash: Option<u32>,
    /// Bytes of the kernel's memory that it took; `None`: those of a datagram of its size. For
    /// fq_codel and cake.
    pub truesize: Option<u32>,
    /// The number of packets that the recorded queue had sent before it sent or dropped this one;
    /// `u64::MAX`: it still queues this one.
    pub place: Option<u64>,
    /// The numbers of its source and its destination host; `None`: unknown, so each flow has its
    /// own hosts.
    pub hosts: Option<[u32; 2]>,
}

impl Arrival {
    /// The packet, which is enqueued at `at`.
    fn packet(&self, index: u32, at: Time) -> Packet<Recorded> {
        let Arrival { flow, bytes: size, ds, hash, truesize, replay_hint, place, hosts, .. } =
            *self;
        // A drop happens before the next packet is sent.
        let sent = u64::from(replay_hint != Some(ReplayHint::Dropped));
        let place = place.map(|place| place.saturating_mul(2).saturating_add(sent));
        let body = Recorded { index, hash, truesize, replay_hint, place, hosts };
        Packet { enqueued: at, flow, size, ds, body }
    }
}

/// Packets in the order in which a recorded queue sent them.
fn as_recorded(arrivals: &[Arrival]) -> Vec<Packet<Recorded>> {
    let sent =
        |arrival: &&Arrival| arrival.replay_hint.is_some_and(|hint| hint != ReplayHint::Dropped);
    let mut sent: Vec<&Arrival> = arrivals.iter().filter(sent).collect();
    sent.retain(|arrival| arrival.place.is_some_and(|place| place < u64::MAX));
    sent.sort_by_key(|arrival| arrival.place);
    sent.iter().map(|arrival| arrival.packet(0, arrival.at)).collect()
}

/// The fields of a packet that only the replayed link uses.
#[derive(Clone, Copy)]
struct Recorded {
    /// Its index among the arrivals.
    index: u32,
    hash: Option<u32>,
    truesize: Option<u32>,
    replay_hint: Option<ReplayHint>,
    place: Option<u64>,
    hosts: Option<[u32; 2]>,
}

impl Body for Recorded {
    fn truesize(&self, ip_bytes: u32) -> u64 {
        self.truesize.map_or_else(|| ().truesize(ip_bytes), u64::from)
    }

    fn hash(&self, flow: u32, key: u64) -> u32 {
        self.hash.unwrap_or_else(|| ().hash(flow, key))
    }

    fn hosts(&self, flow: u32) -> [u32; 2] {
        self.hosts.unwrap_or([!flow, !(flow ^ 1)])
    }
}

impl ReplayHints for Recorded {
    fn replay_hint(&self) -> Option<ReplayHint> {
        self.replay_hint
    }

    fn recorded_place(&self) -> Option<u64> {
        self.place
    }
}

/// Recorded events within this time count as one instant.
const GRAIN: Span = Span::from_micros(2);

/// The result for a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// The time at which it was sent or dropped; `Time::NEVER`: it still waits.
    pub at: Time,
    /// Its place in the order in which packets were sent or dropped, from 0.
    pub order: u64,
    /// Whether it was dropped on arrival.
    pub refused: bool,
    /// Whether and why it was dropped or marked; `None`: neither.
    pub action: Option<(Action, Cause)>,
    /// Its DS field on arrival.
    ds: DsField,
    /// The backlog that it found.
    pub backlog: Backlog,
    /// On arrival the discipline's average (RED: bytes), or its probability; on departure its count
    /// (CoDel); NaN without any of these.
    pub state: f64,
    /// If the discipline draws random numbers: the probability that it drops or marks this packet,
    /// given that all packets since the last drop or mark passed. NaN for other disciplines.
    pub chance: f64,
    /// Whether the draw was a drop or mark; `None`: the recording decided.
    pub drew: Option<bool>,
}

/// The action on a packet that does not simply pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It was dropped.
    Dropped,
    /// It was marked, and passed.
    Marked,
}

/// The result of a replay.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The decision on each arrival, in their order.
    pub decisions: Vec<Decision>,
    /// For each draw that the recording does not show: the number of packets sent before the draw.
    pub unseen: Vec<u64>,
}

/// Replays arrivals, which are in order of time, until the last packet has left. `unlikely` lists
/// the unseen draws, by their index in `Replayed::unseen`, that had their less likely outcome.
pub fn replay(spec: &LinkSpec, seed: u64, arrivals: &[Arrival], unlikely: &[u64]) -> Replayed {
    let mut link = make_link(spec, seed, arrivals);
    if let Discipline::Cake(cake) = link.qdisc_mut()
        && arrivals.iter().all(|arrival| arrival.place.is_some())
    {
        cake.follow(unlikely.to_vec());
    }
    let mut run = Replay {
        link,
        log: Log::default(),
        decisions: Vec::with_capacity(arrivals.len()),
        marks: VecDeque::new(),
        left: 0,
        sent: 0,
        now: Time::ZERO,
        leaving: Vec::new(),
        arriving: None,
        unseen: Vec::new(),
        recorded: as_recorded(arrivals),
    };
    for (index, arrival) in arrivals.iter().enumerate() {
        let at = run.up_to(arrival);
        run.arrive(index as u32, at, arrival);
    }
    while let Some(next) = run.next_event() {
        run.change_qdisc(next);
        // The change may have dropped the packets that the event was for.
        if let Some(next) = run.next_event() {
            run.advance(next);
        }
    }
    Replayed { decisions: run.decisions, unseen: run.unseen }
}

/// Without recorded hashes it is unknown which flows shared a queue. Few flows share one, so the
/// replay uses a seed with which none do. sfq's hash has its own key, so no recording has it.
fn make_link(spec: &LinkSpec, seed: u64, arrivals: &[Arrival]) -> Link<Recorded> {
    const TRIES: u64 = 1000;
    let link = crate::make_link(spec, seed, Hosts::default);
    let keyed = matches!(link.qdisc(), Discipline::Sfq(_));
    if !keyed && arrivals.iter().all(|arrival| arrival.hash.is_some()) {
        return link;
    }
    let unknown = Recorded {
        index: 0,
        hash: None,
        truesize: None,
        replay_hint: None,
        place: None,
        hosts: None,
    };
    let flows: BTreeSet<u32> = arrivals.iter().map(|arrival| arrival.flow).collect();
    let flows: Vec<u32> = flows.into_iter().collect();
    let free = (seed..seed.saturating_add(TRIES))
        .map(|seed| crate::make_link(spec, seed, Hosts::default))
        .find(|link| !match link.qdisc() {
            Discipline::FqCodel(queue) => queue.any_share_a_queue(&flows, &unknown),
            Discipline::FqPie(queue) => queue.any_share_a_queue(&flows, &unknown),
            Discipline::Sfq(queue) => queue.any_share_a_queue(&flows, &unknown),
            _ => false,
        });
    free.unwrap_or(link)
}

struct Replay {
    link: Link<Recorded>,
    log: Log<Recorded>,
    decisions: Vec<Decision>,
    /// Causes of marks whose packets have not left: packets leave in the order of their marks.
    marks: VecDeque<Cause>,
    left: u64,
    sent: u64,
    /// The time of the last departure.
    now: Time,
    /// The outcomes of draws for hinted packets that leave.
    leaving: Vec<DrawOutcome>,
    /// The same for the packet that arrived, if the discipline decides on arrival.
    arriving: Option<DrawOutcome>,
    /// As in `Replayed`.
    unseen: Vec<u64>,
    /// The packets that the recorded queue sent, in order.
    recorded: Vec<Packet<Recorded>>,
}

/// The outcome of the next packet that left, among dropped packets or among the others.
fn next_of(leaving: &mut Vec<DrawOutcome>, dropped: bool) -> Option<DrawOutcome> {
    let next = leaving.iter().position(|judged| judged.dropped == dropped)?;
    Some(leaving.remove(next))
}

impl Decision {
    fn draw(&mut self, judged: Option<DrawOutcome>) {
        if let Some(DrawOutcome { chance, drew, .. }) = judged {
            (self.chance, self.drew) = (chance, Some(drew));
        }
    }
}

impl Replay {
    fn next_event(&self) -> Option<Time> {
        self.link.next_event().filter(|next| *next < Time::NEVER)
    }

    /// Runs the link's events before each change of its discipline's parameters up to `at`, and the
    /// change.
    fn change_qdisc(&mut self, at: Time) {
        while self.link.next_qdisc_step() <= at {
            let step = self.link.next_qdisc_step();
            while let Some(next) = self.next_event().filter(|next| *next < step) {
                self.advance(next);
            }
            self.link.change_qdisc(step, &mut self.log);
            self.now = self.now.max(step);
            self.note(step);
        }
    }

    /// Runs the link's next event, at `next`, and records its results.
    fn advance(&mut self, next: Time) {
        self.link.advance(next, &mut self.log);
        self.now = self.now.max(next);
        self.note(next);
    }

    /// Runs all events before an arrival; returns the time at which to enqueue it.
    fn up_to(&mut self, arrival: &Arrival) -> Time {
        self.change_qdisc(arrival.at);
        while let Some(next) = self.next_event().filter(|next| *next <= arrival.at) {
            if arrival.after == Some(self.sent) && arrival.at.since(next) <= GRAIN {
                return Time(next.0 - 1);
            }
            self.advance(next);
        }
        let mut at = arrival.at.max(self.now);
        while let Some(next) = self.next_event().filter(|next| next.since(arrival.at) <= GRAIN)
            && arrival.after.is_some_and(|after| self.sent < after)
        {
            self.advance(next);
            at = next;
        }
        at
    }

    fn arrive(&mut self, index: u32, at: Time, arrival: &Arrival) {
        let backlog = self.link.backlog();
        self.decisions.push(Decision {
            at: Time::NEVER,
            order: u64::MAX,
            refused: false,
            action: None,
            ds: arrival.ds,
            backlog,
            state: f64::NAN,
            chance: f64::NAN,
            drew: None,
        });
        let packet = arrival.packet(index, at);
        if let Some(replay_hint) = arrival.replay_hint
            && let Some(discipline) = self.link.qdisc_mut().replayable()
        {
            discipline.set_recorded_draw(replay_hint != ReplayHint::Passed);
        }
        let is_freed = self.next_event().is_some_and(|next| next <= arrival.at + GRAIN)
            && arrival.after == Some(self.sent);
        self.link.send(packet, at, &mut self.log);
        if let (true, Discipline::Mq(mq)) = (is_freed, self.link.qdisc_mut())
            && let Some(next) = self.recorded.get(self.sent as usize)
        {
            mq.arrived_while_sending(next);
        }
        self.note(at);
        let state = self.link.qdisc().state(at);
        let chance = self.link.qdisc_mut().replayable().and_then(|replayed| replayed.chance());
        let decision = &mut self.decisions[index as usize];
        decision.refused = matches!(decision.action, Some((Action::Dropped, _)));
        decision.state = state.average.or(state.probability).unwrap_or(decision.state);
        if let Some(chance) = chance.filter(|_| arrival.replay_hint.is_some()) {
            decision.chance = chance;
        }
        decision.draw(self.arriving.take());
    }

    /// Records the new events: drops and marks before departures.
    fn note(&mut self, now: Time) {
        let count = self.link.qdisc().state(now).count;
        if let Some(replay_draws) =
            self.link.qdisc_mut().replayable().and_then(|replayed| replayed.replay_draws())
        {
            if replay_draws.at_arrival {
                self.arriving = replay_draws.decided.drain(..).next_back();
            }
            self.leaving.append(&mut replay_draws.decided);
            self.unseen.resize(replay_draws.unseen as usize, self.sent);
        }
        for (verdict, at) in self.log.verdicts.drain(..) {
            match verdict {
                Verdict::Dropped(packet, cause) => {
                    let drawn = cause == Cause::Early;
                    let judged = drawn.then(|| next_of(&mut self.leaving, true)).flatten();
                    let decision = &mut self.decisions[packet.body.index as usize];
                    (decision.at, decision.order) = (at, self.left);
                    decision.state = count.unwrap_or(decision.state);
                    decision.action = Some((Action::Dropped, cause));
                    decision.draw(judged);
                    self.left += 1;
                }
                Verdict::Marked { cause, .. } => self.marks.push_back(cause),
            }
        }
        for departure in self.log.departures.drain(..) {
            let judged = next_of(&mut self.leaving, false);
            let decision = &mut self.decisions[departure.packet.body.index as usize];
            (decision.at, decision.order) = (departure.dequeued, self.left);
            decision.state = count.unwrap_or(decision.state);
            decision.draw(judged);
            self.left += 1;
            self.sent += 1;
            // cake's `wash` changes the codepoint.
            if departure.packet.ds.ecn() != decision.ds.ecn() {
                let cause = self.marks.pop_front().expect("the mark was reported before");
                decision.action = Some((Action::Marked, cause));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const MS: u64 = 1_000_000;

    fn replay(spec: &LinkSpec, seed: u64, arrivals: &[Arrival]) -> Vec<Decision> {
        super::replay(spec, seed, arrivals, &[]).decisions
    }

    /// A link on which a full packet takes 1 ms.
    fn link(qdisc: Value) -> LinkSpec {
        serde_json::from_value(json!({
            "name": "down", "rate": [{"at_ns": 0, "bps": 12_000_000}], "rate_period_ns": null, "delay_ns": 0,
            "qdisc": qdisc, "loss": {"law": "none"}, "ring": null, "shaper": null, "sampled": true,
            "framing": {"header_bytes": 0, "overhead_bytes": 0, "minimum_bytes": 0, "cells": "none"},
        }))
        .unwrap()
    }

    fn at(ns: u64) -> Arrival {
        Arrival {
            at: Time(ns),
            flow: 1,
            bytes: 1500,
            ds: DsField::BEST_EFFORT,
            after: None,
            replay_hint: None,
            hash: None,
            truesize: None,
            place: None,
            hosts: None,
        }
    }

    #[test]
    fn each_packet_leaves_in_its_turn_or_is_refused() {
        let decisions =
            replay(&link(json!({"kind": "pfifo", "limit": 1})), 1, &[at(0), at(0), at(0), at(MS)]);
        let times: Vec<u64> = decisions.iter().map(|d| d.at.0).collect();
        assert_eq!(times, [0, MS, 0, 2 * MS]);
        assert_eq!(
            decisions.iter().map(|d| d.refused).collect::<Vec<_>>(),
            [false, false, true, false]
        );
        assert_eq!(decisions[2].action, Some((Action::Dropped, Cause::Limit)));
        assert_eq!(decisions.iter().map(|d| d.order).collect::<Vec<_>>(), [0, 2, 1, 3]);
        assert_eq!(decisions.iter().map(|d| d.backlog.packets).collect::<Vec<_>>(), [0, 0, 1, 0]);
    }

    #[test]
    fn a_cleared_codepoint_does_not_count_as_a_mark() {
        let cake = link(json!({
            "kind": "cake", "bandwidth": 6_000_000, "rtt_ns": 100_000_000, "memlimit": null, "tins": "besteffort",
            "isolation": "flows", "acks": "no-ack-filter", "wash": true, "ingress": false, "raw": true, "overhead": 0, "mpu": 0, "cells": "noatm",
        }));
        let marked = Arrival { ds: DsField(46 << 2), ..at(0) };
        let decisions = replay(&cake, 1, &[marked, marked]);
        // cake's nanoseconds per byte are rounded down.
        let actual: Vec<_> = decisions.iter().map(|d| (d.at.0, d.action)).collect();
        assert_eq!(actual, [(0, None), (2 * MS - 1, None)]);
    }

    #[test]
    fn at_one_instant_events_have_the_recording_s_order() {
        let pfifo = link(json!({"kind": "pfifo", "limit": 1}));
        let cases = [
            (2, 0, false),
            (1, 0, true),
            (1, 900, true),
            (1, 3000, false),
            (2, -900, false),
            (1, -900, true),
            (2, -3000, true),
        ];
        for (after, late, refused) in cases {
            let last = Arrival { after: Some(after), ..at(MS.checked_add_signed(late).unwrap()) };
            let decisions = replay(&pfifo, 1, &[at(0), at(0), last]);
            assert_eq!(decisions[2].refused, refused, "after {after}, {late} ns late");
        }
    }

    #[test]
    fn a_waiting_packet_is_dropped_at_the_next_departure_and_a_mark_is_matched_by_its_packet() {
        let ecn = |ds| Arrival { ds: DsField(ds), ..at(0) };
        let arrivals: Vec<Arrival> = (0..400).map(|i| ecn(if i < 200 { 0 } else { 2 })).collect();
        let codel = json!({
            "kind": "codel", "variant": "linux", "limit": 1000, "target_ns": 5 * MS, "interval_ns": 100 * MS,
            "ecn": true, "ce_threshold_ns": null,
        });
        let decisions = replay(&link(codel), 1, &arrivals);
        let (plain, ect) = decisions.split_at(200);
        let dropped = |d: &&Decision| matches!(d.action, Some((Action::Dropped, Cause::Target)));
        let marked = |d: &&Decision| matches!(d.action, Some((Action::Marked, Cause::Target)));
        assert!(plain.iter().any(|d| dropped(&d)) && !plain.iter().any(|d| marked(&d)));
        assert!(ect.iter().any(|d| marked(&d)) && !ect.iter().any(|d| dropped(&d)));
        for pair in decisions.windows(2).filter(|pair| dropped(&&pair[0])) {
            assert_eq!((pair[0].at, pair[0].order + 1), (pair[1].at, pair[1].order));
            assert!(!pair[0].refused);
        }
    }

    #[test]
    fn red_follows_the_recorded_draw_where_its_law_permits_either() {
        let red = link(json!({
            "kind": "red", "variant": "linux", "limit": 400_000, "min": 15_000, "max": 45_000, "avpkt": 1000,
            "burst": 20, "probability": 0.1, "bandwidth": 12_000_000, "adaptive": false, "ecn": false,
            "harddrop": false, "nodrop": false,
        }));
        // Two packets each ms: the queue grows forever.
        let arrivals = |early: fn(u64) -> bool| -> Vec<Arrival> {
            let hint = |i| if early(i) { ReplayHint::Dropped } else { ReplayHint::Passed };
            (0..400).map(|i| Arrival { replay_hint: Some(hint(i)), ..at(i * MS / 2) }).collect()
        };
        let never = replay(&red, 1, &arrivals(|_| false));
        let first = never.iter().position(|d| d.refused).unwrap();
        assert!(
            never[..first].iter().any(|d| d.chance > 0.0)
                && never[..first].iter().all(|d| d.chance < 1.0)
        );
        assert_eq!(
            never[first].chance, 1.0,
            "above max, or with the count too high, the packet is always dropped"
        );
        let always = replay(&red, 1, &arrivals(|_| true));
        for decision in &always {
            assert_eq!(decision.refused, decision.chance > 0.0, "below min no packet is dropped");
        }
    }

    fn fq_codel(flows: u32, memory_limit: u32) -> LinkSpec {
        link(json!({
            "kind": "fq_codel", "variant": "linux", "limit": 1000, "flows": flows, "memory_limit": memory_limit,
            "target_ns": 5 * MS, "interval_ns": 100 * MS, "quantum": 1514, "ecn": false, "ce_threshold_ns": null,
            "drop_batch": 64,
        }))
    }

    #[test]
    fn flows_of_a_recording_without_hashes_do_not_collide() {
        let spec = fq_codel(16, 1 << 25);
        for seed in 0..20 {
            let arrivals: Vec<Arrival> = (0..6).map(|flow| Arrival { flow, ..at(0) }).collect();
            let link = make_link(&spec, seed, &arrivals);
            let Discipline::FqCodel(queue) = link.qdisc() else {
                panic!("the spec is for fq_codel")
            };
            let unknown = Recorded {
                index: 0,
                hash: None,
                truesize: None,
                replay_hint: None,
                place: None,
                hosts: None,
            };
            assert!(!queue.any_share_a_queue(&[0, 1, 2, 3, 4, 5], &unknown));
        }
    }

    #[test]
    fn flows_share_a_queue_where_their_recorded_hashes_do() {
        // Four flows of two packets each over two queues, by the hash's first bit: queues are
        // served in turn, flows of one queue in their order.
        let order = |hashes: [u32; 4]| {
            let two = |flow: u32| Arrival { flow, hash: Some(hashes[flow as usize]), ..at(0) };
            let arrivals: Vec<Arrival> = [0, 0, 1, 1, 3, 3, 2, 2].map(two).to_vec();
            let mut left: Vec<(u64, u32)> = replay(&fq_codel(2, 1 << 25), 1, &arrivals)
                .iter()
                .zip(&arrivals)
                .map(|(decision, arrival)| (decision.order, arrival.flow))
                .collect();
            left.sort_unstable();
            left.iter().map(|pair| pair.1).collect::<Vec<_>>()
        };
        let (low, high) = (0x7fff_ffff, 0x8000_0000);
        // The first two packets bypass the queues. With two hashes one queue contains 1 1 3 3 and
        // the other 2 2, and each sends two packets a turn. With one hash all packets are in one
        // queue.
        assert_eq!(order([low, low, high, low]), [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(order([low; 4]), [0, 0, 1, 1, 3, 3, 2, 2]);
    }

    #[test]
    fn sfq_s_flows_do_not_collide_whatever_their_recorded_hashes() {
        let sfq = link(json!({
            "kind": "sfq", "limit": 127, "perturb": 0, "quantum": 1500, "divisor": 16, "flows": 16, "depth": 127,
            "redflowlimit": 0, "min": 0, "max": 0, "avpkt": 1000, "burst": 0, "probability": 0.02, "ecn": false,
            "harddrop": false, "headdrop": false,
        }));
        for seed in 0..20 {
            let two = |flow| [Arrival { flow, hash: Some(7), ..at(0) }; 2];
            let arrivals: Vec<Arrival> = (0..4).flat_map(two).collect();
            let mut left: Vec<(u64, u32)> = replay(&sfq, seed, &arrivals)
                .iter()
                .zip(&arrivals)
                .map(|(decision, arrival)| (decision.order, arrival.flow))
                .collect();
            left.sort_unstable();
            // The first packet bypasses the queues.
            let flows: Vec<u32> = left.iter().map(|pair| pair.1).collect();
            assert_eq!(flows, [0, 0, 1, 2, 3, 1, 2, 3], "seed {seed}");
        }
    }

    #[test]
    fn memory_is_what_the_recording_says_or_a_datagram_s() {
        let refused = |truesize| {
            let arrivals = [Arrival { truesize, ..at(0) }; 12];
            replay(&fq_codel(1024, 20_000), 1, &arrivals)
                .iter()
                .filter(|d| d.action.is_some())
                .count()
        };
        // One packet is sent, eleven wait: at 2280 or 2304 bytes each the limit is passed with the
        // ninth; at 2 bytes each it is never passed.
        assert!(refused(Some(2280)) > 0 && refused(None) > 0);
        assert_eq!(refused(Some(2)), 0);
    }
}
