//! Notes on parts of a scenario that change nothing in its run. Examples are a rate that neither
//! direction uses, a setting of Vegas for a flow of CUBIC, a flow that starts after the end.
//!
//! They are not errors, since a point of a sweep may need them. A note on a single point has the
//! place of the point's value. A key is reported as without effect (`idle`) only if it has none at
//! any point.

use crate::laws::Spread;
use crate::links::{Line, tables};
use crate::model::{Flow, Kind, Scenario, TcpFlow, Video, Wire};
use crate::problem::{Key, Problem, below};
use crate::programs;
use crate::reader::Fields;
use crate::sweep::together;
use crate::tcp::{TcpSettings, endpoints};
use values::quantity::format_duration;

const LEAVE_OUT: &str = "leave it out";

/// Flows that never start, or that end within the warm-up.
pub(crate) fn unseen(scenario: &Scenario) -> Vec<Problem> {
    let mut notes = programs::unseen(scenario);
    for (index, flow) in scenario.flows.iter().enumerate() {
        let entry = &flow.entry;
        let at = |name: &str| vec!["flow".into(), index.into(), name.into()];
        let end = format_duration(scenario.duration);
        let late = late(&entry.start, entry.count, scenario.duration);
        let subject = match (late, entry.count) {
            (0, _) => None,
            (_, 1) => Some("it never starts".to_owned()),
            (late, count) if late == count => Some(format!("none of its {count} flows starts")),
            (late, count) => Some(format!("{late} of its {count} flows never start")),
        };
        if let Some(subject) = subject {
            let message = format!("{subject}: the run ends at {end}");
            let hint = "write an earlier start, or a longer duration";
            notes.push(Problem::new(message, hint, at("start")));
        }
        if entry.stop.as_ref().is_some_and(|stop| stop.most(entry.count) <= scenario.warmup) {
            let warmup = format_duration(scenario.warmup);
            let message =
                format!("it stops within the warm-up of {warmup}: totals do not include it");
            notes.push(Problem::new(
                message,
                "write a later stop, or a shorter warmup",
                at("stop"),
            ));
        }
    }
    notes
}

/// The number of flows that start at the end or later, for every possible draw. A Poisson process
/// may have more flows than can start.
fn late(start: &Spread, count: u32, duration: u64) -> u32 {
    if start.most(count) < duration {
        return 0;
    }
    (0..count).filter(|&index| start.of(index, count, || 0) >= duration).count() as u32
}

/// Keys without any effect.
pub(crate) fn idle(scenario: &Scenario) -> Vec<Problem> {
    let mut notes = Vec::new();
    if let Some(both) = &scenario.bottleneck {
        let at: Key = vec!["bottleneck".into()];
        let common = &both.common;
        let ways = [("down", &both.ways.down), ("up", &both.ways.up)];
        let has_own = |key: &str| {
            ways.map(|(_, own)| {
                own.as_ref()
                    .is_some_and(|own| given(own).iter().any(|each| together(key).contains(each)))
            })
        };
        for key in given(common) {
            if has_own(key) == [true; 2] {
                let message = format!("{key} changes nothing: down and up each have their own");
                notes.push(Problem::new(message, LEAVE_OUT, below(&at, key)));
            }
        }
        let of_way = ways.map(|(_, own)| unused(&tables(own, common)));
        for (way, (name, own)) in ways.into_iter().enumerate() {
            for (key, message) in &of_way[way] {
                let its_own = own.as_ref().is_some_and(|own| given(own).contains(key));
                let other = 1 - way;
                let place = if its_own { below(&at, name) } else { at.clone() };
                let shared = !its_own && !has_own(key)[other];
                let both = of_way[other].iter().any(|(theirs, _)| theirs == key);
                if !shared || (both && way == 0) {
                    notes.push(Problem::new(message, LEAVE_OUT, below(&place, *key)));
                }
            }
        }
    }
    for (index, entry) in scenario.links.iter().enumerate() {
        let at: Key = vec!["link".into(), index.into()];
        let idle = unused(&[&entry.wire]).into_iter();
        notes.extend(idle.map(|(key, message)| Problem::new(message, LEAVE_OUT, below(&at, key))));
    }
    for (index, flow) in scenario.flows.iter().enumerate() {
        let at: Key = vec!["flow".into(), index.into()];
        notes.extend(of_tcp(flow, &below(&at, "tcp")));
        if let Kind::Video(video) = &flow.kind {
            notes.extend(of_frames(video, &at));
        }
    }
    notes
}

/// The keys that a table contains.
fn given(wire: &Wire) -> Vec<&'static str> {
    let mut keys = Vec::new();
    wire.list(false, &mut keys);
    keys.into_iter().filter(|(_, value)| value.is_some()).map(|(key, _)| key).collect()
}

/// The time of the first step.
fn first_at<T>(steps: Option<&Vec<(u64, T)>>) -> Option<u64> {
    steps.map(|steps| steps[0].0)
}

/// Keys of a link that have no effect because of its other keys. Its own table is the first of
/// `tables`, then the common one.
fn unused(tables: &[&Wire]) -> Vec<(&'static str, String)> {
    let line = Line::of(tables);
    let mut idle = Vec::new();
    let timed = tables.iter().find(|wire| wire.rate.is_some() || wire.schedule.is_some());
    let rate = timed.and_then(|wire| wire.rate?.bps().and(first_at(wire.schedule.as_ref())));
    let delayed = tables.iter().find(|wire| wire.delay.is_some() || wire.delay_schedule.is_some());
    let delay = delayed.and_then(|wire| wire.delay.and(first_at(wire.delay_schedule.as_ref())));
    let lossy = tables.iter().find(|wire| wire.loss.is_some() || wire.loss_schedule.is_some());
    let loss = lossy.and_then(|wire| wire.loss.as_ref().and(first_at(wire.loss_schedule.as_ref())));
    for (key, first) in [("rate", rate), ("delay", delay), ("loss", loss)] {
        if first == Some(0) {
            idle.push((key, format!("{key} changes nothing: its steps begin at 0 s")));
        }
    }
    let wire = &line.impairments;
    if wire.overtake && wire.jitter.is_none() && wire.delay_steps.is_empty() {
        let message =
            "overtake changes nothing: without jitter and steps all packets have one delay";
        idle.push(("overtake", message.to_owned()));
    }
    // fq paces flows by their own pacing rates, and a user's discipline may do anything.
    let own = tc::RECORDS.iter().all(|record| record.kind != line.qdisc.kind());
    let acts = line.qdisc.shapes() || line.qdisc.kind() == "fq" || own;
    if line.steps.is_empty()
        && line.shaper.is_none()
        && !acts
        && tables.iter().any(|wire| wire.qdisc.is_some())
    {
        let message = "qdisc changes nothing: on an unlimited link no packet ever waits";
        idle.push(("qdisc", message.to_owned()));
    }
    idle
}

/// Settings of TCP for some congestion controls only, with the names of these.
const ONLY: &[(&str, &[&str])] = &[
    ("hystart", &["cubic"]),
    ("hystart_plus_plus", &["reno", "cubic"]),
    ("vegas_alpha", &["vegas"]),
    ("vegas_beta", &["vegas"]),
    ("vegas_gamma", &["vegas"]),
    ("ledbat_target", &["ledbat"]),
    ("ledbat_gain", &["ledbat"]),
    ("beta_ecn", &["reno", "cubic"]),
    ("prague_virtual_rtt", &["prague"]),
    ("prague_variant", &["prague"]),
];

fn of_tcp(flow: &Flow, at: &Key) -> Vec<Problem> {
    let set_any = |tcp: &&TcpFlow| tcp.tcp != TcpSettings::default();
    let Some(tcp) = flow.tcp().filter(set_any) else { return Vec::new() };
    let ends = endpoints(tcp.profile, tcp.congestion.as_ref(), tcp.notification(), &tcp.tcp);
    let mut set = Vec::new();
    tcp.tcp.list(false, &mut set);
    let set: Vec<_> =
        set.into_iter().filter(|(_, value)| value.is_some()).map(|(key, _)| key).collect();
    let mut notes = Vec::new();
    for (key, whose) in ONLY {
        if set.contains(key) && ends.params.own.is_none() && !whose.contains(&&*ends.congestion) {
            let message = format!(
                "{key} changes nothing: it is {}'s, and the congestion control is {}",
                whose.join("'s and "),
                ends.congestion
            );
            notes.push(Problem::new(message, LEAVE_OUT, below(at, *key)));
        }
    }
    if set.contains(&"fast_recovery") && ends.params.recovery.sack {
        let message = "fast_recovery changes nothing: SACK shows which packets are lost";
        notes.push(Problem::new(
            message,
            "write sack = false, or leave it out",
            below(at, "fast_recovery"),
        ));
    }
    notes
}

/// Settings of the model of frames, without effect if the frames are recorded.
fn of_frames(video: &Video, at: &Key) -> Vec<Problem> {
    if video.frames.is_none() {
        return Vec::new();
    }
    let mut set = Vec::new();
    video.list(false, &mut set);
    let model = ["fps", "gop", "i_ratio", "cv"];
    let unused = set.into_iter().filter(|(key, value)| value.is_some() && model.contains(key));
    let message = |key| format!("{key} changes nothing: the frames are recorded");
    unused.map(|(key, _)| Problem::new(message(key), LEAVE_OUT, below(at, key))).collect()
}
