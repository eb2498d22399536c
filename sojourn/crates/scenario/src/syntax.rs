//! Hints for a text that is not TOML.
//!
//! The parser reports what it expected; the line itself shows what the writer meant: a word without
//! quotes, YAML's colon, JSON's brace.

use crate::model::SEVERAL;
use values::quantity::with_point;

/// The line (from 1) that is at fault when the parser reports `line`. After a single `[flow]` the
/// parser reports the correct `[[flow]]` below it; the `[flow]` is at fault.
pub(crate) fn blamed(message: &str, text: &str, line: usize) -> usize {
    let second = header(text.split('\n').nth(line.max(1) - 1).unwrap_or_default());
    let name = SEVERAL.into_iter().find(|name| second == format!("[[{name}]]"));
    let single =
        |name| text.split('\n').take(line).position(|first| header(first) == format!("[{name}]"));
    let found = name.filter(|_| message.contains("duplicate")).and_then(single);
    found.map_or(line, |index| index + 1)
}

/// A line without its comment and the blanks around it.
fn header(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim()
}

/// The message and the hint, from the parser's message and the line (from 1) that it is about.
pub(crate) fn explained(message: &str, text: &str, line: usize) -> (String, String) {
    let (wrong, hint) = explain(message, text, line);
    let hint = if hint.is_empty() { usual(message) } else { hint };
    (wrong, hint)
}

/// The hint if nothing shows what the writer meant.
fn usual(message: &str) -> String {
    let closing = message
        .find("unclosed ")
        .and_then(|at| {
            message[at..].rfind("expected `").map(|behind| at + behind + "expected `".len())
        })
        .and_then(|at| {
            message[at..].chars().next().filter(|c| message[at + c.len_utf8()..].starts_with('`'))
        });
    match closing {
        Some(close) => {
            format!("close it on the same line (a list may end on a later line): write {close}")
        }
        None => r#"write key = "text", key = 5, [table] or [[flow]]"#.to_owned(),
    }
}

fn explain(message: &str, text: &str, line: usize) -> (String, String) {
    let same = |hint: &str| (message.to_owned(), hint.to_owned());
    let lines = text.split('\n').count();
    let here = text.split('\n').nth(line.min(lines) - 1).unwrap_or_default().trim_end_matches('\r');
    if message.contains("duplicate") {
        if let Some(name) = SEVERAL.into_iter().find(|name| header(here) == format!("[{name}]")) {
            return (
                format!("[{name}] is a single table, and the file has another"),
                format!("write each as [[{name}]], in double brackets"),
            );
        }
        return same("a key may appear once in a table; write a [[flow]] for each flow");
    }
    let start = text.trim_start();
    if start.starts_with('{') {
        return same(r#"this is TOML, not JSON: write title = "Home", and tables as [bottleneck]"#);
    }
    if start.starts_with("---") || start.starts_with("- ") {
        return same(
            r#"this is TOML, not YAML: write title = "Home", tables as [bottleneck], entries of a list as [[flow]]"#,
        );
    }
    if let Some((key, value)) = yaml(here) {
        return same(&format!("this is TOML, not YAML: write {}", as_toml(key, value.trim())));
    }
    let plain = here.split(" #").next().unwrap_or_default().trim_end();
    match assigned(plain) {
        Some((key, value)) => explain_value(key, value.trim(), message),
        None => same(""),
    }
}

fn key_of(text: &str) -> Option<(&str, &str)> {
    let end = text
        .find(|c: char| !(c.is_alphanumeric() && c.is_ascii() || "_.\"'-".contains(c)))
        .unwrap_or(text.len());
    (end > 0).then(|| (&text[..end], text[end..].trim_start()))
}

/// `key: value`, `- key:`.
fn yaml(line: &str) -> Option<(&str, &str)> {
    let start = line.trim_start();
    let entry = start.strip_prefix('-').filter(|rest| rest.starts_with(char::is_whitespace));
    let found = |text| {
        let (key, rest) = key_of(text)?;
        let value = rest.strip_prefix(':')?;
        (value.is_empty() || value.starts_with(char::is_whitespace)).then_some((key, value))
    };
    entry.and_then(|rest| found(rest.trim_start())).or_else(|| found(start))
}

/// `key = value`.
fn assigned(line: &str) -> Option<(&str, &str)> {
    let (key, rest) = key_of(line.trim_start())?;
    let value = rest.strip_prefix('=')?.trim_start();
    let sound = !value.is_empty() && !value.starts_with('#') && !value.contains('#');
    sound.then_some((key, value))
}

fn as_toml(key: &str, value: &str) -> String {
    if value.is_empty() { format!("[{key}]") } else { format!("{key} = {}", plain(value)) }
}

/// The value as TOML takes it: numbers, lists and quoted text unchanged, other text in quotes.
fn plain(value: &str) -> String {
    if value.starts_with(['"', '\'', '[']) || is_number(value) {
        value.to_owned()
    } else {
        in_quotes(value)
    }
}

fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (number, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, decimals) = match number.split_once('.') {
        Some((whole, decimals)) => (whole, Some(decimals)),
        None => (number, None),
    };
    whole.starts_with(|c: char| c.is_ascii_digit())
        && whole.bytes().all(|c| c.is_ascii_digit() || c == b'_')
        && decimals.is_none_or(digits)
        && exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)))
}

/// `value` is the text after `key =`, without a comment.
fn explain_value(key: &str, value: &str, message: &str) -> (String, String) {
    let same = |hint: String| (message.to_owned(), hint);
    let lower = value.to_ascii_lowercase();
    // TOML's words are lower case; a word in lower case would have been parsed.
    for (truth, words) in [("true", ["true", "yes", "on"]), ("false", ["false", "no", "off"])] {
        if words.contains(&&*lower) {
            return (
                format!("{value} is not a TOML value"),
                format!("write {key} = {truth}, in lower case"),
            );
        }
    }
    if ["null", "none", "nil", "~"].contains(&&*lower) {
        return (
            format!("{value} is not a TOML value"),
            format!("TOML has no null: leave {key} out"),
        );
    }
    if value.contains(['“', '”']) {
        return same(format!("use plain quotes: write {key} = {}", in_quotes(value)));
    }
    if value.starts_with('=') {
        let rest = value.trim_start_matches(['=', ' ']);
        return same(format!(
            "write one =: {key} = {}",
            plain(if rest.is_empty() { "..." } else { rest })
        ));
    }
    if let Some(quote @ ('"' | '\'')) = value.chars().next()
        && message.contains("string")
    {
        return same(format!(
            "the opening quote is not closed: write {key} = {}",
            in_quotes(value.trim_matches(quote))
        ));
    }
    let unquoted = ["quoted", "boolean", "float"].iter().any(|sign| message.contains(sign));
    if value.starts_with('[') {
        let hint = if unquoted {
            r#"each value of a list goes in quotes: ["codel", "fq_codel"]"#
        } else {
            ""
        };
        return same(hint.to_owned());
    }
    if let Some(meant) = with_point(value) {
        return same(format!("decimals take a point: {key} = {}", plain(&meant)));
    }
    if value.starts_with(['"', '\'', '{']) || is_number(value) {
        return same(String::new());
    }
    let hint = format!("text and quantities go in quotes: {key} = {}", in_quotes(value));
    (if unquoted { "text without quotes" } else { message }.to_owned(), hint)
}

fn in_quotes(value: &str) -> String {
    let bare: String = value.chars().filter(|c| !['"', '“', '”', '\\'].contains(c)).collect();
    format!("\"{bare}\"")
}
