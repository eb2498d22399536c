//! fq_pie: a queue for each flow, served by deficit round robin as in fq_codel, each under PIE.
//!
//! Packets are hashed by flow into `flows` queues. New queues are served before old ones. Each
//! queue has a drop probability of its own, which follows the delay of its own packets. A packet is
//! dropped or marked as it arrives, never later.
//!
//! Source: Linux net/sched/sch_fq_pie.c (6.12) for the behaviour; PIE: `pie`, its variant `linux`.
//! fq_pie differs from pie:
//!
//! - PIE's test for a short queue uses the flow's backlog. Its delay is 0 once the flow's queue is
//!   empty.
//! - Packets are marked rather than dropped up to p = `ecn_prob` percent.
//! - At the limit the arriving packet is dropped, whichever queue is longest.
//! - Linux counts memory for `memory_limit` but does not enforce it. It is not enforced here
//!   either.
//! - The timer updates 2048 flows in a jiffy and the next 2048 in the next. `tupdate` begins after
//!   the last.
//!
//! Deviation: a flow at rest is not updated, since an update would not change it.

use crate::ds::mark;
use crate::pie::{Decision, Dice, LinuxPie, timers};
use crate::timer::Timer;
use crate::{
    Backlog, Body, Cause, Context, Fifo, LinuxPieParams, Packet, Qdisc, Replayable, State, Verdict,
};
use serde::Deserialize;
use std::collections::VecDeque;
use units::Time;

/// `fq_pie limit PACKETS flows N target TIME tupdate TIME alpha N beta N quantum BYTES memory_limit BYTES ecn_prob PERCENT [ecn] [bytemode] [dq_rate_estimator]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FqPieParams {
    /// The limit of all queues together, packets (10240).
    pub limit: u64,
    /// The number of queues that flows are hashed into (1024).
    pub flows: u32,
    /// The queueing delay that p is controlled for, ns (15 000 000).
    pub target_ns: u64,
    /// The time between two updates of p, ns (15 000 000).
    pub tupdate_ns: u64,
    /// Weight of the delay's distance from the target, sixteenths of 1/s (2).
    pub alpha: u32,
    /// Weight of the delay's growth, sixteenths of 1/s (20).
    pub beta: u32,
    /// Bytes a queue may send in its turn, at least 256 (1514).
    pub quantum: u32,
    /// Memory above which Linux counts packets, bytes. It has no effect.
    pub memory_limit: u64,
    /// The largest p with which packets are marked, percent (10).
    pub ecn_prob: u32,
    /// Mark ECN-capable packets instead of dropping them (false).
    pub ecn: bool,
    /// Scale p with the packet's size.
    pub bytemode: bool,
    /// Estimate the delay as backlog / departure rate instead of by timestamps.
    pub dq_rate_estimator: bool,
}

/// Linux raises a smaller quantum to this many bytes.
const MIN_QUANTUM: u32 = 256;
/// The number of flows that are updated in one jiffy.
const FLOWS_A_JIFFY: usize = 2048;

struct Flow<B> {
    queue: Fifo<B>,
    pie: LinuxPie,
    /// The bytes that the flow may still send in this turn.
    deficit: i64,
    /// The flow is on one of the two lists.
    listed: bool,
    /// The flow is among those that are updated.
    awake: bool,
}

/// Fair queueing with PIE on each queue.
pub struct FqPie<B> {
    limit: u64,
    quantum: i64,
    perturbation: u64,
    flows: Vec<Flow<B>>,
    total: Backlog,
    /// The number of flows with packets.
    active: u32,
    new_flows: VecDeque<u32>,
    old_flows: VecDeque<u32>,
    /// For each 2048 flows: the timer of their updates, and the flows that are not at rest.
    updates: Vec<(Timer, Vec<u32>)>,
    /// The earliest next update.
    next_update: Time,
    dice: Dice,
}

impl<B: Body> FqPie<B> {
    /// An empty queue. The hash key and the draws are from the context's random stream.
    pub fn new(params: &FqPieParams, mut context: Context) -> Self {
        let count = params.flows.max(1) as usize;
        let perturbation = context.rng.next_u64();
        let pie = LinuxPieParams {
            limit: params.limit,
            target_ns: params.target_ns,
            tupdate_ns: params.tupdate_ns,
            alpha: params.alpha,
            beta: params.beta,
            ecn: params.ecn,
            bytemode: params.bytemode,
            dq_rate_estimator: params.dq_rate_estimator,
        };
        let pie = LinuxPie::new(&pie, context.mtu).marking_up_to(params.ecn_prob);
        let flow = || Flow {
            queue: Fifo::default(),
            pie: pie.clone(),
            deficit: 0,
            listed: false,
            awake: false,
        };
        let parts = count.div_ceil(FLOWS_A_JIFFY) as u64;
        let updates: Vec<_> =
            timers(params.tupdate_ns, parts).map(|timer| (timer, Vec::new())).collect();
        FqPie {
            limit: params.limit,
            quantum: i64::from(params.quantum.max(MIN_QUANTUM)),
            perturbation,
            flows: (0..count).map(|_| flow()).collect(),
            total: Backlog::default(),
            active: 0,
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            next_update: updates[0].0.next(),
            updates,
            dice: Dice::new(context.rng),
        }
    }

    /// Whether two of these flows are hashed into one queue, if their packets have bodies like
    /// `body`.
    pub fn any_share_a_queue(&self, flows: &[u32], body: &B) -> bool {
        let mut taken = vec![false; self.flows.len()];
        flows.iter().any(|flow| std::mem::replace(&mut taken[self.classify(*flow, body)], true))
    }

    /// The queue of a flow: its hash, scaled to the number of queues.
    #[inline]
    fn classify(&self, flow: u32, body: &B) -> usize {
        let hash = u64::from(body.hash(flow, self.perturbation));
        ((hash * self.flows.len() as u64) >> 32) as usize
    }

    /// Makes the updates that are due, with the queues unchanged since the last call.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        if self.next_update <= now {
            self.update(now);
        }
    }

    #[cold]
    fn update(&mut self, now: Time) {
        let flows = &mut self.flows;
        for (timer, awake) in &mut self.updates {
            let times = timer.expiries(now);
            if times == 0 {
                continue;
            }
            awake.retain(|&index| {
                let flow = &mut flows[index as usize];
                flow.pie.update(flow.queue.backlog(), times);
                flow.awake = flow.queue.backlog().packets > 0 || !flow.pie.is_at_rest();
                flow.awake
            });
        }
        let next = self.updates.iter().map(|(timer, _)| timer.next()).min();
        self.next_update = next.expect("there is a flow");
    }

    fn drop(
        &mut self,
        index: usize,
        packet: Packet<B>,
        cause: Cause,
        verdicts: &mut Vec<Verdict<B>>,
    ) {
        self.flows[index].pie.dropped();
        verdicts.push(Verdict::Dropped(packet, cause));
    }
}

impl<B: Body> Qdisc<B> for FqPie<B> {
    #[inline]
    fn enqueue(&mut self, mut packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        self.catch_up(now);
        let index = self.classify(packet.flow, &packet.body);
        if u64::from(self.total.packets) >= self.limit {
            self.dice.certain(false);
            return self.drop(index, packet, Cause::Limit, verdicts);
        }
        let flow = &mut self.flows[index];
        let passes = match flow.pie.decide(flow.queue.backlog(), packet.size, &mut self.dice) {
            Decision::Pass => true,
            Decision::Signal => mark(&mut packet, Cause::Early, verdicts),
            Decision::Drop => false,
        };
        if !passes {
            return self.drop(index, packet, Cause::Early, verdicts);
        }
        self.total.packets += 1;
        self.total.bytes += u64::from(packet.size);
        self.active += u32::from(flow.queue.backlog().packets == 0);
        flow.queue.push(packet, now);
        if !flow.listed {
            (flow.listed, flow.deficit) = (true, self.quantum);
            self.new_flows.push_back(index as u32);
        }
        if !flow.awake {
            flow.awake = true;
            self.updates[index / FLOWS_A_JIFFY].1.push(index as u32);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        self.catch_up(now);
        loop {
            let from_new = !self.new_flows.is_empty();
            let list = if from_new { &mut self.new_flows } else { &mut self.old_flows };
            let &index = list.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                list.pop_front();
                self.old_flows.push_back(index);
                continue;
            }
            if let Some(packet) = flow.queue.pop() {
                let left = flow.queue.backlog();
                flow.deficit -= i64::from(packet.size);
                flow.pie.left(packet.enqueued, packet.size, left, now);
                self.total.packets -= 1;
                self.total.bytes -= u64::from(packet.size);
                self.active -= u32::from(left.packets == 0);
                return Some(packet);
            }
            // An empty new queue passes through the old queues before it can be new again.
            // Otherwise a flow of single packets would starve the old queues.
            list.pop_front();
            if from_new && !self.old_flows.is_empty() {
                self.old_flows.push_back(index);
            } else {
                flow.listed = false;
            }
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.total
    }

    fn state(&self, _now: Time) -> State {
        State {
            limit: Some(self.limit as f64),
            flows: Some(f64::from(self.active)),
            ..State::default()
        }
    }
}

impl<B: Body> Replayable for FqPie<B> {
    fn set_recorded_draw(&mut self, early: bool) {
        self.dice.set_recorded_draw(early);
    }

    fn chance(&mut self) -> Option<f64> {
        Some(self.dice.chance())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DsField, Ecn};
    use units::{Rng, Span};

    const MS: u64 = 1_000_000;

    fn params() -> FqPieParams {
        FqPieParams {
            limit: 10_240,
            flows: 1024,
            target_ns: 15 * MS,
            tupdate_ns: 15 * MS,
            alpha: 2,
            beta: 20,
            quantum: 1514,
            memory_limit: 32 << 20,
            ecn_prob: 10,
            ecn: false,
            bytemode: false,
            dq_rate_estimator: false,
        }
    }

    fn fq_pie(params: &FqPieParams) -> FqPie<()> {
        let rng = Rng::new(1, "fq_pie");
        FqPie::new(params, Context { rate: None, mtu: 1514, header_bytes: 14, root: true, rng })
    }

    fn send(q: &mut FqPie<()>, flow: u32, size: u32, at: u64) -> Vec<Verdict<()>> {
        let mut verdicts = Vec::new();
        let ds = DsField::from(Ecn::Ect0);
        q.enqueue(
            Packet { enqueued: Time::ZERO, flow, size, ds, body: () },
            Time(at),
            &mut verdicts,
        );
        verdicts
    }

    fn served(q: &mut FqPie<()>, at: u64) -> Option<u32> {
        q.dequeue(Time(at), &mut Vec::new()).map(|packet| packet.flow)
    }

    fn causes(verdicts: &[Verdict<()>]) -> Vec<(bool, Cause)> {
        let signal = |verdict: &Verdict<()>| match verdict {
            Verdict::Dropped(_, cause) => (false, *cause),
            Verdict::Marked { cause, .. } => (true, *cause),
        };
        verdicts.iter().map(signal).collect()
    }

    /// A flow with a standing queue until `until`, ns. 40 packets wait, and one leaves and one
    /// arrives every 12 ms, so each waits 480 ms. Returns the drops and marks.
    fn overload(q: &mut FqPie<()>, flow: u32, until: u64) -> Vec<(bool, Cause)> {
        let mut signals = Vec::new();
        (0..40).for_each(|_| _ = send(q, flow, 1514, 0));
        for at in (12 * MS..until).step_by(12 * MS as usize) {
            while q.flows[q.classify(flow, &())].queue.backlog().packets < 40 {
                let verdicts = causes(&send(q, flow, 1514, at));
                signals.extend(&verdicts);
                if !verdicts.is_empty() {
                    break;
                }
            }
            served(q, at);
        }
        signals
    }

    #[test]
    fn a_flow_s_packets_raise_its_own_probability_only() {
        let mut q = fq_pie(&params());
        let signals = overload(&mut q, 1, 2_000 * MS);
        assert!(!signals.is_empty());
        assert!(signals.iter().all(|verdict| *verdict == (false, Cause::Early)));
        // Flow 2 has an equally long queue at once and loses nothing.
        assert!((0..100).all(|_| send(&mut q, 2, 1514, 2_000 * MS).is_empty()));
        let [first, second] = [1, 2].map(|flow| q.flows[q.classify(flow, &())].pie.clone());
        assert!(!first.is_at_rest());
        assert!(second.is_at_rest());
    }

    #[test]
    fn above_ecn_prob_packets_are_dropped_instead_of_marked() {
        // p grows by 4 % with each update of 20 ms while the delay is above 250 ms.
        let marked_and_dropped = [0, 50, 100].map(|ecn_prob| {
            let mut q = fq_pie(&FqPieParams { ecn: true, ecn_prob, ..params() });
            let signals = overload(&mut q, 1, 3_000 * MS);
            let marked = signals.iter().filter(|(marked, _)| *marked).count();
            (marked, signals.len() - marked)
        });
        let [(none, _), (some, _), (more, dropped)] = marked_and_dropped;
        assert!(none == 0 && 0 < some && 2 * some < more, "{marked_and_dropped:?}");
        assert!(dropped > 50, "{dropped}: p exceeds 1");
    }

    #[test]
    fn at_the_limit_the_arriving_packet_is_dropped_though_its_own_queue_is_empty() {
        let mut q = fq_pie(&FqPieParams { limit: 5, ..params() });
        assert!((0..5).all(|_| send(&mut q, 1, 1514, 0).is_empty()));
        assert_eq!(causes(&send(&mut q, 2, 100, 0)), [(false, Cause::Limit)]);
        assert_eq!(q.backlog(), Backlog { packets: 5, bytes: 5 * 1514 });
    }

    #[test]
    fn new_flows_are_served_first_and_a_turn_is_a_quantum() {
        let mut q = fq_pie(&params());
        (0..3).for_each(|_| _ = send(&mut q, 1, 1000, 0));
        (0..3).for_each(|_| _ = send(&mut q, 2, 1000, 0));
        let first: Vec<_> = (0..4).map(|_| served(&mut q, 0)).collect();
        // The quantum of 1514 bytes lets a flow send two packets of 1000 bytes; the second
        // overdraws it.
        assert_eq!(first, [1, 1, 2, 2].map(Some));
        send(&mut q, 3, 100, 0);
        assert_eq!([0; 4].map(|at| served(&mut q, at)), [Some(3), Some(1), Some(2), None]);
        // The quantum is raised to Linux's minimum: 256 bytes are three packets of 100.
        let mut q = fq_pie(&FqPieParams { quantum: 1, ..params() });
        for flow in [1, 1, 1, 1, 2] {
            send(&mut q, flow, 100, 0);
        }
        assert_eq!([0; 5].map(|at| served(&mut q, at)), [1, 1, 1, 2, 1].map(Some));
    }

    #[test]
    fn an_emptied_new_flow_becomes_old_only_behind_others() {
        let mut q = fq_pie(&params());
        send(&mut q, 1, 100, 0);
        assert_eq!((served(&mut q, 0), served(&mut q, 0)), (Some(1), None));
        assert!(!q.flows[q.classify(1, &())].listed, "no other flow is old: flow 1 is new again");
        // Flow 2 has used its quantum and is old; then flow 1 waits behind it.
        (0..3).for_each(|_| _ = send(&mut q, 2, 1514, 0));
        assert_eq!([served(&mut q, 0), served(&mut q, 0)], [Some(2), Some(2)]);
        send(&mut q, 1, 100, 0);
        assert_eq!(served(&mut q, 0), Some(1));
        send(&mut q, 1, 100, 0);
        assert_eq!([served(&mut q, 0), served(&mut q, 0)], [Some(1), Some(2)]);
        assert!(q.flows[q.classify(1, &())].listed || q.new_flows.is_empty());
    }

    #[test]
    fn flows_beyond_2048_are_updated_a_jiffy_later() {
        let timers: Vec<_> = timers(15 * MS, 3).collect();
        // As for pie: a multiple of 8 jiffies after HZ / 2, then 4 + 1 jiffies after the last.
        let first = 512 % 28 * MS;
        for (part, timer) in timers.iter().enumerate() {
            assert_eq!(timer.next(), Time(first + 4 * MS * part as u64));
            let mut timer = *timer;
            let before = timer.next();
            assert_eq!(timer.expiries(before), 1);
            assert_eq!(timer.next().since(before), Span(28 * MS));
        }
        let q = fq_pie(&FqPieParams { flows: 5000, ..params() });
        assert_eq!(q.updates.len(), 3);
    }

    #[test]
    fn updates_skip_idle_flows_without_changing_a_result() {
        let mut q = fq_pie(&params());
        overload(&mut q, 1, 1_000 * MS);
        let index = q.classify(1, &());
        assert!(q.flows[index].awake);
        while served(&mut q, 1_000 * MS).is_some() {}
        // p decays by 1/64 and by alpha's part with each update of 20 ms, until it is 0.
        q.catch_up(Time(200_000 * MS));
        assert!(q.flows[index].pie.is_at_rest() && !q.flows[index].awake);
        assert!(q.updates[0].1.is_empty());
        send(&mut q, 1, 1514, 200_001 * MS);
        assert!(q.flows[index].awake);
    }
}
