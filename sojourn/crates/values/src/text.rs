//! Words in messages: quoted values, and similar known words.

/// Words of a text, each with its range in bytes.
pub fn words(text: &str) -> Vec<(&str, std::ops::Range<usize>)> {
    text.split_whitespace()
        .map(|word| {
            let begin = word.as_ptr() as usize - text.as_ptr() as usize;
            (word, begin..begin + word.len())
        })
        .collect()
}

/// Joins words with blanks.
pub fn joined(words: &[(&str, std::ops::Range<usize>)]) -> String {
    words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(" ")
}

/// The text up to this many characters.
pub fn up_to(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(end, _)| &text[..end])
}

/// A text for a message: in quotes, on one line and not too long.
pub fn quoted(text: &str) -> String {
    shortened(&in_quotes(text))
}

/// At most 60 characters of a text that is already in quotes.
pub fn shortened(shown: &str) -> String {
    let length = shown.chars().count();
    let last = shown.chars().next_back();
    match last {
        Some(last) if length > 60 => format!("{}…{last}", up_to(shown, 50)),
        _ => shown.to_owned(),
    }
}

/// Text in single quotes, or in double quotes if it contains single ones; characters that can't be
/// seen are numbers.
pub fn in_quotes(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if !printable(c) => match c as u32 {
                code @ 0..=0xFF => out.push_str(&format!("\\x{code:02x}")),
                code @ 0x100..=0xFFFF => out.push_str(&format!("\\u{code:04x}")),
                code => out.push_str(&format!("\\U{code:08x}")),
            },
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

/// Whether a character can be seen: not a control, format or unassigned character, and no blank but
/// the plain one.
pub fn printable(c: char) -> bool {
    if c.is_ascii() {
        return (' '..='~').contains(&c);
    }
    // A combining character is visible after another one.
    let mut behind = String::from("a");
    behind.push(c);
    behind.escape_debug().nth(1) == Some(c)
}

/// The most similar known word, if one is similar enough; among equally similar words the last in
/// alphabetical order. Similar enough means that at least half of the letters of both are in common
/// runs (Ratcliff and Obershelp's measure).
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = word.to_ascii_lowercase().chars().take(40).collect();
    let mut best: Option<(f64, String, &'a str)> = None;
    for each in known {
        let lower = each.to_ascii_lowercase();
        let letters: Vec<char> = lower.chars().collect();
        let all = letters.len() + wanted.len();
        let common = common(&letters, &wanted);
        let near = if all == 0 { 1.0 } else { 2.0 * common as f64 / all as f64 };
        let better = |(other, name, _): &(f64, String, &str)| (near, &lower) >= (*other, name);
        if near >= 0.5 && best.as_ref().is_none_or(better) {
            best = Some((near, lower, each));
        }
    }
    best.map(|(_, _, each)| each)
}

/// Letters in common: those of the longest common run, and of the parts on either side of it.
fn common(left: &[char], right: &[char]) -> usize {
    let (mut longest, mut at, mut there) = (0, 0, 0);
    for i in 0..left.len() {
        for j in 0..right.len() {
            let run = left[i..].iter().zip(&right[j..]).take_while(|(a, b)| a == b).count();
            if run > longest {
                (longest, at, there) = (run, i, j);
            }
        }
    }
    if longest == 0 {
        return 0;
    }
    let after = common(&left[at + longest..], &right[there + longest..]);
    longest + common(&left[..at], &right[..there]) + after
}

/// Joins words with commas: `one, another, a third`.
pub fn listed<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().collect::<Vec<_>>().join(", ")
}

/// `did you mean codel? known: ...`, or the known words alone.
pub fn did_you_mean(guess: Option<&str>, known: &str) -> String {
    guess.map_or(known.to_owned(), |guess| format!("did you mean {guess}? {known}"))
}

/// The shortest decimal of this number: `0.02`, `1e-07`.
pub fn number(number: f64) -> String {
    if number == 0.0 || (1e-6..1e15).contains(&number.abs()) {
        return format!("{number}");
    }
    let text = format!("{number:e}");
    let (mantissa, exponent) = text.split_once('e').expect("the format has an exponent");
    let (sign, digits) = exponent.strip_prefix('-').map_or(("+", exponent), |digits| ("-", digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_similar_word_is_suggested() {
        assert_eq!(nearest("codl", ["pfifo", "codel", "fq_codel"]), Some("codel"));
        assert_eq!(nearest("TARGT", ["limit", "target"]), Some("target"));
        assert_eq!(nearest("xyz", ["limit", "target"]), None);
        // 2 * 3 / 8 letters each: the last by alphabet.
        assert_eq!(nearest("abcd", ["abcx", "abcy", "abcd1234567"]), Some("abcy"));
    }

    #[test]
    fn quoted_text_stays_on_one_line() {
        assert_eq!(quoted("a\nb"), r"'a\nb'");
        assert_eq!(quoted("it's"), r#""it's""#);
        assert_eq!(quoted("\u{1}é\u{200b}"), r"'\x01é\u200b'");
        assert_eq!(quoted(&"x".repeat(80)), format!("'{}…'", "x".repeat(49)));
    }

    #[test]
    fn numbers_have_the_shortest_text_that_reads_back() {
        let numbers = [0.02, 3.0, 1e-7, 1.5e-9, 0.000001, 0.1 + 0.2].map(number);
        assert_eq!(numbers, ["0.02", "3", "1e-07", "1.5e-09", "0.000001", "0.30000000000000004"]);
    }
}
