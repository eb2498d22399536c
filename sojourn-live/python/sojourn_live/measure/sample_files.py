"""Raw samples of a measurement as rows for any program: one value a row, with its repeat, time and
phase.

    repeat, t_s, phase, series, quantity, value
    1, 4.250000, idle, server udp, rtt_ms, 20.161

    rtt_ms                            of a probe, at the time of sending; empty: lost
    forward_ms                        a probe's one-way delay to the server; only its rise above the
                                      least one is accurate
    goodput_mbps                      of a connection, 10^6 bit/s, in the interval that ends at t_s
    srtt_ms, cwnd_bytes, retransmits  of a connection's sender, at t_s (retransmits: segments since
                                      it began)
    backlog_bytes, dropped_packets    of a local link's qdisc: backlog at t_s, drops in the interval
                                      that ends at t_s
"""

from __future__ import annotations

import json
import math

import polars as pl

from sojourn.records import Run
from sojourn_live.measure import findings


def table(run: Run) -> pl.DataFrame:
    """All samples of a Run, in order of repeat and time. `phase` is empty between phases."""
    return pl.concat([_repeat(run, seed) for seed in run.seeds]).sort(
        "repeat", "t_s", "series", "quantity", maintain_order=True
    )


def csv(run: Run) -> str:
    """All samples as CSV with a header. An apostrophe is put before text that a spreadsheet would
    take for a formula."""
    texts = pl.col(pl.String)
    formula = texts.str.contains(r"^[=+\-@\t\r]")
    harmless = table(run).with_columns(
        pl.when(formula).then("'" + texts).otherwise(texts).name.keep()
    )
    return harmless.write_csv(float_precision=6)


def _repeat(run: Run, seed: int) -> pl.DataFrame:
    probe, flow, queue = (run.table(name, seed) for name in ("probe", "flow", "queue"))
    # The goodput of an interval is the growth since the connection's previous sample.
    before = pl.col("t_ns").shift(1).over("flow"), pl.col("delivered_bytes").shift(1).over("flow")
    goodput = (pl.col("delivered_bytes") - before[1]) * 8e3 / (pl.col("t_ns") - before[0])
    flow = flow.sort("t_ns", maintain_order=True).with_columns(goodput_mbps=goodput)
    parts = [
        _long(probe, "probe", {"rtt_ms": pl.col("rtt_ns") / 1e6}, keep_null=True),
        _long(probe, "probe", {"forward_ms": pl.col("forward_ns") / 1e6}),
        _long(
            flow,
            "flow",
            {
                "goodput_mbps": pl.col("goodput_mbps"),
                "srtt_ms": pl.col("srtt_ns") / 1e6,
                "cwnd_bytes": pl.col("cwnd_bytes"),
                "retransmits": pl.col("retransmits"),
            },
        ),
        _long(
            queue,
            "link",
            {
                "backlog_bytes": pl.col("backlog_bytes"),
                "dropped_packets": pl.col("dropped_packets"),
            },
        ),
    ]
    phase = pl.lit("")
    for one in run.meta.phases_of(seed):
        inside = (pl.col("t_s") >= one.start_ns / 1e9) & (pl.col("t_s") < one.end_ns / 1e9)
        phase = pl.when(inside).then(pl.lit(one.name)).otherwise(phase)
    return pl.concat(parts).select(
        pl.lit(seed, dtype=pl.Int64).alias("repeat"),
        "t_s",
        phase.alias("phase"),
        "series",
        "quantity",
        "value",
    )


def _long(
    table: pl.DataFrame, name: str, read: dict[str, pl.Expr], *, keep_null: bool = False
) -> pl.DataFrame:
    rows = [
        table.select(
            t_s=pl.col("t_ns") / 1e9,
            series=pl.col(name),
            quantity=pl.lit(quantity),
            value=value.cast(pl.Float64),
        )
        for quantity, value in read.items()
    ]
    together = pl.concat(rows)
    return together if keep_null else together.drop_nulls("value")


def json_of(run: Run) -> str:
    """The findings of a Run, and its samples by column."""
    columns = table(run).to_dict(as_series=False)
    columns["value"] = [
        None if value is not None and not math.isfinite(value) else value
        for value in columns["value"]
    ]
    whole = {**findings.find(run).to_dict(), "samples": columns}
    return json.dumps(whole, ensure_ascii=False, allow_nan=False)
