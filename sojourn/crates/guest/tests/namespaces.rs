//! The whole program, in its own namespaces on this host's kernel: client, router, server, and a 10
//! Mbit/s shaper over a short queue. The tests compare one measurement with another: the taps with
//! the qdisc's counters, the taps with the queue's backlog, and pings with the packets at the taps.
//! No value depends on the speed of this machine.
//!
//! Needs root, ip and tc; otherwise the tests print a line and pass.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};

/// Returns the reason why these tests can't run here.
fn missing() -> Option<&'static str> {
    let works = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).output().is_ok_and(|done| done.status.success())
    };
    if !works("ip", &["-V"]) || !works("tc", &["-V"]) {
        return Some("ip and tc are not here (Debian: iproute2)");
    }
    let tbf = "ip link add t0 type veth peer name t1 && tc qdisc add dev t0 root tbf rate 1mbit burst 5k limit 9k && \
               tc qdisc add dev t0 clsact";
    if !works("unshare", &["-n", "sh", "-c", tbf]) {
        return Some("network namespaces with veth and tbf need root and a kernel that has them");
    }
    None
}

macro_rules! or_leave_out {
    () => {
        if let Some(reason) = missing() {
            eprintln!("left out: {reason}");
            return;
        }
    };
}

/// The results: the index, and every column by `table/name`.
struct Results {
    index: Value,
    columns: HashMap<String, Vec<i64>>,
}

impl Results {
    fn column(&self, name: &str) -> &[i64] {
        self.columns.get(name).unwrap_or_else(|| panic!("no column {name}"))
    }

    /// Returns the values of a column in the rows where the column `other` has this value.
    fn of(&self, name: &str, other: &str, value: i64) -> Vec<i64> {
        let both = self.column(name).iter().zip(self.column(other));
        both.filter(|&(_, &o)| o == value).map(|(&v, _)| v).collect()
    }
}

fn run(name: &str, plan: &Value) -> (Output, PathBuf) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (plan_file, out) =
        (folder.join(format!("{name}.json")), folder.join(format!("{name}.tar")));
    std::fs::write(&plan_file, plan.to_string()).unwrap();
    let _ = std::fs::remove_file(&out);
    let done = Command::new(env!("CARGO_BIN_EXE_sojourn-guest"))
        .args(["--plan", plan_file.to_str().unwrap(), "--out", out.to_str().unwrap()])
        .output()
        .unwrap();
    (done, out)
}

fn results(name: &str, plan: &Value) -> Results {
    let (done, out) = run(name, plan);
    let output = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{output}{}", String::from_utf8_lossy(&done.stderr));
    let marks: Vec<&str> = output.lines().map(|l| l.split(' ').next().unwrap()).collect();
    let check = plan.get("check").map(|_| "@CHECK");
    let expected: Vec<&str> =
        ["@BOOT"].into_iter().chain(check).chain(["@START", "@DONE", "@END"]).collect();
    assert_eq!(marks, expected, "{output}");
    let mut files = HashMap::new();
    let tar = std::fs::read(out).unwrap();
    let mut at = 0;
    while tar[at] != 0 {
        let text = |from: usize, to: usize| {
            String::from_utf8(
                tar[at + from..at + to].iter().copied().take_while(|&b| b != 0).collect(),
            )
            .unwrap()
        };
        let size = usize::from_str_radix(text(124, 136).trim(), 8).unwrap();
        files.insert(text(0, 100), tar[at + 512..at + 512 + size].to_vec());
        at += 512 + size.next_multiple_of(512);
    }
    let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
    let mut columns = HashMap::new();
    for (table, about) in index["tables"].as_object().unwrap() {
        for column in about["columns"].as_array().unwrap() {
            let name = format!("{table}/{}", column["name"].as_str().unwrap());
            let bytes = &files[&name];
            let values: Vec<i64> = match column["type"].as_str().unwrap() {
                "i64" => {
                    bytes.chunks(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect()
                }
                "f64" => bytes
                    .chunks(8)
                    .map(|b| f64::from_le_bytes(b.try_into().unwrap()) as i64)
                    .collect(),
                "i32" => bytes
                    .chunks(4)
                    .map(|b| i32::from_le_bytes(b.try_into().unwrap()).into())
                    .collect(),
                _ => bytes.iter().map(|&b| b.into()).collect(),
            };
            assert_eq!(values.len() as u64, about["rows"].as_u64().unwrap(), "{name}");
            columns.insert(name, values);
        }
    }
    Results { index, columns }
}

/// Client, router and server; the router runs `qdisc` with tc.
fn base(qdisc: &str) -> Value {
    let batch = |program: &str, namespace: &str, text: &str| json!({"do": "run", "namespace": namespace, "argv": [program, "-batch", "-"], "stdin": text});
    let offloads_off = |namespace: &str, device: &str| {
        // Without super-packets, the queue contains the packets of the wire.
        batch("ip", namespace, &format!("link set dev {device} gso_max_segs 1\n"))
    };
    let mut plan = json!({
        "version": 2, "seed": 1, "duration_ns": 4_000_000_000u64, "warmup_ns": 0, "settle_ns": 50_000_000, "linger_ns": 600_000_000,
        "deadline_ns": 60_000_000_000u64, "modules": [], "namespaces": ["client", "router", "server"],
        "setup": [
            batch("ip", "client", "link add c type veth peer name c netns router\naddr add 10.0.1.1/24 dev c\nlink set c up\n"),
            batch("ip", "server", "link add s type veth peer name s netns router\naddr add 10.0.2.1/24 dev s\nlink set s up\n"),
            batch("ip", "router", "addr add 10.0.1.2/24 dev c\naddr add 10.0.2.2/24 dev s\nlink set c up\nlink set s up\n"),
            batch("ip", "client", "route add default via 10.0.1.2\n"),
            batch("ip", "server", "route add default via 10.0.2.2\n"),
            offloads_off("client", "c"), offloads_off("server", "s"),
            {"do": "write", "namespace": "router", "path": "/proc/sys/net/ipv4/ip_forward", "text": "1"},
            batch("tc", "router", qdisc),
        ],
        "events": [], "devices": [], "taps": [], "flows": [],
        "sample": {"queue_ns": 10_000_000, "flow_ns": 100_000_000},
        "output": {"modules": [], "mount": null, "path": "unused"},
    });
    // The qdisc would count IPv6's own packets, which belong to no flow.
    if std::path::Path::new("/proc/sys/net/ipv6").exists() {
        let setup = plan["setup"].as_array_mut().unwrap();
        for namespace in ["client", "router", "server"] {
            setup.insert(
                0,
                json!({"do": "write", "namespace": namespace, "text": "1",
                "path": "/proc/sys/net/ipv6/conf/default/disable_ipv6"}),
            );
        }
    }
    plan
}

fn flow(name: &str, port: u16, traffic: Value) -> Value {
    json!({
        "name": name, "from": {"namespace": "client", "address": "10.0.1.1"},
        "to": {"namespace": "server", "address": "10.0.2.1"}, "port": port,
        "start_ns": 0, "stop_ns": null, "ds": 0, "traffic": traffic,
    })
}

fn point(namespace: &str, device: &str, direction: &str) -> Value {
    json!([{"namespace": namespace, "device": device, "direction": direction}])
}

fn tap(before: Value, after: Value, arrived: Value) -> Value {
    let stages = json!([
        {"name": "before", "points": before}, {"name": "after", "points": after},
        {"name": "arrived", "points": arrived},
    ]);
    json!({"link": 0, "header_bytes": 14, "out": true, "rows": true, "card": null, "seen": {
        "stages": stages, "only": null, "ring_bytes": 4 << 20, "delay_ns": 0, "loses": false,
        "drops": {"in_order": true, "how": "arrival", "limit": null}}})
}

fn bulk(bytes: Value) -> Value {
    json!({"kind": "bulk", "bytes": bytes, "tcp": {"congestion": "reno", "mss": null, "window_bytes": null}})
}

fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.into_iter().collect();
    assert!(!values.is_empty(), "a mean of nothing");
    values.iter().sum::<f64>() / values.len() as f64
}

fn agree(what: &str, a: f64, b: f64, within: f64) {
    assert!((a / b - 1.0).abs() <= within, "{what}: {a} and {b} differ by more than {within}");
}

const LIMIT: f64 = 60_000.0;
/// Bytes of Ethernet's header, which a qdisc counts and the IP packet's size does not include.
const HEADER: f64 = 14.0;

#[test]
fn taps_counters_and_probes_agree_about_one_queue() {
    or_leave_out!();
    let mut plan = base(
        "qdisc add dev s root handle 1: tbf rate 10mbit burst 3000 limit 1000000\nqdisc add dev s parent 1:1 handle 2: bfifo limit 60000\n",
    );
    plan["devices"] = json!([{
        "link": 0, "namespace": "router", "name": "s",
        "gauges": ["mtu", "there/is/none"],
    }]);
    plan["taps"] = json!([tap(
        point("router", "c", "in"),
        point("router", "s", "out"),
        point("server", "s", "in")
    )]);
    let video = json!({"source": "model", "bps": 500_000, "fps": 25.0, "gop": 12, "i_ratio": 4.0, "cv": 0.3});
    let constant = |value: u64| json!({"law": "constant", "value": value});
    plan["flows"] = json!([
        flow("bulk.1", 5001, bulk(Value::Null)),
        flow("bulk.2", 5002, bulk(Value::Null)),
        flow("sized", 5003, bulk(json!(100_000))),
        flow(
            "web",
            5004,
            json!({"kind": "transfers", "bytes": constant(20_000), "pause_ns": constant(100_000_000),
            "tcp": {"congestion": null, "mss": null, "window_bytes": null}})
        ),
        flow(
            "udp",
            6001,
            json!({"kind": "udp", "bps": 400_000, "packet_bytes": 500, "on_ns": null, "off_ns": null})
        ),
        flow("video", 6002, json!({"kind": "video", "frames": video, "payload_bytes": 1000})),
        flow("ping", 7, json!({"kind": "ping", "interval_ns": 20_000_000, "packet_bytes": 84})),
        flow("echo", 7, json!({"kind": "echo", "interval_ns": 20_000_000, "packet_bytes": 84})),
    ]);
    // The datagrams have ECT(0).
    plan["flows"][4]["ds"] = json!(2);
    // Nothing is sent at the end, so the last sample and the taps agree.
    for flow in plan["flows"].as_array_mut().unwrap() {
        flow["stop_ns"] = json!(3_000_000_000u64);
    }
    let got = results("agree", &plan);

    for flow in got.index["flows"].as_array().unwrap() {
        assert_eq!(flow["errors"], 0, "{flow}");
    }
    let tap = &got.index["taps"][0];
    for stage in tap["stages"].as_array().unwrap() {
        assert_eq!((&stage["lost_records"], &stage["unexpected"]), (&json!(0), &json!(0)), "{tap}");
    }

    // The queue dropped every packet that is missing after it, and no others.
    let kinds: Vec<&str> =
        got.index["qdisc_kinds"].as_array().unwrap().iter().map(|k| k.as_str().unwrap()).collect();
    let bfifo = kinds.iter().position(|&k| k == "bfifo").unwrap() as i64;
    let drops = *got.of("qdisc/drops", "qdisc/kind", bfifo).last().unwrap();
    let (before, after) = (got.column("tap0/t_before_ns"), got.column("tap0/t_after_ns"));
    let end = *got.of("qdisc/t_ns", "qdisc/kind", bfifo).last().unwrap();
    let missing = before.iter().zip(after).filter(|&(&b, &a)| a < 0 && b <= end).count() as i64;
    assert!(drops > 10, "two bulk flows fill 60 kB: {drops}");
    assert_eq!(missing, drops);

    // The packets between the taps are the queue: it reaches its limit and never exceeds it.
    let mut changes: Vec<(i64, f64)> = before
        .iter()
        .zip(after)
        .zip(got.column("tap0/bytes"))
        .filter(|&((_, &a), _)| a >= 0)
        .flat_map(|((&b, &a), &bytes)| [(b, bytes as f64 + HEADER), (a, -(bytes as f64 + HEADER))])
        .collect();
    changes.sort_by(|x, y| x.0.cmp(&y.0).then(x.1.total_cmp(&y.1)));
    let mut inside = 0.0;
    let over_time: Vec<(i64, f64)> = changes
        .iter()
        .map(|&(time, change)| {
            inside += change;
            (time, inside)
        })
        .collect();
    agree("full queue", over_time.iter().map(|&(_, bytes)| bytes).fold(0.0, f64::max), LIMIT, 0.03);

    // At the sample times, the tapped queue equals the qdisc's own backlog.
    let times = got.of("qdisc/t_ns", "qdisc/kind", bfifo);
    let sampled = got.of("qdisc/backlog_bytes", "qdisc/kind", bfifo);
    assert!(sampled.iter().all(|&bytes| bytes as f64 <= LIMIT));
    let tapped = times.iter().map(|&time| {
        let passed = over_time.partition_point(|&(t, _)| t <= time);
        passed.checked_sub(1).map_or(0.0, |last| over_time[last].1)
    });
    agree("backlog", mean(tapped), mean(sampled.iter().map(|&bytes| bytes as f64)), 0.05);

    // The device and the tap after the queue saw the same bytes.
    let device = got.column("device/sent_bytes");
    let leaving: f64 = after
        .iter()
        .zip(got.column("tap0/bytes"))
        .filter(|&(&a, _)| a >= 0 && a <= end)
        .map(|(_, &bytes)| bytes as f64 + HEADER)
        .sum();
    agree("bytes sent", leaving, (device[device.len() - 1] - device[0]) as f64, 0.01);

    // TCP's delivered bytes passed the tap: 1448 of 1500 bytes in each full packet.
    for bulk in [0, 1] {
        let received = *got.of("tcp/received_bytes", "tcp/flow", bulk).last().unwrap() as f64;
        let rows = got.column("tap0/flow").iter().zip(got.column("tap0/reverse")).zip(after);
        let passed: f64 = rows
            .zip(got.column("tap0/bytes"))
            .filter(|&(((&flow, &back), &a), &bytes)| {
                flow == bulk && back == 0 && (0..=end).contains(&a) && bytes == 1500
            })
            .count() as f64
            * 1448.0;
        agree("bulk", received, passed, 0.05);
        let retransmitted = *got.of("tcp/total_retrans_segments", "tcp/flow", bulk).last().unwrap();
        assert!(retransmitted > 0);
    }
    // Transfers: the sized one is complete, the others have their size and are sequential.
    assert_eq!(got.of("transfers/bytes", "transfers/flow", 2), [100_000]);
    let web = got.of("transfers/bytes", "transfers/flow", 3);
    assert!(web.len() >= 2 && web.iter().all(|&bytes| bytes == 20_000), "{web:?}");
    let (starts, ends) = (
        got.of("transfers/start_ns", "transfers/flow", 3),
        got.of("transfers/end_ns", "transfers/flow", 3),
    );
    assert!(starts[1..].iter().zip(&ends).all(|(start, end)| start - end >= 100_000_000));

    // Probes and datagrams measure the same delay on the path as the tap in its only queue.
    let sojourn_of = |flow: i64| {
        let rows =
            before.iter().zip(after).zip(got.column("tap0/flow")).zip(got.column("tap0/reverse"));
        mean(
            rows.filter(|&(((_, &a), &f), &back)| f == flow && back == 0 && a >= 0)
                .map(|(((&b, &a), _), _)| (a - b) as f64),
        )
    };
    for (flow, name) in [(6, "ping"), (7, "echo")] {
        let sent = got.of("probes/sent_ns", "probes/flow", flow);
        let turned = got.of("probes/turned_ns", "probes/flow", flow);
        let received = got.of("probes/received_ns", "probes/flow", flow);
        assert_eq!(sent.len(), 150);
        let answered = || sent.iter().zip(&turned).zip(&received).filter(|&(_, &r)| r >= 0);
        assert!(answered().count() > 100, "{name}");
        assert!(answered().all(|((s, t), r)| s <= t && t <= r), "{name}");
        agree(name, mean(answered().map(|((&s, &t), _)| (t - s) as f64)), sojourn_of(flow), 0.05);
    }
    for (flow, name) in [(4, "udp"), (5, "video")] {
        let sent = got.of("datagrams/sent_ns", "datagrams/flow", flow);
        let received = got.of("datagrams/received_ns", "datagrams/flow", flow);
        let arrived =
            sent.iter().zip(&received).filter(|&(_, &r)| r >= 0).map(|(&s, &r)| (r - s) as f64);
        agree(name, mean(arrived), sojourn_of(flow), 0.05);
        let lost = received.iter().filter(|&&r| r < 0).count();
        let rows = after.iter().zip(got.column("tap0/flow")).zip(got.column("tap0/reverse"));
        let missing = rows.filter(|&((&a, &f), &back)| f == flow && back == 0 && a < 0).count();
        assert_eq!(lost, missing, "{name}");
    }
    // 400 kbit/s with 500 bytes is one packet every 10 ms.
    assert_eq!(got.of("datagrams/seq", "datagrams/flow", 4).len(), 300);
    // The ECN-capable flow has ECT(0), and no packet was marked.
    let ds = got.of("tap0/ds_out", "tap0/flow", 4);
    assert!(!ds.is_empty() && ds.iter().all(|&ds| ds == 2));

    // Gauges: a number is read; a missing file gives -1.
    assert!(got.of("gauge/value", "gauge/gauge", 0).iter().all(|&mtu| mtu == 1500));
    assert!(got.of("gauge/value", "gauge/gauge", 1).iter().all(|&value| value == -1));
}

#[test]
fn a_check_runs_first_and_has_separate_results() {
    or_leave_out!();
    let ping = || json!({"kind": "ping", "interval_ns": 20_000_000, "packet_bytes": 84});
    let small = |pings: u64| {
        let mut plan = base("");
        plan["duration_ns"] = json!(pings * 20_000_000);
        plan["linger_ns"] = json!(0);
        plan["flows"] = json!([flow("ping", 7, ping())]);
        plan
    };
    let mut plan = small(10);
    let mut check = small(5).to_string();
    for namespace in ["client", "router", "server"] {
        check = check.replace(&format!("\"{namespace}\""), &format!("\"c-{namespace}\""));
        check = check.replace(&format!("netns {namespace}"), &format!("netns c-{namespace}"));
    }
    plan["check"] = serde_json::from_str(&check).unwrap();
    let results = results("check", &plan);
    assert_eq!(results.index["flows"][0]["sent_packets"], 10);
    assert_eq!(results.index["check"]["flows"][0]["sent_packets"], 5);
    assert_eq!(results.index["check"]["tables"]["probes"]["rows"], 5);
    assert_eq!(results.column("probes/seq").len(), 10);
}

#[test]
fn a_tap_under_clsact_sees_packets_before_the_host_s_queue() {
    or_leave_out!();
    let mut plan = base("qdisc add dev c root handle 1: pfifo limit 100\n");
    let setup = plan["setup"].as_array_mut().unwrap();
    setup.push(json!({"do": "run", "namespace": "client", "argv": ["ip", "-batch", "-"],
        "stdin": "link add m0 type veth peer name m1\nlink set m0 up\nlink set m1 up\n"}));
    setup.push(json!({"do": "run", "namespace": "client", "argv": ["tc", "-batch", "-"],
        "stdin": "qdisc add dev c root handle 1: tbf rate 10mbit burst 3000 limit 30000\nqdisc add dev c clsact\n\
                  filter add dev c egress protocol all u32 match u32 0 0 action mirred egress mirror dev m0\n"}));
    plan["duration_ns"] = json!(2_000_000_000u64);
    plan["devices"] = json!([{"link": 0, "namespace": "client", "name": "c", "gauges": []}]);
    plan["taps"] = json!([tap(
        point("client", "m0", "out"),
        point("client", "c", "out"),
        point("router", "c", "in")
    )]);
    // An unresponsive sender at 1.5 times the rate: the sender's own queue drops a third.
    plan["flows"] = json!([flow(
        "udp",
        6001,
        json!({"kind": "udp", "bps": 15_000_000, "packet_bytes": 1000,
        "on_ns": null, "off_ns": null})
    )]);
    // Nothing is sent at the end, so the last sample and the taps agree.
    plan["flows"][0]["stop_ns"] = json!(1_500_000_000u64);
    let got = results("own-queue", &plan);
    let kinds = got.index["qdisc_kinds"].as_array().unwrap();
    let tbf = kinds.iter().position(|k| k == "tbf").unwrap() as i64;
    let drops = *got.of("qdisc/drops", "qdisc/kind", tbf).last().unwrap();
    let (before, after) = (got.column("tap0/t_before_ns"), got.column("tap0/t_after_ns"));
    assert_eq!(after.iter().filter(|&&a| a < 0).count() as i64, drops);
    assert!(drops as f64 > 0.2 * before.len() as f64, "{drops} of {}", before.len());
    assert_eq!(
        before.len(),
        got.column("datagrams/seq").len(),
        "each datagram is seen before the queue"
    );
    // Packets that left the queue reached the other side of the wire, in order and at once.
    let arrived = got.column("tap0/t_out_ns");
    assert!(after.iter().zip(arrived).all(|(&a, &r)| (a < 0) == (r < 0) && a <= r));
}

#[test]
fn errors_are_reported() {
    or_leave_out!();
    let run_output = |name: &str, plan: &Value| {
        let (done, out) = run(name, plan);
        assert!(!out.exists(), "no results");
        (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned())
    };
    let (code, text) = run_output("unknown-qdisc", &base("qdisc add dev s root bloat\n"));
    assert_eq!(code, Some(1));
    assert!(text.contains("@FAIL setup[") && text.contains("`tc -batch -` in router"), "{text}");

    let mut plan = base("qdisc add dev s root pfifo\n");
    plan["frobnicate"] = json!(1);
    let (code, text) = run_output("unknown-field", &plan);
    assert_eq!(code, Some(2));
    assert!(text.contains("unknown field `frobnicate`"), "{text}");

    let mut plan = base("qdisc add dev s root pfifo\n");
    plan["flows"] = json!([flow(
        "a",
        5001,
        json!({"kind": "bulk", "bytes": null,
        "tcp": {"congestion": "bloat", "mss": null, "window_bytes": null}})
    )]);
    let (_, text) = run_output("unknown-congestion", &plan);
    assert!(text.contains("flow 'a': this kernel has no congestion control 'bloat'"), "{text}");

    let mut plan = base("qdisc add dev s root pfifo\n");
    plan["deadline_ns"] = json!(500_000_000);
    let (code, text) = run_output("deadline", &plan);
    assert_eq!(code, Some(1));
    assert!(text.contains("@FAIL deadline"), "{text}");
}

#[test]
fn a_flow_that_fails_does_not_end_the_run() {
    or_leave_out!();
    let mut plan = base("qdisc add dev s root pfifo\n");
    plan["duration_ns"] = json!(300_000_000);
    let mut lost = flow("lost", 5001, bulk(json!(1000)));
    // Its address exists when it listens, and its route is removed before it connects.
    lost["start_ns"] = json!(50_000_000);
    plan["events"] = json!([{"at_ns": 10_000_000, "step": {"do": "run", "namespace": "client",
        "argv": ["ip", "route", "del", "default"], "stdin": null}}]);
    plan["flows"] = json!([lost]);
    let got = results("lost", &plan);
    let flow = &got.index["flows"][0];
    assert_eq!(flow["errors"], 1);
    assert!(flow["error"].as_str().unwrap().contains("unreachable"), "{flow}");
    assert!(got.column("transfers/bytes").is_empty());
}
