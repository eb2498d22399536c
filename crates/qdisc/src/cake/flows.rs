//! A tin's queues: which one a flow has, in which list it waits for its turn, and how many flows
//! its hosts have.
//!
//! A hash points at one of 1024 queues, and the flow may have any of the eight of that queue's set.
//! So two flows meet in a queue only where all eight are taken. Hosts have tables of the same form.
//!
//! A queue lives through: at rest; *sparse* on its first turn; *bulk* once it has spent a turn and
//! still has packets, *waiting* if it has none; *decaying* when it was found empty while its law
//! has not come to rest.

use crate::cobalt::Signals;
use crate::slab::NONE;
use units::Luck;

/// Queues of a tin, and hosts of either kind.
pub(super) const QUEUES: usize = 1024;
const WAYS: usize = 8;

/// What a queue is in its tin's round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    AtRest,
    /// On its first turn.
    Sparse,
    /// It spent its first turn and has no packets; it still counts as sparse.
    Waiting,
    /// With a backlog over several turns.
    Bulk,
    /// Empty, and its law not at rest.
    Decaying,
}

/// One queue.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// Its first and last packet in the slab.
    pub(super) head: u32,
    pub(super) tail: u32,
    pub(super) bytes: u32,
    /// Bytes it may still send in this turn.
    pub(super) deficit: i32,
    pub(super) life: Life,
    /// Where its source and destination are in the tables of hosts.
    hosts: [u16; 2],
    pub(super) signals: Signals,
}

/// The lists of queues; a queue is in one at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    New = QUEUES as isize,
    Old,
    Decaying,
}

/// Rings of queues, each through a place of its own that stands for the list.
#[derive(Clone, Debug)]
struct Lists(Vec<[u16; 2]>);

impl Lists {
    fn new() -> Lists {
        Lists((0..QUEUES as u16 + 3).map(|place| [place, place]).collect())
    }

    /// The first queue of a list.
    #[inline]
    fn first(&self, list: List) -> Option<usize> {
        let first = usize::from(self.0[list as usize][1]);
        (first != list as usize).then_some(first)
    }

    /// Takes a queue out of its list, if it is in one.
    #[inline]
    fn unlink(&mut self, index: usize) {
        let [before, behind] = self.0[index];
        self.0[usize::from(before)][1] = behind;
        self.0[usize::from(behind)][0] = before;
        self.0[index] = [index as u16; 2];
    }

    /// Puts a queue at the end of a list, out of any other.
    #[inline]
    fn move_to(&mut self, index: usize, list: List) {
        self.unlink(index);
        let last = std::mem::replace(&mut self.0[list as usize][0], index as u16);
        self.0[usize::from(last)][1] = index as u16;
        self.0[index] = [last, list as u16];
    }
}

/// Hosts of one kind: sources or destinations.
#[derive(Clone, Debug)]
struct Hosts {
    tags: Vec<u32>,
    /// Bulk flows of each.
    bulk: Vec<u16>,
}

impl Hosts {
    fn new() -> Hosts {
        Hosts { tags: vec![0; QUEUES], bulk: vec![0; QUEUES] }
    }

    /// The place of a host: its own, or one without bulk flows, or the one its hash points at.
    fn find(&mut self, hash: u32) -> u16 {
        let place = ways(hash)
            .find(|place| self.tags[*place] == hash)
            .or_else(|| ways(hash).find(|place| self.bulk[*place] == 0))
            .unwrap_or(hash as usize % QUEUES);
        self.tags[place] = hash;
        place as u16
    }
}

/// The places of a hash's set, from the one that it points at.
fn ways(hash: u32) -> impl Iterator<Item = usize> {
    let slot = hash as usize % QUEUES;
    let set = slot - slot % WAYS;
    (0..WAYS).map(move |way| set + (slot + way) % WAYS)
}

/// A packet's hashes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hashes {
    pub(super) flow: u32,
    /// Source and destination; 0 where hosts don't matter.
    pub(super) hosts: [u32; 2],
}

/// The queues of a tin.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    flows: Vec<Flow>,
    tags: Vec<u32>,
    lists: Lists,
    /// By source and by destination; `None`: the mode does not share by these.
    hosts: [Option<Hosts>; 2],
    /// Bytes of a turn, of a flow that shares its host with none.
    pub(super) quantum: u32,
    /// How many are sparse (or waiting), and bulk.
    pub(super) sparse: u32,
    pub(super) bulk: u32,
}

impl Flows {
    /// `by_host`: whether the turn of a flow is shared by the flows of its source, of its
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
            flows: vec![flow; QUEUES],
            tags: vec![0; QUEUES],
            lists: Lists::new(),
            hosts: by_host.map(|by| by.then(Hosts::new)),
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

    /// The queue of a packet.
    #[inline]
    pub(super) fn queue(&mut self, hashes: Hashes) -> usize {
        let slot = hashes.flow as usize % QUEUES;
        if self.tags[slot] == hashes.flow && self.flows[slot].life != Life::AtRest {
            return slot;
        }
        self.find(hashes)
    }

    fn find(&mut self, hashes: Hashes) -> usize {
        let slot = hashes.flow as usize % QUEUES;
        let own = ways(hashes.flow).find(|way| self.tags[*way] == hashes.flow);
        if let Some(own) = own.filter(|own| self.flows[*own].life != Life::AtRest) {
            return own;
        }
        let unused = || ways(hashes.flow).find(|way| self.flows[*way].life == Life::AtRest);
        let index = own.or_else(unused).unwrap_or(slot);
        self.tags[index] = hashes.flow;
        // A queue that is taken from another flow: its bulk flow is now of these hosts.
        let taken = self.flows[index].life == Life::Bulk;
        if taken {
            self.count_at_hosts(index, |bulk| bulk.saturating_sub(1));
        }
        for (kind, table) in self.hosts.iter_mut().enumerate() {
            if let Some(table) = table {
                self.flows[index].hosts[kind] = table.find(hashes.hosts[kind]);
            }
        }
        if taken {
            self.count_at_hosts(index, one_more);
        }
        index
    }

    fn count_at_hosts(&mut self, index: usize, change: impl Fn(u16) -> u16) {
        for (table, host) in self.hosts.iter_mut().zip(self.flows[index].hosts) {
            if let Some(table) = table {
                let bulk = &mut table.bulk[usize::from(host)];
                *bulk = change(*bulk);
            }
        }
    }

    /// Bytes of this queue's turn. A host's bulk flows share one: with `quantum / load` as a number
    /// with a fraction, which a draw rounds up or down.
    #[inline]
    fn turn(&self, index: usize, luck: &mut Luck) -> i32 {
        let hosts = self.flows[index].hosts;
        let load = |kind: usize| {
            self.hosts[kind].as_ref().map_or(1, |table| table.bulk[usize::from(hosts[kind])])
        };
        let load = u32::from(load(0).max(load(1)).max(1));
        let fraction = (luck.next_u64() >> 48) as u32;
        ((self.quantum * (0xffff / load) + fraction) >> 16) as i32
    }

    /// A packet has come into this queue.
    #[inline]
    pub(super) fn arrived(&mut self, index: usize, luck: &mut Luck) {
        match self.flows[index].life {
            Life::AtRest | Life::Decaying => {
                self.lists.move_to(index, List::New);
                self.flows[index].life = Life::Sparse;
                self.sparse += 1;
                self.flows[index].deficit = self.turn(index, luck);
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

    /// The queue whose turn it is: new ones before old ones. A decaying one is looked at where
    /// there is no other, or first if so asked.
    #[inline]
    pub(super) fn next(&self, decaying_first: bool) -> Option<usize> {
        let of = |list| self.lists.first(list);
        decaying_first
            .then(|| of(List::Decaying))
            .flatten()
            .or_else(|| of(List::New))
            .or_else(|| of(List::Old))
            .or_else(|| of(List::Decaying))
    }

    /// The queue has spent its turn: it gets another one behind the old ones.
    #[inline]
    pub(super) fn end_turn(&mut self, index: usize, luck: &mut Luck) {
        if self.flows[index].life == Life::Sparse {
            if self.flows[index].head == NONE {
                self.flows[index].life = Life::Waiting;
            } else {
                self.becomes_bulk(index);
            }
        }
        let turn = self.turn(index, luck);
        self.flows[index].deficit += turn;
        self.lists.move_to(index, List::Old);
    }

    /// The queue was served and found empty; `decays`: its law is not at rest.
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

    /// Bulk flows of the source and the destination of a queue.
    #[cfg(test)]
    pub(super) fn bulk_of_hosts(&self, index: usize) -> [u16; 2] {
        [0, 1].map(|kind| {
            let host = usize::from(self.flows[index].hosts[kind]);
            self.hosts[kind].as_ref().map_or(0, |table| table.bulk[host])
        })
    }
}

fn one_more(bulk: u16) -> u16 {
    (bulk + 1).min(QUEUES as u16)
}
