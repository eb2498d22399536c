//! Bands, each a pfifo of the same limit, and the map that sorts packets into them: what prio and ets
//! share. A packet's TOS bits give its priority (`pfifo_fast` has the table), and `priomap` the band
//! of each priority.

use crate::pfifo_fast::priority_of;
use crate::{Backlog, Cause, Fifo, Packet, State, Verdict};
use serde::de::{Deserialize, Deserializer, Error};
use std::fmt::Display;
use std::str::FromStr;
use units::Time;

/// What a packet's priority can be.
pub(crate) const PRIORITIES: usize = 16;

/// Numbers with a blank between.
pub(crate) fn listed<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    let text = String::deserialize(from)?;
    text.split_whitespace().map(|each| each.parse().map_err(D::Error::custom)).collect()
}

/// A band for each priority.
pub(crate) fn priomap<'de, D>(from: D) -> Result<[u8; PRIORITIES], D::Error>
where
    D: Deserializer<'de>,
{
    listed(from)?.try_into().map_err(|_| D::Error::custom("priomap has sixteen bands"))
}

pub(crate) struct Bands<B> {
    limit: u64,
    priomap: [u8; PRIORITIES],
    queues: Vec<Fifo<B>>,
    total: Backlog,
}

impl<B> Bands<B> {
    /// So many empty bands, one at least. A priority whose band there is not has the last.
    pub(crate) fn new(bands: u8, priomap: [u8; PRIORITIES], limit: u64) -> Self {
        let last = bands.max(1) - 1;
        Bands {
            limit,
            priomap: priomap.map(|band| band.min(last)),
            queues: (0..=last).map(|_| Fifo::default()).collect(),
            total: Backlog::default(),
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.queues.len()
    }

    /// The band that the packet has joined; `None`: it was full, and the packet is dropped.
    #[inline]
    pub(crate) fn push(
        &mut self,
        packet: Packet<B>,
        now: Time,
        verdicts: &mut Vec<Verdict<B>>,
    ) -> Option<usize> {
        let priority = priority_of(packet.ds);
        let band = usize::from(self.priomap[usize::from(priority)]);
        let queue = &mut self.queues[band];
        if u64::from(queue.backlog().packets) >= self.limit {
            verdicts.push(Verdict::Dropped(packet, Cause::Limit));
            return None;
        }
        self.total.packets += 1;
        self.total.bytes += u64::from(packet.size);
        queue.push(packet, now);
        Some(band)
    }

    /// The oldest packet of the first of these many bands that has one.
    #[inline]
    pub(crate) fn pop_first(&mut self, bands: usize) -> Option<Packet<B>> {
        let packet = self.queues[..bands].iter_mut().find_map(Fifo::pop)?;
        Some(self.left(packet))
    }

    /// The oldest packet of this band.
    #[inline]
    pub(crate) fn pop(&mut self, band: usize) -> Option<Packet<B>> {
        let packet = self.queues[band].pop()?;
        Some(self.left(packet))
    }

    fn left(&mut self, packet: Packet<B>) -> Packet<B> {
        self.total.packets -= 1;
        self.total.bytes -= u64::from(packet.size);
        packet
    }

    /// The queue of this band.
    #[inline]
    pub(crate) fn queue(&self, band: usize) -> &Fifo<B> {
        &self.queues[band]
    }

    /// Whether an empty band takes a packet.
    #[inline]
    pub(crate) fn have_room(&self) -> bool {
        self.limit > 0
    }

    #[inline]
    pub(crate) fn backlog(&self) -> Backlog {
        self.total
    }

    pub(crate) fn state(&self) -> State {
        State { limit: Some(self.limit as f64), ..State::default() }
    }
}
