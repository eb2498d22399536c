"""`sojourn look` and `sojourn import` of captures. The captures are of simulated runs, so the tests
compare the results with the simulator's tables of the same run."""

from __future__ import annotations

import hashlib
import random
import re
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import sojourn
from sojourn import formats, scenario
from sojourn.cli import cli
from sojourn.errors import UserError
from sojourn.figures import series
from sojourn.formats import FileMeasurement, packets, resent, seen
from sojourn.formats.packets import Ends
from sojourn.records import Run
from sojourn.records.pcapng import capture
from sojourn.report import data

LINE = """
duration = "14 s"
warmup = "0 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
qdisc = "{qdisc}"
[record]
headers = true
[[flow]]
name = "bulk"
kind = "bulk"
ecn = {ecn}
start = "4 s"
[[flow]]
name = "ping"
kind = "ping"
"""
LOADED_S = (6, 14)
"""Without slow start."""


class Case:
    """A run of the simulator, and the Run that `look` makes of its capture."""

    def __init__(self, folder: Path, qdisc: str, ecn: str) -> None:
        self.run = sojourn.run(scenario.loads(LINE.format(qdisc=qdisc, ecn=ecn)), seeds=1, out=folder / "run")  # fmt: skip
        self.file = folder / "line.pcapng"
        self.file.write_bytes(capture(self.run, 1))
        self.measured = seen.measurement(formats.open_file(self.file))

    def by_second(self) -> np.ndarray:
        """Our sender's mean RTT and that of the capture in each loaded second, ms."""
        table = self.run.table("flow", 1)
        table = table.filter(table["flow"] == "bulk")
        t, srtt = table["t_ns"].to_numpy() / 1e9, table["srtt_ns"].cast(float).to_numpy() / 1e6
        target = next(each for each in self.measured.pings if each.name == "10.1.0.1:5001")
        rtt = np.array([ping.rtt_ms for ping in target.sent])
        ended = np.array([ping.t for ping in target.sent]) + rtt / 1e3
        assert self.measured.began_s is not None
        ended += self.measured.began_s
        return np.array(
            [
                [srtt[(t >= at) & (t < at + 1)].mean(), rtt[(ended >= at) & (ended < at + 1)].mean()]
                for at in range(*LOADED_S)
            ]
        )  # fmt: skip


@pytest.fixture(scope="module", params=[("pfifo limit 100", "false"), ("fq_codel", "true")], ids=["pfifo", "fq_codel"])  # fmt: skip
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(tmp_path_factory.mktemp("seen"), *request.param)


def test_the_rtt_is_our_senders_within_one_percent(case: Case) -> None:
    ours, theirs = case.by_second().mean(axis=0)
    assert theirs == pytest.approx(ours, rel=0.01)


def test_the_least_rtt_and_the_added_delay_are_those_of_the_line(case: Case) -> None:
    flows = case.run.table("flows", 1)
    base = flows.filter(flows["flow"] == "bulk")["rtt_min_ns"].item() / 1e6
    target = next(each for each in case.measured.pings if each.name == "10.1.0.1:5001")
    assert min(ping.rtt_ms for ping in target.sent) == pytest.approx(base, rel=1e-6)
    queue = case.run.table("queue", 1)
    queue = queue.filter((queue["link"] == "down") & queue["t_ns"].is_between(LOADED_S[0] * 10**9, LOADED_S[1] * 10**9))  # fmt: skip
    sent = queue["sent_packets"].to_numpy()
    waited = (queue["sojourn_mean_ns"].fill_null(0).to_numpy() * sent).sum() / sent.sum() / 1e6
    added = case.by_second()[:, 1].mean() - base
    # An ACK of every other segment waits for the second one: 1.2 ms at 10 Mbit/s.
    assert added == pytest.approx(waited, rel=0.05, abs=1.3)


def test_bytes_and_retransmissions_are_our_senders(case: Case) -> None:
    flows = case.run.table("flows", 1)
    truth = flows.filter(flows["flow"] == "bulk")
    (stream,) = case.measured.streams
    assert stream.name == "10.1.0.1:5001 up"
    assert stream.delivered[-1] == pytest.approx(truth["delivered_bytes"].item(), rel=0.01)
    assert stream.retransmits[-1] == truth["retransmits"].item()
    table = case.run.table("flow", 1)
    inflight = table.filter(table["flow"] == "bulk")["inflight_bytes"].max()
    assert 0 < max(stream.inflight) <= inflight * 1.02


def test_phases_pings_and_ecn_are_in_the_run(case: Case, tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["look", str(case.file), "-o", str(tmp_path / "x")], catch_exceptions=False)  # fmt: skip
    assert done.exit_code == 0, done.output
    run = Run.open(tmp_path / "x")
    assert [(phase.kind, phase.start_ns / 1e9) for phase in run.meta.phases] == [("idle", 0), ("upload", 4)]  # fmt: skip
    pings = run.table("flows", 1)
    pings = pings.filter(pings["flow"] == "10.1.0.2 ICMP")
    drops = case.run.table("drops", 1)
    lost = drops.filter((drops["flow"] == "ping") & (drops["marked"] == 0)).height
    assert pings["lost_packets"].item() == lost
    marked = any(note.startswith("ECN of packets up") and " CE." in note for note in case.measured.notes)  # fmt: skip
    links = case.run.table("links", 1)
    assert marked == (links["marked_packets"].sum() > 0)


def test_a_ping_behind_the_queue_does_not_measure_that_queue(case: Case) -> None:
    """The capture is behind the bottleneck's queue: its pings have waited already."""
    first = case.measured.pings[0].name
    passed = [note for note in case.measured.notes if note.startswith("The queue is on this side")]
    if case.run.meta.links[0].qdisc.startswith("pfifo"):
        assert (first, len(passed)) == ("10.1.0.1:5001", 1)
    else:
        assert (first, len(passed)) == ("10.1.0.2 ICMP", 0)


def test_a_measurement_without_a_known_cwnd_has_no_panel_of_it(case: Case, tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["look", str(case.file), "-o", str(tmp_path / "x")], catch_exceptions=False)  # fmt: skip
    assert done.exit_code == 0, done.output
    run = Run.open(tmp_path / "x")
    assert series.cwnds(run, 1) == {}
    titles = [panel["title"] for panel in data.payload([run])["views"][0]["panels"]]
    assert not any("cwnd" in title for title in titles)


def test_without_timestamps_the_half_to_the_far_end_is_known(case: Case, tmp_path: Path) -> None:
    found = _read(case.file.read_bytes(), tmp_path)
    found.tsval[:] = found.tsecr[:] = -1
    ends = next(each for each in found.flows if each.protocol == packets.TCP and each.source_port == 40000)  # fmt: skip
    rows = [np.flatnonzero(found.flow == found.flows.index(each)) for each in (ends, ends.back)]
    _, _, took = seen._half(found, rows[0], rows[1])
    assert took.min() / 1e6 == pytest.approx(21.2, rel=0.01)
    assert len(took) > 4000


def test_a_capture_is_sent_again_in_its_directions(case: Case, tmp_path: Path) -> None:
    words = ["import", str(case.file), "-o", str(tmp_path / "again.toml")]
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert "Open loop: packets are sent when they were captured." in done.output
    read = scenario.load(tmp_path / "again.toml")
    found = _read(case.file.read_bytes(), tmp_path)
    counts = {str(ends): int((found.flow == n).sum()) for n, ends in enumerate(found.flows)}
    fast = {"bottleneck.up.rate": "1 Gbit/s", "bottleneck.down.rate": "1 Gbit/s"}
    sent = sojourn.run(read.with_(fast), seeds=1)
    table = sent.table("flows", 1)
    assert dict(zip(table["flow"].to_list(), table["received_packets"].to_list(), strict=True)) == counts  # fmt: skip
    links = sent.table("links", 1)
    arrived = dict(zip(links["link"].to_list(), links["arrived_packets"].to_list(), strict=True))
    up = sum(count for name, count in counts.items() if name.split()[1].startswith("10.0."))
    assert arrived == {"down": sum(counts.values()) - up, "up": up}


def test_a_part_of_a_capture_is_that_part(case: Case, tmp_path: Path) -> None:
    found = _read(case.file.read_bytes(), tmp_path)
    words = ["look", str(case.file), "--time", "6s..9s", "-o", str(tmp_path / "part")]
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    inside = (found.t_ns - found.t_ns[0] >= 6 * 10**9) & (found.t_ns - found.t_ns[0] <= 9 * 10**9)
    assert f"capture {inside.sum()} packets" in done.output
    part = Run.open(tmp_path / "part")
    assert part.meta.duration_ns == pytest.approx(3e9, abs=0.1e9)
    words = ["import", str(case.file), "--time", "6s..9s", "-o", str(tmp_path / "part.toml")]
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    sent_again = scenario.load(tmp_path / "part.toml").realise(1)
    assert sent_again.duration_ns == pytest.approx(3e9, abs=1.1e9)
    for wrong, says in (
        ("9s..6s", "'9s..6s' is not FROM..TO"),
        ("6s", "'6s' is not FROM..TO"),
        ("90s..99s", "no packet of IP in the time that --time names"),
    ):
        done = CliRunner().invoke(cli, ["look", str(case.file), "--time", wrong])
        assert says in str(done.exception)
    ping = Path(__file__).parent / "formats" / "ping-macos.txt"
    done = CliRunner().invoke(cli, ["import", str(ping), "--time", "1s..2s"])
    assert "--time is for captures" in str(done.exception)


def test_a_part_of_a_capture_with_too_many_packets_can_be_chosen(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packets, "MOST_PACKETS", 5_000)
    content = formats.open_file(case.file)
    with pytest.raises(
        formats.FileFormatError, match="more than 5000 packets: choose a part of it"
    ):
        seen.measurement(content)
    assert seen.measurement(replace(content, span_ns=(0, 5 * 10**9))).test.endswith(" packets")


# ------------------------------------------------------------------------------------------- QUIC

NEAR_S, FAR_S = 0.002, 0.02
"""From the client to the capture, and from there to the server; each way."""


def quic(
    *, near: bool = True, spin: str = "both", swapped: int = 0, length_s: float = 2.0
) -> list[tuple[float, bytes]]:
    """Packets of a QUIC connection where they are captured. Both ends send every millisecond. From the
    second second on packets wait 30 ms on their way to the server. `near`: the client is the near end."""
    rng = random.Random(1)
    arrivals: list[tuple[float, int, int]] = []
    values = [0, 0]
    frames = []
    steps = round(length_s * 1000)
    for step in range(steps):
        now = step / 1000
        for at, end, value in [each for each in arrivals if each[0] <= now]:
            arrivals.remove((at, end, value))
            values[end] = value if end else 1 - value
        for end in (0, 1):
            value = values[end]
            if spin == "random":
                value = rng.randrange(2)
            elif end and spin == "client":
                value = 0
            waits = 0.03 if end == 0 and now >= 1 else 0.0
            seen_at = now + (FAR_S if end else NEAR_S)
            arrivals.append((now + NEAR_S + FAR_S + waits, 1 - end, value))
            first = 0xC3 if step == 0 else 0x41 | value << 5
            version = (1).to_bytes(4, "big") if step == 0 else b"\x99\x99\x99\x99"
            frames.append(
                (seen_at, _datagram(bool(end) == near, bytes([first]) + version + bytes(95)))
            )
    frames.sort(key=lambda each: each[0])
    for _ in range(swapped):
        at = rng.randrange(len(frames) - 3)
        (first_s, first_frame), (later_s, later_frame) = frames[at], frames[at + 3]
        frames[at], frames[at + 3] = (first_s, later_frame), (later_s, first_frame)
    return frames


def _datagram(down: bool, payload: bytes) -> bytes:
    ours, theirs = bytes([192, 168, 1, 2]), bytes([9, 9, 9, 9])
    ends = theirs + ours if down else ours + theirs
    ports = (443, 5000) if down else (5000, 443)
    size = 28 + len(payload)
    return (
        struct.pack(">BBHIBBH", 0x45, 0, size, 0, 64, 17, 0) + ends + struct.pack(">HHHH", *ports, size - 20, 0) + payload
    )  # fmt: skip


def _looked_at(frames: list[tuple[float, bytes]], folder: Path) -> FileMeasurement:
    head = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101)
    (folder / "quic.pcap").write_bytes(head + b"".join(
        struct.pack("<IIII", 100 + int(at), round(at % 1 * 1e9), len(frame), len(frame)) + frame for at, frame in frames
    ))  # fmt: skip
    return seen.measurement(formats.open_file(folder / "quic.pcap"))


@pytest.mark.parametrize("swapped", [0, 40])
@pytest.mark.parametrize("near", [True, False])
def test_the_spin_bit_s_rtts_are_those_of_the_line(
    near: bool, swapped: int, tmp_path: Path
) -> None:
    measured = _looked_at(quic(near=near, swapped=swapped), tmp_path)
    whole, to_far, to_near = measured.pings[:3]
    assert (whole.name, to_far.name) == (
        "9.9.9.9:443 QUIC",
        "9.9.9.9:443 QUIC, from here to 9.9.9.9",
    )
    rtt, halves = 2e3 * (NEAR_S + FAR_S), (2e3 * FAR_S, 2e3 * NEAR_S)
    client_near = halves if near else halves[::-1]
    for pings, base in zip((whole, to_far, to_near), (rtt, *client_near), strict=True):
        idle = [ping.rtt_ms for ping in pings.sent if ping.t < 0.9]
        # Each end answers with its next packet, at most a millisecond later. A packet that changed
        # places with one three packets later is off by two milliseconds.
        assert base - 0.1 <= np.median(idle) <= base + 2.1
        assert len(idle) > 10
    loaded = [ping.rtt_ms for ping in whole.sent if ping.t > 1.2]
    assert np.median(loaded) == pytest.approx(rtt + 30, abs=2.1)
    up, down = measured.streams
    assert (up.name, down.name) == ("9.9.9.9:443 QUIC up", "9.9.9.9:443 QUIC down")
    assert up.delivered[-1] == down.delivered[-1] == 2000 * 100


@pytest.mark.parametrize("spin", ["random", "client"])
def test_a_spin_bit_that_does_not_spin_has_no_rtt(spin: str, tmp_path: Path) -> None:
    measured = _looked_at(quic(spin=spin), tmp_path)
    assert measured.pings == []
    assert len(measured.streams) == 2


def test_a_connection_of_quic_that_began_before_the_capture_is_known_by_its_port(
    tmp_path: Path,
) -> None:
    later = [each for each in quic() if each[0] > 0.1]
    assert len(_looked_at(later, tmp_path).streams) == 2
    other = [(at, frame.replace(b"\x01\xbb", b"\x01\xbc")) for at, frame in later]
    with pytest.raises(
        formats.FileFormatError, match="neither a connection of TCP or QUIC nor a ping"
    ):
        _looked_at(other, tmp_path)


# ------------------------------------------------------------------------------------- link types

UDP4 = bytes([0x45, 0xB9, 0, 60, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 168, 1, 2, 203, 0, 113, 9]) + struct.pack(">HHHH", 5000, 443, 40, 0)  # fmt: skip
TCP6 = (
    bytes([0x62, 0x80, 0, 0]) + struct.pack(">HBB", 8 + 32 + 100, 60, 64) + b"\x20\x01" + bytes(13) + b"\1" + b"\x20\x01" + bytes(13) + b"\2"
    + bytes([6, 0, 1, 4, 0, 0, 0, 0]) + struct.pack(">HHIIBBHHH", 4000, 80, 7, 9, 0x80, 0x18, 100, 0, 0)
    + bytes([1, 1, 8, 10]) + struct.pack(">II", 1234, 5678)
)  # fmt: skip
ETHER = bytes(12)
SNAP = b"\xaa\xaa\x03\0\0\0"
WIFI = bytes([0x88, 1]) + bytes(24) + SNAP
KINDS = {
    "ethernet": (1, ETHER + b"\x08\0"), "vlan": (1, ETHER + b"\x81\0\0\5\x08\0"), "two vlans": (1, ETHER + b"\x88\xa8\0\5\x81\0\0\6\x08\0"),
    "mpls": (1, ETHER + b"\x88\x47\0\1\0\x40\0\2\1\x40"), "pppoe": (1, ETHER + b"\x88\x64\x11\0\0\1\0\x3e\0\x21"), "sll": (113, bytes(14) + b"\x08\0"),
    "sll2": (276, b"\x08\0" + bytes(18)), "raw": (101, b""), "null": (0, b"\2\0\0\0"), "loop": (108, b"\0\0\0\2"), "ppp": (9, b"\xff\3\0\x21"),
    "ppp short": (50, b"\0\x21"), "ipnet": (226, bytes(24)), "wifi": (105, WIFI + b"\x08\0"), "radiotap": (127, b"\0\0\x0a\0" + bytes(6) + WIFI + b"\x08\0"),
    "pktap": (258, struct.pack("<III", 108, 1, 1) + bytes(96) + ETHER + b"\x08\0"),
}  # fmt: skip


def pcap(link: int, frames: list[bytes], order: str = "<") -> bytes:
    head = struct.pack(f"{order}IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)
    return head + b"".join(
        struct.pack(f"{order}IIII", 100 + n, 500_000, len(frame), len(frame)) + frame
        for n, frame in enumerate(frames)
    )


def _read(data: bytes, folder: Path) -> packets.Packets:
    (folder / "x.pcap").write_bytes(data)
    with formats.open_file(folder / "x.pcap").stream() as stream:
        return packets.read(stream)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["<", ">"])
def test_a_packet_is_found_behind_each_links_header(kind: str, order: str, tmp_path: Path) -> None:
    link, before = KINDS[kind]
    found = _read(pcap(link, [before + UDP4, before + UDP4[:28]], order), tmp_path)
    assert found.flows == [Ends("192.168.1.2", "203.0.113.9", 17, 5000, 443)]
    assert found.t_ns.tolist() == [100_500_000_000, 101_500_000_000]
    assert (found.size.tolist(), found.ds.tolist()) == ([60, 60], [0xB9, 0xB9])
    assert not found.unread


def test_tcp_behind_an_extension_of_ipv6(tmp_path: Path) -> None:
    found = _read(pcap(101, [TCP6]), tmp_path)
    assert found.flows == [Ends("2001::1", "2001::2", 6, 4000, 80)]
    row = {name: getattr(found, name).tolist() for name in packets.COLUMNS}
    assert (row["size"], row["ds"], row["payload"]) == ([180], [0x28], [100])
    assert (row["seq"], row["ack"], row["flags"]) == ([7], [9], [0x18])
    assert (row["tsval"], row["tsecr"]) == ([1234], [5678])


def test_unread_packets_are_counted_and_named(tmp_path: Path) -> None:
    file = tmp_path / "x.pcap"
    file.write_bytes(pcap(195, [b"abc" * 20] * 3))
    with pytest.raises(UserError, match=r"3 frames of IEEE 802.15.4 \(195\)"):
        formats.read(formats.open_file(file))
    arp = ETHER + b"\x08\6" + bytes(28)
    found = _read(pcap(1, [arp, ETHER + b"\x08\0" + UDP4]), tmp_path)
    assert (found.unread["other protocols than IP"], len(found.size)) == (1, 1)
    file.write_bytes(pcap(101, [UDP4])[:-3])
    with pytest.raises(UserError, match="it ends within a packet"):
        formats.read(formats.open_file(file))
    with pytest.raises(UserError, match="is not a capture"):
        CliRunner().invoke(cli, ["look", __file__, "-o", str(tmp_path / "o")], catch_exceptions=False)  # fmt: skip


def test_packets_of_segmentation_offload_are_cut_and_private_addresses_are_the_home_side(
    tmp_path: Path,
) -> None:
    large = bytearray(UDP4)
    large[2:4] = (3100).to_bytes(2)
    back = bytearray(UDP4)
    back[12:16], back[16:20], back[20:22], back[22:24] = UDP4[16:20], UDP4[12:16], UDP4[22:24], UDP4[20:22]  # fmt: skip
    file = tmp_path / "x.pcap"
    file.write_bytes(pcap(101, [bytes(large), bytes(back)]))
    _, texts = formats.read(formats.open_file(file))
    assert isinstance(texts, formats.Texts)
    assert texts.taken == ["2 packets of 2 flows over 1 s, 1 up and 1 down"]
    assert any(note.startswith("1 packets are larger than 1500 bytes") for note in texts.left_out)
    assert "dscp = 46" in texts.files[".toml"]
    for ending, text in texts.files.items():
        (tmp_path / f"y{ending}").write_text(text.replace("{stem}", "y"))
    for ending, packed in texts.binary.items():
        (tmp_path / f"y{ending}").parent.mkdir(exist_ok=True)
        (tmp_path / f"y{ending}").write_bytes(packed)
    up = scenario.load(tmp_path / "y.toml").to_toml()
    assert '["0 s", "1500 B"], ["1 ns", "1500 B"], ["2 ns", "100 B"]' in up


@pytest.mark.parametrize("part", range(1, 12))
def test_a_capture_that_is_cut_anywhere_is_read_or_refused(part: int, case: Case, tmp_path: Path) -> None:  # fmt: skip
    data = case.file.read_bytes()[:40_000]
    file = tmp_path / "x"
    file.write_bytes(data[: len(data) * part // 12 + part])
    try:
        result = seen.measurement(formats.open_file(file))
        assert isinstance(result, FileMeasurement)
    except (UserError, formats.FileFormatError) as error:
        assert "ends within" in str(error)


def test_damaged_blocks_and_headers_are_read_or_refused(case: Case, tmp_path: Path) -> None:
    data = bytearray(case.file.read_bytes()[:20_000])
    file = tmp_path / "x"
    # The first packet's block with a length of 16: its header does not fit.
    first = data.index(b"\6\0\0\0", 100)
    short = data[:first] + struct.pack("<III", 6, 16, 0) + struct.pack("<I", 16)
    file.write_bytes(short)
    with pytest.raises(UserError, match="a block that is too short"):
        formats.read(formats.open_file(file))
    file.write_bytes(pcap(101, [UDP4]) + struct.pack("<IIII", 90_000, 0, len(UDP4), len(UDP4)) + UDP4)  # fmt: skip
    with pytest.raises(UserError, match=r"24\.97 hours apart; at most 6 hours are read"):
        formats.read(formats.open_file(file))
    rng = random.Random(1)
    for _ in range(40):
        spoiled = [bytearray(UDP4 + bytes(40)) for _ in range(20)]
        for frame in spoiled:
            frame[0] = 0x45
            frame[9] = rng.choice([1, 6, 17])
            frame[20:] = rng.randbytes(len(frame) - 20)
        file.write_bytes(pcap(101, [bytes(frame) for frame in spoiled]))
        content = formats.open_file(file)
        try:
            seen.measurement(content).run(content)
        except formats.FileFormatError as error:
            assert "neither a connection of TCP or QUIC nor a ping" in str(error)


TWO_UPLOADS = """
duration = "9 s"
record = { headers = true, queue = "10 ms" }
bottleneck = { rate = "10 Mbit/s", delay = "10 ms", qdisc = "pfifo limit 100" }
flow = [
    { name = "big", kind = "bulk", direction = "up", start = "2 s", stop = "6 s" },
    { name = "small", kind = "bulk", direction = "up", start = "3 s", stop = "7 s" },
]
"""


def test_who_filled_the_queue_and_when_is_in_a_note(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(TWO_UPLOADS)
    run = sojourn.run(scenario.load(tmp_path / "x.toml"), out=tmp_path / "run")
    (tmp_path / "x.pcapng").write_bytes(capture(run, 1))
    measured = seen.measurement(formats.open_file(tmp_path / "x.pcapng"))
    (note,) = [each for each in measured.notes if each.startswith("A queue added")]
    least = float(note.split()[5])
    spans = [tuple(map(float, pair)) for pair in re.findall(r"([\d.]+) to ([\d.]+) s", note)]
    shares = {name: int(share) for name, share in re.findall(r"(10\.1\.0\.\d):5001 (\d+)%", note)}
    # The truth: the bytes on the link, and the delay of the queue.
    headers = run.table("headers", 1)
    first = headers["t_ns"].min()
    assert isinstance(first, int)
    up = headers.filter(pl.col("link").cast(pl.String) == "up")
    seconds = (up["t_ns"] - first).to_numpy() / 1e9
    inside = np.zeros(len(seconds), bool)
    for begin, end in spans:
        inside |= (seconds >= begin) & (seconds < end)
    sizes = up["bytes"].to_numpy()
    for name, host in (("big", "10.1.0.1"), ("small", "10.1.0.2")):
        own = (up["flow"].cast(pl.String) == name).to_numpy()
        assert shares[host] == pytest.approx(100 * sizes[own & inside].sum() / sizes[inside].sum(), abs=1.0)  # fmt: skip
    queue = run.table("queue", 1).filter(pl.col("link").cast(pl.String) == "up")
    waits_ms = queue["backlog_bytes"].to_numpy() * 8 / 10_000
    at = (queue["t_ns"] - first).to_numpy() / 1e9
    long = np.zeros(len(at), bool)
    for begin, end in spans:
        long |= (at >= begin) & (at < end)
    # At the edges a sample of the RTT is up to one RTT late.
    assert (waits_ms[long] >= least * 0.8).mean() > 0.9
    assert (waits_ms[~long] < least * 1.2).mean() > 0.9
    assert least > 20


def _same_flow(count: int) -> bytes:
    """A capture of one flow: a packet of 500 bytes each millisecond, the last one of 3100 bytes."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    ends = b"\xc0\x00\x02\x01" + b"\xc6\x33\x64\x02"
    packet = [
        struct.pack(">BBHIBBH", 0x45, 0, size, 0, 64, 17, 0) + ends + struct.pack(">HHHH", 5000, 53, size - 20, 0)
        for size in (500, 3100)
    ]  # fmt: skip
    return head + b"".join(
        struct.pack("<IIII", at // 1000, at % 1000 * 1000, 28, 500) + packet[at == count - 1]
        for at in range(count)
    )


def test_a_long_flow_is_sent_in_parts_of_files_named_by_their_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.pcap").write_bytes(_same_flow(25))
    monkeypatch.setattr(resent, "MOST_OF_A_FLOW", 10)
    words = ["import", str(tmp_path / "x.pcap"), "-o", str(tmp_path / "y.toml")]
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert "1 flow of more than 10 packets: each is sent in parts" in done.output
    written = sorted((tmp_path / "y.packets").iterdir())
    assert [hashlib.sha256(file.read_bytes()).hexdigest() for file in written] == [
        file.stem for file in written
    ]
    flows = scenario.load(tmp_path / "y.toml").realise(1).flows
    sent = [
        (flow.start_ns + at, size + 40)
        for flow in flows
        for at, size in flow.traffic.frames.frames  # type: ignore[union-attr]
    ]
    # The packet that offload made is cut into 1500, 1500 and 100 bytes.
    times = [at * 10**6 for at in range(25)]
    assert sent == [
        *((at, 500) for at in times[:-1]),
        (times[-1], 1500), (times[-1] + 1, 1500), (times[-1] + 2, 100),
    ]  # fmt: skip
    assert [len(flow.traffic.frames.frames) for flow in flows] == [10, 10, 7]  # type: ignore[union-attr]
    assert [flow.name for flow in flows][1:] == [f"{flows[0].name} 2", f"{flows[0].name} 3"]
    monkeypatch.setattr(resent, "MOST_KEPT", 26)
    refused = CliRunner().invoke(cli, [*words, "--force"])
    assert "it has 27 packets, and a scenario keeps 26: choose a part of it, --time" in str(
        refused.exception
    )
