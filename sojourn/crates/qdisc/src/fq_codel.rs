//! fq_codel: a queue for each flow, served by deficit round robin, each under CoDel.
//!
//! Packets are hashed by flow into `flows` queues. There are two lists of queues, and new queues
//! are served before old ones. A queue that was empty may send one quantum ahead of those with a
//! backlog. So sparse flows (a ping, a SYN, a voice packet) overtake a bulk transfer without
//! classification. When the total is over the limit, the queue with the most bytes loses up to half
//! its backlog at the head.
//!
//! Packets are in one slab and linked by index. So an empty queue needs no memory, and only the
//! search for the longest queue depends on the number of flows.
//!
//! Source: RFC 8290; Linux net/sched/sch_fq_codel.c for the behaviour of `linux`, ns-3's
//! FqCoDelQueueDisc for that of `ns3`.
//!
//! | | linux | rfc | ns3 | mac80211 |
//! |---|---|---|---|---|
//! | backlog in CoDel's test for a short queue | the total | the flow's | the flow's | the flow's, and only 0 is short |
//! | a new queue found empty | joins the old ones if there are any | joins the old ones | as rfc | as linux |
//! | overflow drops at most | half the bytes | half the packets | half the bytes | half the packets, and again until it fits |
//! | overflow adds to CoDel's count | yes | no | no | no |
//! | quantum | at least 256 | as given | as given | as given |
//!
//! The memory limit is Linux's in every variant. It counts the memory that packets take in a Linux
//! host (`units::memory`): 2280 bytes for a full segment, 2 for a bare ACK.
//!
//! `linux7.3` and `linux2012` differ from `linux` in the control law alone: see codel.rs. If one of
//! the three is the device's root, packets may bypass it and are charged to no flow: see `bypass`.
//!
//! `mac80211` is the queueing in Linux's Wi-Fi stack, which replaces the qdisc, for one station.
//! Source: T. Høiland-Jørgensen and others, "Ending the Anomaly", USENIX ATC 2017. Not modelled:
//! further stations, access classes, airtime fairness, aggregates and the driver's queue (AQL).
//!
//! As in Linux each flow has a random hash of 32 bits, scaled to the number of queues. Two flows
//! share a queue with a probability of 1/`flows`, for the whole run. The discipline's random stream
//! (or a recording) decides which. Deviation: the ns3 variant has no set-associative hash.

use crate::bypass::Bypass;
use crate::codel::{CodelVariant, Control, Dropping, Source};
use crate::slab::{NONE, Slab};
use crate::{Backlog, Body, Cause, Context, DsSelector, Packet, Qdisc, State, Verdict};
use serde::Deserialize;
use units::Time;

/// `fq_codel limit PACKETS flows N memory_limit BYTES target TIME interval TIME quantum BYTES ecn|noecn ce_threshold TIME ce_threshold_selector VALUE/MASK drop_batch N`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FqCodelParams {
    /// The algorithm: the table above, and CoDel's.
    pub variant: CodelVariant,
    /// The limit of all queues together, packets (10240).
    pub limit: u64,
    /// The number of queues that flows are hashed into (1024).
    pub flows: u32,
    /// The memory on a Linux host that all queues together may take, bytes (32 MiB).
    pub memory_limit: u64,
    /// CoDel's target, ns (5 000 000).
    pub target_ns: u64,
    /// CoDel's interval, ns (100 000 000).
    pub interval_ns: u64,
    /// Bytes a queue may send in its turn (1514).
    pub quantum: u32,
    /// Mark ECN-capable packets instead of dropping them (true).
    pub ecn: bool,
    /// Mark every ECN-capable packet whose sojourn is longer than this, ns; `None`: off.
    pub ce_threshold_ns: Option<u64>,
    /// The DS fields that the threshold applies to; `None`: all.
    pub ce_threshold_selector: Option<DsSelector>,
    /// The largest number of packets dropped at one overflow (64).
    pub drop_batch: u32,
}

/// Linux raises a smaller quantum to this many bytes.
const LINUX_MIN_QUANTUM: u32 = 256;

/// The list that a queue is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    NoList,
    New,
    Old,
}

/// A queue: its packets and its place in the round.
#[derive(Clone, Debug)]
struct Flow {
    head: u32,
    tail: u32,
    packets: u32,
    /// The bytes that the flow may still send in this turn.
    deficit: i64,
    on: On,
    /// The next queue of the list.
    next: u32,
}

/// A list of queues, linked through `Flow::next`. Only the head is removed.
#[derive(Clone, Copy, Debug)]
struct Round {
    head: u32,
    tail: u32,
}

impl Round {
    const EMPTY: Round = Round { head: NONE, tail: NONE };

    #[inline]
    fn push(&mut self, flows: &mut [Flow], index: u32) {
        flows[index as usize].next = NONE;
        if self.head == NONE {
            self.head = index;
        } else {
            flows[self.tail as usize].next = index;
        }
        self.tail = index;
    }

    #[inline]
    fn pop(&mut self, flows: &mut [Flow]) {
        self.head = flows[self.head as usize].next;
    }
}

/// The queues of all flows, and their totals.
#[derive(Debug)]
struct Queues<B> {
    slab: Slab<B>,
    flows: Vec<Flow>,
    /// The bytes queued for each flow. They are apart from `flows` so that the search for the
    /// longest queue reads little memory.
    flow_bytes: Vec<u64>,
    total: Backlog,
    /// The memory that the packets take on a Linux host, bytes.
    memory: u64,
    /// Bytes of the link's header within a packet's size.
    header_bytes: u32,
    /// The number of flows with packets.
    active: u32,
}

impl<B: Body> Queues<B> {
    fn truesize(&self, packet: &Packet<B>) -> u64 {
        packet.body.truesize(packet.size - self.header_bytes)
    }

    #[inline]
    fn push(&mut self, index: u32, packet: Packet<B>) {
        let size = u64::from(packet.size);
        self.memory += self.truesize(&packet);
        let place = self.slab.insert(packet);
        let flow = &mut self.flows[index as usize];
        if flow.packets == 0 {
            flow.head = place;
            self.active += 1;
        } else {
            self.slab.link(flow.tail, place);
        }
        flow.tail = place;
        flow.packets += 1;
        self.flow_bytes[index as usize] += size;
        self.total.packets += 1;
        self.total.bytes += size;
    }

    #[inline]
    fn pop(&mut self, index: u32) -> Option<Packet<B>> {
        let flow = &mut self.flows[index as usize];
        if flow.packets == 0 {
            return None;
        }
        let (packet, next) = self.slab.remove(flow.head);
        flow.head = next;
        flow.packets -= 1;
        if flow.packets == 0 {
            self.active -= 1;
        }
        let size = u64::from(packet.size);
        self.memory -= self.truesize(&packet);
        self.flow_bytes[index as usize] -= size;
        self.total.packets -= 1;
        self.total.bytes -= size;
        Some(packet)
    }

    /// The flow with the most bytes, the first of equals. A linear search, as in fq_codel_drop.
    fn longest(&self) -> u32 {
        let mut longest = 0;
        for (index, bytes) in self.flow_bytes.iter().enumerate() {
            if *bytes > self.flow_bytes[longest] {
                longest = index;
            }
        }
        longest as u32
    }
}

/// One flow's queue as CoDel sees it.
struct FlowSource<'a, B> {
    queues: &'a mut Queues<B>,
    index: u32,
    whole_backlog: bool,
}

impl<B: Body> Source<B> for FlowSource<'_, B> {
    #[inline]
    fn pop(&mut self) -> Option<Packet<B>> {
        self.queues.pop(self.index)
    }

    #[inline]
    fn remaining_bytes(&self) -> u64 {
        if self.whole_backlog {
            self.queues.total.bytes
        } else {
            self.queues.flow_bytes[self.index as usize]
        }
    }
}

/// Fair queueing with CoDel on each queue.
pub struct FqCodel<B> {
    variant: CodelVariant,
    limit: u64,
    memory_limit: u64,
    quantum: i64,
    drop_batch: u32,
    perturbation: u64,
    control: Control,
    /// CoDel's state, by flow.
    dropping: Vec<Dropping>,
    queues: Queues<B>,
    new_flows: Round,
    old_flows: Round,
    bypass: Bypass<B>,
}

impl<B: Body> FqCodel<B> {
    /// An empty queue. The hash key is drawn from the context's random stream. There is at least
    /// one flow and one byte of quantum.
    pub fn new(params: &FqCodelParams, mut context: Context) -> Self {
        let flows = params.flows.max(1) as usize;
        let least_quantum = if params.variant.is_linux() { LINUX_MIN_QUANTUM } else { 1 };
        let times = (params.target_ns, params.interval_ns);
        let flow =
            Flow { head: NONE, tail: NONE, packets: 0, deficit: 0, on: On::NoList, next: NONE };
        let mut control =
            Control::new(params.variant, times, params.ecn, params.ce_threshold_ns, context.mtu);
        control.ce_selector = params.ce_threshold_selector.unwrap_or_default();
        FqCodel {
            variant: params.variant,
            limit: params.limit,
            memory_limit: params.memory_limit,
            quantum: i64::from(params.quantum.max(least_quantum)),
            drop_batch: params.drop_batch.max(1),
            perturbation: context.rng.next_u64(),
            control,
            dropping: vec![Dropping::default(); flows],
            queues: Queues {
                slab: Slab::default(),
                flows: vec![flow; flows],
                flow_bytes: vec![0; flows],
                total: Backlog::default(),
                memory: 0,
                header_bytes: context.header_bytes,
                active: 0,
            },
            new_flows: Round::EMPTY,
            old_flows: Round::EMPTY,
            bypass: Bypass::new(params.variant.is_linux() && context.root && params.limit > 0),
        }
    }

    /// Whether two of these flows are hashed into one queue, if their packets have bodies like
    /// `body`.
    pub fn any_share_a_queue(&self, flows: &[u32], body: &B) -> bool {
        let mut taken = vec![false; self.queues.flows.len()];
        flows
            .iter()
            .any(|flow| std::mem::replace(&mut taken[self.classify(*flow, body) as usize], true))
    }

    /// The queue of a flow: its hash, scaled to the number of queues.
    #[inline]
    fn classify(&self, flow: u32, body: &B) -> u32 {
        let hash = u64::from(body.hash(flow, self.perturbation));
        ((hash * self.queues.flows.len() as u64) >> 32) as u32
    }

    /// The limit that is exceeded, if any.
    #[inline]
    fn over(&self) -> Option<Cause> {
        if self.queues.memory > self.memory_limit {
            Some(Cause::Overmemory)
        } else {
            let packets = self.bypass.backlog(self.queues.total).packets;
            (u64::from(packets) > self.limit).then_some(Cause::Limit)
        }
    }

    /// fq_codel_drop: drops packets at the head of the longest queue, several at once to spread the
    /// cost of the search.
    #[cold]
    fn drop_from_longest(&mut self, cause: Cause, verdicts: &mut Vec<Verdict<B>>) {
        let index = self.queues.longest();
        let half_bytes = self.queues.flow_bytes[index as usize] / 2;
        let half_packets = self.queues.flows[index as usize].packets / 2;
        let (mut packets, mut bytes) = (0, 0);
        while let Some(packet) = self.queues.pop(index) {
            packets += 1;
            bytes += u64::from(packet.size);
            verdicts.push(Verdict::Dropped(packet, cause));
            let half_done = match self.variant {
                CodelVariant::Rfc | CodelVariant::Mac80211 => packets >= half_packets,
                _ => bytes >= half_bytes,
            };
            if half_done || packets >= self.drop_batch {
                break;
            }
        }
        if self.variant.is_linux() {
            // fq_codel_drop: the drops raise CoDel's count, and so its drop rate.
            let dropping = &mut self.dropping[index as usize];
            dropping.count = dropping.count.wrapping_add(packets);
        }
    }
}

impl<B: Body> FqCodel<B> {
    /// Sets the parameters, and drops packets in the order in which they would leave until the
    /// limits are kept (fq_codel_change). CoDel may drop others on the way.
    pub(crate) fn change(
        &mut self,
        params: &FqCodelParams,
        now: Time,
        verdicts: &mut Vec<Verdict<B>>,
    ) {
        let times = (params.target_ns, params.interval_ns);
        self.control = self.control.changed(times, params.ecn, params.ce_threshold_ns);
        self.control.ce_selector = params.ce_threshold_selector.unwrap_or_default();
        self.limit = params.limit;
        self.memory_limit = params.memory_limit;
        self.quantum = i64::from(params.quantum.max(LINUX_MIN_QUANTUM));
        self.drop_batch = params.drop_batch.max(1);
        while self.over().is_some()
            && let Some(packet) = self.dequeue(now, verdicts)
        {
            verdicts.push(Verdict::Dropped(packet, Cause::Limit));
        }
    }
}

impl<B: Body> Qdisc<B> for FqCodel<B> {
    #[inline]
    fn enqueue(&mut self, packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        let Some(mut packet) = self.bypass.take_past(packet, self.queues.total, now) else {
            return;
        };
        packet.enqueued = now;
        let index = self.classify(packet.flow, &packet.body);
        self.queues.push(index, packet);
        let flow = &mut self.queues.flows[index as usize];
        if flow.on == On::NoList {
            flow.on = On::New;
            flow.deficit = self.quantum;
            self.new_flows.push(&mut self.queues.flows, index);
        }
        while let Some(cause) = self.over() {
            self.drop_from_longest(cause, verdicts);
            if self.variant != CodelVariant::Mac80211 {
                break;
            }
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        if let Some(packet) = self.bypass.take_out() {
            return Some(packet);
        }
        loop {
            let from_new = self.new_flows.head != NONE;
            let index = if from_new { self.new_flows.head } else { self.old_flows.head };
            if index == NONE {
                return None;
            }
            let flow = &mut self.queues.flows[index as usize];
            let spent = flow.deficit <= 0;
            if spent {
                flow.deficit += self.quantum;
            } else {
                let whole_backlog = self.variant.is_linux();
                let mut source = FlowSource { queues: &mut self.queues, index, whole_backlog };
                let dropping = &mut self.dropping[index as usize];
                if let Some(packet) = self.control.dequeue(dropping, &mut source, now, verdicts) {
                    self.queues.flows[index as usize].deficit -= i64::from(packet.size);
                    return Some(packet);
                }
            }
            // The queue's turn is over: it has used its deficit, or it is empty. An empty new queue
            // passes through the old queues before it can be new again. Otherwise a flow of single
            // packets would starve the old queues.
            let list = if from_new { &mut self.new_flows } else { &mut self.old_flows };
            list.pop(&mut self.queues.flows);
            let always = matches!(self.variant, CodelVariant::Rfc | CodelVariant::Ns3);
            let passes_on = always || self.old_flows.head != NONE;
            if spent || (from_new && passes_on) {
                self.queues.flows[index as usize].on = On::Old;
                self.old_flows.push(&mut self.queues.flows, index);
            } else {
                self.queues.flows[index as usize].on = On::NoList;
            }
        }
    }

    #[inline]
    fn may_be_bypassed(&self) -> bool {
        self.bypass.is_open()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.bypass.backlog(self.queues.total)
    }

    fn state(&self, _now: Time) -> State {
        // The sum of counts over the flows: the total of CoDel's activity.
        let counts = self.dropping.iter().filter(|d| d.dropping).map(|d| f64::from(d.count));
        State {
            limit: Some(self.limit as f64),
            // An empty sum would be -0.0.
            count: Some(counts.fold(0.0, |sum, count| sum + count)),
            flows: Some(f64::from(self.queues.active)),
            ..State::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DsField;
    use units::Rng;

    const MS: u64 = 1_000_000;

    fn params(variant: CodelVariant) -> FqCodelParams {
        FqCodelParams {
            variant,
            limit: 10_240,
            flows: 1024,
            memory_limit: 32 << 20,
            target_ns: 5 * MS,
            interval_ns: 100 * MS,
            quantum: 1514,
            ecn: true,
            ce_threshold_ns: None,
            ce_threshold_selector: None,
            drop_batch: 64,
        }
    }

    fn fq_codel(params: &FqCodelParams) -> FqCodel<()> {
        FqCodel::new(
            params,
            Context {
                rate: None,
                mtu: 1514,
                header_bytes: 0,
                root: false,
                rng: Rng::new(1, "fq_codel"),
            },
        )
    }

    fn send(q: &mut FqCodel<()>, flow: u32, size: u32, ms: u64) -> Vec<Verdict<()>> {
        let mut verdicts = Vec::new();
        let packet =
            Packet { enqueued: Time::ZERO, flow, size, ds: DsField::BEST_EFFORT, body: () };
        q.enqueue(packet, Time(ms * MS), &mut verdicts);
        verdicts
    }

    fn served(q: &mut FqCodel<()>, ms: u64) -> Option<u32> {
        q.dequeue(Time(ms * MS), &mut Vec::new()).map(|p| p.flow)
    }

    fn deficit(q: &FqCodel<()>, flow: u32) -> i64 {
        q.queues.flows[q.classify(flow, &()) as usize].deficit
    }

    #[test]
    fn ce_threshold_marks_the_packets_that_the_selector_matches() {
        let cs1 = DsField(0x22);
        for (selector, marks) in [(None, 2), (Some(DsSelector { value: 0x20, mask: 0xfc }), 1)] {
            let mut q = fq_codel(&FqCodelParams {
                ce_threshold_ns: Some(MS),
                ce_threshold_selector: selector,
                ..params(CodelVariant::Linux)
            });
            let mut verdicts = Vec::new();
            for (flow, ds) in [(1, cs1), (2, DsField(0x02))] {
                let packet = Packet { enqueued: Time::ZERO, flow, size: 1514, ds, body: () };
                q.enqueue(packet, Time::ZERO, &mut verdicts);
            }
            let served = || q.dequeue(Time(3 * MS), &mut verdicts);
            let fields: Vec<_> = std::iter::from_fn(served).map(|packet| packet.ds.0).collect();
            assert_eq!((fields[0], verdicts.len()), (0x23, marks));
        }
    }

    #[test]
    fn ns3_deficit_case() {
        // Quantum 90, packets of 120 bytes, three of flow 1 and two of flow 2.
        for variant in [CodelVariant::Rfc, CodelVariant::Ns3] {
            let mut q = fq_codel(&FqCodelParams { quantum: 90, ..params(variant) });
            for flow in [1, 1, 1, 2, 2] {
                assert!(send(&mut q, flow, 120, 0).is_empty());
            }
            assert_eq!((deficit(&q, 1), deficit(&q, 2)), (90, 90));
            let mut turns = Vec::new();
            for _ in 0..6 {
                let flow = served(&mut q, 0);
                turns.push((flow, deficit(&q, 1), deficit(&q, 2)));
            }
            let want = [
                (Some(1), -30, 90),
                (Some(2), 60, -30),
                (Some(1), -60, 60),
                (Some(2), 30, -60),
                (Some(1), -90, 30),
                (None, 90, 30),
            ];
            assert_eq!(turns, want);
        }
    }

    #[test]
    fn mac80211_drops_until_it_fits_and_lets_codel_act_on_a_packet_that_is_left() {
        for (variant, drops) in [(CodelVariant::Rfc, 1), (CodelVariant::Mac80211, 2)] {
            let tight = FqCodelParams { memory_limit: 2500, drop_batch: 1, ..params(variant) };
            let mut q = fq_codel(&tight);
            for _ in 0..3 {
                assert!(send(&mut q, 1, 225, 0).is_empty());
            }
            // The four packets take 3 * 832 + 1280 bytes of memory. Flow 1, with 675 bytes, loses a
            // packet first, then flow 2.
            assert_eq!(send(&mut q, 2, 600, 0).len(), drops);
            let mut q = fq_codel(&FqCodelParams { limit: 10, ..params(variant) });
            let drops = (0..11).map(|_| send(&mut q, 1, 225, 0).len()).last();
            assert_eq!(drops, Some(5), "half of eleven");
        }
        for (variant, drops) in [(CodelVariant::Linux, 0), (CodelVariant::Mac80211, 1)] {
            let mut q = fq_codel(&params(variant));
            for _ in 0..3 {
                assert!(send(&mut q, 1, 1000, 0).is_empty());
            }
            assert_eq!(served(&mut q, 30), Some(1));
            let mut verdicts = Vec::new();
            assert!(q.dequeue(Time(140 * MS), &mut verdicts).is_some());
            assert_eq!(verdicts.len(), drops, "1000 bytes are left");
        }
    }

    #[test]
    fn linux_raises_a_small_quantum() {
        assert_eq!(
            fq_codel(&FqCodelParams { quantum: 90, ..params(CodelVariant::Linux) }).quantum,
            256
        );
    }

    #[test]
    fn a_full_queue_takes_from_the_fat_flow_at_the_head() {
        for (variant, drops) in
            [(CodelVariant::Linux, 2), (CodelVariant::Rfc, 1), (CodelVariant::Ns3, 2)]
        {
            let mut q = fq_codel(&FqCodelParams { limit: 4, ..params(variant) });
            send(&mut q, 1, 1000, 0);
            for ms in 1..4 {
                assert!(send(&mut q, 2, 1000, ms).is_empty());
            }
            // The fifth packet belongs to the thin flow. The fat flow has three packets and loses
            // some: two to lose half its bytes, one to lose half its packets.
            let verdicts = send(&mut q, 1, 100, 4);
            assert_eq!(verdicts.len(), drops, "{variant:?}");
            assert!(matches!(
                verdicts[0],
                Verdict::Dropped(Packet { flow: 2, enqueued: Time(MS), .. }, Cause::Limit)
            ));
            assert_eq!(q.backlog().packets, 5 - drops as u32);
            // Linux adds the drops to CoDel's count.
            let index = q.classify(2, &()) as usize;
            assert_eq!(q.dropping[index].count, if variant == CodelVariant::Linux { 2 } else { 0 });
        }
    }

    #[test]
    fn an_overflow_drops_no_more_than_a_batch() {
        let mut q =
            fq_codel(&FqCodelParams { limit: 1000, drop_batch: 64, ..params(CodelVariant::Linux) });
        for _ in 0..1000 {
            send(&mut q, 7, 1514, 0);
        }
        assert_eq!(send(&mut q, 7, 1514, 0).len(), 64);
    }

    #[test]
    fn a_drop_above_the_memory_limit_counts_as_overmemory() {
        // Two datagrams of 1500 bytes take 2304 each, one of 100 bytes 832.
        for (memory_limit, drops) in [(2 * 2304 + 831, 1), (2 * 2304 + 832, 0)] {
            let mut q = fq_codel(&FqCodelParams { memory_limit, ..params(CodelVariant::Linux) });
            assert!(send(&mut q, 1, 1500, 0).is_empty());
            assert!(send(&mut q, 1, 1500, 0).is_empty());
            let verdicts = send(&mut q, 2, 100, 0);
            assert_eq!(verdicts.len(), drops);
            assert!(
                verdicts.iter().all(|f| matches!(
                    f,
                    Verdict::Dropped(Packet { flow: 1, .. }, Cause::Overmemory)
                ))
            );
        }
    }

    /// A body that takes this much memory, less the link's header.
    struct Charged(u64);

    impl crate::ReplayHints for Charged {}

    impl Body for Charged {
        fn truesize(&self, ip_bytes: u32) -> u64 {
            self.0 + u64::from(ip_bytes)
        }
    }

    #[test]
    fn memory_counts_queued_packets_without_the_link_s_header() {
        let context = Context {
            rate: None,
            mtu: 1514,
            header_bytes: 14,
            root: false,
            rng: Rng::new(1, "fq_codel"),
        };
        let limited = FqCodelParams { memory_limit: 6000, ..params(CodelVariant::Linux) };
        let mut q = FqCodel::new(&limited, context);
        let mut verdicts = Vec::new();
        let mut send = |q: &mut FqCodel<Charged>, extra| {
            let ds = DsField::BEST_EFFORT;
            q.enqueue(
                Packet { enqueued: Time::ZERO, flow: 1, size: 1514, ds, body: Charged(extra) },
                Time(0),
                &mut verdicts,
            );
            verdicts.drain(..).count()
        };
        assert_eq!([500; 3].map(|extra| send(&mut q, extra)), [0; 3]);
        assert!(q.dequeue(Time::ZERO, &mut Vec::new()).is_some());
        assert_eq!([send(&mut q, 500), q.queues.memory as usize], [0, 6000]);
        // One byte more: half the bytes of the four packets are dropped.
        assert_eq!(send(&mut q, 0), 2);
        assert_eq!((q.backlog().packets, q.queues.memory), (2, 3500));
    }

    #[test]
    fn a_sparse_flow_passes_a_standing_queue() {
        let mut q = fq_codel(&params(CodelVariant::Linux));
        for _ in 0..100 {
            send(&mut q, 1, 757, 0);
        }
        // Two packets use up the quantum that flow 1 has as a new flow. Flow 1 sends the third as
        // an old flow.
        assert_eq!([(); 3].map(|()| served(&mut q, 0)), [Some(1); 3]);
        send(&mut q, 2, 100, 0);
        assert_eq!(served(&mut q, 0), Some(2));
        assert_eq!(served(&mut q, 0), Some(1));
        // The sparse flow was found empty and moved to the old flows. Until its turn there it is
        // not new again.
        send(&mut q, 2, 100, 0);
        assert_eq!(q.queues.flows[q.classify(2, &()) as usize].on, On::Old);
        assert_eq!(served(&mut q, 0), Some(2));
    }

    #[test]
    fn large_and_small_packets_share_the_bytes() {
        let mut q = fq_codel(&params(CodelVariant::Linux));
        for _ in 0..1000 {
            send(&mut q, 1, 1514, 0);
            for _ in 0..5 {
                send(&mut q, 2, 300, 0);
            }
        }
        let (mut first, mut second) = (0u64, 0u64);
        for _ in 0..3000 {
            match q.dequeue(Time::ZERO, &mut Vec::new()) {
                Some(p) if p.flow == 1 => first += u64::from(p.size),
                Some(p) => second += u64::from(p.size),
                None => unreachable!("6000 packets were sent"),
            }
        }
        assert!(first.abs_diff(second) <= 2 * 1514, "{first} {second}");
    }

    #[test]
    fn linux_dropped_the_single_packet_of_a_flow_behind_a_backlog_until_2026() {
        let variants = [CodelVariant::Linux2012, CodelVariant::Linux, CodelVariant::Rfc];
        for (variant, dropped) in variants.into_iter().zip([true, false, false]) {
            let mut q = fq_codel(&params(variant));
            for _ in 0..2000 {
                send(&mut q, 1, 1514, 0);
            }
            let mut verdicts = Vec::new();
            // Flow 2 never has more than one packet. Each waits 20 ms because the link stops for so
            // long.
            for ms in (20..1000).step_by(20) {
                send(&mut q, 2, 100, ms - 20);
                for _ in 0..3 {
                    q.dequeue(Time(ms * MS), &mut verdicts);
                }
            }
            let of_two = verdicts
                .iter()
                .any(|f| matches!(f, Verdict::Dropped(Packet { flow: 2, .. }, Cause::Target)));
            assert_eq!(of_two, dropped, "{variant:?}");
        }
    }

    #[test]
    fn flows_share_a_queue_where_there_are_fewer_queues_than_flows() {
        let q = fq_codel(&FqCodelParams { flows: 4, ..params(CodelVariant::Linux) });
        assert!(q.any_share_a_queue(&[1, 2, 3, 4, 5], &()));
        assert!(!q.any_share_a_queue(&[3], &()));
        assert!(q.any_share_a_queue(&[3, 3], &()));
    }

    #[test]
    fn packets_that_bypass_the_queues_are_charged_to_no_flow() {
        let context = Context {
            rate: None,
            mtu: 1514,
            header_bytes: 0,
            root: true,
            rng: Rng::new(1, "fq_codel"),
        };
        let mut q = FqCodel::new(&params(CodelVariant::Linux), context);
        // The first packet of flow 1 waits for the driver. The second finds flow 1 new, with a
        // whole quantum. So flow 1's packet is next, not flow 2's.
        for flow in [1, 1, 2] {
            send(&mut q, flow, 1514, 0);
        }
        assert_eq!((q.backlog().packets, q.queues.total.packets), (3, 2));
        assert_eq!([(); 3].map(|()| served(&mut q, 0)), [Some(1), Some(1), Some(2)]);
        assert_eq!(served(&mut q, 0), None);
    }

    #[test]
    fn flows_spread_over_the_buckets_as_balls_over_urns() {
        let q = fq_codel(&params(CodelVariant::Linux));
        let mut hit = vec![false; 1024];
        for flow in 0..1024 {
            hit[q.classify(flow, &()) as usize] = true;
        }
        // 1 - 1/e of 1024 are 647, with a standard deviation of 16.
        let used = hit.iter().filter(|h| **h).count();
        assert!((583..=711).contains(&used), "{used}");
    }

    #[test]
    fn the_slab_never_grows_past_the_largest_backlog() {
        let mut q = fq_codel(&params(CodelVariant::Rfc));
        for round in 0..50 {
            for flow in 0..200 {
                send(&mut q, flow * 7 + round, 500, 0);
            }
            while served(&mut q, 0).is_some() {}
        }
        assert_eq!(q.queues.slab.most(), 200);
        assert_eq!((q.queues.active, q.backlog()), (0, Backlog::default()));
    }

    #[test]
    fn drops_at_the_limit_do_not_count_in_the_first_dropping_state() {
        // Linux resumes the old count only if the last dropping state is less than 16 intervals
        // ago. There was none.
        let mut q =
            fq_codel(&FqCodelParams { limit: 40, ecn: false, ..params(CodelVariant::Linux) });
        let by_limit: usize = (0..60).map(|_| send(&mut q, 1, 1514, 0).len()).sum();
        assert!(by_limit >= 20);
        // A dequeue every 10 ms: the sojourn is above target from 10 ms on. The first drop is after
        // more than an interval, the next one an interval later.
        let mut dropped_at = Vec::new();
        for ms in (10..=230).step_by(10) {
            let mut verdicts = Vec::new();
            q.dequeue(Time(ms * MS), &mut verdicts).expect("packets are left");
            dropped_at.extend(verdicts.iter().map(|_| ms));
        }
        assert_eq!(dropped_at, [120, 220]);
    }
}
