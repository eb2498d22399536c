"""`sojourn monitor`: probes a line for days, stores the probes in a database, and shows them."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from sojourn.cli import bars, options, text, work
from sojourn.errors import UserError
from sojourn_live.cli import line_options

RttColumn = Literal["min", "p10", "median", "mean", "p90", "p99", "max"]

if TYPE_CHECKING:
    from rich.table import Table

    from sojourn_live.monitor.prober import Monitor, Watched
    from sojourn_live.outputs import MonitoredTarget

STEP_S = 0.5
"""Time between two commits: kill -9 loses at most this much."""
LEAST_INTERVAL_MS = 10
NOBODY_ANSWERED = 1
"""Exit status if no target ever answered."""
BARS_WIDE = 30


@click.command()
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option(
    "--interval",
    default="100 ms",
    show_default=True,
    metavar="TIME",
    help="Time between two probes of a target; at least 10 ms.",
)
@click.option(
    "--timeout",
    default="2 s",
    show_default=True,
    metavar="TIME",
    help="A probe without a reply after this time is lost.",
)
@click.option(
    "--db",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("monitor.db"),
    show_default=True,
    metavar="FILE",
    help="The database. An existing one is continued.",
)
@click.option(
    "--iface",
    metavar="IF",
    help="Record this interface's traffic. [default: the interface of the route to the first TARGET]",
)
@click.option(
    "--for", "length", metavar="TIME", help="Stop after this time. [default: run until Ctrl-C]"
)
@click.option(
    "--keep",
    default="24 h",
    show_default=True,
    metavar="TIME",
    help="How long single probes are kept. Roll-ups of seconds, 10 s, minutes and hours are kept longer.",
)
@click.option(
    "--page",
    is_flag=False,
    flag_value=0,
    type=click.IntRange(0, 65535),
    metavar="[PORT]",
    help="Serve a live page to browsers on this machine, by default at a free PORT. Write it after the targets.",
)
@line_options.BESIDE
@options.block(options.TalkOptions)
def monitor(
    targets: Sequence[str],
    interval: str,
    timeout: str,
    path: Path,
    iface: str | None,
    length: str | None,
    keep: str,
    page: int | None,
    runs: Sequence[Path],
    talk: options.TalkOptions,
) -> int:
    """Probe hosts ten times a second, for days, into a database.

    A TARGET is a host's name or address, which gets ICMP echo requests, or udp:HOST:PORT, a UDP
    echo server (RFC 862). Several targets (the home router, the provider's first router, a server)
    show where delay and loss arise. Single probes are kept for a day, roll-ups of a second for 3
    days, of 10 s for 7, of a minute for 90, of an hour for ever. Exit status 1: no target ever
    answered.

    \b
    sojourn monitor 192.168.1.1 example.net --page
    sojourn graph monitor.db --last 1h -o graph.png
    """
    from sojourn_live.monitor import prober as live
    from sojourn_live.monitor.store import Keep, Store

    if runs and page is None:
        raise click.UsageError("--beside is for the page: add --page after the targets")
    ns = _duration("--interval", interval, "100 ms", (LEAST_INTERVAL_MS * 10**6, 3600 * 10**9))
    timeout_ns = _duration("--timeout", timeout, "2 s", (10**6, 60 * 10**9))
    seconds = (
        None if length is None else _duration("--for", length, "10 min", (10**6, 10**18)) / 1e9
    )
    keep_s = _duration("--keep", keep, "24 h", (60 * 10**9, 10**18)) // 10**9
    names = list(dict.fromkeys(targets))
    aims = [live.aim(name) for name in names]

    with contextlib.ExitStack() as stack:
        ended = stack.enter_context(_stop_signal())
        store = stack.enter_context(Store.open(path, Keep(probes_s=keep_s)))
        monitor = live.Monitor(store, aims, interval_ns=ns, timeout_ns=timeout_ns, interface=iface)
        stack.callback(monitor.close)
        if page is not None:
            url = stack.enter_context(_served(path, page, runs))
            work.say(f"live at {url}")
        work.say(
            f"writing to {path}"
            + (f"; traffic of {monitor.interface}" if monitor.interface else ""),
            talk.quiet,
        )
        show = stack.enter_context(_display(talk.quiet))
        began = time.monotonic()
        while not ended.is_set() and (seconds is None or time.monotonic() - began < seconds):
            # Steps run just after each half second, so that the traffic of a second is read just
            # after it ends.
            wait = STEP_S - time.time() % STEP_S + 0.01
            if seconds is not None:
                wait = min(wait, max(began + seconds - time.monotonic(), 0))
            ended.wait(wait)
            monitor.step()
            show(monitor)
    watched, missed = monitor.watched, monitor.missed
    if talk.as_json:
        output = {"targets": [_target(target) for target in watched], "not_sent": missed}
        work.show(text.as_json(output, "monitor"))
    else:
        work.show(_table(watched, missed))
    # Without --for, Ctrl-C is the normal end of a monitor.
    if ended.is_set() and seconds is not None:
        raise click.exceptions.Exit(130)
    if any(each.sent for each in watched) and all(each.lost == each.sent for each in watched):
        work.say("no target ever answered")
        return NOBODY_ANSWERED
    return 0


def _duration(option: str, written: str, example: str, bounds: tuple[int, int]) -> int:
    from sojourn import units

    least, most = bounds
    try:
        ns = units.parse_duration(written, example=example, zero=False, most=most, days=True)
    except units.UnitError as error:
        error.place = option
        raise
    if ns < least:
        raise UserError(
            f"{option}: {written!r} is too short", f"the minimum is {units.format_duration(least)}"
        )
    return ns


@contextlib.contextmanager
def _stop_signal() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set. They interrupt nothing, so a commit under way is
    finished."""
    ended = threading.Event()
    former = {
        number: signal.signal(number, lambda *_: ended.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield ended
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _served(path: Path, port: int, runs: Sequence[Path]) -> Iterator[str]:
    from sojourn_live.monitor import beside, page

    with contextlib.ExitStack() as stack:
        other = stack.enter_context(beside.database(runs)) if runs else None
        yield stack.enter_context(page.serve(path, port, beside=other))


# ---------------------------------------------------------------------------------------- showing


@contextlib.contextmanager
def _display(quiet: bool) -> Iterator[Callable[[Monitor], None]]:
    """A function to call after each step. On a terminal it refreshes a line per target; elsewhere
    it prints a line per target every `work.PLAIN_EVERY_S`."""
    if quiet:
        yield lambda _: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.live import Live

        with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
            yield lambda monitor: live.update(_lines(monitor), refresh=True)
    else:
        yield _plain()


def _plain() -> Callable[[Monitor], None]:
    printed = time.monotonic()

    def show(monitor: Monitor) -> None:
        nonlocal printed
        now = time.monotonic()
        if now - printed < work.PLAIN_EVERY_S:
            return
        printed = now
        for watched in monitor.watched:
            lately = _lately(watched)
            work.say(
                f"{watched.aim.name}: last minute {_ms(lately['p50'])} median, {_ms(lately['p90'])} p90, "
                f"{_ms(lately['max'])} max, {_percent(lately['lost'], lately['sent'])} lost"
                + (f" ({watched.why})" if lately["lost"] else "")
            )

    return show


def _lines(monitor: Monitor) -> Table:
    from rich.table import Table

    table = Table(
        box=None, pad_edge=False, caption="ms; of the last minute", caption_justify="left"
    )
    table.add_column("target")
    for name in ("now", "min", "median", "p90", "max", "lost", "since start", "lost"):
        table.add_column(name, justify="right")
    table.add_column("last 30 s")
    for watched in monitor.watched:
        lately = _lately(watched)
        lost = _percent(lately["lost"], lately["sent"])
        table.add_row(
            _name(watched),
            _number(lately["now"]) if lately["sent"] else "…",
            *(_number(lately[name]) for name in ("min", "p50", "p90", "max")),
            f"[red]{lost}[/]" if lately["lost"] else lost,
            str(watched.sent),
            _percent(watched.lost, watched.sent),
            _bars(watched)
            + (f" [red]{watched.why}[/]" if lately["now"] is None and lately["sent"] else ""),
        )
    return table


def _name(watched: Watched, most: int = 40) -> str:
    """A target's name with rich's markup escaped, at most `most` characters long."""
    from rich.markup import escape

    name = watched.aim.name
    return escape(name if len(name) <= most else name[: most - 1] + "…")


def _lately(watched: Watched) -> dict[str, Any]:
    """The last minute: counts, and RTTs in ms (None: no reply)."""
    import numpy as np

    rtt = np.array([rtt for _, rtt in watched.lately], dtype=np.int64)
    back = rtt[rtt >= 0] / 1e6
    values = np.quantile(back, (0, 0.5, 0.9, 1)).tolist() if back.size else [None] * 4
    latest = max(watched.lately, default=None)
    return {
        "sent": int(rtt.size),
        "lost": int(rtt.size - back.size),
        "now": None if latest is None or latest[1] < 0 else latest[1] / 1e6,
        **dict(zip(("min", "p50", "p90", "max"), values, strict=True)),
    }


def _bars(watched: Watched) -> str:
    """The greatest RTT of each of the last 30 s, as bars of one scale; x: no reply."""
    if not watched.lately:
        return ""
    end = max(watched.lately)[0]
    most: dict[int, int] = {}
    for sent, rtt in watched.lately:
        second = (end - sent) // 10**9
        most[second] = max(most.get(second, -1), rtt)
    top = max(max(most.values()), 1)
    shown = (most.get(second) for second in reversed(range(BARS_WIDE)))
    return "".join(
        " " if value is None else "[red]x[/]" if value < 0 else bars.eighth(value, top)
        for value in shown
    )


def _number(value: float | None) -> str:
    return "-" if value is None else text.number(value)


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{text.number(value)} ms"


def _percent(count: int, of: int) -> str:
    return f"{text.number(100 * count / of)} %" if of else "-"


COLUMNS: tuple[RttColumn, ...] = ("min", "p10", "median", "mean", "p90", "p99", "max")
LEVELS = (0.1, 0.5, 0.9, 0.99)


def _target(watched: Watched) -> MonitoredTarget:
    """A target's entry under --json."""
    back, rtt = watched.sent - watched.lost, watched.rtt
    p10, median, p90, p99 = (rtt.quantiles(LEVELS) / 1e6).tolist() if back else [None] * 4
    return {
        "name": watched.aim.name,
        "address": watched.aim.address,
        "sent": watched.sent,
        "received": back,
        "loss_rate": watched.lost / watched.sent if watched.sent else None,
        "last_loss": watched.why or None,
        "rtt_ms": {
            "min": rtt.least / 1e6 if back else None,
            "p10": p10,
            "median": median,
            "mean": watched.sum_ns / back / 1e6 if back else None,
            "p90": p90,
            "p99": p99,
            "max": rtt.greatest / 1e6 if back else None,
        },
    }


def _table(watched: Sequence[Watched], missed: int) -> str:
    rows = []
    for target in watched:
        rtt = _target(target)["rtt_ms"]
        cells = [_number(rtt[name]) for name in COLUMNS]
        lost = _percent(target.lost, target.sent)
        rows.append([target.aim.name, str(target.sent), lost, *cells])
    shown = text.table(("target", "sent", "lost", *(f"{name} ms" for name in COLUMNS)), rows)
    return shown + (f"\nnot sent, because this host stood still: {missed} probes" if missed else "")
