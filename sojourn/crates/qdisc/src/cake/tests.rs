//! cake compared with numbers that were computed independently from Linux's integers.

use super::*;
use crate::ReplayHints;
use crate::slab::NONE;
use units::Rate;

const MS: u64 = 1_000_000;
const MTU: u32 = 1514;

pub(super) fn params() -> CakeParams {
    CakeParams {
        bandwidth: Some(10_000_000),
        rtt_ns: 100 * MS,
        memlimit: None,
        tins: TinMode::Besteffort,
        isolation: Isolation::Flows,
        wash: false,
        ingress: false,
        raw: true,
        overhead: 0,
        mpu: 0,
        cells: CakeCells::Noatm,
        acks: AckFilterMode::NoAckFilter,
        sync_ns: 0,
    }
}

/// A body with hosts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sent {
    pub(super) number: u32,
    hosts: [u32; 2],
}

impl ReplayHints for Sent {}

impl Body for Sent {
    fn hosts(&self, _flow: u32) -> [u32; 2] {
        self.hosts
    }
}

pub(super) fn cake(params: &CakeParams) -> Cake<Sent> {
    let (rate, rng) = (Some(Rate::from_mbit(100)), Rng::new(1, "cake"));
    Cake::new(params, Context { rate, mtu: MTU, header_bytes: 14, root: true, rng })
}

/// A full packet of a flow between two hosts of its own.
pub(super) fn packet(flow: u32, dscp: u8) -> Packet<Sent> {
    let body = Sent { number: 0, hosts: [flow, !flow] };
    Packet { enqueued: Time::ZERO, flow, size: MTU, ds: DsField(dscp << 2), body }
}

/// COBALT's parameters and the turns of flows at this `bandwidth`: target, interval, mtu_time and
/// quantum of each tin.
fn tins(bandwidth: Option<u64>, tins: TinMode) -> Vec<(u64, u64, u64, u32)> {
    let cake = cake(&CakeParams { bandwidth, tins, ..params() });
    let of = |tin: &Tin| {
        let CobaltLaw { target, interval, mtu_time } = tin.law;
        (target, interval, mtu_time, tin.flows.quantum)
    };
    cake.tins.iter().map(of).collect()
}

#[test]
fn a_slow_rate_raises_target_and_interval() {
    for (mbit, target, interval, mtu_time, quantum) in [
        (1, 18_168_000, 113_168_000, 12_112_000, 300),
        (2, 9_084_000, 104_084_000, 6_056_000, 300),
        (5, 5 * MS, 100 * MS, 2_422_400, 300),
        (10, 5 * MS, 100 * MS, 1_211_200, 305),
        (20, 5 * MS, 100 * MS, 605_600, 610),
        (50, 5 * MS, 100 * MS, 242_240, 1514),
    ] {
        let [actual] = tins(Some(mbit * 1_000_000), TinMode::Besteffort)[..] else { panic!() };
        assert_eq!(actual, (target, interval, mtu_time, quantum), "{mbit} Mbit/s");
    }
    assert_eq!(tins(None, TinMode::Besteffort), [(5 * MS, 100 * MS, 0, 1514)]);
    let four = tins(Some(10_000_000), TinMode::Diffserv4);
    let laws: Vec<_> = four.iter().map(|tin| (tin.0, tin.1, tin.2)).collect();
    assert_eq!(
        laws,
        [
            (5 * MS, 100 * MS, 1_211_200),
            (29_068_800, 124_068_800, 19_379_200),
            (5 * MS, 100 * MS, 2_422_400),
            (7_267_200, 102_267_200, 4_844_800)
        ]
    );
}

#[test]
fn eight_tins_have_seven_eighths_of_the_one_before() {
    let rates: Vec<u64> =
        TinMode::Diffserv8.shares(1_250_000).iter().map(|share| share.0 * 8).collect();
    assert_eq!(
        rates,
        [10_000_000, 8_750_000, 7_656_248, 6_699_216, 5_861_808, 5_129_080, 4_487_944, 3_926_944]
    );
    let turns: Vec<u32> = TinMode::Precedence.shares(0).iter().map(|share| share.1).collect();
    assert_eq!(turns, [256, 224, 196, 171, 149, 130, 113, 98]);
}

#[test]
fn codepoints_are_sorted_as_in_linux() {
    let of = |mode: TinMode, tin: u8| -> Vec<u8> {
        let by_codepoint = mode.by_codepoint();
        (0..64).filter(|dscp| by_codepoint[usize::from(*dscp)] == tin).collect()
    };
    assert_eq!(of(TinMode::Besteffort, 0).len(), 64);
    assert_eq!(of(TinMode::Precedence, 3), (24..32).collect::<Vec<_>>());
    assert_eq!(of(TinMode::Diffserv3, 1), [1, 8]);
    assert_eq!(of(TinMode::Diffserv3, 2), [4, 44, 46, 48, 56]);
    assert_eq!(of(TinMode::Diffserv4, 1), [1, 8]);
    assert_eq!(of(TinMode::Diffserv4, 2), [4, 16, 18, 20, 22, 24, 26, 28, 30, 34, 36, 38]);
    assert_eq!(of(TinMode::Diffserv4, 3), [32, 40, 44, 46, 48, 56]);
    let eight: [&[u8]; 8] = [
        &[1],
        &[2, 8, 10, 12, 14],
        &[],
        &[24, 26, 28, 30, 34, 36, 38],
        &[4, 18, 20, 22],
        &[16],
        &[32, 40, 44, 46],
        &[48, 56],
    ];
    for (tin, codepoints) in eight.iter().enumerate().filter(|(tin, _)| *tin != 2) {
        assert_eq!(of(TinMode::Diffserv8, tin as u8), *codepoints, "tin {tin}");
    }
}

#[test]
fn packets_are_charged_with_the_overhead_of_the_line() {
    let of = |raw, overhead, mpu, cells| {
        let sizes = Sizes::new(&CakeParams { raw, overhead, mpu, cells, ..params() }, 14);
        [40, 52, 1500].map(|ip| sizes.adjusted(ip + 14))
    };
    let counted = |overhead, mpu, cells| of(false, overhead, mpu, cells);
    // Added to the packet as queued: a tag that the device adds.
    assert_eq!(of(true, 4, 0, CakeCells::Noatm), [58, 70, 1518]);
    assert_eq!(counted(-4, 0, CakeCells::Atm), [53, 53, 1696]);
    assert_eq!(of(true, 0, 0, CakeCells::Noatm), [54, 66, 1514]);
    assert_eq!(counted(44, 64, CakeCells::Atm), [106, 106, 1749]);
    assert_eq!(counted(30, 0, CakeCells::Ptm), [72, 84, 1554]);
    assert_eq!(counted(18, 64, CakeCells::Noatm), [64, 70, 1518]);
    assert_eq!(counted(38, 84, CakeCells::Noatm), [84, 90, 1538]);
    assert_eq!(counted(48, 0, CakeCells::Atm), [106, 159, 1749]);
}

#[test]
fn the_memory_limit_is_four_intervals_at_the_rate() {
    let limit =
        |bandwidth, memlimit| cake(&CakeParams { bandwidth, memlimit, ..params() }).memory_limit;
    assert_eq!(limit(Some(166_500_000), None), 8_325_000);
    assert_eq!(limit(Some(1_000_000), None), 4 << 20);
    assert_eq!(limit(None, None), 15_503_360);
    assert_eq!(limit(Some(10_000_000_000), None), 15_503_360);
    assert_eq!(limit(None, Some(64 << 20)), 64 << 20);
}

/// The tins of packets that leave a shaper at 10 Mbit/s. The named tins always have packets, and
/// the device is always ready.
fn picks(tins: TinMode, backlogged: &[(usize, u8)], packets: usize) -> Vec<usize> {
    let mut cake = cake(&CakeParams { tins, ..params() });
    let (mut verdicts, mut now, mut picks) = (Vec::new(), Time(1_000 * MS), Vec::new());
    for (tin, dscp) in backlogged {
        cake.enqueue(packet(*tin as u32, *dscp), now, &mut verdicts);
        cake.enqueue(packet(*tin as u32, *dscp), now, &mut verdicts);
    }
    while picks.len() < packets {
        now = now.max(cake.holds_until().expect("the cake has a rate"));
        let left = cake.dequeue(now, &mut verdicts).expect("there is always a packet");
        picks.push(left.flow as usize);
        cake.enqueue(packet(left.flow, left.ds.dscp()), now, &mut verdicts);
        // Reset COBALT: only the shaper is tested here.
        for (tin, _) in backlogged {
            let flows = &mut cake.tins[*tin].flows;
            (0..flows::QUEUES).for_each(|index| flows.at_mut(index).signals = Default::default());
        }
    }
    assert!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Dropped(_, Cause::Target))));
    picks
}

fn share(picks: &[usize], tin: usize) -> f64 {
    picks.iter().filter(|pick| **pick == tin).count() as f64 / picks.len() as f64
}

#[test]
fn the_highest_tin_within_its_rate_goes_first() {
    let four = [(0, 0), (1, 8), (2, 34), (3, 46)];
    let actual = picks(TinMode::Diffserv4, &four, 1600);
    assert_eq!(actual[..16], [3, 2, 2, 1, 3, 2, 2, 0, 3, 2, 2, 0, 3, 2, 2, 0]);
    assert_eq!([0, 1, 2, 3].map(|tin| share(&actual, tin)), [0.1875, 0.0625, 0.5, 0.25]);

    let three = picks(TinMode::Diffserv3, &[(0, 0), (1, 8), (2, 46)], 1600);
    assert_eq!(three[..16], [2, 1, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0]);

    let two = |one, other| share(&picks(TinMode::Diffserv4, &[one, other], 1600), one.0);
    assert_eq!(two((0, 0), (1, 8)), 0.9375);
    assert_eq!(two((0, 0), (3, 46)), 0.75);
    // No tin is within its rate, so the ratio of rates does not matter.
    assert!((two((2, 34), (3, 46)) - 2.0 / 3.0).abs() < 0.01);
}

#[test]
fn eight_backlogged_tins_starve_the_lower_five() {
    let eight = [1, 8, 0, 24, 18, 16, 46, 48];
    let all: Vec<(usize, u8)> = eight.into_iter().enumerate().collect();
    let actual = picks(TinMode::Diffserv8, &all, 2000);
    let shares: Vec<f64> = (0..8).map(|tin| share(&actual, tin)).collect();
    for (tin, expected) in [(7, 0.393), (6, 0.449), (5, 0.158)] {
        assert!((shares[tin] - expected).abs() < 0.01, "tin {tin}: {shares:?}");
    }
    // These tins sent only before the others had used up their rates.
    assert!(shares[..5].iter().all(|share| *share < 0.005), "{shares:?}");
}

#[test]
fn the_shaper_has_no_burst_and_spaces_packets_by_their_time_at_the_rate() {
    let mut cake = cake(&params());
    let mut verdicts = Vec::new();
    let start = Time(1_000 * MS);
    for _ in 0..4 {
        cake.enqueue(packet(1, 0), start, &mut verdicts);
    }
    let mut left = Vec::new();
    for _ in 0..4 {
        let at = cake.holds_until().expect("the cake has a rate").max(start);
        assert!(at == start || cake.dequeue(Time(at.0 - 1), &mut verdicts).is_none());
        assert!(cake.dequeue(at, &mut verdicts).is_some());
        left.push((at.0 - start.0) / 1_211_200);
    }
    assert_eq!(left, [0, 1, 2, 3]);
    // The second clock counts one and a half times each packet's time.
    assert_eq!((cake.next, cake.failsafe), (start.0 + 4 * 1_211_200, start.0 + 4 * 1_816_800));
}

/// The lengths of a queue's successive turns.
fn turns(flows: &mut Flows, index: usize, times: u64) -> Vec<i32> {
    let mut rng = Rng::new(times, "turn");
    let turn = |_| {
        let before = flows.at(index).deficit;
        flows.end_turn(index, &mut rng);
        flows.at(index).deficit - before
    };
    (0..times).map(turn).collect()
}

/// Makes a flow of this host a bulk flow.
fn bulk(flows: &mut Flows, flow: u32, host: u32) -> usize {
    let index = flows.queue(flow, || [host, 0]);
    flows.arrived(index, &mut Rng::new(1, "arrived"));
    // The queue has a packet.
    flows.at_mut(index).head = 0;
    turns(flows, index, 1);
    index
}

#[test]
fn the_quantum_is_rarely_a_byte_less_and_flows_of_a_host_share_it() {
    let mut flows = Flows::new([true, false], 1514);
    let first = bulk(&mut flows, 100, 7);
    let alone = turns(&mut flows, first, 10_000);
    let whole = alone.iter().filter(|turn| **turn == 1514).count() as f64 / 1e4;
    assert!(alone.iter().all(|turn| [1513, 1514].contains(turn)));
    assert!((whole - 0.977).abs() < 0.01, "{whole}");

    bulk(&mut flows, 200, 7);
    bulk(&mut flows, 300, 7);
    bulk(&mut flows, 400, 8);
    assert_eq!(flows.bulk_of_hosts(first), [3, 0]);
    assert!(turns(&mut flows, first, 1000).iter().all(|turn| [504, 505].contains(turn)));
    flows.at_mut(first).head = NONE;
    flows.found_empty(first, false);
    assert_eq!(flows.bulk_of_hosts(first), [2, 0]);
}

#[test]
fn eight_flows_of_a_set_have_separate_queues_and_the_ninth_shares_one() {
    let mut flows = Flows::new([false; 2], 1514);
    let mut rng = Rng::new(1, "ways");
    let queue = |flows: &mut Flows, flow: u32| flows.queue(flow * 1024 + 21, || [0; 2]);
    let actual: Vec<usize> = (0..9)
        .map(|flow| {
            let index = queue(&mut flows, flow);
            flows.arrived(index, &mut rng);
            index
        })
        .collect();
    // From the slot on, around its set of eight. The ninth flow takes over the slot.
    assert_eq!(actual, [21, 22, 23, 16, 17, 18, 19, 20, 21]);
    assert_eq!(queue(&mut flows, 3), 16);
    assert_eq!(queue(&mut flows, 8), 21);
    // The first flow's tag is gone. It finds a queue at rest, if there is one.
    flows.found_empty(18, false);
    assert_eq!(queue(&mut flows, 0), 18);
}

/// The shares of four flows that always have three packets each. The first has a source of its own,
/// and the others share one.
fn shares(isolation: Isolation) -> [f64; 4] {
    let mut cake = cake(&CakeParams { isolation, bandwidth: Some(50_000_000), ..params() });
    let (mut verdicts, mut now) = (Vec::new(), Time(1_000 * MS));
    let send = |flow: u32| Packet {
        body: Sent { number: 0, hosts: [u32::from(flow > 0), 9] },
        ..packet(flow, 0)
    };
    for flow in 0..12 {
        cake.enqueue(send(flow % 4), now, &mut verdicts);
    }
    let mut sent = [0.0; 4];
    for _ in 0..6000 {
        now = now.max(cake.holds_until().expect("the cake has a rate"));
        let left = cake.dequeue(now, &mut verdicts).expect("there is always a packet");
        sent[left.flow as usize] += 1.0 / 6000.0;
        cake.enqueue(send(left.flow), now, &mut verdicts);
    }
    assert_eq!(verdicts, []);
    sent
}

#[test]
fn capacity_is_shared_among_flows_or_among_hosts_and_then_their_flows() {
    for (isolation, expected) in [
        (Isolation::Flows, [0.25; 4]),
        (Isolation::DualSrchost, [1.0 / 2.0, 1.0 / 6.0, 1.0 / 6.0, 1.0 / 6.0]),
        // All flows have one destination, where four flows count for more than three at a source.
        (Isolation::DualDsthost, [0.25; 4]),
        (Isolation::TripleIsolate, [0.25; 4]),
    ] {
        let actual = shares(isolation);
        let near = actual.iter().zip(expected).all(|(share, fair)| (share - fair).abs() < 0.01);
        assert!(near, "{isolation:?}: {actual:?}");
    }
    // There is one queue per source: that of the three flows sends as much as that of the one.
    let [first, ..] = shares(Isolation::Srchost);
    assert!((first - 0.5).abs() < 0.01, "{first}");
    assert!(shares(Isolation::Hosts)[0] > 0.49);
}

#[test]
fn the_given_hosts_take_precedence_over_the_packet_s_addresses() {
    let mut shared = cake(&CakeParams { isolation: Isolation::DualSrchost, ..params() });
    let known = [[1, 9], [5, 9], [5, 9]];
    *Qdisc::<Sent>::hosts(&mut shared).expect("the isolation is by host") = known.into();
    let source =
        |flow: u32| hash_hosts(shared.isolation, &shared.hosts, shared.key, &packet(flow, 0))[0];
    assert_ne!(source(0), source(1));
    assert_eq!(source(1), source(2));
    assert!(Qdisc::<Sent>::hosts(&mut cake(&params())).is_none(), "isolation by flows only");
}

#[test]
fn the_longest_queue_of_all_tins_loses_its_oldest_packets() {
    let small = CakeParams { memlimit: Some(20 * 2304), tins: TinMode::Diffserv4, ..params() };
    let mut cake = cake(&small);
    let mut verdicts = Vec::new();
    let now = Time(1_000 * MS);
    for number in 0..30 {
        // Every third packet is of another tin.
        let flow = u32::from(number % 3 == 0);
        let body = Sent { number, ..packet(flow, 0).body };
        let dscp = if flow == 1 { 46 } else { 0 };
        cake.enqueue(Packet { body, ..packet(flow, dscp) }, now, &mut verdicts);
    }
    let dropped: Vec<u32> = verdicts
        .iter()
        .map(|verdict| match verdict {
            Verdict::Dropped(packet, Cause::Overmemory) => packet.body.number,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(dropped, [1, 2, 4, 5, 7, 8, 10, 11, 13, 14]);
    // COBALT counts the episode, and BLUE one step: all packets arrived within a target.
    let flow = (0..flows::QUEUES).map(|index| cake.tins[0].flows.at(index));
    let flow = flow.clone().find(|flow| flow.bytes > 0).expect("its packets wait");
    assert_eq!((flow.signals.p_drop, flow.signals.count), (1 << 24, 1));
    assert_eq!((cake.backlog().packets, cake.state(now).flows), (20, Some(2.0)));
}

#[test]
fn wash_clears_the_codepoint_when_it_has_been_read_and_keeps_ecn() {
    let washing = CakeParams { wash: true, tins: TinMode::Diffserv4, ..params() };
    let mut cake = cake(&washing);
    let ds = DsField(46 << 2 | 0b10);
    cake.enqueue(Packet { ds, ..packet(1, 0) }, Time(MS), &mut Vec::new());
    assert_eq!(cake.tins[3].packets, 1);
    let left = cake.dequeue(Time(MS), &mut Vec::new()).expect("the packet is queued");
    assert_eq!(left.ds, DsField(0b10));
}

#[test]
fn with_ingress_dropped_packets_count_in_the_rate() {
    let held = |ingress| {
        let mut cake = cake(&CakeParams { ingress, ..params() });
        let mut verdicts = Vec::new();
        for _ in 0..10 {
            cake.enqueue(packet(1, 0), Time(1_000 * MS), &mut verdicts);
        }
        // The sojourn is over target from the first packet on, and the second one is dropped.
        for at in [1_100 * MS, 1_150 * MS] {
            cake.dequeue(Time(at), &mut verdicts).expect("a packet leaves");
        }
        assert_eq!(verdicts.len(), 1);
        (cake.next - 1_000 * MS, cake.failsafe - 1_000 * MS)
    };
    assert_eq!(held(false), (2 * 1_211_200, 2 * 1_816_800));
    assert_eq!(held(true), (3 * 1_211_200, 2 * 1_816_800));
}

#[test]
fn without_a_rate_nothing_is_held_back_and_tins_share_by_turns() {
    let free = CakeParams { bandwidth: None, tins: TinMode::Diffserv4, ..params() };
    let mut cake = cake(&free);
    assert_eq!(cake.holds_until(), None);
    let mut verdicts = Vec::new();
    let now = Time(1_000 * MS);
    for (tin, dscp) in [(0, 0), (1, 8), (2, 34), (3, 46)] {
        (0..2000).for_each(|_| cake.enqueue(packet(tin, dscp), now, &mut verdicts));
    }
    let mut left = [0u32; 4];
    for _ in 0..1856 {
        left[cake.dequeue(now, &mut verdicts).expect("a packet is queued").flow as usize] += 1;
    }
    // The shares are as 1024 : 64 : 512 : 256.
    for (left, expected) in left.into_iter().zip([1024u32, 64, 512, 256]) {
        assert!(left.abs_diff(expected) <= 4, "{left} for {expected}");
    }
}

#[test]
fn an_empty_tin_keeps_at_most_one_quantum() {
    let free = CakeParams { bandwidth: None, tins: TinMode::Diffserv4, ..params() };
    let mut cake = cake(&free);
    let now = Time(1_000 * MS);
    let mut deficits = || {
        cake.enqueue(packet(2, 34), now, &mut Vec::new());
        cake.dequeue(now, &mut Vec::new()).expect("a packet has just been enqueued");
        cake.tins.iter().map(|tin| tin.deficit).collect::<Vec<_>>()
    };
    // The first two tins are skipped on the way to the third.
    assert_eq!(deficits(), [1024, 64, -1514, 0]);
    // After three turns of 512 bytes the third is above 0, and the others were skipped three times.
    assert_eq!(deficits(), [1024, 64, -1514 + 3 * 512 - 1514, 256]);
}

#[test]
fn the_last_packet_of_a_queue_is_sent_even_if_the_law_would_drop_it() {
    let mut cake = cake(&params());
    let mut verdicts = Vec::new();
    cake.enqueue(packet(1, 0), Time(1_000 * MS), &mut verdicts);
    cake.enqueue(packet(1, 0), Time(1_000 * MS), &mut verdicts);
    // The sojourn is over target from the first packet on, and a signal is due at the second.
    for at in [1_100 * MS, 1_150 * MS] {
        cake.dequeue(Time(at), &mut verdicts).expect("a packet leaves");
    }
    assert_eq!(verdicts, []);
    let count = (0..flows::QUEUES).map(|index| cake.tins[0].flows.at(index).signals.count).max();
    assert_eq!(count, Some(2), "the law counts the signal although the packet is sent");
}

#[test]
fn with_ingress_drops_of_the_filter_and_the_memory_limit_count_in_the_rate() {
    let charged = |ingress| {
        let now = Time(1_000 * MS);
        let acks = AckFilterMode::AckFilterAggressive;
        let mut filters = cake(&CakeParams { acks, ingress, ..params() });
        let mut verdicts = Vec::new();
        for ack in 1..=3 {
            filters.sees(AckView { ack, sacks: [(0, 0); 4], sack_count: 0, ece: false });
            filters.enqueue(Packet { size: 66, ..packet(1, 0) }, now, &mut verdicts);
        }
        let mut short = cake(&CakeParams { memlimit: Some(20 * 2304), ingress, ..params() });
        (0..23).for_each(|_| short.enqueue(packet(1, 0), now, &mut verdicts));
        assert_eq!(verdicts.len(), 2 + 3);
        [filters.next - now.0, short.next - now.0]
    };
    assert_eq!(charged(false), [0, 0]);
    // 800 ns per byte.
    assert_eq!(charged(true), [2 * 66 * 800, 3 * 1_211_200]);
}

#[test]
fn if_a_drop_uses_up_the_turn_the_next_flow_s_packet_leaves() {
    let own_leaves = |ingress| {
        let mut cake = cake(&CakeParams { ingress, ..params() });
        let mut verdicts = Vec::new();
        for number in 0..40 {
            cake.enqueue(packet(number % 2, 0), Time(1_000 * MS), &mut verdicts);
        }
        let mut now = 1_100 * MS;
        loop {
            let left = cake.dequeue(Time(now), &mut verdicts).expect("both are queued");
            if let [Verdict::Dropped(dropped, Cause::Target), ..] = &verdicts[..] {
                return left.flow == dropped.flow;
            }
            now += 50 * MS;
        }
    };
    assert_eq!([false, true].map(own_leaves), [true, false]);
}

#[test]
fn with_ingress_packets_may_wait_for_two_packets_of_each_flow() {
    // Eight flows with three half packets each wait 14.5 ms. Two full packets of each take 19.4 ms,
    // one takes 9.7 ms.
    let dropped = |ingress| {
        let mut cake = cake(&CakeParams { ingress, ..params() });
        let (mut verdicts, mut now) = (Vec::new(), Time(1_000 * MS));
        let half = |flow| Packet { size: MTU / 2, ..packet(flow, 0) };
        (0..24).for_each(|number| cake.enqueue(half(number % 8), now, &mut verdicts));
        for _ in 0..1000 {
            now = now.max(cake.holds_until().expect("the cake has a rate"));
            let left = cake.dequeue(now, &mut verdicts).expect("there is always a packet");
            cake.enqueue(half(left.flow), now, &mut verdicts);
        }
        !verdicts.is_empty()
    };
    assert_eq!([false, true].map(dropped), [true, false]);
}

#[test]
fn a_queue_becomes_bulk_with_the_first_arrival_after_its_first_quantum() {
    let mut flows = Flows::new([true, false], 1514);
    let mut rng = Rng::new(1, "arrived");
    let index = flows.queue(100, || [7, 0]);
    flows.arrived(index, &mut rng);
    turns(&mut flows, index, 1);
    assert_eq!((flows.sparse, flows.bulk, flows.bulk_of_hosts(index)), (1, 0, [0, 0]));
    flows.arrived(index, &mut rng);
    assert_eq!((flows.sparse, flows.bulk, flows.bulk_of_hosts(index)), (0, 1, [1, 0]));
}

#[test]
fn hosts_whose_hashes_collide_have_separate_slots_while_both_send() {
    let mut flows = Flows::new([true, false], 1514);
    let both = [(100, 7), (200, 7 + 1024)].map(|(flow, host)| bulk(&mut flows, flow, host));
    assert_eq!(both.map(|index| flows.bulk_of_hosts(index)), [[1, 0]; 2]);
}

#[test]
fn a_queue_that_a_ninth_flow_takes_over_counts_for_that_flow_s_host() {
    let mut flows = Flows::new([true, false], 1514);
    let set = [0, 1, 2, 3, 4, 5, 6, 7].map(|flow| bulk(&mut flows, flow * 1024 + 21, 7));
    assert_eq!(flows.bulk_of_hosts(set[0]), [8, 0]);
    assert_eq!(flows.queue(8 * 1024 + 21, || [8, 0]), set[0]);
    assert_eq!([0, 1].map(|n| flows.bulk_of_hosts(set[n])), [[1, 0], [7, 0]]);
}
