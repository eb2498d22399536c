//! RED against hand-computed numbers, Linux's comments and selftests, and its own formula in the
//! long run.

use super::linux::idle_damping;
use super::*;
use units::{Rate, Span};

const RATE: Rate = Rate::from_mbit(10);
/// 1500 bytes at 10 Mbit/s.
const PACKET_NS: u64 = 1_200_000;

fn context() -> Context {
    Context { rate: Some(RATE), mtu: 1514, header_bytes: 0, root: false, rng: Rng::new(1, "red") }
}

fn packet(size: u32, ecn: Ecn) -> Packet<()> {
    Packet { enqueued: Time::ZERO, flow: 0, size, ds: ecn.into(), body: () }
}

/// ns-2.35 as installed, limit 100.
fn ns2() -> FloydRedParams {
    FloydRedParams {
        limit: 100,
        min: 0.0,
        max: 0.0,
        weight: 0.0,
        probability: 0.1,
        mean_bytes: 500,
        byte_mode: true,
        gentle: true,
        wait: true,
        adaptive: false,
        target_delay_ns: 5_000_000,
        ecn: false,
    }
}

/// ns-3's defaults, limit 100.
fn ns3() -> FloydRedParams {
    FloydRedParams {
        min: 5.0,
        max: 15.0,
        weight: 0.002,
        probability: 0.02,
        byte_mode: false,
        ..ns2()
    }
}

fn floyd(params: &RedParams) -> FloydRed {
    match Red::<()>::new(params, context()).law {
        Law::Floyd(red) => red,
        Law::Linux(_) => unreachable!("the variant is one of Floyd's"),
    }
}

/// The example of tc's authors: red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 bandwidth
/// 10Mbit.
fn linux() -> LinuxRedParams {
    LinuxRedParams {
        limit: 400_000,
        min: 30_000,
        max: 90_000,
        avpkt: 1000,
        burst: 55,
        probability: 0.02,
        bandwidth: 10_000_000,
        adaptive: false,
        ecn: false,
        harddrop: false,
        nodrop: false,
    }
}

/// Keeps `backlog` packets queued while `arrivals` more packets arrive and as many leave. Returns
/// the fraction dropped.
fn drop_rate(q: &mut Red<()>, backlog: u32, arrivals: u32, size: u32) -> f64 {
    let mut verdicts = Vec::new();
    let mut now = Time::ZERO;
    let mut run = |n: u32, verdicts: &mut Vec<Verdict<()>>| {
        for _ in 0..n {
            now += Span(PACKET_NS);
            q.enqueue(packet(size, Ecn::NotEct), now, verdicts);
            if q.backlog().packets > backlog {
                q.dequeue(now, verdicts);
            }
        }
    };
    // Run until the average has settled.
    run(40_000, &mut verdicts);
    verdicts.clear();
    run(arrivals, &mut verdicts);
    verdicts.len() as f64 / f64::from(arrivals)
}

#[test]
fn the_weight_permits_the_bursts_of_red_h() {
    // red.h: the burst L that W = 2^-1, 2^-2, ... permits with a min of 32 average packets.
    for (log, permitted) in (1..).zip([33u32, 35, 39, 46, 57, 75, 101, 135, 190]) {
        let weight_log = |burst| LinuxRedParams { min: 32_000, burst, ..linux() }.weight_log();
        let largest = (32..400).rev().find(|burst| weight_log(*burst).is_some_and(|w| w <= log));
        let largest = largest.expect("some burst is permitted");
        assert!(largest.abs_diff(permitted) <= 2, "W = 2^-{log}: {largest}, red.h has {permitted}");
    }
}

#[test]
fn the_example_of_the_kernel_log_is_reproduced() {
    // Linux commit 8af2a218de3: ewma 5, Scell_log 15.
    let wlog = linux().weight_log();
    assert_eq!(wlog, Some(5));
    assert_eq!(idle_damping(linux().avpkt, linux().bandwidth, 5).0, 15);
}

#[test]
fn a_burst_below_min_is_refused() {
    assert_eq!(LinuxRedParams { burst: 20, ..linux() }.weight_log(), None);
}

#[test]
fn linux_marks_by_the_average_as_in_the_kernels_selftest() {
    // net/forwarding/sch_red.sh: min 30000 max 30001 avpkt 1400 burst 38 probability 1.
    let params = LinuxRedParams {
        limit: 1 << 20,
        min: 30_000,
        max: 30_001,
        avpkt: 1400,
        burst: 38,
        probability: 1.0,
        ..linux()
    };
    let red = |p: &LinuxRedParams| Red::new(&RedParams::Linux(p.clone()), context());
    // Two thirds of the threshold: no drops.
    assert_eq!(drop_rate(&mut red(&params), 14, 1000, 1400), 0.0);

    // Three halves: at least 95 %. Marks instead of drops keep the backlog.
    let with_ecn = LinuxRedParams { ecn: true, ..params.clone() };
    let signalled = |p: &LinuxRedParams, ecn| {
        let mut q = red(p);
        let mut verdicts = Vec::new();
        for _ in 0..33 {
            q.queue.push(packet(1400, ecn), Time::ZERO);
        }
        for i in 1..2000 {
            q.enqueue(packet(1400, ecn), Time(i * PACKET_NS), &mut verdicts);
            while q.backlog().packets > 33 {
                q.dequeue(Time(i * PACKET_NS), &mut verdicts);
            }
        }
        verdicts
    };
    let marks = signalled(&with_ecn, Ecn::Ect0);
    assert!(marks.len() > 1900 && marks.iter().all(|f| matches!(f, Verdict::Marked { .. })));
    // nodrop lets packets pass that can't be marked; harddrop drops even packets that can be
    // marked.
    assert!(
        signalled(&LinuxRedParams { nodrop: true, ..with_ecn.clone() }, Ecn::NotEct).is_empty()
    );
    let hard = signalled(&LinuxRedParams { harddrop: true, ..with_ecn }, Ecn::Ect0);
    assert!(
        hard.len() > 1900 && hard.iter().all(|f| matches!(f, Verdict::Dropped(_, Cause::Early)))
    );
}

#[test]
fn linux_drops_at_twice_p_between_the_thresholds() {
    // The gap is uniform in [0, 1/p] with mean 1/2p. Backlog 60 of 30..90 packets: p = 0.02 / 2.
    let mut q = Red::new(&RedParams::Linux(linux()), context());
    let rate = drop_rate(&mut q, 60, 200_000, 1000);
    assert!((rate / 0.02 - 1.0).abs() < 0.05, "{rate}");
}

#[test]
fn linux_accepts_no_byte_above_the_limit() {
    let params = LinuxRedParams { limit: 3000, ..linux() };
    let mut q = Red::new(&RedParams::Linux(params), context());
    let mut verdicts = Vec::new();
    for size in [1500, 1501, 1500, 1] {
        q.enqueue(packet(size, Ecn::NotEct), Time(1), &mut verdicts);
    }
    assert_eq!(q.backlog().bytes, 3000);
    assert!(
        verdicts.iter().all(|f| matches!(f, Verdict::Dropped(_, Cause::Limit)))
            && verdicts.len() == 2
    );
}

#[test]
fn linux_damps_the_average_of_an_idle_queue() {
    let mut red = LinuxRed::new(&linux());
    red.average = 32_000 << 5;
    // Cells of 2^15 µs. 2^15 ticks are 2.6 packets of 12 500 ticks, each worth 0.0317: 0.083 shifts
    // a cell.
    assert_eq!(red.table[12], 0);
    assert_eq!(red.table[13], 1);
    assert_eq!(red.damped(Span::from_micros(13 << 15)), 16_000 << 5);
    assert_eq!(red.damped(Span::from_secs(3600)), 0);
    // The linear part: a quarter of a cell subtracts a quarter, and at most a half.
    assert_eq!(red.damped(Span::from_micros(1 << 13)), 24_000 << 5);
    assert_eq!(red.damped(Span::from_micros(3 << 15)), 16_000 << 5);
}

#[test]
fn linux_adapts_each_128_ticks_within_its_bounds() {
    let mut red = LinuxRed::new(&LinuxRedParams { adaptive: true, ..linux() });
    red.idle_since = None;
    red.average = 80_000 << 5;
    let percent = |red: &LinuxRed| f64::from(red.max_p) / TWO_32 * 100.0;
    red.adapt(Time(511_999_999));
    assert!((percent(&red) - 2.0).abs() < 1e-6);
    red.adapt(Time(512_000_000));
    // 2 % + min(1 %, 2 % / 4).
    assert!((percent(&red) - 2.5).abs() < 1e-6);
    red.adapt(Time(100_000_000_000));
    assert!((50.0..51.1).contains(&percent(&red)), "{}", percent(&red));
    red.average = 40_000 << 5;
    red.adapt(Time(100_512_000_000));
    red.adapt(Time(300_000_000_000));
    assert!((0.89..1.0).contains(&percent(&red)), "{}", percent(&red));
    // In the middle fifth max_p does not change. Years later the timer has not fallen behind.
    red.average = 60_000 << 5;
    let before = red.max_p;
    red.adapt(Time(301_000_000_000));
    assert_eq!(red.max_p, before);
    red.average = 0;
    red.adapt(Time(u64::MAX / 4));
    assert!(red.next_adapt > Time(u64::MAX / 4));
}

#[test]
fn linux_raises_max_p_above_three_fifths_and_lowers_it_by_a_tenth_below_two() {
    // Between 30 000 and 90 000 bytes the middle fifth is 54 000 to 66 000, inclusive.
    let adapted = |average: u64| {
        let mut red = LinuxRed::new(&LinuxRedParams { adaptive: true, ..linux() });
        red.idle_since = None;
        red.average = average << red.wlog;
        let before = red.max_p;
        red.adapt(Time(512_000_000));
        (before, red.max_p)
    };
    for average in [54_000, 66_000] {
        let (before, after) = adapted(average);
        assert_eq!(before, after, "{average} bytes");
    }
    let (before, after) = adapted(66_001);
    assert_eq!(after, before + before / 4);
    let (before, after) = adapted(53_999);
    assert_eq!(after, before / 10 * 9);
}

#[test]
fn an_average_at_linux_s_threshold_counts_as_above_it() {
    let mut rng = Rng::new(1, "red");
    let mut red = LinuxRed::new(&linux());
    red.average = (30_000 << red.wlog) - 1;
    assert!(matches!(red.red_action(&mut rng), Decision::Pass));
    assert_eq!(red.count, None, "below");
    red.average += 1;
    assert!(matches!(red.red_action(&mut rng), Decision::Pass));
    assert_eq!(red.count, Some(0), "between the thresholds, where counting begins");
    red.average = (90_000 << red.wlog) - 1;
    red.draw = u64::MAX;
    assert!(matches!(red.red_action(&mut rng), Decision::Pass));
    red.average += 1;
    // A certain decision has the cause of a random one, as the kernel counts it.
    assert!(matches!(red.red_action(&mut rng), Decision::Drop(Cause::Early)));
    assert_eq!(red.chance, 1.0);
}

#[test]
fn linux_drops_when_excess_times_count_equals_the_draw() {
    // The second packet, 1000 bytes above min: 2000.
    for (draw, early) in [(2000, true), (2001, false)] {
        let mut red = LinuxRed::new(&linux());
        red.average = 31_000 << red.wlog;
        (red.count, red.draw) = (Some(1), draw);
        let decision = red.red_action(&mut Rng::new(1, "red"));
        assert_eq!(matches!(decision, Decision::Drop(Cause::Early)), early);
    }
}

#[test]
fn after_any_longer_idle_time_linux_s_average_is_shifted_by_31() {
    let mut red = LinuxRed::new(&linux());
    red.average = 1 << 40;
    assert_eq!(red.damped(Span::from_secs(1_000_000)), 1 << 9);
    assert_eq!(red.damped(Span::from_micros(255 << red.cell_log)), 1 << 9);
}

#[test]
fn automatic_thresholds_and_weight_are_those_of_ns2() {
    // 10 Mbit/s and 500 bytes: C = 2500/s. 5 ms are 12.5 packets, so min is 6.25 packets.
    let red = floyd(&RedParams::Ns2(ns2()));
    assert_eq!((red.min, red.max, red.limit), (3125.0, 9375.0, 50_000.0));
    assert!((red.weight - (1.0 - libm::exp(-1.0 / 2500.0))).abs() < 1e-15);
    // With 1500 bytes C = 833/s and min is its floor of 5 packets.
    let red = floyd(&RedParams::Ns2(FloydRedParams { mean_bytes: 1500, ..ns2() }));
    assert_eq!((red.min, red.max), (7500.0, 22_500.0));
    // max_p adapts down to 1/W, where W is the number of 1000-byte packets in 100 ms: 0.008 here.
    assert_eq!(red.least_max_p, 0.008);
    // In ns-3 a min of 0 with a given max is used as it is.
    for (variant, want) in [(RedParams::Ns2 as fn(_) -> _, 6.25), (RedParams::Ns3, 0.0)] {
        let red = floyd(&variant(FloydRedParams { min: 0.0, ..ns3() }));
        assert_eq!((red.min, red.max), (want, 15.0));
    }
    let red = floyd(&RedParams::Ns3(FloydRedParams { max: 0.0, ..ns3() }));
    assert_eq!((red.min, red.max), (5.0, 15.0));
}

#[test]
fn ns2_is_full_at_limit_times_mean_bytes() {
    for (byte_mode, variant, full_at) in [
        // 50 000 bytes: 33 packets of 1500 are 49 500, so ns-2 takes a 34th and ns-3 does not.
        (true, RedVariant::Ns2, 34),
        (true, RedVariant::Ns3, 33),
        (false, RedVariant::Ns2, 100),
        (false, RedVariant::Ns3, 100),
    ] {
        // A high threshold leaves only the physical limit.
        let params = FloydRedParams { min: 1e6, max: 2e6, byte_mode, ..ns2() };
        let params = match variant {
            RedVariant::Ns2 => RedParams::Ns2(params),
            RedVariant::Ns3 => RedParams::Ns3(params),
        };
        let mut q = Red::new(&params, context());
        let mut verdicts = Vec::new();
        for _ in 0..120 {
            q.enqueue(packet(1500, Ecn::NotEct), Time(1), &mut verdicts);
        }
        assert_eq!(q.backlog().packets, full_at, "{byte_mode} {variant:?}");
        assert!(verdicts.iter().all(|f| matches!(f, Verdict::Dropped(_, Cause::Limit))));
    }
}

#[test]
fn an_idle_period_counts_as_the_packets_it_could_have_sent() {
    let mut q = Red::new(&RedParams::Ns2(ns2()), context());
    let mut verdicts = Vec::new();
    if let Law::Floyd(red) = &mut q.law {
        red.average = 3000.0;
        red.idle_since = None;
    }
    q.dequeue(Time(0), &mut verdicts);
    q.dequeue(Time(900_000_000), &mut verdicts);
    // One second since the first dequeue of the empty queue: 2500 missed packets and the arrival
    // itself, (1 - w)^2501.
    q.enqueue(packet(1500, Ecn::NotEct), Time(1_000_000_000), &mut verdicts);
    let average = q.state(Time(1_000_000_001)).average.expect("red has an average");
    assert!((average / (3000.0 * libm::exp(-2501.0 / 2500.0)) - 1.0).abs() < 1e-9, "{average}");
    // The second packet finds a queue of 1500 bytes and no idle time.
    q.enqueue(packet(1500, Ecn::NotEct), Time(1_000_000_001), &mut verdicts);
    let weight = 1.0 - libm::exp(-1.0 / 2500.0);
    let next = q.state(Time(1_000_000_001)).average.expect("red has an average");
    assert!((next - (average * (1.0 - weight) + weight * 1500.0)).abs() < 1e-9);
}

#[test]
fn the_long_run_drop_rate_is_that_of_the_interpolated_max_p() {
    // Backlog 10 of 5..15 packets: p = 0.02 / 2 = 0.01. Without wait gaps are uniform in [1, 1/p -
    // 1], mean 1/2p; with wait in [1/p, 2/p], mean 3/2p.
    for (wait, want) in [(false, 0.02), (true, 0.01 / 1.5)] {
        for variant in [RedParams::Ns2, RedParams::Ns3] {
            let mut q = Red::new(&variant(FloydRedParams { wait, ..ns3() }), context());
            let rate = drop_rate(&mut q, 10, 200_000, 1500);
            assert!((rate / want - 1.0).abs() < 0.05, "wait {wait}: {rate}, expected {want}");
        }
    }
    // Above max, gentle: halfway between max and 2 max p is halfway between 0.02 and 1.
    let mut red = floyd(&RedParams::Ns3(ns3()));
    red.average = 22.5;
    assert!((red.base_probability() - 0.51).abs() < 1e-12);
    red.average = 30.0;
    assert!((red.base_probability() - 1.0).abs() < 1e-12);
    red.gentle = false;
    red.average = 15.0;
    assert_eq!(red.base_probability(), 1.0);
}

#[test]
fn in_byte_mode_large_packets_are_dropped_in_proportion_to_their_size() {
    // min 5, max 15 and backlog 10 packets of 1000 bytes with mean 1000: p = 0.01 for a packet of
    // 1000 bytes.
    let params = FloydRedParams { byte_mode: true, mean_bytes: 1000, wait: false, ..ns3() };
    let red = floyd(&RedParams::Ns2(params));
    let (small, large) = (red.spread(0.01, 500), red.spread(0.01, 1500));
    assert!((large / small - 3.0).abs() < 1e-12);
    // count_bytes counts whole mean packets.
    let red = FloydRed { count_bytes: 49_999, ..red };
    assert!((red.spread(0.01, 1000) - 0.01 / (1.0 - 0.49)).abs() < 1e-12);
}

#[test]
fn adaptive_red_moves_max_p_each_half_second_of_arrivals() {
    let mut red = floyd(&RedParams::Ns2(FloydRedParams { adaptive: true, ..ns2() }));
    let backlog = Backlog { packets: 6, bytes: 9000 };
    let mut rng = Rng::new(1, "ared");
    red.average = 9000.0;
    red.idle_since = None;
    // No change at half a second; just after it +0.01; then no change for another half second.
    for (ms, want) in [(500, 0.10), (501, 0.11), (1001, 0.11), (1002, 0.12)] {
        red.decide(backlog, 1500, Time(ms * 1_000_000), &mut rng);
        assert!((red.max_p - want).abs() < 1e-12, "{ms} ms: {}", red.max_p);
    }
    // If the average is below the band, max_p is multiplied by 0.9 down to the first value at or
    // below 0.008.
    red.average = 0.0;
    for i in 0..200 {
        red.average = 0.0;
        red.decide(Backlog::default(), 1500, Time((2000 + 501 * i) * 1_000_000), &mut rng);
    }
    assert!((0.0072..=0.008).contains(&red.max_p), "{}", red.max_p);
    // Within the band max_p does not change.
    let before = red.max_p;
    red.average = (red.min + red.max) / 2.0;
    red.decide(Backlog { packets: 4, bytes: 6250 }, 1500, Time(999_000_000_000), &mut rng);
    assert_eq!(red.max_p, before);
}

#[test]
fn ns2_drops_what_it_could_mark_once_p_is_above_a_tenth_and_ns3_above_the_upper_threshold() {
    let decision_at = |params: RedParams, average: f64| {
        let mut q = Red::new(&params, context());
        let mut verdicts = Vec::new();
        for _ in 0..20 {
            q.queue.push(packet(1500, Ecn::Ect0), Time::ZERO);
        }
        while verdicts.is_empty() {
            if let Law::Floyd(red) = &mut q.law {
                red.idle_since = None;
                red.average = average;
            }
            q.enqueue(packet(1500, Ecn::Ect0), Time(1), &mut verdicts);
            q.dequeue(Time(1), &mut verdicts);
        }
        match verdicts[0] {
            Verdict::Dropped(_, cause) => ("drop", cause),
            Verdict::Marked { cause, .. } => ("mark", cause),
        }
    };
    let params = FloydRedParams { ecn: true, ..ns3() };
    let ns2 = |average| decision_at(RedParams::Ns2(params.clone()), average);
    let ns3 = |average| decision_at(RedParams::Ns3(params.clone()), average);
    // p is 0.01 at 10, 0.15 at 17, 0.51 at 22.5, 1 at 30 packets.
    assert_eq!(
        [ns2(10.0), ns2(17.0), ns2(31.0)],
        [("mark", Cause::Early), ("drop", Cause::Early), ("drop", Cause::Forced)]
    );
    assert_eq!(
        [ns3(10.0), ns3(22.5), ns3(31.0)],
        [("mark", Cause::Early), ("mark", Cause::Early), ("drop", Cause::Forced)]
    );
}

#[test]
fn a_lone_packet_is_never_dropped_early() {
    let mut red = floyd(&RedParams::Ns2(FloydRedParams { byte_mode: false, ..ns3() }));
    let mut rng = Rng::new(1, "lone");
    for i in 0..1000 {
        red.average = 14.0;
        red.idle_since = None;
        assert_eq!(
            red.decide(Backlog { packets: 1, bytes: 1500 }, 1500, Time(i), &mut rng),
            Decision::Pass
        );
    }
}

#[test]
fn a_probability_of_1_gives_linux_s_replacement() {
    // tc 6.1 prints Plog 14 for a width of 16383 bytes, 15 for 16384 and 16667: 2^-Plog is below 1
    // / width.
    for (width, plog) in [(16_383, 14), (16_384, 15), (16_667, 15), (1, 1)] {
        let red = |probability| {
            LinuxRed::new(&LinuxRedParams {
                min: 8_000,
                max: 8_000 + width,
                probability,
                ..linux()
            })
        };
        assert_eq!(red(1.0).max_p, (u32::MAX >> plog) * width);
        assert_eq!(red(0.5).max_p, 1 << 31);
    }
}
