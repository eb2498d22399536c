//! For replays: the deficits of a recorded cake's queues.
//!
//! A draw makes each turn of a queue a byte longer or shorter, and no recording contains the draw.
//! Here every turn is the longer one, and `Doubt` is the distribution of the bytes that draws have
//! taken. It matters only where a queue has so few bytes left that they decide whether it may send.
//! There the recording may show the answer. If another queue's packet is the next that the recorded
//! cake sent, this queue could not send. If its own packet is the next, the queue could send;
//! otherwise another queue would have sent before its next turn. Each answer constrains all later
//! turns.
//!
//! Where the recording does not show the answer at once, it may show it later. Such a draw takes
//! its likelier outcome, unless the replay has found that outcome impossible
//! (`ReplayDraws::unlikely`).

use super::flows::{Draws, Flows};
use crate::slab::NONE;
use crate::{DrawOutcome, ReplayDraws};
use std::collections::BTreeMap;

/// A tin and the index of a queue in it.
type Queue = (usize, usize);

/// The probabilities that draws have taken 0, 1, 2, ... bytes of a queue's deficit.
#[derive(Clone, Debug)]
struct Doubt(Vec<f64>);

impl Default for Doubt {
    fn default() -> Doubt {
        Doubt(vec![1.0])
    }
}

impl Doubt {
    /// An event of a smaller probability is treated as impossible.
    const NEGLIGIBLE: f64 = 1e-9;

    /// Adds a draw that takes a byte with this probability.
    fn draw(&mut self, chance: f64) {
        let mut before = 0.0;
        for likely in &mut self.0 {
            (before, *likely) = (*likely, *likely * (1.0 - chance) + before * chance);
        }
        if before * chance > Doubt::NEGLIGIBLE {
            self.0.push(before * chance);
        }
    }

    /// Whether the draws have taken fewer than `bytes`; `None` if both are possible.
    fn is_less_than(&self, bytes: i32) -> Option<bool> {
        let bytes = usize::try_from(bytes).unwrap_or(0);
        (bytes == 0 || bytes >= self.0.len()).then_some(bytes > 0)
    }

    /// The probability that the draws have taken fewer than `bytes`.
    fn less_than(&self, bytes: i32) -> f64 {
        self.0.iter().take(bytes as usize).sum()
    }

    /// Conditions the distribution on whether the draws have taken fewer than `bytes`. If they have
    /// not, it counts from `bytes` on.
    fn learn(&mut self, bytes: i32, less: bool) {
        if less {
            self.0.truncate(bytes as usize);
        } else {
            self.0.drain(..bytes as usize);
        }
        let all: f64 = self.0.iter().sum();
        self.0.iter_mut().for_each(|likely| *likely /= all);
    }
}

/// The distributions and the log of a recorded cake's draws.
#[derive(Clone, Debug, Default)]
pub(super) struct Followed {
    doubts: BTreeMap<Queue, Doubt>,
    pub(super) replay_draws: ReplayDraws,
}

impl Followed {
    /// Whether a queue with this deficit may send; `None` if that depends on draws.
    fn sure(&self, queue: Queue, deficit: i32) -> Option<bool> {
        self.doubts.get(&queue).map_or(Some(deficit > 0), |doubt| doubt.is_less_than(deficit))
    }

    /// Whether a queue may send whose deficit alone does not decide it. `recorded` is the
    /// recording's answer. Without one the likelier outcome is taken, or the other where
    /// `ReplayDraws::unlikely` lists this draw.
    fn may_send(&mut self, queue: Queue, deficit: &mut i32, recorded: Option<bool>) -> bool {
        let doubt = self.doubts.entry(queue).or_default();
        let chance = doubt.less_than(*deficit);
        let sends = match recorded {
            Some(sends) => {
                self.replay_draws.decided.push(DrawOutcome { dropped: false, chance, drew: sends });
                sends
            }
            None => self.replay_draws.outcome(chance > 0.5),
        };
        doubt.learn(*deficit, sends);
        if !sends {
            *deficit = 0;
        }
        sends
    }
}

/// The draws of one tin's turns, inferred from the recording.
pub(super) struct Following<'a> {
    pub(super) followed: &'a mut Followed,
    pub(super) tin: usize,
    /// The queue whose first packet is the next that the recorded cake sent from this tin; `None`
    /// if the tin has no choice among several queues.
    pub(super) next: Option<usize>,
}

impl Draws for Following<'_> {
    fn turn(&mut self, index: usize, share: u32, is_first: bool) -> i32 {
        let doubt = self.followed.doubts.entry((self.tin, index)).or_default();
        if is_first {
            *doubt = Doubt::default();
        }
        let part = share & 0xffff;
        if part > 0 {
            doubt.draw(1.0 - f64::from(part) / 65_536.0);
        }
        ((share + 0xffff) >> 16) as i32
    }

    fn may_send(&mut self, index: usize, flows: &mut Flows) -> bool {
        let (deficit, has_packets) = (flows.at(index).deficit, flows.at(index).head != NONE);
        let queue = (self.tin, index);
        if let Some(sure) = self.followed.sure(queue, deficit) {
            return sure;
        }
        let is_next = self.next.filter(|_| has_packets).map(|next| next == index);
        // A queue that sends next would also send next in its following turn, unless another queue
        // would send before that turn.
        let recorded = is_next.filter(|is_next| !is_next || self.another_would(index, flows));
        self.followed.may_send(queue, &mut flows.at_mut(index).deficit, recorded)
    }
}

impl Following<'_> {
    /// Whether another queue would certainly send before the next turn of this one.
    fn another_would(&self, index: usize, flows: &Flows) -> bool {
        flows.before_its_next(index).any(|other| {
            let flow = flows.at(other);
            flow.head != NONE && self.followed.sure((self.tin, other), flow.deficit) == Some(true)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deciding_byte_is_inferred_from_the_recording_and_fixed_from_then_on() {
        let mut followed = Followed::default();
        let mut turn = |recorded, deficit: &mut i32| {
            let mut draws = Following { followed: &mut followed, tin: 0, next: None };
            *deficit += draws.turn(5, 300 * 0xffff, false);
            let sure = draws.followed.sure((0, 5), *deficit);
            sure.unwrap_or_else(|| draws.followed.may_send((0, 5), deficit, Some(recorded)))
        };
        // 299 or 300 bytes: it may send either way.
        let mut deficit = 0;
        assert!(turn(false, &mut deficit));
        // After two turns the deficit is 1, 0 or -1 byte.
        deficit -= 599;
        assert!(!turn(false, &mut deficit));
        assert_eq!(deficit, 0);
        // Another queue's packet was next, so the draws had taken one byte at least.
        deficit = -299;
        assert!(turn(true, &mut deficit));
        assert_eq!(deficit, 1);
        // So the draws had taken no further byte.
        deficit -= 300;
        assert!(turn(true, &mut deficit));
        let decided = &followed.replay_draws.decided;
        assert_eq!(
            decided.iter().map(|outcome| outcome.drew).collect::<Vec<_>>(),
            [false, true, true]
        );
        assert!(decided[0].chance > 0.98 && decided[0].chance < 1.0, "{decided:?}");
    }
}
