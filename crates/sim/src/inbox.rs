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
    /// Of each the time since the window began, its sender and where it lies.
    keys: Vec<u64>,
    sorted: Vec<u64>,
    ends: Vec<u32>,
}

/// Buckets with more are sorted by the library.
const FEW: usize = 16;

impl Inbox {
    /// How many come.
    #[inline]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// A packet comes, so long after the window began. Those of one host that come at one instant
    /// are told in their order. Whether it is the first to be told.
    #[inline]
    pub fn push(&mut self, after: u64, sender: Sender, node: u32) -> bool {
        debug_assert!(after < LONGEST);
        let first = self.keys.is_empty();
        self.keys.push(after << 34 | (sender as u64) << 32 | u64::from(node));
        first
    }

    /// Puts the packets in order of time and sender. Among those of one sender that come at one
    /// instant a lot decides, another each time, which is drawn for the `host` of their flow. Those
    /// of one host stay as they were told.
    #[inline]
    pub fn put_in_order(&mut self, began: Time, host: impl Fn(u32) -> u32) {
        if !self.keys.is_sorted_by_key(|key| key >> 32) {
            self.sort();
        }
        let mut at = 1;
        while at < self.keys.len() {
            let [one, next] = [self.keys[at - 1], self.keys[at]];
            // Mostly it is a burst of one host.
            if one >> 32 == next >> 32 && host(one as u32) != host(next as u32) {
                at = self.draw_lots(at, began, &host);
            }
            at += 1;
        }
    }

    /// For all that come when the one at `among` does, from the same sender; the place behind them.
    #[cold]
    fn draw_lots(&mut self, among: usize, began: Time, host: impl Fn(u32) -> u32) -> usize {
        let instant = self.keys[among] >> 32;
        let first = self.keys[..among].partition_point(|key| key >> 32 < instant);
        let number = self.keys[first..].partition_point(|key| key >> 32 == instant);
        let now = Time(began.0 + (instant >> 2));
        self.keys[first..first + number].sort_by_key(|key| lot(host(*key as u32), now));
        first + number
    }

    /// Hands over all packets, in order or as they were told.
    #[inline]
    pub fn drain(&mut self, began: Time, mut take: impl FnMut(u32, Time)) {
        for key in self.keys.drain(..) {
            take(key as u32, Time(began.0 + (key >> 34)));
        }
    }

    /// About as many buckets as keys, each a stretch of time; then each bucket by itself.
    fn sort(&mut self) {
        let most = self.keys.iter().fold(0, |most, &key| most.max(key));
        let buckets = self.keys.len().next_power_of_two();
        let shift = (u64::BITS - most.leading_zeros()).saturating_sub(buckets.ilog2()).max(32);
        self.ends.clear();
        self.ends.resize(buckets, 0);
        for key in &self.keys {
            self.ends[(key >> shift) as usize] += 1;
        }
        let mut start = 0;
        for end in &mut self.ends {
            start += mem::replace(end, start);
        }
        self.sorted.resize(self.keys.len(), 0);
        for &key in &self.keys {
            let end = &mut self.ends[(key >> shift) as usize];
            self.sorted[*end as usize] = key;
            *end += 1;
        }
        let mut start = 0;
        for &end in &self.ends {
            let bucket = &mut self.sorted[start..end as usize];
            match bucket {
                [] | [_] => {}
                [first, second] => {
                    if *first >> 32 > *second >> 32 {
                        mem::swap(first, second);
                    }
                }
                _ if bucket.len() <= FEW => insertion_sort(bucket),
                _ => bucket.sort_by_key(|key| key >> 32),
            }
            start = end as usize;
        }
        mem::swap(&mut self.keys, &mut self.sorted);
    }
}

/// What a host draws at one instant.
pub fn lot(host: u32, now: Time) -> u32 {
    qdisc::hash(host.into(), now.0)
}

fn insertion_sort(keys: &mut [u64]) {
    for at in 1..keys.len() {
        let key = keys[at];
        let mut place = at;
        while place > 0 && keys[place - 1] >> 32 > key >> 32 {
            keys[place] = keys[place - 1];
            place -= 1;
        }
        keys[place] = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Luck;

    #[test]
    fn the_order_is_time_then_sender_then_lot_then_as_told() {
        let mut luck = Luck::new(1, "inbox");
        let mut inbox = Inbox::default();
        for round in 0..2_000 {
            // Some spread out, some all within a few instants of a long window.
            let span = [1, 3, 1000, LONGEST][luck.below(4) as usize];
            let mut told = Vec::new();
            for node in (0..luck.below(200) as u32).rev() {
                let far = luck.chance(0.01);
                let after = if far { LONGEST - 1 } else { luck.below(span) };
                let sender =
                    [Sender::Wire, Sender::Kernel, Sender::Program][luck.below(3) as usize];
                inbox.push(after, sender, node);
                told.push((after, sender as u8, node));
            }
            told.sort_by_key(|&(at, sender, node)| (at, sender, lot(node % 5, Time(round + at))));
            let mut drained = Vec::new();
            inbox.put_in_order(Time(round), |node| node % 5);
            inbox.drain(Time(round), |node, at| drained.push((at.0 - round, node)));
            assert_eq!(drained, told.iter().map(|&(at, _, node)| (at, node)).collect::<Vec<_>>());
            assert_eq!(inbox.len(), 0);
        }
    }
}
