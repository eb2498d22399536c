//! The time of the next event at each of many hosts or links.

use std::ops::Range;
use units::Time;

/// The number of parts (hosts or links) in a block.
const BLOCK: usize = 64;

/// The times, and the earliest of each block of them.
pub struct Due {
    at: Vec<Time>,
    blocks: Vec<Time>,
}

impl Due {
    /// Starts with these times.
    pub fn new(at: Vec<Time>) -> Due {
        let blocks = at.chunks(BLOCK).map(earliest).collect();
        Due { at, blocks }
    }

    /// The time of the next event of all.
    #[inline]
    pub fn soonest(&self) -> Time {
        earliest(&self.blocks)
    }

    /// The blocks, each with the numbers of its parts.
    pub fn blocks(&self) -> impl Iterator<Item = (usize, Range<usize>)> + use<> {
        let parts = self.at.len();
        (0..self.blocks.len())
            .map(move |block| (block, block * BLOCK..((block + 1) * BLOCK).min(parts)))
    }

    /// Whether any event in a block is before `until`.
    #[inline]
    pub fn in_block(&self, block: usize, until: Time) -> bool {
        self.blocks[block] < until
    }

    /// The time of the next event at a part.
    #[inline]
    pub fn at(&self, part: usize) -> Time {
        self.at[part]
    }

    /// An event at this part is due at `at`. If an earlier one is known, nothing changes.
    #[inline]
    pub fn hasten(&mut self, part: usize, at: Time) {
        self.at[part] = self.at[part].min(at);
        let block = &mut self.blocks[part / BLOCK];
        *block = (*block).min(at);
    }

    /// The next event at this part is due at `at`. Call `settle` for its block afterwards.
    #[inline]
    pub fn set(&mut self, part: usize, at: Time) {
        self.at[part] = at;
    }

    /// Updates the earliest time of a block after `set`; `parts` are all parts of the block.
    #[inline]
    pub fn settle(&mut self, block: usize, parts: Range<usize>) {
        self.blocks[block] = earliest(&self.at[parts]);
    }
}

#[inline]
fn earliest(times: &[Time]) -> Time {
    times.iter().fold(Time::NEVER, |least, &time| least.min(time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Rng, Span};

    #[test]
    fn a_block_has_the_earliest_of_its_parts() {
        let mut rng = Rng::new(1, "due");
        for parts in [1, 63, 64, 65, 300] {
            let mut model: Vec<Time> = (0..parts).map(|_| Time(rng.below(1000))).collect();
            let mut due = Due::new(model.clone());
            for _ in 0..500 {
                let (part, at) = (rng.below(parts) as usize, Time(rng.below(1000)));
                due.hasten(part, at);
                model[part] = model[part].min(at);
                let until = Time(rng.below(500));
                for (block, parts) in due.blocks() {
                    let expected = model[parts.clone()].iter().any(|&at| at < until);
                    assert_eq!(due.in_block(block, until), expected);
                    for part in parts.clone().filter(|_| expected) {
                        assert_eq!(due.at(part), model[part]);
                        if due.at(part) < until {
                            model[part] = until + Span(rng.below(1000));
                            due.set(part, model[part]);
                        }
                    }
                    due.settle(block, parts);
                }
                assert_eq!(Some(due.soonest()), model.iter().min().copied());
            }
        }
    }
}
