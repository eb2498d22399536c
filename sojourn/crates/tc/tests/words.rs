//! tc's syntax: the values of words, their canonical text, and the errors of wrong words.

use link::{Cells, Framing};
use proptest::prelude::*;
use qdisc::{
    AckFilterMode, CakeCells, CakeParams, ChokeParams, EtsParams, FqParams, HhfParams, Isolation,
    Params, PrioParams, SfbParams, SfqParams, TbfLinkLayer, TbfParams, TinMode,
};
use tc::layer::{LAYERS, write_layer};
use tc::{Discipline, Note, Police, RECORDS, Read, Shaper, Value, read_layer, record};

fn parse(text: &str) -> Discipline {
    Discipline::parse(text).unwrap_or_else(|error| panic!("{text}: {error}; {}", error.hint))
}

fn n(count: u64) -> Value {
    Value::Count(count)
}

fn text(words: &str) -> Value {
    Value::Text(words.to_owned().into())
}

const ON: Value = Value::Flag(true);
const OFF: Value = Value::Flag(false);
const UNSET: Value = Value::Unset;

#[test]
fn words_have_the_meaning_that_they_have_in_tc() {
    let real = Value::Real;
    let expected: &[(&str, &[(&str, Value)])] = &[
        ("pfifo", &[("limit", n(1000))]),
        ("pfifo limit 1k", &[("limit", n(1024))]),
        // As tc prints packets.
        ("pfifo limit 100p", &[("limit", n(100))]),
        ("codel limit 1000p", &[("limit", n(1000))]),
        ("sfq limit 127p", &[("limit", n(127))]),
        ("bfifo", &[("limit", n(1_514_000))]),
        ("pfifo_fast", &[("variant", text("linux")), ("limit", n(1000))]),
        ("pfifo_fast variant shared limit 64", &[("variant", text("shared")), ("limit", n(64))]),
        (
            "codel target 5000 interval 100ms",
            &[
                ("target_ns", n(5_000_000)),
                ("interval_ns", n(100_000_000)),
                ("ecn", OFF),
                ("limit", n(1000)),
            ],
        ),
        (
            "fq_codel",
            &[
                ("limit", n(10240)),
                ("flows", n(1024)),
                ("quantum", n(1514)),
                ("ecn", ON),
                ("drop_batch", n(64)),
            ],
        ),
        ("fq_codel", &[("memory_limit", n(1 << 25)), ("ce_threshold_ns", UNSET)]),
        (
            "fq_codel ce_threshold 1ms ce_threshold_selector 1/3",
            &[
                ("ce_threshold_ns", n(1_000_000)),
                ("ce_threshold_selector", Value::Text("0x1/0x3".into())),
            ],
        ),
        ("fq_codel noecn ce_threshold 1ms", &[("ecn", OFF), ("ce_threshold_ns", n(1_000_000))]),
        ("codel variant=rfc8289", &[("variant", text("rfc"))]),
        // By the name that fixes the meaning.
        ("fq_codel variant linux6.12", &[("variant", text("linux"))]),
        (
            "red variant linux6.12 limit 400000 avpkt 1000",
            &[("variant", text("linux")), ("limit", n(400_000))],
        ),
        // tc: max = limit/4, min = max/3, burst = (2 min + max) / (3 avpkt).
        (
            "red limit 400000 avpkt 1000",
            &[
                ("max", n(100_000)),
                ("min", n(33_333)),
                ("burst", n(55)),
                ("bandwidth", n(10_000_000)),
            ],
        ),
        (
            "red limit 400k avpkt 1000 min 30000 ecn adaptative bandwidth 1kbps",
            &[("limit", n(409_600)), ("max", n(90_000)), ("bandwidth", n(8_000)), ("adaptive", ON)],
        ),
        (
            "red variant ns2",
            &[("limit", n(50)), ("min", real(0.0)), ("probability", real(0.1)), ("byte_mode", ON)],
        ),
        (
            "red variant ns3",
            &[("limit", n(25)), ("max", real(15.0)), ("weight", real(0.002)), ("byte_mode", OFF)],
        ),
        (
            "red variant ns3 adaptive max 30",
            &[("min", real(0.0)), ("max", real(30.0)), ("weight", real(0.0)), ("adaptive", ON)],
        ),
        (
            "adt limit 500",
            &[("utilisation", real(0.99)), ("increase", real(1.01)), ("sample_ns", n(300_000_000))],
        ),
        (
            "pie",
            &[
                ("variant", text("linux")),
                ("limit", n(1000)),
                ("target_ns", n(15_000_000)),
                ("tupdate_ns", n(15_000_000)),
                ("alpha", n(2)),
                ("beta", n(20)),
                ("ecn", OFF),
                ("bytemode", OFF),
                ("dq_rate_estimator", OFF),
            ],
        ),
        (
            "dualpi2 variant rfc9332 alpha 0.2",
            &[
                ("variant", text("rfc")),
                ("coupling_factor", n(2)),
                ("min_th_ns", n(800_000)),
                ("range_ns", n(400_000)),
                ("classic_protection", real(6.25)),
                ("tupdate_ns", n(15_000_000)),
                ("alpha", real(0.2)),
                ("beta", real(3.0)),
            ],
        ),
        (
            "dualpi2 variant docsis no_queue_protection max_th 2ms",
            &[("queue_protection", OFF), ("max_th_ns", n(2_000_000)), ("target_ns", n(10_000_000))],
        ),
        ("pie variant linux6.12 ecn bytemode", &[("variant", text("linux")), ("bytemode", ON)]),
        ("pie variant rfc8033", &[("variant", text("rfc")), ("alpha", real(2.0)), ("ecn", OFF)]),
        (
            "pie variant docsis beta 2.5",
            &[("target_ns", n(10_000_000)), ("tupdate_ns", n(16_000_000)), ("beta", real(2.5))],
        ),
        (
            "fq_pie target 20ms noecn",
            &[
                ("limit", n(10_240)),
                ("flows", n(1024)),
                ("target_ns", n(20_000_000)),
                ("quantum", n(1514)),
                ("ecn_prob", n(10)),
                ("ecn", OFF),
            ],
        ),
        ("hhf hh_limit 64", &[("limit", UNSET), ("hh_limit", n(64))]),
        ("sfq quantum 2k headdrop", &[("limit", UNSET), ("quantum", n(2048)), ("headdrop", ON)]),
        (
            "cake bandwidth 8mbit rtt 50ms besteffort",
            &[("bandwidth", n(8_000_000)), ("rtt_ns", n(50_000_000)), ("tins", text("besteffort"))],
        ),
        (
            "fred limit 40",
            &[
                ("min", real(10.0)),
                ("max", real(20.0)),
                ("probability", real(0.02)),
                ("minq", n(4)),
                ("many_flows", OFF),
            ],
        ),
        ("fred min 5 many_flows", &[("limit", n(100)), ("max", real(10.0)), ("many_flows", ON)]),
        (
            "avq limit 100k alpha 0.5",
            &[("limit", n(102_400)), ("gamma", real(0.98)), ("alpha", real(0.5)), ("rate", UNSET)],
        ),
        // As for red: max is a quarter of the limit, min a third of max. The last number applies to
        // the rest.
        (
            "gred vqs 3 limit 60k 40000 avpkt 1000 probability 0.1 prio 1 2",
            &[
                ("limit", text("61440 40000 40000")),
                ("min", text("5120 3333 3333")),
                ("max", text("15360 10000 10000")),
                ("burst", text("8 5 5")),
                ("prio", text("1 2")),
                ("grio", UNSET),
            ],
        ),
        (
            "ets bands 3 quanta 3000 1500 strict 1 priomap 0 1 2",
            &[
                ("bands", n(3)),
                ("quanta", text("3000 1500")),
                ("strict", n(1)),
                ("priomap", text("0 1 2")),
            ],
        ),
    ];
    for (words, fields) in expected {
        let discipline = parse(words);
        for (name, value) in *fields {
            assert_eq!(discipline.fields().get(name), value, "{words}: {name}");
        }
    }
}

#[test]
fn an_error_points_at_the_wrong_word() {
    let wrong = [
        ("codl", 0, "codel"),
        ("dualpi2 step_thresh 2q", 20, "ms"),
        ("dualpi2 classic_protection 101%", 27, "from 0 to 100"),
        ("dualpi2 max_rtt 10s", 0, "max_rtt like 100ms"),
        ("blue increment 0", 15, "above 0 to 1"),
        ("codel limit 08", 12, "write 8"),
        ("codel target 4294967296us", 13, "the most is"),
        ("dualpi2 overflow drop_on_overload", 17, "once"),
        ("cak", 0, "cake"),
        ("htb rate 1mbit", 0, "shaper"),
        ("pie targt 15ms", 4, "did you mean target"),
        ("pie target 15.0005ms", 11, "15ms"),
        ("pie alpha 33", 10, "from 0 to 32"),
        ("pie variant docsis ecn", 19, "variant linux has it"),
        ("pie variant rfc tupdate 0", 24, "write a time"),
        ("cake besteffort diffserv4", 16, "once"),
        ("cake pppoe-ptm pppoe-ptm", 15, "once"),
        ("cake overhead 4 atm overhead 4", 20, "once"),
        ("cake overhead -65", 14, "-64 to 256"),
        ("cake overhead 257", 14, "-64 to 256"),
        ("cake overhead 4.5", 14, "like 1000"),
        ("cake bandwidth unlimited", 15, "write unlimited alone, or bandwidth RATE"),
        ("cake rtt 50ms lan", 0, "keep one"),
        ("cake variant linux", 5, "leave variant out"),
        ("choke bandwidth 10mbit", 0, "choke limit 1000"),
        ("choke limit 100", 0, "bandwidth"),
        ("choke limit 100 bandwidth 1mbit min 30 max 20", 0, "min below max"),
        ("choke limit 10 bandwidth 1mbit min 3 max 20", 0, "limit"),
        ("ets", 0, "ets bands 3"),
        ("fred min 20 max 10", 0, "min below max"),
        ("fred minq 0", 10, "from 1"),
        ("avq gamma 1.5", 10, "above 0 to 1"),
        ("gred limit 60000", 0, "gred limit 60000 avpkt 1000"),
        ("gred vqs 2 limit 6000 avpkt 1000 prio 1 2 3", 0, "vqs 3"),
        ("gred vqs 17 limit 6000 avpkt 1000", 9, "from 1 to 16"),
        ("gred limit 6000 avpkt 1000 priomap 1", 0, "existing virtual queues"),
        ("gred limit 60000 6000 avpkt 1000 max 10000", 0, "limit of at least 10000"),
        ("gred limit 60000 avpkt 1000 probability 0.1 2", 40, "above 0 to 1"),
        ("wred", 0, "nearest: gred"),
        ("mq fq_codle", 3, "did you mean fq_codel?"),
        ("mq codel target 5xs", 16, "known units"),
        ("mq mq pfifo", 3, "mq fq_codel"),
        ("mq  cake_mq bandwidth 5mbit", 4, "mq fq_codel"),
        ("mq drr classes 2", 3, "without classes"),
        ("cake_mq autorate-ingress", 8, "bandwidth RATE"),
        ("drr", 0, "drr classes 2"),
        ("drr classes 2 quanta 1 2 3", 0, "classes 3"),
        ("drr quanta 1500 0", 0, "the bytes that its class may send"),
        ("drr classes 2 priomap 0 2", 0, "existing classes"),
        ("ets bands 2 strict 1 quanta 1500 3000", 0, "bands 3"),
        ("ets strict 0", 0, "from 1 to 16"),
        ("ets quanta 1500 0", 0, "the bytes that its band may send"),
        ("ets bands 3 priomap 0 1 3", 0, "existing bands"),
        ("prio priomap 1 2 x", 13, "1000"),
        ("prio bands 17", 11, "from 2 to 16"),
        ("prio bands 2", 0, "priomap with a band for each"),
        ("prio priomap 1 2 3", 0, "priomap with a band for each"),
        ("prio priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", 0, "16 bands at most"),
        ("codel targt 5ms", 6, "target"),
        ("codel target", 6, "TIME"),
        ("codel target 5 ms", 15, "known words"),
        ("codel target 5parsec", 13, "ms"),
        ("fq_codel flows 12p", 15, "write 12"),
        ("bfifo limit 100p", 12, "known units"),
        ("codel target 5 ms", 15, "write target 5ms"),
        ("fq_codel interval 100 MS", 22, "write interval 100ms"),
        ("codel 5ms", 6, "write target 5ms"),
        ("pfifo 100", 6, "write limit 100"),
        ("codel 100p", 6, "write limit 100;"),
        ("netem delay 10ms", 0, r#"delay = "10 ms""#),
        ("blackhole", 0, r#"loss = "100 %""#),
        ("pi2", 0, "nearest: dualpi2"),
        ("rem", 0, "nearest: pie"),
        ("ared", 0, "nearest: red variant ns2"),
        ("codel limit 010", 12, "write 10"),
        ("codel limit 1e3", 12, "1000"),
        ("codel limit 99999999999", 12, "4294967295"),
        ("codel ecn noecn", 10, "once"),
        ("codel variant paper", 14, "linux, linux7.3, linux2012, rfc, ns3"),
        ("pfifo variant linux", 6, "leave variant out"),
        ("pfifo_fast limit 0", 17, "from 1"),
        ("pfifo_fast variant rfc", 19, "linux, shared"),
        ("pfifo_fas", 0, "pfifo_fast"),
        ("red gentle limit 5", 4, "ns2"),
        ("red limit 400000", 0, "avpkt"),
        ("red limit 1000 avpkt 1000 min 2000", 0, "limit of at least 6000"),
        ("fq_codel quantum 90", 17, "256"),
        ("fq_codel ce_threshold_selector 1", 31, "0x1/0x3"),
        ("fq_codel ce_threshold_selector 1/256", 31, "from 0 to 255"),
        ("sfq quantum 90", 0, "256"),
        ("tbf rate 1mbit burst 5k", 0, "latency 50ms"),
        ("tbf burst 5k limit 60k", 0, "like tbf rate"),
        ("tbf rate 1mbit burst 5k limit 60k latency 50ms", 0, "keep one"),
        ("tbf rate 1mbit burst 5k limit 60k peakrate 2mbit", 0, "mtu 1514"),
        ("tbf rate 1mbit burst 5k limit 60k mtu 1514", 0, "peakrate too"),
        ("tbf rate 1mbit burst 5k limit 60k peakrate 1mbit mtu 1514", 0, "above the rate"),
        ("tbf rate 1mbit burst 5k limit 60k linklayer ptm", 44, "adsl"),
        ("tbf rate 1mbit burst 5k limit 60k mpu 70000", 0, "like mpu 64"),
        ("tbf rate 1mbit burst 5k limit 0", 0, "limit in bytes"),
        ("tbf rate 1mbit burst 5k latency 0ms", 0, "latency 50ms"),
        ("fq_pie ecn_prob 100", 16, "0 to 99"),
        // These numbers are divisors.
        ("sfq redflowlimit 400000 avpkt 0", 30, "1 to"),
        ("choke limit 1000 bandwidth 10mbit avpkt 0", 40, "1 to"),
        ("red limit 400000 avpkt 0", 0, "avpkt 1000"),
        ("gred limit 60000 avpkt 0", 0, "avpkt 1000"),
        ("fq_pie quantum 100b", 15, "256 to"),
        ("cake fwmark 0xff", 5, "dscp"),
        ("cake_mq fwmark 0xff", 8, "dscp"),
        ("prio multiqueue", 5, "write mq"),
        ("gred vqs 2 limit 60000 avpkt 1000 default 1", 34, "priomap"),
        ("red limit 400000 avpkt 1000 qevent mark block 3", 28, "leave it out"),
        ("sfq ecn", 0, "redflowlimit 100000 too"),
        ("sfq min 8000 max 20000", 0, "redflowlimit 100000 too"),
        ("sfq redflowlimit 100000 burst 3", 0, "at least 9"),
        ("sfq redflowlimit 10000 max 20000", 0, "20000 bytes"),
        ("sfq redflowlimit 100000 avpkt 10000", 0, "burst"),
        ("hhf quantum 3000 non_hh_weight 1000000", 0, "715827 or less"),
        ("fq quantum 2000000", 11, "1048576"),
        ("fq buckets 1", 11, "from 2"),
        ("fq bands 3", 0, "priomap and 16 bands"),
        ("fq bands 3 priomap 0 1 2", 0, "16 bands"),
        ("fq bands 3 priomap 3", 19, "from 0 to 2"),
        ("fq weights 65536 65536", 0, "3 weights"),
        ("fq weights 65536 65536 1000", 0, "16384"),
        ("sfq divisor 1000", 0, "divisor 1024"),
        ("sfq limit 1", 0, "limit 2"),
        ("sfq limit 50 flows 1 depth 1", 0, "room for two"),
        ("sfq perturb 10000000", 12, "from 0 to 8589934"),
        ("red limit 400000 avpkt 1000 bandwidth 50%", 38, "10mbit"),
        ("", 0, "fq_codel"),
    ];
    for (words, at, hint) in wrong {
        let error = Discipline::parse(words).expect_err(words);
        assert_eq!(error.at.start, at, "{words}: {error}");
        assert!(error.hint.contains(hint), "{words}: {}", error.hint);
    }
}

#[test]
fn dualpi2_s_words_are_the_kernel_s_attributes() {
    let discipline = parse(
        "dualpi2 limit 300 target 10ms alpha 0.16 step_thresh 2pkt coupling_factor 3 \
         classic_protection 20% any_ect overflow",
    );
    // struct nlattr for each: length, number, value, and padding to a multiple of four bytes.
    let expected: &[&[u8]] = &[
        &[8, 0, 1, 0, 0x2c, 1, 0, 0],
        // 10 000 us.
        &[8, 0, 3, 0, 0x10, 0x27, 0, 0],
        // 40 / 256 is the largest fraction below 0.16 Hz.
        &[8, 0, 5, 0, 40, 0, 0, 0],
        &[8, 0, 7, 0, 2, 0, 0, 0],
        &[5, 0, 10, 0, 3, 0, 0, 0],
        &[5, 0, 11, 0, 0, 0, 0, 0],
        &[5, 0, 13, 0, 20, 0, 0, 0],
        &[5, 0, 14, 0, 3, 0, 0, 0],
    ];
    assert_eq!(discipline.packed_options(), Some(expected.concat()));
    for packets in ["2p", "2packet", "2packets"] {
        let line = format!("dualpi2 step_thresh {packets}");
        assert_eq!(parse(&line), parse("dualpi2 step_thresh 2pkt"), "{packets}");
    }
    assert_eq!(parse("dualpi2").packed_options(), Some(Vec::new()));
    assert_eq!(parse("codel").packed_options(), None);
}

#[test]
fn drr_s_line_stands_for_its_classes_and_filters() {
    let drr = parse("drr quanta 1514 3000");
    assert_eq!(drr.command().expect("Linux has it"), "drr");
    let lines = drr.tree("eth0", "10:");
    assert_eq!(lines.len(), 2 + 16);
    assert_eq!(lines[1], "class add dev eth0 parent 10: classid 10:2 drr quantum 3000");
    // Best effort is priority 0, throughput 2, low delay 6; ECT(0) moves nothing.
    for (tos, class) in [("0x00", "10:1"), ("0x08", "10:2"), ("0x10", "10:2"), ("0x02", "10:1")] {
        let filter = format!(
            "filter add dev eth0 parent 10: protocol ip prio 1 u32 match ip tos {tos} 0x1e flowid {class}"
        );
        assert!(lines.contains(&filter), "{filter}: {lines:#?}");
    }
    assert!(parse("codel").tree("eth0", "10:").is_empty());
}

#[test]
fn gred_s_line_stands_for_its_virtual_queues_and_filters() {
    let gred = parse("gred limit 60000 40000 avpkt 1000 prio 1 2 grio ecn");
    assert_eq!(gred.command().expect("Linux has it"), "gred setup vqs 2 default 0 grio");
    let lines = gred.tree("eth0", "10:");
    assert_eq!(lines.len(), 2 + 1 + 16);
    assert_eq!(
        lines[1],
        "qdisc change dev eth0 handle 10: gred vq 1 prio 2 limit 40000 min 3333 max 10000 burst 5 \
         avpkt 1000 probability 0.02 bandwidth 10mbit ecn"
    );
    assert_eq!(lines[2], "qdisc add dev eth0 clsact");
    // AF1 to AF3 of the lowest precedence have the first queue, as best effort; the others have the
    // last one.
    for (tos, queue) in [("0x00", "1:0"), ("0x08", "1:0"), ("0x10", "1:1"), ("0x18", "1:1")] {
        let filter = format!(
            "filter add dev eth0 egress protocol ip prio 1 u32 match ip tos {tos} 0x1e flowid {queue}"
        );
        assert!(lines.contains(&filter), "{filter}: {lines:#?}");
    }
    assert_eq!(gred.packets(), 100_000 / 1500 + 1, "of both");
}

#[test]
fn options_below_a_shaper_are_packed_as_netlink_bytes() {
    let pie = parse("pie target 20ms limit 300 ecn").packed_options().expect("in bytes");
    // struct nlattr for each: length, number, value.
    let expected: &[u16] = &[
        8, 1, 20_000, 0, 8, 2, 300, 0, 8, 3, 15_000, 0, 8, 4, 2, 0, 8, 5, 20, 0, 8, 6, 1, 0, 8, 7,
        0, 0, 8, 8, 0, 0,
    ];
    assert_eq!(pie, expected.iter().flat_map(|half| half.to_le_bytes()).collect::<Vec<_>>());
    let fq_pie = parse("fq_pie flows 64").packed_options().expect("in bytes");
    assert_eq!(fq_pie.len(), 12 * 8);
    assert_eq!(fq_pie[8..16], [8, 0, 2, 0, 64, 0, 0, 0]);
    let words = |text: &str| -> Vec<u32> {
        let sfq = parse(text).packed_options().expect("in bytes");
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        sfq.chunks_exact(4).map(word).collect()
    };
    // struct tc_sfq_qopt_v1 has 18 words of 32 bits.
    let plain = words("sfq limit 60 perturb 10 depth 20 headdrop");
    assert_eq!(plain, [&[0, 10, 60, 0, 0, 20, 1][..], &[0; 11]].concat());
    // What tc 6.1 sends: Wlog, Plog, Scell_log and the flags in one word, then the probability.
    for (text, red) in [
        ("redflowlimit 100000", [100_000, 8_333, 25_000, 0x1403, 85_899_345]),
        (
            "redflowlimit 100000 min 8000 max 60000 probability 0.2 ecn",
            [100_000, 8_000, 60_000, 0x0100_1206, 858_993_459],
        ),
        ("redflowlimit 100000 min 4000", [100_000, 4_000, 25_000, 0x1504, 85_899_345]),
        ("redflowlimit 100000 probability 1 harddrop", [100_000, 8_333, 25_000, 0x0200_0f03, 0]),
        ("redflowlimit 400000 probability 0.3", [400_000, 33_333, 100_000, 0x1205, 1_288_490_188]),
    ] {
        assert_eq!(words(&format!("sfq {text}")), [&[0; 7][..], &red, &[0; 6]].concat(), "{text}");
    }
}

#[test]
fn omitted_words_of_dualpi2_have_the_kernel_s_defaults_in_the_simulator() {
    let of = |words: &str| match parse(words).params() {
        Some(qdisc::Params::DualPi2(qdisc::DualPi2Params::Linux(params))) => params,
        other => panic!("{words}: {other:?}"),
    };
    let usual = of("dualpi2");
    assert_eq!((usual.limit, usual.memlimit, usual.coupling_factor), (10_000, None, 2));
    assert_eq!((usual.alpha, usual.beta, usual.step_thresh_ns), (41, 819, 1_000_000));
    assert_eq!((usual.target_ns, usual.tupdate_ns), (15_000_000, 16_000_000));
    assert!(usual.drop_on_overload && !usual.drop_enqueue && !usual.any_ect);
    let dualpi2 =
        of("dualpi2 variant linux7.3 overflow drop_enqueue any_ect step_thresh 2p alpha 0.16");
    assert!(!dualpi2.drop_on_overload && dualpi2.drop_enqueue && dualpi2.any_ect);
    assert_eq!((dualpi2.step_thresh_packets, dualpi2.alpha), (Some(2), 40));
}

#[test]
fn dualpi2_s_gains_follow_from_its_rtts() {
    // RFC 9332 A.1 with typical RTTs: a target of 15 ms, 0.15 and 3 Hz.
    let discipline = parse("dualpi2 max_rtt 100ms typical_rtt 15ms target 1ms");
    let real = |name: &str| discipline.fields().get(name).real().unwrap();
    assert_eq!(discipline.fields().count("target_ns"), Some(15_000_000));
    assert_eq!(discipline.fields().count("tupdate_ns"), Some(15_000_000));
    assert!((real("alpha") - 0.15).abs() < 1e-9 && (real("beta") - 3.0).abs() < 1e-9);
    assert_eq!(parse(&discipline.text()), discipline);
    // The default typical RTT is a sixth of the longest, and there are three updates in the
    // longest.
    for (words, target_ms, tupdate_ms) in [
        ("max_rtt 120ms", 20, 20),
        ("typical_rtt 20ms", 20, 20),
        ("max_rtt 30ms typical_rtt 20ms", 20, 10),
    ] {
        let discipline = parse(&format!("dualpi2 {words}"));
        let ms = ["target_ns", "tupdate_ns"].map(|name| discipline.fields().count(name));
        assert_eq!(ms, [Some(target_ms * 1_000_000), Some(tupdate_ms * 1_000_000)], "{words}");
    }
}

#[test]
fn a_bare_time_below_a_millisecond_is_noted() {
    let discipline = parse("fq_codel target 5");
    assert_eq!(discipline.fields().count("target_ns"), Some(5_000));
    let [note] = &discipline.notes[..] else { panic!("{:?}", discipline.notes) };
    assert_eq!(note.message, "target 5 is 5 us: to tc a bare number is microseconds");
    assert_eq!(note.hint, "write target 5ms if milliseconds are meant, else target 5us");
    assert_eq!(note.at, 16..17);
    assert_eq!(parse("mq fq_codel target 5").notes[0].at, 19..20);
    for sound in ["codel target 5us", "codel target 1000", "codel interval 0.1s", "codel limit 5"] {
        assert_eq!(parse(sound).notes, []);
    }
}

#[test]
fn a_rate_in_bytes_a_second_is_noted_whatever_word_takes_it() {
    let messages =
        |notes: &[Note]| notes.iter().map(|note| note.message.clone()).collect::<Vec<_>>();
    for record in RECORDS {
        for grammar in record.grammars {
            for word in grammar.words.iter().filter(|word| matches!(word.read, Read::Rate)) {
                let rate = (word.word, 0..0);
                let notes = grammar.notes(&[rate, ("20Mbps", 7..13)]);
                let name = word.word;
                let message = format!("{name} 20Mbps is 160 Mbit/s: to tc bps is bytes a second");
                let hint =
                    format!("write {name} 20mbit if 20 Mbit/s is meant, else {name} 160mbit");
                assert_eq!(notes, [Note { message, hint, at: 7..13 }], "{}", record.kind);
            }
        }
    }
    let cake = parse("cake_mq bandwidth 1.5kibps");
    assert_eq!(
        messages(&cake.notes),
        ["bandwidth 1.5kibps is 12.288 kbit/s: to tc bps is bytes a second"]
    );
    let shaper = Shaper::parse("htb rate 20MBPS burst 2k").expect("words").expect("a shaper");
    let bytes = "rate 20MBPS is 160 Mbit/s: to tc bps is bytes a second";
    assert_eq!(
        (messages(&shaper.notes.0), shaper.notes.0[0].at.clone()),
        (vec![bytes.into()], 9..15)
    );
    let police = Police::parse("rate 20MBPS burst 64k").expect("words").expect("a policer");
    assert_eq!(messages(&police.notes.0), [bytes]);
    assert_eq!(Police::parse("rate 160mbit burst 64k"), Ok(Some(police)));
    for sound in ["cake bandwidth 20mbit", "cake bandwidth 20000000", "fq maxrate 1.5gibit"] {
        assert_eq!(parse(sound).notes, []);
    }
}

#[test]
fn a_red_without_sizes_takes_what_tc_red_recommends_for_its_rate() {
    for (mbit, sizes) in [
        (20.0, "limit 600000 min 50000 max 150000 avpkt 1000 burst 83 bandwidth 20mbit"),
        (0.5, "limit 60000 min 5000 max 15000 avpkt 1000 burst 8 bandwidth 500kbit"),
        (
            10_000.0,
            "limit 300000000 min 25000000 max 75000000 avpkt 1000 burst 41666 bandwidth 10gbit",
        ),
    ] {
        let bare = parse("red ecn");
        assert!(bare.is_bare() && bare.params().is_none());
        assert_eq!(bare.at((mbit * 1e6) as u64), parse(&format!("red {sizes} ecn")));
    }
    assert_eq!(
        parse("red bandwidth 5mbit").at(20_000_000).fields().count("bandwidth"),
        Some(5_000_000)
    );
    for sized in ["red limit 400000 avpkt 1000", "codel", "red variant ns2"] {
        assert_eq!(parse(sized).at(1_000_000), parse(sized));
    }
}

#[test]
fn the_default_limit_of_each_discipline_is_known() {
    let held = ["fq", "fq limit 50", "sfq", "cake", "bfifo limit 150000", "prio", "ets bands 2"]
        .map(|words| parse(words).packets());
    assert_eq!(held, [10_000, 50, 127, 10_240, 101, 3_000, 2_000]);
    for record in RECORDS {
        assert!(parse(record.least).packets() > 0, "{}", record.kind);
    }
}

#[test]
fn a_policer_is_read_and_written() {
    for (words, written) in [
        ("police rate 10mbit burst 64k", "rate 10mbit burst 65536"),
        (
            "rate 1250kbps burst 1514 mtu 1514 overhead 14",
            "rate 10mbit burst 1514 mtu 1514 overhead 14",
        ),
        ("rate 10mbit burst 100kb mtu 2040 conform-exceed drop", "rate 10mbit burst 102400"),
        ("rate 10mbit burst 15k drop", "rate 10mbit burst 15360"),
        ("rate 10mbit burst 15k conform-exceed drop/pass", "rate 10mbit burst 15360"),
        // 2^32 ticks of 64 ns less one byte's time.
        ("rate 62500kbit burst 2147483647", "rate 62500kbit burst 2147483647"),
        ("rate 10mbit maxburst 15k minburst 1514", "rate 10mbit burst 15360 mtu 1514"),
    ] {
        let police = Police::parse(words).expect(words).expect("a policer");
        assert_eq!(police.text(), written);
        assert_eq!(Police::parse(written), Ok(Some(police)));
    }
    assert_eq!(Police::parse("none"), Ok(None));
    for (words, at, hint) in [
        ("", 0, "in tc's syntax"),
        ("none at all", 5, "write none"),
        ("rate 10mbit", 0, "rate 10mbit burst 64k"),
        ("police burst 64k", 0, "rate 10mbit burst 64k"),
        ("rate 10mbit burst", 12, "burst BYTES"),
        ("rate 10mbit bursts 64k", 12, "did you mean burst"),
        ("rate 10mbit burst 0", 18, "a packet"),
        ("rate 10mbit burst 1k burst 1k", 21, "write it once"),
        ("rate 10mbit burst 1k drop conform-exceed drop", 26, "write it once"),
        ("rate 10mbit burst 1k conform-exceed pipe", 36, "drops them"),
        ("rate 10mbit burst 1k reclassify", 21, "drops them"),
        ("rate 10mbit burst 1k peakrate 20mbit", 21, "leave it out"),
        ("rate 1kbit burst 1g", 0, "smaller burst"),
        ("rate 62500kbit burst 2g", 0, "smaller burst"),
    ] {
        let error = Police::parse(words).expect_err(words);
        assert!(error.at.start == at && error.hint.contains(hint), "{words}: {error:?}");
    }
}

#[test]
fn a_shaper_is_read_and_written() {
    for (words, written) in [
        ("htb rate 125kbps", "htb rate 1mbit"),
        (
            "htb rate 1mbit burst 3k mpu 64 overhead 18 linklayer adsl",
            "htb rate 1mbit burst 3072 overhead 18 mpu 64 linklayer atm",
        ),
        ("htb rate 8gbit burst 1601", "htb rate 8gbit"),
        ("htb ceil 1000kbit rate 1mbit", "htb rate 1mbit"),
        ("htb rate 1mbit ceil 1mbit buffer 3k cburst 3k", "htb rate 1mbit burst 3072"),
    ] {
        let shaper = Shaper::parse(words).expect(words).expect("a shaper");
        assert_eq!(shaper.text(), written);
        assert_eq!(Shaper::parse(written), Ok(Some(shaper)));
    }
    assert_eq!(Shaper::parse("none"), Ok(None));
    for (words, at, hint) in [
        ("tbf rate 1mbit", 0, "nearest: htb"),
        ("hbt", 0, "did you mean htb"),
        ("htb", 0, "htb rate 1mbit"),
        ("htb rate", 4, "write rate RATE"),
        ("htb rate 1mbit ceil 2mbit", 20, "write ceil 1mbit, or leave it out"),
        ("htb rate 1mbit burst 2k cburst 3k", 31, "write cburst 2048"),
        ("htb rate 1mbit bw 2mbit", 15, "did you mean rate"),
        ("htb rate 1mbit rate 2mbit", 15, "write it once"),
        ("htb rate 1mbit burst 0", 21, "1600"),
        ("htb rate 1mbit linklayer ptm", 25, "ethernet, atm, adsl"),
        ("none at all", 5, "write none"),
        ("", 0, "in tc's syntax"),
    ] {
        let error = Shaper::parse(words).expect_err(words);
        assert!(error.at.start == at && error.hint.contains(hint), "{words}: {error:?}");
    }
}

#[test]
fn link_layers_have_cake_s_overheads() {
    let ethernet =
        Framing { header_bytes: 14, overhead_bytes: 38, minimum_bytes: 84, cells: Cells::None };
    assert_eq!(read_layer("ethernet"), Ok(ethernet));
    assert_eq!(read_layer("pppoe-llc"), read_layer("pppoe-llcsnap"));
    assert_eq!(read_layer("pppoe-ptm").map(|layer| layer.overhead_bytes), Ok(30));
    let custom = read_layer("atm overhead 44 mpu 64").expect("numbers");
    assert_eq!((custom.overhead_bytes, custom.minimum_bytes, custom.cells), (44, 64, Cells::Atm));
    for (_, layer) in LAYERS.iter().chain(&[("", custom)]) {
        assert_eq!(read_layer(&write_layer(layer)), Ok(*layer));
    }
    let numbers = |words| {
        let Framing { header_bytes, overhead_bytes, minimum_bytes, cells } =
            read_layer(words).expect(words);
        (header_bytes, overhead_bytes, minimum_bytes, cells)
    };
    assert_eq!(numbers("conservative"), (14, 48, 0, Cells::Atm));
    assert_eq!(numbers("overhead 44"), (0, 44, 0, Cells::None));
    assert_eq!(numbers("header 14 overhead 44 ether-vlan"), (14, 48, 0, Cells::None));
    assert_eq!(numbers("ethernet ether-vlan"), (14, 42, 84, Cells::None));
    assert_eq!(numbers("atm mpu 1000"), (0, 8, 1000, Cells::Atm));
    assert_eq!(numbers("pppoe-ptm ether-vlan ether-vlan mpu 64"), (14, 38, 64, Cells::Ptm));
    for wrong in [
        "pppoe-ptn",
        "atm overhead",
        "atm overhead x",
        "atm size 4",
        "",
        "atm mpu 1001",
        "ether-vlan",
        "overhead -4",
        "ethernet docsis",
        "ethernet ether-vlan 4",
    ] {
        assert!(read_layer(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn common_names_of_lines_have_hints_that_can_be_parsed() {
    for (word, layer) in [
        ("cable", "docsis"),
        ("Fibre", "ethernet"),
        ("VDSL2", "pppoe-ptm"),
        ("adsl2+", "pppoe-llcsnap"),
        ("dsl", "pppoe-ptm"),
    ] {
        let error = read_layer(word).unwrap_err();
        let written = error.hint.strip_prefix("write ").expect(&error.hint);
        let first = written.split([' ', ',']).next().unwrap();
        assert_eq!(first, layer, "{word}");
        assert!(read_layer(first).is_ok(), "{word}");
    }
    for (word, hint) in [
        ("cabel", "for cable write docsis"),
        ("fibre-optic", "for fibre write ethernet"),
        ("dokis", "did you mean docsis? "),
    ] {
        let error = read_layer(word).unwrap_err();
        assert!(error.hint.starts_with(hint), "{word}: {}", error.hint);
    }
}

/// Any sentence of a discipline's grammar.
fn sentence() -> impl Strategy<Value = String> {
    let grammars: Vec<_> = RECORDS.iter().flat_map(|record| record.grammars).collect();
    (0..grammars.len()).prop_flat_map(move |index| {
        let grammar = grammars[index];
        let value = |shows: &str| match shows {
            "RATE" => prop::sample::select(vec!["10mbit", "1.5Mbit", "3kbps", "7"])
                .prop_map(str::to_owned)
                .boxed(),
            "TIME" => prop::sample::select(vec!["5ms", "100", "1.5s", "70us", "33ns"])
                .prop_map(str::to_owned)
                .boxed(),
            "NUMBER" => prop_oneof![
                (1e-9..1.0f64).prop_map(|real| format!("{real:e}")),
                (1..17u32).prop_map(|number| number.to_string())
            ]
            .boxed(),
            "VALUE/MASK" => (0..=255u8, 0..=255u8)
                .prop_map(|(value, mask)| format!("{value:#x}/{mask}"))
                .boxed(),
            "BAND..." | "CLASS..." => prop::collection::vec(0..16u32, 1..16)
                .prop_map(|bands| bands.iter().map(u32::to_string).collect::<Vec<_>>().join(" "))
                .boxed(),
            _ => (0..1_000_000u64).prop_map(|number| number.to_string()).boxed(),
        };
        let words: Vec<_> = grammar
            .words
            .iter()
            .map(|word| {
                prop::option::of(
                    value(word.shows).prop_map(|value| format!("{} {value}", word.word)),
                )
            })
            .collect();
        let flags = prop::sample::subsequence(grammar.flags, 0..=grammar.flags.len().min(3));
        let head = match grammar.variant {
            Some(variant) => format!("{} variant {variant}", grammar.kind),
            None => grammar.kind.to_owned(),
        };
        (words, flags).prop_map(move |(words, flags)| {
            let mut parts = vec![head.clone()];
            parts.extend(words.into_iter().flatten());
            parts.extend(flags.iter().map(|flag| flag.word.to_owned()));
            parts.join(" ")
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn text_gives_parameters_and_they_give_the_same_text(words in sentence()) {
        if let Ok(discipline) = Discipline::parse(&words) {
            prop_assert_eq!(&Discipline::parse(&discipline.text()).expect("canonical"), &discipline);
            prop_assert_eq!(Discipline::parse(&discipline.text()).expect("canonical").text(), discipline.text());
            let kind = ("kind".to_owned(), text(discipline.kind()));
            let params = discipline.fields().iter().map(|(name, value)| (name.to_owned(), value.clone()));
            let again = Discipline::from_params(std::iter::once(kind).chain(params));
            prop_assert_eq!(&again.expect("its own parameters"), &discipline);
            // The simulator accepts what it has, and tc what Linux has.
            let takes = discipline.lacking().is_none() && !discipline.is_bare();
            prop_assert_eq!(discipline.params().is_some(), takes);
            if let Ok(command) = discipline.command()
                && !discipline.is_bare()
                && discipline.queue_length().is_none()
                // A discipline with a tree has the rest in other commands.
                && discipline.tree("eth0", "10:").is_empty()
                // tc has no word for a release of Linux.
                && discipline.variant() != Some("linux7.3")
            {
                prop_assert_eq!(&Discipline::parse(&command).expect("tc's syntax"), &discipline);
            }
        }
    }

    #[test]
    fn any_words_are_read_or_refused(words in "[abcdefilmnoprqtux_ =0123456789.é]{0,60}") {
        for words in [words.clone(), format!("codel {words}"), format!("red limit 400000 avpkt 1000 {words}")] {
            if let Err(error) = Discipline::parse(&words) {
                prop_assert!(words.get(error.at).is_some());
            }
        }
    }
}

#[test]
fn linux_s_command_spells_everything_out_and_adds_nothing_to_what_linux_alone_has() {
    for (words, expected) in [
        ("pfifo", "pfifo limit 1000"),
        ("pfifo_fast limit 33", "pfifo_fast"),
        ("codel", "codel limit 1000 target 5ms interval 100ms noecn"),
        (
            "pie target 20ms ecn",
            "pie limit 1000 target 20ms tupdate 15ms alpha 2 beta 20 ecn nobytemode no_dq_rate_estimator",
        ),
        (
            "fq_pie target 20ms ecn",
            "fq_pie limit 10240 flows 1024 target 20ms tupdate 15ms alpha 2 beta 20 quantum 1514 \
             memory_limit 33554432 ecn_prob 10 ecn nobytemode no_dq_rate_estimator",
        ),
        ("hhf hh_limit 64", "hhf hh_limit 64"),
        ("cake", "cake"),
        ("sfq perturb 10", "sfq perturb 10"),
    ] {
        assert_eq!(parse(words).command().as_deref(), Ok(expected));
    }
    let longest = parse("codel target 4294967295us");
    assert_eq!(longest.fields().count("target_ns"), Some(u64::from(u32::MAX) * 1000));
    assert_eq!(parse("pfifo_fast limit 33").queue_length(), Some(33));
    for (words, problem) in [
        ("adt", "no queue discipline 'adt'"),
        ("codel variant rfc", "variant rfc"),
        ("codel target 5500ns", "microseconds"),
        ("cake_mq sync_time 100us", "sync_time is 200us"),
        ("cake_mq sync_time 300us", "sync_time is 200us"),
    ] {
        let error = parse(words).command().expect_err(words);
        assert!(error.problem.contains(problem), "{words}: {error}");
    }
}

#[test]
fn the_netlink_attributes_equal_those_that_tc_sends() {
    // cake_mq's RTT and target, us: the target is a twentieth, but at least one.
    let packed = parse("cake_mq rtt 10us").packed_options().expect("by netlink");
    let attribute = |number: u8, us: u8| [8, 0, number, 0, us, 0, 0, 0];
    let is_there = |wanted: [u8; 8]| packed.windows(8).any(|bytes| bytes == wanted);
    assert!(is_there(attribute(7, 10)) && is_there(attribute(8, 1)), "{packed:?}");
    let options = |words: &str| parse(words).options().expect("made by netlink");
    let of = |options: &[(String, u64)], name: &str| {
        options.iter().find(|(each, _)| each == name).map(|(_, value)| *value)
    };
    assert_eq!(options("bfifo limit 3000"), [("limit".to_owned(), 3000)]);
    let codel = options("codel target 7ms ecn");
    assert_eq!(of(&codel, "TCA_CODEL_TARGET"), Some(7_000));
    assert_eq!(of(&codel, "TCA_CODEL_ECN"), Some(1));
    assert_eq!(of(&codel, "TCA_CODEL_CE_THRESHOLD"), None);
    let selected = options("fq_codel ce_threshold 1ms ce_threshold_selector 0x1/3");
    assert_eq!(of(&selected, "TCA_FQ_CODEL_CE_THRESHOLD_SELECTOR"), Some(1));
    assert_eq!(of(&selected, "TCA_FQ_CODEL_CE_THRESHOLD_MASK"), Some(3));
    assert!(parse("pie").options().is_none());

    let layer = read_layer("pppoe-ptm").expect("a layer");
    let cake = tc::disciplines::cake::live("cake rtt 50ms nonat", 8_000_000, Some(layer), true)
        .expect("cake");
    let options = cake.options().expect("by netlink");
    for (name, value) in [
        ("BASE_RATE64", 1_000_000),
        ("DIFFSERV_MODE", 3),
        ("FLOW_MODE", 7),
        ("WASH", 1),
        ("INGRESS", 1),
        ("RTT", 50_000),
        ("TARGET", 2_500),
        ("ATM", 2),
        ("OVERHEAD", 30),
        ("MPU", 0),
    ] {
        assert_eq!(of(&options, &format!("TCA_CAKE_{name}")), Some(value), "{name}");
    }
    assert_eq!((of(&options, "TCA_CAKE_NAT"), of(&options, "TCA_CAKE_RAW")), (None, None));
}

/// The simulator's parameters of cake's words.
fn simulated_cake(words: &str) -> CakeParams {
    match parse(words).params() {
        Some(Params::Cake(params)) => params,
        other => panic!("{words}: {other:?}"),
    }
}

#[test]
fn omitted_words_of_cake_have_linux_s_defaults_in_the_simulator() {
    let usual = CakeParams {
        bandwidth: None,
        rtt_ns: 100_000_000,
        memlimit: None,
        tins: TinMode::Diffserv3,
        isolation: Isolation::TripleIsolate,
        wash: false,
        ingress: false,
        raw: true,
        overhead: 0,
        mpu: 0,
        cells: CakeCells::Noatm,
        acks: AckFilterMode::NoAckFilter,
        sync_ns: 0,
    };
    for words in ["cake", "cake unlimited internet diffserv3 raw egress nowash no-ack-filter"] {
        assert_eq!(simulated_cake(words), usual, "{words}");
    }
    let simulated =
        simulated_cake("cake bandwidth 20mbit lan besteffort dual-dsthost wash ingress");
    assert_eq!(
        simulated,
        CakeParams {
            bandwidth: Some(20_000_000),
            rtt_ns: 1_000_000,
            tins: TinMode::Besteffort,
            isolation: Isolation::DualDsthost,
            wash: true,
            ingress: true,
            ..usual.clone()
        }
    );
    for acks in AckFilterMode::ALL {
        assert_eq!(
            simulated_cake(&format!("cake {}", acks.word())),
            CakeParams { acks, ..usual.clone() }
        );
    }
}

#[test]
fn a_line_s_words_give_the_attributes_that_tc_sends_to_the_kernel() {
    // As iproute2 6.1 sends them: TCA_CAKE_RAW, _OVERHEAD, _MPU and _ATM.
    let sent = [
        ("", false, None, None, None),
        ("raw", true, Some(0), None, Some(0)),
        ("conservative", false, Some(48), None, Some(1)),
        ("ethernet", false, Some(38), Some(84), None),
        ("ether-vlan", false, Some(4), None, None),
        ("docsis", false, Some(18), Some(64), Some(0)),
        ("pppoa-vcmux", false, Some(10), None, Some(1)),
        ("pppoa-llc", false, Some(14), None, Some(1)),
        ("pppoe-vcmux", false, Some(32), None, Some(1)),
        ("pppoe-llcsnap", false, Some(40), None, Some(1)),
        ("bridged-vcmux", false, Some(24), None, Some(1)),
        ("bridged-llcsnap", false, Some(32), None, Some(1)),
        ("ipoa-vcmux", false, Some(8), None, Some(1)),
        ("ipoa-llcsnap", false, Some(16), None, Some(1)),
        ("pppoe-ptm", false, Some(30), None, Some(2)),
        ("bridged-ptm", false, Some(22), None, Some(2)),
        ("overhead 44 atm mpu 64", false, Some(44), Some(64), Some(1)),
        ("atm overhead -4", false, Some(-4), None, Some(1)),
        // Each word acts on the result of those before it.
        ("pppoe-ptm ether-vlan", false, Some(34), None, Some(2)),
        ("bridged-ptm ether-vlan", false, Some(26), None, Some(2)),
        ("ethernet ether-vlan ether-vlan", false, Some(46), Some(84), None),
        ("ether-vlan conservative", false, Some(48), None, Some(1)),
        ("conservative ether-vlan", false, Some(52), None, Some(1)),
        ("raw overhead 0", true, Some(0), None, Some(0)),
        ("raw overhead 4", true, Some(4), None, Some(0)),
        ("overhead 4 raw", true, Some(0), None, Some(0)),
        ("raw pppoe-ptm", true, Some(30), None, Some(2)),
        ("docsis raw", true, Some(0), Some(64), Some(0)),
        ("overhead 44 pppoe-ptm", false, Some(74), None, Some(2)),
        ("pppoe-ptm overhead 44", false, Some(44), None, Some(2)),
        ("pppoe-ptm docsis", false, Some(48), Some(64), Some(0)),
        ("mpu 60 ethernet", false, Some(38), Some(84), None),
        ("ethernet mpu 60", false, Some(38), Some(60), None),
        ("pppoe-ptm atm", false, Some(30), None, Some(1)),
        ("atm ethernet", false, Some(38), Some(84), Some(1)),
        ("pppoe-ptm via-ethernet", false, Some(30), None, Some(2)),
    ];
    let kinds = [CakeCells::Noatm, CakeCells::Atm, CakeCells::Ptm];
    for (words, raw, overhead, mpu, atm) in sent {
        let discipline = simulated_cake(&format!("cake {words}"));
        let counted = (discipline.raw, discipline.overhead, discipline.mpu, discipline.cells);
        let cells = kinds[atm.unwrap_or(0) as usize];
        let expected = (raw || overhead.is_none(), overhead.unwrap_or(0), mpu.unwrap_or(0), cells);
        assert_eq!(counted, expected, "{words}");
        let cake = parse(&format!("cake ingress {words} bandwidth 8mbit"));
        assert_eq!(parse(&cake.text()), cake, "{words}");
        assert!(
            cake.command().expect("Linux's").ends_with(words.trim_end_matches(" via-ethernet"))
        );
        let options = cake.options().expect("by netlink");
        let of = |name: &str| {
            options.iter().find(|(each, _)| each[9..] == *name).map(|(_, value)| *value as u32)
        };
        let expected = [raw.then_some(0), overhead.map(|bytes: i64| bytes as u32), mpu, atm];
        assert_eq!(["RAW", "OVERHEAD", "MPU", "ATM"].map(of), expected, "{words}");
        // cake_mq's attributes by number; each is 8 bytes long.
        let packed = parse(&format!("cake_mq {words}")).packed_options().expect("by netlink");
        let of = |number: u8| {
            let mut rest = &packed[..];
            while let [length, 0, kind, 0, value @ ..] = rest {
                if *kind == number {
                    return Some(u32::from_ne_bytes(value[..4].try_into().expect("four bytes")));
                }
                rest = &rest[usize::from(*length).next_multiple_of(4)..];
            }
            None
        };
        assert_eq!([12, 6, 14, 4].map(of), expected, "{words}");
    }
}

#[test]
fn a_cake_of_a_recording_of_a_former_release_has_its_line() {
    let cake = |params: &[(&str, Value)]| {
        let kind = ("kind", text("cake"));
        let params = params.iter().chain([&kind]);
        Discipline::from_params(params.map(|(name, value)| ((*name).to_owned(), value.clone())))
    };
    for (params, words) in [
        (vec![("layer", UNSET), ("cells", UNSET), ("overhead", UNSET), ("mpu", UNSET)], "cake"),
        (
            vec![("mpu", n(64)), ("overhead", n(44)), ("cells", text("atm"))],
            "cake atm overhead 44 mpu 64",
        ),
        (vec![("mpu", n(60)), ("layer", text("ethernet"))], "cake ethernet mpu 60"),
    ] {
        assert_eq!(cake(&params), Ok(parse(words)), "{words}");
    }
    assert!(cake(&[("size", n(1))]).is_err());
}

#[test]
fn nat_changes_nothing_and_a_note_says_so() {
    assert_eq!(parse("cake nonat besteffort"), parse("cake besteffort"));
    assert_eq!(parse("cake nonat").notes, []);
    let cake = parse("cake bandwidth 13mbit nat docsis");
    assert_eq!(cake.text(), "cake bandwidth 13mbit docsis");
    let [note] = &cake.notes[..] else { panic!("{:?}", cake.notes) };
    assert_eq!((note.at.clone(), &*note.hint), (22..25, "leave it out"));
    assert!(note.message.starts_with("nat changes nothing here: no engine translates addresses"));
}

#[test]
fn tbf_s_words_may_be_as_short_as_tc_takes_them() {
    let expected = parse("tbf rate 10mbit burst 32k latency 50ms");
    for short in [
        "tbf rate 10mbit burst 32k lat 50ms",
        "tbf rate 10mbit b 32k la 50ms",
        "tbf rate 10mbit buffer 32k latenc 50ms",
        "tbf rate 10mbit maxburst 32k latency 50ms",
    ] {
        assert_eq!(parse(short), expected, "{short}");
    }
    // As in tc, which tries limit first.
    assert_eq!(parse("tbf rate 1mbit burst 5k l 60k"), parse("tbf rate 1mbit burst 5k limit 60k"));
    let peak = parse("tbf rate 1mbit burst 5k limit 60k p 2mbit minburst 2k o 4 linkl atm");
    assert_eq!(
        peak.text(),
        "tbf rate 1mbit burst 5120 limit 61440 mtu 2048 peakrate 2mbit overhead 4 linklayer atm"
    );
    // An abbreviated word has the same note as the full one.
    assert_eq!(parse("tbf rate 1mbit burst 5k lat 50").notes.len(), 1);
    for none in ["rat 1mbit burst 5k limit 60k", "rate 1mbit burst 5k limit 60k mp 64"] {
        assert!(Discipline::parse(&format!("tbf {none}")).is_err(), "{none}");
    }
}

#[test]
fn omitted_words_of_prio_have_tc_s_defaults_in_the_simulator() {
    let usual = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
    let prio = |bands, priomap| Params::Prio(PrioParams { bands, priomap, limit: 1000 });
    let mut priomap = usual;
    priomap[..3].copy_from_slice(&[4, 0, 3]);
    for (words, params) in [
        ("prio", prio(3, usual)),
        ("prio bands 8", prio(8, usual)),
        ("prio bands 5 priomap 4 0 3", prio(5, priomap)),
    ] {
        assert_eq!(parse(words).params(), Some(params), "{words}");
    }
}

#[test]
fn omitted_words_of_sfb_have_tc_s_defaults_in_the_simulator() {
    let usual = SfbParams {
        limit: 1000,
        rehash_ms: 600_000,
        db_ms: 60_000,
        max: 25,
        target: 20,
        increment: 33,
        decrement: 3,
        penalty_rate: 10,
        penalty_burst: 20,
    };
    let cases = [
        ("sfb", usual.clone()),
        ("sfb limit 300 rehash 9", SfbParams { limit: 300, rehash_ms: 9, ..usual.clone() }),
        // max is a quarter more than target.
        ("sfb target 40", SfbParams { max: 50, target: 40, ..usual.clone() }),
        ("sfb max 10", SfbParams { max: 10, target: 8, ..usual.clone() }),
        ("sfb max 10 target 9", SfbParams { max: 10, target: 9, ..usual.clone() }),
        (
            "sfb increment 0.01 decrement 0.001",
            SfbParams { increment: 655, decrement: 66, ..usual.clone() },
        ),
    ];
    for (words, params) in cases {
        assert_eq!(parse(words).params(), Some(Params::Sfb(params)), "{words}");
    }
}

#[test]
fn omitted_words_of_choke_have_tc_s_defaults_in_the_simulator() {
    let usual = ChokeParams {
        limit: 1000,
        min: 83,
        max: 250,
        avpkt: 1000,
        burst: 138,
        probability: 0.02,
        bandwidth: 10_000_000,
        ecn: false,
    };
    let cases = [
        ("choke limit 1000 bandwidth 10mbit", usual.clone()),
        (
            "choke limit 1000 bandwidth 10mbit max 60 ecn",
            ChokeParams { min: 20, max: 60, burst: 33, ecn: true, ..usual.clone() },
        ),
        (
            "choke limit 100 bandwidth 1mbit min 5 avpkt 500 burst 9 probability 0.1",
            ChokeParams {
                limit: 100,
                min: 5,
                max: 25,
                avpkt: 500,
                burst: 9,
                probability: 0.1,
                bandwidth: 1_000_000,
                ..usual.clone()
            },
        ),
    ];
    for (words, params) in cases {
        assert_eq!(parse(words).params(), Some(Params::Choke(params)), "{words}");
    }
}

#[test]
fn omitted_words_of_ets_have_linux_s_defaults_in_the_simulator() {
    let map = |given: &[u8], last: u8| {
        let mut map = [last; 16];
        map[..given.len()].copy_from_slice(given);
        map
    };
    let plain = |bands, strict, quanta: &[u32], priomap| EtsParams {
        bands,
        strict,
        quanta: quanta.to_vec(),
        priomap,
        limit: 1000,
    };
    let cases = [
        ("ets bands 3", plain(3, 0, &[], map(&[], 2))),
        ("ets strict 2", plain(2, 2, &[], map(&[], 1))),
        ("ets strict 1 quanta 3000 1500", plain(3, 1, &[3000, 1500], map(&[], 2))),
        (
            "ets bands 4 strict 1 quanta 3000 priomap 1 2 0",
            plain(4, 1, &[3000], map(&[1, 2, 0], 3)),
        ),
    ];
    for (words, params) in cases {
        assert_eq!(parse(words).params(), Some(Params::Ets(params)), "{words}");
    }
}

#[test]
fn tbf_s_latency_is_a_limit() {
    let tbf = |limit, peakrate, mtu| {
        let [mpu, overhead] = [0, 0];
        let linklayer = TbfLinkLayer::Ethernet;
        let (rate, burst) = (8_000_000, 5_000);
        Params::Tbf(TbfParams { rate, burst, limit, peakrate, mtu, mpu, overhead, linklayer })
    };
    for (words, params) in [
        ("limit 60k", tbf(61_440, None, 0)),
        // 50 ms at 1 MB/s, and the burst.
        ("latency 50ms", tbf(55_000, None, 0)),
        // 10 ms at the peak rate and its bucket are less than 10 ms at the rate and the burst.
        ("latency 10ms peakrate 8.8mbit mtu 1514", tbf(12_514, Some(8_800_000), 1_514)),
    ] {
        let discipline = parse(&format!("tbf rate 8mbit burst 5000 {words}"));
        assert_eq!(discipline.params(), Some(params), "{words}");
        assert!(discipline.text().contains(" limit "), "{words}");
    }
}

#[test]
fn tbf_s_link_layer_is_what_a_packet_is_charged() {
    let charged = |words: &str| {
        let read = parse(&format!("tbf rate 8mbit burst 5000 limit 60k {words}"));
        let Some(Params::Tbf(tbf)) = read.params() else { panic!("{words}") };
        (tbf.mpu, tbf.overhead, tbf.linklayer, read.text())
    };
    let text = "tbf rate 8mbit burst 5000 limit 61440 mpu 64 overhead 14 linklayer atm";
    for words in ["mpu 64 overhead 14 linklayer atm", "linklayer adsl overhead 14 mpu 64"] {
        assert_eq!(charged(words), (64, 14, TbfLinkLayer::Atm, text.to_owned()));
    }
    let (mpu, overhead, linklayer, _) = charged("linklayer ethernet");
    assert_eq!((mpu, overhead, linklayer), (0, 0, TbfLinkLayer::Ethernet));
}

#[test]
fn omitted_words_of_hhf_have_linux_s_defaults_in_the_simulator() {
    let usual = HhfParams {
        limit: 1000,
        quantum: None,
        hh_limit: 2048,
        reset_timeout_ns: 40_000_000,
        admit_bytes: 131_072,
        evict_timeout_ns: 1_000_000_000,
        non_hh_weight: 2,
    };
    let cases = [
        ("hhf", usual.clone()),
        (
            "hhf limit 50 quantum 3000 hh_limit 5 reset_timeout 10ms admit_bytes 20k \
             evict_timeout 2s non_hh_weight 4",
            HhfParams {
                limit: 50,
                quantum: Some(3000),
                hh_limit: 5,
                reset_timeout_ns: 10_000_000,
                admit_bytes: 20_480,
                evict_timeout_ns: 2_000_000_000,
                non_hh_weight: 4,
            },
        ),
    ];
    for (words, params) in cases {
        assert_eq!(parse(words).params(), Some(Params::Hhf(params)), "{words}");
    }
}

#[test]
fn omitted_words_of_fq_have_linux_s_defaults_in_the_simulator() {
    let usual = FqParams {
        limit: 10_000,
        flow_limit: 100,
        quantum: None,
        initial_quantum: None,
        maxrate: None,
        pacing: true,
        low_rate_threshold: 550_000,
        refill_delay_ns: 40_000_000,
        orphan_mask: 1023,
        ce_threshold_ns: None,
        timer_slack_ns: 10_000,
        priomap: [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1],
        weights: [9 << 16, 3 << 16, 1 << 16],
    };
    let cases = [
        ("fq", usual.clone()),
        ("fq buckets 64 horizon 1s horizon_cap pacing", usual.clone()),
        (
            "fq maxrate 5mbit nopacing orphan_mask 0xffff timer_slack 0",
            FqParams {
                maxrate: Some(5_000_000),
                pacing: false,
                orphan_mask: 0xffff,
                timer_slack_ns: 0,
                ..usual.clone()
            },
        ),
        (
            "fq bands 3 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 2 weights 65536 16384 20000",
            FqParams {
                priomap: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2],
                weights: [65_536, 16_384, 20_000],
                ..usual.clone()
            },
        ),
    ];
    for (words, params) in cases {
        assert_eq!(parse(words).params(), Some(Params::Fq(params)), "{words}");
    }
    let wide = parse("fq orphan_mask 0x10000");
    assert_eq!(wide.lacking().as_deref(), Some("fq orphan_mask of more than 16 bits"));
    assert_eq!(wide.params(), None);
}

#[test]
fn omitted_words_of_sfq_have_linux_s_defaults_in_the_simulator() {
    let usual = SfqParams {
        limit: 127,
        perturb: 0,
        quantum: 1514,
        divisor: 1024,
        flows: 128,
        depth: 127,
        headdrop: false,
        redflowlimit: 0,
        min: 0,
        max: 0,
        avpkt: 1000,
        burst: 1,
        probability: 0.02,
        ecn: false,
        harddrop: false,
    };
    let cases = [
        ("sfq", usual.clone()),
        // A given limit bounds the number of slots; by default there is one slot more than the
        // limit.
        ("sfq limit 127", SfqParams { flows: 127, ..usual.clone() }),
        (
            "sfq limit 9000 flows 30 depth 10",
            SfqParams { limit: 300, flows: 30, depth: 10, ..usual.clone() },
        ),
        ("sfq divisor 64 depth 200", SfqParams { divisor: 64, flows: 64, ..usual.clone() }),
        (
            "sfq flows 65536 divisor 65536",
            SfqParams { flows: 65_408, divisor: 65_536, ..usual.clone() },
        ),
        ("sfq perturb 10 headdrop", SfqParams { perturb: 10, headdrop: true, ..usual.clone() }),
        // A quarter of the limit, a third of that, (2 min + max) / (3 avpkt).
        (
            "sfq redflowlimit 100000",
            SfqParams {
                redflowlimit: 100_000,
                min: 8_333,
                max: 25_000,
                burst: 13,
                ..usual.clone()
            },
        ),
        (
            "sfq redflowlimit 100000 min 8000 max 60000 avpkt 500 burst 60 probability 0.2 ecn harddrop",
            SfqParams {
                redflowlimit: 100_000,
                min: 8_000,
                max: 60_000,
                avpkt: 500,
                burst: 60,
                probability: 0.2,
                ecn: true,
                harddrop: true,
                ..usual.clone()
            },
        ),
    ];
    for (words, params) in cases {
        assert_eq!(parse(words).params(), Some(Params::Sfq(params)), "{words}");
    }
}

#[test]
fn every_choice_of_cake_is_the_simulator_s() {
    let cake = record("cake").expect("a record").grammars[0].flags;
    for flag in cake {
        let discipline = parse(&format!("cake {}", flag.word));
        assert_eq!(discipline.lacking(), None, "{}", flag.word);
        assert!(discipline.params().is_some(), "{}", flag.word);
    }
    let error = Discipline::parse("cake autorate-ingress").expect_err("no engine has it");
    assert!(error.hint.contains("bandwidth"), "{error}");
}

#[test]
fn a_usage_shows_required_words_without_brackets() {
    let choke = record("choke").expect("there is one");
    let usage = choke.usage(&choke.grammars[0]);
    let shown = "choke limit PACKETS bandwidth RATE [min PACKETS] [max PACKETS]";
    assert!(usage.starts_with(shown) && usage.ends_with("[ecn]"), "{usage}");
}

#[test]
fn records_fit_together() {
    for record in RECORDS {
        assert!(parse(record.least).kind() == record.kind, "{}", record.kind);
        assert!(record.simulated || record.nearest.is_some(), "{}", record.kind);
        assert!(
            record.nearest.is_none_or(|near| tc::record(near).is_some_and(|near| near.simulated))
        );
        for grammar in record.grammars {
            assert_eq!(grammar.kind, record.kind);
            let fields = grammar.fields();
            for (word, field) in grammar.sets() {
                assert!(fields.has(field), "{word} sets {field}");
            }
            for field in grammar.always.iter().chain(grammar.required) {
                assert!(fields.has(field), "{field}");
            }
        }
        let Some(linux) = &record.linux else { continue };
        let names: Vec<&str> = linux
            .xstats
            .names
            .iter()
            .copied()
            .chain(linux.read.iter().map(|(name, _)| *name))
            .collect();
        let counted = linux
            .drops
            .counters()
            .iter()
            .chain(linux.marks.counters())
            .flat_map(|counter| counter.plus.iter().chain(counter.minus));
        let drawn = linux
            .state
            .iter()
            .flat_map(|state| state.plus.iter().chain(state.minus).chain(&state.while_on));
        for name in counted.chain(drawn) {
            assert!(names.contains(name) || *name == "drops", "{}: {name}", record.kind);
        }
    }
}

#[test]
fn the_simulator_s_disciplines_are_those_of_the_records() {
    let simulated: Vec<&str> =
        RECORDS.iter().filter(|record| record.simulated).map(|record| record.kind).collect();
    let named = |kind: &&&str| **kind != tc::disciplines::own::KIND;
    let theirs: Vec<&str> = qdisc::Params::KINDS.iter().filter(named).copied().collect();
    assert_eq!(simulated, theirs);
    for kind in &theirs {
        let least = record(kind).expect("a record").least;
        assert_eq!(parse(least).at(1_000_000).params().map(|params| params.kind()), Some(*kind));
    }
}

#[test]
fn a_user_written_discipline_is_a_file_a_class_and_numbers() {
    let own = parse("a/my_aqm.py:Mine target 5ms share=0.25 limit 10");
    assert_eq!(own.text(), "a/my_aqm.py:Mine target 5000000 share 0.25 limit 10");
    assert_eq!(parse(&own.text()), own);
    assert!(own.lacking().is_none());
    let known = own.with_source(|file| Some(format!("the text of {file}")));
    assert_eq!(known.text(), own.text());
    assert_ne!(format!("{known:?}"), format!("{own:?}"));
    let Some(Params::Own(params)) = known.params() else { panic!("it has parameters") };
    assert_eq!(params.source.as_deref(), Some("the text of a/my_aqm.py"));
    let kind = ("kind".to_owned(), Value::Text("own".into()));
    let fields = known.fields().iter().map(|(name, value)| (name.to_owned(), value.clone()));
    assert_eq!(Discipline::from_params([kind].into_iter().chain(fields)).unwrap(), known);
    let refusals = [
        ("my_aqm.py", "'my_aqm.py' does not name a class of its file"),
        ("my_aqm.py:Mine target", "Mine: target needs a number"),
        ("my_aqm.py:Mine target soon", "Mine: target 'soon' is not a number"),
        ("my_aqm.py:Mine 5ms target", "Mine: '5ms' is not the name of a parameter"),
        ("my_aqm.py:Mine a 1 a 2", "Mine: a sets a parameter again"),
        ("own", "unknown queue discipline 'own'"),
    ];
    for (words, problem) in refusals {
        assert_eq!(Discipline::parse(words).expect_err(words).problem, problem, "{words}");
    }
    let linux = own.command().expect_err("Linux has none");
    assert!(linux.problem.ends_with("is Python, which no kernel runs"), "{}", linux.problem);
}
