//! The interface between a replay and the disciplines and packets. A replay gives a discipline the
//! packets that a recorded queue received, and compares the results. The recorded queue's random
//! draws take the place of the discipline's own draws (docs/agreement.md).
//!
//! A discipline that draws nothing needs none of this. One that draws implements `Replayable` and
//! is listed as such in the macro `disciplines!`.

/// What is known of a packet from a recorded queue. By default nothing is known.
pub trait ReplayHints {
    /// What the recorded queue did to the packet. A discipline that draws as packets leave follows
    /// the hint where its law leaves the choice, and reports the draw (`Replayable::replay_draws`).
    #[inline]
    fn replay_hint(&self) -> Option<ReplayHint> {
        None
    }

    /// The packet's place in the order in which the recorded queue released its packets. Packets
    /// that were dropped at one instant share a place. cake infers its draws from it.
    #[inline]
    fn recorded_place(&self) -> Option<u64> {
        None
    }
}

/// A discipline whose draws a replay can set.
pub trait Replayable {
    /// Sets the draw of the next arrival: whether the recorded queue dropped or marked it early. It
    /// takes the draw's place where the discipline would draw. Where the law is certain, the law
    /// decides.
    fn set_recorded_draw(&mut self, _early: bool) {}

    /// The probability that the last arrival was dropped or marked early, given the verdicts on all
    /// packets before it. `None`: draws of this discipline can't be set on arrival.
    fn chance(&mut self) -> Option<f64> {
        None
    }

    /// The log of draws about packets with a replay hint (`ReplayHints::replay_hint`). `None`: the
    /// discipline does not use the hints.
    fn replay_draws(&mut self) -> Option<&mut ReplayDraws> {
        None
    }
}

/// What a recorded queue did to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayHint {
    /// The queue passed the packet, or still has it.
    Passed,
    /// The queue marked the packet.
    Marked,
    /// The queue dropped the packet.
    Dropped,
}

/// The draws about packets with a replay hint, logged as each packet is decided.
#[derive(Clone, Debug, Default)]
pub struct ReplayDraws {
    /// Packets are decided as they arrive, not as they leave.
    pub at_arrival: bool,
    /// The draw about the packet that is decided now.
    pub(crate) now: DrawOutcome,
    /// The draws about earlier packets, in order. The owner of the discipline removes them.
    pub decided: Vec<DrawOutcome>,
    /// The number of draws whose outcome the recording does not show.
    pub unseen: u64,
    /// The draws of `unseen`, counted from 0, that take their less likely outcome. All others take
    /// the likelier one.
    pub unlikely: Vec<u64>,
}

impl ReplayDraws {
    /// The outcome of a draw that the recording does not show; `likely` is the likelier outcome.
    pub(crate) fn outcome(&mut self, likely: bool) -> bool {
        let number = self.unseen;
        self.unseen += 1;
        likely != self.unlikely.contains(&number)
    }
}

/// A draw about a packet with a replay hint.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DrawOutcome {
    /// Whether the packet was dropped.
    pub dropped: bool,
    /// The probability that the draw comes true; NaN if the draw can't be seen.
    pub chance: f64,
    /// Whether the draw came true.
    pub drew: bool,
}
