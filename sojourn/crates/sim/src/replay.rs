//! A recorded arrival trace through one link: no hosts, no windows, the packets come when they came.
//!
//! What the link does to each packet is written down, so that it can be held against what another
//! queue did to the same packets: the Linux kernel's, recorded at both of its sides.
//!
//! What happens at one instant happens in some order, and a packet that comes as another leaves may
//! find room or none. Ours lets the other leave first. Where the recording tells otherwise
//! (`Arrival::after`) the newcomer is taken in just before. A kernel is late now and then, by what
//! it does at the same instant, and so are changes of its link's rate, so an instant is `GRAIN`
//! wide.
//!
//! Some disciplines draw. Given what the recorded queue drew (`Arrival::replay_hint`), ours does the same
//! wherever the choice is left to rng, and says how likely it was; where its law leaves no choice
//! the law decides. Those that draw as packets leave ask the packet (`ReplayHints::replay_hint`). fq_codel hashes: it is told what the recorded queue hashed each flow to
//! (`Arrival::hash`), so that flows share a queue of ours where they shared one of the kernel's.

use std::collections::{BTreeSet, VecDeque};

use link::{Link, Log};
use qdisc::{
    Backlog, Body, Cause, Discipline, DrawOutcome, DsField, Hosts, Packet, Qdisc, ReplayHint,
    ReplayHints, Verdict,
};
use units::{Span, Time};

use crate::scenario::LinkSpec;

/// A packet that comes to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Time,
    /// One direction of a five-tuple.
    pub flow: u32,
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// Its DS field.
    pub ds: DsField,
    /// How many the recorded queue had sent before it came, if that is known: it decides what came
    /// first at one instant.
    pub after: Option<u64>,
    /// What the recorded queue did to it; `None`: our rng decides.
    pub replay_hint: Option<ReplayHint>,
    /// The kernel's hash of its flow (skb_get_hash); `None`: not recorded. For queues by flow alone.
    pub hash: Option<u32>,
    /// What it took of the kernel's memory, bytes; `None`: as much as a datagram of its size.
    /// fq_codel's and cake's.
    pub truesize: Option<u32>,
    /// How many the recorded queue had sent before it let go of this one, or `u64::MAX`.
    pub place: Option<u64>,
    /// The hosts that it comes from and is for, by their numbers; `None`: not known, so hosts of its
    /// flow alone.
    pub hosts: Option<[u32; 2]>,
}

impl Arrival {
    /// The packet, which is taken in then.
    fn packet(&self, index: u32, at: Time) -> Packet<Recorded> {
        let Arrival { flow, bytes: size, ds, hash, truesize, replay_hint, place, hosts, .. } =
            *self;
        // What is dropped, is so before the next one is sent.
        let sent = u64::from(replay_hint != Some(ReplayHint::Dropped));
        let place = place.map(|place| place.saturating_mul(2).saturating_add(sent));
        let body = Recorded { index, hash, truesize, replay_hint, place, hosts };
        Packet { enqueued: at, flow, size, ds, body }
    }
}

/// Packets in the order in which a recorded queue sent them.
fn as_recorded(arrivals: &[Arrival]) -> Vec<Packet<Recorded>> {
    let sent = |one: &&Arrival| one.replay_hint.is_some_and(|it| it != ReplayHint::Dropped);
    let mut sent: Vec<&Arrival> = arrivals.iter().filter(sent).collect();
    sent.retain(|one| one.place.is_some_and(|place| place < u64::MAX));
    sent.sort_by_key(|one| one.place);
    sent.iter().map(|one| one.packet(0, one.at)).collect()
}

/// What the replayed link knows of a packet beside what queues see.
#[derive(Clone, Copy)]
struct Recorded {
    /// Its place among the arrivals.
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

/// An instant of a recording.
const GRAIN: Span = Span::from_micros(2);

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// When it left the queue, either way; `Time::NEVER`: it waits still.
    pub at: Time,
    /// Its place in the order in which packets left, from 0.
    pub order: u64,
    /// It was dropped as it came.
    pub refused: bool,
    /// Why it was dropped or marked; `None`: neither.
    pub fell: Option<(Fell, Cause)>,
    /// Its DS field as it came.
    ds: DsField,
    /// What was queued when it came.
    pub found: Backlog,
    /// When it came the discipline's average (RED: bytes), or without one its probability; when it
    /// left its count (CoDel); NaN without any.
    pub state: f64,
    /// How likely a discipline that draws was to drop or mark it, given that it had not since the
    /// last one; NaN elsewhere.
    pub chance: f64,
    /// Whether it drew so; `None`: it was dropped or marked, or not, as the recording has it.
    pub drew: Option<bool>,
}

/// What happened to a packet beside passing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fell {
    /// It was dropped.
    Dropped,
    /// It was marked, and passed.
    Marked,
}

/// What a replay found.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// What became of each arrival, in their order.
    pub decisions: Vec<Decision>,
    /// Of each draw of which the recording told nothing: how many packets had been sent.
    pub unseen: Vec<u64>,
}

/// What becomes of arrivals, which come in order of time. The wait for the last one to leave is not
/// cut off. `unlikely`: which draws that nobody could see, by their place in `Replayed::unseen`,
/// ended as was less likely.
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
        run.advance(next);
    }
    Replayed { decisions: run.decisions, unseen: run.unseen }
}

/// Where the recording lacks hashes, which flows shared a queue is unknown. Few do, so none of ours
/// is to. sfq's hash has a key of its own, so that no recording has it.
fn make_link(spec: &LinkSpec, seed: u64, arrivals: &[Arrival]) -> Link<Recorded> {
    const TRIES: u64 = 1000;
    let made = crate::make_link(spec, seed, Hosts::default);
    let keyed = matches!(made.qdisc(), Discipline::Sfq(_));
    if !keyed && arrivals.iter().all(|arrival| arrival.hash.is_some()) {
        return made;
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
    free.unwrap_or(made)
}

struct Replay {
    link: Link<Recorded>,
    log: Log<Recorded>,
    decisions: Vec<Decision>,
    /// Causes of marks whose packets have not left: they leave in the order in which they were
    /// marked.
    marks: VecDeque<Cause>,
    left: u64,
    sent: u64,
    /// Of the last that left.
    now: Time,
    /// What the discipline says of packets that has a replay hint, as they leave.
    leaving: Vec<DrawOutcome>,
    /// The same of the one that came, where it decides then.
    arriving: Option<DrawOutcome>,
    /// As `Replayed`.
    unseen: Vec<u64>,
    /// What the recorded queue sent, in its order.
    recorded: Vec<Packet<Recorded>>,
}

/// What is said of the next packet that left, of those that were dropped or of the others.
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

    /// One packet leaves, or none: a drop happens when the packet behind it leaves.
    fn advance(&mut self, next: Time) {
        self.link.advance(next, &mut self.log);
        self.now = self.now.max(next);
        self.note(next);
    }

    /// Everything that happens before an arrival; when to take it in.
    fn up_to(&mut self, arrival: &Arrival) -> Time {
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
        let found = self.link.backlog();
        self.decisions.push(Decision {
            at: Time::NEVER,
            order: u64::MAX,
            refused: false,
            fell: None,
            ds: arrival.ds,
            found,
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
        let chance = self.link.qdisc_mut().replayable().and_then(|it| it.chance());
        let decision = &mut self.decisions[index as usize];
        decision.refused = matches!(decision.fell, Some((Fell::Dropped, _)));
        decision.state = state.average.or(state.probability).unwrap_or(decision.state);
        if let Some(chance) = chance.filter(|_| arrival.replay_hint.is_some()) {
            decision.chance = chance;
        }
        decision.draw(self.arriving.take());
    }

    /// Writes down what happened: what fell, fell before anything left.
    fn note(&mut self, now: Time) {
        let count = self.link.qdisc().state(now).count;
        if let Some(replay_draws) =
            self.link.qdisc_mut().replayable().and_then(|it| it.replay_draws())
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
                    decision.fell = Some((Fell::Dropped, cause));
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
                let cause =
                    self.marks.pop_front().expect("a packet that was marked was told to be");
                decision.fell = Some((Fell::Marked, cause));
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

    /// A full packet takes 1 ms.
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
        assert_eq!(decisions[2].fell, Some((Fell::Dropped, Cause::Limit)));
        assert_eq!(decisions.iter().map(|d| d.order).collect::<Vec<_>>(), [0, 2, 1, 3]);
        assert_eq!(decisions.iter().map(|d| d.found.packets).collect::<Vec<_>>(), [0, 0, 1, 0]);
    }

    #[test]
    fn a_codepoint_that_is_washed_off_is_no_mark() {
        let cake = link(json!({
            "kind": "cake", "bandwidth": 6_000_000, "rtt_ns": 100_000_000, "memlimit": null, "tins": "besteffort",
            "isolation": "flows", "acks": "no-ack-filter", "wash": true, "ingress": false, "raw": true, "overhead": 0, "mpu": 0, "cells": "noatm",
        }));
        let marked = Arrival { ds: DsField(46 << 2), ..at(0) };
        let decisions = replay(&cake, 1, &[marked, marked]);
        // cake's nanoseconds for a byte are rounded down.
        let found: Vec<_> = decisions.iter().map(|d| (d.at.0, d.fell)).collect();
        assert_eq!(found, [(0, None), (2 * MS - 1, None)]);
    }

    #[test]
    fn at_one_instant_the_recording_says_what_came_first() {
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
    fn what_waits_is_dropped_as_the_next_one_leaves_and_a_mark_is_known_by_its_packet() {
        let ecn = |ds| Arrival { ds: DsField(ds), ..at(0) };
        let arrivals: Vec<Arrival> = (0..400).map(|i| ecn(if i < 200 { 0 } else { 2 })).collect();
        let codel = json!({
            "kind": "codel", "variant": "linux", "limit": 1000, "target_ns": 5 * MS, "interval_ns": 100 * MS,
            "ecn": true, "ce_threshold_ns": null,
        });
        let decisions = replay(&link(codel), 1, &arrivals);
        let (plain, ect) = decisions.split_at(200);
        let dropped = |d: &&Decision| matches!(d.fell, Some((Fell::Dropped, Cause::Target)));
        let marked = |d: &&Decision| matches!(d.fell, Some((Fell::Marked, Cause::Target)));
        assert!(plain.iter().any(|d| dropped(&d)) && !plain.iter().any(|d| marked(&d)));
        assert!(ect.iter().any(|d| marked(&d)) && !ect.iter().any(|d| dropped(&d)));
        for pair in decisions.windows(2).filter(|pair| dropped(&&pair[0])) {
            assert_eq!((pair[0].at, pair[0].order + 1), (pair[1].at, pair[1].order));
            assert!(!pair[0].refused);
        }
    }

    #[test]
    fn red_follows_what_another_drew_where_its_law_leaves_the_choice() {
        let red = link(json!({
            "kind": "red", "variant": "linux", "limit": 400_000, "min": 15_000, "max": 45_000, "avpkt": 1000,
            "burst": 20, "probability": 0.1, "bandwidth": 12_000_000, "adaptive": false, "ecn": false,
            "harddrop": false, "nodrop": false,
        }));
        // Two packets each ms: the queue grows without end.
        let arrivals = |early: fn(u64) -> bool| -> Vec<Arrival> {
            let told = |i| if early(i) { ReplayHint::Dropped } else { ReplayHint::Passed };
            (0..400).map(|i| Arrival { replay_hint: Some(told(i)), ..at(i * MS / 2) }).collect()
        };
        let never = replay(&red, 1, &arrivals(|_| false));
        let first = never.iter().position(|d| d.refused).unwrap();
        assert!(
            never[..first].iter().any(|d| d.chance > 0.0)
                && never[..first].iter().all(|d| d.chance < 1.0)
        );
        assert_eq!(
            never[first].chance, 1.0,
            "above max, or with the count too high, there is no choice"
        );
        let always = replay(&red, 1, &arrivals(|_| true));
        for decision in &always {
            assert_eq!(decision.refused, decision.chance > 0.0, "below min there is none either");
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
            let made = make_link(&spec, seed, &arrivals);
            let Discipline::FqCodel(made) = made.qdisc() else {
                panic!("an fq_codel was asked for")
            };
            let unknown = Recorded {
                index: 0,
                hash: None,
                truesize: None,
                replay_hint: None,
                place: None,
                hosts: None,
            };
            assert!(!made.any_share_a_queue(&[0, 1, 2, 3, 4, 5], &unknown));
        }
    }

    #[test]
    fn flows_share_a_queue_where_their_recorded_hashes_do() {
        // Four flows of two packets each over two queues, by the hash's first bit: served in turn,
        // flows of one queue in their order.
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
        // The first two go past the queues. These hold 1 1 3 3 and 2 2, two packets a turn; or all
        // in one.
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
            // The first goes past the queues.
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
                .filter(|d| d.fell.is_some())
                .count()
        };
        // One is sent, eleven wait: 25 080 or 25 344 bytes pass the limit with the ninth; 22 bytes
        // never do.
        assert!(refused(Some(2280)) > 0 && refused(None) > 0);
        assert_eq!(refused(Some(2)), 0);
    }
}
