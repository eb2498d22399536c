"""Writes flent files and flent's own numbers of them. Run it with a Python that has flent 2.3.0:

    python make.py FOLDER                # the recordings of this folder
    python make.py FOLDER --every        # a file of version 4 for each of flent's tests

The values are drawn here. flent's own code makes the rest of a file: the series of a test (its test
files), columns and computed series (its aggregator and runners), and the file (its ResultSet).
Files of older versions are converted from it. `said.json` has what flent computes after it has read
the file again: its means (the summary formatter) and its loss rate (`raw_seq_loss`) of each series.
It also has a qdisc's drops, and the seconds that each stream ran from x = 0 on. Without pings x = 0
is the end of the first sample."""

import argparse
import gzip
import json
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from flent import aggregators, combiners, formatters, runners, settings, testenv
from flent.resultset import ResultSet

LENGTH_S, STEP_S = 6, 0.2
BEGAN = datetime(2019, 5, 7, 12, 46, 40, 125000)
EPOCH = 1557233200.125
ABROAD = timedelta(hours=5, minutes=30)
HOSTS = ["far.example", "b.example", "c.example", "d.example"]

RECORDED = (
    # (test, version, what is special)
    ("rrul", 4, {"state": True}),
    ("rrul", 3, {}),
    ("rrul_be", 4, {"netperf": True}),
    ("rrul", 1, {}),
    ("rrul", None, {}),
    ("tcp_nup", 2, {}),
    ("tcp_ndown", 3, {"uneven": True, "qdisc": True}),
    ("rtt_fair_var", 3, {}),
    ("tcp_2up_square", 4, {}),
    ("voip-1up", 4, {}),
    ("http-rrul", 4, {}),
    ("sctp_vs_tcp", 4, {}),
    ("udp_flood", 4, {}),
)


def options(test: str, special: dict | None = None) -> settings.Settings:
    """flent's settings for a test of a few seconds."""
    made = settings.new()
    made.NAME, made.HOST, made.HOSTS = test, HOSTS[0], HOSTS
    made.LENGTH, made.STEP_SIZE, made.TIME, made.TITLE = LENGTH_S, STEP_S, BEGAN, ""
    made.TEST_PARAMETERS = {}
    if (special or {}).get("qdisc"):
        made.TEST_PARAMETERS = {"qdisc_stats_hosts": "router", "qdisc_stats_interfaces": "eth0"}
    return made


def environment(test: str, made: settings.Settings) -> dict:
    """The environment of flent's test file; TOTAL_LENGTH is copied to the settings, as in flent."""
    made.TOTAL_LENGTH = LENGTH_S + 2 * 5
    found = testenv.TestEnvironment(made.__dict__, informational=True)
    found.execute(str(Path(testenv.TEST_PATH) / f"{test}.conf"))
    made.TOTAL_LENGTH = found.env["TOTAL_LENGTH"]
    return found.env


class Drawn:
    """Draws the raw values of a test's series."""

    def __init__(self, test: str, total_s: float, special: dict) -> None:
        self.rng = random.Random(f"{test} {sorted(special)}")
        self.total_s, self.special = total_s, special
        self.spans: dict[str, tuple[float, float]] = {}

    def stream(self, name: str, config: dict) -> tuple[list, dict]:
        """netperf's interim results, by a clock of its own. flent shows netperf's mean over time;
        versions without it show the mean of the samples. So these are evenly apart, unless
        `uneven`."""
        start = EPOCH + float(config.get("delay") or 0) + self.rng.uniform(0.02, 0.08)
        length = float(config.get("length") or LENGTH_S)
        uneven = self.special.get("uneven")
        parts = [
            self.rng.uniform(0.5, 1.5) if uneven else 1.0
            for _ in range(int(length / self.rng.uniform(0.2, 0.24)))
        ]
        raw, t, bits = [], start, 0.0
        for part in parts:
            took = round(part / sum(parts) * length, 6)
            val = round(self.rng.uniform(*((4, 16) if uneven else (9, 11))), 3)
            t, bits = t + took, bits + took * val
            raw.append({"t": round(t, 6), "val": val, "dur": took})
        self.spans[name] = (start, t)
        about = {
            "UNITS": "Mbits/s",
            "RUNNER": "NetperfDemoRunner",
            "MEAN_VALUE": bits / (t - start),
        }
        if self.special.get("netperf"):
            up = config.get("test") == "TCP_STREAM"
            sent_again = self.rng.randrange(5, 60)
            about |= {
                "TCP_RETRANSMIT": str(sent_again) if up else sent_again,
                "CONG_CONTROL": "cubic",
                "TCP_MSS": 1448,
            }
        if self.special.get("state") and "upload" in name:
            raw += [
                {
                    "t": round(start + 0.2 * i, 6),
                    "tcp_rtt": round(self.rng.uniform(40, 60), 1),
                    "tcp_cwnd": self.rng.randrange(20, 90),
                    "tcp_rtt_var": 4.5,
                    "tcp_pacing_rate": 12.5,
                    "tcp_delivery_rate": 11.5,
                }
                for i in range(int(length / 0.2))
            ]
        return raw, about

    def ping(self, *, irtt: bool = False) -> tuple[list, dict]:
        """Pings, stamped with the time of the reply. Losses are gaps; irtt reports them."""
        raw = []
        for i in range(int(self.total_s / STEP_S)):
            loaded = 5 <= i * STEP_S < 5 + LENGTH_S
            rtt = round(self.rng.uniform(60, 90) if loaded else self.rng.uniform(20, 22), 3)
            sent = EPOCH + i * STEP_S
            lost = i not in (0, int(self.total_s / STEP_S) - 1) and self.rng.random() < 0.1
            if irtt and lost:
                raw.append({"t": round(sent, 6), "seq": i, "lost": True, "lost_dir": "up"})
            elif not lost:
                raw.append({"t": round(sent + rtt / 1e3, 6), "val": rtt, "seq": i})
                if irtt:
                    raw[-1] |= {
                        "owd_up": round(rtt / 2, 3),
                        "owd_down": round(rtt / 2, 3),
                        "ipdv_up": 0.5,
                    }
        return raw, {"UNITS": "ms", "RUNNER": "IrttRunner" if irtt else "PingRunner"}

    def requests(self) -> tuple[list, dict]:
        """netperf's UDP_RR: mean times of an interval, no losses."""
        raw = [
            {"t": round(EPOCH + 0.2 * i, 6), "val": round(self.rng.uniform(20, 80), 3), "dur": 0.2}
            for i in range(1, int(self.total_s / 0.2))
        ]
        return raw, {"UNITS": "ms", "RUNNER": "NetperfDemoRunner"}

    def qdisc(self) -> tuple[list, dict]:
        sent, raw = 0, []
        for i in range(int(self.total_s / STEP_S)):
            sent += self.rng.randrange(10_000, 90_000)
            raw.append(
                {
                    "t": round(EPOCH + i * STEP_S, 6), "sent_bytes": sent, "sent_pkts": sent // 1500,
                    "backlog_bytes": self.rng.randrange(60_000), "backlog_pkts": self.rng.randrange(40),
                    "dropped": self.rng.randrange(4), "ecn_mark": self.rng.randrange(3),
                }
            )  # fmt: skip
        raw[7]["dropped"] = -5
        return raw, {"UNITS": "misc", "RUNNER": "TcRunner"}

    def plain(self, units: str) -> tuple[list, dict]:
        """Any other series of values."""
        raw = [
            {"t": round(EPOCH + i, 6), "val": round(self.rng.uniform(1, 100), 3)}
            for i in range(int(self.total_s))
        ]
        return raw, {"UNITS": units, "RUNNER": "ProcessRunner"}

    def series(self, number: int, name: str, config: dict) -> tuple[list, dict]:
        match config["runner"]:
            case "netperf_demo" if name.startswith("Ping"):
                return self.requests()
            case "netperf_demo" | "iperf_csv":
                return self.stream(name, config)
            case "ping":
                return self.ping()
            case "udp_rtt" if self.special.get("netperf") or number % 2:
                return self.requests()
            case "udp_rtt" | "voip":
                return self.ping(irtt=True)
            case "tc":
                return self.qdisc()
        return self.plain(config.get("units", ""))


COMPUTING = ("average", "smooth_average", "sum", "diff_min", "fairness")


class Aggregator(aggregators.TimeseriesAggregator):
    """flent's aggregator, with drawn values instead of programs' output."""

    def draw(self, drawn: Drawn, sets: dict) -> None:
        self.drawn = ({}, {"series": {}, "test_parameters": {}}, {})
        measured, about, raw_values = self.drawn
        for number, (name, config) in enumerate(sets.items()):
            if config["runner"] in COMPUTING:
                runner = runners.get(config["runner"])
                made = runner(
                    name=name, settings=self.settings, idx=number, start_event=None, kill_event=None, finish_event=None,
                    remote_host=None, **{key: value for key, value in config.items() if key not in ("runner", "id")},
                )  # fmt: skip
                about["series"][name] = made.metadata
                self.postprocessors.append(made.compute_result)
                continue
            if config["runner"] in ("null", "silent_process"):
                continue
            raw, about["series"][name] = drawn.series(number, name, config)
            raw_values[name] = raw
            values = [[point["t"], point["val"]] for point in raw if "val" in point]
            if values:
                measured[name] = values
            for key in ("tcp_rtt", "tcp_cwnd", "tcp_rtt_var", "tcp_pacing_rate", "dropped"):
                samples = [[point["t"], point[key]] for point in raw if key in point]
                if samples:
                    measured[f"{name}::{key}"] = samples

    def collect(self) -> tuple:
        return self.drawn


def made(test: str, special: dict) -> tuple[dict, dict[str, float]]:
    """A file's content in version 4, and the seconds that each stream ran from x = 0 on."""
    how = options(test, special)
    env = environment(test, how)
    drawn = Drawn(test, how.TOTAL_LENGTH, special)
    aggregator = Aggregator(how)
    aggregator.draw(drawn, env["DATA_SETS"])
    result = ResultSet(
        NAME=test, HOST=HOSTS[0], HOSTS=HOSTS, TIME=BEGAN, LOCAL_HOST="near", TITLE="", LENGTH=LENGTH_S,
        TOTAL_LENGTH=how.TOTAL_LENGTH, STEP_SIZE=STEP_S, TEST_PARAMETERS={}, FLENT_VERSION="2.3.0", NOTE="",
        IP_VERSION=4, DATA_FILENAME=test,
    )  # fmt: skip
    result = aggregator.postprocess(aggregator.aggregate(result))
    t0 = result.meta("T0").replace(tzinfo=UTC).timestamp()
    seconds = {name: end - max(start, t0) for name, (start, end) in drawn.spans.items()}
    return json.loads(result.dumps()), seconds


def older(content: dict, version: int | None) -> dict:
    """The content in an older version."""
    if version == 4:
        return content
    meta = content["metadata"]
    meta["FLENT_VERSION"] = "0.9.0"
    for name, points in content["raw_values"].items():
        counts = {"dropped": 1000, "ecn_mark": 2000}
        for point in points:
            if "UDP" in name and "dur" in point:
                point["val"] = round(1000 / point["val"], 6)
            for key in counts.keys() & point.keys():
                counts[key] += point[key]
                point[key] = counts[key]
    if version == 3:
        return content | {"version": 3}
    meta["TIME"] = (BEGAN + ABROAD).isoformat()
    meta["T0"] = (datetime.fromisoformat(meta["T0"].rstrip("Z")) + ABROAD).isoformat()
    if version == 2:
        return content | {"version": 2}
    meta["NETPERF_WRAPPER_VERSION"] = meta.pop("FLENT_VERSION")
    raw = content.pop("raw_values")
    if version == 1:
        about = {name: {"RAW_VALUES": points} for name, points in raw.items() if points}
        return content | {"version": 1, "metadata": meta | {"SERIES_META": about}}
    del content["version"], meta["T0"]
    return content | {
        "metadata": {key: value for key, value in meta.items() if key != "SERIES_META"}
    }


def said(file: Path) -> dict:
    """flent's summary of a file."""
    how = settings.new()
    how.OUTPUT, how.DATA_SETS = "-", {}
    result = ResultSet.load_file(str(file))
    summary = formatters.SummaryFormatter(how)
    summary.make_combines(result, ["mean"])
    loss = combiners.get_reducer("raw_seq_loss", None, [])
    lost = {
        name: loss.reduce(result, {"data": name}) for name in result.series_names if "Ping" in name
    }
    return {
        "means": {name: summary.get_res(name, "mean") for name in result.series_names},
        "loss": {name: rate for name, rate in lost.items() if rate is not None},
        "dropped": [point["dropped"] for point in result.raw_values.get("qdisc_stats_router", [])],
    }


def write(folder: Path, cases: list) -> None:
    """Writes the files and `said.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for test, version, special in cases:
        content, seconds = made(test, special)
        name = f"{test}-{version or 'none'}.flent.gz"
        text = json.dumps(older(content, version), sort_keys=True)
        (folder / name).write_bytes(gzip.compress(text.encode(), mtime=0))
        found[name] = said(folder / name) | {"seconds": seconds}
    text = json.dumps(found, indent=1, sort_keys=True)
    (folder / "said.json").write_text(f"{text}\n")


def every() -> list:
    """All of flent's tests with a time axis."""
    tests = sorted(path.stem for path in Path(testenv.TEST_PATH).glob("*.conf"))
    return [
        (test, 4, {})
        for test in tests
        if environment(test, options(test)).get("AGGREGATOR") != "iteration"
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", action="store_true")
    arguments = parser.parse_args()
    write(arguments.folder, every() if arguments.every else list(RECORDED))
    sys.exit(0)
