use super::linux::{Pi, scaled};
use super::*;
use crate::{Cause, Ecn, ReplayHint, ReplayHints};
use units::Rng;

const MS: u64 = 1_000_000;
const SECOND: Time = Time(1_000_000_000);
const LATER: Time = Time(2_000_000_000);
/// The time of a full packet at 10 Mbit/s.
const GAP: Span = Span(1_211_200);
const FULL: u32 = 1514;

fn linux() -> LinuxDualPi2Params {
    LinuxDualPi2Params {
        limit: 10_000,
        memlimit: None,
        coupling_factor: 2,
        step_thresh_ns: MS,
        step_thresh_packets: None,
        min_qlen_step: 0,
        classic_protection: 10,
        target_ns: 15 * MS,
        tupdate_ns: 16 * MS,
        alpha: 41,
        beta: 819,
        drop_on_overload: true,
        drop_enqueue: false,
        any_ect: false,
    }
}

fn rfc() -> RfcDualPi2Params {
    RfcDualPi2Params {
        limit: None,
        coupling_factor: 2,
        min_th_ns: 800_000,
        range_ns: 400_000,
        min_qlen_ramp: 1,
        classic_protection: 6.25,
        target_ns: 15 * MS,
        tupdate_ns: 15 * MS,
        alpha: 0.15,
        beta: 3.0,
    }
}

fn docsis() -> DocsisDualPi2Params {
    DocsisDualPi2Params {
        limit: None,
        coupling_factor: 2,
        max_th_ns: MS,
        target_ns: 10 * MS,
        tupdate_ns: 16 * MS,
        alpha: 0.25,
        beta: 2.5,
        queue_protection: true,
    }
}

fn context(mbit: u64) -> Context {
    let rng = Rng::new(1, "dualpi2");
    let rate = Some(Rate::from_mbit(mbit));
    Context { rate, mtu: FULL, header_bytes: 14, root: true, rng }
}

fn packet(ecn: Ecn, body: u32) -> Packet<u32> {
    Packet { enqueued: Time::ZERO, flow: 0, size: FULL, ds: ecn.into(), body }
}

/// A queue and its output.
struct Played<Q> {
    queue: Q,
    verdicts: Vec<Verdict<u32>>,
    arrivals: u32,
}

impl<Q> Played<Q> {
    fn new(queue: Q) -> Self {
        Played { queue, verdicts: Vec::new(), arrivals: 0 }
    }

    fn dropped(&self) -> Vec<(u32, Cause)> {
        let dropped = |verdict: &Verdict<u32>| match verdict {
            Verdict::Dropped(packet, cause) => Some((packet.body, *cause)),
            Verdict::Marked { .. } => None,
        };
        self.verdicts.iter().filter_map(dropped).collect()
    }

    fn marks(&self, cause: Cause) -> usize {
        let of = |verdict: &&Verdict<u32>| matches!(verdict, Verdict::Marked { cause: c, .. } if *c == cause);
        self.verdicts.iter().filter(of).count()
    }
}

impl Played<LinuxDualPi2<u32>> {
    fn linux(params: &LinuxDualPi2Params) -> Self {
        Played::new(LinuxDualPi2::new(params, context(10)))
    }

    /// Packets of a queue that all arrive at once, as through a filter: the ECN field does not
    /// select the queue.
    fn arrive(&mut self, side: Side, ecn: Ecn, many: u32, at: Time) {
        for _ in 0..many {
            self.queue.enqueue_to(side, packet(ecn, self.arrivals), at, &mut self.verdicts);
            self.arrivals += 1;
        }
    }

    fn leave(&mut self, at: Time) -> Option<(u32, Ecn)> {
        let packet = self.queue.dequeue(at, &mut self.verdicts)?;
        Some((packet.body, packet.ds.ecn()))
    }

    /// Sends `many` packets, each after the transmission time of the last.
    fn leave_in_turn(&mut self, many: u64, from: Time) -> Vec<(u32, Ecn)> {
        (0..many).filter_map(|n| self.leave(from + GAP * n)).collect()
    }
}

fn ce(served: &[(u32, Ecn)]) -> Vec<u32> {
    served.iter().filter(|(_, ecn)| *ecn == Ecn::Ce).map(|(body, _)| *body).collect()
}

// ------------------------------------------------------------------------------ linux: the controller

/// p after each update, given the delays in ms.
fn updates(params: &LinuxDualPi2Params, delays: &[u64]) -> Vec<u32> {
    let mut controller = Pi::new(params);
    let step = |delay: &u64| {
        controller.update(Span(delay * MS));
        controller.p
    };
    delays.iter().map(step).collect()
}

#[test]
fn gains_are_those_of_the_kernel() {
    assert_eq!((scaled(41), scaled(819)), (44, 879));
}

#[test]
fn p_follows_the_delay_and_its_growth() {
    let delays = [0, 5, 10, 15, 20, 25, 30, 30, 30, 20, 15, 15, 10, 5, 0, 0];
    let expected = [
        0,
        61_796_875,
        127_031_250,
        195_703_125,
        267_812_500,
        343_359_375,
        422_343_750,
        432_656_250,
        442_968_750,
        309_062_500,
        240_390_625,
        240_390_625,
        168_281_250,
        92_734_375,
        13_750_000,
        3_437_500,
    ];
    assert_eq!(updates(&linux(), &delays), expected);
}

#[test]
fn a_standing_queue_raises_p_without_bound() {
    let p = updates(&linux(), &[30; 50]);
    assert_eq!((p[0], p[1] - p[0], p[49]), (422_343_750, 10_312_500, 927_656_250));
    let p = updates(&linux(), &[100; 60]);
    assert_eq!((p[0], p[1] - p[0]), (1_431_875_000, 58_437_500));
    // k p exceeds 1 with the 14th update after the first, and p is 1 with the 50th.
    assert_eq!(p.iter().position(|p| 2 * u64::from(*p) > u64::from(u32::MAX)), Some(13));
    assert_eq!(p.iter().position(|p| *p == u32::MAX), Some(49));
    assert_eq!(p[59], u32::MAX);
}

#[test]
fn a_fall_of_the_delay_by_more_than_312_ms_loses_a_turn_of_32_bits() {
    let mut controller = Pi::new(&linux());
    (0..50).for_each(|_| controller.update(Span(400 * MS)));
    assert_eq!(controller.p, u32::MAX);
    // (15 ms · 44 + 400 ms · 879) / 64 = 5 504 062 500 = 2^32 + 1 209 095 204.
    controller.update(Span::ZERO);
    assert_eq!(controller.p, u32::MAX - 1_209_095_204);
}

#[test]
fn without_drops_on_overload_p_stays_below_1_over_k() {
    let params = LinuxDualPi2Params { drop_on_overload: false, coupling_factor: 3, ..linux() };
    assert_eq!(updates(&params, &[400; 60])[59], u32::MAX / 3);
}

#[test]
fn p_is_updated_by_the_older_head_at_the_time_of_the_timer() {
    let mut played = Played::linux(&linux());
    // A packet of each queue waits, from 10 and from 12 ms on, until after the third update.
    played.arrive(Side::C, Ecn::NotEct, 1, Time(10 * MS));
    played.arrive(Side::L, Ecn::Ect1, 1, Time(12 * MS));
    let state = played.queue.state(Time(50 * MS));
    let expected = updates(&linux(), &[6, 22, 38])[2];
    assert_eq!(state.probability, Some(f64::from(expected) / 4_294_967_296.0));
    assert_eq!((state.classic_delay, state.l4s_delay), (Some(4e7), Some(3.8e7)));
    played.leave(Time(50 * MS));
    assert_eq!(played.queue.pi.controller.p, expected);
}

#[test]
fn updates_of_an_empty_queue_in_one_step_equal_single_ones() {
    for times in [1, 2, 3, 40, 300] {
        let mut played = Played::linux(&linux());
        played.arrive(Side::C, Ecn::NotEct, 1, Time(MS));
        played.leave(Time(592 * MS));
        let mut each = played.queue.pi.controller;
        (0..times).for_each(|_| each.update(Span::ZERO));
        let state = played.queue.state(Time((592 + 16 * times) * MS));
        assert_eq!(state.probability, Some(f64::from(each.p) / 4_294_967_296.0), "{times}");
        assert_eq!(each.p == 0, times == 300, "{times}");
    }
}

// --------------------------------------------------------------------------------- linux: the queues

#[test]
fn the_step_marks_packets_that_waited_longer_than_a_millisecond() {
    let mut played = Played::linux(&linux());
    played.arrive(Side::L, Ecn::Ect1, 5, SECOND);
    let served = played.leave_in_turn(5, SECOND);
    assert_eq!((served.len(), ce(&served)), (5, vec![1, 2, 3, 4]));
    assert_eq!(played.marks(Cause::CeThreshold), 4);
    // A packet that waited exactly as long is not marked.
    played.arrive(Side::L, Ecn::Ect1, 2, LATER);
    played.leave(LATER);
    assert_eq!(played.leave(LATER + Span(MS)), Some((6, Ecn::Ect1)));
}

#[test]
fn the_step_does_not_mark_a_packet_that_arrived_at_an_empty_queue() {
    let mut played = Played::linux(&LinuxDualPi2Params { min_qlen_step: 2, ..linux() });
    played.arrive(Side::L, Ecn::Ect1, 5, SECOND);
    assert_eq!(ce(&played.leave_in_turn(5, SECOND)), [2, 3, 4]);
}

#[test]
fn a_step_in_packets_counts_the_packets_behind_the_departing_one() {
    let params = LinuxDualPi2Params { step_thresh_packets: Some(2), ..linux() };
    let mut played = Played::linux(&params);
    played.arrive(Side::L, Ecn::Ect1, 5, SECOND);
    assert_eq!(ce(&played.leave_in_turn(5, SECOND)), [0, 1]);
}

#[test]
fn the_step_drops_packets_that_can_not_be_marked() {
    let mut played = Played::linux(&linux());
    played.arrive(Side::L, Ecn::NotEct, 5, SECOND);
    assert_eq!(played.leave(SECOND), Some((0, Ecn::NotEct)));
    assert_eq!(played.leave(SECOND + GAP), None);
    assert_eq!(played.dropped(), [1, 2, 3, 4].map(|body| (body, Cause::CeThreshold)));
}

#[test]
fn the_classic_queue_has_no_step() {
    let mut played = Played::linux(&linux());
    played.arrive(Side::C, Ecn::Ect0, 5, SECOND);
    let served = played.leave_in_turn(5, SECOND);
    assert_eq!((served.len(), ce(&served)), (5, vec![]));
}

#[test]
fn the_limit_refuses_arriving_packets() {
    let mut played = Played::linux(&LinuxDualPi2Params { limit: 3, ..linux() });
    played.arrive(Side::L, Ecn::Ect1, 2, SECOND);
    played.arrive(Side::C, Ecn::NotEct, 3, SECOND);
    assert_eq!(played.dropped(), [(3, Cause::Limit), (4, Cause::Limit)]);
    // A full datagram takes more memory than its bytes: there is room for three of them.
    let datagram = units::memory::datagram(u64::from(FULL) - 14);
    let memlimit = Some(3 * datagram + datagram / 2);
    let mut played = Played::linux(&LinuxDualPi2Params { memlimit, ..linux() });
    played.arrive(Side::C, Ecn::NotEct, 4, SECOND);
    assert_eq!(played.dropped(), [(3, Cause::Overmemory)]);
    played.leave(SECOND);
    played.arrive(Side::C, Ecn::NotEct, 1, SECOND);
    assert_eq!(played.dropped().len(), 1);
}

#[test]
fn the_ecn_field_decides_the_queue() {
    let sides = |any_ect| {
        let queue =
            LinuxDualPi2::<u32>::new(&LinuxDualPi2Params { any_ect, ..linux() }, context(10));
        let mut played = Played::new(queue);
        [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce].map(|ecn| {
            let before = played.queue.queues().l.backlog().packets;
            played.queue.enqueue(packet(ecn, 0), SECOND, &mut played.verdicts);
            played.queue.queues().l.backlog().packets > before
        })
    };
    assert_eq!(sides(false), [false, false, true, true]);
    assert_eq!(sides(true), [false, true, true, true]);
}

#[test]
fn while_both_queues_wait_l_sends_nine_packets_of_ten() {
    let order = |classic_protection| {
        let params = LinuxDualPi2Params { classic_protection, step_thresh_ns: u64::MAX, ..linux() };
        let mut played = Played::linux(&params);
        played.arrive(Side::L, Ecn::Ect1, 40, SECOND);
        played.arrive(Side::C, Ecn::NotEct, 40, SECOND);
        let side = |n: u64| {
            played
                .leave(SECOND + Span(n))
                .map_or('-', |(body, _)| if body < 40 { 'L' } else { 'C' })
        };
        (0..20).map(side).collect::<String>()
    };
    assert_eq!(order(10), "LLLLLLLLLCLLLLLLLLLC");
    assert_eq!(order(50), "LCLCLCLCLCLCLCLCLCLC");
}

#[test]
fn the_credit_moves_with_packets_that_leave_and_the_other_queue_waiting_for() {
    let mut played = Played::linux(&linux());
    assert_eq!(played.queue.turns.credit, -121_120);
    played.arrive(Side::L, Ecn::Ect1, 2, SECOND);
    played.arrive(Side::C, Ecn::NotEct, 1, SECOND);
    let mut credit = |at: Span| {
        played.leave(SECOND + at);
        played.queue.turns.credit
    };
    // L sends twice while C waits, then C while nothing waits. An empty queue resets the credit.
    assert_eq!(
        [Span(0), Span(1), Span(2), Span(3)].map(&mut credit),
        [-105_980, -90_840, -90_840, -121_120]
    );
}

#[test]
fn a_packet_dropped_at_dequeue_moves_no_credit() {
    let mut played = Played::linux(&linux());
    played.arrive(Side::L, Ecn::NotEct, 5, SECOND);
    played.arrive(Side::C, Ecn::NotEct, 2, SECOND);
    assert_eq!(played.leave(SECOND + GAP), Some((5, Ecn::NotEct)));
    assert_eq!((played.dropped().len(), played.queue.turns.credit), (5, -121_120));
}

// ------------------------------------------------------------------------------ linux: what is drawn

/// The shares of packets that are dropped and marked at this p, with a backlog of 40.
fn signalled(params: &LinuxDualPi2Params, side: Side, ecn: Ecn, p: f64) -> (f64, f64) {
    const MANY: u32 = 20_000;
    let mut played = Played::linux(params);
    played.queue.pi.controller.p = (p * 4_294_967_295.0) as u32;
    played.arrive(side, ecn, 40, Time(1));
    for n in 0..MANY {
        let now = Time(2 + u64::from(n) * 100);
        played.arrive(side, ecn, 1, now);
        while played.queue.queues().backlog().packets > 40 {
            played.leave(now);
        }
    }
    let share = |many: usize| many as f64 / f64::from(MANY);
    (share(played.dropped().len()), share(played.marks(Cause::Early)))
}

fn near(actual: (f64, f64), expected: (f64, f64)) {
    // Four standard deviations of 20 000 draws are 0.014.
    let apart = (actual.0 - expected.0).abs().max((actual.1 - expected.1).abs());
    assert!(apart < 0.015, "{actual:?}, expected {expected:?}");
}

#[test]
fn c_is_signalled_with_the_square_of_p_and_l_with_k_p() {
    let steady =
        LinuxDualPi2Params { step_thresh_ns: u64::MAX, tupdate_ns: u64::MAX / 2, ..linux() };
    near(signalled(&steady, Side::C, Ecn::NotEct, 0.3), (0.09, 0.0));
    near(signalled(&steady, Side::C, Ecn::Ect0, 0.3), (0.0, 0.09));
    near(signalled(&steady, Side::L, Ecn::Ect1, 0.3), (0.0, 0.6));
    near(signalled(&steady, Side::L, Ecn::NotEct, 0.3), (0.6, 0.0));
    let on_arrival = LinuxDualPi2Params { drop_enqueue: true, ..steady };
    near(signalled(&on_arrival, Side::C, Ecn::NotEct, 0.3), (0.09, 0.0));
    near(signalled(&on_arrival, Side::L, Ecn::Ect1, 0.3), (0.0, 0.6));
}

#[test]
fn under_overload_ecn_capable_packets_are_dropped_too() {
    let steady =
        LinuxDualPi2Params { step_thresh_ns: u64::MAX, tupdate_ns: u64::MAX / 2, ..linux() };
    near(signalled(&steady, Side::C, Ecn::Ect0, 0.6), (0.36, 0.0));
    near(signalled(&steady, Side::L, Ecn::Ect1, 0.6), (0.36, 0.64));
    // With `overflow` p is limited to 1/2.
    let overflow = LinuxDualPi2Params { drop_on_overload: false, ..steady };
    near(signalled(&overflow, Side::L, Ecn::Ect1, 0.5), (0.0, 1.0));
    near(signalled(&overflow, Side::C, Ecn::Ect0, 0.5), (0.0, 0.25));
}

#[test]
fn below_two_full_packets_nothing_is_drawn() {
    let mut played = Played::linux(&linux());
    played.queue.pi.controller.p = u32::MAX;
    played.arrive(Side::C, Ecn::NotEct, 3, Time(1));
    // Two full packets behind the leaving one are enough for a draw, one is not.
    assert_eq!(played.leave(Time(2)), Some((1, Ecn::NotEct)));
    assert_eq!(played.dropped(), [(0, Cause::Early)]);
    assert_eq!(played.leave(Time(3)), Some((2, Ecn::NotEct)));
}

// ------------------------------------------------------------------------------------- rfc and docsis

#[test]
fn recur_signals_as_often_as_the_probability_and_evenly_spaced() {
    let mut recur = Recur::default();
    let decided = (0..12).map(|_| recur.decides(0.25)).collect::<Vec<_>>();
    // A decision is due above 1, not at it.
    let due: Vec<usize> = decided.iter().enumerate().filter(|(_, d)| **d).map(|(n, _)| n).collect();
    assert_eq!(due, [4, 8]);
}

fn of(params: DualPi2Params, mbit: u64) -> Played<DualPi2<u32>> {
    Played::new(DualPi2::new(&params, context(mbit)))
}

impl Played<DualPi2<u32>> {
    fn come(&mut self, ecn: Ecn, many: u32, at: Time) {
        for _ in 0..many {
            self.queue.enqueue(packet(ecn, self.arrivals), at, &mut self.verdicts);
            self.arrivals += 1;
        }
    }

    fn go(&mut self, at: Time) -> Option<(u32, Ecn)> {
        let packet = self.queue.dequeue(at, &mut self.verdicts)?;
        Some((packet.body, packet.ds.ecn()))
    }
}

#[test]
fn the_rfc_s_ramp_marks_more_of_what_waits_longer_and_not_the_last_of_a_queue() {
    let marked = |waited: u64, behind: u32| {
        let mut played = of(DualPi2Params::Rfc(rfc()), 100);
        let mut share = 0;
        for round in 1..=100u64 {
            let at = Time(round * 10_000);
            played.come(Ecn::Ect1, 1 + behind, at);
            let first = played.go(at + Span(waited)).expect("the packet is queued");
            share += u32::from(first.1 == Ecn::Ce);
            while played.go(at + Span(1)).is_some() {}
        }
        share
    };
    assert_eq!([800, 900, 1000, 1100, 1200].map(|us| marked(us * 1000, 2)), [0, 24, 49, 74, 99]);
    // One packet behind it does not count as a queue.
    assert_eq!(marked(5 * MS, 1), 0);
}

#[test]
fn the_rfc_refuses_where_a_full_packet_may_not_fit() {
    let mut played = of(DualPi2Params::Rfc(RfcDualPi2Params { limit: Some(3), ..rfc() }), 10);
    played.come(Ecn::NotEct, 4, SECOND);
    assert_eq!(played.dropped(), [(3, Cause::Limit)]);
    // Even for a small packet.
    let mut played = of(DualPi2Params::Rfc(RfcDualPi2Params { limit: Some(3), ..rfc() }), 10);
    played.come(Ecn::NotEct, 2, SECOND);
    for body in [8, 9] {
        let small = Packet { size: 100, ..packet(Ecn::NotEct, body) };
        played.queue.enqueue(small, SECOND, &mut played.verdicts);
    }
    assert_eq!(played.dropped(), [(9, Cause::Limit)]);
    // 250 ms of 10 Mbit/s are 312 500 bytes: 206 packets of 1514.
    let mut played = of(DualPi2Params::Rfc(rfc()), 10);
    played.come(Ecn::NotEct, 300, SECOND);
    assert_eq!(played.dropped().len(), 300 - 206);
}

#[test]
fn the_rfc_drops_and_marks_evenly_where_linux_draws() {
    // A standing queue of C: p' does not settle, but drops follow the sum of p'^2.
    let run = |params: DualPi2Params| {
        let mut played = of(params, 10);
        for n in 0..4000u64 {
            let now = Time(n * GAP.0);
            played.come(Ecn::NotEct, if n < 30 { 2 } else { 1 }, now);
            played.go(now);
        }
        let at: Vec<u32> = played.dropped().iter().map(|(body, _)| *body).collect();
        let gaps: Vec<u32> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let (least, most) = (gaps.iter().min().copied(), gaps.iter().max().copied());
        (at.len(), least.unwrap_or(0), most.unwrap_or(0))
    };
    let (dropped, least, _) = run(DualPi2Params::Rfc(rfc()));
    assert!(dropped > 5 && least > 3, "{dropped} {least}");
    let (drawn, close, _) = run(DualPi2Params::Linux(linux()));
    assert!(drawn > 5 && close < least, "{drawn} {close}");
}

#[test]
fn under_overload_the_rfc_drops_in_l_and_marks_the_rest() {
    let mut played = of(DualPi2Params::Rfc(RfcDualPi2Params { limit: Some(1000), ..rfc() }), 10);
    played.come(Ecn::Ect1, 900, Time(1));
    // No packet has left for half a second: p' is above 1/2.
    let mut served = Vec::new();
    let now = Time(500 * MS);
    while let Some(packet) = played.go(now) {
        served.push(packet);
    }
    assert!(served.iter().all(|(_, ecn)| *ecn == Ecn::Ce));
    assert_eq!(played.dropped().len() + served.len(), 900);
    assert!(played.dropped().len() > 225, "{}", played.dropped().len());
}

#[test]
fn from_p_c_of_a_quarter_the_rfc_drops_in_c_whatever_the_ecn_field() {
    let fell = |wait: u64| {
        let mut played =
            of(DualPi2Params::Rfc(RfcDualPi2Params { limit: Some(1000), ..rfc() }), 10);
        played.come(Ecn::Ect0, 900, Time(1));
        while played.go(Time(wait * MS)).is_some() {}
        (played.dropped().len(), played.marks(Cause::Early))
    };
    // p' is 0.19 if no packet left for 60 ms, and 1 after half a second.
    let (dropped, marked) = fell(60);
    assert!(dropped == 0 && marked > 10, "{dropped} {marked}");
    let (dropped, marked) = fell(500);
    assert!(dropped > 225 && marked == 0, "{dropped} {marked}");
}

#[test]
fn the_rfc_s_overload_begins_where_k_p_is_1_and_there_c_marks_no_more() {
    // With k = 1 both bounds are 1, and p' is 1 once no packet has left for ten seconds.
    let params = RfcDualPi2Params { limit: Some(1000), coupling_factor: 1, ..rfc() };
    for ecn in [Ecn::Ect0, Ecn::Ect1] {
        let mut played = of(DualPi2Params::Rfc(params.clone()), 10);
        played.come(ecn, 900, Time(1));
        while played.go(Time(10_000 * MS)).is_some() {}
        assert_eq!(
            played.dropped().len(),
            899,
            "{ecn:?}: all but the first, whose sum of 1 is not above 1"
        );
    }
}

#[test]
fn an_update_of_the_rfc_is_by_the_older_queue() {
    let p = |side: Ecn| {
        let mut played = of(DualPi2Params::Rfc(rfc()), 10);
        played.come(side, 1, Time(5 * MS));
        played.queue.state(Time(30 * MS)).probability
    };
    // 0.15 (10 - 15 ms) + 3 · 10 ms, and 0.15 (25 - 15 ms) + 3 · 15 ms more.
    let expected = 0.02925 + 0.0465;
    for side in [Ecn::NotEct, Ecn::Ect1] {
        assert!((p(side).unwrap() - expected).abs() < 1e-9, "{:?}", p(side));
    }
}

#[test]
fn docsis_s_ramp_begins_at_two_frames_on_a_slow_link() {
    let thresholds = |mbit| {
        let (begins, ends) = DocsisDualPi2::<u32>::new(&docsis(), context(mbit)).thresholds();
        [begins, ends].map(|th| th.0 / 1000)
    };
    assert_eq!(thresholds(5), [6_400, 6_924]);
    assert_eq!(thresholds(10), [3_200, 3_724]);
    assert_eq!(thresholds(25), [1_280, 1_804]);
    assert_eq!(thresholds(50), [640, 1_164]);
    assert_eq!(thresholds(100), [475, 1_000]);
}

#[test]
fn docsis_marks_by_the_backlog_that_a_packet_finds() {
    let free = DocsisDualPi2Params { queue_protection: false, ..docsis() };
    let mut played = of(DualPi2Params::Docsis(free), 100);
    // At 100 Mbit/s a full packet takes 121 µs. The fourth finds 484 µs, on the ramp from 475.7 to
    // 1000; the ninth finds 1090 µs.
    played.come(Ecn::Ect1, 12, SECOND);
    let served: Vec<_> = (0..12).filter_map(|_| played.go(SECOND)).collect();
    let marked = ce(&served);
    assert!(marked.iter().all(|body| *body >= 3));
    assert_eq!(marked.iter().filter(|body| **body >= 8).count(), 4);
    assert!(marked.len() < 9);
}

#[test]
fn docsis_protects_l_from_a_flow_that_fills_it() {
    let sent = |queue_protection| {
        let params = DocsisDualPi2Params { queue_protection, ..docsis() };
        let mut played = of(DualPi2Params::Docsis(params), 100);
        played.come(Ecn::Ect1, 60, SECOND);
        let Law::Docsis(law) = &played.queue.0 else { unreachable!("the law is docsis") };
        let (l, c) = (law.queues().l.backlog().packets, law.queues().c.backlog().packets);
        (l, c, played.dropped().len())
    };
    // The ninth packet raises L's delay to 1.09 ms. The flow's score is 10 ms by then, so the rest
    // is sent to C.
    assert_eq!(sent(true), (8, 52, 0));
    assert_eq!(sent(false), (60, 0, 0));
}

#[test]
fn docsis_couples_l_to_the_root_of_c_s_probability() {
    // C's standing queue is above its target, so DOCSIS-PIE drops, and L is marked though it is
    // short.
    let mut played = of(DualPi2Params::Docsis(docsis()), 10);
    let (mut marked, mut seen) = (0, 0);
    for n in 0..20_000u64 {
        let now = Time(n * GAP.0);
        played.come(Ecn::NotEct, if n < 40 { 2 } else { 1 }, now);
        if n % 20 == 0 {
            played.come(Ecn::Ect1, 1, now);
        }
        if let Some((_, ecn)) = played.go(now)
            && ecn != Ecn::NotEct
        {
            seen += 1;
            marked += u32::from(ecn == Ecn::Ce);
        }
    }
    let early = played.dropped().iter().filter(|(_, cause)| *cause == Cause::Early).count();
    let (p_c, p_l) = (early as f64 / 21_000.0, f64::from(marked) / f64::from(seen));
    assert!(early > 100 && p_l > 0.05, "{p_c} {p_l}");
    assert!((p_l / (2.0 * p_c.sqrt()) - 1.0).abs() < 0.3, "{p_c} {p_l}");
}

#[test]
fn docsis_computes_c_s_delay_from_the_rate_that_l_does_not_use() {
    let mut played = of(DualPi2Params::Docsis(docsis()), 10);
    played.come(Ecn::NotEct, 10, Time(1));
    let Law::Docsis(law) = &played.queue.0 else { unreachable!("the law is docsis") };
    // 15 140 bytes are queued. In an update's 16 ms the link carries 20 000 bytes, of which L sends
    // none, half or all. L's rate counts up to its share, 230/256.
    for (l_sent, mbit) in [(0, 10.0), (10_000, 5.0), (20_000, 260.0 / 256.0)] {
        let expected = 8.0 * 15_140.0 / (mbit * 1e6);
        let actual = law.c_delay(l_sent);
        assert!((actual - expected).abs() < 1e-9, "{l_sent}: {actual}, not {expected}");
    }
}

/// A docsis queue on a link of `bps`, without queue protection.
fn docsis_at(bps: u64, params: DocsisDualPi2Params) -> Played<DualPi2<u32>> {
    let params = DocsisDualPi2Params { queue_protection: false, ..params };
    let context = Context { rate: Some(Rate(bps)), ..context(1) };
    Played::new(DualPi2::new(&DualPi2Params::Docsis(params), context))
}

fn law_of(played: &Played<DualPi2<u32>>) -> &DocsisDualPi2<u32> {
    let Law::Docsis(law) = &played.queue.0 else { unreachable!("the law is docsis") };
    law
}

#[test]
fn docsis_s_ramp_ends_at_65_5_ms_at_most() {
    let thresholds = |bps, max_th_ms| {
        let params = DocsisDualPi2Params { max_th_ns: max_th_ms * MS, ..docsis() };
        law_of(&docsis_at(bps, params)).thresholds()
    };
    // Two frames of 2000 bytes take 64 ms, or 320 ms.
    assert_eq!(thresholds(500_000, 1), (Span(64 * MS), Span(64 * MS + (1 << 19))));
    let most = Span(65_535_000);
    assert_eq!(thresholds(100_000, 1), (most, most));
    assert_eq!(thresholds(100_000_000, 100), (most, most));
}

#[test]
fn docsis_keeps_the_former_rate_during_an_outage() {
    let mut played = docsis_at(10_000_000, docsis());
    let mut begins = |bps| {
        played.queue.rate_changed(Rate(bps));
        law_of(&played).thresholds().0.0 / 1000
    };
    assert_eq!([0, 5_000_000, 0].map(&mut begins), [3_200, 6_400, 6_400]);
}

#[test]
fn docsis_has_room_for_two_full_packets_in_c_and_eight_in_l_however_slow_the_link() {
    let accepted = |bps, ecn| {
        let mut played = docsis_at(bps, docsis());
        played.come(ecn, 200, SECOND);
        200 - played.dropped().len()
    };
    assert_eq!([Ecn::NotEct, Ecn::Ect1].map(|ecn| accepted(100_000, ecn)), [2, 8]);
    // The bytes of 100 ms and of 10 ms at 20 Mbit/s.
    assert_eq!([Ecn::NotEct, Ecn::Ect1].map(|ecn| accepted(20_000_000, ecn)), [165, 16]);
}

#[test]
fn docsis_s_l_refuses_where_a_full_packet_may_not_fit_and_draws_all_the_same() {
    // 82 full packets are 124 148 of 125 000 bytes. They take 9.93 ms, on a ramp from 9.776 to
    // 10.3. The 81st adds 0.07 to the sum that is drawn from, the 82nd 0.30, and each refused
    // packet 0.53.
    let params = DocsisDualPi2Params { max_th_ns: 10_300_000, ..docsis() };
    let marked = |refused: u32| {
        let mut played = docsis_at(100_000_000, params.clone());
        played.come(Ecn::Ect1, 82 + refused, SECOND);
        assert_eq!(played.dropped().len(), refused as usize);
        played.go(SECOND);
        played.come(Ecn::Ect1, 1, SECOND);
        played.marks(Cause::CeThreshold)
    };
    assert_eq!([0, 1].map(marked), [0, 1]);
    let mut played = docsis_at(100_000_000, params.clone());
    played.come(Ecn::Ect1, 82, SECOND);
    let small = Packet { size: 100, ..packet(Ecn::Ect1, 99) };
    played.queue.enqueue(small, SECOND, &mut played.verdicts);
    assert_eq!(played.dropped(), [(99, Cause::Limit)]);
}

#[test]
fn docsis_counts_only_l_s_bytes_of_the_last_interval() {
    // C is empty at the first update, so the packets that L sent before do not matter.
    let p_c = |l_sends: u32| {
        let mut played = docsis_at(10_000_000, docsis());
        played.come(Ecn::Ect1, l_sends, Time(MS));
        while played.go(Time(2 * MS)).is_some() {}
        played.come(Ecn::NotEct, 20, Time(17 * MS));
        played.queue.state(Time(33 * MS)).probability
    };
    assert_eq!(p_c(6), p_c(0));
    assert!(p_c(0) > Some(0.0));
    // C waits at both updates, and L sent before the first. One call makes both updates at once.
    let run = |looks: bool| {
        let params = DocsisDualPi2Params { limit: Some(20), ..docsis() };
        let mut played = docsis_at(10_000_000, params);
        played.come(Ecn::NotEct, 20, Time(MS));
        played.come(Ecn::Ect1, 6, Time(MS));
        let left = (0..6).filter_map(|_| played.go(Time(2 * MS)));
        assert!(left.filter(|(_, ecn)| *ecn != Ecn::NotEct).count() == 6, "L's turns");
        if looks {
            // The packet is refused, but the update is made.
            played.come(Ecn::NotEct, 1, Time(17 * MS));
            assert_eq!(played.dropped().len(), 1);
        }
        played.queue.state(Time(33 * MS)).probability
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn a_drop_at_docsis_s_limit_of_c_resets_its_draws() {
    let mut played = docsis_at(10_000_000, DocsisDualPi2Params { limit: Some(20), ..docsis() });
    played.come(Ecn::NotEct, 19, Time(MS));
    // p is above 0 by then, and each arrival adds to the sum that the next ones are drawn from.
    played.come(Ecn::NotEct, 1, Time(40 * MS));
    let mut pie = law_of(&played).pie.clone();
    let before = pie.clone();
    pie.dropped();
    played.come(Ecn::NotEct, 1, Time(40 * MS));
    assert_eq!(played.dropped(), [(20, Cause::Limit)]);
    assert!(law_of(&played).pie == pie && pie != before);
}

/// A body from a recording, with the recorded verdict.
#[derive(Clone, Copy, Debug)]
struct Hinted(ReplayHint);

impl Body for Hinted {}

impl ReplayHints for Hinted {
    fn replay_hint(&self) -> Option<ReplayHint> {
        Some(self.0)
    }
}

#[test]
fn the_draw_for_a_packet_that_arrived_marked_is_not_observed() {
    let chance = |ecn: Ecn| {
        let mut queue = LinuxDualPi2::<Hinted>::new(&linux(), context(10));
        let mut verdicts = Vec::new();
        for _ in 0..4 {
            let Packet { enqueued, flow, size, ds, .. } = packet(ecn, 0);
            let body = Hinted(ReplayHint::Marked);
            queue.enqueue(Packet { enqueued, flow, size, ds, body }, SECOND, &mut verdicts);
        }
        queue.pi.controller.p = u32::MAX / 4;
        queue.dequeue(SECOND, &mut verdicts).expect("the packet is queued");
        queue.replay_draws().decided[0].chance
    };
    assert!((chance(Ecn::Ect1) - 0.5).abs() < 1e-6, "{}", chance(Ecn::Ect1));
    assert!(chance(Ecn::Ce).is_nan());
}
