//! The next bit, predicted from what was before it.
//!
//! For each of several contexts (the last bytes; the last opcodes; ...) a table remembers how often
//! a one came in it. A further prediction is the bit that followed when the last bytes were there
//! before. A neuron, chosen by the place in the module, weighs them all and learns from each bit
//! which to trust there (gated linear mixing: Mahoney 2005). Last, its answer is corrected by how often
//! it was right.
//!
//! Constants were chosen by trial on the lab's engine.

use crate::place::{Place, STATES};
use alloc::vec;
use alloc::vec::Vec;

/// Bits of a probability, as a coder takes it.
pub const ONE_BITS: u32 = 16;

/// Contexts, each with a table.
const CONTEXTS: usize = 5;
/// Slots of a table, as a power of two. A slot is of half a byte: a check, and 15 bits that may come.
const SLOTS: u32 = 16;
const SLOT: usize = 16;
/// Inputs of a neuron: one from each context, two from the match, and a constant.
const INPUTS: usize = CONTEXTS + 3;
/// So many bytes must be alike for a match to begin.
const LEAST_MATCH: usize = 6;
const MATCHES: u32 = 18;
/// Lengths of a match that are told apart, and those that a neuron is chosen by.
const LENGTHS: usize = 16;
const LEVELS: usize = 4;
/// Steps of the odds at which answers are corrected.
const STEPS: usize = 33;

const FIRST_WEIGHT: i32 = (1 << 16) / 6;
const LEARN: i32 = 2;
/// How far a chance goes towards the next bit after so many, of 4096: about 1 / (n + 1.5).
const PACE: [i32; 16] =
    [2700, 1700, 1250, 950, 750, 620, 530, 460, 410, 372, 341, 315, 292, 273, 260, 220];

pub struct Model {
    seen: Vec<u8>,
    place: Place,
    odds: Odds,
    /// The bits of this byte so far, behind a one.
    partial: usize,
    /// In a slot: chances of 12 bits, with how many bits made them (4 bits).
    tables: Vec<u16>,
    hashes: [u32; CONTEXTS],
    slots: [usize; CONTEXTS],
    inputs: [i32; INPUTS],
    weights: Vec<i32>,
    /// Where the weights of the chosen neuron begin.
    neuron: usize,
    mixed: i32,
    matched: Match,
    corrections: Vec<u16>,
    corrected: usize,
    one: u32,
}

impl Model {
    /// Before the first bit of so many bytes.
    pub fn new(bytes: usize) -> Model {
        let odds = Odds::new();
        let as_it_is = |at: usize| (odds.chance((at % STEPS) as i32 * 128 - 2048) << 4) as u16;
        let mut model = Model {
            seen: Vec::with_capacity(bytes),
            place: Place::new(),
            partial: 1,
            tables: vec![0; (CONTEXTS * SLOT) << SLOTS],
            hashes: [0; CONTEXTS],
            slots: [0; CONTEXTS],
            inputs: [0; INPUTS],
            weights: vec![FIRST_WEIGHT; STATES * LEVELS * 2 * INPUTS],
            neuron: 0,
            mixed: 0,
            matched: Match::new(),
            corrections: (0..STATES * 256 * STEPS).map(as_it_is).collect(),
            corrected: 0,
            one: 0,
            odds,
        };
        model.begin_byte();
        model.predict();
        model
    }

    /// The bytes so far.
    pub fn seen(&self) -> &[u8] {
        &self.seen
    }

    /// How probable a one is, of 2^`ONE_BITS`: neither 0 nor all.
    pub fn one(&self) -> u32 {
        self.one
    }

    /// The bit that came.
    pub fn learn(&mut self, bit: u32) {
        let error = (((bit as i32) << 12) - self.mixed) * LEARN;
        let weights = &mut self.weights[self.neuron..][..INPUTS];
        for (weight, input) in weights.iter_mut().zip(&self.inputs) {
            *weight += (input * error + 0x2000) >> 14;
        }
        for known in &mut self.corrections[self.corrected..][..2] {
            approach(known, bit);
        }
        let node = self.node();
        for slot in self.slots {
            let known = &mut self.tables[slot + node];
            let (chance, count) = apart(*known);
            let to = chance + (((((bit as i32) << 12) - chance) * PACE[count]) >> 12);
            *known = (to.clamp(1, 4095) << 4) as u16 | (count as u16 + 1).min(15);
        }
        self.matched.learn(&self.seen, self.partial, bit);

        self.partial = self.partial << 1 | bit as usize;
        if self.partial >= 256 {
            let byte = self.partial as u8;
            self.partial = 1;
            self.seen.push(byte);
            self.place.pass(byte);
            self.matched.pass(&self.seen);
            self.begin_byte();
        } else if self.partial >> 4 == 1 {
            self.begin_half();
        }
        self.predict();
    }

    fn begin_byte(&mut self) {
        let last = |back: usize| {
            let at = self.seen.len().wrapping_sub(back);
            u64::from(self.seen.get(at).copied().unwrap_or_default())
        };
        let state = u64::from(self.place.state());
        let opcodes = self.place.opcodes;
        let hash = |of: u64| ((of << 8 | state).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32;
        self.hashes = [
            hash(0),
            hash(last(1) | last(2) << 8),
            hash(last(1) | (opcodes & 0xffff) << 8),
            hash(opcodes & 0xffff_ffff),
            hash(opcodes & 0xffff_ffff_ffff),
        ];
        self.begin_half();
    }

    /// Finds the slots of the next four bits. What another context had in one is forgotten.
    fn begin_half(&mut self) {
        for (table, &hash) in self.hashes.iter().enumerate() {
            let mixed = hash ^ (self.partial as u32).wrapping_mul(0x2545_f491);
            let mixed = mixed.wrapping_mul(0x9e37_79b1);
            let slot = (table << SLOTS | (mixed >> (32 - SLOTS)) as usize) * SLOT;
            let (check, known) = (mixed as u16 | 1, &mut self.tables[slot..][..SLOT]);
            if known[0] != check {
                known.fill(2048 << 4);
                known[0] = check;
            }
            self.slots[table] = slot;
        }
    }

    /// Where in a slot the next bit is, from 1: by the bits of this half of the byte before it.
    fn node(&self) -> usize {
        let bits = self.partial.ilog2() & 3;
        1 << bits | self.partial & ((1 << bits) - 1)
    }

    fn predict(&mut self) {
        let node = self.node();
        for (table, slot) in self.slots.iter().enumerate() {
            self.inputs[table] = self.odds.of(apart(self.tables[slot + node]).0);
        }
        let (chance, level) = self.matched.chance(&self.seen, self.partial);
        self.inputs[CONTEXTS] = self.odds.of(chance);
        self.inputs[CONTEXTS + 1] = chance - 2048;
        self.inputs[CONTEXTS + 2] = 256;

        let state = self.place.state() as usize;
        self.neuron = ((state * LEVELS + level) * 2 + usize::from(self.partial >= 16)) * INPUTS;
        let weighed = self.inputs.iter().zip(&self.weights[self.neuron..][..INPUTS]);
        let sum: i64 = weighed.map(|(input, weight)| i64::from(*input) * i64::from(*weight)).sum();
        let odds = (sum >> 16).clamp(-2047, 2047) as i32;
        self.mixed = self.odds.chance(odds);

        // Between the two nearest steps.
        let (step, rest) = (((odds + 2048) >> 7) as usize, (odds + 2048) & 127);
        self.corrected = (state << 8 | self.partial) * STEPS + step;
        let near = &self.corrections[self.corrected..][..2];
        let corrected = (i32::from(near[0]) * (128 - rest) + i32::from(near[1]) * rest) >> 7;
        self.one = (((self.mixed << 4) + corrected) >> 1).clamp(32, 65_535 - 32) as u32;
    }
}

/// A chance of 12 bits, and how many bits made it.
fn apart(known: u16) -> (i32, usize) {
    (i32::from(known >> 4), usize::from(known & 15))
}

/// A chance of 16 bits goes a 64th of the way to the bit that came.
fn approach(known: &mut u16, bit: u32) {
    let chance = i32::from(*known);
    *known = (chance + ((bit as i32 * 65_535 - chance) >> 6)) as u16;
}

/// What followed when the last bytes were there before.
struct Match {
    /// Where it is, and how many bytes before it are like the last.
    at: usize,
    alike: usize,
    /// Where bytes of such a hash were, at last.
    places: Vec<u32>,
    /// How probable it is that a match of such a length goes on.
    right: [u16; LENGTHS],
}

impl Match {
    fn new() -> Match {
        Match { at: 0, alike: 0, places: vec![0; 1 << MATCHES], right: [1 << 15; LENGTHS] }
    }

    fn length(&self) -> usize {
        if self.alike < 16 { self.alike / 2 } else { (6 + self.alike / 8).min(LENGTHS - 1) }
    }

    /// The bit that comes if it goes on; `None`: there is no match.
    fn expected(&self, seen: &[u8], partial: usize) -> Option<u32> {
        let bits = partial.ilog2();
        let byte = 256 | usize::from(seen[self.at]);
        (self.alike > 0 && byte >> (8 - bits) == partial).then(|| (byte >> (7 - bits)) as u32 & 1)
    }

    /// How probable a one is, of 4096, and how long the match is, roughly: below `LEVELS`.
    fn chance(&self, seen: &[u8], partial: usize) -> (i32, usize) {
        if self.alike == 0 {
            return (2048, 0);
        }
        let length = self.length();
        let right = i32::from(self.right[length] >> 4);
        match self.expected(seen, partial) {
            None => (2048, 0),
            Some(1) => (right, 1 + (length >> 2).min(2)),
            Some(_) => (4096 - right, 1 + (length >> 2).min(2)),
        }
    }

    fn learn(&mut self, seen: &[u8], partial: usize, bit: u32) {
        if self.alike == 0 {
            return;
        }
        let Some(expected) = self.expected(seen, partial) else {
            self.alike = 0;
            return;
        };
        approach(&mut self.right[self.length()], u32::from(expected == bit));
        if expected != bit {
            self.alike = 0;
        }
    }

    /// One byte on: it goes on, or another is looked for.
    fn pass(&mut self, seen: &[u8]) {
        if self.alike > 0 {
            self.at += 1;
            self.alike += 1;
        }
        let Some(last) = seen.last_chunk::<LEAST_MATCH>() else { return };
        let hash = last.iter().fold(0u32, |hash, byte| {
            (hash.rotate_left(5) ^ u32::from(*byte)).wrapping_mul(0x9e37_79b1)
        });
        let place = &mut self.places[(hash >> (32 - MATCHES)) as usize];
        if self.alike == 0 && *place > 0 {
            self.at = *place as usize;
            let before = seen[..self.at].iter().rev().zip(seen.iter().rev());
            self.alike = before.take(32).take_while(|(then, now)| then == now).count();
        }
        *place = seen.len() as u32;
    }
}

/// Chances of 4096, and their odds: 256 ln(p / (1 - p)), within ±2047.
struct Odds {
    chances: Vec<u16>,
    odds: Vec<i16>,
}

impl Odds {
    fn new() -> Odds {
        // 4096 / (1 + e^-x) for x from -8 to 8 by halves; lines between them.
        const AT: [i32; 33] = [
            1, 2, 4, 6, 10, 17, 27, 45, 74, 120, 194, 311, 488, 747, 1102, 1546, 2048, 2550, 2994,
            3349, 3608, 3785, 3902, 3976, 4022, 4051, 4069, 4079, 4086, 4090, 4092, 4094, 4095,
        ];
        let chance = |at: i32| {
            let (step, rest) = ((at >> 7) as usize, at & 127);
            ((AT[step] * (128 - rest) + AT[step + 1] * rest + 64) >> 7) as u16
        };
        let chances: Vec<u16> = (0..4096).map(chance).collect();
        let reached = |chance: usize| chances.partition_point(|at| usize::from(*at) < chance);
        let odds = (0..4096).map(|chance| (reached(chance).min(4095) as i32 - 2048) as i16);
        Odds { odds: odds.collect(), chances }
    }

    fn of(&self, chance: i32) -> i32 {
        self.odds.get(chance as usize).map_or(2047, |odds| i32::from(*odds))
    }

    fn chance(&self, odds: i32) -> i32 {
        i32::from(self.chances[(odds + 2048) as usize & 4095])
    }
}
