"""Captures: other programs read in them what the simulator's tables contain."""

from __future__ import annotations

import io
import shutil
import struct
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import dpkt
import polars as pl
import pytest

import sojourn
from sojourn import scenario
from sojourn.cli import status
from sojourn.records import Run, RunError, pcapng
from sojourn.records.pcapng import capture

LINE = """
duration = "6 s"
warmup = "1 s"

[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
qdisc = "{qdisc}"

[record]
headers = true

[[flow]]
name = "bulk"
kind = "bulk"
congestion = "{congestion}"
ecn = {ecn}

[[flow]]
name = "web"
kind = "transfers"
size = "50 kB"
pause = "200 ms"

[[flow]]
name = "call"
kind = "udp"
rate = "100 kbit/s"

[[flow]]
name = "ping"
kind = "ping"
"""


def _run(
    folder: Path, qdisc: str = "pfifo limit 30", congestion: str = "cubic", ecn: str = "false"
) -> Run:
    text = LINE.format(qdisc=qdisc, congestion=congestion, ecn=ecn)
    return sojourn.run(scenario.loads(text), seeds=1, out=folder / "run")


def _packets(content: bytes) -> list[tuple[int, dpkt.ip.IP]]:
    """Returns times in ns and packets, read by another implementation of the format."""
    reader = dpkt.pcapng.Reader(io.BytesIO(content))
    assert reader.datalink() == dpkt.pcap.DLT_EN10MB
    return [(round(float(at) * 1e9), dpkt.ethernet.Ethernet(frame).data) for at, frame in reader]


def _options(packet: dpkt.ip.IP) -> dict[int, bytes]:
    return {kind: value for kind, value in dpkt.tcp.parse_opts(packet.data.opts) if kind > 1}


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return _run(tmp_path_factory.mktemp("lossy"))


def test_another_reader_finds_each_packet_that_left_a_queue(lossy: Run) -> None:
    table, packets = lossy.table("headers", 1), _packets(capture(lossy, 1))
    assert len(packets) == table.height > 5000
    for (at, packet), row in zip(packets, table.iter_rows(named=True), strict=True):
        assert abs(at - row["t_ns"]) < 1000
        assert (packet.len, packet.p, packet.tos) == (row["bytes"], row["protocol"], row["ds"])
        assert bool(packet.src[1]) == bool(row["reply"])
        assert dpkt.in_cksum(bytes(packet)[:20]) == 0
    assert Counter(packet.p for _, packet in packets).keys() == {1, 6, 17}


def test_segments_carry_the_sender_s_numbers(lossy: Run) -> None:
    rows = lossy.table("headers", 1).iter_rows(named=True)
    seen: Counter[str] = Counter()
    for (_, packet), row in zip(_packets(capture(lossy, 1)), rows, strict=True):
        if packet.p != 6:
            continue
        segment, options = packet.data, _options(packet)
        assert (segment.seq, segment.ack) == (row["seq"], row["ack"] or 0)
        assert segment.flags == row["flags"] & 0xFF
        stamps = row["tsval"].to_bytes(4) + row["tsecr"].to_bytes(4)
        assert options[8] == stamps
        edges = [row[f"sack{n}_{edge}"] for n in (1, 2, 3, 4) for edge in ("left", "right")]
        sacks = b"".join(edge.to_bytes(4) for edge in edges if edge is not None)
        assert options.get(5, b"") == sacks
        syn = row["mss"] is not None
        assert (2 in options, 3 in options, 4 in options) == (syn, syn, syn)
        # Everything after the header is data.
        assert packet.len - 20 - 4 * segment.off == row["payload_bytes"]
        seen.update(syn=syn, sacks=bool(sacks), data=row["payload_bytes"] > 0)
        seen.update(pushed=bool(segment.flags & 8))
    assert min(seen.values()) > 10


def test_checksums_are_those_of_headers_and_zeros(lossy: Run) -> None:
    seen: Counter[int] = Counter()
    for _, frame in dpkt.pcapng.Reader(io.BytesIO(capture(lossy, 1))):
        head, above = frame[14:34], frame[34:]
        protocol, length = head[9], int.from_bytes(head[2:4]) - 20
        pseudo = head[12:20] + struct.pack(">HH", protocol, length) if protocol == 6 else b""
        if protocol != 17:
            assert dpkt.in_cksum(pseudo + above) == 0
        seen[protocol] += 1
    assert min(seen.values()) > 10


def test_echoes_are_requests_and_replies_and_windows_equal_linux_s(lossy: Run) -> None:
    rows = lossy.table("headers", 1).iter_rows(named=True)
    windows: Counter[tuple[bool, int]] = Counter()
    for (_, packet), row in zip(_packets(capture(lossy, 1)), rows, strict=True):
        if packet.p == 1:
            assert packet.data.type == (0 if row["reply"] else 8)
        if packet.p == 6 and row["window"] is None:
            windows[bool(row["flags"] & 2), packet.data.win] += 1
        elif packet.p == 6:
            assert packet.data.win == row["window"]
    assert windows.keys() == {(True, 64_240), (False, 502)}


@pytest.mark.parametrize(
    ("counters", "option"),
    [
        ((3, 2, 1), (174, 11, 3, 2, 1)),
        ((3, 2, None), (174, 8, 3, 2)),
        ((None, 2, 1), (172, 8, 1, 2)),
        ((None, None, 1), (172, 5, 1)),
    ],
)
def test_the_counters_of_accurate_feedback_have_two_orders(
    lossy: Run, counters: tuple[int | None, ...], option: tuple[int, ...]
) -> None:
    names = ("accecn_e1b", "accecn_ceb", "accecn_e0b")
    values = {name: pl.lit(value, pl.Int64) for name, value in zip(names, counters, strict=True)}
    one = lossy.table("headers", 1).head(1).with_columns(**values)
    written = [bytes(found[0]) for here, found in pcapng._options(pcapng._Columns(one)) if here[0]]
    kind, length, *values = option
    body = b"".join(each.to_bytes(3) for each in values)
    assert [each for each in written if each[0] in (172, 174)] == [bytes((kind, length)) + body]


def test_the_data_of_a_connection_are_one_stream(lossy: Run) -> None:
    data = lossy.table("headers", 1).filter(
        (pl.col("flow") == "web") & (pl.col("payload_bytes") > 0) & (pl.col("connection") == 3)
    )
    first = data.group_by("seq").agg(pl.col("payload_bytes").max()).sort("seq")
    ends = (first["seq"] + first["payload_bytes"]).to_list()
    assert [1, *ends[:-1]] == first["seq"].to_list()
    assert ends[-1] == 50_001
    acked = lossy.table("headers", 1).filter(
        (pl.col("flow") == "web") & (pl.col("reply") == 1) & (pl.col("connection") == 3)
    )
    assert acked["ack"].max() == 50_001, "a short last segment ends with its data"


def test_accurate_feedback_is_in_the_flags_and_in_an_option(tmp_path: Path) -> None:
    run = _run(tmp_path, "codel ce_threshold 1ms", "dctcp", '"accecn"')
    packets = [packet for _, packet in _packets(capture(run, 1)) if packet.p == 6]
    options = [_options(packet).get(174, b"") for packet in packets]
    counted = [int.from_bytes(each[3:6]) for each in options if len(each) >= 6]
    assert sorted(counted) == counted
    assert counted[-1] > 100_000, "bytes with CE"
    # Order 1: ECT(1), CE, ECT(0). The counters of ECT(0) and ECT(1) start at 1 (RFC 9768, section
    # 3.2.1).
    [answer] = [
        o for p, o in zip(packets, options, strict=True) if p.data.flags & 0x12 == 0x12 and o
    ]
    assert answer == bytes((0, 0, 1, 0, 0, 0, 0, 0, 1))
    [syn] = [p for p in packets if p.data.flags & 0x12 == 2 and p.src == packets[0].src]
    assert syn.data.flags & 0xC0 == 0xC0
    assert bytes(syn)[32] & 1 == 1, "AE"
    assert {packet.tos & 3 for packet in packets} >= {2, 3}


def test_wireshark_reads_ae_and_the_option_as_the_table_has_them(tmp_path: Path) -> None:
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("needs tshark")
    run = _run(tmp_path, "dualpi2", "prague", '"accecn"')
    file = tmp_path / "a.pcapng"
    file.write_bytes(capture(run, 1))
    # tshark shows the three flags of a SYN-ACK separately. Of later segments it shows their value,
    # ACE.
    flags = ["tcp.flags.ae", "tcp.flags.cwr", "tcp.flags.ece"]
    fields = ["tcp.flags.ace", *flags]
    fields += [f"tcp.options.acc_ecn.e{name}" for name in ("e1b", "ceb", "e0b")]
    asked: list[Any] = [tshark, "-r", file, "-Y", "tcp.options.acc_ecn", "-T", "fields"]
    done = subprocess.run(
        [*asked, *(f"-e{field}" for field in fields)], capture_output=True, text=True, check=True
    )
    read: Counter[tuple[int | None, ...]] = Counter()
    for line in done.stdout.splitlines():
        ace, ae, cwr, ece, *counters = (int(cell) if cell else None for cell in line.split("\t"))
        bits = 4 * (ae or 0) + 2 * (cwr or 0) + (ece or 0)
        read[bits if ace is None else ace, *counters] += 1
    names = ("accecn_e1b", "accecn_ceb", "accecn_e0b")
    has = run.table("headers", 1).filter(pl.any_horizontal(pl.col(*names).is_not_null()))
    assert read == Counter(has.select(pl.col("flags") // 64 % 8, *names).rows())
    assert {row[0] for row in read} == set(range(8))


def test_segments_that_prague_makes_short_follow_each_other(tmp_path: Path) -> None:
    text = LINE.format(qdisc="dualpi2", congestion="prague", ecn='"accecn"')
    text = text.replace('rate = "10 Mbit/s"', 'rate = "300 kbit/s"').replace(
        "100 kbit/s", "8 kbit/s"
    )
    text = text.replace('size = "50 kB"', 'size = "5 kB"').replace('"6 s"', '"20 s"')
    run = sojourn.run(scenario.loads(text), seeds=1, out=tmp_path / "short")
    rows = run.table("headers", 1).filter(
        (pl.col("flow") == "bulk") & (pl.col("link") == "down") & (pl.col("protocol") == 6)
    )
    data = rows.filter((pl.col("reply") == 0) & (pl.col("payload_bytes") > 0)).sort("seq")
    data = data.unique("seq", keep="first", maintain_order=True)
    assert data["payload_bytes"].n_unique() > 5
    assert data["payload_bytes"].min() < 600
    ends = data["seq"] + data["payload_bytes"]
    assert ends[:-1].to_list() == data["seq"][1:].to_list()
    acks = run.table("headers", 1).filter((pl.col("flow") == "bulk") & (pl.col("reply") == 1))
    assert set(acks["ack"].drop_nulls()) <= {*ends, *data["seq"]}


def test_wireshark_has_no_complaint(lossy: Run, tmp_path: Path) -> None:
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("needs tshark")
    file = tmp_path / "a.pcapng"
    file.write_bytes(capture(lossy, 1))

    def matching(wanted: str) -> int:
        check = ("tcp.check_checksum", "ip.check_checksum", "udp.check_checksum")
        asked: list[Any] = [tshark, "-r", file, *(f"-o{name}:TRUE" for name in check), "-Y", wanted]
        done = subprocess.run(asked, capture_output=True, text=True, check=True)
        return len(done.stdout.splitlines())

    assert matching("_ws.malformed or ip.checksum.status==0") == 0
    # Dropped packets are not in the capture.
    complaint = "_ws.expert.severity >= 0x600000"
    expected = "tcp.analysis.lost_segment or tcp.analysis.out_of_order or tcp.analysis.flags"
    assert matching(f"({complaint}) and not ({expected})") == 0
    sent_again = "tcp.analysis.retransmission or tcp.analysis.out_of_order"
    retransmits = lossy.table("flows", 1)["retransmits"].sum()
    measured = "frame.time_epoch >= 1 and tcp.len > 0"
    assert matching(f"{measured} and ({sent_again})") == pytest.approx(retransmits, abs=2)


def test_run_writes_a_capture_of_each_seed(tmp_path: Path) -> None:
    text = LINE.format(qdisc="fq_codel", congestion="reno", ecn="true")
    file = tmp_path / "line.toml"
    file.write_text(text.replace("[record]\nheaders = true\n", "").replace("6 s", "2 s"))
    out = tmp_path / "out"
    assert status(["run", str(file), "--pcap", "--seeds", "2", "-o", str(out), "--quiet"]) == 0
    run = Run.open(out)
    for seed in (1, 2):
        assert (out / "pcap" / f"seed-{seed}.pcapng").read_bytes() == capture(run, seed)
    again = tmp_path / "again.pcapng"
    assert status(["export", str(out), "--pcap-seed", "2", "-o", str(again), "--quiet"]) == 0
    assert again.read_bytes() == capture(run, 2)


def test_without_headers_a_capture_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = LINE.format(qdisc="codel", congestion="reno", ecn="false").replace("headers = true", "")
    run = sojourn.run(scenario.loads(text.replace("6 s", "2 s")), seeds=1, out=tmp_path / "run")
    with pytest.raises(RunError, match="headers were not recorded"):
        capture(run, 1)
    file = tmp_path / "x.pcapng"
    assert status(["export", str(run.path), "-o", str(file)]) == 2
    assert "headers = true" in capsys.readouterr().err
    assert not file.exists()
