"""`sojourn graph`: a monitor's recording as a smoke graph of any span from seconds to months."""

from __future__ import annotations

import contextlib
import datetime
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sojourn.cli import work
from sojourn.errors import UserError
from sojourn_live.cli import line_options

if TYPE_CHECKING:
    from sojourn.figures.smoke import Carried, Remark, Smoke
    from sojourn_live.monitor.store import Reader, StoredTarget

COLUMNS_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
"""Widths of a column. Each is a whole multiple of a width in `store.WIDTHS`."""
MOST_COLUMNS = 720
USUAL_NS = 24 * 3600 * 10**9
"""The default span."""
PROBES_A_COLUMN = 3
"""The least number of probes in a column."""
PROBES_S = 600
"""A graph of this span or a shorter one also shows single probes."""
SHOWN_EVENTS = ("suspended", "step", "stood still")
"""The events that the graph shows. They explain data that look strange."""
REMARKS = 40


@click.command()
@click.argument("database", type=click.Path(path_type=Path, dir_okay=False), metavar="DB")
@click.option(
    "--target",
    "names",
    multiple=True,
    metavar="T",
    help="Draw only this target, as it was given to monitor. May be repeated.",
)
@click.option(
    "--from", "begin", metavar="WHEN", help='Start: "2026-11-21 09:00", or "09:00" of today.'
)
@click.option(
    "--to", "end", metavar="WHEN", help="End, in the same form. [default: the latest probe]"
)
@click.option(
    "--last", metavar="TIME", help='The latest "10 min", "24 h", "7 d", "2 w". [default: 24 h]'
)
@line_options.BESIDE
@click.option("--utc", is_flag=True, help="Times are in UTC, not in this host's time zone.")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="The figure: .png, .svg or .pdf.",
)
def graph(
    database: Path,
    names: Sequence[str],
    begin: str | None,
    end: str | None,
    last: str | None,
    runs: Sequence[Path],
    utc: bool,
    out: Path,
) -> None:
    """Draw a monitor's recording: RTTs, losses, and the interface's traffic.

    DB is a file of `sojourn monitor`, which may still be running. Days and months are drawn from
    roll-ups that keep whole distributions, so the median of an hour is that of all its probes.

    \b
    sojourn graph monitor.db --last 1h -o hour.png
    sojourn graph monitor.db --from "2026-11-01" --to "2026-11-08" -o week.svg
    sojourn graph monitor.db --beside runs/irtt -o both.png
    """
    if last is not None and (begin is not None or end is not None):
        raise click.UsageError("--last can't be combined with --from or --to")
    last_ns = _length(last)
    work.check_there(database, "name the file that `sojourn monitor --db` wrote")
    work.check_suffixes([out.suffix], "--out")
    from dateutil.tz import tzlocal  # type: ignore[import-untyped]

    from sojourn import figures
    from sojourn.figures.smoke import smoke
    from sojourn_live.monitor import beside
    from sojourn_live.monitor.store import Reader

    with contextlib.ExitStack() as stack:
        reader = stack.enter_context(Reader(database))
        targets = _targets(reader, names)
        zone = datetime.UTC if utc else tzlocal()
        start_s, end_s = _span(reader, begin, end, last_ns, zone)
        smokes = [_smoke(reader, target, start_s, end_s) for target in targets]
        if not any(each.density.sent.sum() for each in smokes):
            first, latest = reader.span() or (start_s, end_s)
            raise UserError(
                f"nothing was sent between {_when(start_s, zone)} and {_when(end_s, zone)}",
                f"{database} contains {_when(first, zone)} to {_when(latest, zone)}",
            )
        smokes = [each for each in smokes if names or each.density.sent.sum()]
        if runs:
            other = stack.enter_context(Reader(stack.enter_context(beside.database(runs))))
            theirs = [_smoke(other, target, start_s, end_s) for target in other.targets()]
            theirs = [each for each in theirs if each.density.sent.sum()]
            if not theirs:
                first, latest = other.span() or (start_s, end_s)
                raise UserError(
                    f"{runs[0]} has no probe between {_when(start_s, zone)} and {_when(end_s, zone)}",
                    f"its probes: {_when(first, zone)} to {_when(latest, zone)}; choose --from and --to",
                )
            smokes += theirs
        drawn = smoke(
            smokes,
            _carried(reader, start_s, end_s),
            _remarks(reader, start_s, end_s),
            start_s=start_s,
            end_s=end_s,
            zone=zone,
        )
    try:
        figures.save(drawn, out)
    except OSError as error:
        raise UserError(
            f"can't write {out}: {error.strerror or error}",
            "name a file in a folder that exists: -o FILE",
        ) from None
    work.say(f"{out}: {_when(start_s, zone)} to {_when(end_s, zone)}")


# --------------------------------------------------------------------------------------- choosing


def _targets(reader: Reader, names: Sequence[str]) -> list[StoredTarget]:

    known = {target.name: target for target in reader.targets()}
    for name in names:
        if name not in known:
            raise UserError(
                f"{reader.path} has no target {name!r}",
                f"its targets: {', '.join(known) or 'none'}",
            )
    return [known[name] for name in dict.fromkeys(names)] or list(known.values())


def _length(last: str | None) -> int | None:
    """The span of --last, ns."""
    from sojourn import units

    if last is None:
        return None
    try:
        return units.parse_duration(last, example="24 h", zero=False, days=True)
    except units.UnitError as error:
        error.place = "--last"
        raise


def _span(
    reader: Reader, begin: str | None, end: str | None, last_ns: int | None, zone: datetime.tzinfo
) -> tuple[float, float]:
    """Start and end of the graph, s since 1970."""

    stored = reader.span()
    if stored is None:
        raise UserError(
            f"{reader.path} contains no probes yet", "let `sojourn monitor` run for a moment"
        )
    # A clock that was wrong for a while may have left probes in the future.
    latest = float(min(stored[1], time.time()) if stored[0] < time.time() else stored[1])
    until = latest if end is None else _moment("--to", end, zone)
    if begin is not None:
        start = _moment("--from", begin, zone)
    else:
        start = until - (USUAL_NS if last_ns is None else last_ns) / 1e9
        if last_ns is None and end is None:
            start = max(start, stored[0])
    if until - start < 1:
        raise UserError(
            f"from {_when(start, zone)} to {_when(until, zone)} is less than a second",
            "--from must be before --to",
        )
    return start, until


def _moment(option: str, written: str, zone: datetime.tzinfo) -> float:

    try:
        try:
            moment = datetime.datetime.fromisoformat(written)
        except ValueError:
            moment = datetime.datetime.combine(
                datetime.datetime.now(zone).date(), datetime.time.fromisoformat(written)
            )
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError, OSError):
        raise UserError(
            f"{option}: {written!r} is not a time",
            'write "2026-11-21 09:00", "2026-11-21", or "09:00" of today',
        ) from None


def _when(seconds: float, zone: datetime.tzinfo) -> str:
    return f"{datetime.datetime.fromtimestamp(seconds, zone):%Y-%m-%d %H:%M:%S}"


# ---------------------------------------------------------------------------------------- reading


def _column_s(
    reader: Reader, start_s: float, end_s: float, interval_s: float = 0.0
) -> tuple[int, int]:
    """The width of a column, and the width of the roll-ups that it sums, s. Because a column
    without a probe is drawn as a gap, a column is wide enough for `PROBES_A_COLUMN` probes."""
    wanted = max((end_s - start_s) / MOST_COLUMNS, PROBES_A_COLUMN * interval_s)
    column = next((width for width in COLUMNS_S if width >= wanted), COLUMNS_S[-1])
    width = reader.width(start_s, column)
    return max(column, width), width


def _smoke(reader: Reader, target: StoredTarget, start_s: float, end_s: float) -> Smoke:
    import numpy as np

    from sojourn.figures.series import DENSITY_LEVELS, EMPTY, Density, Line
    from sojourn.figures.smoke import Smoke
    from sojourn_live.monitor import rtt_histogram

    column, width = _column_s(reader, start_s, end_s, target.interval_ns / 1e9)
    first = int(start_s // column * column)
    count = int(-(-(end_s - first) // column))
    rtt = np.full((DENSITY_LEVELS.size, count), np.nan)
    sent, lost = np.zeros(count, np.int64), np.zeros(count, np.int64)
    parts: dict[int, list[rtt_histogram.RttHistogram]] = {}
    for row in reader.rows(target.id, width, first, first + count * column):
        at = (row.t_s - first) // column
        if at >= 0:
            sent[at] += row.sent
            lost[at] += row.lost
            parts.setdefault(at, []).append(row.rtt)
    for at, histograms in parts.items():
        rtt[:, at] = rtt_histogram.merged(histograms).quantiles(DENSITY_LEVELS) / 1e6
    t = first - start_s + np.arange(count, dtype=np.float64) * column
    probes = EMPTY
    if end_s - start_s <= PROBES_S:
        t_ns, rtt_ns = reader.probes(target.id, start_s, end_s)
        probes = Line(t_ns / 1e9 - start_s, rtt_ns / 1e6)
    return Smoke(target.name, Density(float(column), t, DENSITY_LEVELS, rtt, sent, lost), probes)


def _carried(reader: Reader, start_s: float, end_s: float) -> list[Carried]:
    import numpy as np

    from sojourn.figures.smoke import Carried

    column, width = _column_s(reader, start_s, end_s)
    first = int(start_s // column * column)
    count = int(-(-(end_s - first) // column))
    t = first - start_s + np.arange(count, dtype=np.float64) * column
    found = []
    for name, interface in reader.interfaces().items():
        traffic = reader.traffic(interface, width, first + width - 1, first + count * column)
        if traffic.t_s.size == 0:
            continue
        at = (traffic.t_s - first) // column
        # One byte per ns is 8000 Mbit/s. A column that was not measured is 0/0.
        measured_ns = np.bincount(at, traffic.measured_ns, minlength=count)
        with np.errstate(invalid="ignore"):
            down, up = (
                np.bincount(at, carried, minlength=count) * 8e3 / measured_ns
                for carried in (traffic.received_bytes, traffic.sent_bytes)
            )
        busiest = np.full((2, count), np.nan)
        np.fmax.at(busiest[0], at, traffic.received_most * 8e-6)
        np.fmax.at(busiest[1], at, traffic.sent_most * 8e-6)
        found.append(Carried(name, float(column), t, down, up, busiest[0], busiest[1]))
    return found


def _remarks(reader: Reader, start_s: float, end_s: float) -> list[Remark]:
    from sojourn.figures.smoke import Remark

    events = [event for event in reader.events(start_s, end_s) if event.kind in SHOWN_EVENTS]
    return [Remark(event.t_ns / 1e9 - start_s, event.text) for event in events[-REMARKS:]]
