//! New parameters for disciplines whose queue stands.

use qdisc::{Context, Discipline, DsField, Packet, Params, Qdisc, Verdict};
use serde_json::{Value, json};
use units::{Rng, Time};

const MS: u64 = 1_000_000;

fn params(value: Value) -> Params {
    serde_json::from_value(value).expect("these are parameters")
}

fn queue(value: Value) -> Discipline<()> {
    let rng = Rng::new(1, "change");
    let context = Context { rate: None, mtu: 1514, header_bytes: 14, root: false, rng };
    Discipline::new(&params(value), context)
}

fn fill(queue: &mut Discipline<()>, flows: &[u32]) {
    for &flow in flows {
        let ds = DsField::BEST_EFFORT;
        let packet = Packet { enqueued: Time::ZERO, flow, size: 1514, ds, body: () };
        queue.enqueue(packet, Time::ZERO, &mut Vec::new());
    }
}

fn dropped(verdicts: &[Verdict<()>]) -> Vec<u32> {
    let flow = |verdict: &Verdict<()>| match verdict {
        Verdict::Dropped(packet, _) => packet.flow,
        Verdict::Marked { .. } => panic!("a change marks nothing"),
    };
    verdicts.iter().map(flow).collect()
}

#[test]
fn a_fifo_keeps_what_is_above_its_new_limit_and_takes_no_more() {
    for kind in ["pfifo", "bfifo"] {
        let limit = if kind == "pfifo" { 4 } else { 4 * 1514 };
        let mut queue = queue(json!({"kind": kind, "limit": limit}));
        fill(&mut queue, &[1, 2, 3]);
        let mut verdicts = Vec::new();
        queue.change(&params(json!({"kind": kind, "limit": 1514})), Time(MS), &mut verdicts);
        if kind == "pfifo" {
            queue.change(&params(json!({"kind": kind, "limit": 1})), Time(MS), &mut verdicts);
        }
        assert!(verdicts.is_empty());
        fill(&mut queue, &[4]);
        assert_eq!(queue.backlog().packets, 3, "{kind}");
    }
}

fn codel(limit: u32, target_ns: u64) -> Value {
    json!({
        "kind": "codel", "variant": "linux", "limit": limit, "target_ns": target_ns,
        "interval_ns": 100 * MS, "ecn": false, "ce_threshold_ns": null,
    })
}

#[test]
fn codel_drops_the_oldest_down_to_its_limit_and_stays_in_its_dropping_state() {
    let mut queue = queue(codel(1000, 5 * MS));
    fill(&mut queue, &(0..40).collect::<Vec<_>>());
    let mut verdicts = Vec::new();
    // The sojourn passes the target at 5 ms, and the dropping state begins an interval later.
    queue.dequeue(Time(6 * MS), &mut verdicts);
    queue.dequeue(Time(200 * MS), &mut verdicts);
    assert_eq!(queue.state(Time(200 * MS)).count, Some(1.0));
    verdicts.clear();
    queue.change(&params(codel(30, 8 * MS)), Time(201 * MS), &mut verdicts);
    // Two left and one was dropped by the law.
    assert_eq!(dropped(&verdicts), [3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(queue.backlog().packets, 30);
    let state = queue.state(Time(201 * MS));
    assert_eq!((state.limit, state.count), (Some(30.0), Some(1.0)));
}

#[test]
fn fq_codel_drops_what_it_would_have_sent_next() {
    let wanted = |limit: u32| {
        json!({
            "kind": "fq_codel", "variant": "linux", "limit": limit, "flows": 1024,
            "memory_limit": 33_554_432, "target_ns": 5 * MS, "interval_ns": 100 * MS,
            "quantum": 1514, "ecn": true, "ce_threshold_ns": null,
            "ce_threshold_selector": null, "drop_batch": 64,
        })
    };
    let mut queue = queue(wanted(100));
    fill(&mut queue, &[1, 1, 1, 2, 2, 2]);
    let mut verdicts = Vec::new();
    queue.change(&params(wanted(2)), Time(MS), &mut verdicts);
    // The two flows take turns.
    assert_eq!(dropped(&verdicts), [1, 2, 1, 2]);
    assert_eq!(queue.backlog().packets, 2);
}

#[test]
fn red_loses_its_packets_and_its_average() {
    let wanted = |max: u32| {
        json!({
            "kind": "red", "variant": "linux", "limit": 400_000, "min": 10_000, "max": max,
            "avpkt": 1000, "burst": 20, "probability": 0.1, "bandwidth": 10_000_000,
            "adaptive": false, "ecn": false, "harddrop": false, "nodrop": false,
        })
    };
    let mut queue = queue(wanted(90_000));
    fill(&mut queue, &[1, 2, 3]);
    assert!(queue.state(Time(MS)).average > Some(0.0));
    let mut verdicts = Vec::new();
    queue.change(&params(wanted(60_000)), Time(MS), &mut verdicts);
    assert_eq!(dropped(&verdicts), [1, 2, 3]);
    assert_eq!((queue.backlog().packets, queue.state(Time(MS)).average), (0, Some(0.0)));
}

fn cake(bandwidth: u64) -> Value {
    json!({
        "kind": "cake", "bandwidth": bandwidth, "rtt_ns": 100 * MS, "memlimit": null,
        "tins": "besteffort", "isolation": "flows", "acks": "no-ack-filter", "wash": false,
        "ingress": false, "raw": true, "overhead": 0, "mpu": 0, "cells": "noatm",
    })
}

#[test]
fn cake_releases_the_next_packet_at_the_former_rate_and_those_behind_it_at_the_new_one() {
    // 1514 bytes take 1.514 ms at 8 Mbit/s, 12.112 ms at 1 Mbit/s.
    let mut queue = queue(cake(8_000_000));
    fill(&mut queue, &[1, 1, 1]);
    let mut verdicts = Vec::new();
    assert!(queue.dequeue(Time::ZERO, &mut verdicts).is_some());
    let due = queue.holds_until().expect("it has a rate").0;
    assert!(due.abs_diff(1_514_000) < 10, "{due}");
    queue.change(&params(cake(1_000_000)), Time(MS), &mut verdicts);
    assert_eq!(queue.holds_until(), Some(Time(due)));
    assert!(queue.dequeue(Time(due), &mut verdicts).is_some());
    let next = queue.holds_until().expect("it has a rate").0 - due;
    assert!(next.abs_diff(12_112_000) < 10, "{next}");
    assert!(verdicts.is_empty());
}

#[test]
fn pie_keeps_its_probability() {
    let wanted = |limit: u32, target_ns: u64| {
        json!({
            "kind": "pie", "variant": "linux", "limit": limit, "target_ns": target_ns,
            "tupdate_ns": 15 * MS, "alpha": 2, "beta": 20, "ecn": false, "bytemode": false,
            "dq_rate_estimator": false,
        })
    };
    let mut queue = queue(wanted(1000, 15 * MS));
    fill(&mut queue, &[0; 100]);
    let mut verdicts = Vec::new();
    for at in 1..=50 {
        queue.dequeue(Time(at * 20 * MS), &mut verdicts);
    }
    let now = Time(1000 * MS);
    let before = queue.state(now).probability;
    assert!(before > Some(0.0));
    queue.change(&params(wanted(40, 30 * MS)), now, &mut verdicts);
    assert_eq!((verdicts.len(), queue.backlog().packets), (10, 40));
    assert_eq!(queue.state(now).probability, before);
}
