//! choke: RED that compares. While the average queue is above the lower threshold, each newcomer is
//! compared with a packet drawn from the queue. If both belong to one flow, both are dropped. The
//! flow that fills the queue is drawn most often, so a flow that does not slow down loses twice as
//! much as others. There is no state for any flow.
//!
//! Source: Pan, Prabhakar, Psounis, "CHOKe" (2000); tc-choke(8); Linux net/sched/sch_choke.c (6.12)
//! for the behaviour:
//!
//! - The average is computed as in RED, in packets. Up to `min` there is no decision. Above `max` a
//!   packet without a match is marked or dropped. Between them RED decides.
//! - A match leaves a hole in the queue. A draw of a hole is repeated; after three draws the oldest
//!   packet is compared.
//! - A match is dropped, even with ECN.
//!
//! Deviation: Linux's table has places for a few holes in addition to `limit` packets; here it
//! grows.

use super::Decision;
use super::linux::{LinuxRed, LinuxRedParams, TWO_32};
use crate::{Backlog, Body, Cause, Context, Packet, Qdisc, State, Verdict};
use serde::Deserialize;
use std::collections::VecDeque;
use units::{Rng, Time};

/// `choke limit PACKETS min PACKETS max PACKETS avpkt BYTES burst PACKETS probability P bandwidth RATE [ecn]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChokeParams {
    /// The limit of the queue, packets.
    pub limit: u64,
    /// Up to this average there is no early decision, packets.
    pub min: u32,
    /// Above this average every packet is dropped or marked, packets.
    pub max: u32,
    /// The size of an average packet, for the idle time, bytes (1000).
    pub avpkt: u32,
    /// The number of packets that may arrive at once without drops; it determines the weight.
    pub burst: u32,
    /// The probability reached at `max`, a fraction (0.02).
    pub probability: f64,
    /// The rate that converts idle time to packets, bit/s.
    pub bandwidth: u64,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl ChokeParams {
    /// A RED that counts packets as bytes.
    fn red(&self) -> LinuxRed {
        let params = LinuxRedParams {
            limit: self.limit,
            min: self.min,
            max: self.max,
            avpkt: self.avpkt,
            burst: self.burst,
            probability: self.probability,
            bandwidth: self.bandwidth,
            adaptive: false,
            ecn: self.ecn,
            harddrop: false,
            nodrop: false,
        };
        LinuxRed::averaging(&params, self.min.into())
    }
}

/// Draws before the oldest packet is taken.
const TRIES: u32 = 3;

/// A queue under CHOKe.
pub struct Choke<B> {
    red: Box<LinuxRed>,
    rng: Rng,
    /// The queue's packets; `None` is a hole that a match has left. The first and the last are
    /// packets.
    places: VecDeque<Option<Packet<B>>>,
    backlog: Backlog,
}

impl<B: Body> Choke<B> {
    /// An empty queue, idle since the start of the run.
    pub fn new(params: &ChokeParams, context: Context) -> Self {
        Choke {
            red: Box::new(params.red()),
            rng: context.rng,
            places: VecDeque::new(),
            backlog: Backlog::default(),
        }
    }

    /// The place of a packet drawn from the queue. All packets are equally likely, except that
    /// holes add to the oldest.
    fn draw(&mut self) -> Option<usize> {
        let places = self.places.len() as u64;
        if places == 0 {
            return None;
        }
        let mut drawn = (0..TRIES).map(|_| self.rng.below(places) as usize);
        Some(drawn.find(|place| self.places[*place].is_some()).unwrap_or(0))
    }

    /// Draws a packet, and removes and returns it if it belongs to the newcomer's flow.
    fn matched(&mut self, newcomer: &Packet<B>) -> Option<Packet<B>> {
        let place = self.draw()?;
        let flow = |packet: &Packet<B>| packet.body.connection(packet.flow);
        let drawn = self.places[place].take_if(|drawn| flow(drawn) == flow(newcomer))?;
        while self.places.front().is_some_and(Option::is_none) {
            self.places.pop_front();
        }
        while self.places.back().is_some_and(Option::is_none) {
            self.places.pop_back();
        }
        self.left(&drawn);
        Some(drawn)
    }

    fn left(&mut self, packet: &Packet<B>) {
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(packet.size);
    }

    /// Decides on the newcomer. A matching packet is removed from the queue.
    fn decide(&mut self, newcomer: &Packet<B>, verdicts: &mut Vec<Verdict<B>>) -> Decision {
        let red = &mut self.red;
        if red.average <= red.min << red.wlog {
            red.count = None;
            return Decision::Pass;
        }
        if let Some(drawn) = self.matched(newcomer) {
            verdicts.push(Verdict::Dropped(drawn, Cause::Early));
            return Decision::Drop(Cause::Early);
        }
        let red = &mut self.red;
        if red.average > red.max << red.wlog {
            red.count = None;
            return red.signal(Cause::Early, false);
        }
        red.between(None, &mut self.rng)
    }
}

impl<B: Body> Qdisc<B> for Choke<B> {
    #[inline]
    fn enqueue(&mut self, mut packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        self.red.arrival(self.backlog.packets.into(), now);
        let decision = self.decide(&packet, verdicts);
        if let Some(cause) = decision.drops(packet.ds.ecn()) {
            return verdicts.push(Verdict::Dropped(packet, cause));
        }
        if u64::from(self.backlog.packets) >= self.red.limit {
            return verdicts.push(Verdict::Dropped(packet, Cause::Limit));
        }
        decision.mark(&mut packet, verdicts);
        packet.enqueued = now;
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(packet.size);
        self.places.push_back(Some(packet));
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        let Some(first) = self.places.pop_front() else {
            self.red.idle_since.get_or_insert(now);
            return None;
        };
        let packet = first.expect("the first place has a packet");
        while self.places.front().is_some_and(Option::is_none) {
            self.places.pop_front();
        }
        self.left(&packet);
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn state(&self, _now: Time) -> State {
        State {
            limit: Some(self.red.limit as f64),
            probability: Some(f64::from(self.red.max_p) / TWO_32),
            average: Some(self.red.average_bytes()),
            ..State::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ecn;

    fn params() -> ChokeParams {
        // A weight of 1/2, so that the average follows quickly.
        ChokeParams {
            limit: 100,
            min: 2,
            max: 20,
            avpkt: 1000,
            burst: 2,
            probability: 0.02,
            bandwidth: 10_000_000,
            ecn: false,
        }
    }

    fn choke(params: &ChokeParams) -> Choke<()> {
        let rng = Rng::new(1, "choke");
        Choke::new(params, Context { rate: None, mtu: 1514, header_bytes: 14, root: true, rng })
    }

    /// Enqueues a packet. Returns the flows of the drops, the newcomer's last.
    fn send(q: &mut Choke<()>, flow: u32, ecn: Ecn) -> Vec<u32> {
        let packet = Packet { enqueued: Time::NEVER, flow, size: 1000, ds: ecn.into(), body: () };
        let mut verdicts = Vec::new();
        q.enqueue(packet, Time(1), &mut verdicts);
        let dropped = |verdict: &Verdict<()>| match verdict {
            Verdict::Dropped(packet, _) => Some(packet.flow),
            Verdict::Marked { .. } => None,
        };
        verdicts.iter().filter_map(dropped).collect()
    }

    #[test]
    fn above_min_each_arrival_of_a_single_flow_drops_two_packets() {
        let mut q = choke(&params());
        assert_eq!(q.red.wlog, 1);
        let mut sent = Vec::new();
        while sent.last().is_none_or(Vec::is_empty) {
            sent.push(send(&mut q, 7, Ecn::Ect0));
        }
        // Packets find 0, 1, 2, 3 queued; the average is 0 (idle before), 1/2, 3/2, 5/2.
        assert_eq!(sent.len(), 4);
        assert_eq!(sent[3], [7, 7]);
        assert_eq!(q.backlog(), Backlog { packets: 2, bytes: 2000 });
    }

    #[test]
    fn if_the_flows_differ_the_packet_stays_and_red_decides() {
        let mut q = choke(&ChokeParams { max: 3, ..params() });
        let sent: Vec<_> = (0..5).map(|flow| send(&mut q, flow, Ecn::NotEct)).collect();
        // The average exceeds 2 at the fourth packet and 3 at the fifth, which has no match.
        assert_eq!(sent, [vec![], vec![], vec![], vec![], vec![4]]);
        assert_eq!(q.backlog().packets, 4);
    }

    #[test]
    fn marks_are_red_s_and_a_match_is_a_drop_with_ecn_too() {
        let mut q = choke(&ChokeParams { max: 3, ecn: true, ..params() });
        let sent: Vec<_> = (0..7).map(|flow| send(&mut q, flow, Ecn::Ect0)).collect();
        assert!(sent.iter().all(Vec::is_empty), "above max packets are marked");
        assert_eq!(q.places.iter().flatten().filter(|p| p.ds.ecn() == Ecn::Ce).count(), 3);
        let mut q = choke(&ChokeParams { ecn: true, ..params() });
        assert_eq!((0..4).map(|_| send(&mut q, 1, Ecn::Ect0)).last(), Some(vec![1, 1]));
    }

    #[test]
    fn a_match_in_the_middle_leaves_a_hole_and_the_ends_are_packets() {
        let mut q = choke(&ChokeParams { max: 90, ..params() });
        for flow in 0..60 {
            send(&mut q, flow % 6, Ecn::NotEct);
        }
        let packets = q.places.iter().flatten().count();
        assert!(packets < q.places.len(), "a match in the middle leaves a hole");
        assert_eq!(packets, q.backlog().packets as usize);
        assert!(q.places.front().is_some_and(Option::is_some));
        assert!(q.places.back().is_some_and(Option::is_some));
        let mut left = 0;
        while q.dequeue(Time(2), &mut Vec::new()).is_some() {
            left += 1;
        }
        assert_eq!((left, q.backlog(), q.places.len()), (packets, Backlog::default(), 0));
    }

    #[test]
    fn the_flow_with_most_of_the_queue_loses_most() {
        let mut q = choke(&params());
        let mut rng = Rng::new(2, "senders");
        let (mut sent, mut lost) = ([0u32; 2], [0u32; 2]);
        for _ in 0..20_000 {
            // Nine packets of flow 0 to one of flow 1; three of four are served.
            let flow = u32::from(rng.chance(0.1));
            sent[flow as usize] += 1;
            for dropped in send(&mut q, flow, Ecn::NotEct) {
                lost[dropped as usize] += 1;
            }
            if rng.chance(0.75) {
                q.dequeue(Time(2), &mut Vec::new());
            }
        }
        let share = |flow: usize| f64::from(lost[flow]) / f64::from(sent[flow]);
        assert!(share(0) > 2.0 * share(1), "{sent:?} {lost:?}");
    }
}
