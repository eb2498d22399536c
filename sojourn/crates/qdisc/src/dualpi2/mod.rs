//! dualpi2: two coupled queues share a link under one controller. The queue L is for senders that
//! respond a little to each mark (L4S), the queue C is for all others.
//!
//! A PI controller changes p by the queueing delay: alpha (q - target) + beta (q - q_old). A packet
//! of C is dropped or marked with probability p squared, one of L is marked with probability k p.
//! The rate of a Reno-like flow is proportional to one over the square root of its probability,
//! that of a DCTCP-like flow to one over its probability. So both have similar rates. L also has a
//! marking threshold of its own, which keeps it short, and is served first most of the time.
//!
//! | | linux | rfc | docsis |
//! |---|---|---|---|
//! | queue L | ECT(1), CE; with `any_ect` ECT(0) | ECT(1), CE | ECT(1), CE, if its flow behaves |
//! | limit | packets and memory, of both queues | bytes of both, 250 ms of the rate | L 10 ms, C 100 ms of the rate |
//! | base | PI, p in units of 2^-32 | PI, reals | DOCSIS-PIE of C: p_C |
//! | q | the older head's age | the older head's age | backlog of C / the rate that L leaves it |
//! | decides | as a packet leaves; with `drop_enqueue` as it arrives | as it leaves | as it arrives |
//! | L's own marks | above a step in its sojourn | on a ramp of its sojourn | on a ramp of L's backlog / rate |
//! | L's own and coupled | one after the other | the larger | the larger |
//! | draws | independent | each probability added up (`Recur`) | in L added up, in C as in pie |
//! | short queues | nothing below two full packets in both | no mark by the ramp up to one in L | C: as in pie |
//! | overload | k p > 1: L drops with p^2 and marks all else, C only drops | the same | none |
//! | turns | by a credit in bytes, C has `classic_protection` percent | the same, 1/16 | deficit round robin, C has 26/256 |
//!
//! Source: RFC 9332 (rfc: Appendix A.2, the controller's input by its figure 8); tc-dualpi2(8) and
//! Linux's sch_dualpi2 (7.3) for the behaviour of `linux`; MULPIv3.1, Annexes M to P, as CableLabs'
//! model of them behaves (docsis).
//!
//! Deviations: no filter assigns a packet to a queue: only the ECN field does. In Linux a parent
//! that peeks causes an earlier decision on a packet; here no parent peeks. A packet that arrives
//! marked is not reported as marked again. One that both controller and step mark is reported once,
//! for the controller. Linux restarts its timer when it has handled an expiry, so a late expiry
//! delays all later ones. Here no expiry is late, and the first period starts at time 0. An expiry
//! is evaluated at the next call of a queue, which has not changed since. If a packet comes at the
//! instant of an expiry, the expiry is first.

mod docsis;
mod linux;
mod protection;
mod rfc;
#[cfg(test)]
mod tests;

pub use docsis::DocsisDualPi2Params;
pub use linux::LinuxDualPi2Params;
pub use rfc::RfcDualPi2Params;

use crate::timer::Timer;
use crate::{Backlog, Body, Context, Fifo, Packet, Qdisc, ReplayDraws, Replayable, State, Verdict};
use docsis::DocsisDualPi2;
use linux::LinuxDualPi2;
use rfc::RfcDualPi2;
use serde::Deserialize;
use units::{Rate, Span, Time};

/// `dualpi2 variant=...`: `{"kind": "dualpi2", "variant": "linux" | "rfc" | "docsis", ...}` and the
/// fields of that variant.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "variant")]
pub enum DualPi2Params {
    /// Linux's sch_dualpi2.
    #[serde(rename = "linux")]
    Linux(LinuxDualPi2Params),
    /// RFC 9332, Appendix A.
    #[serde(rename = "rfc")]
    Rfc(RfcDualPi2Params),
    /// Low Latency DOCSIS: cable modems.
    #[serde(rename = "docsis")]
    Docsis(DocsisDualPi2Params),
}

/// One of the two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    C,
    L,
}

/// The two queues.
struct Pair<B> {
    c: Fifo<B>,
    l: Fifo<B>,
}

impl<B> Pair<B> {
    fn new() -> Pair<B> {
        Pair { c: Fifo::default(), l: Fifo::default() }
    }

    #[inline]
    fn of(&self, side: Side) -> &Fifo<B> {
        match side {
            Side::C => &self.c,
            Side::L => &self.l,
        }
    }

    #[inline]
    fn of_mut(&mut self, side: Side) -> &mut Fifo<B> {
        match side {
            Side::C => &mut self.c,
            Side::L => &mut self.l,
        }
    }

    #[inline]
    fn is_empty(&self, side: Side) -> bool {
        self.of(side).backlog().packets == 0
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        let (c, l) = (self.c.backlog(), self.l.backlog());
        Backlog { packets: c.packets + l.packets, bytes: c.bytes + l.bytes }
    }

    /// The time that the oldest packet of a queue has waited; zero if the queue is empty.
    #[inline]
    fn age(&self, side: Side, now: Time) -> Span {
        self.of(side).front().map_or(Span::ZERO, |oldest| now.since(oldest.enqueued))
    }

    /// The larger of both queues' ages.
    #[inline]
    fn oldest(&self, now: Time) -> Span {
        self.age(Side::C, now).max(self.age(Side::L, now))
    }

    /// The state that both queues contribute.
    fn state(&self, now: Time) -> State {
        State {
            classic_delay: Some(self.age(Side::C, now).0 as f64),
            l4s_delay: Some(self.age(Side::L, now).0 as f64),
            ..State::default()
        }
    }
}

/// Turns by a credit in bytes: L has the turn while the credit is at most zero. A packet of L
/// increases the credit if C has packets, and a packet of C decreases it if L has packets.
#[derive(Clone, Copy, Debug)]
struct Turns {
    credit: i64,
    first: i64,
    /// C's share, in units of the sum of both weights.
    c_weight: i64,
    l_weight: i64,
}

impl Turns {
    fn new(c_weight: i64, l_weight: i64, mtu: u32) -> Turns {
        let first = i64::from(mtu) * (c_weight - l_weight);
        Turns { credit: first, first, c_weight, l_weight }
    }

    /// The side whose turn it is. `None`: both queues are empty, and the credit is reset.
    #[inline]
    fn next<B>(&mut self, queues: &Pair<B>) -> Option<Side> {
        match (queues.is_empty(Side::C), queues.is_empty(Side::L)) {
            (true, true) => {
                self.credit = self.first;
                None
            }
            (true, false) => Some(Side::L),
            (false, true) => Some(Side::C),
            (false, false) => Some(if self.credit <= 0 { Side::L } else { Side::C }),
        }
    }

    /// A packet of this side leaves; `other_waits` if the other queue has packets.
    #[inline]
    fn sent(&mut self, side: Side, size: u32, other_waits: bool) {
        if other_waits {
            self.credit += match side {
                Side::L => self.c_weight * i64::from(size),
                Side::C => -self.l_weight * i64::from(size),
            };
        }
    }
}

/// RFC 9332's `recur`: adds up the probability p at each call, and decides positively each time
/// that the sum exceeds 1. So a share p of the decisions is positive, and these are evenly spaced.
#[derive(Clone, Copy, Debug, Default)]
struct Recur(f64);

impl Recur {
    #[inline]
    fn decides(&mut self, likelihood: f64) -> bool {
        self.0 += likelihood;
        let due = self.0 > 1.0;
        if due {
            self.0 -= 1.0;
        }
        due
    }
}

/// A PI controller of p.
trait Controller: Copy + PartialEq {
    /// Updates p by the time that the older queue head has waited.
    fn update(&mut self, delay: Span);
}

/// A controller, and the timer that updates it.
struct Updated<C> {
    controller: C,
    timer: Timer,
}

impl<C: Controller> Updated<C> {
    fn every(period: Span, controller: C) -> Updated<C> {
        Updated { controller, timer: Timer::new(Time::ZERO + period, period) }
    }

    /// Makes the updates that are due.
    #[inline]
    fn catch_up<B>(&mut self, queues: &Pair<B>, now: Time) {
        if self.timer.next() <= now {
            self.controller = self.at(queues, now);
            self.timer.expiries(now);
        }
    }

    /// The controller after the updates that are due, with the queues unchanged since the last one.
    /// With empty queues it reaches a steady state.
    #[cold]
    fn at<B>(&self, queues: &Pair<B>, now: Time) -> C {
        let (mut controller, mut timer) = (self.controller, self.timer);
        let mut due = timer.next();
        for _ in 0..timer.expiries(now) {
            let before = controller;
            controller.update(queues.oldest(due));
            if controller == before {
                break;
            }
            due += timer.period;
        }
        controller
    }
}

enum Law<B> {
    Linux(LinuxDualPi2<B>),
    Rfc(RfcDualPi2<B>),
    Docsis(Box<DocsisDualPi2<B>>),
}

/// Two coupled queues.
pub struct DualPi2<B>(Law<B>);

impl<B: Body> DualPi2<B> {
    /// Empty queues.
    pub fn new(params: &DualPi2Params, context: Context) -> Self {
        DualPi2(match params {
            DualPi2Params::Linux(p) => Law::Linux(LinuxDualPi2::new(p, context)),
            DualPi2Params::Rfc(p) => Law::Rfc(RfcDualPi2::new(p, &context)),
            DualPi2Params::Docsis(p) => Law::Docsis(Box::new(DocsisDualPi2::new(p, context))),
        })
    }
}

macro_rules! law {
    ($self:expr, $q:ident => $body:expr) => {
        match &$self.0 {
            Law::Linux($q) => $body,
            Law::Rfc($q) => $body,
            Law::Docsis($q) => $body,
        }
    };
    (mut $self:expr, $q:ident => $body:expr) => {
        match &mut $self.0 {
            Law::Linux($q) => $body,
            Law::Rfc($q) => $body,
            Law::Docsis($q) => $body,
        }
    };
}

impl<B: Body> Qdisc<B> for DualPi2<B> {
    #[inline]
    fn enqueue(&mut self, packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        law!(mut self, q => q.enqueue(packet, now, verdicts));
    }

    #[inline]
    fn dequeue(&mut self, now: Time, verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        law!(mut self, q => q.dequeue(now, verdicts))
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        law!(self, q => q.queues().backlog())
    }

    fn state(&self, now: Time) -> State {
        law!(self, q => q.state(now))
    }

    fn rate_changed(&mut self, rate: Rate) {
        if let Law::Docsis(queue) = &mut self.0 {
            queue.rate_changed(rate);
        }
    }
}

impl<B: Body> Replayable for DualPi2<B> {
    fn replay_draws(&mut self) -> Option<&mut ReplayDraws> {
        match &mut self.0 {
            Law::Linux(queue) => Some(queue.replay_draws()),
            _ => None,
        }
    }
}
