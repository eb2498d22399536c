//! What comes to a link in one window of time, put in order.

use std::mem;
use units::Time;

/// A window is no longer than this, ns.
pub const LONGEST: u64 = 1 << 30;

/// Who comes first of those that come at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Off another link's wire.
    Wire = 0,
    /// TCP: what a kernel sends by itself.
    Kernel = 1,
    /// Programs send behind what the kernel does at that time: timers go off before programs run.
    Program = 2,
}

/// The packets of a window.
#[derive(Default)]
pub struct Inbox {
    /// Of each the time since the window began and its sender; whether it FOLLOWS; where it lies.
    keys: Vec<u64>,
    /// The instant and sender of what the present host has told last; of a further host NOTHING.
    told: u64,
    /// One comes sooner than what was told before it.
    unordered: bool,
    sorted: Vec<u64>,
    ends: Vec<u32>,
}

/// What was told before comes from the same host at the same instant. Then no lot is drawn.
const FOLLOWS: u64 = 1 << 31;
const NODE: u64 = FOLLOWS - 1;
const NOTHING: u64 = u64::MAX;

/// A bucket into which more fall is sorted by the library.
const FEW: u32 = 16;

/// The time of a key and its sender.
#[inline(always)]
fn instant(key: u64) -> u64 {
    key >> 32
}

impl Inbox {
    /// How many come.
    #[inline]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// What is told next comes from another host.
    #[inline]
    pub fn next_host(&mut self) {
        self.told = NOTHING;
    }

    /// A packet comes, so long after the window began. Those of one host that come at one instant
    /// are told in their order. Whether it is the first to be told.
    #[inline]
    pub fn push(&mut self, after: u64, sender: Sender, node: u32) -> bool {
        debug_assert!(after < LONGEST && u64::from(node) <= NODE);
        let instant = after << 2 | sender as u64;
        let follows = if instant == self.told { FOLLOWS } else { 0 };
        self.told = instant;
        let key = instant << 32 | follows | u64::from(node);
        let last = self.keys.last().copied();
        self.unordered |= last.is_some_and(|last| last > (key | FOLLOWS | NODE));
        self.keys.push(key);
        last.is_none()
    }

    /// Puts the packets in order of time and sender. Among those of one sender that come at one
    /// instant a lot decides, another each time, which is drawn for the `host` of their flow. Those
    /// of one host stay as they were told.
    #[inline]
    pub fn put_in_order(&mut self, began: Time, host: impl Fn(u32) -> u32) {
        if self.unordered {
            self.sort();
        }
        let mut before = NOTHING;
        for at in 0..self.keys.len() {
            let key = self.keys[at];
            if instant(key) == instant(before) && key & FOLLOWS == 0 {
                self.draw_lots(at, began, &host);
            }
            before = key;
        }
    }

    /// For all that come when the one at `among` does, from the same sender.
    #[cold]
    fn draw_lots(&mut self, among: usize, began: Time, host: impl Fn(u32) -> u32) {
        let here = instant(self.keys[among]);
        let first = self.keys[..among].partition_point(|&key| instant(key) < here);
        let number = self.keys[first..].partition_point(|&key| instant(key) == here);
        let now = Time(began.0 + (here >> 2));
        let drawn = &mut self.keys[first..first + number];
        // Their lots are drawn once.
        drawn.iter_mut().for_each(|key| *key |= FOLLOWS);
        drawn.sort_by_key(|&key| lot(host((key & NODE) as u32), now));
    }

    /// Hands over all packets, in order or as they were told.
    #[inline]
    pub fn drain(&mut self, began: Time, mut take: impl FnMut(u32, Time)) {
        for &key in &self.keys {
            take((key & NODE) as u32, Time(began.0 + (key >> 34)));
        }
        self.keys.clear();
        self.unordered = false;
    }

    /// Into about half as many buckets as keys, each a stretch of time; then each key past those
    /// before it that come later, which lie in its bucket.
    fn sort(&mut self) {
        let most = self.keys.iter().fold(0, |most, &key| most.max(key));
        let buckets = (self.keys.len().next_power_of_two() / 2).max(2);
        let shift = (u64::BITS - most.leading_zeros()).saturating_sub(buckets.ilog2()).max(32);
        self.ends.clear();
        self.ends.resize(buckets, 0);
        for key in &self.keys {
            self.ends[(key >> shift) as usize] += 1;
        }
        let (mut start, mut crowd) = (0, 0);
        for end in &mut self.ends {
            crowd = crowd.max(*end);
            start += mem::replace(end, start);
        }
        self.sorted.resize(self.keys.len(), 0);
        for &key in &self.keys {
            let end = &mut self.ends[(key >> shift) as usize];
            self.sorted[*end as usize] = key;
            *end += 1;
        }
        mem::swap(&mut self.keys, &mut self.sorted);
        if crowd > FEW {
            self.sort_crowds();
        }
        let mut before = 0;
        for at in 0..self.keys.len() {
            let key = self.keys[at];
            if before > key | FOLLOWS | NODE {
                insert(&mut self.keys[..=at]);
            } else {
                before = key;
            }
        }
    }

    #[cold]
    fn sort_crowds(&mut self) {
        let mut start = 0;
        for &end in &self.ends {
            if end - start > FEW {
                self.keys[start as usize..end as usize].sort_by_key(|&key| instant(key));
            }
            start = end;
        }
    }
}

/// Moves the last key past those that come later.
#[inline]
fn insert(keys: &mut [u64]) {
    let mut place = keys.len() - 1;
    let key = keys[place];
    while place > 0 && instant(keys[place - 1]) > instant(key) {
        keys[place] = keys[place - 1];
        place -= 1;
    }
    keys[place] = key;
}

/// What a host draws at one instant.
pub fn lot(host: u32, now: Time) -> u32 {
    qdisc::hash(host.into(), now.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Rng;

    #[test]
    fn the_order_is_time_then_sender_then_lot_then_as_told() {
        let mut rng = Rng::new(1, "inbox");
        let mut inbox = Inbox::default();
        for round in 0..2_000 {
            // Some spread out, some all within a few instants of a long window.
            let span = [1, 3, 1000, LONGEST][rng.below(4) as usize];
            let mut told = Vec::new();
            for place in (0..rng.below(100) as u32).rev() {
                let far = rng.chance(0.01);
                let after = if far { LONGEST - 1 } else { rng.below(span) };
                let sender = [Sender::Wire, Sender::Kernel, Sender::Program][rng.below(3) as usize];
                inbox.next_host();
                let host = rng.below(5) as u32;
                for burst in 0..=rng.below(3) as u32 {
                    let node = 5 * (3 * place + burst) + host;
                    let after = if rng.chance(0.8) { after } else { rng.below(span) };
                    inbox.push(after, sender, node);
                    told.push((after, sender as u8, node));
                }
            }
            told.sort_by_key(|&(at, sender, node)| (at, sender, lot(node % 5, Time(round + at))));
            let mut drained = Vec::new();
            inbox.put_in_order(Time(round), |node| node % 5);
            inbox.drain(Time(round), |node, at| drained.push((at.0 - round, node)));
            assert_eq!(drained, told.iter().map(|&(at, _, node)| (at, node)).collect::<Vec<_>>());
            assert_eq!(inbox.len(), 0);
        }
    }

    /// What comes at 5 ns, told in this order, each from a host of its own, which has the packet's
    /// number.
    fn ordered(told: &[(Sender, u32)], began: Time) -> Vec<u32> {
        let mut inbox = Inbox::default();
        for &(sender, node) in told {
            inbox.next_host();
            inbox.push(5, sender, node);
        }
        inbox.put_in_order(began, |node| node);
        let mut drained = Vec::new();
        inbox.drain(began, |node, _| drained.push(node));
        drained
    }

    #[test]
    fn at_one_instant_wires_come_first_then_tcp_then_programs() {
        let [wire, tcp, program] = [(Sender::Wire, 0), (Sender::Kernel, 1), (Sender::Program, 2)];
        for told in [[program, tcp, wire], [tcp, program, wire], [program, wire, tcp]] {
            assert_eq!(ordered(&told, Time::ZERO), [0, 1, 2], "{told:?}");
        }
    }

    #[test]
    fn the_lot_of_hosts_is_another_at_each_instant() {
        let told = [0, 1, 2, 3].map(|host| (Sender::Kernel, host));
        // At 5, 6, 7 and 8 ns.
        let drawn = [0, 1, 2, 3].map(|began| ordered(&told, Time(began)));
        assert_eq!(drawn, [[1, 2, 0, 3], [2, 1, 3, 0], [3, 0, 2, 1], [0, 2, 1, 3]]);
    }
}
