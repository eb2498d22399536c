//! Random small scenarios.
#![allow(dead_code)] // Each user uses its part.

#[path = "../../../qdisc/tests/common/any.rs"]
mod any;
#[path = "../../../tcp/tests/common/congestion.rs"]
mod congestion;

use super::common::{MS, S, flow, link, reno};
use link::{
    Cells, DelayJitter, DelayStep, Distribution, Duplication, EcnRemark, Impairments, Loss,
    LossStep, PolicerParams, QdiscStep, RateStep, Reordering, RingParams, ShaperParams, Slots,
};
use proptest::prelude::*;
use proptest::strategy::Union;
use qdisc::{CardQueues, DsField, Ecn, FifoParams, Params, PieParams, RedParams};
use sim::{Draw, FlowSpec, Frames, LinkSpec, Pace, RecordSpec, Scenario, Traffic, TrafficKind};
use tcp::{CongestionKind, TcpParams};

fn any_loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        3 => Just(Loss::None),
        1 => (0.0..0.05f64).prop_map(|probability| Loss::Random { probability }),
        1 => Just(Loss::Gilbert { p: 0.005, r: 0.2, bad_loss: 0.7, good_loss: 0.0 }),
        1 => (0.0..0.05f64).prop_map(|probability| Loss::Steps {
            steps: vec![
                LossStep { at_ns: 0, probability },
                LossStep { at_ns: 400 * MS, probability: 0.0 },
            ],
            period_ns: Some(700 * MS),
        }),
    ]
}

/// Steps of a discipline's parameters, on every other link, if the discipline can be changed.
fn steps_of(index: usize, qdisc: &Params) -> Vec<QdiscStep> {
    let mut less = qdisc.clone();
    match &mut less {
        Params::Pfifo(p) | Params::PfifoHeadDrop(p) => p.limit = p.limit.div_ceil(2),
        Params::Codel(p) => (p.limit, p.target_ns) = (p.limit.div_ceil(2), p.target_ns * 2),
        Params::FqCodel(p) => (p.limit, p.quantum) = (p.limit.div_ceil(2), p.quantum * 2),
        Params::Pie(PieParams::Linux(p)) => p.limit = p.limit.div_ceil(2),
        Params::Red(RedParams::Linux(p)) => p.ecn = !p.ecn,
        Params::Cake(p) => p.bandwidth = p.bandwidth.map(|bps| bps.div_ceil(2)),
        _ => return Vec::new(),
    }
    if index.is_multiple_of(2) {
        return Vec::new();
    }
    let step = |at_ns, qdisc: &Params| QdiscStep { at_ns, qdisc: qdisc.clone() };
    vec![step(300 * MS, &less), step(800 * MS, qdisc), step(801 * MS, &less)]
}

/// Mostly no impairments; otherwise any of them.
fn any_impairments() -> impl Strategy<Value = Impairments> {
    let probability = 0u64..1 << 28;
    let jitter = (0..5 * MS, any::<u32>(), prop::sample::select(&Distribution::ALL[..])).prop_map(
        |(scale_ns, correlation, (distribution, _))| DelayJitter {
            scale_ns,
            correlation,
            distribution,
        },
    );
    let reorder = (probability.clone(), any::<u32>(), 1u32..20)
        .prop_map(|(probability, correlation, gap)| Reordering { probability, correlation, gap });
    let duplicate = (probability, any::<u32>())
        .prop_map(|(probability, correlation)| Duplication { probability, correlation });
    let slot =
        (0..2 * MS, 0..2 * MS, prop::option::of(1u32..10)).prop_map(|(min_ns, more, packets)| {
            Slots { min_ns, max_ns: min_ns + more, packets, bytes: None }
        });
    let steps = (0..50 * MS, 0..50 * MS).prop_map(|(first, then)| {
        let step = |at_ns, delay_ns| DelayStep { at_ns, delay_ns };
        vec![step(0, first), step(700 * MS, then)]
    });
    let some = (
        prop::option::of(jitter),
        prop::option::of(reorder),
        prop::option::of(duplicate),
        prop::option::of(slot),
        prop_oneof![Just(vec![]), steps],
        prop::option::of(Just(900 * MS)),
        any::<bool>(),
        prop::option::of(prop::sample::select(&EcnRemark::ALL[..])),
    );
    let some = some.prop_map(
        |(jitter, reorder, duplicate, slot, delay_steps, delay_period_ns, overtake, ecn)| {
            Impairments {
                ecn: ecn.map(|(_, remark)| remark),
                jitter,
                reorder: reorder.filter(|_| slot.is_none()),
                duplicate,
                slot,
                delay_steps,
                delay_period_ns,
                overtake: overtake && slot.is_none(),
            }
        },
    );
    prop_oneof![3 => Just(Impairments::default()), 1 => some]
}

/// Any discipline, or one that never drops, as access links have.
fn any_qdisc(limits: std::ops::Range<u64>) -> impl Strategy<Value = Params> {
    let endless = Params::Pfifo(FifoParams { limit: u32::MAX.into() });
    prop_oneof![3 => any::any(limits), 1 => Just(endless)]
}

fn any_link(index: usize) -> impl Strategy<Value = LinkSpec> {
    let rates = prop_oneof![
        4 => (500_000u64..20_000_000).prop_map(|bps| vec![RateStep { at_ns: 0, bps }]),
        1 => (500_000u64..20_000_000).prop_map(|bps| vec![
            RateStep { at_ns: 0, bps },
            RateStep { at_ns: S, bps: 0 },
            RateStep { at_ns: S + 300 * MS, bps: bps / 2 },
        ]),
    ];
    let wire = (any_loss(), any_impairments());
    let spec = (rates, 0..60 * MS, any_qdisc(1..200), wire, any_gate(), any_replay());
    spec.prop_map(move |(rate, delay_ns, qdisc, (loss, impairments), gate, replay_window)| {
        LinkSpec {
            qdisc_steps: steps_of(index, &qdisc),
            rate,
            loss,
            impairments,
            ring: gate.0,
            shaper: gate.1,
            police: gate.2,
            replay_window,
            queues: card_of(index),
            ..link(&format!("l{index}"), 0, delay_ns, qdisc)
        }
    })
}

/// Disciplines for a card with several queues.
fn card_of(index: usize) -> Option<CardQueues> {
    let pinned = if index.is_multiple_of(2) { vec![0, 2, 1] } else { Vec::new() };
    Some(CardQueues { count: index as u32 + 1, pinned })
}

type Gate = (Option<RingParams>, Option<ShaperParams>, Option<PolicerParams>);

/// The parts between discipline and wire, and before the discipline: mostly none.
fn any_gate() -> impl Strategy<Value = Gate> {
    let ring = (1u32..300, any::<bool>(), prop_oneof![Just(0), Just(MS)])
        .prop_map(|(descriptors, bql, coalesce_ns)| RingParams { descriptors, bql, coalesce_ns });
    let shaper = (500_000u64..20_000_000).prop_map(|bps| ShaperParams {
        bps,
        burst_bytes: 1600,
        overhead_bytes: 0,
        minimum_bytes: 0,
        cells: Cells::None,
    });
    let police = (500_000u64..20_000_000, 1600u64..50_000).prop_map(|(bps, burst_bytes)| {
        PolicerParams { bps, burst_bytes, mtu_bytes: 2040, overhead_bytes: 0 }
    });
    (
        prop::option::weighted(0.3, ring),
        prop::option::weighted(0.2, shaper),
        prop::option::weighted(0.2, police),
    )
}

fn any_tcp() -> impl Strategy<Value = TcpParams> {
    (congestion::any(), any::<bool>(), any::<bool>(), any::<bool>(), 1u32..3).prop_map(
        |(control, sack, ecn, pacing, acks)| {
            reno().with(|p| {
                p.congestion = control.kind;
                p.own.clone_from(&control.own);
                p.recovery.sack = sack;
                p.ecn = ecn;
                p.growth.pacing = pacing;
                p.growth.hystart = control.kind == CongestionKind::Cubic;
                p.acks.delayed_ack_segments = acks;
                p.buffers.receive_buffer = 131_072;
                p.buffers.receive_buffer_max = 6 << 20;
                p.buffers.receive_window_fraction = 0.5;
            })
        },
    )
}

/// Traffic of each kind; mostly TCP that sends all the time.
fn any_traffic() -> impl Strategy<Value = Traffic> {
    let weighted = |kind: &TrafficKind| {
        let weight = match kind {
            TrafficKind::Bulk => 4,
            TrafficKind::Udp => 2,
            _ => 1,
        };
        (weight, of_kind(*kind))
    };
    let simulated = TrafficKind::ALL.iter().filter(|kind| kind.record().in_simulator);
    Union::new_weighted(simulated.map(weighted).collect())
}

/// The steps of an application's rate, some of them unlimited or 0.
fn any_pace() -> impl Strategy<Value = Vec<(u64, Option<u64>)>> {
    let rate = prop_oneof![1 => Just(None), 1 => Just(Some(0)), 4 => (10_000u64..50_000_000).prop_map(Some)];
    let steps = prop::collection::vec((1..500 * MS, rate), 1..5);
    steps.prop_map(|steps| {
        let ends = steps.iter().scan(0, |at, (gap, _)| {
            *at += gap;
            Some(*at)
        });
        let starts: Vec<u64> = std::iter::once(0).chain(ends).collect();
        starts.into_iter().zip(steps.iter().map(|(_, bps)| *bps)).collect()
    })
}

fn of_kind(kind: TrafficKind) -> BoxedStrategy<Traffic> {
    let transfers = |objects| {
        any_tcp().prop_map(move |tcp| Traffic::Transfers {
            bytes: Draw::Pareto { mean: 20_000, shape: 1.5 },
            pause_ns: Draw::Exponential { mean: 50 * MS },
            objects,
            tcp,
        })
    };
    match kind {
        TrafficKind::Bulk => {
            let size = prop::option::weighted(0.25, 1u64..300_000);
            let paced = prop::option::weighted(0.25, any_pace());
            (any_tcp(), size, paced)
                .prop_map(|(tcp, bytes, pace)| {
                    let write_bytes = tcp.mss.into();
                    let pace = pace.map(|steps| Pace { steps, write_bytes });
                    Traffic::Bulk { bytes, pace, tcp }
                })
                .boxed()
        }
        TrafficKind::Transfers => transfers(None).boxed(),
        TrafficKind::Requests => any_tcp()
            .prop_map(|tcp| Traffic::Requests {
                request_bytes: Draw::Pareto { mean: 2_000, shape: 1.5 },
                bytes: Draw::Pareto { mean: 20_000, shape: 1.5 },
                pause_ns: Draw::Exponential { mean: 50 * MS },
                write_bytes: tcp.mss.into(),
                tcp,
            })
            .boxed(),
        TrafficKind::Web => (1u32..6).prop_flat_map(move |n| transfers(Some(n))).boxed(),
        TrafficKind::Stream => (any_tcp(), 20u64..400)
            .prop_map(|(tcp, ms)| Traffic::Stream {
                ladder_bps: vec![200_000, 800_000, 3_000_000],
                segment_ns: ms * MS,
                ahead_ns: 3 * ms * MS,
                tcp,
            })
            .boxed(),
        TrafficKind::Call => Just(Traffic::Call).boxed(),
        TrafficKind::Udp => (100_000u64..10_000_000, 64u32..1500)
            .prop_map(|(bps, packet_bytes)| Traffic::Udp {
                bps,
                packet_bytes,
                on_ns: None,
                off_ns: None,
            })
            .boxed(),
        TrafficKind::OnOff => Just(Traffic::Udp {
            bps: 4_000_000,
            packet_bytes: 1200,
            on_ns: Some(Draw::Exponential { mean: 100 * MS }),
            off_ns: Some(Draw::Exponential { mean: 300 * MS }),
        })
        .boxed(),
        TrafficKind::Ping => {
            Just(Traffic::Ping { interval_ns: 100 * MS, packet_bytes: 84 }).boxed()
        }
        TrafficKind::Video => Just(Traffic::Video {
            frames: Frames::Model { bps: 1_000_000, fps: 25.0, gop: 12, i_ratio: 4.0, cv: 0.3 },
            payload_bytes: 1200,
        })
        .boxed(),
        TrafficKind::Capture => prop::collection::vec((0..200 * MS, 29u32..1500), 1..8)
            .prop_map(|mut packets| {
                packets.sort();
                Traffic::Capture { packets, period_ns: 200 * MS }
            })
            .boxed(),
        TrafficKind::Program => unreachable!("the simulator has no programs"),
    }
}

/// The DS field of a flow. TCP sets its own ECN bits; other traffic keeps those of `ds`.
fn ds_of(traffic: &Traffic, ds: DsField) -> DsField {
    if traffic.tcp().is_some() { ds.with_ecn(Ecn::NotEct) } else { ds }
}

fn any_ds() -> impl Strategy<Value = DsField> {
    (0u8..64, 0u8..3).prop_map(|(dscp, ecn)| DsField(dscp << 2 | ecn))
}

fn any_replay() -> impl Strategy<Value = Option<u32>> {
    prop::option::weighted(0.3, 1u32..40)
}

fn any_tunnel() -> impl Strategy<Value = Option<String>> {
    prop_oneof![3 => Just(None), 1 => Just(Some("a".into())), 1 => Just(Some("b".into()))]
}

/// One to three links in series with one link back, one to six flows over some stretch of them.
pub fn any_scenario() -> impl Strategy<Value = Scenario> {
    let links = (1usize..4).prop_flat_map(|n| (0..=n).map(any_link).collect::<Vec<_>>());
    let flows = prop::collection::vec(
        (
            any_traffic(),
            0..500 * MS,
            0..40 * MS,
            0usize..3,
            prop_oneof![Just(0), Just(200_000u64)],
            (any::<bool>(), any_ds(), any_tunnel()),
        ),
        1..7,
    );
    (links, flows, 1u64..1000).prop_map(|(links, flows, seed)| {
        let forward = links.len() as u32 - 1;
        let flows = flows.into_iter().enumerate().map(
            |(i, (traffic, start_ns, extra, from, jitter_ns, (stops, ds, tunnel)))| FlowSpec {
                path: (from as u32 % forward..forward).collect(),
                back: vec![forward],
                path_extra_ns: extra,
                back_extra_ns: extra / 2,
                start_ns,
                stop_ns: stops.then_some(S),
                jitter_ns,
                ds: ds_of(&traffic, ds),
                tunnel,
                ..flow(&format!("f{i}"), traffic)
            },
        );
        let record =
            RecordSpec { queue_ns: 70 * MS, flow_ns: 90 * MS, packets: true, headers: true };
        Scenario {
            duration_ns: 2 * S,
            warmup_ns: 0,
            seed,
            flows: flows.collect(),
            links,
            record,
            offloads: false,
        }
    })
}

/// A window of 20 segments: without it a path without a rate would carry gigabits.
fn short(mut traffic: Traffic) -> Traffic {
    if let Some(tcp) = traffic.tcp_mut() {
        *tcp = tcp.with(|p| p.growth.max_window = Some(20));
    }
    traffic
}

/// Up to four links, which flows cross in any order and direction, repeatedly: circles, paths
/// without a link, links without a delay or a rate. Most times are whole milliseconds, so that many
/// events have the same instant.
pub fn any_maze() -> impl Strategy<Value = Scenario> {
    let rates = prop_oneof![
        // 1500 bytes take 1 ms, or 250 us.
        3 => prop_oneof![Just(12_000_000u64), Just(48_000_000)].prop_map(|bps| vec![RateStep { at_ns: 0, bps }]),
        1 => Just(vec![]),
        1 => Just(vec![
            RateStep { at_ns: 0, bps: 12_000_000 },
            RateStep { at_ns: 300 * MS, bps: 0 },
            RateStep { at_ns: 400 * MS, bps: 6_000_000 },
        ]),
    ];
    let gate = (any_gate(), any_replay());
    let some = (rates, 0..4u64, any_qdisc(1..60), any_loss(), gate, any::<bool>());
    let links = prop::collection::vec(some, 1..5).prop_map(|links| {
        let links = links.into_iter().enumerate();
        links
            .map(|(index, (rate, delay, qdisc, loss, (gate, replay_window), asks_at_once))| {
                LinkSpec {
                    qdisc_steps: steps_of(index, &qdisc),
                    rate,
                    loss,
                    ring: gate.0,
                    shaper: gate.1,
                    police: gate.2,
                    replay_window,
                    queues: card_of(index),
                    asks_at_once,
                    ..link(&format!("l{index}"), 0, delay * MS, qdisc)
                }
            })
            .collect::<Vec<_>>()
    });
    let way = || (prop::collection::vec(0u32..4, 0..4), 0..3u64);
    let late = prop_oneof![3 => Just(0), 1 => Just(MS)];
    let flows = (any_traffic(), way(), way(), 0..3u64, late, any_tunnel());
    let flows = prop::collection::vec(flows, 1..6);
    (links, flows, 1u64..1000, 0..3u64).prop_map(|(links, flows, seed, warm)| {
        let number = links.len() as u32;
        let over = |path: Vec<u32>| path.into_iter().map(|link| link % number).collect();
        let flows = flows.into_iter().enumerate().map(
            |(i, (traffic, (path, extra), (back, back_extra), start, jitter_ns, tunnel))| {
                FlowSpec {
                    path: over(path),
                    back: over(back),
                    path_extra_ns: extra * MS,
                    // A flow without any delay in both directions would never end.
                    back_extra_ns: (back_extra + 1) * MS,
                    start_ns: start * MS,
                    jitter_ns,
                    tunnel,
                    ..flow(&format!("f{i}"), short(traffic))
                }
            },
        );
        let record =
            RecordSpec { queue_ns: 50 * MS, flow_ns: 30 * MS, packets: true, headers: true };
        Scenario {
            duration_ns: 600 * MS,
            warmup_ns: warm * 150 * MS,
            seed,
            flows: flows.collect(),
            links,
            record,
            offloads: false,
        }
    })
}
