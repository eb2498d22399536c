//! The random delay with which a flow's packets leave their host. It breaks phase effects.

use crate::scenario::FlowSpec;
use units::{Rng, Span, Time};

/// The random delay of one direction's packets at their host; the order is kept.
pub struct Jitter {
    most: u64,
    rng: Rng,
    last: Time,
}

impl Jitter {
    /// The jitter of a flow's packets and of its replies; none without jitter.
    pub fn new(flow: &FlowSpec, seed: u64) -> [Option<Jitter>; 2] {
        ["jitter", "jitter/back"].map(|what| {
            (flow.jitter_ns > 0).then(|| Jitter {
                most: flow.jitter_ns,
                rng: Rng::new(seed, &format!("{}/{what}", flow.name)),
                last: Time::ZERO,
            })
        })
    }

    /// The time at which a packet that is sent now leaves its host.
    pub fn leaves_at(&mut self, now: Time) -> Time {
        self.last = self.last.max(now + Span(self.rng.below(self.most)));
        self.last
    }
}
