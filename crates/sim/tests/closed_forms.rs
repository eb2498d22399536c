//! Where theory has a formula, the simulator must give its number.

mod common;

use common::{MS, S, bulk, flow, link, pfifo, reno, run, scenario};
use link::{Link, LinkParts, Loss, LossLaw, Schedule};
use qdisc::{Context, Discipline, Ecn, Packet};
use sim::Traffic;
use units::{Luck, Rate, Span, Time};

/// Mean wait of a queue with Poisson arrivals and constant service (Pollaczek and Khinchine): ρ / (2 μ (1 - ρ)).
#[test]
fn poisson_arrivals_wait_as_m_d_1_says() {
    for load in [0.3, 0.6, 0.9] {
        let rate = Rate::from_mbit(12); // 1500 bytes take 1 ms.
        let schedule = Schedule::new(vec![link::RateStep { at_ns: 0, bps: rate.0 }], None);
        let luck = Luck::new(1, "unused");
        let mut l = Link::new(LinkParts {
            qdisc: Discipline::new(
                &pfifo(1_000_000),
                Context { rate: Some(rate), mtu: 1500, luck: luck.clone() },
            ),
            schedule,
            delay: Span::ZERO,
            framing: link::Framing::NONE,
            loss: LossLaw::new(Loss::None, luck),
        });
        let (mut arrivals, mut fates) = (Luck::new(11, "arrivals"), Vec::new());
        let (mut now, mut waited, mut count) = (0.0, 0.0, 0u64);
        for _ in 0..2_000_000 {
            now += arrivals.exponential(1e6 / load);
            let packet = Packet { enqueued: Time::ZERO, flow: 0, size: 1500, ecn: Ecn::NotEct, body: () };
            l.send(packet, Time(now as u64), &mut fates, |d| {
                waited += d.dequeued.since(d.packet.enqueued).0 as f64;
                count += 1;
            });
        }
        let expected = load / (2.0 * (1.0 - load)) * 1e6;
        let error = waited / count as f64 / expected - 1.0;
        assert!(error.abs() < 0.02, "load {load}: {error:+.3}");
    }
}

/// One Reno flow over a buffer of B packets on a path of P packets: the window climbs by one each RTT from W/2 to
/// W = P + B and falls again, so once B >= P the link never idles, and one packet is lost each cycle. With the queue
/// q = w - P and RTT w/μ the time at window w is proportional to w; the mean queue over time is the mean of
/// (w - P) weighted by w over [W/2, W]: 7/9 W - P.
#[test]
fn one_reno_flow_draws_the_sawtooth() {
    let packet_bits = 1500.0 * 8.0;
    let (rate, rtt_ms, buffer) = (10_000_000u64, 50, 100u64);
    let s = scenario(
        400 * S,
        vec![link("down", rate, rtt_ms * MS / 2, pfifo(buffer)), link("up", 0, rtt_ms * MS / 2, pfifo(1000))],
        vec![flow("f", bulk(reno()))],
    );
    let s = sim::Scenario { warmup_ns: 40 * S, ..s };
    let tables = run(&s);
    let path = rate as f64 * rtt_ms as f64 * 1e-3 / packet_bits + 1.0; // and the one in transmission
    let top = path + buffer as f64;
    let sojourn = tables.of("links", "sojourn_sum_ns", 0) / tables.of("links", "sent_packets", 0) * 1e-9;
    // Per packet rather than per time: packets leave at a constant rate, so the mean is the same. The queue excludes the
    // packet in transmission, the wait of an arriving one includes its rest.
    let expected = (7.0 / 9.0 * top - path) * packet_bits / rate as f64;
    assert!((sojourn / expected - 1.0).abs() < 0.04, "mean sojourn {sojourn:.4} s, theory {expected:.4} s");

    let busy = tables.of("links", "busy_ns", 0) / tables.of("links", "measured_ns", 0);
    assert!(busy > 0.9999, "the link is full: {busy}");

    // A cycle is W/2 round trips; over it 3/8 W² packets pass and one is lost.
    let loss = tables.of("links", "dropped_packets", 0) / tables.of("links", "arrived_packets", 0);
    let expected = 8.0 / (3.0 * top * top);
    assert!((loss / expected - 1.0).abs() < 0.1, "loss {loss:.2e}, theory {expected:.2e}");
}

/// Mathis, Semke, Mahdavi and Ott (1997): with losses at rate p Reno keeps C/√p segments in flight. C is 1.22 when
/// losses are evenly spaced and 1.31 when each packet is lost independently (Ott, Kemperman and Mathis 1996), as here.
#[test]
fn reno_s_throughput_goes_with_the_root_of_the_loss() {
    for p in [0.0005, 0.002, 0.008] {
        let mut wire = link("down", 1_000_000_000, 50 * MS, pfifo(100_000));
        wire.loss = Loss::Random { probability: p };
        let s =
            scenario(4000 * S, vec![wire, link("up", 0, 50 * MS, pfifo(1))], vec![flow("f", bulk(reno()))]);
        let tables = run(&s);
        let segments_per_rtt = tables.of("flows", "delivered_bytes", 0) / 1448.0 / 4000.0 * 0.1;
        let error = segments_per_rtt * p.sqrt() / 1.31 - 1.0;
        // Losses of one round trip count once, which matters more the larger p is.
        assert!(error.abs() < 0.08, "p {p}: {segments_per_rtt:.1} segments, {error:+.3}");
    }
}

/// A transfer of n segments over an idle path takes whole round trips of slow start and the time of its last bytes.
#[test]
fn a_short_transfer_completes_in_the_round_trips_of_slow_start() {
    // 10 + 20 + 20 of 50 segments: two RTTs until the third burst leaves, one more until its last ACK is back.
    let traffic = Traffic::Bulk { bytes: Some(50 * 1448), tcp: reno() };
    let links = vec![link("down", 1_000_000_000, 50 * MS, pfifo(1000)), link("up", 0, 50 * MS, pfifo(1))];
    let tables = run(&scenario(5 * S, links, vec![flow("f", traffic)]));
    let took = tables.of("transfers", "end_ns", 0) * 1e-6;
    assert!((300.0..301.0).contains(&took), "{took} ms");
    assert_eq!(tables.of("flows", "delivered_bytes", 0), 50.0 * 1448.0);
    assert_eq!(tables.of("flows", "retransmits", 0), 0.0);
}

/// Constant-rate traffic above the link's rate fills the buffer: each packet waits for exactly the packets before it.
#[test]
fn overload_fills_the_buffer_and_loses_the_excess() {
    let udp = Traffic::Udp { bps: 20_000_000, packet_bytes: 1500, on_ns: None, off_ns: None, ecn: false };
    let links = vec![link("down", 10_000_000, 0, pfifo(50)), link("up", 0, 0, pfifo(1))];
    let s = sim::Scenario { warmup_ns: S, ..scenario(11 * S, links, vec![flow("u", udp)]) };
    let tables = run(&s);
    let loss = tables.of("links", "dropped_packets", 0) / tables.of("links", "arrived_packets", 0);
    assert!((loss - 0.5).abs() < 0.001, "{loss}");
    let sojourn_ms = tables.of("links", "sojourn_max_ns", 0) * 1e-6;
    // 49 or 50 packets of 1.2 ms before it and the rest of the one in transmission.
    assert!((58.8..=60.0).contains(&sojourn_ms), "{sojourn_ms}");
}
