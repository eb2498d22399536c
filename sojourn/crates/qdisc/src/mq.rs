//! mq: a discipline of its own on each transmit queue of a card.
//!
//! A card with several queues lets several processors send at once, each through a discipline of
//! its own. A hash of a packet's connection, or its flow, selects one of the queues, and the packet
//! stays there. The card sends from its queues in turn, one packet each. So flows that share a
//! queue share its turn, and no discipline sees the packets of the others.
//!
//! When the transmitter becomes free, the queues are polled in turn until one returns a packet,
//! beginning with the one behind the queue that sent last. Queues without packets are skipped,
//! except the one that sent last: its discipline must notice that it is empty.
//!
//! `Siblings` is the card's part, which cake_mq shares.
//!
//! Source: Linux net/sched/sch_mq.c, skb_tx_hash and skbedit's queue_mapping for the behaviour.
//! Deviations and readings: a card's queues have no rings below their disciplines. Cards differ in
//! how they share their transmitter among queues; here each queue sends one packet in its turn.

use crate::{
    AckView, Backlog, Body, Context, Discipline, Hosts, Packet, Params, Qdisc, Replayable, State,
    Verdict,
};
use serde::{Deserialize, Serialize};
use units::{Rate, Rng, Time};

/// A card's transmit queues, and how packets are assigned to them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CardQueues {
    /// The number of queues, at least one.
    pub count: u32,
    /// The queue of each flow, from flow 0 on. Later flows start from the first entry again. Empty:
    /// a hash selects the queue.
    pub pinned: Vec<u32>,
}

impl CardQueues {
    /// A card with one queue, as most scenarios have.
    pub const ONE: CardQueues = CardQueues { count: 1, pinned: Vec::new() };

    /// The queue that a flow is pinned to, by the flow's number in the scenario; `None`: a hash
    /// selects it.
    pub fn pinned_to(&self, flow: usize) -> Option<u32> {
        let queue = self.pinned.get(flow.checked_rem(self.pinned.len())?)?;
        Some(queue % self.count.max(1))
    }
}

/// The disciplines of a card's queues.
pub(crate) struct Siblings<Q> {
    pub(crate) each: Vec<Q>,
    card: CardQueues,
    key: u64,
    /// The queue that sent last.
    sent_by: usize,
    total: Backlog,
    /// The contents of the next ACK.
    ack: Option<AckView>,
    /// In a replay: the recorded draw for the next packet.
    early: Option<bool>,
    /// The queue of the last arrival.
    last_arrival: usize,
    hosts: Hosts,
    hosts_are_set: bool,
}

impl<Q> Siblings<Q> {
    /// Empty queues. Each discipline has a random stream of its own.
    pub(crate) fn new(
        card: &CardQueues,
        mut context: Context,
        name: &str,
        make: impl Fn(Context) -> Q,
    ) -> Self {
        let key = context.rng.next_u64();
        let sibling = |_| {
            let rng = Rng::new(context.rng.next_u64(), name);
            make(Context { rng, ..context.clone() })
        };
        Siblings {
            each: (0..card.count.max(1)).map(sibling).collect(),
            card: card.clone(),
            key,
            sent_by: 0,
            total: Backlog::default(),
            ack: None,
            early: None,
            last_arrival: 0,
            hosts: Hosts::default(),
            hosts_are_set: false,
        }
    }

    /// The number of queues.
    pub(crate) fn len(&self) -> usize {
        self.each.len()
    }

    /// The queue of a packet.
    pub(crate) fn queue_of<B: Body>(&self, packet: &Packet<B>) -> usize {
        // The two directions of a flow are numbers 2n and 2n + 1.
        match self.card.pinned_to((packet.flow >> 1) as usize) {
            Some(queue) => queue as usize,
            None => {
                let hash = u64::from(packet.body.hash(packet.flow, self.key));
                ((hash * self.each.len() as u64) >> 32) as usize
            }
        }
    }

    /// The queue to poll at this step of a turn; `None`: this step is skipped.
    pub(crate) fn queue_at_step<B>(&self, step: usize) -> Option<usize>
    where
        Q: Qdisc<B>,
    {
        let index = (self.sent_by + 1 + step) % self.each.len();
        let is_last = step + 1 == self.each.len();
        (is_last || self.each[index].backlog().packets > 0).then_some(index)
    }

    /// Enqueues a packet in this queue.
    pub(crate) fn enqueue<B: Body>(
        &mut self,
        index: usize,
        packet: Packet<B>,
        now: Time,
        verdicts: &mut Vec<Verdict<B>>,
    ) where
        Q: Qdisc<B>,
    {
        self.note_arrival(index);
        self.counted(index, |q| q.enqueue(packet, now, verdicts));
    }

    /// Passes the contents of an ACK to the queue it arrives at. They are kept until then, even if
    /// other packets leave first. `Mq::pass_on_recorded_draw` does the same for a replay.
    fn note_arrival<B>(&mut self, index: usize)
    where
        Q: Qdisc<B>,
    {
        self.last_arrival = index;
        if let Some(ack) = self.ack.take() {
            self.each[index].sees(ack);
        }
    }

    /// Dequeues a packet from this queue.
    pub(crate) fn dequeue<B>(
        &mut self,
        index: usize,
        now: Time,
        verdicts: &mut Vec<Verdict<B>>,
    ) -> Option<Packet<B>>
    where
        Q: Qdisc<B>,
    {
        let packet = self.counted(index, |q| q.dequeue(now, verdicts))?;
        self.sent_by = index;
        Some(packet)
    }

    /// Calls `act` on a queue and updates the total backlog.
    fn counted<B, T>(&mut self, index: usize, act: impl FnOnce(&mut Q) -> T) -> T
    where
        Q: Qdisc<B>,
    {
        if !self.hosts_are_set {
            self.hosts_are_set = true;
            for hosts in self.each.iter_mut().filter_map(Q::hosts) {
                *hosts = self.hosts.clone();
            }
        }
        let q = &mut self.each[index];
        let before = q.backlog();
        let done = act(q);
        let after = q.backlog();
        self.total.packets = self.total.packets - before.packets + after.packets;
        self.total.bytes = self.total.bytes - before.bytes + after.bytes;
        done
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.total
    }

    /// The earliest time at which a queue returns a packet. Only queues with packets count, if
    /// there are any.
    pub(crate) fn holds_until<B>(&self) -> Option<Time>
    where
        Q: Qdisc<B>,
    {
        let counts = |q: &&Q| self.total.packets == 0 || q.backlog().packets > 0;
        self.each.iter().filter(counts).map(Q::holds_until).min().flatten()
    }

    pub(crate) fn sees(&mut self, ack: AckView) {
        self.ack = Some(ack);
    }

    /// The table of hosts, if the disciplines use one.
    pub(crate) fn hosts<B>(&mut self) -> Option<&mut Hosts>
    where
        Q: Qdisc<B>,
    {
        self.each[0].hosts()?;
        Some(&mut self.hosts)
    }

    /// The sum of the queues' states, for the quantities that can be added.
    pub(crate) fn state<B>(&self, now: Time) -> State
    where
        Q: Qdisc<B>,
    {
        let states: Vec<State> = self.each.iter().map(|q| q.state(now)).collect();
        let sum = |of: fn(&State) -> Option<f64>| states.iter().map(of).sum();
        State {
            limit: sum(|state| state.limit),
            flows: sum(|state| state.flows),
            ..State::default()
        }
    }
}

/// The discipline of each queue.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MqParams {
    /// The discipline, the same on each queue.
    pub child: Box<Params>,
}

/// A discipline on each queue of a card.
pub struct Mq<B>(Siblings<Discipline<B>>);

impl<B: Body> Mq<B> {
    /// Empty queues.
    pub fn new(params: &MqParams, card: &CardQueues, context: Context) -> Self {
        Mq(Siblings::new(card, context, "mq", |context| Discipline::new(&params.child, context)))
    }

    /// Passes a recorded draw to the queue that its packet arrives at.
    fn pass_on_recorded_draw(&mut self, index: usize) {
        if let Some(early) = self.0.early.take()
            && let Some(child) = self.0.each[index].replayable()
        {
            child.set_recorded_draw(early);
        }
    }

    /// For replays: a packet arrived as the transmitter became free, and the recorded card then
    /// sent `sent`. Linux runs the queue of an arriving packet before the others have their turn.
    pub fn arrived_while_sending(&mut self, sent: &Packet<B>) {
        if self.0.queue_of(sent) == self.0.last_arrival {
            let queues = self.0.len();
            self.0.sent_by = (self.0.last_arrival + queues - 1) % queues;
        }
    }
}

impl<B: Body> Qdisc<B> for Mq<B> {
    fn enqueue(&mut self, packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        let index = self.0.queue_of(&packet);
        self.pass_on_recorded_draw(index);
        self.0.enqueue(index, packet, now, verdicts);
    }

    fn dequeue(&mut self, now: Time, verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        (0..self.0.len()).find_map(|step| {
            let index = self.0.queue_at_step(step)?;
            self.0.dequeue(index, now, verdicts)
        })
    }

    fn pass(
        &mut self,
        packet: Packet<B>,
        since: Option<Time>,
        now: Time,
        verdicts: &mut Vec<Verdict<B>>,
    ) -> Option<Packet<B>> {
        if let Some(since) = since {
            let none = self.dequeue(since, verdicts);
            debug_assert!(none.is_none(), "an empty queue returned a packet");
        }
        let index = self.0.queue_of(&packet);
        self.pass_on_recorded_draw(index);
        self.0.note_arrival::<B>(index);
        let passed = self.0.counted(index, |q| q.pass(packet, None, now, verdicts))?;
        self.0.sent_by = index;
        Some(passed)
    }

    fn holds_until(&self) -> Option<Time> {
        self.0.holds_until()
    }

    fn backlog(&self) -> Backlog {
        self.0.backlog()
    }

    fn state(&self, now: Time) -> State {
        self.0.state(now)
    }

    fn rate_changed(&mut self, rate: Rate) {
        self.0.each.iter_mut().for_each(|q| Qdisc::<B>::rate_changed(q, rate));
    }

    fn hosts(&mut self) -> Option<&mut Hosts> {
        self.0.hosts()
    }

    fn sees_acks(&self) -> bool {
        Qdisc::<B>::sees_acks(&self.0.each[0])
    }

    fn sees(&mut self, ack: AckView) {
        self.0.sees(ack);
    }
}

impl<B: Body> Replayable for Mq<B> {
    fn set_recorded_draw(&mut self, early: bool) {
        self.0.early = Some(early);
    }

    fn chance(&mut self) -> Option<f64> {
        self.0.each[self.0.last_arrival].replayable()?.chance()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DsField, FifoParams};

    fn packet(flow: u32, size: u32) -> Packet<u32> {
        Packet { enqueued: Time::ZERO, flow, size, ds: DsField::BEST_EFFORT, body: 0 }
    }

    fn mq(count: u32, pinned: &[u32], limit: u64) -> Mq<u32> {
        let params = MqParams { child: Box::new(Params::Pfifo(FifoParams { limit })) };
        let rng = Rng::new(1, "mq");
        let context = Context { rate: None, mtu: 1514, header_bytes: 14, root: true, rng };
        Mq::new(&params, &CardQueues { count, pinned: pinned.to_vec() }, context)
    }

    /// The flows of these packets, in the order in which they leave.
    fn served(q: &mut Mq<u32>) -> Vec<u32> {
        std::iter::from_fn(|| q.dequeue(Time::ZERO, &mut Vec::new()))
            .map(|packet| packet.flow)
            .collect()
    }

    #[test]
    fn queues_send_in_turn_and_share_nothing() {
        // Flows 0 and 2 are pairs 0 and 1, on one queue; flow 4 is pair 2, on another.
        let mut q = mq(3, &[1, 1, 2], 4);
        let mut verdicts = Vec::new();
        for flow in [0, 0, 2, 2, 0, 4, 4] {
            q.enqueue(packet(flow, 100), Time::ZERO, &mut verdicts);
        }
        // The fifth packet found its queue full.
        assert_eq!(verdicts.len(), 1);
        assert_eq!(q.backlog(), Backlog { packets: 6, bytes: 600 });
        assert_eq!(served(&mut q), [0, 4, 0, 4, 2, 2]);
        assert_eq!(q.backlog(), Backlog::default());
        // The queue behind the one that sent last is served next.
        q.enqueue(packet(0, 100), Time::ZERO, &mut verdicts);
        q.enqueue(packet(4, 100), Time::ZERO, &mut verdicts);
        assert_eq!(served(&mut q), [4, 0]);
    }

    #[test]
    fn a_hash_or_a_list_gives_each_flow_its_queue() {
        let q = mq(4, &[3, 1], 1);
        let queue = |flow| q.0.queue_of(&packet(flow, 100));
        assert_eq!([0, 1, 2, 3, 4, 5].map(queue), [3, 3, 1, 1, 3, 3]);
        let q = mq(4, &[], 1);
        let mut counts = [0; 4];
        for flow in 0..4000 {
            counts[q.0.queue_of(&packet(2 * flow, 100))] += 1;
        }
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
    }

    #[test]
    fn an_ack_reaches_its_queue_even_if_other_packets_leave_first() {
        // Records the ACK it sees, and returns each packet at once.
        #[derive(Default)]
        struct Recorder(Option<AckView>, Vec<Packet<u32>>);
        impl Qdisc<u32> for Recorder {
            fn enqueue(&mut self, packet: Packet<u32>, _: Time, _: &mut Vec<Verdict<u32>>) {
                self.1.push(packet);
            }
            fn dequeue(&mut self, _: Time, _: &mut Vec<Verdict<u32>>) -> Option<Packet<u32>> {
                self.1.pop()
            }
            fn backlog(&self) -> Backlog {
                Backlog { packets: self.1.len() as u32, bytes: 0 }
            }
            fn sees(&mut self, ack: AckView) {
                self.0 = Some(ack);
            }
        }
        let card = CardQueues { count: 2, pinned: vec![0, 1] };
        let rng = Rng::new(1, "mq");
        let context = Context { rate: None, mtu: 1514, header_bytes: 14, root: true, rng };
        let mut q = Siblings::new(&card, context, "mq", |_| Recorder::default());
        let mut verdicts = Vec::new();
        q.enqueue(1, packet(2, 100), Time::ZERO, &mut verdicts);
        q.sees(AckView { ack: 7, sacks: [(0, 0); 4], sack_count: 0, ece: false });
        q.dequeue(1, Time::ZERO, &mut verdicts);
        q.enqueue(0, packet(0, 100), Time::ZERO, &mut verdicts);
        assert_eq!(q.each[0].0.map(|ack| ack.ack), Some(7));
        assert_eq!(q.each[1].0, None);
    }

    #[test]
    fn one_queue_acts_as_its_discipline() {
        let (mut single, mut alone) = (mq(1, &[], 5), crate::Pfifo::new(&FifoParams { limit: 5 }));
        for step in 0..200u32 {
            let (mut ours, mut its) = (Vec::new(), Vec::new());
            for flow in 0..step % 3 {
                single.enqueue(packet(flow, 100), Time::ZERO, &mut ours);
                alone.enqueue(packet(flow, 100), Time::ZERO, &mut its);
            }
            assert_eq!(ours, its);
            let sent = single.dequeue(Time::ZERO, &mut ours);
            assert_eq!(sent, alone.dequeue(Time::ZERO, &mut its));
            assert_eq!(single.backlog(), alone.backlog());
        }
    }
}
