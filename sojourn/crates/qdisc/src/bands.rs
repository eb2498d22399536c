//! Bands for prio and ets. Each band is a pfifo, all with the same limit. A packet's TOS bits give
//! its priority (`pfifo_fast` has the table), and `priomap` gives the band of each priority.

use crate::pfifo_fast::priority_of;
use crate::{Backlog, Cause, Fifo, Packet, State, Verdict};
use serde::de::{Deserialize, Deserializer, Error};
use std::fmt::Display;
use std::str::FromStr;
use units::Time;

/// The number of priorities.
pub(crate) const PRIORITIES: usize = 16;

/// Reads numbers separated by blanks.
pub(crate) fn listed<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    let text = String::deserialize(from)?;
    text.split_whitespace().map(|each| each.parse().map_err(D::Error::custom)).collect()
}

/// Reads a band for each priority.
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
    /// `bands` empty bands, at least one. A priority mapped to a missing band uses the last band.
    pub(crate) fn new(bands: u8, priomap: [u8; PRIORITIES], limit: u64) -> Self {
        let last = bands.max(1) - 1;
        Bands {
            limit,
            priomap: priomap.map(|band| band.min(last)),
            queues: (0..=last).map(|_| Fifo::default()).collect(),
            total: Backlog::default(),
        }
    }

    /// The number of bands.
    pub(crate) fn len(&self) -> usize {
        self.queues.len()
    }

    /// Enqueues a packet and returns its band. Returns `None` if the band is full; the packet is
    /// then dropped.
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

    /// Removes the oldest packet of the first nonempty band among the first `bands`.
    #[inline]
    pub(crate) fn pop_first(&mut self, bands: usize) -> Option<Packet<B>> {
        let packet = self.queues[..bands].iter_mut().find_map(Fifo::pop)?;
        Some(self.left(packet))
    }

    /// Removes the oldest packet of this band.
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
