//! red: random early detection. Drops or marks early and at random, with a probability that grows
//! with the average queue. So congestion is signalled before the queue is full, and to flows in
//! proportion to their share.
//!
//! Two families have the name. `Linux` (sch_red) is RED of 1993 in bytes and fixed point, with
//! idle damping by table and a timer for the adaptive mode. `Floyd` is the RED of ns-2 and ns-3:
//! gentle, with automatic thresholds and weight, optionally adaptive (ARED). They are different
//! algorithms, not two settings of one.
//!
//! Source: Floyd and Jacobson, IEEE/ACM ToN 1(4), 1993; Floyd, Gummadi, Shenker, "Adaptive RED",
//! 2001; for the behaviour of `linux` sch_red.c, red.h and tc's tc_red.c, of `ns2` ns-2.35's
//! red.cc, of `ns3` ns-3's RedQueueDisc.
//!
//! | | ns2 | ns3 |
//! |---|---|---|
//! | physical limit, in packets | full at `limit` | the same |
//! | physical limit, in bytes | full at limit * mean_bytes, the last packet may exceed it | never exceeds it |
//! | a drop at the physical limit | restarts count | does not |
//! | average above the upper threshold (2 max if gentle) | an early decision with p = 1 | forced drop, never a mark |
//! | marks | while p <= 0.1, then drops (use_mark_p_) | whenever the decision is early |
//! | min is automatic | if it is 0 | if min and max are 0 |
//! | least max_p (adaptive) | min(0.01, 80 000 / rate) | min(0.01, 0.8 mean_bytes / rate) |
//!
//! Both: the arriving packet is the victim. Nothing is dropped early while at most one packet (in
//! byte mode: one byte) is queued. After the average crosses min the first packet passes. max_p
//! adapts on arrivals, at the earliest half a second after its last change. The gentle slope above
//! max keeps the max_p of the start, as in the code of both.
//!
//! Deviations of ns2 and ns3: ns-2's automatic weight lengthens the time constant where three times
//! the link's delay is above 100 ms. A discipline does not know the delay, so the weight is always
//! 1 - exp(-1/C). The least max_p is that of ns-2 and ns-3, not the 0.01 of the 2001 paper. Neither
//! follows a rate that changes (as ns-2 and ns-3).
//!
//! Deviations of linux: time in ns is truncated to the kernel's µs. tc writes the idle table in
//! ticks of 64 ns, and the kernel reads it in µs. So an idle queue's average falls 15.6 times more
//! slowly than red(8) intends. This is kept, as Linux does it. The adaptive timer fires each 0.512
//! s (HZ 250) from the start and is evaluated on arrival.

mod choke;
mod floyd;
mod gred;
mod linux;
#[cfg(test)]
mod tests;

pub use choke::{Choke, ChokeParams};
pub use floyd::FloydRedParams;
pub use gred::{Gred, GredParams};
pub use linux::LinuxRedParams;

pub(crate) use linux::LinuxRed;

use floyd::FloydRed;
use linux::{ADAPT_JIFFIES, TWO_32};

use crate::change::drop_down_to;
use crate::ds::mark;
use crate::timer::{JIFFY, expiry};
use crate::{Backlog, Cause, Context, Ecn, Fifo, Packet, Qdisc, Replayable, State, Verdict};
use serde::Deserialize;
use units::{Rng, Time};

/// `red variant=...`: `{"kind": "red", "variant": "linux" | "ns2" | "ns3", ...}` and the fields of
/// that variant.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "variant")]
pub enum RedParams {
    /// Linux's sch_red.
    #[serde(rename = "linux")]
    Linux(LinuxRedParams),
    /// ns-2.35's RED and ARED.
    #[serde(rename = "ns2")]
    Ns2(FloydRedParams),
    /// ns-3's RED and ARED.
    #[serde(rename = "ns3")]
    Ns3(FloydRedParams),
}

/// The two simulators of the Floyd family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RedVariant {
    /// ns-2.35.
    Ns2,
    /// ns-3.44.
    Ns3,
}

/// The decision on an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Pass,
    /// Mark the packet if it can be marked, otherwise drop it.
    Signal(Cause),
    /// Mark the packet if it can be marked, otherwise let it pass.
    MarkOnly(Cause),
    Drop(Cause),
}

impl Decision {
    /// The cause for which this decision drops a packet with this ECN field; `None`: no drop.
    #[inline]
    pub(crate) fn drops(self, ecn: Ecn) -> Option<Cause> {
        match self {
            Decision::Drop(cause) => Some(cause),
            Decision::Signal(cause) if ecn == Ecn::NotEct => Some(cause),
            _ => None,
        }
    }

    /// Marks a packet that was not dropped and has room, if the decision is to mark.
    #[inline]
    pub(crate) fn mark<B>(self, packet: &mut Packet<B>, verdicts: &mut Vec<Verdict<B>>) {
        if let Decision::Signal(cause) | Decision::MarkOnly(cause) = self {
            mark(packet, cause, verdicts);
        }
    }
}

enum Law {
    Linux(Box<LinuxRed>),
    Floyd(FloydRed),
}

impl Law {
    #[inline]
    fn decide(&mut self, backlog: Backlog, size: u32, now: Time, rng: &mut Rng) -> Decision {
        match self {
            Law::Linux(red) => red.decide(backlog, now, rng),
            Law::Floyd(red) => red.decide(backlog, size, now, rng),
        }
    }

    /// Whether a packet of this size may join, by the physical limit.
    #[inline]
    fn has_room(&self, backlog: Backlog, size: u32) -> bool {
        match self {
            Law::Linux(red) => backlog.bytes + u64::from(size) <= red.limit,
            Law::Floyd(red) => red.has_room(backlog, size),
        }
    }

    /// The packet was dropped at the physical limit.
    fn overflowed(&mut self) {
        if let Law::Floyd(red) = self
            && red.variant == RedVariant::Ns2
        {
            red.restart_count(0, 0);
        }
    }

    /// The queue was empty when the transmitter became free. The idle period starts now, unless it
    /// already has.
    fn idle(&mut self, now: Time) {
        let idle_since = match self {
            Law::Linux(red) => &mut red.idle_since,
            Law::Floyd(red) => &mut red.idle_since,
        };
        idle_since.get_or_insert(now);
    }
}

/// A queue under RED.
pub struct Red<B> {
    law: Law,
    rng: Rng,
    queue: Fifo<B>,
}

impl<B> Red<B> {
    /// An empty queue, idle since the start of the run.
    pub fn new(params: &RedParams, context: Context) -> Self {
        let law = match params {
            RedParams::Linux(p) => Law::Linux(Box::new(LinuxRed::new(p))),
            RedParams::Ns2(p) => Law::Floyd(FloydRed::new(RedVariant::Ns2, p, context.rate)),
            RedParams::Ns3(p) => Law::Floyd(FloydRed::new(RedVariant::Ns3, p, context.rate)),
        };
        Red { law, rng: context.rng, queue: Fifo::default() }
    }
}

impl<B> Red<B> {
    /// Sets the parameters of Linux's RED (__red_change): all packets are dropped, the average
    /// begins at 0, an idle period begins, and the adaptive timer is set again.
    pub(crate) fn change(&mut self, params: &RedParams, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        let (Law::Linux(law), RedParams::Linux(p)) = (&mut self.law, params) else {
            panic!("only Linux's red can be changed while its queue stands")
        };
        **law = LinuxRed::new(p);
        law.idle_since = Some(now);
        law.next_adapt = Time(expiry(now.0 / JIFFY, ADAPT_JIFFIES) * JIFFY);
        drop_down_to(0, &mut self.queue, verdicts);
    }
}

impl<B> Qdisc<B> for Red<B> {
    #[inline]
    fn enqueue(&mut self, mut packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        if let Law::Linux(red) = &mut self.law
            && red.recorded_draw == Some(true)
        {
            // A drop for lack of room does not show the draw.
            red.recorded_draw =
                Some(self.queue.backlog().bytes + u64::from(packet.size) <= red.limit);
        }
        let decision = self.law.decide(self.queue.backlog(), packet.size, now, &mut self.rng);
        if let Some(cause) = decision.drops(packet.ds.ecn()) {
            return verdicts.push(Verdict::Dropped(packet, cause));
        }
        if !self.law.has_room(self.queue.backlog(), packet.size) {
            self.law.overflowed();
            return verdicts.push(Verdict::Dropped(packet, Cause::Limit));
        }
        decision.mark(&mut packet, verdicts);
        self.queue.push(packet, now);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        let packet = self.queue.pop();
        if packet.is_none() {
            self.law.idle(now);
        }
        packet
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn state(&self, _now: Time) -> State {
        let (limit, probability, average) = match &self.law {
            Law::Linux(red) => {
                (red.limit as f64, f64::from(red.max_p) / TWO_32, red.average_bytes())
            }
            Law::Floyd(red) => (red.limit, red.max_p, red.average),
        };
        State {
            limit: Some(limit),
            probability: Some(probability),
            average: Some(average),
            ..State::default()
        }
    }
}

impl<B> Replayable for Red<B> {
    /// Only Linux's RED supports this.
    fn set_recorded_draw(&mut self, early: bool) {
        if let Law::Linux(red) = &mut self.law {
            red.recorded_draw = Some(early);
        }
    }

    fn chance(&mut self) -> Option<f64> {
        match &self.law {
            Law::Linux(red) => Some(red.chance),
            Law::Floyd(_) => None,
        }
    }
}
