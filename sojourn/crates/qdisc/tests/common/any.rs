//! Any discipline with any parameters, for the laws of this crate and of `sim`.
//!
//! `Params::KINDS` lists the disciplines. A discipline that this file does not know fails every law
//! until its parameters are generated here.

use proptest::prelude::*;
use proptest::strategy::Union;
use qdisc::own::{
    DROP, LINK_NUMBERS, MARK, OwnCode, OwnLaw, OwnLink, OwnPacket, OwnProgram, OwnShape, PASS,
};
use qdisc::{
    AckFilterMode, AdtParams, AvqParams, BfifoParams, BlueParams, CakeCells, CakeParams,
    ChokeParams, CobaltParams, CodelParams, CodelVariant, DocsisDualPi2Params, DocsisPieParams,
    DrrParams, DsSelector, DualPi2Params, EtsParams, FifoParams, FloydRedParams, FqCodelParams,
    FqParams, FqPieParams, FredParams, GredParams, HhfParams, Isolation, LinuxDualPi2Params,
    LinuxPieParams, LinuxRedParams, MqParams, OfTime, OwnParams, Params, PfifoFastParams,
    PfifoFastVariant, PieParams, PrioParams, RedParams, RfcDualPi2Params, RfcPieParams, SfbParams,
    SfqParams, TbfLinkLayer, TbfParams, TimeFifoParams, TinMode,
};
use std::ops::Range;
use std::sync::Arc;

/// Any discipline, with limits from `packets`. All kinds are equally likely.
pub fn any(packets: Range<u64>) -> impl Strategy<Value = Params> {
    Union::new(Params::KINDS.iter().map(|kind| of_kind(kind, packets.clone())))
}

fn bfifo(bytes: Range<u64>) -> impl Strategy<Value = Params> {
    let of_bytes = bytes.clone().prop_map(|limit| BfifoParams::Bytes(FifoParams { limit }));
    // At 10 Mbit/s a byte takes 800 ns.
    let of_time = bytes.prop_map(|bytes| {
        BfifoParams::Time(TimeFifoParams { variant: OfTime::Time, limit_ns: 800 * bytes })
    });
    prop_oneof![of_bytes, of_time].prop_map(Params::Bfifo)
}

fn of_kind(kind: &str, packets: Range<u64>) -> BoxedStrategy<Params> {
    let bytes = packets.start * 1000..packets.end * 1000;
    match kind {
        "pfifo" => packets.prop_map(|limit| Params::Pfifo(FifoParams { limit })).boxed(),
        "bfifo" => bfifo(bytes).boxed(),
        "pfifo_head_drop" => {
            packets.prop_map(|limit| Params::PfifoHeadDrop(FifoParams { limit })).boxed()
        }
        "pfifo_fast" => pfifo_fast(packets).boxed(),
        "codel" => codel(packets).boxed(),
        "fq_codel" => fq_codel(packets, bytes).boxed(),
        "choke" => choke(packets).boxed(),
        "cobalt" => cobalt(packets).boxed(),
        "cake" => cake(bytes).prop_map(Params::Cake).boxed(),
        "cake_mq" => cake_mq(bytes).boxed(),
        "red" => prop_oneof![2 => linux_red(bytes), 3 => floyd_red(packets)].boxed(),
        "adt" => adt(packets).boxed(),
        "pie" => pie(packets).boxed(),
        "dualpi2" => dualpi2(packets, bytes).boxed(),
        "avq" => avq(bytes).boxed(),
        "blue" => blue(packets).boxed(),
        "drr" => drr(packets).boxed(),
        "ets" => ets(packets).boxed(),
        "fq" => fq(packets).boxed(),
        "fq_pie" => fq_pie(packets).boxed(),
        "fred" => fred(packets).boxed(),
        "gred" => gred(bytes).boxed(),
        "hhf" => hhf(packets).boxed(),
        "mq" => mq(packets).boxed(),
        "own" => own(packets).boxed(),
        "tbf" => tbf().boxed(),
        "prio" => prio(packets).boxed(),
        "sfb" => sfb(packets).boxed(),
        "sfq" => sfq(packets).boxed(),
        _ => panic!(
            "the laws know no parameters of {kind}: generate them in crates/qdisc/tests/common/any.rs"
        ),
    }
}

fn pfifo_fast(packets: Range<u64>) -> impl Strategy<Value = Params> {
    (prop_oneof![Just(PfifoFastVariant::Linux), Just(PfifoFastVariant::Shared)], packets)
        .prop_map(|(variant, limit)| Params::PfifoFast(PfifoFastParams { variant, limit }))
}

fn codel_variant() -> impl Strategy<Value = CodelVariant> {
    prop_oneof![
        Just(CodelVariant::Linux),
        Just(CodelVariant::Linux73),
        Just(CodelVariant::Linux2012),
        Just(CodelVariant::Rfc),
        Just(CodelVariant::Ns3)
    ]
}

fn codel(packets: Range<u64>) -> impl Strategy<Value = Params> {
    (codel_variant(), packets, 0..20_000_000u64, 1..50_000_000u64, prop::bool::ANY, prop::bool::ANY)
        .prop_map(|(variant, limit, target_ns, interval_ns, ecn, ce)| {
            let ce_threshold_ns = ce.then_some(target_ns / 2);
            Params::Codel(CodelParams {
                variant,
                limit,
                target_ns,
                interval_ns,
                ecn,
                ce_threshold_ns,
            })
        })
}

fn fq_codel(packets: Range<u64>, bytes: Range<u64>) -> impl Strategy<Value = Params> {
    (
        prop_oneof![4 => codel_variant(), 1 => Just(CodelVariant::Mac80211)],
        packets,
        prop_oneof![1..5u32, 5..64u32],
        bytes.start + 2000..bytes.end + 20_000,
        0..20_000_000u64,
        1..50_000_000u64,
        1..3000u32,
        prop::bool::ANY,
        prop::bool::ANY,
        1..70u32,
    )
        .prop_map(
            |(
                variant,
                limit,
                flows,
                memory_limit,
                target_ns,
                interval_ns,
                quantum,
                ecn,
                ce,
                drop_batch,
            )| {
                let ce_threshold_ns = ce.then_some(target_ns / 2);
                Params::FqCodel(FqCodelParams {
                    variant,
                    limit,
                    flows,
                    memory_limit,
                    target_ns,
                    interval_ns,
                    quantum,
                    ecn,
                    ce_threshold_ns,
                    ce_threshold_selector: ecn.then_some(DsSelector { value: 2, mask: 3 }),
                    drop_batch,
                })
            },
        )
}

fn choke(packets: Range<u64>) -> impl Strategy<Value = Params> {
    (packets, 0..8u32, 0..30u32, 0..20u32, 0.001..1.0, 100_000..1_000_000_000u64, prop::bool::ANY)
        .prop_map(|(limit, min, width, burst, probability, bandwidth, ecn)| {
            Params::Choke(ChokeParams {
                limit,
                min,
                max: min + width,
                avpkt: 1000,
                burst,
                probability,
                bandwidth,
                ecn,
            })
        })
}

fn ets(packets: Range<u64>) -> impl Strategy<Value = Params> {
    let quanta = prop::collection::vec(prop_oneof![1..300u32, 300..4000u32], 0..16);
    (packets, 1..=16u8, 0..=16u8, quanta, prop::array::uniform16(0..16u8)).prop_map(
        |(limit, bands, strict, quanta, priomap)| {
            let strict = strict.min(bands);
            Params::Ets(EtsParams { bands, strict, quanta, priomap, limit })
        },
    )
}

fn blue(packets: Range<u64>) -> impl Strategy<Value = Params> {
    (packets, 0..20_000_000u64, 0.001..1.0f64, 0.001..1.0f64, prop::bool::ANY).prop_map(
        |(limit, freeze_ns, increment, decrement, ecn)| {
            Params::Blue(BlueParams { limit, freeze_ns, increment, decrement, ecn })
        },
    )
}

fn avq(bytes: Range<u64>) -> impl Strategy<Value = Params> {
    (bytes, 0.01..1.0f64, 0.01..100.0f64, prop::bool::ANY).prop_map(|(limit, gamma, alpha, ecn)| {
        Params::Avq(AvqParams { limit, gamma, alpha, rate: None, ecn })
    })
}

fn fred(packets: Range<u64>) -> impl Strategy<Value = Params> {
    (packets, 0.1..10.0f64, 0.1..20.0f64, 0.01..=1.0f64, 0.01..=1.0f64, 1..8u32, prop::bool::ANY)
        .prop_map(|(limit, min, width, probability, weight, minq, many_flows)| {
            let max = min + width;
            Params::Fred(FredParams { limit, min, max, probability, weight, minq, many_flows })
        })
}

fn gred(bytes: Range<u64>) -> impl Strategy<Value = Params> {
    let queue = (bytes, 0..20_000u32, 1..20_000u32, 1..60u32, 0.001..=1.0f64, 0..3u8);
    let flags = (prop::bool::ANY, prop::bool::ANY, prop::bool::ANY);
    (prop::collection::vec(queue, 1..5), prop::array::uniform16(0..5u8), flags).prop_map(
        |(queues, priomap, (grio, ecn, harddrop))| {
            Params::Gred(GredParams {
                limit: queues.iter().map(|q| q.0).collect(),
                min: queues.iter().map(|q| q.1).collect(),
                max: queues.iter().map(|q| q.1 + q.2).collect(),
                burst: queues.iter().map(|q| q.3).collect(),
                probability: queues.iter().map(|q| q.4).collect(),
                prio: queues.iter().map(|q| q.5).collect(),
                avpkt: 1000,
                bandwidth: 10_000_000,
                priomap,
                grio,
                ecn,
                harddrop,
            })
        },
    )
}

fn drr(packets: Range<u64>) -> impl Strategy<Value = Params> {
    let quanta = prop::collection::vec(100..3000u32, 0..4);
    (packets, 1..5u8, quanta, prop::array::uniform16(0..5u8)).prop_map(
        |(limit, classes, quanta, priomap)| {
            Params::Drr(DrrParams { classes, quanta, priomap, limit })
        },
    )
}

fn cobalt(packets: Range<u64>) -> impl Strategy<Value = Params> {
    (packets, 0..20_000_000u64, 1..50_000_000u64, prop::bool::ANY).prop_map(
        |(limit, target_ns, interval_ns, ecn)| {
            Params::Cobalt(CobaltParams { limit, target_ns, interval_ns, ecn })
        },
    )
}

fn cake(bytes: Range<u64>) -> impl Strategy<Value = CakeParams> {
    let isolation = prop::sample::select(&Isolation::ALL[..]);
    let tins = prop::sample::select(&TinMode::ALL[..]);
    let cells = prop::sample::select(vec![CakeCells::Noatm, CakeCells::Atm, CakeCells::Ptm]);
    let acks = prop::sample::select(&AckFilterMode::ALL[..]);
    (
        (
            prop::option::of(100_000..100_000_000u64),
            prop_oneof![1..1_000u64, 1..5_000_000u64].prop_map(|us| us * 1_000),
            prop::option::of(bytes.start + 2_000..bytes.end + 20_000),
        ),
        (tins, isolation, prop::bool::ANY, prop::bool::ANY),
        ((prop::bool::ANY, -64..256i64), 0..256u32, cells, acks),
    )
        .prop_map(
            |(
                (bandwidth, rtt_ns, memlimit),
                (tins, isolation, wash, ingress),
                ((raw, overhead), mpu, cells, acks),
            )| {
                CakeParams {
                    bandwidth,
                    rtt_ns,
                    memlimit,
                    tins,
                    isolation,
                    wash,
                    ingress,
                    raw,
                    overhead,
                    mpu,
                    cells,
                    acks,
                    sync_ns: 0,
                }
            },
        )
}

fn cake_mq(bytes: Range<u64>) -> impl Strategy<Value = Params> {
    (cake(bytes), 0..20_000_000u64)
        .prop_map(|(cake, sync_ns)| Params::CakeMq(CakeParams { sync_ns, ..cake }))
}

/// A card of disciplines for which no law has an exception.
fn mq(packets: Range<u64>) -> impl Strategy<Value = Params> {
    let kinds = ["pfifo", "bfifo", "codel", "fq_codel", "red", "pie", "fq_pie", "blue"];
    Union::new(kinds.map(|kind| of_kind(kind, packets.clone())))
        .prop_map(|child| Params::Mq(MqParams { child: Box::new(child) }))
}

fn linux_red(bytes: Range<u64>) -> impl Strategy<Value = Params> {
    (
        (bytes, 0..20_000u32, 1..20_000u32, 1..60u32),
        (0.0..=1.0f64, prop::bool::ANY, prop::bool::ANY, prop::bool::ANY, prop::bool::ANY),
    )
        .prop_map(
            |((limit, min, width, burst), (probability, adaptive, ecn, harddrop, nodrop))| {
                Params::Red(RedParams::Linux(LinuxRedParams {
                    limit,
                    min,
                    max: min + width,
                    avpkt: 1000,
                    burst,
                    probability,
                    bandwidth: 10_000_000,
                    adaptive,
                    ecn,
                    harddrop,
                    nodrop,
                }))
            },
        )
}

fn floyd_red(packets: Range<u64>) -> impl Strategy<Value = Params> {
    (
        (
            prop::bool::ANY,
            packets,
            0.0..10.0f64,
            0.0..20.0f64,
            prop_oneof![Just(0.0), 0.01..1.0f64],
        ),
        (
            0.0..=1.0f64,
            prop::bool::ANY,
            prop::bool::ANY,
            prop::bool::ANY,
            prop::bool::ANY,
            prop::bool::ANY,
        ),
    )
        .prop_map(
            |(
                (ns2, limit, min, width, weight),
                (probability, byte_mode, gentle, wait, adaptive, ecn),
            )| {
                let params = FloydRedParams {
                    limit,
                    min,
                    max: min + width,
                    weight,
                    probability,
                    mean_bytes: 700,
                    byte_mode,
                    gentle,
                    wait,
                    adaptive,
                    target_delay_ns: 5_000_000,
                    ecn,
                };
                Params::Red(if ns2 { RedParams::Ns2(params) } else { RedParams::Ns3(params) })
            },
        )
}

fn adt(packets: Range<u64>) -> impl Strategy<Value = Params> {
    let started = prop::option::of(0..packets.end + 20);
    let in_bytes = prop::option::of(1..2000u64);
    (packets, 0.01..1.2f64, 1.001..2.0f64, started, in_bytes).prop_map(
        |(limit, utilisation, increase, start, packet)| {
            Params::Adt(AdtParams {
                limit,
                utilisation,
                increase,
                weight: 0.1,
                sample_ns: 300_000_000,
                rate: None,
                start,
                packet,
            })
        },
    )
}

fn pie(packets: Range<u64>) -> impl Strategy<Value = Params> {
    (
        (0..3, packets, 0..40_000_000u64, 1..400_000_000u64),
        (0..=32u32, 0..=32u32, prop::bool::ANY, prop::bool::ANY, prop::bool::ANY),
    )
        .prop_map(
            |(
                (variant, limit, target_ns, tupdate_ns),
                (alpha, beta, ecn, bytemode, dq_rate_estimator),
            )| {
                let [real_alpha, real_beta] = [alpha, beta].map(f64::from);
                Params::Pie(match variant {
                    0 => PieParams::Linux(LinuxPieParams {
                        limit,
                        target_ns,
                        tupdate_ns,
                        alpha,
                        beta,
                        ecn,
                        bytemode,
                        dq_rate_estimator,
                    }),
                    1 => PieParams::Rfc(RfcPieParams {
                        limit,
                        target_ns,
                        tupdate_ns,
                        alpha: real_alpha,
                        beta: real_beta,
                        ecn,
                    }),
                    _ => PieParams::Docsis(DocsisPieParams {
                        limit,
                        target_ns,
                        tupdate_ns,
                        alpha: real_alpha,
                        beta: real_beta,
                    }),
                })
            },
        )
}

fn dualpi2(packets: Range<u64>, bytes: Range<u64>) -> impl Strategy<Value = Params> {
    (
        (0..3, packets, prop::option::of(bytes.start + 2000..bytes.end + 20_000), 1..5u8),
        (0..3_000_000u64, prop::option::of(0..4u32), 0..4u32, 0..=100u8),
        (0..40_000_000u64, 500_000..100_000_000u64, 1..2000u32, 1..4000u32),
        (prop::bool::ANY, prop::bool::ANY, prop::bool::ANY),
    )
        .prop_map(
            |(
                (variant, limit, memlimit, coupling_factor),
                (step_thresh_ns, step_thresh_packets, min_qlen_step, classic_protection),
                (target_ns, tupdate_ns, alpha, beta),
                (drop_on_overload, drop_enqueue, any_ect),
            )| {
                let [real_alpha, real_beta] = [alpha, beta].map(|gain| f64::from(gain) / 256.0);
                Params::DualPi2(match variant {
                    0 => DualPi2Params::Linux(LinuxDualPi2Params {
                        limit,
                        memlimit,
                        coupling_factor,
                        step_thresh_ns,
                        step_thresh_packets,
                        min_qlen_step,
                        classic_protection,
                        target_ns,
                        tupdate_ns,
                        alpha,
                        beta,
                        drop_on_overload,
                        drop_enqueue,
                        any_ect,
                    }),
                    1 => DualPi2Params::Rfc(RfcDualPi2Params {
                        limit: Some(limit),
                        coupling_factor,
                        min_th_ns: step_thresh_ns,
                        range_ns: step_thresh_ns / 2 + 1,
                        min_qlen_ramp: min_qlen_step,
                        classic_protection: f64::from(classic_protection),
                        target_ns,
                        tupdate_ns,
                        alpha: real_alpha,
                        beta: real_beta,
                    }),
                    _ => DualPi2Params::Docsis(DocsisDualPi2Params {
                        limit: Some(limit),
                        coupling_factor,
                        max_th_ns: step_thresh_ns + 1,
                        target_ns,
                        tupdate_ns,
                        alpha: real_alpha,
                        beta: real_beta,
                        queue_protection: drop_enqueue,
                    }),
                })
            },
        )
}

fn fq(packets: Range<u64>) -> impl Strategy<Value = Params> {
    let rate = prop::option::of(prop_oneof![8..1_000_000u64, 1_000_000..100_000_000u64]);
    (
        (packets.clone(), packets, prop::option::of(1..4000u32), prop::option::of(1..20_000u32)),
        (
            rate,
            prop::bool::ANY,
            0..2_000_000u64,
            0..100_000_000u64,
            prop_oneof![0..4u16, Just(1023)],
        ),
        (prop::option::of(0..20_000_000u64), 0..1_000_000u64),
        (prop::array::uniform16(0..3u8), prop::array::uniform3(16_384..600_000u32)),
    )
        .prop_map(
            |(
                (limit, flow_limit, quantum, initial_quantum),
                (maxrate, pacing, low_rate_threshold, refill_delay_ns, orphan_mask),
                (ce_threshold_ns, timer_slack_ns),
                (priomap, weights),
            )| {
                Params::Fq(FqParams {
                    limit,
                    flow_limit,
                    quantum,
                    initial_quantum,
                    maxrate,
                    pacing,
                    low_rate_threshold,
                    refill_delay_ns,
                    orphan_mask,
                    ce_threshold_ns,
                    timer_slack_ns,
                    priomap,
                    weights,
                })
            },
        )
}

fn fq_pie(packets: Range<u64>) -> impl Strategy<Value = Params> {
    (
        (packets, prop_oneof![1..5u32, 5..64u32, 2040..5000u32], 1..3000u32, 0..=100u32),
        (0..40_000_000u64, 1..400_000_000u64, 0..=32u32, 0..=32u32),
        (prop::bool::ANY, prop::bool::ANY, prop::bool::ANY),
    )
        .prop_map(
            |(
                (limit, flows, quantum, ecn_prob),
                (target_ns, tupdate_ns, alpha, beta),
                (ecn, bytemode, dq_rate_estimator),
            )| {
                Params::FqPie(FqPieParams {
                    limit,
                    flows,
                    target_ns,
                    tupdate_ns,
                    alpha,
                    beta,
                    quantum,
                    memory_limit: 1,
                    ecn_prob,
                    ecn,
                    bytemode,
                    dq_rate_estimator,
                })
            },
        )
}

fn hhf(packets: Range<u64>) -> impl Strategy<Value = Params> {
    let timeouts = (0..100_000_000u64, 0..2_000_000_000u64);
    (packets, prop::option::of(1..4000u32), 1..5u32, timeouts, 0..40_000u32, 1..5u32).prop_map(
        |(limit, quantum, hh_limit, timeouts, admit_bytes, non_hh_weight)| {
            let (reset_timeout_ns, evict_timeout_ns) = timeouts;
            Params::Hhf(HhfParams {
                limit,
                quantum,
                hh_limit,
                reset_timeout_ns,
                admit_bytes,
                evict_timeout_ns,
                non_hh_weight,
            })
        },
    )
}

fn tbf() -> impl Strategy<Value = Params> {
    // Linux refuses a peak rate that is not above the rate.
    let above = prop::option::of(8..100_000_000u64);
    let linklayer = prop_oneof![Just(TbfLinkLayer::Ethernet), Just(TbfLinkLayer::Atm)];
    let sizes = (100..6000u64, 0..40_000u64, 100..4000u64);
    (8..50_000_000u64, sizes, above, 0..2000u64, 0..2000u64, linklayer).prop_map(
        |(rate, (burst, limit, mtu), above, mpu, overhead, linklayer)| {
            let peakrate = above.map(|above| rate + above);
            Params::Tbf(TbfParams { rate, burst, limit, peakrate, mtu, mpu, overhead, linklayer })
        },
    )
}

fn sfq(packets: Range<u64>) -> impl Strategy<Value = Params> {
    let divisor = prop_oneof![0..4u32, 0..17u32].prop_map(|power| 1 << power);
    let flows = prop_oneof![1..5u32, 100..130u32];
    let depth = prop_oneof![1..5u32, Just(127)];
    let flags = (prop::bool::ANY, prop::bool::ANY, prop::bool::ANY);
    // No RED, or thresholds from less than a packet to many packets.
    let red = (prop_oneof![Just(0u64), Just(1)], 1..20_000u32, 1..40_000u32, 0.001..=1.0f64);
    let hashed = (0..4u64, 1..3000u32, divisor, flows, depth);
    (packets, hashed, flags, red, 1..2000u32, 1..200u32).prop_map(
        |(limit, hashed, (headdrop, ecn, harddrop), red, avpkt, burst)| {
            let (perturb, quantum, divisor, flows, depth) = hashed;
            let (redflowlimit, min, width, probability) = red;
            Params::Sfq(SfqParams {
                limit,
                perturb,
                quantum,
                divisor,
                flows,
                depth,
                headdrop,
                redflowlimit,
                min,
                max: min + width,
                avpkt,
                burst,
                probability,
                ecn,
                harddrop,
            })
        },
    )
}

fn sfb(packets: Range<u64>) -> impl Strategy<Value = Params> {
    (
        (packets, 0..3_000u64, 0..1_000u64, 0..30u32, 0..30u32),
        (0..70_000u32, 0..70_000u32, 0..100u32, 0..30u32),
    )
        .prop_map(
            |(
                (limit, rehash_ms, db_ms, max, target),
                (increment, decrement, penalty_rate, penalty_burst),
            )| {
                Params::Sfb(SfbParams {
                    limit,
                    rehash_ms,
                    db_ms,
                    max,
                    target,
                    increment,
                    decrement,
                    penalty_rate,
                    penalty_burst,
                })
            },
        )
}

fn prio(packets: Range<u64>) -> impl Strategy<Value = Params> {
    (packets, 1..=16u8, prop::array::uniform16(0..16u8)).prop_map(|(limit, bands, priomap)| {
        Params::Prio(PrioParams { bands, priomap: priomap.map(|band| band % bands), limit })
    })
}

fn own(packets: Range<u64>) -> impl Strategy<Value = Params> {
    let timer = prop::option::of(0..50_000_000u64);
    (packets, 1..6u32, prop::bool::ANY, prop::bool::ANY, timer).prop_map(
        |(limit, queues, overflows, bypass, timer)| {
            let code = Fickle(OwnShape { queues, limit, timer, overflows, bypass });
            Params::Own(OwnParams {
                file: "fickle.py".into(),
                class: "Fickle".into(),
                words: None,
                source: None,
                code: OwnCode(Some(Arc::new(code))),
            })
        },
    )
}

/// A law of queues by flow that drops and marks by its own draws, and serves the longest queue.
#[derive(Clone)]
struct Fickle(OwnShape);

impl OwnProgram for Fickle {
    fn shape(&self) -> OwnShape {
        self.0
    }

    fn begin(&self, key: u64) -> Box<dyn OwnLaw> {
        Box::new(Drawing { queues: self.0.queues as usize, state: key })
    }
}

struct Drawing {
    queues: usize,
    state: u64,
}

impl Drawing {
    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.state >> 60
    }

    fn longest(&self, link: &OwnLink) -> i64 {
        let queues = 0..self.queues;
        queues.max_by_key(|queue| link[LINK_NUMBERS + queue]).map_or(0, |queue| queue as i64)
    }
}

impl OwnLaw for Drawing {
    fn enqueue(&mut self, packet: &OwnPacket, _: &OwnLink) -> i64 {
        let queue = packet.flow % self.queues as i64;
        match self.draw() {
            0 => DROP,
            1 => MARK + queue,
            _ => queue,
        }
    }

    fn overflow(&mut self, link: &OwnLink) -> i64 {
        self.longest(link)
    }

    fn choose(&mut self, link: &OwnLink) -> i64 {
        self.longest(link)
    }

    fn dequeue(&mut self, packet: &OwnPacket, link: &OwnLink) -> i64 {
        assert_eq!(packet.sojourn, link[0] - packet.enqueued);
        match self.draw() {
            0 => DROP,
            1 => MARK,
            _ => PASS,
        }
    }

    fn idle(&mut self, _: &OwnLink) -> i64 {
        0
    }

    fn timer(&mut self, link: &OwnLink) -> i64 {
        self.state = self.state.rotate_left(1);
        link[0] + 10_000_000
    }

    fn failure(&self) -> [i64; 2] {
        [0, 0]
    }
}
