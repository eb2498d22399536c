//! Queue disciplines: one file for each algorithm, and one trait, `Qdisc`, that all of them
//! implement.
//!
//! A discipline decides what happens to a packet that arrives at a link (`enqueue`) and which
//! packet leaves when the transmitter is free (`dequeue`). It owns its packets and reports each
//! drop and mark with its cause. The caller passes the time and a random stream. A discipline knows
//! neither TCP nor the simulator: `B`, the packet's body, is opaque. So the same code runs in a
//! replay of a recording, in a fuzzer and on a real-time link.

mod adt;
mod avq;
mod bands;
mod blue;
mod bypass;
mod cake;
mod change;
mod cobalt;
mod codel;
mod drr;
mod ds;
mod dualpi2;
mod ets;
mod fifo;
mod fq;
mod fq_codel;
mod fq_pie;
mod fred;
mod hhf;
mod mq;
pub mod own;
mod pfifo_fast;
mod pie;
mod prio;
mod red;
mod replay;
mod sfb;
mod sfq;
mod slab;
mod tbf;
mod timer;

pub use adt::{Adt, AdtParams};
pub use avq::{Avq, AvqParams};
pub use blue::{Blue, BlueParams};
pub use cake::{
    AckFilterMode, Cake, CakeCells, CakeMq, CakeParams, Isolation, TinMode, TinNumbers,
};
pub use cobalt::{Cobalt, CobaltParams};
pub use codel::{Codel, CodelParams, CodelVariant};
pub use drr::{Drr, DrrParams};
pub use ds::{DsField, DsSelector};
pub use dualpi2::{
    DocsisDualPi2Params, DualPi2, DualPi2Params, LinuxDualPi2Params, RfcDualPi2Params,
};
pub use ets::{Ets, EtsParams};
pub use fifo::{Bfifo, BfifoParams, Fifo, FifoParams, HeadDropFifo, OfTime, Pfifo, TimeFifoParams};
pub use fq::{Fq, FqParams};
pub use fq_codel::{FqCodel, FqCodelParams};
pub use fq_pie::{FqPie, FqPieParams};
pub use fred::{Fred, FredParams};
pub use hhf::{Hhf, HhfParams};
pub use mq::{CardQueues, Mq, MqParams};
pub use own::{Own, OwnParams};
pub use pfifo_fast::{PfifoFast, PfifoFastParams, PfifoFastVariant, priority_of};
pub use pie::{DocsisPieParams, LinuxPieParams, Pie, PieParams, RfcPieParams};
pub use prio::{Prio, PrioParams};
pub use red::{
    Choke, ChokeParams, FloydRedParams, Gred, GredParams, LinuxRedParams, Red, RedParams,
};
pub use replay::{DrawOutcome, ReplayDraws, ReplayHint, ReplayHints, Replayable};
pub use sfb::{Sfb, SfbParams};
pub use sfq::{Sfq, SfqParams};
pub use tbf::{Tbf, TbfLinkLayer, TbfParams};
pub use units::Ecn;

use serde::Deserialize;
use std::sync::Arc;
use units::{Rate, Rng, Time, forward};

/// A packet as a queue sees it. `B` is the caller's own data.
///
/// # Examples
///
/// ```rust
/// use qdisc::{DsField, Ecn, Packet};
/// use units::Time;
///
/// let ds = DsField::BEST_EFFORT.with_ecn(Ecn::Ect0);
/// let packet = Packet { enqueued: Time::ZERO, flow: 7, size: 1514, ds, body: () };
/// assert_eq!(packet.ds.ecn(), Ecn::Ect0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<B> {
    /// The time of its last enqueue. The discipline that enqueues the packet sets it.
    pub enqueued: Time,
    /// The flow: one direction of a five-tuple, or of several in succession (transfers). fq_codel
    /// hashes this number.
    pub flow: u32,
    /// Bytes as the discipline counts them: the IP packet plus the link's header (see
    /// `link::Framing`).
    pub size: u32,
    /// The DS field of the IP header: DSCP and ECN.
    pub ds: DsField,
    /// The caller's own data.
    pub body: B,
}

/// The properties of a packet's body that a queue may read. The defaults describe a datagram of the
/// packet's flow. Tests use them, with numbers or `()` as bodies.
pub trait Body: ReplayHints {
    /// The memory in bytes that the packet takes on a Linux host (`units::memory`). `ip_bytes` is
    /// its size without the link's header.
    #[inline]
    fn truesize(&self, ip_bytes: u32) -> u64 {
        units::memory::datagram(ip_bytes.into())
    }

    /// The connection that the packet belongs to, as its addresses and ports identify it.
    #[inline]
    fn connection(&self, flow: u32) -> u64 {
        flow.into()
    }

    /// The hash by which fq_codel separates flows: 32 uniform bits, different for each `key`.
    #[inline]
    fn hash(&self, flow: u32, key: u64) -> u32 {
        hash(self.connection(flow), key)
    }

    /// The numbers of the source host and the destination host. cake shares the link among hosts by
    /// them. By default each end of a flow is a host of its own; the flow `flow ^ 1` is the reverse
    /// direction.
    #[inline]
    fn hosts(&self, flow: u32) -> [u32; 2] {
        [flow, flow ^ 1]
    }

    /// The tunnel that carries the packet; 0 means none. All packets of a tunnel are one
    /// connection.
    #[inline]
    fn tunnel(&self) -> u8 {
        0
    }

    /// A number that no other packet in the queue has.
    #[inline]
    fn place(&self) -> u32 {
        0
    }
}

/// The upper 32 bits of MurmurHash3's 64-bit finaliser of `connection ^ key`.
#[inline]
pub fn hash(connection: u64, key: u64) -> u32 {
    let mut h = connection ^ key;
    h = (h ^ (h >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    h = (h ^ (h >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^= h >> 33;
    (h >> 32) as u32
}

/// The part of a pure ACK that a discipline may read. Numbers are in the connection's own units,
/// segments or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckView {
    /// The next segment or byte that the receiver expects.
    pub ack: u32,
    /// SACK blocks: the start, and the end (exclusive).
    pub sacks: [(u32, u32); 4],
    /// The number of SACK blocks.
    pub sack_count: u8,
    /// The ACK echoes a CE mark.
    pub ece: bool,
}

impl AckView {
    /// The SACK blocks of the ACK.
    #[inline]
    pub(crate) fn ranges(&self) -> &[(u32, u32)] {
        &self.sacks[..usize::from(self.sack_count)]
    }
}

impl Body for () {}
impl Body for u32 {}
impl Body for u64 {}
impl ReplayHints for () {}
impl ReplayHints for u32 {}
impl ReplayHints for u64 {}

/// The reason why a queue dropped or marked a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Cause {
    /// The hard limit in packets or bytes was reached.
    Limit = 0,
    /// CoDel's or COBALT's control law: the sojourn time stayed above target.
    Target = 1,
    /// CoDel's ce_threshold; the step or ramp of DualPI2's L queue.
    CeThreshold = 2,
    /// An early decision, random in RED, PIE, DualPI2 and SFB. Also certain decisions: of Linux's
    /// RED above the upper threshold, of PIE when accu_prob forces it, of AVQ when its virtual
    /// queue overflows.
    Early = 3,
    /// A certain decision: of ns-2's and ns-3's RED above the upper threshold, or of FRED about a
    /// flow that has more than its share.
    Forced = 4,
    /// The memory limit of fq_codel, cake and dualpi2.
    Overmemory = 5,
    /// The link lost the packet after the queue: random or bursty loss.
    Wire = 6,
    /// BLUE, also COBALT's: random, with a probability that follows overflows of the queue.
    Blue = 7,
    /// The user's own discipline decided to.
    Own = 8,
    /// cake's ack-filter: a newer ACK of the connection carries the same information.
    AckFilter = 9,
    /// A policer before the queue: the packet exceeds its rate.
    Police = 10,
    /// The end of a tunnel behind the link: too many packets sent later have arrived before this
    /// one (replay window).
    Replay = 11,
}

impl Cause {
    /// Every cause, ordered by its number.
    pub const ALL: [Cause; 12] = [
        Cause::Limit,
        Cause::Target,
        Cause::CeThreshold,
        Cause::Early,
        Cause::Forced,
        Cause::Overmemory,
        Cause::Wire,
        Cause::Blue,
        Cause::Own,
        Cause::AckFilter,
        Cause::Police,
        Cause::Replay,
    ];

    /// The cause's name in tables.
    pub fn word(self) -> &'static str {
        match self {
            Cause::Limit => "limit",
            Cause::Target => "target",
            Cause::CeThreshold => "ce_threshold",
            Cause::Early => "early",
            Cause::Forced => "forced",
            Cause::Overmemory => "overmemory",
            Cause::Wire => "wire",
            Cause::Blue => "blue",
            Cause::Own => "own",
            Cause::AckFilter => "ack_filter",
            Cause::Police => "police",
            Cause::Replay => "replay",
        }
    }
}

/// A drop or a mark. A packet that passes has no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<B> {
    /// The packet is dropped; its owner gets it back here.
    Dropped(Packet<B>, Cause),
    /// The packet is marked CE. It stays in the queue or leaves it.
    Marked {
        /// The flow of the marked packet.
        flow: u32,
        /// Its size in bytes.
        size: u32,
        /// The reason.
        cause: Cause,
    },
}

/// The packets and bytes that are queued now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Bytes.
    pub bytes: u64,
}

/// A discipline's own state, for the table `queue`. `None`: the discipline has no such quantity.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct State {
    /// The limit in force now, in the discipline's unit, packets or bytes (adt's q_adt, a FIFO's
    /// limit).
    pub limit: Option<f64>,
    /// CoDel's or COBALT's count of signals in this dropping state; 0 outside it.
    pub count: Option<f64>,
    /// RED's maximum probability (the current one if adaptive), PIE's p, DualPI2's p (C's
    /// probability is its square), SFB's mean p, or the probability of COBALT's BLUE.
    pub probability: Option<f64>,
    /// RED's average queue (packets or bytes, as configured), adt's throughput estimate or AVQ's
    /// virtual capacity, both in bit/s.
    pub average: Option<f64>,
    /// Number of queues with packets (fq, fq_codel, fq_pie, cake, sfq), or of flows (fred).
    pub flows: Option<f64>,
    /// dualpi2: the time that the oldest packet of queue C has waited, ns.
    pub classic_delay: Option<f64>,
    /// dualpi2: the time that the oldest packet of queue L has waited, ns.
    pub l4s_delay: Option<f64>,
}

/// The numbers of the source host and the destination host, indexed by a packet's `flow`. Equal
/// numbers are the same host. Empty if the hosts are unknown.
pub type Hosts = Arc<[[u32; 2]]>;

/// A queue discipline.
///
/// # Examples
///
/// ```rust
/// use qdisc::{Cause, DsField, FifoParams, Packet, Pfifo, Qdisc, Verdict};
/// use units::Time;
///
/// let mut queue = Pfifo::new(&FifoParams { limit: 1 });
/// let packet = |flow| Packet {
///     enqueued: Time::ZERO,
///     flow,
///     size: 1514,
///     ds: DsField::BEST_EFFORT,
///     body: (),
/// };
/// let mut verdicts = Vec::new();
/// queue.enqueue(packet(1), Time::ZERO, &mut verdicts);
/// queue.enqueue(packet(2), Time::ZERO, &mut verdicts);
/// assert!(matches!(verdicts[..], [Verdict::Dropped(Packet { flow: 2, .. }, Cause::Limit)]));
///
/// let first = queue.dequeue(Time::ZERO, &mut verdicts);
/// assert_eq!(first.map(|packet| packet.flow), Some(1));
/// ```
pub trait Qdisc<B> {
    /// Takes a packet that arrives. Drops and marks, of this packet or of others, are pushed to
    /// `verdicts`.
    fn enqueue(&mut self, packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>);

    /// Returns the next packet to send, if any, when the transmitter is free. May drop packets
    /// (CoDel).
    ///
    /// `now` is the time at which the transmitter became free. Call `dequeue` also when nothing is
    /// queued, at the latest just before the next `enqueue` that is later: RED's idle period begins
    /// then, and fq_codel removes emptied flows from its lists. A second call is harmless.
    fn dequeue(&mut self, now: Time, verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>>;

    /// Takes a packet that arrives at an empty queue with a free transmitter, and returns the
    /// packet to send, if any. It is short for `dequeue` at `since`, then `enqueue` and `dequeue`
    /// at `now`. `since` is the earlier time at which the transmitter became free; `None` means
    /// just now.
    #[inline(always)]
    fn pass(
        &mut self,
        mut packet: Packet<B>,
        since: Option<Time>,
        now: Time,
        verdicts: &mut Vec<Verdict<B>>,
    ) -> Option<Packet<B>> {
        if let Some(since) = since {
            let none = self.dequeue(since, verdicts);
            debug_assert!(none.is_none(), "an empty queue gave a packet");
        }
        if self.may_be_bypassed() {
            packet.enqueued = now;
            return Some(packet);
        }
        self.enqueue(packet, now, verdicts);
        self.dequeue(now, verdicts)
    }

    /// Whether a packet that finds the queue empty and the transmitter free leaves the discipline's
    /// state unchanged.
    #[inline]
    fn may_be_bypassed(&self) -> bool {
        false
    }

    /// The time before which a discipline with a rate of its own returns no packet. `None`: the
    /// discipline has no such rate and returns a packet whenever one is queued. A discipline
    /// returns either always `None` or never. The time changes only in `enqueue` and `dequeue`;
    /// after a `dequeue` that returns nothing from a backlog it is later than that call.
    #[inline]
    fn holds_until(&self) -> Option<Time> {
        None
    }

    /// The packets and bytes that are queued now.
    fn backlog(&self) -> Backlog;

    /// The algorithm's own state at `now`, for time lines. `now` is not before the last call.
    fn state(&self, _now: Time) -> State {
        State::default()
    }

    /// The link's rate has changed. Only disciplines that compute with the rate react.
    fn rate_changed(&mut self, _rate: Rate) {}

    /// The table of hosts of a discipline that shares by host. Its owner fills the table before the
    /// first packet. `None`: the discipline does not use it.
    fn hosts(&mut self) -> Option<&mut Hosts> {
        None
    }

    /// Whether the discipline reads ACKs. Then its owner calls `sees` for each pure ACK before it
    /// enqueues the ACK.
    fn sees_acks(&self) -> bool {
        false
    }

    /// The next packet to be enqueued is a pure ACK with these contents.
    fn sees(&mut self, _ack: AckView) {}
}

/// The properties of the link that a discipline is constructed with.
#[derive(Clone, Debug)]
pub struct Context {
    /// The link's initial rate; `None` if the link has no rate limit.
    pub rate: Option<Rate>,
    /// The largest packet of the link in bytes as the discipline counts them: the device's MTU plus
    /// the link's header (1514 on Ethernet).
    pub mtu: u32,
    /// Bytes of the link's header in each packet's size.
    pub header_bytes: u32,
    /// The discipline is the device's root: no shaper above it dequeues from it. Linux lets packets
    /// bypass some root disciplines (see `bypass`).
    pub root: bool,
    /// The discipline's own random stream.
    pub rng: Rng,
}

/// Declares every discipline once: its name in a scenario, its parameters and its constructor.
/// `replayable` marks one that implements `Replayable`.
macro_rules! disciplines {
    ($(
        $kind:literal $Name:ident($Params:ty) => $Queue:ty $(, $replayable:ident)?:
            |$p:ident, $context:ident| $make:expr;
    )*) => {
        /// The parameters of any discipline, as a scenario contains them: `{"kind": "codel",
        /// "limit": 1000, ...}`.
        #[derive(Clone, Debug, PartialEq, Deserialize)]
        #[serde(tag = "kind")]
        #[allow(missing_docs)]
        pub enum Params {
            $(#[serde(rename = $kind)] $Name($Params),)*
        }

        impl Params {
            /// The names of all disciplines.
            pub const KINDS: &[&str] = &[$($kind),*];

            /// The discipline's name.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Params::$Name(_) => $kind,)*
                }
            }
        }

        /// Any discipline. It dispatches by a branch rather than a pointer, since the simulator's
        /// inner loop calls it.
        ///
        /// # Examples
        ///
        /// ```rust
        /// use qdisc::{Context, Discipline, DsField, Packet, Params, Qdisc};
        /// use units::{Rate, Rng, Time};
        ///
        /// let params: Params = serde_json::from_str(r#"{"kind": "pfifo", "limit": 100}"#)?;
        /// let context = Context {
        ///     rate: Some(Rate::from_mbit(10)),
        ///     mtu: 1514,
        ///     header_bytes: 14,
        ///     root: true,
        ///     rng: Rng::new(1, "example"),
        /// };
        /// let mut queue = Discipline::new(&params, context);
        /// let ds = DsField::BEST_EFFORT;
        /// let packet = Packet { enqueued: Time::ZERO, flow: 1, size: 1514, ds, body: () };
        /// queue.enqueue(packet, Time::ZERO, &mut Vec::new());
        /// assert_eq!(queue.backlog().bytes, 1514);
        /// # Ok::<(), serde_json::Error>(())
        /// ```
        #[allow(missing_docs, clippy::large_enum_variant)]
        pub enum Discipline<B> {
            $($Name($Queue),)*
        }

        impl<B: Body> Discipline<B> {
            /// The discipline that `params` describe.
            pub fn new(params: &Params, context: Context) -> Discipline<B> {
                match params {
                    $(Params::$Name($p) => {
                        let $context = context;
                        Discipline::$Name($make)
                    })*
                }
            }
        }

        impl<B: Body> Discipline<B> {
            /// The discipline as a replay uses it; `None`: it can't follow a recording.
            pub fn replayable(&mut self) -> Option<&mut dyn Replayable> {
                match self {
                    $($(Discipline::$Name($replayable) => Some($replayable),)?)*
                    _ => None,
                }
            }
        }

        macro_rules! each {
            ($self:expr, $q:ident => $body:expr) => {
                match $self {
                    $(Discipline::$Name($q) => $body,)*
                }
            };
        }
    };
}

disciplines! {
    "pfifo" Pfifo(FifoParams) => Pfifo<B>: |p, _context| Pfifo::new(p);
    "bfifo" Bfifo(BfifoParams) => Bfifo<B>: |p, context| Bfifo::on_link(p, context.rate);
    "pfifo_head_drop" PfifoHeadDrop(FifoParams) => HeadDropFifo<B>: |p, _context| HeadDropFifo::new(p);
    "pfifo_fast" PfifoFast(PfifoFastParams) => PfifoFast<B>: |p, context| PfifoFast::new(p, context.root);
    "codel" Codel(CodelParams) => Codel<B>: |p, context| Codel::new(p, context);
    "fq_codel" FqCodel(FqCodelParams) => FqCodel<B>: |p, context| FqCodel::new(p, context);
    "red" Red(RedParams) => Red<B>, replayable: |p, context| Red::new(p, context);
    "adt" Adt(AdtParams) => Adt<B>: |p, context| Adt::new(p, context);
    "avq" Avq(AvqParams) => Avq<B>: |p, context| Avq::new(p, context);
    "blue" Blue(BlueParams) => Blue<B>: |p, context| Blue::new(p, context);
    "cake" Cake(CakeParams) => Cake<B>, replayable: |p, context| Cake::new(p, context);
    "cake_mq" CakeMq(CakeParams) => CakeMq<B>: |p, context| CakeMq::new(p, &CardQueues::ONE, context);
    "cobalt" Cobalt(CobaltParams) => Cobalt<B>: |p, context| Cobalt::new(p, context);
    "choke" Choke(ChokeParams) => Choke<B>: |p, context| Choke::new(p, context);
    "drr" Drr(DrrParams) => Drr<B>: |p, context| Drr::new(p, context);
    "dualpi2" DualPi2(DualPi2Params) => DualPi2<B>, replayable: |p, context| DualPi2::new(p, context);
    "ets" Ets(EtsParams) => Ets<B>: |p, context| Ets::new(p, context);
    "fq" Fq(FqParams) => Fq<B>: |p, context| Fq::new(p, context);
    "fq_pie" FqPie(FqPieParams) => FqPie<B>, replayable: |p, context| FqPie::new(p, context);
    "fred" Fred(FredParams) => Fred<B>: |p, context| Fred::new(p, context);
    "gred" Gred(GredParams) => Gred<B>, replayable: |p, context| Gred::new(p, context);
    "hhf" Hhf(HhfParams) => Hhf<B>: |p, context| Hhf::new(p, context);
    "mq" Mq(MqParams) => Mq<B>, replayable: |p, context| Mq::new(p, &CardQueues::ONE, context);
    "own" Own(OwnParams) => Own<B>: |p, context| Own::new(p, context);
    "pie" Pie(PieParams) => Pie<B>, replayable: |p, context| Pie::new(p, context);
    "prio" Prio(PrioParams) => Prio<B>: |p, _context| Prio::new(p);
    "sfb" Sfb(SfbParams) => Sfb<B>, replayable: |p, context| Sfb::new(p, context);
    "sfq" Sfq(SfqParams) => Sfq<B>, replayable: |p, context| Sfq::new(p, context);
    "tbf" Tbf(TbfParams) => Tbf<B>: |p, _context| Tbf::new(p);
}

impl<B: Body> Discipline<B> {
    /// The discipline that `params` describe, on a card with these queues.
    pub fn on_card(params: &Params, card: &CardQueues, context: Context) -> Discipline<B> {
        match params {
            Params::CakeMq(p) => Discipline::CakeMq(CakeMq::new(p, card, context)),
            Params::Mq(p) => Discipline::Mq(Mq::new(p, card, context)),
            _ => Discipline::new(params, context),
        }
    }
}

/// Code that is compiled for the type of a discipline.
pub trait Visitor<B> {
    /// The result.
    type Answer;

    /// Runs it.
    fn visit<Q: Qdisc<B>>(self, qdisc: &mut Q) -> Self::Answer;
}

impl<B: Body> Discipline<B> {
    /// Runs code that calls the discipline often. The most used disciplines have compiled code of
    /// their own, the others share one. In a browser all share it: there the size of the code counts.
    #[inline]
    pub fn visit<V: Visitor<B>>(&mut self, visitor: V) -> V::Answer {
        match self {
            #[cfg(not(target_family = "wasm"))]
            Discipline::Pfifo(qdisc) => visitor.visit(qdisc),
            #[cfg(not(target_family = "wasm"))]
            Discipline::Codel(qdisc) => visitor.visit(qdisc),
            #[cfg(not(target_family = "wasm"))]
            Discipline::FqCodel(qdisc) => visitor.visit(qdisc),
            others => visitor.visit(others),
        }
    }
}

impl<B: Body> Qdisc<B> for Discipline<B> {
    forward! { each:
        #[inline(always)]
        fn enqueue(&mut self, packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>);
        #[inline(always)]
        fn dequeue(&mut self, now: Time, verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>>;
        #[inline(always)]
        fn pass(
            &mut self,
            packet: Packet<B>,
            since: Option<Time>,
            now: Time,
            verdicts: &mut Vec<Verdict<B>>
        ) -> Option<Packet<B>>;
        #[inline]
        fn may_be_bypassed(&self) -> bool;
        #[inline]
        fn holds_until(&self) -> Option<Time>;
        #[inline]
        fn backlog(&self) -> Backlog;
        fn state(&self, now: Time) -> State;
        fn rate_changed(&mut self, rate: Rate);
        fn hosts(&mut self) -> Option<&mut Hosts>;
        fn sees_acks(&self) -> bool;
        fn sees(&mut self, ack: AckView);
    }
}
