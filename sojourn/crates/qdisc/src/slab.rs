//! A slab: the packets of many queues in one memory, each queue linked by index.
//!
//! The slab has as many slots as packets were ever queued at once, in all queues together.

use crate::Packet;

/// The end of a linked list.
pub(crate) const NONE: u32 = u32::MAX;

/// A slot of the slab: a packet and the slot of the next one in its queue, or a free slot and the
/// next free one.
#[derive(Debug)]
struct Slot<B> {
    packet: Option<Packet<B>>,
    next: u32,
}

/// All queued packets. Grows to the largest backlog seen, then never allocates again.
#[derive(Debug)]
pub(crate) struct Slab<B> {
    slots: Vec<Slot<B>>,
    free: u32,
}

impl<B> Default for Slab<B> {
    fn default() -> Self {
        Slab { slots: Vec::new(), free: NONE }
    }
}

impl<B> Slab<B> {
    /// Puts a packet into a slot. The packet is the last of its queue.
    #[inline]
    pub(crate) fn insert(&mut self, packet: Packet<B>) -> u32 {
        let index = self.free;
        if index == NONE {
            self.slots.push(Slot { packet: Some(packet), next: NONE });
            return self.slots.len() as u32 - 1;
        }
        let slot = &mut self.slots[index as usize];
        self.free = slot.next;
        *slot = Slot { packet: Some(packet), next: NONE };
        index
    }

    /// Links the packet in slot `behind` behind the packet in slot `index`.
    #[inline]
    pub(crate) fn link(&mut self, index: u32, behind: u32) {
        self.slots[index as usize].next = behind;
    }

    /// The slot of the packet behind the one in slot `index`.
    #[inline]
    pub(crate) fn behind(&self, index: u32) -> u32 {
        self.slots[index as usize].next
    }

    /// The packet in this slot.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> &Packet<B> {
        self.slots[index as usize].packet.as_ref().expect("a linked slot contains a packet")
    }

    /// Removes a packet. Also returns the slot of the packet behind it.
    #[inline]
    pub(crate) fn remove(&mut self, index: u32) -> (Packet<B>, u32) {
        let slot = &mut self.slots[index as usize];
        let next = slot.next;
        slot.next = self.free;
        self.free = index;
        (slot.packet.take().expect("a linked slot contains a packet"), next)
    }

    /// The largest number of packets so far.
    #[cfg(test)]
    pub(crate) fn most(&self) -> usize {
        self.slots.len()
    }
}
