//! Functions that need the records of all disciplines: reading a name, and suggesting others if it
//! is wrong.

use crate::discipline::{CHILD, Discipline, read, tokens};
use crate::disciplines::{RECORDS, cake, elsewhere, mq, own, record};
use crate::error::TcError;
use crate::grammar::{Grammar, Value};
use crate::record::{Record, Tree};
use std::ops::Range;
use values::text::{did_you_mean, listed, nearest, quoted};

/// The length of the longest text that is read, characters.
const LONGEST: usize = 4096;

impl Discipline {
    /// Reads a discipline in tc's syntax: `fq_codel target 5ms`.
    pub fn parse(text: &str) -> Result<Discipline, TcError> {
        if text.chars().count() > LONGEST {
            return Err(TcError::new(
                format!("the queue discipline is longer than {LONGEST} characters"),
                "",
            ));
        }
        let tokens = tokens(text);
        let Some(((kind, at), rest)) = tokens.split_first() else {
            return Err(TcError::new(
                "the queue discipline is empty",
                "write one in tc's syntax, like fq_codel",
            ));
        };
        if let Some(own) = own::read(&tokens) {
            return own;
        }
        let known = record(kind).filter(|record| record.kind != own::KIND);
        let record = known.ok_or_else(|| unknown_kind(kind, at))?;
        if let Some(usual) = record.child {
            return with_child(record, usual, text, rest.first());
        }
        let mut grammar = grammar_for(record, rest)?;
        if let Some(sized) = &record.sized
            && std::ptr::eq(grammar, &record.grammars[0])
            && !rest.iter().any(|(word, _)| sized.none_of.contains(word))
        {
            grammar = sized.grammar;
        }
        let fields = read(record, grammar, rest)?;
        Ok(Discipline::new(record, grammar, fields, grammar.notes(rest)))
    }

    /// The discipline with these parameters, which have the simulator's names; `kind` is among
    /// them.
    pub fn from_params(
        params: impl IntoIterator<Item = (String, Value)>,
    ) -> Result<Discipline, TcError> {
        let params: Vec<(String, Value)> = params.into_iter().collect();
        let text_of = |name: &str| params.iter().find(|(each, _)| each == name)?.1.text();
        let kind = text_of("kind").unwrap_or_default();
        let record = record(kind).ok_or_else(|| unknown_kind(kind, &(0..0)))?;
        if record.child.is_some() {
            return Discipline::parse(&format!("{kind} {}", text_of(CHILD).unwrap_or_default()));
        }
        let variant = text_of("variant");
        let wrong = |problem: String| TcError::new(problem, "give a discipline's own parameters");
        let Some(mut grammar) = record.grammar(variant) else {
            return Err(wrong(format!("{kind} has no variant {}", quoted(variant.unwrap_or("")))));
        };
        if let Some(sized) = &record.sized
            && grammar.default_of(sized.waits).is_set()
            && params.iter().any(|(name, value)| name == sized.waits && !value.is_set())
        {
            grammar = sized.grammar;
        }
        let mut fields = grammar.fields();
        let former = record.former.iter().filter_map(|former| {
            let (_, value) = params.iter().find(|(name, _)| name == former)?;
            Some(value.count().map_or_else(
                || value.text().unwrap_or_default().to_owned(),
                |count| format!("{former} {count}"),
            ))
        });
        let former = former.filter(|words| !words.is_empty()).collect::<Vec<_>>().join(" ");
        if let Some(words) = grammar.in_order.filter(|_| !former.is_empty()) {
            fields.set(words.field, Value::Text(former.into()));
        }
        for (name, value) in &params {
            let Some(field) = fields.iter().map(|(each, _)| each).find(|each| each == name) else {
                if name == "kind" || record.former.contains(&&**name) {
                    continue;
                }
                return Err(wrong(format!("{kind} has no parameter {}", quoted(name))));
            };
            fields.set(field, value.clone());
        }
        Ok(Discipline::new(record, grammar, fields, Vec::new()))
    }

    /// The tc arguments that create this discipline in Linux, with every parameter that was set or
    /// has a default here.
    pub fn command(&self) -> Result<String, TcError> {
        let kind = self.kind();
        if kind == own::KIND {
            own::not_in_linux(self)?;
        }
        if let Some(child) = self.child() {
            child.command()?;
        }
        if std::ptr::eq(self.record(), &cake::CAKE_MQ) {
            cake::as_linux_has_it(self.fields())?;
        }
        let Some(linux) = &self.record().linux else {
            let there = |record: &&&Record| record.linux.is_some();
            let known = listed(RECORDS.iter().filter(there).map(|record| record.kind));
            return Err(TcError::new(
                format!("Linux has no queue discipline '{kind}'"),
                format!("one of {known}"),
            ));
        };
        if !self.record().in_linux(self.variant()) {
            let variant = self.variant().unwrap_or_default();
            return Err(TcError::new(
                format!("Linux's {kind} is one algorithm, and `variant {variant}` another"),
                format!("leave the variant out to have Linux's {kind}"),
            ));
        }
        for word in self.grammar().words.iter().filter(|word| word.is_time()) {
            if let Some(ns) = self.fields().count(word.field)
                && !ns.is_multiple_of(1_000)
            {
                let word = word.word;
                return Err(TcError::new(
                    format!(
                        "{kind}: {word} {ns}ns is not a whole number of microseconds, tc's unit"
                    ),
                    format!("write {word} {}us", (ns + 500) / 1_000),
                ));
            }
        }
        let mut parts = vec![kind.to_owned()];
        if let Some(tree) = self.record().tree {
            parts.extend(Some((tree.own)(self.fields())).filter(|words| !words.is_empty()));
        } else if !linux.limit_is_device_s {
            parts.extend(self.grammar().write(self.fields(), |_, _| true));
        }
        Ok(parts.join(" "))
    }

    /// tc's commands for its classes and filters, given a device and a handle. Empty if `command`
    /// is enough.
    pub fn tree(&self, device: &str, handle: &str) -> Vec<String> {
        let parts = |tree: Tree| (tree.parts)(self.fields(), device, handle);
        self.record().tree.map_or_else(Vec::new, parts)
    }
}

impl Record {
    /// The discipline with all defaults, if it has one: choke and ets require parameters.
    pub fn usual(&'static self) -> Option<Discipline> {
        Discipline::parse(self.kind).ok()
    }
}

/// Reads a discipline whose name is followed by the words of its child, the first of them `next`.
fn with_child(
    record: &'static Record,
    usual: &str,
    text: &str,
    next: Option<&(&str, Range<usize>)>,
) -> Result<Discipline, TcError> {
    let grammar = &record.grammars[0];
    let outer = Discipline::new(record, grammar, grammar.fields(), Vec::new());
    let Some((kind, at)) = next else {
        let child = Discipline::parse(usual).expect("the kernel's own choice is in tc's syntax");
        return Ok(outer.with_child(child));
    };
    let shifted = |range: Range<usize>| range.start + at.start..range.end + at.start;
    let mut child = Discipline::parse(&text[at.start..]).map_err(|error| {
        let place = shifted(if error.at.is_empty() { 0..kind.len() } else { error.at.clone() });
        error.of(record.kind).at(place)
    })?;
    mq::check_child(&child).map_err(|error| error.at(at.clone()))?;
    let mut notes = std::mem::take(&mut child.notes);
    notes.iter_mut().for_each(|note| note.at = shifted(note.at.clone()));
    let mut discipline = outer.with_child(child);
    discipline.notes = notes;
    Ok(discipline)
}

fn grammar_for(
    record: &'static Record,
    tokens: &[(&str, Range<usize>)],
) -> Result<&'static Grammar, TcError> {
    let kind = record.kind;
    let Some(index) = tokens.iter().position(|(word, _)| *word == "variant") else {
        return Ok(&record.grammars[0]);
    };
    let at = tokens[index].1.clone();
    if record.grammars[0].variant.is_none() {
        return Err(TcError::new(format!("{kind} has no variants"), "leave variant out").at(at));
    }
    let choice = listed(record.grammars.iter().filter_map(|grammar| grammar.variant));
    let Some((name, name_at)) = tokens.get(index + 1) else {
        let problem = format!("{kind}: variant needs a value");
        return Err(TcError::new(problem, format!("one of {choice}")).at(at));
    };
    record.grammar(Some(name)).ok_or_else(|| {
        let problem = format!("{kind} has no variant {}", quoted(name));
        TcError::new(problem, format!("one of {choice}")).at(name_at.clone())
    })
}

fn unknown_kind(kind: &str, at: &Range<usize>) -> TcError {
    let known = format!("known: {}", listed(RECORDS.iter().map(|record| record.kind)));
    let (problem, hint) = elsewhere(kind).map_or_else(
        || {
            let guess = nearest(kind, RECORDS.iter().map(|record| record.kind));
            (format!("unknown queue discipline {}", quoted(kind)), did_you_mean(guess, &known))
        },
        |(problem, hint)| (problem, format!("{hint}; {known}")),
    );
    TcError::new(problem, hint).at(at.clone())
}
