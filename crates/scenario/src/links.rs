//! The links of a scenario, each one direction, and the routes over them.
//!
//! A dumbbell is two nodes, `net` and `home`, joined by the links `down` and `up`. In the long form
//! a duplex link is two: its own name, and that name with `-back`. Routes take the least delay,
//! then the fewest hops, then the links that stand first in the file.

use crate::forms::LinkRate;
use crate::model::{FlowEntry, Scenario, Wire};
use crate::problem::{Key, below};
use crate::wire::Loss;
use link::Framing;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use tc::text::in_quotes;
use tc::{Discipline, Shaper};

/// What a discipline that computes with the rate takes for a link without one, bit/s: it has no
/// queue and never acts.
const UNLIMITED_BPS: u64 = 10_000_000_000;

/// One direction of a link with every setting filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// (from ns, bit/s), the first at 0; empty: unlimited.
    pub steps: Vec<(u64, u64)>,
    /// The steps begin again after this, ns.
    pub period: Option<u64>,
    /// Propagation, ns.
    pub delay: u64,
    /// Its discipline.
    pub qdisc: Discipline,
    /// What it adds to an IP packet.
    pub framing: Framing,
    /// What its wire loses.
    pub loss: Loss,
    /// Between discipline and ring.
    pub shaper: Option<Shaper>,
    /// The driver's ring, descriptors.
    pub ring: Option<u32>,
    /// Byte queue limits.
    pub bql: bool,
    /// ns.
    pub coalesce: u64,
}

impl Line {
    /// The settings of the first table that has them; rate, schedule and repeat go together.
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
        let shaper = first(wires, |wire| &wire.shaper).flatten();
        // The rate that a link's discipline is made for, bit/s: of a schedule the fastest step.
        let fastest = steps.iter().map(|(_, bps)| *bps).max().unwrap_or(UNLIMITED_BPS);
        let fastest = shaper.as_ref().map_or(fastest, |shaper| fastest.min(shaper.0.bps));
        // Linux's pfifo with the default txqueuelen: the bufferbloat one finds.
        let qdisc = first(wires, |wire| &wire.qdisc).unwrap_or_else(|| {
            Discipline::parse("pfifo limit 1000").expect("these are tc's words")
        });
        Line {
            steps,
            period: timed.and_then(|wire| wire.repeat),
            delay: first(wires, |wire| &wire.delay).unwrap_or(0),
            qdisc: qdisc.at(fastest),
            framing: first(wires, |wire| &wire.link_layer).unwrap_or(Framing::NONE),
            loss: first(wires, |wire| &wire.loss).unwrap_or(Loss::Random(0.0)),
            shaper,
            ring: first(wires, |wire| &wire.ring),
            bql: first(wires, |wire| &wire.bql).unwrap_or(false),
            coalesce: first(wires, |wire| &wire.coalesce).unwrap_or(0),
        }
    }
}

/// One direction of a link in its place.
#[derive(Clone, Debug)]
pub struct Link {
    /// What tables call it.
    pub name: String,
    /// What it is made of.
    pub line: Line,
    /// The node it leaves.
    pub tail: String,
    /// The node it leads to.
    pub head: String,
    /// Index of the other direction of the same link.
    pub back: Option<usize>,
    /// Where it is written.
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
        return vec![
            way("down", "net", "home", &ways.down, 1),
            way("up", "home", "net", &ways.up, 0),
        ];
    }
    let mut links = Vec::new();
    for (index, entry) in scenario.links.iter().enumerate() {
        let ends = &entry.ends;
        let (tail, head) = (ends.source.clone(), ends.target.clone());
        let name = ends.name.clone().unwrap_or_else(|| format!("{tail}-{head}"));
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

/// Paths between nodes, each found once.
pub(crate) struct Routes<'l> {
    links: &'l [Link],
    from: BTreeMap<&'l str, Vec<usize>>,
    found: BTreeMap<String, BTreeMap<&'l str, Path>>,
}

impl<'l> Routes<'l> {
    pub(crate) fn new(links: &'l [Link]) -> Routes<'l> {
        let mut from: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, link) in links.iter().enumerate() {
            from.entry(&link.tail).or_default().push(index);
        }
        Routes { links, from, found: BTreeMap::new() }
    }

    fn nodes(&self) -> BTreeSet<&'l str> {
        self.links.iter().flat_map(|link| [&*link.tail, &*link.head]).collect()
    }

    /// The route, or `None` where there is none.
    fn path(&mut self, source: &str, target: &str) -> Option<Path> {
        if !self.found.contains_key(source) {
            let found = self.search(source);
            self.found.insert(source.to_owned(), found);
        }
        self.found[source].get(target).cloned()
    }

    fn search(&self, source: &str) -> BTreeMap<&'l str, Path> {
        let mut found: BTreeMap<&str, Path> = BTreeMap::new();
        let Some(source) = self.nodes().get(source).copied() else { return found };
        let mut waiting = BinaryHeap::from([Reverse((0, 0, Path::new(), source))]);
        while let Some(Reverse((delay, hops, path, node))) = waiting.pop() {
            if found.contains_key(node) {
                continue;
            }
            for &index in self.from.get(node).into_iter().flatten() {
                let link = &self.links[index];
                if !found.contains_key(&*link.head) && link.head != node {
                    let mut further = path.clone();
                    further.push(index);
                    waiting.push(Reverse((
                        delay + u128::from(link.line.delay),
                        hops + 1,
                        further,
                        &*link.head,
                    )));
                }
            }
            found.insert(node, path);
        }
        found
    }
}

/// The links a flow's packets cross, there and back.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// There.
    pub path: Path,
    /// And back.
    pub back: Path,
}

impl Way {
    /// Propagation over both, ns.
    pub(crate) fn delay(&self, links: &[Link]) -> u64 {
        self.path.iter().chain(&self.back).map(|index| links[*index].line.delay).sum()
    }
}

/// A flow without a path, and why; `key` is the key at fault within the flow's table.
#[derive(Debug)]
pub(crate) struct NoWay {
    pub(crate) message: String,
    pub(crate) hint: String,
    pub(crate) key: &'static str,
}

/// Where the flow goes. In a dumbbell a probe leaves from home; everything else comes down unless
/// told otherwise.
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
        let nodes = routes.nodes();
        if !nodes.contains(node) {
            let hint = format!("nodes: {}", list(nodes));
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
        // Of two links of one name the last.
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
