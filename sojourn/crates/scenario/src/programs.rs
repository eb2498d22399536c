//! Programs of the host in the guest: `[[program]]` and `[programs]`.
//!
//! In a word of a command `{link:NAME}` stands for the program's network device at that link, and
//! `{address:NODE}` for an address of that node. Other braces are left unchanged. `files` name text
//! files beside the scenario, which the program finds, read-only, in its working folder. Their text
//! is in `[code]`, as that of a discipline's file, so a scenario is complete without them.
//!
//! The guest runs the programs with rights of its own kernel only; `sees` lists the folders of the
//! host that they may read.

use crate::command::{places, split};
use crate::forms::Code;
use crate::links::{Link, links_of};
use crate::model::{ProgramEntry, Scenario};
use crate::problem::{Key, Problem, below};
use values::Wrong;
use values::quantity::format_duration;
use values::text::{did_you_mean, in_quotes, nearest};

/// The most programs.
const MAX_PROGRAMS: usize = 100;

/// A program of one run.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Program {
    /// Its name in the Run.
    pub name: String,
    /// The node that it runs on.
    pub node: String,
    /// The command as written.
    pub command: String,
    /// Its words, with `{link:...}` and `{address:...}`.
    pub words: Vec<String>,
    /// The time of its start, ns.
    pub start_ns: u64,
    /// Its files: name and text.
    pub files: Vec<(String, String)>,
    /// Environment variables beside the usual ones.
    pub env: Vec<(String, String)>,
}

/// All programs of one run, and what they share.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Programs {
    /// The programs, in the order of the file.
    pub programs: Vec<Program>,
    /// The folders of the host that they may read.
    pub sees: Vec<String>,
    /// The guest's time that each system call takes, ns.
    pub syscall_ns: u64,
}

impl Scenario {
    /// The programs of each of its runs; they do not depend on the seed.
    pub fn realised_programs(&self) -> Programs {
        if self.programs.is_empty() {
            return Programs::default();
        }
        let one = |(name, entry): (String, &ProgramEntry)| Program {
            name,
            node: entry.node.clone(),
            command: entry.command.clone(),
            words: split(&entry.command).unwrap_or_default(),
            start_ns: entry.start,
            files: texts(&entry.files, &self.code),
            env: entry.env.0.clone(),
        };
        Programs {
            programs: names(&self.programs).into_iter().zip(&self.programs).map(one).collect(),
            sees: self.program_settings.sees.clone(),
            syscall_ns: self.program_settings.syscall,
        }
    }
}

fn texts(files: &[String], code: &Code) -> Vec<(String, String)> {
    files.iter().map(|file| (file.clone(), code.text(file).unwrap_or_default())).collect()
}

/// A name for each program: its own, or `program`, `program-2`, ...
pub(crate) fn names(programs: &[ProgramEntry]) -> Vec<String> {
    let mut unnamed = 0;
    let mut of = |entry: &ProgramEntry| {
        entry.name.clone().unwrap_or_else(|| {
            unnamed += 1;
            if unnamed == 1 { "program".to_owned() } else { format!("program-{unnamed}") }
        })
    };
    programs.iter().map(&mut of).collect()
}

// Checks
// -------------------------------------------------------------------------------------------------

/// The problems of the programs with the nodes and links.
pub(crate) fn check(scenario: &Scenario) -> Vec<Problem> {
    let mut problems = Vec::new();
    let programs = &scenario.programs;
    if programs.len() > MAX_PROGRAMS {
        let message = format!("{} programs are too many", programs.len());
        let hint = format!("the most is {MAX_PROGRAMS}");
        return vec![Problem::new(message, hint, vec!["program".into()])];
    }
    let links = links_of(scenario);
    let mut nodes: Vec<&str> = links.iter().flat_map(|link| [&*link.tail, &*link.head]).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let names = names(programs);
    for (index, entry) in programs.iter().enumerate() {
        let at: Key = vec!["program".into(), index.into()];
        if names[..index].contains(&names[index]) {
            let message = format!("several programs have the name {}", in_quotes(&names[index]));
            problems.push(Problem::new(message, "give each its own name", below(&at, "name")));
        }
        if !nodes.contains(&&*entry.node) {
            let guess = nearest(&entry.node, nodes.iter().copied());
            let known = format!("nodes: {}", nodes.join(", "));
            let message = format!("there is no node {}", in_quotes(&entry.node));
            problems.push(Problem::new(message, did_you_mean(guess, &known), below(&at, "node")));
        } else if let Some(wrong) = split(&entry.command)
            .unwrap_or_default()
            .iter()
            .find_map(|word| wrong_word(word, &entry.node, &links, &nodes))
        {
            problems.push(Problem::new(wrong.message, wrong.hint, below(&at, "command")));
        }
    }
    problems
}

/// What is wrong with the `{...}` of a word.
fn wrong_word(word: &str, node: &str, links: &[Link], nodes: &[&str]) -> Option<Wrong> {
    for (kind, name) in places(word) {
        match kind {
            "link" => match links.iter().find(|link| link.name == name) {
                None => {
                    let known: Vec<_> = links.iter().map(|link| &*link.name).collect();
                    let guess = nearest(name, known.iter().copied());
                    let listed = format!("links: {}", known.join(", "));
                    let message = format!("there is no link {}", in_quotes(name));
                    return Some(Wrong::new(message, did_you_mean(guess, &listed)));
                }
                Some(link) if link.tail != node && link.head != node => {
                    let message =
                        format!("the link {name} neither leaves nor enters the node {node}");
                    let hint = format!("write node = \"{}\" or \"{}\"", link.tail, link.head);
                    return Some(Wrong::new(message, hint));
                }
                Some(_) => {}
            },
            "address" if !nodes.contains(&name) => {
                let guess = nearest(name, nodes.iter().copied());
                let listed = format!("nodes: {}", nodes.join(", "));
                let message = format!("there is no node {}", in_quotes(name));
                return Some(Wrong::new(message, did_you_mean(guess, &listed)));
            }
            "address" => {}
            _ => {
                let message = format!("{{{kind}:{name}}} stands for nothing");
                let hint = "write {link:NAME} or {address:NODE}";
                return Some(Wrong::new(message, hint));
            }
        }
    }
    None
}

/// Notes on programs that never run, and on settings without a program.
pub(crate) fn unseen(scenario: &Scenario) -> Vec<Problem> {
    let mut notes = Vec::new();
    for (index, entry) in scenario.programs.iter().enumerate() {
        if entry.start >= scenario.duration {
            let end = format_duration(scenario.duration);
            let message = format!("it never starts: the run ends at {end}");
            let hint = "write an earlier start, or a longer duration";
            let at = vec!["program".into(), index.into(), "start".into()];
            notes.push(Problem::new(message, hint, at));
        }
    }
    if scenario.programs.is_empty() && scenario.program_settings != crate::model::no_programs() {
        let message = "without a [[program]] it changes nothing";
        notes.push(Problem::new(message, "leave it out", vec!["programs".into()]));
    }
    notes
}
