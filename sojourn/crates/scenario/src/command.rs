//! The words of a program's command, and the other forms of `[[program]]` and `[programs]`.
//!
//! Blanks separate the words of a command, and quotes of either kind keep blanks together. There is
//! no shell: no variables, no pipes, no backslashes (`sh -c '...'` has them).

use crate::forms::{Plain, name};
use crate::problem::{Key, below};
use crate::reader::{Form, Reader};
use values::text::{in_quotes, printable};
use values::{Table, Value, Wrong, quoted};

/// The longest command, characters.
const MAX_COMMAND: usize = 10_000;
/// The folder of the host that programs see unless a scenario says otherwise.
pub(crate) const USUAL_SEES: &str = "/usr";

/// The words of a command; an error names the quote that is not closed.
pub(crate) fn split(command: &str) -> Result<Vec<String>, char> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut within: Option<char> = None;
    for char in command.chars() {
        match (char, within) {
            (_, Some(quote)) if char == quote => within = None,
            ('"' | '\'', None) => {
                within = Some(char);
                word.get_or_insert_default();
            }
            (_, None) if char.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    within.map_or(Ok(words), Err)
}

fn command(value: &Value) -> Result<String, Wrong> {
    let example = "write it in quotes, like \"sh rate.sh {link:down}\"";
    let Some(text) = value.text() else {
        return Err(Wrong::new(format!("{} is not a command", quoted(value)), example));
    };
    if text.chars().count() > MAX_COMMAND || !text.chars().all(printable) {
        let message = format!("not a printable line of at most {MAX_COMMAND} characters");
        return Err(Wrong::new(message, "put a longer program into a file, and name it in files"));
    }
    match split(text) {
        Err(quote) => {
            let message = format!("a {quote} in it is not closed");
            Err(Wrong::new(
                message,
                format!("close it; within the other quotes a {quote} is plain"),
            ))
        }
        Ok(words) if words.first().is_none_or(String::is_empty) => {
            Err(Wrong::new("an empty command", example))
        }
        Ok(_) => Ok(text.to_owned()),
    }
}

pub(crate) const COMMAND: Plain<String> =
    Plain { read: command, write: |command| command.clone().into() };

/// Whether each part of a path is a name: no `..`, no `.`, nothing empty.
fn plain_parts(path: &str) -> bool {
    path.len() <= 1000
        && path.chars().all(printable)
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Whether this is the name of a file that a program may have.
pub(crate) fn is_file(path: &str) -> bool {
    plain_parts(path)
}

fn texts_of(
    value: &Value,
    what: &str,
    hint: &str,
    sound: fn(&str) -> bool,
) -> Result<Vec<String>, Wrong> {
    let wrong = |message: String| Wrong::new(message, hint);
    let Some(items) = value.list() else {
        return Err(wrong(format!("{} is not a list of {what}s", quoted(value))));
    };
    let mut found: Vec<String> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(text) = item.text().filter(|text| sound(text)) else {
            let message = format!("{} is not a {what}", quoted(item));
            return Err(Wrong { item: Some(index), ..wrong(message) });
        };
        if found.iter().any(|known| known == text) {
            let message = format!("{} is named twice", in_quotes(text));
            return Err(Wrong { item: Some(index), ..Wrong::new(message, "name each once") });
        }
        found.push(text.to_owned());
    }
    Ok(found)
}

fn texts_written(texts: &[String]) -> Value {
    Value::List(texts.iter().map(|text| text.clone().into()).collect())
}

pub(crate) const FILES: Plain<Vec<String>> = Plain {
    read: |value| {
        let hint = "write paths below the scenario's folder, like files = [\"rate.sh\"]";
        texts_of(value, "file", hint, plain_parts)
    },
    write: |texts| texts_written(texts),
};

pub(crate) const SEES: Plain<Vec<String>> = Plain {
    read: |value| {
        let hint = "write absolute paths below /, like sees = [\"/usr\", \"/opt/tools\"]";
        let folder = |path: &str| path.strip_prefix('/').is_some_and(plain_parts);
        let found = texts_of(value, "folder of the host", hint, folder)?;
        for (index, path) in found.iter().enumerate() {
            let top = path.split('/').nth(1).unwrap_or_default();
            let whole = path.len() == top.len() + 1;
            if CLOSED.contains(&top) || (whole && MADE.contains(&top)) {
                let message = format!("{} has a place of its own in the guest", in_quotes(path));
                let hint = if whole && MADE.contains(&top) {
                    "leave it out, or name a folder below it"
                } else {
                    "leave it out"
                };
                return Err(Wrong { item: Some(index), ..Wrong::new(message, hint) });
            }
            let inside = |other: &&String| {
                *other != path
                    && path.strip_prefix(&***other).is_some_and(|rest| rest.starts_with('/'))
            };
            if let Some(outer) = found.iter().find(inside) {
                let message = format!("{} is below {}", in_quotes(path), in_quotes(outer));
                return Err(Wrong { item: Some(index), ..Wrong::new(message, "name one of them") });
            }
        }
        Ok(found)
    },
    write: |texts| texts_written(texts),
};

/// Folders of the guest in which no folder of the host can be seen.
const CLOSED: [&str; 10] =
    ["proc", "sys", "dev", "scenario", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];
/// Folders that the guest fills itself; one of the host may be seen below them.
const MADE: [&str; 3] = ["etc", "run", "tmp"];

/// Environment variables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Environment(pub Vec<(String, String)>);

/// The form of `env`.
pub(crate) struct Variables;

impl Form<Environment> for Variables {
    fn read(&self, value: &Value, key: &Key, reader: &mut Reader<'_>) -> Option<Environment> {
        let hint = "write text for each variable, like env = { INTERVAL = \"100\" }";
        let Some(table) = value.table() else {
            let message = format!("{} is not a table of variables", quoted(value));
            reader.refuse(Wrong::new(message, hint), key);
            return None;
        };
        let mut found = Vec::new();
        let mut sound = true;
        for (name, value) in table.iter() {
            let named = !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                && !name.starts_with(|c: char| c.is_ascii_digit());
            match value.text().filter(|text| named && !text.contains('\0')) {
                Some(text) => found.push((name.to_owned(), text.to_owned())),
                None => {
                    let message = format!("{name} = {} is not a variable", quoted(value));
                    reader.refuse(Wrong::new(message, hint), &below(key, name));
                    sound = false;
                }
            }
        }
        found.sort();
        sound.then_some(Environment(found))
    }

    fn write(&self, env: &Environment, _all: bool) -> Value {
        let entries = env.0.iter().map(|(name, text)| (name.clone(), text.clone().into()));
        Value::Table(entries.collect::<Table>())
    }
}

/// The `{kind:name}` of a word. A kind is small letters only; other braces are the program's own.
pub(crate) fn places(word: &str) -> Vec<(&str, &str)> {
    let inner = |part| -> Option<(&str, &str)> {
        let (inside, _) = str::split_once(part, '}')?;
        let (kind, name) = inside.split_once(':')?;
        let sound = !kind.is_empty()
            && kind.bytes().all(|byte| byte.is_ascii_lowercase())
            && self::name(&name.into()).is_ok();
        sound.then_some((kind, name))
    };
    word.split('{').skip(1).filter_map(inner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_blanks_and_nothing_else_is_special() {
        let words = split(r#"sh -c 'echo "a b"  $x' "it's" \n "" {link:down}"#).expect("closed");
        assert_eq!(words, ["sh", "-c", "echo \"a b\"  $x", "it's", "\\n", "", "{link:down}"]);
        assert_eq!(split("a'b c'd"), Ok(vec!["ab cd".to_owned()]));
        assert_eq!(split("echo 'a"), Err('\''));
    }

    #[test]
    fn a_placeholder_is_lower_case_letters_and_a_name() {
        assert_eq!(
            places("--dev={link:down}:{address:home}"),
            [("link", "down"), ("address", "home")]
        );
        assert_eq!(places("{print $1} {A:b} {} {a} {x:} {link:down"), []);
    }
}
