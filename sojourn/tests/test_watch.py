"""`sojourn run --watch` and the sparklines of `run`: they are drawn on a terminal, and nowhere
else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sojourn import _core, engine, scenario
from sojourn.cli import bars
from sojourn.engine.sim import Simulator

LINE = """\
title    = "line"
duration = "3 s"

[bottleneck]
rate  = "10 Mbit/s"
delay = "10 ms"
qdisc = "pfifo limit 100"

[[flow]]
name = "bulk"
kind = "bulk"
"""


def seen(command: list[str], folder: Path, **more: str) -> tuple[int, str]:
    """Returns the exit status, and the output on a terminal of 100 columns."""
    ours, theirs = os.openpty()
    env = {
        **os.environ,
        "TERM": "xterm",
        "COLUMNS": "100",
        "LINES": "40",
        "PYTHONUTF8": "1",
        **more,
    }
    program = subprocess.Popen(
        [sys.executable, "-m", "sojourn", *command],
        cwd=folder,
        stdout=theirs,
        stderr=theirs,
        env=env,
    )
    os.close(theirs)
    got = b""
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        # Linux returns EIO after the other side is closed.
        try:
            while more_bytes := terminal.read(65_536):
                got += more_bytes
        except OSError:
            pass
    return program.wait(), re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", got.decode())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "line.toml").write_text(LINE)
    return tmp_path


def test_the_watched_values_equal_the_tables(tmp_path: Path) -> None:
    line = scenario.loads(LINE)
    run = engine.run(line, seeds=1, out=tmp_path / "out")
    samples = run.table("queue").filter(run.table("queue")["link"].cast(str) == "down")
    held = dict(samples.select("t_ns", "backlog_bytes").iter_rows())
    down = [link.name for link in run.meta.links].index("down")
    glimpses: list[tuple[int, int, int, int | None]] = []
    Simulator().watch(
        line.realise(run.seeds[0]),
        1_000_000,
        lambda now, packets, sizes, cwnds: glimpses.append(
            (now, packets[down], sizes[down], cwnds[0])
        ),
    )
    times = [now for now, *_ in glimpses]
    assert times == sorted(times)
    assert times[-1] == 3_000_000_000
    # The engine advances by windows as long as a link's delay.
    assert len(times) >= 300
    # At the end, the last glimpse equals the last sample.
    assert glimpses[-1][2] == held[times[-1]]
    near = {now: size for now, _, size, _ in glimpses}
    for at, size in held.items():
        closest = min(near, key=lambda now, at=at: abs(now - at))
        # In 10 ms 12 500 bytes leave, and slow start sends twice as many.
        assert abs(near[closest] - size) <= 15_000
    assert max(window or 0 for *_, window in glimpses) > 100_000


def test_an_error_of_the_watcher_ends_the_run() -> None:
    def look(*_: object) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        _core.watch(scenario.loads(LINE).realise(1), 1_000_000, look)


def test_watching_draws_and_then_runs(folder: Path) -> None:
    code, screen = seen(["run", "line.toml", "--watch", "--takes", "1", "-q"], folder)
    assert code == 0, screen
    assert "line, seed 1" in screen
    assert re.search(r"down, pfifo limit 100: \d+ packets, [\d.]+ kB wait; most 1\d\d kB", screen)
    assert re.search(r"bulk, cubic: cwnd [\d.]+ kB", screen)
    assert "3.0 of 3 s" in screen
    # A full queue fills the top line.
    assert "█" in screen
    assert (folder / "runs" / "line" / "meta.json").is_file()


def test_a_terminal_shows_the_delay_over_time(folder: Path) -> None:
    code, screen = seen(["run", "line.toml", "-q"], folder, COLUMNS="200")
    assert code == 0, screen
    assert "mean, over time" in screen
    drawn = re.findall(f"[{bars.EIGHTHS}]{{16}}", screen)
    # Only one of the two directions has a full bar, because ACKs do not wait.
    assert sorted("█" in each for each in drawn) == [False, True]
    piped = subprocess.run(
        [sys.executable, "-m", "sojourn", "run", "line.toml", "-q"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not re.search(f"[{bars.EIGHTHS}]|over time", piped.stdout)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--watch", "-e", "kernel"], "--watch needs the simulator"),
        (["--watch", "--vary", "bottleneck.rate=5mbit,10mbit"], "--watch shows one variant"),
        (["--takes", "3"], "add --watch"),
    ],
)
def test_a_scenario_that_can_not_be_watched_is_refused(
    folder: Path, options: list[str], said: str
) -> None:
    code, screen = seen(["run", "line.toml", *options], folder)
    assert code == 2
    assert said in " ".join(screen.split())


def test_without_a_terminal_watch_draws_nothing(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sojourn", "run", "line.toml", "--watch"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "draws on a terminal" in done.stderr


def test_bars_are_scaled_to_the_greatest_value() -> None:
    assert bars.sparkline([0, 1, 2, float("nan"), 8]) == "▁▂▃ █"
    assert bars.sparkline([]) == ""
    assert bars.sparkline([0, 0]) == "▁▁"
    assert bars.chart([0, 1, 8, 9, 16], 16, 2) == ["   ▁█", " ▁███"]
