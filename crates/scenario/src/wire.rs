//! What a link's wire loses: a percentage, or netem's `gemodel`.
//!
//! Source: tc-netem(8) for gemodel p [r [1-h [1-k]]] and what omitted numbers are.

use crate::problem::Wrong;
use crate::quantity::{format_probability, parse_probability};
use crate::value::Value;
use tc::text::quoted as quoted_words;

/// Nothing, each packet alike, or bursts by Gilbert and Elliott's chain.
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
}

impl Loss {
    /// The share of packets that it loses in the long run; of a burst's chain by its stationary
    /// state.
    pub fn mean(&self) -> f64 {
        match self {
            Loss::Random(p) => *p,
            Loss::Gilbert { p, r, bad_loss, good_loss } => {
                let bad = if p + r == 0.0 { 0.0 } else { p / (p + r) };
                bad * bad_loss + (1.0 - bad) * good_loss
            }
        }
    }

    /// `none`, `0.1 %`, `gemodel 1 % 10 %`.
    pub fn text(&self) -> String {
        match self {
            Loss::Random(0.0) => "none".to_owned(),
            Loss::Random(p) => format_probability(*p),
            Loss::Gilbert { p, r, bad_loss, good_loss } => {
                let chain = [p, r, bad_loss, good_loss].map(|x| format_probability(*x));
                format!("gemodel {}", chain.join(" "))
            }
        }
    }

    /// As the engine takes it.
    pub(crate) fn params(&self) -> link::Loss {
        match self {
            Loss::Random(0.0) => link::Loss::None,
            Loss::Random(probability) => link::Loss::Random { probability: *probability },
            Loss::Gilbert { p, r, bad_loss, good_loss } => {
                link::Loss::Gilbert { p: *p, r: *r, bad_loss: *bad_loss, good_loss: *good_loss }
            }
        }
    }
}

/// `0.1 %`, `0.001`, `gemodel 1% 10%`, `gemodel P R 1-H 1-K`.
pub(crate) fn parse_loss(value: &Value) -> Result<Loss, Wrong> {
    let Some(text) = value.text() else { return parse_probability(value).map(Loss::Random) };
    let words: Vec<_> = text.split_whitespace().collect();
    if words == ["none"] {
        return Ok(Loss::Random(0.0));
    }
    if words.first() != Some(&"gemodel") {
        if let Some(word) = words.first().filter(|word| word.chars().all(char::is_alphabetic)) {
            let hint = "write \"0.1 %\", \"gemodel 1% 10%\" or \"none\"";
            return Err(Wrong::new(format!("unknown loss law {}", quoted_words(word)), hint));
        }
        return parse_probability(value).map(Loss::Random);
    }
    let rest = text.split_once("gemodel").map_or("", |(_, rest)| rest);
    let numbers = percentages(rest.char_indices().nth(1000).map_or(rest, |(end, _)| &rest[..end]));
    if !(1..=4).contains(&numbers.len()) {
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
    Ok(Loss::Gilbert {
        p: chain[0],
        r: or(1, 1.0 - chain[0]),
        bad_loss: or(2, 1.0),
        good_loss: or(3, 0.0),
    })
}

/// Each number with the sign behind it: `1%`, `10 %`.
fn percentages(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut open = false;
    for char in text.chars() {
        if char == '%' {
            if let Some(last) = found.last_mut().filter(|last| !last.ends_with('%')) {
                last.push('%');
            }
            open = false;
        } else if char.is_whitespace() {
            open = false;
        } else if open {
            found.last_mut().expect("an open number is there").push(char);
        } else {
            found.push(char.into());
            open = true;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_is_a_percentage_or_netem_s_gemodel() {
        let read = |text: &str| parse_loss(&text.into());
        assert_eq!(read("0.1 %"), Ok(Loss::Random(0.001)));
        let gilbert = |p, r, bad_loss, good_loss| Ok(Loss::Gilbert { p, r, bad_loss, good_loss });
        assert_eq!(read("gemodel 1% 10%"), gilbert(0.01, 0.1, 1.0, 0.0));
        assert_eq!(read("gemodel 1 % 10 % 70% 0.1%"), gilbert(0.01, 0.1, 0.7, 0.001));
        assert_eq!(read("gemodel 1%"), gilbert(0.01, 0.99, 1.0, 0.0));
        for text in ["0.1 %", "gemodel 1% 10%", "gemodel 0.3% 7% 70% 0.1%", "none"] {
            let loss = read(text).expect("it is a law");
            assert_eq!(read(&loss.text()), Ok(loss));
        }
        for wrong in ["gemodel", "gemodel 1% 2% 3% 4% 5%", "gilbert 1%", "200 %", ""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
