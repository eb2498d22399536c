//! What a wire loses: nothing, each packet independently, or in bursts.
//!
//! Bursts follow Gilbert and Elliott's two-state chain, with the names of netem's `gemodel`: `p`
//! good to bad, `r` bad to good, the probability of loss in each state. The chain steps once a
//! packet.

use serde::{Deserialize, Serialize};
use units::Luck;

/// The law, as the scenario gives it. Probabilities are fractions.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "law", rename_all = "snake_case", deny_unknown_fields)]
pub enum Loss {
    /// A perfect wire.
    None,
    /// Each packet with the same probability.
    Random {
        /// The probability.
        probability: f64,
    },
    /// Gilbert-Elliott.
    Gilbert {
        /// Good to bad, per packet.
        p: f64,
        /// Bad to good, per packet.
        r: f64,
        /// Loss probability in the bad state (netem's 1-h).
        bad_loss: f64,
        /// Loss probability in the good state (netem's 1-k).
        good_loss: f64,
    },
}

/// The law with its state and luck.
#[derive(Clone, Debug)]
pub struct LossLaw {
    law: Loss,
    bad: bool,
    luck: Luck,
}

impl LossLaw {
    /// A law in its good state.
    pub fn new(law: Loss, luck: Luck) -> LossLaw {
        LossLaw { law, bad: false, luck }
    }

    /// Whether the next packet is lost.
    #[inline]
    pub fn loses(&mut self) -> bool {
        match self.law {
            Loss::None => false,
            Loss::Random { probability } => self.luck.chance(probability),
            Loss::Gilbert { p, r, bad_loss, good_loss } => {
                if self.luck.chance(if self.bad { r } else { p }) {
                    self.bad = !self.bad;
                }
                self.luck.chance(if self.bad { bad_loss } else { good_loss })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fraction(law: Loss) -> (f64, f64) {
        let mut law = LossLaw::new(law, Luck::new(3, "loss"));
        let lost: Vec<bool> = (0..400_000).map(|_| law.loses()).collect();
        let count = lost.iter().filter(|l| **l).count() as f64;
        let bursts = lost.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        (count / lost.len() as f64, count / bursts)
    }

    #[test]
    fn random_loss_has_its_probability() {
        let (share, _) = fraction(Loss::Random { probability: 0.02 });
        assert!((share - 0.02).abs() < 0.001, "{share}");
    }

    #[test]
    fn gilbert_loss_has_the_chain_s_share_and_burst_length() {
        // Stationary share of bad: p / (p + r) = 1/11; mean burst 1/r = 10 packets.
        let (share, burst) =
            fraction(Loss::Gilbert { p: 0.01, r: 0.1, bad_loss: 1.0, good_loss: 0.0 });
        assert!((share - 1.0 / 11.0).abs() < 0.006, "{share}");
        assert!((burst - 10.0).abs() < 0.7, "{burst}");
    }
}
