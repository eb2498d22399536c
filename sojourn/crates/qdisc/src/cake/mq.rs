//! cake_mq: a cake for each transmit queue of a card, and one rate for all of them.
//!
//! A card with several queues lets several processors send at once, each through a qdisc of its
//! own. One cake for all would be one lock for all. So each queue has a cake, and a cake does not
//! synchronise with the others to know its rate. Once in `sync_time` it counts the siblings that
//! have packets, or have sent one since its last look, and itself. Its rate is the total rate
//! divided by this count.
//!
//! A sibling with one packet in each `sync_time` counts as much as one with a backlog. Rate that it
//! does not use is lost to the others. The flows of a queue share their queue's rate, however many
//! they are.
//!
//! Source: Linux 7.3's cake_mq for the behaviour: the rates of the tins and the turns of flows
//! follow the queue's share; COBALT's target and interval, and the memory, are those of the total
//! rate. A cake looks at its siblings when it dequeues. `sync_time` is 200 us in Linux and can't be
//! set.
//!
//! Deviations and readings: a cake dequeues when a packet arrives at it, and in turn with the
//! others (`mq`) when one of them may send. Rings and processors between the cakes and the wire are
//! not modelled.

use super::{Cake, CakeParams, TURNS};
use crate::cake::pace::Pace;
use crate::mq::Siblings;
use crate::{AckView, Backlog, Body, CardQueues, Context, Hosts, Packet, Qdisc, State, Verdict};
use units::{Span, Time};

impl<B: Body> Cake<B> {
    /// Sets this cake's share of the rate, bytes/s. All else is computed from the total rate.
    fn share(&mut self, params: &CakeParams, rate: u64) {
        self.pace = Pace::new(rate);
        for (tin, (rate, _)) in self.tins.iter_mut().zip(params.tins.shares(rate)) {
            tin.pace = Pace::new(rate);
            tin.flows.quantum = (rate >> 12).clamp(TURNS.0, TURNS.1) as u32;
        }
    }
}

/// A cake's view of the others.
#[derive(Clone)]
struct Look {
    /// The time of its last look at the others.
    at: Option<Time>,
    /// The time at which it last sent.
    sent: Option<Time>,
    /// The number of active cakes at the last look, itself included.
    active: u64,
}

/// A cake for each queue of a card.
pub struct CakeMq<B> {
    params: CakeParams,
    sync: Span,
    cakes: Siblings<Cake<B>>,
    /// The view of each cake.
    looks: Vec<Look>,
}

impl<B: Body> CakeMq<B> {
    /// Empty queues.
    pub fn new(params: &CakeParams, card: &CardQueues, context: Context) -> Self {
        let cakes = Siblings::new(card, context, "cake_mq", |context| Cake::new(params, context));
        let looks = vec![Look { at: None, sent: None, active: 1 }; cakes.len()];
        CakeMq { params: params.clone(), sync: Span(params.sync_ns), cakes, looks }
    }

    /// Looks at the others, if the last look is at least `sync_time` ago.
    fn look(&mut self, index: usize, now: Time) {
        let rate = self.params.bandwidth.unwrap_or(0) / 8;
        let looked = self.looks[index].at;
        if rate == 0 || looked.is_some_and(|looked| now.since(looked) < self.sync) {
            return;
        }
        let is_active = |other: &usize| {
            let has = Qdisc::<B>::backlog(&self.cakes.each[*other]).packets > 0;
            let sent = self.looks[*other].sent;
            let has_sent = sent.is_some_and(|sent| looked.is_none_or(|looked| sent > looked));
            *other != index && (has || has_sent)
        };
        let active = 1 + (0..self.looks.len()).filter(is_active).count() as u64;
        let look = &mut self.looks[index];
        look.at = Some(now);
        if look.active != active {
            look.active = active;
            self.cakes.each[index].share(&self.params, rate / active);
        }
    }
}

impl<B: Body> Qdisc<B> for CakeMq<B> {
    fn enqueue(&mut self, packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        let index = self.cakes.queue_of(&packet);
        self.cakes.enqueue(index, packet, now, verdicts);
        self.look(index, now);
    }

    fn dequeue(&mut self, now: Time, verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        (0..self.cakes.len()).find_map(|step| {
            let index = self.cakes.queue_at_step(step)?;
            self.look(index, now);
            let packet = self.cakes.dequeue(index, now, verdicts)?;
            self.looks[index].sent = Some(now);
            Some(packet)
        })
    }

    fn backlog(&self) -> Backlog {
        self.cakes.backlog()
    }

    fn holds_until(&self) -> Option<Time> {
        self.cakes.holds_until()
    }

    fn sees_acks(&self) -> bool {
        Qdisc::<B>::sees_acks(&self.cakes.each[0])
    }

    fn sees(&mut self, ack: AckView) {
        self.cakes.sees(ack);
    }

    fn hosts(&mut self) -> Option<&mut Hosts> {
        self.cakes.hosts()
    }

    fn state(&self, now: Time) -> State {
        self.cakes.state(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cake::tests::Sent;
    use crate::cake::tests::{packet, params};
    use units::{Rate, Rng};

    const MBIT: u64 = 1_000_000;
    const US: u64 = 1_000;

    /// 8 Mbit/s are a million bytes a second: a full packet takes 1.514 ms.
    fn mq(queues: u32, sync_us: u64, pinned: &[u32]) -> CakeMq<Sent> {
        let params = CakeParams { bandwidth: Some(8 * MBIT), sync_ns: sync_us * US, ..params() };
        let (rate, rng) = (Some(Rate::from_mbit(1000)), Rng::new(1, "cake_mq"));
        let card = CardQueues { count: queues, pinned: pinned.to_vec() };
        CakeMq::new(&params, &card, Context { rate, mtu: 1514, header_bytes: 14, root: true, rng })
    }

    /// The times and flows of departures until `until`, with a dequeue whenever a packet may leave.
    fn served(q: &mut CakeMq<Sent>, until: u64) -> Vec<(u64, u32)> {
        let mut served = Vec::new();
        let mut now = 0;
        while q.backlog().packets > 0 {
            now = q.holds_until().expect("cake_mq has a rate").0.max(now);
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
    fn one_active_queue_has_the_whole_rate_and_each_of_two_has_half() {
        // Flows 0 and 1 are the directions of one pair, 2 and 3 of the next.
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
        // The first packet left at the whole rate: its cake looked before the second arrived. Then
        // each packet takes twice as long.
        let actual = times(&mut q, 0);
        assert_eq!(actual, [0, 1_514_000, 4_542_000]);
        assert_eq!(q.looks[1].active, 2);
    }

    #[test]
    fn a_queue_with_an_occasional_packet_counts_as_one_with_a_backlog() {
        // 40 bytes of queue 1 every 150 us: it uses a quarter of a third of the rate.
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
        // 30 ms at a million bytes a second are 30 000 bytes; half is queue 0's.
        assert!((14_000..18_500).contains(&sent[0]), "{sent:?}");
        assert!(sent[0] + sent[1] < 27_000, "{sent:?}");
    }

    #[test]
    fn one_queue_acts_as_a_cake() {
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
    fn a_queue_that_sent_its_only_packet_counts_until_the_next_sync() {
        let mut q = mq(4, 200, &[0, 1]);
        send(&mut q, 2, 1, 0);
        assert_eq!(served(&mut q, 0), [(0, 2)]);
        // Queue 1 is empty, but it has sent since queue 0's last look. 200 us later it has not.
        let mut active = |now| {
            send(&mut q, 0, 1, now);
            q.looks[0].active
        };
        assert_eq!([100, 299, 300].map(|us| active(us * US)), [2, 2, 1]);
    }

    #[test]
    fn quanta_follow_the_queue_s_part_of_the_rate_and_are_full_without_a_rate() {
        let turns = |bandwidth| {
            let params = CakeParams { bandwidth, sync_ns: 200 * US, ..params() };
            let (rate, rng) = (Some(Rate::from_mbit(1000)), Rng::new(1, "cake_mq"));
            let card = CardQueues { count: 2, pinned: vec![0, 1] };
            let context = Context { rate, mtu: 1514, header_bytes: 14, root: true, rng };
            let mut q = CakeMq::new(&params, &card, context);
            [0, 2].iter().for_each(|flow| send(&mut q, *flow, 2, 0));
            q.cakes.each.iter().map(|cake| cake.tins[0].flows.quantum).collect::<Vec<_>>()
        };
        // A turn has the bytes of 1/4096 s. The first cake saw no active sibling, so its rate is 20
        // Mbit/s; the second's is 10.
        assert_eq!(turns(Some(20 * MBIT)), [610, 305]);
        assert_eq!(turns(None), [1514, 1514]);
    }
}
