//! gred: generic RED. Several REDs over one FIFO, each for a class of packets: a *virtual queue*
//! with thresholds and a probability of its own.
//!
//! All packets leave in the order of their arrival. So a class can't have less delay than another;
//! it can only be dropped from sooner. The mode determines the average that a virtual queue
//! compares with its thresholds:
//!
//! | | average of | added to it | limit counts |
//! |---|---|---|---|
//! | without `grio` | its own packets | | its own packets |
//! | `grio`, each `prio` once (RIO) | its own packets | the averages of all with a lower `prio` that are not idle | its own packets |
//! | `grio`, a `prio` twice (WRED) | all packets, one average for all | | all packets |
//!
//! Source: tc's options; W. Almesberger, J. Hadi Salim, A. Kuznetsov, "Differentiated Services on
//! Linux" (1999); D. Clark and W. Fang, "Explicit allocation of best-effort packet delivery
//! service" (1998, RIO); for the behaviour sch_gred of Linux 6.12. The arithmetic is that of `red
//! variant linux`, but a queue is idle from the departure of its last packet, not from when it is
//! found empty.
//!
//! Deviations: in Linux a filter's mark on the packet selects the virtual queue; here a packet's
//! priority selects it, as in prio, so each packet has one. `default` and the common limit, which
//! apply to packets without a virtual queue, have no effect.

use super::Decision;
use super::linux::{LinuxRed, LinuxRedParams, TWO_32};
use crate::bands::{PRIORITIES, listed, priomap};
use crate::pfifo_fast::priority_of;
use crate::{Backlog, Cause, Context, Fifo, Packet, Qdisc, Replayable, State, Verdict};
use serde::Deserialize;
use units::{Rng, Time};

/// `gred limit BYTES... min BYTES... max BYTES... avpkt BYTES burst PACKETS... probability P...
/// bandwidth RATE prio N... priomap VQ... [grio] [ecn] [harddrop]`. A list has a value for each
/// virtual queue.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GredParams {
    /// The physical limits, bytes.
    #[serde(deserialize_with = "listed")]
    pub limit: Vec<u64>,
    /// Below this average there is no early decision, bytes.
    #[serde(deserialize_with = "listed")]
    pub min: Vec<u32>,
    /// From this average on every packet is dropped or marked, bytes.
    #[serde(deserialize_with = "listed")]
    pub max: Vec<u32>,
    /// The number of packets that may arrive at once without drops; it determines the weight.
    #[serde(deserialize_with = "listed")]
    pub burst: Vec<u32>,
    /// The probability reached at `max`, a fraction.
    #[serde(deserialize_with = "listed")]
    pub probability: Vec<f64>,
    /// With `grio` a virtual queue adds the averages of those with a lower `prio` to its own.
    #[serde(deserialize_with = "listed")]
    pub prio: Vec<u8>,
    /// The size of an average packet, for the weight and the idle time, bytes.
    pub avpkt: u32,
    /// The rate that converts idle time to packets, bit/s (10 000 000).
    pub bandwidth: u64,
    /// The virtual queue of each priority, from priority 0 on, separated by blanks.
    #[serde(deserialize_with = "priomap")]
    pub priomap: [u8; PRIORITIES],
    /// Virtual queues take each other's packets into account.
    pub grio: bool,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// With `ecn`: drop above `max` instead of marking.
    pub harddrop: bool,
}

impl GredParams {
    fn virtual_queue(&self, index: usize) -> VirtualQueue {
        let nth = |numbers: &[u32]| numbers.get(index).copied().unwrap_or_default();
        let mut red = LinuxRed::new(&LinuxRedParams {
            limit: self.limit[index],
            min: nth(&self.min),
            max: nth(&self.max),
            avpkt: self.avpkt,
            burst: nth(&self.burst),
            probability: self.probability.get(index).copied().unwrap_or_default(),
            bandwidth: self.bandwidth,
            adaptive: false,
            ecn: self.ecn,
            harddrop: self.harddrop,
            nodrop: false,
        });
        red.idle_since = None;
        let prio = self.prio.get(index).copied().unwrap_or_default();
        VirtualQueue { red, prio, bytes: 0 }
    }

    fn mode(&self) -> Sight {
        let twice = |(index, prio)| self.prio[..index].contains(prio);
        match (self.grio, self.prio.iter().enumerate().any(twice)) {
            (false, _) => Sight::Own,
            (true, false) => Sight::Lower,
            (true, true) => Sight::All,
        }
    }
}

/// The packets that a virtual queue takes into account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    Own,
    /// RIO: its own, and those of virtual queues with a lower `prio`.
    Lower,
    /// WRED: all packets.
    All,
}

struct VirtualQueue {
    red: LinuxRed,
    prio: u8,
    /// The bytes of its packets.
    bytes: u64,
}

/// A FIFO with several REDs.
pub struct Gred<B> {
    queues: Vec<VirtualQueue>,
    sight: Sight,
    priomap: [u8; PRIORITIES],
    /// WRED: the common average, and the time since which the FIFO is idle.
    shared: (u64, Option<Time>),
    rng: Rng,
    fifo: Fifo<B>,
    recorded_draw: Option<bool>,
    chance: f64,
}

impl<B> Gred<B> {
    /// An empty queue. A priority mapped to a missing virtual queue uses the last one.
    pub fn new(params: &GredParams, context: Context) -> Self {
        let queues: Vec<_> =
            (0..params.limit.len()).map(|index| params.virtual_queue(index)).collect();
        let last = queues.len().saturating_sub(1) as u8;
        Gred {
            queues,
            sight: params.mode(),
            priomap: params.priomap.map(|queue| queue.min(last)),
            shared: (0, None),
            rng: context.rng,
            fifo: Fifo::default(),
            recorded_draw: None,
            chance: 0.0,
        }
    }

    #[inline]
    fn queue_of(&self, packet: &Packet<B>) -> usize {
        self.priomap[usize::from(priority_of(packet.ds))].into()
    }

    /// The bytes that count towards a virtual queue's limit.
    fn counted(&self, index: usize) -> u64 {
        match self.sight {
            Sight::All => self.fifo.backlog().bytes,
            Sight::Own | Sight::Lower => self.queues[index].bytes,
        }
    }

    /// Decides on a packet of a virtual queue that finds `queued` bytes.
    fn decide(&mut self, index: usize, queued: u64, has_room: bool, now: Time) -> Decision {
        let beside: u64 = match self.sight {
            Sight::Own | Sight::All => 0,
            Sight::Lower => {
                let prio = self.queues[index].prio;
                let lower = self.queues.iter().filter(|other| other.prio < prio);
                lower.filter(|o| o.red.idle_since.is_none()).map(|o| o.red.average).sum()
            }
        };
        let red = &mut self.queues[index].red;
        // A drop for lack of room does not show the draw.
        red.recorded_draw = self.recorded_draw.take().map(|early| early && has_room);
        if self.sight == Sight::All {
            (red.average, red.idle_since) = self.shared;
        }
        red.arrival(queued, now);
        if self.sight == Sight::All {
            self.shared = (red.average, None);
        }
        let own = red.average;
        red.average += beside;
        let decision = red.red_action(&mut self.rng);
        red.average = own;
        self.chance = red.chance;
        decision
    }
}

impl<B> Qdisc<B> for Gred<B> {
    #[inline]
    fn enqueue(&mut self, mut packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        let index = self.queue_of(&packet);
        let (queued, size) = (self.counted(index), u64::from(packet.size));
        let has_room = queued + size <= self.queues[index].red.limit;
        let decision = self.decide(index, queued, has_room, now);
        if let Some(cause) = decision.drops(packet.ds.ecn()) {
            return verdicts.push(Verdict::Dropped(packet, cause));
        }
        if !has_room {
            return verdicts.push(Verdict::Dropped(packet, Cause::Limit));
        }
        decision.mark(&mut packet, verdicts);
        self.queues[index].bytes += size;
        self.fifo.push(packet, now);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        let packet = self.fifo.pop()?;
        let index = self.queue_of(&packet);
        let queue = &mut self.queues[index];
        queue.bytes -= u64::from(packet.size);
        match self.sight {
            Sight::All if self.fifo.backlog().bytes == 0 => self.shared.1 = Some(now),
            Sight::Own | Sight::Lower if queue.bytes == 0 => queue.red.idle_since = Some(now),
            _ => {}
        }
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn state(&self, _now: Time) -> State {
        let limits = self.queues.iter().map(|queue| queue.red.limit);
        // The state has the largest average, at which drops begin; in WRED all averages are equal.
        let average = self.queues.iter().map(|queue| queue.red.average_bytes());
        let count = self.queues.len() as f64;
        let p = self.queues.iter().map(|queue| f64::from(queue.red.max_p) / TWO_32).sum::<f64>();
        State {
            limit: Some(limits.sum::<u64>() as f64),
            probability: Some(p / count),
            average: Some(average.fold(0.0, f64::max)),
            ..State::default()
        }
    }
}

impl<B> Replayable for Gred<B> {
    fn set_recorded_draw(&mut self, early: bool) {
        self.recorded_draw = Some(early);
    }

    fn chance(&mut self) -> Option<f64> {
        Some(self.chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DsField, Ecn};

    /// Priority 0: the first virtual queue.
    const FIRST: DsField = DsField::BEST_EFFORT;
    /// Priority 2: the second virtual queue.
    const SECOND: DsField = DsField(0x08);

    /// Two virtual queues with a weight of 1/2 that pass nothing from 3000 bytes on.
    fn gred(grio: bool, prio: [u8; 2], ecn: bool) -> Gred<()> {
        let mut priomap = [0; PRIORITIES];
        priomap[2] = 1;
        let params = GredParams {
            limit: vec![8000, 5000],
            min: vec![2000; 2],
            max: vec![3000; 2],
            burst: vec![2; 2],
            probability: vec![0.02; 2],
            prio: prio.to_vec(),
            avpkt: 1000,
            bandwidth: 10_000_000,
            priomap,
            grio,
            ecn,
            harddrop: false,
        };
        let rng = Rng::new(1, "gred");
        let context = Context { rate: None, mtu: 1514, header_bytes: 14, root: true, rng };
        let q = Gred::new(&params, context);
        assert!(q.queues.iter().all(|queue| queue.red.wlog == 1));
        q
    }

    fn send(q: &mut Gred<()>, ds: DsField) -> Option<Verdict<()>> {
        let mut verdicts = Vec::new();
        let packet = Packet { enqueued: Time::NEVER, flow: 0, size: 1000, ds, body: () };
        q.enqueue(packet, Time(1), &mut verdicts);
        assert!(verdicts.len() < 2);
        verdicts.pop()
    }

    fn dropped(verdict: Option<Verdict<()>>) -> Option<Cause> {
        verdict.map(|verdict| match verdict {
            Verdict::Dropped(_, cause) => cause,
            Verdict::Marked { .. } => panic!("the packet is marked"),
        })
    }

    /// Four packets find 0, 1000, 2000 and 3000 bytes: the average is 0, 500, 1250, 2125. The fifth
    /// finds 4000 bytes and an average of 3062.
    fn filled(grio: bool, prio: [u8; 2]) -> Gred<()> {
        let mut q = gred(grio, prio, false);
        for _ in 0..4 {
            assert_eq!(send(&mut q, FIRST), None);
        }
        assert_eq!(dropped(send(&mut q, FIRST)), Some(Cause::Early));
        assert_eq!(Qdisc::<()>::state(&q, Time(1)).average, Some(3062.5));
        q
    }

    #[test]
    fn without_grio_a_virtual_queue_averages_only_its_own_packets() {
        let mut q = filled(false, [1, 1]);
        for _ in 0..4 {
            assert_eq!(send(&mut q, SECOND), None, "its average grows as that of the first did");
        }
        assert_eq!(q.backlog().packets, 8);
        assert_eq!(dropped(send(&mut q, SECOND)), Some(Cause::Early));
    }

    #[test]
    fn with_grio_the_averages_of_lower_prios_count_beside_its_own() {
        let mut q = filled(true, [1, 2]);
        assert_eq!(dropped(send(&mut q, SECOND)), Some(Cause::Early), "its own average is 0");
        // The average of the first is its own: half of 3062 + 4000.
        assert_eq!(dropped(send(&mut q, FIRST)), Some(Cause::Early));
        while q.dequeue(Time(2), &mut Vec::new()).is_some() {}
        assert_eq!(send(&mut q, SECOND), None, "an idle virtual queue does not count");
        let mut other_way_round = filled(true, [2, 1]);
        assert_eq!(send(&mut other_way_round, SECOND), None);
    }

    #[test]
    fn with_grio_and_equal_prios_all_have_one_average() {
        let mut q = filled(true, [3, 3]);
        assert_eq!(dropped(send(&mut q, SECOND)), Some(Cause::Early));
        assert_eq!(q.shared.0, 6125 + 4000 - 3062);
        while q.dequeue(Time(2), &mut Vec::new()).is_some() {}
        assert_eq!(q.shared.1, Some(Time(2)), "idle from the last departure");
    }

    #[test]
    fn limits_are_of_a_virtual_queue_s_own_packets_and_its_verdict_comes_first() {
        let mut q = gred(false, [1, 1], true);
        for queue in &mut q.queues {
            (queue.red.min, queue.red.max) = (100_000, 200_000);
        }
        let accepted = |q: &mut Gred<()>, ds| (0..9).filter(|_| send(q, ds).is_none()).count();
        assert_eq!((accepted(&mut q, FIRST), accepted(&mut q, SECOND)), (8, 5));
        assert_eq!(dropped(send(&mut q, SECOND)), Some(Cause::Limit));
        // Above max ECN-capable packets are marked if there is room for them.
        q.queues[0].red.max = 0;
        q.queues[0].red.min = 0;
        assert_eq!(dropped(send(&mut q, FIRST.with_ecn(Ecn::Ect0))), Some(Cause::Limit));
        assert!(q.dequeue(Time(2), &mut Vec::new()).is_some());
        let verdict = send(&mut q, FIRST.with_ecn(Ecn::Ect0));
        assert!(
            matches!(verdict, Some(Verdict::Marked { cause: Cause::Early, .. })),
            "{verdict:?}"
        );
        assert_eq!(dropped(send(&mut q, FIRST)), Some(Cause::Early));
    }
}
