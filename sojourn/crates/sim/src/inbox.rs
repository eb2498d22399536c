//! The packets that arrive at a link in one window of time, put in order.

use std::mem;
use units::Time;

/// The longest window, ns.
pub const LONGEST: u64 = 1 << 30;

/// The order of senders at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Another link's wire.
    Wire = 0,
    /// TCP: packets that a kernel sends by itself.
    Kernel = 1,
    /// Programs send after the kernel at the same time: timers expire before programs run.
    Program = 2,
}

/// The packets of a window.
#[derive(Default)]
pub struct Inbox {
    /// For each packet the time since the window began and its sender; whether it FOLLOWS; its
    /// node.
    keys: Vec<u64>,
    /// The instant and sender of the present host's last packet; NOTHING for a new host.
    last: u64,
    /// A packet is earlier than the one pushed before it.
    unordered: bool,
    sorted: Vec<u64>,
    ends: Vec<u32>,
}

/// A flag of a key: the packet pushed before it is from the same host at the same instant, so this
/// packet draws no lot.
const FOLLOWS: u64 = 1 << 31;
const NODE: u64 = FOLLOWS - 1;
const NOTHING: u64 = u64::MAX;

/// A bucket with more keys is sorted by the standard library.
const FEW: u32 = 16;

/// The time of a key and its sender.
#[inline(always)]
fn instant(key: u64) -> u64 {
    key >> 32
}

impl Inbox {
    /// The number of packets.
    #[inline]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// The next packets are from another host.
    #[inline]
    pub fn next_host(&mut self) {
        self.last = NOTHING;
    }

    /// Adds a packet that arrives `after` the start of the window. Packets of one host at one
    /// instant are pushed in their order. Returns whether it is the first of the window.
    #[inline]
    pub fn push(&mut self, after: u64, sender: Sender, node: u32) -> bool {
        debug_assert!(after < LONGEST && u64::from(node) <= NODE);
        let instant = after << 2 | sender as u64;
        let follows = if instant == self.last { FOLLOWS } else { 0 };
        self.last = instant;
        let key = instant << 32 | follows | u64::from(node);
        let before = self.keys.last().copied();
        self.unordered |= before.is_some_and(|before| before > (key | FOLLOWS | NODE));
        self.keys.push(key);
        before.is_none()
    }

    /// Puts the packets in order of time and kind of sender. Lots decide among packets of one kind
    /// at one instant: each host draws a new lot at each instant. Packets of one host keep the
    /// order in which they were pushed. `host` gives the host of a node's packet.
    #[inline]
    pub fn put_in_order(&mut self, began: Time, host: impl Fn(u32) -> u32) {
        if self.unordered {
            self.sort();
        }
        let mut before = 0;
        for at in 0..self.keys.len() {
            let key = self.keys[at];
            // Mostly the packet is later than the one before.
            if key <= before && key & FOLLOWS == 0 && instant(key) == instant(before) {
                self.draw_lots(at, began, &host);
            }
            before = key | FOLLOWS | NODE;
        }
    }

    /// Draws lots for all packets with the instant and the sender of the one at `among`.
    #[cold]
    fn draw_lots(&mut self, among: usize, began: Time, host: impl Fn(u32) -> u32) {
        let here = instant(self.keys[among]);
        let first = self.keys[..among].partition_point(|&key| instant(key) < here);
        let number = self.keys[first..].partition_point(|&key| instant(key) == here);
        let now = Time(began.0 + (here >> 2));
        let drawn = &mut self.keys[first..first + number];
        // A packet's lot is drawn once.
        drawn.iter_mut().for_each(|key| *key |= FOLLOWS);
        drawn.sort_by_key(|&key| lot(host((key & NODE) as u32), now));
    }

    /// The packets, in order or as they were pushed.
    #[inline]
    pub fn packets(&self, began: Time) -> impl Iterator<Item = (u32, Time)> + '_ {
        self.keys.iter().map(move |&key| ((key & NODE) as u32, Time(began.0 + (key >> 34))))
    }

    /// Removes all packets.
    #[inline]
    pub fn clear(&mut self) {
        self.keys.clear();
        self.unordered = false;
    }

    /// Sorts into about half as many buckets as keys, each a span of time. Then each key moves
    /// before the later keys of its bucket.
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

/// Moves the last key before all later ones.
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

/// The lot of a host at one instant.
pub fn lot(host: u32, now: Time) -> u32 {
    qdisc::hash(host.into(), now.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Rng;

    #[test]
    fn the_order_is_by_time_then_sender_then_draw_then_submission() {
        let mut rng = Rng::new(1, "inbox");
        let mut inbox = Inbox::default();
        for round in 0..2_000 {
            // Some are spread out, some are within a few instants of a long window.
            let span = [1, 3, 1000, LONGEST][rng.below(4) as usize];
            let mut pushed = Vec::new();
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
                    pushed.push((after, sender as u8, node));
                }
            }
            pushed.sort_by_key(|&(at, sender, node)| (at, sender, lot(node % 5, Time(round + at))));
            let mut drained = Vec::new();
            inbox.put_in_order(Time(round), |node| node % 5);
            drained.extend(inbox.packets(Time(round)).map(|(node, at)| (at.0 - round, node)));
            inbox.clear();
            assert_eq!(drained, pushed.iter().map(|&(at, _, node)| (at, node)).collect::<Vec<_>>());
            assert_eq!(inbox.len(), 0);
        }
    }

    /// The order of packets that arrive at 5 ns, pushed in this order, each from another host with
    /// the packet's number.
    fn ordered(pushed: &[(Sender, u32)], began: Time) -> Vec<u32> {
        let mut inbox = Inbox::default();
        for &(sender, node) in pushed {
            inbox.next_host();
            inbox.push(5, sender, node);
        }
        inbox.put_in_order(began, |node| node);
        inbox.packets(began).map(|(node, _)| node).collect()
    }

    #[test]
    fn at_one_instant_wires_come_first_then_tcp_then_programs() {
        let [wire, tcp, program] = [(Sender::Wire, 0), (Sender::Kernel, 1), (Sender::Program, 2)];
        for pushed in [[program, tcp, wire], [tcp, program, wire], [program, wire, tcp]] {
            assert_eq!(ordered(&pushed, Time::ZERO), [0, 1, 2], "{pushed:?}");
        }
    }

    #[test]
    fn the_order_of_hosts_is_drawn_for_each_instant() {
        let pushed = [0, 1, 2, 3].map(|host| (Sender::Kernel, host));
        // At 5, 6, 7 and 8 ns.
        let drawn = [0, 1, 2, 3].map(|began| ordered(&pushed, Time(began)));
        assert_eq!(drawn, [[1, 2, 0, 3], [2, 1, 3, 0], [3, 0, 2, 1], [0, 2, 1, 3]]);
    }
}
