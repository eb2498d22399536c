//! Checks across keys. A flow's RTT is not shorter than its links, the two forms are not mixed, and
//! names are unique. The tables of a run have a size that can be stored.
//!
//! Each check returns problems with their keys; the loader adds the lines.

use crate::amount::{check_amount, check_dropped};
use crate::forms::{LinkRate, MAX_FLOWS, Notification};
use crate::laws::Spread;
use crate::links::{HOME, Line, Routes, links_of, tables, way_of};
use crate::model::{Bottleneck, Flow, FlowEntry, Kind, Scenario, Wire, base_names};
use crate::problem::{Key, Part, Problem, below};
use crate::programs;
use crate::tcp::endpoints;
use crate::wire::Loss;
use std::collections::BTreeMap;
use values::quantity::{format_duration, format_rate};
use values::text::in_quotes;

/// The most links in a row: a packet counts its hops in eight bits.
const MAX_HOPS: usize = 250;
/// The most rows of one time line: about 1 GB in memory.
const MAX_ROWS: u128 = 20_000_000;

type Problems = Vec<Problem>;

fn report(problems: &mut Problems, message: impl Into<String>, hint: impl Into<String>, key: Key) {
    problems.push(Problem::new(message, hint, key));
}

fn key(parts: &[&str]) -> Key {
    parts.iter().map(|part| Part::from(*part)).collect()
}

/// Returns the problems across keys, in the order of the file.
pub(crate) fn check(scenario: &Scenario) -> Problems {
    let mut problems = Problems::new();
    run(scenario, &mut problems);
    form(scenario, &mut problems);
    links(scenario, &mut problems);
    // Routes and RTTs are undefined while the links are wrong.
    if problems.is_empty() {
        flows(scenario, &mut problems);
        problems.extend(programs::check(scenario));
        record(scenario, &mut problems);
    }
    problems
}

/// Each word that occurs more than once, in order, with its count and its last index.
fn repeated(words: &[String]) -> Vec<(&str, usize, usize)> {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut order = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let entry = counts.entry(word).or_insert_with(|| {
            order.push(&**word);
            (0, 0)
        });
        *entry = (entry.0 + 1, index);
    }
    order
        .into_iter()
        .map(|word| (word, counts[word].0, counts[word].1))
        .filter(|each| each.1 > 1)
        .collect()
}

fn run(scenario: &Scenario, problems: &mut Problems) {
    if scenario.warmup >= scenario.duration {
        let lengths = format!(
            "{} of {}",
            format_duration(scenario.warmup),
            format_duration(scenario.duration)
        );
        let message = format!("the warm-up leaves nothing of the run: {lengths}");
        report(problems, message, "write a shorter warmup", key(&["warmup"]));
    }
    if scenario.flows.is_empty() {
        report(
            problems,
            "there is no [[flow]]",
            "add one: [[flow]] with kind = \"bulk\"",
            Key::new(),
        );
    }
    let total: u64 = scenario.flows.iter().map(|flow| u64::from(flow.entry.count)).sum();
    if total > MAX_FLOWS.into() {
        let hint = format!("the most is {MAX_FLOWS} in all");
        report(problems, format!("{total} flows are too many"), hint, key(&["flow"]));
    }
    for (name, times, last) in repeated(&base_names(&scenario.flows)) {
        let message = format!("{times} flows have the name {}", in_quotes(name));
        let place = vec!["flow".into(), last.into(), "name".into()];
        report(problems, message, "give each its own name", place);
    }
}

fn form(scenario: &Scenario, problems: &mut Problems) {
    let dumbbell = scenario.dumbbell();
    if !dumbbell && scenario.links.is_empty() {
        let message = "there is neither a [bottleneck] nor a [[link]]";
        report(problems, message, "add a table [bottleneck] with rate and delay", Key::new());
    }
    if dumbbell && !scenario.links.is_empty() {
        let message = "[bottleneck] and [[link]] are both given";
        report(problems, message, "a scenario has one form; keep one", key(&["link"]));
        return;
    }
    for (index, flow) in scenario.flows.iter().enumerate() {
        let at = |name: &str| vec!["flow".into(), index.into(), name.into()];
        let entry = &flow.entry;
        let given = |name: &str| match name {
            "from" => entry.source.is_some(),
            "to" => entry.target.is_some(),
            "via" => entry.via.is_some(),
            _ => entry.direction.is_some(),
        };
        let unexpected: &[&str] = if dumbbell { &["from", "to", "via"] } else { &["direction"] };
        for name in unexpected.iter().filter(|name| given(name)) {
            let hint = if dumbbell {
                "with a [bottleneck] write direction = \"up\" or \"down\""
            } else {
                "write from and to"
            };
            report(
                problems,
                format!("{name} belongs to the other form of a scenario"),
                hint,
                at(name),
            );
        }
        let needed: &[&str] = if dumbbell { &[] } else { &["from", "to"] };
        for name in needed.iter().filter(|name| !given(name)) {
            let hint = format!("write {name} = \"...\" with a node that a [[link]] names");
            report(problems, format!("{name} is missing"), hint, at(name));
        }
    }
}

fn links(scenario: &Scenario, problems: &mut Problems) {
    if let Some(both) = &scenario.bottleneck {
        bottleneck(both, problems);
    }
    for (index, entry) in scenario.links.iter().enumerate() {
        let at = vec!["link".into(), index.into()];
        let resolved = Line::of(&[&entry.wire]);
        wire(&entry.wire, &at, problems);
        line(&resolved, &[&entry.wire], &at, problems);
        gate(&resolved, &[(at.clone(), &entry.wire)], problems);
        if entry.ends.source == entry.ends.target {
            let message = format!("from and to are both {}", in_quotes(&entry.ends.source));
            report(problems, message, "a link joins two nodes", below(&at, "to"));
        }
    }
    if scenario.links.is_empty() {
        return;
    }
    let resolved = links_of(scenario);
    let names: Vec<_> = resolved.iter().map(|link| link.name.clone()).collect();
    for (name, _, _) in repeated(&names) {
        let first = resolved.iter().find(|link| link.name == name).expect("it is there");
        let message = format!("several links have the name {}", in_quotes(name));
        report(problems, message, "give each its own name", below(&first.key, "name"));
    }
}

fn bottleneck(both: &Bottleneck, problems: &mut Problems) {
    let common = key(&["bottleneck"]);
    wire(&both.common, &common, problems);
    let mut lines = Problems::new();
    let mut gates = Problems::new();
    for (direction, own) in [("down", &both.ways.down), ("up", &both.ways.up)] {
        let at = below(&common, direction);
        if let Some(own) = own {
            wire(own, &at, problems);
        }
        let resolved = Line::of(&tables(own, &both.common));
        let mut new = Problems::new();
        line(&resolved, &tables(own, &both.common), &common, &mut new);
        new.retain(|problem| !lines.iter().any(|known| known.message == problem.message));
        lines.extend(new.clone());
        problems.append(&mut new);
        let mut places: Vec<_> = own.iter().map(|own| (at.clone(), own)).collect();
        places.push((common.clone(), &both.common));
        gate(&resolved, &places, &mut new);
        new.retain(|problem| !gates.contains(problem));
        gates.extend(new.clone());
        problems.append(&mut new);
    }
}

/// Problems within one table.
fn wire(wire: &Wire, at: &Key, problems: &mut Problems) {
    let times = ends(wire.delay_schedule.as_ref());
    steps("delay", times, wire.delay_repeat, wire.delay.is_some(), at, problems);
    let times = ends(wire.loss_schedule.as_ref());
    steps("loss", times, wire.loss_repeat, wire.loss.is_some(), at, problems);
    if let (Some(_), Some(loss)) = (&wire.loss_schedule, &wire.loss)
        && !matches!(loss, Loss::Random(_))
    {
        let message = format!("steps are of independent losses, and loss is {}", loss.text());
        let hint = "write a percentage in loss, or leave the steps out";
        report(problems, message, hint, below(at, "loss_schedule"));
    }
    let Some(schedule) = &wire.schedule else {
        if wire.repeat.is_some() {
            let hint = "give a schedule, or leave repeat out";
            report(problems, "repeat without a schedule", hint, below(at, "repeat"));
        }
        return;
    };
    let (first, last) = (schedule[0].0, schedule[schedule.len() - 1].0);
    if wire.rate == Some(LinkRate::Unlimited) {
        let hint = "give a rate, or leave the schedule out";
        report(problems, "a schedule on an unlimited link", hint, below(at, "schedule"));
    }
    if wire.repeat.is_some_and(|repeat| repeat <= last) {
        let last = format_duration(last);
        let message = format!("repeat is not after the last step at {last}");
        report(problems, message, format!("write more than {last}"), below(at, "repeat"));
    }
    let bps = wire.rate.and_then(LinkRate::bps);
    if first > 0 && bps.is_none() {
        let message =
            format!("the rate before the first step at {} is missing", format_duration(first));
        report(problems, message, "give a rate, or a first step at \"0 s\"", below(at, "schedule"));
    }
    if schedule.iter().all(|(_, bps)| *bps == 0) && wire.rate.is_none() {
        let message = "every step is an outage: nothing is ever sent";
        report(problems, message, "give a step above zero", below(at, "schedule"));
    }
}

/// The checks for the steps of `quantity`, the delay or the loss: `times` are those of the first
/// step and of the last, and `before` is whether the table has a value before the steps.
fn steps(
    quantity: &str,
    times: Option<(u64, u64)>,
    repeat: Option<u64>,
    before: bool,
    at: &Key,
    problems: &mut Problems,
) {
    let [steps, again] = ["schedule", "repeat"].map(|key| format!("{quantity}_{key}"));
    let Some((first, last)) = times else {
        if repeat.is_some() {
            let message = format!("{again} without a {steps}");
            let hint = format!("give a {steps}, or leave {again} out");
            report(problems, message, hint, below(at, again.as_str()));
        }
        return;
    };
    if repeat.is_some_and(|repeat| repeat <= last) {
        let last = format_duration(last);
        let message = format!("{again} is not after the last step at {last}");
        report(problems, message, format!("write more than {last}"), below(at, again.as_str()));
    }
    if first > 0 && !before {
        let first = format_duration(first);
        let message = format!("the {quantity} before the first step at {first} is missing");
        let hint = format!("give a {quantity}, or a first step at \"0 s\"");
        report(problems, message, hint, below(at, steps.as_str()));
    }
}

/// The times of the first step and of the last.
fn ends<T>(steps: Option<&Vec<(u64, T)>>) -> Option<(u64, u64)> {
    steps.map(|steps| (steps[0].0, steps[steps.len() - 1].0))
}

/// Keys that a link lacks once all its tables are read.
fn line(line: &Line, tables: &[&Wire], at: &Key, problems: &mut Problems) {
    if line.steps.is_empty() && !tables.iter().any(|wire| wire.rate == Some(LinkRate::Unlimited)) {
        report(
            problems,
            "rate is missing",
            "write rate = \"20 Mbit/s\", or \"unlimited\"",
            below(at, "rate"),
        );
    }
    if line.impairments.slot.is_some() && line.impairments.reorders() {
        let message = "slot keeps packets in order, but other keys here let packets overtake";
        let hint = "leave out slot, or leave out reorder and overtake";
        report(problems, message, hint, below(at, "slot"));
    }
    if line.replay_window.is_some() && line.impairments.reorders() {
        let message = "replay_window counts overtaking in queues, but the wire reorders, too";
        let hint = "leave out replay_window, or leave out reorder and overtake";
        report(problems, message, hint, below(at, "replay_window"));
    }
    if tables.iter().all(|wire| wire.delay.is_none() && wire.delay_schedule.is_none()) {
        let hint = "write delay = \"10 ms\", the propagation one way";
        report(problems, "delay is missing", hint, below(at, "delay"));
    }
    if !line.steps.is_empty() || line.shaper.is_some() {
        return;
    }
    if let Some(error) = line.qdisc.without_a_rate() {
        report(problems, error.problem, error.hint, below(at, "qdisc"));
    }
}

/// Problems of a card with several queues; `report` takes a message, a hint and the key at fault.
fn card(line: &Line, report: &mut dyn FnMut(String, String, &'static str)) {
    let kind = line.qdisc.kind();
    let Some(count) = line.queues else {
        if line.qdisc.record().for_each_queue {
            let message =
                format!("{kind} is for a card with several queues, and this link has one");
            report(message, "write queues = 4 into the link".into(), "qdisc");
        } else if !line.pinned.is_empty() {
            let hint = "write queues = 4, or leave pinned out";
            report("pinned without queues".into(), hint.into(), "pinned");
        }
        return;
    };
    if !line.qdisc.record().for_each_queue {
        let message = format!("{kind} is one discipline for all {count} queues of the card");
        let hint = format!("write mq {kind}, one for each, or leave queues out");
        return report(message, hint, "queues");
    }
    if let Some(queue) = line.pinned.iter().find(|queue| **queue >= count) {
        let message = format!("pinned has queue {queue}, and there are 0 to {}", count - 1);
        report(message, "write queues that exist, or raise queues".into(), "pinned");
    }
    for (key, given) in [("ring", line.ring.is_some()), ("shaper", line.shaper.is_some())] {
        if given {
            let message = format!("{key} is for one queue, and this card has {count}");
            report(message, format!("leave {key} out, or queues"), key);
        }
    }
}

/// Problems of the steps of a discipline's parameters; `at` is their key.
fn qdisc_steps(line: &Line, at: Key, problems: &mut Problems) {
    if let Some((ns, error)) = &line.wrong_step {
        let message = format!("the step at {}: {}", format_duration(*ns), error.problem);
        report(problems, message, error.hint.clone(), at);
    } else if !line.qdisc_steps.is_empty() && line.steps.is_empty() && line.shaper.is_none() {
        let message = "steps of a discipline on an unlimited link, where no packet ever waits";
        report(problems, message, "give the link a rate or a shaper", at);
    }
}

/// Whether a table has a key.
type HasKey = fn(&Wire) -> bool;

/// Problems between discipline and transmitter. `tables` are the places of the link's keys, the
/// link's own table first.
fn gate(line: &Line, tables: &[(Key, &Wire)], problems: &mut Problems) {
    let place = |name: &str, has_key: HasKey| {
        let table = tables.iter().find(|(_, wire)| has_key(wire)).or(tables.last());
        below(&table.expect("a link has a table").0, name)
    };
    let queues = |wire: &Wire| wire.queues.is_some();
    card(line, &mut |message, hint, key| match key {
        "qdisc" => report(problems, message, hint, place(key, |wire| wire.qdisc.is_some())),
        "pinned" => report(problems, message, hint, place(key, |wire| wire.pinned.is_some())),
        "ring" => report(problems, message, hint, place(key, |wire| wire.ring.is_some())),
        "shaper" => report(problems, message, hint, place(key, |wire| wire.shaper.is_some())),
        _ => report(problems, message, hint, place("queues", queues)),
    });
    qdisc_steps(line, place("qdisc_schedule", |wire| wire.qdisc_schedule.is_some()), problems);
    if line.ring.is_none() {
        let bql: HasKey = |wire| wire.bql.is_some();
        let coalesce: HasKey = |wire| wire.coalesce.is_some();
        for (name, given, has_key) in
            [("bql", line.bql, bql), ("coalesce", line.coalesce > 0, coalesce)]
        {
            if given {
                let message = format!("{name} needs a driver's ring, and this link has none");
                let hint = format!("write ring = 256, or leave {name} out");
                report(problems, message, hint, place(name, has_key));
            }
        }
        return;
    }
    let unlimited = tables.iter().any(|(_, wire)| wire.rate == Some(LinkRate::Unlimited));
    if line.steps.is_empty() && line.shaper.is_none() && unlimited {
        let message = "a ring on an unlimited link is always empty";
        let hint = "give the link a rate or a shaper, or leave ring out";
        report(problems, message, hint, place("ring", |wire| wire.ring.is_some()));
    }
}

fn flows(scenario: &Scenario, problems: &mut Problems) {
    let links = links_of(scenario);
    let mut routes = Routes::new(&links);
    let mut ways = Vec::new();
    for (index, each) in scenario.flows.iter().enumerate() {
        let at: Key = vec!["flow".into(), index.into()];
        flow(each, &at, problems);
        let way = match way_of(&each.entry, &mut routes, scenario.dumbbell(), each.probe()) {
            Ok(way) => way,
            Err(error) => {
                report(problems, error.message, error.hint, below(&at, error.key));
                continue;
            }
        };
        let ends = [&*links[way.path[0]].tail, &*links[way.back[0]].tail];
        hosts(&each.entry, ends, &at, problems);
        let hops = way.path.len().max(way.back.len());
        if hops > MAX_HOPS {
            let message = format!("its route crosses {hops} links");
            report(problems, message, format!("the most is {MAX_HOPS}"), below(&at, "to"));
        }
        let shortest = way.delay(&links);
        if let Some(rtt) = each.entry.rtt.as_ref().filter(|rtt| rtt.least() < shortest) {
            let (short, least) = (format_duration(rtt.least()), format_duration(shortest));
            let message = format!("an RTT of {short} is less than its links take: {least}");
            let hint = format!("write at least \"{least}\", or shorten the delays");
            report(problems, message, hint, below(&at, "rtt"));
        }
        let too_much = check_amount(each, scenario, &way, &links, &at);
        if too_much.is_empty() {
            ways.push(way);
        }
        problems.extend(too_much);
    }
    tunnels(scenario, problems);
    if ways.len() == scenario.flows.len() {
        problems.extend(check_dropped(&scenario.flows, &ways, &links, scenario.duration));
    }
}

/// The most tunnels that a scenario may have.
const MAX_TUNNELS: usize = 255;

fn tunnels(scenario: &Scenario, problems: &mut Problems) {
    let mut names: Vec<&str> =
        scenario.flows.iter().filter_map(|flow| flow.entry.tunnel.as_deref()).collect();
    names.sort_unstable();
    names.dedup();
    if names.len() > MAX_TUNNELS {
        let hint = format!("the most is {MAX_TUNNELS} in all");
        report(problems, format!("{} tunnels are too many", names.len()), hint, key(&["flow"]));
    }
    let ends: Vec<&Wire> = match &scenario.bottleneck {
        Some(both) => both.ways.up.iter().chain(&both.ways.down).chain([&both.common]).collect(),
        None => scenario.links.iter().map(|entry| &entry.wire).collect(),
    };
    if names.is_empty() && ends.iter().any(|wire| wire.replay_window.is_some()) {
        let place = if scenario.dumbbell() { "bottleneck" } else { "link" };
        let hint = "write tunnel = \"vpn\" into the tunnel's flows, or leave replay_window out";
        report(problems, "replay_window without a tunnel", hint, key(&[place]));
    }
}

/// Whether any flow stops before it starts, for every possible draw.
fn stops_unstarted(start: &Spread, stop: &Spread, count: u32) -> bool {
    (0..count).any(|index| stop.of(index, count, || u64::MAX) <= start.of(index, count, || 0))
}

fn flow(flow: &Flow, at: &Key, problems: &mut Problems) {
    let entry = &flow.entry;
    let count = entry.count;
    if entry.stop.as_ref().is_some_and(|stop| stops_unstarted(&entry.start, stop, count)) {
        report(problems, "it stops before it starts", "write a later stop", below(at, "stop"));
    }
    for (name, what, spread) in [
        ("rtt", "RTTs", entry.rtt.as_ref()),
        ("start", "starts", Some(&entry.start)),
        ("stop", "stops", entry.stop.as_ref()),
    ] {
        if let Some(Spread::List(values)) =
            spread.filter(|each| each.values().len() > count as usize)
        {
            let hint = format!("count is {count}: drop some or raise count");
            report(
                problems,
                format!("{} {what} for {count} flows", values.len()),
                hint,
                below(at, name),
            );
        }
    }
    match &flow.kind {
        Kind::Bulk(tcp, _) | Kind::Transfers(tcp, _) => tcp_flow(tcp, at, problems),
        Kind::Requests(tcp, _) => {
            tcp_flow(tcp, at, problems);
            two_ways(tcp, at, problems);
        }
        Kind::Web(tcp, web) => {
            tcp_flow(tcp, at, problems);
            if web.objects < count {
                let message = format!("{} objects for {count} connections", web.objects);
                let hint = format!("write objects = {count} or more, or fewer connections (count)");
                report(problems, message, hint, below(at, "objects"));
            }
        }
        Kind::Stream(tcp, stream) => {
            tcp_flow(tcp, at, problems);
            if stream.ahead < stream.segment {
                let hint = format!("write ahead = \"{}\" or more", format_duration(stream.segment));
                let message = "less than one segment is fetched ahead";
                report(problems, message, hint, below(at, "ahead"));
            }
        }
        Kind::Call() => {
            if entry.access.is_some_and(|access| access < sim::CALL.0) {
                let hint = format!("write access = \"{}\" or more", format_rate(sim::CALL.0));
                let message = "a call sends faster than its access link, which never drops";
                report(problems, message, hint, below(at, "access"));
            }
        }
        Kind::Udp(udp) | Kind::OnOff(udp, _) => {
            if let Some(access) = entry.access.filter(|access| *access < udp.rate) {
                let hint = format!("write rate = \"{}\" or less", format_rate(access));
                let message = "the rate is above that of the access link, which never drops";
                report(problems, message, hint, below(at, "rate"));
            }
        }
        Kind::Capture(own) => {
            let last = own.packets[own.packets.len() - 1].0;
            if own.repeat.is_some_and(|repeat| repeat <= last) {
                let hint =
                    format!("write a time after the last packet at {}", format_duration(last));
                report(problems, "repeat is too short", hint, below(at, "repeat"));
            }
        }
        Kind::Video(video) => {
            if video.rate.is_none() == video.frames.is_none() {
                let given = video.rate.is_some();
                let what = if given {
                    "rate and recorded frames are both given"
                } else {
                    "rate is missing"
                };
                let hint = "write rate = \"2 Mbit/s\", or trace or frames instead";
                report(problems, what, hint, below(at, "rate"));
            }
            match &video.frames {
                Some(frames) => {
                    let last = frames[frames.len() - 1].0;
                    if video.repeat.is_none_or(|repeat| repeat <= last) {
                        let hint = format!(
                            "write repeat, the frames' period: more than {}, the time of the last frame",
                            format_duration(last)
                        );
                        let message = "the frames' repeat is missing or too short";
                        report(problems, message, hint, below(at, "repeat"));
                    }
                }
                None if video.repeat.is_some() => {
                    report(
                        problems,
                        "repeat without frames",
                        "leave repeat out",
                        below(at, "repeat"),
                    );
                }
                None => {}
            }
        }
        // crate::programs
        Kind::Program(_) => {}
        Kind::Ping(_) => {}
    }
}

/// Checks that a flow's hosts are at one of its ends: the first and the last node of its route.
fn hosts(entry: &FlowEntry, [source, target]: [&str; 2], at: &Key, problems: &mut Problems) {
    let Some(hosts) = &entry.hosts else {
        if entry.hosts_at.is_some() {
            let hint = "write hosts = 4, or leave hosts_at out";
            report(problems, "hosts_at without hosts", hint, below(at, "hosts_at"));
        }
        return;
    };
    if hosts.count() > entry.count as usize {
        let message = format!("{} hosts for {} flows", hosts.count(), entry.count);
        let hint = format!("count is {}: drop some or raise count", entry.count);
        report(problems, message, hint, below(at, "hosts"));
    }
    let ends = format!("\"{source}\" or \"{target}\"");
    let node = match entry.hosts_at.as_deref() {
        Some(node) => node,
        None if [source, target].contains(&HOME) && entry.source.is_none() => HOME,
        None => {
            let hint = format!("write hosts_at = {ends}: the node at which the hosts are");
            report(problems, "hosts_at is missing", hint, below(at, "hosts_at"));
            return;
        }
    };
    if ![source, target].contains(&node) {
        let message = format!("the flow has no end at {}", in_quotes(node));
        report(problems, message, format!("write {ends}"), below(at, "hosts_at"));
    }
    if node == source && entry.access.is_some() {
        let message = "with access each flow's sender has its own link, and so its own host";
        report(problems, message, "leave access or hosts out", below(at, "access"));
    }
}

fn tcp_flow(flow: &crate::model::TcpFlow, at: &Key, problems: &mut Problems) {
    let set = &flow.tcp;
    let inside = |name: &str| below(&below(at, "tcp"), name);
    if let (Some(least), Some(most)) = (set.min_rto, set.max_rto)
        && least > most
    {
        report(problems, "min_rto is above max_rto", "write a smaller min_rto", inside("min_rto"));
    }
    if let (Some(small), Some(large)) = (set.receive_buffer, set.receive_buffer_max)
        && small > large
    {
        let hint = "write the larger of the two as receive_buffer_max";
        report(
            problems,
            "receive_buffer is above receive_buffer_max",
            hint,
            inside("receive_buffer"),
        );
    }
    let is = |name| flow.congestion.as_ref().is_some_and(|control| control.is(name));
    let ecn = flow.notification();
    for name in ["dctcp", "prague"] {
        if is(name) && ecn == Notification::Off {
            let message = format!("without ECN Linux runs Reno in place of {name}");
            report(
                problems,
                message,
                "leave ecn out, or write ecn = true",
                below(at, "congestion"),
            );
        }
    }
    if flow.profile == "linux-7.3" && set.rack == Some(false) && set.sack != Some(false) {
        let message = "Linux 7.3 finds losses by RACK alone";
        let hint = r#"leave rack out, or write profile = "linux", the TCP of Linux 6.12"#;
        report(problems, message, hint, inside("rack"));
    }
    let full = endpoints(flow.profile, flow.congestion.as_ref(), ecn, set).params;
    if full.growth.vegas_alpha > full.growth.vegas_beta {
        let named = if set.vegas_alpha.is_some() { "vegas_alpha" } else { "vegas_beta" };
        let what = format!(
            "vegas_alpha {} is above vegas_beta {}",
            full.growth.vegas_alpha, full.growth.vegas_beta
        );
        report(problems, what, "write both, alpha below beta", inside(named));
    }
}

/// Refuses endpoints that send data in one direction only.
fn two_ways(flow: &crate::model::TcpFlow, at: &Key, problems: &mut Problems) {
    if flow.profile == "ns2" {
        let message = "ns-2's agents send data one way; requests need both";
        let hint = r#"write profile = "linux", or kind = "transfers""#;
        report(problems, message, hint, below(at, "profile"));
    }
    if flow.tcp.handshake == Some(false) {
        let message = "requests begin with a handshake: the client's, which the server answers";
        report(problems, message, "leave handshake out", below(&below(at, "tcp"), "handshake"));
    }
    if flow.notification() == Notification::Accurate {
        let message = "requests have no accurate ECN feedback yet";
        let hint = "write ecn = true, and another congestion control than prague";
        report(problems, message, hint, below(at, "ecn"));
    }
}

fn record(scenario: &Scenario, problems: &mut Problems) {
    let flows: u128 = scenario.flows.iter().map(|flow| u128::from(flow.entry.count)).sum();
    let links = links_of(scenario).len() as u128;
    let duration = u128::from(scenario.duration);
    for (name, interval, lines) in
        [("queue", scenario.record.queue, links), ("flow", scenario.record.flow, flows)]
    {
        let Some(interval) = interval else { continue };
        let rows = lines * (duration / u128::from(interval));
        if rows > MAX_ROWS {
            let least = format_duration((lines * duration).div_ceil(MAX_ROWS) as u64);
            let hint = format!("write \"{least}\" or more, or leave it out");
            let message = format!("that makes {rows} rows; the most is {MAX_ROWS}");
            report(problems, message, hint, key(&["record", name]));
        }
    }
}
