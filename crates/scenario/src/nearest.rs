//! The word that was probably meant: of the known words the one most alike, by Ratcliff and Obershelp's measure.
//!
//! Likeness is twice the matched characters over all characters, where what matches is the longest common run and, left and
//! right of it, again the longest. Source: J. Ratcliff, D. Metzener, "Pattern Matching: The Gestalt Approach", Dr. Dobb's
//! Journal, July 1988; the cutoff is ours.

/// Less alike than this nobody meant.
const CUTOFF: f64 = 0.5;
/// Characters of a word that are looked at.
const LONGEST: usize = 40;

/// The known word that was probably meant, if one is near.
pub fn nearest<S: AsRef<str>>(word: &str, words: impl IntoIterator<Item = S>) -> Option<String> {
    let word: Vec<char> = word.to_lowercase().chars().take(LONGEST).collect();
    let mut best: Option<(f64, String, String)> = None;
    for each in words {
        let lowered = each.as_ref().to_lowercase();
        let alike = likeness(&lowered.chars().collect::<Vec<_>>(), &word);
        let better = best.as_ref().is_none_or(|(most, found, _)| {
            // Of equally near ones the last by name, of the same in other capitals the last.
            (alike, &lowered) >= (*most, found)
        });
        if alike >= CUTOFF && better {
            best = Some((alike, lowered, each.as_ref().to_owned()));
        }
    }
    best.map(|(_, _, word)| word)
}

fn likeness(one: &[char], other: &[char]) -> f64 {
    let all = one.len() + other.len();
    if all == 0 { 1.0 } else { 2.0 * matched(one, other) as f64 / all as f64 }
}

fn matched(one: &[char], other: &[char]) -> usize {
    let (mut at, mut to, mut length) = (0, 0, 0);
    // Ends of common runs at the last character looked at.
    let mut runs = vec![0; other.len() + 1];
    for (i, left) in one.iter().enumerate() {
        let mut next = vec![0; other.len() + 1];
        for (j, right) in other.iter().enumerate() {
            if left == right {
                let run = runs[j] + 1;
                next[j + 1] = run;
                if run > length {
                    (at, to, length) = (i + 1 - run, j + 1 - run, run);
                }
            }
        }
        runs = next;
    }
    if length == 0 {
        return 0;
    }
    length + matched(&one[..at], &other[..to]) + matched(&one[at + length..], &other[to + length..])
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_found_and_a_stranger_is_not() {
        assert_eq!(nearest("codl", ["codel", "fq_codel", "red"]).as_deref(), Some("codel"));
        assert_eq!(nearest("COUNT", ["count", "kind"]).as_deref(), Some("count"));
        assert_eq!(nearest("xyzzy", ["codel", "red"]), None);
    }
}
