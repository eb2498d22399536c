//! Programs of the host in the guest: `[[program]]`, the flows of kind `program`, and `[programs]`.
//!
//! In a word of a `[[program]]` `{link:NAME}` stands for the program's network device at that link,
//! and `{address:NODE}` for an address of that node. In a word of a flow's program `{server}` stands
//! for the server's address and `{address}` for the program's own. Other braces are left unchanged.
//! `files` name text files beside the scenario, which the program finds, read-only, in its working
//! folder. Their text is in `[code]`, as that of a discipline's file, so a scenario is complete
//! without them.
//!
//! The guest runs the programs with rights of its own kernel only; `sees` lists the folders of the
//! host that they may read.

use crate::command::{places, split};
use crate::forms::Code;
use crate::links::{Link, links_of};
use crate::model::{Flow, ProgramEntry, ProgramPair, Scenario, base_names};
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
    /// The node that it runs on, or that its host is at.
    pub node: String,
    /// The flow whose end it is; `None`: it runs on the node itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<FlowEnd>,
    /// The command as written.
    pub command: String,
    /// Its words, with `{link:...}` and the others.
    pub words: Vec<String>,
    /// The time of its start, ns; a flow's server starts before the run.
    pub start_ns: u64,
    /// The time at which it gets SIGTERM, ns; `None`: at the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_ns: Option<u64>,
    /// Its files: name and text.
    pub files: Vec<(String, String)>,
    /// Environment variables beside the usual ones.
    pub env: Vec<(String, String)>,
}

/// The end of a flow that is a program.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct FlowEnd {
    /// The flow, by its number.
    pub flow: u32,
    /// It is the flow's server.
    pub server: bool,
    /// Its host is the flow's source.
    pub source: bool,
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

/// The programs on nodes.
pub(crate) fn on_nodes(scenario: &Scenario) -> impl Iterator<Item = Program> + '_ {
    let entries = names(&scenario.programs).into_iter().zip(&scenario.programs);
    entries.map(|(name, entry)| Program {
        name,
        node: entry.node.clone(),
        end: None,
        command: entry.command.clone(),
        words: split(&entry.command).unwrap_or_default(),
        start_ns: entry.start,
        stop_ns: None,
        files: texts(&entry.files, &scenario.code),
        env: entry.env.0.clone(),
    })
}

/// A realised flow, as its programs need it.
pub(crate) struct FlowPlace<'a> {
    /// Its number.
    pub flow: u32,
    /// Its name.
    pub name: &'a str,
    /// The nodes of its source and its target.
    pub nodes: [&'a str; 2],
    /// Its start, ns.
    pub start_ns: u64,
    /// Its stop, ns.
    pub stop_ns: Option<u64>,
}

/// The server and the client of a flow; empty: its entry has no programs.
pub(crate) fn ends(scenario: &Scenario, entry: &Flow, at: FlowPlace<'_>) -> Vec<Program> {
    let Some(pair) = entry.programs() else { return Vec::new() };
    let one = |server: bool| {
        let command = if server { &pair.server } else { &pair.client };
        let source = server == server_sends(entry, pair);
        Program {
            name: end_name(at.name, server),
            node: at.nodes[usize::from(!source)].to_owned(),
            end: Some(FlowEnd { flow: at.flow, server, source }),
            command: command.clone(),
            words: split(command).unwrap_or_default(),
            start_ns: if server { 0 } else { at.start_ns },
            stop_ns: at.stop_ns,
            files: texts(&pair.files, &scenario.code),
            env: pair.env.0.clone(),
        }
    };
    vec![one(true), one(false)]
}

/// Whether a flow's source is its server. A client is at home unless the scenario says otherwise.
fn server_sends(entry: &Flow, pair: &ProgramPair) -> bool {
    match pair.sender {
        Some(sender) => sender == "server",
        None => entry.entry.direction != Some("up"),
    }
}

/// The name of a flow's server or client.
fn end_name(flow: &str, server: bool) -> String {
    format!("{flow}-{}", if server { "server" } else { "client" })
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
    let pairs = || scenario.flows.iter().filter(|flow| flow.programs().is_some());
    let number = programs.len() + 2 * pairs().map(|flow| flow.entry.count as usize).sum::<usize>();
    if number > MAX_PROGRAMS {
        let message = format!("{number} programs are too many");
        let hint = format!("the most is {MAX_PROGRAMS}, and each flow of kind program has two");
        let place = if pairs().next().is_some() { "flow" } else { "program" };
        return vec![Problem::new(message, hint, vec![place.into()])];
    }
    problems.extend(check_pairs(scenario));
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

/// The problems of the flows of kind `program`.
fn check_pairs(scenario: &Scenario) -> Vec<Problem> {
    let mut problems = Vec::new();
    let on_nodes = names(&scenario.programs);
    for (index, (flow, base)) in scenario.flows.iter().zip(base_names(&scenario.flows)).enumerate()
    {
        let Some(pair) = flow.programs() else { continue };
        let at: Key = vec!["flow".into(), index.into()];
        let mut refuse = |message: String, hint: String, key: &str| {
            problems.push(Problem::new(message, hint, below(&at, key)));
        };
        let count = flow.entry.count;
        let names = (1..=count).flat_map(|number| {
            let name = if count == 1 { base.clone() } else { format!("{base}.{number}") };
            [true, false].map(|server| end_name(&name, server))
        });
        if let Some(name) = names.into_iter().find(|name| on_nodes.contains(name)) {
            let message = format!("its program {} has the name of a [[program]]", in_quotes(&name));
            refuse(message, "give one of them another name".into(), "name");
        }
        for (key, command) in [("server", &pair.server), ("client", &pair.client)] {
            let words = split(command).unwrap_or_default();
            if let Some((kind, name)) = words.iter().flat_map(|word| places(word)).next() {
                let message = format!("{{{kind}:{name}}} stands for nothing on a flow's host");
                let hint = "write {server} or {address}; a [[program]] runs on a node".to_owned();
                refuse(message, hint, key);
            }
        }
        if flow.entry.dscp != 0 {
            let message = "a program chooses the DS field of its packets".to_owned();
            refuse(message, "leave dscp out, and set it by the program's options".into(), "dscp");
        }
        if flow.entry.hosts.is_some() {
            let message = "a program's host has nothing else on it".to_owned();
            refuse(message, "leave hosts out".into(), "hosts");
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
    if !scenario.has_programs() && scenario.program_settings != crate::model::no_programs() {
        let message = "without a program it changes nothing";
        notes.push(Problem::new(message, "leave it out", vec!["programs".into()]));
    }
    notes
}
