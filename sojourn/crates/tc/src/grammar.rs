//! The parts of a discipline's words: values, words with a value, and flags without one.

use crate::error::{Note, TcError};
use crate::numbers::{
    note_bytes_a_second, read_count, read_integer, read_link_layer, read_positive_time, read_rate,
    read_real, read_size, read_time, within, write_rate, write_time,
};
use link::Cells;
use serde::de::value::{CowStrDeserializer, UnitDeserializer};
use serde::de::{IntoDeserializer, Visitor};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::Range;
use values::text::{number, quoted};

/// A parameter's value.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// Not set: Linux, or the link, decides.
    Unset,
    /// On or off.
    Flag(bool),
    /// A whole number: packets, bytes, ns, bit/s.
    Count(u64),
    /// A whole number that may be negative: bytes.
    Integer(i64),
    /// A real number.
    Real(f64),
    /// A choice among words, or several numbers separated by blanks.
    Text(Cow<'static, str>),
}

impl Value {
    /// A choice, for tables.
    pub(crate) const fn word(word: &'static str) -> Value {
        Value::Text(Cow::Borrowed(word))
    }

    /// Whether the value is set.
    pub fn is_set(&self) -> bool {
        *self != Value::Unset
    }

    /// The whole number, if it is one.
    pub fn count(&self) -> Option<u64> {
        if let Value::Count(count) = self { Some(*count) } else { None }
    }

    /// The number, whole or real, if it is one.
    pub fn real(&self) -> Option<f64> {
        match self {
            Value::Count(count) => Some(*count as f64),
            Value::Real(real) => Some(*real),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    /// Whether it is a flag that is on.
    pub fn is_on(&self) -> bool {
        *self == Value::Flag(true)
    }

    /// Whether the value is set and not zero. tc requires this for a parameter to count as given.
    fn is_given(&self) -> bool {
        !matches!(self, Value::Unset | Value::Count(0))
    }
}

/// A discipline's parameters with the simulator's names, in the order of its structs.
#[derive(Clone, Debug, PartialEq)]
pub struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    /// Each parameter with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    /// Whether there is a parameter of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(each, _)| *each == name)
    }

    /// A parameter's value; unset if the discipline does not have the parameter.
    pub fn get(&self, name: &str) -> &Value {
        self.0.iter().find(|(each, _)| *each == name).map_or(&Value::Unset, |(_, value)| value)
    }

    /// The whole number of a parameter, if set.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.get(name).count()
    }

    /// The whole numbers of a parameter: of a list, or a single one.
    pub fn numbers(&self, name: &str) -> Vec<u64> {
        let each = |text: &str| text.parse().expect("each word of a list is a number");
        match self.get(name) {
            Value::Count(count) => vec![*count],
            value => value.text().unwrap_or_default().split_whitespace().map(each).collect(),
        }
    }

    /// Sets a parameter of the grammar.
    pub fn set(&mut self, name: &str, value: Value) {
        let place = self.0.iter_mut().find(|(each, _)| *each == name);
        place.expect("a grammar names its own parameters").1 = value;
    }
}

/// How a value is read, checked and written.
#[derive(Clone, Copy, Debug)]
pub enum Read {
    /// Bytes, or packets that tc reads like bytes.
    Size,
    /// Bytes within these bounds.
    SizeWithin(u64, u64),
    /// A whole number within these bounds.
    Count(u64, u64),
    /// A whole number within these bounds; the first may be negative.
    Integer(i64, i64),
    /// A real number within these bounds.
    Real(f64, f64),
    /// A real number above the first bound, up to and including the second.
    RealAbove(f64, f64),
    /// A time, ns.
    Time,
    /// A time above zero, ns.
    PositiveTime,
    /// A time in ns, of whole microseconds as in tc.
    Microseconds,
    /// As `Microseconds`, or packets: `2p`.
    TimeOrPackets,
    /// As `Microseconds`, above zero.
    PositiveMicroseconds,
    /// A rate, bit/s.
    Rate,
    /// The value of some bits of a byte and their mask, `0x1/0x3`.
    Selector,
    /// How a line cuts packets: ethernet, atm, or adsl, which equals atm.
    LinkLayer,
    /// Whole numbers up to this one, until the next word.
    Counts(u64),
    /// Sizes in bytes, until the next word.
    Sizes,
    /// Real numbers above the first bound, up to and including the second, until the next word.
    Reals(f64, f64),
}

/// A word with a value: `limit PACKETS`.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// The word in tc.
    pub word: &'static str,
    /// The parameter that it sets.
    pub field: &'static str,
    /// The placeholder in usages: PACKETS, TIME, RATE, ...
    pub shows: &'static str,
    /// How the value is read.
    pub read: Read,
}

/// A word that sets the parameter of the same name.
pub(crate) const fn word(word: &'static str, shows: &'static str, read: Read) -> Word {
    Word { word, field: word, shows, read }
}

/// A word with a TIME. Its parameter's name ends with `_ns`.
pub(crate) const fn time(word: &'static str, field: &'static str, read: Read) -> Word {
    Word { word, field, shows: "TIME", read }
}

impl Word {
    fn read(&self, text: &str) -> Result<Value, TcError> {
        // Packets may be written as tc prints them, `100p`, though tc does not read this.
        let text = match text.strip_suffix(['p', 'P']) {
            Some(digits) if self.shows == "PACKETS" && is_digits(digits) => digits,
            _ => text,
        };
        let text = match text.strip_suffix('%') {
            Some(number) if self.shows == "PERCENT" => number,
            _ => text,
        };
        let read = match self.read {
            Read::Size => Value::Count(read_size(text)?),
            Read::SizeWithin(least, most) => {
                Value::Count(within(text, read_size(text)?, least, most)?)
            }
            Read::Count(least, most) => Value::Count(read_count(text, least, most)?),
            Read::Integer(least, most) => Value::Integer(read_integer(text, least, most)?),
            Read::Real(least, most) => Value::Real(read_real(text, least, most, false)?),
            Read::RealAbove(least, most) => Value::Real(read_real(text, least, most, true)?),
            Read::Time => Value::Count(read_time(text)?),
            Read::PositiveTime => Value::Count(read_positive_time(text)?),
            Read::Microseconds => Value::Count(microseconds(text, read_time(text)?)?),
            Read::TimeOrPackets => match packets(text) {
                Some(digits) => {
                    Value::Text(format!("{}p", read_count(digits, 0, crate::numbers::U32)?).into())
                }
                None => Value::Count(microseconds(text, read_time(text)?)?),
            },
            Read::PositiveMicroseconds => {
                Value::Count(microseconds(text, read_positive_time(text)?)?)
            }
            Read::Rate => Value::Count(read_rate(text)?),
            Read::Selector => {
                let Some((value, mask)) = text.split_once('/') else {
                    let problem = format!("{} is not a value and a mask", quoted(text));
                    return Err(TcError::new(problem, "write them like 0x1/0x3"));
                };
                let byte = |each| read_count(each, 0, 255);
                Value::Text(format!("{:#x}/{:#x}", byte(value)?, byte(mask)?).into())
            }
            Read::LinkLayer => match read_link_layer(text)? {
                Cells::Atm => Value::word("atm"),
                _ => Value::word("ethernet"),
            },
            Read::Counts(most) => {
                each(text, |number| Ok(read_count(number, 0, most)?.to_string()))?
            }
            Read::Sizes => each(text, |size| Ok(read_size(size)?.to_string()))?,
            Read::Reals(above, most) => {
                each(text, |one| Ok(number(read_real(one, above, most, true)?)))?
            }
        };
        Ok(read)
    }

    pub(crate) fn takes_all_that_follow(&self) -> bool {
        matches!(self.read, Read::Counts(_) | Read::Sizes | Read::Reals(..))
    }

    pub(crate) fn is_time(&self) -> bool {
        matches!(
            self.read,
            Read::Time
                | Read::PositiveTime
                | Read::Microseconds
                | Read::PositiveMicroseconds
                | Read::TimeOrPackets
        )
    }

    /// The value in tc's syntax.
    pub fn write(&self, value: &Value) -> String {
        match value {
            Value::Count(ns) if self.is_time() => write_time(*ns),
            Value::Count(bps) if matches!(self.read, Read::Rate) => write_rate(*bps),
            Value::Count(count) => count.to_string(),
            Value::Integer(integer) => integer.to_string(),
            Value::Real(real) => number(*real),
            Value::Text(text) => text.to_string(),
            Value::Flag(_) | Value::Unset => unreachable!("a word's value is a number or numbers"),
        }
    }

    /// A note on a suspicious value: a RATE in bytes a second, which probably means bits, or a bare
    /// number as a TIME below a millisecond, which probably means milliseconds.
    fn suspicion(&self, text: &str, at: &Range<usize>) -> Option<Note> {
        if let Read::Rate = self.read {
            return note_bytes_a_second(self.word, text, at);
        }
        let bare = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        if !self.is_time() || !bare || !(1..1_000_000).contains(&read_time(text).ok()?) {
            return None;
        }
        let pair = format!("{} {text}", self.word);
        Some(Note {
            message: format!("{pair} is {text} us: to tc a bare number is microseconds"),
            hint: format!("write {pair}ms if milliseconds are meant, else {pair}us"),
            at: at.clone(),
        })
    }
}

/// Reads a list, number by number.
fn each(text: &str, read: impl Fn(&str) -> Result<String, TcError>) -> Result<Value, TcError> {
    let numbers: Vec<_> = text.split_whitespace().map(read).collect::<Result<_, TcError>>()?;
    Ok(Value::Text(numbers.join(" ").into()))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// The number in `2p`, `2pkt`, `2packet` or `2packets`.
fn packets(text: &str) -> Option<&str> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    (is_digits(digits) && ["p", "pkt", "packet", "packets"].contains(&unit)).then_some(digits)
}

fn microseconds(text: &str, ns: u64) -> Result<u64, TcError> {
    if ns.is_multiple_of(1_000) {
        return Ok(ns);
    }
    let text = quoted(text);
    Err(TcError::new(
        format!("{text} is not a whole number of microseconds, tc's unit"),
        "write it like 15ms",
    ))
}

/// A word without a value, like `ecn`, that sets a parameter.
#[derive(Clone, Debug)]
pub struct Flag {
    /// The word in tc.
    pub word: &'static str,
    /// The parameter that it sets.
    pub field: &'static str,
    /// The value that the parameter is set to.
    pub sets: Value,
}

/// A flag that switches the parameter `field` on.
pub(crate) const fn on(word: &'static str, field: &'static str) -> Flag {
    Flag { word, field, sets: Value::Flag(true) }
}

/// A flag that switches the parameter `field` off.
pub(crate) const fn off(word: &'static str, field: &'static str) -> Flag {
    Flag { word, field, sets: Value::Flag(false) }
}

/// One of several words that exclude each other.
pub(crate) const fn one(field: &'static str, word: &'static str) -> Flag {
    Flag { word, field, sets: Value::word(word) }
}

/// Words that act on the result of the words before them: `pppoe-ptm ether-vlan`. Their parameter
/// has all of them, in the order given.
#[derive(Clone, Copy)]
pub struct InOrder {
    /// The parameter.
    pub field: &'static str,
    /// The words that may be repeated.
    pub repeatable: &'static [&'static str],
}

/// A word that tc accepts and that has no effect here.
pub struct Ignored {
    /// The word in tc.
    pub word: &'static str,
    /// The note and its hint. `None`: the word describes what is the case anyway.
    pub note: Option<(&'static str, &'static str)>,
}

/// Completes the parameters from others and checks their combination. The second argument lists the
/// given parameters.
pub type Complete = fn(&mut Fields, &[&'static str]) -> Result<(), TcError>;

/// The words of a discipline, or of one of its variants.
pub struct Grammar {
    /// The discipline's name.
    pub kind: &'static str,
    /// The algorithm of this name; `None` if there is only one.
    pub variant: Option<&'static str>,
    /// Other names of the variant.
    pub aliases: &'static [&'static str],
    /// Words with a value, in the order in which they are written.
    pub words: &'static [Word],
    /// Words without a value, in the order in which they are written, after the others.
    pub flags: &'static [Flag],
    /// Every parameter with its default. Empty: all parameters are unset by default.
    pub defaults: &'static [(&'static str, Value)],
    /// Parameters that must be given, as in tc.
    pub required: &'static [&'static str],
    /// Parameters that the canonical text always has.
    pub always: &'static [&'static str],
    /// Checks and completes combinations of parameters.
    pub complete: Complete,
    /// tc's synonyms: (name, word).
    pub synonyms: &'static [(&'static str, &'static str)],
    /// Words that tc accepts abbreviated, in the order in which it tries them.
    pub shortened: &'static [&'static str],
    /// Words whose order matters.
    pub in_order: Option<InOrder>,
    /// Words that have no effect here.
    pub ignored: &'static [Ignored],
    /// What this grammar refuses, each with the hint what to use instead: a word, or a parameter
    /// with all of its words.
    pub elsewhere: &'static [(&'static str, &'static str)],
}

/// Accepts all combinations of parameters.
fn nothing(_: &mut Fields, _: &[&'static str]) -> Result<(), TcError> {
    Ok(())
}

impl Grammar {
    /// The defaults of a grammar: no words.
    pub(crate) const NONE: Grammar = Grammar {
        kind: "",
        variant: None,
        aliases: &[],
        words: &[],
        flags: &[],
        defaults: &[],
        required: &[],
        always: &[],
        complete: nothing,
        synonyms: &[],
        shortened: &[],
        in_order: None,
        ignored: &[],
        elsewhere: &[],
    };

    /// Each word with the parameter that it sets.
    pub fn sets(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let flags = self.flags.iter().map(|flag| (flag.word, flag.field));
        self.words.iter().map(|word| (word.word, word.field)).chain(flags)
    }

    /// Whether the grammar has this word.
    pub fn has(&self, word: &str) -> bool {
        self.sets().any(|(each, _)| each == word)
    }

    /// Every parameter with its default.
    pub fn fields(&self) -> Fields {
        if !self.defaults.is_empty() {
            return Fields(self.defaults.to_vec());
        }
        let mut fields = Fields(Vec::new());
        for (_, field) in self.sets() {
            if !fields.has(field) {
                fields.0.push((field, Value::Unset));
            }
        }
        fields
    }

    /// `codel [limit PACKETS] [target TIME] ... [ecn] [noecn]`.
    pub fn usage(&self) -> String {
        let mut parts = vec![self.kind.to_owned()];
        parts.extend(
            self.variant.filter(|name| *name != "linux").map(|name| format!("variant {name}")),
        );
        parts.extend(self.words.iter().map(|word| {
            let usage = format!("{} {}", word.word, word.shows);
            if self.required.contains(&word.field) { usage } else { format!("[{usage}]") }
        }));
        parts.extend(self.flags.iter().map(|flag| format!("[{}]", flag.word)));
        parts.join(" ")
    }

    /// Reads the words behind the discipline's name. Returns all parameters.
    pub(crate) fn read(
        &self,
        tokens: &[(&str, Range<usize>)],
        least: &str,
        unknown: impl Fn(&str, &Range<usize>, &[(&str, Range<usize>)]) -> TcError,
    ) -> Result<Fields, TcError> {
        let kind = self.kind;
        let (mut fields, given) = self.read_given(tokens, unknown)?;
        for name in self.required {
            if !given.contains(name) || !fields.get(name).is_given() {
                return Err(TcError::new(
                    format!("{kind}: {name} is missing"),
                    format!("tc requires it; write it like {least}"),
                ));
            }
        }
        (self.complete)(&mut fields, &given)?;
        Ok(fields)
    }

    /// Reads the words behind the discipline's name. Returns all parameters, with the default where
    /// no word sets one, and the names of those that the words set.
    pub(crate) fn read_given(
        &self,
        tokens: &[(&str, Range<usize>)],
        unknown: impl Fn(&str, &Range<usize>, &[(&str, Range<usize>)]) -> TcError,
    ) -> Result<(Fields, Vec<&'static str>), TcError> {
        let kind = self.kind;
        let mut fields = self.fields();
        let mut given: Vec<&'static str> = Vec::new();
        let mut position = 0;
        while let Some((token, at)) = tokens.get(position) {
            let begin = position;
            position += 1;
            let name = &self.spelt(token);
            if self.ignored.iter().any(|ignored| ignored.word == *name) {
                continue;
            }
            if let Some(instead) = self.replacement(name) {
                let problem = format!("{kind}: {name} is not allowed here");
                return Err(TcError::new(problem, instead).at(at.clone()));
            }
            let (field, value, written) = if *name == "variant" && self.variant.is_some() {
                position += 1;
                ("variant", None, "variant".to_owned())
            } else if let Some(flag) = self.flags.iter().find(|flag| flag.word == *name) {
                (flag.field, Some(flag.sets.clone()), flag.word.to_owned())
            } else if let Some(word) = self.words.iter().find(|word| word.word == *name) {
                let Some((_, value_at)) = tokens.get(position) else {
                    return Err(TcError::new(
                        format!("{kind}: {name} needs a value"),
                        format!("write {name} {}", word.shows),
                    )
                    .at(at.clone()));
                };
                let following = &tokens[position..];
                let extent = self.extent(word, following);
                position += extent;
                let value_text = values::text::joined(&following[..extent]);
                let context = format!("{kind} {name}");
                let value = word.read(&value_text).map_err(|error| {
                    self.hinted(error, word, &value_text).of(&context).at(value_at.clone())
                })?;
                let written = format!("{} {}", word.word, word.write(&value));
                (word.field, Some(value), written)
            } else {
                return Err(unknown(name, at, &tokens[..begin]));
            };
            let in_order = self.in_order.filter(|words| words.field == field);
            let again = match in_order {
                Some(words) => {
                    let before = fields.get(field).text().unwrap_or_default();
                    before.split_whitespace().any(|word| word == *name)
                        && !words.repeatable.contains(name)
                }
                None => given.contains(&field),
            };
            if again {
                let problem = format!("{kind}: {name} sets a parameter again");
                return Err(TcError::new(problem, "write it once").at(at.clone()));
            }
            given.push(field);
            match (in_order, value) {
                (Some(_), _) => {
                    let before = fields.get(field).text().unwrap_or_default();
                    fields.set(
                        field,
                        Value::Text(format!("{before} {written}").trim().to_owned().into()),
                    );
                }
                (None, Some(value)) => fields.set(field, value),
                (None, None) => {}
            }
        }
        Ok((fields, given))
    }

    /// The full form of a word: the word itself, the word it is a synonym of, or the word it
    /// abbreviates.
    fn spelt<'a>(&self, token: &'a str) -> &'a str {
        let other = || self.synonyms.iter().find(|(name, _)| *name == token).map(|(_, word)| *word);
        let longer = || self.shortened.iter().copied().find(|word| word.starts_with(token));
        if self.has(token) { token } else { other().or_else(longer).unwrap_or(token) }
    }

    /// Adjusts the hint of an error about a value that is itself a word: `bandwidth unlimited`.
    fn hinted(&self, error: TcError, word: &Word, text: &str) -> TcError {
        if !self.flags.iter().any(|flag| flag.word == text) {
            return error;
        }
        let Word { word, shows, .. } = word;
        let hint =
            format!("{text} is a keyword, not a value: write {text} alone, or {word} {shows}");
        TcError { hint, ..error }
    }

    /// The hint for a word that this grammar refuses.
    pub(crate) fn replacement(&self, word: &str) -> Option<&'static str> {
        let field = self.sets().find(|(each, _)| *each == word).map(|(_, field)| field);
        let refused = |(each, _): &&(&str, &str)| *each == word || Some(*each) == field;
        self.elsewhere.iter().find(refused).map(|(_, instead)| *instead)
    }

    /// The number of following words that are the value of this word.
    fn extent(&self, word: &Word, following: &[(&str, Range<usize>)]) -> usize {
        if !word.takes_all_that_follow() {
            return 1;
        }
        let others = following.iter().skip(1).position(|(text, _)| self.has(text));
        others.map_or(following.len(), |index| index + 1)
    }

    /// Notes on words that are valid but probably mean something else.
    pub fn notes(&self, tokens: &[(&str, Range<usize>)]) -> Vec<Note> {
        let pairs = tokens.windows(2).filter_map(|pair| {
            let name = self.spelt(pair[0].0);
            let word = self.words.iter().find(|word| word.word == name)?;
            word.suspicion(pair[1].0, &pair[1].1)
        });
        let ignored = tokens.iter().filter_map(|(token, at)| {
            let (message, hint) =
                self.ignored.iter().find(|ignored| ignored.word == *token)?.note?;
            Some(Note { message: message.into(), hint: hint.into(), at: at.clone() })
        });
        pairs.chain(ignored).collect()
    }

    /// Writes the chosen parameters in words.
    pub(crate) fn write(
        &self,
        fields: &Fields,
        chosen: impl Fn(&str, &Value) -> bool,
    ) -> Vec<String> {
        let in_order = self.in_order.map(|words| words.field);
        let alone = |field: &str| Some(field) != in_order;
        let mut parts = Vec::new();
        for word in self.words.iter().filter(|word| alone(word.field)) {
            let value = fields.get(word.field);
            if value.is_set() && chosen(word.field, value) {
                parts.push(format!("{} {}", word.word, word.write(value)));
            }
        }
        let mut done = Vec::new();
        for flag in self.flags.iter().filter(|flag| alone(flag.field)) {
            let value = fields.get(flag.field);
            if !done.contains(&flag.field) && *value == flag.sets && chosen(flag.field, value) {
                parts.push(flag.word.to_owned());
                done.push(flag.field);
            }
        }
        if let Some(field) = in_order
            && let Some(words) = fields.get(field).text()
        {
            parts.push(words.to_owned());
        }
        parts
    }

    /// The default of a parameter.
    pub(crate) fn default_of(&self, field: &str) -> &Value {
        self.defaults
            .iter()
            .find(|(name, _)| *name == field)
            .map_or(&Value::Unset, |(_, value)| value)
    }
}

impl<'de> IntoDeserializer<'de, serde::de::value::Error> for Value {
    type Deserializer = ValueDeserializer;

    fn into_deserializer(self) -> ValueDeserializer {
        ValueDeserializer(self)
    }
}

/// A value as input for the simulator's structs.
pub struct ValueDeserializer(Value);

impl<'de> serde::Deserializer<'de> for ValueDeserializer {
    type Error = serde::de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.0 {
            Value::Unset => UnitDeserializer::new().deserialize_any(visitor),
            Value::Flag(flag) => visitor.visit_bool(flag),
            Value::Count(count) => visitor.visit_u64(count),
            Value::Integer(integer) => visitor.visit_i64(integer),
            Value::Real(real) => visitor.visit_f64(real),
            Value::Text(text) => CowStrDeserializer::new(text).deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self.0 {
            Value::Unset => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        match self.0 {
            Value::Text(word) => {
                CowStrDeserializer::new(word).deserialize_enum(name, variants, visitor)
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
