"""Open-loop traffic, which starts whether or not earlier traffic is finished: Poisson arrivals,
measured sizes, and recorded captures."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sojourn
from sojourn import Scenario, ScenarioError
from sojourn.records import pcapng

ARRIVALS = """
duration = "20 s"
bottleneck = { rate = "100 Mbit/s", delay = "5 ms" }
[[flow]]
name = "short"
kind = "bulk"
count = 2000
start = "poisson 5 ms after 1 s"
size = "SIZES"
"""


def loaded(tmp_path: Path, text: str) -> Scenario:
    (tmp_path / "open.toml").write_text(text)
    return sojourn.load(tmp_path / "open.toml")


# ------------------------------------------------------------------------------ arrivals and sizes


def test_poisson_arrivals_have_exponential_gaps_of_the_seed(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, ARRIVALS.replace("SIZES", "20 kB"))
    starts = np.array([flow.start_ns for flow in scenario.realise(1).flows])
    gaps = np.diff(starts) / 1e6
    assert starts[0] > 1e9
    assert gaps.mean() == pytest.approx(5, rel=0.08)
    # An exponential distribution's standard deviation equals its mean, and a share of 1/e is above
    # the mean.
    assert gaps.std() == pytest.approx(5, rel=0.12)
    assert (gaps > 5).mean() == pytest.approx(np.exp(-1), abs=0.04)
    again = [flow.start_ns for flow in scenario.realise(1).flows]
    assert again == starts.tolist()
    assert again != [flow.start_ns for flow in scenario.realise(2).flows]
    fewer = scenario.with_({"flow.short.count": 10}).realise(1).flows
    assert [flow.start_ns for flow in fewer] == again[:10]


def test_sizes_are_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "sizes.csv").write_text("# bytes, percent\n0 0\n1000 50\n100000,100\n")
    scenario = loaded(tmp_path, ARRIVALS.replace("SIZES", "cdf sizes.csv"))
    (tmp_path / "sizes.csv").unlink()
    sizes = np.array([flow.traffic.bytes for flow in scenario.realise(1).flows])  # type: ignore[union-attr]
    assert (sizes <= 1000).mean() == pytest.approx(0.5, abs=0.04)
    assert sizes.mean() == pytest.approx(0.5 * 500 + 0.5 * 50_500, rel=0.06)
    assert sizes.max() <= 100_000
    assert 'size = "cdf 1 B 0.0, 1000 B 0.5, 100 kB 1.0"' in scenario.to_toml()
    assert Scenario.read(scenario.to_toml(), "again").realise(1) == scenario.realise(1)


def test_each_arrival_is_a_flow_that_completes(tmp_path: Path) -> None:
    scenario = loaded(tmp_path, ARRIVALS.replace("SIZES", "cdf 1 kB 0.5, 30 kB 1"))
    flows = scenario.realise(1).flows
    made = sojourn.simulate(scenario, seeds=[1])
    done = made.table("transfers").sort("start_ns")
    came = sum(flow.start_ns < 19_800_000_000 for flow in flows)
    assert done.height >= came > 1500
    # Open loop: each flow starts at its own time.
    starts = {flow.start_ns for flow in flows}
    assert set(done["start_ns"]) <= starts


def test_a_law_of_transfers_may_be_measured_too(tmp_path: Path) -> None:
    text = ARRIVALS.replace('kind = "bulk"', 'kind = "transfers"').replace("2000", "20")
    made = sojourn.simulate(
        loaded(tmp_path, text.replace("SIZES", "cdf 2 kB 0.5, 2 kB 1")), seeds=[1]
    )
    assert set(made.table("transfers")["bytes"]) == {2000}


WRONG = [
    ("cdf absent.csv", "can't read 'absent.csv'"),
    ("cdf 1 kB 0.5, 10 kB 0.9", "the last share is not 1"),
    ("cdf 1 kB 0.5, 10 B 1", "'10 B 1' is below the point before"),
    ("cdf 1 kB 50", "'1 kB 50': the share is not from 0 to 1"),
    ("cdf 1 kB, 2 kB 1", "'1 kB' is no"),
    ("cdf bad.csv", "bad.csv, line 2"),
]


@pytest.mark.parametrize(("sizes", "why"), WRONG)
def test_an_error_in_a_distribution_is_reported_with_its_place(
    tmp_path: Path, sizes: str, why: str
) -> None:
    (tmp_path / "bad.csv").write_text("10 0.1\nten 0.2\n")
    with pytest.raises(ScenarioError) as raised:
        loaded(tmp_path, ARRIVALS.replace("SIZES", sizes))
    assert why in str(raised.value)
    assert "^" in str(raised.value)


def test_only_a_start_may_be_a_poisson_process(tmp_path: Path) -> None:
    text = ARRIVALS.replace("SIZES", "1 kB")
    with pytest.raises(ScenarioError, match="unknown law"):
        loaded(tmp_path, text + 'stop = "poisson 5 ms"\n')
    with pytest.raises(ScenarioError, match="the mean of the gaps is 0"):
        loaded(tmp_path, text.replace("poisson 5 ms after 1 s", "poisson 0 s"))


# ---------------------------------------------------------------------------------------- captures

SENT = """
duration = "6 s"
record = { headers = true }
bottleneck = { rate = "10 Mbit/s", delay = "5 ms", qdisc = "pfifo limit 50" }
flow = [
    { name = "up", kind = "bulk", direction = "up", stop = "5 s" },
    { name = "udp", kind = "udp", rate = "1 Mbit/s", packet = "300 B", stop = "5 s" },
    { kind = "ping" },
]
"""
REPLAYED = """
duration = "8 s"
record = { headers = true }
bottleneck = { rate = "1 Gbit/s", delay = "5 ms" }
[[flow]]
name = "again"
kind = "capture"
direction = "up"
start = "500 ms"
file = "sent.pcapng"
interface = "up"
"""


def capture(tmp_path: Path) -> pl.DataFrame:
    """Writes a capture of a simulated run, and returns its packets on the link up."""
    run = sojourn.run(loaded(tmp_path, SENT), out=tmp_path / "sent")
    (tmp_path / "sent.pcapng").write_bytes(pcapng.capture(run, 1))
    return run.table("headers", 1).filter(pl.col("link").cast(pl.String) == "up").sort("t_ns")


def test_a_capture_is_sent_again_at_its_times_and_of_its_sizes(tmp_path: Path) -> None:
    sent = capture(tmp_path)
    assert sent.height > 2000
    scenario = loaded(tmp_path, REPLAYED)
    (tmp_path / "sent.pcapng").unlink()
    run = sojourn.run(scenario, out=tmp_path / "replayed")
    again = run.table("headers", 1).filter(pl.col("link").cast(pl.String) == "up").sort("t_ns")
    assert again["bytes"].to_list() == [max(41, each) for each in sent["bytes"]]
    # The packets leave a link that is never busy when they arrive.
    times = (sent["t_ns"] - sent["t_ns"][0] + 500_000_000).to_numpy()
    assert np.abs(again["t_ns"].to_numpy() - times).max() <= 12_000 * 2
    assert run.meta.flows[0].kind == "capture"
    assert (
        run.summary.summary["flows"][0]["goodput_mbps"]["mean"] > 1
        if hasattr(run, "summary")
        else True
    )


def test_addresses_choose_packets(tmp_path: Path) -> None:
    capture(tmp_path)
    text = REPLAYED.replace('interface = "up"\n', "")
    both = loaded(tmp_path, text).realise(1).flows[0].traffic
    # The first flow's far end, which sends the ACKs.
    acks = loaded(tmp_path, text + 'src = "10.1.0.1"\ninterface = "down"\n').realise(1)
    sizes = {size for _, size in acks.flows[0].traffic.frames.frames}  # type: ignore[union-attr]
    assert max(sizes) < 100 - 40
    assert len(both.frames.frames) > len(acks.flows[0].traffic.frames.frames)  # type: ignore[union-attr]


def pcap(order: str, magic: int, units: int, packets: list[tuple[float, bytes]]) -> bytes:
    """Returns a classic pcap file of bare IP packets."""
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, 101)]
    for at, packet in packets:
        stamp = (int(at), round((at % 1) * units))
        parts.append(struct.pack(order + "IIII", *stamp, len(packet), len(packet)) + packet)
    return b"".join(parts)


def ipv4(size: int, source: int = 1) -> bytes:
    return bytes([0x45, 0, *size.to_bytes(2, "big"), *bytes(8), 10, 0, 0, source, 10, 0, 0, 9])


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "units"), [(0xA1B2C3D4, 10**6), (0xA1B23C4D, 10**9)])
def test_pcap_of_either_order_and_unit_is_read(
    tmp_path: Path, order: str, magic: int, units: int
) -> None:
    packets = [(7.25, ipv4(100)), (7.25, ipv4(200)), (7.5, b"\x60" + bytes(39)), (8.0, ipv4(1500))]
    (tmp_path / "sent.pcapng").write_bytes(pcap(order, magic, units, packets))
    scenario = loaded(tmp_path, REPLAYED.replace('interface = "up"\n', ""))
    assert '["0 s", "100 B"], ["1 ns", "200 B"]' in scenario.to_toml()
    frames = scenario.realise(1).flows[0].traffic.frames.frames  # type: ignore[union-attr]
    assert [(at, size + 40) for at, size in frames] == [
        (0, 100), (1, 200), (250_000_000, 41), (750_000_000, 1500)
    ]  # fmt: skip


def test_an_error_in_a_capture_is_reported_with_its_place(tmp_path: Path) -> None:
    capture(tmp_path)
    good = (tmp_path / "sent.pcapng").read_bytes()
    (tmp_path / "cut.pcapng").write_bytes(good[:-10])
    (tmp_path / "large.pcap").write_bytes(pcap("<", 0xA1B2C3D4, 10**6, [(1.0, ipv4(9000))]))
    (tmp_path / "text.pcap").write_text("not a capture")
    for change, why in (
        ('"absent.pcapng"', "can't read 'absent.pcapng'"),
        ('"text.pcap"', "byte 0: this is not a capture file"),
        ('"cut.pcapng"', "the file ends within a packet"),
        ('"large.pcap"', "a packet of 9000 bytes"),
        ('"sent.pcapng"\nsrc = "here"', "'here' is not an IP address"),
        ('"sent.pcapng"\nsrc = "192.0.2.1"', "has no such IP packets"),
        ('"sent.pcapng"\nrepeat = "1 s"', "repeat is too short"),
    ):
        text = REPLAYED.replace('"sent.pcapng"', change)
        if "large" in change or "text" in change:
            text = text.replace('interface = "up"\n', "")
        with pytest.raises(ScenarioError) as raised:
            loaded(tmp_path, text)
        assert why in str(raised.value), change
        assert "^" in str(raised.value)
    with pytest.raises(ScenarioError, match=r"no interface 'side'") as raised:
        loaded(
            tmp_path,
            REPLAYED.replace('"up"\n', '"side"\n').replace(
                'direction = "side"', 'direction = "up"'
            ),
        )
    assert "up" in str(raised.value)
