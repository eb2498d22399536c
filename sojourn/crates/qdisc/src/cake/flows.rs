//! A tin's queues: the queue of each flow, the list in which a queue waits for its turn, and the
//! number of flows of each host.
//!
//! A hash selects one of 1024 queues, and the flow may use any of the eight queues in that queue's
//! set. So two flows share a queue only if all eight are taken. Hosts have tables of the same form.
//!
//! An unused queue is *at rest*. On its first turn it is *sparse*. After a turn it is *bulk* if it
//! still has packets, otherwise *waiting*. A queue that is found empty is at rest again, or
//! *decaying* until its COBALT state is at rest (`Signals::at_rest`).

use crate::cobalt::Signals;
use crate::slab::NONE;
use std::ops::{Index, IndexMut};
use units::Rng;

/// The number of a tin's queues, and of hosts of either kind.
pub(super) const QUEUES: usize = 1024;
const WAYS: usize = 8;

/// The state of a queue in its tin's round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    AtRest,
    /// The queue is on its first turn.
    Sparse,
    /// The queue has used its first turn and has no packets; it still counts as sparse.
    Waiting,
    /// The queue has a backlog over several turns.
    Bulk,
    /// The queue is empty, and its COBALT state is not at rest.
    Decaying,
}

/// A queue.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// The places of its first and last packet in the slab.
    pub(super) head: u32,
    pub(super) tail: u32,
    pub(super) bytes: u32,
    /// The bytes that the queue may still send in this turn.
    pub(super) deficit: i32,
    pub(super) life: Life,
    /// The indices of its source and destination in the tables of hosts.
    hosts: [u16; 2],
    pub(super) signals: Signals,
}

/// The lists of queues. A queue is in at most one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    New = QUEUES as isize,
    Old,
    Decaying,
}

/// Draws the length of each turn, which decides whether a queue may send.
pub(super) trait Draws {
    /// The bytes of a queue's turn: `share` is in units of 1/65 536 byte and is rounded up or down.
    fn turn(&mut self, index: usize, share: u32, is_first: bool) -> i32;

    /// Whether the queue whose turn it is may still send.
    #[inline(always)]
    fn may_send(&mut self, index: usize, flows: &mut Flows) -> bool {
        flows.flows[index].deficit > 0
    }
}

impl Draws for Rng {
    #[inline(always)]
    fn turn(&mut self, _index: usize, share: u32, _is_first: bool) -> i32 {
        let fraction = (self.next_u64() >> 48) as u32;
        ((share + fraction) >> 16) as i32
    }
}

/// A table with a value for each queue or host. Indices are taken modulo its length, a power of
/// two, so that no access has to be checked.
#[derive(Clone, Debug)]
struct Table<T, const N: usize>(Box<[T; N]>);

impl<T: Clone, const N: usize> Table<T, N> {
    fn new(value: T) -> Table<T, N> {
        const { assert!(N.is_power_of_two()) };
        let Ok(all) = vec![value; N].into_boxed_slice().try_into() else {
            unreachable!("the length was just set")
        };
        Table(all)
    }
}

impl<T, const N: usize> Index<usize> for Table<T, N> {
    type Output = T;

    #[inline(always)]
    fn index(&self, index: usize) -> &T {
        &self.0[index % N]
    }
}

impl<T, const N: usize> IndexMut<usize> for Table<T, N> {
    #[inline(always)]
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.0[index % N]
    }
}

/// The lists as rings: for each place the previous and the next place in its ring. Each list has a
/// place of its own for its head, behind the places of the queues.
#[derive(Clone, Debug)]
struct Lists(Table<[u16; 2], { 2 * QUEUES }>);

impl Lists {
    fn new() -> Lists {
        let mut places = Table::new([0; 2]);
        for place in 0..QUEUES + 3 {
            places[place] = [place as u16; 2];
        }
        Lists(places)
    }

    /// The first queue of a list.
    #[inline]
    fn first(&self, list: List) -> Option<usize> {
        let first = self.behind(list as usize);
        (first != list as usize).then_some(first)
    }

    #[inline]
    fn behind(&self, place: usize) -> usize {
        usize::from(self.0[place][1])
    }

    /// Removes a place from its ring, if it is in one.
    #[inline]
    fn unlink(&mut self, index: usize) {
        let [before, behind] = self.0[index];
        self.0[usize::from(before)][1] = behind;
        self.0[usize::from(behind)][0] = before;
        self.0[index] = [index as u16; 2];
    }

    /// Moves a place to just before the place `behind`.
    #[inline]
    fn move_before(&mut self, index: usize, behind: usize) {
        self.unlink(index);
        let before = std::mem::replace(&mut self.0[behind][0], index as u16);
        self.0[usize::from(before)][1] = index as u16;
        self.0[index] = [before, behind as u16];
    }

    /// Moves a queue to the end of a list.
    #[inline]
    fn move_to(&mut self, index: usize, list: List) {
        self.move_before(index, list as usize);
    }

    /// Rotates a list so that this queue becomes the first.
    #[inline]
    fn rotate_to(&mut self, index: usize, list: List) {
        self.move_before(list as usize, index);
    }
}

/// Hosts of one kind: sources or destinations.
#[derive(Clone, Debug)]
struct Hosts {
    /// Whether a host's flows share a turn. Otherwise bulk flows are not counted.
    share: bool,
    tags: Table<u32, QUEUES>,
    /// The number of bulk flows of each host.
    bulk: Table<u16, QUEUES>,
}

impl Hosts {
    fn new(share: bool) -> Hosts {
        Hosts { share, tags: Table::new(0), bulk: Table::new(0) }
    }

    /// The place of a host: its own, otherwise one without bulk flows, otherwise the one its hash
    /// selects.
    fn find(&mut self, hash: u32) -> u16 {
        let place = ways(hash)
            .find(|place| self.tags[*place] == hash)
            .or_else(|| ways(hash).find(|place| self.bulk[*place] == 0))
            .unwrap_or(hash as usize % QUEUES);
        self.tags[place] = hash;
        place as u16
    }
}

/// The places of a hash's set, starting with the one that the hash selects.
fn ways(hash: u32) -> impl Iterator<Item = usize> {
    let slot = hash as usize % QUEUES;
    let set = slot - slot % WAYS;
    (0..WAYS).map(move |way| set + (slot + way) % WAYS)
}

/// The queues of a tin.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    flows: Table<Flow, QUEUES>,
    tags: Table<u32, QUEUES>,
    lists: Lists,
    /// The tables of sources and of destinations.
    hosts: [Hosts; 2],
    /// The bytes of a turn of a flow that shares its host with no other.
    pub(super) quantum: u32,
    /// The numbers of sparse (or waiting) and of bulk queues.
    pub(super) sparse: u32,
    pub(super) bulk: u32,
}

impl Flows {
    /// Empty queues. `by_host`: whether flows share the turn of their source, and of their
    /// destination.
    pub(super) fn new(by_host: [bool; 2], quantum: u32) -> Flows {
        let flow = Flow {
            head: NONE,
            tail: NONE,
            bytes: 0,
            deficit: 0,
            life: Life::AtRest,
            hosts: [0; 2],
            signals: Signals::default(),
        };
        Flows {
            flows: Table::new(flow),
            tags: Table::new(0),
            lists: Lists::new(),
            hosts: by_host.map(Hosts::new),
            quantum,
            sparse: 0,
            bulk: 0,
        }
    }

    #[inline]
    pub(super) fn at(&self, index: usize) -> &Flow {
        &self.flows[index]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, index: usize) -> &mut Flow {
        &mut self.flows[index]
    }

    /// Whether any queue has or had packets in this round.
    #[inline]
    pub(super) fn in_turn(&self) -> bool {
        self.sparse + self.bulk > 0
    }

    /// The queue of a packet, by its flow's hash. `hosts` returns the hashes of source and
    /// destination. It is called if the flow is new to the queue.
    #[inline]
    pub(super) fn queue(&mut self, hash: u32, hosts: impl FnOnce() -> [u32; 2]) -> usize {
        let slot = hash as usize % QUEUES;
        if self.tags[slot] == hash && self.flows[slot].life != Life::AtRest {
            return slot;
        }
        // The flow's own queue, or an unused one.
        let own = ways(hash).find(|way| self.tags[*way] == hash);
        match own {
            Some(own) if self.flows[own].life != Life::AtRest => own,
            _ => self.take(hash, own, hosts()),
        }
    }

    /// Assigns a queue to a flow. `own` is the flow's former queue, if any.
    fn take(&mut self, hash: u32, own: Option<usize>, hosts: [u32; 2]) -> usize {
        let slot = hash as usize % QUEUES;
        let unused = || ways(hash).find(|way| self.flows[*way].life == Life::AtRest);
        let index = own.or_else(unused).unwrap_or(slot);
        self.tags[index] = hash;
        // If the queue is taken from a bulk flow of other hosts, the new flow's hosts now count it.
        let taken = self.flows[index].life == Life::Bulk;
        if taken {
            self.count_at_hosts(index, |bulk| bulk.saturating_sub(1));
        }
        for (kind, table) in self.hosts.iter_mut().enumerate().filter(|(_, table)| table.share) {
            self.flows[index].hosts[kind] = table.find(hosts[kind]);
        }
        if taken {
            self.count_at_hosts(index, one_more);
        }
        index
    }

    fn count_at_hosts(&mut self, index: usize, change: impl Fn(u16) -> u16) {
        for (table, host) in self.hosts.iter_mut().zip(self.flows[index].hosts) {
            if table.share {
                let bulk = &mut table.bulk[usize::from(host)];
                *bulk = change(*bulk);
            }
        }
    }

    /// The bytes of this queue's turn. A host's bulk flows share a turn: a draw rounds the fraction
    /// `quantum / load` up or down.
    #[inline(always)]
    fn turn(&self, index: usize, is_first: bool, draws: &mut impl Draws) -> i32 {
        let [source, destination] = self.flows[index].hosts.map(usize::from);
        let loads = [self.hosts[0].bulk[source], self.hosts[1].bulk[destination]];
        let load = u32::from(loads[0].max(loads[1]).max(1));
        draws.turn(index, self.quantum * (0xffff / load), is_first)
    }

    /// A packet has arrived in this queue.
    #[inline]
    pub(super) fn arrived(&mut self, index: usize, draws: &mut impl Draws) {
        match self.flows[index].life {
            Life::AtRest | Life::Decaying => {
                self.lists.move_to(index, List::New);
                self.flows[index].life = Life::Sparse;
                self.sparse += 1;
                self.flows[index].deficit = self.turn(index, true, draws);
            }
            Life::Waiting => self.becomes_bulk(index),
            Life::Sparse | Life::Bulk => {}
        }
    }

    fn becomes_bulk(&mut self, index: usize) {
        self.flows[index].life = Life::Bulk;
        self.sparse -= 1;
        self.bulk += 1;
        self.count_at_hosts(index, one_more);
    }

    /// The queue whose turn it is and that may still send: new queues before old ones. A decaying
    /// queue is used if there is no other, or first with `decaying_first`. Queues that have used
    /// their turn get another one and move behind the old ones.
    #[inline]
    pub(super) fn next(&mut self, decaying_first: bool, draws: &mut impl Draws) -> Option<usize> {
        let mut decaying = decaying_first.then(|| self.lists.first(List::Decaying)).flatten();
        loop {
            let index = match decaying.take().or_else(|| self.lists.first(List::New)) {
                Some(index) => index,
                None => match self.lists.first(List::Old) {
                    Some(first) => return Some(self.next_old(first, draws)),
                    None => self.lists.first(List::Decaying)?,
                },
            };
            if draws.may_send(index, self) {
                return Some(index);
            }
            self.end_turn(index, draws);
        }
    }

    /// The first old queue that may send, starting from `first`. If many flows share a host, a
    /// packet takes many turns. So this walks around the ring first and rotates it once at the end.
    #[inline]
    fn next_old(&mut self, first: usize, draws: &mut impl Draws) -> usize {
        let mut index = first;
        while !draws.may_send(index, self) {
            debug_assert_ne!(
                self.flows[index].life,
                Life::Sparse,
                "a sparse queue is among the new ones"
            );
            self.flows[index].deficit += self.turn(index, false, draws);
            index = self.lists.behind(index);
            if index == List::Old as usize {
                index = self.lists.behind(index);
            }
        }
        if index != first {
            self.lists.rotate_to(index, List::Old);
        }
        index
    }

    /// The queues whose turns come before the next turn of this queue if its current turn ends now.
    pub(super) fn before_its_next(&self, index: usize) -> impl Iterator<Item = usize> {
        let ring = |from: usize| {
            std::iter::successors(Some(from), |place| Some(self.lists.behind(*place))).skip(1)
        };
        let all = |list: List| ring(list as usize).take_while(move |place| *place != list as usize);
        // An old queue is served only if there are no new ones. The places of the lists' heads are
        // not queues.
        let old = ring(index).take_while(move |place| *place != index);
        let is_old = all(List::Old).any(|place| place == index);
        let others = if is_old {
            Vec::from_iter(old)
        } else {
            all(List::New).chain(all(List::Old)).collect()
        };
        others.into_iter().filter(move |place| *place < QUEUES && *place != index)
    }

    /// Ends the queue's turn: it gets another one and moves behind the old queues.
    pub(super) fn end_turn(&mut self, index: usize, draws: &mut impl Draws) {
        if self.flows[index].life == Life::Sparse {
            if self.flows[index].head == NONE {
                self.flows[index].life = Life::Waiting;
            } else {
                self.becomes_bulk(index);
            }
        }
        let turn = self.turn(index, false, draws);
        self.flows[index].deficit += turn;
        self.lists.move_to(index, List::Old);
    }

    /// The queue was served and found empty. `decays`: its COBALT state is not at rest.
    #[inline]
    pub(super) fn found_empty(&mut self, index: usize, decays: bool) {
        match self.flows[index].life {
            Life::Sparse | Life::Waiting => self.sparse -= 1,
            Life::Bulk => {
                self.bulk -= 1;
                self.count_at_hosts(index, |bulk| bulk.saturating_sub(1));
            }
            Life::Decaying | Life::AtRest => {}
        }
        if decays {
            self.lists.move_to(index, List::Decaying);
            self.flows[index].life = Life::Decaying;
        } else {
            self.lists.unlink(index);
            self.flows[index].life = Life::AtRest;
        }
    }

    /// The numbers of bulk flows of a queue's source and destination.
    #[cfg(test)]
    pub(super) fn bulk_of_hosts(&self, index: usize) -> [u16; 2] {
        [0, 1].map(|kind| {
            let host = usize::from(self.flows[index].hosts[kind]);
            self.hosts[kind].bulk[host]
        })
    }
}

fn one_more(bulk: u16) -> u16 {
    (bulk + 1).min(QUEUES as u16)
}
