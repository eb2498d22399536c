//! Every congestion control, for the laws of this crate and of `sim`.

use proptest::prelude::*;
use std::sync::Arc;
use tcp::CongestionKind;
use tcp::own::{
    OwnAck, OwnCongestion, OwnControl, OwnControlCode, OwnControlLaw, OwnControlProgram,
    OwnDelivery, OwnWindow,
};
use units::Rng;

/// Any of the controls, or a user-defined one that sets arbitrary values.
pub fn any() -> impl Strategy<Value = Choice> {
    let own = prop::option::weighted(0.15, prop::array::uniform2(prop::bool::ANY).prop_map(random));
    (prop::sample::select(CongestionKind::ALL), own).prop_map(|(kind, own)| Choice {
        kind: own.as_ref().map_or(kind, |_| CongestionKind::Reno),
        own,
    })
}

/// A congestion control.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The kind; Reno if the user wrote the control.
    pub kind: CongestionKind,
    /// The control that the user wrote.
    pub own: Option<Box<OwnControl>>,
}

fn random([paces, samples]: [bool; 2]) -> Box<OwnControl> {
    let code = OwnControlCode(Some(Arc::new(Random { paces, samples })));
    let (file, class) = ("random.py".to_owned(), "Random".to_owned());
    Box::new(OwnControl { file, class, words: None, source: None, code })
}

/// Windows at random.
struct Random {
    paces: bool,
    samples: bool,
}

struct RandomLaw(Rng);

impl OwnControlProgram for Random {
    fn paces(&self) -> bool {
        self.paces
    }

    fn samples(&self) -> bool {
        self.samples
    }

    fn begin(&self) -> Box<dyn OwnControlLaw> {
        Box::new(RandomLaw(Rng::new(1, "own")))
    }
}

impl RandomLaw {
    fn set(&mut self, window: &mut OwnWindow) -> Option<i64> {
        window.cwnd = 1.0 + 100.0 * self.0.unit() * self.0.unit();
        window.ssthresh = 1.0 + 100.0 * self.0.unit() * self.0.unit();
        window.pacing_rate = (self.0.below(2) * (100_000 + self.0.below(1 << 30))) as i64;
        Some(0)
    }
}

impl OwnControlLaw for RandomLaw {
    fn on_ack(&mut self, window: &mut OwnWindow, _ack: &OwnAck) -> Option<i64> {
        self.set(window)
    }

    fn on_loss(&mut self, window: &mut OwnWindow, _event: &OwnCongestion) -> Option<i64> {
        self.set(window)
    }

    fn on_ecn(&mut self, window: &mut OwnWindow, _event: &OwnCongestion) -> Option<i64> {
        self.set(window)
    }

    fn on_timeout(&mut self, _window: &mut OwnWindow, _event: &OwnCongestion) -> Option<i64> {
        None
    }

    fn on_delivery(&mut self, window: &mut OwnWindow, _: &OwnDelivery) -> Option<i64> {
        self.set(window)
    }

    fn seed(&mut self, key: u64) {
        self.0 = Rng::new(key, "own");
    }

    fn failure(&self) -> [i64; 2] {
        [0, 0]
    }
}
