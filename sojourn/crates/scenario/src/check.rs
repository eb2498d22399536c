//! What no single key can know: that a flow's RTT is not shorter than its links, that the two forms
//! are not mixed, that names are unique, that a run's tables stay of a size one can keep.
//!
//! Each check gives problems with the key they belong to; the loader gives them their line.

use crate::amount::{check_amount, check_dropped};
use crate::forms::{LinkRate, MAX_FLOWS, Notification};
use crate::laws::Spread;
use crate::links::{HOME, Line, Routes, links_of, tables, way_of};
use crate::model::{Bottleneck, Flow, FlowEntry, Kind, Scenario, Wire};
use crate::problem::{Key, Part, Problem, below};
use crate::tcp::endpoints;
use std::collections::BTreeMap;
use values::quantity::{format_duration, format_rate};
use values::text::in_quotes;

/// Links in a row: a packet counts its hops in eight bits.
const MAX_HOPS: usize = 250;
/// Rows of one time line: about 1 GB in memory.
const MAX_ROWS: u128 = 20_000_000;

type Problems = Vec<Problem>;

fn tell(problems: &mut Problems, message: impl Into<String>, hint: impl Into<String>, key: Key) {
    problems.push(Problem::new(message, hint, key));
}

fn key(parts: &[&str]) -> Key {
    parts.iter().map(|part| Part::from(*part)).collect()
}

/// Everything that is wrong across keys, in the order of the file.
pub(crate) fn check(scenario: &Scenario) -> Problems {
    let mut problems = Problems::new();
    whole(scenario, &mut problems);
    form(scenario, &mut problems);
    links(scenario, &mut problems);
    // Routes and RTTs mean nothing while the links are wrong.
    if problems.is_empty() {
        flows(scenario, &mut problems);
        record(scenario, &mut problems);
    }
    problems
}

/// A name for each entry: its own, or its kind, or `kind-2` for the second unnamed entry of the
/// kind.
pub fn base_names(flows: &[Flow]) -> Vec<String> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    flows
        .iter()
        .map(|flow| match &flow.entry.name {
            Some(name) => name.clone(),
            None => {
                let times = seen.entry(flow.word()).or_default();
                *times += 1;
                if *times == 1 {
                    flow.word().to_owned()
                } else {
                    format!("{}-{times}", flow.word())
                }
            }
        })
        .collect()
}

/// Each word that stands there several times, in order, with how often and where last.
fn repeated(words: &[String]) -> Vec<(&str, usize, usize)> {
    let mut found: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut order = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let entry = found.entry(word).or_insert_with(|| {
            order.push(&**word);
            (0, 0)
        });
        *entry = (entry.0 + 1, index);
    }
    order
        .into_iter()
        .map(|word| (word, found[word].0, found[word].1))
        .filter(|each| each.1 > 1)
        .collect()
}

fn whole(scenario: &Scenario, problems: &mut Problems) {
    if scenario.warmup >= scenario.duration {
        let lengths = format!(
            "{} of {}",
            format_duration(scenario.warmup),
            format_duration(scenario.duration)
        );
        let message = format!("the warm-up leaves nothing of the run: {lengths}");
        tell(problems, message, "write a shorter warmup", key(&["warmup"]));
    }
    if scenario.flows.is_empty() {
        tell(
            problems,
            "there is no [[flow]]",
            "add one: [[flow]] with kind = \"bulk\"",
            Key::new(),
        );
    }
    let total: u64 = scenario.flows.iter().map(|flow| u64::from(flow.entry.count)).sum();
    if total > MAX_FLOWS.into() {
        let hint = format!("the most is {MAX_FLOWS} in all");
        tell(problems, format!("{total} flows are too many"), hint, key(&["flow"]));
    }
    for (name, times, last) in repeated(&base_names(&scenario.flows)) {
        let message = format!("{times} flows are called {}", in_quotes(name));
        let place = vec!["flow".into(), last.into(), "name".into()];
        tell(problems, message, "give each a name of its own", place);
    }
}

fn form(scenario: &Scenario, problems: &mut Problems) {
    let dumbbell = scenario.dumbbell();
    if !dumbbell && scenario.links.is_empty() {
        let message = "there is neither a [bottleneck] nor a [[link]]";
        tell(problems, message, "add a table [bottleneck] with rate and delay", Key::new());
    }
    if dumbbell && !scenario.links.is_empty() {
        let message = "[bottleneck] and [[link]] are both given";
        tell(problems, message, "a scenario has one form; keep one", key(&["link"]));
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
        let foreign: &[&str] = if dumbbell { &["from", "to", "via"] } else { &["direction"] };
        for name in foreign.iter().filter(|name| given(name)) {
            let hint = if dumbbell {
                "with a [bottleneck] write direction = \"up\" or \"down\""
            } else {
                "write from and to"
            };
            tell(
                problems,
                format!("{name} belongs to the other form of a scenario"),
                hint,
                at(name),
            );
        }
        let needed: &[&str] = if dumbbell { &[] } else { &["from", "to"] };
        for name in needed.iter().filter(|name| !given(name)) {
            let hint = format!("write {name} = \"...\" with a node that a [[link]] names");
            tell(problems, format!("{name} is missing"), hint, at(name));
        }
    }
}

fn links(scenario: &Scenario, problems: &mut Problems) {
    if let Some(both) = &scenario.bottleneck {
        bottleneck(both, problems);
    }
    for (index, entry) in scenario.links.iter().enumerate() {
        let at = vec!["link".into(), index.into()];
        let made = Line::of(&[&entry.wire]);
        wire(&entry.wire, &at, problems);
        line(&made, &[&entry.wire], &at, problems);
        gate(&made, &[(at.clone(), &entry.wire)], problems);
        if entry.ends.source == entry.ends.target {
            let message = format!("from and to are both {}", in_quotes(&entry.ends.source));
            tell(problems, message, "a link joins two nodes", below(&at, "to"));
        }
    }
    if scenario.links.is_empty() {
        return;
    }
    let made = links_of(scenario);
    let names: Vec<_> = made.iter().map(|link| link.name.clone()).collect();
    for (name, _, _) in repeated(&names) {
        let first = made.iter().find(|link| link.name == name).expect("it is there");
        let message = format!("several links are called {}", in_quotes(name));
        tell(problems, message, "give each a name of its own", below(&first.key, "name"));
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
        let made = Line::of(&tables(own, &both.common));
        let mut found = Problems::new();
        line(&made, &tables(own, &both.common), &common, &mut found);
        found.retain(|problem| !lines.iter().any(|told| told.message == problem.message));
        lines.extend(found.clone());
        problems.append(&mut found);
        let mut places: Vec<_> = own.iter().map(|own| (at.clone(), own)).collect();
        places.push((common.clone(), &both.common));
        gate(&made, &places, &mut found);
        found.retain(|problem| !gates.contains(problem));
        gates.extend(found.clone());
        problems.append(&mut found);
    }
}

/// What is wrong within one table.
fn wire(wire: &Wire, at: &Key, problems: &mut Problems) {
    delays(wire, at, problems);
    let Some(schedule) = &wire.schedule else {
        if wire.repeat.is_some() {
            let hint = "give a schedule, or leave repeat out";
            tell(problems, "repeat without a schedule", hint, below(at, "repeat"));
        }
        return;
    };
    let (first, last) = (schedule[0].0, schedule[schedule.len() - 1].0);
    if wire.rate == Some(LinkRate::Unlimited) {
        let hint = "give a rate, or leave the schedule out";
        tell(problems, "a schedule on an unlimited link", hint, below(at, "schedule"));
    }
    if wire.repeat.is_some_and(|repeat| repeat <= last) {
        let last = format_duration(last);
        let message = format!("repeat is not after the last step at {last}");
        tell(problems, message, format!("write more than {last}"), below(at, "repeat"));
    }
    let bps = wire.rate.and_then(LinkRate::bps);
    if first > 0 && bps.is_none() {
        let message =
            format!("the rate before the first step at {} is missing", format_duration(first));
        tell(problems, message, "give a rate, or a first step at \"0 s\"", below(at, "schedule"));
    }
    if schedule.iter().all(|(_, bps)| *bps == 0) && wire.rate.is_none() {
        let message = "every step is an outage: nothing is ever sent";
        tell(problems, message, "give a step above zero", below(at, "schedule"));
    }
}

/// The same of the delay's steps.
fn delays(wire: &Wire, at: &Key, problems: &mut Problems) {
    let Some(schedule) = &wire.delay_schedule else {
        if wire.delay_repeat.is_some() {
            let hint = "give a delay_schedule, or leave delay_repeat out";
            let message = "delay_repeat without a delay_schedule";
            tell(problems, message, hint, below(at, "delay_repeat"));
        }
        return;
    };
    let (first, last) = (schedule[0].0, schedule[schedule.len() - 1].0);
    if wire.delay_repeat.is_some_and(|repeat| repeat <= last) {
        let last = format_duration(last);
        let message = format!("delay_repeat is not after the last step at {last}");
        tell(problems, message, format!("write more than {last}"), below(at, "delay_repeat"));
    }
    if first > 0 && wire.delay.is_none() {
        let message =
            format!("the delay before the first step at {} is missing", format_duration(first));
        let hint = "give a delay, or a first step at \"0 s\"";
        tell(problems, message, hint, below(at, "delay_schedule"));
    }
}

/// What is missing from a link once all its tables are read.
fn line(line: &Line, tables: &[&Wire], at: &Key, problems: &mut Problems) {
    if line.steps.is_empty() && !tables.iter().any(|wire| wire.rate == Some(LinkRate::Unlimited)) {
        tell(
            problems,
            "rate is missing",
            "write rate = \"20 Mbit/s\", or \"unlimited\"",
            below(at, "rate"),
        );
    }
    if line.impairments.slot.is_some() && line.impairments.reorders() {
        let message = "packets of a slot keep their order, and others may overtake here";
        let hint = "leave out slot, or reorder and overtake";
        tell(problems, message, hint, below(at, "slot"));
    }
    if line.replay_window.is_some() && line.impairments.reorders() {
        let message = "a tunnel's end counts what queues let overtake, and the wire reorders, too";
        let hint = "leave out replay_window, or reorder and overtake";
        tell(problems, message, hint, below(at, "replay_window"));
    }
    if tables.iter().all(|wire| wire.delay.is_none() && wire.delay_schedule.is_none()) {
        let hint = "write delay = \"10 ms\", the propagation one way";
        tell(problems, "delay is missing", hint, below(at, "delay"));
    }
    if !line.steps.is_empty() || line.shaper.is_some() {
        return;
    }
    if let Some(error) = line.qdisc.without_a_rate() {
        tell(problems, error.problem, error.hint, below(at, "qdisc"));
    }
}

/// What is wrong of a card with several queues: told with a hint and the key at fault.
fn card(line: &Line, tell: &mut dyn FnMut(String, String, &'static str)) {
    let kind = line.qdisc.kind();
    let Some(count) = line.queues else {
        if line.qdisc.record().for_each_queue {
            let message =
                format!("{kind} is for a card with several queues, and this link has one");
            tell(message, "write queues = 4 into the link".into(), "qdisc");
        } else if !line.pinned.is_empty() {
            let hint = "write queues = 4, or leave pinned out";
            tell("pinned without queues".into(), hint.into(), "pinned");
        }
        return;
    };
    if !line.qdisc.record().for_each_queue {
        let message = format!("{kind} is one queue for all {count} of the card");
        let hint = format!("write mq {kind}, one for each, or leave queues out");
        return tell(message, hint, "queues");
    }
    if let Some(queue) = line.pinned.iter().find(|queue| **queue >= count) {
        let message = format!("pinned has queue {queue}, and there are 0 to {}", count - 1);
        tell(message, "write queues that there are, or more queues".into(), "pinned");
    }
    for (key, given) in [("ring", line.ring.is_some()), ("shaper", line.shaper.is_some())] {
        if given {
            let message = format!("{key} is for one queue, and this card has {count}");
            tell(message, format!("leave {key} out, or queues"), key);
        }
    }
}

/// Whether a table has a key.
type Said = fn(&Wire) -> bool;

/// What is wrong between discipline and transmitter. `tables`: where the link's keys may stand, its
/// own first.
fn gate(line: &Line, tables: &[(Key, &Wire)], problems: &mut Problems) {
    let place = |name: &str, said: Said| {
        let found = tables.iter().find(|(_, wire)| said(wire)).or(tables.last());
        below(&found.expect("a link has a table").0, name)
    };
    let queues = |wire: &Wire| wire.queues.is_some();
    card(line, &mut |message, hint, key| match key {
        "qdisc" => tell(problems, message, hint, place(key, |wire| wire.qdisc.is_some())),
        "pinned" => tell(problems, message, hint, place(key, |wire| wire.pinned.is_some())),
        "ring" => tell(problems, message, hint, place(key, |wire| wire.ring.is_some())),
        "shaper" => tell(problems, message, hint, place(key, |wire| wire.shaper.is_some())),
        _ => tell(problems, message, hint, place("queues", queues)),
    });
    if line.ring.is_none() {
        let bql: Said = |wire| wire.bql.is_some();
        let coalesce: Said = |wire| wire.coalesce.is_some();
        for (name, given, said) in
            [("bql", line.bql, bql), ("coalesce", line.coalesce > 0, coalesce)]
        {
            if given {
                let message = format!("{name} is of a driver's ring, and this link has none");
                let hint = format!("write ring = 256, or leave {name} out");
                tell(problems, message, hint, place(name, said));
            }
        }
        return;
    }
    let unlimited = tables.iter().any(|(_, wire)| wire.rate == Some(LinkRate::Unlimited));
    if line.steps.is_empty() && line.shaper.is_none() && unlimited {
        let message = "a ring on an unlimited link is always empty";
        let hint = "give the link a rate or a shaper, or leave ring out";
        tell(problems, message, hint, place("ring", |wire| wire.ring.is_some()));
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
                tell(problems, error.message, error.hint, below(&at, error.key));
                continue;
            }
        };
        let ends = [&*links[way.path[0]].tail, &*links[way.back[0]].tail];
        hosts(&each.entry, ends, &at, problems);
        let hops = way.path.len().max(way.back.len());
        if hops > MAX_HOPS {
            let message = format!("its way crosses {hops} links");
            tell(problems, message, format!("at most {MAX_HOPS}"), below(&at, "to"));
        }
        let shortest = way.delay(&links);
        if let Some(rtt) = each.entry.rtt.as_ref().filter(|rtt| rtt.least() < shortest) {
            let (short, least) = (format_duration(rtt.least()), format_duration(shortest));
            let message = format!("an RTT of {short} is less than its links take: {least}");
            let hint = format!("write at least \"{least}\", or shorten the delays");
            tell(problems, message, hint, below(&at, "rtt"));
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
        tell(problems, format!("{} tunnels are too many", names.len()), hint, key(&["flow"]));
    }
    let ends: Vec<&Wire> = match &scenario.bottleneck {
        Some(both) => both.ways.up.iter().chain(&both.ways.down).chain([&both.common]).collect(),
        None => scenario.links.iter().map(|entry| &entry.wire).collect(),
    };
    if names.is_empty() && ends.iter().any(|wire| wire.replay_window.is_some()) {
        let place = if scenario.dumbbell() { "bottleneck" } else { "link" };
        let hint = "write tunnel = \"vpn\" into the flows that are in one, or leave it out";
        tell(problems, "replay_window without a tunnel", hint, key(&[place]));
    }
}

/// Whether any flow must stop before it starts, however the draws fall.
fn stops_unstarted(start: &Spread, stop: &Spread, count: u32) -> bool {
    (0..count).any(|index| stop.of(index, count, || u64::MAX) <= start.of(index, count, || 0))
}

fn flow(flow: &Flow, at: &Key, problems: &mut Problems) {
    let entry = &flow.entry;
    let count = entry.count;
    if entry.stop.as_ref().is_some_and(|stop| stops_unstarted(&entry.start, stop, count)) {
        tell(problems, "it stops before it starts", "write a later stop", below(at, "stop"));
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
            tell(
                problems,
                format!("{} {what} for {count} flows", values.len()),
                hint,
                below(at, name),
            );
        }
    }
    match &flow.kind {
        Kind::Bulk(tcp, _) | Kind::Transfers(tcp, _) => tcp_flow(tcp, at, problems),
        Kind::Web(tcp, web) => {
            tcp_flow(tcp, at, problems);
            if web.objects < count {
                let message = format!("{} objects for {count} connections", web.objects);
                let hint = format!("write objects = {count} or more, or fewer connections (count)");
                tell(problems, message, hint, below(at, "objects"));
            }
        }
        Kind::Stream(tcp, stream) => {
            tcp_flow(tcp, at, problems);
            if stream.ahead < stream.segment {
                let hint = format!("write ahead = \"{}\" or more", format_duration(stream.segment));
                let message = "less is fetched ahead than one segment";
                tell(problems, message, hint, below(at, "ahead"));
            }
        }
        Kind::Call() => {
            if entry.access.is_some_and(|access| access < sim::CALL.0) {
                let hint = format!("write access = \"{}\" or more", format_rate(sim::CALL.0));
                let message = "a call takes more than the access link, which never drops";
                tell(problems, message, hint, below(at, "access"));
            }
        }
        Kind::Udp(udp) | Kind::OnOff(udp, _) => {
            if let Some(access) = entry.access.filter(|access| *access < udp.rate) {
                let hint = format!("write rate = \"{}\" or less", format_rate(access));
                let message = "the rate is above the access link's, which never drops";
                tell(problems, message, hint, below(at, "rate"));
            }
        }
        Kind::Capture(own) => {
            let last = own.packets[own.packets.len() - 1].0;
            if own.repeat.is_some_and(|repeat| repeat <= last) {
                let hint =
                    format!("write a time after the last packet at {}", format_duration(last));
                tell(problems, "repeat is too short", hint, below(at, "repeat"));
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
                tell(problems, what, hint, below(at, "rate"));
            }
            match &video.frames {
                Some(frames) => {
                    let last = frames[frames.len() - 1].0;
                    if video.repeat.is_none_or(|repeat| repeat <= last) {
                        let hint = format!(
                            "write repeat, a time after the last frame at {}",
                            format_duration(last)
                        );
                        let message = "the frames' repeat is missing or too short";
                        tell(problems, message, hint, below(at, "repeat"));
                    }
                }
                None if video.repeat.is_some() => {
                    tell(
                        problems,
                        "repeat without frames",
                        "leave repeat out",
                        below(at, "repeat"),
                    );
                }
                None => {}
            }
        }
        Kind::Ping(_) => {}
    }
}

/// That a flow's hosts are at one of its ends. `link`: the first and the last node of its way.
fn hosts(entry: &FlowEntry, [source, target]: [&str; 2], at: &Key, problems: &mut Problems) {
    let Some(hosts) = &entry.hosts else {
        if entry.hosts_at.is_some() {
            let hint = "write hosts = 4, or leave hosts_at out";
            tell(problems, "hosts_at without hosts", hint, below(at, "hosts_at"));
        }
        return;
    };
    if hosts.count() > entry.count as usize {
        let message = format!("{} hosts for {} flows", hosts.count(), entry.count);
        let hint = format!("count is {}: drop some or raise count", entry.count);
        tell(problems, message, hint, below(at, "hosts"));
    }
    let ends = format!("\"{source}\" or \"{target}\"");
    let node = match entry.hosts_at.as_deref() {
        Some(node) => node,
        None if [source, target].contains(&HOME) && entry.source.is_none() => HOME,
        None => {
            let hint = format!("write hosts_at = {ends}: the node at which the hosts are");
            tell(problems, "hosts_at is missing", hint, below(at, "hosts_at"));
            return;
        }
    };
    if ![source, target].contains(&node) {
        let message = format!("the flow has no end at {}", in_quotes(node));
        tell(problems, message, format!("write {ends}"), below(at, "hosts_at"));
    }
    if node == source && entry.access.is_some() {
        let message = "with access each flow's sender has a link of its own, so a host of its own";
        tell(problems, message, "leave access or hosts out", below(at, "access"));
    }
}

fn tcp_flow(flow: &crate::model::TcpFlow, at: &Key, problems: &mut Problems) {
    let set = &flow.tcp;
    let inside = |name: &str| below(&below(at, "tcp"), name);
    if let (Some(least), Some(most)) = (set.min_rto, set.max_rto)
        && least > most
    {
        tell(problems, "min_rto is above max_rto", "write a smaller min_rto", inside("min_rto"));
    }
    if let (Some(small), Some(large)) = (set.receive_buffer, set.receive_buffer_max)
        && small > large
    {
        let hint = "write the larger of the two as receive_buffer_max";
        tell(
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
            let message = format!("{name} without ECN is Reno to Linux");
            tell(problems, message, "leave ecn out, or write ecn = true", below(at, "congestion"));
        }
    }
    if flow.profile == "linux-7.3" && set.rack == Some(false) && set.sack != Some(false) {
        let message = "Linux 7.3 finds losses by RACK alone";
        let hint = r#"leave rack out, or write profile = "linux", which is 6.12's"#;
        tell(problems, message, hint, inside("rack"));
    }
    let full = endpoints(flow.profile, flow.congestion.as_ref(), ecn, set).params;
    if full.growth.vegas_alpha > full.growth.vegas_beta {
        let named = if set.vegas_alpha.is_some() { "vegas_alpha" } else { "vegas_beta" };
        let what = format!(
            "vegas_alpha {} is above vegas_beta {}",
            full.growth.vegas_alpha, full.growth.vegas_beta
        );
        tell(problems, what, "write both, alpha below beta", inside(named));
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
            tell(problems, message, hint, key(&["record", name]));
        }
    }
}
