"""`sojourn tune` on a line of known rate and queue: its result, and that it restores the
interface."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import shapes
from live_network import SERVER, Bottleneck, LiveNetwork, network, wait_until

from sojourn.records import Run

UP = Bottleneck(6_000_000, 150_000)
"""Up to 200 ms of queue."""
TUNE = ("tune", "eth0", SERVER, "--up", "--qdisc", "bfifo", "--cc", "reno", "--length", "3 s")
PATIENCE_S = 300.0


@pytest.fixture(scope="module")
def net() -> Iterator[LiveNetwork]:
    with (
        network(up=UP) as found,
        found.start("server", sys.executable, "-m", "sojourn", "serve", "--bind", SERVER),
    ):
        wait_until("it serves", lambda: "LISTEN" in found.run("server", "ss", "-tln").stdout)
        yield found


def sojourn(net: LiveNetwork, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return net.run(
        "client", sys.executable, "-m", "sojourn", *words, check=check, timeout=PATIENCE_S
    )


def shown(net: LiveNetwork) -> str:
    said = (
        net.tc("client", "-d qdisc show dev eth0") + net.run("client", "ip", "-br", "link").stdout
    )
    return re.sub(r"refcnt \d+ ?|direct_packets_stat \d+", "", said)


@pytest.mark.long
def test_tune_finds_the_rate_above_which_the_queue_is_at_the_line(
    net: LiveNetwork, tmp_path: Path
) -> None:
    before = shown(net)
    rates = ["--rate", "5mbit", "--rate", "9mbit"]
    done = sojourn(
        net,
        *TUNE,
        *rates,
        "--repeats",
        "1",
        "--target-p95",
        "60ms",
        "--json",
        "-o",
        str(tmp_path / "out"),
    )
    assert shown(net) == before
    whole = json.loads(done.stdout)
    shapes.check("tune", whole)
    (found,) = whole["results"]
    # At 5 Mbit/s the shaper has a queue of 20 ms. At 9 Mbit/s it never acts, and the line's own
    # queue fills.
    slow, fast = found["measured"]
    assert slow["added_p95_ms"] < 60 < fast["added_p95_ms"]
    assert found["chosen_bps"] == found["foretold_bps"] == 5_000_000
    assert found["line"]["bps"] == pytest.approx(UP.bps, rel=0.1)
    assert found["line"]["buffer_bytes"] == pytest.approx(UP.limit_bytes, rel=0.25)
    # The prediction of the line without a shaper equals its measurement.
    assert found["no_shaper"]["predicted"]["added_p95_ms"] == pytest.approx(
        UP.longest_wait_ms, rel=0.2
    )
    assert (tmp_path / "out" / "tune-up.svg").stat().st_size > 1000
    assert {run.meta.label for run in map(Run.open, (tmp_path / "out").glob("up-*"))} == {
        "up, no shaper",
        "up, 5mbit",
        "up, 9mbit",
    }


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_if_tune_is_stopped_the_interface_is_restored(
    net: LiveNetwork, tmp_path: Path, sent: signal.Signals
) -> None:
    before = shown(net)
    words = (*TUNE, "--rate", "5mbit", "--repeats", "3", "-o", str(tmp_path / "out"))
    with net.start("client", sys.executable, "-m", "sojourn", *words) as tuning:
        wait_until("a rate is tried", lambda: "htb" in shown(net), PATIENCE_S)
        tuning.send_signal(sent)
        _, err = tuning.communicate(timeout=PATIENCE_S)
    assert tuning.returncode == (130 if sent == signal.SIGINT else -signal.SIGKILL)
    assert "Traceback" not in err
    wait_until("what was there comes back", lambda: shown(net) == before)
    assert Run.open(tmp_path / "out" / "up-no-shaper").seeds == [1] or Run.open(
        tmp_path / "out" / "up-no-shaper"
    ).seeds == (1,)


def test_a_missing_server_is_reported_and_nothing_is_shaped(
    net: LiveNetwork, tmp_path: Path
) -> None:
    before = shown(net)
    words = ("tune", "eth0", "10.77.2.1", "--up", "--qdisc", "bfifo", "-o", str(tmp_path / "out"))
    done = sojourn(net, *words, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-2].startswith("error: ")
    assert shown(net) == before


def test_input_that_would_be_refused_at_the_end_is_refused_at_the_start(
    net: LiveNetwork, tmp_path: Path
) -> None:
    out = ["-o", str(tmp_path / "out")]
    for words, said in (
        (["tune", "nothere", SERVER], "no interface 'nothere'"),
        (["tune", "eth0", SERVER, "--qdisc", "adt"], "a shaper can't use adt"),
        (["tune", "eth0", SERVER, "--target-p95", "fast"], "fast"),
        (["tune", "eth0", SERVER, "--rate", "5mbit"], "--rate is for one direction"),
    ):
        done = sojourn(net, *words, *out, check=False)
        assert done.returncode == 2, words
        assert said in done.stderr
        assert not (tmp_path / "out").exists()
