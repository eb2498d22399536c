"""`sojourn run --watch`: draws a scenario's queues and congestion windows on the terminal while its
first seed is simulated, slowly enough to follow."""

from __future__ import annotations

import math
import shutil
import time
from typing import TYPE_CHECKING

import click

from sojourn.cli import bars, text

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

    from sojourn.meta import Meta
    from sojourn.scenario import Scenario

TAKES_S = 15.0
"""The default duration of the drawing."""
LOOKS_PER_COLUMN = 4
MOST_QUEUES, MOST_FLOWS = 3, 4
HEIGHTS = ((6, 2), (4, 1), (2, 1))
"""Lines of a queue's chart and of a window's. The first pair that fits the terminal is used."""
FRAMES_PER_S = 15
MOST_WIDTH = 120


def check(scenarios: list[Scenario], engine: str) -> None:
    """Refuses scenarios and outputs that can't be drawn."""
    if not bars.drawable():
        raise click.UsageError(
            "--watch draws on a terminal that shows block characters, and the output is not one: leave it out"
        )
    if engine != "sim":
        raise click.UsageError(f"--watch needs the simulator: leave out --watch or -e {engine}")
    for scenario in scenarios:
        if scenario.sweep:
            first = next(iter(scenario.sweep))
            why = f"--watch shows one variant, and {scenario.title!r} has several"
            raise click.UsageError(f"{why}: choose one, like --vary {first}=VALUE")


def watch(scenario: Scenario, seed: int, takes_s: float | None) -> None:
    """Draws a run of this seed in `takes_s` seconds, or longer if the simulation takes longer."""
    from rich.console import Console
    from rich.live import Live

    from sojourn.engine.request import meta_of
    from sojourn.engine.sim import Simulator

    realised = scenario.realise(seed)
    engine = Simulator()
    engine.check(realised)
    room = shutil.get_terminal_size()
    width = min(room.columns, MOST_WIDTH) - 2
    view = _View(meta_of(engine, scenario, [seed], realised), width, room.lines)
    whole_ns = scenario.duration
    takes_s = TAKES_S if takes_s is None else takes_s
    began = time.monotonic()

    def look(now: int, packets: list[int], sizes: list[int], cwnds: list[int | None]) -> None:
        view.see(now, packets, sizes, cwnds)
        if (left := takes_s * now / whole_ns - (time.monotonic() - began)) > 0:
            time.sleep(left)

    console = Console()
    with Live(
        console=console, get_renderable=view.drawn, refresh_per_second=FRAMES_PER_S, transient=False
    ):
        engine.watch(realised, max(whole_ns // (width * LOOKS_PER_COLUMN), 1), look)


class _Line:
    """The greatest value in each column of time so far."""

    def __init__(self, width: int) -> None:
        self.columns = [math.nan] * width
        self.latest = 0
        self.top = 0

    def see(self, column: int, value: int) -> None:
        self.latest, self.top = value, max(self.top, value)
        before = self.columns[column]
        self.columns[column] = value if math.isnan(before) else max(before, value)


class _View:
    """The picture on the screen."""

    def __init__(self, meta: Meta, width: int, lines: int) -> None:
        queueing = [i for i, link in enumerate(meta.links) if link.sampled and link.rate_bps]
        windows = [i for i, flow in enumerate(meta.flows) if flow.congestion is not None]
        self.queues = {i: _Line(width) for i in queueing[:MOST_QUEUES]}
        self.cwnds = {i: _Line(width) for i in windows[:MOST_FLOWS]}
        self.left_out = [
            f"{count} more {what}"
            for what, count in (
                ("queues", len(queueing) - MOST_QUEUES),
                ("flows", len(windows) - MOST_FLOWS),
            )
            if count > 0
        ]
        self.heights = next((high for high in HEIGHTS if self._lines(*high) < lines), HEIGHTS[-1])
        self.width, self.now_ns, self.whole_ns = width, 0, meta.duration_ns
        self.title = f"{meta.title}, seed {meta.seeds_asked[0]}"
        self.links = {i: meta.links[i] for i in self.queues}
        self.flows = {i: meta.flows[i] for i in self.cwnds}
        self.packets: dict[int, int] = dict.fromkeys(self.queues, 0)

    def _lines(self, queue: int, cwnd: int) -> int:
        """Lines of the whole picture: a heading for each chart, and title, axis and time."""
        return (1 + queue) * len(self.queues) + (1 + cwnd) * len(self.cwnds) + 3

    def see(self, now: int, packets: list[int], sizes: list[int], cwnds: list[int | None]) -> None:
        column = min(now * self.width // self.whole_ns, self.width - 1)
        self.now_ns = now
        for i, line in self.queues.items():
            line.see(column, sizes[i])
            self.packets[i] = packets[i]
        for i, line in self.cwnds.items():
            line.see(column, cwnds[i] or 0)

    def drawn(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        lines = [Text(self.title, "bold", overflow="ellipsis", no_wrap=True)]
        for i, line in self.queues.items():
            link = self.links[i]
            heading = f"{link.name}, {link.qdisc}: {self.packets[i]} packets, {_kb(line.latest)} wait; most {_kb(line.top)}"
            lines += self._part(heading, line, self.heights[0], "cyan")
        for i, line in self.cwnds.items():
            flow = self.flows[i]
            heading = (
                f"{flow.name}, {flow.congestion}: cwnd {_kb(line.latest)}; most {_kb(line.top)}"
            )
            lines += self._part(heading, line, self.heights[1], "green")
        shown = f"{self.now_ns / 1e9:.1f} of {self.whole_ns / 1e9:g} s"
        done = min(self.now_ns * self.width // self.whole_ns, self.width - 1)
        axis = "─" * done + "┴" + "─" * (self.width - done - 1)
        lines += [Text(axis, "dim"), Text("; ".join([shown, *self.left_out]))]
        return Group(*lines)

    def _part(self, heading: str, line: _Line, height: int, colour: str) -> list[Text]:
        from rich.text import Text

        drawn = bars.chart(line.columns, line.top, height)
        title = Text(heading, overflow="ellipsis", no_wrap=True)
        return [title, *(Text(each, colour, no_wrap=True) for each in drawn)]


def _kb(size: int) -> str:
    return f"{text.number(size / 1000)} kB"
