//! The scenario language: parses a text into a value, and turns the value into the integers that an
//! engine takes.
//!
//! A scenario is TOML. `Loaded::read` returns the value, or every problem at once with its place
//! and what to write instead. `Loaded::with` changes keys, `Loaded::variants` returns one scenario
//! for each point of a sweep, and `Scenario::realise` returns an engine's input for a seed.
//! docs/scenario.md is the reference of the language. Nothing here opens a file or reads a clock:
//! the caller hands in a trace's file.

mod amount;
mod capture;
mod check;
mod code;
mod columns;
mod command;
mod forms;
mod hints;
mod laws;
mod links;
mod meaning;
mod model;
mod notes;
mod problem;
mod programs;
mod reader;
pub mod realised;
mod samples;
mod sweep;
mod syntax;
mod tcp;
mod toml;
mod trace;
mod wire;

pub use command::Environment;
pub use forms::{Code, Hosts, LinkRate};
pub use hints::dotted_key;
pub use laws::Spread;
pub use meaning::Meaning;
pub use model::{
    Axis, Bottleneck, Bulk, Ends, Flow, FlowEntry, Kind, LinkEntry, Periods, Ping, ProgramEntry,
    ProgramPair, ProgramSettings, Record, Requests, Scenario, Stream, Sweep, TcpFlow, Transfers,
    Udp, Video, Ways, Web, Wire, base_names, language,
};
pub use problem::{Key, Part, Problem, Source, below, dotted};
pub use programs::{FlowEnd, Program, Programs};
pub use reader::KeyOf;
pub use samples::{Design, Range, Sampling};
pub use tcp::{Endpoints, MTU, PROFILES, TcpSettings, profile};
pub use toml::{NotToml, Places, read as read_toml, write as write_toml};
pub use trace::Open;
pub use values::{Table, Value};
pub use wire::Loss;

use hints::hint_for_key;
use reader::{Place, Reader, Tables};
use realised::Run;
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most tables `[[flow]]` or `[[link]]`.
const MAX_ENTRIES: usize = 10_000;
/// The longest text, characters: 16 Mi.
const MAX_TEXT: usize = 16 << 20;
/// The most problems of one document's keys that are reported: a text with more is probably not a
/// scenario.
const MOST: usize = 1000;
/// Problems after which no further points of a sweep are checked.
const ENOUGH: usize = 100;

/// A scenario with the document that it was read from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The scenario itself.
    pub scenario: Scenario,
    /// Accepted words that probably mean something else, each with its place and what to write
    /// instead.
    pub notes: Vec<Problem>,
    /// For a variant: the swept keys in the sweep's order, each with its value here.
    pub settings: Vec<(String, Value)>,
    document: Table,
    /// The files that the sweep's values name: variants are read without opening them again.
    files: Arc<Files>,
    /// Keys that change nothing at any point of the sweep.
    idle: Vec<Problem>,
}

/// Contents of files by name.
type Files = BTreeMap<String, Vec<u8>>;

/// Compares the scenarios alone: notes depend on the wording.
impl PartialEq for Loaded {
    fn eq(&self, other: &Loaded) -> bool {
        self.scenario == other.scenario
    }
}

impl Loaded {
    /// Parses the scenario in `text`, which messages call `name`; `untitled` is the title of a text
    /// without one.
    ///
    /// # Errors
    ///
    /// All problems of the text.
    ///
    /// # Examples
    ///
    /// ```rust
    /// use scenario::{Loaded, no_file};
    ///
    /// let text = r#"
    /// duration = "10 s"
    /// [bottleneck]
    /// rate = "20 Mbit/s"
    /// delay = "10 ms"
    /// qdisc = "fq_codel"
    /// [[flow]]
    /// kind = "bulk"
    /// "#;
    /// let home = Loaded::read(text, "home.toml", Some("home"), &no_file).expect("a scenario");
    /// assert_eq!(home.scenario.duration, 10_000_000_000);
    ///
    /// let wrong = text.replace("fq_codel", "fq_codle");
    /// let problems = Loaded::read(&wrong, "home.toml", None, &no_file).unwrap_err();
    /// assert_eq!(problems[0].place, Some((6, 9)));
    /// ```
    pub fn read(
        text: &str,
        name: &str,
        untitled: Option<&str>,
        open: &Open<'_>,
    ) -> Result<Loaded, Vec<Problem>> {
        let plain = || Source::new(name, text, Places::new());
        if text.len() > MAX_TEXT && text.chars().count() > MAX_TEXT {
            let message = "the text is larger than 16 MiB: not a scenario";
            let problem = Problem::new(message, "", Key::new());
            return Err(vec![Problem { file: name.to_owned(), place: Some((1, 1)), ..problem }]);
        }
        if let Some(nul) = text.find('\0') {
            let before = &text[..nul];
            let start = before.rfind('\n').map_or(0, |at| at + 1);
            let place = (before.matches('\n').count() + 1, before[start..].chars().count() + 1);
            let hint = "is this a text file? write the scenario as plain text";
            return Err(vec![plain().at(
                Problem::new("a NUL character", hint, Key::new()),
                place,
                0,
            )]);
        }
        let (mut document, places) = toml::read(text).map_err(|wrong| {
            let line = syntax::blamed(&wrong.message, text, wrong.place.0);
            let place = if line == wrong.place.0 { wrong.place } else { (line, 1) };
            let (message, hint) = syntax::explained(&wrong.message, text, line);
            let problem = Problem::new(format!("not TOML: {message}"), hint, Key::new());
            vec![plain().at(problem, place, 0)]
        })?;
        if let Some(title) = untitled.filter(|_| !document.has("title"))
            && title.chars().all(values::text::printable)
        {
            let title: String = title.chars().take(300).collect();
            let mut titled = Table::default();
            titled.push("title".into(), title.into());
            for (key, value) in document.iter() {
                titled.push(key.to_owned(), value.clone());
            }
            document = titled;
        }
        Loaded::of(document, &Source::new(name, text, places), open)
    }

    /// Reads the scenario from plain values.
    pub fn of(document: Table, source: &Source, open: &Open<'_>) -> Result<Loaded, Vec<Problem>> {
        let mut loaded = Loaded::of_known(document, source, open, &Files::new())?;
        loaded.notes.extend(loaded.idle.iter().cloned());
        Ok(loaded)
    }

    /// The same, with the contents of some files already known.
    fn of_known(
        document: Table,
        source: &Source,
        open: &Open<'_>,
        known: &Files,
    ) -> Result<Loaded, Vec<Problem>> {
        let open = &|name: &str| known.get(name).cloned().map_or_else(|| open(name), Ok);
        let files = RefCell::new(Files::new());
        let kept = |name: &str| {
            let known = files.borrow().get(name).cloned();
            let content = known.map_or_else(|| open(name), Ok)?;
            files.borrow_mut().insert(name.to_owned(), content.clone());
            Ok(content)
        };
        let Validated { scenario, document, notes: of_files, in_part } =
            validated(document, source, &kept)?;
        files.borrow_mut().retain(|name, _| in_part.contains(name));
        let all_notes = |scenario: &Scenario| {
            let unseen = notes::unseen(scenario).into_iter().map(|note| source.locate(note, 0));
            (notes_of(scenario, source), unseen.collect::<Vec<_>>())
        };
        let (mut notes, unseen) = all_notes(&scenario);
        notes.extend(of_files);
        let mut idle = notes::idle(&scenario);
        let own: Vec<_> = notes.iter().chain(&unseen).cloned().collect();
        if scenario.sweep.is_empty() {
            // Only the variants of a sweep are run.
            notes.extend(unseen);
        }
        let mut problems: Vec<Problem> = Vec::new();
        let mut single = document.clone();
        single.remove("sweep");
        for change in sweep::changes(&scenario.sweep, source)? {
            let variant =
                change.apply(&single, source).and_then(|changed| validated(changed, source, &kept));
            match variant {
                Err(wrong) => {
                    for problem in wrong {
                        let moved = change.relocate(problem, source);
                        // A fault in a key, rather than in its values, is reported once.
                        if !problems.iter().any(|known| same_fault(known, &moved)) {
                            problems.push(moved);
                        }
                    }
                    if problems.len() > ENOUGH {
                        break;
                    }
                }
                Ok(Validated { scenario: variant, notes: of_files, .. }) => {
                    let (words, unseen) = all_notes(&variant);
                    for note in words.into_iter().chain(unseen).chain(of_files) {
                        let known = own.iter().find(|own| same(own, &note) && !change.is_of(&note));
                        let note = known.cloned().unwrap_or_else(|| change.relocate(note, source));
                        add_note(&mut notes, note);
                    }
                    if !idle.is_empty() {
                        let here = notes::idle(&variant);
                        idle.retain(|note| here.iter().any(|other| same(other, note)));
                    }
                }
            }
        }
        if problems.is_empty() {
            let files = Arc::new(files.into_inner());
            let idle = idle.into_iter().map(|note| source.locate(note, 0)).collect();
            Ok(Loaded { scenario, notes, settings: Vec::new(), document, files, idle })
        } else {
            Err(problems)
        }
    }

    /// Returns the scenario with some keys changed, by dotted key; `None` removes a key. Flows and
    /// links are named by index or name, or all by `*`. A change to a swept key removes it from the
    /// sweep.
    ///
    /// # Examples
    ///
    /// ```rust
    /// use scenario::{Loaded, Value, no_file};
    ///
    /// let text = r#"
    /// duration = "10 s"
    /// bottleneck = { rate = "20 Mbit/s", delay = "10 ms" }
    /// flow = [{ kind = "bulk" }]
    /// "#;
    /// let home = Loaded::read(text, "home.toml", None, &no_file).expect("a scenario");
    /// let change = ("bottleneck.qdisc".to_owned(), Some(Value::from("codel")));
    /// let changed = home.with(&[change], &no_file).expect("the change is valid");
    /// assert!(changed.to_toml().contains("qdisc = \"codel\""));
    /// ```
    pub fn with(
        &self,
        changes: &[(String, Option<Value>)],
        open: &Open<'_>,
    ) -> Result<Loaded, Vec<Problem>> {
        let mut document = self.document.clone();
        for (key, value) in changes {
            sweep::change(&mut document, key, value.as_ref())?;
        }
        for (key, _) in changes.iter().filter(|(_, value)| value.is_some()) {
            sweep::check_set(&document, key)?;
        }
        // The unchanged keys have no places in a text any more; their notes are kept.
        let mut settled: BTreeSet<Key> = changes
            .iter()
            .filter_map(|(key, _)| sweep::paths(&document, key).ok())
            .flatten()
            .collect();
        let swept = sweep::unsettled(&self.scenario.sweep, &document, &settled);
        let sweep: Part = "sweep".into();
        if swept.axes.len() < self.scenario.sweep.axes.len() && document.has("sweep") {
            let stays =
                |key: &Part| swept.axes.iter().any(|(name, _)| *key == Part::Name(name.clone()));
            let dropped = self
                .notes
                .iter()
                .filter(|note| note.key.first() == Some(&sweep) && !stays(&note.key[1]));
            settled.extend(dropped.map(|note| note.key.clone()));
            document.set("sweep", Value::Table(swept.table()));
        }
        let stays = |key: &str| sweep::stays(key, &document, &settled);
        let settings = self.settings.iter().filter(|(key, _)| stays(key)).cloned().collect();
        let mut changed = Loaded::of_known(document, &Source::default(), open, &self.files)?;
        changed.settings = settings;
        // Keys that were without effect before, or that this call sets.
        let known = |note: &&Problem| {
            settled.contains(&note.key) || self.idle.iter().any(|own| same(own, note))
        };
        let idle: Vec<_> = changed.idle.iter().filter(known).cloned().collect();
        changed.notes.extend(idle);
        // Notes about wording can't be made again; every other note stays only if it is made again.
        let unseen = notes::unseen(&self.scenario);
        let kept: Vec<_> = self
            .notes
            .iter()
            .filter(|note| !settled.contains(&note.key))
            .filter(|note| {
                let again = note.key.first() == Some(&sweep)
                    || unseen.iter().chain(&self.idle).any(|other| same(other, note));
                !again || changed.notes.iter().any(|own| same(own, note))
            })
            .cloned()
            .collect();
        Ok(changed.with_notes(kept.into_iter()))
    }

    /// The key of the discipline that a comparison replaces. With `link` it is that link's. Without
    /// `link` it is the bottleneck's common key, which sets both directions, except one with a
    /// discipline of its own. A scenario made of `[[link]]` tables needs `link`.
    pub fn qdisc_key(&self, link: Option<&str>) -> Result<String, Vec<Problem>> {
        let both = self.scenario.bottleneck.as_ref();
        let names = match both {
            Some(_) => vec!["up".to_owned(), "down".to_owned()],
            None => self.scenario.links.iter().map(|link| link.ends.name_or_ends()).collect(),
        };
        let refused = |message: String, hint: String| vec![Problem::new(message, hint, Vec::new())];
        match (link, both) {
            (Some(link), _) if !names.iter().any(|name| name == link) => Err(refused(
                format!("no link is called {}", values::text::quoted(link)),
                format!("links: {}", names.join(", ")),
            )),
            (Some(link), Some(_)) => Ok(format!("bottleneck.{link}.qdisc")),
            (Some(link), None) => Ok(format!("link.{link}.qdisc")),
            (None, None) => Err(refused(
                "the scenario has no [bottleneck]".into(),
                format!("name the link: --link {}", names.join("|")),
            )),
            (None, Some(both))
                if [&both.ways.up, &both.ways.down]
                    .iter()
                    .all(|way| way.as_ref().is_some_and(|own| own.qdisc.is_some())) =>
            {
                Err(refused(
                    "up and down each have their own qdisc".into(),
                    "name the one to replace: --link up|down".into(),
                ))
            }
            (None, Some(_)) => Ok("bottleneck.qdisc".into()),
        }
    }

    /// One scenario for each point of the sweep, labelled by the values that differ; the scenario
    /// itself if there is no sweep.
    ///
    /// # Examples
    ///
    /// ```rust
    /// use scenario::{Loaded, no_file};
    ///
    /// let text = r#"
    /// duration = "10 s"
    /// bottleneck = { rate = "20 Mbit/s", delay = "10 ms" }
    /// flow = [{ kind = "bulk" }]
    /// sweep = { "bottleneck.qdisc" = ["pfifo", "codel"] }
    /// "#;
    /// let sweep = Loaded::read(text, "sweep.toml", None, &no_file).expect("a scenario");
    /// let variants = sweep.variants().expect("each point is a scenario");
    /// let labels: Vec<_> = variants.iter().map(|each| each.scenario.label.as_str()).collect();
    /// assert_eq!(labels, ["pfifo", "codel"]);
    /// ```
    pub fn variants(&self) -> Result<Vec<Loaded>, Vec<Problem>> {
        if self.scenario.sweep.is_empty() {
            return Ok(vec![self.clone()]);
        }
        let none = Source::default();
        let points = sweep::changes(&self.scenario.sweep, &none)?;
        let mut single = self.document.clone();
        single.remove("sweep");
        let own: Vec<_> = self
            .notes
            .iter()
            .filter(|note| note.key.first() != Some(&"sweep".into()))
            .cloned()
            .collect();
        let labels = sweep::labels(&points);
        let variant = |(point, label): (&sweep::Change<'_>, String)| {
            let mut document = point.apply(&single, &none)?;
            document.set("label", label.into());
            let variant = Loaded::of_known(document, &none, &no_file, &self.files)?;
            let variant = Loaded { settings: point.values(), ..variant };
            Ok(variant.with_notes(own.iter().cloned()))
        };
        points.iter().zip(labels).map(variant).collect()
    }

    /// Adds notes about the wording of the text. A note with a place replaces the same note without
    /// one.
    fn with_notes(mut self, notes: impl Iterator<Item = Problem>) -> Loaded {
        for note in notes {
            match self.notes.iter_mut().find(|own| same(own, &note)) {
                Some(own) => *own = note,
                None => self.notes.push(note),
            }
        }
        self
    }

    /// Canonical text: reading it returns an equal scenario on any machine (traces are written
    /// out).
    pub fn to_toml(&self) -> String {
        toml::write(&self.scenario.document())
    }

    /// SHA-256 of an engine's input for these seeds, in any order; `None`: the scenario's own
    /// seeds.
    ///
    /// Titles, labels and the engine do not change it. `go_on` is called at each link and flow: if
    /// it returns false, the work ends and the result is `None`.
    pub fn fingerprint(
        &self,
        seeds: Option<&[u64]>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<String>, Vec<Problem>> {
        let mut digest = Sha256::new();
        let seeds: BTreeSet<u64> = seeds.unwrap_or(&self.scenario.seeds).iter().copied().collect();
        for variant in self.variants()? {
            let realise = |seed| variant.scenario.realise(seed).expect("a variant is not a sweep");
            for &seed in &seeds {
                if !digest_run(realise(seed), &mut digest, go_on) {
                    return Ok(None);
                }
            }
            if !variant.scenario.has_programs() {
                continue;
            }
            // Nothing is added without programs: such scenarios keep their fingerprints. A seed
            // decides of them only when a flow starts, which is in its run.
            let first = seeds.first().copied().unwrap_or_default();
            let programs = variant.scenario.realised_programs(&realise(first));
            let mut text = String::new();
            plain_json(&tree(&programs), &mut text);
            digest.update(text.as_bytes());
        }
        Ok(Some(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
    }
}

/// Adds the text of a run. Its links and flows are written one by one: as a tree, a hundred
/// thousand of them would take a gigabyte.
fn digest_run(mut run: Run, digest: &mut Sha256, go_on: &mut dyn FnMut() -> bool) -> bool {
    let (links, flows) = (std::mem::take(&mut run.links), std::mem::take(&mut run.flows));
    let serde_json::Value::Object(entries) = tree(&run) else { unreachable!("it has fields") };
    let mut sorted: Vec<_> = entries.iter().collect();
    sorted.sort_unstable_by_key(|(key, _)| *key);
    let mut text = String::from("{");
    for (index, (key, value)) in sorted.into_iter().enumerate() {
        text.push_str(if index > 0 { "," } else { "" });
        plain_text(key, &mut text);
        text.push(':');
        let each: Box<dyn Iterator<Item = serde_json::Value>> = match key.as_str() {
            "links" => Box::new(links.iter().map(tree)),
            "flows" => Box::new(flows.iter().map(tree)),
            _ => {
                plain_json(value, &mut text);
                continue;
            }
        };
        text.push('[');
        let mut first = true;
        for item in each {
            text.push_str(if std::mem::take(&mut first) { "" } else { "," });
            plain_json(&item, &mut text);
            digest.update(text.as_bytes());
            text.clear();
            if !go_on() {
                return false;
            }
        }
        text.push(']');
    }
    text.push('}');
    digest.update(text.as_bytes());
    true
}

fn tree(of: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(of).expect("it is made of plain values")
}

/// An `Open` without files.
pub fn no_file(_name: &str) -> Result<Vec<u8>, String> {
    Err("No such file or directory".to_owned())
}

/// JSON with sorted keys, without blanks, in ASCII: the text that fingerprints hash.
fn plain_json(value: &serde_json::Value, out: &mut String) {
    match value {
        serde_json::Value::Number(number) if number.is_f64() => {
            out.push_str(&values::real(number.as_f64().unwrap_or_default()));
        }
        serde_json::Value::String(text) => {
            if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && !b"\"\\".contains(&byte)) {
                plain_text(text, out);
                return;
            }
            for char in serde_json::Value::from(&**text).to_string().chars() {
                if char.is_ascii() {
                    out.push(char);
                    continue;
                }
                for unit in char.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
        serde_json::Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                plain_json(item, out);
            }
            out.push(']');
        }
        serde_json::Value::Object(entries) => {
            out.push('{');
            let mut sorted: Vec<_> = entries.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            for (index, (key, item)) in sorted.into_iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                // Names of fields need no escapes.
                plain_text(key, out);
                out.push(':');
                plain_json(item, out);
            }
            out.push('}');
        }
        _ => out.push_str(&value.to_string()),
    }
}

/// Text that needs no escapes.
fn plain_text(text: &str, out: &mut String) {
    out.push('"');
    out.push_str(text);
    out.push('"');
}

/// Whether two notes have the same key and message, wherever their places are.
fn same(one: &Problem, other: &Problem) -> bool {
    one.key == other.key && one.message == other.message
}

/// Whether two problems of a sweep's variants are one: a fault in a key, not in its values.
fn same_fault(one: &Problem, other: &Problem) -> bool {
    let table = |key: &Key| key.len().min(2);
    one.message == other.message && one.key[..table(&one.key)] == other.key[..table(&other.key)]
}

fn add_note(notes: &mut Vec<Problem>, note: Problem) {
    if !notes.iter().any(|own| same(own, &note)) {
        notes.push(note);
    }
}

/// The notes on the words of queue disciplines, shapers and policers.
fn notes_of(scenario: &Scenario, source: &Source) -> Vec<Problem> {
    let mut tables: Vec<(Key, &Wire)> = Vec::new();
    for (index, entry) in scenario.links.iter().enumerate() {
        tables.push((vec!["link".into(), index.into()], &entry.wire));
    }
    if let Some(bottleneck) = &scenario.bottleneck {
        let at: Key = vec!["bottleneck".into()];
        tables.push((at.clone(), &bottleneck.common));
        for (way, own) in [("down", &bottleneck.ways.down), ("up", &bottleneck.ways.up)] {
            tables.extend(own.iter().map(|own| (below(&at, way), own)));
        }
    }
    let mut notes = Vec::new();
    for (key, wire) in tables {
        let qdisc = wire.qdisc.iter().flat_map(|qdisc| &qdisc.notes);
        let shaper = wire.shaper.iter().flatten().flat_map(|shaper| &shaper.notes.0);
        let police = wire.police.iter().flatten().flat_map(|police| &police.notes.0);
        let notes_of_words = qdisc.map(|note| ("qdisc", note));
        let notes_of_words = notes_of_words.chain(shaper.map(|note| ("shaper", note)));
        for (name, note) in notes_of_words.chain(police.map(|note| ("police", note))) {
            let problem = Problem::new(&*note.message, &*note.hint, below(&key, name));
            // The words are ASCII: a byte is a character.
            add_note(&mut notes, source.locate(problem, note.at.start));
        }
    }
    notes
}

/// A document that has been checked, and its scenario.
struct Validated {
    scenario: Scenario,
    /// As it was read, with `seed` as a list of one and traces as rows.
    document: Table,
    /// The notes on the files that it names.
    notes: Vec<Problem>,
    /// The files that are contained in part: a run of another length needs another part.
    in_part: Vec<String>,
}

fn validated(
    mut document: Table,
    source: &Source,
    open: &Open<'_>,
) -> Result<Validated, Vec<Problem>> {
    for name in model::SEVERAL {
        if let Some(entries) =
            document.get(name).and_then(Value::list).filter(|list| list.len() > MAX_ENTRIES)
        {
            let hint = format!("the most is {MAX_ENTRIES}; a flow may have a count");
            let message = format!("{} tables [[{name}]]", entries.len());
            return Err(vec![source.locate(Problem::new(message, hint, vec![name.into()]), 0)]);
        }
    }
    let mut problems = Vec::new();
    let one_seed = document.remove("seed");
    let single = one_seed.is_some();
    if let Some(seed) = one_seed {
        if document.has("seeds") {
            let problem = Problem::new(
                "seed and seeds are both given",
                "keep one of them",
                vec!["seed".into()],
            );
            problems.push(source.at_name(problem));
        }
        document.set("seeds", Value::List(vec![seed]));
    }
    if let Some(Value::Table(sweep)) = document.get("sweep") {
        let flat = sweep::flat(sweep);
        document.set("sweep", Value::Table(flat));
    }
    let mut traces = trace::resolve(&mut document, open);
    problems.extend(traces.problems.drain(..).map(|problem| source.locate(problem, 0)));
    let mut notes = std::mem::take(&mut traces.notes);
    let captures = capture::resolve(&mut document, &mut notes, open);
    problems.extend(captures.into_iter().map(|problem| source.locate(problem, 0)));
    let code = code::resolve(&mut document, open);
    problems.extend(code.into_iter().map(|problem| source.locate(problem, 0)));
    // `seed = 7` is stored as `seeds`.
    let written = |problem: Problem| match problem.key.first() {
        Some(Part::Name(name)) if single && name == "seeds" => {
            Problem { key: vec!["seed".into()], ..problem }
        }
        _ => problem,
    };
    let hint = |name: &str, key: &Key, keys: &[KeyOf]| hint_for_key(name, key, keys, &document);
    let mut reader = Reader { hint: &hint, problems: Vec::new() };
    let scenario = Scenario::read_whole(&document, &Key::new(), &mut reader);
    reader.problems.truncate(MOST);
    let mut wrong: Vec<Problem> = reader
        .problems
        .into_iter()
        .map(|(problem, place)| match place {
            Place::Name => source.at_name(problem),
            Place::Value(offset) => source.locate(written(problem), offset),
        })
        .collect();
    if let Some(scenario) = scenario.as_ref().filter(|_| wrong.is_empty()) {
        wrong
            .extend(check::check(scenario).into_iter().map(|each| source.locate(written(each), 0)));
    }
    wrong.sort_by_key(|problem| problem.place.unwrap_or((0, 0)));
    problems.extend(wrong);
    match scenario {
        Some(scenario) if problems.is_empty() => {
            let in_part = traces.restore(&mut document);
            let notes = notes.into_iter().map(|note| source.locate(note, 0)).collect();
            Ok(Validated { scenario, document, notes, in_part })
        }
        _ => Err(problems),
    }
}
