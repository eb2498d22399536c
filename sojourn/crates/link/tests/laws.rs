//! Laws of a link with a gate between discipline and transmitter: a shaper, a driver's ring, byte
//! queue limits.

use link::{Cells, Framing, Impairments, Link, LinkParts, Log, Loss, Propagation};
use link::{PolicerParams, RateStep, RingParams, Schedule, ShaperParams};
use proptest::prelude::*;
use qdisc::{
    AckFilterMode, CakeCells, CakeParams, CodelParams, CodelVariant, Context, Discipline, DsField,
    FifoParams, FqCodelParams, FqParams, Isolation, LinuxRedParams, TbfLinkLayer, TbfParams,
    TinMode,
};
use qdisc::{Packet, Params, Qdisc, RedParams};
use units::{BytePace, Rng, Span, Time};

const MS: u64 = 1_000_000;
const DELAY: Span = Span(5 * MS);
const ENDLESS: Params = Params::Pfifo(FifoParams { limit: 1_000_000 });
/// 1500 bytes take 1 ms.
const RATE: u64 = 12_000_000;

#[derive(Clone, Debug)]
struct Spec {
    qdisc: Params,
    rate: Vec<RateStep>,
    ring: Option<RingParams>,
    shaper: Option<ShaperParams>,
    police: Option<PolicerParams>,
}

impl Spec {
    fn plain() -> Spec {
        Spec { qdisc: ENDLESS, rate: steady(RATE), ring: None, shaper: None, police: None }
    }

    fn ring(descriptors: u32, bql: bool) -> Spec {
        Spec { ring: Some(RingParams { descriptors, bql, coalesce_ns: 0 }), ..Spec::plain() }
    }

    fn link(&self) -> Link<u32> {
        let schedule = Schedule::new(self.rate.clone(), None);
        let context = Context {
            rate: schedule.rate_at(Time::ZERO),
            mtu: 1500,
            header_bytes: 0,
            root: false,
            rng: Rng::new(1, "qdisc"),
        };
        Link::new(LinkParts {
            qdisc: Discipline::new(&self.qdisc, context),
            qdisc_steps: Vec::new(),
            schedule,
            framing: Framing::NONE,
            wire: Propagation::new(DELAY, &Loss::None, &Impairments::default(), |name| {
                Rng::new(1, name)
            }),
            ring: self.ring,
            shaper: self.shaper,
            police: self.police,
            replay_window: None,
        })
    }
}

fn steady(bps: u64) -> Vec<RateStep> {
    vec![RateStep { at_ns: 0, bps }]
}

fn htb(bps: u64, burst_bytes: u64) -> ShaperParams {
    ShaperParams { bps, burst_bytes, overhead_bytes: 0, minimum_bytes: 0, cells: Cells::None }
}

fn police(bps: u64, burst_bytes: u64) -> PolicerParams {
    PolicerParams { bps, burst_bytes, mtu_bytes: 2040, overhead_bytes: 0 }
}

fn codel() -> Params {
    Params::Codel(CodelParams {
        variant: CodelVariant::Linux,
        limit: 1000,
        target_ns: 5 * MS,
        interval_ns: 100 * MS,
        ecn: false,
        ce_threshold_ns: None,
    })
}

/// Its average decays when a dequeue finds it empty, so such dequeues show in the result.
fn red() -> Params {
    Params::Red(RedParams::Linux(LinuxRedParams {
        limit: 400_000,
        min: 3_000,
        max: 9_000,
        avpkt: 1000,
        burst: 5,
        probability: 0.1,
        bandwidth: RATE,
        adaptive: false,
        ecn: false,
        harddrop: false,
        nodrop: false,
    }))
}

/// It holds packets back by itself; dropped packets count against its rate.
fn cake(bandwidth: u64) -> Params {
    Params::Cake(CakeParams {
        bandwidth: Some(bandwidth),
        rtt_ns: 20 * MS,
        memlimit: Some(40_000),
        tins: TinMode::Besteffort,
        isolation: Isolation::Flows,
        wash: false,
        ingress: true,
        raw: true,
        overhead: 0,
        mpu: 0,
        cells: CakeCells::Noatm,
        acks: AckFilterMode::NoAckFilter,
        sync_ns: 0,
    })
}

/// It holds each flow back by itself, and its timer is late.
fn fq(maxrate: u64) -> Params {
    Params::Fq(FqParams {
        limit: 30,
        flow_limit: 20,
        quantum: None,
        initial_quantum: Some(4000),
        maxrate: Some(maxrate),
        pacing: true,
        low_rate_threshold: 550_000,
        refill_delay_ns: 40 * MS,
        orphan_mask: 1023,
        ce_threshold_ns: None,
        timer_slack_ns: MS,
        priomap: [1; 16],
        weights: [20_000; 3],
    })
}

/// Its bucket has room for four packets.
fn tbf(rate: u64) -> Params {
    Params::Tbf(TbfParams {
        rate,
        burst: 6000,
        limit: 40_000,
        peakrate: Some(20_000_000),
        mtu: 1500,
        mpu: 64,
        overhead: 14,
        linklayer: TbfLinkLayer::Ethernet,
    })
}

/// Packets to send: time (ns) and size.
type Arrivals = Vec<(u64, u32)>;

/// The results for all packets, for comparisons.
#[derive(Debug, PartialEq)]
struct Story {
    /// Packet, size, time of leaving the queue, time of the last bit.
    left: Vec<(u32, u32, Time, Time)>,
    dropped: usize,
    /// The discipline's own state: RED's average.
    average: Option<f64>,
    ring_sojourn_ns: u128,
    ring_packet_ns: u128,
    ring_most: u32,
    bql_limit: Option<u64>,
    wire_bytes: u64,
    busy_ns: u64,
}

/// Sends the packets, calls the link whenever it asks for a call and also at `wakeups`, and then
/// runs until `end`.
fn drive(spec: &Spec, arrivals: &Arrivals, punctual: bool, wakeups: &[u64], end: u64) -> Story {
    let mut link = spec.link();
    let mut log: Log<u32> = Log::default();
    let mut wakeups = wakeups.iter().copied().peekable();
    let calls = arrivals.iter().enumerate().map(|(i, &(at, size))| (at, Some((i as u32, size))));
    for (at, packet) in calls.chain([(end, None)]) {
        if punctual {
            while let Some(event) = link.next_event().filter(|event| event.0 < at) {
                link.advance(event, &mut log);
            }
        }
        while let Some(wakeup) = wakeups.next_if(|&wakeup| wakeup <= at) {
            link.advance(Time(wakeup), &mut log);
        }
        if let Some((body, size)) = packet {
            let packet =
                Packet { enqueued: Time::ZERO, flow: 0, size, ds: DsField::BEST_EFFORT, body };
            link.send(packet, Time(at), &mut log);
        } else {
            link.advance(Time(at), &mut log);
        }
    }
    let ring = link.ring();
    let counters = ring.map(|ring| ring.counters(Time(end))).unwrap_or_default();
    let out = |arrives: Time| Time(arrives.0.saturating_sub(DELAY.0));
    Story {
        left: log
            .departures
            .iter()
            .map(|d| (d.packet.body, d.packet.size, d.dequeued, out(d.arrives)))
            .collect(),
        dropped: log.verdicts.len(),
        average: link.qdisc().state(Time(end)).average,
        ring_sojourn_ns: counters.sojourn_sum_ns,
        ring_packet_ns: counters.packet_ns,
        ring_most: ring.map_or(0, |ring| ring.peak().0),
        bql_limit: ring.and_then(|ring| ring.limit()),
        wire_bytes: link.wire_bytes(Time(end)),
        busy_ns: link.busy_ns(Time(end)),
    }
}

const HOUR: u64 = 3_600_000 * MS;

fn any_arrivals() -> impl Strategy<Value = Arrivals> {
    // Bursts and pauses: three in four packets arrive together with their predecessor.
    let gap = prop_oneof![3 => Just(0u64), 1 => 0..8 * MS];
    prop::collection::vec((gap, 40u32..=1500), 1..200).prop_map(|packets| {
        let mut at = 0;
        packets
            .into_iter()
            .map(|(gap, size)| {
                at += gap;
                (at, size)
            })
            .collect()
    })
}

fn any_rate() -> impl Strategy<Value = Vec<RateStep>> {
    let outage = (1_000_000u64..RATE, 1..50 * MS, 1..100 * MS).prop_map(|(bps, from, length)| {
        vec![
            RateStep { at_ns: 0, bps: RATE },
            RateStep { at_ns: from, bps: 0 },
            RateStep { at_ns: from + length, bps },
        ]
    });
    prop_oneof![2 => Just(steady(RATE)), 2 => outage, 1 => Just(vec![])]
}

fn any_ring() -> impl Strategy<Value = Option<RingParams>> {
    (1u32..40, any::<bool>(), prop_oneof![Just(0), 1..3 * MS]).prop_map(
        |(descriptors, bql, coalesce_ns)| Some(RingParams { descriptors, bql, coalesce_ns }),
    )
}

fn any_shaper() -> impl Strategy<Value = Option<ShaperParams>> {
    prop_oneof![
        1 => Just(None),
        2 => (500_000u64..20_000_000, 0u64..6000).prop_map(|(bps, burst)| Some(htb(bps, burst))),
    ]
}

fn any_policer() -> impl Strategy<Value = Option<PolicerParams>> {
    prop_oneof![
        2 => Just(None),
        1 => (500_000u64..20_000_000, 1000u64..30_000).prop_map(|(bps, burst)| Some(police(bps, burst))),
    ]
}

fn any_spec() -> impl Strategy<Value = Spec> {
    let short = Params::Pfifo(FifoParams { limit: 20 });
    let qdisc = prop::sample::select(vec![
        ENDLESS,
        short,
        codel(),
        red(),
        cake(5_000_000),
        fq(5_000_000),
        fq(500_000),
        tbf(5_000_000),
    ]);
    let parts = (qdisc, any_rate(), any_ring(), any_shaper(), any_policer());
    parts.prop_map(|(qdisc, rate, ring, shaper, police)| Spec { qdisc, rate, ring, shaper, police })
}

proptest! {
    #[test]
    fn late_early_and_repeated_calls_give_the_same_results(
        spec in any_spec(),
        arrivals in any_arrivals(),
        mut wakeups in prop::collection::vec(0..900 * MS, 0..60),
    ) {
        wakeups.sort_unstable();
        let punctual = drive(&spec, &arrivals, true, &[], HOUR);
        prop_assert_eq!(&drive(&spec, &arrivals, false, &[], HOUR), &punctual);
        prop_assert_eq!(&drive(&spec, &arrivals, false, &wakeups, HOUR), &punctual);
        let twice: Vec<u64> = wakeups.iter().flat_map(|&at| [at, at]).collect();
        prop_assert_eq!(&drive(&spec, &arrivals, true, &twice, HOUR), &punctual);
    }

    #[test]
    fn packets_are_conserved_and_keep_their_order(spec in any_spec(), arrivals in any_arrivals()) {
        let story = drive(&spec, &arrivals, true, &[], HOUR);
        prop_assert_eq!(story.left.len() + story.dropped, arrivals.len());
        prop_assert!(story.left.is_sorted_by(|a, b| a.0 < b.0 && a.2 <= b.2 && a.3 <= b.3));
        prop_assert_eq!(story.wire_bytes, story.left.iter().map(|p| u64::from(p.1)).sum::<u64>());
    }

    #[test]
    fn a_ring_never_holds_more_packets_than_descriptors(spec in any_spec(), arrivals in any_arrivals()) {
        let story = drive(&spec, &arrivals, true, &[], HOUR);
        let descriptors = spec.ring.expect("every spec has one").descriptors;
        prop_assert!(story.ring_most <= descriptors);
        for (i, &(_, _, entered, _)) in story.left.iter().enumerate() {
            let inside = story.left[..=i].iter().filter(|p| p.3 > entered || p.2 == entered).count();
            // Without a rate, packets may enter and leave the ring at one instant.
            prop_assert!(inside <= descriptors as usize || spec.rate.is_empty(), "{inside} inside");
        }
    }

    #[test]
    fn the_ring_s_sojourns_are_what_little_s_law_says(spec in any_spec(), arrivals in any_arrivals()) {
        let story = drive(&spec, &arrivals, true, &[], HOUR);
        let sojourns: u128 = story.left.iter().map(|p| u128::from(p.3.since(p.2).0)).sum();
        prop_assert_eq!(story.ring_sojourn_ns, sojourns);
        prop_assert_eq!(story.ring_packet_ns, sojourns);
    }

    #[test]
    fn a_ring_below_a_fifo_delays_no_packet_and_leaves_no_link_idle(
        rate in any_rate(), arrivals in any_arrivals(), descriptors in 1u32..40, bql: bool,
    ) {
        // If every completion is reported at once, each last bit is out at the same time as on the
        // link without a ring.
        let plain = drive(&Spec { rate: rate.clone(), ..Spec::plain() }, &arrivals, true, &[], HOUR);
        let ringed = drive(&Spec { rate, ..Spec::ring(descriptors, bql) }, &arrivals, true, &[], HOUR);
        let ends = |story: &Story| story.left.iter().map(|p| (p.0, p.3)).collect::<Vec<_>>();
        prop_assert_eq!(ends(&ringed), ends(&plain));
        prop_assert_eq!(ringed.busy_ns, plain.busy_ns);
    }

    #[test]
    fn a_ring_of_one_packet_acts_as_no_ring(
        spec in any_spec(), arrivals in any_arrivals(), rate in 1_000_000u64..RATE,
    ) {
        // A link without a rate and without a shaper never dequeues an empty discipline, so this
        // law excludes it.
        let without = Spec { rate: steady(rate), ring: None, shaper: None, ..spec };
        let with = Spec { ring: Some(RingParams::NONE), ..without.clone() };
        let (without, with) =
            (drive(&without, &arrivals, true, &[], HOUR), drive(&with, &arrivals, true, &[], HOUR));
        prop_assert_eq!((without.left, without.dropped), (with.left, with.dropped));
        prop_assert_eq!(without.average, with.average);
    }

    #[test]
    fn a_shaper_lets_no_more_through_than_its_burst_and_rate_and_one_packet(
        spec in any_spec(), arrivals in any_arrivals(), bps in 500_000u64..20_000_000, burst in 0u64..6000,
    ) {
        let shaper = htb(bps, burst);
        let story = drive(&Spec { shaper: Some(shaper), ..spec }, &arrivals, true, &[], HOUR);
        for (i, first) in story.left.iter().enumerate() {
            let mut before_last = 0;
            for (packets, last) in story.left[i..].iter().enumerate() {
                // The last packet may take the bucket into debt; the packets before it were paid
                // for, except for less than a ns each.
                let ns = last.2.since(first.2).0 + packets as u64;
                let earned = u128::from(shaper.bps) * u128::from(ns);
                let allowed = 8_000_000_000 * u128::from(shaper.burst_bytes) + earned;
                prop_assert!(before_last <= allowed, "{before_last} bit ns/s of {allowed}");
                before_last += 8_000_000_000 * u128::from(last.1);
            }
        }
    }

    #[test]
    fn a_shaper_with_tokens_and_a_backlog_is_never_idle(
        arrivals in any_arrivals(), bps in 500_000u64..20_000_000, burst in 0u64..6000,
    ) {
        // A packet leaves when three conditions are met: it has arrived, its predecessor has left,
        // and the bucket is out of debt. The test computes that time with tokens in bytes, as f64.
        let spec = Spec { rate: vec![], shaper: Some(htb(bps, burst)), ..Spec::plain() };
        let story = drive(&spec, &arrivals, true, &[], HOUR);
        prop_assert_eq!(story.left.len(), arrivals.len());
        // tc passes the burst as a time, rounded down to whole µs and to ticks of 64 ns.
        let per_ns = (bps / 8) as f64 / 1e9;
        let burst = (burst * 1_000_000 / (bps / 8) * 1000 / 64 * 64) as f64 * per_ns;
        let (mut tokens, mut counted) = (burst, 0.0f64);
        for (&(came, size), left) in arrivals.iter().zip(&story.left) {
            let debt_paid = counted + (-tokens / per_ns).max(0.0);
            let due = debt_paid.max(came as f64);
            prop_assert!((left.2.0 as f64 - due).abs() < 1000.0, "left at {:?}, due at {due}", left.2);
            tokens = (tokens + (due - counted) * per_ns).min(burst) - f64::from(size);
            counted = due;
            prop_assert_eq!(left.2, left.3, "nothing holds it back below the shaper");
        }
    }
}

/// Whether each packet passes a policer. This is the virtual scheduling algorithm by which an ATM
/// switch polices (ITU-T I.371): its state is the time at which the bucket would be full again. A
/// packet's time is rounded down to whole ns.
fn policed(arrivals: &Arrivals, bps: u64, burst: u64) -> Vec<bool> {
    let pace = BytePace::new(bps);
    // tc counts the burst in ticks of 64 ns.
    let most = burst * 1_000_000_000 / (bps / 8) / 64 * 64;
    let mut full_at = 0;
    let passes = |&(at, size): &(u64, u32)| {
        let full_then = full_at.max(at) + pace.time(size.into()) as u64;
        let pass = full_then - at <= most;
        if pass {
            full_at = full_then;
        }
        pass
    };
    arrivals.iter().map(passes).collect()
}

proptest! {
    #[test]
    fn a_link_behind_a_policer_acts_as_one_without_the_policed_packets(
        spec in any_spec(), arrivals in any_arrivals(), bps in 500_000u64..20_000_000, burst in 1000u64..30_000,
    ) {
        let with = Spec { police: Some(police(bps, burst)), ..spec.clone() };
        let without = Spec { police: None, ..spec };
        let decided = policed(&arrivals, bps, burst);
        let passed: Arrivals =
            arrivals.iter().zip(&decided).filter(|(_, pass)| **pass).map(|(a, _)| *a).collect();
        let (with, without) =
            (drive(&with, &arrivals, true, &[], HOUR), drive(&without, &passed, true, &[], HOUR));
        let times = |story: &Story| story.left.iter().map(|p| (p.1, p.2, p.3)).collect::<Vec<_>>();
        prop_assert_eq!(times(&with), times(&without));
        prop_assert_eq!(with.dropped, without.dropped + arrivals.len() - passed.len());
    }
}

#[test]
fn a_ring_of_one_packet_acts_as_no_ring_if_an_empty_queue_drops_an_arrival() {
    // The large packet ends RED's idle time. There is no room for it, so a new idle time begins.
    let Params::Red(RedParams::Linux(red)) = red() else { panic!("red is Linux's") };
    let small = Params::Red(RedParams::Linux(LinuxRedParams { limit: 1_400, ..red }));
    let arrivals = vec![(0, 700), (0, 700), (0, 700), (3 * MS, 1500), (4 * MS, 700)];
    let average = |ring| {
        let spec = Spec { qdisc: small.clone(), ring, ..Spec::plain() };
        let story = drive(&spec, &arrivals, true, &[], HOUR);
        assert_eq!(story.dropped, 1);
        story.average.filter(|average| *average > 0.0)
    };
    assert!(average(None).is_some());
    assert_eq!(average(Some(RingParams::NONE)), average(None));
}

/// 1500-byte packets at 1.25 times the link's rate for `seconds`.
fn overload(seconds: u64) -> Arrivals {
    (0..seconds * 1250).map(|i| (i * 800_000, 1500)).collect()
}

#[test]
fn a_discipline_does_not_shorten_the_ring_below_it() {
    // CoDel keeps its own queue at the target, but 256 packets lie below it; with BQL, three.
    let longest = |bql| {
        let spec = Spec { qdisc: codel(), ..Spec::ring(256, bql) };
        let story = drive(&spec, &overload(20), true, &[], HOUR);
        assert!(story.dropped > 100, "CoDel is at work");
        let late = &story.left[story.left.len() / 2..];
        late.iter().map(|p| p.3.since(p.2).0).max().unwrap_or(0)
    };
    assert_eq!(longest(false), 256 * MS);
    assert_eq!(longest(true), 3 * MS);
}

#[test]
fn byte_queue_limits_settle_at_two_packets_and_a_third_overshoots() {
    let story = drive(&Spec::ring(256, true), &overload(20), true, &[], 20_000 * MS);
    assert_eq!(story.bql_limit, Some(3000));
}

#[test]
fn no_dequeue_in_vain_precedes_an_arrival_at_the_same_instant() {
    let fq_codel = Params::FqCodel(FqCodelParams {
        variant: CodelVariant::Linux,
        limit: 1000,
        flows: 1024,
        memory_limit: 1 << 25,
        target_ns: 5 * MS,
        interval_ns: 100 * MS,
        quantum: 1500,
        ecn: false,
        ce_threshold_ns: None,
        ce_threshold_selector: None,
        drop_batch: 64,
    });
    let order = |ring, shaper, comes: u64| {
        let mut link = Spec { qdisc: fq_codel.clone(), ring, shaper, ..Spec::plain() }.link();
        let mut log = Log::default();
        // A packet of flow 1 is in transmission until 1 ms, and its quantum is spent. Then a packet
        // of flow 2 is in transmission; meanwhile a packet of flow 1 and one of flow 3 arrive.
        for (body, flow, at) in [(0, 1, 0), (1, 2, comes), (2, 1, comes), (3, 3, comes)] {
            let packet =
                Packet { enqueued: Time::ZERO, flow, size: 1500, ds: DsField::BEST_EFFORT, body };
            link.send(packet, Time(at), &mut log);
        }
        link.advance(Time(10 * MS), &mut log);
        log.departures.iter().map(|d| d.packet.body).collect::<Vec<_>>()
    };
    for ring in [None, Some(RingParams { descriptors: 1, bql: false, coalesce_ns: 0 })] {
        // At 1 ms the link dequeued in vain, so the empty fq_codel removed flow 1 from its lists.
        // The next packet makes flow 1 a new flow again, ahead of flow 3.
        assert_eq!(order(ring, None, MS + 1), [0, 1, 2, 3]);
        assert_eq!(order(ring, None, MS), [0, 1, 3, 2]);
        // This shaper is too fast to hold a packet back.
        let shaper = Some(htb(10 * RATE, 15_000));
        assert_eq!(
            [MS, MS + 1].map(|comes| order(ring, shaper, comes)),
            [[0, 1, 3, 2], [0, 1, 3, 2]]
        );
    }
}

#[test]
fn a_shaper_wakes_the_link_exactly_when_its_debt_is_paid() {
    // 1000 bytes at 1 Mbit/s take 8 ms; the bucket starts with 500 bytes.
    let mut link = Spec { rate: vec![], shaper: Some(htb(1_000_000, 500)), ..Spec::plain() }.link();
    let mut log = Log::default();
    for body in 0..2 {
        let packet =
            Packet { enqueued: Time::ZERO, flow: 0, size: 1000, ds: DsField::BEST_EFFORT, body };
        link.send(packet, Time::ZERO, &mut log);
    }
    assert_eq!(
        (log.departures.len(), link.backlog().packets),
        (1, 1),
        "a link without a rate queues at its shaper"
    );
    assert_eq!(link.next_event(), Some(Time(4 * MS)));
    link.advance(Time(4 * MS - 1), &mut log);
    assert_eq!(log.departures.len(), 1);
    link.advance(Time(4 * MS), &mut log);
    assert_eq!(
        log.departures.iter().map(|d| d.dequeued).collect::<Vec<_>>(),
        [Time::ZERO, Time(4 * MS)]
    );
}

#[test]
fn a_discipline_that_holds_packets_back_is_dequeued_when_it_releases_one() {
    // 1500 bytes take 3 ms at cake's 4 Mbit/s, and 1 ms or no time on the wire.
    for rate in [steady(RATE), vec![]] {
        let wire = if rate.is_empty() { 0 } else { MS };
        let mut link = Spec { rate, qdisc: cake(4_000_000), ring: None, ..Spec::plain() }.link();
        let mut log = Log::default();
        for body in 0..4 {
            let packet = Packet {
                enqueued: Time::ZERO,
                flow: 0,
                size: 1500,
                ds: DsField::BEST_EFFORT,
                body,
            };
            link.send(packet, Time(10 * MS), &mut log);
        }
        assert_eq!(link.next_event(), Some(Time(13 * MS)));
        link.advance(Time(13 * MS - 1), &mut log);
        assert_eq!(log.departures.len(), 1);
        link.advance(Time(1_000 * MS), &mut log);
        let left = log.departures.iter().map(|d| (d.dequeued, Time(d.arrives.0 - DELAY.0 - wire)));
        let due = [10, 13, 16, 19].map(|ms| (Time(ms * MS), Time(ms * MS)));
        assert_eq!(left.collect::<Vec<_>>(), due);
        assert_eq!(link.next_event(), None);
    }
}

#[test]
fn an_arrival_or_a_completion_makes_a_link_dequeue_before_the_discipline_s_timer() {
    // A packet of fq's at 500 kbit/s takes 24 ms, and the timer is a millisecond late.
    let order = |arrivals: &[(u32, u64)]| {
        let mut link =
            Spec { rate: vec![], qdisc: fq(500_000), ring: None, ..Spec::plain() }.link();
        let mut log = Log::default();
        for (body, (flow, at)) in (0..).zip(arrivals) {
            let packet = Packet {
                enqueued: Time::ZERO,
                flow: *flow,
                size: 1500,
                ds: DsField::BEST_EFFORT,
                body,
            };
            link.send(packet, Time(*at), &mut log);
        }
        link.advance(Time(1_000 * MS), &mut log);
        log.departures.iter().map(|d| (d.packet.body, d.dequeued.0)).collect::<Vec<_>>()
    };
    assert_eq!(order(&[(0, 0), (0, 0)]), [(0, 0), (1, 25 * MS)]);
    let half = 24 * MS + MS / 2;
    assert_eq!(order(&[(0, 0), (0, 0), (1, half)]), [(0, 0), (1, half), (2, half)]);
}

#[test]
fn an_arrival_at_the_instant_of_a_release_is_enqueued_after_it() {
    // The second packet of the flow is due at 3 ms, when one of a flow without a backlog arrives.
    let order = |rate| {
        let mut link = Spec { rate, qdisc: cake(4_000_000), ring: None, ..Spec::plain() }.link();
        let mut log = Log::default();
        for (body, flow, at) in [(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 1, 3 * MS)] {
            let packet =
                Packet { enqueued: Time::ZERO, flow, size: 1500, ds: DsField::BEST_EFFORT, body };
            link.send(packet, Time(at), &mut log);
        }
        link.advance(Time(100 * MS), &mut log);
        log.departures.iter().map(|d| d.packet.body).collect::<Vec<_>>()
    };
    assert_eq!(order(vec![]), [0, 1, 3, 2]);
    // If the transmitter becomes free at 3 ms, the link enqueues the arrival first and dequeues
    // then.
    assert_eq!(order(vec![RateStep { at_ns: 0, bps: 4_000_000 }]), [0, 3, 1, 2]);
}

#[test]
fn a_link_that_stops_for_good_fills_its_ring_and_waits() {
    let stops = vec![RateStep { at_ns: 0, bps: RATE }, RateStep { at_ns: 2 * MS + MS / 2, bps: 0 }];
    let spec = Spec { rate: stops, ..Spec::ring(4, false) };
    let mut link = spec.link();
    let mut log = Log::default();
    for body in 0..10 {
        let packet =
            Packet { enqueued: Time::ZERO, flow: 0, size: 1500, ds: DsField::BEST_EFFORT, body };
        link.send(packet, Time::ZERO, &mut log);
    }
    let end = Time(HOUR);
    link.advance(end, &mut log);
    // Two packets are out; four are in the ring, the first of them half transmitted.
    assert_eq!((log.departures.len(), link.backlog().packets), (6, 4));
    assert_eq!(link.next_event(), Some(Time::NEVER));
    let ring = link.ring().expect("it has one");
    assert_eq!((ring.backlog().packets, ring.counters(end).sent_packets), (4, 2));
    assert_eq!(ring.counters(end).sojourn_sum_ns, u128::from(3 * MS));
    assert_eq!(link.wire_bytes(end), 3 * 1500);
}

#[test]
fn the_slower_of_rate_and_shaper_is_what_a_link_can_carry() {
    let capacity = |rate: Vec<RateStep>, shaper| {
        let link = Spec { rate, shaper, ..Spec::plain() }.link();
        link.capacity_bits(Time::ZERO, Time(1000 * MS))
    };
    assert_eq!(capacity(steady(RATE), Some(htb(1_000_000, 1600))), Some(1_000_000));
    assert_eq!(capacity(steady(500_000), Some(htb(1_000_000, 1600))), Some(500_000));
    assert_eq!(capacity(vec![], Some(htb(1_000_000, 1600))), Some(1_000_000));
    assert_eq!(capacity(vec![], None), None);
}
