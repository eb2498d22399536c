//! The impairments of a link's wire: loss (a percentage, or netem's `gemodel` and `state`),
//! different delays, reordering, duplicates, delivery in slots.
//!
//! Source: tc-netem(8) for the words and the values of omitted numbers. Times and sizes have the
//! units of the scenario language, not tc's.

use link::{DelayJitter, Distribution, Duplication, LossStep, Reordering, Slots};
use std::collections::VecDeque;
use values::quantity::{
    TIME, Times, format_duration, format_number, format_probability, format_size, parse_duration,
    parse_probability, parse_size,
};
use values::text::quoted as quoted_words;
use values::{Value, Wrong, quoted};

/// No loss, independent losses, or bursts by a Markov chain.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// Each packet is lost with this probability.
    Random(f64),
    /// Good to bad and bad to good, per packet, and the probability of loss in the bad and in the
    /// good state.
    Gilbert {
        /// Good to bad.
        p: f64,
        /// Bad to good.
        r: f64,
        /// Loss in the bad state.
        bad_loss: f64,
        /// Loss in the good state.
        good_loss: f64,
    },
    /// Four states, by the probabilities of their changes: 1 received in a gap, 2 received in a
    /// burst, 3 lost in a burst, 4 lost in a gap.
    States {
        /// From 1 to 3.
        p13: f64,
        /// From 3 to 1.
        p31: f64,
        /// From 3 to 2.
        p32: f64,
        /// From 2 to 3.
        p23: f64,
        /// From 1 to 4; state 4 always leads back to 1.
        p14: f64,
    },
    /// Independent losses, with a probability that changes over time.
    Steps {
        /// (ns, the probability from then on), the first at 0.
        steps: Vec<(u64, f64)>,
        /// The steps repeat after this many ns.
        period: Option<u64>,
    },
}

impl Loss {
    /// The share of packets that it loses in the long run; for a chain in its stationary state,
    /// and for steps at the highest.
    pub fn mean(&self) -> f64 {
        match self {
            Loss::Random(p) => *p,
            Loss::Gilbert { p, r, bad_loss, good_loss } => {
                let bad = if p + r == 0.0 { 0.0 } else { p / (p + r) };
                bad * bad_loss + (1.0 - bad) * good_loss
            }
            Loss::States { p13, p31, p32, p23, p14 } => {
                // In balance each state is entered as often as left; shares are multiples of state
                // 1's.
                let burst = if *p31 > 0.0 { p13 / p31 } else { f64::INFINITY };
                let between = if *p32 > 0.0 { burst * p32 / p23 } else { 0.0 };
                let share = (burst + p14) / (1.0 + burst + between + p14);
                if share.is_nan() { 1.0 } else { share }
            }
            Loss::Steps { steps, .. } => steps.iter().map(|(_, p)| *p).fold(0.0, f64::max),
        }
    }

    /// Its words in a scenario: `none`, `0.1 %`, `gemodel 1 % 10 %`; of steps the first.
    pub fn text(&self) -> String {
        match self {
            Loss::Random(0.0) => "none".to_owned(),
            Loss::Random(p) => format_probability(*p),
            Loss::Gilbert { p, r, bad_loss, good_loss } => {
                let chain = [p, r, bad_loss, good_loss].map(|x| format_probability(*x));
                format!("gemodel {}", chain.join(" "))
            }
            Loss::States { p13, p31, p32, p23, p14 } => {
                let chain = [p13, p31, p32, p23, p14].map(|x| format_probability(*x));
                format!("state {}", chain.join(" "))
            }
            Loss::Steps { steps, .. } => format_probability(steps[0].1),
        }
    }

    /// Its steps, if it has several.
    pub(crate) fn steps(&self) -> Option<&Vec<(u64, f64)>> {
        if let Loss::Steps { steps, .. } = self { Some(steps) } else { None }
    }

    /// The engine's parameters.
    pub(crate) fn params(&self) -> link::Loss {
        match self {
            Loss::Random(0.0) => link::Loss::None,
            Loss::Random(probability) => link::Loss::Random { probability: *probability },
            Loss::Gilbert { p, r, bad_loss, good_loss } => {
                link::Loss::Gilbert { p: *p, r: *r, bad_loss: *bad_loss, good_loss: *good_loss }
            }
            Loss::States { p13, p31, p32, p23, p14 } => {
                link::Loss::States { p13: *p13, p31: *p31, p32: *p32, p23: *p23, p14: *p14 }
            }
            Loss::Steps { steps, period } => link::Loss::Steps {
                steps: steps
                    .iter()
                    .map(|&(at_ns, probability)| LossStep { at_ns, probability })
                    .collect(),
                period_ns: *period,
            },
        }
    }
}

/// Parses `0.1 %`, `0.001`, `gemodel 1% 10%` or `gemodel P R 1-H 1-K`.
pub(crate) fn parse_loss(value: &Value) -> Result<Loss, Wrong> {
    let Some(text) = value.text() else { return parse_probability(value).map(Loss::Random) };
    let words: Vec<_> = text.split_whitespace().collect();
    if words == ["none"] {
        return Ok(Loss::Random(0.0));
    }
    let law = words.first().filter(|word| ["gemodel", "state"].contains(word));
    let Some(law) = law else {
        if let Some(word) = words.first().filter(|word| word.chars().all(char::is_alphabetic)) {
            let hint = "write \"0.1 %\", \"gemodel 1% 10%\", \"state 1% 10%\" or \"none\"";
            return Err(Wrong::new(format!("unknown loss law {}", quoted_words(word)), hint));
        }
        return parse_probability(value).map(Loss::Random);
    };
    let rest = text.split_once(law).map_or("", |(_, rest)| rest);
    let numbers = percentages(rest.char_indices().nth(1000).map_or(rest, |(end, _)| &rest[..end]));
    if *law == "state" && !(1..=5).contains(&numbers.len()) {
        let hint = "write \"state P13 P31 P32 P23 P14\" as in tc-netem(8): 1 received, 2 received in a burst, 3 lost in a burst, 4 lost alone";
        let message = format!("state takes one to five percentages, not {}", numbers.len());
        return Err(Wrong::new(message, hint));
    }
    if *law == "gemodel" && !(1..=4).contains(&numbers.len()) {
        let hint = "write \"gemodel P R 1-H 1-K\" as in tc-netem(8): good to bad, bad to good, loss in bad, loss in good";
        let message = format!("gemodel takes one to four percentages, not {}", numbers.len());
        return Err(Wrong::new(message, hint));
    }
    let chain: Vec<f64> = numbers
        .iter()
        .map(|number| parse_probability(&number.as_str().into()))
        .collect::<Result<_, _>>()?;
    // netem: an omitted r is 1 - p, which makes the losses independent; an omitted 1-h is 100 %, an
    // omitted 1-k 0 %.
    let or = |index: usize, absent: f64| chain.get(index).copied().unwrap_or(absent);
    if *law == "state" {
        // netem: omitted, p31 is 1 - p13, p32 0 %, p23 100 %, p14 0 %.
        let (p13, p31, p32) = (chain[0], or(1, 1.0 - chain[0]), or(2, 0.0));
        return Ok(Loss::States { p13, p31, p32, p23: or(3, 1.0), p14: or(4, 0.0) });
    }
    Ok(Loss::Gilbert {
        p: chain[0],
        r: or(1, 1.0 - chain[0]),
        bad_loss: or(2, 1.0),
        good_loss: or(3, 0.0),
    })
}

/// Each number with the percent sign behind it: `1%`, `10 %`.
fn percentages(text: &str) -> Vec<String> {
    let mut numbers: Vec<String> = Vec::new();
    let mut open = false;
    for char in text.chars() {
        if char == '%' {
            if let Some(last) = numbers.last_mut().filter(|last| !last.ends_with('%')) {
                last.push('%');
            }
            open = false;
        } else if char.is_whitespace() {
            open = false;
        } else if open {
            numbers.last_mut().expect("an open number is there").push(char);
        } else {
            numbers.push(char.into());
            open = true;
        }
    }
    numbers
}

// What else a wire does
// -------------------------------------------------------------------------------------------------

/// The words of a value: numbers with the unit behind them (`5 ms`, `10%`), and names.
pub(crate) struct WireWords {
    rest: VecDeque<String>,
}

impl WireWords {
    fn of(text: &str) -> WireWords {
        let mut rest: VecDeque<String> = VecDeque::new();
        for word in text.split_whitespace() {
            let is_unit = word == "%" || UNITS.contains(&word);
            match rest.back_mut().filter(|last| is_unit && last.ends_with(is_numeral)) {
                Some(number) => *number = format!("{number} {word}"),
                None => rest.push_back(word.into()),
            }
        }
        WireWords { rest }
    }

    /// The next word, if it begins with a digit.
    fn number(&mut self) -> Option<Value> {
        let is_number = self.rest.front().is_some_and(|word| word.starts_with(is_numeral));
        if is_number { self.rest.pop_front().map(|word| word.as_str().into()) } else { None }
    }

    /// Takes the next word if it is this one; returns whether it is.
    fn takes(&mut self, name: &str) -> bool {
        let is_next = self.rest.front().is_some_and(|word| word == name);
        if is_next {
            self.rest.pop_front();
        }
        is_next
    }
}

fn is_numeral(char: char) -> bool {
    char.is_ascii_digit()
}

const UNITS: [&str; 15] =
    ["ns", "us", "µs", "ms", "s", "min", "h", "B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB"];

/// Parses `none`, or the words that `read` parses.
pub(crate) fn parse_words<T>(
    value: &Value,
    example: &str,
    read: fn(&mut WireWords) -> Result<Option<T>, Wrong>,
) -> Result<Option<T>, Wrong> {
    let hint = || format!("write \"{example}\" or \"none\"");
    let text = match value {
        Value::Int(number) => number.to_string(),
        Value::Float(number) => format_number(*number),
        Value::Text(text) => text.chars().take(1000).collect(),
        _ => return Err(Wrong::new(format!("{} is not text", quoted(value)), hint())),
    };
    if text.trim() == "none" {
        return Ok(None);
    }
    let mut words = WireWords::of(&text);
    if words.rest.front().is_none_or(|word| !word.starts_with(is_numeral)) {
        return Err(Wrong::new(format!("{} does not begin with a number", quoted(value)), hint()));
    }
    let impairment = read(&mut words)?;
    match words.rest.front() {
        None => Ok(impairment),
        Some(word) => Err(Wrong::new(format!("{} is out of place", quoted_words(word)), hint())),
    }
}

/// `none`, or its words.
pub(crate) fn written<T>(what: &Option<T>, text: fn(&T) -> String) -> Value {
    what.as_ref().map_or("none".into(), |what| text(what).into())
}

fn time(words: &mut WireWords, what: &str, example: &str) -> Result<Option<u64>, Wrong> {
    const HOUR: u64 = 3_600_000_000_000;
    let Some(number) = words.number() else { return Ok(None) };
    parse_duration(&number, &Times { what, example, most: HOUR, ..TIME }).map(Some)
}

/// A share of `whole`, to the nearest.
fn share(words: &mut WireWords, whole: u64) -> Result<Option<u64>, Wrong> {
    let Some(number) = words.number() else { return Ok(None) };
    parse_probability(&number).map(|share| Some(libm::round(share * whole as f64) as u64))
}

fn probability(words: &mut WireWords) -> Result<u64, Wrong> {
    share(words, ALWAYS).map(|share| share.expect("the first word is a number"))
}

fn correlation(words: &mut WireWords) -> Result<u32, Wrong> {
    share(words, u32::MAX.into()).map(|share| share.unwrap_or(0) as u32)
}

/// 100 % in units of 2^-32.
const ALWAYS: u64 = 1 << 32;

/// The shortest percentage that reads back as this share of `whole`.
fn share_text(share: u64, whole: u64) -> String {
    let exact = share as f64 / whole as f64;
    let rounded = (2..14).map(|digits| {
        let scale = libm::pow(10.0, digits.into());
        libm::round(exact * scale) / scale
    });
    let reads_back = |of: &f64| libm::round(of * whole as f64) as u64 == share;
    format_probability(rounded.into_iter().find(reads_back).unwrap_or(exact))
}

fn with_correlation(text: String, correlation: u32) -> String {
    match correlation {
        0 => text,
        rho => format!("{text} {}", share_text(rho.into(), u32::MAX.into())),
    }
}

fn count(words: &mut WireWords, what: &str) -> Result<u32, Wrong> {
    let number = words.number().and_then(|word| word.text()?.parse::<u32>().ok());
    number
        .filter(|number| *number > 0)
        .ok_or_else(|| Wrong::new(format!("{what} without a number"), format!("write {what} 5")))
}

/// Parses `5 ms`, `5 ms 25%` or `5 ms 25% distribution normal`.
pub(crate) fn parse_jitter(words: &mut WireWords) -> Result<Option<DelayJitter>, Wrong> {
    let scale_ns = time(words, "a jitter", "5 ms")?.unwrap_or(0);
    let correlation = correlation(words)?;
    let named = words.takes("distribution");
    let known = Distribution::ALL.into_iter().find(|(_, word)| words.takes(word));
    if known.is_none()
        && let Some(word) = words.rest.front()
    {
        let message = format!("unknown distribution {}", quoted_words(word));
        return Err(Wrong::new(message, "write uniform, normal, pareto or paretonormal"));
    }
    if known.is_none() && named {
        let hint = "write uniform, normal, pareto or paretonormal";
        return Err(Wrong::new("distribution without its name", hint));
    }
    let distribution = known.map_or(Distribution::Uniform, |(distribution, _)| distribution);
    Ok((scale_ns > 0).then_some(DelayJitter { scale_ns, correlation, distribution }))
}

/// The words that `parse_jitter` parses.
pub(crate) fn jitter_text(jitter: &DelayJitter) -> String {
    let text = with_correlation(format_duration(jitter.scale_ns), jitter.correlation);
    match jitter.distribution {
        Distribution::Uniform => text,
        other => format!("{text} distribution {}", other.word()),
    }
}

/// Parses `1 %`, `1 % 50 %` or `1 % 50 % gap 5`.
pub(crate) fn parse_reorder(words: &mut WireWords) -> Result<Option<Reordering>, Wrong> {
    let (probability, correlation) = (probability(words)?, correlation(words)?);
    let gap = if words.takes("gap") { count(words, "gap")? } else { 1 };
    Ok((probability > 0).then_some(Reordering { probability, correlation, gap }))
}

/// The words that `parse_reorder` parses.
pub(crate) fn reorder_text(reorder: &Reordering) -> String {
    let text = with_correlation(share_text(reorder.probability, ALWAYS), reorder.correlation);
    if reorder.gap > 1 { format!("{text} gap {}", reorder.gap) } else { text }
}

/// Parses `0.1 %` or `0.1 % 25 %`.
pub(crate) fn parse_duplicate(words: &mut WireWords) -> Result<Option<Duplication>, Wrong> {
    let (probability, correlation) = (probability(words)?, correlation(words)?);
    Ok((probability > 0).then_some(Duplication { probability, correlation }))
}

/// The words that `parse_duplicate` parses.
pub(crate) fn duplicate_text(duplicate: &Duplication) -> String {
    with_correlation(share_text(duplicate.probability, ALWAYS), duplicate.correlation)
}

/// Parses `5 ms`, `1 ms 5 ms` or `1 ms 5 ms packets 20 bytes 30 kB`.
pub(crate) fn parse_slot(words: &mut WireWords) -> Result<Option<Slots>, Wrong> {
    let min_ns = time(words, "a slot", "1 ms")?.unwrap_or(0);
    let max_ns = time(words, "a slot", "5 ms")?.unwrap_or(min_ns);
    if max_ns < min_ns {
        let times = format!("{} after {}", format_duration(max_ns), format_duration(min_ns));
        return Err(Wrong::new(
            format!("a slot's longest time is {times}"),
            "write the shorter one first",
        ));
    }
    let packets = if words.takes("packets") { Some(count(words, "packets")?) } else { None };
    let bytes = if words.takes("bytes") {
        let size = words.number().unwrap_or_else(|| "".into());
        Some(parse_size(&size, "a slot", 1, 1 << 30)? as u32)
    } else {
        None
    };
    Ok((max_ns > 0).then_some(Slots { min_ns, max_ns, packets, bytes }))
}

/// The words that `parse_slot` parses.
pub(crate) fn slot_text(slot: &Slots) -> String {
    let mut text = format_duration(slot.min_ns);
    if slot.max_ns > slot.min_ns {
        text += &format!(" {}", format_duration(slot.max_ns));
    }
    if let Some(packets) = slot.packets {
        text += &format!(" packets {packets}");
    }
    if let Some(bytes) = slot.bytes {
        text += &format!(" bytes {}", format_size(bytes.into()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes the result of reading.
    fn again<T>(
        text: &str,
        read: fn(&mut WireWords) -> Result<Option<T>, Wrong>,
        write: fn(&T) -> String,
    ) -> Result<String, Wrong> {
        let parsed = parse_words(&text.into(), "", read)?;
        Ok(parsed.as_ref().map_or("none".into(), write))
    }

    #[test]
    fn a_wire_s_words_are_netem_s_with_units() {
        for (text, canonical) in [
            ("5ms", "5 ms"),
            ("5 ms 25% distribution normal", "5 ms 25 % distribution normal"),
            ("5 ms 0.3 % pareto", "5 ms 0.3 % distribution pareto"),
            ("5 ms uniform", "5 ms"),
            ("0 ms normal", "none"),
            ("none", "none"),
        ] {
            assert_eq!(again(text, parse_jitter, jitter_text), Ok(canonical.into()), "{text}");
        }
        for (text, canonical) in [("25% 50% gap 5", "25 % 50 % gap 5"), ("0.01", "1 %")] {
            assert_eq!(again(text, parse_reorder, reorder_text), Ok(canonical.into()), "{text}");
        }
        for (text, canonical) in
            [("1e-7", "1e-05 %"), ("100 %", "100 %"), ("33.3% 1%", "33.3 % 1 %")]
        {
            assert_eq!(
                again(text, parse_duplicate, duplicate_text),
                Ok(canonical.into()),
                "{text}"
            );
        }
        let slot = "1 ms 5 ms packets 20 bytes 30 kB";
        assert_eq!(again(slot, parse_slot, slot_text), Ok(slot.into()));
        assert_eq!(again("2ms", parse_slot, slot_text), Ok("2 ms".into()));
        for wrong in ["5 ms gauss", "5", "normal", "5 ms 25% distribution", "", "5 ms 1% 2%"] {
            assert!(again(wrong, parse_jitter, jitter_text).is_err(), "{wrong}");
        }
        for wrong in ["5 ms 1 ms", "5 ms packets", "1 ms bytes 5", "1 ms packets 0"] {
            assert!(again(wrong, parse_slot, slot_text).is_err(), "{wrong}");
        }
        assert!(again("1 % gap 0", parse_reorder, reorder_text).is_err());
    }

    #[test]
    fn loss_is_a_percentage_or_netem_s_gemodel() {
        let read = |text: &str| parse_loss(&text.into());
        assert_eq!(read("0.1 %"), Ok(Loss::Random(0.001)));
        let gilbert = |p, r, bad_loss, good_loss| Ok(Loss::Gilbert { p, r, bad_loss, good_loss });
        assert_eq!(read("gemodel 1% 10%"), gilbert(0.01, 0.1, 1.0, 0.0));
        assert_eq!(read("gemodel 1 % 10 % 70% 0.1%"), gilbert(0.01, 0.1, 0.7, 0.001));
        assert_eq!(read("gemodel 1%"), gilbert(0.01, 0.99, 1.0, 0.0));
        let states = Loss::States { p13: 0.01, p31: 0.99, p32: 0.0, p23: 1.0, p14: 0.0 };
        assert_eq!(read("state 1%"), Ok(states));
        let mean = |text: &str| read(text).expect("it is a law").mean();
        assert!((mean("state 1% 10%") - mean("gemodel 1% 10%")).abs() < 1e-12);
        for text in [
            "state 1% 20% 30% 50% 2%",
            "0.1 %",
            "gemodel 1% 10%",
            "gemodel 0.3% 7% 70% 0.1%",
            "none",
        ] {
            let loss = read(text).expect("it is a law");
            assert_eq!(read(&loss.text()), Ok(loss));
        }
        for wrong in [
            "state",
            "state 1% 2% 3% 4% 5% 6%",
            "gemodel",
            "gemodel 1% 2% 3% 4% 5%",
            "gilbert 1%",
            "200 %",
            "",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
