//! drr: deficit round robin. Classes that share the link by weight, each a pfifo.
//!
//! Each class with packets is in a list and has a deficit. If the deficit covers the class's oldest
//! packet, the packet is sent and its size subtracted. Otherwise the class gets its quantum and
//! moves to the end of the list. Over time each class with packets has a share of the bytes in
//! proportion to its quantum, whatever the sizes of its packets. Without strict bands ets is drr.
//!
//! Source: Shreedhar and Varghese, "Efficient fair queuing using deficit round robin" (1995);
//! tc-drr(8); Linux net/sched/sch_drr.c (6.12) for the behaviour: a class that was empty joins the
//! list with one quantum.
//!
//! Deviations: in Linux separate commands create the classes and the filters that sort packets into
//! them, and a packet that no filter matches is dropped. Here each packet's priority gives its
//! class.

use crate::bands::{PRIORITIES, listed, priomap};
use crate::ets::{Ets, EtsParams};
use crate::{Backlog, Context, Packet, Qdisc, State, Verdict};
use serde::Deserialize;
use units::Time;

/// `drr classes N quanta BYTES... priomap CLASS...`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrrParams {
    /// The number of classes.
    pub classes: u8,
    /// The quantum of each class, bytes, separated by blanks. A class without one has the largest
    /// packet's size.
    #[serde(deserialize_with = "listed")]
    pub quanta: Vec<u32>,
    /// The class of each priority, from priority 0 on, separated by blanks.
    #[serde(deserialize_with = "priomap")]
    pub priomap: [u8; PRIORITIES],
    /// The limit of each class, packets (1000).
    pub limit: u64,
}

/// Classes by weight.
pub struct Drr<B>(Ets<B>);

impl<B> Drr<B> {
    /// Empty classes. A priority mapped to a missing class uses the last class.
    pub fn new(params: &DrrParams, context: Context) -> Self {
        let DrrParams { classes, quanta, priomap, limit } = params.clone();
        Drr(Ets::new(&EtsParams { bands: classes, strict: 0, quanta, priomap, limit }, context))
    }
}

impl<B> Qdisc<B> for Drr<B> {
    #[inline]
    fn enqueue(&mut self, packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        self.0.enqueue(packet, now, verdicts);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        self.0.dequeue(now, verdicts)
    }

    #[inline]
    fn may_be_bypassed(&self) -> bool {
        self.0.may_be_bypassed()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.0.backlog()
    }

    fn state(&self, now: Time) -> State {
        Qdisc::<B>::state(&self.0, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DsField;
    use units::Rng;

    const THROUGHPUT: DsField = DsField(0x08);

    /// Best effort is priority 0, throughput is priority 2.
    fn drr(quanta: &[u32]) -> Drr<()> {
        let mut priomap = [0; PRIORITIES];
        priomap[2] = 1;
        let params = DrrParams { classes: 2, quanta: quanta.to_vec(), priomap, limit: 100 };
        let rng = Rng::new(1, "drr");
        Drr::new(&params, Context { rate: None, mtu: 1000, header_bytes: 0, root: true, rng })
    }

    fn send(q: &mut Drr<()>, ds: DsField, size: u32, packets: u32) -> usize {
        let mut verdicts = Vec::new();
        for _ in 0..packets {
            let packet = Packet { enqueued: Time::ZERO, flow: 0, size, ds, body: () };
            q.enqueue(packet, Time::ZERO, &mut verdicts);
        }
        verdicts.len()
    }

    fn bytes_of(q: &mut Drr<()>, packets: usize) -> [u32; 2] {
        let mut bytes = [0; 2];
        for _ in 0..packets {
            let packet = q.dequeue(Time::ZERO, &mut Vec::new()).expect("a packet is queued");
            bytes[usize::from(packet.ds == THROUGHPUT)] += packet.size;
        }
        bytes
    }

    #[test]
    fn classes_share_bytes_by_their_quanta_whatever_their_packets_sizes() {
        let mut q = drr(&[3000, 1000]);
        send(&mut q, DsField::BEST_EFFORT, 250, 100);
        send(&mut q, THROUGHPUT, 1000, 30);
        // Eight rounds, each with twelve small packets and a large one.
        assert_eq!(bytes_of(&mut q, 8 * 13), [24_000, 8_000]);
    }

    #[test]
    fn each_class_has_its_own_limit() {
        let mut q = drr(&[]);
        assert_eq!(send(&mut q, DsField::BEST_EFFORT, 500, 120), 20);
        assert_eq!(send(&mut q, THROUGHPUT, 500, 100), 0);
        assert_eq!(bytes_of(&mut q, 100), [25_000, 25_000], "quanta are the largest packet");
    }
}
