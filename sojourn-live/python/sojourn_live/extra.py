"""The verbs, outputs and readers of measurements that this package adds to `sojourn`."""

from sojourn.extras import VERBS, Extra

OUTPUTS = {
    "measure": (1, "sojourn_live.outputs:MeasureOutput"),
    "changes": (1, "sojourn_live.outputs:ChangesOutput"),
    "history": (1, "sojourn_live.outputs:HistoryOutput"),
    "peer": (1, "sojourn_live.outputs:PeerOutput"),
    "rpm": (1, "sojourn_live.outputs:RpmOutput"),
    "monitor": (1, "sojourn_live.outputs:MonitorOutput"),
    "shape": (1, "sojourn_live.outputs:ShapeOutput"),
    "tune": (1, "sojourn_live.outputs:TuneOutput"),
}

EXTRA = Extra(
    name="sojourn-live",
    verbs={"A live line": {verb: f"sojourn_live.cli.{verb}:{verb}" for verb in VERBS["live"]}},
    example="sojourn measure HOST",
    outputs=OUTPUTS,
    formats="sojourn_live.formats:FORMATS",
    measurements="sojourn_live.measured:MEASUREMENTS",
)
