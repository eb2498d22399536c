//! The meaning of a scenario, key by key: links resolved, defaults filled in, numbers as laws
//! rather than as drawn.
//!
//! Two scenarios with equal meanings differ only in wording: `link_layer = "none"`, for example,
//! may be written or left out. A path is (table, name, key, ...): ("link", "up", "rate"), ("flow",
//! "page", "tcp", "min_rto"); a key of the top table is (key,). `realise` returns the same for an
//! engine, with the numbers that a seed draws.

use crate::code::CODE;
use crate::forms::{LOSS_SCHEDULE, rows_of_words};
use crate::laws::Spread;
use crate::links::{HOME, Line, Routes, links_of, way_of};
use crate::model::{Scenario, base_names};
use crate::programs;
use crate::reader::Tables;
use crate::wire::{Loss, duplicate_text, jitter_text, reorder_text, slot_text};
use link::DelayStep;
use sha2::{Digest, Sha256};
use values::Value;
use values::quantity::{format_duration, format_rate};

/// Every setting by its path; `None`: it has no value.
pub type Meaning = Vec<(Vec<String>, Option<Value>)>;

impl Scenario {
    /// Every setting of the links and flows by its path, with values as a file would contain them.
    pub fn meaning(&self) -> Meaning {
        let mut settings: Meaning =
            vec![(vec!["offloads".into()], Some(Value::Bool(self.offloads)))];
        for (file, text) in &self.code.0 {
            let sum: String =
                Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
            settings.push((vec![CODE.into(), file.clone()], Some(format!("sha256 {sum}").into())));
        }
        let links = links_of(self);
        for link in &links {
            for (key, value) in line(&link.line) {
                settings.push((vec!["link".into(), link.name.clone(), key.into()], value));
            }
        }
        for (name, program) in programs::names(&self.programs).into_iter().zip(&self.programs) {
            for (key, value) in
                program.list_whole(true).into_iter().filter(|(key, _)| *key != "name")
            {
                settings.push((vec!["program".into(), name.clone(), key.into()], value));
            }
        }
        if self.has_programs() {
            for (key, value) in self.program_settings.list_whole(true) {
                settings.push((vec!["programs".into(), key.into()], value));
            }
        }
        let mut routes = Routes::new(&links);
        for (name, flow) in base_names(&self.flows).into_iter().zip(&self.flows) {
            let entry = &flow.entry;
            let way = way_of(entry, &mut routes, self.dumbbell(), flow.probe());
            let takes = way.map_or(0, |way| way.delay(&links));
            for (key, mut value) in flow.list_whole(true) {
                let path = vec!["flow".into(), name.clone(), key.into()];
                match key {
                    // The name is in the path.
                    "name" => continue,
                    "start" => value = Some(law(&entry.start)),
                    "stop" => value = entry.stop.as_ref().map(law),
                    "direction" if self.dumbbell() => {
                        value = Some(
                            entry
                                .direction
                                .unwrap_or(if flow.probe() { "up" } else { "down" })
                                .into(),
                        );
                    }
                    "hosts_at" if self.dumbbell() => {
                        let at = entry.hosts_at.as_deref().unwrap_or(HOME);
                        value = entry.hosts.as_ref().map(|_| at.into());
                    }
                    // A flow without an RTT has the RTT of its links.
                    "rtt" => {
                        let links_take = Value::from(format_duration(takes));
                        value = entry.rtt.as_ref().map(law).filter(|rtt| *rtt != links_take);
                    }
                    "tcp" => {
                        let tcp_settings =
                            flow.tcp().map(|tcp| tcp.tcp.list_whole(true)).unwrap_or_default();
                        for (setting, value) in tcp_settings {
                            let mut path = path.clone();
                            path.push(setting.into());
                            settings.push((path, value));
                        }
                        continue;
                    }
                    _ => {}
                }
                settings.push((path, value));
            }
        }
        settings
    }
}

fn line(line: &Line) -> Vec<(&'static str, Option<Value>)> {
    let steps = &line.steps;
    let scheduled = steps.len() > 1;
    let row = |&(at, bps): &(u64, u64)| {
        Value::List(vec![format_duration(at).into(), format_rate(bps).into()])
    };
    let schedule = Value::List(steps.iter().map(row).collect());
    let wire = &line.impairments;
    let delays = |step: &DelayStep| {
        Value::List(vec![format_duration(step.at_ns).into(), format_duration(step.delay_ns).into()])
    };
    let delayed = wire.delay_steps.len() > 1;
    let delay_schedule = Value::List(wire.delay_steps.iter().map(delays).collect());
    let change = |(at, qdisc): &(u64, tc::Discipline)| (*at, qdisc.text());
    let changes: Vec<(u64, String)> = line.qdisc_steps.iter().map(change).collect();
    let loss_period = if let Loss::Steps { period, .. } = line.loss { period } else { None };
    let pinned = Value::List(line.pinned.iter().map(|queue| Value::Int((*queue).into())).collect());
    vec![
        (
            "rate",
            Some(steps.first().map_or("unlimited".into(), |(_, bps)| format_rate(*bps).into())),
        ),
        ("schedule", scheduled.then_some(schedule)),
        ("repeat", line.period.filter(|_| scheduled).map(|ns| format_duration(ns).into())),
        ("delay", Some(format_duration(line.delay).into())),
        ("qdisc", Some(line.qdisc.text().into())),
        ("qdisc_schedule", (!changes.is_empty()).then(|| rows_of_words(&changes))),
        ("link_layer", Some(tc::layer::write_layer(&line.framing).into())),
        ("loss", Some(line.loss.text().into())),
        ("loss_schedule", line.loss.steps().map(|steps| (LOSS_SCHEDULE.write)(steps))),
        ("loss_repeat", loss_period.map(|ns| format_duration(ns).into())),
        ("jitter", wire.jitter.map(|jitter| jitter_text(&jitter).into())),
        ("reorder", wire.reorder.map(|reorder| reorder_text(&reorder).into())),
        ("duplicate", wire.duplicate.map(|duplicate| duplicate_text(&duplicate).into())),
        ("slot", wire.slot.map(|slot| slot_text(&slot).into())),
        ("ecn", wire.ecn.map(|remark| remark.name().into())),
        ("overtake", Some(Value::Bool(wire.overtake))),
        ("delay_schedule", delayed.then_some(delay_schedule)),
        (
            "delay_repeat",
            wire.delay_period_ns.filter(|_| delayed).map(|ns| format_duration(ns).into()),
        ),
        ("police", line.police.as_ref().map(|police| police.text().into())),
        ("replay_window", line.replay_window.map(|packets| Value::Int(packets.into()))),
        ("shaper", line.shaper.as_ref().map(|shaper| shaper.text().into())),
        ("queues", line.queues.map(|queues| Value::Int(queues.into()))),
        ("pinned", (!line.pinned.is_empty()).then_some(pinned)),
        ("ring", line.ring.map(|ring| Value::Int(ring.into()))),
        ("bql", Some(Value::Bool(line.bql))),
        ("coalesce", Some(format_duration(line.coalesce).into())),
    ]
}

/// The law as written; a law with the same number for every flow is written as that number.
fn law(spread: &Spread) -> Value {
    let values = spread.values();
    let steps = matches!(spread, Spread::Every(_) | Spread::Poisson { .. });
    let same = !steps && values.iter().min() == values.iter().max();
    if same { format_duration(spread.least()).into() } else { spread.document(format_duration) }
}
