//! Queue disciplines: one file per algorithm, one trait over them.
//!
//! A discipline decides what happens to a packet that arrives at a link (`enqueue`) and which
//! packet leaves when the transmitter is free (`dequeue`). It owns its packets, is handed the time
//! and a random stream, and reports every drop and mark with a cause. It knows neither TCP nor the
//! simulator: `B`, the packet's body, is opaque. So the same code runs under a trace replay, a
//! fuzzer and a real-time link.

mod adt;
mod avq;
mod bands;
mod blue;
mod bypass;
mod cake;
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
pub use cake::{AckFilterMode, Cake, CakeCells, CakeMq, CakeParams, Isolation, TinMode};
pub use cobalt::{Cobalt, CobaltParams};
pub use codel::{Codel, CodelParams, CodelVariant};
pub use drr::{Drr, DrrParams};
pub use ds::{DsField, DsSelector};
pub use dualpi2::{
    DocsisDualPi2Params, DualPi2, DualPi2Params, LinuxDualPi2Params, RfcDualPi2Params,
};
pub use ets::{Ets, EtsParams};
pub use fifo::{Bfifo, Fifo, FifoParams, HeadDropFifo, Pfifo};
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
pub use replay::{JudgedDraw, ReplayDraws, ReplayHint, ReplayHints, Replayed};
pub use sfb::{Sfb, SfbParams};
pub use sfq::{Sfq, SfqParams};
pub use tbf::{Tbf, TbfLinkLayer, TbfParams};
pub use units::Ecn;

use serde::Deserialize;
use std::sync::Arc;
use units::{Rate, Rng, Time, forward};

/// A packet as a queue sees it. `B` is what its owner carries along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<B> {
    /// When it was last enqueued; the discipline that enqueues it writes this.
    pub enqueued: Time,
    /// One direction of a five-tuple, or of one after another (transfers). fq_codel hashes it.
    pub flow: u32,
    /// Bytes as the discipline counts them: the IP packet plus the link's header (see
    /// `link::Framing`).
    pub size: u32,
    /// The DS field of the IP header: DSCP and ECN.
    pub ds: DsField,
    /// The owner's part.
    pub body: B,
}

/// What a queue may ask a packet's body. A body that is a number or `()`, as in tests, is a
/// datagram of the packet's flow.
pub trait Body: ReplayHints {
    /// Bytes of a Linux host's memory that the packet takes (`units::memory`); `ip_bytes` is its
    /// size without the link's header.
    #[inline]
    fn truesize(&self, ip_bytes: u32) -> u64 {
        units::memory::datagram(ip_bytes.into())
    }

    /// The connection that the packet belongs to, of its flow's: what addresses and ports tell.
    #[inline]
    fn connection(&self, flow: u32) -> u64 {
        flow.into()
    }

    /// The hash by which fq_codel separates flows: 32 uniform bits, others for another `key`.
    #[inline]
    fn hash(&self, flow: u32, key: u64) -> u32 {
        hash(self.connection(flow), key)
    }

    /// The numbers of the hosts that the packet comes from and is for, by which cake shares among
    /// hosts. Each flow's two ends are hosts of their own here: `flow ^ 1` is the way back.
    #[inline]
    fn hosts(&self, flow: u32) -> [u32; 2] {
        [flow, flow ^ 1]
    }

    /// The tunnel that it is in, whose packets are all one connection; 0: none.
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

/// MurmurHash3's 64-bit finaliser of a connection and a key, its upper half.
#[inline]
pub fn hash(connection: u64, key: u64) -> u32 {
    let mut h = connection ^ key;
    h = (h ^ (h >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    h = (h ^ (h >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^= h >> 33;
    (h >> 32) as u32
}

/// What a pure ACK tells its sender, in units of the connection's own (segments or bytes): all of it
/// that a discipline may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckView {
    /// What is expected next.
    pub ack: u32,
    /// From, and up to but not including.
    pub sacks: [(u32, u32); 4],
    /// How many of these are there.
    pub sack_count: u8,
    /// It echoes a mark.
    pub ece: bool,
}

impl AckView {
    /// What it reports beyond the number.
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

/// Why a queue dropped or marked a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Cause {
    /// The hard limit in packets or bytes was reached.
    Limit = 0,
    /// CoDel's control law, or COBALT's: the sojourn time stayed above target.
    Target = 1,
    /// CoDel's ce_threshold; the step or ramp of DualPI2's L queue.
    CeThreshold = 2,
    /// RED's, PIE's, DualPI2's and SFB's early decision at random; in Linux's RED also the certain one above the
    /// upper threshold, in PIE the one that accu_prob forces. AVQ's, as its virtual queue overflows.
    Early = 3,
    /// The certain decision of ns-2's and ns-3's RED above the upper threshold, and FRED's of a flow
    /// that has more than its share.
    Forced = 4,
    /// The memory limit of fq_codel, cake and dualpi2.
    Overmemory = 5,
    /// The wire lost it: random or bursty loss of a link, after the queue.
    Wire = 6,
    /// BLUE, COBALT's too: at random, by how often the queue has overflowed.
    Blue = 7,
    /// A discipline of the user's own decided so.
    Own = 8,
    /// cake's ack-filter: a newer ACK of the connection tells as much.
    AckFilter = 9,
    /// A policer before the queue: the packet exceeds its rate.
    Police = 10,
    /// The end of a tunnel behind the wire: too many sent later have arrived before it.
    Replay = 11,
}

impl Cause {
    /// Every cause, in the order of its number.
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

    /// The word used in tables.
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

/// What a discipline did to a packet other than pass it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<B> {
    /// The packet is gone; its owner gets it back here.
    Dropped(Packet<B>, Cause),
    /// The packet was marked CE and stays in the queue or leaves it.
    Marked {
        /// The marked packet's flow.
        flow: u32,
        /// Its size in bytes.
        size: u32,
        /// Why.
        cause: Cause,
    },
}

/// What is queued now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Bytes.
    pub bytes: u64,
}

/// A discipline's own state, for the `queue` table; `None`: this discipline has no such quantity.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct State {
    /// The limit in force now, in packets or bytes as the discipline counts it (adt's q_adt, a
    /// fifo's limit).
    pub limit: Option<f64>,
    /// CoDel's or COBALT's count of signals in this dropping state; 0 outside it.
    pub count: Option<f64>,
    /// RED's current maximum probability (adaptive) or configured one; PIE's p; DualPI2's p, whose
    /// square is C's; SFB's mean one; COBALT's BLUE.
    pub probability: Option<f64>,
    /// RED's average queue (packets or bytes, as configured); adt's throughput estimate and AVQ's
    /// virtual capacity in bit/s.
    pub average: Option<f64>,
    /// Number of queues with packets (fq, fq_codel, fq_pie, cake, sfq), or of flows (fred).
    pub flows: Option<f64>,
    /// dualpi2: how long the oldest packet of its queue C has waited, ns.
    pub classic_delay: Option<f64>,
    /// The same of its queue L.
    pub l4s_delay: Option<f64>,
}

/// The numbers of the hosts that a packet comes from and is for, by its `flow`. Ends of flows with
/// equal numbers are one host. Empty: nobody knows.
pub type Hosts = Arc<[[u32; 2]]>;

/// The verbs of a queue discipline.
pub trait Qdisc<B> {
    /// A packet arrives. Drops and marks (of this packet or of others) are pushed to `verdicts`.
    fn enqueue(&mut self, packet: Packet<B>, now: Time, verdicts: &mut Vec<Verdict<B>>);

    /// The transmitter is free: returns the next packet to send, if any. May drop packets (CoDel).
    ///
    /// `now` is the time at which the transmitter became free. Call it also when nothing is queued,
    /// at the latest just before the next `enqueue` that is later: RED's idle period begins then,
    /// and fq_codel takes emptied flows off its lists. Calling it again is harmless.
    fn dequeue(&mut self, now: Time, verdicts: &mut Vec<Verdict<B>>) -> Option<Packet<B>>;

    /// A packet arrives at an empty queue whose transmitter is free, `since` a time before now if
    /// not just now; returns the packet to send, if any. It is `dequeue` then, `enqueue` and
    /// `dequeue` now, in one.
    #[inline]
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

    /// Whether a packet that finds the queue empty and the transmitter free leaves no trace.
    #[inline]
    fn may_be_bypassed(&self) -> bool {
        false
    }

    /// Where the discipline holds packets back to a rate of its own: the time before which it gives
    /// none. `None`: it has no such rate, and gives a packet whenever it has one. Which of both
    /// never changes. The time changes only as a packet comes or leaves, or as the queue is asked in
    /// vain: then it is later than that.
    #[inline]
    fn holds_until(&self) -> Option<Time> {
        None
    }

    /// What is queued now.
    fn backlog(&self) -> Backlog;

    /// The algorithm's own state at this time, not before the last call, for time lines.
    fn state(&self, _now: Time) -> State {
        State::default()
    }

    /// The link's rate changed. Only disciplines that compute with the rate react.
    fn rate_changed(&mut self, _rate: Rate) {}

    /// Where a discipline that shares by host keeps the hosts of its packets; whoever made it writes
    /// them there before the first packet. `None`: it does not ask.
    fn hosts(&mut self) -> Option<&mut Hosts> {
        None
    }

    /// Whether it asks for what an ACK tells: then its owner says so (`sees`) of each pure ACK
    /// before it enqueues it.
    fn sees_acks(&self) -> bool {
        false
    }

    /// The packet that comes next is a pure ACK, and tells this.
    fn sees(&mut self, _ack: AckView) {}
}

/// What a discipline may know of the link it serves when it is made.
#[derive(Clone, Debug)]
pub struct Context {
    /// The link's rate at the start; `None` where the link has no rate limit.
    pub rate: Option<Rate>,
    /// The largest packet of the link in bytes as the discipline counts them (device MTU plus link
    /// header; 1514).
    pub mtu: u32,
    /// Bytes of the link's header within each packet's size.
    pub header_bytes: u32,
    /// The discipline is the device's root: no shaper above it dequeues from it. Linux lets packets
    /// bypass some root disciplines (see `bypass`).
    pub root: bool,
    /// The discipline's own random stream.
    pub rng: Rng,
}

/// Declares every discipline once: its name in a scenario, its parameters, and how it is made. One
/// that follows a recording (`Replayed`) is `replayed`.
macro_rules! disciplines {
    ($(
        $kind:literal $Name:ident($Params:ty) => $Queue:ty $(, $replayed:ident)?:
            |$p:ident, $context:ident| $make:expr;
    )*) => {
        /// The parameters of any discipline, as the scenario hands them over:
        /// `{"kind": "codel", "limit": 1000, ...}`.
        #[derive(Clone, Debug, PartialEq, Deserialize)]
        #[serde(tag = "kind")]
        #[allow(missing_docs)]
        pub enum Params {
            $(#[serde(rename = $kind)] $Name($Params),)*
        }

        impl Params {
            /// Every kind there is.
            pub const KINDS: &[&str] = &[$($kind),*];

            /// The discipline's name.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Params::$Name(_) => $kind,)*
                }
            }
        }

        /// Any discipline, dispatched by a branch rather than a pointer, since the simulator's
        /// inner loop calls it.
        #[allow(missing_docs, clippy::large_enum_variant)]
        pub enum Discipline<B> {
            $($Name($Queue),)*
        }

        impl<B: Body> Discipline<B> {
            /// Makes the discipline that `params` describe.
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
            /// As a replay sees it; `None`: it does not follow a recording.
            pub fn replayed(&mut self) -> Option<&mut dyn Replayed> {
                match self {
                    $($(Discipline::$Name($replayed) => Some($replayed),)?)*
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
    "bfifo" Bfifo(FifoParams) => Bfifo<B>: |p, _context| Bfifo::new(p);
    "pfifo_head_drop" PfifoHeadDrop(FifoParams) => HeadDropFifo<B>: |p, _context| HeadDropFifo::new(p);
    "pfifo_fast" PfifoFast(PfifoFastParams) => PfifoFast<B>: |p, context| PfifoFast::new(p, context.root);
    "codel" Codel(CodelParams) => Codel<B>: |p, context| Codel::new(p, context);
    "fq_codel" FqCodel(FqCodelParams) => FqCodel<B>: |p, context| FqCodel::new(p, context);
    "red" Red(RedParams) => Red<B>, replayed: |p, context| Red::new(p, context);
    "adt" Adt(AdtParams) => Adt<B>: |p, context| Adt::new(p, context);
    "avq" Avq(AvqParams) => Avq<B>: |p, context| Avq::new(p, context);
    "blue" Blue(BlueParams) => Blue<B>: |p, context| Blue::new(p, context);
    "cake" Cake(CakeParams) => Cake<B>, replayed: |p, context| Cake::new(p, context);
    "cake_mq" CakeMq(CakeParams) => CakeMq<B>: |p, context| CakeMq::new(p, &CardQueues::ONE, context);
    "cobalt" Cobalt(CobaltParams) => Cobalt<B>: |p, context| Cobalt::new(p, context);
    "choke" Choke(ChokeParams) => Choke<B>: |p, context| Choke::new(p, context);
    "drr" Drr(DrrParams) => Drr<B>: |p, context| Drr::new(p, context);
    "dualpi2" DualPi2(DualPi2Params) => DualPi2<B>, replayed: |p, context| DualPi2::new(p, context);
    "ets" Ets(EtsParams) => Ets<B>: |p, context| Ets::new(p, context);
    "fq" Fq(FqParams) => Fq<B>: |p, context| Fq::new(p, context);
    "fq_pie" FqPie(FqPieParams) => FqPie<B>, replayed: |p, context| FqPie::new(p, context);
    "fred" Fred(FredParams) => Fred<B>: |p, context| Fred::new(p, context);
    "gred" Gred(GredParams) => Gred<B>, replayed: |p, context| Gred::new(p, context);
    "hhf" Hhf(HhfParams) => Hhf<B>: |p, context| Hhf::new(p, context);
    "mq" Mq(MqParams) => Mq<B>, replayed: |p, context| Mq::new(p, &CardQueues::ONE, context);
    "own" Own(OwnParams) => Own<B>: |p, context| Own::new(p, context);
    "pie" Pie(PieParams) => Pie<B>, replayed: |p, context| Pie::new(p, context);
    "prio" Prio(PrioParams) => Prio<B>: |p, _context| Prio::new(p);
    "sfb" Sfb(SfbParams) => Sfb<B>, replayed: |p, context| Sfb::new(p, context);
    "sfq" Sfq(SfqParams) => Sfq<B>, replayed: |p, context| Sfq::new(p, context);
    "tbf" Tbf(TbfParams) => Tbf<B>: |p, _context| Tbf::new(p);
}

impl<B: Body> Discipline<B> {
    /// Makes the discipline that `params` describe for a card with these queues.
    pub fn on_card(params: &Params, card: &CardQueues, context: Context) -> Discipline<B> {
        match params {
            Params::CakeMq(p) => Discipline::CakeMq(CakeMq::new(p, card, context)),
            Params::Mq(p) => Discipline::Mq(Mq::new(p, card, context)),
            _ => Discipline::new(params, context),
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
