//! The delay-based congestion controls over a whole simulated path: Vegas keeps alpha to beta
//! segments queued, LEDBAT a queue of its target. LEDBAT yields to a flow that fills the queue, but
//! it cannot where an AQM keeps the queue short.

mod common;

use common::{MS, S, Tables, bulk, flow, link, pfifo, reno, run, scenario};
use proptest::prelude::*;
use qdisc::{CodelParams, CodelVariant, Params};
use sim::FlowSpec;
use tcp::{CongestionKind, TcpParams};

fn tcp(congestion: CongestionKind) -> TcpParams {
    reno().with(|p| p.congestion = congestion)
}

fn ledbat(target_ms: u64) -> TcpParams {
    tcp(CongestionKind::Ledbat).with(|p| {
        p.growth.initial_window = 2;
        p.growth.ledbat_target_ns = target_ms * MS;
    })
}

/// Flows over one link of `bps`, 25 ms each way; the totals leave out the first third.
fn over(bps: u64, qdisc: Params, duration_s: u64, flows: Vec<FlowSpec>) -> Tables {
    let links = vec![link("down", bps, 25 * MS, qdisc), link("up", 0, 25 * MS, pfifo(1000))];
    let mut one = scenario(duration_s * S, links, flows);
    one.warmup_ns = one.duration_ns / 3;
    run(&one)
}

/// Mean sojourn time of the first link, ms.
fn sojourn_ms(tables: &Tables) -> f64 {
    tables.of("links", "sojourn_sum_ns", 0) / tables.of("links", "sent_packets", 0) / MS as f64
}

/// The first flow's share of all delivered bytes, since the start.
fn share(tables: &Tables) -> f64 {
    let delivered = tables.column("flows", "delivered_bytes");
    delivered[0] / delivered.iter().sum::<f64>()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn vegas_alone_keeps_alpha_to_beta_segments_queued(
        mbps in 2u64..20,
        alpha in 1u32..6,
        more in 1u32..4,
    ) {
        let params = tcp(CongestionKind::Vegas).with(|p| {
p.growth.vegas_alpha = alpha;
p.growth.vegas_beta = alpha + more;
});
        let tables = over(mbps * 1_000_000, pfifo(5000), 180, vec![flow("vegas", bulk(params))]);
        // A segment of 1500 bytes takes 12/mbps ms. Linux counts cwnd · queueing/base_rtt segments
        // as queued. Up to one of these is in transmission, not in the queue.
        let segment = 12.0 / mbps as f64;
        let queueing = sojourn_ms(&tables);
        let queued = queueing / segment * (50.0 + segment + queueing) / (50.0 + segment);
        prop_assert!(queued > f64::from(alpha) - 1.0 && queued < f64::from(alpha + more) + 1.001, "{queued}");
        prop_assert_eq!(tables.of("flows", "retransmits", 0), 0.0);
        let busy = tables.of("links", "busy_ns", 0) / tables.of("links", "measured_ns", 0);
        prop_assert!(busy > 0.999, "{}", busy);
    }

    #[test]
    fn ledbat_alone_holds_the_queue_at_its_target(mbps in 2u64..20, target_ms in 20u64..100, delayed in 1u32..3) {
        let params = ledbat(target_ms).with(|p| p.acks.delayed_ack_segments = delayed);
        let tables = over(mbps * 1_000_000, pfifo(5000), 300, vec![flow("ledbat", bulk(params))]);
        // Near the target growth is slow, and the window has whole segments of 12/mbps ms.
        let (mean, segment) = (sojourn_ms(&tables), 12.0 / mbps as f64);
        let target = target_ms as f64;
        prop_assert!(mean > 0.85 * target - segment && mean < target + 2.0 * segment, "{mean} for {target}");
        prop_assert_eq!(tables.of("flows", "retransmits", 0), 0.0);
    }
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

fn ledbat_beside_cubic(qdisc: Params) -> f64 {
    let cubic = tcp(CongestionKind::Cubic).with(|p| p.growth.hystart = true);
    let flows = vec![flow("ledbat", bulk(ledbat(100))), flow("cubic", bulk(cubic))];
    share(&over(10_000_000, qdisc, 300, flows))
}

#[test]
fn ledbat_leaves_a_long_queue_to_cubic() {
    assert!(ledbat_beside_cubic(pfifo(1000)) < 0.05);
}

#[test]
fn an_aqm_takes_ledbats_low_priority_away() {
    let share = ledbat_beside_cubic(codel());
    assert!((0.3..0.6).contains(&share), "{share}");
}

#[test]
fn traffic_on_the_return_path_does_not_slow_ledbat_down() {
    // ACKs wait behind more than 100 ms of other data. LEDBAT uses only the delay of the path out.
    // If it used the round trip, it would be far above its target and stay at two segments. Bursts
    // of ACKs cause bursts of segments, so the flow uses less than the whole link.
    let mut flows =
        vec![flow("ledbat", bulk(ledbat(100))), flow("back", bulk(tcp(CongestionKind::Cubic)))];
    (flows[1].path, flows[1].back) = (vec![1], vec![0]);
    let links = vec![
        link("down", 10_000_000, 25 * MS, pfifo(1000)),
        link("up", 10_000_000, 25 * MS, pfifo(300)),
    ];
    let mut one = scenario(300 * S, links, flows);
    one.warmup_ns = 150 * S;
    let tables = run(&one);
    let back = tables.of("links", "sojourn_sum_ns", 1) / tables.of("links", "sent_packets", 1);
    assert!(back > 100.0 * MS as f64, "{back}");
    let busy = tables.of("links", "busy_ns", 0) / tables.of("links", "measured_ns", 0);
    assert!(busy > 0.8, "{busy}");
}
