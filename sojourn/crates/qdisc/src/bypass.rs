//! Linux's bypass of a discipline (TCQ_F_CAN_BYPASS): a packet that finds the queue empty is not
//! enqueued.
//!
//! `__dev_xmit_skb` passes such a packet to the driver at once. If the driver has no room, the
//! packet is requeued in front of the discipline (`dev_requeue_skb`) and offered again before any
//! packet of the discipline. CoDel never sees the packet and so ignores its sojourn time. fq_codel
//! charges the packet to no flow. The packet still counts towards the limit.
//!
//! Linux bypasses only a device's root discipline, and only one that allows it: FIFOs, codel,
//! fq_codel, but not red. It never bypasses a discipline below a shaper. For a FIFO the bypass
//! makes no difference.
//!
//! Source: Linux net/core/dev.c (`__dev_xmit_skb`), net/sched/sch_generic.c (`sch_direct_xmit`,
//! `dev_requeue_skb`).

use crate::{Backlog, Packet};
use units::Time;

/// The bypass of a discipline, and the packet in it that waits for the driver.
pub(crate) struct Bypass<B> {
    open: bool,
    held: Option<Packet<B>>,
}

impl<B> Bypass<B> {
    /// A bypass. `open`: the discipline may be bypassed.
    pub(crate) fn new(open: bool) -> Bypass<B> {
        Bypass { open, held: None }
    }

    /// Whether a packet bypasses an empty discipline.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Takes the packet if it bypasses the discipline, whose backlog is `inside`. Otherwise returns
    /// the packet.
    #[inline]
    pub(crate) fn take_past(
        &mut self,
        mut packet: Packet<B>,
        inside: Backlog,
        now: Time,
    ) -> Option<Packet<B>> {
        // The first condition decides under load.
        if inside.packets > 0 {
            return Some(packet);
        }
        if !self.open || self.held.is_some() {
            return Some(packet);
        }
        packet.enqueued = now;
        self.held = Some(packet);
        None
    }

    /// Removes the waiting packet, which leaves before those of the discipline.
    #[inline]
    pub(crate) fn take_out(&mut self) -> Option<Packet<B>> {
        self.held.take()
    }

    /// The backlog of the bypass and the discipline together; the discipline's is `inside`.
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
