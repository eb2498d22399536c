//! A user-defined discipline: the user's code decides, and the packets stay here.
//!
//! The code (`OwnLaw`) sees numbers: the packet at hand, the link's time and backlogs. It returns a
//! number: the queue that an arriving packet joins, the queue to serve next, or whether the packet
//! at that queue's head passes, is marked or is dropped. It has no packet and no reference to one.
//! So packets are conserved and each queue keeps its order, whatever the code returns.
//!
//! The calls, in this order:
//!
//! | when | function | result |
//! |---|---|---|
//! | at the times it asked for | `timer` | the time of the next call, ns |
//! | a packet arrives | `enqueue` | a queue, with `MARK` added or not; or `DROP` |
//! | more packets wait than `limit` | `overflow` | the queue that loses its oldest packet |
//! | the transmitter is free | `choose` | the queue to serve |
//! | a packet is at its head | `dequeue` | `PASS`, `MARK` or `DROP`; after a drop it is called again |
//! | nothing waits | `idle` | nothing |
//!
//! Without `overflow` the arriving packet is dropped at the limit. `MARK` drops a packet that is
//! not ECN-capable. Timers are evaluated at the next call of the queue, with the time at which they
//! were due; no packet has arrived or left in between.
//!
//! An invalid result, and code that fails, end the run with a panic whose payload is an
//! `OwnFailure`. The panic has no message: the caller of the run words it.

use crate::bypass::Bypass;
use crate::ds::mark;
use crate::{Backlog, Body, Cause, Context, Ecn, Fifo, Packet, Qdisc, State, Verdict};
use serde::Deserialize;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use units::{Rate, Time};

/// The packet passes.
pub const PASS: i64 = 0;
/// The packet is dropped.
pub const DROP: i64 = -1;
/// The packet is marked and passes. In the result of `enqueue` it is added to the number of a
/// queue.
pub const MARK: i64 = 1 << 32;
/// The code failed.
pub const FAILED: i64 = i64::MIN;
/// The largest number of timer calls between two calls of the queue. A law that needs more is
/// stuck.
const MOST_TIMERS: u32 = 100_000_000;

/// `FILE.py:CLASS WORD NUMBER ...`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnParams {
    /// The path of its source file, as the scenario gives it.
    pub file: String,
    /// The class in this file.
    pub class: String,
    /// The parameters that the scenario sets: `WORD NUMBER` repeated.
    pub words: Option<String>,
    /// The file's text.
    pub source: Option<String>,
    /// The compiled code, which the caller fills in before the run.
    #[serde(skip)]
    pub code: OwnCode,
}

/// Compiled code, or `None` before compilation.
#[derive(Clone, Default)]
pub struct OwnCode(pub Option<Arc<dyn OwnProgram>>);

impl fmt::Debug for OwnCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "compiled" } else { "not compiled" })
    }
}

/// Equal sources have equal code, so the code is not compared.
impl PartialEq for OwnCode {
    fn eq(&self, _other: &OwnCode) -> bool {
        true
    }
}

/// Code that any number of links may run, each with a state of its own.
pub trait OwnProgram: Send + Sync {
    /// The constants of the law, which the engine needs first.
    fn shape(&self) -> OwnShape;

    /// A law in its initial state. `key` seeds its random stream.
    fn begin(&self, key: u64) -> Box<dyn OwnLaw>;
}

/// The constants of a law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnShape {
    /// The number of queues, at least one.
    pub queues: u32,
    /// The limit of all queues together, packets.
    pub limit: u64,
    /// The time of the first call of `timer`, ns; `None`: there is no timer.
    pub timer: Option<u64>,
    /// The law has a function `overflow`.
    pub overflows: bool,
    /// Linux may let a packet bypass the discipline (see `bypass`); the law does not see that
    /// packet.
    pub bypass: bool,
}

/// The packet at hand, as the code sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct OwnPacket {
    /// Bytes as the discipline counts them: the IP packet and the link's header.
    pub bytes: i64,
    /// The number of the flow.
    pub flow: i64,
    /// 32 bits, equal for the packets of a connection.
    pub hash: i64,
    /// 1 if the packet can be marked or already is, else 0.
    pub ecn: i64,
    /// 1 if the packet carries CE, else 0.
    pub ce: i64,
    /// The DSCP.
    pub dscp: i64,
    /// The time of its enqueue, ns.
    pub enqueued: i64,
    /// The time since its enqueue, ns.
    pub sojourn: i64,
}

/// The number of values in `OwnLink` before those of the queues.
pub const LINK_NUMBERS: usize = 5;

/// The link, as the code sees it. First the time in ns, the queued packets and bytes, the largest
/// packet in bytes, and the rate in bit/s (0: unlimited). Then the packets of each queue, then the
/// bytes of each queue.
pub type OwnLink = Vec<i64>;

/// The code with its state. Each function returns a result as in the table above, or `FAILED`.
pub trait OwnLaw: Send {
    /// See the table.
    fn enqueue(&mut self, packet: &OwnPacket, link: &OwnLink) -> i64;
    /// See the table.
    fn overflow(&mut self, link: &OwnLink) -> i64;
    /// See the table.
    fn choose(&mut self, link: &OwnLink) -> i64;
    /// See the table.
    fn dequeue(&mut self, packet: &OwnPacket, link: &OwnLink) -> i64;
    /// See the table.
    fn idle(&mut self, link: &OwnLink) -> i64;
    /// See the table.
    fn timer(&mut self, link: &OwnLink) -> i64;
    /// The reason of the failure and the line in the source, as numbers that the compiler defines.
    fn failure(&self) -> [i64; 2];
}

/// The failure that ends a run, as the payload of a panic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFailure {
    /// The file of the law, and its class.
    pub law: [String; 2],
    /// The function that was called.
    pub call: &'static str,
    /// The time of the call, ns.
    pub at_ns: u64,
    /// The invalid result; `None` if the code failed.
    pub answer: Option<i64>,
    /// See `OwnLaw::failure`.
    pub failed: [i64; 2],
}

/// A user-defined discipline.
pub struct Own<B> {
    name: [String; 2],
    law: Box<dyn OwnLaw>,
    shape: OwnShape,
    queues: Vec<Fifo<B>>,
    backlog: Backlog,
    link: OwnLink,
    bypass: Bypass<B>,
    /// The time of the next call of `timer`.
    timer: Option<Time>,
    /// `idle` has been called since the queue became empty.
    idle: bool,
}

impl<B: Body> Own<B> {
    /// An empty queue.
    ///
    /// # Panics
    ///
    /// If the code has not been compiled. The caller of a run compiles it first.
    pub fn new(params: &OwnParams, mut context: Context) -> Own<B> {
        let program = params.code.0.as_ref().expect("the code is compiled before the run");
        let shape = program.shape();
        let queues = shape.queues as usize;
        let mut link = vec![0; LINK_NUMBERS + 2 * queues];
        link[3] = context.mtu.into();
        link[4] = context.rate.map_or(0, |rate| number(rate.0));
        Own {
            name: [params.file.clone(), params.class.clone()],
            law: program.begin(context.rng.next_u64()),
            shape,
            queues: (0..queues).map(|_| Fifo::default()).collect(),
            backlog: Backlog::default(),
            link,
            bypass: Bypass::new(shape.bypass && context.root),
            timer: shape.timer.map(Time),
            idle: false,
        }
    }

    fn fail(&self, call: &'static str, answer: i64) -> ! {
        resume_unwind(Box::new(OwnFailure {
            law: self.name.clone(),
            call,
            at_ns: self.link[0] as u64,
            answer: (answer != FAILED).then_some(answer),
            failed: self.law.failure(),
        }))
    }

    /// The queue that a result names.
    #[inline]
    fn queue_of(&self, call: &'static str, answer: i64) -> usize {
        match usize::try_from(answer) {
            Ok(queue) if queue < self.queues.len() => queue,
            _ => self.fail(call, answer),
        }
    }

    /// The queue that a result names, which must have packets.
    #[inline]
    fn filled_queue_of(&self, call: &'static str, answer: i64) -> usize {
        let queue = self.queue_of(call, answer);
        if self.link[LINK_NUMBERS + queue] == 0 {
            self.fail(call, answer);
        }
        queue
    }

    /// Sets the time to `now`, after the timer calls that are due by then.
    #[inline]
    fn at(&mut self, now: Time) {
        if self.timer.is_some_and(|next| next <= now) {
            self.expire(now);
        }
        self.link[0] = number(now.0);
    }

    #[cold]
    fn expire(&mut self, now: Time) {
        let mut times = 0;
        while let Some(due) = self.timer.filter(|due| *due <= now) {
            self.link[0] = number(due.0);
            let answer = self.law.timer(&self.link);
            times += 1;
            if answer <= self.link[0] || times > MOST_TIMERS {
                self.fail("timer", answer);
            }
            self.timer = Some(Time(answer as u64));
        }
    }

    /// Updates the numbers of a queue and the totals.
    #[inline]
    fn count(&mut self, queue: usize) {
        let own = self.queues[queue].backlog();
        let many = self.queues.len();
        self.link[LINK_NUMBERS + queue] = own.packets.into();
        self.link[LINK_NUMBERS + many + queue] = number(own.bytes);
        self.link[1] = self.backlog.packets.into();
        self.link[2] = number(self.backlog.bytes);
    }

    #[inline]
    fn push(&mut self, queue: usize, packet: Packet<B>, now: Time) {
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(packet.size);
        self.queues[queue].push(packet, now);
        self.count(queue);
    }

    #[inline]
    fn pop(&mut self, queue: usize) -> Packet<B> {
        let packet = self.queues[queue].pop().expect("a queue with packets was chosen");
        self.backlog.packets -= 1;
        self.backlog.bytes -= u64::from(packet.size);
        self.count(queue);
        packet
    }

    #[inline]
    fn shown(&self, packet: &Packet<B>, enqueued: Time) -> OwnPacket {
        let ecn = packet.ds.ecn();
        let enqueued = number(enqueued.0);
        OwnPacket {
            bytes: packet.size.into(),
            flow: packet.flow.into(),
            hash: packet.body.hash(packet.flow, 0).into(),
            ecn: (ecn != Ecn::NotEct).into(),
            ce: (ecn == Ecn::Ce).into(),
            dscp: packet.ds.dscp().into(),
            enqueued,
            sojourn: self.link[0] - enqueued,
        }
    }
}

/// Converts a number to the signed type of the code.
#[inline]
fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl<B: Body> Qdisc<B> for Own<B> {
    fn enqueue(&mut self, packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>) {
        let Some(mut packet) = self.bypass.take_past(packet, self.backlog, now) else {
            return;
        };
        self.at(now);
        self.idle = false;
        let full = u64::from(Qdisc::<B>::backlog(self).packets) >= self.shape.limit;
        if full && !self.shape.overflows {
            verdicts.push(Verdict::Dropped(packet, Cause::Limit));
            return;
        }
        let shown = self.shown(&packet, now);
        let answer = self.law.enqueue(&shown, &self.link);
        let marks = answer >= MARK;
        if answer == DROP || marks && shown.ecn == 0 {
            verdicts.push(Verdict::Dropped(packet, Cause::Own));
            return;
        }
        let queue = self.queue_of("enqueue", if marks { answer - MARK } else { answer });
        if marks {
            mark(&mut packet, Cause::Own, verdicts);
        }
        self.push(queue, packet, now);
        if full {
            let answer = self.law.overflow(&self.link);
            let queue = self.filled_queue_of("overflow", answer);
            let oldest = self.pop(queue);
            verdicts.push(Verdict::Dropped(oldest, Cause::Limit));
        }
    }

    fn dequeue(&mut self, now: Time, verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>> {
        if let Some(packet) = self.bypass.take_out() {
            return Some(packet);
        }
        self.at(now);
        while self.backlog.packets > 0 {
            let queue = if self.queues.len() == 1 {
                0
            } else {
                let answer = self.law.choose(&self.link);
                self.filled_queue_of("choose", answer)
            };
            let mut packet = self.pop(queue);
            let shown = self.shown(&packet, packet.enqueued);
            match self.law.dequeue(&shown, &self.link) {
                PASS => return Some(packet),
                MARK if mark(&mut packet, Cause::Own, verdicts) => return Some(packet),
                DROP | MARK => verdicts.push(Verdict::Dropped(packet, Cause::Own)),
                other => self.fail("dequeue", other),
            }
        }
        if !self.idle {
            self.idle = true;
            let answer = self.law.idle(&self.link);
            if answer == FAILED {
                self.fail("idle", answer);
            }
        }
        None
    }

    #[inline]
    fn may_be_bypassed(&self) -> bool {
        self.bypass.is_open()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.bypass.backlog(self.backlog)
    }

    fn state(&self, _now: Time) -> State {
        let busy = self.queues.iter().filter(|queue| queue.backlog().packets > 0).count();
        State {
            limit: Some(self.shape.limit as f64),
            flows: (self.queues.len() > 1).then_some(busy as f64),
            ..State::default()
        }
    }

    fn rate_changed(&mut self, rate: Rate) {
        self.link[4] = number(rate.0);
    }
}
