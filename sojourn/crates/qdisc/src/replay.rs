//! What a replay asks of disciplines and packets. It hands a discipline the packets that a recorded
//! queue had, and compares what becomes of them. What the recorded queue drew at random takes the
//! place of the discipline's own draws (docs/agreement.md).
//!
//! A discipline that draws nothing has no part in this. One that draws is a `Replayed`, as the
//! macro `disciplines!` says.

/// What a packet's body knows of a recorded queue. One that comes from no recording knows nothing.
pub trait ReplayHints {
    /// What a recorded queue did to the packet. A discipline that draws as packets leave follows it
    /// where its law leaves the choice, and says so (`Replayed::replay_draws`).
    #[inline]
    fn replay_hint(&self) -> Option<ReplayHint> {
        None
    }

    /// The packet's place in the order in which a recorded queue let go of its packets; those that
    /// were dropped at one instant share one. cake's draws are seen by it.
    #[inline]
    fn recorded_place(&self) -> Option<u64> {
        None
    }
}

/// A discipline whose draws may be taken from a recorded queue.
pub trait Replayed {
    /// Whether the recorded queue's draw dropped or marked the next arrival early. It takes the
    /// draw's place where the discipline would draw; where its law is certain, the law decides.
    fn tell(&mut self, _early: bool) {}

    /// The probability that the last arrival was dropped or marked early, given the verdicts of all
    /// before it; `None`: the discipline can't be told.
    fn chance(&mut self) -> Option<f64> {
        None
    }

    /// What it says of packets that has a replay hint (`ReplayHints::replay_hint`). `None`: it does
    /// not ask.
    fn replay_draws(&mut self) -> Option<&mut ReplayDraws> {
        None
    }
}

/// What a recorded queue did to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayHint {
    /// It let it pass, or has it still.
    Passed,
    /// It marked it.
    Marked,
    /// It dropped it.
    Dropped,
}

/// How likely a drop or mark was of packets that has a replay hint, told as each is decided.
#[derive(Clone, Debug, Default)]
pub struct ReplayDraws {
    /// Packets are decided as they come, not as they leave.
    pub at_arrival: bool,
    /// Of the packet that is decided now.
    pub(crate) now: JudgedDraw,
    /// Of each packet before, in order. Its owner takes them out.
    pub decided: Vec<JudgedDraw>,
    /// How many draws have decided of which the recording tells nothing.
    pub unseen: u64,
    /// Those of them, counted from 0, that ended as was less likely. All others end as is likelier.
    pub unlikely: Vec<u64>,
}

impl ReplayDraws {
    /// The outcome of a draw of which the recording tells nothing, given the likelier one.
    pub(crate) fn outcome(&mut self, likely: bool) -> bool {
        let number = self.unseen;
        self.unseen += 1;
        likely != self.unlikely.contains(&number)
    }
}

/// What a queue says of one packet that has a replay hint.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JudgedDraw {
    /// It was dropped.
    pub dropped: bool,
    /// How likely a draw was to come true; NaN where nobody saw what was drawn.
    pub chance: f64,
    /// Whether it came true.
    pub drew: bool,
}
