//! cake_mq: a cake for each transmit queue of a card, and one rate for all of them.
//!
//! A card with several queues lets several processors send at once, each through a qdisc of its own.
//! One cake for all would be one lock for all. So each queue has a cake, and a cake does not wait for
//! the others to know its rate: once in `sync_time` it looks which of its siblings have packets, or
//! have sent one since it looked last, counts these and itself, and takes that part of the rate.
//!
//! A sibling with one packet in each `sync_time` counts as much as one with a backlog. What it does not
//! use nobody else may, and the flows of a queue share what their queue has, however many they are.
//!
//! Source: Linux 7.3's cake_mq for the behaviour: the shares of the tins and the turns of flows follow
//! the part; COBALT's target and interval, and the memory, are the whole rate's. It looks as it is
//! asked for a packet. `sync_time` is 200 us there, and can't be set.
//!
//! Deviations and readings: which queue a packet has is a hash of its connection (as skb_tx_hash), or
//! what `pinned` says of its flow. A cake is asked as a packet comes to it and as it may send one. Of
//! cakes that may send at one instant the one that could first goes first. What is between the
//! cakes and the wire, rings and processors, is not here: the link takes packets as they are given.

use super::{Cake, CakeParams, TURNS};
use crate::cake::pace::Pace;
use crate::{AckView, Backlog, Body, Context, Fate, Hosts, Packet, Qdisc, State};
use units::{Luck, Span, Time};

impl<B: Body> Cake<B> {
    /// It has this part of its rate, bytes/s, and everything else of the whole.
    fn share(&mut self, params: &CakeParams, rate: u64) {
        self.pace = Pace::new(rate);
        for (tin, (rate, _)) in self.tins.iter_mut().zip(params.tins.shares(rate)) {
            tin.pace = Pace::new(rate);
            tin.flows.quantum = (rate >> 12).clamp(TURNS.0, TURNS.1) as u32;
        }
    }
}

/// A cake among several.
struct Sibling<B> {
    cake: Cake<B>,
    /// When it looked at the others last.
    looked: Option<Time>,
    /// When it sent last.
    sent: Option<Time>,
    /// Of how many its rate is a part.
    active: u64,
}

/// A cake for each queue of a card.
pub struct CakeMq<B> {
    params: CakeParams,
    sync: Span,
    siblings: Vec<Sibling<B>>,
    key: u64,
    /// Without a rate: whose turn it is.
    turn: usize,
    total: Backlog,
    /// What of the ACK that comes next was told.
    ack: Option<AckView>,
    hosts: Hosts,
    hosts_are_told: bool,
}

impl<B: Body> CakeMq<B> {
    /// Empty queues, one at least.
    pub fn new(params: &CakeParams, mut context: Context) -> Self {
        let key = context.luck.next_u64();
        let sibling = |_| {
            let luck = Luck::new(context.luck.next_u64(), "cake_mq");
            let cake = Cake::new(params, Context { luck, ..context.clone() });
            Sibling { cake, looked: None, sent: None, active: 1 }
        };
        let siblings = (0..params.queues.max(1)).map(sibling).collect();
        CakeMq {
            params: params.clone(),
            sync: Span(params.sync_ns),
            siblings,
            key,
            turn: 0,
            total: Backlog::default(),
            ack: None,
            hosts: Hosts::default(),
            hosts_are_told: false,
        }
    }

    fn queue_of(&self, packet: &Packet<B>) -> usize {
        let queues = self.siblings.len();
        if self.params.pinned.is_empty() {
            let hash = u64::from(packet.body.hash(packet.flow, self.key));
            return ((hash * queues as u64) >> 32) as usize;
        }
        // Both directions of a flow are a pair of numbers.
        let flow = (packet.flow >> 1) as usize % self.params.pinned.len();
        self.params.pinned[flow] as usize % queues
    }

    /// It is asked for a packet, and looks at the others if it has not done so in `sync_time`.
    fn look(&mut self, index: usize, now: Time) {
        let rate = self.params.bandwidth.unwrap_or(0) / 8;
        let looked = self.siblings[index].looked;
        if rate == 0 || looked.is_some_and(|looked| now.since(looked) < self.sync) {
            return;
        }
        let is_active = |(other, sibling): (usize, &Sibling<B>)| {
            let has = Qdisc::<B>::backlog(&sibling.cake).packets > 0;
            let has_sent =
                sibling.sent.is_some_and(|sent| looked.is_none_or(|looked| sent > looked));
            other != index && (has || has_sent)
        };
        let active =
            1 + self.siblings.iter().enumerate().filter(|one| is_active(*one)).count() as u64;
        let sibling = &mut self.siblings[index];
        sibling.looked = Some(now);
        if sibling.active != active {
            sibling.active = active;
            sibling.cake.share(&self.params, rate / active);
        }
    }

    /// The cake that may send by now: of several the one that could first, or without a rate the next
    /// in turn.
    fn due(&self, now: Time) -> Option<usize> {
        let queues = self.siblings.len();
        let in_turn = (0..queues).map(|step| (self.turn + step) % queues);
        let has = |index: &usize| Qdisc::<B>::backlog(&self.siblings[*index].cake).packets > 0;
        in_turn
            .filter(has)
            .map(|index| (self.siblings[index].cake.opens(), index))
            .filter(|(opens, _)| *opens <= now)
            .min_by_key(|(opens, _)| *opens)
            .map(|(_, index)| index)
    }

    /// What a cake has more or less of than before.
    fn count(&mut self, before: Backlog, index: usize) {
        let after = Qdisc::<B>::backlog(&self.siblings[index].cake);
        self.total.packets = self.total.packets - before.packets + after.packets;
        self.total.bytes = self.total.bytes - before.bytes + after.bytes;
    }
}

impl<B: Body> Cake<B> {
    /// When its shaper lets a packet through.
    fn opens(&self) -> Time {
        Qdisc::<B>::holds_until(self).unwrap_or(Time::ZERO)
    }
}

impl<B: Body> Qdisc<B> for CakeMq<B> {
    fn enqueue(&mut self, packet: Packet<B>, now: Time, fates: &mut Vec<Fate<B>>) {
        if !self.hosts_are_told {
            self.hosts_are_told = true;
            for sibling in &mut self.siblings {
                if let Some(hosts) = Qdisc::<B>::hosts(&mut sibling.cake) {
                    *hosts = self.hosts.clone();
                }
            }
        }
        let index = self.queue_of(&packet);
        let cake = &mut self.siblings[index].cake;
        let before = Qdisc::<B>::backlog(cake);
        if let Some(ack) = self.ack.take() {
            Qdisc::<B>::sees(cake, ack);
        }
        cake.enqueue(packet, now, fates);
        self.count(before, index);
        self.look(index, now);
    }

    fn dequeue(&mut self, now: Time, fates: &mut Vec<Fate<B>>) -> Option<Packet<B>> {
        while let Some(index) = self.due(now) {
            self.look(index, now);
            self.turn = (index + 1) % self.siblings.len();
            let sibling = &mut self.siblings[index];
            let before = Qdisc::<B>::backlog(&sibling.cake);
            let packet = sibling.cake.dequeue(now, fates);
            if packet.is_some() {
                sibling.sent = Some(now);
            }
            self.count(before, index);
            if packet.is_some() {
                return packet;
            }
        }
        None
    }

    fn backlog(&self) -> Backlog {
        self.total
    }

    fn holds_until(&self) -> Option<Time> {
        self.params.bandwidth?;
        let has = |sibling: &&Sibling<B>| {
            self.total.packets == 0 || Qdisc::<B>::backlog(&sibling.cake).packets > 0
        };
        self.siblings.iter().filter(has).map(|sibling| sibling.cake.opens()).min()
    }

    fn sees_acks(&self) -> bool {
        Qdisc::<B>::sees_acks(&self.siblings[0].cake)
    }

    fn sees(&mut self, ack: AckView) {
        self.ack = Some(ack);
    }

    fn hosts(&mut self) -> Option<&mut Hosts> {
        Qdisc::<B>::hosts(&mut self.siblings[0].cake)?;
        Some(&mut self.hosts)
    }

    fn state(&self, now: Time) -> State {
        let states = self.siblings.iter().map(|sibling| Qdisc::<B>::state(&sibling.cake, now));
        let flows = states.filter_map(|state| state.flows).sum();
        let limit = Qdisc::<B>::state(&self.siblings[0].cake, now).limit;
        let queues = self.siblings.len() as f64;
        State { limit: limit.map(|each| each * queues), flows: Some(flows), ..State::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cake::tests::Sent;
    use crate::cake::tests::{packet, params};
    use units::Rate;

    const MBIT: u64 = 1_000_000;
    const US: u64 = 1_000;

    /// Of 8 Mbit/s, a million bytes a second: a full packet takes 1.514 ms.
    fn mq(queues: u32, sync_us: u64, pinned: &[u32]) -> CakeMq<Sent> {
        let params = CakeParams {
            bandwidth: Some(8 * MBIT),
            queues,
            sync_ns: sync_us * US,
            pinned: pinned.to_vec(),
            ..params()
        };
        let (rate, luck) = (Some(Rate::from_mbit(1000)), Luck::new(1, "cake_mq"));
        CakeMq::new(&params, Context { rate, mtu: 1514, header_bytes: 14, root: true, luck })
    }

    /// Which flow's packets leave until then, asked whenever one may.
    fn served(q: &mut CakeMq<Sent>, until: u64) -> Vec<(u64, u32)> {
        let mut served = Vec::new();
        let mut now = 0;
        while q.backlog().packets > 0 {
            now = q.holds_until().expect("it has a rate").0.max(now);
            if now > until {
                break;
            }
            if let Some(packet) = q.dequeue(Time(now), &mut Vec::new()) {
                served.push((now, packet.flow));
            }
        }
        served
    }

    fn send(q: &mut CakeMq<Sent>, flow: u32, packets: usize, now: u64) {
        for _ in 0..packets {
            q.enqueue(packet(flow, 0), Time(now), &mut Vec::new());
        }
    }

    #[test]
    fn a_queue_alone_has_the_whole_rate_and_of_two_each_has_half() {
        // Flows 0 and 1 are one pair of directions, 2 and 3 the next.
        let mut q = mq(4, 200, &[0, 1]);
        send(&mut q, 0, 10, 0);
        assert_eq!(
            served(&mut q, 3_028_000).iter().map(|one| one.0).collect::<Vec<_>>(),
            [0, 1_514_000, 3_028_000]
        );
        let mut q = mq(4, 200, &[0, 1]);
        send(&mut q, 0, 10, 0);
        send(&mut q, 2, 10, 0);
        let times = |q: &mut CakeMq<Sent>, flow| {
            let left = served(q, 6_056_000);
            left.into_iter().filter(|one| one.1 == flow).map(|one| one.0).collect::<Vec<_>>()
        };
        // The first went by itself alone: it looked before the second came. Then twice as long each.
        let found = times(&mut q, 0);
        assert_eq!(found, [0, 1_514_000, 4_542_000]);
        assert_eq!(q.siblings[1].active, 2);
    }

    #[test]
    fn a_queue_with_a_packet_now_and_then_counts_as_one_with_a_backlog() {
        // 40 bytes of queue 1 in each 150 us: it uses a quarter of a third of the rate.
        let mut q = mq(4, 200, &[0, 1]);
        send(&mut q, 0, 60, 0);
        let (mut now, mut sent) = (0, [0u64; 2]);
        for tick in 1..200 {
            while let Some(until) = q.holds_until().filter(|until| until.0 < tick * 150 * US) {
                now = until.0.max(now);
                match q.dequeue(Time(now), &mut Vec::new()) {
                    Some(packet) => sent[(packet.flow >> 1) as usize] += u64::from(packet.size),
                    None if q.backlog().packets == 0 => break,
                    None => {}
                }
            }
            let small = Packet { size: 40, ..packet(2, 0) };
            q.enqueue(small, Time(tick * 150 * US), &mut Vec::new());
        }
        // 30 ms at a million bytes a second are 30 000; half is queue 0's.
        assert!((14_000..18_500).contains(&sent[0]), "{sent:?}");
        assert!(sent[0] + sent[1] < 27_000, "{sent:?}");
    }

    #[test]
    fn one_queue_is_a_cake() {
        let (mut one, mut cake) = (mq(1, 200, &[]), crate::cake::tests::cake(&params()));
        cake.share(&params(), MBIT);
        let mut now = 0;
        for step in 0..400u64 {
            now += step * 7919 % 3_000_000;
            let flow = (step * step % 7) as u32;
            for _ in 0..2 {
                one.enqueue(packet(flow, 0), Time(now), &mut Vec::new());
                cake.enqueue(packet(flow, 0), Time(now), &mut Vec::new());
            }
            let ours = one.dequeue(Time(now), &mut Vec::new()).is_some();
            assert_eq!(ours, cake.dequeue(Time(now), &mut Vec::new()).is_some());
            assert_eq!(one.holds_until(), Qdisc::<Sent>::holds_until(&cake));
        }
    }

    #[test]
    fn a_hash_or_a_list_gives_each_flow_its_queue() {
        let q = mq(4, 200, &[3, 1]);
        let queue = |flow| q.queue_of(&packet(flow, 0));
        assert_eq!([0, 1, 2, 3, 4, 5].map(queue), [3, 3, 1, 1, 3, 3]);
        let q = mq(4, 200, &[]);
        let mut counts = [0; 4];
        for flow in 0..4000 {
            counts[q.queue_of(&packet(2 * flow, 0))] += 1;
        }
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
    }
}
