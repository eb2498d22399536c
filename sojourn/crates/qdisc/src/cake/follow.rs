//! For replays: the turns of a recorded cake.
//!
//! Each turn of a queue is a byte longer or shorter by a draw, which no recording has. Here every turn
//! is the longer one, and it is counted how likely draws have taken how many bytes. That matters only
//! where a queue has so few bytes left that they decide whether it may send. There the recording
//! may tell. If another queue's packet is the next that the recorded cake gave, this one could not
//! send. If its own is, it could, or another would have been before its next turn. What was
//! found binds all later turns.
//!
//! What the recording does not tell at once, it may tell later. Such a draw ends as is likelier, but
//! where whoever replays has found that it can't have been so (`ReplayDraws::unlikely`).

use super::flows::{Draws, Flows};
use crate::slab::NONE;
use crate::{JudgedDraw, ReplayDraws};
use std::collections::BTreeMap;

/// A tin and a queue of it.
type Queue = (usize, usize);

/// How likely it is that draws have taken no byte, one, two and so on of what a queue has left.
#[derive(Clone, Debug)]
struct Doubt(Vec<f64>);

impl Default for Doubt {
    fn default() -> Doubt {
        Doubt(vec![1.0])
    }
}

impl Doubt {
    /// What is less likely has not happened.
    const NEGLIGIBLE: f64 = 1e-9;

    /// One more draw, which takes a byte by this chance.
    fn draw(&mut self, chance: f64) {
        let mut before = 0.0;
        for likely in &mut self.0 {
            (before, *likely) = (*likely, *likely * (1.0 - chance) + before * chance);
        }
        if before * chance > Doubt::NEGLIGIBLE {
            self.0.push(before * chance);
        }
    }

    /// Whether they took less than this; `None`: they may have or not.
    fn is_less_than(&self, bytes: i32) -> Option<bool> {
        let bytes = usize::try_from(bytes).unwrap_or(0);
        (bytes == 0 || bytes >= self.0.len()).then_some(bytes > 0)
    }

    /// How likely that is.
    fn less_than(&self, bytes: i32) -> f64 {
        self.0.iter().take(bytes as usize).sum()
    }

    /// It is known whether they took less than this; then how many more they took counts.
    fn told(&mut self, bytes: i32, less: bool) {
        if less {
            self.0.truncate(bytes as usize);
        } else {
            self.0.drain(..bytes as usize);
        }
        let all: f64 = self.0.iter().sum();
        self.0.iter_mut().for_each(|likely| *likely /= all);
    }
}

/// What is known of a recorded cake's draws.
#[derive(Clone, Debug, Default)]
pub(super) struct Followed {
    doubts: BTreeMap<Queue, Doubt>,
    pub(super) replay_draws: ReplayDraws,
}

impl Followed {
    /// Whether so many bytes of a queue suffice: `None`, where that depends on draws.
    fn sure(&self, queue: Queue, deficit: i32) -> Option<bool> {
        self.doubts.get(&queue).map_or(Some(deficit > 0), |doubt| doubt.is_less_than(deficit))
    }

    /// Whether a queue may send whose bytes alone don't tell. `told`: what the recording tells of it;
    /// `None`: nothing, so it does what is likelier, or where `ReplayDraws` has it so, what is not.
    fn may_send(&mut self, queue: Queue, deficit: &mut i32, told: Option<bool>) -> bool {
        let doubt = self.doubts.entry(queue).or_default();
        let chance = doubt.less_than(*deficit);
        let sends = match told {
            Some(sends) => {
                self.replay_draws.decided.push(JudgedDraw { dropped: false, chance, drew: sends });
                sends
            }
            None => self.replay_draws.outcome(chance > 0.5),
        };
        doubt.told(*deficit, sends);
        if !sends {
            *deficit = 0;
        }
        sends
    }
}

/// The draws of a tin's turns, as the recording has it.
pub(super) struct Following<'a> {
    pub(super) followed: &'a mut Followed,
    pub(super) tin: usize,
    /// The queue whose first packet is the next that the recorded cake gave of this tin; `None`: there
    /// is no choice among several.
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
        // What goes next would have gone next in its next turn, too, unless another one was before it.
        let told = is_next.filter(|is_next| !is_next || self.another_would(index, flows));
        self.followed.may_send(queue, &mut flows.at_mut(index).deficit, told)
    }
}

impl Following<'_> {
    /// Whether another queue would surely send before the next turn of this one.
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
    fn a_byte_that_decides_is_read_off_the_recording_and_binds_what_follows() {
        let mut followed = Followed::default();
        let mut turn = |told, deficit: &mut i32| {
            let mut draws = Following { followed: &mut followed, tin: 0, next: None };
            *deficit += draws.turn(5, 300 * 0xffff, false);
            let sure = draws.followed.sure((0, 5), *deficit);
            sure.unwrap_or_else(|| draws.followed.may_send((0, 5), deficit, Some(told)))
        };
        // 299 or 300 bytes: it may send either way.
        let mut deficit = 0;
        assert!(turn(false, &mut deficit));
        // Of two turns one byte is left, or none, or it owes one.
        deficit -= 599;
        assert!(!turn(false, &mut deficit));
        assert_eq!(deficit, 0);
        // Another queue's packet was next, so the draws had taken one byte at least.
        deficit = -299;
        assert!(turn(true, &mut deficit));
        assert_eq!(deficit, 1);
        // Now they had taken none more.
        deficit -= 300;
        assert!(turn(true, &mut deficit));
        let decided = &followed.replay_draws.decided;
        assert_eq!(decided.iter().map(|one| one.drew).collect::<Vec<_>>(), [false, true, true]);
        assert!(decided[0].chance > 0.98 && decided[0].chance < 1.0, "{decided:?}");
    }
}
