"""The density graph of pings, after Julius Plenz ("Trying the CoDel Bufferbloat solution locally",
2012).

The grid is in seconds. A second has some ten pings. Their spread about the second's median, the
black line, is drawn as nested bands, lighter further from the median. A line alone would hide that
a queue makes pings unsteady, not only slow. Over minutes and hours a column is several seconds; the
figure says how many.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from sojourn.arrays import Floats
from sojourn.digits import on_page
from sojourn.figures import series, style
from sojourn.records import Run, RunError

SHADES = ("#dbe9f6", "#b7d4ea", "#89bedc", "#539ecd", "#2b7bba")
"""From the outermost band (all pings of the column) to the innermost (the middle fifth)."""


@style.drawn
def density(
    run: Run,
    probe: str | None = None,
    seed: int | None = None,
    *,
    ax: Axes | None = None,
    paper: style.Paper | None = None,
) -> Figure:
    """Pings of one probe over time, in one seed. The defaults are the first probe and the first
    seed."""
    series.check([run])
    names = series.answered(run) if series.is_measured(run) else series.probes(run)
    if probe is None and names:
        probe = names[0]
    if probe is not None and probe not in names:
        raise RunError(
            f"{run.path}: there is no probe {probe!r}", f"probes are: {', '.join(names) or 'none'}"
        )
    seed = run.seeds[0] if seed is None else seed
    line = series.pings(run, seed, probe) if probe is not None else series.EMPTY
    end = run.meta.duration_ns / 1e9
    columns = series.density(line, end)

    figure = style.blank(10, 3.9)
    width = f"{columns.column_s:g} s"
    each = float(np.median(columns.sent[columns.sent > 0])) if columns.sent.any() else 0.0
    explained = (
        f"{probe}: each column is {width}, about {each:g} pings"
        if probe is not None
        else "no probe"
    )
    top = style.heading(
        figure,
        series.title([run]),
        f"{series.subtitle([run], seed)} · {explained}: median black, further out lighter blue",
    )
    axes = style.panels(figure, style.Margins(top=top + 0.22, right=0.3, bottom=0.5))[0][0]
    axes.set_xlim(0, end)
    axes.set_xlabel("time [s]")
    axes.set_ylabel("ping RTT [ms]")
    replies = columns.rtt_ms[np.isfinite(columns.rtt_ms)]
    most = float(replies.max()) if replies.size else 1.0
    axes.set_ylim(0, most * 1.1)
    if probe is None:
        style.note(axes, "the scenario has no ping")
    elif columns.sent.sum() == 0:
        style.note(axes, "no ping was sent")

    left, right = columns.t, np.minimum(columns.t + columns.column_s, end)
    bands(axes, columns, right)
    x = np.column_stack((left, right)).ravel()
    axes.plot(
        x,
        np.repeat(columns.median, 2),
        color="black",
        linewidth=1.1 if columns.t.size <= 240 else 0.6,
        gid="median",
        solid_joinstyle="miter",
    )

    lost = columns.lost > 0
    if lost.any():
        share = columns.lost[lost] / columns.sent[lost]
        middle = (left[lost] + right[lost]) / 2
        # A tick from the top, as long as the share of the column's pings that were lost.
        axes.vlines(
            middle, 1 - 0.12 * share - 0.03, 1, transform=axes.get_xaxis_transform(), color=style.LOST, linewidth=1.2,
            gid="lost",
        )  # fmt: skip
        count, of = int(columns.lost.sum()), int(columns.sent.sum())
        text = f"red: lost, {count} of {of} ({on_page(100 * count / of)} %)"
        axes.annotate(
            text, (1, 1), xycoords="axes fraction", xytext=(0, 3), textcoords="offset points", ha="right", va="bottom",
            size=style.points(7.5), color=style.LOST,
        )  # fmt: skip
    style.shade_warmup([axes], run.meta.warmup_ns / 1e9, end)
    style.shade_phases([axes], series.spans(run, seed))
    return figure


def bands(axes: Axes, columns: series.Density, right: Floats) -> None:
    """The spread of each column about its median. `right`: the end of the last column."""
    left = columns.t
    for i, colour in enumerate(SHADES):
        low, high = columns.rtt_ms[i], columns.rtt_ms[-1 - i]
        seen = np.isfinite(low)
        boxes = np.stack(
            [
                np.column_stack((x, y))[seen]
                for x, y in ((left, low), (right, low), (right, high), (left, high))
            ],
            axis=1,
        )
        axes.add_collection(
            PolyCollection(
                list(boxes), facecolors=colour, edgecolors=colour, linewidths=0.3, gid=f"band {i}"
            ),
            autolim=False,
        )
