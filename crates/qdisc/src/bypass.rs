//! Linux's way past a discipline: a packet that finds the queue empty is never put into it.
//!
//! The core in front of every discipline hands such a packet to the driver at once. If the driver
//! has no room, the core keeps it and offers it again as soon as there is: before anything the
//! discipline holds, without asking it. CoDel never sees the packet, its sojourn is no sign of
//! anything, and fq_codel charges it to no flow; it counts in the limit all the same.
//!
//! So it is where the discipline is the device's own (its root) and leaves the core free to do so
//! (TCQ_F_CAN_BYPASS): fifos, codel, fq_codel; not red, and nothing below a shaper. To a fifo it
//! makes no difference.
//!
//! Source: Linux net/core/dev.c (`__dev_xmit_skb`), net/sched/sch_generic.c (`sch_direct_xmit`,
//! `dev_requeue_skb`).

use crate::{Backlog, Packet};
use units::Time;

/// The packet that went past the discipline and waits for the driver.
pub(crate) struct Bypass<B> {
    open: bool,
    held: Option<Packet<B>>,
}

impl<B> Bypass<B> {
    /// `open`: there is such a way.
    pub(crate) fn new(open: bool) -> Bypass<B> {
        Bypass { open, held: None }
    }

    /// Takes a packet past the discipline, which holds `inside`; gives it back where that is not
    /// empty.
    #[inline]
    pub(crate) fn take_past(
        &mut self,
        mut packet: Packet<B>,
        inside: Backlog,
        now: Time,
    ) -> Option<Packet<B>> {
        if !self.open || inside.packets > 0 || self.held.is_some() {
            return Some(packet);
        }
        packet.enqueued = now;
        self.held = Some(packet);
        None
    }

    /// The packet that waits: it goes first.
    #[inline]
    pub(crate) fn take_out(&mut self) -> Option<Packet<B>> {
        self.held.take()
    }

    /// What is queued, with what the discipline holds.
    #[inline]
    pub(crate) fn backlog(&self, inside: Backlog) -> Backlog {
        match &self.held {
            None => inside,
            Some(packet) => Backlog {
                packets: inside.packets + 1,
                bytes: inside.bytes + u64::from(packet.size),
            },
        }
    }
}
