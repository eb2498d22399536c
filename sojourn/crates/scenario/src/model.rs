//! The scenario as a value: its TOML, checked, with defaults and without units.
//!
//! Each table of the language is a struct here (except `tcp`, in `tcp.rs`), and each key is a line
//! of the struct. The line has the name, type, default and form (`forms.rs`: how it is read and
//! written); its comment is the meaning. The page docs/scenario.md has the same in prose. Rules
//! that span several keys are in `check.rs`; `realised.rs` makes an engine's input.

use crate::command::{COMMAND, Environment, FILES, SEES, USUAL_SEES, Variables};
use crate::forms::{
    BOOL, CODE, CODEPOINT, Chances, Code, Controls, DELAY, DELAY_SCHEDULE, DSCP, DUPLICATE,
    DURATION, FRAMES, HOSTS, Hosts, INTERVAL, JITTER, LADDER, LINK_LAYER, LINK_RATE, LOSS,
    LOSS_SCHEDULE, LinkRate, MAX_FLOWS, NAME, NOTIFICATION, NamedControl, Names, Notification,
    ON_TIME, PACE, PACKET, PACKETS, PAUSE, PAYLOAD, PINNED, POLICE, PaceSteps, Pairs, QDISC,
    QDISC_SCHEDULE, QUEUES, QdiscChanges, RATE, REMARK, REORDER, RING, RTT, SCHEDULE, SEEDS,
    SHAPER, SIZES, SLOT, START, STOP, SYSCALL, Sub, TITLE, WARMUP, Within, Words,
};
use crate::laws::Spread;
use crate::problem::{Key, below};
use crate::reader::{Fields, Form, KeyOf, Reader, Tables, joined, keys, whole};
use crate::samples::{Design, Range, Sampling};
use crate::tcp::{PROFILES, TcpSettings};
use crate::wire::Loss;
use link::{DelayJitter, Duplication, EcnRemark, Framing, Reordering, Slots};
use std::collections::BTreeMap;
use tc::{Discipline, Police, Shaper};
use traffic::{Draw, TrafficKind};
use units::Ecn;
use values::text::{did_you_mean, nearest};
use values::{Table, Value, Wrong, quoted};

// Links
// -------------------------------------------------------------------------------------------------

keys! {
    /// The settings of a link. A missing key has the value of the common table, or the default
    /// (`links::Line`).
    Wire {
        /// Bit/s on the wire, or "unlimited".
        rate: Optional<LinkRate> => LINK_RATE;
        /// One-way propagation.
        delay: Optional<u64> => DELAY;
        /// The queue discipline, in tc's syntax.
        qdisc: Optional<Discipline> => QDISC;
        /// Steps of the discipline's parameters: what tc's `change` is given.
        qdisc_schedule: Optional<QdiscChanges> => QDISC_SCHEDULE;
        /// The link layer's overhead, added to an IP packet.
        link_layer: Optional<Framing> => LINK_LAYER;
        /// Losses of the wire.
        loss: Optional<Loss> => LOSS;
        /// Steps of the probability of a loss.
        loss_schedule: Optional<Chances> => LOSS_SCHEDULE;
        /// The steps of the loss repeat after this time.
        loss_repeat: Optional<u64> => DURATION;
        /// The variation of the delay from packet to packet.
        jitter: Optional<Option<DelayJitter>> => JITTER;
        /// Packets without delay.
        reorder: Optional<Option<Reordering>> => REORDER;
        /// Packets that arrive twice.
        duplicate: Optional<Option<Duplication>> => DUPLICATE;
        /// Packets are collected and delivered together.
        slot: Optional<Option<Slots>> => SLOT;
        /// The action on ECN fields.
        ecn: Optional<Option<EcnRemark>> => REMARK;
        /// A packet with a shorter delay may overtake earlier packets.
        overtake: Optional<bool> => BOOL;
        /// Steps of the delay.
        delay_schedule: Optional<Pairs> => DELAY_SCHEDULE;
        /// The steps of the delay repeat after this time.
        delay_repeat: Optional<u64> => DURATION;
        /// Steps of the rate.
        schedule: Optional<Pairs> => SCHEDULE;
        /// The schedule repeats after this time.
        repeat: Optional<u64> => DURATION;
        /// A token bucket between queue and wire, in tc's syntax; "none": no shaper.
        shaper: Optional<Option<Shaper>> => SHAPER;
        /// A policer before the queue, in tc's syntax; "none": no policer.
        police: Optional<Option<Police>> => POLICE;
        /// Ends of tunnels behind the wire drop a packet that this many packets have overtaken.
        replay_window: Optional<u32> => REPLAY_WINDOW;
        /// Transmit queues of the card, for a discipline with an instance for each queue.
        queues: Optional<u32> => QUEUES;
        /// The queue of each flow, in turn; without it a hash chooses.
        pinned: Optional<Vec<u32>> => PINNED;
        /// Descriptors of the driver's ring below the queue.
        ring: Optional<u32> => RING;
        /// Byte queue limits on the ring.
        bql: Optional<bool> => BOOL;
        /// The driver reports completed packets to the host this long after the first one.
        coalesce: Optional<u64> => DELAY;
    }
}
whole!(Wire);

keys! {
    /// The two directions of a bottleneck.
    Ways {
        /// From home to the net.
        up: Optional<Wire> => Sub;
        /// From the net to home.
        down: Optional<Wire> => Sub;
    }
}

/// `[bottleneck]`: the two links of a dumbbell, alike except for the keys of `up` and `down`.
#[derive(Clone, Debug, PartialEq)]
pub struct Bottleneck {
    /// Settings of both directions.
    pub common: Wire,
    /// Settings of each direction.
    pub ways: Ways,
}

keys! {
    /// The place of a link.
    Ends {
        /// Its name in tables.
        name: Optional<String> => NAME;
        /// The node where it starts.
        source as "from": Required<String> => NAME;
        /// The node where it ends.
        target as "to": Required<String> => NAME;
        /// Two equal links, one for each direction.
        duplex: Defaulted<bool> = true => BOOL;
    }
}

/// `[[link]]`: a link between two nodes, in both directions unless `duplex = false`.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkEntry {
    /// Its settings.
    pub wire: Wire,
    /// Its place.
    pub ends: Ends,
}

impl Ends {
    /// Its name in tables: without a name of its own, its two nodes.
    pub fn name_or_ends(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("{}-{}", self.source, self.target))
    }
}

// Flows
// -------------------------------------------------------------------------------------------------

const REPLAY_WINDOW: Within<i128> = Within { least: 1, most: 1 << 20, above: false };
const COUNT: Within<i128> = Within { least: 1, most: MAX_FLOWS as i128, above: false };

keys! {
    /// The keys of every kind of `[[flow]]`.
    FlowEntry {
        /// Its name in tables.
        name: Optional<String> => NAME;
        /// Flows of this entry.
        count: Defaulted<u32> = 1 => COUNT;
        /// The direction of the data, or of the request.
        direction: Optional<&'static str> => Words(&["down", "up"]);
        /// The node where it starts.
        source as "from": Optional<String> => NAME;
        /// The node where it ends.
        target as "to": Optional<String> => NAME;
        /// The links of its route, by name.
        via: Optional<Vec<String>> => Names;
        /// The base RTT, from propagation.
        rtt: Optional<Spread> => RTT;
        /// Time of its start.
        start: Defaulted<Spread> = Spread::Constant(0) => START;
        /// Time after which it sends nothing new.
        stop: Optional<Spread> => STOP;
        /// The rate of the sender's own link.
        access: Optional<u64> => RATE;
        /// The hosts at the subscribers' end; the flows are assigned to them in turn.
        hosts: Optional<Hosts> => HOSTS;
        /// The node of those hosts.
        hosts_at: Optional<String> => NAME;
        /// Each packet leaves its host up to this much later.
        jitter: Defaulted<u64> = 0 => DELAY;
        /// The codepoint of its packets and of their replies.
        dscp: Defaulted<u8> = 0 => DSCP;
        /// Its tunnel: to queues all of a tunnel's packets are one flow.
        tunnel: Optional<String> => NAME;
    }
}

impl TcpFlow {
    /// The endpoints' ECN feedback. A congestion control that needs ECN turns it on by itself
    /// (Linux's TCP_CONG_NEEDS_ECN, and prague's for AccECN).
    pub(crate) fn notification(&self) -> Notification {
        let is = |name| self.congestion.as_ref().is_some_and(|control| control.is(name));
        match self.ecn {
            None | Some(Notification::Classic) if is("prague") => Notification::Accurate,
            None if is("dctcp") => Notification::Classic,
            given => given.unwrap_or(Notification::Off),
        }
    }
}

keys! {
    /// The keys of every kind that runs over TCP.
    TcpFlow {
        /// The congestion control.
        congestion: Optional<NamedControl> => Controls;
        /// The profile of the endpoints.
        profile: Defaulted<&'static str> = "linux" => Words(PROFILES);
        /// Explicit congestion notification; "accecn": with accurate feedback; none: as the
        /// congestion control needs it.
        ecn: Optional<Notification> => NOTIFICATION;
        /// Settings that differ from the profile.
        tcp: Defaulted<TcpSettings> = TcpSettings::default() => Sub;
    }
}

keys! {
    /// One connection that sends `size`, or sends forever.
    Bulk {
        /// Bytes, drawn for each flow; none: without end.
        size: Optional<Draw> => SIZES;
        /// The rate at which the application writes, or its steps from the flow's start; none: it
        /// always has more to write.
        rate: Optional<PaceSteps> => PACE;
    }
}

keys! {
    /// One transfer after another, each a new connection, with a pause between.
    Transfers {
        /// Bytes of each.
        size: Required<Draw> => SIZES;
        /// Pause from the end of one transfer to the start of the next.
        pause: Defaulted<Draw> = Draw::Exponential { mean: 1_000_000_000 } => PAUSE;
    }
}

keys! {
    /// Requests and answers over a kept connection, with a pause between.
    Requests {
        /// Bytes of each answer.
        size: Required<Draw> => SIZES;
        /// Bytes of each request.
        request: Defaulted<Draw> = Draw::Constant { value: 500 } => SIZES;
        /// Pause from the end of an answer to the next request.
        pause: Defaulted<Draw> = Draw::Exponential { mean: 1_000_000_000 } => PAUSE;
    }
}

keys! {
    /// A browser: pages of many objects, over `count` connections at a time.
    Web {
        /// Objects of a page.
        objects: Defaulted<u32> = 50 => Within { least: 1i128, most: 100_000, above: false };
        /// Bytes of each object.
        size: Required<Draw> => SIZES;
        /// Pause from the end of a page to the start of the next.
        pause: Defaulted<Draw> = Draw::Exponential { mean: 1_000_000_000 } => PAUSE;
    }
}

keys! {
    /// Video over TCP that adapts its rate: segment after segment.
    Stream {
        /// The possible rates of the payload.
        ladder: Defaulted<Vec<u64>> = vec![300_000, 750_000, 1_500_000, 3_000_000, 6_000_000] => LADDER;
        /// The playing time of a segment.
        segment: Defaulted<u64> = 4_000_000_000 => INTERVAL;
        /// The longest playing time that is fetched ahead.
        ahead: Defaulted<u64> = 30_000_000_000 => INTERVAL;
    }
}

keys! {
    /// Datagrams at a constant rate.
    Udp {
        /// Rate of IP bytes.
        rate: Required<u64> => RATE;
        /// IP bytes of each.
        packet: Defaulted<u64> = 1500 => PACKET;
        /// The ECN field: true is ECT(0).
        ecn: Defaulted<Ecn> = Ecn::NotEct => CODEPOINT;
    }
}

keys! {
    /// On and off periods of datagrams at a constant rate.
    Periods {
        /// Length of the on periods.
        on: Defaulted<Draw> = Draw::Exponential { mean: 1_000_000_000 } => ON_TIME;
        /// Length of the off periods.
        off: Defaulted<Draw> = Draw::Exponential { mean: 1_000_000_000 } => PAUSE;
    }
}

keys! {
    /// Echo requests and replies.
    Ping {
        /// Time between requests.
        interval: Defaulted<u64> = 100_000_000 => INTERVAL;
        /// IP bytes, both ways.
        packet: Defaulted<u64> = 84 => PACKET;
        /// The ECN field, both ways: true is ECT(0).
        ecn: Defaulted<Ecn> = Ecn::NotEct => CODEPOINT;
    }
}

keys! {
    /// RTP video at a variable bit rate: from a model, or from recorded `frames`.
    Video {
        /// Rate of the payload.
        rate: Optional<u64> => RATE;
        /// Frames a second.
        fps: Defaulted<f64> = 25.0 => Within { least: 0.0, most: 1000.0, above: true };
        /// Frames from one I frame to the next.
        gop: Defaulted<u32> = 25 => Within { least: 1i128, most: 100_000, above: false };
        /// Mean size of I frames over mean size of P frames.
        i_ratio: Defaulted<f64> = 4.0 => Within { least: 1.0, most: 1000.0, above: false };
        /// Coefficient of variation of the sizes of I frames and of P frames.
        cv: Defaulted<f64> = 0.25 => Within { least: 0.0, most: 10.0, above: false };
        /// Most payload bytes of a packet, without its headers.
        payload: Defaulted<u64> = 1200 => PAYLOAD;
        /// Recorded frames: times and sizes.
        frames: Optional<Pairs> => FRAMES;
        /// The frames repeat after this time.
        repeat: Optional<u64> => DURATION;
        /// The ECN field: true is ECT(0).
        ecn: Defaulted<Ecn> = Ecn::NotEct => CODEPOINT;
    }
}

keys! {
    /// Packets of a capture: their times and sizes, sent whatever happens to them (open loop).
    Capture {
        /// Times, and IP bytes.
        packets: Required<Pairs> => PACKETS;
        /// The packets repeat after this time; none: they are sent once.
        repeat: Optional<u64> => DURATION;
    }
}

keys! {
    /// Two programs of the host in the guest, each on a host of its own.
    ProgramPair {
        /// The server's command, in words; it starts before the run.
        server: Required<String> => COMMAND;
        /// The client's command; it starts at `start`.
        client: Required<String> => COMMAND;
        /// Which of them is at the flow's source; none: the client with direction = "up", else the
        /// server.
        sender: Optional<&'static str> => Words(&["server", "client"]);
        /// Text files beside the scenario, which both find in their working folders.
        files: Defaulted<Vec<String>> = Vec::<String>::new() => FILES;
        /// Environment variables of both.
        env: Defaulted<Environment> = Environment::default() => Variables;
    }
}

impl Udp {
    /// A call's datagrams.
    pub(crate) fn call() -> Udp {
        let (rate, packet) = sim::CALL;
        Udp { rate, packet: packet.into(), ecn: Ecn::NotEct }
    }
}

macro_rules! flows {
    ($($Name:ident($($part:ident: $Part:ty),*);)+) => {
        /// The traffic of a flow, with the keys of its kind.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub enum Kind {
            $($Name($($Part),*),)+
        }

        impl Kind {
            /// Its kind.
            pub fn kind(&self) -> TrafficKind {
                match self {
                    $(Kind::$Name(..) => TrafficKind::$Name,)+
                }
            }

            /// The keys of a kind, without those of every kind.
            fn keys(kind: TrafficKind) -> Vec<KeyOf> {
                let parts: &[fn() -> Vec<KeyOf>] = match kind {
                    $(TrafficKind::$Name => &[$(<$Part>::keys),*],)+
                };
                parts.iter().flat_map(|part| part()).collect()
            }

            #[allow(unused_variables)]
            fn read(
                kind: TrafficKind,
                table: &Table,
                key: &Key,
                reader: &mut Reader<'_>,
            ) -> Option<Kind> {
                match kind {
                    $(TrafficKind::$Name => {
                        // All parts are read before a missing one ends the function, so that all
                        // problems are reported.
                        $(let $part = <$Part>::read(table, key, reader);)*
                        Some(Kind::$Name($($part?),*))
                    })+
                }
            }

            #[allow(unused_variables)]
            fn list(&self, all: bool, out: &mut Vec<(&'static str, Option<Value>)>) {
                match self {
                    $(Kind::$Name($($part),*) => { $($part.list(all, out);)* })+
                }
            }
        }
    };
}

flows! {
    Bulk(tcp: TcpFlow, own: Bulk);
    Transfers(tcp: TcpFlow, own: Transfers);
    Requests(tcp: TcpFlow, own: Requests);
    Web(tcp: TcpFlow, own: Web);
    Stream(tcp: TcpFlow, own: Stream);
    Call();
    Udp(own: Udp);
    OnOff(udp: Udp, periods: Periods);
    Ping(own: Ping);
    Video(own: Video);
    Capture(own: Capture);
    Program(own: ProgramPair);
}

/// `[[flow]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// The keys of every kind.
    pub entry: FlowEntry,
    /// The keys of its own kind.
    pub kind: Kind,
}

impl Flow {
    /// The word of its kind.
    pub fn word(&self) -> &'static str {
        self.kind.kind().word()
    }

    /// The ECN field of its packets, unless TCP sets it.
    pub(crate) fn ecn(&self) -> Ecn {
        match &self.kind {
            Kind::Udp(own) | Kind::OnOff(own, _) => own.ecn,
            Kind::Ping(own) => own.ecn,
            Kind::Video(own) => own.ecn,
            Kind::Bulk(..)
            | Kind::Transfers(..)
            | Kind::Requests(..)
            | Kind::Web(..)
            | Kind::Stream(..)
            | Kind::Call()
            | Kind::Capture(_)
            | Kind::Program(_) => Ecn::NotEct,
        }
    }

    /// Whether it is a probe.
    pub fn probe(&self) -> bool {
        self.kind.kind().is_probe()
    }

    /// Its TCP settings, if it uses TCP.
    pub fn tcp(&self) -> Option<&TcpFlow> {
        match &self.kind {
            Kind::Bulk(tcp, _)
            | Kind::Transfers(tcp, _)
            | Kind::Requests(tcp, _)
            | Kind::Web(tcp, _)
            | Kind::Stream(tcp, _) => Some(tcp),
            Kind::Call()
            | Kind::Udp(_)
            | Kind::OnOff(..)
            | Kind::Ping(_)
            | Kind::Video(_)
            | Kind::Capture(_)
            | Kind::Program(_) => None,
        }
    }

    /// Its programs, if it has some.
    pub(crate) fn programs(&self) -> Option<&ProgramPair> {
        match &self.kind {
            Kind::Program(own) => Some(own),
            _ => None,
        }
    }

    /// The keys of a kind.
    pub(crate) fn keys(kind: TrafficKind) -> Vec<KeyOf> {
        let mut keys = vec![KeyOf { name: "kind", below: None }];
        keys.extend(FlowEntry::keys());
        keys.extend(Kind::keys(kind));
        keys
    }
}

/// A name for each entry: its own, or its kind, or `kind-2` for the second unnamed entry of the
/// kind.
pub fn base_names(flows: &[Flow]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    flows
        .iter()
        .map(|flow| match &flow.entry.name {
            Some(name) => name.clone(),
            None => {
                let times = counts.entry(flow.word()).or_default();
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

impl Tables for Flow {
    fn keys_whole() -> Vec<KeyOf> {
        TrafficKind::ALL.iter().flat_map(|&kind| Flow::keys(kind)).collect()
    }

    fn read_whole(table: &Table, key: &Key, reader: &mut Reader<'_>) -> Option<Flow> {
        let Some(given) = table.get("kind") else {
            reader.missing("kind", key);
            return None;
        };
        let Some(kind) = given.text().and_then(TrafficKind::of) else {
            reader.refuse(not_a_kind(given), &below(key, "kind"));
            return None;
        };
        let entry = FlowEntry::read(table, key, reader);
        let own = Kind::read(kind, table, key, reader);
        reader.unknown(table, key, &Flow::keys(kind));
        Some(Flow { entry: entry?, kind: own? })
    }

    fn list_whole(&self, all: bool) -> Vec<(&'static str, Option<Value>)> {
        let mut out = vec![("kind", Some(Value::from(self.word())))];
        self.entry.list(all, &mut out);
        self.kind.list(all, &mut out);
        out
    }
}

fn not_a_kind(given: &Value) -> Wrong {
    let text = given.text().map_or_else(|| quoted(given), str::to_owned);
    let lower = text.to_ascii_lowercase();
    let also = TrafficKind::ALL.iter().find(|kind| kind.record().also.contains(&&*lower));
    let words: Vec<_> = TrafficKind::words().collect();
    let guess = match also {
        Some(kind) => Some(kind.word()),
        None => nearest(&text, words.iter().copied()),
    };
    let known = format!("known kinds: {}", words.join(", "));
    let message = format!("{} is not a kind of flow", quoted(given));
    Wrong::new(message, did_you_mean(guess, &known))
}

joined!(Bottleneck { common: Wire, ways: Ways });
joined!(LinkEntry { wire: Wire, ends: Ends });

// The scenario
// -------------------------------------------------------------------------------------------------

keys! {
    /// `[record]`: intervals of the time lines; none: chosen by the size of the run.
    Record {
        /// Interval of the table `queue`.
        queue: Optional<u64> => INTERVAL;
        /// Interval of the table `flow`.
        flow: Optional<u64> => INTERVAL;
        /// Records every packet's sojourn time.
        packets: Defaulted<bool> = false => BOOL;
        /// Records every packet's headers.
        headers: Defaulted<bool> = false => BOOL;
    }
}
whole!(Record);

/// The value of a missing `[record]`.
pub const RECORD: Record = Record { queue: None, flow: None, packets: false, headers: false };

// Programs
// -------------------------------------------------------------------------------------------------

keys! {
    /// `[[program]]`: a program of the host that runs on a node of the guest.
    ProgramEntry {
        /// Its name in the Run.
        name: Optional<String> => NAME;
        /// The node that it runs on.
        node: Required<String> => NAME;
        /// Its command, in words.
        command: Required<String> => COMMAND;
        /// Time of its start.
        start: Defaulted<u64> = 0 => WARMUP;
        /// Text files beside the scenario, which it finds in its working folder.
        files: Defaulted<Vec<String>> = Vec::<String>::new() => FILES;
        /// Environment variables.
        env: Defaulted<Environment> = Environment::default() => Variables;
    }
}
whole!(ProgramEntry);

keys! {
    /// `[programs]`: what all programs share.
    ProgramSettings {
        /// The folders of the host that they may read.
        sees: Defaulted<Vec<String>> = vec![USUAL_SEES.to_owned()] => SEES;
        /// The guest's time that each system call takes.
        syscall: Defaulted<u64> = 1000 => SYSCALL;
    }
}
whole!(ProgramSettings);

/// The value of a missing `[programs]`.
pub(crate) fn no_programs() -> ProgramSettings {
    ProgramSettings { sees: vec![USUAL_SEES.to_owned()], syscall: 1000 }
}

/// The name of `[[program]]` among the tables of the language.
pub(crate) const PROGRAM_TABLE: &str = "[[program]]";

/// The tables that a scenario may have several times.
pub(crate) const SEVERAL: [&str; 3] = ["flow", "link", "program"];

/// A list of tables: `[[flow]]`.
struct Entries;

impl<T: Tables> Form<Vec<T>> for Entries {
    fn read(&self, value: &Value, key: &Key, reader: &mut Reader<'_>) -> Option<Vec<T>> {
        let items = reader.list(value, key)?;
        let entries: Vec<_> = items
            .iter()
            .enumerate()
            .map(|(index, item)| reader.table(item, &below(key, index)))
            .collect();
        entries.into_iter().collect()
    }

    fn write(&self, entries: &Vec<T>, all: bool) -> Value {
        Value::List(entries.iter().map(|entry| Value::Table(entry.entries(all))).collect())
    }

    fn below(&self) -> Option<fn() -> Vec<KeyOf>> {
        Some(T::keys_whole)
    }
}

/// The most variants of a sweep.
pub(crate) const MAX_VARIANTS: usize = 10_000;

/// `[sweep]`: the keys that vary.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    /// Dotted keys, each with its values.
    pub axes: Vec<(String, Axis)>,
    /// The sampling of ranges; `None`: no key has a range.
    pub sampling: Option<Sampling>,
}

/// The values of a swept key.
#[derive(Clone, Debug, PartialEq)]
pub enum Axis {
    /// These values in turn.
    Values(Vec<Value>),
    /// Drawn from a range.
    Range(Range),
}

impl Sweep {
    /// Whether nothing varies.
    pub fn is_empty(&self) -> bool {
        self.axes.is_empty()
    }

    /// The sweep as a file would contain it.
    pub fn table(&self) -> Table {
        let mut table: Table = self
            .axes
            .iter()
            .map(|(key, axis)| match axis {
                Axis::Values(values) => (key.clone(), Value::List(values.clone())),
                Axis::Range(range) => (key.clone(), range.write().into()),
            })
            .collect();
        if let Some(sampling) = &self.sampling {
            table.set(SAMPLES, Value::Int(sampling.count as i128));
            table.set(SAMPLING, sampling.design.name().into());
            table.set(SAMPLING_SEED, Value::Int(sampling.seed.into()));
        }
        table
    }
}

const SAMPLES: &str = "samples";
const SAMPLING: &str = "sampling";
const SAMPLING_SEED: &str = "sampling_seed";

/// The form of `[sweep]`.
struct Axes;

impl Form<Sweep> for Axes {
    fn read(&self, value: &Value, key: &Key, reader: &mut Reader<'_>) -> Option<Sweep> {
        let Some(table) = value.table() else {
            let message = format!("{} is not a table", quoted(value));
            reader.refuse(Wrong::new(message, "write it as a table: [sweep]"), key);
            return None;
        };
        let keys = [SAMPLES, SAMPLING, SAMPLING_SEED];
        let axes: Vec<_> = table
            .iter()
            .filter(|(name, _)| !keys.contains(name))
            .map(|(name, value)| {
                let axis = axis(value).map_err(|wrong| reader.refuse(wrong, &below(key, name)));
                Some((name.to_owned(), axis.ok()?))
            })
            .collect();
        let axes: Vec<_> = axes.into_iter().collect::<Option<_>>()?;
        let ranged = axes.iter().find(|(_, axis)| matches!(axis, Axis::Range(_)));
        let sampling = match (ranged, keys.iter().find(|name| table.has(name))) {
            (None, None) => None,
            (Some((range, _)), _) if !table.has(SAMPLES) => {
                let message = "a range needs a number of samples";
                let wrong = Wrong::new(message, "write samples = 50 below [sweep]");
                reader.refuse(wrong, &below(key, &**range));
                return None;
            }
            (None, Some(name)) => {
                let hint = "write one in place of a list: \"1 Mbit/s .. 100 Mbit/s\"";
                let wrong = Wrong::new("no key has a range to draw from", hint);
                reader.refuse(wrong, &below(key, *name));
                return None;
            }
            (Some(_), _) => Some(sampling(table, key, reader)?),
        };
        Some(Sweep { axes, sampling })
    }

    fn write(&self, sweep: &Sweep, _all: bool) -> Value {
        Value::Table(sweep.table())
    }
}

fn axis(value: &Value) -> Result<Axis, Wrong> {
    match value {
        Value::List(values) => Ok(Axis::Values(values.clone())),
        Value::Text(text) if text.contains("..") => Range::read(text).map(Axis::Range),
        _ => Err(Wrong::new(format!("{} is not a list", quoted(value)), "write it in brackets")),
    }
}

fn sampling(table: &Table, key: &Key, reader: &mut Reader<'_>) -> Option<Sampling> {
    let number = |name: &str, usual: u64, least: u64, most: u64| match table.get(name) {
        None => Ok(usual),
        Some(Value::Int(number)) if (least.into()..=most.into()).contains(number) => {
            Ok(*number as u64)
        }
        Some(other) => {
            let message = format!("{} is not a whole number from {least} to {most}", quoted(other));
            Err((
                Wrong::new(message, format!("write {name} = {}", usual.max(least))),
                name.to_owned(),
            ))
        }
    };
    let count = number(SAMPLES, 50, 1, MAX_VARIANTS as u64);
    let seed = number(SAMPLING_SEED, 1, 0, i64::MAX as u64);
    let design = match table.get(SAMPLING) {
        None => Ok(Design::Lhs),
        Some(value) => Design::read(value).map_err(|wrong| (wrong, SAMPLING.to_owned())),
    };
    let mut refuse = |(wrong, name): (Wrong, String)| reader.refuse(wrong, &below(key, &*name));
    let count = count.map_err(&mut refuse).ok();
    let seed = seed.map_err(&mut refuse).ok();
    let design = design.map_err(&mut refuse).ok();
    Some(Sampling { count: count? as usize, design: design?, seed: seed? })
}

keys! {
    /// Links, queue disciplines, traffic and probes: everything a run needs but its seed.
    Scenario {
        /// One line of text.
        title: Defaulted<String> = "untitled".to_owned() => TITLE;
        /// The difference of this variant of a sweep.
        label: Defaulted<String> = String::new() => TITLE;
        /// Length of the run, ns.
        duration: Required<u64> => DURATION;
        /// Start of the run that totals and histograms leave out, ns.
        warmup: Defaulted<u64> = 0 => WARMUP;
        /// One run for each seed.
        seeds: Defaulted<Vec<u64>> = vec![1] => SEEDS;
        /// Hosts send packets of up to 64 kB to their links (TSO, GSO).
        offloads: Defaulted<bool> = false => BOOL;
        /// The two links of a dumbbell.
        bottleneck: Optional<Bottleneck> => Sub;
        /// Links between nodes.
        links as "link": Defaulted<Vec<LinkEntry>> = Vec::new() => Entries;
        /// Traffic and probes.
        flows as "flow": Defaulted<Vec<Flow>> = Vec::new() => Entries;
        /// Programs of the host that run on nodes.
        programs as "program": Defaulted<Vec<ProgramEntry>> = Vec::new() => Entries;
        /// What they may read, and the price of their system calls.
        program_settings as "programs": Defaulted<ProgramSettings> = no_programs() => Sub;
        /// The recorded tables.
        record: Defaulted<Record> = RECORD => Sub;
        /// The text of each file that a discipline, a congestion control or a program names.
        code: Defaulted<Code> = Code::default() => CODE;
        /// The keys that vary.
        sweep: Defaulted<Sweep> = Sweep::default() => Axes;
    }
}
whole!(Scenario);

impl Scenario {
    /// Whether any programs of the host run in it.
    pub fn has_programs(&self) -> bool {
        !self.programs.is_empty() || self.flows.iter().any(|flow| flow.programs().is_some())
    }

    /// Whether it has the form of a dumbbell.
    pub fn dumbbell(&self) -> bool {
        self.bottleneck.is_some()
    }

    /// The scenario as plain values: everything that is not a default.
    pub fn document(&self) -> Table {
        self.entries(false)
    }
}

// Its tables
// -------------------------------------------------------------------------------------------------

/// Every table of the language and its keys.
pub fn language() -> Vec<(&'static str, Vec<KeyOf>)> {
    let mut tables = vec![
        ("", Scenario::keys_whole()),
        ("bottleneck", Bottleneck::keys_whole()),
        ("link", LinkEntry::keys_whole()),
        ("record", Record::keys_whole()),
        // The kind `program` of a flow has a table of that name.
        (PROGRAM_TABLE, ProgramEntry::keys_whole()),
        ("programs", ProgramSettings::keys_whole()),
        ("tcp", TcpSettings::keys_whole()),
    ];
    tables.extend(TrafficKind::ALL.iter().map(|&kind| (kind.word(), Flow::keys(kind))));
    tables
}
