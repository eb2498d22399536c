//! For replays: the turns of a recorded cake.
//!
//! Each turn of a queue is a byte longer or shorter by a draw, which no recording has. Here every turn
//! is the longer one, and it is counted how many bytes the draws may have taken. That matters only
//! where a queue has so few bytes left that they decide whether it may send. There the recording
//! tells: if the queue's packet is the next that the recorded cake gave, it could send, and the draws
//! took less than what is left; else they took that at least. What was found binds all later turns.

use super::flows::{Draws, Flow};
use crate::slab::NONE;
use crate::{Hindsight, Judged};
use std::collections::BTreeMap;
use units::Luck;

/// A tin and a queue of it.
type Queue = (usize, usize);

/// Bytes that draws may have taken of what a queue has left.
#[derive(Clone, Copy, Debug, Default)]
struct Doubt {
    most: i32,
    expected: f64,
}

impl Doubt {
    /// More than this they hardly took: five deviations of a Poisson law above its mean.
    fn bound(self) -> i32 {
        let likely = self.expected + 5.0 * libm::sqrt(self.expected) + 2.0;
        self.most.min(likely as i32)
    }

    /// The chance that they took less than this.
    fn less_than(self, bytes: i32) -> f64 {
        let (mut term, mut sum) = (libm::exp(-self.expected), 0.0);
        for taken in 0..bytes.min(self.most + 1) {
            sum += term;
            term *= self.expected / f64::from(taken + 1);
        }
        sum.min(1.0)
    }
}

/// What is known of a recorded cake's draws.
#[derive(Clone, Debug, Default)]
pub(super) struct Followed {
    doubts: BTreeMap<Queue, Doubt>,
    pub(super) hindsight: Hindsight,
}

impl Followed {
    /// Whether a queue with so many bytes left may send. `told`: whether its first packet is the next
    /// that the recorded cake gave of this tin; `None`: that can't be seen, and a draw of ours decides.
    fn may_send(
        &mut self,
        queue: Queue,
        deficit: &mut i32,
        told: Option<bool>,
        luck: &mut Luck,
    ) -> bool {
        let doubt = self.doubts.entry(queue).or_default();
        if *deficit <= 0 || *deficit > doubt.bound() {
            return *deficit > 0;
        }
        let chance = doubt.less_than(*deficit);
        let sends = told.unwrap_or_else(|| luck.unit() < chance);
        if told.is_some() {
            self.hindsight.decided.push(Judged { dropped: false, chance, drew: sends });
        }
        if sends {
            doubt.most = doubt.most.min(*deficit - 1);
            doubt.expected = doubt.expected.min(f64::from(doubt.most));
        } else {
            doubt.most -= *deficit;
            doubt.expected = (doubt.expected - f64::from(*deficit)).max(0.0);
            *deficit = 0;
        }
        sends
    }
}

/// The draws of a tin's turns, as the recording has it.
pub(super) struct Following<'a> {
    pub(super) followed: &'a mut Followed,
    pub(super) luck: &'a mut Luck,
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
            doubt.most += 1;
            doubt.expected += 1.0 - f64::from(part) / 65_536.0;
        }
        ((share + 0xffff) >> 16) as i32
    }

    fn may_send(&mut self, index: usize, flow: &mut Flow) -> bool {
        let told = self.next.filter(|_| flow.head != NONE).map(|next| next == index);
        self.followed.may_send((self.tin, index), &mut flow.deficit, told, self.luck)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_decides_is_read_off_the_recording_and_binds_what_follows() {
        let (mut followed, mut luck) = (Followed::default(), Luck::new(1, "follow"));
        let mut turn = |next, deficit: &mut i32| {
            let mut draws = Following { followed: &mut followed, luck: &mut luck, tin: 0, next };
            *deficit += draws.turn(5, 300 * 0xffff, false);
            let told = draws.next.map(|next| next == 5);
            draws.followed.may_send((0, 5), deficit, told, draws.luck)
        };
        // 299 or 300 bytes: it may send either way.
        let mut deficit = 0;
        assert!(turn(Some(6), &mut deficit));
        // Of two turns one byte is left, or none, or it owes one.
        deficit -= 599;
        assert!(!turn(Some(6), &mut deficit));
        assert_eq!(deficit, 0);
        // Another queue's packet was next, so the draws had taken one byte at least.
        deficit = -299;
        assert!(turn(Some(5), &mut deficit));
        assert_eq!(deficit, 1);
        // Now they had taken none more.
        deficit -= 300;
        assert!(turn(Some(5), &mut deficit));
        let decided = &followed.hindsight.decided;
        assert_eq!(decided.iter().map(|one| one.drew).collect::<Vec<_>>(), [false, true, true]);
        assert!(decided[0].chance > 0.98 && decided[0].chance < 1.0, "{decided:?}");
    }
}
