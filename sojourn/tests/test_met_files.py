"""Faults that public files of other people have shown. Each file here was written anew."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import pytest

from sojourn import formats, scenario
from sojourn.errors import UserError
from sojourn.formats import FileMeasurement, Texts, packets
from sojourn.linux import routeros

FILES = Path(__file__).parent / "formats"
V6 = ("2001:db8:aaaa:bbbb:cccc:dddd:1:1", "2001:db8:1111:2222:3333:4444:5:5")


def _result(folder: Path, text: str | bytes, name: str = "x.txt") -> FileMeasurement | Texts:
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    _, result = formats.read(formats.open_file(file))
    assert isinstance(result, FileMeasurement | Texts)
    return result


def _texts(folder: Path, text: str | bytes, name: str = "x.txt") -> Texts:
    """The texts of a file, of which the scenario is valid."""
    texts = _result(folder, text, name)
    assert isinstance(texts, Texts)
    for ending, content in texts.files.items():
        (folder / f"y{ending}").write_text(content.replace("{stem}", "y"))
    for ending, data in texts.binary.items():
        (folder / f"y{ending}").parent.mkdir(exist_ok=True)
        (folder / f"y{ending}").write_bytes(data)
    scenario.load(folder / "y.toml")
    return texts


def _keys(texts: Texts) -> dict[str, str]:
    """The keys of a scenario's bottleneck."""
    lines = texts.files[".toml"].partition("[bottleneck]\n")[2].partition("\n\n")[0].splitlines()
    return {key: value.strip('"') for key, _, value in (line.partition(" = ") for line in lines)}


def _measured(folder: Path, text: str) -> FileMeasurement:
    result = _result(folder, text)
    assert isinstance(result, FileMeasurement)
    return result


# ------------------------------------------------------------------------------------------- pings


def test_ping6_of_bsd_is_read(tmp_path: Path) -> None:
    measured = _measured(
        tmp_path,
        "PING6(56=40+8+8 bytes) 2001:db8::9 --> 2001:db8::1\n"
        "16 bytes from 2001:db8::1, icmp_seq=0 hlim=57 time=14.202 ms\n"
        "16 bytes from 2001:db8::1, icmp_seq=2 hlim=57 time=15.113 ms\n\n"
        "--- one.example ping6 statistics ---\n"
        "3 packets transmitted, 2 packets received, 33.3% packet loss\n",
    )
    (pings,) = measured.pings
    assert measured.host == "2001:db8::1"
    assert [ping.rtt_ms for ping in pings.sent if ping.seq != 1] == [14.202, 15.113]
    assert math.isnan(pings.sent[1].rtt_ms)


def test_an_address_behind_the_host_of_ping_is_not_part_of_its_name(tmp_path: Path) -> None:
    measured = _measured(
        tmp_path,
        "PING one.example(two.example (2001:db8::1)) 56 data bytes\n"
        "64 bytes from two.example (2001:db8::1): icmp_seq=1 ttl=57 time=14.2 ms\n"
        "no answer\n\n--- one.example ping statistics ---\n"
        "2 packets transmitted, 2 received, 0% packet loss, time 1001ms\n",
    )
    assert measured.host == "one.example"
    # A line of a reply can't be read.
    assert "The summary counts 2 replies, and 1 are listed: the others count as lost." in measured.notes  # fmt: skip


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "traceroute to one.example (192.0.2.1), 30 hops max, 60 byte packets\n 1  a (192.0.2.9)  0.5 ms  0.4 ms  0.6 ms\n",
            "traceroute sends three probes to each hop",
        ),
        (
            "[  3] local 192.0.2.9 port 53120 connected with 192.0.2.1 port 5001\n[ ID] Interval       Transfer     Bandwidth\n[  3]  0.0- 1.0 sec  1.12 MBytes  9.44 Mbits/sec\n",
            "run it again with -y C",
        ),
        (
            "[ ID] Interval        Transfer    Bandwidth       Write/Err  Rtry\n[  1] 0.00-1.00 sec  40.1 KBytes   329 Kbits/sec  3/0  0\n",
            "run it again with -y C",
        ),
        ("15.0 3168.64\n474.0 3168.64\n514.0 3183.22\n", "its columns have no names"),
        ("0.636\n0.910\n0.872\n", "its columns have no names"),
        (
            "Results:\n========\nDownload:\n\tThroughput: 93.100 Mbps (11.638 MBps), using 8 parallel connections.\n\tRPM: 512 (P90)\n",
            "it has totals only",
        ),
        ('{"Site": {"downloadBandwidthMbps": 100, "uploadBandwidthMbps": 50}}', "give ShapedDevices.csv"),
        ("Circuit ID,Parent Node,MAC,Download Max Mbps,Upload Max Mbps\n1,a,155,20\n", "line 2: it has 4 fields, and the first line names 5"),
        ("/queue simple\nadd max-limit={speed}M/1M name=a target=bridge\n", "max-limit: '{speed}M' is not a rate of RouterOS"),
    ],
)  # fmt: skip
def test_what_can_not_be_read_is_refused_with_the_reason(
    text: str, says: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as refused:
        _result(tmp_path, text)
    assert says in str(refused.value)


def test_goresponsiveness_logs_are_probes_and_goodput() -> None:
    _, probes = formats.read(formats.open_file(FILES / "goresponsiveness-foreign.csv"))
    assert isinstance(probes, FileMeasurement)
    new, loaded = probes.pings
    # Three round trips took 90 and 120 ms.
    assert [round(ping.rtt_ms, 3) for ping in new.sent] == [30, 40]
    assert [round(ping.t, 3) for ping in (*new.sent, *loaded.sent)] == [0, 0.1, 0.05]
    assert loaded.sent[0].rtt_ms == pytest.approx(200)
    _, goodput = formats.read(formats.open_file(FILES / "goresponsiveness-throughput-download.csv"))
    assert isinstance(goodput, FileMeasurement)
    (stream,) = goodput.streams
    assert (stream.direction, stream.t) == ("down", [0.0, 1.0, 2.0, 3.0])
    assert stream.delivered == pytest.approx([0, 1.25e6, 3.75e6, 8.75e6])


# ---------------------------------------------------------------------------------------- captures


def _block(kind: int, body: bytes) -> bytes:
    size = len(body) + 12
    return struct.pack("<II", kind, size) + body + struct.pack("<I", size)


def _section(*options: bytes) -> bytes:
    """A section with an interface of bare IP."""
    head = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)
    return _block(0x0A0D0D0A, head) + _block(1, struct.pack("<HHI", 101, 0, 0) + b"".join(options))


def _udp(length: int = 100) -> bytes:
    return struct.pack(
        ">BBHIBBH4s4sHHHH", 0x45, 0, length, 0, 64, 17, 0, b"\xc0\0\2\1", b"\xc6\x33\x64\2", 5000, 53, length - 20, 0
    )  # fmt: skip


def _read(folder: Path, data: bytes) -> packets.Packets:
    file = folder / "x.pcapng"
    file.write_bytes(data)
    with formats.open_file(file).stream() as stream:
        return packets.read(stream)


def test_the_older_blocks_of_pcapng_are_read_and_those_without_a_time_are_counted(
    tmp_path: Path,
) -> None:
    packet = _udp()
    older = [
        _block(2, struct.pack("<HHIIII", 0, 7, 0, at, 28, 100) + packet) for at in (1000, 3500)
    ]
    simple = _block(3, struct.pack("<I", 100) + packet)
    found = _read(tmp_path, _section() + b"".join(older) + simple)
    assert (found.t_ns - found.t_ns[0]).tolist() == [0, 2_500_000]
    assert found.size.tolist() == [100, 100]
    assert found.unread == {"simple packet blocks, which have no times": 1}
    # An interface's times may have an offset.
    offset = struct.pack("<HHq", 14, 8, 1_700_000_000)
    found = _read(tmp_path, _section(offset) + older[0])
    assert found.t_ns.tolist() == [1_700_000_000_001_000_000]


def test_pcap_of_the_modified_form_is_read(tmp_path: Path) -> None:
    packet = _udp()
    head = struct.pack("<IHHiIII", 0xA1B2CD34, 2, 4, 0, 0, 65535, 101)
    records = [struct.pack("<IIIIIHBB", at, 0, 28, 100, 1, 8, 0, 0) + packet for at in (1, 2)]
    assert _read(tmp_path, head + b"".join(records)).t_ns.tolist() == [10**9, 2 * 10**9]


def _ip6(source: str, target: str) -> bytes:
    from ipaddress import ip_address

    ends = ip_address(source).packed + ip_address(target).packed
    return struct.pack(">IHBB", 6 << 28, 60, 17, 64) + ends + struct.pack(">HHHH", 50_001, 57_632, 60, 0)  # fmt: skip


def test_flows_of_long_addresses_have_names_that_a_scenario_takes(tmp_path: Path) -> None:
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    frames = [_ip6(*V6), _ip6(*reversed(V6)), _ip6(V6[0].replace("1:1", "1:2"), V6[1])]
    records = [
        struct.pack("<IIII", at, 0, len(frame), 100) + frame for at, frame in enumerate(frames)
    ]
    texts = _texts(tmp_path, head + b"".join(records), "x.pcap")
    for name in (
        f"UDP 50001 to {V6[1]}:57632",
        f"UDP 50001 to {V6[0]}:57632",
        f"UDP 50001 to {V6[1]}:57632 2",
    ):
        assert f'name = "{name}"' in texts.files[".toml"]


def test_a_host_that_talks_to_itself_has_two_directions(tmp_path: Path) -> None:
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    packet = bytearray(_udp())
    packet[12:20] = b"\x7f\0\0\1" * 2
    back = packet[:20] + packet[22:24] + packet[20:22] + packet[24:]
    records = b"".join(
        struct.pack("<IIII", at, 0, 28, 100) + bytes(each) for at, each in enumerate((packet, back))
    )
    texts = _texts(tmp_path, head + records, "x.pcap")
    assert texts.taken == ["2 packets of 2 flows over 1 s, 1 up and 1 down"]


# -------------------------------------------------------------------------------------- tc's words

ALL = "u32 match ip dst 0.0.0.0/0 match ip src 0.0.0.0/0"


def test_a_filter_that_every_packet_matches_chooses_htbs_class(tmp_path: Path) -> None:
    script = (
        "tc qdisc add dev eth0 root handle 1a64: htb default 1\n"
        "tc class add dev eth0 parent 1a64: classid 1a64:1 htb rate 10000000kbit\n"
        "tc class add dev eth0 parent 1a64: classid 1a64:104 htb rate 10000.0Kbit ceil 10000.0Kbit;\n"
        "tc qdisc add dev eth0 parent 1a64:104 handle 2054: netem delay 50.0ms\n"
        "tc qdisc add dev eth0 parent 1a64:1 handle 2055: netem delay 5.0ms\n"
    )
    texts = _texts(tmp_path, f"{script}tc filter add dev eth0 protocol ip parent 1a64: prio 5 {ALL} flowid 1a64:104\n")  # fmt: skip
    keys = _keys(texts)
    assert (keys["up.shaper"], keys["up.delay"]) == ("htb rate 10000.0kbit", "50.0ms")
    assert "htb of eth0 has 2 classes: 1a64:104 is taken, to which a filter sends every packet." in texts.left_out  # fmt: skip
    assert "Line 5: netem is at 1a64:1, which is not taken." in texts.left_out
    # Without such a filter the default class is taken.
    one = ALL.replace("0.0.0.0/0", "192.0.2.1/32", 1)
    texts = _texts(tmp_path, f"{script}tc filter add dev eth0 parent 1a64: {one} flowid 1a64:104\n")
    keys = _keys(texts)
    assert (keys["up.shaper"], keys["up.delay"]) == ("htb rate 10000000kbit", "5.0ms")
    assert (
        "Line 6: this filter chooses a class for some packets, and only one class is taken."
        in texts.left_out
    )


def test_a_default_class_that_takes_no_packets_is_not_taken(tmp_path: Path) -> None:
    script = (
        "tc qdisc add dev eth0 root handle 1: htb default {}\n"
        "tc class add dev eth0 parent 1: classid 1:1 htb rate 25mbit\n"
        "tc class add dev eth0 parent 1:1 classid 1:10 htb rate 5mbit\n"
    )
    for default, reason in (("30", "does not exist"), ("1", "has classes below it")):
        texts = _texts(tmp_path, script.format(default))
        assert _keys(texts)["up.shaper"] == "htb rate 5mbit"
        assert any(f"the default class 1:{default} {reason}: Linux sends packets that no filter matches unshaped" in note for note in texts.left_out)  # fmt: skip


def test_netem_at_a_class_of_prio_is_noted(tmp_path: Path) -> None:
    script = (
        "tc qdisc add dev eth0 root handle 1: prio\n"
        "tc qdisc add dev eth0 parent 1:3 handle 30: netem delay 100ms\n"
    )
    texts = _texts(tmp_path, script)
    assert _keys(texts)["up.delay"] == "100ms"
    assert "Line 2: netem is at 1:3 of prio, which only some packets pass: here all of them do." in texts.left_out  # fmt: skip


@pytest.mark.parametrize(
    ("stab", "tree", "expected"),
    [
        # Of the 14 bytes that Linux counts below IP 14 are taken away.
        ("overhead -14", "htb default 10", {"up.link_layer": "overhead 0 mpu 0 header 0", "up.shaper": "htb rate 10mbit"}),
        ("overhead -4 mpu 64", "htb default 10", {"up.link_layer": "overhead 10 mpu 64 header 10", "up.shaper": "htb rate 10mbit"}),
        ("overhead 40 linklayer atm", "htb default 10", {"up.shaper": "htb rate 10mbit overhead 40 linklayer atm"}),
        ("overhead 40 linklayer atm", "tbf rate 4mbit burst 5k latency 40ms", {"up.qdisc": "tbf rate 4mbit burst 5k latency 40ms overhead 40 linklayer atm"}),
        ("overhead 18", "fq_codel", {"up.link_layer": "overhead 32 mpu 0 header 32", "up.qdisc": "fq_codel"}),
    ],
)  # fmt: skip
def test_a_size_table_is_taken(
    stab: str, tree: str, expected: dict[str, str], tmp_path: Path
) -> None:
    script = f"tc qdisc add dev eth0 root handle 1: stab {stab} {tree}\n"
    if "htb" in tree:
        script += "tc class add dev eth0 parent 1: classid 1:10 htb rate 10mbit\n"
    keys = _keys(_texts(tmp_path, script))
    assert {key: keys[key] for key in expected} == expected


def test_an_overhead_that_a_scenario_can_not_have_is_noted(tmp_path: Path) -> None:
    texts = _texts(tmp_path, "tc qdisc add dev eth0 root stab overhead -20 fq_codel\n")
    assert "Line 1: stab overhead -20: a scenario can subtract at most the 14 bytes of Ethernet. It is left out." in texts.left_out  # fmt: skip
    # tc itself does not take a negative overhead of a class.
    script = (
        "tc qdisc add dev eth0 root handle 1: htb default 10\n"
        "tc class add dev eth0 parent 1: classid 1:10 htb rate 10mbit overhead -14\n"
    )
    texts = _texts(tmp_path, script)
    assert _keys(texts)["up.shaper"] == "htb rate 10mbit"
    assert any("Line 2: shaper: " in note and "'-14'" in note for note in texts.left_out)
    assert "Line 2: the shaper is taken as htb rate 10mbit." in texts.left_out


def test_details_that_tc_shows_are_read(tmp_path: Path) -> None:
    texts = _texts(
        tmp_path,
        "qdisc htb 1: dev eth0 root refcnt 2 r2q 10 default 0x1 direct_packets_stat 0 direct_qlen 1000\n"
        " linklayer ethernet overhead -4 \n"
        "class htb 1:1 root prio 0 quantum 12500 rate 1Mbit overhead 14 ceil 1Mbit linklayer atm"
        " burst 1600b/1 mpu 64b cburst 1600b/1 mpu 64b level 0\n",
    )
    keys = _keys(texts)
    assert keys["up.link_layer"] == "overhead 10 mpu 0 header 10"
    assert keys["up.shaper"] == "htb rate 1mbit burst 1600b overhead 14 mpu 64 linklayer atm"


def test_a_rate_that_is_not_known_gives_no_shaper_and_is_noted_once(tmp_path: Path) -> None:
    script = (
        "UPLINK=$1\ntc qdisc add dev eth0 root handle 1: htb default 10\n"
        "tc class add dev eth0 parent 1: classid 1:10 htb rate ${UPLINK}kbit\n"
    )
    texts = _texts(tmp_path, script)
    assert "up.shaper" not in _keys(texts)
    noted = [note for note in texts.left_out if note.startswith("Line 3: ")]
    assert len(noted) == 1
    assert "'$1kbit' is not a rate" in noted[0]


# ------------------------------------------------------------------------------------------ others

SETTINGS = """# eth0.iface.conf
UPLINK=10000
DOWNLINK=85000
SCRIPT=layer_cake.qos
LINKLAYER=ethernet
OVERHEAD=44
IGNORE_DSCP_INGRESS=0
"""
SHOWN = """sqm.eth1=queue
sqm.eth1.enabled='1'
sqm.eth1.interface='eth1'
sqm.eth1.download='12000'
sqm.eth1.upload='1000'
sqm.eth1.qdisc='fq_codel'
sqm.eth1.script='simple.qos'
sqm.eth1.linklayer='none'
sqm.eth1.overhead='22'
sqm.eth1.eqdisc_opts='noecn'
"""


def test_settings_of_sqm_scripts_and_of_uci_are_read(tmp_path: Path) -> None:
    keys = _keys(_texts(tmp_path, SETTINGS, "eth0.iface.conf"))
    assert keys["down.qdisc"] == "cake bandwidth 85000kbit diffserv3 wash overhead 44"
    assert keys["up.qdisc"] == "cake bandwidth 10000kbit diffserv3 overhead 44"
    texts = _texts(tmp_path, SHOWN)
    keys = _keys(texts)
    assert keys["down.qdisc"] == "fq_codel ecn limit 1001"
    # A packet takes 12 ms at 1 Mbit/s, so SQM's target is higher.
    assert keys["up.qdisc"] == "fq_codel limit 1001 target 13992us interval 108992us noecn"
    assert (keys["down.shaper"], keys["up.shaper"]) == ("htb rate 12000kbit", "htb rate 1000kbit")
    assert "overhead 22 is left out, as SQM leaves it out with linklayer none." in texts.left_out


def test_cake_autorates_file_of_uci_is_read(tmp_path: Path) -> None:
    section = (
        "config cake_autorate '{}'\n\toption enabled '{}'\n\toption dl_if 'ifb-{}'\n"
        "\toption base_dl_shaper_rate_kbps '{}'\n\toption base_ul_shaper_rate_kbps '15000'\n"
    )
    texts = _texts(
        tmp_path, section.format("a", 0, "a", 20000) + section.format("b", 1, "b", 30000)
    )
    assert texts.taken[0] == "down, ifb-b: cake at its base, 30000 kbit/s"
    assert "The file has 2 sections: the first enabled one is taken." in texts.left_out


def test_a_list_of_rattan_within_a_list_is_repeated(tmp_path: Path) -> None:
    inner = (
        '{"RepeatedBwPatternConfig": {"pattern": [{"StaticBwConfig": {"bw": "10Mbps", "duration": "1s"}},'
        ' {"StaticBwConfig": {"bw": "20Mbps", "duration": "1s"}}], "count": %d}}'
    )
    last = '{"StaticBwConfig": {"bw": "40Mbps", "duration": "1s"}}'
    model = '{"RepeatedBwPatternConfig": {"pattern": [%s, %s], "count": 0}}'
    texts = _texts(tmp_path, model % (inner % 3, last), "x.json")
    rows = [line.split(",") for line in texts.files[".down.trace"].splitlines()[1:]]
    assert [float(rate) for _, rate in rows] == [10, 20, 10, 20, 10, 20, 40, 40]
    assert [float(at) for at, _ in rows] == [0, 1, 2, 3, 4, 5, 6, 6.5]
    with pytest.raises(UserError, match="is never reached"):
        _result(tmp_path, model % (inner % 0, last), "x.json")


def test_a_trace_of_mahimahi_is_kept(tmp_path: Path) -> None:
    # Three opportunities of 1500 bytes in 20 ms are 1.8 Mbit/s.
    texts = _texts(tmp_path, "3\n3\n20\n", "line.up")
    assert texts.files[".up.trace"] == "3\n3\n20\n"
    assert texts.taken == ["3 opportunities over 0.02 s as up, mean 1.8 Mbit/s"]
    assert _keys(texts)["up.trace"] == "{stem}.up.trace"
    # The first 4096 bytes are a trace's.
    with pytest.raises(UserError, match="line 3002: 'x' is not a millisecond"):
        _result(tmp_path, "3\n" * 3000 + "20\nx\n" + "21\n" * 2000, "line.down")


def test_a_script_that_starts_and_stops_has_the_queues_that_it_starts(tmp_path: Path) -> None:
    texts = _texts(
        tmp_path,
        "start() {\n tc qdisc add dev eth0 root handle 1: htb default 20\n"
        " tc class add dev eth0 parent 1: classid 1:20 htb rate 40mbit; tc qdisc add dev eth0 parent 1:20 fq_codel\n}\n"
        "stop() {\n tc qdisc del dev eth0 root\n}\n",
    )  # fmt: skip
    keys = _keys(texts)
    assert (keys["up.shaper"], keys["up.qdisc"]) == ("htb rate 40mbit", "fq_codel")
    assert "Line 6 deletes the queues of eth0, as a script does to stop: they are taken all the same." in texts.left_out  # fmt: skip
    # Queues that are deleted and set up again are those of the end.
    again = "tc qdisc add dev eth0 root pfifo limit {}\n"
    text = again.format(10) + "tc qdisc del dev eth0 root\n" + again.format(20)
    assert _keys(_texts(tmp_path, text))["up.qdisc"] == "pfifo limit 20"


def test_commands_of_one_line_are_two(tmp_path: Path) -> None:
    texts = _texts(
        tmp_path,
        "tc qdisc add dev wan root cake bandwidth 20Mbit dual-srchost; sudo tc qdisc add dev ifb0 root cake bandwidth 100Mbit ingress\n",
    )
    keys = _keys(texts)
    assert keys["up.qdisc"] == "cake bandwidth 20Mbit dual-srchost"
    assert keys["down.qdisc"] == "cake bandwidth 100Mbit ingress"


def test_netems_rate_and_limit_are_taken_among_its_other_words(tmp_path: Path) -> None:
    words = "delay 100ms 20ms distribution normal loss 1% rate 10mbit"
    for more, limit in ((" limit 500", 500), ("", 1000)):
        keys = _keys(_texts(tmp_path, f"tc qdisc add dev eth0 root netem {words}{more}\n"))
        assert keys["up.qdisc"] == f"pfifo limit {limit}"
        assert keys["up.rate"] == "10000000 bit/s"


DRIVE = """Timestamp,Speed,CellID,DL_bitrate,UL_bitrate,State
2019.12.14_10.16.30,38,11,2000,4,I
2019.12.14_10.16.31,40,11,4000,12,D
"""


@pytest.mark.parametrize(
    ("table", "way", "rates"),
    [
        # A vehicle's speed is not a rate where a column is.
        (DRIVE, "down", [2, 4]),
        ("time_s,speed,dl_mbps\n0,88,10\n1,90,20\n", "down", [10, 20]),
        ("time_s,down_MBps\n0,10\n1,20\n", "down", [80, 160]),
        ("time_s,DOWN_MBPS\n0,10\n1,20\n", "down", [10, 20]),
        ("time_s,ul (kB/s)\n0,1000\n1,2000\n", "up", [8, 16]),
        ("timestamp;dl_mbps\n1700000000;1,5\n1700000001;2,5\n", "down", [1.5, 2.5]),
        ("time_us,rate_mbps\n0,10\n1000000,20\n", "down", [10, 20]),
        ("date,time,download_mbps\n2024-01-01,23:59:59,5\n2024-01-02,00:00:00,6\n", "down", [5, 6]),
    ],
)  # fmt: skip
def test_columns_of_a_table_mean_what_they_say(
    table: str, way: str, rates: list[float], tmp_path: Path
) -> None:
    rows = [
        line.split(",") for line in _texts(tmp_path, table).files[f".{way}.trace"].splitlines()[1:]
    ]
    assert [float(rate) for _, rate in rows] == rates
    assert [float(at) for at, _ in rows] == [0, 1]


def test_settings_of_a_shell_may_be_read_only(tmp_path: Path) -> None:
    texts = _texts(tmp_path, "readonly base_dl_shaper_rate_kbps=\"20000\"\nexport base_ul_shaper_rate_kbps='10000'\n")  # fmt: skip
    assert texts.taken[0] == "down, unknown: cake at its base, 20000 kbit/s"


def test_a_line_that_a_mail_has_wrapped_is_one_and_a_word_alone_is_left_out(tmp_path: Path) -> None:
    texts = _texts(
        tmp_path,
        "qdisc cake 1: dev ifb4eth4 root refcnt 2 bandwidth 40Mbit diffserv4\n"
        "dual-dsthost nat nowash no-ack-filter split-gso rtt 60.0ms raw\n"
        "overhead 0 fwmark 0xf no-sce\n"
        " Sent 1081750548776 bytes 839670608 pkt (dropped 1616216, overlimits\n"
        "657093747 requeues 0)\n"
        "qdisc cake 2: dev eth4 root refcnt 2 bandwidth unlimited besteffort dual-\n"
        "srchost nonat rtt 20.0ms noatm overhead 18 mpu 64\n",
    )
    keys = _keys(texts)
    assert keys["down.qdisc"] == (
        "cake bandwidth 40Mbit diffserv4 dual-dsthost nat nowash no-ack-filter split-gso rtt 60.0ms raw overhead 0"
    )
    assert keys["up.qdisc"] == (
        "cake unlimited besteffort dual-srchost nonat rtt 20.0ms noatm overhead 18 mpu 64"
    )
    assert "Line 1: fwmark 0xf no-sce of cake is left out." in texts.left_out


def test_a_probe_that_was_lost_at_the_end_is_in_the_last_phase(tmp_path: Path) -> None:
    text = (
        "PING one.example (192.0.2.1): 56 data bytes\n"
        "64 bytes from 192.0.2.1: icmp_seq=0 ttl=57 time=14.2 ms\n"
        "--- one.example ping statistics ---\n3 packets transmitted, 1 packets received, 66.7% packet loss\n"
    )
    facts = _measured(tmp_path, text).facts(formats.open_file(tmp_path / "x.txt"))
    (phase,) = facts["phases"]
    assert phase["start_ns"] == 0
    # The last of the three was sent after 2 s.
    assert phase["end_ns"] > 2 * 10**9


def test_an_overhead_scheme_of_routeros_is_cakes_words(tmp_path: Path) -> None:
    texts = _texts(
        tmp_path,
        "/queue type\nadd kind=cake name=up cake-overhead-scheme=pppoe-ptm,ether-vlan cake-rtt=30ms\n"
        "/queue simple\nadd max-limit=8M/40M name=wan queue=up/default target=192.168.88.0/24\n",
        "x.rsc",
    )
    keys = _keys(texts)
    assert (keys["up.shaper"], keys["up.qdisc"]) == ("htb rate 8000000bit", "cake pppoe-ptm ether-vlan rtt 30ms")  # fmt: skip
    assert not any("were not taken" in note for note in texts.left_out)
    assert routeros.options("cake pppoe-ptm ether-vlan") == {
        "kind": "cake", "cake-overhead-scheme": "pppoe-ptm,ether-vlan",
    }  # fmt: skip
