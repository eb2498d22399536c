"""From a guest's archive to our tables: an archive made of the simulator's own packets gives the simulator's own tables, and small ones by
hand give numbers that can be added up by hand."""

import io
import json
import os
import struct
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sojourn import _core
from sojourn.engine.kernel.archive import Archive, busy_share, doubts
from sojourn.engine.kernel.errors import GuestError
from sojourn.engine.kernel.plan import plan, this_host
from sojourn.engine.kernel.tables import tables
from sojourn.records import TABLES, Names, frame
from sojourn.scenario import loads

ROOT = Path(__file__).parent.parent.parent
MS = 10**6
S = 10**9
HANDLE = 0x100000
TCP = (
    *("t_ns", "flow", "state", "ca_state", "cwnd_segments", "ssthresh_segments", "snd_mss_bytes", "srtt_us"),
    *("rttvar_us", "min_rtt_us", "rto_us", "unacked_segments", "sacked_segments", "lost_segments"),
    *("retrans_segments", "reordering_segments", "inflight_bytes", "pacing_rate_bytes_s"),
    *("delivery_rate_bytes_s", "notsent_bytes", "snd_wnd_bytes", "busy_us", "rwnd_limited_us"),
    *("sndbuf_limited_us", "rcv_space_bytes", "total_retrans_segments", "bytes_acked", "bytes_sent"),
    *("bytes_retrans", "data_segs_out", "delivered_segments", "delivered_ce_segments", "timeouts"),
    *("received_bytes", "completed"),
)
QDISC = (
    *("t_ns", "device", "kind", "handle", "parent", "sent_bytes", "sent_packets", "backlog_packets"),
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
}

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

[record]
packets = true
"""


class Made:
    """An archive in the making: rows as dicts, what is not given is 0."""

    def __init__(self, realised: Mapping[str, Any], kinds: Sequence[str] = ("pfifo",)) -> None:
        self.realised = realised
        self.rows: dict[str, list[dict[str, int]]] = {name: [] for name in FIXED}
        self.taps: list[dict[str, Any]] = []
        self.blob = b""
        self.index: dict[str, Any] = {
            "format": 1,
            "clock_stepped_ns": 0,
            "duration_ns": realised["duration_ns"],
            "qdisc_kinds": list(kinds),
            "processor": {"start": None, "end": None},
            "devices": [
                {"link": index, "namespace": "n", "name": f"nic{index}a", "gauges": ["simnic/lost_packets"]}
                for index in range(len(realised["links"]))
            ],
            "flows": [
                {"name": flow["name"], "error": None, "errors": 0, "timeouts_known": True}
                for flow in realised["flows"]
            ],
        }

    def add(self, table: str, **row: int) -> None:
        self.rows[table].append(row)

    def tap(
        self, link: int, rows: Sequence[Mapping[str, int]], stages: Sequence[str] = ("before", "after")
    ) -> None:
        """Rows: t_before_ns, t_after_ns, flow and what is not as usual."""
        name = f"tap{len(self.taps)}"
        told = [{"name": stage, "packets": len(rows), "lost_records": 0, "unexpected": 0} for stage in stages]
        self.taps.append({"table": name, "link": link, "stages": told})
        usual = {"reverse": 0, "bytes": 1500, "ds_in": 0, "ds_out": 0}
        self.rows[name] = [{**usual, **row} for row in rows]

    def sample(self, t_ns: int, drops: int, own: bytes = b"", link: int = 0, backlog: int = 0) -> None:
        """A sample of the discipline, whose own numbers are `own`."""
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
            names = FIXED.get(table) or (
                *(
                    f"t_{stage['name']}_ns"
                    for tap in self.taps
                    if tap["table"] == table
                    for stage in tap["stages"]
                ),
                *("flow", "reverse", "bytes", "ds_in", "ds_out"),
            )
            for name in names:
                values = np.array([row.get(name, 0) for row in rows], dtype="<i8")
                files[f"{table}/{name}"] = values.tobytes()
            listed[table] = {"rows": len(rows), "columns": [{"name": name, "type": "i64"} for name in names]}
        files["qdisc/blob"] = self.blob
        files["index.json"] = json.dumps({**self.index, "taps": self.taps, "tables": listed}).encode()
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
            for name, content in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        return path

    def tables(self, folder: Path) -> dict[str, dict[str, Any]]:
        made = tables(self.realised, Archive.read(self.write(folder / "results.tar")))
        names = Names(
            [link["name"] for link in self.realised["links"]],
            [flow["name"] for flow in self.realised["flows"]],
            _core.CAUSES,
        )
        for name, columns in made.items():
            # Every table can be written as it is.
            frame(name, columns, names)
        assert set(made) >= set(TABLES) - {"packets"}
        return made


def realised(text: str = DUMBBELL, **changes: Any) -> dict[str, Any]:
    return loads(text).with_({key.replace("__", "."): value for key, value in changes.items()}).realise(1)


def words(causes: Any) -> list[str]:
    return [_core.CAUSES[number] for number in causes]


# ------------------------------------------------------------------------------------ the simulator's own packets


LINGER_NS = 100 * MS
"""More than a full queue takes."""


def of_the_simulator(run: Mapping[str, Any], folder: Path) -> tuple[Any, Any]:
    """The simulator's tables, and ours from an archive of what taps would have seen of its packets.

    A fifo drops on arrival, so its drops say when a packet came; of the packets that it sent, the table `packets` does. As in
    a guest the taps go on after the end, until all that waited then is through.
    """
    theirs = _core.run(json.dumps(run))
    seen = _core.run(json.dumps({**run, "duration_ns": run["duration_ns"] + LINGER_NS}))
    made = Made(run, [run["links"][0]["qdisc"]["kind"]])
    for link in range(len(run["links"])):
        rows = []
        packets = {name: column[seen["packets"]["link"] == link] for name, column in seen["packets"].items()}
        for t, flow, sojourn, size in zip(
            *(packets[name].tolist() for name in ("t_ns", "flow", "sojourn_ns", "bytes")), strict=True
        ):
            back = link in run["flows"][flow]["back"]
            rows.append(
                {
                    "t_before_ns": t - sojourn,
                    "t_after_ns": t,
                    "flow": flow,
                    "reverse": int(back),
                    "bytes": size,
                }
            )
        drops = {name: column[seen["drops"]["link"] == link] for name, column in seen["drops"].items()}
        for t, flow, size in zip(*(drops[name].tolist() for name in ("t_ns", "flow", "bytes")), strict=True):
            rows.append({"t_before_ns": t, "t_after_ns": -1, "flow": flow, "reverse": 0, "bytes": size})
        rows.sort(key=lambda row: (row["t_before_ns"], row["t_after_ns"]))
        made.tap(link, rows)
        queue = {name: column[theirs["queue"]["link"] == link] for name, column in theirs["queue"].items()}
        for t, backlog in zip(queue["t_ns"].tolist(), queue["backlog_packets"].tolist(), strict=True):
            made.sample(t, 0, link=link, backlog=backlog)
    return theirs, made.tables(folder)


@pytest.mark.parametrize("qdisc", ["pfifo limit 20", "bfifo limit 20000"])
def test_packets_of_the_simulator_give_the_simulator_s_tables(qdisc: str, tmp_path: Path) -> None:
    theirs, ours = of_the_simulator(realised(bottleneck__qdisc=qdisc), tmp_path)
    assert len(theirs["drops"]["t_ns"]) > 20
    names = (
        *("arrived_packets", "sent_packets", "sent_bytes", "wire_bytes", "dropped_packets", "marked_packets"),
        *("sojourn_sum_ns", "sojourn_max_ns", "capacity_bits", "measured_ns", "lost_packets"),
    )
    for name in names:
        assert ours["links"][name].tolist() == theirs["links"][name].tolist(), name
    for name in ("link", "lower_ns", "upper_ns", "packets"):
        assert ours["sojourn"][name].tolist() == theirs["sojourn"][name].tolist()
    for name in ("t_ns", "link", "flow", "cause", "marked", "bytes"):
        assert ours["drops"][name].tolist() == theirs["drops"][name].tolist()
    for name in (
        "t_ns",
        "link",
        "backlog_packets",
        "sojourn_max_ns",
        "sent_packets",
        "dropped_packets",
        "limit",
    ):
        assert ours["queue"][name].tolist() == theirs["queue"][name].tolist(), name
    np.testing.assert_allclose(ours["queue"]["sojourn_mean_ns"], theirs["queue"]["sojourn_mean_ns"])
    for name in ("base_rtt_ns", "lost_packets"):
        assert ours["flows"][name].tolist() == theirs["flows"][name].tolist()
    # What waited at the end counts among those that came.
    assert theirs["queue"]["backlog_packets"][-2] > 0
    np.testing.assert_allclose(
        ours["links"]["backlog_mean_packets"], theirs["links"]["backlog_mean_packets"], rtol=1e-6
    )
    assert (
        abs(int(ours["links"]["backlog_max_packets"][0]) - int(theirs["links"]["backlog_max_packets"][0]))
        <= 1
    )


def test_bins_are_the_simulator_s_over_the_whole_range() -> None:
    from sojourn.engine.kernel.histogram import Histogram

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


# ------------------------------------------------------------------------------------------------- drops and causes


def test_a_packet_that_still_waits_at_the_end_was_not_dropped(tmp_path: Path) -> None:
    made = Made(realised())
    rows = [(1000, 1010, 0), (1001, -1, 0), (1002, 1020, 0), (3999, -1, 0)]
    made.tap(
        0, [{"t_before_ns": b * MS, "t_after_ns": a if a < 0 else a * MS, "flow": f} for b, a, f in rows]
    )
    got = made.tables(tmp_path)
    assert got["drops"]["t_ns"].tolist() == [1001 * MS]
    assert (got["links"]["arrived_packets"][0], got["links"]["dropped_packets"][0]) == (4, 1)


def test_what_happens_after_the_end_or_in_the_warm_up_is_not_counted(tmp_path: Path) -> None:
    made = Made(realised())
    rows = [(500, 510), (999, 1001), (3000, 3030), (3990, 4010), (4001, 4020)]
    made.tap(0, [{"t_before_ns": b * MS, "t_after_ns": a * MS, "flow": 0} for b, a in rows])
    links = made.tables(tmp_path)["links"]
    assert (links["arrived_packets"][0], links["sent_packets"][0]) == (2, 2)
    assert links["sojourn_sum_ns"][0] == 32 * MS
    # 1 ms of the second, 30 of the third and 10 of the fourth, in 3 s.
    assert links["backlog_mean_packets"][0] == pytest.approx(41 / 3000)


def codel(overlimit: int = 0, mark: int = 0, ce_mark: int = 0) -> bytes:
    return struct.pack("=9I", 1514, 3, 1, 0, 0, overlimit, mark, 1, ce_mark)


def test_codel_drops_when_the_next_packet_leaves(tmp_path: Path) -> None:
    made = Made(realised(bottleneck__qdisc="codel"), ["codel"])
    rows = [(2000, 2010), (2001, -1), (2002, 2030)]
    made.tap(0, [{"t_before_ns": b * MS, "t_after_ns": a if a < 0 else a * MS, "flow": 0} for b, a in rows])
    made.sample(4 * S, 1, codel())
    got = made.tables(tmp_path)
    assert got["drops"]["t_ns"].tolist() == [2030 * MS]
    assert words(got["drops"]["cause"]) == ["target"]
    # It waited from 2001 to 2030 ms, which the backlog knows.
    assert got["links"]["backlog_mean_packets"][0] == pytest.approx((10 + 29 + 28) / 3000)
    assert got["queue"]["count"][got["queue"]["link"] == 0][-1] == 3


def test_codel_s_drops_at_the_limit_are_found_by_replay(tmp_path: Path) -> None:
    made = Made(realised(bottleneck__qdisc="codel limit 2"), ["codel"])
    # The third finds two waiting; the second is dropped when the fourth leaves.
    rows = [(2000, 2010), (2001, -1), (2002, -1), (2011, 2030)]
    made.tap(0, [{"t_before_ns": b * MS, "t_after_ns": a if a < 0 else a * MS, "flow": 0} for b, a in rows])
    made.sample(4 * S, 2, codel(overlimit=1))
    got = made.tables(tmp_path)
    assert list(zip(got["drops"]["t_ns"].tolist(), words(got["drops"]["cause"]), strict=True)) == [
        (2002 * MS, "limit"),
        (2030 * MS, "target"),
    ]


def fq_codel(overlimit: int, overmemory: int = 0) -> bytes:
    return struct.pack("=10I", 0, 1514, overlimit, 0, 5, 2, 1, 0, 4096, overmemory)


def test_fq_codel_s_counters_tell_its_causes(tmp_path: Path) -> None:
    made = Made(realised(bottleneck__qdisc="fq_codel"), ["fq_codel"])
    rows = []
    for at in (1500, 2500, 3500):
        rows += [(at, at + 1, 0), (at + 2, -1, 0), (at + 3, at + 5, 0), (at + 4, at + 4, 1)]
    made.tap(
        0, [{"t_before_ns": b * MS, "t_after_ns": a if a < 0 else a * MS, "flow": f} for b, a, f in rows]
    )
    for t, drops, own in ((0, 0, (0, 0)), (2, 1, (0, 0)), (3, 2, (1, 0)), (4, 3, (2, 1))):
        made.sample(t * S, drops, fq_codel(*own))
    got = made.tables(tmp_path)
    assert words(got["drops"]["cause"]) == ["target", "limit", "overmemory"]
    # Of its own flow the next one, not the other flow's.
    assert got["drops"]["t_ns"].tolist() == [1505 * MS, 2505 * MS, 3505 * MS]
    assert got["queue"]["flows"][got["queue"]["link"] == 0][-1] == 3


def test_head_drops_are_dated_by_the_packet_that_was_too_much(tmp_path: Path) -> None:
    made = Made(realised(bottleneck__qdisc="pfifo_head_drop limit 2"), ["pfifo_head_drop"])
    rows = [(2000, -1), (2001, 2020), (2007, 2030)]
    made.tap(0, [{"t_before_ns": b * MS, "t_after_ns": a if a < 0 else a * MS, "flow": 0} for b, a in rows])
    assert made.tables(tmp_path)["drops"]["t_ns"].tolist() == [2007 * MS]


def test_marks_are_packets_that_came_out_otherwise_than_they_went_in(tmp_path: Path) -> None:
    made = Made(realised(bottleneck__qdisc="codel ecn ce_threshold 1ms"), ["codel"])
    row = {"t_before_ns": 2000 * MS, "t_after_ns": 2003 * MS, "flow": 0, "ds_in": 2}
    made.tap(0, [{**row, "ds_out": 3}, {**row, "ds_in": 3, "ds_out": 3}, {**row, "ds_out": 2}])
    made.sample(0, 0, codel())
    made.sample(4 * S, 0, codel(ce_mark=1))
    got = made.tables(tmp_path)
    assert got["links"]["marked_packets"][0] == 1
    assert (got["drops"]["marked"].tolist(), words(got["drops"]["cause"])) == ([1], ["ce_threshold"])


def test_red_s_counters_tell_early_drops_from_those_at_the_limit(tmp_path: Path) -> None:
    run = realised(bottleneck__qdisc="red limit 400000 avpkt 1000 adaptive")
    made = Made(run, ["red"])
    rows = [(at + step, -1 if step == 1 else at + 5 + step) for at in (1500, 2500) for step in (0, 1, 2)]
    made.tap(0, [{"t_before_ns": b * MS, "t_after_ns": a if a < 0 else a * MS, "flow": 0} for b, a in rows])
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


def test_a_packet_that_left_and_never_arrived_was_lost_by_the_wire(tmp_path: Path) -> None:
    made = Made(realised(bottleneck__down={"loss": "1 %"}))
    stages = ("before", "after", "arrived")
    rows = [
        {
            "t_before_ns": t * MS,
            "t_after_ns": t * MS,
            "t_arrived_ns": -1 if t == 2001 else (t + 11) * MS,
            "flow": 0,
        }
        for t in (2000, 2001, 2002)
    ]
    made.tap(0, rows, stages)
    made.add("gauge", t_ns=0, device=0, gauge=0, value=0)
    made.add("gauge", t_ns=4 * S, device=0, gauge=0, value=4)
    got = made.tables(tmp_path)
    assert (got["drops"]["t_ns"].tolist(), words(got["drops"]["cause"])) == ([2001 * MS], ["wire"])
    assert got["flows"]["lost_packets"].tolist() == [1, 0, 0, 0]
    # The card has counted 4 in 4 s, of which 3 are measured.
    assert got["links"]["lost_packets"][0] == 3


def test_a_ring_s_sojourn_is_from_the_queue_to_the_last_bit(tmp_path: Path) -> None:
    made = Made(realised(bottleneck__down={"ring": 8, "bql": True}))
    made.index["devices"][0]["gauges"] = ["simnic/ring_packets", "simnic/ring_bytes", "simnic/bql_limit"]
    # The wire takes 10 ms.
    rows = [(2000, 2000, 2011), (2000, 2001, 2014), (2000, 2002, 2015)]
    made.tap(
        0,
        [
            {"t_before_ns": b * MS, "t_after_ns": a * MS, "t_arrived_ns": w * MS, "flow": 0}
            for b, a, w in rows
        ],
        ("before", "after", "arrived"),
    )
    for t in (2 * S, 4 * S):
        for gauge, value in ((0, 2), (1, 3028), (2, 3000 + t // S)):
            made.add("gauge", t_ns=t, device=0, gauge=gauge, value=value)
    got = made.tables(tmp_path)
    links = {name: column[0] for name, column in got["links"].items() if name.startswith(("ring", "bql"))}
    assert links["ring_sent_packets"] == 3
    # 1, 3 and 3 ms.
    assert (links["ring_sojourn_sum_ns"], links["ring_sojourn_max_ns"]) == (7 * MS, 3 * MS)
    assert links["ring_mean_packets"] == pytest.approx(7 / 3000)
    assert (links["ring_max_packets"], links["bql_limit_bytes"]) == (2, 3004)
    down = got["queue"]["link"] == 0
    assert got["queue"]["ring_bytes"][down][-1] == 3028
    assert (got["queue"]["ring_packets"][down] == -1).sum() == down.sum() - 2
    assert got["links"]["ring_sent_packets"][1] == -1


# ------------------------------------------------------------------------------------------------------------- flows


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
    got = made.tables(tmp_path)
    flow = {name: column[0] for name, column in got["flows"].items()}
    # From 1 s to 4 s.
    assert (flow["sent_packets"], flow["sent_bytes"]) == (300, 3 * 144_800 + 300 * 52)
    assert (flow["received_packets"], flow["delivered_bytes"]) == (297, 420_000)
    assert (flow["retransmits"], flow["timeouts"], flow["fast_recoveries"]) == (3, 2, -1)
    # Of the four samples since the warm-up's end.
    assert (flow["rtt_samples"], flow["rtt_sum_ns"]) == (4, 4 * 20 * MS + 10 * 1000)
    line = {name: column[got["flow"]["flow"] == 0] for name, column in got["flow"].items()}
    at = line["t_ns"].tolist().index(3 * S)
    assert (line["cwnd_bytes"][at], line["ssthresh_bytes"][at]) == (13 * 1448, 8 * 1448)
    assert (line["srtt_ns"][at], line["window_bytes"][at]) == (20_003_000, 65_536)
    assert line["ssthresh_bytes"][line["t_ns"].tolist().index(S)] == -1
    # Between samples nothing is known.
    assert line["cwnd_bytes"][at - 1] == -1


def test_datagrams_have_one_way_delays_and_probes_both(tmp_path: Path) -> None:
    made = Made(realised())
    for seq, (sent, received) in enumerate([(500, 510), (2000, 2012), (3000, -1), (3999, 4011)]):
        there = received if received < 0 else received * MS
        made.add("datagrams", flow=3, seq=seq, sent_ns=sent * MS, received_ns=there, bytes=500, frame=-1)
    for seq, (sent, turned, back) in enumerate([(1500, 1510, 1520), (2500, 2510, -1), (3995, 4005, 4015)]):
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
    assert (flows["sent_packets"], flows["received_packets"], flows["delivered_bytes"]) == (3, 1, 472)
    assert (flows["rtt_samples"], flows["rtt_sum_ns"]) == (1, 12 * MS)
    # The third ping was under way at the end.
    assert got["probe"]["rtt_ns"].tolist() == [20 * MS, -1]
    assert got["probe"]["forward_ns"].tolist() == [10 * MS, 10 * MS]
    delivered = got["flow"]["delivered_bytes"][got["flow"]["flow"] == 3]
    assert (delivered[0], delivered[-1]) == (0, 944)


def test_a_link_without_a_rate_is_told_by_its_device(tmp_path: Path) -> None:
    made = Made(realised(bottleneck__rate="unlimited"))
    for t, packets in ((0, 0), (S, 100), (4 * S, 400)):
        made.add("device", t_ns=t, device=0, sent_packets=packets, sent_bytes=packets * 1514)
    got = made.tables(tmp_path)
    links = {name: column[0] for name, column in got["links"].items()}
    assert (links["sent_packets"], links["sent_bytes"], links["arrived_packets"]) == (300, 450_000, 300)
    assert (links["sojourn_sum_ns"], links["capacity_bits"]) == (0, -1)
    assert got["sojourn"]["packets"].tolist() == [300]


# -------------------------------------------------------------------------------------------------------- the archive


def test_what_the_measurement_lost_is_said(tmp_path: Path) -> None:
    made = Made(realised())
    made.tap(0, [])
    made.taps[0]["stages"][1] |= {"lost_records": 7, "unexpected": 2}
    made.index["flows"][0] |= {"error": "Connection refused", "errors": 1}
    made.index["processor"] = {
        "start": {"user": 0, "idle": 0, "iowait": 0},
        "end": {"user": 30, "idle": 60, "iowait": 10},
    }
    archive = Archive.read(made.write(tmp_path / "a.tar"))
    said = "\n".join(doubts(archive))
    assert "lost 7 packets' records" in said
    assert "2 packets at 'after' came from nowhere" in said
    assert "Connection refused" in said
    assert busy_share(archive) == pytest.approx(0.3)


def test_what_one_tap_has_told_and_another_not_when_they_were_ended_is_no_loss(tmp_path: Path) -> None:
    for last, said in ((4500, 0), (3500, 1)):
        made = Made(realised())
        made.tap(
            0, [{"t_before_ns": t * MS, "t_after_ns": t * MS, "flow": 0} for t in (1000, last - 1, last)]
        )
        made.taps[0]["stages"][1] |= {"unexpected": 2}
        assert len(doubts(Archive.read(made.write(tmp_path / "a.tar")))) == said


def test_a_link_that_nobody_crossed_has_totals_of_nothing(tmp_path: Path) -> None:
    for qdisc, own in (("codel", codel()), ("fq_codel", fq_codel(0)), ("pfifo", b"")):
        made = Made(realised(bottleneck__qdisc=qdisc), [qdisc])
        made.tap(0, [])
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


def test_an_archive_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    whole = Made(realised()).write(tmp_path / "whole.tar").read_bytes()
    for length in (0, 600, len(whole) // 2):
        (tmp_path / "part.tar").write_bytes(whole[:length])
        with pytest.raises(GuestError, match=r"part\.tar is no whole archive"):
            Archive.read(tmp_path / "part.tar")
    with pytest.raises(GuestError, match="no whole archive"):
        Archive.read(tmp_path / "none.tar")


# ----------------------------------------------------------------------------------------------------- on this kernel


def why_not() -> str | None:
    """Why a plan can't be carried out here; None if it can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "network namespaces need root on Linux"
    try:
        made = "ip link add name t0 type veth peer name t1 && tc qdisc add dev t0 root htb default 1"
        done = subprocess.run(
            ["unshare", "-n", "sh", "-c", made], capture_output=True, text=True, check=False
        )
    except OSError as error:
        return str(error)
    return None if done.returncode == 0 else f"no namespaces with veth and htb here: {done.stderr.strip()}"


def test_a_plan_for_this_host_s_kernel_measures_what_the_simulator_does(tmp_path: Path) -> None:
    """In real time, so only what no load of the machine changes is compared: what was conserved, and what a full queue of this size is."""
    if reason := why_not():
        pytest.skip(reason)
    folders = [Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")), ROOT / "target"]
    found = [f / p / "sojourn-guest" for f in folders for p in ("release", "debug")]
    program = next((file for file in found if file.is_file()), None)
    if program is None:
        pytest.skip("no sojourn-guest here: cargo build --release -p guest")
    # No delay, which would need netem.
    text = DUMBBELL.replace('"10 ms"', '"0 s"').replace("pfifo limit 20", "bfifo limit 60000")
    run = realised(text)
    (tmp_path / "plan.json").write_text(json.dumps(plan(run, this_host()).plan))
    command = [str(program), "--plan", str(tmp_path / "plan.json"), "--out", str(tmp_path / "results.tar")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    archive = Archive.read(tmp_path / "results.tar")
    assert doubts(archive) == []
    ours, theirs = tables(run, archive), _core.run(json.dumps(run))
    assert set(ours) == set(theirs)
    for name, columns in ours.items():
        assert set(columns) == set(theirs[name])
    down = {name: column[0] for name, column in ours["links"].items()}
    # The taps and the kernel's own counter, each by itself.
    chosen = (archive.tables["qdisc"]["device"] == 0) & (archive.tables["qdisc"]["handle"] == HANDLE)
    dropped = int(archive.tables["qdisc"]["drops"][chosen][-1])
    assert int((ours["drops"]["link"] == 0).sum()) == dropped > 0
    assert 0 < down["backlog_max_bytes"] <= 60_000
    # The kernel's backlog at each sample against the taps' bytes: nothing exceeds what the taps saw at most.
    queue = ours["queue"]["backlog_bytes"][(ours["queue"]["link"] == 0) & (ours["queue"]["t_ns"] > S)]
    assert int(queue.max()) <= int(down["backlog_max_bytes"])
    # A queue of 60 kB at 10 Mbit/s is 48 ms, which both fill and neither exceeds by much.
    mean = int(down["sojourn_sum_ns"]) / int(down["sent_packets"])
    other = int(theirs["links"]["sojourn_sum_ns"][0]) / int(theirs["links"]["sent_packets"][0])
    assert mean == pytest.approx(other, rel=0.5)
    assert int(ours["flows"]["base_rtt_ns"][0]) == int(theirs["flows"]["base_rtt_ns"][0])
    goodput = [sum(int(x) for x in each["flows"]["delivered_bytes"]) for each in (ours, theirs)]
    assert goodput[0] == pytest.approx(goodput[1], rel=0.3)
