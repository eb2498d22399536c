"""Short recorded files of other programs. Each is recognised as one format, and the values that we
read are those in the file."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import math
import struct
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sojourn import advice, formats, scenario
from sojourn.advice import AccessLine
from sojourn.cli import cli
from sojourn.errors import UserError
from sojourn.formats import FileMeasurement, Pings, Stream
from sojourn.formats.irtt import duration_ms
from sojourn.linux import routeros
from sojourn.linux.operations import WantedShape
from sojourn.linux.simulated import shaper_and_leaf
from sojourn.records import Run
from sojourn.scenario.qdisc import LINK_LAYERS, Qdisc, Shaper

FILES = Path(__file__).parent / "formats"


def _read(name: str) -> tuple[str, FileMeasurement]:
    form, result = formats.read(formats.open_file(FILES / name))
    assert isinstance(result, FileMeasurement)
    return form.name, result


def _texts(name: str) -> tuple[str, formats.Texts]:
    form, result = formats.read(formats.open_file(FILES / name))
    assert isinstance(result, formats.Texts)
    return form.name, result


def _check(texts: formats.Texts, folder: Path) -> scenario.Scenario:
    """Returns the scenario of these texts, which must be valid."""
    for ending, text in texts.files.items():
        (folder / f"x{ending}").write_text(text.replace("{stem}", "x"))
    for ending, data in texts.binary.items():
        (folder / f"x{ending}").parent.mkdir(exist_ok=True)
        (folder / f"x{ending}").write_bytes(data)
    return scenario.load(folder / "x.toml")


def _rtts(pings: Pings) -> list[float | None]:
    return [None if math.isnan(ping.rtt_ms) else ping.rtt_ms for ping in pings.sent]


def _mbps(stream: Stream) -> list[float]:
    times = zip(stream.t, stream.t[1:], stream.delivered, stream.delivered[1:], strict=False)
    return [
        round((after - before) * 8 / (end - start) / 1e6, 2) for start, end, before, after in times
    ]


@pytest.mark.parametrize(
    ("name", "format_name"),
    [
        ("irtt.json", "irtt-json"), ("irtt.txt", "irtt-text"), ("iperf3-up.json", "iperf3-json"), ("iperf3-bidir.json", "iperf3-json"),
        ("iperf3-udp.json", "iperf3-json"), ("iperf3-server-output.json", "iperf3-json"), ("iperf3-stream.jsonl", "iperf3-json-stream"),
        ("iperf3-tcp-up.txt", "iperf3-text"), ("iperf3-bidir.txt", "iperf3-text"), ("iperf3-udp.txt", "iperf3-text"), ("iperf2.csv", "iperf2-csv"),
        ("iperf2-p2.csv", "iperf2-csv"), ("iperf2-udp.csv", "iperf2-csv"), ("ping-stamped.txt", "ping-text"), ("ping-busybox.txt", "ping-text"),
        ("ping-macos.txt", "ping-text"), ("ping-windows.txt", "ping-text"), ("fping.txt", "fping-text"), ("fping-rows.txt", "fping-text"),
        ("mtr.raw", "mtr-raw"), ("netperf.txt", "netperf-text"), ("smokeping.xml", "smokeping-xml"), ("networkquality.json", "networkquality-json"),
    ],
)  # fmt: skip
def test_each_file_has_one_format_and_becomes_a_run(name: str, format_name: str) -> None:
    form, measured = _read(name)
    assert form == format_name
    content = formats.open_file(FILES / name)
    run = measured.run(content)
    assert run.meta.engine == measured.program
    assert run.meta.facts["1"]["notes"][0].startswith(f"Read from {name}: ")
    assert run.table("probe").height == sum(len(pings.sent) for pings in measured.pings)


def test_irtt_has_times_delays_and_lost_packets() -> None:
    _, measured = _read("irtt.json")
    raw = json.loads((FILES / "irtt.json").read_text())
    (pings,) = measured.pings
    trips = raw["round_trips"]
    assert [ping.seq for ping in pings.sent] == list(range(8))
    assert _rtts(pings) == [
        None if trip["lost"] != "false" else trip["delay"]["rtt"] / 1e6 for trip in trips
    ]
    assert pings.sent[2].forward_ms == trips[2]["delay"]["send"] / 1e6
    sent = [trip["timestamps"]["client"]["send"]["monotonic"] for trip in trips]
    assert [ping.t for ping in pings.sent] == [(at - sent[0]) / 1e9 for at in sent]
    assert measured.began_s == trips[0]["timestamps"]["client"]["send"]["wall"] / 1e9
    assert "irtt tells the direction of 2 lost packets: 1 up, 1 down." in measured.notes
    assert "1 duplicate replies are left out." in measured.notes


def test_one_way_delays_of_unsynchronised_clocks_are_not_read() -> None:
    pings = Pings("x")
    pings.add(0, 0, 10.0, -3.0)
    pings.add(1, 1, 10.0, 4000.0)
    assert all(math.isnan(ping.forward_ms) for ping in pings.sent)


def test_irtts_text_has_no_times() -> None:
    _, measured = _read("irtt.txt")
    (pings,) = measured.pings
    assert len(pings.sent) == 15
    assert _rtts(pings)[:2] == [10.45, 14.75]
    assert pings.sent[13].rtt_ms == 16.06
    assert pings.sent[13].forward_ms == 14.49
    assert measured.host == "10.9.0.2:2112"
    assert any("irtt prints no times" in note for note in measured.notes)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("546ns", 0.000546),
        ("71.6µs", 0.0716),
        ("1.2ms", 1.2),
        ("1m2.5s", 62500),
        ("0s", 0),
        ("-3ms", -3),
    ],
)
def test_durations_in_go_s_syntax_are_read(text: str, ms: float) -> None:
    assert duration_ms(text) == pytest.approx(ms)


def test_iperf3_in_both_directions_is_read() -> None:
    _, measured = _read("iperf3-bidir.json")
    raw = json.loads((FILES / "iperf3-bidir.json").read_text())
    up, down = measured.streams
    assert (up.direction, down.direction) == ("up", "down")
    assert up.delivered[-1] == sum(each["streams"][0]["bytes"] for each in raw["intervals"])
    assert down.delivered[-1] == sum(each["streams"][1]["bytes"] for each in raw["intervals"])
    assert up.retransmits[-1] == sum(each["streams"][0]["retransmits"] for each in raw["intervals"])
    assert up.srtt_ms[1] == raw["intervals"][0]["streams"][0]["rtt"] / 1e3
    assert up.cwnd[1] == raw["intervals"][0]["streams"][0]["snd_cwnd"]
    assert measured.version == "3.12"
    assert measured.host == "10.9.0.2"
    # The sender wrote more than the receiver had got by then. A note reports that.
    assert any("4.015 MB in all; the receiver got 3.527 MB" in note for note in measured.notes)


def test_a_stream_of_json_gives_the_same_numbers() -> None:
    _, document = _read("iperf3-bidir.json")
    _, lines = _read("iperf3-stream.jsonl")
    assert [stream.delivered for stream in lines.streams] == [s.delivered for s in document.streams]


def test_the_intervals_of_iperf3s_server_are_used_if_present() -> None:
    _, measured = _read("iperf3-server-output.json")
    raw = json.loads((FILES / "iperf3-server-output.json").read_text())
    received = raw["end"]["streams"][0]["receiver"]["bytes"]
    wrote = raw["end"]["streams"][0]["sender"]["bytes"]
    (stream,) = measured.streams
    assert stream.delivered[-1] == pytest.approx(received, rel=0.01)
    assert abs(stream.delivered[-1] - wrote) > 5 * abs(stream.delivered[-1] - received)
    assert measured.notes == ["Uploads are what the server received in each interval."]


def test_an_upload_of_datagrams_excludes_the_lost_ones() -> None:
    _, measured = _read("iperf3-udp.json")
    raw = json.loads((FILES / "iperf3-udp.json").read_text())
    end = raw["end"]["streams"][0]["udp"]
    (stream,) = measured.streams
    assert (stream.sent_packets, stream.lost_packets) == (end["packets"], end["lost_packets"])
    # 14 Mbit/s were sent into a line of 10.
    assert stream.delivered[-1] * 8 / stream.t[-1] / 1e6 == pytest.approx(9.7, abs=0.15)


def test_iperf3s_text_gives_the_same_numbers_with_three_digits() -> None:
    _, measured = _read("iperf3-bidir.txt")
    up, down = measured.streams
    assert (up.direction, _mbps(up)) == ("up", [14.4, 8.34])
    assert (down.direction, _mbps(down)) == ("down", [93.2, 277])
    assert up.retransmits[-1] == 636
    assert up.cwnd[1] == pytest.approx(14.1 * 1024)


def test_a_failure_of_iperf3_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(
        '{"start": {"version": "iperf 3.12"}, "intervals": [], "end": {}, "error": "unable to connect"}'
    )
    with pytest.raises(UserError, match="no intervals: unable to connect"):
        formats.read(formats.open_file(file))


def test_the_last_row_of_an_iperf2_stream_is_not_an_interval() -> None:
    _, measured = _read("iperf2-p2.csv")
    assert [stream.delivered[-1] for stream in measured.streams] == [1945060, 2278044]
    assert measured.streams[0].t == [0.0, 1.0, 2.0, 3.0, 3.3]
    assert {stream.direction for stream in measured.streams} == {"up"}


def test_gaps_of_ping_are_lost_probes_between_their_neighbours() -> None:
    _, measured = _read("ping-stamped.txt")
    (pings,) = measured.pings
    rtts = _rtts(pings)
    assert len(rtts) == 14
    # 4 and 7 were lost on the way, 13 and 14 after the last reply.
    assert [seq for seq, rtt in enumerate(rtts, 1) if rtt is None] == [4, 7, 13, 14]
    assert rtts[8] == 13.8
    times = [ping.t for ping in pings.sent]
    assert times == sorted(times)
    assert times[3] == pytest.approx((times[2] + times[4]) / 2)
    assert measured.began_s == pytest.approx(1795766152.893914 - 0.0146)
    assert "1 duplicate replies are left out." in measured.notes


@pytest.mark.parametrize(
    ("name", "rtts", "host"),
    [
        ("ping-busybox.txt", [12.345, 20.001, None, 31.9, None], "192.0.2.1"),
        ("ping-macos.txt", [14.202, None, 15.113], "one.example"),
        ("ping-windows.txt", [14, None, 0.5, 20], "192.0.2.1"),
    ],
)
def test_the_pings_of_other_systems_are_read(
    name: str, rtts: list[float | None], host: str
) -> None:
    _, measured = _read(name)
    assert _rtts(measured.pings[0]) == rtts
    assert measured.host == host
    assert measured.began_s is None


def test_wrapped_sequence_numbers_of_ping_are_continued(tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    lines = [f"64 bytes from 192.0.2.1: icmp_seq={seq % 65536} ttl=64 time=1.5 ms" for seq in (1, 30000, 60000, 65534, 65535, 65536, 65538, 65539)]  # fmt: skip
    file.write_text("\n".join(["PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.", *lines]))
    _, result = formats.read(formats.open_file(file))
    assert isinstance(result, FileMeasurement)
    (pings,) = result.pings
    assert pings.sent[-1].seq == 65539
    assert math.isnan(pings.sent[65537 - 1].rtt_ms)
    assert pings.sent[65538 - 1].rtt_ms == 1.5
    assert sum(not math.isnan(ping.rtt_ms) for ping in pings.sent) == 8


def test_the_targets_of_fping_are_read() -> None:
    _, measured = _read("fping.txt")
    answered, silent = measured.pings
    assert _rtts(answered) == [14.8, 14.5, 6.75, 15.0, 5.7, 8.2]
    assert _rtts(silent) == [None] * 6
    _, rows = _read("fping-rows.txt")
    assert _rtts(rows.pings[0]) == [13.0, 5.61, 6.38, 12.0, 8.66, 0.05]
    assert [ping.t for ping in rows.pings[0].sent] == [0, 1, 2, 3, 4, 5]


def test_the_hops_of_mtr_are_read() -> None:
    _, measured = _read("mtr.raw")
    (pings,) = measured.pings
    assert pings.name == "hop 1 10.9.0.2"
    assert _rtts(pings) == [0.091, 0.074, 0.071]
    with pytest.raises(UserError, match="has means, but not the RTT of each probe"):
        formats.read(formats.open_file(FILES / "mtr-report.txt"))


def test_a_netperf_stream_has_the_direction_of_its_test() -> None:
    _, measured = _read("netperf.txt")
    (stream,) = measured.streams
    assert (stream.direction, _mbps(stream)) == ("down", [40, 80, 20])
    assert measured.began_s == pytest.approx(1795766152.0)


def test_networkqualitys_latencies_are_spread_over_their_phases(tmp_path: Path) -> None:
    found, measured = _read("networkquality.json")
    assert found == "networkquality-json"
    down, up = measured.streams
    assert (_mbps(down), _mbps(up)) == ([100.0], [20.0])
    handshake, request, loaded = measured.pings
    assert _rtts(handshake) == [13, 12, 14, 42]
    assert [ping.t for ping in handshake.sent] == [0.25, 0.75, 6.0, 16.0]
    assert _rtts(request) == [12.5, 14.5, 40, 62, 31, 50]
    assert _rtts(loaded) == [29, 66, 21]
    assert [phase["kind"] for phase in measured.phases] == ["idle", "both"]
    assert measured.began_s == 1791347159.0
    file = tmp_path / "x.json"
    file.write_text(
        '{"end_date": "2026-10-07 04:26:20.940", "error_code": -1009, "error_domain": "NSURLErrorDomain"}'
    )
    with pytest.raises(UserError, match="networkQuality failed: NSURLErrorDomain -1009"):
        formats.read(formats.open_file(file))


def _imported(folder: Path, *words: str) -> Result:
    (folder / "x.csv").write_text(
        "time,DL_bitrate,rtt,cell\n0,1000,20,a\n1,2000,30,b\n2,4000,30,b\n"
    )
    return CliRunner().invoke(cli, ["import", str(folder / "x.csv"), "-o", str(folder / "x"), *words])  # fmt: skip


def test_the_unit_of_a_column_can_be_given(tmp_path: Path) -> None:
    done = _imported(tmp_path, "--unit", "DL_bitrate=kbps", "--unit", "rtt=ms")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "x.down.trace").read_text().splitlines()[1:] == ["0.000000,1", "1.000000,2", "2.000000,4"]  # fmt: skip
    assert (tmp_path / "x.delay.trace").read_text().splitlines()[1] == "0.000000,10"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "its column 'DL_bitrate' has no unit: rename it to DL_bitrate_mbps, or give --unit DL_bitrate=mbps"),
        (["--unit", "DL_bitrate=kbps"], "its column 'rtt' has no unit: rename it to rtt_ms, or give --unit rtt=ms"),
        (["--unit", "rate=kbps"], "no column 'rate': its columns are time, DL_bitrate, rtt, cell"),
        (["--unit", "DL_bitrate=ms"], "'DL_bitrate' is a rate: it takes one of bps, kbps, mbps, gbps, not ms"),
        (["--unit", "DL_bitrate=kbps", "--unit", "rtt=mbps"], "'rtt' is an RTT: it takes one of us, ms, s, not mbps"),
        (["--unit", "time=ms"], "'time' is a time: it takes no unit of these, not ms"),
        (["--unit", "kbps"], "'kbps' is not COLUMN=UNIT"),
        (["--unit", "rtt=ms", "--unit", "rtt=s"], "two units are given for one column"),
        (["--unit", "DL_bitrate=kbps", "--unit", "rtt=ms", "--unit", "cell=ms"], "its column 'cell' is not read"),
    ],
)  # fmt: skip
def test_a_missing_or_wrong_unit_is_reported(words: list[str], says: str, tmp_path: Path) -> None:
    done = _imported(tmp_path, *words)
    assert isinstance(done.exception, UserError)
    assert says in str(done.exception)
    assert not list(tmp_path.glob("x.*.trace"))


def test_a_unit_in_the_name_can_not_be_overruled_and_other_formats_accept_none(
    tmp_path: Path,
) -> None:
    file = tmp_path / "x.csv"
    file.write_text("time,dl_mbps\n0,1\n1,2\n")
    done = CliRunner().invoke(cli, ["import", str(file), "--unit", "dl_mbps=kbps"])
    assert "has a unit in its name that is not kbps" in str(done.exception)
    done = CliRunner().invoke(cli, ["import", str(FILES / "ping-macos.txt"), "--unit", "a=ms"])
    assert "of the format ping-text" in str(done.exception)


def test_the_steps_of_smokeping_are_read() -> None:
    _, measured = _read("smokeping.xml")
    (pings,) = measured.pings
    assert len(pings.sent) == 25
    assert _rtts(pings)[:5] == pytest.approx([10, 11, 12, 13, None])
    assert pings.sent[5].t - pings.sent[0].t == 300


def test_a_table_of_a_line_is_traces_and_a_scenario(tmp_path: Path) -> None:
    form, texts = _texts("line.csv")
    assert form == "line-table"
    _check(texts, tmp_path)
    assert (tmp_path / "x.down.trace").read_text().splitlines()[1:] == ["0.000000,20", "1.000000,25.5", "2.000000,10", "4.000000,12"]  # fmt: skip
    assert (tmp_path / "x.up.trace").read_text().splitlines()[1] == "0.000000,2"
    assert (tmp_path / "x.delay.trace").read_text().splitlines()[1:3] == [
        "0.000000,25",
        "1.000000,30",
    ]
    notes = " ".join(texts.left_out)
    assert "Columns that were not read: cell." in notes
    assert "Half of rtt_ms is the delay in each direction." in notes
    assert "loss_rate was not read (its mean is 0.25 %)" in notes


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("time,rate\n0,1\n1,2\n", "'rate' has no unit: rename it to rate_mbps"),
        ("time,dl_mbps\n1,5\n0,6\n", "row 3 is earlier than the row before it"),
        ("time,dl_mbps\nyesterday,5\n", "row 2: 'yesterday' is not a time"),
        ("time,dl_mbps\n0,fast\n", "row 2: 'fast' in column dl_mbps is not a number"),
        ("time,dl_mbps\n0,-1\n1,2\n", "can't be true"),
        ("time,dl_mbps\n0,5\n", "fewer than two rows"),
    ],
)
def test_an_ambiguous_table_is_refused(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text(text)
    with pytest.raises(UserError, match=says):
        formats.read(formats.open_file(file))


def test_times_of_a_table_may_be_epochs_or_dates(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    for first, second in (("1767261600", "1767261601"), ("1767261600000", "1767261601000"), ("2026.01.01_10.00.00", "2026.01.01_10.00.01")):  # fmt: skip
        file.write_text(
            f"timestamp\tDL_bitrate\tUL_bitrate\tCellID\tState\n{first}\t5000\t900\t1\tD\n{second}\t6000\t-\t1\tD\n"
        )
        _, result = formats.read(formats.open_file(file))
        assert isinstance(result, formats.Texts)
        assert result.files[".down.trace"] == "time_s,rate_mbps\n0.000000,5\n1.000000,6\n"
        assert (
            "DL_bitrate is in kbit/s, as in the 5G dataset that has such columns."
            in result.left_out
        )


@pytest.mark.parametrize("name", ["rate_mbps", "bandwidth_kbps", "Gbps", "rate_bps", "bw [Mbit/s]"])
def test_a_column_with_a_unit_means_the_same_in_a_scenarios_trace(
    name: str, tmp_path: Path
) -> None:
    file = tmp_path / "x.csv"
    file.write_text(f"time_s,{name}\n0,5\n1,6\n")
    _, result = formats.read(formats.open_file(file))
    assert isinstance(result, formats.Texts)
    imported = _check(result, tmp_path)
    (tmp_path / "x.down.trace").write_bytes(file.read_bytes())
    assert scenario.load(tmp_path / "x.toml").realise(1) == imported.realise(1)


def test_sqms_configuration_is_a_scenario(tmp_path: Path) -> None:
    form, texts = _texts("sqm.conf")
    assert form == "sqm"
    toml = texts.files[".toml"]
    # SQM's downloads have no tins and are washed, since squash_ingress and squash_dscp are 1.
    assert (
        'down.qdisc = "cake bandwidth 85000kbit besteffort wash overhead 44 dual-dsthost"' in toml
    )
    assert (
        'up.qdisc = "cake bandwidth 10000kbit diffserv3 overhead 44 dual-srchost ack-filter"'
        in toml
    )
    assert "nat of down is left out: a scenario has no NAT." in texts.left_out
    _check(texts, tmp_path)
    simple = (
        (FILES / "sqm.conf")
        .read_text()
        .replace("layer_cake", "simple")
        .replace("'cake'", "'fq_codel'")
    )
    file = tmp_path / "sqm"
    file.write_text("\n".join(line for line in simple.splitlines() if "qdisc_opts" not in line))
    _, result = formats.read(formats.open_file(file))
    assert isinstance(result, formats.Texts)
    assert 'up.shaper = "htb rate 10000kbit overhead 44"' in result.files[".toml"]
    assert 'up.qdisc = "fq_codel noecn limit 1001"' in result.files[".toml"]
    _check(result, tmp_path)


def test_a_direction_that_sqm_does_not_shape_is_a_port(tmp_path: Path) -> None:
    file = tmp_path / "sqm"
    text = (FILES / "sqm.conf").read_text()
    file.write_text(text.replace("'85000'", "'0'"))
    _, result = formats.read(formats.open_file(file))
    assert isinstance(result, formats.Texts)
    assert 'down.rate = "1 Gbit/s"' in result.files[".toml"]
    assert "down.qdisc" not in result.files[".toml"]
    assert any(note.startswith("option download is 0, so SQM") for note in result.left_out)
    _check(result, tmp_path)
    file.write_text(text.replace("'85000'", "'0'").replace("'10000'", "'0'"))
    with pytest.raises(UserError, match="both of its rates are 0"):
        formats.read(formats.open_file(file))


def test_quotes_and_control_characters_of_a_file_do_not_break_the_scenario(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text('qdisc fq_codel 1: dev a root refcnt 2 limit "9\\p ecn\x1b\n')
    _, result = formats.read(formats.open_file(file))
    assert isinstance(result, formats.Texts)
    _check(result, tmp_path)
    assert result.taken == ["up, a: fq_codel"]


def test_the_output_of_tc_becomes_a_scenario(tmp_path: Path) -> None:
    form, texts = _texts("tc-cake.txt")
    assert form == "tc-show"
    toml = texts.files[".toml"]
    assert 'down.qdisc = "cake bandwidth 85Mbit besteffort dual-dsthost nonat wash ingress' in toml
    assert 'up.qdisc = "cake bandwidth 10Mbit diffserv3 dual-srchost nat' in toml
    _check(texts, tmp_path)
    _, texts = _texts("tc-htb.txt")
    # htb's default class is 1:11, whose ceil is below that of its parent.
    assert 'up.shaper = "htb rate 3333kbit burst 1600b"' in texts.files[".toml"]
    assert any(
        "that of line 2 is taken, those of the lines 3 are not" in note for note in texts.left_out
    )
    _check(texts, tmp_path)


def test_a_line_of_tc_that_a_scenario_can_not_contain_is_named(tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    file.write_text(
        "qdisc netem 8001: dev eth0 root refcnt 2 limit 1000 delay 10ms loss 1%\n"
        "qdisc hfsc 1: dev ifb0 root refcnt 2 default 10\n"
    )
    _, result = formats.read(formats.open_file(file))
    assert isinstance(result, formats.Texts)
    assert 'up.delay = "10ms"' in result.files[".toml"]
    assert 'up.loss = "1%"' in result.files[".toml"]
    assert any(note.startswith("Line 2: hfsc: ") for note in result.left_out)
    _check(result, tmp_path)


def _keys(texts: formats.Texts) -> dict[str, str]:
    """The keys of a scenario's bottleneck."""
    lines = texts.files[".toml"].partition("[bottleneck]\n")[2].partition("\n\n")[0].splitlines()
    return {key: value.strip('"') for key, _, value in (line.partition(" = ") for line in lines)}


def test_a_script_of_tc_becomes_a_scenario_and_unread_lines_are_named(tmp_path: Path) -> None:
    form, texts = _texts("tc-script.sh")
    assert form == "tc-script"
    assert _keys(texts) == {
        "delay": "10 ms", "link_layer": "linux", "down.rate": "1 Gbit/s", "down.qdisc": "cake bandwidth 45mbit besteffort ingress",
        "up.rate": "unlimited", "up.shaper": "htb rate 9500kbit overhead 24 linklayer atm",
        "up.qdisc": "fq_codel limit 600 target 7ms noecn",
    }  # fmt: skip
    notes = " ".join(texts.left_out)
    assert "Line 17: this filter chooses a class" in notes
    assert "Lines that were not read, since they are not tc's: 21." in notes
    assert "htb of eth1 has 3 classes: 1:12 is taken." in notes
    _check(texts, tmp_path)


def test_netem_becomes_the_wire_and_a_policing_filter_the_policer(tmp_path: Path) -> None:
    _, texts = _texts("tc-netem.sh")
    keys = _keys(texts)
    assert (keys["up.delay"], keys["up.jitter"], keys["up.loss"]) == ("40ms", "4ms 25%", "0.5%")
    assert keys["up.qdisc"] == "tbf rate 8mbit burst 15k latency 300ms"
    assert keys["down.police"] == "rate 20mbit burst 100k"
    assert "Line 1: netem corrupt 0.1%: a scenario has no such key." in texts.left_out
    _check(texts, tmp_path)


LINE = AccessLine(up_bps=10_000_000, down_bps=50_000_000)


@pytest.mark.parametrize(
    "words", ["cake", "cake rtt 40ms", "fq_codel", "pie target 20ms", "bfifo limit 30000"]
)
@pytest.mark.parametrize("link", [None, "docsis", "pppoe-ptm", "bridged-llcsnap"])
def test_commands_that_advise_writes_for_tc_are_read_back(
    words: str, link: str | None, tmp_path: Path
) -> None:
    line = replace(LINE, link=LINK_LAYERS[link] if link else None)
    keys = _keys(_written(line.commands(words), tmp_path))
    for way, bps in (("up", 9_500_000), ("down", 47_500_000)):
        shaper, leaf = shaper_and_leaf(WantedShape(bps, None, words, line.link), line.device)
        found = keys[f"{way}.qdisc"].replace(" nat", "")
        if way == "down":
            leaf = (
                leaf.replace("diffserv3", "besteffort")
                .replace("nowash", "wash")
                .replace("egress", "ingress")
            )
        assert Qdisc.parse(found) == Qdisc.parse(leaf)
        theirs = Shaper.parse(shaper) if shaper != "none" else None
        assert theirs == (Shaper.parse(keys[f"{way}.shaper"]) if theirs else None)


def _written(lines: list[str] | None, folder: Path) -> formats.Texts:
    """What is read of lines that were written for a router."""
    assert lines is not None
    (folder / "written").write_text("\n".join(lines))
    _, texts = formats.read(formats.open_file(folder / "written"))
    assert isinstance(texts, formats.Texts)
    _check(texts, folder)
    return texts


def test_configurations_that_advise_writes_for_sqm_and_mikrotik_are_read_back(
    tmp_path: Path,
) -> None:
    wanted = replace(LINE, link=LINK_LAYERS["docsis"]).wanted("cake rtt 40ms")
    keys = _keys(_written(advice.sqm(wanted, "eth0"), tmp_path))
    assert keys["up.qdisc"] == "cake bandwidth 9500kbit diffserv3 overhead 18 mpu 64 rtt 40ms"
    assert (
        keys["down.qdisc"]
        == "cake bandwidth 47500kbit besteffort wash overhead 18 mpu 64 ingress rtt 40ms"
    )
    keys = _keys(_written(advice.mikrotik(wanted, "ether1"), tmp_path))
    assert keys["up.shaper"] == "htb rate 9500000bit"
    assert keys["up.qdisc"] == "cake rtt 40ms overhead 18 mpu 64 dual-srchost nat"
    assert keys["down.qdisc"] == "cake rtt 40ms overhead 18 mpu 64 dual-dsthost nat"
    only_up = AccessLine(up_bps=10_000_000).wanted("fq_codel limit 600 noecn")
    for lines in (advice.sqm(only_up, "eth0"), advice.mikrotik(only_up, "ether1")):
        keys = _keys(_written(lines, tmp_path))
        assert keys["up.shaper"] in ("htb rate 9500kbit", "htb rate 9500000bit")
        assert Qdisc.parse(keys["up.qdisc"]) == Qdisc.parse("fq_codel limit 600 noecn")
        assert keys["down.rate"] == "1 Gbit/s"
    # SQM's own defaults of a limit, a target and ECN are not those of Linux.
    for words in ("fq_codel", "codel", "pie", "pie target 20ms"):
        lines = advice.sqm(replace(LINE, link=None).wanted(words), "eth0")
        keys = _keys(_written(lines, tmp_path))
        for way in ("up", "down"):
            assert Qdisc.parse(keys[f"{way}.qdisc"]) == Qdisc.parse(words)


@pytest.mark.parametrize(
    "words",
    [
        "cake besteffort dual-dsthost nat rtt 60ms overhead 18 mpu 64 atm ack-filter nowash",
        "fq_codel limit 1000 flows 512 target 7ms interval 120ms quantum 300 memory_limit 33554432 noecn",
        "codel limit 500 target 5ms ecn", "pfifo limit 50", "bfifo limit 60000",
    ],
)  # fmt: skip
def test_words_of_tc_are_routeros_options_and_back(words: str) -> None:
    options = routeros.options(words)
    assert options is not None
    assert routeros.words(options) == (words, [])
    assert routeros.options("fq_pie") is None
    assert routeros.options("cake fwmark 3") is None


def test_an_export_of_routeros_is_a_scenario(tmp_path: Path) -> None:
    form, texts = _texts("routeros-simple.rsc")
    assert form == "routeros"
    keys = _keys(texts)
    assert keys["down.shaper"] == "htb rate 256000000bit"
    assert keys["down.qdisc"] == "cake besteffort dual-dsthost nat rtt 60ms"
    assert (keys["up.shaper"], keys["up.rate"]) == ("htb rate 24000000bit", "unlimited")
    notes = " ".join(texts.left_out)
    assert "2 simple queues have a limit: wan is taken." in notes
    assert "cake-tx that were not taken: cake-autorate-ingress=yes." in notes
    _check(texts, tmp_path)
    keys = _keys(_texts("routeros-tree.rsc")[1])
    assert keys["down.shaper"] == "htb rate 47500000bit"
    assert keys["down.qdisc"] == "fq_codel limit 1000 memory_limit 33554432 noecn"
    assert (keys["up.shaper"], keys["up.qdisc"]) == ("htb rate 9500000bit", "pfifo limit 50")


def test_cake_autorates_configuration_is_a_scenario_at_the_base_rates(tmp_path: Path) -> None:
    form, texts = _texts("cake-autorate.sh")
    assert form == "cake-autorate"
    keys = _keys(texts)
    assert keys["down.qdisc"] == "cake bandwidth 25000kbit"
    assert keys["up.qdisc"] == "cake bandwidth 8000kbit"
    notes = " ".join(texts.left_out)
    assert "down: cake-autorate moves the rate from 10000 to 80000 kbit/s" in notes
    assert "up: cake-autorate does not change this rate." in notes
    _check(texts, tmp_path)


def test_libreqos_circuits_are_links_below_their_sites(tmp_path: Path) -> None:
    form, texts = _texts("libreqos/ShapedDevices.csv")
    assert form == "libreqos"
    assert texts.taken == ["3 circuits below 2 sites"]
    links = {link.name: link for link in _check(texts, tmp_path).realise(1).links}
    shapers = {name: link.shaper.bps for name, link in links.items() if link.shaper is not None}
    assert shapers == {
        "net-Tower": 500e6, "Tower-net": 400e6, "Tower-Roof": 60e6, "Roof-Tower": 30e6, "Tower-circuit 1": 155e6, "circuit 1-Tower": 20e6,
        "Roof-circuit 2": 2.5e6, "circuit 2-Roof": 1e6, "net-circuit 3": 50e6, "circuit 3-net": 10e6,
    }  # fmt: skip
    assert "network.json has no node Nowhere" in " ".join(texts.left_out)
    alone = tmp_path / "ShapedDevices.csv"
    alone.write_bytes((FILES / "libreqos" / "ShapedDevices.csv").read_bytes())
    _, result = formats.read(formats.open_file(alone))
    assert isinstance(result, formats.Texts)
    assert "There is no network.json beside it" in result.left_out[0]
    alone.write_text(alone.read_text().replace("2.5,1.0", "fast,1.0"))
    with pytest.raises(UserError, match="line 5: download max mbps is 'fast'"):
        formats.read(formats.open_file(alone))


def _frame(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + len(body).to_bytes(3, "little") + body


CRR = struct.pack("<Q", 0x5372AB82AE7C59CB)
CRUSADER = {
    "version": 2, "generated_by": "Crusader 0.3.2", "server_latency": {"secs": 0, "nanos": 2_000_000}, "start": [1, 0], "duration": [9, 0],
    "stream_groups": [
        {"download": True, "both": False, "streams": [{"data": [{"time": [1, 500_000_000], "bytes": 0}, {"time": [2, 0], "bytes": 625_000}, {"time": [3, 0], "bytes": 1_875_000}]}]},
        {"download": False, "both": False, "streams": [{"data": [{"time": [4, 0], "bytes": 0}, {"time": [5, 0], "bytes": 125_000}]}]},
    ],
    "pings": [
        {"index": 1, "sent": [2, 500_000_000], "latency": {"total": {"secs": 0, "nanos": 30_000_000}, "up": {"secs": 0, "nanos": 9_000_000}}},
        {"index": 0, "sent": [1, 0], "latency": {"total": {"secs": 0, "nanos": 10_000_000}, "up": {"secs": 0, "nanos": 4_000_000}}},
        {"index": 2, "sent": [4, 500_000_000], "latency": None},
    ],
}  # fmt: skip


def test_crusaders_results_are_streams_pings_and_phases(tmp_path: Path) -> None:
    import msgspec

    file = tmp_path / "x.crr"
    packed = msgspec.msgpack.encode(CRUSADER)
    half = len(packed) // 2
    # A block with a literal of more than 60 bytes; then one that is not compressed.
    block = (half).to_bytes(2, "little") if half < 128 else bytes([half & 0x7F | 0x80, half >> 7])
    block += bytes([61 << 2]) + (half - 1).to_bytes(2, "little") + packed[:half]
    data = CRR + struct.pack("<Q", 2) + _frame(0xFF, b"sNaPpY") + _frame(0, bytes(4) + block) + _frame(1, bytes(4) + packed[half:])  # fmt: skip
    file.write_bytes(data)
    form, measured = formats.read(formats.open_file(file))
    assert isinstance(measured, FileMeasurement)
    assert (form.name, measured.version, measured.test) == ("crusader", "0.3.2", "download, upload")
    down, up = measured.streams
    assert (down.direction, _mbps(down), down.t) == ("down", [10.0, 10.0], [1.5, 2.0, 3.0])
    assert (up.direction, _mbps(up)) == ("up", [1.0])
    assert _rtts(measured.pings[0]) == [10, 30, None]
    assert [ping.forward_ms for ping in measured.pings[0].sent][:2] == [4, 9]
    assert [(p["kind"], p["start_ns"] / 1e9, p["end_ns"] / 1e9) for p in measured.phases] == [
        ("idle", 0, 1.5), ("download", 1.5, 3), ("idle", 3, 4), ("upload", 4, 5),
    ]  # fmt: skip
    for part in range(1, 10):
        file.write_bytes(data[: len(data) * part // 10])
        with pytest.raises(UserError):
            formats.read(formats.open_file(file))
    file.write_bytes(CRR + struct.pack("<Q", 3))
    with pytest.raises(UserError, match="version 3, but only 0, 1 and 2 are read"):
        formats.read(formats.open_file(file))


def test_crusaders_first_version_is_read(tmp_path: Path) -> None:
    def duration(seconds: float) -> bytes:
        return struct.pack("<QI", int(seconds), round(seconds % 1 * 1e9))

    points = [(1.0, 0), (2.0, 250_000)]
    stream = struct.pack("<Q", 2) + b"".join(duration(t) + struct.pack("<Q", n) for t, n in points)
    groups = struct.pack("<Q", 1) + b"\1\0" + struct.pack("<Q", 1) + stream
    pings = struct.pack("<Q", 2)
    pings += struct.pack("<Q", 0) + duration(0.5) + b"\1" + duration(0.02)
    pings += struct.pack("<Q", 1) + duration(1.5) + b"\0"
    file = tmp_path / "x.crr"
    file.write_bytes(CRR + struct.pack("<Q", 0) + struct.pack("<QQQQ", 5, 1, 5, 20) + duration(0.1) + duration(3) + groups + pings)  # fmt: skip
    _, measured = formats.read(formats.open_file(file))
    assert isinstance(measured, FileMeasurement)
    assert _mbps(measured.streams[0]) == [2.0]
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(UserError, match="it ends too early"):
        formats.read(formats.open_file(file))
    file.write_bytes(CRR + b"12")
    with pytest.raises(UserError, match="it ends too early"):
        formats.read(formats.open_file(file))
    file.write_bytes(CRR + struct.pack("<Q", 0) + struct.pack("<QQQQ", 5, 1, 5, 20) + duration(0.1) + duration(3) + groups + pings)  # fmt: skip
    _, measured = formats.read(formats.open_file(file))
    assert isinstance(measured, FileMeasurement)
    assert _rtts(measured.pings[0]) == [20, None]


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (b"\x0a\x08abc\x0d\x03", b"abcabcabca"), (b"\x05\x00a\x0e\x01\x00", b"aaaaa"), (b"\x08\x0cabcd\x0f\x04\0\0\0", b"abcdabcd"),
    ],
)  # fmt: skip
def test_copies_of_snappy_may_overlap_themselves(block: bytes, said: bytes) -> None:
    from sojourn.formats import crusader

    assert crusader._unpacked(block) == said
    with pytest.raises(formats.FileFormatError):
        crusader._unpacked(b"\x05\x01\x09")


def test_models_of_rattan_are_traces(tmp_path: Path) -> None:
    form, texts = _texts("rattan.json")
    assert form == "rattan-json"
    down = _check(texts, tmp_path).realise(1).links[0]
    assert [(step.at_ns, step.bps) for step in down.rate] == [
        (0, 12e6),
        (1e9, 24e6),
        (1.5e9, 1.5e6),
        (1.51e9, 3e6),
        (1.52e9, 6e6),
        (1.53e9, 6e6),
    ]
    assert down.rate_period_ns == 1_540_000_000
    _, texts = _texts("rattan-delay.json")
    assert texts.files[".delay.trace"] == "time_s,delay_ms\n0.000000,10\n1.000000,50\n1.500000,50\n"
    file = tmp_path / "x.json"
    file.write_text('{"NormalizedBwConfig": {"mean": "12Mbps"}}')
    with pytest.raises(UserError, match="draws its values at random"):
        formats.read(formats.open_file(file))


def test_import_writes_a_scenario_beside_its_traces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["import", str(FILES / "line.csv"), "-o", "mine.toml"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert {file.name for file in tmp_path.iterdir()} == {"mine.toml", "mine.down.trace", "mine.up.trace", "mine.delay.trace"}  # fmt: skip
    assert 'down.trace = "mine.down.trace"' in (tmp_path / "mine.toml").read_text()
    scenario.load(tmp_path / "mine.toml")
    with pytest.raises(UserError, match=r"mine\.toml is there already"):
        CliRunner().invoke(cli, words, catch_exceptions=False)
    assert CliRunner().invoke(cli, [*words, "--force"]).exit_code == 0


def test_goodputs_of_streams_add_up_at_common_times() -> None:
    a, b = Stream("a", "down"), Stream("b", "down")
    for i in range(10):
        a.add(i, i + 1, 1_000_000)
        b.add(i + 0.5, i + 1.5, 2_000_000)
    table = FileMeasurement("x", "", "t", "h", 0.0, streams=[a, b]).tables()["flow"]
    at = {flow: dict(zip(table["t_ns"][table["flow"] == flow], table["delivered_bytes"][table["flow"] == flow], strict=True)) for flow in (0, 1)}  # fmt: skip
    common = sorted(set(at[0]) & set(at[1]))
    assert len(common) >= 19
    got = sum(at[flow][common[-1]] - at[flow][common[0]] for flow in (0, 1))
    assert got * 8 / ((common[-1] - common[0]) / 1e9) == pytest.approx(24e6)


def test_zstd_is_unpacked(tmp_path: Path) -> None:
    # One frame with one raw block, by RFC 8878: magic, single segment with a size of one byte,
    # block.
    text = (FILES / "ping-macos.txt").read_bytes()
    frame = b"\x28\xb5\x2f\xfd" + bytes([0x60]) + (len(text) - 256).to_bytes(2, "little")
    block = (len(text) << 3 | 1).to_bytes(3, "little") + text
    file = tmp_path / "ping.zst"
    file.write_bytes(frame + block)
    assert formats.read(formats.open_file(file))[0].name == "ping-text"
    file.write_bytes((frame + block)[:-20])
    with pytest.raises(UserError, match="packed by zstd"):
        formats.open_file(file)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_packed_files_are_unpacked(pack: Any, tmp_path: Path) -> None:
    file = tmp_path / "anything"
    file.write_bytes(pack((FILES / "ping-macos.txt").read_bytes()))
    assert formats.read(formats.open_file(file))[0].name == "ping-text"
    file.write_bytes(pack((FILES / "irtt.json").read_bytes())[:-20])
    with pytest.raises(UserError):
        formats.read(formats.open_file(file))


@pytest.mark.parametrize(
    ("name", "more", "says"),
    [
        ("irtt.json", b"[]," * 3_000_001, "3 million values"),
        ("iperf3-up.json", b'{"":0},' * 1_500_000, "3 million values"),
        ("ping-macos.txt", b"\n" * 1_000_001, "1 million lines"),
        ("irtt.txt", b"\r" * 1_000_001, "1 million lines"),
        ("iperf2.csv", b"," * 3_000_001, "3 million fields"),
        ("ping-busybox.txt", b"x" * 100_000_001, "larger than 100 MB"),
    ],
)
def test_a_packed_file_that_would_take_all_memory_is_refused_before_it_does(
    name: str, more: bytes, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (FILES / name).read_bytes()
    file = tmp_path / "small.gz"
    with gzip.open(file, "wb", 1) as packed:
        packed.write(data)
        packed.write(more)
    assert file.stat().st_size < 2_000_000
    if "values" in says:
        monkeypatch.setattr(json, "loads", lambda _: pytest.fail("objects were built"))
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=says):
            formats.read(formats.open_file(file))
        # The bytes, their text and the buffers of unpacking.
        assert tracemalloc.get_traced_memory()[1] < 330_000_000
    finally:
        tracemalloc.stop()


def test_coarse_archives_of_smokeping_take_no_memory(tmp_path: Path) -> None:
    whole = (FILES / "smokeping.xml").read_text()
    value = "<v>1.2300000000e-02</v>"
    archive = f"<rra><cf>MIN</cf><pdp_per_row>12</pdp_per_row><database>{f'<row>{value * 23}</row>' * 9600}</database></rra>"
    file = tmp_path / "x.xml"
    file.write_text(whole.replace("</rrd>", f"{archive}</rrd>"))
    content = formats.open_file(file)
    size = len(content.data)
    tracemalloc.start()
    try:
        _, measured = formats.read(content)
        assert tracemalloc.get_traced_memory()[1] < size / 2
    finally:
        tracemalloc.stop()
    assert isinstance(measured, FileMeasurement)
    assert measured.pings[0].sent == _read("smokeping.xml")[1].pings[0].sent


@pytest.mark.parametrize(
    "name", sorted(str(each.relative_to(FILES)) for each in FILES.rglob("*") if each.is_file())
)
def test_a_file_that_is_cut_anywhere_is_read_or_refused(name: str, tmp_path: Path) -> None:
    data = (FILES / name).read_bytes()
    file = tmp_path / Path(name).name
    for part in range(1, 12):
        file.write_bytes(data[: len(data) * part // 12])
        try:
            content = formats.open_file(file)
            form, result = formats.read(content)
            with formats.damage_named(content, form):
                if isinstance(result, formats.Texts):
                    _check(result, tmp_path)
                else:
                    result.run(content)
        except UserError as error:
            assert str(file) in str(error)


def test_import_writes_runs_and_reports_what_it_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(
        cli, ["import", str(FILES / "irtt.json"), str(FILES / "ping-macos.txt"), "-o", "both"]
    )
    assert done.exit_code == 0, done.output
    assert Run.open(tmp_path / "both" / "irtt").meta.engine == "irtt"
    assert Run.open(tmp_path / "both" / "ping-macos").meta.engine == "ping"
    assert "8 probes to 1 target" in done.output
    (tmp_path / "notes.txt").write_text("nothing that anybody measured\n")
    with pytest.raises(UserError, match="has no format that sojourn reads"):
        CliRunner().invoke(cli, ["import", "notes.txt"], catch_exceptions=False)


def _import(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, ["import", *map(str, words)], catch_exceptions=False)


def test_nothing_is_written_if_one_of_several_files_can_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").write_text(" \n")
    with pytest.raises(UserError, match="empty is empty"):
        _import(FILES / "irtt.json", "empty", "-o", "out")
    with pytest.raises(UserError, match="is not a Run: it has no"):
        _import(FILES / "irtt.json", tmp_path, "-o", "out")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "line.up.trace").write_text("mine")
    with pytest.raises(UserError, match="is there already"):
        _import(FILES / "irtt.json", FILES / "line.csv", "-o", "out")
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["line.up.trace"]


def test_files_of_one_name_are_two_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.txt").write_bytes((FILES / "ping-macos.txt").read_bytes())
    assert _import("a/x.txt", "b/x.txt", "-o", "both").exit_code == 0
    assert Run.open(tmp_path / "both" / "x-2").meta.engine == "ping"
    assert Run.open(tmp_path / "both" / "x").meta.engine == "ping"


def test_a_scenario_is_written_into_a_folder_that_exists(tmp_path: Path) -> None:
    assert _import(FILES / "line.csv", "-o", tmp_path).exit_code == 0
    scenario.load(tmp_path / "line.toml")
    many = tmp_path / "many"
    assert _import(FILES / "line.csv", FILES / "sqm.conf", "-o", many).exit_code == 0
    assert {"line.toml", "sqm.toml"} < {file.name for file in many.iterdir()}


def test_formats_are_listed() -> None:
    done = CliRunner().invoke(cli, ["list", "formats"])
    assert "mtr-report" not in done.output
    assert "irtt-json" in done.output
    assert "smokeping-xml" in done.output
