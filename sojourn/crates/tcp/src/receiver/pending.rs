//! The ACK that is due later, and its time.
//!
//! A receiver has at most one pending ACK, while Linux keeps a timer for each kind. Any ACK that
//! leaves in the meantime cancels the pending one (tcp_event_ack_sent).

use crate::timer::TimerWheel;
use units::{Span, Time};

/// The pending ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    /// No ACK is pending.
    None,
    /// A delayed ACK (icsk_delack_timer), delayed by `delay`. It leaves at a tick.
    Delayed { due: Time, delay: Span },
    /// A compressed SACK (compressed_ack_timer). It leaves on time. Its stamp is the arrival time
    /// of the latest segment (`arrived`). With NEVER its stamp is the time at which it leaves, as
    /// when the delayed ACK's timer sends it.
    Sack { due: Time, arrived: Time },
    /// A window update, because the application has read (tcp_cleanup_rbuf).
    WindowUpdate { due: Time },
    /// An ACK that is ready and follows another at once. The earlier pending ACK follows it.
    Second { due: Time },
    /// The SYN-ACK that left at `sent`. It is retransmitted at a tick unless something answers it
    /// (reqsk_timer_handler).
    SynAck { due: Time, delay: Span, sent: Time },
}

impl Pending {
    /// A delayed ACK.
    #[inline]
    pub fn delayed(now: Time, delay: Span) -> Pending {
        Pending::Delayed { due: now + delay, delay }
    }

    /// The timeout of a SYN-ACK that leaves now.
    pub fn synack(now: Time, delay: Span) -> Pending {
        Pending::SynAck { due: now + delay, delay, sent: now }
    }

    /// A segment arrives while a compressed SACK waits: the SACK reports that segment too.
    pub fn on_segment(&mut self, now: Time) {
        if let Pending::Sack { arrived, .. } = self
            && *arrived != Time::NEVER
        {
            *arrived = now;
        }
    }

    /// The time to call `has_expired`; NEVER if no ACK is pending.
    #[inline]
    pub fn due(&self) -> Time {
        match *self {
            Pending::None => Time::NEVER,
            Pending::Delayed { due, .. }
            | Pending::Sack { due, .. }
            | Pending::WindowUpdate { due }
            | Pending::Second { due }
            | Pending::SynAck { due, .. } => due,
        }
    }

    /// Whether the ACK leaves now. If its time lies between two ticks and is reached, it becomes
    /// the timer's tick.
    #[inline]
    pub fn has_expired(&mut self, wheel: &TimerWheel, now: Time) -> bool {
        match self {
            Pending::None => false,
            Pending::Delayed { due, delay } | Pending::SynAck { due, delay, .. } => {
                wheel.has_expired(due, *delay, now)
            }
            Pending::Sack { due, .. } | Pending::WindowUpdate { due } | Pending::Second { due } => {
                *due <= now
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn delayed_acks_wait_for_a_tick_and_sacks_do_not() {
        let wheel = TimerWheel::new(4 * MS);
        let mut delayed = Pending::delayed(Time(MS), Span::from_millis(40));
        assert_eq!(delayed.due(), Time(41 * MS));
        assert!(!delayed.has_expired(&wheel, Time(41 * MS)));
        assert_eq!(delayed.due(), Time(44 * MS));
        assert!(delayed.has_expired(&wheel, Time(44 * MS)));

        let mut sack = Pending::Sack { due: Time(41 * MS), arrived: Time(40 * MS) };
        assert!(!sack.has_expired(&wheel, Time(41 * MS - 1)));
        assert!(sack.has_expired(&wheel, Time(41 * MS)));
    }

    #[test]
    fn without_a_pending_ack_no_timer_expires() {
        let mut none = Pending::None;
        assert_eq!(none.due(), Time::NEVER);
        assert!(!none.has_expired(&TimerWheel::new(1), Time(u64::MAX - 1)));
    }
}
