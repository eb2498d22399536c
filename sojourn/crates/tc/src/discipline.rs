//! A queue discipline with its parameters, and the properties that follow from them.
//!
//! `lookup` creates a discipline from words or parameters; it finds the name among all records.

use crate::error::{Note, TcError};
use crate::grammar::{Fields, Grammar, Value};
use crate::linux::{HEADER, Options};
use crate::record::{Counts, Record, USUAL_BANDS};
use serde::de::Error;
use serde::de::value::MapDeserializer;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use values::text::{did_you_mean, listed, nearest, quoted, up_to, words};

/// The size of a full packet, bytes, to convert a limit in bytes to packets.
const FULL_PACKET: u64 = 1500;
/// The name of the parameter for the discipline on each queue.
pub const CHILD: &str = "child";

/// A queue discipline with every parameter filled in.
///
/// A parameter that was not set stays unset if only Linux has the discipline. So do the sizes of a
/// `red` without any, until its link's rate is known (`at`).
#[derive(Clone)]
pub struct Discipline {
    record: &'static Record,
    grammar: &'static Grammar,
    fields: Fields,
    /// The discipline on each queue of a card, if there is one.
    child: Option<Box<Discipline>>,
    /// The notes on the words that it was read from.
    pub notes: Vec<Note>,
}

impl Discipline {
    pub(crate) fn new(
        record: &'static Record,
        grammar: &'static Grammar,
        fields: Fields,
        notes: Vec<Note>,
    ) -> Discipline {
        Discipline { record, grammar, fields, child: None, notes }
    }

    /// The same discipline with `child` on each queue of a card.
    pub(crate) fn with_child(self, child: Discipline) -> Discipline {
        Discipline { child: Some(Box::new(child)), ..self }
    }

    /// The discipline on each queue of a card, if there is one.
    pub fn child(&self) -> Option<&Discipline> {
        self.child.as_deref()
    }

    /// The discipline that queues packets: the child, or this one.
    fn queueing(&self) -> &Discipline {
        self.child().unwrap_or(self)
    }

    /// Reads words by a grammar of this discipline other than a scenario's.
    pub(crate) fn parse_by(
        record: &'static Record,
        grammar: &'static Grammar,
        text: &str,
    ) -> Result<Discipline, TcError> {
        let tokens = tokens(text);
        let rest = tokens.get(1..).unwrap_or_default();
        let fields = read(record, grammar, rest)?;
        Ok(Discipline::new(record, grammar, fields, grammar.notes(rest)))
    }

    /// The properties that do not depend on its parameters.
    pub fn record(&self) -> &'static Record {
        self.record
    }

    /// The discipline's name.
    pub fn kind(&self) -> &'static str {
        self.record.kind
    }

    /// The algorithm of this name; `None` if there is only one.
    pub fn variant(&self) -> Option<&'static str> {
        self.grammar.variant
    }

    pub(crate) fn grammar(&self) -> &'static Grammar {
        self.grammar
    }

    /// The parameters, in the order of the simulator's structs.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The same discipline with another value of one parameter.
    pub fn with(&self, field: &str, value: Value) -> Discipline {
        let mut changed = self.clone();
        changed.fields.set(field, value);
        changed
    }

    /// The discipline for a link where tc-stab(8) makes Linux count a header of `header` bytes
    /// instead of the device's Ethernet header.
    ///
    /// # Errors
    ///
    /// If tc has no words for this.
    pub fn counting(&self, header: u32) -> Result<Discipline, TcError> {
        let Some(linux) = self.record.linux.as_ref().filter(|_| header != HEADER) else {
            return Ok(self.clone());
        };
        Ok(Discipline { fields: (linux.counting)(&self.fields, header)?, ..self.clone() })
    }

    /// The canonical words: the parameters that differ from the defaults, in a fixed order. They
    /// read back as the same parameters.
    pub fn text(&self) -> String {
        if let Some(written) = self.record.written {
            return written(&self.fields);
        }
        if let Some(child) = self.child() {
            return format!("{} {}", self.kind(), child.text());
        }
        let mut parts = vec![self.kind().to_owned()];
        if let Some(variant) = self.variant()
            && self.record.grammars[0].variant != Some(variant)
        {
            parts.push(format!("variant {variant}"));
        }
        parts.extend(self.grammar.write(&self.fields, |field, value| {
            self.grammar.always.contains(&field) || value != self.grammar.default_of(field)
        }));
        parts.join(" ")
    }

    /// The words of every parameter that has a value, defaults included. What follows from them
    /// comes last: red's averaging constant and its cells of idle time, cake's memory on a link
    /// whose largest packet has `mtu` bytes.
    pub fn whole_text(&self, mtu: u32) -> String {
        if self.record.written.is_some() || self.is_bare() {
            return self.text();
        }
        if let Some(child) = self.child() {
            return format!("{} {}", self.kind(), child.whole_text(mtu));
        }
        let mut fields = self.fields.clone();
        if let Some(translated) = self.record.translated {
            for (name, value) in translated(&self.fields) {
                if fields.has(name) && !fields.get(name).is_set() {
                    fields.set(name, value);
                }
            }
        }
        let mut parts = vec![self.kind().to_owned()];
        if let Some(variant) = self.variant()
            && self.record.grammars[0].variant != Some(variant)
        {
            parts.push(format!("variant {variant}"));
        }
        parts.extend(self.grammar.write(&fields, |_, _| true));
        match self.params() {
            Some(qdisc::Params::Red(qdisc::RedParams::Linux(red))) => {
                if let Some(weight) = red.weight_log() {
                    parts.push(format!("ewma {weight} Scell_log {}", red.cell_log(weight)));
                }
            }
            Some(qdisc::Params::Cake(cake) | qdisc::Params::CakeMq(cake))
                if cake.memlimit.is_none() =>
            {
                parts.push(format!("memlimit {}", cake.memory(mtu)));
            }
            _ => {}
        }
        parts.join(" ")
    }

    /// Whether its sizes depend on the rate of its link.
    pub fn is_bare(&self) -> bool {
        let its = self.queueing();
        its.record.sized.as_ref().is_some_and(|sized| std::ptr::eq(its.grammar, sized.grammar))
    }

    /// The same discipline on a link of this rate, bit/s: sizes that were not given follow from it.
    pub fn at(&self, rate_bps: u64) -> Discipline {
        if let Some(child) = self.child() {
            return self.clone().with_child(child.at(rate_bps));
        }
        let Some(sized) = self.record.sized.as_ref().filter(|_| self.is_bare()) else {
            return self.clone();
        };
        let mut fields = self.fields.clone();
        (sized.at)(&mut fields, rate_bps);
        Discipline { grammar: &self.record.grammars[0], fields, ..self.clone() }
    }

    /// The discipline or the word that the simulator does not have; `None` if it has all.
    pub fn lacking(&self) -> Option<String> {
        if let Some(child) = self.child() {
            return child.lacking();
        }
        if !self.record.simulated {
            return Some(self.kind().to_owned());
        }
        (self.record.lacking)(&self.fields).map(|word| format!("{} {word}", self.kind()))
    }

    /// The simulator's parameters. `None` if the simulator has no such discipline, or its sizes are
    /// not known.
    pub fn params(&self) -> Option<qdisc::Params> {
        if self.lacking().is_some() || self.is_bare() {
            return None;
        }
        if let Some(child) = self.child() {
            return Some(qdisc::Params::Mq(qdisc::MqParams { child: Box::new(child.params()?) }));
        }
        let mut fields = match self.record.translated {
            Some(translated) => translated(&self.fields),
            None => self.fields.iter().map(|(name, value)| (name, value.clone())).collect(),
        };
        fields.push(("kind", Value::Text(self.kind().into())));
        let params = qdisc::Params::deserialize(MapDeserializer::new(fields.into_iter()));
        Some(params.expect("a record's parameters are those of the simulator"))
    }

    /// The device's `txqueuelen`, if this is the discipline's limit in Linux.
    pub fn queue_length(&self) -> Option<u64> {
        let its = self.queueing();
        let linux = its.record.linux.as_ref()?;
        its.fields.count("limit").filter(|_| linux.limit_is_device_s)
    }

    /// The options of a netlink message, with their names in linux/pkt_sched.h. `None`: the
    /// record has them as bytes (`packed_options`), or not at all.
    pub fn options(&self) -> Option<Vec<(String, u64)>> {
        match self.record.linux.as_ref()?.options {
            Options::None | Options::Packed(_) | Options::Words(_) => None,
            Options::Limit => Some(vec![("limit".to_owned(), self.fields.count("limit")?)]),
            Options::Attributes(prefix, attributes) => {
                let set = attributes.iter().filter_map(|attribute| {
                    let value = (attribute.value)(&self.fields)?;
                    Some((format!("{prefix}_{}", attribute.name), value))
                });
                Some(set.collect())
            }
        }
    }

    /// The bytes of the options in a netlink message. `None`: the record has them by name, or not
    /// at all.
    pub fn packed_options(&self) -> Option<Vec<u8>> {
        let attributes = match self.record.linux.as_ref()?.options {
            Options::Packed(attributes) => attributes,
            Options::Words(words) => {
                let value = |word: &fn(&Fields) -> Option<u64>| word(&self.fields).unwrap_or(0);
                return Some(
                    words.iter().flat_map(|word| (value(word) as u32).to_ne_bytes()).collect(),
                );
            }
            _ => return None,
        };
        let mut bytes = Vec::new();
        for each in attributes {
            let Some(value) = (each.value)(&self.fields) else { continue };
            // struct nlattr. The next attribute begins at a multiple of four bytes.
            bytes.extend((4 + each.bytes as u16).to_ne_bytes());
            bytes.extend(each.number.to_ne_bytes());
            bytes.extend(&value.to_le_bytes()[..each.bytes]);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        Some(bytes)
    }

    /// The approximate largest number of packets in the queue. A limit in bytes is converted to
    /// full packets. On a card the limit is that of each queue.
    pub fn packets(&self) -> u64 {
        if let Some(child) = self.child() {
            return child.packets();
        }
        let limit = self.fields.count("limit");
        match self.record.counts {
            Counts::Bytes => self.fields.numbers("limit").iter().sum::<u64>() / FULL_PACKET + 1,
            Counts::Packets => limit.or(self.record.usual_limit).unwrap_or(0),
            Counts::PacketsOfABand => {
                let bands = self.fields.count("bands").unwrap_or(USUAL_BANDS);
                self.record.usual_limit.unwrap_or(0) * bands
            }
        }
    }

    /// Whether it shapes to a rate of its own.
    pub fn shapes(&self) -> bool {
        let its = self.queueing();
        its.record.shapes.is_some_and(|field| its.fields.get(field).is_set())
    }

    /// The error if it can't work without a rate of its link; `None` if it can.
    pub fn without_a_rate(&self) -> Option<TcError> {
        if self.shapes() {
            let kind = self.kind();
            return Some(TcError::new(
                format!("{kind} shapes to a rate, but this link has no rate"),
                format!(
                    "write rate or shaper at the link, and leave out {kind}'s own rate if that is enough"
                ),
            ));
        }
        let its = self.queueing();
        (its.record.without_a_rate)(&its.fields)
    }
}

impl PartialEq for Discipline {
    fn eq(&self, other: &Discipline) -> bool {
        std::ptr::eq(self.grammar, other.grammar)
            && self.fields == other.fields
            && self.child == other.child
    }
}

/// The parameters by name, including `kind`.
impl Serialize for Discipline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.kind())?;
        for (name, value) in self.fields.iter() {
            map.serialize_entry(name, value)?;
        }
        if let Some(child) = self.child() {
            map.serialize_entry(CHILD, &child.text())?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Discipline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Discipline, D::Error> {
        let params = BTreeMap::<String, Value>::deserialize(deserializer)?;
        Discipline::from_params(params).map_err(|error| D::Error::custom(error.problem))
    }
}

impl fmt::Debug for Discipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_tuple("Discipline");
        shown.field(&self.text());
        // The source decides what the discipline does.
        let source = self.fields.get("source");
        if source.is_set() {
            shown.field(source);
        }
        shown.finish()
    }
}

impl fmt::Display for Discipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// The words and their places in the text. `variant=rfc` is two words.
pub(crate) fn tokens(text: &str) -> Vec<(&str, Range<usize>)> {
    let mut tokens = Vec::new();
    for (word, at) in words(text) {
        let mut begin = at.start;
        for part in word.split('=') {
            if !part.is_empty() {
                tokens.push((part, begin..begin + part.len()));
            }
            begin += part.len() + 1;
        }
    }
    tokens
}

pub(crate) fn read(
    record: &'static Record,
    grammar: &Grammar,
    rest: &[(&str, Range<usize>)],
) -> Result<Fields, TcError> {
    grammar.read(rest, record.least, |name, at, before| {
        unknown_word(record, grammar, name, before).at(at.clone())
    })
}

/// The error for an unknown word. `before`: the words read so far.
pub(crate) fn unknown_word(
    record: &Record,
    grammar: &Grammar,
    name: &str,
    before: &[(&str, Range<usize>)],
) -> TcError {
    let kind = record.kind;
    let here = |word: &&str| grammar.replacement(word).is_none();
    let mut words: Vec<&str> = grammar.sets().map(|(word, _)| word).filter(here).collect();
    if record.grammars.len() > 1 {
        words.push("variant");
    }
    if let Some(other) = record.grammars.iter().find(|other| other.has(name)) {
        let (ours, theirs) =
            (grammar.variant.unwrap_or_default(), other.variant.unwrap_or_default());
        let problem = format!("{kind} variant {ours} has no word {}", quoted(name));
        return TcError::new(problem, format!("variant {theirs} has it"));
    }
    let known = format!("known words: {}", listed(words.iter().copied()));
    let problem = format!("{kind} has no word {}", quoted(name));
    let decimal =
        |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if let [.., (word, _), (number, _)] = before
        && name.chars().all(char::is_alphabetic)
        && decimal(number)
    {
        let joined = format!("{word} {number}{}", name.to_ascii_lowercase());
        return TcError::new(
            problem,
            format!("a number and its unit are one word: write {joined}; {known}"),
        );
    }
    let is_integer = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let packets = name.strip_suffix(['p', 'P']).unwrap_or(name);
    if is_integer(packets) && words.contains(&"limit") {
        return TcError::new(problem, format!("write limit {packets}; {known}"));
    }
    let time = name.strip_suffix("ms").or_else(|| name.strip_suffix("us"));
    if time.is_some_and(decimal) && words.contains(&"target") {
        return TcError::new(problem, format!("write target {name}; {known}"));
    }
    let guess = nearest(up_to(name, 1_000), words.iter().copied());
    TcError::new(problem, did_you_mean(guess, &known))
}
