"""From a guest's archive to our tables: small handmade archives give numbers that can be added up
by hand. A test in crates/guest (watch.rs) shows that the program's sums equal the simulator's for
the same packets."""

import io
import json
import struct
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sojourn import _core
from sojourn.engine.kernel.guest.endings import GuestError
from sojourn.engine.kernel.observed.archive import Archive, busy_share, doubts
from sojourn.engine.kernel.observed.tables import tables
from sojourn.records import TABLES, Names, frame
from sojourn.records.schema import ON_REQUEST
from sojourn.scenario import loads
from sojourn.scenario.realised import Realised

MS = 10**6
S = 10**9
HANDLE = 0x100000
TCP = (
    *(
        "t_ns",
        "flow",
        "state",
        "ca_state",
        "cwnd_segments",
        "ssthresh_segments",
        "snd_mss_bytes",
        "srtt_us",
    ),
    *("rttvar_us", "min_rtt_us", "rto_us", "unacked_segments", "sacked_segments", "lost_segments"),
    *("retrans_segments", "reordering_segments", "inflight_bytes", "pacing_rate_bytes_s"),
    *("delivery_rate_bytes_s", "notsent_bytes", "snd_wnd_bytes", "busy_us", "rwnd_limited_us"),
    *(
        "sndbuf_limited_us",
        "rcv_space_bytes",
        "total_retrans_segments",
        "bytes_acked",
        "bytes_sent",
    ),
    *("bytes_retrans", "data_segs_out", "delivered_segments", "delivered_ce_segments", "timeouts"),
    *("received_bytes", "completed"),
)
QDISC = (
    *(
        "t_ns",
        "device",
        "kind",
        "handle",
        "parent",
        "sent_bytes",
        "sent_packets",
        "backlog_packets",
    ),
    *(
        "backlog_bytes",
        "drops",
        "requeues",
        "overlimits",
        "own_at",
        "own_bytes",
        "options_at",
        "options_bytes",
    ),
)
DEVICE = (
    *("t_ns", "device", "received_packets", "sent_packets", "received_bytes", "sent_bytes"),
    *("received_dropped", "sent_dropped"),
)
FIXED = {
    "tcp": TCP,
    "transfers": ("flow", "start_ns", "end_ns", "bytes"),
    "datagrams": ("flow", "seq", "sent_ns", "received_ns", "bytes", "frame"),
    "probes": ("flow", "seq", "sent_ns", "turned_ns", "received_ns"),
    "qdisc": QDISC,
    "device": DEVICE,
    "gauge": ("t_ns", "device", "gauge", "value"),
    "passed": (
        *(
            "link",
            "arrived_packets",
            "arrived_bytes",
            "sent_packets",
            "sent_bytes",
            "dropped_packets",
        ),
        *("marked_packets", "sojourn_max_ns", "backlog_max_packets", "backlog_max_bytes"),
        *("ring_sent_packets", "ring_sojourn_max_ns", "ring_max_packets", "out", "sojourn_sum_ns"),
        *("backlog_packet_ns", "backlog_byte_ns", "ring_sojourn_sum_ns", "ring_packet_ns"),
    ),
    "spans": (
        *("link", "span", "sent_packets", "sent_bytes", "sojourn_sum_ns", "sojourn_max_ns"),
        *("dropped_packets", "marked_packets"),
    ),
    "sojourn": ("link", "lower_ns", "upper_ns", "count"),
    "sizes": ("link", "bytes", "packets"),
    "drops": ("link", "t_ns", "flow", "reverse", "what", "bytes"),
    "rtts": ("flow", "samples", "sum_ns", "min_ns", "max_ns"),
    "rtt": ("flow", "lower_ns", "upper_ns", "count"),
}
REAL = (
    "sojourn_sum_ns",
    "backlog_packet_ns",
    "backlog_byte_ns",
    "ring_sojourn_sum_ns",
    "ring_packet_ns",
    "sum_ns",
)
REFUSED, DROPPED, MARKED, LOST = range(4)

DUMBBELL = """
duration = "4 s"
warmup = "1 s"

[bottleneck]
rate = "10 Mbit/s"
delay = "10 ms"
link_layer = "linux"
qdisc = "pfifo limit 20"

[[flow]]
kind = "bulk"
count = 2
start = "every 100 ms"

[[flow]]
kind = "ping"
direction = "down"
start = "50 ms"

[[flow]]
kind = "udp"
rate = "1 Mbit/s"

"""


class Made:
    """Builds an archive: rows are dicts, missing values are 0."""

    def __init__(self, realised: Realised, kinds: Sequence[str] = ("pfifo",)) -> None:
        self.realised = realised
        self.rows: dict[str, list[dict[str, int]]] = {name: [] for name in FIXED}
        self.taps: list[dict[str, Any]] = []
        self.blob = b""
        self.index: dict[str, Any] = {
            "format": 2,
            "clock_stepped_ns": 0,
            "lost_headers": 0,
            "duration_ns": realised.duration_ns,
            "qdisc_kinds": list(kinds),
            "processor": {"start": None, "end": None},
            "devices": [
                {
                    "link": index,
                    "namespace": "n",
                    "name": f"nic{index}a",
                    "gauges": ["simnic/lost_packets"],
                }
                for index in range(len(realised.links))
            ],
            "flows": [
                {"name": flow.name, "error": None, "errors": 0, "timeouts_known": True}
                for flow in realised.flows
            ],
        }

    def add(self, table: str, **row: int) -> None:
        self.rows[table].append(row)

    def watch(
        self,
        link: int,
        drops: Sequence[tuple[int, int, int]] = (),
        sizes: Mapping[int, int] | None = None,
        **sums: int,
    ) -> None:
        """A recorded queue: its sums, and its drops, marks and losses: (ms, flow, event)."""
        stages = [{"name": "log", "packets": 0, "lost_records": 0, "unexpected": 0}]
        self.taps.append({"link": link, "stages": stages})
        self.add("passed", link=link, **sums)
        record = self.realised.record
        for span in range(-(-self.realised.duration_ns // record.queue_ns)):
            self.add("spans", link=link, span=span)
        for t, flow, what in drops:
            self.add("drops", link=link, t_ns=t * MS, flow=flow, what=what, bytes=1500)
        for size, packets in (sizes or {}).items():
            self.add("sizes", link=link, bytes=size, packets=packets)

    def sample(
        self, t_ns: int, drops: int, own: bytes = b"", link: int = 0, backlog: int = 0
    ) -> None:
        """A sample of the discipline with its statistics `own`."""
        self.add(
            "qdisc",
            t_ns=t_ns,
            device=link,
            handle=HANDLE,
            drops=drops,
            backlog_packets=backlog,
            own_at=len(self.blob),
            own_bytes=len(own),
        )
        self.blob += own

    def write(self, path: Path) -> Path:
        files: dict[str, bytes] = {}
        listed = {}
        for table, rows in self.rows.items():
            names = FIXED[table]
            kinds = {name: "f64" if name in REAL else "i64" for name in names}
            for name, kind in kinds.items():
                values = np.array(
                    [row.get(name, 0) for row in rows], dtype={"i64": "<i8", "f64": "<f8"}[kind]
                )
                files[f"{table}/{name}"] = values.tobytes()
            columns = [{"name": name, "type": kind} for name, kind in kinds.items()]
            listed[table] = {"rows": len(rows), "columns": columns}
        files["qdisc/blob"] = self.blob
        files["index.json"] = json.dumps(
            {**self.index, "taps": self.taps, "tables": listed}
        ).encode()
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
            for name, content in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        return path

    def tables(self, folder: Path) -> dict[str, dict[str, Any]]:
        with_rtts = {row["flow"] for row in self.rows["rtts"]}
        for flow in set(range(len(self.realised.flows))) - with_rtts:
            self.add("rtts", flow=flow, min_ns=-1)
        made = tables(self.realised, Archive.read(self.write(folder / "results.tar")))
        names = Names(
            [link.name for link in self.realised.links],
            [flow.name for flow in self.realised.flows],
            _core.CAUSES,
        )
        for name, columns in made.items():
            # Every table can be written as it is.
            frame(name, columns, names)
        assert set(made) >= set(TABLES) - set(ON_REQUEST)
        return made


def realised(text: str = DUMBBELL, **changes: Any) -> Realised:
    return (
        loads(text)
        .with_({key.replace("__", "."): value for key, value in changes.items()})
        .realise(1)
    )


def words(causes: Any) -> list[str]:
    return [_core.CAUSES[number] for number in causes]


# --------------------------------------------------------------------------------------- the sums


def test_a_queue_s_row_is_the_sum_of_its_events(tmp_path: Path) -> None:
    made = Made(realised())
    made.watch(
        0,
        [(2000, 0, REFUSED), (2500, 1, DROPPED), (500, 1, DROPPED)],
        {1500: 2, 52: 10},
        arrived_packets=14,
        sent_packets=12,
        sent_bytes=3520,
        dropped_packets=2,
        sojourn_sum_ns=9 * S,
        backlog_packet_ns=6 * S,
        backlog_byte_ns=3000 * S,
        backlog_max_packets=7,
        sojourn_max_ns=5,
    )
    made.rows["spans"][2] |= {"sent_packets": 4, "sojourn_sum_ns": 10 * MS, "dropped_packets": 1}
    made.add("sojourn", link=0, lower_ns=100, upper_ns=101, count=12)
    got = made.tables(tmp_path)
    links = {name: column[0] for name, column in got["links"].items()}
    assert (links["arrived_packets"], links["sent_packets"], links["dropped_packets"]) == (
        14,
        12,
        2,
    )
    assert (links["sojourn_sum_ns"], links["sojourn_max_ns"], links["backlog_max_packets"]) == (
        9 * S,
        5,
        7,
    )
    # Over the measured 3 s.
    assert (links["backlog_mean_packets"], links["backlog_mean_bytes"]) == (2.0, 1000.0)
    # A packet has 14 bytes of Ethernet's header, and at least 60 bytes in all.
    assert links["wire_bytes"] == 2 * 1514 + 10 * 66
    assert links["busy_ns"] == links["wire_bytes"] * 800
    down = got["queue"]["link"] == 0
    assert got["queue"]["sojourn_mean_ns"][down][2] == 2.5 * MS
    assert np.isnan(got["queue"]["sojourn_mean_ns"][down][3])
    assert got["queue"]["dropped_packets"][down].sum() == 1
    assert got["sojourn"]["packets"].tolist() == [12]
    # Only a flow's own losses count, within the measured time.
    assert got["flows"]["lost_packets"].tolist() == [1, 1, 0, 0]


def test_histogram_bins_equal_the_simulator_s_over_the_whole_range() -> None:
    from sojourn.engine.kernel.observed.histogram import Histogram

    values = np.array(
        [0, 1, 127, 128, 129, 255, 256, 257, 1000, 10**6 + 1, 2**40 - 1, 2**40, 2**52 + 2**44 + 5]
    )
    for value in values.tolist():
        histogram = Histogram()
        histogram.add(3, np.array([value]))
        bins = histogram.columns("link", "packets")
        low, high = int(bins["lower_ns"][0]), int(bins["upper_ns"][0])
        assert low <= value < high
        assert high - low == max(1, 1 << max(0, value.bit_length() - 8)), value
        assert low % (high - low) == 0


# ------------------------------------------------------------------------------- drops and causes


def codel(overlimit: int = 0, mark: int = 0, ce_mark: int = 0) -> bytes:
    return struct.pack("=9I", 1514, 3, 1, 0, 0, overlimit, mark, 1, ce_mark)


def test_codel_s_limit_refuses_and_its_law_drops_what_has_waited(tmp_path: Path) -> None:
    made = Made(realised(bottleneck__qdisc="codel limit 2"), ["codel"])
    made.watch(0, [(2002, 0, REFUSED), (2030, 0, DROPPED)])
    made.sample(4 * S, 2, codel(overlimit=1))
    got = made.tables(tmp_path)
    assert list(zip(got["drops"]["t_ns"].tolist(), words(got["drops"]["cause"]), strict=True)) == [
        (2002 * MS, "limit"),
        (2030 * MS, "target"),
    ]
    assert got["queue"]["count"][got["queue"]["link"] == 0][-1] == 3


def fq_codel(overlimit: int, overmemory: int = 0) -> bytes:
    return struct.pack("=10I", 0, 1514, overlimit, 0, 5, 2, 1, 0, 4096, overmemory)


def test_fq_codel_s_counters_determine_the_causes_of_its_drops(tmp_path: Path) -> None:
    made = Made(realised(bottleneck__qdisc="fq_codel"), ["fq_codel"])
    made.watch(0, [(at, 0, DROPPED) for at in (1505, 2505, 3505)])
    for t, drops, own in ((0, 0, (0, 0)), (2, 1, (0, 0)), (3, 2, (1, 0)), (4, 3, (2, 1))):
        made.sample(t * S, drops, fq_codel(*own))
    got = made.tables(tmp_path)
    assert words(got["drops"]["cause"]) == ["target", "limit", "overmemory"]
    assert got["queue"]["flows"][got["queue"]["link"] == 0][-1] == 3


def test_the_counters_determine_the_cause_of_a_mark(tmp_path: Path) -> None:
    made = Made(realised(bottleneck__qdisc="codel ecn ce_threshold 1ms"), ["codel"])
    made.watch(0, [(2003, 0, MARKED)], marked_packets=1)
    made.sample(0, 0, codel())
    made.sample(4 * S, 0, codel(ce_mark=1))
    got = made.tables(tmp_path)
    assert got["links"]["marked_packets"][0] == 1
    assert (got["drops"]["marked"].tolist(), words(got["drops"]["cause"])) == (
        [1],
        ["ce_threshold"],
    )


def test_red_s_counters_distinguish_early_drops_from_those_at_the_limit(tmp_path: Path) -> None:
    run = realised(bottleneck__qdisc="red limit 400000 avpkt 1000 adaptive")
    made = Made(run, ["red"])
    made.watch(0, [(1501, 0, REFUSED), (2501, 0, REFUSED)])
    made.sample(0, 0, struct.pack("=4I", 0, 0, 0, 0))
    made.sample(2 * S, 1, struct.pack("=4I", 1, 0, 0, 0))
    made.sample(4 * S, 2, struct.pack("=4I", 1, 1, 0, 0))
    options = struct.pack("=HHII", 8, 2, 0, 0)[:8] + struct.pack("=HHI", 8, 3, 2**30)
    for row in made.rows["qdisc"]:
        row |= {"options_at": len(made.blob), "options_bytes": len(options)}
    made.blob += options
    got = made.tables(tmp_path)
    assert words(got["drops"]["cause"]) == ["early", "limit"]
    # A quarter of 2^32.
    assert got["queue"]["probability"][got["queue"]["link"] == 0][-1] == 0.25


def test_losses_on_the_wire_count_for_the_wire(tmp_path: Path) -> None:
    made = Made(realised(bottleneck__down={"loss": "1 %"}))
    made.watch(0, [(2001, 0, LOST)])
    made.add("gauge", t_ns=0, device=0, gauge=0, value=0)
    made.add("gauge", t_ns=4 * S, device=0, gauge=0, value=4)
    got = made.tables(tmp_path)
    assert (got["drops"]["t_ns"].tolist(), words(got["drops"]["cause"])) == ([2001 * MS], ["wire"])
    assert got["flows"]["lost_packets"].tolist() == [1, 0, 0, 0]
    # The card counted 4 losses in 4 s, of which 3 s are measured.
    assert got["links"]["lost_packets"][0] == 3


def test_a_ring_has_sums_of_its_own(tmp_path: Path) -> None:
    made = Made(realised(bottleneck__down={"ring": 8, "bql": True}))
    made.index["devices"][0]["gauges"] = [
        "simnic/ring_packets",
        "simnic/ring_bytes",
        "simnic/bql_limit",
    ]
    sums = {"ring_sent_packets": 3, "ring_sojourn_sum_ns": 7 * MS, "ring_sojourn_max_ns": 3 * MS}
    made.watch(0, out=1, ring_packet_ns=7 * MS, ring_max_packets=2, **sums)
    for t in (2 * S, 4 * S):
        for gauge, value in ((0, 2), (1, 3028), (2, 3000 + t // S)):
            made.add("gauge", t_ns=t, device=0, gauge=gauge, value=value)
    got = made.tables(tmp_path)
    links = {
        name: column[0] for name, column in got["links"].items() if name.startswith(("ring", "bql"))
    }
    assert links["ring_sent_packets"] == 3
    assert (links["ring_sojourn_sum_ns"], links["ring_sojourn_max_ns"]) == (7 * MS, 3 * MS)
    assert links["ring_mean_packets"] == pytest.approx(7 / 3000)
    assert (links["ring_max_packets"], links["bql_limit_bytes"]) == (2, 3004)
    down = got["queue"]["link"] == 0
    assert got["queue"]["ring_bytes"][down][-1] == 3028
    assert (got["queue"]["ring_packets"][down] == -1).sum() == down.sum() - 2
    assert got["links"]["ring_sent_packets"][1] == -1


# ------------------------------------------------------------------------------------------ flows


def test_tcp_s_numbers_are_those_of_tcp_info(tmp_path: Path) -> None:
    made = Made(realised())
    for second in range(5):
        made.add(
            "tcp",
            t_ns=second * S,
            flow=0,
            cwnd_segments=10 + second,
            ssthresh_segments=0x7FFFFFFF if second < 2 else 8,
            snd_mss_bytes=1448,
            srtt_us=0 if second == 0 else 20_000 + second,
            inflight_bytes=7 * 1448,
            snd_wnd_bytes=65_536,
            data_segs_out=100 * second,
            bytes_sent=144_800 * second,
            delivered_segments=99 * second,
            received_bytes=140_000 * second,
            total_retrans_segments=second,
            timeouts=second // 2,
        )
    made.add("rtts", flow=0, samples=7, sum_ns=7 * 20 * MS, min_ns=19 * MS, max_ns=21 * MS)
    made.add("rtt", flow=0, lower_ns=19 * MS, upper_ns=22 * MS, count=7)
    got = made.tables(tmp_path)
    flow = {name: column[0] for name, column in got["flows"].items()}
    # From 1 s to 4 s.
    assert (flow["sent_packets"], flow["sent_bytes"]) == (300, 3 * 144_800 + 300 * 52)
    assert (flow["received_packets"], flow["delivered_bytes"]) == (297, 420_000)
    assert (flow["retransmits"], flow["timeouts"], flow["fast_recoveries"]) == (3, 2, -1)
    # Samples, not readings of the smoothed RTT.
    assert (flow["rtt_samples"], flow["rtt_sum_ns"]) == (7, 7 * 20 * MS)
    assert (got["rtt"]["flow"].tolist(), got["rtt"]["samples"].tolist()) == ([0], [7])
    line = {name: column[got["flow"]["flow"] == 0] for name, column in got["flow"].items()}
    at = line["t_ns"].tolist().index(3 * S)
    assert (line["cwnd_bytes"][at], line["ssthresh_bytes"][at]) == (13 * 1448, 8 * 1448)
    assert (line["srtt_ns"][at], line["window_bytes"][at]) == (20_003_000, 65_536)
    assert line["ssthresh_bytes"][line["t_ns"].tolist().index(S)] == -1
    # Between samples no value is known.
    assert line["cwnd_bytes"][at - 1] == -1


def test_datagrams_have_one_way_delays_and_probes_both(tmp_path: Path) -> None:
    made = Made(realised())
    for seq, (sent, received) in enumerate([(500, 510), (2000, 2012), (3000, -1), (3999, 4011)]):
        there = received if received < 0 else received * MS
        made.add(
            "datagrams", flow=3, seq=seq, sent_ns=sent * MS, received_ns=there, bytes=500, frame=-1
        )
    for seq, (sent, turned, back) in enumerate(
        [(1500, 1510, 1520), (2500, 2510, -1), (3995, 4005, 4015)]
    ):
        made.add(
            "probes",
            flow=2,
            seq=seq,
            sent_ns=sent * MS,
            turned_ns=turned * MS,
            received_ns=back if back < 0 else back * MS,
        )
    got = made.tables(tmp_path)
    flows = {name: column[3] for name, column in got["flows"].items()}
    assert (flows["sent_packets"], flows["received_packets"], flows["delivered_bytes"]) == (
        3,
        1,
        472,
    )
    assert (flows["rtt_samples"], flows["rtt_sum_ns"]) == (1, 12 * MS)
    line = {name: column[got["flow"]["flow"] == 3] for name, column in got["flow"].items()}
    came = line["delay_max_ns"] >= 0
    # Packets in flight at the end, 4 s, have not arrived.
    assert line["delay_max_ns"][came].tolist() == [10 * MS, 12 * MS]
    for at, received in zip(np.flatnonzero(came), (510 * MS, 2012 * MS), strict=True):
        assert line["t_ns"][at - 1] < received <= line["t_ns"][at]
    # The third ping was in flight at the end.
    assert got["probe"]["rtt_ns"].tolist() == [20 * MS, -1]
    assert got["probe"]["forward_ns"].tolist() == [10 * MS, 10 * MS]
    delivered = got["flow"]["delivered_bytes"][got["flow"]["flow"] == 3]
    assert (delivered[0], delivered[-1]) == (0, 944)


def test_a_link_without_a_rate_is_measured_by_its_device(tmp_path: Path) -> None:
    made = Made(realised(bottleneck__rate="unlimited"))
    for t, packets in ((0, 0), (S, 100), (4 * S, 400)):
        made.add("device", t_ns=t, device=0, sent_packets=packets, sent_bytes=packets * 1514)
    got = made.tables(tmp_path)
    links = {name: column[0] for name, column in got["links"].items()}
    assert (links["sent_packets"], links["sent_bytes"], links["arrived_packets"]) == (
        300,
        450_000,
        300,
    )
    assert (links["sojourn_sum_ns"], links["capacity_bits"]) == (0, -1)
    assert got["sojourn"]["packets"].tolist() == [300]


# ------------------------------------------------------------------------------------ the archive


def test_lost_records_are_reported(tmp_path: Path) -> None:
    made = Made(realised())
    made.watch(0)
    made.taps[0]["stages"][0] |= {"lost_records": 7, "unexpected": 2}
    made.index["flows"][0] |= {"error": "Connection refused", "errors": 1}
    made.index["lost_headers"] = 3
    made.index["processor"] = {
        "start": {"user": 0, "idle": 0, "iowait": 0},
        "end": {"user": 30, "idle": 60, "iowait": 10},
    }
    archive = Archive.read(made.write(tmp_path / "a.tar"))
    said = "\n".join(doubts(archive))
    assert "lost 7 packets' records" in said
    assert "2 packets at 'log' have no earlier record" in said
    assert "Connection refused" in said
    assert "the headers of 3 packets were lost" in said
    assert busy_share(archive) == pytest.approx(0.3)


def test_a_link_without_packets_has_totals_of_zero(tmp_path: Path) -> None:
    for qdisc, own in (("codel", codel()), ("fq_codel", fq_codel(0)), ("pfifo", b"")):
        made = Made(realised(bottleneck__qdisc=qdisc), [qdisc])
        made.watch(0)
        made.sample(4 * S, 0, own)
        links = made.tables(tmp_path)["links"]
        for name in (
            "arrived_packets",
            "dropped_packets",
            "sojourn_sum_ns",
            "backlog_max_packets",
            "wire_bytes",
        ):
            assert links[name].tolist() == [0, 0]


def test_an_incomplete_archive_is_refused(tmp_path: Path) -> None:
    whole = Made(realised()).write(tmp_path / "whole.tar").read_bytes()
    for length in (0, 600, len(whole) // 2):
        (tmp_path / "part.tar").write_bytes(whole[:length])
        with pytest.raises(GuestError, match=r"part\.tar is not a complete archive"):
            Archive.read(tmp_path / "part.tar")
    with pytest.raises(GuestError, match="not a complete archive"):
        Archive.read(tmp_path / "none.tar")
