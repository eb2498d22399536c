//! hhf: the heavy-hitter filter. Flows that send much share one queue and all others share another.
//! The others get the greater part of the link.
//!
//! A filter finds the heavy flows. It has four arrays of counters, and a packet's hash selects a
//! counter in each. A flow is heavy once all of its counters are above `admit_bytes`; another flow
//! may raise one of them, but hardly all. The counters are cleared every `reset_timeout`, so a flow
//! is heavy by its rate: 128 KiB in 40 ms are 26 Mbit/s. A heavy flow is remembered until it has
//! sent nothing for `evict_timeout`. The two queues are served by deficit round robin with the
//! weights `non_hh_weight` and 1. The light queue is served first if it was empty. Beyond the limit
//! the oldest packet of the heavy queue is dropped.
//!
//! Source: Estan, Varghese, "New Directions in Traffic Measurement and Accounting" (SIGCOMM 2002):
//! multistage filters with conservative update (§3.3.2) and shielding (§3.3.1); tc-hhf(8); Linux
//! net/sched/sch_hhf.c (6.12) for the behaviour:
//!
//! - The arrays have 1024 counters. Three indices are ten bits each of the 32-bit hash. The fourth
//!   is the exclusive or of these three and the two remaining bits.
//! - Time is counted in jiffies. Timeouts take effect at the next packet after they have passed.
//! - Heavy flows are in 1024 lists. The last expired entry of a list is kept for reuse.
//!
//! As in Linux, packets of a flow that becomes heavy may overtake its packets in the light queue.
//!
//! Deviation: Linux's clock of resets starts when the discipline is created; here it starts at time
//! 0.

use crate::timer::JIFFY;
use crate::{Backlog, Body, Cause, Context, Fifo, Packet, Qdisc, State, Verdict};
use serde::Deserialize;
use std::collections::VecDeque;
use units::Time;

/// `hhf limit PACKETS quantum BYTES hh_limit N reset_timeout TIME admit_bytes BYTES ...`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HhfParams {
    /// The limit of both queues together, packets (1000).
    pub limit: u64,
    /// Bytes that a queue of weight 1 may send in its turn. `None`: the largest packet.
    pub quantum: Option<u32>,
    /// The largest number of heavy flows that are remembered (2048).
    pub hh_limit: u32,
    /// The period after which the counters are cleared, ns, counted in jiffies (40 000 000).
    pub reset_timeout_ns: u64,
    /// Bytes above which a flow is heavy (131 072).
    pub admit_bytes: u32,
    /// The time for which a heavy flow that sends nothing is remembered, ns, in jiffies (1 000 000
    /// 000).
    pub evict_timeout_ns: u64,
    /// The weight of the flows that are not heavy (2).
    pub non_hh_weight: u32,
}

/// The counters of an array and the lists of heavy flows: an index has ten bits.
const PLACES: usize = 1024;
const ARRAYS: usize = 4;

/// A flow that is or was heavy.
#[derive(Clone, Copy)]
struct Heavy {
    hash: u32,
    /// The jiffy of its last packet.
    last_packet: u64,
}

/// The filter that finds heavy flows.
struct Filter {
    admit_bytes: u32,
    reset_jiffies: u64,
    evict_jiffies: u64,
    most: u32,
    counters: Box<[[u32; PLACES]; ARRAYS]>,
    /// The jiffy in which the counters were last cleared.
    cleared: u64,
    heavy: Vec<Vec<Heavy>>,
    remembered: u32,
}

impl Filter {
    fn new(params: &HhfParams) -> Filter {
        Filter {
            admit_bytes: params.admit_bytes,
            reset_jiffies: params.reset_timeout_ns.div_ceil(JIFFY),
            evict_jiffies: params.evict_timeout_ns.div_ceil(JIFFY),
            most: params.hh_limit,
            counters: Box::new([[0; PLACES]; ARRAYS]),
            cleared: 0,
            heavy: vec![Vec::new(); PLACES],
            remembered: 0,
        }
    }

    /// Counts a packet. Returns whether it belongs to a heavy flow.
    #[inline]
    fn finds_heavy(&mut self, hash: u32, bytes: u32, jiffy: u64) -> bool {
        if jiffy > self.cleared + self.reset_jiffies {
            *self.counters = [[0; PLACES]; ARRAYS];
            self.cleared = jiffy;
        }
        if self.remembers(hash, jiffy) {
            return true;
        }
        let places = places(hash);
        let least = (0..ARRAYS).map(|array| self.counters[array][places[array]]).min();
        let now = least.expect("there are arrays").wrapping_add(bytes);
        if now > self.admit_bytes {
            // Shielding: the counters of a heavy flow do not change.
            return self.remember(hash, jiffy);
        }
        // Conservative update: no counter is raised further than the least one.
        for (array, place) in self.counters.iter_mut().zip(places) {
            array[place] = array[place].max(now);
        }
        false
    }

    /// Whether a flow is remembered in its list. Expired flows before it in the list are removed.
    fn remembers(&mut self, hash: u32, jiffy: u64) -> bool {
        let list = &mut self.heavy[places(hash)[0]];
        let mut index = 0;
        while index < list.len() {
            let forgotten = list[index].last_packet + self.evict_jiffies < jiffy;
            if forgotten && index + 1 == list.len() {
                return false;
            } else if forgotten {
                list.remove(index);
                self.remembered -= 1;
            } else if list[index].hash == hash {
                list[index].last_packet = jiffy;
                return true;
            } else {
                index += 1;
            }
        }
        false
    }

    /// Puts a flow into its list, replacing an expired flow if there is one. Returns false if too
    /// many flows are remembered.
    fn remember(&mut self, hash: u32, last_packet: u64) -> bool {
        let list = &mut self.heavy[places(hash)[0]];
        let forgotten = |heavy: &&mut Heavy| heavy.last_packet + self.evict_jiffies < last_packet;
        if let Some(place) = list.iter_mut().find(forgotten) {
            *place = Heavy { hash, last_packet };
        } else if self.remembered >= self.most {
            return false;
        } else {
            list.push(Heavy { hash, last_packet });
            self.remembered += 1;
        }
        true
    }
}

/// The index of a hash in each array. The first is also the index of its list.
#[inline]
fn places(hash: u32) -> [usize; ARRAYS] {
    let chunk = |shift: u32| (hash >> shift) as usize % PLACES;
    let [first, second, third] = [0, 10, 20].map(chunk);
    [first, second, third, first ^ second ^ third ^ (hash >> 30) as usize]
}

/// The two queues.
const HEAVY: usize = 0;
const LIGHT: usize = 1;

/// Linux's heavy-hitter filter.
pub struct Hhf<B> {
    limit: u64,
    key: u64,
    filter: Filter,
    queues: [Fifo<B>; 2],
    /// The quantum of each queue, bytes.
    quanta: [i64; 2],
    /// The bytes that each queue may still send in its turn.
    deficits: [i64; 2],
    listed: [bool; 2],
    /// The light queue is new: it was empty and is served first.
    new: bool,
    /// The old queues, in the order of their turns.
    old: VecDeque<usize>,
}

impl<B: Body> Hhf<B> {
    /// An empty queue. The hash key is drawn from the context's random stream.
    pub fn new(params: &HhfParams, mut context: Context) -> Self {
        let quantum = i64::from(params.quantum.unwrap_or(context.mtu).max(1));
        Hhf {
            limit: params.limit,
            key: context.rng.next_u64(),
            filter: Filter::new(params),
            queues: [Fifo::default(), Fifo::default()],
            quanta: [quantum, quantum * i64::from(params.non_hh_weight.max(1))],
            deficits: [0; 2],
            listed: [false; 2],
            new: false,
            old: VecDeque::with_capacity(2),
        }
    }
}

impl<B: Body> Qdisc<B> for Hhf<B> {
    #[inline]
    fn enqueue(&mut self, packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        let hash = packet.body.hash(packet.flow, self.key);
        let heavy = self.filter.finds_heavy(hash, packet.size, now.0 / JIFFY);
        let queue = if heavy { HEAVY } else { LIGHT };
        self.queues[queue].push(packet, now);
        if !std::mem::replace(&mut self.listed[queue], true) {
            self.deficits[queue] = self.quanta[queue];
            if heavy {
                self.old.push_back(HEAVY);
            } else {
                self.new = true;
            }
        }
        if u64::from(self.backlog().packets) > self.limit {
            let oldest = self.queues[HEAVY].pop().or_else(|| self.queues[LIGHT].pop());
            let oldest = oldest.expect("the packet that has just arrived is queued");
            verdicts.push(Verdict::Dropped(oldest, Cause::Limit));
        }
    }

    #[inline]
    fn dequeue(&mut self, _now: Time, _verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        loop {
            let new = self.new;
            let queue = if new { LIGHT } else { *self.old.front()? };
            let spent = self.deficits[queue] <= 0;
            if spent {
                self.deficits[queue] += self.quanta[queue];
            } else if let Some(packet) = self.queues[queue].pop() {
                self.deficits[queue] -= i64::from(packet.size);
                return Some(packet);
            }
            // The queue's turn is over. An empty queue leaves the lists, but a new one stays if the
            // other queue waits.
            if new {
                self.new = false;
            } else {
                self.old.pop_front();
            }
            if spent || (new && !self.old.is_empty()) {
                self.old.push_back(queue);
            } else {
                self.listed[queue] = false;
            }
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        let [heavy, light] = [HEAVY, LIGHT].map(|queue| self.queues[queue].backlog());
        Backlog { packets: heavy.packets + light.packets, bytes: heavy.bytes + light.bytes }
    }

    fn state(&self, _now: Time) -> State {
        State { limit: Some(self.limit as f64), ..State::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DsField;
    use units::Rng;

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1_000 * MS;
    const FULL: u32 = 1514;

    fn params() -> HhfParams {
        HhfParams {
            limit: 1000,
            quantum: None,
            hh_limit: 2048,
            reset_timeout_ns: 40 * MS,
            admit_bytes: 131_072,
            evict_timeout_ns: SECOND,
            non_hh_weight: 2,
        }
    }

    fn hhf(params: &HhfParams) -> Hhf<()> {
        let rng = Rng::new(1, "hhf");
        Hhf::new(params, Context { rate: None, mtu: FULL, header_bytes: 14, root: false, rng })
    }

    /// Enqueues `packets` full packets of a flow. Returns the flows of the dropped packets.
    fn send(q: &mut Hhf<()>, flow: u32, packets: u32, at: u64) -> Vec<u32> {
        let mut verdicts = Vec::new();
        for _ in 0..packets {
            let ds = DsField::BEST_EFFORT;
            let packet = Packet { enqueued: Time::NEVER, flow, size: FULL, ds, body: () };
            q.enqueue(packet, Time(at), &mut verdicts);
        }
        let dropped = |verdict: Verdict<()>| match verdict {
            Verdict::Dropped(packet, Cause::Limit) => packet.flow,
            other => panic!("{other:?}"),
        };
        verdicts.into_iter().map(dropped).collect()
    }

    fn queued(q: &Hhf<()>) -> [u32; 2] {
        [HEAVY, LIGHT].map(|queue| q.queues[queue].backlog().packets)
    }

    fn drain(q: &mut Hhf<()>) -> Vec<u32> {
        std::iter::from_fn(|| q.dequeue(Time::ZERO, &mut Vec::new()))
            .map(|packet| packet.flow)
            .collect()
    }

    #[test]
    fn a_flow_is_heavy_from_the_packet_on_that_passes_the_threshold() {
        // 86 packets are 130 204 bytes, 87 are 131 718.
        let mut q = hhf(&params());
        send(&mut q, 1, 86, 0);
        assert_eq!(queued(&q), [0, 86]);
        send(&mut q, 1, 3, 0);
        assert_eq!(queued(&q), [3, 86]);
        // Another flow is not heavy.
        send(&mut q, 2, 1, 0);
        assert_eq!(queued(&q), [3, 87]);
    }

    #[test]
    fn counters_are_cleared_and_heavy_flows_are_forgotten() {
        // 40 ms are 10 jiffies, so the timeout takes effect in the eleventh.
        for (later, heavy) in [(40, 1), (44, 0)] {
            let mut q = hhf(&params());
            send(&mut q, 1, 86, 0);
            send(&mut q, 1, 1, later * MS);
            assert_eq!(queued(&q)[HEAVY], heavy, "{later} ms");
        }
        for (later, heavy) in [(1_000, 2), (1_004, 1)] {
            let mut q = hhf(&params());
            send(&mut q, 1, 87, 0);
            send(&mut q, 1, 1, later * MS);
            assert_eq!(queued(&q)[HEAVY], heavy, "{later} ms");
        }
    }

    #[test]
    fn there_are_at_most_as_many_heavy_flows_as_table_entries() {
        let mut q = hhf(&HhfParams { hh_limit: 1, admit_bytes: 0, ..params() });
        send(&mut q, 1, 2, 0);
        send(&mut q, 2, 2, 0);
        assert_eq!(queued(&q), [2, 2]);
    }

    #[test]
    fn all_counters_must_be_high_and_the_least_one_decides() {
        let mut filter = Filter::new(&HhfParams { admit_bytes: 1000, ..params() });
        // The two hashes have the same counter in the first array and different ones in the rest.
        let [one, other] = [5, 5 | 7 << 10 | 9 << 20];
        assert_eq!(places(other), [5, 7, 9, 5 ^ 7 ^ 9]);
        assert!(!filter.finds_heavy(one, 900, 0));
        assert!(!filter.finds_heavy(other, 900, 0));
        // `other` found 0 in three arrays and did not raise the first above 900.
        assert_eq!(filter.counters[0][5], 900);
        assert!(filter.finds_heavy(other, 101, 0));
        assert_eq!(filter.counters[1][7], 900, "shielding");
    }

    #[test]
    fn the_light_queue_is_served_first_with_twice_the_heavy_one_s_quantum() {
        // Flow 1 is heavy from its first byte on, and no other flow can be.
        let mut q = hhf(&HhfParams { hh_limit: 1, admit_bytes: 0, ..params() });
        send(&mut q, 1, 6, 0);
        send(&mut q, 2, 6, 0);
        assert_eq!(drain(&mut q), [2, 2, 1, 2, 2, 1, 2, 2, 1, 1, 1, 1]);
        // Empty queues are off the lists, so the light queue is new again.
        send(&mut q, 1, 2, 0);
        send(&mut q, 2, 1, 0);
        assert_eq!(drain(&mut q), [2, 1, 1]);
    }

    #[test]
    fn at_the_limit_the_heavy_queue_loses_a_packet() {
        let mut q = hhf(&HhfParams { limit: 90, ..params() });
        assert_eq!(send(&mut q, 1, 90, 0), []);
        assert_eq!(send(&mut q, 2, 6, 0), [1; 6], "four heavy packets, then light ones");
        assert_eq!(queued(&q), [0, 90]);
    }
}
