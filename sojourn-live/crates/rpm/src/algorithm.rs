//! The draft's decisions: when goodput is stable, when responsiveness is stable, and the result. No
//! sockets, no clock.
//!
//! In every interval a connection is added and the judge is called. First it waits for goodput: the
//! standard deviation of the last MAD moving averages must fall below SDT of the latest one. Then
//! it treats the responsiveness over the last MAD intervals in the same way. A stage that does not
//! become stable ends after a time limit, with a lower confidence.
//!
//! Source: draft-ietf-ippm-responsiveness, "Measuring Responsiveness", "Final Algorithm",
//! "Confidence of Test-Results".

use serde::{Deserialize, Serialize};

/// The draft's parameters with the draft's names, and the time limit of a stage.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// MAD, moving average distance, intervals.
    pub mad: usize,
    /// ID, interval duration, ns.
    pub id_ns: u64,
    /// TMP: a trimmed mean uses this share of the samples, the smallest.
    pub tmp: f64,
    /// SDT, standard deviation tolerance, as a share of the current value.
    pub sdt: f64,
    /// INP, connections at the start.
    pub inp: usize,
    /// INC, connections added in each interval.
    pub inc: usize,
    /// MNP, largest number of connections in one direction.
    pub mnp: usize,
    /// MPS, largest number of probes per second, of both kinds together.
    pub mps: f64,
    /// PTC, share of the capacity that probes may use.
    pub ptc: f64,
    /// Largest number of intervals of a stage; the draft leaves this limit to the tool.
    pub stage_intervals: usize,
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters {
            mad: 4,
            id_ns: 5_000_000_000,
            tmp: 0.95,
            sdt: 0.05,
            inp: 1,
            inc: 1,
            mnp: 16,
            mps: 100.0,
            ptc: 0.05,
            stage_intervals: 8,
        }
    }
}

/// Estimates: a foreign probe takes 5000 bytes, a self probe 1000, and both are equally frequent.
const PROBE_BYTES: f64 = (5000.0 + 1000.0) / 2.0;

impl Parameters {
    /// Returns the probes per second, of both kinds together, for a capacity in bytes per second.
    pub fn probes_per_second(&self, capacity: f64) -> f64 {
        // 10 Mbit/s: 5 % are 62 500 bytes/s, 20.8 probes. 48 Mbit/s and more allow 100.
        self.mps.min(self.ptc * capacity / PROBE_BYTES)
    }
}

/// Returns the mean of the smallest `share` of the samples, at least of one; `None` without
/// samples. The number is rounded down: 95 % of 10 samples are 9.
pub fn trimmed_mean(samples: &[f64], share: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    // If the exact product is an integer, a rounding error must not cost a sample: 95 % of 100 are
    // 95.
    let count = ((sorted.len() as f64 * share + 1e-9) as usize).max(1);
    let best = sorted.get(..count)?;
    Some(best.iter().sum::<f64>() / count as f64)
}

/// Times of the probes that were answered in one time span, ms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// TCP handshakes of foreign probes.
    pub tcp_f: Vec<f64>,
    /// TLS handshakes of foreign probes, per round trip.
    pub tls_f: Vec<f64>,
    /// Requests for one byte by foreign probes, on the new connection.
    pub http_f: Vec<f64>,
    /// The same request on a connection that carries load.
    pub http_l: Vec<f64>,
}

impl Samples {
    /// Returns round trips per minute; `None` if one of the four kinds has no sample.
    pub fn responsiveness(&self, tmp: f64) -> Option<f64> {
        let foreign = (trimmed_mean(&self.tcp_f, tmp)?
            + trimmed_mean(&self.tls_f, tmp)?
            + trimmed_mean(&self.http_f, tmp)?)
            / 3.0;
        let loaded = trimmed_mean(&self.http_l, tmp)?;
        Some((60_000.0 / foreign + 60_000.0 / loaded) / 2.0)
    }
}

/// A series that is stable when its last MAD values are close together.
#[derive(Clone, Debug, Default)]
struct Series(Vec<f64>);

impl Series {
    fn stable(&self, mad: usize, sdt: f64) -> bool {
        let Some(start) = self.0.len().checked_sub(mad) else { return false };
        let last = &self.0[start..];
        let mean = last.iter().sum::<f64>() / mad as f64;
        let variance = last.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / mad as f64;
        last.last().is_some_and(|current| variance.sqrt() < sdt * current)
    }
}

/// Confidence in a stage's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Fewer than MAD intervals passed.
    Low,
    /// MAD intervals or more, but not stable.
    Medium,
    /// Stable.
    High,
}

/// The value that the test waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Stable goodput.
    Goodput,
    /// Stable responsiveness.
    Responsiveness,
    /// None: the test has ended.
    Done,
}

/// Follows one test from interval to interval. Several directions at once have one responsiveness,
/// and one goodput each.
#[derive(Debug)]
pub struct Judge {
    parameters: Parameters,
    stage: Stage,
    in_stage: usize,
    bytes: Vec<Vec<(u64, u64)>>,
    goodput: Vec<Series>,
    responsiveness: Series,
    goodput_confidence: Confidence,
    responsiveness_confidence: Confidence,
}

impl Judge {
    /// Creates a judge for a test of `directions` simultaneous directions.
    pub fn new(parameters: &Parameters, directions: usize) -> Judge {
        Judge {
            parameters: parameters.clone(),
            stage: Stage::Goodput,
            in_stage: 0,
            bytes: vec![Vec::new(); directions],
            goodput: vec![Series::default(); directions],
            responsiveness: Series::default(),
            goodput_confidence: Confidence::Low,
            responsiveness_confidence: Confidence::Low,
        }
    }

    /// Takes an interval of `took_ns` in which `bytes` arrived in each direction, with the
    /// `samples` of the last MAD intervals. Returns the moving average of each direction's goodput,
    /// bytes/s.
    pub fn interval(&mut self, took_ns: u64, bytes: &[u64], samples: &Samples) -> Vec<f64> {
        let Parameters { mad, sdt, tmp, .. } = self.parameters;
        for ((all, goodput), &arrived) in self.bytes.iter_mut().zip(&mut self.goodput).zip(bytes) {
            all.push((arrived, took_ns));
            let last = &all[all.len().saturating_sub(mad)..];
            let (sum, time) =
                last.iter().fold((0, 0), |(sum, time), entry| (sum + entry.0, time + entry.1));
            goodput.0.push(sum as f64 * 1e9 / time as f64);
        }
        self.in_stage += 1;
        match self.stage {
            Stage::Goodput => {
                let stable = self.goodput.iter().all(|goodput| goodput.stable(mad, sdt));
                self.goodput_confidence = self.confidence(stable);
                self.leave_if(stable, Stage::Responsiveness);
            }
            Stage::Responsiveness => {
                // An interval without a sample of each kind adds no value to the series, so the
                // values on both sides of it become neighbours.
                self.responsiveness.0.extend(samples.responsiveness(tmp));
                let stable = self.responsiveness.stable(mad, sdt);
                self.responsiveness_confidence = self.confidence(stable);
                self.leave_if(stable, Stage::Done);
            }
            Stage::Done => {}
        }
        self.goodput.iter().filter_map(|goodput| goodput.0.last().copied()).collect()
    }

    fn confidence(&self, stable: bool) -> Confidence {
        match stable {
            true => Confidence::High,
            false if self.in_stage >= self.parameters.mad => Confidence::Medium,
            false => Confidence::Low,
        }
    }

    fn leave_if(&mut self, stable: bool, next: Stage) {
        if stable || self.in_stage >= self.parameters.stage_intervals {
            (self.stage, self.in_stage) = (next, 0);
        }
    }

    /// Returns the current stage.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Returns the confidence in the goodput.
    pub fn goodput_confidence(&self) -> Confidence {
        self.goodput_confidence
    }

    /// Returns the confidence in the responsiveness.
    pub fn responsiveness_confidence(&self) -> Confidence {
        self.responsiveness_confidence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(tcp_f: f64, tls_f: f64, http_f: f64, http_l: f64) -> Samples {
        Samples {
            tcp_f: vec![tcp_f],
            tls_f: vec![tls_f],
            http_f: vec![http_f],
            http_l: vec![http_l],
        }
    }

    #[test]
    fn the_best_ninety_five_of_a_hundred_are_averaged() {
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        // (1 + ... + 95) / 95
        assert_eq!(trimmed_mean(&hundred, 0.95), Some(48.0));
        assert_eq!(trimmed_mean(&hundred[..10], 0.95), Some(95.0)); // 91 ... 99
        assert_eq!(trimmed_mean(&[7.0], 0.95), Some(7.0));
        assert_eq!(trimmed_mean(&[], 0.95), None);
    }

    #[test]
    fn responsiveness_is_the_mean_of_the_foreign_and_the_loaded_one() {
        // Foreign: 60000 / ((20 + 30 + 40) / 3) = 2000. Loaded: 60000 / 120 = 500.
        assert_eq!(samples(20.0, 30.0, 40.0, 120.0).responsiveness(0.95), Some(1250.0));
        assert_eq!(samples(10.0, 10.0, 10.0, 10.0).responsiveness(0.95), Some(6000.0));
        let no_self = Samples { http_l: vec![], ..samples(20.0, 30.0, 40.0, 120.0) };
        assert_eq!(no_self.responsiveness(0.95), None);
    }

    #[test]
    fn probes_take_no_more_than_their_share() {
        let parameters = Parameters::default();
        // 1 Mbit/s: 5 % are 6250 bytes/s, and a probe takes 3000 bytes.
        assert!((parameters.probes_per_second(125_000.0) - 6250.0 / 3000.0).abs() < 1e-9);
        assert_eq!(parameters.probes_per_second(125_000_000.0), 100.0);
        assert_eq!(parameters.probes_per_second(0.0), 0.0);
    }

    fn one_second() -> Parameters {
        Parameters { id_ns: 1_000_000_000, ..Parameters::default() }
    }

    #[test]
    fn steady_goodput_and_responsiveness_end_the_test_after_twice_mad_intervals() {
        let mut judge = Judge::new(&one_second(), 1);
        let steady = samples(20.0, 20.0, 20.0, 20.0);
        let mut stages = Vec::new();
        for _ in 0..8 {
            assert_eq!(judge.interval(1_000_000_000, &[1_000_000], &steady), [1_000_000.0]);
            stages.push(judge.stage());
        }
        assert_eq!(stages[..3], [Stage::Goodput; 3]);
        assert_eq!(stages[3..7], [Stage::Responsiveness; 4]);
        assert_eq!(stages[7], Stage::Done);
        assert_eq!(judge.goodput_confidence(), Confidence::High);
        assert_eq!(judge.responsiveness_confidence(), Confidence::High);
    }

    #[test]
    fn goodput_that_grows_is_not_stable_until_it_stops() {
        let mut judge = Judge::new(&Parameters { stage_intervals: 20, ..one_second() }, 1);
        let mut grown = 0;
        for bytes in [1, 2, 4, 8, 8, 8, 8, 8, 8, 8] {
            grown += 1;
            judge.interval(1_000_000_000, &[bytes * 1_000_000], &Samples::default());
            if judge.stage() == Stage::Responsiveness {
                break;
            }
        }
        // Moving averages: 1, 1.5, 2.33, 3.75, 5.5, 7, 8, 8, 8. The last four deviate by 0.43 from
        // 7.75, and 5 % of 8 are 0.4; after one more 8 they are equal.
        assert_eq!(grown, 10);
    }

    #[test]
    fn both_directions_must_be_stable() {
        let mut judge = Judge::new(&one_second(), 2);
        for growing in [1, 2, 4, 8] {
            judge.interval(1_000_000_000, &[5_000_000, growing * 1_000_000], &Samples::default());
        }
        assert_eq!(judge.stage(), Stage::Goodput);
        assert_eq!(judge.goodput_confidence(), Confidence::Medium);
    }

    #[test]
    fn a_stage_that_never_becomes_stable_ends_after_its_time() {
        let mut judge = Judge::new(&Parameters { stage_intervals: 5, ..one_second() }, 1);
        let jumping =
            |i: u64| samples(20.0, 20.0, 20.0, if i.is_multiple_of(2) { 20.0 } else { 400.0 });
        let mut intervals = 0;
        while judge.stage() != Stage::Done {
            judge.interval(1_000_000_000, &[1 << (2 * intervals)], &jumping(intervals));
            intervals += 1;
        }
        assert_eq!(intervals, 10);
        assert_eq!(judge.goodput_confidence(), Confidence::Medium);
        assert_eq!(judge.responsiveness_confidence(), Confidence::Medium);
    }

    #[test]
    fn before_mad_intervals_confidence_is_low() {
        let mut judge = Judge::new(&one_second(), 1);
        for _ in 0..3 {
            judge.interval(1_000_000_000, &[1_000_000], &Samples::default());
        }
        assert_eq!(judge.goodput_confidence(), Confidence::Low);
        assert_eq!(judge.responsiveness_confidence(), Confidence::Low);
    }
}
