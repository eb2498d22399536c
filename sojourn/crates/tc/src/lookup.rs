//! Functions that need the records of all disciplines: reading a name, and suggesting others if it
//! is wrong.

use crate::discipline::{CHILD, Discipline, read, tokens, unknown_word};
use crate::disciplines::{RECORDS, cake, elsewhere, mq, own, record};
use crate::error::TcError;
use crate::grammar::{Grammar, Value};
use crate::linux::Change;
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

    /// The discipline after `tc qdisc change` with these words, which begin with its name. Its
    /// packets stay queued. Parameters that the words do not name keep their values, except in
    /// disciplines whose parameters Linux sets all at once (red, pfifo).
    ///
    /// # Errors
    ///
    /// If the words are wrong, or Linux can't change this discipline or one of these parameters.
    ///
    /// # Examples
    ///
    /// ```rust
    /// use tc::Discipline;
    ///
    /// let before = Discipline::parse("cake bandwidth 20mbit rtt 50ms")?;
    /// assert_eq!(before.changed("cake bandwidth 8mbit")?.text(), "cake bandwidth 8mbit rtt 50ms");
    /// assert!(before.changed("codel target 8ms").is_err());
    /// # Ok::<(), tc::TcError>(())
    /// ```
    pub fn changed(&self, text: &str) -> Result<Discipline, TcError> {
        let (kind, change) = (self.kind(), self.change()?);
        let tokens = tokens(text);
        let (other, at) = tokens.first().map_or(("", 0..0), |(word, at)| (*word, at.clone()));
        if other != kind {
            let problem = format!("a step can't replace {kind} by {}", quoted(other));
            let hint =
                format!("begin with {kind}; a step changes its parameters, not the discipline");
            return Err(TcError::new(problem, hint).at(at));
        }
        if tokens.len() == 1 {
            let hint = format!("write what it changes, as in {kind} WORD VALUE");
            return Err(TcError::new(format!("{kind} alone changes nothing"), hint).at(at));
        }
        let (record, grammar) = (self.record(), self.grammar());
        if change == Change::Whole {
            let next = Discipline::parse(text)?;
            if next.variant() != self.variant() {
                let problem = format!("a step can't replace one variant of {kind} by another");
                return Err(TcError::new(problem, "leave variant out").at(at));
            }
            return Ok(next);
        }
        let unknown = |name: &str, at: &Range<usize>, before: &[(&str, Range<usize>)]| {
            unknown_word(record, grammar, name, before).at(at.clone())
        };
        let (wanted, given) = grammar.read_given(&tokens[1..], unknown)?;
        if let Change::Named(fixed) = change
            && let Some(field) =
                given.iter().find(|field| fixed.contains(field) || **field == "variant")
        {
            let words = grammar.sets().filter(|(_, sets)| sets == field).map(|(word, _)| word);
            let words: Vec<_> = words.collect();
            let at = tokens.iter().find(|(token, _)| words.contains(token) || token == field);
            let at = at.map_or(0..0, |(_, at)| at.clone());
            let problem = format!("a step can't change {kind}'s {}", &text[at.clone()]);
            return Err(
                TcError::new(problem, "write it in qdisc, where it holds for the run").at(at)
            );
        }
        let mut fields = self.fields().clone();
        for field in &given {
            for &(one, other) in record.pairs {
                let twin = if *field == one { other } else { one };
                if [one, other].contains(field) && !given.contains(&twin) {
                    fields.set(twin, Value::Unset);
                }
            }
            fields.set(field, wanted.get(field).clone());
        }
        (grammar.complete)(&mut fields, &given)?;
        Ok(Discipline::new(record, grammar, fields, grammar.notes(&tokens[1..])))
    }

    /// What `tc qdisc change` does to this discipline.
    fn change(&self) -> Result<Change, TcError> {
        let kind = self.kind();
        let refused = |problem: String| {
            let changes = |record: &&&Record| {
                let linux = record.linux.as_ref();
                linux.is_some_and(|linux| matches!(linux.change, Change::Whole | Change::Named(_)))
            };
            let known = listed(RECORDS.iter().filter(changes).map(|record| record.kind));
            Err(TcError::new(problem, format!("leave the steps out, or use one of {known}")))
        };
        let linux = self.record().linux.filter(|_| self.record().in_linux(self.variant()));
        match linux.map(|linux| linux.change) {
            None => {
                let its = self.variant().map_or(String::new(), |name| format!(" variant {name}"));
                refused(format!("steps are Linux's tc qdisc change, and Linux has no {kind}{its}"))
            }
            Some(Change::Refused) => {
                refused(format!("Linux can't change a {kind} while its queue stands"))
            }
            Some(Change::NotHere) => refused(format!("steps can't change a {kind}")),
            Some(change) => Ok(change),
        }
    }

    /// The word of a parameter that differs in `next` and that the simulator can't change while the
    /// queue stands; `None`: it can change all.
    pub fn lacking_change(&self, next: &Discipline) -> Option<&'static str> {
        let record = self.record();
        if record.changes.is_empty() {
            return Some("parameters");
        }
        let differs = |(field, value): &(&'static str, &Value)| next.fields().get(field) != *value;
        let lacks = |field: &str| {
            // A discipline without a rate has no clock that a rate could set.
            let begins = record.shapes == Some(field) && self.shapes() != next.shapes();
            begins || !record.changes.contains(&field)
        };
        let (field, _) = self.fields().iter().filter(differs).find(|(field, _)| lacks(field))?;
        let word = self.grammar().sets().find(|(_, sets)| *sets == field);
        Some(word.map_or(field, |(word, _)| word))
    }

    /// The tc arguments behind `tc qdisc change` that set all parameters that can be changed.
    ///
    /// # Errors
    ///
    /// As `command`.
    pub fn change_command(&self) -> Result<String, TcError> {
        self.command()?;
        let fixed: &[&str] = match self.record().linux.map(|linux| linux.change) {
            Some(Change::Named(fixed)) => fixed,
            _ => &[],
        };
        let mut fields = self.fields().clone();
        fixed.iter().for_each(|field| fields.set(field, Value::Unset));
        let words = self.grammar().write(&fields, |_, _| true);
        Ok(std::iter::once(self.kind().to_owned()).chain(words).collect::<Vec<_>>().join(" "))
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
    if record.grammars.iter().all(|grammar| grammar.variant.is_none()) {
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
