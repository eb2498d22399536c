//! gred: generic RED. Several REDs over one FIFO, each for a class of packets: a *virtual queue* with
//! thresholds and a probability of its own.
//!
//! All packets leave in the order in which they came. So a class can't have less delay than another;
//! it can be dropped from sooner. What a virtual queue looks at depends on the mode:
//!
//! | | average of | beside it | limit counts |
//! |---|---|---|---|
//! | without `grio` | its own packets | | its own packets |
//! | `grio`, each `prio` once (RIO) | its own packets | the averages of all with a lower `prio` that are not idle | its own packets |
//! | `grio`, a `prio` twice (WRED) | all packets, one average for all | | all packets |
//!
//! Source: tc's words; W. Almesberger, J. Hadi Salim, A. Kuznetsov, "Differentiated Services on Linux"
//! (1999); D. Clark and W. Fang, "Explicit allocation of best-effort packet delivery service" (1998,
//! RIO); for the behaviour sch_gred of Linux 6.12. The arithmetic is that of `red variant linux`, but a
//! queue is idle from when its last packet leaves, not from when it is found empty.
//!
//! Deviations: Linux's picks a virtual queue by what a filter has written on the packet; here a
//! packet's priority decides, as in prio, and each has one. So `default` and the limit of all
//! together, which are for packets without one, have nothing to do.

use super::Decision;
use super::linux::{LinuxRed, LinuxRedParams, TWO_32};
use crate::bands::{PRIORITIES, listed, priomap};
use crate::pfifo_fast::priority_of;
use crate::{Backlog, Cause, Context, Fifo, Packet, Qdisc, Replayed, State, Verdict};
use serde::Deserialize;
use units::{Rng, Time};

/// `gred limit BYTES... min BYTES... max BYTES... avpkt BYTES burst PACKETS... probability P... bandwidth RATE prio N... priomap VQ... [grio] [ecn] [harddrop]`:
/// of what is a list, one for each virtual queue.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GredParams {
    /// Bytes: the physical limits.
    #[serde(deserialize_with = "listed")]
    pub limit: Vec<u64>,
    /// Bytes: below this average nothing happens.
    #[serde(deserialize_with = "listed")]
    pub min: Vec<u32>,
    /// Bytes: from this average on every packet is dropped or marked.
    #[serde(deserialize_with = "listed")]
    pub max: Vec<u32>,
    /// Packets that may arrive at once without harm; sets the weight.
    #[serde(deserialize_with = "listed")]
    pub burst: Vec<u32>,
    /// Probability reached at `max`, a fraction.
    #[serde(deserialize_with = "listed")]
    pub probability: Vec<f64>,
    /// Whose averages count beside one's own: those of a lower one.
    #[serde(deserialize_with = "listed")]
    pub prio: Vec<u8>,
    /// Bytes of an average packet, for the weight and the idle time.
    pub avpkt: u32,
    /// Rate that converts idle time to packets, bit/s (10 000 000).
    pub bandwidth: u64,
    /// The virtual queue of each priority, the first 0, with a blank between.
    #[serde(deserialize_with = "priomap")]
    pub priomap: [u8; PRIORITIES],
    /// Virtual queues look at each other's packets.
    pub grio: bool,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// With `ecn`: above `max` drop all the same.
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

/// Which packets a virtual queue looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    Own,
    /// RIO.
    Lower,
    /// WRED.
    All,
}

struct VirtualQueue {
    red: LinuxRed,
    prio: u8,
    /// Its packets'.
    bytes: u64,
}

/// A FIFO under several REDs.
pub struct Gred<B> {
    queues: Vec<VirtualQueue>,
    sight: Sight,
    priomap: [u8; PRIORITIES],
    /// Of all packets together, where all look at these.
    shared: (u64, Option<Time>),
    rng: Rng,
    fifo: Fifo<B>,
    told: Option<bool>,
    chance: f64,
}

impl<B> Gred<B> {
    /// An empty queue. A priority whose virtual queue there is not has the last.
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
            told: None,
            chance: 0.0,
        }
    }

    #[inline]
    fn queue_of(&self, packet: &Packet<B>) -> usize {
        self.priomap[usize::from(priority_of(packet.ds))].into()
    }

    /// What a virtual queue's limit counts, bytes.
    fn counted(&self, index: usize) -> u64 {
        match self.sight {
            Sight::All => self.fifo.backlog().bytes,
            Sight::Own | Sight::Lower => self.queues[index].bytes,
        }
    }

    /// What to do with a packet of a virtual queue, of which `queued` bytes count.
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
        // Without room, a drop does not show the draw.
        red.told = self.told.take().map(|early| early && has_room);
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
    fn dequeue(&mut self, now: Time, _fates: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
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
        // The largest, that is where drops begin; where all look at all it is one.
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

impl<B> Replayed for Gred<B> {
    fn tell(&mut self, early: bool) {
        self.told = Some(early);
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
    /// Priority 2: the second.
    const SECOND: DsField = DsField(0x08);

    /// Both with a weight of 1/2, and from 3000 bytes on nothing passes.
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
            Verdict::Marked { .. } => panic!("it is marked"),
        })
    }

    /// Four packets that find 0, 1000, 2000 and 3000 bytes: the average is 0, 500, 1250, 2125. The
    /// fifth finds 4000, and 3062.
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
    fn without_grio_a_virtual_queue_looks_at_its_own_packets() {
        let mut q = filled(false, [1, 1]);
        for _ in 0..4 {
            assert_eq!(send(&mut q, SECOND), None, "its own average is that of the first before");
        }
        assert_eq!(q.backlog().packets, 8);
        assert_eq!(dropped(send(&mut q, SECOND)), Some(Cause::Early));
    }

    #[test]
    fn with_grio_the_averages_of_lower_prios_count_beside_its_own() {
        let mut q = filled(true, [1, 2]);
        assert_eq!(dropped(send(&mut q, SECOND)), Some(Cause::Early), "its own is 0");
        // The first's is its own: 3062 and 4000, less half.
        assert_eq!(dropped(send(&mut q, FIRST)), Some(Cause::Early));
        while q.dequeue(Time(2), &mut Vec::new()).is_some() {}
        assert_eq!(send(&mut q, SECOND), None, "who is idle does not count");
        let mut other_way_round = filled(true, [2, 1]);
        assert_eq!(send(&mut other_way_round, SECOND), None);
    }

    #[test]
    fn with_grio_and_equal_prios_all_have_one_average() {
        let mut q = filled(true, [3, 3]);
        assert_eq!(dropped(send(&mut q, SECOND)), Some(Cause::Early));
        assert_eq!(q.shared.0, 6125 + 4000 - 3062);
        while q.dequeue(Time(2), &mut Vec::new()).is_some() {}
        assert_eq!(q.shared.1, Some(Time(2)), "idle from when the last one leaves");
    }

    #[test]
    fn limits_are_of_a_virtual_queue_s_own_packets_and_its_verdict_comes_first() {
        let mut q = gred(false, [1, 1], true);
        for queue in &mut q.queues {
            (queue.red.min, queue.red.max) = (100_000, 200_000);
        }
        let kept = |q: &mut Gred<()>, ds| (0..9).filter(|_| send(q, ds).is_none()).count();
        assert_eq!((kept(&mut q, FIRST), kept(&mut q, SECOND)), (8, 5));
        assert_eq!(dropped(send(&mut q, SECOND)), Some(Cause::Limit));
        // Above max what speaks ECN is marked, where there is room for it.
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
