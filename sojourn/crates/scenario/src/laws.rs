//! Numbers that differ: between flows (`Spread`, drawn once when the scenario is realised) and over
//! time (`Draw`, drawn by the engine each time it needs one).
//!
//! ```text
//! rtt   = "uniform 40 ms .. 80 ms"     each flow its own, by the seed
//! rtt   = "spread 40 ms .. 440 ms"     evenly spaced over the flows of the entry
//! rtt   = ["10 ms", "100 ms"]          in turn
//! start = "every 2 s"                  the i-th flow starts at i × 2 s
//! start = "poisson 50 ms after 5 s"    one after another from 5 s on, the gaps exponential
//! off   = "exp 1 s"                    drawn anew each time
//! size  = "pareto 50 kB 1.5"           mean and tail exponent
//! size  = "cdf 1 kB 0.2, 9 kB 1"       as measured: a fifth is 1 kB, the rest lies evenly up to 9
//! ```

use traffic::Draw;
use units::Rng;
use values::quantity::is_blank;
use values::text::{did_you_mean, nearest, quoted as quoted_words};
use values::{Value, Wrong, general, real};

/// The law of a measured distribution.
pub(crate) const CDF: &str = "cdf";
/// The most points of a distribution.
pub(crate) const MAX_POINTS: usize = 1000;
/// The most characters of a law.
const MAX_TEXT: usize = 50 * MAX_POINTS;

type Read = fn(&Value) -> Result<u64, Wrong>;
type Write = fn(u64) -> String;

/// One number for each flow of an entry.
#[derive(Clone, Debug, PartialEq)]
pub enum Spread {
    /// The same for all flows.
    Constant(u64),
    /// Drawn between two ends, both included.
    Uniform(u64, u64),
    /// Evenly spaced between two ends.
    Spread(u64, u64),
    /// In turn.
    List(Vec<u64>),
    /// The flow's index times this step.
    Every(u64),
    /// A Poisson process: gaps from flow to flow are exponential.
    Poisson {
        /// Mean of the gaps.
        mean: u64,
        /// Start of the process.
        after: u64,
    },
}

impl Spread {
    /// Parses the value in any of its forms. `further` lists the laws that this key has beside
    /// those of every key.
    pub(crate) fn parse(
        value: &Value,
        read: Read,
        example: &str,
        further: &[&'static str],
    ) -> Result<Spread, Wrong> {
        if let Value::List(items) = value {
            if !(1..=100_000).contains(&items.len()) {
                let hint = format!("give 1 to 100000 values, like [\"{example}\"]");
                return Err(Wrong::new(format!("a list of {} values", items.len()), hint));
            }
            return Ok(Spread::List(items.iter().map(read).collect::<Result<_, _>>()?));
        }
        let laws = [&["uniform", "spread"], further].concat();
        Ok(match law(value, &laws)? {
            Some((word @ ("uniform" | "spread"), rest)) => {
                let (low, high) = ends(word, rest, read, example)?;
                if word == "uniform" {
                    Spread::Uniform(low, high)
                } else {
                    Spread::Spread(low, high)
                }
            }
            Some(("poisson", rest)) => {
                let (mean, after) = rest.split_once("after").unwrap_or((rest, "0 s"));
                let (mean, after) = (read(&mean.trim().into())?, read(&after.trim().into())?);
                if mean == 0 {
                    let hint = format!("write it like \"poisson {example}\"");
                    return Err(Wrong::new("the mean of the gaps is 0", hint));
                }
                Spread::Poisson { mean, after }
            }
            Some((_, rest)) => Spread::Every(read(&rest.into())?),
            None => Spread::Constant(read(value)?),
        })
    }

    /// The law's word.
    pub fn law(&self) -> &'static str {
        match self {
            Spread::Constant(_) => "constant",
            Spread::Uniform(..) => "uniform",
            Spread::Spread(..) => "spread",
            Spread::List(_) => "list",
            Spread::Every(_) => "every",
            Spread::Poisson { .. } => "poisson",
        }
    }

    /// The numbers in its text.
    pub fn values(&self) -> Vec<u64> {
        match self {
            Spread::Constant(value) | Spread::Every(value) => vec![*value],
            Spread::Uniform(low, high) | Spread::Spread(low, high) => vec![*low, *high],
            Spread::List(values) => values.clone(),
            Spread::Poisson { mean, after } => vec![*mean, *after],
        }
    }

    /// A lower bound for every flow.
    pub fn least(&self) -> u64 {
        match self {
            Spread::Every(_) => 0,
            Spread::Poisson { after, .. } => *after,
            _ => self.values().into_iter().min().unwrap_or(0),
        }
    }

    /// The numbers of all flows in order, if each depends on the one before it.
    pub fn in_order(&self, count: u32, rng: impl FnOnce() -> Rng) -> Option<Vec<u64>> {
        let &Spread::Poisson { mean, after } = self else { return None };
        let (mut rng, mut at) = (rng(), after);
        let mut next = || {
            at = at.saturating_add(rng.exponential(mean as f64) as u64);
            at
        };
        Some((0..count).map(|_| next()).collect())
    }

    /// An upper bound for each of `count` flows.
    pub fn most(&self, count: u32) -> u64 {
        match self {
            Spread::Every(step) => step.saturating_mul(u64::from(count.saturating_sub(1))),
            Spread::Poisson { .. } => u64::MAX,
            _ => self.values().into_iter().max().unwrap_or(0),
        }
    }

    /// Whether the number depends on the seed.
    pub fn drawn(&self) -> bool {
        matches!(self, Spread::Uniform(..) | Spread::Poisson { .. })
    }

    /// The number of flow `index` (from 0) among `count`; `draw` returns 64 random bits. Returns
    /// the lower bound for numbers that depend on each other (`in_order`).
    pub fn of(&self, index: u32, count: u32, draw: impl FnOnce() -> u64) -> u64 {
        let wide = u128::from(index);
        match self {
            Spread::Constant(value) => *value,
            Spread::Uniform(low, high) => {
                low + ((u128::from(draw()) * (u128::from(high - low) + 1)) >> 64) as u64
            }
            Spread::Spread(low, high) if count > 1 => {
                low + (u128::from(high - low) * wide / u128::from(count - 1)) as u64
            }
            Spread::Spread(low, _) => *low,
            Spread::List(values) => values[index as usize % values.len()],
            Spread::Every(step) => step.saturating_mul(index.into()),
            Spread::Poisson { after, .. } => *after,
        }
    }

    /// The number as a scenario file contains it.
    pub(crate) fn document(&self, write: Write) -> Value {
        match self {
            Spread::Constant(value) => write(*value).into(),
            Spread::List(values) => {
                Value::List(values.iter().map(|value| write(*value).into()).collect())
            }
            Spread::Every(step) => format!("every {}", write(*step)).into(),
            Spread::Poisson { mean, after: 0 } => format!("poisson {}", write(*mean)).into(),
            Spread::Poisson { mean, after } => {
                format!("poisson {} after {}", write(*mean), write(*after)).into()
            }
            Spread::Uniform(low, high) | Spread::Spread(low, high) => {
                format!("{} {} .. {}", self.law(), write(*low), write(*high)).into()
            }
        }
    }
}

/// Parses a number that is drawn each time: `50 kB`, `uniform A .. B`, `exp MEAN`, `pareto MEAN
/// SHAPE`, `cdf VALUE SHARE, ...`.
pub(crate) fn read_draw(value: &Value, read: Read, example: &str) -> Result<Draw, Wrong> {
    Ok(match law(value, &["uniform", "exp", "exponential", "pareto", CDF])? {
        Some(("uniform", rest)) => {
            let (min, max) = ends("uniform", rest, read, example)?;
            Draw::Uniform { min, max }
        }
        Some((CDF, rest)) => Draw::Empirical { points: cdf(rest, read, example)? },
        Some(("exp" | "exponential", rest)) => Draw::Exponential { mean: read(&rest.into())? },
        Some((_, rest)) => {
            let (mean, shape) = pareto(rest, example)?;
            Draw::Pareto { mean: read(&mean.into())?, shape }
        }
        None => Draw::Constant { value: read(value)? },
    })
}

/// A draw as a scenario file contains it.
pub(crate) fn write_draw(draw: &Draw, write: Write) -> Value {
    match *draw {
        Draw::Empirical { ref points } => {
            let point = |&(value, share): &(u64, f64)| format!("{} {}", write(value), real(share));
            format!("{CDF} {}", points.iter().map(point).collect::<Vec<_>>().join(", ")).into()
        }
        Draw::Constant { value } => write(value).into(),
        Draw::Uniform { min, max } => format!("uniform {} .. {}", write(min), write(max)).into(),
        Draw::Exponential { mean } => format!("exp {}", write(mean)).into(),
        Draw::Pareto { mean, shape } => format!("pareto {} {}", write(mean), real(shape)).into(),
    }
}

/// Points of a measured distribution, in rising order.
fn cdf(rest: &str, read: Read, example: &str) -> Result<Vec<(u64, f64)>, Wrong> {
    let example = format!("write it like \"{CDF} {example} 0.5, 10 MB 1\", or \"{CDF} sizes.csv\"");
    let mut points: Vec<(u64, f64)> = Vec::new();
    for text in rest.split(',') {
        let text = text.trim_matches(is_blank);
        let no_point = || {
            Wrong::new(
                format!("{} is not a value with its share", quoted_words(text)),
                example.clone(),
            )
        };
        let (value, share) = text.rsplit_once(is_blank).ok_or_else(no_point)?;
        let share: f64 = share.parse().map_err(|_| no_point())?;
        let value = read(&value.trim_matches(is_blank).into())?;
        if !(0.0..=1.0).contains(&share) {
            let message = format!("{}: the share is not from 0 to 1", quoted_words(text));
            return Err(Wrong::new(message, "write shares from 0 to 1; the last is 1"));
        }
        if points.last().is_some_and(|last| value < last.0 || share < last.1) {
            let message = format!("{} is below the point before", quoted_words(text));
            return Err(Wrong::new(
                message,
                "values and their shares must rise from point to point",
            ));
        }
        points.push((value, share));
    }
    if points.len() > MAX_POINTS {
        let message = format!("a distribution of {} points", points.len());
        return Err(Wrong::new(message, format!("the most is {MAX_POINTS}")));
    }
    if points.last().is_none_or(|last| last.1 != 1.0) {
        return Err(Wrong::new("the last share is not 1", example));
    }
    Ok(points)
}

/// The law's word and the text after it; `None`: a plain quantity.
fn law<'v>(
    value: &'v Value,
    laws: &[&'static str],
) -> Result<Option<(&'static str, &'v str)>, Wrong> {
    let Some(text) = value.text() else { return Ok(None) };
    let text = text.char_indices().nth(MAX_TEXT).map_or(text, |(end, _)| &text[..end]).trim_start();
    let end = text.find(|c: char| !c.is_ascii_alphabetic() && c != '_').unwrap_or(text.len());
    let word = text[..end].to_ascii_lowercase();
    if word.is_empty() || ["nan", "inf", "infinity"].contains(&&*word) {
        return Ok(None);
    }
    if let Some(law) = laws.iter().find(|law| **law == word) {
        return Ok(Some((law, text[end..].trim_start())));
    }
    let known = format!("known: {}", laws.join(", "));
    let hint = did_you_mean(nearest(&word, laws.iter().copied()), &known);
    Err(Wrong::new(format!("unknown law {}", quoted_words(&text[..end])), hint))
}

fn ends(word: &str, rest: &str, read: Read, example: &str) -> Result<(u64, u64), Wrong> {
    let parts: Vec<_> = rest.split("..").collect();
    let [low, high] = parts[..] else {
        let hint = format!("write it like \"{word} {example} .. {example}\"");
        return Err(Wrong::new(format!("{word} needs two ends"), hint));
    };
    let (least, most) = (read(&low.into())?, read(&high.into())?);
    if least > most {
        let message =
            format!("{} is above {}", quoted_words(low.trim()), quoted_words(high.trim()));
        return Err(Wrong::new(message, "write the lower end first"));
    }
    Ok((least, most))
}

fn pareto<'t>(rest: &'t str, example: &str) -> Result<(&'t str, f64), Wrong> {
    let none = || {
        Wrong::new(
            "pareto needs a mean and a tail exponent",
            format!("write it like \"pareto {example} 1.5\""),
        )
    };
    let (mean, shape) = rest.trim_end_matches(is_blank).rsplit_once(is_blank).ok_or_else(none)?;
    let mean = mean.trim_end();
    let (whole, decimals) = shape.split_once('.').unwrap_or((shape, "0"));
    let digits = |text: &str, most: usize| {
        (1..=most).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_digit())
    };
    if mean.is_empty() || !digits(whole, 3) || !digits(decimals, 15) {
        return Err(none());
    }
    let exponent: f64 = shape.parse().map_err(|_| none())?;
    if !(exponent > 1.0 && exponent <= 100.0) {
        let message = format!("a tail exponent of {} is not above 1", general(exponent, 6));
        return Err(Wrong::new(message, "with 1 or less the mean is infinite; write 1.5"));
    }
    Ok((mean, exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uniform_number_may_be_either_end() {
        let uniform = Spread::Uniform(3, 5);
        assert_eq!([0, 1 << 63, u64::MAX].map(|bits| uniform.of(0, 1, || bits)), [3, 4, 5]);
    }
}
