use super::linux::{LinuxPie, timer};
use super::rfc::{DOCSIS_MAX_BURST, DocsisPie, MAX_BURST, RfcPie, Status};
use super::*;
use crate::Ecn;

const MS: u64 = 1_000_000;
const MAX: f64 = ONE as f64;
/// More than two full packets: enough for an early drop.
const FULL: Backlog = Backlog { packets: 100, bytes: 151_400 };

/// Ticks of 64 ns.
fn ticks(ms: u64) -> u64 {
    ms * MS / 64
}

fn linux() -> LinuxPieParams {
    LinuxPieParams {
        limit: 1000,
        target_ns: 15 * MS,
        tupdate_ns: 15 * MS,
        alpha: 2,
        beta: 20,
        ecn: false,
        bytemode: false,
        dq_rate_estimator: false,
    }
}

fn rfc() -> RfcPieParams {
    RfcPieParams {
        limit: 1000,
        target_ns: 15 * MS,
        tupdate_ns: 15 * MS,
        alpha: 2.0,
        beta: 20.0,
        ecn: false,
    }
}

fn docsis() -> DocsisPieParams {
    DocsisPieParams { limit: 1000, target_ns: 10 * MS, tupdate_ns: 16 * MS, alpha: 4.0, beta: 40.0 }
}

/// Dice with the recorded draw of a replay.
fn dice(recorded_draw: Option<bool>) -> Dice {
    Dice { rng: Rng::new(1, "pie"), recorded_draw, chance: 0.0 }
}

fn context() -> Context {
    let rng = Rng::new(1, "pie");
    Context { rate: Some(Rate::from_mbit(10)), mtu: 1514, header_bytes: 14, root: true, rng }
}

fn packet(size: u32, ecn: Ecn) -> Packet<()> {
    Packet { enqueued: Time::NEVER, flow: 0, size, ds: ecn.into(), body: () }
}

// ------------------------------------------------------------------------- p after each update

/// p in units of 2^-56 after each update, given the delay in ms at each.
fn linux_series(start: u64, old_ms: u64, delays: &[u64]) -> Vec<u64> {
    let mut pie = LinuxPie::new(&linux(), 1514);
    pie.vars.prob = start;
    pie.vars.delay_old = ticks(old_ms);
    delays
        .iter()
        .map(|ms| {
            pie.vars.delay = ticks(*ms);
            pie.update(Backlog::default(), 1);
            pie.vars.prob
        })
        .collect()
}

#[test]
fn linux_s_p_changes_as_its_integer_arithmetic_does() {
    assert_eq!(
        linux_series(0, 0, &[20; 8]),
        [
            901_599_218_750,
            1_253_442_890_625,
            1_605_286_562_500,
            1_957_130_234_375,
            2_308_973_906_250,
            2_660_817_578_125,
            3_012_661_250_000,
            3_364_504_921_875
        ]
    );
    assert_eq!(
        linux_series(0, 0, &[5, 10, 20, 40, 80, 160, 100]),
        [
            175_921_953_125,
            967_570_390_625,
            8_356_288_437_500,
            71_688_157_968_750,
            202_574_021_562_500,
            1_266_549_432_968_750,
            0
        ]
    );
    assert_eq!(
        linux_series(0, 0, &[300; 6]),
        [
            1_455_599_455_602_308,
            4_180_277_229_485_866,
            6_904_955_003_369_424,
            9_629_632_777_252_982,
            12_511_936_538_770_098,
            15_394_240_300_287_214
        ]
    );
    assert_eq!(
        linux_series((0.12 * MAX) as u64, 20, &[100, 100, 20, 20, 10, 0, 0, 0]),
        [
            10_088_063_165_309_910,
            10_853_675_101_559_910,
            3_692_951_695_309_910,
            3_715_469_693_434_910,
            3_242_591_732_653_660,
            2_724_677_775_622_410,
            2_615_606_222_165_420,
            2_508_238_911_731_195
        ]
    );
}

#[test]
fn linux_s_p_has_no_upper_bound() {
    // At a steady 400 ms p exceeds 1 at the 26th update, 2.0 at the 50th, 40 at the 1000th.
    let mut pie = LinuxPie::new(&linux(), 1514);
    let mut p = Vec::new();
    for _ in 0..1000 {
        pie.vars.delay = ticks(400);
        pie.update(FULL, 1);
        p.push(pie.probability());
    }
    assert!(p[24] < 1.0 && p[25] > 1.0, "{:?}", &p[24..26]);
    assert!((p[49] - 2.0).abs() < 0.02 && (p[999] - 40.0).abs() < 0.05, "{} {}", p[49], p[999]);
}

#[test]
fn many_updates_in_one_step_equal_single_ones() {
    // A year of a link without a rate would be 1.6e9 updates. Linear growth and steady states are
    // computed at once.
    for (delay, backlog) in
        [(400, FULL), (0, Backlog::default()), (20, FULL), (3, FULL), (300_000, FULL)]
    {
        let mut slow = LinuxPie::new(&linux(), 1514);
        slow.vars.prob = 1 << 50;
        slow.vars.delay = ticks(delay);
        let mut quick = slow.clone();
        for _ in 0..20_000 {
            slow.update(backlog, 1);
        }
        quick.update(backlog, 20_000);
        assert_eq!(slow.vars, quick.vars, "{delay} ms");
        quick.update(backlog, 1_600_000_000);
    }
}

#[test]
fn many_updates_of_the_rfcs_laws_in_one_step_equal_single_ones() {
    // An allowance of 150 ms takes 150 000 updates at one per microsecond.
    let tupdates_ns = [1_000_u64, 7_001, 333_333, 15 * MS, 2_000 * MS];
    for (tupdate_ns, packets) in tupdates_ns.into_iter().flat_map(|t| [(t, 0), (t, 1), (t, 90)]) {
        let backlog = Backlog { packets, bytes: 1514 * u64::from(packets) };
        let times = [1, 2, 3, 900, 300_000];
        let mut rfc = RfcPie::new(&RfcPieParams { tupdate_ns, ..rfc() }, 1514);
        rfc.burst = MAX_BURST;
        rfc.delay = f64::from(packets) * 1e-3;
        let mut slow = rfc.clone();
        for times in times {
            rfc.update(times);
            (0..times).for_each(|_| slow.update(1));
            assert_eq!(rfc, slow, "{tupdate_ns} ns, {packets} packets, {times} times");
        }
        for status in [Status::Inactive, Status::Quiescent, Status::Active] {
            for burst in [Span::ZERO, DOCSIS_MAX_BURST] {
                let params = DocsisPieParams { tupdate_ns, ..docsis() };
                let mut quick = DocsisPie::new(&params, Some(Rate::from_mbit(10)));
                (quick.status, quick.burst, quick.p) = (status, burst, 0.001);
                let mut slow = quick.clone();
                for times in times {
                    quick.update(backlog, times);
                    (0..times).for_each(|_| slow.update(backlog, 1));
                    assert_eq!(quick, slow, "{tupdate_ns} ns, {packets} packets, {times} times");
                }
            }
        }
    }
}

/// Equal within a unit of the last digit that is given.
fn close(actual: f64, expected: f64) -> bool {
    (actual - expected).abs() <= 1e-6 * expected.abs().max(1e-9)
}

fn rfc_series(start: f64, old: f64, delays: &[f64]) -> Vec<f64> {
    let mut pie = RfcPie::new(&rfc(), 1514);
    (pie.p, pie.delay_old) = (start, old / 1e3);
    delays
        .iter()
        .map(|ms| {
            pie.delay = ms / 1e3;
            pie.update(1);
            pie.p
        })
        .collect()
}

#[test]
fn the_rfc_s_p_changes_as_in_its_appendix_a() {
    let series: &[(f64, f64, &[f64], &[f64])] = &[
        (0.0, 0.0, &[20.0; 8], &[1.251221e-5, 1.739502e-5, 2.227783e-5]),
        (
            0.0,
            0.0,
            &[5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 100.0],
            &[2.441406e-6, 1.342773e-5, 1.159668e-4, 9.94873e-4, 2.811279e-3, 0.0175769, 0.0],
        ),
        (
            0.0,
            0.0,
            &[300.0; 6],
            &[2.005005e-4, 1.313782e-3, 5.766907e-3, 0.01022003, 0.02803253, 0.04584503],
        ),
        (
            0.12,
            20.0,
            &[100.0, 100.0, 20.0, 20.0, 10.0, 0.0, 0.0, 0.0],
            &[0.230625, 0.24125, 0.141875, 0.1425, 0.129375, 0.115, 0.1108625, 0.1068077],
        ),
    ];
    for (start, old, delays, expected) in series {
        let actual = rfc_series(*start, *old, delays);
        for (actual, expected) in actual.iter().zip(*expected) {
            assert!(close(*actual, *expected), "{actual} instead of {expected}");
        }
    }
    assert!(close(rfc_series(0.0, 0.0, &[20.0; 8])[7], 4.669189e-5));
    assert_eq!(rfc_series(0.9, 0.0, &[500.0; 9])[8], 1.0, "p is a probability");
}

#[test]
fn docsis_s_p_changes_as_in_its_appendix_a() {
    let mut pie = DocsisPie::new(&docsis(), None);
    for expected in [
        2.563477e-5,
        4.516602e-5,
        6.469727e-5,
        8.422852e-5,
        1.037598e-4,
        1.818848e-4,
        2.600098e-4,
        3.381348e-4,
    ] {
        pie.calculate_drop_prob(0.02);
        assert!(close(pie.p, expected), "{} instead of {expected}", pie.p);
    }
    for _ in 0..1000 {
        pie.calculate_drop_prob(0.5);
    }
    assert_eq!(pie.p, 13.6);
    // Backlog over rate: 25 000 bytes at 10 Mbit/s are 20 ms.
    let mut pie = DocsisPie::new(&docsis(), Some(Rate::from_mbit(10)));
    pie.update(Backlog { packets: 17, bytes: 25_000 }, 1);
    assert!(close(pie.p, 2.563477e-5));
    pie.rate_changed(Rate(0));
    pie.update(Backlog { packets: 17, bytes: 25_000 }, 1);
    assert!(close(pie.p, 4.516602e-5), "an outage leaves the rate");
}

// ------------------------------------------------------------------------------ the decisions

/// Linux's law with a constant p of 1/`one_in`, no allowance and a long delay.
fn ready(params: &LinuxPieParams, one_in: u64) -> LinuxPie {
    let mut pie = LinuxPie::new(params, 1514);
    pie.vars.prob = (ONE - 1) / one_in;
    pie.vars.burst = 0;
    pie.vars.delay = ticks(100);
    pie
}

#[test]
fn the_first_packet_that_can_be_hit_and_the_first_that_is_forced() {
    for (one_in, hit, forced) in
        [(1000, 851, 8501), (100, 85, 851), (50, 43, 426), (20, 17, 171), (10, 9, 86)]
    {
        let first = |early| {
            let (mut pie, mut dice) = (ready(&linux(), one_in), dice(Some(early)));
            (1..).find(|_| pie.decide(FULL, 1500, &mut dice) == Decision::Drop)
        };
        assert_eq!((first(true), first(false)), (Some(hit), Some(forced)), "p = 1/{one_in}");
    }
}

#[test]
fn between_min_and_max_a_draw_with_p_decides() {
    let mut hits = 0;
    let mut dice = dice(None);
    for _ in 0..100_000 {
        let mut pie = ready(&linux(), 4);
        pie.vars.accu_prob = (0.9 * MAX) as u64;
        hits += u32::from(pie.decide(FULL, 1500, &mut dice) == Decision::Drop);
        assert!((dice.chance - 0.25).abs() < 1e-9);
    }
    assert!((24_500..25_500).contains(&hits), "{hits}");
}

#[test]
fn linux_drops_nothing_in_a_burst_at_a_short_delay_or_in_a_short_queue() {
    let passes = |change: fn(&mut LinuxPie), backlog| {
        let mut pie = ready(&linux(), 6);
        pie.vars.accu_prob = u64::MAX / 2;
        change(&mut pie);
        pie.decide(backlog, 1500, &mut dice(None)) == Decision::Pass
    };
    assert!(!passes(|_| (), FULL));
    assert!(passes(|pie| pie.vars.burst = 1, FULL));
    // Half the target is 117187 ticks.
    assert!(passes(|pie| pie.vars.delay = 117_186, FULL));
    assert!(!passes(|pie| pie.vars.delay = 117_187, FULL));
    assert!(!passes(|pie| (pie.vars.delay, pie.vars.prob) = (0, (0.2 * MAX) as u64 + 1), FULL));
    assert!(passes(|_| (), Backlog { packets: 2, bytes: 3027 }));
    assert!(!passes(|_| (), Backlog { packets: 2, bytes: 3028 }));
}

#[test]
fn in_byte_mode_small_packets_count_less() {
    let added = |bytemode, size| {
        let mut pie = ready(&LinuxPieParams { bytemode, ..linux() }, 100);
        pie.decide(FULL, size, &mut dice(None));
        pie.vars.accu_prob as f64 / MAX
    };
    assert!((added(true, 757) - 0.005).abs() < 1e-9 && (added(false, 757) - 0.01).abs() < 1e-9);
    assert!((added(true, 1514) - 0.01).abs() < 1e-9);
    // A packet above the MTU, as of offloads, counts as a full one.
    assert!((added(true, 9000) - 0.01).abs() < 1e-9);
}

#[test]
fn a_forced_mark_leaves_accu_prob_and_a_drop_or_a_hit_does_not() {
    let mut pie = ready(&LinuxPieParams { ecn: true, ..linux() }, 10);
    let mut never = dice(Some(false));
    for _ in 1..86 {
        assert_eq!(pie.decide(FULL, 1500, &mut never), Decision::Pass);
    }
    for _ in 0..3 {
        assert_eq!(pie.decide(FULL, 1500, &mut never), Decision::Signal);
        assert_eq!(never.chance, 1.0);
    }
    pie.dropped();
    assert_eq!(pie.decide(FULL, 1500, &mut never), Decision::Pass);
    for _ in 0..8 {
        pie.decide(FULL, 1500, &mut dice(Some(true)));
    }
    assert_eq!(pie.vars.accu_prob, 0, "a hit");
    // Above 10 % Linux drops packets that it could mark.
    let mut pie = ready(&LinuxPieParams { ecn: true, ..linux() }, 9);
    pie.vars.accu_prob = (9.0 * MAX) as u64;
    assert_eq!(pie.decide(FULL, 1500, &mut dice(None)), Decision::Drop);
}

#[test]
fn the_allowance_falls_by_the_time_between_departures_and_comes_back() {
    let mut pie = LinuxPie::new(&linux(), 1514);
    for ms in (0..=149).chain([149, 150]) {
        assert!(pie.vars.burst > 0, "{ms} ms");
        pie.left(Time::ZERO, 1500, FULL, Time(1000 + ms * MS));
    }
    assert_eq!(pie.vars.burst, 0);
    // No congestion: p is 0 and both delays are below half the target.
    (pie.vars.delay, pie.vars.delay_old) = (117_186, 117_186);
    pie.update(FULL, 1);
    assert_eq!(pie.vars.burst, ticks(150));
    assert_eq!(pie.vars.delay, 117_186);
}

#[test]
fn the_delay_is_that_of_the_last_packet_or_zero_if_it_left_nothing() {
    let mut pie = LinuxPie::new(&linux(), 1514);
    pie.left(Time(MS), 1500, FULL, Time(3 * MS));
    // Both times are truncated to ticks first: 46875 - 15625.
    assert_eq!(pie.vars.delay, 31_250);
    pie.left(Time(MS), 1500, Backlog::default(), Time(4 * MS));
    assert_eq!(pie.vars.delay, 0);
}

#[test]
fn the_estimator_measures_over_16_kilobytes() {
    let mut pie = LinuxPie::new(&LinuxPieParams { dq_rate_estimator: true, ..linux() }, 1514);
    let backlog = Backlog { packets: 20, bytes: 16_384 };
    // 1514 bytes every 1.2112 ms are 10 Mbit/s: 0.08 bytes a tick, 20 in units of 2^-8.
    for i in 0..11 {
        pie.left(Time::ZERO, 1514, backlog, Time(i * 1_211_200));
        assert_eq!(
            pie.vars.burst,
            if i < 10 { ticks(150) } else { (150 * MS - 10 * 1_211_200) / 64 }
        );
    }
    pie.vars.prob = 1 << 50;
    pie.update(backlog, 1);
    // The cycle includes the packet that begins it: 16654 bytes in ten gaps, 22 units. 16384 bytes
    // take 190 650 ticks, 12.2 ms.
    assert_eq!(pie.vars.delay, (16_384 << 8) / 22);
    // A cycle does not begin with less queued.
    let mut pie = LinuxPie::new(&LinuxPieParams { dq_rate_estimator: true, ..linux() }, 1514);
    for i in 0..50 {
        pie.left(Time::ZERO, 1514, Backlog { packets: 20, bytes: 16_383 }, Time(i * 1_211_200));
    }
    pie.update(backlog, 1);
    assert_eq!((pie.vars.delay, pie.vars.burst), (0, ticks(150)));
}

#[test]
fn docsis_starts_at_a_third_of_its_buffer_and_stays_active() {
    let mut pie = DocsisPie::new(&DocsisPieParams { limit: 300, ..docsis() }, None);
    (pie.p, pie.delay_old, pie.accu_prob) = (0.5, 0.1, 8.4);
    let no_draw = || dice(Some(false));
    let queued = |packets| Backlog { packets, bytes: u64::from(packets) * 1514 };
    assert_eq!(pie.decide(queued(99), 1024, &mut no_draw()), Decision::Pass);
    assert_eq!((pie.status, pie.accu_prob), (Status::Inactive, 8.4));
    // accu_prob reaches 8.9, so the drop is certain.
    assert_eq!(pie.decide(queued(100), 1024, &mut no_draw()), Decision::Drop);
    assert_eq!((pie.status, pie.burst), (Status::Active, Span::from_millis(142)));
    // During the allowance p is 0. Nine updates of 16 ms end it.
    for _ in 0..9 {
        assert_eq!(pie.decide(queued(99), 1024, &mut no_draw()), Decision::Pass);
        pie.calculate_drop_prob(0.02);
        assert_eq!(pie.p, 0.0);
    }
    pie.calculate_drop_prob(0.02);
    assert!(pie.p > 0.0 && pie.burst == Span::ZERO);
    // Quiet for a second, 63 updates of 16 ms after the one that notices it: inactive.
    while pie.status == Status::Active {
        pie.calculate_drop_prob(0.0);
    }
    for _ in 0..62 {
        pie.calculate_drop_prob(0.0);
        assert_eq!(pie.status, Status::Quiescent);
    }
    pie.calculate_drop_prob(0.0);
    assert_eq!(pie.status, Status::Inactive);
}

#[test]
fn docsis_scales_p_by_1024_bytes_up_to_85_percent() {
    let added = |p, size| {
        let mut pie = DocsisPie::new(&docsis(), None);
        (pie.p, pie.status) = (p, Status::Active);
        pie.decide(FULL, size, &mut dice(None));
        pie.accu_prob
    };
    assert_eq!([added(0.1, 512), added(0.1, 1024), added(0.8, 1514)], [0.05, 0.1, 0.85]);
}

#[test]
fn the_rfc_s_allowance_is_renewed_by_arrivals_without_congestion() {
    let mut pie = RfcPie::new(&rfc(), 1514);
    pie.decide(FULL, &mut dice(None));
    assert_eq!(pie.burst, Span::from_millis(150));
    pie.delay = 0.02;
    pie.update(1);
    // p is above 0, so the allowance is not renewed. It lasts for ten updates.
    for _ in 0..9 {
        assert_eq!(pie.decide(FULL, &mut dice(Some(true))), Decision::Pass);
        pie.update(1);
    }
    assert_eq!(pie.decide(FULL, &mut dice(Some(true))), Decision::Drop);
    // Two full packets pass, so that the link stays busy.
    let two = Backlog { packets: 2, bytes: 3028 };
    assert_eq!(pie.decide(two, &mut dice(Some(true))), Decision::Pass);
    // §5.1: mark while p is below 10 %.
    for (p, decision) in [(0.0999, Decision::Signal), (0.1, Decision::Drop)] {
        let mut pie = RfcPie::new(&RfcPieParams { ecn: true, ..rfc() }, 1514);
        (pie.p, pie.delay_old) = (p, 0.1);
        assert_eq!(pie.decide(FULL, &mut dice(Some(true))), decision);
    }
}

// ---------------------------------------------------------------------------------- the queue

#[test]
fn linux_s_timer_counts_jiffies() {
    // HZ 250: 500 ms are 125 jiffies, which the wheel rounds up to a multiple of 8. 15 ms are 4
    // jiffies, set at each expiry and a jiffy late. So one expiry is at 512 ms, and there were
    // others before.
    let actual = timer(15 * MS);
    assert_eq!((actual.next(), actual.period), (Time(12 * MS), Span::from_millis(20)));
    assert_eq!(timer(16 * MS).period, Span::from_millis(20));
    assert_eq!(timer(16 * MS + 1).period, Span::from_millis(24));
    assert_eq!(timer(0).period, Span::from_millis(4));
    // Timers of 63 jiffies and more are rounded to steps of 8.
    assert_eq!(timer(252 * MS).period, Span::from_millis(256));
    assert_eq!(timer(256 * MS).period, Span::from_millis(288));
}

#[test]
fn an_update_precedes_an_arrival_at_the_same_instant() {
    let mut verdicts = Vec::new();
    let mut q = Pie::new(&PieParams::Rfc(rfc()), context());
    for _ in 0..30 {
        q.enqueue(packet(1514, Ecn::NotEct), Time::ZERO, &mut verdicts);
    }
    q.dequeue(Time(15 * MS - 1), &mut verdicts);
    let p = |q: &Pie<()>, at| q.state(Time(at)).probability.expect("pie has a probability");
    assert_eq!(p(&q, 15 * MS - 1), 0.0);
    // The delay is 15 ms, less 1 ns, at the first update. A departure at that instant is too late
    // for it.
    let first = p(&q, 15 * MS);
    assert!(close(first, 1.25 * 0.015 / 2048.0), "{first}");
    q.dequeue(Time(15 * MS), &mut verdicts);
    assert_eq!(p(&q, 15 * MS), first);
    assert!(p(&q, 30 * MS) != first);
    assert_eq!(p(&q, 15 * MS), first, "reading the state changes nothing");
}

#[test]
fn a_full_queue_drops_arrivals_and_resets_accu_prob() {
    let mut verdicts = Vec::new();
    let params = LinuxPieParams { limit: 3, ..linux() };
    let mut q = Pie::new(&PieParams::Linux(params), context());
    if let Law::Linux(pie) = &mut q.law {
        pie.vars.accu_prob = 5;
    }
    for _ in 0..4 {
        q.enqueue(packet(1514, Ecn::Ect0), Time::ZERO, &mut verdicts);
    }
    assert_eq!(q.backlog().packets, 3);
    assert!(matches!(verdicts[..], [Verdict::Dropped(_, Cause::Limit)]));
    assert!(matches!(&q.law, Law::Linux(pie) if pie.vars.accu_prob == 0));
}

#[test]
fn packets_that_can_not_be_marked_are_dropped() {
    let params = LinuxPieParams { ecn: true, ..linux() };
    let mut q = Pie::new(&PieParams::Linux(params.clone()), context());
    for ecn in [Ecn::Ect0, Ecn::NotEct, Ecn::Ect1, Ecn::Ce] {
        let mut verdicts = Vec::new();
        for _ in 0..10 {
            q.queue.push(packet(1514, ecn), Time::ZERO);
        }
        let mut pie = ready(&params, 20);
        pie.vars.accu_prob = (9.0 * MAX) as u64;
        q.law = Law::Linux(pie);
        let before = q.backlog().packets;
        q.enqueue(packet(1514, ecn), Time(1), &mut verdicts);
        let passed = q.backlog().packets > before;
        match ecn {
            Ecn::Ect0 | Ecn::Ect1 => {
                assert!(passed && matches!(verdicts[..], [Verdict::Marked { .. }]))
            }
            Ecn::NotEct => {
                assert!(!passed && matches!(verdicts[..], [Verdict::Dropped(_, Cause::Early)]))
            }
            Ecn::Ce => assert!(passed && verdicts.is_empty(), "the packet already carries CE"),
        }
    }
}
