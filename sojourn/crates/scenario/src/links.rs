//! The links of a scenario, each one direction, and the routes over them.
//!
//! A dumbbell is two nodes, `net` and `home`, joined by the links `down` and `up`. In the long form
//! a duplex link is two links: its own name, and that name with `-back`. A route has the least
//! delay, then the fewest hops, then the links that come first in the file.

use crate::forms::LinkRate;
use crate::model::{FlowEntry, Scenario, Wire};
use crate::problem::{Key, below};
use crate::wire::Loss;
use link::{DelayStep, Framing, Impairments};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;
use tc::{Discipline, Police, Shaper, TcError};
use values::text::in_quotes;

/// The rate that disciplines compute with on an unlimited link, bit/s. Such a link has no queue, so the
/// discipline never acts.
const UNLIMITED_BPS: u64 = 10_000_000_000;

/// The nodes of a dumbbell: `down` leads from `NET` to `HOME`.
pub(crate) const NET: &str = "net";
pub(crate) const HOME: &str = "home";

/// One direction of a link with every setting filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// (start in ns, bit/s), the first at 0; empty: unlimited.
    pub steps: Vec<(u64, u64)>,
    /// The steps repeat after this time, ns.
    pub period: Option<u64>,
    /// Propagation, ns.
    pub delay: u64,
    /// Its queue discipline.
    pub qdisc: Discipline,
    /// Steps of the discipline's parameters: (ns, all parameters from then on).
    pub qdisc_steps: Vec<(u64, Discipline)>,
    /// The first of its steps that can't be taken, and the reason.
    pub(crate) wrong_step: Option<(u64, TcError)>,
    /// Its link layer's framing.
    pub framing: Framing,
    /// The wire's losses.
    pub loss: Loss,
    /// The wire's other impairments.
    pub impairments: Impairments,
    /// The shaper between discipline and ring.
    pub shaper: Option<Shaper>,
    /// The policer before the queue.
    pub police: Option<Police>,
    /// The replay window of the tunnels' ends behind it, packets.
    pub replay_window: Option<u32>,
    /// The card's transmit queues.
    pub queues: Option<u32>,
    /// The queue of each flow; empty: a hash chooses.
    pub pinned: Vec<u32>,
    /// The descriptors of the driver's ring.
    pub ring: Option<u32>,
    /// Byte queue limits.
    pub bql: bool,
    /// The time until the driver reports completions, ns.
    pub coalesce: u64,
}

impl Line {
    /// Takes each setting from the first table that has it; rate, schedule and repeat belong
    /// together.
    pub(crate) fn of(wires: &[&Wire]) -> Line {
        fn first<T: Clone>(wires: &[&Wire], key: impl Fn(&Wire) -> &Option<T>) -> Option<T> {
            wires.iter().find_map(|wire| key(wire).clone())
        }
        let timed = wires.iter().find(|wire| wire.rate.is_some() || wire.schedule.is_some());
        let mut steps = timed.and_then(|wire| wire.schedule.clone()).unwrap_or_default();
        if let Some(bps) = timed.and_then(|wire| wire.rate).and_then(LinkRate::bps)
            && steps.first().is_none_or(|(at, _)| *at > 0)
        {
            steps.insert(0, (0, bps));
        }
        let delayed =
            wires.iter().find(|wire| wire.delay.is_some() || wire.delay_schedule.is_some());
        let mut delays = delayed.and_then(|wire| wire.delay_schedule.clone()).unwrap_or_default();
        let delay =
            delayed.and_then(|wire| wire.delay).unwrap_or(delays.first().map_or(0, |d| d.1));
        if delays.first().is_some_and(|(at, _)| *at > 0) {
            delays.insert(0, (0, delay));
        }
        let delay = delays.first().map_or(delay, |(_, first)| *first);
        let lossy = wires.iter().find(|wire| wire.loss.is_some() || wire.loss_schedule.is_some());
        let mut loss = lossy.and_then(|wire| wire.loss.clone()).unwrap_or(Loss::Random(0.0));
        if let Some(mut steps) = lossy.and_then(|wire| wire.loss_schedule.clone()) {
            if steps[0].0 > 0 {
                steps.insert(0, (0, loss.mean()));
            }
            loss = Loss::Steps { steps, period: lossy.and_then(|wire| wire.loss_repeat) };
        }
        let impairments = Impairments {
            jitter: first(wires, |wire| &wire.jitter).flatten(),
            reorder: first(wires, |wire| &wire.reorder).flatten(),
            duplicate: first(wires, |wire| &wire.duplicate).flatten(),
            slot: first(wires, |wire| &wire.slot).flatten(),
            overtake: first(wires, |wire| &wire.overtake).unwrap_or(false),
            ecn: first(wires, |wire| &wire.ecn).flatten(),
            delay_period_ns: delayed.and_then(|wire| wire.delay_repeat),
            delay_steps: delays
                .into_iter()
                .map(|(at_ns, delay_ns)| DelayStep { at_ns, delay_ns })
                .collect(),
        };
        let shaper = first(wires, |wire| &wire.shaper).flatten();
        // The rate that a link's discipline is sized for: the fastest step of a schedule.
        let fastest = steps.iter().map(|(_, bps)| *bps).max().unwrap_or(UNLIMITED_BPS);
        let fastest = shaper.as_ref().map_or(fastest, |shaper| fastest.min(shaper.params.bps));
        // Linux's pfifo with the default txqueuelen: the usual bufferbloat.
        let qdisc = first(wires, |wire| &wire.qdisc)
            .unwrap_or_else(|| Discipline::parse("pfifo limit 1000").expect("this is tc's syntax"));
        let qdisc = qdisc.at(fastest);
        let changed =
            wires.iter().find(|wire| wire.qdisc.is_some() || wire.qdisc_schedule.is_some());
        let changes = changed.and_then(|wire| wire.qdisc_schedule.as_deref()).unwrap_or_default();
        let (mut qdisc_steps, mut wrong_step) = (Vec::<(u64, Discipline)>::new(), None);
        for (at, words) in changes {
            let before = qdisc_steps.last().map_or(&qdisc, |(_, before)| before);
            match before.changed(words) {
                Ok(next) => qdisc_steps.push((*at, next.at(fastest))),
                Err(error) => {
                    wrong_step = Some((*at, error));
                    break;
                }
            }
        }
        Line {
            steps,
            period: timed.and_then(|wire| wire.repeat),
            delay,
            qdisc,
            qdisc_steps,
            wrong_step,
            framing: first(wires, |wire| &wire.link_layer).unwrap_or(Framing::NONE),
            loss,
            impairments,
            shaper,
            police: first(wires, |wire| &wire.police).flatten(),
            replay_window: first(wires, |wire| &wire.replay_window),
            queues: first(wires, |wire| &wire.queues),
            pinned: first(wires, |wire| &wire.pinned).unwrap_or_default(),
            ring: first(wires, |wire| &wire.ring),
            bql: first(wires, |wire| &wire.bql).unwrap_or(false),
            coalesce: first(wires, |wire| &wire.coalesce).unwrap_or(0),
        }
    }
}

/// One direction of a link in its place.
#[derive(Clone, Debug)]
pub struct Link {
    /// Its name in tables.
    pub name: String,
    /// Its settings.
    pub line: Line,
    /// The node where it starts.
    pub tail: String,
    /// The node where it ends.
    pub head: String,
    /// The index of the other direction of the same link.
    pub back: Option<usize>,
    /// Its key in the document.
    pub key: Key,
}

/// Every link that flows share.
pub(crate) fn links_of(scenario: &Scenario) -> Vec<Link> {
    if let Some(bottleneck) = &scenario.bottleneck {
        let way = |name: &str, tail: &str, head: &str, own: &Option<Wire>, back| Link {
            name: name.into(),
            line: Line::of(&tables(own, &bottleneck.common)),
            tail: tail.into(),
            head: head.into(),
            back: Some(back),
            key: vec!["bottleneck".into()],
        };
        let ways = &bottleneck.ways;
        return vec![way("down", NET, HOME, &ways.down, 1), way("up", HOME, NET, &ways.up, 0)];
    }
    let mut links = Vec::new();
    for (index, entry) in scenario.links.iter().enumerate() {
        let ends = &entry.ends;
        let (tail, head) = (ends.source.clone(), ends.target.clone());
        let name = ends.name_or_ends();
        let (line, key) = (Line::of(&[&entry.wire]), below(&["link".into()], index));
        let here = links.len();
        let back = ends.duplex.then(|| Link {
            name: format!("{name}-back"),
            line: line.clone(),
            tail: head.clone(),
            head: tail.clone(),
            back: Some(here),
            key: key.clone(),
        });
        links.push(Link { name, line, tail, head, back: ends.duplex.then_some(here + 1), key });
        links.extend(back);
    }
    links
}

/// A direction's own table before the common one.
pub(crate) fn tables<'w>(own: &'w Option<Wire>, common: &'w Wire) -> Vec<&'w Wire> {
    own.iter().chain([common]).collect()
}

/// Links by index, in the order in which a packet crosses them.
pub type Path = Vec<usize>;

/// Paths between nodes; the search from a node runs once.
pub(crate) struct Routes<'l> {
    links: &'l [Link],
    /// Numbered in the order of their names.
    nodes: BTreeMap<&'l str, usize>,
    /// The links that leave each node.
    from: Vec<Vec<usize>>,
    /// Paths by source.
    searched: BTreeMap<usize, PathTree>,
}

/// Paths from one node.
struct PathTree {
    /// The last link of the path to each node; `None`: no path found.
    last_links: Vec<Option<usize>>,
    /// The search covered all nodes: it did not end at a target.
    complete: bool,
}

impl<'l> Routes<'l> {
    pub(crate) fn new(links: &'l [Link]) -> Routes<'l> {
        let ends = links.iter().flat_map(|link| [&*link.tail, &*link.head]);
        // `extend` instead of `collect`, which sorts the nodes first: its sorting code would
        // enlarge the lab's page.
        let mut nodes: BTreeMap<&str, usize> = BTreeMap::new();
        nodes.extend(ends.map(|name| (name, 0)));
        nodes.values_mut().zip(0..).for_each(|(node, number)| *node = number);
        let mut from = vec![Vec::new(); nodes.len()];
        for (index, link) in links.iter().enumerate() {
            from[nodes[&*link.tail]].push(index);
        }
        Routes { links, nodes, from, searched: BTreeMap::new() }
    }

    /// The route, or `None` if there is none.
    fn path(&mut self, source: &str, target: &str) -> Option<Path> {
        let [source, target] = [source, target].map(|node| self.nodes.get(node).copied());
        let (source, mut node) = (source?, target?);
        let tree = self.searched.get(&source);
        if tree.is_none_or(|tree| tree.last_links[node].is_none() && !tree.complete) {
            // Most nodes of a tree send only to its root, which is near.
            let until = tree.is_none().then_some(node);
            let tree = self.search(source, until);
            self.searched.insert(source, tree);
        }
        let last_links = &self.searched[&source].last_links;
        let mut path = Path::new();
        while node != source {
            let link = last_links[node]?;
            path.push(link);
            node = self.nodes[&*self.links[link].tail];
        }
        path.reverse();
        Some(path)
    }

    /// Searches the paths to all nodes, or to `until` and all nearer nodes. A path has the least
    /// delay, then the fewest links, then the links that come first.
    fn search(&self, source: usize, until: Option<usize>) -> PathTree {
        let mut last_links = vec![None; self.from.len()];
        let mut reached = vec![false; self.from.len()];
        let start = Reached { delay: 0, hops: 0, by: None, node: source };
        let mut waiting = BinaryHeap::from([Reverse(start)]);
        while let Some(Reverse(here)) = waiting.pop() {
            if std::mem::replace(&mut reached[here.node], true) {
                continue;
            }
            last_links[here.node] = here.by.as_ref().map(|step| step.link);
            if until == Some(here.node) {
                return PathTree { last_links, complete: false };
            }
            for &index in &self.from[here.node] {
                let link = &self.links[index];
                let node = self.nodes[&*link.head];
                if !reached[node] {
                    waiting.push(Reverse(Reached {
                        delay: here.delay + u128::from(link.line.delay),
                        hops: here.hops + 1,
                        by: Some(Rc::new(Step { before: here.by.clone(), link: index })),
                        node,
                    }));
                }
            }
        }
        PathTree { last_links, complete: true }
    }
}

/// The last link of a path, and the steps before it.
#[derive(PartialEq, Eq)]
struct Step {
    before: Option<Rc<Step>>,
    link: usize,
}

/// A node, and a path to it.
#[derive(PartialEq, Eq)]
struct Reached {
    delay: u128,
    hops: usize,
    by: Option<Rc<Step>>,
    node: usize,
}

impl Reached {
    fn path(&self) -> Path {
        let steps = std::iter::successors(self.by.as_deref(), |step| step.before.as_deref());
        let mut path: Path = steps.map(|step| step.link).collect();
        path.reverse();
        path
    }
}

impl Ord for Reached {
    fn cmp(&self, other: &Reached) -> Ordering {
        (self.delay, self.hops)
            .cmp(&(other.delay, other.hops))
            .then_with(|| self.path().cmp(&other.path()))
            .then(self.node.cmp(&other.node))
    }
}

impl PartialOrd for Reached {
    fn partial_cmp(&self, other: &Reached) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The links that a flow's packets cross in both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// From the source to the target.
    pub path: Path,
    /// From the target to the source.
    pub back: Path,
}

impl Way {
    /// The propagation delay over both, ns.
    pub(crate) fn delay(&self, links: &[Link]) -> u64 {
        self.path.iter().chain(&self.back).map(|index| links[*index].line.delay).sum()
    }
}

/// Why a flow has no route; `key` is the key at fault in the flow's table.
#[derive(Debug)]
pub(crate) struct NoWay {
    pub(crate) message: String,
    pub(crate) hint: String,
    pub(crate) key: &'static str,
}

/// The route of a flow. In a dumbbell a probe starts at home; any other flow comes down unless its
/// direction is given.
pub(crate) fn way_of(
    flow: &FlowEntry,
    routes: &mut Routes<'_>,
    dumbbell: bool,
    probe: bool,
) -> Result<Way, NoWay> {
    if dumbbell {
        let up = flow.direction.unwrap_or(if probe { "up" } else { "down" }) == "up";
        let (path, back) = if up { (1, 0) } else { (0, 1) };
        return Ok(Way { path: vec![path], back: vec![back] });
    }
    let no_way = |message: String, hint: &str, key| NoWay { message, hint: hint.to_owned(), key };
    let source = flow.source.as_deref().unwrap_or_default();
    let target = flow.target.as_deref().unwrap_or_default();
    for (node, key) in [(source, "from"), (target, "to")] {
        if !routes.nodes.contains_key(node) {
            let hint = format!("nodes: {}", list(routes.nodes.keys().copied()));
            return Err(no_way(
                format!("no link touches the node {}", in_quotes(node)),
                &hint,
                key,
            ));
        }
    }
    if source == target {
        let message = format!("from and to are both {}", in_quotes(source));
        return Err(no_way(message, "a flow needs two different nodes", "to"));
    }
    let one_way = "add a link, or make one duplex";
    let via = flow.via.as_deref().unwrap_or_default();
    let path = if via.is_empty() {
        routes.path(source, target)
    } else {
        Some(along(via, source, target, routes)?)
    };
    let Some(path) = path else {
        let message = format!("no route from {} to {}", in_quotes(source), in_quotes(target));
        return Err(no_way(message, one_way, "to"));
    };
    let mirrored: Option<Path> = path.iter().rev().map(|index| routes.links[*index].back).collect();
    let back = mirrored.filter(|_| !via.is_empty()).or_else(|| routes.path(target, source));
    match back {
        Some(back) => Ok(Way { path, back }),
        None => {
            let message =
                format!("no route back from {} to {}", in_quotes(target), in_quotes(source));
            Err(no_way(message, one_way, "to"))
        }
    }
}

fn along(names: &[String], source: &str, target: &str, routes: &Routes<'_>) -> Result<Path, NoWay> {
    let no_way = |message: String, hint: String| NoWay { message, hint, key: "via" };
    let (mut node, mut path) = (source, Path::new());
    for name in names {
        // Of two links with one name the last is used.
        let Some(index) = routes.links.iter().rposition(|link| link.name == *name) else {
            let hint = format!("links: {}", list(routes.links.iter().map(|link| &*link.name)));
            return Err(no_way(format!("no link is called {}", in_quotes(name)), hint));
        };
        let link = &routes.links[index];
        if link.tail != node {
            let there =
                routes.links.iter().filter(|link| link.tail == node).map(|link| &*link.name);
            let hint = format!("links from {}: {}", in_quotes(node), list(there));
            let (name, tail, node) = (in_quotes(name), in_quotes(&link.tail), in_quotes(node));
            return Err(no_way(format!("the link {name} starts at {tail}, not at {node}"), hint));
        }
        path.push(index);
        node = &link.head;
    }
    if node != target {
        let message = format!("the links end at {}, not at {}", in_quotes(node), in_quotes(target));
        return Err(no_way(message, "add the links that are missing".into()));
    }
    Ok(path)
}

fn list<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let known: Vec<_> = words.into_iter().collect();
    let more = if known.len() > 12 { ", …" } else { "" };
    format!("{}{more}", known[..known.len().min(12)].join(", "))
}
