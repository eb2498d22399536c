//! Sampled sweeps: points drawn between the two ends of each range, in place of a grid.
//!
//! A grid of five keys with five values is 3125 variants. Fifty points spread over the same space
//! show more of each key. A Latin hypercube (McKay, Beckman, Conover 1979) cuts each range into as
//! many strata as there are points and puts one point into each; `random` draws each point
//! independently.
//!
//! ```text
//! "bottleneck.rate" = "1 Mbit/s .. 100 Mbit/s"
//! "flow.bulk.count" = "linear 1 .. 16"
//! samples = 50
//! sampling = "lhs"
//! ```
//!
//! Each key has its own random stream, named by the key, so a further key moves no point of the
//! others. Strata have equal widths on the range's scale. The scale is logarithmic for a rate, and
//! for a range whose ends differ by more than a factor of eight.

use units::Rng;
use values::quantity::{
    MAX_SIZE, TIME, format_duration, format_rate, format_size, is_blank, parse_duration,
    parse_probability, parse_rate, parse_size,
};
use values::text::{did_you_mean, nearest};
use values::{Value, Wrong, general, quoted};

/// Significant digits of a drawn number, so that people can read and write it.
const DIGITS: usize = 4;
/// The ratio of a range's ends above which it is drawn on a logarithmic scale.
const WIDE: f64 = 8.0;
const EXAMPLE: &str = "1 Mbit/s .. 100 Mbit/s";

/// How points are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// The number of points.
    pub count: usize,
    /// The distribution of the points.
    pub design: Design,
    /// The seed of the random streams.
    pub seed: u64,
}

/// The distribution of points in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// A Latin hypercube: one point in each stratum.
    Lhs,
    /// Each point independently.
    Random,
}

impl Design {
    /// Every design.
    pub const ALL: [Design; 2] = [Design::Lhs, Design::Random];

    /// The name in a scenario.
    pub fn name(self) -> &'static str {
        match self {
            Design::Lhs => "lhs",
            Design::Random => "random",
        }
    }

    pub(crate) fn read(value: &Value) -> Result<Design, Wrong> {
        let text = value.text().unwrap_or_default();
        if let Some(design) = Design::ALL.into_iter().find(|design| design.name() == text) {
            return Ok(design);
        }
        let names = Design::ALL.map(Design::name);
        let known = format!("known: {}", names.join(", "));
        let hint = did_you_mean(nearest(text, names), &known);
        Err(Wrong::new(format!("{} is not a sampling design", quoted(value)), hint))
    }
}

/// The scale on which a range is cut into strata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Linear,
    Log,
}

/// The quantity of a range's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Rate,
    Time,
    Size,
    Percent,
    Whole,
    Real,
}

/// Two ends between which a key's values are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    low: f64,
    high: f64,
    quantity: Quantity,
    /// The scale in its text.
    named: Option<Scale>,
}

impl Range {
    /// `1 Mbit/s .. 100 Mbit/s`; `log` or `linear` before it names the scale.
    pub(crate) fn read(text: &str) -> Result<Range, Wrong> {
        let text = text.trim_matches(is_blank);
        let (named, ends) = match text.split_once(is_blank) {
            Some(("log", rest)) => (Some(Scale::Log), rest),
            Some(("linear", rest)) => (Some(Scale::Linear), rest),
            _ => (None, text),
        };
        let none = |message: String| {
            Wrong::new(message, format!("write two ends of one quantity: \"{EXAMPLE}\""))
        };
        let shown = || quoted(&text.into());
        let ends: Vec<_> = ends.split("..").map(|end| end.trim_matches(is_blank)).collect();
        let [low, high] = ends[..] else {
            return Err(none(format!("{} is neither a list nor a range", shown())));
        };
        let (quantity, low, high) = numbers(low, high)
            .ok_or_else(|| none(format!("{}: its ends are not of one quantity", shown())))?;
        if low >= high {
            let hint = "write the lower end first, and two different ends";
            return Err(Wrong::new(format!("{} is an empty range", shown()), hint));
        }
        if named == Some(Scale::Log) && low <= 0.0 {
            let hint = "write a lower end above zero, or linear in place of log";
            return Err(Wrong::new(format!("{}: a logarithm of zero", shown()), hint));
        }
        Ok(Range { low, high, quantity, named })
    }

    /// The range as a scenario file contains it.
    pub(crate) fn write(&self) -> String {
        let word = match self.named {
            Some(Scale::Log) => "log ",
            Some(Scale::Linear) => "linear ",
            None => "",
        };
        let end = |number| match self.value(number) {
            Value::Text(text) => text,
            other => quoted(&other),
        };
        format!("{word}{} .. {}", end(self.low), end(self.high))
    }

    fn scale(&self) -> Scale {
        let wide = self.quantity == Quantity::Rate || self.high > WIDE * self.low;
        let usual = if self.low > 0.0 && wide { Scale::Log } else { Scale::Linear };
        self.named.unwrap_or(usual)
    }

    /// A value for each point.
    pub(crate) fn drawn(&self, key: &str, sampling: &Sampling) -> Vec<Value> {
        let mut rng = Rng::new(sampling.seed, key);
        shares(sampling, &mut rng).into_iter().map(|share| self.value(self.at(share))).collect()
    }

    /// The number at this share of the range, from 0 to 1.
    fn at(&self, share: f64) -> f64 {
        let (low, high) = (self.low, self.high);
        let number = match (self.scale(), self.quantity) {
            (Scale::Log, _) => low * libm::exp(share * libm::log(high / low)),
            // Each whole number has an equal share, the ends too.
            (Scale::Linear, Quantity::Whole) => libm::floor(low + share * (high - low + 1.0)),
            (Scale::Linear, _) => low + share * (high - low),
        };
        let rounded = format!("{number:.*e}", DIGITS - 1).parse().unwrap_or(number);
        let whole = !matches!(self.quantity, Quantity::Percent | Quantity::Real);
        (if whole { libm::round(rounded) } else { rounded }).clamp(low, high)
    }

    /// A number as a scenario file contains it.
    fn value(&self, number: f64) -> Value {
        match self.quantity {
            Quantity::Rate => format_rate(number as u64).into(),
            Quantity::Time => format_duration(number as u64).into(),
            Quantity::Size => format_size(number as u64).into(),
            Quantity::Percent => format!("{} %", general(number * 100.0, 6)).into(),
            Quantity::Whole => Value::Int(number as i128),
            Quantity::Real => Value::Float(number),
        }
    }
}

/// Two ends as numbers of one quantity.
fn numbers(low: &str, high: &str) -> Option<(Quantity, f64, f64)> {
    type Read = fn(&str) -> Option<f64>;
    let readers: [(Quantity, Read); 6] = [
        (Quantity::Rate, |end| parse_rate(&end.into(), false).ok().map(|bps| bps as f64)),
        (Quantity::Time, |end| parse_duration(&end.into(), &TIME).ok().map(|ns| ns as f64)),
        (Quantity::Size, |end| {
            parse_size(&end.into(), "a size", 0, MAX_SIZE).ok().map(|bytes| bytes as f64)
        }),
        (Quantity::Percent, |end| {
            parse_probability(&end.into()).ok().filter(|_| end.ends_with('%'))
        }),
        (Quantity::Whole, |end| end.parse::<u32>().ok().map(f64::from)),
        (Quantity::Real, |end| end.parse().ok().filter(|number: &f64| number.is_finite())),
    ];
    readers.into_iter().find_map(|(quantity, read)| Some((quantity, read(low)?, read(high)?)))
}

/// Positions in a range, each from 0 to 1.
fn shares(sampling: &Sampling, rng: &mut Rng) -> Vec<f64> {
    let count = sampling.count;
    let within: Vec<f64> = (0..count).map(|_| rng.unit()).collect();
    if sampling.design == Design::Random {
        return within;
    }
    let mut strata: Vec<usize> = (0..count).collect();
    // Fisher and Yates's shuffle.
    for last in (1..count).rev() {
        strata.swap(last, rng.below(last as u64 + 1) as usize);
    }
    strata.iter().zip(within).map(|(&stratum, at)| (stratum as f64 + at) / count as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> Range {
        Range::read(text).expect("it is a range")
    }

    fn lhs(count: usize) -> Sampling {
        Sampling { count, design: Design::Lhs, seed: 1 }
    }

    #[test]
    fn a_latin_hypercube_has_one_point_in_each_stratum() {
        for seed in 1..20 {
            let sampling = Sampling { seed, ..lhs(37) };
            let mut strata: Vec<_> = shares(&sampling, &mut Rng::new(seed, "rate"))
                .into_iter()
                .map(|share| (share * 37.0) as usize)
                .collect();
            strata.sort_unstable();
            assert_eq!(strata, (0..37).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_rate_is_drawn_by_its_logarithm_and_a_narrow_time_evenly() {
        // Half of the strata of 1 to 100 Mbit/s lie below 10 Mbit/s; of 10 to 20 ms, below 15.
        for (text, middle) in [
            ("1 Mbit/s .. 100 Mbit/s", 1e7),
            ("10 ms .. 20 ms", 15e6),
            ("1 ms .. 100 ms", 10e6),
            ("linear 1 Mbit/s .. 101 Mbit/s", 51e6),
            ("log 10 ms .. 40 ms", 20e6),
        ] {
            let range = range(text);
            let below = (0..100).filter(|n| range.at((*n as f64 + 0.5) / 100.0) < middle).count();
            assert_eq!(below, 50, "{text}");
        }
    }

    #[test]
    fn whole_numbers_are_equally_likely_including_the_ends() {
        let range = range("linear 1 .. 4");
        let drawn = range.drawn("flow.bulk.count", &lhs(40));
        for number in 1..=4 {
            let found = drawn.iter().filter(|value| **value == Value::Int(number)).count();
            assert_eq!(found, 10, "of {number}");
        }
    }

    #[test]
    fn values_are_of_the_quantity_and_between_the_ends() {
        for text in ["1 Mbit/s .. 3 Mbit/s", "0 s .. 5 ms", "10 kB .. 1 MB", "0.1 % .. 2 %"] {
            let range = range(text);
            for value in range.drawn("key", &lhs(100)) {
                let shown = value.text().expect("it has a unit");
                let (quantity, number, _) = numbers(shown, shown).expect("it is a quantity");
                assert_eq!(quantity, range.quantity, "{shown}");
                assert!(range.low <= number && number <= range.high, "{shown}");
            }
        }
    }

    #[test]
    fn text_reads_back_as_the_same_range() {
        for text in [
            "1 Mbit/s .. 100 Mbit/s",
            "log 1 ms .. 5 ms",
            "linear 1 .. 16",
            "0.1 % .. 5 %",
            "0.25 .. 0.5",
            "1 kB .. 3 MB",
        ] {
            assert_eq!(Range::read(&range(text).write()), Ok(range(text)), "{text}");
        }
    }

    #[test]
    fn an_invalid_range_is_refused() {
        for text in [
            "5 ms",
            "1 Mbit/s .. 5 ms",
            "2 .. 1",
            "1 .. 1",
            "log 0 s .. 1 s",
            "codel",
            "1 .. 2 .. 3",
            "NaN .. 1.0",
        ] {
            assert!(Range::read(text).is_err(), "{text}");
        }
    }
}
