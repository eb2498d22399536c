//! Closed forms: where theory has a formula, the simulator must compute its number.

mod common;

use common::{MS, S, Tables, bulk, flow, link, pfifo, reno, run, scenario};
use link::{Impairments, Link, LinkParts, Log, Loss, Propagation, Schedule};
use qdisc::{Context, Discipline, DsField, Packet, Params, PfifoFastParams, PfifoFastVariant};
use sim::{Draw, FlowSpec, Scenario, Traffic};
use units::{Rate, Rng, Span, Time};

/// Mean wait of a queue with Poisson arrivals and constant service (Pollaczek and Khinchine): ρ /
/// (2 μ (1 - ρ)).
#[test]
fn poisson_arrivals_wait_as_m_d_1_says() {
    for load in [0.3, 0.6, 0.9] {
        let rate = Rate::from_mbit(12); // 1500 bytes take 1 ms.
        let schedule = Schedule::new(vec![link::RateStep { at_ns: 0, bps: rate.0 }], None);
        let rng = Rng::new(1, "unused");
        let mut l = Link::new(LinkParts {
            qdisc: Discipline::new(
                &pfifo(1_000_000),
                Context {
                    rate: Some(rate),
                    mtu: 1500,
                    header_bytes: 0,
                    root: false,
                    rng: rng.clone(),
                },
            ),
            qdisc_steps: Vec::new(),
            schedule,
            framing: link::Framing::NONE,
            wire: Propagation::new(Span::ZERO, &Loss::None, &Impairments::default(), |_| {
                rng.clone()
            }),
            ring: None,
            shaper: None,
            police: None,
            replay_window: None,
        });
        let (mut arrivals, mut log) = (Rng::new(11, "arrivals"), Log::default());
        let (mut now, mut waited, mut count) = (0.0, 0.0, 0u64);
        for _ in 0..2_000_000 {
            now += arrivals.exponential(1e6 / load);
            let packet = Packet {
                enqueued: Time::ZERO,
                flow: 0,
                size: 1500,
                ds: DsField::BEST_EFFORT,
                body: (),
            };
            l.send(packet, Time(now as u64), &mut log);
            for d in log.departures.drain(..) {
                waited += d.dequeued.since(d.packet.enqueued).0 as f64;
                count += 1;
            }
        }
        let expected = load / (2.0 * (1.0 - load)) * 1e6;
        let error = waited / count as f64 / expected - 1.0;
        assert!(error.abs() < 0.02, "load {load}: {error:+.3}");
    }
}

/// One Reno flow over a buffer of B packets on a path of P packets: the window climbs by one each
/// RTT from W/2 to W = P + B and falls again. So once B >= P the link never idles, and one packet
/// is lost each cycle. At window w the queue is w - P and the RTT is w/μ, so the time at w is
/// proportional to w. The mean queue over time is the mean of w - P over [W/2, W], weighted by w:
/// 7/9 W - P.
#[test]
fn one_reno_flow_draws_the_sawtooth() {
    let packet_bits = 1500.0 * 8.0;
    let (rate, rtt_ms, buffer) = (10_000_000u64, 50, 100u64);
    let s = scenario(
        400 * S,
        vec![
            link("down", rate, rtt_ms * MS / 2, pfifo(buffer)),
            link("up", 0, rtt_ms * MS / 2, pfifo(1000)),
        ],
        vec![flow("f", bulk(reno()))],
    );
    let s = sim::Scenario { warmup_ns: 40 * S, ..s };
    let tables = run(&s);
    let path = rate as f64 * rtt_ms as f64 * 1e-3 / packet_bits + 1.0; // with the packet in transmission
    let top = path + buffer as f64;
    let sojourn =
        tables.of("links", "sojourn_sum_ns", 0) / tables.of("links", "sent_packets", 0) * 1e-9;
    // This mean is over packets, not over time. Packets leave at a constant rate, so both are the
    // same. The queue excludes the packet in transmission; an arriving packet waits for the rest of
    // it, too.
    let expected = (7.0 / 9.0 * top - path) * packet_bits / rate as f64;
    assert!(
        (sojourn / expected - 1.0).abs() < 0.04,
        "mean sojourn {sojourn:.4} s, theory {expected:.4} s"
    );

    let busy = tables.of("links", "busy_ns", 0) / tables.of("links", "measured_ns", 0);
    assert!(busy > 0.9999, "the link is full: {busy}");

    // A cycle is W/2 round trips; over it 3/8 W² packets pass and one is lost.
    let loss = tables.of("links", "dropped_packets", 0) / tables.of("links", "arrived_packets", 0);
    let expected = 8.0 / (3.0 * top * top);
    assert!((loss / expected - 1.0).abs() < 0.1, "loss {loss:.2e}, theory {expected:.2e}");
}

/// Mathis, Semke, Mahdavi and Ott (1997): with losses at rate p Reno keeps C/√p segments in flight.
/// C is 1.22 when losses are evenly spaced and 1.31 when each packet is lost independently (Ott,
/// Kemperman and Mathis 1996), as here.
#[test]
fn reno_s_throughput_goes_with_the_root_of_the_loss() {
    for p in [0.0005, 0.002, 0.008] {
        let mut wire = link("down", 1_000_000_000, 50 * MS, pfifo(100_000));
        wire.loss = Loss::Random { probability: p };
        let s = scenario(
            4000 * S,
            vec![wire, link("up", 0, 50 * MS, pfifo(1))],
            vec![flow("f", bulk(reno()))],
        );
        let tables = run(&s);
        let segments_per_rtt = tables.of("flows", "delivered_bytes", 0) / 1448.0 / 4000.0 * 0.1;
        let error = segments_per_rtt * p.sqrt() / 1.31 - 1.0;
        // Losses of one round trip count once, which matters more the larger p is.
        assert!(error.abs() < 0.08, "p {p}: {segments_per_rtt:.1} segments, {error:+.3}");
    }
}

/// A transfer of n segments over an idle path takes whole round trips of slow start and the time of
/// its last bytes.
#[test]
fn a_short_transfer_completes_in_the_round_trips_of_slow_start() {
    // The 50 segments leave in bursts of 10, 20 and 20. The third burst leaves after two RTTs, and
    // its last ACK is back one RTT later.
    let traffic = Traffic::Bulk { bytes: Some(50 * 1448), pace: None, tcp: reno() };
    let links =
        vec![link("down", 1_000_000_000, 50 * MS, pfifo(1000)), link("up", 0, 50 * MS, pfifo(1))];
    let tables = run(&scenario(5 * S, links, vec![flow("f", traffic)]));
    let took = tables.of("transfers", "end_ns", 0) * 1e-6;
    assert!((300.0..301.0).contains(&took), "{took} ms");
    assert_eq!(tables.of("flows", "delivered_bytes", 0), 50.0 * 1448.0);
    assert_eq!(tables.of("flows", "retransmits", 0), 0.0);
}

/// Seven objects over three connections: three, two and two of them, each in one round trip. The
/// page takes as long as the longest share, and the next one begins after the pause.
#[test]
fn a_page_ends_when_all_its_connections_have_ended() {
    let connection = |objects| {
        let bytes = Draw::Constant { value: 5 * 1448 };
        let pause_ns = Draw::Constant { value: S };
        Traffic::Transfers { bytes, pause_ns, objects: Some(objects), tcp: reno() }
    };
    let flows =
        [3, 2, 2].into_iter().enumerate().map(|(i, n)| flow(&format!("web.{i}"), connection(n)));
    let links =
        vec![link("down", 1_000_000_000, 50 * MS, pfifo(1000)), link("up", 0, 50 * MS, pfifo(1))];
    let flows = flows.map(|each| FlowSpec { group: 0, ..each }).collect();
    let tables = run(&scenario(5 * S, links, flows));
    // A page takes 300 ms and the pause 1 s, so pages begin at 0, 1.3, 2.6 and 3.9 s.
    for page in 0..4 {
        let at = |column: &str| tables.of("transfers", column, page) * 1e-6;
        let (start, took) = (at("start_ns"), at("end_ns") - at("start_ns"));
        assert!((300.0..301.0).contains(&took), "page {page}: {took} ms");
        assert!((start - 1300.0 * page as f64).abs() < 5.0, "page {page} begins at {start} ms");
        assert_eq!(tables.of("transfers", "bytes", page), 7.0 * 5.0 * 1448.0);
    }
    for (flow, share) in [3.0, 2.0, 2.0].into_iter().enumerate() {
        let delivered = tables.of("flows", "delivered_bytes", flow);
        assert_eq!(delivered, 4.0 * share * 5.0 * 1448.0);
    }
}

/// A player on a link of 2.5 Mbit/s settles on the rung of 1.5 Mbit/s. When it is as far ahead as
/// it may be, it requests a segment as often as it plays one.
#[test]
fn a_stream_chooses_a_rate_that_fits_and_then_pauses_between_segments() {
    let traffic = Traffic::Stream {
        ladder_bps: vec![500_000, 1_500_000, 2_400_000],
        segment_ns: 2 * S,
        ahead_ns: 8 * S,
        tcp: reno(),
    };
    let links = vec![link("down", 2_500_000, 5 * MS, pfifo(100)), link("up", 0, 5 * MS, pfifo(1))];
    let tables = run(&scenario(60 * S, links, vec![flow("f", traffic)]));
    assert_eq!(tables.of("transfers", "bytes", 0), 125_000.0);
    for segment in 2..24 {
        assert_eq!(tables.of("transfers", "bytes", segment), 375_000.0, "segment {segment}");
    }
    let start = |segment| tables.of("transfers", "start_ns", segment) * 1e-9;
    assert!((start(23) - start(13) - 20.0).abs() < 0.1, "{}", start(23) - start(13));
}

/// Constant-rate traffic above the link's rate fills the buffer: each packet waits for exactly the
/// packets before it.
#[test]
fn overload_fills_the_buffer_and_loses_the_excess() {
    let udp = Traffic::Udp { bps: 20_000_000, packet_bytes: 1500, on_ns: None, off_ns: None };
    let links = vec![link("down", 10_000_000, 0, pfifo(50)), link("up", 0, 0, pfifo(1))];
    let s = sim::Scenario { warmup_ns: S, ..scenario(11 * S, links, vec![flow("u", udp)]) };
    let tables = run(&s);
    let loss = tables.of("links", "dropped_packets", 0) / tables.of("links", "arrived_packets", 0);
    assert!((loss - 0.5).abs() < 0.001, "{loss}");
    let sojourn_ms = tables.of("links", "sojourn_max_ns", 0) * 1e-6;
    // A packet waits for 49 packets of 1.2 ms and for the rest of the one in transmission.
    assert!((58.8..=60.0).contains(&sojourn_ms), "{sojourn_ms}");
}

/// Packets from before the end of the warm-up are in no total and no peak.
#[test]
fn nothing_of_the_warm_up_is_measured() {
    let udp = Traffic::Udp { bps: 20_000_000, packet_bytes: 1500, on_ns: None, off_ns: None };
    let links =
        vec![link("down", 10_000_000, 10 * MS, pfifo(50)), link("up", 0, 10 * MS, pfifo(1))];
    let flows = vec![FlowSpec { stop_ns: Some(S / 5), ..flow("udp", udp) }];
    let tables = run(&Scenario { warmup_ns: S, ..scenario(2 * S, links, flows) });
    for column in [
        "sent_packets",
        "dropped_packets",
        "sojourn_max_ns",
        "backlog_max_packets",
        "backlog_max_bytes",
    ] {
        assert_eq!(tables.of("links", column, 0), 0.0, "{column}");
    }
    for column in ["sent_packets", "lost_packets", "rtt_samples", "rtt_max_ns"] {
        assert_eq!(tables.of("flows", column, 0), 0.0, "{column}");
    }
    assert!(tables.column("queue", "backlog_packets").contains(&50.0));
}

/// A short packet may be quicker than a full packet: the base RTT is at most the least sample.
#[test]
fn a_base_rtt_is_at_most_the_least_sample() {
    let short = Traffic::Bulk { bytes: Some(100), pace: None, tcp: reno() };
    let links = vec![link("down", 100_000, 10 * MS, pfifo(50)), link("up", 0, 10 * MS, pfifo(1))];
    let tables = run(&scenario(2 * S, links, vec![flow("short", short)]));
    // 152 bytes take 12 ms, where a full packet would take 120.
    let [base, least] = ["base_rtt_ns", "rtt_min_ns"].map(|column| tables.of("flows", column, 0));
    assert!(base == least && least < 40.0 * MS as f64, "{base} {least}");
}

const THROUGHPUT: DsField = DsField(0x08);
const PACKET_MS: f64 = 1.2; // 1500 bytes at 10 Mbit/s.

/// Every other packet arrives as the link becomes free. The program's packet comes first, finds the
/// only place taken and is dropped; the packet in between is enqueued and waits half a
/// transmission. The same happens in a guest's kernel.
#[test]
fn a_program_that_sends_comes_before_a_link_that_becomes_free() {
    let udp = Traffic::Udp { bps: 20_000_000, packet_bytes: 1500, on_ns: None, off_ns: None };
    let links = vec![link("down", 10_000_000, 10 * MS, pfifo(1)), link("up", 0, 10 * MS, pfifo(1))];
    let tables =
        run(&Scenario { warmup_ns: S, ..scenario(2 * S, links, vec![flow("overload", udp)]) });
    let [sent, waited, most] = ["sent_packets", "sojourn_sum_ns", "sojourn_max_ns"]
        .map(|column| tables.of("links", column, 0));
    assert!(sent > 800.0, "{sent}");
    assert_eq!((waited / sent * 1e-6, most * 1e-6), (PACKET_MS / 2.0, PACKET_MS / 2.0));
}

/// About twice 10 Mbit/s, out of step with the link: places become free between its packets.
fn overload() -> Traffic {
    Traffic::Udp { bps: 20_300_000, packet_bytes: 1500, on_ns: None, off_ns: None }
}

/// A ping over a link of 10 Mbit/s and 100 packets that traffic of twice its rate has filled, in
/// the last band.
fn ping_beside_overload(variant: PfifoFastVariant, ping: DsField) -> Tables {
    let udp = overload();
    // 97.1 ms is not a multiple of the link's 1.2 ms: the pings arrive at any phase of a
    // transmission.
    let probe = Traffic::Ping { interval_ns: 97_100_000, packet_bytes: 84 };
    let fast = Params::PfifoFast(PfifoFastParams { variant, limit: 100 });
    let links = vec![link("down", 10_000_000, 10 * MS, fast), link("up", 0, 10 * MS, pfifo(1))];
    let flows = vec![
        FlowSpec { ds: THROUGHPUT, ..flow("overload", udp) },
        FlowSpec { ds: ping, start_ns: S, ..flow("ping", probe) },
    ];
    run(&scenario(20 * S, links, flows))
}

/// Round trips beyond the idle one, ms; -1 for a lost ping. The last two pings may still be in
/// flight.
fn waits(tables: &Tables, ping: usize) -> Vec<f64> {
    let idle = tables.of("flows", "base_rtt_ns", ping);
    let mut rtts = tables.column("probe", "rtt_ns");
    rtts.truncate(rtts.len() - 2);
    rtts.iter().map(|&rtt| if rtt < 0.0 { -1.0 } else { (rtt - idle) * 1e-6 }).collect()
}

/// In pfifo_fast best effort passes bulk traffic with the throughput bit. A ping waits at most for
/// the packet in transmission.
#[test]
fn a_ping_passes_a_full_lower_band_within_one_transmission() {
    let tables = ping_beside_overload(PfifoFastVariant::Linux, DsField::BEST_EFFORT);
    let waits = waits(&tables, 1);
    assert!(tables.of("links", "backlog_mean_packets", 0) > 84.0, "the lower band is full");
    assert!(
        waits.len() > 190 && waits.iter().all(|wait| (0.0..=PACKET_MS).contains(wait)),
        "{waits:?}"
    );
    assert!(
        waits.iter().any(|&wait| wait > PACKET_MS / 2.0),
        "some pings meet a packet in transmission"
    );
}

/// In one band all packets wait alike: for up to 99 packets and the rest of the one in
/// transmission. The band frees the places of departed packets in batches of 16, so up to 16 fewer
/// may wait.
#[test]
fn a_ping_in_the_same_band_waits_like_all() {
    let waits = waits(&ping_beside_overload(PfifoFastVariant::Linux, THROUGHPUT), 1);
    let received: Vec<f64> = waits.into_iter().filter(|&wait| wait >= 0.0).collect();
    assert!(received.len() > 20);
    assert!(
        received.iter().all(|wait| (82.0 * PACKET_MS..=100.0 * PACKET_MS).contains(wait)),
        "{received:?}"
    );
}

/// Before Linux 4.16 the bands shared the limit. A ping that is enqueued is as quick as with
/// separate limits, but bulk traffic often leaves no room for it.
#[test]
fn a_shared_limit_drops_pings_that_would_pass() {
    let waits = waits(&ping_beside_overload(PfifoFastVariant::Shared, DsField::BEST_EFFORT), 1);
    let (lost, received): (Vec<f64>, Vec<f64>) = waits.iter().partition(|&&wait| wait < 0.0);
    assert!(received.len() > 20 && received.iter().all(|&wait| wait <= PACKET_MS), "{received:?}");
    assert!(lost.len() * 4 > waits.len(), "{} of {} lost", lost.len(), waits.len());
}

/// A flow's replies carry its codepoint: on a full path back an echo or an ACK waits in its flow's
/// band.
#[test]
fn replies_carry_the_codepoint_of_their_flow() {
    let short = bulk(reno().with(|p| p.growth.max_window = Some(4)));
    let ping = Traffic::Ping { interval_ns: 100 * MS, packet_bytes: 84 };
    for traffic in [short, ping] {
        let least_rtt_ms = |ds| {
            let fast =
                Params::PfifoFast(PfifoFastParams { variant: PfifoFastVariant::Linux, limit: 30 });
            let links =
                vec![link("down", 0, 10 * MS, pfifo(1)), link("up", 10_000_000, 10 * MS, fast)];
            let back =
                FlowSpec { ds: THROUGHPUT, path: vec![1], back: vec![0], ..flow("up", overload()) };
            let flows = vec![back, FlowSpec { ds, start_ns: S, ..flow("down", traffic.clone()) }];
            let tables = run(&scenario(10 * S, links, flows));
            let probes = tables.column("probe", "rtt_ns").into_iter().filter(|&rtt| rtt > 0.0);
            let acks = tables.of("flows", "rtt_min_ns", 1);
            probes.chain((acks > 0.0).then_some(acks)).fold(f64::INFINITY, f64::min) * 1e-6
        };
        let (passing, waiting) = (least_rtt_ms(DsField::BEST_EFFORT), least_rtt_ms(THROUGHPUT));
        assert!((20.0..20.0 + 2.0 * PACKET_MS).contains(&passing), "{passing} ms");
        assert!((46.0..57.5).contains(&waiting), "{waiting} ms");
    }
}
