//! fred: RED that counts each flow's packets, and drops from flows that exceed their share.
//!
//! RED drops from all flows at one rate. So a flow that ignores drops gains what the others give
//! up, and a flow of a few packets loses as large a fraction as one of many. For each flow with
//! packets queued FRED counts these packets (qlen) and how often the flow had too many (strike).
//! The first `minq` packets of a flow are exempt from random drops. No flow has more than maxq
//! packets. A flow that has exceeded maxq twice has at most the packets of the average flow
//! (avgcq). Between the thresholds a flow that has its share is subject to RED.
//!
//! With `many_flows` each flow may have two packets in the queue even above the upper threshold,
//! however many flows there are (the paper's two-packet buffer). No packet is refused for the
//! average alone.
//!
//! Source: D. Lin and R. Morris, "Dynamics of random early detection", SIGCOMM 1997. The names are
//! the paper's. In the paper minth is the smaller of a quarter of the buffer and a round trip, and
//! maxth is twice minth. Its other values are: maxp 0.02, wq 0.002, minq 2 packets for a small
//! buffer and 4 for a large one.
//!
//! Deviations and readings: of minth's two bounds only the buffer is known here. A sample of the
//! average is the queue that an accepted packet finds, or that a departing one leaves. After an
//! idle period the average ages by one sample for each full packet that could have left meanwhile;
//! without a rate it does not age. A packet that finds the queue full is dropped without a strike.
//! FRED does not mark; the paper has no marks.

use crate::{Backlog, Body, Cause, Context, Fifo, Packet, Qdisc, State, Verdict};
use serde::Deserialize;
use units::{Rate, Rng, Time};

/// `fred limit PACKETS min PACKETS max PACKETS probability P weight W minq PACKETS many_flows`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FredParams {
    /// The limit of the queue, packets (100).
    pub limit: u64,
    /// The paper's minth, packets of the average queue (a quarter of `limit`).
    pub min: f64,
    /// The paper's maxth (twice `min`).
    pub max: f64,
    /// The paper's maxp: the probability reached at `max` (0.02).
    pub probability: f64,
    /// The paper's wq: the weight of a sample in the average (0.002).
    pub weight: f64,
    /// Packets of a flow that are exempt from random drops (4).
    pub minq: u32,
    /// Allow two packets of each flow above `max`, for more flows than the buffer has room for
    /// (false).
    pub many_flows: bool,
}

/// A flow that has packets queued.
#[derive(Clone, Copy, Debug, Default)]
struct FredFlow {
    qlen: u32,
    strike: u32,
}

/// With `many_flows`: the packets that each flow may have queued above `max`.
const TWO: f64 = 2.0;

/// A FIFO with FRED.
pub struct Fred<B> {
    params: FredParams,
    mtu: u32,
    /// The transmission time of a full packet, ns; 0 if unknown.
    packet_ns: f64,
    /// The paper's avg.
    average: f64,
    /// Packets since the last draw that dropped; `None` is the paper's -1.
    count: Option<u32>,
    idle_since: Option<Time>,
    /// The flows with packets queued, sorted by connection.
    flows: Vec<(u64, FredFlow)>,
    rng: Rng,
    queue: Fifo<B>,
}

impl<B: Body> Fred<B> {
    /// An empty queue, idle since the start of the run.
    pub fn new(params: &FredParams, context: Context) -> Self {
        Fred {
            params: params.clone(),
            mtu: context.mtu,
            packet_ns: context.rate.map_or(0.0, |rate| packet_ns(context.mtu, rate)),
            average: 0.0,
            count: None,
            idle_since: Some(Time::ZERO),
            flows: Vec::new(),
            rng: context.rng,
            queue: Fifo::default(),
        }
    }

    /// The index of a flow in `flows`, or the index to insert it at.
    fn place(&self, connection: u64) -> Result<usize, usize> {
        self.flows.binary_search_by_key(&connection, |&(other, _)| other)
    }

    /// Adds a sample of the queue to the average.
    #[inline]
    fn sample(&mut self) {
        let queued = f64::from(self.queue.backlog().packets);
        self.average += self.params.weight * (queued - self.average);
    }

    /// Ages the average by the idle period that ends now, which has no samples.
    fn age(&mut self, now: Time) {
        let Some(since) = self.idle_since.take() else { return };
        if self.packet_ns > 0.0 {
            let missed = now.since(since).0 as f64 / self.packet_ns;
            self.average *= libm::pow(1.0 - self.params.weight, missed);
        }
    }

    /// The paper's avgcq: the average number of packets of a flow.
    fn fair(&self) -> f64 {
        (self.average / self.flows.len().max(1) as f64).max(1.0)
    }

    /// Why a packet of this flow is dropped, and whether the drop is a strike. `None`: the packet
    /// is not dropped.
    fn decide(&mut self, flow: FredFlow) -> Option<(Cause, bool)> {
        let FredParams { min, max, minq, many_flows, .. } = self.params;
        let (qlen, fair) = (f64::from(flow.qlen), self.fair());
        let crowded = self.average >= max;
        let most = if many_flows && crowded { TWO } else { min };
        let greedy = !many_flows && crowded && qlen > 2.0 * fair;
        if qlen >= most || greedy || (qlen >= fair && flow.strike > 1) {
            return Some((Cause::Forced, true));
        }
        if crowded {
            self.count = Some(0);
            return (!many_flows).then_some((Cause::Forced, false));
        }
        if self.average < min {
            self.count = None;
            return None;
        }
        let count = self.count.map_or(0, |count| count + 1);
        self.count = Some(count);
        if qlen < fair.max(minq.into()) || !self.draws(count) {
            return None;
        }
        self.count = Some(0);
        Some((Cause::Early, false))
    }

    /// RED's draw; `count` draws have passed since the last drop.
    fn draws(&mut self, count: u32) -> bool {
        let FredParams { min, max, probability, .. } = self.params;
        let p_b = probability * (self.average - min) / (max - min);
        let p_a = p_b / (1.0 - f64::from(count) * p_b);
        // p_a is negative once the count is past the value for which p_a is 1.
        p_b > 0.0 && (!(0.0..1.0).contains(&p_a) || self.rng.chance(p_a))
    }
}

/// The transmission time of a full packet, ns.
fn packet_ns(mtu: u32, rate: Rate) -> f64 {
    if rate.0 == 0 { 0.0 } else { f64::from(mtu) * 8e9 / rate.0 as f64 }
}

impl<B: Body> Qdisc<B> for Fred<B> {
    #[inline]
    fn enqueue(&mut self, packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        self.age(now);
        let connection = packet.body.connection(packet.flow);
        let place = self.place(connection);
        let flow = place.map_or_else(|_| FredFlow::default(), |at| self.flows[at].1);
        if let Some((cause, strike)) = self.decide(flow) {
            if strike && let Ok(at) = place {
                self.flows[at].1.strike = flow.strike.saturating_add(1);
            }
            return verdicts.push(Verdict::Dropped(packet, cause));
        }
        if u64::from(self.queue.backlog().packets) >= self.params.limit {
            return verdicts.push(Verdict::Dropped(packet, Cause::Limit));
        }
        if self.queue.backlog().packets > 0 {
            self.sample();
        }
        match place {
            Ok(at) => self.flows[at].1.qlen += 1,
            Err(at) => self.flows.insert(at, (connection, FredFlow { qlen: 1, strike: 0 })),
        }
        self.queue.push(packet, now);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        let Some(packet) = self.queue.pop() else {
            self.idle_since.get_or_insert(now);
            return None;
        };
        self.sample();
        let connection = packet.body.connection(packet.flow);
        let at = self.place(connection).expect("a flow with packets queued is in the list");
        self.flows[at].1.qlen -= 1;
        if self.flows[at].1.qlen == 0 {
            self.flows.remove(at);
        }
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn state(&self, _now: Time) -> State {
        State {
            limit: Some(self.params.limit as f64),
            average: Some(self.average),
            flows: Some(self.flows.len() as f64),
            ..State::default()
        }
    }

    fn rate_changed(&mut self, rate: Rate) {
        self.packet_ns = packet_ns(self.mtu, rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DsField;

    /// The average is the last sample, since the weight is 1.
    fn fred(many_flows: bool) -> Fred<()> {
        let (limit, min, max, minq) = (100, 4.0, 8.0, 2);
        let params =
            FredParams { limit, min, max, probability: 0.02, weight: 1.0, minq, many_flows };
        let (rate, rng) = (Some(Rate::from_mbit(12)), Rng::new(1, "fred"));
        Fred::new(&params, Context { rate, mtu: 1500, header_bytes: 0, root: true, rng })
    }

    fn send(q: &mut Fred<()>, flow: u32) -> Option<Cause> {
        let mut verdicts = Vec::new();
        let ds = DsField::BEST_EFFORT;
        let packet = Packet { enqueued: Time::ZERO, flow, size: 1500, ds, body: () };
        q.enqueue(packet, Time::ZERO, &mut verdicts);
        match verdicts.pop() {
            None => None,
            Some(Verdict::Dropped(_, cause)) => Some(cause),
            Some(Verdict::Marked { .. }) => panic!("fred marks nothing"),
        }
    }

    fn strikes(q: &Fred<()>, flow: u64) -> u32 {
        q.flows[q.place(flow).expect("the flow has packets queued")].1.strike
    }

    #[test]
    fn a_flow_may_queue_minth_packets_and_after_two_strikes_only_its_share() {
        let mut q = fred(false);
        for _ in 0..4 {
            assert_eq!(send(&mut q, 7), None, "avg is 0, 0, 1, 2: below minth");
        }
        // qlen 4 is maxq.
        assert_eq!([send(&mut q, 7), send(&mut q, 7)], [Some(Cause::Forced); 2]);
        assert_eq!(strikes(&q, 7), 2);
        // Another flow halves avgcq: 4 packets found, two flows.
        assert_eq!(send(&mut q, 8), None);
        assert_eq!(q.fair(), 2.0);
        // Flow 7 sends one packet. Its qlen of 3 is below maxq, but its strikes limit it to its
        // share.
        assert!(q.dequeue(Time(1), &mut Vec::new()).is_some_and(|packet| packet.flow == 7));
        assert_eq!((q.average, q.fair()), (4.0, 2.0));
        assert_eq!(send(&mut q, 7), Some(Cause::Forced));
        assert_eq!(strikes(&q, 7), 3);
        // After its packets have left, the flow is forgotten.
        while q.dequeue(Time(2), &mut Vec::new()).is_some() {}
        assert!(q.flows.is_empty());
        assert_eq!(send(&mut q, 7), None);
    }

    #[test]
    fn a_flow_within_minq_or_its_share_has_no_random_drops() {
        let mut q = fred(false);
        // Every draw drops.
        q.params.probability = 1.0;
        for flow in 0..6 {
            assert_eq!(send(&mut q, flow), None);
        }
        // avg is 5, its p_b (5 - 4) / (8 - 4), avgcq 1: all have fewer than minq.
        assert_eq!((q.average, q.count), (5.0, Some(0)));
        assert_eq!(send(&mut q, 0), None, "qlen 1 is below minq");
        // At avg 6, p_b is 1/2. p_a = p_b / (1 - count p_b) is 1 for the second packet: count was
        // 0, then 1.
        assert_eq!((q.average, q.count), (6.0, Some(1)));
        q.average = 6.0;
        assert_eq!(send(&mut q, 0), Some(Cause::Early));
        assert_eq!(
            (q.count, strikes(&q, 0)),
            (Some(0), 0),
            "a random drop does not count as a strike"
        );
    }

    #[test]
    fn above_maxth_all_is_dropped_or_with_many_flows_each_keeps_two_packets() {
        for many_flows in [false, true] {
            let mut q = fred(many_flows);
            q.params.probability = 0.0;
            for flow in 0..9 {
                assert_eq!(send(&mut q, flow), None);
            }
            assert_eq!(q.average, 8.0);
            let newcomer = send(&mut q, 9);
            assert_eq!(newcomer, (!many_flows).then_some(Cause::Forced));
            if many_flows {
                assert_eq!(send(&mut q, 9), None, "its second");
                assert_eq!(send(&mut q, 9), Some(Cause::Forced));
                assert_eq!(strikes(&q, 9), 1);
            }
        }
    }

    #[test]
    fn an_idle_link_ages_the_average() {
        let mut q = fred(false);
        q.params.weight = 0.5;
        for _ in 0..4 {
            send(&mut q, 1);
        }
        while q.dequeue(Time(0), &mut Vec::new()).is_some() {}
        // Arrivals found 0 (no sample), 1, 2, 3: .5, 1.25, 2.125. Departures left 3, 2, 1, 0:
        // 2.5625, 2.28125, 1.640625.
        assert_eq!(q.average, 0.8203125);
        // A packet of 1500 bytes takes 1 ms at 12 Mbit/s.
        q.age(Time(2_000_000));
        assert_eq!(q.average, 0.8203125 / 4.0);
    }
}
