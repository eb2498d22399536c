//! Traffic of hosts: the kinds (`kinds`), the pace of an application over TCP (`pace`), and for
//! traffic that is not TCP the random draws, the frames of a video and the sources of datagrams.
//!
//! A source is a small state machine. At its deadline the caller asks it for the packets to send
//! now and for the time of the next ones. Each source has a random stream of its own. The simulator
//! and the program in a kernel guest use the same sources.

mod kinds;
mod pace;

pub use kinds::{KindRecord, Packets, RTP_HEADERS, TrafficKind, UDP_HEADERS};
pub use pace::{Pace, PacedWriter};

use serde::{Deserialize, Serialize};
use units::{Rate, Rng, Span, Time};

/// A probability distribution from which a number is drawn each time one is needed.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "law", rename_all = "snake_case", deny_unknown_fields)]
pub enum Draw {
    /// Always the same.
    Constant {
        /// The value.
        value: u64,
    },
    /// Uniform between `min` and `max`, both included.
    Uniform {
        /// Least.
        min: u64,
        /// Greatest.
        max: u64,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        mean: u64,
    },
    /// Pareto: heavy-tailed.
    Pareto {
        /// Mean.
        mean: u64,
        /// Tail exponent, above 1.
        shape: f64,
    },
    /// A measured cumulative distribution, linear between its points.
    Empirical {
        /// Values, each with the share of all draws that are at most that value. Both rise, and the
        /// last share is 1. Draws in the first point's share return its value.
        points: Vec<(u64, f64)>,
    },
}

/// Where video frame sizes come from.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "source", rename_all = "snake_case", deny_unknown_fields)]
pub enum Frames {
    /// Groups of pictures: one I frame `i_ratio` times the mean P frame's size, then P frames.
    /// Sizes are log-normal.
    Model {
        /// Mean rate of the video's payload, bit/s.
        bps: u64,
        /// Frames a second.
        fps: f64,
        /// Frames in a group, the I frame included.
        gop: u32,
        /// Mean I size over mean P size.
        i_ratio: f64,
        /// Coefficient of variation of the frame sizes of one kind.
        cv: f64,
    },
    /// Recorded frames as (time from the start, bytes). They repeat from the beginning after the
    /// last one.
    Trace {
        /// The frames.
        frames: Vec<(u64, u32)>,
        /// Length of one pass, ns.
        period_ns: u64,
    },
}

impl Draw {
    /// The next value.
    pub fn next(&self, rng: &mut Rng) -> u64 {
        match *self {
            Draw::Empirical { ref points } => inverse(points, rng.unit()),
            Draw::Constant { value } => value,
            Draw::Uniform { min, max } => min + rng.below((max - min).saturating_add(1)),
            Draw::Exponential { mean } => rng.exponential(mean as f64) as u64,
            // Mean = scale · shape / (shape - 1).
            Draw::Pareto { mean, shape } => {
                let scale = mean as f64 * (shape - 1.0) / shape;
                (scale * libm::pow(1.0 - rng.unit(), -1.0 / shape)) as u64
            }
        }
    }

    /// The mean of the draws.
    pub fn mean(&self) -> f64 {
        match *self {
            Draw::Empirical { ref points } => {
                let first = points.first().map_or(0.0, |&(value, share)| value as f64 * share);
                let between = points.windows(2).map(|pair| {
                    let [(low, from), (high, to)] = [pair[0], pair[1]];
                    (low as f64 + high as f64) / 2.0 * (to - from)
                });
                first + between.sum::<f64>()
            }
            Draw::Constant { value } => value as f64,
            Draw::Uniform { min, max } => (min as f64 + max as f64) / 2.0,
            Draw::Exponential { mean } | Draw::Pareto { mean, .. } => mean as f64,
        }
    }
}

/// The value at or below which this share of all draws lies.
fn inverse(points: &[(u64, f64)], share: f64) -> u64 {
    let next = points.partition_point(|&(_, up_to)| up_to < share).min(points.len() - 1);
    let (high, to) = points[next];
    let Some(&(low, from)) = next.checked_sub(1).and_then(|index| points.get(index)) else {
        return high;
    };
    low + ((high - low) as f64 * (share - from) / (to - from)) as u64
}

/// Constant-rate or on/off datagrams.
#[derive(Debug)]
pub struct UdpSource {
    /// Time between packets while on, in 2^-16 ns, so that the rate is exact for every packet size.
    gap_fixed: u128,
    fraction: u64,
    periods: Option<(Draw, Draw)>,
    on_until: Time,
    rng: Rng,
}

impl UdpSource {
    /// `rate` counts the IP bytes of packets of `packet_bytes`.
    pub fn new(
        rate: Rate,
        packet_bytes: u32,
        periods: Option<(Draw, Draw)>,
        rng: Rng,
    ) -> UdpSource {
        let gap_fixed =
            ((u128::from(packet_bytes) * 8_000_000_000) << 16) / u128::from(rate.0.max(1));
        UdpSource { gap_fixed, fraction: 0, periods, on_until: Time::ZERO, rng }
    }

    /// One packet leaves at `now`. Returns when the next one leaves.
    pub fn next_after(&mut self, now: Time) -> Time {
        let gap = self.gap_fixed + u128::from(self.fraction);
        self.fraction = (gap & 0xffff) as u64;
        let next = now + Span((gap >> 16) as u64);
        let Some((on, off)) = &self.periods else {
            return next;
        };
        if self.on_until == Time::ZERO {
            self.on_until = now + Span(on.next(&mut self.rng));
        }
        if next < self.on_until {
            return next;
        }
        let resume = self.on_until + Span(off.next(&mut self.rng));
        self.on_until = resume + Span(on.next(&mut self.rng).max(1));
        resume.max(now + Span(1))
    }
}

/// RTP video: one frame each 1/fps, its packets back to back.
///
/// The model is a group of pictures: an I frame `i_ratio` times as large as the mean P frame, then
/// P frames. Each size is log-normal with the given coefficient of variation around the mean of its
/// frame type. The mean rate over all frames is kept. Source of the shape: Frost and Melamed,
/// "Traffic modeling for telecommunications networks", IEEE Comm. Mag. 1994.
#[derive(Debug)]
pub struct VideoSource {
    frames: Frames,
    start: Time,
    index: u64,
    rng: Rng,
}

impl VideoSource {
    /// A source whose first frame is due at `start`.
    pub fn new(frames: Frames, start: Time, rng: Rng) -> VideoSource {
        VideoSource { frames, start, index: 0, rng }
    }

    /// Returns the bytes of the frame that is due, and the time of the next one.
    pub fn next_frame(&mut self) -> (u64, Time) {
        let index = self.index;
        self.index += 1;
        match &self.frames {
            &Frames::Model { bps, fps, gop, i_ratio, cv } => {
                let mean = bps as f64 / 8.0 / fps;
                let gop = f64::from(gop.max(1));
                // gop · mean = i_ratio · p + (gop - 1) · p.
                let p = gop * mean / (i_ratio + gop - 1.0);
                let size = if index.is_multiple_of(gop as u64) { i_ratio * p } else { p };
                let sigma2 = libm::log(1.0 + cv * cv);
                let factor = libm::exp(libm::sqrt(sigma2) * self.rng.normal() - sigma2 / 2.0);
                let next = self.start + Span::from_secs_f64((index + 1) as f64 / fps);
                ((size * factor).max(1.0) as u64, next)
            }
            Frames::Trace { frames, period_ns } => {
                let count = frames.len() as u64;
                let at = |i: u64| {
                    self.start + Span(i / count * period_ns + frames[(i % count) as usize].0)
                };
                (u64::from(frames[(index % count) as usize].1), at(index + 1))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_rate_is_kept_to_the_nanosecond() {
        // 1000 bytes at 3 Mbit/s: 2666666.67 ns each.
        let mut source = UdpSource::new(Rate(3_000_000), 1000, None, Rng::new(1, "u"));
        let mut now = Time::ZERO;
        for _ in 0..3_000 {
            now = source.next_after(now);
        }
        assert!(now.0.abs_diff(8_000_000_000) <= 150, "{now:?}");
    }

    #[test]
    fn an_on_off_flow_sends_for_its_share_of_the_time() {
        let periods =
            (Draw::Exponential { mean: 1_000_000_000 }, Draw::Exponential { mean: 3_000_000_000 });
        let mut source = UdpSource::new(Rate(8_000_000), 1000, Some(periods), Rng::new(5, "u"));
        let (mut now, mut sent) = (Time::ZERO, 0u64);
        while now < Time(20_000_000_000_000) {
            now = source.next_after(now);
            sent += 1;
        }
        let share = sent as f64 * 1e-3 / now.as_secs_f64();
        assert!((share - 0.25).abs() < 0.01, "{share}");
    }

    #[test]
    fn no_packet_leaves_at_the_end_of_an_on_period() {
        // A packet a millisecond, 10 ms on and 10 ms off: ten packets, at 0 to 9 ms, then at 20.
        let periods = (Draw::Constant { value: 10_000_000 }, Draw::Constant { value: 10_000_000 });
        let mut source = UdpSource::new(Rate(8_000_000), 1000, Some(periods), Rng::new(5, "u"));
        let first = Some(Time::ZERO);
        let times = std::iter::successors(first, |&now| Some(source.next_after(now)));
        let sent: Vec<u64> = times.take(11).map(|at| at.0 / 1_000_000).collect();
        assert_eq!(sent, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 20]);
    }

    #[test]
    fn the_video_model_keeps_its_mean_rate_and_its_large_frames() {
        let frames = Frames::Model { bps: 2_000_000, fps: 25.0, gop: 12, i_ratio: 4.0, cv: 0.3 };
        let mut source = VideoSource::new(frames, Time::ZERO, Rng::new(2, "v"));
        let sizes: Vec<f64> = (0..60_000).map(|_| source.next_frame().0 as f64).collect();
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        assert!((mean * 8.0 * 25.0 / 2e6 - 1.0).abs() < 0.01, "{mean}");
        let i_mean = sizes.iter().step_by(12).sum::<f64>() / 5000.0;
        let p_mean = (sizes.iter().sum::<f64>() - i_mean * 5000.0) / 55_000.0;
        assert!((i_mean / p_mean - 4.0).abs() < 0.1, "{}", i_mean / p_mean);
    }

    #[test]
    fn a_trace_repeats() {
        let frames = Frames::Trace { frames: vec![(0, 10), (40, 20)], period_ns: 100 };
        let mut source = VideoSource::new(frames, Time(5), Rng::new(2, "v"));
        let got: Vec<_> = (0..4).map(|_| source.next_frame()).collect();
        assert_eq!(got, [(10, Time(45)), (20, Time(105)), (10, Time(145)), (20, Time(205))]);
    }

    #[test]
    fn a_uniform_draw_may_be_either_end() {
        let (draw, mut rng) = (Draw::Uniform { min: 3, max: 5 }, Rng::new(9, "u"));
        let mut drawn: Vec<u64> = (0..100).map(|_| draw.next(&mut rng)).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn, [3, 4, 5]);
    }

    #[test]
    fn draws_follow_a_measured_distribution() {
        // A tenth is 100, four tenths lie up to 1000, half up to 10 000.
        let points = vec![(100, 0.1), (1_000, 0.5), (10_000, 1.0)];
        let draw = Draw::Empirical { points };
        assert_eq!(draw.mean(), 10.0 + 0.4 * 550.0 + 0.5 * 5_500.0);
        let mut rng = Rng::new(3, "e");
        let drawn: Vec<u64> = (0..200_000).map(|_| draw.next(&mut rng)).collect();
        let share = |most| drawn.iter().filter(|value| **value <= most).count() as f64 / 200_000.0;
        for (most, expected) in [(99, 0.0), (100, 0.1), (550, 0.3), (1_000, 0.5), (5_500, 0.75)] {
            assert!((share(most) - expected).abs() < 0.005, "{most}: {}", share(most));
        }
        assert_eq!(share(10_000), 1.0);
        let mean = drawn.iter().sum::<u64>() as f64 / 200_000.0;
        assert!((mean / draw.mean() - 1.0).abs() < 0.01, "{mean}");
    }

    #[test]
    fn pareto_draws_have_their_mean() {
        let draw = Draw::Pareto { mean: 1_000_000, shape: 2.5 };
        let mut rng = Rng::new(9, "p");
        let mean = (0..400_000).map(|_| draw.next(&mut rng) as f64).sum::<f64>() / 400_000.0;
        assert!((mean / 1e6 - 1.0).abs() < 0.02, "{mean}");
    }
}
