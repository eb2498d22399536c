"""Captures of several conversations, of unsupported link types, and compressed captures."""

import gzip
import socket
import struct
from pathlib import Path

import pytest

from sojourn import Scenario, ScenarioError, loads

TEXT = """duration = "5 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
[[flow]]
kind = "capture"
file = "line.pcap"
"""
RADIOTAP = 127
RAW = 101


def udp(source: str, to: str, port: int = 5000) -> bytes:
    """The headers of an IP packet of 100 bytes."""
    ends = socket.inet_aton(source) + socket.inet_aton(to)
    header = struct.pack(">BBHHHBBH", 0x45, 0, 100, 0, 0, 64, 17, 0) + ends
    return header + struct.pack(">HHHH", port, 53, 80, 0)


def pcap(packets: list[bytes], link: int = RAW) -> bytes:
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)
    frames = [
        struct.pack("<IIII", second, 0, len(packet), 100) + packet
        for second, packet in enumerate(packets)
    ]
    return head + b"".join(frames)


def replayed(folder: Path, content: bytes, more: str = "") -> Scenario:
    (folder / "line.pcap").write_bytes(content)
    return loads(TEXT + more, name="home.toml", folder=folder)


HERE, THERE, OTHER = "192.0.2.1", "198.51.100.2", "203.0.113.3"


def test_that_conversations_become_one_flow_is_noted(tmp_path: Path) -> None:
    packets = [udp(HERE, THERE)] * 3 + [udp(THERE, HERE)] * 2 + [udp(OTHER, HERE)]
    scenario = replayed(tmp_path, pcap(packets))
    (note,) = scenario.notes
    assert (note.dotted, note.line) == ("flow.0.file", 7)
    assert note.message == (
        "6 packets of 'line.pcap', from 3 flows in both directions, become one flow in one direction"
    )
    assert note.hint == (
        "choose with src, dst or interface; there are "
        f"3 from {HERE} to {THERE}, 2 from {THERE} to {HERE}, 1 from {OTHER} to {HERE}"
    )
    # The chosen packets are one flow.
    for chosen in (f'src = "{HERE}"', f'src = "{THERE}"\ndst = "{HERE}"'):
        assert replayed(tmp_path, pcap(packets), chosen).notes == ()
    assert scenario.with_(seed=2).notes == scenario.notes
    # Flows between the same two addresses differ by their ports.
    (note,) = replayed(tmp_path, pcap([udp(HERE, THERE, port) for port in (1, 2)])).notes
    assert note.message == (
        "2 packets of 'line.pcap', from 2 flows, become one flow in one direction"
    )


def test_a_link_type_that_is_not_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as refused:
        replayed(tmp_path, pcap([bytes(80)] * 3, RADIOTAP))
    (problem,) = refused.value.problems
    assert problem.message == (
        "'line.pcap' has no IP packets that can be read: 3 frames are not read: "
        "their link type is IEEE 802.11 with radiotap (127)"
    )
    assert "bare IP are read" in problem.hint
    with pytest.raises(ScenarioError, match="their link type is 9999"):
        replayed(tmp_path, pcap([bytes(80)], 9999))
    # The link type is supported, but no frame has an IP packet.
    with pytest.raises(ScenarioError) as refused:
        replayed(tmp_path, pcap([bytes(80)], 1))
    assert refused.value.problems[0].message == "'line.pcap' has no IP packets"


def test_the_error_for_addresses_without_packets_lists_the_existing_ones(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as refused:
        replayed(tmp_path, pcap([udp(HERE, THERE)] * 2), f'src = "{OTHER}"')
    (problem,) = refused.value.problems
    assert problem.message == "'line.pcap' has no such IP packets"
    assert problem.hint == f"it has 2 from {HERE} to {THERE}: choose among these"


def test_a_packed_capture_is_unpacked(tmp_path: Path) -> None:
    content = pcap([udp(HERE, THERE)] * 3)
    assert replayed(tmp_path, gzip.compress(content)) == replayed(tmp_path, content)
