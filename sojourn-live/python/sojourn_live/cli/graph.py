"""`sojourn graph`: what a monitor recorded, as the smoke graph of any span from seconds to
months."""

from __future__ import annotations

import datetime
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sojourn.cli import work
from sojourn.errors import UserError

if TYPE_CHECKING:
    from sojourn.figures.smoke import Carried, Remark, Smoke
    from sojourn_live.monitor.store import Reader, StoredTarget

COLUMNS_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
"""A column's width. Each is a whole number of some roll-ups' (`store.WIDTHS`)."""
MOST_COLUMNS = 720
USUAL_NS = 24 * 3600 * 10**9
"""The span where none is asked for."""
PROBES_A_COLUMN = 3
"""At least."""
PROBES_S = 600
"""Up to such a span single probes are shown too."""
TOLD = ("suspended", "step", "stood still")
"""Events that the graph shows: what makes the data look strange."""
REMARKS = 40


@click.command()
@click.argument("database", type=click.Path(path_type=Path, dir_okay=False), metavar="DB")
@click.option(
    "--target",
    "names",
    multiple=True,
    metavar="T",
    help="Only this one, as it was given to monitor. May be repeated.",
)
@click.option("--from", "begin", metavar="WHEN", help='"2026-11-21 09:00", or "09:00" of today.')
@click.option("--to", "end", metavar="WHEN", help="Likewise. [default: the latest probe]")
@click.option(
    "--last", metavar="TIME", help='The latest "10 min", "24 h", "7 d", "2 w". [default: 24 h]'
)
@click.option("--utc", is_flag=True, help="Times are UTC, not this host's.")
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
    utc: bool,
    out: Path,
) -> None:
    """Draw what monitor recorded: RTTs, losses, and the traffic beside.

    DB is a file of `sojourn monitor`, also while it runs. Days and months are drawn from roll-ups
    that hold whole distributions: a median over an hour is that hour's median.

    \b
    sojourn graph monitor.db --last 1h -o hour.png
    sojourn graph monitor.db --from "2026-11-01" --to "2026-11-08" -o week.svg
    """
    if last is not None and (begin is not None or end is not None):
        raise click.UsageError("--last goes without --from and --to")
    last_ns = _length(last)
    work.check_there(database, "name the file that `sojourn monitor --db` wrote")
    work.check_suffixes([out.suffix], "--out")
    from dateutil.tz import tzlocal  # type: ignore[import-untyped]

    from sojourn import figures
    from sojourn.figures.smoke import smoke
    from sojourn_live.monitor.store import Reader

    with Reader(database) as reader:
        targets = _targets(reader, names)
        zone = datetime.UTC if utc else tzlocal()
        start_s, end_s = _span(reader, begin, end, last_ns, zone)
        smokes = [_smoke(reader, target, start_s, end_s) for target in targets]
        if not any(each.density.sent.sum() for each in smokes):
            first, latest = reader.span() or (start_s, end_s)
            raise UserError(
                f"nothing was sent between {_when(start_s, zone)} and {_when(end_s, zone)}",
                f"{database} has {_when(first, zone)} to {_when(latest, zone)}",
            )
        smokes = [each for each in smokes if names or each.density.sent.sum()]
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
                f"it has: {', '.join(known) or 'none at all'}",
            )
    return [known[name] for name in dict.fromkeys(names)] or list(known.values())


def _length(last: str | None) -> int | None:
    """Of --last, ns."""
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
    """From when to when, s since 1970."""

    held = reader.span()
    if held is None:
        raise UserError(
            f"{reader.path} holds no probes yet", "let `sojourn monitor` run for a moment"
        )
    # A clock that was wrong for a while may have left probes in the future.
    latest = float(min(held[1], time.time()) if held[0] < time.time() else held[1])
    until = latest if end is None else _moment("--to", end, zone)
    if begin is not None:
        start = _moment("--from", begin, zone)
    else:
        start = until - (USUAL_NS if last_ns is None else last_ns) / 1e9
        if last_ns is None and end is None:
            start = max(start, held[0])
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
            f"{option}: {written!r} is no time",
            'write "2026-11-21 09:00", "2026-11-21", or "09:00" of today',
        ) from None


def _when(seconds: float, zone: datetime.tzinfo) -> str:
    return f"{datetime.datetime.fromtimestamp(seconds, zone):%Y-%m-%d %H:%M:%S}"


# ---------------------------------------------------------------------------------------- reading


def _column_s(
    reader: Reader, start_s: float, end_s: float, interval_s: float = 0.0
) -> tuple[int, int]:
    """The width of a column, and that of the roll-ups it is made of. A column without a probe is a
    gap, so it has room for some."""
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
        # Bytes in ns are Mbit/s by 8000; a column that was not measured is 0/0.
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

    events = [event for event in reader.events(start_s, end_s) if event.kind in TOLD]
    return [Remark(event.t_ns / 1e9 - start_s, event.text) for event in events[-REMARKS:]]
