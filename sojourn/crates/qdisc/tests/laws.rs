//! Laws that hold for every discipline. Packets are conserved, flows keep their order, a backlog is
//! always served, and limits are kept. Only ECN-capable packets are marked, and the same rng gives
//! the same verdicts.

#[path = "common/any.rs"]
mod any;

use proptest::prelude::*;
use qdisc::{
    AdtParams, Backlog, BfifoParams, CakeParams, CardQueues, Cause, Context, Discipline,
    DocsisDualPi2Params, DrrParams, DsField, DualPi2Params, Ecn, EtsParams, FifoParams, FqParams,
    GredParams, Packet, Params, PfifoFastParams, PfifoFastVariant, PieParams, PrioParams, Qdisc,
    RedParams, RfcDualPi2Params, State, TinMode, Verdict,
};
use std::collections::HashMap;
use units::{Rate, Rng, Time};

const LARGEST: u32 = 1514;

/// An event at a queue.
#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive { flow: u32, size: u32, ecn: Ecn },
    Serve,
    Pass { ns: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ect1), Just(Ecn::Ce)];
    prop_oneof![
        5 => (0..6u32, 40..=LARGEST, ecn).prop_map(|(flow, size, ecn)| Step::Arrive { flow, size, ecn }),
        4 => Just(Step::Serve),
        2 => prop_oneof![0..2_000_000u64, 0..60_000_000u64, 0..5_000_000_000u64].prop_map(|ns| Step::Pass { ns }),
    ]
}

/// Makes the discipline, as a device's root if the seed is even. A card has one to five queues.
fn make(params: &Params, seed: u64) -> Discipline<u64> {
    let card = match seed % 10 {
        seed @ ..5 => CardQueues { count: 1 + seed as u32, pinned: Vec::new() },
        seed => CardQueues { count: seed as u32 - 4, pinned: vec![0, 3, 1] },
    };
    let rng = Rng::new(seed, "laws");
    let (rate, root) = (Some(Rate::from_mbit(10)), seed.is_multiple_of(2));
    let context = Context { rate, mtu: LARGEST, header_bytes: 0, root, rng };
    Discipline::on_card(params, &card, context)
}

/// Whether this backlog is allowed after an arrival.
fn within_limit(params: &Params, backlog: Backlog) -> bool {
    let packets = u64::from(backlog.packets);
    match params {
        Params::Pfifo(p) | Params::PfifoHeadDrop(p) => packets <= p.limit,
        Params::Bfifo(BfifoParams::Bytes(p)) => backlog.bytes <= p.limit,
        // At 10 Mbit/s a byte takes 800 ns.
        Params::Bfifo(BfifoParams::Time(p)) => backlog.bytes * 800 <= p.limit_ns,
        Params::PfifoFast(p) => match p.variant {
            // One packet may have bypassed the bands.
            PfifoFastVariant::Linux => packets <= 3 * p.limit + p.limit.min(1),
            PfifoFastVariant::Shared => packets <= p.limit,
        },
        Params::Codel(p) => packets <= p.limit,
        // Memory may exceed its limit if one batch of drops can't reduce it enough (a batch of one,
        // small packets ahead).
        Params::FqCodel(p) => packets <= p.limit,
        Params::Choke(p) => packets <= p.limit,
        Params::Avq(p) => backlog.bytes <= p.limit,
        Params::Blue(p) => packets <= p.limit,
        Params::Fred(p) => packets <= p.limit,
        Params::Gred(p) => backlog.bytes <= p.limit.iter().sum(),
        Params::Cobalt(p) => packets <= p.limit,
        // A datagram's bytes are a part of the memory that it takes.
        Params::Cake(p) => p.memlimit.is_none_or(|limit| backlog.bytes <= limit),
        Params::CakeMq(p) => p.memlimit.is_none_or(|limit| backlog.bytes <= limit * 5),
        // The limit applies to each of at most five queues.
        Params::Mq(p) => {
            let a_fifth = Backlog { packets: backlog.packets / 5, bytes: backlog.bytes / 5 };
            within_limit(&p.child, a_fifth)
        }
        Params::Adt(AdtParams { limit, packet: Some(bytes), .. }) => {
            // The packet that fills the queue may exceed the limit.
            backlog.bytes < limit * bytes + u64::from(LARGEST)
        }
        Params::Adt(p) => packets <= p.limit,
        Params::Red(RedParams::Linux(p)) => backlog.bytes <= p.limit,
        Params::Red(RedParams::Ns2(p)) if p.byte_mode => {
            // ns-2 refuses packets once the queue is full; the packet that fills it may exceed the
            // limit.
            backlog.bytes < p.limit * u64::from(p.mean_bytes) + u64::from(LARGEST)
        }
        Params::Red(RedParams::Ns3(p)) if p.byte_mode => {
            backlog.bytes <= p.limit * u64::from(p.mean_bytes)
        }
        Params::Red(RedParams::Ns2(p) | RedParams::Ns3(p)) => packets <= p.limit,
        Params::DualPi2(DualPi2Params::Linux(p)) => packets <= p.limit,
        Params::DualPi2(DualPi2Params::Rfc(RfcDualPi2Params { limit, .. })) => {
            backlog.bytes <= limit.expect("a limit is generated") * u64::from(LARGEST)
        }
        // The limit of C, and the 12 500 bytes of L.
        Params::DualPi2(DualPi2Params::Docsis(DocsisDualPi2Params { limit, .. })) => {
            backlog.bytes <= limit.expect("a limit is generated") * u64::from(LARGEST) + 12_500
        }
        Params::Drr(p) => packets <= u64::from(p.classes) * p.limit,
        Params::Ets(p) => packets <= u64::from(p.bands) * p.limit,
        // The limit of each band, and the fast path.
        Params::Fq(p) => packets <= 3 * p.limit + 8,
        Params::FqPie(p) => packets <= p.limit,
        Params::Hhf(p) => packets <= p.limit,
        Params::Own(p) => {
            let shape = p.code.0.as_ref().expect("the code is compiled").shape();
            packets <= shape.limit.max(shape.bypass.into())
        }
        Params::Tbf(p) => backlog.bytes <= p.limit,
        Params::Prio(p) => packets <= u64::from(p.bands) * p.limit,
        Params::Sfb(p) => packets <= p.limit,
        // One packet may have bypassed the slots.
        Params::Sfq(p) => packets <= p.limit.min(u64::from(p.flows * p.depth) + 1),
        Params::Pie(PieParams::Linux(p)) => packets <= p.limit,
        Params::Pie(PieParams::Rfc(p)) => packets <= p.limit,
        Params::Pie(PieParams::Docsis(p)) => packets <= p.limit,
    }
}

/// Codepoints of all three bands of pfifo_fast: best effort, throughput, low delay, EF, LE and
/// AF11.
fn mixed(flow: u32) -> DsField {
    DsField([0, 2, 4, 46, 1, 10][flow as usize % 6] << 2)
}

/// A queue, its arrivals and its verdicts. Checks the laws at each step.
struct Ledger<'a> {
    params: &'a Params,
    queue: Discipline<u64>,
    /// The DS field of a flow's packets. It is the same for all, since bands would reorder a flow
    /// otherwise.
    codepoint: fn(u32) -> DsField,
    now: u64,
    /// The queued packets as they arrived, by serial number (the packet's body).
    inside: HashMap<u64, Packet<u64>>,
    arrived: u64,
    inside_bytes: u64,
    marks: u64,
    gone_marked: u64,
    last_of_flow: HashMap<(u32, bool), u64>,
    verdicts: Vec<Verdict<u64>>,
    /// The log of all events, to compare two runs.
    log: Vec<(u64, u64, Option<Cause>)>,
}

impl Ledger<'_> {
    fn new(params: &Params, seed: u64) -> Ledger<'_> {
        Ledger {
            params,
            queue: make(params, seed),
            codepoint: mixed,
            now: 0,
            inside: HashMap::new(),
            arrived: 0,
            inside_bytes: 0,
            marks: 0,
            gone_marked: 0,
            last_of_flow: HashMap::new(),
            verdicts: Vec::new(),
            log: Vec::new(),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Pass { ns } => self.now += ns,
            Step::Arrive { flow, size, ecn } => {
                let serial = self.arrived;
                self.arrived += 1;
                let ds = (self.codepoint)(flow).with_ecn(ecn);
                let packet = Packet { enqueued: Time::NEVER, flow, size, ds, body: serial };
                self.inside.insert(serial, Packet { enqueued: Time(self.now), ..packet });
                self.inside_bytes += u64::from(size);
                self.queue.enqueue(packet, Time(self.now), &mut self.verdicts);
                self.settle();
                assert!(
                    within_limit(self.params, self.queue.backlog()),
                    "limit exceeded: {:?}",
                    self.queue.backlog()
                );
            }
            Step::Serve => {
                self.serve();
            }
        }
    }

    fn state(&self) -> State {
        self.queue.state(Time(self.now))
    }

    fn serve(&mut self) -> bool {
        let served = self.queue.dequeue(Time(self.now), &mut self.verdicts);
        let any = served.is_some();
        if let Some(packet) = served {
            let before = self.inside.remove(&packet.body).expect("a departing packet was queued");
            self.inside_bytes -= u64::from(packet.size);
            assert_eq!(
                (before.flow, before.size, before.enqueued),
                (packet.flow, packet.size, packet.enqueued)
            );
            let washed = matches!(
                self.params,
                Params::Cake(CakeParams { wash: true, .. })
                    | Params::CakeMq(CakeParams { wash: true, .. })
            );
            let codepoint = if washed { 0 } else { before.ds.dscp() };
            assert_eq!(codepoint, packet.ds.dscp(), "only cake's wash changes the codepoint");
            match (before.ds.ecn(), packet.ds.ecn()) {
                (Ecn::Ect0 | Ecn::Ect1, Ecn::Ce) => self.gone_marked += 1,
                (before, after) => assert_eq!(before, after, "only ECN-capable packets are marked"),
            }
            let last = self.last_of_flow.insert(self.queue_of(&before), packet.body);
            // A flow that becomes heavy may overtake its own packets in hhf's light queue. So may a
            // flow that docsis's queue protection sends to C.
            let in_order =
                !matches!(self.params, Params::Hhf(_) | Params::DualPi2(DualPi2Params::Docsis(_)));
            assert!(
                !in_order || last.is_none_or(|last| last < packet.body),
                "flow {} out of order",
                packet.flow
            );
            self.log.push((self.now, packet.body, None));
        }
        self.settle();
        let held = self.queue.holds_until().is_some_and(|until| until > Time(self.now));
        assert!(
            any || held || self.queue.backlog() == Backlog::default(),
            "a backlog and no packet to send"
        );
        any
    }

    /// The queue in which a packet keeps its order: the flow, and in dualpi2 its side.
    fn queue_of(&self, packet: &Packet<u64>) -> (u32, bool) {
        let any_ect = match self.params {
            Params::DualPi2(DualPi2Params::Linux(p)) => p.any_ect,
            Params::DualPi2(_) => false,
            _ => return (packet.flow, false),
        };
        let l4s = match packet.ds.ecn() {
            Ecn::NotEct => false,
            Ecn::Ect0 => any_ect,
            Ecn::Ect1 | Ecn::Ce => true,
        };
        (packet.flow, l4s)
    }

    /// Serves all queued packets, each when the queue returns it.
    fn drain(&mut self) {
        loop {
            while self.serve() {}
            match self.queue.holds_until() {
                Some(until) if !self.inside.is_empty() => self.now = self.now.max(until.0),
                _ => return,
            }
        }
    }

    /// Records the verdicts, and compares the ledger's backlog with the queue's.
    fn settle(&mut self) {
        for verdict in self.verdicts.drain(..) {
            match verdict {
                Verdict::Dropped(packet, cause) => {
                    let before = self
                        .inside
                        .remove(&packet.body)
                        .expect("a dropped packet was queued, and is dropped once");
                    assert_eq!((before.flow, before.size), (packet.flow, packet.size));
                    // choke removes packets from the queue, also marked ones.
                    let marked = before.ds.ecn() != Ecn::Ce && packet.ds.ecn() == Ecn::Ce;
                    self.gone_marked += u64::from(marked);
                    self.inside_bytes -= u64::from(packet.size);
                    self.log.push((self.now, packet.body, Some(cause)));
                }
                Verdict::Marked { flow, size, cause } => {
                    self.marks += 1;
                    self.log.push((self.now, u64::from(flow) << 32 | u64::from(size), Some(cause)));
                }
            }
        }
        let backlog = self.queue.backlog();
        assert_eq!(u64::from(backlog.packets), self.inside.len() as u64);
        assert_eq!(backlog.bytes, self.inside_bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn every_discipline_keeps_the_laws(params in any::any(0..40), steps in prop::collection::vec(step(), 1..400)) {
        for seed in [1, 2] {
            let mut ledger = Ledger::new(&params, seed);
            for step in &steps {
                ledger.step(*step);
            }
            // The rest can be served to the last packet. Then every mark has left with a packet.
            ledger.now += 1_000_000_000;
            ledger.drain();
            prop_assert_eq!(ledger.inside.len(), 0);
            prop_assert_eq!(ledger.marks, ledger.gone_marked);
        }
    }

    #[test]
    fn the_same_random_stream_gives_the_same_results(params in any::any(0..40), steps in prop::collection::vec(step(), 1..200)) {
        let log = || {
            let mut ledger = Ledger::new(&params, 7);
            steps.iter().for_each(|s| ledger.step(*s));
            ledger.log
        };
        prop_assert_eq!(log(), log());
    }

    #[test]
    fn only_pfifo_fast_prio_ets_gred_fq_and_cake_read_the_codepoint(params in any::any(0..40), steps in prop::collection::vec(step(), 1..200)) {
        let log = |codepoint: fn(u32) -> DsField| {
            let mut ledger = Ledger::new(&params, 7);
            ledger.codepoint = codepoint;
            steps.iter().for_each(|s| ledger.step(*s));
            ledger.log
        };
        let uniform = log(|_| DsField::BEST_EFFORT);
        if let Params::PfifoFast(PfifoFastParams { variant, limit }) = params {
            // With all packets in one band it is pfifo, except for the places that Linux's large
            // rings free late.
            prop_assume!(variant == PfifoFastVariant::Shared || limit < 32);
            let pfifo = Params::Pfifo(FifoParams { limit });
            let mut ledger = Ledger::new(&pfifo, 7);
            steps.iter().for_each(|s| ledger.step(*s));
            prop_assert_eq!(uniform, ledger.log);
        } else if let Params::Prio(PrioParams { limit, .. })
        | Params::Ets(EtsParams { limit, .. })
        | Params::Drr(DrrParams { limit, .. }) = params
        {
            // With all packets in one band it is pfifo.
            let pfifo = Params::Pfifo(FifoParams { limit });
            let mut ledger = Ledger::new(&pfifo, 7);
            steps.iter().for_each(|s| ledger.step(*s));
            prop_assert_eq!(uniform, ledger.log);
        } else if let Params::Fq(fq) = params {
            // With one band for all packets their DS fields do not matter.
            let one = Params::Fq(FqParams { priomap: [fq.priomap[0]; 16], ..fq });
            let mut ledger = Ledger::new(&one, 7);
            steps.iter().for_each(|s| ledger.step(*s));
            prop_assert_eq!(uniform, ledger.log);
        } else if let Params::Gred(gred) = params {
            // With one virtual queue for all packets their DS fields do not matter.
            let one = Params::Gred(GredParams { priomap: [gred.priomap[0]; 16], ..gred });
            let mut ledger = Ledger::new(&one, 7);
            steps.iter().for_each(|s| ledger.step(*s));
            prop_assert_eq!(uniform, ledger.log);
        } else if let Params::Cake(cake) | Params::CakeMq(cake) = &params
            && cake.tins != TinMode::Besteffort
        {
            // In one tin the result is that without tins.
            prop_assume!(matches!(cake.tins, TinMode::Diffserv3 | TinMode::Diffserv4));
            let besteffort = CakeParams { tins: TinMode::Besteffort, ..cake.clone() };
            let besteffort = match params {
                Params::Cake(_) => Params::Cake(besteffort),
                _ => Params::CakeMq(besteffort),
            };
            let mut ledger = Ledger::new(&besteffort, 7);
            ledger.codepoint = |_| DsField::BEST_EFFORT;
            steps.iter().for_each(|s| ledger.step(*s));
            prop_assert_eq!(uniform, ledger.log);
        } else {
            prop_assert_eq!(uniform, log(mixed));
        }
    }

    #[test]
    fn asking_an_empty_queue_again_changes_nothing(params in any::any(0..40), steps in prop::collection::vec(step(), 1..200)) {
        let log = |again: bool| {
            let mut ledger = Ledger::new(&params, 7);
            for step in &steps {
                ledger.step(*step);
                if again && matches!(step, Step::Serve) && ledger.inside.is_empty() {
                    ledger.serve();
                    ledger.serve();
                } else if matches!(step, Step::Serve) && ledger.inside.is_empty() {
                    ledger.serve();
                }
            }
            ledger.log
        };
        prop_assert_eq!(log(true), log(false));
    }
}

#[test]
fn another_random_stream_gives_other_results() {
    let params: Params = from_json(
        r#"{"kind": "red", "variant": "ns3", "limit": 100, "min": 5, "max": 15, "weight": 0.1, "probability": 0.1,
            "mean_bytes": 500, "byte_mode": false, "gentle": true, "wait": false, "adaptive": false,
            "target_delay_ns": 5000000, "ecn": false}"#,
    );
    let log = |seed| {
        let mut ledger = Ledger::new(&params, seed);
        for i in 0..2000 {
            ledger.step(Step::Arrive { flow: 0, size: 1500, ecn: Ecn::NotEct });
            ledger.now += 1_200_000;
            if i > 10 {
                ledger.serve();
            }
        }
        ledger.log
    };
    assert_eq!(log(1), log(1));
    assert_ne!(log(1), log(2));
}

fn from_json(text: &str) -> Params {
    serde_json::from_str(text).expect("these parameters are valid")
}

#[test]
fn parameters_have_these_json_forms() {
    let forms = [
        r#"{"kind": "pfifo", "limit": 1000}"#,
        r#"{"kind": "bfifo", "limit": 150000}"#,
        r#"{"kind": "pfifo_head_drop", "limit": 1000}"#,
        r#"{"kind": "pfifo_fast", "variant": "shared", "limit": 1000}"#,
        r#"{"kind": "codel", "variant": "linux", "limit": 1000, "target_ns": 5000000, "interval_ns": 100000000,
            "ecn": false, "ce_threshold_ns": null}"#,
        r#"{"kind": "fq_codel", "variant": "rfc", "limit": 10240, "flows": 1024, "memory_limit": 33554432,
            "target_ns": 5000000, "interval_ns": 100000000, "quantum": 1514, "ecn": true, "ce_threshold_ns": 1000000,
            "drop_batch": 64}"#,
        r#"{"kind": "red", "variant": "linux", "limit": 400000, "min": 30000, "max": 90000, "avpkt": 1000, "burst": 55,
            "probability": 0.02, "bandwidth": 10000000, "adaptive": true, "ecn": true, "harddrop": false, "nodrop": false}"#,
        r#"{"kind": "red", "variant": "ns2", "limit": 100, "min": 0, "max": 0.0, "weight": 0, "probability": 0.1,
            "mean_bytes": 500, "byte_mode": true, "gentle": true, "wait": true, "adaptive": false,
            "target_delay_ns": 5000000, "ecn": false}"#,
        r#"{"kind": "adt", "limit": 500, "utilisation": 0.99, "increase": 1.01, "weight": 0.1, "sample_ns": 300000000,
            "rate": null, "start": null}"#,
        r#"{"kind": "avq", "limit": 150000, "gamma": 0.98, "alpha": 0.15, "rate": null, "ecn": false}"#,
        r#"{"kind": "fred", "limit": 100, "min": 25, "max": 50, "probability": 0.02, "weight": 0.002, "minq": 4,
            "many_flows": false}"#,
        r#"{"kind": "gred", "limit": "60000 60000", "min": "15000 10000", "max": "45000 30000", "burst": "25 20",
            "probability": "0.02 0.1", "prio": "1 2", "avpkt": 1000, "bandwidth": 10000000,
            "priomap": "0 0 0 0 1 0 1 0 0 0 0 0 0 0 0 0", "grio": true, "ecn": false, "harddrop": false}"#,
        r#"{"kind": "blue", "limit": 1000, "freeze_ns": 100000000, "increment": 0.02, "decrement": 0.002,
            "ecn": false}"#,
        r#"{"kind": "cobalt", "limit": 1000, "target_ns": 5000000, "interval_ns": 100000000, "ecn": true}"#,
        r#"{"kind": "cake", "bandwidth": 20000000, "rtt_ns": 100000000, "memlimit": null, "tins": "diffserv3",
            "isolation": "dual-srchost", "wash": false, "ingress": true, "raw": false, "overhead": 44, "mpu": 64, "cells": "atm", "acks": "ack-filter"}"#,
        r#"{"kind": "fq_pie", "limit": 10240, "flows": 1024, "target_ns": 15000000, "tupdate_ns": 15000000,
            "alpha": 2, "beta": 20, "quantum": 1514, "memory_limit": 33554432, "ecn_prob": 10,
            "ecn": false, "bytemode": false, "dq_rate_estimator": false}"#,
        r#"{"kind": "fq", "limit": 10000, "flow_limit": 100, "quantum": null, "initial_quantum": 15140,
            "maxrate": 20000000, "pacing": true, "low_rate_threshold": 550000, "refill_delay_ns": 40000000,
            "orphan_mask": 1023, "ce_threshold_ns": null, "timer_slack_ns": 10000,
            "priomap": "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1", "weights": "589824 196608 65536"}"#,
        r#"{"kind": "hhf", "limit": 1000, "quantum": null, "hh_limit": 2048, "reset_timeout_ns": 40000000,
            "admit_bytes": 131072, "evict_timeout_ns": 1000000000, "non_hh_weight": 2}"#,
        r#"{"kind": "tbf", "rate": 8000000, "burst": 10000, "limit": 60000, "peakrate": null, "mtu": 1514,
            "mpu": 64, "overhead": 38, "linklayer": "atm"}"#,
        r#"{"kind": "choke", "limit": 1000, "min": 83, "max": 250, "avpkt": 1000, "burst": 138,
            "probability": 0.02, "bandwidth": 10000000, "ecn": false}"#,
        r#"{"kind": "dualpi2", "variant": "linux", "limit": 10000, "memlimit": null, "coupling_factor": 2,
            "step_thresh_ns": 1000000, "step_thresh_packets": null, "min_qlen_step": 0, "classic_protection": 10,
            "target_ns": 15000000, "tupdate_ns": 16000000, "alpha": 41, "beta": 819, "drop_on_overload": true,
            "drop_enqueue": false, "any_ect": false}"#,
        r#"{"kind": "dualpi2", "variant": "rfc", "limit": null, "coupling_factor": 2, "min_th_ns": 800000,
            "range_ns": 400000, "min_qlen_ramp": 1, "classic_protection": 6.25, "target_ns": 15000000,
            "tupdate_ns": 15000000, "alpha": 0.15, "beta": 3.0}"#,
        r#"{"kind": "dualpi2", "variant": "docsis", "limit": null, "coupling_factor": 2, "max_th_ns": 1000000,
            "target_ns": 10000000, "tupdate_ns": 16000000, "alpha": 0.25, "beta": 2.5, "queue_protection": true}"#,
        r#"{"kind": "drr", "classes": 2, "quanta": "3000",
            "priomap": "0 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "limit": 1000}"#,
        r#"{"kind": "ets", "bands": 3, "strict": 1, "quanta": "3000 1500",
            "priomap": "0 1 2 2 2 2 2 2 2 2 2 2 2 2 2 2", "limit": 1000}"#,
        r#"{"kind": "prio", "bands": 3, "priomap": "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1", "limit": 1000}"#,
        r#"{"kind": "sfb", "limit": 1000, "rehash_ms": 600000, "db_ms": 60000, "max": 25, "target": 20,
            "increment": 33, "decrement": 3, "penalty_rate": 10, "penalty_burst": 20}"#,
        r#"{"kind": "sfq", "limit": 127, "perturb": 10, "quantum": 1514, "divisor": 1024, "flows": 128, "depth": 127,
            "headdrop": false, "redflowlimit": 100000, "min": 8000, "max": 60000, "avpkt": 1000, "burst": 25,
            "probability": 0.2, "ecn": true, "harddrop": false}"#,
        r#"{"kind": "pie", "variant": "linux", "limit": 1000, "target_ns": 15000000, "tupdate_ns": 15000000,
            "alpha": 2, "beta": 20, "ecn": false, "bytemode": false, "dq_rate_estimator": false}"#,
        r#"{"kind": "pie", "variant": "rfc", "limit": 1000, "target_ns": 15000000, "tupdate_ns": 15000000,
            "alpha": 2, "beta": 20.0, "ecn": true}"#,
        r#"{"kind": "pie", "variant": "docsis", "limit": 1000, "target_ns": 10000000, "tupdate_ns": 16000000,
            "alpha": 4.0, "beta": 40.0}"#,
    ];
    for form in forms {
        let params = from_json(form);
        assert_eq!(Qdisc::<u64>::backlog(&make(&params, 1)), Backlog::default());
        // An unknown field is refused wherever it is.
        let with_unknown = form.replacen('{', r#"{"colour": 1, "#, 1);
        assert!(serde_json::from_str::<Params>(&with_unknown).is_err(), "{with_unknown}");
    }
}

#[test]
fn cake_finds_a_packet_to_drop_if_an_empty_queue_is_at_the_top_of_its_heap() {
    let cake = from_json(
        r#"{"kind": "cake", "bandwidth": null, "rtt_ns": 1000, "memlimit": 3584, "tins": "besteffort",
            "isolation": "dsthost", "wash": false, "ingress": false, "raw": true, "overhead": 0, "mpu": 0, "cells": "noatm",
            "acks": "no-ack-filter"}"#,
    );
    for seed in [1, 2] {
        let mut ledger = Ledger::new(&cake, seed);
        for (flow, size) in [(0, 901), (1, 40), (3, 902), (1, 40)] {
            ledger.step(Step::Arrive { flow, size, ecn: Ecn::NotEct });
        }
        assert!(!ledger.inside.is_empty());
        ledger.drain();
    }
}

#[test]
fn every_discipline_reports_its_state() {
    let codel = from_json(
        r#"{"kind": "codel", "variant": "linux", "limit": 10, "target_ns": 0, "interval_ns": 1000000, "ecn": false,
            "ce_threshold_ns": null}"#,
    );
    let mut ledger = Ledger::new(&codel, 1);
    for _ in 0..10 {
        ledger.step(Step::Arrive { flow: 0, size: 1500, ecn: Ecn::NotEct });
    }
    assert_eq!(ledger.state().count, Some(0.0));
    for _ in 0..2 {
        ledger.now += 10_000_000;
        ledger.serve();
    }
    assert_eq!((ledger.state().limit, ledger.state().count), (Some(10.0), Some(1.0)));

    let adt = from_json(
        r#"{"kind": "adt", "limit": 500, "utilisation": 0.99, "increase": 1.01, "weight": 0.1, "sample_ns": 300000000,
            "rate": null, "start": 100}"#,
    );
    assert_eq!(Qdisc::<u64>::state(&make(&adt, 1), Time::ZERO).limit, Some(100.0));
}
