//! pie: proportional integral controller, enhanced. Drops or marks arriving packets with a
//! probability p that follows the queueing delay.
//!
//! Each `tupdate` p changes by alpha (q - target) + beta (q - q_old): q is the queueing delay, q_old
//! that of the update before. Both weights shrink with p, or a small p would never be steady. A
//! burst of up to 150 ms that meets a queue without congestion passes untouched. accu_prob adds up
//! the probabilities since the last drop and spreads drops evenly: none before it reaches 0.85, a
//! certain one from 8.5 on.
//!
//! | | linux | rfc | docsis |
//! |---|---|---|---|
//! | arithmetic | p in units of 2^-56, q in ticks of 64 ns | reals | reals |
//! | p at most | 256, then 1 again | 1 | 13.6 |
//! | q | sojourn of the packet that left last, or backlog / rate | that sojourn | backlog / the link's rate |
//! | tupdate | in jiffies of 4 ms, a jiffy late | exact | exact |
//! | step of p at most, from p = 10 % | 2 % | free | 2 % |
//! | q above 250 ms (docsis: 200 ms) | 2 % more | the same as below | 2 % more, unless q was short |
//! | decay | 1/64, q = q_old = 0 | 2 %, q = q_old = 0 | 2 %, both below 5 ms |
//! | no early drop: p below 20 % and | q < target/2 | q_old < target/2 | q_old < target/2 |
//! | no early drop: backlog | < 2 full packets | <= 2 full packets | <= 2048 bytes |
//! | the allowance of 150 ms (docsis: 142) falls | as packets leave, by the time between them | with each update | with each update |
//! | p by the packet's size | with `bytemode` | no | yes, of 1024 bytes |
//! | accu_prob | yes | no | yes |
//! | marks | with `ecn`, p <= 10 % | with `ecn`, p < 10 % | never |
//!
//! Source: RFC 8033 (rfc: Appendix A with timestamps; its §5.1 for ECN), RFC 8034 (docsis: Appendix
//! A, one rate: MSR = PEAK_RATE); Linux's sch_pie for the behaviour of `linux`.
//!
//! Deviations: in `rfc` a mean packet is the link's largest, as RFC 8033 gives none. In `docsis` a
//! third of the buffer is a third of `limit`, packets. Linux's timer starts half a second after the
//! discipline is created; here that was before time 0, as on a host that runs already. The timer is
//! evaluated when the queue is called next, with the queue as it was. If a packet comes at the
//! instant of an expiry, the expiry is first.

mod linux;
mod rfc;
#[cfg(test)]
mod tests;

pub use linux::LinuxPieParams;
pub use rfc::{DocsisPieParams, RfcPieParams};

pub(crate) use linux::{LinuxPie, timers};
pub(crate) use rfc::DocsisPie;
use rfc::RfcPie;

use crate::change::drop_down_to;
use crate::ds::mark;
use crate::timer::Timer;
use crate::{Backlog, Cause, Context, Fifo, Packet, Qdisc, Replayable, State, Verdict};
use serde::Deserialize;
use units::{Rate, Rng, Span, Time};

/// `pie variant=...`: `{"kind": "pie", "variant": "linux" | "rfc" | "docsis", ...}` and the fields
/// of that variant.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "variant")]
pub enum PieParams {
    /// Linux's sch_pie.
    #[serde(rename = "linux")]
    Linux(LinuxPieParams),
    /// RFC 8033, Appendix A.
    #[serde(rename = "rfc")]
    Rfc(RfcPieParams),
    /// RFC 8034: DOCSIS-PIE of cable modems.
    #[serde(rename = "docsis")]
    Docsis(DocsisPieParams),
}

/// The decision on an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Pass,
    /// Mark the packet if it can be marked, otherwise drop it.
    Signal,
    Drop,
}

/// The probability 1. Draws are in units of 2^-56, as in Linux.
const ONE: u64 = 1 << 56;

/// The random draws.
#[derive(Clone, Debug)]
pub(crate) struct Dice {
    rng: Rng,
    /// For replays: the recorded draw of the next arrival (`Replayable::set_recorded_draw`).
    recorded_draw: Option<bool>,
    /// For replays: the probability that the last arrival was dropped or marked early
    /// (`Replayable::chance`).
    chance: f64,
}

impl Dice {
    pub(crate) fn new(rng: Rng) -> Dice {
        Dice { rng, recorded_draw: None, chance: 0.0 }
    }

    /// See `Replayable::set_recorded_draw`.
    pub(crate) fn set_recorded_draw(&mut self, early: bool) {
        self.recorded_draw = Some(early);
    }

    /// See `Replayable::chance`.
    pub(crate) fn chance(&self) -> f64 {
        self.chance
    }

    /// A decision that the law makes without a draw.
    #[inline]
    pub(crate) fn certain(&mut self, early: bool) -> bool {
        self.chance = f64::from(u8::from(early));
        early
    }

    /// True with probability `p` of `ONE`. In a replay the recorded draw, if either outcome is
    /// possible.
    #[inline]
    fn throw(&mut self, p: u64) -> bool {
        self.chance = (p as f64 / ONE as f64).min(1.0);
        match self.recorded_draw {
            Some(early) if 0.0 < self.chance && self.chance < 1.0 => early,
            _ => self.rng.next_u64() >> 8 < p,
        }
    }
}

#[derive(Clone)]
enum Law {
    Linux(LinuxPie),
    Rfc(RfcPie),
    Docsis(DocsisPie),
}

impl Law {
    /// Makes `times` updates at once, between which no packet arrives or leaves.
    fn update(&mut self, backlog: Backlog, times: u64) {
        match self {
            Law::Linux(pie) => pie.update(backlog, times),
            Law::Rfc(pie) => pie.update(times),
            Law::Docsis(pie) => pie.update(backlog, times),
        }
    }

    #[inline]
    fn decide(&mut self, backlog: Backlog, size: u32, dice: &mut Dice) -> Decision {
        match self {
            Law::Linux(pie) => pie.decide(backlog, size, dice),
            Law::Rfc(pie) => pie.decide(backlog, dice),
            Law::Docsis(pie) => pie.decide(backlog, size, dice),
        }
    }

    /// An arrival was dropped, whatever the cause.
    #[inline]
    fn dropped(&mut self) {
        match self {
            Law::Linux(pie) => pie.dropped(),
            Law::Rfc(_) => {}
            Law::Docsis(pie) => pie.dropped(),
        }
    }

    /// A packet has left, with `backlog` behind it.
    #[inline]
    fn left<B>(&mut self, packet: &Packet<B>, backlog: Backlog, now: Time) {
        match self {
            Law::Linux(pie) => pie.left(packet.enqueued, packet.size, backlog, now),
            Law::Rfc(pie) => pie.left(packet.enqueued, backlog, now),
            Law::Docsis(_) => {}
        }
    }

    fn probability(&self) -> f64 {
        match self {
            Law::Linux(pie) => pie.probability(),
            Law::Rfc(pie) => pie.probability(),
            Law::Docsis(pie) => pie.probability(),
        }
    }
}

/// A queue under PIE.
pub struct Pie<B> {
    limit: u64,
    law: Law,
    timer: Timer,
    dice: Dice,
    queue: Fifo<B>,
}

impl<B> Pie<B> {
    /// An empty queue.
    pub fn new(params: &PieParams, context: Context) -> Self {
        let every = |ns: u64| {
            let period = Span(ns.max(1));
            Timer::new(Time::ZERO + period, period)
        };
        let (limit, law, timer) = match params {
            PieParams::Linux(p) => {
                (p.limit, Law::Linux(LinuxPie::new(p, context.mtu)), linux::timer(p.tupdate_ns))
            }
            PieParams::Rfc(p) => {
                (p.limit, Law::Rfc(RfcPie::new(p, context.mtu)), every(p.tupdate_ns))
            }
            PieParams::Docsis(p) => {
                (p.limit, Law::Docsis(DocsisPie::new(p, context.rate)), every(p.tupdate_ns))
            }
        };
        let dice = Dice::new(context.rng);
        Pie { limit, law, timer, dice, queue: Fifo::default() }
    }

    /// Sets the parameters of Linux's PIE, and drops the oldest packets down to the limit
    /// (pie_change). The probability and the other variables stay as they are. `tupdate` must not
    /// change.
    pub(crate) fn change(&mut self, params: &PieParams, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        self.catch_up(now);
        let (Law::Linux(law), PieParams::Linux(p)) = (&mut self.law, params) else {
            panic!("only Linux's pie can be changed while its queue stands")
        };
        law.change(p);
        self.limit = p.limit;
        drop_down_to(self.limit, &mut self.queue, verdicts);
    }

    /// Makes the updates that are due, with the queue unchanged since the last call.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        if self.timer.next() <= now {
            self.update(now);
        }
    }

    #[cold]
    fn update(&mut self, now: Time) {
        let times = self.timer.expiries(now);
        self.law.update(self.queue.backlog(), times);
    }
}

impl<B> Qdisc<B> for Pie<B> {
    #[inline]
    fn enqueue(&mut self, mut packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        self.catch_up(now);
        let backlog = self.queue.backlog();
        if u64::from(backlog.packets) >= self.limit {
            self.dice.certain(false);
            self.law.dropped();
            return verdicts.push(Verdict::Dropped(packet, Cause::Limit));
        }
        let passes = match self.law.decide(backlog, packet.size, &mut self.dice) {
            Decision::Pass => true,
            Decision::Signal => mark(&mut packet, Cause::Early, verdicts),
            Decision::Drop => false,
        };
        if passes {
            self.queue.push(packet, now);
        } else {
            self.law.dropped();
            verdicts.push(Verdict::Dropped(packet, Cause::Early));
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, _verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        self.catch_up(now);
        let packet = self.queue.pop()?;
        self.law.left(&packet, self.queue.backlog(), now);
        Some(packet)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn state(&self, now: Time) -> State {
        let mut law = self.law.clone();
        law.update(self.queue.backlog(), { self.timer }.expiries(now));
        State {
            limit: Some(self.limit as f64),
            probability: Some(law.probability()),
            ..State::default()
        }
    }

    fn rate_changed(&mut self, rate: Rate) {
        if let Law::Docsis(pie) = &mut self.law {
            pie.rate_changed(rate);
        }
    }
}

impl<B> Replayable for Pie<B> {
    fn set_recorded_draw(&mut self, early: bool) {
        self.dice.set_recorded_draw(early);
    }

    fn chance(&mut self) -> Option<f64> {
        Some(self.dice.chance())
    }
}
