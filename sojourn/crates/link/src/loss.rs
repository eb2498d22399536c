//! Losses of a wire: none, each packet independently, with one probability or with steps of it, or
//! in bursts.
//!
//! Bursts follow Gilbert and Elliott's two-state chain, with the names of netem's `gemodel`: `p`
//! good to bad, `r` bad to good, and the probability of loss in each state. Or they follow the four
//! states of netem's `state` (S. Salsano, F. Ludovici, A. Ordine, D. Giannuzzi, "Definition of a
//! general and intuitive loss model for packet networks and its implementation in the Netem module
//! in the Linux kernel", 2012). Either chain takes a step for each packet.

use serde::{Deserialize, Serialize};
use units::{Rng, Time};

/// The law in a scenario. Probabilities are fractions.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "law", rename_all = "snake_case", deny_unknown_fields)]
pub enum Loss {
    /// No losses.
    None,
    /// Each packet is lost with the same probability.
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
    /// Four states: 1 received in a gap, 2 received within a burst, 3 lost within a burst, 4 a
    /// single loss in a gap.
    States {
        /// A burst begins.
        p13: f64,
        /// The burst ends with a loss.
        p31: f64,
        /// Within the burst packets are received again.
        p32: f64,
        /// Within the burst packets are lost again.
        p23: f64,
        /// An isolated loss.
        p14: f64,
    },
    /// Each packet is lost by itself, with a probability that changes over time.
    Steps {
        /// Steps in order of time, the first at 0.
        steps: Vec<LossStep>,
        /// The steps repeat after this many ns.
        period_ns: Option<u64>,
    },
}

/// The probability of a loss from this time on.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LossStep {
    /// Time of the step, ns.
    pub at_ns: u64,
    /// The probability, a fraction.
    pub probability: f64,
}

/// The law with its state and its generator.
#[derive(Clone, Debug)]
pub struct LossLaw {
    law: Loss,
    bad: bool,
    /// The current one of the four states, numbered from 1.
    state: u8,
    rng: Rng,
}

impl LossLaw {
    /// A law in its good state.
    pub fn new(law: Loss, rng: Rng) -> LossLaw {
        LossLaw { law, bad: false, state: 1, rng }
    }

    /// Whether the next packet is lost, whose last bit leaves now.
    #[inline]
    pub fn loses(&mut self, now: Time) -> bool {
        match self.law {
            Loss::None => false,
            Loss::Random { probability } => self.rng.chance(probability),
            Loss::Steps { ref steps, period_ns } => {
                let into = period_ns.map_or(now.0, |period| now.0 % period);
                let LossStep { probability, .. } =
                    steps[steps.partition_point(|step| step.at_ns <= into) - 1];
                // While nothing is lost nothing is drawn, as on the kernel's card.
                probability > 0.0 && self.rng.chance(probability)
            }
            Loss::Gilbert { p, r, bad_loss, good_loss } => {
                if self.rng.chance(if self.bad { r } else { p }) {
                    self.bad = !self.bad;
                }
                self.rng.chance(if self.bad { bad_loss } else { good_loss })
            }
            Loss::States { p13, p31, p32, p23, p14 } => {
                let drawn = self.rng.unit();
                // The first of two possible changes, else the second, else no change.
                let or = |first: (f64, u8), second: (f64, u8), stay| match drawn {
                    drawn if drawn < first.0 => first.1,
                    drawn if drawn < first.0 + second.0 => second.1,
                    _ => stay,
                };
                self.state = match self.state {
                    2 => or((p23, 3), (0.0, 2), 2),
                    3 => or((p32, 2), (p31, 1), 3),
                    4 => 1,
                    _ => or((p14, 4), (p13, 3), 1),
                };
                self.state >= 3
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fraction(law: Loss) -> (f64, f64) {
        let mut law = LossLaw::new(law, Rng::new(3, "loss"));
        let lost: Vec<bool> = (0..400_000).map(|_| law.loses(Time::ZERO)).collect();
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
    fn steps_of_a_loss_apply_from_their_time_on_and_repeat() {
        let step = |at_ns, probability| LossStep { at_ns, probability };
        let steps = vec![step(0, 0.0), step(10, 1.0), step(20, 0.25)];
        let mut law = LossLaw::new(Loss::Steps { steps, period_ns: Some(40) }, Rng::new(3, "loss"));
        let lost = [0, 9, 10, 19, 40, 49, 50, 59].map(|at| law.loses(Time(at)));
        assert_eq!(lost, [false, false, true, true, false, false, true, true]);
        let many = (0..100_000).filter(|at| law.loses(Time(20 + 40 * at))).count();
        assert!(many.abs_diff(25_000) < 600, "{many}");
    }

    #[test]
    fn gilbert_loss_has_the_chain_s_share_and_burst_length() {
        // Stationary share of bad: p / (p + r) = 1/11; mean burst 1/r = 10 packets.
        let (share, burst) =
            fraction(Loss::Gilbert { p: 0.01, r: 0.1, bad_loss: 1.0, good_loss: 0.0 });
        assert!((share - 1.0 / 11.0).abs() < 0.006, "{share}");
        assert!((burst - 10.0).abs() < 0.7, "{burst}");
    }

    #[test]
    fn four_states_lose_what_their_stationary_shares_are() {
        // Shares of the states 1, 2, 3, 4 by balance: x3 p31 = x1 p13, x2 p23 = x3 p32, x4 = x1 p14.
        let (p13, p31, p32, p23, p14) = (0.01, 0.2, 0.3, 0.5, 0.02);
        let ratios = [1.0, p13 / p31 * p32 / p23, p13 / p31, p14];
        let lost = (ratios[2] + ratios[3]) / ratios.iter().sum::<f64>();
        let (share, _) = fraction(Loss::States { p13, p31, p32, p23, p14 });
        assert!((share - lost).abs() < 0.003, "{share} {lost}");
        // Without the states 2 and 4 it is Gilbert's chain of losses in the bad state.
        let (share, burst) =
            fraction(Loss::States { p13: 0.01, p31: 0.1, p32: 0.0, p23: 1.0, p14: 0.0 });
        assert!((share - 1.0 / 11.0).abs() < 0.006, "{share}");
        assert!((burst - 10.0).abs() < 0.7, "{burst}");
    }
}
