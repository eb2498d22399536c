//! A run in slices, and its results.

use crate::request::Chosen;
use crate::text::{load, refused};
use metrics::{About, FlowAbout, LinkAbout};
use scenario::{Loaded, Problem, no_file, realised};
use serde_json::{Value, json};
use sim::{Cause, Sim};
use tables::Table;
use tc::Discipline;
use tc::disciplines::own::KIND as OWN;

/// A run in progress.
pub struct Running {
    sim: Sim,
    scenario: sim::Scenario,
    about: About,
}

/// The scenario's variants; a scenario without a sweep is the only one.
pub fn variants(loaded: &Loaded) -> Result<Vec<Loaded>, Vec<Problem>> {
    loaded.variants()
}

const IN_A_TERMINAL: &str = "run it in a terminal: sojourn run scenario.toml";

/// The parts of a run that a page can't run, each with what to do instead.
pub fn lacking(scenario: &scenario::Scenario, run: &realised::Run) -> Vec<Problem> {
    let mut problems = Vec::new();
    if scenario.has_programs() {
        problems.push(of_a_kernel("programs of the host"));
    }
    if run.offloads {
        problems.push(of_a_kernel("packets of 64 kB (offloads)"));
    }
    for link in &run.links {
        problems.extend(lacking_of(&link.qdisc));
        let steps = realised::lacking_change(link).map(|what| format!("steps of {what}"));
        problems.extend(steps.map(|what| of_a_kernel(&what)));
    }
    let mut last = "";
    for flow in run.flows.iter().filter(|flow| flow.traffic.tcp().is_some()) {
        let tcp = flow.traffic.tcp().filter(|tcp| tcp.congestion != last);
        let Some(tcp) = tcp.filter(|tcp| tcp.simulated().is_none() || tcp.params.own.is_some())
        else {
            continue;
        };
        last = &tcp.congestion;
        problems.push(match &tcp.params.own {
            Some(_) => of_python(&tcp.congestion),
            None => of_a_kernel(&format!("{}, the congestion control", tcp.congestion)),
        });
    }
    problems
}

/// Why a page can't run a discipline.
pub fn lacking_of(discipline: &Discipline) -> Option<Problem> {
    if discipline.kind() == OWN {
        return Some(of_python(&discipline.text()));
    }
    discipline.lacking().map(|what| of_a_kernel(&what))
}

fn of_python(name: &str) -> Problem {
    let message = format!("{name} is Python, which a page doesn't run");
    Problem::new(message, IN_A_TERMINAL, Vec::new())
}

fn of_a_kernel(what: &str) -> Problem {
    let hint = format!("{IN_A_TERMINAL} --engine kernel");
    Problem::new(format!("only a Linux kernel has {what}"), hint, Vec::new())
}

impl Running {
    /// A run at its start; or the refusal for the page.
    pub fn new(chosen: &Chosen, seed: u64, packets: bool) -> Result<Running, Value> {
        let problems = |problems: Vec<Problem>| refused(&problems);
        let loaded = load(&chosen.text).map_err(problems)?;
        let mut all = variants(&loaded).map_err(problems)?;
        if chosen.variant >= all.len() {
            return Err(json!({ "refused": "the scenario has no such variant" }));
        }
        let mut variant = all.swap_remove(chosen.variant);
        if let Some(qdisc) = &chosen.qdisc {
            let key = variant.qdisc_key(chosen.link.as_deref()).map_err(problems)?;
            variant =
                variant.with(&[(key, Some(qdisc.as_str().into()))], &no_file).map_err(problems)?;
        }
        let run = variant.scenario.realise(seed).expect("a variant is not a sweep");
        let lacks = lacking(&variant.scenario, &run);
        if !lacks.is_empty() {
            return Err(refused(&lacks));
        }
        let mut scenario = realised::simulated(&run).expect("it lacks nothing");
        scenario.record.packets |= packets;
        let about = about(&run);
        Ok(Running { sim: Sim::new(&scenario), scenario, about })
    }

    /// The links and flows of the run.
    pub fn about(&self) -> Value {
        let About { links, flows, causes, .. } = &self.about;
        let links: Vec<Value> = links
            .iter()
            .zip(&self.scenario.links)
            .map(|(link, spec)| {
                let steps: Vec<_> = spec.rate.iter().map(|step| (step.at_ns, step.bps)).collect();
                json!({
                    "name": link.name,
                    "qdisc": link.qdisc,
                    "sampled": spec.sampled,
                    "rate": steps,
                    "shaped_bps": spec.shaper.map(|shaper| shaper.bps),
                    "delay_ns": spec.delay_ns,
                    "ring": spec.ring.map(|ring| ring.descriptors),
                })
            })
            .collect();
        let flows: Vec<Value> = flows
            .iter()
            .map(|flow| {
                json!({
                    "name": flow.name,
                    "kind": flow.kind,
                    "congestion": flow.congestion,
                    "group": flow.group,
                    "path": flow.path,
                })
            })
            .collect();
        json!({
            "links": links,
            "flows": flows,
            "causes": causes,
            "duration_ns": self.about.duration_ns,
            "warmup_ns": self.about.warmup_ns,
        })
    }

    /// Runs about this many further events. `done` is true once the run has ended.
    pub fn go(&mut self, events: u64) -> Value {
        let done = self.sim.run(events);
        json!({ "done": done, "at_ns": self.sim.now().0, "end_ns": self.scenario.duration_ns })
    }

    fn tables(mut self) -> (Vec<Table>, About) {
        while !self.sim.run(u64::MAX) {}
        (self.sim.into_tables(), self.about)
    }

    /// Its tables and its numbers.
    pub fn finished(self) -> (Vec<Table>, metrics::Value) {
        let (tables, about) = self.tables();
        macro_rules! given {
            ($($name:ident),+) => {
                metrics::Tables { $( $name: {
                    let table = tables.iter().find(|table| table.name == stringify!($name));
                    let table = table.expect("the simulator writes every table").clone();
                    tables::$name::Columns::from_table(table).expect("its columns are declared")
                }, )+ }
            };
        }
        let of = given!(links, flows, sojourn, rtt, probe, drops, transfers, engine);
        let numbers = metrics::of_seed(&about, &of).into();
        (tables, numbers)
    }

    /// The packets, drops and marks between two times; packets also if they waited then.
    pub fn packets(self, from_ns: u64, until_ns: u64) -> Vec<Table> {
        let (all, _) = self.tables();
        let mut packets = tables::packets::Columns::default();
        let mut drops = tables::drops::Columns::default();
        for table in all {
            match table.name {
                "packets" => {
                    let all = tables::packets::Columns::from_table(table).expect("as declared");
                    let waited = |row: &tables::packets::Row| {
                        row.t_ns >= from_ns && row.t_ns.saturating_sub(row.sojourn_ns) <= until_ns
                    };
                    all.rows().filter(waited).for_each(|row| packets.push(row));
                }
                "drops" => {
                    let all = tables::drops::Columns::from_table(table).expect("as declared");
                    let within =
                        |row: &tables::drops::Row| (from_ns..=until_ns).contains(&row.t_ns);
                    all.rows().filter(within).for_each(|row| drops.push(row));
                }
                _ => {}
            }
        }
        vec![packets.into_table(), drops.into_table()]
    }
}

/// The facts of the run that numbers depend on.
fn about(run: &realised::Run) -> About {
    let link =
        |link: &realised::Link| LinkAbout { name: link.name.clone(), qdisc: link.qdisc.text() };
    let flow = |flow: &realised::Flow| FlowAbout {
        name: flow.name.clone(),
        kind: flow.traffic.kind().word().to_owned(),
        congestion: flow.traffic.tcp().map(|tcp| tcp.congestion.clone().into_owned()),
        group: flow.group.into(),
        path: flow.path.clone(),
        finite: flow.traffic.finite(),
    };
    About {
        duration_ns: run.duration_ns,
        warmup_ns: run.warmup_ns,
        links: run.links.iter().map(link).collect(),
        flows: run.flows.iter().map(flow).collect(),
        causes: Cause::ALL.iter().map(|cause| cause.word().to_owned()).collect(),
    }
}
