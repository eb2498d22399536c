"""A peer that probes during another host's measurement, and the place of the queue: through a
network with known queues, and over loopback for errors."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live_network import SERVER, LiveNetwork, live_network
from test_live_page import line, payload
from test_live_session import plan, served, serving

from sojourn import report
from sojourn.errors import UserError
from sojourn.records import Run
from sojourn.records.measurement import MeasurementSettings
from sojourn_live.measure import measurement, peers

__all__ = ["live_network"]
SOJOURN = (sys.executable, "-m", "sojourn")


def measured(port: int, folder: Path, *spans: tuple[str, float], **more: Any) -> Run:
    outcome = measurement.measure(plan(port, *spans, **more), MeasurementSettings(out=folder))
    assert outcome.run is not None
    return outcome.run


@pytest.mark.long
def test_a_shared_queue_is_distinguished_from_one_of_our_own(
    live_network: LiveNetwork, tmp_path: Path
) -> None:
    # The peer is at the router. Our download waits before our own wire, which the peer does not
    # use. Our upload waits behind the router, where the peer's probes pass, too.
    usual = ("--ping", "udp", "--interval", "20ms", "--iface", "none", "-q")
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    peer = (
        *SOJOURN,
        "measure",
        SERVER,
        "--phase",
        "idle",
        "--idle",
        "20s",
        *usual,
        "-o",
        str(theirs),
    )
    here = (*SOJOURN, "measure", SERVER, "--idle", "2s", "-l", "5s", "--cc", "cubic", *usual)
    with served(live_network), live_network.start("router", *peer) as watching:
        phases = [word for kind in ("idle", "download", "upload") for word in ("--phase", kind)]
        live_network.run("client", *here, *phases, "-o", str(ours))
        assert watching.wait(60) == 0
    view = peers.find(Run.open(ours), Run.open(theirs))
    download, upload = view.phases
    assert (download.phase, download.whose) == ("download", "own")
    assert (upload.phase, upload.whose) == ("upload", "shared")
    assert download.our_rise_ms > 40
    assert download.peer_rise_ms < 0.2 * download.our_rise_ms
    assert upload.peer_rise_ms == pytest.approx(upload.our_rise_ms, rel=0.2)
    assert min(download.peer_probes, upload.peer_probes) > 150
    printed = subprocess.run(
        [*SOJOURN, "peer", str(ours), str(theirs)], capture_output=True, text=True, check=True
    ).stdout
    assert "in our own part" in printed
    assert "on the shared path" in printed
    plain = subprocess.run(
        [*SOJOURN, "peer", str(ours), str(theirs), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert [one["whose"] for one in json.loads(plain.stdout)["phases"]] == ["own", "shared"]
    page = report.render([Run.open(ours), Run.open(theirs)])
    assert "the queue is on the shared path" in page
    assert "Our load as seen by theirs" in page
    # A peer is not compared as another state of our line.
    assert "From ours to theirs" not in page
    # The peer's pings are shown on our time axis: their RTTs rise when our upload begins, not when
    # our download does.
    shown = payload(page)
    spans = {one["name"]: (one["start"], one["end"]) for one in shown["phases"]}
    (seen,) = [view for view in shown["views"] if view["run"] == 1]
    t, rtt = line(shown, seen["lines"]["ping"])
    begin, end = spans["upload"]
    rises = t[rtt > np.nanmedian(rtt[t < spans["download"][1]]) + download.our_rise_ms / 2]
    assert begin < rises.min() < begin + 1
    assert rises.max() < end + 1


def test_without_a_queue_none_is_located(tmp_path: Path) -> None:
    with serving() as port, ThreadPoolExecutor() as pool:
        watching = pool.submit(measured, port, tmp_path / "theirs", ("idle", 3))
        time.sleep(0.3)
        ours = measured(port, tmp_path / "ours", ("idle", 0.8), ("download", 0.8))
        theirs = watching.result()
        later = measured(port, tmp_path / "later", ("idle", 0.5))
    view = peers.find(ours, theirs)
    (download,) = view.phases
    assert (download.whose, view.target, view.peer_target) == ("none", "server udp", "server udp")
    # Probes are 20 ms apart, for 0.8 s.
    assert 25 < download.peer_probes < 45
    assert "no queue to locate" in peers.sentences(view)[0]
    # Both clocks are this host's: the distance of the starts is the time that passed.
    apart = (ours.meta.facts["1"]["zero_ns"] - theirs.meta.facts["1"]["zero_ns"]) / 1e9
    time_ = peers.our_time(ours, theirs)
    assert time_.of(np.array([apart]))[0] == pytest.approx(0, abs=0.02)
    assert time_.rate == pytest.approx(1, abs=1e-3)
    # A measurement that ran at another time is not a peer's, so it is compared like any other.
    assert set(peers.watching([ours, theirs, later, ours])) == {1}
    assert peers.watching([theirs, ours]) == {}
    with pytest.raises(UserError, match="in our idle phases"):
        peers.find(later, theirs)


def test_measurements_of_two_servers_are_refused(tmp_path: Path) -> None:
    with serving() as port:
        one = measured(port, tmp_path / "one", ("idle", 0.5))
    facts = one.meta.facts["1"]
    assert "clock" in facts
    moved = {
        **facts,
        "clock": {**facts["clock"], "offset_ns": facts["clock"]["offset_ns"] + 10**13},
    }
    other = Run.open(tmp_path / "one")
    other.meta = dataclasses.replace(other.meta, facts={"1": moved})
    with pytest.raises(UserError, match="same server"):
        peers.find(one, other)
