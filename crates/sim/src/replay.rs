//! A recorded arrival trace through one link: no hosts, no agenda, the packets come when they came.
//!
//! What the link does to each packet is written down, so that it can be held against what another queue did to the same
//! packets: the Linux kernel's, recorded at both of its sides.
//!
//! What happens at one instant happens in some order, and a packet that comes as another leaves may find room or none. Ours lets
//! the other leave first. Where the recording tells otherwise (`Arrival::after`) the newcomer is taken in just before. A kernel
//! is late now and then, by what it does at the same instant, so that is `GRAIN` wide.
//!
//! RED alone draws. Given what the recorded queue drew (`Arrival::early`), ours does the same wherever the choice is left to
//! luck, and says how likely it was; where its law leaves no choice the law decides.

use link::{Departure, Link};
use qdisc::{Backlog, Cause, Discipline, DsField, Fate, Packet, Qdisc};
use units::{Span, Time};

use crate::scenario::LinkSpec;

/// A packet that comes to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Time,
    /// One direction of a five-tuple.
    pub flow: u32,
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// Its DS field.
    pub ds: DsField,
    /// How many the recorded queue had sent before it came, if that is known: it decides what came first at one instant.
    pub after: Option<u64>,
    /// Whether the recorded queue dropped or marked it early; `None`: our luck decides. RED's alone.
    pub early: Option<bool>,
}

/// An instant of a recording.
const GRAIN: Span = Span::from_micros(2);

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// When it left the queue, either way; `Time::NEVER`: it waits still.
    pub at: Time,
    /// Its place in the order in which packets left, from 0.
    pub order: u64,
    /// It was dropped as it came.
    pub refused: bool,
    /// Why it was dropped or marked; `None`: neither.
    pub fell: Option<(Fell, Cause)>,
    /// Its DS field as it came.
    ds: DsField,
    /// What was queued when it came.
    pub found: Backlog,
    /// CoDel's count when it left, RED's average in bytes when it came; NaN without either.
    pub state: f64,
    /// How likely RED was to drop or mark it, given that it had not since the last one; NaN elsewhere.
    pub chance: f64,
}

/// What happened to a packet beside passing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fell {
    /// It was dropped.
    Dropped,
    /// It was marked, and passed.
    Marked,
}

/// What became of each arrival, in their order; they come in order of time. The wait for the last one to leave is not cut off.
pub fn replay(spec: &LinkSpec, seed: u64, arrivals: &[Arrival]) -> Vec<Decision> {
    let mut run = Replay {
        link: crate::make_link(spec, seed),
        fates: Vec::new(),
        decisions: Vec::with_capacity(arrivals.len()),
        marks: Default::default(),
        left: 0,
        sent: 0,
    };
    for (index, arrival) in arrivals.iter().enumerate() {
        let at = run.up_to(arrival);
        run.arrive(index as u32, at, arrival);
    }
    while let Some(next) = run.next_event() {
        run.advance(next);
    }
    run.decisions
}

struct Replay {
    /// A packet's body is its place among the arrivals.
    link: Link<u32>,
    fates: Vec<Fate<u32>>,
    decisions: Vec<Decision>,
    /// Causes of marks whose packets have not left: they leave in the order in which they were marked.
    marks: std::collections::VecDeque<Cause>,
    left: u64,
    sent: u64,
}

impl Replay {
    fn next_event(&self) -> Option<Time> {
        self.link.next_event().filter(|next| *next < Time::NEVER)
    }

    /// One packet leaves, or none: a drop happens when the packet behind it leaves.
    fn advance(&mut self, next: Time) {
        let mut out = Vec::new();
        self.link.advance(next, &mut self.fates, &mut |departure| out.push(departure));
        self.note(next, &out);
    }

    /// Everything that happens before an arrival; when to take it in.
    fn up_to(&mut self, arrival: &Arrival) -> Time {
        while let Some(next) = self.next_event().filter(|next| *next <= arrival.at) {
            if arrival.after == Some(self.sent) && arrival.at.since(next) <= GRAIN {
                return Time(next.0 - 1);
            }
            self.advance(next);
        }
        arrival.at
    }

    fn arrive(&mut self, index: u32, at: Time, arrival: &Arrival) {
        let found = self.link.backlog();
        self.decisions.push(Decision {
            at: Time::NEVER,
            order: u64::MAX,
            refused: false,
            fell: None,
            ds: arrival.ds,
            found,
            state: f64::NAN,
            chance: f64::NAN,
        });
        let Arrival { flow, bytes: size, ds, .. } = *arrival;
        let packet = Packet { enqueued: at, flow, size, ds, body: index };
        if let (Discipline::Red(red), Some(early)) = (self.link.qdisc_mut(), arrival.early) {
            red.tell(early);
        }
        let mut out = Vec::new();
        self.link.send(packet, at, &mut self.fates, |departure| out.push(departure));
        self.note(at, &out);
        let decision = &mut self.decisions[index as usize];
        decision.refused = matches!(decision.fell, Some((Fell::Dropped, _)));
        if let Discipline::Red(red) = self.link.qdisc() {
            let decision = &mut self.decisions[index as usize];
            decision.state = red.state().average.unwrap_or(f64::NAN);
            decision.chance = red.chance().filter(|_| arrival.early.is_some()).unwrap_or(f64::NAN);
        }
    }

    /// Writes down what happened at `now`: what fell, fell before anything left.
    fn note(&mut self, now: Time, out: &[Departure<u32>]) {
        let count = self.link.qdisc().state().count;
        for fate in self.fates.drain(..) {
            match fate {
                Fate::Dropped(packet, cause) => {
                    let decision = &mut self.decisions[packet.body as usize];
                    (decision.at, decision.order) = (now, self.left);
                    decision.state = count.unwrap_or(decision.state);
                    decision.fell = Some((Fell::Dropped, cause));
                    self.left += 1;
                }
                Fate::Marked { cause, .. } => self.marks.push_back(cause),
            }
        }
        for departure in out {
            let decision = &mut self.decisions[departure.packet.body as usize];
            (decision.at, decision.order) = (departure.dequeued, self.left);
            decision.state = count.unwrap_or(decision.state);
            self.left += 1;
            self.sent += 1;
            if departure.packet.ds != decision.ds {
                let cause = self.marks.pop_front().expect("a packet that was marked was told to be");
                decision.fell = Some((Fell::Marked, cause));
            }
        }
    }
}
