"""Captures of the kernel's guest: its packets in the form of the simulator's captures."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

import sojourn
from sojourn import Scenario, scenario
from sojourn.records import Run, pcapng

SYN, ACK, FIN = 2, 16, 1
LINE = """
duration = "6 s"
warmup = "1 s"

[bottleneck]
rate = "10 Mbit/s"
delay = "20 ms"
qdisc = "pfifo limit LIMIT"

[record]
packets = true

[[flow]]
name = "bulk"
kind = "bulk"
stop = "5 s"

[[flow]]
name = "web"
kind = "transfers"
size = "50 kB"
pause = "200 ms"
stop = "5 s"

[[flow]]
name = "call"
kind = "udp"
rate = "100 kbit/s"

[[flow]]
name = "ping"
kind = "ping"
"""


def _scenario(limit: int, **changes: object) -> Scenario:
    return scenario.loads(LINE.replace("LIMIT", str(limit))).with_(changes)


def _run(folder: Path, made: Scenario, engine: str) -> Run:
    return sojourn.run(made, seeds=1, out=folder, engine=engine)


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory, kernel_uml: str) -> Run:
    folder = tmp_path_factory.mktemp("lossy") / "run"
    return _run(folder, _scenario(30, **{"record.headers": True}), kernel_uml)


def test_recording_headers_changes_no_other_table(
    tmp_path: Path, kernel_uml: str, lossy: Run
) -> None:
    without = _run(tmp_path / "without", _scenario(30), kernel_uml)
    assert not lossy.meta.invalid
    for name in ("queue", "flow", "flows", "links", "drops", "packets", "transfers", "probe"):
        assert lossy.table(name, 1).equals(without.table(name, 1)), name


def test_headers_are_of_the_packets_that_left_the_queue(lossy: Run) -> None:
    packets, headers = lossy.table("packets", 1), lossy.table("headers", 1)
    assert packets.height > 5000
    key = ("t_ns", "link", "flow", "bytes")
    assert headers.select(key).sort(key).equals(packets.select(key).sort(key))


def test_a_connection_is_one_stream_from_its_syn_to_its_fin(lossy: Run) -> None:
    headers = lossy.table("headers", 1)
    web = headers.filter((pl.col("flow") == "web") & (pl.col("connection") == 3))
    forth, back = web.filter(pl.col("reply") == 0), web.filter(pl.col("reply") == 1)
    assert forth.row(0, named=True)["flags"] & (SYN | ACK) == SYN
    assert (forth["seq"][0], back["seq"][0], back["ack"][0]) == (0, 0, 1)
    data = forth.filter(pl.col("payload_bytes") > 0)
    first = data.group_by("seq").agg(pl.col("payload_bytes").max()).sort("seq")
    ends = (first["seq"] + first["payload_bytes"]).to_list()
    assert [1, *ends[:-1]] == first["seq"].to_list()
    assert ends[-1] == 50_001
    # The FIN has a sequence number of its own.
    assert back["ack"].max() == 50_002
    assert forth["flags"].cast(pl.Int64).to_numpy().max() & FIN == FIN
    transfers = lossy.table("transfers", 1)
    assert headers.filter(pl.col("flow") == "web")["connection"].n_unique() >= transfers.height > 5


def test_linux_and_the_simulator_record_the_same_headers(tmp_path: Path, kernel_uml: str) -> None:
    """Timestamps and PSH are not compared, because the model sets them in its own way. Windows are
    compared only in the packets of the data's receiver."""
    made = _scenario(1000, **{"record.headers": True, "duration": "2 s", "flow.web.stop": "1.9 s"})
    tables = [
        _run(tmp_path / engine, made, engine).table("headers", 1).filter(pl.col("flow") == "bulk")
        for engine in ("sim", kernel_uml)
    ]
    columns = ("link", "reply", "bytes", "payload_bytes", "ds", "seq", "ack", "mss", "scale")
    ours, theirs = (table.head(400) for table in tables)
    assert ours.select(columns).equals(theirs.select(columns))
    windows = [table.filter(pl.col("reply") == 1)["window"] for table in (ours, theirs)]
    assert windows[0].equals(windows[1])
    # A guest's flows begin 2 µs late (docs/kernel.md), so a small packet may arrive first.
    late = (theirs["t_ns"] - ours["t_ns"]).to_list()
    assert 2000 < min(late) <= max(late) < 2000 + 50_000


def test_datagrams_and_pings_have_their_numbers(lossy: Run) -> None:
    headers = lossy.table("headers", 1)
    for name, table in (("ping", "probe"), ("call", None)):
        forth = headers.filter((pl.col("flow") == name) & (pl.col("reply") == 0))["seq"]
        assert forth.is_sorted()
        assert forth.n_unique() == len(forth)
        if table is not None:
            assert forth.max() == lossy.table(table, 1)["seq"].max()


def _matching(file: Path, wanted: str) -> list[str]:
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("needs tshark")
    checked = ("tcp.check_checksum", "ip.check_checksum", "udp.check_checksum")
    asked = [tshark, "-r", str(file), *(f"-o{name}:TRUE" for name in checked), "-Y", wanted]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()


COMPLAINT = "_ws.expert.severity >= 0x600000"


def test_wireshark_has_no_complaint_about_a_clean_run(tmp_path: Path, kernel_uml: str) -> None:
    made = _scenario(1000, **{"record.headers": True, "flow.bulk.tcp": {"max_window": 60}})
    file = tmp_path / "clean.pcapng"
    file.write_bytes(pcapng.capture(_run(tmp_path / "run", made, kernel_uml), 1))
    assert len(_matching(file, "tcp")) > 5000
    assert _matching(file, f"{COMPLAINT} or _ws.malformed or ip.checksum.status==0") == []
    # Each packet crosses one link each way, so nothing looks like a retransmission either.
    assert _matching(file, "tcp.analysis.flags and not tcp.analysis.window_update") == []


def test_wireshark_finds_the_losses_of_a_lossy_run(tmp_path: Path, lossy: Run) -> None:
    file = tmp_path / "lossy.pcapng"
    file.write_bytes(pcapng.capture(lossy, 1))
    assert _matching(file, "_ws.malformed or ip.checksum.status==0 or tcp.checksum.status==0") == []
    expected = "tcp.analysis.lost_segment or tcp.analysis.out_of_order or tcp.analysis.flags"
    assert _matching(file, f"({COMPLAINT}) and not ({expected})") == []
    sent_again = "tcp.analysis.retransmission or tcp.analysis.out_of_order"
    retransmits = lossy.table("flows", 1)["retransmits"].sum()
    seen = _matching(file, f"frame.time_epoch >= 1 and tcp.len > 0 and ({sent_again})")
    assert len(seen) == pytest.approx(retransmits, abs=3)
