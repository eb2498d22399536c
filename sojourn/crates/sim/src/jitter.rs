//! The random time by which a flow's packets leave their host later: it breaks phase effects.

use crate::scenario::FlowSpec;
use units::{Rng, Span, Time};

/// The random time by which packets of one direction leave their host later, order kept.
pub struct Jitter {
    most: u64,
    rng: Rng,
    last: Time,
}

impl Jitter {
    /// Of a flow's packets and of its replies, where they have any.
    pub fn new(flow: &FlowSpec, seed: u64) -> [Option<Jitter>; 2] {
        ["jitter", "jitter/back"].map(|what| {
            (flow.jitter_ns > 0).then(|| Jitter {
                most: flow.jitter_ns,
                rng: Rng::new(seed, &format!("{}/{what}", flow.name)),
                last: Time::ZERO,
            })
        })
    }

    /// When a packet leaves that is sent now.
    pub fn leaves_at(&mut self, now: Time) -> Time {
        self.last = self.last.max(now + Span(self.rng.below(self.most)));
        self.last
    }
}
